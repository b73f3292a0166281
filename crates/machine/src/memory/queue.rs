//! How far the latency of a piece of the way to memory stretches when more is asked of it than it delivers.

/// The whole of a piece's time, in the units of [`Queue::share`]. It is so fine that rounding down the shares of 8192
/// CPUs loses less than a 10000th of it.
const WHOLE: u64 = 1 << 30;
/// Scales a [`Waiter::delivery`], in 1024ths, so that dividing it by a time gives a share of [`WHOLE`].
const FINER: u64 = WHOLE / 1024;

/// A CPU that has lines from the piece, during 1000 cycles of its task's work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    /// The least time that the work can take, in picoseconds.
    pub least: u64,
    /// The time that it takes without its waits for this piece, in picoseconds.
    pub rest: u64,
    /// How much of the piece's time its lines take, in 1024ths of picoseconds.
    pub delivery: u64,
}

/// What a CPU waits for the lines that reach it by one way through the piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// Without contention, in picoseconds; more than 0.
    pub latency: u64,
    /// How far the other pieces of the way stretch that, in thousandths.
    pub stretch: u64,
}

/// All who wait for a piece.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Each with the number of its waits, which follow those of whoever came before.
    waiters: Vec<(Waiter, usize)>,
    waits: Vec<Wait>,
}

impl Queue {
    pub fn clear(&mut self) {
        self.waiters.clear();
        self.waits.clear();
    }

    pub fn join(&mut self, waiter: Waiter, waits: impl Iterator<Item = Wait>) {
        let before = self.waits.len();
        self.waits.extend(waits);
        self.waiters.push((waiter, self.waits.len() - before));
    }

    /// The share of the piece's time that all ask for at this stretch.
    fn share(&self, stretch: u64) -> u64 {
        let mut waits = self.waits.iter();
        self.waiters.iter().fold(0u64, |busy, &(Waiter { least, rest, delivery }, of)| {
            let own = waits.by_ref().take(of);
            let waiting = own.map(|wait| stretched(wait.latency, stretch.max(wait.stretch))).sum::<u64>();
            busy.saturating_add(delivery.saturating_mul(FINER) / least.max(rest + waiting))
        })
    }

    /// The least stretch of the latency, in thousandths, at which the piece delivers what it is asked for.
    pub fn stretch(&self) -> u64 {
        let fits = |stretch: u64| self.share(stretch) <= WHOLE;
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
}

/// A latency at a stretch in thousandths.
pub(super) fn stretched(latency: u64, stretch: u64) -> u64 {
    latency.saturating_mul(stretch) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITER: Waiter = Waiter { least: 1, rest: 1_000_000 - 10, delivery: 1_000 * 1024 };
    const WAIT: Wait = Wait { latency: 10, stretch: 1000 };

    fn queue(count: usize, waiter: Waiter, waits: &[Wait]) -> Queue {
        let mut queue = Queue::default();
        (0..count).for_each(|_| queue.join(waiter, waits.iter().copied()));
        queue
    }

    #[test]
    fn shares_are_summed_before_they_are_cut() {
        // Each takes 1 us at least, of which its lines take 1 ns of the piece's time: 1000 fit, and twice as many wait
        // for twice as long. With so few lines (10 ps in 1 us) that is a stretch of more than 1000.
        let stretch = |count: usize| queue(count, WAITER, &[WAIT]).stretch();
        assert_eq!([stretch(0), stretch(1), stretch(1000)], [1000; 3]);
        assert!(stretch(1010).abs_diff(1000 * 1001) <= 200, "{}", stretch(1010));
        assert!(stretch(2000).abs_diff(1000 * 100_001) <= 1000, "{}", stretch(2000));
        assert!(stretch(8192).abs_diff(1000 * 719_201) <= 10_000, "{}", stretch(8192));
        // A thousand that use a 2000th each leave half of the piece's time.
        let little = Waiter { delivery: 500 * 1024, ..WAITER };
        assert_eq!(queue(1000, little, &[WAIT]).stretch(), 1000);
        assert_eq!(queue(2000, little, &[WAIT]).stretch(), 1000);
        assert!(queue(2002, little, &[WAIT]).stretch() > 1000);
    }

    #[test]
    fn who_waits_for_another_piece_already_waits_for_this_one_in_that_time() {
        // 2000 ask for twice what there is. Half of them wait elsewhere for more than long enough; the others need not
        // wait here for more than what is left over.
        let elsewhere = |stretch: u64| {
            let mut queue = queue(1000, WAITER, &[WAIT]);
            (0..1000).for_each(|_| queue.join(WAITER, [Wait { stretch, ..WAIT }].into_iter()));
            queue.stretch()
        };
        let alone = queue(2000, WAITER, &[WAIT]).stretch();
        assert_eq!(elsewhere(1000), alone);
        assert!(elsewhere(alone).abs_diff(alone) <= 1000, "{} {alone}", elsewhere(alone));
        // They take 4 us, and with that a quarter of the piece's time: three quarters are for the others' 1000 ns.
        assert!(elsewhere(1000 * 300_001).abs_diff(1000 * 33_334) <= 1000, "{}", elsewhere(1000 * 300_001));
        // Several waits of one CPU are waited for one after the other: two of a tenth of the latency stretch as far as
        // one of a fifth.
        let (tenth, fifth) = (Wait { latency: 1, ..WAIT }, Wait { latency: 2, ..WAIT });
        assert_eq!(queue(2000, WAITER, &[tenth, tenth]).stretch(), queue(2000, WAITER, &[fifth]).stretch());
    }
}
