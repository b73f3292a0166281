//! `sensitivity`.

use crate::arguments::{MeasureFormat, SensitivityArguments};
use crate::execute::{Keep, Patience, execute, guarded};
use crate::failure::Failure;
use crate::output::{print, say};
use crate::progress::bar;
use crate::select::{experiment, threads};
use crate::store::Store;
use crate::trials::Trials;
use indicatif::ProgressBar;
use lab::experiment::Purpose;
use lab::mistake::{Location, Written};
use lab::record::Outcome;
use lab::report::unfinished;
use lab::run::{Wanted, run};
use lab::sensitivity::{Plan, Ranking, Results, Trial};
use std::path::PathBuf;

/// The most lines of a ranking.
const MOST: u64 = 10_000;
/// Digits of an identity in a folder's name.
const SHORT: usize = 8;

/// `fairground sensitivity`.
pub fn sensitivity(arguments: &SensitivityArguments) -> Result<(), Failure> {
    let quiet = arguments.selectors.quiet;
    let top = Written::option("--top", &arguments.top).whole("top", 1, MOST)? as usize;
    let experiment = experiment(&arguments.selectors, Purpose::Prediction)?;
    let threads = threads(arguments.selectors.jobs.as_ref())?;
    let patterns: Vec<Written> = arguments.figures.iter().map(|text| Written::option("--figures", text)).collect();
    let patience = Patience::watch();
    // There are hundreds of machines to make, which takes longer than many a run, so there is a bar for it.
    let mut shown = ProgressBar::hidden();
    let mut go_on = |done: usize, all: usize| {
        if done == 0 {
            shown = bar("figures", all, done, quiet);
        }
        shown.set_position(done as u64);
        !patience.is_over()
    };
    let plan = Plan::new(experiment, &patterns, &mut go_on)?;
    shown.finish_and_clear();
    let Some(plan) = plan else { return Err(Failure::interrupted_at_first()) };
    if !quiet {
        let (figures, variations) = (plan.uncertain.len(), plan.variations());
        let begin = plan.first().len();
        say(&format!(
            "note: uncertain figures: {figures}, ends of their ranges: {variations}, runs to begin with: {begin}"
        ));
    }
    let place = arguments.out.as_ref().map_or_else(|| default_place(&plan), PathBuf::from);
    let mut trials = Trials::open(&place, &plan)?;
    let mut results = Results::new();
    for first in [true, false] {
        let wanted = if first { plan.first() } else { plan.rest(&results) };
        let (done, all) = (results.len(), wanted.len());
        let missing = trials.take(&plan, wanted, &mut results);
        let found = results.len() - done;
        if !quiet && found > 0 {
            say(&format!("note: {found} of {all} runs are taken from {}", place.display()));
        }
        run_missing(&plan, &missing, threads, &patience, &mut trials, &mut results, quiet)?;
        if patience.is_over() {
            break;
        }
    }
    finish(&Ranking::new(&plan, &results), &trials, results.len(), top, arguments)
}

/// The default folder of a ranking.
fn default_place(plan: &Plan) -> PathBuf {
    Store::place().join(format!("{}-sensitivity-{}", plan.name(), &plan.identity()[..SHORT]))
}

/// Runs the missing trials, and stores them.
fn run_missing(
    plan: &Plan,
    missing: &[Trial],
    threads: usize,
    patience: &Patience,
    trials: &mut Trials,
    results: &mut Results,
    quiet: bool,
) -> Result<(), Failure> {
    let bar = bar("runs", missing.len(), 0, quiet);
    let work =
        |trial: &Trial, give_up: &dyn Fn() -> bool| {
            let setup = plan.setup(trial);
            let wanted = Wanted { interrupted: give_up, ..Wanted::default() };
            guarded(&setup, Keep::Aside, || {
                Ok(run(&setup, wanted, &Location::of("the experiment"))?.map(|run| run.outcome))
            })
        };
    let ended = execute(missing, threads, patience, work, |trial, outcome: Outcome| {
        if let Some(unfinished) = unfinished(plan.experiment(&trial), &plan.job(&trial), &outcome) {
            let message = format!("{}: {}", plan.title(&trial), unfinished.message);
            return Err(if unfinished.ours { Failure::Ours(message) } else { Failure::Mistake(message) });
        }
        let outcome = Outcome { reported: Vec::new(), ..outcome };
        trials.save(plan, &trial, &outcome)?;
        results.insert(trial, outcome);
        bar.inc(1);
        Ok(())
    });
    bar.finish_and_clear();
    if results.is_empty() {
        trials.discard();
    }
    ended
}

/// Stores and prints the ranking, which may be partial.
fn finish(
    ranking: &Ranking,
    trials: &Trials,
    done: usize,
    top: usize,
    arguments: &SensitivityArguments,
) -> Result<(), Failure> {
    if done == 0 {
        return Err(Failure::interrupted_at_first());
    }
    let (text, json) = (ranking.to_text(top), ranking.to_json());
    trials.report(ranking.partial, &text, &json)?;
    // Programs that read JSON must not mistake a part for the whole.
    if !ranking.partial || arguments.format == MeasureFormat::Text {
        print(if arguments.format == MeasureFormat::Text { &text } else { &json })?;
    }
    if ranking.partial {
        return Err(Failure::interrupted(done, Some(trials.place())));
    }
    if !arguments.selectors.quiet {
        say(&format!("results: {}", trials.place().display()));
    }
    Ok(())
}
