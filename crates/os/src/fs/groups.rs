//! fs/xfs/libxfs: the headers of allocation groups, which transactions lock.
//!
//! A group's inodes are allocated and freed under the lock of its AGI, its blocks under that of its AGF. A transaction
//! holds these locks until it commits. They are semaphores of buffers (xfs_buf.c: xfs_buf_lock()), without spinning,
//! and a lock with waiters is handed to the first of them (kernel/locking/semaphore.c: up()). So if that waiter has to
//! wait for a busy CPU, all other tasks are kept out of the group meanwhile.

use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::CpuId;

/// The number of groups that mkfs.xfs makes on a device of one disk and less than 4 TB (mkfs.xfs(8), agcount).
pub const AG_COUNT: u32 = 4;

/// One of the headers of a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Header {
    Agi,
    Agf,
}

impl Header {
    /// The names of a group's lines.
    pub const LINES: [&str; 2] = ["xfs group: lock of its AGI", "xfs group: lock of its AGF"];
}

/// A header's lock: a semaphore of one.
#[derive(Clone, Debug)]
struct BufLock {
    line: Line,
    owner: Option<TaskId>,
    waiters: VecDeque<TaskId>,
}

/// The locks of all headers of all groups.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    locks: Vec<BufLock>,
}

impl Groups {
    /// `first`: the first of as many lines as there are headers, two for each of [`AG_COUNT`].
    pub fn new(first: Line) -> Groups {
        let lock = |number| BufLock {
            line: Line { index: first.index + number, ..first },
            owner: None,
            waiters: VecDeque::new(),
        };
        Groups { locks: (0..2 * AG_COUNT).map(lock).collect() }
    }

    fn lock(&mut self, group: u32, header: Header) -> &mut BufLock {
        &mut self.locks[(2 * (group % AG_COUNT) + header as u32) as usize]
    }

    /// xfs_buf.c: xfs_buf_lock(). Returns whether `task` owns it now; otherwise it is about to sleep for it.
    pub fn xfs_buf_lock<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        group: u32,
        header: Header,
    ) -> bool {
        let lock = self.lock(group, header);
        sched.arch_mut().atomic(cpu, lock.line);
        if *lock.owner.get_or_insert(task) == task {
            return true;
        }
        if !lock.waiters.contains(&task) {
            lock.waiters.push_back(task);
        }
        sched.set_current_state(cpu, TaskState::Uninterruptible);
        false
    }

    /// Whether no task owns it.
    pub fn is_free(&mut self, group: u32, header: Header) -> bool {
        self.lock(group, header).owner.is_none()
    }

    /// xfs_buf.c: xfs_buf_trylock()
    pub fn xfs_buf_trylock(&mut self, task: TaskId, group: u32, header: Header) -> bool {
        let lock = self.lock(group, header);
        let free = lock.owner.is_none();
        lock.owner.get_or_insert(task);
        free
    }

    /// xfs_buf.c: xfs_buf_unlock(): hands the lock to the first waiter.
    pub fn xfs_buf_unlock<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, group: u32, header: Header) {
        let lock = self.lock(group, header);
        sched.arch_mut().atomic(cpu, lock.line);
        lock.owner = lock.waiters.pop_front();
        if let Some(next) = lock.owner {
            sched.wake(cpu, next, WakeFlags::NONE);
        }
    }
}
