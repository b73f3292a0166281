//! The order in which a task touches a region: all of it, then all of it again, each time in a new order.

use super::BATCH_BYTES;
use units::{Prng, Ps};

/// A task's progress through an area.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    pub area: u32,
    batches: u32,
    /// Run time per batch.
    period: Ps,
    /// Run time until the next batch is touched.
    left: Ps,
    /// How many batches of this sweep are done.
    done: u32,
    /// Batch number `i` of the sweep is `(first + i * stride) % batches`.
    first: u32,
    stride: u32,
    random: Prng,
}

impl Sweep {
    pub fn new(area: u32, batches: u32, bytes_per_second: u64, random: Prng) -> Sweep {
        let period = Ps((u128::from(BATCH_BYTES) * 1_000_000_000_000 / u128::from(bytes_per_second)).max(1) as u64);
        let mut sweep = Sweep { area, batches, period, left: Ps::ZERO, done: 0, first: 0, stride: 1, random };
        sweep.begin();
        sweep
    }

    /// How much it touches in a second of run time.
    pub fn bytes_per_second(&self) -> u64 {
        (u128::from(BATCH_BYTES) * 1_000_000_000_000 / u128::from(self.period.0)) as u64
    }

    /// Draws an order: a stride that shares no divisor with the number of batches visits each batch once.
    fn begin(&mut self) {
        let batches = u64::from(self.batches);
        self.done = 0;
        self.first = self.random.below(batches) as u32;
        self.stride = 1 + self.random.below(batches) as u32;
        while gcd(self.stride, self.batches) != 1 {
            self.stride = self.stride % self.batches + 1;
        }
    }

    fn batch(&self, number: u32) -> u32 {
        ((u64::from(self.first) + u64::from(number) * u64::from(self.stride)) % u64::from(self.batches)) as u32
    }

    /// Advances by `spent` of run time, and calls `found` for the batches on the way that fault. `needs`: whether there
    /// may be any.
    pub fn advance(&mut self, spent: Ps, needs: bool, is_fault: impl Fn(u32) -> bool, mut found: impl FnMut(u32)) {
        if !needs {
            return self.skip(spent);
        }
        let mut spent = spent;
        while self.left <= spent {
            spent -= self.left;
            self.left = self.period;
            let batch = self.batch(self.done);
            if is_fault(batch) {
                found(batch);
            }
            self.done += 1;
            if self.done == self.batches {
                self.begin();
            }
        }
        self.left -= spent;
    }

    /// Advances where no batch can fault. Of whole sweeps only the position in the last one matters.
    fn skip(&mut self, spent: Ps) {
        if self.left > spent {
            self.left -= spent;
            return;
        }
        let spent = spent - self.left;
        let touched = 1 + spent.0 / self.period.0;
        self.left = Ps(self.period.0 - spent.0 % self.period.0);
        let done = u64::from(self.done) + touched;
        if done >= u64::from(self.batches) {
            self.begin();
        }
        self.done = (done % u64::from(self.batches)) as u32;
    }

    /// Run time until it reaches a batch that faults, or the end of this sweep.
    pub fn next(&self, is_fault: impl Fn(u32) -> bool) -> Ps {
        let steps = (self.done..self.batches).position(|number| is_fault(self.batch(number)));
        let steps = steps.unwrap_or((self.batches - self.done - 1) as usize) as u64;
        Ps(self.left.0 + steps * self.period.0)
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(batches: u32) -> Sweep {
        // A batch per microsecond.
        Sweep::new(0, batches, BATCH_BYTES * 1_000_000, Prng::stream(7, "test", u64::from(batches)))
    }

    #[test]
    fn a_sweep_touches_everything_once_and_the_next_one_in_another_order() {
        for batches in [1, 2, 12, 128, 1000] {
            let mut sweep = sweep(batches);
            let mut orders = Vec::new();
            for _ in 0..3 {
                let mut order = Vec::new();
                // The first batch is touched at once, each of the others a period later.
                let first = if orders.is_empty() { Ps::ZERO } else { Ps::from_ns(1000) };
                for number in 0..batches {
                    let spent = if number == 0 { first } else { Ps::from_ns(1000) };
                    sweep.advance(spent, true, |_| true, |batch| order.push(batch));
                }
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..batches));
                orders.push(order);
            }
            assert!(batches < 12 || orders[0] != orders[1] && orders[1] != orders[2]);
        }
    }

    #[test]
    fn the_next_fault_is_where_it_is_found() {
        let mut sweep = sweep(100);
        let only = |wanted: u32| move |batch: u32| batch == wanted;
        let mut found = 0;
        for wanted in [3, 97, 50, 50] {
            let mut spent = 0;
            loop {
                let next = sweep.next(only(wanted));
                let mut here = Vec::new();
                sweep.advance(next, true, only(wanted), |batch| here.push(batch));
                spent += next.0;
                if here == [wanted] {
                    found += 1;
                    break;
                }
                assert!(here.is_empty() && spent <= 200_000_000, "within two sweeps");
            }
        }
        assert_eq!(found, 4);
    }

    #[test]
    fn what_is_skipped_keeps_the_pace() {
        let mut walked = sweep(10);
        let mut skipped = walked.clone();
        walked.advance(Ps::from_ns(2500), true, |_| false, |_| ());
        skipped.advance(Ps::from_ns(2500), false, |_| false, |_| ());
        assert_eq!((walked.done, walked.left), (skipped.done, skipped.left));
        assert_eq!((walked.done, walked.left), (3, Ps::from_ns(500)));
        skipped.advance(Ps::from_ns(1_000_000), false, |_| false, |_| ());
        assert_eq!((skipped.done, skipped.left), (3, Ps::from_ns(500)));
    }
}
