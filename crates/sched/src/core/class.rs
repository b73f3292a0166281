//! sched.h: struct sched_class, as a dispatch to the function of a task's class. Only this file knows all classes; callers that
//! need a method of a class call these functions. A class that lacks the method does nothing.

use super::Sched;
use crate::arch::Arch;
use crate::behaviour;
use crate::deadline::DlSe;
use crate::sched::*;
use crate::topology::SdFlags;
use fentry::fentry;
use std::hint::cold_path;
use units::{CpuId, unlikely};

behaviour! {
    /// When a class that is about to have nothing pulls tasks from other CPUs.
    pub enum PickOrder = "core.pick_order" {
        PullInPick = "pull-in-pick", since "v3.15", commit "",
            "each class as it is asked for a task, before the previous task is put back";
        BalanceFirst = "balance-first", since "v5.4", commit "6e2df0581f56",
            "all classes from the previous task's down (sched_class.balance), then that one is put back, then they are asked";
        PutAfterPick = "put-after-pick", since "v6.12", commit "fd03c5b85855",
            "all classes from the previous task's down, then they are asked; the previous task is put back if another one was picked";
    }
}

behaviour! {
    /// When the fair class, as the last that is asked to balance before a pick, looks for a task elsewhere.
    pub enum BalanceFair = "core.balance_fair" {
        NothingRuns = "nothing-runs", since "v5.4", commit "6e2df0581f56",
            "where the CPU has no task of any class";
        NoFairTask = "no-fair-task", since "v6.12", commit "924e2904da9b",
            "where the CPU has no fair task, though one of a higher class waits";
        InPick = "in-pick", since "v6.19", commit "",
            "not before: when it is asked for a task and has none, be it by the fair server while others wait";
    }
}

/// What a class answers when asked for its next task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pick {
    Task(TaskId),
    Nothing,
    /// RETRY_TASK: a task of a higher class arrived while the queue was unlocked.
    Retry,
}

impl SchedClass {
    /// The class of a policy, for a task whose priority is not boosted.
    #[inline]
    pub(crate) fn of(policy: Policy) -> SchedClass {
        match policy {
            Policy::Stop => SchedClass::Stop,
            Policy::Deadline => SchedClass::Dl,
            Policy::Fifo | Policy::Rr => SchedClass::Rt,
            Policy::Normal | Policy::Batch | Policy::Idle => SchedClass::Fair,
        }
    }

    /// core.c: __setscheduler_class(). The class of a priority, for every task but a stopper.
    #[doc(alias = "__setscheduler_prio")]
    #[inline]
    pub(crate) fn __setscheduler_class(prio: i32) -> SchedClass {
        match prio {
            ..MAX_DL_PRIO => SchedClass::Dl,
            MAX_DL_PRIO..MAX_RT_PRIO => SchedClass::Rt,
            _ => SchedClass::Fair,
        }
    }

    /// kernel/sched/sched.h: sched_class_above().
    #[inline]
    pub(crate) fn sched_class_above(self, other: SchedClass) -> bool {
        self < other
    }
}

/// State of a task before a change: its priority, and the deadline of a deadline task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OldPrio {
    pub prio: i32,
    pub deadline: u64,
}

impl<A: Arch> Sched<A> {
    /// The class of what runs on `cpu`.
    #[inline]
    pub(crate) fn curr_class(&self, cpu: CpuId) -> SchedClass {
        self.rq[cpu].curr.map_or(SchedClass::Idle, |curr| self.task[curr].sched_class)
    }

    /// The priority of what runs on `cpu`.
    #[inline]
    pub(crate) fn curr_prio(&self, cpu: CpuId) -> i32 {
        self.rq[cpu].curr.map_or(MAX_PRIO, |curr| self.task[curr].prio)
    }

