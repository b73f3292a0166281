//! File systems, as far as a task meets one: the cost of its calls, and where they sleep.
//!
//! Calls other than fsync() work in memory: each has a price, and copies its data (fs/read_write.c, fs/namei.c). They
//! record what they have changed: data to be written, and metadata to be journalled. [`xfs`] and [`ext4`] say how
//! fsync() brings both to the device, which tasks sleep for which, and which threads do the work in between; [`bio`]
//! says what the block layer does.
//!
//! Calls that allocate or free inodes and blocks wait for each other. On XFS they wait for space in the log, for the
//! headers of an allocation group ([`groups`]), and while changes are taken for a checkpoint. On ext4 they wait for a
//! transaction that is being closed, and for the blocks of one that is being written. What they do inside is a path of
//! its own, so that other tasks find them there.
//!
//! Modelled: one file system and one device; numbered files, with each client's directories spread over the groups.
//! Absent: reads from the device, write-back of data without fsync(), memory pressure, contention of several tasks in
//! one directory (every client has its own).

mod bio;
mod complete;
mod device;
mod ext4;
#[cfg(test)]
mod fixture;
mod groups;
mod xfs;

pub use complete::ScsiPath;
pub use device::{Completion, Device, WriteCache};
pub use ext4::Jbd2;
pub use xfs::Xfsaild;

use crate::block::BioId;
use crate::irq::IrqId;
use crate::workqueue::Work;
use crate::{Os, Step, charge, paths};
use bio::{BioKind, Bios};
use complete::Completions;
use groups::{AG_COUNT, Groups, Header};
use sched::access::Path;
use sched::arch::Arch;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use sched::{behaviour, rules};
use units::CpuId;
use xfs::item::{self, Item, Transaction};

behaviour! {
    /// Who pushes XFS's committed items into the log.
    pub enum CilPush = "xfs.cil_push" {
        Bound = "bound", since "v3.9", commit "", "a worker of the CPU that forces the log";
        Unbound = "unbound", since "v5.4", commit "8ab39f11d974", "any worker";
    }
}

behaviour! {
    /// Whether a write to a file of XFS (format 5) is a change of its metadata.
    pub enum IVersion = "xfs.iversion" {
        EveryWrite = "every-write", since "v3.11", commit "", "always: each counts the version of the file up";
        Queried = "queried", since "v4.16", commit "f02a9ad1f15d", "only when its times change, or somebody has asked for the version";
    }
}

behaviour! {
    /// How ext4 gives blocks to data that have none yet.
    pub enum FreshBlocks = "ext4.fresh_blocks" {
        Written = "written", since "v2.6.19", commit "", "as they are to be: the interrupt that ends the write ends the wait for it";
        Unwritten = "unwritten", since "v5.6", commit "244adf6426ee",
            "as unwritten ones (dioread_nolock), which an unbound worker converts when the data are there: one more change, of the transaction of that time";
    }
}

/// What differs between kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FsRules {
    pub cil_push: CilPush,
    pub iversion: IVersion,
    pub fresh_blocks: FreshBlocks,
    pub scsi: ScsiPath,
}

impl FsRules {
    pub const V4_5: FsRules = FsRules {
        cil_push: CilPush::Bound,
        iversion: IVersion::EveryWrite,
        fresh_blocks: FreshBlocks::Written,
        scsi: ScsiPath::Legacy,
    };
    pub const V4_16: FsRules = FsRules { iversion: IVersion::Queried, ..Self::V4_5 };
    pub const V4_19: FsRules = FsRules { scsi: ScsiPath::Mq, ..Self::V4_16 };
    pub const V5_4: FsRules = FsRules { cil_push: CilPush::Unbound, ..Self::V4_19 };
    pub const V5_10: FsRules = FsRules { fresh_blocks: FreshBlocks::Unwritten, ..Self::V5_4 };
}

