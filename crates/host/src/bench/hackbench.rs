//! hackbench over pipes on the real kernel: groups of 20 senders and 20 receivers.
//!
//! Everything happens in the order of the simulated one. Each group starts its receivers first, then its senders; each
//! of them announces itself on a shared pipe and polls another. The time begins before the one byte that starts them
//! all, and ends when the last has exited.

use super::plumbing::{Children, Pipe, address, allow_files, open, poll_in, read_all, write_all};
use super::{Benchmark, Request, unknown};
use crate::Error;
use crate::starter::Starter;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Senders, and receivers, of a group.
const FDS: usize = 20;
/// Bytes of a message.
const MESSAGE: usize = 100;
/// Open files besides those of the groups.
const OTHER_FILES: u64 = 64;
/// Bytes of a thread's stack.
const STACK: usize = 64 << 10;

pub const PIPES: Benchmark = Benchmark {
    name: "hackbench-pipes",
    differs: "processes are started anew, not forked: their exits, which are part of the time, free more memory",
    run,
};

/// Nanoseconds.
fn run(request: &Request) -> Result<Vec<Vec<u64>>, Error> {
    let groups = request.get("groups") as usize;
    let loops = request.get("loops");
    allow_files((groups * FDS * 2) as u64 + OTHER_FILES)?;
    let nanoseconds = match request.get("threads") {
        0 => processes(groups, loops, request.starter)?,
        _ => threads(groups, loops)?,
    };
    Ok(vec![vec![nanoseconds]])
}

fn pipes(count: usize) -> Result<Vec<Pipe>, Error> {
    (0..count).map(|_| Pipe::new()).collect()
}

fn processes(groups: usize, loops: u64, starter: &Starter) -> Result<u64, Error> {
    let (ready, start) = (Pipe::new()?, Pipe::new()?);
    let groups = (0..groups).map(|_| pipes(FDS)).collect::<Result<Vec<_>, _>>()?;
    let mut children = Children::default();
    for pipes in &groups {
        let words = |role: &str, ends: Vec<String>| {
            let common = ["hackbench".to_string(), role.to_string(), address(&ready.write), address(&start.read)];
            common.into_iter().chain([loops.to_string()]).chain(ends).collect::<Vec<String>>()
        };
        for pipe in pipes {
            let words = words("receiver", vec![address(&pipe.read)]);
            children.start(starter, &words, [Stdio::null(), Stdio::null()])?;
        }
        let all: Vec<String> = pipes.iter().map(|pipe| address(&pipe.write)).collect();
        for _ in 0..FDS {
            children.start(starter, &words("sender", all.clone()), [Stdio::null(), Stdio::null()])?;
        }
    }
    children.announce(&ready.read, groups.len() * 2 * FDS)?;
    let started = Instant::now();
    write_all(&start.write, &[1])?;
    children.wait()?;
    Ok(started.elapsed().as_nanos() as u64)
}

fn threads(groups: usize, loops: u64) -> Result<u64, Error> {
    let gate = Arc::new((Pipe::new()?, Pipe::new()?));
    let mut running = Vec::new();
    let mut start = |task: Box<dyn FnOnce() -> Result<(), Error> + Send>| {
        let gate = gate.clone();
        let body = move || {
            pass(&gate.0.write, &gate.1.read)?;
            task()
        };
        let started = thread::Builder::new().stack_size(STACK).spawn(body);
        running.push(started.map_err(|error| Error::of_system("starting a thread of the benchmark", error))?);
        Ok::<(), Error>(())
    };
    let groups = (0..groups).map(|_| pipes(FDS).map(Arc::new)).collect::<Result<Vec<_>, _>>();
    let groups = groups?;
    let mut failed = None;
    for pipes in &groups {
        for number in 0..FDS {
            let pipes = pipes.clone();
            failed = failed.or(start(Box::new(move || receive(&pipes[number].read, loops))).err());
        }
        for _ in 0..FDS {
            let pipes = pipes.clone();
            let send = move || send(&pipes.iter().map(|pipe| &pipe.write).collect::<Vec<_>>(), loops);
            failed = failed.or(start(Box::new(send)).err());
        }
    }
    if let Some(error) = failed {
        // Threads that were started wait at the gate until the process ends.
        return Err(error);
    }
    (0..groups.len() * 2 * FDS).try_for_each(|_| read_all(&gate.0.read, &mut [0; 1]))?;
    let started = Instant::now();
    write_all(&gate.1.write, &[1])?;
    let ended: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
    let nanoseconds = started.elapsed().as_nanos() as u64;
    for result in ended {
        result.map_err(|_| Error::new("running the benchmark's threads", "one that broke off", "none to"))??;
    }
    Ok(nanoseconds)
}

/// Announces this task and waits for the start.
fn pass(ready: impl AsFd, start: impl AsFd) -> Result<(), Error> {
    write_all(ready, &[1])?;
    poll_in(start, None).map(drop)
}

fn send<End: AsFd>(pipes: &[End], loops: u64) -> Result<(), Error> {
    let message = [0; MESSAGE];
    (0..loops).try_for_each(|_| pipes.iter().try_for_each(|pipe| write_all(pipe, &message)))
}

fn receive(pipe: impl AsFd, loops: u64) -> Result<(), Error> {
    let mut message = [0; MESSAGE];
    (0..loops * FDS as u64).try_for_each(|_| read_all(&pipe, &mut message))
}

/// A process of a group.
pub fn child(role: &str, [ready, start]: [&str; 2], loops: u64, pipes: &[&str]) -> Result<(), Error> {
    let (ready, start) = (open(ready, true)?, open(start, false)?);
    match (role, pipes) {
        ("receiver", [pipe]) => {
            let pipe = open(pipe, false)?;
            pass(&ready, &start)?;
            receive(&pipe, loops)
        }
        ("sender", pipes) => {
            let pipes = pipes.iter().map(|pipe| open(pipe, true)).collect::<Result<Vec<_>, _>>()?;
            pass(&ready, &start)?;
            send(&pipes, loops)
        }
        _ => Err(unknown(&[role])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn threads_hand_all_messages_over() {
        let values: BTreeMap<String, u64> =
            [("groups", 2), ("loops", 3), ("threads", 1)].map(|(name, value)| (name.to_string(), value)).into();
        let starter = Starter { program: "/nonexistent".into(), words: Vec::new() };
        let samples = run(&Request { values: &values, starter: &starter }).unwrap();
        assert!(matches!(&samples[..], [row] if row.len() == 1 && row[0] > 0));
        let values = values.into_iter().map(|(name, value)| (name.clone(), if name == "threads" { 0 } else { value }));
        let values = values.collect();
        let error = run(&Request { values: &values, starter: &starter }).unwrap_err();
        assert_eq!(error.doing, "starting a process of the benchmark");
    }

    #[test]
    fn more_groups_than_files_are_refused() {
        let error = allow_files(u64::MAX).err();
        assert!(error.is_none_or(|error| error.expected.contains("fewer groups")));
    }
}