    /// `p->sched_class->enqueue_task()`
    #[inline(always)]
    pub(super) fn class_enqueue_task(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.enqueue_task_fair(cpu, p, flags),
            rarer => {
                cold_path();
                self.enqueue_task_rarer(rarer, cpu, p, flags)
            }
        }
    }

    #[inline(never)]
    fn enqueue_task_rarer(&mut self, class: SchedClass, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        match class {
            SchedClass::Rt => self.enqueue_task_rt(cpu, p, flags),
            SchedClass::Dl => self.enqueue_task_dl(cpu, p, flags),
            SchedClass::Stop => self.enqueue_task_stop(cpu, p),
            SchedClass::Fair | SchedClass::Idle => {
                unreachable!("the fair class was asked, and the idle task is on no queue")
            }
        }
    }

    /// `p->sched_class->dequeue_task()`
    #[inline(always)]
    pub(super) fn class_dequeue_task(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) -> bool {
        match self.task[p].sched_class {
            SchedClass::Fair => self.dequeue_task_fair(cpu, p, flags),
            rarer => {
                cold_path();
                self.dequeue_task_rarer(rarer, cpu, p, flags);
                true
            }
        }
    }

    #[inline(never)]
    fn dequeue_task_rarer(&mut self, class: SchedClass, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        match class {
            SchedClass::Rt => self.dequeue_task_rt(cpu, p, flags),
            SchedClass::Dl => self.dequeue_task_dl(cpu, p, flags),
            SchedClass::Stop => self.dequeue_task_stop(cpu),
            SchedClass::Fair | SchedClass::Idle => {
                unreachable!("the fair class was asked, and the idle task is on no queue")
            }
        }
    }

    /// `rq->curr->sched_class->yield_task()`
    #[inline]
    pub(super) fn yield_task(&mut self, cpu: CpuId) {
        match self.curr_class(cpu) {
            SchedClass::Fair => self.yield_task_fair(cpu),
            SchedClass::Rt => self.yield_task_rt(cpu),
            SchedClass::Dl => self.yield_task_dl(cpu),
            SchedClass::Stop | SchedClass::Idle => unreachable!("a stopper never yields, nor does the idle task"),
        }
    }

    /// `rq->curr->sched_class->check_preempt_curr()`, for a task of the same class that came to the queue.
    #[inline(never)]
    pub(super) fn class_check_preempt_curr(&mut self, cpu: CpuId, p: TaskId, flags: WakeFlags) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.check_preempt_wakeup_fair(cpu, p, flags),
            SchedClass::Rt => self.check_preempt_curr_rt(cpu, p),
            SchedClass::Dl => self.check_preempt_curr_dl(cpu, p),
            // Nothing is above a stopper.
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// core.c: __pick_next_task(). If the queue has only fair tasks, and the previous task was fair or idle, the fair class is
    /// asked at once: no other class has a task, and none lost one that it would have to pull from elsewhere.
    #[doc(alias = "__pick_next_task")]
    #[inline(always)]
    #[fentry]
    pub(super) fn pick_next_task(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let above = prev.is_some_and(|p| self.task[p].sched_class.sched_class_above(SchedClass::Fair));
        if !above && self.only_fair_tasks(cpu) {
            if let Some(p) = self.pick_next_task_fair(cpu, prev) {
                return Some(p);
            }
            // New-idle balancing drops the lock, so a task of a higher class may have arrived (RETRY_TASK).
            if self.only_fair_tasks(cpu) {
                self.fair_class_is_empty(cpu);
                return self.pick_next_task_idle(cpu, prev);
            }
        }
        match self.kernel.core.pick_order {
            PickOrder::PullInPick => self.pick_next_task_pulling(cpu, prev),
            PickOrder::BalanceFirst => self.pick_next_task_balanced(cpu, prev),
            PickOrder::PutAfterPick => self.pick_then_put(cpu, prev),
        }
    }

    #[inline]
    fn only_fair_tasks(&self, cpu: CpuId) -> bool {
        self.rq[cpu].nr_running == self.cfs_rq[self.rq[cpu].cfs].h_nr_running
    }

    /// for_each_class(), in kernels where a class pulls tasks while it picks.
    #[inline(never)]
    fn pick_next_task_pulling(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        loop {
            if let Some(p) = self.pick_next_task_stop(cpu, prev) {
                return Some(p);
            }
            match self.pick_next_task_dl(cpu, prev) {
                Pick::Task(p) => return Some(p),
                Pick::Nothing => {}
                Pick::Retry => continue,
            }
            match self.pick_next_task_rt(cpu, prev) {
                Pick::Task(p) => return Some(p),
                Pick::Nothing => {}
                Pick::Retry => continue,
            }
            if let Some(p) = self.pick_next_task_fair(cpu, prev) {
                return Some(p);
            }
            if self.only_fair_tasks(cpu) {
                return self.pick_next_task_idle(cpu, prev);
            }
        }
    }

    /// core.c: put_prev_task_balance() and for_each_class(), until v6.11.
    #[doc(alias = "put_prev_task_balance")]
    #[inline(never)]
    fn pick_next_task_balanced(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.prev_balance(cpu, prev);
        self.put_prev_task(cpu, prev);
        if let Some(p) = self.pick_next_task_stop(cpu, None) {
            return Some(p);
        }
        while let Some(se) = self.pick_task_dl(cpu) {
            match se {
                DlSe::Task(p) => {
                    self.set_next_task_dl(cpu, p, true);
                    return Some(p);
                }
                DlSe::FairServer(_) => {
                    if let Pick::Task(p) = self.pick_by_server(cpu, None) {
                        return Some(p);
                    }
                }
            }
        }
        if let Some(p) = self.pick_task_rt(cpu) {
            self.set_next_task_rt(cpu, p, true);
            return Some(p);
        }
        match self.pick_fair_here(cpu, None) {
            Some(p) => Some(p),
            None => self.pick_next_task_idle(cpu, None),
        }
    }

    /// core.c: prev_balance() and for_each_active_class(), since v6.12. `prev` is what runs and has not been put back yet; `None`
    /// is the idle task.
    #[inline(never)]
    fn pick_then_put(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.prev_balance(cpu, prev);
        self.pick_of_classes(cpu, prev).or_else(|| self.pick_next_task_idle(cpu, prev))
    }

    /// The walk over the classes in `__pick_next_task()`. `None`: only the idle task is left.
    fn pick_of_classes(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        if self.rq[cpu].stop_queued {
            let stop = self.rq[cpu].stop;
            return if stop == prev { stop } else { self.pick_next_task_stop(cpu, prev) };
        }
        while let Some(se) = self.pick_task_dl(cpu) {
            match se {
                DlSe::Task(p) => return Some(self.put_prev_set_next_task(cpu, prev, p)),
                DlSe::FairServer(_) => {
                    if let Pick::Task(p) = self.pick_by_server(cpu, prev) {
                        return Some(p);
                    }
                }
            }
        }
        if let Some(p) = self.pick_task_rt(cpu) {
            return Some(self.put_prev_set_next_task(cpu, prev, p));
        }
        self.pick_fair_last(cpu, prev)
    }

    /// The fair class's turn in the walk over the classes, which does not take the fast path for fair tasks.
    pub(crate) fn pick_fair_last(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        match self.kernel.core.balance_fair {
            BalanceFair::NothingRuns | BalanceFair::NoFairTask => self.pick_fair_here(cpu, prev),
            BalanceFair::InPick => self.pick_next_task_fair(cpu, prev),
        }
    }

    /// kernel/sched/sched.h: put_prev_set_next_task(), for a real-time or deadline task. Does nothing if the same task goes on.
    fn put_prev_set_next_task(&mut self, cpu: CpuId, prev: Option<TaskId>, next: TaskId) -> TaskId {
        if prev != Some(next) {
            self.put_prev_task(cpu, prev);
            match self.task[next].sched_class {
                SchedClass::Dl => self.set_next_task_dl(cpu, next, true),
                SchedClass::Rt => self.set_next_task_rt(cpu, next, true),
                SchedClass::Stop | SchedClass::Fair | SchedClass::Idle => unreachable!("they set what they pick"),
            }
        }
        next
    }

    /// core.c: prev_balance(), formerly a part of put_prev_task_balance(). From the previous task's class downwards, the classes
    /// pull tasks that they lack, until one has a task.
    fn prev_balance(&mut self, cpu: CpuId, prev: Option<TaskId>) {
        let class = prev.map_or(SchedClass::Idle, |p| self.task[p].sched_class);
        let mut found = class <= SchedClass::Stop && self.rq[cpu].stop_queued;
        if !found && class <= SchedClass::Dl {
            found = self.balance_dl(cpu, prev);
        }
        if !found && class <= SchedClass::Rt {
            found = self.balance_rt(cpu, prev);
        }
        if !found && class <= SchedClass::Fair && self.kernel.core.balance_fair != BalanceFair::InPick {
            self.balance_fair(cpu);
        }
    }

    /// fair.c: balance_fair(), since v5.4.
    fn balance_fair(&mut self, cpu: CpuId) {
        let rq = &self.rq[cpu];
        let has_task = match self.kernel.core.balance_fair {
            BalanceFair::NothingRuns => rq.nr_running > 0,
            BalanceFair::NoFairTask | BalanceFair::InPick => self.cfs_rq[rq.cfs].nr_running > 0,
        };
        if !has_task {
            self.idle_balance(cpu);
        }
    }

    /// kernel/sched/sched.h: put_prev_task().
    #[inline(always)]
    pub(crate) fn put_prev_task(&mut self, cpu: CpuId, prev: Option<TaskId>) {
        let Some(p) = prev else { return self.put_prev_task_idle(cpu) };
        match self.task[p].sched_class {
            SchedClass::Fair => self.put_prev_task_fair(cpu, p),
            rarer => {
                cold_path();
                self.put_prev_task_rarer(rarer, cpu, p)
            }
        }
    }

    #[inline(never)]
    fn put_prev_task_rarer(&mut self, class: SchedClass, cpu: CpuId, p: TaskId) {
        match class {
            SchedClass::Rt => self.put_prev_task_rt(cpu, p),
            SchedClass::Dl => self.put_prev_task_dl(cpu, p),
            SchedClass::Fair | SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// kernel/sched/sched.h: set_next_task(). What runs becomes the current task of its class again after a change.
    #[doc(alias = "set_curr_task")]
    #[inline]
    pub(crate) fn set_next_task(&mut self, cpu: CpuId, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.set_curr_task_fair(cpu),
            SchedClass::Rt => self.set_next_task_rt(cpu, p, false),
            SchedClass::Dl => self.set_next_task_dl(cpu, p, false),
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `rq->curr->sched_class->task_tick()`. `queued`: called from the timer that ends a slice (core/hrtick.rs).
    #[inline]
    pub(crate) fn task_tick(&mut self, cpu: CpuId, curr: TaskId, queued: bool) {
        match self.task[curr].sched_class {
            SchedClass::Fair => self.task_tick_fair(cpu, curr, queued),
            SchedClass::Rt => self.task_tick_rt(cpu, curr),
            SchedClass::Dl => self.task_tick_dl(cpu, curr, queued),
            SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `rq->curr->sched_class->update_curr()`
    pub(crate) fn class_update_curr(&mut self, cpu: CpuId) {
        match (self.curr_class(cpu), self.rq[cpu].curr) {
            (SchedClass::Fair, Some(curr)) => self.update_curr_fair(curr),
            (SchedClass::Rt, _) => self.update_curr_rt(cpu),
            (SchedClass::Dl, _) => self.update_curr_dl(cpu),
            (SchedClass::Idle, _) => self.update_curr_idle(cpu),
            (SchedClass::Stop | SchedClass::Fair, _) => {}
        }
    }

    /// `p->sched_class->task_waking()`, until v4.6.
    #[inline]
    pub(super) fn task_waking(&mut self, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.task_waking_fair(p),
            SchedClass::Dl | SchedClass::Rt | SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `p->sched_class->task_woken()`. The task is awake and on its queue.
    #[inline(always)]
    pub(super) fn task_woken(&mut self, cpu: CpuId, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => {}
            rarer => {
                cold_path();
                self.task_woken_rarer(rarer, cpu, p)
            }
        }
    }

    #[inline(never)]
    fn task_woken_rarer(&mut self, class: SchedClass, cpu: CpuId, p: TaskId) {
        match class {
            SchedClass::Rt => self.task_woken_rt(cpu, p),
            SchedClass::Dl => self.task_woken_dl(cpu, p),
            SchedClass::Fair | SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `p->sched_class->select_task_rq()`
    #[inline(always)]
    pub(super) fn class_select_task_rq(&mut self, p: TaskId, cpu: CpuId, sd_flag: SdFlags, flags: WakeFlags) -> CpuId {
        match self.task[p].sched_class {
            SchedClass::Fair => self.select_task_rq_fair(p, cpu, sd_flag, flags),
            rarer => {
                cold_path();
                self.select_task_rq_rarer(rarer, p, cpu, sd_flag)
            }
        }
    }

    #[inline(never)]
    fn select_task_rq_rarer(&mut self, class: SchedClass, p: TaskId, cpu: CpuId, sd_flag: SdFlags) -> CpuId {
        match class {
            SchedClass::Rt => self.select_task_rq_rt(p, cpu, sd_flag),
            SchedClass::Dl => self.select_task_rq_dl(p, cpu, sd_flag),
            // A stopper always stays.
            SchedClass::Fair | SchedClass::Stop | SchedClass::Idle => self.task[p].cpu,
        }
    }

    /// `p->sched_class->migrate_task_rq()`
    #[inline]
    pub(super) fn migrate_task_rq(&mut self, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.migrate_task_rq_fair(p),
            SchedClass::Dl => self.migrate_task_rq_dl(p),
            SchedClass::Rt | SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `p->sched_class->task_fork()`
    #[inline]
    pub(super) fn task_fork(&mut self, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.task_fork_fair(p),
            SchedClass::Dl | SchedClass::Rt | SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `p->sched_class->task_dead()`
    #[inline]
    pub(super) fn task_dead(&mut self, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.task_dead_fair(p),
            SchedClass::Dl => self.task_dead_dl(p),
            SchedClass::Rt | SchedClass::Stop | SchedClass::Idle => {}
        }
    }

    /// `p->sched_class->task_change_group()`. The task, running or waiting, belongs to another group now.
    #[inline]
    pub(crate) fn task_change_group(&mut self, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.task_move_group_fair(p),
            SchedClass::Dl | SchedClass::Rt | SchedClass::Stop | SchedClass::Idle => {
                self.set_task_rq(p, self.task[p].cpu)
            }
        }
    }

    /// `prev_class->switched_from()`
    pub(crate) fn switched_from(&mut self, cpu: CpuId, p: TaskId, prev_class: SchedClass) {
        match prev_class {
            SchedClass::Fair => self.switched_from_fair(p),
            SchedClass::Rt => self.switched_from_rt(cpu, p),
            SchedClass::Dl => self.switched_from_dl(cpu, p),
            SchedClass::Stop | SchedClass::Idle => unreachable!("nobody leaves these"),
        }
    }

    /// `p->sched_class->switched_to()`
    pub(crate) fn switched_to(&mut self, cpu: CpuId, p: TaskId) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.switched_to_fair(cpu, p),
            SchedClass::Rt => self.switched_to_rt(cpu, p),
            SchedClass::Dl => self.switched_to_dl(cpu, p),
            SchedClass::Stop | SchedClass::Idle => unreachable!("nobody comes to these"),
        }
    }

    /// `p->sched_class->get_prio()`, since v7.2, and the priority.
    pub(crate) fn get_prio(&mut self, cpu: CpuId, p: TaskId) -> OldPrio {
        let deadline = if self.task[p].sched_class == SchedClass::Dl { self.get_prio_dl(cpu, p) } else { 0 };
        OldPrio { prio: self.task[p].prio, deadline }
    }

    /// `p->sched_class->prio_changed()`
    pub(crate) fn prio_changed(&mut self, cpu: CpuId, p: TaskId, old: OldPrio) {
        match self.task[p].sched_class {
            SchedClass::Fair => self.prio_changed_fair(cpu, p, old.prio),
            SchedClass::Rt => self.prio_changed_rt(cpu, p, old.prio),
            SchedClass::Dl => self.prio_changed_dl(cpu, p, old.deadline),
            SchedClass::Stop | SchedClass::Idle => unreachable!("nobody changes these"),
        }
    }

    /// `class->rq_online()` of every class, the highest first.
    pub(super) fn class_rq_online(&mut self, cpu: CpuId) {
        self.rq_online_rt(cpu);
        self.rq_online_dl(cpu);
        self.rq_online_fair(cpu);
    }

    /// `class->rq_offline()` of every class.
    pub(super) fn class_rq_offline(&mut self, cpu: CpuId) {
        self.rq_offline_dl(cpu);
        self.rq_offline_rt(cpu);
        self.rq_offline_fair(cpu);
    }

    /// core.c: balance_callbacks(). Does what could not be done under the queue's lock, or not before the switch.
    #[doc(alias = "balance_callback")]
    #[inline]
    pub(crate) fn balance_callbacks(&mut self, cpu: CpuId) {
        if unlikely(!self.rq[cpu].balance_callback.is_empty()) {
            self.run_balance_callbacks(cpu);
        }
    }

    #[inline(never)]
    fn run_balance_callbacks(&mut self, cpu: CpuId) {
        self.rq_lock(cpu);
        // What the callbacks queue themselves waits for the next time.
        let mut callbacks = std::mem::take(&mut self.rq[cpu].balance_callback);
        while let Some(callback) = callbacks.pop() {
            match callback {
                BalanceCallback::PushRtTasks => self.push_rt_tasks(cpu),
                BalanceCallback::PullRtTask => self.pull_rt_task(cpu),
                BalanceCallback::PushDlTasks => self.push_dl_tasks(cpu),
                BalanceCallback::PullDlTask => self.pull_dl_task(cpu),
            }
        }
        self.rq_unlock(cpu);
    }
}
