//! What a kernel computes averages and weights with, known to the compiler where a released kernel does.

use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::group::GroupShares;
use crate::fair::rules::Pick;
use crate::load_weight::LoadResolution;
use crate::pelt::{Pelt, SumFloor};
use crate::sched::{SchedEntity, TaskId};
use crate::versions::Kernel;

/// The behaviours that every computation with loads asks for, again and again, and every level's step: the averages' arithmetic, how sums are held, the scale
/// of weights, what a group's entity weighs, who is picked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arithmetic {
    pub pelt: Pelt,
    pub floor: SumFloor,
    pub resolution: LoadResolution,
    pub shares: GroupShares,
    pub pick: Pick,
}

impl Arithmetic {
    pub const V4_5: Arithmetic = Arithmetic {
        pelt: Pelt::ByPeriod,
        floor: SumFloor::Cut,
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
    pub const V6_1: Arithmetic = Arithmetic {
        pelt: Pelt::RunnableAvg,
        resolution: LoadResolution::FineFloor,
        shares: GroupShares::LoadAverageAlone,
        ..Arithmetic::V4_15
    };
    pub const V6_12: Arithmetic =
        Arithmetic { shares: GroupShares::LoadAverageOfBusy, pick: Pick::Eevdf, ..Arithmetic::V6_1 };
    pub const V7_2: Arithmetic =
        Arithmetic { floor: SumFloor::Whole, resolution: LoadResolution::FineQuotient, ..Arithmetic::V6_12 };

    #[inline]
    pub fn of(kernel: &Kernel) -> Arithmetic {
        Arithmetic {
            pelt: kernel.pelt,
            floor: kernel.load.sum_floor,
            resolution: kernel.load_resolution,
            shares: kernel.load.group_shares,
            pick: kernel.entity.pick,
        }
    }
}

/// How a walk's step up the levels is compiled.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// Anybody's, and what it shares with others is called: so is a task's, which is a part of the run loop's largest functions, where
    /// every load average in line would cost all the rest registers.
    Any,
    /// A group's, in a function of its own for each arithmetic, with everything in line: three quarters of what a level takes are its
    /// averages and its weight, and to look up anew and to save around calls was a quarter of that.
    Group(Arithmetic),
}

impl Step {
    /// The task whose entity it is.
    #[inline(always)]
    pub fn task_of(self, entity: &SchedEntity) -> Option<TaskId> {
        match self {
            Step::Any => entity.task,
            Step::Group(_) => None,
        }
    }
}

/// An arithmetic that kernels were released with, or a mix of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Released {
    V4_5,
    V4_15,
    V6_1,
    V6_12,
    V7_2,
    Mixed,
}

impl Released {
    pub fn of(kernel: &Kernel) -> Released {
        match Arithmetic::of(kernel) {
            Arithmetic::V4_5 => Released::V4_5,
            Arithmetic::V4_15 => Released::V4_15,
            Arithmetic::V6_1 => Released::V6_1,
            Arithmetic::V6_12 => Released::V6_12,
            Arithmetic::V7_2 => Released::V7_2,
            _ => Released::Mixed,
        }
    }
}

/// `with_arithmetic!(sched, arithmetic, body)`: the body, with the scheduler's arithmetic under that name. It is compiled by itself for
/// each one that kernels were released with, where it asks nothing any more; all mixes share one.
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
            Released::V4_5 => {
                let $arithmetic = Arithmetic::V4_5;
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

    /// What a step computes with.
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
