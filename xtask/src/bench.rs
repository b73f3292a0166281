//! `cargo xtask bench`: CPU time per event, instructions per event, memory and simulated time, each the median of several runs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A load and its limits.
struct Case {
    name: &'static str,
    title: &'static str,
    /// What to measure with the cost model off and on, to take one to three seconds of CPU time: simulated
    /// milliseconds, or for hackbench messages per pair.
    length: [u64; 2],
    gate: Gate,
    /// The goal for CPU time per scheduling event, in ns, off and on.
    goal: Option<[f64; 2]>,
    /// Measured only with the cost model on: with it off, no frequencies are simulated.
    only_on: bool,
}

/// The limit of CPU time per scheduling event.
enum Gate {
    None,
    /// In ns, with the cost model off and on.
    Ns([f64; 2]),
    /// In ns, with the cost model on.
    WithCosts(f64),
    /// A multiple of another case's.
    Times(f64, &'static str),
}

const CASES: &[Case] = &[
    Case {
        name: "pingpong-8",
        title: "8 CPUs, 4 ping-pong pairs",
        length: [600, 2_000],
        gate: Gate::Ns([120.0, 240.0]),
        goal: Some([60.0, 120.0]),
        only_on: false,
    },
    Case {
        name: "pingpong-48",
        title: "48 CPUs, 960 tasks",
        length: [60, 60],
        gate: Gate::Ns([200.0, 400.0]),
        goal: Some([100.0, 200.0]),
        only_on: false,
    },
    Case {
        name: "pingpong-256",
        title: "256 CPUs, 5120 tasks",
        length: [10, 10],
        gate: Gate::Ns([300.0, 600.0]),
        goal: Some([150.0, 300.0]),
        only_on: false,
    },
    Case {
        name: "pingpong-480",
        title: "480 CPUs, 16 sockets, 9600 tasks",
        length: [6, 6],
        gate: Gate::WithCosts(600.0),
        goal: None,
        only_on: false,
    },
    Case {
        name: "idle-1024",
        title: "1024 CPUs, mostly idle",
        length: [500_000, 500_000],
        gate: Gate::None,
        goal: None,
        only_on: false,
    },
    Case {
        name: "hackbench-48",
        title: "48 CPUs, hackbench 48 groups",
        length: [60, 200],
        gate: Gate::None,
        goal: None,
        only_on: false,
    },
    with_frequencies("pingpong-8-schedutil", "8 CPUs, schedutil", 2_000, 240.0),
    with_frequencies("pingpong-8-intel-pstate", "8 CPUs, intel_pstate", 2_000, 240.0),
    with_frequencies("pingpong-8-hardware", "8 CPUs, hardware P-states", 2_000, 240.0),
    with_frequencies("pingpong-480-schedutil", "480 CPUs, schedutil", 20, 600.0),
    with_frequencies("pingpong-480-intel-pstate", "480 CPUs, intel_pstate", 20, 600.0),
    with_frequencies("pingpong-480-hardware", "480 CPUs, hardware P-states", 20, 600.0),
    Case {
        name: "pingpong-8-groups",
        title: "8 CPUs, groups 3 deep",
        length: [400, 1_500],
        gate: Gate::Times(1.5, "pingpong-8"),
        goal: None,
        only_on: false,
    },
    Case {
        name: "pingpong-48-groups",
        title: "48 CPUs, groups 3 deep",
        length: [40, 40],
        gate: Gate::Times(1.5, "pingpong-48"),
        goal: None,
        only_on: false,
    },
];

/// A flat case with a frequency governor, as most machines have one.
const fn with_frequencies(name: &'static str, title: &'static str, length: u64, gate: f64) -> Case {
    Case { name, title, length: [length; 2], gate: Gate::WithCosts(gate), goal: None, only_on: true }
}

/// The most memory of a case, in MiB; and how much it may grow when the simulated time is four times as long.
const MEMORY_GATES: &[(&str, f64)] = &[("pingpong-48", 64.0), ("pingpong-480", 256.0)];
const MEMORY_GROWTH: f64 = 1.05;

const COSTS: [&str; 2] = ["off", "on"];

/// The line that one run prints.
#[derive(Clone, Copy)]
struct Figures {
    cpu_ns: u64,
    scheduling_events: u64,
    engine_events: u64,
    simulated_ns: u64,
    peak_kib: u64,
}

impl Figures {
    fn ns_per_scheduling_event(&self) -> f64 {
        self.cpu_ns as f64 / self.scheduling_events.max(1) as f64
    }
}

/// The runs of one row of the table: a case's index, and whether costs are on.
struct Row {
    case: usize,
    costs: usize,
    runs: Vec<Figures>,
}

impl Row {
    fn case(&self) -> &'static Case {
        &CASES[self.case]
    }

