//! High-resolution timers of one CPU: sleepers', by hard expiry, then in order of arming; and when the scheduler's own are due.

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

#[derive(Clone, Debug)]
pub struct Timers {
    /// When the hardware must interrupt: the first sleeper's hard expiry, or the scheduler's timer.
    next: Ps,
    sleeper: Ps,
    /// The first of the scheduler's own timers, which stand there: only their time is known here.
    sched: Ps,
    heap: BinaryHeap<Reverse<Timer>>,
    sequence: u64,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers { next: Ps::NEVER, sleeper: Ps::NEVER, sched: Ps::NEVER, heap: BinaryHeap::new(), sequence: 0 }
    }
}

impl Timers {
    pub fn arm(&mut self, soft: Ps, hard: Ps, task: TaskId, sleep: u64) {
        self.sequence += 1;
        self.heap.push(Reverse(Timer { hard, sequence: self.sequence, soft, task, sleep }));
        self.set_sleeper(self.sleeper.min(hard));
    }

    /// When the hardware must interrupt; [`Ps::NEVER`] without timers.
    #[inline]
    pub fn next(&self) -> Ps {
        self.next
    }

    fn set_sleeper(&mut self, hard: Ps) {
        self.sleeper = hard;
        self.next = hard.min(self.sched);
    }

    /// Takes all sleepers' timers out, in the order in which they would fire.
    pub fn leave(&mut self) -> Vec<Timer> {
        let mut timers: Vec<Timer> = std::mem::take(&mut self.heap).into_iter().map(|timer| timer.0).collect();
        timers.sort_unstable();
        self.set_sleeper(Ps::NEVER);
        timers
    }

    /// The scheduler's first timer here is due at `at`.
    pub fn set_sched(&mut self, at: Ps) {
        self.sched = at;
        self.next = at.min(self.sleeper);
    }

    /// Whether at `now` it is the scheduler's turn: its timer is due, and no sleeper's was before.
    pub fn sched_first(&self, now: Ps) -> bool {
        self.sched <= now && self.sched <= self.sleeper
    }

    /// hrtimer.c: __hrtimer_run_queues(): the next timer that may run at `now`.
    pub fn expire(&mut self, now: Ps) -> Option<Timer> {
        if self.heap.peek()?.0.soft > now {
            return None;
        }
        let timer = self.heap.pop().map(|t| t.0);
        self.set_sleeper(self.heap.peek().map_or(Ps::NEVER, |t| t.0.hard));
        timer
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
        assert_eq!(timers.leave().len(), 1);
        assert_eq!(timers.next(), Ps::NEVER, "a CPU that is gone waits for nothing");
    }

    #[test]
    fn the_schedulers_timers_take_their_turn_among_the_sleepers() {
        let mut timers = Timers::default();
        let us = |n: u64| Ps::from_ns(n * 1000);
        assert!(timers.next() == Ps::NEVER && !timers.sched_first(us(1000)));
        timers.arm(us(10), us(60), TaskId(1), 0);
        timers.set_sched(us(50));
        assert_eq!(timers.next(), us(50));
        assert!(!timers.sched_first(us(49)) && timers.sched_first(us(50)));
        timers.set_sched(us(61));
        assert!(timers.next() == us(60) && !timers.sched_first(us(70)));
        timers.expire(us(70));
        assert!(timers.sched_first(us(70)));
    }
}
