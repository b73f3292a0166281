//! The parser for a script's text.

use super::groups::{all_are_made, group, named_group};
use super::keys::{affinity, attribute, lines_of_a_set, twice};
use super::reader::Reader;
use super::{Mutex, Region, Script, Step, Task};
use machine::description::nearest_name;
use machine::smt::WorkKind;
use os::memory::RegionSpec;
use sched::attr::SchedAttr;
use sim::program::AddressSpace;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use units::{CpuId, Ns};

/// The most steps of one task (loops counted once), and the most tasks of a script.
const MOST: usize = 100_000;
/// The most groups, memories and mutexes (each).
const MOST_DECLARED: usize = 10_000;
/// The deepest nesting of loops.
const DEEPEST: u32 = 32;
/// The bytes of a name that the kernel keeps (TASK_COMM_LEN without the terminator).
const LONGEST_NAME: usize = 15;

/// A script that cannot be run: the position (counted from 1 in characters), what was found, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    pub line: u32,
    pub column: u32,
    pub found: String,
    pub expected: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: found {}; expected {}", self.line, self.column, self.found, self.expected)
    }
}

impl std::error::Error for ScriptError {}

pub(super) fn parse(text: &str, first_line: u32) -> Result<Script, ScriptError> {
    let mut script = Script::default();
    let mut names = BTreeMap::new();
    let mut last = first_line;
    for (index, line) in text.lines().enumerate() {
        last = first_line + index as u32;
        let mut reader = Reader { whole: line, rest: line.trim_start(), line: last };
        if reader.rest.trim().is_empty() || reader.rest.starts_with('#') {
            continue;
        }
        let word = reader.word();
        match word {
            "task" => {
                let (first, column) = (script.tasks.len(), reader.column(reader.rest));
                task(&mut reader, &mut script)?;
                each_name_once(&script.tasks[first..], (last, column), &mut names)?;
            }
            "group" => group(&mut reader, &mut script)?,
            "memory" => memory(&mut reader, &mut script)?,
            "mutex" => mutex(&mut reader, &mut script)?,
            _ => {
                let expected = "task NAME [key=value...]: steps, group PATH: FILE TEXT; FILE TEXT, memory NAME SIZE, or mutex NAME";
                return Err(reader.wrong_at(word, format!("`{word}`"), expected));
            }
        }
        for (made, most, what) in [
            (script.tasks.len(), MOST, "tasks"),
            (script.groups.len(), MOST_DECLARED, "groups"),
            (script.memory.len(), MOST_DECLARED, "memories"),
            (script.mutexes.len(), MOST_DECLARED, "mutexes"),
        ] {
            if made > most {
                return Err(reader.wrong_at(word, format!("{made} {what}"), &format!("at most {most}")));
            }
        }
    }
    if script.tasks.is_empty() {
        let expected = "task NAME [key=value...]: steps".to_string();
        return Err(ScriptError { line: last, column: 1, found: "no task".to_string(), expected });
    }
    all_are_made(&script)?;
    Ok(script)
}

/// Refuses a second task of the same name: nobody could tell their rows apart. `names` maps the names so far to their
/// positions.
fn each_name_once(tasks: &[Task], at: (u32, u32), names: &mut BTreeMap<String, (u32, u32)>) -> Result<(), ScriptError> {
    for task in tasks {
        if let Some((line, column)) = names.insert(task.name.clone(), at) {
            let found = format!("the task `{}` for the second time", task.name);
            let expected = format!(
                "each name once, and line {line}, column {column} has this one; count=N in one line makes N tasks with a number each"
            );
            return Err(ScriptError { line: at.0, column: at.1, found, expected });
        }
    }
    Ok(())
}

