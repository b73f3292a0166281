//! pipetest: two processes pass a token back and forth through two pipes.
//!
//! Parent: write pipe 1, read pipe 2. Child: read pipe 1, write pipe 2. A loop is 4 system calls, 2 sync wakeups, 2
//! sleeps and two 4-byte copies each way; there is no computation. The program prints the mean microseconds per loop of
//! each batch. MMTests takes 120 batches and prints 17 order statistics of them.
//!
//! Modelled: one batch is `loops` round trips; the program's own text and its clock reads are free. The batch length of
//! the program that MMTests ran is not known (variants use 10000 to 1000000). Shorter batches give the same means here,
//! because only the pair runs.

use crate::{Instance, Parameter, Summary, Workload};
use os::Os;
use os::pipe::PipeId;
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use units::{CpuId, CpuMask, Ns};

/// Bytes of the token.
const TOKEN: u64 = 4;
/// Bytes of private cache that one side uses again after a switch: its kernel stack, task and a few file objects (guess, 2 to 8 KiB).
const WORKING_SET: u64 = 4 * 1024;

pub const WORKLOAD: Workload = Workload {
    name: "pipetest",
    summary: "two processes hand a token to and fro through two pipes",
    parameters: &[
        Parameter { name: "batches", default: 120, range: (1, 1_000), unit: "batches", doc: "printed means" },
        Parameter {
            name: "loops",
            default: 1_000,
            range: (1, 10_000_000),
            unit: "loops",
            doc: "round trips per batch",
        },
        Parameter {
            name: "bind",
            default: 0,
            range: (0, 2),
            unit: "choice",
            doc: "0: anywhere; 1: both processes on CPU 0; 2: parent on CPU 0, child on CPU 1",
        },
    ],
    key: None,
    operation: "Time",
    rows: &[],
    statistics: Summary::Variabletime,
    unit: "us per loop",
    per_unit: 1_000_000,
    decimals: 2,
    build: |values| {
        let bound = match values.get("bind") {
            0 => [None; 2],
            other => [Some(CpuId(0)), Some(CpuId(other as u16 - 1))],
        };
        Box::new(Pipetest {
            batches: values.get("batches"),
            loops: values.get("loops"),
            child: AddressSpace::Own,
            bound,
        })
    },
};

/// `perf bench sched pipe`: the same token in one long batch, between processes or threads; MMTests calls its table perfpipe.
pub const PERF_BENCH_PIPE: Workload = Workload {
    name: "perf-bench-pipe",
    summary: "perf bench sched pipe: two tasks hand a token to and fro through two pipes",
    parameters: &[
        Parameter { name: "loops", default: 1_000_000, range: (1, 100_000_000), unit: "loops", doc: "round trips" },
        Parameter { name: "threads", default: 0, range: (0, 1), unit: "bool", doc: "threads instead of processes" },
    ],
    key: None,
    operation: "usecs-op",
    rows: &[],
    statistics: Summary::Time,
    unit: "us per loop",
    per_unit: 1_000_000,
    decimals: 4,
    build: |values| {
        let child = if values.get("threads") == 1 { AddressSpace::Parent } else { AddressSpace::Own };
        Box::new(Pipetest { batches: 1, loops: values.get("loops"), child, bound: [None; 2] })
    },
};

struct Pipetest {
    batches: u64,
    loops: u64,
    child: AddressSpace,
    /// The only CPU that the parent, and the child, may run on.
    bound: [Option<CpuId>; 2],
}

impl Instance for Pipetest {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let (there, back) = (os.create_pipe(), os.create_pipe());
        let parent = Parent {
            there,
            back,
            batches: self.batches,
            loops: self.loops,
            memory: self.child,
            bound: self.bound,
            batch: 0,
            turn: 0,
            started: Ns::ZERO,
            state: ParentState::Fork,
        };
        vec![TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("pipe-test", parent) }]
    }

    fn last_cpu(&self) -> Option<CpuId> {
        self.bound[1]
    }

    /// Picoseconds per loop.
    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().map(|s| s.value * 1_000 / self.loops).collect()
    }

    fn operations(&self, reported: &[Sample]) -> Option<(u64, &'static str)> {
        Some((self.loops * reported.len() as u64, "loop"))
    }
}

enum ParentState {
    Fork,
    Write,
    Read,
    Wait,
    Exit,
}

struct Parent {
    there: PipeId,
    back: PipeId,
    batches: u64,
    loops: u64,
    /// The child's address space.
    memory: AddressSpace,
    /// The CPUs that it and the child are still to be bound to.
    bound: [Option<CpuId>; 2],
    batch: u64,
    turn: u64,
    started: Ns,
    state: ParentState,
}

impl Program for Parent {
    fn next(&mut self, last: Outcome) -> Op {
        match self.state {
            ParentState::Fork => {
                if let Some(cpu) = self.bound[0].take() {
                    return Op::SetAffinity(CpuMask::single(cpu));
                }
                self.state = ParentState::Write;
                let (there, back, bound) = (self.there, self.back, self.bound[1]);
                let child = Child { there, back, left: self.batches * self.loops, reading: false, bound };
                let spec = TaskSpec::new("pipe-test", child);
                Op::Fork(Box::new(TaskSpec { working_set: WORKING_SET, memory: self.memory, ..spec }))
            }
            ParentState::Write => {
                if self.turn == 0 {
                    self.started = last.now;
                }
                self.state = ParentState::Read;
                Op::Write { pipe: self.there, bytes: TOKEN }
            }
            ParentState::Read => {
                self.turn += 1;
                self.state = if self.turn == self.loops { ParentState::Wait } else { ParentState::Write };
                Op::Read { pipe: self.back, bytes: TOKEN }
            }
            ParentState::Wait => {
                self.turn = 0;
                self.batch += 1;
                self.state = if self.batch == self.batches { ParentState::Exit } else { ParentState::Write };
                Op::Report { series: 0, value: (last.now - self.started).0 }
            }
            ParentState::Exit => Op::Exit,
        }
    }
}

struct Child {
    there: PipeId,
    back: PipeId,
    left: u64,
    reading: bool,
    bound: Option<CpuId>,
}

impl Program for Child {
    fn next(&mut self, _last: Outcome) -> Op {
        if let Some(cpu) = self.bound.take() {
            return Op::SetAffinity(CpuMask::single(cpu));
        }
        self.reading = !self.reading;
        if self.reading {
            if self.left == 0 {
                return Op::Exit;
            }
            self.left -= 1;
            Op::Read { pipe: self.there, bytes: TOKEN }
        } else {
            Op::Write { pipe: self.back, bytes: TOKEN }
        }
    }
}
