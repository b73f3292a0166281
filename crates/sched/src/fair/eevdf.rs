//! fair.c: EEVDF, earliest eligible virtual deadline first (since v6.6), which replaced [`super::cfs`] as the way to share a CPU.
//!
//! A queue's virtual time V is the average of its entities' vruntimes, by weight. An entity's *lag* is V minus its vruntime: the service it
//! is owed. With a lag of zero or more it is *eligible*. Each entity asks for a *slice*, and should have received it when virtual time
//! reaches its *deadline*: its vruntime at that moment plus the slice divided by its weight. The eligible entity with the earliest deadline
//! runs next. (Stoica and Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995.)
//!
//! V is never stored: `sum_w_vruntime` and `sum_weight` are sums over the waiting entities, relative to `zero_vruntime`, and `curr` is
//! added when V is needed. Arithmetic wraps as the kernel's does.
//!
//! [`super::lag`] has the lag with which entities join and leave, [`super::protect`] the protection of the running entity, and
//! [`super::delayed`] the entities that fall asleep with negative lag and keep competing until it is made up for (DELAY_DEQUEUE). The fair
//! server, which lends fair tasks the time of a deadline entity while real-time tasks starve them, is in `deadline/server.rs`. Absent: core
//! scheduling.

use super::rules::{AverageWeights, EqualDeadlines, PickBuddy, WakeupPreempt};
use super::timeline::entity_before;
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::load_weight::LoadResolution;
use crate::sched::*;
use crate::versions::Kernel;
use units::unlikely;

/// The weights by which averages are taken.
#[derive(Clone, Copy)]
pub(super) struct Weighing {
    weights: AverageWeights,
    resolution: LoadResolution,
    flat: bool,
}

impl Weighing {
    #[inline]
    pub fn of(kernel: &Kernel) -> Weighing {
        Weighing {
            weights: kernel.entity.average_weights,
            resolution: kernel.load_resolution,
            flat: kernel.picks_flat(),
        }
    }

    /// What an entity counts in the sums of `cfs_rq`.
    #[inline]
    pub fn weight_of(self, cfs_rq: &CfsRq, se: &SchedEntity) -> u64 {
        self.avg_vruntime_weight(cfs_rq, if unlikely(self.flat) { se.h_load.weight } else { se.load.weight })
    }

    /// fair.c: avg_vruntime_weight(). What a weight counts in the sums of `cfs_rq`; until v6.18 and in 6.12.y `scale_load_down()`.
    #[inline]
    pub fn avg_vruntime_weight(self, cfs_rq: &CfsRq, weight: u64) -> u64 {
        match self.weights {
            AverageWeights::Shown => self.resolution.scale_load_down(weight),
            AverageWeights::Kept if cfs_rq.sum_shift == 0 => weight,
            AverageWeights::Kept => (weight >> cfs_rq.sum_shift).max(2),
        }
    }
}

/// The sums that decide on eligibility, computed once for several questions: `vruntime_eligible()` without its argument.
#[derive(Clone, Copy)]
pub(super) struct ZeroLag {
    /// Sum of `weight * (vruntime - zero_vruntime)`, `curr` included if it is queued.
    avg: i64,
    /// Sum of weights.
    pub load: i64,
    zero_vruntime: u64,
    weights: AverageWeights,
}

impl ZeroLag {
    /// fair.c: vruntime_eligible(). Avoids a division, which would round.
    #[inline]
    pub fn vruntime_eligible(self, vruntime: u64) -> bool {
        let key = vruntime.wrapping_sub(self.zero_vruntime) as i64;
        match self.weights {
            AverageWeights::Shown => self.avg >= key.wrapping_mul(self.load),
            AverageWeights::Kept => i128::from(self.avg) >= i128::from(key) * i128::from(self.load),
        }
    }
}

impl CfsRq {
    /// fair.c: entity_key().
    #[inline]
    fn entity_key(&self, se: &SchedEntity) -> i64 {
        se.vruntime.wrapping_sub(self.zero_vruntime) as i64
    }

