//! core.c: utilization clamping: bounds, as requested, on the CPU capacity that serves a task.
//!
//! ```text
//! the task's request (sched_setattr)  within what its group has (cpu.uclamp.min, .max)  up to the system's limits (sysctl)
//!    uclamp_req                          uclamp of the group, no more than its parent's    uclamp_default
//! ```
//!
//! gives the task's effective clamps. Each runqueue counts its tasks by clamp in a few buckets; the clamps of the queue are
//! the greatest of any task on it. Nothing of this costs anything until a clamp is requested (`sched_uclamp_used`).
//!
//! Clamps steer the frequency that the governor chooses (`cpufreq_schedutil.rs`) and by that what a place costs in energy; since v5.10
//! also which CPUs a task fits on ([`crate::fair::fit`]). Values are capacities; 1024 is a full CPU.

mod requests;
#[cfg(test)]
mod tests;

use super::Sched;
use crate::arch::Arch;
use crate::behaviour;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::sched::*;
use std::ops::{Index, IndexMut};
use units::{CpuId, PerCpu, unlikely};

behaviour! {
    /// Whether utilization can be clamped, and when a run queue learns of a task's clamps.
    pub enum UtilClamp = "core.uclamp" {
        Absent = "absent", since "v2.6.23", commit "", "it cannot";
        FrequencyOnly = "frequency-only", since "v5.3", commit "69842cba9ace",
            "before the task is queued; clamps choose frequencies, and CPUs by their energy alone (groups: v5.4, 2480c093130f)";
        BeforeEnqueue = "before-enqueue", since "v5.6", commit "a7008c07a568",
            "before the task is queued; clamps choose CPUs, too";
        AfterEnqueue = "after-enqueue", since "v6.12", commit "dfa0a574cbc4",
            "after the task is queued, and not of a sleeper whose dequeue is delayed";
        BeforeIfAwake = "before-if-awake", since "v6.16", commit "90ca9410dab2",
            "before the task is queued, though not of a sleeper whose dequeue is delayed";
    }
}

/// CONFIG_UCLAMP_BUCKETS_COUNT, by default 5.
const UCLAMP_BUCKETS: usize = 5;
/// Width of a bucket: the full capacity divided by the number of buckets, rounded to nearest.
const UCLAMP_BUCKET_DELTA: u32 = (SCHED_CAPACITY_SCALE + UCLAMP_BUCKETS as u32 / 2) / UCLAMP_BUCKETS as u32;

/// sched.h: enum uclamp_id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClampId {
    /// UCLAMP_MIN
    Min,
    /// UCLAMP_MAX
    Max,
}

impl ClampId {
    pub const BOTH: [ClampId; 2] = [ClampId::Min, ClampId::Max];
}

/// sched.h: struct uclamp_se.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UclampSe {
    pub value: u32,
    pub bucket_id: usize,
    /// Whether it is counted in a bucket of its runqueue.
    pub active: bool,
    /// Whether sched_setattr() asked for it.
    pub user_defined: bool,
}

impl UclampSe {
    /// core.c: uclamp_se_set(), for a clamp that is counted nowhere.
    fn new(value: u32, user_defined: bool) -> UclampSe {
        UclampSe { value, bucket_id: uclamp_bucket_id(value), active: false, user_defined }
    }

    /// core.c: uclamp_se_set().
    #[doc(alias = "uclamp_se_set")]
    fn set(&mut self, value: u32, user_defined: bool) {
        *self = UclampSe { active: self.active, ..UclampSe::new(value, user_defined) };
    }
}

/// A lower and an upper clamp. The default clamps nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clamps([UclampSe; 2]);

impl Default for Clamps {
    fn default() -> Clamps {
        Clamps(ClampId::BOTH.map(|id| UclampSe::new(uclamp_none(id), false)))
    }
}

impl Clamps {
    /// What the root group and the system allow: anything up to a full CPU.
    fn unlimited() -> Clamps {
        Clamps([UclampSe::new(SCHED_CAPACITY_SCALE, false); 2])
    }
}

