//! fair.c: the fair class, CFS. Split along the kernel's own chapter banners:
//!
//! ```text
//! mod.rs         operations on tasks: enqueue, dequeue, pick, tick, fork, yield
//! entity.rs      operations on entities: virtual time, placement, the way onto the queue, to the CPU and off
//! preempt.rs     wakeup preemption and buddies       timeline.rs   what waits, by vruntime
//! load.rs        load averages, where they are kept  statistics.rs schedstats of entities
//! group.rs       task groups and their weights       list.rs       the kernel's linked lists
//! bandwidth/*.rs what a group may use of each period
//! wake.rs        which CPU a woken task goes to       balance*.rs   load balancing
//! nohz.rs        balancing for CPUs without a tick   cpu_load.rs   rq->cpu_load[]
//! hrtick.rs      the timer that ends a slice
//! ```
//!
//! Absent: NUMA balancing, capacity-aware placement, cpufreq hooks.

pub mod balance;
pub mod bandwidth;
pub mod cpu_load;
pub mod entity;
mod fit;
pub mod group;
pub mod hrtick;
mod idle_scan;
mod idle_sibling;
mod idlest;
mod idlest_group;
pub(crate) mod list;
pub mod load;
pub mod nohz;
mod preempt;
pub mod rules;
mod sched_idle;
mod statistics;
#[cfg(test)]
mod tests;
pub mod timeline;
pub mod wake;
mod wake_affine;

use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::*;
use bandwidth::ThrottleLevels;
use fentry::fentry;
use load::UpdateLoad;
use rules::{IdleLeft, SleeperVruntime, TaskList};
use units::CpuId;
use wake::RecordWakee;

impl<A: Arch> Sched<A> {
    /// fair.c: enqueue_task_fair().
    #[fentry]
    pub(crate) fn enqueue_task_fair(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        self.read_se_links(self.task[p].se);
        self.util_est_enqueue(cpu, p);
        if self.enqueue_levels(p, flags) {
            self.add_nr_running(cpu, 1);
        }
        self.hrtick_update(cpu);
    }

