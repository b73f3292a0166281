//! The order of time, for formats that show it. A stream comes in the order in which the simulation executes paths, so
//! CPUs take turns in it, each ahead of the others by as much as its path takes.

use crate::STRAGGLER;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use units::Ns;

/// Holds what has come for [`STRAGGLER`] of simulated time, in which something earlier may still come. What has the same
/// time keeps the order in which it came.
pub(crate) struct ByTime<T> {
    waiting: BinaryHeap<Waiting<T>>,
    newest: Ns,
    sequence: u64,
}

struct Waiting<T> {
    time: Ns,
    sequence: u64,
    item: T,
}

impl<T> ByTime<T> {
    pub fn new() -> ByTime<T> {
        ByTime { waiting: BinaryHeap::new(), newest: Ns::ZERO, sequence: 0 }
    }

    pub fn push(&mut self, time: Ns, item: T) {
        self.sequence += 1;
        self.waiting.push(Waiting { time, sequence: self.sequence, item });
    }

    /// How much is held.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The stream has come to an event of that time.
    pub fn passed(&mut self, time: Ns) {
        self.newest = self.newest.max(time);
    }

    /// The earliest, if nothing can come before it any more.
    pub fn settled(&mut self) -> Option<(Ns, T)> {
        self.waiting.peek().filter(|earliest| earliest.time + STRAGGLER < self.newest)?;
        self.earliest()
    }

    /// The earliest. At the end of the stream.
    pub fn earliest(&mut self) -> Option<(Ns, T)> {
        self.waiting.pop().map(|waiting| (waiting.time, waiting.item))
    }
}

/// The earliest is the greatest, because a heap yields the greatest first.
impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Waiting<T>) -> Ordering {
        (other.time, other.sequence).cmp(&(self.time, self.sequence))
    }
}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Waiting<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Waiting<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Waiting<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_held_for_a_while_and_leaves_in_the_order_of_time() {
        let mut held = ByTime::new();
        let mut left = Vec::new();
        for (time, item) in [(30, 'a'), (10, 'b'), (30, 'c'), (20, 'd'), (10_000_025, 'e')] {
            held.push(Ns(time), item);
            held.passed(Ns(time));
            left.extend(std::iter::from_fn(|| held.settled()));
        }
        assert_eq!(left, [(Ns(10), 'b'), (Ns(20), 'd')]);
        left.extend(std::iter::from_fn(|| held.earliest()));
        assert_eq!(left.into_iter().map(|(_, item)| item).collect::<String>(), "bdace");
    }
}
