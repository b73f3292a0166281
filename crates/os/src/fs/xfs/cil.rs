//! fs/xfs/xfs_log_cil.c: changes gather in a checkpoint, and a worker writes it into the log's buffers.
//!
//! In order to take the changes, the worker keeps out tasks that are about to commit; these sleep meanwhile
//! (`xc_ctx_lock`). Then it copies the changes into the buffers. A full buffer goes to the disk at once, as durable as
//! the last one. If all eight are on their way the worker sleeps (`l_flush_wait`), and another worker does the
//! remaining work of its CPU.
//!
//! A task that wants a checkpoint in the log may request a push only when none is queued or under way. Until then it
//! waits for the end of the present one (flush_work(), v3.5 and later; by v6.1 for all of the queue's work), and then
//! for its own in the same way. So a task that comes while another task's checkpoint is written sleeps twice, and the
//! next push is done where it wakes up, not where the last one was.
//!
//! Differs: a task that slept while changes were taken does not keep the next worker from taking them.

use super::item::{Item, Transaction};
use super::{Checkpoint, ICLOG_BYTES, ICLOGS, InFlight, LOG_BYTES, Log};
use crate::fs::bio::BioKind;
use crate::fs::{CilPush, FileId, Stage};
use crate::workqueue::{Queue, Work};
use crate::{Os, Step, charge, paths};
use sched::arch::Arch;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use units::CpuId;

/// XLOG_CIL_SPACE_LIMIT: a checkpoint of this size is written without a request.
const SPACE_LIMIT: u64 = LOG_BYTES / 8;

/// The progress of the worker that writes a checkpoint.
#[derive(Debug, Default)]
pub(in crate::fs) enum Push {
    #[default]
    Idle,
    /// Takes the changes.
    Swapping,
    /// Has this many bytes of the checkpoint still to write.
    Writing { checkpoint: Checkpoint, left: u64 },
}

impl Log {
    /// xfs_log_cil.c: xfs_log_commit_cil(). Returns whether a transaction's changes are in the open checkpoint;
    /// otherwise its task is about to sleep.
    pub fn xfs_log_commit_cil<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        transaction: Transaction,
        items: impl Iterator<Item = Item>,
    ) -> bool {
        let [context, list] = [2, 3].map(|name| self.line(name));
        sched.arch_mut().atomic(cpu, context);
        if matches!(self.push, Push::Swapping) {
            self.context_wait.prepare_uninterruptible(sched, cpu, task, true);
            return false;
        }
        self.context_wait.finish_wait(sched, cpu, task);
        sched.arch_mut().lock(cpu, list);
        let logged = self.xlog_cil_insert_items(items);
        sched.arch_mut().unlock(cpu, list);
        self.space.xlog_ungrant_log_space(sched, cpu, transaction, logged);
        sched.arch_mut().atomic(cpu, context);
        true
    }

    /// xfs_log_cil.c: xlog_cil_insert_items(). Returns by how many bytes the checkpoint grows.
    fn xlog_cil_insert_items(&mut self, items: impl Iterator<Item = Item>) -> u64 {
        let mut logged = 0;
        for item in items {
            let state = self.items.get(item);
            let growth = item.growth(state.logged);
            if state.logged == 0 {
                state.pins += 1;
                self.open.push(item);
            }
            state.logged += growth;
            logged += growth;
        }
        self.open_bytes += logged;
        logged
    }

    /// xfs_aops.c: xfs_setfilesize(), in the worker that ends a write to fresh blocks.
    pub fn xfs_setfilesize(&mut self, file: FileId) {
        let logged = self.xlog_cil_insert_items(std::iter::once(Item::Inode(file.0)));
        self.space.granted += logged;
    }

    /// workqueue.c: start_flush_work(), for the push. Returns whether such work is queued or under way; then `task`
    /// waits for its end.
    #[doc(alias = "insert_wq_barrier")]
    fn flush_work(&mut self, task: TaskId) -> bool {
        if self.push_pending {
            self.pending_flushers.push(task);
        } else if !matches!(self.push, Push::Idle) {
            self.flushers.push(task);
        } else {
            return false;
        }
        true
    }

    /// Whether this checkpoint, or an earlier one, is being pushed: on the list `xc_committing`, without its place in
    /// the log.
    fn is_committing(&self, checkpoint: u64) -> bool {
        match &self.push {
            Push::Idle => false,
            Push::Swapping => self.current <= checkpoint,
            Push::Writing { checkpoint: other, .. } => other.number <= checkpoint,
        }
    }

    /// Puts all changes of the open checkpoint into a checkpoint of their own.
    pub(super) fn swap(&mut self) {
        let items = std::mem::take(&mut self.open);
        for &item in &items {
            self.items.get(item).logged = 0;
        }
        let checkpoint = Checkpoint { number: self.current, begins: None, items };
        self.push = Push::Writing { checkpoint, left: std::mem::take(&mut self.open_bytes) };
        self.current += 1;
    }
}

