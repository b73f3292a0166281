//! The program's part when it was started as a child of itself.

use crate::starter::end_with;
use crate::{Error, bench, probe};
use rustix::process::Pid;
use std::io::{BufRead, Write};

/// Acts on the words after those of its [`Starter`](crate::starter::Starter): for a probe it waits to be told to end,
/// or answers; or it is a benchmark's process. It ends with its parent.
///
/// # Errors
/// A parent or a partner that went away, or unknown words.
pub fn child(words: &[String]) -> Result<(), Error> {
    let unknown = || bench::unknown(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let [parent, words @ ..] = words else { return Err(unknown()) };
    if words == [HERALD] {
        return herald(std::io::stdin().lock(), std::io::stderr());
    }
    let parent = parent.parse().ok().filter(|&parent: &i32| parent > 0).and_then(Pid::from_raw);
    end_with(parent.ok_or_else(unknown)?)?;
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

/// Reads a byte for each signal that its parent gets, and reports that the second one has ended the parent. It exits
/// when its input ends, so after its parent.
fn herald(from: impl BufRead, mut to: impl Write) -> Result<(), Error> {
    if from.bytes().map_while(Result::ok).nth(1).is_some() {
        let line = "error: interrupted twice: ended at once; what was stored before is kept";
        // It does not matter whether anybody hears it.
        let _ = writeln!(to, "{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_herald_tells_of_the_second_signal() {
        let said = |heard: &[u8]| {
            let mut said = Vec::new();
            herald(heard, &mut said).unwrap();
            String::from_utf8(said).unwrap().lines().count()
        };
        assert_eq!([said(b""), said(b"X"), said(b"XX"), said(b"XXX")], [0, 0, 1, 1]);
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
