//! How a queue's averages follow when entities are attached and detached.

use crate::sched::CfsRq;

use super::propagate::add_positive_32;
use super::{
    __update_load_avg_blocked_se, __update_load_avg_cfs_rq, __update_load_avg_se, CfsRqLoad, EntityLoad, LOAD_AVG_MAX,
    PELT_MIN_DIVIDER, PERIOD, Pelt, Removed, SCHED_CAPACITY_SHIFT, Scale, SchedAvg, get_pelt_divider,
};
use crate::behaviour;
use units::{Capacity, unlikely};

behaviour! {
    /// How a queue's sums are kept in step with their averages, under [`Pelt::RunnableAvg`].
    pub enum SumFloor = "load.sum_floor" {
        /// Where load leaves in a dequeue the sum is lowered alone; of removed utilization it is lowered, and then held as in
        /// [`SumFloor::Cut`] (98b0d890220d, which 5.10.y has for this alone).
        Recomputed = "recomputed", since "v5.7", commit "9f68395333ad",
            "by the averages, from which they are computed anew where load leaves for good or is propagated up (as in 5.10.262)";
        /// Removed utilization is lowered and held as before. A group's entity whose average does not change leaves its queue alone
        /// (in 5.15.135).
        RecomputedAlways = "recomputed-always", since "v5.14", commit "1c35b07e6d39",
            "by the averages, from which they are computed anew where load leaves in any way or is propagated up";
        /// A comparison of 32 bits (`max_t(u32, ...)`) takes the upper half from sums of 64: of the load of 90 tasks of nice 0 next to
        /// nothing is left when one leaves.
        Cut = "cut", since "v5.17", commit "98b0d890220d", "where load leaves or is propagated up, and then cut to 32 bits";
        /// `__update_sa()`
        Whole = "whole", since "v7.0", commit "",
            "where load comes as well, with all their bits; a removed utilization of 32 bits may count as one that came";
    }
}

impl SumFloor {
    /// Raises a sum to the least value that its average allows.
    #[inline]
    pub(super) fn hold(self, sum: u64, avg: u64) -> u64 {
        match self {
            SumFloor::Recomputed | SumFloor::RecomputedAlways => sum,
            SumFloor::Cut => u64::from((sum as u32).max(avg.wrapping_mul(PELT_MIN_DIVIDER) as u32)),
            SumFloor::Whole => sum.max(avg.wrapping_mul(PELT_MIN_DIVIDER)),
        }
    }

    /// The same for a sum of 32 bits.
    #[inline]
    pub(super) fn hold_32(self, sum: u32, avg: u64) -> u32 {
        sum.max(avg.wrapping_mul(PELT_MIN_DIVIDER) as u32)
    }

    /// What is left of a sum, of which `gone` leaves for good, given what is left of its average.
    #[inline]
    fn less(self, sum: u64, gone: u64, avg: u64, divider: u64) -> u64 {
        match self {
            SumFloor::Recomputed | SumFloor::RecomputedAlways => avg.wrapping_mul(divider),
            SumFloor::Cut | SumFloor::Whole => self.hold(sum.saturating_sub(gone), avg),
        }
    }

    /// What is left of a sum of 32 bits, given what is left of its average.
    #[inline]
    fn less_32(self, sum: u32, gone: u32, avg: u64) -> u32 {
        let left = match self {
            SumFloor::Recomputed | SumFloor::RecomputedAlways | SumFloor::Cut => sum.saturating_sub(gone),
            // The difference is signed and has 32 bits.
            SumFloor::Whole => add_positive_32(sum, (gone as i32).wrapping_neg().into()),
        };
        self.hold_32(left, avg)
    }
}

/// fair.c: add_tg_cfs_propagate(). Records what a queue has to propagate to the entity that represents it one level up:
/// unweighted runnable time that was added (or, negative, removed), in units of 1024 ns.
#[inline]
pub fn add_tg_cfs_propagate(cfs_rq: &mut CfsRq, runnable_sum: i64) {
    cfs_rq.propagate = true;
    cfs_rq.prop_runnable_sum = cfs_rq.prop_runnable_sum.wrapping_add(runnable_sum);
}

