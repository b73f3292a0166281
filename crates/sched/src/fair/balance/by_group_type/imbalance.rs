//! fair.c: find_busiest_group(): whether there is an imbalance, what is to move against it, and from which queue.

use super::groups::{GroupType, SdLbStats, capacity_greater};
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::fair::balance::{
    AboveAverage, AsymCompare, BusiestUtil, EmptyQueues, LbEnv, MigrationType, PackingOrder, SiblingImbalance,
    SoleTask, UtilPull,
};
use crate::topology::{CpuIdleType, ImbNumaNr, SdFlags, SgId};
use fentry::fentry;
use units::CpuId;

const SCALE: u64 = SCHED_CAPACITY_SCALE as u64;

/// fair.c: NUMA_IMBALANCE_MIN. Two tasks that communicate may stay on one node.
const NUMA_IMBALANCE_MIN: i64 = 2;

/// fair.c: adjust_numa_imbalance(). While a node runs at most `imb_numa_nr` tasks, having two more than elsewhere is no
/// imbalance; under [`ImbNumaNr::Pair`] nothing is while it runs two. Under [`ImbNumaNr::Quarter`] the node's CPUs are passed.
pub(in crate::fair) fn adjust_numa_imbalance(rule: ImbNumaNr, imbalance: i64, running: u32, imb_numa_nr: u32) -> i64 {
    let allowed = match rule {
        ImbNumaNr::Pair => i64::from(running) <= NUMA_IMBALANCE_MIN,
        ImbNumaNr::Quarter => allow_numa_imbalance(running, imb_numa_nr) && imbalance <= NUMA_IMBALANCE_MIN,
        ImbNumaNr::Absent | ImbNumaNr::ByLlcs => running <= imb_numa_nr && imbalance <= NUMA_IMBALANCE_MIN,
    };
    if allowed { 0 } else { imbalance }
}

/// fair.c: allow_numa_imbalance(), of v5.11 to v5.17. Whether less than a quarter of a node's CPUs would be busy.
pub(in crate::fair) fn allow_numa_imbalance(running: u32, weight: u32) -> bool {
    running < weight >> 2
}

impl<A: Arch> Sched<A> {
    /// fair.c: sibling_imbalance(). By how many tasks the busiest group exceeds the local one; if the numbers of cores
    /// differ (v6.6), as an average over both groups' cores, rounded.
    fn sibling_imbalance(&self, env: &LbEnv, sds: &SdLbStats) -> i64 {
        let (local, busiest) = (i64::from(sds.local_stat.sum_nr_running), i64::from(sds.busiest_stat.sum_nr_running));
        let by_cores = self.kernel.balance.sibling_imbalance == SiblingImbalance::ByCores;
        if by_cores && (env.idle == CpuIdleType::NotIdle || busiest == 0) {
            return 0;
        }
        let cores = |group: Option<SgId>| group.map_or(0, |group| i64::from(self.domains[group].cores));
        let (ncores_busiest, ncores_local) = (cores(sds.busiest), cores(sds.local));
        if !by_cores || ncores_busiest == ncores_local {
            return (busiest - local).max(0);
        }
        let excess = (ncores_local * busiest - ncores_busiest * local).max(0);
        let both = ncores_local + ncores_busiest;
        let imbalance = (2 * excess + both) / both;
        // An empty group is used, however small it is.
        if imbalance <= 1 && local == 0 && busiest > 1 { 2 } else { imbalance }
    }

    /// fair.c: calculate_imbalance(). What is to move, and how much of it.
    pub(in crate::fair::balance) fn calculate_imbalance(&self, env: &mut LbEnv, sds: &mut SdLbStats) {
        let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
        let flags = self.domains[env.sd].flags;
        (env.migration_type, env.imbalance) = match busiest.group_type {
            GroupType::MisfitTask if flags.has(SdFlags::SD_ASYM_CPUCAPACITY) => (MigrationType::Misfit, 1),
            GroupType::MisfitTask => (MigrationType::Load, busiest.group_misfit_task_load as i64),
            GroupType::AsymPacking => (MigrationType::Task, i64::from(busiest.sum_h_nr_running)),
            GroupType::SmtBalance | GroupType::Imbalanced => (MigrationType::Task, 1),
            GroupType::LlcBalance => (MigrationType::LlcTask, 1),
            _ if local.group_type == GroupType::HasSpare => self.imbalance_for_spare_capacity(env, sds),
            _ => return calculate_average_imbalance(env, sds, self.kernel.balance.above_average),
        };
    }

