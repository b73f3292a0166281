//! ondemand and conservative: when they sample, what they count as idle, and what their files do.

use super::*;

/// CPUs of 1.0 to 2.0 GHz. The table's last entry, 2.001, stands for turbo.
fn governed(governor: Governor, rules: FrequencyRules, change: impl FnOnce(&mut Policy)) -> Frequency {
    governed_on(model(Sharing::Core), governor, rules, change)
}

fn governed_on(model: Model, governor: Governor, rules: FrequencyRules, change: impl FnOnce(&mut Policy)) -> Frequency {
    let mut policy = Policy::new(&model, Driver::AcpiCpufreq, governor, rules, 250);
    change(&mut policy);
    Frequency::new(&topology(FOUR), model, policy)
}

const CPU0: CpuId = CpuId(0);

/// Takes a sample of CPU 0 at a time in microseconds. Returns what is asked for, in MHz.
fn sample(frequency: &mut Frequency, at: u64, iowait: &[CpuId]) -> u32 {
    if let Some(wish) = frequency.dbs_work_handler(0, iowait, us(at)) {
        assert_eq!(frequency.driver_target(0, wish, us(at)), us(at), "this driver does not wait");
    }
    frequency.dbs_work_done(0, us(at));
    frequency.cur(0) / 1_000
}

/// Whether a sample is due.
fn due(frequency: &mut Frequency, at: u64) -> bool {
    frequency.update_util(CPU0, CPU0, us(at).ns(), false, us(at)).is_some()
}

/// CPU 0 idles from one microsecond to another.
fn idles(frequency: &mut Frequency, from: u64, to: u64, iowait: bool) {
    frequency.idle(CPU0, us(from));
    frequency.stop_idle(CPU0, us(to), iowait);
}

#[test]
fn a_sample_is_left_once_in_a_period_and_never_while_one_is_not_done() {
    let mut frequency = governed(Governor::Ondemand, FrequencyRules::V6_12, |policy| policy.sampling_rate_us = 10_000);
    assert!(!due(&mut frequency, 9_999) && due(&mut frequency, 10_000));
    assert!(!due(&mut frequency, 40_000), "the kworker has not come to run");
    sample(&mut frequency, 41_000, &[]);
    assert!(due(&mut frequency, 41_001), "a period counts from where it was noticed");
    let (by, of) = (CpuId(1), CPU0);
    sample(&mut frequency, 42_000, &[]);
    assert_eq!(frequency.update_util(by, of, us(90_000).ns(), false, us(90_000)), None, "x86 asks for nobody else");
}

#[test]
fn until_v4_5_all_cpus_sample_in_the_same_jiffies() {
    let mut frequency = governed(Governor::Ondemand, FrequencyRules::V4_5, |_| ());
    let mut told = Vec::new();
    for jiffy in 1..14 {
        let at = us(jiffy * 4_000);
        // Another CPU's tick finds its own timer, not this one.
        if let Some(policy) = frequency.tick(CPU0, false, at) {
            assert_eq!(policy, 0);
            told.push(jiffy);
            frequency.dbs_work_handler(0, &[], at);
            frequency.dbs_work_done(0, at);
        }
    }
    // 10 ms are three jiffies.
    assert_eq!(told, [1, 3, 6, 9, 12]);
}

