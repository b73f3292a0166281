//! SPECjbb2015's shape: how many requests a second a machine serves, and how many within a bound on the response time.
//!
//! Groups of an injector and a backend, each a Java virtual machine of its own; a controller raises the rate of requests in steps.
//! An injector's threads issue requests at random times, whatever becomes of the earlier ones. A request is a task of the backend's
//! worker pool; it forks [`PARTS`] more, in [`BUNDLES`] that each go through one worker's hands as a fork-join pool's unstolen tasks
//! do: the forker keeps one, others take the rest, some of them in other groups' backends. Whoever ends the last of them goes on with
//! the reply, or hands it to the first group. So one request is 15 messages: public logs show 15.4 processed for each one injected.
//!
//! ```text
//! injector ─▶ First ─┬─▶ Parts (a parked worker, or another group's) ─┐
//!                    ├─▶ Parts (the same)                             ├─▶ Reply (by the last to end; handed home from elsewhere)
//!                    └─▶ Parts (the forker itself)                    ┘
//! ```
//!
//! Workers look for tasks for a moment before they park; who adds a task wakes one that is parked, the last to park first, unless
//! somebody is looking. Where the queue is longer than there are workers, each takes its share of it at once, which is what they
//! would do one by one without sleeping in between. When a young generation is full, every thread of that machine stops at the end
//! of its task, collector threads work for the length of the pause, and all go on. The groups' first collections are spread evenly.
//!
//! The controller ([`controller`]) searches the highest rate that settles, then walks up towards it. max-jOPS is the last rate
//! before the first failed step; critical-jOPS is the geometric mean of the rates up to which the 99th percentile of response times
//! stays below 10, 25, 50, 75 and 100 ms. `specjbb-preset` keeps one rate instead (`specjbb.controller.type=PRESET`), for looking at a
//! machine under a load that does not move: it marks its steady time as [`MEASURED`](crate::MEASURED), and prints what was served in it.
//!
//! What SPECjbb2015 publishes stands in the figures above; sizes of tasks, their spread, the share that goes to other groups, spinning
//! and allocation are derived, fitted or guessed, as said beside each. Modelled coarsely: the three tiers are one pool, messages to other
//! groups are pushed into their queues without sockets, steps last a second instead of a minute, the collector's work is its
//! pause. Absent: the just-in-time compiler, old collections, the controller's own messages.

mod backend;
mod controller;
mod injector;

use crate::latency::Latencies;
use crate::{Instance, MEASURED, Parameter, Summary, Values, Workload};
use controller::Controller;
use os::Os;
use os::sync::{SemaphoreId, SyncOp};
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Program, TaskSpec};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{CpuMask, Cycles, Ns};

/// Messages between a request's first and its reply.
const PARTS: u32 = 13;
/// Tasks that they are forked as (guess: workers steal from each other seldom, and take half of what is there).
const BUNDLES: u32 = 3;
/// Bytes that one request allocates: with 4 GB of heap a young collection comes every second or two at full rate (guess).
const ALLOCATION: u64 = 20 * 1024;
/// Bytes of private cache that a thread uses again after a switch (guess, 16 to 128 KiB).
const WORKING_SET: u64 = 32 * 1024;
/// Bounds on response times, in microseconds (SPECjbb2015).
const LIMITS_US: [u64; 5] = [10_000, 25_000, 50_000, 75_000, 100_000];

const GROUPS: Parameter =
    Parameter { name: "groups", default: 1, range: (1, 64), unit: "groups", doc: "virtual machines that serve" };
const BIND: Parameter = Parameter {
    name: "bind",
    default: 0,
    range: (0, 1),
    unit: "bool",
    doc: "each group stays on one NUMA node, as numactl --cpunodebind has it, one after the other",
};
const WORKERS: Parameter =
    Parameter { name: "workers", default: 60, range: (1, 2_048), unit: "threads", doc: "workers of each" };
const INJECTORS: Parameter = Parameter {
    name: "injectors",
    default: 2,
    range: (1, 64),
    unit: "threads",
    doc: "threads that issue requests to each",
};
const TASK_CYCLES: Parameter = Parameter {
    name: "task_cycles",
    default: 54_000,
    range: (1_000, 10_000_000),
    unit: "cycles",
    doc: "mean work of one message: 35 us of a thread that shares its core",
};
const AT_ONCE: Parameter = Parameter {
    name: "at_once",
    default: 4,
    range: (1, 1_024),
    unit: "tasks",
    doc: "most that a worker takes from a queue longer than there are workers",
};
const REMOTE: Parameter =
    Parameter { name: "remote", default: 10, range: (0, 100), unit: "%", doc: "tasks for other groups" };