    /// calculate_imbalance(), if the local group has spare capacity.
    fn imbalance_for_spare_capacity(&self, env: &LbEnv, sds: &SdLbStats) -> (MigrationType, i64) {
        let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
        let sd = &self.domains[env.sd];
        let by_util = self.kernel.balance.util_pull == UtilPull::AnyDomain || !sd.flags.has(SdFlags::SD_SHARE_LLC);
        if busiest.group_type > GroupType::FullyBusy && by_util {
            let free = local.group_capacity.saturating_sub(local.group_util);
            // Utilization lags behind: this CPU is idle, while a task waits over there.
            if env.idle != CpuIdleType::NotIdle && free == 0 {
                return (MigrationType::Task, 1);
            }
            return (MigrationType::Util, free as i64);
        }
        let mut tasks = if busiest.group_weight == 1 || sds.prefer_sibling {
            self.sibling_imbalance(env, sds)
        } else {
            // The kernel's difference is unsigned: if fewer CPUs are idle here, it is close to 2^32.
            i64::from(local.idle_cpus.wrapping_sub(busiest.idle_cpus))
        };
        let (rule, numa) = (self.kernel.domains.imb_numa_nr, sd.flags.has(SdFlags::SD_NUMA));
        // Moving half of the difference makes both equal.
        if matches!(rule, ImbNumaNr::Pair | ImbNumaNr::Quarter) {
            let half = tasks >> 1;
            let (running, weight) = match rule {
                ImbNumaNr::Pair => (busiest.sum_nr_running, 0),
                _ => (local.sum_nr_running + 1, local.group_weight),
            };
            let imbalance = if numa { adjust_numa_imbalance(rule, half, running, weight) } else { half };
            return (MigrationType::Task, imbalance);
        }
        if numa {
            tasks = adjust_numa_imbalance(rule, i64::from(tasks as i32), local.sum_nr_running + 1, sd.imb_numa_nr);
        }
        (MigrationType::Task, tasks >> 1)
    }

    /// fair.c: find_busiest_group(). `None` if there is nothing to pull; otherwise sets what to move.
    #[doc(alias = "sched_balance_find_src_group")]
    #[fentry(find_busiest_group)]
    pub(in crate::fair::balance) fn find_busiest_group_by_group_type(&mut self, env: &mut LbEnv) -> Option<SgId> {
        let mut sds = self.update_sd_lb_stats(env);
        self.classify_busiest(env, sds.busiest, sds.busiest_stat.sum_h_nr_running);
        env.imbalance = 0;
        if sds.busiest.is_none() || !self.is_unequal(env, &mut sds) {
            return None;
        }
        self.calculate_imbalance(env, &mut sds);
        sds.busiest.filter(|_| env.imbalance != 0)
    }

    /// find_busiest_group() between its two labels: whether to compute an imbalance at all. As long as all tasks fit,
    /// energy-aware placement must not be undone.
    pub(in crate::fair::balance) fn is_unequal(&self, env: &LbEnv, sds: &mut SdLbStats) -> bool {
        let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
        let misfits_first =
            matches!(self.kernel.balance.asym_compare, AsymCompare::MisfitsFirst | AsymCompare::PullingCpu);
        match busiest.group_type {
            GroupType::MisfitTask if misfits_first => return true,
            _ if !self.is_rd_overutilized(env.dst_cpu) && !self.root_domain(env.dst_cpu).pd.is_empty() => return false,
            GroupType::MisfitTask | GroupType::AsymPacking | GroupType::Imbalanced => return true,
            _ => {}
        }
        if local.group_type > busiest.group_type {
            return false;
        }
        if local.group_type == GroupType::Overloaded {
            if local.avg_load >= busiest.avg_load {
                return false;
            }
            sds.avg_load = sds.total_load * SCALE / sds.total_capacity;
            let imbalance_pct = u64::from(self.domains[env.sd].imbalance_pct);
            if local.avg_load >= sds.avg_load || 100 * busiest.avg_load <= imbalance_pct * local.avg_load {
                return false;
            }
        }
        if sds.prefer_sibling
            && local.group_type == GroupType::HasSpare
            && (busiest.group_type == GroupType::LlcBalance || self.sibling_imbalance(env, sds) > 1)
        {
            return true;
        }
        busiest.group_type == GroupType::Overloaded || self.has_more_than_its_share(env, sds)
    }

