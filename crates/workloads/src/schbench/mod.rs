//! schbench: message threads wake their workers, and the latencies of what follows are printed as percentiles.
//!
//! There are two versions, which measure different things under one name: [`earlier`] as schbench was from 2016 to
//! 2018, [`current`] as it is now. In both, one process has message threads, each of which starts its workers. Both
//! communicate through futexes, and make the wake call only if the owner is known to wait.
//!
//! Modelled in both: every thread, futex and sleep, and where the clock is read. List operations and clock reads are
//! free. Message threads end without joining their workers; the process's first thread does that for them.

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

    /// The owner announces that it will wait.
    fn block(&self) {
        self.blocked.set(true);
    }

    /// Lets the owner go on. `None` if the owner does not wait.
    fn post(&self) -> Option<Op> {
        self.blocked.replace(false).then_some(Op::Sync(SyncOp::SemaphorePost(self.futex)))
    }

    /// Makes the owner wait, unless somebody has posted since it blocked.
    fn wait(&self) -> Op {
        Op::Sync(SyncOp::SemaphoreWait(self.futex))
    }
}

/// One thread: a message thread, or a worker.
struct Thread {
    word: Word,
    /// The waker's time stamp, taken before it woke anybody.
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

    /// Posts the last worker of `answering` that waits; the ones behind it have been posted already. `None` once all
    /// are done.
    fn answer(&self, answering: &mut Vec<usize>) -> Option<Op> {
        std::iter::from_fn(|| answering.pop()).find_map(|worker| self.workers[worker].word.post())
    }

    /// Posts the first waiting worker from number `next` on.
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

/// State that all threads share.
struct Shared {
    teams: Vec<Team>,
    stopping: Cell<bool>,
    wakeups: RefCell<Latencies>,
    requests: RefCell<Latencies>,
    /// How many requests have been served.
    served: Cell<u64>,
    /// Whether each CPU's lock is held.
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

    /// Records how long the wakeup of a thread took that runs again after it waited.
    fn woken(&self, thread: &Thread, now: Ns) {
        self.wakeups.borrow_mut().add(thread.wake_time.get(), now);
    }
}

/// A thread of the one process.
fn thread(comm: &str, working_set: u64, program: impl Program + 'static) -> Op {
    Op::Fork(Box::new(TaskSpec { memory: AddressSpace::Parent, working_set, ..TaskSpec::new(comm, program) }))
}

/// A thread whose work goes through `data` bytes again and again.
fn thread_on_data(comm: &str, data: u64, program: impl Program + 'static) -> Op {
    let spec = TaskSpec { memory: AddressSpace::Parent, working_set: data, data, ..TaskSpec::new(comm, program) };
    Op::Fork(Box::new(spec))
}

#[cfg(test)]
mod tests;
