//! fs/pipe.c: pipes, with the wait rules of both eras.
//!
//! A pipe holds up to 16 pages. A write that fits as a whole behind the last page's data joins it; otherwise it opens a
//! page. A reader frees a page when it has drained it. The mutex is held during the copy. Its holder never sleeps in
//! the simulated calls, so a contender always spins, as an optimistic spinner does while the owner runs.

mod rules;

pub use rules::{PipePages, PipePolled, PipeRoom, PipeRules, PipeSlots};

use crate::wait::WaitQueue;
use crate::{Os, Step, charge, paths};
use rules::PIPE_PREALLOC_KEEP;
use sched::access::Path;
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::{CpuId, prefetch, prefetch_lines, unlikely};

pub const PAGE_SIZE: u64 = 4096;
/// PIPE_DEF_BUFFERS.
pub const PIPE_DEF_BUFFERS: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct PipeId(pub u32);

#[derive(Clone, Copy, Debug)]
struct Buffer {
    offset: u64,
    len: u64,
    /// The CPU that filled it last.
    writer: CpuId,
}

/// include/linux/pipe_fs_i.h: struct pipe_inode_info.
///
/// Two of the host's cache lines.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Pipe {
    /// The mutex; the fields beside it (nrbufs, curbuf, readers, writers); the buffer array, which is allocated apart.
    mutex: Line,
    fields: Line,
    bufs_line: Line,
    bufs: VecDeque<Buffer>,
    /// The single queue, or the readers'.
    wait: WaitQueue,
    /// The writers' own queue (split rules).
    wr_wait: WaitQueue,
    waiting_writers: u32,
    /// How many pages are kept for the next write (`tmp_page`, `prealloc` since v7.3), and how many are taken in.
    tmp_pages: u8,
    most_tmp_pages: u8,
    poll_usage: bool,
    slots: PipeSlots,
    room: PipeRoom,
    pages: PipePages,
}

/// A read or write under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipeCall {
    pub pipe: PipeId,
    /// Bytes still to move.
    left: u64,
    done: u64,
    do_wakeup: bool,
    was_full_or_empty: bool,
    entered: bool,
    asleep: bool,
    /// Pages that a write has allocated in advance and not filled.
    prealloc: u8,
    /// Whether this pass of a write has taken a page.
    took_page: bool,
}

impl PipeCall {
    pub fn new(pipe: PipeId, bytes: u64) -> PipeCall {
        PipeCall { pipe, left: bytes, ..PipeCall::default() }
    }

    /// Whether it has begun: it has slept in the middle, or is there now.
    pub fn has_entered(&self) -> bool {
        self.entered
    }
}

impl Os {
    pub fn create_pipe(&mut self) -> PipeId {
        let mutex = self.allocate_named(&[
            "pipe: mutex",
            "pipe: nrbufs, readers, writers",
            "pipe: wait",
            "pipe: wr_wait",
            "pipe: bufs",
        ]);
        let line = |offset| Line { index: mutex.index + offset, ..mutex };
        let id = PipeId(self.pipes.len() as u32);
        self.pipes.push(Pipe {
            mutex,
            fields: line(1),
            bufs_line: line(4),
            bufs: VecDeque::with_capacity(PIPE_DEF_BUFFERS),
            wait: WaitQueue::new(line(2)),
            wr_wait: WaitQueue::new(line(3)),
            waiting_writers: 0,
            tmp_pages: 0,
            most_tmp_pages: self.rules.pages.room(),
            poll_usage: false,
            slots: self.rules.slots,
            room: self.rules.room,
            pages: self.rules.pages,
        });
        id
    }

    /// The simulation is about to begin or resume a call on this pipe: prefetches the pipe into the host's cache.
    #[inline(always)]
    pub fn foresee_pipe(&self, pipe: PipeId) {
        prefetch(&self.pipes[pipe.0 as usize]);
    }

    /// The pipe itself has been prefetched: prefetches what it refers to.
    #[inline(always)]
    pub fn foresee_waiters(&self, arch: &impl Arch, pipe: PipeId) {
        let pipe = &self.pipes[pipe.0 as usize];
        arch.foresee_lines::<5>(pipe.mutex);
        if let Some(buf) = pipe.bufs.front() {
            prefetch_lines::<1, _>(buf);
        }
    }

