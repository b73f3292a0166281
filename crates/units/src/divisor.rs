//! Division by a number that does not change.

/// A divisor with its reciprocal: what the compiler does for constants, for a number that is known only when a run
/// begins. Exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Divisor {
    by: u64,
    /// 2^64 / `by`, rounded down.
    reciprocal: u64,
}

impl Divisor {
    /// # Panics
    /// When `by` is below 2.
    pub fn new(by: u64) -> Divisor {
        assert!(by >= 2, "{by} divides nothing");
        Divisor { by, reciprocal: ((1u128 << 64) / u128::from(by)) as u64 }
    }

    /// `number / by`, rounded down.
    #[inline]
    pub fn of(self, number: u64) -> u64 {
        // The reciprocal is too small by less than 1, so the product is too small by less than number / 2^64 + 1 < 2.
        let quotient = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64;
        quotient + u64::from(number - quotient * self.by >= self.by)
    }
}

/// A share in permille, below two wholes. Takes this share of numbers below 2^53 with one multiplication. Exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permille {
    /// The share times 2^63, rounded up.
    scaled: u64,
}

impl Permille {
    /// # Panics
    /// When `permille` is two wholes or more.
    pub const fn new(permille: u64) -> Permille {
        assert!(permille < 2000, "more permille than are meant");
        Permille { scaled: ((permille as u128) << 63).div_ceil(1000) as u64 }
    }

    /// `number * permille / 1000`, rounded down.
    #[inline(always)]
    pub fn of(self, number: u64) -> u64 {
        debug_assert!(number < 1 << 53, "{number} is too large");
        // The scaled share is too large by less than 2^-63, so the product is too large by less than 2^-10. That is
        // less than a thousandth, the least distance of a fractional product to the next whole number.
        ((u128::from(2 * number) * u128::from(self.scaled)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    #[test]
    fn shares_are_what_multiplication_and_division_make_of_them() {
        let mut random = Prng::stream(1, "permille", 0);
        let mut numbers = vec![0, 1, 2, 999, 1000, 1001, (1 << 53) - 1, (1 << 53) - 1000];
        numbers.extend((0..200).map(|bits| random.next_u64() >> (11 + bits % 53)));
        for permille in 0..2000 {
            let share = Permille::new(permille);
            for &number in &numbers {
                let expected = u128::from(number) * u128::from(permille) / 1000;
                assert_eq!(u128::from(share.of(number)), expected, "{permille} permille of {number}");
            }
        }
    }

    #[test]
    fn divides_as_the_machine_does() {
        let mut random = Prng::stream(1, "divisor", 0);
        let mut numbers = vec![0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63, 4_000_000, 3_333_333];
        numbers.extend((0..200).map(|bits| random.next_u64() >> (bits % 64)));
        for &by in numbers.iter().filter(|&&by| by >= 2) {
            let divisor = Divisor::new(by);
            for &number in &numbers {
                for number in [number, number.wrapping_mul(by), number.wrapping_mul(by).wrapping_sub(1)] {
                    assert_eq!(divisor.of(number), number / by, "{number} / {by}");
                }
            }
        }
    }
}
