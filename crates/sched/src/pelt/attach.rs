//! Entities coming to a queue and leaving it: how its averages follow.

use crate::sched::{CfsRq, Removed};

use super::{
    __update_load_avg_blocked_se, __update_load_avg_cfs_rq, __update_load_avg_se, CfsRqLoad, EntityLoad, LOAD_AVG_MAX,
    PELT_MIN_DIVIDER, PERIOD, Pelt, SCHED_CAPACITY_SHIFT, Scale, SchedAvg, get_pelt_divider,
};
use units::{Capacity, unlikely};

/// fair.c: add_tg_cfs_propagate(). A queue's news for the entity that stands for it one level up: unweighted runnable
/// time that came (or, negative, left), in units of 1024 ns.
#[inline]
pub fn add_tg_cfs_propagate(cfs_rq: &mut CfsRq, runnable_sum: i64) {
    cfs_rq.propagate = true;
    cfs_rq.prop_runnable_sum = cfs_rq.prop_runnable_sum.wrapping_add(runnable_sum);
}

/// fair.c: init_entity_runnable_average(). A new entity is taken for a busy one; `weight` is the shown one.
///
/// Under [`Pelt::ByPeriod`] that goes for groups too, and in full: a period's end is one unit away. Later a group
/// starts from nothing.
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

/// fair.c: post_init_entity_util_avg(). A new task's utilization: its share of the queue's, at most half of what is
/// free.
///
/// `load_weight` is the kept weight, 1024 times too large for the formula, which is the kernel's own slip; v6.12 passes
/// the shown one. `cpu_scale` is `arch_scale_cpu_capacity()`; v4.15 takes 1024 for it. Absent before commit
/// 2b8c41daba32 (v4.7), so [`Pelt::ByPeriod`] has none: v4.5 starts from the full CPU.
///
/// Differs: the value only; attaching, and tasks of other classes, are the caller's.
pub fn post_init_entity_util_avg(
    pelt: Pelt,
    sa: &mut SchedAvg,
    cfs_rq: &SchedAvg,
    load_weight: u64,
    cpu_scale: Capacity,
) {
    let whole_cpu = match pelt {
        Pelt::ByPeriod => return,
        Pelt::Accumulate => 1 << SCHED_CAPACITY_SHIFT,
        Pelt::RunnableAvg => u64::from(cpu_scale),
    };
    let cap = whole_cpu.wrapping_sub(cfs_rq.util_avg) as i64 / 2;
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
/// [`Pelt::RunnableAvg`] there is no such load and nothing happens. `runnable_weight` of the queue is the caller's.
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
pub fn enqueue_load_avg(cfs_rq: &mut SchedAvg, se: &SchedAvg, weight: u64) {
    cfs_rq.load_avg = cfs_rq.load_avg.wrapping_add(se.load_avg);
    cfs_rq.load_sum = cfs_rq.load_sum.wrapping_add(weight.wrapping_mul(se.load_sum));
}

/// fair.c: dequeue_load_avg(). v4.15 and later; under [`Pelt::RunnableAvg`] the sum stays above what the average
/// allows.
#[inline]
pub fn dequeue_load_avg(pelt: Pelt, cfs_rq: &mut SchedAvg, se: &SchedAvg, weight: u64) {
    cfs_rq.load_avg = cfs_rq.load_avg.saturating_sub(se.load_avg);
    cfs_rq.load_sum = cfs_rq.load_sum.saturating_sub(weight.wrapping_mul(se.load_sum));
    if pelt == Pelt::RunnableAvg {
        cfs_rq.load_sum = above_average(cfs_rq.load_sum, cfs_rq.load_avg);
    }
}

/// The averages of an entity whose weight changed, with its sums as they were: what `reweight_entity()` in fair.c
/// does between taking the entity out of its queue's load and putting it back. Nothing under [`Pelt::ByPeriod`], whose
/// averages learn of a weight only by accruing it.
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

/// fair.c: update_cfs_rq_load_avg(). Takes out what was removed and brings the queue up to `now`; true if its load
/// changed for either reason.
///
/// Differs: `cfs_rq_util_change()` (v4.15) is the caller's, when true.
#[inline]
pub fn update_cfs_rq_load_avg(pelt: Pelt, now: u64, scale: Scale, cfs_rq: &mut CfsRq, load: CfsRqLoad) -> bool {
    let changed = unlikely(cfs_rq.removed.nr != 0) && take_removed(pelt, cfs_rq);
    changed | __update_load_avg_cfs_rq(pelt, now, scale, &mut cfs_rq.avg, load)
}

/// The first half of [`update_cfs_rq_load_avg`]. True if load was taken out.
fn take_removed(pelt: Pelt, cfs_rq: &mut CfsRq) -> bool {
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
            sa.load_sum = sa.load_sum.saturating_sub(load.wrapping_mul(divider));
            sa.load_sum = above_average(sa.load_sum, sa.load_avg);
            sa.util_avg = sa.util_avg.saturating_sub(util);
            sa.util_sum = sa.util_sum.saturating_sub(util.wrapping_mul(divider) as u32);
            sa.util_sum = above_average(u64::from(sa.util_sum), sa.util_avg) as u32;
            sa.runnable_avg = sa.runnable_avg.saturating_sub(runnable);
            sa.runnable_sum = sa.runnable_sum.saturating_sub(runnable.wrapping_mul(divider));
            sa.runnable_sum = above_average(sa.runnable_sum, sa.runnable_avg);
            let gone = (runnable.wrapping_mul(divider) as i64).wrapping_neg();
            add_tg_cfs_propagate(cfs_rq, gone >> SCHED_CAPACITY_SHIFT);
            true
        }
    }
}

