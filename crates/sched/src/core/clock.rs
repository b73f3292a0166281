//! core.c: the runqueue's clocks as tasks see them: without the time of interrupts, and scaled by the CPU's speed.

use super::Sched;
use crate::arch::Arch;
use crate::fair::load::{LoadClock, OtherClasses};
use crate::features::Feature;
use units::{CpuId, Ns};

impl<A: Arch> Sched<A> {
    /// core.c: update_rq_clock_task(). `delta` ns have passed on the queue's `clock`, which is up to date.
    ///
    /// Differs: interrupts and the hypervisor share one sum, so what does not fit into `delta` waits for the next
    /// update in either case; the kernel drops such a rest for the hypervisor.
    #[inline]
    pub(super) fn update_rq_clock_task(&mut self, cpu: CpuId, delta: u64) {
        let irq_time = self.arch.irq_time(cpu).0;
        let rq = &mut self.rq[cpu];
        let mut delta = delta;
        if irq_time != rq.prev_irq_time {
            let irq_delta = irq_time.wrapping_sub(rq.prev_irq_time).min(delta);
            delta -= irq_delta;
            rq.clock_task += delta;
            self.account_irq_time(cpu, irq_delta);
        } else {
            rq.clock_task += delta;
        }
        if self.kernel.load.clock == LoadClock::Pelt {
            self.update_rq_clock_pelt(cpu, delta);
        }
    }

    /// core.c: task_sched_runtime(), for what runs on `cpu`.
    ///
    /// Differs: the read updates neither the queue's clock nor the task's own account, so that it changes nothing; time
    /// of interrupts since the last update still counts.
    pub(crate) fn task_sched_runtime(&self, cpu: CpuId) -> Ns {
        let rq = &self.rq[cpu];
        let curr = rq.curr.expect("a task asks for its own time");
        let se = &self.se[self.task[curr].se];
        let clock_task = rq.clock_task + self.arch.sched_clock(cpu).0.saturating_sub(rq.clock);
        Ns(se.sum_exec_runtime + clock_task.saturating_sub(se.exec_start))
    }

    /// pelt.h: update_rq_clock_pelt().
    #[inline(never)]
    fn update_rq_clock_pelt(&mut self, cpu: CpuId, delta: u64) {
        let scale = self.scale(cpu);
        let rq = &mut self.rq[cpu];
        let idle = rq.curr.is_none();
        rq.clock_pelt.update_rq_clock_pelt(delta, rq.clock, rq.clock_task, idle, scale);
    }

    /// The part of `update_rq_clock_task()` that accounts the time of interrupts.
    #[cold]
    fn account_irq_time(&mut self, cpu: CpuId, irq_delta: u64) {
        self.rq[cpu].prev_irq_time += irq_delta;
        if self.sched_feat(Feature::NONTASK_CAPACITY) {
            match self.kernel.load.other_classes {
                OtherClasses::RtAvg => self.sched_rt_avg_update(cpu, irq_delta),
                OtherClasses::Pelt => {
                    self.update_irq_load_avg(cpu, irq_delta);
                }
            }
        }
    }
}
