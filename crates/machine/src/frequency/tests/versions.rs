//! What drivers/cpufreq does in some versions only, according to its sources.

use super::*;

fn with(driver: Driver, rules: FrequencyRules, model: Model, change: impl FnOnce(&mut Policy)) -> Frequency {
    let mut policy = Policy::new(&model, driver, Governor::Schedutil, rules, 250);
    change(&mut policy);
    Frequency::new(&topology(FOUR), model, policy)
}

fn hwp() -> Model {
    Model { autonomous: Some(LAST_WINDOW), ..model(Sharing::Core) }
}

fn amd() -> Model {
    Model { full_speed: Some(FullSpeed::Halfway), ..model(Sharing::Core) }
}

fn cpuinfo_max(frequency: &Frequency) -> u32 {
    frequency.cpufreq_policies()[0].cpuinfo_max_freq
}

/// CPU 0's scale, of 1024, as load tracking is told it, at its first frequency of 1.0 GHz.
fn scale(mut frequency: Frequency) -> Capacity {
    frequency.scale_freq_tick(CpuId(0), us(4_000));
    frequency.scale(CpuId(0))
}

#[test]
fn a_driver_without_a_table_is_told_what_is_wanted_and_rounds_by_itself() {
    for (driver, rules, has) in [
        // DIV_ROUND_UP() to a P-state, which becomes policy->cur.
        (Driver::IntelCpufreq, FrequencyRules::V4_15, 1_300_000),
        (Driver::IntelCpufreq, FrequencyRules::V6_12, 1_300_000),
        // amd_pstate_fast_switch() and cppc_cpufreq_fast_switch() return what they were asked for.
        (Driver::AmdPstate, FrequencyRules::V6_1, 1_234_567),
        (Driver::CppcCpufreq, FrequencyRules::V6_1, 1_234_567),
    ] {
        let mut frequency = with(driver, rules, model(Sharing::Core), |_| ());
        assert_eq!(frequency.resolve(CpuId(0), 1_234_567), 1_234_567, "{}", driver.name());
        assert_eq!(frequency.fast_switch(CpuId(0), 1_234_567, us(100)), has, "{}", driver.name());
        assert_eq!(frequency.cpus[0].vote, 1_300_000, "{}", driver.name());
    }
    let mut table = with(Driver::AcpiCpufreq, FrequencyRules::V4_15, model(Sharing::Core), |_| ());
    assert_eq!(
        (table.resolve(CpuId(0), 1_234_567), table.fast_switch(CpuId(0), 1_234_567, us(1))),
        (1_300_000, 1_300_000)
    );
}

#[test]
fn intels_driver_rounds_as_the_governor_says_and_stays_within_whole_states() {
    let mut frequency = with(Driver::IntelCpufreq, FrequencyRules::V4_15, model(Sharing::Core), |policy| {
        policy.limits = Limits { min_khz: 1_150_000, max_khz: 1_950_000, turbo: true };
    });
    let mut asked = |khz, relation| {
        frequency.driver_target(0, Wish { khz, relation }, us(100));
        frequency.cur(0)
    };
    assert_eq!(asked(1_440_000, Relation::ClosestEfficient), 1_400_000);
    assert_eq!(asked(1_490_000, Relation::HighestEfficient), 1_400_000);
    assert_eq!(asked(1_410_000, Relation::LowestEfficient), 1_500_000);
    // min_perf_ratio and max_perf_ratio are 11 and 19.
    assert_eq!(asked(1_950_000, Relation::Lowest), 1_900_000);
    assert_eq!(asked(1_150_000, Relation::Highest), 1_100_000);
}

