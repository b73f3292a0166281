//! fair.c: wake_affine(): whether a task woken from another CPU should come over to the waking one.

use super::group::MIN_SHARES;
use super::wake::{AffineCount, CpuLoad, EqualWeight, IdlePrevious, IdleWaker, WakeAffine};
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::layout::Statistic;
use crate::sched::*;
use crate::topology::SdId;
use fentry::fentry;
use units::{CpuId, unlikely};

impl<A: Arch> Sched<A> {
    /// fair.c: wake_affine(). Returns this CPU or `prev_cpu`, which is another one.
    #[fentry]
    pub(crate) fn wake_affine(&mut self, sd: SdId, p: TaskId, prev_cpu: CpuId, sync: bool) -> CpuId {
        let this_cpu = self.smp_processor_id();
        let target = match self.kernel.wake.wake_affine {
            WakeAffine::EffectiveLoad => self.wake_affine_effective_load(sd, p, this_cpu, prev_cpu, sync),
            WakeAffine::IdleOrWeight => {
                let mut target = None;
                if self.sched_feat(Feature::WA_IDLE) {
                    target = self.wake_affine_idle(this_cpu, prev_cpu, sync);
                }
                if self.sched_feat(Feature::WA_WEIGHT) && target.is_none() {
                    target = self.wake_affine_weight(sd, p, this_cpu, prev_cpu, sync);
                }
                target
            }
        };
        if unlikely(self.schedstat_enabled()) {
            let moves = match self.kernel.wake.affine_count {
                AffineCount::AnyDecision => target.is_some(),
                AffineCount::Moves => target == Some(this_cpu),
            };
            self.count_affine(sd, p, moves);
        }
        target.unwrap_or(prev_cpu)
    }

    fn count_affine(&mut self, sd: SdId, p: TaskId, affine: bool) {
        self.write_statistic(self.task[p].se, Statistic::NrWakeupsAffine);
        let statistics = &mut self.task_cold[p].statistics;
        statistics.nr_wakeups_affine_attempts += 1;
        if affine {
            statistics.nr_wakeups_affine += 1;
            self.write_domain_stats(sd);
            self.domains.stats_mut(sd).ttwu_move_affine += 1;
        }
    }

    /// fair.c: wake_affine_idle(). Considers only the present: picks an idle CPU, or this CPU if its only task is the
    /// waker, which is about to sleep (`sync`).
    #[fentry]
    fn wake_affine_idle(&mut self, this_cpu: CpuId, prev_cpu: CpuId, sync: bool) -> Option<CpuId> {
        let rules = self.kernel.wake;
        if self.idle_cpu(this_cpu) {
            let shared = self.cpus_share_cache(this_cpu, prev_cpu);
            if shared && rules.idle_previous != IdlePrevious::Ignored && self.idle_cpu(prev_cpu) {
                return Some(prev_cpu);
            }
            if shared || rules.idle_waker == IdleWaker::AnyCache {
                return Some(this_cpu);
            }
        }
        if sync {
            self.read_rq_load(this_cpu);
            if self.rq[this_cpu].nr_running - self.cfs_h_nr_delayed(this_cpu) == 1 {
                return Some(this_cpu);
            }
        }
        (rules.idle_previous == IdlePrevious::Preferred && self.idle_cpu(prev_cpu)).then_some(prev_cpu)
    }

    /// fair.c: wake_affine_weight(). Compares the loads after the move, each times the other CPU's capacity; WA_BIAS
    /// favours this CPU by half of imbalance_pct.
    #[fentry]
    fn wake_affine_weight(
        &mut self,
        sd: SdId,
        p: TaskId,
        this_cpu: CpuId,
        prev_cpu: CpuId,
        sync: bool,
    ) -> Option<CpuId> {
        let rules = self.kernel.wake;
        let wake_idx = self.domains[sd].wake_idx;
        self.read_cpu_load(this_cpu, wake_idx);
        self.read_cpu_load(prev_cpu, wake_idx);
        let (mut this_eff_load, mut prev_eff_load) = match rules.cpu_load {
            CpuLoad::Runnable => {
                (self.target_load(this_cpu, wake_idx) as i64, self.source_load(prev_cpu, wake_idx) as i64)
            }
            CpuLoad::Average => (self.cpu_load(this_cpu) as i64, self.cpu_load(prev_cpu) as i64),
        };
        if sync {
            let current_load = self.current_h_load() as i64;
            if current_load > this_eff_load {
                return Some(this_cpu);
            }
            this_eff_load -= current_load;
        }
        let task_load = self.task_h_load(p) as i64;
        self.read_rq_capacity(prev_cpu);
        self.read_rq_capacity(this_cpu);

        this_eff_load += task_load;
        prev_eff_load -= task_load;
        // The kernel's products wrap if the load average of a SCHED_IDLE task has run away (its weight is 3 from v4.15
        // on).
        if self.sched_feat(Feature::WA_BIAS) {
            this_eff_load = this_eff_load.wrapping_mul(100);
            prev_eff_load = prev_eff_load.wrapping_mul(half_imbalance_pct(self.domains[sd].imbalance_pct) as i64);
        }
        this_eff_load = this_eff_load.wrapping_mul(self.capacity_of(prev_cpu) as i64);
        prev_eff_load = prev_eff_load.wrapping_mul(self.capacity_of(this_cpu) as i64);
        let pulls = match rules.equal_weight {
            EqualWeight::Stays if !sync => this_eff_load < prev_eff_load,
            EqualWeight::Pulls | EqualWeight::Stays => this_eff_load <= prev_eff_load,
        };
        pulls.then_some(this_cpu)
    }

