//! fs/xfs/xfs_trans_ail.c: the items that are in the log but not yet in their final place, the oldest first, and the
//! thread that writes them there.
//!
//! An item that is changed again before its turn moves to the log's new end, so only items that rest are written. An
//! item that is in the open checkpoint, or in one on its way, is pinned; if the thread meets pinned items, it forces
//! the log.
//!
//! Differs: by v6.1 the thread requests a log force without waiting for it (0020a190cf3e); a directory may be changed
//! while it is being written; the thread's scan is cut into paths of [`ITEMS`].

use super::item::{Buffer, Item};
use super::{Log, Stage};
use crate::block::BioId;
use crate::fs::FileSystem;
use crate::fs::bio::BioKind;
use crate::{Os, Step, charge, paths};
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::BTreeSet;
use units::CpuId;

/// How many items are examined in one path, and how many buffers are submitted in one.
const ITEMS: usize = 32;

/// struct xfs_ail.
#[derive(Debug, Default)]
pub(in crate::fs) struct Ail {
    items: BTreeSet<(u64, Item)>,
    /// xa_target, xa_target_prev, xa_last_pushed_lsn.
    target: u64,
    target_prev: u64,
    last_pushed: u64,
    /// xa_log_flush.
    log_flush: bool,
    /// xa_buf_list, the buffers to be submitted; and the buffers on their way to the disk.
    queued: BTreeSet<Buffer>,
    writing: BTreeSet<Buffer>,
    /// xfsaild, once it has started.
    task: Option<TaskId>,
}

impl Ail {
    /// xfs_trans_ail.c: xfs_ail_min_lsn()
    pub fn xfs_ail_min_lsn(&self) -> Option<u64> {
        self.items.first().map(|item| item.0)
    }

    /// Moves an item from one place in the log to another, or removes it.
    pub fn move_to(&mut self, item: Item, from: Option<u64>, to: Option<u64>) {
        if let Some(from) = from {
            self.items.remove(&(from, item));
        }
        if let Some(to) = to {
            self.items.insert((to, item));
        }
    }

    /// xfs_trans_ail.c: xfs_ail_push()
    pub fn xfs_ail_push<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, threshold: u64) {
        if self.items.is_empty() || threshold <= self.target {
            return;
        }
        self.target = threshold;
        if let Some(task) = self.task {
            sched.wake(cpu, task, WakeFlags::NONE);
        }
    }
}

/// xfs_trans_priv.h: XFS_ITEM_*
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pushed {
    Success,
    Pinned,
    Locked,
    Flushing,
}

/// The progress of xfsaild.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Xfsaild {
    turn: Turn,
    /// For this push: the number of items examined, of those that could not be pushed, of those on their way, and the
    /// place of the last.
    count: u32,
    stuck: u32,
    flushing: u32,
    at: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// Sleeps for this many milliseconds, if there is something to do.
    Rest(u64),
    Rested,
    /// Waits for a force of the log.
    Force(Stage),
    /// Examines items from this one on.
    Scan(Option<(u64, Item)>),
    Submit,
}

impl Xfsaild {
    pub const BEGIN: Xfsaild = Xfsaild { turn: Turn::Rest(0), count: 0, stuck: 0, flushing: 0, at: 0 };
}

impl Log {
    /// xfs_trans_ail.c: xfsaild_push_item()
    fn xfsaild_push_item(&mut self, item: Item, header_is_free: bool) -> Pushed {
        let state = self.items.get(item);
        let buffer = item.buffer();
        if state.pins > 0 {
            return Pushed::Pinned;
        }
        if let Item::Inode(_) = item {
            if state.flushing.is_some() || self.ail.writing.contains(&buffer) {
                return Pushed::Flushing;
            }
            self.xfs_iflush_cluster(buffer);
        } else if self.ail.writing.contains(&buffer) || !header_is_free {
            return Pushed::Locked;
        }
        if self.ail.queued.insert(buffer) { Pushed::Success } else { Pushed::Flushing }
    }

