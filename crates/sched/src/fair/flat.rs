//! fair.c: one pick for all tasks of a CPU, whatever their groups (v7.3; [`PickLevels::Flat`]).
//!
//! Every task competes on its CPU's root queue, with the weight that is left of its own when each group on the way up has weighed what
//! is below it (`h_load`, [`Sched::calc_prop_weight`]). That product is taken when a task is queued, when it is picked or becomes the
//! running one again after a change, and at its ticks: a task that waits keeps the weight that it had last. Groups' entities are queued
//! as before, for load averages, shares and quotas, but nobody picks them: they have no virtual time, no slice, and never fall asleep
//! late.
//!
//! ```text
//! h_curr (curr)  the entity of each level that contains the running task: averages, time, quotas
//! curr (flat_curr)  the running task's entity, on the root queue: the competition
//! ```
//!
//! Fields have the kernel's names of before: on a level, `curr` is what v7.3 calls `h_curr`.

use super::Dequeued;
use super::load::{Step, UpdateLoad};
use super::rules::{ExecStartReset, PickLevels};
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::bandwidth::Throttle;
use crate::fair::group::MIN_SHARES;
use crate::fair::rules::Pick;
use crate::load_weight::calc_delta_fair;
use crate::sched::*;
use crate::versions::Kernel;
use fentry::fentry;
use units::{CpuId, unlikely};

impl Kernel {
    /// Whether all tasks of a CPU compete on its root queue.
    #[inline]
    pub fn picks_flat(&self) -> bool {
        self.entity.pick_levels == PickLevels::Flat
            && self.entity.pick == Pick::Eevdf
            && self.bandwidth.throttle == Throttle::Task
    }
}

impl<A: Arch> Sched<A> {
    // With whom an entity competes.

    /// [`Kernel::picks_flat`].
    #[inline]
    pub(crate) fn picks_flat(&self) -> bool {
        unlikely(self.kernel.picks_flat())
    }

    /// The queue on which a task's entity, or until v7.2 any, competes.
    #[inline]
    pub fn competes_on(&self, se: SeId) -> CfsRqId {
        let cfs = self.se[se].cfs_rq;
        if self.picks_flat() { self.rq[self.cfs_rq[cfs].rq].cfs } else { cfs }
    }

    /// The running one of those that compete on a queue: the kernel's `curr`.
    #[inline]
    pub fn competing_curr(&self, cfs: CfsRqId) -> Option<SeId> {
        if self.picks_flat() { self.cfs_rq[cfs].flat_curr } else { self.cfs_rq[cfs].curr }
    }

    /// An entity's weight in that competition, in the scale of stored weights.
    #[inline]
    pub fn competing_weight(&self, se: SeId) -> u64 {
        let entity = &self.se[se];
        if self.picks_flat() { entity.h_load.weight } else { entity.load.weight }
    }

    /// How many compete on a queue, those included whose dequeue is delayed.
    #[inline]
    pub(super) fn competitors(&self, cfs: CfsRqId) -> u32 {
        if self.picks_flat() { self.cfs_rq[cfs].h_nr_running } else { self.cfs_rq[cfs].nr_running }
    }

    /// A time in ns of the entity's own as virtual time of the queue on which it competes, by calc_delta_fair().
    #[inline]
    pub(super) fn virtual_time(&mut self, se: SeId, delta: u64) -> u64 {
        let (resolution, flat) = (self.kernel.load_resolution, self.picks_flat());
        let se = &mut self.se[se];
        calc_delta_fair(resolution, delta, if flat { &mut se.h_load } else { &mut se.load })
    }

    // Lines.

    /// Whether an entity changes the line of its `run_node` when it is queued, dequeued or picked: groups' entities do not, where no
    /// timeline has them.
    #[inline]
    pub(super) fn has_node(&self, se: SeId) -> bool {
        self.se[se].task.is_some() || !self.picks_flat()
    }

    /// Changes the counts and sums of the root queue for a task of a group; one of the root group has changed them with its own queue's.
    fn write_root_of_group(&mut self, root: CfsRqId, se: SeId) {
        if self.se[se].cfs_rq != root {
            self.write_cfs_rq(root);
        }
    }

    // Weights.

    /// fair.c: __calc_prop_weight(). What an entity's part of its queue makes of `weight`, in the scale of stored weights.
    #[doc(alias = "__calc_prop_weight")]
    #[inline]
    fn calc_prop_weight(&self, cfs: CfsRqId, se: SeId, weight: u64) -> u64 {
        let entity = &self.se[se];
        let whole = match entity.parent {
            Some(_) => self.cfs_rq[cfs].load.weight,
            None => self.kernel.load_resolution.nice_0_load(),
        };
        debug_assert_ne!(whole, 0, "{se:?} is queued on {cfs:?}");
        (weight * entity.load.weight / whole).max(MIN_SHARES)
    }

