//! core.c: setting a group's quota, period and burst.

use super::Sched;
use super::cgroup::{Hierarchy, QuotaAbove};
use crate::arch::Arch;
use crate::errno::{Answer, Errno, Refusal};
use crate::fair::bandwidth::{RUNTIME_INF, Throttle};
use crate::sched::*;
use units::CpuId;

/// core.c: min_cfs_quota_period, in ns. Neither quota nor period may be shorter.
const MIN_CFS_QUOTA_PERIOD: u64 = 1_000_000;
/// core.c: max_cfs_quota_period. The longest period, in ns.
pub(crate) const MAX_CFS_QUOTA_PERIOD: u64 = 1_000_000_000;
/// sched.h: BW_SHIFT. A ratio of 1 is 2^20.
const BW_SHIFT: u32 = 20;
/// core.c: max_cfs_runtime (MAX_BW microseconds, v5.8), in ns.
const MAX_CFS_RUNTIME: u64 = ((1 << (64 - BW_SHIFT)) - 1) * 1000;

/// A group's limits, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    pub period: u64,
    /// [`RUNTIME_INF`]: no quota.
    pub quota: u64,
    pub burst: u64,
}

const fn invalid(why: &'static str) -> Refusal {
    Refusal::new(Errno::EINVAL, why)
}

impl Quota {
    /// Those checks of `tg_set_cfs_bandwidth()` that need only the numbers.
    fn check(&self) -> Answer {
        if self.quota < MIN_CFS_QUOTA_PERIOD {
            return Err(invalid("a quota is at least 1 ms"));
        }
        if self.period < MIN_CFS_QUOTA_PERIOD {
            return Err(invalid("a period is at least 1 ms"));
        }
        if self.period > MAX_CFS_QUOTA_PERIOD {
            return Err(invalid("a period is at most 1 s"));
        }
        if self.quota == RUNTIME_INF {
            return Ok(());
        }
        if self.quota > MAX_CFS_RUNTIME {
            return Err(invalid("a quota is at most 2^44 - 1 us"));
        }
        if self.burst > self.quota {
            return Err(invalid("a burst is at most the quota"));
        }
        if self.burst + self.quota > MAX_CFS_RUNTIME {
            return Err(invalid("burst and quota together are at most 2^44 - 1 us"));
        }
        Ok(())
    }
}

/// core.c: to_ratio(). The share `runtime / period`, 2^20 = all of it.
pub(crate) fn to_ratio(period: u64, runtime: u64) -> u64 {
    match (runtime, period) {
        (RUNTIME_INF, _) => 1 << BW_SHIFT,
        (_, 0) => 0,
        _ => (runtime << BW_SHIFT) / period,
    }
}

impl<A: Arch> Sched<A> {
    /// A group's current limits.
    pub fn quota(&self, tg: TgId) -> Quota {
        let cfs_b = &self.tg[tg].cfs_bandwidth;
        Quota { period: cfs_b.period, quota: cfs_b.quota, burst: cfs_b.burst }
    }

