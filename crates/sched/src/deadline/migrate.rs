//! deadline.c: where deadline tasks run: as many of the earliest as there are CPUs, each on its own. A task that cannot run where
//! it is is pushed to a CPU without deadline tasks, or to the one with the latest deadline; a CPU whose deadline tasks leave
//! pulls.

use super::DlRq;
use super::budget::BW_SHIFT;
use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::cpudeadline::dl_time_before;
use crate::deadline::DlSe;
use crate::pelt::SCHED_CAPACITY_SHIFT;
use crate::push_pull::PushClass;
use crate::rt::migrate::OverloadRule;
use crate::sched::*;
use crate::topology::SdFlags;
use fentry::fentry;
use std::cmp::Reverse;
use units::{CpuId, CpuMask, unlikely};

behaviour! {
    /// Which of several CPUs without deadline tasks is taken.
    pub enum LaterChoice = "dl.later_choice" {
        AnyFree = "any-free", since "v3.14", commit "", "the one with the lowest number";
        Nearest = "nearest", since "v4.14", commit "", "one of the smallest domain that has one, as rt.lowest_choice says";
    }
}

behaviour! {
    /// Whether a CPU must have the capacity for a deadline task's budget within its deadline, where CPUs differ in it.
    pub enum DlFit = "dl.fit" {
        Unseen = "unseen", since "v3.14", commit "", "no";
        Density = "density", since "v5.9", commit "b4118988fdcb",
            "of the CPUs without deadline tasks one that has, else the biggest of them; a task that wakes on one that has not goes there";
    }
}

behaviour! {
    /// What a throttled task takes along whose CPU goes offline.
    pub enum OfflineMigration = "dl.offline_migration" {
        Kept = "kept", since "v4.1", commit "", "nothing: its bandwidth stays with the CPU and the root domain that it left";
        /// v4.19.y has it too.
        Moved = "moved", since "v5.4", commit "59d06cea1198", "its bandwidth, on the CPU and in the root domain";
    }
}

impl<A: Arch> Sched<A> {
    pub(super) fn cpudl_set(&mut self, cpu: CpuId, deadline: u64) {
        self.path(Path::cpudl_set);
        self.root_domain_mut(cpu).cpudl.cpudl_set(cpu, deadline);
    }

    pub(super) fn cpudl_clear(&mut self, cpu: CpuId, online: bool) {
        self.root_domain_mut(cpu).cpudl.cpudl_clear(cpu, online);
    }

    /// cpudeadline.c: cpudl_find(). CPUs without deadline tasks, or the CPU with the latest deadline if that is later than the
    /// task's.
    fn cpudl_find(&mut self, p: TaskId) -> Option<CpuMask> {
        self.path(Path::cpudl_find);
        let cpudl = &self.root_domain(self.task[p].cpu).cpudl;
        let free = cpudl.free_cpus.and(&self.task[p].cpus_allowed);
        if !free.is_empty() {
            return Some(if self.dl_heeds_capacity() { self.with_capacity(p, free) } else { free });
        }
        let latest = self.latest_for(p)?;
        Some(CpuMask::single(latest))
    }

    /// The given CPUs that have enough capacity; if none has, the biggest: among equals the one where the task was, then the
    /// first.
    fn with_capacity(&self, p: TaskId, free: CpuMask) -> CpuMask {
        let fitting: CpuMask = free.iter().filter(|&cpu| self.dl_task_fits_capacity(p, cpu)).collect();
        if !fitting.is_empty() {
            return fitting;
        }
        let here = self.task[p].cpu;
        let biggest = free.iter().min_by_key(|&cpu| (Reverse(self.capacity_orig_of(cpu)), cpu != here));
        CpuMask::single(biggest.expect("a CPU is free"))
    }

    /// Whether capacities matter for the choice of a CPU for deadline tasks.
    #[inline]
    fn dl_heeds_capacity(&self) -> bool {
        unlikely(self.domains.sched_asym_cpucapacity) && self.kernel.dl.fit == DlFit::Density
    }

