//! Workloads that are read from a file, in the form that a setup has them: rt-app's descriptions, scripts, recorded
//! traces.

use crate::mistake::{Location, Mistake};
use crate::setup::FileSetup;
use crate::warning::Warning;
use sim::engine::Sample;
use workloads::rt_app::{Application, Duplicates, RtAppError, parse};
use workloads::script::{Refused, Script};
use workloads::trace::{self, Replay};

/// The names of these workloads.
pub const RT_APP: &str = "rt-app";
pub const SCRIPT: &str = "script";
pub const TRACE: &str = "trace";

/// Parses a stored file. Repeated names are kept, as workgen does before rt-app reads the file.
pub fn application(file: &FileSetup) -> Result<Application, RtAppError> {
    parse(&file.text, &file.path, Duplicates::Workgen)
}

/// Parses a stored script.
pub fn script(file: &FileSetup) -> Result<Script, Mistake> {
    Script::parse(&file.text, 1).map_err(|error| {
        let at = Location { input: file.path.clone(), line: Some(error.line), column: Some(error.column) };
        Mistake::new(&at, error.found, error.expected)
    })
}

/// The warning for a request of a script's task that the kernel refused.
pub fn refusal(script: &Script, refused: &Refused) -> Warning {
    let task = &script.tasks[refused.task];
    let (name, line) = (&task.name, task.place.0);
    let Refused { request, errno, why, .. } = refused;
    let (errno, meaning) = (errno.name(), errno.meaning());
    let lost = if refused.step.is_some() { "ended early" } else { "has no row" };
    let before =
        format!("\"{name}\" of line {line} {lost}: the kernel refused its {request} with {errno} ({meaning}) at ");
    Warning::timed(before, refused.at, format!(": {why}"))
}

/// Why rt-app ended before its threads did.
pub fn gave_up(app: &Application, reported: &[Sample]) -> impl Iterator<Item = Warning> {
    let most_forks = app.fork_limit_reached(reported).map(|task| {
        let name = &app.tasks[task.index()].name;
        format!("\"{name}\" was forked as often as rt-app can, where it gives up").into()
    });
    let refused = app.refused(reported).map(|refused| {
        let [before, after] = refused.around();
        Warning::timed(before, refused.at, after)
    });
    most_forks.into_iter().chain(refused)
}

/// The scripts that are stored for a recording.
pub fn replay(file: &FileSetup, nr_cpus: usize) -> Result<Replay, Mistake> {
    let replay = trace::read(file.text.as_bytes()).map_err(|error| mistake(&file.path, error))?;
    if replay.nr_cpus() > nr_cpus {
        let found = format!("scripts of {} CPUs", replay.nr_cpus());
        return Err(whole(&file.path, found, format!("at most the machine's {nr_cpus}")));
    }
    Ok(replay)
}

pub fn mistake(path: &str, error: trace::TraceError) -> Mistake {
    let (line, column) = error.place.unzip();
    Mistake::new(&Location { input: path.to_string(), line, column }, error.found, error.expected)
}

pub fn whole(path: &str, found: String, expected: String) -> Mistake {
    Mistake::new(&Location { input: path.to_string(), line: None, column: None }, found, expected)
}
