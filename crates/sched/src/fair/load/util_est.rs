//! fair.c: where estimated utilization is kept: in each task, and summed over a CPU's queued tasks in its root queue.

use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::pelt::{self, UtilEstimate};
use crate::sched::TaskId;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// Whether utilization is estimated. A kernel that lacks the feature, but is given the behaviour alone, estimates.
    #[inline]
    pub(crate) fn estimates_util(&self) -> bool {
        self.kernel.load.util_est != UtilEstimate::Absent && self.on_or_lacking(Feature::UTIL_EST)
    }

    fn on_or_lacking(&self, feature: Feature) -> bool {
        self.features.sched_feat(feature) || !self.features.has(feature)
    }

    /// fair.c: _task_util_est(). 1024 = a whole CPU.
    #[inline]
    pub fn _task_util_est(&self, p: TaskId) -> u64 {
        self.se[self.task[p].se].avg.util_est._task_util_est(self.kernel.load.util_est)
    }

    /// fair.c: task_util_est(). The task's expected utilization: at least its current one.
    #[inline]
    pub fn task_util_est(&self, p: TaskId) -> u64 {
        self.se[self.task[p].se].avg.util_avg.max(self._task_util_est(p))
    }

    /// fair.c: util_est_enqueue().
    #[inline]
    pub(crate) fn util_est_enqueue(&mut self, cpu: CpuId, p: TaskId) {
        if self.estimates_util() {
            let (form, task) = (self.kernel.load.util_est, self.se[self.task[p].se].avg.util_est);
            self.cfs_rq[self.rq[cpu].cfs].avg.util_est.util_est_enqueue(form, task);
            self.trace_sched_util_est_cfs_tp(cpu);
        }
    }

    /// fair.c: util_est_dequeue(), for a task about to leave its queue: not until v5.4.
    #[inline]
    pub(crate) fn util_est_dequeue_before(&mut self, cpu: CpuId, p: TaskId) {
        let slow = [UtilEstimate::EnqueuedAndSlowEwmaAnyCpu, UtilEstimate::EnqueuedAndSlowEwma];
        if !slow.contains(&self.kernel.load.util_est) {
            self.util_est_dequeue(cpu, p);
        }
    }

    /// The same until v5.4, for a task that has left its queue.
    #[cold]
    #[inline(never)]
    fn util_est_dequeue_after(&mut self, cpu: CpuId, p: TaskId) {
        self.util_est_dequeue(cpu, p);
    }

    #[inline(always)]
    fn util_est_dequeue(&mut self, cpu: CpuId, p: TaskId) {
        if self.estimates_util() {
            let (form, task) = (self.kernel.load.util_est, self.se[self.task[p].se].avg.util_est);
            self.cfs_rq[self.rq[cpu].cfs].avg.util_est.util_est_dequeue(form, task);
            self.trace_sched_util_est_cfs_tp(cpu);
        }
    }

    /// fair.c: util_est_update(), for a task about to leave its queue: from v6.12 to v6.18.
    #[inline]
    pub(crate) fn util_est_update_before(&mut self, cpu: CpuId, p: TaskId, task_sleep: bool) {
        if task_sleep && matches!(self.kernel.load.util_est, UtilEstimate::Ewma | UtilEstimate::EwmaAnyCpu) {
            self.util_est_update(cpu, p);
        }
    }

    /// fair.c: util_est_update(), for a task that has left its queue: until v6.11. Until v5.4 it is part of util_est_dequeue(), which
    /// comes only now.
    #[inline]
    pub(crate) fn util_est_update_after(&mut self, cpu: CpuId, p: TaskId, task_sleep: bool) {
        match self.kernel.load.util_est {
            UtilEstimate::EnqueuedAndSlowEwmaAnyCpu | UtilEstimate::EnqueuedAndSlowEwma => {
                self.util_est_dequeue_after(cpu, p);
            }
            UtilEstimate::EnqueuedAndEwma => {}
            _ => return,
        }
        if task_sleep {
            self.util_est_update(cpu, p);
        }
    }

    /// fair.c: util_est_update(), called in `update_load_avg()` (UPDATE_UTIL_EST): in v7.2.
    #[inline]
    pub(crate) fn util_est_update_in_load_avg(&mut self, p: TaskId) {
        if self.kernel.load.util_est == UtilEstimate::EwmaInUpdate {
            self.util_est_update(self.task[p].cpu, p);
        }
    }

    fn util_est_update(&mut self, cpu: CpuId, p: TaskId) {
        if self.estimates_util() {
            self.path(Path::util_est_update);
            let capacity = u64::from(self.topology.capacity[cpu]);
            let fastup = self.on_or_lacking(Feature::UTIL_EST_FASTUP);
            let avg = &mut self.se[self.task[p].se].avg;
            pelt::util_est_update(self.kernel.load.util_est, avg, capacity, fastup);
            self.trace_sched_util_est_se_tp(p);
        }
    }
}
