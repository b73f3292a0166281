//! Real benchmarks on the real kernel: what `fairground measure` runs.
//!
//! Each has the name, the parameters and the figures of the workload simulated under that name. A sample is a whole
//! number of parts of the unit, from the same formula. The benchmarks are our own programs; where one differs from the
//! simulated workload, its file says so.
//!
//! A benchmark that needs processes starts this program again with other arguments ([`Starter`]), because without
//! unsafe code there is no other way to get a second process. Such a child is larger than a forked one; only its exit
//! shows that.

mod hackbench;
mod netperf;
mod pipetest;
mod plumbing;
pub mod rt_app;
mod schbench;

use crate::Error;
use crate::starter::Starter;
use std::collections::BTreeMap;

/// The parameters of one run of a benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Every parameter of the workload.
    pub values: &'a BTreeMap<String, u64>,
    pub starter: &'a Starter,
}

impl Request<'_> {
    /// # Panics
    /// If the workload has no such parameter; the caller has checked that.
    fn get(&self, name: &str) -> u64 {
        *self.values.get(name).unwrap_or_else(|| panic!("the parameter {name} is missing"))
    }
}

/// A benchmark that can be measured.
#[derive(Clone, Copy)]
pub struct Benchmark {
    pub name: &'static str,
    /// How it differs from the simulated workload of that name.
    pub differs: &'static str,
    /// One run: the samples of each row, in whole parts of the workload's unit.
    pub run: fn(&Request) -> Result<Vec<Vec<u64>>, Error>,
}

pub const BENCHMARKS: &[Benchmark] = &[
    pipetest::BENCHMARK,
    pipetest::PERF_BENCH_PIPE,
    hackbench::PIPES,
    netperf::TCP,
    netperf::TCP_RR,
    schbench::current::LATENCIES,
    schbench::current::REQUESTS,
    schbench::earlier::EARLIER,
];

pub fn benchmark(name: &str) -> Option<&'static Benchmark> {
    BENCHMARKS.iter().find(|benchmark| benchmark.name == name)
}

/// Runs a child process of a benchmark; `words` say which.
///
/// # Errors
/// A partner that went away, or unknown words.
pub fn child(words: &[String]) -> Result<(), Error> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["pipetest", loops, "any"] => pipetest::child(number(loops)?, None),
        ["pipetest", loops, cpu] => pipetest::child(number(loops)?, Some(number(cpu)? as usize)),
        ["netperf", ref words @ ..] => netperf::child(words),
        ["hackbench", role, ready, start, loops, ref pipes @ ..] => {
            hackbench::child(role, [ready, start], number(loops)?, pipes)
        }
        _ => Err(unknown(&words)),
    }
}

pub(crate) fn unknown(words: &[&str]) -> Error {
    Error::new(
        "being a benchmark's child",
        words.join(" "),
        "the words that `fairground measure` starts its children with",
    )
}

fn number(word: &str) -> Result<u64, Error> {
    word.parse().map_err(|_| unknown(&[word]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_knows_its_words() {
        for words in [&["pipetest"][..], &["pipetest", "many"], &["hackbench", "x"], &[]] {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            let error = child(&words).unwrap_err().to_string();
            assert!(error.contains("`fairground measure` starts its children with"), "{error}");
        }
    }
}
