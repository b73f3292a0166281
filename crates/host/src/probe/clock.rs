//! The tick and its cost, timers and their slack, and time that is stolen.

use super::{Bench, Findings};
use crate::Error;
use crate::computer::CpuTimes;
use crate::pinning::Pinned;
use crate::statistics::Spread;
use rustix::time::Timespec;
use std::time::{Duration, Instant};

/// The length of a gap in a loop that reads the clock. Shorter gaps are the loop itself, longer ones another task or a
/// hypervisor.
const HOLE_NS: std::ops::Range<u64> = 700..30_000;

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let before = CpuTimes::now(&bench.computer.allowed);
    let read = || {
        std::hint::black_box(Instant::now());
    };
    findings.add("clock_read", "ns", &bench.effort.time(read), "clock_gettime()");
    holes(bench, &mut findings)?;
    slack(bench, &mut findings)?;
    match bench.computer.tick_hertz {
        Some(hertz) => {
            let hertz = hertz as f64;
            let ran = "resolution of CLOCK_MONOTONIC_COARSE, which advances once a tick";
            findings.add("tick_rate", "Hz", &[hertz], ran);
        }
        None => findings.unseen.push("tick: the coarse clock has no resolution".to_string()),
    }
    let during = CpuTimes::now(&bench.computer.allowed).zip(before).map(|(after, before)| after.since(before));
    if let Some(during) = during {
        let permille = during.steal_permille() as f64;
        findings.add("steal", "permille", &[permille], "steal time of /proc/stat while the clocks were measured");
    }
    Ok(findings)
}

/// Interruptions of a busy loop, most of which are the tick.
fn holes(bench: &Bench, findings: &mut Findings) -> Result<(), Error> {
    let cpu = bench.computer.allowed[0];
    let _pinned = Pinned::to(cpu)?;
    let mut found = Vec::new();
    let since = Instant::now();
    let long = bench.effort.burst * bench.effort.bursts as u32 * 4;
    let mut last = since;
    while last.duration_since(since) < long.max(Duration::from_millis(60)) {
        let now = Instant::now();
        let hole = now.duration_since(last).as_nanos() as u64;
        if HOLE_NS.contains(&hole) {
            found.push(hole as f64);
        }
        last = now;
    }
    match Spread::of(&found) {
        Some(_) => findings.add(
            "tick_interrupt",
            "ns",
            &found,
            format!("holes of 0.7 to 30 us in a loop on CPU {cpu} that looks at the clock: interrupts, most of them the tick"),
        ),
        None => findings.unseen.push("tick: no interrupt was seen in a busy loop".to_string()),
    }
    Ok(())
}

/// How much later than requested a sleep of 100 us ends, with a task's default slack.
fn slack(bench: &Bench, findings: &mut Findings) -> Result<(), Error> {
    let asked = Duration::from_micros(100);
    let late: Vec<f64> = (0..bench.effort.bursts / 2 + 2)
        .map(|_| {
            let since = Instant::now();
            let _ = rustix::thread::nanosleep(&Timespec { tv_sec: 0, tv_nsec: asked.as_nanos() as i64 });
            since.elapsed().saturating_sub(asked).as_nanos() as f64
        })
        .collect();
    findings.add("timer_late", "ns", &late, "nanosleep() of 100 us: how much longer it took");
    let own =
        rustix::thread::current_timer_slack().map_err(|error| Error::of_system("asking for the timer slack", error))?;
    findings.add("timer_slack", "ns", &[own as f64], "prctl(PR_GET_TIMERSLACK)");
    Ok(())
}
