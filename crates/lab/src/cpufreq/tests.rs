mod shipped;
mod threads;
mod words;

use super::*;
use crate::experiment::{Draft, Purpose};
use crate::machines::Machine;
use crate::machines::tests::Table;
use crate::observed::CoreFrequency;
use crate::residency::{RunResidency, frequency_text};
use crate::run::{Run, Wanted, run};
use crate::setup::Setup;
use crate::trace::{Cut, TraceFormat, Wish, trace};
use machine::description::{builtin, parse};
use machine::topology::Location;
use units::CpuId;

/// The eight-CPU machine with made-up figures for frequencies that change, plus these lines.
fn machine_text(lines: &str) -> String {
    let (_, text) = builtin().iter().find(|(name, _)| name.starts_with("skylake")).expect("it ships");
    let figure = |name: &str, value: &str, unit: &str| {
        let rest = "how = \"guess\", source = \"made up\"";
        format!("{name} = {{ value = {value}, unit = \"{unit}\", range = [{value}, {value}], {rest} }}\n")
    };
    let figures = [
        ("step", "100", "MHz"),
        ("transition_latency", "20", "us"),
        ("hold_off", "500", "us"),
        ("declared_latency", "10", "us"),
        ("turbo_exit_latency", "30", "us"),
        ("hwp_window", "4", "ms"),
        ("hwp_ramp", "30", "ms"),
        ("hwp_target", "0.8", "ratio"),
    ];
    let missing = figures.iter().filter(|(name, ..)| !format!("{text}\n{lines}").contains(&format!("\n{name} = ")));
    let figures: String = missing.map(|(name, value, unit)| figure(name, value, unit)).collect();
    let text = text.replacen("[frequency]\n", &format!("[frequency]\n{lines}{figures}"), 1);
    // Any driver will do here.
    let text = text.lines().filter(|line| !line.starts_with("make = ")).collect::<Vec<&str>>().join("\n");
    match OBEYS.with(std::cell::Cell::get) {
        true => text.replacen("control = { value = \"hardware\"", "control = { value = \"core\"", 1),
        false => text,
    }
}

fn fact(name: &str, value: &str) -> String {
    format!("{name} = {{ value = \"{value}\", how = \"guess\", source = \"made up\" }}\n")
}

/// What a kernel makes of settings such as `driver=intel_pstate no_turbo=1`.
fn chosen(lines: &str, kernel: &str, settings: &str) -> Result<Option<Policy>, String> {
    let machine = parse(&machine_text(lines), "m.toml").unwrap_or_else(|error| panic!("{error}"));
    let written =
        |text: &str| Written::option("--arm", if text == "intel_pstate" { command_line::SETTING } else { text });
    let settings: Vec<(Written, Written)> = settings
        .split_whitespace()
        .map(|setting| setting.split_once('=').map(|(name, value)| (written(name), Written::option("--arm", value))))
        .collect::<Option<_>>()
        .expect("name=value");
    let build = Build::named(kernel).expect("a kernel");
    let chosen = choose(&machine, kernel, &build, 250, &settings).map_err(|mistake| mistake.to_string())?;
    Ok(chosen.map(|(_, policy)| policy))
}

fn driver_and_governor(lines: &str, kernel: &str, settings: &str) -> (&'static str, &'static str) {
    let policy = chosen(lines, kernel, settings).unwrap_or_else(|error| panic!("{error}")).expect("governed");
    (policy.driver.name(), policy.governor.name())
}

#[test]
fn the_default_follows_from_machine_and_kernel() {
    assert_eq!(chosen("", "v4.15", ""), Ok(None), "a machine without a driver keeps its one frequency");
    let intel = fact("driver", "intel_pstate");
    assert_eq!(driver_and_governor(&intel, "v4.15", ""), ("intel_pstate", "powersave"));
    let performance = intel.clone() + &fact("governor", "performance");
    assert_eq!(driver_and_governor(&performance, "v6.1", ""), ("intel_pstate", "performance"));
    assert_eq!(driver_and_governor(&performance, "v6.1", "governor=powersave"), ("intel_pstate", "powersave"));
    let amd = fact("driver", "amd-pstate");
    assert_eq!(driver_and_governor(&amd, "v4.15", ""), ("acpi-cpufreq", "ondemand"));
    assert_eq!(driver_and_governor(&amd, "v6.1", ""), ("amd-pstate", "schedutil"));
    assert_eq!(driver_and_governor("", "v4.5-rc1", "driver=acpi-cpufreq"), ("acpi-cpufreq", "ondemand"));
    assert_eq!(driver_and_governor("", "v4.5-rc1", "driver=acpi-cpufreq governor=performance").0, "acpi-cpufreq");
}

