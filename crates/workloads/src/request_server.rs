//! Request servers: `redis-like`, one thread that serves all connections in turn, and `nginx-like`, several processes that each serve
//! their own.
//!
//! Clients (threads of one load generator) send a request, wait for its answer, think, and send the next. A server takes one request
//! after the other from what has arrived, works, and answers; some of nginx's requests wait for a disk. The figures are
//! percentiles of the time from a request's sending to its answer's arrival: the load is closed, so throughput is the number of
//! clients over the mean of it (and the thinking).
//!
//! Modelled: requests and answers travel through pipes, with a pipe's system calls and sync wakeups instead of a socket's; a
//! server that polls many connections at a time takes them from one pipe, so that one read stands for `epoll_wait()` and a read. Sizes of
//! work are guesses: a simple key's look-up, a small static page.

use crate::chance::{exponential, lognormal};
use crate::latency::Latencies;
use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use os::pipe::PipeId;
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Cycles, Ns, Prng};

/// Bytes of a request, and of an answer.
const REQUEST: u64 = 64;
const ANSWER: u64 = 512;
/// How a request's work spreads.
const SIGMA_PERMILLE: u64 = 500;
/// Bytes of private cache that a server, or a client, uses again after a switch (guess).
const SERVER_SET: u64 = 256 * 1024;
const CLIENT_SET: u64 = 16 * 1024;
/// What a disk takes to answer.
const DISK: Ns = Ns(200_000);
/// Thousandths of the percentiles, in the order of the rows; the mean comes first.
const PERMILLE: [u64; 4] = [500, 900, 990, 999];

const CLIENTS: Parameter =
    Parameter { name: "clients", default: 50, range: (1, 16_384), unit: "clients", doc: "that wait for answers" };
const THINK: Parameter =
    Parameter { name: "think", default: 0, range: (0, 10_000_000), unit: "us", doc: "mean pause of a client" };
const RUNTIME: Parameter =
    Parameter { name: "runtime", default: 5, range: (1, 3_600), unit: "s", doc: "how long it measures" };

const ROWS: &[&str] = &["mean", "50.0th", "90.0th", "99.0th", "99.9th"];

pub const REDIS: Workload = Workload {
    name: "redis-like",
    summary: "one thread serves small requests of many clients",
    parameters: &[
        CLIENTS,
        Parameter {
            name: "work",
            default: 30_000,
            range: (1, 1_000_000_000),
            unit: "cycles",
            doc: "mean of a request",
        },
        THINK,
        RUNTIME,
    ],
    key: Some("clients"),
    operation: "Lat",
    rows: ROWS,
    statistics: Summary::TimeFigure("Lat"),
    unit: "us",
    per_unit: 1,
    decimals: 2,
    build: |values: &Values| Box::new(Server::of(values, 1, 0)),
};

pub const NGINX: Workload = Workload {
    name: "nginx-like",
    summary: "worker processes serve small pages to many clients",
    parameters: &[
        CLIENTS,
        Parameter { name: "servers", default: 4, range: (1, 4_096), unit: "processes", doc: "that serve" },
        Parameter {
            name: "work",
            default: 100_000,
            range: (1, 1_000_000_000),
            unit: "cycles",
            doc: "mean of a request",
        },
        Parameter { name: "disk", default: 2, range: (0, 100), unit: "%", doc: "requests that wait for a disk" },
        THINK,
        RUNTIME,
    ],
    key: Some("clients"),
    operation: "Lat",
    rows: ROWS,
    statistics: Summary::TimeFigure("Lat"),
    unit: "us",
    per_unit: 1,
    decimals: 2,
    build: |values: &Values| Box::new(Server::of(values, values.get("servers"), values.get("disk"))),
};

struct Server {
    clients: u64,
    servers: u64,
    work: u64,
    disk_percent: u64,
    think: u64,
    runtime: Ns,
}