    /// sched.h: dl_task_fits_capacity(). Whether the CPU can provide the task's budget within its deadline.
    #[inline]
    fn dl_task_fits_capacity(&self, p: TaskId, cpu: CpuId) -> bool {
        self.capacity_orig_of(cpu) >= self.dl_se[p].dl_density >> (BW_SHIFT - SCHED_CAPACITY_SHIFT)
    }

    fn latest_for(&self, p: TaskId) -> Option<CpuId> {
        let (cpu, dl) = self.root_domain(self.task[p].cpu).cpudl.latest()?;
        (self.cpumask_test(cpu, p) && dl_time_before(self.dl_se[p].deadline, dl)).then_some(cpu)
    }

    /// `cpudl_find(&rq->rd->cpudl, p, NULL)`: without a mask, CPUs that have no deadline tasks are not considered.
    pub(super) fn cpudl_has_later(&self, p: TaskId) -> bool {
        self.latest_for(p).is_some()
    }

    // Overload.

    /// deadline.c: dl_overloaded().
    fn dl_overloaded(&mut self, cpu: CpuId) -> bool {
        self.root_domain(cpu).dlo.count > 0
    }

    /// deadline.c: dl_set_overload().
    pub(super) fn dl_set_overload(&mut self, cpu: CpuId) {
        self.tell_overloaded(cpu, PushClass::Dl, true);
    }

    /// deadline.c: dl_clear_overload().
    pub(super) fn dl_clear_overload(&mut self, cpu: CpuId) {
        self.tell_overloaded(cpu, PushClass::Dl, false);
    }

    /// deadline.c: update_dl_migration(), until v6.6.
    pub(super) fn update_dl_migration(&mut self, cpu: CpuId) {
        if self.kernel.rt.overload == OverloadRule::Migratory {
            let dl_rq = &self.dl[cpu];
            self.set_overloaded(cpu, PushClass::Dl, dl_rq.dl_nr_migratory > 0 && dl_rq.dl_nr_running > 1);
        }
    }

    /// deadline.c: enqueue_pushable_dl_task().
    pub(super) fn enqueue_pushable_dl_task(&mut self, cpu: CpuId, p: TaskId) {
        let deadline = self.dl_se[p].deadline;
        let special = self.dl_entity_is_special(DlSe::Task(p));
        self.dl_se[p].pushable = true;
        let dl_rq = &mut self.dl[cpu];
        dl_rq.pushable_dl_tasks.insert(deadline, p, |new, other| special || dl_time_before(new, other));
        if dl_rq.pushable_dl_tasks.first().is_some_and(|(_, first)| first == p) {
            dl_rq.earliest_dl.next = deadline;
        }
        if self.kernel.rt.overload == OverloadRule::Pushable {
            self.set_overloaded(cpu, PushClass::Dl, true);
        }
    }

    /// deadline.c: dequeue_pushable_dl_task().
    pub(super) fn dequeue_pushable_dl_task(&mut self, cpu: CpuId, p: TaskId) {
        if !std::mem::take(&mut self.dl_se[p].pushable) {
            return;
        }
        let dl_rq = &mut self.dl[cpu];
        dl_rq.pushable_dl_tasks.remove(p);
        if let Some((deadline, _)) = dl_rq.pushable_dl_tasks.first() {
            dl_rq.earliest_dl.next = deadline;
        } else if self.kernel.rt.overload == OverloadRule::Pushable {
            self.set_overloaded(cpu, PushClass::Dl, false);
        }
    }

    /// deadline.c: deadline_queue_push_tasks() (queue_push_tasks() until v5.17).
    pub(super) fn deadline_queue_push_tasks(&mut self, cpu: CpuId) {
        if self.dl[cpu].has_pushable_dl_tasks() {
            self.rq[cpu].balance_callback.push(BalanceCallback::PushDlTasks);
        }
    }

    /// deadline.c: deadline_queue_pull_task() (queue_pull_task() until v5.17).
    pub(super) fn deadline_queue_pull_task(&mut self, cpu: CpuId) {
        self.rq[cpu].balance_callback.push(BalanceCallback::PullDlTask);
    }

    // Choosing a CPU.

