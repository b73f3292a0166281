//! core.c: resched_curr() and resched_curr_lazy(): how a CPU is told to reschedule, and how urgently.

use super::Sched;
use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::trace::Ipi;
use units::CpuId;

behaviour! {
    /// How fair tasks ask for the CPU that preempt another one at a wakeup, or when its slice is over.
    pub enum ReschedLazy = "core.resched_lazy" {
        Absent = "absent", since "v2.6.23", commit "", "as everybody does: as soon as the kernel can be preempted";
        Lazy = "lazy", since "v6.13", commit "7c70cb94d29c",
            "under preempt=lazy by a flag of its own, for which nobody is interrupted: it counts on the way to user mode, \
             and the next tick makes it urgent";
    }
}

behaviour! {
    /// Whether a task that waits for its CPU, and comes to another group, may preempt what runs there.
    pub enum MoveQueued = "core.move_queued" {
        Waits = "waits", since "v2.6.24", commit "", "no: it waits in the group as it would have before";
        Preempts = "preempts", since "v7.0", commit "", "yes, as if it woke there";
    }
}

behaviour! {
    /// What ends an idle CPU's state when all idle CPUs are to choose one anew (wake_up_if_idle()).
    pub enum WakeIfIdle = "core.wake_if_idle" {
        Interrupt = "interrupt", since "v3.18", commit "",
            "an interrupt, unless the CPU polls its flags: it stays in the idle loop";
        Resched = "resched", since "v5.16", commit "8850cb663b5c", "it is told to reschedule, and leaves the idle loop for a moment";
    }
}

/// A scheduler whose idle CPUs can be made to choose an idle state anew.
pub trait WakesIdle {
    /// A process on `by` wakes all other CPUs that idle. If `by` itself idles, the process has run beside that, and `by`
    /// goes idle anew as well.
    fn wake_up_all_idle_cpus(&mut self, _by: CpuId) {}
}

impl<A: Arch> WakesIdle for Sched<A> {
    /// kernel/smp.c: wake_up_all_idle_cpus().
    fn wake_up_all_idle_cpus(&mut self, by: CpuId) {
        self.on_cpu(by);
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            if cpu != by && self.cpu_online_mask.contains(cpu) {
                self.wake_up_if_idle(cpu);
            }
        }
        if self.rq[by].curr.is_none() {
            self.resched_curr(by);
        }
    }
}

/// A scheduler that can ask a task to give way without urgency. Others need not implement anything.
pub trait LazilyPreempted {
    /// Whether what runs on `cpu` is to give way when it returns to user mode, unless something more urgent comes before.
    #[inline]
    fn need_resched_lazy(&self, _cpu: CpuId) -> bool {
        false
    }
    /// Whether what runs on `cpu` is to give way then or sooner.
    fn need_resched_any(&self, cpu: CpuId) -> bool;
    /// Sets whether the kernel is preempted lazily (`preempt=lazy`).
    fn sched_dynamic_update(&mut self, _lazy: bool) {}
}

impl<A: Arch> LazilyPreempted for Sched<A> {
    #[inline]
    fn need_resched_lazy(&self, cpu: CpuId) -> bool {
        self.rq[cpu].need_resched_lazy
    }

    #[inline]
    fn need_resched_any(&self, cpu: CpuId) -> bool {
        let rq = &self.rq[cpu];
        rq.need_resched | rq.need_resched_lazy
    }

    /// core.c: sched_dynamic_update(), for `preempt=lazy` or any other model.
    fn sched_dynamic_update(&mut self, lazy: bool) {
        self.preempt_lazy = lazy;
    }
}

/// TIF_NEED_RESCHED, TIF_NEED_RESCHED_LAZY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tif {
    NeedResched,
    NeedReschedLazy,
}

impl<A: Arch> Sched<A> {
    /// core.c: dynamic_preempt_lazy().
    #[inline]
    fn dynamic_preempt_lazy(&self) -> bool {
        self.preempt_lazy && self.kernel.core.resched_lazy == ReschedLazy::Lazy
    }

    /// core.c: get_lazy_tif_bit().
    #[inline]
    fn get_lazy_tif_bit(&self) -> Tif {
        if self.dynamic_preempt_lazy() { Tif::NeedReschedLazy } else { Tif::NeedResched }
    }

    /// core.c: resched_curr(). Marks what runs on `cpu` for rescheduling, and notifies that CPU if it is another one.
    pub(crate) fn resched_curr(&mut self, cpu: CpuId) {
        self.__resched_curr(cpu, Tif::NeedResched);
    }

    /// core.c: resched_curr_lazy(). The same, when a fair task is to make way for another fair task: under lazy preemption the
    /// running one may stay in the kernel until it leaves by itself, or a tick comes.
    pub(crate) fn resched_curr_lazy(&mut self, cpu: CpuId) {
        let tif = self.get_lazy_tif_bit();
        self.__resched_curr(cpu, tif);
    }

    /// core.c: __resched_curr(), since v6.13; before, resched_curr() itself. For the idle task it is always urgent.
    #[inline]
    fn __resched_curr(&mut self, cpu: CpuId, tif: Tif) {
        let rq = &self.rq[cpu];
        let lazy = tif == Tif::NeedReschedLazy && rq.curr.is_some();
        if rq.need_resched || (lazy && rq.need_resched_lazy) {
            return;
        }
        self.path(Path::resched_curr);
        self.write_need_resched(cpu);
        if lazy {
            self.rq[cpu].need_resched_lazy = true;
            return;
        }
        self.rq[cpu].need_resched = true;
        if cpu == self.this_cpu {
            return;
        }
        if self.rq[cpu].polling {
            self.wake_idle_without_ipi(cpu);
        } else {
            self.arch.send_ipi(self.this_cpu, cpu, Ipi::Reschedule);
        }
    }

    /// core.c: wake_up_if_idle().
    fn wake_up_if_idle(&mut self, cpu: CpuId) {
        if self.rq[cpu].curr.is_some() {
            return;
        }
        if self.rq[cpu].polling || self.kernel.core.wake_if_idle == WakeIfIdle::Resched {
            self.resched_curr(cpu);
        } else {
            self.arch.send_ipi(self.this_cpu, cpu, Ipi::Reschedule);
        }
    }

    /// The part of sched_tick() since v6.13: a task that has stayed in the kernel since the last tick is preempted there.
    #[inline]
    pub(super) fn promote_lazy_resched(&mut self, cpu: CpuId) {
        if self.rq[cpu].need_resched_lazy {
            self.resched_curr(cpu);
        }
    }
}

#[cfg(test)]
mod tests;
