//! pipetest on the real kernel: two processes pass a 4-byte token back and forth through two pipes.
//!
//! As in the simulated one, a loop is two writes and two reads on each side of a pair of pipes, neither process is
//! bound to a CPU unless the user asks for it, and a sample is the mean time per loop of a batch.

use super::plumbing::{Children, Pipe, read_all, write_all};
use super::{Benchmark, Request};
use crate::Error;
use crate::pinning::{Pinned, allowed};
use std::os::fd::AsFd;
use std::thread;
use std::time::Instant;

const TOKEN: [u8; 4] = [0; 4];

pub const BENCHMARK: Benchmark =
    Benchmark { name: "pipetest", differs: "the second process is started anew, not forked", run };

/// The same in the form of `perf bench sched pipe`: one mean of all loops.
pub const PERF_BENCH_PIPE: Benchmark = Benchmark {
    name: "perf-bench-pipe",
    run: |request| match request.get("threads") {
        0 => processes(request, 1, [None; 2]),
        _ => threads(request.get("loops")),
    },
    ..BENCHMARK
};

fn run(request: &Request) -> Result<Vec<Vec<u64>>, Error> {
    processes(request, request.get("batches"), places(request.get("bind"), &allowed()?)?)
}

/// The CPUs that parent and child are bound to, chosen from `allowed`.
fn places(bind: u64, allowed: &[usize]) -> Result<[Option<usize>; 2], Error> {
    match (bind, allowed) {
        (0, _) => Ok([None; 2]),
        (1, [first, ..]) => Ok([Some(*first); 2]),
        (_, [first, second, ..]) => Ok([Some(*first), Some(*second)]),
        _ => Err(Error::new("placing pipetest's two processes on two CPUs", "one CPU that may be used", "bind=0 or 1")),
    }
}

/// Picoseconds per loop of each batch.
fn processes(request: &Request, batches: u64, [mine, theirs]: [Option<usize>; 2]) -> Result<Vec<Vec<u64>>, Error> {
    let loops = request.get("loops");
    let (there, back) = (Pipe::new()?, Pipe::new()?);
    let mut children = Children::default();
    let cpu = theirs.map_or("any".to_string(), |cpu| cpu.to_string());
    let words = ["pipetest".to_string(), batches.saturating_mul(loops).to_string(), cpu];
    children.start(request.starter, &words, [there.read.into(), back.write.into()])?;
    let _pinned = mine.map(Pinned::to).transpose()?;
    let samples = (0..batches).map(|_| batch(&there.write, &back.read, loops)).collect::<Result<Vec<_>, _>>()?;
    children.wait()?;
    Ok(vec![samples])
}

fn threads(loops: u64) -> Result<Vec<Vec<u64>>, Error> {
    let (there, back) = (Pipe::new()?, Pipe::new()?);
    let (Pipe { read: ask, write: to }, Pipe { read: from, write: reply }) = (there, back);
    let partner = thread::Builder::new().spawn(move || answer(&ask, &reply, loops));
    let partner = partner.map_err(|error| Error::of_system("starting a thread of the benchmark", error))?;
    let sample = batch(&to, &from, loops)?;
    partner.join().map_err(|_| Error::new("running the benchmark", "a thread that broke off", "none to"))??;
    Ok(vec![vec![sample]])
}

/// Picoseconds per loop.
fn batch(to: impl AsFd, from: impl AsFd, loops: u64) -> Result<u64, Error> {
    let started = Instant::now();
    for _ in 0..loops {
        let mut token = TOKEN;
        write_all(&to, &token)?;
        read_all(&from, &mut token)?;
    }
    Ok((started.elapsed().as_nanos() * 1_000 / u128::from(loops)) as u64)
}

/// The side that answers.
fn answer(from: impl AsFd, to: impl AsFd, loops: u64) -> Result<(), Error> {
    let mut token = TOKEN;
    for _ in 0..loops {
        read_all(&from, &mut token)?;
        write_all(&to, &token)?;
    }
    Ok(())
}

/// The answering process: it reads its standard input and writes its standard output.
pub fn child(loops: u64, cpu: Option<usize>) -> Result<(), Error> {
    let _pinned = cpu.map(Pinned::to).transpose()?;
    let (input, output) = (std::io::stdin(), std::io::stdout());
    answer(input.as_fd(), output.as_fd(), loops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_is_placed_where_it_may_run() {
        assert_eq!(places(0, &[3]).unwrap(), [None, None]);
        assert_eq!(places(1, &[3, 5]).unwrap(), [Some(3), Some(3)]);
        assert_eq!(places(2, &[3, 5]).unwrap(), [Some(3), Some(5)]);
        assert_eq!(places(2, &[3]).unwrap_err().expected, "bind=0 or 1");
    }
}
