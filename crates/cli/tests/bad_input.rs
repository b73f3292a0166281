//! Mistakes of the user: exit code 2, one message that says where, what was found and what would be right, and no
//! half-written files.

mod program;

use program::{TINY, files, folder, run};
use std::fs;
use std::path::Path;

/// Checks that the arguments are refused with a message that contains all of `parts`, and leave no file behind.
fn refused(place: &Path, arguments: &[&str], parts: &[&str]) {
    let before = files(place);
    let said = run(place, arguments);
    assert_eq!(said.code, 2, "{arguments:?}: {}{}", said.stdout, said.stderr);
    for part in parts {
        assert!(said.stderr.contains(part), "{arguments:?}: {part:?} is missing in: {}", said.stderr);
    }
    assert_eq!(said.stdout, "", "{arguments:?}");
    assert_eq!(files(place), before, "{arguments:?}");
}

/// [`TINY`] with another value for one option.
fn with<'a>(option: &str, value: &'a str) -> Vec<&'a str> {
    let mut arguments: Vec<&str> = ["compare"].iter().chain(TINY).copied().collect();
    let at = arguments.iter().position(|argument| *argument == option).expect("an option of TINY");
    arguments[at + 1] = value;
    arguments
}

#[test]
fn names_that_are_not_known() {
    let place = folder("names");
    for (option, value, parts) in [
        ("--machine", "core-i7-377", ["the unknown machine `core-i7-377`", "`core-i7-3770`, perhaps"]),
        ("--workload", "pipe-test", ["the unknown workload `pipe-test`", "`pipetest`, perhaps"]),
        ("--workload", "pipetest:lops=5", ["column 10: found the unknown parameter `lops`", "`loops`, perhaps"]),
        (
            "--arm",
            "vanilla=v4.5-rc2",
            ["column 9: found the unknown kernel `v4.5-rc2`", "`v4.5-rc1` or `v4.15`, the nearest of"],
        ),
        (
            "--arm",
            "vanilla=5.10",
            ["the unknown kernel `5.10`", "v4.5-rc1, v4.15, v4.16, v4.19, v5.4, v5.10, v5.15, v6.1, v6.6, v6.12"],
        ),
        (
            "--arm",
            "a=v4.15,kernel.sched_latency=5",
            ["the unknown sysctl `kernel.sched_latency`", "`kernel.sched_latency_ns`"],
        ),
        ("--arm", "a=v4.15,NO_SIS_PROPP", ["the unknown feature of v4.15 `SIS_PROPP`", "`SIS_PROP`, perhaps"]),
        ("--arm", "a=v4.5-rc1,SIS_PROP", ["`SIS_PROP`, which v4.5-rc1 does not have", "v4.15, v4.16"]),
        ("--arm", "a=v4.15,schedstat=enable", ["the unknown setting `schedstat`", "`schedstats`, perhaps"]),
        ("--arm", "a=v4.15,stats.schedstats=tuneable", ["the unknown value of stats.schedstats", "`tunable`, perhaps"]),
        ("--arm", "a=v4.5-rc1,sched_schedstats=0", ["collects statistics always", "stats.schedstats=tunable"]),
    ] {
        refused(&place, &with(option, value), &parts);
    }
    refused(&place, &["kernels", "show", "v4.21"], &["the unknown kernel `v4.21`", "`v4.19` or `v5.4`"]);
    refused(&place, &["kernels", "diff", "v4.15", "v6.20"], &["the unknown kernel `v6.20`"]);
    refused(&place, &["machines", "show", "host2"], &["the unknown machine `host2`"]);
    refused(&place, &["workloads", "show", "hackbench"], &["`hackbench-pipes`, perhaps"]);
    refused(&place, &["compar"], &["compare"]);
    refused(&place, &["compare", "--iteration", "5"], &["--iterations"]);
    refused(&place, &["compare", "--format", "yaml"], &["yaml", "text, json, csv"]);
}

