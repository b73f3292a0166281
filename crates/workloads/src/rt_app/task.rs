//! Tasks and their phases.

use super::description::{Loops, Phase, Placed, Policy, PolicyName, Step, Task, TaskId, TaskgroupId};
use super::event::{EVENTS, Owner, event_called};
use super::fault::{Fault, Position, quoted, suggestion};
use super::grammar::Reader;
use super::names::Table;
use super::policy::{OLD_DEADLINE_NAMES, PROPERTIES, Properties};
use super::tree::{Entry, property};
use super::{LARGEST_INT, LONGEST_EVENT_US, MOST_INSTANCES};
use units::CpuMask;

pub(super) const TASK_ONLY: [&str; 3] = ["instance", "delay", "phases"];

/// The level at which a name occurs, which decides what it may mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    TaskWithPhases,
    /// A task that holds the events of its only phase.
    TaskWithEvents,
    Phase,
}

enum Meaning {
    Property,
    Event(&'static str),
}

/// What is in force while the phases of a task are read in order.
struct InForce {
    policy: Policy,
    util_min: u16,
    util_max: u16,
    taskgroup: Option<(TaskgroupId, Position)>,
}

impl Reader {
    pub fn tasks(&mut self, entries: &[Entry]) -> Result<Vec<Task>, Fault> {
        let mut tasks = Vec::with_capacity(entries.len());
        let mut instances = 0_u64;
        for (index, entry) in entries.iter().enumerate() {
            if entry.name.contains(char::is_control) {
                let found = format!("the name {} has a control character", quoted(&entry.name));
                return Err(Fault::new(entry.position, found, "reports show it: it should be plain text"));
            }
            let task = self.task(TaskId(index as u32), entry)?;
            instances += u64::from(task.instances);
            if instances > MOST_INSTANCES as u64 {
                let found = format!("with {} this file has {instances} threads", quoted(&task.name));
                return Err(Fault::new(task.position, found, format!("it should have at most {MOST_INSTANCES}")));
            }
            tasks.push(task);
        }
        if instances == 0 {
            let found = "every task has 0 instances, so nothing starts";
            return Err(Fault::new(tasks[0].position, found, "give one of them \"instance\": 1 or more"));
        }
        Ok(tasks)
    }

    fn task(&mut self, id: TaskId, task: &Entry) -> Result<Task, Fault> {
        let entries = task.node.object(&task.written, "an object: a task with its phases or events")?;
        let phases = property(entries, "phases");
        let level = if phases.is_some() { Level::TaskWithPhases } else { Level::TaskWithEvents };
        for entry in entries {
            meaning(entry, level)?;
        }
        let number = |key: &str, default: i64, low: i64, high: i64, what: &str| {
            property(entries, key).map_or(Ok(default), |node| node.integer(key, low, high, what))
        };
        let instances = number("instance", 1, 0, MOST_INSTANCES, "a number of threads")? as u32;
        let delay_us = number("delay", 0, 0, LONGEST_EVENT_US, "a whole number of microseconds")? as u64;

        let mut properties = Properties::read(entries)?;
        let inline = level == Level::TaskWithEvents;
        let named = properties.policy.as_ref().map_or(self.global.default_policy, |policy| policy.value);
        properties.read_old_names(entries, inline, named, &mut self.warnings)?;
        let policy = properties.of_task(self.global.default_policy, task.position, &mut self.warnings)?;
        let taskgroup = self.taskgroup(&properties)?;
        let mut in_force = InForce { policy: policy.value, util_min: 0, util_max: 1024, taskgroup: None };
        in_force.enter(&properties, &taskgroup)?;

        let mut owner = Owner { name: &task.name, id, instances, unique_timers: Table::default() };
        let (loops, phases) = match phases {
            Some(node) => {
                let list = node.object("phases", "an object of phases by name")?;
                if list.is_empty() {
                    return Err(Fault::new(
                        node.position,
                        "\"phases\" is empty",
                        "give it at least one phase with an event",
                    ));
                }
                let mut phases = Vec::with_capacity(list.len());
                for phase in list {
                    phases.push(self.phase(&mut owner, phase, &properties.cpus, &mut in_force)?);
                }
                (loops(entries, "loop of a task", Loops::Forever)?, phases)
            }
            None => {
                let (own, phase) = self.events_of_task(&mut owner, task, entries, &properties)?;
                (own, vec![phase])
            }
        };
        let unique_timers = owner.unique_timers.into_timers();
        let Properties { util_min, util_max, nodes_membind, .. } = properties;
        Ok(Task {
            name: task.name.clone(),
            position: task.position,
            instances,
            delay_us,
            loops,
            policy,
            util_min,
            util_max,
            taskgroup,
            nodes_membind,
            phases,
            unique_timers,
        })
    }

