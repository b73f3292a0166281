//! fair.c: "Fair scheduling class load-balancing methods".
//!
//! A CPU pulls tasks. On each of its domains, from the narrowest up, it looks for the busiest other group and for the busiest queue in that
//! group, and pulls tasks from there until the imbalance is gone:
//!
//! ```text
//! periodic.rs         when: rebalance_domains (tick, softirq); ../nohz.rs for CPUs without a tick
//! newidle.rs          when: about to go idle
//! mod.rs              load_balance: one attempt on one domain
//! by_load/            the busiest group and queue, and the imbalance, by average load (until v5.4)
//! by_group_type/      the same by group types (since v5.5)
//! capacity.rs         capacity_of, group capacities
//! h_load.rs           update_blocked_averages, task_h_load: what a task in a group weighs
//! misfit.rs           update_misfit_status: tasks too big for their CPU
//! migrate.rs          can_migrate_task, detach_tasks, attach_tasks
//! active.rs           need_active_balance, active_load_balance_cpu_stop
//! rules.rs, rules/    behaviours
//! ```
//!
//! Each step reads what other CPUs write, so the cost of a pass grows with the number of CPUs it looks at. `idle_balance` therefore times
//! itself, and gives up when a search would cost more than the CPU is going to idle.
//!
//! What balancing needs from NUMA balancing is in [`crate::fair::numa`], from cache-aware scheduling in [`crate::fair::cache`].

mod active;
mod by_group_type;
mod by_load;
mod capacity;
mod h_load;
mod migrate;
mod misfit;
mod newidle;
mod periodic;
mod rules;
#[cfg(test)]
mod tests;

pub(super) use by_group_type::groups::{GroupType, SgLbStats, group_classify};
pub(super) use by_group_type::imbalance::{adjust_numa_imbalance, allow_numa_imbalance};
pub use rules::*;

use super::numa::FbqType;
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use crate::stop_task::StopWork;
use crate::topology::{CpuIdleType, DomainStats, MaskId, SdFlags, SdId, SgId};
use crate::versions::ClockUpdate;
use fentry::fentry;
use units::{CpuId, CpuMask, Ns, unlikely};

/// fair.c: sched_nr_migrate_break. How many tasks are looked at before the queue's lock is dropped for a moment.
const SCHED_NR_MIGRATE_BREAK: u64 = 32;

/// fair.c: MAX_PINNED_INTERVAL. Back-off limit with pinned tasks, in ms.
const MAX_PINNED_INTERVAL: u32 = 512;

/// What balancing keeps between passes.
#[derive(Clone, Debug, Default)]
pub struct BalanceState {
    /// Work queued for the stopper of each CPU, in order.
    pub(crate) stop_work: Vec<Vec<StopWork>>,
    /// The task that sleeps until the stopper of a CPU is done.
    pub(crate) stop_waiter: Vec<Option<TaskId>>,
    /// `load_balance_mask`. All CPUs share one, because a pass is a single step here that nothing interrupts.
    load_balance_mask: CpuMask,
    should_we_balance_tmpmask: CpuMask,
    /// `env.tasks`: the tasks detached in the current pass.
    tasks: Vec<TaskId>,
    balancing: Balancing,
    /// Cache-aware scheduling (v7.2).
    pub cache: super::cache::CacheBalancing,
    /// In jiffies.
    max_load_balance_interval: u64,
}

/// fair.c: the lock `balancing`, later `sched_balance_running`: a CPU that balances a level with SD_SERIALIZE holds it, and no CPU waits
/// for it. Passes run one after another here, but their clocks overlap: the lock is taken at any time between the last holder's `from` and
/// `until`.
#[derive(Clone, Copy, Debug, Default)]
struct Balancing {
    from: Ns,
    until: Ns,
}

/// fair.c: LBF_* flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct LbFlags {
    /// LBF_ALL_PINNED: no task looked at may run on `dst_cpu`.
    pub all_pinned: bool,
    /// LBF_NEED_BREAK
    pub need_break: bool,
    /// LBF_DST_PINNED: a task may not run on `dst_cpu`, but may on `new_dst_cpu`.
    pub dst_pinned: bool,
    /// LBF_SOME_PINNED: a task may not run on `dst_cpu`.
    pub some_pinned: bool,
    /// LBF_ACTIVE_LB: active balancing, which ignores whether a task is cache-hot.
    pub active_lb: bool,
    /// LBF_ACTIVE_LB_LLC: active balancing towards the LLC that a task prefers (v7.2).
    pub active_lb_llc: bool,
    /// LBF_LLC_PINNED: a task should stay in its LLC (v7.2).
    pub llc_pinned: bool,
    /// LBF_NOHZ_STATS: the load of CPUs without ticks is aged as they are looked at ([`NohzBalance::and_own`]).
    pub nohz_stats: bool,
    /// LBF_NOHZ_AGAIN: some of it is left.
    pub nohz_again: bool,
    /// `p->sched_task_hot` of the task just looked at: it is hot, but may move all the same.
    pub hot: bool,
}

