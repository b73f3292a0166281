//! What a parsed file says: typed, checked and resolved, so that an interpreter needs neither strings nor defaults.

use super::fault::{Position, RtAppError, Warning};
use units::{CpuId, CpuMask};

/// A value and where the file gives it (or, for a default, the name of what it belongs to).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    pub value: T,
    pub position: Position,
}

impl<T> Placed<T> {
    pub fn new(value: T, position: Position) -> Placed<T> {
        Placed { value, position }
    }
}

macro_rules! dense_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

dense_id! {
    /// Index into [`Application::tasks`].
    TaskId;
    /// Index into [`Application::taskgroups`].
    TaskgroupId;
    /// Index into [`Resources::mutexes`].
    MutexId;
    /// Index into [`Resources::conditions`].
    ConditionId;
    /// Index into [`Resources::barriers`].
    BarrierId;
    /// Index into [`Resources::semaphores`].
    SemaphoreId;
    /// Index into [`Resources::timers`].
    SharedTimerId;
    /// Index into [`Task::unique_timers`].
    UniqueTimerId;
    /// Index into [`Resources::buffers`].
    BufferId;
}

/// One rt-app file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// The name that messages give the file.
    pub file: String,
    pub global: Global,
    /// In the order of the file; a [`TaskId`] is an index into it.
    pub tasks: Vec<Task>,
    pub resources: Resources,
    /// Paths of control groups, each beginning with `/`; at most [`super::MOST_TASKGROUPS`].
    pub taskgroups: Vec<String>,
    /// In the order of their positions.
    pub warnings: Vec<Warning>,
}

/// Settings of the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Seconds after which every thread is stopped; `None` = when all have ended.
    pub duration_s: Option<Placed<u32>>,
    /// Kept for display: the work of `run` does not depend on it here (see [`Event::Run`]).
    pub calibration: Option<Placed<Calibration>>,
    pub default_policy: PolicyName,
    /// Whether mutexes lend the waiter's priority to their owner (`pi_enabled`); `None` = not said, which means no.
    pub pi_enabled: Option<Placed<bool>>,
    /// Bytes of the buffer that `mem` and `iorun` write from.
    pub mem_buffer_bytes: u32,
    /// Whether the first thread that is ready brings in all memory that nobody has touched (mlockall()).
    pub lock_pages: bool,
    /// Whether the log's slack column sums over the timers of a phase (else the last timer counts).
    pub cumulative_slack: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calibration {
    /// Time the loop on this CPU.
    Cpu(CpuId),
    /// Nanoseconds one loop takes.
    NsPerLoop(u32),
}

/// A kind of thread, and how many of it there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub name: String,
    /// The position of the name.
    pub position: Position,
    /// Threads at the start; 0 = threads only come from `fork`.
    pub instances: u32,
    /// Microseconds from the common start of all threads to this one's first phase.
    pub delay_us: u64,
    /// How often the sequence of phases runs.
    pub loops: Loops,
    /// The policy that is set when the thread starts.
    pub policy: Placed<Policy>,
    pub util_min: Option<Placed<u16>>,
    pub util_max: Option<Placed<u16>>,
    pub taskgroup: Option<Placed<TaskgroupId>>,
    /// NUMA nodes that memory must come from.
    pub nodes_membind: Option<Placed<Vec<u16>>>,
    /// Never empty.
    pub phases: Vec<Phase>,
    /// Timers of which each thread has its own, all starting when the thread does.
    pub unique_timers: Vec<Timer>,
}

