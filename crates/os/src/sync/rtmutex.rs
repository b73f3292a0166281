//! kernel/locking/rtmutex.c and kernel/futex/pi.c (kernel/futex.c until v5.15): mutexes whose waiters lend their
//! priority to the owner, and on to the owners for which that one waits (PTHREAD_PRIO_INHERIT).
//!
//! An uncontended lock or unlock stays in user space. An owner for which tasks wait unlocks through the kernel, which
//! wakes the first waiter by priority. Until that one runs, only a task of higher priority may take the mutex.
//!
//! Modelled: a price for entering the kernel, that of a futex's wait or wakeup. Differs: a task that would close a
//! circle of waiters is told before it queues (EDEADLK, at which pthread_mutex_lock() never returns); a waiting task
//! does not change its own priority, so it is never requeued for that (rt_mutex_adjust_pi()).

use super::{GONE, MutexId, Stage, Sync, SyncCall, futex_wait};
use crate::{Os, Step, charge, paths};
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{DEFAULT_PRIO, MAX_RT_PRIO, TaskId, WakeFlags};
use sched::scheduler::Scheduler;
use sched::{behaviour, rules};
use std::cmp::Reverse;
use units::CpuId;

behaviour! {
    /// In which order who unlocks a mutex that lent it a priority gives that back and wakes the next owner.
    pub enum Deboost = "futex.deboost" {
        WakeFirst = "wake-first", since "v2.6.18", commit "",
            "it wakes the next owner with the priority that it was lent, then gives that back";
        DeboostFirst = "deboost-first", since "v4.12", commit "2a1c60299406", "it gives the priority back, then wakes the next owner";
    }
}

behaviour! {
    /// Who comes first among the waiters of a mutex that lends their priority.
    pub enum WaiterOrder = "futex.pi_waiters" {
        ByPrio = "by-prio", since "v2.6.18", commit "", "by priority, fair tasks by their nice levels; in the order of arrival where it is the same";
        RealTimeFirst = "real-time-first", since "v5.15", commit "715f7f9ece46",
            "real-time tasks by priority, then fair ones in the order of arrival, whatever their nice levels";
    }
}

/// What differs between versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PiRules {
    pub deboost: Deboost,
    pub waiters: WaiterOrder,
}

impl PiRules {
    pub const V4_5: PiRules = PiRules { deboost: Deboost::WakeFirst, waiters: WaiterOrder::ByPrio };
    pub const V4_15: PiRules = PiRules { deboost: Deboost::DeboostFirst, ..PiRules::V4_5 };
    pub const V5_15: PiRules = PiRules { waiters: WaiterOrder::RealTimeFirst, ..PiRules::V4_15 };
}

rules! { PiRules { deboost, waiters } }

/// rtmutex_common.h: struct rt_mutex_waiter.
#[derive(Clone, Copy, Debug)]
struct RtMutexWaiter {
    task: TaskId,
    rank: Rank,
}

/// The order of waiters: a lesser rank comes sooner. Among tasks with a deadline the earlier one comes first; other
/// tasks have none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank {
    prio: i32,
    deadline: u64,
}

/// A mutex, with the kernel's state of it.
#[derive(Clone, Debug)]
pub(super) struct PiMutex {
    line: Line,
    pub(super) owner: Option<TaskId>,
    /// FUTEX_WAITERS in its word: the unlock goes through the kernel.
    contended: bool,
    /// In the order of their ranks.
    waiters: Vec<RtMutexWaiter>,
}

impl PiMutex {
    pub fn new(line: Line) -> PiMutex {
        PiMutex { line, owner: None, contended: false, waiters: Vec::new() }
    }

    /// rtmutex.c: rt_mutex_top_waiter().
    fn rt_mutex_top_waiter(&self) -> Option<TaskId> {
        self.waiters.first().map(|waiter| waiter.task)
    }

    /// rtmutex.c: rt_mutex_enqueue(). Behind waiters of the same rank.
    fn rt_mutex_enqueue(&mut self, task: TaskId, rank: Rank) {
        let at = self.waiters.partition_point(|other| other.rank <= rank);
        self.waiters.insert(at, RtMutexWaiter { task, rank });
    }

    /// rtmutex.c: rt_mutex_dequeue().
    fn rt_mutex_dequeue(&mut self, task: TaskId) {
        self.waiters.retain(|waiter| waiter.task != task);
    }

    fn has_waiter(&self, task: TaskId) -> bool {
        self.waiters.iter().any(|waiter| waiter.task == task)
    }

