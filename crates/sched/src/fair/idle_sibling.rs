//! fair.c: select_idle_sibling(): looks for an idle CPU that shares the LLC with a wakeup's target CPU.

use super::fit::Needs;
use super::idle_scan::Wrap;
use super::wake::{ClusterScan, CoreThreads, IdleSibling, KthreadStacking, RecentUsedCpu, ScanGate, SchedIdleCpu};
use crate::access::Glance;
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::sched::*;
use crate::topology::{Domains, SdId, SgId};
use fentry::fentry;
use units::{CpuId, CpuMask, PerCpu};

/// What a search needs while it walks along a mask.
pub(super) struct Search<'a, A: Arch> {
    pub glance: Glance<'a, A>,
    pub domains: &'a Domains,
    /// Where the task may run.
    pub allowed: &'a CpuMask,
    /// `cpu_smt_mask()`.
    pub smt: &'a PerCpu<CpuMask>,
    pub online: &'a CpuMask,
    pub core_threads: CoreThreads,
    /// `this_cpu_cpumask_var_ptr(select_rq_mask)`: the CPUs still to be searched.
    pub cpus: &'a mut CpuMask,
}

impl<A: Arch> Sched<A> {
    #[inline]
    pub(super) fn search(&mut self, p: TaskId) -> Search<'_, A> {
        let refuses_sched_idle = self.refuses_sched_idle(p);
        let Sched { arch, layout, rq, running_idle, cfs_rq, kernel, this_cpu, .. } = self;
        let glance = Glance::new(arch, layout, rq, running_idle, cfs_rq, kernel, *this_cpu);
        Search {
            glance: Glance { refuses_sched_idle, ..glance },
            domains: &self.domains,
            allowed: &self.task[p].cpus_allowed,
            smt: &self.topology.smt,
            online: &self.cpu_online_mask,
            core_threads: kernel.wake.core_threads,
            cpus: &mut self.select_rq_mask,
        }
    }

    /// fair.c: select_idle_sibling(). Returns `target` if it is idle, or if nothing better is found.
    /// Differs: until v4.8 the kernel reads the previous CPU from the task, where it is the same one.
    #[fentry]
    pub(crate) fn select_idle_sibling(&mut self, p: TaskId, prev: CpuId, target: CpuId) -> CpuId {
        let rules = self.kernel.wake;
        let needs = self.asym_needs(p);
        if self.is_free(target, p) && self.asym_fits_cpu(needs, target) {
            return target;
        }
        // An idle CPU of another cluster is held back until the target's cluster has been searched.
        let clusters = rules.cluster_scan == ClusterScan::ClusterFirst && self.domains.sched_cluster_active;
        let mut second_best = None;
        let near = prev != target && self.cpus_share_cache(prev, target);
        if near && self.is_free(prev, p) && self.asym_fits_cpu(needs, prev) {
            if !clusters || self.domains.cpus_share_resources(prev, target) {
                return prev;
            }
            second_best = Some(prev);
        }
        if rules.kthread_stacking == KthreadStacking::SameCpu && self.may_stack(prev) && self.asym_fits_cpu(needs, prev)
        {
            return prev;
        }
        if let Some(recent) = self.recent_used_cpu(p, needs, prev, target) {
            if !clusters || self.domains.cpus_share_resources(recent, target) {
                return recent;
            }
            second_best = second_best.or(Some(recent));
        }
        if let Some(needs) = needs
            && let Some(sd) = self.domains.sd_asym_cpucapacity[target]
        {
            return self.select_idle_capacity(p, needs, sd, target).unwrap_or(target);
        }
        let Some(sd) = self.domains.sd_llc[target] else { return target };
        let found = match rules.idle_sibling {
            IdleSibling::IdleGroups => self.select_idle_group(p, sd, target),
            IdleSibling::CoreCpuSmt | IdleSibling::CoreCpuSmtOfDomain | IdleSibling::CoreCpuSmtOfAllowed => {
                let core = self.select_idle_core(p, sd, target);
                let found = core.or_else(|| self.select_idle_cpu(p, sd, target));
                found.or_else(|| self.select_idle_smt(p, sd, target))
            }
            IdleSibling::OneScan => self.select_idle_core_or_cpu(p, sd, prev, target),
        };
        found.or(second_best).unwrap_or(target)
    }

    /// The part of `select_idle_sibling()` about bound kernel threads: whether the wakee may be stacked on its waker.
    /// `is_per_cpu_kthread(current) && in_task()`, and nothing else runs here.
    fn may_stack(&mut self, prev: CpuId) -> bool {
        let this_cpu = self.smp_processor_id();
        let Some(current) = self.rq[this_cpu].curr else { return false };
        let task = &self.task[current];
        task.mm == 0
            && task.nr_cpus_allowed == 1
            && self.in_task()
            && prev == this_cpu
            && self.rq[this_cpu].nr_running <= 1
    }

    /// The part of `select_idle_sibling()` about `recent_used_cpu`: returns that CPU if it serves. Kernels differ in
    /// what they record for the next wakeup.
    fn recent_used_cpu(&mut self, p: TaskId, needs: Option<Needs>, prev: CpuId, target: CpuId) -> Option<CpuId> {
        let rule = self.kernel.wake.recent_used_cpu;
        if rule == RecentUsedCpu::Absent {
            return None;
        }
        self.read_task_wakees(p);
        let recent = self.task[p].recent_used_cpu;
        if matches!(rule, RecentUsedCpu::PreviousUnchecked | RecentUsedCpu::Previous) {
            self.write_task_wakees(p);
            self.task[p].recent_used_cpu = prev;
        }
        let serves = recent != prev
            && recent != target
            && self.cpus_share_cache(recent, target)
            && self.is_free(recent, p)
            && self.cpumask_test(if rule == RecentUsedCpu::PreviousUnchecked { prev } else { recent }, p)
            && self.asym_fits_cpu(needs, recent);
        if !serves {
            return None;
        }
        if rule == RecentUsedCpu::ByWaker {
            self.write_task_wakees(p);
            self.task[p].recent_used_cpu = prev;
        }
        Some(recent)
    }

    /// The search of `select_idle_sibling()` up to v4.8: from the LLC domain downwards it looks for an entirely idle
    /// group, so that whole cores come before threads.
    fn select_idle_group(&mut self, p: TaskId, sd_llc: SdId, target: CpuId) -> Option<CpuId> {
        let mut search = self.search(p);
        let domains = search.domains;
        domains
            .for_each_lower_domain(sd_llc)
            .flat_map(|sd| domains.groups(sd))
            .find_map(|sg| search.idle_in(sg, target))
    }

    /// fair.c: select_idle_core(). Looks for a core whose threads are all idle. Once it finds none, it is not called
    /// again until a core goes idle ([`Sched::__update_idle_core`]).
    #[fentry]
    fn select_idle_core(&mut self, p: TaskId, sd: SdId, target: CpuId) -> Option<CpuId> {
        if !self.sched_smt_active() || !self.test_idle_cores(target, false) {
            return None;
        }
        self.read_task_policy(p);
        let looks_at_all = self.kernel.wake.idle_sibling != IdleSibling::CoreCpuSmtOfAllowed;
        let mut search = self.search(p);
        search.cpus.assign_and(search.domains.sched_domain_span(sd), search.allowed);
        let mut order = Wrap::at(target);
        let mut found = None;
        while let Some(core) = order.next(search.cpus) {
            if search.is_idle_core(core, looks_at_all) {
                found = Some(core);
                break;
            }
        }
        if found.is_none() {
            self.set_idle_cores(target, false);
        }
        found
    }

    /// fair.c: select_idle_cpu(). Takes the first idle CPU after `target`, among as many as are worth looking at: that
    /// number weighs the usual time of a search (`avg_scan_cost`, per CPU; searches cut short do not count) against
    /// this CPU's average idle time / 512. Under [`SchedIdleCpu::LastResort`] the first CPU with nothing but SCHED_IDLE
    /// tasks serves if the search is cut short.
    #[fentry]
    fn select_idle_cpu(&mut self, p: TaskId, sd: SdId, target: CpuId) -> Option<CpuId> {
        let this_cpu = self.smp_processor_id();
        let this_sd = self.domains.sd_llc[this_cpu]?;
        let avg_idle = self.rq[this_cpu].avg_idle / 512;
        let avg_cost = self.domains[this_sd].avg_scan_cost + 1;
        let too_short = match self.kernel.wake.scan_gate {
            ScanGate::Always => avg_idle < avg_cost - 1,
            ScanGate::IfAsked => self.sched_feat(Feature::SIS_AVG_CPU) && avg_idle < avg_cost,
        };
        if too_short {
            return None;
        }
        let mut nr = u64::MAX;
        if self.sched_feat(Feature::SIS_PROP) {
            let span_avg = u64::from(self.domains[sd].span_weight) * avg_idle;
            nr = if span_avg > 4 * avg_cost { span_avg / avg_cost } else { 4 };
        }
        let begin = self.local_clock();
        let counts_allowed = self.kernel.wake.idle_sibling != IdleSibling::CoreCpuSmt;
        let last_resort = self.kernel.wake.sched_idle_cpu == SchedIdleCpu::LastResort;
        let mut search = self.search(p);
        let (mut found, mut si_cpu) = (None, None);
        let mut span = search.domains.sched_domain_span(sd);
        let mut anywhere = span.is_subset(search.allowed);
        if counts_allowed && !anywhere {
            search.cpus.assign_and(span, search.allowed);
            (span, anywhere) = (search.cpus, true);
        }
        let in_vain = !last_resort && search.glance.looks_in_vain(span);
        if in_vain {
            let allowed = search.allowed;
            let cut_short = nr <= span.weight() as u64;
            if anywhere && !cut_short {
                search.glance.pay_for_looks(span.iter_wrap(target));
            } else {
                let looks = span.iter_wrap(target).take((nr - 1).min(u64::from(u32::MAX)) as usize);
                search.glance.pay_for_looks(looks.filter(|&cpu| anywhere || allowed.contains(cpu)));
            }
            if cut_short {
                return None;
            }
        }
        for cpu in span.iter_wrap(target).take_while(|_| !in_vain) {
            nr -= 1;
            if nr == 0 {
                return si_cpu;
            }
            if (anywhere || search.allowed.contains(cpu)) && search.glance.is_free(cpu) {
                found = Some(cpu);
                break;
            }
            if last_resort && si_cpu.is_none() && search.glance.sched_idle_cpu(cpu) {
                si_cpu = Some(cpu);
            }
        }
        let time = self.local_clock() - begin;
        self.write_domain(this_sd);
        let cost = &mut self.domains[this_sd].avg_scan_cost;
        let delta = time.wrapping_sub(*cost) as i64 / 8;
        *cost = cost.wrapping_add_signed(delta);
        found
    }

    /// fair.c: select_idle_smt(). An idle thread of the target's core, which the search may not have reached.
    #[fentry]
    fn select_idle_smt(&mut self, p: TaskId, sd: SdId, target: CpuId) -> Option<CpuId> {
        if !self.sched_smt_active() {
            return None;
        }
        let of_domain = self.kernel.wake.idle_sibling != IdleSibling::CoreCpuSmt;
        let last_resort = self.kernel.wake.sched_idle_cpu == SchedIdleCpu::LastResort;
        let mut search = self.search(p);
        let span = search.domains.sched_domain_span(sd);
        let serves = |cpu: CpuId| search.allowed.contains(cpu) && (!of_domain || span.contains(cpu));
        let mut si_cpu = None;
        for cpu in search.threads_of(target).filter(|&cpu| serves(cpu)) {
            if search.glance.is_free(cpu) {
                return Some(cpu);
            }
            if last_resort && si_cpu.is_none() && search.glance.sched_idle_cpu(cpu) {
                si_cpu = Some(cpu);
            }
        }
        si_cpu
    }

    // Idle cores.

    /// fair.c: test_idle_cores(). Whether the LLC of `cpu`, or whatever else shares that flag, may have idle cores;
    /// `default` if no flag is kept.
    pub(super) fn test_idle_cores(&mut self, cpu: CpuId, default: bool) -> bool {
        let Some(shared) = self.domains.sd_balance_shared[cpu] else { return default };
        self.read_domain_shared(shared);
        self.domains[shared].has_idle_cores
    }

    /// fair.c: set_idle_cores().
    pub(super) fn set_idle_cores(&mut self, cpu: CpuId, idle_cores: bool) {
        if let Some(shared) = self.domains.sd_balance_shared[cpu] {
            self.write_domain_shared(shared);
            self.domains[shared].has_idle_cores = idle_cores;
        }
    }

    /// sched.h: update_idle_core(). `cpu` goes idle: called when the idle task is picked.
    /// Differs: does nothing in kernels that search by groups.
    #[inline]
    pub(crate) fn update_idle_core(&mut self, cpu: CpuId) {
        if self.kernel.wake.idle_sibling != IdleSibling::IdleGroups && self.sched_smt_active() {
            self.__update_idle_core(cpu);
        }
    }

    /// fair.c: __update_idle_core(). If the core's other threads are idle, its cache has an idle core.
    #[fentry]
    pub(crate) fn __update_idle_core(&mut self, core: CpuId) {
        if self.test_idle_cores(core, true) {
            return;
        }
        let Sched { arch, layout, rq, running_idle, cfs_rq, kernel, topology, cpu_online_mask, this_cpu, .. } = self;
        let mut glance = Glance::new(arch, layout, rq, running_idle, cfs_rq, kernel, *this_cpu);
        for cpu in topology.smt[core].iter() {
            if cpu != core && cpu_online_mask.contains(cpu) && !glance.idle_cpu(cpu) {
                return;
            }
        }
        self.set_idle_cores(core, true);
    }
}

impl<'a, A: Arch> Search<'a, A> {
    /// The first CPU of the group that the task may use, if the whole group is idle and does not contain `target`,
    /// which is busy.
    fn idle_in(&mut self, sg: SgId, target: CpuId) -> Option<CpuId> {
        let span = self.domains.sched_group_span(sg);
        if !span.intersects(self.allowed) {
            return None;
        }
        let idle = span.iter().all(|cpu| cpu != target && self.glance.idle_cpu(cpu));
        if idle { span.iter().find(|&cpu| self.allowed.contains(cpu)) } else { None }
    }

    /// The online threads of a core.
    pub(super) fn threads_of(&self, cpu: CpuId) -> impl Iterator<Item = CpuId> + use<'a, A> {
        let online = self.online;
        self.smt[cpu].iter().filter(|&thread| online.contains(thread))
    }

    /// Looks at every thread, in some kernels even after a busy one; removes all of them from the mask.
    fn is_idle_core(&mut self, core: CpuId, looks_at_all: bool) -> bool {
        let mut idle = true;
        for thread in self.threads_of(core) {
            idle &= self.glance.idle_cpu(thread);
            if !idle && !looks_at_all {
                break;
            }
        }
        self.cpus.subtract(&self.smt[core]);
        idle
    }
}