const YOUNG: Parameter =
    Parameter { name: "young_mib", default: 2_048, range: (1, 1_048_576), unit: "MiB", doc: "young generation" };
const GC_PAUSE: Parameter =
    Parameter { name: "gc_pause", default: 50, range: (0, 10_000), unit: "ms", doc: "work of each collector thread" };
const GC_THREADS: Parameter =
    Parameter { name: "gc_threads", default: 20, range: (1, 512), unit: "threads", doc: "collector threads of each" };
const SETTLE: Parameter =
    Parameter { name: "settle", default: 200, range: (1, 60_000), unit: "ms", doc: "before a step counts" };

const fn workload(name: &'static str, summary: &'static str, parameters: &'static [Parameter]) -> Workload {
    Workload {
        name,
        summary,
        parameters,
        key: None,
        operation: "jOPS",
        rows: &[],
        statistics: Summary::RateFigure("Ops"),
        unit: "jOPS",
        per_unit: 1,
        decimals: 2,
        build: |values: &Values| Box::new(SpecJbb::new(values)),
    }
}

pub const WORKLOAD: Workload = Workload {
    rows: &[
        "Max-jOPs",
        "Critical-jOPs",
        "JOPS-10000us",
        "JOPS-25000us",
        "JOPS-50000us",
        "JOPS-75000us",
        "JOPS-100000us",
    ],
    ..workload(
        "specjbb",
        "requests a second of a Java server in groups, in all and within bounds of the response time (SPECjbb2015's shape)",
        &[
            GROUPS,
            BIND,
            WORKERS,
            INJECTORS,
            TASK_CYCLES,
            AT_ONCE,
            REMOTE,
            YOUNG,
            GC_PAUSE,
            GC_THREADS,
            Parameter {
                name: "step",
                default: 4,
                range: (1, 100),
                unit: "%",
                doc: "of the highest rate, between steps",
            },
            SETTLE,
            Parameter {
                name: "steady",
                default: 1_000,
                range: (10, 600_000),
                unit: "ms",
                doc: "for which a step at the highest rate counts; those below it count for longer",
            },
        ],
    )
};

pub const PRESET: Workload = Workload {
    key: Some("groups"),
    ..workload(
        "specjbb-preset",
        "requests a second that a Java server answers while they come at one rate (SPECjbb2015's PRESET controller)",
        &[
            GROUPS,
            BIND,
            Parameter {
                name: "rate",
                default: 60_000,
                range: (1, 10_000_000),
                unit: "jOPS",
                doc: "requests a second for each group, served or not",
            },
            WORKERS,
            INJECTORS,
            TASK_CYCLES,
            AT_ONCE,
            REMOTE,
            YOUNG,
            GC_PAUSE,
            GC_THREADS,
            SETTLE,
            Parameter { name: "steady", default: 1_000, range: (10, 600_000), unit: "ms", doc: "for which it counts" },
        ],
    )
};

#[derive(Clone, Copy)]
struct Rules {
    task: Cycles,
    at_once: usize,
    remote_percent: u64,
    /// Bytes.
    young: u64,
    pause: Ns,
    gc_threads: usize,
    pace: Pace,
    settle: Ns,
    steady: Ns,
}

/// What becomes of the rate.
#[derive(Clone, Copy)]
enum Pace {
    /// It rises, in steps of at least so many per cent of the highest.
    Curve { step_percent: u64 },
    /// So many requests a second for each group.
    Preset { rate: u64 },
}

struct SpecJbb {
    groups: usize,
    bind: bool,
    workers: usize,
    injectors: usize,
    rules: Rules,
}

impl SpecJbb {
    fn new(values: &Values) -> SpecJbb {
        let get = |name| values.get(name);
        let has = |name| values.iter().any(|(parameter, _)| parameter == name);
        SpecJbb {
            groups: get("groups") as usize,
            bind: get("bind") == 1,
            workers: get("workers") as usize,
            injectors: get("injectors") as usize,
            rules: Rules {
                task: Cycles(get("task_cycles")),
                at_once: get("at_once") as usize,
                remote_percent: get("remote"),
                young: get("young_mib") << 20,
                pause: Ns::from_ms(get("gc_pause")),
                gc_threads: get("gc_threads") as usize,
                pace: match has("rate") {
                    true => Pace::Preset { rate: get("rate") },
                    false => Pace::Curve { step_percent: get("step") },
                },
                settle: Ns::from_ms(get("settle")),
                steady: Ns::from_ms(get("steady")),
            },
        }
    }
}

