//! rt.c: the real-time class: SCHED_FIFO and SCHED_RR, one list of tasks for each priority.
//!
//! ```text
//! mod.rs        the queue, and the methods of the class
//! migrate.rs    which CPU a task goes to; pushing and pulling between CPUs
//! bandwidth.rs  how much of each period the class may have (sched_rt_runtime_us)
//! rules.rs      what differs between kernel versions
//! ```
//! Absent: CONFIG_RT_GROUP_SCHED, RLIMIT_RTTIME, `migrate_disable()`.

pub mod bandwidth;
pub mod migrate;
mod rules;
#[cfg(test)]
mod tests;

pub use rules::{DequeuedWait, RtRules, RtStatistics, RtSwitchedTo, RtTask, RuntimeDefault};

use crate::arch::Arch;
use crate::core::Sched;
use crate::core::class::Pick;
use crate::cpufreq::{UpdateFlags, UpdateUtil};
use crate::cpupri::CpuPriority;
use crate::fair::list::Linked;
use crate::push_pull::Pushable;
use crate::sched::*;
use crate::syscalls::PolicyChange;
use fentry::fentry;
use units::CpuId;

/// sched.h: struct sched_rt_entity.
#[derive(Clone, Debug, Default)]
pub struct SchedRtEntity {
    /// Neighbours on the list of its priority.
    pub run_list: Links,
    pub on_rq: bool,
    pub on_list: bool,
    /// What is left of a SCHED_RR task's slice, in ticks.
    pub time_slice: u64,
}

impl Linked for SchedRtEntity {
    type Id = TaskId;

    fn links(&self) -> &Links {
        &self.run_list
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.run_list
    }
}

/// kernel/sched/sched.h: struct rt_prio_array.
#[derive(Clone, Debug)]
struct RtPrioArray {
    /// A bit for each priority that has tasks.
    bitmap: u128,
    queue: Vec<ListHead>,
}

impl RtPrioArray {
    /// The highest priority; `MAX_RT_PRIO` when no task is queued.
    fn sched_find_first_bit(&self) -> i32 {
        self.bitmap.trailing_zeros().min(MAX_RT_PRIO as u32) as i32
    }
}

/// `rt_rq->highest_prio`: of all queued tasks, and of those that could be pushed elsewhere. 100: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HighestPrio {
    pub curr: i32,
    pub next: i32,
}

/// kernel/sched/sched.h: struct rt_rq.
#[derive(Clone, Debug)]
pub struct RtRq {
    active: RtPrioArray,
    pub rt_nr_running: u32,
    pub rr_nr_running: u32,
    pub highest_prio: HighestPrio,
    pub rt_nr_migratory: u32,
    pub rt_nr_total: u32,
    pub overloaded: bool,
    /// Waiting tasks that may run elsewhere: priority and task, the highest first, then in order of arrival.
    pub pushable_tasks: Pushable<i32>,
    /// Whether its tasks are counted in `rq.nr_running`; not while it is throttled.
    pub rt_queued: bool,
    pub rt_throttled: bool,
    /// How much of `rt_runtime` was used in this period, in ns.
    pub rt_time: u64,
    pub rt_runtime: u64,
    /// RT_PUSH_IPI_EXECUTING, RT_PUSH_IPI_RESTART and the position of the search, until v4.14.
    push_executing: bool,
    push_restart: bool,
    push_cpu: CpuId,
}

impl RtRq {
    /// rt.c: init_rt_rq().
    #[doc(alias = "init_rt_rq")]
    pub(crate) fn new(cpu: CpuId, rt_runtime: u64) -> RtRq {
        RtRq {
            active: RtPrioArray { bitmap: 0, queue: vec![ListHead::default(); MAX_RT_PRIO as usize] },
            rt_nr_running: 0,
            rr_nr_running: 0,
            highest_prio: HighestPrio { curr: MAX_RT_PRIO, next: MAX_RT_PRIO },
            rt_nr_migratory: 0,
            rt_nr_total: 0,
            overloaded: false,
            pushable_tasks: Pushable::default(),
            rt_queued: false,
            rt_throttled: false,
            rt_time: 0,
            rt_runtime,
            push_executing: false,
            push_restart: false,
            push_cpu: cpu,
        }
    }

