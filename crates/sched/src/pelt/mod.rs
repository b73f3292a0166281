//! Per-entity load tracking (PELT): how much each entity, and each CPU's queue, has recently wanted and used the CPU.
//!
//! Time is divided into periods of 1024 units of 1024 ns (about 1 ms). With `u_0` the part of the current period that
//! counts and `u_n` that of the period n before it, each tracked quantity is the series
//!
//! ```text
//! sum = u_0 + u_1 y + u_2 y^2 + ...        y^32 = 1/2, so 32 ms ago counts half
//! avg = weight * sum / (the sum of an entity that always counts)
//! ```
//!
//! `load` counts runnable time (times weight), `util` running time (1024 = a full CPU); for `runnable` see
//! [`SchedAvg::runnable_sum`]. Everything here is integer arithmetic and equals the kernel's bit for bit, wraps
//! included; the recorded vectors are in `fidelity/pelt/`.
//!
//! The functions have the kernel's names but take what they work on: averages ([`SchedAvg`]), and weights scaled down
//! by the caller ([`EntityLoad`], [`CfsRqLoad`]), where the kernel's take whole entities and look these up.
//!
//! Not modelled: thermal pressure (v5.7; hardware pressure since v6.10), which is zero.

mod accrue;
mod accumulate;
mod attach;
mod by_period;
mod clock;
mod propagate;
mod util_est;

pub use accrue::{Rate, accrue, stays_in_period, units_passed};
pub use attach::{
    SumFloor, add_tg_cfs_propagate, attach_entity_load_avg, dequeue_load_avg, dequeue_runnable_load_avg,
    detach_entity_load_avg, enqueue_load_avg, enqueue_runnable_load_avg, init_entity_runnable_average,
    post_init_entity_util_avg, remove_entity_load_avg, reweight_load_avg, sync_entity_load_avg, update_cfs_rq_load_avg,
};
pub use clock::ClockPelt;
pub use propagate::{GroupNews, propagate_entity_load_avg};
pub use util_est::{UTIL_AVG_UNCHANGED, UtilEst, UtilEstimate, cfs_se_util_change, util_est_update};

use crate::behaviour;
use crate::load_weight::mul_u64_u32_shr;
use units::{Capacity, unlikely};

/// The number of periods after which a contribution counts half.
pub const LOAD_AVG_PERIOD: u64 = 32;
/// The largest sum of an entity of weight 1: the fixed point of `sum * y + 1024` in 32-bit fixed point.
pub const LOAD_AVG_MAX: u64 = 47_742;
/// Units of 1024 ns in a period.
const PERIOD: u64 = 1024;
/// log2 of a unit in ns.
const UNIT_SHIFT: u32 = 10;
/// `SCHED_CAPACITY_SHIFT`: 2^10 is a whole CPU.
pub const SCHED_CAPACITY_SHIFT: u32 = 10;
/// The value of [`get_pelt_divider`] at the very start of a period.
pub const PELT_MIN_DIVIDER: u64 = LOAD_AVG_MAX - PERIOD;

/// y^n for n below [`LOAD_AVG_PERIOD`], scaled by 2^32 - 1 and rounded down (`runnable_avg_yN_inv`).
#[allow(non_upper_case_globals)]
static runnable_avg_yN_inv: [u32; LOAD_AVG_PERIOD as usize] = inverse_table();

