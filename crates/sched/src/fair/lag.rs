//! fair.c: lag under EEVDF (since v6.6): the service an entity is owed when it leaves a queue, joins one, or changes its weight.
//!
//! An entity's lag is the queue's virtual time V minus its vruntime. It joins a queue with the lag with which it left.

use super::eevdf::Weighing;
use super::rules::{
    AverageWeights, DelayedLag, LagLimit, NewDeadline, PlacedLag, Reweight, ReweightLag, SliceProtection,
};
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::sched::*;

/// What of a queued entity is relative to V while its weight changes; with [`Reweight::PlacedAnew`], to its vruntime.
pub(super) struct Relative {
    avruntime: u64,
    /// `vprot`, if the running entity is protected.
    vprot: Option<u64>,
    /// What `vlag` held, if that was not a lag.
    held: Option<i64>,
}

impl<A: Arch> Sched<A> {
    /// fair.c: entity_lag(). In ns of virtual time, limited in both directions.
    fn entity_lag(&mut self, cfs: CfsRqId, se: SeId, avruntime: u64) -> i64 {
        let tick_nsec = self.tick_nsec;
        let limit = match self.kernel.entity.lag_limit {
            LagLimit::OwnSlice => (2 * u64::from(self.se[se].slice)).max(tick_nsec),
            LagLimit::LongestSlice => u64::from(self.cfs_rq_max_slice(cfs)) + tick_nsec,
        };
        let limit = self.virtual_time(se, limit) as i64;
        (avruntime.wrapping_sub(self.se[se].vruntime) as i64).clamp(-limit, limit)
    }

    /// fair.c: update_entity_lag(). Records the lag of a queued entity before it leaves, or while its dequeue is delayed. Returns
    /// true if the lag is not what its vruntime says.
    pub(super) fn update_entity_lag(&mut self, cfs: CfsRqId, se: SeId) -> bool {
        debug_assert!(self.se[se].on_rq);
        self.path(Path::update_entity_lag);
        let avruntime = self.avg_vruntime(cfs);
        let mut vlag = self.entity_lag(cfs, se, avruntime);
        if self.se[se].sched_delayed && self.kernel.entity.delayed_lag == DelayedLag::Kept {
            vlag = vlag.max(self.se[se].vlag);
            if self.sched_feat(Feature::DELAY_ZERO) {
                vlag = vlag.min(0);
            }
        }
        let se = &mut self.se[se];
        se.vlag = vlag;
        avruntime.wrapping_add_signed(vlag.wrapping_neg()) != se.vruntime
    }

    /// fair.c: place_entity(), since v6.6. Places an entity that joins: with the lag with which it left, and a slice from there
    /// on.
    ///
    /// An entity that joins moves V against itself: of a lag of `vl`, `vl * W / (W + w)` remains, where `W` is the weight of the
    /// others. So it joins with `(W + w) / W` times the lag that it is to have. `others` is their number.
    pub(super) fn place_entity_eevdf(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags, others: u32) {
        self.path(Path::place_entity);
        let avruntime = self.avg_vruntime(cfs);
        self.renew_slice(se);
        let mut lag = 0;
        if self.sched_feat(Feature::PLACE_LAG) && others != 0 {
            lag = self.inflated_lag(cfs, se);
        }
        let relative =
            self.sched_feat(Feature::PLACE_REL_DEADLINE) || self.kernel.entity.reweight == Reweight::PlacedAnew;
        let halves = self.kernel.entity.new_deadline == NewDeadline::HalfSlice;
        let halved = halves && self.sched_feat(Feature::PLACE_DEADLINE_INITIAL) && flags.initial;
        let vslice = self.virtual_time(se, self.se[se].slice.into()) >> u32::from(halved);
        let se = &mut self.se[se];
        se.vruntime = avruntime.wrapping_add_signed(lag.wrapping_neg());
        if relative && se.rel_deadline {
            se.deadline = se.deadline.wrapping_add(se.vruntime);
            se.rel_deadline = false;
            return;
        }
        se.deadline = se.vruntime.wrapping_add(vslice);
    }