/// fair.c: enum migration_type. The unit of `imbalance`, and what is to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum MigrationType {
    /// Load: 1024 is a nice-0 task that always runs.
    #[default]
    Load,
    /// Utilization: 1024 is a full CPU.
    Util,
    /// A number of tasks.
    Task,
    /// One task that is too big for its CPU.
    Misfit,
    /// One task that prefers the LLC of the pulling CPU (v7.2).
    LlcTask,
}

/// fair.c: struct lb_env. `src_rq` and `dst_rq` are those of the two CPUs.
#[derive(Debug)]
pub(super) struct LbEnv {
    pub sd: SdId,
    pub src_cpu: CpuId,
    pub dst_cpu: CpuId,
    /// CPUs that may take tasks which may not run on `dst_cpu`; none for active balancing.
    pub dst_grpmask: Option<MaskId>,
    pub new_dst_cpu: CpuId,
    /// Whether the core of `dst_cpu` is idle, apart from that CPU itself.
    pub dst_core_idle: bool,
    pub idle: CpuIdleType,
    pub imbalance: i64,
    pub migration_type: MigrationType,
    /// Whether the busiest group is pulled from for a misfit task: `src_grp_type`, under [`Mechanism::ByLoad`].
    pub src_misfit: bool,
    pub fbq_type: FbqType,
    /// The CPUs to consider.
    pub cpus: CpuMask,
    pub flags: LbFlags,
    pub loop_: u64,
    pub loop_break: u64,
    pub loop_max: u64,
    pub tasks: Vec<TaskId>,
    /// `need_unlock`: since when this pass holds the lock of serialized levels, if it took it ([`Serialized::Search`]).
    pub serialized: Option<Ns>,
}

impl LbEnv {
    /// For balancing a domain on behalf of `cpu`; nothing has been looked at yet.
    pub(super) fn new(sd: SdId, cpu: CpuId, idle: CpuIdleType) -> LbEnv {
        LbEnv {
            sd,
            src_cpu: cpu,
            dst_cpu: cpu,
            dst_grpmask: None,
            new_dst_cpu: cpu,
            dst_core_idle: false,
            idle,
            imbalance: 0,
            migration_type: MigrationType::Load,
            src_misfit: false,
            fbq_type: FbqType::All,
            cpus: CpuMask::default(),
            flags: LbFlags::default(),
            loop_: 0,
            loop_break: SCHED_NR_MIGRATE_BREAK,
            loop_max: 0,
            tasks: Vec::new(),
            serialized: None,
        }
    }
}

/// How one attempt of load_balance() on one domain ended, which decides when the next one is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// Tasks were moved, or should have been.
    Unbalanced { active_balance: bool },
    /// `out_balanced`
    Balanced,
    /// `out_all_pinned`: affinity kept every task of this level in place.
    AllPinned,
    /// `out_one_pinned`: the running task of the busiest CPU may not come here.
    OnePinned,
}

impl<A: Arch> Sched<A> {
    /// The parts of sched_init() and update_max_interval() for load balancing. At boot, every CPU is due at once; only ticks spread them.
    pub(crate) fn init_balance(&mut self) {
        let jiffies = self.jiffies();
        self.update_max_interval();
        self.balance.load_balance_mask = CpuMask::new(self.nr_cpus());
        for (_, rq) in self.rq.iter_mut() {
            rq.next_balance = jiffies;
            rq.last_load_update_tick = jiffies;
        }
        self.init_nohz();
        self.init_sched_cache();
    }