#[test]
fn a_driver_is_for_the_processors_that_it_knows() {
    let refused = |machine: &str, kernel: &str, driver: &str| {
        let machine = Machine::named(machine).expect("it ships").description;
        let settings = [(Written::option("--arm", "driver"), Written::option("--arm", driver))];
        let build = Build::named(kernel).expect("a kernel");
        choose(&machine, kernel, &build, 250, &settings).err().map(|mistake| mistake.to_string())
    };
    assert_eq!(
        refused("epyc-9654", "v6.12", "intel_pstate").unwrap(),
        "--arm intel_pstate: found the driver intel_pstate, while the processors of epyc-9654 are amd's; expected one of acpi-cpufreq, \
         amd-pstate, amd-pstate-epp"
    );
    assert!(refused("xeon-gold-6148-2s", "v6.12", "amd-pstate").unwrap().contains("are intel's"));
    assert!(refused("core-i7-3770", "v6.12", "scmi").unwrap().contains("are intel's"));
    assert!(refused("ampere-altra-q80-33-2s", "v6.12", "intel_pstate").unwrap().contains("one of cppc_cpufreq, scmi"));
    assert!(refused("sparc-t4-2", "v6.12", "acpi-cpufreq").unwrap().contains("none of the drivers here is for it"));
    assert_eq!(refused("epyc-9654", "v6.12", "amd-pstate"), None);
    let too_new = refused("epyc-9654", "v4.15", "amd-pstate").unwrap();
    assert!(too_new.ends_with("which v4.15 does not have; expected one of acpi-cpufreq"), "{too_new}");
    let unknown = refused("xeon-gold-6148-2s", "v6.12", "xyzzy").unwrap();
    assert!(unknown.contains("acpi-cpufreq, intel_pstate, intel_cpufreq") && !unknown.contains("amd"), "{unknown}");
    assert!(Driver::ALL.iter().all(|driver| !driver.vendors().is_empty()), "each is for somebody's");
    assert_eq!(refused("kunpeng-920-6426", "v6.12", "cppc_cpufreq"), None);
}

