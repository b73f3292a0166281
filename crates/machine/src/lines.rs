//! The cache-line directory: which cores hold each line of kernel memory, and how long another core waits to get it.
//!
//! There is one entry per line. It names the last writer and the sharers, and says until when the line is in flight. A
//! read of a line that another core modified fetches it from there; a write takes it from every other holder. Requests
//! for one line queue up. This queue is the whole model of contention: no price depends on the number of CPUs.
//!
//! Modelled: the states modified and shared, per core (the two threads of a core share its caches). Absent: eviction,
//! so a line stays with its last users however much else they run; prefetching; load on the ring or mesh itself.

mod berths;
mod crowds;
mod disputed;
mod entry;
mod prices;
pub mod record;
mod table;
#[cfg(test)]
mod tests;
mod totals;
mod ways;

use crate::topology::{Cpu, Topology};
use berths::Berths;
use crowds::{Crowds, WHOLE};
use disputed::Disputed;
use entry::{Entry, Holder, MODIFIED, SPREAD, mark_of};
pub use prices::LinePrices;
use sched::layout::{Line, Region};
use table::{Table, fill, find};
pub use totals::LineTotals;
use units::{CpuId, Permille, Ps, Slots, prefetch, prefetch_lines};
use ways::{Fought, Places, Ways};

/// How many one-way trips of a lock's line a handover to a spinner takes: the holder's release, the spinner's look, its
/// claim. Test-and-set, ticket and queued spin locks and the kernel's mutex spinners all need these three. Queued locks
/// also touch the next waiter's own line, which is charged by itself.
const CONTENDED_HANDOVER: u64 = 3;

/// [Berths](Berths) per word of a sharer set.
const WORD: usize = 64;

/// Where a CPU stands in the cache hierarchy: what each of its accesses needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    /// [`Entry::holder`] of a line that only this CPU's core holds, modified.
    alone: Holder,
    /// The number of this CPU's core: its [berth](Berths).
    core: u16,
    /// The number of its last level cache.
    llc: u16,
    /// Where this CPU's row begins in the [table of ways](Ways).
    row: u32,
    /// What an entry contains when this core has the second copy ([`mark_of`]).
    mark: u16,
    /// `word` is the word of a sharer set that has this core's bit, and `bit` that bit. `near` has the bits, in that
    /// word, of all cores of this core's last level cache.
    word: u8,
    /// Whether that word has the bits of all cores of the last level cache.
    whole: bool,
    bit: u64,
    near: u64,
}

impl Seat {
    /// The number of this CPU's last level cache.
    #[inline]
    pub fn llc(&self) -> usize {
        usize::from(self.llc)
    }

    /// Whether a core shares this CPU's last level cache. Valid only if `whole`.
    #[inline(always)]
    fn is_near(&self, core: u16) -> bool {
        core as usize / WORD == self.word as usize && self.near >> (core as usize % WORD) & 1 != 0
    }
}

pub struct Directory {
    regions: [Table<Entry>; Region::ALL.len()],
    /// The sharer set of each line: `words` words, with one bit per core. It is meaningless, and never read, while the
    /// line's entry has no set ([`Entry::has_set`]).
    sharers: [Table<u64>; Region::ALL.len()],
    words: usize,
    berths: Berths,
    ways: Ways,
    prices: LinePrices,
    /// The shares of a load miss and of a store miss that the core cannot hide.
    read_stall: Permille,
    write_stall: Permille,
    fought: Fought,
    stalled: Ps,
    /// The part of `stalled` for which no CPU stood still: idle CPUs fetched these lines.
    unwaited: Ps,
    /// Time for which requests waited behind earlier ones. Complete only for accesses that take the full path.
    queued: Ps,
    /// Each CPU's seat. While accesses are recorded these are blindfolded, and `true_seats` has the real ones.
    seats: Slots<Seat>,
    /// The core of each CPU.
    cores: Slots<u16>,
    /// Empty unless accesses are recorded.
    true_seats: Slots<Seat>,
    /// The cores of each last level cache, `words` words each.
    llc_cores: Vec<u64>,
    /// Lines whose requests are answered in the order of simulated time, and, for lines with a queue, who waits near
    /// whom.
    disputed: Disputed,
    crowds: Crowds,
    /// A request that waits no longer than this concerns neither `disputed` nor `crowds`.
    patience: Ps,
}

