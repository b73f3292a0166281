//! mm/mempolicy.c: which nodes a task's memory may come from. Modelled: MPOL_BIND of a task (`set_mempolicy()`), which is what
//! numa_set_membind() asks for. Absent: its other modes, policies of areas (mbind()), cpusets' nodes.

use super::Memory;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;

impl Memory {
    /// mempolicy.c: do_set_mempolicy() with MPOL_BIND. What `task` touches first lies on one of `nodes` from now on; what is there
    /// already stays.
    pub fn set_membind(&mut self, task: TaskId, nodes: Vec<u16>) {
        assert!(!nodes.is_empty(), "a task has its memory somewhere");
        if self.bound.len() <= task.index() {
            self.bound.resize_with(task.index() + 1, || None);
        }
        self.bound[task.index()] = Some(nodes);
    }

    /// fork.c: copy_process(), its mpol_dup(): a child's memory comes from where its creator's does.
    pub fn mpol_dup(&mut self, parent: Option<TaskId>, child: TaskId) {
        match parent.and_then(|parent| self.membind(parent)).map(<[u16]>::to_vec) {
            Some(nodes) => self.set_membind(child, nodes),
            // Its number was another's.
            None => self.bound.iter_mut().skip(child.index()).take(1).for_each(|bound| *bound = None),
        }
    }

    /// The nodes that a task's memory must come from; `None`: any.
    fn membind(&self, task: TaskId) -> Option<&[u16]> {
        self.bound.get(task.index())?.as_deref()
    }

    /// mempolicy.c: vma_policy_mof(). Whether NUMA balancing may take what `task` touches away, and move it to it: a bound task's
    /// memory stays where it was bound to.
    pub(super) fn vma_policy_mof(&self, task: TaskId) -> bool {
        self.membind(task).is_none()
    }

    /// mempolicy.c: policy_node() and policy_nodemask(). The node that a page comes from which `task` touches first on `local`: that one,
    /// or the nearest that it is bound to.
    ///
    /// Differs: of nodes as far away the kernel takes another one for each node that asks (node_load of build_zonelists()), here
    /// it is the next by number.
    #[doc(alias = "policy_nodemask")]
    pub(super) fn policy_node<S: Scheduler>(&self, sched: &S, task: TaskId, local: u16) -> u16 {
        let by_distance = |node: &&u16| (sched.node_distance(local, **node), **node < local, **node);
        self.membind(task).and_then(|nodes| nodes.iter().min_by_key(by_distance)).copied().unwrap_or(local)
    }
}
