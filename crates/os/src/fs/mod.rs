//! File systems, as far as a task meets one: what its calls take, and the sleeps of fsync().
//!
//! Calls other than fsync() work in memory: each has a price, and what it copies (fs/read_write.c, fs/namei.c). They say what they have
//! changed: data that must be written, and metadata that the journal must hold. [`xfs`] and [`ext4`] say how fsync() brings both to the
//! device, who sleeps for whom, and which threads do the work in between.
//!
//! Modelled: one file system and one device; files by number. Absent: reading from the device, writeback in the background, memory
//! pressure, what several tasks contend for in one directory (every client has its own).

mod device;
mod ext4;
mod xfs;

pub use device::{Completion, Device};
pub use ext4::Jbd2;

use crate::irq::{Cause, IrqId};
use crate::wait::WaitQueue;
use crate::workqueue::{Queue, Work};
use crate::{Os, Step, charge, paths};
use sched::access::Path;
use sched::arch::Arch;
use sched::behaviour;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use sched::versions::{Setting, Switched};
use units::{CpuId, Ns};

behaviour! {
    /// Who pushes XFS's committed items into the log.
    pub enum CilPush = "xfs.cil_push" {
        Bound = "bound", since "v3.9", commit "", "a worker of the CPU that forces the log";
        Unbound = "unbound", since "v5.4", commit "", "any worker";
    }
}

behaviour! {
    /// Whether a write to a file of XFS (format 5) is a change of its metadata.
    pub enum IVersion = "xfs.iversion" {
        EveryWrite = "every-write", since "v3.11", commit "", "always: each counts the version of the file up";
        Queried = "queried", since "v4.16", commit "", "only when its times change, or somebody has asked for the version";
    }
}

/// What differs between kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FsRules {
    pub cil_push: CilPush,
    pub iversion: IVersion,
}

impl FsRules {
    pub const V4_5: FsRules = FsRules { cil_push: CilPush::Bound, iversion: IVersion::EveryWrite };
    pub const V4_16: FsRules = FsRules { iversion: IVersion::Queried, ..Self::V4_5 };
    pub const V6_1: FsRules = FsRules { cil_push: CilPush::Unbound, ..Self::V4_16 };

    /// Every behaviour, as a kernel has it.
    pub fn settings(&self) -> [Setting; 2] {
        [self.cil_push.setting(), self.iversion.setting()]
    }

    /// Switches one alone.
    pub fn set(&mut self, key: &str, value: &str) -> Switched {
        match key {
            CilPush::KEY => self.cil_push.switch(value),
            IVersion::KEY => self.iversion.switch(value),
            _ => Switched::UnknownKey,
        }
    }
}

/// Which one it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsKind {
    Xfs,
    Ext4,
}

/// A file, by its number; small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileId(pub u32);

/// What a task asks of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsOp {
    /// Opens a file, or creates it.
    Open {
        file: FileId,
        create: bool,
    },
    /// An open or a stat of a name that is not there: the directory is searched.
    Miss,
    Close,
    Stat,
    Fstat,
    Statfs,
    Utimes(FileId),
    Readdir,
    Read {
        bytes: u32,
    },
    /// `fresh`: to blocks that the file did not have.
    Write {
        file: FileId,
        bytes: u32,
        fresh: bool,
    },
    Unlink(FileId),
    Rename(FileId),
    Lock,
    Fsync(FileId),
}

/// A call under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FsCall {
    pub op: FsOp,
    stage: Stage,
}

impl FsCall {
    pub fn new(op: FsOp) -> FsCall {
        FsCall { op, stage: Stage::Begin }
    }
}

/// How far fsync() is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Begin,
    /// Waits for this request's data.
    Data(BioId),
    /// XFS: waits for the push of this checkpoint.
    Push(u64),
    /// XFS: waits for the log to hold it.
    Log(u64),
    /// ext4: waits for this transaction.
    Commit(u64),
    /// Nothing was to be logged: waits for this flush of the device.
    Flush(BioId),
}

/// What a file system leaves to a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsWork {
    /// xfs_aops.c: xfs_end_io(): a write to fresh blocks is done; its file's size is logged.
    EndIo(BioId),
    /// xfs_log_cil.c: xlog_cil_push_work()
    CilPush,
    /// block/blk-flush.c: the requeued request of a log write, and of its flushes.
    Dispatch(BioId),
    /// xfs_log.c: xlog_iodone(), with the callbacks of what the buffer holds.
    LogDone(BioId),
}

/// A request of the device, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BioId(u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BioKind {
    /// File data; `fresh` as for [`FsOp::Write`].
    Data { fresh: bool },
    /// XFS's log, up to this checkpoint.
    Log { checkpoint: u64 },
    /// ext4's journal: blocks, or the block that commits them.
    Journal,
    /// Nothing but a flush of the device's cache.
    Flush,
}

#[derive(Clone, Copy, Debug)]
struct Bio {
    kind: BioKind,
    task: TaskId,
    done: bool,
}

