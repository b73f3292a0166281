//! core.c: what a run queue's clock means to tasks: less the time of interrupts, and scaled by the CPU's speed.

use super::Sched;
use crate::arch::Arch;
use crate::fair::load::OtherClasses;
use crate::features::Feature;
use crate::pelt::Pelt;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// core.c: update_rq_clock_task(). `delta` ns have passed on the queue's `clock`, which is up to date.
    ///
    /// Differs: interrupts and the hypervisor have one sum, so that what does not fit into `delta` waits for the next update in
    /// either case; the kernel forgets it of the hypervisor.
    #[inline]
    pub(super) fn update_rq_clock_task(&mut self, cpu: CpuId, delta: u64) {
        let irq_time = self.arch.irq_time(cpu).0;
        let rq = &mut self.rq[cpu];
        let irq_delta = irq_time.wrapping_sub(rq.prev_irq_time).min(delta);
        rq.clock_task += delta - irq_delta;
        if irq_delta != 0 {
            self.account_irq_time(cpu, irq_delta);
        }
        if self.kernel.pelt == Pelt::RunnableAvg {
            let scale = self.scale(cpu);
            let rq = &mut self.rq[cpu];
            let idle = rq.curr.is_none();
            rq.clock_pelt.update_rq_clock_pelt(delta - irq_delta, rq.clock, rq.clock_task, idle, scale);
        }
    }

    /// The part of `update_rq_clock_task()` that keeps time of interrupts.
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
