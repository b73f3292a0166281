//! fair.c: SD_ASYM_PACKING between groups: CPUs of high priority take over from those of low priority.

use super::groups::{SdLbStats, SgLbStats};
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::balance::{LbEnv, MisfitStatus, PackingOrder};
use crate::topology::{SdFlags, SdId, SgId};
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// fair.c: sched_group_asym(). Whether the idle `dst_cpu` is a better place than the group.
    ///
    /// Differs: the order by CPU numbers, which kernels with group types never had, is treated as the plain order of
    /// priorities.
    pub(super) fn sched_group_asym(&mut self, env: &LbEnv, sds: &SdLbStats, sgs: &SgLbStats, group: SgId) -> bool {
        if !self.domains[env.sd].flags.has(SdFlags::SD_ASYM_PACKING) {
            return false;
        }
        let preferred = self.packing_cpu(group);
        match self.kernel.balance.asym_packing {
            PackingOrder::LowestCpu | PackingOrder::Priority => self.sched_asym_prefer(env.dst_cpu, preferred),
            PackingOrder::PriorityAndSiblings => {
                let local = sds.local.expect("the ring of groups begins with the local one");
                if self.is_smt_group(local) || self.is_smt_group(group) {
                    self.asym_smt_can_pull_tasks(env.dst_cpu, sds, sgs, group)
                } else {
                    self.sched_asym_prefer(env.dst_cpu, preferred)
                }
            }
            PackingOrder::IdleCores => {
                let one_busy = sgs.group_weight - sgs.idle_cpus == 1;
                (one_busy || !self.is_smt_group(group)) && self.sched_asym(env.sd, env.dst_cpu, preferred)
            }
        }
    }

    /// fair.c: asym_smt_can_pull_tasks(). The same between cores, at least one of which has several threads (v5.16).
    fn asym_smt_can_pull_tasks(&self, dst_cpu: CpuId, sds: &SdLbStats, sgs: &SgLbStats, sg: SgId) -> bool {
        let local = sds.local.expect("the ring of groups begins with the local one");
        let sg_busy_cpus = sgs.group_weight - sgs.idle_cpus;
        let prefers = || self.sched_asym_prefer(dst_cpu, self.packing_cpu(sg));
        if !self.is_smt_group(local) {
            return sg_busy_cpus >= 2 || prefers();
        }
        if self.is_smt_group(sg) {
            let local_busy_cpus = self.domains[local].group_weight - sds.local_stat.idle_cpus;
            return sg_busy_cpus == local_busy_cpus + 1 && prefers();
        }
        sds.local_stat.sum_nr_running == 0 && prefers()
    }

    /// fair.c: sched_use_asym_prio(). Whether the priority of `cpu` counts: between cores only if its own core is idle
    /// (v6.5).
    pub(in crate::fair) fn sched_use_asym_prio(&mut self, sd: SdId, cpu: CpuId) -> bool {
        let flags = self.domains[sd].flags;
        flags.has(SdFlags::SD_ASYM_PACKING)
            && (!self.sched_smt_active() || flags.has(SdFlags::SD_SHARE_CPUCAPACITY) || self.is_core_idle(cpu))
    }

    /// fair.c: sched_asym(). Whether `dst_cpu` can take over from `src_cpu` (v6.8).
    pub(in crate::fair) fn sched_asym(&mut self, sd: SdId, dst_cpu: CpuId, src_cpu: CpuId) -> bool {
        self.sched_use_asym_prio(sd, dst_cpu) && self.sched_asym_prefer(dst_cpu, src_cpu)
    }

    /// Whether `sg` has the lower priority of two groups to pull from.
    pub(super) fn asym_pick_busiest(&self, sds: &SdLbStats, sg: SgId) -> bool {
        let Some(busiest) = sds.busiest else { return true };
        let (busiest, sg) = (self.packing_cpu(busiest), self.packing_cpu(sg));
        match self.kernel.balance.misfit_status {
            MisfitStatus::AnyMisfit => self.sched_asym_prefer(busiest, sg),
            MisfitStatus::WhereHelpful => !self.sched_asym_prefer(sg, busiest),
        }
    }
}
