//! core.c: CONFIG_SCHED_HRTICK: a timer for each runqueue that ends a slice on time instead of at the next tick. It is
//! off unless the feature HRTICK (fair class) or HRTICK_DL (deadline class, v5.10) is on; both are since v7.1.

use super::Sched;
use crate::arch::Arch;
use crate::behaviour;
use crate::features::Feature;
use crate::hrtimer::SchedTimer;
use units::{CpuId, unlikely};

behaviour! {
    /// When the timer is set that ends a slice (HRTICK).
    pub enum Hrtick = "core.hrtick" {
        SliceLeft = "slice-left", since "v2.6.25", commit "",
            "to what is left of the slice in real time; at each pick, coming and going, and it is cancelled as schedule() begins; while it runs \
             no tick ends a slice (but for DOUBLE_TICK)";
        Deadline = "deadline", since "v7.1", commit "",
            "to when the virtual deadline is reached, interrupts left out; as schedule() ends, and when a second task comes; only if it is not \
             armed already for a time within 5 us of that, on another CPU by an interrupt. Put off or cancelled, the interrupt comes all the \
             same (LAZY_REARM). It is no tick otherwise: no NUMA scan, no look at misfits";
    }
}

/// In nanoseconds; a shorter rest of a slice is not worth a timer.
const SHORTEST: u64 = 10_000;
/// In nanoseconds; a smaller change of the expiry is not worth rearming the timer.
const SAME: u64 = 5_000;

/// sched.h: `rq->hrtick_sched`, HRTICK_SCHED_*.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HrtickSched {
    #[default]
    None,
    /// In the middle of schedule().
    Defer,
    /// In the middle of schedule(), at whose end the timer is to be armed for so many ns.
    Start(u64),
}

/// `rq->hrtick_sched`, `rq->hrtick_time`, and whether `rq->hrtick_csd` is pending.
#[derive(Clone, Copy, Debug, Default)]
pub struct RqHrtick {
    sched: HrtickSched,
    time: u64,
    csd: bool,
}

impl<A: Arch> Sched<A> {
    /// kernel/sched/sched.h: hrtick_enabled_fair(), until v5.9 `hrtick_enabled()`.
    /// Differs: timers always have high resolution here.
    #[inline]
    pub(crate) fn hrtick_enabled_fair(&self, cpu: CpuId) -> bool {
        unlikely(self.sched_feat(Feature::HRTICK)) && self.rq[cpu].online
    }

    /// Whether the tick leaves it to the timer to end the slice.
    #[inline]
    pub(crate) fn hrtick_ends_the_slice(&self, cpu: CpuId) -> bool {
        self.sched_feat(Feature::HRTICK)
            && !self.sched_feat(Feature::DOUBLE_TICK)
            && self.kernel.core.hrtick == Hrtick::SliceLeft
            && self.hrtick_active(cpu)
    }

    /// kernel/sched/sched.h: hrtick_active().
    pub(crate) fn hrtick_active(&self, cpu: CpuId) -> bool {
        self.hrtimers.is_queued(SchedTimer::Hrtick(cpu))
    }

    /// core.c: hrtick_clear().
    fn hrtick_clear(&mut self, cpu: CpuId) {
        self.hrtimer_cancel(SchedTimer::Hrtick(cpu));
    }

    /// core.c: hrtick(). The slice of what runs on `cpu` is over.
    pub(crate) fn hrtick(&mut self, cpu: CpuId) {
        debug_assert_eq!(cpu, self.this_cpu, "the timer is pinned");
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        if let Some(curr) = self.rq[cpu].curr {
            self.task_tick(cpu, curr, true);
        } else {
            self.task_tick_idle(cpu);
        }
        self.rq_unlock(cpu);
    }

