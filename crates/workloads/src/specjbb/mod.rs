//! SPECjbb2015's shape: how many requests a second a machine serves, and how many within a bound on the response time.
//!
//! Groups of an injector and a backend, each a Java virtual machine of its own; a controller raises the rate of requests in steps.
//! An injector's threads issue requests at random times, whatever becomes of the earlier ones. A request is a task of the backend's
//! worker pool; it parts into [`PARTS`] more, some of them for other groups' backends, and the last of these to end hands its reply to
//! the first group, whose worker ends it. So one request is 15 tasks: public logs show 15.4 processed for each one injected.
//! Workers look for tasks for a moment before they park; who adds a task wakes one that is parked, the last to park first, unless
//! somebody is looking. When a young generation is full, every thread of that machine stops at the end of its task, collector
//! threads work for the length of the pause, and all go on.
//!
//! The controller ([`controller`]) searches the highest rate that settles, then walks up from nothing in steps of it. max-jOPS is the
//! last rate before the first failed step; critical-jOPS is the geometric mean of the rates up to which the 99th percentile of
//! response times stays below 10, 25, 50, 75 and 100 ms.
//!
//! What SPECjbb2015 publishes stands in the figures above; sizes of tasks, their spread, the share that goes to other groups, spinning
//! and allocation are derived or guessed, as said beside each. Modelled coarsely: the three tiers are one pool, messages to other
//! groups are pushed into their queues without sockets, steps last a second instead of a minute, the collector's work is its
//! pause. Absent: the just-in-time compiler, old collections, the controller's own messages.

mod backend;
mod controller;
mod injector;

use crate::latency::Latencies;
use crate::{Instance, Parameter, Summary, Values, Workload};
use controller::Controller;
use os::Os;
use os::sync::{SemaphoreId, SyncOp};
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Program, TaskSpec};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Cycles, Ns};

/// Tasks between a request's first and its reply.
const PARTS: u32 = 13;
/// Bytes that one request allocates: with 4 GB of heap a young collection comes every second or two at full rate (guess).
const ALLOCATION: u64 = 20 * 1024;
/// Bytes of private cache that a thread uses again after a switch (guess, 16 to 128 KiB).
const WORKING_SET: u64 = 32 * 1024;
/// Bounds on response times, in microseconds (SPECjbb2015).
const LIMITS_US: [u64; 5] = [10_000, 25_000, 50_000, 75_000, 100_000];

pub const WORKLOAD: Workload = Workload {
    name: "specjbb",
    summary: "requests a second of a Java server in groups, in all and within bounds of the response time (SPECjbb2015's shape)",
    parameters: &[
        Parameter { name: "groups", default: 1, range: (1, 64), unit: "groups", doc: "virtual machines that serve" },
        Parameter { name: "workers", default: 60, range: (1, 2_048), unit: "threads", doc: "workers of each" },
        Parameter {
            name: "injectors",
            default: 2,
            range: (1, 64),
            unit: "threads",
            doc: "threads that issue requests to each",
        },
        Parameter {
            name: "task_cycles",
            default: 54_000,
            range: (1_000, 10_000_000),
            unit: "cycles",
            doc: "mean work of one task: 35 us of a thread that shares its core",
        },
        Parameter { name: "remote", default: 10, range: (0, 100), unit: "%", doc: "tasks for other groups" },
        Parameter { name: "young_mib", default: 2_048, range: (1, 1_048_576), unit: "MiB", doc: "young generation" },
        Parameter {
            name: "gc_pause",
            default: 50,
            range: (0, 10_000),
            unit: "ms",
            doc: "work of each collector thread",
        },
        Parameter {
            name: "gc_threads",
            default: 20,
            range: (1, 512),
            unit: "threads",
            doc: "collector threads of each",
        },
        Parameter { name: "step", default: 4, range: (1, 100), unit: "%", doc: "of the highest rate, between steps" },
        Parameter { name: "settle", default: 200, range: (1, 60_000), unit: "ms", doc: "before a step counts" },
        Parameter { name: "steady", default: 1_000, range: (10, 600_000), unit: "ms", doc: "for which it counts" },
    ],
    key: None,
    operation: "jOPS",
    rows: &[
        "Max-jOPs",
        "Critical-jOPs",
        "JOPS-10000us",
        "JOPS-25000us",
        "JOPS-50000us",
        "JOPS-75000us",
        "JOPS-100000us",
    ],
    statistics: Summary::RateFigure("Ops"),
    unit: "jOPS",
    per_unit: 1,
    decimals: 2,
    build: |values: &Values| {
        let get = |name| values.get(name);
        Box::new(SpecJbb {
            groups: get("groups") as usize,
            workers: get("workers") as usize,
            injectors: get("injectors") as usize,
            rules: Rules {
                task: Cycles(get("task_cycles")),
                remote_percent: get("remote"),
                young: get("young_mib") << 20,
                pause: Ns::from_ms(get("gc_pause")),
                gc_threads: get("gc_threads") as usize,
                step_percent: get("step"),
                settle: Ns::from_ms(get("settle")),
                steady: Ns::from_ms(get("steady")),
            },
        })
    },
};

#[derive(Clone, Copy)]
struct Rules {
    task: Cycles,
    remote_percent: u64,
    /// Bytes.
    young: u64,
    pause: Ns,
    gc_threads: usize,
    step_percent: u64,
    settle: Ns,
    steady: Ns,
}

struct SpecJbb {
    groups: usize,
    workers: usize,
    injectors: usize,
    rules: Rules,
}

