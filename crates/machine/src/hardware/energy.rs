//! What the machine draws, if its file says so.

use super::Hardware;
use crate::energy::{EnergyUse, Meter, Power};
use units::{CpuId, Ps};

impl<const COSTS: bool> Hardware<COSTS> {
    /// Counts energy from boot on. Idle states and frequencies must have been set before. With the cost model off there
    /// are no frequencies and leaving an idle state takes no time, so no energy is counted.
    pub fn set_power(&mut self, power: Power) {
        if COSTS {
            let fixed = power.fixed_khz.clone();
            let khz = |cpu: CpuId| self.frequency.as_ref().map_or(fixed[cpu.index()], |frequency| frequency.khz(cpu));
            self.meter = Some(Box::new(Meter::new(&self.topology, power, &self.prices.idle_states, khz)));
        }
    }

    /// What each core does and draws; `None` unless energy is counted.
    pub fn meter(&self) -> Option<&Meter> {
        self.meter.as_deref()
    }

    /// The energy that the machine has taken up to `end`.
    pub fn energy(&self, end: Ps) -> Option<EnergyUse> {
        self.meter.as_ref().map(|meter| meter.read(end, &self.packages.residency(end)))
    }

    /// `cpu` has entered an idle state.
    #[inline]
    pub(super) fn meter_idle(&mut self, cpu: CpuId, now: Ps, state: usize) {
        let polls = self.polls_in(cpu, state);
        if let Some(meter) = &mut self.meter
            && !polls
        {
            meter.idle(cpu, now, state);
        }
    }

    /// `cpu` executes from `first` on.
    #[inline]
    pub(super) fn meter_resume(&mut self, cpu: CpuId, first: Ps) {
        if let Some(meter) = &mut self.meter {
            meter.resume(cpu, first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::DomainPower;
    use crate::frequency::{Band, Driver, Frequency, FrequencyRules, Governor, Model, Policy, Sharing};
    use crate::idle::IdleRules;
    use crate::prices::{IdleState, Prices};
    use crate::topology::{Numbering, Topology, from_synthetic};
    use sched::versions::V4_16;
    use units::CpuMask;

    const fn us(n: u64) -> Ps {
        Ps(n * 1_000_000)
    }

    /// From 1 GHz to 2 GHz; both CPUs share the clock.
    fn frequency(topology: &Topology) -> Frequency {
        let band = Band {
            cpus: CpuMask::new(2),
            kind: 0,
            min_khz: 1_000_000,
            base_khz: 2_000_000,
            turbo_khz: vec![2_000_000, 2_000_000],
            points: Vec::new(),
        };
        let model = Model {
            sharing: Sharing::Package,
            autonomous: None,
            bands: vec![band],
            cap_khz: None,
            step_khz: 100_000,
            transition: us(20),
            hold_off: us(0),
            declared_latency_us: 10,
            turbo_exit_latency_us: 30,
            full_speed: None,
            fast_switch: None,
        };
        let policy = Policy::new(&model, Driver::AcpiCpufreq, Governor::Performance, FrequencyRules::V4_15, 250);
        Frequency::new(topology, model, policy)
    }

    #[test]
    fn a_core_draws_what_its_clock_and_its_state_say() {
        let topology = from_synthetic("pack:1 core:2 pu:1", "test", Numbering::AsListed).expect("a valid machine");
        let mut prices = Prices::free();
        prices.idle_states = vec![IdleState { wake: us(2), ..IdleState::declared("C1", 1, 1) }];
        let mut hardware = Hardware::<true>::new(topology.clone(), prices, V4_16.layout(), IdleRules::V4_15, 1);
        hardware.set_frequency(frequency(&topology));
        let domain = DomainPower {
            cpus: topology.cpus().map(|(cpu, _)| cpu).collect(),
            executing: vec![(1_000_000, 100_000), (2_000_000, 400_000)],
            idle: vec![("C1".to_string(), 20_000)],
        };
        hardware.set_power(Power { fixed_khz: vec![1; 2], domains: vec![domain], package: (0, 0) });
        hardware.take_only_idle(CpuId(1), false);
        hardware.enter_idle(CpuId(1), us(50));
        // Both ask for 1 GHz at 80 us and get it at 100 us; the idle one wakes at 298 us.
        for cpu in [CpuId(0), CpuId(1)] {
            hardware.frequency.as_mut().expect("it was set").vote(cpu, 1_000_000, us(80));
        }
        assert_eq!(hardware.frequency_due(), us(100));
        let mut changes = Vec::new();
        hardware.frequency_step(&mut changes);
        changes.into_iter().for_each(|change| hardware.change_frequency(change, us(100)));
        assert_eq!(hardware.leave_idle(CpuId(1), us(298), false), us(300));
        let cores = hardware.meter().expect("it was set").cores(us(400));
        let times = |core: usize| cores[core].executing.iter().collect::<Vec<_>>();
        assert_eq!(times(0), [(1_000_000, us(300)), (2_000_000, us(100))]);
        assert_eq!(times(1), [(1_000_000, us(100)), (2_000_000, us(50))]);
        assert_eq!((cores[1].idle[0], hardware.residency(CpuId(1)).idle[0]), (us(250), us(250)));
        let microjoules = |mw: u128, us: u128| mw * us * 1_000_000_000;
        let second = microjoules(400, 50) + microjoules(20, 250) + microjoules(100, 100);
        assert_eq!(cores[1].total_aj(), second);
        let first = microjoules(400, 100) + microjoules(100, 300);
        assert_eq!(hardware.energy(us(400)).expect("it was set").total_aj(), first + second);
    }
}
