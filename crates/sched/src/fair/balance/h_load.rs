//! fair.c: loads of groups as balancing sees them: aging of blocked load, and what a task in a group weighs on its CPU.

use super::DecayedQueues;
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpufreq::{UpdateFlags, UpdateUtil};
use crate::fair::load::{BlockedNews, UpdateLoad};
use crate::pelt::Pelt;
use crate::sched::{CfsRqId, SeId, TaskId};
use fentry::fentry;
use units::CpuId;

/// The outcome of aging a CPU's fair queues.
#[derive(Clone, Copy, Default)]
struct Blocked {
    /// Whether the CPU's root queue has a new average.
    decayed: bool,
    /// Whether any queue has load left to decay.
    has_blocked: bool,
}

impl<A: Arch> Sched<A> {
    /// fair.c: update_blocked_averages(). Ages every queue of the CPU that has load, and what other classes used.
    #[fentry]
    #[doc(alias = "sched_balance_update_blocked_averages")]
    pub(crate) fn update_blocked_averages(&mut self, cpu: CpuId) {
        self.rq_lock(cpu);
        self.rq[cpu].last_blocked_load_update_tick = self.jiffies();
        self.update_rq_clock(cpu);
        self.__update_blocked_averages(cpu);
        self.rq_unlock(cpu);
    }

    /// The same under the lock of the CPU's runqueue, by its clock as it is: newly-idle balancing does this from v7.2
    /// on.
    #[fentry(update_blocked_averages)]
    pub(super) fn update_blocked_averages_locked(&mut self, cpu: CpuId) {
        self.rq[cpu].last_blocked_load_update_tick = self.jiffies();
        self.__update_blocked_averages(cpu);
    }

    /// fair.c: __sched_balance_update_blocked_averages(). The part that needs the lock.
    #[doc(alias = "__sched_balance_update_blocked_averages")]
    #[inline(always)]
    fn __update_blocked_averages(&mut self, cpu: CpuId) {
        // Then nobody is told of the other classes.
        let fair_first = self.kernel.cpufreq.update_util == UpdateUtil::AgedAndArrivals;
        let first = fair_first.then(|| self.__update_blocked_fair(cpu));
        let others_decayed = self.update_other_load_avgs(cpu);
        let others = self.others_have_blocked(cpu);
        let fair = first.unwrap_or_else(|| self.__update_blocked_fair(cpu));
        if !fair_first && (others_decayed || fair.decayed) {
            self.other_class_util_change(cpu, UpdateUtil::Queued, UpdateFlags::NONE);
        }
        if !others && !fair.has_blocked {
            self.rq[cpu].has_blocked_load = false;
        }
    }

    /// fair.c: __update_blocked_fair(). Children before parents.
    fn __update_blocked_fair(&mut self, cpu: CpuId) -> Blocked {
        let mut blocked = Blocked::default();
        let mut next = self.rq[cpu].leaf_cfs_rq_list.first.map(CfsRqId);
        while let Some(cfs_rq) = next {
            next = self.cfs_rq[cfs_rq].leaf_cfs_rq_list.next.get().map(CfsRqId);
            // Throttled queues do not count.
            if self.hierarchy_is_off(cfs_rq) {
                continue;
            }
            if self.update_cfs_rq_load_avg(cfs_rq) {
                self.update_tg_load_avg(cfs_rq);
                if self.cfs_rq[cfs_rq].nr_running == 0 {
                    self.update_idle_cfs_rq_clock_pelt(cfs_rq);
                }
                blocked.decayed |= self.rq[cpu].cfs == cfs_rq;
            }
            match self.kernel.pelt {
                Pelt::ByPeriod => {}
                Pelt::Accumulate | Pelt::RunnableAvg => self.propagate_blocked(cfs_rq, cpu),
            }
            match self.kernel.balance.decayed_queues {
                DecayedQueues::Listed => {}
                DecayedQueues::Removed => {
                    if self.cfs_rq_is_decayed(cfs_rq) {
                        self.list_del_leaf_cfs_rq(cfs_rq);
                    }
                }
            }
            blocked.has_blocked |= self.cfs_rq_has_blocked(cfs_rq);
        }
        blocked
    }

