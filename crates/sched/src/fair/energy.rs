//! fair.c: energy-aware placement: of the CPUs on which a woken task fits, it takes the one that costs the least
//! energy. The candidates are the CPU with the most spare capacity in each performance domain, and the task's previous
//! CPU.
//!
//! Placement considers energy while no CPU is overutilized; after that, load is spread as on other machines until all
//! tasks fit again.
//!
//! Differs: nothing but the governor limits frequencies (no thermal pressure).

mod whole_domains;

use super::fit::{Fits, Needs};
use super::wake::EnergySmt;
use crate::arch::Arch;
use crate::core::{ClampId, Sched, UtilClamp};
use crate::cpu_topology::EnergyModel;
use crate::errno::{Answer, Errno, Refusal};
use crate::sched::*;
use crate::topology::{EnergyAware, PerfDomain, RdId, SdId, map_util_perf};
use fentry::fentry;
use units::{CpuId, CpuMask, unlikely};

/// topology.c: EM_MAX_COMPLEXITY, until v6.6.
const EM_MAX_COMPLEXITY: usize = 2048;

/// What the governor makes of a CPU's utilization: a minimum performance, and what it asks for. 1024 is a full CPU.
#[derive(Clone, Copy)]
pub(crate) struct GovernorPerf {
    pub min: u64,
    pub wanted: u64,
}

/// fair.c: struct energy_env. Utilizations and capacities; 1024 is a full CPU.
#[derive(Clone, Copy, Default)]
struct EnergyEnv {
    /// What the task adds.
    task_busy_time: u64,
    /// The utilization of the domain's CPUs without the task.
    pd_busy_time: u64,
    /// The capacity of one CPU of the domain.
    cpu_cap: u64,
    /// The capacity of all its CPUs.
    pd_cap: u64,
}

/// A candidate CPU: how well the task fits, and the spare capacity that would remain.
#[derive(Clone, Copy)]
struct Candidate {
    cpu: CpuId,
    fits: Fits,
    spare_cap: u64,
}

/// The best CPU found so far, other than the previous one.
#[derive(Clone, Copy)]
struct Best {
    cpu: CpuId,
    fits: Fits,
    actual_cap: u64,
}

/// What `find_energy_efficient_cpu()` knows of the previous CPU and of the cheapest one.
#[derive(Clone, Copy)]
struct Compared {
    prev_delta: u64,
    /// `None` while the task does not fit on its previous CPU.
    prev_fits: Option<Fits>,
    prev_actual_cap: u64,
    best_delta: u64,
    best: Option<Best>,
}

impl<A: Arch> Sched<A> {
    /// sched.h: sched_energy_enabled().
    #[inline]
    pub(crate) fn sched_energy_enabled(&self) -> bool {
        unlikely(self.sched_energy_present)
    }

    /// topology.c: build_perf_domains(), and sched_energy_set(), for all root domains.
    pub(crate) fn build_perf_domains(&mut self) {
        let mut has_eas = false;
        for rd in 0..self.root_domains.len() {
            let domains = self.perf_domains_of(RdId(rd as u32));
            has_eas |= !domains.is_empty();
            self.root_domains[rd].pd = domains;
        }
        self.sched_energy_present = has_eas;
    }

    /// topology.c: sched_is_eas_possible(). Whether these CPUs allow energy-aware scheduling, or why not.
    /// Differs: a machine without an energy model, which does not tell the governor either, is refused at once.
    ///
    /// # Errors
    /// EOPNOTSUPP, which is then the answer of `sched_energy_aware`.
    pub(crate) fn sched_is_eas_possible(&self, cpu_map: &CpuMask) -> Answer<&EnergyModel> {
        let no = |why| Refusal::new(Errno::EOPNOTSUPP, why);
        let model = self.topology.energy_model.as_ref().ok_or(no("the machine has no energy model"))?;
        let asym = |cpu: CpuId| self.domains.sd_asym_cpucapacity[cpu].is_some();
        let unequal = match self.kernel.wake.energy {
            EnergyAware::Absent => false,
            EnergyAware::WholeDomains
            | EnergyAware::CandidateDomains
            | EnergyAware::ByFrequency
            | EnergyAware::ByBoostedFrequency => cpu_map.first().is_some_and(asym),
            EnergyAware::ByPerformanceAlone | EnergyAware::ByPerformance => cpu_map.iter().any(asym),
        };
        let invariant = self.kernel.wake.energy == EnergyAware::WholeDomains
            || self.kernel.load.frequency != super::load::FrequencyInvariance::Unknown;
        let refuses_smt = self.kernel.wake.energy_smt == EnergySmt::Refused;
        for (wrong, why) in [
            (!unequal, "no domain has CPUs of different capacity"),
            (self.sched_smt_active() && refuses_smt, "cores have several threads"),
            (!invariant, "load tracking does not know the frequency that CPUs run at"),
            (!model.schedutil, "the frequency governor is not schedutil"),
        ] {
            if wrong {
                return Err(no(why));
            }
        }
        Ok(model)
    }

