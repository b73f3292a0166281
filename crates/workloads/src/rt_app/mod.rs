//! rt-app workload files: from text to a typed, checked and resolved [`Application`].
//!
//! The grammar is rt-app's (commit 55cb0c04, 2026-05-06), read as json-c reads it; `docs/rt-app.md` shows it in one
//! table. Nothing is silently dropped. What rt-app would ignore is refused, with its position and the nearest valid
//! name; or it is accepted with a warning, if rt-app documents it and it cannot matter here. Every event knows its
//! position.
//!
//! The work is done in this order, one file each: `lexical` (json-c's text to jsonc-parser's), `tree` (order,
//! positions, repeated names), `grammar`, `task`, `policy`, `event` (meaning), `names` (dense ids), `check` and
//! `instants` (the whole file).
//!
//! # A run
//!
//! [`instance`] makes an [`RtApp`] of an application. It runs as one process of threads (`process`, `program`,
//! `settings`), which do what rt-app's threads do and report what rt-app would log (`log`). From these reports an
//! [`RtApp`] produces the logs and the samples of its table.
//!
//! The table is [`RtApp::NAME`]: one row for each task that may run ([`RtApp::operations`]), with the arithmetic mean
//! in [`RtApp::UNIT`]; lower is better. A task with timers is measured by its wakeup latencies (`wu_lat`): the time
//! from the moment of a timer that a thread sleeps for until the thread runs, timer slack included. A missed moment is
//! no wakeup and gives no sample. A task without timers is measured by its rounds: how long each execution of a phase's
//! events takes.

mod check;
mod description;
mod event;
mod fault;
mod grammar;
mod instants;
mod lexical;
mod log;
mod memory;
mod names;
mod policy;
mod process;
mod program;
mod refusal;
mod run;
mod settings;
mod task;
mod tree;

#[cfg(test)]
mod tests;

pub use description::{
    Application, Barrier, BarrierId, Buffer, BufferId, Calibration, Chain, ConditionId, Event, Global, Loops,
    MemAccess, MutexId, Phase, Placed, Policy, PolicyName, Resources, SemaphoreId, SharedTimerId, Step, Task, TaskId,
    TaskgroupId, Timer, TimerMode, TimerRef, UniqueTimerId,
};
pub use fault::{Position, RtAppError, Warning, WarningKind};
pub use log::{LogRow, ThreadLog, log_text};
pub use memory::Caches;
pub use refusal::Refused;
pub use run::{Cores, RtApp, instance};

use fault::Fault;

/// The longest event, period or delay, in microseconds (36 minutes): rt-app holds them in a C `int`.
pub const LONGEST_EVENT_US: i64 = LARGEST_INT;
/// The longest `duration`, in seconds: one day.
pub const LONGEST_DURATION_S: i64 = 24 * 60 * 60;
/// The most threads at the start, of one task and of all.
pub const MOST_INSTANCES: i64 = 100_000;
/// Different task groups in one file (rt-app: `max_nbr_tgs`).
pub const MOST_TASKGROUPS: usize = 32;
/// The most forks of one task (rt-app: `FORKS_LIMIT`); at the next one rt-app stops.
pub const FORK_LIMIT: u32 = 1024;

/// rt-app stores numbers in C `int`s and clamps larger ones to this.
const LARGEST_INT: i64 = i32::MAX as i64;
/// CONFIG_NODES_SHIFT is at most 10.
const MOST_NUMA_NODES: i64 = 1024;
/// Repetitions without any time passing from which on a loop counts as endless.
const TURNS_AT_ONE_INSTANT: u64 = 1_000_000;

/// How to treat a name that occurs more than once in one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// Keep all occurrences in order, as workgen does before rt-app reads the file.
    #[default]
    Workgen,
    /// Keep the last value, at the place of the first, as rt-app does when it reads the file itself.
    JsonC,
}

/// Reads the text of an rt-app file.
///
/// `file` is the name for messages. Errors give the line and column, what was found, and what would be right; reading
/// ends at the first one. [`Application::warnings`] lists what runs but may not be what the author meant.
pub fn parse(text: &str, file: &str, duplicates: Duplicates) -> Result<Application, RtAppError> {
    read(text, file, duplicates).map_err(|fault| fault.in_file(file))
}

/// [`parse`] for bytes from a file, which must be UTF-8.
pub fn parse_bytes(bytes: &[u8], file: &str, duplicates: Duplicates) -> Result<Application, RtAppError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text, file, duplicates),
        Err(error) => Err(lexical::not_text(bytes, error).in_file(file)),
    }
}

fn read(text: &str, file: &str, duplicates: Duplicates) -> Result<Application, Fault> {
    if text.len() > LARGEST_INT as usize {
        let start = Position { line: 1, column: 1 };
        return Err(Fault::new(
            start,
            format!("the file has {} bytes", text.len()),
            format!("it should have at most {LARGEST_INT}"),
        ));
    }
    let source = lexical::Source::new(text)?;
    let value = source.parse()?;
    let mut builder = tree::Builder::new(&source, duplicates);
    let root = builder.node(&value);
    let mut warnings = builder.warnings;
    warnings.extend(source.bare_names.iter().map(|&position| Warning {
        position,
        kind: WarningKind::Reading,
        text: "\"suspend\" without a value: rt-app's reader refuses it, workgen used to add the task's name".into(),
    }));
    warnings.extend(source.trailing.map(|position| Warning {
        position,
        kind: WarningKind::NoEffect,
        text: "what stands after the description is not read".into(),
    }));
    grammar::application(file, &root, warnings)
}
