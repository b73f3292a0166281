//! The arithmetic behind the tables: means, deviations, quantiles and percentages as MMTests defines them, and our own
//! paired intervals ([`interval`]).
//!
//! The formulas were read in MMTests at its states of 2016-01-27 (bbf651f4), 2018-01-22 (34e07f62) and 2026-06-24
//! (638401e0). Only `+ - * /` and `sqrt` of `std` are used. All of these round exactly, so every figure has the same
//! bits on every machine. What needs more (the geometric mean, the tails of distributions) takes it from `libm`.
//!
//! Samples have the unit of their table; so have means and deviations, while coefficients and changes are in per cent.
//! Sums run in the order of the slice.

pub mod interval;
pub(crate) mod student;

use serde::{Deserialize, Serialize};
use units::Prng;

/// The normal distribution's quantile of 0.975, to the precision of a double: on both sides of the mean 5% lie beyond it.
const NORMAL_975: f64 = 1.959_963_984_540_054;

/// Which way a figure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Higher,
    Lower,
}

/// The mean that a row states: MMTests takes the harmonic one for rates and the arithmetic one for times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    Arithmetic,
    Harmonic,
}

impl Mean {
    /// `None` without samples; for the harmonic mean also if a sample is zero or negative.
    pub fn of(self, samples: &[f64]) -> Option<f64> {
        match self {
            Mean::Arithmetic => amean(samples),
            Mean::Harmonic => hmean(samples),
        }
    }

    /// MMTests' word: `Amean` or `Hmean`.
    pub fn name(self) -> &'static str {
        match self {
            Mean::Arithmetic => "Amean",
            Mean::Harmonic => "Hmean",
        }
    }
}

/// sum(x) / n. `None` without samples.
pub fn amean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// n / sum(1/x). `None` without samples or when any sample is zero or negative.
pub fn hmean(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() || samples.iter().any(|&x| x <= 0.0) {
        return None;
    }
    Some(samples.len() as f64 / samples.iter().map(|x| 1.0 / x).sum::<f64>())
}

/// exp(mean(ln x)), by `libm`. `None` without samples or when any sample is zero or negative.
pub fn gmean(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() || samples.iter().any(|&x| x <= 0.0) {
        return None;
    }
    Some(libm::exp(samples.iter().map(|&x| libm::log(x)).sum::<f64>() / samples.len() as f64))
}

/// sqrt(sum((x - mean)^2) / n): MMTests' Stddev until 2016. `None` without samples; 0 for one sample.
pub fn population_stddev(samples: &[f64]) -> Option<f64> {
    Some((squared_deviations(samples)? / samples.len() as f64).sqrt())
}

/// sqrt(sum((x - mean)^2) / (n - 1)): MMTests' Stddev since 2018. `None` for fewer than two samples.
pub fn sample_stddev(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    Some((squared_deviations(samples)? / (samples.len() - 1) as f64).sqrt())
}

/// sqrt(sum((1/x - 1/H)^2) * H^4 / n), H the harmonic mean: MMTests' HStddev of today. `None` for fewer than two
/// samples or where the harmonic mean is invalid.
pub fn harmonic_stddev(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let mean = hmean(samples)?;
    let sum: f64 = samples.iter().map(|x| squared(1.0 / x - 1.0 / mean)).sum();
    Some((sum * squared(squared(mean)) / samples.len() as f64).sqrt())
}

fn squared_deviations(samples: &[f64]) -> Option<f64> {
    let mean = amean(samples)?;
    Some(samples.iter().map(|x| squared(x - mean)).sum())
}

fn squared(x: f64) -> f64 {
    x * x
}

/// stddev * 100 / mean, in per cent. A missing deviation counts as 0; a missing or zero mean gives 0.
pub fn coefficient_of_variation(stddev: Option<f64>, mean: Option<f64>) -> f64 {
    match mean {
        Some(mean) if mean != 0.0 => stddev.unwrap_or(0.0) * 100.0 / mean,
        _ => 0.0,
    }
}

/// Smallest sample. `None` without samples.
pub fn minimum(samples: &[f64]) -> Option<f64> {
    samples.iter().copied().reduce(f64::min)
}

/// Largest sample. `None` without samples.
pub fn maximum(samples: &[f64]) -> Option<f64> {
    samples.iter().copied().reduce(f64::max)
}

/// A copy in ascending order.
pub fn ascending(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A copy with the best sample first.
pub fn best_first(samples: &[f64], better: Better) -> Vec<f64> {
    let mut sorted = ascending(samples);
    if better == Better::Higher {
        sorted.reverse();
    }
    sorted
}

/// Element int((n - 1) * q + 0.5), zero based, of `sorted` (ascending): no interpolation. `q` in 0..=1 (0.9 is MMTests'
/// Max-90%).
///
/// Panics without samples.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * q + 0.5) as usize]
}

