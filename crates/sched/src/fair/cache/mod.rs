//! fair.c: CONFIG_SCHED_CACHE, cache-aware scheduling (v7.2): gathers threads that share memory in one last level cache (LLC).
//!
//! Each process sums up, by CPU, how long its threads ran there; the sums are halved each epoch. About once per epoch one of its
//! threads, on its way to user mode, finds the LLC in which the process ran most. The process prefers that one, until it has too
//! many threads or too much memory for an LLC, or has not looked for a while. Wakeups ignore the preference; load balancing pulls
//! tasks towards the LLC that they prefer and leaves them there, unless that would overload it.
//!
//! ```text
//! mod.rs      state; the switch
//! rules.rs    which kernels have it
//! process.rs  run time by CPU; the LLC that a process prefers; fork and exit
//! work.rs     task_tick_cache, task_cache_work: the look at all CPUs
//! queued.rs   counts of queued tasks by the LLC that they prefer
//! balance.rs  what load balancing needs
//! ```
//!
//! It is active wherever an LLC of several CPUs has others beside it, which includes two sockets with one each; on one node with
//! one LLC, nothing is tracked.
//!
//! Absent: `rq->nr_llc_running`, which nothing reads. Kernels before v6.6 have no counts in their entities, where they would
//! serve no purpose.

mod balance;
mod process;
mod queued;
mod rules;
#[cfg(test)]
mod tests;
mod work;

pub use process::{CacheGroupId, SchedCacheGroup, SchedCacheTime};
pub use rules::{CacheAware, CachePacking};
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

/// The fields of struct task_struct for cache-aware scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTask {
    /// `sched_cache_grp`, that of its process; `None` for kernel threads and tasks that have ended.
    pub group: Option<CacheGroupId>,
    pub preferred_llc: Option<LlcId>,
    /// Whether it was in the LLC that it prefers when it was queued.
    pub pref_llc_queued: bool,
    /// Whether `cache_work` is queued: on its way to user mode, the task looks where its process runs.
    pub cache_work: bool,
}

/// The fields of struct rq and of the CPU's lowest domain for cache-aware scheduling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheRq {
    /// Run time of all fair tasks of processes, in ns, halved each epoch.
    pub cpu_runtime: u64,
    pub cpu_epoch: u64,
    /// Jiffies.
    pub cpu_epoch_next: u64,
    /// Queued tasks, without delayed ones, that prefer this CPU's LLC.
    pub nr_pref_llc_running: u32,
    /// Queued tasks, by the LLC that they prefer; empty if the CPU has no domain below an LLC.
    pub llc_counts: Vec<u32>,
    /// This CPU's domains' part of the LLC.
    pub llc_bytes: u64,
}

/// Cache-aware scheduling of one machine.
#[derive(Clone, Debug, Default)]
pub struct CacheBalancing {
    /// Whether the kernel has it, and the machine several LLCs.
    followed: bool,
    /// Static key sched_cache_active.
    active: bool,
    /// How many tasks have their `cache_work` queued.
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

    /// Whether processes are tracked: it is active, was, or may become so.
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

    /// topology.c: sched_cache_set(), with alloc_sd_llc() for domains that were rebuilt: all but those of the partitions that
    /// were `kept`. Their counts begin at zero, whatever is queued.
    ///
    /// Differs: a CPU that is alone in its LLC has no counts; in the kernel it has some, of the domain above, which nothing
    /// reads.
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

    /// topology.c: get_effective_llc_bytes(). A partition's part of an LLC is its part of the LLC's CPUs; CPUs on their way down
    /// do not count.
    fn get_effective_llc_bytes(&self, cpu: CpuId) -> u64 {
        let below = self.topology.coregroup[cpu].and(&self.cpu_active_mask).weight() as u64;
        self.topology.llc_bytes[cpu] * u64::from(self.domains.sd_llc_size[cpu]) / below.max(1)
    }

    /// topology.c: sched_cache_active_set(). Active if a partition of the machine has several LLCs, and the user has not switched
    /// it off (`llc_balancing/enabled`).
    pub(crate) fn sched_cache_active_set(&mut self) {
        let several = (0..self.nr_cpus()).map(CpuId::new).any(|cpu| self.sd_in_multi_llcs(cpu));
        self.balance.cache.active = self.balance.cache.followed && several && self.sysctl.sched_cache_user != 0;
    }

    /// topology.c: sd_in_multi_llcs(). Whether the CPU's LLC has others beside it, and several CPUs.
    fn sd_in_multi_llcs(&self, cpu: CpuId) -> bool {
        let Some(sd) = self.domains.sd_llc[cpu] else { return false };
        let weight = self.domains[sd].span_weight;
        let mut wider = std::iter::successors(self.domains[sd].parent, |&sd| self.domains[sd].parent);
        weight > 1 && wider.any(|sd| self.domains[sd].span_weight != weight)
    }

    /// fair.c: llc_id(). `None` for a CPU that does not exist, or has never had a domain.
    #[inline]
    pub(in crate::fair) fn llc_id(&self, cpu: CpuId) -> Option<LlcId> {
        (self.domains.sd_llc_id[cpu] != NO_LLC).then(|| self.balance.cache.llc_id[cpu])
    }
}
