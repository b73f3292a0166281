//! The kernel's formats, read back by small readers that know nothing of the writers, as tools for real machines do.

mod program;

use program::{folder, run_well};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The text of a file of the simulated machine, which has two CPUs, in the middle of a script.
fn file(place: &Path, script: &str, arm: &str, file: &str) -> String {
    fs::write(place.join("script.txt"), script).unwrap();
    let machine = ["proc", "--machine", "pack:1 l3:1 core:2 pu:1", "--workload", "script:file=script.txt"];
    run_well(place, &[&machine[..], &["--arm", arm, "--file", file, "--at", "210", "--quiet"]].concat()).stdout
}

/// Three hogs of different weight on CPU 1, as in the recordings.
const HOGS: &str = "\
task hog0 cpus=1: spin 3s
task hog1 nice=5 cpus=1: spin 3s
task hog2 nice=-5 cpus=1: spin 3s
";

/// A block of `/proc/sched_debug`: its heading, and its fields in order.
type Block = (String, Vec<(String, String)>);

/// Headings begin at the margin; fields are `  .name : value`; tables have neither.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in text.lines() {
        if let Some(field) = line.strip_prefix("  .") {
            let (name, value) = field.split_once(": ").expect("a name and a value");
            blocks.last_mut().expect("a heading").1.push((name.trim_end().to_string(), value.to_string()));
        } else if line.ends_with(':')
            || line.starts_with("cfs_rq[")
            || line.starts_with("cpu#")
            || line == "sysctl_sched"
        {
            blocks.push((line.to_string(), Vec::new()));
        }
    }
    blocks
}

fn names(block: &Block) -> Vec<&str> {
    block.1.iter().map(|(name, _)| name.as_str()).collect()
}

/// The rows of the table of CPU `cpu`, split into columns.
fn rows(text: &str, cpu: usize) -> Vec<Vec<String>> {
    let table = text.split("runnable tasks:\n").nth(cpu + 1).expect("a table for each CPU");
    let rows = table.lines().skip(2).take_while(|line| !line.is_empty());
    rows.map(|row| row.split_whitespace().map(String::from).collect()).collect()
}

/// Removes every number, because the numbers in two texts need not be equal.
fn shape(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit() || c == '-', "")
}

#[test]
fn sched_debug_has_the_lines_of_recorded_kernels() {
    let place = folder("sched-debug");
    for (kernel, recorded) in [
        ("v6.1", include_str!("formats/sched-debug-v6.1.txt")),
        ("v6.12", include_str!("formats/sched-debug-v6.12.txt")),
    ] {
        let ours = file(&place, HOGS, kernel, "/sys/kernel/debug/sched/debug");
        let (ours_blocks, theirs) = (blocks(&ours), blocks(recorded));
        // The recording's first CPU was shortened when it was made.
        for at in ["sysctl_sched", "cpu#1", "cfs_rq[1]:/", "rt_rq[1]:", "dl_rq[1]:"] {
            let find = |blocks: &[Block]| blocks.iter().find(|(head, _)| head.starts_with(at)).cloned().expect(at);
            let (ours, theirs) = (find(&ours_blocks), find(&theirs));
            assert_eq!(names(&ours), names(&theirs), "{kernel} {at}");
            for (ours, theirs) in ours.1.iter().zip(&theirs.1).filter(|(_, theirs)| theirs.1.contains(['.', '('])) {
                assert_eq!(shape(&ours.1), shape(&theirs.1), "{kernel} {at} {}", ours.0);
            }
        }
        let head = |text: &str| text.lines().skip(1).take(5).map(shape).collect::<Vec<_>>();
        assert_eq!(head(&ours), head(recorded), "{kernel}");
        let heads = |text: &str| -> Vec<String> {
            text.lines().filter(|line| line.contains("  prio ") || line.starts_with("---")).map(String::from).collect()
        };
        assert_eq!(heads(&ours)[..2], heads(recorded)[..2], "{kernel}");
        let hog =
            |text: &str, cpu| rows(text, cpu).into_iter().find(|row| row.iter().any(|cell| cell == "hog1")).unwrap();
        // The recording has the table of only one CPU.
        let (ours, theirs) = (hog(&ours, 1), hog(recorded, 0));
        assert_eq!(ours.len(), theirs.len(), "{kernel}: {ours:?}");
        let shapes = |row: &[String]| row.iter().map(|cell| shape(cell)).collect::<Vec<_>>();
        assert_eq!(shapes(&ours)[4..], shapes(&theirs)[4..], "{kernel}");
    }
}