/// int(n * percent / 100): how many of `count` samples a BestX%Mean or a BHmean-X covers.
fn share(count: usize, percent: usize) -> usize {
    count * percent / 100
}

/// BestX%Mean of pipetest in 2016: the arithmetic mean of the ascending elements 0..=int(n * percent / 100), the last
/// one *included*; of all samples when that index is 0. `None` without samples.
pub fn best_mean_inclusive(samples: &[f64], percent: usize) -> Option<f64> {
    match share(samples.len(), percent) {
        0 => amean(samples),
        last => amean(&ascending(samples)[..=last.min(samples.len() - 1)]),
    }
}

/// BAmean-X and BHmean-X of January 2018. The lowest samples include the element at int(n * percent / 100) as in 2016,
/// the highest are exactly that many (none, hence `None`, when the number is 0): MMTests' selection was not symmetric
/// then.
pub fn best_mean_uneven(samples: &[f64], percent: usize, mean: Mean, better: Better) -> Option<f64> {
    let sorted = ascending(samples);
    let count = share(samples.len(), percent);
    match better {
        Better::Lower if sorted.is_empty() => None,
        Better::Lower => mean.of(&sorted[..=count.min(sorted.len() - 1)]),
        Better::Higher => mean.of(&sorted[sorted.len() - count..]),
    }
}

/// BAmean.X and BHmean.X of today: the mean of the best int(n * percent / 100) samples, of one at least. `None` without
/// samples or where the mean is invalid.
pub fn best_mean(samples: &[f64], percent: usize, mean: Mean, better: Better) -> Option<f64> {
    let sorted = best_first(samples, better);
    mean.of(&sorted[..share(sorted.len(), percent).max(1).min(sorted.len())])
}

/// SubAmean and SubAmeanCI of January 2018 (`bin/lib/R/subselection-confidence-interval.R`). It makes 100 draws, each
/// of 80% of the samples with replacement, and takes the median of their means. From the median variance of 100 more
/// draws it takes half the width of a 95% interval around that mean. Here the draws always come from the same stream of
/// chance. `None` if a draw has fewer than two samples.
pub fn subselection(samples: &[f64]) -> Option<(f64, f64)> {
    const DRAWS: usize = 100;
    let size = share(samples.len(), 80);
    if size < 2 {
        return None;
    }
    let mut chance = Prng::stream(0, "subselection", 0);
    let mut draw = || -> Vec<f64> { (0..size).map(|_| samples[chance.below(samples.len() as u64) as usize]).collect() };
    let means: Option<Vec<f64>> = (0..DRAWS).map(|_| amean(&draw())).collect();
    let variances: Option<Vec<f64>> = (0..DRAWS).map(|_| sample_stddev(&draw()).map(|of| of * of)).collect();
    let median = |drawn: Vec<f64>| {
        let sorted = ascending(&drawn);
        (sorted[DRAWS / 2 - 1] + sorted[DRAWS / 2]) / 2.0
    };
    let half = NORMAL_975 * (median(variances?) / size as f64).sqrt();
    Some((median(means?), half))
}

/// MMTests' change of `new` against `base` in per cent: positive is better, whichever way the figure improves.
///
/// Higher-better (its `pdiff`): new * 100 / base - 100; equal values or a new value of 0 give 0, a base of 0 gives 100.
/// Lower-better (`pndiff`): 100 - new * 100 / base; equal values give 0, a new value of 0 gives 100, a base of 0 gives
/// -99.
pub fn percent_change(better: Better, base: f64, new: f64) -> f64 {
    match better {
        _ if new == base => 0.0,
        Better::Higher if new == 0.0 => 0.0,
        Better::Higher if base == 0.0 => 100.0,
        Better::Higher => new * 100.0 / base - 100.0,
        Better::Lower if new == 0.0 => 100.0,
        Better::Lower if base == 0.0 => -99.0,
        Better::Lower => 100.0 - new * 100.0 / base,
    }
}

/// The change of `new` relative to `base` in per cent, positive is better: [`percent_change`] without its conventions
/// for zeros. From a base of 0 there is no change in per cent (`None`), and a rate that falls to 0 has lost all of it.
pub fn true_change(better: Better, base: f64, new: f64) -> Option<f64> {
    match better {
        _ if base == 0.0 && new != 0.0 => None,
        Better::Higher if new == 0.0 && base != 0.0 => Some(-100.0),
        _ => Some(percent_change(better, base, new)),
    }
}

/// A mean with the half-width of MMTests' "95%" interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    pub mean: f64,
    pub half_width: f64,
}