#[test]
fn waits_for_devices_are_busy_to_ondemand_on_intels_processors_or_where_it_is_told() {
    let load = |of_device: bool, full_speed: Option<FullSpeed>, change: fn(&mut Policy)| {
        let model = Model { full_speed, ..model(Sharing::Core) };
        let mut frequency = governed_on(model, Governor::Ondemand, FrequencyRules::V6_12, change);
        idles(&mut frequency, 2_000, 10_000, of_device);
        sample(&mut frequency, 10_000, &[])
    };
    let (intel, amd) = (None, Some(FullSpeed::Halfway));
    assert_eq!((load(true, intel, |_| ()), load(false, intel, |_| ())), (2_001, 1_200));
    // With 1.0 to 3.0 GHz, which AMD's firmware reports.
    assert_eq!((load(true, amd, |_| ()), load(false, amd, |_| ())), (1_400, 1_400));
    assert_eq!(load(true, intel, |policy| policy.io_is_busy = false), 1_200);
    assert_eq!(load(true, amd, |policy| policy.io_is_busy = true), 2_001);
    // An idle that still lasts counts by whether tasks wait for a device at the sample, and never again.
    let mut frequency = governed(Governor::Ondemand, FrequencyRules::V6_12, |_| ());
    frequency.idle(CPU0, us(2_000));
    assert_eq!(sample(&mut frequency, 10_000, &[CPU0]), 2_001);
    frequency.stop_idle(CPU0, us(18_000), false);
    assert_eq!(sample(&mut frequency, 20_000, &[]), 1_200);
    let mut conservative = governed(Governor::Conservative, FrequencyRules::V6_12, |policy| policy.freq_step = 10);
    idles(&mut conservative, 1_000, 10_000, true);
    assert_eq!(sample(&mut conservative, 10_000, &[]), 1_000, "which has no such file");
}

#[test]
fn time_of_nice_tasks_is_idle_where_it_is_told_so() {
    let load = |ignore: bool| {
        let mut frequency =
            governed(Governor::Ondemand, FrequencyRules::V6_12, |policy| policy.ignore_nice_load = ignore);
        for (at, nice) in [(4_000, true), (8_000, true), (12_000, false), (16_000, true), (20_000, true)] {
            assert_eq!(frequency.tick(CPU0, nice, us(at)), None, "no timer");
        }
        sample(&mut frequency, 20_000, &[])
    };
    assert_eq!((load(false), load(true)), (2_001, 1_200));
}

#[test]
fn powersave_bias_takes_turns_between_two_frequencies() {
    let mut frequency = governed(Governor::Ondemand, FrequencyRules::V6_12, |policy| {
        (policy.powersave_bias, policy.sampling_rate_us) = (30, 10_000);
    });
    // 2.001 GHz less three hundredths is 1.940970 GHz: two fifths of the time at 2.0, the rest at 1.9.
    assert!(due(&mut frequency, 10_000));
    assert_eq!(sample(&mut frequency, 10_000, &[]), 2_000);
    assert!(!due(&mut frequency, 14_096) && due(&mut frequency, 14_097));
    assert_eq!(sample(&mut frequency, 14_097, &[]), 1_900);
    assert!(!due(&mut frequency, 19_999) && due(&mut frequency, 20_000));
    assert_eq!(sample(&mut frequency, 20_000, &[]), 2_000);
    // The same below the threshold: 1.2002 GHz is 1.3 in the table, which less three hundredths is 1.261.
    idles(&mut frequency, 22_000, 30_000, false);
    assert_eq!(sample(&mut frequency, 24_097, &[]), 1_900, "the turn of the lower one");
    assert_eq!(sample(&mut frequency, 30_000, &[]), 1_300);
    assert_eq!(sample(&mut frequency, 36_100, &[]), 1_200);
    // 1.938969 GHz: 3896.9 us at 2.0 GHz, of 10 ms, to the nearest.
    let mut rounded = governed(Governor::Ondemand, FrequencyRules::V6_12, |policy| {
        (policy.powersave_bias, policy.sampling_rate_us) = (31, 10_000);
    });
    assert_eq!(sample(&mut rounded, 10_000, &[]), 2_000);
    assert_eq!(rounded.policies[0].dbs.turns(), Some((1_900_000, 3_897)));
    let mut most = governed(Governor::Ondemand, FrequencyRules::V6_12, |policy| policy.powersave_bias = 1_000);
    assert_eq!(sample(&mut most, 10_000, &[]), 1_000, "nothing is left of it: the lowest");
    let mut bounded = governed(Governor::Ondemand, FrequencyRules::V6_12, |policy| {
        (policy.powersave_bias, policy.limits.min_khz) = (500, 1_400_000);
    });
    // 1.0005 GHz is looked up within the limits, so there is no alternation.
    assert_eq!([10_000, 20_000].map(|at| sample(&mut bounded, at, &[])), [1_400, 1_400]);
    assert!(bounded.policies[0].dbs.turns().is_none());
}