behaviour! {
    /// Which arithmetic the kernel tracks with. Each variant is pinned by recorded vectors in `fidelity/pelt/`.
    pub enum Pelt = "pelt_arithmetic" {
        /// Sums of entities carry their weight, averages divide by [`LOAD_AVG_MAX`], and what is left below 1024 ns is
        /// dropped at each update. The walk is that of all kernels to v4.11; what comes and goes is v4.5's: differences
        /// were clamped otherwise from v4.7 (897418922215) and propagated up from v4.10 (09a43ace1f98).
        /// Vectors: `v4.5`.
        ByPeriod = "by-period", since "v4.3", commit "9d89c257dfb9",
            "an update ends the old period, decays, adds the full periods in between, adds the rest";
        /// Grown in steps: one sum of three parts, a481db34b9be, and the rest below 1024 ns kept for the next update,
        /// bb0bd044e65c (both v4.12); averages divide by what the place in the period allows, 625ed2bf049d (v4.13);
        /// sums of entities free of weight, c7b50216818e, with a runnable load of their own, 1ea6c46a23f1 (both v4.15).
        /// The variant is all of them, v4.15 to v5.6; v4.12 to v4.14 are none of the three. Vectors: `v4.15`, which
        /// v4.16.13 gives as well; `v5.4`, where the clock is scaled.
        Accumulate = "accumulate", since "v4.15", commit "1ea6c46a23f1",
            "one sum of three parts, unweighted in entities; a runnable load beside the load";
        /// Grown in steps: the runnable load dropped for the runnable average, 0dacee1bfa70 and 9f68395333ad (v5.7); an
        /// attached load_sum of at least 1, 40f5aa4c5eae (v5.18, and 5.10.y). The variant is all of them.
        /// How sums keep in step with averages is [`SumFloor`]. Vectors: `v6.1`, whose pelt.c is 5.10.262's too; v6.12 differs
        /// only in what callers pass.
        RunnableAvg = "runnable-avg", since "v5.7", commit "9f68395333ad",
            "queued tasks counted unweighted in place of the runnable load";
    }
}

/// The averages of one entity, or one queue. 64 bytes.
///
/// For a queue: sums over its entities, including sleeping ones, except where a field says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SchedAvg {
    /// The time up to which is accounted, in ns of the CPU's `clock_task` or [`ClockPelt`] ([`LoadClock`]).
    /// Zero means *not attached to any queue*.
    ///
    /// [`LoadClock`]: crate::fair::load::LoadClock
    pub last_update_time: u64,
    /// Runnable time, in units of 1024 ns, decayed. Multiplied by weight for an entity under [`Pelt::ByPeriod`], and
    /// always for a queue.
    pub load_sum: u64,
    /// [`Pelt::ByPeriod`]: unused in an entity; in a queue, the `load_sum` of the entities that are queued now.
    /// [`Pelt::Accumulate`]: the same, and in an entity its part of it (`runnable_load_sum`). [`Pelt::RunnableAvg`]:
    /// queued tasks times time times 1024, decayed.
    #[doc(alias = "runnable_load_sum")]
    pub runnable_sum: u64,
    /// Running time, in units of 1024 ns, times capacity (1024 = a full CPU), decayed. Wraps when enough entities are
    /// attached at once, as in the kernel.
    pub util_sum: u32,
    /// Units of 1024 ns into the current period, below 1024.
    pub period_contrib: u32,
    pub load_avg: u64,
    /// `runnable_load_avg`; under [`Pelt::RunnableAvg`], 1024 per queued task.
    #[doc(alias = "runnable_load_avg")]
    pub runnable_avg: u64,
    /// 1024 = always running on a full CPU.
    pub util_avg: u64,
    pub util_est: UtilEst,
}

/// Load that left without the queue's lock. v4.5: `removed_load_avg` and `removed_util_avg` (atomics); v4.15: `removed.*` (under
/// `removed.lock`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    pub nr: u32,
    pub load_avg: u64,
    pub util_avg: u64,
    #[doc(alias = "runnable_avg")]
    pub runnable_sum: u64,
}

/// The CPU's speed as contributions see it, 1024 = full, which it always is where the clock is scaled instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// `arch_scale_freq_capacity()`. x86 always reports 1024 before commit 1567c3e3467c (v5.7), whatever the frequency.
    pub freq: Capacity,
    /// `arch_scale_cpu_capacity()`.
    pub cpu: Capacity,
}

impl Scale {
    pub const FULL: Scale = Scale { freq: 1 << SCHED_CAPACITY_SHIFT, cpu: 1 << SCHED_CAPACITY_SHIFT };
}

/// The state of an entity since its last update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntityLoad {
    /// `se_weight()`: the scaled-down weight, `scale_load_down(load.weight)`.
    pub weight: u64,
    /// `se_runnable()`. [`Pelt::Accumulate`]: `scale_load_down(runnable_weight)`, which for a task is its weight.
    /// [`Pelt::RunnableAvg`]: the number of tasks queued below it; for a task, 1 if it is queued and 0 if not.
    pub runnable: u64,
    pub on_rq: bool,
    /// Whether it is `curr` of its queue.
    pub running: bool,
}

