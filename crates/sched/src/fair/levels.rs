//! fair.c: the walks up the hierarchy of `enqueue_task_fair()` and `dequeue_entities()`: over a task, the groups that it fills or
//! leaves empty, and the groups above, which only count it. The groups' part is a function of its own for each arithmetic.

mod plain;

use super::Dequeued;
use super::bandwidth::ThrottleLevels;
use super::load::{Arithmetic, Released, Step, UpdateLoad, with_arithmetic};
use super::rules::{Pick, SliceOf};
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::*;
use units::unlikely;

/// How a task that comes or leaves changes the counts of the queues above it.
#[derive(Clone, Copy)]
struct CountChange {
    /// 1, or 0 for a group without tasks.
    tasks: u32,
    idle: u32,
    delayed: u32,
}

/// The state of a walk up.
#[derive(Clone, Copy)]
struct Walk {
    /// The next entity.
    level: Option<SeId>,
    change: CountChange,
    /// The slice that a group asks for: the shortest of those below it.
    slice: Option<u32>,
}

/// What one step of a dequeue leaves on the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Empty,
    /// Other entities are still there, or the entity itself, because its dequeue is delayed.
    Inhabited,
    Throttled,
    /// The task is still there.
    Delayed,
}

impl Walk {
    /// The same, but tells the compiler which fields the kernels of this arithmetic lack: custom slices and delayed dequeues.
    #[inline(always)]
    fn known(mut self, arithmetic: Arithmetic) -> Walk {
        if arithmetic.pick == Pick::Cfs {
            debug_assert!(self.slice.is_none() && self.change.delayed == 0, "both came with the pick by deadline");
            (self.slice, self.change.delayed) = (None, 0);
        }
        self
    }
}

/// A group that becomes empty goes to sleep, whatever its last task does.
#[inline(always)]
fn of_group(of_task: &QueueFlags) -> QueueFlags {
    QueueFlags { sleep: true, delayed: false, special: false, ..*of_task }
}

impl CfsRq {
    #[inline]
    fn count_enqueue(&mut self, change: &mut CountChange) {
        self.h_nr_running += change.tasks;
        self.idle_h_nr_running += change.idle;
        self.h_nr_delayed += change.delayed;
        if self.idle {
            // From an idle group upwards, all its tasks count as idle.
            change.idle = change.tasks;
        }
    }

    #[inline]
    fn count_dequeue(&mut self, change: &mut CountChange) {
        self.h_nr_running -= change.tasks;
        self.idle_h_nr_running -= change.idle;
        self.h_nr_delayed -= change.delayed;
        if self.idle {
            change.idle = change.tasks;
        }
    }
}

impl<A: Arch> Sched<A> {
    /// The walk up of `enqueue_task_fair()`: queues the task and every group that was empty. Returns whether it reached the root:
    /// it stops at a throttled queue, above which the tasks below are not counted.
    #[inline(always)]
    pub(super) fn enqueue_levels(&mut self, p: TaskId, flags: QueueFlags) -> bool {
        let se = self.task[p].se;
        let change = CountChange {
            tasks: 1,
            idle: u32::from(self.task_has_idle_policy(p)),
            // If it is moved while its dequeue is delayed, it still counts as delayed.
            delayed: u32::from(!flags.wakeup && self.se[se].sched_delayed),
        };
        let mut walk = Walk { level: Some(se), change, slice: None };
        if !self.enqueue_level(&mut walk, se, flags, Step::Any) {
            return false;
        }
        let Some(group) = walk.level else { return true };
        // The groups use a walk of their own, so that the task's step can keep this one in registers.
        let mut groups = walk;
        if !self.se[group].on_rq && !self.enqueue_groups(&mut groups) {
            return false;
        }
        groups.level.is_none() || self.update_levels_above::<true>(groups)
    }

    /// The part of the walk that queues groups. Returns false at a throttled queue.
    #[inline(never)]
    fn enqueue_groups(&mut self, walk: &mut Walk) -> bool {
        match self.plain_arithmetic() {
            Some(Released::V4_15) => self.enqueue_plain_groups(Arithmetic::V4_15, walk),
            Some(Released::V6_1) => self.enqueue_plain_groups(Arithmetic::V6_1, walk),
            _ => {}
        }
        match walk.level {
            Some(se) if !self.se[se].on_rq => self.enqueue_other_groups(walk),
            _ => true,
        }
    }

