//! Locks between the threads of a program: mutexes, conditions, barriers and semaphores over futexes.
//!
//! An uncontended operation stays in user space. Waiters queue as in the kernel ([`FutexQueue`]); a wakeup is a futex
//! wake, without the sync hint. A mutex is never handed over: a woken waiter tries again (as glibc's does), in the
//! order in which the scheduler runs the waiters. Once it has the mutex it unlocks it through the kernel, since other
//! waiters may still sleep. Mutexes that lend their waiters' priority to the owner are different: [`rtmutex`].

pub mod rtmutex;

use crate::{Os, Step, charge, paths, preempt_enable};
use sched::access::Path;
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{MAX_RT_PRIO, TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::CpuId;

macro_rules! id {
    ($name:ident) => {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);
    };
}

/// A mutex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MutexId {
    Plain(u32),
    /// One with priority inheritance.
    Pi(u32),
}

id!(CondId);
id!(BarrierId);
id!(SemaphoreId);

/// The owner of a mutex whose real owner has ended: the mutex stays taken, and a later task with that owner's number
/// does not own it.
const GONE: TaskId = TaskId(u32::MAX);

/// The tasks that sleep on a futex, in the order of the kernel's queue_me() or __futex_queue(): real-time and deadline
/// tasks by priority, then all others; within one rank in the order of arrival.
///
/// A task with a lent priority is queued by that priority; the kernel uses its own.
#[derive(Clone, Debug, Default)]
struct FutexQueue(VecDeque<(i32, TaskId)>);

impl FutexQueue {
    fn push<S: Scheduler>(&mut self, sched: &S, task: TaskId) {
        let prio = sched.task_prio(task).min(MAX_RT_PRIO);
        let at = self.0.partition_point(|other| other.0 <= prio);
        self.0.insert(at, (prio, task));
    }

    /// Removes the task that is to be woken first.
    fn pop(&mut self) -> Option<TaskId> {
        self.0.pop_front().map(|(_, task)| task)
    }

    /// Removes at most `most` tasks in the same order.
    fn take(&mut self, most: usize) -> VecDeque<TaskId> {
        self.0.drain(..most.min(self.0.len())).map(|(_, task)| task).collect()
    }

    fn remove(&mut self, task: TaskId) {
        self.0.retain(|&(_, other)| other != task);
    }

    fn contains(&self, task: TaskId) -> bool {
        self.0.iter().any(|&(_, other)| other == task)
    }
}

#[derive(Clone, Debug)]
struct Mutex {
    line: Line,
    owner: Option<TaskId>,
    /// The futex word is 2: a task may sleep for it, so that the unlock goes through the kernel.
    contended: bool,
    waiters: FutexQueue,
}

#[derive(Clone, Debug)]
struct Cond {
    line: Line,
    waiters: FutexQueue,
}

#[derive(Clone, Debug)]
struct Barrier {
    line: Line,
    users: u32,
    waiters: FutexQueue,
    /// Counts releases, so that a waiter can tell whether its own has come.
    generation: u64,
}

#[derive(Clone, Debug)]
struct Semaphore {
    line: Line,
    count: u64,
    waiters: FutexQueue,
}

/// All objects, by number.
#[derive(Clone, Debug, Default)]
pub struct Sync {
    mutexes: Vec<Mutex>,
    pi_mutexes: Vec<rtmutex::PiMutex>,
    conds: Vec<Cond>,
    barriers: Vec<Barrier>,
    semaphores: Vec<Semaphore>,
    /// The tasks that wakers still have to wake, for wakers that were preempted in the middle.
    wake_qs: Vec<(TaskId, VecDeque<TaskId>)>,
}

/// What a thread asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncOp {
    Lock(MutexId),
    Unlock(MutexId),
    /// Unlocks the mutex, sleeps until signalled, locks the mutex again.
    Wait(CondId, MutexId),
    Signal(CondId),
    Broadcast(CondId),
    Barrier(BarrierId),
    SemaphorePost(SemaphoreId),
    SemaphoreWait(SemaphoreId),
}

/// The progress of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncCall {
    pub op: SyncOp,
    stage: Stage,
    /// Whether it has entered the kernel.
    entered: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Start,
    /// Asleep on a mutex.
    Locking,
    /// Asleep for good: it would have waited for itself.
    Deadlocked,
    /// Asleep on a condition.
    Waiting,
    /// Asleep on a barrier of this generation.
    AtBarrier(u64),
    /// Preempted while it wakes other tasks; the call will return this.
    Waking(u64),
}

impl SyncCall {
    pub fn new(op: SyncOp) -> SyncCall {
        SyncCall { op, stage: Stage::Start, entered: false }
    }

    /// Whether it has stayed in user mode all the time.
    pub fn stayed_in_user_mode(&self) -> bool {
        !self.entered
    }

    /// sys_futex().
    fn enter<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, path: Path) {
        self.entered = true;
        charge(sched, cpu, path);
    }
}

/// The owner of the mutex for which a call waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeper {
    Task(TaskId),
    /// The owner has ended.
    Ended,
}

