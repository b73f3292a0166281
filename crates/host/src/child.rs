//! What this program does where it was started as a child of itself.

use crate::{Error, bench, probe};

/// By the words it was started with, behind those of its [`Starter`](crate::bench::Starter): waits to be told to end, for a probe, or is a
/// benchmark's process.
///
/// # Errors
/// A partner that went away, or words that are none of ours.
pub fn child(words: &[String]) -> Result<(), Error> {
    if words == ["wait"] { probe::child() } else { bench::child(words) }
}
