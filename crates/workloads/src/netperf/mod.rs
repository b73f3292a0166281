//! netperf over loopback: one pair of processes exchanges a stream of messages (`netperf-tcp`, `netperf-udp`), or
//! requests and answers one at a time (`netperf-tcp-rr`, `netperf-udp-rr`).
//!
//! *Stream*: the sender calls `send(size)` in a tight loop, the receiver `recv(size)`, which may return less. For TCP
//! the throughput is what the receiver read up to the end, over the time that took. For UDP there are two figures, what
//! was sent and what was received, both over the time of sending ([`datagrams`]). Datagrams that find the receive
//! buffer full are lost: `send` less `recv`. MMTests prints that loss as a third row, `loss`, if it is more than a
//! tenth, and treats more of it as better, as with the other two. Here there is no such row: `recv` shows the same with
//! the right sign, in every arm. *Request and answer*: the client sends, the server receives and answers, the client
//! receives; that is one transaction.
//!
//! From November 2015 to December 2016 MMTests ran netperf with socket buffers of the message's size and 256 bytes, so
//! that a TCP window holds about one message (`buffers = 256`, the table of the schedstats study). Before and since it
//! has used the kernel's own buffers, which grow (`buffers = 0`). Its sizes are 64 to 16384 bytes for streams, and for
//! requests with the small buffers; later requests have one byte. It never passed `-D` (TCP_NODELAY), so Nagle's
//! algorithm is on; requests and answers one at a time are not affected by it.
//!
//! Modelled: the two processes that move the data, started by one CPU as netperf and netserver are; 100 ns of
//! computation around each call (100 to 150 by inference). Not modelled: the control connection; the repetitions by
//! which netperf seeks a confidence interval (a sample is one run of `milliseconds`, after a warm-up); the monitors
//! that MMTests runs alongside.

mod datagrams;

use crate::{Instance, Parameter, Summary, Values, Workload};
use datagrams::Run;
use os::Os;
use os::net::{Buffers, Receive, Socket, Transport};
use sim::engine::Sample;
use sim::program::{Op, Outcome, Program, TaskSpec};
use std::rc::Rc;
use units::{CpuId, CpuMask, Cycles, Ns};

/// What a sender computes around each of its calls, and what a receiver does; the receiver manages fewer buffers.
const SEND_LOOP: Cycles = Cycles(250);
const RECEIVE_LOOP: Cycles = Cycles(200);
/// Bytes of private cache that one side uses again after a switch: its kernel stack, task, sockets and the message (guess, 4 to 32 KiB).
const WORKING_SET: u64 = 8 * 1024;

macro_rules! parameters {
    ($size:expr, $warmup:expr) => {
        &[
            Parameter {
                name: "size",
                default: $size,
                range: (1, 65_507),
                unit: "bytes",
                doc: "a message; of requests, the answer as well",
            },
            Parameter {
                name: "buffers",
                default: 256,
                range: (0, 65_536),
                unit: "bytes",
                doc: "socket buffers beyond the size of a message, as MMTests set them in 2016; 0: the kernel's own, as since 2018 (in a small buffer, versions' rules for windows decide more than their schedulers)",
            },
            Parameter {
                name: "milliseconds",
                default: 300,
                range: (1, 600_000),
                unit: "ms",
                doc: "simulated time of a sample",
            },
            Parameter {
                name: "warmup",
                default: $warmup,
                range: (0, 60_000),
                unit: "ms",
                doc: "simulated time before it, not measured",
            },
            Parameter {
                name: "bind",
                default: 0,
                range: (0, 2),
                unit: "choice",
                doc: "0: anywhere; 1: both sides on CPU 0; 2: client on CPU 0, server on CPU 1",
            },
        ]
    };
}

