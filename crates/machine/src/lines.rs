//! The cache-line directory: who holds each line of kernel memory, and what it costs somebody else to get it.
//!
//! One entry per line: the last writer, the cores that share it, and until when it is on its way. A read of a line that
//! another core modified moves it; a write takes it from everybody. Requests for one line queue up, which is all there is to
//! contention: no price depends on the number of CPUs.
//!
//! Modelled: states modified and shared, by core (the two threads of a core share its caches). Absent: eviction, so a line stays
//! with its last users however much they run; prefetching; the ring's or mesh's own load.

use crate::topology::{Distance, Topology};
use sched::layout::{Line, Region};
use units::{CpuId, Ps};

/// Nobody has touched the line yet.
const UNTOUCHED: u16 = u16::MAX;

#[derive(Clone, Debug)]
struct Entry {
    /// Until when the line is being moved or its lock is held, and for how many picoseconds it has been by then, without a gap.
    free_at: Ps,
    busy_for: u32,
    /// Cores 0 to 63 that share the line; the others' bits are in `Directory::more_sharers`.
    sharers: u64,
    /// The core that wrote last, or that read first.
    owner: u16,
    /// The owner alone holds it, modified.
    modified: bool,
}

/// One-way trips of a lock's line from a holder to a spinner: release, look, claim. (Test-and-set, ticket and queued spin locks
/// and the kernel's mutex spinners all need these three; queued ones touch the next waiter's own line besides.)
const CONTENDED_HANDOVER: u64 = 3;

/// Cores per word of a sharer set.
const WORD: usize = 64;

/// What each way a line can travel costs, indexed by [`Distance::index`]. Picoseconds.
#[derive(Clone, Debug)]
pub struct LinePrices {
    /// A modified line fetched from the cache of another core.
    pub transfer: Vec<Ps>,
    /// A clean line found in the own last level cache.
    pub llc_hit: Ps,
    /// A line nobody holds, from memory.
    pub memory: Ps,
    /// Share of a load miss that the core cannot hide behind other work, in permille.
    pub read_stall: u64,
    /// How much nearer or farther than the mean a line's slice of the last level cache may be, in permille of a transfer
    /// within one last level cache. Which slice a line lives in is a hash of its physical address: chance, by seed.
    pub slice_spread: u64,
    /// Share of a store miss that the store buffer does not hide, in permille.
    pub write_stall: u64,
}

impl Entry {
    /// Waits while the line is on its way to somebody else, then occupies it for `way`. A request that comes before the
    /// present busy time began is served at once: CPUs are simulated one path after the other, so it may come late here although
    /// it came early in simulated time.
    #[inline(always)]
    fn queue(&mut self, now: Ps, way: Ps) -> Ps {
        if now >= self.free_at {
            self.busy_for = way.0 as u32;
            self.free_at = now + way;
            return Ps::ZERO;
        }
        let wait = self.free_at - now;
        if wait.0 > u64::from(self.busy_for) {
            return Ps::ZERO;
        }
        self.free_at += way;
        self.busy_for = self.busy_for.saturating_add(way.0 as u32);
        wait
    }
}

/// How long a modified line travels between two cores, and how far its slice is.
struct Ways {
    transfer: Vec<Ps>,
    /// One CPU of each core.
    cpu_of_core: Vec<CpuId>,
    /// `[from * cores + to]` in picoseconds, on machines of up to [`MOST_TABLED`] cores: the way of nearly every miss.
    table: Vec<u32>,
    /// How much nearer or farther than the mean a slice may be, in picoseconds.
    slice_spread: u64,
    /// A transfer within one last level cache, and the shortest one that leaves it.
    near: u64,
    outside: Ps,
    seed: u64,
}

/// Who shares a line beside the core that wants it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Others {
    None,
    /// Cores of the same last level cache only.
    SameCache,
    Elsewhere,
}

/// A table of this many cores squared still fits a level-2 cache.
const MOST_TABLED: usize = 64;