#[test]
fn sched_debug_of_older_kernels_has_the_fields_of_their_trees() {
    let place = folder("sched-debug-v4");
    let script = format!("{HOGS}task other cpus=1 group=/g: spin 3s\n");
    for (kernel, idle, queue, realtime, deadline, columns) in
        [("v4.5-rc1", 2, 18, 4, 1, 11), ("v4.15", 2, 20, 5, 4, 12), ("on=v4.15,schedstats=enable", 2, 20, 5, 4, 12)]
    {
        let text = file(&place, &script, kernel, "/proc/sched_debug");
        assert!(text.starts_with("Sched Debug Version: v0.11, 4."), "{text}");
        let blocks = blocks(&text);
        let of = |at: &str| blocks.iter().find(|(head, _)| head.starts_with(at)).expect(at);
        let counted = if kernel == "v4.15" { 0 } else { 5 };
        assert_eq!(names(of("cpu#1")).len(), 14 + idle + counted, "{kernel}");
        assert_eq!(
            names(of("cfs_rq[1]:/g")).len(),
            queue + if kernel == "v4.5-rc1" { 16 } else { 8 + 2 * counted },
            "{kernel}"
        );
        assert_eq!(blocks.iter().filter(|(head, _)| head == "cfs_rq[1]:/").count(), 1);
        assert_eq!(names(of("rt_rq[1]")).len(), realtime);
        assert_eq!(names(of("dl_rq[1]")).len(), deadline);
        let rows = rows(&text, 1);
        let running: Vec<_> =
            rows.iter().filter(|row| row[0].ends_with('R') && row[0] != "R" || row[0].starts_with("Rh")).collect();
        let who = |row: &Vec<String>| row.iter().find(|cell| cell.contains("hog") || cell.contains("other")).cloned();
        assert!(rows.iter().filter(|row| who(row).is_some()).count() == 4, "{kernel}: {rows:?}");
        assert!(running.len() <= 1, "{rows:?}");
        let sleeper = rows.iter().find(|row| row.iter().any(|cell| cell.starts_with("migration"))).expect("a stopper");
        assert_eq!(sleeper.len(), columns, "{kernel}: {sleeper:?}");
        let curr: BTreeMap<_, _> = of("cpu#1").1.iter().cloned().collect();
        assert!(rows.iter().any(|row| row.contains(&curr["curr->pid"])), "who runs is in the table");
    }
}

#[test]
fn sched_debug_of_v7_2_has_the_queue_fields_of_its_tree() {
    let place = folder("sched-debug-v7");
    let blocks = blocks(&file(&place, HOGS, "v7.2", "/sys/kernel/debug/sched/debug"));
    let (_, fields) = blocks.iter().find(|(head, _)| head == "cfs_rq[1]:/").expect("the queue of the hogs");
    let expected = "left_deadline left_vruntime zero_vruntime sum_w_vruntime sum_weight sum_shift avg_vruntime right_vruntime spread \
                    nr_queued h_nr_runnable h_nr_queued h_nr_idle load load_avg runnable_avg util_avg util_est removed.load_avg \
                    removed.util_avg removed.runnable_avg tg_load_avg_contrib tg_load_avg throttled throttle_count";
    assert!(fields.iter().map(|(name, _)| name.as_str()).eq(expected.split_whitespace()), "{fields:?}");
    let value = |name: &str| fields.iter().find(|(field, _)| field == name).expect(name).1.as_str();
    assert_eq!([value("nr_queued"), value("h_nr_queued"), value("h_nr_idle")], ["3", "3", "0"]);
    let (sum, bits) = value("sum_w_vruntime").split_once(" (").expect("a number and its length");
    let length = sum.parse::<i64>().expect("a number").unsigned_abs().checked_ilog2().map_or(-1, i64::from);
    assert_eq!(format!("{length} bits)"), bits);
}

/// `some avg10=1.23 avg60=... total=N`, by the name of its line.
fn pressure(text: &str) -> BTreeMap<String, BTreeMap<String, f64>> {
    let line = |line: &str| {
        let (name, fields) = line.split_once(' ').expect("a name");
        let field = |field: &str| {
            let (key, value) = field.split_once('=').expect("a key and a value");
            (key.to_string(), value.parse().expect("a number"))
        };
        (name.to_string(), fields.split(' ').map(field).collect())
    };
    text.lines().map(line).collect()
}

