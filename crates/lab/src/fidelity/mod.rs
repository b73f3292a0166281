//! Fidelity: a case runs on two arms, a recorded real kernel and the simulation, and each figure is compared.
//!
//! A case is an experiment with `[[figure]]` tables: what is measured of which tasks, what the real kernel's figure is, how far
//! the simulated one may be off, and, for a known gap, why it is. `docs/fidelity.md` describes the format.

mod figure;
mod recording;
mod table;

pub use figure::{Figure, Measure, Over, Tolerance};
pub use table::{Row, Verdict, render};

use crate::experiment::Experiment;
use crate::mistake::{Location, Mistake};
use crate::setup::Setup;
use crate::trace::listen;
use machine::description;
use observe::PerTask;

pub(crate) use figure::resolve;

/// Runs a case once and compares every figure. `None` when interrupted.
///
/// # Errors
/// A figure of tasks that the run did not have.
pub fn check(case: &Experiment, interrupted: &dyn Fn() -> bool) -> Result<Option<Vec<Row>>, Mistake> {
    let mut rows = Vec::new();
    for (index, job) in case.jobs().into_iter().enumerate() {
        if index > 0 {
            let found = format!("{} runs", case.jobs().len());
            return Err(Mistake::new(&Location::of(&case.name), found, "a case of one arm, one row and one iteration"));
        }
        let setup = case.setup(&job);
        let Some(simulated) = simulate(&setup, interrupted)? else { return Ok(None) };
        for figure in &case.figures {
            rows.push(Row::new(case, figure, figure.of_tasks(&simulated)?));
        }
    }
    Ok(Some(rows))
}

fn simulate(setup: &Setup, interrupted: &dyn Fn() -> bool) -> Result<Option<figure::Tasks>, Mistake> {
    let nr_cpus = description::parse(&setup.machine.file, &setup.machine.name)?.topology().nr_cpus();
    let at = Location::of("the case");
    let listened = listen(setup, PerTask::new(nr_cpus), None, interrupted, &at)?;
    Ok(listened
        .map(|(sink, _)| sink.finish().into_iter().map(|(name, of)| (name, figure::Values::from(&of))).collect()))
}
