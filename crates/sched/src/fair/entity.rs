//! fair.c, "Scheduling class queueing methods": an entity's way onto a queue, to the CPU and off again, and what its
//! running costs it in virtual time.
//!
//! An entity is a task's, or a group's on one CPU. The one that runs is `curr` of its queue and stands outside the
//! timeline. Absent: NUMA balancing, HRTICK.

use super::group::GroupShares;
use super::load::UpdateLoad;
use super::rules::{
    BuddiesCleared, ExecStartReset, IdleSleeper, IdleSlice, LongSleeper, MinVruntimeCurr, MinVruntimeDequeue,
    NrLatency, Renormalise, SleeperVruntime,
};
use super::timeline::entity_before;
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::bandwidth::ThrottledLeaf;
use crate::features::Feature;
use crate::layout::Statistic;
use crate::load_weight::{__calc_delta, calc_delta_fair};
use crate::sched::*;
use crate::trace::Event;
use fentry::fentry;
use units::Ns;

impl<A: Arch> Sched<A> {
    // Virtual time.

    /// fair.c: update_curr(). Charges what the queue's `curr` ran since it was last looked at.
    #[inline]
    pub(crate) fn update_curr(&mut self, cfs: CfsRqId) {
        let cfs_rq = &self.cfs_rq[cfs];
        if let Some(curr) = cfs_rq.curr {
            let now = self.rq[cfs_rq.rq].clock_task;
            let delta_exec = now.wrapping_sub(self.se[curr].exec_start);
            if delta_exec as i64 > 0 {
                self.update_curr_by(cfs, curr, delta_exec);
            }
        }
    }

    /// The body of `update_curr()` where there is something to charge.
    #[fentry(update_curr)]
    fn update_curr_by(&mut self, cfs: CfsRqId, curr: SeId, delta_exec: u64) {
        self.write_se_times(curr);
        self.write_cfs_rq(cfs);
        let resolution = self.kernel.load_resolution;
        let se = &mut self.se[curr];
        se.exec_start = se.exec_start.wrapping_add(delta_exec);
        se.sum_exec_runtime += delta_exec;
        se.vruntime = se.vruntime.wrapping_add(calc_delta_fair(resolution, delta_exec, &mut se.load));
        let (task, vruntime) = (se.task, se.vruntime);
        if self.schedstat_enabled() {
            self.write_statistic(curr, Statistic::ExecMax);
            let statistics = self.statistics(curr);
            statistics.exec_max = statistics.exec_max.max(delta_exec);
            self.cfs_rq[cfs].exec_clock += delta_exec;
        }
        self.update_min_vruntime(cfs);
        if let Some(task) = task {
            if self.arch.tracing() {
                self.trace(Event::SchedStatRuntime { task, runtime: Ns(delta_exec), vruntime });
            }
            self.path(Path::cpuacct_charge);
        }
        self.account_cfs_rq_runtime(cfs, delta_exec);
    }

    /// fair.c: update_min_vruntime(). Follows the smaller of `curr` and the leftmost, never backwards.
    #[inline]
    pub(crate) fn update_min_vruntime(&mut self, cfs: CfsRqId) {
        let cfs_rq = &mut self.cfs_rq[cfs];
        let any = self.kernel.entity.min_vruntime_curr == MinVruntimeCurr::EvenDequeued;
        let curr = cfs_rq.curr.map(|curr| &self.se[curr]).filter(|curr| any || curr.on_rq).map(|curr| curr.vruntime);
        let vruntime = match (curr, cfs_rq.tasks_timeline.leftmost_vruntime()) {
            (Some(curr), Some(left)) if entity_before(left, curr) => left,
            (Some(curr), _) => curr,
            (None, Some(left)) => left,
            (None, None) => return,
        };
        if entity_before(cfs_rq.min_vruntime, vruntime) {
            cfs_rq.min_vruntime = vruntime;
        }
    }

    /// fair.c: __sched_period(). In ns: each of `nr_running` runs once in it, none for less than the shortest slice.
    #[inline]
    fn __sched_period(&self, nr_running: u32) -> u64 {
        // nr_running > sched_nr_latency
        if nr_running > 0 && self.is_past_nr_latency(nr_running - 1) {
            u64::from(nr_running) * self.sysctl.sched_min_granularity
        } else {
            self.sysctl.sched_latency
        }
    }