    /// fair.c: reweight_eevdf(). A task gets another weight among those of its CPU; `queued`: it competes there.
    fn reweight_eevdf(&mut self, root: CfsRqId, se: SeId, weight: u64, queued: bool) {
        if self.se[se].h_load.weight == weight {
            return;
        }
        self.write_se(se);
        let mut relative = queued.then(|| self.begin_reweight(root, se));
        self.rescale_entity(se, weight, relative.as_mut());
        self.se[se].h_load.update_load_set(weight);
        if let Some(relative) = relative {
            self.end_reweight(root, se, relative);
        }
    }

    // Time.

    /// The body of `update_curr()`: charges `curr`, the entity of its level that runs; virtual time passes for a task only.
    pub(super) fn charge_curr_flat(&mut self, cfs: CfsRqId, curr: SeId, delta_exec: u64) {
        let entity = &mut self.se[curr];
        entity.exec_start = entity.exec_start.wrapping_add(delta_exec);
        entity.sum_exec_runtime += delta_exec;
        let task = entity.task;
        let cpu = self.cfs_rq[cfs].rq;
        if let Some(p) = task
            && self.balance.cache.is_active()
        {
            self.account_mm_sched(cpu, p, delta_exec);
        }
        self.count_exec(cfs, curr, delta_exec);
        if task.is_none() {
            self.account_cfs_rq_runtime(cfs, delta_exec);
            return;
        }
        let root = self.rq[cpu].cfs;
        self.read_cfs_rq(root);
        let vdelta = self.virtual_time(curr, delta_exec);
        let entity = &mut self.se[curr];
        entity.vruntime = entity.vruntime.wrapping_add(vdelta);
        self.charge_curr(cfs, curr, delta_exec);
        let slice_ended = self.update_deadline(root, curr);
        if slice_ended {
            self.write_cfs_rq(root);
        }
        self.resched_after_update(root, curr, slice_ended);
    }

    /// fair.c: update_curr_fair(). Charges the running task, since v7.3 at each level.
    pub(crate) fn update_curr_fair(&mut self, curr: TaskId) {
        let se = self.task[curr].se;
        if !self.picks_flat() {
            return self.update_curr(self.se[se].cfs_rq);
        }
        let mut level = Some(se);
        while let Some(se) = level {
            self.update_curr(self.se[se].cfs_rq);
            level = self.se[se].parent;
        }
    }

    /// fair.c: update_curr_eevdf(). Charges the running task before others compare with it; the groups above it come later.
    pub(super) fn update_curr_eevdf(&mut self, root: CfsRqId) {
        if let Some(curr) = self.cfs_rq[root].flat_curr {
            self.update_curr(self.se[curr].cfs_rq);
        }
    }

    // The queue.

    /// The part of `enqueue_task_fair()` between the estimated utilization and the counts of the CPU: queues the task and every group
    /// that was empty, and places the task among all others.
    #[inline(never)]
    pub(super) fn enqueue_flat(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        let (root, se) = (self.rq[cpu].cfs, self.task[p].se);
        let is_curr = self.cfs_rq[root].flat_curr == Some(se);
        if is_curr {
            let others = self.cfs_rq[root].h_nr_running;
            self.place_entity_eevdf(root, se, flags, others);
        }
        let weight = self.enqueue_hierarchy(p, flags);
        if !is_curr {
            self.reweight_eevdf(root, se, weight, false);
            let others = self.cfs_rq[root].h_nr_running - 1;
            self.place_entity_eevdf(root, se, flags, others);
            self.write_root_of_group(root, se);
            self.write_cfs_timeline(root);
            self.__enqueue_entity(root, se);
        }
    }

