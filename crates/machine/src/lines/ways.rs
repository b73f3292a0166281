//! How far lines travel between cores.

use super::berths::Berths;
use super::{LinePrices, Seat, WORD};
use crate::topology::{Distance, Topology};
use sched::layout::Line;
use units::{CpuId, Ps, unlikely};

/// How long a modified line travels between two cores, and how far its slice is.
pub(super) struct Ways {
    /// In picoseconds, from each [berth](Berths) to another one, by the nearest slice: `[seat.row + from]`. By the farthest one, too, they fit into
    /// 32 bits ([`Entry::occupy_short`](super::entry::Entry)).
    table: Vec<u32>,
    /// What serves in place of the table on machines for which it would be larger than [`LARGEST_TABLE`], or that have ways shorter than
    /// slices are apart or too long for it.
    distances: Option<(Topology, Berths)>,
    transfer: Vec<Ps>,
    /// How much nearer or farther than the mean a slice may be, in picoseconds; and how many such distances there are.
    slice_spread: u64,
    slices: u64,
    /// A transfer within one last level cache.
    pub(super) near: Ps,
    /// A transfer that leaves it, if all that leave one are equally long, and so are all within one.
    pub(super) outside: Option<Ps>,
    /// A clean line's way within one, by the nearest slice, if it is longer than slices are apart.
    pub(super) clean: Option<Ps>,
    /// The longest one of the machine.
    longest: Ps,
    /// What the seed makes of an address.
    salt: u64,
    /// How many requests have waited for a line; and of them, how often the line went no way, being with whoever asked or on its way there.
    pub(super) travelled: u64,
    pub(super) stayed: u64,
}

/// Entries: 4 MB.
const LARGEST_TABLE: usize = 1 << 20;

/// Cores of one place are equally far from every core elsewhere, and from each other.
pub(super) struct Places {
    /// The place of the core of each berth; of a free one any.
    pub(super) of_berth: Vec<u16>,
    /// One CPU of each.
    cpus: Vec<CpuId>,
    /// Between two cores of one place.
    within: Distance,
}

impl Places {
    pub(super) fn new(topology: &Topology, berths: &Berths) -> Places {
        let clustered = topology.clusters().len() < topology.cores().len();
        // What tells cores apart, seen from others: last level cache, NUMA node and, where they hold several, cluster.
        let mut keys: Vec<(u16, u16, u16)> = Vec::new();
        let mut cpus = Vec::new();
        let place = |first: Option<CpuId>| {
            let Some(first) = first else { return 0 };
            let cpu = topology.cpu(first);
            let key = (cpu.llc, cpu.node, if clustered { cpu.cluster } else { 0 });
            let known = keys.iter().position(|&k| k == key);
            known.unwrap_or_else(|| {
                keys.push(key);
                cpus.push(first);
                keys.len() - 1
            }) as u16
        };
        let of_berth = berths.cpus().map(place).collect();
        Places { of_berth, cpus, within: if clustered { Distance::Cluster } else { Distance::Llc } }
    }

    /// From each berth to each place, by `[place * berths + berth]`.
    fn distances(&self, topology: &Topology) -> impl Iterator<Item = Distance> {
        let distance = |from: u16, to: usize| match from as usize == to {
            true => self.within,
            false => topology.distance(self.cpus[from as usize], self.cpus[to]),
        };
        (0..self.cpus.len()).flat_map(move |to| self.of_berth.iter().map(move |&from| distance(from, to)))
    }
}

impl Ways {
    pub(super) fn new(topology: &Topology, berths: &Berths, places: &Places, prices: &LinePrices, seed: u64) -> Ways {
        let fits = places.cpus.len() * places.of_berth.len() <= LARGEST_TABLE;
        let near = prices.transfer[Distance::Llc.index()];
        let distances = topology.distances();
        let leaving = || distances.iter().copied().filter(|&distance| distance > Distance::Llc);
        let even = !distances.contains(&Distance::Cluster) && leaving().count() < 2;
        let price = |distance: Distance| prices.transfer[distance.index()];
        let slice_spread = near.0 * prices.slice_spread / 1000;
        // By the farthest slice it is twice as far away from that.
        let by_nearest = |way: Ps| {
            let nearest = way.0.checked_sub(slice_spread)?;
            u32::try_from(nearest + 2 * slice_spread).ok().map(|_| nearest as u32)
        };
        let nearest = |distance: Distance| by_nearest(price(distance));
        let table: Option<Vec<u32>> = if fits { places.distances(topology).map(nearest).collect() } else { None };
        Ways {
            distances: table.is_none().then(|| (topology.clone(), berths.clone())),
            table: table.unwrap_or_default(),
            transfer: prices.transfer.clone(),
            slice_spread,
            slices: 2 * slice_spread + 1,
            near,
            outside: even.then(|| leaving().map(price).next().unwrap_or(near)),
            clean: by_nearest(prices.llc_hit).map(|way| Ps(way.into())),
            longest: distances.iter().copied().map(price).max().unwrap_or(near),
            salt: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            travelled: 0,
            stayed: 0,
        }
    }

