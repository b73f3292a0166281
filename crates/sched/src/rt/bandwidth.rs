//! rt.c: how much of each period (`sched_rt_period_us`) the real-time class may have on each CPU (`sched_rt_runtime_us`). A
//! queue that has used it up is throttled until the period timer refills it; with RT_RUNTIME_SHARE it first borrows from
//! CPUs that have some to spare.

use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::cpufreq::{UpdateFlags, UpdateUtil};
use crate::features::Feature;
use crate::hrtimer::{SchedTimer, hrtimer_forward};
use crate::sysctl::RUNTIME_UNLIMITED;
use units::CpuId;

behaviour! {
    /// What keeps real-time tasks from starving all others.
    pub enum RtBandwidth = "rt.bandwidth" {
        Queues = "queues", since "v2.6.25", commit "",
            "each CPU's real-time queue has a budget in every period (sched_rt_runtime_us)";
        FairServer = "fair-server", since "v6.12", commit "5f6bd380c7bd",
            "nothing in the class itself: a deadline entity runs fair tasks that starve (dl_server)";
    }
}

behaviour! {
    /// When the period timer fires first after real-time tasks have come.
    pub enum PeriodStart = "rt.period_start" {
        NextPeriod = "next-period", since "v2.6.25", commit "", "at the end of the period that is on, counted from boot";
        AtOnce = "at-once", since "v4.6", commit "c3a990dc9fab",
            "at once: what deadline tasks have used of a budget meanwhile is forgotten";
    }
}

behaviour! {
    /// Whether the period timer brings the run queue's clock up to date.
    pub enum PeriodClock = "rt.period_clock" {
        Stale = "stale", since "v2.6.25", commit "", "no";
        Fresh = "fresh", since "v4.17", commit "d29a20645d5e", "yes (4.16.13 has it, too)";
    }
}

/// RUNTIME_INF: no limit.
pub(crate) const RUNTIME_INF: u64 = u64::MAX;

impl<A: Arch> Sched<A> {
    /// kernel/sched/sched.h: rt_bandwidth_enabled().
    #[inline]
    pub(crate) fn rt_bandwidth_enabled(&self) -> bool {
        self.sysctl.sched_rt_runtime != RUNTIME_UNLIMITED
    }

    /// kernel/sched/sched.h: global_rt_period(). In ns.
    pub(crate) fn global_rt_period(&self) -> u64 {
        self.sysctl.sched_rt_period * 1_000
    }

    /// kernel/sched/sched.h: global_rt_runtime(). In ns.
    pub(crate) fn global_rt_runtime(&self) -> u64 {
        match self.rt_bandwidth_enabled() {
            true => self.sysctl.sched_rt_runtime * 1_000,
            false => RUNTIME_INF,
        }
    }

    /// rt.c: start_rt_bandwidth(). The period timer runs as long as there are real-time tasks or time to account for.
    pub(super) fn start_rt_bandwidth(&mut self) {
        let off = self.kernel.rt.bandwidth != RtBandwidth::Queues || !self.rt_bandwidth_enabled();
        if off || self.rt_period_active {
            return;
        }
        self.rt_period_active = true;
        let now = self.arch.sched_clock(self.this_cpu).0;
        let mut expires = self.hrtimers.expires(SchedTimer::RtPeriod(()));
        let interval = match self.kernel.rt.period_start {
            PeriodStart::NextPeriod => self.global_rt_period(),
            // The shortest interval is the clock's resolution, 1 ns.
            PeriodStart::AtOnce => 1,
        };
        hrtimer_forward(&mut expires, now, interval);
        self.hrtimer_start(self.this_cpu, SchedTimer::RtPeriod(()), expires);
    }

