//! Speed of the simulator: one case per process, one line of figures per run.
//!
//! `cargo xtask bench` runs every case several times, with the cost model on and off, and prints a table of medians.
//! Used alone: `bench CASE on|off LENGTH [WARM_UP_MS]`. CPU time is the process's own, from the kernel's accounting, so
//! other load on the machine does not count; peak memory is the process's.

mod cases;

use std::process::ExitCode;

const USAGE: &str = "usage: bench CASE on|off LENGTH [WARM_UP_MS]
LENGTH in simulated milliseconds, of hackbench in messages per pair";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, costs, length, warm_up) = match words[..] {
        [name, costs, length] => (name, on_or_off(costs), length.parse(), Ok(cases::WARM_UP_MS)),
        [name, costs, length, warm_up] => (name, on_or_off(costs), length.parse(), warm_up.parse()),
        _ => return usage("a case, on or off, and a length"),
    };
    let (Some(costs), Ok(length), Ok(warm_up)) = (costs, length, warm_up) else {
        return usage(&format!("{}: on or off, then whole numbers", words[1..].join(" ")));
    };
    let Some(case) = cases::case(name) else {
        return usage(&format!("no case {name}"));
    };
    let counts = if costs { case.run::<true>(length, warm_up) } else { case.run::<false>(length, warm_up) };
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

fn usage(found: &str) -> ExitCode {
    eprintln!("bench: {found}\n{USAGE}\ncases: {}", cases::NAMES.join(", "));
    ExitCode::from(2)
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
