//! rt.c: where real-time tasks run: as many of the highest as there are CPUs, each on its own. A task that cannot run where
//! it is is pushed to the CPU with the lowest priority; a CPU whose priority falls pulls tasks that wait elsewhere.

use super::{RtRq, RtTask};
use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::{ClampId, Sched};
use crate::cpupri::CpuPriority;
use crate::features::Feature;
use crate::push_pull::PushClass;
use crate::sched::*;
use crate::topology::{RdId, SdFlags};
use fentry::fentry;
use units::{CpuId, CpuMask, unlikely};

behaviour! {
    /// With RT_PUSH_IPI: how a CPU whose priority fell asks the others to push.
    pub enum PushIpi = "rt.push_ipi" {
        ByAsker = "by-asker", since "v4.1", commit "b6366f048e0c",
            "an interrupt of its own goes round all of them, and each pushes one task";
        ByRootDomain = "by-root-domain", since "v4.15", commit "4bdced5c9a29",
            "one interrupt at a time goes round for everybody, and each CPU pushes what it can";
        NotToSelf = "not-to-self", since "v7.0", commit "94894c9c477e",
            "the same, but no CPU interrupts itself; also in late releases of v5.10.y and v6.1.y";
    }
}

behaviour! {
    /// When a CPU counts as having real-time tasks to give.
    pub enum OverloadRule = "rt.overload" {
        Migratory = "migratory", since "v2.6.25", commit "",
            "it has two of them, and one may run elsewhere, be it the running one";
        Pushable = "pushable", since "v6.7", commit "612f769edd06", "one waits that may run elsewhere";
    }
}

behaviour! {
    /// Which of several CPUs of the lowest priority is taken.
    pub enum LowestChoice = "rt.lowest_choice" {
        First = "first", since "v2.6.25", commit "", "the one with the lowest number";
        Distributed = "distributed", since "v5.11", commit "14e292f8d453", "the next after the one that was chosen last";
    }
}

behaviour! {
    /// Whether a CPU must have the capacity that a real-time task asks for, where CPUs differ in it.
    pub enum RtFit = "rt.fit" {
        Unseen = "unseen", since "v2.6.25", commit "", "no";
        LowerClamp = "lower-clamp", since "v5.6", commit "804d402fb6f6",
            "if one can be had that runs something lower: as much as its lower clamp, which is all of the biggest CPU's unless set";
    }
}

impl<A: Arch> Sched<A> {
    pub(crate) fn cpupri_set(&mut self, cpu: CpuId, priority: CpuPriority) {
        self.path(Path::cpupri_set);
        self.atomic_cpupri();
        self.root_domain_mut(cpu).cpupri.cpupri_set(cpu, priority);
    }

    pub(super) fn cpupri_find(&mut self, p: TaskId) -> Option<CpuMask> {
        self.path(Path::cpupri_find);
        self.read_cpupri();
        let cpupri = &self.root_domain(self.task[p].cpu).cpupri;
        cpupri.cpupri_find(self.task[p].prio, &self.task[p].cpus_allowed)
    }

    /// cpupri.c: cpupri_find_fitness(), among the CPUs that have the capacity.
    fn cpupri_find_fitness(&mut self, p: TaskId) -> Option<CpuMask> {
        self.path(Path::cpupri_find);
        self.read_cpupri();
        let cpupri = &self.root_domain(self.task[p].cpu).cpupri;
        let allowed = &self.task[p].cpus_allowed;
        cpupri.cpupri_find_fitness(self.task[p].prio, allowed, |cpu| self.rt_task_fits_capacity(p, cpu))
    }

    /// Whether capacities matter for the choice of a CPU for real-time tasks.
    #[inline]
    fn rt_heeds_capacity(&self) -> bool {
        unlikely(self.domains.sched_asym_cpucapacity) && self.kernel.rt.fit == RtFit::LowerClamp
    }

    /// rt.c: rt_task_fits_capacity(). Whether the CPU has the capacity that the task's lower clamp asks for.
    #[inline]
    fn rt_task_fits_capacity(&self, p: TaskId, cpu: CpuId) -> bool {
        if !self.rt_heeds_capacity() {
            return true;
        }
        let [min, max] = ClampId::BOTH.map(|clamp| self.uclamp_eff_value(p, clamp));
        self.capacity_orig_of(cpu) >= min.min(max)
    }

    // Overload: which CPUs have tasks to give away.

    /// rt.c: rt_overloaded().
    fn rt_overloaded(&mut self, cpu: CpuId) -> u32 {
        self.read_root_domain(cpu);
        self.root_domain(cpu).rto.count
    }

    /// rt.c: rt_set_overload().
    pub(super) fn rt_set_overload(&mut self, cpu: CpuId) {
        self.tell_overloaded(cpu, PushClass::Rt, true);
    }