/// fair.c: init_entity_runnable_average(). A new entity is assumed to be busy; `weight` is the scaled-down one.
///
/// Under [`Pelt::ByPeriod`] that holds for groups too, and in full: a period's end is one unit away. In later kernels a
/// group starts from zero.
pub fn init_entity_runnable_average(pelt: Pelt, weight: u64, entity_is_task: bool) -> SchedAvg {
    match pelt {
        Pelt::ByPeriod => SchedAvg {
            period_contrib: (PERIOD - 1) as u32,
            load_avg: weight,
            load_sum: weight * LOAD_AVG_MAX,
            util_avg: 1 << SCHED_CAPACITY_SHIFT,
            util_sum: (LOAD_AVG_MAX << SCHED_CAPACITY_SHIFT) as u32,
            ..SchedAvg::default()
        },
        Pelt::Accumulate if entity_is_task => {
            SchedAvg { load_avg: weight, runnable_avg: weight, ..SchedAvg::default() }
        }
        Pelt::RunnableAvg if entity_is_task => SchedAvg { load_avg: weight, ..SchedAvg::default() },
        Pelt::Accumulate | Pelt::RunnableAvg => SchedAvg::default(),
    }
}

/// fair.c: post_init_entity_util_avg(). A new task's utilization: its share of the queue's, at most half of the free
/// capacity.
///
/// `load_weight` is the stored weight, 1024 times too large for the formula, which is the kernel's own slip; v6.12
/// passes the scaled-down one. `cpu_scale` is `arch_scale_cpu_capacity()`, or 1024 (v4.15). Absent before
/// commit 2b8c41daba32 (v4.7), so [`Pelt::ByPeriod`] has none: v4.5 starts from the full CPU.
///
/// Differs: computes the value only; the caller attaches the task, and handles tasks of other classes.
pub fn post_init_entity_util_avg(
    pelt: Pelt,
    sa: &mut SchedAvg,
    cfs_rq: &SchedAvg,
    load_weight: u64,
    cpu_scale: Capacity,
) {
    if pelt == Pelt::ByPeriod {
        return;
    }
    let cap = u64::from(cpu_scale).wrapping_sub(cfs_rq.util_avg) as i64 / 2;
    if cap > 0 {
        let cap = cap as u64;
        sa.util_avg = if cfs_rq.util_avg == 0 {
            cap
        } else {
            (cfs_rq.util_avg.wrapping_mul(load_weight) / (cfs_rq.load_avg + 1)).min(cap)
        };
    }
    if pelt == Pelt::RunnableAvg {
        sa.runnable_avg = sa.util_avg;
    }
}

/// fair.c: enqueue_runnable_load_avg(). What a queued entity adds to its queue's runnable load.
///
/// Differs: under [`Pelt::ByPeriod`] these are the two lines of `enqueue_entity_load_avg()`; under
/// [`Pelt::RunnableAvg`] there is no such load and nothing happens. The caller maintains the queue's `runnable_weight`.
#[inline]
pub fn enqueue_runnable_load_avg(pelt: Pelt, cfs_rq: &mut SchedAvg, se: &SchedAvg, load: EntityLoad) {
    match pelt {
        Pelt::ByPeriod => {
            cfs_rq.runnable_avg = cfs_rq.runnable_avg.wrapping_add(se.load_avg);
            cfs_rq.runnable_sum = cfs_rq.runnable_sum.wrapping_add(se.load_sum);
        }
        Pelt::Accumulate => {
            cfs_rq.runnable_avg = cfs_rq.runnable_avg.wrapping_add(se.runnable_avg);
            cfs_rq.runnable_sum = cfs_rq.runnable_sum.wrapping_add(load.runnable.wrapping_mul(se.runnable_sum));
        }
        Pelt::RunnableAvg => {}
    }
}

