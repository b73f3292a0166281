//! fs/ext4 and fs/jbd2, with ordered data: fsync() writes the data. If the journal does not yet hold the file's last
//! change, it waits for the commit of that change's transaction (ext4/fsync.c, jbd2/journal.c, jbd2/commit.c).
//!
//! One thread, jbd2, commits. It closes the transaction: calls inside may still leave it, and no call may enter. It
//! writes the transaction's blocks and waits for them; then it writes the commit block, with a flush and past the
//! device's cache, and wakes all waiting tasks. Changes made meanwhile belong to the next transaction. But each change
//! of an inode or a block also changes the group descriptors, and these are in every transaction. While their copy is
//! on its way to the journal, tasks that want to change them sleep (jbd2/transaction.c: do_get_write_access(),
//! BH_Shadow).
//!
//! Since v5.6 data without blocks get unwritten blocks, and a worker converts these once the data are there. That
//! changes the inode in the transaction that then runs, so fsync() after it usually has a commit to wait for.
//!
//! Differs: jbd2 does not wait for data that got their blocks in its transaction (until v5.6), because the device ends
//! these before the blocks that are sent to it later. A transaction and the journal never run out of room (the
//! journal's oldest part is not written back). A transaction is committed on request, not every 5 s. A write's own
//! change (times, size) waits for nothing.

use super::bio::BioKind;
use super::{FileId, Stage};
use crate::block::BioId;
use crate::wait::WaitQueue;
use crate::{Os, Step, charge, paths};
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::BTreeSet;
use units::CpuId;

/// Inodes per block, files per directory (guess, as on XFS), and groups of 128 MB on a small disk.
const INODES_OF_BLOCK: u32 = 16;
const FILES_OF_DIRECTORY: u32 = 8;
const GROUPS: u32 = 16;
/// Blocks of every transaction beside those that were changed: the descriptor block, the group descriptors, the
/// superblock.
const OWN_BLOCKS: u64 = 3;

/// A block, which is journalled as a whole, once per transaction, however often it is changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Block {
    Inodes(u32),
    Directory(u32),
    /// Which inodes and blocks of a group are free.
    Bitmaps(u32),
}

/// The journal. Transactions are numbered.
#[derive(Debug)]
pub(super) struct Journal {
    committed: u64,
    /// The last transaction whose commit was requested.
    commit_request: u64,
    /// The transaction that is being committed, and the phase of its commit.
    committing: Option<u64>,
    phase: Phase,
    /// Calls inside the running transaction, or inside the one that is being closed.
    updates: u32,
    /// The blocks that the running transaction has changed.
    blocks: BTreeSet<Block>,
    /// The blocks of the transaction that is being committed, while they are on their way to the journal (BH_Shadow).
    shadows: BTreeSet<Block>,
    /// j_state_lock, which every call takes in order to enter.
    state_lock: Line,
    done_commit: WaitQueue,
    /// Tasks that wait for a transaction to be closed, and tasks that wait for its blocks.
    locked: WaitQueue,
    shadow: WaitQueue,
    /// jbd2, while it sleeps until there is work, or until the last call has left.
    idle: Option<TaskId>,
    closing: Option<TaskId>,
}

/// jbd2.h: t_state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Running,
    /// No call may enter, until all calls inside have left.
    Locked,
    /// Its blocks are on their way to the journal.
    Blocks,
    /// The blocks are in the journal, which jbd2 has not seen yet.
    DFlush,
    /// Its commit block is on its way.
    JFlush,
}

