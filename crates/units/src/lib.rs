//! The basic types: time, work, CPUs and sets of them, and random streams. No behaviour beyond arithmetic.

mod cpumask;
mod divisor;
mod hint;
mod prefetch;
mod prng;
mod slots;
mod time;

pub use cpumask::{CpuMask, Members, PerCpu};
pub use divisor::{Divisor, Permille};
pub use hint::{MANY_TASKS, unlikely};
pub use prefetch::{prefetch, prefetch_lines};
pub use prng::Prng;
pub use slots::Slots;
pub use time::{Cycles, Ns, Ps};

/// A CPU in the kernel's sense: one hardware thread, by its Linux number. At most [`NR_CPUS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuId(pub u16);

/// The largest number of CPUs a machine may have (Debian's and the mainline's CONFIG_NR_CPUS maximum on x86).
pub const NR_CPUS: usize = 8192;

/// Capacity of a CPU relative to the biggest one, 1024 = full (`SCHED_CAPACITY_SCALE`).
pub type Capacity = u32;

impl CpuId {
    pub fn new(index: usize) -> CpuId {
        assert!(index < NR_CPUS, "CPU number {index} is beyond {NR_CPUS}");
        CpuId(index as u16)
    }

    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for CpuId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::fmt::Debug for CpuId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cpu{}", self.0)
    }
}
