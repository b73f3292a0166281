//! What the kernel refuses of a thread's requests: rt-app ends there with the number of the error, and so does the application here.

use super::description::{Application, PolicyName, TaskId};
use super::fault::Position;
use sched::errno::Errno;
use sim::engine::Sample;
use sim::program::Op;
use std::fmt;
use units::Ns;

/// Series of the process itself: a refused request, see [`told`].
pub(super) const SERIES: u32 = 2;

/// What a thread asks the kernel for that may be refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    Cpus,
    Policy,
    Clamps,
    /// Another thread.
    Fork,
}

impl Asked {
    const ALL: [Asked; 4] = [Asked::Cpus, Asked::Policy, Asked::Clamps, Asked::Fork];

    /// What is asked for with `op` that may be refused. A fork's answer is looked at where the thread goes on from it.
    pub fn of(op: &Op) -> Option<Asked> {
        match op {
            Op::SetAffinity(_) => Some(Asked::Cpus),
            Op::SetAttr(attr) if attr.sched_flags.keep_all => Some(Asked::Clamps),
            Op::SetAttr(_) | Op::SetPolicy { .. } => Some(Asked::Policy),
            _ => None,
        }
    }
}

/// The value of [`SERIES`]: 24 bits of the task, 16 of its phase (from 1; 0: its own settings), 8 of what was asked for, and the
/// number of the error.
pub(super) fn told(task: TaskId, phase: Option<usize>, asked: Asked, answer: i64) -> u64 {
    let phase = phase.map_or(0, |phase| (phase as u64 + 1).min(0xffff));
    u64::from(task.0) << 40 | phase << 24 | (asked as u64) << 16 | answer.unsigned_abs() & 0xffff
}

/// A request that the kernel refused, at which rt-app ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub at: Ns,
    pub file: String,
    pub position: Position,
    pub task: String,
    /// As in the file: `"cpus"`.
    pub request: String,
    pub errno: Errno,
    /// Words for what the kernel looks at there.
    pub why: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { file, position, task, request, errno, why, .. } = self;
        let (name, meaning, us) = (errno.name(), errno.meaning(), self.at.0 / 1_000);
        write!(f, "{file}:{}:{}: the kernel refused {request} of \"{task}\"", position.line, position.column)?;
        write!(f, " with {name} ({meaning}) at {}.{:03} ms", us / 1_000, us % 1_000)?;
        write!(f, ": {why}; rt-app ends there")
    }
}

/// The first refused request.
pub(super) fn first(app: &Application, reported: &[Sample]) -> Option<Refused> {
    let sample = reported.iter().find(|sample| sample.series == SERIES)?;
    let task = &app.tasks[(sample.value >> 40) as usize];
    let phase = (sample.value >> 24 & 0xffff).checked_sub(1).map(|phase| &task.phases[phase as usize]);
    let asked = Asked::ALL[(sample.value >> 16 & 0xff) as usize];
    let errno = Errno::of_answer(-((sample.value & 0xffff) as i64)).expect("the kernel's answers are known");
    let here = phase.map_or(task.position, |phase| phase.position);
    let (clamps, policy) = match phase {
        Some(phase) => ([&phase.util_min, &phase.util_max], phase.policy.as_ref()),
        None => ([&task.util_min, &task.util_max], Some(&task.policy)),
    };
    let (position, request, why) = match asked {
        Asked::Cpus => {
            let cpus = phase.and_then(|phase| phase.cpus.as_ref());
            (cpus.map(|cpus| cpus.position), "\"cpus\"".to_string(), "none of these CPUs is up")
        }
        Asked::Policy => {
            let name = policy.map_or(PolicyName::Other, |policy| policy.value.name());
            let why = match (name, errno) {
                (PolicyName::Deadline, Errno::EBUSY) => {
                    "the deadline tasks of these CPUs have reserved too much for another one like this"
                }
                (PolicyName::Deadline, Errno::EPERM) => {
                    "a deadline task may run on all CPUs of its root domain, and on no others"
                }
                _ => "this kernel does not take these parameters",
            };
            (policy.map(|policy| policy.position), format!("\"{}\"", name.as_str()), why)
        }
        Asked::Clamps => {
            let position = clamps.into_iter().flatten().map(|clamp| clamp.position).min();
            let why = match errno {
                Errno::EINVAL => "the lower clamp would be above the upper one",
                _ => "this kernel has no clamps of a task's utilization (since v5.3)",
            };
            (position, "\"util_min\" and \"util_max\"".to_string(), why)
        }
        Asked::Fork => {
            (None, "\"fork\"".to_string(), "a deadline task may not start others that would be deadline tasks too")
        }
    };
    let position = position.unwrap_or(here);
    Some(Refused { at: sample.at, file: app.file.clone(), position, task: task.name.clone(), request, errno, why })
}
