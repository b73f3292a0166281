//! The timers of one CPU: high-resolution timers of sleepers, ordered by hard expiry, then by when they were armed;
//! when the scheduler's own timers are due; the timer wheel's timeouts; and interrupts of devices. Also, how a sleep
//! arms its timer.

use crate::engine::Sim;
use crate::task::Pending;
use machine::hardware::Hardware;
use os::Syscall;
use os::irq::Cause;
use os::workqueue::DelayedWork;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{CpuId, Ns, Ps};

/// clockevents.c: cev_delta2ns(): a clock event device is not set to interrupt sooner than in a microsecond; nor does
/// clockevents_program_event() set it for a time that has passed.
pub(crate) const MIN_DELTA: Ps = Ps::from_ns(1_000);

/// A sleeping task's timer. It may fire from `soft` on, with any other timer interrupt, and fires at `hard` at the latest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Timer {
    pub hard: Ps,
    sequence: u64,
    pub soft: Ps,
    pub task: TaskId,
    /// The number of the task's sleep: a timer whose sleep is already over does nothing.
    pub sleep: u64,
}

/// A timeout of the wheel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Timeout {
    pub at: Ps,
    sequence: u64,
    pub fires: Fires,
}

/// What a timeout does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fires {
    /// It ends this sleep of a task, if that still lasts.
    Sleep { task: TaskId, sleep: u64 },
    /// It leaves work to a worker, unless that was cancelled since.
    Work { work: DelayedWork, timer: u32 },
}

#[derive(Clone, Debug)]
pub struct Timers {
    /// The next interrupt: the first sleeper's hard expiry, the scheduler's timer, or a device's.
    next: Ps,
    sleeper: Ps,
    /// When the clock interrupts for the scheduler's own timers. The scheduler keeps the timers themselves; only their
    /// time is known here.
    sched: Ps,
    /// When the first of them expires. The clock may interrupt sooner, for one that was put off.
    sched_expires: Ps,
    /// When the first interrupt of a device comes.
    device: Ps,
    /// The first timeout of the timer wheel.
    wheel: Ps,
    /// When the CPU's watchdog looks next.
    watchdog: Ps,
    timeouts: BinaryHeap<Reverse<Timeout>>,
    /// Deferrable timeouts of the wheel, for which no interrupt is set: they run in a tick, or when the softirq runs
    /// for other timeouts.
    deferrable: BinaryHeap<Reverse<Timeout>>,
    heap: BinaryHeap<Reverse<Timer>>,
    sequence: u64,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            next: Ps::NEVER,
            sleeper: Ps::NEVER,
            sched: Ps::NEVER,
            sched_expires: Ps::NEVER,
            device: Ps::NEVER,
            wheel: Ps::NEVER,
            watchdog: Ps::NEVER,
            timeouts: BinaryHeap::new(),
            deferrable: BinaryHeap::new(),
            heap: BinaryHeap::new(),
            sequence: 0,
        }
    }
}

impl Timers {
    pub fn arm(&mut self, soft: Ps, hard: Ps, task: TaskId, sleep: u64) {
        self.sequence += 1;
        self.heap.push(Reverse(Timer { hard, sequence: self.sequence, soft, task, sleep }));
        self.set_sleeper(self.sleeper.min(hard));
    }

    /// When the next interrupt comes, of the local timer or a device; [`Ps::NEVER`] if none will.
    #[inline]
    pub fn next(&self) -> Ps {
        self.next
    }

    /// When the local timer has to interrupt, according to its timers.
    #[inline]
    pub fn next_timer(&self) -> Ps {
        self.sleeper.min(self.sched_expires).min(self.wheel).min(self.watchdog)
    }

    fn find_next(&mut self) {
        self.next = self.sleeper.min(self.sched).min(self.wheel).min(self.watchdog).min(self.device);
    }

    /// The watchdog's timer fires at `at`.
    pub fn set_watchdog(&mut self, at: Ps) {
        self.watchdog = at;
        self.find_next();
    }