impl MeanInterval {
    /// Half-width = 1.96 x the standard *deviation* (not the standard error: it does not shrink with more samples). The
    /// deviation is the sample one for the arithmetic mean and HStddev for the harmonic. MMTests asks R for the product
    /// and reads seven digits of the answer; so do we. `None` for fewer than two samples or an invalid mean.
    pub fn of(samples: &[f64], mean: Mean) -> Option<MeanInterval> {
        let deviation = match mean {
            Mean::Arithmetic => sample_stddev(samples),
            Mean::Harmonic => harmonic_stddev(samples),
        }?;
        Some(MeanInterval { mean: mean.of(samples)?, half_width: through_text(NORMAL_975 * deviation, 7) })
    }

    /// MMTests' rule for the asterisks: the difference of the means exceeds the sum of the two half-intervals that face
    /// each other. Where that sum is 0 the difference itself is compared with 1 (in the table's unit), as MMTests does.
    pub fn differs_from(self, base: MeanInterval) -> bool {
        self.intervals_from(base).abs() > 1.0
    }

    /// Stat.pm: cidiff(): the difference from `base` over the sum of the two half-intervals that face each other; where that is 0, the difference.
    pub fn intervals_from(self, base: MeanInterval) -> f64 {
        let (low, high) = if base.mean < self.mean { (base, self) } else { (self, base) };
        let facing = (low.mean + low.half_width) - low.mean + high.mean - (high.mean - high.half_width);
        let difference = self.mean - base.mean;
        if facing == 0.0 { difference } else { difference / facing }
    }
}

/// `value` after a trip through decimal text of that many significant digits: what Perl or R pass on when they print a
/// number.
pub fn through_text(value: f64, digits: usize) -> f64 {
    format!("{:.*e}", digits - 1, value).parse().expect("a formatted float parses")
}

