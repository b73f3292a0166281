//! fs/xfs: fsync() forces the log (xfs_file.c, xfs_log.c, xfs_log_cil.c), with up to five sleeps.
//!
//! 1. For its data, which the caller submits; a worker ends the write where it went to fresh blocks.
//! 2. For the push of the checkpoint that holds the file's changes, which a worker does ([`super::CilPush`]): until v5.3 one of the CPU of the
//!    caller, who has just left it. Whoever comes while a push is queued, and needs no later one, waits for the same.
//! 3. While the log buffer before is on its way to the device, for that one: meanwhile others may put their checkpoints into the same buffer.
//!    So the log takes one buffer at a time, with all that came together.
//! 4. For the buffer that holds the checkpoint. The first of those who waited gives it to the block layer; when it is on the device, the log's own
//!    worker (bound, of high priority, on the CPU of the interrupt) wakes everybody whose checkpoint it held.
//! 5. Who did not give it away himself does not know whether the device was flushed, and flushes it.
//!
//! Transactions of all tasks write the same few lines: the log's grant heads, the context's lock, the list of committed items.
//!
//! Differs: the log's buffers never run out, and its tail is never pushed; committing tasks do not sleep while a push swaps the lists.

use super::bio::{BioId, BioKind};
use super::{CilPush, FileId, FsWork, Stage};
use crate::wait::WaitQueue;
use crate::workqueue::{Queue, Work};
use crate::{Os, Step, charge, paths};
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::CpuId;

/// Buffers of the log (`logbufs`), each with its wait queues.
const ICLOGS: usize = 8;
/// Lines that transactions write: the reserve and the write head, the context's lock, the list with its lock.
const LINES: &[&str] = &["xlog: l_reserve_head", "xlog: l_write_head", "xfs_cil: xc_ctx_lock", "xfs_cil: xc_cil"];

/// The log, by numbers of checkpoints.
#[derive(Debug)]
pub(super) struct Log {
    /// The last one that is in a log buffer.
    pushed: u64,
    /// The last one whose push was asked for.
    push_queued: u64,
    /// The last one in a buffer that was closed, and the last one on the device.
    closed: u64,
    written: u64,
    /// Buffers on their way, the oldest first: the last checkpoint of each.
    in_flight: VecDeque<u64>,
    /// How many buffers have reached the device with all before them, and which have before one of those.
    buffers: u64,
    done: Vec<u64>,
    push_wait: WaitQueue,
    iclogs: Vec<InCore>,
    first_line: Line,
}

/// xfs_log_priv.h: xlog_in_core: who waits until it is written, and who until all before it are, too.
#[derive(Debug)]
struct InCore {
    write_wait: WaitQueue,
    force_wait: WaitQueue,
}

impl Log {
    /// `allocate`: fresh lines, as many as there are names.
    pub fn new(mut allocate: impl FnMut(&'static [&'static str]) -> Line) -> Log {
        let mut queue = |name| WaitQueue::new(allocate(name));
        let push_wait = queue(&["xfs_cil: xc_commit_wait"]);
        let iclog = |_| InCore {
            write_wait: queue(&["xlog_in_core: ic_write_wait"]),
            force_wait: queue(&["xlog_in_core: ic_force_wait"]),
        };
        let iclogs = (0..ICLOGS).map(iclog).collect();
        let first_line = allocate(LINES);
        Log {
            pushed: 0,
            push_queued: 0,
            closed: 0,
            written: 0,
            in_flight: VecDeque::new(),
            buffers: 0,
            done: Vec::new(),
            push_wait,
            iclogs,
            first_line,
        }
    }

    /// The checkpoint that takes what changes now.
    pub fn current(&self) -> u64 {
        self.pushed + 1
    }

    fn line(&self, name: usize) -> Line {
        Line { index: self.first_line.index + name as u32, ..self.first_line }
    }

    /// A buffer by its number, counted from the first that was ever written.
    fn iclog(&mut self, number: u64) -> &mut InCore {
        &mut self.iclogs[number as usize % ICLOGS]
    }

    /// xfs_log_cil.c: xfs_log_commit_cil(), with what xfs_log_reserve() did before: the lines that every transaction writes.
    pub fn xfs_log_commit_cil<S: Scheduler>(&self, sched: &mut S, cpu: CpuId) {
        let [reserve, write, context, items] = [0, 1, 2, 3].map(|name| self.line(name));
        // Reserved, and given back as far as it was not needed.
        for line in [reserve, write, context, write, reserve] {
            sched.arch_mut().atomic(cpu, line);
        }
        sched.arch_mut().lock(cpu, items);
        sched.arch_mut().unlock(cpu, items);
        sched.arch_mut().atomic(cpu, context);
    }
}

