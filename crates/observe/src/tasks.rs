//! The task behind each id, and the task that runs on each CPU: what every listener must remember of the stream.

use sched::sched::{DEFAULT_PRIO, TaskId};
use sched::trace::Event;
use units::{CpuId, PerCpu};

/// TASK_COMM_LEN without its final NUL.
const COMM_BYTES: usize = 15;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub pid: u32,
    pub comm: String,
    pub prio: i32,
}

#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    /// By task id.
    known: Vec<Option<Who>>,
    /// `swapper/N`, pid 0.
    idle: PerCpu<Who>,
    running: PerCpu<Option<TaskId>>,
}

impl Tasks {
    /// Every CPU is idle until its first switch.
    pub fn new(nr_cpus: usize) -> Tasks {
        let swapper = |cpu: CpuId| Who { pid: 0, comm: format!("swapper/{cpu}"), prio: DEFAULT_PRIO };
        Tasks {
            known: Vec::new(),
            idle: PerCpu::from_fn(nr_cpus, swapper),
            running: PerCpu::from_fn(nr_cpus, |_| None),
        }
    }

    pub fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        if task.index() >= self.known.len() {
            self.known.resize(task.index() + 1, None);
        }
        self.known[task.index()] = Some(Who { pid, comm: cut_comm(comm).to_string(), prio });
    }

    pub fn task_gone(&mut self, task: TaskId) {
        if let Some(known) = self.known.get_mut(task.index()) {
            *known = None;
        }
    }

    /// Must be called with every event after the event has been used, because an event happens in the context of the
    /// task that ran before it.
    pub fn passed(&mut self, cpu: CpuId, event: &Event) {
        if let Event::SchedSwitch { next, .. } = event {
            self.running[cpu] = *next;
        }
    }

    /// `None` is the idle task of `cpu`.
    pub fn who(&self, task: Option<TaskId>, cpu: CpuId) -> &Who {
        match task {
            None => &self.idle[cpu],
            Some(task) => match self.known.get(task.index()) {
                Some(Some(who)) => who,
                _ => panic!("an event mentions {task:?}, which was never announced or is gone"),
            },
        }
    }

    pub fn running(&self, cpu: CpuId) -> Option<TaskId> {
        self.running[cpu]
    }

    pub fn nr_cpus(&self) -> usize {
        self.idle.len()
    }

    /// Living tasks in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &Who)> {
        self.known.iter().enumerate().filter_map(|(id, who)| Some((TaskId(id as u32), who.as_ref()?)))
    }
}

/// What fits in `task_struct.comm`.
pub(crate) fn cut_comm(comm: &str) -> &str {
    &comm[..comm.floor_char_boundary(COMM_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::sched::TaskState;

    #[test]
    fn ids_are_used_again_and_names_are_cut_as_the_kernel_cuts_them() {
        let mut tasks = Tasks::new(2);
        tasks.task(TaskId(3), 40, "a-name-of-more-than-16", 120);
        assert_eq!(tasks.who(Some(TaskId(3)), CpuId(0)).comm, "a-name-of-more-");
        tasks.task_gone(TaskId(3));
        tasks.task(TaskId(3), 41, "next", 100);
        assert_eq!(tasks.who(Some(TaskId(3)), CpuId(0)), &Who { pid: 41, comm: "next".into(), prio: 100 });
        assert_eq!(tasks.who(None, CpuId(1)).comm, "swapper/1");
        assert_eq!(tasks.iter().map(|(id, who)| (id.0, who.pid)).collect::<Vec<_>>(), [(3, 41)]);
    }

    #[test]
    fn a_switch_says_who_runs() {
        let mut tasks = Tasks::new(1);
        let next = Some(TaskId(1));
        tasks
            .passed(CpuId(0), &Event::SchedSwitch { prev: None, prev_state: TaskState::Running, preempt: false, next });
        assert_eq!(tasks.running(CpuId(0)), next);
    }
}
