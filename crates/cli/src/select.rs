//! From options to an experiment.

use crate::arguments::Selectors;
use crate::execute::MOST_JOBS;
use crate::failure::Failure;
use crate::files::Disk;
use crate::output::say;
use lab::experiment::{Draft, Experiment, Job, Purpose};
use lab::mistake::Written;

/// Reads and checks everything, and prints what was assumed.
pub fn experiment(selectors: &Selectors, purpose: Purpose) -> Result<Experiment, Failure> {
    let draft = match &selectors.experiment {
        Some(path) => Draft::read(path, &Disk)?,
        None => Draft::default(),
    };
    chosen(draft, selectors, purpose)
}

/// The same for a draft that has been read already.
pub fn chosen(mut draft: Draft, selectors: &Selectors, purpose: Purpose) -> Result<Experiment, Failure> {
    if let Some(machine) = &selectors.machine {
        draft.machine_option(machine);
    }
    for workload in &selectors.workloads {
        draft.workload_option(workload)?;
    }
    draft.arm_options(&selectors.arms, matches!(purpose, Purpose::Single | Purpose::Watch))?;
    if let Some(iterations) = &selectors.iterations {
        draft.iterations = Some(Written::option("--iterations", iterations));
    }
    if let Some(seed) = &selectors.seed {
        draft.seed = Some(Written::option("--seed", seed));
    }
    let experiment = draft.resolve(purpose, &Disk)?;
    if !selectors.quiet {
        experiment.notices.iter().for_each(|notice| say(&format!("note: {notice}")));
    }
    Ok(experiment)
}

/// The only run of an experiment that has one.
pub fn only_job(experiment: &Experiment) -> Result<Job, Failure> {
    match experiment.jobs()[..] {
        [job] => Ok(job),
        ref jobs => {
            let found = format!("the command line: found {} runs; expected one", jobs.len());
            Err(Failure::Mistake(format!("{found}: --workload once, with one value for each parameter")))
        }
    }
}

/// The number of runs at the same time, as `--jobs` says.
pub fn threads(jobs: Option<&String>) -> Result<usize, Failure> {
    match jobs {
        Some(jobs) => Ok(Written::option("--jobs", jobs).whole("jobs", 1, MOST_JOBS)? as usize),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}
