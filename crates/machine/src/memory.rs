//! What running tasks ask of the last level caches and of memory, and how much longer their work takes for it.
//!
//! A task that declares it fetches a number of lines from beyond its core's own caches in every 1000 cycles of its
//! work. How many of them the last level cache holds follows from the cache's size and the working sets of all tasks
//! that run there. The others come from memory, at the latency of the nodes where the task's memory lies. They pass a
//! few pieces of hardware that CPUs share (the last level cache's link, the links between two packages, the
//! node), of which each may have a limited bandwidth. When more is asked of a piece, the latencies of all ways through
//! it stretch until its users ask for no more than it delivers, so each waits in proportion to its misses. A way
//! stretches as far as the narrowest of its pieces demands.
//!
//! Modelled: averages over a segment of work, as if each task's misses were spread evenly. So latencies are those of an
//! idle machine until a piece is at its limit. Absent: queues below the limit, prefetching, writing back, and the
//! misses of kernel code.

mod path;
mod queue;
mod room;

use crate::prices::Prices;
use crate::topology::Topology;
use path::{Piece, path, pieces};
use queue::{Queue, Wait, Waiter, stretched};
use room::{Claim, Shared, held, join};
use units::{CpuId, Ps};

/// How often pieces' stretches are computed in turn. They depend on each other where ways have several pieces with a
/// limit, or tasks have memory on several nodes; after this many rounds they hardly change.
const ROUNDS: usize = 3;

/// How a task's work waits for the lines that it fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// It comes upon them here and there. It waits for as many at once as a core can fetch
    /// ([`Prices::refill_parallel`]), then works.
    #[default]
    Mixed,
    /// They are sequential and are prefetched, as many at once, while it works on earlier ones: the slower of the two
    /// sets the time.
    Ahead,
    /// Each line says where the next one is, so they come one at a time.
    Chained,
}

/// What a task's work fetches from beyond its core's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetches {
    /// Lines in 1000 cycles of work.
    pub lines: u32,
    /// Bytes that it uses again and again.
    pub working_set: u64,
    pub order: Order,
}

/// What a running task asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    pub fetches: Fetches,
    /// The nodes where its memory lies, each once, with their shares, which need not add up to anything. Empty: the
    /// node it runs on.
    pub nodes: Vec<(u16, u64)>,
    /// The memories that its set is a part of. Empty: a memory of its own.
    pub memories: Vec<InMemory>,
}

/// The part of a working set that lies in a memory where other sets may have parts as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InMemory {
    /// The memory's number, the same for all sets in it.
    pub memory: u32,
    /// The size of the whole memory.
    pub bytes: u64,
    /// The share of the set that lies there; shares need not add up to anything.
    pub share: u64,
}

/// The lines that a CPU has from one node.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Picoseconds of latency without contention.
    latency: u64,
    /// What they pass, with how much of each piece's time they take, in 1024ths of picoseconds.
    pieces: [Piece; 3],
}

impl Way {
    /// The pieces that have a limit.
    fn limited(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(|piece| piece.delivery > 0)
    }

    /// How far its latency stretches, in thousandths, where its pieces stretch as given, without the piece `but`.
    fn stretch(&self, stretch: &[u64], but: Option<usize>) -> u64 {
        let others = self.limited().filter(|piece| Some(piece.number) != but);
        others.map(|piece| stretch[piece.number]).fold(1000, u64::max)
    }

    fn delivery(&self, piece: usize) -> Option<u64> {
        self.limited().find(|of| of.number == piece).map(|of| of.delivery)
    }
}

/// One CPU's part of the calculation, for 1000 cycles of its task's work.
#[derive(Clone, Debug)]
struct Asked {
    cpu: CpuId,
    /// Picoseconds of work alone, and of waiting for lines from the last level cache.
    work: u64,
    near: u64,
    /// Whether work goes on while lines come.
    ahead: bool,
    /// How many of its lines the last level cache has, in thousandths.
    held: u64,
    /// To each node.
    ways: Vec<Way>,
}

impl Asked {
    fn time(&self, stretch: &[u64]) -> u64 {
        let far = self.ways.iter().map(|way| stretched(way.latency, way.stretch(stretch, None)));
        let waits = self.near + far.sum::<u64>();
        if self.ahead { self.work.max(waits) } else { self.work + waits }
    }

