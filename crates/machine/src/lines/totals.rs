//! The directory's totals: how many lines moved, and how long CPUs waited for them.

use super::Directory;
use units::Ps;

/// What the transfers of lines came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineTotals {
    /// Requests that did not find their line ready, and how long their lines took to come.
    pub requests: u64,
    pub took: Ps,
    /// Lines that moved from one core to another or came from memory: the requests, less those whose line was already
    /// with their core or in flight to it.
    pub transfers: u64,
    /// How long CPUs stood still for lines: `took`, less what was fetched by idle CPUs.
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
