//! A virtual machine: its pools of threads, its connections, and how it stops for a collection.

use super::{Job, Task};
use machine::java::Java;
use os::Os;
use os::net::{Buffers, Socket, Transport};
use os::sync::SemaphoreId;
use std::collections::VecDeque;
use units::Ns;

/// A backend's pools: its tiers, then the threads of its connections. An injector's has these alone.
const TIERS: usize = 3;

/// In which order threads that wait are woken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiters {
    /// A stack, as `ForkJoinPool` keeps them.
    LastFirst,
    /// A condition's queue, as `ThreadPoolExecutor` has.
    FirstFirst,
}

/// Threads that take tasks from one queue.
pub struct Pool {
    pub threads: Vec<SemaphoreId>,
    pub queue: VecDeque<Task>,
    /// Threads that sleep until there is a task.
    pub parked: VecDeque<usize>,
    /// Threads that look for a task.
    pub looking: usize,
    waiters: Waiters,
}

impl Pool {
    fn new(os: &mut Os, threads: usize, waiters: Waiters) -> Pool {
        let threads = (0..threads).map(|_| os.create_semaphore()).collect();
        Pool { threads, queue: VecDeque::new(), parked: VecDeque::new(), looking: 0, waiters }
    }

    /// A worker of it looks for a task before it sleeps.
    pub fn scans(&self) -> bool {
        self.waiters == Waiters::LastFirst
    }

    /// Adds a task; whom to wake for it. What was forked goes before what came from outside: requests that are begun are ended first.
    pub fn push(&mut self, task: Task) -> Option<SemaphoreId> {
        match task {
            Task::Do(Job::Parts { .. } | Job::Reply(_)) => self.queue.push_front(task),
            Task::Do(Job::First(_) | Job::Answer(_)) | Task::Decode(_) => self.queue.push_back(task),
        }
        let nobody_looks = self.queue.len() > self.looking;
        let woken = match self.waiters {
            _ if !nobody_looks => None,
            Waiters::LastFirst => self.parked.pop_back(),
            Waiters::FirstFirst => self.parked.pop_front(),
        };
        woken.map(|thread| self.threads[thread])
    }
}

/// A connection that ends in a selector: messages are written to its near end, in the order of the queue.
pub struct Inbox {
    pub writer: Socket,
    pub reader: Socket,
    pub messages: VecDeque<Job>,
    /// Where its selector waits for the end of a collection.
    pub selector: SemaphoreId,
}

pub struct Jvm {
    pub pools: Vec<Pool>,
    pub inboxes: Vec<Inbox>,
    pub collectors: Vec<SemaphoreId>,
    /// Threads that must stop before there can be a collection: those that neither sleep nor wait for a message.
    pub running: usize,
    /// Bytes since the last collection.
    pub allocated: u64,
    pub collection: Collection,
    /// When the last collection ended.
    pub collected: Ns,
    /// Threads that wait for the end of a collection.
    pub stopped: Vec<SemaphoreId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Collection {
    None,
    /// Threads are to stop.
    Wanted,
    /// So many collector threads are at work.
    UnderWay(usize),
}

/// How many threads of each kind.
#[derive(Clone, Copy)]
pub struct Threads {
    /// Of each tier.
    pub workers: usize,
    /// That decode messages.
    pub connection: usize,
    pub selectors: usize,
    pub injectors: usize,
    pub collectors: usize,
}

impl Jvm {
    pub fn backend(os: &mut Os, threads: Threads, allocated: u64) -> Jvm {
        let pools = (0..TIERS).map(|_| Pool::new(os, threads.workers, Waiters::LastFirst)).collect();
        let collectors = (0..threads.collectors).map(|_| os.create_semaphore()).collect();
        Jvm { collectors, allocated, ..Jvm::of(os, threads, pools) }
    }

    /// The virtual machine of a transaction injector, which is never seen to collect.
    pub fn injector(os: &mut Os, threads: Threads) -> Jvm {
        Jvm::of(os, threads, Vec::new())
    }

    /// With `pools`, and that of its connections behind them.
    fn of(os: &mut Os, threads: Threads, mut pools: Vec<Pool>) -> Jvm {
        pools.push(Pool::new(os, threads.connection, Waiters::FirstFirst));
        let inboxes: Vec<Inbox> = (0..threads.selectors).map(|_| Inbox::new(os)).collect();
        Jvm {
            running: pools.iter().map(|pool| pool.threads.len()).sum::<usize>() + inboxes.len(),
            pools,
            inboxes,
            collectors: Vec::new(),
            allocated: 0,
            collection: Collection::None,
            collected: Ns::ZERO,
            stopped: Vec::new(),
        }
    }

    /// The pool whose threads decode messages.
    pub fn connection(&mut self) -> &mut Pool {
        self.pools.last_mut().expect("every virtual machine has connections")
    }

    /// A request has been answered: its garbage may be the last that there is room for.
    pub fn allocate(&mut self, costs: &Java) {
        self.allocated += costs.allocation;
        if self.allocated >= costs.young && self.collection == Collection::None {
            self.collection = Collection::Wanted;
        }
    }

    /// There is to be a collection; whom to wake for it, where no thread has to stop first.
    pub fn collect(&mut self) -> Vec<SemaphoreId> {
        if self.collection == Collection::None {
            self.collection = Collection::Wanted;
        }
        self.begin_collection()
    }

    /// The collectors, if all threads have stopped.
    fn begin_collection(&mut self) -> Vec<SemaphoreId> {
        if self.collection != Collection::Wanted || self.running > 0 {
            return Vec::new();
        }
        self.collection = Collection::UnderWay(self.collectors.len());
        self.collectors.clone()
    }

    /// Whether threads must stop where they are.
    pub fn stops(&self) -> bool {
        self.collection != Collection::None
    }

    /// A thread that runs stops for the collection, and will wait there; whom it wakes first.
    pub fn stop(&mut self, thread: SemaphoreId) -> Vec<SemaphoreId> {
        self.running -= 1;
        self.stopped.push(thread);
        self.begin_collection()
    }
}

impl Inbox {
    fn new(os: &mut Os) -> Inbox {
        let (writer, reader) = os.connect(Transport::Tcp { nodelay: true }, Buffers::default());
        Inbox { writer, reader, messages: VecDeque::new(), selector: os.create_semaphore() }
    }
}