    /// From berth `from` to another one, where `to` sits, if there is a table.
    #[inline(always)]
    pub(super) fn known(&self, from: u16, to: &Seat) -> Option<Ps> {
        self.nearest(from, to).map(|way| Ps(way.0 + self.slice_spread))
    }

    /// The same by the nearest slice.
    #[inline(always)]
    pub(super) fn nearest(&self, from: u16, to: &Seat) -> Option<Ps> {
        self.table.get(to.row as usize + from as usize).map(|&way| Ps(way.into()))
    }

    /// The same way as the line of an [address](Ways::address) goes it, by its slice.
    #[inline(always)]
    pub(super) fn travel(&mut self, address: u64, from: u16, to: &Seat) -> Option<Ps> {
        let nearest = self.nearest(from, to)?;
        Some(self.travel_from(nearest, address))
    }

    /// A way that takes so long by the nearest slice, as a line goes it.
    #[inline(always)]
    pub(super) fn travel_from(&mut self, nearest: Ps, address: u64) -> Ps {
        self.travelled += 1;
        Ps(nearest.0 + self.offset(address))
    }

    /// From berth `from` to another one, where `to` sits.
    #[inline(always)]
    pub(super) fn between(&self, from: u16, to: &Seat) -> Ps {
        self.known(from, to).unwrap_or_else(|| self.by_distance(from, to.core))
    }

    /// As on a machine too large for a table.
    #[cfg(test)]
    pub(super) fn forget_table(&mut self, topology: &Topology) {
        self.table.clear();
        self.distances = Some((topology.clone(), Berths::new(topology)));
    }

    #[cold]
    #[inline(never)]
    pub(super) fn by_distance(&self, from: u16, to: u16) -> Ps {
        let (topology, berths) = self.distances.as_ref().expect("a table holds the ways between all cores");
        self.transfer[topology.distance(berths.cpu(from), berths.cpu(to)).index()]
    }

    /// How far the farthest copy is that another core than `to`'s has: a write takes the line from all of them. Nothing if there is
    /// none.
    pub(super) fn to_farthest(&self, sharers: &[u64], to: &Seat) -> Ps {
        let mut farthest = Ps::ZERO;
        for (number, &word) in sharers.iter().enumerate() {
            let mut others = if number == to.word as usize { word & !to.bit } else { word };
            while others != 0 {
                let core = number * WORD + others.trailing_zeros() as usize;
                farthest = farthest.max(self.between(core as u16, to));
                if farthest == self.longest {
                    return farthest;
                }
                others &= others - 1;
            }
        }
        farthest
    }

    /// The way of a line, by where its slice is: every transfer passes there, whoever the ends are.
    #[inline(always)]
    pub(super) fn by_slice(&mut self, address: u64, way: Ps) -> Ps {
        self.travelled += 1;
        if unlikely(way == Ps::ZERO) {
            self.stayed += 1;
            return way;
        }
        // -spread ..= +spread.
        Ps((way.0 + self.offset(address)).saturating_sub(self.slice_spread))
    }

    /// What tells a line's slice, by seed: lines of a region differ in their index alone.
    pub(super) fn address(&self, line: Line) -> u64 {
        ((line.region as u64) << 32 | u64::from(line.index)) ^ self.salt
    }

    /// How much farther than the nearest slice a line's is.
    #[inline(always)]
    fn offset(&self, address: u64) -> u64 {
        ((slice_hash(address) >> 32) * self.slices) >> 32
    }
}

/// What becomes of the way of a line that others look at again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fought {
    /// In permille of what it is otherwise.
    times: u64,
    /// Ways up to this, all within a last level cache, stay as they are.
    near: Ps,
}

impl Fought {
    pub(super) fn new(prices: &LinePrices) -> Fought {
        let near = prices.transfer[Distance::Llc.index()].0;
        Fought { times: prices.contended, near: Ps(near + near * prices.slice_spread / 1000) }
    }

    #[inline(always)]
    pub(super) fn way(self, way: Ps) -> Ps {
        if self.times == 1000 || way <= self.near { way } else { Ps(way.0 * self.times / 1000) }
    }
}

/// Its upper half is as good as drawn for each line. One product would not do: lines next to each other would lie at slices next to each other, or
/// a fixed way apart (the finaliser of MurmurHash3, cut to what its upper half needs).
#[inline(always)]
fn slice_hash(address: u64) -> u64 {
    let product = address.wrapping_mul(0xff51_afd7_ed55_8ccd);
    (product ^ product >> 32).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}
