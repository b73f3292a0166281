//! Recordings in text: `/sys/kernel/tracing/trace`, `trace-cmd report` with or without `-R`, `perf script` and `perf sched script`.
//!
//! ```text
//!     TASK-PID     [CPU] FLAGS SECONDS: EVENT: FIELDS          ftrace, trace-cmd
//!     TASK   PID   [CPU] SECONDS: sched:EVENT: FIELDS          perf
//!     CPU:N [LOST M EVENTS]
//! ```
//!
//! Fields have the kernel's own print format, or that of trace-cmd's plugins: `ping:101 [120] S ==> pong:102 [120]`.

use super::event::{Context, Event, Handler, NO_VECTOR, Recorded, UNNAMED, What, Who, left_by_letters};
use super::{TraceError, backwards};
use units::Ns;

/// After this many lines: if more than half of them are no events, the text is no trace.
const LOOKED_AT: u64 = 50;

/// Reads all lines. Lines that are no event are counted. A scheduler event without its fields is an error, except at
/// the very end, where a recording may have been cut.
pub(super) fn read(text: &str, recorded: &mut Recorded) -> Result<(), TraceError> {
    let mut lines = text.lines().zip(1..).peekable();
    let mut first_odd = None;
    while let Some((line, number)) = lines.next() {
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if let Some((cpu, lost)) = lost_events(content) {
            match recorded.events.last().map(|event| event.time) {
                None => recorded.lost_first = (recorded.lost_first.0 + 1, recorded.lost_first.1.saturating_add(lost)),
                Some(time) => {
                    let what = What::Lost(lost);
                    let context = Context::Task;
                    recorded.events.push(Event { time, cpu, running: None, running_name: UNNAMED, context, what });
                }
            }
            continue;
        }
        let cut = lines.peek().is_none() && !text.ends_with('\n');
        match head(line) {
            Some(head) => {
                if let Err(from) = recorded.passes(head.cpu, head.time) {
                    let TraceError { found, expected, .. } = backwards(head.cpu, from, head.time);
                    return Err(TraceError::at(number, 1, found, expected));
                }
                match event(&head, recorded) {
                    Ok(()) => {}
                    Err(_) if cut => recorded.unreadable += 1,
                    Err(missing) => return Err(TraceError::at(number, head.column, missing.0, missing.1)),
                }
            }
            None => {
                recorded.unreadable += u64::from(!is_preamble(content));
                first_odd.get_or_insert((number, content));
            }
        }
        let read = recorded.events.len() as u64 + recorded.skipped.values().sum::<u64>();
        if recorded.unreadable > LOOKED_AT && recorded.unreadable > read {
            break;
        }
    }
    let read = recorded.events.len() as u64 + recorded.skipped.values().sum::<u64>();
    match first_odd {
        Some((number, content)) if recorded.unreadable > read => {
            Err(TraceError::at(number, 1, format!("`{}`", super::excerpt(content)), EXPECTED))
        }
        _ => Ok(()),
    }
}

const EXPECTED: &str = "lines as trace-cmd report or perf script print them, `TASK-PID [CPU] SECONDS: EVENT: FIELDS`";

/// The position of the first line of that CPU that names the task, or else of the CPU's first line; the column is that
/// of the CPU.
pub(super) fn place_of_cpu(text: &str, cpu: u32, task: &str) -> Option<(u32, u32)> {
    let of_cpu = || text.lines().zip(1..).filter(|(line, _)| head(line).is_some_and(|head| head.cpu == cpu));
    let (line, number) = of_cpu().find(|(line, _)| line.contains(task)).or_else(|| of_cpu().next())?;
    let bracket = line.match_indices('[').find_map(|(at, _)| head_from(line, at).map(|_| at))?;
    Some((number, line[..bracket].chars().count() as u32 + 2))
}

/// Whether it is a line that trace-cmd prints before the first event.
fn is_preamble(line: &str) -> bool {
    let begins = |word: &str| line.starts_with(word);
    begins("cpus=") || begins("version =") || begins("CPU ") || begins("trace-cmd") || begins("Overriding")
}

/// `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [12 EVENTS DROPPED]`, `CPU:1 [EVENTS DROPPED]`.
fn lost_events(line: &str) -> Option<(u32, u64)> {
    let (cpu, said) = line.strip_prefix("CPU:")?.split_once(' ')?;
    let said = said.trim().strip_prefix('[')?.strip_suffix(']')?;
    let known = said.contains("LOST") || said.contains("DROPPED");
    let number = said.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0);
    known.then_some((cpu.trim().parse().ok()?, number))
}

