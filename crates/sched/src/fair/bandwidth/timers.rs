//! When a group gets runtime: once per period, and in between from queues that need less than they have (slack).

use super::{
    CfsBandwidth, DEFAULT_CFS_PERIOD, Distribute, PeriodOffset, PeriodOverrun, PeriodTooShort, RUNTIME_INF, Refill,
    SlackTimer, Throttle,
};
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::core::cfs_quota::MAX_CFS_QUOTA_PERIOD;
use crate::hrtimer::{SchedTimer, hrtimer_forward};
use crate::sched::*;
use fentry::fentry;
use units::{CpuId, unlikely};

/// fair.c: min_bandwidth_expiration. When the next period is closer than this, slack is no longer handed out, in ns.
const MIN_BANDWIDTH_EXPIRATION: u64 = 2_000_000;
/// fair.c: cfs_bandwidth_slack_period. How long slack is collected before it is handed out, in ns.
const CFS_BANDWIDTH_SLACK_PERIOD: u64 = 5_000_000;

impl<A: Arch> Sched<A> {
    /// fair.c: __refill_cfs_bandwidth_runtime().
    pub(crate) fn __refill_cfs_bandwidth_runtime(&mut self, tg: TgId) {
        let now = self.sched_clock_now();
        let refill = self.kernel.bandwidth.refill;
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        if cfs_b.quota == RUNTIME_INF {
            return;
        }
        match refill {
            Refill::Quota => cfs_b.runtime = cfs_b.quota,
            Refill::BurstUncounted | Refill::Burst => {
                cfs_b.runtime += cfs_b.quota;
                // What was used beyond the quota since the last refill.
                let burst = cfs_b.runtime_snap.wrapping_sub(cfs_b.runtime) as i64;
                if burst > 0 {
                    cfs_b.burst_time += burst as u64;
                    cfs_b.nr_burst += 1;
                }
                cfs_b.runtime = cfs_b.runtime.min(cfs_b.quota + cfs_b.burst);
                cfs_b.runtime_snap = cfs_b.runtime;
            }
        }
        cfs_b.runtime_expires = now + cfs_b.period;
    }

    /// sched_clock_cpu(smp_processor_id()).
    fn sched_clock_now(&mut self) -> u64 {
        self.path(Path::sched_clock_cpu);
        self.arch.sched_clock(self.this_cpu).0
    }

    // The period.

    /// fair.c: init_cfs_bandwidth(). Before v6.6 a new group did not know of a quota above it; but nothing used that before the
    /// next write of a quota, which updates all groups.
    /// Differs: the offset comes from the group's number instead of a random one; the same group has the same offset in every
    /// run.
    pub(crate) fn init_cfs_bandwidth(&mut self, tg: TgId) {
        let above = self.tg[tg].parent.map_or(RUNTIME_INF, |parent| self.tg[parent].cfs_bandwidth.hierarchical_quota);
        self.tg[tg].cfs_bandwidth = CfsBandwidth { hierarchical_quota: above, ..CfsBandwidth::default() };
        let offset = match self.kernel.bandwidth.period_offset {
            PeriodOffset::Aligned => 0,
            // 2^32 divided by the golden ratio spreads consecutive numbers evenly.
            PeriodOffset::Interleaved => (u64::from(tg.0.wrapping_mul(0x9e37_79b9)) * DEFAULT_CFS_PERIOD) >> 32,
        };
        self.hrtimers.hrtimer_set_expires(SchedTimer::CfsPeriod(tg), offset);
    }

    /// fair.c: start_cfs_bandwidth(). The timer continues from its last expiry, on this CPU.
    #[inline]
    pub(crate) fn start_cfs_bandwidth(&mut self, tg: TgId) {
        if !self.tg[tg].cfs_bandwidth.period_active {
            self.start_cfs_period_timer(tg);
        }
    }

    fn start_cfs_period_timer(&mut self, tg: TgId) {
        let now = self.arch.sched_clock(self.this_cpu).0;
        let timer = SchedTimer::CfsPeriod(tg);
        let mut expires = self.hrtimers.expires(timer);
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        cfs_b.period_active = true;
        hrtimer_forward(&mut expires, now, cfs_b.period);
        self.hrtimer_start(self.this_cpu, timer, expires);
    }

