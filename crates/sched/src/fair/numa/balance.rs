//! fair.c: what load balancing between nodes needs to know about the memory of tasks.

use super::{EqualLocality, Locality};
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use crate::topology::CpuIdleType;
use units::CpuId;

/// fair.c: enum fbq_type. From which queues tasks are taken first, so that tasks on their preferred node stay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(in crate::fair) enum FbqType {
    /// Queues with tasks that prefer no node.
    Regular,
    /// Queues with tasks that prefer another node.
    Remote,
    #[default]
    All,
}

impl FbqType {
    /// fair.c: fbq_classify_group(), fbq_classify_rq(): classifies `nr_running` tasks by how many prefer a node, and
    /// how many of these are on it.
    #[doc(alias = "fbq_classify_group")]
    #[doc(alias = "fbq_classify_rq")]
    pub(in crate::fair) fn classify(nr_running: u32, nr_numa_running: u32, nr_preferred_running: u32) -> FbqType {
        if nr_running > nr_numa_running {
            FbqType::Regular
        } else if nr_running > nr_preferred_running {
            FbqType::Remote
        } else {
            FbqType::All
        }
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: fbq_classify_rq().
    pub(in crate::fair) fn fbq_classify_rq(&self, cpu: CpuId) -> FbqType {
        let rq = &self.numa.rq[cpu];
        FbqType::classify(self.rq[cpu].nr_running, rq.nr_numa_running, rq.nr_preferred_running)
    }

    /// fair.c: migrate_degrades_locality(). Whether a task, moved from one CPU to the other across a level of nodes,
    /// would be farther from its memory; `None` if memory does not decide.
    pub(in crate::fair) fn migrate_degrades_locality(
        &self,
        p: TaskId,
        src_cpu: CpuId,
        dst_cpu: CpuId,
        idle: CpuIdleType,
    ) -> Option<bool> {
        let task = self.numa.task(p)?;
        let (src, dst) = (self.cpu_to_node(src_cpu), self.cpu_to_node(dst_cpu));
        if task.numa_faults.is_empty() || src == dst {
            return None;
        }
        if task.numa_preferred_nid == Some(src) {
            // One of the other tasks should go, if there are any.
            return (self.rq[src_cpu].nr_running > self.numa.rq[src_cpu].nr_preferred_running).then_some(true);
        }
        if task.numa_preferred_nid == Some(dst) {
            return Some(false);
        }
        match self.kernel.numa.locality {
            Locality::FaultsIfBusy if idle != CpuIdleType::NotIdle => return None,
            Locality::WeightsUnlessIdle if idle == CpuIdleType::Idle => return None,
            _ => {}
        }
        let group = task.numa_group.is_some();
        let degrades = match self.kernel.numa.locality {
            Locality::Faults | Locality::FaultsIfBusy if group => {
                self.numa.group_faults(p, dst) < self.numa.group_faults(p, src)
            }
            Locality::Faults | Locality::FaultsIfBusy => self.numa.task_faults(p, dst) < self.numa.task_faults(p, src),
            Locality::WeightsUnlessIdle => {
                let dist = self.topology.node_distance(src, dst);
                let weight = |nid| {
                    if group { self.group_weight(p, nid, dist) } else { self.task_weight(p, nid, dist) }
                };
                let (src, dst) = (weight(src), weight(dst));
                if src == dst && self.kernel.numa.equal_locality == EqualLocality::MayBeHot {
                    return None;
                }
                dst < src
            }
        };
        Some(degrades)
    }
}