    /// fs/pipe.c: pipe_read().
    #[inline(never)]
    pub(crate) fn pipe_read<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        call: &mut PipeCall,
    ) -> Step {
        let paths = [paths::SYS_READ, paths::PIPE_READ];
        match self.rules.pipe {
            PipeRules::Single => self.pipe_call(sched, cpu, task, call, paths, Pipe::read_single),
            PipeRules::Split => self.pipe_call(sched, cpu, task, call, paths, Pipe::read_split),
        }
    }

    /// fs/pipe.c: pipe_write().
    #[inline(never)]
    pub(crate) fn pipe_write<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        call: &mut PipeCall,
    ) -> Step {
        let paths = [paths::SYS_WRITE, paths::PIPE_WRITE];
        match self.rules.pipe {
            PipeRules::Single => self.pipe_call(sched, cpu, task, call, paths, Pipe::write_single),
            PipeRules::Split if self.rules.preempt.preempt_schedule() => {
                self.pipe_call(sched, cpu, task, call, paths, Pipe::write_split::<S, true>)
            }
            PipeRules::Split => self.pipe_call(sched, cpu, task, call, paths, Pipe::write_split::<S, false>),
        }
    }

    /// Instantiated for each kind of pass, so that all its code is inlined in one place.
    #[inline(always)]
    fn pipe_call<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        call: &mut PipeCall,
        [system_call, method]: [Path; 2],
        pass: impl FnOnce(&mut Pipe, &mut S, CpuId, TaskId, &mut PipeCall) -> Step,
    ) -> Step {
        // A call that was asleep goes on in the middle: its beginning is paid for.
        let begins = !call.entered;
        if begins {
            sched.arch_mut().enter(cpu, system_call);
        }
        let pipe = &mut self.pipes[call.pipe.0 as usize];
        if let Some(first) = pipe.wait.first() {
            sched.foresee_wakeup(first);
        }
        if pipe.moves(method == paths::PIPE_READ) {
            sched.arch_mut().enter(cpu, method);
        } else {
            sched.arch_mut().enter_unpaid(cpu, method);
        }
        let step = pass(pipe, sched, cpu, task, call);
        sched.arch_mut().leave(cpu);
        if begins {
            sched.arch_mut().leave(cpu);
        }
        if unlikely(std::mem::take(&mut call.took_page)) {
            self.zone_statistics(cpu);
        }
        step
    }

    /// fs/select.c: do_poll() on the read end of one pipe.
    pub(crate) fn pipe_poll<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        pipe: PipeId,
        registered: &mut bool,
    ) -> Step {
        let polled = self.rules.polled;
        let pipe = &mut self.pipes[pipe.0 as usize];
        if !*registered {
            charge(sched, cpu, paths::SYS_POLL);
            pipe.wait.poll_wait(sched, cpu, task);
            pipe.poll_usage |= polled == PipePolled::Any;
            *registered = true;
        }
        charge(sched, cpu, paths::PIPE_POLL);
        sched.arch_mut().read(cpu, pipe.fields);
        if pipe.bufs.is_empty() {
            sched.set_current_state(cpu, TaskState::Interruptible);
            return Step::Sleep;
        }
        pipe.wait.finish_wait(sched, cpu, task);
        Step::Done(1)
    }

    /// Unread bytes in a pipe.
    pub fn pipe_bytes(&self, pipe: PipeId) -> u64 {
        self.pipes[pipe.0 as usize].bufs.iter().map(|b| b.len).sum()
    }
}

impl Pipe {
    /// Whether a pass finds something to take, or room for a page. Nearly all of a call's instructions are executed then.
    #[inline(always)]
    fn moves(&self, reads: bool) -> bool {
        if reads { !self.bufs.is_empty() } else { self.bufs.len() < PIPE_DEF_BUFFERS }
    }

    #[inline(always)]
    fn lock<S: Scheduler>(&self, sched: &mut S, cpu: CpuId) {
        charge(sched, cpu, paths::MUTEX_LOCK);
        sched.arch_mut().lock(cpu, self.mutex);
    }

    #[inline(always)]
    fn unlock<S: Scheduler>(&self, sched: &mut S, cpu: CpuId) {
        sched.arch_mut().unlock(cpu, self.mutex);
    }

