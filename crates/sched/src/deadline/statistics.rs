//! Schedstats of deadline tasks, since v5.16 as for real-time tasks. They cost nothing while schedstats are off.

use crate::arch::Arch;
use crate::core::Sched;
use crate::rt::RtStatistics;
use crate::sched::*;

impl<A: Arch> Sched<A> {
    pub(super) fn stats_wait_starts(&mut self, p: TaskId) {
        if self.kernel.rt.statistics == RtStatistics::Told {
            let (cfs, se) = self.statistics_of(p);
            self.update_stats_wait_start(cfs, se);
        }
    }

    /// deadline.c: update_stats_wait_start_dl() and update_stats_enqueue_dl().
    #[doc(alias = "update_stats_enqueue_dl")]
    #[doc(alias = "update_stats_enqueue_sleeper_dl")]
    pub(super) fn update_stats_wait_start_dl(&mut self, p: TaskId, flags: QueueFlags) {
        self.stats_wait_starts(p);
        if flags.wakeup && self.kernel.rt.statistics == RtStatistics::Told && self.schedstat_enabled() {
            let (cfs, se) = self.statistics_of(p);
            self.update_stats_enqueue_sleeper(cfs, se);
        }
    }

    /// deadline.c: update_stats_wait_end_dl().
    pub(super) fn update_stats_wait_end_dl(&mut self, p: TaskId) {
        if self.kernel.rt.statistics == RtStatistics::Told {
            let (cfs, se) = self.statistics_of(p);
            self.update_stats_wait_end(cfs, se);
        }
    }
}