    fn median(&self, of: impl Fn(&Figures) -> f64) -> f64 {
        let mut values: Vec<f64> = self.runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    fn ns_per_scheduling_event(&self) -> f64 {
        self.median(Figures::ns_per_scheduling_event)
    }
}

/// `arguments` are a case's name, `--runs N`, `--guided`, or nothing.
pub fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let Selection { runs, only, guided } = selection(arguments)?;
    let program = if guided { crate::guided::build(root)?.join("bench") } else { build(root)? };
    let chosen = (0..CASES.len()).filter(|&case| only.is_none_or(|name| name == CASES[case].name));
    let of_case = |case: usize| (usize::from(CASES[case].only_on)..COSTS.len()).map(move |costs| (case, costs));
    let mut rows: Vec<Row> =
        chosen.flat_map(of_case).map(|(case, costs)| Row { case, costs, runs: Vec::new() }).collect();
    // Runs go round by round, so that other load on the computer affects all rows alike.
    for round in 1..=runs {
        eprintln!("round {round} of {runs}");
        for row in &mut rows {
            let case = row.case();
            row.runs.push(once(&program, case, row.costs, case.length[row.costs])?);
        }
    }
    println!(
        "{:<32} {:>5} {:>9} {:>6} {:>7} {:>6} {:>9} {:>11} {:>7} {:>9}",
        "case", "costs", "ns/sched", "gate", "", "goal", "ns/event", "instr/sched", "MB", "sim s/s"
    );
    for row in &rows {
        print(&program, row, &rows);
    }
    for (name, gate) in MEMORY_GATES.iter().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        memory(&program, name, *gate)?;
    }
    Ok(())
}

/// Cargo's output folder.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn build(root: &Path) -> Result<PathBuf, String> {
    let built = Command::new("cargo").args(["build", "--quiet", "--release", "-p", "bench"]).current_dir(root).status();
    if !built.is_ok_and(|s| s.success()) {
        return Err("the benchmark does not build".to_string());
    }
    Ok(target(root).join("release/bench"))
}

/// Runs every row for a part of its length, so that a counting build sees what a run does; such a program is a few
/// times slower.
pub fn train(program: &Path) -> Result<(), String> {
    for case in CASES {
        for costs in usize::from(case.only_on)..COSTS.len() {
            once(program, case, costs, (case.length[costs] / 8).max(1))?;
        }
    }
    Ok(())
}

struct Selection<'a> {
    runs: usize,
    /// The name of a single case, if one is given.
    only: Option<&'a str>,
    /// Whether to measure the profile-guided build.
    guided: bool,
}

fn selection<'a>(arguments: &[&'a str]) -> Result<Selection<'a>, String> {
    let mut selection = Selection { runs: 5, only: None, guided: false };
    let mut words = arguments.iter();
    while let Some(&word) = words.next() {
        match word {
            "--runs" => {
                let number = words.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0);
                selection.runs = number.ok_or("--runs wants a number above 0")?;
            }
            "--guided" => selection.guided = true,
            _ => selection.only = Some(word),
        }
    }
    if let Some(name) = selection.only
        && !CASES.iter().any(|c| c.name == name)
    {
        let names: Vec<&str> = CASES.iter().map(|c| c.name).collect();
        return Err(format!("no case {name}; there are {}", names.join(", ")));
    }
    Ok(selection)
}

