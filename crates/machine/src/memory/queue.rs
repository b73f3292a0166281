//! How far a node's latency stretches when more is asked of it than it delivers.

/// The whole of a node's time, in the units of [`Waiter::share`]. It is so fine that rounding down the shares of 8192
/// CPUs loses less than a 10000th of it.
const WHOLE: u64 = 1 << 30;
/// Scales a [`Waiter::delivery`], in 1024ths, so that dividing it by a time gives a share of [`WHOLE`].
const FINER: u64 = WHOLE / 1024;

/// A CPU that has lines from the node, during 1000 cycles of its task's work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    /// The least time that the work can take, in picoseconds.
    pub least: u64,
    /// The time that it takes without its waits for this node, in picoseconds.
    pub rest: u64,
    /// How long it waits for this node without contention, in picoseconds; more than 0.
    pub latency: u64,
    /// How much of the node's time its lines take, in 1024ths of picoseconds.
    pub delivery: u64,
}

impl Waiter {
    /// Its share of the node's time at this stretch.
    fn share(&self, stretch: u64) -> u64 {
        self.delivery.saturating_mul(FINER) / self.least.max(self.rest + stretched(self.latency, stretch))
    }
}

/// A latency at a stretch in thousandths.
pub(super) fn stretched(latency: u64, stretch: u64) -> u64 {
    latency.saturating_mul(stretch) / 1000
}

/// The least stretch of the node's latency, in thousandths, at which it delivers what it is asked for.
pub(super) fn stretch_of(waiters: &[Waiter]) -> u64 {
    let fits = |stretch: u64| {
        let busy = waiters.iter().fold(0u64, |busy, waiter| busy.saturating_add(waiter.share(stretch)));
        busy <= WHOLE
    };
    let (mut low, mut high) = (1000, 1000);
    while !fits(high) {
        low = high;
        high = high.checked_mul(2).expect("who waits for long enough asks for little");
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        *(if fits(middle) { &mut high } else { &mut low }) = middle;
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_summed_before_they_are_cut() {
        // Each takes 1 us at least, of which its lines take 1 ns of the node's time: 1000 fit, and twice as many wait
        // for twice as long. With so few lines (10 ps in 1 us) that is a stretch of more than 1000.
        let waiter = Waiter { least: 1, rest: 1_000_000 - 10, latency: 10, delivery: 1_000 * 1024 };
        let stretch = |count: usize| stretch_of(&vec![waiter; count]);
        assert_eq!([stretch(0), stretch(1), stretch(1000)], [1000; 3]);
        assert!(stretch(1010).abs_diff(1000 * 1001) <= 200, "{}", stretch(1010));
        assert!(stretch(2000).abs_diff(1000 * 100_001) <= 1000, "{}", stretch(2000));
        assert!(stretch(8192).abs_diff(1000 * 719_201) <= 10_000, "{}", stretch(8192));
        // A thousand that use a 2000th each leave half of the node's time.
        let little = Waiter { delivery: 500 * 1024, ..waiter };
        assert_eq!(stretch_of(&vec![little; 1000]), 1000);
        assert_eq!(stretch_of(&vec![little; 2000]), 1000);
        assert!(stretch_of(&vec![little; 2002]) > 1000);
    }
}
