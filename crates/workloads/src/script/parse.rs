//! The text of a script.

use super::{Group, GroupLine, Script, Step, Task};
use machine::description::nearest_name;
use sched::attr::{SchedAttr, SchedFlags};
use sched::core::cgroup::GroupFile;
use sched::sched::Policy;
use sim::program::AddressSpace;
use std::fmt;
use std::sync::Arc;
use units::{CpuId, Ns};

/// Most steps of one task, loops counted once, and most tasks of a script.
const MOST: usize = 100_000;
/// Longest time: an hour.
const LONGEST: Ns = Ns(3_600_000_000_000);
/// Loops in loops.
const DEEPEST: u32 = 32;
/// As many bytes of a name as the kernel keeps (TASK_COMM_LEN without the end).
const LONGEST_NAME: usize = 15;

/// A script that cannot be run: where, counted from 1 in characters, what was found and what would be right.
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
    let mut last = first_line;
    for (index, line) in text.lines().enumerate() {
        last = first_line + index as u32;
        let mut reader = Reader { whole: line, rest: line.trim_start(), line: last };
        if reader.rest.trim().is_empty() || reader.rest.starts_with('#') {
            continue;
        }
        let word = reader.word();
        match word {
            "task" => task(&mut reader, &mut script)?,
            "group" => group(&mut reader, &mut script)?,
            _ => {
                let expected = "task NAME [key=value...]: steps, or group PATH: FILE TEXT; FILE TEXT";
                return Err(reader.wrong_at(word, format!("`{word}`"), expected));
            }
        }
        if script.tasks.len() > MOST {
            return Err(reader.wrong(format!("{} tasks", script.tasks.len()), &format!("at most {MOST}")));
        }
    }
    if script.tasks.is_empty() {
        let expected = "task NAME [key=value...]: steps".to_string();
        return Err(ScriptError { line: last, column: 1, found: "no task".to_string(), expected });
    }
    Ok(script)
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
        on: CpuId(0),
        at: Ns::ZERO,
        group: None,
        session: None,
        memory: AddressSpace::Own,
        steps: Arc::from([]),
    };
    let mut count = None;
    while !reader.rest.starts_with(':') {
        attribute(reader, script, &mut task, &mut count)?;
    }
    reader.skip(1);
    let mut steps = Vec::new();
    while !reader.rest.is_empty() {
        step(reader, &mut steps, script, 0)?;
    }
    task.steps = Arc::from(steps);
    let Some(count) = count else {
        script.tasks.push(task);
        return Ok(());
    };
    script.tasks.extend((0..count).map(|number| Task { name: format!("{}{number}", task.name), ..task.clone() }));
    Ok(())
}

/// One `key=value` of a task.
fn attribute(
    reader: &mut Reader,
    script: &mut Script,
    task: &mut Task,
    count: &mut Option<i64>,
) -> Result<(), ScriptError> {
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
            // A slice that was asked for before stays, but for a policy with a runtime of its own.
            let slice = if asked.sched_runtime == 0 { task.attr.sched_runtime } else { asked.sched_runtime };
            task.attr = SchedAttr { sched_runtime: slice, ..asked };
        }
        "slice" => task.attr.sched_runtime = reader.time(value, 0)?.0,
        "cpus" => {
            let cpus = machine::topology::parse_list(value)
                .map_err(|error| reader.wrong_at(value, error.found, &error.expected))?;
            if cpus.is_empty() {
                return Err(reader.wrong_at(value, "no CPUs".to_string(), "a list of CPUs such as 0-3,8"));
            }
            task.cpus = Some(cpus);
        }
        "on" => task.on = CpuId::new(reader.number(value, 0, units::NR_CPUS as i64 - 1)? as usize),
        "at" => task.at = reader.time(value, 0)?,
        "group" => {
            named_group(reader, value, script)?;
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
        "kind" => {
            task.memory = match value {
                "process" => AddressSpace::Own,
                "kthread" => AddressSpace::Kernel,
                _ => return Err(reader.wrong_at(value, format!("`{value}`"), "process or kthread")),
            }
        }
        "count" => *count = Some(reader.number(value, 1, 10_000)?),
        _ => {
            let expected = "nice, policy, slice, cpus, on, at, group, session, kind or count";
            return Err(reader.wrong_at(word, format!("`{key}`"), expected));
        }
    }
    Ok(())
}

