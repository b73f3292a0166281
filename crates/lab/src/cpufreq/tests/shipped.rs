//! Fixed duty cycles on machines that ship, under the usual drivers of AMD and ARM processors.

use super::*;
use units::Ps;

/// A run of a task on CPU `cpu` that has work for `percent` of each 2 ms at the highest frequency.
fn duty_on(machine: &str, arm: &str, cpu: u16, percent: u64) -> Run {
    duty_every(2_000, machine, arm, cpu, percent)
}

/// The same in periods of `period` microseconds.
fn duty_every(period: u64, machine: &str, arm: &str, cpu: u16, percent: u64) -> Run {
    let timer = format!("\"timer\": {{ \"ref\": \"t\", \"period\": {period} }}");
    let (loops, run_us) = (1_000_000 / period, percent * period / 100);
    let task = format!("\"cpus\": [{cpu}], \"loop\": {loops}, \"run\": {run_us}, {timer}");
    let app = format!("{{ \"tasks\": {{ \"t\": {{ {task} }} }}, \"global\": {{ \"duration\": -1 }} }}");
    let files = Table(BTreeMap::from([("app.json", app)]));
    let mut draft = Draft::default();
    draft.machine_option(machine);
    draft.workload_option("rt-app:file=app.json").unwrap();
    draft.arm_options(&[arm.to_string()], true).unwrap();
    let experiment = draft.resolve(Purpose::Single, &files).unwrap_or_else(|mistake| panic!("{mistake}"));
    let setup = experiment.setup(&experiment.jobs()[0]);
    run(&setup, Wanted::default(), &Location::of("a test")).unwrap().expect("nobody interrupted")
}

/// The average frequency of CPU `cpu`, in MHz.
pub(super) fn average_on(machine: &str, arm: &str, cpu: u16, percent: u64) -> u32 {
    // To schedutil, a CPU has not idled if its tick goes on, and through two milliseconds it does. So small loads get
    // longer periods.
    let period = if machine.starts_with("epyc") && percent <= 10 { 20_000 } else { 2_000 };
    let run = duty_every(period, machine, arm, cpu, percent);
    let (cycles, time) = core(&run, cpu).time.iter().fold((0, 0), |(cycles, sum), (khz, time)| {
        (cycles + u128::from(khz) * u128::from(time.0), sum + u128::from(time.0))
    });
    (cycles / time / 1_000) as u32
}

/// Within 7%: the run begins before the averages have settled.
fn comes_to(machine: &str, arm: &str, (cpu, percent): (u16, u64), expected_mhz: u32) {
    let found = average_on(machine, arm, cpu, percent);
    let off = found.abs_diff(expected_mhz);
    assert!(off * 100 <= expected_mhz * 7, "{machine}, {arm}, {percent}%: {found} MHz for {expected_mhz}");
}

#[test]
fn amds_drivers_run_as_fast_as_their_governors_rules_say() {
    let epyc = |arm: &str, percent, expected| comes_to("epyc-7763-2s-nps1", arm, (0, percent), expected);
    for kernel in ["v6.1", "v6.12"] {
        let schedutil = format!("{kernel},cpufreq.driver=amd-pstate,cpufreq.governor=schedutil");
        // 1.25 times what is used, 0.5 * 3500, as a share of full speed, halfway between 2450 and 3500, of 3500.
        epyc(&schedutil, 50, 2_574);
        epyc(&schedutil, 10, 1_500);
        epyc(&schedutil, 95, 3_500);
    }
    epyc("v6.12,cpufreq.driver=amd-pstate,cpufreq.governor=performance", 50, 3_500);
    epyc("v6.12,cpufreq.driver=amd-pstate,cpufreq.governor=powersave", 50, 1_500);
    // The marked frequencies are 1500 to 2450: 1500 + 950 * load, where load is 1750 of that.
    epyc("v4.15,cpufreq.driver=acpi-cpufreq,cpufreq.governor=ondemand", 50, 2_242);
    // The hardware chooses here, although under other drivers it obeys: busy for 0.8 of the time is 2188.
    epyc("v6.12,cpufreq.driver=amd-pstate-epp", 50, 2_188);
}

#[test]
fn arms_drivers_run_as_fast_as_their_governors_rules_say() {
    let altra = |governor: &str, percent, expected| {
        let arm = format!("v6.12,cpufreq.driver=cppc_cpufreq,cpufreq.governor={governor}");
        comes_to("ampere-altra-q80-33-2s", &arm, (0, percent), expected);
    };
    altra("schedutil", 50, 2_063);
    altra("schedutil", 10, 1_000);
    altra("schedutil", 95, 3_300);
    altra("performance", 10, 3_300);
    // 1000 + 2300 * load, where load is 1650 of that.
    altra("ondemand", 50, 2_511);
}

