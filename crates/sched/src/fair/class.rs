//! fair.c: what happens to a task that enters or leaves the fair class, or changes its nice level.

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
        // Its priority may have been higher before.
        if self.rq[cpu].curr == Some(p) {
            self.resched_curr(cpu);
        } else {
            self.check_preempt_curr(cpu, p, WakeFlags::NONE);
        }
    }
}
