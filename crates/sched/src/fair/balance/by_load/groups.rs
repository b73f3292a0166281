//! fair.c: "Helpers for find_busiest_group": what the groups of a domain are doing, and which is busiest.

use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::fair::balance::{HigherCapacity, LbEnv, Misfits, PackingOrder, PreferSibling};
use crate::topology::{CpuIdleType, SdFlags, SgId};
use fentry::fentry;
use units::CpuId;

/// fair.c: enum group_type, from the least to the most urgent to pull from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(in crate::fair::balance) enum GroupType {
    #[default]
    Other,
    /// A task is too big for its CPU ([`Misfits::Pulled`]).
    MisfitTask,
    /// Affinity kept the level below from being balanced.
    Imbalanced,
    Overloaded,
}

/// fair.c: struct sg_lb_stats. For loads, 1024 is a nice-0 task that always runs; for capacities, 1024 is a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::fair::balance) struct SgLbStats {
    /// `group_load` for each full CPU of capacity.
    pub avg_load: u64,
    pub group_load: u64,
    pub sum_weighted_load: u64,
    pub load_per_task: u64,
    pub group_capacity: u64,
    pub group_util: u64,
    pub sum_nr_running: u32,
    pub idle_cpus: u32,
    pub group_weight: u32,
    pub group_type: GroupType,
    pub group_no_capacity: bool,
    /// Load of the biggest misfit task; 0 if there is none.
    pub group_misfit_task_load: u64,
}

/// What update_sd_lb_stats() learns of the whole domain (`sg_status`).
#[derive(Clone, Copy, Default)]
struct SgStatus {
    /// SG_OVERLOAD: a CPU has more than one task, or a misfit one.
    overload: bool,
    /// SG_OVERUTILIZED: the tasks of a CPU do not fit on it.
    overutilized: bool,
}

/// fair.c: struct sd_lb_stats.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::fair::balance) struct SdLbStats {
    pub busiest: Option<SgId>,
    pub local: Option<SgId>,
    pub total_load: u64,
    pub total_capacity: u64,
    pub avg_load: u64,
    pub busiest_stat: SgLbStats,
    pub local_stat: SgLbStats,
}

/// fair.c: group_has_capacity(). Fewer tasks than CPUs, or less utilization than capacity.
pub(super) fn group_has_capacity_by_load(imbalance_pct: u32, sgs: &SgLbStats) -> bool {
    sgs.sum_nr_running < sgs.group_weight || sgs.group_capacity * 100 > sgs.group_util * u64::from(imbalance_pct)
}

/// fair.c: group_is_overloaded(). More tasks than CPUs, and no capacity left. A group may be neither overloaded nor
/// have capacity.
fn group_is_overloaded_by_load(imbalance_pct: u32, sgs: &SgLbStats) -> bool {
    sgs.sum_nr_running > sgs.group_weight && sgs.group_capacity * 100 < sgs.group_util * u64::from(imbalance_pct)
}

impl<A: Arch> Sched<A> {
    /// fair.c: get_sd_load_idx(). Which of `cpu_load[]` is read: a long average where moving a task is expensive.
    fn get_sd_load_idx(&self, env: &LbEnv) -> u32 {
        let sd = &self.domains[env.sd];
        match env.idle {
            CpuIdleType::NotIdle => sd.busy_idx,
            CpuIdleType::NewlyIdle => sd.newidle_idx,
            CpuIdleType::Idle => sd.idle_idx,
        }
    }

    /// fair.c: group_classify().
    fn group_classify_by_load(&self, group: SgId, sgs: &SgLbStats) -> GroupType {
        if sgs.group_no_capacity {
            GroupType::Overloaded
        } else if self.sg_imbalanced(group) {
            GroupType::Imbalanced
        } else if sgs.group_misfit_task_load > 0 {
            GroupType::MisfitTask
        } else {
            GroupType::Other
        }
    }

