//! The computer that the program runs on: its hardware and its kernel. Nothing in this crate is simulated, and no
//! simulation uses it. It delivers numbers and texts, from which the lab makes machine files and tables.
//!
//! - [`computer`]: which computer this is, which of its CPUs we may use, how busy they are.
//! - [`probe`]: small experiments that measure one price each, for `fairground calibrate`.
//! - [`child`]: what a second process of this program does for either; [`starter`]: how it is started, and ends.
//! - [`mod@bench`]: real benchmarks with the parameters and figures of the simulated ones, for `fairground measure`.
//!
//! Works without privileges. Every wait on another thread or process ends: a benchmark whose partner dies reports an [`Error`].

pub mod bench;
mod cgroup;
pub mod child;
pub mod computer;
mod memory;
pub mod pinning;
pub mod probe;
pub mod starter;
pub mod statistics;

use std::fmt;
use std::io;

/// Why something could not be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What was being done.
    pub doing: String,
    /// What happened, in the system's words or ours.
    pub found: String,
    /// What would help.
    pub expected: String,
}

impl Error {
    pub fn new(doing: impl Into<String>, found: impl fmt::Display, expected: impl Into<String>) -> Error {
        Error { doing: doing.into(), found: found.to_string(), expected: expected.into() }
    }

    /// A system call that failed.
    pub fn of_system(doing: &str, error: impl Into<io::Error>) -> Error {
        Error::new(doing, error.into(), "a system that allows it (limits of processes, open files, memory)")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}; expected {}", self.doing, self.found, self.expected)
    }
}

impl std::error::Error for Error {}
