//! The other commands: single runs, and lists of what there is.

mod program;

use program::{TINY, files, folder, run_well};
use std::fs;

const ONE: &[&str] = &["--machine", "core-i7-3770", "--workload", "pipetest:batches=2,loops=5", "--arm", "v4.15"];

fn with<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[command], ONE, more].concat()
}

#[test]
fn a_run_prints_figures_then_statistics() {
    let place = folder("run");
    let said = run_well(&place, &with("run", &[]));
    let order =
        ["machine  core-i7-3770", "pipetest (us per loop)", "Scheduler statistics of", "wakeups", "Cache lines moved"];
    let at: Vec<usize> = order.iter().map(|part| said.stdout.find(part).unwrap_or_else(|| panic!("{part}"))).collect();
    assert!(at.is_sorted(), "{}", said.stdout);
    assert!(said.stdout.contains("pipe-test:(2)"), "{}", said.stdout);
    assert!(files(&place).is_empty(), "a run stores nothing unless asked");
    let stored = run_well(&place, &with("run", &["--out", "out", "--format", "json", "--iterations", "2"]));
    let document: lab::json::Document = serde_json::from_str(&stored.stdout).unwrap();
    assert_eq!(document.tables[0].rows[0].arms[0].n, 2);
    assert!(document.tables[0].rows[0].change.is_empty());
    run_well(&place, &["replay", "out/records/0-pipetest-Time/0-v4.15/0001.json"]);
}

#[test]
fn a_run_is_the_same_whoever_listens() {
    let place = folder("listeners");
    let digest = |more: &[&str]| {
        let text = run_well(&place, &with("run", more)).stdout;
        text.split("digest ").nth(1).unwrap_or_else(|| panic!("{text}")).trim().to_string()
    };
    let listened = digest(&[]);
    run_well(
        &place,
        &[&["compare"], &ONE[..4], &["--arm", "v4.15", "--arm", "v4.16", "--iterations", "1", "--out", "c"]].concat(),
    );
    let record = fs::read_to_string(place.join("c/records/0-pipetest-Time/0-v4.15/0000.json")).unwrap();
    assert!(record.contains(&format!("\"digest\":\"{listened}")), "{listened}");
}

#[test]
fn traces_come_in_three_forms() {
    let place = folder("trace");
    run_well(&place, &with("trace", &["--out", "t.perfetto"]));
    // Every packet of a Perfetto trace is field 1 of it.
    assert_eq!(fs::read(place.join("t.perfetto")).unwrap()[0], 0x0a);
    run_well(&place, &with("trace", &["--out", "t.txt", "--format", "ftrace", "--quiet"]));
    let text = fs::read_to_string(place.join("t.txt")).unwrap();
    assert!(text.starts_with("# tracer: nop\n") && text.contains("next_comm=pipe-test"), "{text}");
    let picture = run_well(&place, &with("trace", &["--out", "-", "--format", "gantt"]));
    assert!(picture.stdout.contains("pipe-test"), "{}", picture.stdout);
    assert!(picture.stderr.contains("the workload started at"), "{}", picture.stderr);
    assert_eq!(files(&place), ["t.perfetto", "t.txt"]);
    let short = run_well(&place, &with("trace", &["--out", "-", "--format", "ftrace", "--to", "0.001", "--quiet"]));
    assert!(short.stdout.len() < text.len() && !short.stdout.contains("pipe-test"), "{}", short.stdout);
}

#[test]
fn profiles_name_kernel_functions() {
    let place = folder("profile");
    let perf = run_well(&place, &with("profile", &[])).stdout;
    assert!(perf.contains("Children") && perf.contains("[k] schedule"), "{perf}");
    let folded = run_well(&place, &with("profile", &["--format", "folded"])).stdout;
    assert!(folded.lines().any(|line| line.starts_with("pipe-test;") && line.contains(";pipe_write;")), "{folded}");
}

