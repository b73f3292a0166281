//! How tasks divide a last level cache that is too small for all that run there.
//!
//! A least-recently-used cache keeps every line for the same time after its last use, whoever used it. In this time a
//! task uses as many lines of its set as it asks for, at most all of them. So each task has room in proportion to the
//! lines that it asks for, up to its set, and room that a small set does not need goes to the others. A task that asks
//! for no lines while it runs, such as one that declares none, has no room; one that asks for few has little, however
//! big its set is.
//!
//! A task's misses are taken to be proportional to the part of its set that has no room: Intel's caches since Ivy
//! Bridge adapt, so that part of a set that is used sequentially survives even if the set does not fit.
//!
//! Modelled: lines per 1000 cycles of work, however long the cycles take.

use std::collections::BTreeMap;

/// What a task asks of a last level cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub llc: usize,
    /// The size of its working set.
    pub set: u64,
    /// Lines that it asks for in 1000 cycles.
    pub lines: u64,
}

/// A part of a set, in a memory where other sets may have parts as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    /// The number of the claim that it is a part of.
    pub claim: usize,
    pub memory: u32,
    /// The size of that memory.
    pub bytes: u64,
    pub part: u64,
}

/// Sets in one memory hold the same data where they add up to more than the memory: each is scaled down accordingly.
pub(super) fn join(claims: &mut [Claim], shared: &[Shared]) {
    // By cache and memory: the sum of the parts, and what it may be at most. A part that is bigger than its memory is
    // believed.
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

/// How many of the lines that each task asks its cache for are there, in thousandths. `room` has the size of each
/// cache.
pub(super) fn held(claims: &[Claim], room: &[u64]) -> Vec<u64> {
    let mut sets = vec![0; room.len()];
    for claim in claims.iter().filter(|claim| claim.lines > 0) {
        sets[claim.llc] += claim.set;
    }
    let mut held = vec![1000; claims.len()];
    let is_crowded = |claim: &Claim| claim.lines > 0 && sets[claim.llc] > room[claim.llc];
    let mut crowded: Vec<usize> = (0..claims.len()).filter(|&at| is_crowded(&claims[at])).collect();
    // The task that goes round its set fastest comes first.
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
                // The same then holds for all after it: none of them leaves room over either.
                held[at] = (has * 1000 / needed) as u64;
            }
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets and lines, in one cache of 16.
    fn in_16(of: &[(u64, u64)]) -> Vec<u64> {
        let claims: Vec<Claim> = of.iter().map(|&(set, lines)| Claim { llc: 0, set, lines }).collect();
        held(&claims, &[16])
    }

    #[test]
    fn room_goes_by_the_lines_that_each_asks_for_up_to_his_set() {
        assert_eq!(in_16(&[(8, 50), (8, 1)]), [1000, 1000]);
        assert_eq!(in_16(&[(8, 50); 4]), [500; 4]);
        // 16, shared in proportion to 2 and 1 of three lines.
        assert_eq!(in_16(&[(12, 2), (12, 1)]), [888, 444]);
        assert_eq!(in_16(&[(32, 1), (32, 1)]), [250; 2]);
        // The others get what the second does not need.
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
        // Parts of a big memory may be different ones; those of a memory that is only somewhat bigger must overlap.
        assert_eq!(sets(&[28; 4], &[0, 1, 2, 3].map(|at| (at, 5, 200, 28))), [28; 4]);
        assert_eq!(sets(&[28; 4], &[0, 1, 2, 3].map(|at| (at, 5, 56, 28))), [14; 4]);
        // Memories of their own, and then a part of each in a common one.
        assert_eq!(sets(&[28; 2], &[(0, 5, 28, 28), (1, 6, 28, 28)]), [28; 2]);
        assert_eq!(sets(&[28; 2], &[(0, 5, 14, 14), (1, 5, 14, 14), (0, 6, 14, 14), (1, 7, 14, 14)]), [21; 2]);
        // More than the memory has.
        assert_eq!(sets(&[28], &[(0, 5, 14, 28)]), [28]);
    }
}
