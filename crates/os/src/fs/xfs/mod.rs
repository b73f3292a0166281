//! fs/xfs: fsync() forces the log (xfs_file.c, xfs_log.c, xfs_log_cil.c), with up to six sleeps:
//!
//! 1. For its data, which the caller submits. If the write went to fresh blocks, a worker ends it.
//! 2. For the push of the checkpoint that holds the file's changes. A worker does it ([`super::CilPush`], [`cil`]);
//!    until v5.3 it is a worker of the caller's CPU, which the caller has just left. A task that comes while a push is
//!    queued or under way first waits until the worker is done with it, whether it needs that push or a later one.
//! 3. For the preceding log buffer, while that is on its way to the device: meanwhile other tasks may put their
//!    checkpoints into the same buffer. So if checkpoints are small, the log writes one buffer at a time, with all that
//!    came together.
//! 4. For the buffer that holds the checkpoint's end. The first of the waiting tasks submits it. When it is on the
//!    device, the log's own worker (bound, of high priority, on the CPU of the interrupt) wakes all tasks whose
//!    checkpoints it held.
//! 5. A task that has not submitted the buffer itself does not know whether the device was flushed, so it flushes it.
//!
//! Every other call that changes something is a transaction. It reserves log space before it begins ([`space`]), and
//! may sleep for that. Its changes ([`item`]) go to the open checkpoint when it commits. When room is needed, a thread
//! of its own writes what the log holds to its final place ([`ail`]).
//!
//! Transactions of all tasks write the same few lines: the log's grant heads, the context's lock, the list of committed
//! items.
//!
//! Differs: the worker that ends a write to fresh blocks logs the file's size without reserving space or sleeping for
//! the context; buffers at the end of the log are not written in two parts; the log is not covered when nothing
//! happens.

mod ail;
mod cil;
pub(super) mod item;
mod space;

pub use ail::Xfsaild;

use super::bio::BioKind;
use super::{FileId, Stage};
use crate::block::BioId;
use crate::wait::WaitQueue;
use crate::{Os, Step, charge, paths};
use ail::Ail;
use cil::Push;
use item::{Item, Items};
use sched::layout::Line;
use sched::sched::{TaskId, WakeFlags};
use sched::scheduler::Scheduler;
use space::Space;
use std::collections::VecDeque;
use units::CpuId;

/// The size of the log that mkfs.xfs makes on a disk of less than some 20 GB (mkfs/xfs_mkfs.c:
/// XFS_MIN_REALISTIC_LOG_BLOCKS of 4 KiB).
pub(super) const LOG_BYTES: u64 = 2_560 * super::BLOCK;
/// Buffers of the log (`logbufs`), each with its wait queues, and how much each holds besides its header (`logbsize` of
/// 32 KiB).
const ICLOGS: usize = 8;
const HEADER: u64 = 512;
const ICLOG_BYTES: u64 = 32 * 1024 - HEADER;
/// Lines that transactions write: the reserve and the write head, the context's lock, the list with its lock.
const LINES: &[&str] = &["xlog: l_reserve_head", "xlog: l_write_head", "xfs_cil: xc_ctx_lock", "xfs_cil: xc_cil"];

/// The log. Checkpoints are numbered.
#[derive(Debug)]
pub(super) struct Log {
    /// The open checkpoint, to which changes go now: its number, its items, and how much of the log it needs.
    current: u64,
    open: Vec<Item>,
    open_bytes: u64,
    pub(super) items: Items,
    push: Push,
    /// Whether a push was requested that has not begun.
    push_pending: bool,
    /// The last checkpoint that is completely in log buffers.
    pushed: u64,
    /// The last checkpoint whose push was requested.
    push_queued: u64,
    /// The last checkpoint that ends in a closed buffer, and the last one on the device.
    closed: u64,
    written: u64,
    /// The checkpoints after that one, the oldest first.
    checkpoints: VecDeque<Checkpoint>,
    /// Bytes in the buffer that is being filled.
    filled: u64,
    /// Buffers on their way to the device, the oldest first.
    in_flight: VecDeque<InFlight>,
    /// How many buffers have reached the device together with all before them; and the later ones that have reached it
    /// already.
    buffers: u64,
    done: Vec<u64>,
    pub(super) space: Space,
    pub(super) ail: Ail,
    push_wait: WaitQueue,
    /// Tasks that wait for the end of the push under way, and of the requested one; in reverse order.
    flushers: Vec<TaskId>,
    pending_flushers: Vec<TaskId>,
    context_wait: WaitQueue,
    flush_wait: WaitQueue,
    iclogs: Vec<InCore>,
    first_line: Line,
}