    /// `nr_running >= sched_nr_latency`: so many that slices no longer fit into the latency.
    #[inline]
    pub(crate) fn is_past_nr_latency(&self, nr_running: u32) -> bool {
        match self.kernel.entity.nr_latency {
            // nr_running >= latency / min_granularity, rounded up.
            NrLatency::Ratio => u64::from(nr_running) * self.sysctl.sched_min_granularity >= self.sysctl.sched_latency,
            NrLatency::Eight => nr_running >= 8,
        }
    }

    /// fair.c: sched_slice(). Time on the CPU (ns) that is `se`'s part of a period, by weight, on every level.
    pub(crate) fn sched_slice(&mut self, cfs: CfsRqId, init_se: SeId) -> u64 {
        let resolution = self.kernel.load_resolution;
        let mut nr_running = self.cfs_rq[cfs].nr_running;
        if self.sched_feat(Feature::ALT_PERIOD) {
            nr_running = self.cfs_rq[self.rq[self.cfs_rq[cfs].rq].cfs].h_nr_running;
        }
        let mut slice = self.__sched_period(nr_running + u32::from(!self.se[init_se].on_rq));
        let mut level = Some(init_se);
        while let Some(se) = level {
            let se = &self.se[se];
            let load = &mut self.cfs_rq[se.cfs_rq].load;
            slice = if se.on_rq {
                __calc_delta(resolution, slice, se.load.weight, load)
            } else {
                let mut with_se = *load;
                with_se.update_load_add(se.load.weight);
                __calc_delta(resolution, slice, se.load.weight, &mut with_se)
            };
            level = se.parent;
        }
        if self.sched_feat(Feature::BASE_SLICE) {
            slice = slice.max(self.least_slice(cfs, init_se));
        }
        slice
    }

    /// What BASE_SLICE holds a slice above, in ns.
    fn least_slice(&self, cfs: CfsRqId, se: SeId) -> u64 {
        let of_its_own = self.kernel.entity.idle_slice == IdleSlice::IdleMinGranularity;
        if of_its_own && self.se_is_idle(se) && !self.sched_idle_cfs_rq(cfs) {
            self.sysctl.sched_idle_min_granularity
        } else {
            self.sysctl.sched_min_granularity
        }
    }

    /// fair.c: sched_vslice(). The slice of an entity to be inserted, in ns of its virtual time.
    fn sched_vslice(&mut self, cfs: CfsRqId, se: SeId) -> u64 {
        let slice = self.sched_slice(cfs, se);
        calc_delta_fair(self.kernel.load_resolution, slice, &mut self.se[se].load)
    }

    /// fair.c: place_entity(). A new entity (`initial`) starts a slice behind; a sleeper gets some credit, but none for
    /// what it slept beyond that.
    pub(crate) fn place_entity(&mut self, cfs: CfsRqId, se: SeId, initial: bool) {
        let mut vruntime = self.cfs_rq[cfs].min_vruntime;
        if !initial {
            let gentle = self.sched_feat(Feature::GENTLE_FAIR_SLEEPERS);
            vruntime = vruntime.wrapping_sub(self.sleeper_credit(se) >> u32::from(gentle));
        } else if self.sched_feat(Feature::START_DEBIT) {
            vruntime = vruntime.wrapping_add(self.sched_vslice(cfs, se));
        }
        if entity_before(self.se[se].vruntime, vruntime) || self.entity_is_long_sleeper(se) {
            self.se[se].vruntime = vruntime;
        }
    }

    /// In ns, before GENTLE_FAIR_SLEEPERS halves it.
    #[inline]
    fn sleeper_credit(&self, se: SeId) -> u64 {
        match self.kernel.entity.idle_sleeper {
            IdleSleeper::MinGranularity if self.se_is_idle(se) => self.sysctl.sched_min_granularity,
            _ => self.sysctl.sched_latency,
        }
    }

    /// fair.c: entity_is_long_sleeper(). Whether so much virtual time may have passed that its vruntime is not comparable any more:
    /// the lightest entity's passes 1024 times as fast as time, and a comparison reaches over 2^63 ns of it.
    #[inline]
    fn entity_is_long_sleeper(&self, se: SeId) -> bool {
        if self.kernel.entity.long_sleeper == LongSleeper::Compared {
            return false;
        }
        let exec_start = self.se[se].exec_start;
        let now = self.rq[self.cfs_rq[self.se[se].cfs_rq].rq].clock_task;
        exec_start != 0 && now.saturating_sub(exec_start) > (1 << 63) / 1024
    }

