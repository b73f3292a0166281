//! How much all CPUs of a node together read from its memory, and how much half of them: this shows whether more CPUs
//! still read more.
//!
//! Threads, each pinned to its own CPU, read memory of their own that they touched first; all of them read during the
//! same interval. The bursts are short, and the pauses between them several times as long, so that the work of others
//! can go on.

use super::{Bench, Figure, Findings};
use crate::Error;
use crate::memory::{Left, reserved};
use crate::pinning::{Pinned, list};
use crate::statistics::Spread;
use std::fs;
use std::hint::black_box;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that all threads together read, and the least and most that one of them reads: more than caches hold.
const MOST_BYTES: usize = 1 << 30;
const LEAST_EACH: usize = 16 << 20;
const MOST_EACH: usize = 128 << 20;
/// The length of a burst; the delay after which it begins, when all threads are surely up; the pause after it.
const BURST: Duration = Duration::from_millis(2);
const NOTICE: Duration = Duration::from_micros(500);
const PAUSE: Duration = Duration::from_millis(8);
/// Words between two looks at the clock.
const BLOCK: usize = 8 << 10;
/// Bytes of a thread's stack.
const STACK: usize = 64 << 10;

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let all = node_of_first(&bench.computer.allowed);
    let bursts = (bench.effort.bursts / 20).max(3);
    let too_much = |bytes: usize, than: &str| {
        format!("memory that all CPUs draw from together: {} MiB for it would be more than {than}", bytes >> 20)
    };
    let left = Left::now();
    let each = each(all.len(), left.map(Left::allowance));
    if let (None, Some(left)) = (each, left) {
        findings.unseen.push(too_much(LEAST_EACH * all.len(), &left.to_string()));
        return Ok(findings);
    }
    let each = each.unwrap_or(LEAST_EACH);
    for (name, cpus) in [("bandwidth.half", &all[..all.len() / 2]), ("bandwidth.all", &all[..])] {
        if cpus.is_empty() {
            continue;
        }
        let buffers: Option<Vec<_>> = cpus.iter().map(|_| reserved(each / size_of::<u64>())).collect();
        let Some(buffers) = buffers else {
            findings.unseen.push(too_much(each * cpus.len(), "the system gives"));
            break;
        };
        let rates = read(cpus, buffers, bursts)?;
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

/// Those of these CPUs on the first one's NUMA node; all of them if the system does not say.
fn node_of_first(allowed: &[usize]) -> Vec<usize> {
    let lists =
        (0..1024).map_while(|node| fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist")).ok());
    let mut nodes = lists.map(|text| list(text.trim()));
    let own = nodes.find(|cpus| cpus.contains(&allowed[0]));
    allowed.iter().copied().filter(|cpu| own.as_ref().is_none_or(|own| own.contains(cpu))).collect()
}

/// Bytes that each of `cpus` CPUs reads, if all together may use `allowance`; `None` if that is too little.
fn each(cpus: usize, allowance: Option<usize>) -> Option<usize> {
    let wanted = (MOST_BYTES / cpus).clamp(LEAST_EACH, MOST_EACH);
    let most = allowance.map_or(wanted, |allowance| wanted.min(allowance / cpus));
    (most >= LEAST_EACH).then_some(most)
}

/// Bytes per nanosecond that these CPUs read together in each burst, each from a buffer that has not been touched.
fn read(cpus: &[usize], buffers: Vec<Vec<u64>>, bursts: usize) -> Result<Vec<f64>, Error> {
    thread::scope(|scope| {
        let (ready, readied) = channel();
        let (counted, counts) = channel();
        let start = |(&cpu, buffer): (&usize, Vec<u64>)| {
            let (order, ordered) = channel();
            let (ready, counted) = (ready.clone(), counted.clone());
            let work = move || reader(cpu, buffer, &ready, &ordered, &counted);
            let started = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            started.map(|_| order).map_err(|error| Error::of_system("starting a thread for each CPU", error))
        };
        // Threads that were started end when their orders do.
        let orders: Vec<Sender<Instant>> = cpus.iter().zip(buffers).map(start).collect::<Result<_, _>>()?;
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
            // The first burst finds caches and page tables cold.
            if burst > 0 {
                rates.push(bytes as f64 / BURST.as_nanos() as f64);
            }
        }
        Ok(rates)
    })
}

/// One thread: it reads for [`BURST`] from each moment that it is given, and reports how much it read.
fn reader(
    cpu: usize,
    mut words: Vec<u64>,
    ready: &Sender<Result<(), Error>>,
    orders: &Receiver<Instant>,
    counted: &Sender<usize>,
) {
    let pinned = Pinned::to(cpu);
    words.resize(words.capacity(), cpu as u64 | 1);
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
    fn buffers_are_as_large_as_they_may_be() {
        assert_eq!(each(2, None), Some(MOST_EACH));
        assert_eq!(each(2, Some(100 << 20)), Some(50 << 20));
        assert_eq!(each(2, Some(31 << 20)), None);
        // With many CPUs each gets the least amount, if that much is allowed.
        assert_eq!(each(128, Some(4 << 30)), Some(LEAST_EACH));
        assert_eq!(each(128, Some(1 << 30)), None);
    }

    #[test]
    fn all_read_at_the_same_time() {
        let allowed = crate::pinning::allowed().expect("the system tells");
        let cpus = node_of_first(&allowed);
        assert!(cpus.contains(&allowed[0]) && cpus.iter().all(|cpu| allowed.contains(cpu)), "{cpus:?} of {allowed:?}");
        let buffers = |count: usize| (0..count).map(|_| Vec::with_capacity(LEAST_EACH / 8)).collect::<Vec<_>>();
        let rates = read(&cpus, buffers(cpus.len()), 3).expect("these CPUs may be used");
        assert_eq!(rates.len(), 3);
        // Any memory of this century delivers as much.
        assert!(rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{rates:?}");
        assert!(rates.iter().any(|rate| *rate > 0.1), "{rates:?}");
        assert!(read(&[1_023], buffers(1), 1).is_err(), "a CPU that there is not");
    }
}