    /// The performance domains of a root domain, that of the last CPU first; none if energy-aware scheduling is off.
    fn perf_domains_of(&self, rd: RdId) -> Vec<PerfDomain> {
        let rule = self.kernel.wake.energy;
        let cpu_map = &self.root_domains[rd.index()].span;
        let Ok(model) = self.sched_is_eas_possible(cpu_map) else { return Vec::new() };
        if self.sysctl.sched_energy_aware == 0 {
            return Vec::new();
        }
        let mut list: Vec<PerfDomain> = Vec::new();
        for cpu in cpu_map.iter() {
            if list.iter().any(|domain| domain.cpus.contains(cpu)) {
                continue;
            }
            let Some(told) = model.domains.iter().find(|domain| domain.cpus.contains(cpu)) else { return Vec::new() };
            list.insert(0, PerfDomain::em_create_perf_table(rule, told, self.topology.capacity[cpu].into()));
        }
        let states: usize = list.iter().map(PerfDomain::nr_perf_states).sum();
        if !rule.by_performance() && list.len() * (states + cpu_map.weight()) > EM_MAX_COMPLEXITY {
            return Vec::new();
        }
        list
    }

    // Overutilization.

    /// fair.c: is_rd_overutilized(). Always true if energy-aware scheduling is off.
    #[inline]
    pub(crate) fn is_rd_overutilized(&self, cpu: CpuId) -> bool {
        !self.sched_energy_enabled() || self.root_domain(cpu).overutilized
    }

    /// fair.c: set_rd_overutilized().
    #[doc(alias = "set_rd_overutilized_status")]
    pub(super) fn set_rd_overutilized(&mut self, cpu: CpuId, overutilized: bool) {
        if self.sched_energy_enabled() {
            self.write_root_domain(cpu);
            self.root_domain_mut(cpu).overutilized = overutilized;
            self.trace_sched_overutilized_tp(cpu, overutilized);
        }
    }

    /// fair.c: cpu_overutilized(). Whether the CPU's tasks do not fit on it.
    pub(super) fn cpu_overutilized(&self, cpu: CpuId) -> bool {
        if !self.sched_energy_enabled() {
            return false;
        }
        let needs = Needs {
            util: self.cpu_util_cfs(cpu),
            uclamp_min: self.uclamp.uclamp_rq_get(cpu, ClampId::Min),
            uclamp_max: self.uclamp.uclamp_rq_get(cpu, ClampId::Max),
        };
        // A lower clamp that is too high is no reason to spread by itself.
        self.util_fits_cpu(needs, cpu) == Fits::No
    }

    /// fair.c: check_update_overutilized_status().
    #[inline]
    pub(super) fn check_update_overutilized_status(&mut self, cpu: CpuId) {
        if self.sched_energy_enabled() && !self.root_domain(cpu).overutilized && self.cpu_overutilized(cpu) {
            self.set_rd_overutilized(cpu, true);
        }
    }

    // Placement.

    /// fair.c: find_energy_efficient_cpu(). `None`: choose as without energy-aware scheduling.
    #[fentry]
    pub(super) fn find_energy_efficient_cpu(&mut self, p: TaskId, prev_cpu: CpuId) -> Option<CpuId> {
        let this_cpu = self.smp_processor_id();
        self.read_root_domain(this_cpu);
        let rd = self.rq[this_cpu].rd;
        if self.root_domains[rd.index()].pd.is_empty() || self.root_domains[rd.index()].overutilized {
            return None;
        }
        let mut level = self.domains.sd_asym_cpucapacity[this_cpu];
        while let Some(sd) = level
            && !self.domains.sched_domain_span(sd).contains(prev_cpu)
        {
            level = self.domains[sd].parent;
        }
        let sd = level?;
        self.sync_entity_load_avg(self.task[p].se);
        let needs = self.needs_of(p);
        // Since v5.12 and until v5.19, a task whose upper clamp is zero needs nothing, either (`uclamp_task_util()`).
        let capped = self.kernel.wake.energy == EnergyAware::CandidateDomains && needs.uclamp_max == 0;
        let boosted = needs.uclamp_min != 0 && self.kernel.core.uclamp != UtilClamp::FrequencyOnly;
        if needs.util == 0 && !boosted || capped {
            return Some(prev_cpu);
        }
        let pds = std::mem::take(&mut self.root_domains[rd.index()].pd);
        let chosen = match self.kernel.wake.energy {
            EnergyAware::WholeDomains => self.compare_whole_domains(&pds, p, needs, sd, prev_cpu),
            EnergyAware::CandidateDomains => self.compare_candidate_domains(&pds, p, needs, sd, prev_cpu),
            EnergyAware::Absent
            | EnergyAware::ByFrequency
            | EnergyAware::ByBoostedFrequency
            | EnergyAware::ByPerformanceAlone
            | EnergyAware::ByPerformance => {
                self.compare_energy(&pds, p, needs, sd, prev_cpu).and_then(Compared::chosen)
            }
        };
        self.root_domains[rd.index()].pd = pds;
        Some(chosen.unwrap_or(prev_cpu))
    }

