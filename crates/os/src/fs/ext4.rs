//! fs/ext4 and fs/jbd2, with ordered data: fsync() writes the data and, where the journal does not hold the file's last change yet, waits for
//! the commit of its transaction (ext4/fsync.c, jbd2/journal.c, jbd2/commit.c).
//!
//! One thread, jbd2, commits. It writes the transaction's blocks and waits for them, then the block that commits it, past the device's
//! cache, and wakes all who wait. Changes meanwhile belong to the next transaction.

use super::{BioKind, FileId, Stage};
use crate::wait::WaitQueue;
use crate::{Os, Step, charge, paths};
use sched::arch::Arch;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use units::CpuId;

/// The journal, by numbers of transactions.
#[derive(Debug)]
pub(super) struct Journal {
    committed: u64,
    /// The last one whose commit was asked for.
    commit_request: u64,
    /// The one that is being committed.
    committing: Option<u64>,
    done_commit: WaitQueue,
    /// jbd2, while it sleeps for something to do.
    idle: Option<TaskId>,
}

impl Journal {
    pub fn new(done_commit: WaitQueue) -> Journal {
        Journal { committed: 0, commit_request: 0, committing: None, done_commit, idle: None }
    }

    /// The transaction that takes what changes now.
    pub fn running(&self) -> u64 {
        self.committing.unwrap_or(self.committed) + 1
    }
}

/// How far jbd2 is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jbd2(Burst);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Burst {
    Idle,
    /// Waits for the blocks, or for the one that commits.
    Blocks(super::BioId),
    CommitBlock(super::BioId),
}

impl Jbd2 {
    pub const BEGIN: Jbd2 = Jbd2(Burst::Idle);
}

impl Os {
    /// ext4/fsync.c: ext4_sync_file(), behind its data.
    pub(super) fn ext4_sync_file<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        file: FileId,
        stage: &mut Stage,
    ) -> Step {
        let tid = match *stage {
            Stage::Commit(tid) => tid,
            _ => self.fs().inode(file).logged,
        };
        let journal = &mut self.fs().journal;
        if journal.committed >= tid {
            journal.done_commit.finish_wait(sched, cpu, task);
            let waited = *stage == Stage::Commit(tid);
            return if waited { Step::Done(0) } else { self.blkdev_issue_flush(sched, cpu, task, stage) };
        }
        if *stage != Stage::Commit(tid) {
            *stage = Stage::Commit(tid);
            charge(sched, cpu, paths::JBD2_LOG_START_COMMIT);
            if journal.commit_request < tid {
                journal.commit_request = tid;
                if let Some(jbd2) = journal.idle.take() {
                    sched.wake(cpu, jbd2, WakeFlags::NONE);
                }
            }
        }
        self.fs().journal.done_commit.prepare_to_wait(sched, cpu, task, false);
        Step::Sleep { until: None }
    }

    /// jbd2/journal.c: kjournald2(), with jbd2_journal_commit_transaction(), for ever.
    pub(crate) fn kjournald2<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        state: &mut Jbd2,
    ) -> Step {
        loop {
            match state.0 {
                Burst::Idle => {
                    let journal = &mut self.fs().journal;
                    if journal.commit_request <= journal.committed {
                        journal.idle = Some(task);
                        sched.set_current_state(cpu, TaskState::Interruptible);
                        return Step::Sleep { until: None };
                    }
                    journal.committing = Some(journal.committed + 1);
                    charge(sched, cpu, paths::JBD2_COMMIT_BLOCKS);
                    let bio = self.fs().add_bio(BioKind::Journal, task);
                    self.submit_bio(sched, cpu, bio);
                    state.0 = Burst::Blocks(bio);
                }
                Burst::Blocks(bio) | Burst::CommitBlock(bio) if !self.fs().bio(bio).done => {
                    return super::wait_for_io(sched, cpu);
                }
                Burst::Blocks(bio) => {
                    sched.set_in_iowait(cpu, false);
                    self.fs().free_bios.push(bio);
                    charge(sched, cpu, paths::JBD2_COMMIT_RECORD);
                    let bio = self.fs().add_bio(BioKind::Journal, task);
                    // Past the cache: a flush before it.
                    let now = sched.arch().sched_clock(cpu);
                    let fs = self.fs();
                    let latency = fs.device.flush + fs.device.write;
                    let done = fs.device.submit(now, latency);
                    self.announce(cpu, bio, done);
                    state.0 = Burst::CommitBlock(bio);
                }
                Burst::CommitBlock(bio) => {
                    sched.set_in_iowait(cpu, false);
                    self.fs().free_bios.push(bio);
                    charge(sched, cpu, paths::JBD2_COMMIT_DONE);
                    let journal = &mut self.fs().journal;
                    journal.committed = journal.committing.take().expect("it has just been written");
                    journal.done_commit.wake_up(sched, cpu, WakeFlags::NONE, 0);
                    state.0 = Burst::Idle;
                }
            }
        }
    }
}