impl Task {
    /// Whether the table measures the task by its timers; otherwise by its rounds.
    pub fn has_timers(&self) -> bool {
        let mut steps = self.phases.iter().flat_map(|phase| &phase.steps);
        steps.any(|step| matches!(step.event, Event::Timer { .. }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    Forever,
    /// At least 1.
    Times(u32),
}

/// A stretch of a task's life. What is `Some` is set each time the phase begins; what is `None` stays as it was, except
/// for the CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The task's name where the events stand in the task itself.
    pub name: String,
    pub position: Position,
    pub loops: Loops,
    pub policy: Option<Placed<Policy>>,
    pub util_min: Option<Placed<u16>>,
    pub util_max: Option<Placed<u16>>,
    pub taskgroup: Option<Placed<TaskgroupId>>,
    pub nodes_membind: Option<Placed<Vec<u16>>>,
    /// Where the task may run from the beginning of this phase: the phase's list, else the task's; `None` = on all
    /// CPUs.
    pub cpus: Option<Placed<CpuMask>>,
    /// In the order of execution, never empty.
    pub steps: Vec<Step>,
}

/// One event and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub event: Event,
    /// The name in the file, with workgen's number where it was repeated: what rt-app's trace marks show.
    pub key: String,
    pub position: Position,
}

/// What a thread does. Times are microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// This many microseconds of a CPU of capacity 1024 at its highest frequency: a fixed amount of work, which takes
    /// longer elsewhere.
    Run {
        us: u64,
    },
    /// Computes until this much time has passed, whatever the CPU's speed; the clock runs on while preempted.
    Runtime {
        us: u64,
    },
    /// Zero sleeps for the timer slack only.
    Sleep {
        us: u64,
    },
    /// Sleeps until the timer's last expiry plus the period (see [`TimerMode`]).
    Timer {
        timer: TimerRef,
        period_us: u64,
    },
    Lock(MutexId),
    Unlock(MutexId),
    Wait {
        condition: ConditionId,
        mutex: MutexId,
    },
    /// Wakes one waiter, then waits, in one event.
    Sync {
        condition: ConditionId,
        mutex: MutexId,
    },
    /// Wakes one waiter.
    Signal(ConditionId),
    /// Wakes all waiters.
    Broad(ConditionId),
    /// Locks the mutex, waits on the condition, unlocks: the pair is named after the task, so all its threads share it.
    Suspend {
        condition: ConditionId,
        mutex: MutexId,
    },
    /// Locks the mutex, wakes all waiters, unlocks. `task` is `None` where the name is that of a condition only.
    Resume {
        task: Option<TaskId>,
        condition: ConditionId,
        mutex: MutexId,
    },
    /// Overwrites this many bytes, in rounds through the task's buffer of `Global::mem_buffer_bytes`.
    Mem {
        bytes: u32,
    },
    MemRun {
        access: MemAccess,
        /// Bytes read or written one by one, or pointers followed.
        count: u32,
        buffer: BufferId,
    },
    /// Writes this many bytes to the I/O device.
    IoRun {
        bytes: u32,
    },
    Yield,
    Barrier(BarrierId),
    SemPost(SemaphoreId),
    SemWait(SemaphoreId),
    /// Starts one more thread of the task, at most [`super::FORK_LIMIT`] times for each task that is named.
    Fork(TaskId),
}

impl Event {
    /// The name rt-app's grammar has for it.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Run { .. } => "run",
            Event::Runtime { .. } => "runtime",
            Event::Sleep { .. } => "sleep",
            Event::Timer { .. } => "timer",
            Event::Lock(_) => "lock",
            Event::Unlock(_) => "unlock",
            Event::Wait { .. } => "wait",
            Event::Sync { .. } => "sync",
            Event::Signal(_) => "signal",
            Event::Broad(_) => "broad",
            Event::Suspend { .. } => "suspend",
            Event::Resume { .. } => "resume",
            Event::Mem { .. } => "mem",
            Event::MemRun { .. } => "memrun",
            Event::IoRun { .. } => "iorun",
            Event::Yield => "yield",
            Event::Barrier(_) => "barrier",
            Event::SemPost(_) => "sem_post",
            Event::SemWait(_) => "sem_wait",
            Event::Fork(_) => "fork",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerRef {
    /// One timer for all threads that name it.
    Shared(SharedTimerId),
    /// The thread's own (names that begin with `unique`).
    Unique(UniqueTimerId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    pub name: String,
    pub mode: TimerMode,
}

/// What a timer does if a thread comes to wait for it after its moment has passed. The first moment is counted from the
/// start of the first thread, plus the delay of the thread that uses the timer first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerMode {
    /// The next period counts from now.
    Relative,
    /// The next period counts from the missed moment, so that misses add up.
    Absolute,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemAccess {
    Read,
    Write,
    Chase,
}

/// Memory that `memrun` works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// `ref` of a buffer that all tasks share; `None` = the task's own (rt-app makes one for all threads of a task).
    pub shared_as: Option<String>,
    pub bytes: u32,
    /// For [`MemAccess::Chase`] only.
    pub chain: Option<Chain>,
}

/// How the pointers of a chase lie in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    pub stride_bytes: u32,
    /// Whether the pointers follow bit-reversed positions, which defeats prefetchers; otherwise one stride after the
    /// other.
    pub random: bool,
}

