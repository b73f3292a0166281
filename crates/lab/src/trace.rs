//! Traces of one run, streamed to a writer while it runs.

use crate::idle;
use crate::kernels::Build;
use crate::mistake::{Mistake, Written, listed};
use crate::run::{Run, Wanted, run, start};
use crate::setup::Setup;
use machine::description::{Unit, scaled};
use machine::energy::Power;
use machine::idle::Way;
use machine::topology::Location;
use observe::Formats;
use observe::{Absent, Ftrace, Gantt, Perfetto, PowerOf, STRAGGLER, Selection, Statistics, Tracepoint, Window};
use sched::sched::TaskId;
use sched::trace::{Context, Event, Sink};
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use units::{CpuId, Ns, Ps};

/// The format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// For ui.perfetto.dev.
    Perfetto,
    /// The text of `/sys/kernel/tracing/trace`.
    Ftrace,
    /// A picture made of letters.
    Gantt,
}

/// A part of a run's simulated time, counted from boot. Without an end it is the run's end, or for a picture
/// [`GANTT_LENGTH`] after the beginning; a picture without a beginning starts with the workload's first task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cut {
    pub from: Option<Ns>,
    pub to: Option<Ns>,
}

/// What a trace should show, and how.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub format: TraceFormat,
    pub cut: Cut,
    /// The columns of a picture.
    pub columns: usize,
    /// `None`: every event that the kernel has in tracefs and that the format can show as an event.
    pub events: Option<Selection>,
}

/// The tracepoints of a comma-separated list of names and patterns (`*`).
///
/// # Errors
/// A name that this kernel does not have, or that is never reported here; a pattern that matches none.
pub fn events(list: &Written, build: &Build) -> Result<Selection, Mistake> {
    let known = || Tracepoint::of_kernel(build.formats);
    let mut selection = Selection::NONE;
    let mut start = 0;
    for word in list.text.split(',') {
        let part = list.part(start, word);
        start += word.len() + 1;
        let before = selection;
        known().filter(|tracepoint| fits(word, tracepoint.name())).for_each(|it| selection.add(it));
        let found = known().any(|tracepoint| fits(word, tracepoint.name()));
        if found {
            continue;
        }
        debug_assert_eq!(before, selection);
        let kernel = build.sched.name;
        return Err(match Tracepoint::absent(word, build.formats) {
            Some(Absent::InThisKernel) => part
                .mistake(format!("the tracepoint {}, which {kernel} does not have", part.quoted()), "one that it has"),
            Some(Absent::Here(why)) => {
                let found = format!("the tracepoint {}, which is never told here: {why}", part.quoted());
                part.mistake(found, "another one")
            }
            None if word.contains('*') => {
                let expected = format!("a part of the name of one of {}", listed(known().map(Tracepoint::name)));
                part.mistake(format!("the pattern {}, which fits no tracepoint of {kernel}", part.quoted()), expected)
            }
            None => part.unknown(&format!("tracepoint of {kernel}"), known().map(Tracepoint::name)),
        });
    }
    Ok(selection)
}

/// Whether a pattern matches a name: `*` stands for any letters, or none.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// What a kernel says once if tracepoints are enabled while the statistics that they need are off (fair.c:
/// check_schedstat_required()).
pub fn schedstat_required(events: Selection, collects: bool) -> Option<String> {
    let asked: Vec<&str> = events.of_schedstats().map(Tracepoint::name).collect();
    if collects || asked.is_empty() {
        return None;
    }
    let want = if asked.len() == 1 { "wants" } else { "want" };
    let how = "as settings of the arm, such as --arm KERNEL,schedstats=enable";
    let told = "only sched_stat_runtime tells anything without";
    Some(format!(
        "warning: {} {want} scheduler statistics, which are off: boot with schedstats=enable or set \
         kernel.sched_schedstats=1, {how} ({told})",
        asked.join(", ")
    ))
}

/// How much time a picture shows by default.
pub const GANTT_LENGTH: Ns = Ns::from_ms(1);
/// How long a run continues after the end of a cut, to include late events of other CPUs.
const TAIL: Ns = Ns(2 * STRAGGLER.0);

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
    fn context(&mut self, context: Context) {
        self.0.borrow_mut().context(context);
    }

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

/// Runs `setup` with `sink` listening, and returns the sink. `None` if interrupted.
pub(crate) fn listen<S: Sink + 'static>(
    setup: &Setup,
    sink: S,
    bare_tracepoints: bool,
    until: Option<Ns>,
    interrupted: &dyn Fn() -> bool,
    at: &Location,
) -> Result<Option<(S, Run)>, Mistake> {
    let (sink, run) = listen_while(setup, sink, bare_tracepoints, until, &|_| !interrupted(), at)?;
    Ok(run.map(|run| (sink, run)))
}

