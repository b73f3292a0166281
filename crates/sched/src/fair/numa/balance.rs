//! fair.c: what load balancing between nodes asks about the memory of tasks.

use super::{EqualLocality, Locality};
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use crate::topology::CpuIdleType;
use units::CpuId;

/// fair.c: enum fbq_type. Which queues tasks are taken from first, so that those stay that are where they should be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(in crate::fair) enum FbqType {
    /// Those with tasks that prefer no node.
    Regular,
    /// Those with tasks that prefer another.
    Remote,
    #[default]
    All,
}

impl FbqType {
    /// fair.c: fbq_classify_group(), fbq_classify_rq(): of `nr_running` tasks some prefer a node, and some are there.
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

    /// fair.c: migrate_degrades_locality(). Whether a task, moved from one CPU to the other across a level of nodes, would be
    /// farther from its memory; `None` where that is not the question.
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
            // One of the others should go, if there are others.
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