impl Index<ClampId> for Clamps {
    type Output = UclampSe;
    #[inline]
    fn index(&self, id: ClampId) -> &UclampSe {
        &self.0[id as usize]
    }
}

impl IndexMut<ClampId> for Clamps {
    #[inline]
    fn index_mut(&mut self, id: ClampId) -> &mut UclampSe {
        &mut self.0[id as usize]
    }
}

/// What a group asks for on behalf of its tasks, and the effective clamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupClamps {
    pub uclamp_req: Clamps,
    /// The effective ones.
    pub uclamp: Clamps,
    /// As asked for, in hundredths of a percent, for [`Sched::cpu_uclamp_show`].
    uclamp_pct: [u32; 2],
}

impl GroupClamps {
    pub(crate) fn root() -> GroupClamps {
        GroupClamps { uclamp_req: Clamps::unlimited(), uclamp: Clamps::unlimited(), ..GroupClamps::default() }
    }
}

/// sched.h: struct uclamp_bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct UclampBucket {
    /// The greatest clamp of the tasks counted since the bucket was last empty.
    value: u32,
    tasks: u32,
}

/// sched.h: struct uclamp_rq.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct UclampRq {
    value: u32,
    bucket: [UclampBucket; UCLAMP_BUCKETS],
}

/// `rq->uclamp[]` and `rq->uclamp_flags` of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RqClamps {
    of: [UclampRq; 2],
    /// UCLAMP_FLAG_IDLE: no task is counted; the upper clamp is that of the last task.
    idle: bool,
}

/// Utilization clamping of the whole machine.
#[derive(Clone, Debug)]
pub struct UclampState {
    /// Static key: a clamp has been requested.
    pub(crate) sched_uclamp_used: bool,
    uclamp_default: Clamps,
    /// sysctl_sched_uclamp_util_min_rt_default
    util_min_rt_default: u32,
    rq: PerCpu<RqClamps>,
}

impl UclampState {
    /// core.c: init_uclamp().
    pub(crate) fn init_uclamp(nr_cpus: usize) -> UclampState {
        let of = ClampId::BOTH.map(|id| UclampRq { value: uclamp_none(id), ..UclampRq::default() });
        UclampState {
            sched_uclamp_used: false,
            uclamp_default: Clamps::unlimited(),
            util_min_rt_default: SCHED_CAPACITY_SCALE,
            rq: PerCpu::from_fn(nr_cpus, |_| RqClamps { of, idle: true }),
        }
    }

    /// sched.h: uclamp_rq_get().
    #[inline]
    pub(crate) fn uclamp_rq_get(&self, cpu: CpuId, id: ClampId) -> u64 {
        u64::from(self.rq[cpu].of[id as usize].value)
    }

    /// sched.h: uclamp_rq_is_idle().
    #[inline]
    pub(crate) fn uclamp_rq_is_idle(&self, cpu: CpuId) -> bool {
        self.rq[cpu].idle
    }
}

impl RqClamps {
    /// core.c: uclamp_rq_max_value(). The clamp of the topmost bucket that is not empty.
    fn uclamp_rq_max_value(&mut self, id: ClampId, clamp_value: u32) -> u32 {
        let topmost = self.of[id as usize].bucket.iter().rev().find(|bucket| bucket.tasks > 0);
        topmost.map(|bucket| bucket.value).unwrap_or_else(|| self.uclamp_idle_value(id, clamp_value))
    }

    /// core.c: uclamp_idle_value(). An idle CPU keeps the last upper clamp, so that its remaining utilization does not raise
    /// the frequency.
    fn uclamp_idle_value(&mut self, id: ClampId, clamp_value: u32) -> u32 {
        match id {
            ClampId::Max => {
                self.idle = true;
                clamp_value
            }
            ClampId::Min => uclamp_none(ClampId::Min),
        }
    }

