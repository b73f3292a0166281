//! How a command ends that does not succeed.

use lab::mistake::Mistake;
use lab::trace::TraceError;
use std::fmt::Display;
use std::io;
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
