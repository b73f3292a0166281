//! The last eight idles, and whether they have a typical length.

const INTERVALS: usize = 8;

/// What an idle CPU's intervals hold when a run begins, in microseconds. The kernel starts them at zero, which means polling until
/// the first wakeups; by the time a machine has booted they hold the distances of its housekeeping timers.
const IDLE_SINCE_BOOT_US: u32 = 10_000;

/// The last eight, in microseconds, as a ring.
#[derive(Clone, Debug)]
pub struct Intervals {
    values: [u32; INTERVALS],
    sums: Sums,
    next: u8,
}

impl Intervals {
    pub fn after_boot() -> Intervals {
        Intervals::of([IDLE_SINCE_BOOT_US; INTERVALS])
    }

    pub fn of(values: [u32; INTERVALS]) -> Intervals {
        let mut sums = Sums::default();
        values.iter().for_each(|&value| sums.replace(0, value.into()));
        Intervals { values, sums, next: 0 }
    }

    /// menu.c: menu_update_intervals().
    #[inline]
    pub fn menu_update_intervals(&mut self, value: u32) {
        let place = usize::from(self.next);
        let oldest = std::mem::replace(&mut self.values[place], value);
        self.sums.replace(oldest.into(), value.into());
        self.next = (self.next + 1) % INTERVALS as u8;
    }

    /// menu.c: get_typical_interval(): the mean of those recent idles that are at most `most`, if they agree. Otherwise
    /// the longest is dropped, again and again, until they agree or a quarter of them is gone.
    /// Differs: the sum of squared differences follows from the sums of values and of squares, and those of all intervals are
    /// kept, since they usually agree.
    pub fn get_typical_interval(&self, most: u64) -> Option<u64> {
        self.typical(most, 0, Sums::agree_by_variance)
    }

    /// menu.c: get_typical_interval() since v6.6: no answer if none of those left lasted a microsecond.
    pub fn get_typical_interval_of_some_time(&self, most: u64) -> Option<u64> {
        self.typical(most, 1, Sums::agree_by_variance)
    }

    /// menu.c: get_typical_interval() until v4.5, which took the integer square root of the variance.
    pub fn get_typical_interval_by_root(&self) -> Option<u64> {
        self.typical(u32::MAX.into(), 0, Sums::agree_by_root)
    }

    /// menu.c: get_typical_interval() since v6.17: if they do not agree, the longest or the shortest is dropped, whichever
    /// is farther from the mean, with all that are equal to it. The variance is the mean of squares less the square of
    /// the mean, both rounded down. With `or_most`, as in v6.17, the longest of those left will do if no more may be dropped.
    pub fn get_typical_interval_by_squares(&self, or_most: bool) -> Option<u64> {
        if (1..u64::from(u32::MAX)).contains(&self.sums.values) {
            let (mean, agreed) = self.sums.agree_by_squares(INTERVALS as u64);
            if agreed {
                return Some(mean);
            }
        }
        let (mut least, mut most) = (0, u64::from(u32::MAX) - 1);
        loop {
            let (mut sums, mut count, mut shortest, mut longest) = (Sums::default(), 0, u64::MAX, 0);
            for value in
                self.values.iter().map(|&value| u64::from(value)).filter(|value| (least..=most).contains(value))
            {
                sums.replace(0, value);
                count += 1;
                shortest = value.min(shortest);
                longest = value.max(longest);
            }
            if longest == 0 {
                return None;
            }
            let (mean, agreed) = sums.agree_by_squares(count);
            if agreed {
                return Some(mean);
            }
            if count * 4 <= INTERVALS as u64 * 3 {
                return (or_most && count >= INTERVALS as u64 / 2).then_some(longest);
            }
            if mean - shortest > longest - mean {
                least = shortest + 1;
            } else {
                most = longest - 1;
            }
        }
    }

