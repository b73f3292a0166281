//! What a kernel computes averages and weights with, known to the compiler where a released kernel does.

use crate::arch::Arch;
use crate::core::Sched;
use crate::load_weight::LoadResolution;
use crate::pelt::Pelt;
use crate::versions::Kernel;

/// The two behaviours that every computation with loads asks for, again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arithmetic {
    pub pelt: Pelt,
    pub resolution: LoadResolution,
}

impl Arithmetic {
    pub const V4_5: Arithmetic = Arithmetic { pelt: Pelt::ByPeriod, resolution: LoadResolution::Shown };
    pub const V4_15: Arithmetic = Arithmetic { pelt: Pelt::Accumulate, resolution: LoadResolution::Fine };
    pub const V6_1: Arithmetic = Arithmetic { pelt: Pelt::RunnableAvg, resolution: LoadResolution::FineFloor };

    #[inline]
    pub fn of(kernel: &Kernel) -> Arithmetic {
        Arithmetic { pelt: kernel.pelt, resolution: kernel.load_resolution }
    }
}

/// An arithmetic that kernels were released with, or a mix of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Released {
    V4_5,
    V4_15,
    V6_1,
    Mixed,
}

impl Released {
    pub fn of(kernel: &Kernel) -> Released {
        match Arithmetic::of(kernel) {
            Arithmetic::V4_5 => Released::V4_5,
            Arithmetic::V4_15 => Released::V4_15,
            Arithmetic::V6_1 => Released::V6_1,
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
            Released::Mixed => {
                let $arithmetic = Arithmetic::of(&$sched.kernel);
                $body
            }
        }
    }};
}
pub(crate) use with_arithmetic;

impl<A: Arch> Sched<A> {
    #[inline]
    pub(crate) fn any_arithmetic(&self) -> Arithmetic {
        Arithmetic::of(&self.kernel)
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
