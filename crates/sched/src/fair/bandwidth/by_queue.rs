//! A queue that has used up its runtime leaves the hierarchy, with everything below it, and returns later (until
//! v6.17).

use super::{ThrottleAsks, ThrottleLevels, ThrottledClock, ThrottledLeaf, ThrottledTime};
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::load::UpdateLoad;
use crate::sched::*;
use units::CpuId;

/// Tasks below a queue, as the queues above count them.
#[derive(Clone, Copy)]
struct TaskDelta {
    tasks: u32,
    idle: u32,
    delayed: u32,
}

impl TaskDelta {
    /// Above an idle group, all its tasks count as idle.
    fn enter(&mut self, group: &CfsRq) {
        if group.idle {
            self.idle = self.tasks;
        }
    }
}

impl<A: Arch> Sched<A> {
    // The hierarchy below.

    /// fair.c: tg_throttle_down(). Stops the clock of the group's queue on `cpu`.
    fn tg_throttle_down(&mut self, tg: TgId, cpu: CpuId) {
        let cfs = self.tg[tg].cfs_rq[cpu.index()];
        let (clock, clock_pelt) = (self.rq[cpu].clock, self.rq_clock_pelt(cpu));
        let rules = self.kernel.bandwidth;
        let queue = &mut self.cfs_rq[cfs];
        let first = queue.throttle_count == 0;
        queue.throttle_count += 1;
        queue.pelt_clock_throttled = queue.throttle_count != 0;
        if !first {
            return;
        }
        queue.throttled_clock_pelt = match rules.throttled_clock {
            // Readers of the clock subtract that time themselves.
            ThrottledClock::Unadjusted => clock_pelt.wrapping_add(queue.throttled_clock_pelt_time),
            ThrottledClock::Adjusted => clock_pelt,
        };
        if rules.throttled_time == ThrottledTime::WhileQueued && queue.nr_running > 0 {
            self.cfs_rq_runtime_mut(cfs).throttled_clock_self = clock;
        }
        if rules.throttled_leaf != ThrottledLeaf::Listed {
            self.list_del_leaf_cfs_rq(cfs);
        }
    }

    /// fair.c: tg_unthrottle_up(). The clock goes on, unless something else above is throttled.
    fn tg_unthrottle_up(&mut self, tg: TgId, cpu: CpuId) {
        let cfs = self.tg[tg].cfs_rq[cpu.index()];
        let (clock, clock_pelt) = (self.rq[cpu].clock, self.rq_clock_pelt(cpu));
        let queue = &mut self.cfs_rq[cfs];
        // Negative in a group that did not know of its parent's throttling when it was created.
        queue.throttle_count -= 1;
        queue.pelt_clock_throttled = queue.throttle_count != 0;
        if queue.throttle_count != 0 {
            return;
        }
        let before = match self.kernel.bandwidth.throttled_clock {
            ThrottledClock::Unadjusted => queue.throttled_clock_pelt_time,
            ThrottledClock::Adjusted => 0,
        };
        let stood = clock_pelt.wrapping_sub(queue.throttled_clock_pelt.wrapping_sub(before));
        queue.throttled_clock_pelt_time = queue.throttled_clock_pelt_time.wrapping_add(stood);
        let queue = self.cfs_rq_runtime_mut(cfs);
        let since = std::mem::take(&mut queue.throttled_clock_self);
        if since != 0 {
            queue.throttled_clock_self_time += clock - since;
        }
        let lists = match self.kernel.bandwidth.throttled_leaf {
            ThrottledLeaf::Listed => false,
            ThrottledLeaf::UnlistedWhileEmpty => self.cfs_rq[cfs].nr_running > 0,
            ThrottledLeaf::Unlisted => !self.cfs_rq_is_decayed(cfs),
        };
        if lists {
            self.list_add_leaf_cfs_rq(cfs);
        }
    }

    /// The end of `enqueue_entity()` on an empty queue that may not run: from now on, throttling keeps something
    /// waiting.
    pub(crate) fn start_throttled_clocks(&mut self, cfs: CfsRqId) {
        let rules = self.kernel.bandwidth;
        if rules.throttle.by_task() || rules.throttled_time == ThrottledTime::Always {
            return;
        }
        let clock = self.rq[self.cfs_rq[cfs].rq].clock;
        let queue = self.cfs_rq_runtime_mut(cfs);
        if queue.throttled && queue.throttled_clock == 0 {
            queue.throttled_clock = clock;
        }
        if queue.throttled_clock_self == 0 {
            queue.throttled_clock_self = clock;
        }
    }

    // The hierarchy above.

    fn task_delta(&self, cfs: CfsRqId) -> TaskDelta {
        let queue = &self.cfs_rq[cfs];
        TaskDelta { tasks: queue.h_nr_running, idle: queue.idle_h_nr_running, delayed: queue.h_nr_delayed }
    }

