//! fair.c: "Helpers for find_busiest_group": what the groups of a domain are doing, which type each has, and which is busiest.

use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::fair::balance::{
    AsymCompare, EnergyOverload, LbEnv, MisfitLoad, MisfitStatus, PreferSiblingOf, ReducedCapacity, SmtBalance,
};
use crate::features::Feature;
use crate::topology::{CpuIdleType, DomainShared, SdFlags, SgId};
use fentry::fentry;
use std::cmp::Ordering;
use units::{CpuId, unlikely};

const SCALE: u64 = SCHED_CAPACITY_SCALE as u64;

/// fair.c: enum group_type, from the least to the most urgent to pull from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(in crate::fair) enum GroupType {
    /// Fewer tasks than CPUs, or capacity left.
    #[default]
    HasSpare,
    /// As much to do as there is capacity; no task has to wait long.
    FullyBusy,
    /// A task is too big for its CPU.
    MisfitTask,
    /// A core has several busy threads (v6.6).
    SmtBalance,
    /// The pulling CPU is a better place for the group's tasks (SD_ASYM_PACKING).
    AsymPacking,
    /// Affinity kept the level below from being balanced.
    Imbalanced,
    /// Tasks prefer the LLC of the pulling CPU (v7.2).
    LlcBalance,
    Overloaded,
}

/// fair.c: struct sg_lb_stats. For loads, 1024 is a nice-0 task that always runs; for capacities, utilizations and runnable time,
/// 1024 is a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::fair) struct SgLbStats {
    /// `group_load` for each full CPU of capacity; only computed for overloaded groups.
    pub avg_load: u64,
    pub group_load: u64,
    pub group_capacity: u64,
    pub group_util: u64,
    pub group_runnable: u64,
    /// Tasks of all classes.
    pub sum_nr_running: u32,
    pub sum_h_nr_running: u32,
    pub idle_cpus: u32,
    pub group_weight: u32,
    pub group_type: GroupType,
    pub group_asym_packing: bool,
    pub group_smt_balance: bool,
    pub group_llc_balance: bool,
    /// Tasks that prefer the LLC of the pulling CPU.
    pub nr_pref_dst_llc: u32,
    /// Load of the biggest misfit task; 0 if there is none.
    pub group_misfit_task_load: u64,
    /// Whether the tasks of a CPU do not fit on it.
    pub group_overutilized: bool,
    /// Whether the group does not count as overloaded, whatever it does.
    pub never_overloaded: bool,
}

/// fair.c: struct sd_lb_stats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::fair::balance) struct SdLbStats {
    pub busiest: Option<SgId>,
    pub local: Option<SgId>,
    pub total_load: u64,
    pub total_capacity: u64,
    pub avg_load: u64,
    /// Whether tasks are to be spread to the CPUs of another child domain first.
    pub prefer_sibling: bool,
    pub busiest_stat: SgLbStats,
    pub local_stat: SgLbStats,
}

impl Default for SdLbStats {
    /// init_sd_lb_stats().
    fn default() -> SdLbStats {
        SdLbStats {
            busiest: None,
            local: None,
            total_load: 0,
            total_capacity: 0,
            avg_load: 0,
            prefer_sibling: false,
            busiest_stat: SgLbStats { idle_cpus: u32::MAX, ..SgLbStats::default() },
            local_stat: SgLbStats::default(),
        }
    }
}

/// fair.c: capacity_greater(). Greater by more than 5%.
pub(super) fn capacity_greater(a: u64, b: u64) -> bool {
    a * 1024 > b * 1078
}

/// fair.c: group_has_capacity(). Fewer tasks than CPUs, or less utilization than capacity while no task waits long.
fn group_has_capacity(imbalance_pct: u32, sgs: &SgLbStats) -> bool {
    let pct = u64::from(imbalance_pct);
    if sgs.sum_nr_running < sgs.group_weight {
        return true;
    }
    if sgs.group_capacity * pct < sgs.group_runnable * 100 {
        return false;
    }
    sgs.group_capacity * 100 > sgs.group_util * pct
}

