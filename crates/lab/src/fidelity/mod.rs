//! Fidelity: a case runs on two arms, a recorded real kernel and the simulation, and each figure is compared.
//!
//! A case is an experiment with `[[figure]]` tables: what is measured of which tasks, what the real kernel's figure is, how far
//! the simulated one may be off, and, for a known gap, why it is. `docs/fidelity.md` describes the format.

mod table;

pub use crate::experiment::{Figure, Measure, Over, Tolerance, header, line};
pub use table::{Row, Verdict, render};

use crate::experiment::{Experiment, Tasks, Values};
use crate::mistake::{Location, Mistake};
use crate::setup::Setup;
use crate::trace::listen;
use observe::PerTask;

/// Runs a case, as often as it says, each time from another seed, and compares every figure. `None` when interrupted.
///
/// # Errors
/// A figure of tasks that the runs did not have; more than one row.
pub fn check(case: &Experiment, interrupted: &dyn Fn() -> bool) -> Result<Option<Vec<Row>>, Mistake> {
    let jobs = case.jobs();
    if jobs.len() != case.iterations as usize {
        let found = format!("{} runs of each iteration", jobs.len() / case.iterations as usize);
        return Err(Mistake::new(&Location::of(&case.name), found, "a case of one row"));
    }
    let mut runs = Vec::new();
    for job in &jobs {
        let Some(run) = simulate(&case.setup(job), interrupted)? else { return Ok(None) };
        runs.push(run);
    }
    let row = |figure: &Figure| {
        let simulated = runs.iter().map(|run| figure.of_tasks(run)).collect::<Result<Vec<f64>, Mistake>>()?;
        Ok(Row::new(case, figure, simulated))
    };
    case.figures.iter().map(row).collect::<Result<_, _>>().map(Some)
}

fn simulate(setup: &Setup, interrupted: &dyn Fn() -> bool) -> Result<Option<Tasks>, Mistake> {
    let nr_cpus = setup.machine.nr_cpus()?;
    let at = Location::of("the case");
    let listened = listen(setup, PerTask::new(nr_cpus), false, None, interrupted, &at)?;
    Ok(listened.map(|(sink, run)| {
        let tasks = sink.finish().into_iter().map(|(name, of)| (name, Values::from(&of)));
        let group =
            |(path, stat): (String, String)| (path, Values::of_group(&stat.split_whitespace().collect::<Vec<_>>()));
        tasks.chain(run.group_stats.into_iter().map(group)).collect()
    }))
}
