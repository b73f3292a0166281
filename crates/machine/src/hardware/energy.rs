//! What the machine draws, where somebody knows.

use super::Hardware;
use crate::energy::{EnergyUse, Meter, Power};
use units::{CpuId, Ps};

impl<const COSTS: bool> Hardware<COSTS> {
    /// Reckons with energy, from boot on; after idle states and frequencies were set. With the cost model off there is neither frequency
    /// nor a way out of idleness, and no energy.
    pub fn set_power(&mut self, power: Power) {
        if COSTS {
            let fixed = power.fixed_khz;
            let khz = |cpu: CpuId| self.frequency.as_ref().map_or(fixed, |frequency| frequency.khz(cpu));
            self.meter = Some(Box::new(Meter::new(&self.topology, power, &self.prices.idle_states, khz)));
        }
    }

    /// What each core does and draws, if somebody reckons.
    pub fn meter(&self) -> Option<&Meter> {
        self.meter.as_deref()
    }

    /// What the machine has taken up to `end`.
    pub fn energy(&self, end: Ps) -> Option<EnergyUse> {
        self.meter.as_ref().map(|meter| meter.read(end, &self.packages.residency(end)))
    }

    /// `cpu` has entered an idle state.
    #[inline]
    pub(super) fn meter_idle(&mut self, cpu: CpuId, now: Ps, state: usize) {
        if let Some(meter) = &mut self.meter
            && !self.prices.idle_states[state].polling
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
