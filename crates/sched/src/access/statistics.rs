//! What statistics touch that are off by default, while they are on.

use crate::arch::Arch;
use crate::core::Sched;
use crate::layout::{Line, Region};
use crate::sched::TgId;
use units::CpuId;

const LATENCY_LOCK: Line = Line { region: Region::Statistics, index: 0 };
const FIRST_PSI_GROUP: u32 = 1;

impl<A: Arch> Sched<A> {
    /// A CPU's part of a group's pressure (`struct psi_group_cpu`): counts, states and times on a line of their own.
    #[inline]
    pub(crate) fn write_psi_group(&mut self, group: TgId, cpu: CpuId) {
        let index = FIRST_PSI_GROUP + group.0 * self.nr_cpus() as u32 + u32::from(cpu.0);
        self.arch.write(self.this_cpu, Line { region: Region::Statistics, index });
    }

    /// latencytop.c: latency_lock.
    pub(crate) fn lock_latency(&mut self) {
        self.arch.lock(self.this_cpu, LATENCY_LOCK);
    }

    pub(crate) fn unlock_latency(&mut self) {
        self.arch.unlock(self.this_cpu, LATENCY_LOCK);
    }
}