/// `PATH: FILE TEXT; FILE TEXT`
fn group(reader: &mut Reader, script: &mut Script) -> Result<(), ScriptError> {
    let path = reader.word();
    let Some(place) = named_group(reader, path, script)? else {
        return Err(reader.wrong_at(path, "`/`".to_string(), "another group than the root, whose files are fixed"));
    };
    if !reader.rest.starts_with(':') {
        return Err(reader.wrong(excerpt(reader.rest), "a colon, and the group's files after it"));
    }
    reader.skip(1);
    while !reader.rest.is_empty() {
        let name = reader.word();
        let column = reader.column(name);
        let Some(file) = GroupFile::ALL.iter().copied().find(|file| file.name() == name) else {
            let names = GroupFile::ALL.iter().map(|file| file.name());
            let nearest = nearest_name(name, names.clone());
            let expected = match nearest {
                Some(nearest) => format!("`{nearest}`, perhaps"),
                None => format!("a file of a group: {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(reader.wrong_at(name, format!("`{name}`"), &expected));
        };
        let end = reader.rest.find(';').unwrap_or(reader.rest.len());
        let text = reader.rest[..end].trim().to_string();
        if text.is_empty() {
            return Err(reader.wrong(format!("nothing for {name}"), "the text to write into it"));
        }
        reader.skip(end + usize::from(end < reader.rest.len()));
        script.groups[place as usize].files.push(GroupLine { file, text, line: reader.line, column });
    }
    Ok(())
}

/// The place of a group among the script's, which it joins if it is new; `None` for the root.
fn named_group(reader: &Reader, path: &str, script: &mut Script) -> Result<Option<u32>, ScriptError> {
    if path == "/" {
        return Ok(None);
    }
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !path.strip_prefix('/').is_some_and(|path| path.split('/').all(part)) {
        return Err(reader.wrong_at(path, format!("`{path}`"), "a group's path, such as /above/below"));
    }
    let place = script.groups.iter().position(|group| group.path == path).unwrap_or_else(|| {
        let (line, column) = (reader.line, reader.column(path));
        script.groups.push(Group { path: path.to_string(), files: Vec::new(), line, column });
        script.groups.len() - 1
    });
    Ok(Some(place as u32))
}

fn excerpt(text: &str) -> String {
    if text.is_empty() { "the end of the line".to_string() } else { format!("`{text}`") }
}

/// One step, or a loop of them, up to the semicolon after it, the parenthesis that closes the loop around it, or the line's end.
fn step(reader: &mut Reader, steps: &mut Vec<Step>, script: &mut Script, depth: u32) -> Result<(), ScriptError> {
    const EXPECTED: &str = "run T, spin T, sleep T, io T, until T, every T, yield, cond_resched, might_sleep, policy P, read PIPE, write PIPE, \
                            enter GROUP, setsid, autogroup NICE, or N x (steps)";
    if steps.len() >= MOST {
        return Err(reader.wrong(format!("more than {MOST} steps"), "fewer; N x (...) repeats"));
    }
    let word = reader.word();
    match word {
        "run" | "spin" | "sleep" | "io" | "until" | "every" => {
            let amount = reader.word();
            let time = reader.time(amount, u64::from(word != "until"))?;
            steps.push(match word {
                "run" => Step::Run(time),
                "spin" => Step::Spin(time),
                "sleep" => Step::Sleep(time),
                "io" => Step::Io(time),
                "every" => Step::Every(time),
                _ => Step::Until(time),
            });
        }
        "yield" => steps.push(Step::Yield),
        "cond_resched" => steps.push(Step::CondResched),
        "might_sleep" => steps.push(Step::MightSleep),
        "policy" => {
            let policy = reader.word();
            steps.push(Step::Policy(reader.policy(policy, 0)?));
        }
        "setsid" => steps.push(Step::Setsid),
        "autogroup" => {
            let nice = reader.word();
            steps.push(Step::Autogroup(reader.number(nice, -20, 19)? as i32));
        }
        "enter" => {
            let path = reader.word();
            steps.push(Step::Enter(named_group(reader, path, script)?));
        }
        "read" | "write" => {
            let name = reader.word();
            if name.is_empty() {
                return Err(reader.wrong(format!("`{word}` without a pipe"), "the name of a pipe"));
            }
            let pipe = script.pipes.iter().position(|pipe| pipe == name).unwrap_or_else(|| {
                script.pipes.push(name.to_string());
                script.pipes.len() - 1
            }) as u32;
            steps.push(if word == "read" { Step::Read(pipe) } else { Step::Write(pipe) });
        }
        times if times.starts_with(|c: char| c.is_ascii_digit()) => {
            repetition(reader, times, steps, script, depth)?;
        }
        _ => return Err(reader.wrong_at(word, format!("`{word}`"), EXPECTED)),
    }
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

/// `N x (steps)`, of which `N` has been read.
fn repetition(
    reader: &mut Reader,
    times: &str,
    steps: &mut Vec<Step>,
    script: &mut Script,
    depth: u32,
) -> Result<(), ScriptError> {
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
    steps.push(Step::Again { to, times });
    Ok(())
}

/// A line, and how far it was read.
struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
    line: u32,
}

impl<'a> Reader<'a> {
    /// The next word, up to a blank or one of `:;()`; empty where one of these stands.
    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| c.is_whitespace() || ":;()".contains(c)).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        self.rest = self.rest[end..].trim_start();
        word
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    /// Where `piece` of the line stands, counted from 1.
    fn column(&self, piece: &str) -> u32 {
        // Every piece is a part of the line.
        let offset = (piece.as_ptr() as usize).saturating_sub(self.whole.as_ptr() as usize).min(self.whole.len());
        self.whole[..offset].chars().count() as u32 + 1
    }

    /// A mistake at `piece` of the line.
    fn wrong_at(&self, piece: &str, found: String, expected: &str) -> ScriptError {
        let column = self.column(piece);
        ScriptError { line: self.line, column, found, expected: expected.to_string() }
    }

    /// A mistake where reading has come to.
    fn wrong(&self, found: String, expected: &str) -> ScriptError {
        self.wrong_at(self.rest, found, expected)
    }

    fn number(&self, text: &str, low: i64, high: i64) -> Result<i64, ScriptError> {
        match text.parse() {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(self.wrong_at(text, format!("`{text}`"), &format!("a whole number from {low} to {high}"))),
        }
    }

    /// `normal`, `fifo/50`.
    fn policy(&self, text: &'a str, nice: i32) -> Result<SchedAttr, ScriptError> {
        let (name, rest) = text.split_once('/').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let policy = match name {
            "normal" => Policy::Normal,
            "batch" => Policy::Batch,
            "idle" => Policy::Idle,
            "fifo" => Policy::Fifo,
            "rr" => Policy::Rr,
            "deadline" | "reclaim" => return self.deadline(text, rest.unwrap_or_default(), name == "reclaim"),
            _ => {
                let expected =
                    "normal, batch, idle, fifo/N, rr/N, deadline/RUNTIME/DEADLINE or reclaim/RUNTIME/DEADLINE";
                return Err(self.wrong_at(text, format!("`{text}`"), expected));
            }
        };
        let mut attr = SchedAttr::fair(policy, nice);
        match (policy.rt_policy(), rest) {
            (true, Some(rest)) => attr.sched_priority = self.number(rest, 1, 99)? as u32,
            (true, None) => {
                let expected = format!("{name}/N with a priority from 1 to 99");
                return Err(self.wrong_at(text, format!("`{text}`"), &expected));
            }
            (false, Some(rest)) => return Err(self.wrong_at(rest, format!("`/{rest}`"), &format!("just `{name}`"))),
            (false, None) => {}
        }
        Ok(attr)
    }

    /// `2ms/8ms/10ms`: runtime, deadline and, where it is another one, period.
    fn deadline(&self, text: &'a str, times: &'a str, reclaim: bool) -> Result<SchedAttr, ScriptError> {
        let mut given = times.split('/');
        let mut next = |default| given.next().map_or(Ok(default), |time| self.time(time, 1));
        let (runtime, deadline) = (next(Ns::ZERO)?, next(Ns::ZERO)?);
        let period = next(deadline)?;
        if deadline == Ns::ZERO || given.next().is_some() {
            let expected = "RUNTIME/DEADLINE or RUNTIME/DEADLINE/PERIOD behind the policy's name";
            return Err(self.wrong_at(text, format!("`{text}`"), expected));
        }
        let sched_flags = SchedFlags { reclaim, ..SchedFlags::default() };
        let attr = SchedAttr { sched_policy: Policy::Deadline, sched_flags, ..SchedAttr::NORMAL };
        Ok(SchedAttr { sched_runtime: runtime.0, sched_deadline: deadline.0, sched_period: period.0, ..attr })
    }

    fn time(&self, text: &str, low: u64) -> Result<Ns, ScriptError> {
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let unit_ns = match unit {
            "ns" => Some(1),
            "us" => Some(1_000),
            "ms" => Some(1_000_000),
            "s" => Some(1_000_000_000),
            _ => None,
        };
        let time = unit_ns.and_then(|unit| digits.parse::<u64>().ok()?.checked_mul(unit));
        match time {
            Some(time) if (low..=LONGEST.0).contains(&time) => Ok(Ns(time)),
            _ => Err(self.wrong_at(text, format!("`{text}`"), "a time such as 3ms: ns, us, ms or s, up to an hour")),
        }
    }
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
    fn groups_are_named_by_lines_and_by_tasks() {
        let text = "group /a/b: cpu.max 50000 100000; cpu.weight 300\ntask x group=/c: enter /a/b; enter /; setsid; autogroup -5";
        let script = Script::parse(text, 1).unwrap();
        let paths: Vec<&str> = script.groups.iter().map(|group| group.path.as_str()).collect();
        assert_eq!(paths, ["/a/b", "/c"]);
        let files: Vec<_> =
            script.groups[0].files.iter().map(|line| (line.file, line.text.as_str(), line.column)).collect();
        assert_eq!(files, [(GroupFile::Max, "50000 100000", 13), (GroupFile::Weight, "300", 35)]);
        let steps = [Step::Enter(Some(0)), Step::Enter(None), Step::Setsid, Step::Autogroup(-5)];
        assert_eq!(script.tasks[0].steps[..], steps);
    }

    #[test]
    fn mistakes_have_places() {
        for (text, message) in [
            ("", "4:1: found no task; expected task NAME"),
            ("tasks a: run 1ms", "4:1: found `tasks`; expected task NAME"),
            ("task a run 1ms", "4:8: found `run`; expected key=value, or a colon"),
            ("task a", "4:7: found the end of the line; expected a colon"),
            ("task a: run 1", "4:13: found `1`; expected a time such as 3ms"),
            ("task a: run 0ms", "4:13: found `0ms`; expected a time"),
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
            ("task a policy=rr/100: run 1ms", "4:18: found `100`; expected a whole number from 1 to 99"),
            ("task a policy=deadline/2ms: run 1ms", "4:15: found `deadline/2ms`; expected RUNTIME/DEADLINE"),
            ("task a policy=deadline/2ms/3: run 1ms", "4:28: found `3`; expected a time"),
            ("task a policy=batch/1: run 1ms", "4:21: found `/1`; expected just `batch`"),
            ("task a slice=3: run 1ms", "4:14: found `3`; expected a time such as 3ms"),
            ("task a cpus=3-1: run 1ms", "4:13: found"),
            (
                "task a groop=/a: run 1ms",
                "4:8: found `groop`; expected nice, policy, slice, cpus, on, at, group, session, kind or count",
            ),
            ("group /a cpu.weight 3", "4:10: found `cpu.weight 3`; expected a colon"),
            ("group /a: cpu.wieght 3", "4:11: found `cpu.wieght`; expected `cpu.weight`, perhaps"),
            ("group /a: cpu.max ; cpu.weight 3", "4:19: found nothing for cpu.max"),
            ("group /: cpu.weight 3", "4:7: found `/`; expected another group"),
            ("task a session=: run 1ms", "4:16: found no session; expected a session's name"),
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
