//! The program's part when it was started as a child of itself.

use crate::starter::end_with;
use crate::{Error, bench, probe};
use rustix::process::{Pid, Signal, getppid, kill_process};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Acts on the words after those of its [`Starter`](crate::starter::Starter): for a probe it waits to be told to end,
/// or answers; or it is a benchmark's process. It ends with its parent.
///
/// # Errors
/// A parent or a partner that went away, or unknown words.
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

/// The word for the child that reports what its parent cannot: see [`herald`].
pub const HERALD: &str = "herald";

/// Reads a byte for each signal that its parent gets. After a second one it reports that this ends the parent, and ends
/// the parent by SIGUSR1. It exits when its input ends, so after its parent.
fn herald(parent: Pid) -> Result<(), Error> {
    if second_comes(std::io::stdin().lock()) && getppid() == Some(parent) {
        let line = "error: interrupted twice: ended at once; what was stored before is kept";
        // It does not matter whether anybody hears it.
        let _ = writeln!(std::io::stderr(), "{line}");
        kill_process(parent, Signal::USR1).map_err(|error| Error::of_system("ending the parent", error))?;
    }
    Ok(())
}

/// A signal that follows another this soon is not a second one: timeout(1) signals its child, and also the child's group.
const ONE_SIGNAL: Duration = Duration::from_millis(250);

/// Whether a second signal comes before the writing end closes; each signal is a byte.
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
                    // The thread stops reading once it has heard a second signal.
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