    /// fair.c: enqueue_hierarchy(). Returns the task's weight among all of its CPU.
    fn enqueue_hierarchy(&mut self, p: TaskId, mut flags: QueueFlags) -> u64 {
        let se = self.task[p].se;
        let mut idle = self.task_has_idle_policy(p);
        // If it is moved while its dequeue is delayed, it still counts as delayed.
        let delayed = u32::from(!flags.wakeup && self.se[se].sched_delayed);
        let mut weight = self.kernel.load_resolution.nice_0_load();
        let mut level = Some(se);
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            self.update_curr(cfs);
            if self.se[se].on_rq {
                self.update_level(cfs, se);
            } else {
                self.enqueue_entity_flat(cfs, se, flags);
            }
            let queue = &mut self.cfs_rq[cfs];
            queue.h_nr_running += 1;
            queue.h_nr_delayed += delayed;
            queue.idle_h_nr_running += u32::from(idle);
            // From an idle group upwards, all its tasks count as idle.
            idle |= queue.idle;
            weight = self.calc_prop_weight(cfs, se, weight);
            flags = QueueFlags { wakeup: true, ..QueueFlags::default() };
            level = self.se[se].parent;
        }
        weight
    }

    /// fair.c: enqueue_entity(), which no longer places anybody.
    #[fentry(enqueue_entity)]
    fn enqueue_entity_flat(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags) {
        let at = self.level_lines(cfs, se, Step::Any);
        self.write_cfs_rq_at(at);
        if self.has_node(se) {
            self.write_se_at(at);
        }
        self.write_se_times_at(at);
        self.enqueue_averages(cfs, se, Step::Any, at);
        self.enqueue_weight(cfs, se, Step::Any);
        self.llc_enqueue_entity(se);
        if flags.migrated && self.kernel.entity.exec_start_reset != ExecStartReset::AtMigration {
            self.se[se].exec_start = 0;
        }
        self.update_stats_enqueue(cfs, se, flags);
        self.se[se].on_rq = true;
        if self.cfs_rq[cfs].nr_running == 1 {
            self.first_queued(cfs);
        }
    }

    /// The averages and the weight of a level that somebody joins or leaves below an entity which stays queued.
    fn update_level(&mut self, cfs: CfsRqId, se: SeId) {
        self.update_load_avg(cfs, se, UpdateLoad::UPDATE_TG);
        self.se_update_runnable(se);
        self.update_shares(cfs, se);
    }

    /// fair.c: __dequeue_task(), up to the counts of the CPU.
    #[doc(alias = "__dequeue_task")]
    #[inline(never)]
    pub(super) fn dequeue_flat(&mut self, cpu: CpuId, se: SeId, flags: QueueFlags) -> Dequeued {
        let Some(p) = self.se[se].task else { unreachable!("only tasks are dequeued from a flat queue") };
        let root = self.rq[cpu].cfs;
        self.clear_buddies(root, se);
        self.update_curr_eevdf(root);
        self.update_entity_lag(root, se);
        if self.delays_dequeue(root, se, flags) {
            self.update_load_avg(self.se[se].cfs_rq, se, UpdateLoad::NONE);
            self.estimate_sleepers_util(se, flags);
            self.set_delayed(se);
            return Dequeued::Delayed;
        }
        self.dequeue_hierarchy(p, flags);
        self.write_root_of_group(root, se);
        if self.competing_curr(root) != Some(se) {
            self.write_cfs_timeline(root);
            self.__dequeue_entity(root, se);
        }
        self.keep_relative_deadline(se, flags);
        if flags.delayed {
            self.finish_delayed_dequeue_entity(se);
        }
        Dequeued::Whole
    }

    /// fair.c: dequeue_hierarchy().
    fn dequeue_hierarchy(&mut self, p: TaskId, mut flags: QueueFlags) {
        let se = self.task[p].se;
        let mut idle = self.task_has_idle_policy(p);
        let delayed = u32::from(!flags.sleep && !flags.delayed && self.se[se].sched_delayed);
        let (mut level, mut leaves) = (Some(se), true);
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            self.update_curr(cfs);
            if leaves {
                self.dequeue_entity_flat(cfs, se, flags);
                leaves = self.cfs_rq[cfs].load.weight == 0;
            } else {
                self.update_level(cfs, se);
            }
            let queue = &mut self.cfs_rq[cfs];
            queue.h_nr_running -= 1;
            queue.h_nr_delayed -= delayed;
            queue.idle_h_nr_running -= u32::from(idle);
            idle |= queue.idle;
            flags = QueueFlags { sleep: true, delayed: false, special: false, ..flags };
            level = self.se[se].parent;
        }
    }

    /// fair.c: dequeue_entity(), for the averages and counts of one level.
    #[fentry(dequeue_entity)]
    fn dequeue_entity_flat(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags) {
        let at = self.level_lines(cfs, se, Step::Any);
        self.write_cfs_rq_at(at);
        if self.has_node(se) {
            self.write_se_at(at);
        }
        self.write_se_times_at(at);
        self.dequeue_averages(cfs, se, Step::Any, at);
        self.estimate_sleepers_util(se, flags);
        self.update_stats_dequeue(cfs, se, flags);
        self.account_entity_dequeue(cfs, se, Step::Any);
        self.llc_dequeue_entity(se);
        self.return_cfs_rq_runtime(cfs);
        self.update_shares(cfs, se);
        if self.cfs_rq[cfs].nr_running == 0 {
            self.update_idle_cfs_rq_clock_pelt(cfs);
            self.fell_empty(cfs);
        }
    }

    // To the CPU and off it.

    /// `pick_task_fair()`: picks among all tasks of the CPU, the running one included. `None`: none is left.
    pub(super) fn pick_task_flat(&mut self, cpu: CpuId) -> Option<TaskId> {
        let root = self.rq[cpu].cfs;
        while self.cfs_rq[root].h_nr_running != 0 {
            if self.queued_curr(root).is_some() {
                self.update_curr_eevdf(root);
            }
            if let Some(se) = self.pick_next_entity_eevdf(root, true) {
                return Some(self.task_of(se));
            }
        }
        None
    }

    /// `put_prev_task_fair()`: levels that `next`, if there is one, shares with `prev` keep what runs on them.
    pub(super) fn put_prev_task_flat(&mut self, cpu: CpuId, prev: TaskId, next: Option<TaskId>) {
        let se = self.task[prev].se;
        let mut following = next.map(|next| self.task[next].se);
        let mut level = Some(se);
        while let Some(here) = level {
            let cfs = self.se[here].cfs_rq;
            if following.is_none() || self.cfs_rq[cfs].curr.is_some() {
                self.put_prev_entity(cfs, here);
            }
            level = self.se[here].parent;
            if let Some(other) = following {
                if self.se[other].cfs_rq == cfs {
                    break;
                }
                let (depth, other_depth) = (self.se[here].depth, self.se[other].depth);
                if other_depth >= depth {
                    following = self.se[other].parent;
                }
                if other_depth > depth {
                    level = Some(here);
                }
            }
        }
        let root = self.rq[cpu].cfs;
        debug_assert_eq!(self.cfs_rq[root].flat_curr, Some(se));
        self.cfs_rq[root].flat_curr = None;
        if self.se[se].on_rq {
            self.write_cfs_timeline(root);
            self.__enqueue_entity(root, se);
        }
    }

    /// `set_next_task_fair()`, for what makes a task the running one. `first`: it was picked, not only put back after a change.
    pub(super) fn set_next_task_flat(&mut self, cpu: CpuId, p: TaskId, first: bool) {
        let (root, se) = (self.rq[cpu].cfs, self.task[p].se);
        let queued = self.se[se].on_rq;
        self.clear_buddies(root, se);
        self.write_cfs_timeline(root);
        if queued {
            self.__dequeue_entity(root, se);
        }
        let (mut level, mut throttled) = (Some(se), false);
        let mut weight = self.kernel.load_resolution.nice_0_load();
        while let Some(here) = level {
            let cfs = self.se[here].cfs_rq;
            if !first || self.cfs_rq[cfs].curr.is_none() {
                self.set_next_entity(cfs, here, first);
            }
            throttled |= self.account_cfs_rq_runtime(cfs, 0);
            if queued {
                weight = self.calc_prop_weight(cfs, here, weight);
            }
            level = self.se[here].parent;
        }
        if unlikely(throttled) {
            self.task_throttle_setup_work(p);
        }
        self.cfs_rq[root].flat_curr = Some(se);
        if queued {
            self.reweight_eevdf(root, se, weight, true);
            self.set_protect_slice(root, se, first);
        }
    }

    /// The levels of `task_tick_fair()`, with the weight that the running task has by now.
    pub(super) fn tick_flat(&mut self, cpu: CpuId, curr: TaskId, queued: bool) {
        let se = self.task[curr].se;
        if !self.se[se].on_rq {
            return;
        }
        let mut weight = self.kernel.load_resolution.nice_0_load();
        let mut level = Some(se);
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            self.entity_tick(cfs, se, queued);
            weight = self.calc_prop_weight(cfs, se, weight);
            level = self.se[se].parent;
        }
        self.reweight_eevdf(self.rq[cpu].cfs, se, weight, true);
    }

    /// fair.c: ineligible_vruntime(). Where the running entity stops being owed anything: just past the average of those that wait.
    pub(super) fn ineligible_vruntime(&self, cfs: CfsRqId) -> u64 {
        let CfsRq { sum_w_vruntime: sum, sum_weight, zero_vruntime, .. } = self.cfs_rq[cfs];
        let weight = sum_weight as i64;
        let delta = match weight {
            0 => 0,
            // Rounded down.
            _ if sum < 0 => sum.wrapping_sub(weight - 1) / weight,
            _ => sum / weight,
        };
        zero_vruntime.wrapping_add_signed(delta).wrapping_add(1)
    }
}