    /// rt.c: rt_clear_overload().
    pub(super) fn rt_clear_overload(&mut self, cpu: CpuId) {
        self.tell_overloaded(cpu, PushClass::Rt, false);
    }

    /// rt.c: update_rt_migration(), until v6.6.
    pub(super) fn update_rt_migration(&mut self, cpu: CpuId) {
        if self.kernel.rt.overload == OverloadRule::Migratory {
            let rt_rq = &self.rt[cpu];
            self.set_overloaded(cpu, PushClass::Rt, rt_rq.rt_nr_migratory > 0 && rt_rq.rt_nr_total > 1);
        }
    }

    /// rt.c: enqueue_pushable_task().
    pub(super) fn enqueue_pushable_task(&mut self, cpu: CpuId, p: TaskId) {
        let prio = self.task[p].prio;
        let pushable = &mut self.rt[cpu].pushable_tasks;
        pushable.remove(p);
        pushable.insert(prio, p, |a, b| a < b);
        let next = &mut self.rt[cpu].highest_prio.next;
        *next = prio.min(*next);
        if self.kernel.rt.overload == OverloadRule::Pushable {
            self.set_overloaded(cpu, PushClass::Rt, true);
        }
    }

    /// rt.c: dequeue_pushable_task().
    pub(super) fn dequeue_pushable_task(&mut self, cpu: CpuId, p: TaskId) {
        let rt_rq = &mut self.rt[cpu];
        rt_rq.pushable_tasks.remove(p);
        rt_rq.highest_prio.next = rt_rq.pushable_tasks.first().map_or(MAX_RT_PRIO, |(prio, _)| prio);
        if rt_rq.pushable_tasks.is_empty() && self.kernel.rt.overload == OverloadRule::Pushable {
            self.set_overloaded(cpu, PushClass::Rt, false);
        }
    }

    /// rt.c: rt_queue_push_tasks() (queue_push_tasks() until v5.17).
    #[doc(alias = "queue_push_tasks")]
    pub(super) fn rt_queue_push_tasks(&mut self, cpu: CpuId) {
        if self.rt[cpu].has_pushable_tasks() {
            self.rq[cpu].balance_callback.push(BalanceCallback::PushRtTasks);
        }
    }

    /// rt.c: rt_queue_pull_task() (queue_pull_task() until v5.17).
    #[doc(alias = "queue_pull_task")]
    pub(super) fn rt_queue_pull_task(&mut self, cpu: CpuId) {
        self.rq[cpu].balance_callback.push(BalanceCallback::PullRtTask);
    }

    // Choosing a CPU.

    /// rt.c: select_task_rq_rt(). A task that would not run at once where it is, or whose CPU is too small for it, looks for
    /// a CPU of lower priority.
    #[fentry]
    pub(crate) fn select_task_rq_rt(&mut self, p: TaskId, cpu: CpuId, sd_flag: SdFlags) -> CpuId {
        if sd_flag != SdFlags::SD_BALANCE_WAKE && sd_flag != SdFlags::SD_BALANCE_FORK {
            return cpu;
        }
        self.read_rq_curr(cpu);
        let prio = self.task[p].prio;
        let stays = self.rq[cpu].curr.is_some_and(|curr| {
            let curr = &self.task[curr];
            self.rt_task(curr) && (curr.nr_cpus_allowed < 2 || curr.prio <= prio)
        });
        if (stays || !self.rt_task_fits_capacity(p, cpu))
            && let Some(target) = self.find_lowest_rq(p)
            && (stays || self.rt_task_fits_capacity(p, target))
            && prio < self.rt[target].highest_prio.curr
        {
            return target;
        }
        cpu
    }

    /// include/linux/sched/rt.h: rt_task().
    pub(crate) fn rt_task(&self, task: &TaskStruct) -> bool {
        match self.kernel.rt.task {
            RtTask::Counts => task.prio < MAX_RT_PRIO,
            RtTask::Apart => (MAX_DL_PRIO..MAX_RT_PRIO).contains(&task.prio),
        }
    }

    /// rt.c: find_lowest_rq(). Of the CPUs with the lowest priority, the one nearest to where the task was.
    #[fentry]
    fn find_lowest_rq(&mut self, p: TaskId) -> Option<CpuId> {
        if self.task[p].nr_cpus_allowed == 1 {
            return None;
        }
        let lowest_mask = if self.rt_heeds_capacity() { self.cpupri_find_fitness(p)? } else { self.cpupri_find(p)? };
        self.nearest_cpu(p, &lowest_mask, |sched, _, near| sched.cpumask_choose(near))
    }

    // Pushing.