/// The same, for as long as `goes_on` says so about the listener; no run once it has said no.
fn listen_while<S: Sink + 'static>(
    setup: &Setup,
    sink: S,
    bare_tracepoints: bool,
    until: Option<Ns>,
    goes_on: &dyn Fn(&S) -> bool,
    at: &Location,
) -> Result<(S, Option<Run>), Mistake> {
    let shared = Rc::new(RefCell::new(sink));
    let sink = Some(Box::new(Shared(shared.clone())) as Box<dyn Sink>);
    let interrupted = || !goes_on(&shared.borrow());
    let wanted = Wanted { sink, bare_tracepoints, until, interrupted: &interrupted, ..Wanted::default() };
    let run = run(setup, wanted, at)?;
    let sink = Rc::into_inner(shared).expect("the run has dropped its listener").into_inner();
    Ok((sink, run))
}

/// Runs `setup` and writes its events. Returns the writer, and the cut; `None` if interrupted.
///
/// # Errors
/// An empty cut, or one after the end of the run: the writer then holds what every trace begins with. Errors of the
/// writer. More CPUs than the format can show.
pub fn trace<W: Write + 'static>(
    setup: &Setup,
    wish: Wish,
    writer: W,
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<(W, Run, Ns, Ns)>, TraceError> {
    let Wish { format, cut, columns, events } = wish;
    let at = Location::of("--from and --to");
    let formats = formats(setup);
    let bare = events.is_some_and(Selection::has_bare);
    let nr_cpus = setup.machine.nr_cpus()?;
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
            let events = events.unwrap_or_else(|| Selection::with_message(formats));
            let mut perfetto = Perfetto::new(writer, nr_cpus, from, formats, events)?;
            if let Some(power) = power_of(setup, &at)? {
                perfetto = perfetto.with_power(power);
            }
            let sink = Window::new(perfetto, nr_cpus, from, to);
            // With a full disk there is no point in going on.
            let goes_on = |sink: &Window<Perfetto<W>>| !interrupted() && !sink.sink().has_failed();
            let (sink, run) = listen_while(setup, sink, bare, until, &goes_on, &at)?;
            (sink.finish().finish()?, run)
        }
        TraceFormat::Ftrace => {
            let events = events.unwrap_or_else(|| Selection::events(formats));
            let sink = Window::new(Ftrace::new(writer, nr_cpus, formats, events), nr_cpus, from, to);
            let goes_on = |sink: &Window<Ftrace<W>>| !interrupted() && !sink.sink().has_failed();
            let (sink, run) = listen_while(setup, sink, bare, until, &goes_on, &at)?;
            (sink.finish().finish()?, run)
        }
        TraceFormat::Gantt => {
            let columns = columns.min((to - from).0 as usize);
            match listen(setup, Gantt::new(nr_cpus, from, to, columns), false, until, interrupted, &at)? {
                None => return Ok(None),
                Some((sink, run)) => {
                    let mut writer = writer;
                    write!(writer, "{}", sink.finish())?;
                    (writer, Some(run))
                }
            }
        }
    };
    let (mut writer, Some(run)) = done else { return Ok(None) };
    let end = Ns(run.outcome.simulated_ns);
    if end <= from {
        let found = format!("a beginning at {} ms, after the end of the run", in_ms(from));
        return Err(Mistake::new(&at, found, format!("--from below {} ms", in_ms(end))).into());
    }
    writer.flush()?;
    Ok(Some((writer, run, from, to)))
}

/// The power of the CPUs of the setup's machine, if it is known and a core has one thread.
fn power_of(setup: &Setup, at: &Location) -> Result<Option<Box<PowerOf>>, Mistake> {
    let machine = setup.machine.machine()?.description;
    let single = machine.topology().cores().iter().all(|core| core.cpus.weight() == 1);
    let Some(power) = Power::of(&machine).filter(|_| single && setup.costs) else { return Ok(None) };
    let mut states = machine.idle_states();
    let polls = states.first().is_some_and(|state| state.target_residency == Ps::ZERO);
    let (build, ..) = setup.kernel.build(machine.topology().nr_cpus(), at)?;
    if matches!(idle::options(setup, &machine, &build.idle, polls, at)?.way, Way::Off | Way::Halt) {
        // CPUs then enter only the shallowest state that does not poll, so it must come first.
        states.retain(|state| state.target_residency > Ps::ZERO);
    }
    Ok(Some(Box::new(move |cpu, state, khz| {
        let state = state.and_then(|state| states.get(usize::from(state))).map(|state| state.name.as_str());
        power.drawn_uw(cpu, state, khz)
    })))
}

/// The kernel of a setup is known, because the setup was made from an experiment.
fn formats(setup: &Setup) -> Formats {
    Build::named(&setup.kernel.name).map_or(Formats::V4_5, |build| build.formats)
}