    /// fair.c: sched_cfs_period_timer().
    #[fentry]
    pub(crate) fn sched_cfs_period_timer(&mut self, tg: TgId) {
        let timer = SchedTimer::CfsPeriod(tg);
        let mut expires = self.hrtimers.expires(timer);
        let (mut idle, mut count) = (false, 0);
        self.cfs_b_lock(tg);
        loop {
            let now = self.arch.sched_clock(self.this_cpu).0;
            let overrun = hrtimer_forward(&mut expires, now, self.tg[tg].cfs_bandwidth.period);
            if overrun == 0 {
                break;
            }
            self.hrtimers.hrtimer_set_expires(timer, expires);
            count += 1;
            let rule = if count > 3 { self.kernel.bandwidth.period_overrun } else { PeriodOverrun::Unbounded };
            if rule == PeriodOverrun::ScaleUpBefore {
                self.scale_up_period(tg);
            }
            idle = self.do_sched_cfs_period_timer(tg, overrun as u32);
            if rule == PeriodOverrun::ScaleUp {
                self.scale_up_period(tg);
            }
            if rule != PeriodOverrun::Unbounded {
                count = 0;
            }
        }
        if idle {
            self.tg[tg].cfs_bandwidth.period_active = false;
        }
        self.cfs_b_unlock(tg);
        if !idle {
            self.hrtimer_start(self.this_cpu, timer, expires);
        }
    }

    /// The timer cannot keep pace: doubles period, quota and burst, which keeps their ratio.
    pub(in crate::fair) fn scale_up_period(&mut self, tg: TgId) {
        let at = self.arch.sched_clock(self.this_cpu);
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        let longest = cfs_b.period * 2 >= MAX_CFS_QUOTA_PERIOD;
        if !longest {
            cfs_b.period *= 2;
            cfs_b.quota *= 2;
            cfs_b.burst *= 2;
        }
        let log = &mut self.bandwidth.too_short;
        match log.iter_mut().find(|known| known.tg == tg) {
            Some(known) => (known.times, known.longest) = (known.times + 1, longest),
            None => log.push(PeriodTooShort { tg, at, times: 1, longest }),
        }
    }

    /// fair.c: do_sched_cfs_period_timer(). Refills the pool and lets the group's throttled queues go on. Returns whether the
    /// timer may stop: nothing was used for a whole period.
    fn do_sched_cfs_period_timer(&mut self, tg: TgId, overrun: u32) -> bool {
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        if cfs_b.quota == RUNTIME_INF {
            return true;
        }
        let mut throttled = !cfs_b.throttled_cfs_rq.is_empty();
        cfs_b.nr_periods += overrun;
        let rest = cfs_b.idle && !throttled;
        if self.kernel.bandwidth.refill.bursts() || !rest {
            self.__refill_cfs_bandwidth_runtime(tg);
        }
        if rest {
            return true;
        }
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        if !throttled {
            cfs_b.idle = true;
            return false;
        }
        cfs_b.nr_throttled += overrun;
        while throttled && self.tg[tg].cfs_bandwidth.runtime > 0 {
            self.cfs_b_unlock(tg);
            throttled = self.distribute_cfs_runtime(tg);
            self.cfs_b_lock(tg);
        }
        self.tg[tg].cfs_bandwidth.idle = false;
        false
    }

    // Handing out.

    /// fair.c: distribute_cfs_runtime(). Gives each throttled queue what it lacks plus a nanosecond. Returns whether any stays
    /// throttled.
    #[fentry]
    fn distribute_cfs_runtime(&mut self, tg: TgId) -> bool {
        match self.kernel.bandwidth.distribute {
            Distribute::Lump => {
                self.distribute_cfs_runtime_lump(tg);
                !self.tg[tg].cfs_bandwidth.throttled_cfs_rq.is_empty()
            }
            Distribute::Pool => {
                self.distribute_cfs_runtime_pool(tg);
                !self.tg[tg].cfs_bandwidth.throttled_cfs_rq.is_empty()
            }
            Distribute::OwnCpu => self.distribute_cfs_runtime_own_cpu(tg),
        }
    }