/// Everything threads meet at. Ids index these lists; the strings are names for display.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub mutexes: Vec<String>,
    pub conditions: Vec<String>,
    pub barriers: Vec<Barrier>,
    /// All start at 0.
    pub semaphores: Vec<String>,
    pub timers: Vec<Timer>,
    pub buffers: Vec<Buffer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    pub name: String,
    /// Arrivals that open it: each use in the file counts the instances of its task.
    pub users: u32,
}

impl Resources {
    /// The name of the resource at which an event may have to wait.
    pub fn met_at(&self, event: &Event) -> Option<&str> {
        Some(match *event {
            Event::Lock(mutex) | Event::Unlock(mutex) | Event::Resume { mutex, .. } => &self.mutexes[mutex.index()],
            Event::Wait { condition, .. } | Event::Sync { condition, .. } | Event::Suspend { condition, .. } => {
                &self.conditions[condition.index()]
            }
            Event::Barrier(barrier) => &self.barriers[barrier.index()].name,
            Event::SemWait(semaphore) => self.semaphores.get(semaphore.index())?,
            _ => return None,
        })
    }
}

/// A policy by name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyName {
    Other,
    Batch,
    Idle,
    RoundRobin,
    Fifo,
    Deadline,
}

/// A policy with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `nice` is -20 to 19; `slice_us` is a requested slice, which Linux honours since 6.12.
    Other {
        nice: i8,
        slice_us: Option<u32>,
    },
    Batch {
        nice: i8,
        slice_us: Option<u32>,
    },
    Idle,
    /// 1 to 99.
    RoundRobin {
        priority: u8,
    },
    /// 1 to 99.
    Fifo {
        priority: u8,
    },
    /// `runtime_us <= deadline_us <= period_us`.
    Deadline {
        runtime_us: u32,
        deadline_us: u32,
        period_us: u32,
    },
}

impl PolicyName {
    pub const ALL: [PolicyName; 6] = [
        PolicyName::Other,
        PolicyName::Batch,
        PolicyName::Idle,
        PolicyName::RoundRobin,
        PolicyName::Fifo,
        PolicyName::Deadline,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            PolicyName::Other => "SCHED_OTHER",
            PolicyName::Batch => "SCHED_BATCH",
            PolicyName::Idle => "SCHED_IDLE",
            PolicyName::RoundRobin => "SCHED_RR",
            PolicyName::Fifo => "SCHED_FIFO",
            PolicyName::Deadline => "SCHED_DEADLINE",
        }
    }

    /// Whether the fair class schedules it.
    pub fn is_fair(self) -> bool {
        matches!(self, PolicyName::Other | PolicyName::Batch | PolicyName::Idle)
    }
}

impl Policy {
    pub fn name(&self) -> PolicyName {
        match self {
            Policy::Other { .. } => PolicyName::Other,
            Policy::Batch { .. } => PolicyName::Batch,
            Policy::Idle => PolicyName::Idle,
            Policy::RoundRobin { .. } => PolicyName::RoundRobin,
            Policy::Fifo { .. } => PolicyName::Fifo,
            Policy::Deadline { .. } => PolicyName::Deadline,
        }
    }
}