    /// fair.c: update_sg_lb_stats(). Sums up the CPUs of a group.
    #[fentry(update_sg_lb_stats)]
    fn update_sg_lb_stats_by_load(
        &mut self,
        env: &mut LbEnv,
        group: SgId,
        load_idx: u32,
        local_group: bool,
        status: &mut SgStatus,
    ) -> SgLbStats {
        let mut sgs = SgLbStats::default();
        let unequal = self.domains[env.sd].flags.has(SdFlags::SD_ASYM_CPUCAPACITY);
        let misfits = unequal && self.kernel.balance.misfits == Misfits::Pulled;
        let mut from = 0;
        while let Some(cpu) = self.domains.sched_group_span(group).next_from(from) {
            from = cpu.index() + 1;
            if !env.cpus.contains(cpu) {
                continue;
            }
            if env.flags.nohz_stats {
                env.flags.nohz_again |= self.update_nohz_stats(cpu, false);
            }
            self.read_cpu_statistics(cpu);
            // This favours the CPUs of the local group.
            sgs.group_load +=
                if local_group { self.target_load(cpu, load_idx) } else { self.source_load(cpu, load_idx) };
            sgs.group_util += self.cpu_util_cfs(cpu);
            sgs.sum_nr_running += self.cfs_h_nr_running(cpu);
            sgs.sum_weighted_load += self.weighted_cpuload(cpu);
            let nr_running = self.rq[cpu].nr_running;
            status.overload |= nr_running > 1;
            status.overutilized |= self.cpu_overutilized(cpu);
            if nr_running == 0 && self.idle_cpu(cpu) {
                sgs.idle_cpus += 1;
            }
            let misfit = self.rq[cpu].misfit_task_load;
            if misfits && sgs.group_misfit_task_load < misfit {
                sgs.group_misfit_task_load = misfit;
                status.overload = true;
            }
        }
        let sgc = self.domains[group].sgc;
        self.read_group_capacity(sgc);
        sgs.group_capacity = self.domains[sgc].capacity;
        sgs.avg_load = sgs.group_load * u64::from(SCHED_CAPACITY_SCALE) / sgs.group_capacity;
        if sgs.sum_nr_running > 0 {
            sgs.load_per_task = sgs.sum_weighted_load / u64::from(sgs.sum_nr_running);
        }
        sgs.group_weight = self.domains[group].group_weight;
        sgs.group_no_capacity = group_is_overloaded_by_load(self.domains[env.sd].imbalance_pct, &sgs);
        sgs.group_type = self.group_classify_by_load(group, &sgs);
        sgs
    }

    /// Charges the lines of a runqueue that the statistics read: `nr_running` with `cpu_load[]`, `cfs.h_nr_running`,
    /// `cfs.avg` with `runnable_load_avg`, and the capacities.
    fn read_cpu_statistics(&mut self, cpu: CpuId) {
        self.read_rq_load(cpu);
        self.read_rq_cfs(cpu);
        self.read_cfs_avg(self.rq[cpu].cfs);
        if self.layout.runnable_is_apart() {
            self.read_rq_runnable(cpu);
        }
        self.read_rq_capacity(cpu);
    }

