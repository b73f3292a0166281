//! What the directory counts in all: lines that moved, and how long was waited for them.

use super::Directory;
use units::Ps;

/// How lines' ways were spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineTotals {
    /// Requests that did not find their line ready, and what their lines took to come.
    pub requests: u64,
    pub took: Ps,
    /// Lines that moved from one core to another or came from memory: all those requests but such as their own core was being served already.
    pub transfers: u64,
    /// What CPUs stood still for them: all that lines took to come, but to those that idled.
    pub stalled: Ps,
}

impl LineTotals {
    /// What was added since `before`.
    pub fn since(&self, before: &LineTotals) -> LineTotals {
        LineTotals {
            requests: self.requests - before.requests,
            took: self.took - before.took,
            transfers: self.transfers - before.transfers,
            stalled: self.stalled - before.stalled,
        }
    }
}

impl Directory {
    pub fn totals(&self) -> LineTotals {
        LineTotals {
            requests: self.ways.travelled,
            took: self.stalled,
            transfers: self.ways.travelled - self.ways.stayed,
            stalled: self.stalled - self.unwaited,
        }
    }
}
