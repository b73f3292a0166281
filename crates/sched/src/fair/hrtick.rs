//! fair.c: CONFIG_SCHED_HRTICK: the timer that ends a fair task's slice.

use super::rules::Pick;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::core::hrtick::Hrtick;
use crate::sched::*;
use units::CpuId;

behaviour! {
    /// Which tasks make an end of the slice worth a timer.
    pub enum HrtickTasks = "core.hrtick_tasks" {
        OwnQueue = "own-queue", since "v2.6.25", commit "", "another one on the task's own queue, its group's";
        WholeCpu = "whole-cpu", since "v4.9", commit "8bf46a39be91", "another fair one anywhere on the CPU";
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: hrtick_start_fair(). Arms the timer for what is left of the slice of the task that runs, or is about to
    /// run, on `cpu`.
    fn hrtick_start_fair(&mut self, cpu: CpuId, p: TaskId) {
        if self.kernel.core.hrtick == Hrtick::Deadline {
            return self.hrtick_start_to_deadline(cpu, p);
        }
        let se = self.task[p].se;
        let cfs = self.se[se].cfs_rq;
        let queue = match self.kernel.core.hrtick_tasks {
            HrtickTasks::OwnQueue => self.cfs_rq[cfs].nr_running,
            HrtickTasks::WholeCpu => self.cfs_rq[self.rq[cpu].cfs].h_nr_running,
        };
        if queue < 2 {
            return;
        }
        let slice = match self.kernel.entity.pick {
            Pick::Cfs => self.sched_slice(cfs, se),
            Pick::Eevdf => u64::from(self.se[se].slice),
        };
        let ran = self.se[se].sum_exec_runtime - self.se[se].prev_sum_exec_runtime;
        if slice >= ran {
            self.hrtick_start(cpu, slice - ran);
        } else if self.rq[cpu].curr == Some(p) {
            self.resched_curr(cpu);
        }
    }

    /// The same since v7.1: arms the timer for the task's deadline, assuming that only interrupts take the CPU away
    /// from it.
    fn hrtick_start_to_deadline(&mut self, cpu: CpuId, p: TaskId) {
        if self.cfs_rq[self.rq[cpu].cfs].h_nr_running <= 1 {
            return;
        }
        let se = self.task[p].se;
        let SchedEntity { deadline, vruntime, .. } = self.se[se];
        let vdelta = deadline.wrapping_sub(vruntime);
        if (vdelta as i64) < 0 {
            if self.rq[cpu].curr == Some(p) {
                self.resched_curr(cpu);
            }
            return;
        }
        let delta = self.competing_weight(se).wrapping_mul(vdelta) / self.kernel.load_resolution.nice_0_load();
        // In units of 1/1024.
        let scale = match self.cpu_util_irq(cpu) {
            util @ 1..1024 => 1024 * 1024 / (1024 - util),
            _ => 1024,
        };
        self.hrtick_start(cpu, scale.wrapping_mul(delta) / 1024);
    }

    /// The part of pick_next_task_fair(), or since v6.12 of set_next_task_fair(), that arms the timer.
    #[inline]
    pub(super) fn hrtick_picked(&mut self, cpu: CpuId, p: TaskId) {
        if self.hrtick_enabled_fair(cpu) {
            self.hrtick_start_fair(cpu, p);
        }
    }

    /// fair.c: hrtick_update(), on an enqueue. CFS's slice depends on the length of the queue while that is short.
    /// EEVDF's timer is set on every enqueue and dequeue; since v7.1, on an enqueue if none is set.
    #[inline]
    pub(super) fn hrtick_update(&mut self, cpu: CpuId) {
        if self.hrtick_enabled_fair(cpu) && !(self.kernel.core.hrtick == Hrtick::Deadline && self.hrtick_active(cpu)) {
            self.hrtick_curr(cpu);
        }
    }

    /// The same on a dequeue, until v7.0.
    #[inline]
    pub(super) fn hrtick_dequeued(&mut self, cpu: CpuId) {
        if self.hrtick_enabled_fair(cpu) && self.kernel.core.hrtick == Hrtick::SliceLeft {
            self.hrtick_curr(cpu);
        }
    }

    #[inline(never)]
    fn hrtick_curr(&mut self, cpu: CpuId) {
        if let Some(curr) = self.rq[cpu].curr
            && self.task[curr].sched_class == SchedClass::Fair
            && (self.kernel.entity.pick == Pick::Eevdf
                || !self.is_past_nr_latency(self.cfs_rq[self.se[self.task[curr].se].cfs_rq].nr_running))
        {
            self.hrtick_start_fair(cpu, curr);
        }
    }
}
