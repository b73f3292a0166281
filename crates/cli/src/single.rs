//! `run`.

use crate::arguments::{Format, RunArguments};
use crate::compare::{check, chosen, here};
use crate::execute::{Keep, Patience, execute, guarded, thread_cpu_ns};
use crate::failure::Failure;
use crate::output::{print, say};
use crate::progress::bar;
use crate::select::{experiment, threads};
use crate::store::{Counted, Store};
use lab::experiment::{Experiment, Job, Purpose};
use lab::record::{Outcome, Record};
use lab::report::{Report, hardware_text, single};
use lab::residency::RunResidency;
use lab::run::Run;
use lab::setup::Setup;
use lab::trace::statistics;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// A finished run: its figures, its cost, and what the scheduler and the machine counted in it.
struct Done {
    outcome: Outcome,
    cpu_ns: u64,
    counted: Counted,
}

/// `fairground run`.
pub fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let quiet = arguments.selectors.quiet;
    let experiment = experiment(&arguments.selectors, Purpose::Single)?;
    let threads = threads(arguments.selectors.jobs.as_ref())?;
    let patience = Patience::watch();
    let store = arguments.out.as_ref().map(|folder| Store::open(Path::new(folder), &experiment)).transpose()?;
    let jobs = experiment.jobs();
    let mut results = stored(store.as_ref(), &experiment, &jobs)?;
    let missing: Vec<Job> = jobs.iter().filter(|job| !results.contains_key(job)).copied().collect();
    if let (Some(store), false, false) = (&store, results.is_empty(), quiet) {
        say(&format!("note: {} of {} runs are taken from {}", results.len(), jobs.len(), store.folder().display()));
    }
    let bar = bar("runs", jobs.len(), results.len(), quiet);
    let work = |job: &Job, give_up: &dyn Fn() -> bool| {
        let setup = experiment.setup(job);
        let place = store.as_ref().map(|store| store.record_path(&experiment, job));
        let run = || measured(&experiment, job, &setup, give_up);
        guarded(&setup, place.as_deref().map_or(Keep::Aside, Keep::At), run)
    };
    let ended = execute(&missing, threads, &patience, work, |job, (run, cpu_ns, counted): (Run, u64, Counted)| {
        let mut stored = None;
        if let Some(store) = &store {
            store.save_logs(&experiment, &job, &run.logs)?;
            store.save_statistics(&experiment, &job, &counted)?;
            let record = Record::new(experiment.setup(&job), Some(run.outcome.clone()), cpu_ns);
            stored = Some(store.save(&experiment, &job, &record)?);
        }
        check(&experiment, &job, &run.outcome, stored.as_deref())?;
        let outcome = Outcome { reported: Vec::new(), ..run.outcome };
        results.insert(job, Done { outcome, cpu_ns, counted });
        bar.inc(1);
        Ok(())
    });
    bar.finish_and_clear();
    if let (Err(Failure::Mistake(_)), true, Some(store)) = (&ended, results.is_empty(), &store) {
        store.discard();
    }
    ended?;
    finish(&report(&experiment, &results), arguments, store.as_ref())
}

/// Takes the stored runs.
fn stored(store: Option<&Store>, experiment: &Experiment, jobs: &[Job]) -> Result<BTreeMap<Job, Done>, Failure> {
    let mut results = BTreeMap::new();
    let Some(store) = store else { return Ok(results) };
    for job in jobs {
        let Some((record, counted)) = store.load(experiment, job).zip(store.load_statistics(experiment, job)) else {
            continue;
        };
        let Some(outcome) = record.outcome else { continue };
        // A stored run may have ended badly, too.
        check(experiment, job, &outcome, Some(&store.record_path(experiment, job)))?;
        results.insert(*job, Done { outcome, cpu_ns: record.host_cpu_ns, counted });
    }
    Ok(results)
}

/// Runs a setup on this thread, with everything that is reported about it.
fn measured(
    experiment: &Experiment,
    job: &Job,
    setup: &Setup,
    give_up: &dyn Fn() -> bool,
) -> Result<Option<(Run, u64, Counted)>, Failure> {
    let since = Instant::now();
    let before = thread_cpu_ns(since);
    let Some((report, run)) = statistics(setup, give_up, &here())? else { return Ok(None) };
    let cpu_ns = thread_cpu_ns(since).saturating_sub(before);
    let stats = run.group_stats.iter().map(|(path, text)| format!("\ncpu.stat of {path}\n{text}"));
    let machine = &experiment.machine.description;
    let text = format!("{report}\n{}{}", hardware_text(setup, machine, &run), stats.collect::<String>());
    let residency = RunResidency::of(experiment.title(job), setup, machine, &run);
    Ok(Some((run, cpu_ns, Counted { text, residency })))
}

fn report(experiment: &Experiment, results: &BTreeMap<Job, Done>) -> Report {
    let cpu_seconds = results.values().map(|done| done.cpu_ns).sum::<u64>() as f64 / 1e9;
    let residency = results.values().map(|done| done.counted.residency.clone()).collect();
    let mut report = single(experiment, &|job| results.get(job).map(|done| &done.outcome), residency, cpu_seconds);
    for (job, Done { counted, .. }) in results {
        let title = experiment.title(job);
        report.text.push_str(&format!("\n{title}\n{}\n\n{}", "-".repeat(title.chars().count()), counted.text));
    }
    report
}

/// Stores and prints the report, which may be partial.
fn finish(report: &Report, arguments: &RunArguments, store: Option<&Store>) -> Result<(), Failure> {
    let (done, runs) = (report.progress.done, report.progress.runs);
    if done == 0 {
        if let Some(store) = store {
            store.discard();
        }
        return Err(Failure::interrupted_at_first());
    }
    if let Some(store) = store {
        store.report(report)?;
        if !arguments.selectors.quiet {
            say(&format!("results: {}", store.folder().display()));
        }
    }
    if !report.progress.is_partial() {
        return print(chosen(report, arguments.format));
    }
    if arguments.format == Format::Text {
        print(&report.text)?;
    }
    Err(Failure::interrupted(format_args!("{done} of {runs}"), store.map(Store::folder)))
}
