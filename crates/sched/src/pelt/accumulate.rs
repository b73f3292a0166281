//! One sum of three parts, v4.12 and later ([`super::Pelt::Accumulate`] and [`super::Pelt::RunnableAvg`]).

use super::{LOAD_AVG_MAX, PERIOD, SCHED_CAPACITY_SHIFT, Scale, SchedAvg, UNIT_SHIFT, decay_load, get_pelt_divider};
use units::unlikely;

/// fair.c: __accumulate_pelt_segments(). What counting all the time adds over `periods` period ends: `d1` units before
/// the first end, the full periods in between, and `d3` units after the last.
///
/// `d1 y^p + 1024 (y + ... + y^(p-1)) + d3`; the middle comes from `1024 / (1 - y) = LOAD_AVG_MAX` less its head and
/// tail.
fn __accumulate_pelt_segments(periods: u64, d1: u64, d3: u64) -> u64 {
    let c1 = decay_load(d1, periods);
    let c2 = LOAD_AVG_MAX - decay_load(LOAD_AVG_MAX, periods) - PERIOD;
    c1 + c2 + d3
}

/// fair.c: accumulate_sum(). Returns whether a period ended.
///
/// Differs: one body for both eras. That of v5.1 and later is this one at full capacity, with `runnable` 1024 times as
/// large. Sums that do not count are not computed in either.
#[inline(always)]
fn accumulate_sum(mut delta: u64, scale: Scale, sa: &mut SchedAvg, load: u64, runnable: u64, running: bool) -> bool {
    let mut contrib = delta;
    delta += u64::from(sa.period_contrib);
    let period_ended = unlikely(delta >= PERIOD);
    if period_ended {
        contrib = end_periods(delta, sa);
    } else {
        sa.period_contrib = delta as u32;
    }

    if load != 0 {
        let contrib = (contrib * u64::from(scale.freq)) >> SCHED_CAPACITY_SHIFT;
        sa.load_sum = sa.load_sum.wrapping_add(load.wrapping_mul(contrib));
        sa.runnable_sum = sa.runnable_sum.wrapping_add(runnable.wrapping_mul(contrib));
        if running {
            sa.util_sum = sa.util_sum.wrapping_add((contrib * u64::from(scale.cpu)) as u32);
        }
    }
    period_ended
}

/// The part of `accumulate_sum()` for ended periods: `delta` units have passed since the current one began. Returns
/// what counting all the time has added.
#[cold]
#[inline(never)]
fn end_periods(delta: u64, sa: &mut SchedAvg) -> u64 {
    let periods = delta / PERIOD;
    sa.load_sum = decay_load(sa.load_sum, periods);
    sa.runnable_sum = decay_load(sa.runnable_sum, periods);
    sa.util_sum = decay_load(u64::from(sa.util_sum), periods) as u32;
    let into = delta % PERIOD;
    let contrib = __accumulate_pelt_segments(periods, PERIOD - u64::from(sa.period_contrib), into);
    sa.period_contrib = into as u32;
    contrib
}

/// fair.c: ___update_load_sum(). `delta` is the time since the last update in whole units of 1024 ns, at least one.
/// Returns whether a period ended.
///
/// Without `load` nothing counts: `curr` may still point to an entity that has left the queue.
///
/// Differs: the caller has converted time into units, and has returned if there were none.
#[inline(always)]
pub(super) fn ___update_load_sum(
    delta: u64,
    scale: Scale,
    sa: &mut SchedAvg,
    load: u64,
    runnable: u64,
    running: bool,
) -> bool {
    sa.last_update_time = sa.last_update_time.wrapping_add(delta << UNIT_SHIFT);
    accumulate_sum(delta, scale, sa, load, runnable, running)
}

/// fair.c: ___update_load_avg(), v4.15: the runnable load is weighted too. Called once per period.
#[cold]
pub(super) fn ___update_load_avg_weighted(sa: &mut SchedAvg, load: u64, runnable: u64) {
    let divider = get_pelt_divider(sa);
    sa.load_avg = load.wrapping_mul(sa.load_sum) / divider;
    sa.runnable_avg = runnable.wrapping_mul(sa.runnable_sum) / divider;
    sa.util_avg = u64::from(sa.util_sum) / divider;
}

/// pelt.c: ___update_load_avg(), v5.7. Called once per period.
#[cold]
pub(super) fn ___update_load_avg(sa: &mut SchedAvg, load: u64) {
    let divider = get_pelt_divider(sa);
    sa.load_avg = load.wrapping_mul(sa.load_sum) / divider;
    sa.runnable_avg = sa.runnable_sum / divider;
    sa.util_avg = u64::from(sa.util_sum) / divider;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_period_end_adds_no_full_period() {
        // 24 units before the end, decayed once, and 1000 after it.
        assert_eq!(__accumulate_pelt_segments(1, 24, 1000), decay_load(24, 1) + 1000);
    }

    #[test]
    fn a_long_stretch_adds_up_to_the_largest_sum() {
        assert_eq!(__accumulate_pelt_segments(100_000, 1024, 1023), LOAD_AVG_MAX - 1);
    }

    #[test]
    fn a_running_entity_without_load_does_not_count() {
        let mut sa = SchedAvg::default();
        assert!(___update_load_sum(5 * PERIOD + 3, Scale::FULL, &mut sa, 0, 7, true));
        assert_eq!(sa, SchedAvg { last_update_time: (5 * PERIOD + 3) << 10, period_contrib: 3, ..sa });
        assert_eq!((sa.load_sum, sa.runnable_sum, sa.util_sum), (0, 0, 0));
    }
}