/// What is to be written of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Inode {
    dirty: bool,
    fresh: bool,
    /// The checkpoint, or transaction, that holds its last change; 0: none.
    logged: u64,
    /// When its times were changed last: they are, at most once in a jiffy.
    stamped: Option<Ns>,
}

/// A mounted file system.
#[derive(Debug)]
pub struct FileSystem {
    kind: FsKind,
    device: Device,
    /// Its line, where completions come to one CPU.
    irq: Option<IrqId>,
    inodes: Vec<Inode>,
    bios: Vec<Bio>,
    free_bios: Vec<BioId>,
    xfs: xfs::Log,
    journal: ext4::Journal,
}

/// The kernel's coarse clock, by which files are stamped, moves so far at a time (HZ=250).
const JIFFY: Ns = Ns(4_000_000);

impl FileSystem {
    fn inode(&mut self, file: FileId) -> &mut Inode {
        let index = file.0 as usize;
        if index >= self.inodes.len() {
            self.inodes.resize(index + 1, Inode::default());
        }
        &mut self.inodes[index]
    }

    fn add_bio(&mut self, kind: BioKind, task: TaskId) -> BioId {
        let bio = Bio { kind, task, done: false };
        match self.free_bios.pop() {
            Some(id) => {
                self.bios[id.0 as usize] = bio;
                id
            }
            None => {
                self.bios.push(bio);
                BioId(self.bios.len() as u32 - 1)
            }
        }
    }

    fn bio(&mut self, id: BioId) -> &mut Bio {
        &mut self.bios[id.0 as usize]
    }

    /// The number of what holds changes made now: a checkpoint or a transaction.
    fn current(&self) -> u64 {
        match self.kind {
            FsKind::Xfs => self.xfs.current(),
            FsKind::Ext4 => self.journal.running(),
        }
    }

    /// Metadata of a file changes.
    fn log(&mut self, file: FileId) {
        let current = self.current();
        self.inode(file).logged = current;
    }
}

impl Os {
    /// Mounts a fresh file system, the only one. Its threads are started when the workload's tasks are.
    pub fn mount(&mut self, kind: FsKind, device: Device) {
        let lines = [self.allocate(1), self.allocate(1)];
        self.fs = Some(Box::new(FileSystem {
            kind,
            device,
            irq: None,
            inodes: Vec::new(),
            bios: Vec::new(),
            free_bios: Vec::new(),
            xfs: xfs::Log::new(WaitQueue::new(lines[0]), WaitQueue::new(lines[1])),
            journal: ext4::Journal::new(WaitQueue::new(lines[0])),
        }));
    }

    /// Whether there is a file system whose threads must be started, and whether jbd2 is one of them.
    pub fn fs_threads(&self) -> Option<bool> {
        self.fs.as_ref().map(|fs| fs.kind == FsKind::Ext4)
    }

    /// Whether the device needs a line of its own, and does not have it yet.
    pub fn fs_wants_irq(&self) -> bool {
        self.fs.as_ref().is_some_and(|fs| fs.irq.is_none() && fs.device.completion == Completion::Fixed)
    }

    pub fn set_fs_irq(&mut self, irq: IrqId) {
        self.fs().irq = Some(irq);
    }

    fn fs(&mut self) -> &mut FileSystem {
        self.fs.as_mut().expect("a file system is mounted before it is used")
    }

