//! dbench4: clients replay a file server's load, each in a directory of its own, as fast as they can.
//!
//! The load file is MMTests's shortened one of January 2018: 3573 operations, 19.12 MB read and written, 43 fsyncs. Clients replay it
//! in a loop, system call after system call, and the parent prints the throughput since the start once a second; MMTests takes
//! the harmonic mean of these lines.
//!
//! Modelled: the kinds of operation and their numbers, sizes of reads and writes (each kind's mean), and how fsyncs lie: the four sizes
//! of what they write, most in pairs that write the same block twice a few operations apart. The order of the others is drawn once,
//! the same for every client and run, since the file itself is not part of this project. About a tenth of an operation's time is
//! the program's own; the rest are the file system's prices. Data stay in the page cache, as they do in reality.

use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use os::fs::{Completion, Device, FileId, FsKind, FsOp, WriteCache};
use os::sync::{BarrierId, SyncOp};
use sim::engine::Sample;
use sim::program::{Op, Outcome, Program, TaskSpec};
use std::cell::Cell;
use std::rc::Rc;
use units::{Cycles, Ns, Prng};

const READS: u64 = 962;
const WRITES: u64 = 303;
const FLUSHES: u64 = 43;
/// Of all bytes read, each read's part: 11.41 MB.
const READ: u32 = 11_861;
/// Of the bytes written and not flushed, each write's part: of 7.71 MB.
const WRITE: u32 = 27_637;
/// Sizes of the writes before an fsync, and how many of each there are.
const FLUSH_SIZES: [(u32, usize); 4] = [(4_096, 30), (8_192, 4), (14_500, 5), (74_000, 4)];
/// Operations between the two fsyncs of a pair, so that their median distance is 8.
const BETWEEN: usize = 6;
/// Files of one client that are open or changed at a time, and how many of them are those that are flushed: writes that nobody flushes go
/// to others.
const FILES: u32 = 64;
const FLUSHED: u32 = 21;
/// The program's own part of an operation (a tenth of 6.5 us at 3 GHz, and the parsing of a line).
const OWN_WORK: Cycles = Cycles(2_000);
/// Bytes of private cache that a client uses again after a switch (guess: the program, its buffers, what the kernel touches for it).
const WORKING_SET: u64 = 64 * 1024;
const SECOND: Ns = Ns(1_000_000_000);

const PARAMETERS: &[Parameter] = &[
    Parameter { name: "clients", default: 1, range: (1, 4_096), unit: "clients", doc: "processes that replay it" },
    Parameter { name: "ext4", default: 0, range: (0, 1), unit: "bool", doc: "on ext4 instead of XFS" },
    Parameter { name: "runtime", default: 10, range: (1, 3_600), unit: "s", doc: "how long they do" },
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

/// Series of what clients and parent report: the throughput since the start, and how long each load file took.
const THROUGHPUT: u32 = 0;
const LOAD_FILE: u32 = 1;

/// MMTests's alternative report, in which the third study was published: the harmonic mean of the parent's lines.
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
    disk: Disk,
    /// Seconds.
    runtime: u64,
    /// The series that is the metric.
    metric: u32,
}

/// In what the disk is to differ from the machine's.
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

    /// The machine's, with these differences.
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
            disk: Disk::new(values),
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
            load: load_file().into(),
            barrier: os.create_barrier(self.clients as u32 + 1),
            seen: Rc::default(),
            clients: self.clients,
            runtime: self.runtime,
            forked: 0,
            seconds: 0,
            started: Ns::ZERO,
            state: ParentState::Fork,
        };
        vec![TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("dbench", parent) }]
    }

    /// Bytes a second, or nanoseconds.
    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().filter(|sample| sample.series == self.metric).map(|sample| sample.value).collect()
    }
}