    /// The walk up of `enqueue_task_fair()`: queues the task and every group that was empty. Returns whether it came to the root;
    /// it ends at a throttled queue, above which nobody knows of what is below.
    fn enqueue_levels(&mut self, p: TaskId, flags: QueueFlags) -> bool {
        let mut flags = flags;
        let mut idle_h_nr_running = u32::from(self.task_has_idle_policy(p));
        let mut level = Some(self.task[p].se);
        while let Some(se) = level
            && !self.se[se].on_rq
        {
            let cfs = self.se[se].cfs_rq;
            self.enqueue_entity(cfs, se, flags);
            let cfs_rq = &mut self.cfs_rq[cfs];
            cfs_rq.h_nr_running += 1;
            cfs_rq.idle_h_nr_running += idle_h_nr_running;
            idle_h_nr_running |= u32::from(cfs_rq.idle);
            if self.cfs_rq_throttled(cfs) {
                return false;
            }
            flags = QueueFlags { wakeup: true, ..QueueFlags::default() };
            level = self.se[se].parent;
        }
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            self.update_level_above(cfs, se);
            let cfs_rq = &mut self.cfs_rq[cfs];
            cfs_rq.h_nr_running += 1;
            cfs_rq.idle_h_nr_running += idle_h_nr_running;
            idle_h_nr_running |= u32::from(cfs_rq.idle);
            if self.cfs_rq_throttled(cfs) {
                return false;
            }
            level = self.se[se].parent;
        }
        true
    }

    /// The averages and the weight of a level on which nothing is queued or taken off, but below which something was: past time
    /// counts with the number of tasks there were in it.
    fn update_level_above(&mut self, cfs: CfsRqId, se: SeId) {
        if self.cfs_rq_throttled(cfs) && self.kernel.bandwidth.throttle_levels == ThrottleLevels::CountsOnly {
            return;
        }
        self.update_load_avg(cfs, se, UpdateLoad::UPDATE_TG);
        self.se_update_runnable(se);
        self.update_shares(cfs, se);
    }

    /// fair.c: dequeue_task_fair().
    #[fentry]
    pub(crate) fn dequeue_task_fair(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        let task_sleep = flags.sleep;
        let was_sched_idle = self.sched_idle_rq(cpu);
        self.util_est_dequeue(cpu, p);
        self.util_est_update_before(cpu, p, task_sleep);
        if self.dequeue_levels(p, flags) {
            self.sub_nr_running(cpu, 1);
            if self.kernel.entity.idle_left == IdleLeft::BalanceSoon && !was_sched_idle && self.sched_idle_rq(cpu) {
                self.write_rq_curr(cpu);
                self.rq[cpu].next_balance = self.jiffies();
            }
        }
        self.util_est_update_after(cpu, p, task_sleep);
        self.hrtick_update(cpu);
    }

    /// The walk up of `dequeue_task_fair()`: takes off the task and every group that falls empty. Returns whether it came to the
    /// root.
    /// Differs: no buddy is announced in a throttled hierarchy, which v4.5 does, and then runs it (until v4.8).
    fn dequeue_levels(&mut self, p: TaskId, flags: QueueFlags) -> bool {
        let task_sleep = flags.sleep;
        let mut flags = flags;
        let mut idle_h_nr_running = u32::from(self.task_has_idle_policy(p));
        let mut level = Some(self.task[p].se);
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            self.dequeue_entity(cfs, se, flags);
            let cfs_rq = &mut self.cfs_rq[cfs];
            cfs_rq.h_nr_running -= 1;
            cfs_rq.idle_h_nr_running -= idle_h_nr_running;
            idle_h_nr_running |= u32::from(cfs_rq.idle);
            let empty = cfs_rq.load.weight == 0;
            if self.cfs_rq_throttled(cfs) {
                return false;
            }
            level = self.se[se].parent;
            if !empty {
                // Whoever runs next comes from this group by preference: its part of the period is not used up.
                if let Some(parent) = level
                    && task_sleep
                    && !self.throttled_hierarchy(cfs)
                {
                    self.set_next_buddy(parent);
                }
                break;
            }
            flags.sleep = true;
        }
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            self.update_level_above(cfs, se);
            let cfs_rq = &mut self.cfs_rq[cfs];
            cfs_rq.h_nr_running -= 1;
            cfs_rq.idle_h_nr_running -= idle_h_nr_running;
            idle_h_nr_running |= u32::from(cfs_rq.idle);
            if self.cfs_rq_throttled(cfs) {
                return false;
            }
            level = self.se[se].parent;
        }
        true
    }

    /// fair.c: task_waking_fair(), until v4.6: a woken task's vruntime leaves its queue, and its waker is remembered.
    /// Differs: called in later kernels as well, and does nothing there.
    #[inline]
    pub(crate) fn task_waking_fair(&mut self, p: TaskId) {
        if self.kernel.entity.sleeper_vruntime == SleeperVruntime::RelativeOnWakeup {
            self.task_waking_relative(p);
        }
        if self.kernel.wake.record_wakee == RecordWakee::AtWaking {
            self.record_wakee(p);
        }
    }

    #[fentry(task_waking_fair)]
    fn task_waking_relative(&mut self, p: TaskId) {
        let se = self.task[p].se;
        let cfs = self.se[se].cfs_rq;
        self.read_cfs_rq(cfs);
        self.write_se_times(se);
        self.se[se].vruntime = self.se[se].vruntime.wrapping_sub(self.cfs_rq[cfs].min_vruntime);
    }

    /// fair.c: pick_next_task_fair(). Before it gives up it tries to pull a task from another CPU. `None`: nothing to run,
    /// or a stopper came meanwhile.
    #[fentry]
    pub(crate) fn pick_next_task_fair(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let root = self.rq[cpu].cfs;
        let p = loop {
            if self.cfs_rq[root].nr_running == 0 {
                if self.idle_balance(cpu) <= 0 {
                    return None;
                }
                continue;
            }
            let fair = prev.filter(|&prev| self.task[prev].sched_class == SchedClass::Fair);
            if let Some(p) = fair.and_then(|prev| self.pick_after(cpu, prev)) {
                break p;
            }
            // What ran may have been throttled, and nothing be left.
            if fair.is_none() || self.cfs_rq[root].nr_running > 0 {
                break self.pick_simple(cpu, prev);
            }
        };
        self.read_se_links(self.task[p].se);
        if self.kernel.entity.task_list == TaskList::ByLastRun {
            self.write_rq_balance(cpu);
            self.rq[cpu].cfs_tasks.list_move(&mut self.task, p);
        }
        self.hrtick_picked(cpu, p);
        self.update_misfit_status(cpu, Some(p));
        Some(p)
    }

    /// The path of `pick_next_task_fair()` after a fair task: only the levels on which the old and the new one differ change
    /// hands. `None`: a group of the old one has used up its runtime and was throttled.
    fn pick_after(&mut self, cpu: CpuId, prev: TaskId) -> Option<TaskId> {
        let mut cfs = self.rq[cpu].cfs;
        let mut se = loop {
            let mut curr = self.cfs_rq[cfs].curr;
            if let Some(running) = curr {
                if self.se[running].on_rq {
                    self.update_curr(cfs);
                } else {
                    curr = None;
                }
                if self.check_cfs_rq_runtime(cfs) {
                    return None;
                }
            }
            let se = self.pick_next_entity(cfs, curr);
            match self.se[se].my_q {
                Some(group) => cfs = group,
                None => break se,
            }
        };
        let p = self.task_of(se);
        if p == prev {
            return Some(p);
        }
        let mut pse = self.task[prev].se;
        while self.se[se].cfs_rq != self.se[pse].cfs_rq {
            let (depth, pdepth) = (self.se[se].depth, self.se[pse].depth);
            if depth <= pdepth {
                self.put_prev_entity(self.se[pse].cfs_rq, pse);
                pse = self.se[pse].parent.expect("the walk ends on the root queue");
            }
            if depth >= pdepth {
                self.set_next_entity(self.se[se].cfs_rq, se);
                se = self.se[se].parent.expect("the walk ends on the root queue");
            }
        }
        let cfs = self.se[se].cfs_rq;
        self.put_prev_entity(cfs, pse);
        self.set_next_entity(cfs, se);
        Some(p)
    }

    /// The path of `pick_next_task_fair()` after a task of another class, or none.
    fn pick_simple(&mut self, cpu: CpuId, prev: Option<TaskId>) -> TaskId {
        self.put_prev_task(cpu, prev);
        let mut cfs = self.rq[cpu].cfs;
        loop {
            let se = self.pick_next_entity(cfs, None);
            self.set_next_entity(cfs, se);
            match self.se[se].my_q {
                Some(group) => cfs = group,
                None => return self.task_of(se),
            }
        }
    }

    /// fair.c: task_of().
    #[inline]
    pub(crate) fn task_of(&self, se: SeId) -> TaskId {
        self.se[se].task.expect("an entity without a queue of its own is a task's")
    }

    /// fair.c: put_prev_task_fair().
    #[fentry]
    pub(crate) fn put_prev_task_fair(&mut self, _cpu: CpuId, prev: TaskId) {
        let mut level = Some(self.task[prev].se);
        while let Some(se) = level {
            self.put_prev_entity(self.se[se].cfs_rq, se);
            level = self.se[se].parent;
        }
    }

    /// fair.c: set_curr_task_fair(). What runs on `cpu` becomes `curr` of its queues, after it was changed.
    pub(crate) fn set_curr_task_fair(&mut self, cpu: CpuId) {
        let curr = self.rq[cpu].curr.expect("the idle task is another class");
        let mut level = Some(self.task[curr].se);
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            self.set_next_entity(cfs, se);
            // A queue that must not run may have got a task that runs.
            self.account_cfs_rq_runtime(cfs, 0);
            level = self.se[se].parent;
        }
    }

    /// fair.c: yield_task_fair(). The running task is not to be picked next.
    #[fentry]
    pub(crate) fn yield_task_fair(&mut self, cpu: CpuId) {
        let curr = self.rq[cpu].curr.expect("only a task yields");
        if self.rq[cpu].nr_running == 1 {
            return;
        }
        let se = self.task[curr].se;
        let cfs = self.se[se].cfs_rq;
        self.clear_buddies(cfs, se);
        if self.task[curr].policy != Policy::Batch {
            self.update_rq_clock(cpu);
            self.update_curr(cfs);
            self.rq_clock_skip_update(cpu, true);
        }
        self.set_skip_buddy(se);
    }

    /// fair.c: task_tick_fair(). `queued`: not the tick, but the timer that ends a slice.
    #[fentry]
    pub(crate) fn task_tick_fair(&mut self, cpu: CpuId, curr: TaskId, queued: bool) {
        let mut level = Some(self.task[curr].se);
        while let Some(se) = level {
            self.entity_tick(self.se[se].cfs_rq, se, queued);
            level = self.se[se].parent;
        }
        self.update_misfit_status(cpu, Some(curr));
    }

    /// fair.c: prio_changed_fair(). `p`, queued on `cpu` or not, has a new priority.
    pub(crate) fn prio_changed_fair(&mut self, cpu: CpuId, p: TaskId, oldprio: i32) {
        if self.task[p].on_rq != OnRq::Queued || self.cfs_rq[self.rq[cpu].cfs].nr_running == 1 {
            return;
        }
        if self.rq[cpu].curr != Some(p) {
            self.check_preempt_curr(cpu, p, WakeFlags::NONE);
        } else if self.task[p].prio > oldprio {
            self.resched_curr(cpu);
        }
    }

    /// fair.c: task_fork_fair(). Where a child starts, relative to its parent's queue.
    #[fentry]
    pub(crate) fn task_fork_fair(&mut self, p: TaskId) {
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
        self.place_entity(cfs, se, true);
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
