//! syscalls.c (core.c until v6.10): what users may change about a task: its nice level and policy.

use crate::arch::Arch;
use crate::attr::{SchedAttr, SchedFlags};
use crate::behaviour;
use crate::core::Sched;
use crate::core::class::OldPrio;
use crate::core::pi::dl_prio;
use crate::deadline::bandwidth::BandwidthTracking;
use crate::errno::{Answer, Errno, Refusal};
use crate::fair::rules::{Pick, SliceOf};
use crate::load_weight::set_load_weight;
use crate::sched::*;
use crate::versions::{ClockUpdate, Kernel};
use fentry::fentry;
use units::{CpuId, CpuMask};

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
    /// In which steps a task goes from one class to another.
    pub enum ClassChange = "core.class_change" {
        ByClasses = "by-classes", since "v2.6.25", commit "",
            "the class that it leaves is told when it is in the other one, which alone says whether the CPU chooses again";
        Compared = "compared", since "v6.19", commit "",
            "the class that it leaves is told while the task is in none, and weighs as before; at last it is compared with what runs, as if it woke, and if it runs itself the CPU chooses again";
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
        WeightOnly = "weight-only", since "v4.15", commit "9059393e4ec1",
            "the weight alone: the averages stay those of a heavy task, and grow with each change back";
        /// v6.1.y has it too.
        Reweight = "reweight", since "v6.11", commit "d32960528702", "the weight and the load averages, as a new nice level does";
    }
}

behaviour! {
    /// How a task keeps its place when its policy changes and its effective priority does not.
    pub enum PolicyChange = "core.policy_change" {
        Requeued = "requeued", since "v3.14", commit "",
            "only an unchanged real-time priority spares it the way off the queue and back";
        InPlace = "in-place", since "v4.6", commit "ff77e4685359",
            "it leaves the queue and comes back (DEQUEUE_MOVE), but in its place if its real-time priority is unchanged";
        InPlaceAny = "in-place-any", since "v5.14", commit "f558c2b834ec",
            "so do fair tasks whose nice level is unchanged";
    }
}

behaviour! {
    /// When a new nice level makes the task's CPU choose again.
    pub enum NiceResched = "core.nice_resched" {
        Any = "any", since "v2.6.23", commit "", "when a queued task gains priority, or loses some while it runs";
        PrioChanged = "prio-changed", since "v5.6", commit "5443a0be6121",
            "not while it is alone; if it waits, only if it preempts what runs, as after a wakeup (prio_changed_fair)";
        IfChanged = "if-changed", since "v6.19", commit "", "the same, if the priority is another one, none that it was lent";
    }
}

behaviour! {
    /// What a new priority (a new policy's, or one that is lent) of the only fair task on a CPU does, or of those in its only group.
    pub enum AloneChanged = "core.alone_changed" {
        AsAny = "as-any", since "v2.6.23", commit "",
            "as anybody's: the CPU chooses again if the task runs and its priority fell, or if it waits and preempts what runs";
        Nothing = "nothing", since "v5.6", commit "7c2e8bbd87db", "nothing";
    }
}

/// Bounds of a fair task's own slice, in nanoseconds (0.1 to 100 ms).
const SHORTEST_SLICE: u64 = 100_000;
const LONGEST_SLICE: u64 = 100_000_000;

/// How a task is dequeued while it is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskChange {
    /// DEQUEUE_MOVE: the task returns to another place.
    pub moves: bool,
    /// A running task is not its queue's `curr` meanwhile.
    pub put_prev: bool,
    /// The class that the task leaves, in kernels that tell that class before the change.
    pub leaves: Option<SchedClass>,
}

impl TaskChange {
    pub(crate) const MOVE_GROUP: TaskChange = TaskChange { moves: true, ..TaskChange::IN_PLACE };
    /// The task returns to its place.
    pub(crate) const IN_PLACE: TaskChange = TaskChange { moves: false, put_prev: true, leaves: None };
}