    /// fair.c: check_spread(). Counts entities far from the rest.
    #[inline]
    fn check_spread(&mut self, cfs: CfsRqId, se: SeId) {
        if !self.schedstat_enabled() {
            return;
        }
        let distance = self.se[se].vruntime.wrapping_sub(self.cfs_rq[cfs].min_vruntime) as i64;
        if distance.unsigned_abs() > 3 * self.sysctl.sched_latency {
            self.cfs_rq[cfs].nr_spread_over += 1;
        }
    }

    // The queue.

    /// fair.c: __enqueue_entity().
    #[inline]
    fn __enqueue_entity(&mut self, cfs: CfsRqId, se: SeId) {
        let entity = &mut self.se[se];
        entity.in_timeline = true;
        self.cfs_rq[cfs].tasks_timeline.insert(entity.vruntime, se);
    }

    /// fair.c: __dequeue_entity().
    #[inline]
    fn __dequeue_entity(&mut self, cfs: CfsRqId, se: SeId) {
        let entity = &mut self.se[se];
        entity.in_timeline = false;
        self.cfs_rq[cfs].tasks_timeline.remove(entity.vruntime, se);
    }

    /// fair.c: account_entity_enqueue().
    pub(crate) fn account_entity_enqueue(&mut self, cfs: CfsRqId, se: SeId) {
        let entity = &self.se[se];
        let (weight, parent, task) = (entity.load.weight, entity.parent, entity.task);
        let cfs_rq = &mut self.cfs_rq[cfs];
        let cpu = cfs_rq.rq;
        cfs_rq.load.update_load_add(weight);
        cfs_rq.nr_running += 1;
        if parent.is_none() {
            self.rq[cpu].load.update_load_add(weight);
            self.write_rq_weight(cpu);
        }
        if let Some(p) = task {
            self.write_rq_balance(cpu);
            self.rq[cpu].cfs_tasks.list_add(&mut self.task, p);
        }
        self.cfs_rq[cfs].idle_nr_running += u32::from(self.se_is_idle(se));
    }

    /// fair.c: account_entity_dequeue().
    pub(crate) fn account_entity_dequeue(&mut self, cfs: CfsRqId, se: SeId) {
        let entity = &self.se[se];
        let (weight, parent, task) = (entity.load.weight, entity.parent, entity.task);
        let cfs_rq = &mut self.cfs_rq[cfs];
        let cpu = cfs_rq.rq;
        cfs_rq.load.update_load_sub(weight);
        cfs_rq.nr_running -= 1;
        if parent.is_none() {
            self.rq[cpu].load.update_load_sub(weight);
            self.write_rq_weight(cpu);
        }
        if let Some(p) = task {
            self.write_rq_balance(cpu);
            self.rq[cpu].cfs_tasks.list_del(&mut self.task, p);
        }
        self.cfs_rq[cfs].idle_nr_running -= u32::from(self.se_is_idle(se));
    }

    /// fair.c: enqueue_entity().
    /// Differs: the tree's other nodes, which an insertion touches as well, are not charged; nor on any other walk of it.
    #[fentry]
    pub(crate) fn enqueue_entity(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags) {
        self.write_cfs_rq(cfs);
        self.write_se(se);
        self.write_se_times(se);
        let rules = self.kernel.entity;
        let relative = !flags.wakeup
            || match rules.sleeper_vruntime {
                SleeperVruntime::RelativeOnWakeup => flags.waking,
                SleeperVruntime::RelativeOnMigration => flags.migrated,
            };
        let is_curr = self.cfs_rq[cfs].curr == Some(se);
        let at_once = is_curr || rules.renormalise == Renormalise::BeforeUpdateCurr;
        if relative && at_once {
            self.se[se].vruntime = self.se[se].vruntime.wrapping_add(self.cfs_rq[cfs].min_vruntime);
        }
        self.update_curr(cfs);
        if relative && !at_once {
            self.se[se].vruntime = self.se[se].vruntime.wrapping_add(self.cfs_rq[cfs].min_vruntime);
        }
        self.enqueue_loads(cfs, se);
        if flags.wakeup {
            self.place_entity(cfs, se, false);
        }
        if flags.migrated && rules.exec_start_reset == ExecStartReset::AtEnqueue {
            self.se[se].exec_start = 0;
        }
        self.update_stats_enqueue(cfs, se, flags);
        self.check_spread(cfs, se);
        if !is_curr {
            self.write_cfs_timeline(cfs);
            self.__enqueue_entity(cfs, se);
        }
        self.se[se].on_rq = true;
        if self.cfs_rq[cfs].nr_running == 1 {
            self.first_queued(cfs);
        }
    }