rules! { FsRules { cil_push, iversion, fresh_blocks, scsi } }

/// The type of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsKind {
    Xfs,
    Ext4,
}

/// A file, by its number. Numbers are small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileId(pub u32);

/// A call of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsOp {
    /// Opens a file, or creates it.
    Open {
        file: FileId,
        create: bool,
    },
    /// An open or a stat of a name that does not exist: the directory is searched.
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
    /// `fresh`: into blocks that the file did not have.
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

    /// Whether it has begun, and so is in the middle of the kernel.
    pub fn is_in_the_middle(&self) -> bool {
        self.stage != Stage::Begin
    }
}

/// The progress of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Begin,
    /// About to enter place number `n` of the call; on XFS, with its log space reserved; then inside.
    Enter(u8),
    Reserved(u8),
    Inside(u8),
    /// Waits for this request's data.
    Data(BioId),
    /// XFS: waits, for this checkpoint's sake, until a worker is done with the push that is queued or under way,
    /// whichever checkpoint that push writes.
    FlushWork(u64),
    /// XFS: waits until this checkpoint, or an earlier one, is in log buffers.
    Push(u64),
    /// XFS: waits for the log buffer before the one that holds the checkpoint.
    Prior {
        checkpoint: u64,
        buffer: u64,
    },
    /// XFS: waits until the log holds it; `flushed`: this task itself submitted the buffer.
    Log {
        checkpoint: u64,
        buffer: u64,
        flushed: bool,
    },
    /// ext4: waits for this transaction; `barrier`: its commit no longer flushes the device for this file's data.
    Commit {
        tid: u64,
        barrier: bool,
    },
    /// There was nothing to be logged: waits for this flush of the device.
    Flush(BioId),
}

/// A place where a call needs exclusive access, or has to be admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// XFS: a transaction, and the header of an allocation group if it needs one.
    Xfs(Transaction, Option<Header>),
    /// ext4: a transaction.
    Handle,
}

/// What has to be written for a file.
#[derive(Clone, Copy, Debug, Default)]
struct Inode {
    /// The bytes of its dirty pages.
    dirty: u64,
    fresh: bool,
    /// XFS: whether its times or its version have to be logged.
    touched: bool,
    /// Whether it has blocks on the device.
    allocated: bool,
    /// The checkpoint or transaction that holds its last change; 0: none.
    logged: u64,
    /// The jiffy in which its times last changed: files are stamped by the coarse clock, which advances once per jiffy.
    stamped: Option<u64>,
}

/// A mounted file system.
#[derive(Debug)]
pub struct FileSystem {
    kind: FsKind,
    device: Device,
    /// The device's interrupt line, if completions come to one CPU.
    irq: Option<IrqId>,
    inodes: Vec<Inode>,
    bios: Bios,
    completions: Completions,
    xfs: xfs::Log,
    groups: Groups,
    journal: ext4::Journal,
}

/// Bytes of a block.
const BLOCK: u64 = 4096;

impl FileSystem {
    fn inode(&mut self, file: FileId) -> &mut Inode {
        let index = file.0 as usize;
        if index >= self.inodes.len() {
            self.inodes.resize(index + 1, Inode::default());
        }
        &mut self.inodes[index]
    }

