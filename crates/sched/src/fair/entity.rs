//! fair.c, "Scheduling class queueing methods": how an entity is queued, runs, and leaves.
//!
//! An entity is a task's, or a group's on one CPU. The running one is `curr` of its queue and is not in the timeline (where [`super::flat`]
//! is not in force). [`super::cfs`] and
//! [`super::eevdf`] explain the use of virtual time; [`Pick`] chooses between them.

use super::eevdf::Weighing;
use super::group::GroupShares;
use super::load::{Step, UpdateLoad, dequeue_runnable_load_avg, enqueue_runnable_load_avg, in_arithmetic};
use super::rules::{
    BuddiesCleared, DelayedLag, ExecStartReset, MinVruntimeDequeue, Pick, Renormalise, SleeperVruntime,
};
use crate::access::{LevelLines, Path};
use crate::arch::Arch;
use crate::core::Sched;
use crate::core::hrtick::Hrtick;
use crate::fair::bandwidth::ThrottledLeaf;
use crate::load_weight::calc_delta_fair;
use crate::sched::*;
use crate::trace::Event;
use fentry::fentry;
use units::{CpuId, Ns, unlikely};

impl MinVruntimeDequeue {
    /// Whether a dequeue with these flags advances min_vruntime.
    #[inline(always)]
    pub(super) fn advances(self, flags: &QueueFlags) -> bool {
        match self {
            MinVruntimeDequeue::Always => true,
            MinVruntimeDequeue::OnlyToRestore => flags.save_restore && !flags.move_,
            MinVruntimeDequeue::UnlessRestored => !flags.save_restore || flags.move_,
        }
    }
}

impl<A: Arch> Sched<A> {
    // Virtual time.

    /// fair.c: update_curr(). Charges the queue's `curr` with what it ran since the last update.
    #[inline]
    pub(crate) fn update_curr(&mut self, cfs: CfsRqId) {
        self.update_curr_in(Step::Any, cfs);
    }

    /// The same, as part of one step of a walk.
    #[inline(always)]
    fn update_curr_in(&mut self, step: Step, cfs: CfsRqId) {
        let cfs_rq = &self.cfs_rq[cfs];
        if let Some(curr) = cfs_rq.curr {
            let now = self.rq[cfs_rq.rq].clock_task;
            let delta_exec = now.wrapping_sub(self.se[curr].exec_start);
            if delta_exec as i64 > 0 {
                match step {
                    Step::Any => self.update_curr_by(cfs, curr, delta_exec),
                    Step::Group(_) => self.update_curr_by_in(step, cfs, curr, delta_exec),
                }
            }
        }
    }

    /// The body of `update_curr()`, if there is something to charge.
    #[inline(never)]
    fn update_curr_by(&mut self, cfs: CfsRqId, curr: SeId, delta_exec: u64) {
        self.update_curr_by_in(Step::Any, cfs, curr, delta_exec);
    }

    #[inline(always)]
    #[fentry(update_curr)]
    fn update_curr_by_in(&mut self, step: Step, cfs: CfsRqId, curr: SeId, delta_exec: u64) {
        self.write_se_times(curr);
        let pick = self.arithmetic_of(step).pick;
        if pick == Pick::Eevdf && self.picks_flat() {
            return self.charge_curr_flat(cfs, curr, delta_exec);
        }
        self.write_cfs_rq(cfs);
        let (se, cfs_rq) = (&mut self.se[curr], &mut self.cfs_rq[cfs]);
        se.exec_start = se.exec_start.wrapping_add(delta_exec);
        se.sum_exec_runtime += delta_exec;
        let delta = in_arithmetic!(self, step, known, calc_delta_fair(known.resolution, delta_exec, &mut se.load));
        se.vruntime = se.vruntime.wrapping_add(delta);
        let rules = &self.kernel.entity;
        if pick == Pick::Eevdf {
            return self.charge_curr_eevdf(cfs, curr, delta_exec);
        }
        cfs_rq.update_min_vruntime(rules.min_vruntime_curr.counts(se).then_some(se.vruntime));
        self.count_exec(cfs, curr, delta_exec);
        self.charge_curr(cfs, curr, delta_exec);
    }