    /// fair.c: load_balance(). Balances `this_cpu` with the other groups of the domain; returns the number of moved tasks. Clears
    /// `continue_balancing` if another CPU of the group is to do this.
    #[fentry]
    pub(super) fn load_balance(
        &mut self,
        this_cpu: CpuId,
        sd: SdId,
        idle: CpuIdleType,
        continue_balancing: &mut bool,
    ) -> u32 {
        let mut env = LbEnv::new(sd, this_cpu, idle);
        env.dst_grpmask = Some(self.dst_grpmask(sd));
        env.tasks = std::mem::take(&mut self.balance.tasks);
        env.cpus = std::mem::take(&mut self.balance.load_balance_mask);
        let of_domain = match self.kernel.balance.all_pinned {
            AllPinned::AnyActiveCpu => &self.cpu_active_mask,
            AllPinned::OutsideLocalGroup => self.domains.sched_domain_span(sd),
        };
        env.cpus.assign_and(of_domain, &self.cpu_active_mask);
        self.read_domain(sd);
        self.count_balance(&env, |stats, idle| stats.lb_count[idle] += 1);
        let mut ld_moved = 0;
        let outcome = self.balance_domain(&mut env, this_cpu, &mut ld_moved, continue_balancing);
        self.tune_balance_interval(&mut env, outcome);
        if let Some(from) = env.serialized {
            self.end_serialized(from);
        }
        self.balance.load_balance_mask = env.cpus;
        self.balance.tasks = env.tasks;
        match outcome {
            Outcome::Unbalanced { .. } => ld_moved,
            Outcome::Balanced | Outcome::AllPinned | Outcome::OnePinned => 0,
        }
    }

    /// `env.dst_grpmask`: the CPUs that may take tasks besides the pulling one.
    fn dst_grpmask(&self, sd: SdId) -> MaskId {
        let group = &self.domains[self.domains[sd].groups];
        match self.kernel.balance.dst_group {
            DstGroup::Span => group.cpumask,
            DstGroup::BalanceMask => self.domains[group.sgc].cpumask,
        }
    }

    /// find_busiest_group() of each mechanism. `None` if there is nothing to pull; otherwise sets what to move.
    fn find_busiest_group(&mut self, env: &mut LbEnv) -> Option<SgId> {
        match self.kernel.balance.mechanism {
            Mechanism::ByLoad => self.find_busiest_group_by_load(env),
            Mechanism::ByGroupType => self.find_busiest_group_by_group_type(env),
        }
    }

    /// find_busiest_queue() of each mechanism.
    fn find_busiest_queue(&mut self, env: &LbEnv, group: SgId) -> Option<CpuId> {
        match self.kernel.balance.mechanism {
            Mechanism::ByLoad => self.find_busiest_queue_by_load(env, group),
            Mechanism::ByGroupType => self.find_busiest_queue_by_group_type(env, group),
        }
    }

    /// The part of update_sd_lb_stats() that decides which of the busiest group's queues come first: between nodes, those that have tasks
    /// outside a node that they prefer. `nr_running`: the group's fair tasks.
    fn classify_busiest(&self, env: &mut LbEnv, busiest: Option<SgId>, nr_running: u32) {
        let Some(busiest) = busiest.filter(|_| self.numa.is_used()) else { return };
        if !self.domains[env.sd].flags.has(SdFlags::SD_NUMA) {
            return;
        }
        let (mut numa, mut preferred) = (0, 0);
        for cpu in self.domains.sched_group_span(busiest).iter().filter(|&cpu| env.cpus.contains(cpu)) {
            numa += self.numa.rq[cpu].nr_numa_running;
            preferred += self.numa.rq[cpu].nr_preferred_running;
        }
        env.fbq_type = FbqType::classify(nr_running, numa, preferred);
    }

    /// Whether find_busiest_queue() skips a queue, because other queues have tasks that rather should go.
    #[inline]
    fn spares_queue(&self, env: &LbEnv, cpu: CpuId) -> bool {
        self.numa.is_used() && self.fbq_classify_rq(cpu) > env.fbq_type
    }

