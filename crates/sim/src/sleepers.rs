//! The tasks that are left when nothing will ever happen again, so that a user can find out why.

use crate::engine::Sim;
use crate::program::Standing;
use crate::task::{Pending, TaskContext};
use machine::hardware::Hardware;
use os::Syscall;
use os::sync::{Keeper, SyncOp};
use sched::scheduler::Scheduler;

/// A task that has not ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sleeper {
    pub comm: String,
    /// The system call in which it is, in words.
    pub call: &'static str,
    /// What its program knows about that call.
    pub stands: Option<Standing>,
    pub mutex: Mutex,
}

/// The owner of the mutex for which a task waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mutex {
    /// It waits for no mutex.
    None,
    /// The owner's name in the user's file, or its comm.
    KeptBy(String),
    /// The owner has ended.
    KeptForGood,
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// The tasks that are left, in the order of their numbers, without kernel threads that outlive every program. A
    /// task that only waits for tasks that it has started is left out, unless there is no other: the tasks that it
    /// waits for explain why it waits.
    pub fn sleepers(&self) -> Vec<Sleeper> {
        let left = || self.tasks.iter().flatten().filter(|context| !context.daemon);
        let sleeper = |context: &TaskContext| Sleeper {
            comm: self.comms[context.comm as usize].clone(),
            call: call(&context.pending),
            stands: context.program.stands(),
            mutex: self.mutex(&context.pending),
        };
        let parent = |context: &TaskContext| {
            matches!(context.pending, Pending::Syscall(Syscall::Wait { .. } | Syscall::Vfork { .. }))
        };
        let waiting: Vec<Sleeper> = left().filter(|context| !parent(context)).map(sleeper).collect();
        if waiting.is_empty() { left().map(sleeper).collect() } else { waiting }
    }

    fn mutex(&self, pending: &Pending) -> Mutex {
        let Pending::Syscall(Syscall::Sync(call)) = pending else { return Mutex::None };
        match self.os.keeper(call) {
            None => Mutex::None,
            Some(Keeper::Ended) => Mutex::KeptForGood,
            Some(Keeper::Task(owner)) => {
                let context = self.tasks[owner.index()].as_ref().expect("who has ended keeps nothing by its number");
                let known = context.program.stands().map(|at| at.task);
                Mutex::KeptBy(known.unwrap_or_else(|| self.comms[context.comm as usize].clone()))
            }
        }
    }
}

fn call(pending: &Pending) -> &'static str {
    let Pending::Syscall(call) = pending else { return "no system call" };
    match call {
        Syscall::Read(_) => "a read() of a pipe",
        Syscall::Write(_) => "a write() to a pipe",
        Syscall::Poll { .. } => "a poll() of a pipe",
        Syscall::PollSocket { .. } => "a poll() of a socket",
        Syscall::EpollWait(_) => "an epoll_wait()",
        Syscall::Net(_) => "a call of a socket",
        Syscall::Sleep { .. } | Syscall::Timeout { .. } => "a sleep",
        Syscall::BlockIo { .. } => "a read of a block device",
        Syscall::Wait { .. } => "a wait4() for its children",
        Syscall::Vfork { .. } => "a vfork()",
        Syscall::Fs(_) => "a call of the file system",
        Syscall::Worker(_) | Syscall::Kjournald2(_) | Syscall::Sugov(_) | Syscall::Xfsaild(_) => "the kernel",
        Syscall::Sync(call) => match call.op {
            SyncOp::Lock(_) | SyncOp::Unlock(_) => "a pthread_mutex_lock()",
            SyncOp::Wait(..) | SyncOp::Signal(_) | SyncOp::Broadcast(_) => "a pthread_cond_wait()",
            SyncOp::Barrier(_) => "a pthread_barrier_wait()",
            SyncOp::SemaphoreWait(_) | SyncOp::SemaphorePost(_) => "a sem_wait()",
        },
    }
}
