//! What this program does where it was started as a child of itself.

use crate::starter::end_with;
use crate::{Error, bench, probe};
use rustix::process::{Pid, Signal, getppid, kill_process};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// By the words it was started with, behind those of its [`Starter`](crate::starter::Starter): waits to be told to end or answers, for a probe, or is a
/// benchmark's process. It ends with its parent.
///
/// # Errors
/// A parent or a partner that went away, or words that are none of ours.
pub fn child(words: &[String]) -> Result<(), Error> {
    let unknown = || bench::unknown(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let [parent, words @ ..] = words else { return Err(unknown()) };
    let parent = parent.parse().ok().filter(|&parent: &i32| parent > 0).and_then(Pid::from_raw);
    let parent = parent.ok_or_else(unknown)?;
    if words == [HERALD] {
        return herald(parent);
    }
    end_with(parent)?;
    match words {
        [word] if word == "wait" => probe::child(),
        [word] if word == probe::ANSWER => {
            probe::answer();
            Ok(())
        }
        words => bench::child(words),
    }
}

/// The word for the child that tells what its parent cannot: see [`herald`].
pub const HERALD: &str = "herald";

/// Hears of each signal that its parent gets, a byte for each; says of the second that it ends the parent, and ends it by SIGUSR1. It ends with
/// what it reads, so after its parent.
fn herald(parent: Pid) -> Result<(), Error> {
    if second_comes(std::io::stdin().lock()) && getppid() == Some(parent) {
        let line = "error: interrupted twice: ended at once; what was stored before is kept";
        // Whether anybody hears it does not matter.
        let _ = writeln!(std::io::stderr(), "{line}");
        kill_process(parent, Signal::USR1).map_err(|error| Error::of_system("ending the parent", error))?;
    }
    Ok(())
}

/// What follows a signal so soon is no second one: timeout(1) sends one to its child, and one to the group in which that is.
const ONE_SIGNAL: Duration = Duration::from_millis(250);

/// Whether a second signal comes, of which there is a byte each, before nobody can send any more.
pub fn second_comes(mut signals: impl Read) -> bool {
    let mut first = None;
    while signals.read_exact(&mut [0]).is_ok() {
        if first.get_or_insert_with(Instant::now).elapsed() >= ONE_SIGNAL {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    #[test]
    fn a_second_signal_is_one_that_comes_after_a_while() {
        let heard = |waits: &[Duration]| {
            let (mut here, there) = UnixStream::pair().unwrap();
            thread::scope(|scope| {
                let heard = scope.spawn(|| second_comes(there));
                for &wait in waits {
                    thread::sleep(wait);
                    // Who has heard enough reads no more.
                    let _ = here.write_all(&[1]);
                }
                drop(here);
                heard.join().unwrap()
            })
        };
        let (at_once, later) = (Duration::ZERO, ONE_SIGNAL + Duration::from_millis(50));
        assert_eq!([heard(&[]), heard(&[later]), heard(&[at_once; 3])], [false; 3]);
        assert_eq!([heard(&[at_once, later]), heard(&[at_once, at_once, later])], [true; 2]);
    }

    #[test]
    fn a_child_of_nobody_is_none() {
        for words in [&[][..], &["wait"], &["0", "wait"], &["-1", "wait"]] {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            let error = child(&words).unwrap_err().to_string();
            assert!(error.contains("`fairground measure` starts its children with"), "{error}");
        }
    }
}
