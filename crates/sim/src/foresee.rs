//! Prefetches into the host's caches what the next turns will touch.
//!
//! Thousands of tasks fill the host's far caches, so an unexpected turn of a CPU waits for each of the objects that it
//! touches, one after the other. But the next turns are known in advance: a CPU that wins its part of the
//! [tournament](crate::tournament) is called soon, and the larger the part, the sooner. So whenever another CPU has won
//! a sixteenth of the machine, the objects to which its number leads are prefetched; when it has won an eighth, those
//! to which these lead; and so on. Nothing here changes the simulation.

use crate::engine::Sim;
use crate::task::Pending;
use machine::hardware::Hardware;
use os::Syscall;
use sched::scheduler::Scheduler;
use units::{CpuId, MANY_TASKS, prefetch, prefetch_lines, unlikely};

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// `cpu`'s turn is over, and its next time is in the tournament.
    #[inline(always)]
    pub(crate) fn foresee_turns(&self, cpu: CpuId) {
        if self.tasks.len() > MANY_TASKS {
            self.foresee_winners(cpu);
        }
    }

    /// `cpu` is about to switch.
    #[inline(always)]
    pub(crate) fn foresee_switch(&self, cpu: CpuId) {
        if unlikely(self.tasks.len() > MANY_TASKS)
            && let Some(next) = self.sched.foresee_next(cpu)
            && let Some(context) = self.tasks.get(next.index())
        {
            prefetch_lines::<2, _>(context);
        }
    }

    #[inline(never)]
    fn foresee_winners(&self, cpu: CpuId) {
        let soon = self.queue.winner_beside(cpu, 4);
        prefetch(&self.cpus[soon]);
        self.sched.foresee_rq(soon);
        let sooner = self.queue.winner_beside(cpu, 3);
        if let Some(task) = self.sched.foresee_curr(sooner)
            && let Some(context) = self.tasks.get(task.index())
        {
            prefetch_lines::<2, _>(context);
        }
        let next = self.queue.winner_beside(cpu, 2);
        self.sched.foresee_order(next);
        self.foresee_context(next);
        let now = self.queue.winner_beside(cpu, 1);
        self.sched.foresee_first(now);
        if let Some(task) = self.sched.current(now)
            && let Some(Some(context)) = self.tasks.get(task.index())
            && let Pending::Syscall(Syscall::Read(call) | Syscall::Write(call)) = &context.pending
        {
            self.os.foresee_waiters(self.sched.arch(), call.pipe);
        }
    }

    /// Prefetches what the running task's context refers to.
    #[inline(always)]
    fn foresee_context(&self, cpu: CpuId) {
        if let Some(task) = self.sched.current(cpu)
            && let Some(Some(context)) = self.tasks.get(task.index())
        {
            match &context.pending {
                Pending::Syscall(Syscall::Read(call) | Syscall::Write(call)) => self.os.foresee_pipe(call.pipe),
                _ => prefetch_lines::<1, _>(&*context.program),
            }
        }
    }
}