    /// find_busiest_group(), if no group is overloaded: whether an idle CPU should get a task nonetheless.
    fn has_more_than_its_share(&self, env: &LbEnv, sds: &SdLbStats) -> bool {
        let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
        if env.idle == CpuIdleType::NotIdle {
            return false;
        }
        if busiest.group_type == GroupType::SmtBalance && self.smt_vs_nonsmt_groups(sds.local, sds.busiest) {
            return true;
        }
        // A difference of one idle CPU is no imbalance: moving a task would only swap the groups.
        let even = busiest.group_weight > 1 && local.idle_cpus <= busiest.idle_cpus + 1;
        !even && busiest.sum_h_nr_running != 1
    }

    /// fair.c: find_busiest_queue(). The queue of the group that has the most of what is to move.
    #[doc(alias = "sched_balance_find_src_rq")]
    #[fentry(find_busiest_queue)]
    pub(in crate::fair::balance) fn find_busiest_queue_by_group_type(
        &mut self,
        env: &LbEnv,
        group: SgId,
    ) -> Option<CpuId> {
        let (mut busiest, mut most, mut busiest_capacity) = (None, 0, 1);
        let mut from = 0;
        while let Some(cpu) = self.domains.sched_group_span(group).next_from(from) {
            from = cpu.index() + 1;
            if !env.cpus.contains(cpu) || self.spares_queue(env, cpu) {
                continue;
            }
            self.read_rq_cfs(cpu);
            let nr_running = self.counted_tasks(cpu);
            if nr_running == 0 && self.kernel.balance.empty_queues == EmptyQueues::Skipped {
                continue;
            }
            self.read_rq_capacity(cpu);
            if nr_running == 1 && self.keeps_its_only_task(env, cpu) {
                continue;
            }
            let amount = match env.migration_type {
                MigrationType::Load => {
                    self.read_cfs_avg(self.rq[cpu].cfs);
                    let (load, capacity) = (self.cpu_load(cpu), self.capacity_of(cpu));
                    let indivisible = nr_running == 1 && load > env.imbalance as u64;
                    // load / capacity > most / busiest_capacity, without the divisions.
                    let busier = load * busiest_capacity > most * capacity;
                    if busier && (!indivisible || self.check_cpu_capacity(cpu, env.sd)) {
                        (busiest, most, busiest_capacity) = (Some(cpu), load, capacity);
                    }
                    continue;
                }
                // The running task cannot be taken.
                MigrationType::Util if nr_running <= 1 && self.kernel.balance.busiest_util != BusiestUtil::LoneToo => {
                    continue;
                }
                MigrationType::Util => self.busiest_util(cpu),
                MigrationType::Task => u64::from(nr_running),
                MigrationType::Misfit => self.rq[cpu].misfit_task_load,
                MigrationType::LlcTask => u64::from(self.nr_pref_dst_llc(env, cpu)),
            };
            if amount > most {
                (busiest, most) = (Some(cpu), amount);
            }
        }
        busiest
    }

    fn busiest_util(&mut self, cpu: CpuId) -> u64 {
        self.read_cfs_avg(self.rq[cpu].cfs);
        match self.kernel.balance.busiest_util {
            BusiestUtil::LoneToo | BusiestUtil::Plain => self.cpu_util_cfs(cpu),
            BusiestUtil::Boosted => self.cpu_util_cfs_boost(cpu),
        }
    }