    /// core.c: uclamp_rq_inc_id().
    fn uclamp_rq_inc_id(&mut self, id: ClampId, clamp: &mut UclampSe) {
        let idle = self.idle;
        let rq = &mut self.of[id as usize];
        let bucket = &mut rq.bucket[clamp.bucket_id];
        bucket.tasks += 1;
        clamp.active = true;
        if bucket.tasks == 1 || clamp.value > bucket.value {
            bucket.value = clamp.value;
        }
        // uclamp_idle_reset()
        if idle || clamp.value > rq.value {
            rq.value = clamp.value;
        }
    }

    /// core.c: uclamp_rq_dec_id(). A clamp that was not counted, because none had been requested yet, changes nothing.
    fn uclamp_rq_dec_id(&mut self, id: ClampId, clamp: &mut UclampSe) {
        if !clamp.active {
            return;
        }
        clamp.active = false;
        let rq = &mut self.of[id as usize];
        let bucket = &mut rq.bucket[clamp.bucket_id];
        assert!(bucket.tasks > 0, "a clamp that is counted is in its bucket");
        bucket.tasks -= 1;
        if bucket.tasks == 0 && bucket.value >= rq.value {
            self.of[id as usize].value = self.uclamp_rq_max_value(id, clamp.value);
        }
    }
}

/// core.c: uclamp_bucket_id().
fn uclamp_bucket_id(clamp_value: u32) -> usize {
    ((clamp_value / UCLAMP_BUCKET_DELTA) as usize).min(UCLAMP_BUCKETS - 1)
}

/// core.c: uclamp_none().
const fn uclamp_none(id: ClampId) -> u32 {
    match id {
        ClampId::Min => 0,
        ClampId::Max => SCHED_CAPACITY_SCALE,
    }
}

impl<A: Arch> Sched<A> {
    /// sched.h: uclamp_is_used().
    #[inline]
    pub fn uclamp_is_used(&self) -> bool {
        unlikely(self.uclamp.sched_uclamp_used)
    }

    /// core.c: uclamp_tg_restrict(). The task's request, restricted to what its group has.
    fn uclamp_tg_restrict(&self, p: TaskId, id: ClampId) -> UclampSe {
        let request = self.task_cold[p].uclamp_req[id];
        let tg = self.task[p].sched_task_group;
        if tg == ROOT_TASK_GROUP || self.is_autogroup(tg) {
            return request;
        }
        let group = &self.tg[tg].clamps.uclamp;
        let (low, high) = (group[ClampId::Min].value, group[ClampId::Max].value);
        UclampSe::new(request.value.min(high).max(low), false)
    }

    /// core.c: uclamp_eff_get().
    fn uclamp_eff_get(&self, p: TaskId, id: ClampId) -> UclampSe {
        let request = self.uclamp_tg_restrict(p, id);
        let limit = self.uclamp.uclamp_default[id];
        if request.value > limit.value { limit } else { request }
    }

    /// core.c: uclamp_eff_value(). The clamp that holds for the task.
    pub fn uclamp_eff_value(&self, p: TaskId, id: ClampId) -> u64 {
        let counted = self.task_cold[p].uclamp[id];
        u64::from(if counted.active { counted.value } else { self.uclamp_eff_get(p, id).value })
    }

    /// core.c: uclamp_rq_inc(). A task joins a runqueue.
    #[inline]
    pub(super) fn uclamp_rq_inc(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        if self.uclamp_is_used() {
            self.uclamp_rq_inc_used(cpu, p, flags);
        }
    }

    /// In kernels that distinguish them, a task whose dequeue is delayed is counted only when it wakes.
    #[cold]
    fn uclamp_rq_inc_used(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        let asks = !matches!(self.kernel.core.uclamp, UtilClamp::FrequencyOnly | UtilClamp::BeforeEnqueue);
        let sleeps = asks && !flags.delayed && self.se[self.task[p].se].sched_delayed;
        if self.class_uclamp_enabled(p) && !sleeps {
            self.count_clamps(cpu, p);
        }
    }

    fn count_clamps(&mut self, cpu: CpuId, p: TaskId) {
        self.write_rq_uclamp(cpu);
        for id in ClampId::BOTH {
            let mut clamp = self.uclamp_eff_get(p, id);
            self.uclamp.rq[cpu].uclamp_rq_inc_id(id, &mut clamp);
            self.task_cold[p].uclamp[id] = clamp;
        }
        self.uclamp.rq[cpu].idle = false;
    }

