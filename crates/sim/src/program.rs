//! What tasks do: programs as state machines, and the closed set of operations they are made of.

use machine::memory::Fetches;
use machine::smt::WorkKind;
use os::fs::FsOp;
use os::memory::RegionId;
use os::net::poll::EpollId;
use os::net::{Receive, Socket};
use os::pipe::PipeId;
use os::sync::SyncOp;
use os::workqueue::PoolId;
use sched::access::Path;
use sched::attr::SchedAttr;
use sched::autogroup::Session;
use sched::core::cgroup::GroupFile;
use sched::sched::{Policy, TaskId, TgId};
use units::{CpuMask, Cycles, Ns};

/// One thing a program asks for.
pub enum Op {
    /// User-mode work, in cycles of a core at its full speed: takes longer when the sibling thread or the frequency slows it.
    Work(Cycles),
    /// User-mode work that a CPU at its full speed, alone on its core and near its data, does in this time.
    WorkFor(Ns),
    /// User-mode work until the task has had this much CPU time, whatever the core's speed.
    RunFor(Ns),
    /// User-mode work that looks at the clock until it shows this time.
    SpinUntil(Ns),
    /// User-mode work until the task has had this much CPU time since it was created, its time in the kernel with it. The outcome
    /// is what it had before, so that `RunUntil(Ns::ZERO)` only asks: clock_gettime(CLOCK_THREAD_CPUTIME_ID).
    RunUntil(Ns),
    /// getcpu(), in user mode: the outcome is the number of the CPU.
    GetCpu,
    Read {
        pipe: PipeId,
        bytes: u64,
    },
    Write {
        pipe: PipeId,
        bytes: u64,
    },
    /// poll() until the pipe is readable.
    Poll {
        pipe: PipeId,
    },
    /// poll() until the socket has something to read.
    PollSocket {
        socket: Socket,
    },
    /// epoll_wait(): the outcome is how many sockets have something to read; which, stands in the file's array of events.
    EpollWait {
        epoll: EpollId,
    },
    /// Through a socket; the outcome is the bytes sent.
    Send {
        socket: Socket,
        bytes: u32,
    },
    /// The outcome is the bytes received; 0 when the peer has shut down and all is read.
    Receive {
        socket: Socket,
        bytes: u32,
        how: Receive,
    },
    /// shutdown(SHUT_WR), or the close() that comes to the same for the peer.
    Shutdown {
        socket: Socket,
    },
    /// A call of the file system.
    Fs(FsOp),
    SleepFor(Ns),
    SleepUntil(Ns),
    /// A read of a block device that answers after that time, past the page cache.
    BlockIo(Ns),
    /// The outcome is the child's id, or minus the number of the error where the kernel refuses its policy.
    Fork(Box<TaskSpec>),
    /// wait4() for any child; the outcome is 0 when there is none left.
    Wait,
    Sync(SyncOp),
    /// A kernel thread's work, from which it does not come back.
    Kernel(KernelLoop),
    Yield,
    /// cond_resched() and might_sleep(): where a kernel thread gives way, by the kernel's preemption model. In user mode everybody does.
    CondResched,
    MightSleep,
    /// schedule_timeout() of a kernel thread, in jiffies.
    ScheduleTimeout(u64),
    /// The same by a deferrable timer: nobody wakes an idle CPU for it, it fires with the CPU's next tick.
    DeferrableTimeout(u64),
    /// A kernel thread executes that function.
    Execute(Path),
    /// A turn of ksoftirqd: its CPU's softirqs, or a sleep until they are raised.
    RunKsoftirqd,
    /// execve(), as far as the scheduler sees it: the task may be moved to an idler CPU first. Its memory stays what it was.
    Exec,
    /// sched_setaffinity(); the outcome is as of SetAttr: EINVAL where no CPU of the mask is up.
    SetAffinity(CpuMask),
    /// -20..=19.
    SetNice(i32),
    /// sched_setscheduler(): another policy, and its priority (1..=99 for a real-time one, otherwise 0); the nice level stays.
    SetPolicy {
        policy: Policy,
        priority: u32,
    },
    /// sched_setattr(). As for SetPolicy the outcome is 0, or minus the number of the error as the kernel returns it.
    SetAttr(Box<SchedAttr>),
    MoveToGroup(TgId),
    /// From now on it touches so many bytes of a region in each second of its run time; 0 leaves the region alone.
    Touch {
        region: RegionId,
        bytes_per_second: u64,
    },
    /// Touches all of a region once: pages that are not there yet come, each at the price of its fault.
    Populate(RegionId),
    /// set_mempolicy(MPOL_BIND): memory that it touches first comes from these nodes.
    SetMembind(Vec<u16>),
    /// From now on its work in user mode is of this kind, and fetches this from beyond its core's caches: what [`TaskSpec::kind`] and
    /// [`TaskSpec::lines`] said is over.
    Fetch {
        kind: WorkKind,
        fetches: Fetches,
    },
    /// `echo TEXT > FILE` in a group's directory; the outcome is 1 where the kernel refuses it.
    WriteGroup(Box<GroupWrite>),
    /// setsid(): the process begins a session of its own.
    Setsid,
    /// Writes a nice level (-20..=19) to its own `/proc/PID/autogroup`; no effect outside a session of its own.
    SetAutogroupNice(i32),
    /// A signal to a task that has not exited: ends its [`Op::SleepFor`] or [`Op::SleepUntil`] early. Whatever else it
    /// does, it goes on with.
    Interrupt(TaskId),
    /// A measurement: `value` joins the samples of `series`.
    Report {
        series: u32,
        value: u64,
    },
    Exit,
}