    /// fair.c: update_sd_pick_busiest(). Whether `sg` is busier than the busiest so far. The local group is always the first
    /// one that is looked at.
    fn update_sd_pick_busiest_by_load(&self, env: &LbEnv, sds: &SdLbStats, sg: SgId, sgs: &SgLbStats) -> bool {
        let busiest = &sds.busiest_stat;
        let misfit = sgs.group_type == GroupType::MisfitTask;
        if misfit {
            let imbalance_pct = self.domains[env.sd].imbalance_pct;
            let bigger_here = sds.local.is_some_and(|local| self.group_smaller_max_cpu_capacity(sg, local));
            if !bigger_here || !group_has_capacity_by_load(imbalance_pct, &sds.local_stat) {
                return false;
            }
        }
        if sgs.group_type != busiest.group_type {
            return sgs.group_type > busiest.group_type;
        }
        if sgs.avg_load <= busiest.avg_load {
            return false;
        }
        let flags = self.domains[env.sd].flags;
        let one_task_each = sgs.sum_nr_running <= sgs.group_weight;
        if flags.has(SdFlags::SD_ASYM_CPUCAPACITY)
            && self.kernel.balance.higher_capacity == HigherCapacity::LeftAlone
            && one_task_each
            && sds.local.is_some_and(|local| self.group_smaller_min_cpu_capacity(local, sg))
        {
            return false;
        }
        if misfit && sgs.group_misfit_task_load < busiest.group_misfit_task_load {
            return false;
        }
        if !flags.has(SdFlags::SD_ASYM_PACKING) {
            return true;
        }
        match self.kernel.balance.asym_packing {
            PackingOrder::LowestCpu => {}
            _ if env.idle == CpuIdleType::NotIdle => return true,
            PackingOrder::Priority | PackingOrder::PriorityAndSiblings | PackingOrder::IdleCores => {}
        }
        let preferred = |sg: SgId| self.packing_cpu(sg);
        let less_preferred = self.sched_asym_prefer(env.dst_cpu, preferred(sg));
        sgs.sum_nr_running > 0
            && less_preferred
            && sds.busiest.is_none_or(|busiest| match self.kernel.balance.asym_packing {
                PackingOrder::LowestCpu => preferred(busiest) > preferred(sg),
                PackingOrder::Priority | PackingOrder::PriorityAndSiblings | PackingOrder::IdleCores => {
                    self.sched_asym_prefer(preferred(busiest), preferred(sg))
                }
            })
    }

    /// The CPU by which a group is ranked for SD_ASYM_PACKING.
    pub(in crate::fair::balance) fn packing_cpu(&self, sg: SgId) -> CpuId {
        let first = || self.domains.sched_group_span(sg).first().expect("a group has CPUs");
        match self.kernel.balance.asym_packing {
            PackingOrder::LowestCpu => first(),
            PackingOrder::Priority | PackingOrder::PriorityAndSiblings | PackingOrder::IdleCores => {
                self.domains[sg].asym_prefer_cpu.unwrap_or_else(first)
            }
        }
    }

    /// fair.c: update_sd_lb_stats().
    #[fentry(update_sd_lb_stats)]
    pub(in crate::fair::balance) fn update_sd_lb_stats_by_load(&mut self, env: &mut LbEnv) -> SdLbStats {
        let mut sds = SdLbStats::default();
        let sd = &self.domains[env.sd];
        let (first, imbalance_pct, is_root) = (sd.groups, sd.imbalance_pct, sd.parent.is_none());
        let prefer_sibling = sd.child.is_some_and(|child| self.domains[child].flags.has(SdFlags::SD_PREFER_SIBLING));
        let load_idx = self.get_sd_load_idx(env);
        let mut status = SgStatus::default();
        self.ages_what_it_looks_at(env);
        let mut sg = first;
        loop {
            let local_group = self.domains.sched_group_span(sg).contains(env.dst_cpu);
            if local_group {
                sds.local = Some(sg);
                let next_update = self.domains[self.domains[sg].sgc].next_update;
                if env.idle != CpuIdleType::NewlyIdle || self.jiffies() >= next_update {
                    self.renew_group_capacity(env.sd, env.dst_cpu);
                }
            }
            let mut sgs = self.update_sg_lb_stats_by_load(env, sg, load_idx, local_group, &mut status);
            if local_group {
                sds.local_stat = sgs;
            } else {
                let local_has_capacity =
                    sds.local.is_some() && group_has_capacity_by_load(imbalance_pct, &sds.local_stat);
                if prefer_sibling && local_has_capacity && self.has_excess_tasks(&sgs, &sds.local_stat) {
                    sgs.group_no_capacity = true;
                    sgs.group_type = self.group_classify_by_load(sg, &sgs);
                }
                if self.update_sd_pick_busiest_by_load(env, &sds, sg, &sgs) {
                    sds.busiest = Some(sg);
                    sds.busiest_stat = sgs;
                }
            }
            sds.total_load += sgs.group_load;
            sds.total_capacity += sgs.group_capacity;
            sg = self.domains[sg].next;
            if sg == first {
                break;
            }
        }
        self.put_off_aging(env);
        if is_root {
            self.set_overload(env.dst_cpu, status.overload);
        }
        if is_root || status.overutilized {
            self.set_rd_overutilized(env.dst_cpu, status.overutilized);
        }
        sds
    }