    /// core.c: uclamp_rq_dec(). A task leaves its runqueue.
    #[inline]
    pub(super) fn uclamp_rq_dec(&mut self, cpu: CpuId, p: TaskId) {
        if self.uclamp_is_used() && self.uclamp_enabled(p) {
            self.discount_clamps(cpu, p);
        }
    }

    #[cold]
    fn discount_clamps(&mut self, cpu: CpuId, p: TaskId) {
        self.write_rq_uclamp(cpu);
        for id in ClampId::BOTH {
            self.uclamp.rq[cpu].uclamp_rq_dec_id(id, &mut self.task_cold[p].uclamp[id]);
        }
    }

    /// `p->sched_class->uclamp_enabled`
    fn class_uclamp_enabled(&self, p: TaskId) -> bool {
        match self.task[p].sched_class {
            SchedClass::Fair | SchedClass::Rt => true,
            SchedClass::Dl | SchedClass::Stop | SchedClass::Idle => false,
        }
    }

    /// The same, unless its dequeue is delayed.
    fn uclamp_enabled(&self, p: TaskId) -> bool {
        self.class_uclamp_enabled(p) && !self.se[self.task[p].se].sched_delayed
    }

    /// core.c: uclamp_update_active(). A queued task's clamps have changed.
    fn uclamp_update_active(&mut self, p: TaskId) {
        let cpu = self.task[p].cpu;
        self.pi_lock(p);
        self.rq_lock(cpu);
        for id in ClampId::BOTH {
            self.uclamp_rq_reinc_id(cpu, p, id);
        }
        self.rq_unlock(cpu);
        self.pi_unlock(p);
    }

    /// core.c: uclamp_rq_reinc_id().
    fn uclamp_rq_reinc_id(&mut self, cpu: CpuId, p: TaskId, id: ClampId) {
        if !self.task_cold[p].uclamp[id].active {
            return;
        }
        let mut clamp = self.uclamp_eff_get(p, id);
        let rq = &mut self.uclamp.rq[cpu];
        rq.uclamp_rq_dec_id(id, &mut self.task_cold[p].uclamp[id]);
        rq.uclamp_rq_inc_id(id, &mut clamp);
        self.task_cold[p].uclamp[id] = clamp;
        if id == ClampId::Max {
            rq.idle = false;
        }
    }

    /// sched.h: uclamp_rq_is_capped(). Whether a clamp limits the CPU's utilization.
    pub(crate) fn uclamp_rq_is_capped(&self, cpu: CpuId) -> bool {
        if !self.uclamp_is_used() {
            return false;
        }
        let max = self.uclamp.uclamp_rq_get(cpu, ClampId::Max);
        max != SCHED_CAPACITY_SCALE.into() && self.cpu_util_cfs(cpu) + self.cpu_util_rt(cpu) >= max
    }

    /// sched.h: uclamp_rq_util_with(). Bounds `util` by the clamps of the runqueue and, if given, of a task that would be
    /// added.
    pub(crate) fn uclamp_rq_util_with(&self, cpu: CpuId, util: u64, p: Option<TaskId>) -> u64 {
        if !self.uclamp_is_used() {
            return util;
        }
        let [mut min_util, mut max_util] = ClampId::BOTH.map(|id| p.map_or(0, |p| self.uclamp_eff_value(p, id)));
        // The upper clamp of an idle queue is that of a task that has left.
        let counts_left = p.is_none() || self.kernel.core.uclamp == UtilClamp::FrequencyOnly;
        if counts_left || !self.uclamp.uclamp_rq_is_idle(cpu) {
            min_util = min_util.max(self.uclamp.uclamp_rq_get(cpu, ClampId::Min));
            max_util = max_util.max(self.uclamp.uclamp_rq_get(cpu, ClampId::Max));
        }
        if min_util >= max_util { min_util } else { util.clamp(min_util, max_util) }
    }
}
