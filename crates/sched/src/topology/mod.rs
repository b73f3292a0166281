//! topology.c (core.c until v4.10): scheduling domains, built from what the architecture reports about its CPUs.
//!
//! Every CPU has a chain of domains, from its own core up to the whole machine ([`SchedDomain`]). A domain's CPUs are
//! divided into groups ([`SchedGroup`]), a ring that begins with the CPU's own; load is balanced between groups. Groups
//! with the same CPUs share one [`SchedGroupCapacity`]. Building is a pure function of the topology, the online CPUs
//! and the kernel's [`DomainRules`]; hotplug rebuilds.
//!
//! The table of levels is that of x86. CPUs that `isolcpus=` excludes have no domains; the others form one partition,
//! or as many as exclusive cpusets make of them.
//!
//! ```text
//! build.rs     sd_init, build_sched_domain(s)         levels.rs   the table of levels     numa.rs    NUMA distances
//! groups.rs    groups that do not overlap             overlap.rs  groups that do          masks.rs   shared CPU masks
//! partition.rs partition_sched_domains: rebuilding a part     root_domain.rs
//! capacity.rs  update_group_capacity                  attach.rs   degeneration, sd_llc    rules.rs   kernel versions
//! flags.rs     SD_*                                   describe.rs a text for people
//! energy.rs    performance domains                    shared.rs   sched_domain_shared
//! ```

mod attach;
mod build;
mod capacity;
mod describe;
mod energy;
mod flags;
mod groups;
mod levels;
mod masks;
mod numa;
mod overlap;
mod partition;
mod root_domain;
mod rules;
mod shared;
#[cfg(test)]
mod tests;

pub(crate) use attach::llc_id;
pub use build::{DomainParameters, DomainSetup, build_sched_domains};
pub use capacity::{BalanceClock, CpuCapacities};
pub(crate) use energy::map_util_perf;
pub use energy::{EnergyAware, PerfDomain};
use flags::SD_SHARED_CHILD_MASK;
pub use flags::{FlagNumbering, SdFlags};
pub use levels::DomainName;
pub use masks::{MaskId, Masks};
pub use numa::{NumaTopology, NumaTopologyType};
pub use root_domain::{RdId, RootDomain};
pub use rules::*;

use std::ops::{Index, IndexMut};
use units::{CpuId, CpuMask, PerCpu};

/// The -1 of `sd_llc_id`.
pub const NO_LLC: CpuId = CpuId(u16::MAX);

/// A domain of one CPU on one level.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SdId(pub u32);

/// The id of a group of CPUs in a domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SgId(pub u32);

/// The id of a capacity that equal groups share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SgcId(pub u32);

/// The id of what the domains of CPUs that share a cache have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SdsId(pub u32);

/// sched/topology.h: struct sched_domain. Counters are in [`DomainStats`]. Jiffies count from boot.
#[derive(Clone, Debug)]
pub struct SchedDomain {
    /// The next wider domain of the same CPU.
    pub parent: Option<SdId>,
    pub child: Option<SdId>,
    /// The group that contains the CPU itself, with which the ring begins.
    pub groups: SgId,
    pub span: MaskId,
    pub span_weight: u32,
    pub flags: SdFlags,
    /// The position in the table of levels. Removed levels leave gaps.
    pub level: u32,
    pub name: DomainName,
    /// Between two periodic balances, in ms.
    pub min_interval: u32,
    /// Between two periodic balances, in ms.
    pub max_interval: u32,
    /// A busy CPU multiplies the interval by this.
    pub busy_factor: u32,
    /// From which load of the busiest group on, in percent of the local one's, there is an imbalance.
    pub imbalance_pct: u32,
    /// After so many failed balancing attempts cache-hot tasks move too.
    pub cache_nice_tries: u32,
    /// Which of `cpu_load[]` a busy CPU reads, until v5.2; likewise the next four.
    pub busy_idx: u32,
    pub idle_idx: u32,
    pub newidle_idx: u32,
    pub wake_idx: u32,
    pub forkexec_idx: u32,
    /// Throughput of a whole core with all threads busy, 1024 = one thread alone; 0 above SMT. Until v4.20.
    pub smt_gain: u32,
    /// An imbalance between nodes of up to this many tasks is left alone. From v5.18.
    pub imb_numa_nr: u32,
    /// Whether this CPU is counted as idle in `nr_busy_cpus`.
    pub nohz_idle: bool,
    /// In jiffies.
    pub last_balance: u64,
    /// In ms.
    pub balance_interval: u32,
    pub nr_balance_failed: u32,
    /// Out of 512 for `newidle_ratio`; from v6.19 ([`NewidleHistory`]).
    pub newidle_call: u32,
    pub newidle_success: u32,
    pub newidle_ratio: u32,
    /// When `newidle_ratio` was last computed, in ns.
    pub newidle_stamp: u64,
    /// In ns.
    pub max_newidle_lb_cost: u64,
    /// In jiffies, when `max_newidle_lb_cost` decays next. Until v5.16.
    pub next_decay_max_lb_cost: u64,
    /// In jiffies, when `max_newidle_lb_cost` decayed last. From v5.16.
    pub last_decay_max_lb_cost: u64,
    /// The average cost of `select_idle_cpu()`, in ns. v4.9 to v6.7.
    pub avg_scan_cost: u64,
    /// Set from v4.9 on, if the CPUs share a cache.
    pub shared: Option<SdsId>,
}