#[test]
fn sampling_down_factor_has_ondemand_stay_high_and_conservative_go_down_late() {
    let change = |policy: &mut Policy| (policy.sampling_down_factor, policy.sampling_rate_us) = (3, 10_000);
    let mut ondemand = governed(Governor::Ondemand, FrequencyRules::V6_12, change);
    assert!(due(&mut ondemand, 10_000));
    assert_eq!(sample(&mut ondemand, 10_000, &[]), 2_001);
    assert!(!due(&mut ondemand, 39_999) && due(&mut ondemand, 40_000));
    idles(&mut ondemand, 12_000, 40_000, false);
    assert_eq!(sample(&mut ondemand, 40_000, &[]), 1_100, "6% of 1.0 to 2.0 GHz");
    assert!(due(&mut ondemand, 50_000), "no longer");
    let mut conservative = governed(Governor::Conservative, FrequencyRules::V6_12, change);
    let busy: Vec<u32> = (1..4).map(|sample_at| sample(&mut conservative, sample_at * 10_000, &[])).collect();
    // 5% of 2.001 GHz, down to a multiple of 100 MHz.
    assert_eq!(busy, [1_100, 1_200, 1_300]);
    let idle: Vec<u32> = (4..10)
        .map(|number| {
            idles(&mut conservative, number * 10_000 - 9_900, number * 10_000, false);
            sample(&mut conservative, number * 10_000, &[])
        })
        .collect();
    assert_eq!(idle, [1_300, 1_300, 1_300, 1_300, 1_300, 1_200]);
}

#[test]
fn conservatives_step_and_threshold_are_its_files() {
    let climb = |step: u32| {
        let mut frequency = governed(Governor::Conservative, FrequencyRules::V6_12, |policy| policy.freq_step = step);
        (1..4).map(|number| sample(&mut frequency, number * 10_000, &[])).collect::<Vec<u32>>()
    };
    assert_eq!(climb(0), [1_000; 3]);
    assert_eq!(climb(20), [1_400, 1_800, 2_001]);
    assert_eq!(climb(100), [2_001; 3]);
    let after_half = |threshold: u32| {
        let mut frequency = governed(Governor::Conservative, FrequencyRules::V6_12, |policy| {
            (policy.freq_step, policy.down_threshold) = (50, threshold);
        });
        assert_eq!(sample(&mut frequency, 10_000, &[]), 2_000);
        idles(&mut frequency, 15_000, 20_000, false);
        sample(&mut frequency, 20_000, &[])
    };
    assert_eq!((after_half(20), after_half(60)), (2_000, 1_000));
    assert_eq!(after_half(50), 2_000, "a load at the threshold is not below it");
}

#[test]
fn the_load_before_a_long_sleep_counts_once() {
    let mut frequency = governed(Governor::Ondemand, FrequencyRules::V6_12, |policy| policy.sampling_rate_us = 10_000);
    assert_eq!(sample(&mut frequency, 10_000, &[]), 2_001);
    // Asleep for more than two periods each time, and busy for a twentieth: first as before the sleep, then by that.
    let mut asleep = |from: u64| {
        idles(&mut frequency, from, from + 38_000, false);
        sample(&mut frequency, from + 40_000, &[])
    };
    assert_eq!([asleep(10_000), asleep(50_000), asleep(90_000)], [2_001, 1_100, 1_100]);
}

#[test]
fn samples_are_no_closer_than_the_governors_allow() {
    // At 250 Hz, with firmware that declares a change to take 10 us, or 3 ms.
    let rates = |governor, rules, declared_latency_us| {
        let model = Model { declared_latency_us, ..model(Sharing::Core) };
        let policy = Policy::new(&model, Driver::AcpiCpufreq, governor, rules, 250);
        (policy.min_sampling_rate_us, policy.sampling_rate_us)
    };
    use Governor::{Conservative, Ondemand};
    // Two times ten jiffies; 10 ms; 20 times the latency; and a thousand times it to begin with.
    assert_eq!(rates(Conservative, FrequencyRules::V4_5, 10), (80_000, 80_000));
    assert_eq!(rates(Ondemand, FrequencyRules::V4_5, 10), (10_000, 10_000));
    assert_eq!(rates(Conservative, FrequencyRules::V4_5, 5_000), (100_000, 5_000_000));
    assert_eq!(rates(Ondemand, FrequencyRules::V4_5, 3_000), (60_000, 3_000_000));
    // Two jiffies, or what the driver waits between two changes.
    for governor in [Conservative, Ondemand] {
        assert_eq!(rates(governor, FrequencyRules::V4_15, 10), (8_000, 10_000));
        assert_eq!(rates(governor, FrequencyRules::V6_12, 10), (8_000, 8_000));
        assert_eq!(rates(governor, FrequencyRules::V6_12, 9_000), (8_000, 13_500));
    }
}

