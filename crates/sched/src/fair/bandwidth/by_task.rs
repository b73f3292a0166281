//! A throttled queue stays in the hierarchy, and its tasks leave it one by one: each when it has been picked and is on its way to
//! user mode, where it holds nothing that others wait for (v6.18; [`Throttle`] says when the queue is throttled).
//!
//! ```text
//! runs on a throttled queue ─ task_throttle_setup_work ─▶ goes on in the kernel ─ throttle_cfs_rq_work ─▶ limbo (off the queue, `on_rq` still)
//!                                                                                                          │ runtime
//! queued again ◀────────────────────────────────────────────────────────────────────── tg_unthrottle_up ──┘
//! ```
//!
//! Waiting tasks of a throttled queue are picked as usual, and leave only then. The averages of a queue go on until nothing is
//! queued there.

use super::Throttle;
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::rules::Pick;
use crate::sched::*;
use crate::trace::Ipi;
use units::{CpuId, unlikely};

impl<A: Arch> Sched<A> {
    // Tasks.

    /// fair.c: task_is_throttled(). Whether the task has left its queue because of throttling.
    #[inline]
    pub fn task_is_throttled(&self, p: TaskId) -> bool {
        unlikely(self.cfs_bandwidth_used()) && self.task_cold[p].throttled
    }

    /// Whether any task has ever been asked to leave a throttled queue.
    #[inline]
    pub(crate) fn has_throttled_tasks(&self) -> bool {
        self.bandwidth.works
    }

    /// fair.c: task_has_throttle_work(). Whether `p` is to call [`Sched::throttle_cfs_rq_work`] on its way to user mode.
    #[inline]
    pub(crate) fn task_has_throttle_work(&self, p: TaskId) -> bool {
        unlikely(self.has_throttled_tasks()) && self.task_cold[p].sched_throttle_work
    }

    /// fair.c: task_throttle_setup_work(), with the interrupt by which task_work_add() makes another CPU leave user mode. Kernel
    /// threads and exiting tasks are left out: they will not return to user mode.
    pub(crate) fn task_throttle_setup_work(&mut self, p: TaskId) {
        if self.task_has_throttle_work(p) || self.task[p].mm == 0 || self.is_exiting(p) {
            return;
        }
        self.task_cold[p].sched_throttle_work = true;
        self.bandwidth.works = true;
        let cpu = self.task[p].cpu;
        if cpu != self.this_cpu && self.rq[cpu].curr == Some(p) {
            self.arch.send_ipi(self.this_cpu, cpu, Ipi::Reschedule);
        }
    }

    /// fair.c: throttle_cfs_rq_work(). The current task is on its way to user mode: if its queue is throttled, it leaves it.
    /// Returns whether it did; then it must reschedule.
    pub(crate) fn throttle_cfs_rq_work(&mut self) -> bool {
        let cpu = self.this_cpu;
        let p = self.rq[cpu].curr.expect("a task is on its way to user mode");
        self.task_cold[p].sched_throttle_work = false;
        if self.is_exiting(p) {
            return false;
        }
        self.task_rq_lock(p);
        let se = self.task[p].se;
        let cfs = self.se[se].cfs_rq;
        // Otherwise its queue got runtime meanwhile, or it has moved to another queue or class.
        let leaves = self.task[p].sched_class == SchedClass::Fair && self.throttled_hierarchy(cfs);
        if leaves {
            self.update_rq_clock(cpu);
            debug_assert!(!self.task_is_throttled(p), "{p:?} runs");
            self.dequeue_task_fair(cpu, p, self.throttle_flags());
            self.record_throttle_clocks(se);
            self.bandwidth.limbo[cfs.index()].push_front(p);
            self.task_cold[p].throttled = true;
            self.resched_curr(cpu);
        }
        self.rq_unlock(cpu);
        self.pi_unlock(p);
        leaves
    }

    /// The flags with which a throttled task leaves: those of a task that falls asleep. Before v6.6, where no kernel does this,
    /// its vruntime must become relative, because it may return elsewhere without being woken.
    fn throttle_flags(&self) -> QueueFlags {
        let sleep = self.kernel.entity.pick == Pick::Eevdf;
        QueueFlags { sleep, throttle: true, ..QueueFlags::default() }
    }