#[test]
fn numbers_that_make_no_sense() {
    let place = folder("numbers");
    for (option, value, part) in [
        ("--iterations", "0", "--iterations 0: found iterations = 0; expected a whole number from 1 to 10000"),
        ("--iterations", "-1", "iterations = -1"),
        ("--iterations", "many", "iterations = many"),
        ("--iterations", "99999999999999999999999999", "expected a whole number from 1 to 10000"),
        ("--workload", "pipetest:loops=0", "loops = 0; expected a whole number from 1 to"),
        ("--workload", "pipetest:loops=-5", "loops = -5"),
        ("--workload", "pipetest:loops=1.5", "loops = 1.5"),
        ("--workload", "pipetest:loops=18446744073709551616", "loops = 18446744073709551616"),
        ("--workload", "pipetest:loops=", "loops = ; expected"),
        ("--workload", "pipetest:loops", "found `loops`; expected key=value"),
        ("--workload", "pipetest:loops=5,loops=6", "the parameter `loops` for the second time"),
        ("--workload", "hackbench-pipes:groups=1+1", "groups = 1 for the second time"),
        ("--arm", "a=v4.15,sched_nr_migrate=0", "kernel.sched_nr_migrate = 0; expected a whole number from 1"),
        ("--arm", "a=v4.15,sched_nr_migrate=99999999999999999999", "expected a whole number from 1"),
        ("--arm", "a=v4.15,hz=60", "hz = 60; expected one of 100, 250, 300, 1000"),
        ("--arm", "=v4.15", "the arm's name ``"),
    ] {
        refused(&place, &with(option, value), &[part]);
    }
    let traced =
        |out, more: &[&'static str]| [&["trace"], &TINY[..4], &["--arm", "v4.15", "--out", out], more].concat();
    let trace = |more| traced("t", more);
    refused(&place, &trace(&["--from", "-1"]), &["--from -1: found `-1`; expected milliseconds"]);
    refused(&place, &trace(&["--to", "1e9"]), &["--to 1e9"]);
    refused(&place, &trace(&["--from", "5", "--to", "5"]), &["expected an end after the beginning"]);
    refused(&place, &trace(&["--from", "10.5", "--to", "5"]), &["found 10.5 ms to 5 ms; expected an end after"]);
    for format in ["perfetto", "ftrace", "gantt"] {
        for out in ["t", "-"] {
            let late = traced(out, &["--from", "100000", "--format", format]);
            let parts =
                ["--from and --to: found a beginning at 100000 ms, after the end of the run; expected --from below"];
            refused(&place, &late, &parts);
        }
    }
    refused(&place, &trace(&["--iterations", "2"]), &["iterations of a single run = 2"]);
    refused(&place, &with("--machine", "pack:2 l3:0 pu:2"), &["--machine pack:2 l3:0 pu:2, column"]);
    refused(&place, &[&["compare", "--jobs", "0"], TINY].concat(), &["--jobs 0: found jobs = 0"]);
    refused(&place, &[&["compare", "--seed", "-1"], TINY].concat(), &["--seed -1: found seed = -1"]);
}

#[test]
fn what_is_missing_or_too_much() {
    let place = folder("missing");
    refused(&place, &["compare"], &["found no machine; expected --machine"]);
    refused(&place, &["compare", "--machine", "host"], &["found no workload; expected --workload"]);
    refused(&place, &[&["compare"], &TINY[..4]].concat(), &["found no arm; expected two arms or more"]);
    refused(&place, &[&["compare"], &TINY[..6]].concat(), &["found a single arm"]);
    refused(&place, &[&["run"], TINY].concat(), &["found 2 arms; expected one"]);
    let twice = [&["compare"], &TINY[..6], &["--arm", "v4.15=v4.15", "--arm", "v4.15=v4.16"]].concat();
    refused(&place, &twice, &["found the arm `v4.15` for the second time; expected each arm once"]);
    let profile =
        ["profile", "--machine", "core-i7-3770", "--arm", "v4.15", "--workload", "hackbench-pipes:groups=1+2"];
    refused(&place, &profile, &["found 2 runs; expected one"]);
    refused(&place, &["trace", "--machine", "core-i7-3770"], &["--out"]);
}

#[test]
fn files_that_do_not_parse() {
    let place = folder("files");
    let refused_file = |name: &str, text: &str, arguments: &[&str], parts: &[&str]| {
        fs::write(place.join(name), text).unwrap();
        refused(&place, arguments, parts);
    };
    refused_file(
        "x.toml",
        "machine = \"core-i7",
        &["compare", "x.toml"],
        &["x.toml:1:19: found TOML that does not parse"],
    );
    refused_file("x.toml", "[[arm]]\nname = ", &["compare", "x.toml"], &["x.toml:2:"]);
    refused_file(
        "x.toml",
        "machin = 1",
        &["compare", "x.toml"],
        &["x.toml:1:1: found the unknown name `machin`", "`machine`, perhaps"],
    );
    refused(&place, &["compare", "none.toml"], &["none.toml: found no such file; expected an experiment file"]);
    refused(&place, &["compare", "."], &[".: found a folder"]);
    fs::write(place.join("bytes.toml"), b"# \xff").unwrap();
    refused(&place, &["compare", "bytes.toml"], &["bytes.toml:1:3: found bytes that are no UTF-8 text"]);
    let machine = |text: &str, parts: &[&str]| refused_file("m.xml", text, &with("--machine", "m.xml"), parts);
    machine(
        "<topology><object type=\"Machine\"",
        &["m.xml:1:33: found the end of the text inside <object>, which line 1, column 11 opens"],
    );
    machine("<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x1\"></object></topology>", &["m.xml:"]);
    machine("", &["m.xml:1:1: found an empty file"]);
    refused(&place, &with("--machine", "none.xml"), &["none.xml: found no such file"]);
    refused_file("m.toml", "name = \"x\"", &with("--machine", "m.toml"), &["m.toml:1:1: found no `description`"]);
    refused(&place, &with("--machine", "pack:9000 pu:1"), &["--machine pack:9000 pu:1", "8192"]);
    refused(&place, &["replay", "none.json"], &["none.json: found no such file"]);
    refused_file("r.json", "{}", &["replay", "r.json"], &["r.json:1:2: found no record"]);
}

#[test]
fn traces_that_cannot_be_replayed() {
    let place = folder("traces");
    let trace = |bytes: &[u8], parts: &[&str]| {
        fs::write(place.join("t.txt"), bytes).unwrap();
        refused(&place, &with("--workload", "trace:file=t.txt"), parts);
    };
    trace(b"", &["t.txt: found an empty file; expected a recorded trace"]);
    trace(b"hello\n", &["t.txt:1:1: found `hello`; expected lines as trace-cmd report"]);
    trace(b"\x7fELF\x02\x01", &["t.txt: found bytes that begin with 0x7f; expected a Perfetto trace"]);
    trace(b"\x17\x08\x44tracing6\0", &["t.txt: found a trace.dat; expected the text that trace-cmd report prints"]);
    let switch =
        "sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120\n";
    trace(
        format!("a-1 [000] 2.0: {switch}a-1 [000] 1.0: {switch}").as_bytes(),
        &["t.txt:2:1: found time going backwards on CPU 0"],
    );
    let far = format!("a-1 [063] 2.0: {switch}");
    trace(
        far.as_bytes(),
        &["t.txt:1:6: found CPU 63 for the task `a`; expected a recording of the machine's CPUs, 0 to 7"],
    );
    trace(b"a-1 [000] 2.0: sched_switch: prev_comm=a\n", &["t.txt:1:16: found sched_switch: prev_comm=a"]);
    refused(&place, &with("--workload", "trace"), &["found trace without a file; expected trace:file="]);
    refused(&place, &with("--workload", "trace:fiel=t.txt"), &["`fiel`", "`file`"]);
    refused(&place, &with("--workload", "trace:file=none"), &["none: found no such file; expected a recorded trace"]);
}

#[test]
fn rt_app_files_that_cannot_be_run() {
    let place = folder("rt-app");
    let rt_app = |text: &str, parts: &[&str]| {
        fs::write(place.join("a.json"), text).unwrap();
        refused(&place, &with("--workload", "rt-app:file=a.json"), parts);
    };
    rt_app("{ \"tasks\": { \"t\": { \"loop\": -1 } } }", &["a.json:1:"]);
    rt_app("{ \"tasks\": { \"t\": { \"rnu\": 5 } } }", &["a.json:1:", "\"run\""]);
    rt_app("{ \"tasks\": {", &["a.json:1:"]);
    rt_app("", &["a.json:1:1"]);
    let cpus = "{ \"tasks\": { \"t\": { \"loop\": 1, \"cpus\": [99], \"run\": 5 } } }";
    rt_app(cpus, &["a.json:1:", "CPU 99, but the machine has 8 CPUs"]);
    refused(
        &place,
        &with("--workload", "rt-app:file=none.json"),
        &["none.json: found no such file; expected an rt-app file"],
    );
    rt_app(
        "{ \"tasks\": { \"t\": { \"run\": 5, \"sleep\": 5 } } }",
        &["a.json:1:14: found the task \"t\", which never ends; expected \"duration\" in \"global\", or a \"loop\""],
    );
    // Messages of rt-app's reader are sentences, and stay so.
    rt_app(
        "{ \"tasks\": { \"t\": { \"loop\": 1, \"run\": true } } }",
        &["a.json:1:39: \"run\" is true; it should be a whole number of microseconds"],
    );
    let instant =
        "{ \"tasks\": { \"t\": { \"phases\": { \"p\": { \"yield\": 1 } } } }, \"global\": { \"duration\": 1 } }";
    rt_app(instant, &["a.json:1:33: \"t\" repeats endlessly at one instant", "give it a \"run\""]);
    rt_app(
        "{ \"tasks\": { \"t\": { \"run\": 5000000 } }, \"global\": { \"duration\": 1 } }",
        &[
            "a.json:1:14: found nothing to measure: \"t\" ended no round of its phases before the run ended; expected a task",
        ],
    );
    refused(&place, &with("--workload", "rt-app"), &["--workload rt-app, column 1: found rt-app without a file"]);
    refused(
        &place,
        &with("--workload", "rt-app:fil=a.json"),
        &["the unknown parameter `fil`; expected `file`, perhaps"],
    );
}

#[test]
fn a_run_that_is_too_short_for_a_figure_says_what_to_make_longer() {
    let place = folder("short");
    for (workload, time) in [
        ("tbench4-loadfile:milliseconds=1,warmup=0", "milliseconds = 1"),
        ("dbench4-loadfile:clients=64,ext4=1,runtime=1,write_us=100000,flush_us=100000", "runtime = 1"),
    ] {
        let found = format!("found nothing that ended in {time}; expected a larger ");
        refused(&place, &with("--workload", workload), &[&found]);
    }
}

#[test]
fn a_run_that_takes_too_long_is_given_up() {
    let place = folder("limit");
    let experiment = |limit: u32| {
        let workloads = "[[workload]]\nname = \"pipetest\"\nbatches = 1\nloops = [1, 100000]\n";
        let arms = "[[arm]]\nname = \"a\"\nkernel = \"v4.15\"\n[[arm]]\nname = \"b\"\nkernel = \"v4.16\"\n";
        let text = format!("machine = \"core-i7-3770\"\ntime_limit_ms = {limit}\niterations = 1\n{workloads}{arms}");
        fs::write(place.join("x.toml"), text).unwrap();
    };
    // The run starts within 10 ms: nothing ends before that.
    experiment(1);
    let limit = ["found it running after 1 ms of simulated time; expected it to end before"];
    refused(&place, &["run", "x.toml", "--arm", "a", "--workload", "pipetest"], &limit);
    refused(&place, &["run", "x.toml", "--arm", "a", "--workload", "pipetest", "--out", "out/of/it"], &limit);
    refused(&place, &["compare", "x.toml"], &limit);
    fs::create_dir(place.join("empty")).unwrap();
    refused(&place, &["compare", "x.toml", "--out", "empty"], &limit);
    // Runs that ended before the limit are kept, and a call with a larger limit continues from there.
    experiment(100);
    let partly = run(&place, &["compare", "x.toml", "--out", "out", "--jobs", "1"]);
    assert_eq!((partly.code, partly.stdout.as_str()), (2, ""), "{}", partly.stderr);
    assert!(partly.stderr.contains("running after 100 ms") && partly.stderr.contains("2 of 4 runs are kept in out"));
    assert!(fs::read_to_string(place.join("out/report.partial.txt")).unwrap().starts_with("PARTIAL: 2 of 4"));
    experiment(60_000);
    let whole = run(&place, &["compare", "x.toml", "--out", "out"]);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert!(whole.stderr.starts_with("note: 2 of 4 runs are taken from out\n"), "{}", whole.stderr);
}

#[test]
fn folders_that_are_not_ours() {
    let place = folder("folders");
    let to = |out: &'static str| [&["compare"], TINY, &["--out", out]].concat();
    fs::create_dir(place.join("foreign")).unwrap();
    fs::write(place.join("foreign/letter.txt"), "dear").unwrap();
    refused(&place, &to("foreign"), &["foreign: found a folder that is not empty and not ours"]);
    fs::write(place.join("file"), "text").unwrap();
    refused(&place, &to("file"), &["file: found a file of that name"]);
    refused(&place, &to("file/below"), &["file/below: cannot be written"]);
    fs::create_dir(place.join("marked")).unwrap();
    fs::write(place.join("marked/fairground.json"), "{}").unwrap();
    refused(&place, &to("marked"), &["marked: found a fairground.json that is not ours"]);
    // An empty folder may become ours; then another experiment may not have it.
    fs::create_dir(place.join("empty")).unwrap();
    assert_eq!(run(&place, &to("empty")).code, 0);
    let other = [&["compare"], TINY, &["--out", "empty", "--seed", "9"]].concat();
    refused(&place, &other, &["empty: found the results of another experiment"]);
    let trace = [&["trace"], &TINY[..4], &["--arm", "v4.15", "--out", "foreign"]].concat();
    refused(&place, &trace, &["foreign: cannot be written"]);
    let trace = [&["trace"], &TINY[..4], &["--arm", "v4.15", "--out", "no/such/folder/t"]].concat();
    refused(&place, &trace, &["no/such/folder/t: cannot be written"]);
}

/// Arguments that run a script file on one kernel.
fn script<'a>(command: &'a str, file: &'a str, kernel: &'a str) -> Vec<&'a str> {
    vec![command, "--machine", "core-i7-3770", "--workload", file, "--arm", kernel, "--quiet"]
}

