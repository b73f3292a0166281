//! Percentiles of latencies from a histogram that is exact below 512 and has 256 buckets for each power of two above.
//! schbench prints from this histogram; fio has the same one.

use units::Ns;

/// Buckets for each power of two.
const BUCKETS: u64 = 256;
/// log2 of [`BUCKETS`].
const BITS: u32 = 8;

/// Counts of latencies in whole microseconds, or of other integers.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// One count for each bucket, up to that of the greatest value so far.
    counts: Vec<u64>,
    total: u64,
    most: u64,
}

impl Latencies {
    /// Adds the time from `since` to `now` in whole microseconds, rounded down; times below one microsecond are not
    /// counted.
    pub fn add(&mut self, since: Ns, now: Ns) {
        let us = now.0.saturating_sub(since.0) / 1_000;
        if us > 0 {
            self.record(us);
        }
    }

    pub fn record(&mut self, value: u64) {
        let bucket = bucket(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.most = self.most.max(value);
    }

    /// The middle of the bucket that holds this percentile (in thousandths); 0 when empty. This is what schbench
    /// prints; it may exceed the greatest value by one part in 512.
    pub fn percentile(&self, permille: u64) -> u64 {
        let mut sum = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            sum += count;
            if self.total > 0 && sum * 1_000 >= permille * self.total {
                return value(bucket as u64);
            }
        }
        0
    }

    /// [`Latencies::percentile`], but never above the greatest value.
    pub fn percentile_seen(&self, permille: u64) -> u64 {
        self.percentile(permille).min(self.most)
    }

    /// How many parts of `whole` exceed `limit`, as exactly as the buckets allow; 0 when empty.
    pub fn share_above(&self, limit: u64, whole: u64) -> u64 {
        let above: u64 = self.counts.iter().skip(bucket(limit) + 1).sum();
        (u128::from(above) * u128::from(whole)).checked_div(u128::from(self.total)).unwrap_or(0) as u64
    }
}

/// The index of a value's bucket; every value has one.
fn bucket(value: u64) -> usize {
    let lost = (value | 1).ilog2().saturating_sub(BITS);
    let bucket = if lost == 0 { value } else { u64::from(lost + 1) * BUCKETS + ((value >> lost) - BUCKETS) };
    bucket as usize
}

/// The value that represents a bucket: its only value, or the middle of its values.
fn value(bucket: u64) -> u64 {
    if bucket < 2 * BUCKETS {
        return bucket;
    }
    let lost = bucket / BUCKETS - 1;
    ((BUCKETS + bucket % BUCKETS) << lost) + (1 << lost) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_exact_below_512_and_know_one_part_in_256_above() {
        for exact in [1, 2, 255, 256, 511] {
            assert_eq!(value(bucket(exact) as u64), exact);
        }
        assert_eq!(value(bucket(512) as u64), 513);
        assert_eq!(value(bucket(513) as u64), 513);
        assert_eq!(value(bucket(1_000_000) as u64), 1_000_448);
        // Two minutes in nanoseconds exceed the 19 powers of two that schbench tells apart.
        assert!(value(bucket(120_000_000_000) as u64).abs_diff(120_000_000_000) < 120_000_000_000 / 256);
        assert_eq!(bucket(u64::MAX), 57 * 256 - 1);
        assert!(value(bucket(u64::MAX) as u64) > u64::MAX - (1 << 55));
    }

    #[test]
    fn a_percentile_is_the_first_bucket_that_reaches_its_share() {
        let mut latencies = Latencies::default();
        (1..=100).for_each(|us| latencies.record(us));
        assert_eq!(latencies.percentile(500), 50);
        assert_eq!(latencies.percentile(990), 99);
        assert_eq!(latencies.percentile(999), 100);
        assert_eq!(Latencies::default().percentile(500), 0);
    }

    #[test]
    fn what_was_seen_has_no_percentile_above_its_greatest_value() {
        let mut latencies = Latencies::default();
        (0..100).for_each(|_| latencies.record(1_000_000));
        assert_eq!([latencies.percentile(990), latencies.percentile_seen(990)], [1_000_448, 1_000_000]);
        latencies.record(300_000_000_000);
        assert_eq!([latencies.percentile_seen(990), latencies.percentile_seen(1_000)], [1_000_448, 300_000_000_000]);
    }

    #[test]
    fn a_share_is_of_what_is_larger() {
        let mut latencies = Latencies::default();
        (1..=200).for_each(|us| latencies.record(us));
        assert_eq!(latencies.share_above(150, 1_000), 250);
        assert_eq!(latencies.share_above(200, 1_000), 0);
        assert_eq!(latencies.share_above(u64::MAX, 1_000), 0);
        assert_eq!(Latencies::default().share_above(1, 1_000), 0);
    }

    #[test]
    fn what_takes_less_than_a_microsecond_is_left_out() {
        let mut latencies = Latencies::default();
        latencies.add(Ns(0), Ns(999));
        assert_eq!(latencies.total, 0);
        latencies.add(Ns(0), Ns(1_999));
        assert_eq!(latencies.percentile(999), 1);
    }
}
