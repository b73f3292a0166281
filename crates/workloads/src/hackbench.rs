//! hackbench over pipes or sockets: groups of 20 senders and 20 receivers; every sender writes to every receiver of its group.
//!
//! Each receiver has a pipe (`hackbench-pipes`) or a pair of AF_UNIX stream sockets (`hackbench-sockets`) of its own; a sender writes one
//! 100-byte message to each of the 20 in turn, `loops` times over.
//! Children announce themselves on a shared ready pipe and poll a shared start pipe. The parent reads all announcements, takes the
//! time, writes one byte to the start pipe, which wakes every child at once, waits for all children to exit, and takes the time
//! again. So the figure holds a mass wakeup, the messages, and 40 exits per group.
//!
//! The 20 senders to one receiver share the socket that they write to, and with it the account on which unread messages stand: 277 of
//! them fill it, and who finds it full sleeps until three quarters of it are free.
//!
//! `perf bench sched messaging` (`perf-bench-messaging`) is the same program: over sockets unless it is told `pipe=1`, 10 groups and 100 loops
//! where nothing else is said.
//!
//! Modelled: processes or threads, the forks in the program's order, no computation between system calls (20 to 50 ns in
//! reality, in the price of a system call). The printed seconds are not rounded to milliseconds as the program does, so that
//! small effects are seen with few iterations. Not modelled: that with sockets the ready and start pipes are pairs of sockets, too.

use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use os::net::{Buffers, Receive, Socket, Transport};
use os::pipe::PipeId;
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
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
    build: |values: &Values| Box::new(Hackbench::of(values, true)),
    ..PIPES
};

const GROUPS: Parameter =
    Parameter { name: "groups", default: 1, range: (1, 1_000), unit: "groups", doc: "groups of 40 tasks" };
const LOOPS: Parameter =
    Parameter { name: "loops", default: 1_000, range: (1, 1_000_000), unit: "loops", doc: "messages per pair" };
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
    // It prints seconds with three digits.
    decimals: 3,
    build: |values: &Values| Box::new(Hackbench::of(values, values.get("pipe") == 0)),
    ..PIPES
};

pub const PIPES: Workload = Workload {
    name: "hackbench-pipes",
    summary: "groups of 20 senders and 20 receivers over pipes",
    parameters: &[GROUPS, LOOPS, THREADS],
    key: Some("groups"),
    operation: "Time",
    rows: &[],
    statistics: Summary::Time,
    unit: "s",
    per_unit: 1_000_000_000,
    decimals: 4,
    build: |values: &Values| Box::new(Hackbench::of(values, false)),
};

struct Hackbench {
    groups: u64,
    loops: u64,
    memory: AddressSpace,
    sockets: bool,
}

impl Hackbench {
    fn of(values: &Values, sockets: bool) -> Hackbench {
        Hackbench {
            groups: values.get("groups"),
            loops: values.get("loops"),
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

/// The way to one receiver.
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
            ready: os.create_pipe(),
            start: os.create_pipe(),
            groups: (0..self.groups).map(|_| (0..FDS).map(|_| self.channel(os)).collect()).collect(),
            loops: self.loops,
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

struct Parent {
    ready: PipeId,
    start: PipeId,
    groups: Vec<Rc<[Channel]>>,
    loops: u64,
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
            task(Sender { gate, channels: channels.clone(), left: FDS * self.loops }, self.memory)
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
                Op::Read { pipe: self.ready, bytes: 1 }
            }
            ParentState::Fire => {
                self.started = last.now;
                self.announced = 0;
                self.state = ParentState::Wait;
                Op::Write { pipe: self.start, bytes: 1 }
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
                Op::Report { series: 0, value: (last.now - self.started).0 }
            }
            ParentState::Exit => Op::Exit,
        }
    }
}

/// Every child's beginning: one byte to the ready pipe, then the start pipe.
struct Gate {
    ready: PipeId,
    start: PipeId,
    passed: u8,
}

impl Gate {
    fn next(&mut self) -> Option<Op> {
        self.passed = self.passed.saturating_add(1);
        match self.passed {
            1 => Some(Op::Write { pipe: self.ready, bytes: 1 }),
            2 => Some(Op::Poll { pipe: self.start }),
            _ => None,
        }
    }
}

struct Sender {
    gate: Gate,
    channels: Rc<[Channel]>,
    /// Messages to write.
    left: u64,
}

impl Program for Sender {
    fn next(&mut self, _last: Outcome) -> Op {
        if let Some(op) = self.gate.next() {
            return op;
        }
        if self.left == 0 {
            return Op::Exit;
        }
        // The total is a multiple of the receivers: the first message goes to the first one.
        let channel = self.channels[((FDS - self.left % FDS) % FDS) as usize];
        self.left -= 1;
        channel.write(MESSAGE)
    }
}

struct Receiver {
    gate: Gate,
    channel: Channel,
    /// Bytes to read.
    left: u64,
    /// Bytes missing of the present message: a read may return fewer than asked for.
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
    use crate::fixture::run;

    #[test]
    fn messages_over_sockets_all_arrive_by_processes_and_threads() {
        for threads in [0, 1] {
            let ran = run("hackbench-sockets", 4, &[("loops", 30), ("threads", threads)]);
            assert_eq!(ran.rows()[0].len(), 1, "one time");
            // Each of the 40 tasks is woken to begin; after that hardly anybody but receivers sleeps.
            assert!(ran.wakeups() >= 40, "{}", ran.wakeups());
        }
    }
}
