//! The part of a task's line before the colon.

use super::groups::made_group;
use super::parse::ScriptError;
use super::reader::{MOST_MEMORY, Reader};
use super::{Affinity, Script, Step, Task};
use machine::smt::WorkKind;
use sched::attr::SchedAttr;
use sim::program::AddressSpace;
use std::collections::BTreeSet;
use units::CpuId;

/// The error for a `key=value`, `word`, whose key was given before.
pub(super) fn twice(reader: &Reader, key: &str, word: &str) -> ScriptError {
    reader.wrong_at(word, format!("`{key}` for the second time"), "each key once")
}

/// The working set of a task that fetches lines: the size it gives, or all memory that it touches. `lines` is where it
/// asks for the lines.
pub(super) fn lines_of_a_set(
    reader: &Reader,
    lines: &str,
    steps: &[Step],
    script: &Script,
    task: &mut Task,
) -> Result<(), ScriptError> {
    if task.working_set > 0 {
        return Ok(());
    }
    let touched = |step: &Step| match *step {
        Step::Touch { region, rate: 1.. } => Some(region as usize),
        _ => None,
    };
    let touched: BTreeSet<usize> = steps.iter().filter_map(touched).collect();
    let bytes = touched.into_iter().map(|region| script.memory[region].spec.bytes);
    task.working_set = bytes.sum::<u64>().min(MOST_MEMORY);
    if task.working_set > 0 {
        return Ok(());
    }
    let expected = "set=SIZE, of which they are, or a step that touches memory";
    Err(reader.wrong_at(lines, format!("`{lines}` of nothing"), expected))
}

/// One `key=value` of a task, read into the task; returns the key and the whole word.
pub(super) fn attribute<'a>(
    reader: &mut Reader<'a>,
    script: &mut Script,
    task: &mut Task,
    count: &mut Option<i64>,
) -> Result<(&'a str, &'a str), ScriptError> {
    let word = reader.word();
    if word.is_empty() {
        return Err(reader.wrong("the end of the line".to_string(), "a colon, and the task's steps after it"));
    }
    let Some((key, value)) = word.split_once('=') else {
        return Err(reader.wrong_at(word, format!("`{word}`"), "key=value, or a colon"));
    };
    match key {
        "nice" => task.attr.sched_nice = reader.number(value, -20, 19)? as i32,
        "policy" => {
            let asked = reader.policy(value, task.attr.sched_nice)?;
            // A slice that was asked for before stays, unless the policy has a runtime of its own.
            let slice = if asked.sched_runtime == 0 { task.attr.sched_runtime } else { asked.sched_runtime };
            task.attr = SchedAttr { sched_runtime: slice, ..asked };
        }
        "slice" => task.attr.sched_runtime = reader.time(value, 0)?.0,
        "cpus" => {
            let affinity = affinity(reader, value)?;
            task.cpus = Some(affinity.cpus);
            task.place = affinity.place;
        }
        "on" => task.on = CpuId::new(reader.number(value, 0, units::NR_CPUS as i64 - 1)? as usize),
        "at" => task.at = reader.time(value, 0)?,
        "group" => {
            made_group(reader, value, script)?;
            task.group = Some(value.to_string());
        }
        "session" if value.is_empty() => {
            return Err(reader.wrong_at(value, "no session".to_string(), "a session's name"));
        }
        "session" => {
            let known = script.sessions.iter().position(|session| session == value);
            task.session = Some(known.unwrap_or_else(|| {
                script.sessions.push(value.to_string());
                script.sessions.len() - 1
            }) as u32);
        }
        "process" => task.memory = AddressSpace::Joined(process(reader, value, script)?),
        "kind" => {
            let kinds = [("process", AddressSpace::Own), ("kthread", AddressSpace::Kernel)];
            task.memory = one_of(reader, value, &kinds, "process or kthread")?;
        }
        "work" => {
            let kinds = [("compute", WorkKind::Compute), ("memory", WorkKind::Memory)];
            task.kind = one_of(reader, value, &kinds, "compute or memory")?;
        }
        "set" => task.working_set = reader.bytes(value, "")?,
        "lines" => task.lines = reader.number(value, 0, 1000)? as u32,
        "count" => *count = Some(reader.number(value, 1, 10_000)?),
        _ => {
            let expected =
                "nice, policy, slice, cpus, on, at, group, session, process, kind, work, set, lines or count";
            return Err(reader.wrong_at(word, format!("`{key}`"), expected));
        }
    }
    Ok((key, word))
}

/// The meaning of the word `value`.
fn one_of<T: Copy>(reader: &Reader, value: &str, words: &[(&str, T)], expected: &str) -> Result<T, ScriptError> {
    let known = words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning);
    known.ok_or_else(|| reader.wrong_at(value, format!("`{value}`"), expected))
}

/// The number of the process with that name.
fn process(reader: &Reader, name: &str, script: &mut Script) -> Result<u32, ScriptError> {
    if name.is_empty() {
        return Err(reader.wrong_at(name, "no process".to_string(), "a process's name"));
    }
    let known = script.processes.iter().position(|process| process == name);
    let place = known.unwrap_or_else(|| {
        script.processes.push(name.to_string());
        script.processes.len() - 1
    });
    Ok(place as u32)
}

/// A non-empty list of CPUs.
pub(super) fn affinity(reader: &Reader, list: &str) -> Result<Affinity, ScriptError> {
    let cpus =
        machine::topology::parse_list(list).map_err(|error| reader.wrong_at(list, error.found, &error.expected))?;
    if cpus.is_empty() {
        return Err(reader.wrong_at(list, "no CPUs".to_string(), "a list of CPUs such as 0-3,8"));
    }
    Ok(Affinity { cpus, place: (reader.line, reader.column(list)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Ns;

    #[test]
    fn what_work_asks_of_the_machine_is_read_and_mistakes_are_told() {
        let script = Script::parse("task a work=memory set=8MB lines=20: work 5ms", 1).expect("a script");
        let task = &script.tasks[0];
        assert_eq!((task.kind, task.working_set, task.lines), (WorkKind::Memory, 8 << 20, 20));
        assert_eq!(task.steps[..], [Step::Work(Ns::from_ms(5))]);
        let set = |text: &str| Script::parse(text, 1).unwrap().tasks[0].working_set;
        assert_eq!([set("task a set=8KB: work 5ms"), set("task a lines=0: work 5ms")], [8 << 10, 0]);
        // Without `set=` the lines are of all memory that the task touches.
        let heaps = "memory a 3MB\nmemory b 5MB\nmemory c 1GB\n";
        let touching = "touch a 1GB/s; 3 x (touch b 1GB/s; work 5ms; touch b 2MB/s); leave c";
        assert_eq!(set(&format!("{heaps}task t lines=5: {touching}")), 8 << 20);
        assert_eq!(set(&format!("{heaps}task t lines=5 set=1MB: {touching}")), 1 << 20);
        assert_eq!(set(&format!("{heaps}task t: {touching}")), 0);
        for (text, part) in [
            ("task a work=disk: run 1ms", "compute or memory"),
            ("task a lines=2000: run 1ms", "from 0 to 1000"),
            ("task a set=8: run 1ms", "512MB"),
            ("task a set=0KB: run 1ms", "256KB"),
        ] {
            let error = Script::parse(text, 1).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
