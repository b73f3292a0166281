//! deadline.c: the deadline class: earliest deadline first, each task within a budget of its own (CBS).
//!
//! ```text
//! mod.rs        the queue, and the methods of the class
//! budget.rs     budgets: when they are granted, used up and replenished; the timer
//! bandwidth.rs  how much all tasks may reserve (admission), and who may use what others leave (GRUB)
//! migrate.rs    which CPU a task goes to; pushing and pulling between CPUs
//! changes.rs    tasks that enter the class, change in it or leave it; CPU hotplug
//! statistics.rs schedstats, since v5.16 as for real-time tasks
//! server.rs     the deadline entity that runs starving fair tasks (v6.12)
//! ```
//!
//! Absent: SCHED_FLAG_DL_OVERRUN.

pub mod bandwidth;
pub mod budget;
pub mod changes;
pub mod migrate;
pub mod server;
mod statistics;
#[cfg(test)]
mod tests;

use crate::arch::Arch;
use crate::attr::SchedFlags;
use crate::behaviour;
use crate::core::Sched;
use crate::core::class::Pick;
use crate::cpudeadline::dl_time_before;
use crate::cpupri::CpuPriority;
use crate::features::Feature;
use crate::push_pull::Pushable;
use crate::sched::*;
use bandwidth::{Admission, BandwidthTracking, NewLimit, PeriodLimits, Reclaim, RootDomainBandwidth};
use budget::{Constrained, NewBudget, Overflow, RuntimeScale};
use changes::{DlLeaveAsleep, DlPrioChanged, DlSwitchedTo, HotplugBandwidth};
use fentry::fentry;
use migrate::{DlFit, LaterChoice, OfflineMigration};
use server::{ServerCounted, ServerIdle};
use units::CpuId;

behaviour! {
    /// Whether real-time tasks are pushed to CPUs that run deadline tasks.
    pub enum DlCpus = "dl.cpus_of_rt" {
        AsFree = "as-free", since "v3.14", commit "", "they are: such a CPU counts by its real-time tasks alone";
        Higher = "higher", since "v5.11", commit "b13772f81356", "they are not (CPUPRI_HIGHER)";
    }
}

/// The differences within deadline.c itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DlRules {
    pub tracking: BandwidthTracking,
    pub admission: Admission,
    pub period_limits: PeriodLimits,
    pub rebuild: RootDomainBandwidth,
    pub new_limit: NewLimit,
    pub hotplug: HotplugBandwidth,
    pub reclaim: Reclaim,
    pub overflow: Overflow,
    pub constrained: Constrained,
    pub new_budget: NewBudget,
    pub runtime_scale: RuntimeScale,
    pub later_choice: LaterChoice,
    pub fit: DlFit,
    pub prio_changed: DlPrioChanged,
    pub switched_to: DlSwitchedTo,
    pub leave_asleep: DlLeaveAsleep,
    pub offline_migration: OfflineMigration,
    pub cpus_of_rt: DlCpus,
    pub server_idle: ServerIdle,
    pub server_counted: ServerCounted,
}