impl Instance for SpecJbb {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let mut machine = || RefCell::new(Jvm::new(os, self.workers, self.injectors, self.rules.gc_threads));
        let jvms = (0..self.groups).map(|_| machine()).collect();
        let bench =
            Rc::new(Bench { rules: self.rules, jvms, requests: RefCell::default(), control: Control::default() });
        let chances = |purpose| {
            let owners = 0..(self.groups * self.workers.max(self.injectors)) as u64;
            owners.map(|owner| os.chance(purpose, owner)).collect::<Vec<_>>()
        };
        let mut starts: Vec<TaskSpec> = Vec::new();
        let (of_workers, of_injectors) = (chances("specjbb task"), chances("specjbb arrival"));
        for group in 0..self.groups {
            let injector = |n: usize| {
                let chance = of_injectors[group * self.injectors + n].clone();
                thread(group, injector::Injector::new(bench.clone(), group, n, chance))
            };
            let worker = |n: usize| {
                let chance = of_workers[group * self.workers + n].clone();
                thread(group, backend::Worker::new(bench.clone(), group, n, chance))
            };
            let collector = |n: usize| thread(group, backend::Collector::new(bench.clone(), group, n));
            starts.extend((0..self.workers).map(worker));
            starts.extend((0..self.rules.gc_threads).map(collector));
            starts.extend((0..self.injectors).map(injector));
        }
        vec![TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("java", Controller::new(bench, starts)) }]
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().map(|sample| sample.value).collect()
    }

    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        self.samples(reported).into_iter().map(|figure| vec![figure]).collect()
    }
}

fn thread(group: usize, program: impl Program + 'static) -> TaskSpec {
    let memory = AddressSpace::Joined(group as u32);
    TaskSpec { memory, working_set: WORKING_SET, ..TaskSpec::new("java", program) }
}

/// What all threads see.
struct Bench {
    rules: Rules,
    jvms: Vec<RefCell<Jvm>>,
    requests: RefCell<Requests>,
    control: Control,
}

/// What the controller tells the others, and hears of them.
#[derive(Default)]
struct Control {
    /// Requests a second, all groups together.
    rate: Cell<u64>,
    /// Counts changes of the rate.
    epoch: Cell<u64>,
    stopping: Cell<bool>,
    injected: Cell<u64>,
    completed: Cell<u64>,
    in_flight: Cell<u64>,
    /// For which a collection stopped a group.
    longest_pause: Cell<Ns>,
    response_times: RefCell<Latencies>,
}

/// A piece of a request's work.
#[derive(Clone, Copy)]
enum Task {
    First(RequestId),
    Part(RequestId),
    Reply(RequestId),
}

type RequestId = u32;

/// Requests that are not answered yet.
#[derive(Default)]
struct Requests {
    all: Vec<Request>,
    free: Vec<RequestId>,
}

struct Request {
    issued: Ns,
    home: usize,
    parts_left: u32,
}

impl Requests {
    fn add(&mut self, issued: Ns, home: usize) -> RequestId {
        let request = Request { issued, home, parts_left: PARTS };
        match self.free.pop() {
            Some(id) => {
                self.all[id as usize] = request;
                id
            }
            None => {
                self.all.push(request);
                self.all.len() as RequestId - 1
            }
        }
    }
}

/// One virtual machine: its queue, and who works on it.
struct Jvm {
    workers: Vec<SemaphoreId>,
    injectors: Vec<SemaphoreId>,
    collectors: Vec<SemaphoreId>,
    queue: VecDeque<Task>,
    /// Workers that sleep until there is a task, the last one on top.
    parked: Vec<usize>,
    /// Workers that look for a task.
    looking: usize,
    /// Workers that do not sleep.
    running: usize,
    /// Bytes since the last collection.
    allocated: u64,
    collection: Collection,
    /// Since when threads are to stop, while there is a collection.
    stopping_since: Ns,
    /// Threads that wait for the end of a collection.
    stopped: Vec<SemaphoreId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Collection {
    None,
    /// Threads are to stop.
    Wanted,
    /// So many collector threads are at work.
    UnderWay(usize),
}

impl Jvm {
    fn new(os: &mut Os, workers: usize, injectors: usize, collectors: usize) -> Jvm {
        let mut semaphores = |count: usize| (0..count).map(|_| os.create_semaphore()).collect();
        Jvm {
            workers: semaphores(workers),
            injectors: semaphores(injectors),
            collectors: semaphores(collectors),
            queue: VecDeque::new(),
            parked: Vec::new(),
            looking: 0,
            running: workers,
            allocated: 0,
            collection: Collection::None,
            stopping_since: Ns::ZERO,
            stopped: Vec::new(),
        }
    }

    /// Adds a task; whom to wake for it.
    fn push(&mut self, task: Task) -> Option<SemaphoreId> {
        self.queue.push_back(task);
        let nobody_looks = self.queue.len() > self.looking;
        if nobody_looks { self.parked.pop().map(|worker| self.workers[worker]) } else { None }
    }

    /// Whether threads must stop where they are.
    fn stops(&self) -> bool {
        self.collection != Collection::None
    }

    /// For how long it has been stopping, or stopped.
    fn paused(&self, now: Ns) -> Ns {
        if self.stops() { Ns(now.0.saturating_sub(self.stopping_since.0)) } else { Ns::ZERO }
    }

    /// Nobody runs any more: whom to wake for the collection.
    fn begin_collection(&mut self) -> Vec<SemaphoreId> {
        if self.collection != Collection::Wanted || self.running > 0 {
            return Vec::new();
        }
        self.collection = Collection::UnderWay(self.collectors.len());
        self.collectors.clone()
    }
}

fn post(semaphore: SemaphoreId) -> Op {
    Op::Sync(SyncOp::SemaphorePost(semaphore))
}

fn wait(semaphore: SemaphoreId) -> Op {
    Op::Sync(SyncOp::SemaphoreWait(semaphore))
}

#[cfg(test)]
mod tests;