    /// The loop of `find_energy_efficient_cpu()`. `None`: utilizations changed meanwhile, and the task stays.
    fn compare_energy(
        &mut self,
        pds: &[PerfDomain],
        p: TaskId,
        needs: Needs,
        sd: SdId,
        prev_cpu: CpuId,
    ) -> Option<Compared> {
        let mut eenv = EnergyEnv { task_busy_time: self.eenv_task_busy_time(p, prev_cpu), ..EnergyEnv::default() };
        let mut compared =
            Compared { prev_delta: u64::MAX, prev_fits: None, prev_actual_cap: 0, best_delta: u64::MAX, best: None };
        for pd in pds {
            let online = self.cpu_online_mask.and(&pd.cpus);
            let Some(first) = online.first() else { continue };
            eenv.cpu_cap = self.capacity_orig_of(first);
            eenv.pd_cap = eenv.cpu_cap * online.weight() as u64;
            let (prev, most_spare) = self.candidates_in(pd, p, needs, sd, prev_cpu);
            if prev.is_none() && most_spare.is_none() {
                continue;
            }
            eenv.pd_busy_time = self.eenv_pd_busy_time(pd, p, eenv.pd_cap);
            let base_energy = self.compute_energy(&eenv, pd, p, None);
            if let Some(prev) = prev {
                compared.prev_delta = self.compute_energy(&eenv, pd, p, Some(prev_cpu)).checked_sub(base_energy)?;
                compared.prev_fits = Some(prev.fits);
                compared.prev_actual_cap = eenv.cpu_cap;
                compared.best_delta = compared.best_delta.min(compared.prev_delta);
            }
            let Some(candidate) = most_spare.filter(|c| prev.is_none_or(|prev| c.spare_cap > prev.spare_cap)) else {
                continue;
            };
            if !compared.may_be_better(candidate, eenv.cpu_cap) {
                continue;
            }
            let delta = self.compute_energy(&eenv, pd, p, Some(candidate.cpu)).checked_sub(base_energy)?;
            compared.take_if_better(candidate, delta, eenv.cpu_cap);
        }
        Some(compared)
    }

    /// The inner loop of `find_energy_efficient_cpu()`: the previous CPU, if it is in this domain and the task fits
    /// there; and among the other CPUs on which it fits, the one with the most spare capacity.
    fn candidates_in(
        &mut self,
        pd: &PerfDomain,
        p: TaskId,
        needs: Needs,
        sd: SdId,
        prev_cpu: CpuId,
    ) -> (Option<Candidate>, Option<Candidate>) {
        let (mut prev, mut most_spare): (_, Option<Candidate>) = (None, None);
        // An idle queue has no clamps of its own: those of the last non-idle queue in the walk remain in effect.
        let mut clamped = needs;
        for cpu in pd.cpus.iter() {
            let Some(candidate) = self.candidate(cpu, p, needs, &mut clamped, sd) else { continue };
            let fits = candidate.fits;
            if cpu == prev_cpu {
                prev = Some(candidate);
            } else if most_spare.is_none_or(|most| (fits, candidate.spare_cap) > (most.fits, most.spare_cap)) {
                most_spare = Some(candidate);
            }
        }
        (prev, most_spare)
    }