    /// rt.c: find_lock_lowest_rq(). The queue that it finds is locked.
    /// Differs: nothing happens between finding and locking, so the first attempt counts.
    fn find_lock_lowest_rq(&mut self, p: TaskId, cpu: CpuId) -> Option<CpuId> {
        let lowest = self.find_lowest_rq(p).filter(|&lowest| lowest != cpu)?;
        if self.rt[lowest].highest_prio.curr <= self.task[p].prio {
            return None;
        }
        self.rq_lock(lowest);
        Some(lowest)
    }

    /// rt.c: push_rt_task(). Moves the highest waiting task of `cpu` to a CPU on which it runs. Returns whether it moved.
    #[fentry]
    fn push_rt_task(&mut self, cpu: CpuId) -> bool {
        let rt_rq: &RtRq = &self.rt[cpu];
        if !rt_rq.overloaded {
            return false;
        }
        let Some((prio, next_task)) = rt_rq.pushable_tasks.first() else { return false };
        debug_assert!(self.rq[cpu].curr != Some(next_task), "what runs is not pushable");
        if prio < self.curr_prio(cpu) {
            self.resched_curr(cpu);
            return false;
        }
        let Some(lowest) = self.find_lock_lowest_rq(next_task, cpu) else { return false };
        self.push_to(next_task, cpu, lowest);
        true
    }

    /// rt.c: push_rt_tasks(). The queue is locked.
    pub(crate) fn push_rt_tasks(&mut self, cpu: CpuId) {
        while self.push_rt_task(cpu) {}
    }

    // Pulling.

    /// rt.c: need_pull_rt_task(). Whether this CPU's priority falls, because the previous task was above all that are
    /// queued; and whether any CPU has tasks to give away, which pull_rt_task() checks first.
    pub(super) fn need_pull_rt_task(&self, cpu: CpuId, prev: Option<TaskId>) -> bool {
        let prev_prio = prev.map_or(MAX_PRIO, |p| self.task[p].prio);
        self.root_domain(cpu).rto.count > 0 && self.rq[cpu].online && self.rt[cpu].highest_prio.curr > prev_prio
    }

    /// rt.c: balance_rt(), since v5.4. Returns whether this class, or one above it, has something to run.
    pub(crate) fn balance_rt(&mut self, cpu: CpuId, prev: Option<TaskId>) -> bool {
        if prev.is_none_or(|p| !self.on_rt_rq(p)) && self.need_pull_rt_task(cpu, prev) {
            self.pull_rt_task(cpu);
        }
        self.rq[cpu].stop_queued || self.rt[cpu].rt_queued
    }

    /// rt.c: pull_rt_task(). Pulls tasks that wait elsewhere and are above everything here. The queue of `this_cpu` is
    /// locked.
    #[fentry]
    pub(crate) fn pull_rt_task(&mut self, this_cpu: CpuId) {
        let overloaded = self.rt_overloaded(this_cpu);
        if overloaded == 0 {
            return;
        }
        let alone = overloaded == 1 && self.root_domain(this_cpu).rto.mask.contains(this_cpu);
        if alone && self.kernel.rt.push_ipi != PushIpi::ByAsker {
            return;
        }
        if self.sched_feat(Feature::RT_PUSH_IPI) {
            return self.tell_cpu_to_push(this_cpu);
        }
        let overloaded = self.root_domain(this_cpu).rto.mask.clone();
        let worth = |sched: &mut Self, cpu: CpuId| {
            sched.read_rq_rt(cpu);
            sched.rt[cpu].highest_prio.next < sched.rt[this_cpu].highest_prio.curr
        };
        self.pull_from(this_cpu, &overloaded, worth, |sched, cpu| {
            let p = sched.pick_highest_pushable_task(cpu, this_cpu)?;
            let prio = sched.task[p].prio;
            // A task that is about to preempt there is left alone.
            (prio < sched.rt[this_cpu].highest_prio.curr && prio >= sched.curr_prio(cpu)).then_some(p)
        });
    }

    /// rt.c: pick_highest_pushable_task(). The highest of the tasks that wait on `from` and may run on `to`.
    fn pick_highest_pushable_task(&self, from: CpuId, to: CpuId) -> Option<TaskId> {
        let mut waiting = self.rt[from].pushable_tasks.tasks();
        waiting.find(|&p| !self.task[p].on_cpu && self.cpumask_test(to, p))
    }

    /// rt.c: task_woken_rt(). Pushes a task that will not run here soon to a CPU on which it will.
    pub(crate) fn task_woken_rt(&mut self, cpu: CpuId, p: TaskId) {
        if self.task[p].on_cpu || self.rq[cpu].need_resched || self.task[p].nr_cpus_allowed < 2 {
            return;
        }
        let Some(curr) = self.rq[cpu].curr else { return };
        let curr = &self.task[curr];
        let above = curr.prio < MAX_RT_PRIO && (curr.nr_cpus_allowed < 2 || curr.prio <= self.task[p].prio);
        if above {
            self.push_rt_tasks(cpu);
        }
    }

