//! SPECjbb2015's shape: how many requests a second a machine serves, and how many it serves within a bound on the
//! response time.
//!
//! There are groups of two Java virtual machines, as in MultiJVM runs: one injects requests, and the other, the
//! backend, serves them. A controller raises the rate of requests in steps. Messages between virtual machines travel
//! through TCP. The sender writes a message to a connection; on the other side a selector thread sleeps until something
//! has arrived, takes all of it and decodes it, or hands each message to a pool of threads that do (`connection`). A
//! backend works in three fork-join pools, its tiers. An injector's threads check every millisecond, the shortest
//! `Thread.sleep()`, which requests have become due (at random times), and issue them, whatever has become of the
//! earlier ones.
//!
//! A request is a task of the first tier. It forks [`PARTS`] more, all of which one worker does: the same worker, as
//! with a fork-join pool's tasks that nobody steals, or one in another group's backend. One request in sixteen
//! ([`MINES`]) asks for data mining besides, which is the third tier's work; the second tier has none. The worker that
//! ends the last part goes on with the reply, or hands it to the first group. So a request is 15 messages on average:
//! public logs show 15.4 processed for each request injected.
//!
//! ```text
//! injector ═▶ selector ─▶ First ─┬─▶ forker ─┐
//!     ▲                          └─▶ tier 3 ─┤      ═▶ TCP    ─▶ a parked thread is woken
//!  response ◀─ selector ◀═ Reply ◀───────────┘
//! ```
//!
//! A tier's worker without a task scans its pool once and parks (`ForkJoinPool` of OpenJDK 8 spins no longer than
//! that). A thread that adds a task wakes the worker that parked last, unless some worker is scanning. Threads that
//! decode wait on a condition, and the one that has waited longest is woken. A wakeup is a futex wake. When a tier's
//! queue is longer than the number of its workers, each takes its share of the queue at once; one by one they would
//! take the same, without sleeping in between. When a backend's young generation is full, every thread of it stops at
//! the end of its task, collector threads work for the length of the pause, and all go on.
//!
//! The controller ([`controller`]) searches the highest rate that settles, then walks up towards it. It decides when a
//! group collects, so that each step knows what a collection does to response times. max-jOPS is the last rate before
//! the first failed step. critical-jOPS is the geometric mean of the rates up to which the 99th percentile of response
//! times stays below 10, 25, 50, 75 and 100 ms. `specjbb-preset` keeps one rate instead
//! (`specjbb.controller.type=PRESET`), to study a machine under a constant load: it marks its steady time as
//! [`MEASURED`], and prints the rate served in it.
//!
//! The components, pools and their default sizes, connections and selectors are what SPECjbb2015 publishes. How long
//! its work takes comes from `[java]` of the machine file; the spread of tasks and the share that goes to other groups
//! are guesses. That a request wakes few threads, because selectors decode and requests stay with one worker, is
//! inferred from the column before the change in the load_avg study (docs/studies/load-avg-line.md).
//!
//! Modelled coarsely: each selector has one connection instead of many, so its call stands for `epoll_wait()` and a
//! read; steps last a second instead of a minute; the collector's work is its pause. Absent: locks inside the backend,
//! which are said to be uncontended; the injectors' collections, the just-in-time compiler, old collections, and the
//! controller's own messages.

mod backend;
mod collector;
mod connection;
mod controller;
mod injector;
mod jvm;

use crate::latency::Latencies;
use crate::{Instance, MEASURED, Parameter, Summary, Values, Workload};
use controller::Controller;
use jvm::{Jvm, Threads};
use machine::java::Java;
use os::Os;
use os::sync::{SemaphoreId, SyncOp};
use sched::sched::TgId;
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Program, TaskSpec};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{CpuMask, Cycles, Ns, Ps};

/// Messages between a request's first and its reply, not counting data mining; one worker does all of them.
const PARTS: u32 = 11;
/// One request in so many asks for data mining (guess: a few per cent do), and how many messages that is; one worker of
/// the third tier does them all. This gives the third tier a seventh of the work. Tuned results have 80 to 180 workers
/// in the first tier, one in the second, and 16 to 22 in the third.
const MINES: (u64, u32) = (16, 32);
/// The third tier, counted from 0.
const MINING: usize = 2;
/// Bytes of private cache that a thread uses again after a switch (guess, 16 to 128 KiB).
const WORKING_SET: u64 = 32 * 1024;
/// Bounds on response times, in microseconds (SPECjbb2015).
const LIMITS_US: [u64; 5] = [10_000, 25_000, 50_000, 75_000, 100_000];

