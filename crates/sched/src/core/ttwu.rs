//! core.c: how a sleeping task becomes runnable: try_to_wake_up() and what finishes it on other CPUs.
//!
//! Absent: `migrate_disable()` and with it `rq->nr_pinned` (nothing disables migration here), WF_CURRENT_CPU (seccomp uses it).
//! `ttwu_pending` is represented by `wake_list` not being empty. v6.1 clears it before the tasks are queued, v6.12 after
//! (d6962c4fe8f9); the difference is invisible here, because a path is never interrupted.

use super::schedule::AvgIdle;
use super::{IowaitCount, Sched, update_avg};
use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::fair::wake::ScanBudget;
use crate::features::Feature;
use crate::sched::*;
use crate::topology::SdFlags;
use crate::trace::Event;
use crate::versions::ClockUpdate;
use fentry::fentry;
use units::{CpuId, unlikely};

behaviour! {
    /// Where wakeups wait that another CPU is to finish (TTWU_QUEUE).
    pub enum WakeList = "core.wake_list" {
        RunQueue = "run-queue", since "v3.0", commit "317f394160e9",
            "in a list of the run queue, which the reschedule interrupt empties, the newest first";
        CallSingle = "call-single", since "v5.8", commit "a148866489fb",
            "among the function calls for that CPU, the oldest first; rq->ttwu_pending tells of them (126c2092e5c8)";
    }
}

behaviour! {
    /// Which wakeups another CPU is left to finish (TTWU_QUEUE).
    pub enum WakeQueue = "core.wake_queue" {
        OtherCaches = "other-caches", since "v3.2", commit "518cd6234178", "those to CPUs that share no cache with the waker";
        OrToBusy = "or-to-busy", since "v5.8", commit "2ebb17717550",
            "those too of tasks that are still being switched away from, to their CPU if at most one other is there, instead of waiting \
             for it (c6e7bd7afaeb)";
        OrDescheduling = "or-descheduling", since "v5.10.y", commit "28156108fecb",
            "the same, if nobody is there: the CPU goes idle (late releases of v5.10.y)";
        OrIdle = "or-idle", since "v6.0", commit "f3dd3f674555", "the same, and those to any idle CPU";
        OrIdleButStoppers = "or-idle-but-stoppers", since "v6.16", commit "009836b4fa52",
            "the same, but none of stoppers";
    }
}

behaviour! {
    /// What a task does that wakes itself, because what it was about to wait for has come.
    pub enum WakeCurrent = "core.wake_current" {
        Locked = "locked", since "v2.6.23", commit "", "takes the locks of any wakeup";
        Shortcut = "shortcut", since "v5.3", commit "aacedf26fb76", "changes its state, without a lock";
    }
}

behaviour! {
    /// Whether a wakeup of a task that has not left its queue does what a wakeup that queues one does.
    pub enum WakeRunning = "core.wake_running" {
        Preempts = "preempts", since "v2.6.23", commit "",
            "yes: looks whether it should preempt, pushes real-time and deadline tasks, ends the CPU's measure of idleness (avg_idle)";
        Skips = "skips", since "v6.3", commit "efe09385864f",
            "nothing of it; but whether one should preempt that does not run, as its dequeue was delayed";
    }
}

behaviour! {
    /// The CPU from which a task is placed the next time it wakes (wake_cpu), if somebody had meant it for another CPU than the one on which it
    /// was, where it was left now.
    pub enum WakeCpu = "core.wake_cpu" {
        Meant = "meant", since "v3.13", commit "", "the one that was meant";
        Chosen = "chosen", since "v7.2", commit "", "the one on which it is";
    }
}