#[test]
fn pressure_is_that_of_the_hogs_that_share_a_cpu() {
    let place = folder("pressure");
    let script = "task inside cpus=1 group=/g: spin 20s\ntask outside cpus=1: spin 20s\n";
    fs::write(place.join("script.txt"), script).unwrap();
    let files =
        ["/proc/pressure/cpu", "/sys/fs/cgroup/g/cpu.pressure", "/proc/pressure/io", "/sys/fs/cgroup/g/cpu.stat"];
    for kernel in ["on=v6.1", "on=v6.12,psi=1"] {
        let machine =
            ["proc", "--machine", "pack:1 l3:1 core:2 pu:1", "--workload", "script:file=script.txt", "--quiet"];
        let read = files.iter().flat_map(|file| ["--file", file]).collect::<Vec<_>>();
        let text = run_well(&place, &[&machine[..], &read, &["--arm", kernel, "--at", "12000"]].concat()).stdout;
        let parts: Vec<&str> =
            text.split("==> ").skip(1).map(|part| part.split_once(" <==\n").unwrap().1.trim()).collect();
        let (system, group, io) = (pressure(parts[0]), pressure(parts[1]), pressure(parts[2]));
        assert_eq!(system.keys().collect::<Vec<_>>(), ["full", "some"]);
        assert_eq!(system["some"].keys().collect::<Vec<_>>(), ["avg10", "avg300", "avg60", "total"]);
        // Both hogs exist from the first 10 ms on: six periods of 2.004 s, all but the first of them whole. The group's
        // hog waits half of the time, and nothing else of the group runs then.
        for (key, seconds) in [("avg10", 10.0), ("avg60", 60.0), ("avg300", 300.0)] {
            let expected = 100.0 * (1.0 - (-2.0_f64 * 5.0 / seconds).exp());
            assert!((system["some"][key] - expected).abs() < 3.0, "{kernel}: {key}: {parts:?}, {expected}");
            assert!((group["some"][key] - expected / 2.0).abs() < 3.0, "{kernel}: {key}: {parts:?}");
            assert_eq!(system["full"][key], 0.0);
        }
        assert!((system["some"]["total"] - 11.99e6).abs() < 0.02e6, "{kernel}: {parts:?}");
        assert!((group["some"]["total"] - 6e6).abs() < 0.02e6, "{kernel}: {parts:?}");
        assert_eq!(group["full"], group["some"], "who waits has nobody of the group beside it");
        assert_eq!(io["some"]["total"], 0.0);
        let usage = parts[3].lines().find_map(|line| line.strip_prefix("usage_usec ")).expect("cpu.stat");
        assert!((usage.parse::<f64>().unwrap() - 6e6).abs() < 0.02e6, "{kernel}: {usage}");
    }
    let refused = program::run(
        &place,
        &[
            "proc",
            "--machine",
            "pack:1 l3:1 core:2 pu:1",
            "--workload",
            "script:file=script.txt",
            "--arm",
            "off=v6.1,psi=0",
            "--at",
            "20",
            "--file",
            "/proc/pressure/cpu",
        ],
    );
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("EOPNOTSUPP") && refused.stderr.contains("psi=0"), "{}", refused.stderr);
}

#[test]
fn a_run_shows_how_its_groups_were_throttled() {
    let place = folder("cpu-stat");
    let script = "group /half: cpu.max 50000 100000\ntask hog group=/half: run 600ms\n";
    fs::write(place.join("script.txt"), script).unwrap();
    let machine = ["run", "--machine", "pack:1 l3:1 core:2 pu:1", "--workload", "script:file=script.txt", "--quiet"];
    for (kernel, fields) in [("v4.15", 6), ("v6.1", 8), ("v6.12", 9)] {
        let text = run_well(&place, &[&machine[..], &["--arm", kernel]].concat()).stdout;
        let stat = text.split("cpu.stat of /half\n").nth(1).unwrap_or_else(|| panic!("{kernel}: {text}"));
        let stat: BTreeMap<&str, u64> = stat
            .lines()
            .map_while(|line| line.split_once(' '))
            .map(|(key, value)| (key, value.parse().unwrap()))
            .collect();
        assert_eq!(stat.len(), fields, "{kernel}: {stat:?}");
        assert!(
            (11..=13).contains(&stat["nr_periods"]) && stat["nr_periods"] - stat["nr_throttled"] <= 2,
            "{kernel}: {stat:?}"
        );
        assert!((500_000..=620_000).contains(&stat["throttled_usec"]), "{kernel}: {stat:?}");
        assert!(stat["usage_usec"].abs_diff(600_000) < 5_000, "{kernel}: {stat:?}");
        assert!(stat["system_usec"] < 20_000, "{kernel}: {stat:?}");
    }
}

