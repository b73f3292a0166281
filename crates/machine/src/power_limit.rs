//! A limit on the moving mean of what a package draws. It models what a processor's firmware does about power and,
//! where the window is as long as a body takes to warm up, about heat (docs/frequency.md).
//!
//! At the end of each control interval a package knows the energy it took in that interval. The limit applies to the
//! mean over the window, in which each interval replaces its share. The package then gets the highest ceiling for its
//! clocks at which one more interval like this one would leave the mean within the limit. This is a model: vendors
//! publish the limit, the window and the counters (Intel's manual, volume 3, 14.9.3: MSR_PKG_POWER_LIMIT,
//! MSR_PKG_ENERGY_STATUS), but not the rule by which they keep the limit.
//!
//! All values are integers: the mean is kept as the energy of one window at the mean power, in attojoules.

use crate::energy::{CoreDraw, Meter};
use crate::frequency::Frequency;
use crate::topology::Topology;
use units::{CpuId, Ps};

/// Where the mean begins at boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BeginsAt {
    /// At the limit, as after a long load.
    Limit,
    /// At what the package draws in its deepest idle state.
    Idle,
}

/// What each package of a machine may draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerLimit {
    pub limit_uw: u64,
    /// The time constant of the mean; at least one interval.
    pub window: Ps,
    /// How often a package reviews its ceiling.
    pub interval: Ps,
    pub begins_at: BeginsAt,
}

/// A moving mean of power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mean {
    /// The energy of one window at the mean power.
    window_aj: u128,
    window: Ps,
    interval: Ps,
}

impl Mean {
    fn new(uw: u64, window: Ps, interval: Ps) -> Mean {
        Mean { window_aj: u128::from(uw) * u128::from(window.0), window, interval }
    }

    /// What is left of the mean after the next interval has replaced its share.
    fn left_aj(&self) -> u128 {
        self.window_aj - self.window_aj * u128::from(self.interval.0) / u128::from(self.window.0)
    }

    /// Adds an interval that took this much energy.
    fn add(&mut self, aj: u128) {
        self.window_aj = self.left_aj() + aj;
    }

    /// Adds several equal intervals that took this much energy together.
    fn add_evenly(&mut self, intervals: u64, aj: u128) {
        let Some(but_one) = intervals.checked_sub(1) else { return };
        let each = aj / u128::from(intervals);
        (0..but_one).for_each(|_| self.add(each));
        self.add(aj - each * u128::from(but_one));
    }

    fn uw(&self) -> u64 {
        (self.window_aj / u128::from(self.window.0)) as u64
    }

    fn exceeds(&self, limit_uw: u64) -> bool {
        self.window_aj > u128::from(limit_uw) * u128::from(self.window.0)
    }

    /// How much energy the next interval may take so that the mean is within the limit at its end.
    fn room_aj(&self, limit_uw: u64) -> u128 {
        (u128::from(limit_uw) * u128::from(self.window.0)).saturating_sub(self.left_aj())
    }
}

/// One package's part.
struct Package {
    mean: Mean,
    /// All ceilings that make a difference, ascending; and the present one, [`u32::MAX`] if none applies.
    ceilings: Vec<u32>,
    ceiling_khz: u32,
    /// The end of the last interval that was reviewed, and the energy taken by then: by each core, and by the package
    /// beside them.
    reviewed: Ps,
    cores: Vec<CoreDraw>,
    own_aj: u128,
    /// Whether the package will review at the end of the interval.
    due: bool,
    held: Ps,
}

/// What a package did in an interval.
struct Interval {
    /// How long cores executed, by the domain of their clock, with a CPU of that domain.
    executed: Vec<(CpuId, Ps)>,
    /// The energy that does not depend on the clocks.
    steady_aj: u128,
    taken_aj: u128,
    awake: bool,
}

/// How a package's limit has affected it, from boot on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackageHeld {
    /// Counted in whole intervals: those in which something executed more slowly than it would have without the limit.
    pub held: Ps,
    /// The moving mean at the last review.
    pub mean_uw: u64,
}

/// The same for all packages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitTotals {
    pub rule: PowerLimit,
    /// In the order of the packages.
    pub packages: Vec<PackageHeld>,
}

/// The packages of a machine, each with the same limit.
pub struct PowerLimiter {
    rule: PowerLimit,
    packages: Vec<Package>,
    /// The first CPU of each core.
    first_cpu: Vec<CpuId>,
}

impl PowerLimiter {
    /// The limiter of a machine that has just booted.
    pub fn new(topology: &Topology, rule: PowerLimit, meter: &Meter, frequency: &mut Frequency) -> PowerLimiter {
        let first = |core: &crate::topology::Part| core.cpus.iter().next().expect("a core has a thread");
        let package = |number: usize| {
            let begins_uw = match rule.begins_at {
                BeginsAt::Limit => rule.limit_uw,
                BeginsAt::Idle => meter.package_idle_uw(number).min(rule.limit_uw),
            };
            // A package that can never reach the limit need not review; it stays as one that is due.
            if meter.package_most_uw(number) > rule.limit_uw {
                frequency.plan_power(number, rule.interval);
            }
            Package {
                mean: Mean::new(begins_uw, rule.window, rule.interval),
                ceilings: frequency.ceilings(number),
                ceiling_khz: u32::MAX,
                reviewed: Ps::ZERO,
                cores: vec![CoreDraw::default(); meter.package_cores(number, Ps::ZERO).count()],
                own_aj: 0,
                due: true,
                held: Ps::ZERO,
            }
        };
        PowerLimiter {
            rule,
            packages: (0..topology.packages().len()).map(package).collect(),
            first_cpu: topology.cores().iter().map(first).collect(),
        }
    }

