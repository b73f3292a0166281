//! fair.c: CONFIG_SCHED_HRTICK: the timer that ends a fair task's slice.

use super::rules::Pick;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
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
    /// fair.c: hrtick_start_fair(). The task that runs, or is about to, on `cpu` has so much of its slice left.
    fn hrtick_start_fair(&mut self, cpu: CpuId, p: TaskId) {
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

    /// What pick_next_task_fair() does about it.
    #[inline]
    pub(super) fn hrtick_picked(&mut self, cpu: CpuId, p: TaskId) {
        if self.hrtick_enabled_fair(cpu) {
            self.hrtick_start_fair(cpu, p);
        }
    }

    /// fair.c: hrtick_update(). CFS's slice changes with the length of the queue, as long as that is short; EEVDF's timer is set
    /// whenever somebody comes or goes.
    #[inline]
    pub(super) fn hrtick_update(&mut self, cpu: CpuId) {
        if self.hrtick_enabled_fair(cpu)
            && let Some(curr) = self.rq[cpu].curr
            && self.task[curr].sched_class == SchedClass::Fair
            && (self.kernel.entity.pick == Pick::Eevdf
                || !self.is_past_nr_latency(self.cfs_rq[self.se[self.task[curr].se].cfs_rq].nr_running))
        {
            self.hrtick_start_fair(cpu, curr);
        }
    }
}