/// For the phone: the frequencies, in MHz, at which CPU `cpu` spent more than a quarter of the run. The run begins at
/// the lowest frequency and has to catch up.
fn clock_of(arm: &str, cpu: u16, percent: u64) -> Vec<u32> {
    let run = duty_on("snapdragon-845", arm, cpu, percent);
    let most = |time: Ps| time.0 * 4 > run.outcome.simulated_ns * 1_000;
    core(&run, cpu).time.iter().filter(|(_, time)| most(*time)).map(|(khz, _)| khz / 1_000).collect()
}

#[test]
fn schedutil_chooses_an_operating_point_of_each_kind() {
    for kernel in ["v6.1", "v6.12"] {
        let arm = format!("{kernel},cpufreq.driver=scmi,cpufreq.governor=schedutil");
        // Big cores: 1.25 times what is used, of 2803.2 MHz, rounded up to the next operating point. Above 1286.4 MHz
        // there is a faster one that costs no more.
        assert_eq!(clock_of(&arm, 4, 25), [1_689], "876 MHz are wanted");
        assert_eq!(clock_of(&arm, 4, 55), [2_092], "1927 MHz");
        assert_eq!(clock_of(&arm, 4, 95), [2_803]);
        // Little cores: what is used is relative to a capacity of 385 of 1024, which is 1766.4 MHz.
        assert_eq!(clock_of(&arm, 1, 10), [902], "587 MHz, below which nothing is efficient");
        assert_eq!(clock_of(&arm, 1, 17), [1_228], "997 MHz");
        assert_eq!(clock_of(&arm, 1, 30), [1_766], "1516.8 MHz are not efficient");
    }
}

#[test]
fn a_kinds_clock_only_ever_shows_its_own_operating_points() {
    let little = [300, 576, 902, 1_228, 1_516, 1_766];
    let big = [825, 1_286, 1_689, 2_092, 2_400, 2_803];
    for governor in ["schedutil", "ondemand", "conservative", "powersave", "userspace", "performance"] {
        let arm = format!("v6.12,cpufreq.driver=scmi,cpufreq.governor={governor}");
        let mut seen = Vec::new();
        for (cpu, percent, points) in [(1, 12, little), (4, 60, big)] {
            let run = duty_on("snapdragon-845", &arm, cpu, percent);
            for core in &run.hardware.frequencies {
                let points = if core.cpu.0 < 4 { little } else { big };
                let other = core.time.iter().find(|(khz, _)| !points.contains(&(khz / 1_000)));
                assert_eq!(other, None, "{governor}, CPU {}", core.cpu);
            }
            seen.extend(core(&run, cpu).time.iter().map(|(khz, _)| khz / 1_000).filter(|khz| points.contains(khz)));
        }
        let moves = matches!(governor, "schedutil" | "ondemand" | "conservative");
        assert!(if moves { seen.len() > 3 } else { seen.len() == 2 }, "{governor}: {seen:?}");
    }
}

#[test]
fn limits_of_an_arm_hold_in_every_policy() {
    let run = |limits: &str| {
        let arm = format!("v6.12,cpufreq.driver=scmi,cpufreq.governor=schedutil,{limits}");
        let run = duty_on("snapdragon-845", &arm, 4, 60);
        [1, 4].map(|cpu| core(&run, cpu).time.iter().map(|(khz, _)| khz / 1_000).collect::<Vec<_>>())
    };
    let [little, big] = run("cpufreq.scaling_min_freq=2000000");
    assert!(little == [1_766] && big.first() == Some(&2_092), "{little:?}, {big:?}");
    let [little, big] = run("cpufreq.scaling_max_freq=1300000");
    assert!(little.iter().all(|mhz| *mhz <= 1_228), "{little:?}");
    assert_eq!(big, [825, 1_286], "{big:?}");
}

#[test]
fn intels_hardware_chooses_where_the_machine_has_such_and_the_driver_lets_it() {
    // Busy for half of the time is 1520: 0.2 * 3800 / 0.5.
    comes_to("xeon-platinum-8480-2s", "v6.12,cpufreq.driver=intel_pstate", (0, 20), 1_520);
    comes_to("xeon-platinum-8480-2s", "v6.12,cpufreq.driver=intel_pstate,cpufreq.governor=performance", (0, 20), 3_800);
    // 1.25 * 0.5 * 3800, up to the next 100 MHz: full speed is four cores' turbo, 3800 here.
    comes_to("xeon-platinum-8480-2s", "v6.12,cpufreq.driver=intel_cpufreq,cpufreq.governor=schedutil", (0, 50), 2_425);
}

