//! `sensitivity`.

use crate::arguments::{MeasureFormat, SensitivityArguments};
use crate::execute::{Keep, Patience, execute, guarded, progress};
use crate::failure::Failure;
use crate::output::{print, say};
use crate::select::{experiment, threads};
use lab::experiment::Purpose;
use lab::mistake::{Location, Written};
use lab::record::Outcome;
use lab::report::unfinished;
use lab::run::{Wanted, run};
use lab::sensitivity::{Plan, Ranking, Results, Trial};

/// Lines that a ranking has at most.
const MOST: u64 = 10_000;

/// `fairground sensitivity`.
pub fn sensitivity(arguments: &SensitivityArguments) -> Result<(), Failure> {
    let quiet = arguments.selectors.quiet;
    let top = Written::option("--top", &arguments.top).whole("figures", 1, MOST)? as usize;
    let experiment = experiment(&arguments.selectors, Purpose::Prediction)?;
    let threads = threads(&arguments.selectors)?;
    let patterns: Vec<Written> = arguments.figures.iter().map(|text| Written::option("--figures", text)).collect();
    let plan = Plan::new(experiment, &patterns)?;
    if !quiet {
        let (figures, variations) = (plan.uncertain.len(), plan.variations());
        say(&format!(
            "note: {figures} uncertain figures, {variations} ends of their ranges, {} runs to begin with",
            plan.first().len()
        ));
    }
    let patience = Patience::watch();
    let mut results = Results::new();
    for first in [true, false] {
        let trials = if first { plan.first() } else { plan.rest(&results) };
        let bar = progress(trials.len(), 0, quiet);
        let work = |trial: &Trial, give_up: &dyn Fn() -> bool| {
            let setup = plan.setup(trial);
            let wanted = Wanted { interrupted: give_up, ..Wanted::default() };
            guarded(&setup, Keep::Aside, || {
                Ok(run(&setup, wanted, &Location::of("the experiment"))?.map(|run| run.outcome))
            })
        };
        let ended = execute(&trials, threads, &patience, work, |trial, outcome: Outcome| {
            if let Some(unfinished) = unfinished(plan.experiment(&trial), &plan.job(&trial), &outcome) {
                let message = format!("{}: {}", plan.title(&trial), unfinished.message);
                return Err(if unfinished.ours { Failure::Ours(message) } else { Failure::Mistake(message) });
            }
            results.insert(trial, Outcome { reported: Vec::new(), ..outcome });
            bar.inc(1);
            Ok(())
        });
        bar.finish_and_clear();
        ended?;
        if patience.is_over() {
            break;
        }
    }
    let ranking = Ranking::new(&plan, &results);
    // Programs that read JSON must not take a part for the whole.
    if !ranking.partial || arguments.format == MeasureFormat::Text {
        match arguments.format {
            MeasureFormat::Text => print(&ranking.to_text(top))?,
            MeasureFormat::Json => print(&ranking.to_json())?,
        }
    }
    match ranking.partial {
        true => Err(Failure::Mistake("interrupted: what was done is ranked, nothing is kept".to_string())),
        false => Ok(()),
    }
}
