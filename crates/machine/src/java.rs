//! The cost of a Java server's work on a machine, as the machine file tells it.

use units::{Cycles, Ps};

/// SPECjbb2015's costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Java {
    /// Mean work of one message.
    pub task: Cycles,
    /// Drawing a request and encoding it.
    pub issue: Cycles,
    /// A selector's work for one message.
    pub select: Cycles,
    /// Decoding a message.
    pub decode: Cycles,
    /// A worker's look through its pool before it parks.
    pub scan: Cycles,
    /// Bytes of a message between virtual machines.
    pub message: u64,
    /// Bytes that one request allocates.
    pub allocation: u64,
    /// Bytes of a young generation.
    pub young: u64,
    /// How long a collection of the young generation stops the program.
    pub pause: Ps,
    /// Bytes that 1000 cycles of the program's work bring through a core's cache.
    pub passes: u64,
}
