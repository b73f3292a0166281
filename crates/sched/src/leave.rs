//! How other parts of the kernel leave work to another CPU, or to a thread that is to run near one.

use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use units::{CpuId, CpuMask};

/// A scheduler through which work finds another CPU.
pub trait LeavesToOthers {
    /// core.c: cpus_share_cache().
    fn cpus_share_cache(&self, this: CpuId, that: CpuId) -> bool;
    /// kernel/smp.c: smp_call_function_single_async(). Makes `to` look at what `cpu` has left for it, in an interrupt
    /// or when it stops polling.
    fn smp_call_function_single_async(&mut self, cpu: CpuId, to: CpuId);
    /// workqueue.c: a part of kick_pool(): a sleeping task is to be woken on one of `pod`'s CPUs, if it would otherwise
    /// wake elsewhere.
    fn set_wake_cpu_within(&mut self, cpu: CpuId, task: TaskId, pod: &CpuMask);
}

impl<A: Arch> LeavesToOthers for Sched<A> {
    fn cpus_share_cache(&self, this: CpuId, that: CpuId) -> bool {
        Sched::cpus_share_cache(self, this, that)
    }

    fn smp_call_function_single_async(&mut self, cpu: CpuId, to: CpuId) {
        self.on_cpu(cpu);
        Sched::smp_call_function_single_async(self, to);
    }

    fn set_wake_cpu_within(&mut self, cpu: CpuId, task: TaskId, pod: &CpuMask) {
        self.on_cpu(cpu);
        Sched::set_wake_cpu_within(self, task, pod);
    }
}
