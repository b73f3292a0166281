//! smpboot.c: the table of levels below NUMA, bottom-up, and each level's mask for every CPU.

use super::build::DomainSetup;
use super::flags::SdFlags;
use super::masks::{MaskId, Masks};
use super::rules::{AsymPacking, ClusterLevel, DomainRules, PackageLevel, SmtLevel};
use crate::cpu_topology::CpuTopology;
use std::fmt;
use units::{CpuId, CpuMask, PerCpu};

/// What a level is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DomainName {
    /// Threads of a core.
    Smt,
    /// Cores that share a level-2 cache.
    Cls,
    /// CPUs that share the last level cache.
    Mc,
    /// A whole node, until v6.6.
    Die,
    /// A whole node, from v6.7.
    Pkg,
    /// A whole node again, as the lowest of the NUMA levels.
    Node,
    /// Nodes up to a certain distance.
    Numa,
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DomainName::Smt => "SMT",
            DomainName::Cls => "CLS",
            DomainName::Mc => "MC",
            DomainName::Die => "DIE",
            DomainName::Pkg => "PKG",
            DomainName::Node => "NODE",
            DomainName::Numa => "NUMA",
        })
    }
}

/// sched/topology.h: struct sched_domain_topology_level.
pub(super) struct Level {
    pub name: DomainName,
    /// `tl->mask(cpu)`; meaningless for CPUs that get no domains.
    pub mask: PerCpu<MaskId>,
    pub sd_flags: SdFlags,
    /// SDTL_OVERLAP.
    pub overlap: bool,
    pub numa_level: usize,
}

/// The online CPUs of every node (`cpumask_of_node()`).
pub(super) fn node_masks(topology: &CpuTopology, online: &CpuMask) -> Vec<CpuMask> {
    let mut nodes = vec![CpuMask::default(); topology.nr_nodes()];
    for cpu in online.iter() {
        nodes[topology.node[cpu] as usize].set(cpu);
    }
    nodes
}

/// smpboot.c: build_sched_topology(). The levels below NUMA.
///
/// Masks only contain online CPUs, and only of one node: match_smt(), match_l2c() and match_llc() refuse to link CPUs of
/// different nodes (topology_sane()).
///
/// Differs: all kernels are told the real last level caches. Those of v4.x derive them from the numbers of AMD's CPUs (amd.c:
/// amd_get_topology()). In v4.15 and v4.16 this is right for the Zen 1 and Zen 2 of their time, but takes a whole node for one
/// cache on Zen 3 and later; v4.5 merges some complexes of a Zen 2.
#[doc(alias = "x86_topology")]
#[doc(alias = "default_topology")]
pub(super) fn build_sched_topology(
    topology: &CpuTopology,
    nodes: &[CpuMask],
    cpu_map: &CpuMask,
    rules: &DomainRules,
    setup: &DomainSetup,
    masks: &mut Masks,
) -> Vec<Level> {
    let mut level = |name, sd_flags, mask_of: &dyn Fn(CpuId) -> CpuMask| Level {
        name,
        mask: level_masks(topology.nr_cpus, cpu_map, masks, mask_of),
        sd_flags: sd_flags | x86_sched_itmt_flags(name, rules, setup),
        overlap: false,
        numa_level: 0,
    };
    let node_of = |cpu: CpuId| &nodes[topology.node[cpu] as usize];

    let mut levels = Vec::new();
    let has_threads = || topology.smt.iter().any(|(_, threads)| threads.weight() > 1);
    if rules.smt_level == SmtLevel::Always || has_threads() {
        levels.push(level(DomainName::Smt, SdFlags::SD_SHARE_CPUCAPACITY | SdFlags::SD_SHARE_LLC, &|cpu| {
            topology.smt[cpu].and(node_of(cpu))
        }));
    }
    let cluster_flags = match rules.cluster_level {
        ClusterLevel::Absent => None,
        ClusterLevel::NotOnHybrid => (!setup.hybrid).then_some(SdFlags::SD_SHARE_LLC),
        ClusterLevel::Everywhere => Some(SdFlags::SD_SHARE_LLC),
        ClusterLevel::Flagged => Some(SdFlags::SD_CLUSTER | SdFlags::SD_SHARE_LLC),
    };
    if let Some(flags) = cluster_flags {
        levels.push(level(DomainName::Cls, flags, &|cpu| topology.cluster[cpu].and(node_of(cpu))));
    }
    levels.push(level(DomainName::Mc, SdFlags::SD_SHARE_LLC, &|cpu| topology.coregroup[cpu].and(node_of(cpu))));
    if !x86_has_numa_in_package(topology, &setup.booted) {
        let name = match rules.package_level {
            PackageLevel::Die => DomainName::Die,
            PackageLevel::Pkg => DomainName::Pkg,
        };
        levels.push(level(name, SdFlags::NONE, &|cpu| node_of(cpu).clone()));
    }
    levels
}

/// A mask for every CPU of `cpu_map`.
fn level_masks(
    nr_cpus: usize,
    cpu_map: &CpuMask,
    masks: &mut Masks,
    mask_of: &dyn Fn(CpuId) -> CpuMask,
) -> PerCpu<MaskId> {
    PerCpu::from_fn(nr_cpus, |cpu| {
        if cpu_map.contains(cpu) { masks.intern(mask_of(cpu)) } else { masks.intern(CpuMask::default()) }
    })
}

/// The flag `x86_has_numa_in_package` of smpboot.c. Whether the CPUs of some package are on more than one node: then the
/// distances describe the package, and it has no level. set_sched_topology() uses the state after boot, so it stays the same with
/// CPUs offline.
fn x86_has_numa_in_package(topology: &CpuTopology, booted: &CpuMask) -> bool {
    booted.iter().any(|cpu| {
        // The first CPU of a package stands for it: if a package has two nodes, some CPU is on another node than the first.
        let first = topology.package[cpu].and(booted).first().unwrap_or(cpu);
        topology.node[first] != topology.node[cpu]
    })
}

/// smpboot.c: x86_sched_itmt_flags(). SD_ASYM_PACKING on the levels that have it, if the cores are ranked.
fn x86_sched_itmt_flags(name: DomainName, rules: &DomainRules, setup: &DomainSetup) -> SdFlags {
    let packed = match rules.asym_packing {
        AsymPacking::Never => false,
        AsymPacking::UpToCache => matches!(name, DomainName::Smt | DomainName::Cls | DomainName::Mc),
        AsymPacking::AboveSmt => {
            matches!(name, DomainName::Cls | DomainName::Mc | DomainName::Die | DomainName::Pkg)
        }
    };
    if packed && setup.arch_asym_cpu_priority.is_some() { SdFlags::SD_ASYM_PACKING } else { SdFlags::NONE }
}
