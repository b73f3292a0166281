//! `intel_pstate=` on an arm's command line.

use super::*;

/// The driver that a value leads to, and whether the hardware chooses.
fn booted(kernel: &str, value: &str) -> Result<(&'static str, bool), String> {
    let policy = chosen("", kernel, &format!("intel_pstate={value}")).map(|policy| policy.expect("governed"))?;
    Ok((policy.driver.name(), policy.hardware))
}

#[test]
fn words_of_the_command_line_choose_driver_and_hardware() {
    for (kernel, value, expected) in [
        ("v4.5-rc1", "no_hwp", ("intel_pstate", false)),
        ("v4.5-rc1", "disable", ("acpi-cpufreq", false)),
        ("v4.16", "no_hwp", ("intel_pstate", false)),
        // In v4.16, passive mode has no hardware P-states.
        ("v4.16", "passive", ("intel_cpufreq", false)),
        ("v6.1", "active", ("intel_pstate", true)),
        ("v6.1", "passive", ("intel_cpufreq", true)),
        // In v6.1, the driver starts in passive mode without hardware P-states.
        ("v6.1", "no_hwp", ("intel_cpufreq", false)),
        ("v6.12", "no_hwp+active", ("intel_pstate", false)),
        ("v6.12", "passive+no_hwp", ("intel_cpufreq", false)),
        ("v6.12", "active+passive", ("intel_cpufreq", true)),
        ("v6.12", "active+disable", ("acpi-cpufreq", false)),
        ("v6.12", "force+support_acpi_ppc+per_cpu_perf_limits+active", ("intel_pstate", true)),
        ("v4.5-rc1", "hwp_only", ("intel_pstate", true)),
        ("v4.16", "hwp_only+no_hwp", ("acpi-cpufreq", false)),
    ] {
        assert_eq!(booted(kernel, value), Ok(expected), "{kernel}, intel_pstate={value}");
    }
}

#[test]
fn words_that_do_nothing_are_refused() {
    for (kernel, value, message) in [
        (
            "v4.5-rc1",
            "passive",
            "found intel_pstate=passive, which v4.5-rc1 does not have; expected one of disable, no_hwp",
        ),
        ("v4.16", "active", "which v4.16 does not have; expected one of disable, no_hwp, passive"),
        ("v6.12", "no-hwp", "the unknown value of intel_pstate `no-hwp`; expected `no_hwp`, perhaps"),
        ("v6.12", "no_hwp+", "the unknown value of intel_pstate"),
    ] {
        let error = booted(kernel, value).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let both = chosen("", "v6.12", "intel_pstate=active driver=intel_pstate").unwrap_err();
    assert!(both.contains("cpufreq.driver = `intel_pstate` beside intel_pstate=active, which says it"), "{both}");
    let hardware = chosen("", "v6.12", "intel_pstate=no_hwp+active hwp_dynamic_boost=1").unwrap_err();
    assert!(hardware.contains("expected intel_pstate on hardware that chooses by itself"), "{hardware}");
    let preference = chosen("", "v6.12", "intel_pstate=no_hwp+active energy_performance_preference=power").unwrap_err();
    assert!(preference.contains("under the driver intel_pstate, where the driver itself chooses"), "{preference}");
}

/// The setup of an arm on a machine that ships.
fn arm_on(machine: &str, arm: &str) -> Result<Setup, String> {
    let mut draft = Draft::default();
    draft.machine_option(machine);
    draft.workload_option("pipetest").unwrap();
    draft.arm_options(&[arm.to_string()], true).unwrap();
    let experiment = draft.resolve(Purpose::Single, &Table(BTreeMap::new())).map_err(|mistake| mistake.to_string())?;
    Ok(experiment.setup(&experiment.jobs()[0]))
}

#[test]
fn an_arm_says_it_as_a_parameter_where_the_processors_are_intels() {
    let setup =
        arm_on("xeon-gold-6148-2s", "v6.12,intel_pstate=no_hwp+active").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(setup.kernel.cpufreq.get("intel_pstate=").map(String::as_str), Some("no_hwp+active"));
    for (machine, arm, message) in [
        (
            "epyc-9654",
            "v6.12,intel_pstate=active",
            "found intel_pstate=active, while the processors of epyc-9654 are amd's",
        ),
        ("xeon-gold-6148-2s", "v4.16,intel_pstate=active", "found intel_pstate=active, which v4.16 does not have"),
        (
            "cloud-vm-2",
            "v6.12,intel_pstate=active",
            "found intel_pstate=active on cloud-vm-2, a guest that does not see",
        ),
        (
            "cloud-vm-2",
            "v6.12,cpufreq.driver=intel_pstate",
            "on cloud-vm-2, a guest that does not see its host's frequencies",
        ),
        ("cloud-vm-2", "v6.12,cpufreq.governor=powersave", "expected a machine whose kernel governs them"),
    ] {
        let error = arm_on(machine, arm).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn without_hardware_p_states_the_driver_samples() {
    // On one side 1.25 times the busy share of the highest frequency, every 10 ms; on the other hardware that aims at
    // its target share.
    let task = "\"cpus\": [0], \"loop\": 1, \"run\": 300000";
    let changes = |arm: &str| core(&run_of("", arm, task), 0).time.changes();
    let (hardware, driver) = (changes("v6.12,intel_pstate=active"), changes("v6.12,intel_pstate=no_hwp+active"));
    assert!(driver < hardware, "{driver} changes by the driver, {hardware} by the hardware");
}
