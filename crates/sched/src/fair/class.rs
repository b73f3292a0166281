//! fair.c: what becomes of a task that comes from another class, goes to one, or changes its nice level.

use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::*;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// fair.c: switched_from_fair(). Its load stays behind.
    pub(crate) fn switched_from_fair(&mut self, p: TaskId) {
        self.detach_task_cfs_rq(p);
    }

    /// fair.c: switched_to_fair().
    pub(crate) fn switched_to_fair(&mut self, cpu: CpuId, p: TaskId) {
        self.attach_task_cfs_rq(p);
        if self.task[p].on_rq != OnRq::Queued {
            return;
        }
        // It may have been more than what it is now.
        if self.rq[cpu].curr == Some(p) {
            self.resched_curr(cpu);
        } else {
            self.check_preempt_curr(cpu, p, WakeFlags::NONE);
        }
    }
}
