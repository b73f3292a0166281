//! tbench 4: pairs of a client and a server process that replay a file server's traffic through TCP, one request at a time.
//!
//! A client sends a request, receives four bytes (the length of the answer), then receives the rest and lets the kernel
//! discard it. Its server receives four bytes and the rest, and sends the answer. So an operation is six system calls
//! and two wakeups. Buffers are the kernel's own, Nagle's algorithm is off, and there is no pause between operations.
//!
//! The operations have the kinds, shares and sizes of dbench 4's client load file. That file of 458342 lines is
//! condensed to 2000, in an order that is shuffled once for all runs, so that a short run has the same mix as a long
//! one. Each client begins at another line, as it would after some seconds of a real run, where all begin with the
//! first.
//!
//! Throughput is the bytes carried by reads and writes (5428 per operation), in 10^6 bytes per second since the end of
//! the warm-up, reported once an interval; MMTests takes the harmonic mean of these lines (`tbench4`). In 2016 it ran
//! 36 s of warm-up, then 180 s with a line per second, for 1, 2, 4 ... clients up to 64 for each CPU; here an interval
//! is 10 ms. Its first figure is now how long a client takes for the shortened load file of 3573 operations
//! (`tbench4-loadfile`), over 120 s after 24 s. The shortened file's operations have the same shares, so the same lines
//! stand for both. Load files that end before the warm-up does are not counted.
//!
//! A pair stays where it is until something is in its way. So after 36 s the kernel's own threads have pushed pairs to
//! where they are, and a client and its server no longer sit on the two threads of one core, where they were forked. A
//! simulated warm-up is shorter than the real one; until it is over, the kernel's threads run here more often by that
//! factor.
//!
//! Modelled: the processes forked by `tbench` and `tbench_srv`, which begin together once all exist; parsing a line of
//! the load file (1.35 us at 2.6 GHz; 1 to 2 by inference), which is nearly all that the client computes. Not modelled:
//! the cache lines that reading a load file of 26 MB evicts.

use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use os::net::{Buffers, Receive, Socket, Transport};
use os::pipe::PipeId;
use os::sync::{BarrierId, SyncOp};
use sim::engine::Sample;
use sim::noise::Haste;
use sim::program::{Op, Outcome, Program, TaskSpec};
use std::cell::Cell;
use std::rc::Rc;
use units::{Cycles, Ns, Prng};

/// Computation for each operation, by a client and by a server.
const PARSE: Cycles = Cycles(3_500);
const SERVE: Cycles = Cycles(300);
/// Bytes of private cache that one side uses again after a switch: its kernel stack, task, sockets and buffers (guess, 8 to 64 KiB).
const WORKING_SET: u64 = 16 * 1024;
/// The length of a real warm-up: a fifth of the run time that MMTests gives.
const REAL_WARMUP: Ns = Ns::from_ms(36_000);
/// Lines of the condensed load file.
const LINES: usize = 2_000;
/// One pair begins this many lines after the other: a number that has no divisor in common with the file's length.
const LINES_APART: usize = 619;
/// Lines of the shortened load file.
const SHORTENED: u32 = 3_573;

/// Series of the reports: the throughput since the warm-up, and how long each load file took.
const THROUGHPUT: u32 = 0;
const LOAD_FILE: u32 = 1;

/// What is now MMTests's first figure: how long each client took for each load file.
pub const LOAD_FILES: Workload = Workload {
    name: "tbench4-loadfile",
    summary: "the same: how long the shortened load file takes",
    operation: "loadfile",
    statistics: Summary::SkewedTime,
    unit: "ms",
    build: |values: &Values| Box::new(Tbench::of(values, LOAD_FILE)),
    ..WORKLOAD
};