    #[inline]
    pub fn watchdog(&self) -> Ps {
        self.watchdog
    }

    /// Arms a deferrable timeout of the wheel.
    pub fn arm_deferrable(&mut self, at: Ps, fires: Fires) {
        self.sequence += 1;
        self.deferrable.push(Reverse(Timeout { at, sequence: self.sequence, fires }));
    }

    /// timer.c: run_timer_softirq(), for the base of deferrable timers: takes the next one that is due at `now`.
    #[inline]
    pub fn expire_deferrable(&mut self, now: Ps) -> Option<Timeout> {
        if self.deferrable.peek()?.0.at > now {
            return None;
        }
        self.deferrable.pop().map(|timer| timer.0)
    }

    /// Takes all deferrable timeouts out.
    pub fn leave_deferrable(&mut self) -> Vec<Timeout> {
        let mut timers: Vec<Timeout> = std::mem::take(&mut self.deferrable).into_iter().map(|timer| timer.0).collect();
        timers.sort_unstable();
        timers
    }

    /// Arms a timeout of the wheel, at a jiffy.
    pub fn arm_wheel(&mut self, at: Ps, fires: Fires) {
        self.sequence += 1;
        self.timeouts.push(Reverse(Timeout { at, sequence: self.sequence, fires }));
        self.set_wheel();
    }

    fn set_wheel(&mut self) {
        self.wheel = self.timeouts.peek().map_or(Ps::NEVER, |timer| timer.0.at);
        self.find_next();
    }

    /// When the wheel's first timeout fires.
    #[inline]
    pub fn wheel(&self) -> Ps {
        self.wheel
    }

    /// timer.c: collect_expired_timers(): takes the wheel's next timeout that is due at `now`.
    pub fn expire_wheel(&mut self, now: Ps) -> Option<Timeout> {
        if self.wheel > now {
            return None;
        }
        let timer = self.timeouts.pop().map(|timer| timer.0);
        self.set_wheel();
        timer
    }

    /// Takes all timeouts of the wheel out.
    pub fn leave_wheel(&mut self) -> Vec<Timeout> {
        let mut timers: Vec<Timeout> = std::mem::take(&mut self.timeouts).into_iter().map(|timer| timer.0).collect();
        timers.sort_unstable();
        self.set_wheel();
        timers
    }

    /// When the first interrupt of a device comes.
    #[inline]
    pub fn device(&self) -> Ps {
        self.device
    }

    /// The first device's interrupt comes at `at`.
    pub fn set_device(&mut self, at: Ps) {
        self.device = at;
        self.find_next();
    }

    fn set_sleeper(&mut self, hard: Ps) {
        self.sleeper = hard;
        self.find_next();
    }

    /// Takes all sleepers' timers out, in the order in which they would fire.
    pub fn leave(&mut self) -> Vec<Timer> {
        let mut timers: Vec<Timer> = std::mem::take(&mut self.heap).into_iter().map(|timer| timer.0).collect();
        timers.sort_unstable();
        self.set_sleeper(Ps::NEVER);
        timers
    }

    /// The scheduler's first timer here expires at `expires`, and the clock interrupts for it at `at`.
    pub fn set_sched(&mut self, at: Ps, expires: Ps) {
        (self.sched, self.sched_expires) = (at, expires);
        self.find_next();
    }

    /// Whether the scheduler's timer is due at `now`, and no sleeper's timer was due before it.
    pub fn sched_first(&self, now: Ps) -> bool {
        self.sched <= now && self.sched <= self.sleeper
    }

    /// hrtimer.c: __hrtimer_run_queues(): takes the next timer that may run at `now`.
    pub fn expire(&mut self, now: Ps) -> Option<Timer> {
        if self.heap.peek()?.0.soft > now {
            return None;
        }
        let timer = self.heap.pop().map(|t| t.0);
        self.set_sleeper(self.heap.peek().map_or(Ps::NEVER, |t| t.0.hard));
        timer
    }
}