    /// rt.c: has_pushable_tasks().
    pub(crate) fn has_pushable_tasks(&self) -> bool {
        !self.pushable_tasks.is_empty()
    }
}

impl<A: Arch> Sched<A> {
    /// rt.c: move_entity(), since v4.6. Whether a task leaves its place in the list: not if it is only changed and returns
    /// with the same priority.
    fn move_entity(&self, flags: QueueFlags) -> bool {
        let requeued = self.kernel.core.policy_change == PolicyChange::Requeued;
        requeued || !flags.save_restore || flags.move_
    }

    /// rt.c: on_rt_rq().
    pub(crate) fn on_rt_rq(&self, p: TaskId) -> bool {
        p.index() < self.rt_se.len() && self.rt_se[p].on_rq
    }

    /// rt.c: enqueue_task_rt().
    #[fentry]
    pub(crate) fn enqueue_task_rt(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        self.rt_se.ensure(p);
        self.update_stats_enqueue_rt(p, flags);
        self.enqueue_rt_entity(cpu, p, flags);
        if self.rq[cpu].curr != Some(p) && self.task[p].nr_cpus_allowed > 1 {
            self.enqueue_pushable_task(cpu, p);
        }
    }

    /// rt.c: dequeue_task_rt().
    #[fentry]
    pub(crate) fn dequeue_task_rt(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        self.update_curr_rt(cpu);
        self.update_stats_dequeue_rt(p, flags);
        self.dequeue_rt_entity(cpu, p, flags);
        self.dequeue_pushable_task(cpu, p);
    }

    /// rt.c: enqueue_rt_entity() and __enqueue_rt_entity().
    #[doc(alias = "__enqueue_rt_entity")]
    fn enqueue_rt_entity(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        self.dequeue_top_rt_rq(cpu);
        self.write_rq_rt(cpu);
        let prio = self.task[p].prio;
        if self.move_entity(flags) || !self.rt_se[p].on_list {
            let array = &mut self.rt[cpu].active;
            let queue = &mut array.queue[prio as usize];
            if flags.head {
                queue.list_add(&mut self.rt_se, p);
            } else {
                queue.list_add_tail(&mut self.rt_se, p);
            }
            array.bitmap |= 1 << prio;
            self.rt_se[p].on_list = true;
        }
        self.rt_se[p].on_rq = true;
        self.inc_rt_tasks(cpu, p);
        self.enqueue_top_rt_rq(cpu);
    }

    /// rt.c: dequeue_rt_entity(), dequeue_rt_stack() and __dequeue_rt_entity().
    #[doc(alias = "dequeue_rt_stack")]
    #[doc(alias = "__dequeue_rt_entity")]
    fn dequeue_rt_entity(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        self.dequeue_top_rt_rq(cpu);
        self.write_rq_rt(cpu);
        if self.move_entity(flags) {
            self.__delist_rt_entity(cpu, p);
        }
        self.rt_se[p].on_rq = false;
        self.dec_rt_tasks(cpu, p);
        self.enqueue_top_rt_rq(cpu);
    }

    /// rt.c: __delist_rt_entity().
    fn __delist_rt_entity(&mut self, cpu: CpuId, p: TaskId) {
        let prio = self.task[p].prio;
        let array = &mut self.rt[cpu].active;
        let queue = &mut array.queue[prio as usize];
        queue.list_del(&mut self.rt_se, p);
        if queue.first.is_none() {
            array.bitmap &= !(1 << prio);
        }
        self.rt_se[p].on_list = false;
    }

