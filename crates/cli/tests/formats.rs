//! The kernel's formats, read back by small readers that know nothing of how they are written: what a tool for real machines does.

mod program;

use program::{folder, run_well};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What a file of the simulated machine with two CPUs says in the middle of a script.
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

/// Headings stand at the margin; fields are `  .name : value`; tables have neither.
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

/// Rows of the table of CPU `cpu`, in columns.
fn rows(text: &str, cpu: usize) -> Vec<Vec<String>> {
    let table = text.split("runnable tasks:\n").nth(cpu + 1).expect("a table for each CPU");
    let rows = table.lines().skip(2).take_while(|line| !line.is_empty());
    rows.map(|row| row.split_whitespace().map(String::from).collect()).collect()
}

/// A number is a number: what stands in its place in two texts need not be the same.
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
        // The recording's first CPU was cut down when it was made.
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
        // The recording has the table of one CPU only.
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