    /// Place number `number` that a call has to enter, with the file concerned.
    fn place(&mut self, op: FsOp, number: u8) -> Option<(Place, FileId)> {
        use Place::{Handle, Xfs};
        use Transaction::{Create, Fsyncts, Ichange, Ifree, Itruncate, Remove, Rename, Write};
        let (agi, agf) = (Some(Header::Agi), Some(Header::Agf));
        let (file, xfs, ext4): (FileId, &[Place], &[Place]) = match op {
            FsOp::Open { file, create: true } => (file, &[Xfs(Create, agi)], &[Handle]),
            // Unlink: from the directory to the list of inodes without a name; then off that list, and free. If the
            // file has blocks, they are freed in between.
            FsOp::Unlink(file) if self.inode(file).allocated => {
                (file, &[Xfs(Remove, agi), Xfs(Itruncate, agf), Xfs(Ifree, agi)], &[Handle, Handle])
            }
            FsOp::Unlink(file) if self.inode(file).dirty > 0 => {
                (file, &[Xfs(Remove, agi), Xfs(Itruncate, None), Xfs(Ifree, agi)], &[Handle, Handle])
            }
            FsOp::Unlink(file) => (file, &[Xfs(Remove, agi), Xfs(Ifree, agi)], &[Handle, Handle]),
            FsOp::Rename(file) => (file, &[Xfs(Rename, None)], &[Handle]),
            FsOp::Utimes(file) => (file, &[Xfs(Ichange, None)], &[Handle]),
            FsOp::Write { file, .. } if self.inode(file).touched => (file, &[Xfs(Fsyncts, None)], &[]),
            // Blocks are allocated when the data are to be written.
            FsOp::Fsync(file) if self.inode(file).dirty > 0 && self.inode(file).fresh => {
                (file, &[Xfs(Write, agf)], &[Handle])
            }
            _ => return None,
        };
        let places = if self.kind == FsKind::Xfs { xfs } else { ext4 };
        places.get(usize::from(number)).map(|&place| (place, file))
    }

    /// The items that a transaction of XFS changes, for the checkpoint; the file's own inode comes first.
    fn changes(transaction: Transaction, header: Option<Header>, file: FileId) -> impl Iterator<Item = Item> {
        let names = matches!(transaction, Transaction::Create | Transaction::Remove | Transaction::Rename);
        let directory = names.then_some(Item::directory_of(file));
        let header = header.map(|header| Item::Header(item::group(file), header));
        [Some(Item::Inode(file.0)), directory, header].into_iter().flatten()
    }
}

impl Os {
    /// Mounts a fresh file system, the only one. Its threads are started together with the workload's tasks.
    pub fn mount(&mut self, kind: FsKind, device: Device) {
        let headers = [(); AG_COUNT as usize].map(|()| self.allocate_named(&Header::LINES));
        let xfs = xfs::Log::new(|names| self.allocate_named(names));
        let journal = ext4::Journal::new(|names| self.allocate_named(names));
        self.fs = Some(Box::new(FileSystem {
            kind,
            device,
            irq: None,
            inodes: Vec::new(),
            bios: Bios::default(),
            completions: Completions::default(),
            xfs,
            groups: Groups::new(headers[0]),
            journal,
        }));
    }

    /// Whether there is a file system whose threads must be started; if so, whether jbd2 is one of them.
    pub fn fs_threads(&self) -> Option<bool> {
        self.fs.as_ref().map(|fs| fs.kind == FsKind::Ext4)
    }

