//! core.c: CPU hotplug, and the partitions within which CPUs are balanced.
//!
//! A CPU that goes down first becomes *inactive*: no task is placed on it or brought to it. Then its tasks leave, in one of two
//! ways ([`Hotplug`]); once it has none left and goes idle, it is offline. Domains are rebuilt without it at the beginning or at
//! the end ([`HotplugDomains`]). A CPU that comes up is online and active at once, and looks for work like a CPU that is about to
//! idle.
//! ```text
//! cpu_down     sched_cpu_deactivate: inactive; domains are rebuilt, or a worker is told to
//!              on the CPU itself: migrate_tasks (its stopper), or balance_push (each time that it schedules)
//!              sched_cpu_dying: it is idle, and goes offline; the worker rebuilds domains
//! cpu_up       sched_cpu_activate: active; domains are rebuilt, by a worker or at once; bound kernel threads return
//! ```
//!
//! What the rest of the kernel does meanwhile (parking threads, waiting for grace periods, stopping the other CPUs) takes no time
//! here.

use super::Sched;
use crate::arch::Arch;
use crate::behaviour;
use crate::errno::{Answer, Errno, Refusal};
use crate::features::Feature;
use crate::sched::*;
use crate::stop_task::StopWork;
use crate::topology::{DomainSetup, RdId, RootDomain};
use units::{CpuId, CpuMask};

behaviour! {
    /// How tasks leave a CPU that goes down.
    pub enum Hotplug = "core.hotplug" {
        StopMachine = "stop-machine", since "v2.6.38", commit "",
            "all at once, in the order in which they would run, while every CPU stands still";
        BalancePush = "balance-push", since "v5.11", commit "1cf12e08bc4d",
            "each as it is switched to, pushed by the stopper";
    }
}

behaviour! {
    /// When domains are built anew for a CPU that goes or comes.
    pub enum HotplugDomains = "core.hotplug_domains" {
        Fallback = "fallback", since "v3.9", commit "",
            "at once, as if there were no partitions; those come back when the CPU is gone or there";
        Afterwards = "afterwards", since "v4.14", commit "50e76632339d", "when it is gone or there, by a worker";
        AtOnce = "at-once", since "v6.10", commit "2125c0034c5d", "as it stops being active, or becomes it";
    }
}

behaviour! {
    /// When the queue of a CPU that goes down is offline (`rq->online`), if no change of its root domain makes it so earlier.
    pub enum RqOffline = "core.rq_offline" {
        Dying = "dying", since "v2.6.27", commit "", "when the CPU is no longer online, before its tasks leave";
        Inactive = "inactive", since "v5.11", commit "120455c514f7", "when it is no longer active";
    }
}

/// How far a CPU is on its way down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum HotplugState {
    #[default]
    Up,
    /// No longer active, but its stopper has not run yet.
    Inactive,
    /// Every task that it switches to is pushed away, or (until v5.10) all tasks have been.
    Dying,
    Offline,
}

impl HotplugState {
    /// `cpu_online(cpu)`
    #[inline]
    pub fn is_online(self) -> bool {
        self != HotplugState::Offline
    }

    /// `cpu_active(cpu)`
    #[inline]
    pub fn is_active(self) -> bool {
        self == HotplugState::Up
    }

    /// `cpu_dying(cpu)`
    #[inline]
    pub fn is_dying(self) -> bool {
        matches!(self, HotplugState::Inactive | HotplugState::Dying)
    }
}

