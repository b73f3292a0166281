//! deadline.c: the constant bandwidth server: a task has `dl_runtime` in each `dl_period`, available until `dl_deadline`.
//! Once it has used that up, the task waits for its next period; a task that comes late must not get more than its share.
//!
//! At a wakeup the old budget and deadline stay in force, unless running with them could exceed the reserved bandwidth:
//!
//! ```text
//! runtime / (deadline - t) > dl_runtime / dl_deadline
//! ```
//!
//! (Abeni and Buttazzo, Integrating Multimedia Applications in Hard Real-Time Systems, 1998.)

use super::server::{ServerCounted, ServerIdle};
use super::{DlSe, SchedDlEntity};
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::cpudeadline::dl_time_before;
use crate::cpufreq::{UpdateFlags, UpdateUtil};
use crate::hrtimer::SchedTimer;
use crate::rt::RtStatistics;
use crate::rt::bandwidth::RtBandwidth;
use crate::sched::*;
use fentry::fentry;
use units::CpuId;

behaviour! {
    /// Which density the wakeup rule compares with.
    pub enum Overflow = "dl.overflow" {
        Period = "period", since "v3.14", commit "", "that of the period";
        Deadline = "deadline", since "v4.11", commit "2317d5f1c349", "that of the deadline, where this is shorter than the period";
    }
}

behaviour! {
    /// Tasks whose deadline comes before their period's end.
    pub enum Constrained = "dl.constrained" {
        AsImplicit = "as-implicit", since "v3.14", commit "",
            "are replenished at their deadline, and at a wakeup behind it, which gives them more than they reserved";
        NextPeriod = "next-period", since "v4.13", commit "3effcb4247e7",
            "are replenished when the next period begins; a wakeup between deadline and period waits, and one that would exceed \
             the density cuts the budget (revised CBS)";
    }
}

behaviour! {
    /// Who that comes to the class gets a new budget.
    pub enum NewBudget = "dl.new_budget" {
        NewTasks = "new-tasks", since "v3.14", commit "", "who never had one (dl_new)";
        Expired = "expired", since "v4.6", commit "72f9f3fdc928", "whoever has a deadline in the past";
        ExpiredIfMoved = "expired-if-moved", since "v6.19", commit "",
            "the same, if what changed is its parameters or its priority, not where it may run";
    }
}

behaviour! {
    /// What running costs of the budget.
    pub enum RuntimeScale = "dl.runtime_scale" {
        Wall = "wall", since "v3.14", commit "", "its time";
        Capacity = "capacity", since "v4.16", commit "07881166a892", "its time, scaled by the CPU's frequency and capacity";
    }
}

/// kernel/sched/sched.h: DL_SCALE. Products of two times fit into 64 bits if their lowest ten bits are dropped.
pub(super) const DL_SCALE: u32 = 10;
/// kernel/sched/sched.h: BW_SHIFT.
pub(super) const BW_SHIFT: u32 = 20;

impl SchedDlEntity {
    /// deadline.c: dl_is_implicit().
    pub(super) fn dl_is_implicit(&self) -> bool {
        self.dl_deadline == self.dl_period
    }

    /// deadline.c: dl_next_period(). When the next period begins.
    fn dl_next_period(&self) -> u64 {
        self.deadline.wrapping_sub(self.dl_deadline).wrapping_add(self.dl_period)
    }

    /// deadline.c: dl_runtime_exceeded().
    pub(super) fn dl_runtime_exceeded(&self) -> bool {
        self.runtime <= 0
    }

    /// deadline.c: __dl_clear_params().
    pub(super) fn __dl_clear_params(&mut self) {
        let (queued, pushable) = (self.queued, self.pushable);
        *self =
            SchedDlEntity { queued, pushable, runtime: self.runtime, deadline: self.deadline, ..Default::default() };
    }

    /// deadline.c: dl_entity_overflow(), with the parameters of `pi_se`.
    pub(super) fn dl_entity_overflow(&self, pi_se: &SchedDlEntity, overflow: Overflow, t: u64) -> bool {
        let window = match overflow {
            Overflow::Period => pi_se.dl_period,
            Overflow::Deadline => pi_se.dl_deadline,
        };
        let left = (window >> DL_SCALE).wrapping_mul((self.runtime >> DL_SCALE) as u64);
        let right = (self.deadline.wrapping_sub(t) >> DL_SCALE).wrapping_mul(pi_se.dl_runtime >> DL_SCALE);
        dl_time_before(right, left)
    }
}