/// xfs_log_priv.h: xfs_cil_ctx: changes on their way to the device.
#[derive(Debug)]
struct Checkpoint {
    number: u64,
    /// Its begin in the log, once that is known.
    begins: Option<u64>,
    items: Vec<Item>,
}

/// A buffer on its way to the device: the last checkpoint that ends in it or before, and where in the log it begins.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    last: u64,
    begins: u64,
}

/// xfs_log_priv.h: xlog_in_core: the tasks that wait until it is written, and those that wait until all before it are
/// written, too.
#[derive(Debug)]
struct InCore {
    write_wait: WaitQueue,
    force_wait: WaitQueue,
}

impl Log {
    /// `allocate`: allocates fresh lines, one for each name.
    pub fn new(mut allocate: impl FnMut(&'static [&'static str]) -> Line) -> Log {
        let mut queue = |name| WaitQueue::new(allocate(name));
        let push_wait = queue(&["xfs_cil: xc_commit_wait"]);
        let context_wait = queue(&["xfs_cil: xc_ctx_lock.wait_list"]);
        let flush_wait = queue(&["xlog: l_flush_wait"]);
        let iclog = |_| InCore {
            write_wait: queue(&["xlog_in_core: ic_write_wait"]),
            force_wait: queue(&["xlog_in_core: ic_force_wait"]),
        };
        let iclogs = (0..ICLOGS).map(iclog).collect();
        let first_line = allocate(LINES);
        let line = |name: u32| Line { index: first_line.index + name, ..first_line };
        Log {
            current: 1,
            open: Vec::new(),
            open_bytes: 0,
            items: Items::default(),
            push: Push::default(),
            push_pending: false,
            pushed: 0,
            push_queued: 0,
            closed: 0,
            written: 0,
            checkpoints: VecDeque::new(),
            filled: 0,
            in_flight: VecDeque::new(),
            buffers: 0,
            done: Vec::new(),
            space: Space::new(line(0), line(1)),
            ail: Ail::default(),
            push_wait,
            flushers: Vec::new(),
            pending_flushers: Vec::new(),
            context_wait,
            flush_wait,
            iclogs,
            first_line,
        }
    }

    /// The open checkpoint.
    pub fn current(&self) -> u64 {
        self.current
    }

    /// The last checkpoint with changes.
    fn last_change(&self) -> u64 {
        if self.open.is_empty() { self.current - 1 } else { self.current }
    }

    fn line(&self, name: usize) -> Line {
        Line { index: self.first_line.index + name as u32, ..self.first_line }
    }

    /// The number of the buffer that is being filled, counted from the first that was ever written.
    fn next_buffer(&self) -> u64 {
        self.buffers + self.in_flight.len() as u64
    }

    /// Whether the buffer before this one is on its way to the device. A buffer that has arrived may still wait for
    /// earlier ones.
    fn is_syncing(&self, next: u64) -> bool {
        !self.in_flight.is_empty() && !self.done.contains(&(next - 1))
    }

    /// The buffer of this number.
    fn iclog(&mut self, number: u64) -> &mut InCore {
        &mut self.iclogs[number as usize % ICLOGS]
    }

    /// xfs_log_cil.c: xlog_cil_committed(): what the checkpoints up to `last` hold is in the log, and is now to be
    /// written to its final place.
    fn xlog_cil_committed(&mut self, last: u64) {
        while self.checkpoints.front().is_some_and(|checkpoint| checkpoint.number <= last) {
            let checkpoint = self.checkpoints.pop_front().expect("it was looked at");
            for item in checkpoint.items {
                let state = self.items.get(item);
                state.pins -= 1;
                let from = std::mem::replace(&mut state.lsn, checkpoint.begins);
                self.ail.move_to(item, from, checkpoint.begins);
            }
        }
    }
}

