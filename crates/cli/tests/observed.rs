//! What a user sees of the inside of a run: files of procfs, and comparisons with real kernels.

mod program;

use program::{folder, run, run_well};
use std::fs;

const PAIR: &str = "\
task pt-A: 1500 x (run 200us; write there; read back)
task pt-B: 1500 x (read there; run 200us; write back)
";

/// Arguments for a run of [`PAIR`], which is in the folder as `pair.txt`.
fn pair<'a>(arm: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let machine = ["proc", "--machine", "pack:1 l3:1 core:4 pu:1", "--workload", "script:file=pair.txt", "--arm", arm];
    [&machine[..], more, &["--quiet"]].concat()
}

#[test]
fn files_of_procfs_read_as_each_kernel_prints_them() {
    let place = folder("proc");
    fs::write(place.join("pair.txt"), PAIR).unwrap();
    let sched = |arm: &str| run_well(&place, &pair(arm, &["--file", "/proc/pt-A/sched", "--at", "210"])).stdout;
    // The numbers of lines in recordings of a real kernel, with statistics off and on.
    assert_eq!(sched("v6.1").lines().count(), 28);
    assert_eq!(sched("on=v6.1,schedstats=enable").lines().count(), 58);
    // v4.5 prints them whether they are collected or not.
    assert!(sched("v4.5-rc1").contains("se.statistics.nr_wakeups_sync                :"));
    let text = run_well(
        &place,
        &pair("v6.12", &["--file", "/proc/schedstat", "--file", "/proc/pt-B/schedstat", "--at", "210"]),
    )
    .stdout;
    assert!(text.starts_with("==> /proc/schedstat <==\nversion 16\ntimestamp "), "{text}");
    assert!(text.contains("\n\n==> /proc/pt-B/schedstat <==\n"), "{text}");
}

/// A real kernel prints `cpu_khz`, which it reads or measures once; turbo does not change it.
#[test]
fn sched_debug_has_the_nominal_frequency() {
    let place = folder("proc-frequency");
    fs::write(place.join("pair.txt"), PAIR).unwrap();
    let script = ["--workload", "script:file=pair.txt", "--arm", "v6.1", "--at", "20", "--quiet"];
    let file = ["proc", "--file", "/sys/kernel/debug/sched/debug", "--machine"];
    for (machine, head) in [("core-i7-3770", "cpu#1, 3400.000 MHz"), ("core-i9-12900k", "cpu#1, 3200.000 MHz")] {
        let text = run_well(&place, &[&file[..], &[machine], &script].concat()).stdout;
        assert!(text.lines().any(|line| line == head), "{machine}: {text}");
    }
}

#[test]
fn files_and_moments_that_are_not_there_are_told() {
    let place = folder("proc-wrong");
    fs::write(place.join("pair.txt"), PAIR).unwrap();
    for (more, part) in [
        (&["--file", "/proc/schedstats"][..], "`/proc/schedstat`, perhaps; or one of /proc/schedstat, "),
        (&["--file", "/proc/nobody/sched", "--at", "100"], "column 7: found no living task `nobody`"),
        (&["--file", "/proc/schedstat", "--at", "3000000"], "after the end of the run; expected at most"),
        (&["--file", "/proc/pipe-test/sched", "--at", "3000000"], "after the end of the run; expected at most"),
        (&["--file", "/sys/fs/cgroup/x/cpu.stat"], "found the unknown group `/x`; expected another file"),
        (&["--file", "/proc/schedstat", "--at", "0"], "before the workload begins; expected at least"),
        (&["--file", "/proc/schedstat", "--at", "-1"], "milliseconds of simulated time"),
    ] {
        let said = run(&place, &pair("v4.15", more));
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{more:?}");
        assert!(said.stderr.contains(part), "{more:?}: {}", said.stderr);
    }
}

/// The output of a trace of [`PAIR`], on stdout and stderr.
fn traced(place: &std::path::Path, arm: &str, events: &str) -> program::Said {
    let machine = ["trace", "--machine", "pack:1 l3:1 core:4 pu:1", "--workload", "script:file=pair.txt", "--arm", arm];
    let more = ["--format", "ftrace", "--out", "-", "--to", "150", "--events", events];
    run(place, &[&machine[..], &more].concat())
}