    /// load_balance() from `redo` on.
    fn balance_domain(
        &mut self,
        env: &mut LbEnv,
        this_cpu: CpuId,
        ld_moved: &mut u32,
        continue_balancing: &mut bool,
    ) -> Outcome {
        loop {
            if !self.should_we_balance(env) {
                *continue_balancing = false;
                return Outcome::Balanced;
            }
            if self.kernel.balance.serialized == Serialized::Search && !self.begin_serialized(env) {
                return Outcome::Balanced;
            }
            let Some(group) = self.find_busiest_group(env) else {
                self.count_balance(env, |stats, idle| stats.lb_nobusyg[idle] += 1);
                return Outcome::Balanced;
            };
            let Some(busiest) = self.find_busiest_queue(env, group) else {
                self.count_balance(env, |stats, idle| stats.lb_nobusyq[idle] += 1);
                return Outcome::Balanced;
            };
            assert_ne!(busiest, env.dst_cpu, "a CPU never pulls from itself");
            self.update_lb_imbalance_stat(env);
            env.src_cpu = busiest;
            *ld_moved = 0;
            // This holds until a task is found that may come.
            env.flags.all_pinned |= self.kernel.balance.one_pinned == OnePinned::AsFound;
            if self.rq[busiest].nr_running > 1 {
                *ld_moved = self.pull_tasks(env);
                self.flag_group_imbalance(env);
                if env.flags.all_pinned {
                    env.cpus.clear(busiest);
                    if self.another_queue_is_worth_a_try(env) {
                        env.loop_ = 0;
                        env.loop_break = SCHED_NR_MIGRATE_BREAK;
                        continue;
                    }
                    return Outcome::AllPinned;
                }
            }
            return self.conclude(env, this_cpu, *ld_moved);
        }
    }

    /// fair.c: update_lb_imbalance_stat(). Up to v6.12 all kinds of imbalance share one counter.
    fn update_lb_imbalance_stat(&mut self, env: &LbEnv) {
        let (imbalance, migration_type) = (env.imbalance as u32, env.migration_type);
        self.count_balance(env, |stats, idle| {
            let counter = match migration_type {
                MigrationType::Load => &mut stats.lb_imbalance_load,
                MigrationType::Util => &mut stats.lb_imbalance_util,
                MigrationType::Task => &mut stats.lb_imbalance_task,
                MigrationType::Misfit => &mut stats.lb_imbalance_misfit,
                // Schedstats have no counter for the LLCs that tasks prefer.
                MigrationType::LlcTask => return,
            };
            counter[idle] = counter[idle].wrapping_add(imbalance);
        });
    }

    /// load_balance() at `more_balance`: moves tasks off `src_cpu`, and continues for another CPU of the own group if some tasks may only
    /// go there. Returns the number of moved tasks.
    fn pull_tasks(&mut self, env: &mut LbEnv) -> u32 {
        env.flags.all_pinned = true;
        env.loop_max = self.sysctl.sched_nr_migrate.min(u64::from(self.rq[env.src_cpu].nr_running));
        let mut ld_moved = 0;
        loop {
            self.rq_lock(env.src_cpu);
            self.update_rq_clock_of_caller(env.src_cpu);
            let cur_ld_moved = self.detach_tasks(env);
            self.rq_unlock(env.src_cpu);
            if cur_ld_moved > 0 {
                self.attach_tasks(env);
                ld_moved += cur_ld_moved;
            }
            if env.flags.need_break {
                env.flags.need_break = false;
                let stops = self.kernel.balance.detach_limit == DetachLimit::OnceMovable;
                if !stops || env.loop_ < u64::from(self.rq[env.src_cpu].nr_running) {
                    continue;
                }
            }
            if !(env.flags.dst_pinned && env.imbalance > 0) {
                return ld_moved;
            }
            env.cpus.clear(env.dst_cpu);
            env.dst_cpu = env.new_dst_cpu;
            env.flags.dst_pinned = false;
            env.loop_ = 0;
            env.loop_break = SCHED_NR_MIGRATE_BREAK;
        }
    }

    /// Tells the parent domain that affinity kept this level from being balanced.
    fn flag_group_imbalance(&mut self, env: &LbEnv) {
        if env.flags.some_pinned && env.imbalance > 0 {
            self.set_group_imbalance(env.sd, true);
        }
    }

    fn set_group_imbalance(&mut self, sd: SdId, imbalance: bool) {
        if let Some(parent) = self.domains[sd].parent {
            let sgc = self.domains[self.domains[parent].groups].sgc;
            self.read_group_capacity(sgc);
            if self.domains[sgc].imbalance != imbalance {
                self.write_group_capacity(sgc);
                self.domains[sgc].imbalance = imbalance;
            }
        }
    }

    fn another_queue_is_worth_a_try(&self, env: &LbEnv) -> bool {
        match (self.kernel.balance.all_pinned, env.dst_grpmask) {
            (AllPinned::OutsideLocalGroup, Some(local)) => !env.cpus.is_subset(self.domains.masks.get(local)),
            (AllPinned::OutsideLocalGroup, None) | (AllPinned::AnyActiveCpu, _) => !env.cpus.is_empty(),
        }
    }

