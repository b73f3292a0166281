//! What a kernel computes averages and weights with, as constants where that of a released kernel is known.

use super::LoadClock;
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::group::GroupShares;
use crate::fair::rules::Pick;
use crate::load_weight::LoadResolution;
use crate::pelt::{Pelt, SumFloor};
use crate::sched::{SchedEntity, TaskId};
use crate::versions::Kernel;

/// The behaviours that every computation with loads, and the step at every level, consults again and again: the averages'
/// arithmetic and clock, how sums are kept, the scale of weights, how a group's entity is weighed, how the next entity is picked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arithmetic {
    pub pelt: Pelt,
    pub clock: LoadClock,
    pub floor: SumFloor,
    pub resolution: LoadResolution,
    pub shares: GroupShares,
    pub pick: Pick,
}

impl Arithmetic {
    pub const V4_5: Arithmetic = Arithmetic {
        pelt: Pelt::ByPeriod,
        clock: LoadClock::Task,
        floor: SumFloor::Recomputed,
        resolution: LoadResolution::Shown,
        shares: GroupShares::QueueWeight,
        pick: Pick::Cfs,
    };
    pub const V4_15: Arithmetic = Arithmetic {
        pelt: Pelt::Accumulate,
        resolution: LoadResolution::Fine,
        shares: GroupShares::LoadAverage,
        ..Arithmetic::V4_5
    };
    pub const V5_4: Arithmetic =
        Arithmetic { clock: LoadClock::Pelt, resolution: LoadResolution::FineFloor, ..Arithmetic::V4_15 };
    pub const V5_10: Arithmetic =
        Arithmetic { pelt: Pelt::RunnableAvg, shares: GroupShares::LoadAverageAlone, ..Arithmetic::V5_4 };
    pub const V5_15: Arithmetic = Arithmetic { floor: SumFloor::RecomputedAlways, ..Arithmetic::V5_10 };
    pub const V6_1: Arithmetic = Arithmetic { floor: SumFloor::Cut, ..Arithmetic::V5_10 };
    pub const V6_6: Arithmetic = Arithmetic { pick: Pick::Eevdf, ..Arithmetic::V6_1 };
    pub const V6_12: Arithmetic = Arithmetic { shares: GroupShares::LoadAverageOfBusy, ..Arithmetic::V6_6 };
    pub const V7_2: Arithmetic =
        Arithmetic { floor: SumFloor::Whole, resolution: LoadResolution::FineQuotient, ..Arithmetic::V6_12 };
    pub const V7_3: Arithmetic = Arithmetic { shares: GroupShares::Concurrent, ..Arithmetic::V7_2 };

    #[inline]
    pub fn of(kernel: &Kernel) -> Arithmetic {
        Arithmetic {
            pelt: kernel.pelt,
            clock: kernel.load.clock,
            floor: kernel.load.sum_floor,
            resolution: kernel.load_resolution,
            shares: kernel.load.group_shares,
            pick: kernel.entity.pick,
        }
    }
}

/// How one step of a walk up the hierarchy is compiled.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// For any entity: what several steps share is called, not inlined. A task's step is compiled so, too: it is part of the run
    /// loop's largest functions, where every inlined load average would cost the rest its registers.
    Any,
    /// For a group's entity, in a function of its own for each arithmetic, with everything inlined: averages and weight take
    /// three quarters of a level's time, and a quarter of that went into repeated lookups and into saving registers around calls.
    Group(Arithmetic),
}

impl Step {
    /// The task to which the entity belongs.
    #[inline(always)]
    pub fn task_of(self, entity: &SchedEntity) -> Option<TaskId> {
        match self {
            Step::Any => entity.task,
            Step::Group(_) => None,
        }
    }
}

/// The arithmetic of a released kernel, or a mix of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Released {
    V4_5,
    V4_15,
    V5_4,
    V5_10,
    V5_15,
    V6_1,
    V6_6,
    V6_12,
    V7_2,
    V7_3,
    Mixed,
}

impl Released {
    pub fn of(kernel: &Kernel) -> Released {
        match Arithmetic::of(kernel) {
            Arithmetic::V4_5 => Released::V4_5,
            Arithmetic::V4_15 => Released::V4_15,
            Arithmetic::V5_4 => Released::V5_4,
            Arithmetic::V5_10 => Released::V5_10,
            Arithmetic::V5_15 => Released::V5_15,
            Arithmetic::V6_1 => Released::V6_1,
            Arithmetic::V6_6 => Released::V6_6,
            Arithmetic::V6_12 => Released::V6_12,
            Arithmetic::V7_2 => Released::V7_2,
            Arithmetic::V7_3 => Released::V7_3,
            _ => Released::Mixed,
        }
    }
}

/// `with_arithmetic!(sched, arithmetic, body)`: evaluates the body with the scheduler's arithmetic under that name. The body is
/// compiled once for each released arithmetic, where it no longer has to check anything; all mixes share one copy.
macro_rules! with_arithmetic {
    ($sched:expr, $arithmetic:ident, $body:expr) => {{
        use $crate::fair::load::{Arithmetic, Released};
        match $sched.arithmetic {
            Released::V4_15 => {
                let $arithmetic = Arithmetic::V4_15;
                $body
            }
            Released::V6_1 => {
                let $arithmetic = Arithmetic::V6_1;
                $body
            }
            Released::V5_10 => {
                let $arithmetic = Arithmetic::V5_10;
                $body
            }
            Released::V5_4 => {
                let $arithmetic = Arithmetic::V5_4;
                $body
            }
            Released::V5_15 => {
                let $arithmetic = Arithmetic::V5_15;
                $body
            }
            Released::V4_5 => {
                let $arithmetic = Arithmetic::V4_5;
                $body
            }
            Released::V6_6 => {
                let $arithmetic = Arithmetic::V6_6;
                $body
            }
            Released::V6_12 => {
                let $arithmetic = Arithmetic::V6_12;
                $body
            }
            Released::V7_2 => {
                let $arithmetic = Arithmetic::V7_2;
                $body
            }
            Released::V7_3 => {
                let $arithmetic = Arithmetic::V7_3;
                $body
            }
            Released::Mixed => {
                let $arithmetic = Arithmetic::of(&$sched.kernel);
                $body
            }
        }
    }};
}
pub(crate) use with_arithmetic;

/// `in_arithmetic!(sched, step, arithmetic, body)`: the same within a step, which may know its arithmetic already.
macro_rules! in_arithmetic {
    ($sched:expr, $step:expr, $arithmetic:ident, $body:expr) => {
        match $step {
            $crate::fair::load::Step::Any => $crate::fair::load::with_arithmetic!($sched, $arithmetic, $body),
            $crate::fair::load::Step::Group($arithmetic) => $body,
        }
    };
}
pub(crate) use in_arithmetic;

impl<A: Arch> Sched<A> {
    #[inline]
    pub(crate) fn any_arithmetic(&self) -> Arithmetic {
        Arithmetic::of(&self.kernel)
    }

    /// The arithmetic of a step.
    #[inline(always)]
    pub(crate) fn arithmetic_of(&self, step: Step) -> Arithmetic {
        match step {
            Step::Any => self.any_arithmetic(),
            Step::Group(arithmetic) => arithmetic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::KERNELS;

    #[test]
    fn every_kernel_computes_with_one_that_is_known() {
        for kernel in KERNELS {
            assert_ne!(Released::of(kernel), Released::Mixed, "{}", kernel.name);
        }
    }
}