const GROUPS: Parameter =
    Parameter { name: "groups", default: 1, range: (1, 64), unit: "groups", doc: "injectors with a backend" };
const BIND: Parameter = Parameter {
    name: "bind",
    default: 0,
    range: (0, 1),
    unit: "bool",
    doc: "each group stays on one NUMA node, as numactl --cpunodebind has it, one after the other",
};
const WORKERS: Parameter = Parameter {
    name: "workers",
    default: 60,
    range: (1, 2_048),
    unit: "threads",
    doc: "workers of each tier of each group: by default two for each CPU (specjbb.forkjoin.workers)",
};
const CONNECTION: Parameter = Parameter {
    name: "connection",
    default: 0,
    range: (0, 256),
    unit: "threads",
    doc: "threads of each virtual machine that decode messages, at most 256 (specjbb.comm.connect.worker.pool.max); 0: selectors do",
};
const SELECTORS: Parameter = Parameter {
    name: "selectors",
    default: 4,
    range: (1, 64),
    unit: "threads",
    doc: "threads of each that wait for messages (specjbb.comm.connect.selector.runner.count: 1 to 16 in published scripts)",
};
const INJECTORS: Parameter = Parameter {
    name: "injectors",
    default: 2,
    range: (1, 64),
    unit: "threads",
    doc: "threads that issue requests to each",
};
const TASK_CYCLES: Parameter = Parameter {
    name: "task_cycles",
    default: 0,
    range: (0, 10_000_000),
    unit: "cycles",
    doc: "mean work of one message; 0: as the machine file says",
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
const YOUNG: Parameter = Parameter {
    name: "young_mib",
    default: 0,
    range: (0, 1_048_576),
    unit: "MiB",
    doc: "young generation; 0: as the machine file says",
};
const GC_PAUSE: Parameter = Parameter {
    name: "gc_pause",
    default: 0,
    range: (0, 10_000),
    unit: "ms",
    doc: "work of each collector thread; 0: as the machine file says",
};
const GC_THREADS: Parameter = Parameter {
    name: "gc_threads",
    default: 0,
    range: (0, 512),
    unit: "threads",
    doc: "collector threads of each; 0: as HotSpot has them, one for each CPU up to eight, then five for every eight",
};
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
            CONNECTION,
            SELECTORS,
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
                doc: "for which a step counts, but for the collection that it sees then",
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
            CONNECTION,
            SELECTORS,
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
    costs: Java,
    at_once: usize,
    remote_percent: u64,
    /// Selectors decode messages themselves, instead of handing them to a pool of threads.
    selectors_decode: bool,
    pace: Pace,
    settle: Ns,
    steady: Ns,
}

/// How the rate changes.
#[derive(Clone, Copy)]
enum Pace {
    /// The rate rises in steps of at least this many per cent of the highest.
    Curve { step_percent: u64 },
    /// A constant number of requests a second for each group.
    Preset { rate: u64 },
}

struct SpecJbb {
    groups: usize,
    bind: bool,
    threads: Threads,
    differs: Differs,
    at_once: usize,
    remote_percent: u64,
    pace: Pace,
    settle: Ns,
    steady: Ns,
}

/// How the server should differ from the machine's.
struct Differs {
    task: Option<Cycles>,
    /// Bytes.
    young: Option<u64>,
    pause: Option<Ps>,
}

impl Differs {
    fn over(&self, java: Java) -> Java {
        Java {
            task: self.task.unwrap_or(java.task),
            young: self.young.unwrap_or(java.young),
            pause: self.pause.unwrap_or(java.pause),
            ..java
        }
    }
}