fn task(reader: &mut Reader, script: &mut Script) -> Result<(), ScriptError> {
    let name = reader.word();
    let letters = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(letters) {
        let expected = format!("a task's name, 1 to {LONGEST_NAME} letters, digits, -, _, . or /");
        return Err(reader.wrong_at(name, format!("`{name}`"), &expected));
    }
    let mut task = Task {
        name: name.to_string(),
        attr: SchedAttr::NORMAL,
        cpus: None,
        place: (reader.line, reader.column(name)),
        on: CpuId(0),
        at: Ns::ZERO,
        group: None,
        session: None,
        memory: AddressSpace::Own,
        kind: WorkKind::Compute,
        working_set: 0,
        lines: 0,
        steps: Arc::from([]),
        places: Arc::from([]),
    };
    let mut count = None;
    let mut keys: Vec<(&str, &str)> = Vec::new();
    while !reader.rest.starts_with(':') {
        let (key, word) = attribute(reader, script, &mut task, &mut count)?;
        if keys.iter().any(|&(known, _)| known == key) {
            return Err(twice(reader, key, word));
        }
        keys.push((key, word));
    }
    reader.skip(1);
    let mut placed = Vec::new();
    while !reader.rest.is_empty() {
        step(reader, &mut placed, script, 0)?;
    }
    let (steps, offsets): (Vec<Step>, Vec<usize>) = placed.into_iter().unzip();
    let places: Vec<(u32, u32)> = reader.columns(&offsets).into_iter().map(|column| (reader.line, column)).collect();
    if task.memory == AddressSpace::Kernel && steps.iter().any(|step| matches!(step, Step::Touch { .. })) {
        let expected = "a process: a kernel thread has no memory of its own";
        return Err(reader.wrong_at(name, format!("the kernel thread `{name}` that touches memory"), expected));
    }
    if let Some((_, lines)) = keys.iter().find(|(key, _)| *key == "lines").filter(|_| task.lines > 0) {
        lines_of_a_set(reader, lines, &steps, script, &mut task)?;
    }
    (task.steps, task.places) = (Arc::from(steps), Arc::from(places));
    let Some(count) = count else {
        script.tasks.push(task);
        return Ok(());
    };
    script.tasks.extend((0..count).map(|number| Task { name: format!("{}{number}", task.name), ..task.clone() }));
    Ok(())
}

/// `NAME SIZE [node=N] [pinned]`
fn memory(reader: &mut Reader, script: &mut Script) -> Result<(), ScriptError> {
    let name = reader.word();
    if name.is_empty() {
        return Err(reader.wrong(excerpt(reader.rest), "memory NAME SIZE"));
    }
    if script.memory.iter().any(|region| region.name == name) {
        return Err(reader.wrong_at(name, format!("the memory `{name}` for the second time"), "each memory once"));
    }
    let size = reader.word();
    let mut spec = RegionSpec { bytes: reader.bytes(size, "")?, ..RegionSpec::default() };
    let mut place = (reader.line, reader.column(name));
    while !reader.rest.is_empty() {
        let word = reader.word();
        match word.split_once('=') {
            Some(("node", _)) if spec.node.is_some() => return Err(twice(reader, "node", word)),
            None if word == "pinned" && spec.pinned => return Err(twice(reader, word, word)),
            Some(("node", value)) => {
                spec.node = Some(reader.number(value, 0, units::NR_CPUS as i64 - 1)? as u16);
                place = (reader.line, reader.column(word));
            }
            None if word == "pinned" => spec.pinned = true,
            _ => return Err(reader.wrong_at(word, excerpt(word), "node=N or pinned")),
        }
    }
    script.memory.push(Region { name: name.to_string(), spec, place });
    Ok(())
}

/// `NAME [inherit]`
fn mutex(reader: &mut Reader, script: &mut Script) -> Result<(), ScriptError> {
    let (name, how) = (reader.word(), reader.word());
    let expected = match how {
        _ if name.is_empty() || script.mutexes.iter().any(|mutex| mutex.name == name) => "mutex NAME, each name once",
        "" | "inherit" => {
            script.mutexes.push(Mutex { name: name.to_string(), inherit: !how.is_empty() });
            return Ok(());
        }
        _ => return Err(reader.wrong_at(how, excerpt(how), "inherit, or nothing")),
    };
    Err(reader.wrong_at(name, excerpt(name), expected))
}

/// `touch MEMORY RATE` or `leave MEMORY`; `word`, the first word, has been read.
fn touch(reader: &mut Reader, word: &str, script: &Script) -> Result<Step, ScriptError> {
    let region = declared(reader, script.memory.iter().map(|region| &region.name[..]), "memory NAME SIZE")?;
    let rate = if word == "leave" { 0 } else { reader.rate()? };
    Ok(Step::Touch { region, rate })
}

