//! Events: recognised by how their name begins, as in rt-app.

use super::description::{Buffer, Chain, Event, MemAccess, SharedTimerId, TaskId, TimerMode, TimerRef, UniqueTimerId};
use super::fault::{Fault, Warning, WarningKind, nearest, quoted, suggestion};
use super::grammar::Reader;
use super::names::{Table, TimerUse};
use super::policy::PROPERTIES;
use super::tree::{Entry, Node, property};
use super::{LARGEST_INT, LONGEST_EVENT_US};

/// The names of events, in the order in which rt-app compares them with the beginning of a key.
pub(super) const EVENTS: [&str; 20] = [
    "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer", "suspend", "resume",
    "memrun", "mem", "iorun", "yield", "barrier", "fork", "sem_post", "sem_wait",
];

const MICROSECONDS: &str = "a whole number of microseconds";
/// Below the size of a pointer, a chase's chain would overwrite itself.
const SMALLEST_STRIDE_BYTES: i64 = 8;
const DEFAULT_STRIDE_BYTES: u32 = 64;

/// Which event a name stands for.
pub(super) fn event_called(key: &str) -> Option<&'static str> {
    EVENTS.into_iter().find(|name| key.starts_with(name))
}

/// The task whose events are being read.
pub(super) struct Owner<'a> {
    pub name: &'a str,
    pub id: TaskId,
    pub instances: u32,
    pub unique_timers: Table<String, TimerUse>,
}

impl Reader {
    pub fn event(&mut self, owner: &mut Owner, entry: &Entry, kind: &'static str) -> Result<Event, Fault> {
        self.warn_of_misreading(entry, kind);
        let node = &entry.node;
        let key = entry.written.as_str();
        Ok(match kind {
            "run" => Event::Run { us: duration(entry, kind, 1)? },
            "runtime" => Event::Runtime { us: duration(entry, kind, 1)? },
            "sleep" => Event::Sleep {
                us: self.warn_of_zero(duration(entry, kind, 0)?, entry, "sleeps for the timer slack only"),
            },
            "timer" => self.timer(owner, entry)?,
            "lock" => Event::Lock(self.names.mutex(name(entry, kind, "a mutex")?)),
            "unlock" => Event::Unlock(self.names.mutex(name(entry, kind, "a mutex")?)),
            "signal" => Event::Signal(self.names.condition(name(entry, kind, "a condition")?)),
            "broad" => Event::Broad(self.names.condition(name(entry, kind, "a condition")?)),
            "wait" | "sync" => self.wait(entry, kind)?,
            "barrier" => Event::Barrier(self.names.barrier(name(entry, kind, "a barrier")?, owner.instances)),
            "sem_post" => Event::SemPost(self.names.semaphore(name(entry, kind, "a semaphore")?)),
            "sem_wait" => Event::SemWait(self.names.semaphore(name(entry, kind, "a semaphore")?)),
            "suspend" => self.suspend(owner, entry),
            "resume" => {
                let target = name(entry, kind, "a task")?;
                let (condition, mutex) = (self.names.condition(target), self.names.mutex(target));
                Event::Resume { task: self.task_ids.get(target).copied(), condition, mutex }
            }
            "fork" => {
                let target = name(entry, kind, "a task")?;
                match self.task_ids.get(target) {
                    Some(&task) => Event::Fork(task),
                    None => return Err(node.not_one_of(key, self.no_such_task(target))),
                }
            }
            "mem" => Event::Mem { bytes: bytes(entry, kind)? },
            "iorun" => Event::IoRun { bytes: bytes(entry, kind)? },
            "memrun" => self.memrun(owner, entry)?,
            "yield" => Event::Yield,
            _ => unreachable!("{kind} is not in the table of events"),
        })
    }

    /// The help text for a name that is not a task's.
    pub fn no_such_task(&self, found: &str) -> String {
        format!("no task is called that; {}", suggestion(found, self.task_ids.keys().map(String::as_str)))
    }

    /// `runtme` begins with `run`, so rt-app reads it as `run`. This warns where another event's name is one typo away.
    fn warn_of_misreading(&mut self, entry: &Entry, kind: &'static str) {
        let key = entry.written.as_str();
        let rest = &key[kind.len()..];
        if rest.len() < 2 || rest.bytes().all(|b| b.is_ascii_digit()) {
            return;
        }
        let as_long = |other: &&str| *other != kind && other.len().abs_diff(key.len()) <= 1;
        let others = EVENTS.into_iter().chain(PROPERTIES).chain(["lock_pages"]).filter(as_long);
        if let Some((other, 0 | 1)) = nearest(key, others) {
            let text =
                format!("{} is read as \"{kind}\", because it begins so; did you mean \"{other}\"?", quoted(key));
            self.warnings.push(Warning { position: entry.position, kind: WarningKind::Reading, text });
        }
    }

