//! `trace`, `profile`, `lines`, `schedstat` and `proc`: a close look at one run.

use crate::arguments::{
    Format, LinesArguments, ProcArguments, ProfileArguments, ProfileFormat, Selectors, TraceArguments, TraceFormat,
    WatchArguments,
};
use crate::execute::{Keep, Patience, guarded};
use crate::failure::Failure;
use crate::output::{NewFile, print, say};
use crate::select::{experiment, only_job, threads};
use lab::experiment::{Experiment, Purpose};
use lab::mistake::{Location, Written};
use lab::proc::{ProcFile, Reading};
use lab::run::{Run, Wanted, run};
use lab::setup::Setup;
use lab::trace::{self, Cut, Wish, trace};
use std::io::{self, Write};
use std::path::Path;

/// The columns of a picture.
const COLUMNS: usize = 100;

fn one_run(selectors: &Selectors) -> Result<(Experiment, Setup), Failure> {
    let experiment = experiment(selectors, Purpose::Watch)?;
    // A single run uses one thread, whatever is allowed. Senseless values are refused all the same.
    threads(selectors.jobs.as_ref())?;
    let setup = experiment.setup(&only_job(&experiment)?);
    Ok((experiment, setup))
}

fn interrupted() -> Failure {
    Failure::Mistake("interrupted: nothing is kept of a single run".to_string())
}

fn watched(setup: &Setup, wanted: Wanted, selectors: &Selectors) -> Result<Run, Failure> {
    let run = || run(setup, wanted, &Location::of("the experiment")).map_err(Failure::from);
    let run = guarded(setup, Keep::Aside, run)?.ok_or_else(interrupted)?;
    warn(&run, selectors);
    Ok(run)
}

/// Prints the run's warnings, which have no place in the output itself.
fn warn(run: &Run, selectors: &Selectors) {
    if !selectors.quiet {
        run.outcome.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    }
}

/// `fairground profile`.
pub fn profile(arguments: &ProfileArguments) -> Result<(), Failure> {
    let (experiment, setup) = one_run(&arguments.selectors)?;
    if !experiment.costs && !arguments.selectors.quiet {
        say("note: the cost model is off, so the kernel takes no time");
    }
    let patience = Patience::watch();
    let wanted = Wanted { profile: true, interrupted: &|| patience.is_over(), ..Wanted::default() };
    let run = watched(&setup, wanted, &arguments.selectors)?;
    let profile = run.profile.expect("a profile was asked for");
    print(&match arguments.format {
        ProfileFormat::Perf => profile.perf_report(),
        ProfileFormat::Folded => profile.folded(),
    })
}

/// `fairground lines`.
pub fn lines(arguments: &LinesArguments) -> Result<(), Failure> {
    let most = Written::option("--lines", &arguments.lines).whole("lines", 1, 1_000_000)?;
    let (experiment, setup) = one_run(&arguments.selectors)?;
    if !experiment.costs && !arguments.selectors.quiet {
        say("note: the cost model is off, so nobody touches a line");
    }
    let patience = Patience::watch();
    let wanted = Wanted { lines: true, interrupted: &|| patience.is_over(), ..Wanted::default() };
    let run = watched(&setup, wanted, &arguments.selectors)?;
    let lines = run.lines.expect("lines were asked for");
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    print(&match arguments.format {
        Format::Text => lines.text(most),
        Format::Json => lines.json(&setup, experiment.seed, most),
        Format::Csv => lines.csv(most),
    })
}

/// `fairground schedstat`.
pub fn schedstat(arguments: &WatchArguments) -> Result<(), Failure> {
    let (experiment, setup) = one_run(&arguments.selectors)?;
    if !experiment.arms[0].collects_schedstats() && !arguments.selectors.quiet {
        say("note: schedstats are off in this arm, so most counters stay zero: schedstats=enable");
    }
    let patience = Patience::watch();
    let wanted = Wanted { schedstat: true, interrupted: &|| patience.is_over(), ..Wanted::default() };
    let run = watched(&setup, wanted, &arguments.selectors)?;
    print(&run.schedstat.expect("schedstat was asked for"))
}