/// The index of the name that comes next, among those that lines like `line` declare.
fn declared<'a>(
    reader: &mut Reader,
    mut names: impl Iterator<Item = &'a str> + Clone,
    line: &str,
) -> Result<u32, ScriptError> {
    let name = reader.word();
    if let Some(place) = names.clone().position(|known| known == name) {
        return Ok(place as u32);
    }
    let expected = match nearest_name(name, names.by_ref()) {
        Some(nearest) => format!("`{nearest}`, perhaps"),
        None => format!("the name of a line `{line}` above"),
    };
    Err(reader.wrong_at(name, excerpt(name), &expected))
}

/// The index of a pipe among the script's; a new name is added.
fn named_pipe(reader: &mut Reader, word: &str, script: &mut Script) -> Result<u32, ScriptError> {
    let name = reader.word();
    if name.is_empty() {
        return Err(reader.wrong(format!("`{word}` without a pipe"), "the name of a pipe"));
    }
    let place = script.pipes.iter().position(|pipe| pipe == name).unwrap_or_else(|| {
        script.pipes.push(name.to_string());
        script.pipes.len() - 1
    });
    Ok(place as u32)
}

pub(super) fn excerpt(text: &str) -> String {
    if text.is_empty() { "the end of the line".to_string() } else { format!("`{text}`") }
}

/// The steps of a task, as messages list them.
const STEPS: &str = "run T, work T, spin T, sleep T, io T, until T, every T, yield, cond_resched, might_sleep, policy P, nice N, clamp MIN MAX, cpus LIST, read PIPE, write PIPE, \
    lock MUTEX, unlock MUTEX, enter GROUP, exec, setsid, autogroup NICE, touch MEMORY RATE, leave MEMORY, or N x (steps)";

fn unknown_step(reader: &Reader, word: &str) -> ScriptError {
    // The word is empty where a character stands that ends words; the message then shows that character.
    let found = excerpt(if word.is_empty() { reader.rest.get(..1).unwrap_or_default() } else { word });
    let names = STEPS.split(", ").filter_map(|step| step.split(' ').next()).filter(|name| *name != "or");
    let near = nearest_name(word, names).map(|name| format!("`{name}`, perhaps; or one of "));
    reader.wrong_at(word, found, &(near.unwrap_or_default() + STEPS))
}

/// A step, and the byte offset in the line where it begins. For the step that ends a loop, the offset where the next
/// one begins.
type Placed = (Step, usize);

/// Reads one step or loop, up to the semicolon after it, the closing parenthesis of the loop around it, or the end of
/// the line.
fn step(reader: &mut Reader, steps: &mut Vec<Placed>, script: &mut Script, depth: u32) -> Result<(), ScriptError> {
    if steps.len() >= MOST {
        return Err(reader.wrong(format!("more than {MOST} steps"), "fewer; N x (...) repeats"));
    }
    let word = reader.word();
    let place = reader.offset(word);
    let one = match word {
        "run" | "work" | "spin" | "sleep" | "io" | "until" | "every" => {
            let amount = reader.word();
            let time = reader.time(amount, u64::from(word != "until"))?;
            match word {
                "run" => Step::Run(time),
                "work" => Step::Work(time),
                "spin" => Step::Spin(time),
                "sleep" => Step::Sleep(time),
                "io" => Step::Io(time),
                "every" => Step::Every(time),
                _ => Step::Until(time),
            }
        }
        "yield" => Step::Yield,
        "cond_resched" => Step::CondResched,
        "might_sleep" => Step::MightSleep,
        "policy" => {
            let policy = reader.word();
            Step::Attr(reader.policy(policy, 0)?)
        }
        "nice" => {
            let nice = reader.word();
            Step::Nice(reader.number(nice, -20, 19)? as i32)
        }
        "clamp" => {
            let (min, max) = (reader.word(), reader.word());
            Step::Attr(SchedAttr::clamps(reader.clamp(min)?, reader.clamp(max)?))
        }
        "cpus" => {
            let list = reader.word();
            script.affinities.push(affinity(reader, list)?);
            Step::Cpus(script.affinities.len() as u32 - 1)
        }
        "setsid" => Step::Setsid,
        "exec" => Step::Exec,
        "autogroup" => {
            let nice = reader.word();
            Step::Autogroup(reader.or_einval(nice, -20, 19)? as i32)
        }
        "enter" => {
            let path = reader.word();
            Step::Enter(named_group(reader, path, script)?)
        }
        "read" | "write" => {
            let pipe = named_pipe(reader, word, script)?;
            if word == "read" { Step::Read(pipe) } else { Step::Write(pipe) }
        }
        "lock" | "unlock" => {
            let mutex = declared(reader, script.mutexes.iter().map(|mutex| &mutex.name[..]), "mutex NAME")?;
            if word == "lock" { Step::Lock(mutex) } else { Step::Unlock(mutex) }
        }
        "touch" | "leave" => touch(reader, word, script)?,
        times if times.starts_with(|c: char| c.is_ascii_digit()) => {
            let again = repetition(reader, times, steps, script, depth)?;
            steps.push((again, reader.offset(reader.rest)));
            return end_of_step(reader);
        }
        _ => return Err(unknown_step(reader, word)),
    };
    steps.push((one, place));
    end_of_step(reader)
}