#[test]
fn tracepoints_are_chosen_by_name_and_statistics_that_are_off_are_told_once() {
    let place = folder("events");
    fs::write(place.join("pair.txt"), PAIR).unwrap();
    let names = |text: &str| {
        let name = |line: &str| Some(line.get(33..)?.split(": ").nth(1)?.to_string());
        let mut names: Vec<String> = text.lines().filter(|line| !line.starts_with('#')).filter_map(name).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let bare = traced(&place, "v6.1", "sched_switch,pelt_?fs_tp,pelt_se_tp,sched_update_nr_running_tp");
    assert_eq!(bare.code, 2, "a question mark is a letter like others: {}", bare.stderr);
    let bare = traced(&place, "v6.1", "sched_switch,pelt_*s*_tp,sched_util_est_*,sched_update_nr_running_tp");
    let expected = [
        "pelt_cfs_tp",
        "pelt_se_tp",
        "sched_switch",
        "sched_update_nr_running_tp",
        "sched_util_est_cfs_tp",
        "sched_util_est_se_tp",
    ];
    assert_eq!(names(&bare.stdout), expected, "{}", bare.stderr);
    let warnings = |said: &program::Said| said.stderr.lines().filter(|line| line.starts_with("warning")).count();
    let off = traced(&place, "v6.1", "sched_stat_*");
    assert_eq!((warnings(&off), names(&off.stdout)), (1, vec!["sched_stat_runtime".to_string()]), "{}", off.stderr);
    let on = traced(&place, "on=v6.1,schedstats=enable", "sched_stat_*");
    assert_eq!(warnings(&on), 0);
    assert_eq!(names(&on.stdout), ["sched_stat_runtime", "sched_stat_sleep", "sched_stat_wait"], "{}", on.stderr);
    // Up to v4.5 they are always collected.
    assert_eq!(warnings(&traced(&place, "v4.5-rc1", "sched_stat_wait")), 0);
}

const CASE: &str = "\
machine = \"pack:1 core:1 pu:1\"
costs = false
[[workload]]
name = \"script\"
tasks = \"\"\"
task a: spin 1s
task b nice=5: spin 1s
\"\"\"
[[arm]]
name = \"real\"
kernel = \"v4.15\"
[[figure]]
of = \"a\"
figure = \"share\"
real = 0.7535
within = 0.01
[[figure]]
of = \"b\"
figure = \"share\"
real = 0.5
within = 0.1
";

#[test]
fn a_figure_that_is_off_fails_until_its_case_says_why() {
    let place = folder("fidelity");
    let check = |text: &str| {
        fs::write(place.join("case.toml"), text).unwrap();
        run(&place, &["fidelity", "case.toml", "--quiet"])
    };
    let said = check(CASE);
    assert_eq!(said.code, 1, "{}", said.stdout);
    assert!(said.stdout.contains("2 figures: 1 agree, 0 known gaps, 1 off, 0 gaps closed"), "{}", said.stdout);
    let explained = check(&format!("{CASE}gap = \"invented for this test\"\n"));
    assert_eq!(explained.code, 0, "{}", explained.stdout);
    assert!(explained.stdout.contains("known gap") && explained.stdout.contains("invented for this test"));
    let closed = check(&CASE.replace("within = 0.01", "within = 0.01\ngap = \"nothing\""));
    assert_eq!(closed.code, 1);
    assert!(closed.stdout.contains("GAP CLOSED"), "{}", closed.stdout);
}

#[test]
fn mistakes_of_cases_have_places() {
    let place = folder("fidelity-wrong");
    for (from, to, part) in [
        ("of = \"a\"", "of = \"c\"", "case.toml:13:6: found no share of `c`; expected one of the tasks there are: "),
        ("of = \"a\"", "of = \"*\"", "case.toml:13:6: found 3 tasks that match `*`; expected over = one of"),
        ("\"share\"", "\"shares\"", "case.toml:14:10: found the unknown figure `shares`; expected `share`, perhaps"),
        ("within = 0.01", "wihtin = 0.01", "case.toml:16:1: found the unknown name `wihtin` in figure"),
        ("within = 0.01", "within = -1", "case.toml:16:10: found within = `-1`"),
        ("real = 0.7535\n", "", "found a figure without the real kernel's"),
        ("spin 1s\ntask b", "spin 1\ntask b", "case.toml:6:14: found `1`; expected a time above 0 such as 3ms"),
        ("costs = false", "recording = \"none.txt\"", "case.toml:2:13: found none.txt: "),
    ] {
        assert!(CASE.contains(from));
        fs::write(place.join("case.toml"), CASE.replacen(from, to, 1)).unwrap();
        let said = run(&place, &["fidelity", "case.toml", "--quiet"]);
        assert_eq!(said.code, 2, "{to}: {}", said.stderr);
        assert!(said.stderr.contains(part), "{to}: {}", said.stderr);
    }
    // There are no options that could say it.
    fs::write(place.join("empty.toml"), "").unwrap();
    let said = run(&place, &["fidelity", "empty.toml"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("expected machine = \"M\" in it: ampere"), "{}", said.stderr);
    let said = run(&place, &["fidelity", "nowhere"]);
    assert!(said.code == 2 && said.stderr.contains("nowhere: "), "{}", said.stderr);
}
