//! sched.h: struct sched_class: which class's function answers. The one place that knows all classes; whoever needs something of
//! a task's class calls these. A class that has no such method does nothing.

use super::Sched;
use crate::arch::Arch;
use crate::sched::*;
use crate::topology::SdFlags;
use fentry::fentry;
use units::CpuId;

impl SchedClass {
    /// core.c: __setscheduler_class(), for a task whose priority nobody boosts.
    #[inline]
    pub(crate) fn of(policy: Policy) -> SchedClass {
        match policy {
            Policy::Stop => SchedClass::Stop,
            Policy::Normal | Policy::Batch | Policy::Idle => SchedClass::Fair,
        }
    }
}

impl<A: Arch> Sched<A> {
    /// The class of what runs on `cpu`.
    #[inline]
    pub(crate) fn curr_class(&self, cpu: CpuId) -> SchedClass {
        self.rq[cpu].curr.map_or(SchedClass::Idle, |curr| self.task[curr].sched_class)
    }

    /// `p->sched_class->enqueue_task()`
    #[inline]
    pub(super) fn class_enqueue_task(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.enqueue_task_fair(cpu, p, flags),
            SchedClass::Stop => self.enqueue_task_stop(cpu, p),
            SchedClass::Idle => unreachable!("the idle task is on no queue"),
        }
    }

    /// `p->sched_class->dequeue_task()`
    #[inline]
    pub(super) fn class_dequeue_task(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) -> bool {
        match self.task[p].sched_class {
            SchedClass::Fair => self.dequeue_task_fair(cpu, p, flags),
            SchedClass::Stop => {
                self.dequeue_task_stop(cpu);
                true
            }
            SchedClass::Idle => unreachable!("the idle task is on no queue"),
        }
    }

    /// `rq->curr->sched_class->yield_task()`
    #[inline]
    pub(super) fn yield_task(&mut self, cpu: CpuId) {
        match self.curr_class(cpu) {
            SchedClass::Fair => self.yield_task_fair(cpu),
            SchedClass::Stop | SchedClass::Idle => unreachable!("a stopper never yields, nor does the idle task"),
        }
    }

    /// `rq->curr->sched_class->check_preempt_curr()`: a task of the class that runs came to its queue.
    #[inline]
    pub(super) fn class_check_preempt_curr(&mut self, cpu: CpuId, p: TaskId, flags: WakeFlags) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.check_preempt_wakeup_fair(cpu, p, flags),
            // Nothing stands above a stopper.
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// core.c: pick_next_task(). When nothing but fair tasks is here, their class is asked first.
    #[fentry]
    pub(super) fn pick_next_task(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        loop {
            if !self.only_fair_tasks(cpu)
                && let Some(p) = self.pick_next_task_above_fair(cpu, prev)
            {
                return Some(p);
            }
            if let Some(p) = self.pick_next_task_fair(cpu, prev) {
                return Some(p);
            }
            // New-idle balancing drops the lock: a task of a higher class may have come meanwhile (RETRY_TASK).
            if self.only_fair_tasks(cpu) {
                return self.pick_next_task_idle(cpu, prev);
            }
        }
    }

    #[inline]
    fn only_fair_tasks(&self, cpu: CpuId) -> bool {
        self.rq[cpu].nr_running == self.cfs_rq[self.rq[cpu].cfs].h_nr_running
    }

    /// for_each_class(), as far as the fair class.
    fn pick_next_task_above_fair(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.pick_next_task_stop(cpu, prev)
    }

    /// kernel/sched/sched.h: put_prev_task().
    #[inline]
    pub(crate) fn put_prev_task(&mut self, cpu: CpuId, prev: Option<TaskId>) {
        let Some(p) = prev else { return };
        match self.task[p].sched_class {
            SchedClass::Fair => self.put_prev_task_fair(cpu, p),
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// kernel/sched/sched.h: set_next_task(). What runs becomes the current one of its class again, after it was changed.
    #[doc(alias = "set_curr_task")]
    #[inline]
    pub(crate) fn set_next_task(&mut self, cpu: CpuId, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.set_curr_task_fair(cpu),
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `rq->curr->sched_class->task_tick()`. `queued`: by the timer that ends a slice (core/hrtick.rs).
    #[inline]
    pub(super) fn task_tick(&mut self, cpu: CpuId, curr: TaskId, queued: bool) {
        match self.task[curr].sched_class {
            SchedClass::Fair => self.task_tick_fair(cpu, curr, queued),
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `p->sched_class->task_waking()`, until v4.6.
    #[inline]
    pub(super) fn task_waking(&mut self, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.task_waking_fair(p),
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `p->sched_class->select_task_rq()`
    #[inline]
    pub(super) fn class_select_task_rq(&mut self, p: TaskId, cpu: CpuId, sd_flag: SdFlags, flags: WakeFlags) -> CpuId {
        match self.task[p].sched_class {
            SchedClass::Fair => self.select_task_rq_fair(p, cpu, sd_flag, flags),
            // A stopper stays as a matter of course.
            SchedClass::Stop | SchedClass::Idle => self.task[p].cpu,
        }
    }

    /// `p->sched_class->migrate_task_rq()`
    #[inline]
    pub(super) fn migrate_task_rq(&mut self, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.migrate_task_rq_fair(p),
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `p->sched_class->task_fork()`
    #[inline]
    pub(super) fn task_fork(&mut self, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.task_fork_fair(p),
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `p->sched_class->task_dead()`
    #[inline]
    pub(super) fn task_dead(&mut self, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.task_dead_fair(p),
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }
}
