//! fair.c: groups of tasks that share memory, and the node that such a group prefers.

use super::{ActiveNodes, CpuPid, FaultStats, NR_NUMA_HINT_FAULT_STATS};
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::LOCAL_DISTANCE;
use crate::sched::TaskId;
use crate::topology::NumaTopologyType;

/// fair.c: ACTIVE_NODE_FRACTION. A group uses the nodes that have more than this fraction of the most faults on a node.
pub(super) const ACTIVE_NODE_FRACTION: u64 = 3;

/// A group of tasks that share memory and are to be brought together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct NumaGroupId(pub u32);

impl From<u32> for NumaGroupId {
    fn from(number: u32) -> NumaGroupId {
        NumaGroupId(number)
    }
}

impl From<NumaGroupId> for u32 {
    fn from(id: NumaGroupId) -> u32 {
        id.0
    }
}

/// fair.c: struct numa_group.
///
/// Differs: `refcount` is `nr_tasks`, as it always is unless something reads the group; its number stands for its
/// address, and is reused by another group once the last task has left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaGroup {
    pub nr_tasks: u32,
    /// The process number of its first task.
    pub gid: u32,
    /// v4.6
    pub active_nodes: u32,
    /// `active_nodes`, until v4.5: by node.
    pub active_mask: Vec<bool>,
    pub total_faults: u64,
    pub max_faults_cpu: u64,
    /// Like those of a task, but averages only.
    pub faults: Vec<u64>,
}

impl<A: Arch> Sched<A> {
    /// fair.c: task_numa_group_id(). 0: none.
    pub fn task_numa_group_id(&self, p: TaskId) -> u32 {
        self.numa.task(p).and_then(|task| task.numa_group).map_or(0, |group| self.numa.group[group].gid)
    }

    /// fair.c: numa_is_active_node(). Whether the group uses a node.
    pub(super) fn numa_is_active_node(&self, nid: u16, group: super::NumaGroupId) -> bool {
        let of = &self.numa.group[group];
        match self.kernel.numa.active_nodes {
            ActiveNodes::Mask => of.active_mask[usize::from(nid)],
            ActiveNodes::Share => {
                self.numa.group_faults_cpu(group, nid).wrapping_mul(ACTIVE_NODE_FRACTION) > of.max_faults_cpu
            }
        }
    }

    /// Whether the group uses more than one node.
    pub(super) fn is_spread(&self, group: NumaGroupId) -> bool {
        let of = &self.numa.group[group];
        match self.kernel.numa.active_nodes {
            ActiveNodes::Mask => of.active_mask.iter().filter(|&&active| active).count() > 1,
            ActiveNodes::Share => of.active_nodes > 1,
        }
    }

    /// fair.c: numa_group_count_active_nodes(); until v4.5 update_numa_active_node_mask(). Finds the nodes on which the
    /// group runs, by the CPUs that touch its memory, wherever that lies.
    #[doc(alias = "update_numa_active_node_mask")]
    pub(super) fn numa_group_count_active_nodes(&mut self, group: NumaGroupId) {
        let faults: Vec<u64> = self.numa.nids().map(|nid| self.numa.group_faults_cpu(group, nid)).collect();
        let max_faults = faults.iter().copied().max().unwrap_or(0);
        let of = &mut self.numa.group[group];
        for (active, &faults) in of.active_mask.iter_mut().zip(&faults) {
            if !*active {
                *active = faults > max_faults.wrapping_mul(6) / 16;
            } else if faults < max_faults.wrapping_mul(3) / 16 {
                *active = false;
            }
        }
        let shares = faults.iter().filter(|faults| faults.wrapping_mul(ACTIVE_NODE_FRACTION) > max_faults);
        of.active_nodes = shares.count() as u32;
        of.max_faults_cpu = max_faults;
    }

    /// fair.c: task_numa_group(). `p`, which runs here, touched a page that another task touched last. If that task
    /// still runs on the CPU from which it did, the smaller of their groups joins the larger one: for threads of one
    /// process, or if memory is `shared` between processes. Returns whether the fault counts as private after all.
    ///
    /// Differs: groups of equal size are ordered by their numbers instead of their addresses.
    pub(super) fn task_numa_group(&mut self, p: TaskId, last: CpuPid, shared: bool) -> bool {
        let my_group = match self.numa.task[p].numa_group {
            Some(group) => group,
            None => self.begin_numa_group(p),
        };
        self.read_rq_curr(last.cpu());
        let Some(tsk) = self.rq[last.cpu()].curr else { return false };
        if !last.match_pid(self.task_cold[tsk].pid) {
            return false;
        }
        let Some(group) = self.numa.task(tsk).and_then(|task| task.numa_group) else { return false };
        if group == my_group {
            return false;
        }
        let (mine, theirs) = (self.numa.group[my_group].nr_tasks, self.numa.group[group].nr_tasks);
        if mine > theirs || mine == theirs && my_group > group {
            return false;
        }
        let join = self.task[tsk].mm == self.task[p].mm || shared;
        if join {
            self.leave_numa_group(p);
            self.join_numa_group(p, group);
        }
        !join
    }

