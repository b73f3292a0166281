//! The runs of an experiment.

use super::{Experiment, MOST_RUNS, Plan};
use crate::hash::sha256;
use crate::mistake::Mistake;
use crate::setup::{KernelSetup, MachineSetup, Setup, iteration_seed};
use machine::topology::Location;
use std::sync::Arc;
use units::Ns;

const DEFAULT_TIME_LIMIT: Ns = Ns::from_ms(60_000);
/// How much longer than its own duration a workload may take to end.
const TAIL: Ns = Ns::from_ms(10_000);

/// One run: indices of a table, of one of its points, and of an arm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Job {
    pub table: usize,
    pub point: usize,
    pub arm: usize,
    pub iteration: u32,
}

impl Experiment {
    /// Every run that is certain: all of them, unless intervals decide how many there are.
    pub fn jobs(&self) -> Vec<Job> {
        Plan::first(self).jobs(self)
    }

    pub(super) fn check_size(&self, at: &Location) -> Result<(), Mistake> {
        let points: u64 = self.tables.iter().map(|table| table.points.len() as u64).sum();
        let runs = points * self.arms.len() as u64 * u64::from(self.iterations);
        if runs > MOST_RUNS {
            return Err(Mistake::new(at, format!("{runs} runs"), format!("at most {MOST_RUNS}")));
        }
        Ok(())
    }

    /// The simulated time after which a run is given up: the user's limit, else enough for the workload's own duration.
    pub fn time_limit(&self, job: &Job) -> Ns {
        let needed = self.tables[job.table].duration + TAIL;
        self.time_limit.unwrap_or(DEFAULT_TIME_LIMIT.max(needed))
    }

    /// Everything that a run depends on.
    pub fn setup(&self, job: &Job) -> Setup {
        let table = &self.tables[job.table];
        Setup {
            machine: MachineSetup::of(&self.machine),
            kernel: KernelSetup::of(&self.arms[job.arm]),
            workload: table.workload(job.point),
            seed: iteration_seed(self.seed, job.iteration),
            costs: self.costs,
            time_limit_ns: self.time_limit(job).0,
            timeline: self.arms[job.arm].timeline.clone(),
        }
    }

    /// Whether to take a run's profile for the report. A profile makes a run longer by half or more, so only the first
    /// iteration of the first, the middle and the last row of each table has one.
    pub fn profiles(&self, job: &Job) -> bool {
        let last = self.tables[job.table].points.len() - 1;
        job.iteration == 0 && [0, last.div_ceil(2), last].contains(&job.point)
    }

    /// The name of a run's record, without its extension; unique in the experiment.
    pub fn record_name(&self, job: &Job) -> String {
        let table = &self.tables[job.table];
        let workload = super::file_name(table.source.name());
        let label = super::file_name(&table.points[job.point].name);
        let arm = super::file_name(&self.arms[job.arm].name);
        // Names may have lost the letters that distinguished them, so they are combined with indices.
        format!("{}-{workload}-{label}/{}-{arm}/{:04}", job.table, job.arm, job.iteration)
    }

    /// One line that identifies the run.
    pub fn title(&self, job: &Job) -> String {
        let point = &self.tables[job.table].points[job.point];
        let values: Vec<String> = point.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let arm = &self.arms[job.arm];
        let source = &self.tables[job.table].source;
        let of: Vec<&str> = source.file().map(|file| file.path.as_str()).into_iter().collect();
        let words: Vec<&str> = [source.name()].into_iter().chain(of).chain(values.iter().map(String::as_str)).collect();
        format!("{}, arm {}, iteration {}", words.join(" "), arm.name, job.iteration)
    }

    /// Identifies the experiment apart from the number of iterations and the time limit: results of the same identity
    /// may share a folder.
    pub fn identity(&self) -> String {
        // The machine's files are long, and the same in all runs, so their hash replaces them.
        let file: Arc<str> = self.machine.sha256().into();
        let mut text = String::new();
        for (table, of) in self.tables.iter().enumerate() {
            for point in 0..of.points.len() {
                for arm in 0..self.arms.len() {
                    text.push_str(&self.arms[arm].name);
                    let setup = self.setup(&Job { table, point, arm, iteration: 0 });
                    let machine = MachineSetup { file: file.clone(), bases: Vec::new(), ..setup.machine };
                    text.push_str(&Setup { time_limit_ns: 0, machine, ..setup }.hash());
                }
            }
        }
        sha256(text.as_bytes())
    }
}
