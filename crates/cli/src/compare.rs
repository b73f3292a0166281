//! `compare`.

use crate::arguments::{CompareArguments, Format, Selectors};
use crate::execute::{Keep, Patience, execute, guarded, thread_cpu_ns};
use crate::failure::Failure;
use crate::measured_folder::measured;
use crate::output::print;
use crate::progress::Course;
use crate::select::{experiment, threads};
use crate::store::Store;
use lab::experiment::{Experiment, Job, Plan, Purpose};
use lab::measured::Measured;
use lab::mistake::Location;
use lab::observed::Observed;
use lab::record::{Outcome, Record};
use lab::report::{Report, Runs, unfinished};
use lab::run::{Wanted, run as run_setup};
use lab::setup::Setup;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Results = BTreeMap<Job, Done>;

/// The part of a run that is kept in memory.
struct Done {
    outcome: Outcome,
    observed: Option<Observed>,
    cpu_ns: u64,
}

impl Done {
    /// Tables need only the samples. What the samples were computed from is stored, and may be long.
    fn new(outcome: Outcome, observed: Option<Observed>, cpu_ns: u64) -> Done {
        Done { outcome: Outcome { reported: Vec::new(), ..outcome }, observed, cpu_ns }
    }
}

/// What all comparisons of one call share.
pub struct Session {
    pub patience: Patience,
    pub course: Course,
    pub threads: usize,
    pub format: Format,
}

impl Session {
    pub fn new(selectors: &Selectors, format: Format) -> Result<Session, Failure> {
        let threads = threads(selectors.jobs.as_ref())?;
        let course = Course::new(threads, selectors.quiet);
        Ok(Session { patience: Patience::watch(), course, threads, format })
    }
}

/// `fairground compare`.
pub fn compare(arguments: &CompareArguments) -> Result<(), Failure> {
    let measured = arguments.measured.as_deref().map(measured).transpose()?;
    let arguments = &arguments.run;
    let purpose = if measured.is_some() { Purpose::Prediction } else { Purpose::Comparison };
    let experiment = experiment(&arguments.selectors, purpose)?;
    measured.as_ref().map_or(Ok(()), |measured| measured.check(&experiment))?;
    let folder = arguments.out.as_ref().map_or_else(|| Store::default_folder(&experiment), PathBuf::from);
    let mut session = Session::new(&arguments.selectors, arguments.format)?;
    let report = comparison(&mut session, 0, &experiment, measured.as_ref(), &folder)?;
    drop(session);
    print(chosen(&report, arguments.format))
}

/// Runs what is missing in `folder`, and reports on everything. `number` distinguishes the session's experiments.
pub fn comparison(
    session: &mut Session,
    number: usize,
    experiment: &Experiment,
    measured: Option<&Measured>,
    folder: &Path,
) -> Result<Report, Failure> {
    let store = Store::open(folder, experiment)?;
    let mut results = Results::new();
    let mut plan = Plan::first(experiment);
    let mut stopped = None;
    loop {
        let jobs = plan.jobs(experiment);
        let missing = take(session, number, experiment, &store, &jobs, &mut results)?;
        match run_missing(session, number, experiment, &store, &missing, &mut results) {
            Err(Failure::Mistake(mistake)) => stopped = Some(mistake),
            ended => ended?,
        }
        if stopped.is_some() || session.patience.is_over() {
            break;
        }
        match plan.next(experiment, &|job| results.get(job).map(|done| &done.outcome)) {
            Some(next) => plan = next,
            None => break,
        }
    }
    let runs = Runs {
        outcome: &|job| results.get(job).map(|done| &done.outcome),
        observed: &|job| results.get(job)?.observed.as_ref(),
        cpu_seconds: cpu_seconds(&results),
    };
    let report = lab::report::comparison(experiment, measured, &plan, &runs);
    if report.progress.is_partial() {
        session.course.hide(|| partial(stopped, &report, session.format, &store))?;
    }
    store.report(&report)?;
    session.course.say(&format!("results: {}", folder.display()));
    Ok(report)
}