/// fair.c: group_is_overloaded(). More tasks than CPUs, and no capacity left or long waits. A group with as many tasks as CPUs
/// may be neither overloaded nor have capacity.
fn group_is_overloaded(imbalance_pct: u32, sgs: &SgLbStats) -> bool {
    let pct = u64::from(imbalance_pct);
    if sgs.never_overloaded || sgs.sum_nr_running <= sgs.group_weight {
        return false;
    }
    sgs.group_capacity * 100 < sgs.group_util * pct || sgs.group_capacity * pct < sgs.group_runnable * 100
}

/// fair.c: group_classify(). `imbalanced`: sg_imbalanced().
pub(in crate::fair) fn group_classify(imbalance_pct: u32, imbalanced: bool, sgs: &SgLbStats) -> GroupType {
    if group_is_overloaded(imbalance_pct, sgs) {
        GroupType::Overloaded
    } else if sgs.group_llc_balance {
        GroupType::LlcBalance
    } else if imbalanced {
        GroupType::Imbalanced
    } else if sgs.group_asym_packing {
        GroupType::AsymPacking
    } else if sgs.group_smt_balance {
        GroupType::SmtBalance
    } else if sgs.group_misfit_task_load > 0 {
        GroupType::MisfitTask
    } else if !group_has_capacity(imbalance_pct, sgs) {
        GroupType::FullyBusy
    } else {
        GroupType::HasSpare
    }
}