#[test]
fn wrong_settings_are_named() {
    let intel = fact("driver", "intel_pstate");
    let refused = |lines: &str, kernel: &str, settings: &str, message: &str| {
        let error = chosen(lines, kernel, settings).unwrap_err();
        assert!(error.contains(message), "{error}");
    };
    let capped = |cap: &str| {
        let cap = format!(
            "cap = {{ value = {cap}, unit = \"GHz\", range = [{cap}, {cap}], how = \"guess\", source = \"s\" }}\n"
        );
        parse(&machine_text(&cap), "m.toml").unwrap_or_else(|error| panic!("{error}")).fixed_hertz()
    };
    assert_eq!((capped("2"), capped("3.9")), (2_000_000_000, 3_700_000_000), "a cap bounds fixed clocks, too");
    refused("", "v4.15", "governor=performance", "found cpufreq.governor, but the clocks of skylake-uma-8 are fixed");
    refused(&intel, "v4.15", "governr=performance", "the unknown file of cpufreq `governr`; expected `governor`");
    refused(&intel, "v4.15", "governor=perfomance", "the unknown governor `perfomance`; expected `performance`");
    refused(&intel, "v4.15", "governor=userspace", "userspace, which the driver intel_pstate does not work with");
    refused(&intel, "v4.5-rc1", "driver=amd-pstate", "amd-pstate, which v4.5-rc1 does not have");
    // Each policy takes as much of a limit as it can, but until v5.2 the two may not cross, not even the hardware's.
    refused(&intel, "v4.15", "scaling_max_freq=100", "expected a whole number from 800000 to 2147483647");
    refused(&intel, "v4.15", "scaling_min_freq=9000000", "expected a whole number from 0 to 4000000");
    refused(&intel, "v6.1", "scaling_max_freq=2147483648", "expected a whole number from 0 to 2147483647");
    refused(&intel, "v4.15", "scaling_min_freq=3000000 scaling_max_freq=1000000", "a lowest frequency (3000000) up");
    refused(&intel, "v4.15", "boost=0", "found cpufreq.boost under the driver intel_pstate; expected cpufreq.no_turbo");
    refused(&intel, "v4.5-rc1", "energy_performance_preference=power", "which v4.5-rc1 does not have");
    refused(&intel, "v4.15", "energy_performance_preference=balance", "`balance_power`, perhaps");
    refused(&intel, "v6.1", "energy_performance_preference=256", "a whole number from 0 to 255");
    refused(&intel, "v4.15", "scaling_setspeed=1000000", "expected cpufreq.governor=userspace beside it");
    refused(&intel, "v4.5-rc1", "driver=acpi-cpufreq governor=schedutil", "schedutil, which v4.5-rc1 does not have");
    refused(
        &intel,
        "v6.1",
        "driver=acpi-cpufreq up_threshold=90",
        "expected cpufreq.governor=ondemand or conservative",
    );
    refused(
        &intel,
        "v4.15",
        "hwp_dynamic_boost=1",
        "expected intel_pstate on hardware that chooses by itself, in a kernel",
    );
    refused(&intel, "v6.1", "rate_limit_us=90", "found cpufreq.rate_limit_us with the governor powersave");
    refused(
        &intel,
        "v4.15",
        "driver=acpi-cpufreq sampling_rate=7999",
        "cpufreq.sampling_rate = 7999; expected a whole number from 8000",
    );
    for (setting, message) in [
        (
            "default_governor=performance",
            "cpufreq.default_governor, a parameter that is not modelled; expected cpufreq.governor",
        ),
        ("off=1", "cpufreq.off, a parameter that is not modelled; expected a machine whose frequencies are fixed"),
    ] {
        refused(&intel, "v6.1", setting, message);
    }
    let no_boost = "the driver amd-pstate-epp of v6.6, which has no such file; expected a kernel since v6.11";
    refused(&fact("driver", "amd-pstate-epp"), "v6.6", "boost=0", no_boost);
    assert!(chosen(&fact("driver", "amd-pstate-epp"), "v6.12", "boost=0").is_ok());
    refused(&fact("driver", "scmi"), "v4.15", "", "the driver scmi of skylake-uma-8, which v4.15 does not have");
}

#[test]
fn what_is_set_holds() {
    let intel = fact("driver", "intel_pstate");
    let settings = "energy_performance_preference=power no_turbo=1 scaling_min_freq=1_200_000 scaling_max_freq=3000000";
    let policy = chosen(&intel, "v6.12", settings).expect("fine").expect("governed");
    assert_eq!(policy.preference, Preference(255));
    assert_eq!(policy.limits, Limits { min_khz: 1_200_000, max_khz: 3_000_000, turbo: false });
    // What is beyond the hardware is clamped later, in each policy.
    assert!(chosen(&intel, "v4.15", "scaling_min_freq=1 scaling_max_freq=9000000").is_ok());
    assert!(chosen(&intel, "v6.1", "scaling_min_freq=9000000 scaling_max_freq=1000000").is_ok());
    assert!(chosen(&intel, "v6.1", "driver=acpi-cpufreq governor=userspace scaling_setspeed=1").is_ok());
}

