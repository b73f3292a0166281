//! How long lines travel between cores. A *way* is the time of one such transfer.

use super::berths::Berths;
use super::{LinePrices, Seat, WORD};
use crate::topology::{Distance, Topology};
use sched::layout::Line;
use units::{CpuId, Ps, unlikely};

/// The ways of modified lines between every two cores, and how each line's LLC slice changes them.
pub(super) struct Ways {
    /// In picoseconds, from each [berth](Berths) to another one, for a line in the nearest slice: `[seat.row + from]`.
    /// Even with the farthest slice a way fits into 32 bits ([`Entry::occupy_short`](super::entry::Entry) relies on
    /// that).
    table: Vec<u32>,
    /// Replaces the table on machines for which it would be larger than [`LARGEST_TABLE`], or that have ways too long
    /// for it or shorter than `slice_spread`.
    distances: Option<(Topology, Berths)>,
    transfer: Vec<Ps>,
    /// How much nearer or farther than the mean a slice may be, in picoseconds; and how many different distances
    /// follow.
    slice_spread: u64,
    slices: u64,
    /// A transfer within one last level cache.
    pub(super) near: Ps,
    /// A transfer that leaves a last level cache. `None` unless all such transfers take equally long, and so do all
    /// within one cache.
    pub(super) outside: Option<Ps>,
    /// The way of a clean line within one last level cache, for a line in the nearest slice; `None` if it is shorter
    /// than `slice_spread`.
    pub(super) clean: Option<Ps>,
    /// The longest way of the machine.
    longest: Ps,
    /// What the seed adds to a line's [address](Ways::address).
    salt: u64,
    /// How many requests did not find their line ready; and for how many of these nothing travelled, because the line
    /// was already with the asking core or in flight to it.
    pub(super) travelled: u64,
    pub(super) stayed: u64,
}

/// In entries, which take 4 MB.
const LARGEST_TABLE: usize = 1 << 20;

/// Groups of cores: those of one place are equally far from every core elsewhere, and from each other.
pub(super) struct Places {
    /// The place of each berth's core; any place for an unused berth.
    pub(super) of_berth: Vec<u16>,
    /// One CPU of each place.
    cpus: Vec<CpuId>,
    /// The distance between two cores of one place.
    within: Distance,
}

impl Places {
    pub(super) fn new(topology: &Topology, berths: &Berths) -> Places {
        let clustered = topology.clusters().len() < topology.cores().len();
        // What decides a core's distance to others: its last level cache, its NUMA node and, where clusters hold
        // several cores, its cluster.
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

    /// The distance from each berth to each place, in the order `[place * berths + berth]`.
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
        // The farthest slice is `2 * slice_spread` beyond the nearest.
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

    /// The mean way from berth `from` to another one, where `to` sits; `None` if there is no table.
    #[inline(always)]
    pub(super) fn known(&self, from: u16, to: &Seat) -> Option<Ps> {
        self.nearest(from, to).map(|way| Ps(way.0 + self.slice_spread))
    }

    /// The same for a line in the nearest slice.
    #[inline(always)]
    pub(super) fn nearest(&self, from: u16, to: &Seat) -> Option<Ps> {
        self.table.get(to.row as usize + from as usize).map(|&way| Ps(way.into()))
    }

    /// The same for the line of an [address](Ways::address), by its own slice.
    #[inline(always)]
    pub(super) fn travel(&mut self, address: u64, from: u16, to: &Seat) -> Option<Ps> {
        let nearest = self.nearest(from, to)?;
        Some(self.travel_from(nearest, address))
    }

    /// The way of a line of this address, if it would take `nearest` in the nearest slice.
    #[inline(always)]
    pub(super) fn travel_from(&mut self, nearest: Ps, address: u64) -> Ps {
        self.travelled += 1;
        Ps(nearest.0 + self.offset(address))
    }

    /// The mean way from berth `from` to another one, where `to` sits.
    #[inline(always)]
    pub(super) fn between(&self, from: u16, to: &Seat) -> Ps {
        self.known(from, to).unwrap_or_else(|| self.by_distance(from, to.core))
    }

    /// Makes this a machine that is too large for a table.
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

    /// The way from the farthest core, other than `to`'s own, that has a copy: a write takes the line from all of them.
    /// Zero if no other core has one.
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

    /// Adjusts a mean way to the line's slice: every transfer passes through the slice, whatever its ends are.
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

    /// What chooses a line's slice, together with the seed. Lines of one region differ in their index alone.
    pub(super) fn address(&self, line: Line) -> u64 {
        ((line.region as u64) << 32 | u64::from(line.index)) ^ self.salt
    }

    /// How much farther than the nearest slice this line's is.
    #[inline(always)]
    fn offset(&self, address: u64) -> u64 {
        ((slice_hash(address) >> 32) * self.slices) >> 32
    }
}

/// How much longer a line's way takes while other cores keep looking at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fought {
    /// In permille of the uncontended way.
    times: u64,
    /// Ways up to this length stay within a last level cache and are not stretched.
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

/// The upper half of the result is as good as random for each line. A single multiplication would not do: it would put
/// neighbouring lines into neighbouring slices, or a fixed distance apart. This is the finaliser of MurmurHash3, cut
/// down to what the upper half needs.
#[inline(always)]
fn slice_hash(address: u64) -> u64 {
    let product = address.wrapping_mul(0xff51_afd7_ed55_8ccd);
    (product ^ product >> 32).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}
