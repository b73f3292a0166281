//! A limit to what a package draws, as a moving mean: what a processor's firmware does about power and, where its window is that of a body
//! that warms up, about heat (docs/frequency.md).
//!
//! At the end of each control interval a package knows what it took in it. What counts is the mean over the window, of which each
//! interval replaces its part; the package then gets the highest ceiling for its clocks at which another interval, with what its cores
//! did in this one, would leave the mean within the limit. It is a model: vendors publish limit, window and counters (Intel's manual,
//! volume 3, 14.9.3: MSR_PKG_POWER_LIMIT, MSR_PKG_ENERGY_STATUS), not by what rule they keep it.
//!
//! All of it is in integers: the mean is kept as energy, that of a window at the mean's power, in attojoules.

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
    /// The time constant of the mean; no shorter than an interval.
    pub window: Ps,
    /// So often a package looks.
    pub interval: Ps,
    pub begins_at: BeginsAt,
}

/// A moving mean of power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mean {
    /// What a window takes at that power.
    window_aj: u128,
    window: Ps,
    interval: Ps,
}

impl Mean {
    fn new(uw: u64, window: Ps, interval: Ps) -> Mean {
        Mean { window_aj: u128::from(uw) * u128::from(window.0), window, interval }
    }

    /// What the next interval leaves of it.
    fn left_aj(&self) -> u128 {
        self.window_aj - self.window_aj * u128::from(self.interval.0) / u128::from(self.window.0)
    }

    /// An interval took so much.
    fn add(&mut self, aj: u128) {
        self.window_aj = self.left_aj() + aj;
    }

    /// So many intervals took so much together, each the same.
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

    /// What the next interval may take for the mean to be within the limit at its end.
    fn room_aj(&self, limit_uw: u64) -> u128 {
        (u128::from(limit_uw) * u128::from(self.window.0)).saturating_sub(self.left_aj())
    }
}

/// One package's part.
struct Package {
    mean: Mean,
    /// All that make a difference, ascending, and the one that it has; [`u32::MAX`]: none.
    ceilings: Vec<u32>,
    ceiling_khz: u32,
    /// The end of the last interval that was looked at, and what everything had taken by then: by core, and the package beside them.
    reviewed: Ps,
    cores: Vec<CoreDraw>,
    own_aj: u128,
    /// It will look at the end of the interval.
    due: bool,
    held: Ps,
}

/// What a package did in an interval.
struct Interval {
    /// Time of its cores that executed, by the domain of their clock, with a CPU of that.
    executed: Vec<(CpuId, Ps)>,
    /// What is drawn whatever the clocks show.
    steady_aj: u128,
    taken_aj: u128,
    awake: bool,
}

/// What a package's limit did to it, from boot on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackageHeld {
    /// In whole intervals: those in which something executed more slowly than it would have without the limit.
    pub held: Ps,
    /// The moving mean when the package last looked.
    pub mean_uw: u64,
}

/// What it did to all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitTotals {
    pub rule: PowerLimit,
    /// In their order.
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
    /// Of a machine that has just booted.
    pub fn new(topology: &Topology, rule: PowerLimit, meter: &Meter, frequency: &mut Frequency) -> PowerLimiter {
        let first = |core: &crate::topology::Part| core.cpus.iter().next().expect("a core has a thread");
        let package = |number: usize| {
            let begins_uw = match rule.begins_at {
                BeginsAt::Limit => rule.limit_uw,
                BeginsAt::Idle => meter.package_idle_uw(number).min(rule.limit_uw),
            };
            // A package that can never reach the limit need not look: it is taken for one that will.
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

    /// What it has done until the packages last looked.
    pub fn totals(&self) -> LimitTotals {
        let held = |package: &Package| PackageHeld { held: package.held, mean_uw: package.mean.uw() };
        LimitTotals { rule: self.rule, packages: self.packages.iter().map(held).collect() }
    }

    /// An interval of a package ends. `slept`: how long it was in its own idle state until now.
    pub fn review(&mut self, number: usize, at: Ps, slept: Ps, meter: &Meter, frequency: &mut Frequency) {
        let did = self.take(number, at, slept, meter, frequency);
        let (rule, package) = (self.rule, &mut self.packages[number]);
        package.mean.add(did.taken_aj);
        if did.is_held_by(package.ceiling_khz, frequency) {
            package.held += rule.interval;
        }
        package.ceiling_khz = did.ceiling(package.mean.room_aj(rule.limit_uw), &package.ceilings, meter, frequency);
        frequency.set_ceiling(number, package.ceiling_khz, at);
        // Who idles within the limit looks again when somebody wakes.
        package.due = did.awake || package.ceiling_khz < u32::MAX || package.mean.exceeds(rule.limit_uw);
        if package.due {
            frequency.plan_power(number, at + rule.interval);
        }
    }

    /// Whether a package has to be told who wakes.
    #[inline]
    pub fn sleeps(&self, number: usize) -> bool {
        !self.packages[number].due
    }

    /// Somebody wakes in a package that sleeps: the intervals up to this one are those of an idle package.
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

    /// What a package did since it was last looked at.
    fn take(&mut self, number: usize, at: Ps, slept: Ps, meter: &Meter, frequency: &Frequency) -> Interval {
        let package = &mut self.packages[number];
        package.reviewed = at;
        // Where a package was woken since, it may seem to have slept longer: what that hides comes with the next interval.
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
    /// The domains in which something executed, each with a CPU and the time of all its cores.
    fn busy(&self) -> impl Iterator<Item = (usize, CpuId, Ps)> + '_ {
        let domains = self.executed.iter().enumerate();
        domains.filter(|(_, (_, time))| *time > Ps::ZERO).map(|(domain, &(cpu, time))| (domain, cpu, time))
    }

    /// Whether some of it would have been faster without that ceiling.
    fn is_held_by(&self, ceiling_khz: u32, frequency: &Frequency) -> bool {
        let held = |domain| frequency.held_khz(domain, ceiling_khz) < frequency.unheld_khz(domain);
        ceiling_khz < u32::MAX && self.busy().any(|(domain, ..)| held(domain))
    }

    /// What another such interval would take under a ceiling.
    fn taken_under(&self, ceiling_khz: u32, meter: &Meter, frequency: &Frequency) -> u128 {
        let of = |(domain, cpu, time): (usize, CpuId, Ps)| {
            let khz = frequency.held_khz(domain, ceiling_khz);
            u128::from(time.0) * u128::from(meter.power().drawn_uw(cpu, None, khz))
        };
        self.steady_aj + self.busy().map(of).sum::<u128>()
    }

    /// The highest ceiling under which another such interval takes no more than that, else the lowest.
    fn ceiling(&self, room_aj: u128, ceilings: &[u32], meter: &Meter, frequency: &Frequency) -> u32 {
        let fits = |&ceiling_khz: &u32| self.taken_under(ceiling_khz, meter, frequency) <= room_aj;
        if fits(&u32::MAX) {
            return u32::MAX;
        }
        // No clock draws less at a higher frequency.
        let fitting = ceilings.partition_point(fits);
        ceilings[fitting.saturating_sub(1)]
    }
}

#[cfg(test)]
mod tests;
