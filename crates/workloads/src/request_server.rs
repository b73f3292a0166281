//! Request servers: `redis-like` has one thread that serves all connections in turn; `nginx-like` has several processes
//! that each serve their own connections.
//!
//! Clients (threads of one load generator) send a request, wait for its answer, think, and send the next. A server
//! takes the requests that have arrived one after the other, works, and answers; some of nginx's requests wait for a
//! disk. The figures are percentiles of the time from sending a request to the arrival of its answer. The load is
//! closed, so throughput is the number of clients divided by the mean of that time (plus the thinking).
//!
//! Each client has its own loopback TCP connection, without Nagle's algorithm, as both programs and the usual load
//! generators set it. A server waits for all its connections with epoll_wait(), takes a request with one receive, and
//! answers with one send. Redis takes everything that has arrived before it sends the answers (`beforeSleep()` of its
//! event loop), and its connections stay on epoll's list until they are found empty. nginx answers each request at once
//! and adds its connections with EPOLLET.
//!
//! Modelled: a client is a thread that waits for its answer in recv(). Connections exist from the start; the clients
//! close them at the end. Sizes of work are guesses: looking up a simple key, serving a small static page.

use crate::chance::{exponential, lognormal};
use crate::latency::Latencies;
use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use os::net::poll::{EpollId, Events};
use os::net::{Buffers, Receive, Socket, Transport};
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Cycles, Ns, Prng};

/// Bytes of a request, and of an answer.
const REQUEST: u32 = 64;
const ANSWER: u32 = 512;
/// Bytes that a server asks for in a receive (PROTO_IOBUF_LEN of Redis; client_header_buffer_size of nginx is less).
const BUFFER: u32 = 16 * 1024;
/// Events that a server takes in one call: Redis has room for all of its connections, nginx for its `epoll_events`.
const REDIS_EVENTS: usize = 16_384;
const NGINX_EVENTS: usize = 512;
/// Spread of a request's work: the logarithm's standard deviation, in thousandths.
const SIGMA_PERMILLE: u64 = 500;
/// What a server's work touches (guesses): the bytes it looks things up in (1 to 64 MiB: keys and values, or pages and
/// their metadata); the bytes among them that each request goes through (32 to 256 KiB: code, buffers, the connection's
/// state); and the lines of the others that it fetches in 1000 cycles (0 to 5: looking up a simple key takes some ten,
/// of a table's slot, entry, key and value, in 30,000).
const SERVER_SET: u64 = 4 << 20;
const SERVER_DATA: u64 = 64 * 1024;
const SERVER_LINES: u32 = 1;
/// Bytes of private cache that a client uses again after a switch (guess).
const CLIENT_SET: u64 = 16 * 1024;
/// How long a disk takes to answer.
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
    per_unit: 1_000,
    decimals: 2,
    build: |values: &Values| Box::new(Server::of(values, Kind::Redis, 1, 0)),
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
    per_unit: 1_000,
    decimals: 2,
    build: |values: &Values| Box::new(Server::of(values, Kind::Nginx, values.get("servers"), values.get("disk"))),
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Takes all requests that have arrived, then answers them.
    Redis,
    /// Takes and answers one request after the other.
    Nginx,
}

struct Server {
    kind: Kind,
    clients: u64,
    servers: u64,
    work: u64,
    disk_percent: u64,
    think: u64,
    runtime: Ns,
}

impl Server {
    fn of(values: &Values, kind: Kind, servers: u64, disk_percent: u64) -> Server {
        Server {
            kind,
            clients: values.get("clients"),
            servers,
            work: values.get("work"),
            disk_percent,
            think: values.get("think") * 1_000,
            runtime: Ns::from_ms(values.get("runtime") * 1_000),
        }
    }
}

#[derive(Default)]
struct Seen {
    /// Nanoseconds.
    times: RefCell<Latencies>,
    sum: Cell<Ns>,
    count: Cell<u64>,
    over: Cell<bool>,
    clients_left: Cell<u64>,
}