    /// fair.c: cfs_rq_has_blocked(). Whether there is load left to decay.
    fn cfs_rq_has_blocked(&self, cfs_rq: CfsRqId) -> bool {
        let avg = &self.cfs_rq[cfs_rq].avg;
        avg.load_avg != 0 || avg.util_avg != 0
    }

    /// Propagates what changed below to the group's entity.
    fn propagate_blocked(&mut self, cfs_rq: CfsRqId, cpu: CpuId) {
        if let Some(se) = self.group_entity(cfs_rq, cpu)
            && !self.skip_blocked_update(se)
        {
            let flags = match self.kernel.load.blocked_news {
                BlockedNews::Untold => UpdateLoad::NONE,
                BlockedNews::Told => UpdateLoad::UPDATE_TG,
            };
            self.update_load_avg(self.se[se].cfs_rq, se, flags);
        }
    }

    /// fair.c: skip_blocked_update(). Whether a group's entity has nothing left to age and nothing to propagate.
    fn skip_blocked_update(&self, se: SeId) -> bool {
        let entity = &self.se[se];
        let news = entity.my_q.is_some_and(|group| self.cfs_rq[group].propagate);
        entity.avg.load_avg == 0 && entity.avg.util_avg == 0 && !news
    }

    /// `cfs_rq->tg->se[cpu]`; the root group has none.
    fn group_entity(&self, cfs_rq: CfsRqId, cpu: CpuId) -> Option<SeId> {
        self.tg[self.cfs_rq[cfs_rq].tg].se.get(cpu.index()).copied()
    }

    /// fair.c: update_cfs_rq_h_load(). The share of the CPU's load that belongs to this queue, computed from the top
    /// down, once per jiffy.
    fn update_cfs_rq_h_load(&mut self, cfs_rq: CfsRqId) {
        // Counted from 1, because 0 means never: the kernel's jiffies start five minutes before zero.
        let now = self.jiffies() + 1;
        if self.cfs_rq[cfs_rq].last_h_load_update == now {
            return;
        }
        let cpu = self.cfs_rq[cfs_rq].rq;
        self.cfs_rq[cfs_rq].h_load_next = None;
        let mut at = cfs_rq;
        let mut entity = self.group_entity(cfs_rq, cpu);
        while let Some(se) = entity {
            at = self.se[se].cfs_rq;
            self.cfs_rq[at].h_load_next = Some(se);
            if self.cfs_rq[at].last_h_load_update == now {
                break;
            }
            entity = self.se[se].parent;
        }
        if entity.is_none() {
            self.cfs_rq[at].h_load = self.cfs_rq_load_avg(at);
            self.cfs_rq[at].last_h_load_update = now;
        }
        while let Some(se) = self.cfs_rq[at].h_load_next {
            self.read_se_avg(se);
            let share = self.cfs_rq[at].h_load.wrapping_mul(self.se[se].avg.load_avg);
            let load = share / (self.cfs_rq_load_avg(at) + 1);
            at = self.se[se].my_q.expect("only groups' entities lead down");
            self.cfs_rq[at].h_load = load;
            self.cfs_rq[at].last_h_load_update = now;
        }
    }

    /// fair.c: task_h_load(). What the task weighs on its CPU, considering the shares of its groups.
    #[fentry]
    pub(crate) fn task_h_load(&mut self, p: TaskId) -> u64 {
        let se = self.task[p].se;
        let cfs_rq = self.se[se].cfs_rq;
        self.update_cfs_rq_h_load(cfs_rq);
        self.read_se_avg(se);
        let share = self.se[se].avg.load_avg.wrapping_mul(self.cfs_rq[cfs_rq].h_load);
        share / (self.cfs_rq_load_avg(cfs_rq) + 1)
    }
}
