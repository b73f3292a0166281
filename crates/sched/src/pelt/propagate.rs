//! Propagation up the group hierarchy: a group's entity follows what was added to the group's queue and what left it,
//! v4.15 and later (commit 0e2d2aaaae52). [`Pelt::ByPeriod`] has nothing like it.

use super::{EntityLoad, LOAD_AVG_MAX, Pelt, Scale, SchedAvg, SumFloor, add_tg_cfs_propagate, get_pelt_divider};
use crate::sched::CfsRq;

/// What the queue of a group's entity (`group_cfs_rq(se)`) has to propagate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupNews {
    avg: SchedAvg,
    /// `scale_load_down(load.weight)`.
    weight: u64,
    /// Unweighted runnable time that was added or removed, in units of 1024 ns.
    runnable_sum: i64,
}

impl GroupNews {
    /// Takes the news from a group's queue, whose scaled-down weight is `weight`; `None` if there are none. They must
    /// be passed to [`propagate_entity_load_avg`], because the queue no longer has them.
    #[inline]
    #[must_use]
    pub fn take(group: &mut CfsRq, weight: u64) -> Option<GroupNews> {
        if !group.propagate {
            return None;
        }
        group.propagate = false;
        Some(GroupNews { avg: group.avg, weight, runnable_sum: std::mem::take(&mut group.prop_runnable_sum) })
    }
}

/// fair.c: propagate_entity_load_avg(). Aligns a group's entity, and the queue it is on, with the group's own queue,
/// which has `news`.
///
/// Differs: not called for a task, or for a group without news; the kernel returns false for them.
pub fn propagate_entity_load_avg(
    pelt: Pelt,
    floor: SumFloor,
    scale: Scale,
    cfs_rq: &mut CfsRq,
    se: &mut SchedAvg,
    load: EntityLoad,
    news: &GroupNews,
) {
    match pelt {
        Pelt::ByPeriod => {}
        Pelt::Accumulate => {
            add_tg_cfs_propagate(cfs_rq, news.runnable_sum);
            update_tg_cfs_util_whole_sum(&mut cfs_rq.avg, se, &news.avg);
            update_tg_cfs_runnable_load(scale, &mut cfs_rq.avg, se, load, news);
        }
        Pelt::RunnableAvg => {
            add_tg_cfs_propagate(cfs_rq, news.runnable_sum);
            update_tg_cfs_util(floor, &mut cfs_rq.avg, se, &news.avg);
            update_tg_cfs_runnable(floor, &mut cfs_rq.avg, se, &news.avg);
            update_tg_cfs_load(floor, scale, &mut cfs_rq.avg, se, load, news);
        }
    }
}

/// fair.c: update_tg_cfs_util(), v4.15: recomputes sums from the averages.
fn update_tg_cfs_util_whole_sum(cfs_rq: &mut SchedAvg, se: &mut SchedAvg, group: &SchedAvg) {
    let delta = group.util_avg.wrapping_sub(se.util_avg) as i64;
    if delta == 0 {
        return;
    }
    se.util_avg = group.util_avg;
    se.util_sum = se.util_avg.wrapping_mul(LOAD_AVG_MAX) as u32;
    cfs_rq.util_avg = add_positive(cfs_rq.util_avg, delta);
    cfs_rq.util_sum = cfs_rq.util_avg.wrapping_mul(LOAD_AVG_MAX) as u32;
}

/// fair.c: update_tg_cfs_util(), v5.7 and later.
fn update_tg_cfs_util(floor: SumFloor, cfs_rq: &mut SchedAvg, se: &mut SchedAvg, group: &SchedAvg) {
    let delta_avg = group.util_avg.wrapping_sub(se.util_avg) as i64;
    if delta_avg == 0 {
        return;
    }
    let divider = get_pelt_divider(cfs_rq);
    se.util_avg = group.util_avg;
    let new_sum = se.util_avg.wrapping_mul(divider) as u32;
    let delta_sum = i64::from(new_sum) - i64::from(se.util_sum);
    se.util_sum = new_sum;

    cfs_rq.util_avg = add_positive(cfs_rq.util_avg, delta_avg);
    let delta_sum = match floor {
        SumFloor::Recomputed | SumFloor::RecomputedAlways => {
            cfs_rq.util_sum = cfs_rq.util_avg.wrapping_mul(divider) as u32;
            return;
        }
        SumFloor::Cut => delta_sum,
        SumFloor::Whole => i64::from(delta_sum as i32),
    };
    cfs_rq.util_sum = add_positive_32(cfs_rq.util_sum, delta_sum);
    cfs_rq.util_sum = floor.hold_32(cfs_rq.util_sum, cfs_rq.util_avg);
}