/// The state of a queue since its last update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CfsRqLoad {
    /// `scale_load_down(load.weight)`.
    pub weight: u64,
    /// [`Pelt::Accumulate`]: `scale_load_down(runnable_weight)`. [`Pelt::RunnableAvg`]: `h_nr_running`, from v6.12
    /// without the delayed tasks.
    pub runnable: u64,
    /// Whether it has a `curr`.
    pub running: bool,
}

/// fair.c: decay_load(). `val * y^n`.
#[inline]
pub fn decay_load(val: u64, n: u64) -> u64 {
    if n > LOAD_AVG_PERIOD * 63 {
        return 0;
    }
    if n == 0 {
        // The table's y^0 is 2^-32 less than one. The kernel's later versions never use it.
        return val;
    }
    let halved = val >> (n / LOAD_AVG_PERIOD);
    mul_u64_u32_shr(halved, runnable_avg_yN_inv[(n % LOAD_AVG_PERIOD) as usize], 32)
}

/// pelt.h: get_pelt_divider(). The greatest possible sum of weight 1, `period_contrib` units into a period.
///
/// `LOAD_AVG_MAX * y` equals `LOAD_AVG_MAX - 1024` in this arithmetic.
#[inline]
pub fn get_pelt_divider(avg: &SchedAvg) -> u64 {
    PELT_MIN_DIVIDER + u64::from(avg.period_contrib)
}

/// pelt.c: __update_load_avg_se(). Brings an entity's averages up to `now`. Returns whether a period ended, that is,
/// whether the averages were recomputed.
///
/// Differs: under [`Pelt::ByPeriod`] this is `__update_load_avg()` as `update_load_avg()` calls it. The caller calls
/// [`cfs_se_util_change`], where utilization is estimated.
#[inline]
pub fn __update_load_avg_se(pelt: Pelt, now: u64, scale: Scale, sa: &mut SchedAvg, load: EntityLoad) -> bool {
    let delta = units_since(now, sa);
    if delta == 0 {
        return false;
    }
    match pelt {
        Pelt::ByPeriod => {
            let weight = if load.on_rq { load.weight } else { 0 };
            by_period::__update_load_avg_se(now, delta, scale, sa, weight, load.running)
        }
        Pelt::Accumulate => {
            let queued = u64::from(load.on_rq);
            let decayed = accumulate::___update_load_sum(delta, scale, sa, queued, queued, load.running);
            if decayed {
                accumulate::___update_load_avg_weighted(sa, load.weight, load.runnable);
            }
            decayed
        }
        Pelt::RunnableAvg => {
            let queued = u64::from(load.on_rq);
            let runnable = load.runnable << SCHED_CAPACITY_SHIFT;
            let decayed = accumulate::___update_load_sum(delta, scale, sa, queued, runnable, load.running);
            if decayed {
                accumulate::___update_load_avg(sa, load.weight);
            }
            decayed
        }
    }
}

/// pelt.c: __update_load_avg_blocked_se(). Like [`__update_load_avg_se`], for an entity that neither ran nor waited:
/// only the weights of `load` matter.
#[inline]
pub fn __update_load_avg_blocked_se(pelt: Pelt, now: u64, scale: Scale, sa: &mut SchedAvg, load: EntityLoad) -> bool {
    let delta = units_since(now, sa);
    if delta == 0 {
        return false;
    }
    match pelt {
        Pelt::ByPeriod => by_period::__update_load_avg_se(now, delta, scale, sa, 0, false),
        Pelt::Accumulate => {
            let decayed = accumulate::___update_load_sum(delta, scale, sa, 0, 0, false);
            if decayed {
                accumulate::___update_load_avg_weighted(sa, load.weight, load.runnable);
            }
            decayed
        }
        Pelt::RunnableAvg => {
            let decayed = accumulate::___update_load_sum(delta, scale, sa, 0, 0, false);
            if decayed {
                accumulate::___update_load_avg(sa, load.weight);
            }
            decayed
        }
    }
}

