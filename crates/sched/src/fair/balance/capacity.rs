//! fair.c: capacities of CPUs and groups, as balancing reads and updates them. 1024 is a full CPU.
//!
//! update_group_capacity() itself is in `topology`, which needs it to build domains.

use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::fair::load::OtherClasses;
use crate::sched::Rq;
use crate::topology::{BalanceClock, CpuCapacities, SdId, SgId};
use fentry::fentry;
use units::{CpuId, PerCpu};

/// fair.c: capacity_margin. A group whose capacity is less by no more than this, in units of 1/1024, is not smaller
/// (1280: 20%).
const CAPACITY_MARGIN: u64 = 1280;

const SCALE: u64 = SCHED_CAPACITY_SCALE as u64;

/// The runqueues, for update_group_capacity().
struct RunQueues<'a> {
    rq: &'a mut PerCpu<Rq>,
    other_classes: OtherClasses,
    /// `sched_avg_period()`, in ns.
    sched_avg_period: u64,
}

impl CpuCapacities for RunQueues<'_> {
    /// The part of update_cpu_capacity() that concerns the runqueue.
    fn update_cpu_capacity(&mut self, cpu: CpuId, capacity_orig: u64) -> u64 {
        let rq = &mut self.rq[cpu];
        rq.cpu_capacity_orig = capacity_orig;
        let capacity = match self.other_classes {
            OtherClasses::RtAvg => capacity_orig * scale_rt_capacity_rt_avg(rq, self.sched_avg_period) / SCALE,
            OtherClasses::Pelt => scale_rt_capacity_pelt(rq, capacity_orig),
        };
        rq.cpu_capacity = capacity.max(1);
        rq.cpu_capacity
    }

    fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].cpu_capacity
    }
}

/// fair.c: scale_rt_capacity() until v4.18. What real-time tasks and interrupts leave of a CPU of 1024.
fn scale_rt_capacity_rt_avg(rq: &Rq, sched_avg_period: u64) -> u64 {
    let since = rq.clock.wrapping_sub(rq.age_stamp) as i64;
    let total = sched_avg_period + since.max(0) as u64;
    let used = rq.rt_avg / total;
    SCALE.saturating_sub(used).max(1)
}

/// fair.c: scale_rt_capacity(). What other classes and interrupts leave of the CPU; the share of interrupts is taken
/// from everything (scale_irq_capacity()).
///
/// Differs: there is no thermal pressure.
fn scale_rt_capacity_pelt(rq: &Rq, max: u64) -> u64 {
    let irq = rq.avg_irq.util_avg;
    let used = rq.avg_rt.util_avg + rq.avg_dl.util_avg;
    if irq >= max || used >= max { 1 } else { (max - used) * (max - irq) / max }
}