#[test]
fn time_in_system_calls_is_system_time_of_its_group() {
    let place = folder("cpu-stat-system");
    let script = "group /calls: cpu.max 90000 100000\ntask caller group=/calls nice=5: 100000 x (yield); run 50ms\n";
    fs::write(place.join("script.txt"), script).unwrap();
    let machine = ["run", "--machine", "xeon-e5-2670v3-2s", "--workload", "script:file=script.txt", "--quiet"];
    for kernel in ["v4.15", "v6.12"] {
        let text = run_well(&place, &[&machine[..], &["--arm", kernel]].concat()).stdout;
        let stat = text.split("cpu.stat of /calls\n").nth(1).unwrap_or_else(|| panic!("{kernel}: {text}"));
        let of = |key: &str| -> Option<u64> {
            stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
        };
        let [usage, user, system] = ["usage_usec", "user_usec", "system_usec"].map(|key| of(key).expect("cpu.stat"));
        assert!(usage.abs_diff(user + system) <= 1, "{kernel}: {stat}");
        assert!((40_000..=70_000).contains(&user), "{kernel}: {stat}");
        // These are counted by ticks, where run time is exact.
        assert!(kernel != "v6.12" || of("nice_usec").expect("nice_usec").abs_diff(user) <= 12_000, "{kernel}: {stat}");
    }
}

/// The pair of the recording: 50 rounds of 200 us of work on each side, with a pipe for each direction.
const PAIR: &str = "\
task pt-A cpus=0: 50 x (run 200us; write there; read back)
task pt-B cpus=1: 50 x (read there; run 200us; write back)
task other: 40 x (sleep 2ms); sleep 7ms; sleep 700ms
";

/// The records of a latency file: count, sum and maximum in us, and the place, the innermost function first.
fn latencies(text: &str) -> Vec<(u64, u64, u64, Vec<&str>)> {
    let records = text.strip_prefix("Latency Top version : v0.1\n").expect("the version").lines();
    let record = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse().expect("a number");
        assert!(line.len() > words[..3].join(" ").len(), "a place behind the numbers: {line}");
        (number(0), number(1), number(2))
    };
    records
        .map(|line| {
            let (count, sum, max) = record(line);
            (count, sum, max, line.split(' ').skip(3).collect())
        })
        .collect()
}

#[test]
fn latencytop_tells_where_tasks_slept() {
    let place = folder("latencytop");
    let read = |arm: &str, path: &str| file(&place, PAIR, arm, path);
    for (kernel, innermost, outermost) in [
        ("v4.5-rc1", "pipe_wait", "entry_SYSCALL_64_fastpath"),
        ("v4.15", "pipe_wait", "entry_SYSCALL_64_fastpath"),
        ("v6.12", "pipe_read", "entry_SYSCALL_64_after_hwframe"),
    ] {
        let arm = format!("on={kernel},kernel.latencytop=1");
        let text = read(&arm, "/proc/latency_stats");
        let records = latencies(&text);
        // A third record is the wait of the task that starts the others, unless it ended before one of them ran.
        assert!((2..=3).contains(&records.len()), "{kernel}: {text}");
        assert!(records.get(2).is_none_or(|record| record.3.contains(&"do_wait")), "{kernel}: {text}");
        // Recorded from a real 6.1 with latencytop, other tasks' pipes included: 107 sleeps in pipe_read, 23239 us,
        // the longest 669. In v6.12 some are woken before they have left the queue, and did not sleep.
        let (count, sum, max, names) = records.iter().find(|record| record.3.contains(&"pipe_read")).expect("readers");
        assert!(
            (80..=100).contains(count) && (18_000..=32_000).contains(sum) && (200..=400).contains(max),
            "{kernel}: {text}"
        );
        let at =
            names.iter().position(|name| *name == innermost || name.starts_with("prepare_to_wait")).expect("the place");
        assert!(at <= 1 && names.last() == Some(&outermost), "{kernel}: {text}");
        // Sleeps of more than 5 ms are what the task asked for, not latency.
        let (count, _, max, _) = records.iter().find(|record| record.3.contains(&"do_nanosleep")).expect("a sleeper");
        assert!(*count == 40 && *max < 5000, "{kernel}: {text}");
        assert_eq!(latencies(&read(&arm, "/proc/other/latency")).len(), 1);
        // latencytop has turned schedstats on.
        assert!(read(&arm, "/proc/other/sched").contains("wait_sum"), "{kernel}");
    }
    assert_eq!(read("v4.15", "/proc/latency_stats"), "Latency Top version : v0.1\n");
}

