//! The pieces of the way from a core to memory that CPUs share, and that may each have a limit to what they deliver.
//!
//! They are the link of a last level cache (a chiplet's, say), the links from the package of the memory to that of the
//! core, and the memory of the node itself. What a machine file tells no limit of has none.
//!
//! The links between two packages are taken for one, which no other packages' lines use, and which carries as much in
//! the other direction. A node without CPUs is of no package: what leads to it is in its own limit.

use crate::prices::Prices;
use crate::topology::{Cpu, Topology};
use units::CpuId;

/// A shared piece of one way, with what it takes to deliver the way's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// Below [`pieces`].
    pub number: usize,
    /// 0 if it has no limit. In picoseconds for 1024 bytes, or for some number of lines in 1024ths of picoseconds.
    pub delivery: u64,
}

/// The number of a machine's pieces: its last level caches' links, those between each two packages, and its nodes.
pub(super) fn pieces(topology: &Topology) -> usize {
    first_node(topology) + topology.nodes().len()
}

fn first_node(topology: &Topology) -> usize {
    topology.llcs().len() + topology.packages().len().pow(2)
}

/// The pieces between `cpu` and the memory of `node`, and what each takes to deliver 1024 bytes.
pub(super) fn path(topology: &Topology, prices: &Prices, cpu: CpuId, node: u16) -> [Piece; 3] {
    let &Cpu { llc, package: to, .. } = topology.cpu(cpu);
    let node = usize::from(node);
    let neighbour = topology.nodes()[node].cpus.first();
    let from = neighbour.map_or(to, |neighbour| topology.cpu(neighbour).package);
    let packages = topology.packages().len();
    let link = topology.llcs().len() + usize::from(from) * packages + usize::from(to);
    let of_node = if neighbour.is_some() { prices.memory_ps_per_kib } else { prices.far_memory_ps_per_kib };
    [
        Piece { number: llc.into(), delivery: prices.llc_link_ps_per_kib },
        Piece { number: link, delivery: if from == to { 0 } else { prices.package_link_ps_per_kib } },
        Piece { number: first_node(topology) + node, delivery: of_node },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::{Demand, Fetches, MemoryLoad, Order};
    use super::*;
    use crate::topology::{Distance, Numbering, from_synthetic};
    use units::{Prng, Ps};

    /// Two packages with a node and two last level caches of four CPUs each. 1 ns per cycle, 100 ns to memory and 200 ns
    /// to the other package's, ten lines at once. The limits are in bytes per 1000 ns, and 0 is none.
    fn machine(llc: u64, link: u64, node: u64) -> (Topology, Prices) {
        let topology = from_synthetic("pack:2 [numa] l3:2 core:4 pu:1", "test", Numbering::LinuxX86).expect("valid");
        let ps_per_kib = |limit: u64| (1024 * 1_000_000u64).checked_div(limit).unwrap_or(0);
        let mut prices = Prices::free();
        prices.lines.memory = Ps::from_ns(100);
        prices.memory_far = vec![Ps::from_ns(100); Distance::Remote(1).index()];
        prices.memory_far.push(Ps::from_ns(200));
        prices.refill_parallel = 10;
        prices.memory_ps_per_kib = ps_per_kib(node);
        prices.far_memory_ps_per_kib = ps_per_kib(node);
        prices.llc_link_ps_per_kib = ps_per_kib(llc);
        prices.package_link_ps_per_kib = ps_per_kib(link);
        (topology, prices)
    }

    /// 50 lines in 1000 cycles, all of them from the nodes. Alone that is 3200 bytes in 1500 ns from the own node, and in
    /// 2000 ns from the other package's: 2133 or 1600 bytes in 1000 ns.
    fn from(nodes: &[(u16, u64)]) -> Demand {
        let fetches = Fetches { lines: 50, working_set: 1 << 40, order: Order::Mixed };
        Demand { fetches, nodes: nodes.to_vec(), memories: Vec::new() }
    }

    /// Bytes that each gets in 1000 ns.
    fn rates((topology, prices): &(Topology, Prices), demands: &[(usize, Demand)]) -> Vec<u64> {
        let mut load = MemoryLoad::new(topology);
        demands.iter().for_each(|(cpu, demand)| load.set(CpuId::new(*cpu), Some(demand.clone())));
        let settled = load.settle(topology, prices, |_| 1000);
        let rate = |demand: &Demand, longer: u64| u64::from(demand.fetches.lines) * 64 * 1000 / (1000 + longer);
        settled.iter().zip(demands).map(|(share, (_, demand))| rate(demand, share.longer.0)).collect()
    }

    fn near(rates: &[u64], expected: &[u64]) {
        let within = |(rate, expected): (&u64, &u64)| rate.abs_diff(*expected) <= expected / 100;
        assert!(rates.len() == expected.len() && rates.iter().zip(expected).all(within), "{rates:?}, {expected:?}");
    }

    #[test]
    fn those_behind_one_link_share_it() {
        let own = |cpus: &[usize]| -> Vec<(usize, Demand)> { cpus.iter().map(|&cpu| (cpu, from(&[]))).collect() };
        let chiplets = machine(4000, 0, 16_000);
        near(&rates(&chiplets, &own(&[0])), &[2133]);
        near(&rates(&chiplets, &own(&[0, 1])), &[2000; 2]);
        near(&rates(&chiplets, &own(&[0, 4])), &[2133; 2]);
        near(&rates(&chiplets, &own(&[0, 1, 2, 3])), &[1000; 4]);
        near(&rates(&chiplets, &own(&[0, 1, 2, 3, 4])), &[1000, 1000, 1000, 1000, 2133]);
        // Without a limit of the link they get what they ask for.
        near(&rates(&machine(0, 0, 16_000), &own(&[0, 1, 2, 3])), &[2133; 4]);
        // It carries what comes from other packages as well.
        let far: Vec<_> = (0..4).map(|cpu| (cpu, from(&[(1, 1)]))).collect();
        near(&rates(&chiplets, &far), &[1000; 4]);
    }

    #[test]
    fn links_between_packages_carry_so_much_in_each_direction() {
        let sockets = machine(0, 3000, 16_000);
        let across = |cpus: &[usize], node: u16| cpus.iter().map(|&cpu| (cpu, from(&[(node, 1)]))).collect::<Vec<_>>();
        near(&rates(&sockets, &across(&[8], 0)), &[1600]);
        near(&rates(&sockets, &across(&[8, 9, 12], 0)), &[1000; 3]);
        near(&rates(&sockets, &across(&[8, 9, 12], 1)), &[2133; 3]);
        // Who goes the other way, or nowhere, does not wait.
        let mixed = [across(&[0], 1), across(&[1], 0), across(&[8, 9, 12], 0), across(&[13], 1)].concat();
        near(&rates(&sockets, &mixed), &[1600, 2133, 1000, 1000, 1000, 2133]);
        // Half of the lines of each come over the link, at 150 ns on average: 3200 bytes in 1750 ns. Eight of them ask the
        // link for more than it has, and wait for half of their lines only.
        let halves: Vec<_> = (0..8).map(|cpu| (cpu, from(&[(0, 1), (1, 1)]))).collect();
        near(&rates(&sockets, &halves[..2]), &[1828; 2]);
        near(&rates(&sockets, &halves), &[750; 8]);
    }

    #[test]
    fn a_node_delivers_no_more_than_it_can_over_whatever_links() {
        let cpus = |cpus: std::ops::Range<usize>| cpus.map(|cpu| (cpu, from(&[(0, 1)])));
        let sum = |rates: &[u64]| rates.iter().sum::<u64>();
        // Eight near the node and eight on the other package, which get what the link carries or less.
        for link in [0, 500, 2000, 4000, 9000] {
            let all = rates(&machine(0, link, 8000), &cpus(0..16).collect::<Vec<_>>());
            let (own, far) = (sum(&all[..8]), sum(&all[8..]));
            assert!((own + far).abs_diff(8000) <= 80, "{link}: {all:?}");
            assert!(link == 0 || far <= link + link / 100, "{link}: {all:?}");
            // Who is farther away gets less, and beyond the narrow link still less.
            assert!(own > far, "{link}: {all:?}");
        }
        // The narrowest piece counts: the chiplet's link, the package's, the node.
        let of = |llc, link, node| rates(&machine(llc, link, node), &cpus(8..12).collect::<Vec<_>>());
        near(&of(1000, 2000, 3000), &[250; 4]);
        near(&of(2000, 1000, 3000), &[250; 4]);
        near(&of(3000, 2000, 1000), &[250; 4]);
        near(&of(9000, 9000, 9000), &[1600; 4]);
        // A node without CPUs is of no package, and has its own limit.
        let (topology, prices) = machine(0, 100, 2000);
        let behind = (topology.with_memory_nodes(1).expect("valid"), prices);
        near(&rates(&behind, &[8, 9].map(|cpu| (cpu, from(&[(2, 1)])))), &[1000; 2]);
    }

    #[test]
    fn who_leaves_gives_the_speed_back() {
        let (topology, prices) = machine(3000, 1500, 4000);
        let mut load = MemoryLoad::new(&topology);
        let mut longer = |cpus: &[usize]| {
            (0..16).for_each(|cpu| load.set(CpuId::new(cpu), cpus.contains(&cpu).then(|| from(&[(0, 1)]))));
            load.settle(&topology, &prices, |_| 1000).into_iter().for_each(|share| load.take(share));
            load.running.iter().map(|running| running.share.expect("it is settled").longer.0).collect::<Vec<u64>>()
        };
        assert_eq!([longer(&[0]), longer(&[8])].concat(), [500, 1134], "the link is too narrow for one");
        let all = longer(&(0..16).collect::<Vec<_>>());
        assert!(all[0] > 5000 && all[8] > 10_000, "{all:?}");
        assert_eq!([longer(&[0]), longer(&[8]), longer(&[4])].concat(), [500, 1134, 500]);
    }

    #[test]
    fn no_piece_delivers_more_than_it_can_and_who_waits_longer_passes_one_that_delivers_all_it_can() {
        let mut rng = Prng::stream(1, "limits", 0);
        let unlimited = machine(0, 0, 0);
        for round in 0..500 {
            let mut limit = |most: u64| if rng.below(4) == 0 { 0 } else { 500 + rng.below(most) };
            let (topology, prices) = machine(limit(8000), limit(8000), limit(16_000));
            let mut demands = Vec::new();
            for cpu in 0..16 {
                let mut demand = from(&[(rng.below(2) as u16, 1)]);
                demand.fetches.lines = 10 + rng.below(100) as u32;
                if rng.below(3) > 0 {
                    demands.push((cpu, demand));
                }
            }
            let path = |cpu: usize, demand: &Demand| path(&topology, &prices, CpuId::new(cpu), demand.nodes[0].0);
            let all = rates(&(topology.clone(), prices.clone()), &demands);
            // In thousandths of each piece's time.
            let mut busy = vec![0; pieces(&topology)];
            for (rate, (cpu, demand)) in all.iter().zip(&demands) {
                path(*cpu, demand)
                    .into_iter()
                    .for_each(|piece| busy[piece.number] += rate * piece.delivery / 1_024_000);
            }
            assert!(busy.iter().all(|&busy| busy <= 1010), "{round}: {busy:?}");
            for (rate, of) in all.iter().zip(&demands) {
                let alone = rates(&unlimited, std::slice::from_ref(of))[0];
                let full = path(of.0, &of.1).iter().any(|piece| busy[piece.number] >= 970);
                assert!(full || *rate >= alone - alone / 50, "{round}: {of:?} {rate} of {alone}, {busy:?}");
            }
        }
    }
}
