//! fair.c: what load balancing asks cache-aware scheduling: whether a task is to be pulled towards the last level cache (LLC)
//! that it prefers, or to be left there.

use super::CachePacking;
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::balance::{LbEnv, MigrationType, SgLbStats};
use crate::sched::{SchedClass, TaskId};
use crate::topology::{CpuIdleType, SdFlags, SgId};
use units::CpuId;

/// fair.c: enum llc_mig. What the utilization of two LLCs says about a move between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::fair) enum LlcMig {
    /// The task must stay.
    Forbid,
    /// The task is moved because of its preference.
    Llc,
    /// Balancing ignores preferences.
    Unrestricted,
}

/// Utilization and capacity of an LLC's CPUs; 1024 is a full CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct LlcStats {
    pub util: u64,
    pub capacity: u64,
}

/// From which utilization an LLC counts as full, and which difference between two is noticeable.
#[derive(Clone, Copy, Debug)]
pub(super) struct LlcLimits {
    /// `llc_overaggr_pct`, increased by a half if cores have one thread.
    pub overaggr_pct: u64,
    pub imb_pct: u64,
}

impl LlcLimits {
    /// fair.c: fits_llc_capacity().
    fn fits_llc_capacity(self, stats: LlcStats) -> bool {
        stats.util * 100 < stats.capacity * self.overaggr_pct
    }

    /// fair.c: util_greater(). Greater by a noticeable amount.
    fn util_greater(self, a: LlcStats, b: LlcStats) -> bool {
        a.util * 100 > b.util * (100 + self.imb_pct)
    }

    /// can_migrate_llc(), for a task of utilization `util`. If both LLCs are full, preferences do not count. Otherwise the
    /// preferred LLC takes tasks until it is full and noticeably more used than the other; and only then it gives some away.
    pub(super) fn can_migrate(self, mut src: LlcStats, mut dst: LlcStats, util: u64, to_preferred: bool) -> LlcMig {
        src.util = src.util.saturating_sub(util);
        dst.util += util;
        let (src_fits, dst_fits) = (self.fits_llc_capacity(src), self.fits_llc_capacity(dst));
        if !dst_fits && !src_fits {
            return LlcMig::Unrestricted;
        }
        let forbids = if to_preferred {
            !dst_fits && self.util_greater(dst, src)
        } else {
            src_fits || !self.util_greater(src, dst)
        };
        if forbids { LlcMig::Forbid } else { LlcMig::Llc }
    }
}

impl<A: Arch> Sched<A> {
    pub(super) fn llc_limits(&self) -> LlcLimits {
        let pct = self.sysctl.llc_overaggr_pct;
        let overaggr_pct = if self.balance.cache.smt_threads == 1 { pct * 3 / 2 } else { pct };
        LlcLimits { overaggr_pct, imb_pct: self.sysctl.llc_imb_pct }
    }

    /// fair.c: get_llc_stats(). As periodic balancing last recorded them.
    fn get_llc_stats(&mut self, cpu: CpuId) -> Option<LlcStats> {
        let shared = self.domains.sd_llc_shared[cpu]?;
        self.read_domain_shared(shared);
        let of = &self.domains[shared];
        Some(LlcStats { util: of.util_avg, capacity: of.capacity })
    }

    /// fair.c: can_migrate_llc(). Each CPU stands for its LLC.
    pub(super) fn can_migrate_llc(&mut self, src_cpu: CpuId, dst_cpu: CpuId, util: u64, to_pref: bool) -> LlcMig {
        let (Some(src), Some(dst)) = (self.get_llc_stats(src_cpu), self.get_llc_stats(dst_cpu)) else {
            return LlcMig::Unrestricted;
        };
        self.llc_limits().can_migrate(src, dst, util, to_pref)
    }