/// Each kind of access is tried in three steps, each longer and rarer than the one before. The first, `_here`, is a few
/// instructions inlined at every access: is the line in this core's caches? The second handles one usual case, a line
/// that another core modified (`_usual`) or that others share (`_shared`), and returns `None` in any other case. The
/// third handles all cases. The last two return how long the core stalls.
impl Directory {
    pub fn new(topology: &Topology, prices: LinePrices, seed: u64) -> Directory {
        let berths = Berths::new(topology);
        let places = Places::new(topology, &berths);
        let words = berths.len().max(1).div_ceil(WORD);
        let berth = |cpu: &Cpu| berths.of_core[cpu.core as usize];
        let mut llc_cores = vec![0; topology.llcs().len() * words];
        for (_, cpu) in topology.cpus() {
            let core = berth(cpu) as usize;
            llc_cores[cpu.llc as usize * words + core / WORD] |= 1 << (core % WORD);
        }
        let seat = |cpu: &Cpu| {
            let (core, word) = (berth(cpu) as usize, berth(cpu) as usize / WORD);
            let own_llc = &llc_cores[cpu.llc as usize * words..][..words];
            Seat {
                alone: MODIFIED | Holder::from(berth(cpu)),
                core: berth(cpu),
                llc: cpu.llc,
                row: places.of_berth[core] as u32 * berths.len() as u32,
                mark: mark_of(berth(cpu)),
                word: word as u8,
                whole: own_llc.iter().enumerate().all(|(i, &cores)| i == word || cores == 0),
                bit: 1 << (core % WORD),
                near: own_llc[word],
            }
        };
        let ways = Ways::new(topology, &berths, &places, &prices, seed);
        let crowds = Crowds::new(topology, &berths, &prices);
        let disputed = Disputed::none(prices.disputed_from);
        let first = Region::ALL.map(|region| ways.address(Line { region, index: 0 }));
        Directory {
            regions: first.map(Table::new),
            sharers: first.map(Table::new),
            words,
            seats: topology.cpus().map(|(_, cpu)| seat(cpu)).collect(),
            cores: topology.cpus().map(|(_, cpu)| berth(cpu)).collect(),
            llc_cores,
            fought: Fought::new(&prices),
            read_stall: Permille::new(prices.read_stall),
            write_stall: Permille::new(prices.write_stall),
            patience: crowds.patience().min(disputed.patience(ways.near)),
            ways,
            disputed,
            crowds,
            prices,
            stalled: Ps::ZERO,
            unwaited: Ps::ZERO,
            queued: Ps::ZERO,
            true_seats: Slots::new(),
            berths,
        }
    }

    /// Host memory that the entries and sharer sets take. They double in size as higher line numbers are touched.
    pub fn bytes(&self) -> usize {
        let entries: usize = self.regions.iter().map(|table| table.capacity()).sum();
        let words: usize = self.sharers.iter().map(|table| table.capacity()).sum();
        entries * size_of::<Entry>() + words * size_of::<u64>()
    }

    #[inline]
    pub fn seat(&self, cpu: CpuId) -> Seat {
        self.seats[cpu.index()]
    }

    /// How long a line travels from the core of `from` to that of `to`; `None` if both CPUs are threads of one core.
    #[inline(always)]
    pub fn way_between(&self, from: CpuId, to: CpuId) -> Option<Ps> {
        let (from, core) = (self.cores[from.index()], self.cores[to.index()]);
        let known = || self.ways.known(from, &self.true_seat(to));
        (from != core).then(|| known().unwrap_or_else(|| self.ways.by_distance(from, core)))
    }

