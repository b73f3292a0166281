//! A script's tasks as programs, and a script as a workload.

use super::{Script, Shared, Step, Task};
use crate::Instance;
use crate::groups::{GroupSpec, with_those_above};
use crate::refusal::Asked;
use os::Os;
use os::sync::SyncOp;
use sched::attr::SchedAttr;
use sched::errno::Errno;
use sched::sched::{ROOT_TASK_GROUP, TgId};
use sched::versions::Kernel;
use sim::engine::Sample;
use sim::program::{Op, Outcome, Program, Standing, TaskSpec};
use std::sync::Arc;
use units::Ns;

/// The time between a spinning task's looks at the clock.
const LOOK: Ns = Ns::from_ms(1);
/// How many spins that end in the past are passed at once: an event of the engine is worth a few.
const MOST_PAST: u32 = 16;

/// A task's progress through its steps.
pub struct Playing {
    series: u32,
    steps: Arc<[Step]>,
    places: Arc<[(u32, u32)]>,
    shared: Shared,
    at: usize,
    /// For each step that ends a loop, how often the loop has run.
    rounds: Vec<u32>,
    born: Option<Ns>,
    /// When its last period ended.
    period: Ns,
    reported: bool,
    /// Its nice level, which a policy keeps, as chrt does.
    nice: i32,
    /// The last operation may have been refused, so its result must be checked.
    answer_counts: bool,
}

impl Playing {
    pub(super) fn new(series: u32, task: &Task, shared: Shared) -> Playing {
        let rounds = vec![0; task.steps.len()];
        Playing {
            series,
            steps: task.steps.clone(),
            places: task.places.clone(),
            shared,
            at: 0,
            rounds,
            born: None,
            period: Ns::ZERO,
            reported: false,
            nice: task.attr.sched_nice,
            answer_counts: false,
        }
    }

    /// What a step asks the kernel or the machine for.
    fn operation(&mut self, step: Step) -> Op {
        match step {
            Step::Run(time) => Op::RunFor(time),
            Step::Work(time) => Op::WorkFor(time),
            Step::Sleep(time) => Op::SleepFor(time),
            Step::Io(time) => Op::BlockIo(time),
            Step::Until(time) => {
                self.period = self.shared.start + time;
                Op::SleepUntil(self.period)
            }
            Step::Every(time) => {
                self.period += time;
                Op::SleepUntil(self.period)
            }
            Step::Yield => Op::Yield,
            Step::CondResched => Op::CondResched,
            Step::MightSleep => Op::MightSleep,
            Step::Attr(attr) => {
                self.answer_counts = true;
                Op::SetAttr(Box::new(self.asked_of(attr)))
            }
            Step::Nice(nice) => {
                self.nice = nice;
                Op::SetNice(nice)
            }
            Step::Cpus(place) => {
                self.answer_counts = true;
                Op::SetAffinity(self.shared.affinities[place as usize].clone())
            }
            Step::Setsid => Op::Setsid,
            Step::Exec => Op::Exec,
            Step::Autogroup(nice) => Op::SetAutogroupNice(nice),
            Step::Enter(place) => {
                Op::MoveToGroup(place.map_or(ROOT_TASK_GROUP, |place| self.shared.groups[place as usize]))
            }
            Step::Touch { region, rate } => {
                Op::Touch { region: self.shared.regions[region as usize], bytes_per_second: rate }
            }
            Step::Lock(place) => Op::Sync(SyncOp::Lock(self.shared.mutexes[place as usize])),
            Step::Unlock(place) => Op::Sync(SyncOp::Unlock(self.shared.mutexes[place as usize])),
            Step::Read(pipe) => Op::Read { pipe: self.shared.pipes[pipe as usize], bytes: 1 },
            Step::Write(pipe) => Op::Write { pipe: self.shared.pipes[pipe as usize], bytes: 1 },
            Step::Spin(_) | Step::Again { .. } => unreachable!("handled above"),
        }
    }

    /// What a step asks sched_setattr() for.
    fn asked_of(&self, attr: SchedAttr) -> SchedAttr {
        let of_policy = !attr.sched_flags.keep_all && attr.sched_policy.fair_policy();
        if of_policy { SchedAttr { sched_nice: self.nice, ..attr } } else { attr }
    }

