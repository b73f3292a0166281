//! fair.c: EEVDF, earliest eligible virtual deadline first (since v6.6): the way to share a CPU that took the place of
//! [`super::cfs`].
//!
//! A queue's virtual time V is the average of its entities' vruntimes, by weight. An entity's *lag* is V minus its vruntime: how
//! much service it is owed. With a lag of zero or more it is *eligible*. Each asks for a *slice*, and should have got it when
//! virtual time reaches its *deadline*: its vruntime then plus the slice over its weight. Who is eligible and has the earliest
//! deadline runs next. (Stoica and Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995.)
//!
//! V is never stored: `avg_vruntime` and `avg_load` are sums over what waits, relative to `zero_vruntime`, and `curr` is added when
//! asked. Arithmetic wraps as the kernel's does.
//!
//! Who falls asleep while it owes service stays in competition until it has paid (DELAY_DEQUEUE): [`super::delayed`].
//! The fair server, which lends fair tasks a deadline entity's time while realtime tasks starve them, is in `deadline/server.rs`. Absent:
//! core scheduling.

use super::timeline::entity_before;
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::load_weight::{LoadResolution, calc_delta_fair};
use crate::sched::*;

/// What decides on eligibility, computed once for several questions: `vruntime_eligible()` without its argument.
#[derive(Clone, Copy)]
struct ZeroLag {
    /// Sum of `weight * (vruntime - zero_vruntime)`, `curr` included if it is queued.
    avg: i64,
    /// Sum of weights.
    load: i64,
    zero_vruntime: u64,
}

impl ZeroLag {
    /// fair.c: vruntime_eligible(). Without a division, which would round.
    #[inline]
    fn vruntime_eligible(self, vruntime: u64) -> bool {
        self.avg >= (vruntime.wrapping_sub(self.zero_vruntime) as i64).wrapping_mul(self.load)
    }
}

impl SchedEntity {
    /// fair.c: set_protect_slice(). A slice begins, in which others do not preempt: see [`SchedEntity::protect_slice`].
    #[inline]
    pub(crate) fn set_protect_slice(&mut self) {
        self.vlag = self.deadline as i64;
    }

    /// fair.c: protect_slice(). Whether what runs is still in the slice with which it was picked.
    #[inline]
    pub(crate) fn protect_slice(&self) -> bool {
        self.vlag == self.deadline as i64
    }

    /// fair.c: cancel_protect_slice().
    #[inline]
    fn cancel_protect_slice(&mut self) {
        if self.protect_slice() {
            self.vlag = self.deadline.wrapping_add(1) as i64;
        }
    }
}

impl CfsRq {
    /// fair.c: entity_key().
    #[inline]
    fn entity_key(&self, se: &SchedEntity) -> i64 {
        se.vruntime.wrapping_sub(self.zero_vruntime) as i64
    }

    /// fair.c: avg_vruntime_add().
    #[inline]
    pub(super) fn avg_vruntime_add(&mut self, resolution: LoadResolution, se: &SchedEntity) {
        let weight = resolution.scale_load_down(se.load.weight);
        let key = self.entity_key(se);
        self.avg_vruntime = self.avg_vruntime.wrapping_add(key.wrapping_mul(weight as i64));
        self.avg_load += weight;
    }

    /// fair.c: avg_vruntime_sub().
    #[inline]
    pub(super) fn avg_vruntime_sub(&mut self, resolution: LoadResolution, se: &SchedEntity) {
        let weight = resolution.scale_load_down(se.load.weight);
        let key = self.entity_key(se);
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(key.wrapping_mul(weight as i64));
        self.avg_load -= weight;
    }

    /// fair.c: update_zero_vruntime().
    #[inline]
    fn update_zero_vruntime(&mut self, delta: i64) {
        self.avg_vruntime = self.avg_vruntime.wrapping_sub((self.avg_load as i64).wrapping_mul(delta));
        self.zero_vruntime = self.zero_vruntime.wrapping_add_signed(delta);
    }
}

impl<A: Arch> Sched<A> {
    // Virtual time.

    /// The running entity of a queue, if it is still queued.
    #[inline]
    fn queued_curr(&self, cfs: CfsRqId) -> Option<SeId> {
        self.cfs_rq[cfs].curr.filter(|&curr| self.se[curr].on_rq)
    }

