//! kernel/fork.c and kernel/exit.c: parents, children, and parents' waiting for them.

use crate::wait::WaitQueue;
use crate::{Os, Step, charge, paths, preempt_enable};
use sched::access::Path;
use sched::arch::Arch;
use sched::layout::{Line, Region};
use sched::sched::{TaskId, WakeFlags};
use sched::scheduler::Scheduler;
use sched::trace::Event;
use std::collections::BTreeMap;
use units::CpuId;

/// A process, as its relatives see it.
#[derive(Clone, Debug)]
struct Process {
    parent: Option<TaskId>,
    children: u32,
    /// Dead children for which it has not waited.
    zombies: u32,
    wait_chldexit: WaitQueue,
    /// `vfork_done`: the parent that waits until this process executes another program or exits.
    vfork_done: Option<TaskId>,
}

/// How a new task relates to the task that creates it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// A process or a thread, for whose end its parent may wait.
    Child,
    /// A process that shares its parent's memory until it executes another program or exits; the parent waits for that
    /// (`CLONE_VFORK`).
    Vfork,
}

/// The process tree, by task number.
#[derive(Clone, Debug)]
pub struct Processes {
    processes: Vec<Option<Process>>,
    /// The line of each task number's wait queue: a new process reuses the memory of the last one with its number.
    lines: Vec<Line>,
    /// Completions for which parents wait in vfork(): the child, and the parent asleep there.
    vforks: Vec<(TaskId, WaitQueue)>,
    /// The lines of these completions, on the stack of each task number that has called vfork().
    stacks: BTreeMap<TaskId, Line>,
    pub(crate) tasklist_lock: Line,
}

impl Default for Processes {
    fn default() -> Processes {
        let tasklist_lock = Line { region: Region::Os, index: 0 };
        let (vforks, stacks) = (Vec::new(), BTreeMap::new());
        Processes { processes: Vec::new(), lines: Vec::new(), vforks, stacks, tasklist_lock }
    }
}

impl Processes {
    fn get(&mut self, task: TaskId) -> &mut Process {
        self.processes[task.index()].as_mut().expect("every task the kernel started is in the process tree")
    }

    /// kernel/exit.c: forget_original_parent(): orphans go to init, which does not wait for them here. Their parent's
    /// number may be reused.
    fn forget_original_parent(&mut self, father: TaskId) {
        for process in self.processes.iter_mut().flatten().filter(|p| p.parent == Some(father)) {
            process.parent = None;
        }
    }
}

