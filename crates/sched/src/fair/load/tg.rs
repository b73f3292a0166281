//! fair.c: a group's load over all CPUs (`tg->load_avg`), which every queue of the group corrects from time to time; since v7.3 also how
//! many of its tasks are runnable (`tg->runnable_avg`).

use super::{OfflineLoad, TgLoadAvg};
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::group::GroupShares;
use crate::sched::{CfsRqId, ROOT_TASK_GROUP, TgId};
use units::{CpuId, unlikely};

/// NSEC_PER_MSEC: a queue corrects its group's sum at most once in this time, in ns.
const RATE_LIMIT: u64 = 1_000_000;

impl<A: Arch> Sched<A> {
    /// fair.c: update_tg_load_avg(). Adds to the group's sum what changed here since the last time, if that is more
    /// than a 64th.
    #[inline]
    pub(crate) fn update_tg_load_avg(&mut self, cfs: CfsRqId) {
        let cfs_rq = &self.cfs_rq[cfs];
        if cfs_rq.tg == ROOT_TASK_GROUP {
            return;
        }
        if self.kernel.load.offline == OfflineLoad::Cleared && !self.rq[cfs_rq.rq].online {
            return;
        }
        let now = match self.kernel.load.tg_load_avg {
            TgLoadAvg::EveryChange => 0,
            TgLoadAvg::OncePerMillisecond | TgLoadAvg::OncePerMillisecondOfQueue => {
                let now = self.tg_clock(cfs_rq.rq);
                if now.wrapping_sub(self.cfs_rq[cfs].last_update_tg_load_avg) < RATE_LIMIT {
                    return;
                }
                now
            }
        };
        self.read_cfs_contrib_apart(cfs);
        let cfs_rq = &mut self.cfs_rq[cfs];
        let delta = cfs_rq.avg.load_avg.wrapping_sub(cfs_rq.tg_load_avg_contrib) as i64;
        let load_moved = delta.unsigned_abs() > cfs_rq.tg_load_avg_contrib / 64;
        if unlikely(self.kernel.load.group_shares == GroupShares::Concurrent) {
            self.update_tg_averages(cfs, delta, load_moved, now);
        } else if load_moved {
            cfs_rq.tg_load_avg_contrib = cfs_rq.avg.load_avg;
            cfs_rq.last_update_tg_load_avg = now;
            let tg = cfs_rq.tg;
            self.tg_load_avg_add(tg, delta);
        }
    }

    /// The end of `update_tg_load_avg()` since v7.3: both sums are corrected, if either is off by more than a 64th.
    fn update_tg_averages(&mut self, cfs: CfsRqId, load: i64, load_moved: bool, now: u64) {
        let cfs_rq = &mut self.cfs_rq[cfs];
        let runnable = cfs_rq.avg.runnable_avg.wrapping_sub(cfs_rq.tg_runnable_avg_contrib) as i64;
        if load_moved || runnable.unsigned_abs() > cfs_rq.tg_runnable_avg_contrib / 64 {
            cfs_rq.tg_load_avg_contrib = cfs_rq.avg.load_avg;
            cfs_rq.tg_runnable_avg_contrib = cfs_rq.avg.runnable_avg;
            cfs_rq.last_update_tg_load_avg = now;
            let tg = cfs_rq.tg;
            self.tg_load_avg_add(tg, load);
            self.tg_runnable_avg_add(tg, runnable);
        }
    }

    /// The clock by which corrections are rate-limited, in ns.
    fn tg_clock(&mut self, cpu: CpuId) -> u64 {
        match self.kernel.load.tg_load_avg {
            TgLoadAvg::EveryChange | TgLoadAvg::OncePerMillisecond => self.clock_of(cpu),
            TgLoadAvg::OncePerMillisecondOfQueue => self.rq[cpu].clock,
        }
    }

    /// fair.c: clear_tg_load_avg(). Takes this queue out of the group's sum.
    fn clear_tg_load_avg(&mut self, tg: TgId, cfs: CfsRqId) {
        if tg == ROOT_TASK_GROUP {
            return;
        }
        let now = self.tg_clock(self.cfs_rq[cfs].rq);
        let cfs_rq = &mut self.cfs_rq[cfs];
        let delta = 0i64.wrapping_sub(cfs_rq.tg_load_avg_contrib as i64);
        let runnable = 0i64.wrapping_sub(cfs_rq.tg_runnable_avg_contrib as i64);
        (cfs_rq.tg_load_avg_contrib, cfs_rq.tg_runnable_avg_contrib) = (0, 0);
        cfs_rq.last_update_tg_load_avg = now;
        self.tg_load_avg_add(tg, delta);
        if self.kernel.load.group_shares == GroupShares::Concurrent {
            self.tg_runnable_avg_add(tg, runnable);
        }
    }

    /// fair.c: clear_tg_offline_cfs_rqs(). A CPU goes offline: no group counts its queue there any more. Does nothing
    /// until v6.7. The caller holds the lock of the CPU's runqueue, whose clock is up to date.
    pub fn clear_tg_offline_cfs_rqs(&mut self, cpu: CpuId) {
        if self.kernel.load.offline == OfflineLoad::Kept {
            return;
        }
        let groups = self.tg.iter().filter(|(_, tg)| !tg.cfs_rq.is_empty());
        let queues: Vec<(TgId, CfsRqId)> = groups.map(|(id, tg)| (id, tg.cfs_rq[cpu.index()])).collect();
        for (tg, cfs) in queues {
            self.clear_tg_load_avg(tg, cfs);
        }
    }
}