impl Application {
    /// Threads that exist at the start, in rt-app's order: its `index` counts them.
    pub fn threads(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.tasks.iter().enumerate().flat_map(|(i, t)| std::iter::repeat_n(TaskId(i as u32), t.instances as usize))
    }

    /// A thread's name as rt-app gives it: `<task>-<index>`, and `-<fork>` of four digits for a forked one,
    /// counted from 0 for each task that is forked.
    pub fn thread_name(&self, task: TaskId, index: u32, fork: Option<u32>) -> String {
        let name = &self.tasks[task.index()].name;
        match fork {
            None => format!("{name}-{index}"),
            Some(fork) => format!("{name}-{index}-{fork:04}"),
        }
    }

    /// All steps with the task they belong to.
    pub fn steps(&self) -> impl Iterator<Item = (TaskId, &Step)> {
        self.tasks
            .iter()
            .enumerate()
            .flat_map(|(i, t)| t.phases.iter().flat_map(|p| &p.steps).map(move |s| (TaskId(i as u32), s)))
    }

    /// Whether some event goes through a buffer.
    pub fn uses_memory(&self) -> bool {
        self.steps().any(|(_, step)| matches!(step.event, Event::Mem { .. } | Event::MemRun { .. }))
    }

    /// Whether a task has a `mem`.
    pub fn overwrites(&self, task: TaskId) -> bool {
        self.steps().any(|(of, step)| of == task && matches!(step.event, Event::Mem { .. }))
    }

    /// Every `nodes_membind` of the file.
    pub fn memory_nodes(&self) -> impl Iterator<Item = &Placed<Vec<u16>>> {
        self.tasks.iter().flat_map(|task| {
            task.nodes_membind.iter().chain(task.phases.iter().filter_map(|phase| phase.nodes_membind.as_ref()))
        })
    }

    /// Errors at the first `nodes_membind` that names a node the machine does not have.
    pub fn check_nodes(&self, nr_nodes: usize) -> Result<(), RtAppError> {
        for list in self.memory_nodes() {
            if let Some(node) = list.value.iter().find(|&&node| usize::from(node) >= nr_nodes) {
                let nodes = if nr_nodes == 1 { "1 node" } else { &format!("{nr_nodes} nodes") };
                return Err(RtAppError {
                    file: self.file.clone(),
                    position: list.position,
                    found: format!("\"nodes_membind\" names node {node}, but the machine has {nodes}"),
                    right: format!("use nodes 0 to {}", nr_nodes - 1),
                });
            }
        }
        Ok(())
    }

    /// Errors at the first `cpus` list that names a CPU the machine does not have.
    pub fn check_cpus(&self, nr_cpus: usize) -> Result<(), RtAppError> {
        for list in self.tasks.iter().flat_map(|t| &t.phases).filter_map(|p| p.cpus.as_ref()) {
            if let Some(cpu) = list.value.next_from(nr_cpus) {
                return Err(RtAppError {
                    file: self.file.clone(),
                    position: list.position,
                    found: format!("\"cpus\" names CPU {cpu}, but the machine has {nr_cpus} CPUs"),
                    right: format!("use CPUs 0 to {}", nr_cpus.saturating_sub(1)),
                });
            }
        }
        Ok(())
    }

    /// Whether every thread that exists at the start ends by itself or at `duration` (unless it waits for ever).
    pub fn ends(&self) -> bool {
        self.endless_task().is_none()
    }

    /// The first task that repeats for ever, where nothing stops it.
    pub fn endless_task(&self) -> Option<&Task> {
        let endless = |t: &&Task| {
            t.instances > 0 && (t.loops == Loops::Forever || t.phases.iter().any(|p| p.loops == Loops::Forever))
        };
        self.tasks.iter().find(endless).filter(|_| self.global.duration_s.is_none())
    }
}