    /// fair.c: __sum_w_vruntime_add().
    /// Differs: does not warn when a product is about to overflow.
    #[inline]
    fn __sum_w_vruntime_add(&mut self, weighing: Weighing, se: &SchedEntity) {
        let weight = weighing.weight_of(self, se);
        let key = self.entity_key(se);
        self.sum_w_vruntime = self.sum_w_vruntime.wrapping_add(key.wrapping_mul(weight as i64));
        self.sum_weight += weight;
    }

    /// fair.c: sum_w_vruntime_sub().
    #[inline]
    #[doc(alias = "avg_vruntime_sub")]
    pub(super) fn sum_w_vruntime_sub(&mut self, weighing: Weighing, se: &SchedEntity) {
        let weight = weighing.weight_of(self, se);
        let key = self.entity_key(se);
        self.sum_w_vruntime = self.sum_w_vruntime.wrapping_sub(key.wrapping_mul(weight as i64));
        self.sum_weight -= weight;
    }

    /// The sums with `se` added; `None` if one overflows.
    fn checked_sums(&self, weighing: Weighing, se: &SchedEntity) -> Option<(i64, u64)> {
        let weight = weighing.weight_of(self, se);
        let weighted = self.entity_key(se).checked_mul(weight as i64)?;
        Some((self.sum_w_vruntime.checked_add(weighted)?, self.sum_weight + weight))
    }

    /// fair.c: update_zero_vruntime().
    #[inline]
    pub(super) fn update_zero_vruntime(&mut self, delta: i64) {
        self.sum_w_vruntime = self.sum_w_vruntime.wrapping_sub((self.sum_weight as i64).wrapping_mul(delta));
        self.zero_vruntime = self.zero_vruntime.wrapping_add_signed(delta);
    }
}

/// How often weights may be halved; a kernel that needs more gives up.
const MOST_HALVINGS: u8 = 10;

impl<A: Arch> Sched<A> {
    // Virtual time.

    /// The running one of the entities that compete on a queue, if it is still queued.
    #[inline]
    pub(super) fn queued_curr(&self, cfs: CfsRqId) -> Option<SeId> {
        self.competing_curr(cfs).filter(|&curr| self.se[curr].on_rq)
    }

    /// fair.c: avg_vruntime_weight().
    pub fn avg_vruntime_weight(&self, cfs: CfsRqId, weight: u64) -> u64 {
        Weighing::of(&self.kernel).avg_vruntime_weight(&self.cfs_rq[cfs], weight)
    }

    /// The sums of `cfs`, including its running entity.
    #[inline]
    pub(super) fn zero_lag(&self, cfs: CfsRqId) -> ZeroLag {
        let (cfs_rq, weighing) = (&self.cfs_rq[cfs], Weighing::of(&self.kernel));
        let (mut avg, mut load) = (cfs_rq.sum_w_vruntime, cfs_rq.sum_weight as i64);
        if let Some(curr) = self.queued_curr(cfs) {
            let curr = &self.se[curr];
            let weight = weighing.weight_of(cfs_rq, curr) as i64;
            avg = avg.wrapping_add(cfs_rq.entity_key(curr).wrapping_mul(weight));
            load += weight;
        }
        ZeroLag { avg, load, zero_vruntime: cfs_rq.zero_vruntime, weights: weighing.weights }
    }

    /// fair.c: sum_w_vruntime_add(). Adds an entity that begins to wait.
    #[inline]
    #[doc(alias = "avg_vruntime_add")]
    pub(super) fn sum_w_vruntime_add(&mut self, cfs: CfsRqId, se: SeId) {
        let weighing = Weighing::of(&self.kernel);
        if unlikely(self.sched_feat(Feature::PARANOID_AVG)) && weighing.weights == AverageWeights::Kept {
            return self.sum_w_vruntime_add_paranoid(weighing, cfs, se);
        }
        self.cfs_rq[cfs].__sum_w_vruntime_add(weighing, &self.se[se]);
    }

