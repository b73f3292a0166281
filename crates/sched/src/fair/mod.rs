//! fair.c: the fair class, CFS, split along the kernel's own chapter banners:
//!
//! ```text
//! mod.rs            operations on tasks: enqueue, dequeue, pick, tick, fork, yield
//! flat.rs           ... where all tasks of a CPU compete on one queue (v7.3)
//! levels.rs, levels/ their walks up the hierarchy: a task, and the groups that it fills or leaves empty
//! entity.rs         operations on entities: onto the queue, to the CPU and off again
//! cfs.rs            slices, placement and pick until v6.5
//! eevdf.rs          slices and pick since v6.6
//! lag.rs            the service that an entity is owed when it leaves and joins (EEVDF)
//! protect.rs        how the running entity is protected (EEVDF)
//! delayed.rs        sleepers that stay queued until their lag is made up for (DELAY_DEQUEUE)
//! preempt.rs        wakeup preemption and buddies
//! timeline.rs       the waiting entities, in order
//! class.rs          changes of class and nice level
//! sched_idle.rs     SCHED_IDLE tasks and idle groups
//! group.rs          task groups and their weights; cgroup_mode.rs since v7.3
//! bandwidth/        how much a group may run in each period
//! hrtick.rs         the timer that ends a slice
//! load.rs, load/    load averages, and where the kernel updates them
//! cpu_load.rs       rq->cpu_load[]
//! wake.rs           which CPU a woken or new task goes to
//! wake_affine.rs    ... the waking CPU or the previous one
//! idle_sibling.rs   ... an idle CPU in that one's LLC; idle_scan.rs since v5.12
//! idlest.rs         ... the slow path; idlest_group.rs since v5.5
//! fit.rs, energy.rs ... where CPUs differ in capacity, and by energy
//! balance/          load balancing
//! nohz.rs, nohz/    balancing for CPUs without a tick
//! numa/             tasks and their memory on one node
//! cache/            threads of a process in one LLC
//! scaling.rs        tunables that grow with the number of CPUs
//! statistics.rs     schedstats of entities
//! list.rs           the kernel's linked lists
//! rules.rs          behaviours of entities
//! ```
//!

pub mod balance;
pub mod bandwidth;
pub mod cache;
mod cfs;
pub mod cgroup_mode;
mod class;
pub mod cpu_load;
mod delayed;
mod eevdf;
mod energy;
pub mod entity;
mod fit;
mod flat;
pub mod group;
pub mod hrtick;
mod idle_scan;
mod idle_sibling;
mod idlest;
mod idlest_group;
mod lag;
mod levels;
pub(crate) mod list;
pub mod load;
pub mod nohz;
pub mod numa;
mod preempt;
mod protect;
pub mod rules;
pub(crate) mod scaling;
mod sched_idle;
mod statistics;
#[cfg(test)]
mod tests;
pub mod timeline;
pub mod wake;
mod wake_affine;

use crate::arch::Arch;
use crate::core::Sched;
use crate::core::class::PickOrder;
use crate::core::hrtick::Hrtick;
use crate::cpufreq::UpdateFlags;
use crate::features::Feature;
use crate::pelt::UtilEstimate;
use crate::sched::*;
use crate::syscalls::AloneChanged;
use fentry::fentry;
use rules::{IdleLeft, NewDeadline, Pick, SleeperVruntime, TaskList, Yield};
use units::{CpuId, unlikely};
use wake::RecordWakee;

/// The outcome of `dequeue_entities()`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dequeued {
    /// The entity is still queued.
    Delayed,
    /// The entity is gone, but the queues above a throttled one had not counted it.
    Throttled,
    Whole,
}