impl Server {
    fn of(values: &Values, servers: u64, disk_percent: u64) -> Server {
        Server {
            clients: values.get("clients"),
            servers,
            work: values.get("work"),
            disk_percent,
            think: values.get("think") * 1_000,
            runtime: Ns::from_ms(values.get("runtime") * 1_000),
        }
    }
}

/// Requests on their way to one server: who sent them, in order. The bytes travel through the pipe.
struct Listener {
    pipe: PipeId,
    arrived: RefCell<VecDeque<PipeId>>,
}

#[derive(Default)]
struct Seen {
    times: RefCell<Latencies>,
    sum_us: Cell<u64>,
    count: Cell<u64>,
    over: Cell<bool>,
    clients_left: Cell<u64>,
}

impl Instance for Server {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let seen = Rc::new(Seen { clients_left: Cell::new(self.clients), ..Seen::default() });
        let mut listener = |_| Rc::new(Listener { pipe: os.create_pipe(), arrived: RefCell::default() });
        let listeners: Vec<Rc<Listener>> = (0..self.servers).map(&mut listener).collect();
        let mut specs: Vec<TaskSpec> = Vec::new();
        for (number, listener) in (0..).zip(&listeners) {
            let serve = Serve {
                listener: listener.clone(),
                chance: os.chance("request", number),
                work: self.work,
                disk_percent: self.disk_percent,
                state: ServeState::Read,
            };
            specs.push(TaskSpec { working_set: SERVER_SET, ..TaskSpec::new("server", serve) });
        }
        for number in 0..self.clients {
            let client = Client {
                seen: seen.clone(),
                listener: listeners[(number % self.servers) as usize].clone(),
                answers: os.create_pipe(),
                chance: os.chance("think", number),
                think: self.think,
                runtime: (number == 0).then_some(self.runtime),
                end: Ns::ZERO,
                sent: Ns::ZERO,
                row: 0,
                goodbyes: listeners.clone(),
                state: ClientState::Start,
            };
            let memory = AddressSpace::Joined(0);
            specs.push(TaskSpec { working_set: CLIENT_SET, memory, ..TaskSpec::new("client", client) });
        }
        specs
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().map(|sample| sample.value).collect()
    }

    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        self.samples(reported).into_iter().map(|figure| vec![figure]).collect()
    }
}

enum ServeState {
    Read,
    Disk,
    Work,
    Answer,
}

struct Serve {
    listener: Rc<Listener>,
    chance: Prng,
    work: u64,
    disk_percent: u64,
    state: ServeState,
}

impl Program for Serve {
    fn next(&mut self, _last: Outcome) -> Op {
        match self.state {
            ServeState::Read => {
                self.state = ServeState::Disk;
                Op::Read { pipe: self.listener.pipe, bytes: REQUEST }
            }
            // What comes without a sender is the last client's goodbye.
            ServeState::Disk if self.listener.arrived.borrow().is_empty() => Op::Exit,
            ServeState::Disk if self.chance.below(100) < self.disk_percent => {
                self.state = ServeState::Work;
                Op::BlockIo(DISK)
            }
            ServeState::Disk | ServeState::Work => {
                self.state = ServeState::Answer;
                Op::Work(Cycles(lognormal(&mut self.chance, self.work, SIGMA_PERMILLE)))
            }
            ServeState::Answer => {
                self.state = ServeState::Read;
                let to = self.listener.arrived.borrow_mut().pop_front().expect("it was there before the work");
                Op::Write { pipe: to, bytes: ANSWER }
            }
        }
    }
}

enum ClientState {
    Start,
    Send,
    Read,
    Answered,
    Report,
    Goodbye,
}

struct Client {
    seen: Rc<Seen>,
    listener: Rc<Listener>,
    answers: PipeId,
    chance: Prng,
    think: u64,
    /// The first client decides when all end.
    runtime: Option<Ns>,
    end: Ns,
    sent: Ns,
    row: usize,
    /// Servers that the last client still has to tell.
    goodbyes: Vec<Rc<Listener>>,
    state: ClientState,
}

