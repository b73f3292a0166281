//! fair.c, "CFS bandwidth control machinery": how much a group may run in each period.
//!
//! ```text
//!            refill, once in a period (timers.rs)
//! quota ───────────────▶ runtime of the group (CfsBandwidth, global)
//!                           │ ▲
//!          a slice at a time│ │what a queue does not need when it falls idle
//!                           ▼ │
//!                        runtime_remaining of each CPU's queue (CfsRqRuntime) ── used up ─▶ throttled (throttle.rs)
//! ```
//!
//! Depending on the kernel, a throttled queue's entity leaves its parent's queue (by_queue.rs), while what is queued below stays
//! in place and its averages stand still; or the queue stays, and the tasks leave it (by_task.rs).
//! All of it depends on [`Sched::cfs_bandwidth_used`]: without any quota, nothing is read, written or charged.

mod by_queue;
mod by_task;
mod rules;
mod throttle;
mod timers;

pub use rules::*;

use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::rules::Pick;
use crate::sched::*;
use fentry::fentry;
use std::collections::VecDeque;
use units::{CpuId, Ns, unlikely};

/// sched.h: RUNTIME_INF: no quota.
pub const RUNTIME_INF: u64 = u64::MAX;

/// fair.c: default_cfs_period(), 100 ms.
pub const DEFAULT_CFS_PERIOD: u64 = 100_000_000;

/// sched.h: struct cfs_bandwidth. A group's runtime pool, in ns.
#[derive(Clone, Debug)]
pub struct CfsBandwidth {
    pub period: u64,
    /// [`RUNTIME_INF`]: unlimited.
    pub quota: u64,
    /// How much unused runtime may be saved up beyond the quota (v5.14).
    pub burst: u64,
    /// The runtime left in the pool.
    pub runtime: u64,
    /// `runtime` right after the last refill (v5.14).
    pub(crate) runtime_snap: u64,
    /// When `runtime` expires, until v5.3.
    pub(crate) runtime_expires: u64,
    /// The tightest quota of the group and those above it, as a fraction of a CPU (2^20 is a full one).
    pub hierarchical_quota: u64,
    /// Whether a whole period has passed without use.
    pub(crate) idle: bool,
    pub(crate) period_active: bool,
    /// Whether a deferred unthrottle is pending (v5.3).
    pub(crate) slack_started: bool,
    pub(crate) throttled_cfs_rq: VecDeque<CfsRqId>,
    pub nr_periods: u32,
    pub nr_throttled: u32,
    pub nr_burst: u32,
    /// Summed over the CPUs.
    pub throttled_time: u64,
    pub burst_time: u64,
}

impl Default for CfsBandwidth {
    /// What `init_cfs_bandwidth()` sets in groups below the root.
    fn default() -> CfsBandwidth {
        CfsBandwidth {
            period: DEFAULT_CFS_PERIOD,
            quota: RUNTIME_INF,
            burst: 0,
            runtime: 0,
            runtime_snap: 0,
            runtime_expires: 0,
            hierarchical_quota: RUNTIME_INF,
            idle: false,
            period_active: false,
            slack_started: false,
            throttled_cfs_rq: VecDeque::new(),
            nr_periods: 0,
            nr_throttled: 0,
            nr_burst: 0,
            throttled_time: 0,
            burst_time: 0,
        }
    }
}

/// sched.h: the CONFIG_CFS_BANDWIDTH part of struct cfs_rq. Times in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct CfsRqRuntime {
    pub runtime_enabled: bool,
    pub throttled: bool,
    /// Whether it waits for its own CPU to unthrottle it (v6.3).
    pub(crate) throttled_csd: bool,
    pub runtime_remaining: i64,
    /// Until v5.3.
    pub(crate) runtime_expires: u64,
    pub(crate) throttled_clock: u64,
    /// Since when the queue's clock has stood still while something is queued here (v6.6).
    pub(crate) throttled_clock_self: u64,
    pub throttled_clock_self_time: u64,
}

