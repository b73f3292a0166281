//! How fast a thread runs next to one on the other thread of its core, when both run kernel code: each writes to and
//! reads from its own pipe.
//!
//! The simulation's work is mostly the kernel's. Chains of dependent operations would not do: two of them leave each
//! other all the resources they need.

use super::placement::siblings;
use super::{Bench, Effort, Figure, Findings, Nearness};
use crate::Error;
use crate::pinning::Pinned;
use crate::statistics::{Spread, ascending, quantile};
use rustix::io::{read, write};
use std::hint::black_box;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A sibling that has not begun for this long has no CPU now.
const PATIENCE: Duration = Duration::from_millis(200);
/// What the sibling does between two checks whether to go on.
const TURNS: u32 = 8;

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let Some(pair) = bench.placements.iter().find(|pair| pair.nearness == Nearness::Smt) else {
        let shown = bench.computer.allowed.iter().any(|&cpu| siblings(cpu).iter().any(|&other| other != cpu));
        findings.unseen.extend(unseen(shown, bench.computer.virtual_machine).map(str::to_string));
        return Ok(findings);
    };
    let [a, b] = pair.cpus;
    let shares = beside(pair.cpus, &bench.effort)?;
    let ran = format!(
        "one task on CPU {a} writes to and reads from its own pipe: its speed while another on CPU {b}, of the same core, does the same, as a share of its speed alone"
    );
    match Spread::of_rates(&shares) {
        Some(spread) => {
            findings.figures.push(Figure { name: "speed_beside_sibling".to_string(), unit: "ratio", spread, ran });
        }
        None => findings.unseen.push("SMT: no burst came to an end".to_string()),
    }
    Ok(findings)
}

/// Why nothing is known about it; `None` if no core has two threads.
fn unseen(shown: bool, virtual_machine: bool) -> Option<&'static str> {
    if shown {
        return Some(
            "SMT: of each core this process may use one thread; how fast two are beside each other (smt.speed) stays a guess",
        );
    }
    virtual_machine.then_some(
        "SMT: the system shows each CPU as a core of its own; a hypervisor may have put two of them on the threads of one core",
    )
}

/// A pipe that the same task writes and reads.
struct Own {
    from: OwnedFd,
    to: OwnedFd,
}

impl Own {
    fn new() -> Result<Own, Error> {
        let failed = |error| Error::of_system("writing to and reading from a pipe", error);
        let (from, to) = rustix::pipe::pipe().map_err(failed)?;
        let own = Own { from, to };
        write(&own.to, &[1]).and_then(|_| read(&own.from, &mut [0; 1])).map_err(failed)?;
        Ok(own)
    }

    fn hand_over(&self) {
        // The call worked before; an error would only give a wrong time.
        let _ = black_box(write(&self.to, &[1]));
        let _ = black_box(read(&self.from, &mut [0; 1]));
    }
}

/// The speed on the first CPU while the second works, as a share of its speed alone; for each burst.
fn beside([here, there]: [usize; 2], effort: &Effort) -> Result<Vec<f64>, Error> {
    let (working, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let turns = AtomicU32::new(0);
    thread::scope(|scope| {
        let sibling = scope.spawn(|| {
            let pinned = Pinned::to(there);
            let own = Own::new()?;
            while !ended.load(Ordering::Relaxed) {
                if working.load(Ordering::Relaxed) {
                    (0..TURNS).for_each(|_| own.hand_over());
                    turns.fetch_add(1, Ordering::Relaxed);
                } else {
                    thread::sleep(Duration::from_micros(20));
                }
            }
            pinned.map(drop)
        });
        let pinned = Pinned::to(here);
        let found = Own::new().map(|own| bursts(&own, effort, &working, &turns));
        ended.store(true, Ordering::Relaxed);
        let there =
            sibling.join().map_err(|_| Error::new("working beside a sibling", "a thread that broke off", "none to"))?;
        pinned.and(there.and(found))
    })
}

fn bursts(own: &Own, effort: &Effort, working: &AtomicBool, turns: &AtomicU32) -> Vec<f64> {
    let mut hand_over = || own.hand_over();
    let count = effort.count(&mut hand_over);
    let burst = || {
        let since = Instant::now();
        (0..count).for_each(|_| own.hand_over());
        since.elapsed().as_nanos() as f64
    };
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for _ in 0..effort.bursts {
        thread::sleep(effort.pause);
        alone.push(burst());
        let before = turns.load(Ordering::Relaxed);
        working.store(true, Ordering::Relaxed);
        let since = Instant::now();
        while turns.load(Ordering::Relaxed) == before && since.elapsed() < PATIENCE {
            std::hint::spin_loop();
        }
        if turns.load(Ordering::Relaxed) != before {
            together.push(burst());
        }
        working.store(false, Ordering::Relaxed);
    }
    if alone.is_empty() {
        return Vec::new();
    }
    // As for every figure, disturbance makes a burst longer.
    let alone = quantile(&ascending(&alone), 0.25);
    together.iter().map(|together| alone / together).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_measured_beside_another() {
        let allowed = crate::pinning::allowed().expect("the system tells");
        let [here, .., there] = allowed.as_slice() else { return };
        let shares = beside([*here, *there], &Effort { bursts: 20, ..Effort::LEAST }).expect("these CPUs may be used");
        assert!(!shares.is_empty() && shares.iter().all(|share| share.is_finite() && *share > 0.0), "{shares:?}");
        assert!(beside([*here, 1_023], &Effort::LEAST).is_err(), "a CPU that there is not");
    }

    #[test]
    fn what_cannot_be_seen_is_said_where_there_is_something_to_see() {
        assert!(unseen(true, false).is_some_and(|why| why.contains("one thread")));
        assert!(unseen(false, true).is_some_and(|why| why.contains("hypervisor")));
        assert_eq!(unseen(false, false), None);
    }
}
