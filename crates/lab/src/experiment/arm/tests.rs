use super::super::draft::Draft;
use super::*;
use sched::fair::balance::NewidleDetach;

fn arm(text: &str) -> Result<Arm, String> {
    let draft = Draft::default().arm_option(text);
    let checked = check_all(std::slice::from_ref(&draft), &draft.name.at, 1);
    checked.and_then(|()| resolve(&draft, 8, 250)).map_err(|mistake| mistake.to_string())
}

#[test]
fn settings_go_where_a_machine_has_them() {
    let arm =
        arm("a=v4.15,NO_SIS_PROP,SIS_AVG_CPU=1,sched_migration_cost_ns=0,schedstats=enable,hz=1000,pipe.wait=split")
            .unwrap();
    assert!(!arm.features.sched_feat(Feature::SIS_PROP) && arm.features.sched_feat(Feature::SIS_AVG_CPU));
    assert_eq!((arm.sysctl.sched_migration_cost, arm.sysctl.sched_schedstats, arm.hz), (0, 1, 1000));
    assert_eq!(arm.build.os.pipe, os::pipe::PipeRules::Split);
    let said = "v4.15 hz=1000 pipe.wait=split schedstats=enable sched_migration_cost_ns=0 NO_SIS_PROP SIS_AVG_CPU";
    assert_eq!(arm.summary(), said);
}

#[test]
fn behaviours_decide_with_which_tunables_a_kernel_boots() {
    for from in sched::versions::KERNELS {
        for to in sched::versions::KERNELS {
            let settings = to.settings();
            let settings = settings.iter().map(|setting| format!(",{}={}", setting.key, setting.value.name));
            let arm = arm(&format!("a={}{}", from.name, settings.collect::<String>())).unwrap();
            assert_eq!(arm.sysctl, to.sysctl(8).at_hz(250), "{} as {}", from.name, to.name);
        }
    }
    let arm = arm("a=v6.12,entity.base_slice=750-us,sched/base_slice_ns=5000000,rt.runtime_default=all").unwrap();
    assert_eq!((arm.sysctl.sched_base_slice, arm.sysctl.sched_rt_runtime), (5_000_000, 1_000_000));
}

#[test]
fn statistics_can_be_switched_only_where_they_have_a_switch() {
    let refused = arm("a=v4.5-rc1,kernel.sched_schedstats=0").unwrap_err();
    let found =
        "found `kernel.sched_schedstats`, but v4.5-rc1 collects statistics always; expected stats.schedstats=tunable";
    assert!(refused.contains(found), "{refused}");
    assert!(arm("a=v4.5-rc1,schedstats=disable").unwrap_err().contains("always"));
    let tunable = arm("a=v4.5-rc1,stats.schedstats=tunable").unwrap();
    assert_eq!(tunable.sysctl.sched_schedstats, 0);
    assert_eq!(arm("a=v4.5-rc1,sched_schedstats=1,stats.schedstats=tunable").unwrap().sysctl.sched_schedstats, 1);
}

#[test]
fn preemption_is_a_choice_of_the_build_or_of_the_command_line() {
    let preempt = |text: &str| arm(text).unwrap().build.os.preempt;
    assert_eq!((preempt("a=v4.16"), preempt("a=v6.1")), (Preempt::None, Preempt::Voluntary));
    assert_eq!(preempt("a=v4.16,CONFIG_PREEMPT=y"), Preempt::Full);
    assert_eq!((preempt("a=v7.2"), preempt("a=v7.2,preempt=full")), (Preempt::Lazy, Preempt::Full));
    assert_eq!(preempt("a=v7.2,CONFIG_PREEMPT_LAZY=y,preempt=full"), Preempt::Full);
    // v6.18 has the old models and the new one.
    let four = ["", ",preempt=none", ",CONFIG_PREEMPT_VOLUNTARY=y", ",CONFIG_PREEMPT_LAZY=y,preempt=full"];
    let chosen = four.map(|choice| preempt(&format!("a=v6.18{choice}")));
    assert_eq!(chosen, [Preempt::Lazy, Preempt::None, Preempt::Voluntary, Preempt::Full]);
    // The command line overrides the build's choice, in whatever order they are given.
    assert_eq!(preempt("a=v6.12,preempt=none,CONFIG_PREEMPT=y"), Preempt::None);
    // Where the scheduler is built for preemption, a CPU that is about to idle takes only one task, whatever model the
    // kernel is booted with.
    let detach = |text: &str| arm(text).unwrap().build.sched.balance.newidle_detach;
    for text in [
        "a=v4.5-rc1,CONFIG_PREEMPT=y",
        "a=v6.1",
        "a=v6.12,preempt=none",
        "a=v6.18,preempt=none",
        "a=v7.2,CONFIG_PREEMPT_LAZY=y",
    ] {
        assert_eq!(detach(text), NewidleDetach::One, "{text}");
    }
    for text in ["a=v4.5-rc1", "a=v4.16,CONFIG_PREEMPT_VOLUNTARY=y", "a=v6.12,balance.newidle_detach=imbalance"] {
        assert_eq!(detach(text), NewidleDetach::Imbalance, "{text}");
    }
    // A behaviour that is named stays, whatever the build would imply.
    assert_eq!(detach("a=v4.16,balance.newidle_detach=one,CONFIG_PREEMPT_VOLUNTARY=y"), NewidleDetach::One);
    assert_eq!(detach("a=v4.16,CONFIG_PREEMPT=y,balance.newidle_detach=imbalance"), NewidleDetach::Imbalance);
    let build = arm("a=v6.12,preempt=none").unwrap();
    let setup = crate::setup::KernelSetup::of(&build);
    let (again, ..) = setup.build(8, &machine::topology::Location::of("a test")).unwrap();
    assert_eq!(again, build.build);
}