impl<A: Arch> Sched<A> {
    /// core.c: try_to_wake_up(). Returns whether the task slept and no longer does.
    #[fentry]
    pub(crate) fn try_to_wake_up(&mut self, p: TaskId, flags: WakeFlags) -> bool {
        if self.kernel.core.wake_current == WakeCurrent::Shortcut && unlikely(self.rq[self.this_cpu].curr == Some(p)) {
            return self.wake_current(p, flags);
        }
        self.pi_lock(p);
        self.read_task(p);
        if unlikely(!self.ttwu_state_match(p)) {
            self.pi_unlock(p);
            return false;
        }
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SchedWaking { task: p, target_cpu: self.task[p].cpu });
        }
        self.foresee_woken(p);
        self.nr_wakeups += 1;
        self.read_task_on_rq_apart(p);
        let mut flags = flags;
        let mut cpu = self.task[p].cpu;
        if unlikely(self.task[p].on_rq != OnRq::No) {
            self.ttwu_runnable(p, flags);
        } else {
            let switching = self.kernel.core.wake_queue != WakeQueue::OtherCaches && self.on_cpu_elsewhere(p);
            if !switching {
                self.wait_until_off_cpu(p);
            }
            let task = &mut self.task[p];
            task.sched_contributes_to_load = task.state == TaskState::Uninterruptible;
            task.state = TaskState::Waking;
            if unlikely(task.in_iowait) && self.kernel.core.iowait_count == IowaitCount::UntilWoken {
                let from = task.cpu;
                self.rq[from].nr_iowait -= 1;
            }
            if !(switching && self.ttwu_queue_wakelist(p, cpu, flags, true)) {
                if switching {
                    self.wait_until_off_cpu(p);
                }
                self.task_waking(p);
                cpu = self.select_task_rq(p, self.task[p].wake_cpu, SdFlags::SD_BALANCE_WAKE, flags);
                if self.task[p].cpu != cpu {
                    flags.migrated = true;
                    self.psi_ttwu_dequeue(p);
                    self.set_task_cpu(p, cpu);
                } else if self.kernel.core.wake_cpu == WakeCpu::Chosen {
                    self.task[p].wake_cpu = cpu;
                }
                self.ttwu_queue(p, cpu, flags);
            }
        }
        self.ttwu_stat(p, cpu, flags);
        self.pi_unlock(p);
        true
    }

    /// core.c: ttwu_state_match(), for the states from which tasks are woken.
    #[inline]
    fn ttwu_state_match(&self, p: TaskId) -> bool {
        matches!(self.task[p].state, TaskState::Interruptible | TaskState::Uninterruptible)
    }

    /// The beginning of `try_to_wake_up()`, when a task wakes itself.
    fn wake_current(&mut self, p: TaskId, flags: WakeFlags) -> bool {
        if !self.ttwu_state_match(p) {
            return false;
        }
        let cpu = self.this_cpu;
        self.nr_wakeups += 1;
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SchedWaking { task: p, target_cpu: cpu });
        }
        self.write_task(p);
        self.task[p].state = TaskState::Running;
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SchedWakeup { task: p, target_cpu: cpu });
        }
        self.ttwu_stat(p, cpu, flags);
        true
    }

    /// `p->on_cpu`, for a task that has left its queue: its CPU is in the middle of switching away from it. In the simulator the
    /// switch is done already, but it ends later than this CPU's clock.
    #[inline]
    fn on_cpu_elsewhere(&self, p: TaskId) -> bool {
        self.task[p].off_cpu_at > self.arch.sched_clock(self.this_cpu).0
    }

    /// core.c: ttwu_runnable(). The task is still on its runqueue: only its state changes, and a delayed dequeue is cancelled.
    #[doc(alias = "ttwu_remote")]
    fn ttwu_runnable(&mut self, p: TaskId, flags: WakeFlags) {
        let cpu = self.task[p].cpu;
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        if self.se[self.task[p].se].sched_delayed {
            self.enqueue_task(cpu, p, QueueFlags { noclock: true, delayed: true, ..QueueFlags::default() });
        }
        let preempts = self.kernel.core.wake_running == WakeRunning::Preempts || !self.task[p].on_cpu;
        self.ttwu_do_wakeup(cpu, p, flags, preempts);
        self.rq_unlock(cpu);
    }

    /// core.c: ttwu_queue().
    #[fentry]
    fn ttwu_queue(&mut self, p: TaskId, cpu: CpuId, flags: WakeFlags) {
        if self.ttwu_queue_wakelist(p, cpu, flags, false) {
            return;
        }
        self.rq_lock(cpu);
        if self.kernel.core.clock == ClockUpdate::Callers {
            self.update_rq_clock(cpu);
        }
        self.ttwu_do_activate(cpu, p, flags);
        self.rq_unlock(cpu);
    }

    /// core.c: ttwu_queue_cond(). Whether `cpu` is to finish the wakeup: it does if it shares no cache with this CPU or, since
    /// v6.0, if it is idle; from v5.8 on if it goes idle with this task (`switching`: WF_ON_CPU), at first with one other, too.
    #[inline(always)]
    fn ttwu_queue_cond(&mut self, p: TaskId, cpu: CpuId, switching: bool) -> bool {
        let distant = !self.cpus_share_cache(self.this_cpu, cpu);
        let rule = self.kernel.core.wake_queue;
        let only_switching = match rule {
            WakeQueue::OrToBusy => Some(1),
            WakeQueue::OrDescheduling => Some(0),
            _ => None,
        };
        if rule == WakeQueue::OtherCaches || only_switching.is_some() && (distant || !switching) {
            return distant;
        }
        if let Some(others) = only_switching {
            self.read_rq_load(cpu);
            return self.rq[cpu].nr_running <= others;
        }
        let spared = rule == WakeQueue::OrIdleButStoppers && self.task[p].sched_class == SchedClass::Stop;
        if !self.rq[cpu].online || !self.cpumask_test(cpu, p) || spared {
            return false;
        }
        if distant || cpu == self.this_cpu {
            return distant;
        }
        self.read_rq_load(cpu);
        self.rq[cpu].nr_running == 0
    }

    /// core.c: ttwu_queue_wakelist(). Returns whether the wakeup is left to `cpu`.
    #[inline(always)]
    fn ttwu_queue_wakelist(&mut self, p: TaskId, cpu: CpuId, flags: WakeFlags, switching: bool) -> bool {
        if !self.sched_feat(Feature::TTWU_QUEUE) || !self.ttwu_queue_cond(p, cpu, switching) {
            return false;
        }
        self.path(Path::sched_clock_cpu);
        self.__ttwu_queue_wakelist(p, cpu, flags);
        true
    }

    /// core.c: __ttwu_queue_wakelist(), with the call of send_call_function_single_ipi() that smp.c makes for it.
    #[inline(never)]
    #[fentry(ttwu_queue_remote)]
    #[doc(alias = "ttwu_queue_remote")]
    fn __ttwu_queue_wakelist(&mut self, p: TaskId, cpu: CpuId, flags: WakeFlags) {
        self.task[p].sched_remote_wakeup = flags.migrated;
        self.write_ttwu_pending(cpu);
        self.atomic_wake_list(cpu);
        let was_empty = self.rq[cpu].wake_list.is_empty();
        self.rq[cpu].wake_list.push(p);
        if !was_empty {
            return;
        }
        self.send_call_function_single_ipi(cpu);
    }

    /// core.c: ttwu_do_activate().
    #[inline(never)]
    #[fentry]
    fn ttwu_do_activate(&mut self, cpu: CpuId, p: TaskId, flags: WakeFlags) {
        let enqueue = QueueFlags {
            wakeup: true,
            waking: true,
            migrated: flags.migrated,
            noclock: self.kernel.core.clock == ClockUpdate::Callers,
            ..QueueFlags::default()
        };
        self.activate_task(cpu, p, enqueue);
        self.write_task_on_rq_apart(p);
        self.ttwu_do_wakeup(cpu, p, flags, true);
        if self.kernel.core.wake_running == WakeRunning::Skips {
            self.has_woken(cpu, p);
        }
    }

    /// core.c: ttwu_do_wakeup(). `preempts`: first check whether `p` should preempt what runs (from v6.3 on, callers do that).
    #[inline(always)]
    #[fentry]
    fn ttwu_do_wakeup(&mut self, cpu: CpuId, p: TaskId, flags: WakeFlags, preempts: bool) {
        if preempts {
            self.check_preempt_curr(cpu, p, flags);
        }
        self.write_task(p);
        self.task[p].state = TaskState::Running;
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SchedWakeup { task: p, target_cpu: cpu });
        }
        if self.kernel.core.wake_running == WakeRunning::Preempts {
            self.has_woken(cpu, p);
        }
    }

    /// The end of ttwu_do_wakeup() until v6.2, and of ttwu_do_activate() since.
    #[inline(always)]
    fn has_woken(&mut self, cpu: CpuId, p: TaskId) {
        self.task_woken(cpu, p);
        if self.rq[cpu].idle_stamp != 0 && self.kernel.core.avg_idle == AvgIdle::AtWakeup {
            self.update_rq_avg_idle(cpu);
            self.renew_wake_avg_idle(cpu);
        }
    }

    /// core.c: update_rq_avg_idle(), for a CPU that has an idle stamp: its idle time enters the average.
    #[inline(always)]
    pub(super) fn update_rq_avg_idle(&mut self, cpu: CpuId) {
        self.write_rq_idle(cpu);
        let rq = &mut self.rq[cpu];
        let delta = rq.clock.wrapping_sub(rq.idle_stamp);
        let max = 2 * rq.max_idle_balance_cost;
        update_avg(&mut rq.avg_idle, delta);
        rq.avg_idle = rq.avg_idle.min(max);
        rq.idle_stamp = 0;
    }

    /// Renews what searches for an idle CPU may spend (SIS_PROP), in kernels that count it.
    #[inline]
    pub(super) fn renew_wake_avg_idle(&mut self, cpu: CpuId) {
        if self.kernel.wake.scan_budget == ScanBudget::WakeAvgIdle {
            let jiffies = self.jiffies();
            let rq = &mut self.rq[cpu];
            rq.wake_stamp = jiffies;
            rq.wake_avg_idle = rq.avg_idle / 2;
        }
    }

    /// core.c: check_preempt_curr() (wakeup_preempt() since v6.6). Since v7.2 the kernel compares with the highest class that
    /// came since the last pick (`rq->next_class`). That is the class of what runs, or a higher one for which the CPU has already
    /// been told to reschedule, so the result is the same.
    #[doc(alias = "wakeup_preempt")]
    #[inline(always)]
    pub(crate) fn check_preempt_curr(&mut self, cpu: CpuId, p: TaskId, flags: WakeFlags) {
        let curr = self.rq[cpu].curr;
        let (ours, theirs) = (self.task[p].sched_class, self.curr_class(cpu));
        if ours == theirs {
            self.class_check_preempt_curr(cpu, p, flags);
        } else if ours.sched_class_above(theirs) {
            self.resched_curr(cpu);
        }
        let queued = curr.is_none_or(|c| self.task[c].on_rq == OnRq::Queued);
        if queued && self.rq[cpu].need_resched {
            self.rq_clock_skip_update(cpu, true);
        }
    }

    /// core.c: sched_ttwu_pending(): finishes the wakeups that other CPUs queued here.
    #[inline(always)]
    pub(crate) fn sched_ttwu_pending(&mut self) {
        if !self.rq[self.this_cpu].wake_list.is_empty() {
            self.ttwu_pending();
        }
    }

    /// The body of `sched_ttwu_pending()`, when wakeups are pending.
    #[inline(never)]
    fn ttwu_pending(&mut self) {
        let cpu = self.this_cpu;
        self.enter(Path::sched_ttwu_pending);
        self.atomic_wake_list(cpu);
        self.rq_lock(cpu);
        if self.kernel.core.clock == ClockUpdate::Callers {
            self.update_rq_clock(cpu);
        }
        // llist_del_all() returns the newest first; smp.c reverses the list.
        let mut list = std::mem::take(&mut self.rq[cpu].wake_list);
        if self.kernel.core.wake_list == WakeList::RunQueue {
            list.reverse();
        }
        self.write_ttwu_pending(cpu);
        for &p in &list {
            let flags = WakeFlags { migrated: self.task[p].sched_remote_wakeup, ..WakeFlags::NONE };
            self.ttwu_do_activate(cpu, p, flags);
        }
        list.clear();
        self.rq[cpu].wake_list = list;
        self.rq_unlock(cpu);
        self.leave();
    }

    /// kernel/smp.c: flush_smp_call_function_queue(). Does what other CPUs left for this one to do.
    /// Differs: wakeups are on a list of their own, as they were until v5.8.
    #[inline(always)]
    pub(crate) fn flush_smp_call_function_queue(&mut self) {
        // Before, the kernel looked at the scheduler's own list.
        let of_all_calls = self.kernel.core.wake_list != WakeList::RunQueue;
        if of_all_calls {
            self.enter(Path::flush_smp_call_function_queue);
        }
        self.sched_ttwu_pending();
        self.__cfsb_csd_unthrottle(self.this_cpu);
        self.__hrtick_start(self.this_cpu);
        if of_all_calls {
            self.leave();
        }
    }

    /// core.c: scheduler_ipi(). Returns whether the balancing softirq is to run (a nohz idle kick arrived).
    pub(crate) fn scheduler_ipi(&mut self) -> bool {
        self.path(Path::scheduler_ipi);
        self.flush_smp_call_function_queue();
        self.got_nohz_idle_kick()
    }
}

#[cfg(test)]
mod tests;