    /// The next step that is an operation; loops are followed on the way.
    fn step(&mut self) -> Option<Step> {
        loop {
            let step = *self.steps.get(self.at)?;
            let Step::Again { to, times } = step else { return Some(step) };
            self.rounds[self.at] += 1;
            if self.rounds[self.at] < times {
                self.at = to as usize;
            } else {
                self.rounds[self.at] = 0;
                self.at += 1;
            }
        }
    }
}

impl Program for Playing {
    /// Each task reports its lifetime, from its first step to its last, in nanoseconds.
    fn next(&mut self, last: Outcome) -> Op {
        let born = *self.born.get_or_insert_with(|| {
            self.period = last.now;
            last.now
        });
        let answer = last.value.cast_signed();
        if std::mem::replace(&mut self.answer_counts, false) && answer < 0 {
            // The request was refused; a task cannot go on without what it asked for.
            let step = self.at - 1;
            self.at = self.steps.len();
            return Op::Report { series: self.shared.nr_tasks + self.series, value: refusal(answer, Some(step)) };
        }
        let mut past = 0;
        let step = loop {
            match self.step() {
                Some(Step::Spin(until)) => {
                    let left = (self.shared.start + until).saturating_sub(last.now);
                    // Who has to look at something else shall not wait for the last of a thousand million.
                    if left > Ns::ZERO || past == MOST_PAST {
                        return Op::RunFor(left.min(LOOK));
                    }
                    past += 1;
                    self.at += 1;
                }
                Some(step) => break step,
                None if std::mem::replace(&mut self.reported, true) => return Op::Exit,
                None => return Op::Report { series: self.series, value: (last.now - born).0 },
            }
        };
        self.at += 1;
        self.operation(step)
    }

    /// `at` is already past the step under way. Only these steps can wait for ever.
    fn stands(&self) -> Option<Standing> {
        let at = self.at.checked_sub(1)?;
        let names = &self.shared.names;
        let (word, name) = match *self.steps.get(at)? {
            Step::Read(pipe) => ("read", &names.pipes[pipe as usize]),
            Step::Write(pipe) => ("write", &names.pipes[pipe as usize]),
            Step::Lock(mutex) => ("lock", &names.mutexes[mutex as usize]),
            _ => return None,
        };
        let (line, column) = self.places[at];
        let task = names.tasks[self.series as usize].clone();
        Some(Standing { task, step: format!("`{word} {name}`"), line, column })
    }
}

/// The process that forks the script's tasks, each at its time, and waits for them.
struct Main {
    script: Script,
    shared: Shared,
    /// Numbers of the tasks that are still to be forked, in reverse order.
    order: Vec<usize>,
    start: Option<Ns>,
    waited: bool,
    /// The task that was just forked, or whose fork was refused.
    forked: Option<usize>,
}

impl Program for Main {
    fn next(&mut self, last: Outcome) -> Op {
        let start = *self.start.get_or_insert(last.now);
        let answer = last.value.cast_signed();
        if let Some(number) = self.forked.take().filter(|_| answer < 0) {
            return Op::Report { series: (self.script.tasks.len() + number) as u32, value: refusal(answer, None) };
        }
        let Some(&number) = self.order.last() else {
            // wait4() returns 0 once no child is left.
            return if std::mem::replace(&mut self.waited, true) && last.value == 0 { Op::Exit } else { Op::Wait };
        };
        let task = &self.script.tasks[number];
        if start + task.at > last.now {
            return Op::SleepUntil(start + task.at);
        }
        self.order.pop();
        self.forked = Some(number);
        self.shared.start = start;
        let group = task.group.as_deref().map(|path| self.script.group_id(path, &self.shared.groups));
        Op::Fork(Box::new(task.spec(number, group, &self.shared)))
    }
}

/// The report of a refused request: the error number, and above it the step, from 1. Each task has a series of its own
/// for it; these follow the series of the lifetimes.
fn refusal(answer: i64, step: Option<usize>) -> u64 {
    step.map_or(0, |step| step as u64 + 1) << 32 | answer.unsigned_abs()
}

/// A request of a script's task that the kernel refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    pub task: usize,
    pub at: Ns,
    /// `None`: the task could not begin with its attributes, so it never lived.
    pub step: Option<usize>,
    /// The user's word for it: "policy".
    pub request: &'static str,
    pub errno: Errno,
    /// What the kernel checks there, in words.
    pub why: &'static str,
}