impl Instance for Server {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let seen = Rc::new(Seen { clients_left: Cell::new(self.clients), ..Seen::default() });
        let maxevents = match self.kind {
            Kind::Redis => REDIS_EVENTS,
            Kind::Nginx => NGINX_EVENTS,
        };
        let mut specs: Vec<TaskSpec> = Vec::new();
        let mut clients = Vec::new();
        for number in 0..self.servers {
            let (epoll, events) = os.create_epoll(maxevents);
            let mut open = 0;
            for client in (number..self.clients).step_by(self.servers as usize) {
                let (near, far) = os.connect(Transport::Tcp { nodelay: true }, Buffers::default());
                os.epoll_add(epoll, far, self.kind == Kind::Nginx);
                clients.push((client, near));
                open += 1;
            }
            let serve = Serve {
                kind: self.kind,
                epoll,
                events,
                open,
                told: VecDeque::new(),
                answers: VecDeque::new(),
                chance: os.chance("request", number),
                work: self.work,
                disk_percent: self.disk_percent,
                state: ServeState::Told,
            };
            let spec = TaskSpec::new("server", serve);
            specs.push(TaskSpec { working_set: SERVER_SET, data: SERVER_DATA, lines: SERVER_LINES, ..spec });
        }
        clients.sort_unstable();
        for (number, socket) in clients {
            let client = Client {
                seen: seen.clone(),
                socket,
                left: 0,
                chance: os.chance("think", number),
                think: self.think,
                runtime: (number == 0).then_some(self.runtime),
                end: Ns::ZERO,
                sent: Ns::ZERO,
                row: 0,
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
    /// epoll_wait() has returned.
    Waited,
    /// About to look at the next event that it returned.
    Told,
    Received,
    Work,
    Worked,
}

struct Serve {
    kind: Kind,
    epoll: EpollId,
    events: Events,
    /// Connections that are still open.
    open: u64,
    /// Connections that epoll_wait() returned as readable.
    told: VecDeque<Socket>,
    /// Connections that an answer must still be sent to.
    answers: VecDeque<Socket>,
    chance: Prng,
    work: u64,
    disk_percent: u64,
    state: ServeState,
}

impl Serve {
    fn receive(&mut self, socket: Socket) -> Op {
        self.state = ServeState::Received;
        Op::Receive { socket, bytes: BUFFER, how: Receive::default() }
    }

    fn work(&mut self) -> Op {
        self.state = ServeState::Worked;
        Op::Work(Cycles(lognormal(&mut self.chance, self.work, SIGMA_PERMILLE)))
    }

    fn answer(&mut self) -> Option<Op> {
        self.answers.pop_front().map(|socket| Op::Send { socket, bytes: ANSWER })
    }
}

impl Program for Serve {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            match self.state {
                ServeState::Waited => {
                    self.told.extend(self.events.borrow().iter());
                    self.state = ServeState::Told;
                }
                ServeState::Told => {
                    if let Some(&socket) = self.told.front() {
                        return self.receive(socket);
                    }
                    if let Some(op) = self.answer() {
                        return op;
                    }
                    if self.open == 0 {
                        return Op::Exit;
                    }
                    self.state = ServeState::Waited;
                    return Op::EpollWait { epoll: self.epoll };
                }
                // The client has closed the connection.
                ServeState::Received if last.value == 0 => {
                    let socket = self.told.pop_front().expect("it was received from");
                    self.open -= 1;
                    self.state = ServeState::Told;
                    return Op::Shutdown { socket };
                }
                ServeState::Received if self.chance.below(100) < self.disk_percent => {
                    self.state = ServeState::Work;
                    return Op::BlockIo(DISK);
                }
                ServeState::Received | ServeState::Work => return self.work(),
                ServeState::Worked => {
                    self.answers.extend(self.told.pop_front());
                    self.state = ServeState::Told;
                    if self.kind == Kind::Nginx
                        && let Some(op) = self.answer()
                    {
                        return op;
                    }
                }
            }
        }
    }
}

enum ClientState {
    Start,
    Send,
    Receive,
    Received,
    Answered,
    Report,
    Close,
    Exit,
}

