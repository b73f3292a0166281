//! kernel/exit.c: do_exit(), as far as it is the scheduler's: what an exiting task leaves behind, in the kernel's order.

use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskState;
use crate::trace::Event;
use fentry::fentry;
use units::{CpuId, unlikely};

/// The steps of do_exit() that concern the scheduler. What is not its own is done between them.
pub trait Exits {
    /// The running task begins to exit: PF_EXITING, before it tells its parent.
    fn exit_signals(&mut self, cpu: CpuId);
    /// The running task, which exits, leaves its session's group: its memory is released, its parent not told yet.
    fn leave_session(&mut self, cpu: CpuId);
    /// The running task exits; the next `schedule` never returns to it.
    fn do_exit(&mut self, cpu: CpuId);
}

impl<A: Arch> Exits for Sched<A> {
    fn exit_signals(&mut self, cpu: CpuId) {
        let p = self.rq[cpu].curr.expect("only a task can exit");
        self.task[p].exiting = true;
    }

    fn leave_session(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        let p = self.rq[cpu].curr.expect("only a task can exit");
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SchedProcessExit { task: p });
        }
        self.sched_autogroup_exit_task(p);
    }

    fn do_exit(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        self.exit_current();
    }
}

impl<A: Arch> Sched<A> {
    /// kernel/exit.c: do_exit(), the scheduler's part: the running task is dead from its next schedule on.
    #[fentry(do_exit)]
    pub(crate) fn exit_current(&mut self) {
        let p = self.rq[self.this_cpu].curr.expect("only a task can exit");
        if self.balance.cache.is_followed() {
            self.sched_cache_exit_mm(p);
        }
        self.task[p].state = TaskState::Dead;
    }
}
