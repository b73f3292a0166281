//! The cache-line directory: who holds each line of kernel memory, and what it costs somebody else to get it.
//!
//! One entry per line: the last writer, the cores that share it, and until when it is on its way. A read of a line that
//! another core modified moves it; a write takes it from everybody. Requests for one line queue up, which is all there is to
//! contention: no price depends on the number of CPUs.
//!
//! Modelled: states modified and shared, by core (the two threads of a core share its caches). Absent: eviction, so a line stays
//! with its last users however much they run; prefetching; the ring's or mesh's own load.

use crate::topology::{Cpu, Distance, Part, Topology};
use sched::layout::{Line, Region};
use units::{CpuId, Ps};

/// Who holds a line: the core that wrote last, or that read first, in the low half; whether it is [`MODIFIED`] or [`SHARED`]
/// above it. One word, because nearly every access asks for nothing else.
type Holder = u32;

/// The owner alone holds it.
const MODIFIED: Holder = 1 << 16;
/// Whoever is in the line's sharer set holds it.
const SHARED: Holder = 1 << 17;
/// Nobody has touched it yet: the owner is the number of no core.
const UNTOUCHED: Holder = u16::MAX as Holder;

/// What every access to a line looks at. Small: thousands of tasks have a dozen lines each.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Until when the line is being moved or its lock is held, and for how many picoseconds it has been by then, without a gap.
    free_at: Ps,
    busy_for: u32,
    holder: Holder,
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
    const UNTOUCHED: Entry = Entry { free_at: Ps::ZERO, busy_for: 0, holder: UNTOUCHED };

    #[inline(always)]
    fn owner(&self) -> u16 {
        self.holder as u16
    }

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
    /// In picoseconds, from each core to another one: `[seat.row + from]`.
    table: Vec<u32>,
    /// What serves in place of the table on machines for which it would be larger than [`LARGEST_TABLE`].
    topology: Option<Topology>,
    transfer: Vec<Ps>,
    /// How much nearer or farther than the mean a slice may be, in picoseconds; and how many such distances there are.
    slice_spread: u64,
    slices: u64,
    /// A transfer within one core, one within one last level cache, and the shortest one that leaves it.
    same: Ps,
    near: Ps,
    outside: Ps,
    /// What the seed makes of an address.
    salt: u64,
}

/// Entries: 4 MB.
const LARGEST_TABLE: usize = 1 << 20;

/// Where a CPU stands among the caches: what each of its accesses needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    /// How a line's holder reads that this CPU's core holds alone.
    alone: Holder,
    core: u16,
    /// Its last level cache.
    llc: u16,
    /// Where in the table of ways those to this CPU begin.
    row: u32,
}

/// Cores of one place are equally far from every core elsewhere, and from each other.
struct Places {
    /// The place of each core.
    of_core: Vec<u16>,
    /// One CPU of each.
    cpus: Vec<CpuId>,
    /// Between two cores of one place.
    within: Distance,
}

impl Places {
    fn new(topology: &Topology) -> Places {
        let clustered = topology.clusters().len() < topology.cores().len();
        // What tells cores apart, seen from others: last level cache, NUMA node and, where they hold several, cluster.
        let mut keys: Vec<(u16, u16, u16)> = Vec::new();
        let mut cpus = Vec::new();
        let place = |core: &Part| {
            let first = core.cpus.first().expect("a core has a CPU");
            let cpu = topology.cpu(first);
            let key = (cpu.llc, cpu.node, if clustered { cpu.cluster } else { 0 });
            let known = keys.iter().position(|&k| k == key);
            known.unwrap_or_else(|| {
                keys.push(key);
                cpus.push(first);
                keys.len() - 1
            }) as u16
        };
        let of_core = topology.cores().iter().map(place).collect();
        Places { of_core, cpus, within: if clustered { Distance::Cluster } else { Distance::Llc } }
    }

    /// From each core to each place, by `[place * cores + core]`.
    fn distances(&self, topology: &Topology) -> impl Iterator<Item = Distance> {
        let distance = |from: u16, to: usize| match from as usize == to {
            true => self.within,
            false => topology.distance(self.cpus[from as usize], self.cpus[to]),
        };
        (0..self.cpus.len()).flat_map(move |to| self.of_core.iter().map(move |&from| distance(from, to)))
    }
}