    fn warn_of_zero(&mut self, us: u64, entry: &Entry, what: &str) -> u64 {
        if us == 0 {
            let text = format!("{} of 0 us {what}", quoted(&entry.written));
            self.warnings.push(Warning { position: entry.node.position, kind: WarningKind::Reading, text });
        }
        us
    }

    fn timer(&mut self, owner: &mut Owner, entry: &Entry) -> Result<Event, Fault> {
        let fields = fields(entry, "timer", &["ref", "period", "mode"], "{\"ref\": \"unique\", \"period\": 10000}")?;
        let reference = required(entry, fields, "ref")?.text("ref", "the name of a timer")?;
        let period = required(entry, fields, "period")?;
        let period_us = period.integer("period", 0, LONGEST_EVENT_US, MICROSECONDS)? as u64;
        self.warn_of_zero(period_us, entry, "never waits once its moment has passed");
        let (table, unique) = match reference.starts_with("unique") {
            true => (&mut owner.unique_timers, true),
            false => (&mut self.names.timers, false),
        };
        let id = table.timer(reference);
        if let Some(node) = property(fields, "mode") {
            let mode = match node.text("mode", "\"relative\" or \"absolute\"")? {
                "relative" => TimerMode::Relative,
                "absolute" => TimerMode::Absolute,
                other => return Err(node.not_one_of("mode", suggestion(other, ["relative", "absolute"].into_iter()))),
            };
            if let Some(at) = table.values[id as usize].say(mode, node.position) {
                let text =
                    format!("timer {} has another mode at {at}; absolute counts for all its uses", quoted(reference));
                self.warnings.push(Warning { position: node.position, kind: WarningKind::Reading, text });
            }
        }
        let timer = if unique { TimerRef::Unique(UniqueTimerId(id)) } else { TimerRef::Shared(SharedTimerId(id)) };
        Ok(Event::Timer { timer, period_us })
    }

    fn wait(&mut self, entry: &Entry, kind: &str) -> Result<Event, Fault> {
        let fields = fields(entry, kind, &["ref", "mutex"], "{\"ref\": \"condition\", \"mutex\": \"mutex\"}")?;
        let condition = self.names.condition(required(entry, fields, "ref")?.text("ref", "the name of a condition")?);
        let mutex = self.names.mutex(required(entry, fields, "mutex")?.text("mutex", "the name of a mutex")?);
        Ok(match kind {
            "wait" => Event::Wait { condition, mutex },
            _ => Event::Sync { condition, mutex },
        })
    }

    /// Since its commit 32fcddf (2025) rt-app ignores the value and waits on the task's own name; before, the value
    /// named what to wait on. Both agree in most files. We keep the older reading where only it makes sense: some
    /// `resume` uses that name, and no task has it.
    fn suspend(&mut self, owner: &Owner, entry: &Entry) -> Event {
        let written = match &entry.node.value {
            super::tree::Value::Text(text) => text.as_str(),
            _ => "",
        };
        let older = self.suspend_groups.contains(written);
        let (value, own) = (quoted(written), quoted(owner.name));
        let text = if older {
            format!("waits for a \"resume\" of {value}, as in rt-app up to v1.0; newer ones would wait for {own}")
        } else {
            format!(
                "{value} is ignored: \"suspend\" waits for a \"resume\" of its own task, {own}; up to v1.0 it counted"
            )
        };
        if older || !written.is_empty() && written != owner.name {
            let position = entry.node.position;
            self.warnings.push(Warning { position, kind: WarningKind::Reading, text });
        }
        let name = if older { written } else { owner.name };
        Event::Suspend { condition: self.names.condition(name), mutex: self.names.mutex(name) }
    }