/// fair.c: dequeue_runnable_load_avg(). The reverse of [`enqueue_runnable_load_avg`], never below zero.
#[inline]
pub fn dequeue_runnable_load_avg(pelt: Pelt, cfs_rq: &mut SchedAvg, se: &SchedAvg, load: EntityLoad) {
    match pelt {
        Pelt::ByPeriod => {
            cfs_rq.runnable_avg = sub_or_zero_signed(cfs_rq.runnable_avg, se.load_avg);
            cfs_rq.runnable_sum = sub_or_zero_signed(cfs_rq.runnable_sum, se.load_sum);
        }
        Pelt::Accumulate => {
            cfs_rq.runnable_avg = cfs_rq.runnable_avg.saturating_sub(se.runnable_avg);
            cfs_rq.runnable_sum = cfs_rq.runnable_sum.saturating_sub(load.runnable.wrapping_mul(se.runnable_sum));
        }
        Pelt::RunnableAvg => {}
    }
}

/// fair.c: enqueue_load_avg(). v4.15 and later.
#[inline]
pub fn enqueue_load_avg(floor: SumFloor, cfs_rq: &mut SchedAvg, se: &SchedAvg, weight: u64) {
    cfs_rq.load_avg = cfs_rq.load_avg.wrapping_add(se.load_avg);
    cfs_rq.load_sum = cfs_rq.load_sum.wrapping_add(weight.wrapping_mul(se.load_sum));
    if floor == SumFloor::Whole {
        cfs_rq.load_sum = floor.hold(cfs_rq.load_sum, cfs_rq.load_avg);
    }
}

/// fair.c: dequeue_load_avg(). v4.15 and later; under [`Pelt::RunnableAvg`] the sum does not fall below what the
/// average implies.
#[inline]
pub fn dequeue_load_avg(pelt: Pelt, floor: SumFloor, cfs_rq: &mut SchedAvg, se: &SchedAvg, weight: u64) {
    cfs_rq.load_avg = cfs_rq.load_avg.saturating_sub(se.load_avg);
    cfs_rq.load_sum = cfs_rq.load_sum.saturating_sub(weight.wrapping_mul(se.load_sum));
    if pelt == Pelt::RunnableAvg {
        cfs_rq.load_sum = match floor {
            SumFloor::RecomputedAlways => cfs_rq.load_avg.wrapping_mul(get_pelt_divider(se)),
            _ => floor.hold(cfs_rq.load_sum, cfs_rq.load_avg),
        };
    }
}

/// Recomputes the averages of an entity whose weight changed, from its unchanged sums: what `reweight_entity()` in
/// fair.c does between taking the entity out of its queue's load and putting it back. Does nothing under
/// [`Pelt::ByPeriod`], where averages take in a weight only as they accrue it.
#[inline]
pub fn reweight_load_avg(pelt: Pelt, sa: &mut SchedAvg, load: EntityLoad) {
    if pelt == Pelt::ByPeriod {
        return;
    }
    let divider = get_pelt_divider(sa);
    sa.load_avg = load.weight.wrapping_mul(sa.load_sum) / divider;
    if pelt == Pelt::Accumulate {
        sa.runnable_avg = load.runnable.wrapping_mul(sa.runnable_sum) / divider;
    }
}

/// fair.c: update_cfs_rq_load_avg(). Subtracts what was removed and brings the queue up to `now`. Returns whether its
/// load changed for either reason.
///
/// Differs: in that case the caller calls `cfs_rq_util_change()` (v4.15).
#[inline]
pub fn update_cfs_rq_load_avg(
    pelt: Pelt,
    floor: SumFloor,
    now: u64,
    scale: Scale,
    cfs_rq: &mut CfsRq,
    load: CfsRqLoad,
) -> bool {
    let changed = unlikely(cfs_rq.removed.nr != 0) && take_removed(pelt, floor, cfs_rq);
    changed | __update_load_avg_cfs_rq(pelt, now, scale, &mut cfs_rq.avg, load)
}