    /// fair.c: task_misfits_asym_cpu(). Whether the move would turn the task into a misfit.
    fn task_misfits_asym_cpu(&self, env: &LbEnv, p: TaskId) -> bool {
        self.domains[env.sd].flags.has(SdFlags::SD_ASYM_CPUCAPACITY)
            && !self.task_fits_cpu(p, env.dst_cpu)
            && self.task_fits_cpu(p, env.src_cpu)
    }

    fn packs_first(&self) -> bool {
        self.kernel.balance.cache_packing == CachePacking::Before
    }

    /// fair.c: can_migrate_llc_task().
    fn can_migrate_llc_task(&mut self, env: &LbEnv, p: TaskId) -> LlcMig {
        if self.task_misfits_asym_cpu(env, p) {
            return LlcMig::Forbid;
        }
        let Some(group) = self.balance.cache.task[p].group else { return LlcMig::Unrestricted };
        self.read_cache_group(group);
        let Some(cpu) = self.balance.cache.group[group].cpu else { return LlcMig::Unrestricted };
        if self.cpus_share_cache(env.src_cpu, env.dst_cpu) {
            return LlcMig::Unrestricted;
        }
        if self.packs_first() && env.idle != CpuIdleType::NotIdle && self.sched_asym(env.sd, env.dst_cpu, env.src_cpu) {
            return LlcMig::Unrestricted;
        }
        if self.invalid_llc_nr(group, env.dst_cpu) || self.exceed_llc_capacity(group, env.dst_cpu) {
            self.forget_preferred_llc(group);
            return LlcMig::Unrestricted;
        }
        let to_pref = match (self.cpus_share_cache(env.dst_cpu, cpu), self.cpus_share_cache(env.src_cpu, cpu)) {
            (true, _) => true,
            (false, true) => false,
            (false, false) => return LlcMig::Unrestricted,
        };
        self.can_migrate_llc(env.src_cpu, env.dst_cpu, self.task_util(p), to_pref)
    }

    /// fair.c: alb_break_llc(). Whether to leave the running task of `src_cpu` alone, because every task queued there is in the
    /// LLC that it prefers.
    #[inline]
    pub(in crate::fair) fn alb_break_llc(&mut self, env: &LbEnv) -> bool {
        self.balance.cache.is_active() && self.active_balance_breaks_llc(env)
    }

    #[inline(never)]
    fn active_balance_breaks_llc(&mut self, env: &LbEnv) -> bool {
        if self.cpus_share_cache(env.src_cpu, env.dst_cpu) {
            return false;
        }
        let preferring = self.balance.cache.rq[env.src_cpu].nr_pref_llc_running;
        let runnable = self.cfs_h_nr_running(env.src_cpu) - self.cfs_h_nr_delayed(env.src_cpu);
        if preferring == 0 || preferring != runnable || env.migration_type == MigrationType::Misfit {
            return false;
        }
        if self.rq[env.src_cpu].nr_running <= 1 {
            return true;
        }
        let curr = self.rq[env.src_cpu].curr;
        let fair = curr.filter(|&curr| self.task[curr].sched_class == SchedClass::Fair);
        let util = fair.map_or(0, |curr| self.task_util(curr));
        curr.is_some_and(|curr| self.task_misfits_asym_cpu(env, curr))
            || self.can_migrate_llc(env.src_cpu, env.dst_cpu, util, false) == LlcMig::Forbid
    }

    /// fair.c: migrate_llc_task_wrong_dst(). Whether this balancing serves preferences, but the task prefers another LLC.
    #[inline]
    pub(in crate::fair) fn migrate_llc_task_wrong_dst(&self, p: TaskId, env: &LbEnv) -> bool {
        self.balance.cache.is_active()
            && (env.migration_type == MigrationType::LlcTask || env.flags.active_lb_llc)
            && self.balance.cache.task[p].preferred_llc != self.llc_id(env.dst_cpu)
    }

