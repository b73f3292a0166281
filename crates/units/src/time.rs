//! Time and work. The scheduler counts nanoseconds, the machine picoseconds and cycles; both are exact integers.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Nanoseconds: a point on the simulated clock (0 = boot) or a length of time. `u64` lasts 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ns(pub u64);

/// Picoseconds: the machine's clock and prices. `u64` lasts 213 days of simulated time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ps(pub u64);

/// Core clock cycles: work that stretches with frequency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cycles(pub u64);

impl Ns {
    pub const ZERO: Ns = Ns(0);
    pub const MAX: Ns = Ns(u64::MAX);

    pub const fn from_us(us: u64) -> Ns {
        Ns(us * 1_000)
    }

    pub const fn from_ms(ms: u64) -> Ns {
        Ns(ms * 1_000_000)
    }

    pub fn saturating_sub(self, other: Ns) -> Ns {
        Ns(self.0.saturating_sub(other.0))
    }
}

impl Ps {
    pub const ZERO: Ps = Ps(0);
    /// Never: the time of an event that is not armed.
    pub const NEVER: Ps = Ps(u64::MAX);

    pub const fn from_ns(ns: u64) -> Ps {
        Ps(ns * 1_000)
    }

    /// Whole nanoseconds, rounded down: what the kernel's clocks show.
    #[inline]
    pub const fn ns(self) -> Ns {
        Ns(self.0 / 1_000)
    }

    pub fn saturating_sub(self, other: Ps) -> Ps {
        Ps(self.0.saturating_sub(other.0))
    }
}

impl From<Ns> for Ps {
    fn from(ns: Ns) -> Ps {
        Ps(ns.0 * 1_000)
    }
}

macro_rules! arithmetic {
    ($type:ident, $unit:literal) => {
        impl Add for $type {
            type Output = $type;
            #[inline]
            fn add(self, other: $type) -> $type {
                $type(self.0 + other.0)
            }
        }
        impl Sub for $type {
            type Output = $type;
            #[inline]
            fn sub(self, other: $type) -> $type {
                $type(self.0 - other.0)
            }
        }
        impl AddAssign for $type {
            #[inline]
            fn add_assign(&mut self, other: $type) {
                self.0 += other.0;
            }
        }
        impl SubAssign for $type {
            #[inline]
            fn sub_assign(&mut self, other: $type) {
                self.0 -= other.0;
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{} ", $unit), self.0)
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{}", $unit), self.0)
            }
        }
    };
}

arithmetic!(Ns, "ns");
arithmetic!(Ps, "ps");
arithmetic!(Cycles, "cycles");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picoseconds_round_down_to_what_a_kernel_clock_shows() {
        assert_eq!(Ps(1_999).ns(), Ns(1));
        assert_eq!(Ps::from(Ns(7)), Ps(7_000));
        assert_eq!(Ns::from_ms(4), Ns(4_000_000));
        assert_eq!(Ns(3).saturating_sub(Ns(5)), Ns::ZERO);
    }
}
