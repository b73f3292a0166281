//! What tasks do: programs as state machines, and the closed set of operations from which they are made.

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
    /// User-mode work, in cycles of a core at full speed. It takes longer when a sibling thread or the frequency slows
    /// the core down.
    Work(Cycles),
    /// User-mode work that takes this time on a CPU at full speed, alone on its core and near its data.
    WorkFor(Ns),
    /// User-mode work until the task has had this much CPU time, whatever the core's speed.
    RunFor(Ns),
    /// User-mode work that reads the clock until it shows this time.
    SpinUntil(Ns),
    /// User-mode work until the task has had this much CPU time since it was created, its time in the kernel included.
    /// The outcome is the CPU time that it had before, so `RunUntil(Ns::ZERO)` only asks:
    /// clock_gettime(CLOCK_THREAD_CPUTIME_ID).
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
    /// epoll_wait(): the outcome is how many sockets have something to read. Which ones is in the file's array of
    /// events.
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
    /// A file system call.
    Fs(FsOp),
    SleepFor(Ns),
    SleepUntil(Ns),
    /// A read of a block device, bypassing the page cache. The device answers after this time.
    BlockIo(Ns),
    /// The outcome is the child's id, or the negated error number if the kernel refuses the child's policy.
    Fork(Box<TaskSpec>),
    /// wait4() for any child; the outcome is 0 when there is none left.
    Wait,
    Sync(SyncOp),
    /// A kernel thread's work, from which it does not return.
    Kernel(KernelLoop),
    Yield,
    /// cond_resched() and might_sleep(): where a kernel thread gives way, depending on the kernel's preemption model.
    /// In user mode a task gives way anywhere.
    CondResched,
    MightSleep,
    /// schedule_timeout() of a kernel thread, in jiffies.
    ScheduleTimeout(u64),
    /// A kernel thread executes this function.
    Execute(Path),
    /// One round of ksoftirqd: its CPU's softirqs, or a sleep until some are raised.
    RunKsoftirqd,
    /// execve(), as far as the scheduler sees it: the task may first be moved to a CPU with less load. Its memory stays
    /// the same.
    Exec,
    /// sched_setaffinity(); the outcome is like SetAttr's: EINVAL if no CPU of the mask is up.
    SetAffinity(CpuMask),
    /// -20..=19.
    SetNice(i32),
    /// sched_setscheduler(): another policy, and its priority (1..=99 for a real-time one, otherwise 0); the nice level stays.
    SetPolicy {
        policy: Policy,
        priority: u32,
    },
    /// sched_setattr(). As for SetPolicy the outcome is 0, or the negated error number of the kernel.
    SetAttr(Box<SchedAttr>),
    MoveToGroup(TgId),
    /// From now on the task touches this many bytes of a region in each second of its run time; 0: it leaves the region
    /// alone.
    Touch {
        region: RegionId,
        bytes_per_second: u64,
    },
    /// Touches all of a region once: each page that is missing is faulted in, at the price of a fault.
    Populate(RegionId),
    /// set_mempolicy(MPOL_BIND): memory that the task touches first is allocated on these nodes.
    SetMembind(Vec<u16>),
    /// From now on the task's user-mode work is of this kind, and fetches this from beyond its core's caches. It
    /// replaces [`TaskSpec::kind`] and [`TaskSpec::lines`].
    Fetch {
        kind: WorkKind,
        fetches: Fetches,
    },
    /// `echo TEXT > FILE` in a group's directory; the outcome is 1 if the kernel refuses it.
    WriteGroup(Box<GroupWrite>),
    /// setsid(): the process begins a session of its own.
    Setsid,
    /// Writes a nice level (-20..=19) to the task's own `/proc/PID/autogroup`; it has no effect outside a session of
    /// its own.
    SetAutogroupNice(i32),
    /// A signal to a task that has not exited: ends its [`Op::SleepFor`] or [`Op::SleepUntil`] early. Any other
    /// operation goes on.
    Interrupt(TaskId),
    /// A measurement: `value` joins the samples of `series`.
    Report {
        series: u32,
        value: u64,
    },
    Exit,
}

impl Op {
    /// Whether the operation does not leave user mode, or reports by itself whether it did.
    pub(crate) fn stays_in_user_mode(&self) -> bool {
        let computes = matches!(self, Op::Work(_) | Op::WorkFor(_) | Op::RunFor(_) | Op::SpinUntil(_));
        computes || matches!(self, Op::GetCpu | Op::Report { .. } | Op::Sync(_))
    }
}

/// What kernel threads do for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelLoop {
    /// Execute the work items of a pool.
    Worker(PoolId),
    /// Commit ext4's journal.
    Kjournald2,
    /// Write back what XFS's log holds.
    Xfsaild,
    /// Set the frequency of a policy that schedutil governs, by the policy's number.
    Sugov(u16),
}

/// What [`Op::WriteGroup`] writes, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupWrite {
    pub group: TgId,
    pub file: GroupFile,
    pub text: String,
}

/// How the last operation ended: its value (bytes moved, children collected), and the time after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub value: u64,
    pub now: Ns,
}

/// A task's program. It is called whenever its last operation is done, and decides by its own state alone.
pub trait Program {
    fn next(&mut self, last: Outcome) -> Op;

    /// The step of the user's file to which the present operation belongs, if a user wrote one. Asked when nothing will
    /// ever end the operation.
    fn stands(&self) -> Option<Standing> {
        None
    }
}

/// A step of a user's file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The task's name in that file.
    pub task: String,
    /// The step in the file's own words: `` `read p` ``.
    pub step: String,
    /// Both count from 1.
    pub line: u32,
    pub column: u32,
}

/// A program that decides by outcomes alone can be a closure.
impl<F: FnMut(Outcome) -> Op> Program for F {
    fn next(&mut self, last: Outcome) -> Op {
        self(last)
    }
}

/// A program that does one operation after the other, whatever their outcomes, and then exits.
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
    /// The parent's, until the task executes another program ([`Op::Exec`]) or exits; the parent waits for that. It is
    /// vfork(), which posix_spawn() uses, too.
    ///
    /// Differs: switches between the two cost as if each had its own.
    Borrowed,
    /// That of the other tasks with the same number: clone(CLONE_VM), whatever else relates the tasks.
    Joined(u32),
    /// None: a kernel thread.
    Kernel,
}

/// A task to start.
pub struct TaskSpec {
    pub comm: String,
    /// Set before the task first runs; `None`: it inherits its parent's.
    pub attr: Option<SchedAttr>,
    /// `None`: those of the task that starts it, or all.
    pub cpus: Option<CpuMask>,
    pub memory: AddressSpace,
    /// Bytes of private cache that the task uses again after a switch.
    pub working_set: u64,
    /// The part of the working set that the task's own work goes through again and again, and which level 1 holds as
    /// far as it can. The rest is what the kernel touches for the task.
    pub data: u64,
    /// What its user-mode work mostly does.
    pub kind: WorkKind,
    /// Lines that its work fetches from beyond its core's caches in 1000 cycles. The working set decides how many of
    /// them the last level cache may hold.
    pub lines: u32,
    /// Bytes that its work brings through its core's caches in 1000 cycles besides. They push out others' data; waiting
    /// for them is part of the work.
    pub passes: u32,
    /// The cgroup in which it starts. `None`: that of the task that starts it, or the root.
    pub group: Option<TgId>,
    /// The session that it joins before its first step. `None`: that of the task that starts it.
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
