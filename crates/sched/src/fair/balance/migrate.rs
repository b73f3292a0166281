//! fair.c: moving tasks: which may go, off one queue, onto another.

use super::{ActiveBalanceFailures, DetachOrder, LbEnv, LbFlags, NewidleDetach, SCHED_NR_MIGRATE_BREAK};
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::layout::Statistic;
use crate::sched::{OnRq, Policy, QueueFlags, SchedClass, SchedStatistics, TaskId, WakeFlags};
use crate::topology::{CpuIdleType, SdFlags, SdId};
use crate::versions::ClockUpdate;
use fentry::fentry;
use units::{CpuId, CpuMask};

/// Below this load a task is not worth moving, with the feature LB_MIN.
const LB_MIN_LOAD: u64 = 16;

impl<A: Arch> Sched<A> {
    /// fair.c: task_hot(). Whether the task's data is likely still in its CPU's cache.
    ///
    /// Differs: `sched_migration_cost_ns` has no -1 (always hot) here.
    pub(super) fn task_hot(&self, p: TaskId, env: &LbEnv) -> bool {
        let task = &self.task[p];
        if task.sched_class != SchedClass::Fair || task.policy == Policy::Idle {
            return false;
        }
        let se = &self.se[task.se];
        if self.sched_feat(Feature::CACHE_HOT_BUDDY) && self.rq[env.dst_cpu].nr_running > 0 {
            let queue = &self.cfs_rq[se.cfs_rq];
            if queue.next == Some(task.se) || queue.last == Some(task.se) {
                return true;
            }
        }
        let cost = self.sysctl.sched_migration_cost;
        if cost == 0 {
            return false;
        }
        let since = self.rq[env.src_cpu].clock_task.wrapping_sub(se.exec_start) as i64;
        since < cost as i64
    }

    /// fair.c: can_migrate_task(). Notes in the flags when affinity forbids it.
    ///
    /// Differs: locality does not count; nothing is throttled.
    #[fentry]
    pub(super) fn can_migrate_task(&mut self, p: TaskId, env: &mut LbEnv) -> bool {
        self.read_task_policy(p);
        if !self.cpumask_test(env.dst_cpu, p) {
            self.count_migration(p, |statistics| statistics.nr_failed_migrations_affine += 1);
            env.flags.some_pinned = true;
            if env.idle != CpuIdleType::NewlyIdle && !env.flags.dst_pinned {
                self.find_new_dst_cpu(p, env);
            }
            return false;
        }
        env.flags.all_pinned = false;
        self.read_task(p);
        if self.task[p].on_cpu {
            self.count_migration(p, |statistics| statistics.nr_failed_migrations_running += 1);
            return false;
        }
        let hot = self.task_hot(p, env);
        let sd = &self.domains[env.sd];
        if hot && sd.nr_balance_failed <= sd.cache_nice_tries {
            self.count_migration(p, |statistics| statistics.nr_failed_migrations_hot += 1);
            return false;
        }
        if hot {
            self.count_balance(env, |stats, idle| stats.lb_hot_gained[idle] += 1);
            self.count_migration(p, |statistics| statistics.nr_forced_migrations += 1);
        }
        true
    }

    /// Another CPU of the destination's group that a pinned task may go to.
    fn find_new_dst_cpu(&self, p: TaskId, env: &mut LbEnv) {
        let Some(group) = env.dst_grpmask else { return };
        let allowed = &self.task_cold[p].cpus_allowed;
        let mut candidates = self.domains.masks.get(group).iter().filter(|&cpu| env.cpus.contains(cpu));
        if let Some(cpu) = candidates.find(|&cpu| allowed.contains(cpu)) {
            env.flags.dst_pinned = true;
            env.new_dst_cpu = cpu;
        }
    }

    /// `schedstat_inc()` on a counter of the task.
    fn count_migration(&mut self, p: TaskId, count: impl FnOnce(&mut SchedStatistics)) {
        if self.schedstat_enabled() {
            self.write_statistic(self.task[p].se, Statistic::NrFailedMigrations);
            count(&mut self.task_cold[p].statistics);
        }
    }

    /// fair.c: detach_task().
    fn detach_task(&mut self, p: TaskId, env: &LbEnv) {
        self.task[p].on_rq = OnRq::Migrating;
        let flags = self.migration_flags();
        self.deactivate_task(env.src_cpu, p, flags);
        self.set_task_cpu(p, env.dst_cpu);
    }

    fn migration_flags(&self) -> QueueFlags {
        QueueFlags { noclock: self.kernel.core.clock == ClockUpdate::Callers, ..QueueFlags::default() }
    }

    /// fair.c: detach_one_task(). For active balancing.
    fn detach_one_task(&mut self, env: &mut LbEnv) -> Option<TaskId> {
        let mut next = self.first_to_detach(env.src_cpu);
        while let Some(p) = next {
            if self.can_migrate_task(p, env) {
                self.detach_task(p, env);
                self.count_balance(env, |stats, idle| stats.lb_gained[idle] += 1);
                return Some(p);
            }
            let links = self.task[p].group_node;
            next = match self.kernel.balance.detach_order {
                DetachOrder::Head => links.next,
                DetachOrder::Tail => links.prev,
            }
            .map(TaskId);
        }
        None
    }

    /// The task of `rq->cfs_tasks` that is tried first.
    fn first_to_detach(&self, cpu: CpuId) -> Option<TaskId> {
        let tasks = &self.rq[cpu].cfs_tasks;
        match self.kernel.balance.detach_order {
            DetachOrder::Head => tasks.first,
            DetachOrder::Tail => tasks.last,
        }
        .map(TaskId)
    }