    /// The sums of `cfs` with its running entity.
    #[inline]
    fn zero_lag(&self, cfs: CfsRqId) -> ZeroLag {
        let cfs_rq = &self.cfs_rq[cfs];
        let (mut avg, mut load) = (cfs_rq.avg_vruntime, cfs_rq.avg_load as i64);
        if let Some(curr) = self.queued_curr(cfs) {
            let curr = &self.se[curr];
            let weight = self.kernel.load_resolution.scale_load_down(curr.load.weight) as i64;
            avg = avg.wrapping_add(cfs_rq.entity_key(curr).wrapping_mul(weight));
            load += weight;
        }
        ZeroLag { avg, load, zero_vruntime: cfs_rq.zero_vruntime }
    }

    /// fair.c: avg_vruntime(). The queue's virtual time, rounded towards the past, so that who stands there is eligible. The sums
    /// count from it afterwards.
    pub fn avg_vruntime(&mut self, cfs: CfsRqId) -> u64 {
        self.path(Path::avg_vruntime);
        let delta = self.avg_vruntime_delta(cfs);
        let cfs_rq = &mut self.cfs_rq[cfs];
        cfs_rq.update_zero_vruntime(delta);
        cfs_rq.zero_vruntime
    }

    /// The same, for who only looks.
    pub fn shown_avg_vruntime(&self, cfs: CfsRqId) -> u64 {
        self.cfs_rq[cfs].zero_vruntime.wrapping_add_signed(self.avg_vruntime_delta(cfs))
    }

    /// How far `avg_vruntime()` is ahead of `zero_vruntime`.
    #[inline]
    fn avg_vruntime_delta(&self, cfs: CfsRqId) -> i64 {
        if self.cfs_rq[cfs].avg_load != 0 {
            let ZeroLag { avg, load, .. } = self.zero_lag(cfs);
            // Division rounds towards zero: from below it must be held back.
            let avg = if avg < 0 { avg.wrapping_sub(load - 1) } else { avg };
            avg / load
        } else {
            self.queued_curr(cfs).map_or(0, |curr| self.cfs_rq[cfs].entity_key(&self.se[curr]))
        }
    }

    /// fair.c: entity_lag(). In ns of virtual time; at most two slices, or a tick if that is more, either way.
    fn entity_lag(&mut self, avruntime: u64, se: SeId) -> i64 {
        let (resolution, tick_nsec) = (self.kernel.load_resolution, self.tick_nsec);
        let se = &mut self.se[se];
        let limit = calc_delta_fair(resolution, (2 * se.slice).max(tick_nsec), &mut se.load) as i64;
        (avruntime.wrapping_sub(se.vruntime) as i64).clamp(-limit, limit)
    }

    /// fair.c: update_entity_lag(). What a queued entity is owed, before it leaves.
    pub(super) fn update_entity_lag(&mut self, cfs: CfsRqId, se: SeId) {
        debug_assert!(self.se[se].on_rq);
        self.path(Path::update_entity_lag);
        let avruntime = self.avg_vruntime(cfs);
        self.se[se].vlag = self.entity_lag(avruntime, se);
    }

    /// fair.c: entity_eligible().
    #[inline]
    pub fn entity_eligible(&self, cfs: CfsRqId, se: SeId) -> bool {
        self.zero_lag(cfs).vruntime_eligible(self.se[se].vruntime)
    }

    /// fair.c: update_deadline(). True when a slice is used up; then the next one begins.
    #[inline(never)]
    pub(super) fn update_deadline(&mut self, cfs: CfsRqId, se: SeId) -> bool {
        if entity_before(self.se[se].vruntime, self.se[se].deadline) {
            return false;
        }
        self.path(Path::update_deadline);
        self.renew_slice(se);
        let resolution = self.kernel.load_resolution;
        let se = &mut self.se[se];
        se.deadline = se.vruntime.wrapping_add(calc_delta_fair(resolution, se.slice, &mut se.load));
        self.avg_vruntime(cfs);
        true
    }

    /// Who asks for no slice of its own gets what the tunable says now.
    #[inline]
    fn renew_slice(&mut self, se: SeId) {
        let se = &mut self.se[se];
        if !se.custom_slice {
            se.slice = self.sysctl.sched_base_slice;
        }
    }

