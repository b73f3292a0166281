//! A virtual machine: its pools of threads, its connections, and how it stops for a collection.

use super::{Job, Task};
use machine::java::Java;
use os::Os;
use os::net::{Buffers, Socket, Transport};
use os::sync::SemaphoreId;
use std::collections::VecDeque;
use units::Ns;

/// A backend has this many tier pools, then the pool of its connections. An injector has only the latter.
const TIERS: usize = 3;

/// The order in which waiting threads are woken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiters {
    /// A stack, as `ForkJoinPool` keeps them.
    LastFirst,
    /// A queue on a condition, as in `ThreadPoolExecutor`.
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

    /// Whether its workers look for a task before they sleep.
    pub fn scans(&self) -> bool {
        self.waiters == Waiters::LastFirst
    }

    /// Adds a task, and returns the thread to wake for it. Forked tasks go to the front of the queue and outside
    /// requests to its end, so that requests which have begun are finished first.
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

/// A connection that a selector reads. Messages are written to the writer's end, in the order of the queue.
pub struct Inbox {
    pub writer: Socket,
    pub reader: Socket,
    pub messages: VecDeque<Job>,
    /// Where the selector waits for the end of a collection.
    pub selector: SemaphoreId,
}

pub struct Jvm {
    pub pools: Vec<Pool>,
    pub inboxes: Vec<Inbox>,
    pub collectors: Vec<SemaphoreId>,
    /// Threads that must stop before a collection can begin: those that neither sleep nor wait for a message.
    pub running: usize,
    /// Bytes allocated since the last collection.
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
    /// Threads must stop.
    Wanted,
    /// So many collector threads are still working.
    UnderWay(usize),
}

/// How many threads of each kind.
#[derive(Clone, Copy)]
pub struct Threads {
    /// The workers of each tier.
    pub workers: usize,
    /// The threads that decode messages.
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

    /// The virtual machine of a transaction injector, whose collections are not modelled.
    pub fn injector(os: &mut Os, threads: Threads) -> Jvm {
        Jvm::of(os, threads, Vec::new())
    }

    /// A virtual machine with `pools`, and after them the pool of its connections.
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

    /// A request has been answered. Its garbage may fill the young generation, which asks for a collection.
    pub fn allocate(&mut self, costs: &Java) {
        self.allocated += costs.allocation;
        if self.allocated >= costs.young && self.collection == Collection::None {
            self.collection = Collection::Wanted;
        }
    }

    /// Asks for a collection. Returns the threads to wake, if no thread has to stop first.
    pub fn collect(&mut self) -> Vec<SemaphoreId> {
        if self.collection == Collection::None {
            self.collection = Collection::Wanted;
        }
        self.begin_collection()
    }

    /// Begins a collection if all threads have stopped, and returns the collectors.
    fn begin_collection(&mut self) -> Vec<SemaphoreId> {
        if self.collection != Collection::Wanted || self.running > 0 {
            return Vec::new();
        }
        self.collection = Collection::UnderWay(self.collectors.len());
        self.collectors.clone()
    }

    /// Whether threads must stop.
    pub fn stops(&self) -> bool {
        self.collection != Collection::None
    }

    /// A running thread stops for the collection, and is going to wait on `thread`. Returns the threads that it must
    /// wake first.
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
