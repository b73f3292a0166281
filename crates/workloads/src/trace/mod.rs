//! Replay of a recorded trace: the work that tasks did on a real machine (or in a simulation) runs under another
//! scheduler.
//!
//! A recording is read ([`read`]) in one of three formats: text as `/sys/kernel/tracing/trace`, `trace-cmd report` and
//! `perf script` print it; Perfetto's (`.pftrace`); or scripts made from a recording earlier, which is how a run's
//! record carries one. The scheduler's events of each task become a script ([`Step`]):
//!
//! | in the recording | in the script |
//! |---|---|
//! | on a CPU | run, in CPU time: system calls and interrupts within it count |
//! | left its CPU runnable (preempted), or woken and not yet there | nothing: that is the scheduler's doing |
//! | slept, and a task woke it | wait for that task, which wakes it where it did: after as much of its own CPU time |
//! | slept, and an interrupt, or idle's, woke it | sleep as long; in state D wait for a device |
//! | forked | fork, from where its script begins |
//! | another priority | the same policy (SCHED_NORMAL or SCHED_FIFO) and priority |
//!
//! A wake is a futex's; a recording does not tell whether the recorded one had the sync hint. For each direction, two
//! tasks have a semaphore of their own. So an early wakeup is not lost, and a task waits for exactly the task that woke
//! it.
//!
//! Tasks that existed before the recording begins are started on the CPU where they are first seen, and all begin at
//! the same moment. A script ends with the recording, whatever its task would have done next; then the task exits. If a
//! file of Perfetto's was cut, what runs on a CPU ends with the last event that is left of that CPU. An idle CPU idles on.
//!
//! `sched_waking` tells who woke a task. If only `sched_wakeup` was recorded, the wakeup of a task on another CPU is
//! reported by that CPU, and counts as an interrupt's. Interrupts are recognised by the events' flags (`h` and `s` in
//! text), by the events of handlers ([`context`]), or by the idle task. A recording may have neither flags nor the
//! events of both timers and devices (or softirqs): then a timer is assumed to wake a task, if the task is woken out of
//! idle more often than by the task in whose context it is woken. A softirq acts on behalf of the task that raised it,
//! if that task still runs; the softirqs of timers, RCU and balancing act for no task. If another task runs, or
//! `softirq_raise` was not recorded, the wakeup counts as the running task's doing, unless softirqs also woke the same
//! task out of idle: loopback traffic is the sender's doing, a network card's is not.
//!
//! Some waits did not sleep, because what they wait for was already there. They are in no recording, and so in no
//! script. Where tasks were preempted between a request and the wait for its answer, the replay therefore runs ahead.
//!
//! Not modelled: CPU sets, and policies that events do not show (SCHED_BATCH, SCHED_IDLE, SCHED_RR, deadline
//! parameters, groups); the work of interrupts and of `migration/N`, because the simulated kernel has its own; the
//! effect of another frequency or another sibling on a task's work, because run time is CPU time as recorded. Sleeps
//! are relative, so a period drifts by how late its task is.

mod build;
mod context;
mod event;
mod perfetto;
mod program;
mod stored;
mod text;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;
use units::Ns;

pub use program::{Playback, Row};

/// The most CPUs that a recording may name.
pub const MOST_CPUS: usize = 8_192;
/// The most tasks of a recording.
pub const MOST_TASKS: usize = 100_000;
/// The longest recording: a day.
pub const LONGEST: Ns = Ns(24 * 3_600 * 1_000_000_000);

/// The result of reading a recording: a script for each task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replay {
    /// The tasks; parents come before their children.
    pub tasks: Vec<Task>,
    /// The length of the recording.
    pub end: Ns,
    /// Oddities of the recording; not stored.
    pub notice: Notice,
}

/// One recorded task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    pub name: String,
    /// The kernel's: 100 to 139 are nice -20 to 19, 0 to 98 real-time 99 to 1, -1 deadline.
    pub prio: i32,
    /// The CPU where the task is first seen.
    pub cpu: u32,
    /// Whether its name says that it is bound to that CPU.
    pub bound: bool,
    pub kernel: bool,
    /// Tasks with the same number share memory.
    pub process: Option<u32>,
    pub begin: Begin,
    pub steps: Vec<Step>,
}

/// How a script begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// It existed, or ended its sleep, this long after the start of the recording.
    At(Ns),
    /// Its first step is a wait.
    Waiting,
    /// Another task's step forks it.
    Forked,
}