    #[inline(never)]
    fn enqueue_other_groups(&mut self, walk: &mut Walk) -> bool {
        let flags = QueueFlags { wakeup: true, ..QueueFlags::default() };
        with_arithmetic!(self, known, {
            let mut here = walk.known(known);
            while let Some(se) = here.level
                && !self.se[se].on_rq
            {
                if !self.enqueue_level(&mut here, se, flags, Step::Group(known)) {
                    return false;
                }
            }
            *walk = here;
            true
        })
    }

    /// One step of the walk. Returns false at a throttled queue.
    #[inline(always)]
    fn enqueue_level(&mut self, walk: &mut Walk, se: SeId, flags: QueueFlags, step: Step) -> bool {
        let cfs = self.se[se].cfs_rq;
        if let Some(slice) = walk.slice {
            self.se[se].slice = slice;
            self.se[se].custom_slice = true;
        }
        self.enqueue_entity(cfs, se, flags, step);
        self.cfs_rq[cfs].count_enqueue(&mut walk.change);
        if self.queue_is_off(cfs) {
            return false;
        }
        walk.level = self.se[se].parent;
        let hands_on = self.hands_slices_on(step);
        walk.slice = (hands_on && walk.level.is_some()).then(|| self.cfs_rq_min_slice(cfs));
        true
    }

    /// Whether a group asks for the shortest slice of the entities below it.
    #[inline(always)]
    fn hands_slices_on(&self, step: Step) -> bool {
        self.arithmetic_of(step).pick == Pick::Eevdf && self.kernel.entity.slice_of == SliceOf::Task
    }

    /// Updates the averages and weights of levels on which nothing is queued or dequeued, but below which a task `COMES` or
    /// leaves. The time up to now counts with the previous number of tasks. Returns false at a throttled queue.
    #[inline(never)]
    fn update_levels_above<const COMES: bool>(&mut self, mut walk: Walk) -> bool {
        match self.plain_arithmetic() {
            Some(Released::V4_15) => self.update_plain_levels::<COMES>(Arithmetic::V4_15, &mut walk),
            Some(Released::V6_1) => self.update_plain_levels::<COMES>(Arithmetic::V6_1, &mut walk),
            _ => {}
        }
        walk.level.is_none() || self.update_other_levels::<COMES>(walk)
    }

    #[inline(never)]
    fn update_other_levels<const COMES: bool>(&mut self, walk: Walk) -> bool {
        if COMES
            && let Some(se) = walk.level
            && self.se[se].sched_delayed
        {
            self.requeue_delayed_entity(se);
        }
        with_arithmetic!(self, known, {
            let Walk { mut level, mut change, mut slice } = walk.known(known);
            while let Some(se) = level {
                let cfs = self.se[se].cfs_rq;
                slice = self.update_level_above(known, cfs, se, slice);
                match COMES {
                    true => self.cfs_rq[cfs].count_enqueue(&mut change),
                    false => self.cfs_rq[cfs].count_dequeue(&mut change),
                }
                if self.queue_is_off(cfs) {
                    return false;
                }
                level = self.se[se].parent;
            }
            true
        })
    }

    /// One such level. The group's entity asks for `slice` from now on, the shortest of those below it (`None`: until v6.5).
    /// Returns the shortest slice of this level.
    #[inline(always)]
    fn update_level_above(&mut self, known: Arithmetic, cfs: CfsRqId, se: SeId, slice: Option<u32>) -> Option<u32> {
        if self.queue_is_off(cfs) && self.kernel.bandwidth.throttle_levels == ThrottleLevels::CountsOnly {
            return slice;
        }
        let step = Step::Group(known);
        let at = self.level_lines(cfs, se, step);
        self.update_load_avg_in(step, cfs, se, UpdateLoad::UPDATE_TG, at);
        self.se_update_runnable_in(step, se);
        let queued = self.se[se].on_rq;
        self.update_shares_in(step, cfs, se, queued);
        let slice = slice?;
        self.set_group_slice(cfs, se, slice);
        Some(if self.se[se].parent.is_some() { self.cfs_rq_min_slice(cfs) } else { slice })
    }

