//! fair.c: how long a process runs on each CPU, and which last level cache (LLC) it prefers because of that.

use super::{CacheBalancing, LlcId};
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::{SchedClass, TaskId};
use fentry::fentry;
use units::CpuId;

/// A process, as far as LLCs are concerned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct CacheGroupId(pub u32);

impl From<u32> for CacheGroupId {
    fn from(number: u32) -> CacheGroupId {
        CacheGroupId(number)
    }
}

impl From<CacheGroupId> for u32 {
    fn from(id: CacheGroupId) -> u32 {
        id.0
    }
}

/// sched.h: struct sched_cache_time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedCacheTime {
    /// In ns, halved each epoch.
    pub runtime: u64,
    pub epoch: u64,
}

/// sched.h: struct sched_cache_group.
///
/// Differs: it ends with the last task of its process; executing another program keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedCacheGroup {
    /// Indexed by CPU; empty before the first of its tasks has run.
    pub pcpu_sched: Vec<SchedCacheTime>,
    /// The epoch of the CPU on which one of its tasks last decided to look.
    pub epoch: u64,
    /// Where it ran most: it prefers the LLC of this CPU.
    pub cpu: Option<CpuId>,
    /// How many of its tasks run at once, on average.
    pub nr_running_avg: u64,
    /// Jiffies.
    pub next_scan: u64,
    /// How many pages its tasks were found to touch.
    pub footprint: u64,
    /// `signal->nr_threads`: how many of its tasks have not ended.
    pub nr_threads: u32,
    /// Address space.
    mm: u32,
}

/// `value` halved so many times (__shr_u64()).
#[doc(alias = "__shr_u64")]
fn halved(value: u64, times: u64) -> u64 {
    if times >= u64::from(u64::BITS) { 0 } else { value >> times }
}

/// fair.c: get_sched_cache_scale(). How many times its size an LLC may be filled, by `llc_aggr_tolerance`; `None`: without limit.
pub(super) fn get_sched_cache_scale(tolerance: u64, mul: u64) -> Option<u64> {
    match tolerance {
        0 => Some(0),
        100.. => None,
        _ => Some(1 + (tolerance - 1) * mul),
    }
}

/// sched.h: fits_capacity(). Leaves a fifth to spare.
fn fits_capacity(cap: u64, max: u64) -> bool {
    cap.wrapping_mul(1280) < max.wrapping_mul(1024)
}

impl CacheBalancing {
    /// fair.c: __update_mm_sched(). Halves the run time on a CPU, in total and of the process, once for each epoch of `period`
    /// jiffies that has passed.
    pub(super) fn __update_mm_sched(&mut self, cpu: CpuId, group: CacheGroupId, now: u64, period: u64) {
        let rq = &mut self.rq[cpu];
        let delta = now.wrapping_sub(rq.cpu_epoch_next) as i64;
        if delta > 0 {
            let n = (delta as u64).div_ceil(period);
            rq.cpu_epoch += n;
            rq.cpu_epoch_next += n * period;
            rq.cpu_runtime = halved(rq.cpu_runtime, n);
        }
        let epoch = rq.cpu_epoch;
        let times = &mut self.group[group].pcpu_sched;
        if times.is_empty() {
            times.resize(self.rq.len(), SchedCacheTime::default());
        }
        let time = &mut times[cpu.index()];
        time.runtime = halved(time.runtime, epoch.wrapping_sub(time.epoch));
        time.epoch = epoch;
    }
}

impl<A: Arch> Sched<A> {
    // Fork and exit.

    /// fair.c: init_sched_mm() and sched_cache_fork(). The first task of a process creates its group (mm_init_sched()).
    #[doc(alias = "init_sched_mm")]
    #[doc(alias = "mm_init_sched")]
    pub(crate) fn sched_cache_fork(&mut self, p: TaskId) {
        let (mm, next_scan) = (self.task[p].mm, self.jiffies());
        let cache = &mut self.balance.cache;
        cache.task.ensure(p);
        cache.task.reset(p);
        if mm == 0 {
            return;
        }
        let group = cache.of_mm.get(&mm).copied().unwrap_or_else(|| {
            let epoch = cache.rq[CpuId::new(cache.rq.len() - 1)].cpu_epoch;
            let group = cache.group.insert(SchedCacheGroup { epoch, next_scan, mm, ..SchedCacheGroup::default() });
            cache.of_mm.insert(mm, group);
            group
        });
        cache.group[group].nr_threads += 1;
        cache.task[p].group = Some(group);
    }

    /// fair.c: sched_cache_exit_mm(). The task leaves its process, whose footprint loses the task's part.
    pub(crate) fn sched_cache_exit_mm(&mut self, p: TaskId) {
        let faults = self.numa.task(p).map_or(0, |task| task.total_numa_faults);
        let cache = &mut self.balance.cache;
        let task = &mut cache.task[p];
        cache.nr_works -= u32::from(std::mem::take(&mut task.cache_work));
        let Some(group) = task.group.take() else { return };
        let of = &mut cache.group[group];
        of.footprint = of.footprint.saturating_sub(faults);
        of.nr_threads -= 1;
        if of.nr_threads == 0 {
            let of = cache.group.remove(group);
            cache.of_mm.remove(&of.mm);
        }
    }

