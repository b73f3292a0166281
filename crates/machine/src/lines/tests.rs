use super::*;
use crate::topology::{Distance, Numbering, from_synthetic};
use units::Prng;

fn prices() -> LinePrices {
    LinePrices {
        transfer: [0, 8, 40, 40, 60, 118].map(Ps::from_ns).to_vec(),
        llc_hit: Ps::from_ns(20),
        slice_spread: 0,
        memory: Ps::from_ns(95),
        read_stall: 1000,
        write_stall: 500,
    }
}

pub(super) fn two_sockets_of(topology: &Topology) -> Directory {
    Directory::new(topology, prices(), 1)
}

fn two_sockets() -> (Vec<Seat>, Directory) {
    let topology = from_synthetic("pack:2 l3:1 core:4 pu:2", "test", Numbering::LinuxX86).expect("valid");
    let directory = two_sockets_of(&topology);
    (directory.seats.clone(), directory)
}

pub(super) const LINE: Line = Line { region: Region::Rq, index: 3 };
pub(super) const LATE: Ps = Ps::from_ns(1_000_000);

#[test]
fn a_modified_line_is_fetched_once_and_then_shared() {
    let (seats, mut d) = two_sockets();
    assert_eq!(d.write(&seats[0], LINE, Ps::ZERO), Ps(47_500));
    assert_eq!(d.write(&seats[0], LINE, LATE), Ps::ZERO);
    assert_eq!(d.read(&seats[1], LINE, LATE), Ps::from_ns(40));
    assert_eq!(d.read(&seats[1], LINE, LATE), Ps::ZERO);
    // A third core of the socket finds it in the cache they share; one of the other socket does not.
    let later = LATE + Ps::from_ns(1000);
    assert_eq!(d.read(&seats[2], LINE, later), Ps::from_ns(20));
    assert_eq!(d.read(&seats[4], LINE, later + later), Ps::from_ns(118));
}

#[test]
fn the_two_threads_of_a_core_share_its_lines() {
    let (seats, mut d) = two_sockets();
    d.write(&seats[0], LINE, Ps::ZERO);
    assert_eq!(d.read(&seats[8], LINE, LATE), Ps::ZERO);
    assert_eq!(d.atomic(&seats[8], LINE, LATE), Ps::ZERO);
}

#[test]
fn a_write_reaches_as_far_as_the_farthest_copy() {
    let (seats, mut d) = two_sockets();
    d.write(&seats[0], LINE, Ps::ZERO);
    d.read(&seats[1], LINE, LATE);
    assert_eq!(d.atomic(&seats[0], LINE, LATE + LATE), Ps::from_ns(40));
    d.read(&seats[5], LINE, Ps(3 * LATE.0));
    assert_eq!(d.atomic(&seats[0], LINE, Ps(4 * LATE.0)), Ps::from_ns(118));
}

#[test]
fn locked_increments_by_many_cores_queue_up() {
    let (seats, mut d) = two_sockets();
    d.atomic(&seats[3], LINE, Ps::ZERO);
    let stalls: Vec<u64> = (0..3).map(|c| d.atomic(&seats[c], LINE, LATE).0 / 1000).collect();
    assert_eq!(stalls, [40, 80, 120]);
}

#[test]
fn a_lock_is_waited_for_until_its_holder_lets_go() {
    let (seats, mut d) = two_sockets();
    d.lock(&seats[0], LINE, LATE);
    d.unlock(LINE, LATE + Ps::from_ns(500));
    assert_eq!(d.lock(&seats[1], LINE, LATE + Ps::from_ns(200)), Ps::from_ns(300 + 3 * 40));
    d.unlock(LINE, LATE + Ps::from_ns(900));
    // Whoever asked before the first holder had it does not wait for what is simulated already.
    assert_eq!(d.lock(&seats[1], LINE, LATE - Ps::from_ns(1)), Ps::ZERO);
}

