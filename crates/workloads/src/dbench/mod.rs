//! dbench4: clients replay a file server's load, each in a directory of its own, as fast as they can.
//!
//! The load file is MMTests's shortened one, used since autumn 2016 (3573 operations, 19.12 MB read and written, 43
//! fsyncs), or with `full=1` dbench's own, which MMTests used before (458344 operations, 2.49 GB, 5553 fsyncs): see
//! [`load_file`]. Clients replay it in a loop, system call after system call. Once a second the parent prints the
//! throughput since the start; MMTests reports the harmonic mean of these lines (`dbench4`), or how long each load file
//! took (`dbench4-loadfile`).
//!
//! In February 2016 MMTests let it run for 900 s, after a warm-up of a fifth more (`warmup`); the parent begins to
//! count at the warm-up's end. In January 2018 it was 180 s and more for each client, without a warm-up but after a run
//! of 600 lines that leaves its files behind. That run would change nothing here: data stay in the page cache, as they
//! do in reality, and all files exist from the beginning.
//!
//! Modelled: the kinds of operation and their numbers, sizes of reads and writes (each kind's mean), and where the
//! fsyncs are. About a tenth of an operation's time is the program's own; the rest is the price of the file system's
//! calls.

mod load_file;

use crate::{Instance, Parameter, Summary, Values, Workload};
use load_file::{FILES, LoadFile};
use os::Os;
use os::fs::{Completion, Device, FileId, FsKind, FsOp, WriteCache};
use os::sync::{BarrierId, SyncOp};
use sim::engine::Sample;
use sim::program::{Op, Outcome, Program, TaskSpec};
use std::cell::Cell;
use std::rc::Rc;
use units::{Cycles, Ns};

/// The program's own part of an operation (a tenth of 6.5 us at 3 GHz, and the parsing of a line).
const OWN_WORK: Cycles = Cycles(2_000);
/// Bytes of private cache that a client uses again after a switch (guess: the program, its buffers, what the kernel touches for it).
const WORKING_SET: u64 = 64 * 1024;
const SECOND: Ns = Ns(1_000_000_000);

const PARAMETERS: &[Parameter] = &[
    Parameter { name: "clients", default: 1, range: (1, 4_096), unit: "clients", doc: "processes that replay it" },
    Parameter { name: "ext4", default: 0, range: (0, 1), unit: "bool", doc: "on ext4 instead of XFS" },
    Parameter {
        name: "full",
        default: 0,
        range: (0, 1),
        unit: "bool",
        doc: "the full load file instead of the shortened one",
    },
    Parameter { name: "runtime", default: 10, range: (1, 3_600), unit: "s", doc: "how long they do, and are measured" },
    Parameter { name: "warmup", default: 0, range: (0, 3_600), unit: "s", doc: "before that, not measured" },
    Parameter {
        name: "write_us",
        default: 0,
        range: (0, 1_000_000),
        unit: "us",
        doc: "a write of the disk; 0: as the machine file says",
    },
    Parameter {
        name: "flush_us",
        default: 0,
        range: (0, 1_000_000),
        unit: "us",
        doc: "a flush of its cache; 0: likewise",
    },
    Parameter {
        name: "channels",
        default: 0,
        range: (0, 1_024),
        unit: "",
        doc: "writes that it works on at a time; 0: likewise",
    },
    Parameter {
        name: "cache",
        default: 3,
        range: (0, 3),
        unit: "",
        doc: "its cache of writes: 0 needs no flush, 1 takes writes past it, 2 is flushed after them; 3: as the machine file says",
    },
    Parameter {
        name: "single_queue",
        default: 2,
        range: (0, 2),
        unit: "",
        doc: "1: one CPU takes all its interrupts, 0: the one that submitted; 2: as the machine file says",
    },
];

/// Series of what clients and the parent report: the throughput since the start, and how long each load file took.
const THROUGHPUT: u32 = 0;
const LOAD_FILE: u32 = 1;

/// MMTests's alternative report, the one published in the third study: the harmonic mean of the parent's lines.
pub const WORKLOAD: Workload = Workload {
    name: "dbench4",
    summary: "clients replay a file server's load on XFS or ext4: throughput",
    parameters: PARAMETERS,
    key: Some("clients"),
    operation: "mb/sec",
    rows: &[],
    statistics: Summary::SkewedRate,
    unit: "MB/s",
    per_unit: 1_000_000,
    decimals: 2,
    build: |values: &Values| Box::new(Dbench::new(values, THROUGHPUT)),
};