    /// fair.c: distribute_cfs_runtime(), until v5.6, with what its callers do before and after.
    #[doc(alias = "distribute_cfs_runtime")]
    fn distribute_cfs_runtime_lump(&mut self, tg: TgId) {
        let cfs_b = &self.tg[tg].cfs_bandwidth;
        let (mut remaining, expires) = (cfs_b.runtime, cfs_b.runtime_expires);
        let starting_runtime = remaining;
        // No queue joins the group's list while its queues leave it one by one.
        for cfs in cfs_b.throttled_cfs_rq.clone() {
            let cpu = self.cfs_rq[cfs].rq;
            self.rq_lock(cpu);
            let queue = self.cfs_rq_runtime_mut(cfs);
            let runtime = (1 - queue.runtime_remaining).max(0) as u64;
            let runtime = runtime.min(remaining);
            remaining -= runtime;
            queue.runtime_remaining += runtime as i64;
            queue.runtime_expires = expires;
            if queue.runtime_remaining > 0 {
                self.unthrottle_cfs_rq(cfs);
            }
            self.rq_unlock(cpu);
            if remaining == 0 {
                break;
            }
        }
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        cfs_b.runtime -= (starting_runtime - remaining).min(cfs_b.runtime);
    }

    /// fair.c: distribute_cfs_runtime(), from v5.7 to v6.2.
    #[doc(alias = "distribute_cfs_runtime")]
    fn distribute_cfs_runtime_pool(&mut self, tg: TgId) {
        for cfs in self.tg[tg].cfs_bandwidth.throttled_cfs_rq.clone() {
            let cpu = self.cfs_rq[cfs].rq;
            self.rq_lock(cpu);
            let remaining = self.take_from_pool(tg, cfs);
            if self.cfs_rq_runtime(cfs).runtime_remaining > 0 {
                self.unthrottle_cfs_rq(cfs);
            }
            self.rq_unlock(cpu);
            if remaining == 0 {
                break;
            }
        }
    }

    /// fair.c: distribute_cfs_runtime(), from v6.3. Since v7.2 the time of tasks that run on in a throttled queue is charged first;
    /// and this CPU's queue waits on the list of all queues to be unthrottled here, which others may have joined.
    #[doc(alias = "distribute_cfs_runtime")]
    fn distribute_cfs_runtime_own_cpu(&mut self, tg: TgId) -> bool {
        let charges = self.kernel.bandwidth.throttle == Throttle::Task;
        let (mut local, mut flushes) = (None, false);
        let mut throttled = false;
        let mut remaining = 1;
        for cfs in self.tg[tg].cfs_bandwidth.throttled_cfs_rq.clone() {
            if remaining == 0 {
                throttled = true;
                break;
            }
            let cpu = self.cfs_rq[cfs].rq;
            self.rq_lock(cpu);
            if !self.cfs_rq_runtime(cfs).throttled_csd {
                if charges && self.cfs_rq[cfs].curr.is_some() {
                    self.update_rq_clock(cpu);
                    self.update_curr(cfs);
                }
                remaining = self.take_from_pool(tg, cfs);
                if self.cfs_rq_runtime(cfs).runtime_remaining <= 0 {
                    throttled = true;
                } else if cpu == self.this_cpu && charges {
                    flushes = self.queue_cfsb_csd(cfs);
                } else if cpu == self.this_cpu {
                    local = Some(cfs);
                } else {
                    self.unthrottle_cfs_rq_async(cfs);
                }
            }
            self.rq_unlock(cpu);
        }
        if flushes {
            self.__cfsb_csd_unthrottle(self.this_cpu);
        }
        if let Some(cfs) = local {
            let cpu = self.cfs_rq[cfs].rq;
            self.rq_lock(cpu);
            if self.cfs_rq_runtime(cfs).throttled {
                self.unthrottle_cfs_rq(cfs);
            }
            self.rq_unlock(cpu);
        }
        throttled
    }

    /// Brings a throttled queue just above zero, as far as the pool goes. Returns what is left in the pool.
    fn take_from_pool(&mut self, tg: TgId, cfs: CfsRqId) -> u64 {
        self.cfs_b_lock(tg);
        let short = 1 - self.cfs_rq_runtime(cfs).runtime_remaining;
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        let runtime = (short.max(0) as u64).min(cfs_b.runtime);
        cfs_b.runtime -= runtime;
        let remaining = cfs_b.runtime;
        self.cfs_b_unlock(tg);
        self.cfs_rq_runtime_mut(cfs).runtime_remaining += runtime as i64;
        remaining
    }

    /// fair.c: unthrottle_cfs_rq_async(), __unthrottle_cfs_rq_async(). Tells the queue's CPU by an interrupt.
    #[doc(alias = "__unthrottle_cfs_rq_async")]
    fn unthrottle_cfs_rq_async(&mut self, cfs: CfsRqId) {
        if self.queue_cfsb_csd(cfs) {
            self.smp_call_function_single_async(self.cfs_rq[cfs].rq);
        }
    }