    /// load_balance() from `if (!ld_moved)` on: counts the failure, or has the running task pushed.
    fn conclude(&mut self, env: &mut LbEnv, this_cpu: CpuId, ld_moved: u32) -> Outcome {
        let sd = env.sd;
        if ld_moved > 0 {
            self.domains[sd].nr_balance_failed = 0;
            return Outcome::Unbalanced { active_balance: false };
        }
        self.count_balance(env, |stats, idle| stats.lb_failed[idle] += 1);
        // Newly-idle balancing is too frequent for its failures to count; and a task that stays in its LLC is meant to.
        if env.idle != CpuIdleType::NewlyIdle && !self.ignores_misfit(env) && !env.flags.llc_pinned {
            self.domains[sd].nr_balance_failed += 1;
        }
        if self.need_active_balance(env) {
            self.begin_active_balance(env, this_cpu)
        } else {
            Outcome::Unbalanced { active_balance: false }
        }
    }

    /// Whether the pass concerned a misfit task, whose failure says nothing about the domain.
    fn ignores_misfit(&self, env: &LbEnv) -> bool {
        env.migration_type == MigrationType::Misfit && self.kernel.balance.misfit_failures == MisfitFailures::Ignored
    }

    /// load_balance() at `out_balanced`, `out_all_pinned` and `out_one_pinned`, and the intervals after the other outcomes.
    fn tune_balance_interval(&mut self, env: &mut LbEnv, outcome: Outcome) {
        let rules = self.kernel.balance;
        let keeps_flag = rules.imbalance_flag == ImbalanceFlag::KeptIfPinned && env.flags.all_pinned;
        if outcome == Outcome::Balanced && !keeps_flag {
            self.set_group_imbalance(env.sd, false);
        }
        if matches!(outcome, Outcome::Balanced | Outcome::AllPinned) {
            self.count_balance(env, |stats, idle| stats.lb_balanced[idle] += 1);
        }
        self.write_domain(env.sd);
        let again = match (rules.active_balance_interval, outcome) {
            (ActiveBalanceInterval::Kept, Outcome::Unbalanced { active_balance: true }) => {
                self.need_active_balance(env)
            }
            (ActiveBalanceInterval::DoubledUnlessVoluntary, Outcome::Unbalanced { active_balance: true }) => {
                self.voluntary_active_balance(env)
            }
            _ => false,
        };
        let newly = env.idle == CpuIdleType::NewlyIdle && rules.newidle_interval == NewidleInterval::Kept;
        let kept = newly || self.ignores_misfit(env);
        let sd = &mut self.domains[env.sd];
        match outcome {
            Outcome::Unbalanced { active_balance } if !active_balance || again => sd.balance_interval = sd.min_interval,
            Outcome::Unbalanced { .. } => {
                if rules.active_balance_interval != ActiveBalanceInterval::Kept && sd.balance_interval < sd.max_interval
                {
                    sd.balance_interval *= 2;
                }
            }
            Outcome::Balanced | Outcome::AllPinned | Outcome::OnePinned => {
                if outcome != Outcome::OnePinned {
                    sd.nr_balance_failed = 0;
                }
                let pinned = env.flags.all_pinned && sd.balance_interval < MAX_PINNED_INTERVAL;
                if !kept && (pinned || sd.balance_interval < sd.max_interval) {
                    sd.balance_interval *= 2;
                }
            }
        }
    }

    /// fair.c: should_we_balance(). Among the CPUs of a group, the first idle one balances for all; if none is idle, the first.
    /// Differs: v4.15 to v5.15 also check whether `dst_cpu` is one of the balanced CPUs, which matters while CPUs come and go.
    fn should_we_balance(&mut self, env: &LbEnv) -> bool {
        let rules = self.kernel.balance;
        let bails = rules.newidle_bail == NewidleBail::BeforeEachSearch;
        if bails && !env.cpus.contains(env.dst_cpu) {
            return false;
        }
        if env.idle == CpuIdleType::NewlyIdle {
            let rq = &self.rq[env.dst_cpu];
            return !bails || rq.nr_running == 0 && rq.wake_list.is_empty();
        }
        let sg = self.domains[env.sd].groups;
        let of_siblings = self.domains[env.sd].flags.has(SdFlags::SD_SHARE_CPUCAPACITY);
        match self.kernel.balance.should_we_balance {
            ShouldWeBalance::IdleCoreFirst if !of_siblings => self.should_we_balance_idle_core(env, sg),
            ShouldWeBalance::FirstIdleCpu | ShouldWeBalance::IdleCoreFirst => self.should_we_balance_idle_cpu(env, sg),
        }
    }

