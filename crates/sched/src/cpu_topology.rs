//! What an architecture tells kernel/sched about its CPUs: the masks behind `cpu_smt_mask()`, `cpu_clustergroup_mask()` and
//! `cpu_coregroup_mask()`, the NUMA node of each CPU with the distances between nodes, and the capacities
//! (`arch_scale_cpu_capacity()`). The domains are built from this alone.

use crate::topology::{EnergyAware, PerfDomain};
use units::{Capacity, CpuId, CpuMask, NR_CPUS, PerCpu};

/// The distance of a node to itself (`LOCAL_DISTANCE`; ACPI's System Locality Information Table fixes it).
pub const LOCAL_DISTANCE: u32 = 10;
/// The distance that Linux assumes between two nodes if the firmware reports none (`REMOTE_DISTANCE`).
pub const REMOTE_DISTANCE: u32 = 20;
/// The distance from which on tasks stay away from a node at fork, exec and wakeup (`RECLAIM_DISTANCE` of
/// include/linux/topology.h; the initial value of `node_reclaim_distance`).
pub const RECLAIM_DISTANCE: u32 = 30;
/// Full capacity, that of the biggest CPU (`SCHED_CAPACITY_SCALE`).
pub const SCHED_CAPACITY_SCALE: Capacity = 1024;

/// The CPUs of one machine as the scheduler sees them. Every mask of a CPU contains the CPU itself, and for one CPU each of
/// `smt`, `cluster`, `coregroup`, `package` is a subset of the next. NUMA nodes may split a `coregroup` (Intel's sub-NUMA
/// clusters share one last level cache) or contain several.
#[derive(Clone, Debug)]
pub struct CpuTopology {
    /// CPUs are numbered `0..nr_cpus` without holes.
    pub nr_cpus: usize,
    /// Hardware threads of the same core (`cpu_smt_mask`).
    pub smt: PerCpu<CpuMask>,
    /// CPUs that share the level-2 cache or an equally near interconnect (`cpu_clustergroup_mask`); the core alone if there
    /// is no such thing.
    pub cluster: PerCpu<CpuMask>,
    /// CPUs that share the last level cache (`cpu_coregroup_mask`).
    pub coregroup: PerCpu<CpuMask>,
    /// The size of that cache; 0 if unknown.
    pub llc_bytes: PerCpu<u64>,
    /// CPUs of the same physical package (`topology_core_cpumask`).
    pub package: PerCpu<CpuMask>,
    /// NUMA node of each CPU, an index into `distance`.
    pub node: PerCpu<u16>,
    /// `distance[from][to]` between NUMA nodes, [`LOCAL_DISTANCE`] from a node to itself. Nodes may have no CPU.
    pub distance: Vec<Vec<u32>>,
    /// What the architecture sets from v5.4 on: [`RECLAIM_DISTANCE`], but 32 on AMD's Zen (amd.c: init_amd_zen_common()).
    /// Earlier kernels use the former on every machine ([`ReclaimDistance`](crate::topology::ReclaimDistance)).
    pub node_reclaim_distance: u32,
    /// The capacity of each CPU; that of the biggest is [`SCHED_CAPACITY_SCALE`].
    pub capacity: PerCpu<Capacity>,
    /// The cost of running, if it is known.
    pub energy_model: Option<EnergyModel>,
    /// The highest performance of each CPU as firmware reports it (CPPC), where cores differ in it: hybrid processors, and
    /// those with Turbo Boost Max 3.0.
    pub highest_perf: Option<PerCpu<u32>>,
    /// X86_FEATURE_HYBRID_CPU: there are cores of different types.
    pub hybrid: bool,
}

/// The cost of running on each CPU at each frequency (kernel/power/energy_model.c), and whether frequencies follow
/// utilization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyModel {
    /// Each CPU is in at most one.
    pub domains: Vec<EmPerfDomain>,
    /// Whether schedutil governs all CPUs, which energy-aware scheduling requires.
    pub schedutil: bool,
}

/// CPUs of one kind that share a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmPerfDomain {
    pub cpus: CpuMask,
    /// In the order of frequency, at least one.
    pub states: Vec<EmState>,
}

impl EmPerfDomain {
    /// energy_model.c: the states of the domain that em_create_perf_table() marks as inefficient, for CPUs of that capacity.
    pub fn inefficient(&self, rule: EnergyAware, scale_cpu: u64) -> Vec<bool> {
        PerfDomain::em_create_perf_table(rule, self, scale_cpu).inefficient().collect()
    }
}

/// A frequency, and the power that an always busy CPU draws at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmState {
    pub frequency_khz: u64,
    pub power_uw: u64,
}

impl CpuTopology {
    /// Whether firmware reports cores of different highest performance.
    pub fn ranks_cores(&self) -> bool {
        let mut told = self.highest_perf.iter().flat_map(|perf| perf.iter().map(|(_, perf)| perf));
        told.next().is_some_and(|first| told.any(|perf| perf != first))
    }