    /// xfs_inode.c: xfs_iflush() and xfs_iflush_cluster(): the other inodes of the cluster are written with it.
    fn xfs_iflush_cluster(&mut self, buffer: Buffer) {
        for item in buffer.items() {
            let state = self.items.get(item);
            if state.pins == 0 && state.flushing.is_none() {
                state.flushing = state.lsn;
            }
        }
    }

    /// The tail of the log, before which it is free, may have moved.
    pub fn assign_tail<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        let tail = self.ail.xfs_ail_min_lsn().unwrap_or(self.space.last_sync);
        if tail != self.space.tail {
            self.space.tail = tail;
            self.space.xfs_log_space_wake(sched, cpu);
        }
    }
}

impl FileSystem {
    /// xfs_buf.c: xfs_buf_delwri_submit_nowait(), for one buffer. Returns whether it may be written now.
    fn may_be_written(&mut self, buffer: Buffer, xfsaild: TaskId) -> bool {
        let pinned = match buffer {
            Buffer::Cluster(_) => false,
            _ => buffer.items().any(|item| self.xfs.items.get(item).pins > 0),
        };
        self.xfs.ail.log_flush |= pinned;
        if pinned {
            return false;
        }
        if let Buffer::Header(group, header) = buffer
            && !self.groups.xfs_buf_trylock(xfsaild, group, header)
        {
            return false;
        }
        if !matches!(buffer, Buffer::Cluster(_)) {
            for item in buffer.items() {
                let state = self.xfs.items.get(item);
                state.flushing = state.lsn;
            }
        }
        self.xfs.ail.queued.remove(&buffer);
        self.xfs.ail.writing.insert(buffer);
        true
    }

    fn header_is_free(&mut self, item: Item) -> bool {
        match item {
            Item::Header(group, header) => self.groups.is_free(group, header),
            _ => true,
        }
    }
}

