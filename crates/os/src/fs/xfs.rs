//! fs/xfs: fsync() forces the log (xfs_file.c, xfs_log.c, xfs_log_cil.c), with three sleeps at most.
//!
//! 1. For its data, which the caller submits; a worker ends the write where it went to fresh blocks.
//! 2. For the push of the checkpoint that holds the file's changes, which a worker does ([`super::CilPush`]): until v5.3 one of the CPU of the
//!    caller, who has just left it. Whoever comes while a push is queued, and needs no later one, waits for the same.
//! 3. For the log buffer that holds the checkpoint. The caller gives it to the block layer, whose flush machinery leaves it to a worker
//!    (kblockd, bound, of high priority); when the device is done, the log's own worker (bound, of high priority, on the CPU of the
//!    interrupt) wakes everybody whose checkpoint it held.
//!
//! Differs: a log write and its flushes are one request of the device; the log's buffers never run out.

use super::{BioId, BioKind, CilPush, FileId, FsWork, Stage};
use crate::wait::WaitQueue;
use crate::workqueue::{Queue, Work};
use crate::{Os, Step, charge, paths};
use sched::sched::{TaskId, WakeFlags};
use sched::scheduler::Scheduler;
use units::CpuId;

/// The log, by numbers of checkpoints.
#[derive(Debug)]
pub(super) struct Log {
    /// The last one that is in a log buffer.
    pushed: u64,
    /// The last one whose push was asked for.
    push_queued: u64,
    /// The last one in a buffer that is on its way to the device, and the last one that is there.
    syncing: u64,
    written: u64,
    push_wait: WaitQueue,
    force_wait: WaitQueue,
}

impl Log {
    pub fn new(push_wait: WaitQueue, force_wait: WaitQueue) -> Log {
        Log { pushed: 0, push_queued: 0, syncing: 0, written: 0, push_wait, force_wait }
    }

    /// The checkpoint that takes what changes now.
    pub fn current(&self) -> u64 {
        self.pushed + 1
    }
}

impl Os {
    /// xfs_log.c: xfs_log_force_lsn(), for the last change of a file.
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
            Stage::Push(checkpoint) | Stage::Log(checkpoint) => checkpoint,
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
        if let Stage::Push(_) = *stage {
            self.fs().xfs.push_wait.finish_wait(sched, cpu, task);
            *stage = Stage::Log(checkpoint);
        }
        let log = &mut self.fs().xfs;
        if log.written >= checkpoint {
            log.force_wait.finish_wait(sched, cpu, task);
            return Step::Done(0);
        }
        if log.syncing < checkpoint {
            // All that was pushed by now goes with it.
            log.syncing = log.pushed;
            let held = log.syncing;
            charge(sched, cpu, paths::XLOG_SYNC);
            let bio = self.fs().add_bio(BioKind::Log { checkpoint: held }, task);
            self.queue_work(sched, cpu, Queue::BoundHighpri, Work::Fs(FsWork::Dispatch(bio)));
        }
        self.fs().xfs.force_wait.prepare_to_wait(sched, cpu, task, false);
        Step::Sleep { until: None }
    }

    /// xfs_log_cil.c: xlog_cil_push_work(): the open checkpoint goes into a log buffer.
    pub(super) fn xlog_cil_push_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        charge(sched, cpu, paths::XLOG_CIL_PUSH_WORK);
        let log = &mut self.fs().xfs;
        log.pushed += 1;
        log.push_wait.wake_up(sched, cpu, WakeFlags::NONE, 0);
    }

    /// xfs_log.c: xlog_iodone(), in the log's worker.
    pub(super) fn xlog_iodone<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        charge(sched, cpu, paths::XLOG_IODONE);
        let fs = self.fs();
        let BioKind::Log { checkpoint } = fs.bio(id).kind else { unreachable!("a write of the log has ended") };
        fs.free_bios.push(id);
        fs.xfs.written = fs.xfs.written.max(checkpoint);
        fs.xfs.force_wait.wake_up(sched, cpu, WakeFlags::NONE, 0);
    }
}
