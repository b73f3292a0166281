//! schbench as it is now: workers sleep a little, do work under a lock of the CPU they are on, and report how long wakeups and requests
//! took and how many requests were served.
//!
//! A worker waits for a message thread's answer (the wakeup's latency ends here), sleeps for `sleep_usec`, takes the
//! lock of its CPU, multiplies matrices that fill `cache_footprint`, and releases the lock. A request's latency is all
//! of this except the wait. A worker that finds the lock of its CPU taken spins in user mode: the holder was preempted
//! on that CPU and cannot run meanwhile. With `rps` the message threads hand out that many requests a second in all,
//! and at most 128 wait for each worker; workers serve the requests they have before they wait again. Figures are
//! printed every `interval` seconds, each over the time since the last ones: percentiles of the latencies (`schbench`),
//! and of the requests served in each second (`schbench-rps`, a table of its own because only there is higher better).
//!
//! Structure and defaults are those of schbench 24e32b8 and 026d172. Each multiply-add of the work takes
//! [`MULTIPLY_CYCLES`].

use super::{Shared, Team, Thread, thread, thread_on_data};
use crate::latency::Latencies;
use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use sim::engine::Sample;
use sim::program::{Op, Outcome, Program, TaskSpec};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Cycles, Ns};

/// Cycles of one multiply-add of `unsigned long`, which goes column by column through a matrix that the second-level
/// cache holds. 5 operations of side 104 take 17 ms on the machine of schbench's README, whose clock is not given
/// (taken as 3 GHz).
const MULTIPLY_CYCLES: u64 = 9;
/// Time between two looks at a lock that another thread holds.
const LOOK: Ns = Ns(10_000);
/// Requests that may wait for one worker.
const BATCH: usize = 128;
/// How long a message thread sleeps when a worker already has that many.
const FULL_SLEEP: Ns = Ns(100_000);
const SECOND: Ns = Ns(1_000_000_000);
/// Bytes of private cache that a message thread uses again after a switch (guess, 2 to 8 KiB).
const WORKING_SET: u64 = 4 * 1024;
/// Thousandths of the percentiles, in the order of the rows.
const PERMILLE: [u64; 3] = [500, 900, 990];
const LAST: u64 = 999;
/// Thousandths of the percentiles of requests per second.
const RPS_PERMILLE: [u64; 3] = [200, 500, 900];

/// The same runs, reported as requests per second.
pub const RPS: Workload = Workload {
    name: "schbench-rps",
    summary: "requests per second, as schbench measures them today",
    operation: "RPS",
    rows: &["RPS-20.0th", "RPS-50.0th", "RPS-90.0th"],
    statistics: Summary::NormalisedRate,
    unit: "1/s",
    build: |values: &Values| Box::new(Schbench { first_row: WORKLOAD.rows.len(), rows: 3, ..Schbench::of(values) }),
    ..WORKLOAD
};

pub const WORKLOAD: Workload = Workload {
    name: "schbench",
    summary: "latencies of wakeups and requests, as schbench measures them today",
    parameters: &[
        Parameter { name: "messengers", default: 1, range: (1, 1_024), unit: "threads", doc: "message threads" },
        Parameter { name: "workers", default: 16, range: (1, 8_192), unit: "threads", doc: "workers of each" },
        Parameter { name: "runtime", default: 30, range: (1, 3_600), unit: "s", doc: "how long it measures" },
        Parameter { name: "interval", default: 15, range: (1, 3_600), unit: "s", doc: "between printed figures" },
        Parameter { name: "operations", default: 5, range: (0, 10_000), unit: "", doc: "multiplications in a request" },
        Parameter { name: "cache_footprint", default: 256, range: (1, 65_536), unit: "KiB", doc: "of three matrices" },
        Parameter { name: "sleep_usec", default: 100, range: (0, 1_000_000), unit: "us", doc: "slept in a request" },
        Parameter { name: "no_locking", default: 0, range: (0, 1), unit: "bool", doc: "without the CPUs' locks" },
        Parameter { name: "rps", default: 0, range: (0, 100_000_000), unit: "1/s", doc: "requests; 0: as many as go" },
    ],
    key: Some("workers"),
    operation: "Lat",
    rows: &[
        "Wakeup-50.0th",
        "Wakeup-90.0th",
        "Wakeup-99.0th",
        "Wakeup-99.9th",
        "Request-50.0th",
        "Request-90.0th",
        "Request-99.0th",
        "Request-99.9th",
    ],
    statistics: Summary::NormalisedTime,
    unit: "us",
    per_unit: 1,
    decimals: 2,
    build: |values: &Values| Box::new(Schbench::of(values)),
};

