//! core.c: __schedule(): who runs next, and the switch to it.

use super::class::PickOrder;
use super::{HotplugState, Sched};
use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::deadline::server::ServerIdle;
use crate::features::Feature;
use crate::profile::ProfileType;
use crate::sched::*;
use crate::trace::Event;
use crate::versions::ClockUpdate;
use fentry::fentry;
use units::{CpuId, unlikely};

behaviour! {
    /// What the idle task does that was told to reschedule and finds no task.
    pub enum ScheduleIdle = "core.schedule_idle" {
        PicksAgain = "picks-again", since "v2.6.23", commit "",
            "all that a pick does: it looks for tasks elsewhere, and counts as one that went idle";
        Stays = "stays", since "v6.12", commit "3dcac251b066",
            "it stays the idle task, and no class is asked";
    }
}

behaviour! {
    /// When a time without tasks is over for the CPU's average of them (avg_idle).
    pub enum AvgIdle = "core.avg_idle" {
        AtWakeup = "at-wakeup", since "v2.6.33", commit "", "with the wakeup that ends it, of whatever class, as the woken task is queued there";
        AtSwitch = "at-switch", since "v7.0", commit "",
            "as the idle task is switched away from, whoever brought the next one";
    }
}

impl<A: Arch> Sched<A> {
    /// core.c: __schedule(). Returns what runs next; `None` is the idle task.
    ///
    /// `preempt`: the running task did not ask for it; whatever its state, it stays on the queue.
    #[inline(always)]
    #[fentry]
    pub(crate) fn schedule(&mut self, preempt: bool) -> Option<TaskId> {
        let cpu = self.this_cpu;
        let prev = self.rq[cpu].curr;
        if unlikely(self.schedstat_enabled()) {
            // schedule_debug()
            self.write_rq_counts(cpu);
            self.rq[cpu].sched_count += 1;
        }
        self.profile_hits(ProfileType::Sched, Path::schedule, 1);
        self.rq_lock(cpu);
        let hrtick = self.features.sched_feat_any([Feature::HRTICK, Feature::HRTICK_DL]);
        if unlikely(hrtick) {
            self.hrtick_schedule_enter(cpu);
        }
        let rq = &mut self.rq[cpu];
        if rq.clock_skip_update == ClockSkip::Requested {
            rq.clock_skip_update = ClockSkip::Active;
        }
        if self.kernel.core.clock == ClockUpdate::Callers {
            self.update_rq_clock(cpu);
        }
        let voluntary = self.deactivate_prev(cpu, prev, preempt);
        if self.kernel.core.clock == ClockUpdate::Enqueue && prev.is_none_or(|p| self.task[p].on_rq == OnRq::Queued) {
            self.update_rq_clock(cpu);
        }
        let stays_idle = self.kernel.core.schedule_idle == ScheduleIdle::Stays && prev.is_none();
        let next = if stays_idle && self.rq[cpu].nr_running == 0 { None } else { self.pick_next_task(cpu, prev) };
        self.rq[cpu].need_resched = false;
        self.rq[cpu].need_resched_lazy = false;
        self.rq[cpu].clock_skip_update = ClockSkip::No;
        if prev == next {
            self.rq_unlock(cpu);
        } else {
            self.account_switch(cpu, prev, next, voluntary, preempt);
            self.context_switch(cpu, prev, next);
        }
        self.balance_callbacks(cpu);
        if unlikely(hrtick) {
            self.hrtick_schedule_exit(cpu);
        }
        if unlikely(self.rq[cpu].hotplug != HotplugState::Up) {
            self.schedule_on_dying_cpu(cpu);
        }
        next
    }

    /// The part of `__schedule()` that dequeues a blocking task. Returns whether the switch is voluntary.
    #[inline(always)]
    fn deactivate_prev(&mut self, cpu: CpuId, prev: Option<TaskId>, preempt: bool) -> bool {
        let Some(p) = prev else { return true };
        if preempt || self.task[p].state == TaskState::Running {
            return false;
        }
        self.begin_off_cpu(p);
        let noclock = self.kernel.core.clock == ClockUpdate::Callers;
        let special = self.task[p].state == TaskState::Dead;
        self.block_task(cpu, p, QueueFlags { noclock, special, ..QueueFlags::default() });
        true
    }