/// The state of bandwidth control that belongs to no group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bandwidth {
    /// How many groups have a quota: `__cfs_bandwidth_used`.
    used: u32,
    /// Indexed by queue. Created with the queue, so that readers need not check whether the entry exists.
    queues: Vec<CfsRqRuntime>,
    /// `rq->cfsb_csd_list` of each CPU: queues that other CPUs want unthrottled (v6.3).
    csd: Vec<Vec<CfsRqId>>,
    /// Indexed by queue, its `throttled_limbo_list`: tasks that have left the queue until it has runtime, the last one first
    /// (v6.18).
    limbo: Vec<VecDeque<TaskId>>,
    /// Whether any task has ever been given throttle work.
    works: bool,
    /// Groups whose timer could not keep pace with their period, in the order in which that was first seen.
    too_short: Vec<PeriodTooShort>,
}

/// A group whose period was too short for its timer, as the kernel warns of it (sched_cfs_period_timer()).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeriodTooShort {
    pub tg: TgId,
    /// When that was first seen.
    pub at: Ns,
    pub times: u32,
    /// The last time the period could not be scaled up without exceeding the longest one.
    pub longest: bool,
}

impl Bandwidth {
    pub(crate) fn new(nr_cpus: usize) -> Bandwidth {
        Bandwidth { csd: vec![Vec::new(); nr_cpus], ..Bandwidth::default() }
    }

    /// fair.c: init_cfs_rq_runtime().
    pub(crate) fn init_cfs_rq_runtime(&mut self, cfs: CfsRqId) {
        if self.queues.len() <= cfs.index() {
            self.queues.resize(cfs.index() + 1, CfsRqRuntime::default());
            self.limbo.resize(cfs.index() + 1, VecDeque::new());
        }
        self.queues[cfs.index()] = CfsRqRuntime::default();
        debug_assert!(self.limbo[cfs.index()].is_empty());
    }
}

impl<A: Arch> Sched<A> {
    /// The groups whose periods were too short for their timers.
    pub fn periods_too_short(&self) -> &[PeriodTooShort] {
        &self.bandwidth.too_short
    }

    /// fair.c: cfs_bandwidth_used(). A static key, on while any group has a quota.
    #[inline]
    pub(crate) fn cfs_bandwidth_used(&self) -> bool {
        unlikely(self.bandwidth.used != 0)
    }

    /// fair.c: cfs_bandwidth_usage_inc().
    pub(crate) fn cfs_bandwidth_usage_inc(&mut self) {
        self.bandwidth.used += 1;
    }

    /// fair.c: cfs_bandwidth_usage_dec().
    pub(crate) fn cfs_bandwidth_usage_dec(&mut self) {
        self.bandwidth.used -= 1;
    }

    /// The bandwidth fields of a queue.
    #[inline]
    pub fn cfs_rq_runtime(&self, cfs: CfsRqId) -> &CfsRqRuntime {
        &self.bandwidth.queues[cfs.index()]
    }

