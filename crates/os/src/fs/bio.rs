//! Requests on their way to the device and back (block/), and what makes a write durable: block/blk-flush.c.
//!
//! A log write asks for a flush of the device's cache before it, and for a write that bypasses this cache. The block
//! layer splits it into steps, each a request of its own: a flush, the write, and another flush if the device cannot
//! write past its cache. Per queue at most one flush is at the device, and none while a write of such a sequence is;
//! all requests that wait for a flush share the next one. Steps that follow an interrupt are dispatched by kblockd, a
//! bound worker of high priority. blk-mq dispatches the first step in that way, too, whereas the old single queue hands
//! it to the device at once. Where a request ends is in [`super::complete`].
//!
//! Differs: flushes that wait for a write of a sequence wait as long as it takes, not 5 s at most; a queue with a
//! scheduler follows the same rule; requests are neither merged nor sorted.

use super::complete::ScsiPath;
use super::device::{Completion, WriteCache};
use super::xfs::item::Buffer;
use super::{FileId, FileSystem, FreshBlocks, FsKind};
use crate::block::BioId;
use crate::irq::Cause;
use crate::workqueue::{Queue, Work};
use crate::{Os, charge, paths};
use sched::arch::Arch;
use sched::sched::{TaskId, WakeFlags};
use sched::scheduler::Scheduler;
use units::CpuId;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BioKind {
    /// File data; `fresh` as for [`super::FsOp::Write`].
    Data { file: FileId, fresh: bool },
    /// A log buffer of XFS, by the number of buffers before it. It must be durable, together with all that was written
    /// before.
    Log { buffer: u64 },
    /// ext4's journal: blocks.
    Journal,
    /// The block that commits them; as durable as XFS's log buffers.
    Commit,
    /// Metadata of XFS on its way to its final place.
    Metadata(Buffer),
    /// Only a flush of the device's cache.
    Flush,
    /// The flush on behalf of all requests that wait for one.
    Shared,
}

/// blk-flush.c: REQ_FSEQ_*: the present step of a durable request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sequence {
    Preflush,
    Data,
    Postflush,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Bio {
    pub kind: BioKind,
    bytes: u64,
    /// The task to wake when it is done.
    pub task: TaskId,
    pub done: bool,
    /// The CPU that submitted it; `None`: the block layer does not remember.
    pub submitter: Option<CpuId>,
    sequence: Sequence,
    /// Its queue of flushes.
    queue: u32,
}

/// blk.h: struct blk_flush_queue: one per hardware queue, or the only one.
#[derive(Clone, Debug, Default)]
struct FlushQueue {
    /// The requests that wait for the next flush, and those that wait for the one at the device.
    pending: Vec<BioId>,
    running: Vec<BioId>,
    /// Whether a flush is at the device, or on its way there.
    busy: bool,
    data_in_flight: u32,
}

/// All requests, and those that kblockd has to dispatch.
#[derive(Debug, Default)]
pub(super) struct Bios {
    bios: Vec<Bio>,
    free: Vec<BioId>,
    queues: Vec<FlushQueue>,
    requeued: Vec<BioId>,
    /// Whether kblockd has been asked.
    requeue_work: bool,
}

impl Bios {
    pub fn add(&mut self, kind: BioKind, bytes: u64, task: TaskId) -> BioId {
        let bio = Bio { kind, bytes, task, done: false, submitter: None, sequence: Sequence::Data, queue: 0 };
        match self.free.pop() {
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

    pub fn free(&mut self, id: BioId) {
        self.free.push(id);
    }

    pub fn bio(&mut self, id: BioId) -> &mut Bio {
        &mut self.bios[id.0 as usize]
    }

    fn queue(&mut self, number: u32) -> &mut FlushQueue {
        let index = number as usize;
        if index >= self.queues.len() {
            self.queues.resize(index + 1, FlushQueue::default());
        }
        &mut self.queues[index]
    }
}

impl FileSystem {
    /// Where a request's time goes, and whether it is one of those that must be durable.
    fn is_durable(kind: BioKind) -> bool {
        matches!(kind, BioKind::Log { .. } | BioKind::Commit)
    }
}

impl Os {
    /// block/blk-core.c: submit_bio(): hands a request to the device, or into the sequence of flushes that it needs.
    pub(super) fn submit_bio<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        charge(sched, cpu, paths::SUBMIT_BIO);
        let fs = self.fs();
        let bio = fs.bios.bio(id);
        bio.submitter = Some(cpu);
        let kind = bio.kind;
        let flushed = FileSystem::is_durable(kind) || kind == BioKind::Flush;
        if flushed && fs.device.cache != WriteCache::Safe {
            self.blk_insert_flush(sched, cpu, id);
        } else {
            self.dispatch(sched, cpu, id);
        }
    }

    /// blk-flush.c: blk_insert_flush()
    fn blk_insert_flush<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        let fs = self.fs();
        let queue = if fs.device.completion == Completion::Fixed { 0 } else { cpu.index() as u32 };
        let bio = fs.bios.bio(id);
        (bio.sequence, bio.queue) = (Sequence::Preflush, queue);
        fs.bios.queue(queue).pending.push(id);
        self.blk_kick_flush(sched, cpu, queue, true);
    }

