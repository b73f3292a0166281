use super::*;
use crate::topology::{CpuKind, Numbering, from_synthetic};
use units::CpuMask;

fn topology(text: &str) -> Topology {
    from_synthetic(text, "a test", Numbering::LinuxX86).unwrap_or_else(|error| panic!("{error}"))
}

const fn us(n: u64) -> Ps {
    Ps(n * 1_000_000)
}

/// 1.0 to 2.0 GHz, with 3.0, 2.8, 2.6 and 2.4 GHz for one to four active cores.
fn model(sharing: Sharing) -> Model {
    let band = Band {
        cpus: CpuMask::new(8),
        kind: 0,
        min_khz: 1_000_000,
        base_khz: 2_000_000,
        turbo_khz: vec![3_000_000, 2_800_000, 2_600_000, 2_400_000],
        points: Vec::new(),
    };
    Model {
        sharing,
        autonomous: None,
        bands: vec![band],
        cap_khz: None,
        step_khz: 100_000,
        transition: us(20),
        hold_off: us(500),
        declared_latency_us: 10,
        turbo_exit_latency_us: 30,
        full_speed: None,
        fast_switch: None,
    }
}

mod dbs;
mod kinds;
mod shipped;
mod stores;
mod versions;

const FOUR: &str = "pack:1 core:4 pu:2";

fn frequency(model: Model, driver: Driver, governor: Governor) -> Frequency {
    let policy = Policy::new(&model, driver, governor, FrequencyRules::V4_15, 250);
    Frequency::new(&topology(FOUR), model, policy)
}

/// Lets everything happen up to `until`. Returns the changes, with their times in microseconds.
fn run(frequency: &mut Frequency, until: Ps) -> Vec<(u64, usize, u32)> {
    let mut told = Vec::new();
    while frequency.next() <= until {
        let at = frequency.next();
        let mut changes = Vec::new();
        frequency.step(&mut changes);
        for change in changes {
            frequency.apply(change, at);
            told.push((at.0 / 1_000_000, change.domain, change.khz));
        }
    }
    told
}

#[test]
fn static_governors_ask_for_what_they_say() {
    for (governor, khz) in [
        // All four cores have just booted: the last turbo bin.
        (Governor::Performance, 2_400_000),
        (Governor::Powersave, 1_000_000),
        (Governor::Userspace, 2_000_000),
    ] {
        let frequency = frequency(model(Sharing::Core), Driver::AcpiCpufreq, governor);
        assert_eq!(frequency.khz(CpuId(3)), khz, "{}", governor.name());
        assert_eq!(frequency.next(), Ps::NEVER);
    }
}

#[test]
fn turbo_follows_the_cores_that_are_active() {
    let mut frequency = frequency(model(Sharing::Core), Driver::IntelPstate, Governor::Performance);
    // CPUs 4 to 7 are the second threads.
    for cpu in [1, 2, 3, 5, 6] {
        frequency.halt(CpuId(cpu), us(1_000), true);
    }
    assert_eq!(frequency.next(), us(1_020), "once the hardware has seen the first of them");
    // One thread of core 3 is awake, so two cores are active.
    assert_eq!(run(&mut frequency, us(10_000)), [(1_020, 0, 2_800_000), (1_020, 3, 2_800_000)]);
    frequency.halt(CpuId(7), us(10_000), true);
    assert_eq!(run(&mut frequency, us(20_000)), [(10_020, 0, 3_000_000)]);
    // Turbo limits change as seldom as frequencies do: 80 us after the last time is too soon, and who wakes runs by those that are.
    frequency.resume(CpuId(7), us(10_100));
    let told = run(&mut frequency, us(20_000));
    assert_eq!(told, [(10_120, 3, 3_000_000), (10_520, 0, 2_800_000), (10_520, 3, 2_800_000)]);
    frequency.halt(CpuId(7), us(20_000), true);
    assert_eq!(run(&mut frequency, us(30_000)), [(20_020, 0, 3_000_000)]);
    // A shallow state leaves turbo as it is.
    frequency.resume(CpuId(1), us(30_000));
    frequency.halt(CpuId(1), us(30_001), false);
    assert_eq!(run(&mut frequency, us(40_000)), [(30_020, 0, 2_800_000), (30_020, 1, 2_800_000)]);
}