/// fair.c: update_tg_cfs_runnable(), v5.7 and later.
fn update_tg_cfs_runnable(floor: SumFloor, cfs_rq: &mut SchedAvg, se: &mut SchedAvg, group: &SchedAvg) {
    let delta_avg = group.runnable_avg.wrapping_sub(se.runnable_avg) as i64;
    if delta_avg == 0 {
        return;
    }
    let divider = get_pelt_divider(cfs_rq);
    se.runnable_avg = group.runnable_avg;
    let new_sum = se.runnable_avg.wrapping_mul(divider);
    let delta_sum = new_sum.wrapping_sub(se.runnable_sum) as i64;
    se.runnable_sum = new_sum;

    cfs_rq.runnable_avg = add_positive(cfs_rq.runnable_avg, delta_avg);
    cfs_rq.runnable_sum = floor.moved(cfs_rq.runnable_sum, delta_sum, cfs_rq.runnable_avg, divider);
}

/// fair.c: update_tg_cfs_load(), v5.7 and later: turns the unweighted runnable time that was added or removed into load of the
/// group's entity.
fn update_tg_cfs_load(
    floor: SumFloor,
    scale: Scale,
    cfs_rq: &mut SchedAvg,
    se: &mut SchedAvg,
    load: EntityLoad,
    news: &GroupNews,
) {
    if news.runnable_sum == 0 {
        return;
    }
    let divider = get_pelt_divider(cfs_rq);
    let running_sum = running_sum(se, scale);
    let runnable_sum = if news.runnable_sum >= 0 {
        news.runnable_sum.wrapping_add(se.load_sum as i64).min(divider as i64)
    } else {
        let per_weight = news.avg.load_sum.checked_div(news.weight).unwrap_or(0);
        se.load_sum.min(per_weight) as i64
    }
    .max(running_sum);

    let load_sum = load.weight.wrapping_mul(runnable_sum as u64);
    let load_avg = load_sum / divider;
    let delta_avg = load_avg.wrapping_sub(se.load_avg) as i64;
    if delta_avg == 0 && floor != SumFloor::Recomputed {
        if floor == SumFloor::RecomputedAlways {
            se.load_sum = runnable_sum as u64;
        }
        return;
    }
    let delta_sum = load_sum.wrapping_sub(load.weight.wrapping_mul(se.load_sum)) as i64;
    se.load_sum = runnable_sum as u64;
    se.load_avg = load_avg;
    cfs_rq.load_avg = add_positive(cfs_rq.load_avg, delta_avg);
    cfs_rq.load_sum = floor.moved(cfs_rq.load_sum, delta_sum, cfs_rq.load_avg, divider);
}

/// An entity's running time, in units of 1024 ns: its sum is scaled by the CPU's capacity, as runnable time is not.
fn running_sum(se: &SchedAvg, scale: Scale) -> i64 {
    i64::from(se.util_sum / scale.cpu)
}

impl SumFloor {
    /// A queue's sum after an entity's moved by `delta`, given its average, which has moved, too.
    #[inline]
    fn moved(self, sum: u64, delta: i64, avg: u64, divider: u64) -> u64 {
        match self {
            SumFloor::Recomputed | SumFloor::RecomputedAlways => avg.wrapping_mul(divider),
            SumFloor::Cut | SumFloor::Whole => self.hold(add_positive(sum, delta), avg),
        }
    }
}

/// fair.c: update_tg_cfs_runnable(), v4.15: load and runnable load of the group's entity at once.
///
/// The change of the runnable load is measured from the entity's *weight*, where its runnable weight was meant. The
/// kernel does this, too.
fn update_tg_cfs_runnable_load(
    scale: Scale,
    cfs_rq: &mut SchedAvg,
    se: &mut SchedAvg,
    load: EntityLoad,
    news: &GroupNews,
) {
    if news.runnable_sum == 0 {
        return;
    }
    let running_sum = running_sum(se, scale);
    let runnable_sum = if news.runnable_sum >= 0 {
        news.runnable_sum.wrapping_add(se.load_sum as i64).min(LOAD_AVG_MAX as i64)
    } else {
        let per_weight = (news.avg.load_sum as i64).checked_div(news.weight as i64).unwrap_or(0);
        se.load_sum.min(per_weight as u64) as i64
    }
    .max(running_sum);

    let load_sum = (load.weight as i64).wrapping_mul(runnable_sum);
    let load_avg = load_sum / LOAD_AVG_MAX as i64;
    let delta_sum = load_sum.wrapping_sub(load.weight.wrapping_mul(se.load_sum) as i64);
    let delta_avg = load_avg.wrapping_sub(se.load_avg as i64);
    se.load_sum = runnable_sum as u64;
    se.load_avg = load_avg as u64;
    cfs_rq.load_avg = add_positive(cfs_rq.load_avg, delta_avg);
    cfs_rq.load_sum = add_positive(cfs_rq.load_sum, delta_sum);

    let runnable_load_sum = (load.runnable as i64).wrapping_mul(runnable_sum);
    let runnable_load_avg = runnable_load_sum / LOAD_AVG_MAX as i64;
    let delta_sum = runnable_load_sum.wrapping_sub(load.weight.wrapping_mul(se.runnable_sum) as i64);
    let delta_avg = runnable_load_avg.wrapping_sub(se.runnable_avg as i64);
    se.runnable_sum = runnable_sum as u64;
    se.runnable_avg = runnable_load_avg as u64;
    if load.on_rq {
        cfs_rq.runnable_avg = add_positive(cfs_rq.runnable_avg, delta_avg);
        cfs_rq.runnable_sum = add_positive(cfs_rq.runnable_sum, delta_sum);
    }
}

