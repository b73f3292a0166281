//! fair.c: active balancing: the running task of the busiest CPU is pushed to the CPU that found nothing to pull.

use super::{
    ActiveBalanceFailures, ActiveBalanceForce, ActiveBalanceReason, LbEnv, Mechanism, MigrationType, OnePinned,
    Outcome, PackingOrder, PackingPull,
};
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::cache::CachePacking;
use crate::sched::TaskId;
use crate::stop_task::StopWork;
use crate::topology::{CpuIdleType, SdFlags, SdId};
use fentry::fentry;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// fair.c: need_active_balance(). Whether to push the running task of `src_cpu`.
    pub(super) fn need_active_balance(&mut self, env: &LbEnv) -> bool {
        let packing_first = self.kernel.balance.cache_packing == CachePacking::Before;
        if packing_first && self.asym_active_balance(env) {
            return true;
        }
        if self.alb_break_llc(env) {
            return false;
        }
        !packing_first && self.asym_active_balance(env)
            || self.imbalanced_active_balance(env)
            || self.would_be_better_off(env)
    }

    /// fair.c: voluntary_active_balance(), v5.1 to v5.11. Whether there is reason to push the task however often balancing failed.
    pub(super) fn voluntary_active_balance(&mut self, env: &LbEnv) -> bool {
        self.asym_active_balance(env) || self.would_be_better_off(env)
    }

    /// The rest of need_active_balance(): whether the task would get more of the pulling CPU.
    fn would_be_better_off(&mut self, env: &LbEnv) -> bool {
        let alone = self.counted_tasks(env.src_cpu) == 1;
        if env.idle != CpuIdleType::NotIdle && alone && self.check_cpu_capacity(env.src_cpu, env.sd) {
            let imbalance_pct = u64::from(self.domains[env.sd].imbalance_pct);
            if self.capacity_of(env.src_cpu) * imbalance_pct < self.capacity_of(env.dst_cpu) * 100 {
                return true;
            }
        }
        env.src_misfit || matches!(env.migration_type, MigrationType::Misfit | MigrationType::LlcTask)
    }

    /// fair.c: asym_active_balance(). Whether SD_ASYM_PACKING wants the task on the pulling CPU.
    fn asym_active_balance(&mut self, env: &LbEnv) -> bool {
        if !self.domains[env.sd].flags.has(SdFlags::SD_ASYM_PACKING) || env.idle == CpuIdleType::NotIdle {
            return false;
        }
        match (self.kernel.balance.mechanism, self.kernel.balance.asym_packing) {
            (Mechanism::ByLoad, _) => {
                let pushes =
                    env.idle == CpuIdleType::NewlyIdle || self.kernel.balance.packing_pull == PackingPull::AnyIdle;
                pushes && self.sched_asym_prefer(env.dst_cpu, env.src_cpu)
            }
            (Mechanism::ByGroupType, PackingOrder::IdleCores) => {
                self.sched_use_asym_prio(env.sd, env.dst_cpu)
                    && (self.sched_asym_prefer(env.dst_cpu, env.src_cpu)
                        || !self.sched_use_asym_prio(env.sd, env.src_cpu))
            }
            (Mechanism::ByGroupType, _) => self.sched_asym_prefer(env.dst_cpu, env.src_cpu),
        }
    }

    /// fair.c: imbalanced_active_balance(). Whether balancing has failed too often.
    fn imbalanced_active_balance(&self, env: &LbEnv) -> bool {
        let counts = match self.kernel.balance.active_balance_reason {
            ActiveBalanceReason::AnyFailure => true,
            ActiveBalanceReason::TaskImbalance => env.migration_type == MigrationType::Task,
        };
        let sd = &self.domains[env.sd];
        counts && sd.nr_balance_failed > sd.cache_nice_tries + 2
    }

    /// The part of load_balance() that makes the stopper of `src_cpu` push its running task.
    pub(super) fn begin_active_balance(&mut self, env: &mut LbEnv, this_cpu: CpuId) -> Outcome {
        let (sd, busiest) = (env.sd, env.src_cpu);
        self.rq_lock(busiest);
        // The idle task may only run on its own CPU, so it cannot come either.
        let may_come = self.rq[busiest].curr.is_some_and(|p| self.cpumask_test(this_cpu, p));
        if !may_come {
            self.rq_unlock(busiest);
            env.flags.all_pinned |= self.kernel.balance.one_pinned == OnePinned::AsAllPinned;
            return Outcome::OnePinned;
        }
        if self.kernel.balance.one_pinned == OnePinned::AsFound {
            env.flags.all_pinned = false;
        }
        let active_balance = !self.rq[busiest].active_balance;
        if active_balance {
            self.write_rq_balance(busiest);
            self.rq[busiest].active_balance = true;
            self.rq[busiest].push_cpu = this_cpu;
        }
        self.rq_unlock(busiest);
        if active_balance {
            let towards_llc = env.migration_type == MigrationType::LlcTask;
            self.stop_one_cpu(busiest, StopWork::ActiveBalance { towards_llc });
        }
        if self.kernel.balance.active_balance_force == ActiveBalanceForce::ByFailures {
            self.domains[sd].nr_balance_failed = self.domains[sd].cache_nice_tries + 1;
        }
        Outcome::Unbalanced { active_balance }
    }

    /// fair.c: active_load_balance_cpu_stop(). Runs as the stopper of the busiest CPU and pushes one task, which it
    /// displaced, to `rq.push_cpu`. `towards_llc` (active_load_balance_llc_cpu_stop(), v7.2): one that prefers the LLC
    /// of that CPU.
    /// Differs: v4.5 does not check whether either CPU is on its way down.
    #[doc(alias = "active_load_balance_llc_cpu_stop")]
    #[fentry]
    pub(crate) fn active_load_balance_cpu_stop(&mut self, busiest_cpu: CpuId, towards_llc: bool) {
        self.rq_lock(busiest_cpu);
        let target_cpu = self.rq[busiest_cpu].push_cpu;
        let mut pushed = None;
        // Either CPU may have gone offline meanwhile.
        let active = self.cpu_active_mask.contains(busiest_cpu) && self.cpu_active_mask.contains(target_cpu);
        let wanted = active && busiest_cpu == self.this_cpu && self.rq[busiest_cpu].active_balance;
        // The stopper itself is counted in `nr_running`.
        if wanted && self.rq[busiest_cpu].nr_running > 1 {
            assert_ne!(busiest_cpu, target_cpu, "active balancing pushes to another CPU");
            pushed = self.push_one_task(busiest_cpu, target_cpu, towards_llc);
        }
        self.rq[busiest_cpu].active_balance = false;
        self.rq_unlock(busiest_cpu);
        if let Some(p) = pushed {
            self.attach_one_task(target_cpu, p);
        }
    }

    /// The middle of active_load_balance_cpu_stop(): detaches one task, on behalf of the narrowest domain that has both
    /// CPUs.
    fn push_one_task(&mut self, busiest_cpu: CpuId, target_cpu: CpuId, towards_llc: bool) -> Option<TaskId> {
        let spans_both = |sd: &SdId| self.domains.sched_domain_span(*sd).contains(busiest_cpu);
        let sd = self.domains.for_each_domain(target_cpu).find(spans_both)?;
        let mut env = LbEnv::new(sd, target_cpu, CpuIdleType::Idle);
        env.src_cpu = busiest_cpu;
        env.flags.active_lb_llc = towards_llc;
        env.flags.active_lb = self.kernel.balance.active_balance_force == ActiveBalanceForce::ByFlag;
        self.count_balance(&env, |stats, _| stats.alb_count += 1);
        self.update_rq_clock_of_caller(busiest_cpu);
        let pushed = self.detach_one_task(&mut env);
        self.count_balance(&env, |stats, _| match pushed {
            Some(_) => stats.alb_pushed += 1,
            None => stats.alb_failed += 1,
        });
        if pushed.is_some() && self.kernel.balance.active_balance == ActiveBalanceFailures::Reset {
            self.write_domain(sd);
            self.domains[sd].nr_balance_failed = 0;
        }
        pushed
    }
}
