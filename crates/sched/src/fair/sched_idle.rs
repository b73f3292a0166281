//! fair.c: SCHED_IDLE: tasks of that policy, groups that are idle as a whole (`cpu.idle`), and how queues count both.

use crate::arch::Arch;
use crate::core::Sched;
use crate::load_weight::WEIGHT_IDLEPRIO;
use crate::sched::*;
use units::{CpuId, unlikely};

impl<A: Arch> Sched<A> {
    /// kernel/sched/sched.h: task_has_idle_policy().
    #[inline]
    pub(crate) fn task_has_idle_policy(&self, p: TaskId) -> bool {
        self.task[p].policy == Policy::Idle
    }

    /// fair.c: cfs_rq_is_idle(). Whether this is the queue of an idle group.
    #[inline]
    pub(crate) fn cfs_rq_is_idle(&self, cfs: CfsRqId) -> bool {
        self.cfs_rq[cfs].idle
    }

    /// fair.c: tg_is_idle().
    #[inline]
    pub fn tg_is_idle(&self, tg: TgId) -> bool {
        self.tg[tg].idle
    }

    /// fair.c: se_is_idle().
    #[inline]
    pub(crate) fn se_is_idle(&self, se: SeId) -> bool {
        unlikely(self.sched_idle_used) && self.se_may_be_idle(se)
    }

    fn se_may_be_idle(&self, se: SeId) -> bool {
        let entity = &self.se[se];
        match (entity.task, entity.my_q) {
            (Some(p), _) => self.task_has_idle_policy(p),
            (None, Some(queue)) => self.cfs_rq_is_idle(queue),
            (None, None) => unreachable!("an entity is a task's or a group's"),
        }
    }

    /// fair.c: sched_idle_rq(). Whether only SCHED_IDLE tasks are queued, and at least one (v5.4).
    #[inline]
    pub(crate) fn sched_idle_rq(&self, cpu: CpuId) -> bool {
        let rq = &self.rq[cpu];
        rq.nr_running != 0 && rq.nr_running == self.cfs_rq[rq.cfs].idle_h_nr_running
    }

    /// fair.c: sched_idle_cfs_rq(). Whether only idle entities are queued, and at least one; tasks inside a group that
    /// is not idle do not count.
    #[inline]
    pub(crate) fn sched_idle_cfs_rq(&self, cfs: CfsRqId) -> bool {
        let cfs_rq = &self.cfs_rq[cfs];
        cfs_rq.nr_running != 0 && cfs_rq.nr_running == cfs_rq.idle_nr_running
    }

    /// fair.c: sched_group_set_idle(): `cpu.idle` (v5.15). The group loses its own shares: it gets the weight of a
    /// SCHED_IDLE task, or the default weight again.
    ///
    /// # Panics
    /// For the root group; the kernel answers EINVAL.
    pub fn sched_group_set_idle(&mut self, tg: TgId, idle: bool) {
        assert_ne!(tg, ROOT_TASK_GROUP, "the root group is never idle");
        if self.tg[tg].idle == idle {
            return;
        }
        self.tg[tg].idle = idle;
        self.sched_idle_used |= idle;
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            self.rq_lock(cpu);
            self.set_queue_idle(self.tg[tg].se[cpu.index()], self.tg[tg].cfs_rq[cpu.index()], idle);
            self.rq_unlock(cpu);
        }
        let resolution = self.kernel.load_resolution;
        let shares = if idle { resolution.scale_load(WEIGHT_IDLEPRIO) } else { resolution.nice_0_load() };
        self.__sched_group_set_shares(tg, shares);
    }

    /// The part of `sched_group_set_idle()` for one CPU: updates the counts above `se`, which represents `queue`.
    fn set_queue_idle(&mut self, se: SeId, queue: CfsRqId, idle: bool) {
        self.cfs_rq[queue].idle = idle;
        let add = |count: &mut u32, delta: u32| if idle { *count += delta } else { *count -= delta };
        if self.se[se].on_rq {
            add(&mut self.cfs_rq[self.se[se].cfs_rq].idle_nr_running, 1);
        }
        // The tasks that begin or cease to count as idle only because of their group.
        let tasks = self.cfs_rq[queue].h_nr_running - self.cfs_rq[queue].idle_h_nr_running;
        let mut level = Some(se);
        while let Some(se) = level
            && self.se[se].on_rq
        {
            let cfs = self.se[se].cfs_rq;
            add(&mut self.cfs_rq[cfs].idle_h_nr_running, tasks);
            // From here on upwards they count as idle already.
            level = if self.cfs_rq_is_idle(cfs) { None } else { self.se[se].parent };
        }
    }
}