    /// `throttle_cfs_rq()` until v6.17. Dequeues the queue's entity, and those above it as their queues become empty.
    pub(super) fn throttle_cfs_rq_queue(&mut self, cfs: CfsRqId) -> bool {
        let (tg, cpu) = (self.cfs_rq[cfs].tg, self.cfs_rq[cfs].rq);
        let rules = self.kernel.bandwidth;
        if rules.throttle_asks == ThrottleAsks::OnceMore && self.assign_or_list(tg, cfs, 1) {
            return false;
        }
        for group in self.walk_tg_tree_down(tg) {
            self.tg_throttle_down(group, cpu);
        }
        self.dequeue_throttled(cfs, tg, cpu);
        let clock = self.rq[cpu].clock;
        let counts = rules.throttled_time == ThrottledTime::Always || self.cfs_rq[cfs].nr_running > 0;
        let queue = self.cfs_rq_runtime_mut(cfs);
        queue.throttled = true;
        queue.throttled_clock = if counts { clock } else { 0 };
        if rules.throttle_asks != ThrottleAsks::OnceMore {
            self.cfs_b_lock(tg);
            let queues = &mut self.tg[tg].cfs_bandwidth.throttled_cfs_rq;
            let first = queues.is_empty();
            // No distribution is under way: none is interrupted here.
            match rules.throttle_asks {
                ThrottleAsks::AtOnceAtEnd => queues.push_back(cfs),
                ThrottleAsks::AtOnce | ThrottleAsks::OnceMore => queues.push_front(cfs),
            }
            if first {
                self.start_cfs_bandwidth(tg);
            }
            self.cfs_b_unlock(tg);
        }
        true
    }

    /// The walk up of `throttle_cfs_rq()`. It stops where an entity is not queued: another queue is throttled there, or
    /// the last task of the queue is on its way out.
    fn dequeue_throttled(&mut self, cfs: CfsRqId, tg: TgId, cpu: CpuId) {
        let mut delta = self.task_delta(cfs);
        let averages = self.kernel.bandwidth.throttle_levels == ThrottleLevels::Averages;
        let mut dequeue = true;
        let mut level = Some(self.tg[tg].se[cpu.index()]);
        while let Some(se) = level {
            if !self.se[se].on_rq {
                return;
            }
            let above = self.se[se].cfs_rq;
            if dequeue {
                // DEQUEUE_SPECIAL, so that the entity does not stay queued for its negative lag (DELAY_DEQUEUE); if it
                // was delayed already, that ends.
                let delayed = self.se[se].sched_delayed;
                let flags = QueueFlags { sleep: true, special: true, delayed, ..QueueFlags::default() };
                self.dequeue_group_entity(above, se, flags);
            } else if averages {
                self.update_load_avg(above, se, UpdateLoad::NONE);
                self.se_update_runnable(se);
            }
            delta.enter(&self.cfs_rq[self.se[se].my_q.expect("a group's entity")]);
            let queue = &mut self.cfs_rq[above];
            queue.h_nr_running -= delta.tasks;
            queue.idle_h_nr_running -= delta.idle;
            queue.h_nr_delayed -= delta.delayed;
            dequeue &= queue.load.weight == 0;
            level = self.se[se].parent;
        }
        self.sub_nr_running(cpu, delta.tasks);
    }

    /// `unthrottle_cfs_rq()` until v6.17. The queue's lock is held; its entity returns.
    pub(super) fn unthrottle_cfs_rq_queue(&mut self, cfs: CfsRqId) {
        let (tg, cpu) = (self.cfs_rq[cfs].tg, self.cfs_rq[cfs].rq);
        self.cfs_rq_runtime_mut(cfs).throttled = false;
        self.update_rq_clock(cpu);
        self.leave_throttled_list(cfs, tg);
        for group in self.walk_tg_tree_down(tg).into_iter().rev() {
            self.tg_unthrottle_up(group, cpu);
        }
        if self.cfs_rq[cfs].load.weight == 0 {
            if self.kernel.bandwidth.throttled_leaf != ThrottledLeaf::Unlisted || !self.cfs_rq[cfs].on_list {
                return;
            }
            self.complete_leaf_branch(self.tg[tg].se[cpu.index()]);
        } else {
            self.enqueue_unthrottled(cfs, tg, cpu);
        }
        if self.rq[cpu].curr.is_none() && self.cfs_rq[self.rq[cpu].cfs].nr_running > 0 {
            self.resched_curr(cpu);
        }
    }

    /// The walk up of `unthrottle_cfs_rq()`. It stops at a queue that is throttled itself.
    fn enqueue_unthrottled(&mut self, cfs: CfsRqId, tg: TgId, cpu: CpuId) {
        let mut delta = self.task_delta(cfs);
        let averages = self.kernel.bandwidth.throttle_levels == ThrottleLevels::Averages;
        let mut enqueue = true;
        let mut level = Some(self.tg[tg].se[cpu.index()]);
        while let Some(se) = level {
            let above = self.se[se].cfs_rq;
            if enqueue && self.se[se].sched_delayed {
                let flags = QueueFlags { sleep: true, delayed: true, ..QueueFlags::default() };
                self.dequeue_group_entity(above, se, flags);
            }
            enqueue &= !self.se[se].on_rq;
            if enqueue {
                self.enqueue_group_entity(above, se);
            } else if averages {
                self.update_load_avg(above, se, UpdateLoad::UPDATE_TG);
                self.se_update_runnable(se);
            }
            delta.enter(&self.cfs_rq[self.se[se].my_q.expect("a group's entity")]);
            let queue = &mut self.cfs_rq[above];
            queue.h_nr_running += delta.tasks;
            queue.idle_h_nr_running += delta.idle;
            queue.h_nr_delayed += delta.delayed;
            if self.cfs_rq_throttled(above) {
                return;
            }
            level = self.se[se].parent;
        }
        // These are the first fair tasks of this CPU.
        if self.has_fair_server() && delta.tasks > 0 && self.cfs_rq[self.rq[cpu].cfs].h_nr_running == delta.tasks {
            self.dl_server_start(cpu);
        }
        self.add_nr_running(cpu, delta.tasks);
    }
}
