//! fair.c: whether a woken task preempts what runs, and the buddies: entities that a queue remembers and prefers to
//! run.

use super::rules::{IdlePreempt, Pick, WakeupPreempt};
use super::timeline::entity_before;
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::load_weight::calc_delta_fair;
use crate::sched::*;
use fentry::fentry;
use units::{CpuId, unlikely};

/// One of the three entities that a queue remembers.
#[derive(Clone, Copy)]
enum Buddy {
    Next,
    Last,
    Skip,
}

/// fair.c: enum preempt_wakeup_action: what a wakeup does about the running task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PreemptWakeup {
    None,
    /// Preempt it if the woken task would be picked when the running one is not protected, or (v7.3) is only eligible.
    Short,
    /// Preempt it if the woken task would be picked in spite of the protection.
    Pick,
    Resched,
}

impl CfsRq {
    #[inline]
    fn buddy(&mut self, buddy: Buddy) -> &mut Option<SeId> {
        match buddy {
            Buddy::Next => &mut self.next,
            Buddy::Last => &mut self.last,
            Buddy::Skip => &mut self.skip,
        }
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: clear_buddies().
    #[inline]
    pub(crate) fn clear_buddies(&mut self, cfs: CfsRqId, se: SeId) {
        let CfsRq { buddies, next, last, skip, .. } = self.cfs_rq[cfs];
        if unlikely(buddies) && [next, last, skip].contains(&Some(se)) {
            self.clear_each_buddy(cfs, se);
        }
    }

    #[inline(never)]
    fn clear_each_buddy(&mut self, cfs: CfsRqId, se: SeId) {
        let CfsRq { next, last, skip, .. } = self.cfs_rq[cfs];
        if unlikely(last.is_some() || skip.is_some()) {
            return self.clear_other_buddies(cfs, se);
        }
        // Usually a group from which one of several tasks went to sleep.
        debug_assert_eq!(next, Some(se), "it is one of them");
        let cfs_rq = &mut self.cfs_rq[cfs];
        (cfs_rq.next, cfs_rq.buddies) = (None, false);
        if let Some(parent) = self.se[se].parent
            && self.cfs_rq[self.se[parent].cfs_rq].next == Some(parent)
        {
            self.clear_buddy(parent, Buddy::Next);
        }
    }

    #[inline(never)]
    fn clear_other_buddies(&mut self, cfs: CfsRqId, se: SeId) {
        let CfsRq { next, last, skip, .. } = self.cfs_rq[cfs];
        for (is, buddy) in [(last, Buddy::Last), (next, Buddy::Next), (skip, Buddy::Skip)] {
            if is == Some(se) {
                self.clear_buddy(se, buddy);
            }
        }
    }

    /// `__clear_buddies_last()`, `__clear_buddies_next()`, `__clear_buddies_skip()`: clears the buddy upwards, as far
    /// as the chain of buddies goes.
    #[inline(never)]
    fn clear_buddy(&mut self, se: SeId, buddy: Buddy) {
        let mut level = Some(se);
        while let Some(se) = level {
            let cfs_rq = &mut self.cfs_rq[self.se[se].cfs_rq];
            let slot = cfs_rq.buddy(buddy);
            if *slot != Some(se) {
                return;
            }
            *slot = None;
            cfs_rq.buddies = cfs_rq.next.is_some() || cfs_rq.last.is_some() || cfs_rq.skip.is_some();
            level = self.se[se].parent;
        }
    }

    /// fair.c: set_next_buddy().
    pub(crate) fn set_next_buddy(&mut self, se: SeId) {
        self.set_buddy(se, Buddy::Next);
    }

    /// fair.c: set_skip_buddy().
    pub(crate) fn set_skip_buddy(&mut self, se: SeId) {
        self.set_buddy(se, Buddy::Skip);
    }

    /// fair.c: set_last_buddy().
    fn set_last_buddy(&mut self, se: SeId) {
        self.set_buddy(se, Buddy::Last);
    }

    /// The body of all three. Neither a SCHED_IDLE task nor an idle group can become a preferred buddy, but both may be
    /// skipped. If a group was throttled under a running task, its entity is not queued: it can still be marked for
    /// skipping, which takes effect when it comes back, but it cannot be preferred (v4.5 does not check, and might run
    /// it).
    fn set_buddy(&mut self, se: SeId, buddy: Buddy) {
        if self.picks_flat() {
            return self.set_buddy_flat(se, buddy);
        }
        let mut level = Some(se);
        while let Some(se) = level {
            if self.se_is_idle(se) && !matches!(buddy, Buddy::Skip) {
                return;
            }
            let entity = &self.se[se];
            if !entity.on_rq && !matches!(buddy, Buddy::Skip) {
                debug_assert!(self.throttled_hierarchy(entity.cfs_rq) || entity.my_q.is_some(), "a buddy is queued");
                return;
            }
            let cfs_rq = &mut self.cfs_rq[entity.cfs_rq];
            *cfs_rq.buddy(buddy) = Some(se);
            cfs_rq.buddies = true;
            level = entity.parent;
        }
    }

    /// The same where all tasks of the CPU compete on one queue.
    fn set_buddy_flat(&mut self, se: SeId, buddy: Buddy) {
        let SchedEntity { on_rq, sched_delayed, .. } = self.se[se];
        if !on_rq || sched_delayed || self.se_is_idle(se) {
            return;
        }
        let root = self.competes_on(se);
        let cfs_rq = &mut self.cfs_rq[root];
        *cfs_rq.buddy(buddy) = Some(se);
        cfs_rq.buddies = true;
    }

    /// fair.c: wakeup_gran(). The wakeup granularity in the virtual time of `se`, so that light tasks preempt less.
    #[inline]
    fn wakeup_gran(&mut self, se: SeId) -> u64 {
        let gran = self.sysctl.sched_wakeup_granularity;
        calc_delta_fair(self.kernel.load_resolution, gran, &mut self.se[se].load)
    }

    /// fair.c: wakeup_preempt_entity(). Whether `se` should preempt `curr`: 1 yes; 0 it is ahead, but by less than the
    /// granularity; -1 it is not ahead.
    #[inline]
    pub(crate) fn wakeup_preempt_entity(&mut self, curr: SeId, se: SeId) -> i32 {
        let vdiff = self.se[curr].vruntime.wrapping_sub(self.se[se].vruntime) as i64;
        if vdiff <= 0 {
            return -1;
        }
        i32::from(vdiff > self.wakeup_gran(se) as i64)
    }

    /// fair.c: find_matching_se(), until v7.2. The ancestors of two tasks' entities that are on a common queue: themselves, where all
    /// tasks of the CPU are.
    fn find_matching_se(&self, se: SeId, pse: SeId) -> (SeId, SeId) {
        if self.picks_flat() {
            return (se, pse);
        }
        let up = |se: SeId| self.se[se].parent.expect("entities of one CPU meet at its root queue at the latest");
        let (mut se, mut pse) = (se, pse);
        while self.se[se].depth > self.se[pse].depth {
            se = up(se);
        }
        while self.se[pse].depth > self.se[se].depth {
            pse = up(pse);
        }
        while self.se[se].cfs_rq != self.se[pse].cfs_rq {
            se = up(se);
            pse = up(pse);
        }
        (se, pse)
    }

    /// fair.c: check_preempt_wakeup_fair() (wakeup_preempt_fair() in v7.2). Whether `p`, which was just queued on
    /// `cpu`, preempts what runs there.
    #[fentry(check_preempt_wakeup)]
    #[doc(alias = "check_preempt_wakeup")]
    #[doc(alias = "wakeup_preempt_fair")]
    pub(crate) fn check_preempt_wakeup_fair(&mut self, cpu: CpuId, p: TaskId, wake_flags: WakeFlags) {
        self.read_rq_curr(cpu);
        let curr = self.rq[cpu].curr.expect("the idle task is another class");
        if curr == p {
            return;
        }
        match self.kernel.entity.pick {
            Pick::Cfs => self.check_preempt_wakeup_cfs(cpu, curr, p, wake_flags),
            Pick::Eevdf => match self.kernel.entity.wakeup_preempt {
                WakeupPreempt::Pick => self.check_preempt_wakeup_eevdf(cpu, curr, p, wake_flags),
                WakeupPreempt::ActionsAfterBuddy | WakeupPreempt::Actions => {
                    self.wakeup_preempt_by_action(cpu, curr, p, wake_flags);
                }
                WakeupPreempt::Shorter => self.wakeup_preempt_shorter(cpu, curr, p, wake_flags),
            },
        }
    }

    /// `wakeup_preempt_fair()` since v7.3.
    fn wakeup_preempt_shorter(&mut self, cpu: CpuId, curr: TaskId, p: TaskId, wake_flags: WakeFlags) {
        if self.enqueue_was_throttled(p) {
            return;
        }
        let due = self.rq[cpu].need_resched && !self.sched_feat(Feature::PREEMPT_SHORT);
        if due || !self.sched_feat(Feature::WAKEUP_PREEMPTION) {
            return;
        }
        let (se, pse) = self.find_matching_se(self.task[curr].se, self.task[p].se);
        let (curr_idle, idle) = (self.se_is_idle(se), self.se_is_idle(pse));
        if curr_idle && !idle {
            self.cancel_protect_slice(se);
            return self.resched_curr_lazy(cpu);
        }
        let cfs = self.competes_on(se);
        self.update_curr_before(curr, cfs);
        let may = curr_idle == idle && self.task[p].policy == Policy::Normal && !self.se[pse].sched_delayed;
        if may {
            let action = self.preempt_wakeup_action(cfs, pse, se, wake_flags);
            let short = action == PreemptWakeup::Short;
            let preempts = match action {
                PreemptWakeup::None if wake_flags.fork => false,
                PreemptWakeup::None => return,
                PreemptWakeup::Resched => true,
                PreemptWakeup::Short | PreemptWakeup::Pick => {
                    self.is_picked(cfs, pse, !short) || short && self.entity_eligible(cfs, pse)
                }
            };
            if preempts {
                self.cancel_protect_slice(se);
                if short {
                    self.set_short_buddy(cfs, pse);
                }
                return self.resched_curr_lazy(cpu);
            }
        }
        if self.sched_feat(Feature::RUN_TO_PARITY) {
            self.update_protect_slice(cfs, se);
        }
    }

    /// Charges what runs before the woken task is compared with it on `cfs`.
    fn update_curr_before(&mut self, curr: TaskId, cfs: CfsRqId) {
        if self.picks_flat() { self.update_curr_fair(curr) } else { self.update_curr(cfs) }
    }

    /// fair.c: set_short_buddy() (v7.3). `pse` becomes the next buddy, unless there is one that asks for less.
    fn set_short_buddy(&mut self, cfs: CfsRqId, pse: SeId) {
        let shorter = self.cfs_rq[cfs].next.is_some_and(|next| self.se[next].slice < self.se[pse].slice);
        if !shorter {
            self.set_next_buddy(pse);
        }
    }

    /// `wakeup_preempt_fair()` since v6.19, and in late releases of v6.18.y (`check_preempt_wakeup_fair()`).
    fn wakeup_preempt_by_action(&mut self, cpu: CpuId, curr: TaskId, p: TaskId, wake_flags: WakeFlags) {
        let (se, pse) = (self.task[curr].se, self.task[p].se);
        if self.enqueue_was_throttled(p) {
            return;
        }
        if self.rq[cpu].need_resched || !self.sched_feat(Feature::WAKEUP_PREEMPTION) {
            return;
        }
        let of_curr = self.competes_on(se);
        let (se, pse) = self.find_matching_se(se, pse);
        let (curr_idle, idle) = (self.se_is_idle(se), self.se_is_idle(pse));
        if curr_idle && !idle {
            // An idle entity's slice is not protected. Its buddies are cleared on the task's own queue, which may be
            // further down.
            return self.preempt(cpu, of_curr, se, PreemptWakeup::Short);
        }
        if curr_idle != idle || self.task[p].policy != Policy::Normal {
            return;
        }
        let cfs = self.competes_on(se);
        self.update_curr_before(curr, cfs);
        let action = self.preempt_wakeup_action(cfs, pse, se, wake_flags);
        let preempts = match action {
            PreemptWakeup::None => return,
            PreemptWakeup::Resched => true,
            PreemptWakeup::Short | PreemptWakeup::Pick => self.is_picked(cfs, pse, action == PreemptWakeup::Pick),
        };
        if preempts {
            self.preempt(cpu, cfs, se, action);
        } else if self.sched_feat(Feature::RUN_TO_PARITY) {
            self.update_protect_slice(cfs, se);
        }
    }

    /// The part of `wakeup_preempt_fair()` that decides what to do about `pse`, woken, while `se` runs. A new task does
    /// not preempt, because exec usually follows; nor does one whose dequeue is delayed.
    fn preempt_wakeup_action(&mut self, cfs: CfsRqId, pse: SeId, se: SeId, flags: WakeFlags) -> PreemptWakeup {
        if self.sched_feat(Feature::PREEMPT_SHORT) && self.se[pse].slice < self.se[se].slice {
            return PreemptWakeup::Short;
        }
        if flags.fork || self.se[pse].sched_delayed {
            return PreemptWakeup::None;
        }
        if self.sched_feat(Feature::NEXT_BUDDY) && self.set_preempt_buddy(cfs, pse) && flags.sync {
            return self.preempt_sync(pse, se);
        }
        PreemptWakeup::Pick
    }

    /// The part of `wakeup_preempt_fair()` that checks whether `pse` would be picked now. Delayed sleepers that would
    /// be picked are dequeued.
    fn is_picked(&mut self, cfs: CfsRqId, pse: SeId, protect: bool) -> bool {
        loop {
            match self.pick_next_entity_eevdf(cfs, protect) {
                Some(next) => return next == pse,
                None if self.competitors(cfs) == 0 => return false,
                None => {}
            }
        }
    }

    /// The end of `wakeup_preempt_fair()`, if the running entity is preempted.
    fn preempt(&mut self, cpu: CpuId, cfs: CfsRqId, se: SeId, action: PreemptWakeup) {
        if action == PreemptWakeup::Short {
            self.cancel_protect_slice(se);
            if self.kernel.entity.wakeup_preempt != WakeupPreempt::ActionsAfterBuddy {
                self.clear_buddies(cfs, se);
            }
        }
        self.resched_curr_lazy(cpu);
    }

    /// fair.c: set_preempt_buddy(). `pse` becomes the next buddy, unless there is one with an earlier deadline.
    fn set_preempt_buddy(&mut self, cfs: CfsRqId, pse: SeId) -> bool {
        if let Some(next) = self.cfs_rq[cfs].next
            && entity_before(self.se[next].deadline, self.se[pse].deadline)
        {
            return false;
        }
        self.set_next_buddy(pse);
        true
    }

    /// fair.c: preempt_sync(). The waker announces that it is about to sleep, which is not always true. So it may run
    /// on, and wake others, for as long as a task counts as cache-hot.
    /// Differs: if the class chose the CPU (WF_RQ_SELECTED), the kernel means a quarter of that time. But it measures
    /// from `update_curr()`, which was called just before: the measured time is always zero, for which a quarter makes
    /// no difference (except for 1 to 3 ns).
    fn preempt_sync(&self, pse: SeId, se: SeId) -> PreemptWakeup {
        let (woken, running) = (&self.se[pse], &self.se[se]);
        let ran = self.rq[self.cfs_rq[running.cfs_rq].rq].clock_task.wrapping_sub(running.exec_start) as i64;
        let over = ran.max(0) as u64 >= self.sysctl.sched_migration_cost;
        match over && entity_before(woken.deadline, running.deadline) {
            true => PreemptWakeup::Resched,
            false => PreemptWakeup::None,
        }
    }

    /// `check_preempt_wakeup_fair()` of v6.6 and v6.12: preempts if `p` would be picked.
    fn check_preempt_wakeup_eevdf(&mut self, cpu: CpuId, curr: TaskId, p: TaskId, wake_flags: WakeFlags) {
        let (se, pse) = (self.task[curr].se, self.task[p].se);
        if self.enqueue_was_throttled(p) {
            return;
        }
        if self.sched_feat(Feature::NEXT_BUDDY) && !wake_flags.fork && !self.se[pse].sched_delayed {
            self.set_next_buddy(pse);
        }
        if self.rq[cpu].need_resched {
            return;
        }
        let by_policy = self.kernel.entity.idle_preempt == IdlePreempt::Kept;
        if by_policy && self.task_has_idle_policy(curr) && !self.task_has_idle_policy(p) {
            return self.resched_curr_lazy(cpu);
        }
        let normal = self.task[p].policy == Policy::Normal;
        if !self.sched_feat(Feature::WAKEUP_PREEMPTION) || by_policy && !normal {
            return;
        }
        let (se, pse) = self.find_matching_se(se, pse);
        let (curr_idle, idle) = (self.se_is_idle(se), self.se_is_idle(pse));
        if curr_idle && !idle {
            if !by_policy {
                // An idle entity's slice is not protected.
                self.cancel_protect_slice(se);
            }
            return self.resched_curr_lazy(cpu);
        }
        if curr_idle != idle || !normal {
            return;
        }
        let cfs = self.competes_on(se);
        self.update_curr_before(curr, cfs);
        if self.do_preempt_short(cfs, pse, se) {
            self.cancel_protect_slice(se);
        }
        if self.pick_eevdf(cfs, true) == Some(pse) {
            self.resched_curr_lazy(cpu);
        }
    }

    /// `check_preempt_wakeup_fair()` until v6.5: preempts if `p` is ahead by more than the wakeup granularity.
    fn check_preempt_wakeup_cfs(&mut self, cpu: CpuId, curr: TaskId, p: TaskId, wake_flags: WakeFlags) {
        let (se, pse) = (self.task[curr].se, self.task[p].se);
        // The enqueue of `p` may have found its queue out of runtime.
        if self.enqueue_was_throttled(p) {
            return;
        }
        let scale = self.is_past_nr_latency(self.cfs_rq[self.se[se].cfs_rq].nr_running);
        let mut next_buddy_marked = false;
        if self.sched_feat(Feature::NEXT_BUDDY) && scale && !wake_flags.fork {
            self.set_next_buddy(pse);
            next_buddy_marked = true;
        }
        if self.rq[cpu].need_resched {
            return;
        }
        let mut se = se;
        if !self.task_has_idle_policy(curr) || self.task_has_idle_policy(p) {
            if self.task[p].policy != Policy::Normal || !self.sched_feat(Feature::WAKEUP_PREEMPTION) {
                return;
            }
            let (curr_se, pse) = self.find_matching_se(se, pse);
            se = curr_se;
            let (curr_idle, idle) = (self.se_is_idle(se), self.se_is_idle(pse));
            // An idle group gives way to any other, and preempts none.
            if !curr_idle && idle {
                return;
            }
            if curr_idle == idle {
                self.update_curr(self.se[se].cfs_rq);
                if self.wakeup_preempt_entity(se, pse) != 1 {
                    return;
                }
                if !next_buddy_marked {
                    self.set_next_buddy(pse);
                }
            }
        }
        self.resched_curr(cpu);
        if self.se[se].on_rq && self.sched_feat(Feature::LAST_BUDDY) && scale && self.se[se].task.is_some() {
            self.set_last_buddy(se);
        }
    }
}