impl<A: Arch> Sched<A> {
    /// fair.c: enqueue_task_fair().
    #[inline(always)]
    #[fentry]
    pub(crate) fn enqueue_task_fair(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        let se = self.task[p].se;
        self.read_se_links(se);
        if self.enqueue_throttled_task(p) {
            return;
        }
        if !self.util_est_stays(p, flags) {
            self.util_est_enqueue(cpu, p);
        }
        let flat = self.picks_flat();
        if flat {
            self.update_curr_eevdf(self.rq[cpu].cfs);
        }
        if unlikely(flags.delayed) {
            self.requeue_delayed_entity(se);
            return;
        }
        if unlikely(self.task[p].in_iowait) && self.cpufreq.is_some() {
            self.cpufreq_update_util(cpu, UpdateFlags::IOWAIT);
        }
        let first = unlikely(self.has_fair_server()) && self.cfs_rq[self.rq[cpu].cfs].h_nr_running == 0;
        // On one queue all levels count the task.
        if flat {
            self.enqueue_flat(cpu, p, flags);
        }
        if flat || self.enqueue_levels(p, flags) {
            if unlikely(first) {
                self.fair_server_wakes(cpu);
            }
            self.add_nr_running(cpu, 1);
            // The utilization of a new task is a guess, and mostly too high.
            if flags.wakeup {
                self.check_update_overutilized_status(cpu);
            }
        }
        self.hrtick_update(cpu);
    }

    /// fair.c: dequeue_task_fair(). Returns false if the dequeue is delayed (v6.12): the task is still queued.
    #[inline(always)]
    #[fentry]
    pub(crate) fn dequeue_task_fair(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) -> bool {
        if self.dequeue_throttled_task(p, flags) {
            return true;
        }
        if !self.util_est_stays(p, flags) {
            self.util_est_dequeue_before(cpu, p);
        }
        self.util_est_update_before(cpu, p, flags.sleep);
        if self.dequeue_entities(cpu, self.task[p].se, flags) == Dequeued::Delayed {
            return false;
        }
        self.util_est_update_after(cpu, p, flags.sleep);
        self.hrtick_dequeued(cpu);
        true
    }

    /// Whether the estimated utilization of a task whose dequeue is delayed has left the queue already, and does not
    /// come back.
    #[inline]
    fn util_est_stays(&self, p: TaskId, flags: QueueFlags) -> bool {
        let task = &self.task[p];
        unlikely(self.se[task.se].sched_delayed)
            && (task.on_rq == OnRq::Migrating
                || flags.save_restore
                || flags.sleep
                    && matches!(self.kernel.load.util_est, UtilEstimate::EwmaAnyCpu | UtilEstimate::EwmaInUpdate))
    }

    /// fair.c: dequeue_entities(). Dequeues a task, with the groups that it leaves empty; or a group whose dequeue was
    /// delayed.
    #[doc(alias = "dequeue_task_fair")]
    #[inline(always)]
    pub(crate) fn dequeue_entities(&mut self, cpu: CpuId, se: SeId, flags: QueueFlags) -> Dequeued {
        let was_sched_idle = self.sched_idle_rq(cpu);
        let p = self.se[se].task;
        let dequeued = match self.picks_flat() {
            true => self.dequeue_flat(cpu, se, flags),
            false => self.dequeue_levels(se, flags),
        };
        match dequeued {
            Dequeued::Delayed => return dequeued,
            Dequeued::Throttled => {}
            Dequeued::Whole => {
                self.sub_nr_running(cpu, u32::from(p.is_some()));
                let idle_left = !was_sched_idle && self.sched_idle_rq(cpu);
                if unlikely(idle_left) && self.kernel.entity.idle_left == IdleLeft::BalanceSoon {
                    self.write_rq_curr(cpu);
                    self.rq[cpu].next_balance = self.jiffies();
                }
            }
        }
        if let Some(p) = p
            && flags.delayed
        {
            self.hrtick_dequeued(cpu);
            self.__block_task(cpu, p);
        }
        dequeued
    }