    /// rtmutex.c: try_to_take_rt_mutex(), by a task of this rank, which may or may not be a waiter already.
    #[doc(alias = "rt_mutex_steal")]
    fn try_to_take_rt_mutex(&mut self, task: TaskId, rank: Rank) -> bool {
        let free = match self.waiters.first() {
            _ if self.owner.is_some() => false,
            Some(top) => top.task == task || rank < top.rank,
            None => true,
        };
        if free {
            self.rt_mutex_dequeue(task);
            self.owner = Some(task);
        }
        free
    }
}

/// rtmutex.c: waiter_update_prio() and __waiter_prio(), which rt_mutex_waiter_less() compares.
#[doc(alias = "__waiter_prio")]
#[doc(alias = "rt_mutex_waiter_less")]
fn waiter_rank<S: Scheduler>(sched: &S, order: WaiterOrder, task: TaskId) -> Rank {
    let prio = match (order, sched.task_prio(task)) {
        (WaiterOrder::RealTimeFirst, MAX_RT_PRIO..) => DEFAULT_PRIO,
        (_, prio) => prio,
    };
    Rank { prio, deadline: sched.task_deadline(task) }
}

impl Sync {
    /// `task->pi_blocked_on`: the mutex for which a task waits.
    fn pi_blocked_on(&self, task: TaskId) -> Option<usize> {
        self.pi_mutexes.iter().position(|mutex| mutex.has_waiter(task))
    }

    /// rtmutex.c: task_top_pi_waiter(). The first of all waiters for the mutexes that a task holds.
    ///
    /// Differs: of two waiters with the same priority this is the one that waits for the older mutex; the kernel takes
    /// the one that came first.
    fn task_top_pi_waiter(&self, task: TaskId) -> Option<TaskId> {
        let held = self.pi_mutexes.iter().filter(|mutex| mutex.owner == Some(task));
        let top = held.rev().filter_map(|mutex| mutex.waiters.first()).max_by_key(|waiter| Reverse(waiter.rank));
        top.map(|waiter| waiter.task)
    }

    /// rtmutex.c: rt_mutex_adjust_prio(). Gives a task the priority that its first waiter lends, or its own.
    fn rt_mutex_adjust_prio<S: Scheduler>(&self, sched: &mut S, cpu: CpuId, task: TaskId) {
        sched.rt_mutex_setprio(cpu, task, self.task_top_pi_waiter(task));
    }

    /// rtmutex.c: rt_mutex_adjust_prio_chain(), from the owner of `lock` on, whose waiters have changed. It goes on to
    /// an owner that waits for nobody, or whose new priority changes nothing for those for which it waits.
    fn rt_mutex_adjust_prio_chain<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, lock: usize, order: WaiterOrder) {
        let mut lock = lock;
        while let Some(owner) = self.pi_mutexes[lock].owner.filter(|&owner| owner != GONE) {
            self.rt_mutex_adjust_prio(sched, cpu, owner);
            let Some(next) = self.pi_blocked_on(owner) else { return };
            let rank = waiter_rank(sched, order, owner);
            let mutex = &mut self.pi_mutexes[next];
            if mutex.waiters.iter().any(|waiter| waiter.task == owner && waiter.rank == rank) {
                return;
            }
            let top_before = mutex.rt_mutex_top_waiter();
            mutex.rt_mutex_dequeue(owner);
            mutex.rt_mutex_enqueue(owner, rank);
            let top = mutex.rt_mutex_top_waiter();
            if mutex.owner.is_none() {
                // The mutex is on its way to the first waiter, which is another one now.
                if let Some(top) = top.filter(|_| top != top_before) {
                    sched.wake(cpu, top, WakeFlags::NONE);
                }
                return;
            }
            if top != Some(owner) && top_before != Some(owner) {
                return;
            }
            lock = next;
        }
    }

    /// Whether a task that waited for `lock` would wait for itself.
    fn is_deadlock(&self, lock: usize, task: TaskId) -> bool {
        let mut lock = lock;
        loop {
            let Some(owner) = self.pi_mutexes[lock].owner else { return false };
            if owner == task {
                return true;
            }
            let Some(next) = self.pi_blocked_on(owner) else { return false };
            lock = next;
        }
    }
}

impl Os {
    /// Makes a mutex with PTHREAD_PRIO_INHERIT.
    pub fn create_pi_mutex(&mut self) -> MutexId {
        let line = self.allocate_named(&["mutex: word, waiters"]);
        self.sync.pi_mutexes.push(PiMutex::new(line));
        MutexId::Pi(self.sync.pi_mutexes.len() as u32 - 1)
    }