/// What one request takes.
#[derive(Clone, Copy)]
struct Request {
    sleep: Ns,
    work: Cycles,
    locks: bool,
    /// Bytes of the matrices.
    footprint: u64,
}

struct Schbench {
    messengers: u64,
    workers: u64,
    runtime: u64,
    interval: u64,
    request: Request,
    rps: u64,
    /// The first row of its table, among all rows.
    first_row: usize,
    rows: usize,
}

impl Schbench {
    fn of(values: &Values) -> Schbench {
        let footprint = values.get("cache_footprint") * 1024;
        let messengers = values.get("messengers");
        Schbench {
            messengers,
            workers: values.get("workers"),
            runtime: values.get("runtime"),
            interval: values.get("interval"),
            request: Request {
                sleep: Ns(values.get("sleep_usec") * 1_000),
                work: Cycles(values.get("operations") * (footprint / 24).isqrt().pow(3) * MULTIPLY_CYCLES),
                locks: values.get("no_locking") == 0,
                footprint,
            },
            // Each message thread hands out its share; a share below one request is none.
            rps: values.get("rps") / messengers,
            first_row: 0,
            rows: WORKLOAD.rows.len(),
        }
    }
}

impl Instance for Schbench {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let shared = Shared::new(os, self.messengers, self.workers);
        let main = Main {
            shared,
            messengers: self.messengers as usize,
            request: self.request,
            rps: self.rps,
            intervals: (self.runtime / self.interval).max(1),
            interval: self.interval.min(self.runtime),
            seconds: 0,
            since: Ns::ZERO,
            served: 0,
            rates: Latencies::default(),
            forked: 0,
            posted: 0,
            figures: VecDeque::new(),
            state: MainState::Fork,
        };
        vec![TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("schbench", main) }]
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        self.rows(reported).concat()
    }

    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        let of = |row: usize| reported.iter().filter(|it| it.series as usize == row).map(|it| it.value).collect();
        (self.first_row..self.first_row + self.rows).map(of).collect()
    }
}

enum MainState {
    Fork,
    Second,
    Passed,
    Print,
    Stop,
    Join,
}

struct Main {
    shared: Rc<Shared>,
    messengers: usize,
    request: Request,
    rps: u64,
    intervals: u64,
    /// Seconds of an interval, and how many of them have passed.
    interval: u64,
    seconds: u64,
    /// When this second began, and how many requests had been served then.
    since: Ns,
    served: u64,
    /// Requests of each second of the interval.
    rates: Latencies,
    forked: usize,
    posted: usize,
    /// Row and value of the figures still to be reported.
    figures: VecDeque<(u32, u64)>,
    state: MainState,
}

impl Main {
    /// The figures of the interval that ends; all counts start again at zero.
    fn figures(&mut self) -> VecDeque<(u32, u64)> {
        let rates = std::mem::take(&mut self.rates);
        let counts = [self.shared.wakeups.take(), self.shared.requests.take()];
        let permille = || PERMILLE.into_iter().chain([LAST]);
        let values = counts.iter().flat_map(|latencies| permille().map(|permille| latencies.percentile(permille)));
        let rates = RPS_PERMILLE.iter().map(|&permille| rates.percentile(permille));
        values.chain(rates).zip(0..).map(|(value, row)| (row, value)).collect()
    }

    /// Records that a second, or a little more, has passed.
    fn second(&mut self, now: Ns) {
        let served = self.shared.served.get();
        let elapsed = (now - self.since).0.max(1);
        self.rates.record((served - self.served) * SECOND.0 / elapsed);
        (self.served, self.since) = (served, now);
        self.seconds += 1;
    }
}

