//! fair.c: moving tasks: which may be moved, and how they leave one queue and join another.

use super::{
    DelayedTasks, DetachBound, DetachLimit, DetachOrder, HotStatistics, IneligibleTasks, LbEnv, MigrationType,
    NewidleDetach, OnePinned, PerCpuKthreads, SCHED_NR_MIGRATE_BREAK, SiblingHot, UtilBound,
};
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::rules::Pick;
use crate::features::Feature;
use crate::layout::Statistic;
use crate::sched::{OnRq, Policy, QueueFlags, SchedClass, SchedStatistics, TaskId, WakeFlags};
use crate::topology::{CpuIdleType, SdFlags};
use crate::versions::ClockUpdate;
use fentry::fentry;
use units::{CpuId, unlikely};

/// With the feature LB_MIN, a task of less load than this is not worth moving.
const LB_MIN_LOAD: i64 = 16;

/// `sysctl_sched_migration_cost == -1` in its 32 bits: every task is cache-hot.
const ALWAYS_HOT: u64 = u32::MAX as u64;

/// sched.h: shr_bound(). Shifts right by `shift`, at most by the number of bits.
fn shr_bound(value: i64, shift: u32) -> i64 {
    value >> shift.min(i64::BITS - 1)
}

impl<A: Arch> Sched<A> {
    /// fair.c: task_hot(). Whether the task's data is likely to be still in its CPU's cache.
    pub(super) fn task_hot(&self, p: TaskId, env: &LbEnv) -> bool {
        let task = &self.task[p];
        if task.sched_class != SchedClass::Fair || task.policy == Policy::Idle {
            return false;
        }
        if self.kernel.balance.sibling_hot == SiblingHot::Cold
            && self.domains[env.sd].flags.has(SdFlags::SD_SHARE_CPUCAPACITY)
        {
            return false;
        }
        let se = &self.se[task.se];
        if self.sched_feat(Feature::CACHE_HOT_BUDDY) && self.rq[env.dst_cpu].nr_running > 0 {
            let queue = &self.cfs_rq[se.cfs_rq];
            if queue.next == Some(task.se) || queue.last == Some(task.se) {
                return true;
            }
        }
        match self.sysctl.sched_migration_cost {
            ALWAYS_HOT => true,
            0 => false,
            cost => {
                let since = self.rq[env.src_cpu].clock_task.wrapping_sub(se.exec_start) as i64;
                since < cost as i64
            }
        }
    }

    /// kthread.c: kthread_is_per_cpu(). Such threads stay on their CPU.
    ///
    /// Differs: a kernel thread that is allowed on one CPU only counts as created for it.
    pub(crate) fn kthread_is_per_cpu(&self, p: TaskId) -> bool {
        self.task[p].mm == 0 && self.task[p].nr_cpus_allowed == 1
    }