#[test]
fn conservative_makes_up_for_periods_that_were_slept_through_but_not_in_v4_5() {
    let after_sleep = |rules: FrequencyRules| {
        let mut frequency = governed(Governor::Conservative, rules, |policy| {
            (policy.freq_step, policy.sampling_rate_us) = (20, 10_000);
        });
        let busy: Vec<u32> = (1..4).map(|number| sample(&mut frequency, number * 10_000, &[])).collect();
        assert_eq!(busy, [1_400, 1_800, 2_001]);
        idles(&mut frequency, 31_000, 60_000, false);
        // The CPU's load is that before the sleep: up again by one step.
        sample(&mut frequency, 60_000, &[])
    };
    // Three steps of 400 MHz from 2.001 GHz lead to 801 MHz, and the next step up begins there; later kernels keep the
    // figure above the lowest frequency.
    let later = FrequencyRules { step_floor: StepFloor::Lowest, ..FrequencyRules::V4_15 };
    assert_eq!([FrequencyRules::V4_5, FrequencyRules::V4_15, later].map(after_sleep), [2_001, 1_200, 1_400]);
}

#[test]
fn a_sample_that_was_busy_takes_no_deferred_steps_in_late_v6_12_and_v7_3() {
    let after_sleep = |rules: FrequencyRules, woken: u64| {
        let mut frequency = governed(Governor::Conservative, rules, |policy| {
            (policy.freq_step, policy.sampling_rate_us) = (20, 10_000);
        });
        (1..4).for_each(|number| assert!(sample(&mut frequency, number * 10_000, &[]) > 1_000));
        idles(&mut frequency, 30_000, woken, false);
        sample(&mut frequency, 60_000, &[])
    };
    // Two periods of idle time. Busy for 6 ms of 30 is a fifth, the threshold; 5.9 are less.
    assert_eq!([54_000, 54_100].map(|woken| after_sleep(FrequencyRules::V6_1, woken)), [1_600, 1_600]);
    assert_eq!([54_000, 54_100].map(|woken| after_sleep(FrequencyRules::V6_12, woken)), [2_001, 1_600]);
    assert_eq!([54_000, 54_100].map(|woken| after_sleep(FrequencyRules::V6_18, woken)), [1_600, 1_600]);
    // By ticks: that many which found it idle, of 4 ms each; six of them are all but the fifth.
    let after_ticks = |rules: FrequencyRules, ticks: u32| {
        let mut late = governed(Governor::Conservative, rules, |policy| {
            (policy.freq_step, policy.sampling_rate_us) = (20, 10_000);
        });
        (1..4).for_each(|number| assert!(sample(&mut late, number * 10_000, &[]) > 1_000));
        (0..ticks).for_each(|_| late.account_idle_time(CPU0, false));
        sample(&mut late, 60_000, &[])
    };
    assert_eq!([6, 7].map(|ticks| after_ticks(FrequencyRules::V7_2, ticks)), [1_600, 1_600]);
    assert_eq!([6, 7].map(|ticks| after_ticks(FrequencyRules::V7_3, ticks)), [2_001, 1_600]);
}