    /// A machine of equal parts. CPUs are numbered as Linux on x86 does: the first threads of all cores of all packages, in
    /// order, then their second threads. Any two nodes are [`REMOTE_DISTANCE`] apart; edit `distance` for other distances.
    ///
    /// # Panics
    /// If a count is 0 or there are more than [`NR_CPUS`] CPUs.
    pub fn symmetric(
        packages: usize,
        nodes_per_package: usize,
        llcs_per_node: usize,
        cores_per_llc: usize,
        threads_per_core: usize,
    ) -> CpuTopology {
        let nodes = packages * nodes_per_package;
        let cores_per_node = llcs_per_node * cores_per_llc;
        let cores = nodes * cores_per_node;
        let nr_cpus = cores * threads_per_core;
        assert!(nr_cpus > 0, "a machine needs at least one CPU");
        assert!(nr_cpus <= NR_CPUS, "{nr_cpus} CPUs are more than {NR_CPUS}");

        let core_of = |cpu: CpuId| cpu.index() % cores;
        // All CPUs in the same block of `width` consecutive cores as this one.
        let block = |width: usize| {
            PerCpu::from_fn(nr_cpus, |cpu| {
                let first = core_of(cpu) / width * width;
                (0..threads_per_core)
                    .flat_map(|thread| (first..first + width).map(move |core| CpuId::new(thread * cores + core)))
                    .collect::<CpuMask>()
            })
        };
        CpuTopology {
            nr_cpus,
            smt: block(1),
            cluster: block(1),
            coregroup: block(cores_per_llc),
            llc_bytes: PerCpu::from_fn(nr_cpus, |_| 0),
            package: block(cores_per_node * nodes_per_package),
            node: PerCpu::from_fn(nr_cpus, |cpu| (core_of(cpu) / cores_per_node) as u16),
            distance: (0..nodes)
                .map(|from| (0..nodes).map(|to| if from == to { LOCAL_DISTANCE } else { REMOTE_DISTANCE }).collect())
                .collect(),
            node_reclaim_distance: RECLAIM_DISTANCE,
            capacity: PerCpu::from_fn(nr_cpus, |_| SCHED_CAPACITY_SCALE),
            energy_model: None,
            highest_perf: None,
            hybrid: false,
        }
    }

    /// The number of NUMA nodes, including those without CPUs (`nr_node_ids`).
    pub fn nr_nodes(&self) -> usize {
        self.distance.len()
    }

    /// The CPUs of a node; empty for a memory-only node.
    pub fn cpumask_of_node(&self, node: u16) -> CpuMask {
        self.node.iter().filter(|&(_, &of)| of == node).map(|(cpu, _)| cpu).collect()
    }

    /// `node_distance()` between two NUMA nodes.
    pub fn node_distance(&self, from: u16, to: u16) -> u32 {
        self.distance[from as usize][to as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_threads_come_after_all_cores_of_all_packages() {
        let xeon = CpuTopology::symmetric(2, 1, 1, 12, 2);
        assert_eq!(xeon.nr_cpus, 48);
        assert_eq!(xeon.smt[CpuId(0)].list(), "0,24");
        assert_eq!(xeon.smt[CpuId(47)].list(), "23,47");
        assert_eq!(xeon.coregroup[CpuId(0)].list(), "0-11,24-35");
        assert_eq!(xeon.package[CpuId(40)].list(), "12-23,36-47");
        assert_eq!(xeon.node[CpuId(36)], 1);
        assert_eq!(xeon.cpumask_of_node(1).list(), "12-23,36-47");
        assert_eq!(xeon.nr_nodes(), 2);
        assert_eq!((xeon.node_distance(0, 0), xeon.node_distance(0, 1)), (10, 20));
    }

    #[test]
    fn parts_nest() {
        let epyc = CpuTopology::symmetric(2, 4, 2, 3, 2);
        assert_eq!(epyc.nr_cpus, 96);
        assert_eq!(epyc.nr_nodes(), 8);
        for cpu in (0..epyc.nr_cpus).map(CpuId::new) {
            let chain = [&epyc.smt[cpu], &epyc.cluster[cpu], &epyc.coregroup[cpu], &epyc.package[cpu]];
            assert!(chain[0].contains(cpu));
            assert!(chain.windows(2).all(|pair| pair[0].is_subset(pair[1])));
            assert!(epyc.cpumask_of_node(epyc.node[cpu]).is_subset(&epyc.package[cpu]));
            assert_eq!(epyc.capacity[cpu], 1024);
        }
        assert_eq!(epyc.coregroup[CpuId(4)].list(), "3-5,51-53");
    }

    #[test]
    #[should_panic(expected = "at least one CPU")]
    fn an_empty_machine_is_refused() {
        CpuTopology::symmetric(1, 1, 0, 1, 1);
    }
}
