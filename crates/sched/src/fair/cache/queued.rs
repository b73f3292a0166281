//! fair.c: how many queued tasks prefer which last level cache (LLC).

use super::{CacheBalancing, LlcId};
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::{SeId, TaskId};
use units::CpuId;

impl CacheBalancing {
    /// `sd->llc_counts[llc]`, if the CPU's lowest domain has these counts.
    #[inline]
    pub(super) fn llc_count(&self, cpu: CpuId, llc: LlcId) -> u32 {
        self.rq[cpu].llc_counts.get(usize::from(llc)).copied().unwrap_or(0)
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: account_llc_enqueue().
    pub(in crate::fair) fn account_llc_enqueue(&mut self, cpu: CpuId, p: TaskId) {
        let Some(preferred) = self.balance.cache.task[p].preferred_llc else { return };
        let there = self.llc_id(self.task[p].cpu) == Some(preferred);
        self.balance.cache.task[p].pref_llc_queued = there;
        self.pref_llc_running_inc(cpu, p);
        self.write_llc_counts(cpu);
        if let Some(count) = self.balance.cache.rq[cpu].llc_counts.get_mut(usize::from(preferred)) {
            *count += 1;
        }
    }

    /// fair.c: account_llc_dequeue(). Domains may have been rebuilt since the task was queued, so its count may be
    /// missing.
    pub(in crate::fair) fn account_llc_dequeue(&mut self, cpu: CpuId, p: TaskId) {
        let Some(preferred) = self.balance.cache.task[p].preferred_llc else { return };
        self.pref_llc_running_dec(cpu, p);
        self.balance.cache.task[p].pref_llc_queued = false;
        self.write_llc_counts(cpu);
        if let Some(count) = self.balance.cache.rq[cpu].llc_counts.get_mut(usize::from(preferred)) {
            *count = count.saturating_sub(1);
        }
    }

    /// fair.c: task_pref_llc_runnable(). Whether the task was queued in the LLC that it prefers, and is not asleep.
    fn task_pref_llc_runnable(&self, p: TaskId) -> bool {
        self.balance.cache.task[p].pref_llc_queued && !self.se[self.task[p].se].sched_delayed
    }

    /// fair.c: pref_llc_running_inc().
    fn pref_llc_running_inc(&mut self, cpu: CpuId, p: TaskId) {
        if self.task_pref_llc_runnable(p) {
            self.balance.cache.rq[cpu].nr_pref_llc_running += 1;
        }
    }

    /// fair.c: pref_llc_running_dec().
    fn pref_llc_running_dec(&mut self, cpu: CpuId, p: TaskId) {
        if self.task_pref_llc_runnable(p) {
            self.balance.cache.rq[cpu].nr_pref_llc_running -= 1;
        }
    }

    // What happens to entities, if processes are tracked.

    /// The part of account_entity_enqueue() that counts preferences.
    #[inline]
    pub(in crate::fair) fn llc_enqueue_entity(&mut self, se: SeId) {
        if self.balance.cache.is_followed()
            && let Some(p) = self.se[se].task
        {
            self.account_llc_enqueue(self.cfs_rq[self.se[se].cfs_rq].rq, p);
        }
    }

    /// The part of account_entity_dequeue() that counts preferences.
    #[inline]
    pub(in crate::fair) fn llc_dequeue_entity(&mut self, se: SeId) {
        if self.balance.cache.is_followed()
            && let Some(p) = self.se[se].task
        {
            self.account_llc_dequeue(self.cfs_rq[self.se[se].cfs_rq].rq, p);
        }
    }

    /// The part of set_delayed(), where it comes first, or of clear_delayed(), where it comes last.
    #[inline]
    pub(in crate::fair) fn llc_delay_entity(&mut self, se: SeId, delays: bool) {
        if self.balance.cache.is_followed()
            && let Some(p) = self.se[se].task
        {
            let cpu = self.cfs_rq[self.se[se].cfs_rq].rq;
            if delays { self.pref_llc_running_dec(cpu, p) } else { self.pref_llc_running_inc(cpu, p) }
        }
    }
}
