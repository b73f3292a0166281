//! The boost of a CPU whose tasks wait for devices, of the kernels that keep it per CPU and double it.

use super::{CpufreqPolicy, IOWAIT_BOOST_MIN, Schedutil, SugovCpu};
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::cpufreq::UpdateFlags;

impl<A: Arch> Sched<A> {
    /// The initial boost: sg_cpu->min, or IOWAIT_BOOST_MIN.
    pub(super) fn least_boost(&self, policy: &CpufreqPolicy) -> u32 {
        match self.kernel.cpufreq.schedutil {
            Schedutil::LowestBoost => {
                let share = u64::from(SCHED_CAPACITY_SCALE) * u64::from(policy.cpuinfo_min_freq);
                (share / u64::from(policy.cpuinfo_max_freq)) as u32
            }
            _ => IOWAIT_BOOST_MIN,
        }
    }

    /// cpufreq_schedutil.c: sugov_iowait_reset().
    pub(super) fn sugov_iowait_reset(
        &self,
        sg_cpu: &mut SugovCpu,
        least: u32,
        time: u64,
        set_iowait_boost: bool,
    ) -> bool {
        if time.saturating_sub(sg_cpu.last_update) <= self.tick_nsec {
            return false;
        }
        sg_cpu.iowait_boost = if set_iowait_boost { least } else { 0 };
        sg_cpu.iowait_boost_pending = set_iowait_boost;
        true
    }

    /// cpufreq_schedutil.c: sugov_iowait_boost(). Doubles on each wakeup from a device, beginning with `least`.
    pub(super) fn sugov_iowait_boost(&self, sg_cpu: &mut SugovCpu, least: u32, time: u64, flags: UpdateFlags) {
        if sg_cpu.iowait_boost != 0 && self.sugov_iowait_reset(sg_cpu, least, time, flags.iowait) {
            return;
        }
        if !flags.iowait || sg_cpu.iowait_boost_pending {
            return;
        }
        sg_cpu.iowait_boost_pending = true;
        sg_cpu.iowait_boost = match sg_cpu.iowait_boost {
            0 => least,
            boost => (boost << 1).min(SCHED_CAPACITY_SCALE),
        };
    }

    /// cpufreq_schedutil.c: sugov_iowait_apply(). The boost on a CPU of that capacity; halves it if it was not requested
    /// again since the last time.
    pub(super) fn sugov_iowait_apply(&self, sg_cpu: &mut SugovCpu, least: u32, time: u64, max_cap: u64) -> u64 {
        if sg_cpu.iowait_boost == 0 || self.sugov_iowait_reset(sg_cpu, least, time, false) {
            return 0;
        }
        if !sg_cpu.iowait_boost_pending {
            sg_cpu.iowait_boost >>= 1;
            if sg_cpu.iowait_boost < least {
                sg_cpu.iowait_boost = 0;
                return 0;
            }
        }
        sg_cpu.iowait_boost_pending = false;
        (u64::from(sg_cpu.iowait_boost) * max_cap) >> 10
    }
}