impl DlRules {
    pub const V4_5: DlRules = DlRules {
        tracking: BandwidthTracking::TotalOnly,
        admission: Admission::Cpus,
        period_limits: PeriodLimits::None,
        rebuild: RootDomainBandwidth::Lost,
        new_limit: NewLimit::Forgets,
        hotplug: HotplugBandwidth::All,
        reclaim: Reclaim::OfAll,
        overflow: Overflow::Period,
        constrained: Constrained::AsImplicit,
        new_budget: NewBudget::NewTasks,
        runtime_scale: RuntimeScale::Wall,
        later_choice: LaterChoice::AnyFree,
        fit: DlFit::Unseen,
        prio_changed: DlPrioChanged::EarliestHere,
        switched_to: DlSwitchedTo::PushOnly,
        leave_asleep: DlLeaveAsleep::KeepsRunning,
        offline_migration: OfflineMigration::Kept,
        cpus_of_rt: DlCpus::AsFree,
        server_idle: ServerIdle::Discounted,
        server_counted: ServerCounted::AsTask,
    };
    pub const V4_15: DlRules = DlRules {
        tracking: BandwidthTracking::Running,
        overflow: Overflow::Deadline,
        constrained: Constrained::NextPeriod,
        new_budget: NewBudget::Expired,
        later_choice: LaterChoice::Nearest,
        switched_to: DlSwitchedTo::Preempts,
        ..DlRules::V4_5
    };
    pub const V4_16: DlRules = DlRules { runtime_scale: RuntimeScale::Capacity, ..DlRules::V4_15 };
    /// As in 4.19.108, which is newer in `offline_migration` than v4.19 itself.
    pub const V4_19: DlRules = DlRules {
        leave_asleep: DlLeaveAsleep::Subtracted,
        offline_migration: OfflineMigration::Moved,
        ..DlRules::V4_16
    };
    pub const V5_4: DlRules =
        DlRules { admission: Admission::CpusForLimit, rebuild: RootDomainBandwidth::Counted, ..DlRules::V4_19 };
    pub const V5_10: DlRules = DlRules {
        admission: Admission::Capacity,
        period_limits: PeriodLimits::Sysctl,
        fit: DlFit::Density,
        ..DlRules::V5_4
    };

    pub const V5_15: DlRules = DlRules { cpus_of_rt: DlCpus::Higher, ..DlRules::V5_10 };
    pub const V6_1: DlRules = DlRules::V5_15;
    pub const V6_6: DlRules =
        DlRules { reclaim: Reclaim::OfDeadlineShare, prio_changed: DlPrioChanged::Preempts, ..DlRules::V6_1 };
    pub const V6_12: DlRules = DlRules { new_limit: NewLimit::Recounts, ..DlRules::V6_6 };

    pub const V6_18: DlRules = DlRules {
        hotplug: HotplugBandwidth::LessServer,
        rebuild: RootDomainBandwidth::WithServers,
        server_counted: ServerCounted::Apart,
        ..DlRules::V6_12
    };

    pub const V7_2: DlRules = DlRules {
        server_idle: ServerIdle::Accounted,
        new_budget: NewBudget::ExpiredIfMoved,
        prio_changed: DlPrioChanged::Moved,
        ..DlRules::V6_18
    };
}

/// The owner of a deadline entity: a task, or the fair server of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DlSe {
    Task(TaskId),
    FairServer(CpuId),
}

/// sched.h: struct sched_dl_entity. Times in ns, `deadline` on the runqueue's clock; bandwidths out of 2^20.
#[derive(Clone, Debug, Default)]
pub struct SchedDlEntity {
    pub dl_runtime: u64,
    pub dl_deadline: u64,
    pub dl_period: u64,
    pub dl_bw: u64,
    pub dl_density: u64,
    /// The rest of the budget; negative by what was overrun.
    pub runtime: i64,
    pub deadline: u64,
    pub flags: SchedFlags,
    /// The task that lends its parameters; `None`: none (`pi_se` is the entity itself).
    pub pi_se: Option<TaskId>,
    pub dl_throttled: bool,
    pub dl_yielded: bool,
    /// Whether the task sleeps, but its bandwidth still counts as used (until the 0-lag time).
    pub dl_non_contending: bool,
    /// Whether it has had a budget since it entered the class (`!dl_new`, until v4.6).
    pub started: bool,
    pub dl_server: bool,
    pub dl_server_active: bool,
    pub dl_defer: bool,
    pub dl_defer_armed: bool,
    pub dl_defer_running: bool,
    /// Whether the server was deferred because the CPU was idle (v7.2).
    pub dl_defer_idle: bool,
    /// Whether it is in the tree (`!RB_EMPTY_NODE(&dl_se->rb_node)`).
    pub queued: bool,
    pub pushable: bool,
}

/// `dl_rq->earliest_dl`: of all queued entities (`None`: there is none), and of the tasks that could be pushed elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EarliestDl {
    pub curr: Option<u64>,
    pub next: u64,
}