impl SpecJbb {
    fn new(values: &Values) -> SpecJbb {
        let get = |name| values.get(name);
        let given = |name| Some(get(name)).filter(|&value| value > 0);
        let has = |name| values.iter().any(|(parameter, _)| parameter == name);
        SpecJbb {
            groups: get("groups") as usize,
            bind: get("bind") == 1,
            threads: Threads {
                workers: get("workers") as usize,
                connection: get("connection") as usize,
                selectors: get("selectors") as usize,
                injectors: get("injectors") as usize,
                collectors: get("gc_threads") as usize,
            },
            differs: Differs {
                task: given("task_cycles").map(Cycles),
                young: given("young_mib").map(|mib| mib << 20),
                pause: given("gc_pause").map(|ms| Ps::from_ns(ms * 1_000_000)),
            },
            at_once: get("at_once") as usize,
            remote_percent: get("remote"),
            pace: match has("rate") {
                true => Pace::Preset { rate: get("rate") },
                false => Pace::Curve { step_percent: get("step") },
            },
            settle: Ns::from_ms(get("settle")),
            steady: Ns::from_ms(get("steady")),
        }
    }

    /// The number of collector threads of a group's virtual machine.
    fn collectors(&self, nodes: &[CpuMask], group: usize) -> usize {
        let cpus = match self.bind {
            true => nodes.get(group % nodes.len().max(1)).map_or(0, CpuMask::weight),
            false => nodes.iter().map(CpuMask::weight).sum(),
        };
        match self.threads.collectors {
            0 => parallel_gc_threads(cpus),
            asked => asked,
        }
    }

    /// Backends, then their injectors' virtual machines, in the order of the groups.
    fn jvms(&self, os: &mut Os, young: u64) -> Vec<RefCell<Jvm>> {
        let groups = self.groups as u64;
        let backend = |group: u64| {
            let threads = Threads { collectors: self.collectors(&os.node_cpus, group as usize), ..self.threads };
            // The virtual machines start with evenly spread allocations, and so do their first collections.
            RefCell::new(Jvm::backend(os, threads, young * group / groups))
        };
        let mut jvms: Vec<_> = (0..groups).map(backend).collect();
        jvms.extend((0..groups).map(|_| RefCell::new(Jvm::injector(os, self.threads))));
        jvms
    }
}

impl Instance for SpecJbb {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        self.start_with(os, &[], None)
    }

    /// # Panics
    /// If the machine does not say what Java's work takes.
    fn start_with(&self, os: &mut Os, _groups: &[TgId], java: Option<Java>) -> Vec<TaskSpec> {
        let costs = self.differs.over(java.expect("the machine says what a Java server's work takes"));
        let SpecJbb { at_once, remote_percent, pace, settle, steady, .. } = *self;
        let selectors_decode = self.threads.connection == 0;
        let rules = Rules { costs, at_once, remote_percent, selectors_decode, pace, settle, steady };
        let jvms = self.jvms(os, costs.young);
        let bench = Rc::new(Bench { rules, jvms, requests: RefCell::default(), control: Control::default() });
        let nodes = if self.bind { os.node_cpus.clone() } else { Vec::new() };
        let passes = u32::try_from(costs.passes).expect("at most 64000, as the loader has checked");
        let mut starts = Starts { nodes: &nodes, groups: self.groups, passes, specs: Vec::new() };
        let (mut worker, mut selectors) = (0, 0);
        for (number, jvm) in bench.jvms.iter().enumerate() {
            let jvm = jvm.borrow();
            for (pool, threads) in jvm.pools.iter().map(|pool| pool.threads.len()).enumerate() {
                for n in 0..threads {
                    let chance = os.chance("specjbb task", worker);
                    worker += 1;
                    starts.add(number, backend::Worker::new(bench.clone(), (number, pool), n, chance));
                }
            }
            for n in 0..jvm.inboxes.len() {
                selectors += 1;
                starts.add(number, connection::Selector::new(bench.clone(), number, n));
            }
            (0..jvm.collectors.len())
                .for_each(|n| starts.add(number, collector::Collector::new(bench.clone(), number, n)));
        }
        for group in 0..self.groups {
            for n in 0..self.threads.injectors {
                let chance = os.chance("specjbb arrival", (group * self.threads.injectors + n) as u64);
                let rival = injector::Injector::new(bench.clone(), group, (n, self.threads.injectors), chance);
                starts.add(self.groups + group, rival);
            }
        }
        let controller = Controller::new(bench, starts.specs, selectors);
        vec![TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("java", controller) }]
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().filter(|sample| sample.series != MEASURED).map(|sample| sample.value).collect()
    }

    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        self.samples(reported).into_iter().map(|figure| vec![figure]).collect()
    }
}

/// ParallelGCThreads as HotSpot chooses it for this many usable CPUs (nof_parallel_worker_threads(5, 8, 8)).
fn parallel_gc_threads(cpus: usize) -> usize {
    cpus.clamp(1, 8) + cpus.saturating_sub(8) * 5 / 8
}