    /// One step of that loop. `None`: the task may not run there, or does not fit. `clamped` keeps the clamps of the last queue.
    fn candidate(&mut self, cpu: CpuId, p: TaskId, needs: Needs, clamped: &mut Needs, sd: SdId) -> Option<Candidate> {
        let usable = self.cpu_online_mask.contains(cpu)
            && self.domains.sched_domain_span(sd).contains(cpu)
            && self.cpumask_test(cpu, p);
        if !usable {
            return None;
        }
        self.read_cpu_load(cpu, 0);
        self.read_rq_clock(cpu);
        let util = self.cpu_util(cpu, Some(p), Some(cpu), false);
        if self.uclamp_is_used() && !self.uclamp.uclamp_rq_is_idle(cpu) {
            clamped.uclamp_min = needs.uclamp_min.max(self.uclamp.uclamp_rq_get(cpu, ClampId::Min));
            clamped.uclamp_max = needs.uclamp_max.max(self.uclamp.uclamp_rq_get(cpu, ClampId::Max));
        }
        let fits = self.util_fits_cpu(Needs { util, ..*clamped }, cpu);
        let spare_cap = self.capacity_of(cpu).saturating_sub(util);
        (fits != Fits::No).then_some(Candidate { cpu, fits, spare_cap })
    }

    /// fair.c: eenv_task_busy_time(). The task's expected utilization, less the interrupts' share of the CPU.
    fn eenv_task_busy_time(&self, p: TaskId, prev_cpu: CpuId) -> u64 {
        let max_cap = self.capacity_orig_of(prev_cpu);
        let irq = self.cpu_util_irq(prev_cpu);
        if irq >= max_cap { max_cap } else { scale_irq_capacity(self.task_util_est(p), irq, max_cap) }
    }

    /// fair.c: eenv_pd_busy_time(). The utilization of a domain's CPUs without the task.
    fn eenv_pd_busy_time(&self, pd: &PerfDomain, p: TaskId, pd_cap: u64) -> u64 {
        let online = pd.cpus.iter().filter(|&cpu| self.cpu_online_mask.contains(cpu));
        let busy_time: u64 =
            online.map(|cpu| self.effective_cpu_util(cpu, self.cpu_util(cpu, Some(p), None, false))).sum();
        busy_time.min(pd_cap)
    }

    /// fair.c: eenv_pd_max_util(). The performance that the busiest CPU of a domain asks for, with the task on
    /// `dst_cpu`.
    fn eenv_pd_max_util(&self, eenv: &EnergyEnv, pd: &PerfDomain, p: TaskId, dst_cpu: Option<CpuId>) -> u64 {
        let online = pd.cpus.iter().filter(|&cpu| self.cpu_online_mask.contains(cpu));
        let asked = online.map(|cpu| {
            let comes = Some(p).filter(|_| dst_cpu == Some(cpu));
            match self.kernel.wake.energy {
                EnergyAware::Absent
                | EnergyAware::WholeDomains
                | EnergyAware::CandidateDomains
                | EnergyAware::ByFrequency => {
                    self.frequency_util(cpu, self.cpu_util(cpu, Some(p), dst_cpu, false), comes)
                }
                EnergyAware::ByBoostedFrequency => {
                    self.frequency_util(cpu, self.cpu_util(cpu, Some(p), dst_cpu, true), comes)
                }
                EnergyAware::ByPerformanceAlone | EnergyAware::ByPerformance => {
                    self.governor_perf(cpu, self.cpu_util(cpu, Some(p), dst_cpu, true), 0, comes).wanted
                }
            }
        });
        asked.max().unwrap_or(0).min(eenv.cpu_cap)
    }

    /// fair.c: compute_energy(). `dst_cpu`: the CPU on which the task would be; `None`: on none.
    fn compute_energy(&mut self, eenv: &EnergyEnv, pd: &PerfDomain, p: TaskId, dst_cpu: Option<CpuId>) -> u64 {
        let max_util = self.eenv_pd_max_util(eenv, pd, p, dst_cpu);
        let busy_time = match dst_cpu {
            Some(_) => eenv.pd_cap.min(eenv.pd_busy_time + eenv.task_busy_time),
            None => eenv.pd_busy_time,
        };
        pd.em_cpu_energy(max_util, busy_time, eenv.cpu_cap)
    }

    // Utilization as the frequency governor sees it.

    /// fair.c: effective_cpu_util() (core.c until v6.7, ENERGY_UTIL). The utilization of all classes and interrupts.
    pub(crate) fn effective_cpu_util(&self, cpu: CpuId, util_cfs: u64) -> u64 {
        let scale = self.capacity_orig_of(cpu);
        let irq = self.cpu_util_irq(cpu);
        if irq >= scale {
            return scale;
        }
        let util = util_cfs + self.cpu_util_rt(cpu) + self.cpu_util_dl(cpu);
        if util >= scale {
            return scale;
        }
        scale.min(scale_irq_capacity(util, irq, scale) + irq)
    }

