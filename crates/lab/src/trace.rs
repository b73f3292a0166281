//! Traces of one run, streamed to a writer while it runs.

use crate::mistake::{Mistake, Written};
use crate::run::{Run, Wanted, run, start};
use crate::setup::Setup;
use machine::description::{self, Unit, scaled};
use machine::topology::Location;
use observe::{Ftrace, Gantt, Perfetto, PrevState, Statistics, Window};
use sched::sched::TaskId;
use sched::trace::{Event, Sink};
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use units::{CpuId, Ns, Ps};

/// What a trace is written as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// For ui.perfetto.dev.
    Perfetto,
    /// The text of `/sys/kernel/tracing/trace`.
    Ftrace,
    /// A picture in letters.
    Gantt,
}

/// A part of a run's simulated time, counted from boot. Without an end: the run's, or for a picture [`GANTT_LENGTH`] after the
/// beginning; a picture without a beginning starts with the workload's first task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cut {
    pub from: Option<Ns>,
    pub to: Option<Ns>,
}

/// How much a picture shows unless told otherwise.
pub const GANTT_LENGTH: Ns = Ns::from_ms(1);
/// What a run goes on after the end of a cut, so that stragglers of other CPUs are in it.
const TAIL: Ns = Ns::from_ms(2);

/// Why there is no trace.
#[derive(Debug)]
pub enum TraceError {
    Mistake(Mistake),
    Io(io::Error),
}

impl From<Mistake> for TraceError {
    fn from(mistake: Mistake) -> TraceError {
        TraceError::Mistake(mistake)
    }
}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> TraceError {
        TraceError::Io(error)
    }
}

/// Milliseconds of simulated time, with up to six decimals.
pub fn milliseconds(written: &Written) -> Result<Ns, Mistake> {
    const LONGEST: Ns = Ns::from_ms(3_600_000);
    let unit = Unit::named("ms").expect("a unit");
    match scaled(&written.text, unit) {
        Ok(ps) if ps % 1_000 == 0 && Ps(ps).ns() <= LONGEST => Ok(Ps(ps).ns()),
        _ => {
            let expected = "milliseconds of simulated time, such as 12.5, at most an hour";
            Err(written.mistake(written.quoted(), expected))
        }
    }
}

/// As the user writes it.
fn in_ms(time: Ns) -> f64 {
    time.0 as f64 / 1e6
}

/// A listener that is asked for its findings after the run has dropped it.
struct Shared<S>(Rc<RefCell<S>>);

impl<S: Sink> Sink for Shared<S> {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        self.0.borrow_mut().event(time, cpu, event);
    }

    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        self.0.borrow_mut().task(task, pid, comm, prio);
    }

    fn task_gone(&mut self, task: TaskId) {
        self.0.borrow_mut().task_gone(task);
    }
}

/// Runs `setup` with `sink` listening and gives it back. `None` when interrupted.
pub(crate) fn listen<S: Sink + 'static>(
    setup: &Setup,
    sink: S,
    until: Option<Ns>,
    interrupted: &dyn Fn() -> bool,
    at: &Location,
) -> Result<Option<(S, Run)>, Mistake> {
    let shared = Rc::new(RefCell::new(sink));
    let wanted = Wanted { sink: Some(Box::new(Shared(shared.clone()))), until, interrupted, ..Wanted::default() };
    let Some(run) = run(setup, wanted, at)? else { return Ok(None) };
    let sink = Rc::into_inner(shared).expect("the run has dropped its listener").into_inner();
    Ok(Some((sink, run)))
}

/// Runs `setup` and writes what happens. Gives back the writer, and where the cut was; `None` when interrupted.
///
/// # Errors
/// An empty cut, or one after the end of the run: then the writer has been given what every trace begins with. What the writer met;
/// more CPUs than the format can show.
pub fn trace<W: Write + 'static>(
    setup: &Setup,
    format: TraceFormat,
    cut: Cut,
    columns: usize,
    writer: W,
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<(W, Run, Ns, Ns)>, TraceError> {
    let at = Location::of("--from and --to");
    let nr_cpus =
        description::parse(&setup.machine.file, &setup.machine.name).map_err(Mistake::from)?.topology().nr_cpus();
    let (first_task, _) = start(setup, nr_cpus);
    let picture = format == TraceFormat::Gantt;
    let from = cut.from.unwrap_or(if picture { first_task } else { Ns::ZERO });
    let open_end = if picture { from + GANTT_LENGTH } else { Ns(setup.time_limit_ns.max(from.0 + 1)) };
    let to = cut.to.unwrap_or(open_end);
    if from >= to {
        let found = format!("{} ms to {} ms", in_ms(from), in_ms(to));
        return Err(Mistake::new(&at, found, "an end after the beginning").into());
    }
    let until = cut.to.is_some().then_some(to + TAIL).or(picture.then_some(to + TAIL));
    let done = match format {
        TraceFormat::Perfetto => {
            let sink = Window::new(Perfetto::new(writer, nr_cpus, from)?, nr_cpus, from, to);
            match listen(setup, sink, until, interrupted, &at)? {
                None => return Ok(None),
                Some((sink, run)) => (sink.finish().finish()?, run),
            }
        }
        TraceFormat::Ftrace => {
            let sink = Window::new(Ftrace::new(writer, nr_cpus, prev_state(&setup.kernel.name)), nr_cpus, from, to);
            match listen(setup, sink, until, interrupted, &at)? {
                None => return Ok(None),
                Some((sink, run)) => (sink.finish().finish()?, run),
            }
        }
        TraceFormat::Gantt => {
            let columns = columns.min((to - from).0 as usize);
            match listen(setup, Gantt::new(nr_cpus, from, to, columns), until, interrupted, &at)? {
                None => return Ok(None),
                Some((sink, run)) => {
                    let mut writer = writer;
                    write!(writer, "{}", sink.finish())?;
                    (writer, run)
                }
            }
        }
    };
    let (mut writer, run) = done;
    let end = Ns(run.outcome.simulated_ns);
    if end <= from {
        let found = format!("a beginning at {} ms, after the end of the run", in_ms(from));
        return Err(Mistake::new(&at, found, format!("--from below {} ms", in_ms(end))).into());
    }
    writer.flush()?;
    Ok(Some((writer, run, from, to)))
}

/// v4.14 (8ef9925b02) reports states as /proc shows them.
fn prev_state(kernel: &str) -> PrevState {
    if kernel == "v4.5-rc1" { PrevState::Raw } else { PrevState::Reported }
}

/// Runs `setup` and adds up the scheduler's statistics, without the tasks that never ran. `None` when interrupted.
pub fn statistics(
    setup: &Setup,
    interrupted: &dyn Fn() -> bool,
    at: &Location,
) -> Result<Option<(observe::Report, Run)>, Mistake> {
    let nr_cpus = description::parse(&setup.machine.file, &setup.machine.name)?.topology().nr_cpus();
    let (first_task, _) = start(setup, nr_cpus);
    let sink = Statistics::new(nr_cpus, first_task);
    let listened = listen(setup, sink, None, interrupted, at)?;
    Ok(listened.map(|(sink, run)| {
        let mut report = sink.report(Ns(run.outcome.simulated_ns));
        report.names.retain(|_, totals| totals.switches > 0 || totals.wait > Ns::ZERO);
        (report, run)
    }))
}