struct Client {
    seen: Rc<Seen>,
    socket: Socket,
    /// Bytes of the answer that have not arrived.
    left: u32,
    chance: Prng,
    think: u64,
    /// Set for the first client only, which decides when all end.
    runtime: Option<Ns>,
    end: Ns,
    sent: Ns,
    row: usize,
    state: ClientState,
}

impl Client {
    fn answered(&mut self, now: Ns) {
        let time = now - self.sent;
        self.seen.times.borrow_mut().record(time.0);
        self.seen.sum.set(self.seen.sum.get() + time);
        self.seen.count.set(self.seen.count.get() + 1);
        if self.runtime.is_some() && now >= self.end {
            self.seen.over.set(true);
        }
    }

    /// Nanoseconds.
    fn figure(&self, row: usize) -> u64 {
        match row.checked_sub(1) {
            None => self.seen.sum.get().0 / self.seen.count.get().max(1),
            Some(at) => self.seen.times.borrow().percentile_seen(PERMILLE[at]),
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
                    // The last client to end reports for all.
                    let last = self.seen.clients_left.get() == 0;
                    self.state = if last { ClientState::Report } else { ClientState::Close };
                }
                ClientState::Send => {
                    self.sent = last.now;
                    self.left = ANSWER;
                    self.state = ClientState::Receive;
                    return Op::Send { socket: self.socket, bytes: REQUEST };
                }
                ClientState::Receive => {
                    self.state = ClientState::Received;
                    return Op::Receive { socket: self.socket, bytes: self.left, how: Receive::default() };
                }
                ClientState::Received => {
                    self.left -= last.value as u32;
                    self.state = if self.left > 0 { ClientState::Receive } else { ClientState::Answered };
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
                ClientState::Report => self.state = ClientState::Close,
                ClientState::Close => {
                    self.state = ClientState::Exit;
                    return Op::Shutdown { socket: self.socket };
                }
                ClientState::Exit => return Op::Exit,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::run;

    #[test]
    fn one_server_is_a_queue_whose_length_is_the_number_of_clients() {
        // 30 us for each request at 1 GHz, and 20 clients that do not think: each waits for 20 requests.
        let ran = run("redis-like", 4, &[("clients", 20), ("runtime", 1)]);
        let [mean, p50, p90, p99, p999] = ran.rows().concat()[..] else { panic!("five figures") };
        assert!((580_000..=620_000).contains(&mean), "{mean}");
        assert!(p50 <= p90 && p90 <= p99 && p99 <= p999, "{p50} {p90} {p99} {p999}");
    }

    #[test]
    fn a_lone_client_waits_for_its_own_request_only() {
        let ran = run("redis-like", 4, &[("clients", 1), ("runtime", 1)]);
        assert!((29_000..=31_000).contains(&ran.rows()[0][0]), "{:?}", ran.rows());
        // The client wakes the server, and the server wakes the client: 33000 times.
        assert!((60_000..=70_000).contains(&ran.wakeups()), "{}", ran.wakeups());
    }

    #[test]
    fn more_servers_serve_more() {
        let mean = |servers| {
            run("nginx-like", 8, &[("clients", 16), ("servers", servers), ("disk", 0), ("runtime", 1)]).rows()[0][0]
        };
        // 100 us for each request: 16 clients share one server, or 4 each of four.
        assert!((1_500_000..=1_700_000).contains(&mean(1)), "{}", mean(1));
        assert!((380_000..=430_000).contains(&mean(4)), "{}", mean(4));
    }

    #[test]
    fn requests_of_less_than_a_microsecond_are_counted() {
        // 400 ns for each request at 1 GHz; nothing else takes time.
        let ran = run("redis-like", 2, &[("clients", 1), ("work", 400), ("think", 100), ("runtime", 1)]);
        let [mean, p50, _, _, p999] = ran.rows().concat()[..] else { panic!("five figures") };
        assert!((390..=410).contains(&mean), "{mean}");
        // With a deviation of a half, a lognormal's median is exp(-1/8) of its mean, and its 99.9th percentile 4.1
        // times the mean.
        assert!((343..=363).contains(&p50) && (1_400..=1_900).contains(&p999), "{p50} {p999}");
    }
}
