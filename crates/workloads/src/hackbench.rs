//! hackbench over pipes or sockets: groups of 20 senders and 20 receivers; every sender writes to every receiver of its group.
//!
//! Each receiver has its own pipe (`hackbench-pipes`) or pair of AF_UNIX stream sockets (`hackbench-sockets`). A sender
//! writes one 100-byte message to each of the 20 receivers in turn, and does that `loops` times. Children announce
//! themselves on a shared ready channel and poll a shared start channel; both are pipes or socket pairs like the rest
//! (`fdpair()` of both programs makes all of them). The parent reads all announcements, takes the time, writes one byte
//! to the start channel, which wakes every child at once, waits for all children to exit, and takes the time again. So
//! the figure includes a mass wakeup, the messages, and 40 exits per group.
//!
//! The 20 senders to one receiver share the socket they write to, and therefore its limit on unread messages: 277 of
//! them fill it. A sender that finds it full sleeps until three quarters of it are free.
//!
//! `perf bench sched messaging` (`perf-bench-messaging`) is the same program. It uses sockets unless `pipe=1` is given,
//! and by default 10 groups and 100 loops.
//!
//! Modelled: processes or threads; the forks in the program's order; no computation between system calls (20 to 50 ns
//! in reality, which the price of a system call contains). The program rounds the printed seconds to milliseconds; here
//! they are not rounded, so that small effects show with few iterations. With `messages=M` a run of more than M million
//! messages is shortened: it sends fewer loops, and the time of the omitted ones is added at the pace of the run's
//! second half without its last eighth. The beginning and the end are simulated in full, and hardly take longer in a
//! full run.

use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use os::net::{Buffers, Receive, Socket, Transport};
use os::pipe::PipeId;
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use std::cell::Cell;
use std::rc::Rc;
use units::Ns;

/// Senders, and receivers, of a group.
const FDS: u64 = 20;
/// Bytes of a message.
const MESSAGE: u64 = 100;
/// Bytes of private cache that one task uses again after a switch: its kernel stack, task, buffers and pipe objects (guess, 3 to 12
/// KiB).
const WORKING_SET: u64 = 6 * 1024;

pub const SOCKETS: Workload = Workload {
    name: "hackbench-sockets",
    summary: "groups of 20 senders and 20 receivers over AF_UNIX stream sockets",
    build: |values: &Values| Box::new(Hackbench::of(values, true, values.get("messages"))),
    ..PIPES
};

const GROUPS: Parameter =
    Parameter { name: "groups", default: 1, range: (1, 1_000), unit: "groups", doc: "groups of 40 tasks" };
const LOOPS: Parameter =
    Parameter { name: "loops", default: 1_000, range: (1, 1_000_000), unit: "loops", doc: "messages per pair" };
const MESSAGES: Parameter = Parameter {
    name: "messages",
    default: 0,
    range: (0, 1_000_000),
    unit: "millions",
    doc: "messages to simulate at most, the rest at their pace; 0: all",
};
const THREADS: Parameter =
    Parameter { name: "threads", default: 0, range: (0, 1), unit: "bool", doc: "threads instead of processes" };

/// `perf bench sched messaging`.
pub const PERF_BENCH_MESSAGING: Workload = Workload {
    name: "perf-bench-messaging",
    summary: "perf bench sched messaging: groups of 20 senders and 20 receivers over sockets or pipes",
    parameters: &[
        Parameter { default: 10, ..GROUPS },
        Parameter { default: 100, ..LOOPS },
        THREADS,
        Parameter { name: "pipe", default: 0, range: (0, 1), unit: "bool", doc: "pipes instead of sockets" },
    ],
    // perf prints seconds with three digits.
    decimals: 3,
    build: |values: &Values| Box::new(Hackbench::of(values, values.get("pipe") == 0, 0)),
    ..PIPES
};

pub const PIPES: Workload = Workload {
    name: "hackbench-pipes",
    summary: "groups of 20 senders and 20 receivers over pipes",
    parameters: &[GROUPS, LOOPS, MESSAGES, THREADS],
    key: Some("groups"),
    operation: "Time",
    rows: &[],
    statistics: Summary::Time,
    unit: "s",
    per_unit: 1_000_000_000,
    decimals: 4,
    build: |values: &Values| Box::new(Hackbench::of(values, false, values.get("messages"))),
};

struct Hackbench {
    groups: u64,
    loops: u64,
    /// How many of these loops are simulated.
    simulated: u64,
    memory: AddressSpace,
    sockets: bool,
}

impl Hackbench {
    /// Beyond this many millions of `messages` the rest of the loops is not simulated; 0: no limit.
    fn of(values: &Values, sockets: bool, messages: u64) -> Hackbench {
        let (groups, loops) = (values.get("groups"), values.get("loops"));
        let simulated = match messages * 1_000_000 / (groups * FDS * FDS) {
            0 if messages == 0 => loops,
            // The pace is measured between eighths of the run, so there must be at least eight loops.
            most => most.max(8).min(loops),
        };
        Hackbench {
            groups,
            loops,
            simulated,
            memory: if values.get("threads") == 1 { AddressSpace::Parent } else { AddressSpace::Own },
            sockets,
        }
    }

