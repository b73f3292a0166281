//! core.c: priorities that tasks lend to the holder of a lock they wait for (rt_mutex). The locks know who waits for what, and so
//! who lends: `kernel/locking/rtmutex.c`, outside the scheduler.

use super::Sched;
use crate::arch::Arch;
use crate::sched::*;
use crate::syscalls::{PolicyChange, TaskChange};
use crate::trace::Event;
use units::unlikely;

impl<A: Arch> Sched<A> {
    /// core.c: rt_effective_prio(). `prio`, or the priority lent to `p` if that is higher.
    pub(crate) fn rt_effective_prio(&self, p: TaskId, prio: i32) -> i32 {
        self.__rt_effective_prio(self.task_cold[p].pi_top_task, prio)
    }

    /// core.c: __rt_effective_prio().
    fn __rt_effective_prio(&self, pi_task: Option<TaskId>, prio: i32) -> i32 {
        pi_task.map_or(prio, |pi_task| self.task[pi_task].prio.min(prio))
    }

    /// core.c: rt_mutex_setprio(). `pi_task`, the first of the tasks that wait for a lock held by `p`, lends `p` its priority and
    /// deadline from now on; `None`: no task waits any more.
    ///
    /// Differs: a throttled task whose CPU has gone offline meanwhile is moved before it gets a budget, as when its timer expires
    /// (`dl_task_timer()`); the kernel queues it on the offline CPU, where it waits for the CPU to come back.
    pub fn rt_mutex_setprio(&mut self, p: TaskId, pi_task: Option<TaskId>) {
        let prio = self.__rt_effective_prio(pi_task, self.normal_prio(p));
        let old_prio = self.task[p].prio;
        if prio == old_prio && !dl_prio(prio) {
            self.task_cold[p].pi_top_task = pi_task;
            return;
        }
        let mut cpu = self.task_rq_lock(p);
        if !self.rq[cpu].online && self.is_throttled_dl(p) {
            cpu = self.dl_task_offline_migration(cpu, p);
        }
        self.task_cold[p].pi_top_task = pi_task;
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SchedPiSetprio { task: p, oldprio: old_prio, newprio: prio });
        }
        let old = self.get_prio(cpu, p);
        let prev_class = self.task[p].sched_class;
        let next_class = SchedClass::__setscheduler_class(prio);
        self.check_class_changing(cpu, p, next_class);
        let moves = self.kernel.core.policy_change != PolicyChange::Requeued && (prio != old_prio || dl_prio(prio));
        let leaves = self.leaves_first(prev_class, next_class);
        self.requeue_changed_and(p, TaskChange { moves, put_prev: true, leaves }, |sched| {
            let replenish = sched.lend_deadline(p, pi_task, prio, old_prio);
            sched.task[p].sched_class = next_class;
            sched.task[p].prio = prio;
            if next_class == SchedClass::Rt {
                // A priority may be lent to a sleeping task.
                sched.rt_se.ensure(p);
            }
            replenish
        });
        self.check_class_changed(cpu, p, prev_class, old);
        self.tell_prio(p);
        self.rq_unlock(cpu);
        self.pi_unlock(p);
        self.balance_callbacks(cpu);
    }

    /// Whether the task is runnable, but waits for its next budget.
    fn is_throttled_dl(&self, p: TaskId) -> bool {
        let task = &self.task[p];
        task.sched_class == SchedClass::Dl && task.on_rq == OnRq::Queued && self.dl_se[p].dl_throttled
    }

    /// The part of rt_mutex_setprio() that decides whose deadline `p` has: that of `pi_task` if `p` has none of its own, or a
    /// later one. Returns whether `p` gets a budget of it (ENQUEUE_REPLENISH).
    ///
    /// Differs: a task that gives back a lent deadline starts afresh when it later enters the deadline class itself; in the
    /// kernel it still has the lent deadline, may be throttled for that as it enters, and then runs on uncharged.
    fn lend_deadline(&mut self, p: TaskId, pi_task: Option<TaskId>, prio: i32, old_prio: i32) -> bool {
        if !dl_prio(prio) {
            if dl_prio(old_prio) {
                let entity = &mut self.dl_se[p];
                (entity.pi_se, entity.started) = (None, false);
            }
            return false;
        }
        self.dl_se.ensure(p);
        let lender = pi_task.filter(|&lender| dl_prio(self.task[lender].prio));
        let lender = lender.filter(|&lender| !dl_prio(self.normal_prio(p)) || self.dl_entity_preempt(lender, p));
        self.dl_se[p].pi_se = lender.map(|lender| self.dl_se[lender].pi_se.unwrap_or(lender));
        lender.is_some()
    }

    /// core.c: __setscheduler_dl_pi(). A task that leaves, or was to leave, the deadline class while a deadline is lent to it
    /// takes the lent one. Returns whether it gets a budget of it.
    pub(crate) fn __setscheduler_dl_pi(&mut self, p: TaskId) -> bool {
        let lender = self.task_cold[p].pi_top_task;
        let Some(lender) = lender.filter(|_| dl_prio(self.task[p].prio) && self.task[p].policy != Policy::Deadline)
        else {
            return false;
        };
        self.dl_se[p].pi_se = Some(self.dl_se[lender].pi_se.unwrap_or(lender));
        true
    }
}

/// include/linux/sched/deadline.h: dl_prio().
pub(crate) fn dl_prio(prio: i32) -> bool {
    prio < MAX_DL_PRIO
}
