//! How a queue that has used up its runtime is throttled and unthrottled; whether the queue itself or its tasks leave
//! is a behaviour.

use super::{NewGroupThrottled, Throttle};
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::*;
use fentry::fentry;
use units::{CpuId, unlikely};

impl<A: Arch> Sched<A> {
    /// fair.c: throttle_cfs_rq(). Returns false if there was runtime after all.
    #[fentry]
    pub(crate) fn throttle_cfs_rq(&mut self, cfs: CfsRqId) -> bool {
        match self.kernel.bandwidth.throttle {
            Throttle::Queue => self.throttle_cfs_rq_queue(cfs),
            Throttle::TaskOncePicked | Throttle::Task => self.throttle_cfs_rq_task(cfs),
        }
    }

    /// fair.c: unthrottle_cfs_rq(). The queue's lock is held.
    #[fentry]
    pub(crate) fn unthrottle_cfs_rq(&mut self, cfs: CfsRqId) {
        match self.kernel.bandwidth.throttle {
            Throttle::Queue => self.unthrottle_cfs_rq_queue(cfs),
            Throttle::TaskOncePicked | Throttle::Task => self.unthrottle_cfs_rq_task(cfs),
        }
    }

    /// Whether the queue is throttled and has left the queue above, which does not count what is below it.
    #[inline]
    pub(crate) fn queue_is_off(&self, cfs: CfsRqId) -> bool {
        self.cfs_rq_throttled(cfs) && self.kernel.bandwidth.throttle == Throttle::Queue
    }

    /// Whether this is true of the queue or of one above it.
    #[inline]
    pub(crate) fn hierarchy_is_off(&self, cfs: CfsRqId) -> bool {
        self.throttled_hierarchy(cfs) && self.kernel.bandwidth.throttle == Throttle::Queue
    }

    /// Whether a task that was just queued may not run, because its queue or the task itself is throttled.
    #[inline]
    pub(crate) fn enqueue_was_throttled(&self, p: TaskId) -> bool {
        unlikely(self.cfs_bandwidth_used())
            && match self.kernel.bandwidth.throttle {
                Throttle::Queue => self.throttled_hierarchy(self.se[self.task[p].se].cfs_rq),
                Throttle::TaskOncePicked | Throttle::Task => self.task_is_throttled(p),
            }
    }

    /// The beginning of `throttle_cfs_rq()` since v5.8: returns whether the pool has brought the queue up to
    /// `target_runtime` (ns) after all. If not, the queue joins those that wait for the next period.
    pub(super) fn assign_or_list(&mut self, tg: TgId, cfs: CfsRqId, target_runtime: u64) -> bool {
        self.cfs_b_lock(tg);
        let assigned = self.__assign_cfs_rq_runtime(tg, cfs, target_runtime);
        if !assigned {
            self.tg[tg].cfs_bandwidth.throttled_cfs_rq.push_back(cfs);
        }
        self.cfs_b_unlock(tg);
        assigned
    }

    /// The part of `unthrottle_cfs_rq()` that records in the group how long the queue was throttled, and takes it off
    /// the group's list.
    pub(super) fn leave_throttled_list(&mut self, cfs: CfsRqId, tg: TgId) {
        let cpu = self.cfs_rq[cfs].rq;
        self.cfs_b_lock(tg);
        let clock = self.rq[cpu].clock;
        let since = std::mem::take(&mut self.cfs_rq_runtime_mut(cfs).throttled_clock);
        let cfs_b = &mut self.tg[tg].cfs_bandwidth;
        if since != 0 {
            cfs_b.throttled_time += clock - since;
        }
        let at = cfs_b.throttled_cfs_rq.iter().position(|&throttled| throttled == cfs);
        cfs_b.throttled_cfs_rq.remove(at.expect("a throttled queue is listed"));
        self.cfs_b_unlock(tg);
    }

    /// core.c: walk_tg_tree_from(), downwards: `tg` and all groups below it, parents first.
    pub(super) fn walk_tg_tree_down(&self, tg: TgId) -> Vec<TgId> {
        let mut groups = vec![tg];
        let mut at = 0;
        while at < groups.len() {
            groups.extend_from_slice(&self.tg[groups[at]].children);
            at += 1;
        }
        groups
    }

    /// fair.c: sync_throttle(), for a new group below a throttled one.
    pub(crate) fn sync_throttle(&mut self, tg: TgId, cpu: CpuId) {
        if !self.cfs_bandwidth_used() || self.kernel.bandwidth.new_group_throttled == NewGroupThrottled::Unaware {
            return;
        }
        let Some(parent) = self.tg[tg].parent else { return };
        let throttle_count = self.cfs_rq[self.tg[parent].cfs_rq[cpu.index()]].throttle_count;
        let throttled_clock_pelt = self.rq_clock_pelt(cpu);
        let queue = &mut self.cfs_rq[self.tg[tg].cfs_rq[cpu.index()]];
        queue.throttle_count = throttle_count;
        queue.pelt_clock_throttled = throttle_count != 0;
        queue.throttled_clock_pelt = throttled_clock_pelt;
    }

    /// A queue that has nothing to run, but averages to age, is on the list again: so must those above it be, up to one
    /// that is.
    pub(super) fn complete_leaf_branch(&mut self, se: SeId) {
        let mut level = Some(se);
        while let Some(se) = level {
            let above = self.se[se].cfs_rq;
            if self.cfs_rq[above].on_list {
                // Adding the child has connected the branch.
                return;
            }
            self.list_add_leaf_cfs_rq(above);
            level = self.se[se].parent;
        }
    }
}
