//! schbench of 2016 to 2018: workers spin for a while, notify their message thread, and measure how long its answer
//! takes to wake them.
//!
//! A worker looks at the clock until `cputime` has passed, whether it ran or not; then it puts itself on its message
//! thread's list, posts that thread, and waits. A message thread takes one time stamp for the whole list, writes it
//! into each listed worker, and posts the workers, the latest to arrive first. Then it waits to be posted itself, and
//! sleeps for `sleeptime` and up to a quarter more, so that messages gather. A wakeup's latency therefore includes the
//! time that the waker needs to reach later workers, and whatever preempts the waker on the way. After `runtime`
//! seconds the percentiles over all workers are printed.
//!
//! Structure and defaults are those of schbench of 2016-05-24 (3d16b23). MMTests of January 2018 runs it with one
//! message thread for each NUMA node, for 30 seconds.

use super::{Shared, Team, Thread, thread};
use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use sim::engine::Sample;
use sim::program::{Op, Outcome, Program, TaskSpec};
use std::rc::Rc;
use units::{Ns, Prng};

/// Bytes of private cache that a thread uses again after a switch: stack, task and the lists' lines (guess, 2 to 8 KiB).
const WORKING_SET: u64 = 4 * 1024;
/// Thousandths of the percentiles, in the order of the rows.
const PERMILLE: [u64; 7] = [500, 750, 900, 950, 990, 995, 999];

pub const WORKLOAD: Workload = Workload {
    name: "schbench-2016",
    summary: "latencies of wakeups by message threads, as schbench measured them from 2016 to 2018",
    parameters: &[
        Parameter { name: "messengers", default: 2, range: (1, 1_024), unit: "threads", doc: "message threads" },
        Parameter { name: "workers", default: 16, range: (1, 8_192), unit: "threads", doc: "workers of each" },
        Parameter { name: "runtime", default: 30, range: (1, 3_600), unit: "s", doc: "how long it measures" },
        Parameter {
            name: "cputime",
            default: 30_000,
            range: (0, 10_000_000),
            unit: "us",
            doc: "spun between messages",
        },
        Parameter {
            name: "sleeptime",
            default: 30_000,
            range: (0, 10_000_000),
            unit: "us",
            doc: "slept by message threads before they answer, and up to a quarter more",
        },
    ],
    key: Some("workers"),
    operation: "Lat",
    rows: &[
        "50.00th-qrtle",
        "75.00th-qrtle",
        "90.00th-qrtle",
        "95.00th-qrtle",
        "99.00th-qrtle",
        "99.50th-qrtle",
        "99.90th-qrtle",
    ],
    statistics: Summary::TimeFigure("Lat"),
    unit: "us",
    per_unit: 1,
    decimals: 2,
    build: |values: &Values| {
        Box::new(Schbench {
            messengers: values.get("messengers"),
            workers: values.get("workers"),
            runtime: Ns::from_ms(values.get("runtime") * 1_000),
            spin: Ns(values.get("cputime") * 1_000),
            sleep: Ns(values.get("sleeptime") * 1_000),
        })
    },
};

struct Schbench {
    messengers: u64,
    workers: u64,
    runtime: Ns,
    spin: Ns,
    sleep: Ns,
}

impl Instance for Schbench {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let shared = Shared::new(os, self.messengers, self.workers);
        let chance = (0..self.messengers).map(|number| os.chance("schbench", number)).collect();
        let times = (self.runtime, self.spin, self.sleep);
        let main = Main { shared, chance, times, forked: 0, posted: 0, state: MainState::Fork };
        vec![TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("schbench", main) }]
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().map(|sample| sample.value).collect()
    }

    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        self.samples(reported).into_iter().map(|figure| vec![figure]).collect()
    }
}

enum MainState {
    Fork,
    Sleep,
    Stop,
    Join,
    Report,
}

