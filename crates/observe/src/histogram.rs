//! A histogram of nanoseconds with fixed relative precision, using integers only (Tene's HdrHistogram has the same
//! buckets).

use units::Ns;

/// Values below `2^PRECISION_BITS` have a bucket each. Above, each power of two is divided into half as many buckets,
/// so a value is known to better than one part in 128.
const PRECISION_BITS: u32 = 8;

const LINEAR: u64 = 1 << PRECISION_BITS;
const HALF: usize = 1 << (PRECISION_BITS - 1);

/// Counts of values. Memory: 1 KiB for each power of two up to the largest value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum_ns: u128,
    max: Ns,
}

impl Histogram {
    pub fn new() -> Histogram {
        Histogram::default()
    }

    pub fn record(&mut self, value: Ns) {
        let bucket = bucket(value.0);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.sum_ns += u128::from(value.0);
        self.max = self.max.max(value);
    }

    pub fn merge(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.sum_ns += other.sum_ns;
        self.max = self.max.max(other.max);
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Exact.
    pub fn max(&self) -> Ns {
        self.max
    }

    /// Exact, except that fractions of a nanosecond are truncated; zero when empty.
    pub fn mean(&self) -> Ns {
        Ns((self.sum_ns / u128::from(self.total.max(1))) as u64)
    }

    /// The smallest value that at least `parts` of each `of` values do not exceed (`percentile(99, 100)`), rounded up
    /// to the end of its bucket, but never above the largest value; zero when empty.
    pub fn percentile(&self, parts: u32, of: u32) -> Ns {
        assert!(parts <= of && of > 0, "the percentile {parts} of {of}");
        let rank = (u128::from(self.total) * u128::from(parts)).div_ceil(u128::from(of)).max(1);
        let mut seen = 0_u128;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= rank {
                return Ns(bucket_end(bucket)).min(self.max);
            }
        }
        self.max
    }
}

fn bucket(value: u64) -> usize {
    if value < LINEAR {
        return value as usize;
    }
    // The top PRECISION_BITS bits of the value, of which the first is 1.
    let shift = value.ilog2() + 1 - PRECISION_BITS;
    LINEAR as usize + (shift as usize - 1) * HALF + (value >> shift) as usize - HALF
}

/// The largest value in a bucket.
fn bucket_end(bucket: usize) -> u64 {
    if bucket < LINEAR as usize {
        return bucket as u64;
    }
    let above = bucket - LINEAR as usize;
    let shift = above / HALF + 1;
    let top = (above % HALF + HALF) as u64;
    ((top + 1) << (shift - 1)).wrapping_mul(2).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Prng;

    #[test]
    fn buckets_touch_without_gap_or_overlap_and_are_narrow() {
        let mut start = 0_u64;
        for number in 0.. {
            let end = bucket_end(number);
            assert_eq!(bucket(start), number);
            assert_eq!(bucket(end), number);
            assert!(end >= start && (end - start) as u128 * 128 <= u128::from(start), "bucket {start}..={end}");
            if end == u64::MAX {
                return;
            }
            start = end + 1;
        }
    }

    #[test]
    fn percentiles_agree_with_sorting() {
        let mut random = Prng::stream(1, "histogram", 0);
        let mut histogram = Histogram::new();
        let mut draw = |_| {
            let bits = random.between(1, 40);
            random.below(1 << bits)
        };
        let mut values: Vec<u64> = (0..10_000).map(&mut draw).collect();
        for &value in &values {
            histogram.record(Ns(value));
        }
        values.sort_unstable();
        for (parts, of) in [(0, 100), (1, 100), (50, 100), (90, 100), (99, 100), (999, 1000), (1, 1)] {
            let rank = (values.len() * parts as usize).div_ceil(of as usize).max(1);
            let exact = values[rank - 1];
            let found = histogram.percentile(parts, of).0;
            assert!(found >= exact && (found - exact) * 128 <= exact, "{parts} of {of}: {found} for {exact}");
        }
        assert_eq!(histogram.max().0, values[values.len() - 1]);
        assert_eq!(histogram.mean().0, values.iter().sum::<u64>() / values.len() as u64);
        assert_eq!(histogram.count(), 10_000);
    }

    #[test]
    fn merging_is_recording_both() {
        let record = |values: &[u64]| {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.record(Ns(value)));
            histogram
        };
        let mut merged = record(&[1, 5, 300]);
        merged.merge(&record(&[70_000, 2]));
        assert_eq!(merged, record(&[1, 5, 300, 70_000, 2]));
    }

    #[test]
    fn nothing_recorded_is_zero() {
        let empty = Histogram::new();
        assert_eq!((empty.percentile(50, 100), empty.max(), empty.mean()), (Ns::ZERO, Ns::ZERO, Ns::ZERO));
    }
}
