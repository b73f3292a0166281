//! What all CPUs of a node together draw from its memory, and half of them: whether more CPUs still draw more.
//!
//! Threads, each pinned to its CPU and with memory of its own that it has touched first, read from one moment to another, all of them the same. The
//! bursts are short and the pauses between them several times as long, so that others' work goes on.

use super::{Bench, Figure, Findings};
use crate::Error;
use crate::pinning::{Pinned, list};
use crate::statistics::Spread;
use std::fs;
use std::hint::black_box;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that all threads together read in turn, and that one of them has at least and at most: more than caches hold.
const MOST_BYTES: usize = 1 << 30;
const LEAST_EACH: usize = 16 << 20;
const MOST_EACH: usize = 128 << 20;
/// Share of the memory that is available which may be used for it.
const PART_OF_AVAILABLE: u64 = 4;
/// A burst; it begins when all threads are surely up; the pause after it.
const BURST: Duration = Duration::from_millis(2);
const NOTICE: Duration = Duration::from_micros(500);
const PAUSE: Duration = Duration::from_millis(8);
/// Words between two looks at the clock.
const BLOCK: usize = 8 << 10;

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let all = node_of_first(&bench.computer.allowed);
    let bursts = (bench.effort.bursts / 20).max(3);
    let least = (LEAST_EACH * all.len()) as u64;
    if available().is_some_and(|available| least > available / PART_OF_AVAILABLE) {
        let mib = least >> 20;
        findings.unseen.push(format!("what all CPUs together draw from memory: {mib} MiB for it would be too much"));
        return Ok(findings);
    }
    let each = (MOST_BYTES / all.len()).clamp(LEAST_EACH, MOST_EACH);
    for (name, cpus) in [("bandwidth.half", &all[..all.len() / 2]), ("bandwidth.all", &all[..])] {
        if cpus.is_empty() {
            continue;
        }
        let rates = read(cpus, each, bursts)?;
        let ran = match cpus.len() {
            1 => format!("CPU {} reads {} MiB of its node's memory", cpus[0], each >> 20),
            n => {
                format!("{n} CPUs of a node read {} MiB each of its memory at the same time, bytes of all", each >> 20)
            }
        };
        match Spread::of_rates(&rates) {
            Some(spread) => findings.figures.push(Figure { name: name.to_string(), unit: "GB/s", spread, ran }),
            None => findings.unseen.push(format!("{name}: no burst came to an end")),
        }
    }
    Ok(findings)
}

/// Those of these CPUs that are of the first one's NUMA node; all of them where the system does not say.
fn node_of_first(allowed: &[usize]) -> Vec<usize> {
    let lists =
        (0..1024).map_while(|node| fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist")).ok());
    let mut nodes = lists.map(|text| list(text.trim()));
    let own = nodes.find(|cpus| cpus.contains(&allowed[0]));
    allowed.iter().copied().filter(|cpu| own.as_ref().is_none_or(|own| own.contains(cpu))).collect()
}

/// Bytes of memory that can be had without swapping.
fn available() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Bytes a nanosecond that these CPUs read together in each burst.
fn read(cpus: &[usize], each: usize, bursts: usize) -> Result<Vec<f64>, Error> {
    thread::scope(|scope| {
        let (ready, readied) = channel();
        let (counted, counts) = channel();
        let orders: Vec<Sender<Instant>> = cpus
            .iter()
            .map(|&cpu| {
                let (order, ordered) = channel();
                let (ready, counted) = (ready.clone(), counted.clone());
                scope.spawn(move || reader(cpu, each, &ready, &ordered, &counted));
                order
            })
            .collect();
        drop((ready, counted));
        for _ in cpus {
            readied.recv().expect("each thread says whether it is ready")?;
        }
        let mut rates = Vec::new();
        for burst in 0..=bursts {
            thread::sleep(PAUSE);
            let from = Instant::now() + NOTICE;
            orders.iter().for_each(|order| order.send(from).expect("threads wait for orders"));
            let bytes: usize = cpus.iter().map(|_| counts.recv().expect("each thread counts")).sum();
            // The first finds caches and page tables cold.
            if burst > 0 {
                rates.push(bytes as f64 / BURST.as_nanos() as f64);
            }
        }
        Ok(rates)
    })
}

/// One thread: reads from each moment that it is told for [`BURST`], and says how much that was.
fn reader(
    cpu: usize,
    bytes: usize,
    ready: &Sender<Result<(), Error>>,
    orders: &Receiver<Instant>,
    counted: &Sender<usize>,
) {
    let pinned = Pinned::to(cpu);
    let words = vec![cpu as u64 | 1; bytes / size_of::<u64>()];
    let (_pinned, answer) = match pinned {
        Ok(pinned) => (Some(pinned), Ok(())),
        Err(error) => (None, Err(error)),
    };
    if answer.is_err() | ready.send(answer).is_err() {
        return;
    }
    let mut blocks = words.chunks_exact(BLOCK).cycle();
    while let Ok(from) = orders.recv() {
        while Instant::now() < from {
            std::hint::spin_loop();
        }
        let mut read = 0;
        while from.elapsed() < BURST {
            let block = blocks.next().expect("it holds a block at least");
            black_box(block.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
            read += BLOCK * size_of::<u64>();
        }
        if counted.send(read).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_read_at_the_same_time() {
        let allowed = crate::pinning::allowed().expect("the system tells");
        let cpus = node_of_first(&allowed);
        assert!(cpus.contains(&allowed[0]) && cpus.iter().all(|cpu| allowed.contains(cpu)), "{cpus:?} of {allowed:?}");
        let rates = read(&cpus, LEAST_EACH, 3).expect("these CPUs may be used");
        assert_eq!(rates.len(), 3);
        // Any memory since the last century's.
        assert!(rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{rates:?}");
        assert!(rates.iter().any(|rate| *rate > 0.1), "{rates:?}");
        assert!(read(&[1_023], LEAST_EACH, 1).is_err(), "a CPU that there is not");
    }
}
