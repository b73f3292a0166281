//! fair.c: CONFIG_SCHED_CACHE, cache-aware scheduling (v7.2): threads that share memory are brought below one last level cache.
//!
//! Each process adds up, by CPU, how long its threads ran there, halved each epoch. About once in an epoch one of its threads, on its
//! way to user mode, looks below which cache the process ran most, and makes that the one it prefers: until a process has too many
//! threads for a cache, or too much memory, or has not looked for a while. Nothing else is asked of a wakeup; load balancing pulls
//! tasks towards the cache that they prefer, and leaves them there, unless that would load it too much.
//!
//! ```text
//! mod.rs      state; the switch                     rules.rs   which kernels have it
//! process.rs  run time by CPU; what a process prefers; fork and exit
//! work.rs     task_tick_cache, task_cache_work: the look at all CPUs
//! queued.rs   counts of queued tasks by the cache that they prefer
//! balance.rs  what load balancing asks
//! ```
//!
//! It is active wherever a last level cache of several CPUs has others beside it, two sockets with one each included; on one node
//! of one cache nothing is followed.
//!
//! Absent: `rq->nr_llc_running`, which nobody reads. Kernels before v6.6 do not count in their entities, where it would do nothing of use.

mod balance;
mod process;
mod queued;
mod rules;
#[cfg(test)]
mod tests;
mod work;

pub use process::{CacheGroupId, SchedCacheGroup, SchedCacheTime};
pub use rules::CacheAware;
pub use work::TaskCacheWork;

use crate::arch::Arch;
use crate::arena::Arena;
use crate::core::Sched;
use crate::sched::TaskId;
use crate::topology::{NO_LLC, llc_id};
use std::collections::BTreeMap;
use units::{CpuId, CpuMask, PerCpu, unlikely};

/// The number of a last level cache (`sd_llc_id`, counted from 0).
pub type LlcId = u16;

/// What struct task_struct keeps for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTask {
    /// `sched_cache_grp`: of its process; `None` for kernel threads and those that have ended.
    pub group: Option<CacheGroupId>,
    pub preferred_llc: Option<LlcId>,
    /// It was queued below the cache that it prefers.
    pub pref_llc_queued: bool,
    /// `cache_work` is queued: on its way to user mode the task looks where its process runs.
    pub cache_work: bool,
}

/// What struct rq and the CPU's lowest domain keep for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheRq {
    /// Time of all fair tasks of processes, in ns, halved each epoch.
    pub cpu_runtime: u64,
    pub cpu_epoch: u64,
    /// Jiffies.
    pub cpu_epoch_next: u64,
    /// Queued tasks, delayed ones aside, that prefer this CPU's cache.
    pub nr_pref_llc_running: u32,
    /// Queued tasks by the cache that they prefer; empty where the CPU has no domain below a cache.
    pub llc_counts: Vec<u32>,
    /// What this CPU's domains have of the cache.
    pub llc_bytes: u64,
}

/// Cache-aware scheduling of one machine.
#[derive(Clone, Debug, Default)]
pub struct CacheBalancing {
    /// This kernel has it, and the machine several caches.
    followed: bool,
    /// Static key sched_cache_active.
    active: bool,
    /// Tasks whose `cache_work` is queued.
    nr_works: u32,
    /// `cpu_smt_num_threads`
    smt_threads: u64,
    nr_llcs: usize,
    llc_id: PerCpu<LlcId>,
    pub task: Arena<TaskId, CacheTask>,
    pub rq: PerCpu<CacheRq>,
    pub group: Arena<CacheGroupId, SchedCacheGroup>,
    of_mm: BTreeMap<u32, CacheGroupId>,
}

impl CacheBalancing {
    /// sched.h: sched_cache_enabled().
    #[doc(alias = "sched_cache_enabled")]
    #[inline]
    pub fn is_active(&self) -> bool {
        unlikely(self.active)
    }

    /// Whether processes are followed: it is active, was, or may come to be.
    #[inline]
    pub(crate) fn is_followed(&self) -> bool {
        unlikely(self.followed)
    }

    /// The group of an address space.
    pub fn group_of(&self, mm: u32) -> Option<&SchedCacheGroup> {
        self.of_mm.get(&mm).map(|&group| &self.group[group])
    }
}

