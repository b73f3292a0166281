//! schbench: message threads wake their workers, and the latencies of what follows are printed as percentiles.
//!
//! Two versions that measure different things under one name: [`earlier`] as it was from 2016 to 2018, [`current`] as it is now.
//! Both have one process with message threads, each of which starts its workers; both talk through futexes that are woken only
//! when somebody is known to wait.
//!
//! Modelled in both: every thread, futex, sleep and clock read's place; what a list operation or a clock read takes is free.
//! Message threads end without joining their workers, which the process's first thread does for them.

pub mod current;
pub mod earlier;

use crate::latency::Latencies;
use os::Os;
use os::sync::{SemaphoreId, SyncOp};
use sim::program::{AddressSpace, Op, Program, TaskSpec};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::Ns;

/// A futex word that says whether its owner waits, or is about to.
struct Word {
    blocked: Cell<bool>,
    futex: SemaphoreId,
}

impl Word {
    fn new(os: &mut Os) -> Word {
        Word { blocked: Cell::new(false), futex: os.create_semaphore() }
    }

    /// Its owner announces that it will wait.
    fn block(&self) {
        self.blocked.set(true);
    }

    /// Lets its owner go on. Nothing to do when it does not wait.
    fn post(&self) -> Option<Op> {
        self.blocked.replace(false).then_some(Op::Sync(SyncOp::SemaphorePost(self.futex)))
    }

    /// Its owner waits until somebody has posted since it blocked.
    fn wait(&self) -> Op {
        Op::Sync(SyncOp::SemaphoreWait(self.futex))
    }
}

/// One thread: a message thread, or a worker.
struct Thread {
    word: Word,
    /// When its waker took the time, before it woke anybody.
    wake_time: Cell<Ns>,
}

impl Thread {
    fn new(os: &mut Os) -> Thread {
        Thread { word: Word::new(os), wake_time: Cell::new(Ns::ZERO) }
    }
}

/// A message thread and its workers.
struct Team {
    messenger: Thread,
    workers: Vec<Thread>,
    /// Workers that have sent a message, the newest last: it is answered first.
    list: RefCell<Vec<usize>>,
}

impl Team {
    /// The message thread announces that it will wait, takes the list, and writes one time into all workers on it.
    fn splice(&self, now: Ns) -> Vec<usize> {
        self.messenger.word.block();
        let list = self.list.take();
        list.iter().for_each(|&worker| self.workers[worker].wake_time.set(now));
        list
    }

    /// Posts the last worker of `answering` that waits, those behind it having been posted already; `None` when that was all.
    fn answer(&self, answering: &mut Vec<usize>) -> Option<Op> {
        std::iter::from_fn(|| answering.pop()).find_map(|worker| self.workers[worker].word.post())
    }

    /// Posts the first worker that waits, of those from `next` on.
    fn release(&self, next: &mut usize) -> Option<Op> {
        while let Some(worker) = self.workers.get(*next) {
            *next += 1;
            if let Some(op) = worker.word.post() {
                return Some(op);
            }
        }
        None
    }
}

/// What all threads see.
struct Shared {
    teams: Vec<Team>,
    stopping: Cell<bool>,
    wakeups: RefCell<Latencies>,
    requests: RefCell<Latencies>,
    /// Requests that were served.
    served: Cell<u64>,
    /// Who holds each CPU's lock.
    locked: RefCell<Vec<bool>>,
}

impl Shared {
    fn new(os: &mut Os, messengers: u64, workers: u64) -> Rc<Shared> {
        let mut team = || Team {
            messenger: Thread::new(os),
            workers: (0..workers).map(|_| Thread::new(os)).collect(),
            list: RefCell::default(),
        };
        Rc::new(Shared {
            teams: (0..messengers).map(|_| team()).collect(),
            stopping: Cell::new(false),
            wakeups: RefCell::default(),
            requests: RefCell::default(),
            served: Cell::new(0),
            locked: RefCell::default(),
        })
    }

    /// A thread runs again after it has waited: how long its wakeup took.
    fn woken(&self, thread: &Thread, now: Ns) {
        self.wakeups.borrow_mut().add(thread.wake_time.get(), now);
    }
}

/// A thread of the one process.
fn thread(comm: &str, working_set: u64, program: impl Program + 'static) -> Op {
    Op::Fork(Box::new(TaskSpec { memory: AddressSpace::Parent, working_set, ..TaskSpec::new(comm, program) }))
}

/// One whose work goes through so many bytes again and again.
fn thread_on_data(comm: &str, data: u64, program: impl Program + 'static) -> Op {
    let spec = TaskSpec { memory: AddressSpace::Parent, working_set: data, data, ..TaskSpec::new(comm, program) };
    Op::Fork(Box::new(spec))
}

#[cfg(test)]
mod tests;
