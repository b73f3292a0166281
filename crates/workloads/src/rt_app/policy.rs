//! Properties of tasks and phases: policy and its parameters, clamps, CPUs, nodes, task group.

use super::description::{Placed, Policy, PolicyName};
use super::fault::{Fault, Position, Warning, WarningKind, quoted, suggestion};
use super::tree::{Entry, Node, property};
use super::{LARGEST_INT, MOST_NUMA_NODES};
use units::{CpuId, CpuMask, NR_CPUS};

/// Names that both tasks and phases may have.
pub(super) const PROPERTIES: [&str; 10] = [
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "cpus",
    "nodes_membind",
    "util_min",
    "util_max",
    "taskgroup",
];

/// Older names of the deadline parameters, for tasks only.
pub(super) const OLD_DEADLINE_NAMES: [&str; 3] = ["runtime", "period", "deadline"];

/// rt-app's default for the real-time policies.
const DEFAULT_RT_PRIORITY: i64 = 10;

/// The kernel refuses a deadline runtime below 1024 ns (DL_SCALE), which leaves 2 us as the least whole number.
const SHORTEST_DEADLINE_RUNTIME_US: u32 = 2;

const MICROSECONDS: &str = "a whole number of microseconds";

/// What the file says, before it is combined with the policy in force.
#[derive(Default)]
pub(super) struct Properties {
    pub policy: Option<Placed<PolicyName>>,
    pub priority: Option<Placed<i64>>,
    pub runtime_us: Option<Placed<u32>>,
    pub deadline_us: Option<Placed<u32>>,
    pub period_us: Option<Placed<u32>>,
    pub util_min: Option<Placed<u16>>,
    pub util_max: Option<Placed<u16>>,
    pub cpus: Option<Placed<CpuMask>>,
    pub nodes_membind: Option<Placed<Vec<u16>>>,
    /// `None` also for an empty path, which rt-app treats as none.
    pub taskgroup: Option<Placed<String>>,
}

impl Properties {
    pub fn read(entries: &[Entry]) -> Result<Properties, Fault> {
        let mut read = Properties::default();
        if let Some(node) = property(entries, "policy") {
            read.policy = Some(Placed::new(policy_name("policy", node)?, node.position));
        }
        if let Some(node) = property(entries, "priority") {
            let number = node.integer(
                "priority",
                -20,
                99,
                "a nice value of -20 to 19 or a real-time priority of 1 to 99: a whole number",
            )?;
            read.priority = Some(Placed::new(number, node.position));
        }
        read.runtime_us = microseconds(entries, "dl-runtime")?;
        read.deadline_us = microseconds(entries, "dl-deadline")?;
        read.period_us = microseconds(entries, "dl-period")?;
        read.util_min = utilization(entries, "util_min")?;
        read.util_max = utilization(entries, "util_max")?;
        if let Some(node) = property(entries, "cpus") {
            let cpus = node.indices("cpus", NR_CPUS as i64 - 1, "CPU numbers", "[0, 2, 3]")?;
            let mask: CpuMask = cpus.into_iter().map(|cpu| CpuId::new(cpu.into())).collect();
            read.cpus = Some(Placed::new(mask, node.position));
        }
        if let Some(node) = property(entries, "nodes_membind") {
            let nodes = node.indices("nodes_membind", MOST_NUMA_NODES - 1, "node numbers", "[0, 1]")?;
            read.nodes_membind = Some(Placed::new(nodes, node.position));
        }
        if let Some(node) = property(entries, "taskgroup") {
            let path = node.text("taskgroup", "the path of a control group, such as \"/tg1\"")?;
            check_path(node, path)?;
            if !path.is_empty() {
                read.taskgroup = Some(Placed::new(path.into(), node.position));
            }
        }
        Ok(read)
    }

