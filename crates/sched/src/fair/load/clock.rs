//! The clock by which load averages age: it advances with the CPU's speed, and stands still while a queue is throttled.

use super::{FrequencyInvariance, LoadClock, LostIdle, MigrateLag};
use crate::access::Path;
use crate::arch::Arch;
use crate::core::{Boot, Sched};
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::pelt::{self, Scale, load_avg_is_decayed};
use crate::sched::*;
use units::{CpuId, unlikely};

/// Whether nothing scales the averages on a machine booted like this: every CPU has full capacity, and none reports a
/// frequency below the highest.
pub(crate) fn is_full_scale(boot: &Boot, scales_frequency: bool) -> bool {
    (boot.kernel.load.frequency == FrequencyInvariance::Unknown || !scales_frequency)
        && boot.topology.capacity.iter().all(|(_, &capacity)| capacity == SCHED_CAPACITY_SCALE)
}

/// The clock of a CPU that the averages of its queues follow, in ns.
#[inline]
pub(crate) fn running_clock(clock: LoadClock, rq: &Rq) -> u64 {
    match clock {
        LoadClock::Task => rq.clock_task,
        LoadClock::Pelt => rq.clock_pelt.rq_clock_pelt(),
    }
}

/// The clock of a queue's averages, in ns.
#[inline]
pub(super) fn queue_clock(clock: LoadClock, rq: &Rq, cfs_rq: &CfsRq) -> u64 {
    let clock = match clock {
        _ if cfs_rq.pelt_clock_throttled => cfs_rq.throttled_clock_pelt,
        _ => running_clock(clock, rq),
    };
    clock.wrapping_sub(cfs_rq.throttled_clock_pelt_time).max(1)
}

impl<A: Arch> Sched<A> {
    /// pelt.h: cfs_rq_clock_pelt(). In ns; the queue's `clock_task` before [`LoadClock::Pelt`].
    /// Differs: never 0, which the averages read as *not attached*. A real clock has run for a while before the first
    /// task; a simulated one is at 0 when the first tasks come.
    #[inline]
    #[doc(alias = "cfs_rq_clock_task")]
    pub(crate) fn cfs_rq_clock_pelt(&self, cfs: CfsRqId) -> u64 {
        let cfs_rq = &self.cfs_rq[cfs];
        queue_clock(self.kernel.load.clock, &self.rq[cfs_rq.rq], cfs_rq)
    }

    /// pelt.h: rq_clock_pelt(). In ns; the CPU's `clock_task` before [`LoadClock::Pelt`].
    pub(crate) fn rq_clock_pelt(&self, cpu: CpuId) -> u64 {
        running_clock(self.kernel.load.clock, &self.rq[cpu])
    }

    /// How fast a CPU works, as far as the architecture tells.
    #[inline]
    pub(crate) fn scale(&self, cpu: CpuId) -> Scale {
        if self.full_scale { Scale::FULL } else { self.scale_of_part(cpu) }
    }

    /// How much of a unit of time on a CPU averages take in: all of it, where their clock is as slow as the CPU.
    #[inline]
    pub(super) fn scale_of_time(&self, cpu: CpuId) -> Scale {
        match self.kernel.load.clock {
            LoadClock::Task => self.scale(cpu),
            LoadClock::Pelt => Scale::FULL,
        }
    }

    /// The scale of a CPU that does not have full capacity at full speed.
    #[cold]
    fn scale_of_part(&self, cpu: CpuId) -> Scale {
        let freq = match self.kernel.load.frequency {
            FrequencyInvariance::Unknown => SCHED_CAPACITY_SCALE,
            FrequencyInvariance::ToldByDrivers | FrequencyInvariance::ToldByIntel | FrequencyInvariance::Told => {
                self.arch.arch_scale_freq_capacity(cpu)
            }
        };
        Scale { freq, cpu: self.topology.capacity[cpu] }
    }

