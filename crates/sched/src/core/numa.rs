//! core.c: how a task changes its preferred node, and how NUMA balancing moves it.

use super::Sched;
use crate::arch::Arch;
use crate::fair::numa::MigrationSwap;
use crate::sched::*;
use crate::stop_task::StopWork;
use crate::syscalls::TaskChange;
use crate::trace::Event;
use fentry::fentry;
use units::{CpuId, unlikely};

impl<A: Arch> Sched<A> {
    /// core.c: sched_setnuma(). The task is dequeued meanwhile, because its queue counts the tasks that prefer a node.
    #[fentry]
    pub(crate) fn sched_setnuma(&mut self, p: TaskId, nid: Option<u16>) {
        self.change_task(p, TaskChange::IN_PLACE, |sched| sched.numa.task[p].numa_preferred_nid = nid);
    }

    /// core.c: migrate_task_to(). Makes the stopper of its CPU move a running task.
    pub(crate) fn migrate_task_to(&mut self, p: TaskId, target_cpu: CpuId) {
        let curr_cpu = self.task[p].cpu;
        if curr_cpu == target_cpu || !self.cpumask_test(target_cpu, p) {
            self.numa.rq[target_cpu].numa_migrate_on = false;
            if curr_cpu != target_cpu {
                self.trace_stick_numa(p, curr_cpu, None, Some(target_cpu));
            }
            return;
        }
        if unlikely(self.arch.tracing()) {
            let (src, dst) = (self.numa_side(Some(p), Some(curr_cpu)), self.numa_side(None, Some(target_cpu)));
            self.trace(Event::SchedMoveNuma { src, dst });
        }
        self.stop_one_cpu(curr_cpu, StopWork::MigrateTo(p, target_cpu));
    }

    /// core.c: migration_cpu_stop(), as called for migrate_task_to().
    pub(crate) fn migrate_task_to_stop(&mut self, p: TaskId, dest_cpu: CpuId) {
        self.numa.rq[dest_cpu].numa_migrate_on = false;
        let task = &self.task[p];
        if task.alive && task.cpu == self.this_cpu && task.on_rq == OnRq::Queued {
            self.__migrate_task(p, dest_cpu);
        }
    }

    /// core.c: migrate_swap(). `cur`, which runs on `curr_cpu`, and `p` on `target_cpu` swap places while both CPUs are
    /// stopped.
    ///
    /// Differs: `cur` stays queued here even under preempt=none; in the kernel it sleeps in stop_two_cpus() and is
    /// woken on the other CPU, or near it.
    pub(crate) fn migrate_swap(&mut self, cur: TaskId, p: TaskId, target_cpu: CpuId, curr_cpu: CpuId) {
        let active = |cpu| self.cpu_active_mask.contains(cpu);
        let may = curr_cpu != target_cpu
            && active(curr_cpu)
            && active(target_cpu)
            && self.cpumask_test(target_cpu, cur)
            && self.cpumask_test(curr_cpu, p);
        if !may {
            self.numa.rq[target_cpu].numa_migrate_on = false;
            self.trace_stick_numa(cur, curr_cpu, Some(p), Some(target_cpu));
            return;
        }
        if unlikely(self.arch.tracing()) {
            let (src, dst) = (self.numa_side(Some(cur), Some(curr_cpu)), self.numa_side(Some(p), Some(target_cpu)));
            self.trace(Event::SchedSwapNuma { src, dst });
        }
        let swap = self.numa.begin_swap(MigrationSwap {
            src_task: cur,
            src_cpu: curr_cpu,
            dst_task: p,
            dst_pid: self.task_cold[p].pid,
            dst_cpu: target_cpu,
            src_stopped: false,
            dst_stopped: false,
            swapped: None,
        });
        self.stop_two_cpus(target_cpu, curr_cpu, StopWork::Swap(swap));
    }

    /// core.c: migrate_swap_stop(). Both CPUs have stopped. Returns whether both tasks were still there and allowed to
    /// move.
    pub(crate) fn migrate_swap_stop(&mut self, swap: MigrationSwap) -> bool {
        let MigrationSwap { src_task, src_cpu, dst_task, dst_pid, dst_cpu, .. } = swap;
        let active = |cpu| self.cpu_active_mask.contains(cpu);
        let there = |task: TaskId, cpu| self.task[task].alive && self.task[task].cpu == cpu;
        let may = active(src_cpu)
            && active(dst_cpu)
            && there(dst_task, dst_cpu)
            && self.task_cold[dst_task].pid == dst_pid
            && there(src_task, src_cpu)
            && self.cpumask_test(dst_cpu, src_task)
            && self.cpumask_test(src_cpu, dst_task);
        if may {
            self.__migrate_swap_task(src_task, dst_cpu);
            self.__migrate_swap_task(dst_task, src_cpu);
        }
        may
    }

    /// core.c: __migrate_swap_task().
    fn __migrate_swap_task(&mut self, p: TaskId, cpu: CpuId) {
        if self.task[p].on_rq == OnRq::Queued {
            self.move_queued_task(p, cpu);
        } else {
            // The task sleeps by now; it will wake up there.
            self.task[p].wake_cpu = cpu;
        }
    }
}
