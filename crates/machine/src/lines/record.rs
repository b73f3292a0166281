//! Which function touched which line, from where and how: what `perf c2c` samples, here counted.
//!
//! While nothing is recorded, an access that finds its line in the core's caches never reaches this module, because the
//! CPU's seat answers by itself. To record, every CPU gets a seat that finds nothing. Then each access takes the full
//! path, where it is written down.

use super::{Directory, MODIFIED, Seat};
use crate::profile::Frame;
use crate::topology::{Distance, Topology};
use sched::layout::{Line, Region};
use units::{CpuId, Ps, unlikely};

/// How a line is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Load,
    Store,
    /// A locked read-modify-write.
    Atomic,
    /// The taking of a lock in the line.
    Lock,
}

/// Where a line is when it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Supply {
    /// In this core's own caches or in flight to them; for a store, with no other holder.
    Here,
    /// Modified by another core: what perf calls a HITM.
    Modified(Distance),
    /// Clean, with the nearest copy at this distance; for a store, which takes the line from all sharers, the farthest
    /// copy.
    Shared(Distance),
    Memory,
}

/// What came of one access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub supply: Supply,
    /// How long it waited for earlier requests.
    pub queued: Ps,
    /// How long the core stalled in all: the wait and the line's way, less what the core hides.
    pub stall: Ps,
}

/// The accesses of one function to one line from one NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    pub loads: u64,
    pub stores: u64,
    pub atomics: u64,
    pub locks: u64,
    /// Modified lines fetched from another core of the same package, and from another package.
    pub hitm_local: u64,
    pub hitm_remote: u64,
    /// Clean lines fetched, or taken from their sharers, within the package, and from beyond it.
    pub clean_local: u64,
    pub clean_remote: u64,
    pub memory: u64,
    pub queued: Ps,
    pub stalled: Ps,
}

impl LineCounts {
    /// Lines that came from elsewhere.
    pub fn transfers(&self) -> u64 {
        self.hitm_local + self.hitm_remote + self.clean_local + self.clean_remote + self.memory
    }

    fn add(&mut self, access: Access, outcome: Outcome) {
        match access {
            Access::Load => self.loads += 1,
            Access::Store => self.stores += 1,
            Access::Atomic => self.atomics += 1,
            Access::Lock => self.locks += 1,
        }
        match outcome.supply {
            Supply::Here => {}
            Supply::Modified(Distance::Remote(_)) => self.hitm_remote += 1,
            Supply::Modified(_) => self.hitm_local += 1,
            Supply::Shared(Distance::Remote(_)) => self.clean_remote += 1,
            Supply::Shared(_) => self.clean_local += 1,
            Supply::Memory => self.memory += 1,
        }
        self.queued += outcome.queued;
        self.stalled += outcome.stall;
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &LineCounts) {
        self.loads += other.loads;
        self.stores += other.stores;
        self.atomics += other.atomics;
        self.locks += other.locks;
        self.hitm_local += other.hitm_local;
        self.hitm_remote += other.hitm_remote;
        self.clean_local += other.clean_local;
        self.clean_remote += other.clean_remote;
        self.memory += other.memory;
        self.queued += other.queued;
        self.stalled += other.stalled;
    }
}

/// A line and who touched it: one element for each function on each NUMA node, in the order of their first accesses.
#[derive(Clone, Debug)]
pub struct TouchedLine {
    pub line: Line,
    pub by: Vec<(Frame, u16, LineCounts)>,
}

/// All lines that were touched, in the order of their first accesses.
#[derive(Clone, Debug, Default)]
pub struct LineRecord {
    lines: Vec<TouchedLine>,
    /// The position in `lines` of each line, plus one; 0: not there.
    at: [Vec<u32>; Region::ALL.len()],
}

impl LineRecord {
    pub fn lines(&self) -> &[TouchedLine] {
        &self.lines
    }

    pub fn add(&mut self, line: Line, frame: Frame, node: u16, access: Access, outcome: Outcome) {
        let at = &mut self.at[line.region as usize];
        if at.len() <= line.index as usize {
            at.resize(line.index as usize + 1, 0);
        }
        let at = &mut at[line.index as usize];
        if *at == 0 {
            self.lines.push(TouchedLine { line, by: Vec::new() });
            *at = self.lines.len() as u32;
        }
        let by = &mut self.lines[*at as usize - 1].by;
        let known = by.iter().position(|(f, n, _)| (*f, *n) == (frame, node));
        let known = known.unwrap_or_else(|| {
            by.push((frame, node, LineCounts::default()));
            by.len() - 1
        });
        by[known].2.add(access, outcome);
    }
}