    // RT_PUSH_IPI: overloaded CPUs are asked to push; the pulling CPU does not take their locks.

    /// rt.c: tell_cpu_to_push().
    /// Differs: uses the reschedule interrupt, which takes as long as the one of function calls.
    fn tell_cpu_to_push(&mut self, cpu: CpuId) {
        if self.kernel.rt.push_ipi == PushIpi::ByAsker {
            return self.tell_cpu_to_push_for(cpu);
        }
        self.write_root_domain(cpu);
        let rd = self.rq[cpu].rd;
        self.root_domains[rd.index()].rto_loop_next += 1;
        if self.root_domains[rd.index()].rto_cpu.is_none()
            && let Some(first) = self.rto_next_cpu(rd)
        {
            self.irq_work_queue_on(first, IrqWork::RtoPush);
        }
    }

    /// rt.c: rto_next_cpu(), since v4.15. The next CPU to be asked; `None` once all have been and no new request came
    /// meanwhile.
    fn rto_next_cpu(&mut self, rd: RdId) -> Option<CpuId> {
        let rd = &mut self.root_domains[rd.index()];
        loop {
            let from = rd.rto_cpu.map_or(0, |cpu| cpu.index() + 1);
            rd.rto_cpu = rd.rto.mask.next_from(from);
            if let Some(cpu) = rd.rto_cpu {
                if cpu == self.this_cpu && self.kernel.rt.push_ipi == PushIpi::NotToSelf {
                    continue;
                }
                return Some(cpu);
            }
            if rd.rto_loop == rd.rto_loop_next {
                return None;
            }
            rd.rto_loop = rd.rto_loop_next;
        }
    }

    /// rt.c: rto_push_irq_work_func(), since v4.15. A CPU that has moved to another root domain meanwhile asks no CPU there.
    pub(crate) fn rto_push_irq_work_func(&mut self) {
        let cpu = self.this_cpu;
        if self.rt[cpu].has_pushable_tasks() {
            self.rq_lock(cpu);
            self.push_rt_tasks(cpu);
            self.rq_unlock(cpu);
        }
        self.write_root_domain(cpu);
        let rd = self.rq[cpu].rd;
        if self.root_domain(cpu).rto_cpu == Some(cpu)
            && let Some(next) = self.rto_next_cpu(rd)
        {
            self.irq_work_queue_on(next, IrqWork::RtoPush);
        }
    }

    /// rt.c: tell_cpu_to_push() until v4.14.
    fn tell_cpu_to_push_for(&mut self, cpu: CpuId) {
        if self.rt[cpu].push_executing {
            self.rt[cpu].push_restart = true;
            return;
        }
        self.rt[cpu].push_cpu = cpu;
        if let Some(next) = self.find_next_push_cpu(cpu) {
            self.rt[cpu].push_executing = true;
            self.irq_work_queue_on(next, IrqWork::PushFor(cpu));
        }
    }

    /// rt.c: find_next_push_cpu() and rto_next_cpu() until v4.14: the search starts after the asking CPU and ends before it.
    fn find_next_push_cpu(&mut self, asker: CpuId) -> Option<CpuId> {
        loop {
            let prev = self.rt[asker].push_cpu;
            let rto_mask = &self.root_domain(asker).rto.mask;
            let mut next = rto_mask.next_from(prev.index() + 1);
            if prev < asker {
                next = next.filter(|&cpu| cpu < asker);
            } else if next.is_none() {
                next = rto_mask.first().filter(|&cpu| cpu < asker);
            }
            let cpu = next?;
            self.rt[asker].push_cpu = cpu;
            if self.rt[cpu].highest_prio.next < self.rt[asker].highest_prio.curr {
                return Some(cpu);
            }
        }
    }

    /// rt.c: try_to_push_tasks(), until v4.14, on behalf of `asker`.
    pub(crate) fn try_to_push_tasks(&mut self, asker: CpuId) {
        let cpu = self.this_cpu;
        loop {
            if self.rt[cpu].has_pushable_tasks() {
                self.rq_lock(cpu);
                self.push_rt_task(cpu);
                self.rq_unlock(cpu);
            }
            if std::mem::take(&mut self.rt[asker].push_restart) {
                self.rt[asker].push_cpu = asker;
            }
            match self.find_next_push_cpu(asker) {
                None => {
                    self.rt[asker].push_executing = false;
                    return;
                }
                // After a restart, the search has come round to this CPU again.
                Some(next) if next == cpu => {}
                Some(next) => return self.irq_work_queue_on(next, IrqWork::PushFor(asker)),
            }
        }
    }
}