impl Instance for SpecJbb {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let mut machine = || RefCell::new(Jvm::new(os, self.workers, self.injectors, self.rules.gc_threads));
        let jvms: Vec<RefCell<Jvm>> = (0..self.groups).map(|_| machine()).collect();
        for (group, jvm) in jvms.iter().enumerate() {
            jvm.borrow_mut().allocated = self.rules.young * group as u64 / self.groups as u64;
        }
        let bench =
            Rc::new(Bench { rules: self.rules, jvms, requests: RefCell::default(), control: Control::default() });
        let chances = |purpose| {
            let owners = 0..(self.groups * self.workers.max(self.injectors)) as u64;
            owners.map(|owner| os.chance(purpose, owner)).collect::<Vec<_>>()
        };
        let nodes = if self.bind { os.node_cpus.clone() } else { Vec::new() };
        let mut starts: Vec<TaskSpec> = Vec::new();
        let (of_workers, of_injectors) = (chances("specjbb task"), chances("specjbb arrival"));
        for group in 0..self.groups {
            let injector = |n: usize| {
                let chance = of_injectors[group * self.injectors + n].clone();
                thread(&nodes, group, injector::Injector::new(bench.clone(), group, n, chance))
            };
            let worker = |n: usize| {
                let chance = of_workers[group * self.workers + n].clone();
                thread(&nodes, group, backend::Worker::new(bench.clone(), group, n, chance))
            };
            let collector = |n: usize| thread(&nodes, group, backend::Collector::new(bench.clone(), group, n));
            starts.extend((0..self.workers).map(worker));
            starts.extend((0..self.rules.gc_threads).map(collector));
            starts.extend((0..self.injectors).map(injector));
        }
        vec![TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("java", Controller::new(bench, starts)) }]
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().filter(|sample| sample.series != MEASURED).map(|sample| sample.value).collect()
    }

    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        self.samples(reported).into_iter().map(|figure| vec![figure]).collect()
    }
}

/// A thread of a group's virtual machine, which stays on its node where there are `nodes`.
fn thread(nodes: &[CpuMask], group: usize, program: impl Program + 'static) -> TaskSpec {
    TaskSpec {
        memory: AddressSpace::Joined(group as u32),
        working_set: WORKING_SET,
        cpus: nodes.get(group % nodes.len().max(1)).cloned(),
        ..TaskSpec::new("java", program)
    }
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
    /// For which collections stopped groups since counting began, all groups together; those under way aside.
    paused: Cell<Ns>,
    counting_since: Cell<Ns>,
    response_times: RefCell<Latencies>,
}

/// A piece of a request's work.
#[derive(Clone, Copy)]
enum Task {
    First(RequestId),
    /// So many messages that go through one worker's hands.
    Parts {
        request: RequestId,
        parts: u32,
    },
    Reply(RequestId),
}

impl Task {
    fn messages(self) -> u32 {
        match self {
            Task::First(_) | Task::Reply(_) => 1,
            Task::Parts { parts, .. } => parts,
        }
    }
}

/// Tasks in one worker's hands, in the order of their work.
type TasksAtOnce = VecDeque<Task>;

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

    /// Adds a task; whom to wake for it. What was forked goes before what came from outside: requests that are begun are ended first.
    fn push(&mut self, task: Task) -> Option<SemaphoreId> {
        match task {
            Task::First(_) => self.queue.push_back(task),
            Task::Parts { .. } | Task::Reply(_) => self.queue.push_front(task),
        }
        let nobody_looks = self.queue.len() > self.looking;
        if nobody_looks { self.parked.pop().map(|worker| self.workers[worker]) } else { None }
    }

    /// Whether threads must stop where they are.
    fn stops(&self) -> bool {
        self.collection != Collection::None
    }

    /// For how long it has been stopping, or stopped, since `since`.
    fn paused(&self, since: Ns, now: Ns) -> Ns {
        if self.stops() { Ns(now.0.saturating_sub(self.stopping_since.max(since).0)) } else { Ns::ZERO }
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