/// Two packages of four cores, two of each kind. Returns the frequency that `cpu` reaches while this many cores of each
/// package are active, in MHz, and the same once all of package 1 are.
fn of_two_packages(sharing: Sharing, cpu: u16, active: [usize; 2]) -> (u32, u32) {
    let mut topology = topology("pack:2 core:4 pu:1");
    for name in ["big", "little"] {
        let of = topology.cpus().filter(|(cpu, _)| (cpu.index() % 4 < 2) == (name == "big"));
        let cpus = of.map(|(cpu, _)| cpu).collect();
        topology.kinds.push(CpuKind::new(name, cpus));
    }
    let model = model(sharing);
    let policy = Policy::new(&model, Driver::IntelPstate, Governor::Performance, FrequencyRules::V4_15, 250);
    let mut frequency = Frequency::new(&topology, model, policy);
    let sleeps: Vec<_> = (0..8).filter(|cpu| cpu % 4 >= active[cpu / 4]).map(CpuId::new).collect();
    sleeps.iter().for_each(|&cpu| frequency.halt(cpu, us(1_000), true));
    run(&mut frequency, us(10_000));
    let before = frequency.khz(CpuId(cpu)) / 1_000;
    sleeps.iter().filter(|cpu| cpu.index() >= 4).for_each(|&cpu| frequency.resume(cpu, us(10_000)));
    run(&mut frequency, us(20_000));
    assert_eq!(frequency.next(), Ps::NEVER);
    (before, frequency.khz(CpuId(cpu)) / 1_000)
}

#[test]
fn a_clock_of_several_packages_goes_no_faster_than_each_of_them_allows() {
    for (active, mhz) in [([4, 0], 2_400), ([0, 4], 2_400), ([2, 3], 2_600), ([3, 2], 2_600), ([1, 1], 3_000)] {
        assert_eq!(of_two_packages(Sharing::Machine, 0, active), (mhz, 2_400), "{active:?}");
    }
    // CPU 0 is of the first kind, CPU 2 of the second: both are in both packages.
    assert_eq!(of_two_packages(Sharing::Cluster, 0, [1, 3]), (2_600, 2_400));
    assert_eq!(of_two_packages(Sharing::Cluster, 2, [3, 4]), (2_400, 2_400));
    assert_eq!(of_two_packages(Sharing::Package, 0, [1, 3]), (3_000, 3_000), "a package by itself is as it was");
}

#[test]
fn changes_wait_for_the_latency_and_for_the_hold_off() {
    let mut frequency = frequency(model(Sharing::Core), Driver::AcpiCpufreq, Governor::Userspace);
    let mut told = Vec::new();
    for (at, khz) in
        [(1_000, 1_200_000), (1_010, 1_500_000), (1_100, 1_300_000), (1_400, 1_100_000), (3_000, 1_400_000)]
    {
        told.extend(run(&mut frequency, us(at)));
        frequency.vote(CpuId(0), khz, us(at));
        frequency.vote(CpuId(4), khz, us(at));
    }
    told.extend(run(&mut frequency, us(9_000)));
    assert_eq!(told, [(1_020, 0, 1_500_000), (1_520, 0, 1_100_000), (3_020, 0, 1_400_000)]);
    let time = frequency.time(CpuId(0), us(9_000));
    assert_eq!(time.changes(), 3);
    assert_eq!(
        time.iter().collect::<Vec<_>>(),
        [(1_100_000, us(1_500)), (1_400_000, us(9_000 - 3_020)), (1_500_000, us(500)), (2_000_000, us(1_020)),]
    );
}

#[test]
fn a_domain_runs_at_its_highest_vote() {
    let mut frequency = frequency(model(Sharing::Package), Driver::AcpiCpufreq, Governor::Userspace);
    frequency.vote(CpuId(2), 2_100_000, us(100));
    assert_eq!(run(&mut frequency, us(2_000)), [(500, 0, 2_100_000)]);
    frequency.vote(CpuId(2), 1_000_000, us(2_000));
    assert_eq!(run(&mut frequency, us(4_000)), [(2_020, 0, 2_000_000)], "the others still ask for 2.0");
    for cpu in [0, 1, 3, 4, 5, 6, 7] {
        frequency.halt(CpuId(cpu), us(4_000), true);
    }
    assert_eq!(run(&mut frequency, us(6_000)), [(4_020, 0, 1_000_000)], "who sleeps deeply has no vote");
    frequency.resume(CpuId(7), us(6_000));
    assert_eq!(run(&mut frequency, us(8_000)), [(6_020, 0, 2_000_000)]);
}

