//! core.c: priorities that are lent to who holds what others wait for (rt_mutex). Who waits for what, and so who lends, is the locks'
//! business: `kernel/locking/rtmutex.c`, outside of the scheduler.

use super::Sched;
use crate::arch::Arch;
use crate::sched::*;
use crate::syscalls::{PolicyChange, TaskChange};
use crate::trace::Event;

impl<A: Arch> Sched<A> {
    /// core.c: rt_effective_prio(). `prio`, or what is lent to `p` if that is more.
    pub(crate) fn rt_effective_prio(&self, p: TaskId, prio: i32) -> i32 {
        self.__rt_effective_prio(self.task_cold[p].pi_top_task, prio)
    }

    /// core.c: __rt_effective_prio().
    ///
    /// Differs: a deadline task lends nothing: its deadline would have to go with its priority.
    fn __rt_effective_prio(&self, pi_task: Option<TaskId>, prio: i32) -> i32 {
        let lent = pi_task.map_or(prio, |pi_task| self.task[pi_task].prio);
        if lent < MAX_DL_PRIO { prio } else { lent.min(prio) }
    }

    /// core.c: rt_mutex_setprio(). `pi_task`, the first of those who wait for what `p` holds, lends its priority from now on; `None`:
    /// nobody does any more.
    ///
    /// Differs: see __rt_effective_prio(); so deadlines are never boosted.
    pub fn rt_mutex_setprio(&mut self, p: TaskId, pi_task: Option<TaskId>) {
        let prio = self.__rt_effective_prio(pi_task, self.normal_prio(p));
        let old_prio = self.task[p].prio;
        if prio == old_prio || prio < MAX_DL_PRIO {
            self.task_cold[p].pi_top_task = pi_task;
            return;
        }
        let cpu = self.task_rq_lock(p);
        self.task_cold[p].pi_top_task = pi_task;
        if self.arch.tracing() {
            self.trace(Event::SchedPiSetprio { task: p, oldprio: old_prio, newprio: prio });
        }
        let prev_class = self.task[p].sched_class;
        let next_class = SchedClass::__setscheduler_class(prio);
        self.check_class_changing(cpu, p, next_class);
        let moves = self.kernel.core.policy_change != PolicyChange::Requeued;
        self.requeue_changed(p, TaskChange { moves, put_prev: true }, |sched| {
            sched.task[p].sched_class = next_class;
            sched.task[p].prio = prio;
            if next_class == SchedClass::Rt {
                // It may be lent that while it sleeps.
                sched.rt_se.ensure(p);
            }
        });
        self.check_class_changed(cpu, p, prev_class, old_prio);
        self.tell_prio(p);
        self.rq_unlock(cpu);
        self.pi_unlock(p);
        self.balance_callbacks(cpu);
    }
}