const BASE: Workload = Workload {
    name: "",
    summary: "",
    parameters: parameters!(64, 20),
    key: Some("size"),
    operation: "Ops",
    rows: &[],
    statistics: Summary::Rate,
    unit: "Mbit/s",
    per_unit: 1_000_000,
    decimals: 2,
    build: |_| unreachable!("not a workload"),
};

pub const TCP: Workload = Workload {
    name: "netperf-tcp",
    summary: "a stream of messages through a TCP connection over loopback (TCP_STREAM)",
    // On kernels whose window is a measured share of a small buffer, 200 ms may pass before the window is first probed.
    parameters: parameters!(64, 250),
    build: |values| Box::new(Netperf::of(values, Transport::Tcp { nodelay: false }, false)),
    ..BASE
};

pub const UDP: Workload = Workload {
    name: "netperf-udp",
    summary: "a stream of datagrams over loopback, sent and received (UDP_STREAM)",
    rows: &["send", "recv"],
    build: |values| Box::new(Netperf::of(values, Transport::Udp, false)),
    ..BASE
};

pub const TCP_RR: Workload = Workload {
    name: "netperf-tcp-rr",
    summary: "requests and answers through a TCP connection over loopback (TCP_RR)",
    parameters: parameters!(1, 20),
    unit: "transactions/s",
    per_unit: 1_000,
    build: |values| Box::new(Netperf::of(values, Transport::Tcp { nodelay: false }, true)),
    ..BASE
};

pub const UDP_RR: Workload = Workload {
    name: "netperf-udp-rr",
    summary: "requests and answers in datagrams over loopback (UDP_RR)",
    parameters: parameters!(1, 20),
    unit: "transactions/s",
    per_unit: 1_000,
    build: |values| Box::new(Netperf::of(values, Transport::Udp, true)),
    ..BASE
};

struct Netperf {
    transport: Transport,
    answers: bool,
    size: u32,
    buffers: u64,
    warmup: Ns,
    time: Ns,
    bind: u64,
}

impl Netperf {
    fn of(values: &Values, transport: Transport, answers: bool) -> Netperf {
        Netperf {
            transport,
            answers,
            size: values.get("size") as u32,
            buffers: values.get("buffers"),
            warmup: Ns::from_ms(values.get("warmup")),
            time: Ns::from_ms(values.get("milliseconds")),
            bind: values.get("bind"),
        }
    }

    fn buffers(&self) -> Buffers {
        let asked = (self.buffers > 0).then_some(self.size + self.buffers as u32);
        Buffers { send: asked, receive: asked }
    }

    fn cpu(&self, of_server: bool) -> Option<CpuId> {
        match (self.bind, of_server) {
            (0, _) => None,
            (2, true) => Some(CpuId(1)),
            _ => Some(CpuId(0)),
        }
    }
}

impl Instance for Netperf {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let (client, server) = os.connect(self.transport, self.buffers());
        let side = |socket, of_server| Side {
            socket,
            size: self.size,
            datagrams: self.transport == Transport::Udp,
            window: Window {
                warmup: self.warmup,
                time: self.time,
                begun: None,
                since: None,
                until: Ns::ZERO,
                count: 0,
            },
            cpu: self.cpu(of_server),
            work: if of_server { RECEIVE_LOOP } else { SEND_LOOP },
            computed: false,
            waiting: false,
            left: 0,
        };
        let task = |name, program: Box<dyn Program>| TaskSpec {
            working_set: WORKING_SET,
            program,
            ..TaskSpec::new(name, Nobody)
        };
        let (client, server) = (side(client, false), side(server, true));
        let (server, client): (Box<dyn Program>, Box<dyn Program>) = match (self.answers, self.transport) {
            (true, _) => (Box::new(Server { side: server, answering: false }), Box::new(Client::of(client))),
            (false, Transport::Udp) => {
                let run = Rc::new(Run::default());
                let receiver = datagrams::Receiver::new(server, run.clone());
                (Box::new(receiver), Box::new(datagrams::Sender::new(client, run)))
            }
            (false, _) => (Box::new(Receiver { side: server, over: false }), Box::new(Sender::of(client))),
        };
        vec![task("netserver", server), task("netperf", client)]
    }

    fn last_cpu(&self) -> Option<CpuId> {
        self.cpu(true)
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        let of = if self.transport == Transport::Udp && !self.answers { Some(RECEIVED) } else { None };
        reported.iter().filter(|it| of.is_none_or(|of| it.series == of)).map(|it| it.value).collect()
    }

    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        if self.transport != Transport::Udp || self.answers {
            return vec![self.samples(reported)];
        }
        let of = |series| -> Vec<u64> { reported.iter().filter(|it| it.series == series).map(|it| it.value).collect() };
        vec![of(SENT), of(RECEIVED)]
    }
}

