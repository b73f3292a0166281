//! What is written while a kernel runs.

use super::*;

const CPU0: CpuId = CpuId(0);
/// No second threads, which would hold the clocks of their cores.
const CORES: &str = "pack:1 core:4 pu:1";

/// CPUs of 1.0 to 2.0 GHz, 2.4 with all cores, under a driver and a governor of a kernel.
fn governed(driver: Driver, governor: Governor, rules: FrequencyRules) -> Frequency {
    let model = model(Sharing::Core);
    let policy = Policy::new(&model, driver, governor, rules, 250);
    Frequency::new(&topology(CORES), model, policy)
}

/// Writes a file at a time in microseconds.
fn store(frequency: &mut Frequency, at: u64, file: File, change: impl FnOnce(&Model, &mut Policy)) {
    let mut policy = frequency.policy().clone();
    change(&frequency.model, &mut policy);
    frequency.store(file, policy, &[], us(at));
}

fn governor(frequency: &mut Frequency, at: u64, governor: Governor) {
    frequency.dbs_stop(&[]);
    store(frequency, at, File::Governor, |model, policy| *policy = policy.switched_to(model, governor));
}

fn limits(frequency: &mut Frequency, at: u64, min_khz: u32, max_khz: u32) {
    let change = |_: &Model, policy: &mut Policy| (policy.limits.min_khz, policy.limits.max_khz) = (min_khz, max_khz);
    store(frequency, at, File::Limits, change);
}

fn turbo(frequency: &mut Frequency, at: u64, turbo: bool) {
    store(frequency, at, File::Turbo, |_, policy| policy.cpufreq_boost_trigger_state(turbo));
}

/// CPU 0's clock in MHz by a time, and when it changed last.
fn clock(frequency: &mut Frequency, until: u64) -> (u64, u32) {
    let changed = run(frequency, us(until)).iter().rev().find(|change| change.1 == 0).map_or(0, |change| change.0);
    (changed, frequency.khz(CPU0) / 1_000)
}

#[test]
fn a_static_governor_moves_the_clock_as_it_starts_and_within_new_limits() {
    let mut frequency = governed(Driver::AcpiCpufreq, Governor::Powersave, FrequencyRules::V6_12);
    assert_eq!(clock(&mut frequency, 1_000), (0, 1_000));
    governor(&mut frequency, 1_000, Governor::Performance);
    assert_eq!(clock(&mut frequency, 2_000), (1_020, 2_400), "after the latency of the hardware");
    limits(&mut frequency, 2_000, 0, 1_500_000);
    assert_eq!(clock(&mut frequency, 3_000), (2_020, 1_500));
    governor(&mut frequency, 3_000, Governor::Userspace);
    assert_eq!(clock(&mut frequency, 4_000), (0, 1_500), "it takes over where the policy is");
    store(&mut frequency, 4_000, File::Setspeed, |_, policy| policy.setspeed_khz = Some(1_200_000));
    assert_eq!(clock(&mut frequency, 5_000), (4_020, 1_200));
    limits(&mut frequency, 5_000, 1_300_000, 1_500_000);
    assert_eq!(clock(&mut frequency, 6_000), (5_020, 1_300));
    limits(&mut frequency, 6_000, 0, 1_500_000);
    assert_eq!(clock(&mut frequency, 7_000), (6_020, 1_200), "it remembers what was asked for");
}

#[test]
fn a_new_governor_begins_with_its_defaults_and_keeps_what_is_not_its_own() {
    let frequency = governed(Driver::AcpiCpufreq, Governor::Ondemand, FrequencyRules::V6_12);
    let mut policy = Policy { up_threshold: 50, io_is_busy: false, ..frequency.policy().clone() };
    policy.limits.max_khz = 1_500_000;
    let same = policy.switched_to(&frequency.model, Governor::Ondemand);
    assert_eq!(same, policy);
    let conservative = policy.switched_to(&frequency.model, Governor::Conservative);
    assert_eq!((conservative.up_threshold, conservative.limits.max_khz), (80, 1_500_000));
    let back = conservative.switched_to(&frequency.model, Governor::Ondemand);
    assert_eq!((back.up_threshold, back.io_is_busy), (95, true));
}