/// sched/idle.h: enum cpu_idle_type, in the order of its older numbering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuIdleType {
    Idle,
    NotIdle,
    NewlyIdle,
}

/// One counter for each [`CpuIdleType`].
pub type PerIdleType = [u32; 3];

/// sched/topology.h: the CONFIG_SCHEDSTATS part of struct sched_domain, which `/proc/schedstat` prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainStats {
    pub lb_count: PerIdleType,
    pub lb_failed: PerIdleType,
    pub lb_balanced: PerIdleType,
    /// By what was to move: load, utilization, tasks, a misfit task. A single counter up to v6.12.
    #[doc(alias = "lb_imbalance")]
    pub lb_imbalance_load: PerIdleType,
    pub lb_imbalance_util: PerIdleType,
    pub lb_imbalance_task: PerIdleType,
    pub lb_imbalance_misfit: PerIdleType,
    pub lb_gained: PerIdleType,
    pub lb_hot_gained: PerIdleType,
    pub lb_nobusyg: PerIdleType,
    pub lb_nobusyq: PerIdleType,
    pub alb_count: u32,
    pub alb_failed: u32,
    pub alb_pushed: u32,
    pub sbe_count: u32,
    pub sbe_balanced: u32,
    pub sbe_pushed: u32,
    pub sbf_count: u32,
    pub sbf_balanced: u32,
    pub sbf_pushed: u32,
    pub ttwu_wake_remote: u32,
    pub ttwu_move_affine: u32,
    pub ttwu_move_balance: u32,
}

/// sched.h: struct sched_group.
#[derive(Clone, Debug)]
pub struct SchedGroup {
    /// The next group of the ring.
    pub next: SgId,
    pub cpumask: MaskId,
    pub group_weight: u32,
    /// From v6.6; 0 before.
    pub cores: u32,
    pub sgc: SgcId,
    /// The CPU of highest priority, where the domain has SD_ASYM_PACKING.
    pub asym_prefer_cpu: Option<CpuId>,
    /// The flags of the child domain, from v5.15; none before.
    pub flags: SdFlags,
}

/// sched.h: struct sched_group_capacity. 1024 is one full CPU.
#[derive(Clone, Debug)]
pub struct SchedGroupCapacity {
    pub capacity: u64,
    /// The smallest capacity of a CPU in the group; read from v4.10 on.
    pub min_capacity: u64,
    /// The largest capacity of a CPU in the group; read from v4.20 on.
    pub max_capacity: u64,
    /// In jiffies.
    pub next_update: u64,
    /// Whether balancing failed in the child domain because of tasks' affinity.
    pub imbalance: bool,
    /// Until v4.8; 0 later ([`BusyCpus`]).
    pub nr_busy_cpus: u32,
    /// The CPU this was allocated for, unique within a level.
    pub id: CpuId,
    /// The CPUs that may balance on behalf of the group.
    pub cpumask: MaskId,
}

/// sched/topology.h: struct sched_domain_shared.
#[derive(Clone, Debug, Default)]
pub struct SchedDomainShared {
    pub nr_busy_cpus: u32,
    pub has_idle_cores: bool,
    pub nr_idle_scan: u32,
    /// Utilization of the CPUs, as periodic balancing between caches last recorded it; 1024 is a full CPU. From v7.2.
    pub util_avg: u64,
    pub capacity: u64,
}

