//! Performance domains: CPUs that share one clock, and the cost of running at each of its frequencies.
//! kernel/power/energy_model.c makes the tables from what the machine reports, topology.c attaches them to root
//! domains.

use crate::behaviour;
use crate::cpu_topology::EmPerfDomain;
use units::CpuMask;

behaviour! {
    /// How wakeups reckon with energy, on machines with an energy model, unequal CPUs and the governor schedutil.
    pub enum EnergyAware = "wake.energy" {
        Absent = "absent", since "v2.6.32", commit "", "not at all";
        WholeDomains = "whole-domains", since "v5.0", commit "732cd75b8c92",
            "a table of costs by frequency, which the busiest CPU's utilization, clamped, asks for at five quarters; all domains are summed \
             up, and a task leaves only for a sixteenth less than that (as in 5.4.286 and 5.10.262)";
        CandidateDomains = "candidate-domains", since "v5.14", commit "8d4c97c105ca",
            "the same table, with headroom within the capacity; only domains with a candidate are looked at and summed up, and the task adds its \
             estimated utilization to what is there; it leaves for a sixteenth of their sum (as in 5.15.135)";
        ByFrequency = "by-frequency", since "v6.0", commit "b812fc9768e0",
            "the same, but without states as costly as a faster one (v5.16); what the task adds is the same on every CPU, and it leaves for anything cheaper";
        ByBoostedFrequency = "by-boosted-frequency", since "v6.5", commit "7d0583cf9ec7",
            "the same, but waiting counts as utilization of the CPU that asks for the frequency; not the task's own";
        ByPerformanceAlone = "by-performance-alone", since "v6.9", commit "1b600da51073",
            "the same, with a table of costs by performance, and headroom is added as the governor does, within the clamps (v6.8: \
             9c0b4bb7f630)";
        ByPerformance = "by-performance", since "v7.2", commit "",
            "the same, but the task's waiting counts as well";
    }
}

impl EnergyAware {
    /// Whether costs are looked up by performance.
    pub(crate) fn by_performance(self) -> bool {
        matches!(self, EnergyAware::ByPerformanceAlone | EnergyAware::ByPerformance)
    }
}

/// energy_model.h: struct em_perf_state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EmPerfState {
    /// In kHz.
    frequency: u64,
    /// A CPU's capacity at this frequency; 1024 is a full CPU of the biggest kind. Read from v6.9 on.
    performance: u64,
    /// The cost of a unit of utilization, in the version's own unit.
    cost: u64,
    /// EM_PERF_STATE_INEFFICIENT: a faster state costs no more.
    inefficient: bool,
}

/// sched.h: struct perf_domain, with its struct em_perf_domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PerfDomain {
    pub cpus: CpuMask,
    /// Ascending.
    table: Vec<EmPerfState>,
    /// arch_scale_cpu_capacity() of its CPUs.
    scale_cpu: u64,
    rule: EnergyAware,
}

impl PerfDomain {
    /// energy_model.c: em_create_perf_table(). The table of a domain whose CPUs have that capacity.
    #[doc(alias = "em_compute_costs")]
    pub(crate) fn em_create_perf_table(rule: EnergyAware, told: &EmPerfDomain, scale_cpu: u64) -> PerfDomain {
        let fmax = told.states.last().expect("a performance domain has states").frequency_khz;
        let state = |state: &crate::cpu_topology::EmState| {
            let performance = scale_cpu * state.frequency_khz / fmax;
            let cost = match rule {
                EnergyAware::Absent
                | EnergyAware::WholeDomains
                | EnergyAware::CandidateDomains
                | EnergyAware::ByFrequency
                | EnergyAware::ByBoostedFrequency => fmax * state.power_uw / state.frequency_khz,
                EnergyAware::ByPerformanceAlone | EnergyAware::ByPerformance => state.power_uw * 10 / performance,
            };
            EmPerfState { frequency: state.frequency_khz, performance, cost, inefficient: false }
        };
        let mut table: Vec<EmPerfState> = told.states.iter().map(state).collect();
        let mut prev_cost = u64::MAX;
        for state in table.iter_mut().rev() {
            state.inefficient = state.cost >= prev_cost;
            prev_cost = prev_cost.min(state.cost);
        }
        PerfDomain { cpus: told.cpus.clone(), table, scale_cpu, rule }
    }

    /// For each state, whether a faster one costs no more.
    pub(crate) fn inefficient(&self) -> impl Iterator<Item = bool> {
        self.table.iter().map(|state| state.inefficient)
    }

    pub(crate) fn nr_perf_states(&self) -> usize {
        self.table.len()
    }

    /// energy_model.h: em_cpu_energy(). The energy that the domain uses, in a unit of its own, if its busiest CPU needs
    /// `max_util` and all of them together run for `sum_util`. `allowed_cpu_cap`: an upper bound of what may be asked
    /// for.
    ///
    /// Differs: from v5.16 on inefficient states are always skipped, as in kernels whose frequency driver has a table.
    pub(crate) fn em_cpu_energy(&self, max_util: u64, sum_util: u64, allowed_cpu_cap: u64) -> u64 {
        if sum_util == 0 {
            return 0;
        }
        match self.rule {
            EnergyAware::WholeDomains => {
                let fmax = self.table[self.table.len() - 1].frequency;
                let freq = (fmax + (fmax >> 2)) * max_util / self.scale_cpu;
                let state = self.table.iter().find(|state| state.frequency >= freq);
                state.unwrap_or(&self.table[self.table.len() - 1]).cost * sum_util / self.scale_cpu
            }
            EnergyAware::CandidateDomains => {
                let freq = self.frequency_for(max_util, allowed_cpu_cap);
                let state = self.table.iter().find(|state| state.frequency >= freq);
                state.unwrap_or(&self.table[self.table.len() - 1]).cost * sum_util / self.scale_cpu
            }
            EnergyAware::Absent | EnergyAware::ByFrequency | EnergyAware::ByBoostedFrequency => {
                let freq = self.frequency_for(max_util, allowed_cpu_cap);
                let cost = self.em_pd_get_efficient_state(|state| state.frequency >= freq).cost;
                cost * sum_util / self.scale_cpu
            }
            EnergyAware::ByPerformanceAlone | EnergyAware::ByPerformance => {
                let max_util = max_util.min(allowed_cpu_cap);
                self.em_pd_get_efficient_state(|state| state.performance >= max_util).cost * sum_util
            }
        }
    }

