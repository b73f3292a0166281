//! The top level: `tasks`, `global`, `resources`.

use super::description::{Application, Calibration, Global, Placed, PolicyName, Resources, TaskId};
use super::fault::{Fault, Position, Warning, WarningKind, quoted, suggestion};
use super::names::Names;
use super::policy::policy_name;
use super::tree::{Entry, Node, Value, property};
use super::{LARGEST_INT, LONGEST_DURATION_S, check, event};
use std::collections::{BTreeMap, BTreeSet};
use units::{CpuId, NR_CPUS};

const TOP: [&str; 3] = ["tasks", "global", "resources"];

/// `frag` occurs in rt-app's own use cases; rt-app ignores it too.
pub(super) const GLOBAL: [&str; 14] = [
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "frag",
];

/// rt-app's default, 4 MiB.
const DEFAULT_MEM_BUFFER_BYTES: u32 = 4 << 20;

/// Resource types of the old `resources` section that events can still refer to, and those that are read and not used.
const RESOURCE_TYPES: [&str; 8] = ["mutex", "wait", "timer", "signal", "broadcast", "sync", "sleep", "run"];

const FTRACE_CATEGORIES: [&str; 7] = ["none", "main", "task", "run", "loop", "stats", "event"];

/// What is known while the file is read.
pub(super) struct Reader {
    pub warnings: Vec<Warning>,
    pub names: Names,
    pub global: Global,
    pub task_ids: BTreeMap<String, TaskId>,
    /// Names that some `suspend` gives and some `resume` uses, and that are not a task's.
    pub suspend_groups: BTreeSet<String>,
}

pub(super) fn application(file: &str, root: &Node, warnings: Vec<Warning>) -> Result<Application, Fault> {
    let entries = root.object("the file", "an object with \"tasks\"")?;
    for entry in entries {
        known(entry, "at the top level", &TOP)?;
        entry.refuse_repetition()?;
    }
    let Some(tasks_node) = property(entries, "tasks") else {
        return Err(Fault::new(
            root.position,
            "there are no \"tasks\"",
            "give \"tasks\": {\"name\": {\"run\": 1000, \"sleep\": 1000}}",
        ));
    };
    let tasks = tasks_node.object("tasks", "an object of tasks by name")?;
    if tasks.is_empty() {
        return Err(Fault::new(tasks_node.position, "\"tasks\" is empty", "give it at least one task"));
    }
    let global = Global {
        duration_s: None,
        calibration: None,
        default_policy: PolicyName::Other,
        pi_enabled: None,
        lock_pages: true,
        mem_buffer_bytes: DEFAULT_MEM_BUFFER_BYTES,
        cumulative_slack: false,
    };
    let task_ids: BTreeMap<String, TaskId> =
        tasks.iter().enumerate().map(|(i, entry)| (entry.name.clone(), TaskId(i as u32))).collect();
    let suspend_groups = suspend_groups(tasks, &task_ids);
    let mut reader = Reader { warnings, names: Names::default(), global, task_ids, suspend_groups };
    if let Some(node) = property(entries, "global") {
        reader.global(node)?;
    }
    if let Some(node) = property(entries, "resources") {
        reader.resources(node)?;
    }
    let tasks = reader.tasks(tasks)?;
    let Reader { mut warnings, mut names, global, task_ids, .. } = reader;
    let taskgroups = std::mem::take(&mut names.taskgroups.values);
    let resources: Resources = names.into_resources();
    let mut application = Application { file: file.into(), global, tasks, resources, taskgroups, warnings: Vec::new() };
    check::whole(&application, &task_ids, &mut warnings)?;
    warnings.sort_by_key(|warning| warning.position);
    application.warnings = warnings;
    Ok(application)
}

/// Refuses a name that is none of the valid ones.
pub(super) fn known(entry: &Entry, place: &str, valid: &[&str]) -> Result<(), Fault> {
    if valid.contains(&entry.written.as_str()) {
        return Ok(());
    }
    let found = format!("{} means nothing {place}", quoted(&entry.written));
    Err(Fault::new(entry.position, found, suggestion(&entry.written, valid.iter().copied())))
}

fn suspend_groups(tasks: &[Entry], task_ids: &BTreeMap<String, TaskId>) -> BTreeSet<String> {
    let mut suspended = BTreeSet::new();
    let mut resumed = BTreeSet::new();
    let mut look = |entries: &[Entry]| {
        for entry in entries {
            if let Value::Text(name) = &entry.node.value {
                match event::event_called(&entry.written) {
                    Some("suspend") => suspended.insert(name.clone()),
                    Some("resume") => resumed.insert(name.clone()),
                    _ => false,
                };
            }
        }
    };
    for task in tasks {
        let Value::Object(entries) = &task.node.value else { continue };
        look(entries);
        let Some(Value::Object(phases)) = property(entries, "phases").map(|node| &node.value) else { continue };
        for phase in phases {
            if let Value::Object(entries) = &phase.node.value {
                look(entries);
            }
        }
    }
    suspended.intersection(&resumed).filter(|name| !task_ids.contains_key(*name)).cloned().collect()
}

impl Reader {
    pub fn no_effect(&mut self, position: Position, text: String) {
        self.warnings.push(Warning { position, kind: WarningKind::NoEffect, text });
    }

