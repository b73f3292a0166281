//! Small experiments, each of which measures one price of this computer.
//!
//! Every figure comes from many short bursts with pauses between them. A burst that ends before the scheduler's next
//! decision is seldom disturbed, and the pauses leave the CPUs to others. Disturbance makes a burst longer, so a figure
//! is the lower quartile of its bursts, and its range begins at the shortest. Bursts run at this process's own
//! priority: a lower one would not measure what a task of ordinary priority meets.

mod bandwidth;
mod calls;
mod clock;
mod frequency;
mod idle;
mod lines;
mod memory;
mod network;
mod pair;
mod placement;
mod process;
mod smt;
mod spaces;

pub use placement::{Nearness, Placement, placements, usual};
pub use process::child;
pub use spaces::{ANSWER, child as answer};

use crate::Error;
use crate::computer::Computer;
use crate::starter::Starter;
use crate::statistics::Spread;
use std::thread;
use std::time::{Duration, Instant};

/// One measured price.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name among the probes: `syscall`, `line.0-1`.
    pub name: String,
    pub unit: &'static str,
    pub spread: Spread,
    /// What was run.
    pub ran: String,
}

/// What one probe measured, and what it could not see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    pub figures: Vec<Figure>,
    /// What stays unseen on this computer, and why.
    pub unseen: Vec<String>,
}

impl Findings {
    fn add(&mut self, name: impl Into<String>, unit: &'static str, bursts: &[f64], ran: impl Into<String>) {
        let name = name.into();
        match Spread::of(bursts) {
            Some(spread) => self.figures.push(Figure { name, unit, spread, ran: ran.into() }),
            None => self.unseen.push(format!("{name}: no burst came to an end")),
        }
    }

    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    pub fn append(&mut self, other: Findings) {
        self.figures.extend(other.figures);
        self.unseen.extend(other.unseen);
    }
}

/// How much effort goes into each figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Bursts for each figure.
    pub bursts: usize,
    /// The approximate length of a burst.
    pub burst: Duration,
    /// The pause after each burst.
    pub pause: Duration,
}

impl Effort {
    /// Takes some minutes.
    pub const FULL: Effort =
        Effort { bursts: 800, burst: Duration::from_micros(200), pause: Duration::from_micros(1_000) };
    /// Takes some seconds.
    pub const QUICK: Effort =
        Effort { bursts: 150, burst: Duration::from_micros(200), pause: Duration::from_micros(300) };
    /// For tests that ignore the figures.
    pub const LEAST: Effort = Effort { bursts: 3, burst: Duration::from_micros(20), pause: Duration::from_micros(1) };

    /// Time per operation in nanoseconds, of each burst of `operation`.
    fn time(&self, mut operation: impl FnMut()) -> Vec<f64> {
        let count = self.count(&mut operation);
        self.repeat(|| {
            let since = Instant::now();
            (0..count).for_each(|_| operation());
            since.elapsed().as_nanos() as f64 / count as f64
        })
    }

    /// Each burst's own figure.
    fn repeat(&self, mut burst: impl FnMut() -> f64) -> Vec<f64> {
        // The first burst finds caches and predictors cold.
        burst();
        (0..self.bursts)
            .map(|_| {
                thread::sleep(self.pause);
                burst()
            })
            .collect()
    }

    /// The number of operations that fill a burst.
    fn count(&self, operation: &mut impl FnMut()) -> u64 {
        let mut count = 1u64;
        loop {
            let since = Instant::now();
            (0..count).for_each(|_| operation());
            let passed = since.elapsed();
            if passed >= self.burst / 2 || count >= 1 << 24 {
                return (count as f64 * self.burst.as_secs_f64() / passed.as_secs_f64().max(1e-9)).max(1.0) as u64;
            }
            count *= 2;
        }
    }
}

/// What every probe gets.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    pub computer: &'a Computer,
    pub placements: &'a [Placement],
    pub effort: Effort,
    /// How this program is started as another process.
    pub starter: &'a Starter,
}

/// One step of a calibration.
pub struct Probe {
    pub name: &'static str,
    pub run: fn(&Bench) -> Result<Findings, Error>,
}

