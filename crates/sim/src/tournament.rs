//! Which CPU is next: a winner tree over one key per CPU.
//!
//! Each CPU has exactly one pending time. Four meet in each round of the tournament; the first of them goes on to the next, so
//! the next CPU of all is known and a change costs one walk up. Ties go to the lower CPU number.

use std::hint::select_unpredictable;
use units::{CpuId, Ps};

/// A CPU and its time.
#[derive(Clone, Copy, Debug)]
struct Entrant {
    at: u64,
    cpu: u16,
}

/// Four who meet, those of lower CPU numbers first.
#[derive(Clone, Copy, Debug)]
struct Meeting {
    at: [u64; 4],
    cpu: [u16; 4],
}

#[derive(Clone, Debug)]
pub struct Tournament {
    /// The final, then its four semifinals, then their sixteen: those who win meeting `i` stand at place `(i - 1) % 4` of meeting
    /// `(i - 1) / 4`. From `first_round` on stand the CPUs themselves.
    meetings: Vec<Meeting>,
    first_round: usize,
    winner: Entrant,
}

impl Meeting {
    /// Of two the one that is first; `b` has the higher number. Without a branch: which of two unrelated CPUs is first cannot
    /// be predicted.
    #[inline(always)]
    fn earlier(a: Entrant, b: Entrant) -> Entrant {
        let b_first = b.at < a.at;
        Entrant { at: select_unpredictable(b_first, b.at, a.at), cpu: select_unpredictable(b_first, b.cpu, a.cpu) }
    }

    #[inline(always)]
    fn winner(&self) -> Entrant {
        let entrant = |place: usize| Entrant { at: self.at[place], cpu: self.cpu[place] };
        Meeting::earlier(Meeting::earlier(entrant(0), entrant(1)), Meeting::earlier(entrant(2), entrant(3)))
    }
}

impl Tournament {
    /// All CPUs at [`Ps::NEVER`].
    pub fn new(nr_cpus: usize) -> Tournament {
        let (mut first_round, mut width) = (0, 4);
        while width < nr_cpus {
            first_round = 4 * first_round + 1;
            width *= 4;
        }
        let meetings = vec![Meeting { at: [u64::MAX; 4], cpu: [0; 4] }; first_round + width / 4];
        Tournament { meetings, first_round, winner: Entrant { at: u64::MAX, cpu: 0 } }
    }

    #[inline]
    pub fn get(&self, cpu: CpuId) -> Ps {
        Ps(self.meetings[self.first_round + cpu.index() / 4].at[cpu.index() % 4])
    }

    /// Sets `cpu`'s time.
    #[inline]
    pub fn set(&mut self, cpu: CpuId, at: Ps) {
        let mut best = Entrant { at: at.0, cpu: cpu.0 };
        let (mut number, mut place) = (self.first_round + cpu.index() / 4, cpu.index() % 4);
        if self.meetings[number].at[place] == at.0 {
            return;
        }
        loop {
            let meeting = &mut self.meetings[number];
            meeting.at[place] = best.at;
            meeting.cpu[place] = best.cpu;
            best = meeting.winner();
            if number == 0 {
                break;
            }
            (number, place) = ((number - 1) / 4, (number - 1) % 4);
        }
        self.winner = best;
    }

    /// The next CPU and its time, or `None` if nothing is pending anywhere.
    #[inline]
    pub fn next(&self) -> Option<(CpuId, Ps)> {
        (self.winner.at != u64::MAX).then_some((CpuId(self.winner.cpu), Ps(self.winner.at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Prng;

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
                tree.set(CpuId::new(cpu), Ps(key));
                let expected = keys.iter().enumerate().min_by_key(|&(i, k)| (*k, i));
                let expected = expected.filter(|&(_, &k)| k != u64::MAX).map(|(i, &k)| (CpuId::new(i), Ps(k)));
                assert_eq!(tree.next(), expected);
            }
        }
    }
}