#[test]
fn preferences_that_a_kernel_refuses_are_refused() {
    let (intel, amd) = (fact("driver", "intel_pstate"), fact("driver", "amd-pstate-epp"));
    let preference = |lines: &str, kernel: &str, value: &str, more: &str| {
        let settings = format!("energy_performance_preference={value} {more}");
        chosen(lines, kernel, &settings).map(|policy| policy.expect("governed").preference.0)
    };
    for (lines, kernel) in [(&intel, "v6.1"), (&intel, "v6.12"), (&amd, "v6.12")] {
        for value in ["power", "default"] {
            let busy = preference(lines, kernel, value, "governor=performance").unwrap_err();
            let found = format!("_preference = `{value}` with the governor performance, which overrides it (EBUSY)");
            assert!(busy.contains(&found), "{kernel}: {busy}");
        }
        assert_eq!(preference(lines, kernel, "performance", "governor=performance"), Ok(0), "{kernel}");
        assert_eq!(preference(lines, kernel, "power", ""), Ok(255), "{kernel}");
    }
    assert!(preference(&intel, "v6.1", "1", "governor=performance").unwrap_err().contains("(EBUSY)"));
    assert_eq!(preference(&intel, "v6.1", "0", "governor=performance"), Ok(0));
    assert_eq!(preference(&intel, "v6.1", "77", ""), Ok(77));
    // In passive mode the file is there, no policy overrides it, and nothing asks it either.
    assert_eq!(preference(&intel, "v6.1", "power", "driver=intel_cpufreq"), Ok(255));
    assert_eq!(preference(&intel, "v6.1", "power", "driver=intel_cpufreq governor=performance"), Ok(255));
    for (kernel, driver) in [("v4.15", "intel_cpufreq"), ("v6.1", "acpi-cpufreq"), ("v6.1", "amd-pstate")] {
        let absent = preference(&intel, kernel, "power", &format!("driver={driver}")).unwrap_err();
        assert!(absent.contains("where governors choose; expected hardware P-states"), "{absent}");
    }
    // Kernels before v5.10 do not check the governor.
    assert_eq!(preference(&intel, "v4.15", "power", "governor=performance"), Ok(255));
    for (lines, kernel) in [(&intel, "v4.15"), (&intel, "v4.16"), (&amd, "v6.12")] {
        let number = preference(lines, kernel, "77", "").unwrap_err();
        assert!(number.contains("_preference = 77, a number to the driver "), "{kernel}: {number}");
        assert!(number.contains("(EINVAL); expected one of default, performance, "), "{kernel}: {number}");
    }
}

/// Runs a task described by rt-app on that machine with `lines`, under an arm such as `v4.15,cpufreq.no_turbo=1`.
fn run_of(lines: &str, arm: &str, task: &str) -> Run {
    let setup = setup_of(lines, arm, task);
    run(&setup, Wanted::default(), &Location::of("a test")).unwrap().expect("nobody interrupted")
}

fn setup_of(lines: &str, arm: &str, task: &str) -> Setup {
    let app = format!("{{ \"tasks\": {{ \"t\": {{ {task} }} }}, \"global\": {{ \"duration\": -1 }} }}");
    let files = Table(BTreeMap::from([("m.toml", machine_text(lines)), ("app.json", app)]));
    let mut draft = Draft::default();
    draft.machine_option("m.toml");
    draft.workload_option("rt-app:file=app.json").unwrap();
    draft.arm_options(&[arm.to_string()], true).unwrap();
    let experiment = draft.resolve(Purpose::Single, &files).unwrap_or_else(|mistake| panic!("{mistake}"));
    experiment.setup(&experiment.jobs()[0])
}

fn core(run: &Run, cpu: u16) -> &CoreFrequency {
    run.hardware.frequencies.iter().find(|core| core.cpu == CpuId(cpu)).expect("a core")
}

/// The milliseconds of a run, whose task has 20 ms of work at 4 GHz on CPU 0.
fn work(lines: &str, arm: &str) -> (f64, Run) {
    let run = run_of(lines, arm, "\"cpus\": [0], \"loop\": 1, \"run\": 20000");
    ((run.outcome.simulated_ns - run.start.0) as f64 / 1e6, run)
}

