//! Where power is limited: what the machine has drawn comes to the limit, and what that allows to the clocks.

use super::Hardware;
use crate::power_limit::{PowerLimit, PowerLimiter};
use units::{CpuId, Ps};

impl<const COSTS: bool> Hardware<COSTS> {
    /// Limits what each package draws, from boot on; after frequencies and powers were set. Where there are none (with the cost model off)
    /// nothing is limited.
    pub fn set_power_limit(&mut self, limit: PowerLimit) {
        if let (Some(meter), Some(frequency)) = (&self.meter, &mut self.frequency) {
            self.power_limiter = Some(Box::new(PowerLimiter::new(&self.topology, limit, meter, frequency)));
            self.tell_frequency();
        }
    }

    /// `None`: nobody limits what packages draw.
    pub fn power_limiter(&self) -> Option<&PowerLimiter> {
        self.power_limiter.as_deref()
    }

    /// A package has drawn what it has until `at`.
    #[cold]
    pub(super) fn review_power(&mut self, package: usize, at: Ps) {
        let slept = self.slept(package, at);
        if let (Some(limiter), Some(meter), Some(frequency)) =
            (&mut self.power_limiter, &self.meter, &mut self.frequency)
        {
            limiter.review(package, at, slept, meter, frequency);
        }
    }

    /// `cpu` is woken at `now`, perhaps the first of its package.
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

    /// How long a package was in its own idle state until `at`.
    fn slept(&self, package: usize, at: Ps) -> Ps {
        self.packages.residency(at).get(package).map_or(Ps::ZERO, |package| package.idle)
    }
}