    /// fair.c: can_migrate_task(). Sets flags if affinity forbids the move.
    #[fentry]
    pub(super) fn can_migrate_task(&mut self, p: TaskId, env: &mut LbEnv) -> bool {
        if self.throttled_lb_pair(self.task[p].sched_task_group, env.src_cpu, env.dst_cpu) {
            return false;
        }
        if unlikely(self.kernel.entity.pick == Pick::Eevdf) && self.had_better_stay(p, env) {
            return false;
        }
        self.read_task_policy(p);
        if self.kernel.balance.per_cpu_kthreads == PerCpuKthreads::Disregarded && self.kthread_is_per_cpu(p) {
            return false;
        }
        if !self.cpumask_test(env.dst_cpu, p) {
            self.count_migration(p, |statistics| statistics.nr_failed_migrations_affine += 1);
            env.flags.some_pinned = true;
            if env.idle != CpuIdleType::NewlyIdle && !env.flags.dst_pinned && !env.flags.active_lb {
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
        env.flags.hot = false;
        if env.flags.active_lb {
            return !self.migrate_llc_task_wrong_dst(p, env);
        }
        let hot = match self.degrades_locality(p, env) {
            Some(degrades) => degrades,
            None if self.migrate_degrades_llc(p, env) => {
                env.flags.llc_pinned |= env.migration_type != MigrationType::LlcTask;
                return false;
            }
            None => self.task_hot(p, env),
        };
        let sd = &self.domains[env.sd];
        if hot && sd.nr_balance_failed <= sd.cache_nice_tries {
            self.count_migration(p, |statistics| statistics.nr_failed_migrations_hot += 1);
            return false;
        }
        if hot {
            match self.kernel.balance.hot_statistics {
                HotStatistics::Allowed => self.count_forced_migration(p, env),
                HotStatistics::Detached => env.flags.hot = true,
            }
        }
        true
    }

    /// The part of can_migrate_task() since EEVDF: keeps sleepers that are still queued, and tasks that have had more
    /// than their share.
    fn had_better_stay(&mut self, p: TaskId, env: &LbEnv) -> bool {
        let rules = self.kernel.balance;
        if rules.delayed_tasks == DelayedTasks::WithLoad
            && self.se[self.task[p].se].sched_delayed
            && env.migration_type != MigrationType::Load
        {
            return true;
        }
        rules.ineligible_tasks == IneligibleTasks::AfterFailure
            && self.domains[env.sd].nr_balance_failed == 0
            && self.task_is_ineligible_on_dst_cpu(p, env.dst_cpu)
    }

    /// fair.c: task_is_ineligible_on_dst_cpu(). Whether the task would have competitors there and is ineligible here:
    /// then it would not be eligible there either.
    fn task_is_ineligible_on_dst_cpu(&mut self, p: TaskId, dest_cpu: CpuId) -> bool {
        if !self.sched_feat(Feature::PLACE_LAG) {
            return false;
        }
        let dst_cfs_rq = match self.picks_flat() {
            true => self.rq[dest_cpu].cfs,
            false => self.tg[self.task[p].sched_task_group].cfs_rq[dest_cpu.index()],
        };
        self.read_cfs_rq(dst_cfs_rq);
        let se = self.task[p].se;
        self.competitors(dst_cfs_rq) != 0 && !self.entity_eligible(self.competes_on(se), se)
    }

    /// NUMA balancing's opinion of the move, if it has one.
    #[inline]
    fn degrades_locality(&self, p: TaskId, env: &LbEnv) -> Option<bool> {
        if !self.numa.is_on() || !self.domains[env.sd].flags.has(SdFlags::SD_NUMA) {
            return None;
        }
        self.migrate_degrades_locality(p, env.src_cpu, env.dst_cpu, env.idle)
    }

    fn count_forced_migration(&mut self, p: TaskId, env: &LbEnv) {
        self.count_balance(env, |stats, idle| stats.lb_hot_gained[idle] += 1);
        self.count_migration(p, |statistics| statistics.nr_forced_migrations += 1);
    }

    /// Looks for another CPU of the destination's group that a pinned task may use.
    fn find_new_dst_cpu(&self, p: TaskId, env: &mut LbEnv) {
        let Some(group) = env.dst_grpmask else { return };
        let allowed = &self.task[p].cpus_allowed;
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
    fn detach_task(&mut self, p: TaskId, env: &mut LbEnv) {
        if std::mem::take(&mut env.flags.hot) {
            self.count_forced_migration(p, env);
        }
        self.task[p].on_rq = OnRq::Migrating;
        self.write_task_on_rq_apart(p);
        let flags = self.migration_flags();
        self.deactivate_task(env.src_cpu, p, flags);
        self.set_task_cpu(p, env.dst_cpu);
    }

    fn migration_flags(&self) -> QueueFlags {
        QueueFlags { noclock: self.kernel.core.clock == ClockUpdate::Callers, ..QueueFlags::default() }
    }

    /// fair.c: detach_one_task(), for active balancing.
    pub(super) fn detach_one_task(&mut self, env: &mut LbEnv) -> Option<TaskId> {
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
            .get()
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

    /// fair.c: detach_tasks(). Detaches tasks from `src_cpu` up to `imbalance`; returns their number.
    #[fentry]
    pub(super) fn detach_tasks(&mut self, env: &mut LbEnv) -> u32 {
        if self.kernel.balance.one_pinned == OnePinned::AsFound && self.rq[env.src_cpu].nr_running <= 1 {
            // Another CPU has emptied the queue.
            env.flags.all_pinned = false;
            return 0;
        }
        if env.imbalance <= 0 {
            return 0;
        }
        let mut detached = 0;
        while let Some(p) = self.first_to_detach(env.src_cpu) {
            // An idle CPU does not take the last task, or two CPUs would take it from each other forever.
            if env.idle != CpuIdleType::NotIdle && self.rq[env.src_cpu].nr_running <= 1 {
                break;
            }
            env.loop_ += 1;
            let may_give_up = self.kernel.balance.detach_limit == DetachLimit::Always || !env.flags.all_pinned;
            if env.loop_ > env.loop_max && may_give_up {
                break;
            }
            if env.loop_ > env.loop_break {
                env.loop_break += SCHED_NR_MIGRATE_BREAK;
                env.flags.need_break = true;
                break;
            }
            let Some(amount) = self.amount_to_detach(p, env) else {
                if std::mem::take(&mut env.flags.hot) {
                    self.count_migration(p, |statistics| statistics.nr_failed_migrations_hot += 1);
                }
                self.requeue_undetached(env.src_cpu, p);
                continue;
            };
            env.imbalance -= amount;
            self.detach_task(p, env);
            env.tasks.push(p);
            detached += 1;
            let one = self.kernel.balance.newidle_detach == NewidleDetach::One;
            if (one && env.idle == CpuIdleType::NewlyIdle) || env.imbalance <= 0 {
                break;
            }
        }
        self.count_balance(env, |stats, idle| stats.lb_gained[idle] += detached);
        detached
    }

    /// How much of the imbalance the task takes along, if it may move and is not too big.
    fn amount_to_detach(&mut self, p: TaskId, env: &mut LbEnv) -> Option<i64> {
        if !self.can_migrate_task(p, env) {
            return None;
        }
        match env.migration_type {
            MigrationType::Load => self.load_to_detach(p, env),
            MigrationType::Util => {
                let util = self.task_util_est(p) as i64;
                let bound = match self.kernel.balance.util_bound {
                    UtilBound::Whole => util,
                    UtilBound::Relaxed => shr_bound(util, self.domains[env.sd].nr_balance_failed),
                };
                (bound <= env.imbalance).then_some(util)
            }
            MigrationType::Task | MigrationType::LlcTask => Some(1),
            MigrationType::Misfit => (!self.task_fits_cpu(p, env.src_cpu)).then_some(env.imbalance),
        }
    }

    fn load_to_detach(&mut self, p: TaskId, env: &LbEnv) -> Option<i64> {
        let load = self.task_h_load(p);
        let (failures, tries) = (self.domains[env.sd].nr_balance_failed, self.domains[env.sd].cache_nice_tries);
        let half_unless_failing = |load: u64| if failures > tries { 0 } else { load as i64 / 2 };
        let (load, bound) = match self.kernel.balance.detach_bound {
            DetachBound::Half => (load as i64, load as i64 / 2),
            DetachBound::HalfOfSome => (load.max(1) as i64, load as i64 / 2),
            DetachBound::HalfUnlessFailing => (load as i64, half_unless_failing(load)),
            DetachBound::SomeUnlessFailing => (load.max(1) as i64, half_unless_failing(load.max(1))),
            DetachBound::Relaxed => {
                let load = load.max(1) as i64;
                (load, shr_bound(load, failures))
            }
        };
        if self.sched_feat(Feature::LB_MIN) && load < LB_MIN_LOAD && failures == 0 {
            return None;
        }
        (bound <= env.imbalance).then_some(load)
    }

    /// Moves a task that stays to the end of `rq->cfs_tasks` that is tried last.
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
        self.write_task_on_rq_apart(p);
        self.check_preempt_curr(cpu, p, WakeFlags::NONE);
    }

    /// fair.c: attach_one_task().
    pub(super) fn attach_one_task(&mut self, cpu: CpuId, p: TaskId) {
        self.rq_lock(cpu);
        self.update_rq_clock_of_caller(cpu);
        self.attach_task(cpu, p);
        self.rq_unlock(cpu);
    }

    /// fair.c: attach_tasks(). Attaches the task detached last first.
    #[fentry]
    pub(super) fn attach_tasks(&mut self, env: &mut LbEnv) {
        self.rq_lock(env.dst_cpu);
        self.update_rq_clock_of_caller(env.dst_cpu);
        while let Some(p) = env.tasks.pop() {
            self.attach_task(env.dst_cpu, p);
        }
        self.rq_unlock(env.dst_cpu);
    }
}