    /// Puts a queue on the list of those that its CPU is to unthrottle. Returns whether it is the first.
    fn queue_cfsb_csd(&mut self, cfs: CfsRqId) -> bool {
        let cpu = self.cfs_rq[cfs].rq;
        self.cfs_rq_runtime_mut(cfs).throttled_csd = true;
        let list = &mut self.bandwidth.csd[cpu.index()];
        list.push(cfs);
        list.len() == 1
    }

    /// fair.c: __cfsb_csd_unthrottle(). This CPU unthrottles the queues that other CPUs refilled. There may be some though no group has a
    /// quota any more.
    #[inline]
    pub(crate) fn __cfsb_csd_unthrottle(&mut self, cpu: CpuId) {
        if unlikely(!self.bandwidth.csd[cpu.index()].is_empty()) {
            self.cfsb_csd_unthrottle_pending(cpu);
        }
    }

    #[fentry(__cfsb_csd_unthrottle)]
    fn cfsb_csd_unthrottle_pending(&mut self, cpu: CpuId) {
        self.rq_lock(cpu);
        if self.kernel.bandwidth.throttle == Throttle::Task {
            self.update_rq_clock(cpu);
        }
        for cfs in std::mem::take(&mut self.bandwidth.csd[cpu.index()]) {
            self.cfs_rq_runtime_mut(cfs).throttled_csd = false;
            if self.cfs_rq_runtime(cfs).throttled {
                self.unthrottle_cfs_rq(cfs);
            }
        }
        self.rq_unlock(cpu);
    }

    // Slack.

    /// fair.c: runtime_refresh_within(). Whether the next period begins within `min_expire`.
    fn runtime_refresh_within(&self, tg: TgId, min_expire: u64) -> bool {
        let now = self.arch.sched_clock(self.this_cpu).0;
        let timer = SchedTimer::CfsPeriod(tg);
        // While the timer's function runs, a refresh is under way.
        !self.hrtimers.is_queued(timer) || self.hrtimers.expires(timer).saturating_sub(now) < min_expire
    }

    /// fair.c: start_cfs_slack_bandwidth().
    pub(super) fn start_cfs_slack_bandwidth(&mut self, tg: TgId) {
        if self.runtime_refresh_within(tg, CFS_BANDWIDTH_SLACK_PERIOD + MIN_BANDWIDTH_EXPIRATION) {
            return;
        }
        let started = std::mem::replace(&mut self.tg[tg].cfs_bandwidth.slack_started, true);
        if started && self.kernel.bandwidth.slack_timer == SlackTimer::Once {
            return;
        }
        let now = self.arch.sched_clock(self.this_cpu).0;
        self.hrtimer_start(self.this_cpu, SchedTimer::CfsSlack(tg), now + CFS_BANDWIDTH_SLACK_PERIOD);
    }

    /// fair.c: sched_cfs_slack_timer(), do_sched_cfs_slack_timer(). Hands out the collected slack, if it is worth it.
    #[doc(alias = "do_sched_cfs_slack_timer")]
    #[fentry]
    pub(crate) fn sched_cfs_slack_timer(&mut self, tg: TgId) {
        self.cfs_b_lock(tg);
        let slice = self.sched_cfs_bandwidth_slice();
        let soon = self.runtime_refresh_within(tg, MIN_BANDWIDTH_EXPIRATION);
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        cfs_b.slack_started = false;
        let worth_it = !soon && cfs_b.quota != RUNTIME_INF && cfs_b.runtime > slice;
        self.cfs_b_unlock(tg);
        if worth_it {
            self.distribute_cfs_runtime(tg);
        }
    }

    /// fair.c: destroy_cfs_bandwidth(). No queue of the group is throttled any more, or will be.
    /// Differs: the group's quota no longer counts as one in use, which the kernel forgets.
    pub(crate) fn destroy_cfs_bandwidth(&mut self, tg: TgId) {
        self.hrtimer_cancel(SchedTimer::CfsPeriod(tg));
        self.hrtimer_cancel(SchedTimer::CfsSlack(tg));
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            self.__cfsb_csd_unthrottle(cpu);
        }
        if self.tg[tg].cfs_bandwidth.quota != RUNTIME_INF {
            self.cfs_bandwidth_usage_dec();
        }
    }
}