    /// The lag with which an entity has to join the others. One that is heavier than they are pulls V along, so the sums then
    /// count from its V: large weights should be multiplied by short distances.
    fn inflated_lag(&mut self, cfs: CfsRqId, se: SeId) -> i64 {
        let weighing = Weighing::of(&self.kernel);
        let load = self.zero_lag(cfs).load;
        let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &self.se[se]);
        let weight = weighing.weight_of(cfs_rq, entity) as i64;
        let (vlag, all) = (entity.vlag, load.max(1));
        let lag = match self.kernel.entity.placed_lag {
            PlacedLag::Product => vlag.wrapping_mul(load + weight) / all,
            PlacedLag::Sum => vlag + vlag.wrapping_mul(weight) / all,
        };
        if weight > load && entity.vlag != 0 && self.kernel.entity.average_weights == AverageWeights::Kept {
            cfs_rq.update_zero_vruntime(lag.wrapping_neg());
        }
        lag
    }

    /// The part of `dequeue_entity()` that keeps the deadline of an entity that is only moved, relative to its vruntime. The
    /// entity has left the timeline, where the deadline is its key.
    pub(super) fn keep_relative_deadline(&mut self, se: SeId, flags: QueueFlags) {
        if self.sched_feat(Feature::PLACE_REL_DEADLINE) && !flags.sleep {
            let se = &mut self.se[se];
            se.deadline = se.deadline.wrapping_sub(se.vruntime);
            se.rel_deadline = true;
        }
    }

    // Another weight.

    /// The first part of `reweight_entity()` (`reweight_eevdf()` since v7.3), for a queued entity: it leaves the sums and becomes
    /// relative to V. Its queue's running entity has been charged. With [`ReweightLag::FromOthers`] V is that of the others, if it waits.
    /// Differs: without others, that is where it is itself; in the kernel, min_vruntime, which is hardly ever ahead of it.
    pub(super) fn begin_reweight(&mut self, cfs: CfsRqId, se: SeId) -> Relative {
        if self.kernel.entity.reweight == Reweight::PlacedAnew {
            return self.begin_reweight_to_place(cfs, se);
        }
        let curr = self.competing_curr(cfs) == Some(se);
        let from_others = self.kernel.entity.reweight_lag == ReweightLag::FromOthers;
        if from_others && !curr {
            self.__dequeue_entity(cfs, se);
        }
        let alone = from_others && !curr && self.zero_lag(cfs).load == 0;
        let avruntime = if alone { self.se[se].vruntime } else { self.avg_vruntime(cfs) };
        let vlag = match from_others {
            true => avruntime.wrapping_sub(self.se[se].vruntime) as i64,
            false => self.entity_lag(cfs, se, avruntime),
        };
        let until_deadline = self.kernel.entity.slice_protection == SliceProtection::Deadline;
        let protected = curr && !until_deadline && self.protect_slice(se);
        let vprot = protected.then(|| self.vprot(se).wrapping_sub(avruntime));
        if !from_others && !curr {
            self.__dequeue_entity(cfs, se);
        }
        let se = &mut self.se[se];
        let held = (curr && until_deadline).then_some(se.vlag);
        se.vlag = vlag;
        se.deadline = se.deadline.wrapping_sub(avruntime);
        Relative { avruntime, vprot, held }
    }

    /// The same in v6.18: what is kept is relative to where the entity is. Whether that is protected is asked once its lag is known.
    fn begin_reweight_to_place(&mut self, cfs: CfsRqId, se: SeId) -> Relative {
        let curr = self.competing_curr(cfs) == Some(se);
        let until_deadline = self.kernel.entity.slice_protection == SliceProtection::Deadline;
        let held = (curr && until_deadline).then_some(self.se[se].vlag);
        self.update_entity_lag(cfs, se);
        let protected = curr && !until_deadline && self.protect_slice(se);
        let vprot = protected.then(|| self.vprot(se).wrapping_sub(self.se[se].vruntime));
        if !curr {
            self.__dequeue_entity(cfs, se);
        }
        let se = &mut self.se[se];
        se.deadline = se.deadline.wrapping_sub(se.vruntime);
        se.rel_deadline = true;
        Relative { avruntime: se.vruntime, vprot, held }
    }

    /// fair.c: rescale_entity() (reweight_eevdf() in 6.12.y). Lag in real time stays the same, so in virtual time it grows as the
    /// weight shrinks; so does the rest of the slice. `relative` is set for a queued entity.
    #[doc(alias = "reweight_eevdf")]
    pub(super) fn rescale_entity(&mut self, se: SeId, weight: u64, relative: Option<&mut Relative>) {
        let with_deadline = self.kernel.entity.reweight != Reweight::Lag;
        let old_weight = self.competing_weight(se) as i64;
        let se = &mut self.se[se];
        let rescale = |virtual_time: i64| virtual_time.wrapping_mul(old_weight) / weight as i64;
        se.vlag = rescale(se.vlag);
        if relative.is_some() || with_deadline && se.rel_deadline {
            se.deadline = rescale(se.deadline as i64) as u64;
        }
        if let Some(vprot) = relative.and_then(|relative| relative.vprot.as_mut()) {
            *vprot = rescale(*vprot as i64) as u64;
        }
    }

    /// The last part of `reweight_entity()`, for a queued entity that has its new weight: it becomes absolute again, and waits
    /// there; in v6.18 it is placed.
    pub(super) fn end_reweight(&mut self, cfs: CfsRqId, se: SeId, relative: Relative) {
        let Relative { mut avruntime, vprot, held } = relative;
        if self.kernel.entity.reweight == Reweight::PlacedAnew {
            let others = self.competitors(cfs) - 1;
            self.place_entity_eevdf(cfs, se, QueueFlags::default(), others);
            avruntime = self.se[se].vruntime;
        } else {
            let entity = &mut self.se[se];
            entity.deadline = entity.deadline.wrapping_add(avruntime);
            entity.vruntime = avruntime.wrapping_add_signed(entity.vlag.wrapping_neg());
        }
        if let Some(vprot) = vprot {
            self.set_vprot(se, avruntime.wrapping_add(vprot));
        }
        if let Some(held) = held {
            self.se[se].vlag = held;
        }
        if self.competing_curr(cfs) != Some(se) {
            self.__enqueue_entity(cfs, se);
        }
    }
}
