//! What statistics that are off by default touch, where they are on.

use crate::arch::Arch;
use crate::core::Sched;
use crate::layout::{Line, Region};
use crate::sched::TgId;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// A CPU's part of a group's pressure (`struct psi_group_cpu`): counts, states and times on a line of their own.
    #[inline]
    pub(crate) fn write_psi_group(&mut self, group: TgId, cpu: CpuId) {
        let index = group.0 * self.nr_cpus() as u32 + u32::from(cpu.0);
        self.arch.write(self.this_cpu, Line { region: Region::Psi, index });
    }
}
