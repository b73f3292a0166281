//! Speed of the simulator: one case per process, one line of figures per run.
//!
//! `cargo xtask bench` runs every case several times, with the cost model on and off, and prints the table of medians. Alone:
//! `bench CASE on|off SIMULATED_MS`. CPU time is the process's own, from the kernel's accounting, so a busy machine does
//! not count; peak memory is the process's.

mod cases;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, costs, simulated_ms] = arguments.as_slice() else {
        eprintln!("usage: bench CASE on|off SIMULATED_MS\ncases: {}", cases::NAMES.join(", "));
        return ExitCode::from(2);
    };
    let (Ok(simulated_ms), Some(costs)) = (simulated_ms.parse(), on_or_off(costs)) else {
        eprintln!("bench: {costs} {simulated_ms}: on or off, then a number of milliseconds");
        return ExitCode::from(2);
    };
    let Some(case) = cases::case(name) else {
        eprintln!("bench: no case {name}; there are {}", cases::NAMES.join(", "));
        return ExitCode::from(2);
    };
    let counts = if costs { case.run::<true>(simulated_ms) } else { case.run::<false>(simulated_ms) };
    println!(
        "{} {} {} {} {}",
        counts.cpu_ns,
        counts.scheduling_events,
        counts.engine_events,
        counts.simulated_ns,
        peak_memory_kib()
    );
    ExitCode::SUCCESS
}

fn on_or_off(word: &str) -> Option<bool> {
    match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// The process's peak resident memory, in KiB, from /proc/self/status.
fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse().ok()).unwrap_or(0)
}
