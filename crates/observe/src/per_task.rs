//! What each task did, as exact lists, to compare with traces of real kernels, whose figures are computed in the same
//! way.

use crate::tasks::Tasks;
use sched::sched::{TaskId, TaskState};
use sched::trace::{Event, Sink};
use std::collections::BTreeMap;
use units::{CpuId, Ns, PerCpu};

/// Keeps every slice and every wait while it listens. Memory grows with the number of switches: for short runs.
pub struct PerTask {
    tasks: Tasks,
    /// The task that runs on each CPU, and since when.
    running: PerCpu<Option<(TaskId, Ns)>>,
    /// By task id: whether it is between `sched_waking` and the end of the wakeup, and since when it wants to run.
    waking: Vec<(bool, Option<Ns>)>,
    done: BTreeMap<String, TaskFigures>,
}

/// The figures of all tasks with the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFigures {
    pub wakeups: u64,
    /// Migrations between `sched_waking` and `sched_wakeup`, and all others.
    pub migrations_in_wakeup: u64,
    pub migrations_other: u64,
    /// Time on each CPU that it ran on.
    pub run: BTreeMap<CpuId, Ns>,
    /// Switches away while runnable, and switches to sleep.
    pub involuntary: u64,
    pub voluntary: u64,
    /// Each stay on a CPU, from switch to switch.
    pub slices: Vec<Ns>,
    /// Each time from `sched_waking` (or `sched_wakeup_new`) to the next switch to the task.
    pub wake_latencies: Vec<Ns>,
}

impl PerTask {
    pub fn new(nr_cpus: usize) -> PerTask {
        PerTask {
            tasks: Tasks::new(nr_cpus),
            running: PerCpu::from_fn(nr_cpus, |_| None),
            waking: Vec::new(),
            done: BTreeMap::new(),
        }
    }

    /// The figures by name. A stay on a CPU that has not ended is left out.
    pub fn finish(self) -> BTreeMap<String, TaskFigures> {
        self.done
    }

    fn figures(&mut self, task: TaskId) -> &mut TaskFigures {
        let comm = &self.tasks.who(Some(task), CpuId(0)).comm;
        if !self.done.contains_key(comm) {
            self.done.insert(comm.clone(), TaskFigures::default());
        }
        self.done.get_mut(comm).expect("just put there")
    }

    fn waking(&mut self, task: TaskId) -> &mut (bool, Option<Ns>) {
        if self.waking.len() <= task.index() {
            self.waking.resize(task.index() + 1, (false, None));
        }
        &mut self.waking[task.index()]
    }

    fn switch(&mut self, time: Ns, cpu: CpuId, prev: Option<TaskId>, runnable: bool, next: Option<TaskId>) {
        if let Some(task) = prev {
            let since = self.running[cpu].filter(|(running, _)| *running == task).map(|(_, since)| since);
            let figures = self.figures(task);
            if let Some(since) = since {
                let stay = time - since;
                *figures.run.entry(cpu).or_default() += stay;
                figures.slices.push(stay);
            }
            if runnable {
                figures.involuntary += 1;
            } else {
                figures.voluntary += 1;
            }
        }
        self.running[cpu] = next.map(|task| (task, time));
        if let Some(task) = next
            && let Some(since) = self.waking(task).1.take()
        {
            self.figures(task).wake_latencies.push(time.saturating_sub(since));
        }
    }
}

impl Sink for PerTask {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        match *event {
            Event::SchedWaking { task, .. } => {
                *self.waking(task) = (true, Some(time));
                self.figures(task).wakeups += 1;
            }
            Event::SchedWakeup { task, .. } => self.waking(task).0 = false,
            Event::SchedWakeupNew { task, .. } => *self.waking(task) = (false, Some(time)),
            Event::SchedMigrateTask { task, .. } => {
                let in_wakeup = self.waking(task).0;
                let figures = self.figures(task);
                if in_wakeup {
                    figures.migrations_in_wakeup += 1;
                } else {
                    figures.migrations_other += 1;
                }
            }
            Event::SchedSwitch { prev, prev_state, preempt, next } => {
                self.switch(time, cpu, prev, preempt || prev_state == TaskState::Running, next);
            }
            _ => {}
        }
        self.tasks.passed(cpu, event);
    }

    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        self.tasks.task(task, pid, comm, prio);
    }

    fn task_gone(&mut self, task: TaskId) {
        self.tasks.task_gone(task);
        *self.waking(task) = (false, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_waits_and_moves_are_counted_as_a_trace_shows_them() {
        let mut sink = PerTask::new(2);
        let (a, cpu0, cpu1) = (TaskId(1), CpuId(0), CpuId(1));
        let switch = |prev, prev_state, next| Event::SchedSwitch { prev, prev_state, preempt: false, next };
        sink.task(a, 10, "a", 120);
        sink.event(Ns(100), cpu0, &Event::SchedWakeupNew { task: a, target_cpu: cpu0 });
        sink.event(Ns(150), cpu0, &switch(None, TaskState::Running, Some(a)));
        sink.event(Ns(400), cpu0, &switch(Some(a), TaskState::Interruptible, None));
        sink.event(Ns(500), cpu0, &Event::SchedWaking { task: a, target_cpu: cpu0 });
        sink.event(Ns(510), cpu0, &Event::SchedMigrateTask { task: a, orig_cpu: cpu0, dest_cpu: cpu1 });
        sink.event(Ns(520), cpu1, &Event::SchedWakeup { task: a, target_cpu: cpu1 });
        sink.event(Ns(530), cpu1, &switch(None, TaskState::Running, Some(a)));
        sink.event(Ns(600), cpu1, &switch(Some(a), TaskState::Running, None));
        sink.event(Ns(610), cpu0, &Event::SchedMigrateTask { task: a, orig_cpu: cpu1, dest_cpu: cpu0 });
        let figures = &sink.finish()["a"];
        assert_eq!(figures.wake_latencies, [Ns(50), Ns(30)]);
        assert_eq!(figures.slices, [Ns(250), Ns(70)]);
        assert_eq!((figures.wakeups, figures.voluntary, figures.involuntary), (1, 1, 1));
        assert_eq!((figures.migrations_in_wakeup, figures.migrations_other), (1, 1));
        assert_eq!(figures.run, BTreeMap::from([(cpu0, Ns(250)), (cpu1, Ns(70))]));
    }
}