/// The operations of the load file; file numbers below [`FILES`].
fn load_file() -> Vec<FsOp> {
    // The stream is no run's: the file is the same for all.
    let mut chance = Prng::stream(0, "dbench load file", 0);
    let mut file = |_| FileId(chance.below(u64::from(FILES)) as u32);
    let mut many = |count: usize, op: &mut dyn FnMut(FileId) -> FsOp| -> Vec<FsOp> {
        (0..count).map(|index| op(file(index))).collect()
    };
    let mut others = Vec::new();
    others.extend(many(READS as usize, &mut |_| FsOp::Read { bytes: READ }));
    // 613 opens, of which 163 fail and as many create as files are removed; 584 queries of paths, of which 189 fail.
    others.extend(many(124, &mut |file| FsOp::Open { file, create: true }));
    others.extend(many(326, &mut |file| FsOp::Open { file, create: false }));
    others.extend(many(163 + 189, &mut |_| FsOp::Miss));
    others.extend(many(395, &mut |_| FsOp::Stat));
    others.extend(many(450, &mut |_| FsOp::Close));
    let unflushed = |file: FileId| FileId(FLUSHED + file.0 % (FILES - FLUSHED));
    others.extend(many((WRITES - FLUSHES) as usize, &mut |file| FsOp::Write {
        file: unflushed(file),
        bytes: WRITE,
        fresh: true,
    }));
    others.extend(many(215, &mut |_| FsOp::Readdir));
    others.extend(many(124, &mut FsOp::Unlink));
    others.extend(many(102, &mut |_| FsOp::Statfs));
    others.extend(many(97, &mut |_| FsOp::Fstat));
    others.extend(many(50, &mut FsOp::Utimes));
    others.extend(many(26, &mut FsOp::Rename));
    others.extend(many(4, &mut |_| FsOp::Lock));
    let mut order = Prng::stream(0, "dbench load file", 1);
    shuffle(&mut others, &mut order);
    let mut sizes: Vec<u32> = FLUSH_SIZES.iter().flat_map(|&(size, count)| vec![size; count]).collect();
    shuffle(&mut sizes, &mut order);
    // Fsyncs of the same block come in pairs, one time in three; a file of its own for each group.
    let (three, others_sizes) = sizes.split_at(3);
    let groups: Vec<&[u32]> = std::iter::once(three).chain(others_sizes.chunks(2)).collect();
    assert_eq!(groups.len(), FLUSHED as usize);
    let gap = others.len() / groups.len();
    let mut rest = others.into_iter();
    let mut load = Vec::new();
    for (group, number) in groups.into_iter().zip(0..) {
        let file = FileId(number);
        for (at, &bytes) in group.iter().enumerate() {
            load.push(FsOp::Write { file, bytes, fresh: at == 0 });
            load.push(FsOp::Fsync(file));
            let last = at + 1 == group.len();
            load.extend(rest.by_ref().take(if last { gap - BETWEEN * at } else { BETWEEN }));
        }
    }
    load.extend(rest);
    load
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], chance: &mut Prng) {
    for last in (1..items.len()).rev() {
        items.swap(last, chance.below(last as u64 + 1) as usize);
    }
}

/// What clients tell their parent.
#[derive(Default)]
struct Seen {
    bytes: Cell<u64>,
    over: Cell<bool>,
}

enum ParentState {
    Fork,
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
                    self.state = ParentState::Start;
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
    /// Until it has started.
    barrier: Option<BarrierId>,
    seen: Rc<Seen>,
    first_file: u32,
    at: usize,
    /// When it began this load file; whether that is known.
    began: Option<Ns>,
    begins: bool,
    /// Next comes its own part of an operation.
    own_work: bool,
}