#[test]
fn work_done_is_work_asked_at_every_frequency() {
    let intel = fact("driver", "intel_pstate");
    for (arm, longest) in [
        ("v4.15", 36.5),
        ("v4.15,cpufreq.governor=performance", 21.0),
        ("v6.12,cpufreq.governor=performance,cpufreq.no_turbo=1", 24.5),
        ("v6.1,cpufreq.driver=acpi-cpufreq,cpufreq.governor=powersave", 103.0),
        ("v4.5-rc1,cpufreq.driver=acpi-cpufreq,cpufreq.governor=userspace,cpufreq.scaling_setspeed=2000000", 41.5),
        ("v6.12,cpufreq.energy_performance_preference=performance", 22.0),
    ] {
        let (time, run) = work(&intel, arm);
        assert!(time < longest && time > longest * 0.9, "{arm}: {time} ms");
        // 80 million cycles, plus the kernel's share.
        let cycles = core(&run, 0).counters.cycles;
        assert!((80_000_000..84_000_000).contains(&cycles), "{arm}: {cycles} cycles");
        for core in &run.hardware.frequencies {
            let sum: u64 = core.time.iter().map(|entry| entry.1.0).sum();
            assert_eq!(sum / 1_000, run.outcome.simulated_ns, "{arm}: frequencies of core {} sum up", core.cpu);
            assert_eq!(core.executed.whole(), core.counters.unhalted, "{arm}: core {} executed", core.cpu);
        }
    }
}

#[test]
fn shares_of_frequencies_are_of_the_time_that_was_executed() {
    // The clock ramps up to the highest frequency, and shows it while all tasks sleep.
    let lines = fact("driver", "intel_pstate");
    let run = run_of(&lines, "v6.12", "\"cpus\": [0], \"loop\": 2, \"run\": 60000, \"sleep\": 500000");
    let machine = parse(&machine_text(&lines), "m.toml").unwrap_or_else(|error| panic!("{error}"));
    let text = frequency_text(&run.hardware.frequencies, &machine, true);
    let numbers = |line: &str| -> Vec<f64> {
        line.split_whitespace().map(|word| if word == "-" { 0.0 } else { word.parse().unwrap_or(f64::NAN) }).collect()
    };
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
    let (head, _) = line("CPUs").split_once("  (MHz, % of the time that it executed)").expect("what it is");
    // CPUs, busy MHz, changes; CPUs "0,4", busy MHz, changes.
    let (mhz, row) = (&numbers(head)[4..], numbers(line("0,4")));
    let mean: f64 = mhz.iter().zip(&row[3..]).map(|(mhz, share)| mhz * share / 100.0).sum();
    assert!((mean - row[1]).abs() < row[1] / 100.0, "{mean} MHz by shares, {} by counters\n{text}", row[1]);
    let at = |time: &machine::frequency::FrequencyTime| time.at(4_000_000).0 * 100 / time.whole().0;
    let core = core(&run, 0);
    assert!(at(&core.executed) + 10 < at(&core.time), "{} and {}", at(&core.executed), at(&core.time));
}

#[test]
fn a_steady_clock_shows_its_frequency_to_the_kilohertz() {
    let arm = "v6.12,cpufreq.driver=acpi-cpufreq,cpufreq.governor=powersave";
    let setup =
        setup_of(&fact("driver", "intel_pstate"), arm, "\"cpus\": [0], \"loop\": 3, \"run\": 33, \"sleep\": 777");
    let run = run(&setup, Wanted::default(), &Location::of("a test")).unwrap().expect("nobody interrupted");
    let machine = parse(&machine_text(&fact("driver", "intel_pstate")), "m.toml").unwrap();
    let residency = RunResidency::of(String::new(), &setup, &machine, &run);
    assert!(!residency.cores.is_empty());
    for core in &residency.cores {
        assert!([0, 800_000].contains(&core.busy_khz), "{core:?}");
        let executed: u64 = core.frequencies.iter().filter_map(|at| at.executed_ns).sum();
        assert!(core.frequencies.iter().all(|at| at.executed_ns.is_some()) && (executed == 0) == (core.busy_khz == 0));
    }
}

#[test]
fn a_machine_without_a_driver_runs_as_ever_and_shows_no_frequencies() {
    let (time, run) = work("", "v4.15");
    assert!(time < 20.5 && run.hardware.frequencies.is_empty(), "{time} ms");
}

