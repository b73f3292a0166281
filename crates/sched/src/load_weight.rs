//! Load weights: the weight of a nice level, and the fixed-point division that turns run time into virtual time.
//!
//! A weight has two scales. *Shown* weights, scaled down, are those that users see: 1024 is nice 0. *Kept*
//! weights are those stored in `load.weight`; [`LoadResolution`] says how one is converted into the other, which changed twice on 64-bit
//! machines. Inverse weights are 2^32 divided by the shown weight.

use crate::behaviour;
use crate::sched::{LoadWeight, MAX_RT_PRIO, Policy};
use units::unlikely;

/// Scale of shown weights: 2^10 = 1024 = nice 0 (`SCHED_FIXEDPOINT_SHIFT`).
pub const SCHED_FIXEDPOINT_SHIFT: u32 = 10;

/// Shown weight of a SCHED_IDLE task (`sched.h`, the same from v4.5 to v7.2).
pub const WEIGHT_IDLEPRIO: u64 = 3;
/// 2^32 / 3, rounded down.
pub const WMULT_IDLEPRIO: u32 = 1_431_655_765;

const WMULT_CONST: u64 = u32::MAX as u64;
const WMULT_SHIFT: u32 = 32;

/// Shown weights of nice -20 to 19. One nice level is meant to shift about 10% of a CPU between two busy tasks, so
/// neighbours differ by a factor of about 1.25.
///
/// Source: `sched_prio_to_weight` in `kernel/sched/core.c`, the same from v4.5 to v7.2.
#[allow(non_upper_case_globals)]
pub static sched_prio_to_weight: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, // nice -20
    29154, 23254, 18705, 14949, 11916, // nice -15
    9548, 7620, 6100, 4904, 3906, // nice -10
    3121, 2501, 1991, 1586, 1277, // nice -5
    1024, 820, 655, 526, 423, // nice 0
    335, 272, 215, 172, 137, // nice 5
    110, 87, 70, 56, 45, // nice 10
    36, 29, 23, 18, 15, // nice 15
];

/// 2^32 / shown weight of nice -20 to 19, rounded to a whole number, sometimes up and sometimes down, which is why it is a
/// table and not a formula.
///
/// Source: `sched_prio_to_wmult` in `kernel/sched/core.c`, the same from v4.5 to v7.2.
#[allow(non_upper_case_globals)]
pub static sched_prio_to_wmult: [u32; 40] = [
    48388, 59856, 76040, 92818, 118348, // nice -20
    147320, 184698, 229616, 287308, 360437, // nice -15
    449829, 563644, 704093, 875809, 1099582, // nice -10
    1376151, 1717300, 2157191, 2708050, 3363326, // nice -5
    4194304, 5237765, 6557202, 8165337, 10153587, // nice 0
    12820798, 15790321, 19976592, 24970740, 31350126, // nice 5
    39045157, 49367440, 61356676, 76695844, 95443717, // nice 10
    119304647, 148102320, 186737708, 238609294, 286331153, // nice 15
];

behaviour! {
    /// How a shown weight is kept (`scale_load()`, `scale_load_down()`, `NICE_0_LOAD`) on 64-bit machines.
    pub enum LoadResolution = "load_resolution" {
        /// `SCHED_LOAD_RESOLUTION` is 0: its finer setting is compiled out, as it raised power use under light load.
        Shown = "shown", since "v2.6.23", commit "",
            "weights are kept as shown: nice 0 is 1024";
        Fine = "fine", since "v4.7", commit "2159197d6677",
            "weights are kept 1024 times finer: nice 0 is 2^20";
        /// A deep group of few shares does not vanish.
        FineFloor = "fine-floor", since "v5.7", commit "26cf52229efc",
            "as fine, but what is not zero never scales down below 2";
        FineQuotient = "fine-quotient", since "v7.1", commit "",
            "as fine-floor, and run time becomes virtual time by a division of kept weights, no longer by inverses of shown ones";
    }
}

impl LoadResolution {
    /// sched.h: scale_load(). From shown to kept.
    #[inline]
    pub fn scale_load(self, weight: u64) -> u64 {
        match self {
            LoadResolution::Shown => weight,
            LoadResolution::Fine | LoadResolution::FineFloor | LoadResolution::FineQuotient => {
                weight << SCHED_FIXEDPOINT_SHIFT
            }
        }
    }

    /// sched.h: scale_load_down(). From kept to shown, rounded down.
    #[inline]
    pub fn scale_load_down(self, weight: u64) -> u64 {
        match self {
            LoadResolution::Shown => weight,
            LoadResolution::Fine => weight >> SCHED_FIXEDPOINT_SHIFT,
            LoadResolution::FineFloor | LoadResolution::FineQuotient if weight == 0 => 0,
            LoadResolution::FineFloor | LoadResolution::FineQuotient => (weight >> SCHED_FIXEDPOINT_SHIFT).max(2),
        }
    }

