//! fair.c: how the completely fair scheduler shares a CPU (until v6.5): virtual runtimes and their minimum, slices of a
//! period, placement, and the pick of the leftmost entity or a buddy. Since v6.6 [`super::eevdf`] takes its place.

use super::rules::{BuddiesCleared, IdleSleeper, IdleSlice, LongSleeper, MinVruntimeCurr, NrLatency, Pick, TickSlice};
use super::timeline::entity_before;
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::load_weight::{__calc_delta, calc_delta_fair};
use crate::sched::*;
use fentry::fentry;
use units::unlikely;

impl MinVruntimeCurr {
    /// Whether `curr` enters the minimum.
    #[inline]
    pub(super) fn counts(self, curr: &SchedEntity) -> bool {
        self == MinVruntimeCurr::EvenDequeued || curr.on_rq
    }
}

/// Whether an entity that last ran at `exec_start` has slept for more than 2^63 / 1024 ns by now.
#[inline(always)]
pub(super) fn is_long_sleep(exec_start: u64, now: u64) -> bool {
    exec_start != 0 && now.saturating_sub(exec_start) > (1 << 63) / 1024
}

impl CfsRq {
    /// fair.c: update_min_vruntime(). Follows the smaller of the running entity's vruntime, if that counts, and the
    /// leftmost's; never backwards.
    #[inline]
    pub(super) fn update_min_vruntime(&mut self, curr: Option<u64>) {
        let vruntime = match (curr, self.tasks_timeline.leftmost_vruntime()) {
            (Some(curr), Some(left)) if entity_before(left, curr) => left,
            (Some(curr), _) => curr,
            (None, Some(left)) => left,
            (None, None) => return,
        };
        if entity_before(self.min_vruntime, vruntime) {
            self.min_vruntime = vruntime;
        }
    }
}

impl<A: Arch> Sched<A> {
    /// [`CfsRq::update_min_vruntime`] by id.
    #[inline]
    pub(super) fn update_min_vruntime(&mut self, cfs: CfsRqId) {
        let cfs_rq = &mut self.cfs_rq[cfs];
        let curr = cfs_rq.curr.map(|curr| &self.se[curr]);
        let curr = curr.filter(|curr| self.kernel.entity.min_vruntime_curr.counts(curr)).map(|curr| curr.vruntime);
        cfs_rq.update_min_vruntime(curr);
    }

    /// fair.c: __sched_period(). In ns: the time in which each of `nr_running` entities runs once, none for less than
    /// the shortest slice.
    #[inline]
    fn __sched_period(&self, nr_running: u32) -> u64 {
        // nr_running > sched_nr_latency
        if nr_running > 0 && self.is_past_nr_latency(nr_running - 1) {
            u64::from(nr_running) * self.sysctl.sched_min_granularity
        } else {
            self.sysctl.sched_latency
        }
    }

    /// `nr_running >= sched_nr_latency`: there are so many entities that their slices no longer fit into the latency.
    #[inline]
    pub(crate) fn is_past_nr_latency(&self, nr_running: u32) -> bool {
        match self.kernel.entity.nr_latency {
            NrLatency::Ratio => u64::from(nr_running) >= self.scaled_tunables.sched_nr_latency,
            NrLatency::Eight => nr_running >= 8,
        }
    }

    /// fair.c: sched_slice(). The part of a period, in ns, that belongs to `se` by its weight on every level.
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

    /// The lower bound that BASE_SLICE sets for a slice, in ns.
    fn least_slice(&self, cfs: CfsRqId, se: SeId) -> u64 {
        let of_its_own = self.kernel.entity.idle_slice == IdleSlice::IdleMinGranularity;
        if of_its_own && self.se_is_idle(se) && !self.sched_idle_cfs_rq(cfs) {
            self.sysctl.sched_idle_min_granularity
        } else {
            self.sysctl.sched_min_granularity
        }
    }

    /// fair.c: sched_vslice(). The slice of an entity that is to be inserted, in ns of its virtual time.
    fn sched_vslice(&mut self, cfs: CfsRqId, se: SeId) -> u64 {
        let slice = self.sched_slice(cfs, se);
        calc_delta_fair(self.kernel.load_resolution, slice, &mut self.se[se].load)
    }

    /// fair.c: place_entity(), until v6.5. A new entity (`initial`) starts a slice behind; a sleeper gets a limited
    /// credit, however long it slept.
    pub(super) fn place_entity_cfs(&mut self, cfs: CfsRqId, se: SeId, initial: bool) {
        let mut vruntime = self.cfs_rq[cfs].min_vruntime;
        if unlikely(initial) {
            if self.sched_feat(Feature::START_DEBIT) {
                vruntime = vruntime.wrapping_add(self.sched_vslice(cfs, se));
            }
        } else {
            let gentle = self.sched_feat(Feature::GENTLE_FAIR_SLEEPERS);
            vruntime = vruntime.wrapping_sub(self.sleeper_credit(se) >> u32::from(gentle));
        }
        if entity_before(self.se[se].vruntime, vruntime) || self.entity_is_long_sleeper(se) {
            self.se[se].vruntime = vruntime;
        }
    }