/// All probes, in the best order to run them.
pub const PROBES: &[Probe] = &[
    Probe { name: "frequency", run: frequency::run },
    Probe { name: "clocks and timers", run: clock::run },
    Probe { name: "system calls", run: calls::run },
    Probe { name: "threads of a core", run: smt::run },
    Probe { name: "cache and memory", run: memory::run },
    Probe { name: "memory of all CPUs", run: bandwidth::run },
    Probe { name: "cache lines between CPUs", run: lines::run },
    Probe { name: "wakeups and switches", run: pair::run },
    Probe { name: "switches between processes", run: spaces::run },
    Probe { name: "wakeups from idle", run: idle::run },
    Probe { name: "processes and threads", run: process::run },
    Probe { name: "loopback", run: network::run },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_has_its_figures() {
        let computer = Computer::this().unwrap();
        let nearness = |a, b| if placement::siblings(a).contains(&b) { Nearness::Smt } else { Nearness::Llc };
        let placements = placements(&computer.allowed, nearness);
        let starter = Starter { program: "/bin/true".into(), words: Vec::new() };
        let bench = Bench { computer: &computer, placements: &placements, effort: Effort::LEAST, starter: &starter };
        let mut all = Findings::default();
        for probe in PROBES {
            all.append((probe.run)(&bench).unwrap_or_else(|error| panic!("{}: {error}", probe.name)));
        }
        let needed = [
            "frequency",
            "tick_interrupt",
            "timer_slack",
            "syscall",
            "pipe_self",
            "futex_wake",
            "futex_wait_refused",
            "copy",
            "load.l1",
            "load.l2",
            "load.llc",
            "load.memory",
            "bandwidth",
            "bandwidth.all",
            "futex_pair.same",
            "thread",
            "process_exit",
            "tcp_pair",
        ];
        for name in needed {
            let figure = all.figure(name).unwrap_or_else(|| panic!("{name} is missing; {:?}", all.unseen));
            let Spread { value, low, high, bursts } = figure.spread;
            assert!(low <= value && value <= high && low >= 0.0 && bursts > 0, "{figure:?}");
            assert!(!figure.ran.is_empty());
        }
        // A kernel with EEVDF need not switch for a yield while others keep the CPU busy; the probe then says so.
        let unseen = all.unseen.iter().any(|what| what.contains("sched_yield()"));
        assert!(all.figure("switch.yield").is_some() != unseen, "{:?}", all.unseen);
        let mut names: Vec<&str> = all.figures.iter().map(|figure| figure.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.figures.len(), "each figure once");
        let siblings = placements.iter().any(|pair| pair.nearness == Nearness::Smt);
        assert_eq!(all.figure("speed_beside_sibling").is_some(), siblings, "{:?}", all.unseen);
        if let Some(pair) = placements.first() {
            let [a, b] = pair.cpus;
            assert!(all.figure(&format!("line.{a}-{b}")).is_some());
            assert!(all.figure(&format!("futex_pair.{}", pair.nearness.name())).is_some());
            assert!(all.figure("wake.1000").is_some());
            assert!(all.figure("bandwidth.half").is_some() || computer.allowed.len() > 2, "{:?}", all.unseen);
        }
    }

    /// The kernel kills a process that exceeds a memory limit, and an allocation whose failure is not handled ends the
    /// program.
    #[test]
    fn a_limit_of_memory_is_heeded() {
        const LIMITED: &str = "FAIRGROUND_TEST_LIMITED";
        if std::env::var_os(LIMITED).is_none() {
            // Limits apply to a process, so the same test runs in a process of its own with 300 MB.
            let run =
                "ulimit -v 300000 && exec \"$0\" --exact probe::tests::a_limit_of_memory_is_heeded --test-threads=1";
            let this = std::env::current_exe().unwrap();
            let said = std::process::Command::new("sh").args(["-c", run]).arg(this).env(LIMITED, "").output().unwrap();
            let text = [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
            assert!(said.status.success() && text.contains("1 passed"), "{}: {text}", said.status);
            return;
        }
        let computer = Computer::this().unwrap();
        let starter = Starter { program: "/bin/true".into(), words: Vec::new() };
        let bench = Bench { computer: &computer, placements: &[], effort: Effort::LEAST, starter: &starter };
        let mut all = memory::run(&bench).unwrap();
        all.append(bandwidth::run(&bench).unwrap());
        assert!(all.figure("load.memory").is_some(), "{:?}", all.unseen);
        let untold = ["bandwidth", "bandwidth.all"].map(|name| all.figure(name).is_none());
        let told = ["memory that is copied", "memory that all CPUs draw from"];
        let told = told.map(|begin| all.unseen.iter().any(|unseen| unseen.starts_with(begin)));
        assert_eq!(untold, told, "{:?}", all.unseen);
    }

    #[test]
    fn a_burst_holds_operations_for_its_time() {
        let effort = Effort { bursts: 5, ..Effort::LEAST };
        let mut done = 0u64;
        let bursts = effort.time(|| done += 1);
        assert_eq!(bursts.len(), 5);
        assert!(done > 5);
    }
}
