//! Scripts as text: how a record carries a recording.
//!
//! ```text
//! fairground trace 1
//! end 250000000
//! task prio=120 cpu=3 at=0 process=7 name=ping
//! r120000 w1 b1 s5000 i80000 p100 f2
//! ```
//!
//! Each task has two lines. `bound` and `kernel` are words of their own; a task begins `at=`, `waiting` or `forked`.
//! Steps are a letter and a number: run, wake (a task, by its index from 0), wait for a wakeup (`b`), sleep, wait for a
//! device (`i`), another priority (`p`), fork.

use super::{Begin, LONGEST, MOST_CPUS, MOST_TASKS, Notice, Replay, Step, Task, TraceError, excerpt};
use std::collections::BTreeMap;
use std::fmt::Write;
use units::Ns;

pub(super) const MAGIC: &str = "fairground trace 1\n";

/// The lines of the head.
const FIRST_LINE: u32 = 2;

pub(super) fn text(replay: &Replay) -> String {
    let mut text = format!("{MAGIC}end {}\n", replay.end.0);
    for task in &replay.tasks {
        let _ = write!(text, "task prio={} cpu={}", task.prio, task.cpu);
        match task.begin {
            Begin::At(time) => drop(write!(text, " at={}", time.0)),
            Begin::Waiting => text.push_str(" waiting"),
            Begin::Forked => text.push_str(" forked"),
        }
        for (is, word) in [(task.bound, " bound"), (task.kernel, " kernel")] {
            text.push_str(if is { word } else { "" });
        }
        if let Some(process) = task.process {
            let _ = write!(text, " process={process}");
        }
        let _ = writeln!(text, " name={}", task.name);
        for (at, step) in task.steps.iter().enumerate() {
            let (letter, number) = match *step {
                Step::Run(time) => ('r', time.0 as i64),
                Step::Wake(task) => ('w', task.into()),
                Step::Wait(task) => ('b', task.into()),
                Step::Sleep(time) => ('s', time.0 as i64),
                Step::Io(time) => ('i', time.0 as i64),
                Step::Prio(prio) => ('p', prio.into()),
                Step::Fork(task) => ('f', task.into()),
            };
            let _ = write!(text, "{}{letter}{number}", if at > 0 { " " } else { "" });
        }
        text.push('\n');
    }
    text
}

/// Reads what follows [`MAGIC`].
pub(super) fn read(text: &str) -> Result<Replay, TraceError> {
    let mut lines = text.lines().zip(FIRST_LINE..);
    let Some((line, number)) = lines.next() else {
        return Err(TraceError::at(FIRST_LINE, 1, "the end", "end NANOSECONDS"));
    };
    let end = line.strip_prefix("end ").and_then(time);
    let end = end.ok_or_else(|| TraceError::at(number, 1, quoted(line), "end NANOSECONDS, at most a day"))?;
    let mut replay = Replay { tasks: Vec::new(), end, notice: Notice::default() };
    let mut places = Vec::new();
    while let Some((line, number)) = lines.next() {
        if replay.tasks.len() == MOST_TASKS {
            return Err(TraceError::at(number, 1, "more tasks", format!("at most {MOST_TASKS}")));
        }
        let mut task = task(line).ok_or_else(|| {
            TraceError::at(
                number,
                1,
                quoted(line),
                "task prio=N cpu=N, at=N or waiting or forked, and name=NAME at the end",
            )
        })?;
        let (steps, number) = lines.next().unwrap_or(("", number));
        for word in steps.split_whitespace() {
            let column = (word.as_ptr() as usize - steps.as_ptr() as usize) as u32 + 1;
            let expected = "a step: r, s or i and nanoseconds, w, b or f and a task, p and a priority";
            let step = step(word).ok_or_else(|| TraceError::at(number, column, quoted(word), expected))?;
            task.steps.push(step);
        }
        replay.tasks.push(task);
        places.push(number);
    }
    check(&replay, &places)?;
    Ok(replay)
}