    #[inline(always)]
    fn entry(&self, line: Line) -> Option<&Entry> {
        self.regions[line.region as usize].get(line.index as usize)
    }

    /// The simulation is about to touch `LINES` lines, from `first` on: prefetches their entries into the host's cache.
    #[inline(always)]
    pub fn foresee<const LINES: usize>(&self, first: Line) {
        let entries = self.regions[first.region as usize].get(first.index as usize..);
        if let Some(entries) = entries.and_then(|entries| entries.first_chunk::<LINES>()) {
            prefetch(entries);
        }
    }

    /// The simulation is about to run `cpu`: prefetches its seat into the host's cache.
    #[inline(always)]
    pub fn foresee_seat(&self, cpu: CpuId) {
        prefetch_lines::<1, _>(&self.seats[cpu.index()]);
    }

    /// Whether a load finds the line in its core's caches.
    #[inline(always)]
    pub fn reads_here(&self, by: &Seat, line: Line) -> bool {
        match self.entry(line) {
            Some(entry) if entry.owner() == by.core => true,
            Some(entry) if entry.has_set() => {
                let word = line.index as usize * self.words + by.word as usize;
                self.sharers[line.region as usize].get(word).is_some_and(|sharers| sharers & by.bit != 0)
            }
            Some(entry) => entry.has_second(by.mark),
            None => false,
        }
    }

    /// A load of a line that another core modified and that is not in flight.
    #[inline(always)]
    pub fn read_usual(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let (entry, address) = find(&mut self.regions, line)?;
        if now < entry.free_at || entry.holder & MODIFIED == 0 {
            return None;
        }
        let way = self.ways.travel(address, entry.owner(), by)?;
        entry.share(by.mark);
        entry.occupy_short(now, way);
        Some(self.read_stalls(way))
    }

    /// The same for a line that may be in flight, with requests queued.
    #[inline(always)]
    pub fn read_queued(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let (entry, address) = find(&mut self.regions, line)?;
        if entry.holder & MODIFIED == 0 || entry.wait(now) > self.patience {
            return None;
        }
        let way = self.ways.travel(address, entry.owner(), by)?;
        entry.share(by.mark);
        let (wait, way) = entry.queue(now, way, self.crowds.handoff);
        Some(self.read_stalls(wait + way))
    }

    /// A load of a line that has a sharer set and may be in flight. Most loads of a search over a busy cache find their
    /// line in flight.
    #[inline(always)]
    pub fn read_shared(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let (entry, address) = find(&mut self.regions, line)?;
        let wait = entry.wait(now);
        if wait > self.patience || !entry.has_set() || !by.whole {
            return None;
        }
        let sharers =
            self.sharers[line.region as usize].get_mut(line.index as usize * self.words + by.word as usize)?;
        let clean = self.ways.clean?;
        let nearest = match *sharers & by.near {
            0 => {
                let way = self.ways.nearest(entry.owner(), by)?;
                entry.holder |= SPREAD;
                way
            }
            _ => clean,
        };
        *sharers |= by.bit;
        let way = self.ways.travel_from(nearest, address);
        Some(self.read_stalls(wait + way))
    }

    /// The same for a line with two holders: the third begins a sharer set.
    #[inline(always)]
    pub fn read_third(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let (entry, address) = find(&mut self.regions, line)?;
        let wait = entry.wait(now);
        if wait > self.patience || !entry.is_shared() || entry.has_set() || !by.whole {
            return None;
        }
        let (owner, second) = (entry.owner(), entry.second());
        let near = [owner, second].map(|core| by.is_near(core));
        let way = if near[0] || near[1] { self.prices.llc_hit } else { self.ways.known(owner, by)? };
        if owner == second {
            entry.share(by.mark);
        } else {
            let first = line.index as usize * self.words;
            let sharers = self.sharers[line.region as usize].get_mut(first..first + self.words)?;
            entry.begin_set(near != [true; 2]);
            fill(sharers, [owner, second, by.core]);
        }
        let way = self.ways.by_slice(address, way);
        Some(self.read_stalls(wait + way))
    }