    /// fair.c: sum_w_vruntime_add_paranoid(). If a sum would overflow, all weights are halved and the sums taken anew.
    fn sum_w_vruntime_add_paranoid(&mut self, weighing: Weighing, cfs: CfsRqId, se: SeId) {
        let (cfs_rq, entities) = (&mut self.cfs_rq[cfs], &self.se);
        loop {
            if let Some(sums) = cfs_rq.checked_sums(weighing, &entities[se]) {
                (cfs_rq.sum_w_vruntime, cfs_rq.sum_weight) = sums;
                return;
            }
            assert!(cfs_rq.sum_shift < MOST_HALVINGS, "{cfs:?}: the kernel gives up here too (BUG_ON)");
            cfs_rq.sum_shift += 1;
            (cfs_rq.sum_w_vruntime, cfs_rq.sum_weight) = (0, 0);
            let waiting: Vec<SeId> = cfs_rq.tasks_timeline.iter().collect();
            for se in waiting {
                cfs_rq.__sum_w_vruntime_add(weighing, &entities[se]);
            }
        }
    }

    /// fair.c: avg_vruntime(). The queue's virtual time, rounded down, so that an entity exactly there is eligible. Afterwards the sums
    /// count from it.
    pub fn avg_vruntime(&mut self, cfs: CfsRqId) -> u64 {
        self.path(Path::avg_vruntime);
        let delta = self.avg_vruntime_delta(cfs);
        let cfs_rq = &mut self.cfs_rq[cfs];
        cfs_rq.update_zero_vruntime(delta);
        cfs_rq.zero_vruntime
    }

    /// The same, without changing what the sums count from.
    pub fn shown_avg_vruntime(&self, cfs: CfsRqId) -> u64 {
        self.cfs_rq[cfs].zero_vruntime.wrapping_add_signed(self.avg_vruntime_delta(cfs))
    }

    /// How far `avg_vruntime()` is ahead of `zero_vruntime`.
    #[inline]
    fn avg_vruntime_delta(&self, cfs: CfsRqId) -> i64 {
        if self.cfs_rq[cfs].sum_weight != 0 {
            let ZeroLag { avg, load, .. } = self.zero_lag(cfs);
            // Division rounds towards zero; a negative average has to be rounded down.
            let avg = if avg < 0 { avg.wrapping_sub(load - 1) } else { avg };
            avg / load
        } else {
            self.queued_curr(cfs).map_or(0, |curr| self.cfs_rq[cfs].entity_key(&self.se[curr]))
        }
    }

    /// fair.c: entity_eligible().
    #[inline]
    pub fn entity_eligible(&self, cfs: CfsRqId, se: SeId) -> bool {
        self.zero_lag(cfs).vruntime_eligible(self.se[se].vruntime)
    }

    /// fair.c: update_deadline(). Returns true if the slice is used up; then the next one begins.
    #[inline(never)]
    pub(super) fn update_deadline(&mut self, cfs: CfsRqId, se: SeId) -> bool {
        if entity_before(self.se[se].vruntime, self.se[se].deadline) {
            return false;
        }
        self.path(Path::update_deadline);
        self.renew_slice(se);
        let vslice = self.virtual_time(se, self.se[se].slice.into());
        let se = &mut self.se[se];
        se.deadline = se.vruntime.wrapping_add(vslice);
        self.avg_vruntime(cfs);
        true
    }

    /// An entity without a slice of its own takes the tunable's current value.
    #[inline]
    pub(super) fn renew_slice(&mut self, se: SeId) {
        let se = &mut self.se[se];
        if !se.custom_slice {
            se.slice = self.sysctl.sched_base_slice as u32;
        }
    }

    // Who runs next.