/// The process's first thread.
struct Main {
    shared: Rc<Shared>,
    chance: Vec<Prng>,
    /// The length of the run, of a worker's spin, and of a message thread's sleep.
    times: (Ns, Ns, Ns),
    forked: usize,
    posted: usize,
    state: MainState,
}

impl Program for Main {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            match self.state {
                MainState::Fork => {
                    let Some(chance) = self.chance.get(self.forked) else {
                        self.state = MainState::Sleep;
                        continue;
                    };
                    let (_, spin, sleep) = self.times;
                    let messenger = Messenger {
                        shared: self.shared.clone(),
                        team: self.forked,
                        chance: chance.clone(),
                        sleep,
                        spin,
                        forked: 0,
                        answering: Vec::new(),
                        state: MessengerState::Fork,
                    };
                    self.forked += 1;
                    return thread("schbench", WORKING_SET, messenger);
                }
                MainState::Sleep => {
                    self.state = MainState::Stop;
                    return Op::SleepFor(self.times.0);
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
                MainState::Join => {
                    self.state = MainState::Report;
                    self.posted = 0;
                }
                MainState::Report => {
                    let Some(&permille) = PERMILLE.get(self.posted) else { return Op::Exit };
                    self.posted += 1;
                    let value = self.shared.wakeups.borrow().percentile(permille);
                    return Op::Report { series: self.posted as u32 - 1, value };
                }
            }
        }
    }
}

enum MessengerState {
    Fork,
    Splice,
    Answer,
    Waited,
    /// Posts every thread that waits once more.
    Stop(usize),
}

struct Messenger {
    shared: Rc<Shared>,
    team: usize,
    chance: Prng,
    sleep: Ns,
    spin: Ns,
    forked: usize,
    /// Workers to answer, the next one last.
    answering: Vec<usize>,
    state: MessengerState,
}

impl Program for Messenger {
    fn next(&mut self, last: Outcome) -> Op {
        let shared = self.shared.clone();
        let team: &Team = &shared.teams[self.team];
        loop {
            match self.state {
                MessengerState::Fork if self.forked == team.workers.len() => self.state = MessengerState::Splice,
                MessengerState::Fork => {
                    let worker = Worker {
                        shared: self.shared.clone(),
                        place: (self.team, self.forked),
                        spin: self.spin,
                        state: WorkerState::Spin,
                    };
                    self.forked += 1;
                    return thread("schbench", WORKING_SET, worker);
                }
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
                        self.state = MessengerState::Waited;
                        return team.messenger.word.wait();
                    }
                }
                MessengerState::Waited => {
                    self.state = MessengerState::Splice;
                    if self.sleep > Ns::ZERO {
                        let jitter = self.chance.below((self.sleep.0 / 4_000).max(1)) * 1_000;
                        return Op::SleepFor(self.sleep + Ns(jitter));
                    }
                }
                MessengerState::Stop(ref mut next) => return team.release(next).unwrap_or(Op::Exit),
            }
        }
    }
}

enum WorkerState {
    Spin,
    Send,
    Wait,
    Woken,
}

struct Worker {
    shared: Rc<Shared>,
    /// Its team, and its number in the team.
    place: (usize, usize),
    spin: Ns,
    state: WorkerState,
}

impl Program for Worker {
    fn next(&mut self, last: Outcome) -> Op {
        let shared = self.shared.clone();
        let team = &shared.teams[self.place.0];
        let me: &Thread = &team.workers[self.place.1];
        loop {
            match self.state {
                WorkerState::Spin => {
                    if shared.stopping.get() {
                        return Op::Exit;
                    }
                    self.state = WorkerState::Send;
                    return Op::SpinUntil(last.now + self.spin);
                }
                WorkerState::Send => {
                    me.word.block();
                    me.wake_time.set(last.now);
                    team.list.borrow_mut().push(self.place.1);
                    self.state = WorkerState::Wait;
                    if let Some(op) = team.messenger.word.post() {
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
                    self.state = WorkerState::Spin;
                }
            }
        }
    }
}