    /// `least`: the sum that those left must have at least.
    #[inline(always)]
    fn typical(&self, most: u64, least: u64, agree: fn(Sums, u64) -> (u64, bool)) -> Option<u64> {
        // No single idle is longer than their sum.
        if (least..=most).contains(&self.sums.values) {
            let (mean, agreed) = agree(self.sums, INTERVALS as u64);
            if agreed {
                return Some(mean);
            }
        }
        self.without_the_longest(most, least, agree)
    }

    fn without_the_longest(&self, most: u64, least: u64, agree: fn(Sums, u64) -> (u64, bool)) -> Option<u64> {
        let mut threshold = most;
        loop {
            let (mut sums, mut count, mut longest) = (Sums::default(), 0, 0);
            for value in self.values.iter().map(|&value| u64::from(value)).filter(|&value| value <= threshold) {
                sums.replace(0, value);
                count += 1;
                longest = value.max(longest);
            }
            if count == 0 || sums.values < least {
                return None;
            }
            let (mean, agreed) = agree(sums, count);
            if agreed {
                return Some(mean);
            }
            if count * 4 <= INTERVALS as u64 * 3 {
                return None;
            }
            threshold = longest - 1;
        }
    }
}

/// Sums of some intervals.
#[derive(Clone, Copy, Default, Debug)]
struct Sums {
    values: u64,
    /// The sum of their squares, wrapping.
    squares: u64,
}

impl Sums {
    #[inline]
    fn replace(&mut self, old: u64, new: u64) {
        self.values = self.values - old + new;
        self.squares = self.squares.wrapping_sub(old.wrapping_mul(old)).wrapping_add(new.wrapping_mul(new));
    }

    /// Their mean and their variance.
    #[inline]
    fn moments(self, count: u64) -> (u64, u64) {
        let mean = self.values / count;
        // sum of (v - mean)^2 = sum of v^2 - 2 mean sum of v + count mean^2
        let differences = self.squares.wrapping_sub(mean.wrapping_mul((2 * self.values).wrapping_sub(count * mean)));
        (mean, differences / count)
    }

    /// The mean of `count` intervals, and whether they lie so close to it that it is typical: within a sixth of it, if
    /// there are enough of them, or within 20 us.
    #[inline]
    fn agree_by_variance(self, count: u64) -> (u64, bool) {
        let (mean, variance) = self.moments(count);
        let enough = count * 4 >= INTERVALS as u64 * 3;
        let close = variance <= u64::MAX / 36 && mean * mean > 36 * variance;
        (mean, (close && enough) || variance <= 400)
    }

    /// The same, with the variance as the mean of squares less the square of the mean.
    #[inline]
    fn agree_by_squares(self, count: u64) -> (u64, bool) {
        let mean = self.values / count;
        let variance = (self.squares / count).wrapping_sub(mean * mean);
        let enough = count * 4 >= INTERVALS as u64 * 3;
        let close = variance <= u64::MAX / 36 && mean * mean > 36 * variance;
        (mean, (close && enough) || variance <= 400)
    }