impl Ways {
    fn new(topology: &Topology, prices: &LinePrices, seed: u64) -> Ways {
        let cpu_of_core: Vec<CpuId> =
            topology.cores().iter().map(|core| core.cpus.first().expect("a core has a CPU")).collect();
        let way = |&from: &CpuId, &to: &CpuId| prices.transfer[topology.distance(from, to).index()].0 as u32;
        let table = if cpu_of_core.len() <= MOST_TABLED {
            cpu_of_core.iter().flat_map(|from| cpu_of_core.iter().map(move |to| way(from, to))).collect()
        } else {
            Vec::new()
        };
        let near = prices.transfer[Distance::Llc.index()].0;
        let slice_spread = near * prices.slice_spread / 1000;
        let leaves = if topology.packages().len() > 1 { Distance::Remote(1) } else { Distance::Package };
        let outside = prices.transfer.get(leaves.index()).copied().unwrap_or(Ps(near));
        let transfer = prices.transfer.clone();
        Ways { transfer, cpu_of_core, table, slice_spread, near, outside, seed }
    }

    #[inline(always)]
    fn between(&self, topology: &Topology, from: u16, to: u16) -> Ps {
        let (from, to) = (from as usize, to as usize);
        if self.table.is_empty() {
            return self.transfer[topology.distance(self.cpu_of_core[from], self.cpu_of_core[to]).index()];
        }
        Ps(u64::from(self.table[from * self.cpu_of_core.len() + to]))
    }

    /// The way of a line, by where its slice is: every transfer passes there, whoever the ends are.
    #[inline(always)]
    fn by_slice(&self, line: Line, way: Ps) -> Ps {
        if self.slice_spread == 0 || way == Ps::ZERO {
            return way;
        }
        let address = (line.region as u64) << 32 | u64::from(line.index);
        let hash = (address ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        // -spread ..= +spread.
        let offset = ((hash >> 32) * (2 * self.slice_spread + 1)) >> 32;
        Ps((way.0 + offset).saturating_sub(self.slice_spread))
    }
}

/// How a line's way was spent, for the table of hot lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineTotals {
    pub transfers: u64,
    pub stalled: Ps,
}

pub struct Directory {
    regions: [Vec<Entry>; Region::ALL.len()],
    /// On machines of more than 64 cores the rest of the sharer sets, `more_words` for each entry of a region.
    more_sharers: [Vec<u64>; Region::ALL.len()],
    more_words: usize,
    prices: LinePrices,
    /// Core and last level cache of each CPU; one CPU of each core.
    core: Vec<u16>,
    llc: Vec<u16>,
    ways: Ways,
    /// The cores of each last level cache, `1 + more_words` words each.
    llc_cores: Vec<u64>,
    totals: LineTotals,
}

impl Directory {
    pub fn new(topology: &Topology, prices: LinePrices, seed: u64) -> Directory {
        let core: Vec<u16> = topology.cpus().map(|(_, cpu)| cpu.core).collect();
        let llc = topology.cpus().map(|(_, cpu)| cpu.llc).collect();
        let cores = core.iter().max().map_or(1, |&c| c as usize + 1);
        let words = cores.div_ceil(WORD);
        let mut llc_cores = vec![0; topology.llcs().len() * words];
        for (_, cpu) in topology.cpus() {
            llc_cores[cpu.llc as usize * words + cpu.core as usize / WORD] |= 1 << (cpu.core as usize % WORD);
        }
        let ways = Ways::new(topology, &prices, seed);
        Directory {
            regions: Default::default(),
            more_sharers: Default::default(),
            more_words: words - 1,
            llc_cores,
            prices,
            core,
            llc,
            ways,
            totals: LineTotals::default(),
        }
    }

    pub fn totals(&self) -> LineTotals {
        self.totals
    }

    /// A load by `by` at `now`: how long the core stalls.
    #[inline]
    pub fn read(&mut self, topology: &Topology, by: CpuId, line: Line, now: Ps) -> Ps {
        let core = self.core[by.index()];
        if let Some(entry) = self.regions[line.region as usize].get(line.index as usize)
            && (entry.owner == core || !entry.modified && entry.owner != UNTOUCHED && self.shares(entry, line, core))
        {
            return Ps::ZERO;
        }
        self.read_miss(topology, by, line, now)
    }

