//! Requests of a thread that the kernel refuses. rt-app then exits with the error number, and so does the application
//! here.

use super::description::{Application, PolicyName, TaskId};
use super::fault::Position;
use crate::refusal::Asked;
use sched::errno::Errno;
use sched::sched::Policy;
use sim::engine::Sample;
use std::fmt;
use units::Ns;

/// Series of the process itself: a refused request, encoded by [`told`].
pub(super) const SERIES: u32 = 2;

/// The value of [`SERIES`]: 24 bits for the task, 16 for its phase (from 1; 0 is the task's own settings), 8 for the
/// kind of request, and the error number.
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
    /// As the file writes it: `"cpus"`.
    pub request: String,
    pub errno: Errno,
    /// What the kernel checks there, in words.
    pub why: &'static str,
}

impl Refused {
    /// The message's text before and after the time of the refusal.
    pub fn around(&self) -> [String; 2] {
        let Refused { file, position, task, request, errno, why, .. } = self;
        let (name, meaning) = (errno.name(), errno.meaning());
        let place = format!("{file}:{}:{}", position.line, position.column);
        let before = format!("{place}: the kernel refused {request} of \"{task}\" with {name} ({meaning}) at ");
        [before, format!(": {why}; rt-app ends there")]
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = self.around();
        let us = self.at.0 / 1_000;
        write!(f, "{before}{}.{:03} ms{after}", us / 1_000, us % 1_000)
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
    let name = policy.map_or(PolicyName::Other, |policy| policy.value.name());
    let (position, request) = match asked {
        Asked::Cpus => {
            let cpus = phase.and_then(|phase| phase.cpus.as_ref());
            (cpus.map(|cpus| cpus.position), "\"cpus\"".to_string())
        }
        Asked::Policy => (policy.map(|policy| policy.position), format!("\"{}\"", name.as_str())),
        Asked::Clamps => {
            let position = clamps.into_iter().flatten().map(|clamp| clamp.position).min();
            (position, "\"util_min\" and \"util_max\"".to_string())
        }
        Asked::Fork => (None, "\"fork\"".to_string()),
    };
    // Only a deadline task's requests have reasons of their own; all other policies share theirs.
    let why = asked.why(if name == PolicyName::Deadline { Policy::Deadline } else { Policy::Normal }, errno);
    let position = position.unwrap_or(here);
    Some(Refused { at: sample.at, file: app.file.clone(), position, task: task.name.clone(), request, errno, why })
}