impl<A: Arch> Sched<A> {
    /// Whether a task that is queued again after a change begins a new budget.
    pub(super) fn needs_new_budget(&self, cpu: CpuId, se: DlSe, flags: QueueFlags) -> bool {
        let entity = self.dl_entity(se);
        // Before the first budget the deadline is 0, which is in the past on every real clock.
        let expired = !entity.started || dl_time_before(entity.deadline, self.rq[cpu].clock);
        match self.kernel.dl.new_budget {
            NewBudget::NewTasks => !entity.started,
            NewBudget::Expired => expired,
            NewBudget::ExpiredIfMoved => flags.move_ && expired,
        }
    }

    /// deadline.c: replenish_dl_new_period().
    pub(super) fn replenish_dl_new_period(&mut self, se: DlSe) {
        let clock = self.rq[self.rq_of_dl_se(se)].clock;
        let SchedDlEntity { dl_deadline, dl_runtime, .. } = *self.pi_of(se);
        let entity = self.dl_mut(se);
        entity.deadline = clock.wrapping_add(dl_deadline);
        entity.runtime = dl_runtime as i64;
        entity.started = true;
        if entity.dl_defer && !entity.dl_defer_running {
            (entity.dl_throttled, entity.dl_defer_armed) = (true, true);
        }
    }

    /// deadline.c: setup_new_dl_entity(). An entity whose timer is still pending waits for that.
    pub(super) fn setup_new_dl_entity(&mut self, se: DlSe) {
        if !self.dl_entity(se).dl_throttled {
            self.replenish_dl_new_period(se);
        }
    }

    /// deadline.c: replenish_dl_entity(). The budget of the next period, less what was overrun.
    pub(super) fn replenish_dl_entity(&mut self, se: DlSe) {
        let clock = self.rq[self.rq_of_dl_se(se)].clock;
        let (pi_se, overflow) = (self.pi_of(se), self.kernel.dl.overflow);
        let SchedDlEntity { dl_runtime, dl_deadline, dl_period, .. } = *pi_se;
        assert!(dl_runtime > 0, "{se:?} has no budget to be given");
        let entity = self.dl_entity(se);
        // A task of another class to which a deadline is lent has no period that could continue.
        let begins =
            entity.dl_deadline == 0 || entity.dl_defer_armed && entity.dl_entity_overflow(pi_se, overflow, clock);
        let entity = self.dl_mut(se);
        if begins {
            entity.deadline = clock.wrapping_add(dl_deadline);
            entity.runtime = dl_runtime as i64;
            entity.started = true;
        }
        if entity.dl_yielded && entity.runtime > 0 {
            entity.runtime = 0;
        }
        while entity.runtime <= 0 {
            entity.deadline = entity.deadline.wrapping_add(dl_period);
            entity.runtime += dl_runtime as i64;
        }
        if dl_time_before(entity.deadline, clock) {
            // "DL replenish lagged too much": begin afresh.
            self.replenish_dl_new_period(se);
        }
        let entity = self.dl_mut(se);
        (entity.dl_yielded, entity.dl_throttled) = (false, false);
        if entity.dl_defer_armed {
            entity.dl_defer_armed = false;
            return;
        }
        let zero_laxity = entity.deadline.wrapping_sub(entity.runtime as u64);
        if entity.dl_defer && !entity.dl_defer_running && dl_time_before(clock, zero_laxity) {
            (entity.dl_defer_armed, entity.dl_throttled) = (true, true);
            if !self.start_dl_timer(se) {
                self.cancel_dl_timer(se);
                let entity = self.dl_mut(se);
                (entity.dl_defer_armed, entity.dl_throttled) = (false, false);
            }
        }
    }

    /// deadline.c: update_dl_entity(). The wakeup rule.
    ///
    /// Differs: in 6.18.35 a server has what the time to its deadline allows though it was not running, which it can only see where a CPU
    /// goes and comes back within a second.
    pub(super) fn update_dl_entity(&mut self, se: DlSe) {
        let clock = self.rq[self.rq_of_dl_se(se)].clock;
        let rules = self.kernel.dl;
        let entity = self.dl_entity(se);
        let new = !entity.started;
        let past = dl_time_before(entity.deadline, clock);
        if new || past || entity.dl_entity_overflow(self.pi_of(se), rules.overflow, clock) {
            let revised = rules.constrained == Constrained::NextPeriod
                && !self.is_dl_boosted(se)
                && (!entity.dl_is_implicit() || (entity.dl_defer && entity.dl_defer_running));
            if revised && !new && !past {
                return self.update_dl_revised_wakeup(se, clock);
            }
            self.dl_mut(se).dl_defer_running = false;
            self.replenish_dl_new_period(se);
        } else if entity.dl_defer && !entity.dl_defer_running {
            let entity = self.dl_mut(se);
            (entity.dl_defer_armed, entity.dl_throttled) = (true, true);
        }
    }