pub const WORKLOAD: Workload = Workload {
    name: "tbench4",
    summary: "pairs of client and server processes that replay a file server's traffic through TCP",
    parameters: &[
        Parameter { name: "clients", default: 1, range: (1, 20_000), unit: "clients", doc: "pairs of processes" },
        Parameter {
            name: "milliseconds",
            default: 300,
            range: (1, 600_000),
            unit: "ms",
            doc: "simulated time that is measured",
        },
        Parameter {
            name: "warmup",
            default: 60,
            range: (0, 60_000),
            unit: "ms",
            doc: "simulated time before it, once all clients are there",
        },
        Parameter {
            name: "interval",
            default: 10,
            range: (1, 60_000),
            unit: "ms",
            doc: "between two lines of output; longer than the measurement: one line",
        },
    ],
    key: Some("clients"),
    operation: "Ops",
    rows: &[],
    statistics: Summary::SkewedRate,
    unit: "MB/s",
    per_unit: 1_000_000,
    decimals: 2,
    build: |values: &Values| Box::new(Tbench::of(values, THROUGHPUT)),
};

/// One line of the load file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    /// Bytes of the two messages, and the bytes of them that count as throughput.
    request: u32,
    reply: u32,
    bytes: u32,
}

/// Kinds of operation: the share in hundredths of a per cent, bytes of the request, bytes of the answer. Reads and
/// writes, whose sizes vary, follow below.
const KINDS: &[(u32, u32, u32)] = &[
    (1_729, 155, 87), // NTCreateX
    (1_567, 137, 71), // QUERY_PATH_INFORMATION
    (1_270, 47, 39),  // Close
    (606, 116, 517),  // FIND_FIRST
    (349, 125, 39),   // Unlink
    (287, 59, 71),    // QUERY_FS_INFORMATION
    (275, 59, 71),    // QUERY_FILE_INFORMATION
    (141, 71, 47),    // SET_FILE_INFORMATION
    (121, 41, 39),    // Flush
    (73, 214, 39),    // Rename
    (11, 51, 39),     // LockX and UnlockX
];

/// Sizes of reads (27.10% of the operations) and writes (8.62%): how many in a thousand have how many bytes. The large
/// sizes and the means are the file's; how the rest is distributed is not known.
const READ_SHARE: u32 = 2_710;
const READS: &[(u32, u32)] = &[(670, 4_096), (130, 61_440), (110, 2_048), (70, 8_192), (20, 16_384)];
const WRITE_SHARE: u32 = 862;
const WRITES: &[(u32, u32)] = &[(320, 65_536), (250, 4_096), (190, 1), (95, 2_048), (85, 8_192), (60, 49_152)];
/// Headers: of a read's answer and a write's request; of a read's request and a write's answer.
const HEADER: u32 = 59;
const WRITE_REPLY: u32 = 55;

/// The condensed load file: each kind as often as its share says, shuffled.
fn load_file() -> Rc<[Line]> {
    let plain = KINDS.iter().map(|&(share, request, reply)| (share * 1_000, Line { request, reply, bytes: 0 }));
    let reads =
        READS.iter().map(|&(part, bytes)| (READ_SHARE * part, Line { request: HEADER, reply: HEADER + bytes, bytes }));
    let writes = WRITES
        .iter()
        .map(|&(part, bytes)| (WRITE_SHARE * part, Line { request: HEADER + bytes, reply: WRITE_REPLY, bytes }));
    let kinds: Vec<(u32, Line)> = plain.chain(reads).chain(writes).collect();
    let total: u64 = kinds.iter().map(|kind| u64::from(kind.0)).sum();
    let mut lines = Vec::with_capacity(LINES);
    let mut shares = 0;
    for (share, line) in kinds {
        shares += u64::from(share);
        // Rounding one kind up rounds the next down.
        lines.resize((shares * LINES as u64 / total) as usize, line);
    }
    let mut chance = Prng::stream(1, "load file", 0);
    for at in (1..lines.len()).rev() {
        lines.swap(at, chance.below(at as u64 + 1) as usize);
    }
    lines.into()
}