impl Task {
    /// The request that may have been refused at this step, with its attributes. `None` stands for what the task should
    /// begin with: its policy, or else its CPUs.
    fn asked(&self, step: Option<usize>) -> (Asked, SchedAttr) {
        match step.map(|step| self.steps[step]) {
            Some(Step::Attr(attr)) => (Asked::of_attr(&attr), attr),
            None if !self.attr.sched_policy.fair_policy() => (Asked::Policy, self.attr),
            _ => (Asked::Cpus, self.attr),
        }
    }
}

impl Script {
    /// What the kernel refused of each task, in the order of time. A task does not go on after a refusal.
    pub fn refused<'a>(&'a self, kernel: &'a Kernel, reported: &'a [Sample]) -> impl Iterator<Item = Refused> + 'a {
        reported.iter().filter_map(|sample| {
            let task = (sample.series as usize).checked_sub(self.tasks.len())?;
            let step = (sample.value >> 32).checked_sub(1).map(|step| step as usize);
            let errno =
                Errno::of_answer(-((sample.value & 0xffff_ffff) as i64)).expect("the kernel's answers are known");
            let (asked, attr) = self.tasks[task].asked(step);
            let request = match asked {
                Asked::Cpus => "CPUs",
                Asked::Policy => "policy",
                Asked::Clamps => "clamps",
                Asked::Fork => unreachable!("scripts' tasks fork nobody"),
            };
            Some(Refused { task, at: sample.at, step, request, errno, why: asked.why_of(kernel, &attr, errno) })
        })
    }

    /// The id of the group at that path; `groups` are the ids of [`Script::groups`].
    pub fn group_id(&self, path: &str, groups: &[TgId]) -> TgId {
        self.groups.iter().position(|group| group.path == path).map_or(ROOT_TASK_GROUP, |at| groups[at])
    }
}

/// One process forks the tasks in the order of their times, then of the text; it ignores `on=`. Each task reports its
/// lifetime in nanoseconds.
impl Instance for Script {
    fn groups(&self) -> Vec<GroupSpec> {
        with_those_above(self.group_specs())
    }

    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        self.start_in(os, &[])
    }

    fn start_in(&self, os: &mut Os, groups: &[TgId]) -> Vec<TaskSpec> {
        // These include ancestors that the script does not name.
        let specs = Instance::groups(self);
        let id = |path: &str| specs.iter().position(|spec| spec.path == path).expect("every group was asked for");
        let groups = self.groups.iter().map(|group| groups[id(&group.path)]).collect();
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        order.sort_by_key(|&number| self.tasks[number].at);
        order.reverse();
        let main = Main {
            // Times count from Main's own first step.
            shared: self.share(os, groups, Ns::ZERO),
            order,
            start: None,
            waited: false,
            forked: None,
            script: self.clone(),
        };
        vec![TaskSpec::new("script", main)]
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        let lives = reported.iter().filter(|sample| (sample.series as usize) < self.tasks.len());
        lives.map(|sample| sample.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_keeps_the_nice_level_and_clamps_ask_for_none() {
        let text = "task a nice=5: policy batch; nice -3; clamp 100 none; policy fifo/3; 2 x (policy normal; nice 7)";
        let script = Script::parse(text, 1).unwrap();
        let mut os = Os::new(os::OsRules::V6_1, 250);
        let shared = script.share(&mut os, Vec::new(), Ns::ZERO);
        let mut playing = Playing::new(0, &script.tasks[0], shared);
        let levels = std::iter::from_fn(|| match playing.next(Outcome { value: 0, now: Ns::ZERO }) {
            Op::SetAttr(attr) => Some(format!("{:?} {}", attr.sched_policy, attr.sched_nice)),
            Op::SetNice(nice) => Some(format!("nice {nice}")),
            _ => None,
        });
        let clamps = SchedAttr::clamps(sched::attr::ClampRequest::Keep, sched::attr::ClampRequest::Keep).sched_policy;
        let clamps = format!("{clamps:?} 0");
        let expected = ["Batch 5", "nice -3", &clamps, "Fifo 0", "Normal -3", "nice 7", "Normal 7", "nice 7"];
        assert_eq!(levels.collect::<Vec<_>>(), expected);
    }
}
