//! fair.c: capacities of CPUs and groups. They are here and not with the load balancer because building domains needs
//! them.

use super::flags::OVERLAPPING;
use super::rules::{OverlapCapacity, SmtCapacity};
use super::*;
use units::PerCpu;

/// What update_group_capacity() reads and writes of the runqueues.
pub trait CpuCapacities {
    /// Stores `capacity_orig` as `rq->cpu_capacity_orig`, and what real-time tasks and interrupts leave of it, at least
    /// 1, as `rq->cpu_capacity`. Returns the latter. 1024 is a full CPU.
    fn update_cpu_capacity(&mut self, cpu: CpuId, capacity_orig: u64) -> u64;

    /// fair.c: capacity_of(): `rq->cpu_capacity`.
    fn capacity_of(&self, cpu: CpuId) -> u64;
}

/// Runqueues before anything has run.
///
/// Differs: this state is assumed when domains are rebuilt, too; what real-time tasks and interrupts leave counts again
/// from the load balancer's next update on.
pub(super) struct AtBoot {
    pub cpu_capacity: PerCpu<u64>,
    pub cpu_capacity_orig: PerCpu<u64>,
}

impl CpuCapacities for AtBoot {
    fn update_cpu_capacity(&mut self, cpu: CpuId, capacity_orig: u64) -> u64 {
        self.cpu_capacity_orig[cpu] = capacity_orig;
        self.cpu_capacity[cpu] = capacity_orig.max(1);
        self.cpu_capacity[cpu]
    }

    fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.cpu_capacity[cpu]
    }
}

/// The clock of load balancing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalanceClock {
    /// Now.
    pub jiffies: u64,
    /// Jiffies in a second.
    pub hz: u32,
    /// In jiffies.
    pub max_load_balance_interval: u64,
}

impl BalanceClock {
    /// The longest interval is a tenth of a second for each online CPU, as update_max_interval() sets it.
    #[doc(alias = "update_max_interval")]
    pub fn new(jiffies: u64, hz: u32, nr_online: u64) -> BalanceClock {
        BalanceClock { jiffies, hz, max_load_balance_interval: u64::from(hz) * nr_online / 10 }
    }

    /// time.c: msecs_to_jiffies(). Rounded up.
    pub fn msecs_to_jiffies(&self, msecs: u64) -> u64 {
        (msecs * u64::from(self.hz)).div_ceil(1000)
    }
}

impl Domains {
    /// sched.h: arch_scale_cpu_capacity(). With a domain of SMT siblings, the capacity that one of them counts as; 1024
    /// is a full CPU.
    ///
    /// Differs: kernels with `smt_gain` used the architecture's capacities instead of it, if there were any; none of
    /// these architectures had SMT.
    pub fn arch_scale_cpu_capacity(&self, sd: Option<SdId>, cpu: CpuId) -> u64 {
        let sd = sd.map(|sd| &self[sd]);
        match (self.rules.smt_capacity, sd) {
            (SmtCapacity::Gain, Some(sd)) if sd.flags.has(SdFlags::SD_SHARE_CPUCAPACITY) && sd.span_weight > 1 => {
                u64::from(sd.smt_gain / sd.span_weight)
            }
            _ => self.arch_capacity[cpu],
        }
    }

    /// fair.c: update_cpu_capacity().
    fn update_cpu_capacity(&mut self, sd: SdId, cpu: CpuId, rqs: &mut impl CpuCapacities) {
        let capacity = rqs.update_cpu_capacity(cpu, self.arch_scale_cpu_capacity(Some(sd), cpu));
        let sgc = self[self[sd].groups].sgc;
        let sgc = &mut self[sgc];
        (sgc.capacity, sgc.min_capacity, sgc.max_capacity) = (capacity, capacity, capacity);
    }

    /// fair.c: update_group_capacity(). The capacity of `cpu`'s own group in its domain `sd`.
    ///
    /// Differs: `min_capacity` and `max_capacity` are kept in all versions, also in those without these fields.
    pub fn update_group_capacity(&mut self, sd: SdId, cpu: CpuId, clock: BalanceClock, rqs: &mut impl CpuCapacities) {
        let interval = clock.msecs_to_jiffies(u64::from(self[sd].balance_interval));
        let next_update = clock.jiffies + interval.min(clock.max_load_balance_interval).max(1);
        let sg = self[sd].groups;
        let sgc = self[sg].sgc;
        self[sgc].next_update = next_update;

        let Some(child) = self[sd].child else {
            self.update_cpu_capacity(sd, cpu, rqs);
            return;
        };
        let (mut capacity, mut min_capacity, mut max_capacity) = (0, u64::MAX, 0);
        if self[child].flags.has(OVERLAPPING) {
            // The child's groups may extend beyond this one.
            for cpu in self.sched_group_span(sg).iter() {
                match self.rules.overlap_capacity {
                    OverlapCapacity::OfFirstGroups => {
                        capacity += match self.sd[cpu] {
                            Some(base) => self[self[self[base].groups].sgc].capacity,
                            None => rqs.capacity_of(cpu),
                        };
                        min_capacity = min_capacity.min(capacity);
                        max_capacity = max_capacity.max(capacity);
                    }
                    OverlapCapacity::OfCpus => {
                        let of_cpu = rqs.capacity_of(cpu);
                        capacity += of_cpu;
                        min_capacity = min_capacity.min(of_cpu);
                        max_capacity = max_capacity.max(of_cpu);
                    }
                }
            }
        } else {
            for sg in self.groups(child) {
                let sgc = &self[self[sg].sgc];
                capacity += sgc.capacity;
                min_capacity = min_capacity.min(sgc.min_capacity);
                max_capacity = max_capacity.max(sgc.max_capacity);
            }
        }
        let sgc = &mut self[sgc];
        (sgc.capacity, sgc.min_capacity, sgc.max_capacity) = (capacity, min_capacity, max_capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_round_up_to_jiffies() {
        let clock = |hz| BalanceClock::new(0, hz, 48);
        assert_eq!((clock(250).msecs_to_jiffies(8), clock(250).msecs_to_jiffies(9)), (2, 3));
        assert_eq!((clock(1000).msecs_to_jiffies(9), clock(100).msecs_to_jiffies(9)), (9, 1));
        assert_eq!(clock(250).max_load_balance_interval, 1200);
    }
}