/// fair.c: add_positive(). Signed addition, clamped at zero from below.
fn add_positive(value: u64, delta: i64) -> u64 {
    if delta < 0 { value.saturating_sub(delta.unsigned_abs()) } else { value.wrapping_add(delta as u64) }
}

/// The same for a 32-bit sum.
pub(super) fn add_positive_32(value: u32, delta: i64) -> u32 {
    let sum = value.wrapping_add(delta as u32);
    if delta < 0 && sum > value { 0 } else { sum }
}

#[cfg(test)]
mod tests {
    use super::super::PELT_MIN_DIVIDER;
    use super::*;

    const LOAD: EntityLoad = EntityLoad { weight: 512, runnable: 512, on_rq: true, running: false };

    fn propagate(pelt: Pelt, runnable_sum: i64, group_util: u64) -> (CfsRq, SchedAvg) {
        let avg = SchedAvg { util_avg: group_util, load_sum: 1_000_000, ..SchedAvg::default() };
        let mut group = CfsRq { avg, ..CfsRq::default() };
        add_tg_cfs_propagate(&mut group, runnable_sum);
        let news = GroupNews::take(&mut group, 1024).expect("there are news");
        assert_eq!(GroupNews::take(&mut group, 1024), None);
        let (mut cfs_rq, mut se) = (CfsRq::default(), SchedAvg::default());
        propagate_entity_load_avg(pelt, SumFloor::Cut, Scale::FULL, &mut cfs_rq, &mut se, LOAD, &news);
        (cfs_rq, se)
    }

    #[test]
    fn a_groups_entity_takes_over_what_was_attached_below_it() {
        for pelt in [Pelt::Accumulate, Pelt::RunnableAvg] {
            let (cfs_rq, se) = propagate(pelt, 20_000, 300);
            assert_eq!((se.util_avg, cfs_rq.avg.util_avg), (300, 300), "{pelt:?}");
            assert_eq!(se.load_sum, 20_000);
            assert_eq!(cfs_rq.avg.load_sum, 512 * 20_000);
            assert_eq!((cfs_rq.propagate, cfs_rq.prop_runnable_sum), (true, 20_000));
        }
    }

    #[test]
    fn runnable_time_is_clipped_at_a_whole_cpu() {
        assert_eq!(propagate(Pelt::Accumulate, 100_000, 0).1.load_sum, LOAD_AVG_MAX);
        assert_eq!(propagate(Pelt::RunnableAvg, 100_000, 0).1.load_sum, PELT_MIN_DIVIDER);
    }

    #[test]
    fn before_the_rewrite_nothing_propagates() {
        let (cfs_rq, se) = propagate(Pelt::ByPeriod, 20_000, 300);
        assert_eq!((cfs_rq.avg, se), (SchedAvg::default(), SchedAvg::default()));
        assert!(!cfs_rq.propagate);
    }

    #[test]
    fn what_changes_no_average_leaves_the_queue_alone_since_v5_15() {
        // 512 * 20000 / 46718 = 219.18; one unit more gives 219.20.
        let rules = [
            (SumFloor::Recomputed, 20_001, 219 * PELT_MIN_DIVIDER),
            (SumFloor::RecomputedAlways, 20_001, 5),
            (SumFloor::Cut, 20_000, 5),
        ];
        for (floor, of_entity, of_queue) in rules {
            let mut group = CfsRq::default();
            add_tg_cfs_propagate(&mut group, 1);
            let news = GroupNews::take(&mut group, 1024).expect("there are news");
            let queue = SchedAvg { load_avg: 219, load_sum: 5, ..SchedAvg::default() };
            let mut cfs_rq = CfsRq { avg: queue, ..CfsRq::default() };
            let mut se = SchedAvg { load_avg: 219, load_sum: 20_000, ..SchedAvg::default() };
            propagate_entity_load_avg(Pelt::RunnableAvg, floor, Scale::FULL, &mut cfs_rq, &mut se, LOAD, &news);
            assert_eq!((se.load_sum, cfs_rq.avg.load_sum), (of_entity, of_queue), "{floor:?}");
            assert_eq!((se.load_avg, cfs_rq.avg.load_avg), (219, 219), "{floor:?}");
        }
    }

    #[test]
    fn sums_do_not_fall_below_zero() {
        assert_eq!((add_positive(5, -6), add_positive(5, -5), add_positive(5, 6)), (0, 0, 11));
        assert_eq!((add_positive_32(5, -6), add_positive_32(5, -5), add_positive_32(5, 6)), (0, 0, 11));
    }
}