    /// The rest of `update_curr()` since v6.6.
    #[inline(never)]
    fn charge_curr_eevdf(&mut self, cfs: CfsRqId, curr: SeId, delta_exec: u64) {
        if self.balance.cache.is_active()
            && let Some(p) = self.se[curr].task
        {
            self.account_mm_sched(self.cfs_rq[cfs].rq, p, delta_exec);
        }
        self.count_exec(cfs, curr, delta_exec);
        let slice_ended = self.update_deadline(cfs, curr);
        self.charge_curr(cfs, curr, delta_exec);
        self.resched_after_update(cfs, curr, slice_ended);
    }

    /// The part of `update_curr()` that charges the task itself, its deadline server and the queue's runtime.
    #[inline(always)]
    pub(super) fn charge_curr(&mut self, cfs: CfsRqId, curr: SeId, delta_exec: u64) {
        if let SchedEntity { task: Some(task), vruntime, .. } = self.se[curr] {
            if unlikely(self.arch.tracing()) {
                self.trace(Event::SchedStatRuntime { task, runtime: Ns(delta_exec), vruntime });
            }
            self.path(Path::cpuacct_charge);
            if self.has_fair_server() {
                self.dl_server_update(self.cfs_rq[cfs].rq, delta_exec);
            }
        }
        self.account_cfs_rq_runtime(cfs, delta_exec);
    }

    // The queue.

    /// fair.c: __enqueue_entity().
    #[inline(always)]
    pub(super) fn __enqueue_entity(&mut self, cfs: CfsRqId, se: SeId) {
        self.__enqueue_entity_in(Step::Any, cfs, se);
    }

    /// The same, as part of one step of a walk.
    #[inline(always)]
    fn __enqueue_entity_in(&mut self, step: Step, cfs: CfsRqId, se: SeId) {
        let pick = self.arithmetic_of(step).pick;
        let entity = &mut self.se[se];
        entity.in_timeline = true;
        match pick {
            Pick::Cfs => self.cfs_rq[cfs].tasks_timeline.insert(entity.vruntime, se),
            Pick::Eevdf => self.__enqueue_entity_eevdf(cfs, se),
        }
    }

