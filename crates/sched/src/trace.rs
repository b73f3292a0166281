//! Tracepoints, with the kernel's names and fields (include/trace/events/sched.h), and who may listen to them.

use crate::sched::{TaskId, TaskState};
use units::{CpuId, Ns};

/// One passed tracepoint. `None` as a task is the idle task of the CPU that passed it (pid 0, `swapper/N`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task came to be: not a kernel event in itself (`sched_process_fork` is), but what names tasks in a trace.
    SchedProcessFork {
        parent: Option<TaskId>,
        child: TaskId,
    },
    SchedProcessExit {
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
    /// power.h: cpu_idle. `state` counts from 0 (the shallowest); `None` is the exit.
    CpuIdle {
        state: Option<u8>,
    },
    /// power.h: cpu_frequency.
    CpuFrequency {
        khz: u32,
    },
    /// Runnable tasks on `cpu` after an enqueue or dequeue: a counter track of ours, no kernel event.
    NrRunning {
        cpu: CpuId,
        nr_running: u32,
    },
}

/// A listener: sees every tracepoint in the order in which the simulation passes them. On one CPU times never decrease;
/// between CPUs they may interleave by as much as one kernel path takes.
pub trait Sink {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event);

    /// A task was created: its process id, its name and its priority (`p->prio`: 120 is nice 0), told before any event
    /// that mentions it, and again when name or priority change.
    fn task(&mut self, _task: TaskId, _pid: u32, _comm: &str, _prio: i32) {}

    /// Task ids are used again after an exit: the old owner is gone.
    fn task_gone(&mut self, _task: TaskId) {}
}
