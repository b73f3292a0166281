//! Loads from each level of the memory hierarchy, and how fast one CPU copies.

use super::{Bench, Findings};
use crate::Error;
use crate::memory::{Left, filled, reserved};
use crate::pinning::Pinned;
use crate::statistics::Spread;
use std::fs;
use std::hint::black_box;
use std::time::Instant;

/// Bytes between the elements of a chain: two cache lines, so that prefetching the adjacent line does not help.
const STRIDE: usize = 128;
/// Loads of a burst. From memory they take as long as a burst should; from the caches they take less.
const LOADS: u64 = 2_000;
/// Chains up to this many bytes are walked once before their burst.
const WARMED: usize = 8 << 20;
/// Bytes that the copies move.
const COPY_BYTES: usize = 32 << 20;
/// The largest chain: no cache holds it, yet it is small enough for any computer.
const MOST_BYTES: usize = 256 << 20;

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let cpu = bench.computer.allowed[0];
    let _pinned = Pinned::to(cpu)?;
    let [l1, l2, llc] = sizes(cpu);
    for (bytes, name) in [(l1, "l1"), (l2, "l2"), (llc, "llc")] {
        match bytes {
            Some(bytes) => findings.add(format!("size.{name}"), "B", &[bytes as f64], "sysfs: the cache's size"),
            None => findings.unseen.push(format!("the size of the {name} cache: not in sysfs")),
        }
    }
    let (l1, l2, llc) = (l1.unwrap_or(32 << 10), l2.unwrap_or(512 << 10), llc.unwrap_or(16 << 20));
    let l2 = l2.max(2 * l1);
    if llc >= MOST_BYTES {
        let (llc, most) = (llc >> 20, MOST_BYTES >> 20);
        findings.unseen.push(format!(
            "how far memory is, if all {llc} MiB of the last level cache are this computer's: its figures are of {most} MiB"
        ));
    }
    let levels = [
        ("load.l1", l1 / 2),
        ("load.l2", (l1 + l2) / 2),
        // Far beyond the second level, but only a small part of a cache that others fill as well.
        ("load.llc", (l2 * 3).min((l2 + llc) / 2)),
    ];
    for (name, bytes) in levels {
        match chase(bench, bytes) {
            Some(bursts) => findings.add(name, "ns", &bursts, ran(bytes, cpu)),
            None => {
                findings.unseen.push(format!("memory for {name}: {} KiB are more than the system gives", bytes >> 10))
            }
        }
    }
    main_memory(bench, &mut findings, [l2, llc]);
    bandwidth(bench, &mut findings);
    Ok(findings)
}

fn ran(bytes: usize, cpu: usize) -> String {
    format!("each load gives the address of the next, at random over {} KiB, on CPU {cpu}", bytes >> 10)
}

/// Loads from beyond all caches, as far beyond as this process's memory allows.
fn main_memory(bench: &Bench, findings: &mut Findings, [l2, llc]: [usize; 2]) {
    let wanted = (llc * 4).clamp(8 << 20, MOST_BYTES);
    let left = Left::now();
    let mut bytes = left.map_or(wanted, |left| wanted.min(chain_bytes(left.allowance())));
    let bursts = loop {
        // Within the second level the figure would say nothing about memory.
        if bytes <= 2 * l2 {
            break None;
        }
        match chase(bench, bytes) {
            Some(bursts) => break Some(bursts),
            None => bytes /= 2,
        }
    };
    let limit = left.map_or("the system gives".to_string(), |left| left.to_string());
    let [have, want] = [bytes >> 20, wanted >> 20];
    match bursts {
        Some(bursts) => {
            if bytes < wanted && bytes <= 2 * llc {
                let llc = llc >> 20;
                findings.unseen.push(format!(
                    "memory far beyond the {llc} MiB of the last level cache: {want} MiB for it would be more than {limit}; its figures are of {have} MiB"
                ));
            }
            findings.add("load.memory", "ns", &bursts, ran(bytes, bench.computer.allowed[0]));
        }
        None => findings
            .unseen
            .push(format!("memory: {want} MiB for it would be more than {limit}, and {have} MiB are in a cache")),
    }
}

/// Bytes of the longest chain that fits into `allowance`, together with the order that it is made from.
fn chain_bytes(allowance: usize) -> usize {
    allowance / (STRIDE + size_of::<u32>()) * STRIDE
}

