//! What a Java server's work takes on a machine, as its file tells of it.

use units::{Cycles, Ps};

/// SPECjbb2015's costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Java {
    /// Mean work of one message.
    pub task: Cycles,
    /// Drawing a request and encoding it.
    pub issue: Cycles,
    /// What a selector takes for a message.
    pub select: Cycles,
    /// What decoding one takes.
    pub decode: Cycles,
    /// A worker's look through its pool before it parks.
    pub scan: Cycles,
    /// Bytes of a message between virtual machines.
    pub message: u64,
    /// Bytes that one request allocates.
    pub allocation: u64,
    /// Bytes of a young generation.
    pub young: u64,
    /// What a collection of it stops the program for.
    pub pause: Ps,
    /// Bytes that 1000 cycles of its work bring through a core's cache.
    pub passes: u64,
}
