//! System calls that involve no other task.

use super::{Bench, Findings};
use crate::Error;
use crate::pinning::Pinned;
use rustix::io::{pread, read, write};
use rustix::thread::futex;
use std::hint::black_box;
use std::sync::atomic::AtomicU32;

/// Bytes of a smaller and a larger copy; their difference gives the price of a byte.
const COPIES: [usize; 2] = [4 << 10, 32 << 10];

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let _pinned = Pinned::to(bench.computer.allowed[0])?;
    let effort = bench.effort;
    let getppid = || {
        black_box(rustix::process::getppid());
    };
    findings.add("syscall", "ns", &effort.time(getppid), "getppid()");
    pipe(bench, &mut findings)?;
    let word = AtomicU32::new(0);
    let wake = || {
        let _ = black_box(futex::wake(&word, futex::Flags::PRIVATE, 1));
    };
    findings.add("futex_wake", "ns", &effort.time(wake), "futex(FUTEX_WAKE) with nobody waiting");
    let refused = || {
        let _ = black_box(futex::wait(&word, futex::Flags::PRIVATE, 1, None));
    };
    findings.add(
        "futex_wait_refused",
        "ns",
        &effort.time(refused),
        "futex(FUTEX_WAIT) for another value, which returns at once",
    );
    copy(bench, &mut findings)?;
    Ok(findings)
}

fn pipe(bench: &Bench, findings: &mut Findings) -> Result<(), Error> {
    let failed = |error| Error::of_system("writing to and reading from a pipe", error);
    let (from, to) = rustix::pipe::pipe().map_err(failed)?;
    let mut byte = [0; 1];
    write(&to, &byte).and_then(|_| read(&from, &mut byte)).map_err(failed)?;
    let hand_over = || {
        // The call worked before; an error would only give a wrong time.
        let _ = black_box(write(&to, &[1]));
        let _ = black_box(read(&from, &mut byte));
    };
    findings.add(
        "pipe_self",
        "ns",
        &bench.effort.time(hand_over),
        "write() and read() of one byte by one task, nobody waiting",
    );
    Ok(())
}

/// The time to copy a byte from the page cache to user memory, both in the CPU's caches.
fn copy(bench: &Bench, findings: &mut Findings) -> Result<(), Error> {
    let failed = |error| Error::of_system("copying from a file in memory", error);
    let file = rustix::fs::memfd_create("copy", rustix::fs::MemfdFlags::CLOEXEC).map_err(failed)?;
    let mut buffer = vec![1u8; COPIES[1]];
    write(&file, &buffer).map_err(failed)?;
    let [small, large] = COPIES.map(|bytes| {
        bench.effort.time(|| {
            let _ = black_box(pread(&file, &mut buffer[..bytes], 0));
        })
    });
    let bytes = (COPIES[1] - COPIES[0]) as f64;
    let each: Vec<f64> = small.iter().zip(&large).map(|(small, large)| (large - small).max(0.0) / bytes).collect();
    findings.add(
        "copy",
        "ns/B",
        &each,
        "pread() of 32 KiB less pread() of 4 KiB from a file in memory, each byte of the difference",
    );
    Ok(())
}