#[test]
fn acpi_cpufreq_knows_how_far_boost_goes_from_v6_1_on() {
    let acpi = |rules, model| with(Driver::AcpiCpufreq, rules, model, |_| ());
    for model in [model(Sharing::Core), hwp(), amd()] {
        assert_eq!(cpuinfo_max(&acpi(FrequencyRules::V4_16, model)), 2_001_000);
    }
    for rules in [FrequencyRules::V6_1, FrequencyRules::V6_12] {
        assert_eq!(cpuinfo_max(&acpi(rules, amd())), 3_000_000);
        assert_eq!(cpuinfo_max(&acpi(rules, hwp())), 3_000_000);
        assert_eq!(cpuinfo_max(&acpi(rules, model(Sharing::Core))), 2_001_000, "no _CPC");
        // arch_set_max_freq_ratio(true): 1.0 of 2.0 GHz; otherwise of 2.4 GHz, with four active cores.
        assert_eq!((scale(acpi(rules, model(Sharing::Core))), scale(acpi(rules, hwp()))), (512, 426));
        // The table bounds what it may be set to.
        assert_eq!(acpi(rules, amd()).resolve(CpuId(0), 2_000_001), 2_001_000);
    }
    let no_boost = with(Driver::AcpiCpufreq, FrequencyRules::V6_1, hwp(), |policy| policy.limits.turbo = false);
    assert_eq!(scale(no_boost), 426, "acpi-cpufreq's boost is nothing to load tracking");
}

#[test]
fn ondemand_reckons_with_that_highest() {
    let half = |rules| {
        let model = amd();
        let policy = Policy::new(&model, Driver::AcpiCpufreq, Governor::Ondemand, rules, 250);
        let mut frequency = Frequency::new(&topology(FOUR), model, policy);
        frequency.idle(CpuId(0), us(5_000));
        frequency.stop_idle(CpuId(0), us(10_000), false);
        frequency.dbs_work_handler(0, &[], us(10_000)).map(|wish| wish.khz)
    };
    // Of 1.0 to 2.001 GHz, the nearest in the table; of 1.0 to 3.0.
    assert_eq!((half(FrequencyRules::V4_15), half(FrequencyRules::V6_1)), (Some(1_500_000), Some(2_000_000)));
}

#[test]
fn passive_mode_has_hardware_p_states_from_v6_1_on() {
    let limit = |rules, model: Model| with(Driver::IntelCpufreq, rules, model, |_| ()).cpufreq_policies()[0].clone();
    for rules in [FrequencyRules::V4_15, FrequencyRules::V4_16] {
        let policy = limit(rules, hwp());
        assert_eq!((policy.rate_limit_us, policy.adjust_perf), (500, false));
    }
    for rules in [FrequencyRules::V6_1, FrequencyRules::V6_12] {
        let (with, without) = (limit(rules, hwp()), limit(rules, model(Sharing::Core)));
        assert_eq!((with.rate_limit_us, with.adjust_perf), (5_000, true));
        assert_eq!((without.rate_limit_us, without.adjust_perf), (500, false));
    }
}

#[test]
fn no_turbo_bounds_what_is_asked_for_and_in_v6_12_lowers_what_is_reckoned_with() {
    let passive = |rules, model| with(Driver::IntelCpufreq, rules, model, |policy| policy.limits.turbo = false);
    for rules in [FrequencyRules::V4_15, FrequencyRules::V6_1, FrequencyRules::V6_12] {
        let mut frequency = passive(rules, model(Sharing::Core));
        assert_eq!(frequency.resolve(CpuId(0), 9_000_000), 2_000_000);
        assert_eq!(frequency.fast_switch(CpuId(0), 9_000_000, us(100)), 2_000_000);
        assert_eq!(scale(passive(rules, model(Sharing::Core))), 512, "1.0 of 2.0 GHz");
    }
    let highest = |rules| cpuinfo_max(&passive(rules, model(Sharing::Core)));
    assert_eq!((highest(FrequencyRules::V6_1), highest(FrequencyRules::V6_12)), (3_000_000, 2_000_000));
    // Half of a CPU is half of HWP_HIGHEST_PERF or of HWP_GUARANTEED_PERF.
    let half = |rules| {
        let mut frequency = passive(rules, hwp());
        frequency.adjust_perf(CpuId(0), 0, 512, 1024, us(100));
        frequency.cpus[0].vote
    };
    assert_eq!((half(FrequencyRules::V6_1), half(FrequencyRules::V6_12)), (1_500_000, 1_000_000));
}

