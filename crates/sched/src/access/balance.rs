//! What load balancing touches that belongs to no CPU.

use crate::arch::Arch;
use crate::core::Sched;
use crate::layout::{BALANCE_RUNNING, GlobalLine};

impl<A: Arch> Sched<A> {
    /// Looks at `nohz.idle_cpus_mask`.
    #[inline]
    pub(crate) fn read_nohz(&mut self) {
        self.read(self.layout.global(GlobalLine::NohzMask));
    }

    /// Looks at `nohz.nr_cpus`, `nohz.next_balance`, `nohz.has_blocked`.
    #[inline]
    pub(crate) fn read_nohz_balance(&mut self) {
        self.read(self.layout.global(GlobalLine::NohzBalance));
    }

    /// Changes one of these.
    #[inline]
    pub(crate) fn write_nohz_balance(&mut self) {
        self.write(self.layout.global(GlobalLine::NohzBalance));
    }

    /// Enters or leaves `nohz.idle_cpus_mask`.
    #[inline]
    pub(crate) fn atomic_nohz(&mut self) {
        self.arch.atomic(self.this_cpu, self.layout.global(GlobalLine::NohzMask));
    }

    /// Counts in `nohz.nr_cpus`.
    #[inline]
    pub(crate) fn atomic_nohz_nr_cpus(&mut self) {
        self.arch.atomic(self.this_cpu, self.layout.global(GlobalLine::NohzBalance));
    }

    /// Looks whether a CPU holds `balancing`.
    #[inline]
    pub(crate) fn read_balance_running(&mut self) {
        self.read(BALANCE_RUNNING);
    }

    /// Tries to take `balancing`, or `sched_balance_running`.
    #[inline]
    pub(crate) fn atomic_balance_running(&mut self) {
        self.arch.atomic(self.this_cpu, BALANCE_RUNNING);
    }

    /// Releases it.
    #[inline]
    pub(crate) fn write_balance_running(&mut self) {
        self.write(BALANCE_RUNNING);
    }
}