    /// The only phase of a task that holds its events directly. A `loop` then belongs to the phase, so the task ends
    /// after it; without one the task repeats for ever.
    fn events_of_task(
        &mut self,
        owner: &mut Owner,
        task: &Entry,
        entries: &[Entry],
        properties: &Properties,
    ) -> Result<(Loops, Phase), Fault> {
        let own = if property(entries, "loop").is_some() { Loops::Times(1) } else { Loops::Forever };
        let phase = Phase {
            name: task.name.clone(),
            position: task.position,
            loops: loops(entries, "loop", Loops::Times(1))?,
            policy: None,
            util_min: None,
            util_max: None,
            taskgroup: None,
            nodes_membind: None,
            cpus: properties.cpus.clone(),
            steps: self.steps(owner, task, entries, Level::TaskWithEvents)?,
        };
        Ok((own, phase))
    }

    fn phase(
        &mut self,
        owner: &mut Owner,
        phase: &Entry,
        task_cpus: &Option<Placed<CpuMask>>,
        in_force: &mut InForce,
    ) -> Result<Phase, Fault> {
        let entries = phase.node.object(&phase.written, "an object: a phase with its events")?;
        for entry in entries {
            meaning(entry, Level::Phase)?;
        }
        let properties = Properties::read(entries)?;
        let policy = properties.of_phase(&in_force.policy, &mut self.warnings)?;
        let taskgroup = self.taskgroup(&properties)?;
        if let Some(policy) = &policy {
            in_force.policy = policy.value;
        }
        in_force.enter(&properties, &taskgroup)?;
        let steps = self.steps(owner, phase, entries, Level::Phase)?;
        let Properties { util_min, util_max, nodes_membind, cpus, .. } = properties;
        Ok(Phase {
            name: phase.name.clone(),
            position: phase.position,
            loops: loops(entries, "loop of a phase", Loops::Times(1))?,
            policy,
            util_min,
            util_max,
            taskgroup,
            nodes_membind,
            cpus: cpus.or_else(|| task_cpus.clone()),
            steps,
        })
    }

    fn steps(&mut self, owner: &mut Owner, of: &Entry, entries: &[Entry], level: Level) -> Result<Vec<Step>, Fault> {
        let mut steps = Vec::new();
        for entry in entries {
            if let Meaning::Event(kind) = meaning(entry, level)? {
                let event = self.event(owner, entry, kind)?;
                steps.push(Step { event, key: entry.name.clone(), position: entry.position });
            }
        }
        if steps.is_empty() {
            let found = format!("{} has no event", quoted(&of.written));
            return Err(Fault::new(of.position, found, "give it at least one, such as \"run\": 1000"));
        }
        Ok(steps)
    }