    #[inline(never)]
    fn read_miss(&mut self, topology: &Topology, by: CpuId, line: Line, now: Ps) -> Ps {
        self.reach(line);
        let core = self.core[by.index()];
        let own_llc = self.llc_words(by);
        let at = line.index as usize * self.more_words;
        let more = &self.more_sharers[line.region as usize][at..at + self.more_words];
        let beyond = more.iter().zip(&own_llc[1..]).any(|(s, o)| s & o != 0);
        let first = own_llc[0];
        let entry = &mut self.regions[line.region as usize][line.index as usize];
        let way = if entry.owner == UNTOUCHED {
            self.prices.memory
        } else if !entry.modified && (entry.sharers & first != 0 || beyond) {
            self.prices.llc_hit
        } else {
            self.ways.between(topology, entry.owner, core)
        };
        let way = self.ways.by_slice(line, way);
        let wait = entry.queue(now, way);
        self.add_sharer(line, by);
        let stall = Ps((wait.0 + way.0) * self.prices.read_stall / 1000);
        self.count(stall)
    }

    /// A plain store by `by` at `now`: what the store buffer does not hide of the line's way.
    #[inline]
    pub fn write(&mut self, topology: &Topology, by: CpuId, line: Line, now: Ps) -> Ps {
        if self.holds(by, line, now) {
            return Ps::ZERO;
        }
        let full = self.own(topology, by, line, now);
        self.count(Ps(full.0 * self.prices.write_stall / 1000))
    }

    /// A locked read-modify-write: nothing is hidden.
    #[inline]
    pub fn atomic(&mut self, topology: &Topology, by: CpuId, line: Line, now: Ps) -> Ps {
        if self.holds(by, line, now) {
            return Ps::ZERO;
        }
        let full = self.own(topology, by, line, now);
        self.count(full)
    }

    /// Takes the lock on `line`: waits for its holder, then for the line. The lock is held until [`Directory::unlock`].
    #[inline]
    pub fn lock(&mut self, topology: &Topology, by: CpuId, line: Line, now: Ps) -> Ps {
        if self.holds(by, line, now) {
            let entry = &mut self.regions[line.region as usize][line.index as usize];
            entry.busy_for = 0;
            entry.free_at = now;
            return Ps::ZERO;
        }
        self.lock_miss(topology, by, line, now)
    }

    #[inline(never)]
    fn lock_miss(&mut self, topology: &Topology, by: CpuId, line: Line, now: Ps) -> Ps {
        let (wait, way) = self.take(topology, by, line, now);
        // Whoever waits spins on a copy: the holder's release must invalidate it, the spinner fetches it again, then claims it.
        let stall = if wait == Ps::ZERO { way } else { wait + Ps(way.0 * CONTENDED_HANDOVER) };
        let entry = &mut self.regions[line.region as usize][line.index as usize];
        let taken = now + stall;
        if taken > entry.free_at {
            let longer = (taken - entry.free_at).0 as u32;
            entry.busy_for = if wait == Ps::ZERO { 0 } else { entry.busy_for.saturating_add(longer) };
            entry.free_at = taken;
        }
        self.count(stall)
    }

    #[inline]
    pub fn unlock(&mut self, line: Line, now: Ps) {
        let entry = &mut self.regions[line.region as usize][line.index as usize];
        entry.busy_for = entry.busy_for.saturating_add(now.saturating_sub(entry.free_at).0 as u32);
        entry.free_at = entry.free_at.max(now);
    }

    /// Whether `by`'s core has the line to itself, modified, and nobody is in the middle of taking it.
    #[inline(always)]
    fn holds(&self, by: CpuId, line: Line, now: Ps) -> bool {
        let entry = self.regions[line.region as usize].get(line.index as usize);
        entry.is_some_and(|e| e.modified && e.owner == self.core[by.index()] && now >= e.free_at)
    }

    /// Makes `by` the only holder; returns the line's full way, waiting included.
    #[inline(never)]
    fn own(&mut self, topology: &Topology, by: CpuId, line: Line, now: Ps) -> Ps {
        let (wait, way) = self.take(topology, by, line, now);
        wait + way
    }

