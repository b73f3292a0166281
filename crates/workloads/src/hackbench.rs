//! hackbench over pipes: groups of 20 senders and 20 receivers; every sender writes to every receiver of its group.
//!
//! Each receiver has a pipe of its own; a sender writes one 100-byte message to each of the 20 pipes in turn, `loops` times over.
//! Children announce themselves on a shared ready pipe and poll a shared start pipe. The parent reads all announcements, takes the
//! time, writes one byte to the start pipe, which wakes every child at once, waits for all children to exit, and takes the time
//! again. So the figure holds a mass wakeup, the messages, and 40 exits per group.
//!
//! Modelled: processes or threads, the forks in the program's order, no computation between system calls (20 to 50 ns in
//! reality, in the price of a system call). The printed seconds are not rounded to milliseconds as the program does, so that
//! small effects are seen with few iterations.

use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
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

pub const PIPES: Workload = Workload {
    name: "hackbench-pipes",
    summary: "groups of 20 senders and 20 receivers over pipes",
    parameters: &[
        Parameter { name: "groups", default: 1, range: (1, 1_000), unit: "groups", doc: "groups of 40 tasks" },
        Parameter { name: "loops", default: 1_000, range: (1, 1_000_000), unit: "loops", doc: "messages per pair" },
        Parameter { name: "threads", default: 0, range: (0, 1), unit: "bool", doc: "threads instead of processes" },
    ],
    key: Some("groups"),
    operation: "Time",
    rows: &[],
    statistics: Summary::Time,
    unit: "s",
    per_unit: 1_000_000_000,
    decimals: 4,
    build: |values: &Values| {
        Box::new(Hackbench {
            groups: values.get("groups"),
            loops: values.get("loops"),
            memory: if values.get("threads") == 1 { AddressSpace::Parent } else { AddressSpace::Own },
        })
    },
};

struct Hackbench {
    groups: u64,
    loops: u64,
    memory: AddressSpace,
}

impl Instance for Hackbench {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let parent = Parent {
            ready: os.create_pipe(),
            start: os.create_pipe(),
            groups: (0..self.groups).map(|_| (0..FDS).map(|_| os.create_pipe()).collect()).collect(),
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
    groups: Vec<Rc<[PipeId]>>,
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
        let pipes = &self.groups[(self.forked / (2 * FDS)) as usize];
        let number = self.forked % (2 * FDS);
        self.forked += 1;
        let gate = Gate { ready: self.ready, start: self.start, passed: 0 };
        if number < FDS {
            let left = FDS * self.loops * MESSAGE;
            task(Receiver { gate, pipe: pipes[number as usize], left, want: 0 }, self.memory)
        } else {
            task(Sender { gate, pipes: pipes.clone(), left: FDS * self.loops }, self.memory)
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
    pipes: Rc<[PipeId]>,
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
        // The total is a multiple of the pipes: the first message goes to the first pipe.
        let pipe = self.pipes[((FDS - self.left % FDS) % FDS) as usize];
        self.left -= 1;
        Op::Write { pipe, bytes: MESSAGE }
    }
}

struct Receiver {
    gate: Gate,
    pipe: PipeId,
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
        Op::Read { pipe: self.pipe, bytes: self.want }
    }
}