fn quoted(text: &str) -> String {
    format!("`{}`", excerpt(text))
}

fn time(text: &str) -> Option<Ns> {
    text.parse().ok().map(Ns).filter(|time| *time <= LONGEST)
}

fn prio(text: &str) -> Option<i32> {
    text.parse().ok().filter(|prio| (-1..=140).contains(prio))
}

fn task(line: &str) -> Option<Task> {
    let (words, name) = line.strip_prefix("task ")?.split_once("name=")?;
    let (mut found_prio, mut cpu, mut begin, mut process) = (None, None, None, None);
    let (mut bound, mut kernel) = (false, false);
    for word in words.split_whitespace() {
        match word.split_once('=') {
            Some(("prio", value)) => found_prio = Some(prio(value)?),
            Some(("cpu", value)) => cpu = Some(value.parse().ok().filter(|cpu| (*cpu as usize) < MOST_CPUS)?),
            Some(("at", value)) => begin = Some(Begin::At(time(value)?)),
            Some(("process", value)) => process = Some(value.parse().ok()?),
            None if word == "waiting" => begin = Some(Begin::Waiting),
            None if word == "forked" => begin = Some(Begin::Forked),
            None if word == "bound" => bound = true,
            None if word == "kernel" => kernel = true,
            _ => return None,
        }
    }
    let name = name.to_string();
    Some(Task { name, prio: found_prio?, cpu: cpu?, bound, kernel, process, begin: begin?, steps: Vec::new() })
}

fn step(word: &str) -> Option<Step> {
    let letter = word.chars().next()?;
    let number = &word[letter.len_utf8()..];
    let task = || number.parse().ok();
    Some(match letter {
        'r' => Step::Run(time(number)?),
        's' => Step::Sleep(time(number)?),
        'i' => Step::Io(time(number)?),
        'w' => Step::Wake(task()?),
        'b' => Step::Wait(task()?),
        'f' => Step::Fork(task()?),
        'p' => Step::Prio(prio(number)?),
        _ => return None,
    })
}

/// Checks that every wait has its wakeup, and that every forked task is forked once, by a task before it.
fn check(replay: &Replay, places: &[u32]) -> Result<(), TraceError> {
    let mut pairs: BTreeMap<(u32, u32), (i64, u32)> = BTreeMap::new();
    let mut forks = vec![0_u32; replay.tasks.len()];
    for ((task, place), me) in replay.tasks.iter().zip(places).zip(0_u32..) {
        for step in &task.steps {
            let (pair, change) = match *step {
                Step::Wake(other) => ((me, other), 1),
                Step::Wait(other) => ((other, me), -1),
                Step::Fork(child) if child > me && (child as usize) < forks.len() => {
                    forks[child as usize] += 1;
                    continue;
                }
                Step::Fork(child) => {
                    return Err(TraceError::at(
                        *place,
                        1,
                        format!("a fork of task {child}"),
                        "a task that stands below",
                    ));
                }
                _ => continue,
            };
            let counted = pairs.entry(pair).or_insert((0, *place));
            counted.0 += change;
        }
    }
    if let Some(((from, to), (_, place))) = pairs.iter().find(|(pair, counted)| counted.0 != 0 || pair.0 == pair.1) {
        let found = format!("wakeups of task {to} by task {from} that it does not wait for, or waits without");
        return Err(TraceError::at(*place, 1, found, "as many waits as wakeups, of tasks that are there"));
    }
    for ((task, place), forks) in replay.tasks.iter().zip(places).zip(forks) {
        if forks != u32::from(task.begin == Begin::Forked) {
            let found = format!("the task `{}`, forked {forks} times", excerpt(&task.name));
            return Err(TraceError::at(*place, 1, found, "one fork of each task that is `forked`, and none of others"));
        }
    }
    Ok(())
}