    /// `effective_cpu_util()` of v6.1 with FREQUENCY_UTIL: within the clamps of the queue and of a task that would be
    /// added.
    ///
    pub(crate) fn frequency_util(&self, cpu: CpuId, util_cfs: u64, p: Option<TaskId>) -> u64 {
        let max = self.capacity_orig_of(cpu);
        if self.rt_tasks_go_fast(cpu) {
            return max;
        }
        let irq = self.cpu_util_irq(cpu);
        if irq >= max {
            return max;
        }
        let util = self.uclamp_rq_util_with(cpu, util_cfs + self.cpu_util_rt(cpu), p);
        if util + self.cpu_util_dl(cpu) >= max {
            return max;
        }
        max.min(scale_irq_capacity(util, irq, max) + irq)
    }

    /// cpufreq_schedutil.c: sugov_effective_cpu_perf(), of what `eenv_pd_max_util()` passes to it (v6.8): with
    /// headroom, but no more than the upper clamps allow, and no less than the lower clamps and deadline tasks ask for.
    /// `boost`: a lower bound of the utilization.
    #[doc(alias = "sugov_effective_cpu_perf")]
    pub(crate) fn governor_perf(&self, cpu: CpuId, util_cfs: u64, boost: u64, p: Option<TaskId>) -> GovernorPerf {
        let scale = self.capacity_orig_of(cpu);
        let irq = self.cpu_util_irq(cpu);
        let actual = self.effective_cpu_util(cpu, util_cfs).max(boost);
        let (mut min, mut max) = (scale, scale);
        if irq < scale {
            min = (irq + self.cpu_bw_dl(cpu)).max(self.uclamp.uclamp_rq_get(cpu, ClampId::Min));
            max = scale.min(self.uclamp.uclamp_rq_get(cpu, ClampId::Max));
            if self.rt_tasks_go_fast(cpu) {
                min = min.max(scale);
            }
        }
        if let Some(p) = p
            && self.uclamp_is_used()
        {
            min = min.max(self.uclamp_eff_value(p, ClampId::Min));
            let task_max = self.uclamp_eff_value(p, ClampId::Max);
            max = if self.uclamp.uclamp_rq_is_idle(cpu) { task_max } else { max.max(task_max) };
        }
        GovernorPerf { min, wanted: min.max(map_util_perf(actual).min(max)) }
    }

    /// Whether the CPU has real-time tasks that run at the highest frequency, because no clamp limits them.
    #[doc(alias = "rt_rq_is_runnable")]
    fn rt_tasks_go_fast(&self, cpu: CpuId) -> bool {
        let rt_rq = &self.rt[cpu];
        !self.uclamp_is_used() && rt_rq.rt_queued && rt_rq.rt_nr_running > 0
    }
}

impl Compared {
    /// Whether a candidate's energy is worth computing: it fits better than the best so far, or as well; if both miss
    /// the lower clamp, it must have more capacity.
    fn may_be_better(&self, candidate: Candidate, actual_cap: u64) -> bool {
        let best_fits = self.best.map_or(Fits::ButClamp, |best| best.fits);
        let best_cap = self.best.map_or(0, |best| best.actual_cap);
        candidate.fits >= best_fits && !(candidate.fits == Fits::ButClamp && actual_cap <= best_cap)
    }

    fn take_if_better(&mut self, candidate: Candidate, delta: u64, actual_cap: u64) {
        let both_fit = candidate.fits == Fits::Yes && self.best.is_some_and(|best| best.fits == Fits::Yes);
        if both_fit && delta >= self.best_delta {
            return;
        }
        self.best_delta = delta;
        self.best = Some(Best { cpu: candidate.cpu, fits: candidate.fits, actual_cap });
    }

    /// The end of `find_energy_efficient_cpu()`: the best CPU, if it is better than the previous one.
    fn chosen(self) -> Option<CpuId> {
        let best = self.best?;
        let prev_fits = self.prev_fits.unwrap_or(Fits::ButClamp);
        let better = best.fits > prev_fits
            || best.fits == Fits::Yes && self.best_delta < self.prev_delta
            || best.fits == Fits::ButClamp && best.actual_cap > self.prev_actual_cap;
        better.then_some(best.cpu)
    }
}

/// sched.h: scale_irq_capacity().
fn scale_irq_capacity(util: u64, irq: u64, max: u64) -> u64 {
    util * (max - irq) / max
}