/// fair.c: attach_entity_load_avg(). Adds an entity to its queue, whose averages must be up to date, and sets the
/// entity's clock to the queue's.
///
/// `attach_age_load` is the feature ATTACH_AGE_LOAD, `scale` that of the queue's CPU; only [`Pelt::ByPeriod`] looks at
/// them here: it ages an entity that has a time of its own. Later kernels do so in `set_task_rq_fair()` only.
pub fn attach_entity_load_avg(
    pelt: Pelt,
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
            enqueue_load_avg(sa, se, load.weight);
            add_util(sa, se);
            add_tg_cfs_propagate(cfs_rq, se.load_sum as i64);
        }
        Pelt::RunnableAvg => {
            let divider = align_with(se, sa);
            se.util_sum = se.util_avg.wrapping_mul(divider) as u32;
            se.runnable_sum = se.runnable_avg.wrapping_mul(divider);
            let weighted = se.load_avg.wrapping_mul(divider);
            se.load_sum = if load.weight < weighted { weighted / load.weight } else { 1 };
            enqueue_load_avg(sa, se, load.weight);
            add_util(sa, se);
            sa.runnable_avg = sa.runnable_avg.wrapping_add(se.runnable_avg);
            sa.runnable_sum = sa.runnable_sum.wrapping_add(se.runnable_sum);
            add_tg_cfs_propagate(cfs_rq, se.load_sum as i64);
        }
    }
}

