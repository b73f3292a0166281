//! fair.c: NUMA balancing: brings tasks to the nodes of the memory they touch, and memory to its tasks.
//!
//! What a task touches is learned by sampling. A scanner, which is the task itself on its way back to user mode, unmaps
//! a stretch of its memory; the next touch of a page there faults. The fault counts: on which node the page lies, on
//! which CPU it was touched, and whether the same task touched it the last time. Averages of these counts tell on which
//! node a task, or a group of tasks that share memory, should run.
//!
//! ```text
//! mod.rs           state; faults of tasks, groups and nodes; nearby nodes
//! scan.rs          task_tick_numa, task_numa_work: which stretch of memory is unmapped, and when
//! periods.rs       arithmetic of scan periods
//! fault.rs         task_numa_fault, task_numa_placement: counts, averages, the preferred node
//! group.rs         task_numa_group: tasks that share memory; preferred_group_nid
//! memory.rs        should_numa_migrate_memory: whether a page moves, too
//! migrate.rs       task_numa_migrate: to the preferred node, or a second best; core.c's part of it
//! by_capacity.rs   the place on a node, until v4.16
//! by_load.rs       the place on a node, in v4.19 and v5.4
//! by_node_type.rs  the place on a node, from v5.7 on
//! balance.rs       what load balancing needs: migrate_degrades_locality, fbq_type
//! ```
//!
//! The memory itself, its pages and page tables, belongs to the rest of the kernel: [`PageTables`] is the interface to
//! it. A process that maps no memory there is never scanned, and while none does, all of this costs a branch.
//!
//! Absent: memory tiering (`numa_balancing=2`, promotion of hot pages), memory policies other than MPOL_BIND of a task,
//! full nodes, and the limit of a thirty-second on the CPU time of scans (`32 * diff`; here a scan ends before the
//! clock moves).

mod balance;
mod by_capacity;
mod by_load;
mod by_node_type;
mod fault;
mod group;
mod memory;
mod migrate;
mod periods;
mod rules;
mod scan;
#[cfg(test)]
mod tests;

pub(in crate::fair) use balance::FbqType;
pub use fault::HintingFault;
pub use group::{NumaGroup, NumaGroupId};
pub use memory::CpuPid;
pub use rules::*;
pub use scan::{NumaMm, PageTables, Vma};

use crate::arch::Arch;
use crate::arena::Arena;
use crate::core::Sched;
use crate::cpu_topology::{CpuTopology, LOCAL_DISTANCE};
use crate::sched::{TaskId, TaskState};
use crate::sysctl::Sysctl;
use crate::topology::NumaTopologyType;
pub(crate) use migrate::MigrationSwap;
use periods::Sharing;
use std::collections::BTreeMap;
use units::{CpuId, CpuMask, PerCpu, unlikely};

/// sched.h: enum numa_faults_stats. Pages by the node they lie on, and by the node that touched them: averages, then
/// what has come since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FaultStats {
    Mem,
    Cpu,
    MemBuf,
    CpuBuf,
}

/// fair.c: NR_NUMA_HINT_FAULT_STATS, NR_NUMA_HINT_FAULT_BUCKETS, for each node.
const NR_NUMA_HINT_FAULT_STATS: usize = 4;
const NR_NUMA_HINT_FAULT_BUCKETS: usize = 8;

/// The fields of struct task_struct for NUMA balancing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaTask {
    /// The scan of the whole memory for which its faults were last averaged.
    pub numa_scan_seq: u32,
    /// In ms of run time.
    pub numa_scan_period: u64,
    pub numa_scan_period_max: u64,
    pub numa_preferred_nid: Option<u16>,
    /// Jiffies.
    pub numa_migrate_retry: u64,
    /// The run time from which the next period counts, in ns.
    pub node_stamp: u64,
    /// `exec_start` and `sum_exec_runtime` at the last placement, in ns.
    pub last_task_numa_placement: u64,
    pub last_sum_exec_runtime: u64,
    /// Whether `numa_work` is queued: the task scans on its way to user mode.
    pub numa_work: bool,
    pub numa_group: Option<NumaGroupId>,
    /// Pages, by [`FaultStats`], node, and whether private. Empty before the first fault.
    pub numa_faults: Vec<u64>,
    pub total_numa_faults: u64,
    /// Remote faults, local faults, and faults on pages that could not be moved, since the period was adjusted.
    pub numa_faults_locality: [u64; 3],
    pub numa_pages_migrated: u64,
}