fn end_of_step(reader: &mut Reader) -> Result<(), ScriptError> {
    match reader.rest.chars().next() {
        Some(';') => reader.skip(1),
        None | Some(')') => {}
        Some(_) => {
            let word = reader.word();
            return Err(reader.wrong_at(word, format!("`{word}`"), "a semicolon between two steps"));
        }
    }
    Ok(())
}

/// `N x (steps)`; `N` has been read.
fn repetition(
    reader: &mut Reader,
    times: &str,
    steps: &mut Vec<Placed>,
    script: &mut Script,
    depth: u32,
) -> Result<Step, ScriptError> {
    let times = reader.number(times, 1, 1_000_000_000)? as u32;
    let (x, to) = (reader.word(), steps.len() as u32);
    if depth == DEEPEST {
        return Err(reader.wrong("one more loop in a loop".to_string(), &format!("at most {DEEPEST}")));
    }
    if x != "x" || !reader.rest.starts_with('(') {
        return Err(reader.wrong_at(x, format!("`{x}`"), "N x (steps)"));
    }
    reader.skip(1);
    while !reader.rest.starts_with(')') {
        if reader.rest.is_empty() {
            return Err(reader.wrong("the end of the line".to_string(), "a closing parenthesis"));
        }
        step(reader, steps, script, depth + 1)?;
    }
    reader.skip(1);
    Ok(Step::Again { to, times })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_nest_and_pipes_are_shared() {
        let script = Script::parse("task a: 2 x (run 1ms; 3 x (write p; read q)); yield\ntask b: read p; write q\n", 1);
        let script = script.unwrap();
        assert_eq!(script.pipes, ["p", "q"]);
        let again = |to, times| Step::Again { to, times };
        assert_eq!(
            script.tasks[0].steps[..],
            [Step::Run(Ns::from_ms(1)), Step::Write(0), Step::Read(1), again(1, 3), again(0, 2), Step::Yield]
        );
        assert_eq!(script.tasks[1].steps[..], [Step::Read(0), Step::Write(1)]);
    }

    #[test]
    fn attributes_are_read_and_counts_make_tasks() {
        let script = Script::parse("# two\n\ntask hog count=2 nice=-5 cpus=0-1 at=2ms group=/a/b on=1: spin 10s", 1);
        let tasks = script.unwrap().tasks;
        assert_eq!((tasks.len(), tasks[1].name.as_str(), tasks[1].attr.sched_nice), (2, "hog1", -5));
        assert_eq!((tasks[0].on, tasks[0].at, tasks[0].group.as_deref()), (CpuId(1), Ns::from_ms(2), Some("/a/b")));
        assert_eq!(tasks[0].cpus.as_ref().unwrap().weight(), 2);
    }

    #[test]
    fn cpus_are_of_a_task_or_of_a_step() {
        let script = Script::parse("task a cpus=0: run 1ms; cpus 0-1,3; run 1ms", 1).unwrap();
        assert_eq!(script.tasks[0].steps[1], Step::Cpus(0));
        assert_eq!(script.tasks[0].places[..], [(1, 16), (1, 25), (1, 37)]);
        assert_eq!((script.affinities[0].cpus.list().as_str(), script.affinities[0].place), ("0-1,3", (1, 30)));
    }

    #[test]
    fn memory_is_declared_and_touched() {
        let text = "memory heap 512MB\nmemory ring 2GB node=1 pinned\n\
                    task a process=p: touch ring 3GB/s; touch heap 100MB/s; leave ring\ntask b process=p: run 1ms";
        let script = Script::parse(text, 1).unwrap();
        let specs: Vec<_> = script.memory.iter().map(|region| (region.name.as_str(), region.spec)).collect();
        let heap = RegionSpec { bytes: 512 << 20, node: None, pinned: false };
        let ring = RegionSpec { bytes: 2 << 30, node: Some(1), pinned: true };
        assert_eq!(specs, [("heap", heap), ("ring", ring)]);
        let touch = |region, rate| Step::Touch { region, rate };
        assert_eq!(script.tasks[0].steps[..], [touch(1, 3 << 30), touch(0, 100 << 20), touch(1, 0)]);
        assert!(script.tasks.iter().all(|task| task.memory == AddressSpace::Joined(0)));
    }

    #[test]
    fn mutexes_are_declared_and_taken() {
        let script = Script::parse("mutex m\nmutex q inherit\ntask a: lock q; unlock q; lock m", 1).unwrap();
        assert_eq!(
            script.mutexes.iter().map(|m| (&m.name[..], m.inherit)).collect::<Vec<_>>(),
            [("m", false), ("q", true)]
        );
        assert_eq!(script.tasks[0].steps[..], [Step::Lock(1), Step::Unlock(1), Step::Lock(0)]);
    }

    #[test]
    fn what_is_declared_is_limited() {
        for (line, what) in
            [("memory m# 1MB", "memories"), ("mutex m#", "mutexes"), ("group /g#: cpu.weight 100", "groups")]
        {
            let text: String =
                (0..=MOST_DECLARED).map(|number| line.replace('#', &number.to_string()) + "\n").collect();
            let error = Script::parse(&text, 1).unwrap_err();
            let said = format!("{}:{}: {}; {}", error.line, error.column, error.found, error.expected);
            assert_eq!(said, format!("10001:1: 10001 {what}; at most 10000"));
        }
    }

    #[test]
    fn mistakes_have_places() {
        for (text, message) in [
            ("", "4:1: found no task; expected task NAME"),
            ("tasks a: run 1ms", "4:1: found `tasks`; expected task NAME"),
            ("task a run 1ms", "4:8: found `run`; expected key=value, or a colon"),
            ("task a", "4:7: found the end of the line; expected a colon"),
            ("task a: run 1", "4:13: found `1`; expected a time above 0 such as 3ms"),
            (
                "task a: run 0ms",
                "4:13: found `0ms`; expected a time above 0 such as 3ms: ns, us, ms or s, up to an hour",
            ),
            ("task a: until 1", "4:15: found `1`; expected a time such as 3ms: ns, us, ms or s, up to an hour"),
            (
                "task a: run 1ms\n task b: yield\ntask a at=1ms: yield",
                "6:6: found the task `a` for the second time; expected each name once, and line 4, column 6 has this one; count=N",
            ),
            (
                "task hog1: yield\ntask hog count=2: yield",
                "5:6: found the task `hog1` for the second time; expected each name once, and line 4, column 6",
            ),
            ("task a: run 99999999999999999999s", "4:13: found"),
            ("task a: 3 (run 1ms)", "4:11: found ``; expected N x (steps)"),
            ("task a: 3 x (run 1ms", "4:21: found the end of the line; expected a closing parenthesis"),
            ("task a: 0 x (run 1ms)", "4:9: found `0`; expected a whole number from 1"),
            ("task a: run 1ms sleep 1ms", "4:17: found `sleep`; expected a semicolon"),
            ("task a: jump 3", "4:9: found `jump`; expected run T"),
            ("task a nice=20: run 1ms", "4:13: found `20`; expected a whole number from -20 to 19"),
            (
                "task a policy=fiffo/3: run 1ms",
                "4:15: found `fiffo/3`; expected normal, batch, idle, fifo/N, rr/N, deadline",
            ),
            ("task a policy=fifo: run 1ms", "4:15: found `fifo`; expected fifo/N with a priority from 1 to 99"),
            (
                "task a policy=rr/100: run 1ms",
                "4:18: found `100`; expected a whole number from 1 to 99: the kernel answers EINVAL to others",
            ),
            (
                "task a policy=fifo/0: run 1ms",
                "4:20: found `0`; expected a whole number from 1 to 99: the kernel answers EINVAL",
            ),
            (
                "task a: autogroup 20",
                "4:19: found `20`; expected a whole number from -20 to 19: the kernel answers EINVAL",
            ),
            ("task a policy=deadline/2ms: run 1ms", "4:15: found `deadline/2ms`; expected RUNTIME/DEADLINE"),
            ("task a policy=deadline: run 1ms", "4:15: found `deadline`; expected RUNTIME/DEADLINE"),
            ("task a policy=deadline/2ms/3: run 1ms", "4:28: found `3`; expected a time"),
            ("task a policy=batch/1: run 1ms", "4:21: found `/1`; expected just `batch`"),
            ("task a: clamp 3", "4:16: found ``; expected a whole number from 0 to 1024, or none"),
            ("task a: clamp 3 1025", "4:17: found `1025`; expected a whole number from 0 to 1024, or none"),
            ("task a slice=3: run 1ms", "4:14: found `3`; expected a time such as 3ms"),
            ("task a cpus=3-1: run 1ms", "4:13: found"),
            (
                "task a groop=/a: run 1ms",
                "4:8: found `groop`; expected nice, policy, slice, cpus, on, at, group, session, process, kind, work, set, lines or",
            ),
            ("group /a cpu.weight 3", "4:10: found `cpu.weight 3`; expected a colon"),
            ("group /a: cpu.wieght 3", "4:11: found `cpu.wieght`; expected `cpu.weight`, perhaps"),
            ("group /a: cpu.max ; cpu.weight 3", "4:19: found nothing for cpu.max"),
            ("group /: cpu.weight 3", "4:7: found `/`; expected another group"),
            ("task a process=: run 1ms", "4:16: found no process; expected a process's name"),
            ("memory heap 12", "4:13: found `12`; expected so much as 256KB, 512MB or 2GB"),
            ("memory heap 1MB node=0 node=1", "4:24: found `node` for the second time; expected each key once"),
            ("memory heap 1MB pinned pinned", "4:24: found `pinned` for the second time; expected each key once"),
            ("task a set=8MB set=9MB: run 1ms", "4:16: found `set` for the second time; expected each key once"),
            ("task a nice=1 at=1ms nice=1: run 1ms", "4:22: found `nice` for the second time; expected each key once"),
            (
                "memory heap 1MB\ntask a lines=5: leave heap; run 1ms",
                "5:8: found `lines=5` of nothing; expected set=SIZE, of which they are, or a step that touches memory",
            ),
            ("memory heap 0MB", "4:13: found `0MB`; expected so much"),
            ("memory heap 1MB nod=1", "4:17: found `nod=1`; expected node=N or pinned"),
            ("memory heap 1MB\nmemory heap 1MB", "5:8: found the memory `heap` for the second time"),
            ("memory heap 1MB\ntask a: touch hep 1GB/s", "5:15: found `hep`; expected `heap`, perhaps"),
            ("task a: touch heap 1GB/s", "4:15: found `heap`; expected the name of a line `memory NAME SIZE` above"),
            ("memory heap 1MB\ntask a: touch heap 1GB", "5:20: found `1GB`; expected so much as 256KB/s, 512MB/s"),
            ("memory heap 1MB\ntask a kind=kthread: touch heap 1GB/s", "5:6: found the kernel thread `a` that"),
            ("mutex m inhrit", "4:9: found `inhrit`; expected inherit, or nothing"),
            ("mutex m\nmutex m", "5:7: found `m`; expected mutex NAME, each name once"),
            ("mutex", "4:6: found the end of the line; expected mutex NAME, each name once"),
            ("task a: lock m", "4:14: found `m`; expected the name of a line `mutex NAME` above"),
            ("task a session=: run 1ms", "4:16: found no session; expected a session's name"),
            ("task a: cpus", "4:13: found no CPUs; expected a list of CPUs"),
            ("task a: cpus 3-1", "4:14: found"),
            ("task a: enter b", "4:15: found `b`; expected a group's path"),
            ("task a: enter /b/..", "4:15: found `/b/..`; expected a group's path"),
            ("task a group=a: run 1ms", "4:14: found `a`; expected a group's path"),
            ("task äh: run 1ms", "4:6: found `äh`; expected a task's name"),
            ("task a: )", "4:9: found"),
        ] {
            let error = Script::parse(text, 4).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
