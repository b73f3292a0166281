//! fair.c: DELAY_DEQUEUE (v6.12): an entity that falls asleep while its lag is negative stays queued and keeps
//! competing. It leaves when it is picked, which shows that its lag is made up for, or goes on when it is woken.
//!
//! A task whose dequeue is delayed keeps its sleeping state and `on_rq`; a group's entity is delayed when its last task
//! has left (until v7.2). Neither counts as runnable.

use super::load::UpdateLoad;
use super::rules::DelayedLag;
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::sched::*;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// The part of `dequeue_entity()` that decides whether to delay it.
    #[inline]
    pub(super) fn delays_dequeue(&self, cfs: CfsRqId, se: SeId, flags: QueueFlags) -> bool {
        if flags.delayed {
            debug_assert!(self.se[se].sched_delayed);
            return false;
        }
        let delay = flags.sleep && !flags.special && !flags.throttle;
        debug_assert!(!(delay && self.se[se].sched_delayed));
        delay && self.sched_feat(Feature::DELAY_DEQUEUE) && !self.entity_eligible(cfs, se)
    }

    /// fair.c: set_delayed(). A group's entity changes no counts: no task is queued below it.
    pub(super) fn set_delayed(&mut self, se: SeId) {
        self.llc_delay_entity(se, true);
        self.se[se].sched_delayed = true;
        if self.se[se].task.is_some() {
            self.count_delayed(se, |h_nr_delayed| *h_nr_delayed += 1);
        }
    }

    /// fair.c: clear_delayed().
    pub(super) fn clear_delayed(&mut self, se: SeId) {
        self.se[se].sched_delayed = false;
        self.llc_delay_entity(se, false);
        if self.se[se].task.is_some() {
            self.count_delayed(se, |h_nr_delayed| *h_nr_delayed -= 1);
        }
    }

    fn count_delayed(&mut self, se: SeId, count: impl Fn(&mut u32)) {
        let mut level = Some(se);
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            count(&mut self.cfs_rq[cfs].h_nr_delayed);
            if self.queue_is_off(cfs) {
                return;
            }
            level = self.se[se].parent;
        }
    }

    /// fair.c: finish_delayed_dequeue_entity(). The entity loses positive lag that it gained while it slept; with
    /// [`DelayedLag::Kept`] `update_entity_lag()` has already done this.
    pub(super) fn finish_delayed_dequeue_entity(&mut self, se: SeId) {
        self.clear_delayed(se);
        if self.kernel.entity.delayed_lag == DelayedLag::AtEnd && self.sched_feat(Feature::DELAY_ZERO) {
            self.se[se].vlag = self.se[se].vlag.min(0);
        }
    }

    /// fair.c: requeue_delayed_entity(). The entity is woken while it is still queued.
    pub(super) fn requeue_delayed_entity(&mut self, se: SeId) {
        self.path(Path::requeue_delayed_entity);
        let cfs = self.competes_on(se);
        debug_assert!(self.se[se].sched_delayed && self.se[se].on_rq);
        match self.kernel.entity.delayed_lag {
            DelayedLag::AtEnd if self.sched_feat(Feature::DELAY_ZERO) => {
                self.update_entity_lag(cfs, se);
                if self.se[se].vlag > 0 {
                    self.se[se].vlag = 0;
                    self.place_anew(cfs, se);
                }
            }
            DelayedLag::AtEnd => {}
            DelayedLag::Kept => {
                if !self.picks_flat() {
                    self.update_curr(cfs);
                }
                if self.update_entity_lag(cfs, se) {
                    self.place_anew(cfs, se);
                }
            }
        }
        self.update_load_avg(cfs, se, UpdateLoad::NONE);
        self.clear_delayed(se);
    }

    /// Places the entity anew among the others, with the lag it has.
    fn place_anew(&mut self, cfs: CfsRqId, se: SeId) {
        let waits = self.competing_curr(cfs) != Some(se);
        if waits {
            self.__dequeue_entity(cfs, se);
        }
        let others = self.competitors(cfs) - 1;
        self.place_entity_eevdf(cfs, se, QueueFlags::default(), others);
        if waits {
            self.__enqueue_entity(cfs, se);
        }
    }

    /// The part of task_dead_fair() and unregister_fair_sched_group(), until v7.2, that dequeues a delayed entity which goes for
    /// good.
    pub(super) fn end_delayed_dequeue(&mut self, cpu: CpuId, se: SeId) {
        if !self.se[se].sched_delayed {
            return;
        }
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        self.dequeue_entities(cpu, se, QueueFlags { sleep: true, delayed: true, ..QueueFlags::default() });
        self.rq_unlock(cpu);
    }

    /// fair.c: cfs_h_nr_delayed(). How many tasks of `cpu` sleep but are still queued.
    #[inline]
    pub(crate) fn cfs_h_nr_delayed(&self, cpu: CpuId) -> u32 {
        self.cfs_rq[self.rq[cpu].cfs].h_nr_delayed
    }
}