#[test]
fn boost_is_the_highest_of_amd_pstate_in_every_version_that_has_it() {
    for rules in [FrequencyRules::V6_1, FrequencyRules::V6_12] {
        let boost = |turbo| with(Driver::AmdPstate, rules, amd(), |policy| policy.limits.turbo = turbo);
        assert_eq!((cpuinfo_max(&boost(true)), cpuinfo_max(&boost(false))), (3_000_000, 2_000_000));
        // amd_set_max_freq_ratio() ignores boost: halfway from 2.0 to 3.0 GHz.
        assert_eq!((scale(boost(true)), scale(boost(false))), (409, 409));
    }
}

#[test]
fn cppc_cpufreq_waits_as_long_as_firmware_takes_from_v4_16_on_and_asks_for_others_later() {
    let policy = |rules, latency| {
        let model = Model { declared_latency_us: latency, ..model(Sharing::Package) };
        with(Driver::CppcCpufreq, rules, model, |_| ()).cpufreq_policies()[0].clone()
    };
    let told = |rules, latency| policy(rules, latency).rate_limit_us;
    // LATENCY_MULTIPLIER times 4 us; registers in memory declare no latency, which counts as a millisecond.
    assert_eq!((told(FrequencyRules::V4_15, 4), told(FrequencyRules::V4_16, 4)), (4_000, 4));
    assert_eq!((told(FrequencyRules::V4_15, 40), told(FrequencyRules::V4_16, 40)), (10_000, 40));
    assert_eq!((told(FrequencyRules::V4_16, 0), told(FrequencyRules::V6_12, 0)), (1_000, 1_000));
    let anybody = |rules| policy(rules, 0).dvfs_possible_from_any_cpu;
    assert!(!anybody(FrequencyRules::V4_15) && !anybody(FrequencyRules::V4_16) && anybody(FrequencyRules::V6_1));
}

#[test]
fn half_as_much_again_is_waited_between_two_changes_since_v6_12() {
    let told = |rules, declared_latency_us| {
        let model = Model { declared_latency_us, ..model(Sharing::Core) };
        with(Driver::AcpiCpufreq, rules, model, |_| ()).cpufreq_policies()[0].rate_limit_us
    };
    assert_eq!((told(FrequencyRules::V6_1, 7), told(FrequencyRules::V6_12, 7)), (7_000, 10));
    assert_eq!((told(FrequencyRules::V6_1, 11), told(FrequencyRules::V6_12, 11)), (10_000, 16));
}

#[test]
fn frequencies_of_boost_are_no_choice_without_it() {
    let mut model = model(Sharing::Package);
    let point = |khz| OperatingPoint { khz, inefficient: false };
    model.bands[0].points = [1_000_000, 1_500_000, 2_000_000, 2_500_000].map(point).to_vec();
    let most = |turbo| {
        let boost = |policy: &mut Policy| policy.limits.turbo = turbo;
        with(Driver::CpufreqDt, FrequencyRules::V6_1, model.clone(), boost).resolve(CpuId(0), 9_000_000)
    };
    assert_eq!((most(true), most(false)), (2_500_000, 2_000_000));
}

#[test]
fn without_boost_a_clock_of_the_device_tree_is_at_full_speed_at_its_base() {
    for driver in [Driver::Scmi, Driver::CpufreqDt] {
        let of = |turbo| with(driver, FrequencyRules::V6_1, model(Sharing::Core), |policy| policy.limits.turbo = turbo);
        // 1.0 of 3.0 GHz, or of 2.0.
        assert_eq!((scale(of(true)), scale(of(false))), (341, 512), "{}", driver.name());
    }
}

/// Intel's driver, active, of P-states 10 to 30 with a base of 20, where hardware does not choose.
fn pstate(rules: FrequencyRules, hz: u32) -> Frequency {
    let model = model(Sharing::Core);
    let policy = Policy::new(&model, Driver::IntelPstate, Governor::Powersave, rules, hz);
    Frequency::new(&topology(FOUR), model, policy)
}

