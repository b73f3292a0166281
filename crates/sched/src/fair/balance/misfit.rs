//! fair.c: misfit tasks: too big for their CPU, on machines whose CPUs differ in capacity.

use super::MisfitStatus;
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use units::{CpuId, unlikely};

impl<A: Arch> Sched<A> {
    /// fair.c: update_misfit_status(). Records whether the task that runs on `cpu`, or is about to, is too big for it.
    #[inline]
    pub(in crate::fair) fn update_misfit_status(&mut self, cpu: CpuId, p: Option<TaskId>) {
        if unlikely(self.domains.sched_asym_cpucapacity) {
            self.rq[cpu].misfit_task_load = match p {
                Some(p) if !self.has_to_do_with(p, cpu) => self.task_h_load(p).max(1),
                _ => 0,
            };
        }
    }

    /// Whether the task has to make do with its CPU: the CPU is big enough, or the task may use none better.
    fn has_to_do_with(&self, p: TaskId, cpu: CpuId) -> bool {
        let biggest_allowed = self.kernel.balance.misfit_status == MisfitStatus::AnyMisfit
            && self.domains.arch_scale_cpu_capacity(None, cpu) == self.task_cold[p].max_allowed_capacity;
        self.task[p].nr_cpus_allowed == 1 || biggest_allowed || self.task_fits_cpu(p, cpu)
    }

    /// topology.c: set_task_max_allowed_capacity(). The capacity of the biggest CPU that the task may use (v6.10).
    pub(crate) fn set_task_max_allowed_capacity(&mut self, p: TaskId) {
        if !self.domains.sched_asym_cpucapacity {
            return;
        }
        let allowed = self.task[p].cpus_allowed.iter().filter(|cpu| cpu.index() < self.nr_cpus());
        let biggest = allowed.map(|cpu| self.domains.arch_scale_cpu_capacity(None, cpu)).max();
        self.task_cold[p].max_allowed_capacity = biggest.unwrap_or(0);
    }
}