    /// The group's throttled queues, in the order in which they will be refilled.
    pub fn throttled_queues(&self, tg: TgId) -> impl Iterator<Item = CfsRqId> + '_ {
        self.tg[tg].cfs_bandwidth.throttled_cfs_rq.iter().copied()
    }

    /// The tasks that have left a throttled queue, in the order in which they will return.
    pub fn throttled_limbo_list(&self, cfs: CfsRqId) -> impl Iterator<Item = TaskId> + '_ {
        self.bandwidth.limbo[cfs.index()].iter().copied()
    }

    #[inline]
    pub(crate) fn cfs_rq_runtime_mut(&mut self, cfs: CfsRqId) -> &mut CfsRqRuntime {
        &mut self.bandwidth.queues[cfs.index()]
    }

    /// fair.c: sched_cfs_bandwidth_slice(). In ns.
    fn sched_cfs_bandwidth_slice(&self) -> u64 {
        self.sysctl.sched_cfs_bandwidth_slice * 1000
    }

    /// fair.c: cfs_rq_throttled().
    #[inline]
    pub fn cfs_rq_throttled(&self, cfs: CfsRqId) -> bool {
        unlikely(self.cfs_bandwidth_used()) && self.cfs_rq_runtime(cfs).throttled
    }

    /// fair.c: throttled_hierarchy(). Whether the queue, or one above it, is throttled.
    #[inline]
    pub(crate) fn throttled_hierarchy(&self, cfs: CfsRqId) -> bool {
        unlikely(self.cfs_bandwidth_used()) && self.cfs_rq[cfs].throttle_count != 0
    }

    /// fair.c: cfs_rq_pelt_clock_throttled().
    #[inline]
    pub(crate) fn cfs_rq_pelt_clock_throttled(&self, cfs: CfsRqId) -> bool {
        unlikely(self.cfs_bandwidth_used()) && self.cfs_rq[cfs].pelt_clock_throttled
    }

    /// fair.c: throttled_lb_pair(), since v6.18 lb_throttled_hierarchy(). Whether load balancing leaves a group alone: because it
    /// is throttled on either side, or, in later kernels, only because it is throttled on the destination.
    #[doc(alias = "lb_throttled_hierarchy")]
    #[inline]
    pub(crate) fn throttled_lb_pair(&self, tg: TgId, src_cpu: CpuId, dest_cpu: CpuId) -> bool {
        if !self.cfs_bandwidth_used() {
            return false;
        }
        let queues = &self.tg[tg].cfs_rq;
        self.hierarchy_is_off(queues[src_cpu.index()]) || self.throttled_hierarchy(queues[dest_cpu.index()])
    }

    // A queue's share of the runtime.

    /// fair.c: account_cfs_rq_runtime(). Returns whether the queue is throttled now; until v6.18 false, because throttling
    /// follows later.
    #[inline]
    pub(crate) fn account_cfs_rq_runtime(&mut self, cfs: CfsRqId, delta_exec: u64) -> bool {
        unlikely(self.cfs_bandwidth_used())
            && self.cfs_rq_runtime(cfs).runtime_enabled
            && self.__account_cfs_rq_runtime(cfs, delta_exec)
    }

    /// fair.c: __account_cfs_rq_runtime(). A queue that can get no more runtime is throttled (v7.2), or asks its CPU to
    /// reschedule, which throttles it.
    #[fentry]
    fn __account_cfs_rq_runtime(&mut self, cfs: CfsRqId, delta_exec: u64) -> bool {
        self.write_cfs_rq_runtime(cfs);
        self.cfs_rq_runtime_mut(cfs).runtime_remaining -= delta_exec as i64;
        if self.kernel.bandwidth.expiry == RuntimeExpiry::ByClock {
            self.expire_cfs_rq_runtime(cfs);
        }
        let queue = self.cfs_rq_runtime(cfs);
        if queue.runtime_remaining > 0 {
            return false;
        }
        let rules = self.kernel.bandwidth;
        if rules.throttle == Throttle::Task {
            return queue.throttled || self.throttle_cfs_rq(cfs);
        }
        if queue.throttled && (rules.throttle.by_task() || rules.throttled_accounting == ThrottledAccounting::Nothing) {
            return false;
        }
        if !self.assign_cfs_rq_runtime(cfs) && self.cfs_rq[cfs].curr.is_some() {
            self.resched_curr(self.cfs_rq[cfs].rq);
        }
        false
    }

    /// fair.c: expire_cfs_rq_runtime(), until v5.3. Runtime that a queue got in a past period is void.
    fn expire_cfs_rq_runtime(&mut self, cfs: CfsRqId) {
        let clock = self.rq[self.cfs_rq[cfs].rq].clock;
        let global = self.tg[self.cfs_rq[cfs].tg].cfs_bandwidth.runtime_expires;
        let tick_nsec = self.tick_nsec;
        let queue = self.cfs_rq_runtime_mut(cfs);
        if (clock.wrapping_sub(queue.runtime_expires) as i64) < 0 || queue.runtime_remaining < 0 {
            return;
        }
        if queue.runtime_expires == global {
            queue.runtime_remaining = 0;
        } else {
            // A new period has begun elsewhere: this CPU's clock is fast, or it has not learned of that period yet.
            queue.runtime_expires = queue.runtime_expires.wrapping_add(tick_nsec);
        }
    }

    /// fair.c: assign_cfs_rq_runtime(). Returns whether the queue may run.
    #[fentry]
    fn assign_cfs_rq_runtime(&mut self, cfs: CfsRqId) -> bool {
        let tg = self.cfs_rq[cfs].tg;
        let slice = self.sched_cfs_bandwidth_slice();
        self.cfs_b_lock(tg);
        let assigned = self.__assign_cfs_rq_runtime(tg, cfs, slice);
        self.cfs_b_unlock(tg);
        assigned
    }

    /// fair.c: __assign_cfs_rq_runtime(). Takes from the pool what brings the queue up to `target_runtime`, as far as the pool
    /// goes.
    pub(crate) fn __assign_cfs_rq_runtime(&mut self, tg: TgId, cfs: CfsRqId, target_runtime: u64) -> bool {
        let min_amount = target_runtime.wrapping_add_signed(-self.cfs_rq_runtime(cfs).runtime_remaining);
        let mut amount = 0;
        if self.tg[tg].cfs_bandwidth.quota == RUNTIME_INF {
            amount = min_amount;
        } else {
            self.start_cfs_bandwidth(tg);
            let cfs_b = &mut self.tg[tg].cfs_bandwidth;
            if cfs_b.runtime > 0 {
                amount = cfs_b.runtime.min(min_amount);
                cfs_b.runtime -= amount;
                cfs_b.idle = false;
            }
        }
        let expires = self.tg[tg].cfs_bandwidth.runtime_expires;
        let queue = self.cfs_rq_runtime_mut(cfs);
        queue.runtime_remaining += amount as i64;
        if expires.wrapping_sub(queue.runtime_expires) as i64 > 0 {
            queue.runtime_expires = expires;
        }
        queue.runtime_remaining > 0
    }

    /// fair.c: return_cfs_rq_runtime(). A queue that becomes empty keeps a millisecond and gives the rest back.
    #[inline]
    pub(crate) fn return_cfs_rq_runtime(&mut self, cfs: CfsRqId) {
        if unlikely(self.cfs_bandwidth_used()) && self.cfs_rq[cfs].nr_running == 0 {
            self.return_cfs_rq_runtime_used(cfs);
        }
    }

    #[inline(never)]
    fn return_cfs_rq_runtime_used(&mut self, cfs: CfsRqId) {
        if self.cfs_rq_runtime(cfs).runtime_enabled {
            self.__return_cfs_rq_runtime(cfs);
        }
        if self.kernel.entity.pick == Pick::Cfs {
            // This order is only for kernels that never throttle tasks; later kernels do this a little later.
            self.fell_empty(cfs);
        }
    }

    /// fair.c: __return_cfs_rq_runtime().
    #[fentry]
    fn __return_cfs_rq_runtime(&mut self, cfs: CfsRqId) {
        let slack_runtime = self.cfs_rq_runtime(cfs).runtime_remaining - MIN_CFS_RQ_RUNTIME;
        if slack_runtime <= 0 {
            return;
        }
        let tg = self.cfs_rq[cfs].tg;
        self.cfs_b_lock(tg);
        let slice = self.sched_cfs_bandwidth_slice();
        let expired = self.kernel.bandwidth.expiry == RuntimeExpiry::ByClock
            && self.cfs_rq_runtime(cfs).runtime_expires != self.tg[tg].cfs_bandwidth.runtime_expires;
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        if cfs_b.quota != RUNTIME_INF && !expired {
            cfs_b.runtime += slack_runtime as u64;
            // This CPU's queue is locked, so a timer unthrottles the others.
            if cfs_b.runtime > slice && !cfs_b.throttled_cfs_rq.is_empty() {
                self.start_cfs_slack_bandwidth(tg);
            }
        }
        self.cfs_b_unlock(tg);
        self.cfs_rq_runtime_mut(cfs).runtime_remaining -= slack_runtime;
    }

    // Where a queue without runtime is detected.

    /// fair.c: check_enqueue_throttle(). An entity was queued on an empty queue. If no runtime is left, the queue does not even
    /// become runnable; since v6.18 it does, and its clock goes on for what is queued.
    #[inline]
    pub(crate) fn check_enqueue_throttle(&mut self, cfs: CfsRqId) {
        if unlikely(self.cfs_bandwidth_used()) {
            self.check_enqueue_throttle_used(cfs);
            if self.kernel.bandwidth.throttle.by_task() {
                self.first_queued_task(cfs);
            }
        }
    }

    fn check_enqueue_throttle_used(&mut self, cfs: CfsRqId) {
        let queue = self.cfs_rq_runtime(cfs);
        if !queue.runtime_enabled || self.cfs_rq[cfs].curr.is_some() || queue.throttled {
            return;
        }
        self.account_cfs_rq_runtime(cfs, 0);
        let queue = self.cfs_rq_runtime(cfs);
        if queue.runtime_remaining <= 0 && !queue.throttled {
            self.throttle_cfs_rq(cfs);
        }
    }

    /// fair.c: check_cfs_rq_runtime(), until v6.18. Throttles a queue that ran out of runtime. Returns whether it is throttled.
    #[inline]
    pub(crate) fn check_cfs_rq_runtime(&mut self, cfs: CfsRqId) -> bool {
        if !self.cfs_bandwidth_used() || self.kernel.bandwidth.throttle == Throttle::Task {
            return false;
        }
        let queue = self.cfs_rq_runtime(cfs);
        if !queue.runtime_enabled || queue.runtime_remaining > 0 {
            return false;
        }
        queue.throttled || self.throttle_cfs_rq(cfs)
    }

    // CPUs come and go.

    /// Whether a quota limits a fair task: its group's, or that of a group above.
    pub(crate) fn task_has_quota(&self, p: TaskId) -> bool {
        let cfs = self.se[self.task[p].se].cfs_rq;
        let tg = self.cfs_rq[cfs].tg;
        self.cfs_rq_runtime(cfs).runtime_enabled || self.tg[tg].cfs_bandwidth.hierarchical_quota != RUNTIME_INF
    }

    /// fair.c: update_runtime_enabled(). A CPU is online again.
    pub fn update_runtime_enabled(&mut self, cpu: CpuId) {
        for tg in self.groups_below_root() {
            let cfs = self.tg[tg].cfs_rq[cpu.index()];
            self.cfs_rq_runtime_mut(cfs).runtime_enabled = self.tg[tg].cfs_bandwidth.quota != RUNTIME_INF;
        }
    }

    /// fair.c: unthrottle_offline_cfs_rqs(). A CPU goes offline: what is throttled there must be found and moved.
    pub fn unthrottle_offline_cfs_rqs(&mut self, cpu: CpuId) {
        let inactive = self.kernel.bandwidth.unthrottle_offline == UnthrottleOffline::Inactive;
        if inactive && self.cpu_active_mask.contains(cpu) {
            return;
        }
        for tg in self.groups_below_root() {
            let cfs = self.tg[tg].cfs_rq[cpu.index()];
            let queue = self.cfs_rq_runtime_mut(cfs);
            if !queue.runtime_enabled {
                continue;
            }
            queue.runtime_enabled = false;
            if queue.throttled || !inactive {
                queue.runtime_remaining = 1;
            }
            if queue.throttled {
                self.unthrottle_cfs_rq(cfs);
            }
        }
    }

    /// `task_groups` without the root: every group, parents before their children.
    pub fn groups_below_root(&self) -> Vec<TgId> {
        let mut groups = self.tg[ROOT_TASK_GROUP].children.clone();
        let mut at = 0;
        while at < groups.len() {
            groups.extend_from_slice(&self.tg[groups[at]].children);
            at += 1;
        }
        groups
    }
}

/// fair.c: min_cfs_rq_runtime. What an empty queue keeps, in ns.
const MIN_CFS_RQ_RUNTIME: i64 = 1_000_000;
