//! The usual case of all three arithmetics: time passes on a CPU of full capacity at full speed, and no period ends.
//! Then only sums grow, and averages stay as they are.

use super::{PERIOD, Pelt, SCHED_CAPACITY_SHIFT, SchedAvg, UNIT_SHIFT};

/// What each unit of time (1024 ns) adds.
#[derive(Clone, Copy)]
pub struct Rate {
    /// Added to `load_sum`. If it is zero nothing else counts either, except under [`Pelt::ByPeriod`].
    pub load: u64,
    /// Added to `runnable_sum`.
    pub runnable: u64,
    pub running: bool,
}

/// Whole units since the last update; more than a period has, if the clock went backwards.
#[inline(always)]
pub fn units_passed(now: u64, sa: &SchedAvg) -> u64 {
    now.wrapping_sub(sa.last_update_time) >> UNIT_SHIFT
}

/// Whether the period has not ended after `units` more.
#[inline(always)]
pub fn stays_in_period(units: u64, sa: &SchedAvg) -> bool {
    units + u64::from(sa.period_contrib) < PERIOD
}

/// Brings averages up to `now`, `units` after the last update and within the same period: what `__update_load_avg_se()`
/// and `__update_load_avg_cfs_rq()` do in that case.
#[inline(always)]
pub fn accrue(pelt: Pelt, now: u64, units: u64, sa: &mut SchedAvg, rate: Rate) {
    debug_assert!(stays_in_period(units, sa));
    sa.last_update_time = match pelt {
        // The rest below a unit is dropped.
        Pelt::ByPeriod if units != 0 => now,
        _ => sa.last_update_time.wrapping_add(units << UNIT_SHIFT),
    };
    sa.period_contrib += units as u32;
    if rate.load != 0 || pelt == Pelt::ByPeriod {
        sa.load_sum = sa.load_sum.wrapping_add(rate.load.wrapping_mul(units));
        sa.runnable_sum = sa.runnable_sum.wrapping_add(rate.runnable.wrapping_mul(units));
        if rate.running {
            sa.util_sum = sa.util_sum.wrapping_add((units << SCHED_CAPACITY_SHIFT) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{__update_load_avg_cfs_rq, __update_load_avg_se, CfsRqLoad, EntityLoad, Scale};
    use super::*;
    use units::Prng;

    /// What an entity and a queue count, once for the whole arithmetic and once for [`accrue`].
    fn both(pelt: Pelt, random: &mut Prng) -> (EntityLoad, Rate, CfsRqLoad, Rate) {
        let weight = random.below(3) * 335;
        let (on_rq, running) = (random.below(2) == 1, random.below(2) == 1);
        let runnable = random.below(4);
        let queued = u64::from(on_rq);
        let (se, cfs_rq) = match pelt {
            Pelt::ByPeriod => ((queued * weight, 0), (weight, weight)),
            Pelt::Accumulate => ((queued, queued), (weight, runnable)),
            Pelt::RunnableAvg => ((queued, runnable << 10), (weight, runnable << 10)),
        };
        let rate = |(load, runnable)| Rate { load, runnable, running };
        let entity = EntityLoad { weight, runnable, on_rq, running };
        (entity, rate(se), CfsRqLoad { weight, runnable, running }, rate(cfs_rq))
    }

    #[test]
    fn within_a_period_it_is_the_whole_arithmetic() {
        let mut random = Prng::stream(7, "accrue", 0);
        let mut accrued = 0;
        for pelt in [Pelt::ByPeriod, Pelt::Accumulate, Pelt::RunnableAvg] {
            let (mut se, mut cfs_rq) = (SchedAvg::default(), SchedAvg::default());
            let mut now = 1_000_000;
            (se.last_update_time, cfs_rq.last_update_time) = (now, now);
            for _ in 0..20_000 {
                let up_to = 1 << (4 + random.below(18));
                now += random.below(up_to);
                let (entity, se_rate, queue, cfs_rate) = both(pelt, &mut random);
                let (mut se_accrued, mut cfs_accrued) = (se, cfs_rq);
                let ended = __update_load_avg_se(pelt, now, Scale::FULL, &mut se, entity);
                let units = units_passed(now, &se_accrued);
                assert_eq!(stays_in_period(units, &se_accrued), !ended);
                if !ended {
                    accrued += 1;
                    accrue(pelt, now, units, &mut se_accrued, se_rate);
                    assert_eq!(se_accrued, se, "{pelt:?}");
                }
                let units = units_passed(now, &cfs_accrued);
                if !__update_load_avg_cfs_rq(pelt, now, Scale::FULL, &mut cfs_rq, queue) {
                    accrue(pelt, now, units, &mut cfs_accrued, cfs_rate);
                    assert_eq!(cfs_accrued, cfs_rq, "{pelt:?}");
                }
            }
        }
        assert!(accrued > 20_000, "{accrued}");
    }

    #[test]
    fn a_clock_that_went_backwards_stays_in_no_period() {
        let sa = SchedAvg { last_update_time: 5_000_000, ..SchedAvg::default() };
        assert!(!stays_in_period(units_passed(4_999_999, &sa), &sa));
    }
}