/// Series of samples: bits per second, or thousandths of transactions.
const SENT: u32 = 0;
const RECEIVED: u32 = 1;
const TRANSACTIONS: u32 = 2;

/// A placeholder for a program that is not set yet.
struct Nobody;

impl Program for Nobody {
    fn next(&mut self, _last: Outcome) -> Op {
        Op::Exit
    }
}

/// What is counted, and when.
struct Window {
    warmup: Ns,
    time: Ns,
    /// When the program began, when counting began, and the time of the last event.
    begun: Option<Ns>,
    since: Option<Ns>,
    until: Ns,
    count: u64,
}

impl Window {
    /// Counts an `amount` that is complete at `now`.
    fn count(&mut self, now: Ns, amount: u64) {
        let begun = *self.begun.get_or_insert(now);
        if self.since.is_some() {
            self.count += amount;
            self.until = now;
        } else if now >= begun + self.warmup {
            self.since = Some(now);
            self.until = now;
        }
    }

    fn is_over(&mut self, now: Ns) -> bool {
        let begun = *self.begun.get_or_insert(now);
        now >= begun + self.warmup + self.time
    }

    /// `scale` times what was counted, per second.
    fn rate(&self, scale: u64) -> u64 {
        let time = self.since.map_or(0, |since| self.until.0 - since.0);
        (u128::from(self.count) * u128::from(scale) * 1_000_000_000 / u128::from(time.max(1))) as u64
    }
}

/// One of the two processes.
struct Side {
    socket: Socket,
    size: u32,
    datagrams: bool,
    window: Window,
    cpu: Option<CpuId>,
    /// What it computes around each call.
    work: Cycles,
    computed: bool,
    /// The last operation was a receive.
    waiting: bool,
    /// Bytes missing of a message.
    left: u32,
}

impl Side {
    /// netperf -T, then the computation around each call.
    fn before(&mut self) -> Option<Op> {
        if let Some(cpu) = self.cpu.take() {
            return Some(Op::SetAffinity(CpuMask::single(cpu)));
        }
        self.computed = !self.computed;
        self.computed.then_some(Op::Work(self.work))
    }

    fn send(&self) -> Op {
        Op::Send { socket: self.socket, bytes: self.size }
    }

    fn receive(&mut self, bytes: u32) -> Op {
        self.waiting = true;
        Op::Receive { socket: self.socket, bytes, how: Receive::default() }
    }

    /// Ends what this side sends; with datagrams this is an empty one.
    fn close(&self) -> Op {
        match self.datagrams {
            true => Op::Send { socket: self.socket, bytes: 0 },
            false => Op::Shutdown { socket: self.socket },
        }
    }
}

/// What a side does after its last message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    Report,
    /// Lets the receiver drain its buffer, so that an empty datagram has room.
    Drain,
    Close,
    Exit,
}

