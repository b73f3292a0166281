//! core.c: how a sleeping task becomes runnable: try_to_wake_up() and what finishes it on other CPUs.

use super::{Sched, update_avg};
use crate::access::Path;
use crate::arch::Arch;
use crate::features::Feature;
use crate::sched::*;
use crate::topology::SdFlags;
use crate::trace::Event;
use crate::versions::ClockUpdate;
use fentry::fentry;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// core.c: try_to_wake_up(). Returns whether the task slept and now does not.
    #[fentry]
    pub(crate) fn try_to_wake_up(&mut self, p: TaskId, flags: WakeFlags) -> bool {
        self.pi_lock(p);
        self.read_task(p);
        if !matches!(self.task[p].state, TaskState::Interruptible | TaskState::Uninterruptible) {
            self.pi_unlock(p);
            return false;
        }
        if self.arch.tracing() {
            self.trace(Event::SchedWaking { task: p, target_cpu: self.task[p].cpu });
        }
        self.nr_wakeups += 1;
        let mut flags = flags;
        let mut cpu = self.task[p].cpu;
        if self.task[p].on_rq != OnRq::No {
            self.ttwu_remote(p, flags);
        } else {
            self.wait_until_off_cpu(p);
            let task = &mut self.task[p];
            task.sched_contributes_to_load = task.state == TaskState::Uninterruptible;
            task.state = TaskState::Waking;
            if task.in_iowait {
                let from = task.cpu;
                self.rq[from].nr_iowait -= 1;
            }
            self.task_waking(p);
            cpu = self.select_task_rq(p, self.task[p].wake_cpu, SdFlags::SD_BALANCE_WAKE, flags);
            if self.task[p].cpu != cpu {
                flags.migrated = true;
                self.set_task_cpu(p, cpu);
            }
            self.ttwu_queue(p, cpu, flags);
        }
        self.ttwu_stat(p, cpu, flags);
        self.pi_unlock(p);
        true
    }

    /// core.c: ttwu_remote(): the task has not left its run queue yet; only its state changes.
    fn ttwu_remote(&mut self, p: TaskId, flags: WakeFlags) {
        let cpu = self.task[p].cpu;
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        self.ttwu_do_wakeup(cpu, p, flags);
        self.rq_unlock(cpu);
    }

    /// core.c: ttwu_queue(). A CPU that shares no cache finishes the wakeup itself.
    #[fentry]
    fn ttwu_queue(&mut self, p: TaskId, cpu: CpuId, flags: WakeFlags) {
        if self.sched_feat(Feature::TTWU_QUEUE) && !self.cpus_share_cache(self.this_cpu, cpu) {
            self.path(Path::sched_clock_cpu);
            self.ttwu_queue_remote(p, cpu, flags);
            return;
        }
        self.rq_lock(cpu);
        if self.kernel.core.clock == ClockUpdate::Callers {
            self.update_rq_clock(cpu);
        }
        self.ttwu_do_activate(cpu, p, flags);
        self.rq_unlock(cpu);
    }

    /// core.c: ttwu_queue_remote().
    #[fentry]
    fn ttwu_queue_remote(&mut self, p: TaskId, cpu: CpuId, flags: WakeFlags) {
        self.task[p].sched_remote_wakeup = flags.migrated;
        self.atomic_wake_list(cpu);
        let was_empty = self.rq[cpu].wake_list.is_empty();
        self.rq[cpu].wake_list.push(p);
        if !was_empty {
            return;
        }
        if self.rq[cpu].polling {
            self.write_need_resched(cpu);
            self.rq[cpu].need_resched = true;
            self.wake_idle_without_ipi(cpu);
        } else {
            self.arch.smp_send_reschedule(self.this_cpu, cpu);
        }
    }

    /// core.c: ttwu_do_activate().
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
        self.ttwu_do_wakeup(cpu, p, flags);
    }

    /// core.c: ttwu_do_wakeup().
    #[fentry]
    fn ttwu_do_wakeup(&mut self, cpu: CpuId, p: TaskId, flags: WakeFlags) {
        self.check_preempt_curr(cpu, p, flags);
        self.write_task(p);
        self.task[p].state = TaskState::Running;
        if self.arch.tracing() {
            self.trace(Event::SchedWakeup { task: p, target_cpu: cpu });
        }
        if self.rq[cpu].idle_stamp != 0 {
            self.write_rq_balance(cpu);
            let rq = &mut self.rq[cpu];
            let delta = rq.clock.wrapping_sub(rq.idle_stamp);
            let max = 2 * rq.max_idle_balance_cost;
            update_avg(&mut rq.avg_idle, delta);
            rq.avg_idle = rq.avg_idle.min(max);
            rq.idle_stamp = 0;
        }
    }

    /// core.c: sched_ttwu_pending(): finishes the wakeups that other CPUs queued here.
    pub(crate) fn sched_ttwu_pending(&mut self) {
        let cpu = self.this_cpu;
        if self.rq[cpu].wake_list.is_empty() {
            return;
        }
        self.enter(Path::sched_ttwu_pending);
        self.atomic_wake_list(cpu);
        self.rq_lock(cpu);
        if self.kernel.core.clock == ClockUpdate::Callers {
            self.update_rq_clock(cpu);
        }
        // llist_del_all() hands the newest first.
        while let Some(p) = self.rq[cpu].wake_list.pop() {
            let flags = WakeFlags { migrated: self.task[p].sched_remote_wakeup, ..WakeFlags::NONE };
            self.ttwu_do_activate(cpu, p, flags);
        }
        self.rq_unlock(cpu);
        self.leave();
    }

    /// core.c: scheduler_ipi(). Returns whether the balancing softirq is to run (a nohz idle kick arrived).
    pub(crate) fn scheduler_ipi(&mut self) -> bool {
        self.path(Path::scheduler_ipi);
        self.sched_ttwu_pending();
        self.got_nohz_idle_kick()
    }
}
