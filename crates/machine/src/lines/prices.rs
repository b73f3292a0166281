//! What it costs to move lines.

use units::Ps;

/// The cost of each transfer of a line, indexed by [`Distance::index`](crate::topology::Distance::index). Picoseconds.
#[derive(Clone, Debug)]
pub struct LinePrices {
    /// A modified line fetched from the cache of another core.
    pub transfer: Vec<Ps>,
    /// A clean line found in the core's own last level cache.
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
    /// How many times as long a transfer from beyond the last level cache takes while others spin for the lock on the
    /// line, in permille. 1000: spinners do not slow it down.
    pub contended: u64,
    /// A line becomes [disputed](super::disputed) when a request has waited behind others for more than this many times
    /// its own way. `u64::MAX`: never.
    pub disputed_from: u64,
    /// For how long other loads of the same core can begin while a load of a disputed line waits.
    pub window: Ps,
    /// The share of a line's way that is left once the request has waited long enough at the line's home, in permille.
    /// 1000: all of it is left, and requests are served in the order in which they are made, not [those from nearby
    /// first](super::crowds).
    pub handoff: u64,
}
