//! Lines of cache-aware scheduling (v7.2).

use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::cache::CacheGroupId;
use crate::layout::CacheLine;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// `raw_spin_lock(&rq->cpu_epoch_lock)`, with `cpu_runtime` and `cpu_epoch` on its line.
    #[inline]
    pub(crate) fn cpu_epoch_lock(&mut self, cpu: CpuId) {
        self.arch.lock(self.this_cpu, self.layout.sched_cache(u32::from(cpu.0), CacheLine::Epoch));
    }

    #[inline]
    pub(crate) fn cpu_epoch_unlock(&mut self, cpu: CpuId) {
        self.arch.unlock(self.this_cpu, self.layout.sched_cache(u32::from(cpu.0), CacheLine::Epoch));
    }

    /// Changes a CPU's `sched_cache_time` of a process. It lies in the CPU's own memory; here all processes share one
    /// line of it (in the kernel, four do).
    #[inline]
    pub(crate) fn write_cache_time(&mut self, cpu: CpuId) {
        self.write(self.layout.sched_cache(u32::from(cpu.0), CacheLine::Time));
    }

    /// Looks at `sd->llc_counts` of a CPU's lowest domain.
    #[inline]
    pub(crate) fn read_llc_counts(&mut self, cpu: CpuId) {
        self.read(self.layout.sched_cache(u32::from(cpu.0), CacheLine::Counts));
    }

    /// Changes it.
    #[inline]
    pub(crate) fn write_llc_counts(&mut self, cpu: CpuId) {
        self.write(self.layout.sched_cache(u32::from(cpu.0), CacheLine::Counts));
    }

    /// Looks at a process's `sched_cache_group`: one line for all of its threads.
    #[inline]
    pub(crate) fn read_cache_group(&mut self, group: CacheGroupId) {
        self.read(self.layout.sched_cache(group.0, CacheLine::Group));
    }

    /// Changes it.
    #[inline]
    pub(crate) fn write_cache_group(&mut self, group: CacheGroupId) {
        self.write(self.layout.sched_cache(group.0, CacheLine::Group));
    }
}