#[test]
fn hardware_that_chooses_by_itself_ramps_where_a_task_stays_and_leaves_idle_cores_alone() {
    let (_, run) = work(&fact("driver", "intel_pstate"), "v4.15");
    let busy = core(&run, 0);
    assert!(busy.time.changes() >= 7, "{} changes", busy.time.changes());
    assert_eq!(busy.time.iter().last().map(|entry| entry.0), Some(4_000_000));
    for cpu in 1..4 {
        // A core runs at the lowest frequency, where the driver starts, or, if anything ran there, where the hardware
        // works most efficiently.
        assert!(core(&run, cpu).time.iter().all(|(khz, _)| khz <= 1_100_000), "core {cpu}");
    }
}

/// The percentage of its time that core 0 spent at each frequency in MHz. A task on CPU 0 has work for `work_us` at the
/// highest frequency in each `period_us`.
fn duty(lines: &str, arm: &str, (work_us, period_us): (u64, u64)) -> Vec<(u32, f64)> {
    let count = 1_200_000 / period_us;
    let timer = format!("\"timer\": {{ \"ref\": \"t\", \"period\": {period_us} }}");
    let run = run_of(lines, arm, &format!("\"cpus\": [0], \"loop\": {count}, \"run\": {work_us}, {timer}"));
    let whole = run.outcome.simulated_ns as f64 * 1e3;
    core(&run, 0).time.iter().map(|(khz, time)| (khz / 1_000, time.0 as f64 * 100.0 / whole)).collect()
}

/// The average frequency of core 0 over the run, in MHz.
fn average(lines: &str, arm: &str, work: (u64, u64)) -> u32 {
    let shares = duty(lines, arm, work);
    shares.iter().map(|(mhz, share)| f64::from(*mhz) * share / 100.0).sum::<f64>() as u32
}

/// The machine with hardware that does not choose its own frequency: 0.8 to 3.4 GHz, turbo up to 4.0.
fn obeying() -> String {
    fact("driver", "intel_pstate")
}

fn obeying_run(arm: &str, work: (u64, u64)) -> u32 {
    OBEYS.with(|obeys| obeys.set(true));
    let mhz = average(&obeying(), arm, work);
    OBEYS.with(|obeys| obeys.set(false));
    mhz
}