/// What a kernel would have logged as an error while building.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DomainWarning {
    /// "BUG: arch topology borken": a level's CPUs are no subset of the next level's, which is widened.
    ArchTopologyBorken { cpu: CpuId, child: DomainName, parent: DomainName },
    /// Two masks of a level overlap partially; no domains are built.
    SpanNotSane { level: DomainName },
    /// No CPU may balance for a group on behalf of this CPU; the group's first CPU does.
    EmptyBalanceMask { cpu: CpuId, level: DomainName },
    /// Two groups share a capacity but differ in the CPUs that may balance for them.
    BalanceMasksDiffer { cpu: CpuId, level: DomainName },
    /// A distance between nodes is less than that of a node to itself, or does not fit its byte; NUMA is ignored.
    InvalidDistance { distance: u32 },
}

/// All domains of a machine, and the per-CPU pointers into them.
#[derive(Clone, Debug)]
pub struct Domains {
    pub rules: DomainRules,
    sds: Vec<SchedDomain>,
    stats: Vec<DomainStats>,
    sgs: Vec<SchedGroup>,
    sgcs: Vec<SchedGroupCapacity>,
    sdss: Vec<SchedDomainShared>,
    pub masks: Masks,
    /// `arch_scale_cpu_capacity()` of the machine, ignoring SMT.
    arch_capacity: PerCpu<u64>,
    /// The CPUs that have these domains, all partitions together.
    pub span: CpuMask,
    /// The partitions, each of which is balanced by itself (`doms_cur`).
    pub doms_cur: Vec<CpuMask>,
    /// The lowest domain of each CPU (`rq->sd`).
    pub sd: PerCpu<Option<SdId>>,
    /// The widest domain whose CPUs share a cache.
    pub sd_llc: PerCpu<Option<SdId>>,
    pub sd_llc_size: PerCpu<u32>,
    /// The first CPU of `sd_llc`; the CPU itself if it has none. From v7.2, the first CPU that shares the cache in
    /// hardware; [`NO_LLC`] for a CPU that never had a domain ([`LlcId`]).
    pub sd_llc_id: PerCpu<CpuId>,
    /// The first CPU of the cluster, or of `sd_llc`. Read from v6.7.
    pub sd_share_id: PerCpu<CpuId>,
    pub sd_llc_shared: PerCpu<Option<SdsId>>,
    /// The state shared by searches for an idle CPU: that of the LLC or, from v7.2, of the CPUs that differ in
    /// capacity.
    pub sd_balance_shared: PerCpu<Option<SdsId>>,
    /// The lowest NUMA domain.
    pub sd_numa: PerCpu<Option<SdId>>,
    /// The parent of `sd_llc`, whose first group counts busy CPUs. Until v4.8.
    pub sd_busy: PerCpu<Option<SdId>>,
    #[doc(alias = "sd_asym")]
    pub sd_asym_packing: PerCpu<Option<SdId>>,
    pub sd_asym_cpucapacity: PerCpu<Option<SdId>>,
    /// Static key: some domain's CPUs differ in capacity.
    pub sched_asym_cpucapacity: bool,
    /// Static key: some CPU has a cluster domain.
    pub sched_cluster_active: bool,
    pub sched_domain_level_max: u32,
    pub numa: NumaTopology,
    /// `rq->cpu_capacity` as building computed it: the caller copies it to the runqueues.
    pub cpu_capacity: PerCpu<u64>,
    /// `rq->cpu_capacity_orig` as building computed it. Kernels from v6.7 on use [`Domains::arch_scale_cpu_capacity`].
    pub cpu_capacity_orig: PerCpu<u64>,
    pub warnings: Vec<DomainWarning>,
}