/// kernel/sched/sched.h: struct dl_rq.
#[derive(Clone, Debug, Default)]
pub struct DlRq {
    /// Ordered by deadline, then by arrival.
    pub root: Vec<(u64, DlSe)>,
    pub dl_nr_running: u32,
    pub earliest_dl: EarliestDl,
    pub dl_nr_migratory: u32,
    pub overloaded: bool,
    pub pushable_dl_tasks: Pushable<u64>,
    /// Bandwidth of the tasks that run, wait, or have just gone to sleep (GRUB's active utilization).
    pub running_bw: u64,
    /// Bandwidth of all tasks of this CPU, asleep or not.
    pub this_bw: u64,
    /// This CPU's part of the bandwidth that nothing has reserved.
    pub extra_bw: u64,
    pub max_bw: u64,
    /// The inverse of the share of a CPU that the class may have, out of 2^8.
    pub bw_ratio: u64,
    pub fair_server: SchedDlEntity,
}

impl DlRq {
    /// deadline.c: has_pushable_dl_tasks().
    pub(crate) fn has_pushable_dl_tasks(&self) -> bool {
        !self.pushable_dl_tasks.is_empty()
    }

    /// deadline.c: is_leftmost().
    fn is_leftmost(&self, se: DlSe) -> bool {
        self.root.first().is_some_and(|&(_, first)| first == se)
    }
}

impl<A: Arch> Sched<A> {
    #[inline]
    pub fn dl_entity(&self, se: DlSe) -> &SchedDlEntity {
        match se {
            DlSe::Task(p) => &self.dl_se[p],
            DlSe::FairServer(cpu) => &self.dl[cpu].fair_server,
        }
    }

    #[inline]
    pub(super) fn dl_mut(&mut self, se: DlSe) -> &mut SchedDlEntity {
        match se {
            DlSe::Task(p) => &mut self.dl_se[p],
            DlSe::FairServer(cpu) => &mut self.dl[cpu].fair_server,
        }
    }

    /// deadline.c: pi_of(). The entity whose budget and periods count: the entity itself, or the lender's.
    ///
    /// Differs: until v5.9 the parameters were the first waiter's own, which it does not have if it has borrowed its
    /// deadline itself.
    pub(super) fn pi_of(&self, se: DlSe) -> &SchedDlEntity {
        match self.dl_entity(se).pi_se {
            Some(lender) => &self.dl_se[lender],
            None => self.dl_entity(se),
        }
    }

    /// deadline.c: is_dl_boosted().
    pub(super) fn is_dl_boosted(&self, se: DlSe) -> bool {
        self.dl_entity(se).pi_se.is_some()
    }

    /// deadline.c: rq_of_dl_se().
    #[inline]
    pub(super) fn rq_of_dl_se(&self, se: DlSe) -> CpuId {
        match se {
            DlSe::Task(p) => self.task[p].cpu,
            DlSe::FairServer(cpu) => cpu,
        }
    }

    /// deadline.c: on_dl_rq().
    pub fn on_dl_rq(&self, p: TaskId) -> bool {
        p.index() < self.dl_se.len() && self.dl_se[p].queued
    }

    /// sched.h: dl_entity_is_special(). Whether it is a thread of schedutil.
    #[inline]
    pub(super) fn dl_entity_is_special(&self, se: DlSe) -> bool {
        self.dl_entity(se).flags.sugov
    }

    /// sched.h: dl_entity_preempt().
    pub(super) fn dl_entity_preempt(&self, p: TaskId, other: TaskId) -> bool {
        self.dl_entity_is_special(DlSe::Task(p)) || dl_time_before(self.dl_se[p].deadline, self.dl_se[other].deadline)
    }

    /// deadline.c: enqueue_task_dl().
    #[fentry]
    pub(crate) fn enqueue_task_dl(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        self.dl_se.ensure(p);
        if self.is_dl_boosted(DlSe::Task(p)) && self.dl_se[p].dl_throttled {
            // A task that holds what others wait for does not wait for its next budget.
            self.cancel_dl_timer(DlSe::Task(p));
            self.dl_se[p].dl_throttled = false;
        }
        self.update_stats_wait_start_dl(p, flags);
        let migrating = self.task[p].on_rq == OnRq::Migrating;
        self.enqueue_dl_entity(DlSe::Task(p), flags, migrating);
        let waits = self.rq[cpu].curr != Some(p) && self.dl_se[p].queued;
        if waits && self.task[p].nr_cpus_allowed > 1 {
            self.enqueue_pushable_dl_task(cpu, p);
        }
    }

