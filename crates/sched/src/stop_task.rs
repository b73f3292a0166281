//! stop_task.c and kernel/stop_machine.c: the per-CPU `migration/N` tasks, which run above everything else.

use crate::access::Path;
use crate::arch::Arch;
use crate::attr::SchedAttr;
use crate::behaviour;
use crate::core::{Sched, TaskInit};
use crate::sched::*;
use units::{CpuId, CpuMask};

behaviour! {
    /// What a task does that has the stopper of its own CPU move it, where nothing preempts it in the kernel (preempt=none).
    pub enum StopWait = "core.stop_wait" {
        Sleeps = "sleeps", since "v2.6.35", commit "",
            "it sleeps until that is done; but the stopper moves nobody who sleeps, so it goes where it is woken";
        Yields = "yields", since "v4.9", commit "bf89a304722f", "it gives way first (cond_resched()), and is moved";
    }
}

/// Work for a stopper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopWork {
    /// active_load_balance_cpu_stop(): push one task from this CPU to `rq.push_cpu`; if `towards_llc`, one that prefers the
    /// cache there (v7.2).
    ActiveBalance { towards_llc: bool },
    /// migration_cpu_stop(): move a task that may no longer run here to that CPU.
    Migrate(TaskId, CpuId),
    /// migration_cpu_stop(): move a task that is about to execute another program to that CPU, if it is still here.
    Exec(TaskId, CpuId),
    /// take_cpu_down(): move all tasks away, because the CPU goes offline (until v5.10).
    TakeCpuDown,
    /// __balance_push_cpu_stop(): move one task away, because the CPU goes offline (v5.11).
    BalancePush(TaskId),
    /// migration_cpu_stop(): move a task to that CPU, where its memory is.
    MigrateTo(TaskId, CpuId),
    /// migrate_swap_stop(), as multi_cpu_stop() on both CPUs: swap two tasks. The number of the swap.
    Swap(u32),
    /// watchdog.c: softlockup_fn(): update the time stamp of this CPU.
    Softlockup,
}

/// Requests to a CPU's stopper, and what happens to a task that has made one to its own CPU.
pub trait AsksStopper {
    /// The watchdog's timer on `cpu` makes the stopper update the time stamp (softlockup_fn()).
    fn stop_for_softlockup(&mut self, _cpu: CpuId) {}

    /// The running task of `cpu` is not preempted in the kernel. Returns whether it now sleeps until the stopper of the CPU
    /// is done.
    fn wait_for_stopper(&mut self, _cpu: CpuId) -> bool {
        false
    }
}

impl<A: Arch> AsksStopper for Sched<A> {
    fn stop_for_softlockup(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        // softlockup_completion: the previous request has been served.
        if !self.balance.stop_work[cpu.index()].contains(&StopWork::Softlockup) {
            self.stop_one_cpu(cpu, StopWork::Softlockup);
        }
    }

    fn wait_for_stopper(&mut self, cpu: CpuId) -> bool {
        self.wait_for_completion(cpu)
    }
}

impl<A: Arch> Sched<A> {
    /// The part of cpu_stop_create(): the stopper exists from boot on, asleep.
    pub(crate) fn create_stopper(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        let init = TaskInit {
            comm: format!("migration/{cpu}"),
            attr: Some(SchedAttr { sched_policy: Policy::Stop, ..SchedAttr::NORMAL }),
            cpus_allowed: Some(CpuMask::single(cpu)),
            mm: 0,
            group: ROOT_TASK_GROUP,
        };
        let stopper = self.sched_fork(None, init);
        self.task[stopper].state = TaskState::Interruptible;
        self.rq[cpu].stop = Some(stopper);
        self.balance.stop_work.push(Vec::new());
        self.balance.stop_waiter.push(None);
    }

    /// stop_machine.c: stop_one_cpu_nowait(): queues the work and wakes the stopper.
    pub(crate) fn stop_one_cpu(&mut self, cpu: CpuId, work: StopWork) {
        self.path(Path::stop_one_cpu);
        self.balance.stop_work[cpu.index()].push(work);
        let stopper = self.rq[cpu].stop.expect("every CPU has a stopper");
        self.try_to_wake_up(stopper, WakeFlags::NONE);
    }

    /// The end of stop_machine.c's stop_one_cpu(), wait_for_completion(), for a task on the stopper's own CPU.
    fn wait_for_completion(&mut self, cpu: CpuId) -> bool {
        self.on_cpu(cpu);
        let Some(curr) = self.rq[cpu].curr.filter(|_| self.kernel.core.stop_wait == StopWait::Sleeps) else {
            return false;
        };
        let asked = |work: &StopWork| match *work {
            StopWork::Migrate(p, _) | StopWork::Exec(p, _) | StopWork::MigrateTo(p, _) => p == curr,
            _ => false,
        };
        let waits = self.balance.stop_work[cpu.index()].iter().any(asked);
        if waits {
            self.write_task(curr);
            self.task[curr].state = TaskState::Uninterruptible;
            self.balance.stop_waiter[cpu.index()] = Some(curr);
        }
        waits
    }

