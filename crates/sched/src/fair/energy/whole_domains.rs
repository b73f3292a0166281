//! Energy-aware placement of v5.0 to v5.19: a task leaves for a sixteenth of the energy of all domains, or, since v5.13, of those where it
//! could go.

use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::fit::{Fits, Needs};
use crate::sched::TaskId;
use crate::topology::{EnergyAware, PerfDomain, SdId};
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// The loop of `find_energy_efficient_cpu()`, and its end. `None`: the task stays.
    pub(super) fn compare_whole_domains(
        &mut self,
        pds: &[PerfDomain],
        p: TaskId,
        needs: Needs,
        sd: SdId,
        prev_cpu: CpuId,
    ) -> Option<CpuId> {
        let (mut prev_delta, mut best_delta, mut base) = (None, u64::MAX, 0);
        let mut best = None;
        let mut clamped = needs;
        for pd in pds {
            let base_pd = self.energy_of_domain(pd, p, None);
            base += base_pd;
            let (mut most_spare, mut spare_cap) = (None, 0);
            for cpu in pd.cpus.iter() {
                let candidate = self.candidate(cpu, p, needs, &mut clamped, sd);
                let Some(candidate) = candidate.filter(|candidate| candidate.fits == Fits::Yes) else { continue };
                if cpu == prev_cpu {
                    let delta = self.energy_of_domain(pd, p, Some(cpu)).saturating_sub(base_pd);
                    prev_delta = Some(delta);
                    best_delta = best_delta.min(delta);
                }
                if candidate.spare_cap > spare_cap {
                    (most_spare, spare_cap) = (Some(cpu), candidate.spare_cap);
                }
            }
            if let Some(cpu) = most_spare.filter(|&cpu| cpu != prev_cpu) {
                let delta = self.energy_of_domain(pd, p, Some(cpu)).saturating_sub(base_pd);
                if delta < best_delta {
                    (best, best_delta) = (Some(cpu), delta);
                }
            }
        }
        match prev_delta {
            None => best,
            Some(prev_delta) => best.filter(|_| prev_delta - best_delta > (prev_delta + base) >> 4),
        }
    }

    /// The same since v5.13. Also `None` if utilizations changed meanwhile.
    pub(super) fn compare_candidate_domains(
        &mut self,
        pds: &[PerfDomain],
        p: TaskId,
        needs: Needs,
        sd: SdId,
        prev_cpu: CpuId,
    ) -> Option<CpuId> {
        let (mut prev_delta, mut best_delta, mut base) = (None, u64::MAX, 0);
        let mut best = None;
        let mut clamped = needs;
        for pd in pds {
            let (mut most_spare, mut spare_cap, mut prev_serves) = (None, 0, false);
            for cpu in pd.cpus.iter() {
                let candidate = self.candidate(cpu, p, needs, &mut clamped, sd);
                let Some(candidate) = candidate.filter(|candidate| candidate.fits == Fits::Yes) else { continue };
                if cpu == prev_cpu {
                    prev_serves = true;
                } else if candidate.spare_cap > spare_cap {
                    (most_spare, spare_cap) = (Some(cpu), candidate.spare_cap);
                }
            }
            if most_spare.is_none() && !prev_serves {
                continue;
            }
            let base_pd = self.energy_of_domain(pd, p, None);
            base += base_pd;
            if prev_serves {
                let delta = self.energy_of_domain(pd, p, Some(prev_cpu)).checked_sub(base_pd)?;
                prev_delta = Some(delta);
                best_delta = best_delta.min(delta);
            }
            if let Some(cpu) = most_spare {
                let delta = self.energy_of_domain(pd, p, Some(cpu)).checked_sub(base_pd)?;
                if delta < best_delta {
                    (best, best_delta) = (Some(cpu), delta);
                }
            }
        }
        match prev_delta {
            None => best,
            Some(prev_delta) => best.filter(|_| prev_delta - best_delta > (prev_delta + base) >> 4),
        }
    }

    /// fair.c: compute_energy() of these versions. `dst_cpu`: the CPU on which the task would be; `None`: on none.
    fn energy_of_domain(&self, pd: &PerfDomain, p: TaskId, dst_cpu: Option<CpuId>) -> u64 {
        // What a task adds to a CPU is its own estimate; before, a CPU's estimates took the place of its tasks' utilizations.
        let estimate_comes = self.kernel.wake.energy == EnergyAware::CandidateDomains;
        let (mut sum, mut most, mut allowed) = (0, 0, u64::MAX);
        for cpu in pd.cpus.iter().filter(|&cpu| self.cpu_online_mask.contains(cpu)) {
            let util = self.cpu_util(cpu, Some(p), dst_cpu, false);
            let running = match dst_cpu == Some(cpu) && estimate_comes {
                true => self.cpu_util(cpu, Some(p), None, false) + self.task_util_est(p),
                false => util,
            };
            sum += self.effective_cpu_util(cpu, running);
            if estimate_comes {
                allowed = self.capacity_orig_of(cpu);
            }
            let comes = Some(p).filter(|_| dst_cpu == Some(cpu));
            let asked = self.frequency_util(cpu, util, comes) + self.cpu_bw_dl(cpu);
            most = most.max(asked.min(self.capacity_orig_of(cpu)));
        }
        pd.em_cpu_energy(most, sum, allowed)
    }
}