impl Program for Main {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            match self.state {
                MainState::Fork if self.forked == self.messengers => {
                    self.since = last.now;
                    self.state = MainState::Second;
                }
                MainState::Fork => {
                    let messenger = Messenger {
                        shared: self.shared.clone(),
                        team: self.forked,
                        request: self.request,
                        rps: self.rps,
                        forked: 0,
                        next: 0,
                        answering: Vec::new(),
                        pending: (0..self.shared.teams[0].workers.len()).map(|_| Rc::default()).collect(),
                        second: Ns::ZERO,
                        state: MessengerState::Fork,
                    };
                    self.forked += 1;
                    return thread("schbench-msg", WORKING_SET, messenger);
                }
                MainState::Second => {
                    self.state = MainState::Passed;
                    return Op::SleepFor(SECOND);
                }
                MainState::Passed => {
                    self.second(last.now);
                    let over = self.seconds == self.interval;
                    self.seconds %= self.interval;
                    self.state = if over { MainState::Print } else { MainState::Second };
                }
                MainState::Print => {
                    if self.figures.is_empty() {
                        self.figures = self.figures();
                        self.intervals -= 1;
                    }
                    let (series, value) = self.figures.pop_front().expect("every row has a figure");
                    if self.figures.is_empty() {
                        self.state = if self.intervals > 0 { MainState::Second } else { MainState::Stop };
                    }
                    return Op::Report { series, value };
                }
                MainState::Stop => {
                    self.shared.stopping.set(true);
                    let Some(team) = self.shared.teams.get(self.posted) else {
                        self.state = MainState::Join;
                        return Op::Wait;
                    };
                    self.posted += 1;
                    if let Some(op) = team.messenger.word.post() {
                        return op;
                    }
                }
                MainState::Join if last.value != 0 => return Op::Wait,
                MainState::Join => return Op::Exit,
            }
        }
    }
}

/// How many requests wait for a worker.
type Pending = Rc<std::cell::Cell<usize>>;

enum MessengerState {
    Fork,
    /// Answers the workers that have sent a message.
    Splice,
    Answer,
    /// Hands out requests at a fixed rate: the first of a second here, then the others, then it waits for the rest of
    /// the second.
    Second,
    Hand {
        left: u64,
    },
    RestOfSecond,
    Stop(usize),
}

struct Messenger {
    shared: Rc<Shared>,
    team: usize,
    request: Request,
    rps: u64,
    forked: usize,
    /// The worker that gets the next request.
    next: usize,
    answering: Vec<usize>,
    pending: Vec<Pending>,
    /// When this second began.
    second: Ns,
    state: MessengerState,
}

impl Messenger {
    /// Starts the next worker.
    fn fork(&mut self) -> Op {
        let worker = Worker {
            shared: self.shared.clone(),
            place: (self.team, self.forked),
            request: self.request,
            pending: (self.rps > 0).then(|| self.pending[self.forked].clone()),
            left: 0,
            started: Ns::ZERO,
            cpu: 0,
            state: WorkerState::Send,
        };
        self.forked += 1;
        thread_on_data("schbench-worker", self.request.footprint, worker)
    }

    /// Hands one request to the next worker.
    fn hand(&mut self, team: &Team, now: Ns) -> Option<Op> {
        let next = self.next;
        self.next = (next + 1) % team.workers.len();
        let pending = &self.pending[next];
        if pending.get() > BATCH {
            return Some(Op::SleepFor(FULL_SLEEP));
        }
        pending.set(pending.get() + 1);
        team.workers[next].wake_time.set(now);
        team.workers[next].word.post()
    }
}

impl Program for Messenger {
    fn next(&mut self, last: Outcome) -> Op {
        let shared = self.shared.clone();
        let team = &shared.teams[self.team];
        loop {
            match self.state {
                MessengerState::Fork if self.forked == team.workers.len() => {
                    self.state = if self.rps > 0 { MessengerState::Second } else { MessengerState::Splice };
                }
                MessengerState::Fork => return self.fork(),
                MessengerState::Splice => {
                    self.answering = team.splice(last.now);
                    self.state = MessengerState::Answer;
                }
                MessengerState::Answer => {
                    if let Some(op) = team.answer(&mut self.answering) {
                        return op;
                    }
                    if shared.stopping.get() {
                        self.state = MessengerState::Stop(0);
                    } else {
                        self.state = MessengerState::Splice;
                        return team.messenger.word.wait();
                    }
                }
                MessengerState::Second => {
                    self.second = last.now;
                    self.state = MessengerState::Hand { left: self.rps };
                }
                MessengerState::Hand { left } if left == 0 || shared.stopping.get() => {
                    self.state = MessengerState::RestOfSecond;
                }
                MessengerState::Hand { left } => {
                    self.state = MessengerState::Hand { left: left - 1 };
                    if let Some(op) = self.hand(team, last.now) {
                        return op;
                    }
                }
                MessengerState::RestOfSecond if shared.stopping.get() => self.state = MessengerState::Stop(0),
                MessengerState::RestOfSecond => {
                    let end = self.second + SECOND;
                    if last.now >= end {
                        self.state = MessengerState::Second;
                    } else {
                        return Op::SleepFor(end - last.now);
                    }
                }
                MessengerState::Stop(ref mut next) => return team.release(next).unwrap_or(Op::Exit),
            }
        }
    }
}

