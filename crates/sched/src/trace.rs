//! Tracepoints, with the kernel's names and fields (include/trace/events/sched.h), and their listeners.

use crate::arch::Arch;
use crate::core::Sched;
use crate::pelt::{SchedAvg, UTIL_AVG_UNCHANGED};
use crate::sched::{Rq, TaskId, TaskState};
use crate::scheduler::Scheduler;
use units::{CpuId, CpuMask, Ns, unlikely};

/// Load averages as a bare tracepoint reports them: 1024 is one task, or one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Averages {
    pub load: u64,
    pub runnable: u64,
    pub util: u64,
    /// `last_update_time`, in ns.
    pub update_time: u64,
}

impl From<&SchedAvg> for Averages {
    fn from(avg: &SchedAvg) -> Averages {
        Averages {
            load: avg.load_avg,
            runnable: avg.runnable_avg,
            util: avg.util_avg,
            update_time: avg.last_update_time,
        }
    }
}

/// Estimated utilization: see [`UtilEst`](crate::pelt::UtilEst).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Estimate {
    pub enqueued: u32,
    pub ewma: u32,
    pub util: u64,
}

impl From<&SchedAvg> for Estimate {
    fn from(avg: &SchedAvg) -> Estimate {
        let util_est = avg.util_est;
        Estimate { enqueued: util_est.enqueued & !UTIL_AVG_UNCHANGED, ewma: util_est.ewma, util: avg.util_avg }
    }
}

/// One side of a migration between nodes: a task, with the numbers of its process and its group (0: none), and where it is;
/// `None` if there is no such thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NumaSide {
    pub task: Option<TaskId>,
    pub tgid: u32,
    pub ngid: u32,
    pub cpu: Option<CpuId>,
    pub nid: Option<u16>,
}

/// A tracepoint that fired. `None` as a task is the idle task of the CPU on which it fired (pid 0, `swapper/N`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task was created: not a kernel event in itself (`sched_process_fork` is), but it gives tasks their names in a
    /// trace.
    SchedProcessFork {
        parent: Option<TaskId>,
        child: TaskId,
    },
    /// The task executes another program, on the CPU to which it was moved for that.
    SchedProcessExec {
        task: TaskId,
    },
    SchedProcessExit {
        task: TaskId,
    },
    /// The parent reaps a dead child. `child` is the one it asked for; `None` is any.
    SchedProcessWait {
        child: Option<TaskId>,
    },
    /// The last reference to the dead task is gone.
    SchedProcessFree {
        task: TaskId,
    },
    SchedWaking {
        task: TaskId,
        target_cpu: CpuId,
    },
    SchedWakeup {
        task: TaskId,
        target_cpu: CpuId,
    },
    SchedWakeupNew {
        task: TaskId,
        target_cpu: CpuId,
    },
    SchedSwitch {
        prev: Option<TaskId>,
        prev_state: TaskState,
        preempt: bool,
        next: Option<TaskId>,
    },
    SchedMigrateTask {
        task: TaskId,
        orig_cpu: CpuId,
        dest_cpu: CpuId,
    },
    /// A priority is lent, or given back.
    SchedPiSetprio {
        task: TaskId,
        oldprio: i32,
        newprio: i32,
    },
    SchedStatWait {
        task: TaskId,
        delay: Ns,
    },
    SchedStatSleep {
        task: TaskId,
        delay: Ns,
    },
    SchedStatIowait {
        task: TaskId,
        delay: Ns,
    },
    SchedStatBlocked {
        task: TaskId,
        delay: Ns,
    },
    /// `vruntime` in nanoseconds of nice-0 time.
    SchedStatRuntime {
        task: TaskId,
        runtime: Ns,
        vruntime: u64,
    },
    SchedWakeIdleWithoutIpi {
        cpu: CpuId,
    },
    /// A task moves to its memory's node.
    SchedMoveNuma {
        src: NumaSide,
        dst: NumaSide,
    },
    /// A task wanted to move, but could not: no CPU was found (reported from v5.7 on), or the move failed. The other side
    /// has the task with which it was to swap.
    SchedStickNuma {
        src: NumaSide,
        dst: NumaSide,
    },
    /// Two tasks swap places.
    SchedSwapNuma {
        src: NumaSide,
        dst: NumaSide,
    },
    // The following events up to `SchedUpdateNrRunning` are bare tracepoints: hooks that the kernel has for modules, without
    // an event in tracefs (v5.4 and later). They fire only if something listens to them (`Arch::tracing_bare`).
    PeltCfs {
        cpu: CpuId,
        path: String,
        avg: Averages,
    },
    /// `task` is `None` for a group's entity.
    PeltSe {
        cpu: CpuId,
        path: String,
        task: Option<TaskId>,
        avg: Averages,
    },
    PeltRt {
        cpu: CpuId,
        avg: Averages,
    },
    PeltDl {
        cpu: CpuId,
        avg: Averages,
    },
    PeltIrq {
        cpu: CpuId,
        avg: Averages,
    },
    SchedCpuCapacity {
        cpu: CpuId,
        capacity: u64,
        capacity_orig: u64,
    },
    SchedOverutilized {
        overutilized: bool,
        span: CpuMask,
    },
    SchedUtilEstCfs {
        cpu: CpuId,
        path: String,
        estimate: Estimate,
    },
    SchedUtilEstSe {
        cpu: CpuId,
        path: String,
        task: TaskId,
        estimate: Estimate,
    },
    SchedUpdateNrRunning {
        cpu: CpuId,
        change: i32,
        nr_running: u32,
    },
    /// power.h: cpu_idle. `state` counts from 0 (the shallowest); `None` is the exit.
    CpuIdle {
        state: Option<u8>,
    },
    /// power.h: cpu_frequency.
    CpuFrequency {
        khz: u32,
    },
    // irq.h, and x86's irq_vectors.h: each entry has its exit on the same CPU.
    /// The handler of a device's line is called.
    IrqHandlerEntry {
        irq: u32,
        name: String,
    },
    /// The handler has handled the interrupt.
    IrqHandlerExit {
        irq: u32,
    },
    /// `vec` is interrupt.h's number of the vector: 1 is TIMER_SOFTIRQ.
    SoftirqRaise {
        vec: u8,
    },
    /// The softirq's action is called.
    SoftirqEntry {
        vec: u8,
    },
    SoftirqExit {
        vec: u8,
    },
    /// The local timer interrupts; `vector` is the processor's.
    LocalTimerEntry {
        vector: u8,
    },
    LocalTimerExit {
        vector: u8,
    },
    /// An interrupt from another CPU, or from the CPU itself.
    IpiEntry(Ipi),
    IpiExit(Ipi),
    /// Runnable tasks on `cpu` after each change: a counter track of ours, no kernel event.
    NrRunning {
        cpu: CpuId,
        nr_running: u32,
    },
}