// How sleeps arm timers.

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Arms the timer of a sleep on the CPU where the task goes to sleep, or lets the block device answer there.
    pub(crate) fn arm(&mut self, cpu: CpuId, task: TaskId, until: Ns) {
        self.sleeps += 1;
        let sleep = self.sleeps;
        let context = self.context(task);
        context.sleep = sleep;
        if matches!(context.pending, Pending::Syscall(Syscall::BlockIo { .. })) {
            let irq = self.os.irq.queue_request_irq(cpu);
            return self.raise_irq(until, irq, Cause::Done { task, sleep });
        }
        let soft = Ps::from(until);
        // hrtimer.c: hrtimer_nanosleep(). Differs: until v6.11 the kernel tests the priority, so a task that sleeps
        // with a lent priority has no slack either.
        let none = self.context(task).no_slack || self.sched.rt_or_dl_task_policy(task);
        let slack = if none { Ps::ZERO } else { self.timer_slack };
        let hard = (soft + slack).max(self.sched.arch().now(cpu) + MIN_DELTA);
        let on = self.timer_base(cpu, hard);
        self.cpus[on].timers.arm(soft, hard, task, sleep);
        if on != cpu {
            self.requeue(on);
        }
    }

    /// The same for a sleep in schedule_timeout().
    pub(crate) fn arm_timeout(&mut self, cpu: CpuId, task: TaskId, jiffies: u64) {
        self.sleeps += 1;
        let sleep = self.sleeps;
        self.context(task).sleep = sleep;
        let at = self.timeout(cpu, jiffies);
        self.cpus[cpu].timers.arm_wheel(at, Fires::Sleep { task, sleep });
    }

    /// hrtimer.c: switch_hrtimer_base(): the CPU on which a timer waits that is armed on `cpu`. Not another CPU if it
    /// would be the first timer there, because that CPU's clock event device cannot be set from here.
    fn timer_base(&mut self, cpu: CpuId, hard: Ps) -> CpuId {
        let target = self.sched.get_nohz_timer_target(cpu);
        if target != cpu && hard <= self.cpus[target].interrupt_at() { cpu } else { target }
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
        timers.set_sched(us(50), us(55));
        assert_eq!((timers.next(), timers.next_timer()), (us(50), us(55)), "the clock was not told that it is put off");
        assert!(!timers.sched_first(us(49)) && timers.sched_first(us(50)));
        timers.set_sched(us(61), us(61));
        assert!(timers.next() == us(60) && !timers.sched_first(us(70)));
        timers.expire(us(70));
        assert!(timers.sched_first(us(70)));
    }

    #[test]
    fn devices_and_the_wheel_interrupt_too_but_a_device_is_no_timer() {
        let mut timers = Timers::default();
        let us = |n: u64| Ps::from_ns(n * 1000);
        timers.set_device(us(30));
        let fires = |task| Fires::Sleep { task: TaskId(task), sleep: 5 };
        timers.arm_wheel(us(40), fires(1));
        timers.arm_wheel(us(36), fires(2));
        assert_eq!((timers.next(), timers.next_timer(), timers.wheel()), (us(30), us(36), us(36)));
        timers.set_device(Ps::NEVER);
        assert_eq!(timers.next(), us(36));
        assert_eq!(timers.expire_wheel(us(35)), None);
        assert_eq!(timers.expire_wheel(us(36)).map(|timer| timer.fires), Some(fires(2)));
        assert_eq!(timers.leave_wheel().len(), 1);
        assert_eq!(timers.next(), Ps::NEVER);
        timers.set_watchdog(us(50));
        timers.arm_deferrable(us(45), fires(3));
        timers.arm_deferrable(us(44), fires(4));
        assert_eq!((timers.next(), timers.next_timer()), (us(50), us(50)), "nobody comes for a deferrable one");
        assert_eq!(timers.expire_deferrable(us(43)), None);
        assert_eq!(timers.expire_deferrable(us(50)).map(|timer| timer.fires), Some(fires(4)));
        assert_eq!(timers.leave_deferrable().len(), 1);
    }
}