/// What CPU 0 asks for, in MHz, when the scheduler tells of it at a time in microseconds.
fn told(frequency: &mut Frequency, at: u64, iowait: bool) -> u32 {
    frequency.update_util(CpuId(0), CpuId(0), us(at).ns(), iowait, us(at));
    frequency.cpus[0].vote / 1_000
}

#[test]
fn waits_tick_by_tick_double_intel_pstates_boost_and_idling_ends_it() {
    // Nearly idle, with so many waits a tick of 1 ms apart before the sample at 20 ms; and what a sample says 10 ms later.
    let boosted = |waits: u64| {
        let mut frequency = pstate(FrequencyRules::V6_1, 1_000);
        told(&mut frequency, 10_000, false);
        frequency.halt(CpuId(0), us(10_001), false);
        frequency.resume(CpuId(0), us(19_999));
        let asked: Vec<u32> =
            (0..waits).rev().map(|before| told(&mut frequency, 20_000 - before * 1_000, true)).collect();
        frequency.halt(CpuId(0), us(20_001), false);
        frequency.resume(CpuId(0), us(29_999));
        (*asked.last().expect("some"), told(&mut frequency, 30_000, false))
    };
    // 30 and a quarter of it, 37, by an eighth, a quarter, a half and all of the time.
    assert_eq!([1, 2, 3, 4].map(|waits| boosted(waits).0), [1_000, 1_000, 1_800, 3_000]);
    assert_eq!([3, 4].map(|waits| boosted(waits).1), [1_000; 2]);
}

#[test]
fn intel_pstate_goes_halfway_down_from_where_it_was() {
    let mut frequency = pstate(FrequencyRules::V6_1, 1_000);
    for cpu in [1, 2, 3, 5, 6, 7] {
        frequency.halt(CpuId(cpu), Ps::ZERO, true);
    }
    told(&mut frequency, 10_000, false);
    assert_eq!(told(&mut frequency, 20_000, false), 3_000);
    run(&mut frequency, us(25_000));
    told(&mut frequency, 30_000, false);
    // Busy for 3 ms of 10 at 3.0 GHz: 30% of 37 are 10, and half of what 30 is more.
    frequency.halt(CpuId(0), us(33_000), false);
    frequency.resume(CpuId(0), us(40_000));
    assert_eq!(told(&mut frequency, 40_000, false), 2_000);
}

#[test]
fn until_v4_13_a_sample_of_more_than_three_periods_counts_by_its_length() {
    // By the tick of 4 ms; the first sample has nothing before it.
    let after = |ms: u64| {
        let mut frequency = pstate(FrequencyRules::V4_5, 250);
        for at in [4_000, 4_000 + ms * 1_000] {
            assert_eq!(frequency.tick(CpuId(0), false, us(at)), None);
        }
        frequency.cpus[0].vote / 1_000
    };
    // Busy all the time at the lowest: a state up. Slept for long, by what the timer knows: down.
    assert_eq!([12, 28, 32].map(after), [1_100, 1_100, 1_000]);
}

#[test]
fn intel_pstate_looks_after_hours_of_sleep_as_after_seconds() {
    let model = model(Sharing::Core);
    let policy = Policy::new(&model, Driver::IntelPstate, Governor::Powersave, FrequencyRules::V4_15, 1_000);
    let mut frequency = Frequency::new(&topology(FOUR), model, policy);
    let mut update = |now: Ps| {
        frequency.update_util(CpuId(0), CpuId(0), now.ns(), false, now);
        frequency.cpus[0].vote
    };
    for ms in 1..25 {
        update(us(ms * 1_000));
    }
    assert_eq!(update(us(30_000)), 3_000_000);
    // Ten idle hours, after which it is busy for a millisecond.
    let hours = us(10 * 3_600 * 1_000_000);
    frequency.halt(CpuId(0), us(30_001), true);
    frequency.resume(CpuId(0), hours);
    let late = hours + us(1_000);
    frequency.update_util(CpuId(0), CpuId(0), late.ns(), false, late);
    assert_eq!(frequency.cpus[0].vote, 1_000_000);
}

