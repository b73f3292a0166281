//! From outcomes to tables and texts.

mod csv;

use crate::deadlock;
use crate::energy;
use crate::experiment::{Adaptive, Experiment, Job, Plan, Source};
use crate::html::Page;
use crate::json::changes;
use crate::json::{ArmDefinition, Document, Level, Subject, TableResult, WarnedArm, WarningResult, level_percent};
use crate::measured::{Beside, Measured};
use crate::measurements::{generator, numbered_tables};
use crate::mistake::{Location, Mistake, excerpt};
use crate::mmtests::{figures, has_ratios, ratios, render};
use crate::numbers::plain;
use crate::observed::Observed;
use crate::powercap;
use crate::programs::{application, gave_up};
use crate::record::{Ending, Outcome};
use crate::residency::{self, RunResidency};
use crate::run::Run;
use crate::samples::Samples;
use crate::setup::{FileSetup, Setup};
use crate::statistics::Better;
use crate::tables::Table;
use crate::warning::{Warning, counted};
use machine::description::Description;
use sim::engine::Sample;
use std::fmt::Write;
use units::Ns;

/// How far the runs of an experiment are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub done: usize,
    pub runs: usize,
}

impl Progress {
    pub fn is_partial(self) -> bool {
        self.done < self.runs
    }
}

/// A report in each of its forms.
#[derive(Clone, Debug)]
pub struct Report {
    pub text: String,
    pub document: Document,
    pub json: String,
    pub csv: String,
    /// Only for a comparison.
    pub html: Option<String>,
    pub samples: Samples,
    pub progress: Progress,
    /// Whether it contains a table; it may not while runs are missing.
    pub has_tables: bool,
}

/// The results of an experiment's runs.
pub struct Runs<'r, 'o> {
    pub outcome: &'r dyn Fn(&Job) -> Option<&'o Outcome>,
    pub observed: &'r dyn Fn(&Job) -> Option<&'o Observed>,
    /// CPU time that they took on the host.
    pub cpu_seconds: f64,
}

/// The message about a run that did not end as its workload should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    pub message: String,
    /// Whether it is our fault: a benchmark that hangs is; a limit or a user's program is the user's.
    pub ours: bool,
}

/// Why an outcome cannot stand in a table.
pub fn unfinished(experiment: &Experiment, job: &Job, outcome: &Outcome) -> Option<Unfinished> {
    let table = &experiment.tables[job.table];
    let title = experiment.title(job);
    match outcome.end {
        Ending::Finished if outcome.samples.iter().any(|samples| !samples.is_empty()) => None,
        Ending::Finished => Some(match &table.source {
            Source::RtApp(file) => Unfinished { message: nothing_measured(file, &title, outcome), ours: false },
            Source::Registered(_) if let Some((name, time)) = time_parameter(experiment, job) => {
                let message = format!(
                    "{title}: found nothing that ended in {name} = {time}; expected a larger {name}, until there is a first figure"
                );
                Unfinished { message, ours: false }
            }
            other => {
                let mut message = format!("{title}: the workload reported no figure");
                outcome.warnings.iter().for_each(|warning| message += &format!("\n{warning}"));
                Unfinished { message, ours: other.file().is_none() }
            }
        }),
        Ending::Time => {
            let limit = experiment.time_limit(job).0 / 1_000_000;
            let message = format!(
                "{title}: found it running after {limit} ms of simulated time; expected it to end before: a smaller \
                 workload, or a larger time_limit_ms in an experiment file"
            );
            Some(Unfinished { message, ours: false })
        }
        Ending::Deadlock { sleeping } => {
            let (told, others) = deadlock::of(outcome, sleeping);
            let mut message = format!("{title}: found {told}; expected other tasks to end each wait");
            others.iter().for_each(|warning| message += &format!("\n{warning}"));
            Some(Unfinished { message, ours: table.source.file().is_none() })
        }
    }
}

/// The parameter for how long a run of a benchmark measures, and its value.
fn time_parameter(experiment: &Experiment, job: &Job) -> Option<(&'static str, u64)> {
    let values = &experiment.tables[job.table].points[job.point].values;
    ["runtime", "milliseconds"].into_iter().find_map(|name| Some((name, *values.get(name)?)))
}

/// The message about an rt-app file whose run brought no sample.
fn nothing_measured(file: &FileSetup, title: &str, outcome: &Outcome) -> String {
    let app = application(file).expect("it has just been run");
    let samples = outcome.reported.iter().map(|&(at, series, value)| Sample { at: Ns(at), series, value });
    if let Some(gave_up) = gave_up(&app, &samples.collect::<Vec<Sample>>()).next() {
        return format!("{gave_up}, before there was anything to measure ({title})");
    }
    let task = app.tasks.iter().find(|task| task.instances > 0).unwrap_or(&app.tasks[0]);
    let at = Location { input: file.path.clone(), line: Some(task.position.line), column: Some(task.position.column) };
    let name = excerpt(&task.name, 40);
    let found = match task.has_timers() {
        true => format!("nothing to measure: \"{name}\" slept for none of its timers before the run ended"),
        false => format!("nothing to measure: \"{name}\" ended no round of its phases before the run ended"),
    };
    let expected = "a task that sleeps for a \"timer\", or whose phases are shorter than the \"duration\"";
    Mistake::new(&at, found, expected).to_string()
}

