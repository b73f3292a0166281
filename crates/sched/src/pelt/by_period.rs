//! The algorithm of v4.3 to v4.11: period by period, in weighted sums ([`super::Pelt::ByPeriod`]).

use super::{
    LOAD_AVG_MAX, LOAD_AVG_PERIOD, PERIOD, SCHED_CAPACITY_SHIFT, Scale, SchedAvg, decay_load, runnable_avg_yN_inv,
};

/// Full periods after which the sum is [`LOAD_AVG_MAX`] (`LOAD_AVG_MAX_N`).
const LOAD_AVG_MAX_N: u64 = 345;

/// `1024 * (y + y^2 + ... + y^n)` for n up to 32, rounded down (`runnable_avg_yN_sum`).
#[allow(non_upper_case_globals)]
static runnable_avg_yN_sum: [u32; LOAD_AVG_PERIOD as usize + 1] = sum_table();

/// fair.c: __compute_runnable_contrib(). What n full periods of counting add: `1024 * (y + ... + y^n)`.
fn __compute_runnable_contrib(mut n: u64) -> u32 {
    if n <= LOAD_AVG_PERIOD {
        return runnable_avg_yN_sum[n as usize];
    }
    if n >= LOAD_AVG_MAX_N {
        return LOAD_AVG_MAX as u32;
    }
    let mut contrib = 0;
    while n > LOAD_AVG_PERIOD {
        contrib = contrib / 2 + runnable_avg_yN_sum[LOAD_AVG_PERIOD as usize];
        n -= LOAD_AVG_PERIOD;
    }
    decay_load(u64::from(contrib), n) as u32 + runnable_avg_yN_sum[n as usize]
}

/// [`__update_load_avg`] of an entity.
pub(super) fn __update_load_avg_se(
    now: u64,
    delta: u64,
    scale: Scale,
    sa: &mut SchedAvg,
    weight: u64,
    running: bool,
) -> bool {
    __update_load_avg::<false>(now, delta, scale, sa, weight, running)
}

/// [`__update_load_avg`] of a queue, which keeps its runnable load beside the load.
pub(super) fn __update_load_avg_cfs_rq(
    now: u64,
    delta: u64,
    scale: Scale,
    sa: &mut SchedAvg,
    weight: u64,
    running: bool,
) -> bool {
    __update_load_avg::<true>(now, delta, scale, sa, weight, running)
}

/// fair.c: __update_load_avg(). `delta` is the time since the last update in whole units of 1024 ns, at least one.
///
/// Differs: the caller has converted time into units, and has returned if there were none.
#[inline(always)]
fn __update_load_avg<const CFS_RQ: bool>(
    now: u64,
    mut delta: u64,
    scale: Scale,
    sa: &mut SchedAvg,
    weight: u64,
    running: bool,
) -> bool {
    sa.last_update_time = now;
    let accrue = |sa: &mut SchedAvg, units: u64| {
        let scaled = (units * u64::from(scale.freq)) >> SCHED_CAPACITY_SHIFT;
        sa.load_sum = sa.load_sum.wrapping_add(weight.wrapping_mul(scaled));
        if CFS_RQ {
            sa.runnable_sum = sa.runnable_sum.wrapping_add(weight.wrapping_mul(scaled));
        }
        if running {
            sa.util_sum = sa.util_sum.wrapping_add((scaled * u64::from(scale.cpu)) as u32);
        }
    };

    let mut contributed = u64::from(sa.period_contrib);
    let decayed = delta + contributed >= PERIOD;
    if decayed {
        // Completes the period that the last update left open.
        let rest = PERIOD - contributed;
        accrue(sa, rest);
        delta -= rest;

        let periods = delta / PERIOD;
        delta %= PERIOD;
        sa.load_sum = decay_load(sa.load_sum, periods + 1);
        if CFS_RQ {
            sa.runnable_sum = decay_load(sa.runnable_sum, periods + 1);
        }
        sa.util_sum = decay_load(u64::from(sa.util_sum), periods + 1) as u32;

        accrue(sa, u64::from(__compute_runnable_contrib(periods)));
        contributed = 0;
    }
    accrue(sa, delta);
    sa.period_contrib = (contributed + delta) as u32;

    if decayed {
        sa.load_avg = sa.load_sum / LOAD_AVG_MAX;
        if CFS_RQ {
            sa.runnable_avg = sa.runnable_sum / LOAD_AVG_MAX;
        }
        sa.util_avg = u64::from(sa.util_sum) / LOAD_AVG_MAX;
    }
    decayed
}

/// `sum(n) = floor((sum(n-1) + 1024) * y)`: rounding down at each step is what the kernel's generator does.
const fn sum_table() -> [u32; LOAD_AVG_PERIOD as usize + 1] {
    let mut table = [0; LOAD_AVG_PERIOD as usize + 1];
    let mut n = 1;
    while n <= LOAD_AVG_PERIOD as usize {
        table[n] = (((table[n - 1] as u64 + PERIOD) * runnable_avg_yN_inv[1] as u64) >> 32) as u32;
        n += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_sums_is_the_kernels() {
        // Entries of runnable_avg_yN_sum in kernel/sched/fair.c (v4.5).
        for (n, sum) in
            [(0, 0), (1, 1002), (2, 1982), (3, 2941), (8, 7437), (16, 13690), (24, 18949), (31, 22859), (32, 23371)]
        {
            assert_eq!(runnable_avg_yN_sum[n], sum, "n = {n}");
        }
    }

    #[test]
    fn contributions_grow_towards_the_largest_sum() {
        assert_eq!(__compute_runnable_contrib(0), 0);
        assert_eq!(__compute_runnable_contrib(32), 23371);
        let long = __compute_runnable_contrib(344);
        assert!((46_000..47_742).contains(&long), "{long}");
        assert_eq!(__compute_runnable_contrib(345), 47_742);
    }
}