    /// stop_machine.c: stop_two_cpus(). Queues the work on both CPUs at once, so that two swaps never wait for each other.
    pub(crate) fn stop_two_cpus(&mut self, cpu1: CpuId, cpu2: CpuId, work: StopWork) {
        self.stop_one_cpu(cpu1, work);
        self.stop_one_cpu(cpu2, work);
    }

    /// stop_machine.c: multi_cpu_stop(). Returns false while the other CPU has not stopped.
    fn multi_cpu_stop(&mut self, cpu: CpuId, number: u32) -> bool {
        let swap = self.numa.swap_mut(number);
        if cpu == swap.src_cpu {
            swap.src_stopped = true;
        } else {
            swap.dst_stopped = true;
        }
        let swap = *swap;
        if !(swap.src_stopped && swap.dst_stopped) {
            let other = if cpu == swap.src_cpu { swap.dst_cpu } else { swap.src_cpu };
            if self.cpu_online_mask.contains(other) {
                return false;
            }
            // The other CPU went offline before it got to this: if it returns, it finds nothing left to do.
            let swap = self.numa.swap_mut(number);
            (swap.src_stopped, swap.dst_stopped, swap.swapped) = (true, true, Some(false));
            let dst_cpu = swap.dst_cpu;
            self.numa.rq[dst_cpu].numa_migrate_on = false;
            return true;
        }
        if swap.swapped.is_some() {
            self.numa.end_swap(number);
            return true;
        }
        let swapped = self.migrate_swap_stop(swap);
        self.numa.swap_mut(number).swapped = Some(swapped);
        self.numa.rq[swap.dst_cpu].numa_migrate_on = false;
        if !swapped && self.task[swap.src_task].alive {
            let other = Some(swap.dst_task).filter(|&task| self.task[task].alive);
            self.trace_stick_numa(swap.src_task, swap.src_cpu, other, Some(swap.dst_cpu));
        }
        true
    }

    /// stop_machine.c: cpu_stopper_thread(). Runs as the stopper of this CPU and does all queued work. Returns false if it
    /// waits for another CPU to stop, and must be called again.
    pub(crate) fn cpu_stopper_thread(&mut self) -> bool {
        let cpu = self.this_cpu;
        while let Some(&work) = self.balance.stop_work[cpu.index()].first() {
            if let StopWork::Swap(number) = work
                && !self.multi_cpu_stop(cpu, number)
            {
                return false;
            }
            match self.balance.stop_work[cpu.index()].remove(0) {
                StopWork::Swap(_) | StopWork::Softlockup => {}
                StopWork::MigrateTo(p, dest_cpu) => self.migrate_task_to_stop(p, dest_cpu),
                StopWork::ActiveBalance { towards_llc } => self.active_load_balance_cpu_stop(cpu, towards_llc),
                StopWork::Migrate(p, dest_cpu) => self.migration_cpu_stop(p, dest_cpu),
                StopWork::Exec(p, dest_cpu) => self.sched_exec_stop(p, dest_cpu),
                StopWork::TakeCpuDown => self.take_cpu_down(cpu),
                StopWork::BalancePush(p) => self.__balance_push_cpu_stop(p),
            }
        }
        // cpu_stop_signal_done()
        if let Some(waiter) = self.balance.stop_waiter[cpu.index()].take() {
            self.try_to_wake_up(waiter, WakeFlags::NONE);
        }
        true
    }

    /// stop_task.c: enqueue_task_stop().
    pub(crate) fn enqueue_task_stop(&mut self, cpu: CpuId, p: TaskId) {
        debug_assert_eq!(self.rq[cpu].stop, Some(p), "a stopper never leaves its CPU");
        self.rq[cpu].stop_queued = true;
        self.add_nr_running(cpu, 1);
    }

    /// stop_task.c: dequeue_task_stop().
    pub(crate) fn dequeue_task_stop(&mut self, cpu: CpuId) {
        self.rq[cpu].stop_queued = false;
        self.sub_nr_running(cpu, 1);
    }

    /// stop_task.c: pick_next_task_stop().
    #[inline]
    pub(crate) fn pick_next_task_stop(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        if !self.rq[cpu].stop_queued {
            return None;
        }
        self.put_prev_task(cpu, prev);
        self.rq[cpu].stop
    }
}
