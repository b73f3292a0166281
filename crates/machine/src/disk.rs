//! A machine's disk, as the machine file describes it.

use units::Ps;

/// The disk's volatile write cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteCache {
    /// The disk has none: a loss of power loses no write.
    Safe,
    /// It has one, and accepts writes that bypass it (FUA): NVMe.
    ForceUnitAccess,
    /// It has one that must be flushed: SATA, where Linux does not use FUA.
    FlushOnly,
}

/// The times of one disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disk {
    /// A write, without the time for its bytes.
    pub write: Ps,
    /// How long 1024 bytes take, in picoseconds. Requests transfer their bytes one after another.
    pub ps_per_kib: u64,
    pub flush: Ps,
    /// How many writes it works on at a time.
    pub channels: u64,
    pub cache: WriteCache,
    /// One CPU handles the completions of all requests, rather than the CPU that submitted each.
    pub one_interrupt: bool,
}