    /// rt.c: inc_rt_tasks(), with inc_rt_prio(), inc_rt_migration() and inc_rt_group().
    #[doc(alias = "inc_rt_prio")]
    #[doc(alias = "inc_rt_prio_smp")]
    #[doc(alias = "inc_rt_migration")]
    #[doc(alias = "inc_rt_group")]
    fn inc_rt_tasks(&mut self, cpu: CpuId, p: TaskId) {
        let (prio, rr) = (self.task[p].prio, self.task[p].policy == Policy::Rr);
        let migratory = self.task[p].nr_cpus_allowed > 1;
        let rt_rq = &mut self.rt[cpu];
        rt_rq.rt_nr_running += 1;
        rt_rq.rr_nr_running = rt_rq.rr_nr_running.wrapping_add(u32::from(rr));
        let prev_prio = rt_rq.highest_prio.curr;
        rt_rq.highest_prio.curr = prev_prio.min(prio);
        rt_rq.rt_nr_total += 1;
        rt_rq.rt_nr_migratory += u32::from(migratory);
        if prio < prev_prio && self.rq[cpu].online {
            self.cpupri_set(cpu, CpuPriority::Queued(prio));
        }
        self.update_rt_migration(cpu);
        self.start_rt_bandwidth();
    }

    /// rt.c: dec_rt_tasks(), with dec_rt_prio(), dec_rt_migration() and dec_rt_group().
    #[doc(alias = "dec_rt_prio")]
    #[doc(alias = "dec_rt_prio_smp")]
    #[doc(alias = "dec_rt_migration")]
    #[doc(alias = "dec_rt_group")]
    fn dec_rt_tasks(&mut self, cpu: CpuId, p: TaskId) {
        let (prio, rr) = (self.task[p].prio, self.task[p].policy == Policy::Rr);
        let migratory = self.task[p].nr_cpus_allowed > 1;
        let rt_rq = &mut self.rt[cpu];
        rt_rq.rt_nr_running -= 1;
        // v4.5 may change a queued task's policy in place, which makes this count wrong; its kernel has no such count, and
        // nothing reads it there.
        rt_rq.rr_nr_running = rt_rq.rr_nr_running.wrapping_sub(u32::from(rr));
        let prev_prio = rt_rq.highest_prio.curr;
        if rt_rq.rt_nr_running == 0 {
            rt_rq.highest_prio.curr = MAX_RT_PRIO;
        } else if prio == prev_prio {
            rt_rq.highest_prio.curr = rt_rq.active.sched_find_first_bit();
        }
        let highest = rt_rq.highest_prio.curr;
        rt_rq.rt_nr_total -= 1;
        rt_rq.rt_nr_migratory -= u32::from(migratory);
        if highest != prev_prio && self.rq[cpu].online {
            self.cpupri_set(cpu, CpuPriority::Queued(highest));
        }
        self.update_rt_migration(cpu);
    }

    /// rt.c: enqueue_top_rt_rq(). Counts the queue's tasks in `rq.nr_running`, unless it is throttled.
    pub(super) fn enqueue_top_rt_rq(&mut self, cpu: CpuId) {
        let rt_rq = &self.rt[cpu];
        if rt_rq.rt_queued || rt_rq.rt_throttled {
            return;
        }
        if rt_rq.rt_nr_running != 0 {
            self.add_nr_running(cpu, rt_rq.rt_nr_running);
            self.rt[cpu].rt_queued = true;
        }
        self.other_class_util_change(cpu, UpdateUtil::Queued, UpdateFlags::NONE);
    }

    /// rt.c: dequeue_top_rt_rq().
    pub(super) fn dequeue_top_rt_rq(&mut self, cpu: CpuId) {
        let rt_rq = &self.rt[cpu];
        if rt_rq.rt_queued {
            self.sub_nr_running(cpu, rt_rq.rt_nr_running);
            self.rt[cpu].rt_queued = false;
        }
    }

