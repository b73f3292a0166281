//! Drivers that cannot switch from within the scheduler, and the threads that ask them to.

use super::*;

/// One task on CPU 0 that idles, then is busy for a while.
const RISES: &str = "\"cpus\": [0], \"loop\": 1, \"phases\": { \"idle\": { \"loop\": 1, \"sleep\": 20000 }, \"busy\": { \"loop\": 1, \"run\": 40000 } }";

/// The lines of a trace, each with its time in microseconds.
fn traced(lines: &str, arm: &str) -> Vec<(f64, String)> {
    let setup = setup_of(lines, arm, RISES);
    let wish = Wish { format: TraceFormat::Ftrace, cut: Cut { from: None, to: None }, columns: 80, events: None };
    let (text, ..) = trace(&setup, wish, Vec::new(), &|| false).unwrap().expect("nobody interrupted");
    let text = String::from_utf8(text).expect("ftrace is text");
    let time = |line: &str| line.split_whitespace().find_map(|word| word.strip_suffix(':')?.parse::<f64>().ok());
    text.lines().filter_map(|line| Some((time(line)? * 1e6, line.to_string()))).collect()
}

fn slow(driver: &str) -> String {
    fact("driver", driver) + &fact("governor", "schedutil") + &fact("fast_switch", "no")
}

/// The times at which `sugov:0` came to run, and those at which the clock of CPU 0 changed, without its state at boot.
fn turns_and_changes(trace: &[(f64, String)]) -> (Vec<f64>, Vec<f64>) {
    let times = |part: &str, end: &str| {
        let lines = trace.iter().filter(|(_, line)| line.contains(part) && line.contains(end));
        lines.map(|(time, _)| *time).collect::<Vec<f64>>()
    };
    let changes = times("cpu_frequency:", "cpu_id=0").into_iter().filter(|&time| time > 0.0).collect();
    (times("sched_switch:", "next_comm=sugov:0 "), changes)
}

#[test]
fn a_thread_asks_a_slow_driver_and_the_clock_follows_it() {
    for (kernel, prio) in [("v4.15", "49"), ("v4.16", "-1"), ("v6.1", "-1"), ("v6.12", "-1")] {
        let trace = traced(&slow("cpufreq-dt"), kernel);
        let prio = format!("next_prio={prio}");
        let (turns, changes) = turns_and_changes(&trace);
        assert!(changes.len() > 2, "{kernel}: {changes:?}");
        for change in changes {
            // The machine's clocks take 20 us to switch, and its driver sleeps for that time.
            let asked = turns.iter().any(|turn| (20.0..600.0).contains(&(change - turn)));
            assert!(asked, "{kernel}: nobody asked for the change at {change} us: {turns:?}");
        }
        let of_thread = |(_, line): &&(f64, String)| line.contains("next_comm=sugov:0 ");
        assert!(trace.iter().filter(of_thread).all(|(_, line)| line.ends_with(&prio)), "{kernel}: {prio}");
        let preempts = trace.iter().filter(of_thread).any(|(_, line)| line.contains("prev_state=R"));
        assert!(preempts, "{kernel}: who runs is preempted");
    }
}

#[test]
fn threads_are_there_where_driver_kernel_and_firmware_need_them_and_where_schedutil_governs() {
    let has = |lines: &str, arm: &str| traced(lines, arm).iter().any(|(_, line)| line.contains("sugov:0"));
    let fast = fact("governor", "schedutil");
    for driver in ["scmi", "cppc_cpufreq", "amd-pstate"] {
        assert!(has(&slow(driver), "v6.12"), "{driver} whose firmware does not let it");
        assert!(!has(&(fact("driver", driver) + &fast), "v6.12"), "{driver}");
    }
    for driver in ["acpi-cpufreq", "intel_cpufreq"] {
        assert!(!has(&slow(driver), "v6.12"), "{driver} knows by itself");
    }
    assert!(has(&(fact("driver", "cppc_cpufreq") + &fast), "v4.15"), "which cannot yet");
    assert!(!has(&(fact("driver", "cppc_cpufreq") + &fast), "v4.15,frequency.cppc_switch=fast"));
    assert!(!has(&slow("cpufreq-dt"), "v6.12,cpufreq.governor=performance"));
}

