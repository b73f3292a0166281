//! Which CPU is next: a winner tree with one key per CPU.
//!
//! Each CPU has exactly one pending time. In each round of the tournament two CPUs meet, and the earlier one goes on to
//! the next round. So the next CPU is always known, and a change costs one walk up the tree. Ties go to the lower CPU
//! number.
//!
//! A key is one word, so that a match is one comparison: the time since a reference, in picoseconds, above the CPU's
//! number. A time too far away for the word waits at the horizon, until nothing is nearer and the reference moves.

use units::{CpuId, NR_CPUS, Ps, Slots, unlikely};

/// Bits of a CPU's number.
const CPU_BITS: u32 = NR_CPUS.trailing_zeros();
/// The first time since the reference that a key cannot express: 2251 seconds.
const HORIZON: u64 = u64::MAX >> CPU_BITS;

/// The winner's key, to be read by [`Tournament::first`].
#[derive(Clone, Copy, Debug)]
pub struct Winner(u64);

#[derive(Clone, Debug)]
pub struct Tournament {
    /// Key 1 is the winner of the final, keys 2 and 3 are those of the semifinals: the winner at place `i` comes from
    /// places `2 i` and `2 i + 1`. The CPUs themselves are at the last places, from `first_round` on.
    keys: Slots<u64>,
    first_round: usize,
    /// The time from which the keys' times count.
    reference: u64,
    /// The exact time of each CPU.
    times: Slots<u64>,
}

impl Tournament {
    /// A tournament with all CPUs at [`Ps::NEVER`].
    pub fn new(nr_cpus: usize) -> Tournament {
        let first_round = nr_cpus.next_power_of_two();
        let mut tournament = Tournament {
            keys: (0..2 * first_round).map(|_| u64::MAX).collect(),
            first_round,
            reference: 0,
            times: (0..nr_cpus).map(|_| u64::MAX).collect(),
        };
        tournament.play_all();
        tournament
    }

    #[inline(always)]
    fn key(&self, cpu: CpuId, at: u64) -> u64 {
        (at - self.reference).min(HORIZON) << CPU_BITS | u64::from(cpu.0)
    }

    /// Sets `cpu`'s time. Returns the new winner: the run loop waits for nothing longer than for this, and reading back
    /// from memory what was just written would take more time. `often_same`: the time is often the one that is already
    /// set, so it is worth a test.
    #[inline]
    pub fn set(&mut self, cpu: CpuId, at: Ps, often_same: bool) -> Winner {
        self.times[cpu.index()] = at.0;
        if unlikely(at.0 < self.reference) {
            self.move_reference();
            return self.winner();
        }
        let mut key = self.key(cpu, at.0);
        let mut place = self.first_round + cpu.index();
        if often_same && self.keys[place] == key {
            return self.winner();
        }
        self.keys[place] = key;
        while place > 1 {
            // Branchless: which of two unrelated CPUs is first cannot be predicted.
            let rival = self.keys[place ^ 1];
            place /= 2;
            key = key.min(rival);
            self.keys[place] = key;
        }
        Winner(key)
    }

    #[inline]
    pub fn winner(&self) -> Winner {
        Winner(self.keys[1])
    }

    /// The next CPU and its time; `None` if nothing is pending anywhere. `winner` is the present winner.
    #[inline]
    pub fn first(&mut self, Winner(mut key): Winner) -> Option<(CpuId, Ps)> {
        debug_assert_eq!(key, self.keys[1], "somebody's time was set since");
        if unlikely(key >> CPU_BITS == HORIZON) {
            if !self.move_reference() {
                return None;
            }
            key = self.keys[1];
        }
        Some((CpuId((key % NR_CPUS as u64) as u16), Ps(self.reference + (key >> CPU_BITS))))
    }

    /// Whether `cpu` is now the next one.
    #[inline]
    pub fn is_first(&self, cpu: CpuId) -> bool {
        self.keys[1] % NR_CPUS as u64 == u64::from(cpu.0)
    }

    /// The winner of that part of the tournament, one of `2^parts` equal ones, in which `cpu` plays.
    #[inline(always)]
    pub fn winner_beside(&self, cpu: CpuId, parts: u32) -> CpuId {
        let place = self.first_round + cpu.index();
        let rounds = self.first_round.trailing_zeros().saturating_sub(parts);
        CpuId((self.keys[place >> rounds] % NR_CPUS as u64) as u16)
    }