/// irq_vectors.h: the vector by which one CPU interrupts another, or itself. The most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ipi {
    Reschedule,
    CallFunctionSingle,
    IrqWork,
}

impl Ipi {
    pub const ALL: [Ipi; 3] = [Ipi::Reschedule, Ipi::CallFunctionSingle, Ipi::IrqWork];

    /// Its bit in a set of vectors; more urgent ones have lower bits.
    #[inline]
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// interrupt.h: the number of the scheduler's softirq.
pub const SCHED_SOFTIRQ: u8 = 7;

/// What executes on a CPU when a tracepoint fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Interrupt {
    /// A task executes: `in_task()`.
    #[default]
    None,
    Softirq,
    Hardirq,
}

/// The context in which a tracepoint fires: the columns before its time in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Context {
    /// Whether what runs there is to be rescheduled (TIF_NEED_RESCHED).
    pub need_resched: bool,
    /// The same, lazily (TIF_NEED_RESCHED_LAZY).
    pub need_resched_lazy: bool,
    pub interrupt: Interrupt,
}

impl<A: Arch> Sched<A> {
    #[cold]
    #[inline(never)]
    pub(crate) fn trace(&mut self, event: Event) {
        let Rq { need_resched, need_resched_lazy, .. } = self.rq[self.this_cpu];
        self.arch.trace_context(Context { need_resched, need_resched_lazy, interrupt: self.interrupt });
        self.arch.trace(self.this_cpu, &event);
    }

    /// The balancing softirq is raised.
    #[inline]
    pub(crate) fn trace_sched_softirq(&mut self) {
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SoftirqRaise { vec: SCHED_SOFTIRQ });
        }
    }
}

/// Fires a tracepoint of an interrupt or a softirq on `cpu`, where `by` executes. Nothing is charged for it.
#[inline(always)]
pub fn trace_interrupt<S: Scheduler>(sched: &mut S, cpu: CpuId, by: Interrupt, event: impl FnOnce() -> Event) {
    if unlikely(sched.arch().tracing()) {
        tell_of_interrupt(sched, cpu, by, &event());
    }
}

#[cold]
#[inline(never)]
fn tell_of_interrupt<S: Scheduler>(sched: &mut S, cpu: CpuId, interrupt: Interrupt, event: &Event) {
    let (need_resched, need_resched_lazy) = (sched.need_resched(cpu), sched.need_resched_lazy(cpu));
    let arch = sched.arch_mut();
    arch.trace_context(Context { need_resched, need_resched_lazy, interrupt });
    arch.trace(cpu, event);
}

/// A listener: sees every tracepoint in the order in which the simulation fires them. On one CPU times never decrease,
/// except that the idle state in which it begins comes after what boot does there. Between CPUs they may interleave by as
/// much as one kernel path takes.
pub trait Sink {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event);

    /// The context in which the scheduler fires the next event. Not called for events that are not the scheduler's own.
    fn context(&mut self, _context: Context) {}

    /// A task was created: its process id, its name and its priority (`p->prio`: 120 is nice 0). Called before any event
    /// that mentions it, and again when name or priority change.
    fn task(&mut self, _task: TaskId, _pid: u32, _comm: &str, _prio: i32) {}

    /// The task is gone; its id may be reused.
    fn task_gone(&mut self, _task: TaskId) {}
}
