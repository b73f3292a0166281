use super::*;
use crate::energy::{DomainPower, Power};
use crate::frequency::{Band, Driver, FrequencyRules, Governor, Model, OperatingPoint, Policy, Sharing};
use crate::prices::IdleState;
use crate::topology::{Numbering, Topology, from_synthetic};
use units::CpuMask;

const fn ms(n: u64) -> Ps {
    Ps(n * 1_000_000_000)
}

/// The energy of a watt for a millisecond.
const MJ: u128 = 1_000_000 * 1_000_000_000;

/// A window of ten intervals: each replaces a tenth of the mean.
#[test]
fn an_interval_replaces_its_part_of_the_mean() {
    let mut mean = Mean::new(2_000_000, ms(10), ms(1));
    // 2 W less a tenth are 1.8 W, and a tenth of 7 W: 2.5 W.
    mean.add(7 * MJ);
    assert_eq!(mean.uw(), 2_500_000);
    // 2.5 * 0.9 = 2.25 W; an interval without power adds nothing.
    mean.add(0);
    assert_eq!(mean.uw(), 2_250_000);
    // 2.25 * 0.9 = 2.025 W. Up to the limit of 2.2 W there is room for a tenth of 1.75 W, which is 1.75 mJ in a
    // millisecond.
    assert_eq!(mean.room_aj(2_200_000), MJ * 7 / 4);
    assert!(mean.exceeds(2_200_000) && !mean.exceeds(2_250_000));
    // Ten intervals at once equal ten one after another.
    let (mut evenly, mut one_by_one) = (mean, mean);
    evenly.add_evenly(10, 10 * MJ);
    (0..10).for_each(|_| one_by_one.add(MJ));
    assert_eq!(evenly, one_by_one);
    // 1 W and 1.25 W * 0.9^10 (0.348678) above it.
    assert_eq!(evenly.uw(), 1_435_848);
    evenly.add_evenly(0, 0);
    assert_eq!(evenly, one_by_one);
    // No interval fits above 2.025 / 0.9.
    assert_eq!(mean.room_aj(2_000_000), 0);
}

/// What does not divide evenly comes with the last of three intervals: 3, 3 and 5 aJ. The window is so long that it
/// forgets nothing yet.
#[test]
fn no_attojoule_is_lost() {
    let mut mean = Mean::new(0, Ps(1 << 40), Ps(1));
    mean.add_evenly(3, 11);
    assert_eq!(mean.window_aj, 11);
}

struct Machine {
    meter: Meter,
    frequency: Frequency,
    topology: Topology,
}

/// Two small cores (CPUs 0, 1) and two big ones, one clock for each pair, all in one package that takes 100 mW beside
/// them. A small core takes 100 mW at 1 GHz and 200 mW at 1.4 GHz; a big one 300 mW at 1 GHz, 500 mW at 1.5 GHz, 1000
/// mW at 2 GHz; idle 10 mW.
fn machine() -> Machine {
    machine_of(Driver::Scmi)
}

/// The same machine under another driver.
fn machine_of(driver: Driver) -> Machine {
    let topology = from_synthetic("pack:1 core:4 pu:1", "test", Numbering::AsListed).expect("a valid machine");
    let cpus = |range: std::ops::Range<u16>| range.map(CpuId).collect::<CpuMask>();
    let point = |khz| OperatingPoint { khz, inefficient: false };
    let band = |cpus: CpuMask, kind: usize, khz: &[u32]| Band {
        cpus,
        kind,
        min_khz: khz[0],
        base_khz: khz[khz.len() - 1],
        turbo_khz: vec![khz[khz.len() - 1]; 4],
        points: khz.iter().copied().map(point).collect(),
    };
    let (small, big): (&[u32], &[u32]) = (&[1_000_000, 1_400_000], &[1_000_000, 1_500_000, 2_000_000]);
    let model = Model {
        sharing: Sharing::Package,
        autonomous: None,
        bands: vec![
            Band { points: Vec::new(), ..band(CpuMask::new(4), 0, big) },
            band(cpus(0..2), 1, small),
            band(cpus(2..4), 2, big),
        ],
        cap_khz: None,
        step_khz: 100_000,
        transition: Ps(100_000_000),
        hold_off: Ps::ZERO,
        declared_latency_us: 10,
        turbo_exit_latency_us: 30,
        full_speed: None,
        fast_switch: None,
    };
    let policy = Policy::new(&model, driver, Governor::Performance, FrequencyRules::V6_12, 250);
    let domain = |cpus: CpuMask, executing: &[(u64, u64)]| DomainPower {
        cpus,
        executing: executing.to_vec(),
        idle: vec![("C1".to_string(), 10_000)],
    };
    let power = Power {
        fixed_khz: vec![1; 4],
        domains: vec![
            domain(cpus(0..2), &[(1_000_000, 100_000), (1_400_000, 200_000)]),
            domain(cpus(2..4), &[(1_000_000, 300_000), (1_500_000, 500_000), (2_000_000, 1_000_000)]),
        ],
        package: (100_000, 100_000),
    };
    let frequency = Frequency::new(&topology, model, policy);
    let meter = Meter::new(&topology, power, &[IdleState::declared("C1", 1, 1)], |cpu| frequency.khz(cpu));
    Machine { meter, frequency, topology }
}

