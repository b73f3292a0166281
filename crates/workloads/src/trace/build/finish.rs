//! The end of a recording: which wakeups count, which tasks are kept, and their numbers.

use super::{Builder, Building, Doing, Draft, Edge};
use crate::trace::{Replay, Step, Task};
use units::Ns;

impl Builder<'_> {
    pub(super) fn finish(mut self, last: Ns) -> Replay {
        for task in 0..self.tasks.len() {
            match self.tasks[task].doing {
                Doing::Running { cpu, .. } => {
                    let until = self.known_until(cpu, last);
                    self.now(task, until).flush();
                }
                Doing::Asleep { since, io, woken: Some(woken) } => self.wakes(task, since, io, woken),
                _ => self.tasks[task].flush(),
            }
        }
        // A task that never did anything in the recording has no script, and the scheduler's own tasks must not be
        // replayed.
        let kept = |task: &Building| !task.ignored && task.begin.is_some();
        let mut numbers = vec![None; self.tasks.len()];
        let mut next = 0;
        for (task, number) in self.tasks.iter().zip(&mut numbers) {
            if kept(task) {
                *number = Some(next);
                next += 1;
            }
        }
        self.notice.ignored = self.tasks.iter().filter(|task| task.ignored).count() as u64;
        self.notice.deadline =
            self.tasks.iter().filter(|task| kept(task) && task.first_prio == Some(-1)).count() as u64;
        let tasks = self.tasks.iter().filter(|task| kept(task));
        let tasks: Vec<Task> = tasks.map(|task| self.script(task, &numbers)).collect();
        Replay { tasks, end: last - self.first, notice: self.notice }
    }

    /// How long a task that still runs on that CPU is known to run. In a whole recording a CPU without further events went
    /// on with what it did. Of a recording that was cut, CPUs have parts of different lengths.
    fn known_until(&mut self, cpu: u32, last: Ns) -> Ns {
        let newest = self.cpus[cpu as usize].newest;
        if !self.recorded.cut || newest == last {
            return last;
        }
        self.notice.cut += 1;
        self.notice.cut_longest = self.notice.cut_longest.max(last - newest);
        newest
    }

    /// The process of a task with several threads, named by the pid of its first thread.
    fn process(&self, task: &Building) -> Option<u32> {
        let told = self.recorded.processes.get(&task.pid).copied();
        let mut leader = task;
        while let Some(of) = leader.thread_of {
            leader = &self.tasks[of];
        }
        let leads = |pid| self.leaders.contains(&pid);
        told.or_else(|| leads(leader.pid).then_some(leader.pid))
    }

    fn script(&self, task: &Building, numbers: &[Option<u32>]) -> Task {
        let renumbered = |draft: &Draft| match *draft {
            Draft::Wake(edge) => {
                let Edge { to, used, .. } = self.edges[edge];
                numbers[to].filter(|_| used).map(Step::Wake)
            }
            // Its waker has a script: wakeups by tasks without one are not kept.
            Draft::Done(Step::Wait(from)) => numbers[from as usize].map(Step::Wait),
            Draft::Done(Step::Fork(child)) => numbers[child as usize].map(Step::Fork),
            Draft::Done(step) => Some(step),
        };
        let mut steps: Vec<Step> = Vec::new();
        for step in task.steps.iter().filter_map(renumbered) {
            match (steps.last_mut(), step) {
                (Some(Step::Run(before)), Step::Run(more)) => *before = Ns(before.0.saturating_add(more.0)),
                _ => steps.push(step),
            }
        }
        let name = self.recorded.name_of(task.name);
        Task {
            name: if name.is_empty() { format!("pid-{}", task.pid) } else { name.to_string() },
            prio: task.first_prio.unwrap_or(120),
            cpu: task.cpu,
            bound: bound_to(name) == Some(task.cpu),
            kernel: is_kernel_thread(name),
            process: self.process(task),
            begin: task.begin.expect("it is kept"),
            steps,
        }
    }
}

/// The CPU to which a kernel thread's name binds it: `kworker/3:1H`, `ksoftirqd/3`. Unbound workers are named like
/// `kworker/u8:1`.
fn bound_to(name: &str) -> Option<u32> {
    let (kind, number) = name.split_once('/')?;
    let bound = matches!(
        kind,
        "kworker" | "ksoftirqd" | "cpuhp" | "rcuc" | "watchdog" | "irq_work" | "idle_inject" | "ktimers"
    );
    bound.then(|| number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())?
}

fn is_kernel_thread(name: &str) -> bool {
    const NAMES: [&str; 9] =
        ["kthreadd", "rcu_sched", "rcu_preempt", "rcu_bh", "khugepaged", "kcompactd", "kswapd", "kauditd", "ksmd"];
    let begins = |prefix: &str| name.starts_with(prefix);
    bound_to(name).is_some()
        || NAMES.iter().any(|known| begins(known))
        || ["kworker/", "jbd2/", "irq/", "xfsaild/", "rcuop/", "rcuog/", "rcuos/"].iter().any(|prefix| begins(prefix))
}
