//! Connects the power limit to the rest of the machine: it hears what packages have drawn, and the clocks hear what it
//! allows.

use super::Hardware;
use crate::power_limit::{PowerLimit, PowerLimiter};
use units::{CpuId, Ps};

impl<const COSTS: bool> Hardware<COSTS> {
    /// Limits what each package draws, from boot on. Frequencies and powers must have been set before; where there are
    /// none (with the cost model off) nothing is limited.
    pub fn set_power_limit(&mut self, limit: PowerLimit) {
        if let (Some(meter), Some(frequency)) = (&self.meter, &mut self.frequency) {
            self.power_limiter = Some(Box::new(PowerLimiter::new(&self.topology, limit, meter, frequency)));
            self.tell_frequency();
        }
    }

    /// `None`: nothing limits what packages draw.
    pub fn power_limiter(&self) -> Option<&PowerLimiter> {
        self.power_limiter.as_deref()
    }

    /// An interval of a package's limit ends at `at`.
    #[cold]
    pub(super) fn review_power(&mut self, package: usize, at: Ps) {
        let slept = self.slept(package, at);
        if let (Some(limiter), Some(meter), Some(frequency)) =
            (&mut self.power_limiter, &self.meter, &mut self.frequency)
        {
            limiter.review(package, at, slept, meter, frequency);
        }
    }

    /// `cpu` is woken at `now`, perhaps as the first of its package.
    #[inline(never)]
    pub(super) fn wake_limiter(&mut self, cpu: CpuId, now: Ps) {
        let Some(package) = self.frequency.as_ref().map(|frequency| frequency.package_of(cpu)) else { return };
        if self.power_limiter.as_ref().is_none_or(|limiter| !limiter.sleeps(package)) {
            return;
        }
        let slept = self.slept(package, now);
        if let (Some(limiter), Some(meter), Some(frequency)) =
            (&mut self.power_limiter, &self.meter, &mut self.frequency)
        {
            limiter.woken(package, now, slept, meter, frequency);
        }
    }

    /// How long a package had been in its own idle state by `at`.
    fn slept(&self, package: usize, at: Ps) -> Ps {
        self.packages.residency(at).get(package).map_or(Ps::ZERO, |package| package.idle)
    }
}