#[test]
fn groups_that_a_kernel_refuses() {
    let place = folder("groups");
    for (kernel, group, parts) in [
        ("v6.12", "cpu.weight 0", ["s.txt:2:11: found `0` for cpu.weight of /g, which v6.12 refuses: ERANGE", "10000"]),
        ("v6.12", "cpu.weight 20000", ["s.txt:2:11: found `20000` for cpu.weight", "from 1 to 10000"]),
        ("v6.12", "cpu.max 500 100000", ["s.txt:2:11: found `500 100000` for cpu.max", "a quota is at least 1 ms"]),
        ("v6.12", "cpu.max 5000; cpu.max.burst 9000", ["s.txt:2:25: found `9000`", "a burst is at most the quota"]),
        ("v6.12", "cpu.uclamp.min 101", ["s.txt:2:11: found `101` for cpu.uclamp.min", "a percentage from 0 to 100"]),
        ("v6.12", "cpu.stat 1", ["s.txt:2:11: found cpu.stat, which v6.12 has for reading only", "cpu.weight"]),
        (
            "v4.15",
            "cpu.shares 100",
            [
                "s.txt:2:11: found cpu.shares, which v4.15 with cgroup v2 does not have; expected one of cpu.weight",
                "cgroup.files=legacy",
            ],
        ),
        ("v4.15", "cpu.idle 1", ["s.txt:2:11: found cpu.idle, which v4.15 does not have", "cpu.max"]),
        ("v4.5-rc1", "cpu.weight 3", ["s.txt:2:11: found cpu.weight, which v4.5-rc1 does not have", "cpu.shares"]),
    ] {
        fs::write(place.join("s.txt"), format!("\ngroup /g: {group}\ntask a group=/g: run 1ms\n")).unwrap();
        refused(&place, &script("run", "script:file=s.txt", kernel), &parts);
    }
    // The refusal comes before the first run of a comparison, although its first arm would accept the group.
    fs::write(place.join("s.txt"), "group /g: cpu.shares 100\ntask a group=/g: run 1ms\n").unwrap();
    let two = [script("compare", "script:file=s.txt", "v4.5-rc1"), vec!["--arm", "v4.15"]].concat();
    refused(&place, &two, &["s.txt:1:11: found cpu.shares, which v4.15 with cgroup v2 does not have"]);
    // What the message suggests is right.
    for kernel in ["legacy=v4.15,cgroup.files=legacy", "legacy=v6.12,cgroup.files=legacy"] {
        let said = run(&place, &script("run", "script:file=s.txt", kernel));
        assert_eq!(said.code, 0, "{}", said.stderr);
    }
}