/// core.c: __normal_prio(). The kernel's priority, smaller is higher: -1 deadline, 0..=98 real-time, 100..=139 fair.
#[doc(alias = "__normal_prio")]
pub(crate) fn normal_prio(policy: Policy, rt_priority: u8, static_prio: i32) -> i32 {
    match policy {
        Policy::Fifo | Policy::Rr => MAX_RT_PRIO - 1 - i32::from(rt_priority),
        // sched_set_stop_task(): SCHED_FIFO, 99.
        Policy::Stop => 0,
        Policy::Deadline => MAX_DL_PRIO - 1,
        Policy::Normal | Policy::Batch | Policy::Idle => static_prio,
    }
}

/// syscalls.c: effective_prio(). A fair task's priority after a change to `normal_prio`: a lent real-time priority stays.
fn effective_prio(task: &TaskStruct, normal_prio: i32) -> i32 {
    if task.prio < MAX_RT_PRIO { task.prio } else { normal_prio }
}

impl SchedAttr {
    /// Those checks of __sched_setscheduler() that need only the request, whoever makes it.
    ///
    /// # Errors
    /// EINVAL.
    pub fn check(&self, kernel: &Kernel) -> Answer {
        let policy = self.sched_policy;
        let no = |why| Err(Refusal::new(Errno::EINVAL, why));
        if policy == Policy::Stop {
            return no("the stop policy is given at boot only");
        }
        if self.sched_priority > (MAX_RT_PRIO - 1) as u32 {
            return no("a real-time priority goes from 1 to 99");
        }
        if policy.rt_policy() && self.sched_priority == 0 {
            return no("SCHED_FIFO and SCHED_RR need a priority from 1 to 99");
        }
        if !policy.rt_policy() && self.sched_priority != 0 {
            return no("only SCHED_FIFO and SCHED_RR have a priority");
        }
        if !(-20..=19).contains(&self.sched_nice) {
            return no("a nice level goes from -20 to 19");
        }
        if self.sched_flags.reclaim && kernel.dl.tracking == BandwidthTracking::TotalOnly {
            return no("SCHED_FLAG_RECLAIM is not a flag of this kernel (since v4.13)");
        }
        if policy == Policy::Deadline { self.__checkparam_dl() } else { Ok(()) }
    }
}

impl<A: Arch> Sched<A> {
    /// The frame of set_user_nice() and sched_move_task(): takes a task off its queue and CPU, changes it, and puts it back
    /// as it was.
    pub(crate) fn change_task(&mut self, p: TaskId, change: TaskChange, apply: impl FnOnce(&mut Self)) {
        let cpu = self.task[p].cpu;
        self.task_rq_lock(p);
        self.requeue_changed(p, change, apply);
        self.rq_unlock(cpu);
        self.pi_unlock(p);
    }

    /// The same for do_set_cpus_allowed(), whose caller has locked the task.
    pub(crate) fn change_allowed_cpus(&mut self, p: TaskId, apply: impl FnOnce(&mut Self)) {
        let cpu = self.task[p].cpu;
        self.rq_lock(cpu);
        if self.kernel.core.clock == ClockUpdate::Callers {
            self.update_rq_clock(cpu);
        }
        self.requeue_changed(p, TaskChange::IN_PLACE, apply);
        self.rq_unlock(cpu);
    }

    /// core.c: normal_prio(). The priority of the task by its own policy.
    pub(crate) fn normal_prio(&self, p: TaskId) -> i32 {
        let task = &self.task[p];
        normal_prio(task.policy, task.rt_priority, task.static_prio)
    }

    /// core.c: task_rq_lock(), and the clock update in kernels where callers do that. Returns the CPU.
    pub(crate) fn task_rq_lock(&mut self, p: TaskId) -> CpuId {
        let cpu = self.task[p].cpu;
        self.pi_lock(p);
        self.rq_lock(cpu);
        if self.kernel.core.clock == ClockUpdate::Callers {
            self.update_rq_clock(cpu);
        }
        cpu
    }

