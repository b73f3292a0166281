//! What the scheduler prefetches from the host's memory before it needs it ([`units::prefetch`]). Nothing here changes any state.
//!
//! What a turn of a CPU touches is linked: the runqueue names the running task and the fair queue, the queue names the task that
//! runs next, and each of these names more. So there are several steps, each of which needs what the previous one has fetched; a
//! run loop calls them some turns apart.

use crate::arch::Arch;
use crate::core::Sched;
use crate::layout::{RqLine, TaskLine};
use crate::sched::TaskId;
use units::{CpuId, MANY_TASKS, prefetch, prefetch_lines, unlikely};

/// A scheduler that can be told what it will have to do next.
pub trait Foresee {
    /// `task` is about to be woken.
    fn foresee_wakeup(&self, task: TaskId);
    /// A turn of `cpu` is coming: fetches its runqueue.
    fn foresee_rq(&self, cpu: CpuId);
    /// With the runqueue fetched: fetches its task, which is returned, and its fair queue.
    fn foresee_curr(&self, cpu: CpuId) -> Option<TaskId>;
    /// With these fetched: fetches the task's entity, and the order of the queue.
    fn foresee_order(&self, cpu: CpuId);
    /// With the order fetched: fetches the first entity in it.
    fn foresee_first(&self, cpu: CpuId);
    /// `cpu` is about to switch: fetches the task that will probably be next.
    fn foresee_next(&self, cpu: CpuId) -> Option<TaskId>;
}

impl<A: Arch> Foresee for Sched<A> {
    #[inline(always)]
    fn foresee_wakeup(&self, task: TaskId) {
        if self.task.len() > MANY_TASKS {
            self.foresee_task(task);
        }
    }

    #[inline(always)]
    fn foresee_rq(&self, cpu: CpuId) {
        let rq = &self.rq[cpu];
        prefetch_lines::<1, _>(&rq.curr);
        prefetch_lines::<1, _>(&rq.nr_switches);
        prefetch_lines::<1, _>(&rq.cfs_tasks);
        self.arch.foresee_lines::<12>(self.layout.rq(cpu, RqLine::Lock));
        self.arch.foresee_cpu(cpu);
    }

    #[inline(always)]
    fn foresee_curr(&self, cpu: CpuId) -> Option<TaskId> {
        let rq = &self.rq[cpu];
        let cfs_rq = &self.cfs_rq[rq.cfs];
        prefetch_lines::<1, _>(&cfs_rq.rq);
        prefetch_lines::<1, _>(&cfs_rq.tasks_timeline);
        prefetch(&cfs_rq.avg);
        let curr = rq.curr?;
        self.foresee_task(curr);
        Some(curr)
    }

    #[inline(always)]
    fn foresee_order(&self, cpu: CpuId) {
        let rq = &self.rq[cpu];
        self.cfs_rq[rq.cfs].tasks_timeline.foresee();
        if let Some(curr) = rq.curr {
            self.foresee_entity(curr);
        }
    }

    #[inline(always)]
    fn foresee_first(&self, cpu: CpuId) {
        if let Some(first) = self.cfs_rq[self.rq[cpu].cfs].tasks_timeline.leftmost() {
            prefetch(&self.se[first]);
        }
    }

    #[inline(always)]
    fn foresee_next(&self, cpu: CpuId) -> Option<TaskId> {
        let first = self.cfs_rq[self.rq[cpu].cfs].tasks_timeline.leftmost()?;
        let next = self.se[first].task?;
        self.foresee_task(next);
        Some(next)
    }
}

impl<A: Arch> Sched<A> {
    /// Fetches a task's part of the arenas that its number leads to.
    #[inline(never)]
    fn foresee_task(&self, p: TaskId) {
        prefetch(&self.task[p]);
        self.arch.foresee_lines::<12>(self.layout.task(p, TaskLine::State));
        self.arch.foresee_task(p);
    }

    /// Fetches what the task's own structures lead to.
    #[inline(always)]
    pub(crate) fn foresee_entity(&self, p: TaskId) {
        prefetch(&self.se[self.task[p].se]);
    }

    /// A wakeup has reached its task: fetches where that was.
    #[inline(always)]
    pub(crate) fn foresee_woken(&self, p: TaskId) {
        if unlikely(self.task.len() > MANY_TASKS) {
            self.foresee_entity(p);
            let cpu = self.task[p].cpu;
            let rq = &self.rq[cpu];
            prefetch_lines::<1, _>(&rq.curr);
            prefetch_lines::<1, _>(&rq.cpu_capacity);
            self.arch.foresee_lines::<4>(self.layout.rq(cpu, RqLine::Lock));
        }
    }
}