    /// Creates a group of its own for the task.
    fn begin_numa_group(&mut self, p: TaskId) -> NumaGroupId {
        let mut active_mask = vec![false; self.numa.nodes.len()];
        active_mask[usize::from(self.task_node(p))] = true;
        let group = self.numa.group.insert(NumaGroup {
            gid: self.task_cold[p].pid,
            active_nodes: 1,
            active_mask,
            faults: vec![0; NR_NUMA_HINT_FAULT_STATS * self.numa.nodes.len()],
            ..NumaGroup::default()
        });
        self.join_numa_group(p, group);
        group
    }

    /// Adds the task's averages to the group's.
    fn join_numa_group(&mut self, p: TaskId, group: NumaGroupId) {
        let (task, of) = (&mut self.numa.task[p], &mut self.numa.group[group]);
        for (sum, faults) in of.faults.iter_mut().zip(&task.numa_faults) {
            *sum = sum.wrapping_add(*faults);
        }
        of.total_faults = of.total_faults.wrapping_add(task.total_numa_faults);
        of.nr_tasks += 1;
        task.numa_group = Some(group);
    }

    /// fair.c: put_numa_group(), after the task's averages have been subtracted from the group's.
    #[doc(alias = "put_numa_group")]
    pub(super) fn leave_numa_group(&mut self, p: TaskId) {
        let task = &mut self.numa.task[p];
        let Some(group) = task.numa_group.take() else { return };
        let of = &mut self.numa.group[group];
        for (sum, faults) in of.faults.iter_mut().zip(&task.numa_faults) {
            *sum = sum.wrapping_sub(*faults);
        }
        of.total_faults = of.total_faults.wrapping_sub(task.total_numa_faults);
        of.nr_tasks -= 1;
        if of.nr_tasks == 0 {
            self.numa.group.remove(group);
        }
    }

    /// fair.c: task_numa_free(). A task is gone.
    pub(crate) fn task_numa_free(&mut self, p: TaskId) {
        if p.index() < self.numa.task.len() {
            self.leave_numa_group(p);
            self.numa.task.reset(p);
        }
    }

    /// fair.c: preferred_group_nid(). The node that a group prefers; `nid` has most of its memory. Nearby nodes count
    /// too, so that the result agrees with `group_weight()`.
    pub(super) fn preferred_group_nid(&self, p: TaskId, nid: Option<u16>) -> Option<u16> {
        match self.domains.numa.sched_numa_topology_type {
            NumaTopologyType::Direct => nid,
            NumaTopologyType::GluelessMesh => {
                let dist = self.domains.numa.sched_max_numa_distance;
                let (mut best, mut max_score) = (nid, 0);
                for node in self.preferable_nodes() {
                    let score = self.group_weight(p, node, dist);
                    if score > max_score {
                        (best, max_score) = (Some(node), score);
                    }
                }
                best
            }
            NumaTopologyType::Backplane => self.best_of_best_nodes(p, nid),
        }
    }

    /// `for_each_online_node()`; in kernels that treat memory-only nodes separately, the nodes with CPUs.
    pub(super) fn preferable_nodes(&self) -> Vec<u16> {
        let any = self.kernel.numa.memory_nodes == super::MemoryNodes::AsOthers;
        self.numa.nids().filter(|&nid| any || self.numa.has_cpus(nid)).collect()
    }

    /// preferred_group_nid() with a backplane: among sets of nodes that are near each other, takes the one with most of
    /// the group's memory; then again among nearer sets within it, and so on down to one node.
    fn best_of_best_nodes(&self, p: TaskId, nid: Option<u16>) -> Option<u16> {
        let numa = &self.domains.numa;
        let mut best = nid;
        let mut nodes = self.preferable_nodes();
        for dist in (LOCAL_DISTANCE + 1..=numa.sched_max_numa_distance).rev() {
            if !numa.find_numa_distance(dist) {
                continue;
            }
            let (mut max_faults, mut max_group) = (0, Vec::new());
            let mut left = nodes.clone();
            while let Some(&a) = left.first() {
                let (near, far): (Vec<u16>, Vec<u16>) =
                    left.iter().partition(|&&b| self.topology.node_distance(a, b) < dist);
                let faults = near.iter().map(|&b| self.numa.group_faults(p, b)).fold(0, u64::wrapping_add);
                if faults > max_faults {
                    (max_faults, max_group, best) = (faults, near, Some(a));
                }
                left = far;
            }
            if max_faults == 0 {
                break;
            }
            nodes = max_group;
        }
        best
    }

    /// Adds the changes of a task's averages to its group's.
    pub(super) fn add_to_group(&mut self, group: NumaGroupId, nid: u16, private: bool, mem: i64, cpu: i64) {
        let mem_idx = self.numa.task_faults_idx(FaultStats::Mem, nid, private);
        let cpu_idx = self.numa.task_faults_idx(FaultStats::Cpu, nid, private);
        let of = &mut self.numa.group[group];
        of.faults[mem_idx] = of.faults[mem_idx].wrapping_add_signed(mem);
        of.faults[cpu_idx] = of.faults[cpu_idx].wrapping_add_signed(cpu);
        of.total_faults = of.total_faults.wrapping_add_signed(mem);
    }
}