#[test]
fn a_profile_of_the_scheduler_has_readprofiles_lines() {
    let place = folder("profile");
    let text = file(&place, PAIR, "on=v4.15,profile=schedule", "/proc/profile");
    let lines: Vec<(u64, &str)> = text
        .lines()
        .map(|line| line.trim_start().split_once(' ').expect("hits and a name"))
        .map(|(hits, name)| (hits.parse().expect("a number"), name))
        .collect();
    assert_eq!(lines.iter().map(|line| line.1).collect::<Vec<_>>(), ["schedule", "total"], "{text}");
    assert!(lines[0].0 == lines[1].0 && lines[0].0 > 150, "{text}");
    // No task of the pair sleeps uninterruptibly: the histogram is empty, and schedstats are on.
    assert_eq!(file(&place, PAIR, "on=v4.16,profile=sleep", "/proc/profile"), "     0 total\n");
    assert!(file(&place, PAIR, "on=v4.16,profile=sleep", "/proc/other/sched").contains("wait_sum"));
    let machine = ["proc", "--machine", "pack:1 l3:1 core:2 pu:1", "--workload", "script:file=script.txt"];
    for (arm, part) in [
        ("a=v6.1,profile=sleep", "profile=sleep, which does nothing in v6.1"),
        ("a=v4.15,psi=1", "`psi`, which v4.15 does not have; expected a kernel that has it (v5.4, v5.10, v5.15, v6.1"),
        ("a=v6.1,psi=2", "found the unknown value of psi `2`"),
    ] {
        let said = program::run(&place, &[&machine[..], &["--arm", arm, "--file", "/proc/profile"]].concat());
        assert_eq!(said.code, 2);
        assert!(said.stderr.contains(part), "{}", said.stderr);
    }
}

#[test]
fn a_tasks_file_ends_with_what_its_policy_is_served_by() {
    let place = folder("policies");
    let script = "task edf policy=deadline/2ms/10ms: 40 x (run 1ms; every 10ms)\ntask fair slice=5ms: run 300ms\n";
    let behind_prio = |kernel: &str, task: &str| -> Vec<(String, i64)> {
        let text = file(&place, script, kernel, &format!("/proc/{task}/sched"));
        let lines = text.lines().skip_while(|line| !line.starts_with("prio ")).skip(1);
        let fields = lines.take_while(|line| !line.starts_with("clock-delta")).map(|line| {
            let (name, value) = line.split_once(':').expect("name : value");
            (name.trim().to_string(), value.trim().parse().expect("a number"))
        });
        fields.collect()
    };
    for kernel in ["v4.15", "v4.16", "v6.1", "v6.12"] {
        let fields = behind_prio(kernel, "edf");
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["dl.runtime", "dl.deadline"], "{kernel}");
        assert!(fields[0].1 <= 2_000_000 && fields[1].1 > 200_000_000, "{kernel}: {fields:?}");
    }
    assert_eq!(behind_prio("v4.5-rc1", "edf"), []);
    assert_eq!(behind_prio("v6.1", "fair"), []);
    assert_eq!(behind_prio("v6.12", "fair"), [("se.slice".to_string(), 5_000_000)]);
}