impl Client {
    /// The operation on this client's own file.
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
            // The operation before this first one was the last of a load file, but for the first time.
            if let Some(began) = self.began.replace(last.now) {
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
mod tests {
    use super::*;
    use crate::fixture::{edges, run};
    use os::fs::{CilPush, FsRules};
    use std::collections::BTreeMap;

    /// Bytes that a load file reads and writes.
    fn accounted() -> u64 {
        let bytes = |op: FsOp| match op {
            FsOp::Read { bytes } | FsOp::Write { bytes, .. } => u64::from(bytes),
            _ => 0,
        };
        load_file().into_iter().map(bytes).sum()
    }

    #[test]
    fn the_load_file_is_as_long_and_as_heavy_as_the_published_one() {
        let load = load_file();
        assert_eq!(load.len(), 3_573);
        assert_eq!(load.iter().filter(|op| matches!(op, FsOp::Fsync(_))).count(), 43);
        assert!(accounted().abs_diff(19_120_000) < 1_000, "{}", accounted());
        let flushes: Vec<usize> = (0..load.len()).filter(|&at| matches!(load[at], FsOp::Fsync(_))).collect();
        let mut gaps: Vec<usize> = flushes.windows(2).map(|two| two[1] - two[0]).collect();
        gaps.sort_unstable();
        assert_eq!(gaps[gaps.len() / 2], 8);
    }

    /// How often whom woke whom for each fsync, in hundredths.
    fn edges_of(parameters: &[(&str, u64)], rules: FsRules) -> BTreeMap<(String, String), u64> {
        let parameters: Vec<(&str, u64)> = parameters.iter().copied().chain([("runtime", 2)]).collect();
        let (ran, edges) = edges("dbench4", 4, &parameters, |os| os.fs_rules = rules);
        let bytes = ran.rows()[0].last().expect("two seconds have two figures") * 2;
        let fsyncs = bytes * FLUSHES / accounted();
        edges.into_iter().map(|(edge, count)| (edge, count * 100 / fsyncs)).collect()
    }

    #[track_caller]
    fn within(edges: &BTreeMap<(String, String), u64>, waker: &str, wakee: &str, expected: std::ops::Range<u64>) {
        let found = edges.get(&(waker.to_string(), wakee.to_string())).copied().unwrap_or(0);
        assert!(expected.contains(&found), "{waker} -> {wakee}: {found} of {edges:?}");
    }

    /// Only the worker that pushes differs from v4.15.
    const UNBOUND: FsRules = FsRules { cil_push: CilPush::Unbound, ..FsRules::V4_5 };

    const NVME: [(&str, u64); 2] = [("cache", 1), ("single_queue", 0)];

    /// What the measured wake graphs give for one client, with room for a load file whose order is our own.
    #[test]
    fn an_fsync_of_xfs_wakes_as_measured() {
        for rules in [FsRules::V4_5, UNBOUND] {
            let edges = edges_of(&NVME, rules);
            let worker = "kworker";
            // Data: straight from the interrupt, or by way of a bound worker where blocks were fresh.
            within(&edges, "idle", "dbench", 40..61);
            within(&edges, "dbench", worker, 95..106);
            // The end of a write to fresh blocks, and the push.
            within(&edges, worker, "dbench", 140..160);
            within(&edges, "idle", "kworker", 40..61);
            // kblockd, once by the caller for the flush; once more in the interrupt for the write behind it, and the log's worker.
            within(&edges, "dbench", "kworkerH", 95..106);
            within(&edges, "idle", "kworkerH", 190..211);
            within(&edges, "kworkerH", "dbench", 95..106);
        }
    }

    #[test]
    fn the_push_is_done_on_the_callers_cpu_until_v5_3_only() {
        let migrations = |rules| {
            let edges = edges_of(&[], rules);
            edges.get(&("migrated".to_string(), "dbench".to_string())).copied().unwrap_or(0)
        };
        let (bound, unbound) = (migrations(FsRules::V4_5), migrations(UNBOUND));
        assert!(bound > unbound + 40, "{bound} and {unbound}");
    }

    #[test]
    fn an_fsync_of_ext4_wakes_jbd2_and_its_caller() {
        let edges = edges_of(&[("ext4", 1), NVME[0], NVME[1]], FsRules::V4_5);
        // Three in four were measured, of a load file in another order.
        within(&edges, "dbench", "jbd2", 50..101);
        within(&edges, "jbd2", "dbench", 50..101);
        // Two steps of a commit.
        within(&edges, "idle", "jbd2", 100..201);
        // Data, and the flush where nothing was to be committed.
        within(&edges, "idle", "dbench", 100..151);
    }

    #[test]
    fn a_device_without_a_cache_of_writes_needs_no_kblockd() {
        let edges = edges_of(&[("cache", 0)], FsRules::V4_5);
        within(&edges, "dbench", "kworkerH", 0..1);
        within(&edges, "idle", "kworkerH", 95..106);
        // With one that must be flushed, the write has a flush on either side; one queue sends the first at once.
        let edges = edges_of(&[("cache", 2)], FsRules::V4_5);
        within(&edges, "dbench", "kworkerH", 0..1);
        within(&edges, "idle", "kworkerH", 285..316);
    }

    #[test]
    fn many_clients_share_writes_of_the_log() {
        let highpri = |clients| {
            let edges = edges_of(&[("clients", clients)], FsRules::V4_5);
            edges.iter().filter(|((_, wakee), _)| wakee == "kworkerH").map(|(_, count)| count).sum::<u64>()
        };
        let (one, many) = (highpri(1), highpri(16));
        assert!(many < one / 2, "{many} and {one}");
    }

    #[test]
    fn load_files_take_as_long_as_the_throughput_says() {
        let parameters = [("clients", 2), ("runtime", 2)];
        let (rate, files) = (run("dbench4", 4, &parameters), run("dbench4-loadfile", 4, &parameters));
        let rate = *rate.rows()[0].last().expect("a figure a second");
        let files = &files.rows()[0];
        let count = files.len() as u64;
        let mean = files.iter().sum::<u64>() / count;
        // Two clients.
        let expected = 2 * accounted() * 1_000_000_000 / rate;
        assert!(mean.abs_diff(expected) < expected / 50, "{mean} and {expected} ns");
        assert!(count * accounted() <= rate * 2, "only whole files count");
    }

    /// 64 times what a create may need is more than the log: its oldest part must be written to its place all the time.
    #[test]
    fn many_clients_wait_for_room_in_the_log() {
        let asked = |clients| {
            let (_, edges) = edges("dbench4", 8, &[("clients", clients), ("runtime", 1)], |_| {});
            let wakers = ["dbench", "kworker", "kworkerH"].map(|waker| (waker.to_string(), "xfsaild".to_string()));
            wakers.iter().filter_map(|edge| edges.get(edge)).sum::<u64>()
        };
        let (one, many) = (asked(1), asked(64));
        assert!(many > 50 && many > one * 3, "{many} and {one}");
    }

    #[test]
    fn clients_wait_for_a_log_that_takes_one_buffer_at_a_time() {
        let throughput = |clients| run("dbench4", 8, &[("clients", clients), ("runtime", 1)]).rows()[0][0];
        let (one, two, eight) = (throughput(1), throughput(2), throughput(8));
        assert!(two > one * 5 / 4, "{two} and {one}");
        assert!(eight < one * 5, "{eight} and {one}");
    }
}