    /// deadline.c: update_dl_revised_wakeup(). As much budget as the density allows until the deadline.
    fn update_dl_revised_wakeup(&mut self, se: DlSe, clock: u64) {
        let entity = self.dl_mut(se);
        let laxity = entity.deadline.wrapping_sub(clock);
        entity.runtime = (entity.dl_density.wrapping_mul(laxity) >> BW_SHIFT) as i64;
    }

    /// deadline.c: dl_check_constrained_dl(). A task woken between its deadline and the end of its period waits for the next
    /// one.
    pub(super) fn dl_check_constrained_dl(&mut self, se: DlSe) {
        let clock = self.rq[self.rq_of_dl_se(se)].clock;
        let entity = self.dl_entity(se);
        // A task that never had a budget has no period either: its deadline, 0, is long past on a machine that has booted.
        let between =
            entity.started && dl_time_before(entity.deadline, clock) && dl_time_before(clock, entity.dl_next_period());
        if between && !self.is_dl_boosted(se) && self.start_dl_timer(se) {
            let entity = self.dl_mut(se);
            entity.dl_throttled = true;
            entity.runtime = entity.runtime.min(0);
        }
    }

    fn dl_timer(se: DlSe) -> SchedTimer {
        match se {
            DlSe::Task(p) => SchedTimer::DlTask(p),
            DlSe::FairServer(cpu) => SchedTimer::DlServer(cpu),
        }
    }

    /// deadline.c: start_dl_timer(). Arms the timer of the next budget; returns false if its time has passed.
    #[fentry]
    pub(super) fn start_dl_timer(&mut self, se: DlSe) -> bool {
        let cpu = self.rq_of_dl_se(se);
        let entity = self.dl_entity(se);
        let act = if entity.dl_defer_armed {
            entity.deadline.wrapping_sub(entity.runtime as u64)
        } else {
            match self.kernel.dl.constrained {
                Constrained::AsImplicit => entity.deadline,
                Constrained::NextPeriod => entity.dl_next_period(),
            }
        };
        // The deadline is on the runqueue's clock, the timer on the hardware's.
        let now = self.arch.sched_clock(self.this_cpu).0;
        let act = act.wrapping_add(now.wrapping_sub(self.rq[cpu].clock));
        if (act.wrapping_sub(now) as i64) / 1_000 < 0 {
            return false;
        }
        let timer = Self::dl_timer(se);
        if !self.hrtimers.is_queued(timer) {
            self.hrtimer_start(self.this_cpu, timer, act);
        }
        true
    }

    /// A dead task needs no budget.
    pub(crate) fn end_deadline(&mut self, p: TaskId) {
        if p.index() < self.dl_se.len() {
            self.cancel_dl_timer(DlSe::Task(p));
        }
    }

    pub(super) fn cancel_dl_timer(&mut self, se: DlSe) {
        self.hrtimer_cancel(Self::dl_timer(se));
    }

    /// deadline.c: dl_task_timer(). A throttled task gets its next budget.
    /// Differs: if the task's CPU is offline, v4.5 first queues the task there and then moves it.
    #[fentry]
    pub(crate) fn dl_task_timer(&mut self, p: TaskId) {
        let cpu = self.task[p].cpu;
        self.pi_lock(p);
        self.rq_lock(cpu);
        let cpu = self.dl_task_replenished(cpu, p);
        self.rq_unlock(cpu);
        self.pi_unlock(p);
    }

    /// The body of dl_task_timer(), under the locks. Returns the CPU whose queue is locked now.
    fn dl_task_replenished(&mut self, cpu: CpuId, p: TaskId) -> CpuId {
        if self.task[p].sched_class != SchedClass::Dl {
            if self.kernel.dl.tracking == super::BandwidthTracking::TotalOnly {
                self.dl_se[p].__dl_clear_params();
            }
            return cpu;
        }
        if !self.dl_se[p].dl_throttled || self.is_dl_boosted(DlSe::Task(p)) {
            return cpu;
        }
        self.update_rq_clock(cpu);
        if self.task[p].on_rq != OnRq::Queued {
            self.replenish_dl_entity(DlSe::Task(p));
            return cpu;
        }
        let cpu = if self.rq[cpu].online { cpu } else { self.dl_task_offline_migration(cpu, p) };
        self.enqueue_task_dl(cpu, p, QueueFlags { replenish: true, ..QueueFlags::default() });
        if self.curr_class(cpu) == SchedClass::Dl {
            self.check_preempt_curr_dl(cpu, p);
        } else {
            self.resched_curr(cpu);
        }
        if self.dl[cpu].has_pushable_dl_tasks() {
            self.push_dl_task(cpu);
        }
        cpu
    }