    /// fair.c: task_waking_fair(), until v4.6. Makes a woken task's vruntime relative, and records its waker.
    /// Differs: called in later kernels as well, where it does nothing.
    #[inline]
    pub(crate) fn task_waking_fair(&mut self, p: TaskId) {
        let rules = self.kernel.entity;
        if rules.sleeper_vruntime == SleeperVruntime::RelativeOnWakeup && rules.pick == Pick::Cfs {
            self.task_waking_relative(p);
        }
        if self.kernel.wake.record_wakee == RecordWakee::AtWaking {
            self.record_wakee(p);
        }
    }

    #[inline(never)]
    #[fentry(task_waking_fair)]
    fn task_waking_relative(&mut self, p: TaskId) {
        let se = self.task[p].se;
        let cfs = self.se[se].cfs_rq;
        self.read_cfs_rq(cfs);
        self.write_se_times(se);
        self.se[se].vruntime = self.se[se].vruntime.wrapping_sub(self.cfs_rq[cfs].min_vruntime);
    }

    /// fair.c: pick_next_task_fair(). Before it gives up, it tries to pull a task from another CPU. `None`: there is
    /// nothing to run, or a stopper arrived meanwhile.
    #[inline(always)]
    #[fentry]
    pub(crate) fn pick_next_task_fair(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let root = self.rq[cpu].cfs;
        let p = loop {
            if let Some(p) = self.pick_queued(cpu, prev) {
                break p;
            }
            if self.cfs_rq[root].nr_running == 0 && self.idle_balance(cpu) <= 0 {
                return None;
            }
        };
        self.picked(cpu, prev, p);
        Some(p)
    }

    /// The same during a walk over all classes, which have been balanced before (`pick_next_task_fair()` without `rf`,
    /// which is `__pick_next_task_fair()`).
    #[doc(alias = "__pick_next_task_fair")]
    #[inline(never)]
    #[fentry(pick_next_task_fair)]
    pub(crate) fn pick_fair_here(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let p = self.pick_queued(cpu, prev)?;
        self.picked(cpu, prev, p);
        Some(p)
    }

    /// The end of `pick_next_task_fair()`; since v6.12 (`__set_next_task_fair()`) it applies only if another task is
    /// switched to.
    #[doc(alias = "__set_next_task_fair")]
    #[inline(always)]
    fn picked(&mut self, cpu: CpuId, prev: Option<TaskId>, p: TaskId) {
        self.read_se_links(self.task[p].se);
        if self.kernel.core.pick_order == PickOrder::PutAfterPick && prev == Some(p) {
            return;
        }
        if self.kernel.entity.task_list == TaskList::ByLastRun {
            self.write_rq_balance(cpu);
            self.rq[cpu].cfs_tasks.list_move(&mut self.task, p);
        }
        self.hrtick_picked(cpu, p);
        self.sched_fair_update_stop_tick(cpu, p);
        self.update_misfit_status(cpu, Some(p));
    }

    /// The part of `pick_next_task_fair()` that picks among the queued tasks. `None`: none is left.
    #[inline]
    fn pick_queued(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let root = self.rq[cpu].cfs;
        if self.cfs_rq[root].nr_running == 0 {
            return None;
        }
        let fair = prev.filter(|&prev| self.task[prev].sched_class == SchedClass::Fair);
        if let Some(p) = fair.and_then(|prev| self.pick_after(cpu, prev)) {
            return Some(p);
        }
        // The running task may have been throttled, so that none is left.
        if self.cfs_rq[root].nr_running == 0 { None } else { self.pick_simple(cpu, prev) }
    }

