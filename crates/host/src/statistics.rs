//! Statistics for measurements on a computer that others use too. Their work only ever makes a burst slower, so the
//! lower part of the distribution shows what the computer itself takes.

/// The spread of many short bursts of one measurement, in the measurement's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The lower quartile: undisturbed, but not a lucky exception.
    pub value: f64,
    /// The shortest burst.
    pub low: f64,
    /// Nine of ten bursts are at or below it.
    pub high: f64,
    pub bursts: usize,
}

impl Spread {
    /// `None` without bursts, or if one is not a number.
    pub fn of(bursts: &[f64]) -> Option<Spread> {
        if bursts.is_empty() || bursts.iter().any(|burst| !burst.is_finite()) {
            return None;
        }
        let sorted = ascending(bursts);
        Some(Spread {
            value: quantile(&sorted, 0.25),
            low: sorted[0],
            high: quantile(&sorted, 0.90),
            bursts: sorted.len(),
        })
    }

    /// For a figure that is better when it is larger (a rate): the upper quartile, so that disturbance is left out.
    pub fn of_rates(bursts: &[f64]) -> Option<Spread> {
        let negative: Vec<f64> = bursts.iter().map(|burst| -burst).collect();
        let Spread { value, low, high, bursts } = Spread::of(&negative)?;
        Some(Spread { value: -value, low: -high, high: -low, bursts })
    }

    pub fn map(self, of: impl Fn(f64) -> f64) -> Spread {
        let (low, high) = (of(self.low), of(self.high));
        Spread { value: of(self.value), low: low.min(high), high: low.max(high), bursts: self.bursts }
    }

    /// Subtracts something that every burst contained as well. The range is that of all combinations, but never below
    /// zero.
    pub fn less(self, other: Spread) -> Spread {
        let value = (self.value - other.value).max(0.0);
        Spread {
            value,
            low: (self.low - other.high).clamp(0.0, value),
            high: (self.high - other.low).max(value),
            bursts: self.bursts.min(other.bursts),
        }
    }
}

pub fn ascending(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The nearest rank at or below share `q` of an ascending list.
///
/// # Panics
/// If the list is empty.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len() - 1;
    sorted[((last as f64 * q).floor() as usize).min(last)]
}

/// The median; for an even number of values the lower of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| quantile(&ascending(values), 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_bursts_do_not_move_the_value() {
        let quiet: Vec<f64> = (0..100).map(|i| 10.0 + f64::from(i) / 100.0).collect();
        let mut noisy = quiet.clone();
        for burst in noisy.iter_mut().skip(50) {
            *burst += 1_000.0;
        }
        let (quiet, noisy) = (Spread::of(&quiet).unwrap(), Spread::of(&noisy).unwrap());
        assert_eq!((quiet.value, noisy.value), (10.24, 10.24));
        assert_eq!((quiet.low, noisy.low), (10.0, 10.0));
        // The range shows that there was noise.
        assert!(quiet.high < 11.0 && noisy.high > 1_000.0);
    }

    #[test]
    fn rates_are_read_from_above() {
        let spread = Spread::of_rates(&[2.0, 4.0, 3.9, 3.8, 1.0]).unwrap();
        assert_eq!((spread.low, spread.value, spread.high), (2.0, 3.9, 4.0));
    }

    #[test]
    fn a_difference_keeps_both_doubts() {
        let whole = Spread { value: 10.0, low: 9.0, high: 12.0, bursts: 5 };
        let part = Spread { value: 4.0, low: 3.0, high: 5.0, bursts: 9 };
        assert_eq!(whole.less(part), Spread { value: 6.0, low: 4.0, high: 9.0, bursts: 5 });
        assert_eq!(part.less(whole).value, 0.0);
        assert_eq!(part.less(whole).low, 0.0);
    }

    #[test]
    fn ranges_hold_their_value() {
        let spread = Spread::of(&[7.0, 5.0, 6.0]).unwrap();
        assert!(spread.low <= spread.value && spread.value <= spread.high);
        let inverse = spread.map(|ns| 1.0 / ns);
        assert!(inverse.low <= inverse.value && inverse.value <= inverse.high);
    }

    #[test]
    fn what_is_no_measurement_has_no_spread() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0, 4.0]), Some(2.0));
    }
}