/// Takes the stored runs among `jobs` into `results`, and returns the others.
fn take(
    session: &mut Session,
    number: usize,
    experiment: &Experiment,
    store: &Store,
    jobs: &[Job],
    results: &mut Results,
) -> Result<Vec<Job>, Failure> {
    let first = results.is_empty();
    let mut missing = Vec::new();
    for job in jobs.iter().filter(|job| !results.contains_key(job)).copied().collect::<Vec<Job>>() {
        let Some(Record { outcome: Some(outcome), host_cpu_ns, observed, .. }) = store.load(experiment, &job) else {
            missing.push(job);
            continue;
        };
        session.course.found(number, &job, host_cpu_ns);
        // A stored run may have ended badly, too.
        check(experiment, &job, &outcome, Some(&store.record_path(experiment, &job)))?;
        results.insert(job, Done::new(outcome, observed, host_cpu_ns));
    }
    if first && !results.is_empty() {
        let (stored, place) = (results.len(), store.folder().display());
        session.course.say(&format!("note: {stored} of {} runs are taken from {place}", jobs.len()));
        let further = |job: &Job| Job { iteration: experiment.iterations, ..*job };
        if experiment.adaptive.is_none() && jobs.iter().any(|job| Store::has(store.folder(), experiment, &further(job)))
        {
            let asked = experiment.iterations;
            session.course.say(&format!(
                "note: {place} has more than {asked} iterations; the report is of {asked}, the other runs stay there"
            ));
        }
    }
    session.course.expect(number, &missing);
    Ok(missing)
}

/// Runs the missing jobs, and stores them.
fn run_missing(
    session: &mut Session,
    number: usize,
    experiment: &Experiment,
    store: &Store,
    missing: &[Job],
    results: &mut Results,
) -> Result<(), Failure> {
    let Session { patience, course, threads, .. } = session;
    let work = |job: &Job, give_up: &dyn Fn() -> bool| {
        let setup = experiment.setup(job);
        guarded(&setup, Keep::At(&store.record_path(experiment, job)), || {
            record(&setup, observed(experiment, job), give_up)
        })
        .and_then(|record| record.map(|record| store.save(experiment, job, &record).map(|_| record)).transpose())
    };
    execute(missing, *threads, patience, work, |job, record: Record| {
        let outcome = record.outcome.expect("a run that has ended has an outcome");
        check(experiment, &job, &outcome, Some(&store.record_path(experiment, &job)))?;
        results.insert(job, Done::new(outcome, record.observed, record.host_cpu_ns));
        course.ended(number, &job, record.host_cpu_ns);
        Ok(())
    })
}

/// Some runs are missing, because the user interrupted, or one of them met a mistake of the user's, `stopped`. Finished
/// runs are kept.
fn partial(stopped: Option<String>, report: &Report, format: Format, store: &Store) -> Result<(), Failure> {
    let (done, runs) = (report.progress.done, report.progress.runs);
    if done == 0 && store.discard() {
        return Err(stopped.map_or_else(Failure::interrupted_at_first, Failure::Mistake));
    }
    store.report(report)?;
    // Programs that read JSON or CSV must not mistake a part for the whole. A table needs a run of every arm.
    if stopped.is_none() && format == Format::Text && report.has_tables {
        print(&report.text)?;
    }
    let done = format_args!("{done} of {runs}");
    Err(match stopped {
        None => Failure::interrupted(done, Some(store.folder())),
        Some(why) => Failure::Mistake(format!("{why}: {done} runs are kept in {}", store.folder().display())),
    })
}

pub fn chosen(report: &Report, format: Format) -> &str {
    match format {
        Format::Text => &report.text,
        Format::Json => &report.json,
        Format::Csv => &report.csv,
    }
}

fn cpu_seconds(results: &Results) -> f64 {
    results.values().map(|done| done.cpu_ns).sum::<u64>() as f64 / 1e9
}

/// Checks that a run ended as it should. `record` is where it is stored.
pub fn check(experiment: &Experiment, job: &Job, outcome: &Outcome, record: Option<&Path>) -> Result<(), Failure> {
    match unfinished(experiment, job, outcome) {
        None => Ok(()),
        Some(unfinished) if unfinished.ours => {
            let again =
                record.map(|path| format!("; this command runs it again: fairground replay {}", path.display()));
            Err(Failure::Ours(unfinished.message + &again.unwrap_or_default()))
        }
        Some(unfinished) => Err(Failure::Mistake(unfinished.message)),
    }
}

/// The place for mistakes in our own setups. There should be none; if there is, this says where the setup came from.
pub fn here() -> Location {
    Location::of("the experiment")
}

/// What the report shows about a run besides its samples.
fn observed(experiment: &Experiment, job: &Job) -> Wanted<'static> {
    Wanted { observed: job.iteration == 0, profile: experiment.profiles(job), ..Wanted::default() }
}

/// Runs a setup on this thread. `wanted` also says what to observe.
fn record(setup: &Setup, wanted: Wanted, give_up: &dyn Fn() -> bool) -> Result<Option<Record>, Failure> {
    let since = Instant::now();
    let before = thread_cpu_ns(since);
    let wanted = Wanted { interrupted: give_up, ..wanted };
    let Some(run) = run_setup(setup, wanted, &here())? else { return Ok(None) };
    let cpu_ns = thread_cpu_ns(since).saturating_sub(before);
    Ok(Some(Record { observed: run.observed, ..Record::new(setup.clone(), Some(run.outcome), cpu_ns) }))
}