/// Runs `setup` and adds up the scheduler's statistics, without tasks that never ran. `None` if interrupted.
pub fn statistics(
    setup: &Setup,
    interrupted: &dyn Fn() -> bool,
    at: &Location,
) -> Result<Option<(observe::Report, Run)>, Mistake> {
    let nr_cpus = setup.machine.nr_cpus()?;
    let (first_task, _) = start(setup, nr_cpus);
    let sink = Statistics::new(nr_cpus, first_task);
    let listened = listen(setup, sink, false, None, interrupted, at)?;
    Ok(listened.map(|(sink, run)| {
        let mut report = sink.report(Ns(run.outcome.simulated_ns));
        report.names.retain(|_, totals| totals.switches > 0 || totals.wait > Ns::ZERO);
        (report, run)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Draft, Purpose};
    use crate::machines::tests::Table;
    use std::cell::Cell;

    fn chosen(kernel: &str, list: &str) -> Result<Vec<&'static str>, String> {
        let build = Build::named(kernel).expect("a kernel that is built");
        let selection = events(&Written::option("--events", list), &build).map_err(|mistake| mistake.to_string())?;
        Ok(selection.iter().map(Tracepoint::name).collect())
    }

    /// A disk with room for this many bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_run_ends_with_the_room_for_its_trace() {
        let mut draft = Draft::default();
        draft.machine_option("core-i7-3770");
        draft.arm_options(&["v6.12".to_string()], true).expect("an arm");
        draft.workload_option("hackbench-pipes:groups=4,loops=100").expect("a workload");
        let experiment = draft.resolve(Purpose::Single, &Table::default()).expect("an experiment");
        let setup = experiment.setup(&experiment.jobs()[0]);
        for format in [TraceFormat::Perfetto, TraceFormat::Ftrace] {
            let asked = Cell::new(0);
            let never = || asked.replace(asked.get() + 1) == usize::MAX;
            let wish = Wish { format, cut: Cut::default(), columns: 80, events: None };
            trace(&setup, wish, io::sink(), &never).expect("there is room").expect("nobody interrupts it");
            let whole = asked.replace(0);
            match trace(&setup, wish, Disk(100_000), &never) {
                Err(TraceError::Io(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
                _ => panic!("a full disk"),
            }
            assert!(asked.get() < whole / 2, "{format:?}: looked {} times of {whole}", asked.get());
        }
    }

    #[test]
    fn names_and_patterns_choose() {
        assert_eq!(chosen("v4.15", "sched_switch,cpu_*").unwrap(), ["sched_switch", "cpu_idle", "cpu_frequency"]);
        let bare = ["pelt_cfs_tp", "pelt_se_tp", "pelt_rt_tp", "pelt_dl_tp", "pelt_irq_tp"];
        assert_eq!(chosen("v6.1", "pelt_*").unwrap(), bare);
        assert_eq!(chosen("v6.12", "*_est_*_tp").unwrap(), ["sched_util_est_cfs_tp", "sched_util_est_se_tp"]);
        let new = chosen("v4.5-rc1", "sched_wak*g,sched_wakeup*").unwrap();
        assert_eq!(new, ["sched_waking", "sched_wakeup", "sched_wakeup_new"]);
    }

    #[test]
    fn what_a_kernel_lacks_is_told() {
        for (kernel, list, part) in [
            ("v4.15", "sched_swich", "found the unknown tracepoint of v4.15 `sched_swich`; expected `sched_switch`"),
            (
                "v4.16",
                "sched_switch,pelt_se_tp",
                "column 14: found the tracepoint `pelt_se_tp`, which v4.16 does not have",
            ),
            ("v4.16", "pelt_*", "which fits no tracepoint of v4.16"),
            ("v6.1", "sched_process_hang", "which is never told here: nobody looks for hung tasks"),
            ("v6.1", "", "found the unknown tracepoint of v6.1 ``"),
        ] {
            let error = chosen(kernel, list).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn statistics_that_are_off_are_asked_for_once() {
        let build = Build::named("v6.1").expect("a kernel");
        let of = |list: &str| events(&Written::option("--events", list), &build).expect("known");
        let said = schedstat_required(of("sched_stat_*"), false).expect("a warning");
        assert!(said.contains("sched_stat_wait, sched_stat_sleep") && said.contains("schedstats=enable"), "{said}");
        assert_eq!(said.lines().count(), 1);
        assert!(schedstat_required(of("sched_stat_runtime"), false).is_some(), "as the kernel has it");
        assert_eq!(schedstat_required(of("sched_stat_*"), true), None);
        assert_eq!(schedstat_required(of("sched_w*,sched_switch"), false), None);
    }
}
