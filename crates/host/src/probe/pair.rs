//! Two threads that wake each other: on one CPU, where a switch follows each wakeup, and on two, where the sleeper's
//! CPU is idle.

use super::{Bench, Findings};
use crate::Error;
use crate::pinning::Pinned;
use crate::statistics::Spread;
use rustix::thread::futex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Round trips of a burst.
pub(super) const ROUNDS: u32 = 10;
/// Untimed round trips before them. The pause left caches cold, and a hypervisor must learn again how soon a halted CPU
/// is wanted; neither belongs to a round of two threads that keep waking each other. The first round takes twice as
/// long as the tenth, or more.
pub(super) const WARM: u32 = 6;

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let cpu = bench.computer.allowed[0];
    yields(bench, cpu, &mut findings)?;
    let ran = format!(
        "two threads on CPU {cpu} that post and wait for semaphores by futex in turn: a round of two wakeups and two switches"
    );
    findings.add("futex_pair.same", "ns", &rounds(bench, [cpu, cpu])?, ran);
    let mut seen = Vec::new();
    for pair in bench.placements {
        if seen.contains(&pair.nearness) {
            continue;
        }
        seen.push(pair.nearness);
        let [a, b] = pair.cpus;
        let ran = format!("the same on CPUs {a} and {b}, each idle while the other runs");
        findings.add(format!("futex_pair.{}", pair.nearness.name()), "ns", &rounds(bench, pair.cpus)?, ran);
    }
    if seen.is_empty() {
        findings.unseen.push("wakeups across CPUs: this process may use one CPU only".to_string());
    }
    Ok(findings)
}

/// A semaphore made from a futex, as C libraries do it.
#[derive(Default)]
#[repr(align(128))]
pub struct Semaphore {
    count: AtomicU32,
    waiters: AtomicU32,
}

impl Semaphore {
    pub fn post(&self) {
        self.count.fetch_add(1, Ordering::Release);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            // An error cannot be handled here, and cannot occur: the word is ours and aligned.
            let _ = futex::wake(&self.count, futex::Flags::PRIVATE, 1);
        }
    }

    pub fn wait(&self) {
        loop {
            let count = self.count.load(Ordering::SeqCst);
            if count > 0 {
                if self.count.compare_exchange(count, count - 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return;
                }
                continue;
            }
            self.waiters.fetch_add(1, Ordering::SeqCst);
            // It returns at once if somebody has posted in the meantime.
            let _ = futex::wait(&self.count, futex::Flags::PRIVATE, 0, None);
            self.waiters.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Nanoseconds per round trip of each burst.
fn rounds(bench: &Bench, [here, there]: [usize; 2]) -> Result<Vec<f64>, Error> {
    let (ask, answer) = (Semaphore::default(), Semaphore::default());
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let partner = scope.spawn(|| {
            let pinned = Pinned::to(there);
            loop {
                ask.wait();
                if ended.load(Ordering::SeqCst) {
                    return pinned.map(drop);
                }
                answer.post();
            }
        });
        let pinned = Pinned::to(here);
        let round = || {
            ask.post();
            answer.wait();
        };
        let found = bench.effort.repeat(|| {
            (0..WARM).for_each(|_| round());
            let since = Instant::now();
            (0..ROUNDS).for_each(|_| round());
            since.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        });
        ended.store(true, Ordering::SeqCst);
        ask.post();
        let there = partner.join().map_err(|_| Error::new("waking another thread", "one that broke off", "none to"))?;
        pinned.and(there.map(|()| found))
    })
}

/// Two threads yield to each other, and to no other task for as long as a burst lasts.
fn yields(bench: &Bench, cpu: usize, findings: &mut Findings) -> Result<(), Error> {
    let others = AtomicU32::new(0);
    let ended = AtomicBool::new(false);
    let bursts = thread::scope(|scope| {
        let partner = scope.spawn(|| {
            let pinned = Pinned::to(cpu);
            while !ended.load(Ordering::Relaxed) {
                others.fetch_add(1, Ordering::Relaxed);
                rustix::thread::sched_yield();
            }
            pinned.map(drop)
        });
        let pinned = Pinned::to(cpu);
        let mut found = Vec::new();
        for _ in 0..bench.effort.bursts.div_ceil(2) {
            thread::sleep(bench.effort.pause);
            let (before, since) = (others.load(Ordering::Relaxed), Instant::now());
            for _ in 0..8 * ROUNDS {
                rustix::thread::sched_yield();
            }
            let passed = since.elapsed();
            let theirs = others.load(Ordering::Relaxed).wrapping_sub(before);
            // Each turn of the other thread is a switch to it and one back.
            if theirs > 0 && passed < Duration::from_millis(2) {
                found.push(passed.as_nanos() as f64 / f64::from(2 * theirs));
            }
        }
        ended.store(true, Ordering::Relaxed);
        let there = partner.join().map_err(|_| Error::new("yielding", "a thread that broke off", "none to"))?;
        pinned.and(there.map(|()| found))
    })?;
    match Spread::of(&bursts) {
        Some(_) => findings.add(
            "switch.yield",
            "ns",
            &bursts,
            format!("two threads on CPU {cpu} that call sched_yield() in turn: a call and a switch"),
        ),
        None => findings.unseen.push("switches by sched_yield(): the kernel did not switch".to_string()),
    }
    Ok(())
}