impl<A: Arch> Sched<A> {
    /// The part of sched_init() and sched_init_domains().
    pub(crate) fn init_sched_cache(&mut self) {
        if self.kernel.balance.cache == CacheAware::Absent {
            return;
        }
        let (topology, nr_cpus) = (&self.topology, self.nr_cpus());
        let mut firsts: Vec<CpuId> = (0..nr_cpus).map(|cpu| llc_id(topology, CpuId::new(cpu))).collect();
        let of_cpu = firsts.clone();
        firsts.sort_unstable();
        firsts.dedup();
        if firsts.len() < 2 {
            return;
        }
        let number = |cpu: CpuId| firsts.binary_search(&of_cpu[cpu.index()]).expect("it is one of them") as LlcId;
        let threads = (0..nr_cpus).map(|cpu| topology.smt[CpuId::new(cpu)].weight()).max().unwrap_or(1);
        let cpu_epoch_next = self.jiffies();
        self.balance.cache = CacheBalancing {
            followed: true,
            smt_threads: threads as u64,
            nr_llcs: firsts.len(),
            llc_id: PerCpu::from_fn(nr_cpus, number),
            rq: PerCpu::from_fn(nr_cpus, |_| CacheRq { cpu_epoch_next, ..CacheRq::default() }),
            ..CacheBalancing::default()
        };
        self.sched_cache_set(&[]);
    }

    /// topology.c: sched_cache_set(), with alloc_sd_llc() of domains that were built, all but those of the partitions that were
    /// `kept`: their counts begin at nothing, whatever is queued.
    ///
    /// Differs: a CPU alone below its cache has none; the kernel's has, of the domain above, which nobody looks at.
    #[doc(alias = "alloc_sd_llc")]
    #[doc(alias = "sched_update_llc_bytes")]
    pub(crate) fn sched_cache_set(&mut self, kept: &[CpuMask]) {
        if !self.balance.cache.followed {
            return;
        }
        let nr_llcs = self.balance.cache.nr_llcs;
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            let stays = |map: &&CpuMask| map.contains(cpu) && self.domains.doms_cur.contains(map);
            let (has_llc, stays) = (self.domains.sd_llc[cpu].is_some(), kept.iter().any(|map| stays(&map)));
            let llc_bytes = self.get_effective_llc_bytes(cpu);
            let rq = &mut self.balance.cache.rq[cpu];
            rq.llc_bytes = if has_llc { llc_bytes } else { 0 };
            if !stays {
                rq.llc_counts.clear();
                rq.llc_counts.resize(if has_llc { nr_llcs } else { 0 }, 0);
            }
        }
        self.sched_cache_active_set();
    }

    /// topology.c: get_effective_llc_bytes(). A partition has as much of a cache as it has of the CPUs below it, those left out that are on
    /// their way down.
    fn get_effective_llc_bytes(&self, cpu: CpuId) -> u64 {
        let below = self.topology.coregroup[cpu].and(&self.cpu_active_mask).weight() as u64;
        self.topology.llc_bytes[cpu] * u64::from(self.domains.sd_llc_size[cpu]) / below.max(1)
    }

    /// topology.c: sched_cache_active_set(): the machine has several caches within a partition, and the user has not switched it
    /// off (`llc_balancing/enabled`).
    pub(crate) fn sched_cache_active_set(&mut self) {
        let several = (0..self.nr_cpus()).map(CpuId::new).any(|cpu| self.sd_in_multi_llcs(cpu));
        self.balance.cache.active = self.balance.cache.followed && several && self.sysctl.sched_cache_user != 0;
    }

    /// topology.c: sd_in_multi_llcs(). Whether the CPU's cache has others beside it, and several CPUs.
    fn sd_in_multi_llcs(&self, cpu: CpuId) -> bool {
        let Some(sd) = self.domains.sd_llc[cpu] else { return false };
        let weight = self.domains[sd].span_weight;
        let mut wider = std::iter::successors(self.domains[sd].parent, |&sd| self.domains[sd].parent);
        weight > 1 && wider.any(|sd| self.domains[sd].span_weight != weight)
    }

    /// fair.c: llc_id(). `None` for a CPU that is not there, or has never had a domain.
    #[inline]
    pub(in crate::fair) fn llc_id(&self, cpu: CpuId) -> Option<LlcId> {
        (self.domains.sd_llc_id[cpu] != NO_LLC).then(|| self.balance.cache.llc_id[cpu])
    }
}
