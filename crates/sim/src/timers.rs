//! High-resolution timers of one CPU, by hard expiry, then in order of arming.

use sched::sched::TaskId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Ps;

/// A sleeping task's timer. It may fire from `soft` on, with any other timer interrupt, and fires at `hard` at the latest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Timer {
    pub hard: Ps,
    sequence: u64,
    pub soft: Ps,
    pub task: TaskId,
    /// Which sleep of the task this is: a timer whose sleep is over already does nothing.
    pub sleep: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
    sequence: u64,
}

impl Timers {
    pub fn arm(&mut self, soft: Ps, hard: Ps, task: TaskId, sleep: u64) {
        self.sequence += 1;
        self.heap.push(Reverse(Timer { hard, sequence: self.sequence, soft, task, sleep }));
    }

    /// When the hardware must interrupt; [`Ps::NEVER`] without timers.
    #[inline]
    pub fn next(&self) -> Ps {
        self.heap.peek().map_or(Ps::NEVER, |t| t.0.hard)
    }

    /// hrtimer.c: __hrtimer_run_queues(): the next timer that may run at `now`.
    pub fn expire(&mut self, now: Ps) -> Option<Timer> {
        if self.heap.peek()?.0.soft > now {
            return None;
        }
        self.heap.pop().map(|t| t.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_by_hard_expiry_and_together_where_slack_allows() {
        let mut timers = Timers::default();
        let us = |n: u64| Ps::from_ns(n * 1000);
        timers.arm(us(10), us(60), TaskId(1), 0);
        timers.arm(us(20), us(70), TaskId(2), 0);
        timers.arm(us(65), us(115), TaskId(3), 0);
        assert_eq!(timers.next(), us(60));
        assert_eq!(timers.expire(us(60)).map(|t| t.task), Some(TaskId(1)));
        assert_eq!(timers.expire(us(60)).map(|t| t.task), Some(TaskId(2)));
        assert_eq!(timers.expire(us(60)), None);
        assert_eq!(timers.next(), us(115));
    }
}