    /// `NICE_0_LOAD`: the kept weight of nice 0.
    #[inline]
    #[doc(alias = "NICE_0_LOAD")]
    pub fn nice_0_load(self) -> u64 {
        match self {
            LoadResolution::Shown => 1 << SCHED_FIXEDPOINT_SHIFT,
            LoadResolution::Fine | LoadResolution::FineFloor | LoadResolution::FineQuotient => {
                1 << (2 * SCHED_FIXEDPOINT_SHIFT)
            }
        }
    }
}

/// core.c: set_load_weight(). The weight of a task from its policy and `static_prio` (100 to 139 for nice -20 to 19). The
/// nice level of a SCHED_IDLE task does not count.
///
/// Differs: computes the value only; the caller does what `reweight_task()` does.
pub fn set_load_weight(resolution: LoadResolution, policy: Policy, static_prio: i32) -> LoadWeight {
    let row = static_prio - MAX_RT_PRIO;
    assert!((0..40).contains(&row), "static_prio {static_prio} is outside 100..=139");
    let (weight, inv_weight) = match policy {
        Policy::Idle => (WEIGHT_IDLEPRIO, WMULT_IDLEPRIO),
        Policy::Normal | Policy::Batch | Policy::Fifo | Policy::Rr | Policy::Deadline | Policy::Stop => {
            (u64::from(sched_prio_to_weight[row as usize]), sched_prio_to_wmult[row as usize])
        }
    };
    LoadWeight { weight: resolution.scale_load(weight), inv_weight }
}

impl LoadWeight {
    /// fair.c: update_load_add().
    #[inline]
    pub fn update_load_add(&mut self, inc: u64) {
        self.weight += inc;
        self.inv_weight = 0;
    }

    /// fair.c: update_load_sub().
    ///
    /// Differs: a weight below zero is our own bug, so it panics where the kernel wraps.
    #[inline]
    pub fn update_load_sub(&mut self, dec: u64) {
        assert!(dec <= self.weight, "weight {dec} leaves a load of {}", self.weight);
        self.weight -= dec;
        self.inv_weight = 0;
    }

    /// fair.c: update_load_set().
    #[inline]
    pub fn update_load_set(&mut self, weight: u64) {
        self.weight = weight;
        self.inv_weight = 0;
    }

    /// fair.c: __update_inv_weight().
    #[inline]
    pub fn __update_inv_weight(&mut self, resolution: LoadResolution) {
        if unlikely(self.inv_weight == 0) {
            let weight = resolution.scale_load_down(self.weight);
            // Weight zero has the largest inverse, a weight beyond 32 bits the smallest.
            self.inv_weight = WMULT_CONST.checked_div(weight).map_or(u32::MAX, |inverse| inverse.max(1) as u32);
        }
    }
}

/// math64.h: mul_u64_u32_shr(). `(a * mul) >> shift`, with a product of 96 bits; the upper bits of the result are dropped.
#[inline]
pub fn mul_u64_u32_shr(a: u64, mul: u32, shift: u32) -> u64 {
    ((u128::from(a) * u128::from(mul)) >> shift) as u64
}

/// fair.c: __calc_delta(). `delta_exec * weight / lw.weight`, in ns, through the inverse weight or as a quotient; `weight`
/// is a kept one.
///
/// With inverses, the factor `weight * inv_weight` is reduced to its upper 32 significant bits, which loses precision. One
/// body serves all versions until v6.12: commit 1e17fb8edc5a replaced the two loops of single shifts by two shifts by
/// `fls()`, with the same result.
#[inline]
pub fn __calc_delta(resolution: LoadResolution, delta_exec: u64, weight: u64, lw: &mut LoadWeight) -> u64 {
    if resolution == LoadResolution::FineQuotient {
        return delta_exec.wrapping_mul(weight) / lw.weight;
    }
    let mut fact = resolution.scale_load_down(weight);
    let mut shift = WMULT_SHIFT;
    lw.__update_inv_weight(resolution);

    let excess = excess_bits(fact);
    fact >>= excess;
    shift -= excess;

    fact *= u64::from(lw.inv_weight);
    let excess = excess_bits(fact);
    fact >>= excess;
    // This holds for every weight that a runqueue can sum up: the kernel's callers keep weight / lw.weight below 2^10.
    debug_assert!(excess <= shift, "weight {weight} over {} leaves no fraction bits", lw.weight);
    shift -= excess;

    mul_u64_u32_shr(delta_exec, fact as u32, shift)
}