impl Ways {
    fn new(topology: &Topology, places: &Places, prices: &LinePrices, seed: u64) -> Ways {
        let fits = places.cpus.len() * places.of_core.len() <= LARGEST_TABLE;
        let way = |distance: Distance| prices.transfer[distance.index()].0 as u32;
        let near = prices.transfer[Distance::Llc.index()];
        let leaves = if topology.packages().len() > 1 { Distance::Remote(1) } else { Distance::Package };
        let slice_spread = near.0 * prices.slice_spread / 1000;
        Ways {
            table: if fits { places.distances(topology).map(way).collect() } else { Vec::new() },
            topology: (!fits).then(|| topology.clone()),
            transfer: prices.transfer.clone(),
            slice_spread,
            slices: 2 * slice_spread + 1,
            same: prices.transfer[Distance::Same.index()],
            near,
            outside: prices.transfer.get(leaves.index()).copied().unwrap_or(near),
            salt: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// From core `from` to another one, where `to` sits.
    #[inline(always)]
    fn between(&self, from: u16, to: Seat) -> Ps {
        match self.table.get(to.row as usize + from as usize) {
            Some(&way) => Ps(u64::from(way)),
            None => self.by_distance(from, to.core),
        }
    }

    #[cold]
    #[inline(never)]
    fn by_distance(&self, from: u16, to: u16) -> Ps {
        let topology = self.topology.as_ref().expect("a table holds the ways between all cores");
        let cpu = |core: u16| topology.cores()[core as usize].cpus.first().expect("a core has a CPU");
        self.transfer[topology.distance(cpu(from), cpu(to)).index()]
    }

    /// The way of a line, by where its slice is: every transfer passes there, whoever the ends are.
    #[inline(always)]
    fn by_slice(&self, line: Line, way: Ps) -> Ps {
        if way == Ps::ZERO {
            return way;
        }
        let address = (line.region as u64) << 32 | u64::from(line.index);
        let hash = (address ^ self.salt).wrapping_mul(0xff51_afd7_ed55_8ccd);
        // -spread ..= +spread.
        let offset = ((hash >> 32) * self.slices) >> 32;
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
    ways: Ways,
    totals: LineTotals,
    prices: LinePrices,
    /// The sharer set of each line, `words` words long, one bit for each core. Of a line that is not shared it means nothing.
    sharers: [Vec<u64>; Region::ALL.len()],
    words: usize,
    /// Of each CPU.
    seats: Vec<Seat>,
    /// The cores of each last level cache, `words` words each.
    llc_cores: Vec<u64>,
}

/// Who asks for a line, which one, and when.
#[derive(Clone, Copy)]
pub struct Request {
    pub by: Seat,
    pub line: Line,
    pub now: Ps,
}

/// Each kind of access comes in two: the usual cases in a few instructions, `None` for all others, and all cases. What they return
/// is how long the core stalls.
impl Directory {
    pub fn new(topology: &Topology, prices: LinePrices, seed: u64) -> Directory {
        let places = Places::new(topology);
        let cores = topology.cores().len();
        let seat = |cpu: &Cpu| {
            let row = places.of_core[cpu.core as usize] as usize * cores;
            Seat { alone: MODIFIED | Holder::from(cpu.core), core: cpu.core, llc: cpu.llc, row: row as u32 }
        };
        let words = cores.max(1).div_ceil(WORD);
        let mut llc_cores = vec![0; topology.llcs().len() * words];
        for (_, cpu) in topology.cpus() {
            llc_cores[cpu.llc as usize * words + cpu.core as usize / WORD] |= 1 << (cpu.core as usize % WORD);
        }
        Directory {
            regions: Default::default(),
            sharers: Default::default(),
            words,
            seats: topology.cpus().map(|(_, cpu)| seat(cpu)).collect(),
            llc_cores,
            ways: Ways::new(topology, &places, &prices, seed),
            prices,
            totals: LineTotals::default(),
        }
    }

    pub fn totals(&self) -> LineTotals {
        self.totals
    }

    #[inline]
    pub fn seat(&self, cpu: CpuId) -> Seat {
        self.seats[cpu.index()]
    }

    /// A load of a line that is held here already.
    #[inline(always)]
    pub fn read_usual(&mut self, Request { by, line, .. }: Request) -> Option<Ps> {
        let entry = self.regions[line.region as usize].get(line.index as usize)?;
        let here = entry.owner() == by.core || entry.holder & SHARED != 0 && self.shares(line, by.core);
        here.then_some(Ps::ZERO)
    }

    /// A load.
    pub fn read(&mut self, request: Request) -> Ps {
        if let Some(stall) = self.read_usual(request) {
            return stall;
        }
        let Request { by, line, now } = request;
        self.reach(line);
        let entry = &mut self.regions[line.region as usize][line.index as usize];
        let sharers = &mut self.sharers[line.region as usize][line.index as usize * self.words..][..self.words];
        let owner = entry.owner();
        let way = if entry.holder & MODIFIED != 0 {
            // The set was of no account; the owner is its first member.
            sharers.fill(0);
            sharers[owner as usize / WORD] |= 1 << (owner as usize % WORD);
            entry.holder = SHARED | Holder::from(owner);
            self.ways.between(owner, by)
        } else if entry.holder & SHARED != 0 {
            let own_llc = &self.llc_cores[by.llc as usize * self.words..][..self.words];
            let near = sharers.iter().zip(own_llc).any(|(s, o)| s & o != 0);
            if near { self.prices.llc_hit } else { self.ways.between(owner, by) }
        } else {
            entry.holder = SHARED | Holder::from(by.core);
            self.prices.memory
        };
        sharers[by.core as usize / WORD] |= 1 << (by.core as usize % WORD);
        let way = self.ways.by_slice(line, way);
        let wait = entry.queue(now, way);
        let stall = Ps((wait.0 + way.0) * self.prices.read_stall / 1000);
        self.count(stall)
    }

    /// A plain store: what the store buffer does not hide of the line's way.
    #[inline(always)]
    pub fn write_usual(&mut self, request: Request) -> Option<Ps> {
        let way = self.take_usual(request)?;
        Some(self.stalls(Ps(way.0 * self.prices.write_stall / 1000)))
    }

    /// A plain store.
    pub fn write(&mut self, request: Request) -> Ps {
        if let Some(stall) = self.write_usual(request) {
            return stall;
        }
        let (wait, way) = self.take(request);
        self.count(Ps((wait + way).0 * self.prices.write_stall / 1000))
    }

    /// A locked read-modify-write: nothing is hidden.
    #[inline(always)]
    pub fn atomic_usual(&mut self, request: Request) -> Option<Ps> {
        let way = self.take_usual(request)?;
        Some(self.stalls(way))
    }

    /// A locked read-modify-write.
    pub fn atomic(&mut self, request: Request) -> Ps {
        if let Some(stall) = self.atomic_usual(request) {
            return stall;
        }
        let (wait, way) = self.take(request);
        self.count(wait + way)
    }

    /// Takes a lock that nobody holds.
    #[inline(always)]
    pub fn lock_usual(&mut self, request: Request) -> Option<Ps> {
        let way = self.take_usual(request)?;
        if way == Ps::ZERO {
            let entry = &mut self.regions[request.line.region as usize][request.line.index as usize];
            entry.busy_for = 0;
            entry.free_at = request.now;
        }
        Some(self.stalls(way))
    }

    /// Takes the lock on a line: waits for its holder, then for the line. The lock is held until [`Directory::unlock`].
    pub fn lock(&mut self, request: Request) -> Ps {
        if let Some(stall) = self.lock_usual(request) {
            return stall;
        }
        let Request { line, now, .. } = request;
        let (wait, way) = self.take(request);
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

    /// Makes `by` the only holder of a line that it holds already, or that another core holds alone, while nobody is moving it.
    /// Returns how long it travels.
    #[inline(always)]
    fn take_usual(&mut self, Request { by, line, now }: Request) -> Option<Ps> {
        let entry = self.regions[line.region as usize].get_mut(line.index as usize)?;
        if now < entry.free_at || entry.holder & MODIFIED == 0 {
            return None;
        }
        if entry.holder == by.alone {
            return Some(Ps::ZERO);
        }
        let &way = self.ways.table.get(by.row as usize + entry.owner() as usize)?;
        let way = self.ways.by_slice(line, Ps(u64::from(way)));
        entry.free_at = now + way;
        entry.busy_for = way.0 as u32;
        entry.holder = by.alone;
        self.totals.transfers += 1;
        Some(way)
    }

    /// Makes `by` the only holder; returns how long it waits for others, and how long the line travels then.
    #[inline(always)]
    fn take(&mut self, Request { by, line, now }: Request) -> (Ps, Ps) {
        self.reach(line);
        let entry = &self.regions[line.region as usize][line.index as usize];
        let way = if entry.holder == by.alone {
            Ps::ZERO
        } else if entry.holder & MODIFIED != 0 {
            self.ways.between(entry.owner(), by)
        } else if entry.holder & SHARED != 0 {
            self.way_of_shared(by, line, entry.owner())
        } else {
            self.prices.memory
        };
        let way = self.ways.by_slice(line, way);
        let entry = &mut self.regions[line.region as usize][line.index as usize];
        let wait = entry.queue(now, way);
        entry.holder = by.alone;
        (wait, way)
    }

    /// A write goes as far as the farthest copy: as far as the last writer, or one step out of the own cache.
    #[inline(always)]
    fn way_of_shared(&self, by: Seat, line: Line, owner: u16) -> Ps {
        let sharers = &self.sharers[line.region as usize][line.index as usize * self.words..][..self.words];
        let own_llc = &self.llc_cores[by.llc as usize * self.words..][..self.words];
        let (mine, mut shared) = (by.core as usize, false);
        for (word, (sharers, own)) in sharers.iter().zip(own_llc).enumerate() {
            let others = if mine / WORD == word { sharers & !(1u64 << (mine % WORD)) } else { *sharers };
            if others & !own != 0 {
                let writer = if owner == by.core { self.ways.same } else { self.ways.between(owner, by) };
                return writer.max(self.ways.outside);
            }
            shared |= others != 0;
        }
        if shared { self.ways.near } else { Ps::ZERO }
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
        self.sharers[line.region as usize].resize(grown * self.words, 0);
    }

    /// Whether `core` is in the line's sharer set.
    #[inline(always)]
    fn shares(&self, line: Line, core: u16) -> bool {
        let core = core as usize;
        let word = self.sharers[line.region as usize][line.index as usize * self.words + core / WORD];
        word >> (core % WORD) & 1 == 1
    }

    fn count(&mut self, stall: Ps) -> Ps {
        self.totals.transfers += 1;
        self.stalls(stall)
    }

    #[inline(always)]
    fn stalls(&mut self, stall: Ps) -> Ps {
        self.totals.stalled += stall;
        stall
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Numbering, from_synthetic};

    fn two_sockets() -> (Vec<Seat>, Directory) {
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
        (directory.seats.clone(), directory)
    }

    fn line() -> Line {
        Line { region: Region::Rq, index: 3 }
    }

    fn ask(by: Seat, now: Ps) -> Request {
        Request { by, line: line(), now }
    }

    const LATE: Ps = Ps::from_ns(1_000_000);

    #[test]
    fn a_modified_line_is_fetched_once_and_then_shared() {
        let (seats, mut d) = two_sockets();
        assert_eq!(d.write(ask(seats[0], Ps::ZERO)), Ps(47_500));
        assert_eq!(d.write(ask(seats[0], LATE)), Ps::ZERO);
        assert_eq!(d.read(ask(seats[1], LATE)), Ps::from_ns(40));
        assert_eq!(d.read(ask(seats[1], LATE)), Ps::ZERO);
        // A third core of the socket finds it in the cache they share; one of the other socket does not.
        let later = LATE + Ps::from_ns(1000);
        assert_eq!(d.read(ask(seats[2], later)), Ps::from_ns(20));
        assert_eq!(d.read(ask(seats[4], later + later)), Ps::from_ns(118));
    }

    #[test]
    fn the_two_threads_of_a_core_share_its_lines() {
        let (seats, mut d) = two_sockets();
        d.write(ask(seats[0], Ps::ZERO));
        assert_eq!(d.read(ask(seats[8], LATE)), Ps::ZERO);
        assert_eq!(d.atomic(ask(seats[8], LATE)), Ps::ZERO);
    }

    #[test]
    fn a_write_reaches_as_far_as_the_farthest_copy() {
        let (seats, mut d) = two_sockets();
        d.write(ask(seats[0], Ps::ZERO));
        d.read(ask(seats[1], LATE));
        assert_eq!(d.atomic(ask(seats[0], LATE + LATE)), Ps::from_ns(40));
        d.read(ask(seats[5], Ps(3 * LATE.0)));
        assert_eq!(d.atomic(ask(seats[0], Ps(4 * LATE.0))), Ps::from_ns(118));
    }

    #[test]
    fn locked_increments_by_many_cores_queue_up() {
        let (seats, mut d) = two_sockets();
        d.atomic(ask(seats[3], Ps::ZERO));
        let stalls: Vec<u64> = (0..3).map(|c| d.atomic(ask(seats[c], LATE)).0 / 1000).collect();
        assert_eq!(stalls, [40, 80, 120]);
    }

    #[test]
    fn a_lock_is_waited_for_until_its_holder_lets_go() {
        let (seats, mut d) = two_sockets();
        d.lock(ask(seats[0], LATE));
        d.unlock(line(), LATE + Ps::from_ns(500));
        assert_eq!(d.lock(ask(seats[1], LATE + Ps::from_ns(200))), Ps::from_ns(300 + 3 * 40));
        d.unlock(line(), LATE + Ps::from_ns(900));
        // Whoever asked before the first holder had it does not wait for what is simulated already.
        assert_eq!(d.lock(ask(seats[1], LATE - Ps::from_ns(1))), Ps::ZERO);
    }
}