thread_local! {
    /// Whether machines have cores whose clocks obey, instead of hardware that chooses.
    static OBEYS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[test]
fn schedutil_runs_a_quarter_faster_than_what_is_used() {
    // Half of the highest frequency's work, in periods far shorter than the averages' decay: 1.25 * 0.5 * 4.0 GHz. Full
    // speed is that of four active cores, 3.7 GHz, so a little more counts as used.
    for kernel in ["v6.1", "v6.12"] {
        let arm = format!("{kernel},cpufreq.driver=intel_cpufreq,cpufreq.governor=schedutil");
        let found = obeying_run(&arm, (1_000, 2_000));
        assert!((2_400..3_100).contains(&found), "{arm}: {found} MHz");
    }
    // Utilization is not frequency-invariant here, but relative to the current frequency. Above four fifths of that,
    // the clock goes up at once, before the average has settled.
    let arm = "v4.15,cpufreq.driver=intel_cpufreq,cpufreq.governor=schedutil";
    let found = obeying_run(arm, (1_000, 2_000));
    assert!((2_400..=4_000).contains(&found), "v4.15: {found} MHz");
    for kernel in ["v4.15", "v4.16", "v6.1", "v6.12"] {
        let arm = format!("{kernel},cpufreq.driver=acpi-cpufreq,cpufreq.governor=schedutil");
        let busy = obeying_run(&arm, (100_000, 100_000));
        assert!(busy > 3_600, "{arm}, busy all the time: {busy} MHz");
        // The periods are long enough for the tick to stop. A CPU that keeps its tick has not idled, as schedutil sees
        // it.
        let idle = obeying_run(&arm, (200, 20_000));
        assert!(idle < 1_200, "{arm}, almost idle: {idle} MHz");
    }
}

#[test]
fn schedutil_keeps_its_rate_limit() {
    OBEYS.with(|obeys| obeys.set(true));
    let task = "\"cpus\": [0], \"loop\": 100, \"run\": 2000, \"sleep\": 6000";
    let changes = |limit: &str| {
        let arm = format!("v6.1,cpufreq.driver=intel_cpufreq,cpufreq.governor=schedutil,cpufreq.rate_limit_us={limit}");
        let run = run_of(&obeying(), &arm, task);
        (core(&run, 0).time.changes(), run.outcome.simulated_ns / 1_000)
    };
    let (slow, us) = changes("20000");
    assert!(slow > 3 && slow <= us / 20_000 + 1, "{slow} changes in {us} us");
    let (fast, _) = changes("500");
    assert!(fast > slow, "{fast} changes, {slow} where 20 ms lie between two");
    OBEYS.with(|obeys| obeys.set(false));
}

#[test]
fn ondemand_goes_to_the_highest_above_its_threshold_and_follows_load_below() {
    let arm = |kernel: &str| format!("{kernel},cpufreq.driver=acpi-cpufreq,cpufreq.governor=ondemand");
    for kernel in ["v4.5-rc1", "v4.15", "v6.12"] {
        // The table's last entry is turbo. Going there takes two samples, and the first is late, because its kworker is
        // a new task.
        let found = obeying_run(&arm(kernel), (100_000, 100_000));
        assert!(found > 3_850, "{kernel}, busy all the time: {found} MHz");
    }
    for kernel in ["v4.15", "v6.12"] {
        // A fifth of the highest frequency's work: 800 + 26 * load is 80000 / load at a load of 42%, 1.9 GHz.
        let found = obeying_run(&arm(kernel), (400, 2_000));
        assert!((1_600..=2_200).contains(&found), "{kernel}: {found} MHz");
    }
}

#[test]
fn intel_pstate_follows_the_busy_share_and_its_controller_does_not_see_idle_time() {
    for arm in ["v4.15", "v6.1", "v6.12"] {
        let found = obeying_run(arm, (100_000, 100_000));
        assert!(found > 3_800, "{arm}, busy all the time: {found} MHz");
        // 1.25 * 4000 * busy, where busy is 0.3 * 4000 / f: f = 2450; and half of what it was above that.
        let found = obeying_run(arm, (600, 2_000));
        assert!((2_200..=2_900).contains(&found), "{arm}: {found} MHz");
    }
    // The controller of v4.5 compares the performance delivered while executing with what it asked for. So short sleeps
    // do not lower the clock, and each sample is 3% above its setpoint, which moves it one P-state up. Its timer needs
    // ticks, so the period must not miss them for ever.
    let found = obeying_run("v4.5-rc1", (950, 1_900));
    assert!(found > 3_000, "{found} MHz");
}

#[test]
fn conservative_climbs_in_steps() {
    OBEYS.with(|obeys| obeys.set(true));
    let arm = "v4.15,cpufreq.driver=acpi-cpufreq,cpufreq.governor=conservative";
    let run = run_of(&obeying(), arm, "\"cpus\": [0], \"loop\": 1, \"run\": 400000");
    OBEYS.with(|obeys| obeys.set(false));
    let busy = core(&run, 0);
    // Steps of 5% of 3.401 GHz, rounded down to multiples of 100 MHz: one after the other from 0.8 to 3.4.
    let seen: Vec<u32> = busy.time.iter().map(|entry| entry.0 / 1_000).collect();
    assert!(seen.len() > 14 && seen.first() == Some(&800) && seen.last() == Some(&4_000), "{seen:?}");
}

#[test]
fn every_change_of_a_clock_is_traced() {
    let setup = setup_of(&fact("driver", "intel_pstate"), "v4.15", "\"cpus\": [0], \"loop\": 1, \"run\": 20000");
    let wish = Wish { format: TraceFormat::Ftrace, cut: Cut { from: None, to: None }, columns: 80, events: None };
    let (text, run, ..) = trace(&setup, wish, Vec::new(), &|| false).unwrap().expect("nobody interrupted");
    let text = String::from_utf8(text).expect("ftrace is text");
    let lines: Vec<&str> =
        text.lines().filter(|line| line.contains("cpu_frequency:") && line.ends_with("cpu_id=0")).collect();
    // The first line gives the frequency at boot.
    assert_eq!(lines.len() as u64, core(&run, 0).time.changes() + 1, "{lines:?}");
    assert!(
        lines[0].contains("state=800000 ") && lines.iter().any(|line| line.contains("state=4000000 ")),
        "{lines:?}"
    );
}