    #[inline(always)]
    fn account_switch(
        &mut self,
        cpu: CpuId,
        prev: Option<TaskId>,
        next: Option<TaskId>,
        voluntary: bool,
        preempt: bool,
    ) {
        self.write_rq_weight(cpu);
        self.write_rq_curr(cpu);
        self.rq[cpu].nr_switches += 1;
        if let Some(p) = prev {
            self.write_switches(p);
            let task = &mut self.task[p];
            if voluntary {
                task.nvcsw += 1;
            } else {
                task.nivcsw += 1;
            }
        }
        self.psi_sched_switch(cpu, prev, next);
        if unlikely(self.arch.tracing()) {
            let prev_state = prev.map_or(TaskState::Running, |p| self.task[p].state);
            self.trace(Event::SchedSwitch { prev, prev_state, preempt, next });
        }
    }

    /// idle.c: pick_next_task_idle().
    #[inline(always)]
    pub(super) fn pick_next_task_idle(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.path(Path::pick_next_task_idle);
        if self.kernel.core.pick_order == PickOrder::PutAfterPick && prev.is_none() {
            return None;
        }
        self.put_prev_task(cpu, prev);
        self.update_idle_core(cpu);
        self.idle_is_picked(cpu);
        self.rq[cpu].idle.exec_start = self.rq[cpu].clock_task;
        if unlikely(self.schedstat_enabled()) {
            self.write_rq_counts(cpu);
            self.rq[cpu].sched_goidle += 1;
        }
        None
    }

    /// `rq->curr = p`.
    #[inline]
    pub(crate) fn set_curr(&mut self, cpu: CpuId, p: Option<TaskId>) {
        self.rq[cpu].curr = p;
        match p {
            Some(_) => self.running_idle.clear(cpu),
            None => self.running_idle.set(cpu),
        }
    }

    /// idle.c: put_prev_task_idle(). If it is called twice, the idle task has not run in between.
    #[inline]
    pub(super) fn put_prev_task_idle(&mut self, cpu: CpuId) {
        if (self.has_fair_server() || self.kernel.core.avg_idle == AvgIdle::AtSwitch) && self.rq[cpu].curr.is_none() {
            self.put_idle(cpu);
        }
    }

    #[inline(never)]
    fn put_idle(&mut self, cpu: CpuId) {
        if self.has_fair_server() {
            match self.kernel.dl.server_idle {
                ServerIdle::Discounted => self.dl_server_update_idle_time(cpu),
                ServerIdle::Accounted => self.update_curr_idle(cpu),
            }
        }
        if self.kernel.core.avg_idle == AvgIdle::AtSwitch && self.rq[cpu].idle_stamp != 0 {
            self.update_rq_avg_idle(cpu);
            self.renew_wake_avg_idle(cpu);
        }
    }

    /// idle.c: task_tick_idle().
    pub(super) fn task_tick_idle(&mut self, cpu: CpuId) {
        if self.kernel.dl.server_idle == ServerIdle::Accounted {
            self.update_curr_idle(cpu);
        }
    }

    /// idle.c: update_curr_idle(). Since v7.2 the fair server is also charged for time without tasks.
    pub(crate) fn update_curr_idle(&mut self, cpu: CpuId) {
        let rq = &mut self.rq[cpu];
        let delta_exec = rq.clock_task.wrapping_sub(rq.idle.exec_start);
        if delta_exec as i64 > 0 {
            rq.idle.exec_start = rq.clock_task;
            self.dl_server_update_idle(cpu, delta_exec);
        }
    }

    /// core.c: context_switch() and finish_task_switch(), which ends by dropping the queue's lock.
    #[inline(always)]
    #[fentry]
    fn context_switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        self.sched_info_switch(cpu, prev, next);
        let mm = |sched: &Self, p: Option<TaskId>| p.map_or(0, |p| sched.task[p].mm);
        let (from, to) = (mm(self, prev), mm(self, next));
        if to != 0 && to != from {
            self.path(Path::switch_mm);
        }
        self.path(Path::switch_to);
        self.set_curr(cpu, next);
        if let Some(p) = next {
            self.write_task(p);
            self.task[p].on_cpu = true;
        }
        if let Some(p) = prev {
            self.task[p].on_cpu = false;
            self.finish_off_cpu(p);
        }
        self.path(Path::finish_task_switch);
        self.rq_unlock(cpu);
        if let Some(p) = prev
            && unlikely(self.task[p].state == TaskState::Dead)
        {
            self.put_task_struct(p);
        }
    }
}
