//! Threads that share a core: which of them take a share of it, and how fast that leaves the others.

use super::Hardware;
use crate::smt::{Beside, SmtPrices, WorkKind};
use units::CpuId;

impl<const COSTS: bool> Hardware<COSTS> {
    /// The other threads of `cpu`'s core.
    #[inline]
    pub fn siblings(&self, cpu: CpuId) -> &[CpuId] {
        self.siblings.of(cpu)
    }

    /// The threads that `cpu`'s activity can slow down.
    #[inline]
    pub fn beside(&self, cpu: CpuId) -> Beside {
        if self.threads_share { self.siblings.beside(cpu) } else { Beside::Nobody }
    }

    /// Whether `cpu` takes its share of the core. At boot no CPU does.
    #[inline]
    pub fn is_active(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].active
    }

    /// `cpu` begins or stops taking its share of the core.
    #[inline]
    pub fn set_active(&mut self, cpu: CpuId, active: bool) {
        if self.cpus[cpu.index()].active != active {
            self.cpus[cpu.index()].active = active;
            self.share_core(cpu);
        }
    }

    /// What runs on `cpu` from now on is work of this kind.
    pub fn set_work_kind(&mut self, cpu: CpuId, kind: WorkKind) {
        if self.cpus[cpu.index()].kind != kind {
            self.cpus[cpu.index()].kind = kind;
            self.update_paired(cpu);
            self.share_core(cpu);
        }
    }

    #[inline]
    pub fn work_kind(&self, cpu: CpuId) -> WorkKind {
        self.cpus[cpu.index()].kind
    }

    /// Sets the speed of all threads of the core to what the others leave them.
    #[inline(always)]
    fn share_core(&mut self, cpu: CpuId) {
        match self.beside(cpu) {
            Beside::Nobody => {}
            Beside::One(other) => {
                self.slow_down_by(cpu, other);
                self.slow_down_by(other, cpu);
            }
            Beside::Several => self.share_core_of_several(cpu),
        }
    }

    #[cold]
    #[inline(never)]
    fn share_core_of_several(&mut self, cpu: CpuId) {
        let busy = self.busy_threads(cpu);
        self.slow_down_beside(cpu, busy);
        for number in 0..self.siblings.of(cpu).len() {
            self.slow_down_beside(self.siblings.of(cpu)[number], busy);
        }
    }

    /// How many threads of `cpu`'s core, itself among them, are busy with each kind of work.
    fn busy_threads(&self, cpu: CpuId) -> [u64; 2] {
        let mut busy = [0; 2];
        for thread in self.siblings.of(cpu).iter().chain([&cpu]).map(|thread| &self.cpus[thread.index()]) {
            busy[thread.kind as usize] += u64::from(thread.active);
        }
        busy
    }

    /// Sets `cpu`'s speed to what the busy threads of its core, itself included, leave it.
    fn slow_down_beside(&mut self, cpu: CpuId, mut busy: [u64; 2]) {
        let own = &self.cpus[cpu.index()];
        busy[own.kind as usize] -= u64::from(own.active);
        let speed = self.prices.smt.speed(own.kind, busy);
        self.set_speed(cpu, speed);
    }

    /// Sets `cpu`'s speed from its clock and the other threads of its core.
    pub(super) fn update_speed(&mut self, cpu: CpuId) {
        self.cpus[cpu.index()].alone = self.ps_per_cycle_alone(cpu);
        self.update_paired(cpu);
        self.slow_down(cpu);
    }

    /// The clock and the thread's own kind of work change seldom; whether its sibling is busy changes with each idle.
    /// Computing both speeds ahead spares those changes a division.
    fn update_paired(&mut self, cpu: CpuId) {
        let own = &mut self.cpus[cpu.index()];
        own.paired = paired(&self.prices.smt, own.kind, own.alone);
    }

    fn slow_down(&mut self, cpu: CpuId) {
        match self.beside(cpu) {
            Beside::Nobody => self.set_speed(cpu, 1000),
            Beside::One(other) => self.slow_down_by(cpu, other),
            Beside::Several => self.slow_down_beside(cpu, self.busy_threads(cpu)),
        }
    }

    /// Sets `cpu`'s speed to what the one other thread of its core leaves it.
    #[inline(always)]
    fn slow_down_by(&mut self, cpu: CpuId, other: CpuId) {
        let (own, other) = (&self.cpus[cpu.index()], &self.cpus[other.index()]);
        let ps_per_cycle = if other.active { own.paired[other.kind as usize] } else { own.alone };
        self.set_ps_per_cycle(cpu, ps_per_cycle);
    }

    /// `speed`: in permille of the speed that the thread has alone.
    fn set_speed(&mut self, cpu: CpuId, speed: u64) {
        self.set_ps_per_cycle(cpu, at_speed(self.cpus[cpu.index()].alone, speed));
    }

    #[inline(always)]
    fn set_ps_per_cycle(&mut self, cpu: CpuId, ps_per_cycle: u64) {
        self.cpus[cpu.index()].ps_per_cycle = ps_per_cycle;
        if cpu == self.executing.cpu {
            self.executing.ps_per_cycle = ps_per_cycle;
        }
    }
}

/// Picoseconds of a cycle for a thread with `kind` of work beside one busy thread, by the kind of that one's work.
pub(super) fn paired(prices: &SmtPrices, kind: WorkKind, alone: u64) -> [u64; 2] {
    prices.pair[kind as usize].map(|speed| at_speed(alone, speed))
}

/// How long work that takes `time` at full speed takes at `speed` permille.
fn at_speed(time: u64, speed: u64) -> u64 {
    if speed == 1000 { time } else { time * 1000 / speed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::IdleRules;
    use crate::prices::Prices;
    use crate::topology::{Numbering, from_synthetic};
    use sched::versions::V6_1;

    #[test]
    fn a_halted_sibling_gives_its_share_up_and_a_busy_one_takes_it_by_its_kind() {
        let topology = from_synthetic("pack:1 core:2 pu:2", "test", Numbering::LinuxX86).expect("valid");
        let smt = SmtPrices { pair: [[600, 800], [750, 900]], threads: Vec::new() };
        let prices = Prices { smt, ..Prices::free() };
        let mut hardware = Hardware::<true>::new(topology, prices, V6_1.layout(), IdleRules::V6_1, 1);
        let (a, b) = (CpuId(0), CpuId(2));
        hardware.set_active(a, true);
        let speeds = |hardware: &Hardware<true>| [a, b].map(|cpu| hardware.ps_per_cycle(cpu));
        assert_eq!(speeds(&hardware)[0], 1000, "at boot nobody takes a share");
        hardware.set_active(b, true);
        assert_eq!(speeds(&hardware), [1000 * 1000 / 600; 2]);
        hardware.set_work_kind(b, WorkKind::Memory);
        assert_eq!(speeds(&hardware), [1000 * 1000 / 800, 1000 * 1000 / 750]);
        hardware.set_work_kind(a, WorkKind::Memory);
        assert_eq!(speeds(&hardware), [1000 * 1000 / 900; 2]);
        // Other cores are unaffected.
        assert_eq!(hardware.ps_per_cycle(CpuId(1)), hardware.ps_per_cycle(CpuId(3)));
        hardware.set_active(b, false);
        assert_eq!(speeds(&hardware)[0], 1000);
    }
}