    pub(crate) fn fs_call<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, call: &mut FsCall) -> Step {
        let FsOp::Fsync(file) = call.op else { return self.in_memory(sched, cpu, call.op) };
        if call.stage == Stage::Begin {
            charge(sched, cpu, paths::VFS_FSYNC);
            let inode = std::mem::take(self.fs().inode(file));
            *self.fs().inode(file) = Inode { dirty: false, fresh: false, ..inode };
            if inode.dirty {
                charge(sched, cpu, paths::WRITE_CACHE_PAGES);
                let bio = self.fs().add_bio(BioKind::Data { fresh: inode.fresh }, task);
                self.submit_bio(sched, cpu, bio);
                call.stage = Stage::Data(bio);
                return wait_for_io(sched, cpu);
            }
        }
        if let Stage::Data(bio) | Stage::Flush(bio) = call.stage {
            if !self.fs().bio(bio).done {
                return wait_for_io(sched, cpu);
            }
            sched.set_in_iowait(cpu, false);
            self.fs().free_bios.push(bio);
            if let Stage::Flush(_) = call.stage {
                return Step::Done(0);
            }
        }
        match self.fs().kind {
            FsKind::Xfs => self.xfs_log_force(sched, cpu, task, file, &mut call.stage),
            FsKind::Ext4 => self.ext4_sync_file(sched, cpu, task, file, &mut call.stage),
        }
    }

    /// The calls that never sleep.
    fn in_memory<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, op: FsOp) -> Step {
        let now = sched.arch().sched_clock(cpu);
        charge(sched, cpu, path_of(op));
        match op {
            FsOp::Open { file, create: true } | FsOp::Unlink(file) | FsOp::Rename(file) | FsOp::Utimes(file) => {
                self.fs().log(file);
            }
            FsOp::Read { bytes } => sched.arch_mut().copy(cpu, u64::from(bytes)),
            FsOp::Write { file, bytes, fresh } => {
                let iversion = self.fs_rules.iversion;
                let xfs = self.fs().kind == FsKind::Xfs;
                sched.arch_mut().copy(cpu, u64::from(bytes));
                let inode = self.fs().inode(file);
                inode.dirty = true;
                inode.fresh |= fresh;
                let jiffy = Ns(now.0 / JIFFY.0);
                let stamp = inode.stamped != Some(jiffy);
                inode.stamped = Some(jiffy);
                let counted = xfs && iversion == IVersion::EveryWrite;
                if stamp || fresh || counted {
                    self.fs().log(file);
                }
            }
            _ => {}
        }
        Step::Done(0)
    }

    /// block/blk-flush.c: blkdev_issue_flush(): what was written may lie in the device's cache only.
    fn blkdev_issue_flush<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, stage: &mut Stage) -> Step {
        let bio = self.fs().add_bio(BioKind::Flush, task);
        *stage = Stage::Flush(bio);
        self.queue_work(sched, cpu, Queue::BoundHighpri, Work::Fs(FsWork::Dispatch(bio)));
        wait_for_io(sched, cpu)
    }

    /// block/blk-core.c: submit_bio(): hands a request to the device, which tells a CPU when it is done.
    fn submit_bio<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, bio: BioId) {
        charge(sched, cpu, paths::SUBMIT_BIO);
        let now = sched.arch().sched_clock(cpu);
        let fs = self.fs();
        let latency = match fs.bio(bio).kind {
            BioKind::Data { .. } | BioKind::Journal => fs.device.write,
            // A flush before it, and its own way past the cache.
            BioKind::Log { .. } => fs.device.flush + fs.device.write,
            BioKind::Flush => fs.device.flush,
        };
        let done = fs.device.submit(now, latency);
        self.announce(cpu, bio, done);
    }

    fn announce(&mut self, cpu: CpuId, bio: BioId, done: Ns) {
        let irq = self.fs().irq;
        let irq = irq.unwrap_or_else(|| self.irq.queue_request_irq(cpu));
        self.irq.raise(done, irq, Cause::Bio(bio));
    }

    /// block/bio.c: bio_endio(), in the device's interrupt.
    pub fn bio_endio<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        charge(sched, cpu, paths::BIO_ENDIO);
        let fs = self.fs();
        let xfs = fs.kind == FsKind::Xfs;
        let bio = *fs.bio(id);
        match bio.kind {
            BioKind::Data { fresh: true } if xfs => {
                self.queue_work(sched, cpu, Queue::Bound, Work::Fs(FsWork::EndIo(id)))
            }
            BioKind::Log { .. } => self.queue_work(sched, cpu, Queue::BoundHighpri, Work::Fs(FsWork::LogDone(id))),
            BioKind::Data { .. } | BioKind::Journal | BioKind::Flush => {
                fs.bio(id).done = true;
                sched.wake(cpu, bio.task, WakeFlags::NONE);
            }
        }
    }

    /// What a worker does for the file system.
    pub(crate) fn fs_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, work: FsWork) {
        match work {
            FsWork::EndIo(id) => {
                charge(sched, cpu, paths::XFS_END_IO);
                let bio = self.fs().bio(id);
                bio.done = true;
                let task = bio.task;
                sched.wake(cpu, task, WakeFlags::NONE);
            }
            FsWork::CilPush => self.xlog_cil_push_work(sched, cpu),
            FsWork::Dispatch(id) => {
                charge(sched, cpu, paths::BLK_MQ_RUN_WORK);
                self.submit_bio(sched, cpu, id);
            }
            FsWork::LogDone(id) => self.xlog_iodone(sched, cpu, id),
        }
    }
}

/// Sleeps until a request is done, as wait_on_page_writeback() does by way of io_schedule().
fn wait_for_io<S: Scheduler>(sched: &mut S, cpu: CpuId) -> Step {
    sched.set_in_iowait(cpu, true);
    sched.set_current_state(cpu, TaskState::Uninterruptible);
    Step::Sleep { until: None }
}

/// What a call that never sleeps takes, but for its copying.
fn path_of(op: FsOp) -> Path {
    match op {
        FsOp::Open { .. } => paths::DO_SYS_OPEN,
        FsOp::Miss => paths::LOOKUP_MISS,
        FsOp::Close => paths::SYS_CLOSE,
        FsOp::Stat => paths::VFS_STATX,
        FsOp::Fstat => paths::VFS_FSTAT,
        FsOp::Statfs => paths::VFS_STATFS,
        FsOp::Utimes(_) => paths::DO_UTIMES,
        FsOp::Readdir => paths::ITERATE_DIR,
        FsOp::Read { .. } => paths::GENERIC_FILE_READ,
        FsOp::Write { .. } => paths::GENERIC_FILE_WRITE,
        FsOp::Unlink(_) => paths::DO_UNLINKAT,
        FsOp::Rename(_) => paths::DO_RENAMEAT,
        FsOp::Lock => paths::FCNTL_SETLK,
        FsOp::Fsync(_) => unreachable!("it may sleep"),
    }
}