    /// The end of `update_curr()`: the slice is over, or the running entity lost its protection and is not eligible any more.
    #[inline(never)]
    pub(super) fn resched_after_update(&mut self, cfs: CfsRqId, curr: SeId, slice_ended: bool) {
        if self.cfs_rq[cfs].nr_running != 1 && (slice_ended || self.did_preempt_short(cfs, curr)) {
            self.resched_curr_lazy(self.cfs_rq[cfs].rq);
            self.clear_buddies(cfs, curr);
        }
    }

    /// fair.c: did_preempt_short().
    #[inline]
    fn did_preempt_short(&self, cfs: CfsRqId, curr: SeId) -> bool {
        self.sched_feat(Feature::PREEMPT_SHORT) && !self.se[curr].protect_slice() && !self.entity_eligible(cfs, curr)
    }

    /// fair.c: do_preempt_short(). Whether `pse`, woken, takes the protection of its slice from `se`, which runs.
    pub(super) fn do_preempt_short(&self, cfs: CfsRqId, pse: SeId, se: SeId) -> bool {
        let (woken, running) = (&self.se[pse], &self.se[se]);
        self.sched_feat(Feature::PREEMPT_SHORT)
            && woken.slice < running.slice
            && self.entity_eligible(cfs, pse)
            && (entity_before(woken.deadline, running.deadline) || !self.entity_eligible(cfs, se))
    }

    /// What runs may be preempted, wherever it is in its slice.
    pub(super) fn cancel_protect_slice(&mut self, se: SeId) {
        self.se[se].cancel_protect_slice();
    }

    // Joining and leaving.

    /// fair.c: place_entity(), since v6.6. Where an entity joins: with the lag it left with, and a slice from there on.
    ///
    /// V moves when it joins, against it: of a lag of `vl` remains `vl * W / (W + w)`, `W` being the weight of the others. So it joins
    /// with `(W + w) / W` times the lag that it is to have.
    pub(super) fn place_entity_eevdf(&mut self, cfs: CfsRqId, se: SeId, flags: QueueFlags) {
        self.path(Path::place_entity);
        let resolution = self.kernel.load_resolution;
        let avruntime = self.avg_vruntime(cfs);
        self.renew_slice(se);
        let mut lag = 0;
        if self.sched_feat(Feature::PLACE_LAG) && self.cfs_rq[cfs].nr_running != 0 {
            let load = self.zero_lag(cfs).load;
            let entity = &self.se[se];
            lag = entity.vlag.wrapping_mul(load + resolution.scale_load_down(entity.load.weight) as i64) / load.max(1);
        }
        let relative = self.sched_feat(Feature::PLACE_REL_DEADLINE);
        let halved = self.sched_feat(Feature::PLACE_DEADLINE_INITIAL) && flags.initial;
        let se = &mut self.se[se];
        se.vruntime = avruntime.wrapping_add_signed(-lag);
        if relative && se.rel_deadline {
            se.deadline = se.deadline.wrapping_add(se.vruntime);
            se.rel_deadline = false;
            return;
        }
        let vslice = calc_delta_fair(resolution, se.slice, &mut se.load) >> u32::from(halved);
        se.deadline = se.vruntime.wrapping_add(vslice);
    }

    /// The part of `dequeue_entity()` that remembers when the slice ends of an entity that is only moved. It has left the timeline,
    /// where the deadline is its key.
    pub(super) fn keep_relative_deadline(&mut self, se: SeId, flags: QueueFlags) {
        if self.sched_feat(Feature::PLACE_REL_DEADLINE) && !flags.sleep {
            let se = &mut self.se[se];
            se.deadline = se.deadline.wrapping_sub(se.vruntime);
            se.rel_deadline = true;
        }
    }

    /// The first half of what `reweight_entity()` does to virtual time: a queued entity leaves the sums. Returns V.
    pub(super) fn begin_reweight(&mut self, cfs: CfsRqId, se: SeId) -> u64 {
        self.update_curr(cfs);
        let avruntime = self.avg_vruntime(cfs);
        if self.cfs_rq[cfs].curr != Some(se) {
            self.__dequeue_entity(cfs, se);
        }
        avruntime
    }