#[test]
fn schedstat_has_the_fields_of_its_version() {
    let place = folder("schedstat");
    for (kernel, version) in [("v4.5-rc1", 15), ("v4.15", 15), ("v4.16", 15), ("v6.1", 15), ("v6.12", 16)] {
        let on = if kernel == "v4.5-rc1" { kernel.to_string() } else { format!("on={kernel},schedstats=enable") };
        let text = file(&place, PAIR, &on, "/proc/schedstat");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(format!("version {version}").as_str()));
        assert!(lines.next().and_then(|line| line.strip_prefix("timestamp ")).expect("jiffies").parse::<u64>().is_ok());
        let (mut cpus, mut domains) = (0, 0);
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let numbers =
                |from: usize| words[from..].iter().map(|word| word.parse::<u64>().expect("a counter")).collect();
            if words[0].starts_with("cpu") {
                let counters: Vec<u64> = numbers(1);
                assert_eq!(counters.len(), 9, "{kernel}: {line}");
                // Switches, time run, time waited and slices count with and without statistics; wakeups with them only.
                assert!(counters[2] > 0 && counters[6] > 0 && counters[8] > 0, "{kernel}: {line}");
                cpus += 1;
            } else {
                assert_eq!(words[0], "domain0", "{kernel}: {line}");
                let counters: Vec<u64> = numbers(2);
                assert_eq!((words[1], counters.len()), ("3", 36), "{kernel}: {line}");
                domains += 1;
            }
        }
        assert_eq!((cpus, domains), (2, 2), "{kernel}");
        let switched = |text: &str| -> u64 {
            let wakeups = |line: &str| line.split(' ').nth(5).unwrap().parse::<u64>().unwrap();
            text.lines().filter(|line| line.starts_with("cpu")).map(wakeups).sum()
        };
        assert!(switched(&text) >= 140, "{kernel}: {text}");
        if kernel != "v4.5-rc1" {
            assert_eq!(switched(&file(&place, PAIR, kernel, "/proc/schedstat")), 0, "{kernel}: off");
        }
    }
}

#[test]
fn a_tasks_files_are_read_by_their_names() {
    let place = folder("task-files");
    for kernel in ["v4.5-rc1", "v4.15", "v4.16", "v6.1", "v6.12"] {
        let on = if kernel == "v4.5-rc1" { kernel.to_string() } else { format!("on={kernel},schedstats=enable") };
        let text = file(&place, PAIR, &on, "/proc/other/sched");
        let mut lines = text.lines();
        let head = lines.next().expect("a head");
        let (comm, rest) = head.split_once(" (").expect("name and pid");
        assert!(comm == "other" && rest.ends_with(", #threads: 1)"), "{head}");
        assert_eq!(lines.next(), Some("-".repeat(67).as_str()));
        let fields: BTreeMap<&str, f64> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim_end(), value.trim().parse().expect("a number")))
            .collect();
        let prefix = if kernel.starts_with("v4") { "se.statistics." } else { "" };
        let of = |name: &str| fields[format!("{prefix}{name}").as_str()];
        // 40 sleeps of 2 ms, one of 7 ms, and one that is still going on.
        assert_eq!((of("nr_wakeups"), of("nr_wakeups_local") + of("nr_wakeups_remote")), (41.0, 41.0), "{kernel}");
        assert!(
            (of("sum_sleep_runtime") - 87.0).abs() < 5.0 && (of("sleep_max") - 7.0).abs() < 0.2,
            "{kernel}: {text}"
        );
        assert_eq!(fields["nr_switches"], 42.0, "{kernel}: {text}");
        assert_eq!((fields["policy"], fields["prio"]), (0.0, 120.0));
        // /proc/PID/schedstat: run, waited, slices. The first is also checked above, in ms.
        let stat = file(&place, PAIR, &on, "/proc/other/schedstat");
        let stat: Vec<u64> = stat.trim_end().split(' ').map(|word| word.parse().expect("a counter")).collect();
        assert_eq!((stat.len(), stat[2]), (3, 42), "{kernel}: {stat:?}");
        assert!((stat[0] as f64 / 1e6 - fields["se.sum_exec_runtime"]).abs() < 1e-6, "{kernel}");
    }
}

/// One line of ftrace's text, split as scripts do it.
struct Line<'a> {
    pid: u32,
    cpu: usize,
    flags: &'a str,
    event: &'a str,
    fields: Vec<(&'a str, &'a str)>,
}

fn line_of_trace(line: &str) -> Line<'_> {
    let (context, rest) = line.split_once(" [").expect("a CPU");
    let (_, pid) = context.trim_end().rsplit_once('-').expect("a pid");
    let (cpu, rest) = rest.split_once("] ").expect("the CPU's end");
    let mut parts = rest.splitn(2, ": ");
    let mut head = parts.next().expect("flags and time").split_whitespace();
    let (flags, time) = (head.next().expect("flags"), head.next().expect("a time"));
    assert_eq!(time.split_once('.').expect("seconds").1.len(), 6, "{line}");
    let (event, body) = parts.next().expect("an event").split_once(": ").expect("its fields");
    // A time is followed by a blank and its unit.
    let words = body.split(' ').filter(|word| *word != "==>" && *word != "[ns]");
    let fields = words.map(|word| word.trim_matches(['[', ']']).split_once('=').expect("name=value")).collect();
    Line { pid: pid.parse().expect("a pid"), cpu: cpu.parse().expect("a CPU"), flags, event, fields }
}