    /// The path of `pick_next_task_fair()` after a fair task: only the levels on which the old and the new task differ
    /// are switched.
    fn pick_after(&mut self, cpu: CpuId, prev: TaskId) -> Option<TaskId> {
        let p = self.pick_task_fair(cpu)?;
        if p == prev {
            return Some(p);
        }
        if self.picks_flat() {
            self.put_prev_task_flat(cpu, prev, Some(p));
            self.set_next_task_flat(cpu, p, true);
            return Some(p);
        }
        let (mut se, mut pse) = (self.task[p].se, self.task[prev].se);
        let common = loop {
            let (cfs, pcfs) = (self.se[se].cfs_rq, self.se[pse].cfs_rq);
            let (depth, pdepth) = (self.se[se].depth, self.se[pse].depth);
            if depth <= pdepth {
                self.put_prev_entity(pcfs, pse);
            }
            if depth >= pdepth {
                self.set_next_entity(cfs, se, true);
            }
            if cfs == pcfs {
                break cfs;
            }
            let up = |se: SeId| self.se[se].parent.expect("the walk ends on the root queue");
            (se, pse) = (if depth >= pdepth { up(se) } else { se }, if depth <= pdepth { up(pse) } else { pse });
        };
        if unlikely(self.cfs_bandwidth_used()) {
            self.account_next(p, common);
        }
        Some(p)
    }

    /// fair.c: pick_task_fair() (v5.14; before, a part of `pick_next_task_fair()`). Picks the next task level by level,
    /// including the running one; since v7.3 among all at once. `None`: none is left, or (until v6.5) a group was throttled on the way. In
    /// v6.18 the pick goes on through throttled queues, and the picked task is to leave them.
    fn pick_task_fair(&mut self, cpu: CpuId) -> Option<TaskId> {
        let cfs_picks = self.kernel.entity.pick == Pick::Cfs;
        if !cfs_picks && self.picks_flat() {
            return self.pick_task_flat(cpu);
        }
        let cfs_picks = cfs_picks || self.puts_before_pick();
        let by_task = self.kernel.bandwidth.throttle.by_task();
        let root = self.rq[cpu].cfs;
        let (mut cfs, mut throttled) = (root, false);
        while self.cfs_rq[root].nr_running != 0 {
            let curr = self.cfs_rq[cfs].curr;
            let queued = curr.filter(|&curr| self.se[curr].on_rq);
            if queued.is_some() {
                self.update_curr(cfs);
            }
            if (curr.is_some() || !cfs_picks || by_task) && self.check_cfs_rq_runtime(cfs) {
                if by_task {
                    throttled = true;
                } else if cfs_picks {
                    return None;
                } else {
                    cfs = root;
                    continue;
                }
            }
            let Some(se) = self.pick_next_entity(cfs, queued) else {
                (cfs, throttled) = (root, false);
                continue;
            };
            let Some(group) = self.se[se].my_q else {
                let p = self.task_of(se);
                if unlikely(throttled) {
                    self.task_throttle_setup_work(p);
                }
                return Some(p);
            };
            cfs = group;
        }
        None
    }

    /// The path of `pick_next_task_fair()` after a task of another class, or none.
    #[inline(always)]
    fn pick_simple(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        match self.kernel.entity.pick {
            Pick::Cfs => Some(self.pick_simple_cfs(cpu, prev)),
            Pick::Eevdf => {
                let puts_before = self.puts_before_pick();
                if puts_before {
                    self.put_prev_task(cpu, prev);
                }
                let p = self.pick_task_fair(cpu)?;
                if !puts_before {
                    self.put_prev_task(cpu, prev);
                }
                self.set_next_task_fair(cpu, p, true);
                Some(p)
            }
        }
    }

    /// Whether EEVDF picks after the previous task was put back, if that is not fair or its group was throttled just now, as v6.6 does.
    /// Where the pick may find that nobody is left who wants to run, it comes first.
    #[inline]
    fn puts_before_pick(&self) -> bool {
        self.kernel.core.pick_order != PickOrder::PutAfterPick && !self.sched_feat(Feature::DELAY_DEQUEUE)
    }

    #[inline(always)]
    fn pick_simple_cfs(&mut self, cpu: CpuId, prev: Option<TaskId>) -> TaskId {
        self.put_prev_task(cpu, prev);
        let root = self.rq[cpu].cfs;
        let mut se = self.pick_next_entity_cfs(root, None);
        if let Some(group) = self.se[se].my_q {
            se = self.set_next_groups(se, group);
        }
        self.set_next_entity(self.se[se].cfs_rq, se, true);
        let p = self.task_of(se);
        if unlikely(self.cfs_bandwidth_used()) {
            self.account_next(p, root);
        }
        p
    }