    /// core.c: tg_set_cfs_bandwidth(). The pool is refilled at once, and throttled queues go on.
    ///
    /// # Errors
    /// EINVAL for the root group, for a limit out of bounds, or (cgroup v1) for more than a group above may use or less
    /// than one below may.
    pub fn tg_set_cfs_bandwidth(&mut self, tg: TgId, limits: Quota) -> Answer {
        if tg == ROOT_TASK_GROUP {
            return Err(invalid("the root group has no quota"));
        }
        limits.check()?;
        self.__cfs_schedulable(tg, limits)?;
        let runtime_enabled = limits.quota != RUNTIME_INF;
        let runtime_was_enabled = self.tg[tg].cfs_bandwidth.quota != RUNTIME_INF;
        if runtime_enabled && !runtime_was_enabled {
            self.cfs_bandwidth_usage_inc();
        }
        self.cfs_b_lock(tg);
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        cfs_b.period = limits.period;
        cfs_b.quota = limits.quota;
        cfs_b.burst = if self.kernel.bandwidth.refill.bursts() { limits.burst } else { 0 };
        self.__refill_cfs_bandwidth_runtime(tg);
        if runtime_enabled {
            self.start_cfs_bandwidth(tg);
        }
        self.cfs_b_unlock(tg);
        for cpu in (0..self.nr_cpus()).map(CpuId::new).filter(|&cpu| self.rq[cpu].online).collect::<Vec<_>>() {
            let cfs = self.tg[tg].cfs_rq[cpu.index()];
            self.rq_lock(cpu);
            let throttle = self.kernel.bandwidth.throttle;
            let queue = self.cfs_rq_runtime_mut(cfs);
            queue.runtime_enabled = runtime_enabled;
            // A queue without any runtime would not be unthrottled.
            queue.runtime_remaining = i64::from(throttle.by_task());
            if queue.throttled {
                if throttle == Throttle::Task {
                    self.update_rq_clock(cpu);
                }
                self.unthrottle_cfs_rq(cfs);
            }
            self.rq_unlock(cpu);
        }
        if runtime_was_enabled && !runtime_enabled {
            self.cfs_bandwidth_usage_dec();
        }
        Ok(())
    }

    /// core.c: __cfs_schedulable(), tg_cfs_schedulable_down(), normalize_cfs_quota(). Computes every group's tightest
    /// quota as it would be if `tg` had these `limits`.
    #[doc(alias = "tg_cfs_schedulable_down")]
    #[doc(alias = "normalize_cfs_quota")]
    fn __cfs_schedulable(&mut self, tg: TgId, limits: Quota) -> Answer {
        // The kernel computes in microseconds here.
        let us = |ns: u64| if ns == RUNTIME_INF { RUNTIME_INF } else { ns / 1000 };
        let mut tightest: Vec<(TgId, u64)> = Vec::new();
        let refuses =
            self.cgroup_hierarchy == Hierarchy::Legacy || self.kernel.cgroup.quota_above == QuotaAbove::Refused;
        for group in self.groups_below_root() {
            let Quota { period, quota, .. } = if group == tg { limits } else { self.quota(group) };
            let own = if quota == RUNTIME_INF { RUNTIME_INF } else { to_ratio(us(period), us(quota)) };
            let parent = self.tg[group].parent.expect("a group below the root");
            let above = tightest.iter().find(|&&(tg, _)| tg == parent).map_or(RUNTIME_INF, |&(_, quota)| quota);
            if own != RUNTIME_INF && own > above && refuses {
                return Err(invalid(
                    "a group may not use a greater part of a CPU than a group above it (cgroup v1, and v2 before v4.16)",
                ));
            }
            tightest.push((group, own.min(above)));
        }
        for (group, quota) in tightest {
            self.tg[group].cfs_bandwidth.hierarchical_quota = quota;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_the_kernels() {
        let ok = Quota { period: 100_000_000, quota: 50_000_000, burst: 0 };
        assert_eq!(ok.check(), Ok(()));
        assert_eq!(Quota { quota: RUNTIME_INF, burst: 1 << 60, ..ok }.check(), Ok(()));
        for wrong in [
            Quota { quota: 999_999, ..ok },
            Quota { period: 999_999, ..ok },
            Quota { period: 1_000_000_001, ..ok },
            Quota { quota: MAX_CFS_RUNTIME + 1, ..ok },
            Quota { burst: 50_000_001, ..ok },
            Quota { quota: MAX_CFS_RUNTIME, burst: 1, ..ok },
        ] {
            assert_eq!(wrong.check().map_err(|refusal| refusal.errno), Err(Errno::EINVAL), "{wrong:?}");
        }
    }

    #[test]
    fn a_ratio_of_one_is_two_to_the_twentieth() {
        assert_eq!(to_ratio(100_000, 50_000), 1 << 19);
        assert_eq!((to_ratio(0, 5), to_ratio(5, RUNTIME_INF)), (0, 1 << 20));
    }
}
