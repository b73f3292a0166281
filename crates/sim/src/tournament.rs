//! Which CPU is next: a winner tree over one key per CPU.
//!
//! Each CPU has exactly one pending time. The tree keeps, at every inner node, the CPU with the smaller time below it, so the
//! next CPU is read at the root and a change costs one walk up. Ties go to the lower CPU number.

use units::{CpuId, Ps};

#[derive(Clone, Debug)]
pub struct Tournament {
    keys: Vec<u64>,
    /// Winners of the inner nodes, root at 1; node `i` has children `2i` and `2i + 1`, leaves start at `leaves`.
    winner: Vec<u16>,
    leaves: usize,
}

impl Tournament {
    /// All CPUs at [`Ps::NEVER`].
    pub fn new(nr_cpus: usize) -> Tournament {
        let leaves = nr_cpus.next_power_of_two().max(2);
        let mut tree = Tournament { keys: vec![u64::MAX; leaves], winner: vec![0; leaves], leaves };
        for node in (1..leaves).rev() {
            tree.winner[node] = tree.left_winner(node);
        }
        tree
    }

    fn left_winner(&self, node: usize) -> u16 {
        let left = 2 * node;
        if left >= self.leaves { (left - self.leaves) as u16 } else { self.winner[left] }
    }

    #[inline]
    pub fn get(&self, cpu: CpuId) -> Ps {
        Ps(self.keys[cpu.index()])
    }

    /// Sets `cpu`'s time.
    #[inline]
    pub fn set(&mut self, cpu: CpuId, at: Ps) {
        let index = cpu.index();
        if self.keys[index] == at.0 {
            return;
        }
        self.keys[index] = at.0;
        let mut node = (index + self.leaves) / 2;
        // The lowest inner nodes compare two leaves, the others two winners.
        let left = index & !1;
        let mut best = self.earlier(left, left + 1);
        self.winner[node] = best as u16;
        while node > 1 {
            let other = self.winner[node ^ 1] as usize;
            best = self.earlier(best, other);
            node /= 2;
            self.winner[node] = best as u16;
        }
    }

    /// Of two CPUs the one that is first. Without a branch: which of two unrelated CPUs is first cannot be predicted.
    #[inline]
    fn earlier(&self, a: usize, b: usize) -> usize {
        let (x, y) = (self.keys[a], self.keys[b]);
        let b_first = (y < x) | ((y == x) & (b < a));
        let mask = (b_first as usize).wrapping_neg();
        a ^ ((a ^ b) & mask)
    }

    /// The next CPU and its time, or `None` if nothing is pending anywhere.
    #[inline]
    pub fn next(&self) -> Option<(CpuId, Ps)> {
        let cpu = self.winner[1];
        let at = self.keys[cpu as usize];
        (at != u64::MAX).then_some((CpuId(cpu), Ps(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Prng;

    #[test]
    fn agrees_with_a_linear_scan_on_random_changes() {
        for nr_cpus in [1, 2, 3, 8, 48, 65] {
            let mut tree = Tournament::new(nr_cpus);
            let mut keys = vec![u64::MAX; nr_cpus];
            let mut random = Prng::stream(1, "tournament", nr_cpus as u64);
            for _ in 0..5_000 {
                let cpu = random.below(nr_cpus as u64) as usize;
                // Few distinct values: ties must go to the lower number.
                let key = if random.below(5) == 0 { u64::MAX } else { random.below(9) };
                keys[cpu] = key;
                tree.set(CpuId::new(cpu), Ps(key));
                let expected = keys.iter().enumerate().min_by_key(|&(i, k)| (*k, i));
                let expected = expected.filter(|&(_, &k)| k != u64::MAX).map(|(i, &k)| (CpuId::new(i), Ps(k)));
                assert_eq!(tree.next(), expected);
            }
        }
    }
}