#[test]
fn tasks_that_a_machine_or_a_kernel_refuses() {
    let place = folder("tasks");
    for (task, parts) in [
        ("task a cpus=99: run 1ms", ["s.txt:1:13: found CPU 99 for the task `a`", "CPUs of the machine, 0 to 7"]),
        ("task a policy=deadline: run 1ms", ["s.txt:1:15: found `deadline`", "RUNTIME/DEADLINE"]),
        ("task a policy=deadline/20ms/10ms: run 1ms", ["\"a\" of line 1 has no row", "refused its policy with EINVAL"]),
        (
            "task a policy=deadline/2ms/10ms cpus=0: run 1ms",
            ["\"a\" of line 1 has no row", "refused its policy with EPERM"],
        ),
        ("task a: enter /g/..", ["s.txt:1:15: found `/g/..`", "a group's path"]),
    ] {
        fs::write(place.join("s.txt"), format!("{task}\n")).unwrap();
        refused(&place, &script("run", "script:file=s.txt", "v6.12"), &parts);
    }
    // A task that fails admission is reported; the others run.
    fs::write(place.join("s.txt"), "task a count=9 policy=deadline/9900us/10ms: sleep 30ms; run 5ms\n").unwrap();
    let said = run(&place, &script("run", "script:file=s.txt", "v6.12"));
    assert_eq!(said.code, 0, "{}", said.stderr);
    let told = "\"a8\" of line 1 has no row: the kernel refused its policy with EBUSY (device or resource busy) at ";
    assert!(said.stdout.contains(told), "{}", said.stdout);
    assert!(!said.stdout.contains("\"a0\" of line 1"), "{}", said.stdout);
}