/// The first half of [`update_cfs_rq_load_avg`]. Returns whether load was subtracted.
fn take_removed(pelt: Pelt, floor: SumFloor, cfs_rq: &mut CfsRq) -> bool {
    let Removed { load_avg: load, util_avg: util, runnable_sum: runnable, .. } = std::mem::take(&mut cfs_rq.removed);
    let sa = &mut cfs_rq.avg;
    match pelt {
        Pelt::ByPeriod => {
            sa.load_avg = sub_or_zero_signed(sa.load_avg, load);
            sa.load_sum = sub_or_zero_signed(sa.load_sum, load.wrapping_mul(LOAD_AVG_MAX));
            sa.util_avg = sub_or_zero_signed(sa.util_avg, util);
            sa.util_sum = sub_or_zero_signed_32(sa.util_sum, util.wrapping_mul(LOAD_AVG_MAX));
            load != 0
        }
        Pelt::Accumulate => {
            let divider = get_pelt_divider(sa);
            sa.load_avg = sa.load_avg.saturating_sub(load);
            sa.load_sum = sa.load_sum.saturating_sub(load.wrapping_mul(divider));
            sa.util_avg = sa.util_avg.saturating_sub(util);
            sa.util_sum = sa.util_sum.saturating_sub(util.wrapping_mul(divider) as u32);
            add_tg_cfs_propagate(cfs_rq, (runnable as i64).wrapping_neg());
            true
        }
        Pelt::RunnableAvg => {
            let divider = get_pelt_divider(sa);
            sa.load_avg = sa.load_avg.saturating_sub(load);
            sa.load_sum = floor.less(sa.load_sum, load.wrapping_mul(divider), sa.load_avg, divider);
            sa.util_avg = sa.util_avg.saturating_sub(util);
            sa.util_sum = floor.less_32(sa.util_sum, util.wrapping_mul(divider) as u32, sa.util_avg);
            sa.runnable_avg = sa.runnable_avg.saturating_sub(runnable);
            sa.runnable_sum = floor.less(sa.runnable_sum, runnable.wrapping_mul(divider), sa.runnable_avg, divider);
            let gone = (runnable.wrapping_mul(divider) as i64).wrapping_neg();
            add_tg_cfs_propagate(cfs_rq, gone >> SCHED_CAPACITY_SHIFT);
            true
        }
    }
}

/// fair.c: attach_entity_load_avg(). Adds an entity to its queue, whose averages must be up to date, and sets the
/// entity's clock to the queue's.
///
/// `attach_age_load` is the feature ATTACH_AGE_LOAD, `scale` that of the queue's CPU. Only [`Pelt::ByPeriod`] uses them
/// here: it ages an entity that has a time of its own. Later kernels do so only in `set_task_rq_fair()`.
pub fn attach_entity_load_avg(
    pelt: Pelt,
    floor: SumFloor,
    scale: Scale,
    attach_age_load: bool,
    cfs_rq: &mut CfsRq,
    se: &mut SchedAvg,
    load: EntityLoad,
) {
    let sa = &mut cfs_rq.avg;
    match pelt {
        Pelt::ByPeriod => {
            if attach_age_load && se.last_update_time != 0 {
                __update_load_avg_blocked_se(pelt, sa.last_update_time, scale, se, load);
            }
            se.last_update_time = sa.last_update_time;
            sa.load_avg = sa.load_avg.wrapping_add(se.load_avg);
            sa.load_sum = sa.load_sum.wrapping_add(se.load_sum);
            add_util(sa, se);
        }
        Pelt::Accumulate => {
            let divider = align_with(se, sa);
            se.util_sum = se.util_avg.wrapping_mul(divider) as u32;
            se.load_sum = match load.weight {
                0 => divider,
                weight => se.load_avg.wrapping_mul(divider) / weight,
            };
            se.runnable_sum = se.load_sum;
            enqueue_load_avg(floor, sa, se, load.weight);
            add_util(sa, se);
            add_tg_cfs_propagate(cfs_rq, se.load_sum as i64);
        }
        Pelt::RunnableAvg => {
            let divider = align_with(se, sa);
            se.util_sum = se.util_avg.wrapping_mul(divider) as u32;
            se.runnable_sum = se.runnable_avg.wrapping_mul(divider);
            let weighted = se.load_avg.wrapping_mul(divider);
            se.load_sum = if load.weight < weighted { weighted / load.weight } else { 1 };
            enqueue_load_avg(floor, sa, se, load.weight);
            add_util(sa, se);
            sa.runnable_avg = sa.runnable_avg.wrapping_add(se.runnable_avg);
            sa.runnable_sum = sa.runnable_sum.wrapping_add(se.runnable_sum);
            add_tg_cfs_propagate(cfs_rq, se.load_sum as i64);
        }
    }
}

