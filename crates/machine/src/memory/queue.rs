//! How long a node's lines take when more is asked of it than it delivers.

/// The whole of a node's time, in the units of [`Waiter::share`]. So fine that what is cut of 8192 CPUs' shares is no 10000th of it.
const WHOLE: u64 = 1 << 30;
/// So many parts a [`Waiter::delivery`] is cut into before it is divided by the time that it is a share of.
const FINER: u64 = WHOLE / 1024;

/// A CPU that has lines from the node, for 1000 cycles of its task's work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    /// Picoseconds that it takes at least.
    pub least: u64,
    /// Picoseconds that it takes beside what it waits for this node.
    pub rest: u64,
    /// What it waits for this node while nobody is in the way, picoseconds; more than none.
    pub latency: u64,
    /// What of the node's time its lines take: 1024ths of picoseconds.
    pub delivery: u64,
}

impl Waiter {
    /// Of the node's time, at such a stretch.
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
        // Each takes 1 us at least, of which its lines take the node 1 ns: 1000 fit, and twice as many wait for twice as long; for so few
        // lines, 10 ps in 1 us, that is a stretch beyond 1000 times.
        let waiter = Waiter { least: 1, rest: 1_000_000 - 10, latency: 10, delivery: 1_000 * 1024 };
        let stretch = |count: usize| stretch_of(&vec![waiter; count]);
        assert_eq!([stretch(0), stretch(1), stretch(1000)], [1000; 3]);
        assert!(stretch(1010).abs_diff(1000 * 1001) <= 200, "{}", stretch(1010));
        assert!(stretch(2000).abs_diff(1000 * 100_001) <= 1000, "{}", stretch(2000));
        assert!(stretch(8192).abs_diff(1000 * 719_201) <= 10_000, "{}", stretch(8192));
        // A thousand who use a 2000th each leave half of the node.
        let little = Waiter { delivery: 500 * 1024, ..waiter };
        assert_eq!(stretch_of(&vec![little; 1000]), 1000);
        assert_eq!(stretch_of(&vec![little; 2000]), 1000);
        assert!(stretch_of(&vec![little; 2002]) > 1000);
    }
}