    /// deadline.c: update_curr_dl().
    #[fentry]
    pub(crate) fn update_curr_dl(&mut self, cpu: CpuId) {
        let Some(curr) = self.rq[cpu].curr.filter(|&curr| self.task[curr].sched_class == SchedClass::Dl) else {
            return;
        };
        if !self.dl_se[curr].queued {
            return;
        }
        let told = self.kernel.rt.statistics == RtStatistics::Told;
        let delta_exec = self.update_curr_common(cpu, curr, told).unwrap_or(0);
        if delta_exec > 0 {
            self.other_class_util_change(cpu, UpdateUtil::Runtime, UpdateFlags::DL);
            self.sched_rt_avg_update(cpu, delta_exec);
        } else if !self.dl_se[curr].dl_yielded {
            return;
        }
        if self.dl_entity_is_special(DlSe::Task(curr)) {
            return;
        }
        self.update_curr_dl_se(cpu, DlSe::Task(curr), delta_exec);
        if delta_exec > 0 {
            self.account_dl_as_rt(cpu, delta_exec);
        }
    }

    /// deadline.c: update_curr_dl_se(). Charges `delta_exec` ns to the budget; an entity that has none left is dequeued.
    pub(super) fn update_curr_dl_se(&mut self, cpu: CpuId, se: DlSe, delta_exec: u64) {
        let scaled = match se {
            DlSe::Task(p) => self.dl_scaled_delta_exec(cpu, p, delta_exec),
            DlSe::FairServer(_) => delta_exec,
        };
        let accounted = self.kernel.dl.server_idle == ServerIdle::Accounted;
        let idle = accounted && self.idle_rq(cpu);
        let entity = self.dl_mut(se);
        entity.runtime -= scaled as i64;
        entity.dl_defer_idle &= idle;
        if entity.dl_defer && entity.dl_throttled && entity.dl_runtime_exceeded() {
            if entity.dl_defer_idle {
                // The server has already been deferred for idleness: its timer will find out whether fair tasks came.
                entity.runtime = 0;
                return;
            }
            // Fair tasks have had the server's share without it.
            entity.dl_defer_running = false;
            self.cancel_dl_timer(se);
            self.replenish_dl_new_period(se);
            self.dl_mut(se).dl_defer_idle = idle;
            self.start_dl_timer(se);
            return;
        }
        if !entity.dl_runtime_exceeded() && !entity.dl_yielded {
            return;
        }
        entity.dl_throttled = true;
        self.dequeue_dl_entity(se, QueueFlags::default(), false);
        if let DlSe::Task(p) = se {
            self.dequeue_pushable_dl_task(cpu, p);
        }
        if self.is_dl_boosted(se) || !self.start_dl_timer(se) {
            let replenish = QueueFlags { replenish: true, ..QueueFlags::default() };
            match se {
                DlSe::Task(p) => self.enqueue_task_dl(cpu, p, replenish),
                DlSe::FairServer(_) if self.kernel.dl.server_counted == ServerCounted::Apart => {
                    self.replenish_dl_new_period(se);
                    self.start_dl_timer(se);
                }
                DlSe::FairServer(_) => self.enqueue_dl_entity(se, replenish, false),
            }
        }
        if !self.dl[cpu].is_leftmost(se) {
            self.resched_curr(cpu);
        }
    }

    /// deadline.c: dl_scaled_delta_exec().
    fn dl_scaled_delta_exec(&self, cpu: CpuId, p: TaskId, delta_exec: u64) -> u64 {
        if self.dl_se[p].flags.reclaim {
            return self.grub_reclaim(cpu, p, delta_exec);
        }
        match self.kernel.dl.runtime_scale {
            RuntimeScale::Wall => delta_exec,
            RuntimeScale::Capacity => {
                let scale = self.scale(cpu);
                let by_frequency = (delta_exec * u64::from(scale.freq)) >> 10;
                (by_frequency * u64::from(scale.cpu)) >> 10
            }
        }
    }

    /// The end of update_curr_dl(): the time is also charged to the budget of real-time tasks, in kernels that enforce one.
    fn account_dl_as_rt(&mut self, cpu: CpuId, delta_exec: u64) {
        if self.kernel.rt.bandwidth == RtBandwidth::Queues
            && self.rt_bandwidth_enabled()
            && (self.rt_period_active || self.rt[cpu].rt_time < self.global_rt_runtime())
        {
            self.rt[cpu].rt_time += delta_exec;
        }
    }
}