    /// fair.c: migrate_degrades_llc(). Whether the task should stay. Balancing that has failed too often ignores this.
    #[inline]
    pub(in crate::fair) fn migrate_degrades_llc(&mut self, p: TaskId, env: &LbEnv) -> bool {
        self.balance.cache.is_active() && self.degrades_llc(p, env)
    }

    #[inline(never)]
    fn degrades_llc(&mut self, p: TaskId, env: &LbEnv) -> bool {
        if self.gives_up_on_llcs(env) {
            return false;
        }
        self.migrate_llc_task_wrong_dst(p, env) || self.can_migrate_llc_task(env, p) == LlcMig::Forbid
    }

    fn gives_up_on_llcs(&self, env: &LbEnv) -> bool {
        let sd = &self.domains[env.sd];
        sd.nr_balance_failed > sd.cache_nice_tries
    }

    /// The part of update_sg_lb_stats() that counts how many tasks of a CPU prefer the LLC of the pulling CPU.
    #[inline]
    pub(in crate::fair) fn nr_pref_dst_llc(&mut self, env: &LbEnv, cpu: CpuId) -> u32 {
        if self.balance.cache.is_active() { self.count_pref_dst_llc(env, cpu) } else { 0 }
    }

    #[inline(never)]
    fn count_pref_dst_llc(&mut self, env: &LbEnv, cpu: CpuId) -> u32 {
        match self.llc_id(env.dst_cpu) {
            Some(llc) if self.llc_id(cpu) != Some(llc) => {
                self.read_llc_counts(cpu);
                self.balance.cache.llc_count(cpu, llc)
            }
            _ => 0,
        }
    }

    /// fair.c: llc_balance(). Whether tasks of the group, which is an LLC, are to move to that of the pulling CPU.
    #[inline]
    pub(in crate::fair) fn llc_balance(&mut self, env: &LbEnv, sgs: &SgLbStats, group: SgId) -> bool {
        self.balance.cache.is_active() && self.balances_llc(env, sgs, group)
    }

    #[inline(never)]
    fn balances_llc(&mut self, env: &LbEnv, sgs: &SgLbStats, group: SgId) -> bool {
        let flags = self.domains[env.sd].flags;
        if flags.has(SdFlags::SD_SHARE_LLC)
            || flags.has(SdFlags::SD_ASYM_CPUCAPACITY) && sgs.group_misfit_task_load != 0
            || sgs.group_asym_packing && self.packs_first()
            || self.gives_up_on_llcs(env)
            || sgs.nr_pref_dst_llc == 0
        {
            return false;
        }
        let first = self.domains.sched_group_span(group).first().expect("a group has CPUs");
        self.can_migrate_llc(first, env.dst_cpu, 0, true) == LlcMig::Llc
    }

    /// fair.c: record_sg_llc_stats(). Records what periodic balancing between LLCs has seen of a group where the CPUs of that LLC
    /// find it.
    #[inline]
    pub(in crate::fair) fn record_sg_llc_stats(&mut self, env: &LbEnv, sgs: &SgLbStats, group: SgId) {
        if self.balance.cache.is_active() && env.idle != CpuIdleType::NewlyIdle {
            self.record_llc_stats(env, sgs, group);
        }
    }

    #[inline(never)]
    fn record_llc_stats(&mut self, env: &LbEnv, sgs: &SgLbStats, group: SgId) {
        if self.domains[env.sd].child != self.domains.sd_llc[env.dst_cpu] {
            return;
        }
        let first = self.domains.sched_group_span(group).first().expect("a group has CPUs");
        let Some(shared) = self.domains.sd_llc_shared[first] else { return };
        self.read_domain_shared(shared);
        let of = &self.domains[shared];
        if (of.util_avg, of.capacity) != (sgs.group_util, sgs.group_capacity) {
            self.write_domain_shared(shared);
            let of = &mut self.domains[shared];
            (of.util_avg, of.capacity) = (sgs.group_util, sgs.group_capacity);
        }
    }
}
