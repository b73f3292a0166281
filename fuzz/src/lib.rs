//! Feeds every reader of user texts with texts that no user would write.
//!
//! There is one function for each reader ([`targets`]). It takes any bytes; it must never panic, hang, or take memory
//! without bound. If it refuses its input, the message must say where, and what would be right, on one line. Two
//! drivers feed these functions:
//!
//! - `cargo test -p fuzz`: a bounded number of cases from a seed, each a good text changed by [`mutate`], which knows tokens, lines and
//!   brackets. `FUZZ_CASES=100000` does more, `FUZZ_SEED=7` others, `FUZZ_CASE=123` one again.
//! - libFuzzer, which follows the branches that an input takes: `cargo +nightly fuzz run --features libfuzzer record` (needs cargo-fuzz, and
//!   a C++ compiler).

#![forbid(unsafe_code)]

pub mod mutate;
pub mod seeds;
pub mod targets;

use mutate::Mutator;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use units::Prng;

/// A reader, the texts that its cases are made from, and words that mean something to it.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    pub seeds: fn() -> Vec<String>,
    pub words: &'static [&'static str],
    /// How many cases a test runs: as many as take a few seconds.
    pub cases: u64,
}

/// The CPU time that one case may take in an unoptimised build on a slow machine: a hundred times that of the slowest
/// case.
const LONGEST_NS: u64 = 20_000_000_000;
/// The memory that the program may ever take: many times what the largest existing machine needs.
const MOST_KIB: u64 = 3 << 20;

impl Target {
    /// Runs the target's own texts unchanged, then changed ones: `FUZZ_CASES` of them, or [`Target::cases`]. A failing
    /// case prints its text, and how to reproduce it.
    pub fn test(&self) {
        let seeds = (self.seeds)();
        let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let (seed, only) = (asked("FUZZ_SEED").unwrap_or(1), asked("FUZZ_CASE"));
        for text in seeds.iter().filter(|_| only.is_none()) {
            self.case(text.as_bytes(), "an unchanged text");
        }
        let mutator = Mutator::new(&seeds, self.words);
        let cases = asked("FUZZ_CASES").unwrap_or(self.cases);
        for case in only.map_or(0..cases, |only| only..only + 1) {
            let text = mutator.text(&mut Prng::stream(seed, self.name, case));
            self.case(&text, &format!("FUZZ_SEED={seed} FUZZ_CASE={case} cargo test -p fuzz {}", self.name));
        }
        assert!(most_kib() < MOST_KIB, "{}: {} KiB of memory", self.name, most_kib());
    }

    fn case(&self, text: &[u8], again: &str) {
        let before = thread_cpu_ns();
        let ended = catch_unwind(AssertUnwindSafe(|| (self.run)(text)));
        let took = thread_cpu_ns().saturating_sub(before);
        if ended.is_ok() && took < LONGEST_NS {
            return;
        }
        let shown: String = String::from_utf8_lossy(text).escape_debug().take(20_000).collect();
        eprintln!("{}: {again}\n{shown}", self.name);
        match ended {
            Err(panic) => resume_unwind(panic),
            Ok(()) => panic!("{}: took {took} ns of CPU time", self.name),
        }
    }
}

/// CPU time of this thread so far; 0 if the system does not tell.
fn thread_cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The program's peak memory so far; 0 if the system does not tell.
fn most_kib() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