impl<A: Arch> Sched<A> {
    /// fair.c: capacity_of(). The capacity left for fair tasks.
    #[inline]
    pub(crate) fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].cpu_capacity
    }

    /// fair.c: capacity_orig_of().
    #[inline]
    pub(crate) fn capacity_orig_of(&self, cpu: CpuId) -> u64 {
        self.rq[cpu].cpu_capacity_orig
    }

    /// The clock of load balancing at this time.
    pub(in crate::fair) fn balance_clock(&self, jiffies: u64) -> BalanceClock {
        BalanceClock { jiffies, hz: self.hz as u32, max_load_balance_interval: self.balance.max_load_balance_interval }
    }

    /// core.c: sched_avg_period(). In ns.
    pub(crate) fn sched_avg_period(&self) -> u64 {
        self.sysctl.sched_time_avg * 1_000_000 / 2
    }

    /// Makes update_group_capacity() update the group of `cpu` itself in its domain `sd`.
    #[fentry(update_group_capacity)]
    pub(super) fn renew_group_capacity(&mut self, sd: SdId, cpu: CpuId) {
        let clock = self.balance_clock(self.jiffies());
        self.write_group_capacity(self.domains[self.domains[sd].groups].sgc);
        let mut run_queues = RunQueues {
            other_classes: self.kernel.load.other_classes,
            sched_avg_period: self.sched_avg_period(),
            rq: &mut self.rq,
        };
        self.domains.update_group_capacity(sd, cpu, clock, &mut run_queues);
        if self.domains[sd].child.is_none() {
            self.trace_sched_cpu_capacity_tp(cpu);
        }
    }

    /// fair.c: check_cpu_capacity(). Whether real-time tasks and interrupts take a noticeable part of the CPU.
    pub(in crate::fair) fn check_cpu_capacity(&self, cpu: CpuId, sd: SdId) -> bool {
        self.capacity_of(cpu) * u64::from(self.domains[sd].imbalance_pct) < self.capacity_orig_of(cpu) * 100
    }

    /// fair.c: group_smaller_min_cpu_capacity(). Whether the CPUs of `sg` are noticeably smaller than those of `reference`,
    /// by the smallest of each.
    #[doc(alias = "group_smaller_cpu_capacity")]
    pub(super) fn group_smaller_min_cpu_capacity(&self, sg: SgId, reference: SgId) -> bool {
        let min_capacity = |sg: SgId| self.domains[self.domains[sg].sgc].min_capacity;
        min_capacity(sg) * CAPACITY_MARGIN < min_capacity(reference) * SCALE
    }

    /// fair.c: group_smaller_max_cpu_capacity(). The same by the biggest CPU of each.
    pub(super) fn group_smaller_max_cpu_capacity(&self, sg: SgId, reference: SgId) -> bool {
        let max_capacity = |sg: SgId| self.domains[self.domains[sg].sgc].max_capacity;
        max_capacity(sg) * CAPACITY_MARGIN < max_capacity(reference) * SCALE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_tasks_lower_what_is_left() {
        let period = 500_000_000;
        // rt_avg is time in ns times 1024: a quarter of the window.
        let rq = Rq { rt_avg: period / 4 * 1024, ..Rq::default() };
        assert_eq!(scale_rt_capacity_rt_avg(&rq, period), 768);
        // The window grows by the time since rt_avg was last aged.
        let rq = Rq { clock: period, ..rq };
        assert_eq!(scale_rt_capacity_rt_avg(&rq, period), 896);
        // A clock behind the stamp counts as no time.
        let rq = Rq { clock: 0, age_stamp: 5, ..rq };
        assert_eq!(scale_rt_capacity_rt_avg(&rq, period), 768);
        // A capacity of 0 still counts as 1.
        let rq = Rq { rt_avg: period * 2048, ..rq };
        assert_eq!(scale_rt_capacity_rt_avg(&rq, period), 1);
    }

    #[test]
    fn other_classes_lower_what_is_left_by_their_utilization() {
        let mut rq = Rq::default();
        (rq.avg_rt.util_avg, rq.avg_dl.util_avg) = (200, 56);
        assert_eq!(scale_rt_capacity_pelt(&rq, 1024), 768);
        // Interrupts take an eighth of what is left.
        rq.avg_irq.util_avg = 128;
        assert_eq!(scale_rt_capacity_pelt(&rq, 1024), 672);
        assert_eq!((scale_rt_capacity_pelt(&rq, 256), scale_rt_capacity_pelt(&rq, 128)), (1, 1));
    }

    #[test]
    fn capacity_is_stored_and_never_zero() {
        let mut rq = PerCpu::from_fn(1, |_| Rq { rt_avg: 1000 * 1024, ..Rq::default() });
        let mut run_queues = RunQueues { rq: &mut rq, other_classes: OtherClasses::RtAvg, sched_avg_period: 1000 };
        assert_eq!(run_queues.update_cpu_capacity(CpuId(0), 589), 1);
        assert_eq!(run_queues.capacity_of(CpuId(0)), 1);
        assert_eq!(rq[CpuId(0)].cpu_capacity_orig, 589);
    }
}