    /// Joins those who wait for a piece that lines of its pass, with the stretch of all other pieces as it is.
    fn join(&self, queue: &mut Queue, stretch: &[u64], piece: usize) {
        let (mut waits, mut delivery) = (self.near, 0);
        for way in &self.ways {
            match way.delivery(piece) {
                Some(of) => delivery += of,
                None => waits += stretched(way.latency, way.stretch(stretch, None)),
            }
        }
        let (least, rest) = if self.ahead { (self.work, waits) } else { (0, self.work + waits) };
        let through = self.ways.iter().filter(|way| way.delivery(piece).is_some());
        // A user of the piece waits for it, even if for less than a picosecond.
        let wait = |way: &Way| Wait { latency: way.latency.max(1), stretch: way.stretch(stretch, Some(piece)) };
        queue.join(Waiter { least: least.max(1), rest, delivery }, through.map(wait));
    }
}

/// What a CPU gets of the caches and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub cpu: CpuId,
    /// How much longer each cycle of its work takes because of its lines.
    pub longer: Ps,
    /// How many of the lines that it asks its last level cache for are there, in thousandths.
    held: u64,
}

/// A CPU whose task has a demand, and what it gets; `None` until that has been settled.
#[derive(Clone, Debug)]
struct Running {
    cpu: CpuId,
    demand: Demand,
    share: Option<Share>,
}

/// The demands of all tasks that run and have any.
#[derive(Clone, Debug)]
pub struct MemoryLoad {
    /// In the order of the CPUs.
    running: Vec<Running>,
    /// Each piece's stretch, in thousandths of the latency without contention.
    stretch: Vec<u64>,
}

impl MemoryLoad {
    pub fn new(topology: &Topology) -> MemoryLoad {
        MemoryLoad { running: Vec::new(), stretch: vec![1000; pieces(topology)] }
    }

