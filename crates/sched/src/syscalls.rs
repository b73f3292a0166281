//! syscalls.c (core.c until v6.10): what users change about a task: nice level and policy.

use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::load_weight::set_load_weight;
use crate::sched::*;
use crate::versions::ClockUpdate;
use fentry::fentry;

behaviour! {
    /// In which order a running task that was changed comes back.
    pub enum ChangeOrder = "core.change_order" {
        CurrentFirst = "current-first", since "v2.6.24", commit "",
            "it becomes its queue's current before it is queued, and so never enters the timeline";
        EnqueueFirst = "enqueue-first", since "v4.9", commit "a399d233078e",
            "it is queued first, and taken out of the timeline as any task that is picked";
    }
}

behaviour! {
    /// What a new nice level changes at once.
    pub enum NiceChange = "core.nice_change" {
        WeightOnly = "weight-only", since "v2.6.23", commit "",
            "the weight; averages follow as time passes";
        Reweight = "reweight", since "v4.15", commit "9059393e4ec1",
            "the weight and the load averages (reweight_task); a running task is put back in between";
    }
}

behaviour! {
    /// What becoming a SCHED_IDLE task changes at once, where a new nice level changes the averages.
    pub enum IdleWeight = "core.idle_weight" {
        WeightOnly = "weight-only", since "v4.15", commit "",
            "the weight alone: the averages stay those of a heavy task, and grow with each change back";
        /// v6.1.y has it too.
        Reweight = "reweight", since "v6.11", commit "", "the weight and the load averages, as a new nice level does";
    }
}

behaviour! {
    /// When a new nice level makes the task's CPU choose again.
    pub enum NiceResched = "core.nice_resched" {
        Any = "any", since "v2.6.23", commit "", "when a queued task gains priority, or loses some while it runs";
        PrioChanged = "prio-changed", since "v5.5", commit "",
            "not while it is alone; if it waits, only if it preempts what runs, as after a wakeup (prio_changed_fair)";
    }
}

/// How a task is taken away while it is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskChange {
    /// DEQUEUE_MOVE: it comes back elsewhere.
    moves: bool,
    /// A running task stops being its queue's `curr` meanwhile.
    put_prev: bool,
}

impl TaskChange {
    pub(crate) const MOVE_GROUP: TaskChange = TaskChange { moves: true, put_prev: true };
    pub(crate) const POLICY: TaskChange = TaskChange { moves: false, put_prev: true };
}

impl<A: Arch> Sched<A> {
    /// The frame of set_user_nice(), __sched_setscheduler() and sched_move_task(): takes a task off its queue and CPU, has it
    /// changed, and puts it back as it was.
    pub(crate) fn change_task(&mut self, p: TaskId, change: TaskChange, apply: impl FnOnce(&mut Self)) {
        assert_ne!(self.task[p].policy, Policy::Stop, "nobody changes a stopper");
        let cpu = self.task[p].cpu;
        let noclock = self.kernel.core.clock == ClockUpdate::Callers;
        let flags = QueueFlags { save_restore: true, move_: change.moves, noclock, ..QueueFlags::default() };
        self.pi_lock(p);
        self.rq_lock(cpu);
        if noclock {
            self.update_rq_clock(cpu);
        }
        let queued = self.task[p].on_rq == OnRq::Queued;
        let running = self.rq[cpu].curr == Some(p) && change.put_prev;
        if queued {
            self.dequeue_task(cpu, p, flags);
        }
        if running {
            self.put_prev_task(cpu, Some(p));
        }
        apply(self);
        let current_first = self.kernel.core.change_order == ChangeOrder::CurrentFirst;
        if running && current_first {
            self.set_next_task(cpu, p);
        }
        if queued {
            self.enqueue_task(cpu, p, flags);
        }
        if running && !current_first {
            self.set_next_task(cpu, p);
        }
        self.rq_unlock(cpu);
        self.pi_unlock(p);
    }

    /// syscalls.c: set_user_nice(). -20..=19.
    pub fn set_user_nice(&mut self, p: TaskId, nice: i32) {
        let old_prio = self.task[p].prio;
        let prio = DEFAULT_PRIO + nice;
        if self.task[p].static_prio == prio {
            return;
        }
        let put_prev = self.kernel.core.nice_change == NiceChange::Reweight;
        self.change_task(p, TaskChange { moves: false, put_prev }, |sched| {
            let task = &mut sched.task[p];
            task.static_prio = prio;
            task.prio = prio;
            sched.set_load_weight(p);
        });
        let task = &self.task[p];
        match self.kernel.core.nice_resched {
            NiceResched::Any if task.on_rq == OnRq::Queued && (prio < old_prio || task.on_cpu) => {
                self.resched_curr(task.cpu);
            }
            NiceResched::Any => {}
            NiceResched::PrioChanged => self.prio_changed_fair(task.cpu, p, old_prio),
        }
    }

    /// syscalls.c: __sched_setscheduler(), between the policies of the fair class.
    #[fentry]
    pub fn sched_setscheduler(&mut self, p: TaskId, policy: Policy) {
        assert_ne!(policy, Policy::Stop, "the stop policy is given at boot only");
        self.change_task(p, TaskChange::POLICY, |sched| {
            sched.task[p].policy = policy;
            sched.set_load_weight(p);
        });
    }

    /// core.c: set_load_weight(). The weight of a task that is off its queue.
    fn set_load_weight(&mut self, p: TaskId) {
        let task = &self.task[p];
        let (se, policy, state) = (task.se, task.policy, task.state);
        let load = set_load_weight(self.kernel.load_resolution, policy, task.static_prio);
        let idle_too = self.kernel.core.idle_weight == IdleWeight::Reweight;
        let attached = (policy != Policy::Idle || idle_too) && state != TaskState::New;
        if attached && self.kernel.core.nice_change == NiceChange::Reweight {
            // fair.c: reweight_task().
            self.reweight_entity(self.se[se].cfs_rq, se, load, load.weight);
        } else {
            let se = &mut self.se[se];
            se.load = load;
            se.runnable_weight = load.weight;
        }
    }
}
