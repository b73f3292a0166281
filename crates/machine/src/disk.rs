//! The disk of a machine, as its file tells of it.

use units::Ps;

/// What the disk says of its cache of writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteCache {
    /// None that a loss of power would empty.
    Safe,
    /// One, and it takes writes past it: NVMe.
    ForceUnitAccess,
    /// One that must be flushed: SATA, whose writes past it Linux leaves off.
    FlushOnly,
}

/// The times of one disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disk {
    /// A write, without its bytes.
    pub write: Ps,
    /// What 1024 bytes take, in picoseconds, one request's after another's.
    pub ps_per_kib: u64,
    pub flush: Ps,
    /// Writes that it works on at a time.
    pub channels: u64,
    pub cache: WriteCache,
    /// One CPU hears of all its requests' ends, not the one that submitted each.
    pub one_interrupt: bool,
}