impl Os {
    /// xfs_log_cil.c: xlog_cil_push_background()
    pub(in crate::fs) fn xlog_cil_push_background<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        if self.fs().xfs.open_bytes >= SPACE_LIMIT {
            let current = self.fs().xfs.current;
            self.queue_push(sched, cpu, current);
        }
    }

    /// xfs_log_cil.c: xlog_cil_force_lsn(). Returns whether all changes up to `checkpoint` are in log buffers;
    /// otherwise `task` is about to sleep, and will call again. A task waits for the push that it has requested as for
    /// any other: by waiting for the work as a whole. Only if another task was quicker to request a push, and that one
    /// has begun, does it wait for that checkpoint instead.
    pub(super) fn xlog_cil_force_lsn<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        checkpoint: u64,
        stage: &mut Stage,
    ) -> bool {
        if let Stage::Push(_) = *stage {
            self.fs().xfs.push_wait.finish_wait(sched, cpu, task);
        }
        let mut flushed = matches!(*stage, Stage::FlushWork(_));
        loop {
            if !self.xlog_cil_push_now(sched, cpu, task, checkpoint, flushed) {
                *stage = Stage::FlushWork(checkpoint);
                return false;
            }
            let log = &mut self.fs().xfs;
            if log.is_committing(checkpoint) {
                *stage = Stage::Push(checkpoint);
                log.push_wait.prepare_uninterruptible(sched, cpu, task, true);
                return false;
            }
            if checkpoint < log.current || log.open.is_empty() {
                return true;
            }
            flushed = false;
        }
    }

    /// xfs_log_cil.c: xlog_cil_push_now(): has a worker write all changes up to this checkpoint, if nobody has
    /// requested that. But if a push is queued or under way, `task` first sleeps until it is over (flush_work(), unless
    /// `flushed`); then this returns false.
    fn xlog_cil_push_now<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        checkpoint: u64,
        flushed: bool,
    ) -> bool {
        let log = &mut self.fs().xfs;
        if !flushed && log.flush_work(task) {
            sched.set_current_state(cpu, TaskState::Uninterruptible);
            return false;
        }
        if !log.open.is_empty() {
            self.queue_push(sched, cpu, checkpoint);
        }
        true
    }

    /// Has a worker write all changes up to this checkpoint, if nobody has requested that.
    fn queue_push<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, checkpoint: u64) {
        let rule = self.fs_rules.cil_push;
        let log = &mut self.fs().xfs;
        if log.push_queued >= checkpoint {
            return;
        }
        log.push_queued = checkpoint;
        // The work item does not run twice at the same time: the worker that runs it goes on with this.
        let begun = !matches!(log.push, Push::Idle);
        if !std::mem::replace(&mut log.push_pending, true) && !begun {
            let queue = if rule == CilPush::Bound { Queue::Bound } else { Queue::Unbound };
            self.queue_work(sched, cpu, queue, Work::CilPush);
        }
    }

    /// workqueue.c: wq_barrier_func(), for each task that waits for the finished push: each is a work item of its own
    /// behind it, in reverse order.
    fn wq_barrier_func<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        while let Some(task) = self.fs().xfs.flushers.pop() {
            charge(sched, cpu, paths::PROCESS_ONE_WORK);
            sched.wake(cpu, task, WakeFlags::NONE);
        }
    }

    /// xfs_log_cil.c: xlog_cil_push(), in a worker: writes the open checkpoint into the log's buffers.
    pub(in crate::fs) fn xlog_cil_push<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) -> Step {
        loop {
            let context = self.fs().xfs.line(2);
            let log = &mut self.fs().xfs;
            match &mut log.push {
                Push::Idle => {
                    self.wq_barrier_func(sched, cpu);
                    let log = &mut self.fs().xfs;
                    if !std::mem::take(&mut log.push_pending) {
                        return Step::Done(0);
                    }
                    log.flushers = std::mem::take(&mut log.pending_flushers);
                    if log.open.is_empty() || log.push_queued < log.current {
                        continue;
                    }
                    sched.arch_mut().atomic(cpu, context);
                    charge(sched, cpu, paths::XLOG_CIL_SWAP);
                    log.push = Push::Swapping;
                    return Step::Continues;
                }
                Push::Swapping => {
                    let bytes = log.open_bytes;
                    log.swap();
                    sched.arch_mut().atomic(cpu, context);
                    log.context_wait.wake_up(sched, cpu, WakeFlags::NONE, 0);
                    charge(sched, cpu, paths::XLOG_CIL_PUSH_WORK);
                    sched.arch_mut().copy(cpu, bytes);
                }
                Push::Writing { checkpoint, left } => {
                    // xfs_log.c: xlog_state_get_iclog_space()
                    if log.in_flight.len() == ICLOGS {
                        log.flush_wait.prepare_uninterruptible(sched, cpu, task, true);
                        return Step::Sleep;
                    }
                    log.flush_wait.finish_wait(sched, cpu, task);
                    checkpoint.begins.get_or_insert(log.space.head);
                    let room = ICLOG_BYTES - log.filled;
                    if *left > room {
                        *left -= room;
                        log.filled = ICLOG_BYTES;
                        self.xlog_sync(sched, cpu, task);
                        continue;
                    }
                    log.filled += *left;
                    let Push::Writing { checkpoint, .. } = std::mem::take(&mut log.push) else {
                        unreachable!("a checkpoint is being written")
                    };
                    log.pushed = checkpoint.number;
                    log.checkpoints.push_back(checkpoint);
                    log.push_wait.wake_up(sched, cpu, WakeFlags::NONE, 0);
                }
            }
        }
    }

    /// xfs_log.c: xlog_state_switch_iclogs() and xlog_sync(): submits the buffer that is being filled to the disk.
    pub(in crate::fs) fn xlog_sync<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) {
        charge(sched, cpu, paths::XLOG_SYNC);
        let log = &mut self.fs().xfs;
        // The checksum.
        sched.arch_mut().copy(cpu, log.filled);
        let buffer = log.next_buffer();
        log.closed = log.pushed;
        let (begins, bytes) = log.space.close(std::mem::take(&mut log.filled));
        log.in_flight.push_back(InFlight { last: log.closed, begins });
        let bio = self.fs().bios.add(BioKind::Log { buffer }, bytes, task);
        self.submit_bio(sched, cpu, bio);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::groups::Header;
    use sched::layout::{Line, Region};

    fn log() -> Log {
        let mut next = 0;
        Log::new(|names| {
            next += names.len() as u32;
            Line { region: Region::Os, index: next - names.len() as u32 }
        })
    }

    /// Writes the open checkpoint to the disk, with its begin at `begins` in the log.
    fn write(log: &mut Log, begins: u64) {
        let number = log.current;
        log.swap();
        let Push::Writing { mut checkpoint, .. } = std::mem::take(&mut log.push) else {
            unreachable!("it was swapped")
        };
        checkpoint.begins = Some(begins);
        log.checkpoints.push_back(checkpoint);
        log.xlog_cil_committed(number);
    }

    #[test]
    fn what_rests_holds_the_tail_and_what_changes_again_moves_on() {
        let mut log = log();
        let [inode, other] = [Item::Inode(1), Item::Inode(2)];
        assert_eq!(log.xlog_cil_insert_items([inode, other, inode].into_iter()), 2 * 284, "each once");
        assert_eq!(log.items.get(inode).pins, 1);
        write(&mut log, 100);
        assert_eq!((log.items.get(inode).pins, log.ail.xfs_ail_min_lsn()), (0, Some(100)));
        log.xlog_cil_insert_items([inode].into_iter());
        write(&mut log, 900);
        assert_eq!(log.ail.xfs_ail_min_lsn(), Some(100), "the other one's");
        log.ail.move_to(other, Some(100), None);
        assert_eq!(log.ail.xfs_ail_min_lsn(), Some(900));
    }

    #[test]
    fn a_change_on_its_way_pins_and_the_next_one_counts_anew() {
        let mut log = log();
        let header = Item::Header(2, Header::Agf);
        let first = log.xlog_cil_insert_items([header].into_iter());
        log.swap();
        assert_eq!(log.current(), 2);
        assert_eq!(log.xlog_cil_insert_items([header].into_iter()), first);
        assert_eq!(log.items.get(header).pins, 2);
    }
}