struct Tbench {
    clients: u64,
    time: Ns,
    warmup: Ns,
    interval: Ns,
    /// Whether the warm-up is over.
    warm: Rc<Cell<bool>>,
    /// The series that the table shows.
    metric: u32,
}

impl Tbench {
    fn of(values: &Values, metric: u32) -> Tbench {
        Tbench {
            clients: values.get("clients"),
            time: Ns::from_ms(values.get("milliseconds")),
            warmup: Ns::from_ms(values.get("warmup")),
            interval: Ns::from_ms(values.get("interval")),
            warm: Rc::default(),
            metric,
        }
    }
}

impl Instance for Tbench {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let run = Rc::new(Run {
            lines: load_file(),
            barrier: os.create_barrier(self.clients as u32 + 1),
            accept: os.create_pipe(),
            bytes: Cell::new(0),
            over: Cell::new(false),
            warm: self.warm.clone(),
            load_files: self.metric == LOAD_FILE,
        });
        self.warm.set(false);
        let buffers = Buffers::default();
        let (clients, servers): (Vec<Socket>, Vec<Socket>) =
            (0..self.clients).map(|_| os.connect(Transport::Tcp { nodelay: true }, buffers)).unzip();
        let parent = Parent {
            run: run.clone(),
            sockets: clients,
            forked: 0,
            waited: 0,
            warmup: self.warmup,
            time: self.time,
            interval: self.interval,
            begun: Ns::ZERO,
            next: Ns::ZERO,
            state: ParentState::Fork,
        };
        let listener = Listener { run, sockets: servers, forked: 0, accepted: false };
        vec![task("tbench_srv", listener), task("tbench", parent)]
    }

    fn haste(&self) -> Option<Haste> {
        let short = self.warmup > Ns::ZERO && self.warmup < REAL_WARMUP;
        short.then(|| Haste { often: REAL_WARMUP.0 / self.warmup.0, over: self.warm.clone() })
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().filter(|it| it.series == self.metric).map(|it| it.value).collect()
    }
}

fn task(name: &str, program: impl Program + 'static) -> TaskSpec {
    TaskSpec { working_set: WORKING_SET, ..TaskSpec::new(name, program) }
}

/// What the processes share.
struct Run {
    lines: Rc<[Line]>,
    /// Where all clients begin together.
    barrier: BarrierId,
    /// Stands for the listening socket: it gets a byte for each client that connects.
    accept: PipeId,
    /// Bytes of throughput, over all clients.
    bytes: Cell<u64>,
    over: Cell<bool>,
    warm: Rc<Cell<bool>>,
    /// Whether clients report how long load files take.
    load_files: bool,
}

impl Run {
    /// The line at which a pair begins.
    fn begin(&self, pair: usize) -> usize {
        pair * LINES_APART % self.lines.len()
    }
}

enum ParentState {
    Fork,
    Begin,
    WarmUp,
    /// An interval has ended.
    Measure,
    Wait,
}

/// tbench: forks the clients and prints their throughput.
struct Parent {
    run: Rc<Run>,
    sockets: Vec<Socket>,
    forked: usize,
    waited: usize,
    warmup: Ns,
    time: Ns,
    interval: Ns,
    /// When the measurement began, and when the next line is due.
    begun: Ns,
    next: Ns,
    state: ParentState,
}

