//! Space in the log (xfs_log.c): transactions reserve it before they begin, and sleep until there is enough.
//!
//! A transaction reserves the most that it may need. When it commits, what it has changed goes to the checkpoint, and
//! the rest is given back. Space is free again once all that the log's oldest part holds has been written to its final
//! place ([`super::ail`]). If too little is free, the task queues up, first come, first served, and asks for the oldest
//! quarter to be written.
//!
//! Differs: one grant head instead of two, since no transaction here continues beyond its first reservation.

use super::item::Transaction;
use super::{HEADER, LOG_BYTES};
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::CpuId;

/// Bytes are counted from the first that was ever written.
#[derive(Debug)]
pub(in crate::fs) struct Space {
    /// The begin of the buffer that is being filled.
    pub head: u64,
    /// Bytes in use after `head`: reservations, checkpoints that are not in a buffer yet, and the content of the
    /// buffer.
    pub granted: u64,
    /// The begin of the oldest change that is not in its final place, and of the last buffer that is on the disk.
    pub tail: u64,
    pub last_sync: u64,
    waiters: VecDeque<(TaskId, u64)>,
    reserve: Line,
    write: Line,
}

impl Space {
    pub fn new(reserve: Line, write: Line) -> Space {
        Space { head: 0, granted: 0, tail: 0, last_sync: 0, waiters: VecDeque::new(), reserve, write }
    }

    /// xfs_log.c: xlog_space_left()
    fn xlog_space_left(&self) -> u64 {
        LOG_BYTES.saturating_sub(self.head + self.granted - self.tail)
    }

    /// xfs_log.c: xlog_grant_push_ail(): up to where changes must be in their final place for `need` bytes, or a
    /// quarter of the log, to be free.
    fn xlog_grant_push_ail(&self, need: u64) -> Option<u64> {
        let wanted = need.max(LOG_BYTES / 4);
        (self.xlog_space_left() < wanted).then_some((self.tail + wanted).min(self.last_sync))
    }

    /// xfs_log.c: xfs_log_reserve() with xlog_grant_head_check(). Returns whether `task` has its space, otherwise it is
    /// about to sleep; and up to where changes must be written to their final place.
    pub fn xfs_log_reserve<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        transaction: Transaction,
    ) -> (bool, Option<u64>) {
        let need = transaction.reservation();
        let push = self.xlog_grant_push_ail(need);
        let at = self.waiters.iter().position(|waiter| waiter.0 == task);
        let others = at.is_none() && !self.waiters.is_empty();
        let free = if others { self.xlog_grant_head_wake(sched, cpu) } else { Some(self.xlog_space_left()) };
        if free.is_none_or(|free| free < need) {
            if at.is_none() {
                self.waiters.push_back((task, need));
            }
            sched.arch_mut().lock(cpu, self.reserve);
            sched.arch_mut().unlock(cpu, self.reserve);
            sched.set_current_state(cpu, TaskState::Uninterruptible);
            return (false, push);
        }
        if let Some(at) = at {
            self.waiters.remove(at);
        }
        self.granted += need;
        sched.arch_mut().atomic(cpu, self.reserve);
        sched.arch_mut().atomic(cpu, self.write);
        (true, push)
    }

    /// xfs_log.c: xlog_grant_head_wake(): wakes the tasks whose needs are met, up to the first whose need is not. Returns
    /// what is free if there is no such task.
    fn xlog_grant_head_wake<S: Scheduler>(&self, sched: &mut S, cpu: CpuId) -> Option<u64> {
        let mut free = self.xlog_space_left();
        sched.arch_mut().lock(cpu, self.reserve);
        let enough = self.waiters.iter().all(|&(task, need)| {
            let fits = free >= need;
            if fits {
                free -= need;
                sched.wake(cpu, task, WakeFlags::NONE);
            }
            fits
        });
        sched.arch_mut().unlock(cpu, self.reserve);
        enough.then_some(free)
    }

    /// xfs_log.c: xfs_log_space_wake()
    pub fn xfs_log_space_wake<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        if !self.waiters.is_empty() {
            self.xlog_grant_head_wake(sched, cpu);
        }
    }

    /// xfs_log.c: xlog_ungrant_log_space(): gives back what a transaction has not used of its space; `logged` goes to
    /// the checkpoint.
    pub fn xlog_ungrant_log_space<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        transaction: Transaction,
        logged: u64,
    ) {
        for line in [self.write, self.reserve] {
            sched.arch_mut().atomic(cpu, line);
        }
        self.granted = self.granted + logged - transaction.reservation();
        self.xfs_log_space_wake(sched, cpu);
    }

    /// Closes a buffer of `bytes`. Returns where it begins, and how many bytes of it are to be written.
    pub fn close(&mut self, bytes: u64) -> (u64, u64) {
        let begins = self.head;
        let whole = (bytes + HEADER).next_multiple_of(512);
        self.head += whole;
        self.granted -= bytes;
        (begins, whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::layout::Region;

    fn space() -> Space {
        let line = |index| Line { region: Region::Os, index };
        Space::new(line(0), line(1))
    }

    #[test]
    fn a_closed_buffer_takes_whole_sectors_and_a_header() {
        let mut space = space();
        space.granted = 5_000;
        assert_eq!(space.close(1_000), (0, 1_536));
        assert_eq!((space.head, space.granted), (1_536, 4_000));
        assert_eq!(space.close(512), (1_536, 1_024));
    }

    #[test]
    fn the_oldest_quarter_is_to_be_written_when_less_is_free() {
        let mut space = space();
        (space.head, space.last_sync) = (LOG_BYTES * 3 / 4, LOG_BYTES * 3 / 4);
        assert_eq!(space.xlog_grant_push_ail(1), None, "a quarter is free");
        space.granted = 1;
        assert_eq!(space.xlog_grant_push_ail(1), Some(LOG_BYTES / 4));
        (space.head, space.tail) = (LOG_BYTES * 2, LOG_BYTES * 5 / 4);
        assert_eq!(space.xlog_grant_push_ail(1), Some(LOG_BYTES * 3 / 4), "not beyond what is on the disk");
        assert_eq!(space.xlog_space_left(), LOG_BYTES / 4 - 1);
    }
}