    /// core.c: hrtick_start(). `delay` in ns of real time.
    /// Differs: until v7.0 another CPU's timer is armed at once here; the kernel sends that CPU an interrupt, in which
    /// it arms the timer itself.
    pub(crate) fn hrtick_start(&mut self, cpu: CpuId, delay: u64) {
        let delay = (delay as i64).max(SHORTEST as i64) as u64;
        let now = self.arch.sched_clock(self.this_cpu).0;
        match self.kernel.core.hrtick {
            Hrtick::SliceLeft => self.hrtimer_start(cpu, SchedTimer::Hrtick(cpu), now + delay),
            Hrtick::Deadline => self.hrtick_start_if_needed(cpu, now, delay),
        }
    }

    /// hrtick_start() since v7.1: not in the middle of schedule(), and only if the expiry changes.
    fn hrtick_start_if_needed(&mut self, cpu: CpuId, now: u64, delay: u64) {
        let hrtick = &mut self.hrtimers.hrtick[cpu];
        if hrtick.sched != HrtickSched::None {
            hrtick.sched = HrtickSched::Start(delay);
            return;
        }
        hrtick.time = now + delay;
        if cpu == self.this_cpu {
            return self.hrtick_cond_restart(cpu);
        }
        if self.hrtick_needs_rearm(cpu) && !std::mem::replace(&mut self.hrtimers.hrtick[cpu].csd, true) {
            self.smp_call_function_single_async(cpu);
        }
    }

    /// core.c: hrtick_needs_rearm().
    fn hrtick_needs_rearm(&self, cpu: CpuId) -> bool {
        let timer = SchedTimer::Hrtick(cpu);
        !self.hrtimers.is_queued(timer) || self.hrtimers.hrtick[cpu].time.abs_diff(self.hrtimers.expires(timer)) > SAME
    }

    /// core.c: hrtick_cond_restart().
    fn hrtick_cond_restart(&mut self, cpu: CpuId) {
        if self.hrtick_needs_rearm(cpu) {
            self.hrtimer_start(cpu, SchedTimer::Hrtick(cpu), self.hrtimers.hrtick[cpu].time);
        }
    }

    /// core.c: __hrtick_start(). Arms the timer that another CPU requested, if any did.
    #[inline]
    pub(super) fn __hrtick_start(&mut self, cpu: CpuId) {
        if unlikely(self.hrtimers.hrtick[cpu].csd) {
            self.hrtimers.hrtick[cpu].csd = false;
            self.rq_lock(cpu);
            self.hrtick_cond_restart(cpu);
            self.rq_unlock(cpu);
        }
    }

    /// core.c: hrtick_schedule_enter(), or until v7.0 hrtick_clear().
    #[inline(never)]
    pub(super) fn hrtick_schedule_enter(&mut self, cpu: CpuId) {
        match self.kernel.core.hrtick {
            Hrtick::SliceLeft => self.hrtick_clear(cpu),
            Hrtick::Deadline => self.hrtimers.hrtick[cpu].sched = HrtickSched::Defer,
        }
    }

    /// core.c: hrtick_schedule_exit(). A timer that was armed for another task stays armed if no class needed to move
    /// it.
    #[inline(never)]
    pub(super) fn hrtick_schedule_exit(&mut self, cpu: CpuId) {
        match std::mem::take(&mut self.hrtimers.hrtick[cpu].sched) {
            HrtickSched::Start(delay) => {
                self.hrtimers.hrtick[cpu].time = self.arch.sched_clock(cpu).0 + delay;
                self.hrtick_cond_restart(cpu);
            }
            HrtickSched::Defer if self.idle_rq(cpu) => self.hrtick_clear(cpu),
            HrtickSched::Defer | HrtickSched::None => {}
        }
    }

    /// core.c: idle_rq().
    pub(crate) fn idle_rq(&self, cpu: CpuId) -> bool {
        let rq = &self.rq[cpu];
        rq.curr.is_none() && rq.nr_running == 0 && rq.wake_list.is_empty()
    }
}