/// pelt.c: __update_load_avg_cfs_rq(). Brings a queue's averages up to `now`. Returns whether a period ended.
#[inline]
pub fn __update_load_avg_cfs_rq(pelt: Pelt, now: u64, scale: Scale, sa: &mut SchedAvg, load: CfsRqLoad) -> bool {
    let delta = units_since(now, sa);
    if delta == 0 {
        return false;
    }
    match pelt {
        Pelt::ByPeriod => by_period::__update_load_avg_cfs_rq(now, delta, scale, sa, load.weight, load.running),
        Pelt::Accumulate => {
            let decayed = accumulate::___update_load_sum(delta, scale, sa, load.weight, load.runnable, load.running);
            if decayed {
                accumulate::___update_load_avg_weighted(sa, 1, 1);
            }
            decayed
        }
        Pelt::RunnableAvg => {
            let runnable = load.runnable << SCHED_CAPACITY_SHIFT;
            let decayed = accumulate::___update_load_sum(delta, scale, sa, load.weight, runnable, load.running);
            if decayed {
                accumulate::___update_load_avg(sa, 1);
            }
            decayed
        }
    }
}

/// pelt.c: update_irq_load_avg(). Accounts the time of interrupts (and of the hypervisor): `running` ns, the last
/// before `clock`, are new. Returns whether a period ended, before or within them.
pub fn update_irq_load_avg(clock: u64, scale: Scale, sa: &mut SchedAvg, running: u64) -> bool {
    let running = (running * u64::from(scale.freq)) >> SCHED_CAPACITY_SHIFT;
    let running = (running * u64::from(scale.cpu)) >> SCHED_CAPACITY_SHIFT;
    let mut decayed = false;
    for (now, counts) in [(clock.wrapping_sub(running), 0), (clock, 1)] {
        let delta = units_since(now, sa);
        decayed |=
            delta != 0 && accumulate::___update_load_sum(delta, Scale::FULL, sa, counts, counts << 10, counts == 1);
    }
    if decayed {
        accumulate::___update_load_avg(sa, 1);
    }
    decayed
}

/// pelt.c: update_rt_rq_load_avg(). Utilization by the real-time class (commit 371bf4273269, v4.19; before, the kernel kept
/// `rt_avg`). What is kept of it besides differs with the arithmetic, but nobody reads it.
#[inline]
pub fn update_rt_rq_load_avg(pelt: Pelt, now: u64, sa: &mut SchedAvg, running: bool) -> bool {
    let running_tasks = u64::from(running);
    let load = CfsRqLoad { weight: running_tasks, runnable: running_tasks, running };
    __update_load_avg_cfs_rq(pelt, now, Scale::FULL, sa, load)
}

/// pelt.c: update_dl_rq_load_avg(). The same for the deadline class (commit 3727e0e16340, v4.19).
#[inline]
pub fn update_dl_rq_load_avg(pelt: Pelt, now: u64, sa: &mut SchedAvg, running: bool) -> bool {
    update_rt_rq_load_avg(pelt, now, sa, running)
}

/// fair.c: load_avg_is_decayed(). Nothing is left of the past; for a queue whose `load.weight` is zero too, this is all
/// of v4.15's `cfs_rq_is_decayed()`.
#[inline]
pub fn load_avg_is_decayed(sa: &SchedAvg) -> bool {
    sa.load_sum == 0 && sa.util_sum == 0 && sa.runnable_sum == 0
}

/// Whole units of 1024 ns since the last update: 0 means *nothing to do*. If the clock went backwards, time restarts
/// from `now`.
#[inline]
fn units_since(now: u64, sa: &mut SchedAvg) -> u64 {
    let delta = now.wrapping_sub(sa.last_update_time);
    if unlikely((delta as i64) < 0) {
        sa.last_update_time = now;
        return 0;
    }
    delta >> UNIT_SHIFT
}