#[test]
fn a_slow_driver_comes_to_the_frequency_that_a_fast_one_comes_to() {
    for kernel in ["v6.1", "v6.12"] {
        let arm = |driver: &str| format!("{kernel},cpufreq.driver={driver},cpufreq.governor=schedutil");
        let average = |driver: &str| shipped::average_on("snapdragon-845", &arm(driver), 4, 50);
        let (fast, slow) = (average("scmi"), average("cpufreq-dt"));
        assert!(fast.abs_diff(slow) * 100 <= fast * 7, "{kernel}: {slow} MHz for {fast}");
    }
}

#[test]
fn what_comes_while_the_driver_works_is_refused_or_joined() {
    // 20 us are negligible next to a rate limit; this driver takes longer than schedutil waits.
    let slower = |kernel: &str| {
        let arm = format!("{kernel},cpufreq.rate_limit_us=0");
        let lines = slow("cpufreq-dt")
            + "transition_latency = { value = 3, unit = \"ms\", range = [3, 3], how = \"guess\", source = \"made up\" }\n";
        let trace = traced(&lines, &arm);
        turns_and_changes(&trace)
    };
    for kernel in ["v4.15", "v6.12"] {
        let (turns, changes) = slower(kernel);
        assert!(changes.len() > 1 && turns.len() >= changes.len(), "{kernel}: {turns:?} {changes:?}");
        let apart = changes.windows(2).all(|pair| pair[1] - pair[0] >= 2_999.0);
        assert!(apart, "{kernel}: one after the other: {changes:?}");
    }
}

#[test]
fn workers_take_the_samples_of_other_governors_and_the_clock_follows_them() {
    for kernel in ["v4.5-rc1", "v4.15", "v4.16", "v6.1", "v6.12"] {
        for governor in ["ondemand", "conservative"] {
            let name = format!("{kernel}, {governor}");
            let trace = traced(&(fact("driver", "cpufreq-dt") + &fact("governor", governor)), kernel);
            let times = |part: &str, other: &str| {
                let lines = trace.iter().filter(|(_, line)| line.contains(part) && line.contains(other));
                lines.map(|(time, _)| *time).collect::<Vec<f64>>()
            };
            let turns = times("sched_switch:", "next_comm=kworker/0:");
            let mut changes = times("cpu_frequency:", "cpu_id=0");
            changes.retain(|&time| time > 0.0);
            assert!(!changes.is_empty(), "{name}: no change");
            for change in changes {
                let asked = turns.iter().any(|turn| (20.0..600.0).contains(&(change - turn)));
                assert!(asked, "{name}: nobody asked for the change at {change} us: {turns:?}");
            }
        }
    }
}

#[test]
fn governors_of_idle_time_take_their_settings() {
    let busy = |settings: &str| {
        obeying_run(&format!("v6.12,cpufreq.driver=cpufreq-dt,cpufreq.governor={settings}"), (2_000, 2_000))
    };
    // Three hundredths below 4000 MHz is 3880: 3900 for four fifths of the time, else 3800.
    let (all, less) = (busy("ondemand"), busy("ondemand,cpufreq.powersave_bias=30"));
    assert!(all > 3_900 && (3_750..3_895).contains(&less), "{all} and {less} MHz");
    assert_eq!(busy("conservative,cpufreq.freq_step=0"), 800, "no step");
    let (small, whole) = (busy("conservative,cpufreq.freq_step=1"), busy("conservative,cpufreq.freq_step=100"));
    assert!(small < 3_600 && whole > 3_900, "{small} and {whole} MHz");
    // A fifth of the highest frequency's work keeps 800 MHz busy all the time, and half the time 1600 MHz, the next
    // step.
    let fifth = |settings: &str| {
        let arm = "v6.12,cpufreq.driver=cpufreq-dt,cpufreq.governor=conservative,cpufreq.freq_step=20";
        obeying_run(&format!("{arm}{settings}"), (400, 2_000))
    };
    let (stays, goes) = (fifth(""), fifth(",cpufreq.down_threshold=60"));
    assert!((1_500..1_700).contains(&stays) && (900..1_400).contains(&goes), "{stays} and {goes} MHz");
}