#[derive(Clone, Copy)]
enum WorkerState {
    Send,
    Wait,
    Woken,
    Begin,
    /// Asks which CPU it is on, tries that CPU's lock until it has it, and checks that it is still on that CPU.
    WhichCpu,
    Asked,
    Lock,
    StillThere,
    Work,
    Done,
}

struct Worker {
    shared: Rc<Shared>,
    place: (usize, usize),
    request: Request,
    /// Set where requests come at a fixed rate.
    pending: Option<Pending>,
    /// Requests that it has taken and not served yet.
    left: usize,
    started: Ns,
    cpu: usize,
    state: WorkerState,
}

impl Worker {
    /// Takes the requests that wait for it, where requests come at a rate.
    fn take(&mut self) -> bool {
        let Some(pending) = &self.pending else { return false };
        self.left = pending.take();
        self.left > 0
    }

    /// Tries to take the lock of its CPU.
    fn try_lock(&self) -> bool {
        let mut locked = self.shared.locked.borrow_mut();
        if locked.len() <= self.cpu {
            locked.resize(self.cpu + 1, false);
        }
        !std::mem::replace(&mut locked[self.cpu], true)
    }

    fn unlock(&self) {
        self.shared.locked.borrow_mut()[self.cpu] = false;
    }

    /// Notifies the message thread, unless requests are waiting already.
    fn send(&mut self, team: &Team, now: Ns) -> Option<Op> {
        let me = &team.workers[self.place.1];
        me.word.block();
        me.wake_time.set(now);
        if self.take() {
            me.word.blocked.set(false);
            self.state = WorkerState::Begin;
            return None;
        }
        self.state = WorkerState::Wait;
        if self.pending.is_some() {
            return None;
        }
        team.list.borrow_mut().push(self.place.1);
        team.messenger.word.post()
    }

    fn done(&mut self, now: Ns) {
        if self.request.locks {
            self.unlock();
        }
        self.shared.requests.borrow_mut().add(self.started, now);
        self.shared.served.set(self.shared.served.get() + 1);
        self.left = self.left.saturating_sub(1);
        self.state = if self.left > 0 { WorkerState::Begin } else { WorkerState::Send };
    }
}

impl Program for Worker {
    fn next(&mut self, last: Outcome) -> Op {
        let shared = self.shared.clone();
        let team = &shared.teams[self.place.0];
        let me: &Thread = &team.workers[self.place.1];
        loop {
            match self.state {
                WorkerState::Send => {
                    if shared.stopping.get() {
                        return Op::Exit;
                    }
                    if let Some(op) = self.send(team, last.now) {
                        return op;
                    }
                }
                WorkerState::Wait => {
                    self.state = WorkerState::Woken;
                    if !shared.stopping.get() {
                        return me.word.wait();
                    }
                }
                WorkerState::Woken => {
                    shared.woken(me, last.now);
                    // Where requests come at a rate, it first checks for more of its own.
                    self.state = if self.pending.is_some() { WorkerState::Send } else { WorkerState::Begin };
                }
                WorkerState::Begin => {
                    self.started = last.now;
                    self.state = if self.request.locks { WorkerState::WhichCpu } else { WorkerState::Work };
                    if self.request.sleep > Ns::ZERO {
                        return Op::SleepFor(self.request.sleep);
                    }
                }
                WorkerState::WhichCpu => {
                    self.state = WorkerState::Asked;
                    return Op::GetCpu;
                }
                WorkerState::Asked => {
                    self.cpu = last.value as usize;
                    self.state = WorkerState::Lock;
                }
                WorkerState::Lock => {
                    if !self.try_lock() {
                        return Op::RunFor(LOOK);
                    }
                    self.state = WorkerState::StillThere;
                    return Op::GetCpu;
                }
                WorkerState::StillThere if last.value as usize != self.cpu => {
                    self.unlock();
                    self.state = WorkerState::WhichCpu;
                }
                WorkerState::StillThere => self.state = WorkerState::Work,
                WorkerState::Work => {
                    self.state = WorkerState::Done;
                    return Op::Work(self.request.work);
                }
                WorkerState::Done => self.done(last.now),
            }
        }
    }
}