/// MMTests's own metric since 2016: how long each client took for each load file, in milliseconds.
pub const LOAD_FILES: Workload = Workload {
    name: "dbench4-loadfile",
    summary: "the same: how long a load file takes",
    statistics: Summary::SkewedTime,
    operation: "loadfile",
    unit: "ms",
    build: |values: &Values| Box::new(Dbench::new(values, LOAD_FILE)),
    ..WORKLOAD
};

struct Dbench {
    clients: u64,
    kind: FsKind,
    load: LoadFile,
    disk: Disk,
    /// Seconds.
    warmup: u64,
    runtime: u64,
    /// The series that the table shows.
    metric: u32,
}

/// How the disk should differ from the machine's.
struct Disk {
    write: Option<Ns>,
    flush: Option<Ns>,
    channels: Option<usize>,
    cache: Option<WriteCache>,
    completion: Option<Completion>,
}

impl Disk {
    fn new(values: &Values) -> Disk {
        let given = |name| Some(values.get(name)).filter(|&value| value > 0);
        Disk {
            write: given("write_us").map(|us| Ns(us * 1_000)),
            flush: given("flush_us").map(|us| Ns(us * 1_000)),
            channels: given("channels").map(|channels| channels as usize),
            cache: match values.get("cache") {
                0 => Some(WriteCache::Safe),
                1 => Some(WriteCache::ForceUnitAccess),
                2 => Some(WriteCache::FlushOnly),
                _ => None,
            },
            completion: match values.get("single_queue") {
                0 => Some(Completion::Submitter),
                1 => Some(Completion::Fixed),
                _ => None,
            },
        }
    }

    /// The machine's disk with these differences.
    fn over(&self, mut device: Device) -> Device {
        device.write = self.write.unwrap_or(device.write);
        device.flush = self.flush.unwrap_or(device.flush);
        device.cache = self.cache.unwrap_or(device.cache);
        device.completion = self.completion.unwrap_or(device.completion);
        if let Some(channels) = self.channels {
            device.set_channels(channels);
        }
        device
    }
}

impl Dbench {
    fn new(values: &Values, metric: u32) -> Dbench {
        Dbench {
            clients: values.get("clients"),
            kind: if values.get("ext4") == 1 { FsKind::Ext4 } else { FsKind::Xfs },
            load: if values.get("full") == 1 { LoadFile::FULL } else { LoadFile::SHORTENED },
            disk: Disk::new(values),
            warmup: values.get("warmup"),
            runtime: values.get("runtime"),
            metric,
        }
    }
}

impl Instance for Dbench {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let disk = os.disk.clone().expect("who starts a workload tells of the machine's disk");
        os.mount(self.kind, self.disk.over(disk));
        let parent = Parent {
            load: self.load.operations().into(),
            barrier: os.create_barrier(self.clients as u32 + 1),
            seen: Rc::new(Seen { counts: Cell::new(self.warmup == 0), ..Seen::default() }),
            clients: self.clients,
            warmup: self.warmup,
            runtime: self.runtime,
            forked: 0,
            seconds: 0,
            started: Ns::ZERO,
            state: ParentState::Fork,
        };
        vec![TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("dbench", parent) }]
    }

    /// Bytes per second, or nanoseconds.
    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().filter(|sample| sample.series == self.metric).map(|sample| sample.value).collect()
    }
}

/// What clients tell their parent.
#[derive(Default)]
struct Seen {
    bytes: Cell<u64>,
    /// The warm-up is over.
    counts: Cell<bool>,
    over: Cell<bool>,
}

enum ParentState {
    Fork,
    WarmUp,
    Warm,
    Start,
    Second,
    Print,
    Wait,
    Waited,
}

struct Parent {
    load: Rc<[FsOp]>,
    barrier: BarrierId,
    seen: Rc<Seen>,
    clients: u64,
    warmup: u64,
    runtime: u64,
    forked: u64,
    seconds: u64,
    started: Ns,
    state: ParentState,
}