    /// How the limit has affected the packages up to their last reviews.
    pub fn totals(&self) -> LimitTotals {
        let held = |package: &Package| PackageHeld { held: package.held, mean_uw: package.mean.uw() };
        LimitTotals { rule: self.rule, packages: self.packages.iter().map(held).collect() }
    }

    /// An interval of a package ends. `slept`: how long the package has been in its own idle state so far.
    pub fn review(&mut self, number: usize, at: Ps, slept: Ps, meter: &Meter, frequency: &mut Frequency) {
        let did = self.take(number, at, slept, meter, frequency);
        let (rule, package) = (self.rule, &mut self.packages[number]);
        package.mean.add(did.taken_aj);
        if did.is_held_by(package.ceiling_khz, frequency) {
            package.held += rule.interval;
        }
        package.ceiling_khz = did.ceiling(package.mean.room_aj(rule.limit_uw), &package.ceilings, meter, frequency);
        frequency.set_ceiling(number, package.ceiling_khz, at);
        // A package that idles within the limit reviews again when one of its CPUs wakes.
        package.due = did.awake || package.ceiling_khz < u32::MAX || package.mean.exceeds(rule.limit_uw);
        if package.due {
            frequency.plan_power(number, at + rule.interval);
        }
    }

    /// Whether the limiter has to be told when a CPU of the package wakes.
    #[inline]
    pub fn sleeps(&self, number: usize) -> bool {
        !self.packages[number].due
    }

    /// A CPU wakes in a package that sleeps: the intervals up to the present one are counted as those of an idle
    /// package.
    pub fn woken(&mut self, number: usize, now: Ps, slept: Ps, meter: &Meter, frequency: &mut Frequency) {
        let interval = self.rule.interval.0;
        let began = Ps(now.0 / interval * interval);
        let idled = began.saturating_sub(self.packages[number].reviewed).0 / interval;
        if idled > 0 {
            let did = self.take(number, began, slept, meter, frequency);
            self.packages[number].mean.add_evenly(idled, did.taken_aj);
        }
        self.packages[number].due = true;
        frequency.plan_power(number, began + self.rule.interval);
    }

    /// What a package did since its last review.
    fn take(&mut self, number: usize, at: Ps, slept: Ps, meter: &Meter, frequency: &Frequency) -> Interval {
        let package = &mut self.packages[number];
        package.reviewed = at;
        // A package that was woken since may seem to have slept longer than it has; the energy this hides comes with
        // the next interval.
        let own_aj = meter.package_own_aj(at, slept).max(package.own_aj);
        let own = own_aj - std::mem::replace(&mut package.own_aj, own_aj);
        let mut did = Interval {
            executed: vec![(CpuId(0), Ps::ZERO); frequency.nr_domains()],
            steady_aj: own,
            taken_aj: own,
            awake: false,
        };
        for ((core, now), before) in meter.package_cores(number, at).zip(&mut package.cores) {
            let (cpu, done) = (self.first_cpu[core], now.since(before));
            let domain = frequency.domain_of(cpu);
            did.executed[domain] = (cpu, did.executed[domain].1 + done.executing);
            did.steady_aj += done.idle_aj;
            did.taken_aj += done.idle_aj + done.executing_aj;
            did.awake |= done.awake || done.executing > Ps::ZERO;
        }
        did
    }
}

impl Interval {
    /// The domains in which something executed, each with one CPU and the time of all its cores.
    fn busy(&self) -> impl Iterator<Item = (usize, CpuId, Ps)> + '_ {
        let domains = self.executed.iter().enumerate();
        domains.filter(|(_, (_, time))| *time > Ps::ZERO).map(|(domain, &(cpu, time))| (domain, cpu, time))
    }

    /// Whether some of the work would have been faster without that ceiling.
    fn is_held_by(&self, ceiling_khz: u32, frequency: &Frequency) -> bool {
        let held = |domain| frequency.held_khz(domain, ceiling_khz) < frequency.unheld_khz(domain);
        ceiling_khz < u32::MAX && self.busy().any(|(domain, ..)| held(domain))
    }

    /// How much energy another such interval would take under a ceiling.
    fn taken_under(&self, ceiling_khz: u32, meter: &Meter, frequency: &Frequency) -> u128 {
        let of = |(domain, cpu, time): (usize, CpuId, Ps)| {
            let khz = frequency.held_khz(domain, ceiling_khz);
            u128::from(time.0) * u128::from(meter.power().drawn_uw(cpu, None, khz))
        };
        self.steady_aj + self.busy().map(of).sum::<u128>()
    }

    /// The highest ceiling under which another such interval takes no more than `room_aj`, or else the lowest ceiling.
    fn ceiling(&self, room_aj: u128, ceilings: &[u32], meter: &Meter, frequency: &Frequency) -> u32 {
        let fits = |&ceiling_khz: &u32| self.taken_under(ceiling_khz, meter, frequency) <= room_aj;
        if fits(&u32::MAX) {
            return u32::MAX;
        }
        // Higher frequencies never draw less, so the ceilings that fit come first.
        let fitting = ceilings.partition_point(fits);
        ceilings[fitting.saturating_sub(1)]
    }
}

#[cfg(test)]
mod tests;
