//! kernel/time/hrtimer.c as the scheduler uses it: its own timers, which fire as interrupts of the CPU on which they wait.
//!
//! The timer queues are here; the interrupting clock is outside. [`Arch::clockevents_program_event`] announces that a CPU's next
//! expiry changed, [`HrTimers::next_event`] returns it, and `Scheduler::hrtimer_run` is called once it has come. While no timer
//! is armed, this is one number per CPU that never changes.
//!
//! [`Arch::clockevents_program_event`]: crate::arch::Arch::clockevents_program_event

use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::core::hrtick::{Hrtick, RqHrtick};
use crate::sched::{TaskId, TgId};
use std::collections::BTreeMap;
use units::{CpuId, Ns, PerCpu, unlikely};

/// The number of the object that owns a timer: no two timers of a kind share one.
trait Slot {
    fn slot(self) -> usize;
}

impl Slot for TgId {
    fn slot(self) -> usize {
        self.index()
    }
}

impl Slot for TaskId {
    fn slot(self) -> usize {
        self.index()
    }
}

impl Slot for CpuId {
    fn slot(self) -> usize {
        self.index()
    }
}

impl Slot for () {
    fn slot(self) -> usize {
        0
    }
}

macro_rules! timers {
    ($( $(#[$doc:meta])* $name:ident($owner:ty) => $function:ident; )+) => {
        /// A timer of the scheduler: its kind, and the object that holds it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum SchedTimer { $( $(#[$doc])* $name($owner), )+ }

        #[repr(usize)]
        enum Kind { $( $name, )+ Count }

        impl SchedTimer {
            fn kind_and_slot(self) -> (usize, usize) {
                match self { $( SchedTimer::$name(owner) => (Kind::$name as usize, owner.slot()), )+ }
            }
        }

        impl<A: Arch> Sched<A> {
            /// `timer->function`: what an expired timer does. It has left its queue and may arm itself again.
            fn hrtimer_function(&mut self, timer: SchedTimer) {
                match timer { $( SchedTimer::$name(owner) => self.$function(owner), )+ }
            }
        }
    };
}

timers! {
    /// `cfs_b->period_timer` of a group.
    CfsPeriod(TgId) => sched_cfs_period_timer;
    /// `cfs_b->slack_timer` of a group.
    CfsSlack(TgId) => sched_cfs_slack_timer;
    /// `def_rt_bandwidth.rt_period_timer`
    RtPeriod(()) => sched_rt_period_timer;
    /// `dl_se->dl_timer` of a task, and of a CPU's `fair_server`.
    DlTask(TaskId) => dl_task_timer;
    DlServer(CpuId) => dl_server_timer;
    /// `dl_se->inactive_timer` of the same.
    DlInactive(TaskId) => inactive_task_timer;
    DlServerInactive(CpuId) => dl_server_inactive_timer;
    /// Does a CPU's tick once per second, `tick_work_cpu`.
    TickRemote(CpuId) => sched_tick_remote;
    /// `rq->hrtick_timer`
    Hrtick(CpuId) => hrtick;
}

/// struct hrtimer: when it expires (ns since boot; kept after it has expired), and where it waits.
#[derive(Clone, Copy, Debug, Default)]
struct HrTimer {
    expires: u64,
    queued: Option<(CpuId, u64)>,
}

/// struct hrtimer_cpu_base of each CPU: the armed timers, by expiry, then in the order of arming.
#[derive(Clone, Debug)]
pub struct HrTimers {
    queues: PerCpu<BTreeMap<(u64, u64), SchedTimer>>,
    /// When the clock is to interrupt each CPU for them.
    next: PerCpu<u64>,
    /// Whether `cpu_base->next_timer` is a lazy one that has been cancelled or deferred: the interrupt still comes at its old
    /// time.
    stale: PerCpu<bool>,
    timers: [Vec<HrTimer>; Kind::Count as usize],
    sequence: u64,
    /// What each runqueue knows of its own timer; kept here, so that the runqueue does not grow.
    pub(crate) hrtick: PerCpu<RqHrtick>,
}

/// KTIME_MAX: nothing is armed.
const KTIME_MAX: u64 = u64::MAX;

impl HrTimers {
    pub(crate) fn new(nr_cpus: usize) -> HrTimers {
        HrTimers {
            queues: PerCpu::from_fn(nr_cpus, |_| BTreeMap::new()),
            next: PerCpu::from_fn(nr_cpus, |_| KTIME_MAX),
            stale: PerCpu::from_fn(nr_cpus, |_| false),
            timers: Default::default(),
            sequence: 0,
            hrtick: PerCpu::from_fn(nr_cpus, |_| RqHrtick::default()),
        }
    }

    /// When `cpu` is to be interrupted; `None` if no timer is armed.
    #[inline]
    pub fn next_event(&self, cpu: CpuId) -> Option<Ns> {
        (self.next[cpu] != KTIME_MAX).then(|| Ns(self.next[cpu]))
    }

    /// hrtimer.c: hrtimer_get_next_event(). The first expiry on `cpu`; usually the same.
    #[inline]
    pub fn hrtimer_get_next_event(&self, cpu: CpuId) -> Option<Ns> {
        if unlikely(self.stale[cpu]) {
            Some(Ns(self.first(cpu))).filter(|at| at.0 != KTIME_MAX)
        } else {
            self.next_event(cpu)
        }
    }

    fn first(&self, cpu: CpuId) -> u64 {
        self.queues[cpu].first_key_value().map_or(KTIME_MAX, |(&(expires, _), _)| expires)
    }

    fn get(&self, timer: SchedTimer) -> HrTimer {
        let (kind, slot) = timer.kind_and_slot();
        self.timers[kind].get(slot).copied().unwrap_or_default()
    }

    fn entry(&mut self, timer: SchedTimer) -> &mut HrTimer {
        let (kind, slot) = timer.kind_and_slot();
        if self.timers[kind].len() <= slot {
            self.timers[kind].resize(slot + 1, HrTimer::default());
        }
        &mut self.timers[kind][slot]
    }

    /// Whether the timer is armed.
    pub fn is_queued(&self, timer: SchedTimer) -> bool {
        self.get(timer).queued.is_some()
    }

    /// hrtimer.h: hrtimer_get_expires(). When the timer expires, or last did.
    #[doc(alias = "hrtimer_get_expires")]
    pub fn expires(&self, timer: SchedTimer) -> u64 {
        self.get(timer).expires
    }

    /// hrtimer.h: hrtimer_set_expires(), for a timer that is not armed.
    pub fn hrtimer_set_expires(&mut self, timer: SchedTimer, expires: u64) {
        let entry = self.entry(timer);
        debug_assert!(entry.queued.is_none(), "an armed timer's expiry is its place in the queue");
        entry.expires = expires;
    }

    fn enqueue(&mut self, cpu: CpuId, timer: SchedTimer, expires: u64) {
        self.sequence += 1;
        let sequence = self.sequence;
        *self.entry(timer) = HrTimer { expires, queued: Some((cpu, sequence)) };
        self.queues[cpu].insert((expires, sequence), timer);
    }

    /// Returns where it waited.
    fn dequeue(&mut self, timer: SchedTimer) -> Option<CpuId> {
        let entry = self.entry(timer);
        let (cpu, sequence) = entry.queued.take()?;
        let key = (entry.expires, sequence);
        let removed = self.queues[cpu].remove(&key);
        debug_assert_eq!(removed, Some(timer), "a queued timer is where it says");
        Some(cpu)
    }

    /// Records the queue's first expiry. Returns whether it has changed.
    fn update_next(&mut self, cpu: CpuId) -> bool {
        let next = self.first(cpu);
        // The interrupt of a timer that is gone is not moved to a later time.
        if unlikely(self.stale[cpu]) && next >= self.next[cpu] {
            return false;
        }
        self.stale[cpu] = false;
        std::mem::replace(&mut self.next[cpu], next) != next
    }

    /// A lazy timer on `cpu` that was to expire at `expires` no longer does: if the clock was set for it, it stays set.
    fn leave_armed(&mut self, cpu: CpuId, expires: u64) {
        self.stale[cpu] |= self.next[cpu] == expires;
    }
}

/// A scheduler whose timers need not tell the clock of every change. Others need not implement anything.
pub trait ProgramsClock {
    /// The end of the timer interrupt: sets the clock if a timer had been cancelled without doing so. Returns whether it did.
    fn hrtimer_rearm(&mut self, _cpu: CpuId) -> bool {
        false
    }
    /// When the first of `cpu`'s timers expires; the clock may interrupt sooner, for a deferred one.
    fn hrtimer_get_next_event(&self, cpu: CpuId) -> Option<Ns>;
}

impl<A: Arch> ProgramsClock for Sched<A> {
    /// hrtimer.c: hrtimer_rearm(). The end of a clock interrupt, which looks at all timers.
    #[inline]
    fn hrtimer_rearm(&mut self, cpu: CpuId) -> bool {
        let stale = std::mem::take(&mut self.hrtimers.stale[cpu]);
        if unlikely(stale) {
            self.on_cpu(cpu);
            self.hrtimer_reprogram(cpu);
        }
        stale
    }

    #[inline]
    fn hrtimer_get_next_event(&self, cpu: CpuId) -> Option<Ns> {
        self.hrtimers.hrtimer_get_next_event(cpu)
    }
}

impl<A: Arch> Sched<A> {
    fn hrtimer_reprogram(&mut self, cpu: CpuId) {
        if self.hrtimers.update_next(cpu) || unlikely(self.hrtimers.stale[cpu]) {
            self.arch.clockevents_program_event(self.this_cpu, cpu);
        }
    }

    /// hrtimer.c: `timer->is_lazy` (HRTIMER_MODE_LAZY_REARM, v7.1).
    #[inline]
    fn is_lazy(&self, timer: SchedTimer) -> bool {
        matches!(timer, SchedTimer::Hrtick(_)) && self.kernel.core.hrtick == Hrtick::Deadline
    }

    /// hrtimer.c: hrtimer_start_range_ns(). Arms `timer` on `cpu` for the absolute time `expires`, wherever it waited before.
    /// Differs: the caller decides to which CPU an unpinned timer goes.
    #[doc(alias = "hrtimer_start_range_ns")]
    pub fn hrtimer_start(&mut self, cpu: CpuId, timer: SchedTimer, expires: u64) {
        self.path(Path::hrtimer_start_range_ns);
        let old = self.hrtimers.expires(timer);
        let before = self.hrtimers.dequeue(timer);
        if let Some(before) = before
            && self.is_lazy(timer)
        {
            self.hrtimers.leave_armed(before, old);
        }
        self.hrtimers.enqueue(cpu, timer, expires);
        if let Some(before) = before.filter(|&before| before != cpu) {
            self.hrtimer_reprogram(before);
        }
        self.hrtimer_reprogram(cpu);
    }

    /// hrtimer.c: hrtimers_cpu_dying(). Timers that wait on a dead CPU wait on `to` from now on.
    #[doc(alias = "hrtimers_dead_cpu")]
    pub(crate) fn hrtimers_cpu_dying(&mut self, dead: CpuId, to: CpuId) {
        while let Some((&(expires, _), &timer)) = self.hrtimers.queues[dead].first_key_value() {
            self.hrtimers.dequeue(timer);
            // The end of a slice there concerns no task any more.
            if !matches!(timer, SchedTimer::Hrtick(_)) {
                self.hrtimers.enqueue(to, timer, expires);
            }
        }
        self.hrtimers.stale[dead] = false;
        self.hrtimer_reprogram(dead);
        self.hrtimer_reprogram(to);
    }

    /// hrtimer.c: hrtimer_cancel() and hrtimer_try_to_cancel(). Returns whether it was armed.
    #[doc(alias = "hrtimer_try_to_cancel")]
    pub fn hrtimer_cancel(&mut self, timer: SchedTimer) -> bool {
        match self.hrtimers.dequeue(timer) {
            None => false,
            Some(cpu) => {
                self.path(Path::hrtimer_try_to_cancel);
                if self.is_lazy(timer) {
                    self.hrtimers.leave_armed(cpu, self.hrtimers.expires(timer));
                }
                self.hrtimer_reprogram(cpu);
                true
            }
        }
    }

    /// hrtimer.c: __hrtimer_run_queues(). Runs the first timer of this CPU if it has expired. Returns whether it had.
    #[doc(alias = "__hrtimer_run_queues")]
    pub fn hrtimer_run(&mut self) -> bool {
        let cpu = self.this_cpu;
        let now = self.arch.sched_clock(cpu).0;
        if self.hrtimers.next[cpu] > now {
            return false;
        }
        if unlikely(self.hrtimers.stale[cpu]) && self.hrtimers.first(cpu) > now {
            self.hrtimer_rearm(cpu);
            return false;
        }
        self.hrtimers.stale[cpu] = false;
        let (_, &timer) = self.hrtimers.queues[cpu].first_key_value().expect("something expires next");
        self.hrtimers.dequeue(timer);
        self.hrtimer_function(timer);
        self.hrtimer_reprogram(cpu);
        true
    }
}

/// hrtimer.c: hrtimer_forward(). Moves `expires` beyond `now` in whole intervals; returns how many that took.
pub fn hrtimer_forward(expires: &mut u64, now: u64, interval: u64) -> u64 {
    if now < *expires {
        return 0;
    }
    let overruns = (now - *expires) / interval + 1;
    *expires += overruns * interval;
    overruns
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU0: CpuId = CpuId(0);
    const CPU1: CpuId = CpuId(1);

    #[test]
    fn forwarding_goes_just_beyond_now() {
        let mut expires = 100;
        assert_eq!((hrtimer_forward(&mut expires, 99, 10), expires), (0, 100));
        assert_eq!((hrtimer_forward(&mut expires, 100, 10), expires), (1, 110));
        assert_eq!((hrtimer_forward(&mut expires, 137, 10), expires), (3, 140));
    }

    #[test]
    fn queues_hold_each_timer_once_and_know_their_first() {
        let mut timers = HrTimers::new(2);
        let (a, b) = (SchedTimer::CfsPeriod(TgId(1)), SchedTimer::CfsSlack(TgId(1)));
        timers.enqueue(CPU0, a, 50);
        timers.enqueue(CPU0, b, 40);
        assert!(timers.update_next(CPU0) && !timers.update_next(CPU0));
        assert_eq!(timers.next_event(CPU0), Some(Ns(40)));
        assert_eq!(timers.dequeue(b), Some(CPU0));
        assert_eq!(timers.dequeue(b), None);
        timers.enqueue(CPU1, b, 60);
        timers.update_next(CPU0);
        timers.update_next(CPU1);
        assert_eq!((timers.next_event(CPU0), timers.next_event(CPU1)), (Some(Ns(50)), Some(Ns(60))));
        assert!(timers.is_queued(a) && timers.expires(b) == 60);
        timers.dequeue(a);
        timers.update_next(CPU0);
        assert_eq!(timers.next_event(CPU0), None);
        assert!(!timers.is_queued(a) && timers.expires(a) == 50, "an expiry is remembered");
    }
}