#[test]
fn v7_2_measures_idle_time_where_no_tick_would_count_it() {
    let after = |rules: FrequencyRules, idles: fn(&mut Frequency)| {
        let mut frequency = governed(Governor::Ondemand, rules, |policy| policy.sampling_rate_us = 10_000);
        idles(&mut frequency);
        sample(&mut frequency, 10_000, &[])
    };
    // Six times 1 ms between two ticks, which see none of it: busy all the time.
    let between: fn(&mut Frequency) =
        |frequency| (0..6).for_each(|ms| idles(frequency, ms * 1_500, ms * 1_500 + 1_000, false));
    assert_eq!((after(FrequencyRules::V6_18, between), after(FrequencyRules::V7_2, between)), (1_400, 2_001));
    // A tick falls into each of two of these idles: 8 ms.
    let met: fn(&mut Frequency) = |frequency| {
        (0..6).for_each(|ms| idles(frequency, ms * 1_500, ms * 1_500 + 1_000, false));
        (0..2).for_each(|_| frequency.account_idle_time(CPU0, false));
    };
    assert_eq!((after(FrequencyRules::V6_12, met), after(FrequencyRules::V7_2, met)), (1_400, 1_200));
    // Without a tick for 6 ms, 2 ms of them in an interrupt; and up to the sample.
    let stopped: fn(&mut Frequency) = |frequency| {
        frequency.kcpustat_dyntick_start(CPU0, us(1_000));
        idles(frequency, 1_000, 3_000, false);
        idles(frequency, 5_000, 7_000, false);
        frequency.kcpustat_dyntick_stop(CPU0, us(7_000), false);
    };
    assert_eq!((after(FrequencyRules::V6_12, stopped), after(FrequencyRules::V7_2, stopped)), (1_600, 1_400));
    let ongoing: fn(&mut Frequency) = |frequency| frequency.kcpustat_dyntick_start(CPU0, us(4_000));
    assert_eq!(after(FrequencyRules::V7_2, ongoing), 1_400);
    // On Intel's processors ondemand does not count waits for a device as idle, however they are measured.
    let iowait: fn(&mut Frequency) = |frequency| {
        frequency.kcpustat_dyntick_start(CPU0, us(1_000));
        frequency.kcpustat_dyntick_stop(CPU0, us(5_000), true);
        frequency.account_idle_time(CPU0, true);
    };
    assert_eq!(after(FrequencyRules::V7_2, iowait), 2_001);
}

#[test]
fn v4_5_leaves_the_figure_alone_while_the_clock_is_at_the_lowest() {
    let asked = |rules: FrequencyRules| {
        let mut frequency = governed(Governor::Conservative, rules, |policy| {
            (policy.freq_step, policy.sampling_rate_us) = (2, 10_000);
        });
        // Steps of 40 MHz, which the table cannot resolve.
        assert_eq!(sample(&mut frequency, 10_000, &[]), 1_000);
        idles(&mut frequency, 10_001, 20_000, false);
        assert_eq!(sample(&mut frequency, 20_000, &[]), 1_000);
        (3..5).map(|number| sample(&mut frequency, number * 10_000, &[])).collect::<Vec<u32>>()
    };
    assert_eq!(asked(FrequencyRules::V4_5), [1_000, 1_100], "1.04, 1.08, 1.12 GHz");
    assert_eq!(asked(FrequencyRules::V4_15), [1_000, 1_000], "1.04, 1.0, 1.04, 1.08 GHz");
}

#[test]
fn conservative_at_its_lowest_figure_asks_for_it_in_late_v6_1_and_v6_12() {
    let after_sleep = |rules: FrequencyRules| {
        let mut frequency = governed(Governor::Conservative, rules, |policy| {
            (policy.freq_step, policy.sampling_rate_us) = (20, 10_000);
        });
        for number in 1..4 {
            sample(&mut frequency, number * 10_000, &[]);
        }
        idles(&mut frequency, 30_001, 40_000, false);
        assert_eq!(sample(&mut frequency, 40_000, &[]), 1_700);
        // Four periods take its own figure to the lowest frequency.
        idles(&mut frequency, 40_001, 80_000, false);
        let first = sample(&mut frequency, 80_000, &[]);
        idles(&mut frequency, 80_001, 120_000, false);
        (first, sample(&mut frequency, 120_000, &[]))
    };
    assert_eq!(after_sleep(FrequencyRules::V5_15), (1_700, 1_700));
    assert_eq!(after_sleep(FrequencyRules::V6_6), (1_700, 1_700));
    assert_eq!(after_sleep(FrequencyRules::V6_1), (1_000, 1_000));
    assert_eq!(after_sleep(FrequencyRules::V6_12), (1_000, 1_000));
}