/// What a task does next. Tasks are named by their index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Use so much more CPU time.
    Run(Ns),
    Wake(u32),
    /// Sleep until that task wakes it.
    Wait(u32),
    Sleep(Ns),
    /// Wait for a device for so long.
    Io(Ns),
    /// Change the priority, as in [`Task::prio`].
    Prio(i32),
    Fork(u32),
}

/// Oddities of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Notice {
    /// Events that the scripts do not use.
    pub skipped: BTreeMap<String, u64>,
    pub unreadable: u64,
    /// Places where the recorder lost events, and how many it says they were.
    pub losses: u64,
    pub lost: u64,
    /// Switches that are missing: another task ran than the one that came last.
    pub gaps: u64,
    /// Sleeps whose end no event explains.
    pub unexplained: u64,
    /// Tasks that are left out because the simulated kernel has its own.
    pub ignored: u64,
    pub deadline: u64,
    /// Tasks of a recording that was cut which ran when their CPUs' events ended, and the longest time from there to the end.
    pub cut: u64,
    pub cut_longest: Ns,
    /// No wakeup was recorded: time in run queues cannot be told from sleep.
    pub without_wakeups: bool,
    /// `sched_waking` was not recorded.
    pub without_waking: bool,
}

/// A recording that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// Counted from 1; `None` if it concerns the whole recording, or the format is not text.
    pub place: Option<(u32, u32)>,
    pub found: String,
    pub expected: String,
}

impl TraceError {
    fn at(line: u32, column: u32, found: impl Into<String>, expected: impl Into<String>) -> TraceError {
        TraceError { place: Some((line, column)), found: found.into(), expected: expected.into() }
    }

    fn whole(found: impl Into<String>, expected: impl Into<String>) -> TraceError {
        TraceError { place: None, found: found.into(), expected: expected.into() }
    }
}

/// Reads a recording in any of its formats.
///
/// # Errors
/// If the bytes are no recording, or an impossible one: what was found, where, and what would be right.
pub fn read(bytes: &[u8]) -> Result<Replay, TraceError> {
    if let Some(text) = bytes.strip_prefix(stored::MAGIC.as_bytes()) {
        let text = std::str::from_utf8(text).map_err(|_| TraceError::whole("scripts that are no text", "UTF-8"))?;
        return stored::read(text);
    }
    let mut recorded = event::Recorded::new();
    match kind(bytes)? {
        Kind::Text => text::read(&String::from_utf8_lossy(bytes), &mut recorded)?,
        Kind::Perfetto => perfetto::read(bytes, &mut recorded)?,
    }
    if !recorded.events.iter().any(|event| matches!(event.what, event::What::Switch { .. })) {
        let others: u64 = recorded.skipped.values().sum::<u64>() + recorded.events.len() as u64;
        let found = if others == 0 { "no event".to_string() } else { format!("{others} events, but no sched_switch") };
        let expected = "a recording of sched_switch, sched_waking and sched_wakeup_new (trace-cmd record -e sched)";
        return Err(TraceError::whole(found, expected));
    }
    recorded.events.sort_by_key(|event| event.time);
    context::resolve(&mut recorded);
    let (first, last) = (recorded.events[0].time, recorded.events[recorded.events.len() - 1].time);
    if last.saturating_sub(first) > LONGEST {
        let found = format!("events over {} seconds", (last - first).0 / 1_000_000_000);
        return Err(TraceError::whole(found, "a recording of at most a day"));
    }
    build::build(&recorded)
}

/// The line and column, both from 1, where a text recording first shows that task on that CPU.
pub fn place_of_cpu(bytes: &[u8], cpu: u32, task: &str) -> Option<(u32, u32)> {
    matches!(kind(bytes), Ok(Kind::Text)).then(|| text::place_of_cpu(&String::from_utf8_lossy(bytes), cpu, task))?
}

impl Replay {
    /// The scripts as text, which [`read`] reads again.
    pub fn text(&self) -> String {
        stored::text(self)
    }

    /// The number of CPUs that the machine must have: the highest number named, plus one.
    pub fn nr_cpus(&self) -> usize {
        self.tasks.iter().map(|task| task.cpu as usize + 1).max().unwrap_or(1)
    }

    /// How many steps satisfy `kind`.
    pub fn count(&self, kind: impl Fn(&Step) -> bool) -> usize {
        self.tasks.iter().flat_map(|task| &task.steps).filter(|&step| kind(step)).count()
    }
}

