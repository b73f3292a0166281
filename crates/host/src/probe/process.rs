//! Beginnings and ends of threads and processes.

use super::{Bench, Findings};
use crate::Error;
use crate::pinning::Pinned;
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::Instant;

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let _pinned = Pinned::to(bench.computer.allowed[0])?;
    let threads = super::Effort { bursts: bench.effort.bursts / 4 + 3, ..bench.effort };
    let one = || {
        let since = Instant::now();
        let ended = thread::Builder::new().stack_size(64 << 10).spawn(|| {}).map(thread::JoinHandle::join);
        drop(ended);
        since.elapsed().as_nanos() as f64
    };
    findings.add("thread", "ns", &threads.repeat(one), "starting a thread and waiting for its end, on one CPU");
    exits(bench, &mut findings)?;
    Ok(findings)
}

/// The time from telling a waiting process to end until it has been waited for.
fn exits(bench: &Bench, findings: &mut Findings) -> Result<(), Error> {
    let failed = |error| Error::of_system("starting and ending processes", error);
    let mut bursts = Vec::new();
    for _ in 0..(bench.effort.bursts / 8).max(3) {
        let mut child = bench
            .starter
            .command(&["wait".to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        // A byte says that it is ready; a program other than ours ends without one.
        let _ = child.stdout.as_mut().map(|from| from.read(&mut [0; 1]));
        // By then it is asleep.
        thread::sleep(bench.effort.pause);
        let since = Instant::now();
        let _ = child.stdin.as_mut().map(|to| to.write(&[1]));
        child.wait().map_err(failed)?;
        bursts.push(since.elapsed().as_nanos() as f64);
    }
    let ran = "a process that waits to be told to end: telling, ending and waiting for it on one CPU";
    findings.add("process_exit", "ns", &bursts, ran);
    Ok(())
}

/// The process whose end is timed.
pub fn child() -> Result<(), Error> {
    let failed = |error| Error::of_system("waiting to be told to end", error);
    std::io::stdout().write_all(&[1]).and_then(|()| std::io::stdout().flush()).map_err(failed)?;
    std::io::stdin().read(&mut [0; 1]).map(drop).map_err(failed)
}