/// A comparison's report, next to `measured` if there is any.
pub fn comparison(experiment: &Experiment, measured: Option<&Measured>, plan: &Plan, runs: &Runs) -> Report {
    let jobs = plan.jobs(experiment);
    let text = |table: &Table, result: &TableResult| match table.arms.len() {
        1 => figures(table, experiment.vintage),
        _ => {
            let text = match experiment.ratio && has_ratios(table) {
                true => ratios(table),
                false => render(table, experiment.vintage, experiment.stars),
            };
            let intervals = experiment.adaptive.map(|adaptive| changes::widths(result, &adaptive));
            let intervals = intervals.unwrap_or_default();
            format!("{text}{}\n{}{intervals}", verdict(table, result), changes::text(result))
        }
    };
    let beside = measured.map(|measured| measured.beside(experiment, runs.outcome));
    let (mut report, tables) = report(experiment, beside.as_ref(), &jobs, runs, text);
    let tables: Vec<(Option<usize>, &Table, &str)> =
        tables.iter().map(|(place, table, text)| (*place, table, text.as_str())).collect();
    let (document, head) = (&report.document, &head(experiment, &report.document.warnings));
    let page = Page { experiment, document, tables: &tables, head, measured: beside.as_ref(), observed: runs.observed };
    report.html = Some(page.render());
    report
}

/// The report on a single arm: the benchmark's figures, without anything to compare them with.
pub fn single<'o>(
    experiment: &Experiment,
    outcome: &dyn Fn(&Job) -> Option<&'o Outcome>,
    residency: Vec<RunResidency>,
    cpu_seconds: f64,
) -> Report {
    let runs = Runs { outcome, observed: &|_| None, cpu_seconds };
    let mut report =
        report(experiment, None, &experiment.jobs(), &runs, |table, _| figures(table, experiment.vintage)).0;
    report.document.residency = residency;
    report.json = report.document.to_text();
    report
}

/// The report, and for each table its index in the experiment and its text.
fn report(
    experiment: &Experiment,
    beside: Option<&Beside>,
    jobs: &[Job],
    runs: &Runs,
    table_text: impl Fn(&Table, &TableResult) -> String,
) -> (Report, Vec<(Option<usize>, Table, String)>) {
    let outcome = runs.outcome;
    let done: Vec<&Outcome> = jobs.iter().filter_map(outcome).collect();
    let progress = Progress { done: done.len(), runs: jobs.len() };
    let events = done.iter().map(|outcome| outcome.events).sum();
    let (places, tables): (Vec<Option<usize>>, Vec<Table>) = numbered_tables(experiment, outcome).into_iter().unzip();
    let mut document = document(experiment, &tables, events, runs.cpu_seconds);
    document.warnings = warnings(experiment, jobs, outcome);
    let mut text = String::new();
    if progress.is_partial() {
        let _ = writeln!(text, "PARTIAL: {} of {} runs are done\n", progress.done, progress.runs);
    }
    text.push_str(&head(experiment, &document.warnings));
    let texts: Vec<String> =
        tables.iter().zip(&document.tables).map(|(table, result)| table_text(table, result)).collect();
    for ((table, result), own) in tables.iter().zip(&document.tables).zip(&texts) {
        let _ = write!(text, "\n{own}");
        text.push_str(&beside_published(table, result));
    }
    if let Some(Beside { measured, rows, unfinished }) = beside {
        let _ = write!(text, "\n{}", measured.text(rows, unfinished));
        document.measured = Some(measured.to_json(rows, unfinished));
    }
    let (json, csv) = (document.to_text(), csv::render(&document));
    let samples = Samples::of(experiment, jobs, outcome);
    let has_tables = !tables.is_empty();
    let report = Report { text, json, csv, html: None, samples, document, progress, has_tables };
    (report, places.into_iter().zip(tables).zip(texts).map(|((place, table), text)| (place, table, text)).collect())
}

fn document(experiment: &Experiment, tables: &[Table], events: u64, cpu_seconds: f64) -> Document {
    let subject = Subject {
        about: experiment.about.clone(),
        machine: experiment.machine.to_json(),
        seed: experiment.seed,
        iterations: experiment.iterations,
        adaptive: experiment.adaptive,
        costs: experiment.costs,
        vintage: experiment.vintage,
        arms: experiment.arms.iter().map(ArmDefinition::of).collect(),
    };
    Document::new(crate::VERSION, subject, tables, generator(experiment.seed), events, cpu_seconds)
}