    /// fair.c: migrate_se_pelt_lag(). Ages a task that leaves an idle CPU by the time during which that CPU's clock was
    /// not updated.
    pub(super) fn migrate_se_pelt_lag(&mut self, se: SeId) {
        if load_avg_is_decayed(&self.se[se].avg) {
            return;
        }
        let cfs_rq = &self.cfs_rq[self.se[se].cfs_rq];
        let (cpu, throttled, last_update_time) = (cfs_rq.rq, cfs_rq.throttled_pelt_idle, cfs_rq.avg.last_update_time);
        self.read_rq_curr(cpu);
        if self.rq[cpu].curr.is_some() || throttled == u64::MAX {
            return;
        }
        self.read_rq_clock(cpu);
        let sched_clock = self.clock_of(cpu);
        let now = self.rq[cpu].clock_pelt.guess(throttled, last_update_time, sched_clock);
        let (load, scale) = (self.load_of(se), self.scale_of_time(cpu));
        pelt::__update_load_avg_blocked_se(self.kernel.pelt, now, scale, &mut self.se[se].avg, load);
    }

    /// The end of pick_next_task_fair() on the fast path of pick_next_task(): nothing is left.
    #[inline]
    pub(crate) fn fair_class_is_empty(&mut self, cpu: CpuId) {
        if unlikely(self.kernel.load.lost_idle == LostIdle::AfterFair) {
            self.update_idle_rq_clock_pelt(cpu);
        }
    }

    /// The part of set_next_task_idle() for load tracking.
    #[inline]
    pub(crate) fn idle_is_picked(&mut self, cpu: CpuId) {
        if self.kernel.load.lost_idle == LostIdle::Always {
            self.update_idle_rq_clock_pelt(cpu);
        }
    }

    /// pelt.h: update_idle_rq_clock_pelt(). The CPU goes idle: its clock catches up with real time.
    #[inline]
    pub(crate) fn update_idle_rq_clock_pelt(&mut self, cpu: CpuId) {
        if self.kernel.load.clock == LoadClock::Pelt {
            let cfs = self.cfs_rq[self.rq[cpu].cfs].avg.util_sum;
            let rq = &mut self.rq[cpu];
            let (rt, dl) = (rq.avg_rt.util_sum, rq.avg_dl.util_sum);
            rq.clock_pelt.update_idle_rq_clock_pelt(rq.clock, rq.clock_task, cfs, rt, dl);
        }
    }

    /// pelt.h: update_idle_cfs_rq_clock_pelt(). The queue is empty: records how far its clock lags behind its CPU's.
    #[inline]
    pub(crate) fn update_idle_cfs_rq_clock_pelt(&mut self, cfs: CfsRqId) {
        if self.kernel.load.migrate_lag == MigrateLag::Ignored {
            return;
        }
        let cfs_rq = &mut self.cfs_rq[cfs];
        let stands_still = cfs_rq.pelt_clock_throttled;
        cfs_rq.throttled_pelt_idle = if stands_still { u64::MAX } else { cfs_rq.throttled_clock_pelt_time };
    }

    /// clock.c: sched_clock_cpu(). The clock of any CPU, in ns.
    #[doc(alias = "sched_clock_cpu")]
    pub(super) fn clock_of(&mut self, cpu: CpuId) -> u64 {
        self.path(Path::sched_clock_cpu);
        self.arch.sched_clock(cpu).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_topology::CpuTopology;
    use crate::testing::Hand;
    use crate::versions::{V4_5_RC1, V4_15, V5_4, V5_10};

    #[test]
    fn until_v5_6_averages_know_the_clock_where_its_driver_tells_it() {
        let booted = |kernel, driver_tells| {
            let arch = Hand { driver_tells, freq: vec![512], ..Hand::default() };
            let s = Sched::new(arch, Boot::new(kernel, CpuTopology::symmetric(1, 1, 1, 1, 1), 250));
            (s.kernel.load.frequency, s.scale(CpuId(0)).freq)
        };
        for kernel in [V4_15, V5_4] {
            assert_eq!(booted(kernel, true), (FrequencyInvariance::ToldByDrivers, 512), "{}", kernel.name);
            assert_eq!(booted(kernel, false), (FrequencyInvariance::Unknown, 1024), "{}", kernel.name);
        }
        assert_eq!(booted(V4_5_RC1, true), (FrequencyInvariance::Unknown, 1024));
        assert_eq!(booted(V5_10, false), (FrequencyInvariance::ToldByIntel, 512));
    }
}