    /// rt.c: sched_rt_period_timer().
    pub(crate) fn sched_rt_period_timer(&mut self, _owner: ()) {
        self.enter(Path::sched_rt_period_timer);
        let mut expires = self.hrtimers.expires(SchedTimer::RtPeriod(()));
        let mut idle = false;
        loop {
            let now = self.arch.sched_clock(self.this_cpu).0;
            let overrun = hrtimer_forward(&mut expires, now, self.global_rt_period());
            if overrun == 0 {
                break;
            }
            idle = self.do_sched_rt_period_timer(overrun);
        }
        if idle {
            self.rt_period_active = false;
            // The next activity counts its periods from here.
            self.hrtimers.hrtimer_set_expires(SchedTimer::RtPeriod(()), expires);
        } else {
            self.hrtimer_start(self.this_cpu, SchedTimer::RtPeriod(()), expires);
        }
        self.leave();
    }

    /// rt.c: do_sched_rt_period_timer(). Refills every queue for `overrun` periods. Returns whether nothing is left to do.
    fn do_sched_rt_period_timer(&mut self, overrun: u64) -> bool {
        let (mut idle, mut throttled) = (true, false);
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            // Until v4.6 the lock is taken before the check; which queues have nothing to do is the same.
            let rt_rq = &self.rt[cpu];
            if !self.rq[cpu].online || rt_rq.rt_time == 0 && rt_rq.rt_nr_running == 0 {
                continue;
            }
            self.rq_lock(cpu);
            if self.kernel.rt.period_clock == PeriodClock::Fresh {
                self.update_rq_clock(cpu);
            }
            let mut enqueue = false;
            if self.rt[cpu].rt_time > 0 {
                enqueue = self.replenish_rt(cpu, overrun);
                idle &= self.rt[cpu].rt_time == 0 && self.rt[cpu].rt_nr_running == 0;
            } else {
                idle = false;
                enqueue |= !self.rt[cpu].rt_throttled;
            }
            throttled |= self.rt[cpu].rt_throttled;
            if enqueue {
                self.sched_rt_rq_enqueue(cpu);
            }
            self.rq_unlock(cpu);
        }
        idle || !throttled && !self.rt_bandwidth_enabled()
    }

    /// The part of do_sched_rt_period_timer() that refills a queue's budget. Returns whether the queue is no longer
    /// throttled.
    fn replenish_rt(&mut self, cpu: CpuId, overrun: u64) -> bool {
        if !self.sched_feat(Feature::RT_RUNTIME_SHARE) && self.rt[cpu].rt_runtime != RUNTIME_INF {
            self.rt[cpu].rt_runtime = self.global_rt_runtime();
        }
        if self.rt[cpu].rt_throttled {
            self.balance_runtime(cpu);
        }
        let idle_cpu = self.rq[cpu].curr.is_none();
        let rt_rq = &mut self.rt[cpu];
        let runtime = rt_rq.rt_runtime;
        rt_rq.rt_time -= rt_rq.rt_time.min(overrun.saturating_mul(runtime));
        if !rt_rq.rt_throttled || rt_rq.rt_time >= runtime {
            return false;
        }
        rt_rq.rt_throttled = false;
        if rt_rq.rt_nr_running > 0 && idle_cpu {
            // The time between the wakeup and now is not run time.
            self.rq_clock_skip_update(cpu, false);
        }
        true
    }

    /// rt.c: sched_rt_rq_enqueue(). The queue's tasks may run again.
    fn sched_rt_rq_enqueue(&mut self, cpu: CpuId) {
        if self.rt[cpu].rt_nr_running > 0 {
            self.enqueue_top_rt_rq(cpu);
            self.resched_curr(cpu);
        }
    }

    /// The end of update_curr_rt(): charges `delta_exec` ns to the budget.
    pub(super) fn account_rt_time(&mut self, cpu: CpuId, delta_exec: u64) {
        let off = self.kernel.rt.bandwidth != RtBandwidth::Queues || !self.rt_bandwidth_enabled();
        if off || self.rt[cpu].rt_runtime == RUNTIME_INF {
            return;
        }
        self.rt[cpu].rt_time += delta_exec;
        if self.sched_rt_runtime_exceeded(cpu) {
            self.resched_curr(cpu);
        }
    }

    /// rt.c: sched_rt_runtime_exceeded(). Throttles the queue when its budget is used up, and returns whether it did.
    fn sched_rt_runtime_exceeded(&mut self, cpu: CpuId) -> bool {
        if self.rt[cpu].rt_throttled {
            return true;
        }
        if self.rt[cpu].rt_runtime >= self.global_rt_period() {
            return false;
        }
        self.balance_runtime(cpu);
        let rt_rq = &self.rt[cpu];
        if rt_rq.rt_runtime == RUNTIME_INF || rt_rq.rt_time <= rt_rq.rt_runtime {
            return false;
        }
        // A throttled queue would never be refilled.
        if self.global_rt_runtime() == 0 {
            self.rt[cpu].rt_time = 0;
            return false;
        }
        self.rt[cpu].rt_throttled = true;
        self.dequeue_top_rt_rq(cpu);
        self.other_class_util_change(cpu, UpdateUtil::Queued, UpdateFlags::NONE);
        true
    }

    /// rt.c: balance_runtime().
    fn balance_runtime(&mut self, cpu: CpuId) {
        if self.sched_feat(Feature::RT_RUNTIME_SHARE) && self.rt[cpu].rt_time > self.rt[cpu].rt_runtime {
            self.do_balance_runtime(cpu);
        }
    }

    /// rt.c: do_balance_runtime(). Takes from each other CPU a share of what it has to spare, up to a whole period.
    fn do_balance_runtime(&mut self, cpu: CpuId) {
        let weight = self.nr_cpus() as u64;
        let period = self.global_rt_period();
        for other in (0..self.nr_cpus()).map(CpuId::new).filter(|&other| other != cpu) {
            let theirs = &self.rt[other];
            if theirs.rt_runtime == RUNTIME_INF || theirs.rt_runtime <= theirs.rt_time {
                continue;
            }
            let spare = (theirs.rt_runtime - theirs.rt_time) / weight;
            let diff = spare.min(period - self.rt[cpu].rt_runtime);
            self.rt[other].rt_runtime -= diff;
            self.rt[cpu].rt_runtime += diff;
            if self.rt[cpu].rt_runtime == period {
                break;
            }
        }
    }

    /// rt.c: __disable_runtime(). A CPU goes offline: what it lent returns to it, what it borrowed is given back, and it is
    /// no longer limited.
    pub(super) fn __disable_runtime(&mut self, cpu: CpuId) {
        if self.kernel.rt.bandwidth != RtBandwidth::Queues {
            return;
        }
        let whole = self.global_rt_runtime();
        if self.rt[cpu].rt_runtime != RUNTIME_INF {
            let mut want = whole as i64 - self.rt[cpu].rt_runtime as i64;
            for other in (0..self.nr_cpus()).map(CpuId::new).filter(|&other| other != cpu) {
                let theirs = &mut self.rt[other].rt_runtime;
                if want == 0 || *theirs == RUNTIME_INF {
                    continue;
                }
                let diff = want.min(*theirs as i64);
                *theirs = theirs.wrapping_add_signed(-diff);
                want -= diff;
            }
        }
        let rt_rq = &mut self.rt[cpu];
        rt_rq.rt_runtime = RUNTIME_INF;
        rt_rq.rt_throttled = false;
        self.sched_rt_rq_enqueue(cpu);
    }

    /// rt.c: __enable_runtime().
    pub(super) fn __enable_runtime(&mut self, cpu: CpuId) {
        let runtime = self.global_rt_runtime();
        let rt_rq = &mut self.rt[cpu];
        (rt_rq.rt_runtime, rt_rq.rt_time, rt_rq.rt_throttled) = (runtime, 0, false);
    }
}