    /// The CPUs whose tasks ask for something.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> {
        self.running.iter().map(|running| running.cpu)
    }

    fn of(&self, cpu: CpuId) -> Result<usize, usize> {
        self.running.binary_search_by_key(&cpu, |running| running.cpu)
    }

    pub fn demand(&self, cpu: CpuId) -> Option<&Demand> {
        self.of(cpu).ok().map(|at| &self.running[at].demand)
    }

    /// Sets what `cpu`'s task asks for from now on.
    pub fn set(&mut self, cpu: CpuId, demand: Option<Demand>) {
        match (self.of(cpu), demand) {
            (Ok(at), Some(demand)) => self.running[at].demand = demand,
            (Ok(at), None) => drop(self.running.remove(at)),
            (Err(at), Some(demand)) => self.running.insert(at, Running { cpu, demand, share: None }),
            (Err(_), None) => {}
        }
    }

    /// For each running task that has a demand: how many of the lines that it asks its last level cache for are there,
    /// in thousandths.
    fn held(&self, topology: &Topology, prices: &Prices) -> Vec<u64> {
        let claim = |Running { cpu, demand, .. }: &Running| Claim {
            llc: topology.cpu(*cpu).llc as usize,
            set: demand.fetches.working_set,
            lines: demand.fetches.lines.into(),
        };
        let mut claims: Vec<Claim> = self.running.iter().map(claim).collect();
        let mut shared = Vec::new();
        for (claim, Running { demand, .. }) in self.running.iter().enumerate() {
            let all = demand.memories.iter().map(|of| u128::from(of.share)).sum::<u128>().max(1);
            for &InMemory { memory, bytes, share } in &demand.memories {
                let part = u128::from(demand.fetches.working_set) * u128::from(share) / all;
                shared.push(Shared { claim, memory, bytes, part: part as u64 });
            }
        }
        join(&mut claims, &shared);
        let room: Vec<u64> = (0..topology.llcs().len()).map(|llc| prices.llc_bytes_of(llc)).collect();
        held(&claims, &room)
    }

    fn asked(topology: &Topology, prices: &Prices, held: u64, running: &Running, ps_per_cycle: u64) -> Asked {
        let Running { cpu, ref demand, .. } = *running;
        let Fetches { lines, order, .. } = demand.fetches;
        let lines = u64::from(lines);
        let parallel = if order == Order::Chained { 1 } else { prices.refill_parallel };
        let near = lines * held * prices.lines.llc_hit.0 / 1000 / parallel;
        let milli_lines = lines * (1000 - held);
        let own = [(topology.cpu(cpu).node, 1)];
        let nodes = if demand.nodes.is_empty() { &own[..] } else { &demand.nodes };
        let all: u64 = nodes.iter().map(|(_, share)| share).sum::<u64>().max(1);
        let way = |&(node, share): &(u16, u64)| {
            let milli_lines = milli_lines * share / all;
            let latency = prices.memory_load(topology.memory_distance(cpu, node)).0;
            let lines = |Piece { number, delivery }| Piece {
                number,
                delivery: milli_lines * prices.line_bytes * delivery / 1000,
            };
            let pieces = path(topology, prices, cpu, node).map(lines);
            Way { latency: milli_lines * latency / 1000 / parallel, pieces }
        };
        let (work, ahead) = (1000 * ps_per_cycle, order == Order::Ahead);
        Asked { cpu, work, near, ahead, held, ways: nodes.iter().map(way).collect() }
    }

    /// The new shares of those CPUs whose share changes, in the order of [`MemoryLoad::cpus`]. Each takes effect with
    /// [`MemoryLoad::take`]. `ps_per_cycle`: how long a cycle takes without waiting for lines.
    pub fn settle(&mut self, topology: &Topology, prices: &Prices, ps_per_cycle: impl Fn(CpuId) -> u64) -> Vec<Share> {
        let held = self.held(topology, prices);
        let asked = |(of, held): (&Running, u64)| MemoryLoad::asked(topology, prices, held, of, ps_per_cycle(of.cpu));
        let asked: Vec<Asked> = self.running.iter().zip(held).map(asked).collect();
        self.stretch_pieces(&asked);
        let share = |asked: &Asked| {
            let longer = Ps(asked.time(&self.stretch).saturating_sub(asked.work) / 1000);
            Share { cpu: asked.cpu, longer, held: asked.held }
        };
        let settled = asked.iter().map(share).zip(&self.running);
        settled.filter(|(share, running)| running.share != Some(*share)).map(|(share, _)| share).collect()
    }

    fn stretch_pieces(&mut self, asked: &[Asked]) {
        self.stretch.fill(1000);
        // Each piece with the numbers of those who have lines through it.
        let mut users = Vec::new();
        for (at, asked) in asked.iter().enumerate() {
            users.extend(asked.ways.iter().flat_map(Way::limited).map(|piece| (piece.number, at)));
        }
        users.sort_unstable();
        users.dedup();
        let mut queue = Queue::default();
        for _ in 0..ROUNDS {
            let mut changed = false;
            for here in users.chunk_by(|(one, _), (other, _)| one == other) {
                let piece = here[0].0;
                queue.clear();
                here.iter().for_each(|&(_, at)| asked[at].join(&mut queue, &self.stretch, piece));
                let stretch = queue.stretch();
                changed |= std::mem::replace(&mut self.stretch[piece], stretch) != stretch;
            }
            if !changed {
                break;
            }
        }
    }

    /// A CPU gets this share from now on.
    pub fn take(&mut self, share: Share) {
        if let Ok(at) = self.of(share.cpu) {
            self.running[at].share = Some(share);
        }
    }

    /// The bytes that `cpu`'s task brings into its core's caches, and into its last level cache, in the time `spent`,
    /// at `ps_per_cycle` including the waits for lines.
    pub fn streamed(&self, prices: &Prices, cpu: CpuId, spent: Ps, ps_per_cycle: u64) -> (u64, u64) {
        let Ok(at) = self.of(cpu) else { return (0, 0) };
        let Running { demand, share, .. } = &self.running[at];
        let bytes = in_time(u64::from(demand.fetches.lines) * prices.line_bytes, spent, ps_per_cycle);
        (bytes, bytes * (1000 - share.map_or(1000, |share| share.held)) / 1000)
    }
}

