//! The memory accesses of searches for an idle CPU.

use super::Path;
use crate::arch::Arch;
use crate::core::{Sched, WakeList};
use crate::fair::wake::SchedIdleCpu;
use crate::layout::{Layout, RqLine};
use crate::sched::{Arena, CfsRq, CfsRqId, Rq, TaskId};
use crate::versions::Kernel;
use units::{CpuId, CpuMask, PerCpu};

/// What a search executes for each CPU: it walks on to it, and looks at it.
const LOOK: [Path; 2] = [Path::cpumask_next_wrap, Path::idle_cpu];

/// The runqueues as a search for an idle CPU sees them, while it walks along a mask of the same scheduler.
pub(crate) struct Glance<'a, A: Arch> {
    pub arch: &'a mut A,
    pub layout: &'a Layout,
    pub rq: &'a PerCpu<Rq>,
    pub running_idle: &'a CpuMask,
    pub cfs_rq: &'a Arena<CfsRqId, CfsRq>,
    /// Whether a CPU that has only SCHED_IDLE tasks counts as idle ...
    pub sched_idle: bool,
    /// ... but not to the searching task, because it is SCHED_IDLE itself.
    pub refuses_sched_idle: bool,
    /// The cache line that says whether wakeups are queued for a CPU.
    pub pending: RqLine,
    /// The searching CPU.
    pub by: CpuId,
}

impl<'a, A: Arch> Glance<'a, A> {
    #[inline]
    pub(crate) fn new(
        arch: &'a mut A,
        layout: &'a Layout,
        rq: &'a PerCpu<Rq>,
        running_idle: &'a CpuMask,
        cfs_rq: &'a Arena<CfsRqId, CfsRq>,
        kernel: &Kernel,
        by: CpuId,
    ) -> Glance<'a, A> {
        // As a last resort, such a CPU serves no search as an idle one does.
        let sched_idle = !matches!(kernel.wake.sched_idle_cpu, SchedIdleCpu::Busy | SchedIdleCpu::LastResort);
        let pending = pending_line(kernel.core.wake_list);
        Glance { arch, layout, rq, running_idle, cfs_rq, sched_idle, refuses_sched_idle: false, pending, by }
    }

    /// [`Sched::idle_cpu`], for the CPU that a walk has come to.
    #[inline(always)]
    pub(crate) fn idle_cpu(&mut self, cpu: CpuId) -> bool {
        LOOK.into_iter().for_each(|path| self.arch.path(self.by, path));
        self.arch.read(self.by, self.layout.rq(cpu, RqLine::Curr));
        debug_assert_eq!(self.running_idle.contains(cpu), self.rq[cpu].curr.is_none());
        self.running_idle.contains(cpu) && self.nobody_waits(cpu)
    }

    /// The rest of `idle_cpu()`: whether nothing waits for a CPU that runs its idle task.
    #[inline(never)]
    fn nobody_waits(&mut self, cpu: CpuId) -> bool {
        self.arch.read(self.by, self.layout.rq(cpu, RqLine::NrRunning));
        self.arch.read(self.by, self.layout.rq(cpu, self.pending));
        let rq = &self.rq[cpu];
        rq.nr_running == 0 && rq.wake_list.is_empty()
    }

    /// fair.c: choose_idle_cpu(), in later kernels `available_idle_cpu(cpu) || sched_idle_cpu(cpu)`.
    #[doc(alias = "choose_idle_cpu")]
    #[inline(always)]
    pub(crate) fn is_free(&mut self, cpu: CpuId) -> bool {
        self.idle_cpu(cpu) || self.choose_sched_idle_rq(cpu)
    }

    /// fair.c: choose_sched_idle_rq(). Whether the CPU has only SCHED_IDLE tasks, and such a CPU counts as idle.
    #[inline(always)]
    pub(crate) fn choose_sched_idle_rq(&mut self, cpu: CpuId) -> bool {
        self.sched_idle && self.sched_idle_cpu(cpu) && !self.refuses_sched_idle
    }

    /// Whether [`Glance::is_free`] would reject all these CPUs after a look at what they run.
    #[inline]
    pub(crate) fn looks_in_vain(&self, cpus: &CpuMask) -> bool {
        !self.sched_idle && !cpus.intersects(self.running_idle)
    }

    /// Charges the calls of [`Glance::is_free`] for CPUs that it would all reject.
    #[inline]
    pub(crate) fn pay_for_looks(&mut self, cpus: impl Iterator<Item = CpuId>) {
        if A::CHARGES {
            let layout = self.layout;
            self.arch.look(self.by, LOOK, cpus.map(|cpu| layout.rq(cpu, RqLine::Curr)));
        }
    }

    /// fair.c: sched_idle_cpu().
    #[inline(never)]
    pub(crate) fn sched_idle_cpu(&mut self, cpu: CpuId) -> bool {
        self.arch.read(self.by, self.layout.rq(cpu, RqLine::NrRunning));
        self.arch.read(self.by, self.layout.rq(cpu, RqLine::Cfs));
        let rq = &self.rq[cpu];
        rq.nr_running != 0 && rq.nr_running == self.cfs_rq[rq.cfs].idle_h_nr_running
    }
}