/// The fields of struct rq for NUMA balancing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumaRq {
    /// How many queued tasks prefer a node, and how many of them are on it.
    pub nr_numa_running: u32,
    pub nr_preferred_running: u32,
    /// Whether a task is migrating here (v4.20).
    pub numa_migrate_on: bool,
}

/// The state of a walk over the CPUs of a node. It borrows nothing, because the scheduler changes between two steps.
struct NodeWalk {
    nid: u16,
    from: usize,
}

impl NodeWalk {
    fn of(nid: u16) -> NodeWalk {
        NodeWalk { nid, from: 0 }
    }
}

/// NUMA balancing of one machine.
#[derive(Clone, Debug, Default)]
pub struct Numa {
    /// Static key sched_numa_balancing, and some process has mapped memory.
    on: bool,
    enabled: bool,
    /// Whether some process ever has: there may be preferred nodes.
    used: bool,
    pub task: Arena<TaskId, NumaTask>,
    pub rq: PerCpu<NumaRq>,
    pub mm: BTreeMap<u32, NumaMm>,
    pub group: Arena<NumaGroupId, NumaGroup>,
    swaps: Vec<Option<MigrationSwap>>,
    /// CPUs of each node.
    nodes: Vec<CpuMask>,
}

impl Numa {
    /// `check_numabalancing_enable()`: on if there is more than one node.
    ///
    /// Differs: `numa_balancing=enable` does not switch it on with one node, where it could do nothing but scan.
    pub(crate) fn new(topology: &CpuTopology, sysctl: &Sysctl) -> Numa {
        let nodes = (0..topology.nr_nodes()).map(|node| topology.cpumask_of_node(node as u16)).collect::<Vec<_>>();
        Numa {
            enabled: sysctl.numa_balancing != 0 && nodes.len() > 1,
            rq: PerCpu::from_fn(topology.nr_cpus, |_| NumaRq::default()),
            nodes,
            ..Numa::default()
        }
    }

    /// core.c: set_numabalancing_state(), for `echo 0 > /proc/sys/kernel/numa_balancing` at run time.
    pub fn set_numabalancing_state(&mut self, enabled: bool) {
        self.enabled = enabled && self.nodes.len() > 1;
        self.on = self.enabled && self.used;
    }

