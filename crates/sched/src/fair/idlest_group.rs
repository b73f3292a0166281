//! fair.c: find_idlest_group() since v5.5, which classifies groups by the group types of load balancing.

use super::balance::{GroupType, SgLbStats, adjust_numa_imbalance, allow_numa_imbalance, group_classify};
use super::numa::NewThreads;
use super::wake::{IdlestAverages, IdlestStats, IdlestTies};
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::sched::*;
use crate::topology::{ImbNumaNr, SdFlags, SdId, SgId};
use fentry::fentry;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// fair.c: find_idlest_group(). The group with the most room for a new task, or for one that is not to stay near
    /// its waker. `None`: keep the group of `this_cpu`.
    #[fentry(find_idlest_group)]
    #[doc(alias = "sched_balance_find_dst_group")]
    pub(super) fn find_idlest_group_by_type(&mut self, sd: SdId, p: TaskId, this_cpu: CpuId) -> Option<SgId> {
        let mut idlest = None;
        let mut idlest_sgs =
            SgLbStats { avg_load: u64::from(u32::MAX), group_type: GroupType::Overloaded, ..SgLbStats::default() };
        let mut local = None;
        self.read_task_policy(p);
        let first = self.domains[sd].groups;
        let mut group = first;
        loop {
            let span = self.domains.sched_group_span(group);
            if span.intersects(&self.task[p].cpus_allowed) {
                let local_group = span.contains(this_cpu);
                let sgs = self.update_sg_wakeup_stats(sd, group, p);
                if local_group {
                    local = Some((group, sgs));
                } else if self.update_pick_idlest(idlest, &idlest_sgs, group, &sgs) {
                    idlest = Some(group);
                    idlest_sgs = sgs;
                }
            }
            group = self.domains[group].next;
            if group == first {
                break;
            }
        }
        let idlest = idlest?;
        // The local group is left out if the task may not run there.
        let Some((local, local_sgs)) = local else { return Some(idlest) };
        let leaves = match local_sgs.group_type.cmp(&idlest_sgs.group_type) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => {
                self.leaves_equal_type(sd, p, this_cpu, (local, &local_sgs), (idlest, &idlest_sgs))
            }
        };
        leaves.then_some(idlest)
    }

    /// The end of `find_idlest_group()`: whether the idlest group is worth leaving the local one, which has the same
    /// type.
    fn leaves_equal_type(
        &mut self,
        sd: SdId,
        p: TaskId,
        this_cpu: CpuId,
        (local, local_sgs): (SgId, &SgLbStats),
        (idlest, idlest_sgs): (SgId, &SgLbStats),
    ) -> bool {
        let numa = self.domains[sd].flags.has(SdFlags::SD_NUMA);
        match local_sgs.group_type {
            GroupType::Overloaded | GroupType::FullyBusy => {
                let imbalance_pct = u64::from(self.domains[sd].imbalance_pct);
                let resolution = self.kernel.load_resolution;
                let nice_0 = resolution.scale_load_down(resolution.nice_0_load());
                let imbalance = nice_0 * (imbalance_pct - 100) / 100;
                let (here, there) = (local_sgs.avg_load, idlest_sgs.avg_load);
                // Between nodes the margin speaks for staying: a task finds its data near its creator.
                let near_enough = numa && there + imbalance >= here;
                !near_enough && there < here + imbalance && 100 * here > imbalance_pct * there
            }
            // Wakeups do not look for these types.
            GroupType::LlcBalance | GroupType::Imbalanced | GroupType::AsymPacking | GroupType::SmtBalance => false,
            GroupType::MisfitTask => self.max_capacity_of(local) < self.max_capacity_of(idlest),
            GroupType::HasSpare => {
                if numa && let Some(leaves) = self.leaves_for_memory(p, this_cpu, idlest) {
                    return leaves;
                }
                !(numa && self.keeps_near(sd, p, (local, local_sgs), idlest_sgs))
                    && local_sgs.idle_cpus < idlest_sgs.idle_cpus
            }
        }
    }

    /// The part of `find_idlest_group()` that keeps a task on its creator's node, although another one has more idle CPUs.
    fn keeps_near(&self, sd: SdId, p: TaskId, (local, local_sgs): (SgId, &SgLbStats), idlest_sgs: &SgLbStats) -> bool {
        let rule = self.kernel.domains.imb_numa_nr;
        let running = local_sgs.sum_nr_running + 1;
        match rule {
            ImbNumaNr::Pair => local_sgs.idle_cpus > 0,
            ImbNumaNr::Quarter => allow_numa_imbalance(running, local_sgs.group_weight),
            ImbNumaNr::Absent | ImbNumaNr::ByLlcs => {
                let span = self.domains.sched_group_span(local);
                let usable = span.iter().filter(|&cpu| self.task[p].cpus_allowed.contains(cpu)).count();
                let allowed = self.domains[sd].imb_numa_nr.min(usable as u32);
                let imbalance = i64::from(local_sgs.idle_cpus.abs_diff(idlest_sgs.idle_cpus));
                adjust_numa_imbalance(rule, imbalance, running, allowed) == 0
            }
        }
    }

    /// Whether a new thread leaves for the idlest group (true) because that is on the node its creator prefers, or
    /// stays (false) because this node is; `None`: neither.
    fn leaves_for_memory(&self, p: TaskId, this_cpu: CpuId, idlest: SgId) -> Option<bool> {
        if self.kernel.numa.new_threads == NewThreads::Anywhere {
            return None;
        }
        let preferred = self.numa_preferred_nid(p)?;
        let first = self.domains.sched_group_span(idlest).first().expect("a group has CPUs");
        if self.cpu_to_node(this_cpu) == preferred {
            return Some(false);
        }
        (self.cpu_to_node(first) == preferred).then_some(true)
    }

    fn max_capacity_of(&self, group: SgId) -> u64 {
        self.domains[self.domains[group].sgc].max_capacity
    }

    /// fair.c: update_sg_wakeup_stats(). What a group would be doing without the task.
    fn update_sg_wakeup_stats(&mut self, sd: SdId, group: SgId, p: TaskId) -> SgLbStats {
        let asym = self.domains[sd].flags.has(SdFlags::SD_ASYM_CPUCAPACITY);
        // The task fits nowhere until a CPU is found on which it does.
        let mut sgs = SgLbStats { group_misfit_task_load: u64::from(asym), ..SgLbStats::default() };
        let allowed_only = self.kernel.wake.idlest_stats == IdlestStats::AllowedCpus;
        let mut next = self.domains.sched_group_span(group).first();
        while let Some(i) = next {
            next = self.domains.sched_group_span(group).next_from(i.index() + 1);
            if allowed_only && !self.cpumask_test(i, p) {
                continue;
            }
            self.read_cpu_load(i, 0);
            self.read_rq_load(i);
            sgs.group_load += self.cpu_load_without(i, p);
            sgs.group_util += self.cpu_util_without(i, p);
            sgs.group_runnable += self.cpu_runnable_without(i, p);
            let local = u32::from(self.task_running_on_cpu(i, p));
            // The counts do not contain a task whose group was throttled while it ran: they wrap, as the kernel's do.
            sgs.sum_h_nr_running = sgs.sum_h_nr_running.wrapping_add(self.counted_tasks(i).wrapping_sub(local));
            let nr_running = self.rq[i].nr_running.wrapping_sub(local);
            sgs.sum_nr_running = sgs.sum_nr_running.wrapping_add(nr_running);
            if nr_running == 0 && self.idle_cpu_without(i, p) {
                sgs.idle_cpus += 1;
            }
            if sgs.group_misfit_task_load != 0 && self.task_fits_cpu(p, i) {
                sgs.group_misfit_task_load = 0;
            }
        }
        let sgc = self.domains[group].sgc;
        self.read_group_capacity(sgc);
        sgs.group_capacity = self.domains[sgc].capacity;
        sgs.group_weight = self.domains[group].group_weight;
        sgs.never_overloaded = self.never_overloaded(&sgs);
        sgs.group_type = group_classify(self.domains[sd].imbalance_pct, self.domains[sgc].imbalance, &sgs);
        let averages = self.kernel.wake.idlest_averages == IdlestAverages::Computed;
        if averages && matches!(sgs.group_type, GroupType::FullyBusy | GroupType::Overloaded) {
            sgs.avg_load = sgs.group_load * u64::from(SCHED_CAPACITY_SCALE) / sgs.group_capacity;
        }
        sgs
    }

    /// fair.c: task_running_on_cpu(). Whether the CPU counts the task, because it is about to exec.
    pub(super) fn task_running_on_cpu(&self, cpu: CpuId, p: TaskId) -> bool {
        let task = &self.task[p];
        cpu == task.cpu && self.se[task.se].avg.last_update_time != 0 && task.on_rq == OnRq::Queued
    }

    /// fair.c: idle_cpu_without(). Whether the CPU, on which no other task is queued, would be idle without `p`.
    fn idle_cpu_without(&mut self, cpu: CpuId, p: TaskId) -> bool {
        self.read_rq_curr(cpu);
        self.read_ttwu_pending(cpu);
        let rq = &self.rq[cpu];
        rq.curr.is_none_or(|curr| curr == p) && rq.wake_list.is_empty()
    }

    /// fair.c: update_pick_idlest(). Whether a group has more room than the idlest so far.
    fn update_pick_idlest(&self, idlest: Option<SgId>, idlest_sgs: &SgLbStats, group: SgId, sgs: &SgLbStats) -> bool {
        if sgs.group_type != idlest_sgs.group_type {
            return sgs.group_type < idlest_sgs.group_type;
        }
        match sgs.group_type {
            GroupType::Overloaded | GroupType::FullyBusy => sgs.avg_load < idlest_sgs.avg_load,
            GroupType::LlcBalance | GroupType::Imbalanced | GroupType::AsymPacking | GroupType::SmtBalance => false,
            GroupType::MisfitTask => {
                idlest.is_none_or(|idlest| self.max_capacity_of(group) > self.max_capacity_of(idlest))
            }
            GroupType::HasSpare => {
                let lower =
                    self.kernel.wake.idlest_ties == IdlestTies::Utilization && sgs.group_util < idlest_sgs.group_util;
                sgs.idle_cpus > idlest_sgs.idle_cpus || sgs.idle_cpus == idlest_sgs.idle_cpus && lower
            }
        }
    }
}