    fn channel(&self, os: &mut Os) -> Channel {
        match self.sockets {
            false => Channel::Pipe(os.create_pipe()),
            true => {
                let (read, write) = os.connect(Transport::Unix, Buffers::default());
                Channel::Sockets { read, write }
            }
        }
    }
}

/// The channel to one receiver, or between the parent and all children.
#[derive(Clone, Copy)]
enum Channel {
    Pipe(PipeId),
    Sockets { read: Socket, write: Socket },
}

impl Channel {
    fn write(self, bytes: u64) -> Op {
        match self {
            Channel::Pipe(pipe) => Op::Write { pipe, bytes },
            Channel::Sockets { write, .. } => Op::Send { socket: write, bytes: bytes as u32 },
        }
    }

    fn poll(self) -> Op {
        match self {
            Channel::Pipe(pipe) => Op::Poll { pipe },
            Channel::Sockets { read, .. } => Op::PollSocket { socket: read },
        }
    }

    fn read(self, bytes: u64) -> Op {
        match self {
            Channel::Pipe(pipe) => Op::Read { pipe, bytes },
            Channel::Sockets { read, .. } => Op::Receive { socket: read, bytes: bytes as u32, how: Receive::default() },
        }
    }
}

impl Instance for Hackbench {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let parent = Parent {
            ready: self.channel(os),
            start: self.channel(os),
            groups: (0..self.groups).map(|_| (0..FDS).map(|_| self.channel(os)).collect()).collect(),
            loops: self.simulated,
            pace: (self.simulated < self.loops).then(|| {
                let messages = self.groups * FDS * FDS * self.simulated;
                Rc::new(Pace { left_out: self.loops - self.simulated, messages, ..Pace::default() })
            }),
            memory: self.memory,
            forked: 0,
            announced: 0,
            started: Ns::ZERO,
            state: ParentState::Fork,
        };
        vec![task(parent, AddressSpace::Own)]
    }

    /// Nanoseconds.
    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().map(|s| s.value).collect()
    }

    fn operations(&self, _reported: &[Sample]) -> Option<(u64, &'static str)> {
        Some((self.groups * FDS * FDS * self.simulated, "message"))
    }
}

fn task(program: impl Program + 'static, memory: AddressSpace) -> TaskSpec {
    TaskSpec { working_set: WORKING_SET, memory, ..TaskSpec::new("hackbench", program) }
}

enum ParentState {
    Fork,
    Announcements,
    Fire,
    Wait,
    Report,
    Exit,
}

/// The pace of messages in the second half of a shortened run, without its end. By then CPU clocks have been raised.
#[derive(Default)]
struct Pace {
    left_out: u64,
    messages: u64,
    sent: Cell<u64>,
    /// When half of the messages had been sent, and when seven eighths.
    half: Cell<Ns>,
    most: Cell<Ns>,
}

impl Pace {
    fn sent(&self, now: Ns) {
        let sent = self.sent.get() + 1;
        self.sent.set(sent);
        if sent == self.messages / 8 * 4 {
            self.half.set(now);
        } else if sent == self.messages / 8 * 7 {
            self.most.set(now);
        }
    }

    /// The time that the omitted loops would take, given `simulated` ones. One CPU's clock may lag behind another's.
    fn rest(&self, simulated: u64) -> Ns {
        let time = self.most.get().saturating_sub(self.half.get());
        Ns((u128::from(time.0) * 8 * u128::from(self.left_out) / (3 * u128::from(simulated))) as u64)
    }
}

struct Parent {
    ready: Channel,
    start: Channel,
    groups: Vec<Rc<[Channel]>>,
    loops: u64,
    /// Set where some of the benchmark's loops are omitted.
    pace: Option<Rc<Pace>>,
    memory: AddressSpace,
    forked: u64,
    announced: u64,
    started: Ns,
    state: ParentState,
}

impl Parent {
    /// The next child in the program's order: per group first its receivers, then its senders.
    fn child(&mut self) -> TaskSpec {
        let channels = &self.groups[(self.forked / (2 * FDS)) as usize];
        let number = self.forked % (2 * FDS);
        self.forked += 1;
        let gate = Gate { ready: self.ready, start: self.start, passed: 0 };
        if number < FDS {
            let left = FDS * self.loops * MESSAGE;
            task(Receiver { gate, channel: channels[number as usize], left, want: 0 }, self.memory)
        } else {
            let left = FDS * self.loops;
            task(
                Sender { gate, channels: channels.clone(), left, writing: false, pace: self.pace.clone() },
                self.memory,
            )
        }
    }
}