impl Op {
    /// Whether it does not leave user mode, or by itself knows whether it did.
    pub(crate) fn stays_in_user_mode(&self) -> bool {
        let computes = matches!(self, Op::Work(_) | Op::WorkFor(_) | Op::RunFor(_) | Op::SpinUntil(_));
        computes || matches!(self, Op::GetCpu | Op::Report { .. } | Op::Sync(_))
    }
}

/// What kernel threads do for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelLoop {
    /// The items of a pool.
    Worker(PoolId),
    /// ext4's commits.
    Kjournald2,
    /// XFS writing back what its log holds.
    Xfsaild,
    /// The frequencies of a policy that schedutil governs, by its number.
    Sugov(u16),
}

/// What [`Op::WriteGroup`] writes, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupWrite {
    pub group: TgId,
    pub file: GroupFile,
    pub text: String,
}

/// How the last operation ended: its value (bytes moved, children collected) and the clock after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub value: u64,
    pub now: Ns,
}

/// A task's program. Called whenever its last operation is done; it decides by its own state only.
pub trait Program {
    fn next(&mut self, last: Outcome) -> Op;

    /// Where the operation under way stands in what a user wrote, if a user did: asked when nothing will ever end it.
    fn stands(&self) -> Option<Standing> {
        None
    }
}

/// A step of a user's file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The task as its user knows it.
    pub task: String,
    /// The step in the file's own words: `` `read p` ``.
    pub step: String,
    /// Both from 1.
    pub line: u32,
    pub column: u32,
}

/// A program that decides by what it is told, and nothing else needs to be: a closure.
impl<F: FnMut(Outcome) -> Op> Program for F {
    fn next(&mut self, last: Outcome) -> Op {
        self(last)
    }
}

/// A program that does one operation after the other, whatever their outcomes, and exits.
pub struct Steps<I>(pub I);

impl<I: Iterator<Item = Op>> Program for Steps<I> {
    fn next(&mut self, _last: Outcome) -> Op {
        self.0.next().unwrap_or(Op::Exit)
    }
}

/// Where a task's address space comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressSpace {
    /// A process of its own.
    Own,
    /// A thread of the task that starts it.
    Parent,
    /// Its parent's until it executes another program ([`Op::Exec`]) or exits, for which that one waits: vfork(), and what posix_spawn() does.
    ///
    /// Differs: the two switch as if they had two.
    Borrowed,
    /// That of the others with the same number: clone(CLONE_VM) by one of them, whoever its relatives are.
    Joined(u32),
    /// None: a kernel thread.
    Kernel,
}

/// A task to start.
pub struct TaskSpec {
    pub comm: String,
    /// What is set before it first runs; `None`: it has what its parent has.
    pub attr: Option<SchedAttr>,
    /// `None`: those of whoever starts it, or all.
    pub cpus: Option<CpuMask>,
    pub memory: AddressSpace,
    /// Bytes of private cache that the task uses again after a switch.
    pub working_set: u64,
    /// Those of them that its own work goes through again and again, which level 1 holds as far as it can; the others are what the
    /// kernel touches for it.
    pub data: u64,
    /// What its user-mode work mostly does.
    pub kind: WorkKind,
    /// Lines that its work fetches from beyond its core's caches in 1000 cycles; its working set says what of them the last level
    /// cache may hold.
    pub lines: u32,
    /// Bytes that its work brings through its core's caches in 1000 cycles beside that: they push others' data out; what it waits for them is
    /// part of the work.
    pub passes: u32,
    /// The cgroup it is started in. `None`: the one of whoever starts it, or the root.
    pub group: Option<TgId>,
    /// The session that it joins before its first step. `None`: the one of whoever starts it.
    pub session: Option<Session>,
    pub program: Box<dyn Program>,
}

impl TaskSpec {
    /// A normal process with nice 0 that may run anywhere and keeps nothing in the caches.
    pub fn new(comm: &str, program: impl Program + 'static) -> TaskSpec {
        TaskSpec {
            comm: comm.to_string(),
            attr: Some(SchedAttr::NORMAL),
            cpus: None,
            memory: AddressSpace::Own,
            working_set: 0,
            data: 0,
            kind: WorkKind::Compute,
            lines: 0,
            passes: 0,
            group: None,
            session: None,
            program: Box::new(program),
        }
    }
}
