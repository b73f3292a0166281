//! The time to wake a thread on an idle CPU, by how long that CPU has been idle.

use super::pair::Semaphore;
use super::{Bench, Findings, usual};
use crate::Error;
use crate::pinning::Pinned;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Idle times in microseconds.
const IDLE_US: [u64; 6] = [10, 30, 100, 300, 1_000, 5_000];
/// Sleeps of the longest kind take as long as all others together, so there are at most this many.
const MOST_BURSTS: usize = 300;

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    if bench.computer.idle.is_none() {
        findings.unseen.push(
            "idle states: no cpuidle driver; what lies below idleness (a hypervisor's, often) is seen in wakeups only"
                .to_string(),
        );
    } else if bench.computer.virtual_machine {
        findings.unseen.push(
            "C-states of the hardware: a hypervisor chooses them; the states are those that it shows to this system"
                .to_string(),
        );
    }
    let Some(pair) = usual(bench.placements) else {
        findings.unseen.push("wakeups from idle: this process may use one CPU only".to_string());
        return Ok(findings);
    };
    for idle_us in IDLE_US {
        let bursts = (bench.effort.bursts / 2).clamp(3, MOST_BURSTS);
        let (calls, latencies) = wakeups(pair.cpus, idle_us, bursts)?;
        let [a, b] = pair.cpus;
        findings.add(
            format!("wake.{idle_us}"),
            "ns",
            &latencies,
            format!("from before futex(FUTEX_WAKE) on CPU {a} to the first instruction of a thread on CPU {b}, asleep for {idle_us} us"),
        );
        findings.add(
            format!("wake_call.{idle_us}"),
            "ns",
            &calls,
            format!("the futex(FUTEX_WAKE) of that wakeup, on CPU {a}"),
        );
    }
    Ok(findings)
}

/// How many nanoseconds the waker's call takes, and how many pass from before it to the sleeper's first instruction.
fn wakeups([waker, sleeper]: [usize; 2], idle_us: u64, count: usize) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let bell = Semaphore::default();
    let ended = AtomicBool::new(false);
    let since = Instant::now();
    // Nanoseconds since `since`; 0: not awake yet.
    let awake = AtomicU64::new(0);
    thread::scope(|scope| {
        let partner = scope.spawn(|| {
            let pinned = Pinned::to(sleeper);
            loop {
                bell.wait();
                awake.store(since.elapsed().as_nanos() as u64, Ordering::Release);
                if ended.load(Ordering::SeqCst) {
                    return pinned.map(drop);
                }
            }
        });
        let pinned = Pinned::to(waker);
        let (mut calls, mut latencies) = (Vec::new(), Vec::new());
        // In the first round the partner is still on its way to its CPU.
        for round in 0..=count {
            wait_for(Duration::from_micros(idle_us));
            awake.store(0, Ordering::Release);
            let before = since.elapsed().as_nanos() as u64;
            bell.post();
            let after = since.elapsed().as_nanos() as u64;
            let woken = wait_until_set(&awake);
            if let (true, Some(woken)) = (round > 0, woken) {
                calls.push((after - before) as f64);
                latencies.push(woken.saturating_sub(before) as f64);
            }
        }
        ended.store(true, Ordering::SeqCst);
        bell.post();
        let there = partner.join().map_err(|_| Error::new("waking a sleeper", "a thread that broke off", "none to"))?;
        pinned.and(there.map(|()| (calls, latencies)))
    })
}

/// The waker spins through short times, so that its own wakeup does not enter the figure; it sleeps through long ones.
fn wait_for(time: Duration) {
    let since = Instant::now();
    if time > Duration::from_micros(500) {
        thread::sleep(time - Duration::from_micros(200));
    }
    while since.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// `None` if the other thread gets no CPU for a tenth of a second.
fn wait_until_set(word: &AtomicU64) -> Option<u64> {
    let since = Instant::now();
    loop {
        match word.load(Ordering::Acquire) {
            0 if since.elapsed() > Duration::from_millis(100) => return None,
            0 => std::hint::spin_loop(),
            set => return Some(set),
        }
    }
}