/// update_sd_pick_busiest() at `has_spare`: fewer idle CPUs, or as many and more tasks.
fn has_less_to_spare(sgs: &SgLbStats, busiest: &SgLbStats) -> bool {
    match sgs.idle_cpus.cmp(&busiest.idle_cpus) {
        Ordering::Less => true,
        Ordering::Equal => sgs.sum_nr_running > busiest.sum_nr_running,
        Ordering::Greater => false,
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: update_sg_lb_stats(). Sums up the CPUs of a group, and determines its type. Sets `overloaded` if a CPU has more
    /// than one task, or a misfit one, and `overutilized` if the tasks of a CPU do not fit on it.
    #[fentry(update_sg_lb_stats)]
    fn update_sg_lb_stats(
        &mut self,
        env: &LbEnv,
        sds: &SdLbStats,
        group: SgId,
        overloaded: &mut bool,
        overutilized: &mut bool,
    ) -> SgLbStats {
        let mut sgs = SgLbStats::default();
        let local_group = sds.local == Some(group);
        let flags = self.domains[env.sd].flags;
        let mut from = 0;
        while let Some(cpu) = self.domains.sched_group_span(group).next_from(from) {
            from = cpu.index() + 1;
            if !env.cpus.contains(cpu) {
                continue;
            }
            self.read_rq_load(cpu);
            self.read_rq_cfs(cpu);
            self.read_cfs_avg(self.rq[cpu].cfs);
            let load = self.cpu_load(cpu);
            sgs.group_load += load;
            sgs.group_util += self.cpu_util_cfs(cpu);
            sgs.group_runnable += self.cpu_runnable(cpu);
            sgs.sum_h_nr_running += self.counted_tasks(cpu);
            let nr_running = self.rq[cpu].nr_running;
            sgs.sum_nr_running += nr_running;
            *overloaded |= nr_running > 1;
            sgs.group_overutilized |= self.cpu_overutilized(cpu);
            sgs.nr_pref_dst_llc += self.nr_pref_dst_llc(env, cpu);
            if nr_running == 0 && self.idle_cpu(cpu) {
                sgs.idle_cpus += 1;
                continue;
            }
            if local_group {
                continue;
            }
            if flags.has(SdFlags::SD_ASYM_CPUCAPACITY) {
                let misfit = self.rq[cpu].misfit_task_load;
                *overloaded |= misfit > 0;
                if sgs.group_misfit_task_load < misfit && self.helps_misfits(env, group) {
                    sgs.group_misfit_task_load = misfit;
                }
            } else if env.idle != CpuIdleType::NotIdle && self.sched_reduced_capacity(env, cpu) {
                sgs.group_misfit_task_load = sgs.group_misfit_task_load.max(load);
            }
        }
        let sgc = self.domains[group].sgc;
        self.read_group_capacity(sgc);
        sgs.group_capacity = self.domains[sgc].capacity;
        sgs.group_weight = self.domains[group].group_weight;
        if !local_group && env.idle != CpuIdleType::NotIdle {
            sgs.group_asym_packing = sgs.sum_h_nr_running > 0 && self.sched_group_asym(env, sds, &sgs, group);
            sgs.group_smt_balance = self.smt_balance(&sgs, group);
        }
        *overutilized |= sgs.group_overutilized;
        sgs.never_overloaded = self.never_overloaded(&sgs);
        sgs.group_llc_balance = !local_group && self.llc_balance(env, &sgs, group);
        sgs.group_type = group_classify(self.domains[env.sd].imbalance_pct, self.sg_imbalanced(group), &sgs);
        self.record_sg_llc_stats(env, &sgs, group);
        if sgs.group_type == GroupType::Overloaded {
            sgs.avg_load = sgs.group_load * SCALE / sgs.group_capacity;
        }
        sgs
    }

    /// The part of update_sg_lb_stats() for misfit tasks: whether those of the group count, so that it is pulled from for their
    /// sake alone.
    fn helps_misfits(&mut self, env: &LbEnv, group: SgId) -> bool {
        if self.kernel.balance.misfit_load == MisfitLoad::Any {
            return true;
        }
        let sgc = self.domains[group].sgc;
        self.read_group_capacity(sgc);
        capacity_greater(self.capacity_of(env.dst_cpu), self.domains[sgc].max_capacity)
    }

    /// The part of group_is_overloaded() for energy-aware placement: whether no CPU of the group has more than fits there.
    #[inline]
    pub(in crate::fair) fn never_overloaded(&self, sgs: &SgLbStats) -> bool {
        unlikely(self.kernel.balance.energy_overload == EnergyOverload::IfOverutilized)
            && self.sched_energy_enabled()
            && !sgs.group_overutilized
    }

    /// fair.c: sched_reduced_capacity(). Whether a task is alone on a CPU that has lost capacity.
    fn sched_reduced_capacity(&self, env: &LbEnv, cpu: CpuId) -> bool {
        self.kernel.balance.reduced_capacity == ReducedCapacity::Misfit
            && self.counted_tasks(cpu) == 1
            && self.check_cpu_capacity(cpu, env.sd)
    }

    /// fair.c: smt_balance(). Whether several tasks share the capacity of the group's core.
    ///
    /// Differs: the caller makes sure that the pulling CPU is idle.
    fn smt_balance(&self, sgs: &SgLbStats, group: SgId) -> bool {
        self.kernel.balance.smt_balance == SmtBalance::Present && self.is_smt_group(group) && sgs.sum_h_nr_running > 1
    }

    /// Whether the group is a core of several threads: a group has the flags of its child domain.
    pub(super) fn is_smt_group(&self, group: SgId) -> bool {
        self.domains[group].flags.has(SdFlags::SD_SHARE_CPUCAPACITY)
    }

    /// fair.c: smt_vs_nonsmt_groups(). Whether exactly one of the two is a core of several threads.
    pub(super) fn smt_vs_nonsmt_groups(&self, a: Option<SgId>, b: Option<SgId>) -> bool {
        a.zip(b).is_some_and(|(a, b)| self.is_smt_group(a) != self.is_smt_group(b))
    }

    /// fair.c: update_sd_pick_busiest(). Whether `sg` is busier than the busiest so far.
    fn update_sd_pick_busiest(&self, env: &LbEnv, sds: &SdLbStats, sg: SgId, sgs: &SgLbStats) -> bool {
        if sgs.sum_h_nr_running == 0 {
            return false;
        }
        let differ = self.domains[env.sd].flags.has(SdFlags::SD_ASYM_CPUCAPACITY);
        match self.kernel.balance.asym_compare {
            AsymCompare::LocalGroup => return self.pick_busiest_beside_local_group(sds, sg, sgs, differ),
            AsymCompare::PullingCpuWithinType | AsymCompare::MisfitsFirst => {
                return self.pick_busiest_beside_pulling_cpu(env, sds, sg, sgs, differ);
            }
            AsymCompare::PullingCpu => {}
        }
        if differ && self.is_beyond_help(env, sds, sg, sgs) {
            return false;
        }
        self.is_busier(sds, sg, sgs)
    }

    /// The rest of update_sd_pick_busiest(): by type, and within one type by what makes it.
    fn is_busier(&self, sds: &SdLbStats, sg: SgId, sgs: &SgLbStats) -> bool {
        let busiest = &sds.busiest_stat;
        if sgs.group_type != busiest.group_type {
            return sgs.group_type > busiest.group_type;
        }
        let smt_counts = self.kernel.balance.smt_balance == SmtBalance::Present;
        match sgs.group_type {
            GroupType::Overloaded => sgs.avg_load > busiest.avg_load,
            // update_llc_busiest()
            GroupType::LlcBalance => sgs.nr_pref_dst_llc > busiest.nr_pref_dst_llc,
            GroupType::Imbalanced => false,
            GroupType::AsymPacking => self.asym_pick_busiest(sds, sg),
            GroupType::MisfitTask => match self.kernel.balance.misfit_status {
                MisfitStatus::WhereHelpful => sgs.group_misfit_task_load >= busiest.group_misfit_task_load,
                MisfitStatus::AnyMisfit => sgs.group_misfit_task_load > busiest.group_misfit_task_load,
            },
            GroupType::SmtBalance if sgs.idle_cpus != 0 || busiest.idle_cpus != 0 => has_less_to_spare(sgs, busiest),
            // Averages are only computed for overloaded groups, so these are equal: a core of several threads stays the busiest.
            GroupType::SmtBalance | GroupType::FullyBusy if smt_counts => {
                let stays = sds.busiest.is_some_and(|busiest| self.is_smt_group(busiest));
                sgs.avg_load > busiest.avg_load || sgs.avg_load == busiest.avg_load && !stays
            }
            GroupType::SmtBalance | GroupType::FullyBusy => sgs.avg_load > busiest.avg_load,
            // A core should not lose its only task while a CPU without siblings could give one.
            GroupType::HasSpare if smt_counts && self.smt_vs_nonsmt_groups(sds.busiest, Some(sg)) => {
                !self.is_smt_group(sg) || sgs.sum_h_nr_running > 1
            }
            GroupType::HasSpare => has_less_to_spare(sgs, busiest),
        }
    }

    /// The same under [`AsymCompare::LocalGroup`]; `differ`: whether the domain's CPUs differ in capacity.
    fn pick_busiest_beside_local_group(&self, sds: &SdLbStats, sg: SgId, sgs: &SgLbStats, differ: bool) -> bool {
        let capacities = |group: SgId| &self.domains[self.domains[group].sgc];
        let here = sds.local.map(capacities);
        // group_smaller_min_cpu_capacity(), group_smaller_max_cpu_capacity()
        let smaller = |a: u64, b: u64| a * 1280 < b * 1024;
        let helps = here.is_some_and(|here| smaller(capacities(sg).max_capacity, here.max_capacity));
        if sgs.group_type == GroupType::MisfitTask && (!helps || sds.local_stat.group_type != GroupType::HasSpare) {
            return false;
        }
        if sgs.group_type != sds.busiest_stat.group_type || !self.is_busier(sds, sg, sgs) {
            return sgs.group_type > sds.busiest_stat.group_type;
        }
        let slower_here = here.is_some_and(|here| smaller(here.min_capacity, capacities(sg).min_capacity));
        !(differ && sgs.group_type <= GroupType::FullyBusy && slower_here)
    }

    /// The same under [`AsymCompare::PullingCpuWithinType`] and [`AsymCompare::MisfitsFirst`].
    fn pick_busiest_beside_pulling_cpu(
        &self,
        env: &LbEnv,
        sds: &SdLbStats,
        sg: SgId,
        sgs: &SgLbStats,
        differ: bool,
    ) -> bool {
        let misfit = sgs.group_type == GroupType::MisfitTask;
        if differ && misfit && self.is_beyond_help(env, sds, sg, sgs) {
            return false;
        }
        if sgs.group_type != sds.busiest_stat.group_type || !self.is_busier(sds, sg, sgs) {
            return sgs.group_type > sds.busiest_stat.group_type;
        }
        misfit || !(differ && self.is_beyond_help(env, sds, sg, sgs))
    }

    /// update_sd_pick_busiest() where capacities differ: whether the group's tasks would be no better off on `dst_cpu`.
    fn is_beyond_help(&self, env: &LbEnv, sds: &SdLbStats, sg: SgId, sgs: &SgLbStats) -> bool {
        let sgc = &self.domains[self.domains[sg].sgc];
        let here = self.capacity_of(env.dst_cpu);
        if sgs.group_type == GroupType::MisfitTask {
            return !env.dst_core_idle
                || !capacity_greater(here, sgc.max_capacity)
                || sds.local_stat.group_type != GroupType::HasSpare;
        }
        sgs.group_type <= GroupType::FullyBusy && capacity_greater(sgc.min_capacity, here)
    }

    /// fair.c: update_sd_lb_stats().
    #[fentry(update_sd_lb_stats)]
    pub(in crate::fair::balance) fn update_sd_lb_stats(&mut self, env: &mut LbEnv) -> SdLbStats {
        let mut sds = SdLbStats::default();
        let sd = &self.domains[env.sd];
        let (first, child, is_root) = (sd.groups, sd.child, sd.parent.is_none());
        let (mut overloaded, mut overutilized, mut sum_util) = (false, false, 0);
        let asks_core = self.kernel.balance.asym_compare == AsymCompare::PullingCpu;
        env.dst_core_idle = !asks_core || !self.sched_smt_active() || self.is_core_idle(env.dst_cpu);
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
            let sgs = self.update_sg_lb_stats(env, &sds, sg, &mut overloaded, &mut overutilized);
            if local_group {
                sds.local_stat = sgs;
            } else if self.update_sd_pick_busiest(env, &sds, sg, &sgs) {
                sds.busiest = Some(sg);
                sds.busiest_stat = sgs;
            }
            sds.total_load += sgs.group_load;
            sds.total_capacity += sgs.group_capacity;
            sum_util += sgs.group_util;
            sg = self.domains[sg].next;
            if sg == first {
                break;
            }
        }
        let preferring = match self.kernel.balance.prefer_sibling_of {
            PreferSiblingOf::Child => child.map(|child| self.domains[child].flags),
            PreferSiblingOf::BusiestGroup => sds.busiest.map(|busiest| self.domains[busiest].flags),
        };
        sds.prefer_sibling = preferring.is_some_and(|flags| flags.has(SdFlags::SD_PREFER_SIBLING));
        if is_root {
            self.set_overload(env.dst_cpu, overloaded);
        }
        if is_root || overutilized {
            self.set_rd_overutilized(env.dst_cpu, overutilized);
        }
        self.update_idle_cpu_scan(env, sum_util);
        sds
    }

    /// fair.c: update_idle_cpu_scan(). How many CPUs of the LLC, or of the domain that shares the state, a wakeup may look at for
    /// an idle one: fewer as their utilization grows, none from 85% (100 / `imbalance_pct`) on:
    ///
    /// ```text
    /// nr_idle_scan = CPUs * (1 - (use * imbalance_pct / 100)^2)
    /// ```
    fn update_idle_cpu_scan(&mut self, env: &LbEnv, sum_util: u64) {
        if !self.sched_feat(Feature::SIS_UTIL) || env.idle == CpuIdleType::NewlyIdle {
            return;
        }
        let sd = &self.domains[env.sd];
        let (pct, llc_weight) = (u64::from(sd.imbalance_pct), sd.span_weight);
        let shared = match self.kernel.domains.shared {
            DomainShared::CacheLevels if llc_weight != self.domains.sd_llc_size[env.dst_cpu] => None,
            DomainShared::CacheLevels => self.domains.sd_llc_shared[env.dst_cpu],
            DomainShared::CacheAndCapacities => sd.shared,
        };
        let Some(shared) = shared else { return };
        let used = sum_util / u64::from(llc_weight);
        let lost = (used * used * pct * pct / (10_000 * SCALE)).min(SCALE);
        let nr_idle_scan = ((SCALE - lost) * u64::from(llc_weight) / SCALE) as u32;
        self.read_domain_shared(shared);
        if self.domains[shared].nr_idle_scan != nr_idle_scan {
            self.write_domain_shared(shared);
            self.domains[shared].nr_idle_scan = nr_idle_scan;
        }
    }
}