    /// Moves the reference to the earliest of all times. Returns whether there is one.
    #[cold]
    #[inline(never)]
    fn move_reference(&mut self) -> bool {
        let first = self.times.iter().copied().min().unwrap_or(u64::MAX);
        if first == u64::MAX {
            return false;
        }
        self.reference = first;
        self.play_all();
        true
    }

    /// Plays all rounds anew.
    fn play_all(&mut self) {
        for cpu in 0..self.times.len() {
            self.keys[self.first_round + cpu] = self.key(CpuId::new(cpu), self.times[cpu]);
        }
        for place in (1..self.first_round).rev() {
            self.keys[place] = self.keys[2 * place].min(self.keys[2 * place + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Prng;

    #[test]
    fn times_beyond_the_horizon_are_told_apart_when_nothing_is_nearer() {
        let mut tree = Tournament::new(3);
        assert_eq!(tree.first(tree.winner()), None);
        let far = HORIZON * 5 / 2;
        for (cpu, at) in [far + 7, far + 5, far + 7].into_iter().enumerate() {
            tree.set(CpuId::new(cpu), Ps(at), false);
        }
        assert_eq!(tree.first(tree.winner()), Some((CpuId(1), Ps(far + 5))));
        // What waits at the horizon may be moved there.
        tree.set(CpuId(1), Ps(far + 2 * HORIZON), false);
        tree.set(CpuId(1), Ps(far + 3 * HORIZON), false);
        assert_eq!(tree.first(tree.winner()), Some((CpuId(0), Ps(far + 7))));
        tree.set(CpuId(0), Ps::NEVER, false);
        tree.set(CpuId(2), Ps::NEVER, false);
        assert_eq!(tree.first(tree.winner()), Some((CpuId(1), Ps(far + 3 * HORIZON))));
        tree.set(CpuId(1), Ps::NEVER, false);
        assert_eq!(tree.first(tree.winner()), None);
        tree.set(CpuId(2), Ps(far + 4 * HORIZON), false);
        assert_eq!(tree.first(tree.winner()), Some((CpuId(2), Ps(far + 4 * HORIZON))));
        // The reference has moved there, and yet something is set to happen before it.
        tree.set(CpuId(1), Ps(far), false);
        assert_eq!(tree.first(tree.winner()), Some((CpuId(1), Ps(far))));
    }

    #[test]
    fn parts_have_winners_of_their_own() {
        let mut tree = Tournament::new(6);
        for (cpu, at) in [60, 50, 40, 30, 20, 10].into_iter().enumerate() {
            tree.set(CpuId::new(cpu), Ps(at), false);
        }
        let winners = |parts| (0..6).map(|cpu| tree.winner_beside(CpuId(cpu), parts).0).collect::<Vec<u16>>();
        assert_eq!(winners(0), [5, 5, 5, 5, 5, 5]);
        assert_eq!(winners(1), [3, 3, 3, 3, 5, 5]);
        assert_eq!(winners(2), [1, 1, 3, 3, 5, 5]);
        // No part is smaller than one CPU.
        assert_eq!(winners(3), [0, 1, 2, 3, 4, 5]);
        assert_eq!(winners(9), winners(3));
    }

    #[test]
    fn agrees_with_a_linear_scan_on_random_changes() {
        for nr_cpus in [1, 2, 3, 4, 5, 16, 48, 65, 257] {
            let mut tree = Tournament::new(nr_cpus);
            let mut keys = vec![u64::MAX; nr_cpus];
            let mut random = Prng::stream(1, "tournament", nr_cpus as u64);
            for _ in 0..5_000 {
                let cpu = random.below(nr_cpus as u64) as usize;
                // Few distinct values: ties must go to the lower number.
                let key = if random.below(5) == 0 { u64::MAX } else { random.below(9) };
                keys[cpu] = key;
                tree.set(CpuId::new(cpu), Ps(key), random.below(2) == 0);
                let expected = keys.iter().enumerate().min_by_key(|&(i, k)| (*k, i));
                let expected = expected.filter(|&(_, &k)| k != u64::MAX).map(|(i, &k)| (CpuId::new(i), Ps(k)));
                assert_eq!(tree.first(tree.winner()), expected);
            }
        }
    }
}