/// fair.c: detach_entity_load_avg(). Takes an entity out of its queue, whose averages must be up to date.
///
/// [`Pelt::ByPeriod`] first brings the entity up to the queue's time; later kernels rely on the caller for that.
pub fn detach_entity_load_avg(pelt: Pelt, scale: Scale, cfs_rq: &mut CfsRq, se: &mut SchedAvg, load: EntityLoad) {
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
            dequeue_load_avg(pelt, sa, se, load.weight);
            sa.util_avg = sa.util_avg.saturating_sub(se.util_avg);
            sa.util_sum = sa.util_sum.saturating_sub(se.util_sum);
            if pelt == Pelt::RunnableAvg {
                sa.util_sum = above_average(u64::from(sa.util_sum), sa.util_avg) as u32;
                sa.runnable_avg = sa.runnable_avg.saturating_sub(se.runnable_avg);
                sa.runnable_sum = sa.runnable_sum.saturating_sub(se.runnable_sum);
                sa.runnable_sum = above_average(sa.runnable_sum, sa.runnable_avg);
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
/// queue's time and noted in `removed`, whose `runnable_sum` is the entities' `runnable_avg` under
/// [`Pelt::RunnableAvg`] and unused under [`Pelt::ByPeriod`].
///
/// Under [`Pelt::ByPeriod`] an entity that was never attached is left alone. The entity keeps its averages; clearing
/// `last_update_time` is the caller's.
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

/// Puts an entity's clock and place in the period where its queue's are. Returns the divider that goes with them.
fn align_with(se: &mut SchedAvg, cfs_rq: &SchedAvg) -> u64 {
    se.last_update_time = cfs_rq.last_update_time;
    se.period_contrib = cfs_rq.period_contrib;
    get_pelt_divider(cfs_rq)
}

fn add_util(cfs_rq: &mut SchedAvg, se: &SchedAvg) {
    cfs_rq.util_avg = cfs_rq.util_avg.wrapping_add(se.util_avg);
    cfs_rq.util_sum = cfs_rq.util_sum.wrapping_add(se.util_sum);
}

/// The least a sum may be for its average to be what it is. The kernel compares 32 bits even for 64-bit sums (its
/// `max_t(u32, ...)`), so a larger sum loses its upper half; so does ours.
pub(super) fn above_average(sum: u64, avg: u64) -> u64 {
    u64::from((sum as u32).max(avg.wrapping_mul(PELT_MIN_DIVIDER) as u32))
}

/// Subtraction whose *signed* result is held at zero (`max_t(s64, a - b, 0)`, the manner before v4.7).
fn sub_or_zero_signed(a: u64, b: u64) -> u64 {
    (a.wrapping_sub(b) as i64).max(0) as u64
}

/// The same cut to 32 bits (`max_t(s32, a - b, 0)`): of a sum beyond 2^31 nothing is left.
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
            attach_entity_load_avg(pelt, Scale::FULL, true, &mut cfs_rq, &mut se, LOAD);
            let util = if pelt == Pelt::ByPeriod { 1024 } else { 512 };
            assert_eq!((cfs_rq.avg.load_avg, cfs_rq.avg.util_avg), (1024, util), "{pelt:?}");
            detach_entity_load_avg(pelt, Scale::FULL, &mut cfs_rq, &mut se, LOAD);
            assert_eq!(cfs_rq.avg, before, "{pelt:?}");
            assert_eq!(cfs_rq.prop_runnable_sum, 0);
        }
    }

    #[test]
    fn what_was_removed_is_taken_out_once() {
        for pelt in ALL {
            let mut cfs_rq = CfsRq::default();
            let mut se = init_entity_runnable_average(pelt, 335, true);
            attach_entity_load_avg(pelt, Scale::FULL, true, &mut cfs_rq, &mut se, LOAD);
            se.last_update_time = 1;
            remove_entity_load_avg(pelt, Scale::FULL, 1, &mut cfs_rq.removed, &mut se, LOAD);
            assert_eq!((cfs_rq.removed.nr, cfs_rq.removed.load_avg), (1, 335), "{pelt:?}");
            let idle = CfsRqLoad { weight: 0, runnable: 0, running: false };
            assert!(update_cfs_rq_load_avg(pelt, 2, Scale::FULL, &mut cfs_rq, idle));
            assert_eq!((cfs_rq.avg.load_avg, cfs_rq.avg.util_avg), (0, 0));
            assert!(!update_cfs_rq_load_avg(pelt, 2, Scale::FULL, &mut cfs_rq, idle));
        }
    }

    #[test]
    fn early_kernels_report_removed_load_but_not_removed_utilization() {
        for (load_avg, util_avg, changed) in [(0, 7, false), (7, 0, true)] {
            let mut cfs_rq =
                CfsRq { removed: Removed { nr: 1, load_avg, util_avg, runnable_sum: 0 }, ..CfsRq::default() };
            (cfs_rq.avg.load_avg, cfs_rq.avg.util_avg) = (10, 10);
            let idle = CfsRqLoad { weight: 0, runnable: 0, running: false };
            assert_eq!(update_cfs_rq_load_avg(Pelt::ByPeriod, 0, Scale::FULL, &mut cfs_rq, idle), changed);
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
        // 46 new tasks of a full CPU each sum up to 46 * 47742 * 1024, and one less is still more than 2^31.
        let mut cfs_rq = CfsRq::default();
        let mut tasks = [init_entity_runnable_average(Pelt::ByPeriod, 1024, true); 46];
        for se in &mut tasks {
            attach_entity_load_avg(Pelt::ByPeriod, Scale::FULL, true, &mut cfs_rq, se, LOAD);
        }
        assert_eq!(u64::from(cfs_rq.avg.util_sum), 46 * 47_742 * 1024);
        detach_entity_load_avg(Pelt::ByPeriod, Scale::FULL, &mut cfs_rq, &mut tasks[0], LOAD);
        assert_eq!((cfs_rq.avg.util_avg, cfs_rq.avg.util_sum), (45 * 1024, 0));
    }

    #[test]
    fn a_sum_cannot_fall_below_its_average_and_keeps_32_bits_only() {
        assert_eq!(above_average(5, 2), 2 * 46_718);
        assert_eq!(above_average((7 << 32) + 100_000, 2), 100_000);
    }
}