    #[inline(never)]
    fn __enqueue_entity_eevdf(&mut self, cfs: CfsRqId, se: SeId) {
        self.sum_w_vruntime_add(cfs, se);
        let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &self.se[se]);
        cfs_rq.tasks_timeline.insert_deadline(entity.deadline, entity.vruntime, entity.slice, se);
    }

    /// fair.c: __dequeue_entity().
    #[inline(always)]
    pub(super) fn __dequeue_entity(&mut self, cfs: CfsRqId, se: SeId) {
        let entity = &mut self.se[se];
        entity.in_timeline = false;
        match self.kernel.entity.pick {
            Pick::Cfs => self.cfs_rq[cfs].tasks_timeline.remove(entity.vruntime, se),
            Pick::Eevdf => self.__dequeue_entity_eevdf(cfs, se),
        }
    }

    #[inline(never)]
    fn __dequeue_entity_eevdf(&mut self, cfs: CfsRqId, se: SeId) {
        let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &self.se[se]);
        cfs_rq.tasks_timeline.remove_deadline(entity.deadline, se);
        cfs_rq.sum_w_vruntime_sub(Weighing::of(&self.kernel), entity);
    }

    /// fair.c: account_entity_enqueue(), with the runnable load, which the kernel adds just before.
    #[inline(always)]
    fn account_entity_enqueue(&mut self, cfs: CfsRqId, se: SeId, step: Step) {
        let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &self.se[se]);
        in_arithmetic!(self, step, known, enqueue_runnable_load_avg(known, cfs_rq, entity));
        let (weight, parent, task) = (entity.load.weight, entity.parent, step.task_of(entity));
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
            if self.numa.is_used() {
                self.account_numa_enqueue(cpu, p);
            }
        }
        if self.se_is_idle(se) {
            self.cfs_rq[cfs].idle_nr_running += 1;
        }
    }

    /// fair.c: account_entity_dequeue(), with the runnable load, which the kernel subtracts before. From here on the entity is no longer
    /// queued.
    #[inline(always)]
    pub(super) fn account_entity_dequeue(&mut self, cfs: CfsRqId, se: SeId, step: Step) {
        let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &mut self.se[se]);
        in_arithmetic!(self, step, known, dequeue_runnable_load_avg(known, cfs_rq, entity));
        entity.on_rq = false;
        let (weight, parent, task) = (entity.load.weight, entity.parent, step.task_of(entity));
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
            if self.numa.is_used() {
                self.account_numa_dequeue(cpu, p);
            }
        }
        if self.se_is_idle(se) {
            self.cfs_rq[cfs].idle_nr_running -= 1;
        }
    }

    /// The net effect of account_entity_dequeue() and then account_entity_enqueue() when the weight of a queued group's entity becomes
    /// `weight`. (A task's weight changes only while it is dequeued.)
    #[inline(always)]
    pub(crate) fn account_entity_reweight(&mut self, cfs: CfsRqId, se: SeId, weight: u64) {
        let entity = &self.se[se];
        debug_assert!(entity.task.is_none(), "a queued task keeps its weight");
        let (before, parent) = (entity.load.weight, entity.parent);
        let cfs_rq = &mut self.cfs_rq[cfs];
        let cpu = cfs_rq.rq;
        cfs_rq.load.update_load_sub(before);
        cfs_rq.load.update_load_add(weight);
        if parent.is_none() {
            self.reweight_rq(cpu, before, weight);
        }
    }

    /// The part of account_entity_reweight() that concerns the runqueue.
    #[inline(always)]
    pub(crate) fn reweight_rq(&mut self, cpu: CpuId, before: u64, weight: u64) {
        let load = &mut self.rq[cpu].load;
        load.update_load_sub(before);
        load.update_load_add(weight);
        self.write_rq_weight(cpu);
        self.write_rq_weight(cpu);
    }

    /// fair.c: enqueue_entity().
    /// Differs: the other nodes of the tree that an insertion touches are not charged; nor does any other walk of the tree charge them.
    #[inline(always)]
    #[fentry]
    pub(crate) fn enqueue_entity(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags, step: Step) {
        let at = self.level_lines(cfs, se, step).fetched(step);
        self.write_cfs_rq_at(at);
        self.write_se_at(at);
        self.write_se_times_at(at);
        let is_curr = self.cfs_rq[cfs].curr == Some(se);
        match self.arithmetic_of(step).pick {
            Pick::Cfs => self.enqueue_placed_cfs((cfs, se), flags, is_curr, step, at),
            Pick::Eevdf => self.enqueue_placed_eevdf(cfs, se, flags, is_curr),
        }
        if flags.migrated && self.kernel.entity.exec_start_reset != ExecStartReset::AtMigration {
            self.se[se].exec_start = 0;
        }
        self.update_stats_enqueue(cfs, se, flags);
        self.check_spread(cfs, se);
        if !is_curr {
            self.write_cfs_timeline_at(at);
            self.__enqueue_entity_in(step, cfs, se);
        }
        self.se[se].on_rq = true;
        if self.cfs_rq[cfs].nr_running == 1 {
            self.first_queued(cfs);
        }
    }

    /// `enqueue_entity()` of a group's entity, outside the walks up the hierarchy.
    #[inline(never)]
    pub(crate) fn enqueue_group_entity(&mut self, cfs: CfsRqId, se: SeId) {
        let flags = QueueFlags { wakeup: true, ..QueueFlags::default() };
        self.enqueue_entity(cfs, se, flags, Step::Any);
    }

    /// The end of `enqueue_entity()`, if the queue was empty.
    #[inline(always)]
    pub(super) fn first_queued(&mut self, cfs: CfsRqId) {
        match self.kernel.bandwidth.throttled_leaf {
            ThrottledLeaf::Listed => {
                self.list_add_leaf_cfs_rq(cfs);
                self.check_enqueue_throttle(cfs);
            }
            ThrottledLeaf::UnlistedWhileEmpty | ThrottledLeaf::Unlisted => {
                self.check_enqueue_throttle(cfs);
                if self.throttled_hierarchy(cfs) {
                    self.start_throttled_clocks(cfs);
                } else {
                    self.list_add_leaf_cfs_rq(cfs);
                }
            }
        }
    }

    /// The part of `enqueue_entity()` that makes vruntime absolute, accounts for the entity and places it (until v6.5).
    #[inline(always)]
    fn enqueue_placed_cfs(
        &mut self,
        (cfs, se): (CfsRqId, SeId),
        flags: QueueFlags,
        is_curr: bool,
        step: Step,
        at: LevelLines,
    ) {
        let rules = &self.kernel.entity;
        let relative = !flags.wakeup
            || (flags.waking | flags.migrated)
                && match rules.sleeper_vruntime {
                    SleeperVruntime::RelativeOnWakeup => flags.waking,
                    SleeperVruntime::RelativeOnMigration => flags.migrated,
                };
        let at_once = is_curr || rules.renormalise == Renormalise::BeforeUpdateCurr;
        if relative && at_once {
            self.se[se].vruntime = self.se[se].vruntime.wrapping_add(self.cfs_rq[cfs].min_vruntime);
        }
        self.update_curr(cfs);
        if relative && !at_once {
            self.se[se].vruntime = self.se[se].vruntime.wrapping_add(self.cfs_rq[cfs].min_vruntime);
        }
        self.enqueue_averages(cfs, se, step, at);
        self.enqueue_weight(cfs, se, step);
        if flags.wakeup {
            self.place_entity_cfs(cfs, se, false);
        }
    }

    /// The part of `enqueue_entity()` that places the entity and accounts for it.
    #[inline(never)]
    fn enqueue_placed_eevdf(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags, is_curr: bool) {
        if is_curr {
            self.place_entity_eevdf(cfs, se, flags, self.cfs_rq[cfs].nr_running);
        }
        self.update_curr(cfs);
        let at = self.level_lines(cfs, se, Step::Any);
        self.enqueue_averages(cfs, se, Step::Any, at);
        if !is_curr {
            self.place_entity_eevdf(cfs, se, flags, self.cfs_rq[cfs].nr_running);
        }
        self.enqueue_weight(cfs, se, Step::Any);
        self.llc_enqueue_entity(se);
    }

    /// The part of `enqueue_entity()` that updates averages, and the weight of a group's entity.
    #[inline(always)]
    pub(super) fn enqueue_averages(&mut self, cfs: CfsRqId, se: SeId, step: Step, at: LevelLines) {
        self.enqueue_entity_load_avg(cfs, se, step, at);
        self.se_update_runnable_in(step, se);
        if self.arithmetic_of(step).shares != GroupShares::QueueWeight {
            self.update_cfs_group_in(step, se, false);
        }
    }

    /// The part of `enqueue_entity()` that adds the entity's weight to the queue's.
    #[inline(always)]
    pub(super) fn enqueue_weight(&mut self, cfs: CfsRqId, se: SeId, step: Step) {
        self.account_entity_enqueue(cfs, se, step);
        if self.arithmetic_of(step).shares == GroupShares::QueueWeight {
            self.update_cfs_shares(cfs);
        }
    }

    /// fair.c: dequeue_entity(). Returns false if the dequeue is delayed and the entity keeps competing (v6.12).
    #[inline(always)]
    #[fentry]
    pub(crate) fn dequeue_entity(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags, step: Step) -> bool {
        let at = self.level_lines(cfs, se, step);
        self.write_cfs_rq_at(at.fetched(step));
        self.write_se_at(at);
        self.update_curr_in(step, cfs);
        match self.arithmetic_of(step).pick {
            Pick::Cfs => {
                self.dequeue_entity_cfs(cfs, se, flags, step, at);
                true
            }
            Pick::Eevdf => self.dequeue_entity_eevdf(cfs, se, flags),
        }
    }

    /// `dequeue_entity()` of a group's entity, outside the walks up the hierarchy.
    #[inline(never)]
    pub(crate) fn dequeue_group_entity(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags) -> bool {
        self.dequeue_entity(cfs, se, flags, Step::Any)
    }

    /// The rest of `dequeue_entity()` until v6.5.
    #[inline(always)]
    fn dequeue_entity_cfs(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags, step: Step, at: LevelLines) {
        self.dequeue_averages(cfs, se, step, at);
        self.update_stats_dequeue(cfs, se, flags);
        self.clear_buddies(cfs, se);
        self.dequeue_weight(cfs, se, step);
        self.normalise_vruntime(cfs, se, flags);
        self.update_shares_in(step, cfs, se, false);
        if self.cfs_rq[cfs].nr_running == 0 {
            self.update_idle_cfs_rq_clock_pelt(cfs);
        }
    }

    /// The rest of `dequeue_entity()` since v6.6. Returns false if the dequeue is delayed.
    #[inline(never)]
    fn dequeue_entity_eevdf(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags) -> bool {
        self.clear_buddies(cfs, se);
        if self.delays_dequeue(cfs, se, flags) {
            self.update_load_avg(cfs, se, UpdateLoad::NONE);
            self.estimate_sleepers_util(se, flags);
            if self.kernel.entity.delayed_lag == DelayedLag::Kept {
                self.update_entity_lag(cfs, se);
            }
            self.set_delayed(se);
            return false;
        }
        let at = self.level_lines(cfs, se, Step::Any);
        self.dequeue_averages(cfs, se, Step::Any, at);
        self.estimate_sleepers_util(se, flags);
        self.update_stats_dequeue(cfs, se, flags);
        self.update_entity_lag(cfs, se);
        self.dequeue_weight(cfs, se, Step::Any);
        self.llc_dequeue_entity(se);
        self.keep_relative_deadline(se, flags);
        self.return_cfs_rq_runtime(cfs);
        self.update_shares(cfs, se);
        if flags.delayed {
            self.finish_delayed_dequeue_entity(se);
        }
        if self.cfs_rq[cfs].nr_running == 0 {
            self.update_idle_cfs_rq_clock_pelt(cfs);
            self.fell_empty(cfs);
        }
        true
    }

    /// The part of `dequeue_entity()` that updates averages.
    #[inline(always)]
    pub(super) fn dequeue_averages(&mut self, cfs: CfsRqId, se: SeId, step: Step, at: LevelLines) {
        let action = match step {
            Step::Any => self.dequeue_action(se),
            Step::Group(_) => UpdateLoad::UPDATE_TG,
        };
        self.update_load_avg_in(step, cfs, se, action, at);
        self.se_update_runnable_in(step, se);
    }

    /// UPDATE_UTIL_EST, which makes `update_load_avg()` in `dequeue_entity()` update the estimate once for a task that falls asleep.
    /// Differs: comes after the number of tasks of a group's entity is updated, which does not concern tasks.
    #[inline]
    pub(super) fn estimate_sleepers_util(&mut self, se: SeId, flags: QueueFlags) {
        if flags.sleep
            && !flags.delayed
            && let Some(p) = self.se[se].task
        {
            self.util_est_update_in_load_avg(p);
        }
    }

    /// The part of `dequeue_entity()` that takes the entity out of the timeline, and its weight out of the queue's.
    #[inline(always)]
    fn dequeue_weight(&mut self, cfs: CfsRqId, se: SeId, step: Step) {
        if self.cfs_rq[cfs].curr != Some(se) {
            self.write_cfs_timeline(cfs);
            self.__dequeue_entity(cfs, se);
        }
        self.account_entity_dequeue(cfs, se, step);
    }

    /// The part of `dequeue_entity()` that makes vruntime relative to the next queue, and lets min_vruntime advance (until v6.5). In
    /// between, unused runtime is given back.
    #[inline(always)]
    fn normalise_vruntime(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags) {
        if unlikely(!flags.sleep) {
            self.se[se].vruntime = self.se[se].vruntime.wrapping_sub(self.cfs_rq[cfs].min_vruntime);
        }
        self.return_cfs_rq_runtime(cfs);
        if self.kernel.entity.min_vruntime_dequeue.advances(&flags) {
            self.update_min_vruntime(cfs);
        }
    }

    // To the CPU and off it.

    /// fair.c: set_next_entity(). `first`: the entity was picked, not only put back.
    #[inline(always)]
    pub(crate) fn set_next_entity(&mut self, cfs: CfsRqId, se: SeId, first: bool) {
        self.set_next_entity_in(Step::Any, cfs, se, first);
    }

    /// The same, as part of one step of a walk.
    #[inline(always)]
    #[fentry(set_next_entity)]
    pub(super) fn set_next_entity_in(&mut self, step: Step, cfs: CfsRqId, se: SeId, first: bool) {
        let at = self.level_lines(cfs, se, step).fetched(step);
        self.write_cfs_timeline_at(at);
        if self.kernel.entity.buddies_cleared == BuddiesCleared::WhenSet {
            self.clear_buddies(cfs, se);
        }
        if self.se[se].on_rq {
            self.update_stats_wait_end(cfs, se);
            if self.has_node(se) {
                self.write_se_at(at);
            }
            let entity = &mut self.se[se];
            entity.in_timeline = false;
            match self.kernel.entity.pick {
                Pick::Cfs => self.cfs_rq[cfs].tasks_timeline.remove(entity.vruntime, se),
                // All tasks of the CPU have one timeline, which the caller has taken it from.
                Pick::Eevdf if self.picks_flat() => {}
                Pick::Eevdf => {
                    self.__dequeue_entity_eevdf(cfs, se);
                    self.set_protect_slice(cfs, se, first);
                }
            }
            self.update_load_avg_again(cfs, se, UpdateLoad::UPDATE_TG, at);
        }
        self.write_se_times_at(at);
        if unlikely(self.schedstat_enabled()) {
            self.update_slice_max(cfs, se);
        }
        let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &mut self.se[se]);
        entity.update_stats_curr_start(&self.rq[cfs_rq.rq]);
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
        cfs_rq.curr = Some(se);
    }

    /// fair.c: put_prev_entity().
    #[inline(always)]
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
            self.put_prev_queued_entity(cfs, prev);
        }
        self.cfs_rq[cfs].curr = None;
    }

    /// The part of `put_prev_entity()` for an entity that is still runnable.
    #[inline(never)]
    fn put_prev_queued_entity(&mut self, cfs: CfsRqId, prev: SeId) {
        self.update_stats_wait_start(cfs, prev);
        if !self.picks_flat() {
            self.__enqueue_entity(cfs, prev);
        }
        self.update_load_avg(cfs, prev, UpdateLoad::NONE);
    }

    /// fair.c: entity_tick().
    #[fentry]
    pub(crate) fn entity_tick(&mut self, cfs: CfsRqId, curr: SeId, queued: bool) {
        self.update_curr(cfs);
        self.update_load_avg(cfs, curr, UpdateLoad::UPDATE_TG);
        self.update_shares(cfs, curr);
        let cpu = self.cfs_rq[cfs].rq;
        if queued {
            return match self.kernel.core.hrtick {
                Hrtick::SliceLeft => self.resched_curr_lazy(cpu),
                Hrtick::Deadline => self.resched_curr(cpu),
            };
        }
        if self.hrtick_ends_the_slice(cpu) {
            return;
        }
        if self.kernel.entity.pick == Pick::Cfs && self.cfs_rq[cfs].nr_running > 1 {
            self.check_preempt_tick(cfs, curr);
        }
    }
}