/// A core number that no core has: a seat with it finds no line.
const NOWHERE: u16 = u16::MAX - 1;

impl Directory {
    /// From now on no seat of [`Directory::seat`] finds a line in its caches, so that every access goes through
    /// [`Directory::watched`].
    pub fn blindfold(&mut self) {
        if self.true_seats.is_empty() {
            self.true_seats = self.seats.clone();
            for seat in self.seats.iter_mut() {
                // The row lies outside the table, so the fast paths find no way to this seat either.
                let (alone, row) = (MODIFIED | u32::from(NOWHERE), u32::MAX);
                *seat = Seat { alone, core: NOWHERE, row, mark: u16::MAX, bit: 0, whole: false, ..*seat };
            }
        }
    }

    /// The real seat of a CPU, whether seats are blindfolded or not.
    pub fn true_seat(&self, cpu: CpuId) -> Seat {
        let seats = if unlikely(!self.true_seats.is_empty()) { &self.true_seats } else { &self.seats };
        seats[cpu.index()]
    }

    /// Makes an access and says what came of it.
    pub fn watched(&mut self, topology: &Topology, access: Access, by: CpuId, line: Line, now: Ps) -> Outcome {
        let seat = self.true_seat(by);
        let supply = self.supply(topology, access, by, &seat, line);
        let before = self.queued;
        let stall = self.access(access, &seat, line, now);
        Outcome { supply, queued: self.queued - before, stall }
    }

    /// An idle CPU fetches a line that it monitors. No CPU stands still for it.
    pub fn fetch_watched(&mut self, watcher: &Seat, line: Line, now: Ps) {
        if !self.reads_here(watcher, line) {
            let stall = self.read_usual(watcher, line, now).unwrap_or_else(|| self.read(watcher, line, now));
            self.unwaited += stall;
        }
    }

    /// The same, and says what came of it.
    pub fn fetch_watched_and_tell(&mut self, topology: &Topology, watcher: CpuId, line: Line, now: Ps) -> Outcome {
        let seat = self.true_seat(watcher);
        let supply = self.supply(topology, Access::Load, watcher, &seat, line);
        self.fetch_watched(&seat, line, now);
        Outcome { supply, queued: Ps::ZERO, stall: Ps::ZERO }
    }

    /// Makes an access of any kind. Returns how long the core stalls.
    pub(super) fn access(&mut self, access: Access, by: &Seat, line: Line, now: Ps) -> Ps {
        match access {
            Access::Load => self.read(by, line, now),
            Access::Store => self.write(by, line, now),
            Access::Atomic => self.atomic(by, line, now),
            Access::Lock => self.lock(by, line, now),
        }
    }