/// `floor((2^32 - 1) * 2^(-n/32))`: `2^(-1/32)` by five square roots in 64-bit fixed point, then one product per bit of
/// n.
const fn inverse_table() -> [u32; LOAD_AVG_PERIOD as usize] {
    // roots[k] = 2^(-1 / 2^(k+1)) * 2^64.
    let mut roots = [0u128; 5];
    let mut square: u128 = 1 << 127;
    let mut k = 0;
    while k < 5 {
        roots[k] = square.isqrt();
        square = roots[k] << 64;
        k += 1;
    }
    let mut table = [u32::MAX; LOAD_AVG_PERIOD as usize];
    let mut n = 1;
    while n < LOAD_AVG_PERIOD as usize {
        let mut power: u128 = 1 << 64;
        let mut k = 0;
        while k < 5 {
            // Bit 4 of n stands for y^16 = 2^(-1/2), which is roots[0].
            if n >> (4 - k) & 1 == 1 {
                power = (power * roots[k]) >> 64;
            }
            k += 1;
        }
        table[n] = ((power * u32::MAX as u128) >> 64) as u32;
        n += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Pelt; 3] = [Pelt::ByPeriod, Pelt::Accumulate, Pelt::RunnableAvg];
    const BUSY: EntityLoad = EntityLoad { weight: 1024, runnable: 1, on_rq: true, running: true };

    #[test]
    fn the_table_of_powers_is_the_kernels() {
        // Entries of runnable_avg_yN_inv in kernel/sched/fair.c (v4.5) and sched-pelt.h (v4.15, v6.1).
        let known = [
            (0, 0xffff_ffff),
            (1, 0xfa83_b2da),
            (2, 0xf525_7d14),
            (9, 0xd2a8_1d91),
            (16, 0xb504_f333),
            (23, 0x9b8d_39b9),
            (30, 0x85aa_c367),
            (31, 0x82cd_8698),
        ];
        for (n, inverse) in known {
            assert_eq!(runnable_avg_yN_inv[n], inverse, "y^{n}");
        }
    }

    #[test]
    fn the_largest_sum_is_the_fixed_point_of_decay_and_refill() {
        let y = u64::from(runnable_avg_yN_inv[1]);
        let next = |sum: u64| ((sum * y) >> 32) + PERIOD;
        let mut sum = 0;
        while next(sum) != sum {
            sum = next(sum);
        }
        assert_eq!(sum, LOAD_AVG_MAX);
        assert_eq!(decay_load(LOAD_AVG_MAX, 1), PELT_MIN_DIVIDER);
    }

    #[test]
    fn decay_halves_every_thirty_two_periods_and_ends_in_zero() {
        assert_eq!(decay_load(1 << 40, 0), 1 << 40);
        // Less than the half by the table's 2^-32 of it.
        assert_eq!(decay_load(1 << 40, 32), (1 << 39) - (1 << 7));
        assert_eq!(decay_load(u64::MAX, 32 * 63), 0);
        assert_eq!(decay_load(u64::MAX, 32 * 63 + 1), 0);
    }

    #[test]
    fn less_than_a_unit_changes_nothing_and_time_going_back_restarts() {
        for pelt in ALL {
            let start = SchedAvg { last_update_time: 5_000_000, ..SchedAvg::default() };
            let mut sa = start;
            assert!(!__update_load_avg_se(pelt, 5_001_023, Scale::FULL, &mut sa, BUSY));
            assert_eq!(sa, start);
            assert!(!__update_load_avg_se(pelt, 4_000_000, Scale::FULL, &mut sa, BUSY));
            assert_eq!(sa, SchedAvg { last_update_time: 4_000_000, ..start });
        }
    }

    #[test]
    fn by_period_loses_the_rest_of_a_unit_and_later_kernels_keep_it() {
        for (pelt, time) in [(Pelt::ByPeriod, 1_500), (Pelt::Accumulate, 1_024), (Pelt::RunnableAvg, 1_024)] {
            let mut sa = SchedAvg::default();
            assert!(!__update_load_avg_se(pelt, 1_500, Scale::FULL, &mut sa, BUSY));
            assert_eq!((sa.last_update_time, sa.period_contrib, sa.util_sum), (time, 1, 1024), "{pelt:?}");
        }
    }

    #[test]
    fn always_running_reaches_the_full_cpu_and_forgets_it_again() {
        for pelt in ALL {
            let mut sa = SchedAvg::default();
            let load = EntityLoad { runnable: if pelt == Pelt::Accumulate { 1024 } else { 1 }, ..BUSY };
            for ms in 1..=2_000 {
                __update_load_avg_se(pelt, ms * 1_000_000, Scale::FULL, &mut sa, load);
            }
            assert!((1002..=1024).contains(&sa.util_avg), "{pelt:?} {sa:?}");
            assert!((1002..=1024).contains(&sa.load_avg), "{pelt:?} {sa:?}");
            __update_load_avg_blocked_se(pelt, 5_000_000_000, Scale::FULL, &mut sa, load);
            assert!(load_avg_is_decayed(&sa), "{pelt:?} {sa:?}");
            assert_eq!((sa.load_avg, sa.util_avg), (0, 0));
        }
    }

    #[test]
    fn the_hot_struct_fits_a_cache_line() {
        assert_eq!(size_of::<SchedAvg>(), 64);
    }
}