impl Program for Parent {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            match self.state {
                ParentState::Fork if self.forked == self.clients => {
                    self.state = if self.warmup > 0 { ParentState::WarmUp } else { ParentState::Start };
                    return Op::Sync(SyncOp::Barrier(self.barrier));
                }
                ParentState::Fork => {
                    let client = Client {
                        load: self.load.clone(),
                        barrier: Some(self.barrier),
                        seen: self.seen.clone(),
                        first_file: self.forked as u32 * FILES,
                        at: 0,
                        began: None,
                        begins: false,
                        own_work: true,
                    };
                    self.forked += 1;
                    let spec = TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("dbench", client) };
                    return Op::Fork(Box::new(spec));
                }
                ParentState::WarmUp => {
                    self.state = ParentState::Warm;
                    return Op::SleepFor(Ns(self.warmup * SECOND.0));
                }
                ParentState::Warm => {
                    self.seen.bytes.set(0);
                    self.seen.counts.set(true);
                    self.state = ParentState::Start;
                }
                ParentState::Start => {
                    self.started = last.now;
                    self.state = ParentState::Second;
                }
                ParentState::Second if self.seconds == self.runtime => {
                    self.seen.over.set(true);
                    self.state = ParentState::Wait;
                }
                ParentState::Second => {
                    self.seconds += 1;
                    self.state = ParentState::Print;
                    return Op::SleepUntil(Ns(self.started.0 + self.seconds * SECOND.0));
                }
                ParentState::Print => {
                    self.state = ParentState::Second;
                    let elapsed = (last.now - self.started).0.max(1);
                    let rate = u128::from(self.seen.bytes.get()) * u128::from(SECOND.0) / u128::from(elapsed);
                    return Op::Report { series: THROUGHPUT, value: rate as u64 };
                }
                ParentState::Wait => {
                    self.state = ParentState::Waited;
                    return Op::Wait;
                }
                ParentState::Waited if last.value != 0 => return Op::Wait,
                ParentState::Waited => return Op::Exit,
            }
        }
    }
}

struct Client {
    load: Rc<[FsOp]>,
    /// The barrier at the start; `None` once passed.
    barrier: Option<BarrierId>,
    seen: Rc<Seen>,
    first_file: u32,
    at: usize,
    /// When this load file began, if that is known.
    began: Option<Ns>,
    begins: bool,
    /// The next thing to do is the program's own part of an operation.
    own_work: bool,
}

impl Client {
    /// The operation, on this client's own file.
    fn own(&self, op: FsOp) -> FsOp {
        let own = |file: FileId| FileId(self.first_file + file.0);
        match op {
            FsOp::Open { file, create } => FsOp::Open { file: own(file), create },
            FsOp::Write { file, bytes, fresh } => FsOp::Write { file: own(file), bytes, fresh },
            FsOp::Unlink(file) => FsOp::Unlink(own(file)),
            FsOp::Rename(file) => FsOp::Rename(own(file)),
            FsOp::Utimes(file) => FsOp::Utimes(own(file)),
            FsOp::Fsync(file) => FsOp::Fsync(own(file)),
            other => other,
        }
    }
}

impl Program for Client {
    fn next(&mut self, last: Outcome) -> Op {
        if let Some(barrier) = self.barrier.take() {
            return Op::Sync(SyncOp::Barrier(barrier));
        }
        if self.seen.over.get() {
            return Op::Exit;
        }
        if self.at == 0 && !std::mem::replace(&mut self.begins, true) {
            // The operation before this first one was the last of a load file, except at the very first.
            if let Some(began) = self.began.replace(last.now)
                && self.seen.counts.get()
            {
                return Op::Report { series: LOAD_FILE, value: (last.now - began).0 };
            }
        }
        if std::mem::replace(&mut self.own_work, false) {
            return Op::Work(OWN_WORK);
        }
        (self.own_work, self.begins) = (true, false);
        let op = self.load[self.at];
        self.at = (self.at + 1) % self.load.len();
        let (FsOp::Read { bytes } | FsOp::Write { bytes, .. }) = op else { return Op::Fs(self.own(op)) };
        self.seen.bytes.set(self.seen.bytes.get() + u64::from(bytes));
        Op::Fs(self.own(op))
    }
}

#[cfg(test)]
mod tests;