    /// deadline.c: dequeue_task_dl().
    #[fentry]
    pub(crate) fn dequeue_task_dl(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        self.update_curr_dl(cpu);
        self.update_stats_dequeue_rt(p, flags);
        let migrating = self.task[p].on_rq == OnRq::Migrating;
        self.dequeue_dl_entity(DlSe::Task(p), flags, migrating);
        self.dequeue_pushable_dl_task(cpu, p);
    }

    /// deadline.c: enqueue_dl_entity().
    pub(super) fn enqueue_dl_entity(&mut self, se: DlSe, flags: QueueFlags, migrating: bool) {
        let cpu = self.rq_of_dl_se(se);
        debug_assert!(!self.dl_entity(se).queued, "{se:?} is queued already");
        if self.kernel.dl.constrained == Constrained::NextPeriod
            && !self.dl_entity(se).dl_throttled
            && !self.dl_entity(se).dl_is_implicit()
        {
            self.dl_check_constrained_dl(se);
        }
        if flags.save_restore || migrating {
            self.add_rq_bw(se);
            self.add_running_bw(se);
        }
        let entity = self.dl_entity(se);
        if !entity.dl_defer && entity.dl_throttled && !flags.replenish {
            if flags.wakeup {
                self.task_contending(se, flags);
            }
            return;
        }
        if flags.wakeup {
            self.task_contending(se, flags);
            self.update_dl_entity(se);
        } else if flags.replenish {
            self.replenish_dl_entity(se);
        } else if flags.save_restore && !self.is_dl_boosted(se) && self.needs_new_budget(cpu, se, flags) {
            self.setup_new_dl_entity(se);
        }
        // A deferred server waits for its timer first.
        if self.dl_entity(se).dl_throttled {
            if self.start_dl_timer(se) {
                return;
            }
            self.cancel_dl_timer(se);
            let entity = self.dl_mut(se);
            (entity.dl_defer_armed, entity.dl_throttled) = (false, false);
        }
        self.__enqueue_dl_entity(cpu, se);
    }

    /// deadline.c: dequeue_dl_entity().
    pub(super) fn dequeue_dl_entity(&mut self, se: DlSe, flags: QueueFlags, migrating: bool) {
        self.__dequeue_dl_entity(se);
        if flags.save_restore || migrating {
            self.sub_running_bw(se);
            self.sub_rq_bw(se);
        }
        if flags.sleep {
            self.task_non_contending(se, true);
        }
    }

    /// deadline.c: __enqueue_dl_entity().
    fn __enqueue_dl_entity(&mut self, cpu: CpuId, se: DlSe) {
        self.write_rq_dl(cpu);
        let deadline = self.dl_entity(se).deadline;
        self.dl_mut(se).queued = true;
        let root = &mut self.dl[cpu].root;
        let at = root.partition_point(|&(other, _)| !dl_time_before(deadline, other));
        root.insert(at, (deadline, se));
        self.inc_dl_tasks(cpu, se);
    }

    /// deadline.c: __dequeue_dl_entity().
    fn __dequeue_dl_entity(&mut self, se: DlSe) {
        if !self.dl_entity(se).queued {
            return;
        }
        let cpu = self.rq_of_dl_se(se);
        self.write_rq_dl(cpu);
        self.dl_mut(se).queued = false;
        self.dl[cpu].root.retain(|&(_, other)| other != se);
        self.dec_dl_tasks(cpu, se);
    }

    /// Whether an entity counts as one of its CPU's tasks.
    fn is_counted(&self, se: DlSe) -> bool {
        matches!(se, DlSe::Task(_)) || self.kernel.dl.server_counted == ServerCounted::AsTask
    }

