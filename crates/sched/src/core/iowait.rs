//! core.c: `rq->nr_iowait`: how many tasks of a CPU wait for a device. The idle governors and the ondemand governor
//! read it.

use super::Sched;
use crate::arch::Arch;
use crate::behaviour;
use units::CpuId;

behaviour! {
    /// How long a task that waits for a device counts as such at its CPU (`nr_iowait`).
    pub enum IowaitCount = "core.iowait_count" {
        UntilItRuns = "until-it-runs", since "v2.6.0", commit "",
            "from before it sleeps until it runs again, wherever that is (io_schedule_timeout)";
        UntilWoken = "until-woken", since "v4.11", commit "e33a9bba85a8", "while it sleeps: who wakes it takes it off the count";
    }
}

/// What governors ask of CPUs: how many of their tasks wait, and how busy they are.
pub trait ToldToGovernors {
    /// core.c: nr_iowait_cpu(). How many tasks sleep for a device and last ran on `cpu`.
    fn nr_iowait_cpu(&self, cpu: CpuId) -> u32;
    /// core.c: sched_cpu_util(). What all tasks and interrupts use of `cpu`, and all that it has; 1024 = the biggest CPU.
    fn sched_cpu_util(&self, cpu: CpuId) -> (u64, u64);
}

impl<A: Arch> ToldToGovernors for Sched<A> {
    #[inline]
    fn nr_iowait_cpu(&self, cpu: CpuId) -> u32 {
        self.rq[cpu].nr_iowait
    }

    fn sched_cpu_util(&self, cpu: CpuId) -> (u64, u64) {
        (self.effective_cpu_util(cpu, self.cpu_util_cfs(cpu)), self.capacity_orig_of(cpu))
    }
}

impl<A: Arch> Sched<A> {
    /// Sets `current->in_iowait`, and the count that io_schedule_timeout() kept itself until v4.10.
    pub(crate) fn current_in_iowait(&mut self, cpu: CpuId, in_iowait: bool) {
        let p = self.rq[cpu].curr.expect("only a task waits for a device");
        let before = std::mem::replace(&mut self.task[p].in_iowait, in_iowait);
        if before == in_iowait || self.kernel.core.iowait_count == IowaitCount::UntilWoken {
            return;
        }
        if in_iowait {
            self.task_cold[p].iowait_cpu = cpu;
            self.rq[cpu].nr_iowait += 1;
        } else {
            let from = self.task_cold[p].iowait_cpu;
            self.rq[from].nr_iowait -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::TaskInit;
    use crate::sched::*;
    use crate::scheduler::Scheduler;
    use crate::testing::{machine, task_in};
    use crate::versions::{Kernel, V4_5_RC1 as V4_5, V4_15, V6_12};
    use units::CpuMask;

    const CPU0: CpuId = CpuId(0);
    const CPU1: CpuId = CpuId(1);

    /// What CPU 0 counts while its task waits, once that task is woken to run on CPU 1, and when it runs there.
    fn counted(kernel: Kernel) -> [u32; 3] {
        let mut s = machine(kernel, 2);
        let alone: CpuMask = [CPU0].into_iter().collect();
        let init = TaskInit { cpus_allowed: Some(alone), ..task_in(ROOT_TASK_GROUP, "reader") };
        let p = s.fork(CPU0, init).expect("it may begin");
        Scheduler::wake_up_new_task(&mut s, CPU0, p);
        Scheduler::schedule(&mut s, CPU0, false);
        s.set_in_iowait(CPU0, true);
        // It waits again, as a task does that finds its request unfinished.
        s.set_in_iowait(CPU0, true);
        s.set_current_state(CPU0, TaskState::Uninterruptible);
        Scheduler::schedule(&mut s, CPU0, false);
        let asleep = s.nr_iowait_cpu(CPU0);
        s.on_cpu(CPU0);
        s.set_cpus_allowed_ptr(p, [CPU1].into_iter().collect()).expect("CPU 1 is up");
        s.wake(CPU0, p, WakeFlags::NONE);
        let woken = s.nr_iowait_cpu(CPU0);
        s.on_cpu(CPU1);
        s.scheduler_ipi();
        Scheduler::schedule(&mut s, CPU1, false);
        assert_eq!(s.rq[CPU1].curr, Some(p));
        s.set_in_iowait(CPU1, false);
        assert_eq!(s.nr_iowait_cpu(CPU1), 0);
        [asleep, woken, s.nr_iowait_cpu(CPU0)]
    }

    #[test]
    fn who_waits_for_a_device_counts_until_woken_and_until_v4_10_until_it_runs() {
        assert_eq!(counted(V4_5), [1, 1, 0]);
        assert_eq!(counted(V4_15), [1, 0, 0]);
        assert_eq!(counted(V6_12), [1, 0, 0]);
    }
}
