//! fair.c, "Scheduling class statistics methods": what schedstats record of an entity: how long it waited, slept, was
//! blocked. All of it depends on [`Sched::schedstat_enabled`]: while that is off, nothing is read, written or charged.

use crate::arch::Arch;
use crate::core::Sched;
use crate::layout::Statistic;
use crate::profile::ProfileType;
use crate::sched::*;
use crate::stats::UnseenWait;
use crate::trace::Event;
use fentry::fentry;
use units::{Ns, unlikely};

impl SchedEntity {
    /// fair.c: update_stats_curr_start(). From now on, the CPU's time is charged to this entity.
    #[inline]
    pub(crate) fn update_stats_curr_start(&mut self, rq: &Rq) {
        self.exec_start = rq.clock_task;
    }
}

impl<A: Arch> Sched<A> {
    /// The part of `update_curr()` that records the longest time between two calls, and the total run time of the
    /// queue's entities.
    #[inline]
    pub(crate) fn count_exec(&mut self, cfs: CfsRqId, curr: SeId, delta_exec: u64) {
        if unlikely(self.schedstat_enabled()) {
            self.count_exec_max(cfs, curr, delta_exec);
        }
    }

    fn count_exec_max(&mut self, cfs: CfsRqId, curr: SeId, delta_exec: u64) {
        self.write_statistic(curr, Statistic::ExecMax);
        let statistics = self.statistics(curr);
        statistics.exec_max = statistics.exec_max.max(delta_exec);
        self.cfs_rq[cfs].exec_clock += delta_exec;
    }

    /// fair.c: update_stats_wait_start().
    #[inline]
    pub(crate) fn update_stats_wait_start(&mut self, cfs: CfsRqId, se: SeId) {
        if unlikely(self.schedstat_enabled()) {
            self.count_wait_start(cfs, se);
        }
    }

    /// While a task migrates, `wait_start` holds what it has waited so far, so that the wait continues.
    #[fentry(update_stats_wait_start)]
    fn count_wait_start(&mut self, cfs: CfsRqId, se: SeId) {
        self.write_statistic(se, Statistic::WaitStart);
        let now = self.rq[self.cfs_rq[cfs].rq].clock;
        let migrating = self.is_migrating(se);
        let statistics = self.statistics(se);
        let waited = if migrating && now > statistics.wait_start { statistics.wait_start } else { 0 };
        statistics.wait_start = now - waited;
    }

    /// fair.c: update_stats_wait_end().
    #[inline]
    pub(crate) fn update_stats_wait_end(&mut self, cfs: CfsRqId, se: SeId) {
        if unlikely(self.schedstat_enabled()) {
            self.count_wait_end(cfs, se);
        }
    }

    #[fentry(update_stats_wait_end)]
    fn count_wait_end(&mut self, cfs: CfsRqId, se: SeId) {
        if self.kernel.unseen_wait == UnseenWait::Ignored && self.statistics(se).wait_start == 0 {
            self.read_statistic(se, Statistic::WaitStart);
            return;
        }
        self.write_statistic(se, Statistic::WaitStart);
        self.write_statistic(se, Statistic::WaitSum);
        let now = self.rq[self.cfs_rq[cfs].rq].clock;
        let migrating = self.is_migrating(se);
        let statistics = self.statistics(se);
        let delta = now.wrapping_sub(statistics.wait_start);
        if migrating {
            statistics.wait_start = delta;
            return;
        }
        statistics.wait_max = statistics.wait_max.max(delta);
        statistics.wait_count += 1;
        statistics.wait_sum = statistics.wait_sum.wrapping_add(delta);
        statistics.wait_start = 0;
        if let Some(task) = self.se[se].task
            && unlikely(self.arch.tracing())
        {
            self.trace(Event::SchedStatWait { task, delay: Ns(delta) });
        }
    }

    fn is_migrating(&self, se: SeId) -> bool {
        self.se[se].task.is_some_and(|p| self.task[p].on_rq == OnRq::Migrating)
    }

    /// fair.c: update_stats_enqueue().
    #[inline]
    pub(crate) fn update_stats_enqueue(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags) {
        if !self.schedstat_enabled() {
            return;
        }
        if self.cfs_rq[cfs].curr != Some(se) {
            self.count_wait_start(cfs, se);
        }
        if flags.wakeup {
            self.update_stats_enqueue_sleeper(cfs, se);
        }
    }