    /// Makes `by` the only holder; returns how long it waits for others, and how long the line travels then.
    #[inline(always)]
    fn take(&mut self, topology: &Topology, by: CpuId, line: Line, now: Ps) -> (Ps, Ps) {
        self.reach(line);
        let core = self.core[by.index()];
        let more = if self.more_words > 0 { self.others_beyond(by, line) } else { Others::None };
        let own_llc = self.llc_cores[self.llc[by.index()] as usize * (1 + self.more_words)];
        let entry = &mut self.regions[line.region as usize][line.index as usize];
        let way = if entry.modified {
            if entry.owner == core { Ps::ZERO } else { self.ways.between(topology, entry.owner, core) }
        } else if entry.owner == UNTOUCHED {
            self.prices.memory
        } else {
            let others = if (core as usize) < WORD { entry.sharers & !(1u64 << core) } else { entry.sharers };
            if others & !own_llc != 0 || more == Others::Elsewhere {
                // A write goes as far as the farthest copy: as far as the last writer, or one step out of the own cache.
                self.ways.between(topology, entry.owner, core).max(self.ways.outside)
            } else if others != 0 || more == Others::SameCache {
                Ps(self.ways.near)
            } else {
                Ps::ZERO
            }
        };
        let way = self.ways.by_slice(line, way);
        let wait = entry.queue(now, way);
        entry.owner = core;
        entry.modified = true;
        entry.sharers = if (core as usize) < WORD { 1 << core } else { 0 };
        if self.more_words > 0 {
            self.more(line).fill(0);
            self.set_sharer(line, core);
        }
        (wait, way)
    }

    /// Who shares a line among the cores beyond the first 64.
    fn others_beyond(&self, by: CpuId, line: Line) -> Others {
        let (core, own) = (self.core[by.index()] as usize, self.llc_words(by));
        let at = line.index as usize * self.more_words;
        let more = &self.more_sharers[line.region as usize][at..at + self.more_words];
        let mut found = Others::None;
        for (word, (sharers, own)) in more.iter().zip(&own[1..]).enumerate() {
            let mine = if core / WORD == word + 1 { 1u64 << (core % WORD) } else { 0 };
            let others = sharers & !mine;
            if others & !own != 0 {
                return Others::Elsewhere;
            }
            if others != 0 {
                found = Others::SameCache;
            }
        }
        found
    }

    /// The cores of `by`'s last level cache.
    fn llc_words(&self, by: CpuId) -> &[u64] {
        let words = 1 + self.more_words;
        &self.llc_cores[self.llc[by.index()] as usize * words..][..words]
    }

    #[inline(always)]
    fn reach(&mut self, line: Line) {
        if line.index as usize >= self.regions[line.region as usize].len() {
            self.grow(line);
        }
    }

    #[cold]
    fn grow(&mut self, line: Line) {
        let untouched = Entry { free_at: Ps::ZERO, busy_for: 0, sharers: 0, owner: UNTOUCHED, modified: false };
        let grown = (line.index as usize + 1).next_power_of_two();
        self.regions[line.region as usize].resize(grown, untouched);
        self.more_sharers[line.region as usize].resize(grown * self.more_words, 0);
    }

    /// The words of a line's sharer set beyond the first.
    #[inline]
    fn more(&mut self, line: Line) -> &mut [u64] {
        let at = line.index as usize * self.more_words;
        &mut self.more_sharers[line.region as usize][at..at + self.more_words]
    }

    #[inline]
    fn shares(&self, entry: &Entry, line: Line, core: u16) -> bool {
        let core = core as usize;
        let word = if core < WORD {
            entry.sharers
        } else {
            self.more_sharers[line.region as usize][line.index as usize * self.more_words + core / WORD - 1]
        };
        word >> (core % WORD) & 1 == 1
    }

    #[inline]
    fn set_sharer(&mut self, line: Line, core: u16) {
        let core = core as usize;
        if core < WORD {
            self.regions[line.region as usize][line.index as usize].sharers |= 1 << core;
        } else {
            self.more(line)[core / WORD - 1] |= 1 << (core % WORD);
        }
    }