    /// The middle of that frame, under the locks; also that of __sched_setscheduler().
    pub(crate) fn requeue_changed(&mut self, p: TaskId, change: TaskChange, apply: impl FnOnce(&mut Self)) {
        self.requeue_changed_and(p, change, |sched| {
            apply(sched);
            false
        });
    }

    /// core.c: sched_change_begin() and the first half of sched_change_end(), which each caller had inline before v7.2. The
    /// change returns whether the task gets another budget of its deadline (ENQUEUE_REPLENISH).
    #[doc(alias = "sched_change_begin")]
    pub(crate) fn requeue_changed_and(&mut self, p: TaskId, change: TaskChange, apply: impl FnOnce(&mut Self) -> bool) {
        assert_ne!(self.task[p].policy, Policy::Stop, "nobody changes a stopper");
        let cpu = self.task[p].cpu;
        let noclock = self.kernel.core.clock == ClockUpdate::Callers;
        let flags = QueueFlags { save_restore: true, move_: change.moves, noclock, ..QueueFlags::default() };
        let queued = self.task[p].on_rq == OnRq::Queued;
        let running = self.rq[cpu].curr == Some(p) && change.put_prev;
        if queued {
            self.dequeue_task(cpu, p, flags);
        }
        if running {
            self.put_prev_task(cpu, Some(p));
        }
        if let Some(class) = change.leaves {
            self.switched_from(cpu, p, class);
        }
        let old_prio = self.task[p].prio;
        let replenish = apply(self);
        let current_first = self.kernel.core.change_order == ChangeOrder::CurrentFirst;
        if running && current_first {
            self.set_next_task(cpu, p);
        }
        if queued {
            // A task whose priority has fallen goes ahead of those that already have that priority.
            let head = old_prio < self.task[p].prio;
            self.enqueue_task(cpu, p, QueueFlags { head, replenish, ..flags });
        }
        if running && !current_first {
            self.set_next_task(cpu, p);
        }
    }

    /// syscalls.c: set_user_nice(). -20..=19. For a task of the real-time classes the level is kept for later.
    pub fn set_user_nice(&mut self, p: TaskId, nice: i32) {
        let old_prio = self.task[p].prio;
        let prio = DEFAULT_PRIO + nice;
        if self.task[p].static_prio == prio {
            return;
        }
        if !self.task[p].policy.fair_policy() {
            self.task[p].static_prio = prio;
            return;
        }
        let put_prev = self.kernel.core.nice_change == NiceChange::Reweight;
        let cpu = self.task_rq_lock(p);
        let old = self.get_prio(cpu, p);
        self.requeue_changed(p, TaskChange { put_prev, ..TaskChange::IN_PLACE }, |sched| {
            let task = &mut sched.task[p];
            task.static_prio = prio;
            task.prio = effective_prio(task, prio);
            sched.set_load_weight(p);
        });
        self.tell_prio(p);
        match self.kernel.core.nice_resched {
            NiceResched::Any => {
                // A task that was lent a real-time priority keeps it.
                let task = &self.task[p];
                if task.on_rq == OnRq::Queued && (task.prio < old_prio || task.prio > old_prio && task.on_cpu) {
                    self.resched_curr(cpu);
                }
            }
            NiceResched::IfChanged if self.task[p].prio == old_prio => {}
            NiceResched::PrioChanged | NiceResched::IfChanged => self.prio_changed(cpu, p, old),
        }
        self.rq_unlock(cpu);
        self.pi_unlock(p);
    }

    /// syscalls.c: sched_setscheduler(). Sets another policy and its priority; the nice level stays.
    pub fn sched_setscheduler(&mut self, p: TaskId, policy: Policy, priority: u32) -> Answer {
        // Without SCHED_RESET_ON_FORK children are no longer reset.
        let sched_flags = SchedFlags::default();
        let (static_prio, se) = (self.task[p].static_prio, &self.se[self.task[p].se]);
        let attr = SchedAttr {
            sched_policy: policy,
            sched_flags,
            sched_nice: static_prio - DEFAULT_PRIO,
            sched_priority: priority,
            sched_runtime: if se.custom_slice { u64::from(se.slice) } else { 0 },
            ..SchedAttr::NORMAL
        };
        self.sched_setattr(p, &attr)
    }