    /// fair.c: reweight_eevdf(). Lag in real time stays the same, so in virtual time it grows as the weight shrinks; so does what is
    /// left of the slice.
    pub(super) fn reweight_eevdf(&mut self, se: SeId, avruntime: u64, weight: u64) {
        let old_weight = self.se[se].load.weight as i64;
        let rescale = |virtual_time: i64| virtual_time.wrapping_mul(old_weight) / weight as i64;
        if avruntime != self.se[se].vruntime {
            let vlag = self.entity_lag(avruntime, se);
            self.se[se].vruntime = avruntime.wrapping_add_signed(-rescale(vlag));
        }
        let se = &mut self.se[se];
        let vslice = se.deadline.wrapping_sub(avruntime) as i64;
        se.deadline = avruntime.wrapping_add_signed(rescale(vslice));
    }

    /// The other side of `reweight_entity()`: the lag that an entity that is not queued left with.
    pub(super) fn reweight_lag(&mut self, se: SeId, weight: u64) {
        let se = &mut self.se[se];
        se.vlag = se.vlag.wrapping_mul(se.load.weight as i64) / weight as i64;
    }

    // Who runs next.

    /// fair.c: pick_eevdf(). Of those who are eligible the one with the earliest deadline, among equals the one that came first;
    /// what runs, if it is still in its slice (RUN_TO_PARITY).
    /// Differs: looks through what waits in order of deadlines, where the kernel descends a tree by the least vruntime of each
    /// branch; both find the first that is eligible.
    pub(super) fn pick_eevdf(&self, cfs: CfsRqId) -> Option<SeId> {
        let cfs_rq = &self.cfs_rq[cfs];
        let curr = self.queued_curr(cfs);
        if cfs_rq.nr_running == 1 {
            return curr.or_else(|| cfs_rq.tasks_timeline.leftmost());
        }
        let zero_lag = self.zero_lag(cfs);
        let curr = curr.filter(|&curr| zero_lag.vruntime_eligible(self.se[curr].vruntime));
        if let Some(curr) = curr
            && self.sched_feat(Feature::RUN_TO_PARITY)
            && self.se[curr].protect_slice()
        {
            return Some(curr);
        }
        let best = cfs_rq.tasks_timeline.first_eligible(|vruntime| zero_lag.vruntime_eligible(vruntime));
        match (best, curr) {
            (Some((deadline, _)), Some(curr)) if entity_before(self.se[curr].deadline, deadline) => Some(curr),
            (Some((_, best)), _) => Some(best),
            (None, curr) => curr,
        }
    }

    /// fair.c: pick_next_entity(), since v6.6. The next buddy if it is eligible, else by deadline. `None`: it was one whose dequeue
    /// had been delayed, and is now made up for.
    pub(super) fn pick_next_entity_eevdf(&mut self, cfs: CfsRqId) -> Option<SeId> {
        if self.sched_feat(Feature::PICK_BUDDY)
            && let Some(next) = self.cfs_rq[cfs].next
            && self.entity_eligible(cfs, next)
        {
            debug_assert!(!self.se[next].sched_delayed, "a buddy is never delayed");
            return Some(next);
        }
        self.path(Path::pick_eevdf);
        let se = self.pick_eevdf(cfs).expect("of those on a queue one is eligible");
        if self.se[se].sched_delayed {
            let flags = QueueFlags { sleep: true, delayed: true, ..QueueFlags::default() };
            self.dequeue_entities(self.cfs_rq[cfs].rq, se, flags);
            return None;
        }
        Some(se)
    }

    /// fair.c: cfs_rq_min_slice(). The shortest slice that is asked for on a queue, in ns.
    pub(super) fn cfs_rq_min_slice(&self, cfs: CfsRqId) -> u64 {
        let waiting = self.cfs_rq[cfs].tasks_timeline.least_slice();
        let running = self.queued_curr(cfs).map(|curr| self.se[curr].slice);
        waiting.into_iter().chain(running).min().unwrap_or(u64::MAX)
    }

    /// A queued group's entity asks for the shortest slice of what it holds, in ns.
    pub(super) fn set_group_slice(&mut self, cfs: CfsRqId, se: SeId, slice: u64) {
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