    /// A load, in any case.
    pub fn read(&mut self, by: &Seat, line: Line, now: Ps) -> Ps {
        if self.reads_here(by, line) {
            return Ps::ZERO;
        }
        self.reach(line);
        let own_llc = &self.llc_cores[by.llc as usize * self.words..][..self.words];
        let is_near = |core: u16| own_llc[core as usize / WORD] >> (core as usize % WORD) & 1 != 0;
        let entry = &mut self.regions[line.region as usize][line.index as usize];
        let owner = entry.owner();
        let was_shared = entry.is_shared();
        let crowded = self.crowds.is_crowded(entry, by, now);
        let way = if entry.holder & MODIFIED != 0 {
            entry.share(by.mark);
            let way = self.ways.between(owner, by);
            if crowded { self.crowds.nearest(line, by, now, way, &self.ways) } else { way }
        } else if entry.has_set() {
            let sharers = &mut self.sharers[line.region as usize][line.index as usize * self.words..][..self.words];
            let near = sharers.iter().zip(own_llc).any(|(s, o)| s & o != 0);
            sharers[by.word as usize] |= by.bit;
            if near {
                self.prices.llc_hit
            } else {
                entry.holder |= SPREAD;
                self.ways.between(owner, by)
            }
        } else if was_shared {
            let second = entry.second();
            let near = [owner, second].map(is_near);
            if owner == second {
                entry.share(by.mark);
            } else {
                entry.begin_set(near != [true; 2]);
                let lines = self.regions[line.region as usize].len();
                let sharers = &mut self.sharers[line.region as usize];
                if sharers.len() < lines * self.words {
                    sharers.resize(lines * self.words, 0);
                }
                fill(&mut sharers[line.index as usize * self.words..][..self.words], [owner, second, by.core]);
            }
            if near[0] || near[1] { self.prices.llc_hit } else { self.ways.between(owner, by) }
        } else {
            entry.holder = Holder::from(by.core);
            entry.share(by.mark);
            self.prices.memory
        };
        let table = &mut self.regions[line.region as usize];
        let way = self.ways.by_slice(table.address(line.index), way);
        let entry = &mut table[line.index as usize];
        let (wait, way) = if was_shared { (entry.wait(now), way) } else { entry.queue(now, way, self.crowds.handoff) };
        if crowded {
            self.crowds.join(line, by, now, now + wait);
        }
        self.waited(line, wait, way);
        self.read_stalls(wait + way)
    }

    #[inline(always)]
    fn read_stalls(&mut self, stall: Ps) -> Ps {
        self.stalls(Ps(self.read_stall.of(stall.0)))
    }

    /// Whether this core alone holds the line and the line has arrived, so that a store takes no time.
    #[inline(always)]
    pub fn writes_here(&self, by: &Seat, line: Line, now: Ps) -> bool {
        self.entry(line).is_some_and(|entry| entry.holder == by.alone && now >= entry.free_at)
    }

    /// A plain store. Returns the part of the line's way that the store buffer does not hide.
    pub fn write(&mut self, by: &Seat, line: Line, now: Ps) -> Ps {
        if self.writes_here(by, line, now) {
            return Ps::ZERO;
        }
        let (wait, way) = self.take::<false>(by, line, now);
        self.write_stalls(wait + way)
    }

    #[inline(always)]
    pub fn write_usual(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let way = self.take_modified(by, line, now)?;
        Some(self.write_stalls(way))
    }

    /// The same for a line that others share.
    #[inline(always)]
    pub fn write_shared(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let (_, way) = self.take_shared::<false>(by, line, now)?;
        Some(self.write_stalls(way))
    }