impl Os {
    /// xfs_trans_ail.c: xfsaild(), for ever.
    pub(crate) fn xfsaild<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        state: &mut Xfsaild,
    ) -> Step {
        loop {
            match state.turn {
                Turn::Rest(ms) => {
                    let ail = &mut self.fs().xfs.ail;
                    ail.task = Some(task);
                    if ail.items.is_empty() && ail.target == ail.target_prev {
                        state.turn = Turn::Rest(0);
                        sched.set_current_state(cpu, TaskState::Interruptible);
                        return Step::Sleep;
                    }
                    state.turn = Turn::Rested;
                    if ms > 0 {
                        charge(sched, cpu, paths::SCHEDULE_TIMEOUT);
                        sched.set_current_state(cpu, TaskState::Interruptible);
                        return Step::Timeout(self.msecs_to_jiffies(ms));
                    }
                }
                Turn::Rested => {
                    let xfs = &mut self.fs().xfs;
                    let forces = xfs.ail.log_flush && xfs.ail.last_pushed == 0 && !xfs.ail.items.is_empty();
                    state.turn = if forces { Turn::Force(Stage::Begin) } else { Turn::Scan(None) };
                    if forces {
                        xfs.ail.log_flush = false;
                    }
                }
                Turn::Force(ref mut stage) => {
                    let checkpoint = match *stage {
                        Stage::Begin => self.fs().xfs.last_change(),
                        _ => 0,
                    };
                    let step = self.log_force(sched, cpu, task, checkpoint, false, stage);
                    if !matches!(step, Step::Done(_)) {
                        return step;
                    }
                    state.turn = Turn::Scan(None);
                }
                Turn::Scan(from) => {
                    state.turn = self.xfsaild_scan(sched, cpu, from, state);
                    return Step::Continues;
                }
                Turn::Submit => {
                    if self.xfsaild_submit(sched, cpu, task) {
                        return Step::Continues;
                    }
                    state.turn = self.xfsaild_rest(state);
                }
            }
        }
    }

    /// The loop of xfs_trans_ail.c: xfsaild_push(): one piece of it.
    fn xfsaild_scan<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        from: Option<(u64, Item)>,
        seen: &mut Xfsaild,
    ) -> Turn {
        let fs = self.fs();
        if from.is_none() {
            fs.xfs.ail.target_prev = fs.xfs.ail.target;
            (seen.count, seen.stuck, seen.flushing, seen.at) = (0, 0, 0, 0);
        }
        let first = from.unwrap_or((fs.xfs.ail.last_pushed, Item::Inode(0)));
        let target = fs.xfs.ail.target_prev;
        let some: Vec<(u64, Item)> = fs.xfs.ail.items.range(first..).take(ITEMS + 1).copied().collect();
        for &(lsn, item) in some.iter().take(ITEMS) {
            seen.at = lsn;
            if lsn > target || seen.stuck > 100 {
                return Turn::Submit;
            }
            charge(sched, cpu, paths::XFSAILD_PUSH_ITEM);
            let free = fs.header_is_free(item);
            let ail = match fs.xfs.xfsaild_push_item(item, free) {
                Pushed::Success => Some(lsn),
                Pushed::Flushing => {
                    seen.flushing += 1;
                    Some(lsn)
                }
                Pushed::Pinned => {
                    seen.stuck += 1;
                    fs.xfs.ail.log_flush = true;
                    None
                }
                Pushed::Locked => {
                    seen.stuck += 1;
                    None
                }
            };
            seen.count += 1;
            fs.xfs.ail.last_pushed = ail.unwrap_or(fs.xfs.ail.last_pushed);
        }
        some.get(ITEMS).map_or(Turn::Submit, |&next| Turn::Scan(Some(next)))
    }

    /// xfs_buf.c: xfs_buf_delwri_submit_nowait(): one piece of it. Returns whether there may be more.
    fn xfsaild_submit<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) -> bool {
        let mut submitted = 0;
        for buffer in self.fs().xfs.ail.queued.clone() {
            if submitted == ITEMS {
                return true;
            }
            if self.fs().may_be_written(buffer, task) {
                submitted += 1;
                let bio = self.fs().bios.add(BioKind::Metadata(buffer), buffer.bytes(), task);
                self.submit_bio(sched, cpu, bio);
            }
        }
        false
    }

    /// The end of xfs_trans_ail.c: xfsaild_push(): how long to wait for the submitted buffers.
    fn xfsaild_rest(&mut self, seen: &Xfsaild) -> Turn {
        let ail = &mut self.fs().xfs.ail;
        let ms = if seen.count == 0 || seen.at >= ail.target_prev {
            ail.last_pushed = 0;
            50
        } else if (seen.stuck + seen.flushing) * 100 / seen.count > 90 {
            ail.last_pushed = 0;
            20
        } else {
            10
        };
        Turn::Rest(ms)
    }

    /// xfs_buf_item.c: xfs_buf_iodone() and xfs_inode_item.c: xfs_iflush_done(), in a worker: the written items are in
    /// their final place, unless they have changed again and the log holds the newer change.
    pub(in crate::fs) fn xfs_buf_iodone<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        charge(sched, cpu, paths::XFS_BUF_IODONE);
        let fs = self.fs();
        let BioKind::Metadata(buffer) = fs.bios.bio(id).kind else { unreachable!("a buffer was written back") };
        fs.bios.free(id);
        fs.xfs.ail.writing.remove(&buffer);
        for item in buffer.items() {
            let state = fs.xfs.items.get(item);
            let Some(flushed) = state.flushing.take().filter(|&lsn| state.lsn == Some(lsn)) else { continue };
            state.lsn = None;
            fs.xfs.ail.move_to(item, Some(flushed), None);
        }
        fs.xfs.assign_tail(sched, cpu);
        if let Buffer::Header(group, header) = buffer {
            fs.groups.xfs_buf_unlock(sched, cpu, group, header);
        }
    }
}

impl Buffer {
    /// The items that it contains.
    fn items(self) -> Box<dyn Iterator<Item = Item>> {
        match self {
            Buffer::Cluster(cluster) => Box::new(super::item::files_of_cluster(cluster).map(Item::Inode)),
            Buffer::Directory(directory) => Box::new(std::iter::once(Item::Directory(directory))),
            Buffer::Header(group, header) => Box::new(std::iter::once(Item::Header(group, header))),
        }
    }
}