impl Os {
    /// xfs_file.c: xfs_file_fsync(), behind its data; xfs_log.c: _xfs_log_force_lsn(), for the last change of the file.
    pub(super) fn xfs_log_force<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        file: FileId,
        stage: &mut Stage,
    ) -> Step {
        let rule = self.fs_rules.cil_push;
        let checkpoint = match *stage {
            Stage::Push(checkpoint) | Stage::Prior { checkpoint, .. } | Stage::Log { checkpoint, .. } => checkpoint,
            _ => {
                let checkpoint = self.fs().inode(file).logged;
                if self.fs().xfs.written >= checkpoint {
                    // The file is not pinned: nothing of it is on its way.
                    return self.blkdev_issue_flush(sched, cpu, task, stage);
                }
                charge(sched, cpu, paths::XFS_LOG_FORCE);
                *stage = Stage::Push(checkpoint);
                checkpoint
            }
        };
        if self.fs().xfs.pushed < checkpoint {
            if self.fs().xfs.push_queued < checkpoint {
                self.fs().xfs.push_queued = checkpoint;
                let queue = if rule == CilPush::Bound { Queue::Bound } else { Queue::Unbound };
                self.queue_work(sched, cpu, queue, Work::Fs(FsWork::CilPush));
            }
            self.fs().xfs.push_wait.prepare_to_wait(sched, cpu, task, false);
            return Step::Sleep { until: None };
        }
        self.sync_iclog(sched, cpu, task, checkpoint, stage)
    }

    /// The part of xfs_log.c: _xfs_log_force_lsn() behind the push: the buffer that holds `checkpoint`.
    fn sync_iclog<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        checkpoint: u64,
        stage: &mut Stage,
    ) -> Step {
        let log = &mut self.fs().xfs;
        match *stage {
            Stage::Push(_) => log.push_wait.finish_wait(sched, cpu, task),
            Stage::Prior { buffer, .. } => log.iclog(buffer).write_wait.finish_wait(sched, cpu, task),
            Stage::Log { buffer, .. } => log.iclog(buffer).force_wait.finish_wait(sched, cpu, task),
            _ => {}
        }
        let flushed = matches!(*stage, Stage::Log { flushed: true, .. });
        let log = &mut self.fs().xfs;
        if log.written >= checkpoint {
            return if flushed { Step::Done(0) } else { self.blkdev_issue_flush(sched, cpu, task, stage) };
        }
        let next = log.buffers + log.in_flight.len() as u64;
        if log.closed >= checkpoint {
            let at = log.in_flight.partition_point(|&last| last < checkpoint) as u64;
            let buffer = log.buffers + at;
            *stage = Stage::Log { checkpoint, buffer, flushed };
            log.iclog(buffer).force_wait.prepare_to_wait(sched, cpu, task, false);
        } else if matches!(*stage, Stage::Push(_)) && !log.in_flight.is_empty() {
            *stage = Stage::Prior { checkpoint, buffer: next - 1 };
            log.iclog(next - 1).write_wait.prepare_to_wait(sched, cpu, task, false);
        } else {
            // All that was pushed by now goes with it.
            log.closed = log.pushed;
            log.in_flight.push_back(log.closed);
            *stage = Stage::Log { checkpoint, buffer: next, flushed: true };
            charge(sched, cpu, paths::XLOG_SYNC);
            let bio = self.fs().bios.add(BioKind::Log { buffer: next }, super::BLOCK, task);
            self.submit_bio(sched, cpu, bio);
            self.fs().xfs.iclog(next).force_wait.prepare_to_wait(sched, cpu, task, false);
        }
        Step::Sleep { until: None }
    }

    /// xfs_log_cil.c: xlog_cil_push_work(): the open checkpoint goes into a log buffer.
    pub(super) fn xlog_cil_push_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        let context = self.fs().xfs.line(2);
        sched.arch_mut().atomic(cpu, context);
        charge(sched, cpu, paths::XLOG_CIL_PUSH_WORK);
        let log = &mut self.fs().xfs;
        log.pushed += 1;
        log.push_wait.wake_up(sched, cpu, WakeFlags::NONE, 0);
    }

    /// xfs_log.c: xlog_iodone(), in the log's worker: xlog_state_done_syncing() wakes who waited for this buffer alone, and
    /// xlog_state_do_callback() who waited for what it holds, once all before it are done.
    pub(super) fn xlog_iodone<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        charge(sched, cpu, paths::XLOG_IODONE);
        let fs = self.fs();
        let BioKind::Log { buffer } = fs.bios.bio(id).kind else { unreachable!("a write of the log has ended") };
        fs.bios.free(id);
        fs.xfs.iclog(buffer).write_wait.wake_up(sched, cpu, WakeFlags::NONE, 0);
        fs.xfs.done.push(buffer);
        while let Some(at) = fs.xfs.done.iter().position(|&done| done == fs.xfs.buffers) {
            fs.xfs.done.swap_remove(at);
            let number = fs.xfs.buffers;
            fs.xfs.written = fs.xfs.in_flight.pop_front().expect("it was on its way");
            fs.xfs.buffers += 1;
            fs.xfs.iclog(number).force_wait.wake_up(sched, cpu, WakeFlags::NONE, 0);
        }
    }
}
