//! Threads that share a core: who takes a share of it, and how fast the others are then.

use super::Hardware;
use crate::smt::WorkKind;
use units::CpuId;

impl<const COSTS: bool> Hardware<COSTS> {
    /// The other threads of `cpu`'s core.
    #[inline]
    pub fn siblings(&self, cpu: CpuId) -> &[CpuId] {
        self.siblings.of(cpu)
    }

    /// `cpu` takes its share of the core, or gives it up.
    pub fn set_active(&mut self, cpu: CpuId, active: bool) {
        if self.cpus[cpu.index()].active != active {
            self.cpus[cpu.index()].active = active;
            self.share_core(cpu);
        }
    }

    /// What runs on `cpu` now is work of that kind.
    pub fn set_work_kind(&mut self, cpu: CpuId, kind: WorkKind) {
        if self.cpus[cpu.index()].kind != kind {
            self.cpus[cpu.index()].kind = kind;
            self.share_core(cpu);
        }
    }

    #[inline]
    pub fn work_kind(&self, cpu: CpuId) -> WorkKind {
        self.cpus[cpu.index()].kind
    }

    /// All threads of the core are as fast as the others leave them.
    fn share_core(&mut self, cpu: CpuId) {
        let siblings = self.siblings.of(cpu).len();
        if siblings > 0 {
            self.update_speed(cpu);
        }
        for number in 0..siblings {
            self.update_speed(self.siblings.of(cpu)[number]);
        }
    }

    pub(super) fn update_speed(&mut self, cpu: CpuId) {
        let own = self.cpus[cpu.index()].kind;
        let busy = |other: &CpuId| Some(&self.cpus[other.index()]).filter(|other| other.active).map(|other| other.kind);
        let smt = &self.prices.smt;
        // Nearly all cores have at most two threads, and this is done whenever one of them goes idle or comes back.
        let speed = match self.siblings.of(cpu) {
            [] => 1000,
            [other] => busy(other).map_or(1000, |kind| smt.pair[own as usize][kind as usize]),
            others => smt.speed(own, others.iter().filter_map(busy)),
        };
        let alone = self.ps_per_cycle_alone(cpu);
        let ps_per_cycle = if speed == 1000 { alone } else { alone * 1000 / speed };
        self.cpus[cpu.index()].ps_per_cycle = ps_per_cycle;
        if cpu == self.executing.cpu {
            self.executing.ps_per_cycle = ps_per_cycle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::IdleRules;
    use crate::prices::Prices;
    use crate::smt::SmtPrices;
    use crate::topology::{Numbering, from_synthetic};
    use sched::versions::V6_1;

    #[test]
    fn a_halted_sibling_gives_its_share_up_and_a_busy_one_takes_it_by_its_kind() {
        let topology = from_synthetic("pack:1 core:2 pu:2", "test", Numbering::LinuxX86).expect("valid");
        let smt = SmtPrices { pair: [[600, 800], [750, 900]], threads: Vec::new() };
        let prices = Prices { smt, ..Prices::free() };
        let mut hardware = Hardware::<true>::new(topology, prices, V6_1.layout(), IdleRules::V6_1, 1);
        let (a, b) = (CpuId(0), CpuId(2));
        hardware.set_active(b, false);
        let speeds = |hardware: &Hardware<true>| [a, b].map(|cpu| hardware.ps_per_cycle(cpu));
        assert_eq!(speeds(&hardware)[0], 1000);
        hardware.set_active(b, true);
        assert_eq!(speeds(&hardware), [1000 * 1000 / 600; 2]);
        hardware.set_work_kind(b, WorkKind::Memory);
        assert_eq!(speeds(&hardware), [1000 * 1000 / 800, 1000 * 1000 / 750]);
        hardware.set_work_kind(a, WorkKind::Memory);
        assert_eq!(speeds(&hardware), [1000 * 1000 / 900; 2]);
        // Another core's threads do not care.
        assert_eq!(hardware.ps_per_cycle(CpuId(1)), hardware.ps_per_cycle(CpuId(3)));
        hardware.set_active(b, false);
        assert_eq!(speeds(&hardware)[0], 1000);
    }
}