    fn memrun(&mut self, owner: &Owner, entry: &Entry) -> Result<Event, Fault> {
        let example = "{\"type\": \"read\", \"size\": 65536, \"count\": 1000}";
        let fields = fields(entry, "memrun", &["type", "size", "count", "ref", "stride", "pattern"], example)?;
        let kind = required(entry, fields, "type")?;
        let access = match kind.text("type", "\"read\", \"write\" or \"chase\"")? {
            "read" => MemAccess::Read,
            "write" => MemAccess::Write,
            "chase" => MemAccess::Chase,
            other => return Err(kind.not_one_of("type", suggestion(other, ["read", "write", "chase"].into_iter()))),
        };
        let size = required(entry, fields, "size")?;
        let bytes = size.integer("size", 1, LARGEST_INT, "a whole number of bytes")? as u32;
        let count =
            required(entry, fields, "count")?.integer("count", 1, LARGEST_INT, "a whole number of accesses")? as u32;
        let shared_as =
            property(fields, "ref").map(|node| node.text("ref", "the name of a shared buffer")).transpose()?;
        let chain = self.chain(fields, access, size, bytes)?;
        let buffer = Buffer { shared_as: shared_as.map(String::from), bytes, chain };
        let buffer = self.names.buffer(owner.id, access, buffer, entry.position)?;
        Ok(Event::MemRun { access, count, buffer })
    }

    fn chain(&mut self, fields: &[Entry], access: MemAccess, size: &Node, bytes: u32) -> Result<Option<Chain>, Fault> {
        if access != MemAccess::Chase {
            for entry in fields.iter().filter(|e| matches!(e.written.as_str(), "stride" | "pattern")) {
                let text = format!("\"{}\" has no effect but with the type \"chase\"", entry.written);
                self.warnings.push(Warning { position: entry.position, kind: WarningKind::NoEffect, text });
            }
            return Ok(None);
        }
        let stride_bytes = match property(fields, "stride") {
            Some(node) => node.integer("stride", SMALLEST_STRIDE_BYTES, LARGEST_INT, "a whole number of bytes")? as u32,
            None => DEFAULT_STRIDE_BYTES,
        };
        if bytes / 2 < stride_bytes {
            let found = format!("a chase through {bytes} bytes with a stride of {stride_bytes}");
            return Err(Fault::new(size.position, found, "the buffer should hold two strides or more"));
        }
        let random = match property(fields, "pattern") {
            None => true,
            Some(node) => match node.text("pattern", "\"random\" or \"sequential\"")? {
                "random" => true,
                "sequential" => false,
                other => {
                    return Err(node.not_one_of("pattern", suggestion(other, ["random", "sequential"].into_iter())));
                }
            },
        };
        Ok(Some(Chain { stride_bytes, random }))
    }
}

/// What an event's value should be. If the name is not exactly an event's, the text also says why it counts as one.
fn expected(entry: &Entry, kind: &str, what: &str) -> String {
    if entry.written == kind {
        what.into()
    } else {
        format!("{what} (names that begin with \"{kind}\" are \"{kind}\" events)")
    }
}

fn duration(entry: &Entry, kind: &str, least: i64) -> Result<u64, Fault> {
    let what = expected(entry, kind, MICROSECONDS);
    entry.node.integer(&entry.written, least, LONGEST_EVENT_US, &what).map(|us| us as u64)
}

fn bytes(entry: &Entry, kind: &str) -> Result<u32, Fault> {
    let what = expected(entry, kind, "a whole number of bytes");
    entry.node.integer(&entry.written, 1, LARGEST_INT, &what).map(|bytes| bytes as u32)
}

fn name<'a>(entry: &'a Entry, kind: &str, of: &str) -> Result<&'a str, Fault> {
    entry.node.text(&entry.written, &expected(entry, kind, &format!("the name of {of}")))
}

/// The fields of an event whose value is an object, each known and given once.
fn fields<'a>(entry: &'a Entry, kind: &str, valid: &[&str], example: &str) -> Result<&'a [Entry], Fault> {
    let fields = entry.node.object(&entry.written, &expected(entry, kind, &format!("an object, such as {example}")))?;
    for field in fields {
        if !valid.contains(&field.written.as_str()) {
            let found = format!("{} is not a part of \"{kind}\"", quoted(&field.written));
            return Err(Fault::new(field.position, found, suggestion(&field.written, valid.iter().copied())));
        }
        field.refuse_repetition()?;
    }
    Ok(fields)
}

fn required<'a>(entry: &Entry, fields: &'a [Entry], name: &str) -> Result<&'a Node, Fault> {
    property(fields, name).ok_or_else(|| {
        Fault::new(
            entry.node.position,
            format!("{} lacks \"{name}\"", quoted(&entry.written)),
            format!("give \"{name}\""),
        )
    })
}