/// The part of a line before its fields.
struct Head<'a> {
    name: &'a str,
    pid: u32,
    cpu: u32,
    flags: Option<&'a str>,
    time: Ns,
    event: &'a str,
    fields: &'a str,
    /// The column of the event's name, from 1.
    column: u32,
}

fn head(line: &str) -> Option<Head<'_>> {
    // A task may be called `[3]`, so the first bracket is not always the CPU's.
    line.match_indices('[').find_map(|(at, _)| head_from(line, at))
}

fn head_from(line: &str, bracket: usize) -> Option<Head<'_>> {
    let (before, rest) = line.split_at(bracket);
    let (cpu, rest) = rest[1..].split_once(']')?;
    let cpu = cpu.parse().ok()?;
    let (name, pid) = task(before)?;
    let (mut word, mut rest) = next_word(rest)?;
    let mut flags = None;
    if !word.ends_with(':') {
        flags = Some(word);
        (word, rest) = next_word(rest)?;
    }
    let time = time(word.strip_suffix(':')?)?;
    let (mut word, mut rest) = next_word(rest)?;
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        // perf prints its sample period here.
        (word, rest) = next_word(rest)?;
    }
    let column = word.as_ptr() as usize - line.as_ptr() as usize;
    let column = line[..column].chars().count() as u32 + 1;
    let event = word.strip_suffix(':').unwrap_or("function");
    let event = event.rsplit(':').next().unwrap_or(event);
    Some(Head { name, pid, cpu, flags, time, event, fields: rest.trim(), column })
}

fn next_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The name and number in `TASK-PID`, `TASK PID`, `TASK PID/TID` or `TASK-PID ( TGID)`.
fn task(before: &str) -> Option<(&str, u32)> {
    let mut before = before.trim();
    if let Some(rest) = before.strip_suffix(')') {
        before = rest.rsplit_once('(')?.0.trim_end();
    }
    let name = before.trim_end_matches(|c: char| c.is_ascii_digit());
    let pid = &before[name.len()..];
    let name = match name.strip_suffix('/') {
        Some(of_process) => of_process.trim_end_matches(|c: char| c.is_ascii_digit()),
        None => name,
    };
    Some((name.strip_suffix('-').unwrap_or(name).trim_end(), pid.parse().ok()?))
}

/// Seconds with a point, to the nanosecond.
fn time(text: &str) -> Option<Ns> {
    let (seconds, fraction) = text.split_once('.')?;
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = 10_u64.pow(9 - fraction.len() as u32);
    let seconds: u64 = seconds.parse().ok()?;
    Some(Ns(seconds.checked_mul(1_000_000_000)?.checked_add(fraction.parse::<u64>().ok()? * scale)?))
}

/// The flag letters of interrupts: `h`, `H` (a hard one within a soft one), `s`, `z` and `Z` (NMI).
fn context(flags: Option<&str>, recorded: &mut Recorded) -> Context {
    let Some(flags) = flags else { return Context::Task };
    let found = match flags.chars().find(|c| "hHsZz".contains(*c)) {
        Some('s') => Context::Softirq,
        Some(_) => Context::Interrupt,
        None => return Context::Task,
    };
    recorded.flags = true;
    found
}