#[test]
fn rt_app_tasks_that_cannot_be() {
    let place = folder("rt-app-tasks");
    let deadline = "\"policy\": \"SCHED_DEADLINE\"";
    for (member, parts) in [
        ("\"cpus\": [99]".to_string(), ["a.json:1:37: ", "CPU 99, but the machine has 8 CPUs"]),
        ("\"util_min\": 600, \"util_max\": 500".to_string(), ["a.json:1:", "util_min should not be above util_max"]),
        (
            "\"nodes_membind\": [1]".to_string(),
            ["a.json:1:", "\"nodes_membind\" names node 1, but the machine has 1 node"],
        ),
        ("\"nodes_membind\": [], \"mem\": 64".to_string(), ["a.json:1:", "\"nodes_membind\""]),
        ("\"taskgroup\": \"/a/../b\"".to_string(), ["a.json:1:", "names with one \"/\" before each"]),
        (
            format!("{deadline}, \"dl-runtime\": 20000, \"dl-period\": 9000"),
            ["a.json:1:", "runtime <= deadline <= period must hold"],
        ),
        (deadline.to_string(), ["a.json:1:", "SCHED_DEADLINE without \"dl-runtime\""]),
    ] {
        let text = format!("{{\"tasks\": {{\"a\": {{\"loop\": 1, {member}, \"run\": 100}}}}}}");
        fs::write(place.join("a.json"), text).unwrap();
        refused(&place, &script("run", "rt-app:file=a.json", "v6.12"), &parts);
    }
}
