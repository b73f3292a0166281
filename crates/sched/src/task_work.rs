//! kernel/task_work.c: scheduler work that a task does itself, on its way to user mode.

use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::numa::PageTables;
use crate::sched::TaskId;
use units::CpuId;

/// A scheduler that gives tasks such work. Others need not implement anything.
pub trait TaskWork {
    /// Whether `task` is to call `task_numa_work`.
    fn numa_work_pending(&self, _task: TaskId) -> bool {
        false
    }
    /// The running task unmaps a stretch of its memory for sampling.
    fn task_numa_work(&mut self, _cpu: CpuId, _tables: &mut dyn PageTables) {}
    /// Whether any task has ever been asked to call `throttle_cfs_rq_work`.
    fn throttles_tasks(&self) -> bool {
        false
    }
    /// Whether `task` is to call `throttle_cfs_rq_work`.
    fn throttle_work_pending(&self, _task: TaskId) -> bool {
        false
    }
    /// The running task leaves its queue, if that has used up its quota. Returns whether it did: then it must be
    /// switched away before it reaches user mode.
    fn throttle_cfs_rq_work(&mut self, _cpu: CpuId) -> bool {
        false
    }
}

impl<A: Arch> TaskWork for Sched<A> {
    #[inline]
    fn numa_work_pending(&self, task: TaskId) -> bool {
        self.numa.task(task).is_some_and(|task| task.numa_work)
    }

    fn task_numa_work(&mut self, cpu: CpuId, tables: &mut dyn PageTables) {
        self.on_cpu(cpu);
        Sched::task_numa_work(self, tables);
    }

    #[inline]
    fn throttles_tasks(&self) -> bool {
        self.has_throttled_tasks()
    }

    #[inline]
    fn throttle_work_pending(&self, task: TaskId) -> bool {
        self.task_has_throttle_work(task)
    }

    fn throttle_cfs_rq_work(&mut self, cpu: CpuId) -> bool {
        self.on_cpu(cpu);
        Sched::throttle_cfs_rq_work(self)
    }
}
