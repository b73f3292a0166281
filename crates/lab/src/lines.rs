//! The hottest cache lines of a run: what lies on them, how long accesses waited for them, and who writes and reads
//! them. On a real machine `perf c2c report` shows the same. Here every access is counted, not sampled.

use crate::VERSION;
use crate::csv::quoted;
use crate::prices::path_name;
use crate::setup::Setup;
use crate::symbols::Symbols;
use machine::lines::record::LineCounts;
use machine::profile::Frame;
use sched::layout::{Line, Part, Region};
use sched::sched::{CfsRqId, ROOT_TASK_GROUP, SeId, TgId};
use serde_json::{Map, Value, json};
use sim::engine::LinuxSim;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use units::Ps;

/// The lines of a run; the line with the longest waits comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TouchedLines {
    pub lines: Vec<TouchedLine>,
    /// The length of the part of the run that was watched.
    pub duration: Ps,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedLine {
    /// The objects that lie on it, and which of their fields.
    pub name: String,
    pub counts: LineCounts,
    /// The functions that touched it; the one that waited longest comes first.
    pub by: Vec<Toucher>,
}

/// One function on one NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toucher {
    pub function: String,
    pub node: u16,
    pub counts: LineCounts,
}

/// What was recorded for `duration` in a run of the kernel named `kernel`.
pub(crate) fn touched<const COSTS: bool>(sim: &LinuxSim<COSTS>, kernel: &str, duration: Ps) -> TouchedLines {
    let hardware = &sim.sched.arch;
    let symbols = Symbols::of(kernel, &hardware.prices, path_name);
    let comms = sim.comms();
    // The function that an access is booked on, whatever called it.
    let function = |frame: Frame| match frame {
        Frame::Kernel(path) => {
            let stack =
                symbols.stack(&[Frame::Comm(1), Frame::Kernel(path)], &[String::new(), String::new()], Ps::ZERO);
            stack.frames.last().cloned().unwrap_or_else(|| path_name(path).to_string())
        }
        Frame::Comm(comm) => comms.get(comm as usize).cloned().unwrap_or_default(),
        Frame::User => "main".to_string(),
        Frame::Idle(_) => "(idle)".to_string(),
    };
    let mut lines: Vec<TouchedLine> = Vec::new();
    for line in hardware.lines_touched().expect("lines were recorded").lines() {
        let mut by: BTreeMap<(String, u16), LineCounts> = BTreeMap::new();
        let mut counts = LineCounts::default();
        for (frame, node, of_frame) in &line.by {
            by.entry((function(*frame), *node)).or_default().merge(of_frame);
            counts.merge(of_frame);
        }
        let mut by: Vec<Toucher> =
            by.into_iter().map(|((function, node), counts)| Toucher { function, node, counts }).collect();
        by.sort_by_key(|toucher| Reverse(heat(&toucher.counts)));
        lines.push(TouchedLine { name: name(sim, line.line), counts, by });
    }
    lines.sort_by_key(|line| (Reverse(heat(&line.counts)), line.name.clone()));
    TouchedLines { lines, duration }
}

/// Lines are ordered by the time waited, then by transfers, then by accesses.
fn heat(counts: &LineCounts) -> (Ps, u64, u64) {
    (counts.stalled, counts.transfers(), counts.loads + counts.stores + counts.atomics + counts.locks)
}

