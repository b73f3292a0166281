//! Fidelity: a case has two sides, the recording of a real kernel and a simulation, and compares each figure.
//!
//! A case is an experiment with `[[figure]]` tables. Each table gives what is measured, of which tasks; the real
//! kernel's figure; how far the simulated one may be off; and, for a known gap, the reason. `docs/fidelity.md`
//! describes the format.

mod table;

pub use crate::experiment::{Figure, Measure, Over, Tolerance, header, line};
pub use table::{Row, Verdict, render};

use crate::deadlock;
use crate::experiment::{Experiment, Tasks, Values};
use crate::mistake::{Location, Mistake};
use crate::record::{Ending, Outcome};
use crate::setup::Setup;
use crate::trace::listen;
use crate::warning::{Warning, counted};
use observe::PerTask;

/// The result of a case.
#[derive(Debug)]
pub struct Checked {
    pub rows: Vec<Row>,
    /// What the user should know about its runs, each line once.
    pub warnings: Vec<Warning>,
}

/// Runs a case as often as it says, each time with another seed, and compares every figure. `None` if interrupted.
///
/// # Errors
/// A figure of tasks that the runs did not have; a run that did not end; more than one row.
pub fn check(case: &Experiment, interrupted: &dyn Fn() -> bool) -> Result<Option<Checked>, Mistake> {
    let jobs = case.jobs();
    if jobs.len() != case.iterations as usize {
        let found = format!("{} runs of each iteration", jobs.len() / case.iterations as usize);
        return Err(Mistake::new(&Location::of(&case.name), found, "a case of one row"));
    }
    let (mut runs, mut told) = (Vec::new(), Vec::new());
    for job in &jobs {
        let Some((tasks, outcome)) = simulate(&case.setup(job), interrupted)? else { return Ok(None) };
        has_ended(case, &outcome)?;
        runs.push(tasks);
        told.push(outcome.warnings);
    }
    let told = counted(told.iter().map(|warnings| ((), warnings.as_slice())));
    let warnings = told.into_iter().map(|same| same[0].1.clone()).collect();
    let row = |figure: &Figure| {
        let simulated = runs.iter().map(|run| figure.of_tasks(run)).collect::<Result<Vec<f64>, Mistake>>()?;
        Ok::<Row, Mistake>(Row::new(case, figure, simulated))
    };
    let rows = case.figures.iter().map(row).collect::<Result<_, Mistake>>()?;
    Ok(Some(Checked { rows, warnings }))
}

/// Refuses a run that did not end: part of a run cannot be compared with what the real kernel did.
fn has_ended(case: &Experiment, outcome: &Outcome) -> Result<(), Mistake> {
    let (found, expected) = match outcome.end {
        Ending::Finished => return Ok(()),
        Ending::Time => {
            ("tasks that still run at the time limit".to_string(), "a larger time_limit_ms, or tasks that end")
        }
        Ending::Deadlock { sleeping } => (deadlock::of(outcome, sleeping).0, "tasks that end"),
    };
    let input = case.figures.first().map_or(&case.name, |figure| &figure.at.input);
    Err(Mistake::new(&Location::of(input), found, expected))
}

fn simulate(setup: &Setup, interrupted: &dyn Fn() -> bool) -> Result<Option<(Tasks, Outcome)>, Mistake> {
    let nr_cpus = setup.machine.nr_cpus()?;
    let at = Location::of("the case");
    let listened = listen(setup, PerTask::new(nr_cpus), false, None, interrupted, &at)?;
    Ok(listened.map(|(sink, run)| {
        let tasks = sink.finish().into_iter().map(|(name, of)| (name, Values::from(&of)));
        let group =
            |(path, stat): (String, String)| (path, Values::of_group(&stat.split_whitespace().collect::<Vec<_>>()));
        (tasks.chain(run.group_stats.into_iter().map(group)).collect(), run.outcome)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Purpose, parse};
    use crate::machines::tests::Table;

    fn checked(tasks: &str, of: &str) -> Result<Vec<Row>, String> {
        checked_with(tasks, of, "").map(|checked| checked.rows)
    }

    fn checked_with(tasks: &str, of: &str, more: &str) -> Result<Checked, String> {
        let text = format!(
            "machine = \"1\"\ntime_limit_ms = 20\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n{tasks}\"\"\"\n[[arm]]\nname = \"r\"\n\
             kernel = \"v6.1\"\n[[figure]]\nof = \"{of}\"\nfigure = \"run_ms\"\nreal = 10\nwithin = 10\n{more}"
        );
        let case = parse(&text, "x.toml").and_then(|draft| draft.resolve(Purpose::Single, &Table::default()));
        let checked = case.and_then(|case| check(&case, &|| false)).map_err(|mistake| mistake.to_string())?;
        Ok(checked.expect("nobody interrupts it"))
    }

    #[test]
    fn warnings_of_its_runs_are_part_of_what_came_of_a_case() {
        let late = "[[timeline]]\nat = \"50ms\"\nfeatures = [\"NO_NEXT_BUDDY\"]\n";
        let [warning] = &checked_with("task a: run 5ms\n", "a", late).unwrap().warnings[..] else { panic!("one") };
        assert!(warning.to_string().starts_with("timeline: `NO_NEXT_BUDDY` at 50 ms did not come"), "{warning}");
        assert!(checked_with("task a: run 5ms\n", "a", "").unwrap().warnings.is_empty());
    }

    #[test]
    fn a_run_that_does_not_end_is_no_part_of_a_comparison() {
        let rows = checked("task a: run 5ms\n", "a").unwrap();
        assert_eq!(rows[0].verdict(), Verdict::Agrees);
        let long = checked("task a: run 500ms\n", "a").unwrap_err();
        assert_eq!(
            long,
            "x.toml: found tasks that still run at the time limit; expected a larger time_limit_ms, or tasks that end"
        );
        // The task that waits for both is not reported.
        let stuck = checked("task a: run 5ms\ntask b: read p\n", "a").unwrap_err();
        assert_eq!(
            stuck,
            "x.toml: found 1 task asleep that nothing will ever wake: \"b\" in `read p` (x.toml:7:9); expected tasks that end"
        );
    }

    #[test]
    fn nothing_is_no_negative_number() {
        let rows = checked("task a: sleep 5ms\ntask idle: sleep 1ms\n", "idle").unwrap();
        assert!(!render(&rows).contains("-0"), "{}", render(&rows));
    }
}