impl Notice {
    /// All oddities in one line; `None` if there are none.
    pub fn line(&self) -> Option<String> {
        let mut parts: Vec<String> = Vec::new();
        let mut count = |number: u64, one: &str, several: &str, what: &str| {
            if number > 0 {
                parts.push(format!("{number} {} {what}", if number == 1 { one } else { several }));
            }
        };
        count(self.unreadable, "line or packet", "lines or packets", "not read as an event");
        count(self.losses, "place", "places", "where events were lost");
        count(self.gaps, "switch", "switches", "not recorded");
        count(self.unexplained, "sleep", "sleeps", "that nobody is seen to end");
        count(self.ignored, "task", "tasks", "of the scheduler's own left out");
        count(self.deadline, "deadline task", "deadline tasks", "as SCHED_FIFO 99");
        if self.cut > 0 {
            let stop = if self.cut == 1 { "task that ran stops" } else { "tasks that ran stop" };
            let its = if self.cut == 1 { "its CPU" } else { "their CPUs" };
            let us = self.cut_longest.0 / 1_000;
            parts.push(format!(
                "the file ends within a packet: {} {stop} at the last event of {its}, up to {us} us before the end",
                self.cut
            ));
        }
        let skipped: u64 = self.skipped.values().sum();
        if skipped > 0 {
            let mut text = format!("{skipped} event{} of other kinds left out (", if skipped == 1 { "" } else { "s" });
            let mut most: Vec<(&String, &u64)> = self.skipped.iter().collect();
            most.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
            for (at, (name, count)) in most.iter().take(3).enumerate() {
                let _ = write!(text, "{}{name}: {count}", if at > 0 { ", " } else { "" });
            }
            text += if most.len() > 3 { ", ...)" } else { ")" };
            parts.push(text);
        }
        if self.without_wakeups {
            parts.push("no wakeups: time in run queues counts as sleep, and nobody wakes another".to_string());
        }
        if self.without_waking {
            parts.push("no sched_waking: wakeups from another CPU count as an interrupt's".to_string());
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

enum Kind {
    Text,
    Perfetto,
}

/// The format of a file, from its first bytes.
fn kind(bytes: &[u8]) -> Result<Kind, TraceError> {
    let others: [(&[u8], &str, &str); 5] = [
        (b"\x17\x08\x44tracing", "a trace.dat", "the text that trace-cmd report prints of it"),
        (b"PERFILE2", "a perf.data", "the text that perf script prints of it"),
        (b"\x1f\x8b", "a file compressed by gzip", "the trace itself: gunzip it"),
        (b"\x28\xb5\x2f\xfd", "a file compressed by zstd", "the trace itself: unzstd it"),
        (b"PK\x03\x04", "a zip archive", "the trace itself: unzip it"),
    ];
    for (magic, found, expected) in others {
        if bytes.starts_with(magic) {
            return Err(TraceError::whole(found, expected));
        }
    }
    if bytes.iter().all(|byte| byte.is_ascii_whitespace()) {
        return Err(TraceError::whole("an empty file", "a recorded trace"));
    }
    let head = &bytes[..bytes.len().min(4_096)];
    let binary = head.iter().any(|&byte| byte < 0x20 && !byte.is_ascii_whitespace() && byte != 0x1b);
    match (binary, bytes[0]) {
        (false, _) => Ok(Kind::Text),
        // Trace.packet, field 1.
        (true, 0x0a) => Ok(Kind::Perfetto),
        (true, first) => Err(TraceError::whole(
            format!("bytes that begin with {first:#04x}"),
            "a Perfetto trace (.pftrace), or text as trace-cmd report or perf script print it",
        )),
    }
}

fn backwards(cpu: u32, from: Ns, to: Ns) -> TraceError {
    let seconds = |time: Ns| format!("{}.{:09}", time.0 / 1_000_000_000, time.0 % 1_000_000_000);
    let found = format!("time going backwards on CPU {cpu}, from {} to {} seconds", seconds(from), seconds(to));
    TraceError::whole(found, "each CPU's events in the order of time, by one clock")
}

/// The beginning of a text, cut to one line.
fn excerpt(text: &str) -> String {
    let mut kept: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).take(60).collect();
    if text.chars().nth(60).is_some() {
        kept.push_str("...");
    }
    kept
}