#[test]
fn intel_pstate_samples_ten_milliseconds_apart_by_the_run_queues_clock() {
    let model = model(Sharing::Core);
    let policy = Policy::new(&model, Driver::IntelPstate, Governor::Powersave, FrequencyRules::V4_15, 1_000);
    let mut frequency = Frequency::new(&topology(FOUR), model, policy);
    let mut asked = Vec::new();
    for ms in 1..25 {
        // The tick has taken some time by the moment it reports.
        let (time, now) = (us(ms * 1_000).ns(), us(ms * 1_000 + 2));
        frequency.update_util(CpuId(0), CpuId(0), time, false, now);
        asked.push(frequency.cpus[0].vote);
    }
    // The first sample, at 10 ms, has no predecessor; with the second, a CPU that never idled goes to the highest
    // frequency.
    assert_eq!(asked.iter().position(|&khz| khz == 3_000_000), Some(19), "{asked:?}");
    assert_eq!(asked[18], 1_000_000);
}

/// The clock at boot, what is resolved for the highest and the lowest wish, under limits between two steps.
fn limited(
    model: Model,
    driver: Driver,
    governor: Governor,
    rules: FrequencyRules,
    khz: (u32, u32),
) -> (u32, u32, u32) {
    let mut policy = Policy::new(&model, driver, governor, rules, 250);
    policy.limits = Limits { min_khz: khz.0, max_khz: khz.1, turbo: true };
    let frequency = Frequency::new(&topology(FOUR), model, policy);
    (frequency.khz(CpuId(0)), frequency.resolve(CpuId(0), 9_000_000), frequency.resolve(CpuId(0), 0))
}

#[test]
fn limits_between_two_entries_of_a_table_become_entries_from_v5_16_on() {
    let acpi =
        |rules, governor, khz| limited(model(Sharing::Core), Driver::AcpiCpufreq, governor, rules, (1_050_000, khz));
    for (rules, most, least) in
        [(FrequencyRules::V5_10, 1_300_000, 1_100_000), (FrequencyRules::V6_1, 1_200_000, 1_100_000)]
    {
        assert_eq!(acpi(rules, Governor::Schedutil, 1_250_000), (1_100_000, most, least));
        assert_eq!(acpi(rules, Governor::Performance, 1_250_000).0, 1_200_000, "CPUFREQ_RELATION_H");
        // The base frequency is an entry, and the one for turbo is a MHz above it.
        assert_eq!(acpi(rules, Governor::Performance, 2_000_500).0, 2_000_000);
        assert_eq!(acpi(rules, Governor::Performance, 1_950_000).0, 1_900_000);
        assert_eq!(acpi(rules, Governor::Performance, 2_001_000).0, 2_400_000, "turbo, with four active cores");
    }
    // The lowest above the highest is lowered to it.
    let crossed = limited(
        model(Sharing::Core),
        Driver::AcpiCpufreq,
        Governor::Schedutil,
        FrequencyRules::V6_1,
        (1_800_000, 1_200_000),
    );
    assert_eq!(crossed, (1_200_000, 1_200_000, 1_200_000));
}

#[test]
fn intels_drivers_keep_whole_states_within_limits_and_round_both_down() {
    for rules in [FrequencyRules::V4_15, FrequencyRules::V5_10, FrequencyRules::V6_12] {
        for (model, driver) in [
            (hwp(), Driver::IntelPstate),
            (model(Sharing::Core), Driver::IntelPstate),
            (model(Sharing::Core), Driver::IntelCpufreq),
        ] {
            let khz = limited(model, driver, Governor::Performance, rules, (1_000_000, 1_250_000)).0;
            assert_eq!(khz, 1_200_000, "{}", driver.name());
        }
        let mut policy = Policy::new(&hwp(), Driver::IntelPstate, Governor::Powersave, rules, 250);
        policy.limits = Limits { min_khz: 1_250_000, max_khz: 1_950_000, turbo: true };
        let frequency = Frequency::new(&topology(FOUR), hwp(), policy);
        let told = (frequency.khz(CpuId(0)), frequency.floor_of(CpuId(0)), frequency.ceiling_of(CpuId(0)));
        assert_eq!(told, (1_200_000, 1_200_000, 1_900_000));
    }
}