    /// deadline.c: inc_dl_tasks() and inc_dl_deadline().
    #[doc(alias = "inc_dl_deadline")]
    #[doc(alias = "inc_dl_migration")]
    fn inc_dl_tasks(&mut self, cpu: CpuId, se: DlSe) {
        self.dl[cpu].dl_nr_running += 1;
        if self.is_counted(se) {
            self.add_nr_running(cpu, 1);
        }
        if let DlSe::Task(p) = se {
            self.dl[cpu].dl_nr_migratory += u32::from(self.task[p].nr_cpus_allowed > 1);
        }
        let deadline = self.dl_entity(se).deadline;
        let earliest = self.dl[cpu].earliest_dl.curr;
        if earliest.is_none_or(|earliest| dl_time_before(deadline, earliest)) {
            if earliest.is_none() && self.kernel.dl.cpus_of_rt == DlCpus::Higher {
                self.cpupri_set(cpu, CpuPriority::Higher);
            }
            self.dl[cpu].earliest_dl.curr = Some(deadline);
            self.cpudl_set(cpu, deadline);
        }
        self.update_dl_migration(cpu);
    }

    /// deadline.c: dec_dl_tasks() and dec_dl_deadline().
    #[doc(alias = "dec_dl_deadline")]
    #[doc(alias = "dec_dl_migration")]
    fn dec_dl_tasks(&mut self, cpu: CpuId, se: DlSe) {
        self.dl[cpu].dl_nr_running -= 1;
        if self.is_counted(se) {
            self.sub_nr_running(cpu, 1);
        }
        if let DlSe::Task(p) = se {
            self.dl[cpu].dl_nr_migratory -= u32::from(self.task[p].nr_cpus_allowed > 1);
        }
        match self.dl[cpu].root.first() {
            Some(&(deadline, _)) => {
                self.dl[cpu].earliest_dl.curr = Some(deadline);
                self.cpudl_set(cpu, deadline);
            }
            None => {
                self.dl[cpu].earliest_dl = EarliestDl::default();
                self.cpudl_clear(cpu, self.rq[cpu].online);
                if self.kernel.dl.cpus_of_rt == DlCpus::Higher {
                    self.cpupri_set(cpu, CpuPriority::Queued(self.rt[cpu].highest_prio.curr));
                }
            }
        }
        self.update_dl_migration(cpu);
    }

    /// deadline.c: yield_task_dl(). Gives up the rest of the budget: the task runs again in its next period.
    /// Differs: until v4.6, a task that has not run at all since its last tick keeps its budget, and what it has overrun
    /// since then is forgiven.
    #[fentry]
    pub(crate) fn yield_task_dl(&mut self, cpu: CpuId) {
        let curr = self.rq[cpu].curr.expect("only a task yields");
        self.dl_se[curr].dl_yielded = true;
        self.update_rq_clock(cpu);
        self.update_curr_dl(cpu);
        self.rq_clock_skip_update(cpu, true);
    }

    /// deadline.c: check_preempt_curr_dl() (wakeup_preempt_dl() since v6.6).
    #[doc(alias = "wakeup_preempt_dl")]
    #[fentry]
    pub(crate) fn check_preempt_curr_dl(&mut self, cpu: CpuId, p: TaskId) {
        let curr = self.rq[cpu].curr.expect("it is of this class");
        if self.dl_entity_preempt(p, curr) {
            self.resched_curr(cpu);
        } else if self.dl_se[p].deadline == self.dl_se[curr].deadline && !self.rq[cpu].need_resched {
            self.check_preempt_equal_dl(cpu, curr, p);
        }
    }

    /// deadline.c: check_preempt_equal_dl().
    fn check_preempt_equal_dl(&mut self, cpu: CpuId, curr: TaskId, p: TaskId) {
        if self.task[curr].nr_cpus_allowed == 1 || !self.cpudl_has_later(curr) {
            return;
        }
        if self.task[p].nr_cpus_allowed != 1 && self.cpudl_has_later(p) {
            return;
        }
        self.resched_curr(cpu);
    }

    /// deadline.c: pick_task_dl(). Picks the entity with the earliest deadline; a fair task, if that is the server.
    #[doc(alias = "__pick_task_dl")]
    #[doc(alias = "pick_next_dl_entity")]
    pub(crate) fn pick_task_dl(&mut self, cpu: CpuId) -> Option<DlSe> {
        self.dl[cpu].root.first().map(|&(_, se)| se)
    }