    fn global(&mut self, node: &Node) -> Result<(), Fault> {
        let entries = node.object("global", "an object of settings")?;
        for entry in entries {
            known(entry, "in \"global\"", &GLOBAL)?;
            entry.refuse_repetition()?;
            if !entry.node.is_null() {
                self.setting(entry)?;
            }
        }
        Ok(())
    }

    fn setting(&mut self, entry: &Entry) -> Result<(), Fault> {
        let (key, node) = (entry.written.as_str(), &entry.node);
        let position = node.position;
        match key {
            "duration" => {
                let what = "-1 (until all tasks end) or a whole number of seconds from 1 on";
                match node.integer(key, -1, LONGEST_DURATION_S, what)? {
                    -1 => {}
                    0 => {
                        return Err(Fault::new(
                            position,
                            "\"duration\" is 0",
                            format!("it should be {what}, up to {LONGEST_DURATION_S}"),
                        ));
                    }
                    seconds => self.global.duration_s = Some(Placed::new(seconds as u32, position)),
                }
            }
            "default_policy" => self.global.default_policy = policy_name(key, node)?,
            "pi_enabled" => self.global.pi_enabled = Some(Placed::new(node.boolean(key)?, position)),
            "mem_buffer_size" => {
                self.global.mem_buffer_bytes = node.integer(key, 1, LARGEST_INT, "a whole number of bytes")? as u32;
            }
            "lock_pages" => self.global.lock_pages = node.boolean(key)?,
            "calibration" => {
                self.global.calibration = Some(Placed::new(calibration(node)?, position));
                let text =
                    "\"calibration\" has no effect in a simulation: \"run\" counts in microseconds of capacity 1024";
                self.no_effect(entry.position, text.into());
            }
            _ => {
                self.setting_without_effect(key, node)?;
                self.no_effect(entry.position, format!("\"{key}\" has no effect in a simulation"));
            }
        }
        Ok(())
    }

    fn setting_without_effect(&mut self, key: &str, node: &Node) -> Result<(), Fault> {
        match key {
            "gnuplot" => node.boolean(key).map(drop),
            "cumulative_slack" => {
                self.global.cumulative_slack = node.boolean(key)?;
                Ok(())
            }
            "frag" => Ok(()),
            "logdir" | "log_basename" | "io_device" => node.text(key, "a path or name").map(drop),
            "log_size" => match &node.value {
                Value::Text(mode) if ["file", "disable", "auto"].iter().any(|m| m.eq_ignore_ascii_case(mode)) => Ok(()),
                Value::Text(mode) => {
                    Err(node.not_one_of(key, suggestion(mode, ["file", "disable", "auto"].into_iter())))
                }
                _ => node
                    .integer(key, 0, LARGEST_INT >> 20, "\"file\", \"disable\", \"auto\" or a whole number of MB")
                    .map(drop),
            },
            "ftrace" => match &node.value {
                Value::Boolean(_) => Ok(()),
                _ => ftrace_categories(node),
            },
            _ => unreachable!("{key} is in the table of settings and nowhere else"),
        }
    }

    /// The `resources` section of older files. Threads may meet at a name whether it is declared here or not.
    fn resources(&mut self, node: &Node) -> Result<(), Fault> {
        for entry in node.object("resources", "an object of resources by name")? {
            let what = "an object such as {\"type\": \"mutex\"}";
            let fields = entry.node.object(&entry.written, what)?;
            for field in fields {
                known(field, "in a resource", &["type", "target"])?;
                field.refuse_repetition()?;
            }
            let Some(kind) = property(fields, "type") else {
                return Err(Fault::new(
                    entry.node.position,
                    format!("resource {} has no \"type\"", quoted(&entry.written)),
                    format!("it should be {what}"),
                ));
            };
            match kind.text("type", "the name of a type")? {
                "mutex" => drop(self.names.mutex(&entry.name)),
                "wait" => drop(self.names.condition(&entry.name)),
                "timer" => drop(self.names.timers.timer(&entry.name)),
                other if RESOURCE_TYPES.contains(&other) => {
                    let text =
                        format!("resource {} has no effect: \"{other}\" is an event now", quoted(&entry.written));
                    self.no_effect(entry.position, text);
                }
                other => return Err(kind.not_one_of("type", suggestion(other, RESOURCE_TYPES.into_iter()))),
            }
        }
        Ok(())
    }
}

fn calibration(node: &Node) -> Result<Calibration, Fault> {
    let what = "the CPU to time, such as \"CPU0\", or a whole number of nanoseconds per loop";
    let Value::Text(text) = &node.value else {
        return Ok(Calibration::NsPerLoop(node.integer("calibration", 1, LARGEST_INT, what)? as u32));
    };
    let digits = text.strip_prefix("CPU").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse::<u16>().ok()).filter(|&cpu| usize::from(cpu) < NR_CPUS) {
        Some(cpu) => Ok(Calibration::Cpu(CpuId(cpu))),
        None => Err(node.not_one_of("calibration", format!("it should be {what}"))),
    }
}

fn ftrace_categories(node: &Node) -> Result<(), Fault> {
    let list = node.text("ftrace", "\"none\" or categories such as \"main,task\"")?;
    let valid = |category: &&str| FTRACE_CATEGORIES.iter().any(|known| known.eq_ignore_ascii_case(category));
    match list.split(',').find(|category| !category.is_empty() && !valid(category)) {
        Some(wrong) => Err(node.not_one_of("ftrace", suggestion(wrong, FTRACE_CATEGORIES.into_iter()))),
        None => Ok(()),
    }
}