/// An access as the machine makes it: the usual cases first.
fn access(d: &mut Directory, kind: u64, seat: &Seat, line: Line, now: Ps) -> Ps {
    match kind {
        READ if d.reads_here(seat, line) => Ps::ZERO,
        READ => d.read_usual(seat, line, now).unwrap_or_else(|| d.read(seat, line, now)),
        LOCK if d.locks_here(seat, line, now) => Ps::ZERO,
        LOCK => d.atomic_usual(seat, line, now).unwrap_or_else(|| d.lock(seat, line, now)),
        _ if d.writes_here(seat, line, now) => Ps::ZERO,
        WRITE => d.write_usual(seat, line, now).unwrap_or_else(|| d.write(seat, line, now)),
        _ => d.atomic_usual(seat, line, now).unwrap_or_else(|| d.atomic(seat, line, now)),
    }
}

/// The same by the longest path.
fn access_any(d: &mut Directory, kind: u64, seat: &Seat, line: Line, now: Ps) -> Ps {
    match kind {
        READ => d.read(seat, line, now),
        WRITE => d.write(seat, line, now),
        LOCK => d.lock(seat, line, now),
        _ => d.atomic(seat, line, now),
    }
}

const READ: u64 = 0;
const WRITE: u64 = 1;
const LOCK: u64 = 2;

/// What a line's directory entry says, told without economy: who has a copy is a list.
#[derive(Clone, Default)]
struct PlainLine {
    modified: bool,
    /// Whoever wrote last, or read first.
    owner: usize,
    copies: Vec<usize>,
    free_at: u64,
    busy_for: u64,
}

/// The same directory as a few rules, each as long as its sentence.
struct Plain<'a> {
    topology: &'a Topology,
    prices: &'a LinePrices,
    lines: Vec<PlainLine>,
    /// How far a line's slice is: the one thing taken from the other implementation.
    by_slice: &'a mut dyn FnMut(Line, Ps) -> Ps,
}

impl Plain<'_> {
    fn at(line: Line) -> usize {
        line.region as usize * 16 + line.index as usize
    }

    fn way(&self, from: usize, to: usize) -> u64 {
        let cpu = |core: usize| self.topology.cores()[core].cpus.first().expect("a core has a CPU");
        self.prices.transfer[self.topology.distance(cpu(from), cpu(to)).index()].0
    }

    fn llc(&self, core: usize) -> u16 {
        self.topology.cpu(self.topology.cores()[core].cpus.first().expect("a core has a CPU")).llc
    }

    /// Moves the line after those who asked before: what was waited, what it took.
    fn queue(&mut self, line: Line, now: u64, way: u64) -> (u64, u64) {
        let way = (self.by_slice)(line, Ps(way)).0;
        let this = &mut self.lines[Plain::at(line)];
        if now >= this.free_at {
            (this.free_at, this.busy_for) = (now + way, way);
            return (0, way);
        }
        let wait = this.free_at - now;
        if wait > this.busy_for {
            return (0, way);
        }
        this.free_at += way;
        this.busy_for += way;
        (wait, way)
    }

    fn read(&mut self, core: usize, line: Line, now: u64) -> u64 {
        let this = self.lines[Plain::at(line)].clone();
        if this.copies.contains(&core) {
            return 0;
        }
        let near = this.copies.iter().any(|&copy| self.llc(copy) == self.llc(core));
        let way = match this.copies.is_empty() {
            true => self.prices.memory.0,
            false if !this.modified && near => self.prices.llc_hit.0,
            false => self.way(this.owner, core),
        };
        let state = &mut self.lines[Plain::at(line)];
        if state.copies.is_empty() {
            state.owner = core;
        }
        state.modified = false;
        state.copies.push(core);
        let (wait, way) = self.queue(line, now, way);
        (wait + way) * self.prices.read_stall / 1000
    }

    /// Nobody else has it, and it is not on its way any more.
    fn writes_here(&self, core: usize, line: Line, now: u64) -> bool {
        let this = &self.lines[Plain::at(line)];
        this.modified && this.owner == core && now >= this.free_at
    }

    /// What a store waits, and how long the line travels.
    fn take(&mut self, core: usize, line: Line, now: u64) -> (u64, u64) {
        if self.writes_here(core, line, now) {
            return (0, 0);
        }
        let this = self.lines[Plain::at(line)].clone();
        let others: Vec<usize> = this.copies.iter().copied().filter(|&copy| copy != core).collect();
        let far = others.iter().any(|&copy| self.llc(copy) != self.llc(core));
        let outside = if self.topology.packages().len() > 1 { Distance::Remote(1) } else { Distance::Package };
        let same = if this.owner == core { self.prices.transfer[Distance::Same.index()].0 } else { 0 };
        let way = match others.is_empty() {
            true if this.copies.is_empty() => self.prices.memory.0,
            true => 0,
            false if this.modified => self.way(this.owner, core),
            false if far && this.owner == core => same.max(self.prices.transfer[outside.index()].0),
            false if far => self.way(this.owner, core).max(self.prices.transfer[outside.index()].0),
            false => self.prices.transfer[Distance::Llc.index()].0,
        };
        let state = &mut self.lines[Plain::at(line)];
        (state.modified, state.owner, state.copies) = (true, core, vec![core]);
        self.queue(line, now, way)
    }

    fn lock(&mut self, core: usize, line: Line, now: u64) -> u64 {
        if self.writes_here(core, line, now) {
            let this = &mut self.lines[Plain::at(line)];
            (this.free_at, this.busy_for) = (now, 0);
            return 0;
        }
        let (wait, way) = self.take(core, line, now);
        let stall = if wait == 0 { way } else { wait + 3 * way };
        let this = &mut self.lines[Plain::at(line)];
        if now + stall > this.free_at {
            this.busy_for = if wait == 0 { 0 } else { this.busy_for + (now + stall - this.free_at) };
            this.free_at = now + stall;
        }
        stall
    }

    fn unlock(&mut self, line: Line, now: u64) {
        let this = &mut self.lines[Plain::at(line)];
        this.busy_for += now.saturating_sub(this.free_at);
        this.free_at = this.free_at.max(now);
    }
}

