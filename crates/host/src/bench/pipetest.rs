//! pipetest on the real kernel: two processes hand a 4-byte token to and fro through two pipes.
//!
//! As in the simulated one, a loop is two writes and two reads on either side of a pair of pipes, neither process is bound to a CPU,
//! and a sample is the mean time per loop of a batch.

use super::plumbing::{Children, Pipe, read_all, write_all};
use super::{Benchmark, Request};
use crate::Error;
use std::os::fd::AsFd;
use std::time::Instant;

const TOKEN: [u8; 4] = [0; 4];

pub const BENCHMARK: Benchmark =
    Benchmark { name: "pipetest", differs: "the second process is started anew, not forked", run };

/// Picoseconds per loop of each batch.
fn run(request: &Request) -> Result<Vec<Vec<u64>>, Error> {
    let (batches, loops) = (request.get("batches"), request.get("loops"));
    let (there, back) = (Pipe::new()?, Pipe::new()?);
    let mut children = Children::default();
    let words = ["pipetest".to_string(), batches.saturating_mul(loops).to_string()];
    children.start(request.starter, &words, [there.read.into(), back.write.into()])?;
    let mut samples = Vec::new();
    for _ in 0..batches {
        let started = Instant::now();
        for _ in 0..loops {
            let mut token = TOKEN;
            write_all(&there.write, &token)?;
            read_all(&back.read, &mut token)?;
        }
        samples.push((started.elapsed().as_nanos() * 1_000 / u128::from(loops)) as u64);
    }
    children.wait()?;
    Ok(vec![samples])
}

/// The other process: from its standard input to its standard output.
pub fn child(loops: u64) -> Result<(), Error> {
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let (input, output) = (input.as_fd(), output.as_fd());
    let mut token = TOKEN;
    for _ in 0..loops {
        read_all(input, &mut token)?;
        write_all(output, &token)?;
    }
    Ok(())
}