#[test]
fn schedstat_is_the_kernels_file() {
    let place = folder("schedstat");
    let said = run_well(&place, &with("schedstat", &[]));
    assert!(said.stdout.starts_with("version 15\ntimestamp ") && said.stdout.contains("\ncpu7 "), "{}", said.stdout);
    assert!(said.stderr.contains("schedstats are off in this arm"), "{}", said.stderr);
    let on = run_well(&place, &[&["schedstat"], &ONE[..4], &["--arm", "on=v4.15,schedstats=enable"]].concat());
    assert_eq!(on.stderr, "");
}

#[test]
fn everything_there_is_can_be_listed() {
    let place = folder("list");
    let lists = |arguments: &[&str], part: &str| {
        let said = run_well(&place, arguments);
        assert!(said.stdout.contains(part), "{arguments:?}: {}", said.stdout);
    };
    lists(&["machines", "list"], "xeon-e5-2670v3-2s");
    lists(&["machines", "show", "xeon-e5-2670v3-2s"], "line.remote_1");
    lists(&["machines", "show", "pack:1 core:4 pu:1"], "4 cores, 4 CPUs");
    lists(&["kernels", "list"], "v4.5-rc1");
    lists(&["kernels", "show", "v4.16"], "kernel.sched_latency_ns");
    lists(&["kernels", "diff", "v4.15", "v4.16"], "v4.15 -> v4.16");
    lists(&["workloads", "list"], "rt-app");
    lists(&["workloads", "show", "hackbench-pipes"], "groups");
    lists(&["completions", "bash"], "fairground");
    lists(&["-V"], env!("CARGO_PKG_VERSION"));
    lists(&["--help"], "compare");
    lists(&["compare", "--help"], "--workload <W[:key=value,...]>");
}

#[test]
fn this_computer_is_a_machine() {
    if !std::path::Path::new("/sys/devices/system/cpu/online").exists() {
        // There is no Linux, or a container has no sysfs. Then the host is refused, which the lab's tests check.
        return;
    }
    let place = folder("host");
    let machine = run_well(&place, &["machines", "import", "host"]).stdout;
    fs::write(place.join("host.toml"), machine).unwrap();
    let arguments = [&["compare", "--machine", "host.toml", "--iterations", "1"], &TINY[2..8]].concat();
    run_well(&place, &arguments);
}

#[test]
fn lines_come_in_three_forms_and_as_many_as_asked_for() {
    let place = folder("lines");
    let text = run_well(&place, &with("lines", &["--lines", "3"])).stdout;
    assert!(text.contains("   3  ") && !text.contains("   4  "), "{text}");
    assert!(text.contains("Node  Function") && text.contains("rq: lock, nr_running, cpu_load"), "{text}");
    let json = run_well(&place, &with("lines", &["--lines", "2", "--format", "json"])).stdout;
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["lines"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["seed"], 1);
    let seven = ["--lines", "2", "--format", "json", "--seed", "7"];
    let other: serde_json::Value = serde_json::from_str(&run_well(&place, &with("lines", &seven)).stdout).unwrap();
    assert!(other["seed"] == 7 && other["simulated_ns"] != document["simulated_ns"], "{other}");
    let csv = run_well(&place, &with("lines", &["--format", "csv"])).stdout;
    assert!(csv.starts_with("line,function,node,waited_ns,"), "{csv}");
    let said = program::run(&place, &with("lines", &["--lines", "0"]));
    assert_eq!((said.code, said.stdout.as_str()), (2, ""));
    assert!(said.stderr.contains("--lines"), "{}", said.stderr);
}