    /// Whether the device needs an interrupt line of its own and does not have it yet.
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
        loop {
            match call.stage {
                Stage::Begin => {
                    self.in_memory(sched, cpu, call.op);
                    call.stage = Stage::Enter(0);
                }
                Stage::Enter(number) | Stage::Reserved(number) => {
                    if let Some((place, file)) = self.fs().place(call.op, number) {
                        if !self.enter(sched, cpu, task, place, file, number, &mut call.stage) {
                            return Step::Sleep;
                        }
                        call.stage = Stage::Inside(number);
                        if place.is_shared() {
                            return Step::Continues;
                        }
                        continue;
                    }
                    if let FsOp::Unlink(file) = call.op {
                        *self.fs().inode(file) = Inode::default();
                    }
                    let FsOp::Fsync(file) = call.op else { return Step::Done(0) };
                    if let Some(bio) = self.write_data(sched, cpu, task, file) {
                        call.stage = Stage::Data(bio);
                        return wait_for_io(sched, cpu);
                    }
                    return self.fsync(sched, cpu, task, file, &mut call.stage);
                }
                Stage::Inside(number) => {
                    if let Some((place, file)) = self.fs().place(call.op, number)
                        && !self.leave(sched, cpu, task, place, file)
                    {
                        return Step::Sleep;
                    }
                    // A write is at most one transaction, and its file does not need another.
                    call.stage = Stage::Enter(number + 1);
                }
                _ => {
                    let FsOp::Fsync(file) = call.op else { unreachable!("nothing else waits for a device") };
                    return self.fsync(sched, cpu, task, file, &mut call.stage);
                }
            }
        }
    }

    /// The part of a call before the first place that it has to enter.
    fn in_memory<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, op: FsOp) {
        let jiffy = self.jiffies(sched.arch().sched_clock(cpu));
        charge(sched, cpu, path_of(op));
        match op {
            FsOp::Read { bytes } => sched.arch_mut().copy(cpu, u64::from(bytes)),
            FsOp::Write { file, bytes, fresh } => {
                let iversion = self.fs_rules.iversion;
                sched.arch_mut().copy(cpu, u64::from(bytes));
                let fs = self.fs();
                let xfs = fs.kind == FsKind::Xfs;
                let running = fs.journal.running();
                let inode = fs.inode(file);
                inode.dirty += u64::from(bytes);
                inode.fresh |= fresh;
                let stamp = inode.stamped != Some(jiffy);
                inode.stamped = Some(jiffy);
                let counted = xfs && iversion == IVersion::EveryWrite;
                inode.touched = stamp || fresh || counted;
                if inode.touched && !xfs {
                    inode.logged = running;
                    fs.journal.change(file, false);
                }
            }
            FsOp::Fsync(file) if self.fs().inode(file).dirty > 0 => charge(sched, cpu, paths::WRITE_CACHE_PAGES),
            _ => {}
        }
    }

    /// Enters a place and does the call's work there. Returns whether it could; otherwise the call is about to sleep.
    #[expect(clippy::too_many_arguments, reason = "a step of the call, apart from its loop")]
    fn enter<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        place: Place,
        file: FileId,
        number: u8,
        stage: &mut Stage,
    ) -> bool {
        let fs = self.fs();
        match place {
            Place::Xfs(transaction, header) => {
                if *stage == Stage::Enter(number) {
                    let (granted, push) = fs.xfs.space.xfs_log_reserve(sched, cpu, task, transaction);
                    if let Some(threshold) = push {
                        fs.xfs.ail.xfs_ail_push(sched, cpu, threshold);
                    }
                    if !granted {
                        return false;
                    }
                    *stage = Stage::Reserved(number);
                }
                let Some(header) = header else { return true };
                if !fs.groups.xfs_buf_lock(sched, cpu, task, item::group(file), header) {
                    return false;
                }
                let agi = header == Header::Agi;
                charge(sched, cpu, if agi { paths::XFS_DIALLOC } else { paths::XFS_ALLOC_AG_VEXTENT });
            }
            Place::Handle => {
                if !fs.journal.start_this_handle(sched, cpu, task) {
                    return false;
                }
                charge(sched, cpu, paths::EXT4_NEW_INODE);
                fs.inode(file).logged = fs.journal.running();
                fs.journal.change(file, true);
            }
        }
        true
    }

    /// Leaves a place. Returns whether it could; otherwise the call is about to sleep.
    fn leave<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, place: Place, file: FileId) -> bool {
        let fs = self.fs();
        match place {
            Place::Xfs(transaction, header) => {
                let items = FileSystem::changes(transaction, header, file);
                if !fs.xfs.xfs_log_commit_cil(sched, cpu, task, transaction, items) {
                    return false;
                }
                fs.inode(file).touched = false;
                fs.inode(file).logged = fs.xfs.current();
                if let Some(header) = header {
                    fs.groups.xfs_buf_unlock(sched, cpu, item::group(file), header);
                }
                self.xlog_cil_push_background(sched, cpu);
            }
            Place::Handle => fs.journal.jbd2_journal_stop(sched, cpu),
        }
        true
    }

    /// mm/filemap.c: file_write_and_wait_range(): submits a file's dirty pages to the device.
    fn write_data<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, file: FileId) -> Option<BioId> {
        let fs = self.fs();
        let inode = fs.inode(file);
        let bytes = std::mem::take(&mut inode.dirty);
        if bytes == 0 {
            return None;
        }
        let fresh = std::mem::take(&mut inode.fresh);
        inode.allocated = true;
        let bio = fs.bios.add(BioKind::Data { file, fresh }, bytes, task);
        self.submit_bio(sched, cpu, bio);
        Some(bio)
    }

    /// fsync() after its data are submitted.
    fn fsync<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        file: FileId,
        stage: &mut Stage,
    ) -> Step {
        if let Stage::Data(bio) | Stage::Flush(bio) = *stage {
            if !self.fs().bios.bio(bio).done {
                return wait_for_io(sched, cpu);
            }
            sched.set_in_iowait(cpu, false);
            self.fs().bios.free(bio);
            if let Stage::Flush(_) = *stage {
                return Step::Done(0);
            }
        }
        match self.fs().kind {
            FsKind::Xfs => self.xfs_log_force(sched, cpu, task, file, stage),
            FsKind::Ext4 => self.ext4_sync_file(sched, cpu, task, file, stage),
        }
    }

    /// block/blk-flush.c: blkdev_issue_flush(): what was written may still be only in the device's cache.
    fn blkdev_issue_flush<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, stage: &mut Stage) -> Step {
        if self.fs().device.cache == WriteCache::Safe {
            return Step::Done(0);
        }
        let bio = self.fs().bios.add(BioKind::Flush, 0, task);
        *stage = Stage::Flush(bio);
        self.submit_bio(sched, cpu, bio);
        wait_for_io(sched, cpu)
    }

    /// A worker's item for the file system.
    pub(crate) fn fs_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, work: Work) -> Step {
        match work {
            Work::Dbs { .. } | Work::VmstatUpdate | Work::VmstatShepherd => unreachable!("no work of a file system"),
            Work::EndIo(id) => {
                charge(sched, cpu, paths::XFS_END_IO);
                let fs = self.fs();
                let bio = fs.bios.bio(id);
                bio.done = true;
                let task = bio.task;
                if let BioKind::Data { file, .. } = bio.kind {
                    fs.xfs.xfs_setfilesize(file);
                    fs.inode(file).logged = fs.xfs.current();
                }
                sched.wake(cpu, task, WakeFlags::NONE);
            }
            Work::ConvertUnwritten(id) => return self.ext4_end_io_end(sched, cpu, task, id),
            Work::CilPush => return self.xlog_cil_push(sched, cpu, task),
            Work::Requeue => self.blk_mq_requeue_work(sched, cpu),
            Work::LogDone(id) => self.xlog_iodone(sched, cpu, id),
            Work::BufDone(id) => self.xfs_buf_iodone(sched, cpu, id),
        }
        Step::Done(0)
    }
}

impl Place {
    /// Whether other tasks may meet a call inside, or be kept out by it.
    fn is_shared(self) -> bool {
        matches!(self, Place::Handle | Place::Xfs(_, Some(_)))
    }
}

/// Sleeps until a request is done, as wait_on_page_writeback() does through io_schedule().
fn wait_for_io<S: Scheduler>(sched: &mut S, cpu: CpuId) -> Step {
    sched.set_in_iowait(cpu, true);
    sched.set_current_state(cpu, TaskState::Uninterruptible);
    Step::Sleep
}

/// The price of a call, without its copying and its work at places that it has to enter.
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
        FsOp::Fsync(_) => paths::VFS_FSYNC,
    }
}
