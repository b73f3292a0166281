//! fair.c: loads and utilizations of a whole CPU, for placement and balancing. 1024 is one nice-0 task that always
//! runs, or a full CPU.

use crate::arch::Arch;
use crate::core::Sched;
use crate::pelt::Pelt;
use crate::sched::*;
use crate::topology::EnergyAware;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// Whether the task's load is part of the CPU's: it last ran there, and is not new.
    fn contributes(&self, cpu: CpuId, p: TaskId) -> bool {
        self.task[p].cpu == cpu && self.se[self.task[p].se].avg.last_update_time != 0
    }

    /// fair.c: cpu_load(). The load of a CPU, including its sleepers (v5.5).
    #[inline]
    pub fn cpu_load(&self, cpu: CpuId) -> u64 {
        self.cfs_rq_load_avg(self.rq[cpu].cfs)
    }

    /// fair.c: cpu_load_without(). The load without the task (v5.5).
    pub fn cpu_load_without(&mut self, cpu: CpuId, p: TaskId) -> u64 {
        let load = self.cpu_load(cpu);
        if self.contributes(cpu, p) { load.saturating_sub(self.task_h_load(p)) } else { load }
    }

    /// fair.c: cpu_runnable(). The share of time that tasks of the CPU run or wait (v5.7).
    ///
    /// Differs: 0 in kernels that do not track it.
    #[inline]
    pub fn cpu_runnable(&self, cpu: CpuId) -> u64 {
        match self.kernel.pelt {
            Pelt::ByPeriod | Pelt::Accumulate => 0,
            Pelt::RunnableAvg => self.cfs_rq_runnable_avg(self.rq[cpu].cfs),
        }
    }

    /// fair.c: cpu_runnable_without(). The same without the task (v5.7).
    pub fn cpu_runnable_without(&self, cpu: CpuId, p: TaskId) -> u64 {
        let runnable = self.cpu_runnable(cpu);
        if self.contributes(cpu, p) { runnable.saturating_sub(self.task_runnable(p)) } else { runnable }
    }

    /// fair.c: task_runnable().
    #[inline]
    pub fn task_runnable(&self, p: TaskId) -> u64 {
        self.se[self.task[p].se].avg.runnable_avg
    }

    /// fair.c: cpu_util(). What fair tasks would use of the CPU if `p` went to `dst_cpu` (`None`: away), at most its
    /// capacity; with `boost` also the time that they wait (v6.5).
    #[doc(alias = "cpu_util_next")]
    pub fn cpu_util(&self, cpu: CpuId, p: Option<TaskId>, dst_cpu: Option<CpuId>, boost: bool) -> u64 {
        let comes = p.filter(|&p| self.task[p].cpu != cpu && dst_cpu == Some(cpu));
        let goes = p.filter(|&p| self.task[p].cpu == cpu && dst_cpu != Some(cpu));
        let with = |of_cpu: u64, of_task: &dyn Fn(TaskId) -> u64| {
            (of_cpu + comes.map_or(0, of_task)).saturating_sub(goes.map_or(0, of_task))
        };
        let avg = &self.cfs_rq[self.rq[cpu].cfs].avg;
        let of_tasks =
            !matches!(self.kernel.wake.energy, EnergyAware::ByBoostedFrequency | EnergyAware::ByPerformanceAlone);
        let runs = if boost && !of_tasks { avg.util_avg.max(self.cpu_runnable(cpu)) } else { avg.util_avg };
        let mut util = with(runs, &|p| self.task_util(p));
        if boost && of_tasks {
            util = util.max(with(self.cpu_runnable(cpu), &|p| self.task_runnable(p)));
        }
        if self.estimates_util() {
            let mut util_est = u64::from(avg.util_est.enqueued);
            if let Some(p) = p {
                let current = self.rq[self.this_cpu].curr == Some(p);
                if dst_cpu == Some(cpu) {
                    util_est += self._task_util_est(p);
                } else if self.task[p].on_rq == OnRq::Queued || current {
                    util_est = util_est.saturating_sub(self._task_util_est(p));
                }
            }
            util = util.max(util_est);
        }
        util.min(self.capacity_orig_of(cpu))
    }

    /// fair.c: cpu_util_cfs(). What fair tasks use of the CPU, or are expected to, at most its capacity.
    #[inline]
    #[doc(alias = "cpu_util")]
    pub fn cpu_util_cfs(&self, cpu: CpuId) -> u64 {
        let avg = &self.cfs_rq[self.rq[cpu].cfs].avg;
        let util =
            if self.estimates_util() { avg.util_avg.max(u64::from(avg.util_est.enqueued)) } else { avg.util_avg };
        util.min(self.capacity_orig_of(cpu))
    }

    /// fair.c: cpu_util_cfs_boost(). The same, or including the time that tasks wait, if that is more (v6.5).
    #[inline]
    pub fn cpu_util_cfs_boost(&self, cpu: CpuId) -> u64 {
        self.cpu_util_cfs(cpu).max(self.cpu_runnable(cpu)).min(self.capacity_orig_of(cpu))
    }

    /// fair.c: cpu_util_without(). What fair tasks use of the CPU without this one.
    #[doc(alias = "cpu_util_wake")]
    pub fn cpu_util_without(&self, cpu: CpuId, p: TaskId) -> u64 {
        if self.contributes(cpu, p) { self.cpu_util(cpu, Some(p), None, false) } else { self.cpu_util_cfs(cpu) }
    }
}