    /// syscalls.c: get_params(). The current attributes of the task, including reset on fork.
    pub(crate) fn get_params(&self, p: TaskId) -> SchedAttr {
        let task = &self.task[p];
        let se = &self.se[task.se];
        let attr = SchedAttr {
            sched_policy: task.policy,
            sched_flags: SchedFlags { reset_on_fork: self.task_cold[p].sched_reset_on_fork, ..SchedFlags::default() },
            sched_nice: task.static_prio - DEFAULT_PRIO,
            sched_priority: task.rt_priority.into(),
            sched_runtime: if se.custom_slice { u64::from(se.slice) } else { 0 },
            ..SchedAttr::NORMAL
        };
        match task.policy {
            Policy::Deadline => self.__getparam_dl(p, attr),
            _ => attr,
        }
    }

    /// syscalls.c: sched_setattr().
    /// Differs: a request that changes nothing takes no time.
    pub fn sched_setattr(&mut self, p: TaskId, attr: &SchedAttr) -> Answer {
        if self.task[p].sched_class == SchedClass::Stop {
            return Err(Refusal::new(Errno::EINVAL, "the policy of a migration/N task cannot be changed"));
        }
        if attr.sched_flags.sugov {
            return Err(Refusal::new(Errno::EINVAL, "SCHED_FLAG_SUGOV is the kernel's own"));
        }
        let kept;
        let attr = if attr.sched_flags.keep_all {
            let SchedAttr { sched_util_min, sched_util_max, .. } = *attr;
            let now = self.get_params(p);
            let sched_flags = SchedFlags { keep_all: true, ..now.sched_flags };
            kept = SchedAttr { sched_flags, sched_util_min, sched_util_max, ..now };
            &kept
        } else {
            attr
        };
        self.check_attr(attr, self.task[p].cpu, Some(&self.task[p].cpus_allowed))?;
        if attr.asks_for_clamps() {
            self.uclamp_validate(p, attr)?;
        }
        if self.attr_changes(p, attr) {
            if attr.sched_policy == Policy::Deadline || self.task[p].policy == Policy::Deadline {
                self.sched_dl_overflow(p, attr)?;
            }
            self.__sched_setscheduler(p, attr);
            return Ok(());
        }
        self.task_cold[p].sched_reset_on_fork = attr.sched_flags.reset_on_fork;
        Ok(())
    }

    /// syscalls.c: __sched_setscheduler(), as a privileged user.
    /// Differs: a task that waits for an rt_mutex changes nothing about itself, and no other task's policy changes:
    /// rt_mutex_adjust_pi() has nothing to do.
    #[fentry(sched_setscheduler)]
    fn __sched_setscheduler(&mut self, p: TaskId, attr: &SchedAttr) {
        let cpu = self.task_rq_lock(p);
        self.task_cold[p].sched_reset_on_fork = attr.sched_flags.reset_on_fork;
        let old_prio = self.task[p].prio;
        let static_prio = DEFAULT_PRIO + attr.sched_nice;
        let change = self.kernel.core.policy_change;
        let new_prio = match (change, attr.sched_policy.fair_policy()) {
            (PolicyChange::InPlaceAny, true) => static_prio,
            // Earlier kernels assumed 99 for a fair task, which its priority never is.
            (_, true) => MAX_RT_PRIO - 1,
            (_, false) => normal_prio(attr.sched_policy, attr.sched_priority as u8, static_prio),
        };
        let old = self.get_prio(cpu, p);
        let same_prio = self.rt_effective_prio(p, new_prio) == old_prio;
        let prev_class = self.task[p].sched_class;
        let normal = normal_prio(attr.sched_policy, attr.sched_priority as u8, static_prio);
        let next_class = SchedClass::__setscheduler_class(self.rt_effective_prio(p, normal));
        self.check_class_changing(cpu, p, next_class);
        if same_prio && change == PolicyChange::Requeued {
            self.__setscheduler_params(p, attr);
            self.__setscheduler_uclamp(p, attr);
        } else {
            // For deadline tasks since v7.2; before, nothing checks this.
            let moves = change != PolicyChange::Requeued && (!same_prio || dl_prio(new_prio));
            let leaves = self.leaves_first(prev_class, next_class);
            self.requeue_changed_and(p, TaskChange { moves, put_prev: true, leaves }, |sched| {
                let mut replenish = false;
                if !attr.sched_flags.keep_all {
                    sched.__setscheduler_params(p, attr);
                    sched.task[p].sched_class = next_class;
                    replenish = sched.__setscheduler_dl_pi(p);
                }
                sched.__setscheduler_uclamp(p, attr);
                replenish
            });
            self.check_class_changed(cpu, p, prev_class, old);
        }
        self.tell_prio(p);
        self.rq_unlock(cpu);
        self.pi_unlock(p);
        self.balance_callbacks(cpu);
    }