impl Program for Parent {
    fn next(&mut self, last: Outcome) -> Op {
        match self.state {
            ParentState::Fork => {
                if self.forked == self.sockets.len() {
                    self.state = ParentState::Begin;
                    return Op::Sync(SyncOp::Barrier(self.run.barrier));
                }
                let socket = self.sockets[self.forked];
                let line = self.run.begin(self.forked);
                self.forked += 1;
                let run = self.run.clone();
                let client = Client { run, socket, line, done: 0, began: None, step: ClientStep::Connect };
                Op::Fork(Box::new(task("tbench", client)))
            }
            ParentState::Begin => {
                self.state = ParentState::WarmUp;
                Op::SleepFor(self.warmup)
            }
            ParentState::WarmUp => {
                self.begun = last.now;
                self.next = last.now + self.interval.min(self.time);
                self.run.bytes.set(0);
                self.run.warm.set(true);
                self.state = ParentState::Measure;
                Op::SleepUntil(self.next)
            }
            ParentState::Measure if last.now < self.next => Op::SleepUntil(self.next),
            ParentState::Measure => {
                let time = last.now - self.begun;
                let rate = u128::from(self.run.bytes.get()) * 1_000_000_000 / u128::from(time.0);
                // The time ends before another line would be due.
                if self.next + self.interval > self.begun + self.time {
                    self.run.over.set(true);
                    self.state = ParentState::Wait;
                }
                self.next += self.interval;
                Op::Report { series: THROUGHPUT, value: rate as u64 }
            }
            ParentState::Wait if self.waited == self.forked => Op::Exit,
            ParentState::Wait => {
                self.waited += 1;
                Op::Wait
            }
        }
    }
}

/// tbench_srv: forks a server for each connection.
struct Listener {
    run: Rc<Run>,
    sockets: Vec<Socket>,
    forked: usize,
    accepted: bool,
}

impl Program for Listener {
    fn next(&mut self, _last: Outcome) -> Op {
        let Some(&socket) = self.sockets.get(self.forked) else { return Op::Exit };
        self.accepted = !self.accepted;
        if self.accepted {
            return Op::Read { pipe: self.run.accept, bytes: 1 };
        }
        let line = self.run.begin(self.forked);
        self.forked += 1;
        let server = Server { run: self.run.clone(), socket, line, step: ServerStep::Length };
        Op::Fork(Box::new(task("tbench_srv", server)))
    }
}

/// Bytes that tell a message's length.
const LENGTH: u32 = 4;

const ALL: Receive = Receive { wait_all: true, discard: false };

enum ClientStep {
    Connect,
    Barrier,
    Parse,
    Request,
    Length,
    Rest,
    Exit,
}

struct Client {
    run: Rc<Run>,
    socket: Socket,
    line: usize,
    /// Lines done of this load file, and when it began.
    done: u32,
    began: Option<Ns>,
    step: ClientStep,
}

impl Client {
    /// How long the load file took, if one ends at `now` and counts.
    fn load_file(&mut self, now: Ns) -> Option<Ns> {
        let began = *self.began.get_or_insert(now);
        if self.done < SHORTENED {
            return None;
        }
        (self.done, self.began) = (0, Some(now));
        (self.run.load_files && self.run.warm.get()).then(|| now - began)
    }
}

impl Program for Client {
    fn next(&mut self, last: Outcome) -> Op {
        if let ClientStep::Parse = self.step
            && let Some(took) = self.load_file(last.now)
        {
            return Op::Report { series: LOAD_FILE, value: took.0 };
        }
        let socket = self.socket;
        let line = self.run.lines[self.line];
        let (op, step) = match self.step {
            ClientStep::Connect => (Op::Write { pipe: self.run.accept, bytes: 1 }, ClientStep::Barrier),
            ClientStep::Barrier => (Op::Sync(SyncOp::Barrier(self.run.barrier)), ClientStep::Parse),
            ClientStep::Parse if self.run.over.get() => (Op::Shutdown { socket }, ClientStep::Exit),
            ClientStep::Parse => (Op::Work(PARSE), ClientStep::Request),
            ClientStep::Request => (Op::Send { socket, bytes: line.request }, ClientStep::Length),
            ClientStep::Length => (Op::Receive { socket, bytes: LENGTH, how: ALL }, ClientStep::Rest),
            ClientStep::Rest => {
                let how = Receive { discard: true, ..ALL };
                self.run.bytes.set(self.run.bytes.get() + u64::from(line.bytes));
                self.line = (self.line + 1) % self.run.lines.len();
                self.done += 1;
                (Op::Receive { socket, bytes: line.reply - LENGTH, how }, ClientStep::Parse)
            }
            ClientStep::Exit => (Op::Exit, ClientStep::Exit),
        };
        self.step = step;
        op
    }
}

