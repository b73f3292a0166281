//! Drivers that cannot switch in the middle of the scheduler, and who asks them.

use super::*;

/// One task on CPU 0 that is busy for a while, and idles.
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

/// When `sugov:0` came to run, and when the clock of CPU 0 had changed, but for what it had when the machine booted.
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
            // The machine's clocks take 20 us, and its driver sleeps as long.
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
    // 20 us are nothing beside a rate limit; this driver takes longer than schedutil waits.
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
