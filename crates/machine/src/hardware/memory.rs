//! Tasks' data: how much of it is still in the caches when a task begins to run, and how long its work waits for
//! memory.

use super::Hardware;
use crate::memory::{Demand, MemoryLoad, Share, in_time};
use crate::warmth::WorkingSet;
use sched::sched::TaskId;
use units::{CpuId, Ps};

impl<const COSTS: bool> Hardware<COSTS> {
    /// A task with this working set begins to run on `cpu`.
    pub fn switch_in(&mut self, cpu: CpuId, task: TaskId, set: WorkingSet) {
        if COSTS && set.bytes > 0 {
            let cycle = self.cpus[cpu.index()].alone;
            let stall = self.warmth.switch_in(&self.topology, &self.prices, task.index(), set, cpu, cycle);
            self.charge(stall);
        }
    }

    /// The task stops running there.
    #[inline]
    pub fn switch_out(&mut self, cpu: CpuId, task: TaskId) {
        if COSTS {
            self.warmth.switch_out(&self.topology, task.index(), cpu);
        }
    }

    /// A tick begins on `cpu`. Returns how long it will wait for those of its lines that the core's cache has lost.
    pub fn tick_misses(&mut self, cpu: CpuId) -> Ps {
        if COSTS { self.warmth.tick(&self.topology, &self.prices, cpu) } else { Ps::ZERO }
    }

    /// The CPU that executes waits for `time`.
    pub fn stall(&mut self, time: Ps) {
        self.charge(time);
    }

    /// What runs on `cpu` has been in user mode for `spent`. In 1000 cycles it brings this many bytes through its
    /// core's cache.
    pub fn passed(&mut self, cpu: CpuId, spent: Ps, bytes: u32) {
        if COSTS {
            let bytes = in_time(bytes.into(), spent, self.user_ps_per_cycle(cpu));
            self.warmth.passed(&self.topology, cpu, bytes);
        }
    }

    /// Bytes come from another core, from which a line takes `way`: the CPU waits for the first line, the others come
    /// in parallel behind it.
    #[inline]
    pub(super) fn fetch_by(&mut self, way: Ps, bytes: u64) {
        let behind = match bytes.saturating_sub(1) / self.prices.line_bytes {
            0 => Ps::ZERO,
            lines => Ps(lines * way.0 / self.prices.refill_parallel),
        };
        self.charge(way + behind);
    }

    /// Whether what runs on `cpu` fetches lines from beyond its core's caches.
    #[inline]
    pub fn demands(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].demands
    }

    /// All CPUs that run such tasks: a change on one of them may change the speed of all.
    pub fn demanding(&self) -> Vec<CpuId> {
        self.memory_load.iter().flat_map(|load| load.cpus()).collect()
    }

    /// Sets what `cpu`'s task asks for from now on. [`Hardware::settle_memory`] then decides what it and the others
    /// get.
    pub fn set_demand(&mut self, cpu: CpuId, demand: Option<Demand>) {
        if !COSTS {
            return;
        }
        self.cpus[cpu.index()].demands = demand.is_some();
        if demand.is_none() {
            self.cpus[cpu.index()].longer = Ps::ZERO;
        }
        let load = self.memory_load.get_or_insert_with(|| Box::new(MemoryLoad::new(&self.topology)));
        load.set(cpu, demand);
    }

    /// What `cpu`'s task asks for; `None` if it asks for nothing.
    pub fn demand(&self, cpu: CpuId) -> Option<&Demand> {
        self.memory_load.as_ref()?.demand(cpu)
    }

    /// The CPUs that from now on get something else than before, because demands or speeds have changed. Each one's
    /// work up to now is to be accounted before it takes its new share ([`Hardware::take_share`]).
    pub fn settle_memory(&mut self) -> Vec<Share> {
        let Some(load) = &mut self.memory_load else { return Vec::new() };
        load.settle(&self.topology, &self.prices, |cpu| self.cpus[cpu.index()].ps_per_cycle)
    }

    pub fn take_share(&mut self, share: Share) {
        self.cpus[share.cpu.index()].longer = share.longer;
        if let Some(load) = &mut self.memory_load {
            load.take(share);
        }
    }

    /// Picoseconds that a cycle of user-mode work takes on `cpu` now, including its waits for memory.
    #[inline]
    pub fn user_ps_per_cycle(&self, cpu: CpuId) -> u64 {
        let this = &self.cpus[cpu.index()];
        this.ps_per_cycle + this.longer.0
    }

    /// The task on `cpu`, which fetches lines, has been in user mode for `spent`: its lines push others' data out of
    /// the caches.
    pub fn streamed(&mut self, cpu: CpuId, spent: Ps) {
        if let Some(load) = &self.memory_load {
            let (own, last) = load.streamed(&self.prices, cpu, spent, self.user_ps_per_cycle(cpu));
            self.warmth.streamed(&self.topology, cpu, own, last);
        }
    }
}