    /// fair.c: pick_next_entity(). `curr` is the running entity, if it may go on. `None`: see
    /// [`Sched::pick_next_entity_eevdf`].
    #[inline]
    pub(crate) fn pick_next_entity(&mut self, cfs: CfsRqId, curr: Option<SeId>) -> Option<SeId> {
        match self.kernel.entity.pick {
            Pick::Cfs => Some(self.pick_next_entity_cfs(cfs, curr)),
            Pick::Eevdf => self.pick_next_entity_eevdf(cfs, true),
        }
    }

    /// fair.c: task_of().
    #[inline]
    pub(crate) fn task_of(&self, se: SeId) -> TaskId {
        self.se[se].task.expect("an entity without a queue of its own is a task's")
    }

    /// fair.c: put_prev_task_fair().
    #[fentry]
    pub(crate) fn put_prev_task_fair(&mut self, cpu: CpuId, prev: TaskId) {
        if self.picks_flat() {
            return self.put_prev_task_flat(cpu, prev, None);
        }
        let mut level = Some(self.task[prev].se);
        while let Some(se) = level {
            self.put_prev_entity(self.se[se].cfs_rq, se);
            level = self.se[se].parent;
        }
    }

    /// fair.c: set_curr_task_fair(). What runs on `cpu` becomes `curr` of its queues again after a change.
    pub(crate) fn set_curr_task_fair(&mut self, cpu: CpuId) {
        let curr = self.rq[cpu].curr.expect("the idle task is another class");
        self.set_next_task_fair(cpu, curr, false);
    }