    /// The walk up of `dequeue_entities()`: dequeues the entity and every group that becomes empty.
    #[inline(always)]
    pub(super) fn dequeue_levels(&mut self, se: SeId, flags: QueueFlags) -> Dequeued {
        let p = self.se[se].task;
        let change = CountChange {
            tasks: u32::from(p.is_some()),
            idle: u32::from(p.is_some_and(|p| self.task_has_idle_policy(p))),
            delayed: u32::from(p.is_some() && !flags.sleep && !flags.delayed && self.se[se].sched_delayed),
        };
        let mut walk = Walk { level: Some(se), change, slice: None };
        let mut left = self.dequeue_level(&mut walk, se, flags, flags.sleep, Step::Any);
        // A copy, for the same reason as in `enqueue_levels()`.
        let mut groups = walk;
        if left == Left::Empty && walk.level.is_some() {
            left = self.dequeue_groups(&mut groups, &flags);
        }
        match left {
            Left::Empty => Dequeued::Whole,
            Left::Inhabited if groups.level.is_none() || self.update_levels_above::<false>(groups) => Dequeued::Whole,
            Left::Inhabited | Left::Throttled => Dequeued::Throttled,
            Left::Delayed => Dequeued::Delayed,
        }
    }

    /// The part of the walk that dequeues groups.
    #[inline(never)]
    fn dequeue_groups(&mut self, walk: &mut Walk, of_task: &QueueFlags) -> Left {
        let inhabited = match self.plain_arithmetic() {
            Some(Released::V4_15) => self.dequeue_plain_groups(Arithmetic::V4_15, walk, of_task),
            Some(Released::V6_1) => self.dequeue_plain_groups(Arithmetic::V6_1, walk, of_task),
            _ => false,
        };
        if inhabited {
            Left::Inhabited
        } else if walk.level.is_none() {
            Left::Empty
        } else {
            self.dequeue_other_groups(walk, of_task)
        }
    }

    #[inline(never)]
    fn dequeue_other_groups(&mut self, walk: &mut Walk, of_task: &QueueFlags) -> Left {
        let task_sleep = of_task.sleep;
        with_arithmetic!(self, known, {
            let flags = of_group(of_task);
            let mut here = walk.known(known);
            let mut left = Left::Empty;
            while let Some(se) = here.level
                && left == Left::Empty
            {
                left = self.dequeue_level(&mut here, se, flags, task_sleep, Step::Group(known));
            }
            *walk = here;
            left
        })
    }

    /// The walk down of `pick_next_task_fair()`: through a picked group and those inside it. Returns the entity of the task
    /// picked in the end, which is not set yet.
    #[inline(never)]
    pub(super) fn set_next_groups(&mut self, mut se: SeId, mut group: CfsRqId) -> SeId {
        let step = Step::Group(self.any_arithmetic());
        loop {
            self.set_next_entity_in(step, self.se[se].cfs_rq, se, true);
            se = self.pick_next_entity_cfs(group, None);
            match self.se[se].my_q {
                Some(below) => group = below,
                None => return se,
            }
        }
    }

    /// One step of the walk.
    /// Differs: sets no buddy in a throttled hierarchy; v4.5 does, and then runs it (until v4.8).
    #[inline(always)]
    fn dequeue_level(&mut self, walk: &mut Walk, se: SeId, flags: QueueFlags, task_sleep: bool, step: Step) -> Left {
        let hands_on = self.hands_slices_on(step);
        let cfs = self.se[se].cfs_rq;
        if !self.dequeue_entity(cfs, se, flags, step) {
            if self.se[se].task.is_some() {
                return Left::Delayed;
            }
            walk.slice = Some(self.cfs_rq_min_slice(cfs));
            return Left::Inhabited;
        }
        self.cfs_rq[cfs].count_dequeue(&mut walk.change);
        let empty = self.cfs_rq[cfs].load.weight == 0;
        if unlikely(self.queue_is_off(cfs)) {
            return Left::Throttled;
        }
        walk.level = self.se[se].parent;
        if empty {
            return Left::Empty;
        }
        walk.slice = (hands_on && walk.level.is_some()).then(|| self.cfs_rq_min_slice(cfs));
        if let Some(parent) = walk.level
            && task_sleep
            && !self.hierarchy_is_off(cfs)
        {
            self.prefer_whence_slept(parent);
        }
        Left::Inhabited
    }

    /// Prefers this group for the next pick: its part of the period is not used up.
    #[inline(always)]
    fn prefer_whence_slept(&mut self, group: SeId) {
        self.set_next_buddy(group);
    }
}