    /// The same, by the standard deviation rounded down.
    #[inline]
    fn agree_by_root(self, count: u64) -> (u64, bool) {
        let (mean, variance) = self.moments(count);
        let enough = count * 4 >= INTERVALS as u64 * 3;
        // mean > 6 root, for the root rounded down: variance is below the square after the last root that fits.
        let close = mean > 0 && variance < ((mean - 1) / 6 + 1).pow(2);
        (mean, (close && enough) || variance < 21 * 21)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Prng;

    const ANY: u64 = u32::MAX as u64;

    #[test]
    fn one_outlier_does_not_hide_a_pattern() {
        let typical = |values| Intervals::of(values).get_typical_interval(ANY);
        assert_eq!(typical([150, 150, 150, 9_000, 150, 150, 150, 150]), Some(150));
        assert_eq!(typical([1, 50_000, 3, 9_000, 700, 40_000, 90, 12_000]), None);
        // A state that was not entered leaves no trace.
        let rejected = Intervals::of([u32::MAX, 150, 150, 150, 150, 150, 150, 150]);
        assert_eq!(rejected.get_typical_interval(i32::MAX as u64), Some(150));
        assert_eq!(Intervals::of([u32::MAX; 8]).get_typical_interval(i32::MAX as u64), None);
    }

    #[test]
    fn idles_of_no_time_are_typical_until_v6_6() {
        let both = |values| {
            let intervals = Intervals::of(values);
            let most = i32::MAX as u64;
            (intervals.get_typical_interval(most), intervals.get_typical_interval_of_some_time(most))
        };
        assert_eq!(both([0; 8]), (Some(0), None));
        // Without the longest, only zeros are left.
        assert_eq!(both([0, 0, 5_000, 0, 0, 0, 0, 0]), (Some(0), None));
        assert_eq!(both([0, u32::MAX, 0, 0, 0, 0, 0, 0]), (Some(0), None));
        // The kernel tests the longest of them, not the mean.
        assert_eq!(both([0, 0, 0, 1, 0, 0, 0, 0]), (Some(0), Some(0)));
    }

    #[test]
    fn a_short_outlier_is_dropped_as_a_long_one_is_since_the_farther_goes() {
        let both = |values| {
            let intervals = Intervals::of(values);
            (
                intervals.get_typical_interval_of_some_time(i32::MAX as u64),
                intervals.get_typical_interval_by_squares(false),
            )
        };
        // The longest goes first, together with all that are equal to it: those that agree.
        assert_eq!(both([2_000, 2_000, 2_000, 5, 2_000, 2_000, 2_000, 2_000]), (Some(5), Some(2_000)));
        assert_eq!(both([2_000, 5, 2_000, 5, 2_000, 5, 2_000, 2_000]), (Some(5), Some(2_000)));
        // An outlier on either side.
        assert_eq!(both([2_000, 9_000, 2_000, 5, 2_000, 2_000, 2_000, 2_000]), (Some(5), Some(2_000)));
        assert_eq!(both([150, 150, 150, 9_000, 150, 150, 150, 150]), (Some(150), Some(150)));
        // Six of them do not agree, and fewer would be too few.
        assert_eq!(both([100, 400, 900, 2_000, 3_000, 4_500, 6_000, 8_000]), (None, None));
        assert_eq!(both([0; 8]), (None, None));
        assert_eq!(both([u32::MAX; 8]), (None, None));
    }

    /// The kernel's two passes, literally: mean, then differences; by integer root for v4.5.
    fn two_passes(values: [u32; 8], by_root: bool) -> Option<u64> {
        let mut threshold = ANY;
        loop {
            let kept: Vec<u64> = values.iter().map(|&v| u64::from(v)).filter(|&v| v <= threshold).collect();
            let count = kept.len() as u64;
            let mean = kept.iter().sum::<u64>() / count;
            let variance = kept.iter().map(|v| v.abs_diff(mean).pow(2)).sum::<u64>() / count;
            let close = match by_root {
                true => mean > 6 * variance.isqrt(),
                false => mean * mean > 36 * variance,
            };
            let short = if by_root { variance.isqrt() <= 20 } else { variance <= 400 };
            if (close && count >= 6) || short {
                return Some(mean);
            }
            if count <= 6 {
                return None;
            }
            threshold = kept.iter().max().unwrap() - 1;
        }
    }

    #[test]
    fn sums_say_the_same_as_two_passes() {
        let mut random = Prng::stream(1, "intervals", 0);
        let (mut found, mut rings) = (0, Intervals::after_boot());
        for round in 0..20_000 {
            let spread = [30, 120, 400, 20_000][round / 500 % 4];
            let outlier = if random.below(9) == 0 { 5_000 } else { 0 };
            rings.menu_update_intervals((300 + outlier + random.below(spread)) as u32);
            let (by_variance, by_root) = (rings.get_typical_interval(ANY), rings.get_typical_interval_by_root());
            assert_eq!(by_variance, two_passes(rings.values, false), "{:?}", rings.values);
            assert_eq!(by_root, two_passes(rings.values, true), "{:?}", rings.values);
            found += u32::from(by_variance.is_some());
        }
        assert!((2_000..18_000).contains(&found), "{found} of 20000");
    }
}