/// What lies on a line, under the names that the objects have at the end of the run.
fn name<const COSTS: bool>(sim: &LinuxSim<COSTS>, line: Line) -> String {
    let sched = &sim.sched;
    let group = |tg: TgId| sched.cgroup_path(tg);
    // Where packed objects meet, there are several.
    let (named, parts) = (|| sched.layout.contents(line), sched.layout.parts(line));
    let [Part { number, fields, .. }] = &parts[..] else { return named() };
    match line.region {
        Region::Os => sim.os.line_name(line).unwrap_or_else(named),
        // A deleted group has left its queues to the root group.
        Region::CfsRq => match &sched.cfs_rq[CfsRqId(*number)] {
            queue if queue.tg == ROOT_TASK_GROUP => named(),
            queue => format!("cfs_rq of {} on {}: {fields}", group(queue.tg), queue.rq),
        },
        Region::Se => match sched.se[SeId(*number)].my_q.map(|queue| &sched.cfs_rq[queue]) {
            Some(queue) if queue.tg != ROOT_TASK_GROUP => {
                format!("se of {} on {}: {fields}", group(queue.tg), queue.rq)
            }
            _ => named(),
        },
        Region::TaskGroup => format!("task_group {}: {fields}", group(TgId(*number))),
        _ => named(),
    }
}

fn us(time: Ps) -> f64 {
    time.0 as f64 / 1e6
}

fn ns(time: Ps) -> f64 {
    time.0 as f64 / 1e3
}