    /// `rd_wait.lock` around the moving of head or tail, on kernels that take it ([`PipeSlots`]). It is on the mutex's
    /// line, which any caller has.
    ///
    /// Differs: a CPU that meets a wakeup of readers, which holds this lock, does not wait for it.
    #[inline(always)]
    fn lock_slots<S: Scheduler>(&self, sched: &mut S, cpu: CpuId) {
        if unlikely(self.slots == PipeSlots::RdWait) {
            sched.arch_mut().atomic(cpu, self.mutex);
        }
    }

    /// After a sleep: leaves the queue and takes the mutex again. Before the first pass: takes the mutex.
    fn enter<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, call: &mut PipeCall, writer: bool) {
        if call.asleep {
            charge(sched, cpu, paths::PIPE_WAIT);
            let queue = if writer { &mut self.wr_wait } else { &mut self.wait };
            queue.finish_wait(sched, cpu, task);
        }
        self.lock(sched, cpu);
        call.entered = true;
    }

    /// fs/pipe.c: pipe_wait(), until v5.5: joins the common queue, drops the mutex, sleeps.
    fn pipe_wait<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, call: &mut PipeCall) -> Step {
        self.wait.prepare_to_wait(sched, cpu, task, false);
        self.unlock(sched, cpu);
        call.asleep = true;
        Step::Sleep
    }

    /// fs/pipe.c: anon_pipe_put_page(): keeps a drained page, or frees it.
    #[inline(always)]
    fn anon_pipe_put_page(&mut self) {
        self.tmp_pages = (self.tmp_pages + 1).min(self.most_tmp_pages);
    }

    /// fs/pipe.c: anon_pipe_get_page_prealloc(), and anon_pipe_prefill_and_lock() up to where it locks.
    #[doc(alias = "anon_pipe_prefill_and_lock")]
    fn anon_pipe_get_page_prealloc<S: Scheduler>(&self, sched: &mut S, cpu: CpuId, call: &mut PipeCall) {
        call.prealloc = self.pages.ahead(call.left, self.tmp_pages);
        for _ in 0..call.prealloc {
            charge(sched, cpu, paths::PIPE_BUF_ALLOC);
            call.took_page = true;
        }
    }

    /// fs/pipe.c: anon_pipe_refill_tmp_pages(), and anon_pipe_free_pages() of those that the pipe does not keep; since
    /// v7.3 anon_pipe_prealloc_push() of what was allocated in advance, as soon as the mutex is held.
    /// Differs: freeing them takes no time.
    #[doc(alias = "anon_pipe_free_pages")]
    #[doc(alias = "anon_pipe_prealloc_push")]
    fn anon_pipe_refill_tmp_pages(&mut self, call: &mut PipeCall) {
        for _ in 0..std::mem::take(&mut call.prealloc) {
            self.anon_pipe_put_page();
        }
    }

    /// fs/pipe.c: what anon_pipe_trim_and_unlock() keeps at the end of a call.
    #[inline(always)]
    #[doc(alias = "anon_pipe_trim_and_unlock")]
    fn trim(&mut self) {
        if self.pages == PipePages::Pool {
            self.tmp_pages = self.tmp_pages.min(PIPE_PREALLOC_KEEP);
        }
    }

    /// Takes bytes from the oldest pages. Returns whether a page was drained and freed.
    #[inline(always)]
    fn take<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, call: &mut PipeCall) -> bool {
        let mut drained = false;
        while call.left > 0 {
            let Some(buf) = self.bufs.front_mut() else { break };
            sched.arch_mut().write(cpu, self.bufs_line);
            sched.arch_mut().write(cpu, self.fields);
            let bytes = buf.len.min(call.left);
            sched.arch_mut().fetch(cpu, buf.writer, bytes);
            sched.arch_mut().copy(cpu, bytes);
            buf.offset += bytes;
            buf.len -= bytes;
            call.left -= bytes;
            call.done += bytes;
            if buf.len == 0 {
                charge(sched, cpu, paths::PIPE_BUF_RELEASE);
                self.lock_slots(sched, cpu);
                self.anon_pipe_put_page();
                self.bufs.pop_front();
                if self.bufs.is_empty() {
                    // The next page reuses this page's slot, so that fewer of the host's cache lines are touched.
                    self.bufs.clear();
                }
                drained = true;
            }
        }
        drained
    }

    /// Appends the odd bytes of the write to the last page if they all fit. Returns whether anything was written.
    #[inline(always)]
    fn merge<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, call: &mut PipeCall) -> bool {
        let odd = call.left % PAGE_SIZE;
        let Some(buf) = self.bufs.back_mut() else { return false };
        if odd == 0 || buf.offset + buf.len + odd > PAGE_SIZE {
            return false;
        }
        sched.arch_mut().read(cpu, self.fields);
        sched.arch_mut().write(cpu, self.bufs_line);
        // The message begins in the cache line where the last one ended.
        sched.arch_mut().fetch(cpu, buf.writer, 1);
        sched.arch_mut().copy(cpu, odd);
        buf.len += odd;
        buf.writer = cpu;
        call.left -= odd;
        call.done += odd;
        true
    }

    /// Fills fresh pages while there is room. Returns whether anything was written.
    #[inline(always)]
    fn append<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, call: &mut PipeCall) -> bool {
        let mut wrote = false;
        while call.left > 0 && self.bufs.len() < PIPE_DEF_BUFFERS {
            if unlikely(call.prealloc > 0) {
                call.prealloc -= 1;
            } else if self.tmp_pages == 0 {
                charge(sched, cpu, paths::PIPE_BUF_ALLOC);
                call.took_page = true;
            } else {
                self.tmp_pages -= 1;
            }
            self.lock_slots(sched, cpu);
            sched.arch_mut().write(cpu, self.fields);
            sched.arch_mut().write(cpu, self.bufs_line);
            let bytes = call.left.min(PAGE_SIZE);
            sched.arch_mut().copy(cpu, bytes);
            self.bufs.push_back(Buffer { offset: 0, len: bytes, writer: cpu });
            call.left -= bytes;
            call.done += bytes;
            wrote = true;
        }
        wrote
    }

    #[inline(always)]
    fn read_single<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, call: &mut PipeCall) -> Step {
        if call.asleep {
            charge(sched, cpu, paths::PIPE_WAIT);
            self.wait.finish_wait(sched, cpu, task);
            call.asleep = false;
        }
        self.lock(sched, cpu);
        call.entered = true;
        call.do_wakeup |= self.take(sched, cpu, call);
        // A reader with part of its data sleeps for the rest only if a writer sleeps in the kernel.
        let enough = call.left == 0 || self.waiting_writers == 0 && call.done > 0;
        if !enough {
            if call.do_wakeup {
                self.wait.wake_up(sched, cpu, WakeFlags::SYNC, 1);
            }
            return self.pipe_wait(sched, cpu, task, call);
        }
        self.unlock(sched, cpu);
        if call.do_wakeup {
            self.wait.wake_up(sched, cpu, WakeFlags::SYNC, 1);
        }
        Step::Done(call.done)
    }

    #[inline(always)]
    fn write_single<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, call: &mut PipeCall) -> Step {
        if call.asleep {
            charge(sched, cpu, paths::PIPE_WAIT);
            self.wait.finish_wait(sched, cpu, task);
            call.asleep = false;
            self.lock(sched, cpu);
            self.waiting_writers -= 1;
        } else {
            self.lock(sched, cpu);
            call.entered = true;
            call.do_wakeup |= self.merge(sched, cpu, call);
        }
        call.do_wakeup |= self.append(sched, cpu, call);
        if unlikely(call.left > 0) {
            if std::mem::take(&mut call.do_wakeup) {
                self.wait.wake_up(sched, cpu, WakeFlags::SYNC, 1);
            }
            self.waiting_writers += 1;
            return self.pipe_wait(sched, cpu, task, call);
        }
        self.unlock(sched, cpu);
        if call.do_wakeup {
            self.wait.wake_up(sched, cpu, WakeFlags::SYNC, 1);
        }
        Step::Done(call.done)
    }

    /// v5.6: wait_event_interruptible_exclusive(), after a sleep: a woken task that finds nothing changed sleeps on,
    /// without touching the mutex.
    fn sleep_on<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        call: &mut PipeCall,
        writer: bool,
    ) -> Option<Step> {
        let unchanged = if writer { self.bufs.len() == PIPE_DEF_BUFFERS } else { self.bufs.is_empty() };
        if !call.asleep || !unchanged {
            return None;
        }
        charge(sched, cpu, paths::PIPE_WAIT);
        sched.arch_mut().read(cpu, self.fields);
        let queue = if writer { &mut self.wr_wait } else { &mut self.wait };
        Some(wait_exclusive(queue, sched, cpu, task, call))
    }

    /// v5.6: a reader that found the pipe full wakes one writer ([`PipeRoom`]); if data is left, the next reader follows.
    fn read_split<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, call: &mut PipeCall) -> Step {
        if let Some(step) = self.sleep_on(sched, cpu, task, call, false) {
            return step;
        }
        self.enter(sched, cpu, task, call, false);
        let was_full = self.bufs.len() == PIPE_DEF_BUFFERS;
        let woke_from_sleep = std::mem::take(&mut call.asleep);
        let drained = self.take(sched, cpu, call);
        call.was_full_or_empty |= was_full & (drained | (self.room == PipeRoom::WasFull));
        if call.done == 0 {
            self.unlock(sched, cpu);
            if std::mem::take(&mut call.was_full_or_empty) {
                self.wr_wait.wake_up(sched, cpu, WakeFlags::SYNC, 1);
            }
            return wait_exclusive(&mut self.wait, sched, cpu, task, call);
        }
        let next_reader = woke_from_sleep && !self.bufs.is_empty();
        self.trim();
        self.unlock(sched, cpu);
        if call.was_full_or_empty {
            self.wr_wait.wake_up(sched, cpu, WakeFlags::SYNC, 1);
        }
        if next_reader {
            self.wait.wake_up(sched, cpu, WakeFlags::SYNC, 1);
        }
        Step::Done(call.done)
    }

    /// v5.6: a writer that found the pipe empty wakes one reader; if room is left, the next writer follows. Only before it has slept does it
    /// join the last page.
    fn write_split<S: Scheduler, const PREEMPTIBLE: bool>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        call: &mut PipeCall,
    ) -> Step {
        if let Some(step) = self.sleep_on(sched, cpu, task, call, true) {
            return step;
        }
        if !call.entered {
            self.anon_pipe_get_page_prealloc(sched, cpu, call);
        }
        self.enter(sched, cpu, task, call, true);
        if self.pages == PipePages::Pool {
            self.anon_pipe_refill_tmp_pages(call);
        }
        call.was_full_or_empty |= self.bufs.is_empty();
        let woke_from_sleep = std::mem::take(&mut call.asleep);
        if !woke_from_sleep {
            self.merge(sched, cpu, call);
        }
        self.append(sched, cpu, call);
        if call.left > 0 {
            self.unlock(sched, cpu);
            if std::mem::take(&mut call.was_full_or_empty) {
                self.wait.wake_up(sched, cpu, WakeFlags::SYNC, 1);
                if PREEMPTIBLE && sched.need_resched(cpu) {
                    // It tests the condition again before it sleeps.
                    call.asleep = true;
                    return Step::Preempted;
                }
            }
            return wait_exclusive(&mut self.wr_wait, sched, cpu, task, call);
        }
        self.anon_pipe_refill_tmp_pages(call);
        self.trim();
        let next_writer = woke_from_sleep && self.bufs.len() < PIPE_DEF_BUFFERS;
        self.unlock(sched, cpu);
        if call.was_full_or_empty || self.poll_usage {
            self.wait.wake_up(sched, cpu, WakeFlags::SYNC, 1);
        }
        if next_writer {
            self.wr_wait.wake_up(sched, cpu, WakeFlags::SYNC, 1);
        }
        Step::Done(call.done)
    }
}

/// include/linux/wait.h: wait_event_interruptible_exclusive(), whose condition its caller has just seen not to hold.
fn wait_exclusive<S: Scheduler>(
    queue: &mut WaitQueue,
    sched: &mut S,
    cpu: CpuId,
    task: TaskId,
    call: &mut PipeCall,
) -> Step {
    queue.prepare_to_wait(sched, cpu, task, true);
    call.asleep = true;
    Step::Sleep
}