/// The sizes of a CPU's first, second and last data cache, in bytes.
fn sizes(cpu: usize) -> [Option<usize>; 3] {
    let read = |index: usize, file: &str| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{file}")).ok()
    };
    let mut levels: Vec<(u64, usize)> = Vec::new();
    for index in 0..16 {
        let Some(kind) = read(index, "type") else { break };
        let level = read(index, "level").and_then(|level| level.trim().parse().ok());
        let size = read(index, "size").and_then(|size| bytes(size.trim()));
        if let (true, Some(level), Some(size)) = (kind.trim() != "Instruction", level, size) {
            levels.push((level, size));
        }
    }
    levels.sort_unstable();
    let level = |wanted| levels.iter().find(|(level, _)| *level == wanted).map(|level| level.1);
    [level(1), level(2), levels.last().filter(|(level, _)| *level > 1).map(|level| level.1)]
}

/// `32K`, `8M`.
fn bytes(text: &str) -> Option<usize> {
    let (number, shift) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(number) => (number, 10 * (1 + "KMG".find(&text[text.len() - 1..])?)),
        None => (text, 0),
    };
    number.parse::<usize>().ok()?.checked_shl(shift as u32)
}

/// Nanoseconds per load of each burst, through a chain of `bytes` bytes; `None` if there is no room for it.
fn chase(bench: &Bench, bytes: usize) -> Option<Vec<f64>> {
    let words = STRIDE / size_of::<u32>();
    let elements = (bytes / STRIDE).max(2);
    let mut chain = filled(0u32, elements * words)?;
    // The chain is one cycle through all elements (Sattolo), from a generator of our own, so it is the same everywhere.
    let mut order: Vec<u32> = reserved(elements)?;
    order.extend(0..elements as u32);
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for last in (1..elements).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, ((state >> 33) as usize) % last);
    }
    for index in 0..elements {
        chain[order[index] as usize * words] = order[(index + 1) % elements] * words as u32;
    }
    let mut at = 0u32;
    // A cache that others may have used in the meantime is filled again before it is timed.
    let warm = if bytes <= WARMED { elements } else { 0 };
    Some(bench.effort.repeat(|| {
        for _ in 0..warm {
            at = chain[at as usize];
        }
        let since = Instant::now();
        for _ in 0..LOADS {
            at = chain[at as usize];
        }
        black_box(at);
        since.elapsed().as_nanos() as f64 / LOADS as f64
    }))
}

fn bandwidth(bench: &Bench, findings: &mut Findings) {
    let may = Left::now().is_none_or(|left| 2 * COPY_BYTES <= left.allowance());
    let buffers = may.then(|| filled(1u8, COPY_BYTES).zip(filled(2u8, COPY_BYTES))).flatten();
    let Some((from, mut to)) = buffers else {
        let mib = (2 * COPY_BYTES) >> 20;
        findings.unseen.push(format!("memory that is copied: {mib} MiB for it would be too much"));
        return;
    };
    let times = (bench.effort.bursts / 20).max(3);
    let bursts: Vec<f64> = (0..times)
        .map(|_| {
            std::thread::sleep(bench.effort.pause);
            let since = Instant::now();
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
            COPY_BYTES as f64 / since.elapsed().as_nanos() as f64
        })
        .collect();
    let ran = format!("copying {} MiB in user memory, bytes copied", COPY_BYTES >> 20);
    if let Some(spread) = Spread::of_rates(&bursts) {
        findings.figures.push(super::Figure { name: "bandwidth".to_string(), unit: "GB/s", spread, ran });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_there_is_no_room_for_is_none() {
        let computer = crate::computer::Computer::this().unwrap();
        let starter = crate::starter::Starter { program: "/bin/true".into(), words: Vec::new() };
        let bench =
            Bench { computer: &computer, placements: &[], effort: crate::probe::Effort::LEAST, starter: &starter };
        assert_eq!(chase(&bench, 16 << 10).map(|bursts| bursts.len()), Some(3));
        assert_eq!(chase(&bench, 1 << 50), None);
        let bytes = chain_bytes(100 << 20);
        assert!(bytes / STRIDE * 4 + bytes <= 100 << 20 && bytes > 96 << 20);
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(bytes("48K"), Some(48 << 10));
        assert_eq!(bytes("32M"), Some(32 << 20));
        assert_eq!(bytes("64"), Some(64));
        assert_eq!(bytes("x"), None);
    }
}