impl Program for Parent {
    fn next(&mut self, last: Outcome) -> Op {
        let children = self.groups.len() as u64 * 2 * FDS;
        match self.state {
            ParentState::Fork => {
                let child = self.child();
                if self.forked == children {
                    self.state = ParentState::Announcements;
                }
                Op::Fork(Box::new(child))
            }
            ParentState::Announcements => {
                self.announced += 1;
                if self.announced == children {
                    self.state = ParentState::Fire;
                }
                self.ready.read(1)
            }
            ParentState::Fire => {
                self.started = last.now;
                self.announced = 0;
                self.state = ParentState::Wait;
                self.start.write(1)
            }
            ParentState::Wait => {
                self.announced += 1;
                if self.announced == children {
                    self.state = ParentState::Report;
                }
                Op::Wait
            }
            ParentState::Report => {
                self.state = ParentState::Exit;
                let rest = self.pace.as_ref().map_or(Ns::ZERO, |pace| pace.rest(self.loops));
                Op::Report { series: 0, value: (last.now - self.started + rest).0 }
            }
            ParentState::Exit => Op::Exit,
        }
    }
}

/// The beginning of every child: it writes one byte to the ready channel, then polls the start channel.
struct Gate {
    ready: Channel,
    start: Channel,
    passed: u8,
}

impl Gate {
    fn next(&mut self) -> Option<Op> {
        self.passed = self.passed.saturating_add(1);
        match self.passed {
            1 => Some(self.ready.write(1)),
            2 => Some(self.start.poll()),
            _ => None,
        }
    }
}

struct Sender {
    gate: Gate,
    channels: Rc<[Channel]>,
    /// Messages to write.
    left: u64,
    /// Whether the last operation was a message.
    writing: bool,
    pace: Option<Rc<Pace>>,
}

impl Program for Sender {
    fn next(&mut self, last: Outcome) -> Op {
        if let Some(op) = self.gate.next() {
            return op;
        }
        if let Some(pace) = self.pace.as_ref().filter(|_| self.writing) {
            pace.sent(last.now);
        }
        if self.left == 0 {
            return Op::Exit;
        }
        // The total is a multiple of the receivers: the first message goes to the first one.
        let channel = self.channels[((FDS - self.left % FDS) % FDS) as usize];
        (self.left, self.writing) = (self.left - 1, true);
        channel.write(MESSAGE)
    }
}

struct Receiver {
    gate: Gate,
    channel: Channel,
    /// Bytes to read.
    left: u64,
    /// Bytes still missing of the current message: a read may return fewer than asked for.
    want: u64,
}

impl Program for Receiver {
    fn next(&mut self, last: Outcome) -> Op {
        if let Some(op) = self.gate.next() {
            self.want = 0;
            return op;
        }
        if self.want > 0 {
            self.want -= last.value;
            self.left -= last.value;
        }
        if self.left == 0 {
            return Op::Exit;
        }
        if self.want == 0 {
            self.want = MESSAGE;
        }
        self.channel.read(self.want)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{priced_edges, run};

    #[test]
    fn messages_over_sockets_all_arrive_by_processes_and_threads() {
        for threads in [0, 1] {
            let ran = run("hackbench-sockets", 4, &[("loops", 30), ("threads", threads)]);
            assert_eq!(ran.rows()[0].len(), 1, "one time");
            // Each of the 40 tasks is woken to begin; after that hardly any task but receivers sleeps.
            assert!(ran.wakeups() >= 40, "{}", ran.wakeups());
        }
    }

    #[test]
    fn what_is_left_out_goes_on_at_the_pace_of_the_second_half() {
        // A slow beginning, then a message each 10 ns, then a slow end. 50 loops are 1000 messages; 100 are omitted.
        let pace = Pace { left_out: 100, messages: 1_000, ..Pace::default() };
        for sent in 1..=1_000u64 {
            let slow = if sent < 450 { 0 } else { 5_000 } + if sent > 875 { 9_000 } else { 0 };
            pace.sent(Ns(slow + sent * 10));
        }
        assert_eq!(pace.rest(50), Ns(2_000 * 10));
        let of = |groups, messages| {
            let mut values = Values::defaults(&PIPES);
            values.set("groups", groups);
            Hackbench::of(&values, false, messages).simulated
        };
        assert_eq!([of(192, 0), of(192, 10), of(4, 10), of(1_000, 1)], [1_000, 130, 1_000, 8]);
    }

    /// The figure excludes the time of forks and announcements, which does not grow with the messages.
    #[test]
    fn the_time_is_from_the_shot_to_the_last_exit() {
        let before = |loops| {
            let (ran, _) = priced_edges("hackbench-pipes", 4, &[("loops", loops)]);
            let (time, all) = (ran.rows()[0][0], ran.sim.now().0);
            assert!(time < all, "{time} of {all} ns");
            (time, all - time)
        };
        let ((short, first), (long, second)) = (before(20), before(60));
        assert!(long > short * 2, "{short} and {long} ns");
        assert!(first > 0 && first.abs_diff(second) <= first / 20, "{first} and {second} ns before it");
    }
}