    /// fair.c: update_stats_enqueue_sleeper() (enqueue_sleeper() until v4.6).
    #[fentry(enqueue_sleeper)]
    #[doc(alias = "enqueue_sleeper")]
    pub(crate) fn update_stats_enqueue_sleeper(&mut self, cfs: CfsRqId, se: SeId) {
        let now = self.rq[self.cfs_rq[cfs].rq].clock;
        let SchedStatistics { sleep_start, block_start, .. } = *self.statistics(se);
        if sleep_start == 0 && block_start == 0 {
            self.read_statistic(se, Statistic::SleepStart);
            return;
        }
        // The load that decides and the stores behind it cost one miss between them.
        self.write_statistic(se, Statistic::SleepStart);
        let task = self.se[se].task;
        if sleep_start != 0 {
            let delta = since(now, sleep_start);
            let statistics = self.statistics(se);
            statistics.sleep_max = statistics.sleep_max.max(delta);
            statistics.sleep_start = 0;
            statistics.sum_sleep_runtime += delta;
            if let Some(task) = task {
                self.account_scheduler_latency(task, delta >> 10, true);
                if unlikely(self.arch.tracing()) {
                    self.trace(Event::SchedStatSleep { task, delay: Ns(delta) });
                }
            }
        }
        if block_start != 0 {
            self.count_blocked(se, task, since(now, block_start));
        }
    }

    /// The second half of `update_stats_enqueue_sleeper()`.
    fn count_blocked(&mut self, se: SeId, task: Option<TaskId>, delta: u64) {
        let iowait = task.is_some_and(|p| self.task[p].in_iowait);
        let statistics = self.statistics(se);
        statistics.block_max = statistics.block_max.max(delta);
        statistics.block_start = 0;
        statistics.sum_sleep_runtime += delta;
        statistics.sum_block_runtime += delta;
        if iowait {
            statistics.iowait_sum += delta;
            statistics.iowait_count += 1;
            self.write_statistic(se, Statistic::WaitSum);
        }
        if let Some(task) = task
            && unlikely(self.arch.tracing())
        {
            if iowait {
                self.trace(Event::SchedStatIowait { task, delay: Ns(delta) });
            }
            self.trace(Event::SchedStatBlocked { task, delay: Ns(delta) });
        }
        if let Some(task) = task {
            if self.profiles(ProfileType::Sleep)
                && let Some(&place) = self.task_cold[task].wchan.last()
            {
                // 2^20 ns stand for a millisecond.
                self.profile_hits(ProfileType::Sleep, place, delta >> 20);
            }
            self.account_scheduler_latency(task, delta >> 10, false);
        }
    }

    /// fair.c: update_stats_dequeue(). From here on a task sleeps or is blocked.
    #[inline]
    pub(crate) fn update_stats_dequeue(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags) {
        if !self.schedstat_enabled() {
            return;
        }
        if self.cfs_rq[cfs].curr != Some(se) {
            self.count_wait_end(cfs, se);
        }
        if flags.sleep
            && let Some(p) = self.se[se].task
        {
            self.count_sleep_start(cfs, se, p);
        }
    }

    #[fentry(update_stats_dequeue)]
    pub(crate) fn count_sleep_start(&mut self, cfs: CfsRqId, se: SeId, p: TaskId) {
        self.write_statistic(se, Statistic::SleepStart);
        let now = self.rq[self.cfs_rq[cfs].rq].clock;
        let state = self.task[p].state;
        let statistics = self.statistics(se);
        match state {
            TaskState::Interruptible => statistics.sleep_start = now,
            TaskState::Uninterruptible => statistics.block_start = now,
            TaskState::Running | TaskState::Waking | TaskState::New | TaskState::Dead => {}
        }
    }

    /// The part of `set_next_entity()` that records the longest slice, if the other entities of the runqueue
    /// weigh at least as much.
    pub(crate) fn update_slice_max(&mut self, cfs: CfsRqId, se: SeId) {
        let entity = &self.se[se];
        if self.rq[self.cfs_rq[cfs].rq].load.weight < 2 * entity.load.weight {
            return;
        }
        let slice = entity.sum_exec_runtime - entity.prev_sum_exec_runtime;
        self.write_statistic(se, Statistic::SliceMax);
        let statistics = self.statistics(se);
        statistics.slice_max = statistics.slice_max.max(slice);
    }
}

/// The clocks of two CPUs may differ: a negative time counts as zero.
#[inline]
fn since(now: u64, start: u64) -> u64 {
    let delta = now.wrapping_sub(start);
    if (delta as i64) < 0 { 0 } else { delta }
}