/// fair.c: detach_entity_load_avg(). Takes an entity out of its queue, whose averages must be up to date.
///
/// [`Pelt::ByPeriod`] first brings the entity up to the queue's time; in later kernels the caller has done so.
pub fn detach_entity_load_avg(
    pelt: Pelt,
    floor: SumFloor,
    scale: Scale,
    cfs_rq: &mut CfsRq,
    se: &mut SchedAvg,
    load: EntityLoad,
) {
    let sa = &mut cfs_rq.avg;
    match pelt {
        Pelt::ByPeriod => {
            __update_load_avg_se(pelt, sa.last_update_time, scale, se, load);
            sa.load_avg = sub_or_zero_signed(sa.load_avg, se.load_avg);
            sa.load_sum = sub_or_zero_signed(sa.load_sum, se.load_sum);
            sa.util_avg = sub_or_zero_signed(sa.util_avg, se.util_avg);
            sa.util_sum = sub_or_zero_signed_32(sa.util_sum, u64::from(se.util_sum));
        }
        Pelt::Accumulate | Pelt::RunnableAvg => {
            dequeue_load_avg(pelt, floor, sa, se, load.weight);
            sa.util_avg = sa.util_avg.saturating_sub(se.util_avg);
            if pelt == Pelt::Accumulate {
                sa.util_sum = sa.util_sum.saturating_sub(se.util_sum);
            } else {
                let divider = get_pelt_divider(sa);
                sa.util_sum = match floor {
                    SumFloor::Recomputed | SumFloor::RecomputedAlways => sa.util_avg.wrapping_mul(divider) as u32,
                    SumFloor::Cut | SumFloor::Whole => floor.less_32(sa.util_sum, se.util_sum, sa.util_avg),
                };
                sa.runnable_avg = sa.runnable_avg.saturating_sub(se.runnable_avg);
                sa.runnable_sum = floor.less(sa.runnable_sum, se.runnable_sum, sa.runnable_avg, divider);
            }
            add_tg_cfs_propagate(cfs_rq, (se.load_sum as i64).wrapping_neg());
        }
    }
}

/// fair.c: sync_entity_load_avg(). Ages a sleeping entity up to its queue's time, without the queue's lock.
#[inline]
pub fn sync_entity_load_avg(pelt: Pelt, scale: Scale, cfs_rq_time: u64, se: &mut SchedAvg, load: EntityLoad) {
    __update_load_avg_blocked_se(pelt, cfs_rq_time, scale, se, load);
}

/// fair.c: remove_entity_load_avg(). A sleeping entity leaves its queue without the queue's lock: it is aged up to the
/// queue's time and added to `removed`. There, `runnable_sum` holds the entities' `runnable_avg` under
/// [`Pelt::RunnableAvg`] and is unused under [`Pelt::ByPeriod`].
///
/// Under [`Pelt::ByPeriod`] an entity that was never attached is left alone. The entity keeps its averages; the caller
/// clears `last_update_time`.
pub fn remove_entity_load_avg(
    pelt: Pelt,
    scale: Scale,
    cfs_rq_time: u64,
    removed: &mut Removed,
    se: &mut SchedAvg,
    load: EntityLoad,
) {
    if pelt == Pelt::ByPeriod && se.last_update_time == 0 {
        return;
    }
    sync_entity_load_avg(pelt, scale, cfs_rq_time, se, load);
    removed.nr += 1;
    removed.load_avg = removed.load_avg.wrapping_add(se.load_avg);
    removed.util_avg = removed.util_avg.wrapping_add(se.util_avg);
    removed.runnable_sum = removed.runnable_sum.wrapping_add(match pelt {
        Pelt::ByPeriod => 0,
        Pelt::Accumulate => se.load_sum,
        Pelt::RunnableAvg => se.runnable_avg,
    });
}