/// By how many bits `value` exceeds 32 bits.
#[inline]
fn excess_bits(value: u64) -> u32 {
    32 - ((value >> 32) as u32).leading_zeros()
}

/// fair.c: calc_delta_fair(). `delta * NICE_0_LOAD / weight`: converts run time (ns) into virtual time (ns).
#[inline]
pub fn calc_delta_fair(resolution: LoadResolution, delta: u64, lw: &mut LoadWeight) -> u64 {
    if lw.weight == resolution.nice_0_load() {
        return delta;
    }
    __calc_delta(resolution, delta, resolution.nice_0_load(), lw)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [LoadResolution; 3] = [LoadResolution::Shown, LoadResolution::Fine, LoadResolution::FineFloor];

    #[test]
    fn nice_zero_time_passes_as_it_is() {
        for resolution in ALL {
            let mut lw = set_load_weight(resolution, Policy::Normal, 120);
            assert_eq!(lw.weight, resolution.nice_0_load());
            assert_eq!(calc_delta_fair(resolution, 1_234_567_891, &mut lw), 1_234_567_891);
        }
    }

    #[test]
    fn a_heavy_task_ages_slowly_and_a_light_one_fast() {
        for resolution in ALL {
            let mut heavy = set_load_weight(resolution, Policy::Batch, 100);
            let mut light = set_load_weight(resolution, Policy::Normal, 139);
            // 10 ms * 1024 / 88761 and 10 ms * 1024 / 15, each short by the inverse weight's rounding.
            assert_eq!(calc_delta_fair(resolution, 10_000_000, &mut heavy), 115_365);
            assert_eq!(calc_delta_fair(resolution, 10_000_000, &mut light), 682_666_666);
        }
    }

    #[test]
    fn a_quotient_sees_shares_that_inverses_do_not() {
        // Kept weights of 2 and of 1500, both shown as 2: the least shares of a group, and a little more.
        let virtual_time = |resolution| {
            [2, 1_500].map(|weight| calc_delta_fair(resolution, 1_000, &mut LoadWeight { weight, inv_weight: 0 }))
        };
        assert_eq!(virtual_time(LoadResolution::FineFloor), [511_999; 2]);
        assert_eq!(virtual_time(LoadResolution::FineQuotient), [524_288_000, 699_050]);
    }

    #[test]
    fn inverse_weights_are_within_one_of_the_quotient() {
        for (weight, wmult) in sched_prio_to_weight.iter().zip(&sched_prio_to_wmult) {
            let quotient = (1u64 << 32) / u64::from(*weight);
            assert!((quotient..=quotient + 1).contains(&u64::from(*wmult)), "weight {weight}");
        }
    }

    #[test]
    fn only_the_floor_keeps_a_tiny_weight_alive() {
        assert_eq!(LoadResolution::Shown.scale_load_down(7), 7);
        assert_eq!(LoadResolution::Fine.scale_load_down(1023), 0);
        assert_eq!(LoadResolution::FineFloor.scale_load_down(1023), 2);
        assert_eq!(LoadResolution::FineFloor.scale_load_down(0), 0);
        assert_eq!(LoadResolution::FineFloor.scale_load_down(15 << 10), 15);
    }

    #[test]
    fn the_inverse_is_computed_once_and_forgotten_when_the_weight_moves() {
        let mut lw = LoadWeight { weight: 3072, inv_weight: 0 };
        assert_eq!(__calc_delta(LoadResolution::Shown, 3_000_000, 1024, &mut lw), 999_999);
        assert_eq!(lw.inv_weight, 1_398_101);
        lw.update_load_sub(1024);
        assert_eq!(lw, LoadWeight { weight: 2048, inv_weight: 0 });
        lw.update_load_add(2048);
        assert_eq!(__calc_delta(LoadResolution::Shown, 3_000_000, 1024, &mut lw), 749_999);
        lw.update_load_set(0);
        lw.__update_inv_weight(LoadResolution::Shown);
        assert_eq!(lw.inv_weight, u32::MAX);
    }

    #[test]
    fn an_idle_policy_outweighs_any_nice_level() {
        let lw = set_load_weight(LoadResolution::Fine, Policy::Idle, 100);
        assert_eq!(lw, LoadWeight { weight: 3 << 10, inv_weight: u32::MAX / 3 });
    }

    #[test]
    #[should_panic(expected = "outside 100..=139")]
    fn a_priority_beyond_the_table_is_our_bug() {
        set_load_weight(LoadResolution::Shown, Policy::Normal, 140);
    }
}
