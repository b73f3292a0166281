//! core.c: CONFIG_SCHED_HRTICK: a timer of each run queue that ends a slice to the microsecond, not at the next tick. Off unless
//! the features HRTICK (fair class) or HRTICK_DL (deadline class, v5.10) are on.

use super::Sched;
use crate::arch::Arch;
use crate::features::Feature;
use crate::hrtimer::SchedTimer;
use units::{CpuId, unlikely};

/// Nanoseconds; a shorter rest of a slice is not worth a timer.
const SHORTEST: u64 = 10_000;

impl<A: Arch> Sched<A> {
    /// kernel/sched/sched.h: hrtick_enabled_fair(), which until v5.9 was `hrtick_enabled()`.
    /// Differs: timers always have high resolution here.
    #[inline]
    pub(crate) fn hrtick_enabled_fair(&self, cpu: CpuId) -> bool {
        unlikely(self.sched_feat(Feature::HRTICK)) && self.rq[cpu].online
    }

    /// Whether the tick leaves the end of the slice to the timer.
    #[inline]
    pub(crate) fn hrtick_ends_the_slice(&self, cpu: CpuId) -> bool {
        self.sched_feat(Feature::HRTICK)
            && !self.sched_feat(Feature::DOUBLE_TICK)
            && self.hrtimers.is_queued(SchedTimer::Hrtick(cpu))
    }

    /// core.c: hrtick_clear().
    pub(super) fn hrtick_clear(&mut self, cpu: CpuId) {
        self.hrtimer_cancel(SchedTimer::Hrtick(cpu));
    }

    /// core.c: hrtick(): the slice of what runs on `cpu` is over.
    pub(crate) fn hrtick(&mut self, cpu: CpuId) {
        debug_assert_eq!(cpu, self.this_cpu, "the timer is pinned");
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        if let Some(curr) = self.rq[cpu].curr {
            self.task_tick(cpu, curr, true);
        }
        self.rq_unlock(cpu);
    }

    /// core.c: hrtick_start(). `delay` in ns of real time.
    /// Differs: another CPU's timer is armed at once; the kernel sends that CPU an interrupt in which it arms it.
    pub(crate) fn hrtick_start(&mut self, cpu: CpuId, delay: u64) {
        let now = self.arch.sched_clock(self.this_cpu).0;
        self.hrtimer_start(cpu, SchedTimer::Hrtick(cpu), now + delay.max(SHORTEST));
    }
}
