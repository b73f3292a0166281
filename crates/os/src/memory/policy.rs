//! mm/mempolicy.c: which nodes a task's memory may come from. Modelled: MPOL_BIND of a task (`set_mempolicy()`), which is what
//! numa_set_membind() asks for. Absent: its other modes, policies of areas (mbind()), cpusets' nodes.

use super::Memory;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;

impl Memory {
    /// mempolicy.c: do_set_mempolicy() with MPOL_BIND. From now on, memory that `task` touches first is allocated on
    /// one of `nodes`; what is there already stays.
    pub fn set_membind(&mut self, task: TaskId, nodes: Vec<u16>) {
        assert!(!nodes.is_empty(), "a task has its memory somewhere");
        if self.bound.len() <= task.index() {
            self.bound.resize_with(task.index() + 1, || None);
        }
        self.bound[task.index()] = Some(nodes);
    }

    /// fork.c: copy_process(), its mpol_dup(): a child inherits the policy of its creator.
    pub fn mpol_dup(&mut self, parent: Option<TaskId>, child: TaskId) {
        match parent.and_then(|parent| self.membind(parent)).map(<[u16]>::to_vec) {
            Some(nodes) => self.set_membind(child, nodes),
            // The number may have been another task's.
            None => self.bound.iter_mut().skip(child.index()).take(1).for_each(|bound| *bound = None),
        }
    }

    /// The nodes to which a task's memory is bound; `None`: any.
    fn membind(&self, task: TaskId) -> Option<&[u16]> {
        self.bound.get(task.index())?.as_deref()
    }

    /// mempolicy.c: vma_policy_mof(). Whether NUMA balancing may unmap the memory of `task`, and move it: a bound
    /// task's memory stays where it was bound.
    pub(super) fn vma_policy_mof(&self, task: TaskId) -> bool {
        self.membind(task).is_none()
    }

    /// mempolicy.c: policy_node() and policy_nodemask(). The node on which a page is allocated that `task` touches
    /// first on `local`: `local` itself, or the nearest of the nodes to which it is bound.
    ///
    /// Differs: among nodes at the same distance the kernel chooses a different one for each asking node (node_load of
    /// build_zonelists()); here it is the next by number after the asking node.
    #[doc(alias = "policy_nodemask")]
    pub(super) fn policy_node<S: Scheduler>(&self, sched: &S, task: TaskId, local: u16) -> u16 {
        let by_distance = |node: &&u16| (sched.node_distance(local, **node), **node < local, **node);
        self.membind(task).and_then(|nodes| nodes.iter().min_by_key(by_distance)).copied().unwrap_or(local)
    }
}