    /// The part of `em_cpu_energy()` that maps a utilization to a frequency in kHz, with headroom.
    fn frequency_for(&self, max_util: u64, allowed_cpu_cap: u64) -> u64 {
        let fmax = self.table[self.table.len() - 1].frequency;
        fmax * map_util_perf(max_util).min(allowed_cpu_cap) / self.scale_cpu
    }

    /// energy_model.h: em_pd_get_efficient_state(). The lowest efficient state that suffices; if none does, the
    /// highest.
    fn em_pd_get_efficient_state(&self, suffices: impl Fn(&EmPerfState) -> bool) -> &EmPerfState {
        let state = self.table.iter().find(|state| suffices(state) && !state.inefficient);
        state.unwrap_or(&self.table[self.table.len() - 1])
    }
}

/// sched/cpufreq.h: map_util_perf(). Adds a quarter as headroom.
pub(crate) fn map_util_perf(util: u64) -> u64 {
    util + (util >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_topology::EmState;
    use units::CpuId;

    /// Little CPUs of capacity 400: 500, 1000 and 2000 MHz at 50, 120 and 400 mW.
    fn little(rule: EnergyAware, states: &[(u64, u64)]) -> PerfDomain {
        let states =
            states.iter().map(|&(mhz, mw)| EmState { frequency_khz: mhz * 1000, power_uw: mw * 1000 }).collect();
        let told = EmPerfDomain { cpus: CpuMask::single(CpuId(0)), states };
        PerfDomain::em_create_perf_table(rule, &told, 400)
    }

    const STATES: &[(u64, u64)] = &[(500, 50), (1000, 120), (2000, 400)];

    #[test]
    fn the_busiest_cpu_chooses_the_frequency_for_all() {
        let domain = little(EnergyAware::ByFrequency, STATES);
        // 50 mW * 2000 / 500 = 200,000 uW; 240,000; 400,000. 80 with headroom is 100 of 400: 500 MHz.
        assert_eq!(domain.em_cpu_energy(80, 120, 400), 200_000 * 120 / 400);
        // 101 asks for 505 MHz.
        assert_eq!(domain.em_cpu_energy(81, 120, 400), 240_000 * 120 / 400);
        assert_eq!(domain.em_cpu_energy(400, 1000, 400), 400_000 * 1000 / 400);
        assert_eq!(domain.em_cpu_energy(400, 1000, 200), 240_000 * 1000 / 400, "more than 200 is not allowed");
        assert_eq!(domain.em_cpu_energy(400, 0, 400), 0);
    }

    #[test]
    fn headroom_ends_at_the_capacity_and_costly_states_are_chosen_in_v5_15() {
        // 1000 MHz cost more than 2000 MHz here.
        let states = [(500, 50), (1000, 300), (2000, 400)];
        let domain = |rule| little(rule, &states);
        let energies = |rule| [80, 120, 400].map(|util| domain(rule).em_cpu_energy(util, 100, 400));
        assert_eq!(energies(EnergyAware::CandidateDomains), [50_000, 150_000, 100_000]);
        assert_eq!(energies(EnergyAware::WholeDomains), [50_000, 150_000, 100_000]);
        assert_eq!(energies(EnergyAware::ByFrequency), [50_000, 100_000, 100_000]);
        // A limit holds where it is known.
        assert_eq!(domain(EnergyAware::CandidateDomains).em_cpu_energy(400, 100, 100), 50_000);
        assert_eq!(domain(EnergyAware::WholeDomains).em_cpu_energy(400, 100, 100), 100_000);
    }

    #[test]
    fn by_performance_headroom_is_the_callers() {
        let domain = little(EnergyAware::ByPerformance, STATES);
        // Performance 100, 200 and 400; 500,000 / 100 = 5,000; 1,200,000 / 200 = 6,000; 4,000,000 / 400 = 10,000.
        assert_eq!(domain.em_cpu_energy(100, 120, 400), 5_000 * 120);
        assert_eq!(domain.em_cpu_energy(101, 120, 400), 6_000 * 120);
        assert_eq!(domain.em_cpu_energy(900, 120, 400), 10_000 * 120);
    }

    #[test]
    fn a_state_that_costs_no_less_than_a_faster_one_is_skipped() {
        // 1000 MHz at 200 mW cost as much per cycle as 2000 MHz at 400 mW.
        let domain = little(EnergyAware::ByFrequency, &[(500, 50), (1000, 200), (2000, 400)]);
        assert_eq!(domain.em_cpu_energy(120, 100, 400), 400_000 * 100 / 400);
        assert_eq!(domain.em_cpu_energy(60, 100, 400), 200_000 * 100 / 400);
    }
}