    /// The beginning of `set_next_task_fair()`: makes a task's entity and all above it `curr` of their queues.
    fn set_next_task_fair(&mut self, cpu: CpuId, p: TaskId, first: bool) {
        if self.picks_flat() {
            return self.set_next_task_flat(cpu, p, first);
        }
        let (mut level, mut throttled) = (Some(self.task[p].se), false);
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            self.set_next_entity(cfs, se, first);
            // A queue that must not run may have got a running task.
            throttled |= self.account_cfs_rq_runtime(cfs, 0);
            level = self.se[se].parent;
        }
        if unlikely(throttled) {
            self.task_throttle_setup_work(p);
        }
    }

    /// fair.c: yield_task_fair(). The running task is not to be picked next; since v6.6 it gives up the rest of its
    /// slice.
    #[fentry]
    pub(crate) fn yield_task_fair(&mut self, cpu: CpuId) {
        let curr = self.rq[cpu].curr.expect("only a task yields");
        if self.rq[cpu].nr_running == 1 {
            return;
        }
        let se = self.task[curr].se;
        let cfs = self.competes_on(se);
        self.clear_buddies(cfs, se);
        let eevdf = self.kernel.entity.pick == Pick::Eevdf;
        if eevdf || self.task[curr].policy != Policy::Batch {
            self.update_rq_clock(cpu);
            self.update_curr(self.se[se].cfs_rq);
            self.rq_clock_skip_update(cpu, true);
        }
        if !eevdf {
            self.set_skip_buddy(se);
        } else if self.kernel.entity.yields == Yield::Postponed {
            let vslice = self.virtual_time(se, self.se[se].slice.into());
            self.se[se].deadline = self.se[se].deadline.wrapping_add(vslice);
        } else if self.entity_eligible(cfs, se) {
            self.se[se].vruntime = self.se[se].deadline;
            self.update_deadline(cfs, se);
        }
    }

    /// fair.c: task_tick_fair(). `queued`: called by the timer that ends a slice, not by the tick.
    #[fentry]
    pub(crate) fn task_tick_fair(&mut self, cpu: CpuId, curr: TaskId, queued: bool) {
        let flat = self.picks_flat();
        if flat {
            self.tick_flat(cpu, curr, queued);
        }
        let mut level = Some(self.task[curr].se).filter(|_| !flat);
        while let Some(se) = level {
            self.entity_tick(self.se[se].cfs_rq, se, queued);
            level = self.se[se].parent;
        }
        if unlikely(queued) && self.kernel.core.hrtick == Hrtick::Deadline {
            return;
        }
        if self.numa.is_on() {
            self.task_tick_numa(curr);
        }
        if self.balance.cache.is_active() {
            self.task_tick_cache(cpu, curr);
        }
        self.update_misfit_status(cpu, Some(curr));
        self.check_update_overutilized_status(cpu);
    }

    /// fair.c: prio_changed_fair(). `p`, queued on `cpu` or not, has a new priority.
    pub(crate) fn prio_changed_fair(&mut self, cpu: CpuId, p: TaskId, oldprio: i32) {
        let alone = self.competitors(self.rq[cpu].cfs) == 1;
        if self.task[p].on_rq != OnRq::Queued || alone && self.kernel.core.alone_changed == AloneChanged::Nothing {
            return;
        }
        if self.rq[cpu].curr != Some(p) {
            self.check_preempt_curr(cpu, p, WakeFlags::NONE);
        } else if self.task[p].prio > oldprio {
            self.resched_curr(cpu);
        }
    }

    /// fair.c: task_fork_fair(). Sets where a child starts, relative to its parent's queue; since v6.6 only its first
    /// enqueue decides that.
    #[inline]
    pub(crate) fn task_fork_fair(&mut self, p: TaskId) {
        match self.kernel.entity.pick {
            Pick::Cfs => self.task_fork_fair_cfs(p),
            Pick::Eevdf if self.kernel.entity.new_deadline == NewDeadline::WholeSlice => self.task_fork_fair_eevdf(p),
            Pick::Eevdf => {}
        }
    }

    /// `task_fork_fair()` from v6.6 on, until new tasks were first placed when they are queued: charges the parent, and places the
    /// child beside it, which the enqueue does anew.
    #[fentry(task_fork_fair)]
    fn task_fork_fair_eevdf(&mut self, p: TaskId) {
        let cpu = self.smp_processor_id();
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        let cfs = match self.rq[cpu].curr {
            Some(parent) => self.competes_on(self.task[parent].se),
            None => self.rq[cpu].cfs,
        };
        self.update_curr(cfs);
        if !self.picks_flat() {
            let flags = QueueFlags { initial: true, ..QueueFlags::default() };
            self.place_entity_eevdf(cfs, self.task[p].se, flags, self.competitors(cfs));
        }
        self.rq_unlock(cpu);
    }

    #[fentry(task_fork_fair)]
    fn task_fork_fair_cfs(&mut self, p: TaskId) {
        let cpu = self.smp_processor_id();
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        let cfs = match self.rq[cpu].curr {
            Some(parent) => self.se[self.task[parent].se].cfs_rq,
            None => self.rq[cpu].cfs,
        };
        let se = self.task[p].se;
        let curr = self.cfs_rq[cfs].curr;
        if let Some(curr) = curr {
            self.update_curr(cfs);
            self.se[se].vruntime = self.se[curr].vruntime;
        }
        self.place_entity_cfs(cfs, se, true);
        if let Some(curr) = curr
            && self.sysctl.sched_child_runs_first != 0
        {
            let (parent, child) = (self.se[curr].vruntime, self.se[se].vruntime);
            if timeline::entity_before(parent, child) {
                self.se[curr].vruntime = child;
                self.se[se].vruntime = parent;
                self.resched_curr(cpu);
            }
        }
        self.se[se].vruntime = self.se[se].vruntime.wrapping_sub(self.cfs_rq[cfs].min_vruntime);
        self.rq_unlock(cpu);
    }
}