impl Os {
    /// xfs_file.c: xfs_file_fsync(), after its data; xfs_log.c: _xfs_log_force_lsn(), for the file's last change.
    pub(super) fn xfs_log_force<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        file: FileId,
        stage: &mut Stage,
    ) -> Step {
        let checkpoint = self.fs().inode(file).logged;
        let step = self.log_force(sched, cpu, task, checkpoint, true, stage);
        match step {
            // It is not known to be flushed: either nothing of the file was on its way, or another task submitted the
            // buffer.
            Step::Done(0) => self.blkdev_issue_flush(sched, cpu, task, stage),
            Step::Done(_) => Step::Done(0),
            other => other,
        }
    }

    /// xfs_log.c: _xfs_log_force_lsn(): the outcome is 1 if `task` itself submitted the buffer. `gathers`: whether it
    /// waits first if the preceding buffer is on its way, which _xfs_log_force() does not do.
    fn log_force<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        checkpoint: u64,
        gathers: bool,
        stage: &mut Stage,
    ) -> Step {
        let checkpoint = match *stage {
            Stage::Prior { checkpoint, .. } | Stage::Log { checkpoint, .. } => {
                return self.sync_iclog(sched, cpu, task, checkpoint, gathers, stage);
            }
            Stage::FlushWork(checkpoint) | Stage::Push(checkpoint) => checkpoint,
            _ => {
                if self.fs().xfs.written >= checkpoint {
                    return Step::Done(0);
                }
                charge(sched, cpu, paths::XFS_LOG_FORCE);
                checkpoint
            }
        };
        if !self.xlog_cil_force_lsn(sched, cpu, task, checkpoint, stage) {
            return Step::Sleep;
        }
        self.sync_iclog(sched, cpu, task, checkpoint, gathers, stage)
    }

    /// The part of xfs_log.c: _xfs_log_force_lsn() after the push: the buffer that holds `checkpoint`.
    fn sync_iclog<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        checkpoint: u64,
        gathers: bool,
        stage: &mut Stage,
    ) -> Step {
        let log = &mut self.fs().xfs;
        match *stage {
            Stage::Prior { buffer, .. } => log.iclog(buffer).write_wait.finish_wait(sched, cpu, task),
            Stage::Log { buffer, .. } => log.iclog(buffer).force_wait.finish_wait(sched, cpu, task),
            _ => {}
        }
        let slept = matches!(*stage, Stage::Prior { .. });
        let flushed = matches!(*stage, Stage::Log { flushed: true, .. });
        let log = &mut self.fs().xfs;
        if log.written >= checkpoint {
            return Step::Done(u64::from(flushed));
        }
        let next = log.next_buffer();
        if log.closed >= checkpoint {
            let at = log.in_flight.partition_point(|buffer| buffer.last < checkpoint) as u64;
            let buffer = log.buffers + at;
            *stage = Stage::Log { checkpoint, buffer, flushed };
            log.iclog(buffer).force_wait.prepare_uninterruptible(sched, cpu, task, true);
        } else if gathers && !slept && log.is_syncing(next) {
            *stage = Stage::Prior { checkpoint, buffer: next - 1 };
            log.iclog(next - 1).write_wait.prepare_uninterruptible(sched, cpu, task, true);
        } else {
            // All that was pushed so far is written with it.
            *stage = Stage::Log { checkpoint, buffer: next, flushed: true };
            self.xlog_sync(sched, cpu, task);
            self.fs().xfs.iclog(next).force_wait.prepare_uninterruptible(sched, cpu, task, true);
        }
        Step::Sleep
    }

    /// xfs_log.c: xlog_iodone(), in the log's worker: xlog_state_done_syncing() wakes the tasks that waited for this
    /// buffer alone. Once all buffers before it are done, xlog_state_do_callback() wakes those that waited for its
    /// content.
    pub(super) fn xlog_iodone<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        charge(sched, cpu, paths::XLOG_IODONE);
        let fs = self.fs();
        let BioKind::Log { buffer } = fs.bios.bio(id).kind else { unreachable!("a write of the log has ended") };
        fs.bios.free(id);
        fs.xfs.iclog(buffer).write_wait.wake_up(sched, cpu, WakeFlags::NONE, 0);
        fs.xfs.done.push(buffer);
        let full = fs.xfs.in_flight.len() == ICLOGS;
        while let Some(at) = fs.xfs.done.iter().position(|&done| done == fs.xfs.buffers) {
            fs.xfs.done.swap_remove(at);
            let number = fs.xfs.buffers;
            let of = fs.xfs.in_flight.pop_front().expect("it was on its way");
            // l_last_sync_lsn stays before a checkpoint that ends in a later buffer.
            if of.last > fs.xfs.written {
                (fs.xfs.written, fs.xfs.space.last_sync) = (of.last, of.begins);
            }
            fs.xfs.buffers += 1;
            fs.xfs.xlog_cil_committed(of.last);
            fs.xfs.iclog(number).force_wait.wake_up(sched, cpu, WakeFlags::NONE, 0);
        }
        fs.xfs.assign_tail(sched, cpu);
        if full && fs.xfs.in_flight.len() < ICLOGS {
            fs.xfs.flush_wait.wake_up(sched, cpu, WakeFlags::NONE, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::FsKind;
    use crate::fs::fixture::{CPU, Still, machine};
    use cil::Push;
    use sched::core::Sched;

    /// The running task forces the log up to `checkpoint`, from `stage` on, and goes to sleep. Returns it.
    fn force(sched: &mut Sched<Still>, os: &mut Os, checkpoint: u64, gathers: bool, stage: &mut Stage) -> TaskId {
        let task = Scheduler::current(sched, CPU).expect("a task runs");
        let step = os.log_force(sched, CPU, task, checkpoint, gathers, stage);
        assert_eq!(step, Step::Sleep);
        assert_ne!(Scheduler::schedule(sched, CPU, false), Some(task));
        task
    }

    #[test]
    fn who_comes_during_a_push_sleeps_for_that_one_and_then_for_the_next() {
        let (mut sched, mut os) = machine(FsKind::Xfs);
        os.fs().xfs.xfs_setfilesize(FileId(1));
        let mut stages = [Stage::Begin; 3];
        let first = force(&mut sched, &mut os, 1, true, &mut stages[0]);
        assert_eq!((stages[0], os.fs().xfs.push_queued), (Stage::FlushWork(1), 1), "for its own");
        // A worker has taken the changes, and the next checkpoint has got some since.
        let worker = Scheduler::current(&sched, CPU).expect("another task");
        assert_eq!(os.xlog_cil_push(&mut sched, CPU, worker), Step::Continues);
        os.fs().xfs.swap();
        os.fs().xfs.xfs_setfilesize(FileId(2));
        let second = force(&mut sched, &mut os, 2, true, &mut stages[1]);
        assert_eq!((stages[1], os.fs().xfs.push_queued), (Stage::FlushWork(2), 1), "asks for nothing yet");
        let third = force(&mut sched, &mut os, 1, true, &mut stages[2]);
        assert_eq!(stages[2], Stage::FlushWork(1));
        assert_eq!(os.xlog_cil_push(&mut sched, CPU, first), Step::Done(0));
        assert_eq!(sched.arch.woken, [third, second, first], "when all is done, the last one first");
        assert!(matches!(os.fs().xfs.push, Push::Idle), "and nobody has asked for the next push");
        // Any other task may run now in place of the second.
        Scheduler::schedule(&mut sched, CPU, false);
        force(&mut sched, &mut os, 2, true, &mut stages[1]);
        assert_eq!((stages[1], os.fs().xfs.push_queued), (Stage::FlushWork(2), 2), "asks for its own, and for that");
        force(&mut sched, &mut os, 1, true, &mut stages[2]);
        assert!(matches!(stages[2], Stage::Log { checkpoint: 1, .. }), "which the third one does not need");
    }

    #[test]
    fn who_forces_a_file_waits_for_a_buffer_that_is_on_its_way_before() {
        // Of two buffers on their way the second may reach the device first. A task that comes then is not woken for it
        // again.
        for (gathers, done, waits) in [(true, vec![], true), (true, vec![1], false), (false, vec![], false)] {
            let (mut sched, mut os) = machine(FsKind::Xfs);
            let log = &mut os.fs().xfs;
            (log.current, log.pushed, log.push_queued, log.closed) = (4, 3, 3, 2);
            log.in_flight.extend([1, 2].map(|last| InFlight { last, begins: 0 }));
            log.done = done;
            let mut stage = Stage::Begin;
            force(&mut sched, &mut os, 3, gathers, &mut stage);
            let prior = Stage::Prior { checkpoint: 3, buffer: 1 };
            let log = Stage::Log { checkpoint: 3, buffer: 2, flushed: true };
            assert_eq!(stage, if waits { prior } else { log });
        }
    }

    #[test]
    fn a_part_of_a_checkpoint_is_nothing_to_begin_recovery_at() {
        let (mut sched, mut os) = machine(FsKind::Xfs);
        let task = Scheduler::current(&sched, CPU).expect("a task runs");
        let log = &mut os.fs().xfs;
        log.in_flight.extend([(1, 100), (1, 200), (2, 300)].map(|(last, begins)| InFlight { last, begins }));
        let seen = [0, 1, 2].map(|buffer| {
            let bio = os.fs().bios.add(BioKind::Log { buffer }, 512, task);
            os.xlog_iodone(&mut sched, CPU, bio);
            os.fs().xfs.space.last_sync
        });
        assert_eq!(seen, [100, 100, 300], "of the second one nothing ends in its buffer");
    }
}