    /// fair.c: detach_tasks(). Takes tasks off `src_cpu` worth up to `imbalance` of load; their number.
    #[fentry]
    pub(super) fn detach_tasks(&mut self, env: &mut LbEnv) -> u32 {
        if env.imbalance <= 0 {
            return 0;
        }
        let mut detached = 0;
        while let Some(p) = self.first_to_detach(env.src_cpu) {
            // An idle CPU leaves the last task, or two would take it from each other for ever.
            if env.idle != CpuIdleType::NotIdle && self.rq[env.src_cpu].nr_running <= 1 {
                break;
            }
            env.loop_ += 1;
            if env.loop_ > env.loop_max {
                break;
            }
            if env.loop_ > env.loop_break {
                env.loop_break += SCHED_NR_MIGRATE_BREAK;
                env.flags.need_break = true;
                break;
            }
            let Some(load) = self.load_to_detach(p, env) else {
                self.requeue_undetached(env.src_cpu, p);
                continue;
            };
            self.detach_task(p, env);
            env.tasks.push(p);
            detached += 1;
            env.imbalance -= load as i64;
            let one = self.kernel.balance.newidle_detach == NewidleDetach::One;
            if (one && env.idle == CpuIdleType::NewlyIdle) || env.imbalance <= 0 {
                break;
            }
        }
        self.count_balance(env, |stats, idle| stats.lb_gained[idle] += detached);
        detached
    }

    /// The load that moves with the task, if it may move and does not overshoot.
    fn load_to_detach(&mut self, p: TaskId, env: &mut LbEnv) -> Option<u64> {
        if !self.can_migrate_task(p, env) {
            return None;
        }
        let load = self.task_h_load(p);
        if self.sched_feat(Feature::LB_MIN) && load < LB_MIN_LOAD && self.domains[env.sd].nr_balance_failed == 0 {
            return None;
        }
        (load / 2 <= env.imbalance as u64).then_some(load)
    }

    /// A task that stays goes to the end of `rq->cfs_tasks` that is tried last.
    fn requeue_undetached(&mut self, cpu: CpuId, p: TaskId) {
        let tasks = &mut self.rq[cpu].cfs_tasks;
        match self.kernel.balance.detach_order {
            DetachOrder::Head => {
                tasks.list_del(&mut self.task, p);
                tasks.list_add_tail(&mut self.task, p);
            }
            DetachOrder::Tail => tasks.list_move(&mut self.task, p),
        }
    }

    /// fair.c: attach_task().
    fn attach_task(&mut self, cpu: CpuId, p: TaskId) {
        assert_eq!(self.task[p].cpu, cpu, "a task is attached where it was sent");
        let flags = self.migration_flags();
        self.activate_task(cpu, p, flags);
        self.task[p].on_rq = OnRq::Queued;
        self.check_preempt_curr(cpu, p, WakeFlags::NONE);
    }

    /// fair.c: attach_one_task().
    fn attach_one_task(&mut self, cpu: CpuId, p: TaskId) {
        self.rq_lock(cpu);
        self.update_rq_clock_of_caller(cpu);
        self.attach_task(cpu, p);
        self.rq_unlock(cpu);
    }

    /// fair.c: attach_tasks(). The task detached last comes first.
    #[fentry]
    pub(super) fn attach_tasks(&mut self, env: &mut LbEnv) {
        self.rq_lock(env.dst_cpu);
        self.update_rq_clock_of_caller(env.dst_cpu);
        while let Some(p) = env.tasks.pop() {
            self.attach_task(env.dst_cpu, p);
        }
        self.rq_unlock(env.dst_cpu);
    }

    /// fair.c: active_load_balance_cpu_stop(). Runs as the stopper of the busiest CPU: pushes one task, which the stopper
    /// displaced, to `rq.push_cpu`.
    #[fentry]
    pub(crate) fn active_load_balance_cpu_stop(&mut self, busiest_cpu: CpuId) {
        self.rq_lock(busiest_cpu);
        let target_cpu = self.rq[busiest_cpu].push_cpu;
        let mut pushed = None;
        // The stopper itself is one of the running.
        let wanted = busiest_cpu == self.this_cpu && self.rq[busiest_cpu].active_balance;
        if wanted && self.rq[busiest_cpu].nr_running > 1 {
            assert_ne!(busiest_cpu, target_cpu, "active balancing pushes to another CPU");
            pushed = self.push_one_task(busiest_cpu, target_cpu);
        }
        self.rq[busiest_cpu].active_balance = false;
        self.rq_unlock(busiest_cpu);
        if let Some(p) = pushed {
            self.attach_one_task(target_cpu, p);
        }
    }

    /// The middle of active_load_balance_cpu_stop(): detaches one task, on behalf of the narrowest domain of both CPUs.
    fn push_one_task(&mut self, busiest_cpu: CpuId, target_cpu: CpuId) -> Option<TaskId> {
        let spans_both = |sd: &SdId| {
            let balanced = self.domains[*sd].flags.has(SdFlags::SD_LOAD_BALANCE);
            balanced && self.domains.sched_domain_span(*sd).contains(busiest_cpu)
        };
        let sd = self.domains.for_each_domain(target_cpu).find(spans_both)?;
        let mut env = LbEnv {
            sd,
            src_cpu: busiest_cpu,
            dst_cpu: target_cpu,
            dst_grpmask: None,
            new_dst_cpu: target_cpu,
            idle: CpuIdleType::Idle,
            imbalance: 0,
            cpus: CpuMask::default(),
            flags: LbFlags::default(),
            loop_: 0,
            loop_break: 0,
            loop_max: 0,
            tasks: Vec::new(),
        };
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