#[test]
fn numa_balancing_is_switched_on_the_command_line_and_as_a_sysctl() {
    for (text, on) in [
        ("a=v6.1", 1),
        ("a=v6.1,numa_balancing=disable", 0),
        ("a=v4.5-rc1,kernel.numa_balancing=0", 0),
        ("a=v6.12,numa_balancing=enable,sched/numa_balancing/scan_size_mb=64", 1),
    ] {
        let sysctl = arm(text).map(|arm| arm.sysctl);
        assert_eq!(sysctl.map(|sysctl| sysctl.numa_balancing), Ok(on), "{text}");
    }
}

#[test]
fn features_are_listed_as_in_a_file_and_odd_schedstats_get_the_kernels_complaint() {
    let arm = arm("a=v4.15,sched_features=NO_SIS_PROP+SIS_AVG_CPU,schedstats=maybe").unwrap();
    assert!(!arm.features.sched_feat(Feature::SIS_PROP) && arm.features.sched_feat(Feature::SIS_AVG_CPU));
    assert_eq!(arm.sysctl.sched_schedstats, 0);
    assert!(arm.complaints[0].contains("Unable to parse schedstats="), "{:?}", arm.complaints);
}

#[test]
fn settings_that_change_nothing_are_told() {
    for (text, complaint) in [
        ("a=v6.1,layout.percpu_areas=packed", Some("layout.percpu_areas=packed changes nothing in v6.1")),
        ("a=v4.5-rc1,layout.percpu_areas=packed", None),
        ("a=v6.1,idle=poll,cpuidle.governor=teo", Some("with idle= the governor of idle states has nothing to choose")),
        ("a=v6.1,cpuidle.off=1,idle.governor=teo", Some("with cpuidle.off= the governor")),
        ("a=v6.1,idle=poll", None),
        ("a=v6.1,cpuidle.governor=teo", None),
    ] {
        let complaints = arm(text).unwrap().complaints;
        assert_eq!(complaints.len(), usize::from(complaint.is_some()), "{text}: {complaints:?}");
        assert!(complaint.is_none_or(|part| complaints[0].contains(part)), "{text}: {complaints:?}");
    }
}