/// `fairground proc`. Several files are printed below their names, as head(1) does.
pub fn proc(arguments: &ProcArguments) -> Result<(), Failure> {
    let (experiment, setup) = one_run(&arguments.selectors)?;
    let build = &experiment.arms[0].build;
    let read = |path: &String| ProcFile::parse(&Written::option("--file", path), build);
    let files = arguments.files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let at = arguments.at.as_ref().map(|text| trace::milliseconds(&Written::option("--at", text))).transpose()?;
    let patience = Patience::watch();
    let wanted = Wanted {
        reading: Some(Reading { files, at }),
        until: at,
        interrupted: &|| patience.is_over(),
        ..Wanted::default()
    };
    let run = watched(&setup, wanted, &arguments.selectors)?;
    if let Some(at) = at
        && at < run.start
    {
        let start = run.start.0.div_ceil(1_000) as f64 / 1e3;
        let found = format!("--at: found {:.3} ms, before the workload begins", at.0 as f64 / 1e6);
        return Err(Failure::Mistake(format!("{found}; expected at least {start:.3} ms since boot")));
    }
    if let Some(at) = at
        && run.outcome.simulated_ns < at.0
    {
        let end = run.outcome.simulated_ns as f64 / 1e6;
        let found = format!("--at: found {:.3} ms, after the end of the run", at.0 as f64 / 1e6);
        return Err(Failure::Mistake(format!("{found}; expected at most {end:.3} ms since boot")));
    }
    if let [text] = &run.files[..] {
        return print(text);
    }
    let titled = arguments.files.iter().zip(&run.files).map(|(path, text)| format!("==> {path} <==\n{text}"));
    print(&titled.collect::<Vec<_>>().join("\n"))
}

/// `fairground trace`.
pub fn write_trace(arguments: &TraceArguments) -> Result<(), Failure> {
    let (experiment, setup) = one_run(&arguments.selectors)?;
    let arm = &experiment.arms[0];
    let chosen = arguments.events.as_ref().map(|list| trace::events(&Written::option("--events", list), &arm.build));
    let events = chosen.transpose()?;
    if events.is_some() && arguments.format == TraceFormat::Gantt {
        return Err(Failure::Mistake("--events: found a picture; expected --format perfetto or ftrace".to_string()));
    }
    let cut = Cut {
        from: arguments.from.as_ref().map(|text| trace::milliseconds(&Written::option("--from", text))).transpose()?,
        to: arguments.to.as_ref().map(|text| trace::milliseconds(&Written::option("--to", text))).transpose()?,
    };
    let format = match arguments.format {
        TraceFormat::Perfetto => trace::TraceFormat::Perfetto,
        TraceFormat::Ftrace => trace::TraceFormat::Ftrace,
        TraceFormat::Gantt => trace::TraceFormat::Gantt,
    };
    let out = if arguments.out == "-" { "stdout" } else { arguments.out.as_str() };
    let not_written = |error| Failure::of_writing(error, out);
    let writer = match arguments.out.as_str() {
        "-" => Target::Stdout(Held { stdout: io::stdout(), held: Some(Vec::new()) }),
        path => Target::File(NewFile::named(Path::new(path)).map_err(not_written)?),
    };
    if let Some(warning) = events.and_then(|it| trace::schedstat_required(it, arm.collects_schedstats()))
        && !arguments.selectors.quiet
    {
        say(&warning);
    }
    let wish = Wish { format, cut, columns: COLUMNS, events };
    let patience = Patience::watch();
    let traced = guarded(&setup, Keep::Aside, || {
        trace(&setup, wish, writer, &|| patience.is_over()).map_err(|error| Failure::of_trace(error, out))
    })?;
    let (writer, run, from, to) = traced.ok_or_else(interrupted)?;
    writer.keep().map_err(not_written)?;
    warn(&run, &arguments.selectors);
    if !arguments.selectors.quiet {
        let ms = |ns: u64| ns as f64 / 1e6;
        let end = run.outcome.simulated_ns;
        say(&format!("{out}: {:.3} ms to {:.3} ms since boot", ms(from.0), ms(to.0.min(end))));
        say(&format!("the workload started at {:.3} ms", ms(run.start.0)));
        if to <= run.start {
            say("note: that is after the end of the trace");
        }
    }
    Ok(())
}

/// Where a trace goes.
enum Target {
    Stdout(Held),
    File(NewFile),
}

/// stdout, which gets nothing until there is something to show: like a file, it stays empty if the trace turns out to
/// contain nothing. The beginning that all traces share is smaller than [`Held::MOST`].
struct Held {
    stdout: io::Stdout,
    held: Option<Vec<u8>>,
}

impl Held {
    const MOST: usize = 8 << 20;

    fn release(&mut self) -> io::Result<()> {
        match self.held.take() {
            Some(bytes) => self.stdout.write_all(&bytes),
            None => Ok(()),
        }
    }
}

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.held {
            Some(held) if held.len() + bytes.len() <= Held::MOST => {
                held.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            _ => {
                self.release()?;
                self.stdout.write(bytes)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_some() { Ok(()) } else { self.stdout.flush() }
    }
}

impl Target {
    fn keep(self) -> io::Result<()> {
        match self {
            Target::Stdout(mut stdout) => stdout.release().and_then(|()| stdout.flush()),
            Target::File(file) => file.keep(),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Stdout(stdout) => stdout.write(bytes),
            Target::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Stdout(stdout) => stdout.flush(),
            Target::File(file) => file.flush(),
        }
    }
}