/// The threads of all virtual machines.
struct Starts<'a> {
    nodes: &'a [CpuMask],
    groups: usize,
    passes: u32,
    specs: Vec<TaskSpec>,
}

impl Starts<'_> {
    /// Adds a thread of a virtual machine. If the machine has several nodes to bind to, the thread stays on its group's
    /// node.
    fn add(&mut self, jvm: usize, program: impl Program + 'static) {
        let node = jvm % self.groups % self.nodes.len().max(1);
        self.specs.push(TaskSpec {
            memory: AddressSpace::Joined(jvm as u32),
            working_set: WORKING_SET,
            passes: self.passes,
            cpus: self.nodes.get(node).cloned(),
            ..TaskSpec::new("java", program)
        });
    }
}

/// State that all threads share.
struct Bench {
    rules: Rules,
    /// The backends, then as many virtual machines of injectors.
    jvms: Vec<RefCell<Jvm>>,
    requests: RefCell<Requests>,
    control: Control,
}

impl Bench {
    fn groups(&self) -> usize {
        self.jvms.len() / 2
    }

    /// Writes a message to one of a virtual machine's connections.
    fn send(&self, jvm: usize, sender: usize, job: Job) -> Op {
        let mut jvm = self.jvms[jvm].borrow_mut();
        let inboxes = jvm.inboxes.len();
        let inbox = &mut jvm.inboxes[sender % inboxes];
        inbox.messages.push_back(job);
        Op::Send { socket: inbox.writer, bytes: self.rules.costs.message as u32 }
    }

    /// A message to a virtual machine has been decoded. Returns the thread to wake for it.
    fn decoded(&self, jvm: usize, message: Job, now: Ns) -> Option<SemaphoreId> {
        if let Job::Answer(id) = message {
            self.answered(id, now);
            return None;
        }
        self.jvms[jvm].borrow_mut().pools[message.tier()].push(Task::Do(message))
    }

    /// A request's answer has arrived at its injector.
    fn answered(&self, id: RequestId, now: Ns) {
        let mut requests = self.requests.borrow_mut();
        let issued = requests.all[id as usize].issued;
        requests.free.push(id);
        let control = &self.control;
        control.response_times.borrow_mut().add(issued, now);
        control.completed.set(control.completed.get() + 1);
        control.in_flight.set(control.in_flight.get() - 1);
    }
}

/// What the controller tells the other threads, and learns from them.
#[derive(Default)]
struct Control {
    /// Requests a second, over all groups.
    rate: Cell<u64>,
    /// Counts changes of the rate.
    epoch: Cell<u64>,
    /// When each injector's next request is due; `None` until it knows the current rate.
    arrivals: RefCell<Vec<Option<Ns>>>,
    stopping: Cell<bool>,
    injected: Cell<u64>,
    completed: Cell<u64>,
    in_flight: Cell<u64>,
    counting_since: Cell<Ns>,
    response_times: RefCell<Latencies>,
}

/// A piece of a request's work.
#[derive(Clone, Copy)]
enum Job {
    First(RequestId),
    /// So many messages of work for one worker.
    Parts {
        request: RequestId,
        tier: usize,
        parts: u32,
    },
    Reply(RequestId),
    /// The reply's message back to the injector that issued the request.
    Answer(RequestId),
}

impl Job {
    /// The tier of a backend that does the job.
    fn tier(self) -> usize {
        match self {
            Job::Parts { tier, .. } => tier,
            Job::First(_) | Job::Reply(_) | Job::Answer(_) => 0,
        }
    }
}

/// An entry of a pool's queue.
#[derive(Clone, Copy)]
enum Task {
    /// Decode a message that has arrived.
    Decode(Job),
    Do(Job),
}

/// The tasks that one worker holds, in the order it does them.
type TasksAtOnce = VecDeque<Task>;

type RequestId = u32;

/// Requests that have not been answered yet.
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
        let request = Request { issued, home, parts_left: 0 };
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

fn post(semaphore: SemaphoreId) -> Op {
    Op::Sync(SyncOp::SemaphorePost(semaphore))
}

fn wait(semaphore: SemaphoreId) -> Op {
    Op::Sync(SyncOp::SemaphoreWait(semaphore))
}

#[cfg(test)]
mod tests;