/// The fields of each event, from the trees' include/trace/events/{sched,power,irq}.h and x86's irq_vectors.h.
fn fields_of(event: &str, kernel: &str) -> Vec<&'static str> {
    match event {
        "sched_switch" => {
            vec!["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"]
        }
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => vec!["comm", "pid", "prio", "target_cpu"],
        "sched_migrate_task" => vec!["comm", "pid", "prio", "orig_cpu", "dest_cpu"],
        "sched_process_fork" => vec!["comm", "pid", "child_comm", "child_pid"],
        "sched_process_exec" => vec!["filename", "pid", "old_pid"],
        "sched_process_exit" | "sched_process_free" | "sched_process_wait" => vec!["comm", "pid", "prio"],
        "sched_stat_wait" | "sched_stat_sleep" | "sched_stat_blocked" => vec!["comm", "pid", "delay"],
        "sched_stat_runtime" if matches!(kernel, "v6.12" | "v6.18" | "v7.2") => vec!["comm", "pid", "runtime"],
        "sched_stat_runtime" => vec!["comm", "pid", "runtime", "vruntime"],
        "sched_wake_idle_without_ipi" => vec!["cpu"],
        "cpu_idle" | "cpu_frequency" => vec!["state", "cpu_id"],
        "softirq_raise" | "softirq_entry" | "softirq_exit" => vec!["vec", "action"],
        "irq_handler_entry" => vec!["irq", "name"],
        "irq_handler_exit" => vec!["irq", "ret"],
        "local_timer_entry" | "local_timer_exit" | "reschedule_entry" | "reschedule_exit" => vec!["vector"],
        other => panic!("{other} was not asked for"),
    }
}

#[test]
fn ftraces_text_has_each_kernels_columns_and_fields() {
    let place = folder("ftrace");
    fs::write(place.join("script.txt"), PAIR.replace("sleep 700ms", "exec; sleep 7ms")).unwrap();
    let later = ["v6.1", "v6.12", "v6.18", "v7.2"].map(|kernel| (kernel, 5, "236"));
    for (kernel, columns, timer) in [("v4.5-rc1", 4, "239"), ("v4.16", 4, "237")].into_iter().chain(later) {
        let machine =
            ["trace", "--machine", "pack:1 l3:1 core:2 pu:1", "--workload", "script:file=script.txt", "--quiet"];
        let arm = if kernel == "v4.5-rc1" { kernel.to_string() } else { format!("on={kernel},schedstats=enable") };
        let more = ["--arm", &arm, "--format", "ftrace", "--out", "-"];
        let text = run_well(&place, &[&machine[..], &more].concat()).stdout;
        let mut running = [0; 2];
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let read = line_of_trace(line);
            *seen.entry(read.event.to_string()).or_default() += 1;
            assert_eq!(read.flags.len(), columns, "{kernel}: {line}");
            let names: Vec<&str> = read.fields.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, fields_of(read.event, kernel), "{kernel}: {line}");
            assert_eq!(read.pid, running[read.cpu], "{kernel}: who runs passes what is passed: {line}");
            assert!(!read.event.starts_with("local_timer") || read.fields[0].1 == timer, "{kernel}: {line}");
            if read.event == "sched_switch" {
                let pid = |at: usize| read.fields[at].1.parse::<u32>().expect("a pid");
                assert_eq!(pid(1), running[read.cpu], "{kernel}: {line}");
                running[read.cpu] = pid(5);
            }
        }
        assert_eq!(running, [0, 0], "{kernel}: all is over");
        for event in ["fork", "exec", "exit", "free", "wait"].map(|event| format!("sched_process_{event}")) {
            assert!(seen.contains_key(&event), "{kernel}: {event}: {seen:?}");
        }
        for kind in ["local_timer", "softirq"] {
            let of = |end: &str| seen.get(&format!("{kind}_{end}")).copied().unwrap_or(0);
            assert!(of("entry") > 0 && of("entry") == of("exit"), "{kernel}: {kind}: {seen:?}");
        }
        assert!(
            seen["sched_stat_sleep"] > 100 && seen["sched_wakeup"] >= seen["sched_stat_sleep"],
            "{kernel}: {seen:?}"
        );
    }
}

