//! `cargo xtask bench`: CPU time per event, instructions per event, memory and simulated time, each the median of several runs.

use std::path::Path;
use std::process::Command;

/// Gates and goals for ns of CPU time per scheduling event, cost model off and on, where the case has them.
struct Case {
    name: &'static str,
    title: &'static str,
    simulated_ms: u64,
    gate: Option<(u64, u64)>,
    goal: Option<(u64, u64)>,
}

const CASES: &[Case] = &[
    Case {
        name: "pingpong-8",
        title: "8 CPUs, 4 ping-pong pairs",
        simulated_ms: 2_000,
        gate: Some((120, 240)),
        goal: Some((60, 120)),
    },
    Case {
        name: "pingpong-48",
        title: "48 CPUs, 960 ping-ponging tasks",
        simulated_ms: 200,
        gate: Some((200, 400)),
        goal: Some((100, 200)),
    },
    Case {
        name: "pingpong-256",
        title: "256 CPUs, 5120 ping-ponging tasks",
        simulated_ms: 40,
        gate: Some((300, 600)),
        goal: Some((150, 300)),
    },
    Case { name: "idle-1024", title: "1024 CPUs, mostly idle", simulated_ms: 2_000, gate: None, goal: None },
    Case { name: "hackbench-48", title: "48 CPUs, hackbench 48 groups", simulated_ms: 1, gate: None, goal: None },
];

/// One run's line: CPU ns, scheduling events, engine events, simulated ns, peak KiB.
type Figures = [u64; 5];

/// `arguments`: a case's name, `--runs N`, or nothing.
pub fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut runs = 5;
    let mut only = None;
    let mut words = arguments.iter();
    while let Some(&word) = words.next() {
        if word == "--runs" {
            let number = words.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0);
            runs = number.ok_or("--runs wants a number above 0")?;
        } else {
            only = Some(word);
        }
    }
    if let Some(name) = only
        && !CASES.iter().any(|c| c.name == name)
    {
        let names: Vec<&str> = CASES.iter().map(|c| c.name).collect();
        return Err(format!("no case {name}; there are {}", names.join(", ")));
    }
    let built = Command::new("cargo").args(["build", "--quiet", "--release", "-p", "bench"]).current_dir(root).status();
    if !built.is_ok_and(|s| s.success()) {
        return Err("the benchmark does not build".to_string());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let program = target.join("release/bench");
    println!(
        "{:<34} {:>5} {:>9} {:>9} {:>11} {:>11} {:>8} {:>9}  gate / goal",
        "case", "costs", "ns/sched", "ns/event", "instr/sched", "events/s", "MB", "sim s/s"
    );
    for case in CASES.iter().filter(|c| only.is_none_or(|name| name == c.name)) {
        for costs in ["off", "on"] {
            row(&program, case, costs, runs)?;
        }
    }
    Ok(())
}

fn row(program: &Path, case: &Case, costs: &str, runs: usize) -> Result<(), String> {
    let figures: Vec<Figures> =
        (0..runs).map(|_| once(program, case, costs, case.simulated_ms)).collect::<Result<_, _>>()?;
    let median = |of: &dyn Fn(&Figures) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let per_scheduling_event = median(&|f| f[0] as f64 / f[1].max(1) as f64);
    let index = usize::from(costs == "on");
    let of_pair = |pair: Option<(u64, u64)>| pair.map_or("-".to_string(), |p| [p.0, p.1][index].to_string());
    let verdict = match case.gate {
        Some(gate) if per_scheduling_event > [gate.0, gate.1][index] as f64 => "  ABOVE THE GATE",
        _ => "",
    };
    println!(
        "{:<34} {:>5} {:>9.1} {:>9.1} {:>11} {:>11.0} {:>8.1} {:>9.4}  {} / {}{}",
        case.title,
        costs,
        per_scheduling_event,
        median(&|f| f[0] as f64 / f[2].max(1) as f64),
        instructions(program, case, costs).map_or("-".to_string(), |n| format!("{n:.0}")),
        median(&|f| f[2] as f64 * 1e9 / f[0].max(1) as f64),
        median(&|f| f[4] as f64 / 1024.0),
        median(&|f| f[3] as f64 / f[0].max(1) as f64),
        of_pair(case.gate),
        of_pair(case.goal),
        verdict
    );
    Ok(())
}

fn once(program: &Path, case: &Case, costs: &str, simulated_ms: u64) -> Result<Figures, String> {
    let output = Command::new(program)
        .args([case.name, costs, &simulated_ms.to_string()])
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    Figures::try_from(numbers)
        .map_err(|_| format!("{} {costs}: {}", case.name, String::from_utf8_lossy(&output.stderr)))
}

/// Instructions per scheduling event under callgrind, where valgrind is installed: the difference of two lengths, so that
/// building and starting the simulation cancels out.
fn instructions(program: &Path, case: &Case, costs: &str) -> Option<f64> {
    let count = |simulated_ms: u64| -> Option<(f64, f64)> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args([case.name, costs, &simulated_ms.to_string()])
            .output()
            .ok()?;
        let events = String::from_utf8_lossy(&output.stdout).split_whitespace().nth(1)?.parse().ok()?;
        let text = String::from_utf8_lossy(&output.stderr).to_string();
        let line = text.lines().find(|l| l.contains("Collected :"))?;
        let collected = line.rsplit(':').next()?.trim().parse().ok()?;
        Some((collected, events))
    };
    let short = (case.simulated_ms / 200).max(1);
    let (few, fewer_events) = count(short)?;
    let (many, more_events) = count(2 * short)?;
    (more_events > fewer_events).then(|| (many - few) / (more_events - fewer_events))
}