#[test]
fn clocks_of_smaller_cores_show_their_own_frequencies() {
    let performance = |driver: &str| format!("v6.12,cpufreq.driver={driver},cpufreq.governor=performance");
    comes_to("core-i9-12900k", &performance("intel_pstate"), (0, 50), 5_200);
    comes_to("core-i9-12900k", &performance("intel_pstate"), (20, 50), 3_900);
    comes_to("snapdragon-845", &performance("scmi"), (1, 20), 1_766);
}

#[test]
fn a_trace_without_a_driver_shows_each_kinds_own_frequency() {
    let files = Table(BTreeMap::new());
    let mut draft = Draft::default();
    draft.machine_option("core-i9-12900k");
    draft.workload_option("pipetest:batches=1,loops=1").unwrap();
    draft.arm_options(&["v6.12".to_string()], true).unwrap();
    let experiment = draft.resolve(Purpose::Single, &files).unwrap_or_else(|mistake| panic!("{mistake}"));
    let setup = experiment.setup(&experiment.jobs()[0]);
    let wish = Wish { format: TraceFormat::Ftrace, cut: Cut { from: None, to: None }, columns: 80, events: None };
    let (text, ..) = trace(&setup, wish, Vec::new(), &|| false).unwrap().expect("nobody interrupted");
    let text = String::from_utf8(text).expect("ftrace is text");
    let shown = |cpu: &str| {
        let mut lines = text.lines().filter(|line| line.contains("cpu_frequency:"));
        lines.find_map(|line| line.strip_suffix(cpu)?.rsplit_once("state=").map(|(_, khz)| khz.to_string()))
    };
    // All CPUs are simulated at 4.9 GHz, of 5.2; of an E-core's 3.9 GHz that is the same share.
    assert_eq!(shown(" cpu_id=0").as_deref(), Some("4900000"));
    assert_eq!(shown(" cpu_id=20").as_deref(), Some("3675000"));
}

/// Four tasks that fetch more than memory delivers wait for it, whether or not their clocks were slow when they began.
#[test]
fn what_memory_delivers_does_not_depend_on_the_clock_that_work_began_at() {
    let time = |governor: &str| {
        let tasks = "task h count=4 cpus=0-3 lines=150 set=128MB: work 50ms".to_string();
        let files = Table(BTreeMap::from([("tasks.txt", tasks)]));
        let mut draft = Draft::default();
        draft.machine_option("core-i7-3770");
        draft.workload_option("script:file=tasks.txt").unwrap();
        let arm = format!("v6.1,cpufreq.driver=acpi-cpufreq,cpufreq.governor={governor}");
        draft.arm_options(&[arm], true).unwrap();
        let experiment = draft.resolve(Purpose::Single, &files).unwrap_or_else(|mistake| panic!("{mistake}"));
        let setup = experiment.setup(&experiment.jobs()[0]);
        let run = run(&setup, Wanted::default(), &Location::of("a test")).unwrap().expect("nobody interrupted");
        run.outcome.simulated_ns - run.start.0
    };
    let (fast, slow) = (time("performance"), time("schedutil"));
    assert!(fast.abs_diff(slow) * 100 <= fast, "{fast} and {slow} ns");
}

#[test]
fn preferences_above_the_middle_count_on_every_machine_that_has_them() {
    for (machine, driver) in [
        ("epyc-7763-2s-nps1", "amd-pstate-epp"),
        ("epyc-9654", "amd-pstate-epp"),
        ("xeon-gold-6148-2s", "intel_pstate"),
        ("xeon-platinum-8375c-2s", "intel_pstate"),
        ("xeon-platinum-8480-2s", "intel_pstate"),
        ("core-i9-12900k", "intel_pstate"),
    ] {
        let busy = |preference: &str| {
            let arm = format!("v6.12,cpufreq.driver={driver},cpufreq.energy_performance_preference={preference}");
            // The core is busy for many windows, then idle for some: no single window shows how busy it is.
            let run = duty_every(10_000, machine, &arm, 0, 60);
            let executed = &core(&run, 0).executed;
            let sum: u64 = executed.iter().map(|(khz, time)| u64::from(khz / 1_000) * time.ns().0).sum();
            sum / executed.whole().ns().0
        };
        let (middle, power) = (busy("default"), busy("power"));
        assert!(power * 21 < middle * 20, "{machine}: {power} MHz at `power`, {middle} in the middle");
    }
}
