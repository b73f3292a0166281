//! The time of a modified cache line from one CPU to another.

use super::{Bench, Findings, Placement};
use crate::Error;
use crate::pinning::Pinned;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Round trips of a burst.
const ROUNDS: u32 = 500;
/// A partner that has not answered for this long has no CPU now.
const PATIENCE: Duration = Duration::from_millis(200);

/// A word that shares neither its line nor the adjacent line, which is fetched with it, with anything.
#[repr(align(256))]
struct Word(AtomicU32);

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    if bench.placements.is_empty() {
        findings.unseen.push("cache lines between CPUs: this process may use one CPU only".to_string());
    }
    // All pairs together may take as long as thirty pairs would.
    let share = (bench.placements.len() / 30).max(1);
    let bursts = (bench.effort.bursts / 2 / share).max(3);
    for pair in bench.placements {
        let [a, b] = pair.cpus;
        let found = ping_pong(pair, bursts, bench.effort.pause)?;
        let ran = format!(
            "two threads on CPUs {a} and {b} that write one word in turn: half a round trip ({})",
            pair.nearness.name()
        );
        findings.add(format!("line.{a}-{b}"), "ns", &found, ran);
    }
    Ok(findings)
}

/// Half a round trip in nanoseconds, for each burst. Bursts that were interrupted for good are left out.
fn ping_pong(pair: &Placement, bursts: usize, pause: Duration) -> Result<Vec<f64>, Error> {
    let word = Word(AtomicU32::new(0));
    let ended = AtomicBool::new(false);
    let [near, far] = pair.cpus;
    thread::scope(|scope| {
        let partner = scope.spawn(|| {
            let pinned = Pinned::to(far);
            while !ended.load(Ordering::Relaxed) {
                let seen = word.0.load(Ordering::Acquire);
                // An odd number is ours to answer.
                if seen % 2 == 1 {
                    word.0.store(seen.wrapping_add(1), Ordering::Release);
                } else if seen == 0 {
                    // This is the pause between bursts.
                    thread::sleep(Duration::from_micros(20));
                }
                std::hint::spin_loop();
            }
            pinned.map(drop)
        });
        let pinned = Pinned::to(near);
        let mut found = Vec::new();
        if pinned.is_ok() {
            for _ in 0..bursts {
                found.extend(burst(&word.0));
                word.0.store(0, Ordering::Release);
                thread::sleep(pause);
            }
        }
        ended.store(true, Ordering::Relaxed);
        let there =
            partner.join().map_err(|_| Error::new("passing a cache line", "a thread that broke off", "none to"))?;
        pinned.and(there.map(|()| found))
    })
}

fn burst(word: &AtomicU32) -> Option<f64> {
    // This wakes the partner; its answer begins the burst.
    turn(word, 1, PATIENCE)?;
    let since = Instant::now();
    for round in 1..=ROUNDS {
        turn(word, 2 * round + 1, PATIENCE)?;
    }
    Some(since.elapsed().as_nanos() as f64 / f64::from(2 * ROUNDS))
}

/// Writes an odd number, and waits for the even one after it.
fn turn(word: &AtomicU32, number: u32, patience: Duration) -> Option<()> {
    word.store(number, Ordering::Release);
    let mut looks = 0u32;
    let mut since = None;
    while word.load(Ordering::Acquire) != number + 1 {
        std::hint::spin_loop();
        looks += 1;
        if looks.is_multiple_of(1 << 16) && since.get_or_insert_with(Instant::now).elapsed() > patience {
            return None;
        }
    }
    Some(())
}