    /// rt.c: requeue_task_rt() and requeue_rt_entity().
    #[doc(alias = "requeue_rt_entity")]
    fn requeue_task_rt(&mut self, cpu: CpuId, p: TaskId, head: bool) {
        if !self.on_rt_rq(p) {
            return;
        }
        let queue = &mut self.rt[cpu].active.queue[self.task[p].prio as usize];
        queue.list_del(&mut self.rt_se, p);
        if head {
            queue.list_add(&mut self.rt_se, p);
        } else {
            queue.list_add_tail(&mut self.rt_se, p);
        }
    }

    /// rt.c: yield_task_rt().
    #[fentry]
    pub(crate) fn yield_task_rt(&mut self, cpu: CpuId) {
        let curr = self.rq[cpu].curr.expect("only a task yields");
        self.requeue_task_rt(cpu, curr, false);
    }

    /// rt.c: update_curr_rt(). Charges the time that a real-time task has run to the task, its CPU, and the class's budget.
    #[fentry]
    pub(crate) fn update_curr_rt(&mut self, cpu: CpuId) {
        if self.curr_class(cpu) != SchedClass::Rt {
            return;
        }
        let curr = self.rq[cpu].curr.expect("it is of the real-time class");
        let Some(delta_exec) = self.update_curr_common(cpu, curr, self.kernel.rt.statistics == RtStatistics::Told)
        else {
            return;
        };
        self.other_class_util_change(cpu, UpdateUtil::Runtime, UpdateFlags::RT);
        self.sched_rt_avg_update(cpu, delta_exec);
        self.account_rt_time(cpu, delta_exec);
    }

    /// rt.c: check_preempt_curr_rt() (wakeup_preempt_rt() since v6.6).
    #[doc(alias = "wakeup_preempt_rt")]
    #[fentry]
    pub(crate) fn check_preempt_curr_rt(&mut self, cpu: CpuId, p: TaskId) {
        let (prio, curr_prio) = (self.task[p].prio, self.curr_prio(cpu));
        if prio < curr_prio {
            self.resched_curr(cpu);
        } else if prio == curr_prio && !self.rq[cpu].need_resched {
            self.check_preempt_equal_prio(cpu, p);
        }
    }

    /// rt.c: check_preempt_equal_prio(). The running task makes way for one of equal priority that cannot move elsewhere, if
    /// it can move itself.
    fn check_preempt_equal_prio(&mut self, cpu: CpuId, p: TaskId) {
        let curr = self.rq[cpu].curr.expect("it has a real-time priority");
        if self.task[curr].nr_cpus_allowed == 1 || self.cpupri_find(curr).is_none() {
            return;
        }
        if self.task[p].nr_cpus_allowed != 1 && self.cpupri_find(p).is_some() {
            return;
        }
        self.requeue_task_rt(cpu, p, true);
        self.resched_curr(cpu);
    }

    /// rt.c: pick_task_rt() and _pick_next_task_rt(). Picks the first task of the highest priority.
    #[doc(alias = "_pick_next_task_rt")]
    #[doc(alias = "pick_next_rt_entity")]
    pub(crate) fn pick_task_rt(&mut self, cpu: CpuId) -> Option<TaskId> {
        let rt_rq = &self.rt[cpu];
        if !rt_rq.rt_queued {
            return None;
        }
        let highest = rt_rq.active.sched_find_first_bit();
        let first = rt_rq.active.queue[highest as usize].first.expect("its bit is set");
        Some(TaskId(first))
    }