impl Journal {
    /// `allocate`: allocates fresh lines, one for each name.
    pub fn new(mut allocate: impl FnMut(&'static [&'static str]) -> Line) -> Journal {
        Journal {
            committed: 0,
            commit_request: 0,
            committing: None,
            phase: Phase::Running,
            updates: 0,
            blocks: BTreeSet::new(),
            shadows: BTreeSet::new(),
            state_lock: allocate(&["journal: j_state_lock"]),
            done_commit: WaitQueue::new(allocate(&["journal: j_wait_done_commit"])),
            locked: WaitQueue::new(allocate(&["journal: j_wait_transaction_locked"])),
            shadow: WaitQueue::new(allocate(&["journal: BH_Shadow"])),
            idle: None,
            closing: None,
        }
    }

    /// The transaction to which a change made now belongs.
    pub fn running(&self) -> u64 {
        // A call inside a transaction that is being closed still changes that one.
        let closed = self.committing.filter(|_| self.phase != Phase::Locked);
        closed.unwrap_or(self.committed) + 1
    }

    /// Notes that a file's inode changes; `names`: also its directory, and the bitmaps of its group.
    pub fn change(&mut self, file: FileId, names: bool) {
        self.blocks.insert(Block::Inodes(file.0 / INODES_OF_BLOCK));
        if names {
            let directory = file.0 / FILES_OF_DIRECTORY;
            self.blocks.extend([Block::Directory(directory), Block::Bitmaps(directory % GROUPS)]);
        }
    }

    /// transaction.c: start_this_handle(), and do_get_write_access() for the group descriptors. Returns whether the
    /// call is in the transaction now; otherwise it is about to sleep.
    pub fn start_this_handle<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) -> bool {
        sched.arch_mut().atomic(cpu, self.state_lock);
        // wait_on_bit_io()
        sched.set_in_iowait(cpu, self.phase == Phase::Blocks);
        let queue = match self.phase {
            Phase::Running | Phase::DFlush | Phase::JFlush => {
                self.updates += 1;
                self.locked.finish_wait(sched, cpu, task);
                self.shadow.finish_wait(sched, cpu, task);
                return true;
            }
            Phase::Locked => &mut self.locked,
            Phase::Blocks => &mut self.shadow,
        };
        queue.prepare_uninterruptible(sched, cpu, task, false);
        false
    }

    /// transaction.c: jbd2_journal_stop()
    pub fn jbd2_journal_stop<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        sched.arch_mut().atomic(cpu, self.state_lock);
        self.updates -= 1;
        if self.updates == 0
            && let Some(jbd2) = self.closing.take()
        {
            sched.wake(cpu, jbd2, WakeFlags::NONE);
        }
    }
}

/// The progress of jbd2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jbd2(Burst);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Burst {
    Idle,
    /// Waits for the last call inside to leave.
    Closing,
    /// Wait for the blocks, and for the commit block.
    Blocks(BioId),
    CommitBlock(BioId),
}

impl Jbd2 {
    pub const BEGIN: Jbd2 = Jbd2(Burst::Idle);
}