    /// Where a line is for an access of this kind.
    fn supply(&self, topology: &Topology, access: Access, by: CpuId, seat: &Seat, line: Line) -> Supply {
        let away = |core: u16| topology.distance(self.berths.cpu(core), by);
        let Some(entry) = self.entry(line).filter(|entry| entry.holder & MODIFIED != 0 || entry.is_shared()) else {
            return Supply::Memory;
        };
        let owner = entry.owner();
        if entry.holder & MODIFIED != 0 {
            return if owner == seat.core { Supply::Here } else { Supply::Modified(away(owner)) };
        }
        if access == Access::Load && self.reads_here(seat, line) {
            return Supply::Here;
        }
        let first = line.index as usize * self.words;
        let in_set = |core: u16| {
            let (word, bit) = (core as usize / super::WORD, core as usize % super::WORD);
            self.sharers[line.region as usize][first + word] & 1 << bit != 0
        };
        let has = |&core: &u16| {
            let shares = if entry.has_set() { in_set(core) } else { core == owner || core == entry.second() };
            core != seat.core && shares
        };
        let others = self.berths.of_core.iter().copied().filter(has).map(away);
        match access {
            // The asking core's own last level cache answers if it has a copy; else the line's owner does, however near
            // other copies are.
            Access::Load => {
                let nearest = others.min().map(|nearest| if nearest <= Distance::Llc { nearest } else { away(owner) });
                nearest.map_or(Supply::Here, Supply::Shared)
            }
            _ => others.max().map_or(Supply::Here, Supply::Shared),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::{LATE, LINE, two_sockets_of};
    use crate::topology::{Numbering, from_synthetic};

    fn watch(d: &mut Directory, t: &Topology, access: Access, cpu: usize, at: u64) -> Outcome {
        d.watched(t, access, CpuId::new(cpu), LINE, Ps(LATE.0 * at))
    }

    #[test]
    fn what_is_here_modified_clean_or_in_memory_is_told_apart() {
        let topology = from_synthetic("pack:2 l3:1 core:4 pu:2", "test", Numbering::LinuxX86).expect("valid");
        let mut d = two_sockets_of(&topology);
        d.blindfold();
        let supply = |outcome: Outcome| outcome.supply;
        assert_eq!(supply(watch(&mut d, &topology, Access::Store, 0, 1)), Supply::Memory);
        assert_eq!(supply(watch(&mut d, &topology, Access::Store, 0, 2)), Supply::Here);
        assert_eq!(supply(watch(&mut d, &topology, Access::Load, 8, 3)), Supply::Here, "the sibling");
        assert_eq!(supply(watch(&mut d, &topology, Access::Load, 1, 4)), Supply::Modified(Distance::Llc));
        assert_eq!(supply(watch(&mut d, &topology, Access::Load, 2, 5)), Supply::Shared(Distance::Llc));
        assert_eq!(supply(watch(&mut d, &topology, Access::Load, 4, 6)), Supply::Shared(Distance::Remote(1)));
        assert_eq!(supply(watch(&mut d, &topology, Access::Atomic, 0, 7)), Supply::Shared(Distance::Remote(1)));
        assert_eq!(supply(watch(&mut d, &topology, Access::Lock, 5, 8)), Supply::Modified(Distance::Remote(1)));
    }

    #[test]
    fn a_clean_line_is_told_to_come_from_whom_its_way_is_charged() {
        // Two caches a package. The line is CPU 0's; CPU 4, in the other package, has a copy when CPU 6 asks, whose cache has none.
        let topology = from_synthetic("pack:2 l3:2 core:2 pu:1", "test", Numbering::AsListed).expect("valid");
        let mut d = two_sockets_of(&topology);
        d.blindfold();
        watch(&mut d, &topology, Access::Store, 0, 1);
        let far = watch(&mut d, &topology, Access::Load, 4, 2);
        assert_eq!(far.supply, Supply::Modified(Distance::Remote(1)));
        let other_cache = watch(&mut d, &topology, Access::Load, 6, 3);
        assert_eq!((other_cache.supply, other_cache.stall), (Supply::Shared(Distance::Remote(1)), far.stall));
        let same_cache = watch(&mut d, &topology, Access::Load, 7, 4);
        assert_eq!(same_cache.supply, Supply::Shared(Distance::Llc));
        assert!(same_cache.stall < other_cache.stall);
    }

    #[test]
    fn who_waits_behind_others_is_told_how_long() {
        let topology = from_synthetic("pack:2 l3:1 core:4 pu:2", "test", Numbering::LinuxX86).expect("valid");
        let mut d = two_sockets_of(&topology);
        d.blindfold();
        watch(&mut d, &topology, Access::Atomic, 3, 0);
        let queued: Vec<u64> =
            (0..3).map(|cpu| watch(&mut d, &topology, Access::Atomic, cpu, 1).queued.0 / 1000).collect();
        assert_eq!(queued, [0, 40, 80]);
    }

    #[test]
    fn counts_are_kept_by_line_function_and_node() {
        let mut record = LineRecord::default();
        let hitm = Outcome { supply: Supply::Modified(Distance::Remote(1)), queued: Ps(3), stall: Ps(7) };
        let here = Outcome { supply: Supply::Here, queued: Ps::ZERO, stall: Ps::ZERO };
        for (node, access, outcome) in
            [(0, Access::Load, hitm), (1, Access::Load, here), (0, Access::Store, here), (0, Access::Load, hitm)]
        {
            record.add(LINE, Frame::User, node, access, outcome);
        }
        let [touched] = record.lines() else { panic!("one line was touched") };
        assert_eq!(touched.by.len(), 2);
        let (_, node, counts) = &touched.by[0];
        assert_eq!((*node, counts.loads, counts.stores, counts.hitm_remote), (0, 2, 1, 2));
        assert_eq!((counts.queued, counts.stalled, counts.transfers()), (Ps(6), Ps(14), 2));
    }
}