#[test]
fn residency_sums_up_and_counters_count_cycles() {
    let mut frequency = frequency(model(Sharing::Core), Driver::AcpiCpufreq, Governor::Userspace);
    frequency.vote(CpuId(0), 1_000_000, Ps::ZERO);
    frequency.vote(CpuId(4), 1_000_000, Ps::ZERO);
    run(&mut frequency, us(1_000));
    frequency.halt(CpuId(0), us(2_500), false);
    frequency.resume(CpuId(0), us(3_000));
    // 500 us at 2 GHz, then 1 GHz; 500 us halted.
    let counters = frequency.counters(CpuId(0), us(4_000));
    assert_eq!((counters.unhalted, counters.cycles), (us(3_500), 1_000_000 + 3_000_000));
    for cpu in 0..8 {
        let time = frequency.time(CpuId(cpu), us(4_000));
        assert_eq!(time.iter().map(|(_, time)| time.0).sum::<u64>(), us(4_000).0);
    }
}

#[test]
fn counters_lose_no_part_of_a_cycle() {
    let mut frequency = frequency(model(Sharing::Core), Driver::AcpiCpufreq, Governor::Userspace);
    // 1.3 ns in each 10 ns: 2.6 cycles at 2 GHz.
    for nth in 0..1_000_000 {
        frequency.resume(CpuId(0), Ps(nth * 10_000));
        frequency.halt(CpuId(0), Ps(nth * 10_000 + 1_300), false);
    }
    let counters = frequency.counters(CpuId(0), us(10_000));
    assert_eq!((counters.unhalted, counters.cycles), (us(1_300), 2_600_000));
}

#[test]
fn cycles_that_a_path_took_too_many_of_are_none() {
    let mut frequency = frequency(model(Sharing::Core), Driver::AcpiCpufreq, Governor::Userspace);
    frequency.scale_freq_tick(CpuId(0), us(4_000));
    assert_eq!(frequency.scale(CpuId(0)), 853, "2.0 of 2.4 GHz");
    // A change that came while the path of that tick was under way. After it the CPU is halted for all but a moment.
    frequency.apply(Change { domain: 0, khz: 1_000_000 }, us(3_900));
    frequency.halt(CpuId(0), us(4_001), false);
    frequency.resume(CpuId(0), us(8_000));
    frequency.scale_freq_tick(CpuId(0), us(8_001));
    assert_eq!(frequency.scale(CpuId(0)), 0);
}

/// Hardware that looks at the last window alone, and goes down to the lowest frequency.
const LAST_WINDOW: Autonomous =
    Autonomous { window: us(4_000), history: us(4_000), ramp: us(30_000), burst: None, efficient_khz: 0, target: 800 };

fn autonomous(preference: u8) -> Frequency {
    chooses(LAST_WINDOW, preference)
}

fn chooses(hardware: Autonomous, preference: u8) -> Frequency {
    let model = Model { autonomous: Some(hardware), ..model(Sharing::Core) };
    let mut policy = Policy::new(&model, Driver::IntelPstate, Governor::Powersave, FrequencyRules::V4_15, 250);
    policy.preference = Preference(preference);
    let mut frequency = Frequency::new(&topology(FOUR), model, policy);
    for cpu in 0..8 {
        frequency.halt(CpuId(cpu), Ps::ZERO, true);
    }
    run(&mut frequency, us(100_000));
    assert_eq!(frequency.next(), Ps::NEVER, "nothing happens on a machine that sleeps");
    frequency
}

/// When a CPU that is busy from 100 ms on reaches the highest frequency, in microseconds from that time.
fn time_to_ramp(preference: u8) -> Option<u64> {
    let mut frequency = autonomous(preference);
    frequency.resume(CpuId(0), us(100_000));
    let told = run(&mut frequency, us(600_000));
    told.iter().find(|change| change.2 == 3_000_000).map(|change| change.0 - 100_000)
}

#[test]
fn autonomous_hardware_ramps_as_fast_as_published() {
    // 2 GHz in 30 ms, in steps of 4 ms: 267 MHz rounded up to 300, so 7 windows.
    assert_eq!(time_to_ramp(128), Some(7 * 4_000 + 20));
    assert_eq!(time_to_ramp(0), Some(4_000 + 20));
    assert_eq!(time_to_ramp(255), Some(7 * 4_000 + 20));
}