    /// The checks of __sched_setscheduler() that need of the task only where it is and may run (`None`: anywhere).
    ///
    /// # Errors
    /// EINVAL; EPERM and EBUSY for a deadline task.
    pub(crate) fn check_attr(&self, attr: &SchedAttr, cpu: CpuId, cpus_allowed: Option<&CpuMask>) -> Answer {
        attr.check(&self.kernel)?;
        if attr.sched_policy == Policy::Deadline && !attr.sched_flags.sugov {
            self.check_dl_period(attr)?;
            self.dl_may_run_on(cpu, cpus_allowed)?;
        }
        Ok(())
    }

    /// Whether there is anything to change.
    fn attr_changes(&self, p: TaskId, attr: &SchedAttr) -> bool {
        let task = &self.task[p];
        let policy = attr.sched_policy;
        attr.asks_for_clamps()
            || policy != task.policy
            || policy.fair_policy() && DEFAULT_PRIO + attr.sched_nice != task.static_prio
            || policy.fair_policy()
                && self.has_custom_slices()
                && attr.sched_runtime != u64::from(self.se[task.se].slice)
            || policy.rt_policy() && attr.sched_priority != u32::from(task.rt_priority)
            || policy == Policy::Deadline && self.dl_param_changed(p, attr)
    }

    /// Whether a fair task may ask for a slice of its own (sched_runtime, v6.12).
    fn has_custom_slices(&self) -> bool {
        self.kernel.entity.slice_of == SliceOf::Task && self.kernel.entity.pick == Pick::Eevdf
    }

    /// syscalls.c: __setscheduler_params(), for a task that is off its queue.
    fn __setscheduler_params(&mut self, p: TaskId, attr: &SchedAttr) {
        let task = &mut self.task[p];
        task.policy = attr.sched_policy;
        self.sched_idle_used |= attr.sched_policy == Policy::Idle;
        if attr.sched_policy.fair_policy() {
            task.static_prio = DEFAULT_PRIO + attr.sched_nice;
            let se = task.se;
            self.set_slice(se, attr.sched_runtime);
        }
        if attr.sched_policy == Policy::Deadline {
            self.__setparam_dl(p, attr);
        }
        self.task[p].rt_priority = attr.sched_priority as u8;
        self.task[p].prio = self.rt_effective_prio(p, self.normal_prio(p));
        self.set_load_weight(p);
    }

    /// The slice that an entity asks for, 0 for the tunable's. Without EEVDF it is not used.
    pub(crate) fn set_slice(&mut self, se: SeId, runtime: u64) {
        if !self.has_custom_slices() {
            return;
        }
        let se = &mut self.se[se];
        se.custom_slice = runtime != 0;
        se.slice = match se.custom_slice {
            true => runtime.clamp(SHORTEST_SLICE, LONGEST_SLICE) as u32,
            false => self.sysctl.sched_base_slice as u32,
        };
    }