    /// The part of `dequeue_entities()` that begins to count throttled time (`record_throttle_clock()`), at the levels from `se`
    /// up.
    #[doc(alias = "record_throttle_clock")]
    fn record_throttle_clocks(&mut self, se: SeId) {
        let mut level = Some(se);
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            let clock = self.rq[self.cfs_rq[cfs].rq].clock;
            if self.throttled_hierarchy(cfs) {
                let queue = self.cfs_rq_runtime_mut(cfs);
                if queue.throttled && queue.throttled_clock == 0 {
                    queue.throttled_clock = clock;
                }
                if queue.throttled_clock_self == 0 {
                    queue.throttled_clock_self = clock;
                }
            }
            level = self.se[se].parent;
        }
    }

    /// fair.c: dequeue_throttled_task(), if the task is throttled. It is on no queue, but is dequeued to be changed or moved.
    #[inline]
    pub(crate) fn dequeue_throttled_task(&mut self, p: TaskId, flags: QueueFlags) -> bool {
        self.task_is_throttled(p) && self.leave_limbo(p, flags)
    }

    /// Differs: a task that was throttled when it left the fair class, and returned while no group had a quota, is queued like
    /// any other. The kernel warns, and leaves it marked as queued where it no longer is.
    fn leave_limbo(&mut self, p: TaskId, flags: QueueFlags) -> bool {
        let se = self.task[p].se;
        if self.se[se].on_rq {
            self.task_cold[p].throttled = false;
            return false;
        }
        self.bandwidth.limbo[self.se[se].cfs_rq.index()].retain(|&other| other != p);
        if flags.sleep {
            self.task_cold[p].throttled = false;
        } else if self.task[p].on_rq == OnRq::Migrating {
            self.detach_task_cfs_rq(p);
        }
        true
    }

    /// fair.c: enqueue_throttled_task(), if the task is throttled. On a queue that is throttled too it goes straight to limbo;
    /// otherwise it is no longer throttled.
    #[inline]
    pub(crate) fn enqueue_throttled_task(&mut self, p: TaskId) -> bool {
        self.task_is_throttled(p) && self.enter_limbo(p)
    }

    fn enter_limbo(&mut self, p: TaskId) -> bool {
        let cfs = self.se[self.task[p].se].cfs_rq;
        let runs = self.rq[self.cfs_rq[cfs].rq].curr == Some(p);
        let waits = self.throttled_hierarchy(cfs) && !runs;
        if waits {
            self.bandwidth.limbo[cfs.index()].push_front(p);
        } else {
            self.task_cold[p].throttled = false;
        }
        waits
    }

    /// The part of `set_next_task_fair()` that gets runtime for the queues on which `p` replaces another entity: its own, and
    /// those above it up to `last`. A task picked on a throttled queue is to leave it. Queues above, on which the same group goes
    /// on, are not checked: a task picked in that group may run for as long as the group does. In v6.18 the pick checks all.
    pub(crate) fn account_next(&mut self, p: TaskId, last: CfsRqId) {
        let checks = match self.kernel.bandwidth.throttle {
            Throttle::Queue => return,
            // The pick has checked them.
            Throttle::TaskOncePicked if self.kernel.entity.pick == Pick::Eevdf => return,
            Throttle::TaskOncePicked => true,
            Throttle::Task => false,
        };
        let (mut level, mut throttled) = (Some(self.task[p].se), false);
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            throttled |= if checks { self.check_cfs_rq_runtime(cfs) } else { self.account_cfs_rq_runtime(cfs, 0) };
            level = self.se[se].parent.filter(|_| cfs != last);
        }
        if throttled {
            self.task_throttle_setup_work(p);
        }
    }

    // Queues.

    /// `throttle_cfs_rq()` since v6.18. The running task leaves at the next opportunity (v7.2); all others as they are picked.
    pub(super) fn throttle_cfs_rq_task(&mut self, cfs: CfsRqId) -> bool {
        let (tg, cpu) = (self.cfs_rq[cfs].tg, self.cfs_rq[cfs].rq);
        let at_once = self.kernel.bandwidth.throttle == Throttle::Task;
        let runs = at_once && self.cfs_rq[cfs].curr.is_some_and(|curr| self.se[curr].on_rq);
        let target_runtime = if runs { self.sched_cfs_bandwidth_slice() } else { 1 };
        if self.assign_or_list(tg, cfs, target_runtime) {
            return false;
        }
        for group in self.walk_tg_tree_down(tg) {
            self.tg_throttle_down_task(group, cpu);
        }
        self.cfs_rq_runtime_mut(cfs).throttled = true;
        // During a switch, this is the previous task, which takes no harm.
        if let Some(curr) = self.rq[cpu].curr
            && runs
        {
            self.task_throttle_setup_work(curr);
        }
        true
    }

    /// `tg_throttle_down()` since v6.18.
    fn tg_throttle_down_task(&mut self, tg: TgId, cpu: CpuId) {
        let cfs = self.tg[tg].cfs_rq[cpu.index()];
        let queue = &mut self.cfs_rq[cfs];
        let first = queue.throttle_count == 0;
        queue.throttle_count += 1;
        if first && queue.nr_running == 0 {
            self.stop_clock_pelt(cfs);
        }
    }

    fn stop_clock_pelt(&mut self, cfs: CfsRqId) {
        let clock_pelt = self.rq_clock_pelt(self.cfs_rq[cfs].rq);
        self.list_del_leaf_cfs_rq(cfs);
        let queue = &mut self.cfs_rq[cfs];
        queue.throttled_clock_pelt = clock_pelt;
        queue.pelt_clock_throttled = true;
    }

    fn restart_clock_pelt(&mut self, cfs: CfsRqId) {
        let clock_pelt = self.rq_clock_pelt(self.cfs_rq[cfs].rq);
        let queue = &mut self.cfs_rq[cfs];
        if std::mem::take(&mut queue.pelt_clock_throttled) {
            let stood = clock_pelt.wrapping_sub(queue.throttled_clock_pelt);
            queue.throttled_clock_pelt_time = queue.throttled_clock_pelt_time.wrapping_add(stood);
        }
    }

    /// The end of `dequeue_entity()`, if it left the queue empty: a throttled queue's clock stops now.
    #[inline]
    pub(crate) fn fell_empty(&mut self, cfs: CfsRqId) {
        if unlikely(self.throttled_hierarchy(cfs)) && self.kernel.bandwidth.throttle.by_task() {
            self.stop_clock_pelt(cfs);
        }
    }

    /// The end of `enqueue_entity()` on an empty queue: its clock goes on, throttled or not.
    pub(super) fn first_queued_task(&mut self, cfs: CfsRqId) {
        self.list_add_leaf_cfs_rq(cfs);
        self.restart_clock_pelt(cfs);
    }

    /// `unthrottle_cfs_rq()` since v6.18, unless running tasks have already used up what the queue got. Since v7.2 the callers have
    /// updated the clock, and what runs is charged first.
    pub(super) fn unthrottle_cfs_rq_task(&mut self, cfs: CfsRqId) {
        let (tg, cpu) = (self.cfs_rq[cfs].tg, self.cfs_rq[cfs].rq);
        let charges = self.kernel.bandwidth.throttle == Throttle::Task;
        if charges {
            self.update_curr(cfs);
        }
        let queue = self.cfs_rq_runtime_mut(cfs);
        if queue.runtime_enabled && queue.runtime_remaining <= 0 {
            return;
        }
        queue.throttled = false;
        if !charges {
            self.update_rq_clock(cpu);
        }
        self.leave_throttled_list(cfs, tg);
        self.walk_tg_tree_up(tg, cpu);
        if self.cfs_rq[cfs].load.weight == 0 {
            if !self.cfs_rq[cfs].on_list {
                return;
            }
            self.complete_leaf_branch(self.tg[tg].se[cpu.index()]);
        }
        if self.rq[cpu].curr.is_none() && self.cfs_rq[self.rq[cpu].cfs].nr_running > 0 {
            self.resched_curr(cpu);
        }
    }

    /// core.c: walk_tg_tree_from(), upwards: children, the newest first, then their parent.
    fn walk_tg_tree_up(&mut self, tg: TgId, cpu: CpuId) {
        for child in self.tg[tg].children.clone().into_iter().rev() {
            self.walk_tg_tree_up(child, cpu);
        }
        self.tg_unthrottle_up_task(tg, cpu);
    }

    /// `tg_unthrottle_up()` since v6.18. The tasks that left return, the last one first; since v7.2 what runs is charged first, and the
    /// others stay once that has throttled the queue again.
    fn tg_unthrottle_up_task(&mut self, tg: TgId, cpu: CpuId) {
        let cfs = self.tg[tg].cfs_rq[cpu.index()];
        let charges = self.kernel.bandwidth.throttle == Throttle::Task;
        if charges {
            self.update_curr(cfs);
        }
        self.cfs_rq[cfs].throttle_count -= 1;
        if self.cfs_rq[cfs].throttle_count != 0 {
            return;
        }
        self.restart_clock_pelt(cfs);
        let clock = self.rq[cpu].clock;
        let queue = self.cfs_rq_runtime_mut(cfs);
        let since = std::mem::take(&mut queue.throttled_clock_self);
        if since != 0 {
            queue.throttled_clock_self_time += clock - since;
        }
        let mut waiting = std::mem::take(&mut self.bandwidth.limbo[cfs.index()]);
        let flags = QueueFlags { wakeup: self.kernel.entity.pick == Pick::Eevdf, ..QueueFlags::default() };
        while (!charges || self.cfs_rq[cfs].throttle_count == 0)
            && let Some(p) = waiting.pop_front()
        {
            self.task_cold[p].throttled = false;
            self.enqueue_task_fair(cpu, p, flags);
        }
        waiting.append(&mut self.bandwidth.limbo[cfs.index()]);
        self.bandwidth.limbo[cfs.index()] = waiting;
        if !self.cfs_rq_is_decayed(cfs) {
            self.list_add_leaf_cfs_rq(cfs);
        }
    }
}