    /// rt.c: pick_next_task_rt(), until v5.3: if a task of higher priority has left, it first pulls from overloaded CPUs.
    /// Differs: costs nothing if it picks nothing.
    pub(crate) fn pick_next_task_rt(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Pick {
        if self.need_pull_rt_task(cpu, prev) {
            self.pull_rt_task(cpu);
            if self.rq[cpu].stop_queued {
                return Pick::Retry;
            }
        }
        if prev.is_some_and(|p| self.task[p].sched_class == SchedClass::Rt) {
            // This may throttle the queue.
            self.update_curr_rt(cpu);
        }
        if !self.rt[cpu].rt_queued {
            return Pick::Nothing;
        }
        Pick::Task(self.take_next_task_rt(cpu, prev))
    }

    /// The part of pick_next_task_rt() that picks a task.
    #[fentry(pick_next_task_rt)]
    fn take_next_task_rt(&mut self, cpu: CpuId, prev: Option<TaskId>) -> TaskId {
        self.put_prev_task(cpu, prev);
        let p = self.pick_task_rt(cpu).expect("the queue is not empty");
        self.set_next_task_rt(cpu, p, true);
        p
    }

    /// rt.c: set_next_task_rt() (set_curr_task_rt() until v5.3). `first`: the task is about to run, and was not only
    /// changed.
    #[doc(alias = "set_curr_task_rt")]
    pub(crate) fn set_next_task_rt(&mut self, cpu: CpuId, p: TaskId, first: bool) {
        let se = self.task[p].se;
        self.se[se].exec_start = self.rq[cpu].clock_task;
        if self.on_rt_rq(p) {
            self.update_stats_wait_end_rt(p);
        }
        // A running task is not pushed away.
        self.dequeue_pushable_task(cpu, p);
        if !first {
            return;
        }
        if self.curr_class(cpu) != SchedClass::Rt {
            // The time before this was not used by this class.
            self.update_rt_rq_load_avg(cpu, false);
        }
        self.rt_queue_push_tasks(cpu);
    }

    /// rt.c: put_prev_task_rt().
    #[fentry]
    pub(crate) fn put_prev_task_rt(&mut self, cpu: CpuId, p: TaskId) {
        let queued = self.on_rt_rq(p);
        if queued {
            self.update_stats_wait_start_rt(p);
        }
        self.update_curr_rt(cpu);
        self.update_rt_rq_load_avg(cpu, true);
        if queued && self.task[p].nr_cpus_allowed > 1 {
            self.enqueue_pushable_task(cpu, p);
        }
    }

    /// rt.c: task_tick_rt(). A SCHED_RR task whose slice is over goes behind the others of its priority.
    #[fentry]
    pub(crate) fn task_tick_rt(&mut self, cpu: CpuId, p: TaskId) {
        self.update_curr_rt(cpu);
        self.update_rt_rq_load_avg(cpu, true);
        if self.task[p].policy != Policy::Rr {
            return;
        }
        let slice = self.sched_rr_timeslice();
        let time_slice = &mut self.rt_se[p].time_slice;
        // A task that has just got this policy has no slice yet; the kernel gives it a whole one at boot and at fork.
        let left = if *time_slice == 0 { slice } else { *time_slice };
        *time_slice = left - 1;
        if *time_slice > 0 {
            return;
        }
        *time_slice = slice;
        if !self.rt_se[p].run_list.is_singular() {
            self.requeue_task_rt(cpu, p, false);
            self.resched_curr(cpu);
        }
    }

    /// `sched_rr_timeslice`, in ticks.
    fn sched_rr_timeslice(&self) -> u64 {
        (self.sysctl.sched_rr_timeslice * self.hz).div_ceil(1_000)
    }

    /// rt.c: switched_from_rt(). If the last real-time task here changes its class, pulls others.
    pub(crate) fn switched_from_rt(&mut self, cpu: CpuId, p: TaskId) {
        if self.task[p].on_rq == OnRq::Queued && self.rt[cpu].rt_nr_running == 0 {
            self.rt_queue_pull_task(cpu);
        }
    }

    /// rt.c: switched_to_rt().
    /// Differs: v4.5 and v4.15 also make a CPU reschedule that is on its way down.
    pub(crate) fn switched_to_rt(&mut self, cpu: CpuId, p: TaskId) {
        if self.rq[cpu].curr == Some(p) {
            self.update_rt_rq_load_avg(cpu, false);
            return;
        }
        if self.task[p].on_rq != OnRq::Queued {
            return;
        }
        if self.task[p].nr_cpus_allowed > 1 && self.rt[cpu].overloaded {
            self.rt_queue_push_tasks(cpu);
        }
        let preempts = self.kernel.rt.switched_to == RtSwitchedTo::Preempts;
        if preempts && self.task[p].prio < self.curr_prio(cpu) && self.rq[cpu].online {
            self.resched_curr(cpu);
        }
    }

    /// rt.c: prio_changed_rt().
    pub(crate) fn prio_changed_rt(&mut self, cpu: CpuId, p: TaskId, old_prio: i32) {
        if self.task[p].on_rq != OnRq::Queued {
            return;
        }
        let prio = self.task[p].prio;
        if self.rq[cpu].curr != Some(p) {
            if prio < self.curr_prio(cpu) {
                self.resched_curr(cpu);
            }
            return;
        }
        if old_prio < prio {
            self.rt_queue_pull_task(cpu);
        }
        if prio > self.rt[cpu].highest_prio.curr {
            self.resched_curr(cpu);
        }
    }

    /// rt.c: rq_online_rt().
    pub(crate) fn rq_online_rt(&mut self, cpu: CpuId) {
        if self.rt[cpu].overloaded {
            self.rt_set_overload(cpu);
        }
        self.__enable_runtime(cpu);
        self.cpupri_set(cpu, CpuPriority::Queued(self.rt[cpu].highest_prio.curr));
    }

    /// rt.c: rq_offline_rt().
    pub(crate) fn rq_offline_rt(&mut self, cpu: CpuId) {
        if self.rt[cpu].overloaded {
            self.rt_clear_overload(cpu);
        }
        self.__disable_runtime(cpu);
        self.cpupri_set(cpu, CpuPriority::Invalid);
    }

    // Statistics (since v5.16).

    /// The statistics are in a task's fair entity, whatever its class; the queue it would be on says which CPU's clock
    /// counts.
    pub(crate) fn statistics_of(&self, p: TaskId) -> (CfsRqId, SeId) {
        let se = self.task[p].se;
        (self.se[se].cfs_rq, se)
    }

    /// rt.c: update_stats_wait_start_rt().
    fn update_stats_wait_start_rt(&mut self, p: TaskId) {
        if self.kernel.rt.statistics == RtStatistics::Told {
            let (cfs, se) = self.statistics_of(p);
            self.update_stats_wait_start(cfs, se);
        }
    }

    /// rt.c: update_stats_wait_end_rt().
    fn update_stats_wait_end_rt(&mut self, p: TaskId) {
        if self.kernel.rt.statistics == RtStatistics::Told {
            let (cfs, se) = self.statistics_of(p);
            self.update_stats_wait_end(cfs, se);
        }
    }

    /// rt.c: update_stats_enqueue_rt().
    #[doc(alias = "update_stats_enqueue_sleeper_rt")]
    fn update_stats_enqueue_rt(&mut self, p: TaskId, flags: QueueFlags) {
        if self.kernel.rt.statistics == RtStatistics::Told && self.schedstat_enabled() {
            let (cfs, se) = self.statistics_of(p);
            self.update_stats_wait_start(cfs, se);
            if flags.wakeup {
                self.update_stats_enqueue_sleeper(cfs, se);
            }
        }
    }

    /// rt.c: update_stats_dequeue_rt(), and deadline.c: update_stats_dequeue_dl().
    #[doc(alias = "update_stats_dequeue_dl")]
    pub(crate) fn update_stats_dequeue_rt(&mut self, p: TaskId, flags: QueueFlags) {
        if self.kernel.rt.statistics != RtStatistics::Told || !self.schedstat_enabled() {
            return;
        }
        let (cfs, se) = self.statistics_of(p);
        if self.kernel.rt.dequeued_wait == DequeuedWait::Ends && self.rq[self.task[p].cpu].curr != Some(p) {
            self.update_stats_wait_end(cfs, se);
        }
        if flags.sleep {
            self.count_sleep_start(cfs, se, p);
        }
    }
}