#[test]
fn the_preference_outlives_performance_with_intels_driver_alone() {
    for (driver, expected) in [(Driver::IntelPstate, 192), (Driver::AmdPstateEpp, 0)] {
        let frequency = governed(driver, Governor::Powersave, FrequencyRules::V6_12);
        let policy = Policy { preference: Preference(192), ..frequency.policy().clone() };
        let performance = policy.switched_to(&frequency.model, Governor::Performance);
        let back = performance.switched_to(&frequency.model, Governor::Powersave);
        assert_eq!(back.preference, Preference(expected), "{}", driver.name());
    }
}

#[test]
fn samples_begin_anew_and_a_sample_that_a_kworker_is_in_counts_for_nobody() {
    let mut frequency = governed(Driver::AcpiCpufreq, Governor::Ondemand, FrequencyRules::V6_12);
    let due = |frequency: &mut Frequency, at: u64| frequency.update_util(CPU0, CPU0, us(at).ns(), false, us(at));
    assert_eq!(due(&mut frequency, 20_000), Some(0));
    assert!(frequency.dbs_work_handler(0, &[], us(20_000)).is_some());
    governor(&mut frequency, 20_010, Governor::Conservative);
    assert_eq!(due(&mut frequency, 20_020), Some(0), "limits() has it sample at the next report");
    frequency.dbs_work_done(0, us(20_030));
    assert_eq!(due(&mut frequency, 50_000), None, "that was the other governor's");
    frequency.dbs_work_handler(0, &[], us(50_000));
    frequency.dbs_work_done(0, us(50_000));
    assert_eq!(due(&mut frequency, 50_001), Some(0));
    // A sample that no kworker has begun is cancelled.
    frequency.dbs_stop(&[0]);
    store(&mut frequency, 60_000, File::Governor, |model, policy| {
        *policy = policy.switched_to(model, Governor::Ondemand)
    });
    assert_eq!(due(&mut frequency, 60_001), Some(0));
    frequency.dbs_work_handler(0, &[], us(60_002));
    frequency.dbs_work_done(0, us(60_002));
    assert_eq!(due(&mut frequency, 90_000), Some(0));
}

#[test]
fn conservatives_own_figure_follows_limits_in_late_kernels() {
    for (rules, expected) in [(FrequencyRules::V6_6, 1_300), (FrequencyRules::V6_12, 1_400)] {
        let mut frequency = governed(Driver::AcpiCpufreq, Governor::Conservative, rules);
        let busy = |frequency: &mut Frequency, at: u64| {
            if let Some(wish) = frequency.dbs_work_handler(0, &[], us(at)) {
                frequency.driver_target(0, wish, us(at));
            }
            frequency.dbs_work_done(0, us(at));
            frequency.cur(0) / 1_000
        };
        (1..20).for_each(|sample| _ = busy(&mut frequency, sample * 10_000));
        assert_eq!(frequency.cur(0), 2_001_000);
        limits(&mut frequency, 200_000, 0, 1_300_000);
        limits(&mut frequency, 200_000, 0, u32::MAX);
        assert_eq!(frequency.cur(0), 1_300_000, "nobody has asked for more yet");
        assert_eq!(
            busy(&mut frequency, 210_000),
            expected,
            "a step up from its figure, or nothing where that is at the highest"
        );
    }
}