    /// The beginning of update_sd_lb_stats(): whether this newly idle CPU ages the load of those without ticks on the way.
    fn ages_what_it_looks_at(&mut self, env: &mut LbEnv) {
        if self.kernel.balance.nohz.and_own() && env.idle == CpuIdleType::NewlyIdle {
            self.read_nohz_balance();
            env.flags.nohz_stats |= self.nohz.has_blocked;
        }
    }

    /// The end of update_sd_lb_stats(): if all CPUs without ticks were seen, their load need not be aged again soon.
    fn put_off_aging(&mut self, env: &LbEnv) {
        if env.flags.nohz_again && self.nohz.idle_cpus_mask.is_subset(self.domains.sched_domain_span(env.sd)) {
            self.put_off_next_blocked();
        }
    }

    /// Whether a group has tasks that its siblings should run.
    fn has_excess_tasks(&self, sgs: &SgLbStats, local: &SgLbStats) -> bool {
        match self.kernel.balance.prefer_sibling {
            PreferSibling::MoreThanOne => sgs.sum_nr_running > 1,
            PreferSibling::MoreThanLocal => sgs.sum_nr_running > local.sum_nr_running + 1,
        }
    }

    /// fair.c: find_busiest_queue(). The queue of the group with the most load per capacity, or with the biggest misfit task.
    #[fentry(find_busiest_queue)]
    pub(in crate::fair::balance) fn find_busiest_queue_by_load(&mut self, env: &LbEnv, group: SgId) -> Option<CpuId> {
        let (mut busiest, mut busiest_load, mut busiest_capacity) = (None, 0, 1);
        let unequal = self.domains[env.sd].flags.has(SdFlags::SD_ASYM_CPUCAPACITY);
        let stays_if_alone = unequal && self.kernel.balance.misfits == Misfits::Pulled;
        let mut from = 0;
        while let Some(cpu) = self.domains.sched_group_span(group).next_from(from) {
            from = cpu.index() + 1;
            if !env.cpus.contains(cpu) || self.spares_queue(env, cpu) {
                continue;
            }
            self.read_rq_load(cpu);
            if env.src_misfit {
                let misfit = self.rq[cpu].misfit_task_load;
                if misfit > busiest_load {
                    (busiest, busiest_load) = (Some(cpu), misfit);
                }
                continue;
            }
            self.read_rq_runnable(cpu);
            self.read_rq_capacity(cpu);
            let capacity = self.capacity_of(cpu);
            if stays_if_alone && self.rq[cpu].nr_running == 1 && self.capacity_of(env.dst_cpu) < capacity {
                continue;
            }
            let wl = self.weighted_cpuload(cpu);
            let indivisible = self.rq[cpu].nr_running == 1 && wl > env.imbalance as u64;
            if indivisible && !self.check_cpu_capacity(cpu, env.sd) {
                continue;
            }
            // wl / capacity > busiest_load / busiest_capacity, without the divisions.
            if wl * busiest_capacity > busiest_load * capacity {
                (busiest, busiest_load, busiest_capacity) = (Some(cpu), wl, capacity);
            }
        }
        busiest
    }
}