impl Domains {
    /// sched.h: for_each_domain(). From the CPU's lowest domain upwards.
    pub fn for_each_domain(&self, cpu: CpuId) -> impl Iterator<Item = SdId> + '_ {
        std::iter::successors(self.sd[cpu], |&sd| self[sd].parent)
    }

    /// sched.h: for_each_lower_domain(). From `sd` itself downwards.
    pub fn for_each_lower_domain(&self, sd: SdId) -> impl Iterator<Item = SdId> + '_ {
        std::iter::successors(Some(sd), |&sd| self[sd].child)
    }

    /// sched.h: highest_flag_domain(). The widest domain with the flag.
    pub fn highest_flag_domain(&self, cpu: CpuId, flag: SdFlags) -> Option<SdId> {
        let stops = match self.rules.highest_flag {
            HighestFlag::StopsAtFirstWithout => true,
            HighestFlag::SkipsUnlessShared => flag.has(SD_SHARED_CHILD_MASK),
        };
        let domains = self.for_each_domain(cpu);
        if stops {
            domains.take_while(|&sd| self[sd].flags.has(flag)).last()
        } else {
            domains.filter(|&sd| self[sd].flags.has(flag)).last()
        }
    }

    /// sched.h: lowest_flag_domain(). The narrowest domain with the flag.
    pub fn lowest_flag_domain(&self, cpu: CpuId, flag: SdFlags) -> Option<SdId> {
        self.for_each_domain(cpu).find(|&sd| self[sd].flags.has(flag))
    }

    /// The groups of a domain, round the ring from the CPU's own (`do { } while (sg != sd->groups)`).
    pub fn groups(&self, sd: SdId) -> impl Iterator<Item = SgId> + '_ {
        let first = self[sd].groups;
        std::iter::successors(Some(first), move |&sg| Some(self[sg].next).filter(|&next| next != first))
    }

    /// sched/topology.h: sched_domain_span().
    #[inline]
    pub fn sched_domain_span(&self, sd: SdId) -> &CpuMask {
        self.masks.get(self[sd].span)
    }

    /// topology.c: the sched_domains_numa_masks of a node, nearest first: its own CPUs, then those of more and more
    /// nodes. None without NUMA levels.
    pub(crate) fn numa_masks(&self, node: u16) -> impl Iterator<Item = &CpuMask> {
        self.numa.sched_domains_numa_masks.iter().map(move |of_nodes| self.masks.get(of_nodes[usize::from(node)]))
    }

    /// sched.h: sched_group_span().
    #[doc(alias = "sched_group_cpus")]
    #[inline]
    pub fn sched_group_span(&self, sg: SgId) -> &CpuMask {
        self.masks.get(self[sg].cpumask)
    }

    /// sched.h: group_balance_mask().
    #[doc(alias = "sched_group_mask")]
    #[inline]
    pub fn group_balance_mask(&self, sg: SgId) -> &CpuMask {
        self.masks.get(self[self[sg].sgc].cpumask)
    }

    /// topology.c: group_balance_cpu(). The one CPU that balances for the group on the next level.
    ///
    /// # Panics
    /// If no CPU of the group may; the builder leaves no such group.
    pub fn group_balance_cpu(&self, sg: SgId) -> CpuId {
        let mask = self.group_balance_mask(sg);
        self.sched_group_span(sg)
            .iter()
            .find(|&cpu| mask.contains(cpu))
            .expect("a group has a CPU that balances for it")
    }

    /// core.c: cpus_share_cache().
    pub fn cpus_share_cache(&self, this_cpu: CpuId, that_cpu: CpuId) -> bool {
        this_cpu == that_cpu || self.sd_llc_id[this_cpu] == self.sd_llc_id[that_cpu]
    }

    /// core.c: cpus_share_resources().
    pub fn cpus_share_resources(&self, this_cpu: CpuId, that_cpu: CpuId) -> bool {
        this_cpu == that_cpu || self.sd_share_id[this_cpu] == self.sd_share_id[that_cpu]
    }

    /// Whether load is balanced in a domain: it has SD_LOAD_BALANCE, or its kernel has no such flag.
    #[inline]
    pub fn is_balanced(&self, sd: SdId) -> bool {
        self.rules.tuning == LevelTuning::Tighter || self[sd].flags.has(SdFlags::SD_LOAD_BALANCE)
    }

    pub fn stats(&self, sd: SdId) -> &DomainStats {
        &self.stats[sd.0 as usize]
    }

    pub fn stats_mut(&mut self, sd: SdId) -> &mut DomainStats {
        &mut self.stats[sd.0 as usize]
    }

    /// The number of domains of all CPUs and levels; ids are smaller.
    pub fn nr_domains(&self) -> usize {
        self.sds.len()
    }

    /// The number of groups; ids are smaller.
    pub fn nr_groups(&self) -> usize {
        self.sgs.len()
    }
}

macro_rules! arena {
    ($id:ident, $item:ident, $field:ident) => {
        impl Index<$id> for Domains {
            type Output = $item;
            #[inline]
            fn index(&self, id: $id) -> &$item {
                &self.$field[id.0 as usize]
            }
        }

        impl IndexMut<$id> for Domains {
            #[inline]
            fn index_mut(&mut self, id: $id) -> &mut $item {
                &mut self.$field[id.0 as usize]
            }
        }
    };
}

arena!(SdId, SchedDomain, sds);
arena!(SgId, SchedGroup, sgs);
arena!(SgcId, SchedGroupCapacity, sgcs);
arena!(SdsId, SchedDomainShared, sdss);