impl Os {
    /// ext4/fsync.c: ext4_sync_file(), after its data are written.
    pub(super) fn ext4_sync_file<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        file: FileId,
        stage: &mut Stage,
    ) -> Step {
        let tid = match *stage {
            Stage::Commit { tid, .. } => tid,
            _ => self.fs().inode(file).logged,
        };
        let journal = &mut self.fs().journal;
        if journal.committed >= tid {
            journal.done_commit.finish_wait(sched, cpu, task);
            let flushed = matches!(*stage, Stage::Commit { barrier: false, .. });
            return if flushed { Step::Done(0) } else { self.blkdev_issue_flush(sched, cpu, task, stage) };
        }
        if !matches!(*stage, Stage::Commit { .. }) {
            // journal.c: jbd2_trans_will_send_data_barrier(): the commit's flush comes too early for this file's data.
            let barrier = journal.committing == Some(tid) && journal.phase == Phase::JFlush;
            *stage = Stage::Commit { tid, barrier };
            charge(sched, cpu, paths::JBD2_LOG_START_COMMIT);
            let journal = &mut self.fs().journal;
            if journal.commit_request < tid {
                journal.commit_request = tid;
                if let Some(jbd2) = journal.idle.take() {
                    sched.wake(cpu, jbd2, WakeFlags::NONE);
                }
            }
        }
        self.fs().journal.done_commit.prepare_uninterruptible(sched, cpu, task, false);
        Step::Sleep
    }

    /// ext4/page-io.c: ext4_end_io_end(), with extents.c: ext4_convert_unwritten_io_end_vec(), in a worker: a file's
    /// data are in blocks that are still marked as unwritten. The handle was reserved, so it may enter while a
    /// transaction is being closed; it waits only for the block of its inode.
    pub(super) fn ext4_end_io_end<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        worker: TaskId,
        id: BioId,
    ) -> Step {
        let fs = self.fs();
        let bio = *fs.bios.bio(id);
        let BioKind::Data { file, .. } = bio.kind else { unreachable!("only data are converted") };
        let journal = &mut fs.journal;
        sched.arch_mut().atomic(cpu, journal.state_lock);
        let shadowed = journal.shadows.contains(&Block::Inodes(file.0 / INODES_OF_BLOCK));
        sched.set_in_iowait(cpu, shadowed);
        if shadowed {
            journal.shadow.prepare_uninterruptible(sched, cpu, worker, false);
            return Step::Sleep;
        }
        journal.shadow.finish_wait(sched, cpu, worker);
        charge(sched, cpu, paths::EXT4_END_IO_END);
        let fs = self.fs();
        fs.journal.change(file, false);
        fs.inode(file).logged = fs.journal.running();
        fs.bios.bio(id).done = true;
        sched.wake(cpu, bio.task, WakeFlags::NONE);
        Step::Done(0)
    }

    /// The blocks of a transaction are in the journal: their buffers may be changed again (commit.c: journal_end_buffer_io_sync()).
    pub(super) fn end_journal_blocks<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        let journal = &mut self.fs().journal;
        journal.phase = Phase::DFlush;
        journal.shadows.clear();
        journal.shadow.wake_up(sched, cpu, WakeFlags::NONE, 0);
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
                        return Step::Sleep;
                    }
                    journal.committing = Some(journal.committed + 1);
                    journal.phase = Phase::Locked;
                    state.0 = Burst::Closing;
                }
                Burst::Closing => {
                    let journal = &mut self.fs().journal;
                    if journal.updates > 0 {
                        journal.closing = Some(task);
                        sched.set_current_state(cpu, TaskState::Uninterruptible);
                        return Step::Sleep;
                    }
                    journal.phase = Phase::Blocks;
                    journal.locked.wake_up(sched, cpu, WakeFlags::NONE, 0);
                    charge(sched, cpu, paths::JBD2_COMMIT_BLOCKS);
                    // The two bitmaps of a group count as one block: seldom do both change.
                    let journal = &mut self.fs().journal;
                    journal.shadows = std::mem::take(&mut journal.blocks);
                    let blocks = journal.shadows.len() as u64 + OWN_BLOCKS;
                    let bio = self.fs().bios.add(BioKind::Journal, super::BLOCK * blocks, task);
                    self.submit_bio(sched, cpu, bio);
                    state.0 = Burst::Blocks(bio);
                }
                Burst::Blocks(bio) | Burst::CommitBlock(bio) if !self.fs().bios.bio(bio).done => {
                    return super::wait_for_io(sched, cpu);
                }
                Burst::Blocks(bio) => {
                    sched.set_in_iowait(cpu, false);
                    self.fs().bios.free(bio);
                    self.fs().journal.phase = Phase::JFlush;
                    charge(sched, cpu, paths::JBD2_COMMIT_RECORD);
                    let bio = self.fs().bios.add(BioKind::Commit, super::BLOCK, task);
                    self.submit_bio(sched, cpu, bio);
                    state.0 = Burst::CommitBlock(bio);
                }
                Burst::CommitBlock(bio) => {
                    sched.set_in_iowait(cpu, false);
                    self.fs().bios.free(bio);
                    charge(sched, cpu, paths::JBD2_COMMIT_DONE);
                    let journal = &mut self.fs().journal;
                    journal.committed = journal.committing.take().expect("it has just been written");
                    journal.phase = Phase::Running;
                    journal.done_commit.wake_up(sched, cpu, WakeFlags::NONE, 0);
                    state.0 = Burst::Idle;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::FsKind;
    use crate::fs::fixture::{CPU, machine};

    #[test]
    fn data_are_flushed_with_their_commit_until_jbd2_has_written_its_end() {
        for (phase, barrier) in [(Phase::Blocks, false), (Phase::DFlush, false), (Phase::JFlush, true)] {
            let (mut sched, mut os) = machine(FsKind::Ext4);
            let task = Scheduler::current(&sched, CPU).expect("a task runs");
            let bio = os.fs().bios.add(BioKind::Journal, 4_096, task);
            os.fs().inode(FileId(1)).logged = 1;
            let journal = &mut os.fs().journal;
            (journal.committing, journal.commit_request) = (Some(1), 1);
            journal.phase = Phase::Blocks;
            let mut jbd2 = Jbd2(Burst::Blocks(bio));
            if phase != Phase::Blocks {
                os.fs().bios.bio(bio).done = true;
                os.end_journal_blocks(&mut sched, CPU);
            }
            if phase == Phase::JFlush {
                os.kjournald2(&mut sched, CPU, task, &mut jbd2);
            }
            assert_eq!(os.fs().journal.phase, phase);
            let mut stage = Stage::Begin;
            os.ext4_sync_file(&mut sched, CPU, task, FileId(1), &mut stage);
            assert_eq!(stage, Stage::Commit { tid: 1, barrier }, "{phase:?}");
        }
    }
}