    /// fair.c: pick_eevdf(). Of the eligible entities the one with the earliest deadline, among equals the one that came first; or the
    /// running entity, if it is still protected and `protect` is set.
    /// Differs: searches the waiting entities in order of their deadlines, where the kernel descends a tree by the least vruntime of each
    /// branch; both find the first eligible one. The tree of v6.6 is ordered by vruntime and descended by the least deadline: where
    /// deadlines are equal, its shape decides, and here [`EqualDeadlines::LeastService`]. The next buddy is handled in
    /// [`Sched::pick_next_entity_eevdf`].
    #[doc(alias = "__pick_eevdf")]
    pub(super) fn pick_eevdf(&self, cfs: CfsRqId, protect: bool) -> Option<SeId> {
        let cfs_rq = &self.cfs_rq[cfs];
        let curr = self.queued_curr(cfs);
        if self.competitors(cfs) == 1 {
            return curr.or_else(|| cfs_rq.tasks_timeline.leftmost());
        }
        let zero_lag = self.zero_lag(cfs);
        let curr = curr.filter(|&curr| zero_lag.vruntime_eligible(self.se[curr].vruntime));
        if let Some(curr) = curr
            && protect
            && self.runs_protected(curr)
        {
            return Some(curr);
        }
        let first_come = self.kernel.entity.equal_deadlines == EqualDeadlines::FirstCome;
        let best = match first_come {
            true => cfs_rq.tasks_timeline.first_eligible(|vruntime| zero_lag.vruntime_eligible(vruntime)),
            false => cfs_rq.tasks_timeline.first_eligible_by_vruntime(|vruntime| zero_lag.vruntime_eligible(vruntime)),
        };
        match (best, curr) {
            (Some((deadline, _)), Some(curr)) if entity_before(self.se[curr].deadline, deadline) => Some(curr),
            (Some((deadline, _)), Some(curr)) if !first_come && self.se[curr].deadline == deadline => Some(curr),
            (Some((_, best)), _) => Some(best),
            (None, curr) => curr,
        }
    }

    /// fair.c: pick_next_entity(), since v6.6. The next buddy if it is eligible, else the pick by deadline; without `protect` neither the
    /// buddy (see [`WakeupPreempt::ActionsAfterBuddy`]) nor the running entity's protection counts. `None`: the picked entity was a delayed one, which has now been dequeued.
    pub(super) fn pick_next_entity_eevdf(&mut self, cfs: CfsRqId, protect: bool) -> Option<SeId> {
        if (protect || self.kernel.entity.wakeup_preempt == WakeupPreempt::ActionsAfterBuddy)
            && self.picks_buddy()
            && let Some(next) = self.cfs_rq[cfs].next
            && self.entity_eligible(cfs, next)
        {
            debug_assert!(!self.se[next].sched_delayed, "a buddy is never delayed");
            return Some(next);
        }
        self.path(Path::pick_eevdf);
        let se = self.pick_eevdf(cfs, protect).expect("of those on a queue one is eligible");
        if self.se[se].sched_delayed {
            let flags = QueueFlags { sleep: true, delayed: true, ..QueueFlags::default() };
            self.dequeue_entities(self.cfs_rq[cfs].rq, se, flags);
            return None;
        }
        Some(se)
    }

    /// Whether the next buddy is picked, if it is eligible.
    #[inline]
    fn picks_buddy(&self) -> bool {
        self.sched_feat(match self.kernel.entity.pick_buddy {
            PickBuddy::NextBuddy => Feature::NEXT_BUDDY,
            PickBuddy::Own => Feature::PICK_BUDDY,
        })
    }

    /// fair.c: cfs_rq_min_slice(). The shortest slice requested on a queue, in ns; the greatest possible one if nothing is queued.
    pub(super) fn cfs_rq_min_slice(&self, cfs: CfsRqId) -> u32 {
        let waiting = self.cfs_rq[cfs].tasks_timeline.least_slice();
        let running = self.queued_curr(cfs).map(|curr| self.se[curr].slice);
        waiting.into_iter().chain(running).min().unwrap_or(u32::MAX)
    }

    /// fair.c: cfs_rq_max_slice(). The longest slice requested on a queue, in ns.
    pub(super) fn cfs_rq_max_slice(&self, cfs: CfsRqId) -> u32 {
        let waiting = self.cfs_rq[cfs].tasks_timeline.greatest_slice();
        let running = self.queued_curr(cfs).map(|curr| self.se[curr].slice);
        waiting.into_iter().chain(running).max().unwrap_or(0)
    }

    /// Makes a queued group's entity ask for the shortest slice of the entities below it, in ns.
    pub(super) fn set_group_slice(&mut self, cfs: CfsRqId, se: SeId, slice: u32) {
        let entity = &mut self.se[se];
        if entity.slice == slice {
            return;
        }
        entity.slice = slice;
        if entity.in_timeline {
            self.cfs_rq[cfs].tasks_timeline.set_slice(entity.deadline, se, slice);
        }
    }
}