fn limiter(machine: &mut Machine, limit_uw: u64, begins_at: BeginsAt) -> PowerLimiter {
    let rule = PowerLimit { limit_uw, window: ms(10), interval: ms(1), begins_at };
    PowerLimiter::new(&machine.topology, rule, &machine.meter, &mut machine.frequency)
}

impl Machine {
    /// The clocks follow a ceiling that was set.
    fn follow(&mut self) {
        let mut changes = Vec::new();
        let at = self.frequency.next();
        assert_eq!(self.frequency.step(&mut changes), None);
        for change in changes {
            self.frequency.apply(change, at);
            for cpu in self.frequency.domain_cpus(change.domain).to_vec() {
                self.meter.clock(cpu, at, change.khz);
            }
        }
    }
}

#[test]
fn a_package_gets_the_highest_ceiling_that_fits() {
    let mut machine = machine();
    let mut limiter = limiter(&mut machine, 1_700_000, BeginsAt::Limit);
    machine.meter.idle(CpuId(1), Ps::ZERO, 0);
    // Half of the interval.
    machine.meter.idle(CpuId(3), Ps(500_000_000), 0);
    assert_eq!(machine.frequency.next(), ms(1));
    assert_eq!(machine.frequency.step(&mut Vec::new()), Some((0, ms(1))));
    limiter.review(0, ms(1), Ps::ZERO, &machine.meter, &mut machine.frequency);
    // 200 + 10 + 1000 + 500 + 5 + 100 = 1815 uJ: the mean is 1.7 + 0.0115 W, and 1.5965 mJ fit into the next interval.
    let package = &limiter.packages[0];
    assert_eq!((package.mean.uw(), package.held), (1_711_500, Ps::ZERO));
    assert_eq!(package.mean.room_aj(1_700_000), MJ * 15_965 / 10_000);
    // Under 1.5 GHz it would be 200 + 10 + 500 + 250 + 5 + 100 = 1065 uJ; with all of the big cores' 2 GHz it was 1815.
    assert_eq!((package.ceiling_khz, package.due), (1_500_000, true));
    // The big cores' clock obeys one transition later; the small ones' clock was lower anyway.
    assert_eq!(machine.frequency.next(), Ps(1_100_000_000));
    machine.follow();
    assert_eq!([0, 2].map(|cpu| machine.frequency.khz(CpuId(cpu))), [1_400_000, 1_500_000]);
    // The next interval: 200 + 10, a big core 100 + 450, 10 and 100 uJ are 870 uJ. Something was held back in it. Now
    // there is room for all.
    assert_eq!(machine.frequency.step(&mut Vec::new()), Some((0, ms(2))));
    limiter.review(0, ms(2), Ps::ZERO, &machine.meter, &mut machine.frequency);
    let package = &limiter.packages[0];
    assert_eq!((package.held, package.mean.uw()), (ms(1), 1_540_350 + 87_000));
    assert_eq!(package.ceiling_khz, u32::MAX);
}

#[test]
fn the_lowest_ceiling_is_the_lowest_frequency() {
    let mut machine = machine();
    // With all four cores at their lowest: 2 * 100 + 2 * 300 + 100 = 900 mW.
    let mut limiter = limiter(&mut machine, 900_000, BeginsAt::Limit);
    machine.frequency.step(&mut Vec::new());
    limiter.review(0, ms(1), Ps::ZERO, &machine.meter, &mut machine.frequency);
    // 2 * 200 + 2 * 1000 + 100 uJ: far above it.
    assert_eq!(limiter.packages[0].mean.uw(), 810_000 + 250_000);
    assert_eq!(limiter.packages[0].ceiling_khz, 1_000_000);
    machine.follow();
    assert_eq!([0, 2].map(|cpu| machine.frequency.khz(CpuId(cpu))), [1_000_000; 2]);
    // A ceiling below a band's lowest operating point acts as that point; one between two acts as the lower.
    assert_eq!(
        [1_399_999, 1_400_000, 900_000].map(|khz| machine.frequency.held_khz(0, khz)),
        [1_000_000, 1_400_000, 1_000_000]
    );
    assert_eq!(machine.frequency.ceilings(0), [1_000_000, 1_400_000, 1_500_000, 2_000_000]);
}