    /// deadline.c: select_task_rq_dl().
    #[fentry]
    pub(crate) fn select_task_rq_dl(&mut self, p: TaskId, cpu: CpuId, sd_flag: SdFlags) -> CpuId {
        if sd_flag != SdFlags::SD_BALANCE_WAKE || self.task[p].nr_cpus_allowed < 2 {
            return cpu;
        }
        self.read_rq_curr(cpu);
        let stays = self.rq[cpu].curr.is_some_and(|curr| {
            let other = &self.task[curr];
            other.sched_class == SchedClass::Dl && (other.nr_cpus_allowed < 2 || !self.dl_entity_preempt(p, curr))
        });
        let too_small = self.dl_heeds_capacity() && !self.dl_task_fits_capacity(p, cpu);
        if (stays || too_small)
            && let Some(target) = self.find_later_rq(p)
            && self.dl_task_is_earliest_deadline(p, target)
        {
            return target;
        }
        cpu
    }

    /// deadline.c: dl_task_is_earliest_deadline().
    fn dl_task_is_earliest_deadline(&self, p: TaskId, cpu: CpuId) -> bool {
        let dl_rq: &DlRq = &self.dl[cpu];
        dl_rq.earliest_dl.curr.is_none_or(|earliest| dl_time_before(self.dl_se[p].deadline, earliest))
    }

    /// deadline.c: find_later_rq().
    #[fentry]
    fn find_later_rq(&mut self, p: TaskId) -> Option<CpuId> {
        if self.task[p].nr_cpus_allowed == 1 {
            return None;
        }
        let later_mask = self.cpudl_find(p)?;
        self.nearest_cpu(p, &later_mask, |sched, later_mask, near| match sched.kernel.dl.later_choice {
            LaterChoice::AnyFree => later_mask.first().filter(|&best| near.contains(best)),
            LaterChoice::Nearest => sched.cpumask_choose(near),
        })
    }

    // Pushing.

    /// deadline.c: find_lock_later_rq(). The queue that it finds is locked.
    /// Differs: nothing happens between finding and locking, so the first attempt counts.
    fn find_lock_later_rq(&mut self, p: TaskId, cpu: CpuId) -> Option<CpuId> {
        let later = self.find_later_rq(p).filter(|&later| later != cpu)?;
        if !self.dl_task_is_earliest_deadline(p, later) {
            return None;
        }
        self.rq_lock(later);
        Some(later)
    }

    /// deadline.c: push_dl_task(). Moves the earliest waiting task of `cpu` to a CPU on which it runs. Returns whether it moved.
    #[fentry]
    pub(super) fn push_dl_task(&mut self, cpu: CpuId) -> bool {
        if !self.dl[cpu].overloaded {
            return false;
        }
        let Some((_, next_task)) = self.dl[cpu].pushable_dl_tasks.first() else { return false };
        debug_assert!(self.rq[cpu].curr != Some(next_task), "what runs is not pushable");
        if let Some(curr) = self.rq[cpu].curr
            && self.task[curr].sched_class == SchedClass::Dl
            && self.task[curr].nr_cpus_allowed > 1
            && self.dl_entity_preempt(next_task, curr)
        {
            self.resched_curr(cpu);
            return false;
        }
        let Some(later) = self.find_lock_later_rq(next_task, cpu) else { return false };
        self.push_to(next_task, cpu, later);
        true
    }

    /// deadline.c: push_dl_tasks(). The queue is locked.
    pub(crate) fn push_dl_tasks(&mut self, cpu: CpuId) {
        while self.push_dl_task(cpu) {}
    }

    /// deadline.c: dl_task_offline_migration(). The task's CPU went offline while the task was throttled. Returns where the task
    /// is now; that queue is locked in place of the old one.
    /// Differs: pressure is counted where the task is now; the kernel's counts stay behind ("psi: task underflow").
    pub(crate) fn dl_task_offline_migration(&mut self, cpu: CpuId, p: TaskId) -> CpuId {
        let to = self.find_lock_later_rq(p, cpu).unwrap_or_else(|| {
            let allowed = self.task[p].cpus_allowed.and(&self.cpu_active_mask);
            let to = allowed.first().or_else(|| self.cpu_active_mask.first()).expect("one CPU is up");
            self.rq_lock(to);
            to
        });
        self.psi_dequeue(p, QueueFlags::default());
        match self.kernel.dl.offline_migration {
            OfflineMigration::Kept => self.set_task_cpu(p, to),
            OfflineMigration::Moved => self.move_with_bandwidth(p, cpu, to),
        }
        self.psi_enqueue(p, QueueFlags { migrated: true, ..QueueFlags::default() });
        self.rq_unlock(cpu);
        self.update_rq_clock(to);
        to
    }

