//! Who has how much of a last level cache that is too small for all who run there.
//!
//! A cache that gives up the line that was asked for longest ago keeps all for the same time, whoever asked. In this time a task comes to as
//! many lines of its set as it asks for in it, or to all of them: so each has room in proportion to the lines that it asks for, up to its set,
//! and what somebody's set leaves of that is the others'. A task that asks for none while it runs, as one that says nothing of its
//! lines, has none; one that asks for few has little, however big its set is.
//!
//! What somebody has no room for he is taken to miss in proportion: Intel's caches since Ivy Bridge adapt so that a part of a set survives that is
//! gone through in a row and does not fit.
//!
//! Modelled: lines in 1000 cycles of work, whatever the cycles take.

use std::collections::BTreeMap;

/// What a task has in a last level cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub llc: usize,
    /// Bytes that it goes through again and again.
    pub set: u64,
    /// Lines that it asks for in 1000 cycles.
    pub lines: u64,
}

/// A part of a set, in a memory that others may have parts of theirs in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    /// Whose: a number of a claim.
    pub claim: usize,
    pub memory: u32,
    /// Of that memory.
    pub bytes: u64,
    pub part: u64,
}

/// Sets in one memory hold the same data where they are more than that has together: each counts as much less.
pub(super) fn join(claims: &mut [Claim], shared: &[Shared]) {
    // By cache and memory: the parts together, and what they may come to. A part that is bigger than its memory is taken at its word.
    let mut all: BTreeMap<(usize, u32), (u64, u64)> = BTreeMap::new();
    for of in shared {
        let (parts, most) = all.entry((claims[of.claim].llc, of.memory)).or_default();
        *parts += of.part;
        *most = of.bytes.max(of.part).max(*most);
    }
    for of in shared {
        let (parts, most) = all[&(claims[of.claim].llc, of.memory)];
        if parts > most {
            let counts = u128::from(of.part) * u128::from(most) / u128::from(parts);
            claims[of.claim].set -= of.part - counts as u64;
        }
    }
}

/// How much of the lines that each asks its cache for that holds, in thousandths; the caches having such room.
pub(super) fn held(claims: &[Claim], room: &[u64]) -> Vec<u64> {
    let mut sets = vec![0; room.len()];
    for claim in claims.iter().filter(|claim| claim.lines > 0) {
        sets[claim.llc] += claim.set;
    }
    let mut held = vec![1000; claims.len()];
    let is_crowded = |claim: &Claim| claim.lines > 0 && sets[claim.llc] > room[claim.llc];
    let mut crowded: Vec<usize> = (0..claims.len()).filter(|&at| is_crowded(&claims[at])).collect();
    // Who comes round his set sooner is first.
    let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
    crowded.sort_by(|&one, &other| {
        let (one, other) = (claims[one], claims[other]);
        let round = product(one.set, other.lines).cmp(&product(other.set, one.lines));
        one.llc.cmp(&other.llc).then(round)
    });
    for here in crowded.chunk_by(|&one, &other| claims[one].llc == claims[other].llc) {
        let mut room = room[claims[here[0]].llc];
        let mut all_lines: u64 = here.iter().map(|&at| claims[at].lines).sum();
        for &at in here {
            let Claim { set, lines, .. } = claims[at];
            let (needed, has) = (product(set, all_lines), product(room, lines));
            if needed <= has {
                room -= set;
                all_lines -= lines;
            } else {
                // So it is for all behind him, who leave nothing of their room either.
                held[at] = (has * 1000 / needed) as u64;
            }
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets and lines in one cache of 16.
    fn in_16(of: &[(u64, u64)]) -> Vec<u64> {
        let claims: Vec<Claim> = of.iter().map(|&(set, lines)| Claim { llc: 0, set, lines }).collect();
        held(&claims, &[16])
    }

    #[test]
    fn room_goes_by_the_lines_that_each_asks_for_up_to_his_set() {
        assert_eq!(in_16(&[(8, 50), (8, 1)]), [1000, 1000]);
        assert_eq!(in_16(&[(8, 50); 4]), [500; 4]);
        // 16 among three lines.
        assert_eq!(in_16(&[(12, 2), (12, 1)]), [888, 444]);
        assert_eq!(in_16(&[(32, 1), (32, 1)]), [250; 2]);
        // What the first does not need is the others'.
        assert_eq!(in_16(&[(100, 1), (4, 50), (100, 2)]), [40, 1000, 80]);
    }

    #[test]
    fn who_asks_for_few_lines_takes_little_and_who_asks_for_none_nothing() {
        let beside = |lines: u64| in_16(&[(15, 50), (200, lines)])[0];
        assert_eq!(
            [beside(0), beside(1), beside(3), beside(4), beside(10), beside(50)],
            [1000, 1000, 1000, 987, 888, 533]
        );
    }

    #[test]
    fn each_cache_is_by_itself() {
        let claim = |llc, set| Claim { llc, set, lines: 3 };
        assert_eq!(held(&[claim(1, 8), claim(0, 8), claim(1, 8), claim(2, 9)], &[8, 8, 0]), [500, 1000, 500, 0]);
    }

    #[test]
    fn data_of_several_counts_once() {
        let sets = |sets: &[u64], shared: &[(usize, u32, u64, u64)]| -> Vec<u64> {
            let mut claims: Vec<Claim> =
                sets.iter().map(|&set| Claim { llc: set as usize % 2, set, lines: 1 }).collect();
            let shared = shared.iter().map(|&(claim, memory, bytes, part)| Shared { claim, memory, bytes, part });
            join(&mut claims, &shared.collect::<Vec<_>>());
            claims.iter().map(|claim| claim.set).collect()
        };
        // All of a memory of 28, in one cache and in another.
        assert_eq!(sets(&[28; 4], &[0, 1, 2, 3].map(|at| (at, 5, 28, 28))), [7; 4]);
        assert_eq!(sets(&[28, 28, 29], &[0, 1, 2].map(|at| (at, 5, 29, 28))), [14, 14, 29]);
        // Parts of a big one may be different ones; of one that is somewhat bigger they meet somewhere.
        assert_eq!(sets(&[28; 4], &[0, 1, 2, 3].map(|at| (at, 5, 200, 28))), [28; 4]);
        assert_eq!(sets(&[28; 4], &[0, 1, 2, 3].map(|at| (at, 5, 56, 28))), [14; 4]);
        // Memories of their own, and a part of each in one of both.
        assert_eq!(sets(&[28; 2], &[(0, 5, 28, 28), (1, 6, 28, 28)]), [28; 2]);
        assert_eq!(sets(&[28; 2], &[(0, 5, 14, 14), (1, 5, 14, 14), (0, 6, 14, 14), (1, 7, 14, 14)]), [21; 2]);
        // More than there is.
        assert_eq!(sets(&[28], &[(0, 5, 14, 28)]), [28]);
    }
}