#[test]
fn the_directory_comes_to_what_plain_rules_come_to() {
    // One word of sharers, two, last level caches whose cores spread over both, clusters; with and without the table of ways.
    for (shape, table) in [
        ("pack:2 l3:2 core:3 pu:2", true),
        ("pack:2 l3:2 core:32 pu:1", true),
        ("pack:3 l3:1 core:24 pu:1", true),
        ("pack:3 l3:1 core:24 pu:1", false),
        ("pack:1 l3:2 l2:3 core:4 pu:1", true),
    ] {
        let topology = from_synthetic(shape, "test", Numbering::LinuxX86).expect("valid");
        let prices = LinePrices { slice_spread: 250, read_stall: 800, ..prices() };
        let mut directory = Directory::new(&topology, prices.clone(), 1);
        let mut long = Directory::new(&topology, prices.clone(), 1);
        if !table {
            directory.ways.forget_table(&topology);
        }
        let mut ways = Ways::new(&topology, &Places::new(&topology), &prices, 1);
        let by_slice = &mut |line: Line, way: Ps| ways.by_slice(line, way);
        let lines = vec![PlainLine::default(); 16 * Region::ALL.len()];
        let mut plain = Plain { topology: &topology, prices: &prices, lines, by_slice };
        let mut random = Prng::stream(7, "lines", 0);
        let mut clock = 0;
        for step in 0..30_000 {
            // Time goes on, but not for all alike: some come late.
            clock += random.below(40_000);
            let cpu = CpuId::new(random.below(topology.nr_cpus() as u64) as usize);
            let (seat, core) = (directory.seat(cpu), topology.cpu(cpu).core as usize);
            let line = Line { region: Region::ALL[random.below(3) as usize], index: random.below(6) as u32 };
            let now = clock + random.below(200_000);
            let kind = random.below(5).saturating_sub(1);
            let expected = match kind {
                READ => plain.read(core, line, now),
                LOCK => plain.lock(core, line, now),
                _ => {
                    let (wait, way) = plain.take(core, line, now);
                    if kind == WRITE { (wait + way) * prices.write_stall / 1000 } else { wait + way }
                }
            };
            let found =
                [access(&mut directory, kind, &seat, line, Ps(now)), access_any(&mut long, kind, &seat, line, Ps(now))];
            assert_eq!(found, [Ps(expected); 2], "{shape}, step {step}: {cpu:?}, {line:?}, kind {kind}");
            if kind == LOCK {
                let until = now + expected + 5_000;
                plain.unlock(line, until);
                directory.unlock(line, Ps(until));
                long.unlock(line, Ps(until));
            }
        }
        assert_eq!(directory.totals(), long.totals(), "{shape}");
    }
}