/// Which of the tested hypotheses to reject so that, on average, at most `rate` of the rejected ones are true
/// (Benjamini and Hochberg 1995: the largest k with p(k) <= k / m * rate). This holds for independent tests, and for
/// positively dependent ones (Benjamini and Yekutieli 2001), such as quantiles of the same samples. The result has the
/// order of `p_values`.
pub fn benjamini_hochberg(p_values: &[f64], rate: f64) -> Vec<bool> {
    let sorted = ascending(p_values);
    let tests = sorted.len() as f64;
    let bound = sorted
        .iter()
        .enumerate()
        .filter(|&(rank, &p)| p <= (rank + 1) as f64 / tests * rate)
        .map(|(_, &p)| p)
        .next_back();
    p_values.iter().map(|&p| bound.is_some_and(|bound| p <= bound)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: Option<f64>, expected: f64) {
        let value = value.expect("a value");
        assert!((value - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{value} is not {expected}");
    }

    #[test]
    fn means_by_hand() {
        close(amean(&[1.0, 2.0, 6.0]), 3.0);
        close(hmean(&[1.0, 2.0, 4.0]), 12.0 / 7.0);
        close(gmean(&[1.0, 2.0, 4.0]), 2.0);
        for empty_or_invalid in [&[][..], &[1.0, 0.0], &[1.0, -2.0]] {
            assert_eq!(hmean(empty_or_invalid), None);
            assert_eq!(gmean(empty_or_invalid), None);
        }
        assert_eq!(amean(&[]), None);
    }

    #[test]
    fn deviations_divide_as_their_vintage_does() {
        let samples = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        close(population_stddev(&samples), 2.0);
        close(sample_stddev(&samples), (32.0_f64 / 7.0).sqrt());
        // H = 12/7; 1/H = 7/12; deviations of 1/x are 5/12, -1/12, -4/12.
        let h: f64 = 12.0 / 7.0;
        close(harmonic_stddev(&[1.0, 2.0, 4.0]), (42.0 / 144.0 * h * h * h * h / 3.0).sqrt());
        assert_eq!(population_stddev(&[3.0]), Some(0.0));
        assert_eq!(sample_stddev(&[3.0]), None);
        assert_eq!(harmonic_stddev(&[3.0]), None);
        assert_eq!(coefficient_of_variation(Some(2.0), Some(5.0)), 40.0);
        assert_eq!(coefficient_of_variation(None, Some(5.0)), 0.0);
        assert_eq!(coefficient_of_variation(Some(2.0), Some(0.0)), 0.0);
    }

    #[test]
    fn quantiles_round_the_index_half_up() {
        let batches: Vec<f64> = (0..120).map(f64::from).collect();
        // 119 q + 0.5: 30.25, 60.0, 89.75, 107.6, 111.17, 113.55, 118.31.
        let indices: Vec<f64> =
            [0.25, 0.50, 0.75, 0.90, 0.93, 0.95, 0.99].iter().map(|&q| quantile(&batches, q)).collect();
        assert_eq!(indices, [30.0, 60.0, 89.0, 107.0, 111.0, 113.0, 118.0]);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
        assert_eq!(quantile(&[1.0, 2.0], 0.5), 2.0);
    }

    #[test]
    fn best_means_hold_as_many_samples_as_the_specification_counts() {
        // The mean of 0..=k is k/2, so the mean tells how many elements went in.
        let batches: Vec<f64> = (0..120).rev().map(f64::from).collect();
        let counts: Vec<f64> =
            [99, 95, 90, 50, 10, 5, 1].iter().map(|&x| best_mean_inclusive(&batches, x).unwrap() * 2.0 + 1.0).collect();
        assert_eq!(counts, [119.0, 115.0, 109.0, 61.0, 13.0, 7.0, 2.0]);
        assert_eq!(best_mean_inclusive(&[5.0, 1.0], 10), Some(3.0), "an empty share means all samples");
    }

    #[test]
    fn the_selection_of_2018_is_uneven_and_of_today_even() {
        let samples: Vec<f64> = (1..=20).map(f64::from).collect();
        let uneven = |better| best_mean_uneven(&samples, 95, Mean::Arithmetic, better);
        let even = |better| best_mean(&samples, 95, Mean::Arithmetic, better);
        assert_eq!(uneven(Better::Lower), Some(10.5), "all twenty");
        assert_eq!(uneven(Better::Higher), Some(11.0), "2 to 20");
        assert_eq!(even(Better::Lower), Some(10.0), "1 to 19");
        assert_eq!(even(Better::Higher), Some(11.0));
        assert_eq!(best_mean_uneven(&[4.0], 50, Mean::Harmonic, Better::Higher), None);
        assert_eq!(best_mean(&[4.0], 50, Mean::Harmonic, Better::Higher), Some(4.0));
    }

    #[test]
    fn changes_have_the_sign_of_better_and_the_special_cases() {
        assert_eq!(percent_change(Better::Higher, 200.0, 250.0), 25.0);
        assert_eq!(percent_change(Better::Lower, 200.0, 250.0), -25.0);
        for better in [Better::Higher, Better::Lower] {
            assert_eq!(percent_change(better, 0.0, 0.0), 0.0);
            assert_eq!(percent_change(better, 3.0, 3.0), 0.0);
        }
        assert_eq!(percent_change(Better::Higher, 3.0, 0.0), 0.0);
        assert_eq!(percent_change(Better::Higher, 0.0, 3.0), 100.0);
        assert_eq!(percent_change(Better::Lower, 3.0, 0.0), 100.0);
        assert_eq!(percent_change(Better::Lower, 0.0, 3.0), -99.0);
        for better in [Better::Lower, Better::Higher] {
            assert_eq!(true_change(better, 0.0, 3.0), None);
            assert_eq!(true_change(better, 0.0, 0.0), Some(0.0));
            assert_eq!(true_change(better, 200.0, 250.0), Some(percent_change(better, 200.0, 250.0)));
        }
        assert_eq!(true_change(Better::Higher, 3.0, 0.0), Some(-100.0));
        assert_eq!(true_change(Better::Lower, 3.0, 0.0), Some(100.0));
    }

    #[test]
    fn asterisks_compare_with_deviations_not_with_standard_errors() {
        let interval = |mean, half_width| MeanInterval { mean, half_width };
        assert!(interval(10.0, 1.0).differs_from(interval(13.0, 1.9)));
        assert!(!interval(10.0, 1.0).differs_from(interval(13.0, 2.1)));
        assert!(interval(13.0, 1.9).differs_from(interval(10.0, 1.0)));
        assert!(!interval(10.0, 0.0).differs_from(interval(11.0, 0.0)), "no spread: the bare difference against one");
        assert!(interval(10.0, 0.0).differs_from(interval(11.5, 0.0)));
        let of = MeanInterval::of(&[1.0, 3.0], Mean::Arithmetic).unwrap();
        assert_eq!(of, interval(2.0, 2.771808), "1.959964 x sqrt(2) to seven digits");
        assert_eq!(MeanInterval::of(&[1.0], Mean::Arithmetic), None);
    }

    #[test]
    fn false_discoveries_are_bounded_over_all_rows() {
        // The worked example of the 1995 paper: fifteen p-values, four rejected at 0.05.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        assert_eq!(benjamini_hochberg(&p, 0.05).iter().filter(|&&r| r).count(), 4);
        assert_eq!(benjamini_hochberg(&[0.04, 0.9, 0.03], 0.05), [false, false, false]);
        assert_eq!(
            benjamini_hochberg(&[0.04, 0.05, 0.03], 0.05),
            [true, true, true],
            "a later rank may carry an earlier one"
        );
        assert!(benjamini_hochberg(&[], 0.05).is_empty());
    }
}