#[test]
fn intels_software_waits_for_its_next_sample_and_its_performance_does_not() {
    let mut frequency = governed(Driver::IntelPstate, Governor::Performance, FrequencyRules::V6_12);
    assert_eq!((clock(&mut frequency, 1_000), frequency.policy().follower()), ((0, 2_400), Follower::Nobody));
    turbo(&mut frequency, 1_000, false);
    assert_eq!(clock(&mut frequency, 2_000), (1_020, 2_000));
    governor(&mut frequency, 2_000, Governor::Powersave);
    turbo(&mut frequency, 2_000, true);
    limits(&mut frequency, 2_000, 0, 1_500_000);
    assert_eq!((clock(&mut frequency, 3_000), frequency.policy().follower()), ((0, 2_000), Follower::Driver));
    for at in [15_000, 26_000] {
        frequency.update_util(CPU0, CPU0, us(at).ns(), false, us(at));
    }
    assert_eq!(clock(&mut frequency, 27_000), (26_020, 1_500), "the first sample has none before it");
    governor(&mut frequency, 30_000, Governor::Performance);
    limits(&mut frequency, 30_000, 0, 1_800_000);
    assert_eq!(clock(&mut frequency, 31_000), (30_020, 1_800));
}

#[test]
fn until_v4_5_intels_timers_apply_what_was_written() {
    let mut frequency = governed(Driver::IntelPstate, Governor::Performance, FrequencyRules::V4_5);
    turbo(&mut frequency, 1_000, false);
    assert_eq!(clock(&mut frequency, 3_000), (0, 2_400));
    for jiffy in 1..5 {
        frequency.tick(CPU0, false, us(jiffy * 4_000));
    }
    assert_eq!(clock(&mut frequency, 20_000).1, 2_000);
}

#[test]
fn hardware_that_chooses_is_told_its_range_at_once() {
    let mut model = model(Sharing::Core);
    let (window, history, ramp) = (us(1_000), us(10_000), us(100_000));
    model.autonomous = Some(Autonomous { window, history, ramp, burst: None, efficient_khz: 0, target: 800 });
    let policy = Policy::new(&model, Driver::IntelPstate, Governor::Powersave, FrequencyRules::V6_12, 250);
    let mut frequency = Frequency::new(&topology(CORES), model, policy);
    governor(&mut frequency, 100, Governor::Performance);
    assert_eq!(clock(&mut frequency, 900), (500, 2_400));
    limits(&mut frequency, 1_900, 0, 1_500_000);
    assert_eq!(clock(&mut frequency, 2_900), (1_920, 1_500));
    store(&mut frequency, 2_900, File::HwpDynamicBoost, |_, policy| policy.hwp_dynamic_boost = true);
    assert_eq!(frequency.policy().follower(), Follower::Driver, "waits for devices are told");
    assert_eq!(clock(&mut frequency, 3_900), (0, 1_500));
}

#[test]
fn acpis_switch_of_boost_is_the_hardwares() {
    let mut frequency = governed(Driver::AcpiCpufreq, Governor::Performance, FrequencyRules::V6_12);
    turbo(&mut frequency, 1_000, false);
    assert_eq!(clock(&mut frequency, 2_000), (1_020, 2_000));
    assert_eq!(frequency.cur(0), 2_001_000, "the kernel still asks for the table's last entry");
    turbo(&mut frequency, 2_000, true);
    assert_eq!(clock(&mut frequency, 3_000), (2_020, 2_400));
}

#[test]
fn boost_of_a_table_overwrites_the_highest_frequency() {
    let frequency = governed(Driver::CppcCpufreq, Governor::Performance, FrequencyRules::V6_12);
    let mut policy = frequency.policy().clone();
    policy.limits.max_khz = 1_500_000;
    policy.cpufreq_boost_trigger_state(true);
    assert_eq!(policy.limits.max_khz, 1_500_000, "it was on");
    policy.cpufreq_boost_trigger_state(false);
    assert_eq!(policy.limits, Limits { min_khz: 0, max_khz: u32::MAX, turbo: false });
}

#[test]
fn no_turbo_reaches_load_tracking_since_v5_19() {
    for (rules, expected) in [(FrequencyRules::V5_15, 853), (FrequencyRules::V6_1, 1024)] {
        let mut frequency = governed(Driver::IntelPstate, Governor::Performance, rules);
        turbo(&mut frequency, 0, false);
        run(&mut frequency, us(4_000));
        frequency.scale_freq_tick(CPU0, us(4_000));
        frequency.scale_freq_tick(CPU0, us(8_000));
        assert_eq!(frequency.scale(CPU0), expected);
    }
}