#[test]
fn latencytop_in_the_middle_of_a_run_turns_statistics_on() {
    let place = folder("latencytop-timeline");
    fs::write(place.join("script.txt"), PAIR).unwrap();
    let experiment = "\
machine = \"pack:1 l3:1 core:2 pu:1\"
[[workload]]
name = \"script\"
file = \"script.txt\"
[[arm]]
name = \"new\"
kernel = \"v4.15\"
[[timeline]]
at = \"10ms\"
sysctl.kernel.latencytop = 1
";
    fs::write(place.join("x.toml"), experiment).unwrap();
    let read = |path: &str| run_well(&place, &["proc", "x.toml", "--file", path, "--at", "210", "--quiet"]).stdout;
    let text = read("/proc/latency_stats");
    let records = latencies(&text);
    let sleeper = records.iter().find(|record| record.3.contains(&"do_nanosleep")).expect("a sleeper");
    assert!((30..=36).contains(&sleeper.0), "10 ms of 2 ms sleeps are missing: {text}");
    assert!(read("/proc/other/sched").contains("nr_wakeups"));
}

/// Two tasks that share a CPU with a hog read a block device; each read takes 3 ms, one after the other.
const READERS: &str = "\
task reader count=2 cpus=1 group=/g: 20 x (io 3ms; run 100us); sleep 700ms
task hog nice=19 cpus=1: spin 3s
";

#[test]
fn waits_for_a_device_are_told_everywhere() {
    let place = folder("readers");
    // A profile of sleeps: 40 reads of 3 ms, in units of 2^20 ns. Each also waits a little for the CPU's interrupt.
    let text = file(&place, READERS, "on=v4.16,profile=sleep", "/proc/profile");
    let hits: u64 = text.trim_start().split_once(" blkdev_direct_IO\n").expect("the place").0.parse().expect("hits");
    assert!((80..=125).contains(&hits), "{text}");
    let text = file(&place, READERS, "on=v6.1,kernel.latencytop=1", "/proc/latency_stats");
    let records = latencies(&text);
    let (count, sum, _, names) = records.iter().find(|record| record.3.contains(&"blkdev_read_iter")).expect("readers");
    assert!(*count == 40 && (115_000..=125_000).contains(sum), "{text}");
    assert_eq!(names[0], "blk_io_schedule", "{text}");
    for kernel in ["v4.15", "v6.1", "v6.12"] {
        let on = format!("on={kernel},schedstats=enable");
        let text = file(&place, READERS, &on, "/proc/reader0/sched");
        let of = |name: &str| -> f64 {
            let line =
                text.lines().find(|line| line.split(':').next().unwrap().trim_end().ends_with(name)).expect(name);
            line.split(':').nth(1).unwrap().trim().parse().expect("a number")
        };
        assert!((19.0..=20.0).contains(&of("iowait_count")), "{kernel}: {text}");
        // In v6.12 a sleeper with negative lag stays queued for a while, and waits until the lag is gone.
        assert!((of("iowait_sum") - 60.0).abs() < 4.0 && (of("block_max") - 3.0).abs() < 0.5, "{kernel}: {text}");
        let machine =
            ["trace", "--machine", "pack:1 l3:1 core:2 pu:1", "--workload", "script:file=script.txt", "--quiet"];
        let events =
            ["--events", "sched_stat_iowait,sched_stat_blocked", "--format", "ftrace", "--out", "-", "--to", "200"];
        let text = run_well(&place, &[&machine[..], &["--arm", &on], &events].concat()).stdout;
        let count = |event: &str| text.lines().filter(|line| line.contains(event)).count();
        let (waited, blocked) = (count(" sched_stat_iowait: "), count(" sched_stat_blocked: "));
        // A task that is woken before it has left the queue has not slept.
        let most_of_them = if kernel == "v6.12" { 37..=40 } else { 40..=40 };
        assert!(waited == blocked && most_of_them.contains(&waited), "{kernel}: {waited} {blocked}");
    }
    // Both tasks wait most of the time. Because the hog runs, the system is never completely stalled; the group is.
    for kernel in ["on=v6.1", "on=v6.12,psi=1"] {
        let system = pressure(&file(&place, READERS, kernel, "/proc/pressure/io"));
        let group = pressure(&file(&place, READERS, kernel, "/sys/fs/cgroup/g/io.pressure"));
        assert!((system["some"]["total"] - 62e3).abs() < 4e3, "{kernel}: {system:?}");
        assert!((group["some"]["total"] - system["some"]["total"]).abs() < 4e3, "{kernel}: {group:?}");
        assert!(group["full"]["total"] > 50e3 && system["full"]["total"] < 1e3, "{kernel}: {group:?} {system:?}");
    }
}
