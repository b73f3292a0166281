//! What other parts of the kernel leave to another CPU, or to a thread that is to run near one: what they ask of the scheduler for that.

use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use units::{CpuId, CpuMask};

/// A scheduler by which work finds another CPU.
pub trait LeavesToOthers {
    /// core.c: cpus_share_cache().
    fn cpus_share_cache(&self, this: CpuId, that: CpuId) -> bool;
    /// kernel/smp.c: smp_call_function_single_async(): has `to` look at what `cpu` has left for it, in that interrupt or as it leaves its polling.
    fn smp_call_function_single_async(&mut self, cpu: CpuId, to: CpuId);
    /// workqueue.c: a part of kick_pool(): a task that sleeps is to be woken on one of `pod`'s CPUs, where it would not be.
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