/// How much of a quantity per 1000 cycles of work falls into the time `spent`, at `ps_per_cycle`.
pub(crate) fn in_time(of_1000_cycles: u64, spent: Ps, ps_per_cycle: u64) -> u64 {
    let (whole, part) = (spent.0 / ps_per_cycle, spent.0 % ps_per_cycle);
    (whole * of_1000_cycles + part * of_1000_cycles / ps_per_cycle) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Distance, Numbering, from_synthetic};

    /// 1 ns per cycle, 20 ns to the last level cache of 16 MiB, 100 ns to memory, 150 ns to the other node's; ten lines
    /// at once; 8 bytes per ns from each node.
    fn setup() -> (Topology, Prices) {
        let topology = from_synthetic("pack:2 [numa] l3:1 core:8 pu:1", "test", Numbering::LinuxX86).expect("valid");
        let mut prices = Prices::free();
        prices.lines.llc_hit = Ps::from_ns(20);
        prices.lines.memory = Ps::from_ns(100);
        prices.memory_far = vec![Ps::from_ns(100); Distance::Remote(1).index()];
        prices.memory_far.push(Ps::from_ns(150));
        prices.llc_bytes = 16 << 20;
        prices.refill_parallel = 10;
        prices.memory_ps_per_kib = 1024 * 125;
        (topology, prices)
    }

    fn demand(mib: u64, nodes: &[(u16, u64)]) -> Demand {
        in_order(Order::Mixed, mib, nodes)
    }

    fn in_order(order: Order, mib: u64, nodes: &[(u16, u64)]) -> Demand {
        let fetches = Fetches { lines: 50, working_set: mib << 20, order };
        Demand { fetches, nodes: nodes.to_vec(), memories: Vec::new() }
    }

    /// By how many picoseconds each CPU's cycle is longer.
    fn settled(demands: Vec<(usize, Demand)>) -> Vec<u64> {
        settled_on(setup(), demands)
    }

    fn settled_on((topology, prices): (Topology, Prices), demands: Vec<(usize, Demand)>) -> Vec<u64> {
        let mut load = MemoryLoad::new(&topology);
        for (cpu, demand) in demands {
            load.set(CpuId::new(cpu), Some(demand));
        }
        load.settle(&topology, &prices, |_| 1000).into_iter().map(|share| share.longer.0).collect()
    }

    #[test]
    fn who_fits_into_the_cache_waits_for_the_cache_alone() {
        // 50 lines of 20 ns, ten at once, in 1000 cycles.
        assert_eq!(settled(vec![(0, demand(8, &[]))]), [100]);
        assert_eq!(settled(vec![(0, demand(8, &[])), (1, demand(8, &[]))]), [100; 2]);
    }

    #[test]
    fn those_who_share_a_cache_share_its_room() {
        // Four sets of 8 MiB in 16 MiB: half of the lines come from memory. The other package has its own cache.
        let half = (0..4).map(|cpu| (cpu, demand(8, &[]))).collect::<Vec<_>>();
        assert_eq!(settled(half.clone()), [50 + 250; 4]);
        let apart = half.into_iter().map(|(cpu, demand)| (cpu % 2 * 8 + cpu / 2, demand)).collect();
        assert_eq!(settled(apart), [100; 4]);
    }

    #[test]
    fn lines_ahead_of_the_work_hide_behind_it_and_chained_ones_come_alone() {
        let of = |order, mib| settled(vec![(0, in_order(order, mib, &[]))])[0];
        // The work of 1000 cycles takes 1 us. 50 lines from the cache take 100 ns ten at once, or 1 us one by one; from
        // memory 500 ns and 5 us.
        assert_eq!([of(Order::Mixed, 8), of(Order::Ahead, 8), of(Order::Chained, 8)], [100, 0, 1000]);
        assert_eq!([of(Order::Mixed, 16_000), of(Order::Ahead, 16_000), of(Order::Chained, 16_000)], [499, 0, 4996]);
        // Where the node delivers less than they use, they all wait for it: 400 ns each.
        let all = settled((0..8).map(|cpu| (cpu, in_order(Order::Ahead, 16_000, &[]))).collect());
        assert!(all.iter().all(|&longer| longer.abs_diff(8 * 400 - 1000) <= 30), "{all:?}");
    }

    #[test]
    fn far_memory_takes_longer() {
        // The cache holds next to nothing of this set.
        let near = settled(vec![(0, demand(16_000, &[]))])[0];
        let far = settled(vec![(0, demand(16_000, &[(1, 5)]))])[0];
        let both = settled(vec![(0, demand(16_000, &[(0, 3), (1, 3)]))])[0];
        assert_eq!([near, far], [499, 749]);
        assert!(both.abs_diff((near + far) / 2) <= 1, "{both}");
    }

    #[test]
    fn a_node_delivers_what_it_can_and_all_who_miss_wait() {
        // Alone each asks for 3200 bytes in 1.5 us: 2.13 of the node's 8 bytes per ns.
        let many = |count: usize| settled((0..count).map(|cpu| (cpu, demand(16_000, &[]))).collect());
        assert_eq!(many(1), [499]);
        assert!(many(3).iter().all(|&longer| longer == 499 || longer == 500));
        for count in [5, 6, 8] {
            let longer = many(count);
            // All together get 8 bytes per ns: 3200 bytes for each take 400 ns times their number.
            let cycle = 400 * count as u64;
            assert!(longer.iter().all(|&ps| (1000 + ps).abs_diff(cycle) <= cycle / 100), "{count}: {longer:?}");
        }
        // Only tasks whose memory lies on the other package's node ask that node.
        let mut demands: Vec<_> = (0..8).map(|cpu| (cpu, demand(16_000, &[]))).collect();
        demands.push((8, demand(16_000, &[])));
        demands.push((9, demand(16_000, &[(0, 1)])));
        let longer = settled(demands);
        assert!(longer[8].abs_diff(499) <= 1, "{longer:?}");
        assert!(longer[9] > longer[0], "the same queue, from farther away: {longer:?}");
    }

    #[test]
    fn however_many_wait_they_get_what_the_node_delivers() {
        let (_, mut prices) = setup();
        prices.llc_bytes = 0;
        let cores = |count: usize| format!("pack:1 [numa] l3:1 core:{count} pu:1");
        for (count, lines) in [(3, 50), (7, 40), (192, 24), (192, 1), (1000, 3), (2048, 1), (8192, 1), (8192, 1000)] {
            let topology = from_synthetic(&cores(count), "test", Numbering::LinuxX86).expect("valid");
            let mut load = MemoryLoad::new(&topology);
            let fetches = Fetches { lines, working_set: 1 << 33, order: Order::Mixed };
            let demand = Demand { fetches, nodes: Vec::new(), memories: Vec::new() };
            (0..count).for_each(|cpu| load.set(CpuId::new(cpu), Some(demand.clone())));
            let settled = load.settle(&topology, &prices, |_| 1000);
            // Bytes in a ms; the node delivers 8 per ns if they ask for as much.
            let bytes = u64::from(lines) * 64 * 1_000_000;
            let delivered: u64 = settled.iter().map(|of| bytes / (1000 + of.longer.0)).sum();
            let asked = count as u64 * bytes / (1000 + u64::from(lines) * 10);
            assert!(delivered.abs_diff(asked.min(8_000_000)) <= 80_000, "{count} of {lines} lines: {delivered}");
        }
    }

    #[test]
    fn room_goes_by_lines_and_the_data_of_several_counts_once() {
        let of = |lines, mib: u64, memories: &[InMemory]| Demand {
            fetches: Fetches { lines, working_set: mib << 20, order: Order::Mixed },
            nodes: Vec::new(),
            memories: memories.to_vec(),
        };
        // In 16 MiB: a task that asks for few lines of a large set leaves room for one that asks often.
        assert_eq!(settled(vec![(0, of(50, 15, &[])), (1, of(1, 200, &[]))])[0], 100);
        assert!(settled(vec![(0, of(50, 15, &[])), (1, of(50, 200, &[]))])[0] > 250);
        // Four tasks that go through the same 15 MiB, each through its own, or through half of it and something of
        // their own.
        let four = |memories: &[InMemory]| settled((0..4).map(|cpu| (cpu, of(50, 15, memories))).collect());
        let shared = |memory: u32, bytes: u64| InMemory { memory, bytes: bytes << 20, share: 7 };
        assert_eq!(four(&[shared(3, 15)]), [100; 4]);
        assert!(four(&[])[0] > 350);
        assert_eq!(four(&[shared(3, 8), shared(4, 8)]), [100; 4]);
    }

    #[test]
    fn a_node_without_cpus_delivers_at_its_own_pace() {
        let (topology, mut prices) = setup();
        let topology = topology.with_memory_nodes(1).expect("valid");
        // 2 bytes per ns. Its lines take 150 ns: one task asks for 3200 bytes in 1.75 us, two ask for more than it has.
        prices.far_memory_ps_per_kib = 1024 * 500;
        let of = |node: u16, tasks: usize| {
            let demands = (0..tasks).map(|cpu| (cpu, demand(16_000, &[(node, 1)]))).collect();
            settled_on((topology.clone(), prices.clone()), demands)[0]
        };
        assert_eq!([of(1, 1), of(2, 1), of(1, 2)], [749, 749, 750], "as far as the other package, which has room");
        assert!((1000 + of(2, 2)).abs_diff(2 * 1600) <= 32, "{}", of(2, 2));
    }

    #[test]
    fn who_leaves_leaves_no_demand() {
        let (topology, prices) = setup();
        let mut load = MemoryLoad::new(&topology);
        for cpu in [3, 1, 2] {
            load.set(CpuId::new(cpu), Some(demand(8, &[])));
        }
        assert_eq!(load.cpus().collect::<Vec<_>>(), [CpuId(1), CpuId(2), CpuId(3)]);
        load.set(CpuId(2), None);
        load.set(CpuId(2), None);
        let settled = load.settle(&topology, &prices, |_| 1000);
        assert_eq!(settled.iter().map(|share| share.cpu.0).collect::<Vec<_>>(), [1, 3]);
        settled.into_iter().for_each(|share| load.take(share));
        assert_eq!(load.streamed(&prices, CpuId(1), Ps::from_ns(1_000_000), 1000), (50 * 64 * 1000, 0));
        assert_eq!(load.streamed(&prices, CpuId(2), Ps::from_ns(1_000_000), 1000), (0, 0));
    }

    #[test]
    fn longer_lines_take_more_of_what_a_node_delivers() {
        let (topology, prices) = setup();
        // Three ask for 3200 bytes in 1.5 us each, out of 8 bytes per ns; with lines of 128 bytes that is too much.
        let of = |line_bytes: u64, count: usize| {
            let demands = (0..count).map(|cpu| (cpu, demand(16_000, &[]))).collect();
            settled_on((topology.clone(), Prices { line_bytes, ..prices.clone() }), demands)[0]
        };
        assert_eq!([of(64, 1), of(64, 3), of(128, 1)], [499, 500, 499]);
        assert!((1000 + of(128, 3)).abs_diff(3 * 800) <= 24, "{}", of(128, 3));
    }

    #[test]
    fn only_who_gets_something_else_is_named() {
        let (topology, prices) = setup();
        let mut load = MemoryLoad::new(&topology);
        let settle = |load: &mut MemoryLoad, slow: u64| -> Vec<u16> {
            let settled = load.settle(&topology, &prices, |cpu| if cpu.0 == 0 { slow } else { 1000 });
            settled.iter().for_each(|&share| load.take(share));
            settled.into_iter().map(|share| share.cpu.0).collect()
        };
        for cpu in [0, 1, 8] {
            load.set(CpuId::new(cpu), Some(demand(8, &[])));
        }
        assert_eq!(settle(&mut load, 1000), [0, 1, 8]);
        assert!(settle(&mut load, 1000).is_empty());
        // Sets of 24 MiB in 16 MiB: those of this cache get less of it.
        load.set(CpuId(2), Some(demand(8, &[])));
        assert_eq!(settle(&mut load, 1000), [0, 1, 2]);
        assert!(settle(&mut load, 2000).is_empty(), "a slower CPU waits as long for lines that nobody else wants");
        // Eight want more than the node delivers: when one of them becomes slower, the others get more.
        (0..8).for_each(|cpu| load.set(CpuId(cpu), Some(demand(16_000, &[]))));
        assert_eq!(settle(&mut load, 1000), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(settle(&mut load, 8000), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn time_that_is_no_whole_cycle_counts() {
        assert_eq!(in_time(64_000, Ps(10_500), 1000), 64 * 21 / 2);
        assert_eq!(in_time(1_000_000, Ps(999), 1_000_000), 0);
        assert_eq!(in_time(64_000 * 1000, Ps(900_000), 1_000_000), 64 * 900);
    }
}
