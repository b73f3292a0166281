//! How a command ends that does not succeed.

use lab::mistake::Mistake;
use lab::trace::TraceError;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

#[derive(Clone, Debug)]
pub enum Failure {
    /// The user's mistake: exit code 2.
    Mistake(String),
    /// The program's fault: exit code 1.
    Ours(String),
    /// The answer is no (`replay`): exit code 1, and everything has been printed already.
    Differs,
    /// The reader of our output has gone away, which is no failure.
    Closed,
}

impl Failure {
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Mistake(_) => ExitCode::from(2),
            Failure::Ours(_) | Failure::Differs => ExitCode::from(1),
            Failure::Closed => ExitCode::SUCCESS,
        }
    }

    pub fn message(&self) -> Option<&str> {
        match self {
            Failure::Mistake(message) | Failure::Ours(message) => Some(message),
            Failure::Differs | Failure::Closed => None,
        }
    }
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Failure {
        Failure::Mistake(mistake.to_string())
    }
}

impl From<host::Error> for Failure {
    fn from(error: host::Error) -> Failure {
        Failure::Mistake(error.to_string())
    }
}

impl Failure {
    /// The user interrupted a command that does many runs. `done` says how many of them have ended, and `place` keeps
    /// them.
    pub fn interrupted(done: impl Display, place: Option<&Path>) -> Failure {
        Failure::Mistake(match place {
            Some(place) => {
                let place = place.display();
                format!("interrupted: {done} runs are kept in {place}; the same command goes on from there")
            }
            None => format!("interrupted: {done} runs are done"),
        })
    }

    /// The same, before the first run has ended.
    pub fn interrupted_at_first() -> Failure {
        Failure::Mistake("interrupted: no run was finished, so nothing is kept".to_string())
    }

    /// A trace that was not completely written to `out`.
    pub fn of_trace(error: TraceError, out: &str) -> Failure {
        match error {
            TraceError::Mistake(mistake) => mistake.into(),
            TraceError::Io(error) => Failure::of_writing(error, out),
        }
    }

    pub fn of_writing(error: io::Error, out: &str) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::unwritten(out, &error, "the name of a file: --out FILE"),
        }
    }

    /// The user named a place to write to, but it cannot be written.
    pub fn unwritten(place: impl Display, error: &io::Error, expected: &str) -> Failure {
        Failure::Mistake(format!("{place}: cannot be written: {error}; expected {expected}"))
    }
}