    /// The exceptions to the rule of find_busiest_queue() that a CPU keeps its only task if the pulling one has no more capacity:
    /// busy SMT siblings leave less of its own than it seems to have; and load is to be evened out between clusters of CPUs of
    /// the same kind.
    ///
    /// Differs: get_actual_cpu_capacity() is the capacity of the hardware, as nothing presses on it.
    fn shares_its_core_or_kind(&mut self, env: &LbEnv, cpu: CpuId) -> bool {
        match self.kernel.balance.sole_task {
            SoleTask::ByCapacity => false,
            SoleTask::BySiblingsAndClusters => {
                let kind = |cpu| self.domains.arch_scale_cpu_capacity(None, cpu);
                let alike = self.domains.sched_cluster_active && kind(env.dst_cpu) == kind(cpu);
                let shares_its_core = self.sched_smt_active() && !self.is_core_idle(cpu);
                alike || shares_its_core
            }
        }
    }

    /// Whether a CPU's only task would be worse off on the pulling CPU.
    fn keeps_its_only_task(&mut self, env: &LbEnv, cpu: CpuId) -> bool {
        let flags = self.domains[env.sd].flags;
        let (here, there) = (self.capacity_of(env.dst_cpu), self.capacity_of(cpu));
        let no_gain = match self.kernel.balance.asym_compare {
            AsymCompare::LocalGroup => here < there,
            AsymCompare::PullingCpuWithinType | AsymCompare::MisfitsFirst | AsymCompare::PullingCpu => {
                !capacity_greater(here, there)
            }
        };
        if flags.has(SdFlags::SD_ASYM_CPUCAPACITY) && !self.shares_its_core_or_kind(env, cpu) && no_gain {
            return true;
        }
        flags.has(SdFlags::SD_ASYM_PACKING)
            && match self.kernel.balance.asym_packing {
                PackingOrder::IdleCores => self.sched_asym(env.sd, cpu, env.dst_cpu),
                PackingOrder::PriorityAndSiblings => self.sched_asym_prefer(cpu, env.dst_cpu),
                PackingOrder::LowestCpu | PackingOrder::Priority => false,
            }
    }
}

/// calculate_imbalance(), if the local group is, or will be, overloaded: moves load until the local group rises, or the
/// busiest falls, to the average.
fn calculate_average_imbalance(env: &mut LbEnv, sds: &mut SdLbStats, above_average: AboveAverage) {
    let busiest = sds.busiest_stat;
    let local = &mut sds.local_stat;
    if local.group_type < GroupType::Overloaded {
        local.avg_load = local.group_load * SCALE / local.group_capacity;
        env.imbalance = 0;
        if local.avg_load >= busiest.avg_load {
            return;
        }
        sds.avg_load = sds.total_load * SCALE / sds.total_capacity;
        if local.avg_load >= sds.avg_load && above_average == AboveAverage::Nothing {
            return;
        }
    }
    env.migration_type = MigrationType::Load;
    // Unsigned, as in the kernel: a side that the average asks for a negative amount does not limit the other.
    let from_busiest = busiest.avg_load.wrapping_sub(sds.avg_load).wrapping_mul(busiest.group_capacity);
    let to_local = sds.avg_load.wrapping_sub(local.avg_load).wrapping_mul(local.group_capacity);
    env.imbalance = (from_busiest.min(to_local) / SCALE) as i64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_imbalance_between_nodes_is_allowed() {
        let pair = |imbalance, running| adjust_numa_imbalance(ImbNumaNr::Pair, imbalance, running, 0);
        assert_eq!([pair(9, 1), pair(9, 2), pair(1, 3)], [0, 0, 1]);
        // v5.15: a pair while less than a quarter of 16 CPUs is busy.
        let quarter = |imbalance, running| adjust_numa_imbalance(ImbNumaNr::Quarter, imbalance, running, 16);
        assert_eq!([quarter(2, 3), quarter(3, 3), quarter(2, 4), quarter(1, 4)], [0, 3, 2, 1]);
        assert!(!allow_numa_imbalance(0, 3) && allow_numa_imbalance(0, 4));
        let by_llcs = |imbalance, running| adjust_numa_imbalance(ImbNumaNr::ByLlcs, imbalance, running, 4);
        assert_eq!([by_llcs(2, 4), by_llcs(3, 4), by_llcs(2, 5)], [0, 3, 2]);
    }
}