enum ServerStep {
    Length,
    Rest,
    Serve,
    Reply,
}

struct Server {
    run: Rc<Run>,
    socket: Socket,
    line: usize,
    step: ServerStep,
}

impl Program for Server {
    fn next(&mut self, last: Outcome) -> Op {
        let socket = self.socket;
        let line = self.run.lines[self.line];
        let (op, step) = match self.step {
            ServerStep::Length => (Op::Receive { socket, bytes: LENGTH, how: ALL }, ServerStep::Rest),
            ServerStep::Rest if last.value == 0 => return Op::Exit,
            ServerStep::Rest => (Op::Receive { socket, bytes: line.request - LENGTH, how: ALL }, ServerStep::Serve),
            ServerStep::Serve => (Op::Work(SERVE), ServerStep::Reply),
            ServerStep::Reply => {
                self.line = (self.line + 1) % self.run.lines.len();
                (Op::Send { socket, bytes: line.reply }, ServerStep::Length)
            }
        };
        self.step = step;
        op
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::run;

    #[test]
    fn the_load_file_carries_what_the_real_one_does() {
        let lines = load_file();
        assert_eq!(lines.len(), LINES);
        let mean = |part: fn(&Line) -> u64| lines.iter().map(part).sum::<u64>() / LINES as u64;
        let bytes = mean(|line| u64::from(line.bytes));
        assert!((5_300..5_550).contains(&bytes), "5428 bytes are accounted per operation, not {bytes}");
        let there = mean(|line| u64::from(line.request));
        let back = mean(|line| u64::from(line.reply));
        assert!((2_240..2_380).contains(&there) && (3_200..3_400).contains(&back), "{there} out, {back} back");
        let small = lines.iter().filter(|line| line.request.max(line.reply) <= 256).count();
        assert!((1_150..1_330).contains(&small), "64% of the messages have up to 256 bytes: {small} of 2000");
    }

    #[test]
    fn an_operation_is_two_wakeups() {
        let ran = run("tbench4", 4, &[("clients", 2), ("milliseconds", 50), ("warmup", 1)]);
        let lines = &ran.rows()[0];
        assert_eq!(lines.len(), 5, "a line each 10 ms");
        let bytes = load_file().iter().map(|line| u64::from(line.bytes)).sum::<u64>() / LINES as u64;
        let operations = lines.last().expect("a line") / bytes * 51 / 1_000;
        let wakeups = ran.wakeups() * 100 / operations;
        assert!((190..220).contains(&wakeups), "{wakeups} wakeups for 100 of {operations} operations");
    }

    #[test]
    fn a_line_is_all_since_the_warm_up() {
        let ran = run("tbench4", 2, &[("clients", 1), ("milliseconds", 100), ("interval", 1_000)]);
        assert_eq!(ran.rows()[0].len(), 1, "one line, if the interval is longer than the run");
    }

    #[test]
    fn load_files_take_as_long_as_the_throughput_says() {
        let parameters = [("clients", 2), ("milliseconds", 200), ("interval", 1_000)];
        let rate = run("tbench4", 4, &parameters).rows()[0][0];
        let files = run("tbench4-loadfile", 4, &parameters).rows()[0].clone();
        let mean = files.iter().sum::<u64>() / files.len() as u64;
        let expected = 2 * 5_428 * u64::from(SHORTENED) * 1_000_000_000 / rate;
        assert!(mean.abs_diff(expected) < expected / 20, "{mean} and {expected} ns");
        // Two clients run for 200 ms after a warm-up of 60; only load files that end in these 200 ms count.
        let most = 2 * 260_000_000 / mean;
        assert!(
            files.len() as u64 <= most && files.len() as u64 + 4 >= 2 * 200_000_000 / mean,
            "{} files",
            files.len()
        );
    }
}
