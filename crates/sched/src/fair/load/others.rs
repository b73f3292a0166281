//! Averages of the time of other classes and of interrupts, beside the fair class's: what a CPU has left for fair
//! tasks.

use super::OtherClasses;
use crate::arch::Arch;
use crate::core::Sched;
use crate::pelt;
use crate::sched::SchedClass;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// sched.h: sched_rt_avg_update(). Adds `rt_delta` ns of a real-time or deadline task, or of interrupts. Does
    /// nothing from v4.19 on.
    pub(crate) fn sched_rt_avg_update(&mut self, cpu: CpuId, rt_delta: u64) {
        if self.kernel.load.other_classes == OtherClasses::RtAvg {
            let freq = u64::from(self.scale(cpu).freq);
            self.rq[cpu].rt_avg += rt_delta * freq;
            self.sched_avg_update(cpu);
        }
    }

    /// pelt.c: update_rt_rq_load_avg(). `running`: a real-time task has run since the last update. Returns whether a
    /// period ended; does nothing until v4.18.
    pub fn update_rt_rq_load_avg(&mut self, cpu: CpuId, running: bool) -> bool {
        if self.kernel.load.other_classes == OtherClasses::RtAvg {
            return false;
        }
        let now = self.rq_clock_pelt(cpu);
        self.write_rq_avg_rt(cpu);
        let aged = pelt::update_rt_rq_load_avg(self.kernel.pelt, now, &mut self.rq[cpu].avg_rt, running);
        if aged {
            self.trace_pelt_rt_tp(cpu);
        }
        aged
    }

    /// pelt.c: update_dl_rq_load_avg(). The same for a deadline task.
    pub fn update_dl_rq_load_avg(&mut self, cpu: CpuId, running: bool) -> bool {
        if self.kernel.load.other_classes == OtherClasses::RtAvg {
            return false;
        }
        let now = self.rq_clock_pelt(cpu);
        self.write_rq_avg_dl(cpu);
        let aged = pelt::update_dl_rq_load_avg(self.kernel.pelt, now, &mut self.rq[cpu].avg_dl, running);
        if aged {
            self.trace_pelt_dl_tp(cpu);
        }
        aged
    }

    /// pelt.c: update_irq_load_avg(). `running` is the time of interrupts before now, in ns.
    pub(crate) fn update_irq_load_avg(&mut self, cpu: CpuId, running: u64) -> bool {
        let scale = self.scale(cpu);
        self.write_rq_avg_irq(cpu);
        let rq = &mut self.rq[cpu];
        let aged = pelt::update_irq_load_avg(rq.clock, scale, &mut rq.avg_irq, running);
        if aged {
            self.trace_pelt_irq_tp(cpu);
        }
        aged
    }

    /// sched.h: cpu_util_rt(). 1024 = a whole CPU.
    #[inline]
    pub fn cpu_util_rt(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].avg_rt.util_avg
    }

    /// sched.h: cpu_util_dl(). 1024 = a whole CPU.
    #[inline]
    pub fn cpu_util_dl(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].avg_dl.util_avg
    }

    /// sched.h: cpu_util_irq(). 1024 = a whole CPU.
    #[inline]
    pub fn cpu_util_irq(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].avg_irq.util_avg
    }

    /// fair.c: others_have_blocked(). Whether other classes or interrupts have anything left to decay.
    pub(crate) fn others_have_blocked(&self, cpu: CpuId) -> bool {
        self.cpu_util_rt(cpu) != 0 || self.cpu_util_dl(cpu) != 0 || self.cpu_util_irq(cpu) != 0
    }

    /// pelt.c: update_other_load_avgs(). Ages what other classes and interrupts have used; returns whether a period
    /// ended.
    ///
    /// Differs: hardware pressure (thermal pressure until v6.9) is zero.
    #[doc(alias = "__update_blocked_others")]
    pub(crate) fn update_other_load_avgs(&mut self, cpu: CpuId) -> bool {
        if self.kernel.load.other_classes == OtherClasses::RtAvg {
            return false;
        }
        let (realtime, deadline) = match self.curr_class(cpu) {
            SchedClass::Rt => (true, false),
            SchedClass::Dl => (false, true),
            SchedClass::Stop | SchedClass::Fair | SchedClass::Idle => (false, false),
        };
        let rt = self.update_rt_rq_load_avg(cpu, realtime);
        let dl = self.update_dl_rq_load_avg(cpu, deadline);
        rt | dl | self.update_irq_load_avg(cpu, 0)
    }
}