#[test]
fn wrong_settings_are_named() {
    for (text, message) in [
        (
            "a=v4.5-rc1,NO_SIS_PROP",
            "column 12: found the feature `NO_SIS_PROP`, which v4.5-rc1 does not have; expected a kernel that has it (v4.15, v4.16, v4.19, v5.4, v5.10, v5.15, v6.1",
        ),
        ("a=v4.15,NO_SIS_PROB", "found the unknown feature of v4.15 `SIS_PROB`; expected `SIS_PROP`, perhaps"),
        ("a=v4.15,sched_latency=3", "found the unknown setting `sched_latency`; expected `sched_latency_ns`, perhaps"),
        (
            "a=v4.15,kernel.sched_latncy_ns=3",
            "found the unknown sysctl `kernel.sched_latncy_ns`; expected `kernel.sched_latency_ns`",
        ),
        (
            "a=v4.15,sched_nr_migrate=0",
            "column 26: found kernel.sched_nr_migrate = 0; expected a whole number from 1 to",
        ),
        (
            "a=v6.12,kernel.sched_latency_ns=5000000",
            "found the tunable `kernel.sched_latency_ns`, which v6.12 does not have; expected a kernel that has it (v4.5-rc1",
        ),
        (
            "a=v4.16,base_slice_ns=5000000",
            "found the tunable `base_slice_ns`, which v4.16 does not have; expected a kernel that has it (v6.6, v6.12, v6.18, v7.2, v7.3)",
        ),
        (
            "a=v6.1,kernel.sched_nr_migrate=5",
            "which v6.1 does not have; expected `sched/nr_migrate`, as it is called there",
        ),
        ("a=v4.15,sched/latency=5", "found the unknown sysctl `sched/latency`; expected"),
        ("a=v4.15,sched_nr_migrate", "found `sched_nr_migrate` without a value; expected key=value"),
        ("a=v4.15,hz=251", "found hz = 251; expected one of 100, 250, 300, 1000"),
        ("a=v4.15,numa_balancing=0", "found the unknown value of numa_balancing `0`; expected"),
        (
            "a=v6.1,kernel.numa_balancing_scan_size_mb=64",
            "expected `sched/numa_balancing/scan_size_mb`, as it is called",
        ),
        (
            "a=v4.15,xyzzy=1",
            "expected a behaviour, sysctl, feature (NAME or NO_NAME) or parameter that `fairground kernels show v4.15`",
        ),
        ("a=v4.15,features=NO_SIS_PROP+SIS_PROB", "column 30: found the unknown feature of v4.15 `SIS_PROB`"),
        ("a=v4.15,WARN_DOUBLE_CLOCK", "found the feature `WARN_DOUBLE_CLOCK`, which is not modelled yet"),
        ("a=v4.15,hz=250,hz=100", "found `hz` for the second time"),
        ("a=v4.15,NO_SIS_PROP,SIS_PROP", "found `SIS_PROP` for the second time"),
        ("a=v4.15,pipe.wait=splitt", "found the unknown value of pipe.wait `splitt`; expected `split`, perhaps"),
        (
            "a=v4.15,preempt=full",
            "the parameter `preempt`, which v4.15 does not have; expected the choice of its build",
        ),
        ("a=v6.12,preempt=lazy", "preempt = `lazy`, which v6.12 does not have; expected none, voluntary or full: lazy"),
        ("a=v7.2,preempt=voluntary", "preempt = `voluntary`, which v7.2 does not have; expected full or lazy: x86"),
        ("a=v7.2,preempt=lazi", "found the unknown value of preempt `lazi`; expected `lazy`, perhaps"),
        ("a=v7.3,cgroup_mode=2", "found the unknown mode `2`; expected one of up, smp, concur, max, tasks"),
        ("a=v7.3,cgroup_mode=smpp", "found the unknown mode `smpp`; expected `smp`, perhaps"),
        (
            "a=v7.2,CONFIG_PREEMPT_NONE=y",
            "found `CONFIG_PREEMPT_NONE`, which v7.2 does not have; expected one of CONFIG_PREEMPT, CONFIG_PREEMPT_LAZY",
        ),
        (
            "a=v4.15,CONFIG_PREEMPT_LAZY=y",
            "found `CONFIG_PREEMPT_LAZY`, which v4.15 does not have; expected one of CONFIG_PREEMPT_NONE",
        ),
        ("a=v6.1,preempt=ful", "found the unknown value of preempt `ful`; expected `full`, perhaps"),
        ("a=v6.1,preempt", "found `preempt` without a value"),
        ("a=v4.15,CONFIG_PREEMPT=n", "found CONFIG_PREEMPT = `n`; expected y"),
        (
            "a=v4.15,CONFIG_PREEMPT_RT=y",
            "found `CONFIG_PREEMPT_RT`, which is not modelled; expected one of CONFIG_PREEMPT_NONE",
        ),
        ("a=v4.15,CONFIG_PREEMT=y", "found the unknown choice of the build `CONFIG_PREEMT`; expected `CONFIG_PREEMPT`"),
        ("a=v4.15,CONFIG_PREEMPT=y,CONFIG_PREEMPT_NONE=y", "found `CONFIG_PREEMPT_NONE` for the second time"),
        ("a b=v4.15", "found the arm's name `a b`; expected 1 to 60 letters"),
        ("a=", "found the unknown kernel ``"),
        ("=v4.15", "found the arm's name ``; expected 1 to 60 letters"),
    ] {
        let error = arm(text).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    // The last feature, which cannot be changed, is not offered.
    let error = arm("a=v4.15,NOPE").unwrap_err();
    assert!(error.ends_with(", LB_MIN, ATTACH_AGE_LOAD"), "{error}");
}