/// The line of `rq->ttwu_pending`; kernels before v5.8 look at the list itself.
#[inline]
fn pending_line(wake_list: WakeList) -> RqLine {
    match wake_list {
        WakeList::RunQueue => RqLine::WakeList,
        WakeList::CallSingle => RqLine::Pending,
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c / core.c: idle_cpu(), available_idle_cpu(): looks at another CPU's curr, nr_running and wake_list.
    #[inline]
    pub(crate) fn idle_cpu(&mut self, cpu: CpuId) -> bool {
        // [`Glance::idle_cpu`], creating a glance only if more than `curr` has to be looked at.
        self.path(Path::idle_cpu);
        self.read_rq_curr(cpu);
        self.running_idle.contains(cpu) && self.glance().nobody_waits(cpu)
    }

    /// [`Glance::is_free`], for task `p`: `available_idle_cpu(cpu)`, or [`Sched::choose_sched_idle_rq`].
    #[inline]
    pub(crate) fn is_free(&mut self, cpu: CpuId, p: TaskId) -> bool {
        self.idle_cpu(cpu) || self.choose_sched_idle_rq(cpu, p)
    }

    /// fair.c: choose_sched_idle_rq(). `sched_idle_cpu(cpu)` in kernels that treat such a CPU as idle.
    #[inline]
    pub(crate) fn choose_sched_idle_rq(&mut self, cpu: CpuId, p: TaskId) -> bool {
        self.kernel.wake.sched_idle_cpu != SchedIdleCpu::Busy
            && self.glance().sched_idle_cpu(cpu)
            && !self.refuses_sched_idle(p)
    }

    /// Whether this task treats a CPU that has only SCHED_IDLE tasks as busy, being SCHED_IDLE itself.
    #[inline]
    pub(crate) fn refuses_sched_idle(&self, p: TaskId) -> bool {
        self.kernel.wake.sched_idle_cpu == SchedIdleCpu::AsIdleForOthers && self.task_has_idle_policy(p)
    }

    /// [`Glance::sched_idle_cpu`].
    #[inline]
    pub(crate) fn sched_idle_cpu(&mut self, cpu: CpuId) -> bool {
        self.glance().sched_idle_cpu(cpu)
    }

    #[inline]
    fn glance(&mut self) -> Glance<'_, A> {
        let Sched { arch, layout, rq, running_idle, cfs_rq, kernel, this_cpu, .. } = self;
        Glance::new(arch, layout, rq, running_idle, cfs_rq, kernel, *this_cpu)
    }

    /// Looks whether wakeups are queued for a CPU.
    #[inline]
    pub(crate) fn read_ttwu_pending(&mut self, cpu: CpuId) {
        self.read(self.layout.rq(cpu, pending_line(self.kernel.core.wake_list)));
    }

    /// Changes `ttwu_pending`; kernels before v5.8 look at the list itself.
    #[inline]
    pub(crate) fn write_ttwu_pending(&mut self, cpu: CpuId) {
        if self.kernel.core.wake_list == WakeList::CallSingle {
            self.write(self.layout.rq(cpu, RqLine::Pending));
        }
    }
}