    /// deadline.c: pick_next_task_dl(), until v5.3: after a task of this class, it first pulls tasks that wait elsewhere.
    /// Differs: costs nothing if it picks nothing.
    pub(crate) fn pick_next_task_dl(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Pick {
        let after_one = prev.is_some_and(|p| self.task[p].sched_class == SchedClass::Dl);
        if after_one {
            self.pull_dl_task(cpu);
            if self.rq[cpu].stop_queued {
                return Pick::Retry;
            }
            // This may throttle the task.
            self.update_curr_dl(cpu);
        }
        match self.pick_task_dl(cpu) {
            Some(DlSe::Task(p)) => {
                self.take_next_task_dl(cpu, prev, p);
                Pick::Task(p)
            }
            Some(DlSe::FairServer(_)) => self.pick_by_server(cpu, prev),
            None => Pick::Nothing,
        }
    }

    /// The part of pick_next_task_dl() that picks a task.
    #[fentry(pick_next_task_dl)]
    pub(crate) fn take_next_task_dl(&mut self, cpu: CpuId, prev: Option<TaskId>, p: TaskId) {
        self.put_prev_task(cpu, prev);
        self.set_next_task_dl(cpu, p, true);
    }

    /// deadline.c: set_next_task_dl() (set_curr_task_dl() until v5.3). `first`: the task is about to run, and was not only
    /// changed.
    #[doc(alias = "set_curr_task_dl")]
    pub(crate) fn set_next_task_dl(&mut self, cpu: CpuId, p: TaskId, first: bool) {
        let se = self.task[p].se;
        self.se[se].exec_start = self.rq[cpu].clock_task;
        if self.on_dl_rq(p) {
            self.update_stats_wait_end_dl(p);
        }
        self.dequeue_pushable_dl_task(cpu, p);
        if !first {
            return;
        }
        if self.hrtick_enabled_dl(cpu) {
            self.start_hrtick_dl(cpu, p);
        }
        if self.curr_class(cpu) != SchedClass::Dl {
            // The time before this was not used by this class.
            self.update_dl_rq_load_avg(cpu, false);
        }
        self.deadline_queue_push_tasks(cpu);
    }

    /// deadline.c: put_prev_task_dl().
    #[fentry]
    pub(crate) fn put_prev_task_dl(&mut self, cpu: CpuId, p: TaskId) {
        if self.on_dl_rq(p) {
            self.stats_wait_starts(p);
        }
        self.update_curr_dl(cpu);
        self.update_dl_rq_load_avg(cpu, true);
        if self.on_dl_rq(p) && self.task[p].nr_cpus_allowed > 1 {
            self.enqueue_pushable_dl_task(cpu, p);
        }
    }

    /// deadline.c: task_tick_dl(). `queued`: called by the timer that ends a budget.
    #[fentry]
    pub(crate) fn task_tick_dl(&mut self, cpu: CpuId, p: TaskId, queued: bool) {
        self.update_curr_dl(cpu);
        self.update_dl_rq_load_avg(cpu, true);
        let left = self.dl_se[p].runtime > 0 && self.dl[cpu].is_leftmost(DlSe::Task(p));
        if queued && left && self.hrtick_enabled_dl(cpu) {
            self.start_hrtick_dl(cpu, p);
        }
    }

    /// kernel/sched/sched.h: hrtick_enabled_dl(): HRTICK_DL, until v5.9 HRTICK.
    fn hrtick_enabled_dl(&self, cpu: CpuId) -> bool {
        let feature = match self.features.has(Feature::HRTICK_DL) {
            true => Feature::HRTICK_DL,
            false => Feature::HRTICK,
        };
        self.sched_feat(feature) && self.rq[cpu].online
    }

    /// deadline.c: start_hrtick_dl().
    fn start_hrtick_dl(&mut self, cpu: CpuId, p: TaskId) {
        let left = self.dl_se[p].runtime.max(0) as u64;
        self.hrtick_start(cpu, left);
    }
}