/// Sets an entity's clock and its position in the period to its queue's. Returns the matching divider.
fn align_with(se: &mut SchedAvg, cfs_rq: &SchedAvg) -> u64 {
    se.last_update_time = cfs_rq.last_update_time;
    se.period_contrib = cfs_rq.period_contrib;
    get_pelt_divider(cfs_rq)
}

fn add_util(cfs_rq: &mut SchedAvg, se: &SchedAvg) {
    cfs_rq.util_avg = cfs_rq.util_avg.wrapping_add(se.util_avg);
    cfs_rq.util_sum = cfs_rq.util_sum.wrapping_add(se.util_sum);
}

/// Subtraction whose *signed* result is clamped at zero (`max_t(s64, a - b, 0)`, as before v4.7).
fn sub_or_zero_signed(a: u64, b: u64) -> u64 {
    (a.wrapping_sub(b) as i64).max(0) as u64
}

/// The same, truncated to 32 bits (`max_t(s32, a - b, 0)`): nothing is left of a sum beyond 2^31.
fn sub_or_zero_signed_32(a: u32, b: u64) -> u32 {
    (u64::from(a).wrapping_sub(b) as i32).max(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: EntityLoad = EntityLoad { weight: 1024, runnable: 1024, on_rq: false, running: false };

    const ALL: [Pelt; 3] = [Pelt::ByPeriod, Pelt::Accumulate, Pelt::RunnableAvg];

    #[test]
    fn what_is_attached_and_detached_at_once_leaves_the_queue_as_it_was() {
        for pelt in ALL {
            let before = SchedAvg { last_update_time: 7_000_000, period_contrib: 17, ..SchedAvg::default() };
            let mut cfs_rq = CfsRq { avg: before, ..CfsRq::default() };
            let mut se = init_entity_runnable_average(pelt, 1024, true);
            post_init_entity_util_avg(pelt, &mut se, &cfs_rq.avg, 1024 << 10, 1024);
            attach_entity_load_avg(pelt, SumFloor::Cut, Scale::FULL, true, &mut cfs_rq, &mut se, LOAD);
            let util = if pelt == Pelt::ByPeriod { 1024 } else { 512 };
            assert_eq!((cfs_rq.avg.load_avg, cfs_rq.avg.util_avg), (1024, util), "{pelt:?}");
            detach_entity_load_avg(pelt, SumFloor::Cut, Scale::FULL, &mut cfs_rq, &mut se, LOAD);
            assert_eq!(cfs_rq.avg, before, "{pelt:?}");
            assert_eq!(cfs_rq.prop_runnable_sum, 0);
        }
    }

    #[test]
    fn what_was_removed_is_taken_out_once() {
        for pelt in ALL {
            let mut cfs_rq = CfsRq::default();
            let mut se = init_entity_runnable_average(pelt, 335, true);
            attach_entity_load_avg(pelt, SumFloor::Cut, Scale::FULL, true, &mut cfs_rq, &mut se, LOAD);
            se.last_update_time = 1;
            remove_entity_load_avg(pelt, Scale::FULL, 1, &mut cfs_rq.removed, &mut se, LOAD);
            assert_eq!((cfs_rq.removed.nr, cfs_rq.removed.load_avg), (1, 335), "{pelt:?}");
            let idle = CfsRqLoad { weight: 0, runnable: 0, running: false };
            assert!(update_cfs_rq_load_avg(pelt, SumFloor::Cut, 2, Scale::FULL, &mut cfs_rq, idle));
            assert_eq!((cfs_rq.avg.load_avg, cfs_rq.avg.util_avg), (0, 0));
            assert!(!update_cfs_rq_load_avg(pelt, SumFloor::Cut, 2, Scale::FULL, &mut cfs_rq, idle));
        }
    }

    #[test]
    fn early_kernels_report_removed_load_but_not_removed_utilization() {
        for (load_avg, util_avg, changed) in [(0, 7, false), (7, 0, true)] {
            let mut cfs_rq =
                CfsRq { removed: Removed { nr: 1, load_avg, util_avg, runnable_sum: 0 }, ..CfsRq::default() };
            (cfs_rq.avg.load_avg, cfs_rq.avg.util_avg) = (10, 10);
            let idle = CfsRqLoad { weight: 0, runnable: 0, running: false };
            assert_eq!(
                update_cfs_rq_load_avg(Pelt::ByPeriod, SumFloor::Cut, 0, Scale::FULL, &mut cfs_rq, idle),
                changed
            );
            assert_eq!((cfs_rq.avg.load_avg, cfs_rq.avg.util_avg), (10 - load_avg, 10 - util_avg));
        }
    }

    #[test]
    fn early_kernels_leave_alone_what_was_never_attached() {
        let mut removed = Removed::default();
        let mut se = init_entity_runnable_average(Pelt::ByPeriod, 335, true);
        remove_entity_load_avg(Pelt::ByPeriod, Scale::FULL, 9_000_000, &mut removed, &mut se, LOAD);
        assert_eq!(removed, Removed::default());
        remove_entity_load_avg(Pelt::Accumulate, Scale::FULL, 9_000_000, &mut removed, &mut se, LOAD);
        assert_eq!(removed.nr, 1);
    }

    #[test]
    fn early_kernels_lose_a_utilization_sum_beyond_two_to_the_31() {
        // 46 new tasks that each use a full CPU sum up to 46 * 47742 * 1024, which is more than 2^31 even with one task
        // less.
        let mut cfs_rq = CfsRq::default();
        let mut tasks = [init_entity_runnable_average(Pelt::ByPeriod, 1024, true); 46];
        for se in &mut tasks {
            attach_entity_load_avg(Pelt::ByPeriod, SumFloor::Cut, Scale::FULL, true, &mut cfs_rq, se, LOAD);
        }
        assert_eq!(u64::from(cfs_rq.avg.util_sum), 46 * 47_742 * 1024);
        detach_entity_load_avg(Pelt::ByPeriod, SumFloor::Cut, Scale::FULL, &mut cfs_rq, &mut tasks[0], LOAD);
        assert_eq!((cfs_rq.avg.util_avg, cfs_rq.avg.util_sum), (45 * 1024, 0));
    }

    #[test]
    fn a_sum_cannot_fall_below_its_average_and_keeps_32_bits_only() {
        for floor in [SumFloor::Cut, SumFloor::Whole] {
            assert_eq!((floor.hold(5, 2), floor.hold_32(5, 2)), (2 * 46_718, 2 * 46_718));
        }
        assert_eq!(SumFloor::Cut.hold((7 << 32) + 100_000, 2), 100_000);
        assert_eq!(SumFloor::Whole.hold((7 << 32) + 100_000, 2), (7 << 32) + 100_000);
    }

    /// The load_avg at the next period's end of a queue that one of `tasks` always-running nice-0 tasks has left.
    fn load_without_one(floor: SumFloor, tasks: usize) -> u64 {
        let pelt = Pelt::RunnableAvg;
        let mut cfs_rq = CfsRq { avg: SchedAvg { last_update_time: 1, ..SchedAvg::default() }, ..CfsRq::default() };
        let mut se = init_entity_runnable_average(pelt, 1024, true);
        for _ in 0..tasks {
            attach_entity_load_avg(pelt, floor, Scale::FULL, true, &mut cfs_rq, &mut se, LOAD);
        }
        detach_entity_load_avg(pelt, floor, Scale::FULL, &mut cfs_rq, &mut se, LOAD);
        let queued = CfsRqLoad { weight: 1024 * (tasks as u64 - 1), runnable: tasks as u64 - 1, running: true };
        assert!(update_cfs_rq_load_avg(pelt, floor, (1 << 20) + 1, Scale::FULL, &mut cfs_rq, queued));
        cfs_rq.avg.load_avg
    }

    #[test]
    fn many_tasks_load_vanishes_when_one_leaves_unless_the_sums_stay_whole() {
        // A period later, what was left has decayed, and so have the 1024 units that each task has run since.
        let later = |left: u64, tasks: u64| {
            let sum = super::super::decay_load(left, 1) + tasks * 1024 * super::super::decay_load(PERIOD, 1);
            sum / PELT_MIN_DIVIDER
        };
        let whole = |tasks: u64| tasks * 1024 * PELT_MIN_DIVIDER;
        for floor in [SumFloor::Cut, SumFloor::Whole] {
            assert_eq!(load_without_one(floor, 80), later(whole(79), 79));
        }
        assert_eq!(load_without_one(SumFloor::Whole, 100), later(whole(99), 99));
        // Of 2^32 plus 441 million, only the latter is left.
        assert_eq!(load_without_one(SumFloor::Cut, 100), later(whole(99) % (1 << 32), 99));
        assert!(load_without_one(SumFloor::Cut, 100) < 12 * 1024 && load_without_one(SumFloor::Whole, 100) > 98 * 1024);
    }

    #[test]
    fn v5_10_computes_sums_anew_where_load_leaves_for_good() {
        let floor = SumFloor::Recomputed;
        let removed = Removed { nr: 1, load_avg: 1_000, util_avg: 100, runnable_sum: 50 };
        let avg = SchedAvg {
            load_avg: 1_500,
            load_sum: 7,
            util_avg: 300,
            util_sum: 20_000_000,
            runnable_avg: 80,
            runnable_sum: 9,
            ..SchedAvg::default()
        };
        let mut cfs_rq = CfsRq { avg, removed, ..CfsRq::default() };
        take_removed(Pelt::RunnableAvg, floor, &mut cfs_rq);
        let left = cfs_rq.avg;
        assert_eq!((left.load_sum, left.runnable_sum), (500 * 46_718, 30 * 46_718));
        // Utilization alone is lowered, and held.
        assert_eq!(left.util_sum, 20_000_000 - 100 * 46_718);
        // A dequeue lowers the sum as far as it goes.
        let se = SchedAvg { load_avg: 100, load_sum: 40_000_000, ..SchedAvg::default() };
        dequeue_load_avg(Pelt::RunnableAvg, floor, &mut cfs_rq.avg, &se, 1);
        assert_eq!((cfs_rq.avg.load_avg, cfs_rq.avg.load_sum), (400, 0));
    }

    #[test]
    fn v5_15_computes_sums_anew_in_a_dequeue_as_well() {
        for (floor, left) in [(SumFloor::Recomputed, 0), (SumFloor::RecomputedAlways, 400 * (46_718 + 100))] {
            let mut queue = SchedAvg { load_avg: 500, load_sum: 7, ..SchedAvg::default() };
            // The place in the period is the entity's.
            let se = SchedAvg { load_avg: 100, load_sum: 40_000_000, period_contrib: 100, ..SchedAvg::default() };
            dequeue_load_avg(Pelt::RunnableAvg, floor, &mut queue, &se, 1);
            assert_eq!((queue.load_avg, queue.load_sum), (400, left), "{floor:?}");
        }
    }

    #[test]
    fn a_sum_that_comes_is_held_above_its_average_only_later() {
        // 1000 * 46718 / 1024 = 45623.05: the truncated fraction is missing in the sum.
        for (floor, sum) in [(SumFloor::Cut, 1024 * 45_623), (SumFloor::Whole, 1000 * 46_718)] {
            let (mut cfs_rq, mut se) = (CfsRq::default(), SchedAvg { load_avg: 1000, ..SchedAvg::default() });
            attach_entity_load_avg(Pelt::RunnableAvg, floor, Scale::FULL, true, &mut cfs_rq, &mut se, LOAD);
            assert_eq!(cfs_rq.avg.load_sum, sum);
        }
    }

    #[test]
    fn much_removed_utilization_is_taken_for_some_that_came() {
        // 46 CPUs' worth: more than 2^31, less than 2^32.
        let gone = 46 * 1024 * 46_718u64;
        for (floor, util_sum) in [(SumFloor::Cut, 0), (SumFloor::Whole, 1_000_000u32.wrapping_sub(gone as u32))] {
            let removed = Removed { nr: 1, util_avg: 46 * 1024, ..Removed::default() };
            let avg = SchedAvg { util_sum: 1_000_000, ..SchedAvg::default() };
            let mut cfs_rq = CfsRq { avg, removed, ..CfsRq::default() };
            take_removed(Pelt::RunnableAvg, floor, &mut cfs_rq);
            assert_eq!(cfs_rq.avg.util_sum, util_sum);
        }
    }
}