    /// `wake_affine()` up to v4.13. Compares the loads as they would be with the task there, each times the other CPU's
    /// capacity; this CPU is favoured by half of imbalance_pct. `sync`: the waker's load is subtracted first.
    fn wake_affine_effective_load(
        &mut self,
        sd: SdId,
        p: TaskId,
        this_cpu: CpuId,
        prev_cpu: CpuId,
        sync: bool,
    ) -> Option<CpuId> {
        let wake_idx = self.domains[sd].wake_idx;
        self.read_cpu_load(prev_cpu, wake_idx);
        self.read_cpu_load(this_cpu, wake_idx);
        let mut load = self.source_load(prev_cpu, wake_idx) as i64;
        let mut this_load = self.target_load(this_cpu, wake_idx) as i64;
        if sync {
            let (tg, weight) = self.current_group_and_load();
            this_load += self.effective_load(tg, this_cpu, -weight, -weight);
            load += self.effective_load(tg, prev_cpu, 0, -weight);
        }
        let tg = self.task[p].sched_task_group;
        let se = self.task[p].se;
        self.read_se_avg(se);
        self.read_rq_capacity(prev_cpu);
        self.read_rq_capacity(this_cpu);
        let weight = self.se[se].avg.load_avg as i64;

        let mut this_eff_load = 100 * self.capacity_of(prev_cpu) as i64;
        let mut prev_eff_load =
            half_imbalance_pct(self.domains[sd].imbalance_pct) as i64 * self.capacity_of(this_cpu) as i64;
        // Between two CPUs without load, any decision would be an imbalance.
        if this_load > 0 {
            this_eff_load *= this_load + self.effective_load(tg, this_cpu, weight, weight);
            prev_eff_load *= load + self.effective_load(tg, prev_cpu, 0, weight);
        }
        (this_eff_load <= prev_eff_load).then_some(this_cpu)
    }

    /// fair.c: effective_load(). How much a CPU's root load changes if `wl` is added to the load that `tg` has there,
    /// and `wg` to its load on all CPUs: a group's shares only move between CPUs.
    ///
    /// On each level, with S the group's shares, w its queue's load and W the group's load, the entity's weight becomes
    /// `S * (w + wl) / (W + wg)`; the difference to its present load is `wl` one level up, where `wg` is 0.
    ///
    /// Differs: `w` and the load to compare with are averages, but W contains the queue's weight, as in v4.5 (v4.7 uses
    /// the average there too).
    #[fentry]
    pub(crate) fn effective_load(&mut self, tg: TgId, cpu: CpuId, wl: i64, wg: i64) -> i64 {
        let resolution = self.kernel.load_resolution;
        let (mut wl, mut wg) = (wl, wg);
        self.read_tg_se(tg);
        self.read_tg_parent(tg);
        // The root group has no entities.
        let mut level = self.tg[tg].se.get(cpu.index()).copied();
        while let Some(se) = level {
            self.read_se_links(se);
            self.read_se_avg(se);
            let group = self.se[se].my_q.expect("groups above groups");
            self.read_cfs_rq(group);
            self.read_cfs_avg(group);
            self.read_cfs_contrib(group);
            let queue = &self.cfs_rq[group];
            let (tg, load) = (queue.tg, resolution.scale_load_down(queue.load.weight) as i64);
            let total = wg + self.calc_tg_weight(group, tg, load);
            let here = self.cfs_rq_load_avg(group) as i64 + wl;
            let shares = resolution.scale_load_down(self.tg_shares(tg)) as i64;

            let weight = if total > 0 && here < total { here * shares / total } else { shares };
            wl = at_least_min_shares(weight) - self.se[se].avg.load_avg as i64;
            wg = 0;
            level = self.se[se].parent;
        }
        wl
    }

    // The waker's load.

    /// `task_group(current)` and `current->se.avg.load_avg`.
    fn current_group_and_load(&self) -> (TgId, i64) {
        match self.rq[self.this_cpu].curr {
            Some(current) => {
                let task = &self.task[current];
                (task.sched_task_group, self.se[task.se].avg.load_avg as i64)
            }
            None => (ROOT_TASK_GROUP, idle_task_load_avg(self.this_cpu) as i64),
        }
    }

    /// `task_h_load(current)`.
    /// Differs: for an idle task, the queue's hierarchical load is recomputed, not the one first computed in this
    /// jiffy.
    fn current_h_load(&mut self) -> u64 {
        if let Some(current) = self.rq[self.this_cpu].curr {
            return self.task_h_load(current);
        }
        let h_load = self.cfs_rq_load_avg(self.rq[self.this_cpu].cfs);
        idle_task_load_avg(self.this_cpu) * h_load / (h_load + 1)
    }
}

/// The minimum weight of an entity. MIN_SHARES is unsigned: a negative weight, which a queue has that loses more than
/// its average, is a huge one to the kernel and stays as it is.
fn at_least_min_shares(weight: i64) -> i64 {
    if (weight as u64) < MIN_SHARES { MIN_SHARES as i64 } else { weight }
}

/// `100 + (imbalance_pct - 100) / 2`, in percent.
pub(super) fn half_imbalance_pct(imbalance_pct: u32) -> u64 {
    100 + u64::from(imbalance_pct - 100) / 2
}

/// `se.avg.load_avg` of an idle task, which is never updated. `fork_idle()` gives it that of a new task of nice 0; the
/// boot CPU's idle task was not forked and has none.
///
/// Differs: up to v4.7 the kernel copies the boot task's average at that moment, close to the same 1024.
fn idle_task_load_avg(cpu: CpuId) -> u64 {
    if cpu == CpuId(0) { 0 } else { 1024 }
}
