//! Bare tracepoints of load tracking, which kernels have since v5.4: hooks for modules, which cost nothing unless
//! something listens ([`Arch::tracing_bare`]).

use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::*;
use crate::trace::Event;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// A group's path: that of its session's autogroup, or in the cgroup file system.
    pub fn task_group_path(&self, tg: TgId) -> String {
        self.autogroup_path(tg).unwrap_or_else(|| self.cgroup_path(tg))
    }

    /// `pelt_cfs_tp`
    #[inline]
    pub(crate) fn trace_pelt_cfs_tp(&mut self, cfs: CfsRqId) {
        if self.arch.tracing_bare() {
            let cfs_rq = &self.cfs_rq[cfs];
            let (cpu, avg) = (cfs_rq.rq, (&cfs_rq.avg).into());
            self.trace(Event::PeltCfs { cpu, path: self.task_group_path(cfs_rq.tg), avg });
        }
    }

    /// `pelt_se_tp`
    #[inline]
    pub(crate) fn trace_pelt_se_tp(&mut self, se: SeId) {
        if self.arch.tracing_bare() {
            let entity = &self.se[se];
            let queue = &self.cfs_rq[entity.cfs_rq];
            // A group's entity is reported with the group's own queue, a task's with the queue it is on.
            let group = entity.my_q.map_or(queue.tg, |my_q| self.cfs_rq[my_q].tg);
            let (cpu, task, avg) = (queue.rq, entity.task, (&entity.avg).into());
            self.trace(Event::PeltSe { cpu, path: self.task_group_path(group), task, avg });
        }
    }

    /// `pelt_rt_tp`
    #[inline]
    pub(crate) fn trace_pelt_rt_tp(&mut self, cpu: CpuId) {
        if self.arch.tracing_bare() {
            self.trace(Event::PeltRt { cpu, avg: (&self.rq[cpu].avg_rt).into() });
        }
    }

    /// `pelt_dl_tp`
    #[inline]
    pub(crate) fn trace_pelt_dl_tp(&mut self, cpu: CpuId) {
        if self.arch.tracing_bare() {
            self.trace(Event::PeltDl { cpu, avg: (&self.rq[cpu].avg_dl).into() });
        }
    }

    /// `pelt_irq_tp`
    #[inline]
    pub(crate) fn trace_pelt_irq_tp(&mut self, cpu: CpuId) {
        if self.arch.tracing_bare() {
            self.trace(Event::PeltIrq { cpu, avg: (&self.rq[cpu].avg_irq).into() });
        }
    }

    /// `sched_util_est_cfs_tp`
    #[inline]
    pub(crate) fn trace_sched_util_est_cfs_tp(&mut self, cpu: CpuId) {
        if self.arch.tracing_bare() {
            let estimate = (&self.cfs_rq[self.rq[cpu].cfs].avg).into();
            self.trace(Event::SchedUtilEstCfs { cpu, path: self.task_group_path(ROOT_TASK_GROUP), estimate });
        }
    }

    /// `sched_util_est_se_tp`
    #[inline]
    pub(crate) fn trace_sched_util_est_se_tp(&mut self, p: TaskId) {
        if self.arch.tracing_bare() {
            let entity = &self.se[self.task[p].se];
            let queue = &self.cfs_rq[entity.cfs_rq];
            let (cpu, estimate) = (queue.rq, (&entity.avg).into());
            self.trace(Event::SchedUtilEstSe { cpu, path: self.task_group_path(queue.tg), task: p, estimate });
        }
    }

    /// `sched_cpu_capacity_tp`
    #[inline]
    pub(crate) fn trace_sched_cpu_capacity_tp(&mut self, cpu: CpuId) {
        if self.arch.tracing_bare() {
            let rq = &self.rq[cpu];
            let (capacity, capacity_orig) = (rq.cpu_capacity, rq.cpu_capacity_orig);
            self.trace(Event::SchedCpuCapacity { cpu, capacity, capacity_orig });
        }
    }

    /// `sched_overutilized_tp`
    #[inline]
    pub(crate) fn trace_sched_overutilized_tp(&mut self, cpu: CpuId, overutilized: bool) {
        if self.arch.tracing_bare() {
            let span = self.root_domain(cpu).span.clone();
            self.trace(Event::SchedOverutilized { overutilized, span });
        }
    }

    /// `sched_update_nr_running_tp`
    #[inline]
    pub(crate) fn trace_sched_update_nr_running_tp(&mut self, cpu: CpuId, change: i32) {
        if self.arch.tracing_bare() {
            self.trace(Event::SchedUpdateNrRunning { cpu, change, nr_running: self.rq[cpu].nr_running });
        }
    }
}