#[test]
fn autonomous_hardware_fits_the_frequency_to_the_work() {
    let mut frequency = autonomous(128);
    // 1.2 million cycles of work in each millisecond: at 1.5 GHz the CPU is busy for 80% of the time.
    for ms in 100..400 {
        frequency.resume(CpuId(0), us(ms * 1_000));
        run(&mut frequency, us(ms * 1_000));
        let busy = 1_200_000_000 / u64::from(frequency.khz(CpuId(0)));
        run(&mut frequency, us(ms * 1_000 + busy));
        frequency.halt(CpuId(0), us(ms * 1_000 + busy.min(1_000)), false);
    }
    assert_eq!(frequency.khz(CpuId(0)), 1_500_000);
}

#[test]
fn a_task_that_visits_every_core_in_turn_never_ramps_and_one_that_stays_does() {
    // Visits of 500 us: every core is busy for an eighth of the time.
    let mut frequency = autonomous(128);
    for visit in 0..2_000 {
        let cpu = CpuId::new(visit % 8);
        let from = us(100_000 + visit as u64 * 500);
        run(&mut frequency, from);
        frequency.resume(cpu, from);
        run(&mut frequency, Ps(from.0 + us(499).0));
        frequency.halt(cpu, Ps(from.0 + us(499).0), false);
    }
    for cpu in 0..8 {
        let highest = frequency.time(CpuId(cpu), us(1_100_000)).iter().last().map(|entry| entry.0);
        assert_eq!(highest, Some(1_000_000), "CPU {cpu}");
    }
    let mut staying = autonomous(128);
    staying.resume(CpuId(5), us(100_000));
    run(&mut staying, us(1_100_000));
    assert_eq!(staying.khz(CpuId(5)), 3_000_000);
}

#[test]
fn who_comes_at_the_end_of_a_window_is_looked_at_in_the_next() {
    // A task visits the core for a moment, so that the hardware looks at 104 ms, and comes back to stay at about that
    // time. A path is charged as a whole, so an arrival after the window's end is known before it.
    for comes in [us(103_999), us(104_000), us(104_002)] {
        let mut frequency = autonomous(128);
        frequency.resume(CpuId(0), us(102_000));
        frequency.halt(CpuId(0), Ps(us(102_000).0 + 1), false);
        frequency.resume(CpuId(0), comes);
        let told = run(&mut frequency, us(1_104_000));
        assert_eq!(told.last(), Some(&(104_000 + 7 * 4_000 + 20, 0, 3_000_000)), "who comes at {comes:?}");
        frequency.halt(CpuId(0), us(1_104_000), false);
        run(&mut frequency, us(1_500_000));
        assert_eq!(frequency.next(), Ps::NEVER, "nothing happens on a machine that sleeps");
    }
}

/// The highest frequency of each core, in MHz, while a task moves through the CPUs of `round`, 500 us on each, from 100
/// ms to 1.1 s.
fn visited(hardware: Autonomous, round: &[u16]) -> Vec<u32> {
    let mut frequency = chooses(hardware, 128);
    for visit in 0..2_000 {
        let cpu = CpuId(round[visit % round.len()]);
        let from = us(100_000 + visit as u64 * 500);
        run(&mut frequency, from);
        frequency.resume(cpu, from);
        run(&mut frequency, Ps(from.0 + us(499).0));
        frequency.halt(cpu, Ps(from.0 + us(499).0), false);
    }
    let highest = |cpu| frequency.time(CpuId(cpu), us(1_100_000)).iter().last().map_or(0, |entry| entry.0);
    (0..4).map(|cpu| highest(cpu) / 1_000).collect()
}

#[test]
fn threads_of_a_core_keep_it_busy_together() {
    // CPU 4 is the second thread of core 0.
    assert_eq!(visited(LAST_WINDOW, &[0, 4])[0], 3_000);
    assert_eq!(visited(LAST_WINDOW, &[0, 1])[..2], [1_000, 1_000]);
}

#[test]
fn a_history_tells_who_visits_often_from_who_visits_seldom() {
    // Each of two cores is busy for half of the time, each of four for a quarter, in long stays.
    let stays = |cores: u16| (0..cores).flat_map(|cpu| [cpu; 24]).collect::<Vec<u16>>();
    let hardware = |history| Autonomous { target: 400, history: us(history), ..LAST_WINDOW };
    let (two, four) = (visited(hardware(100_000), &stays(2)), visited(hardware(100_000), &stays(4)));
    assert!(two[0] > 2_500 && four[0] < 1_500, "{two:?} and {four:?}");
    // By their last windows the two cases are the same: a core is busy all the time while a task is there.
    let (two, four) = (visited(hardware(4_000), &stays(2)), visited(hardware(4_000), &stays(4)));
    assert!(two[0] < 2_500 && two[0] == four[0], "{two:?} and {four:?}");
}

