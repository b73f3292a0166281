//! What hardware does to a scheduler: how far its CPUs are apart, what it costs to move a cache line, how long a CPU
//! takes to wake, how much a sibling thread takes away.
//!
//! Time is integer picoseconds, work is cycles. Every number comes from a machine file, with its source.

pub mod description;
pub mod disk;
pub mod energy;
pub mod frequency;
pub mod hardware;
pub mod idle;
pub mod java;
pub mod lines;
pub mod memory;
pub mod power_limit;
pub mod prices;
pub mod profile;
pub mod smt;
pub mod topology;
pub mod warmth;