    fn should_we_balance_idle_cpu(&mut self, env: &LbEnv, sg: SgId) -> bool {
        let mut from = 0;
        while let Some(cpu) = self.domains.sched_group_span(sg).next_from(from) {
            from = cpu.index() + 1;
            if env.cpus.contains(cpu) && self.domains.group_balance_mask(sg).contains(cpu) && self.idle_cpu(cpu) {
                return cpu == env.dst_cpu;
            }
        }
        self.domains.group_balance_cpu(sg) == env.dst_cpu
    }

    fn should_we_balance_idle_core(&mut self, env: &LbEnv, sg: SgId) -> bool {
        let mut left = std::mem::take(&mut self.balance.should_we_balance_tmpmask);
        left.assign_and(self.domains.group_balance_mask(sg), &env.cpus);
        let (mut idle_core, mut idle_smt) = (None, None);
        let mut from = 0;
        while let Some(cpu) = left.next_from(from) {
            from = cpu.index() + 1;
            if !self.idle_cpu(cpu) {
                continue;
            }
            if self.is_core_idle(cpu) {
                idle_core = Some(cpu);
                break;
            }
            idle_smt = idle_smt.or(Some(cpu));
            // This core is busy, so its siblings need not be looked at.
            self.topology.smt[cpu].iter().for_each(|sibling| left.clear(sibling));
        }
        self.balance.should_we_balance_tmpmask = left;
        idle_core.or(idle_smt).unwrap_or_else(|| self.domains.group_balance_cpu(sg)) == env.dst_cpu
    }

    /// fair.c: is_core_idle(). Whether all other threads of the CPU's core are idle.
    pub(in crate::fair) fn is_core_idle(&mut self, cpu: CpuId) -> bool {
        let mut from = 0;
        while let Some(sibling) = self.topology.smt[cpu].next_from(from) {
            from = sibling.index() + 1;
            if sibling != cpu && self.cpu_online_mask.contains(sibling) && !self.idle_cpu(sibling) {
                return false;
            }
        }
        true
    }

    /// Sets `rd->overload` of the root domain of `cpu`, and writes only a changed value.
    fn set_overload(&mut self, cpu: CpuId, overload: bool) {
        self.read_root_domain(cpu);
        if self.root_domain(cpu).overload != overload {
            self.write_root_domain(cpu);
            self.root_domain_mut(cpu).overload = overload;
        }
    }

    /// fair.c: sg_imbalanced().
    fn sg_imbalanced(&self, group: SgId) -> bool {
        self.domains[self.domains[group].sgc].imbalance
    }

    /// `schedstat_inc()` on a counter of the domain.
    fn count_balance(&mut self, env: &LbEnv, count: impl FnOnce(&mut DomainStats, usize)) {
        if self.schedstat_enabled() {
            self.write_domain_stats(env.sd);
            count(self.domains.stats_mut(env.sd), env.idle as usize);
        }
    }

    /// Since v4.12 a CPU updates a queue's clock after taking its lock; before, every enqueue and dequeue updated it.
    pub(super) fn update_rq_clock_of_caller(&mut self, cpu: CpuId) {
        if self.kernel.core.clock == ClockUpdate::Callers {
            self.update_rq_clock(cpu);
        }
    }

    /// The fair tasks of a CPU that count for balancing: `rq->cfs.h_nr_runnable`, or all queued ones.
    #[inline]
    pub(in crate::fair) fn counted_tasks(&self, cpu: CpuId) -> u32 {
        let cfs = &self.cfs_rq[self.rq[cpu].cfs];
        let runnable = unlikely(self.kernel.balance.counted_tasks == CountedTasks::Runnable);
        cfs.h_nr_running - if runnable { cfs.h_nr_delayed } else { 0 }
    }

    /// `rq->cfs.h_nr_running`.
    pub(crate) fn cfs_h_nr_running(&self, cpu: CpuId) -> u32 {
        self.cfs_rq[self.rq[cpu].cfs].h_nr_running
    }
}