#[test]
fn a_long_history_is_forgotten_too() {
    // Busy for one second, idle for a tenth of one or for ten: what is left is more or less than the target of a tenth.
    let hardware = Autonomous { window: us(1_000), history: us(100_000), target: 100, ..LAST_WINDOW };
    let wakes = |idle: u64| {
        let mut frequency = chooses(hardware, 128);
        frequency.resume(CpuId(0), us(100_000));
        run(&mut frequency, us(1_100_000));
        frequency.halt(CpuId(0), us(1_100_000), false);
        let at = us(1_100_000 + idle);
        run(&mut frequency, at);
        frequency.resume(CpuId(0), at);
        run(&mut frequency, at + us(500));
        frequency.khz(CpuId(0)) / 1_000
    };
    assert_eq!((wakes(100_000), wakes(10_000_000)), (3_000, 1_000));
}

#[test]
fn hardware_goes_no_lower_than_where_it_works_most_efficiently() {
    let hardware = Autonomous { efficient_khz: 1_300_000, ..LAST_WINDOW };
    assert_eq!(visited(hardware, &[0, 1, 2, 3]), [1_300; 4]);
}

#[test]
fn requests_are_rounded_as_relations_say() {
    let model = model(Sharing::Core);
    let all = Limits { min_khz: 0, max_khz: u32::MAX, turbo: true };
    let resolve = |khz, relation| Driver::AcpiCpufreq.resolve(&model, &model.bands[0], all, khz, relation);
    assert_eq!(resolve(1_449_000, Relation::Lowest), 1_500_000);
    assert_eq!(resolve(1_449_000, Relation::Highest), 1_400_000);
    assert_eq!(resolve(1_449_000, Relation::ClosestEfficient), 1_400_000);
    assert_eq!(resolve(1_450_000, Relation::ClosestEfficient), 1_400_000, "the lower one of two that are as close");
    assert_eq!(resolve(1_451_000, Relation::ClosestEfficient), 1_500_000);
    assert_eq!(resolve(900_000, Relation::Lowest), 1_000_000);
    // Above the base there is one entry for all of turbo.
    assert_eq!(resolve(2_000_500, Relation::Lowest), 2_001_000);
    assert_eq!(Driver::AcpiCpufreq.vote(&model.bands[0], 2_001_000), 3_000_000);
    let granted = Driver::IntelPstate.granted(&model, &model.bands[0], all, 2_000_500, Relation::Lowest);
    assert_eq!(granted, (2_100_000, 2_100_000));
}

#[test]
fn limits_hold() {
    let model = model(Sharing::Core);
    let mut policy = Policy::new(&model, Driver::IntelPstate, Governor::Performance, FrequencyRules::V4_15, 250);
    policy.limits.turbo = false;
    assert_eq!(Frequency::new(&topology(FOUR), model.clone(), policy.clone()).khz(CpuId(0)), 2_000_000);
    policy.limits = Limits { min_khz: 1_200_000, max_khz: 1_700_000, turbo: true };
    assert_eq!(Frequency::new(&topology(FOUR), model.clone(), policy.clone()).khz(CpuId(0)), 1_700_000);
    policy.governor = Governor::Powersave;
    policy.driver = Driver::AcpiCpufreq;
    assert_eq!(Frequency::new(&topology(FOUR), model.clone(), policy).khz(CpuId(0)), 1_200_000);
    let capped = Model { cap_khz: Some(1_900_000), ..model };
    let performance = Policy::new(&capped, Driver::IntelPstate, Governor::Performance, FrequencyRules::V4_15, 250);
    assert_eq!(Frequency::new(&topology(FOUR), capped, performance).khz(CpuId(0)), 1_900_000);
}