impl Os {
    /// The owner of the mutex for which a sleeping call waits.
    pub fn keeper(&self, call: &SyncCall) -> Option<Keeper> {
        let (SyncOp::Lock(mutex) | SyncOp::Wait(_, mutex)) = call.op else { return None };
        if !matches!(call.stage, Stage::Locking | Stage::Deadlocked) {
            return None;
        }
        let owner = match mutex {
            MutexId::Plain(mutex) => self.sync.mutexes[mutex as usize].owner,
            MutexId::Pi(mutex) => self.sync.pi_mutexes[mutex as usize].owner,
        };
        owner.map(|owner| if owner == GONE { Keeper::Ended } else { Keeper::Task(owner) })
    }

    /// futex/core.c: futex_exit_release(): mutexes that a task holds when it ends stay taken, except those for which
    /// tasks wait in the kernel.
    ///
    /// Differs: no mutex is robust.
    pub(crate) fn futex_exit_release<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) {
        self.exit_pi_state_list(sched, cpu, task);
        for mutex in self.sync.mutexes.iter_mut().filter(|mutex| mutex.owner == Some(task)) {
            mutex.owner = Some(GONE);
        }
    }

    pub fn create_mutex(&mut self) -> MutexId {
        let line = self.allocate_named(&["mutex: word, waiters"]);
        self.sync.mutexes.push(Mutex { line, owner: None, contended: false, waiters: FutexQueue::default() });
        MutexId::Plain(self.sync.mutexes.len() as u32 - 1)
    }

    pub fn create_cond(&mut self) -> CondId {
        let line = self.allocate_named(&["condition variable: sequence"]);
        self.sync.conds.push(Cond { line, waiters: FutexQueue::default() });
        CondId(self.sync.conds.len() as u32 - 1)
    }

    /// `users`: how many threads must arrive before any passes; at least 1.
    pub fn create_barrier(&mut self, users: u32) -> BarrierId {
        assert!(users > 0, "a barrier for nobody");
        let line = self.allocate_named(&["barrier: count"]);
        self.sync.barriers.push(Barrier { line, users, waiters: FutexQueue::default(), generation: 0 });
        BarrierId(self.sync.barriers.len() as u32 - 1)
    }

    pub fn create_semaphore(&mut self) -> SemaphoreId {
        let line = self.allocate_named(&["semaphore: count"]);
        self.sync.semaphores.push(Semaphore { line, count: 0, waiters: FutexQueue::default() });
        SemaphoreId(self.sync.semaphores.len() as u32 - 1)
    }

    pub(crate) fn sync_call<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        call: &mut SyncCall,
    ) -> Step {
        if let Stage::Waking(value) = call.stage {
            let place = self.sync.wake_qs.iter().position(|(waker, _)| *waker == task).expect("it was preempted");
            let (_, wake_q) = self.sync.wake_qs.swap_remove(place);
            return self.wake_up_q(sched, cpu, task, call, wake_q, value);
        }
        match call.op {
            SyncOp::Lock(mutex) => self.lock(sched, cpu, task, mutex, call),
            SyncOp::Unlock(mutex) => self.unlock(sched, cpu, task, mutex, call),
            SyncOp::Wait(cond, mutex) => self.cond_wait(sched, cpu, task, cond, mutex, call),
            SyncOp::Signal(cond) => self.cond_wake(sched, cpu, task, cond, 1, call),
            SyncOp::Broadcast(cond) => self.cond_wake(sched, cpu, task, cond, usize::MAX, call),
            SyncOp::Barrier(barrier) => self.barrier(sched, cpu, task, barrier, call),
            SyncOp::SemaphorePost(semaphore) => self.post(sched, cpu, semaphore, call),
            SyncOp::SemaphoreWait(semaphore) => self.semaphore_wait(sched, cpu, task, semaphore, call),
        }
    }

    fn lock<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        id: MutexId,
        call: &mut SyncCall,
    ) -> Step {
        let id = match id {
            MutexId::Plain(id) => id,
            MutexId::Pi(id) => return self.futex_lock_pi(sched, cpu, task, id as usize, call),
        };
        let mutex = &mut self.sync.mutexes[id as usize];
        charge(sched, cpu, paths::USER_LOCK);
        sched.arch_mut().atomic(cpu, mutex.line);
        if mutex.owner == Some(task) {
            return Step::Done(0);
        }
        if call.stage != Stage::Start {
            // Whatever woke it, it is no longer in the queue.
            mutex.waiters.remove(task);
        }
        if mutex.owner.is_none() {
            mutex.owner = Some(task);
            // A task that has slept does not know whether it was the last waiter.
            mutex.contended = call.stage != Stage::Start;
            return Step::Done(0);
        }
        mutex.contended = true;
        call.stage = Stage::Locking;
        mutex.waiters.push(sched, task);
        futex_wait(sched, cpu, call)
    }

    /// Unlocking a mutex that the task does not hold is an error of the program. As with pthreads' default mutex it is
    /// let through.
    fn unlock<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        id: MutexId,
        call: &mut SyncCall,
    ) -> Step {
        let id = match id {
            MutexId::Plain(id) => id,
            MutexId::Pi(id) => return self.futex_unlock_pi(sched, cpu, task, id as usize, call),
        };
        let mutex = &mut self.sync.mutexes[id as usize];
        charge(sched, cpu, paths::USER_LOCK);
        sched.arch_mut().atomic(cpu, mutex.line);
        mutex.owner = None;
        if std::mem::take(&mut mutex.contended) {
            call.enter(sched, cpu, paths::FUTEX_WAKE);
            if let Some(next) = mutex.waiters.pop() {
                sched.wake(cpu, next, WakeFlags::NONE);
            }
        }
        Step::Done(0)
    }

    fn cond_wait<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        cond: CondId,
        mutex: MutexId,
        call: &mut SyncCall,
    ) -> Step {
        match call.stage {
            Stage::Start => {
                self.unlock(sched, cpu, task, mutex, call);
                let cond = &mut self.sync.conds[cond.0 as usize];
                sched.arch_mut().atomic(cpu, cond.line);
                cond.waiters.push(sched, task);
                call.stage = Stage::Waiting;
                futex_wait(sched, cpu, call)
            }
            Stage::Waiting if self.sync.conds[cond.0 as usize].waiters.contains(task) => futex_wait(sched, cpu, call),
            _ => self.lock(sched, cpu, task, mutex, call),
        }
    }

    fn cond_wake<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        id: CondId,
        most: usize,
        call: &mut SyncCall,
    ) -> Step {
        let cond = &mut self.sync.conds[id.0 as usize];
        charge(sched, cpu, paths::USER_LOCK);
        sched.arch_mut().atomic(cpu, cond.line);
        let wake_q = cond.waiters.take(most);
        let woken = wake_q.len() as u64;
        if woken > 0 {
            call.enter(sched, cpu, paths::FUTEX_WAKE);
        }
        self.wake_up_q(sched, cpu, task, call, wake_q, woken)
    }

    /// kernel/sched/core.c: wake_up_q(). Wakes the tasks that have already left a futex, one after the other. If one of
    /// them preempts the waker, the waker goes on with the next when it runs again.
    fn wake_up_q<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        call: &mut SyncCall,
        mut wake_q: VecDeque<TaskId>,
        value: u64,
    ) -> Step {
        while let Some(waiter) = wake_q.pop_front() {
            sched.wake(cpu, waiter, WakeFlags::NONE);
            if !wake_q.is_empty() && preempt_enable(sched, cpu, self.rules) {
                call.stage = Stage::Waking(value);
                self.sync.wake_qs.push((task, wake_q));
                return Step::Preempted;
            }
        }
        Step::Done(value)
    }

    fn barrier<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        id: BarrierId,
        call: &mut SyncCall,
    ) -> Step {
        let barrier = &mut self.sync.barriers[id.0 as usize];
        if let Stage::AtBarrier(generation) = call.stage {
            return if generation == barrier.generation { futex_wait(sched, cpu, call) } else { Step::Done(0) };
        }
        sched.arch_mut().atomic(cpu, barrier.line);
        if barrier.waiters.0.len() as u32 + 1 < barrier.users {
            barrier.waiters.push(sched, task);
            call.stage = Stage::AtBarrier(barrier.generation);
            return futex_wait(sched, cpu, call);
        }
        barrier.generation += 1;
        call.enter(sched, cpu, paths::FUTEX_WAKE);
        let wake_q = barrier.waiters.take(usize::MAX);
        self.wake_up_q(sched, cpu, task, call, wake_q, 1)
    }

    fn post<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: SemaphoreId, call: &mut SyncCall) -> Step {
        let semaphore = &mut self.sync.semaphores[id.0 as usize];
        charge(sched, cpu, paths::USER_LOCK);
        sched.arch_mut().atomic(cpu, semaphore.line);
        semaphore.count += 1;
        if let Some(waiter) = semaphore.waiters.pop() {
            call.enter(sched, cpu, paths::FUTEX_WAKE);
            sched.wake(cpu, waiter, WakeFlags::NONE);
        }
        Step::Done(0)
    }

    fn semaphore_wait<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        id: SemaphoreId,
        call: &mut SyncCall,
    ) -> Step {
        let semaphore = &mut self.sync.semaphores[id.0 as usize];
        charge(sched, cpu, paths::USER_LOCK);
        sched.arch_mut().atomic(cpu, semaphore.line);
        if semaphore.count > 0 {
            semaphore.count -= 1;
            semaphore.waiters.remove(task);
            return Step::Done(0);
        }
        if !semaphore.waiters.contains(task) {
            semaphore.waiters.push(sched, task);
        }
        futex_wait(sched, cpu, call)
    }
}

fn futex_wait<S: Scheduler>(sched: &mut S, cpu: CpuId, call: &mut SyncCall) -> Step {
    call.enter(sched, cpu, paths::FUTEX_WAIT);
    sched.set_current_state(cpu, TaskState::Interruptible);
    Step::Sleep
}