    /// The part of task_numa_placement() that maintains the group's `footprint`: the number of the task's faults has changed by
    /// `diff`.
    #[inline]
    pub(crate) fn sched_cache_footprint(&mut self, p: TaskId, diff: i64) {
        let cache = &mut self.balance.cache;
        if cache.is_followed()
            && let Some(group) = cache.task[p].group
        {
            let footprint = &mut cache.group[group].footprint;
            *footprint = (*footprint as i64).saturating_add(diff).max(0) as u64;
        }
    }

    // What fits into an LLC.

    /// fair.c: exceed_llc_capacity(). Whether the process is known to touch more memory than the LLC of `cpu` holds.
    pub(super) fn exceed_llc_capacity(&self, group: CacheGroupId, cpu: CpuId) -> bool {
        if self.rq[cpu].sd.is_none() {
            return true;
        }
        if !self.numa.is_on() {
            return false;
        }
        let footprint = self.balance.cache.group[group].footprint;
        let llc = self.balance.cache.rq[cpu].llc_bytes;
        match get_sched_cache_scale(self.sysctl.llc_aggr_tolerance, 256) {
            Some(scale) => llc.wrapping_mul(scale) < footprint.wrapping_mul(4096),
            None => false,
        }
    }

    /// fair.c: invalid_llc_nr(). Whether the process is a single thread, or runs more threads at once than the LLC of `cpu` has
    /// cores for.
    pub(super) fn invalid_llc_nr(&self, group: CacheGroupId, cpu: CpuId) -> bool {
        let cache = &self.balance.cache;
        let of = &cache.group[group];
        if of.nr_threads <= 1 {
            return true;
        }
        match get_sched_cache_scale(self.sysctl.llc_aggr_tolerance, 1) {
            Some(scale) => {
                let room = scale * u64::from(self.domains.sd_llc_size[cpu]);
                !fits_capacity(of.nr_running_avg.wrapping_mul(cache.smt_threads), room)
            }
            None => false,
        }
    }

    /// What the callers of these two do: a process that no longer fits loses its preference.
    pub(super) fn forget_preferred_llc(&mut self, group: CacheGroupId) {
        if self.balance.cache.group[group].cpu.is_some() {
            self.write_cache_group(group);
            self.balance.cache.group[group].cpu = None;
        }
    }

    /// fair.c: get_pref_llc(). The LLC of the CPU on which the process ran most, unless that CPU is not on the node that the task
    /// prefers.
    fn get_pref_llc(&self, p: TaskId, group: CacheGroupId) -> Option<LlcId> {
        let cpu = self.balance.cache.group[group].cpu?;
        let elsewhere = |nid| self.cpu_to_node(cpu) != nid;
        if self.numa.is_on() && self.numa_preferred_nid(p).is_some_and(elsewhere) {
            return None;
        }
        self.llc_id(cpu)
    }

    /// `max(llc_epoch_period, 1)`, in jiffies.
    pub(super) fn llc_epoch_period(&self) -> u64 {
        self.sysctl.llc_epoch_period.max(1)
    }

    /// fair.c: account_mm_sched(). Accounts `delta_exec` to the process of `p`, which runs on `cpu`; also updates which LLC `p`
    /// prefers.
    #[inline(never)]
    #[fentry]
    pub(crate) fn account_mm_sched(&mut self, cpu: CpuId, p: TaskId, delta_exec: u64) {
        let Some(group) = self.balance.cache.task[p].group else { return };
        if self.task[p].sched_class != SchedClass::Fair {
            return;
        }
        self.cpu_epoch_lock(cpu);
        self.write_cache_time(cpu);
        let (now, period) = (self.jiffies(), self.llc_epoch_period());
        let cache = &mut self.balance.cache;
        cache.__update_mm_sched(cpu, group, now, period);
        cache.group[group].pcpu_sched[cpu.index()].runtime += delta_exec;
        cache.rq[cpu].cpu_runtime += delta_exec;
        let epoch = cache.rq[cpu].cpu_epoch;
        self.cpu_epoch_unlock(cpu);
        self.read_cache_group(group);
        let age = epoch.wrapping_sub(self.balance.cache.group[group].epoch) as i64;
        if age > self.sysctl.llc_epoch_affinity_timeout as i64
            || self.invalid_llc_nr(group, cpu)
            || self.exceed_llc_capacity(group, cpu)
        {
            self.forget_preferred_llc(group);
        }
        let preferred = self.get_pref_llc(p, group);
        if self.balance.cache.task[p].preferred_llc != preferred && self.task_running_on_cpu(cpu, p) {
            self.account_llc_dequeue(cpu, p);
            self.balance.cache.task[p].preferred_llc = preferred;
            self.account_llc_enqueue(cpu, p);
        }
    }
}
