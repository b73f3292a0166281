//! fair.c: whether a touched page moves to the node of the CPU that touched it.

use super::{ActiveNodes, EarlyMigration};
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use units::CpuId;

/// mm.h: the task that had the last hinting fault of a page, and where: the CPU's number above the last 8 bits of the
/// task's (LAST__PID_SHIFT). All ones (-1 & LAST_CPUPID_MASK): no task yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuPid(u32);

const LAST_PID_BITS: u32 = 8;
const LAST_PID_MASK: u32 = (1 << LAST_PID_BITS) - 1;

impl CpuPid {
    pub const UNSET: CpuPid = CpuPid(u32::MAX);

    /// `cpu_pid_to_cpupid()`
    pub fn new(cpu: CpuId, pid: u32) -> CpuPid {
        CpuPid(u32::from(cpu.0) << LAST_PID_BITS | pid & LAST_PID_MASK)
    }

    /// `cpupid_pid_unset()`. Also true for a page whose last task has a number that ends in all ones.
    pub fn pid_unset(self) -> bool {
        self.0 & LAST_PID_MASK == LAST_PID_MASK
    }

    /// `cpupid_match_pid()`
    pub fn match_pid(self, pid: u32) -> bool {
        self.0 & LAST_PID_MASK == pid & LAST_PID_MASK
    }

    /// `cpupid_to_cpu()`, for a value that is set.
    pub fn cpu(self) -> CpuId {
        CpuId((self.0 >> LAST_PID_BITS) as u16)
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: should_numa_migrate_memory(). Whether a page of `src_nid` moves to the node of the CPU on which `p`
    /// touches it. `page` names the last task that touched it, and becomes `p`.
    ///
    /// A sample finds a page with the probability p with which a task uses it, and finds it twice in a row with the
    /// probability p squared. Requiring two hits therefore filters out unlikely relations.
    ///
    /// Differs: nodes always have memory, all of the same speed.
    pub(crate) fn should_numa_migrate_memory(
        &mut self,
        p: TaskId,
        page: &mut CpuPid,
        src_nid: u16,
        dst_cpu: CpuId,
    ) -> bool {
        let dst_nid = self.cpu_to_node(dst_cpu);
        let pid = self.task_cold[p].pid;
        let last = std::mem::replace(page, CpuPid::new(dst_cpu, pid));
        let task = &self.numa.task[p];
        let young = task.numa_preferred_nid.is_none() || task.numa_scan_seq <= 4;
        let at_once = self.kernel.numa.early_migration == EarlyMigration::AtOnce;
        if at_once && young && (last.pid_unset() || last.match_pid(pid)) {
            return true;
        }
        if !last.pid_unset() && self.cpu_to_node(last.cpu()) != dst_nid {
            return false;
        }
        if last.match_pid(pid) {
            return true;
        }
        let Some(group) = task.numa_group else { return true };
        let numa = &self.numa;
        let (src_mem, dst_mem) = (numa.group_faults(p, src_nid), numa.group_faults(p, dst_nid));
        if self.kernel.numa.active_nodes == ActiveNodes::Mask {
            let active = |nid: u16| numa.group[group].active_mask[usize::from(nid)];
            // Between nodes of the group, move from one with much of its memory to one with little.
            return active(dst_nid) && (!active(src_nid) || dst_mem < src_mem * 3 / 4);
        }
        let (src_cpu, dst_cpu) = (numa.group_faults_cpu(group, src_nid), numa.group_faults_cpu(group, dst_nid));
        if dst_cpu > src_cpu.wrapping_mul(super::group::ACTIVE_NODE_FRACTION) {
            return true;
        }
        // Memory in proportion to CPU use, with a margin of a quarter.
        dst_cpu.wrapping_mul(src_mem).wrapping_mul(3) > src_cpu.wrapping_mul(dst_mem).wrapping_mul(4)
    }
}