    /// pi.c: futex_lock_pi(), and what precedes it in user space.
    ///
    /// Differs: a task that would wait for itself is told before it queues, and sleeps for good, as in
    /// pthread_mutex_lock().
    pub(super) fn futex_lock_pi<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        lock: usize,
        call: &mut SyncCall,
    ) -> Step {
        let order = self.rules.pi.waiters;
        let mutex = &mut self.sync.pi_mutexes[lock];
        if call.stage == Stage::Deadlocked {
            return futex_wait(sched, cpu, call);
        }
        let waits = mutex.has_waiter(task);
        if !waits {
            charge(sched, cpu, paths::USER_LOCK);
        }
        sched.arch_mut().atomic(cpu, mutex.line);
        if mutex.try_to_take_rt_mutex(task, waiter_rank(sched, order, task)) {
            return Step::Done(0);
        }
        if waits {
            return futex_wait(sched, cpu, call);
        }
        if self.sync.is_deadlock(lock, task) {
            call.stage = Stage::Deadlocked;
            return futex_wait(sched, cpu, call);
        }
        self.task_blocks_on_rt_mutex(sched, cpu, task, lock);
        call.stage = Stage::Locking;
        futex_wait(sched, cpu, call)
    }

    /// rtmutex.c: task_blocks_on_rt_mutex().
    fn task_blocks_on_rt_mutex<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, lock: usize) {
        let order = self.rules.pi.waiters;
        let mutex = &mut self.sync.pi_mutexes[lock];
        mutex.contended = true;
        mutex.rt_mutex_enqueue(task, waiter_rank(sched, order, task));
        if mutex.rt_mutex_top_waiter() == Some(task) {
            self.sync.rt_mutex_adjust_prio_chain(sched, cpu, lock, order);
        }
    }

    /// pi.c: futex_unlock_pi(), and what precedes it in user space. The kernel releases only the caller's own mutex.
    ///
    /// Differs: the hash bucket that both sides lock is absent.
    #[doc(alias = "wake_futex_pi")]
    #[doc(alias = "mark_wakeup_next_waiter")]
    pub(super) fn futex_unlock_pi<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        lock: usize,
        call: &mut SyncCall,
    ) -> Step {
        let mutex = &mut self.sync.pi_mutexes[lock];
        charge(sched, cpu, paths::USER_LOCK);
        sched.arch_mut().atomic(cpu, mutex.line);
        let own = mutex.owner == Some(task);
        if !own || !mutex.contended {
            if own {
                mutex.owner = None;
            }
            return Step::Done(0);
        }
        call.enter(sched, cpu, paths::FUTEX_WAKE);
        self.rt_mutex_futex_unlock(sched, cpu, task, lock);
        Step::Done(0)
    }

    /// rtmutex_api.c: rt_mutex_futex_unlock(): wakes the first waiter, if there still is one.
    fn rt_mutex_futex_unlock<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, lock: usize) {
        let mutex = &mut self.sync.pi_mutexes[lock];
        mutex.owner = None;
        let Some(next) = mutex.rt_mutex_top_waiter() else {
            mutex.contended = false;
            return;
        };
        match self.rules.pi.deboost {
            Deboost::WakeFirst => {
                sched.wake(cpu, next, WakeFlags::NONE);
                self.sync.rt_mutex_adjust_prio(sched, cpu, task);
            }
            Deboost::DeboostFirst => {
                self.sync.rt_mutex_adjust_prio(sched, cpu, task);
                sched.wake(cpu, next, WakeFlags::NONE);
            }
        }
    }

    /// futex/core.c: exit_pi_state_list(), for a task that ends: a mutex for which tasks wait goes to the first of
    /// them. The kernel does not know of a mutex without waiters, so that stays taken.
    ///
    /// Differs: FUTEX_OWNER_DIED, which the next owner would find in the word, is absent: its program simply goes on.
    pub(super) fn exit_pi_state_list<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) {
        for lock in 0..self.sync.pi_mutexes.len() {
            let mutex = &mut self.sync.pi_mutexes[lock];
            if mutex.owner != Some(task) {
                continue;
            }
            if mutex.waiters.is_empty() {
                mutex.owner = Some(GONE);
                continue;
            }
            charge(sched, cpu, paths::FUTEX_WAKE);
            self.rt_mutex_futex_unlock(sched, cpu, task, lock);
        }
    }
}