/// A missing field: what was found, and what was expected.
struct Missing(String, &'static str);

fn event(head: &Head, recorded: &mut Recorded) -> Result<(), Missing> {
    let missing = |expected| Missing(format!("{}: {}", head.event, super::excerpt(head.fields)), expected);
    let woken = "comm=NAME pid=N prio=N, or NAME:PID [PRIO]";
    let what = match head.event {
        "sched_switch" => switch(head.fields, recorded).ok_or_else(|| {
            missing("prev_comm=NAME prev_pid=N prev_prio=N prev_state=S ==> next_comm=NAME next_pid=N next_prio=N")
        })?,
        "sched_waking" => What::Waking(woken_task(head.fields, recorded).ok_or_else(|| missing(woken))?),
        "sched_wakeup" => What::Wakeup(woken_task(head.fields, recorded).ok_or_else(|| missing(woken))?),
        "sched_wakeup_new" => What::WakeupNew(woken_task(head.fields, recorded).ok_or_else(|| missing(woken))?),
        "sched_process_fork" => {
            fork(head.fields, recorded).ok_or_else(|| missing("comm=NAME pid=N child_comm=NAME child_pid=N"))?
        }
        "softirq_raise" => What::Raise(vector(head.fields)),
        "softirq_entry" | "softirq_exit" => {
            recorded.devices = true;
            What::Handler { of: Handler::Softirq(vector(head.fields)), begins: head.event == "softirq_entry" }
        }
        other if interrupt(other).is_some() => {
            let begins = interrupt(other) == Some(true);
            recorded.tells_of_handler(other);
            recorded.tells_of_handler(head.fields);
            recorded.devices |= other.starts_with("irq_handler");
            What::Handler { of: Handler::Interrupt, begins }
        }
        other => {
            recorded.skip(other);
            return Ok(());
        }
    };
    let context = context(head.flags, recorded);
    let running_name = if head.name == "<...>" { UNNAMED } else { recorded.name(head.name) };
    let (time, cpu, running) = (head.time, head.cpu, Some(head.pid));
    recorded.events.push(Event { time, cpu, running, running_name, context, what });
    Ok(())
}

/// Whether an event begins (true) or ends (false) an interrupt handler; `None` if it does neither.
fn interrupt(event: &str) -> Option<bool> {
    const HANDLERS: [&str; 13] = [
        "irq_handler",
        "local_timer",
        // POWER's.
        "timer_interrupt",
        "hrtimer_expire",
        "reschedule",
        "call_function",
        "call_function_single",
        "irq_work",
        "ipi",
        "x86_platform_ipi",
        "thermal_apic",
        "error_apic",
        "spurious_apic",
    ];
    let (begins, of) = match (event.strip_suffix("_entry"), event.strip_suffix("_exit")) {
        (Some(of), _) => (true, of),
        (_, Some(of)) => (false, of),
        _ => return None,
    };
    HANDLERS.contains(&of).then_some(begins)
}

/// `vec=7 [action=SCHED]`
fn vector(fields: &str) -> u32 {
    let vector = fields.strip_prefix("vec=").and_then(next_word).and_then(|(vector, _)| vector.parse().ok());
    vector.unwrap_or(NO_VECTOR)
}

fn switch(fields: &str, recorded: &mut Recorded) -> Option<What> {
    let (prev, next) = fields.split_once(" ==> ")?;
    if let Some(prev) = prev.strip_prefix("prev_comm=") {
        let (name, prev) = prev.rsplit_once(" prev_pid=")?;
        let (pid, prev) = prev.split_once(" prev_prio=")?;
        let (prio, state) = prev.split_once(" prev_state=")?;
        let prev = who(recorded, name, pid, prio)?;
        let (name, next) = next.strip_prefix("next_comm=")?.rsplit_once(" next_pid=")?;
        let (pid, prio) = next.split_once(" next_prio=")?;
        let next = who(recorded, name, pid, next_word(prio)?.0)?;
        return Some(What::Switch { prev: Some(prev), left: left_by_letters(state), next });
    }
    let (prev, state) = prev.rsplit_once("] ")?;
    let prev = plugin_task(&format!("{prev}]"), recorded)?;
    let next = plugin_task(next, recorded)?;
    Some(What::Switch { prev: Some(prev), left: left_by_letters(state), next })
}

fn woken_task(fields: &str, recorded: &mut Recorded) -> Option<Who> {
    let last = fields.split_whitespace().last()?;
    let cpu = last.strip_prefix("target_cpu=").or_else(|| last.strip_prefix("CPU:"));
    let cpu = cpu.and_then(|cpu| cpu.parse().ok());
    let Some(fields) = fields.strip_prefix("comm=") else {
        return plugin_task(fields, recorded).map(|who| Who { cpu, ..who });
    };
    let (name, rest) = fields.rsplit_once(" pid=")?;
    let (pid, rest) = rest.split_once(" prio=")?;
    Some(Who { cpu, ..who(recorded, name, pid, next_word(rest)?.0)? })
}

fn fork(fields: &str, recorded: &mut Recorded) -> Option<What> {
    let (_, child) = fields.split_once(" child_comm=")?;
    let (name, pid) = child.rsplit_once(" child_pid=")?;
    let child = Who { pid: next_word(pid)?.0.parse().ok()?, name: recorded.name(name), prio: None, cpu: None };
    Some(What::Fork { child, thread: false })
}

/// `NAME:PID [PRIO]` and what may follow.
fn plugin_task(text: &str, recorded: &mut Recorded) -> Option<Who> {
    let (task, prio) = text.rsplit_once(" [")?;
    let (name, pid) = task.rsplit_once(':')?;
    who(recorded, name, pid, prio.split_once(']')?.0)
}

fn who(recorded: &mut Recorded, name: &str, pid: &str, prio: &str) -> Option<Who> {
    let prio: i32 = prio.parse().ok()?;
    (-1..=140).contains(&prio).then_some(())?;
    Some(Who { pid: pid.parse().ok()?, name: recorded.name(name), prio: Some(prio), cpu: None })
}
