//! Random draws that programs make, in integers: times between arrivals, and sizes of work.

use units::Prng;

/// Fractional bits of the fixed-point numbers.
const BITS: u32 = 32;
const ONE: i64 = 1 << BITS;
/// ln 2.
const LN_2: i64 = 2_977_044_471;

/// Exponentially distributed with this mean: the time between two independent arrivals.
pub fn exponential(chance: &mut Prng, mean: u64) -> u64 {
    // -ln(u) = (64 - log2(2^64 u)) ln 2, with u above 0.
    let log2 = log2(chance.next_u64() | 1);
    let nats = ((i128::from(64 * ONE - log2) * i128::from(LN_2)) >> BITS) as u64;
    ((u128::from(mean) * u128::from(nats)) >> BITS) as u64
}

/// Log-normally distributed with mean `mean`; the logarithm's standard deviation is given in thousandths. This
/// describes sizes of work that are mostly small and sometimes large.
pub fn lognormal(chance: &mut Prng, mean: u64, sigma_permille: u64) -> u64 {
    // The sum of twelve uniform numbers has variance 1 (Irwin and Hall). Unlike a normal number it never exceeds six
    // deviations.
    let uniform = |_| (chance.next_u64() >> BITS) as i64;
    let normal = (0..12).map(uniform).sum::<i64>() - 6 * ONE;
    let sigma = sigma_permille as i64 * ONE / 1_000;
    // exp(s z - s^2 / 2) has mean 1.
    let multiply = |a: i64, b: i64| ((i128::from(a) * i128::from(b)) >> BITS) as i64;
    let nats = multiply(sigma, normal) - multiply(sigma, sigma) / 2;
    let twos = ((i128::from(nats) << BITS) / i128::from(LN_2)) as i64;
    let factor = exp2(twos);
    ((u128::from(mean) * u128::from(factor)) >> BITS) as u64
}

/// log2 of a number above 0.
fn log2(x: u64) -> i64 {
    let whole = x.ilog2();
    let mut mantissa = x << (63 - whole);
    let mut log = i64::from(whole);
    for _ in 0..BITS {
        let square = u128::from(mantissa) * u128::from(mantissa);
        // The square lies between 2^126 and 2^128: its top bit says whether it has reached 2^127.
        let bit = (square >> 127) as u64;
        mantissa = (square >> (63 + bit)) as u64;
        log = 2 * log + bit as i64;
    }
    log
}

/// 2^x, for x up to 30. A polynomial of degree 3 gives the fractional part; it is off by one part in 10000 at most.
fn exp2(x: i64) -> u64 {
    let (whole, f) = (x >> BITS, x & (ONE - 1));
    let times = |a: i64, b: i64| ((i128::from(a) * i128::from(b)) >> BITS) as i64;
    let (c1, c2, c3) = (2_987_393_949, 971_408_094, 335_632_683);
    let factor = ONE + times(f, c1 + times(f, c2 + times(f, c3)));
    match whole {
        ..=-63 => 0,
        -62..0 => factor as u64 >> -whole,
        _ => (factor as u64) << whole.min(30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(draw: impl Fn(&mut Prng) -> u64) -> u64 {
        let mut chance = Prng::stream(1, "test", 0);
        (0..100_000).map(|_| draw(&mut chance)).sum::<u64>() / 100_000
    }

    #[test]
    fn logarithms_and_powers_are_what_they_are_called() {
        assert_eq!(log2(1), 0);
        assert_eq!(log2(8), 3 * ONE);
        assert_eq!(log2(3) >> 12, 6_807_362_105 >> 12); // 1.5849625
        assert!(exp2(ONE / 2).abs_diff(6_074_000_999) < 600_000); // 1.4142136
        assert_eq!(exp2(-2 * ONE), 1 << 30);
        assert_eq!(exp2(3 * ONE), 8 << BITS);
    }

    #[test]
    fn means_are_kept() {
        assert!(mean(|chance| exponential(chance, 1_000_000)).abs_diff(1_000_000) < 10_000);
        for sigma in [0, 500, 1_000] {
            let mean = mean(|chance| lognormal(chance, 1_000_000, sigma));
            assert!(mean.abs_diff(1_000_000) < 15_000, "{mean} with a deviation of {sigma}");
        }
    }

    #[test]
    fn an_exponential_leaves_what_it_must_above_its_mean() {
        let above = |limit: u64| mean(|chance| u64::from(exponential(chance, 1_000) > limit) * 1_000_000);
        // exp(-1) and exp(-3).
        assert!(above(1_000).abs_diff(367_879) < 6_000);
        assert!(above(3_000).abs_diff(49_787) < 3_000);
    }
}