    /// The end of `enqueue_entity()` on a queue that was empty.
    fn first_queued(&mut self, cfs: CfsRqId) {
        match self.kernel.bandwidth.throttled_leaf {
            ThrottledLeaf::Listed => {
                self.list_add_leaf_cfs_rq(cfs);
                self.check_enqueue_throttle(cfs);
            }
            ThrottledLeaf::Unlisted => {
                self.check_enqueue_throttle(cfs);
                if self.throttled_hierarchy(cfs) {
                    self.start_throttled_clocks(cfs);
                } else {
                    self.list_add_leaf_cfs_rq(cfs);
                }
            }
        }
    }

    /// The part of `enqueue_entity()` that brings averages and weights up to date, in the order of each version.
    fn enqueue_loads(&mut self, cfs: CfsRqId, se: SeId) {
        self.enqueue_entity_load_avg(cfs, se);
        self.se_update_runnable(se);
        if self.kernel.load.group_shares != GroupShares::QueueWeight {
            self.update_cfs_group(se);
        }
        self.enqueue_runnable_load_avg(cfs, se);
        self.account_entity_enqueue(cfs, se);
        if self.kernel.load.group_shares == GroupShares::QueueWeight {
            self.update_cfs_shares(cfs);
        }
    }

    /// fair.c: dequeue_entity().
    #[fentry]
    pub(crate) fn dequeue_entity(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags) {
        self.write_cfs_rq(cfs);
        self.write_se(se);
        self.update_curr(cfs);
        self.update_load_avg(cfs, se, self.dequeue_action(se));
        self.dequeue_runnable_load_avg(cfs, se);
        self.se_update_runnable(se);
        self.update_stats_dequeue(cfs, se, flags);
        self.clear_buddies(cfs, se);
        if self.cfs_rq[cfs].curr != Some(se) {
            self.write_cfs_timeline(cfs);
            self.__dequeue_entity(cfs, se);
        }
        self.se[se].on_rq = false;
        self.account_entity_dequeue(cfs, se);
        if !flags.sleep {
            self.se[se].vruntime = self.se[se].vruntime.wrapping_sub(self.cfs_rq[cfs].min_vruntime);
        }
        self.return_cfs_rq_runtime(cfs);
        let advance = match self.kernel.entity.min_vruntime_dequeue {
            MinVruntimeDequeue::Always => true,
            MinVruntimeDequeue::OnlyToRestore => flags.save_restore && !flags.move_,
            MinVruntimeDequeue::UnlessRestored => !flags.save_restore || flags.move_,
        };
        if advance {
            self.update_min_vruntime(cfs);
        }
        self.update_shares(cfs, se);
        if self.cfs_rq[cfs].nr_running == 0 {
            self.update_idle_cfs_rq_clock_pelt(cfs);
        }
    }

    // To the CPU and off it.

    /// fair.c: set_next_entity().
    #[fentry]
    pub(crate) fn set_next_entity(&mut self, cfs: CfsRqId, se: SeId) {
        self.write_cfs_timeline(cfs);
        if self.kernel.entity.buddies_cleared == BuddiesCleared::WhenSet {
            self.clear_buddies(cfs, se);
        }
        if self.se[se].on_rq {
            self.update_stats_wait_end(cfs, se);
            self.write_se(se);
            self.__dequeue_entity(cfs, se);
            self.update_load_avg(cfs, se, UpdateLoad::UPDATE_TG);
        }
        self.write_se_times(se);
        self.update_stats_curr_start(cfs, se);
        self.cfs_rq[cfs].curr = Some(se);
        if self.schedstat_enabled() {
            self.update_slice_max(cfs, se);
        }
        let se = &mut self.se[se];
        se.prev_sum_exec_runtime = se.sum_exec_runtime;
    }