/// The figures of a line in JSON and CSV, by name.
fn figures(counts: &LineCounts) -> [(&'static str, Value); 12] {
    [
        ("waited_ns", json!(ns(counts.stalled))),
        ("queued_ns", json!(ns(counts.queued))),
        ("transfers", json!(counts.transfers())),
        ("hitm_local", json!(counts.hitm_local)),
        ("hitm_remote", json!(counts.hitm_remote)),
        ("clean_local", json!(counts.clean_local)),
        ("clean_remote", json!(counts.clean_remote)),
        ("memory", json!(counts.memory)),
        ("loads", json!(counts.loads)),
        ("stores", json!(counts.stores)),
        ("atomics", json!(counts.atomics)),
        ("locks", json!(counts.locks)),
    ]
}

const COLUMNS: &str =
    "  waited us  queued us  LclHitm  RmtHitm LclClean RmtClean  Memory     Loads    Stores   Atomics     Locks";

fn columns(counts: &LineCounts) -> String {
    let LineCounts { hitm_local, hitm_remote, clean_local, clean_remote, memory, .. } = counts;
    let LineCounts { loads, stores, atomics, locks, stalled, queued, .. } = counts;
    format!(
        "{:>11.3} {:>10.3} {hitm_local:>8} {hitm_remote:>8} {clean_local:>8} {clean_remote:>8} {memory:>7} \
         {loads:>9} {stores:>9} {atomics:>9} {locks:>9}",
        us(*stalled),
        us(*queued)
    )
}

impl TouchedLines {
    fn total(&self) -> LineCounts {
        let mut total = LineCounts::default();
        self.lines.iter().for_each(|line| total.merge(&line.counts));
        total
    }

    /// Two tables: the `most` hottest lines, then the functions that touched each of them.
    pub fn text(&self, most: usize) -> String {
        let total = self.total();
        let shown = &self.lines[..most.min(self.lines.len())];
        let mut text = format!(
            "{} lines were touched in {:.3} ms; {} came from elsewhere, waited for {:.3} ms on all CPUs together, {:.3} ms of it queued\n",
            self.lines.len(),
            self.duration.0 as f64 / 1e9,
            total.transfers(),
            us(total.stalled) / 1e3,
            us(total.queued) / 1e3,
        );
        let _ = writeln!(text, "\n{:>4}{COLUMNS}  Line", "");
        let _ = writeln!(text, "{:>4}{}  all lines", "", columns(&total));
        for (rank, line) in shown.iter().enumerate() {
            let _ = writeln!(text, "{:>4}{}  {}", rank + 1, columns(&line.counts), line.name);
        }
        for (rank, line) in shown.iter().enumerate() {
            let _ = writeln!(text, "\n{:>4}  {}\n{:>4}{COLUMNS}  Node  Function", rank + 1, line.name, "");
            for toucher in &line.by {
                let _ =
                    writeln!(text, "{:>4}{}{:>6}  {}", "", columns(&toucher.counts), toucher.node, toucher.function);
            }
        }
        text
    }

    /// One document: what was run, and the `most` hottest lines. `seed` is the experiment's, by which it can be run again;
    /// the run's own seed is derived from it.
    pub fn json(&self, setup: &Setup, seed: u64, most: usize) -> String {
        let object = |figures: [(&str, Value); 12], more: Vec<(&str, Value)>| {
            let all = more.into_iter().chain(figures);
            Value::Object(all.map(|(name, value)| (name.to_string(), value)).collect::<Map<_, _>>())
        };
        let toucher = |by: &Toucher| {
            object(figures(&by.counts), vec![("function", json!(by.function)), ("node", json!(by.node))])
        };
        let line = |line: &TouchedLine| {
            let by: Vec<Value> = line.by.iter().map(toucher).collect();
            object(figures(&line.counts), vec![("line", json!(line.name)), ("by", Value::Array(by))])
        };
        let document = json!({
            "fairground": VERSION,
            "machine": setup.machine.name,
            "workload": setup.workload.name,
            "parameters": setup.workload.parameters,
            "kernel": setup.kernel.name,
            "seed": seed,
            "simulated_ns": ns(self.duration),
            "touched": self.lines.len(),
            "all": object(figures(&self.total()), Vec::new()),
            "lines": self.lines.iter().take(most).map(line).collect::<Vec<_>>(),
        });
        format!("{document:#}\n")
    }

    /// One row for each function and node that touched one of the `most` hottest lines.
    pub fn csv(&self, most: usize) -> String {
        let names = figures(&LineCounts::default()).map(|(name, _)| name);
        let mut text = format!("line,function,node,{}\n", names.join(","));
        for line in self.lines.iter().take(most) {
            for by in &line.by {
                let values = figures(&by.counts).map(|(_, value)| value.to_string());
                let (name, function) = (quoted(&line.name), quoted(&by.function));
                let _ = writeln!(text, "{name},{function},{},{}", by.node, values.join(","));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Draft, Purpose};
    use crate::mistake::Location;
    use crate::run::{Run, Wanted, run};

    fn pipes(arm: &str, lines: bool) -> (Setup, Run) {
        ran("hackbench-pipes:groups=1,loops=4", arm, lines)
    }

    fn ran(workload: &str, arm: &str, lines: bool) -> (Setup, Run) {
        let mut draft = Draft::default();
        draft.machine_option("xeon-e5-2670v3-2s");
        draft.workload_option(workload).expect("a workload");
        draft.arm_options(&[arm.to_string()], true).expect("an arm");
        let experiment =
            draft.resolve(Purpose::Watch, &crate::machines::tests::Table::default()).expect("an experiment");
        let setup = experiment.setup(&experiment.jobs()[0]);
        let run = run(&setup, Wanted { lines, ..Wanted::default() }, &Location::of("a test")).expect("a setup");
        (setup, run.expect("nobody interrupts"))
    }

    #[test]
    fn whoever_records_lines_changes_nothing() {
        assert_eq!(pipes("v4.15", true).1.outcome.digest, pipes("v4.15", false).1.outcome.digest);
    }

    #[test]
    fn lines_are_ordered_by_what_was_waited_and_told_in_three_forms() {
        let (setup, run) = pipes("v4.15", true);
        let lines = run.lines.expect("lines were asked for");
        assert!(lines.lines.is_sorted_by_key(|line| Reverse(line.counts.stalled)));
        let total = lines.total();
        assert!(total.transfers() > 1000);
        assert!(total.queued < total.stalled && total.hitm_remote > 0 && total.hitm_local > total.hitm_remote);
        let names = || lines.lines.iter().map(|line| line.name.as_str());
        assert!(names().any(|name| name.starts_with("pipe 0: mutex")), "{:?}", names().take(9).collect::<Vec<_>>());
        assert!(names().any(|name| name.ends_with("rq: lock, nr_running, cpu_load")));
        let text = lines.text(2);
        assert!(
            text.contains(&format!("  {}\n", lines.lines[1].name)) && !text.contains(&lines.lines[2].name),
            "{text}"
        );
        let json: Value = serde_json::from_str(&lines.json(&setup, 1, 3)).expect("JSON");
        assert_eq!(json["lines"].as_array().map(Vec::len), Some(3));
        assert_eq!(json["lines"][0]["by"][0]["function"], lines.lines[0].by[0].function);
        assert_eq!(lines.csv(3).lines().count(), 1 + lines.lines[..3].iter().map(|line| line.by.len()).sum::<usize>());
    }

    #[test]
    fn all_that_moves_is_counted_and_all_lines_have_names() {
        for (workload, arm) in [
            ("hackbench-pipes:groups=1,loops=4", "v4.15"),
            ("hackbench-sockets:groups=1,loops=4", "v4.5-rc1"),
            ("tbench4:clients=4,milliseconds=5", "v6.12"),
            ("tbench4:clients=4,milliseconds=5", "v4.5-rc1"),
            ("netperf-udp:size=1024,milliseconds=5", "v7.2"),
            ("dbench4:clients=1,runtime=1,warmup=0", "v6.1"),
            ("dbench4:clients=1,runtime=1,warmup=0,ext4=1", "v7.2"),
        ] {
            let run = ran(workload, arm, true).1;
            let lines = run.lines.expect("lines were asked for");
            let (total, counted, alone) = (lines.total(), run.lines_moved, ran(workload, arm, false).1.lines_moved);
            assert_eq!((total.transfers(), total.stalled), (counted.transfers, counted.stalled), "{workload} {arm}");
            assert_eq!(counted, alone, "{workload} {arm}: whoever records them changes nothing");
            let nameless: Vec<&str> =
                lines.lines.iter().map(|line| line.name.as_str()).filter(|name| name.starts_with("os line")).collect();
            assert!(nameless.is_empty(), "{workload} {arm}: {nameless:?}");
        }
    }

    /// How long accesses wait for the line of a group's load, while this many tasks of the group tick and sleep, each
    /// on its own CPU: in all, and in queues.
    fn group_line(tasks: usize) -> (Ps, Ps) {
        let script = format!(
            "group /g: cpu.shares 1024\ntask t count={tasks} cpus=0-{} group=/g: 10 x (run 3ms; sleep 200us)\n",
            tasks - 1
        );
        let files = crate::machines::tests::Table(BTreeMap::from([("g.txt", script)]));
        let mut draft = Draft::default();
        draft.machine_option("xeon-e5-2670v3-2s");
        draft.workload_option("script:file=g.txt").expect("a workload");
        draft.arm_options(&["v4.5-rc1".to_string()], true).expect("an arm");
        let experiment = draft.resolve(Purpose::Watch, &files).expect("an experiment");
        let setup = experiment.setup(&experiment.jobs()[0]);
        let wanted = Wanted { lines: true, ..Wanted::default() };
        let run = run(&setup, wanted, &Location::of("a test")).expect("a setup").expect("nobody interrupts");
        let lines = run.lines.expect("lines were asked for");
        let line = lines.lines.iter().find(|line| line.name.starts_with("task_group /g: load_avg")).expect("its line");
        (line.counts.stalled, line.counts.queued)
    }

    #[test]
    fn contention_on_a_groups_line_grows_faster_than_the_cpus_that_tick_on_it() {
        let [(six, six_queued), (twelve, _), (all, all_queued)] = [6, 12, 24].map(group_line);
        // No price depends on the number of CPUs. With more of them, accesses more often find the line elsewhere, or on
        // its way.
        assert!(twelve.0 > 2 * six.0 && all.0 > 4 * six.0 * 3 / 2, "{six:?}, {twelve:?}, {all:?}");
        assert!(all_queued.0 > 10 * six_queued.0.max(1), "{six_queued:?}, {all_queued:?}");
    }
}