/// The published column next to the first arm's means, if the experiment has one, and how many rows come near it.
fn beside_published(table: &Table, result: &TableResult) -> String {
    let Some(published) = &table.published else { return String::new() };
    let simulated = |label: &str| {
        let row = result.rows.iter().find(|row| row.label == label)?;
        row.arms[0].mean
    };
    let rows: Vec<(&str, f64, f64)> =
        published.rows.iter().filter_map(|(label, real)| Some((label.as_str(), *real, simulated(label)?))).collect();
    let width = rows.iter().map(|row| row.0.len()).max().unwrap_or(0).max("row".len());
    let mut text = format!("{} beside what was published ({})\n", table.arms[0], published.source);
    let _ = writeln!(text, "{:<width$} {:>14}{:>14}{:>13}", "row", "published", "simulated", "difference");
    let decimals = table.decimals;
    for &(label, real, simulated) in &rows {
        let percent = plain(level_percent(real, simulated), 1);
        let _ = writeln!(text, "{label:<width$} {real:>14.decimals$}{simulated:>14.decimals$}{percent:>12}%");
    }
    let Level { rows, within_10, within_25 } = result.near_published().unwrap_or_default();
    let _ = writeln!(text, "within 10%: {within_10} of {rows}; within 25%: {within_25}");
    text
}

fn verdict(table: &Table, result: &TableResult) -> String {
    let better = if table.better == Better::Lower { "lower" } else { "higher" };
    format!("{} (in {}, {better} is better)", result.verdict, result.unit)
}

/// The warnings of all runs that have ended.
fn warnings<'o>(
    experiment: &Experiment,
    jobs: &[Job],
    outcome: &dyn Fn(&Job) -> Option<&'o Outcome>,
) -> Vec<WarningResult> {
    let told = jobs.iter().filter_map(|job| Some((job.arm, outcome(job)?.warnings.as_slice())));
    let result = |same: Vec<(usize, &Warning)>| {
        let of = |arm: usize| same.iter().filter(|&&(other, _)| other == arm).count();
        let arms = experiment.arms.iter().enumerate();
        let arms = arms.map(|(arm, named)| WarnedArm { name: named.name.clone(), runs: of(arm) });
        WarningResult {
            text: same[0].1.to_string(),
            same_moment: same.iter().all(|(_, other)| *other == same[0].1),
            arms: arms.filter(|arm| arm.runs > 0).collect(),
        }
    };
    counted(told).into_iter().map(result).collect()
}

/// What was run, in a few lines, and every warning with the number of runs that had it.
fn head(experiment: &Experiment, warnings: &[WarningResult]) -> String {
    let Experiment { machine, arms, iterations, adaptive, seed, .. } = experiment;
    let mut text = String::new();
    let prices = machine
        .prices_of
        .as_ref()
        .map_or_else(String::new, |from| format!("; prices of {from}, all of them guesses here"));
    let _ = writeln!(text, "machine  {}: {}{prices}", machine.name, machine.description.topology().summary());
    for arm in arms {
        let _ = writeln!(text, "arm      {} = {}, {} Hz", arm.name, arm.summary(), arm.hz);
    }
    let iterations = match iterations {
        _ if let Some(Adaptive { min, max, half_width }) = adaptive => {
            format!("{min} to {max} iterations, until intervals are within +-{half_width}%, paired by seed")
        }
        1 => "1 iteration".to_string(),
        many if arms.len() > 1 => format!("{many} iterations, paired by seed"),
        many => format!("{many} iterations"),
    };
    let told = warnings.iter().flat_map(|warning| &warning.arms).map(|arm| arm.runs).sum::<usize>();
    let costs = if experiment.costs { "on" } else { "off: paths, cache lines and wakeups are free" };
    let _ = writeln!(text, "runs     {iterations}, seed {seed}, cost model {costs}, warnings {told}");
    for WarningResult { text: said, same_moment, arms: warned } in warnings {
        let runs = |arm: &WarnedArm| {
            let runs = if arm.runs == 1 { "1 run".to_string() } else { format!("{} runs", arm.runs) };
            if arms.len() == 1 { runs } else { format!("{runs} of {}", arm.name) }
        };
        let runs = warned.iter().map(runs).collect::<Vec<_>>().join(", ");
        let first = if *same_moment { "" } else { "; the moment is the first one's" };
        let _ = writeln!(text, "warning  {said} (in {runs}{first})");
    }
    text
}

/// What the machine counted in a run, printed below the scheduler's statistics.
pub fn hardware_text(setup: &Setup, machine: &Description, run: &Run) -> String {
    let mut text = String::new();
    let totals = &run.hardware;
    let ms = |ps: u64| ps as f64 / 1e9;
    let _ = writeln!(text, "The machine from boot to the end, {:.3} ms", ms(totals.idle.duration.0));
    let _ = writeln!(
        text,
        "Cache lines moved since the workload's start: {}, waited for {:.3} ms on all CPUs together",
        run.lines_moved.transfers,
        ms(run.lines_moved.stalled.0)
    );
    let _ = write!(text, "\n{}", totals.idle.text());
    text.push_str(&residency::frequency_text(&totals.frequencies, machine, setup.costs));
    let (states, samples) = (&totals.idle.states, &run.outcome.samples);
    text.push_str(&energy::text(setup, states, totals.energy.as_ref(), run.energy.as_ref(), samples));
    text.push_str(&powercap::text(totals));
    let outcome = &run.outcome;
    let _ = writeln!(text, "\n{} engine events, digest {}", outcome.events, &outcome.digest[..16]);
    text
}