    /// Tells listeners a task's new priority.
    pub(crate) fn tell_prio(&mut self, p: TaskId) {
        let cold = &self.task_cold[p];
        self.arch.task_changed(p, cold.pid, &cold.comm, self.task[p].prio);
    }

    /// core.c: check_class_changing(), which callers had inline until v6.14. Other classes have no sleepers that stay
    /// queued, so a delayed dequeue ends.
    pub(crate) fn check_class_changing(&mut self, cpu: CpuId, p: TaskId, next_class: SchedClass) {
        if next_class != self.task[p].sched_class && self.se[self.task[p].se].sched_delayed {
            let noclock = self.kernel.core.clock == ClockUpdate::Callers;
            self.dequeue_task(cpu, p, QueueFlags { sleep: true, delayed: true, noclock, ..QueueFlags::default() });
        }
    }

    /// core.c: check_class_changed() (the second half of sched_change_end() in v7.2).
    #[doc(alias = "sched_change_end")]
    pub(crate) fn check_class_changed(&mut self, cpu: CpuId, p: TaskId, prev_class: SchedClass, old: OldPrio) {
        let task = &self.task[p];
        if task.sched_class != prev_class {
            let compared = self.kernel.core.class_change == ClassChange::Compared;
            if !compared {
                self.switched_from(cpu, p, prev_class);
            }
            self.switched_to(cpu, p);
            if compared && self.task[p].on_rq == OnRq::Queued {
                self.compare_changed(cpu, p, prev_class);
            }
        } else if task.prio != old.prio || task.sched_class == SchedClass::Dl {
            self.prio_changed(cpu, p, old);
        }
    }

    /// The class that a task leaves for another one, in kernels that tell it before the change.
    pub(crate) fn leaves_first(&self, prev_class: SchedClass, next_class: SchedClass) -> Option<SchedClass> {
        let first = prev_class != next_class && self.kernel.core.class_change == ClassChange::Compared;
        first.then_some(prev_class)
    }

    /// The part of sched_change_end() that decides whether the CPU reschedules after a task came to another class than
    /// `prev_class`. A running task may have risen above `rq->next_class`, the class that was picked, or fallen below a
    /// waiting task.
    fn compare_changed(&mut self, cpu: CpuId, p: TaskId, prev_class: SchedClass) {
        if self.rq[cpu].curr != Some(p) {
            return self.check_preempt_curr(cpu, p, WakeFlags::NONE);
        }
        let rises = self.task[p].sched_class.sched_class_above(prev_class);
        if rises {
            self.resched_curr(cpu);
        }
        if self.rq[cpu].need_resched {
            self.rq_clock_skip_update(cpu, true);
        }
        if !rises {
            self.resched_curr(cpu);
        }
    }

    /// core.c: set_load_weight(), for a task that is off its queue.
    fn set_load_weight(&mut self, p: TaskId) {
        let task = &self.task[p];
        let (se, policy, state) = (task.se, task.policy, task.state);
        let load = set_load_weight(self.kernel.load_resolution, policy, task.static_prio);
        let idle_too = self.kernel.core.idle_weight == IdleWeight::Reweight;
        // While the policy changes, the class is still the old one.
        let fair = task.sched_class == SchedClass::Fair;
        let attached = fair && (policy != Policy::Idle || idle_too) && state != TaskState::New;
        if attached && self.kernel.core.nice_change == NiceChange::Reweight {
            // fair.c: reweight_task(); since v7.3, where virtual times follow at the next enqueue, a weight that stays moves nothing.
            if self.picks_flat() && self.se[se].load.weight == load.weight {
                return;
            }
            self.write_se(se);
            self.reweight_entity(self.any_arithmetic(), se, load, load.weight, self.se[se].on_rq);
        } else {
            let se = &mut self.se[se];
            se.load = load;
            se.runnable_weight = load.weight;
        }
    }
}

#[cfg(test)]
mod tests;