    /// Uses the older names of the deadline parameters where no newer one is given. In a task without phases `runtime`
    /// is an event too; there it counts as a parameter for SCHED_DEADLINE only.
    pub fn read_old_names(
        &mut self,
        entries: &[Entry],
        inline: bool,
        policy: PolicyName,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Fault> {
        let newer = self.runtime_us.is_some() || self.period_us.is_some() || self.deadline_us.is_some();
        for name in ["period", "deadline"] {
            if let Some(node) = property(entries, name).filter(|_| newer) {
                let found = format!("\"{name}\" stands beside a \"dl-\" name, where rt-app ignores it");
                return Err(Fault::new(node.position, found, format!("call it \"dl-{name}\"")));
            }
        }
        if newer {
            return Ok(());
        }
        self.period_us = microseconds(entries, "period")?;
        self.deadline_us = microseconds(entries, "deadline")?;
        if inline && policy != PolicyName::Deadline {
            if let Some(node) =
                property(entries, "runtime").filter(|_| matches!(policy, PolicyName::Other | PolicyName::Batch))
            {
                let text =
                    "\"runtime\" is only the event here; rt-app also takes it for \"dl-runtime\", the slice to request";
                warnings.push(Warning { position: node.position, kind: WarningKind::Reading, text: text.into() });
            }
            return Ok(());
        }
        self.runtime_us = microseconds(entries, "runtime")?;
        if let Some(runtime) = self.runtime_us.as_ref().filter(|_| inline) {
            let text =
                "\"runtime\" is both an event and the deadline runtime, as in rt-app; \"dl-runtime\" is only this";
            warnings.push(Warning { position: runtime.position, kind: WarningKind::Reading, text: text.into() });
        }
        Ok(())
    }

    /// The policy a task starts with; `position` is where its name stands.
    pub fn of_task(
        &self,
        default: PolicyName,
        position: Position,
        warnings: &mut Vec<Warning>,
    ) -> Result<Placed<Policy>, Fault> {
        let name = self.policy.as_ref().map_or(Placed::new(default, position), Clone::clone);
        let policy = self.policy_called(&name, None, warnings)?;
        Ok(Placed::new(policy, name.position))
    }

    /// The policy a phase sets, if it sets one; `current` is the one in force before.
    pub fn of_phase(&self, current: &Policy, warnings: &mut Vec<Warning>) -> Result<Option<Placed<Policy>>, Fault> {
        if self.policy.is_none() && self.priority.is_none() && current.name() != PolicyName::Deadline {
            // rt-app leaves the attributes alone while neither policy nor priority is given.
            let unchanged = "a phase that changes neither policy nor priority";
            self.warn_of_deadline_parameters(true, unchanged, warnings);
            return Ok(None);
        }
        let given = [&self.runtime_us, &self.deadline_us, &self.period_us].into_iter().flatten().map(|p| p.position);
        let given = self.policy.iter().map(|p| p.position).chain(self.priority.iter().map(|p| p.position)).chain(given);
        let Some(position) = given.min() else {
            return Ok(None);
        };
        let name = self.policy.as_ref().map_or(Placed::new(current.name(), position), Clone::clone);
        let policy = self.policy_called(&name, Some(current), warnings)?;
        Ok(Some(Placed::new(policy, name.position)))
    }

    fn policy_called(
        &self,
        name: &Placed<PolicyName>,
        current: Option<&Policy>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Policy, Fault> {
        match name.value {
            PolicyName::Other | PolicyName::Batch => {
                self.warn_of_deadline_parameters(false, "a fair policy", warnings);
                let nice = self.priority_between(-20, 19, 0, "a nice value", name.value)? as i8;
                let kept = current.filter(|c| c.name() == name.value).and_then(|c| match *c {
                    Policy::Other { slice_us, .. } | Policy::Batch { slice_us, .. } => slice_us,
                    _ => None,
                });
                let slice_us = self.runtime_us.as_ref().map(|p| p.value).or(kept);
                Ok(match name.value {
                    PolicyName::Batch => Policy::Batch { nice, slice_us },
                    _ => Policy::Other { nice, slice_us },
                })
            }
            PolicyName::Idle => {
                self.warn_of_deadline_parameters(true, "SCHED_IDLE", warnings);
                self.warn_of_priority("SCHED_IDLE", warnings);
                Ok(Policy::Idle)
            }
            PolicyName::RoundRobin | PolicyName::Fifo => {
                self.warn_of_deadline_parameters(true, "a real-time policy", warnings);
                let priority =
                    self.priority_between(1, 99, DEFAULT_RT_PRIORITY, "a real-time priority", name.value)? as u8;
                Ok(match name.value {
                    PolicyName::Fifo => Policy::Fifo { priority },
                    _ => Policy::RoundRobin { priority },
                })
            }
            PolicyName::Deadline => {
                self.warn_of_priority("SCHED_DEADLINE", warnings);
                self.deadline(name.position)
            }
        }
    }

    fn priority_between(
        &self,
        low: i64,
        high: i64,
        default: i64,
        what: &str,
        policy: PolicyName,
    ) -> Result<i64, Fault> {
        match &self.priority {
            Some(p) if !(low..=high).contains(&p.value) => Err(Fault::new(
                p.position,
                format!("\"priority\" is {} under {}", p.value, policy.as_str()),
                format!("it should be {what}, {low} to {high}"),
            )),
            given => Ok(given.as_ref().map_or(default, |p| p.value)),
        }
    }

    fn deadline(&self, position: Position) -> Result<Policy, Fault> {
        let Some(runtime) = &self.runtime_us else {
            return Err(Fault::new(
                position,
                "SCHED_DEADLINE without \"dl-runtime\"",
                "give \"dl-runtime\" in microseconds",
            ));
        };
        if runtime.value < SHORTEST_DEADLINE_RUNTIME_US {
            let found = format!("a deadline runtime of {} us", runtime.value);
            return Err(Fault::new(
                runtime.position,
                found,
                format!("the kernel takes {SHORTEST_DEADLINE_RUNTIME_US} us or more"),
            ));
        }
        let period = self.period_us.clone().unwrap_or(runtime.clone());
        let deadline = self.deadline_us.clone().unwrap_or(period.clone());
        let order = "runtime <= deadline <= period must hold";
        if runtime.value > deadline.value {
            let found = format!("a deadline runtime of {} us and a deadline of {} us", runtime.value, deadline.value);
            return Err(Fault::new(deadline.position, found, order));
        }
        if deadline.value > period.value {
            let found = format!("a deadline of {} us and a period of {} us", deadline.value, period.value);
            return Err(Fault::new(period.position, found, order));
        }
        Ok(Policy::Deadline { runtime_us: runtime.value, deadline_us: deadline.value, period_us: period.value })
    }

    fn warn_of_deadline_parameters(&self, runtime_too: bool, policy: &str, warnings: &mut Vec<Warning>) {
        let runtime = self.runtime_us.iter().filter(|_| runtime_too).map(|p| ("dl-runtime", p.position));
        let period = self.period_us.iter().map(|p| ("dl-period", p.position));
        let deadline = self.deadline_us.iter().map(|p| ("dl-deadline", p.position));
        warnings.extend(runtime.chain(period).chain(deadline).map(|(name, at)| no_effect(name, at, policy)));
    }

    fn warn_of_priority(&self, policy: &str, warnings: &mut Vec<Warning>) {
        warnings
            .extend(self.priority.iter().filter(|p| p.value != 0).map(|p| no_effect("priority", p.position, policy)));
    }
}

fn no_effect(name: &str, position: Position, under: &str) -> Warning {
    Warning { position, kind: WarningKind::NoEffect, text: format!("\"{name}\" has no effect under {under}") }
}

pub(super) fn policy_name(key: &str, node: &Node) -> Result<PolicyName, Fault> {
    let names = PolicyName::ALL.into_iter().map(PolicyName::as_str);
    let text = node.text(key, "a policy, such as \"SCHED_OTHER\"")?;
    PolicyName::ALL
        .into_iter()
        .find(|policy| policy.as_str() == text)
        .ok_or_else(|| node.not_one_of(key, suggestion(text, names)))
}

fn microseconds(entries: &[Entry], name: &str) -> Result<Option<Placed<u32>>, Fault> {
    property(entries, name)
        .map(|node| Ok(Placed::new(node.integer(name, 1, LARGEST_INT, MICROSECONDS)? as u32, node.position)))
        .transpose()
}

fn utilization(entries: &[Entry], name: &str) -> Result<Option<Placed<u16>>, Fault> {
    property(entries, name)
        .map(|node| Ok(Placed::new(node.integer(name, 0, 1024, "a share of the capacity 1024")? as u16, node.position)))
        .transpose()
}

fn check_path(node: &Node, path: &str) -> Result<(), Fault> {
    let wrong = |right: String| Err(Fault::new(node.position, format!("\"taskgroup\" is {}", quoted(path)), right));
    if path.is_empty() || path == "/" {
        return Ok(());
    }
    let Some(inner) = path.strip_prefix('/') else {
        return wrong(format!("it should begin with \"/\", such as {}", quoted(&format!("/{path}"))));
    };
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
    if inner.split('/').all(plain) {
        Ok(())
    } else {
        wrong("it should be names with one \"/\" before each, such as \"/tg1/tg11\"".into())
    }
}