    /// blk-flush.c: blk_kick_flush(): sends a flush for all requests that wait for one, unless it must wait for another
    /// first. With blk-mq the first of them counts as its submitter; the old path remembers none (blk_rq_init()).
    fn blk_kick_flush<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, number: u32, submitter: bool) {
        let legacy = self.is_legacy();
        let bios = &mut self.fs().bios;
        let queue = bios.queue(number);
        let Some(&first) = queue.pending.first().filter(|_| !queue.busy && queue.data_in_flight == 0) else { return };
        queue.busy = true;
        std::mem::swap(&mut queue.pending, &mut queue.running);
        let Bio { task, submitter: submitted, .. } = *bios.bio(first);
        let id = bios.add(BioKind::Shared, 0, task);
        let flush = bios.bio(id);
        flush.queue = number;
        flush.submitter = submitted.filter(|_| !legacy);
        self.blk_flush_queue_rq(sched, cpu, id, submitter);
    }

    /// Whether the device is driven by the old single queue.
    fn is_legacy(&mut self) -> bool {
        self.fs_rules.scsi == ScsiPath::Legacy && self.fs().device.completion == Completion::Fixed
    }

    /// blk-flush.c: blk_flush_queue_rq(): hands the request to kblockd, or to the device at once if a `submitter` uses
    /// the old single queue.
    fn blk_flush_queue_rq<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId, submitter: bool) {
        if submitter && self.is_legacy() {
            return self.dispatch(sched, cpu, id);
        }
        let fs = self.fs();
        fs.bios.requeued.push(id);
        if !std::mem::replace(&mut fs.bios.requeue_work, true) {
            self.queue_work(sched, cpu, Queue::BoundHighpri, Work::Requeue);
        }
    }

    /// blk-mq.c: blk_mq_requeue_work(), in a worker.
    pub(super) fn blk_mq_requeue_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        let bios = &mut self.fs().bios;
        bios.requeue_work = false;
        for id in std::mem::take(&mut bios.requeued) {
            charge(sched, cpu, paths::BLK_MQ_RUN_WORK);
            self.dispatch(sched, cpu, id);
        }
    }

    /// The driver hands the request to the device, which notifies a CPU when it is done.
    fn dispatch<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        let now = sched.arch().sched_clock(cpu);
        let fs = self.fs();
        let Bio { kind, bytes, .. } = *fs.bios.bio(id);
        let device = &mut fs.device;
        let done = match kind {
            BioKind::Flush | BioKind::Shared => device.submit_flush(now),
            _ => {
                let past_cache = FileSystem::is_durable(kind) && device.cache == WriteCache::ForceUnitAccess;
                device.submit_write(now, bytes, past_cache)
            }
        };
        let irq = fs.irq;
        let irq = irq.unwrap_or_else(|| self.irq.queue_request_irq(cpu));
        self.irq.raise(done, irq, Cause::Bio(id));
    }

    /// block/bio.c: bio_endio(), blk-flush.c: flush_end_io() and mq_flush_data_end_io(). Called where
    /// [`Os::blk_complete_request`] decides.
    pub(super) fn bio_endio<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        charge(sched, cpu, paths::BIO_ENDIO);
        let bios = &mut self.fs().bios;
        let bio = *bios.bio(id);
        if bio.kind == BioKind::Shared {
            bios.free(id);
            let queue = bios.queue(bio.queue);
            queue.busy = false;
            for waiter in std::mem::take(&mut queue.running) {
                self.blk_flush_complete_seq(sched, cpu, waiter);
            }
            self.blk_kick_flush(sched, cpu, bio.queue, false);
        } else if bio.sequence == Sequence::Data && FileSystem::is_durable(bio.kind) {
            if self.fs().device.cache != WriteCache::Safe {
                self.fs().bios.queue(bio.queue).data_in_flight -= 1;
            }
            self.blk_flush_complete_seq(sched, cpu, id);
            self.blk_kick_flush(sched, cpu, bio.queue, false);
        } else {
            self.end_request(sched, cpu, id);
        }
    }

    /// blk-flush.c: blk_flush_complete_seq(): on to the next step, or the end.
    fn blk_flush_complete_seq<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        let fs = self.fs();
        let post = fs.device.cache == WriteCache::FlushOnly;
        let bio = fs.bios.bio(id);
        let queue = bio.queue;
        match bio.sequence {
            Sequence::Preflush if FileSystem::is_durable(bio.kind) => {
                bio.sequence = Sequence::Data;
                fs.bios.queue(queue).data_in_flight += 1;
                self.blk_flush_queue_rq(sched, cpu, id, false);
            }
            Sequence::Data if post => {
                bio.sequence = Sequence::Postflush;
                fs.bios.queue(queue).pending.push(id);
            }
            Sequence::Preflush | Sequence::Data | Sequence::Postflush => self.end_request(sched, cpu, id),
        }
    }

    /// Tells the submitter of the request that it has ended.
    fn end_request<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        let unwritten = self.fs_rules.fresh_blocks == FreshBlocks::Unwritten;
        let fs = self.fs();
        let xfs = fs.kind == FsKind::Xfs;
        let bio = *fs.bios.bio(id);
        match bio.kind {
            // ext4/page-io.c: ext4_add_complete_io()
            BioKind::Data { fresh: true, .. } if !xfs && unwritten => {
                self.queue_conversion(sched, cpu, id);
            }
            BioKind::Data { fresh: true, .. } if xfs => {
                self.queue_work(sched, cpu, Queue::Bound, Work::EndIo(id));
            }
            // xfs_buf.c: xfs_buf_ioend_async()
            BioKind::Metadata(_) => self.queue_work(sched, cpu, Queue::Bound, Work::BufDone(id)),
            BioKind::Log { .. } => self.queue_work(sched, cpu, Queue::BoundHighpri, Work::LogDone(id)),
            _ => {
                fs.bios.bio(id).done = true;
                if bio.kind == BioKind::Journal {
                    self.end_journal_blocks(sched, cpu);
                }
                sched.wake(cpu, bio.task, WakeFlags::NONE);
            }
        }
    }
}
