//! What balancing touches that belongs to no CPU.

use crate::arch::Arch;
use crate::core::Sched;
use crate::layout::{BALANCE_RUNNING, GlobalLine};

impl<A: Arch> Sched<A> {
    /// Looks at `nohz.nr_cpus`, `nohz.idle_cpus_mask`.
    #[inline]
    pub(crate) fn read_nohz(&mut self) {
        self.read(self.layout.global(GlobalLine::NohzMask));
    }

    /// Looks at `nohz.next_balance`, `nohz.has_blocked_load`, where the mask lies elsewhere.
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

    /// Tries to take `sched_balance_running`.
    #[inline]
    pub(crate) fn atomic_balance_running(&mut self) {
        self.arch.atomic(self.this_cpu, BALANCE_RUNNING);
    }

    /// Lets go of `sched_balance_running`.
    #[inline]
    pub(crate) fn write_balance_running(&mut self) {
        self.write(BALANCE_RUNNING);
    }
}