    /// Whether tasks are scanned: balancing is enabled, and there is memory to scan.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether some task may prefer a node.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        unlikely(self.used)
    }

    /// The first memory is mapped.
    fn begin(&mut self) {
        self.used = true;
        self.on = self.enabled;
    }

    /// fair.c: task_faults_idx().
    fn task_faults_idx(&self, stats: FaultStats, nid: u16, private: bool) -> usize {
        2 * (stats as usize * self.nodes.len() + usize::from(nid)) + usize::from(private)
    }

    /// Private and shared pages of `stats` on a node.
    fn sum(&self, faults: &[u64], stats: FaultStats, nid: u16) -> u64 {
        let at = |private| faults[self.task_faults_idx(stats, nid, private)];
        at(false).wrapping_add(at(true))
    }

    /// Nodes of memory or CPUs (`for_each_online_node`).
    fn nids(&self) -> impl Iterator<Item = u16> + use<> {
        0..self.nodes.len() as u16
    }

    /// cpumask_of_node().
    pub(crate) fn cpumask_of_node(&self, nid: u16) -> &CpuMask {
        &self.nodes[usize::from(nid)]
    }

    /// node_state(nid, N_CPU)
    fn has_cpus(&self, nid: u16) -> bool {
        !self.nodes[usize::from(nid)].is_empty()
    }

    /// Averages of the pages that lie on a node and were touched by the task, private and shared ones; zeros for a task
    /// without faults (debug.c: print_numa_stats()).
    pub fn faults_on(&self, p: TaskId, nid: u16) -> (u64, u64) {
        self.private_and_shared(self.task(p).map_or(&[], |task| &task.numa_faults), nid)
    }

    /// The same for the task's group.
    pub fn group_faults_on(&self, p: TaskId, nid: u16) -> (u64, u64) {
        let group = self.task(p).and_then(|task| task.numa_group);
        self.private_and_shared(group.map_or(&[], |group| &self.group[group].faults), nid)
    }

    fn private_and_shared(&self, faults: &[u64], nid: u16) -> (u64, u64) {
        if faults.is_empty() {
            return (0, 0);
        }
        let at = |private| faults[self.task_faults_idx(FaultStats::Mem, nid, private)];
        (at(true), at(false))
    }

    /// What is kept about a task, if anything.
    pub fn task(&self, p: TaskId) -> Option<&NumaTask> {
        (p.index() < self.task.len()).then(|| &self.task[p])
    }

    /// fair.c: task_faults(). The pages of a node that the task touched.
    fn task_faults(&self, p: TaskId, nid: u16) -> u64 {
        match self.task(p) {
            Some(task) if !task.numa_faults.is_empty() => self.sum(&task.numa_faults, FaultStats::Mem, nid),
            _ => 0,
        }
    }

    /// fair.c: group_faults().
    fn group_faults(&self, p: TaskId, nid: u16) -> u64 {
        let group = self.task(p).and_then(|task| task.numa_group);
        group.map_or(0, |group| self.sum(&self.group[group].faults, FaultStats::Mem, nid))
    }

    /// fair.c: group_faults_cpu(). Touches by CPUs of a node, weighted by run time.
    fn group_faults_cpu(&self, group: NumaGroupId, nid: u16) -> u64 {
        self.sum(&self.group[group].faults, FaultStats::Cpu, nid)
    }

    /// fair.c: group_faults_priv() and group_faults_shared(), with the number of tasks in the group.
    #[doc(alias = "group_faults_priv")]
    #[doc(alias = "group_faults_shared")]
    fn sharing(&self, group: NumaGroupId) -> Sharing {
        let group = &self.group[group];
        let sum = |private| {
            let at = |nid| group.faults[self.task_faults_idx(FaultStats::Mem, nid, private)];
            self.nids().map(at).fold(0, u64::wrapping_add)
        };
        Sharing { tasks: u64::from(group.nr_tasks), private: sum(true), shared: sum(false) }
    }
}

impl<A: Arch> Sched<A> {
    /// `for_each_cpu(cpu, cpumask_of_node(nid))`: the next CPU of the node, in ascending order; offline CPUs belong to
    /// no node.
    fn next_of_node(&self, walk: &mut NodeWalk) -> Option<CpuId> {
        loop {
            let cpu = self.numa.cpumask_of_node(walk.nid).next_from(walk.from)?;
            walk.from = cpu.index() + 1;
            if self.cpu_online_mask.contains(cpu) {
                return Some(cpu);
            }
        }
    }

    /// `p->numa_preferred_nid`
    #[inline]
    pub(crate) fn numa_preferred_nid(&self, p: TaskId) -> Option<u16> {
        self.numa.task(p).and_then(|task| task.numa_preferred_nid)
    }

    /// topology.h: cpu_to_node().
    #[inline]
    pub(crate) fn cpu_to_node(&self, cpu: CpuId) -> u16 {
        self.topology.node[cpu]
    }