fn print(program: &Path, row: &Row, rows: &[Row]) {
    let case = row.case();
    let measured = row.ns_per_scheduling_event();
    let gate = match case.gate {
        Gate::None => None,
        Gate::Ns(gate) => Some(gate[row.costs]),
        Gate::WithCosts(gate) => (row.costs == 1).then_some(gate),
        Gate::Times(times, other) => {
            let flat = rows.iter().find(|r| r.case().name == other && r.costs == row.costs);
            flat.map(|flat| times * flat.ns_per_scheduling_event())
        }
    };
    println!(
        "{:<32} {:>5} {:>9.1} {:>6} {:>7} {:>6} {:>9.1} {:>11} {:>7.1} {:>9.4}",
        case.title,
        COSTS[row.costs],
        measured,
        gate.map_or("-".to_string(), |gate| format!("{gate:.0}")),
        gate.map_or("", |gate| verdict(measured <= gate)),
        case.goal.map_or("-".to_string(), |goal| format!("{:.0}", goal[row.costs])),
        row.median(|f| f.cpu_ns as f64 / f.engine_events.max(1) as f64),
        instructions(program, case, row.costs).map_or("-".to_string(), |n| format!("{n:.0}")),
        row.median(|f| f.peak_kib as f64 / 1024.0),
        row.median(|f| f.simulated_ns as f64 / f.cpu_ns.max(1) as f64),
    );
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// A case's peak memory, and whether it grows with simulated time.
fn memory(program: &Path, name: &str, gate: f64) -> Result<(), String> {
    let case = CASES.iter().find(|c| c.name == name).expect("a case");
    for (costs, length) in case.length.into_iter().enumerate() {
        let peak = |length| once(program, case, costs, length).map(|f| f.peak_kib as f64 / 1024.0);
        let (short, long) = (peak(length)?, peak(4 * length)?);
        println!(
            "memory of {}, costs {}: {short:.1} MB after {length} ms, {long:.1} MB after {} ms; gate {gate:.0} MB, flat: {}",
            case.title,
            COSTS[costs],
            4 * length,
            verdict(long <= gate && long <= short * MEMORY_GROWTH)
        );
    }
    Ok(())
}

fn once(program: &Path, case: &Case, costs: usize, length: u64) -> Result<Figures, String> {
    let output = Command::new(program)
        .args([case.name, COSTS[costs], &length.to_string()])
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [cpu_ns, scheduling_events, engine_events, simulated_ns, peak_kib] => {
            Ok(Figures { cpu_ns, scheduling_events, engine_events, simulated_ns, peak_kib })
        }
        _ => Err(format!("{} {}: {}", case.name, COSTS[costs], String::from_utf8_lossy(&output.stderr))),
    }
}

/// Instructions per scheduling event under callgrind, if valgrind is installed. It is computed from the difference of
/// two lengths, so that building and starting the simulation cancels out and no warm-up is needed.
fn instructions(program: &Path, case: &Case, costs: usize) -> Option<f64> {
    let start = |length: u64| {
        Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args([case.name, COSTS[costs], &length.to_string(), "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    };
    let count = |child: Child| -> Option<(f64, f64)> {
        let output = child.wait_with_output().ok()?;
        let events = String::from_utf8_lossy(&output.stdout).split_whitespace().nth(1)?.parse().ok()?;
        let text = String::from_utf8_lossy(&output.stderr).to_string();
        let line = text.lines().find(|l| l.contains("Collected :"))?;
        let collected = line.rsplit(':').next()?.trim().parse().ok()?;
        Some((collected, events))
    };
    let short = (case.length[costs] / 200).max(1);
    // Both run at once: a busy computer does not change the number of instructions.
    let both = [start(short), start(2 * short)].map(|child| child.ok().and_then(count));
    let [(few, fewer_events), (many, more_events)] = [both[0]?, both[1]?];
    (more_events > fewer_events).then(|| (many - few) / (more_events - fewer_events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_told_by_words_in_any_order() {
        let told =
            |words: &[&str]| selection(words).map(|told| (told.runs, told.only.map(str::to_string), told.guided));
        assert_eq!(told(&[]), Ok((5, None, false)));
        assert_eq!(told(&["--guided", "pingpong-8", "--runs", "3"]), Ok((3, Some("pingpong-8".to_string()), true)));
        assert_eq!(told(&["--runs", "0"]), Err("--runs wants a number above 0".to_string()));
        assert!(told(&["--guidd"]).is_err_and(|error| error.starts_with("no case --guidd; there are pingpong-8, ")));
    }
}