    /// A store to a line that is in flight to this core, and to no other: the same path asked for it just before.
    #[inline(always)]
    pub fn write_awaited(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let entry = self.entry(line)?;
        let wait = entry.wait(now);
        if entry.holder != by.alone || wait > self.patience {
            return None;
        }
        self.ways.travelled += 1;
        self.ways.stayed += 1;
        Some(self.write_stalls(wait))
    }

    #[inline(always)]
    fn write_stalls(&mut self, stall: Ps) -> Ps {
        self.stalls(Ps(self.write_stall.of(stall.0)))
    }

    /// A locked read-modify-write: the core hides nothing of the wait.
    pub fn atomic(&mut self, by: &Seat, line: Line, now: Ps) -> Ps {
        if self.writes_here(by, line, now) {
            return Ps::ZERO;
        }
        let (wait, way) = self.take::<false>(by, line, now);
        self.stalls(wait + way)
    }

    /// A locked read-modify-write, or the taking of a lock, of a line that another core modified and that is not in
    /// flight.
    #[inline(always)]
    pub fn atomic_usual(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let way = self.take_modified(by, line, now)?;
        Some(self.stalls(way))
    }

    /// The same for a line that others share.
    #[inline(always)]
    pub fn atomic_shared(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let (_, way) = self.take_shared::<false>(by, line, now)?;
        Some(self.stalls(way))
    }

    /// Takes the lock on a line that others share and that may be in flight: code that tests a lock before it takes it
    /// has asked for the line just before.
    #[inline(always)]
    pub fn lock_shared(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let (wait, way) = self.take_shared::<true>(by, line, now)?;
        Some(self.taken(line, now, wait, way))
    }

    /// Takes a free lock if this core alone holds its line. Returns whether it did.
    #[inline(always)]
    pub fn locks_here(&mut self, by: &Seat, line: Line, now: Ps) -> bool {
        let Some(entry) = self.regions[line.region as usize].get_mut(line.index as usize) else { return false };
        let here = entry.holder == by.alone && now >= entry.free_at;
        if here {
            entry.busy_for = 0;
            entry.free_at = now;
        }
        here
    }

    /// Takes the lock on a line: waits for the lock's holder, then for the line. The lock is held until
    /// [`Directory::unlock`].
    pub fn lock(&mut self, by: &Seat, line: Line, now: Ps) -> Ps {
        if self.locks_here(by, line, now) {
            return Ps::ZERO;
        }
        let (wait, way) = self.take::<true>(by, line, now);
        self.taken(line, now, wait, way)
    }

    /// Marks the lock on a line as taken. The line came after `wait`, by a transfer of length `way`. Returns how long
    /// the core stalls.
    #[inline(always)]
    fn taken(&mut self, line: Line, now: Ps, wait: Ps, way: Ps) -> Ps {
        let entry = &mut self.regions[line.region as usize][line.index as usize];
        if wait == Ps::ZERO {
            entry.hold(now + way);
            return self.stalls(way);
        }
        // A waiter spins on its own copy. The holder's release invalidates that copy, the spinner fetches it again,
        // then claims it.
        let stall = wait + Ps(self.fought.way(way).0 * CONTENDED_HANDOVER);
        entry.last_until(now + stall);
        self.stalls(stall)
    }

    #[inline(always)]
    pub fn unlock(&mut self, line: Line, now: Ps) {
        self.regions[line.region as usize][line.index as usize].last_until(now);
    }

    /// Makes `by` the only holder of a line that another core modified and that is not in flight. Returns how long the
    /// line travels.
    #[inline(always)]
    fn take_modified(&mut self, by: &Seat, line: Line, now: Ps) -> Option<Ps> {
        let (entry, address) = find(&mut self.regions, line)?;
        if now < entry.free_at || entry.holder & MODIFIED == 0 {
            return None;
        }
        debug_assert_ne!(entry.holder, by.alone, "whoever has it here does not ask");
        let way = self.ways.travel(address, entry.owner(), by)?;
        entry.occupy_short(now, way);
        entry.holder = by.alone;
        Some(way)
    }