impl Closing {
    /// The next operation; updates the state. `series` and `value` are what it reports.
    fn step(&mut self, side: &Side, series: u32, scale: u64) -> Op {
        let (op, next) = match self {
            Closing::No | Closing::Report => (Op::Report { series, value: side.window.rate(scale) }, Closing::Drain),
            Closing::Drain => (Op::SleepFor(Ns::from_ms(1)), Closing::Close),
            Closing::Close => (side.close(), Closing::Exit),
            Closing::Exit => (Op::Exit, Closing::Exit),
        };
        *self = next;
        op
    }
}

struct Sender {
    side: Side,
    sent: bool,
    over: bool,
}

impl Sender {
    fn of(side: Side) -> Sender {
        Sender { side, sent: false, over: false }
    }
}

impl Program for Sender {
    fn next(&mut self, last: Outcome) -> Op {
        if self.over {
            return Op::Exit;
        }
        if std::mem::take(&mut self.sent) && self.side.window.is_over(last.now) {
            self.over = true;
            return self.side.close();
        }
        self.side.before().unwrap_or_else(|| {
            self.sent = true;
            self.side.send()
        })
    }
}

struct Receiver {
    side: Side,
    /// The sender has closed.
    over: bool,
}

impl Program for Receiver {
    fn next(&mut self, last: Outcome) -> Op {
        let side = &mut self.side;
        if std::mem::take(&mut side.waiting) {
            if last.value == 0 {
                self.over = true;
                return Op::Report { series: RECEIVED, value: side.window.rate(8) };
            }
            side.window.count(last.now, last.value);
        }
        if self.over {
            return Op::Exit;
        }
        side.before().unwrap_or_else(|| side.receive(side.size))
    }
}

struct Client {
    side: Side,
    closing: Closing,
}

impl Client {
    fn of(side: Side) -> Client {
        Client { side, closing: Closing::No }
    }
}

impl Program for Client {
    fn next(&mut self, last: Outcome) -> Op {
        let side = &mut self.side;
        if std::mem::take(&mut side.waiting) {
            side.left -= last.value as u32;
            if side.left == 0 {
                side.window.count(last.now, 1);
                if side.window.is_over(last.now) {
                    self.closing = Closing::Report;
                }
            }
        }
        if self.closing != Closing::No {
            return self.closing.step(side, TRANSACTIONS, 1_000);
        }
        if side.left > 0 {
            return side.receive(side.left);
        }
        side.before().unwrap_or_else(|| {
            side.left = side.size;
            side.send()
        })
    }
}

struct Server {
    side: Side,
    answering: bool,
}