    fn add_sharer(&mut self, line: Line, by: CpuId) {
        let core = self.core[by.index()];
        let entry = &mut self.regions[line.region as usize][line.index as usize];
        let owner = entry.owner;
        if owner == UNTOUCHED {
            entry.owner = core;
        } else if entry.modified {
            entry.modified = false;
            self.set_sharer(line, owner);
        }
        self.set_sharer(line, core);
    }

    fn count(&mut self, stall: Ps) -> Ps {
        self.totals.transfers += 1;
        self.totals.stalled += stall;
        stall
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Numbering, from_synthetic};

    fn two_sockets() -> (Topology, Directory) {
        let topology = from_synthetic("pack:2 l3:1 core:4 pu:2", "test", Numbering::LinuxX86).expect("valid");
        let transfer = [0, 8, 40, 40, 60, 118].map(Ps::from_ns).to_vec();
        let prices = LinePrices {
            transfer,
            llc_hit: Ps::from_ns(20),
            slice_spread: 0,
            memory: Ps::from_ns(95),
            read_stall: 1000,
            write_stall: 500,
        };
        let directory = Directory::new(&topology, prices, 1);
        (topology, directory)
    }

    fn line() -> Line {
        Line { region: Region::Rq, index: 3 }
    }

    const LATE: Ps = Ps::from_ns(1_000_000);

    #[test]
    fn a_modified_line_is_fetched_once_and_then_shared() {
        let (t, mut d) = two_sockets();
        assert_eq!(d.write(&t, CpuId(0), line(), Ps::ZERO), Ps(47_500));
        assert_eq!(d.write(&t, CpuId(0), line(), LATE), Ps::ZERO);
        assert_eq!(d.read(&t, CpuId(1), line(), LATE), Ps::from_ns(40));
        assert_eq!(d.read(&t, CpuId(1), line(), LATE), Ps::ZERO);
        // A third core of the socket finds it in the cache they share; one of the other socket does not.
        let later = LATE + Ps::from_ns(1000);
        assert_eq!(d.read(&t, CpuId(2), line(), later), Ps::from_ns(20));
        assert_eq!(d.read(&t, CpuId(4), line(), later + later), Ps::from_ns(118));
    }

    #[test]
    fn the_two_threads_of_a_core_share_its_lines() {
        let (t, mut d) = two_sockets();
        d.write(&t, CpuId(0), line(), Ps::ZERO);
        assert_eq!(d.read(&t, CpuId(8), line(), LATE), Ps::ZERO);
        assert_eq!(d.atomic(&t, CpuId(8), line(), LATE), Ps::ZERO);
    }

    #[test]
    fn a_write_reaches_as_far_as_the_farthest_copy() {
        let (t, mut d) = two_sockets();
        d.write(&t, CpuId(0), line(), Ps::ZERO);
        d.read(&t, CpuId(1), line(), LATE);
        assert_eq!(d.atomic(&t, CpuId(0), line(), LATE + LATE), Ps::from_ns(40));
        d.read(&t, CpuId(5), line(), Ps(3 * LATE.0));
        assert_eq!(d.atomic(&t, CpuId(0), line(), Ps(4 * LATE.0)), Ps::from_ns(118));
    }

    #[test]
    fn locked_increments_by_many_cores_queue_up() {
        let (t, mut d) = two_sockets();
        d.atomic(&t, CpuId(3), line(), Ps::ZERO);
        let stalls: Vec<u64> = (0..3).map(|c| d.atomic(&t, CpuId(c), line(), LATE).0 / 1000).collect();
        assert_eq!(stalls, [40, 80, 120]);
    }

    #[test]
    fn a_lock_is_waited_for_until_its_holder_lets_go() {
        let (t, mut d) = two_sockets();
        d.lock(&t, CpuId(0), line(), LATE);
        d.unlock(line(), LATE + Ps::from_ns(500));
        assert_eq!(d.lock(&t, CpuId(1), line(), LATE + Ps::from_ns(200)), Ps::from_ns(300 + 3 * 40));
        d.unlock(line(), LATE + Ps::from_ns(900));
        // Whoever asked before the first holder had it does not wait for what is simulated already.
        assert_eq!(d.lock(&t, CpuId(1), line(), LATE - Ps::from_ns(1)), Ps::ZERO);
    }
}