    /// A sleeper's credit in ns, before GENTLE_FAIR_SLEEPERS halves it.
    #[inline]
    fn sleeper_credit(&self, se: SeId) -> u64 {
        if self.se_is_idle(se) && self.kernel.entity.idle_sleeper == IdleSleeper::MinGranularity {
            self.sysctl.sched_min_granularity
        } else {
            self.sysctl.sched_latency
        }
    }

    /// fair.c: entity_is_long_sleeper(). Whether so much virtual time may have passed that the entity's vruntime can no
    /// longer be compared: the virtual time of the lightest entity passes 1024 times as fast as real time, and a
    /// comparison spans 2^63 ns of it.
    #[inline]
    fn entity_is_long_sleeper(&self, se: SeId) -> bool {
        if self.kernel.entity.long_sleeper == LongSleeper::Compared {
            return false;
        }
        let exec_start = self.se[se].exec_start;
        let now = self.rq[self.cfs_rq[self.se[se].cfs_rq].rq].clock_task;
        is_long_sleep(exec_start, now)
    }

    /// fair.c: check_spread(), until v6.5. Counts entities whose vruntime is far from the rest.
    #[inline]
    pub(super) fn check_spread(&mut self, cfs: CfsRqId, se: SeId) {
        if !self.schedstat_enabled() || self.kernel.entity.pick == Pick::Eevdf {
            return;
        }
        let distance = self.se[se].vruntime.wrapping_sub(self.cfs_rq[cfs].min_vruntime) as i64;
        if distance.unsigned_abs() > 3 * self.sysctl.sched_latency {
            self.cfs_rq[cfs].nr_spread_over += 1;
        }
    }

    /// fair.c: pick_next_entity(), until v6.5. Picks the leftmost, unless it is to be skipped, or a buddy is not too
    /// far behind it. `curr` is the running entity, if it may go on.
    #[fentry(pick_next_entity)]
    pub(super) fn pick_next_entity_cfs(&mut self, cfs: CfsRqId, curr: Option<SeId>) -> SeId {
        let first = self.cfs_rq[cfs].tasks_timeline.leftmost();
        let ahead = |a: SeId, b: SeId| entity_before(self.se[a].vruntime, self.se[b].vruntime);
        let left = match (first, curr) {
            (Some(first), Some(curr)) if ahead(curr, first) => curr,
            (Some(first), _) => first,
            (None, Some(curr)) => curr,
            (None, None) => unreachable!("who picks has seen that something is queued"),
        };
        if self.cfs_rq[cfs].buddies { self.pick_beside_buddies(cfs, curr, first, left) } else { left }
    }

    /// The same, when the queue has a buddy.
    #[inline(never)]
    fn pick_beside_buddies(&mut self, cfs: CfsRqId, curr: Option<SeId>, first: Option<SeId>, left: SeId) -> SeId {
        // Buddies are queued here, so an entity that is alone, as groups mostly are, is the buddy itself.
        if self.cfs_rq[cfs].nr_running == 1 {
            if self.kernel.entity.buddies_cleared == BuddiesCleared::WhenPicked {
                self.clear_buddies(cfs, left);
            }
            return left;
        }
        self.pick_among_buddies(cfs, curr, first, left)
    }

    #[inline(never)]
    fn pick_among_buddies(&mut self, cfs: CfsRqId, curr: Option<SeId>, first: Option<SeId>, left: SeId) -> SeId {
        let se = self.pick_buddy(cfs, curr, first, left);
        if self.kernel.entity.buddies_cleared == BuddiesCleared::WhenPicked {
            self.clear_buddies(cfs, se);
        }
        se
    }

    /// The part of `pick_next_entity()` that considers buddies. `first` is the first waiting entity, `left` the one
    /// that would run without buddies.
    #[inline(always)]
    fn pick_buddy(&mut self, cfs: CfsRqId, curr: Option<SeId>, first: Option<SeId>, left: SeId) -> SeId {
        let ahead = |a: SeId, b: SeId| entity_before(self.se[a].vruntime, self.se[b].vruntime);
        let CfsRq { next, last, skip, .. } = self.cfs_rq[cfs];
        let mut se = left;
        if unlikely(skip == Some(left)) {
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
        se
    }

    /// fair.c: check_preempt_tick(), until v6.5. Ends the slice of `curr` when it is used up, or when `curr` is more
    /// than a slice ahead of the leftmost.
    #[fentry]
    pub(super) fn check_preempt_tick(&mut self, cfs: CfsRqId, curr: SeId) {
        let cpu = self.cfs_rq[cfs].rq;
        let mut ideal_runtime = self.sched_slice(cfs, curr);
        if self.kernel.entity.tick_slice == TickSlice::Latency {
            ideal_runtime = ideal_runtime.min(self.sysctl.sched_latency);
        }
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