    fn move_with_bandwidth(&mut self, p: TaskId, from: CpuId, to: CpuId) {
        let (se, bw) = (super::DlSe::Task(p), self.dl_se[p].dl_bw);
        self.sub_running_bw(se);
        self.sub_rq_bw(se);
        self.__dl_sub(from, bw);
        self.set_task_cpu(p, to);
        self.__dl_add(to, bw);
        self.add_rq_bw(se);
        self.add_running_bw(se);
    }

    // Pulling.

    /// deadline.c: balance_dl(), since v5.4. Returns whether this class, or one above it, has something to run.
    pub(crate) fn balance_dl(&mut self, cpu: CpuId, prev: Option<TaskId>) -> bool {
        let left = prev.is_some_and(|p| self.task[p].sched_class == SchedClass::Dl && !self.on_dl_rq(p));
        if left && self.rq[cpu].online {
            self.pull_dl_task(cpu);
        }
        self.rq[cpu].stop_queued || self.dl[cpu].dl_nr_running > 0
    }

    /// deadline.c: pull_dl_task(). Pulls tasks that wait elsewhere with an earlier deadline than all here. The queue of
    /// `this_cpu` is locked.
    /// Differs: costs nothing if no CPU is overloaded.
    pub(crate) fn pull_dl_task(&mut self, this_cpu: CpuId) {
        if self.dl_overloaded(this_cpu) {
            self.pull_from_overloaded(this_cpu);
        }
    }

    #[fentry(pull_dl_task)]
    fn pull_from_overloaded(&mut self, this_cpu: CpuId) {
        self.read_root_domain(this_cpu);
        let overloaded = self.root_domain(this_cpu).dlo.mask.clone();
        let worth = |sched: &mut Self, cpu: CpuId| {
            sched.read_rq_dl(cpu);
            let here = sched.dl[this_cpu].earliest_dl.curr;
            here.is_none_or(|here| !dl_time_before(here, sched.dl[cpu].earliest_dl.next))
        };
        self.pull_from(this_cpu, &overloaded, worth, |sched, cpu| sched.pullable_dl_task(cpu, this_cpu));
    }

    /// What pull_dl_task() may take from one CPU: the earliest task that waits there, if it comes before all here.
    fn pullable_dl_task(&self, cpu: CpuId, this_cpu: CpuId) -> Option<TaskId> {
        if self.dl[cpu].dl_nr_running <= 1 {
            return None;
        }
        let p = self.pick_earliest_pushable_dl_task(cpu, this_cpu)?;
        if !self.dl_task_is_earliest_deadline(p, this_cpu) {
            return None;
        }
        // A task that is about to preempt there is left alone.
        let curr = self.rq[cpu].curr.filter(|&curr| self.task[curr].sched_class == SchedClass::Dl);
        let about_to_run = curr.is_some_and(|curr| self.dl_entity_preempt(p, curr));
        (!about_to_run).then_some(p)
    }

    /// deadline.c: pick_earliest_pushable_dl_task().
    fn pick_earliest_pushable_dl_task(&self, from: CpuId, to: CpuId) -> Option<TaskId> {
        let mut waiting = self.dl[from].pushable_dl_tasks.tasks();
        waiting.find(|&p| !self.task[p].on_cpu && self.cpumask_test(to, p))
    }

    /// deadline.c: task_woken_dl().
    pub(crate) fn task_woken_dl(&mut self, cpu: CpuId, p: TaskId) {
        if self.task[p].on_cpu || self.rq[cpu].need_resched || self.task[p].nr_cpus_allowed < 2 {
            return;
        }
        let Some(curr) = self.rq[cpu].curr else { return };
        let dl = self.task[curr].sched_class == SchedClass::Dl;
        if dl && (self.task[curr].nr_cpus_allowed < 2 || !self.dl_entity_preempt(p, curr)) {
            self.push_dl_tasks(cpu);
        }
    }
}