    /// The same for a line that others share; if `QUEUED`, also for one in flight. Returns how long the request waits
    /// for others, and how long the line then travels.
    #[inline(always)]
    fn take_shared<const QUEUED: bool>(&mut self, by: &Seat, line: Line, now: Ps) -> Option<(Ps, Ps)> {
        let (entry, address) = find(&mut self.regions, line)?;
        let late = if QUEUED { entry.wait(now) > self.patience } else { now < entry.free_at };
        if late || !entry.is_shared() || !by.whole {
            return None;
        }
        let outside = self.ways.outside?;
        let (owner, near) = (entry.owner(), by.is_near(entry.owner()));
        let way = if entry.has_set() {
            // A set has three cores at least, so two of them are others.
            if near && entry.holder & SPREAD == 0 { self.ways.near } else { outside }
        } else if !near || !by.is_near(entry.second()) {
            outside
        } else if owner != by.core || entry.second() != by.core {
            self.ways.near
        } else {
            Ps::ZERO
        };
        let way = self.ways.by_slice(address, way);
        entry.holder = by.alone;
        if !QUEUED {
            entry.occupy(now, way);
            return Some((Ps::ZERO, way));
        }
        let (wait, way) = entry.queue(now, way, WHOLE);
        self.queued += wait;
        Some((wait, way))
    }

    /// Makes `by` the only holder, in any case. Returns how long the request waits for others, and how long the line
    /// then travels.
    fn take<const LOCK: bool>(&mut self, by: &Seat, line: Line, now: Ps) -> (Ps, Ps) {
        self.reach(line);
        let table = &mut self.regions[line.region as usize];
        let address = table.address(line.index);
        let entry = &mut table[line.index as usize];
        let owner = entry.owner();
        let crowded = !LOCK && self.crowds.is_crowded(entry, by, now);
        let way = if entry.holder == by.alone {
            Ps::ZERO
        } else if entry.holder & MODIFIED != 0 {
            let way = self.ways.between(owner, by);
            if crowded { self.crowds.nearest(line, by, now, way, &self.ways) } else { way }
        } else if entry.is_shared() {
            let own_llc = &self.llc_cores[by.llc as usize * self.words..][..self.words];
            let is_near = |core: u16| own_llc[core as usize / WORD] >> (core as usize % WORD) & 1 != 0;
            let second = if entry.has_set() { owner } else { entry.second() };
            let near = is_near(owner) && is_near(second) && (!entry.has_set() || entry.holder & SPREAD == 0);
            match self.ways.outside {
                _ if !entry.has_set() && [owner, second] == [by.core; 2] => Ps::ZERO,
                Some(_) if near => self.ways.near,
                Some(outside) => outside,
                None if entry.has_set() => {
                    let sharers = &self.sharers[line.region as usize][line.index as usize * self.words..][..self.words];
                    self.ways.to_farthest(sharers, by)
                }
                None => {
                    let others = [owner, second].into_iter().filter(|&core| core != by.core);
                    others.map(|core| self.ways.between(core, by)).max().unwrap_or(Ps::ZERO)
                }
            }
        } else {
            self.prices.memory
        };
        let way = self.ways.by_slice(address, way);
        let (wait, way) = entry.queue(now, way, if LOCK { WHOLE } else { self.crowds.handoff });
        entry.holder = by.alone;
        if crowded {
            self.crowds.join(line, by, now, now + wait);
        }
        self.waited(line, wait, way);
        (wait, way)
    }

    #[inline(always)]
    fn reach(&mut self, line: Line) {
        if line.index as usize >= self.regions[line.region as usize].len() {
            self.grow(line);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, line: Line) {
        let grown = (line.index as usize + 1).next_power_of_two();
        self.regions[line.region as usize].resize(grown, Entry::UNTOUCHED);
    }

    #[inline(always)]
    fn stalls(&mut self, stall: Ps) -> Ps {
        self.stalled += stall;
        stall
    }
}