impl Os {
    /// kernel/fork.c: copy_process(), the part about relatives. `work`: the path to be charged, if it is not paid yet.
    pub fn fork<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        parent: Option<TaskId>,
        (child, relation): (TaskId, Relation),
        work: Option<Path>,
    ) {
        self.memory_counted(cpu);
        if let Some(parent) = parent {
            if let Some(work) = work {
                charge(sched, cpu, work);
            }
            sched.arch_mut().lock(cpu, self.processes.tasklist_lock);
            self.processes.get(parent).children += 1;
            sched.arch_mut().unlock(cpu, self.processes.tasklist_lock);
        }
        while self.processes.processes.len() <= child.index() {
            let line = self.allocate_named(&["process: wait_chldexit"]);
            self.processes.lines.push(line);
            self.processes.processes.push(None);
        }
        let wait_chldexit = WaitQueue::new(self.processes.lines[child.index()]);
        let vfork_done = parent.filter(|_| relation == Relation::Vfork);
        if let Some(parent) = vfork_done {
            let line = match self.processes.stacks.get(&parent) {
                Some(&line) => line,
                None => self.allocate_named(&["vfork(): completion"]),
            };
            self.processes.stacks.insert(parent, line);
            self.processes.vforks.push((child, WaitQueue::new(line)));
        }
        self.processes.processes[child.index()] =
            Some(Process { parent, children: 0, zombies: 0, wait_chldexit, vfork_done });
    }

    /// kernel/fork.c: wait_for_vfork_done(), which only a fatal signal ends. The outcome is the child's number.
    pub(crate) fn wait_for_vfork_done<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        child: TaskId,
    ) -> Step {
        let line = self.processes.stacks[&task];
        match self.processes.vforks.iter_mut().find(|(of, _)| *of == child) {
            Some((_, completion)) => {
                completion.prepare_uninterruptible(sched, cpu, task, true);
                Step::Sleep
            }
            None => {
                // do_wait_for_common(), which looks again under the lock.
                sched.arch_mut().lock(cpu, line);
                sched.arch_mut().unlock(cpu, line);
                Step::Done(child.0.into())
            }
        }
    }

    /// kernel/fork.c: mm_release(), for a task that executes another program or exits: complete_vfork_done(), whose
    /// wakeup has no sync hint.
    ///
    /// Differs: a task that joins a thread is woken here like a parent, not by its futex.
    pub fn mm_release<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) {
        self.memory_counted(cpu);
        if self.processes.get(task).vfork_done.take().is_some() {
            let at = self.processes.vforks.iter().position(|(of, _)| *of == task).expect("it was begun");
            let (_, mut completion) = self.processes.vforks.swap_remove(at);
            completion.wake_up(sched, cpu, WakeFlags::NONE, 1);
        }
    }

    /// kernel/exit.c: do_exit() up to the end of exit_notify(): the running task becomes a zombie, and its parent is
    /// woken if it waits. `work`: the path to be charged, if it is not paid yet. Returns whether the task is preempted
    /// now; only the scheduler's do_exit() remains to be done.
    ///
    /// Differs: that a task which leaves its session's group makes its CPU choose again (`sched_move_task()`) preempts it here after
    /// its parent is told, not before. v6.18 and later trace `sched_process_exit` before `mm_release()`, here all do after it.
    pub fn exit_notify<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, work: Option<Path>) -> bool {
        if let Some(work) = work {
            charge(sched, cpu, work);
        }
        sched.exit_signals(cpu);
        self.futex_exit_release(sched, cpu, task);
        self.mm_release(sched, cpu, task);
        sched.leave_session(cpu);
        sched.arch_mut().lock(cpu, self.processes.tasklist_lock);
        let process = self.processes.processes[task.index()].take().expect("a task exits once");
        if let Some(parent) = process.parent
            && let Some(Some(family)) = self.processes.processes.get_mut(parent.index())
        {
            family.children -= 1;
            family.zombies += 1;
            family.wait_chldexit.wake_up(sched, cpu, WakeFlags::SYNC, 1);
        }
        if process.children > 0 {
            self.processes.forget_original_parent(task);
        }
        sched.arch_mut().unlock(cpu, self.processes.tasklist_lock);
        preempt_enable(sched, cpu, self.rules)
    }

    /// kernel/exit.c: do_wait(): collects one dead child, or sleeps until there is one. Returns 0 when no children are
    /// left.
    pub(crate) fn wait4<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, queued: &mut bool) -> Step {
        charge(sched, cpu, paths::SYS_WAIT4);
        if !*queued && sched.arch().tracing() {
            // No program here waits for one particular child.
            sched.arch_mut().trace(cpu, &Event::SchedProcessWait { child: None });
        }
        let tasklist_lock = self.processes.tasklist_lock;
        let process = self.processes.get(task);
        if process.zombies > 0 {
            process.zombies -= 1;
            if *queued {
                process.wait_chldexit.finish_wait(sched, cpu, task);
            }
            charge(sched, cpu, paths::RELEASE_TASK);
            sched.arch_mut().lock(cpu, tasklist_lock);
            sched.arch_mut().unlock(cpu, tasklist_lock);
            return Step::Done(1);
        }
        if process.children == 0 {
            return Step::Done(0);
        }
        *queued = true;
        process.wait_chldexit.prepare_to_wait(sched, cpu, task, false);
        Step::Sleep
    }
}