#[test]
fn sensitivity_ranks_what_a_result_rests_on() {
    let place = folder("sensitivity");
    let chosen = ["paths", "os", "idle_loop"].map(|section| format!("cycles_per_instruction.{section}"));
    let chosen = chosen.iter().map(String::as_str).chain(["line.read_stall"]);
    let figures: Vec<&str> = chosen.flat_map(|name| ["--figures", name]).collect();
    let said = run_well(&place, &[&["sensitivity"], TINY, &figures, &["--top", "2"]].concat());
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(lines[0].starts_with("machine  core-i7-3770, 2 iterations"), "{}", said.stdout);
    let heads = lines.iter().position(|line| line.starts_with("figure ")).expect("heads");
    assert!(lines[heads + 1].contains(" fitted ") && lines[heads + 1].contains(" to "), "{}", said.stdout);
    assert!(
        said.stderr.contains("note: uncertain figures: 4, ends of their ranges: 8, runs to begin with: 20"),
        "{}",
        said.stderr
    );
    let folder = said.stderr.lines().last().and_then(|line| line.strip_prefix("results: ")).expect("a folder");
    assert!(folder.starts_with("results/core-i7-3770-pipetest-sensitivity-"), "{folder}");
    assert_eq!(files(&place.join(folder)), ["fairground.json", "sensitivity.json", "sensitivity.txt", "trials.jsonl"]);
    assert_eq!(fs::read_to_string(place.join(folder).join("sensitivity.txt")).unwrap(), said.stdout);
    // The ranking does not depend on the number of jobs.
    let one = ["--top", "2", "--jobs", "1", "--quiet", "--out", "one"];
    assert_eq!(run_well(&place, &[&["sensitivity"], TINY, &figures, &one].concat()).stdout, said.stdout);
    // Printing in another form, or fewer figures, needs no run.
    let json = run_well(&place, &[&["sensitivity"], TINY, &figures, &["--format", "json"]].concat());
    let taken = format!("note: 20 of 20 runs are taken from {folder}\n");
    assert!(json.stderr.contains(&taken), "{}", json.stderr);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(value["iterations"], 2);
    assert!(value["figures"].as_array().unwrap().len() + value["without_influence"].as_array().unwrap().len() == 4);
}

/// Two changes of the timeline: one falls into a run of a few milliseconds, the other comes after its end.
const CASE: &str = "machine = \"core-i7-3770\"\n[[workload]]\nname = \"script\"\ntasks = \"task a: run 2ms\"\n\
                    [[arm]]\nname = \"r\"\nkernel = \"v6.1\"\n[[timeline]]\nat = \"1ms\"\noffline = 1\n\
                    [[timeline]]\nat = \"10s\"\nonline = 1\n";
const LATE: &str = "timeline: `online=1` at 10000 ms did not come, the run had ended";

#[test]
fn whoever_looks_at_one_run_hears_its_warnings() {
    let place = folder("warnings");
    fs::write(place.join("x.toml"), CASE).unwrap();
    for command in [
        &["profile"][..],
        &["lines"],
        &["schedstat"],
        &["proc", "--file", "/proc/schedstat"],
        &["trace", "--format", "gantt", "--out", "-"],
    ] {
        let said = run_well(&place, &[command, &["x.toml"]].concat());
        assert!(said.stderr.contains(&format!("warning: {LATE}\n")), "{command:?}: {}", said.stderr);
        let quiet = run_well(&place, &[command, &["x.toml", "--quiet"]].concat());
        assert_eq!((quiet.stderr.as_str(), quiet.stdout), ("", said.stdout), "{command:?}");
    }
    // The user asked for an early end, so there is no warning about the late change.
    let cut = run_well(&place, &["proc", "x.toml", "--file", "/proc/schedstat", "--at", "5.5"]);
    assert!(!cut.stderr.contains("warning"), "{}", cut.stderr);
}

#[test]
fn a_case_tells_what_its_runs_have_to_say() {
    let place = folder("fidelity-warnings");
    let figure = "[[figure]]\nof = \"a\"\nfigure = \"run_ms\"\nreal = 2\nwithin = 10\n";
    fs::write(place.join("x.toml"), format!("{CASE}{figure}")).unwrap();
    let said = run_well(&place, &["fidelity", "x.toml", "--quiet"]);
    assert!(said.stdout.ends_with(&format!("0 gaps closed\nwarning  x.toml: {LATE}\n")), "{}", said.stdout);
    // A topology alone borrows its prices, which causes a notice.
    fs::write(place.join("x.toml"), format!("{CASE}{figure}").replace("core-i7-3770", "core:4 pu:1")).unwrap();
    let said = run_well(&place, &["fidelity", "x.toml"]);
    assert!(said.stderr.contains("note: synthetic has no prices of its own"), "{}", said.stderr);
}
