//! fair.c: how the running entity is protected from others with an earlier deadline, so that tasks do not alternate on
//! every event (RUN_TO_PARITY, since v6.6; [`SliceProtection`] says for how long).

use super::rules::SliceProtection;
use super::timeline::entity_before;
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::sched::*;

/// fair.c: min_vruntime().
fn min_vruntime(a: u64, b: u64) -> u64 {
    if entity_before(b, a) { b } else { a }
}

impl<A: Arch> Sched<A> {
    /// fair.c: set_protect_slice(). `se` has just been taken out of the timeline of `cfs` in order to run. `first`: it
    /// was picked, not only put back.
    pub(super) fn set_protect_slice(&mut self, cfs: CfsRqId, se: SeId, first: bool) {
        match self.kernel.entity.slice_protection {
            SliceProtection::Deadline => {
                let se = &mut self.se[se];
                se.vlag = se.deadline as i64;
            }
            _ if first => self.set_protect_shortest_slice(cfs, se),
            _ => {}
        }
    }

    /// sched_entity.vprot: where the protection of the running entity ends, unless it is [`SliceProtection::Deadline`]'s.
    pub(super) fn vprot(&self, se: SeId) -> u64 {
        let entity = &self.se[se];
        match self.kernel.entity.slice_protection {
            SliceProtection::ShortestSliceInLag => entity.vlag as u64,
            _ => entity.vprot,
        }
    }

    pub(super) fn set_vprot(&mut self, se: SeId, vprot: u64) {
        let entity = &mut self.se[se];
        match self.kernel.entity.slice_protection {
            SliceProtection::ShortestSliceInLag => entity.vlag = vprot as i64,
            _ => entity.vprot = vprot,
        }
    }

    fn set_protect_shortest_slice(&mut self, cfs: CfsRqId, se: SeId) {
        let shortest = match self.sched_feat(Feature::RUN_TO_PARITY) {
            true => self.cfs_rq_min_slice(cfs).into(),
            false => self.kernel.entity.base_slice.normalized_sysctl_sched_base_slice(),
        };
        let SchedEntity { slice, vruntime, deadline, .. } = self.se[se];
        let mut vprot = deadline;
        if shortest < u64::from(slice) {
            let until_ineligible = self.kernel.entity.slice_protection == SliceProtection::UntilIneligible
                && self.sched_feat(Feature::PREEMPT_SHORT);
            let end = match until_ineligible {
                true => self.ineligible_vruntime(cfs),
                false => vruntime.wrapping_add(self.virtual_time(se, shortest)),
            };
            vprot = min_vruntime(deadline, end);
        }
        self.set_vprot(se, vprot);
    }

    /// fair.c: update_protect_slice(). `se` runs on `cfs`, and an entity was queued that may ask for a shorter slice
    /// than all others.
    pub(super) fn update_protect_slice(&mut self, cfs: CfsRqId, se: SeId) {
        if self.kernel.entity.slice_protection == SliceProtection::Deadline {
            return;
        }
        let slice = self.cfs_rq_min_slice(cfs);
        let mut from = self.se[se].vruntime;
        if self.kernel.entity.slice_protection == SliceProtection::UntilIneligible {
            from = min_vruntime(from, self.avg_vruntime(cfs));
        }
        let vslice = self.virtual_time(se, slice.into());
        let vprot = min_vruntime(self.vprot(se), from.wrapping_add(vslice));
        self.set_vprot(se, vprot);
    }

    /// fair.c: protect_slice(). Whether the running entity is still protected.
    #[inline]
    pub(crate) fn protect_slice(&self, se: SeId) -> bool {
        let entity = &self.se[se];
        match self.kernel.entity.slice_protection {
            SliceProtection::Deadline => entity.vlag == entity.deadline as i64,
            _ => entity_before(entity.vruntime, self.vprot(se)),
        }
    }

    /// Whether `pick_eevdf()` keeps the running entity; until v6.16 this is where RUN_TO_PARITY is checked.
    #[inline]
    pub(super) fn runs_protected(&self, se: SeId) -> bool {
        let by_deadline = self.kernel.entity.slice_protection == SliceProtection::Deadline;
        (!by_deadline || self.sched_feat(Feature::RUN_TO_PARITY)) && self.protect_slice(se)
    }

    /// fair.c: cancel_protect_slice(). The running entity may be preempted, wherever it is in its slice.
    pub(super) fn cancel_protect_slice(&mut self, se: SeId) {
        if !self.protect_slice(se) {
            return;
        }
        match self.kernel.entity.slice_protection {
            SliceProtection::Deadline => {
                let se = &mut self.se[se];
                se.vlag = se.deadline.wrapping_add(1) as i64;
            }
            _ => self.set_vprot(se, self.se[se].vruntime),
        }
    }

    /// The end of `update_curr()`: reschedules when the slice of the running entity of `cfs`, or its protection, has
    /// ended.
    #[inline(never)]
    pub(super) fn resched_after_update(&mut self, cfs: CfsRqId, curr: SeId, slice_ended: bool) {
        if self.competitors(cfs) != 1 && (slice_ended || self.protection_ended(cfs, curr)) {
            self.resched_curr_lazy(self.cfs_rq[cfs].rq);
            self.clear_buddies(cfs, curr);
        }
    }

    #[inline]
    fn protection_ended(&self, cfs: CfsRqId, curr: SeId) -> bool {
        match self.kernel.entity.slice_protection {
            SliceProtection::Deadline => self.did_preempt_short(cfs, curr),
            _ => !self.protect_slice(curr),
        }
    }

    /// fair.c: did_preempt_short(), until v6.16.
    #[inline]
    fn did_preempt_short(&self, cfs: CfsRqId, curr: SeId) -> bool {
        self.sched_feat(Feature::PREEMPT_SHORT) && !self.protect_slice(curr) && !self.entity_eligible(cfs, curr)
    }

    /// fair.c: do_preempt_short(), in v6.12. Whether `pse`, woken, ends the slice protection of `se`, which runs.
    pub(super) fn do_preempt_short(&self, cfs: CfsRqId, pse: SeId, se: SeId) -> bool {
        let (woken, running) = (&self.se[pse], &self.se[se]);
        self.sched_feat(Feature::PREEMPT_SHORT)
            && woken.slice < running.slice
            && self.entity_eligible(cfs, pse)
            && (entity_before(woken.deadline, running.deadline) || !self.entity_eligible(cfs, se))
    }
}
