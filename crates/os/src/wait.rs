//! kernel/sched/wait.c: wait queues.

use crate::{paths, within};
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use smallvec::SmallVec;
use std::hint::cold_path;
use units::{CpuId, unlikely};

/// A task that sleeps on a queue, and how it is to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiter {
    task: TaskId,
    /// One wakeup wakes one waiter of this kind.
    exclusive: bool,
    /// Whether it stays on the queue until it leaves by itself: a poller (`poll_freewait`), or a waiter of
    /// `woken_wake_function()`.
    stays: bool,
}

/// A wait queue with its lock.
#[derive(Clone, Debug)]
pub struct WaitQueue {
    line: Line,
    /// Mostly one, stored in place. In reverse order of waking: non-exclusive waiters join at the end, exclusive ones
    /// at the front.
    waiters: SmallVec<[Waiter; 2]>,
}

impl WaitQueue {
    pub fn new(line: Line) -> WaitQueue {
        WaitQueue { line, waiters: SmallVec::new() }
    }

    /// The task that is woken first.
    #[inline(always)]
    pub fn first(&self) -> Option<TaskId> {
        self.waiters.last().map(|waiter| waiter.task)
    }

    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// wait.c: prepare_to_wait() or prepare_to_wait_exclusive(): the task joins the queue and is about to sleep.
    pub fn prepare_to_wait<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, exclusive: bool) {
        self.prepare(sched, cpu, task, exclusive, TaskState::Interruptible);
    }

    /// The same for a sleep that no signal ends.
    pub fn prepare_uninterruptible<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, exclusive: bool) {
        self.prepare(sched, cpu, task, exclusive, TaskState::Uninterruptible);
    }

    #[inline(always)]
    fn prepare<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, exclusive: bool, state: TaskState) {
        sched.arch_mut().lock(cpu, self.line);
        if !self.waiters.iter().any(|w| w.task == task) {
            let waiter = Waiter { task, exclusive, stays: false };
            if exclusive {
                self.waiters.insert(0, waiter);
            } else {
                self.waiters.push(waiter);
            }
        }
        sched.set_current_state(cpu, state);
        sched.arch_mut().unlock(cpu, self.line);
    }

    /// wait.c: finish_wait(): takes the task off the queue, unless its waker has done so.
    #[inline(always)]
    pub fn finish_wait<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) {
        if !self.waiters.is_empty() {
            self.leave(sched, cpu, task);
        }
    }

    #[inline(never)]
    fn leave<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) {
        // From the end: a task that was woken first, and so probably runs first, is there.
        if let Some(at) = self.waiters.iter().rposition(|w| w.task == task) {
            cold_path();
            sched.arch_mut().lock(cpu, self.line);
            self.take_off(at);
            sched.arch_mut().unlock(cpu, self.line);
        }
    }

    /// Usually the task that is woken first, at the end.
    #[inline]
    fn take_off(&mut self, at: usize) {
        if unlikely(at + 1 != self.waiters.len()) {
            self.waiters.remove(at);
        } else {
            self.waiters.pop();
        }
    }

    /// fs/select.c: __pollwait(): a poller joins the queue; it does not sleep yet.
    pub fn poll_wait<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) {
        sched.arch_mut().lock(cpu, self.line);
        self.waiters.push(Waiter { task, exclusive: false, stays: true });
        sched.arch_mut().unlock(cpu, self.line);
    }

    /// wait.c: add_wait_queue(), for a task that will sleep in wait_woken().
    pub fn add_wait_queue<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) {
        if !self.waiters.iter().any(|w| w.task == task) {
            self.poll_wait(sched, cpu, task);
        }
    }

    /// wait.c: __wake_up_common_lock(): wakes all waiters up to and including `nr_exclusive` exclusive ones (0: all).
    /// Returns how many were woken.
    #[inline(always)]
    pub fn wake_up<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, flags: WakeFlags, nr_exclusive: usize) -> usize {
        within(sched, cpu, paths::WAKE_UP_SYNC_KEY, |sched| self.wake_up_common(sched, cpu, flags, nr_exclusive))
    }

    /// wait.c: __wake_up_common(), under the queue's lock.
    #[inline(never)]
    #[doc(alias = "__wake_up_common")]
    fn wake_up_common<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        flags: WakeFlags,
        nr_exclusive: usize,
    ) -> usize {
        sched.arch_mut().lock(cpu, self.line);
        let mut woken = 0;
        let mut exclusive_left = nr_exclusive;
        let mut at = self.waiters.len();
        while at > 0 {
            at -= 1;
            let waiter = self.waiters[at];
            // autoremove_wake_function() takes a waiter off only if the wakeup did something.
            if !sched.wake(cpu, waiter.task, flags) {
                continue;
            }
            woken += 1;
            if !waiter.stays {
                self.take_off(at);
            }
            if waiter.exclusive && nr_exclusive > 0 {
                exclusive_left -= 1;
                if exclusive_left == 0 {
                    break;
                }
            }
        }
        sched.arch_mut().unlock(cpu, self.line);
        woken
    }
}