    /// sched.h: task_node().
    #[inline]
    pub(crate) fn task_node(&self, p: TaskId) -> u16 {
        self.topology.node[self.task[p].cpu]
    }

    /// fair.c: account_numa_enqueue().
    pub(in crate::fair) fn account_numa_enqueue(&mut self, cpu: CpuId, p: TaskId) {
        let preferred = self.numa_preferred_nid(p);
        let there = preferred == Some(self.task_node(p));
        let rq = &mut self.numa.rq[cpu];
        rq.nr_numa_running += u32::from(preferred.is_some());
        rq.nr_preferred_running += u32::from(there);
    }

    /// fair.c: account_numa_dequeue().
    pub(in crate::fair) fn account_numa_dequeue(&mut self, cpu: CpuId, p: TaskId) {
        let preferred = self.numa_preferred_nid(p);
        let there = preferred == Some(self.task_node(p));
        let rq = &mut self.numa.rq[cpu];
        rq.nr_numa_running -= u32::from(preferred.is_some());
        rq.nr_preferred_running -= u32::from(there);
    }

    /// fair.c: score_nearby_nodes(). Faults on the nodes around one, on a machine whose nodes are not all equally far
    /// apart.
    fn score_nearby_nodes(&self, p: TaskId, nid: u16, lim_dist: u32, task: bool) -> u64 {
        let numa = &self.domains.numa;
        let kind = numa.sched_numa_topology_type;
        if kind == NumaTopologyType::Direct {
            return 0;
        }
        let max_dist = numa.sched_max_numa_distance;
        let mut score: u64 = 0;
        for node in self.numa.nids() {
            let dist = self.topology.node_distance(nid, node);
            // The farthest nodes do not matter, and `nid` itself has been counted.
            if dist >= max_dist || node == nid {
                continue;
            }
            let too_far = match self.kernel.numa.nearby_nodes {
                NearbyNodes::UpToDistance => dist > lim_dist,
                NearbyNodes::Nearer => dist >= lim_dist,
            };
            if kind == NumaTopologyType::Backplane && too_far {
                continue;
            }
            let faults = if task { self.numa.task_faults(p, node) } else { self.numa.group_faults(p, node) };
            let counts = match kind {
                NumaTopologyType::GluelessMesh => {
                    faults * u64::from(max_dist - dist) / u64::from(max_dist - LOCAL_DISTANCE)
                }
                NumaTopologyType::Backplane | NumaTopologyType::Direct => faults,
            };
            score = score.wrapping_add(counts);
        }
        score
    }

    /// fair.c: task_weight(). The share of a task's memory on and near a node, in thousandths.
    fn task_weight(&self, p: TaskId, nid: u16, dist: u32) -> i64 {
        let total = self.numa.task(p).map_or(0, |task| task.total_numa_faults);
        if total == 0 {
            return 0;
        }
        let faults = self.numa.task_faults(p, nid).wrapping_add(self.score_nearby_nodes(p, nid, dist, true));
        (faults.wrapping_mul(1000) / total) as i64
    }

    /// fair.c: group_weight(). The same for the task's group.
    fn group_weight(&self, p: TaskId, nid: u16, dist: u32) -> i64 {
        let group = self.numa.task(p).and_then(|task| task.numa_group);
        let total = group.map_or(0, |group| self.numa.group[group].total_faults);
        if total == 0 {
            return 0;
        }
        let faults = self.numa.group_faults(p, nid).wrapping_add(self.score_nearby_nodes(p, nid, dist, false));
        (faults.wrapping_mul(1000) / total) as i64
    }

    /// jiffies.h: msecs_to_jiffies().
    fn msecs_to_jiffies(&self, ms: u64) -> u64 {
        (ms * self.hz).div_ceil(1000)
    }

    /// `p->flags & PF_EXITING`
    pub(in crate::fair) fn is_exiting(&self, p: TaskId) -> bool {
        self.task[p].exiting || self.task[p].state == TaskState::Dead
    }
}
