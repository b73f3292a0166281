use super::*;
use crate::experiment::{Draft, Purpose};
use crate::machines::tests::Table;
use crate::run::{CoreFrequency, Run, Wanted, run};
use machine::description::{builtin, parse};
use machine::topology::Location;
use units::CpuId;

/// The eight-CPU machine with figures, made up, for frequencies that change; and these lines.
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
    let missing = figures.iter().filter(|(name, ..)| !text.contains(&format!("\n{name} = ")));
    let figures: String = missing.map(|(name, value, unit)| figure(name, value, unit)).collect();
    text.replacen("[frequency]\n", &format!("[frequency]\n{lines}{figures}"), 1)
}

fn fact(name: &str, value: &str) -> String {
    format!("{name} = {{ value = \"{value}\", how = \"guess\", source = \"made up\" }}\n")
}

/// What comes of a kernel and settings such as `driver=intel_pstate no_turbo=1`.
fn chosen(lines: &str, kernel: &str, settings: &str) -> Result<Option<Policy>, String> {
    let machine = parse(&machine_text(lines), "m.toml").unwrap_or_else(|error| panic!("{error}"));
    let written = |text: &str| Written::option("--arm", text);
    let settings: Vec<(Written, Written)> = settings
        .split_whitespace()
        .map(|setting| setting.split_once('=').map(|(name, value)| (written(name), written(value))))
        .collect::<Option<_>>()
        .expect("name=value");
    let build = Build::named(kernel).expect("a kernel");
    let chosen = choose(&machine, kernel, &build, &settings).map_err(|mistake| mistake.to_string())?;
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
    assert_eq!(driver_and_governor(&amd, "v4.15", "governor=powersave"), ("acpi-cpufreq", "powersave"));
    assert_eq!(driver_and_governor("", "v4.5-rc1", "driver=acpi-cpufreq governor=performance").0, "acpi-cpufreq");
}

#[test]
fn wrong_settings_are_named() {
    let intel = fact("driver", "intel_pstate");
    let refused = |lines: &str, kernel: &str, settings: &str, message: &str| {
        let error = chosen(lines, kernel, settings).unwrap_err();
        assert!(error.contains(message), "{error}");
    };
    refused("", "v4.15", "governor=performance", "found cpufreq.governor, but all CPUs of skylake-uma-8 run at one");
    refused(&intel, "v4.15", "governr=performance", "the unknown file of cpufreq `governr`; expected `governor`");
    refused(&intel, "v4.15", "governor=perfomance", "the unknown governor `perfomance`; expected `performance`");
    refused(&intel, "v4.15", "governor=userspace", "userspace, which the driver intel_pstate does not work with");
    refused(&intel, "v4.5-rc1", "driver=amd-pstate", "amd-pstate, which v4.5-rc1 does not have");
    refused(&intel, "v4.15", "scaling_max_freq=9000000", "expected a whole number from 800000 to 4000000");
    refused(&intel, "v4.15", "scaling_min_freq=3000000 scaling_max_freq=1000000", "a lowest frequency (3000000) up");
    refused(&intel, "v4.15", "boost=0", "found cpufreq.boost under the driver intel_pstate; expected cpufreq.no_turbo");
    refused(&intel, "v4.5-rc1", "energy_performance_preference=power", "which v4.5-rc1 does not have");
    refused(&intel, "v4.15", "energy_performance_preference=balance", "`balance_power`, perhaps");
    refused(&intel, "v4.15", "energy_performance_preference=256", "a whole number from 0 to 255");
    refused(&intel, "v4.15", "scaling_setspeed=1000000", "expected cpufreq.governor=userspace beside it");
    refused(&fact("driver", "scmi"), "v4.15", "", "the driver scmi of skylake-uma-8, which v4.15 does not have");
}

#[test]
fn what_is_set_holds() {
    let intel = fact("driver", "intel_pstate");
    let settings = "energy_performance_preference=power no_turbo=1 scaling_min_freq=1_200_000 scaling_max_freq=3000000";
    let policy = chosen(&intel, "v6.12", settings).expect("fine").expect("governed");
    assert_eq!(policy.preference, Preference(255));
    assert_eq!(policy.limits, Limits { min_khz: 1_200_000, max_khz: 3_000_000, turbo: false });
}

/// A run of a task that rt-app describes, on that machine with `lines`, by an arm such as `v4.15,cpufreq.no_turbo=1`.
fn run_of(lines: &str, arm: &str, task: &str) -> Run {
    let app = format!("{{ \"tasks\": {{ \"t\": {{ {task} }} }}, \"global\": {{ \"duration\": -1 }} }}");
    let files = Table(BTreeMap::from([("m.toml", machine_text(lines)), ("app.json", app)]));
    let mut draft = Draft::default();
    draft.machine_option("m.toml");
    draft.workload_option("rt-app:file=app.json").unwrap();
    draft.arm_options(&[arm.to_string()], true).unwrap();
    let experiment = draft.resolve(Purpose::Single, &files).unwrap_or_else(|mistake| panic!("{mistake}"));
    let setup = experiment.setup(&experiment.jobs()[0]);
    run(&setup, Wanted::default(), &Location::of("a test")).unwrap().expect("nobody interrupted")
}

fn core(run: &Run, cpu: u16) -> &CoreFrequency {
    run.hardware.frequencies.iter().find(|core| core.cpu == CpuId(cpu)).expect("a core")
}

/// Milliseconds of a run, whose task has 20 ms of work at 4 GHz on CPU 0.
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
        ("v6.12,cpufreq.energy_performance_preference=performance", 24.0),
    ] {
        let (time, run) = work(&intel, arm);
        assert!(time < longest && time > longest * 0.9, "{arm}: {time} ms");
        // 80 million cycles, and what the kernel took for its part.
        let cycles = core(&run, 0).counters.cycles;
        assert!((80_000_000..84_000_000).contains(&cycles), "{arm}: {cycles} cycles");
        for core in &run.hardware.frequencies {
            let sum: u64 = core.time.iter().map(|entry| entry.1.0).sum();
            assert_eq!(sum / 1_000, run.outcome.simulated_ns, "{arm}: frequencies of core {} sum up", core.cpu);
        }
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
        assert_eq!(core(&run, cpu).time.iter().map(|entry| entry.0).collect::<Vec<_>>(), [800_000]);
    }
}