impl<A: Arch> Sched<A> {
    /// What sched_cpu_activate() and build_sched_domains() set up on a machine whose CPUs are all up.
    pub(super) fn init_hotplug(&mut self) {
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            let siblings = &self.topology.smt[cpu];
            self.sched_smt_present += u32::from(siblings.weight() > 1 && siblings.first() == Some(cpu));
        }
        self.attach_root_domains(&[]);
    }

    /// `cpu_rq(cpu)->rd`
    #[inline]
    pub fn root_domain(&self, cpu: CpuId) -> &RootDomain {
        &self.root_domains[self.rq[cpu].rd.index()]
    }

    #[inline]
    pub(crate) fn root_domain_mut(&mut self, cpu: CpuId) -> &mut RootDomain {
        &mut self.root_domains[self.rq[cpu].rd.index()]
    }

    /// sched.h: sched_smt_active(). Whether some core has more than one thread online.
    #[inline]
    pub(crate) fn sched_smt_active(&self) -> bool {
        self.sched_smt_present > 0
    }

    // Down.

    /// kernel/cpu.c: _cpu_down(), the scheduler's part. It begins here and ends in [`Sched::schedule`] on that CPU.
    ///
    /// # Errors
    /// EBUSY for the last CPU and for one whose deadline tasks do not fit on the others, EINVAL for a CPU that does not exist. A
    /// CPU that is down or on its way down is left as it is.
    pub(crate) fn cpu_down(&mut self, cpu: CpuId) -> Answer {
        self.check_cpu(cpu)?;
        if !self.rq[cpu].hotplug.is_active() {
            return Ok(());
        }
        if self.cpu_active_mask.weight() == 1 {
            return Err(Refusal::new(Errno::EBUSY, "it is the last CPU that is up"));
        }
        if self.keeps_time(cpu) {
            return Err(Refusal::new(Errno::EBUSY, "it keeps the time for the CPUs of nohz_full="));
        }
        self.dl_bw_check_overflow(cpu)?;
        self.release_per_cpu_kthreads(cpu);
        self.sched_cpu_deactivate(cpu);
        match self.kernel.core.hotplug {
            Hotplug::StopMachine => self.stop_one_cpu(cpu, StopWork::TakeCpuDown),
            Hotplug::BalancePush => {
                // The hotplug thread of that CPU runs there next.
                self.rq[cpu].hotplug = HotplugState::Dying;
                self.rq_lock(cpu);
                self.resched_curr(cpu);
                self.rq_unlock(cpu);
            }
        }
        Ok(())
    }

    fn check_cpu(&self, cpu: CpuId) -> Answer {
        if cpu.index() < self.nr_cpus() {
            Ok(())
        } else {
            Err(Refusal::new(Errno::EINVAL, "the machine has no such CPU"))
        }
    }

    /// core.c: sched_cpu_deactivate().
    fn sched_cpu_deactivate(&mut self, cpu: CpuId) {
        self.nohz_balance_exit_idle(cpu);
        self.rq[cpu].hotplug = HotplugState::Inactive;
        self.cpu_active_mask.clear(cpu);
        self.domains.sched_domains_free_llc_id(cpu);
        let last_sibling = self.nr_active_siblings(cpu) == 1;
        self.sched_smt_present -= u32::from(last_sibling);
        if self.kernel.core.rq_offline == RqOffline::Inactive {
            self.rq_lock(cpu);
            self.update_rq_clock(cpu);
            self.set_rq_offline(cpu);
            self.rq_unlock(cpu);
        }
        self.cpuset_update_active_cpus();
    }

    /// How many threads of the CPU's core are active, without itself.
    fn nr_active_siblings(&self, cpu: CpuId) -> usize {
        self.topology.smt[cpu].iter().filter(|&other| other != cpu && self.cpu_active_mask.contains(other)).count()
    }

    /// core.c: set_rq_offline().
    fn set_rq_offline(&mut self, cpu: CpuId) {
        if !self.rq[cpu].online {
            return;
        }
        self.class_rq_offline(cpu);
        self.root_domain_mut(cpu).online.clear(cpu);
        self.rq[cpu].online = false;
    }

    /// core.c: set_rq_online().
    pub(super) fn set_rq_online(&mut self, cpu: CpuId) {
        if self.rq[cpu].online {
            return;
        }
        self.root_domain_mut(cpu).online.set(cpu);
        self.rq[cpu].online = true;
        self.class_rq_online(cpu);
    }

    /// kernel/cpu.c: take_cpu_down(), on the stopper of the CPU that goes down. First pending wakeups are finished there, then
    /// all tasks leave.
    pub(crate) fn take_cpu_down(&mut self, cpu: CpuId) {
        if self.rq[cpu].hotplug != HotplugState::Inactive {
            return;
        }
        // __cpu_disable()
        self.cpu_online_mask.clear(cpu);
        self.sched_ttwu_pending();
        self.set_dying_rq_offline(cpu);
        self.migrate_tasks(cpu);
        self.rq[cpu].hotplug = HotplugState::Dying;
    }

    /// What sched_cpu_dying() did until v5.10 to a queue that is still online.
    fn set_dying_rq_offline(&mut self, cpu: CpuId) {
        if !self.rq[cpu].online {
            return;
        }
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        self.set_rq_offline(cpu);
        self.rq_unlock(cpu);
    }

    /// core.c: migrate_tasks(), until v5.10. Moves the tasks in the order in which they would run.
    fn migrate_tasks(&mut self, cpu: CpuId) {
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        // The stopper itself runs, and must not be picked.
        let stopper = std::mem::take(&mut self.rq[cpu].stop_queued);
        while self.rq[cpu].nr_running > u32::from(stopper) {
            // A waiting deadline server stops when it is asked for a task.
            let Some(next) = self.pick_next_task(cpu, None) else { break };
            self.put_prev_task(cpu, Some(next));
            self.rq_unlock(cpu);
            let dest = self.select_fallback_rq(cpu, next);
            self.move_queued_task(next, dest);
            self.rq_lock(cpu);
        }
        self.rq[cpu].stop_queued = stopper;
        self.rq_unlock(cpu);
    }

    /// The end of `__schedule()` on a CPU that goes down: pushes away the task it switched to or, once idle, takes the CPU
    /// offline.
    pub(super) fn schedule_on_dying_cpu(&mut self, cpu: CpuId) {
        if self.rq[cpu].hotplug != HotplugState::Dying {
            return;
        }
        match self.rq[cpu].curr {
            Some(p) => self.balance_push(cpu, p),
            None => self.sched_cpu_dying(cpu),
        }
    }

    /// core.c: balance_push(). Makes the stopper move the task that was just switched to.
    fn balance_push(&mut self, cpu: CpuId, push_task: TaskId) {
        let stays = self.task[push_task].sched_class == SchedClass::Stop || self.kthread_is_per_cpu(push_task);
        if !stays {
            self.stop_one_cpu(cpu, StopWork::BalancePush(push_task));
        }
    }

    /// core.c: __balance_push_cpu_stop().
    pub(crate) fn __balance_push_cpu_stop(&mut self, p: TaskId) {
        let here = self.this_cpu;
        let task = &self.task[p];
        if task.alive && task.cpu == here && task.on_rq == OnRq::Queued {
            let dest = self.select_fallback_rq(here, p);
            self.move_queued_task(p, dest);
        }
    }

    /// core.c: sched_cpu_dying(). The CPU is idle. Unless a wakeup still arrived, it is offline from now on.
    fn sched_cpu_dying(&mut self, cpu: CpuId) {
        self.sched_ttwu_pending();
        if self.rq[cpu].nr_running > 0 {
            self.resched_curr(cpu);
            return;
        }
        self.dl_server_stop(cpu);
        self.rq[cpu].hotplug = HotplugState::Offline;
        self.cpu_online_mask.clear(cpu);
        self.set_dying_rq_offline(cpu);
        self.update_max_interval();
        self.nohz_balance_exit_idle(cpu);
        let to = self.cpu_active_mask.first().expect("one CPU stays up");
        self.hrtimers_cpu_dying(cpu, to);
        self.cpuset_hotplug_workfn();
    }

    // Up.

    /// kernel/cpu.c: _cpu_up(), the scheduler's part.
    ///
    /// # Errors
    /// EINVAL for a CPU that does not exist, EBUSY for one that is still on its way down. A CPU that is up is left as it is.
    pub(crate) fn cpu_up(&mut self, cpu: CpuId) -> Answer {
        self.check_cpu(cpu)?;
        match self.rq[cpu].hotplug {
            HotplugState::Up => return Ok(()),
            HotplugState::Inactive | HotplugState::Dying => {
                return Err(Refusal::new(Errno::EBUSY, "it is still on its way down"));
            }
            HotplugState::Offline => {}
        }
        self.rq[cpu].hotplug = HotplugState::Up;
        self.cpu_online_mask.set(cpu);
        self.update_max_interval();
        self.sched_cpu_activate(cpu);
        self.cpuset_hotplug_workfn();
        self.bind_per_cpu_kthreads(cpu);
        // Its hotplug thread has run there.
        self.rq_lock(cpu);
        self.resched_curr(cpu);
        self.rq_unlock(cpu);
        Ok(())
    }

    /// core.c: sched_cpu_activate().
    fn sched_cpu_activate(&mut self, cpu: CpuId) {
        let second_sibling = self.nr_active_siblings(cpu) == 1;
        self.sched_smt_present += u32::from(second_sibling);
        self.cpu_active_mask.set(cpu);
        self.cpuset_update_active_cpus();
        self.rq_lock(cpu);
        self.set_rq_online(cpu);
        self.rq_unlock(cpu);
    }

    /// Unbinds the kernel threads of a CPU that goes down: workers are no longer bound (workqueue.c: unbind_workers()), other
    /// threads are parked, which amounts to the same here.
    fn release_per_cpu_kthreads(&mut self, cpu: CpuId) {
        for p in self.kthreads_of(|sched, p| sched.kthread_is_per_cpu(p) && sched.cpumask_test(cpu, p)) {
            self.task_cold[p].bound_to = Some(cpu);
            let possible = CpuMask::all(self.nr_cpus());
            self.do_set_cpus_allowed(p, possible);
        }
    }

    /// workqueue.c: rebind_workers(). They return with their CPU.
    #[doc(alias = "rebind_workers")]
    fn bind_per_cpu_kthreads(&mut self, cpu: CpuId) {
        for p in self.kthreads_of(|sched, p| sched.task_cold[p].bound_to == Some(cpu)) {
            self.task_cold[p].bound_to = None;
            self.set_cpus_allowed_ptr(p, CpuMask::single(cpu)).expect("the CPU is up");
        }
    }

    fn kthreads_of(&self, which: impl Fn(&Self, TaskId) -> bool) -> Vec<TaskId> {
        let alive = self.task.iter().filter(|(_, task)| task.alive && task.sched_class != SchedClass::Stop);
        alive.map(|(p, _)| p).filter(|&p| which(self, p)).collect()
    }

    // Partitions.

    /// cpuset.c: exclusive partitions. The CPUs of each balance among themselves; CPUs in none of them form one more. Tasks keep
    /// their affinity, which their cpuset would restrict.
    ///
    /// # Errors
    /// EINVAL if a partition is empty, names a CPU that does not exist, or shares one with another; EBUSY if it would shrink
    /// below what its deadline tasks have reserved.
    pub(crate) fn set_partitions(&mut self, partitions: &[CpuMask]) -> Answer {
        let possible = CpuMask::all(self.nr_cpus());
        let mut taken = CpuMask::new(self.nr_cpus());
        for partition in partitions {
            if partition.is_empty() || !partition.is_subset(&possible) {
                return Err(Refusal::new(Errno::EINVAL, "a partition has CPUs, and only such as the machine has"));
            }
            if partition.intersects(&taken) {
                return Err(Refusal::new(Errno::EINVAL, "no CPU belongs to two partitions"));
            }
            taken.or_with(partition);
        }
        // cpuset.c: cpuset_cpumask_can_shrink().
        let shrinks = |cur: &&CpuMask| partitions.iter().find(|trial| *trial != *cur && trial.is_subset(cur));
        let too_small =
            |cur: &CpuMask| shrinks(&cur).is_some_and(|trial| !self.dl_cpuset_cpumask_can_shrink(cur, trial));
        if self.partitions.iter().any(too_small) {
            return Err(Refusal::new(
                Errno::EBUSY,
                "deadline tasks have reserved more than the smaller partition can give",
            ));
        }
        self.partitions = partitions.to_vec();
        self.rebuild_sched_domains();
        Ok(())
    }

    /// cpuset.c: cpuset_update_active_cpus(). The part of a rebuild that happens at once when a CPU is about to go, or has come.
    fn cpuset_update_active_cpus(&mut self) {
        match self.kernel.core.hotplug_domains {
            // partition_sched_domains(1, NULL, NULL)
            HotplugDomains::Fallback => self.partition_sched_domains(self.generate_sched_domains(&[])),
            HotplugDomains::Afterwards => {}
            HotplugDomains::AtOnce => self.rebuild_sched_domains(),
        }
    }

    /// cpuset.c: cpuset_hotplug_workfn(), until v6.9. The CPU has gone or come, so domains can be rebuilt now.
    /// Differs: the worker takes no time, and runs as soon as it can.
    fn cpuset_hotplug_workfn(&mut self) {
        if self.kernel.core.hotplug_domains != HotplugDomains::AtOnce {
            self.rebuild_sched_domains();
        }
    }

    /// cpuset.c: generate_sched_domains(). The active, not isolated CPUs of each partition, and of the rest of the machine.
    fn generate_sched_domains(&self, partitions: &[CpuMask]) -> Vec<CpuMask> {
        let balanced = |cpu: &CpuId| self.cpu_active_mask.contains(*cpu) && !self.isolated.contains(*cpu);
        let rest = |cpu: &CpuId| !partitions.iter().any(|partition| partition.contains(*cpu));
        let rest: CpuMask = (0..self.nr_cpus()).map(CpuId::new).filter(rest).filter(balanced).collect();
        let parts = partitions.iter().map(|partition| partition.iter().filter(balanced).collect());
        std::iter::once(rest).chain(parts).filter(|map: &CpuMask| !map.is_empty()).collect()
    }

    /// cpuset.c: rebuild_sched_domains(). Rebuilds domains and root domains from the CPUs that are active now.
    pub(crate) fn rebuild_sched_domains(&mut self) {
        self.partition_sched_domains(self.generate_sched_domains(&self.partitions));
    }

    /// Builds the domains of these parts of the machine, and what depends on them.
    fn partition_sched_domains(&mut self, doms_new: Vec<CpuMask>) {
        let setup = DomainSetup {
            // A CPU on its way down is still online.
            online: self.cpu_online_mask.clone(),
            jiffies: self.jiffies(),
            hz: self.hz as u32,
            force_sd_overlap: self.features.sched_feat(Feature::FORCE_SD_OVERLAP),
            parameters: self.domain_parameters,
            arch_asym_cpu_priority: self.sched_core_priority.clone().filter(|_| self.sysctl.sched_itmt_enabled != 0),
            cpu_capacity: units::PerCpu::from_fn(self.nr_cpus(), |cpu| self.rq[cpu].cpu_capacity),
            cpu_capacity_orig: units::PerCpu::from_fn(self.nr_cpus(), |cpu| self.rq[cpu].cpu_capacity_orig),
            ..DomainSetup::boot(&self.topology)
        };
        let kept = std::mem::take(&mut self.domains.doms_cur);
        self.domains.doms_cur = kept.clone();
        self.domains = self.domains.partition_sched_domains(&self.topology, &doms_new, &setup);
        for map in doms_new.iter().filter(|map| !kept.contains(map)) {
            for cpu in map.iter() {
                self.rq[cpu].cpu_capacity = self.domains.cpu_capacity[cpu];
                self.rq[cpu].cpu_capacity_orig = self.domains.cpu_capacity_orig[cpu];
            }
        }
        self.attach_root_domains(&kept);
        self.sched_cache_set(&kept);
    }

    /// topology.c: rq_attach_root(), for all CPUs: each goes to the root domain of its partition, CPUs without domains to one of
    /// their own. A partition among the `kept` ones keeps its root domain, and its queues notice nothing.
    #[doc(alias = "rq_attach_root")]
    fn attach_root_domains(&mut self, kept: &[CpuMask]) {
        let mut spans = self.domains.doms_cur.clone();
        let balanced = self.domains.span.clone();
        let without: CpuMask = (0..self.nr_cpus()).map(CpuId::new).filter(|&cpu| !balanced.contains(cpu)).collect();
        let staying: Vec<CpuMask> = kept.iter().filter(|map| spans.contains(map)).chain([&without]).cloned().collect();
        if !without.is_empty() {
            spans.push(without);
        }
        let stays = |rd: &RootDomain| staying.contains(&rd.span);
        let leaving =
            self.root_domains.iter().filter(|rd| !stays(rd)).flat_map(|rd| rd.span.iter()).collect::<Vec<_>>();
        for &cpu in &leaving {
            self.set_rq_offline(cpu);
        }
        let mut before = std::mem::take(&mut self.root_domains);
        before.retain(stays);
        for (number, span) in spans.into_iter().enumerate() {
            let known = before.iter_mut().find(|rd| rd.span == span).map(std::mem::take);
            let mut rd = known.unwrap_or_default();
            self.dl_clear_root_domain(&mut rd);
            let capacities = span.iter().map(|cpu| self.rq[cpu].cpu_capacity_orig);
            rd.max_cpu_capacity = capacities.max().unwrap_or(0);
            for cpu in span.iter() {
                self.rq[cpu].rd = RdId(number as u32);
                self.rq[cpu].sd = self.domains.sd[cpu];
            }
            rd.span = span;
            self.root_domains.push(rd);
        }
        for cpu in leaving {
            if self.cpu_active_mask.contains(cpu) {
                self.set_rq_online(cpu);
            }
            self.dl_server_attach_root(cpu);
        }
        self.dl_rebuild_root_domains();
        self.build_perf_domains();
    }
}