#[test]
fn an_idle_package_looks_no_more_until_somebody_wakes() {
    let mut machine = machine();
    let mut limiter = limiter(&mut machine, 1_700_000, BeginsAt::Idle);
    // 4 * 10 + 100 mW.
    assert_eq!(limiter.packages[0].mean.uw(), 140_000);
    (0..4).for_each(|cpu| machine.meter.idle(CpuId(cpu), Ps::ZERO, 0));
    machine.frequency.step(&mut Vec::new());
    limiter.review(0, ms(1), Ps::ZERO, &machine.meter, &mut machine.frequency);
    assert!(limiter.sleeps(0));
    assert_eq!((machine.frequency.next(), limiter.packages[0].mean.uw()), (Ps::NEVER, 140_000));
    // A CPU wakes at 7.25 ms: six intervals were idle, and the next review is at 8 ms.
    limiter.woken(0, Ps(7_250_000_000), Ps::ZERO, &machine.meter, &mut machine.frequency);
    machine.meter.resume(CpuId(0), Ps(7_250_000_000));
    assert_eq!((limiter.packages[0].mean.uw(), limiter.packages[0].reviewed), (140_000, ms(7)));
    assert_eq!((limiter.sleeps(0), machine.frequency.next()), (false, ms(8)));
    machine.frequency.step(&mut Vec::new());
    limiter.review(0, ms(8), Ps::ZERO, &machine.meter, &mut machine.frequency);
    // A quarter of the interval at 10 mW and the rest at 200 mW: 152.5 uJ; three cores 30 uJ, the package 100 uJ: 282.5
    // uJ.
    assert_eq!(limiter.packages[0].mean.uw(), 126_000 + 28_250);
    assert!(!limiter.sleeps(0));
}

#[test]
fn intervals_that_a_package_slept_through_bring_its_mean_down() {
    let mut machine = machine();
    let mut limiter = limiter(&mut machine, 1_700_000, BeginsAt::Limit);
    (0..4).for_each(|cpu| machine.meter.idle(CpuId(cpu), Ps::ZERO, 0));
    machine.frequency.step(&mut Vec::new());
    limiter.review(0, ms(1), Ps::ZERO, &machine.meter, &mut machine.frequency);
    // 1.7 W less a tenth, and a tenth of 140 mW.
    assert_eq!((limiter.sleeps(0), limiter.packages[0].mean.uw()), (true, 1_544_000));
    // Six intervals of 140 mW: 1.404 W * 0.9^6 above that.
    limiter.woken(0, Ps(7_250_000_000), Ps::ZERO, &machine.meter, &mut machine.frequency);
    assert_eq!(limiter.packages[0].mean.uw(), 886_143);
}

#[test]
fn who_never_reaches_the_limit_never_looks() {
    // 2 * 200 + 2 * 1000 + 100 mW.
    for (limit_uw, at) in [(2_500_000, Ps::NEVER), (2_499_999, ms(1))] {
        let mut machine = machine();
        let limiter = limiter(&mut machine, limit_uw, BeginsAt::Limit);
        assert_eq!((machine.frequency.next(), limiter.sleeps(0)), (at, false));
    }
}

/// Counters show what the power limit does to a clock; the frequency that a driver asked for last does not.
#[test]
fn load_tracking_is_told_by_counters_alone() {
    for (driver, scale) in [(Driver::Scmi, 1024), (Driver::CpufreqDt, 1024), (Driver::CppcCpufreq, 512)] {
        let mut machine = machine_of(driver);
        let mut limiter = limiter(&mut machine, 900_000, BeginsAt::Limit);
        machine.frequency.step(&mut Vec::new());
        limiter.review(0, ms(1), Ps::ZERO, &machine.meter, &mut machine.frequency);
        machine.follow();
        assert_eq!(machine.frequency.khz(CpuId(2)), 1_000_000, "{}", driver.name());
        // A tick at the change, and one for which all of the time lies behind it: 1 GHz of 2.
        machine.frequency.scale_freq_tick(CpuId(2), Ps(1_100_000_000));
        assert_eq!(machine.frequency.scale(CpuId(2)), 1024);
        machine.frequency.scale_freq_tick(CpuId(2), ms(5));
        assert_eq!(machine.frequency.scale(CpuId(2)), scale, "{}", driver.name());
    }
}

#[test]
fn a_look_counts_nothing() {
    let mut machine = machine();
    machine.meter.idle(CpuId(1), ms(1), 0);
    machine.meter.resume(CpuId(1), ms(3));
    let look = |machine: &Machine, at| machine.meter.package_cores(0, at).collect::<Vec<_>>();
    let (early, late) = (look(&machine, ms(2)), look(&machine, ms(5)));
    let whole = machine.meter.cores(ms(5));
    // 1 ms at 200 mW, 1 ms of two at 10 mW; then 2 ms more at 200 mW.
    assert_eq!((early[1].1.executing_aj, early[1].1.idle_aj), (MJ / 5, MJ / 100));
    assert_eq!((late[1].1.executing, late[1].1.executing_aj, late[1].1.idle_aj), (ms(3), MJ * 3 / 5, MJ / 50));
    for ((core, draw), whole) in late.iter().zip(&whole) {
        assert_eq!(draw.executing_aj + draw.idle_aj, whole.total_aj(), "core {core}");
    }
    let mut before = early[1].1;
    assert_eq!(late[1].1.since(&mut before).executing, ms(2));
    assert_eq!((before.executing_aj, before.idle_aj), (late[1].1.executing_aj, late[1].1.idle_aj));
}