impl Program for Server {
    fn next(&mut self, last: Outcome) -> Op {
        let side = &mut self.side;
        if std::mem::take(&mut side.waiting) {
            if last.value == 0 {
                return Op::Exit;
            }
            side.left -= last.value as u32;
            self.answering = side.left == 0;
        }
        if self.answering {
            return side.before().unwrap_or_else(|| {
                self.answering = false;
                side.send()
            });
        }
        if side.left == 0 {
            side.left = side.size;
        }
        if let Some(cpu) = side.cpu.take() {
            return Op::SetAffinity(CpuMask::single(cpu));
        }
        side.receive(side.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{boot_with_net, instance, play, run};
    use machine::profile::Frame;
    use os::net::NetRules;
    use os::paths;
    use units::Ps;

    const SHORT: &[(&str, u64)] = &[("milliseconds", 5), ("warmup", 1)];

    fn with(more: &[(&'static str, u64)]) -> Vec<(&'static str, u64)> {
        SHORT.iter().chain(more).copied().collect()
    }

    #[test]
    fn a_transaction_is_two_wakeups() {
        for name in ["netperf-tcp-rr", "netperf-udp-rr"] {
            let ran = run(name, 2, &with(&[("size", 100)]));
            // The whole run takes 6 ms, of which 5 are measured.
            let transactions = ran.rows()[0][0] / 1_000 * 6 / 1_000;
            let wakeups = ran.wakeups() * 100 / transactions;
            assert!(transactions > 1_000 && (190..210).contains(&wakeups), "{name}: {wakeups}% of {transactions}");
        }
    }

    #[test]
    fn messages_of_one_window_put_the_sender_to_sleep() {
        let ran = run("netperf-tcp", 2, &with(&[("size", 4_096)]));
        let messages = ran.rows()[0][0] / 8 / 4_096 * 6 / 1_000;
        let wakeups = ran.wakeups() * 100 / messages;
        // Measured on a running kernel: for each message of 1 KiB and more the sender sleeps 0.8 to 0.97 times; the
        // receiver's sleeps are extra.
        assert!((80..320).contains(&wakeups), "{wakeups} wakeups per 100 messages");
    }

    #[test]
    fn a_receiver_that_keeps_up_gets_every_datagram() {
        let ran = run("netperf-udp", 2, &with(&[("size", 1024)]));
        let [sent, received] = [ran.rows()[0][0], ran.rows()[1][0]];
        assert_eq!(received, sent);
    }

    #[test]
    fn what_is_received_was_sent_and_both_rates_are_over_one_time() {
        // On one CPU the sender fills the buffer and goes on; on two, the receiver may still have something to read
        // when the warm-up ends. A small buffer is full when a run ends.
        let mut lossy = 0;
        for (cpus, size, buffers, warmup) in
            [(1, 1_024, 256, 1), (1, 64, 0, 3), (2, 64, 256, 0), (2, 16_384, 0, 2), (1, 16_384, 256, 2)]
        {
            let more = [("size", size), ("buffers", buffers), ("milliseconds", 20), ("warmup", warmup)];
            let ran = run("netperf-udp", cpus, &more);
            let rows = ran.rows();
            let [sent, received] = [rows[0][0], rows[1][0]];
            assert!(0 < received && received <= sent, "{cpus} {size}: {received} of {sent}");
            lossy += u64::from(received < sent * 9 / 10);
            let mut drops = 0;
            (0..2).for_each(|socket| drops += ran.sim.os.udp_drops(Socket::Udp(socket)));
            assert!(drops > 0 || received == sent, "{cpus} {size}: {received} of {sent}, and none was dropped");
        }
        assert!(lossy > 0);
    }

    #[test]
    fn rates_count_from_the_end_of_the_warm_up() {
        let mut window =
            Window { warmup: Ns(100), time: Ns(1_000), begun: None, since: None, until: Ns::ZERO, count: 0 };
        window.count(Ns(50), 7);
        window.count(Ns(150), 7);
        assert!(!window.is_over(Ns(1_000)));
        window.count(Ns(650), 10);
        window.count(Ns(1_150), 20);
        assert!(window.is_over(Ns(1_150)));
        // 30 bytes in a microsecond.
        assert_eq!(window.rate(8), 240_000_000);
    }

    /// Percentage of a segment's own work that is done in its reader's system call; the sender's softirq does the rest.
    fn in_the_readers_call(net: NetRules) -> u64 {
        let mut sim = boot_with_net::<true>(2, net);
        sim.sched.arch.start_profile(Ps::ZERO);
        let ran = play(instance("netperf-tcp-rr", SHORT), sim);
        let has = |frames: &[Frame], path| frames.contains(&Frame::Kernel(path));
        let (mut all, mut of_reader) = (0, 0);
        for (frames, time) in ran.sim.sched.arch.profile().expect("it was started").stacks() {
            if has(&frames, paths::TCP_RCV_ESTABLISHED) {
                all += time.0;
                of_reader += if has(&frames, paths::DO_SOFTIRQ) { 0 } else { time.0 };
            }
        }
        of_reader * 100 / all
    }

    #[test]
    fn until_v4_13_who_sleeps_in_recv_processes_the_segment_itself() {
        let (before, after) = (in_the_readers_call(NetRules::V4_5), in_the_readers_call(NetRules::V4_15));
        assert!(before > 90 && after < 10, "{before}% and {after}%");
    }
}