/// The average frequency of core 0, in MHz, in a run of a script under ondemand.
fn scripted(script: &str, settings: &str) -> u32 {
    OBEYS.with(|obeys| obeys.set(true));
    let files = Table(BTreeMap::from([("m.toml", machine_text(&obeying())), ("s.txt", script.to_string())]));
    OBEYS.with(|obeys| obeys.set(false));
    let mut draft = Draft::default();
    draft.machine_option("m.toml");
    draft.workload_option("script:file=s.txt").unwrap();
    let arm = format!("v6.12,cpufreq.driver=acpi-cpufreq,cpufreq.governor=ondemand{settings}");
    draft.arm_options(&[arm], true).unwrap();
    let experiment = draft.resolve(Purpose::Single, &files).unwrap_or_else(|mistake| panic!("{mistake}"));
    let run = run(&experiment.setup(&experiment.jobs()[0]), Wanted::default(), &Location::of("a test"));
    let run = run.unwrap_or_else(|mistake| panic!("{mistake}")).expect("nobody interrupted");
    let time = &core(&run, 0).time;
    let (cycles, whole) = time.iter().fold((0, 0), |(cycles, whole), (khz, time)| {
        (cycles + u128::from(khz) * u128::from(time.0), whole + u128::from(time.0))
    });
    (cycles / whole / 1_000) as u32
}

#[test]
fn waits_for_devices_and_nice_tasks_count_as_ondemand_is_told() {
    let waits = "task a cpus=0: 200 x (run 1ms; io 3ms)\n";
    let (told, idle) = (scripted(waits, ""), scripted(waits, ",cpufreq.io_is_busy=0"));
    assert!(told > 3_700 && idle < 1_800, "{told} and {idle} MHz: busy by itself on Intel's processors");
    assert_eq!(told, scripted(waits, ",cpufreq.io_is_busy=1"));
    let sleeps = "task a cpus=0: 200 x (run 1ms; sleep 3ms)\n";
    assert!(scripted(sleeps, "") < 1_800, "who sleeps for something else idles");
    let nice = "task a cpus=0 nice=1: spin 500ms\n";
    let (counts, ignored) = (scripted(nice, ""), scripted(nice, ",cpufreq.ignore_nice_load=1"));
    assert!(counts > 3_700 && ignored < 1_000, "{counts} and {ignored} MHz");
    let other = "task a cpus=0: spin 500ms\n";
    assert_eq!(scripted(other, ""), scripted(other, ",cpufreq.ignore_nice_load=1"));
}

#[test]
fn settings_that_the_governor_or_the_kernel_refuses_are_refused() {
    let dt = fact("driver", "cpufreq-dt");
    let refused = |settings: &str, part: &str| {
        let error = chosen(&dt, "v6.12", settings).expect_err(settings);
        assert!(error.contains(part), "{settings}: {error}");
    };
    refused("governor=conservative down_threshold=80", "down_threshold (80) below up_threshold (80)");
    refused("governor=conservative up_threshold=20", "EINVAL");
    refused("governor=conservative sampling_down_factor=11", "a whole number from 1 to 10");
    refused("governor=conservative powersave_bias=1", "cpufreq.governor=ondemand beside it");
    refused("governor=ondemand freq_step=1", "cpufreq.governor=conservative beside it");
    refused("governor=ondemand sampling_down_factor=0", "a whole number from 1 to 100000");
    refused("governor=conservative io_is_busy=1", "cpufreq.governor=ondemand beside it");
    refused("governor=ondemand io_is_busy=2", "a whole number from 0 to 1");
    refused("governor=conservative ignore_nice_load=yes", "a whole number from 0 to 1");
    refused("governor=schedutil ignore_nice_load=1", "cpufreq.governor=ondemand or conservative beside it");
    let policy = chosen(&dt, "v6.12", "governor=ondemand powersave_bias=4000").expect("the most").expect("governed");
    assert_eq!(policy.powersave_bias, 1_000, "as the kernel takes it");
    let sampling_rate = |settings: &str| {
        let policy = chosen(&dt, "v4.5-rc1", settings).expect("what is less than the least is that").expect("governed");
        policy.sampling_rate_us
    };
    assert_eq!(sampling_rate("governor=ondemand sampling_rate=1"), 10_000);
    assert_eq!(sampling_rate("governor=conservative sampling_rate=1"), 80_000, "twenty jiffies");
    assert_eq!(sampling_rate("governor=conservative"), 80_000);
    for (settings, part) in [
        ("governor=ondemand up_threshold=10", "a whole number from 11 to 100"),
        ("governor=conservative down_threshold=10", "a whole number from 11 to 99"),
    ] {
        let error = chosen(&dt, "v4.5-rc1", settings).expect_err(settings);
        assert!(error.contains(part), "{settings}: {error}");
        assert!(chosen(&dt, "v4.15", settings).is_ok(), "{settings}");
    }
}