#[test]
fn waits_for_devices_raise_the_floor_of_hardware_where_the_driver_is_told_to() {
    let mut frequency = autonomous(128);
    let mut wakes = |boost: bool, from: u64| {
        frequency.policy.hwp_dynamic_boost = boost;
        run(&mut frequency, us(from * 1_000));
        frequency.resume(CpuId(0), us(from * 1_000));
        let mut seen = Vec::new();
        for ms in from..from + 4 {
            frequency.update_util(CpuId(0), CpuId(0), us(ms * 1_000).ns(), true, us(ms * 1_000));
            run(&mut frequency, us(ms * 1_000 + 900));
            seen.push(frequency.khz(CpuId(0)) / 1_000);
        }
        frequency.halt(CpuId(0), us(from * 1_000 + 3_950), true);
        seen
    };
    assert_eq!(wakes(false, 200), [1_000; 4], "hardware alone has not seen a window yet");
    // With 1.0 to 3.0 GHz and a base of 2.0: the second wait within two ticks goes halfway, the next to the base, the
    // next to the highest.
    assert_eq!(wakes(true, 400), [1_000, 1_500, 2_000, 3_000]);
    // No wait for more than 3 ms: the boost ends.
    frequency.update_util(CpuId(0), CpuId(0), us(407_000).ns(), false, us(407_000));
    assert_eq!(frequency.floor_of(CpuId(0)), 1_000_000);
}

#[test]
fn a_second_wait_counts_within_two_ticks_and_its_boost_is_held_for_three_milliseconds() {
    // Ticks of 4 ms: a wait each at these times, then news without one; the lowest that hardware may choose afterwards, in MHz.
    let floor = |waits: [u64; 2], later: u64| {
        let mut frequency = autonomous(128);
        frequency.policy.hwp_dynamic_boost = true;
        for (at, iowait) in [(waits[0], true), (waits[1], true), (waits[1] + later, false)] {
            frequency.update_util(CpuId(0), CpuId(0), us(at).ns(), iowait, us(at));
        }
        frequency.floor_of(CpuId(0)) / 1_000
    };
    assert_eq!(floor([200_000, 207_999], 1_000), 1_500);
    assert_eq!(floor([200_000, 208_000], 1_000), 1_000, "it may be chance");
    assert_eq!(floor([200_000, 201_000], 3_000), 1_500);
    assert_eq!(floor([200_000, 201_000], 3_001), 1_000);
}

#[test]
fn full_speed_is_what_hardware_declares() {
    // The scale, of 1024, at 1.0 GHz with a base of 2.0 GHz.
    let scale = |change: &dyn Fn(&mut Model)| {
        let mut model = model(Sharing::Core);
        change(&mut model);
        let mut frequency = frequency(model, Driver::AcpiCpufreq, Governor::Powersave);
        frequency.scale_freq_tick(CpuId(0), us(4_000));
        frequency.scale(CpuId(0))
    };
    let four_cores = scale(&|_| ());
    assert_eq!(four_cores, 426, "1.0 of 2.4 GHz");
    assert_eq!(scale(&|model| model.cap_khz = Some(1_500_000)), four_cores, "a cap is not declared");
    assert_eq!(scale(&|model| model.bands[0].turbo_khz.truncate(2)), 341, "two cores have no turbo of four: 3.0 GHz");
    assert_eq!(scale(&|model| model.full_speed = Some(FullSpeed::Halfway)), 409, "2.5 GHz");
    assert_eq!(scale(&|model| model.full_speed = Some(FullSpeed::Highest)), 341, "3.0 GHz");
}

#[test]
fn full_speed_is_four_cores_turbo_and_half_of_it_is_half() {
    let mut frequency = frequency(model(Sharing::Core), Driver::IntelPstate, Governor::Performance);
    frequency.scale_freq_tick(CpuId(0), us(4_000));
    // 2.4 GHz, the turbo frequency of four active cores.
    assert_eq!(frequency.scale(CpuId(0)), 1024);
    frequency.vote(CpuId(0), 1_200_000, us(4_000));
    frequency.vote(CpuId(4), 1_200_000, us(4_000));
    run(&mut frequency, us(5_000));
    frequency.scale_freq_tick(CpuId(0), us(8_000));
    // 20 us of the four milliseconds were at the old one.
    assert_eq!(frequency.scale(CpuId(0)), 514);
    frequency.scale_freq_tick(CpuId(0), us(12_000));
    assert_eq!(frequency.scale(CpuId(0)), 512);
    // Alone it reaches 3.0 GHz, which is no more than full speed to load tracking.
    for cpu in [1, 2, 3, 5, 6, 7] {
        frequency.halt(CpuId(cpu), us(12_000), true);
    }
    frequency.vote(CpuId(0), 3_000_000, us(12_000));
    run(&mut frequency, us(13_000));
    assert_eq!(frequency.khz(CpuId(0)), 3_000_000);
    frequency.scale_freq_tick(CpuId(0), us(20_000));
    assert_eq!(frequency.scale(CpuId(0)), 1024);
}