    /// fair.c: put_prev_entity().
    #[fentry]
    pub(crate) fn put_prev_entity(&mut self, cfs: CfsRqId, prev: SeId) {
        let on_rq = self.se[prev].on_rq;
        if on_rq {
            self.update_curr(cfs);
        }
        self.check_cfs_rq_runtime(cfs);
        self.check_spread(cfs, prev);
        self.write_cfs_timeline(cfs);
        if on_rq {
            self.update_stats_wait_start(cfs, prev);
            self.__enqueue_entity(cfs, prev);
            self.update_load_avg(cfs, prev, UpdateLoad::NONE);
        }
        self.cfs_rq[cfs].curr = None;
    }

    /// fair.c: pick_next_entity(). The leftmost, unless it is to be skipped or a buddy is not too far behind it. `curr` is
    /// what runs, if it may go on.
    #[fentry]
    pub(crate) fn pick_next_entity(&mut self, cfs: CfsRqId, curr: Option<SeId>) -> SeId {
        let first = self.cfs_rq[cfs].tasks_timeline.leftmost();
        let ahead = |a: SeId, b: SeId| entity_before(self.se[a].vruntime, self.se[b].vruntime);
        let left = match (first, curr) {
            (Some(first), Some(curr)) if ahead(curr, first) => curr,
            (Some(first), _) => first,
            (None, Some(curr)) => curr,
            (None, None) => unreachable!("who picks has seen that something is queued"),
        };
        let CfsRq { next, last, skip, .. } = self.cfs_rq[cfs];
        let mut se = left;
        if skip == Some(left) {
            let second = if curr == Some(left) {
                first
            } else {
                let second = self.cfs_rq[cfs].tasks_timeline.next_after(self.se[left].vruntime, left);
                match (second, curr) {
                    (Some(second), Some(curr)) if ahead(curr, second) => Some(curr),
                    (None, curr) => curr,
                    (second, _) => second,
                }
            };
            se = second.filter(|&second| self.wakeup_preempt_entity(second, left) < 1).unwrap_or(left);
        }
        if let Some(last) = last
            && self.wakeup_preempt_entity(last, left) < 1
        {
            se = last;
        }
        if let Some(next) = next
            && self.wakeup_preempt_entity(next, left) < 1
        {
            se = next;
        }
        if self.kernel.entity.buddies_cleared == BuddiesCleared::WhenPicked {
            self.clear_buddies(cfs, se);
        }
        se
    }

    /// fair.c: entity_tick().
    #[fentry]
    pub(crate) fn entity_tick(&mut self, cfs: CfsRqId, curr: SeId, queued: bool) {
        self.update_curr(cfs);
        self.update_load_avg(cfs, curr, UpdateLoad::UPDATE_TG);
        self.update_shares(cfs, curr);
        let cpu = self.cfs_rq[cfs].rq;
        if queued {
            return self.resched_curr(cpu);
        }
        if self.hrtick_ends_the_slice(cpu) {
            return;
        }
        if self.cfs_rq[cfs].nr_running > 1 {
            self.check_preempt_tick(cfs, curr);
        }
    }

    /// fair.c: check_preempt_tick(). Ends the slice of `curr` when it is used up, or when `curr` is a slice ahead of the
    /// leftmost.
    #[fentry]
    fn check_preempt_tick(&mut self, cfs: CfsRqId, curr: SeId) {
        let cpu = self.cfs_rq[cfs].rq;
        let ideal_runtime = self.sched_slice(cfs, curr);
        let se = &self.se[curr];
        let (delta_exec, vruntime) = (se.sum_exec_runtime - se.prev_sum_exec_runtime, se.vruntime);
        if delta_exec > ideal_runtime {
            self.resched_curr(cpu);
            self.clear_buddies(cfs, curr);
            return;
        }
        if delta_exec < self.sysctl.sched_min_granularity {
            return;
        }
        let left = self.cfs_rq[cfs].tasks_timeline.leftmost_vruntime().expect("somebody waits beside the running one");
        let delta = vruntime.wrapping_sub(left) as i64;
        if delta >= 0 && delta as u64 > ideal_runtime {
            self.resched_curr(cpu);
        }
    }
}
