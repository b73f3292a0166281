//! Tasks that execute in the kernel: where the preemption model lets other tasks replace them. [`os::preempt`] says
//! what is modelled.

use crate::cpu::Run;
use crate::engine::Sim;
use crate::program::{AddressSpace, Op};
use crate::task::Pending;
use machine::hardware::Hardware;
use os::preempt::{PIECES, PIECES_OF_CLONE, Preempt};
use os::{Syscall, paths};
use sched::access::Path;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use units::{CpuId, Ps, unlikely};

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Whether the task on `cpu` is preempted between two of its steps. `was`: what the CPU was in the middle of.
    #[inline]
    pub(crate) fn is_preempted(&self, cpu: CpuId, task: TaskId, was: Run) -> bool {
        unlikely(self.sched.need_resched_any(cpu)) && self.is_preempted_here(cpu, task, was)
    }

    #[inline(never)]
    fn is_preempted_here(&self, cpu: CpuId, task: TaskId, was: Run) -> bool {
        let now = self.sched.arch().now(cpu);
        if self.must_reschedule(cpu, now) && self.preemptible(task) {
            return true;
        }
        let exits = !matches!(was, Run::User { .. });
        exits && self.sched.need_resched_lazy(cpu) && self.returns_to_user_mode(task)
    }

    /// Whether a task is on its way to user mode, rather than in the middle of something in the kernel.
    fn returns_to_user_mode(&self, task: TaskId) -> bool {
        let context = self.tasks.get(task.index()).and_then(Option::as_ref);
        context.is_some_and(|context| match &context.pending {
            Pending::Nothing | Pending::Work(_) | Pending::RunFor(_) | Pending::SpinUntil(_) => context.mm != 0,
            Pending::Syscall(_) | Pending::Long { .. } | Pending::Executed | Pending::Dying => false,
        })
    }

    /// Whether an operation begins while a lazy reschedule request is pending, and does nothing about it. A task that
    /// computes, reads the clock or takes a free lock does not pass a point where it would notice the request, however
    /// many such operations its program uses for it.
    #[inline]
    pub(crate) fn stays_in_user_mode(&self, cpu: CpuId, op: &Op) -> bool {
        unlikely(self.os.rules.preempt == Preempt::Lazy) && self.sched.need_resched_lazy(cpu) && op.stays_in_user_mode()
    }

    /// Whether the task on `cpu` has to look for a reschedule request on the way back to user mode. `stays`: it was in
    /// user mode all the time.
    #[inline]
    pub(crate) fn must_look_on_exit(&self, cpu: CpuId, now: Ps, stays: bool) -> bool {
        unlikely(self.sched.need_resched_any(cpu))
            && (self.must_reschedule(cpu, now) || (self.sched.need_resched_lazy(cpu) && !stays))
    }

    /// Whether a task may be preempted between two of its steps. On the way to user mode it always may; kernel threads
    /// never go there.
    #[inline]
    fn preemptible(&self, task: TaskId) -> bool {
        let context = self.tasks.get(task.index()).and_then(Option::as_ref);
        if self.os.rules.preempt.preempt_schedule() {
            return !context.is_some_and(
                |context| matches!(&context.pending, Pending::Syscall(Syscall::Net(call)) if call.has_raised_softirq()),
            );
        }
        context.is_none_or(|context| match &context.pending {
            Pending::Syscall(Syscall::Net(call)) if call.is_in_the_middle() => {
                call.might_sleep() && self.os.rules.preempt.might_resched()
            }
            // Allocations call might_sleep() all along the way.
            Pending::Syscall(Syscall::Fs(call)) if call.is_in_the_middle() => self.os.rules.preempt.might_resched(),
            Pending::Long { .. } => true,
            _ => context.mm != 0,
        })
    }

    /// kernel/task_work.c: task_work_run() on the way to user mode, for a task that has run on a throttled queue.
    /// Returns whether it left the queue and was switched away. (What NUMA balancing has queued in this way is done
    /// where user mode begins: [`os::Os::exit_to_user_mode`].)
    ///
    /// As in exit_to_user_mode_loop(), a task that must reschedule does that first, and looks again when it comes back.
    #[cold]
    #[inline(never)]
    pub(crate) fn throttled_on_exit(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let exits = match self.context(task).pending {
            Pending::Nothing | Pending::Work(_) | Pending::RunFor(_) | Pending::SpinUntil(_) => true,
            Pending::Syscall(_) | Pending::Long { .. } | Pending::Executed | Pending::Dying => false,
        };
        let throttled = exits && self.sched.throttle_work_pending(task) && self.sched.throttle_cfs_rq_work(cpu);
        if throttled {
            self.clear_monitor(cpu);
            self.switch(cpu, false);
        }
        throttled
    }

    /// The way of a system call into the kernel and back.
    #[inline]
    pub(crate) fn enter_kernel(&mut self, cpu: CpuId) {
        self.within(cpu, paths::ENTRY_SYSCALL, |_| ());
        self.track_context(cpu);
    }

    /// context_tracking.c: on CPUs of nohz_full= there is no tick to inform RCU and time accounting, so they are told
    /// whenever user mode ends and begins.
    #[inline]
    pub(crate) fn track_context(&mut self, cpu: CpuId) {
        if unlikely(self.sched.tick_nohz_full_enabled()) {
            self.track_full_cpu(cpu);
        }
    }

    #[cold]
    #[inline(never)]
    fn track_full_cpu(&mut self, cpu: CpuId) {
        if self.sched.tick_nohz_full_cpu(cpu) {
            self.within(cpu, paths::CONTEXT_TRACKING, |_| ());
        }
    }

    /// What cond_resched() and might_sleep() do. Returns whether the task goes on at once.
    pub(crate) fn preemption_point(&mut self, cpu: CpuId, op: &Op) -> bool {
        let model = self.os.rules.preempt;
        let looks = if matches!(op, Op::CondResched) { model.cond_resched() } else { model.might_resched() };
        if looks && self.must_reschedule(cpu, self.sched.arch().now(cpu)) {
            self.switch(cpu, true);
            return false;
        }
        true
    }

    /// stop_machine.c: stop_one_cpu(), called by the task on `cpu` for its own CPU. If the task is preempted on the way
    /// to sleep, it does not go to sleep. Returns whether it sleeps.
    pub(crate) fn sleeps_for_stopper(&mut self, cpu: CpuId) -> bool {
        let sleeps = self.os.rules.preempt == Preempt::None && self.sched.wait_for_stopper(cpu);
        if sleeps {
            self.switch(cpu, false);
        }
        sleeps
    }

    /// Begins the long function that precedes an operation, if it can be preempted in the middle; otherwise returns the
    /// operation.
    pub(crate) fn long_part(&mut self, cpu: CpuId, task: TaskId, op: Op) -> Result<(), Op> {
        if !COSTS || self.os.rules.preempt == Preempt::None {
            return Err(op);
        }
        let (path, pieces) = match &op {
            Op::Fork(spec) if matches!(spec.memory, AddressSpace::Parent | AddressSpace::Borrowed) => {
                (paths::DO_CLONE_THREAD, PIECES_OF_CLONE)
            }
            Op::Fork(_) => (paths::DO_FORK, PIECES),
            Op::Exit => (paths::DO_EXIT, PIECES),
            _ => return Err(op),
        };
        self.enter_kernel(cpu);
        let context = self.context(task);
        context.pending = Pending::Long { path, pieces, left: pieces };
        context.after_long = Some(Box::new(op));
        Ok(())
    }

    /// Executes a piece of a long function, and after the last piece the operation.
    pub(crate) fn step_long(&mut self, cpu: CpuId, task: TaskId) {
        let Pending::Long { path, pieces, left, .. } = &mut self.context(task).pending else {
            unreachable!("a long function is pending")
        };
        let (path, pieces) = (*path, *pieces);
        *left -= 1;
        let last = *left == 0;
        // A fork's system call enters another function first, which calls this one.
        let caller: &[Path] =
            if path == paths::DO_EXIT { &[paths::ENTRY_SYSCALL] } else { &[paths::ENTRY_SYSCALL, paths::DO_FORK] };
        self.sched.arch_mut().profile_stand(cpu, caller);
        self.sched.arch_mut().work_piece(cpu, path, pieces);
        self.sched.arch_mut().profile_stand(cpu, &[]);
        if !last {
            return self.pause(cpu);
        }
        let context = self.context(task);
        context.pending = Pending::Nothing;
        let op = context.after_long.take().expect("a long function belongs to an operation");
        if self.act_in_kernel(cpu, task, *op, true) {
            self.pause(cpu);
        }
    }

    /// The end of a task that has notified its parent.
    pub(crate) fn finish_exit(&mut self, cpu: CpuId, task: TaskId) {
        let (mm, daemon) = (self.context(task).mm, self.context(task).daemon);
        self.os.exit_memory(&mut self.sched, task, mm);
        self.sched.do_exit(cpu);
        self.tasks[task.index()] = None;
        self.live_tasks -= usize::from(!daemon);
        self.switch(cpu, false);
    }
}
