//! Fields that have a cache line of their own in some layouts and share one with other fields in others.

use crate::arch::Arch;
use crate::core::Sched;
use crate::layout::{CfsRqLine, TaskLine};
use crate::sched::{CfsRqId, TaskId};
use units::{CpuId, unlikely};

impl<A: Arch> Sched<A> {
    /// Looks at `runnable_load_avg` of a CPU's root queue, which is `weighted_cpuload()`.
    #[inline]
    pub(crate) fn read_rq_runnable(&mut self, cpu: CpuId) {
        self.read(self.layout.rq_runnable(cpu));
    }

    /// Looks at `wakee_flips`, `last_wakee`, `recent_used_cpu`.
    #[inline]
    pub(crate) fn read_task_wakees(&mut self, p: TaskId) {
        self.read(self.layout.task(p, TaskLine::Wakees));
    }

    /// Changes one of the waker fields.
    #[inline]
    pub(crate) fn write_task_wakees(&mut self, p: TaskId) {
        self.write(self.layout.task(p, TaskLine::Wakees));
    }

    /// Looks at `on_rq` (until v7.2 with `wake_cpu` beside it) after [`Self::read_task`], if it lies on another line
    /// than `state`.
    #[inline]
    pub(crate) fn read_task_on_rq_apart(&mut self, p: TaskId) {
        if let Some(line) = self.layout.on_rq_apart(p) {
            self.read(line);
        }
    }

    /// Changes `on_rq`, if it lies on another line than `state`.
    #[inline]
    pub(crate) fn write_task_on_rq_apart(&mut self, p: TaskId) {
        if let Some(line) = self.layout.on_rq_apart(p) {
            self.write(line);
        }
    }

    /// Changes `runnable_load_*` and what lies behind it, if that is another line than [`Self::write_cfs_avg`]'s.
    #[inline]
    pub(crate) fn write_cfs_runnable_apart(&mut self, cfs_rq: CfsRqId) {
        if unlikely(self.layout.runnable_is_apart()) {
            self.write(self.cfs_line(cfs_rq, CfsRqLine::Contrib));
        }
    }
}