impl Client {
    fn answered(&mut self, now: Ns) {
        let us = (now.0 - self.sent.0) / 1_000;
        self.seen.times.borrow_mut().add(self.sent, now);
        self.seen.sum_us.set(self.seen.sum_us.get() + us);
        self.seen.count.set(self.seen.count.get() + 1);
        if self.runtime.is_some() && now >= self.end {
            self.seen.over.set(true);
        }
    }

    fn figure(&self, row: usize) -> u64 {
        match row.checked_sub(1) {
            None => self.seen.sum_us.get() / self.seen.count.get().max(1),
            Some(at) => self.seen.times.borrow().percentile(PERMILLE[at]),
        }
    }
}

impl Program for Client {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            match self.state {
                ClientState::Start => {
                    self.end = last.now + self.runtime.unwrap_or(Ns::ZERO);
                    self.state = ClientState::Send;
                }
                ClientState::Send if self.seen.over.get() => {
                    self.seen.clients_left.set(self.seen.clients_left.get() - 1);
                    // The last to end reports for all.
                    self.state =
                        if self.seen.clients_left.get() == 0 { ClientState::Report } else { ClientState::Goodbye };
                    if self.seen.clients_left.get() > 0 {
                        self.goodbyes.clear();
                    }
                }
                ClientState::Send => {
                    self.sent = last.now;
                    self.listener.arrived.borrow_mut().push_back(self.answers);
                    self.state = ClientState::Read;
                    return Op::Write { pipe: self.listener.pipe, bytes: REQUEST };
                }
                ClientState::Read => {
                    self.state = ClientState::Answered;
                    return Op::Read { pipe: self.answers, bytes: ANSWER };
                }
                ClientState::Answered => {
                    self.answered(last.now);
                    self.state = ClientState::Send;
                    if self.think > 0 && !self.seen.over.get() {
                        return Op::SleepFor(Ns(exponential(&mut self.chance, self.think)));
                    }
                }
                ClientState::Report if self.row < ROWS.len() => {
                    self.row += 1;
                    return Op::Report { series: self.row as u32 - 1, value: self.figure(self.row - 1) };
                }
                ClientState::Report => self.state = ClientState::Goodbye,
                ClientState::Goodbye => match self.goodbyes.pop() {
                    Some(listener) => return Op::Write { pipe: listener.pipe, bytes: REQUEST },
                    None => return Op::Exit,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::run;

    #[test]
    fn one_server_is_a_queue_whose_length_is_the_number_of_clients() {
        // 30 us a request at 1 GHz, and 20 clients who do not think: each waits for 20 requests.
        let ran = run("redis-like", 4, &[("clients", 20), ("runtime", 1)]);
        let [mean, p50, p90, p99, p999] = ran.rows().concat()[..] else { panic!("five figures") };
        assert!((580..=620).contains(&mean), "{mean}");
        assert!(p50 <= p90 && p90 <= p99 && p99 <= p999, "{p50} {p90} {p99} {p999}");
    }

    #[test]
    fn a_lone_client_waits_for_its_own_request_only() {
        let ran = run("redis-like", 4, &[("clients", 1), ("runtime", 1)]);
        assert!((29..=31).contains(&ran.rows()[0][0]), "{:?}", ran.rows());
        // It wakes the server, and the server wakes it: 33000 times.
        assert!((60_000..=70_000).contains(&ran.wakeups()), "{}", ran.wakeups());
    }

    #[test]
    fn more_servers_serve_more() {
        let mean = |servers| {
            run("nginx-like", 8, &[("clients", 16), ("servers", servers), ("disk", 0), ("runtime", 1)]).rows()[0][0]
        };
        // 100 us: 16 clients on one, or 4 on each.
        assert!((1_500..=1_700).contains(&mean(1)), "{}", mean(1));
        assert!((380..=430).contains(&mean(4)), "{}", mean(4));
    }
}