    fn taskgroup(&mut self, properties: &Properties) -> Result<Option<Placed<TaskgroupId>>, Fault> {
        let Some(path) = &properties.taskgroup else { return Ok(None) };
        Ok(Some(Placed::new(self.names.taskgroup(&path.value, path.position)?, path.position)))
    }
}

impl InForce {
    /// Refuses what rt-app or the kernel would refuse when the task or phase begins.
    fn enter(&mut self, properties: &Properties, taskgroup: &Option<Placed<TaskgroupId>>) -> Result<(), Fault> {
        if let Some(group) = taskgroup {
            self.taskgroup = Some((group.value, group.position));
        }
        let policy = self.policy.name();
        if let Some((_, position)) = self.taskgroup.filter(|_| !policy.is_fair()) {
            let at = properties.policy.as_ref().map_or(position, |policy| policy.position.max(position));
            let found = format!("a task group under {}", policy.as_str());
            return Err(Fault::new(at, found, "rt-app takes groups for SCHED_OTHER, SCHED_BATCH and SCHED_IDLE only"));
        }
        let clamps = [&properties.util_min, &properties.util_max];
        let Some(position) = clamps.iter().filter_map(|clamp| clamp.as_ref()).map(|clamp| clamp.position).max() else {
            return Ok(());
        };
        if policy == PolicyName::Deadline {
            return Err(Fault::new(
                position,
                "a clamp under SCHED_DEADLINE",
                "leave util_min and util_max out: deadline tasks have no clamps",
            ));
        }
        self.util_min = properties.util_min.as_ref().map_or(self.util_min, |clamp| clamp.value);
        self.util_max = properties.util_max.as_ref().map_or(self.util_max, |clamp| clamp.value);
        if self.util_min > self.util_max {
            let found = format!("here util_min is {} and util_max is {}", self.util_min, self.util_max);
            return Err(Fault::new(position, found, "util_min should not be above util_max"));
        }
        Ok(())
    }
}

fn loops(entries: &[Entry], what: &str, default: Loops) -> Result<Loops, Fault> {
    let Some(node) = property(entries, "loop") else { return Ok(default) };
    let right = "-1 (for ever) or a whole number of repetitions from 1 on";
    match node.integer("loop", -1, LARGEST_INT, right)? {
        -1 => Ok(Loops::Forever),
        0 => Err(Fault::new(node.position, format!("the {what} is 0"), format!("it should be {right}"))),
        times => Ok(Loops::Times(times as u32)),
    }
}

/// What a name means at this level, or why it must not occur there.
fn meaning(entry: &Entry, level: Level) -> Result<Meaning, Fault> {
    let name = entry.written.as_str();
    let task = level != Level::Phase;
    let property = name == "loop"
        || PROPERTIES.contains(&name)
        || task && TASK_ONLY.contains(&name)
        || task && OLD_DEADLINE_NAMES.contains(&name) && (name != "runtime" || level == Level::TaskWithPhases);
    if property {
        entry.refuse_repetition()?;
        return Ok(Meaning::Property);
    }
    let refuse =
        |found: &str, right: String| Err(Fault::new(entry.position, format!("{} {found}", quoted(name)), right));
    match event_called(name) {
        Some(_) if level == Level::TaskWithPhases => {
            refuse("beside \"phases\" would never run", "move it into one of the phases".into())
        }
        Some(kind) => Ok(Meaning::Event(kind)),
        None if TASK_ONLY.contains(&name) => {
            refuse("belongs to a task, not to a phase", "move it up, beside \"phases\"".into())
        }
        None if OLD_DEADLINE_NAMES.contains(&name) => {
            refuse("means nothing in a phase", format!("did you mean \"dl-{name}\"?"))
        }
        None => {
            let events = EVENTS.into_iter().filter(|_| level != Level::TaskWithPhases);
            let task_only = TASK_ONLY.into_iter().filter(|_| task);
            let valid = events.chain(["loop"]).chain(PROPERTIES).chain(task_only);
            let place = if task { "in a task" } else { "in a phase" };
            refuse(&format!("means nothing {place}"), suggestion(name, valid))
        }
    }
}
