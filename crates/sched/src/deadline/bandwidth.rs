//! deadline.c: how much deadline tasks may reserve in total, and what happens to what they do not use.
//!
//! Admission: the bandwidths `dl_runtime / dl_period` of a root domain's tasks may add up to `sched_rt_runtime_us / sched_rt_period_us` of each of
//! its CPUs. Reclaiming (GRUB, SCHED_FLAG_RECLAIM): a task's budget falls more slowly while others leave their bandwidth unused; a sleeper's
//! bandwidth counts as used until its 0-lag time, `deadline - runtime * dl_period / dl_runtime`.
//!
//! (Lipari and Baruah, Greedy reclamation of unused bandwidth in constant-bandwidth servers, 2000.)

use super::budget::{BW_SHIFT, DL_SCALE};
use super::{DlSe, SchedDlEntity};
use crate::arch::Arch;
use crate::attr::{SchedAttr, SchedFlags};
use crate::behaviour;
use crate::core::Sched;
use crate::cpufreq::{UpdateFlags, UpdateUtil};
use crate::errno::{Answer, Errno, Refusal};
use crate::hrtimer::SchedTimer;
use crate::rt::bandwidth::RUNTIME_INF;
use crate::sched::*;
use crate::topology::RootDomain;
use fentry::fentry;
use units::{CpuId, CpuMask};

behaviour! {
    /// What is known of bandwidth in use.
    pub enum BandwidthTracking = "dl.tracking" {
        TotalOnly = "total-only", since "v3.14", commit "",
            "what all tasks have reserved; a task that leaves the class or ends gives it back at once";
        Running = "running", since "v4.13", commit "209a0cbda7a0",
            "also, on each CPU, of the tasks that are there and that run or lately did (GRUB); it is given back at the 0-lag time";
    }
}

behaviour! {
    /// What a root domain has to give.
    pub enum Admission = "dl.admission" {
        Cpus = "cpus", since "v3.14", commit "",
            "its CPUs, each alike, but for a new limit of all deadline tasks, which is compared with what is reserved as if it had one CPU";
        CpusForLimit = "cpus-for-limit", since "v5.4.y", commit "", "its CPUs, each alike, for a new limit too (5.4.286, but not 5.4.6)";
        Capacity = "capacity", since "v5.9", commit "60ffd5edc5e4", "their capacities, and for a new limit its CPUs";
    }
}

behaviour! {
    /// What is known of reserved bandwidth once root domains are built anew.
    pub enum RootDomainBandwidth = "dl.rebuild" {
        Lost = "lost", since "v3.14", commit "", "nothing: a new one believes that nothing is reserved";
        Counted = "counted", since "v5.4", commit "f9a25f776d78", "that of all deadline tasks is counted again, and lost to reclaiming tasks as well";
        WithServers = "with-servers", since "v6.17", commit "fcc9276c4d33",
            "that of all deadline tasks but schedutil's, and of the fair servers of active CPUs, and reclaiming tasks have the rest";
    }
}

behaviour! {
    /// What of a CPU is free for reclaiming tasks once the limit of all deadline tasks was written.
    pub enum NewLimit = "dl.new_limit" {
        Forgets = "forgets", since "v4.13", commit "", "all of the limit: what tasks have reserved is forgotten";
        Recounts = "recounts", since "v6.17", commit "440989c10f4e",
            "domains are built anew, which counts again what tasks have reserved";
    }
}

behaviour! {
    /// Which periods are allowed.
    pub enum PeriodLimits = "dl.period_limits" {
        None = "none", since "v3.14", commit "", "all";
        Sysctl = "sysctl", since "v5.9", commit "b4098bfc5efb", "those between sched_deadline_period_min_us and sched_deadline_period_max_us";
    }
}

behaviour! {
    /// What of a CPU a reclaiming task can have at most.
    pub enum Reclaim = "dl.reclaim" {
        OfAll = "of-all", since "v4.13", commit "daec57983670",
            "what is not reserved and not in use, counted from the whole CPU";
        OfDeadlineShare = "of-deadline-share", since "v6.5", commit "6a9d623aad89",
            "the same, counted from the part that deadline tasks may have in all";
    }
}

const BW_UNIT: u64 = 1 << BW_SHIFT;
/// kernel/sched/sched.h: RATIO_SHIFT.
const RATIO_SHIFT: u32 = 8;

/// kernel/sched/core.c: to_ratio(). `runtime / period` out of 2^20.
pub fn to_ratio(period: u64, runtime: u64) -> u64 {
    match (runtime, period) {
        (RUNTIME_INF, _) => BW_UNIT,
        (_, 0) => 0,
        _ => (runtime << BW_SHIFT) / period,
    }
}

const TOO_MUCH: Refusal =
    Refusal::new(Errno::EBUSY, "the deadline tasks of these CPUs have reserved too much for another one like this");

const fn invalid(why: &'static str) -> Answer {
    Err(Refusal::new(Errno::EINVAL, why))
}

/// The answer to a deadline task whose parameters are otherwise sound.
pub const OUTSIDE_LIMITS: &str =
    "the period is not within sched_deadline_period_min_us and sched_deadline_period_max_us";

impl SchedAttr {
    /// deadline.c: __checkparam_dl(), the checks that need only the parameters.
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn __checkparam_dl(&self) -> Answer {
        if self.sched_flags.sugov {
            return Ok(());
        }
        if self.sched_deadline == 0 {
            return invalid("a deadline task needs a deadline");
        }
        if self.sched_runtime < 1 << DL_SCALE {
            return invalid("a deadline task's runtime is at least 1024 ns");
        }
        if (self.sched_deadline | self.sched_period) >> 63 != 0 {
            return invalid("a deadline and a period are below 2^63 ns");
        }
        let period = if self.sched_period == 0 { self.sched_deadline } else { self.sched_period };
        if period < self.sched_deadline {
            return invalid("a deadline is not behind the end of its period");
        }
        if self.sched_deadline < self.sched_runtime {
            return invalid("a runtime fits before its deadline");
        }
        Ok(())
    }
}

impl<A: Arch> Sched<A> {
    /// `dl_b->bw`: what deadline tasks may have of each CPU, out of 2^20; `None` means no limit.
    pub fn dl_bw_limit(&self) -> Option<u64> {
        self.rt_bandwidth_enabled().then(|| to_ratio(self.global_rt_period(), self.global_rt_runtime()))
    }

    /// deadline.c: init_dl_rq_bw_ratio().
    pub(crate) fn init_dl_rq_bw_ratio(&mut self, cpu: CpuId) {
        let limit = self.dl_bw_limit();
        let inverse = to_ratio(self.global_rt_runtime(), self.global_rt_period()) >> (BW_SHIFT - RATIO_SHIFT);
        let dl_rq = &mut self.dl[cpu];
        dl_rq.bw_ratio = if limit.is_some() { inverse } else { 1 << RATIO_SHIFT };
        dl_rq.extra_bw = limit.unwrap_or(BW_UNIT);
        dl_rq.max_bw = dl_rq.extra_bw;
    }

    // Checks of requests.

    /// The part of deadline.c: __checkparam_dl() that checks the tunables, since v5.5.
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn check_dl_period(&self, attr: &SchedAttr) -> Answer {
        if self.kernel.dl.period_limits == PeriodLimits::Sysctl {
            let period = if attr.sched_period == 0 { attr.sched_deadline } else { attr.sched_period };
            let us = |us: u64| us * 1_000;
            if period < us(self.sysctl.sched_dl_period_min) || period > us(self.sysctl.sched_dl_period_max) {
                return invalid(OUTSIDE_LIMITS);
            }
        }
        Ok(())
    }

    /// The part of __sched_setscheduler() that checks the CPUs: a deadline task must be allowed on all CPUs of its root domain.
    ///
    /// # Errors
    /// EPERM.
    pub(crate) fn dl_may_run_on(&self, cpu: CpuId, cpus_allowed: Option<&CpuMask>) -> Answer {
        let Some(bw) = self.dl_bw_limit() else { return Ok(()) };
        let span = &self.root_domain(cpu).span;
        if cpus_allowed.is_some_and(|allowed| !span.is_subset(allowed)) {
            let why = "a deadline task's CPUs are all CPUs of its root domain; take its affinity away";
            return Err(Refusal::new(Errno::EPERM, why));
        }
        if bw == 0 {
            return Err(Refusal::new(Errno::EPERM, "sched_rt_runtime_us is 0: no bandwidth for deadline tasks"));
        }
        Ok(())
    }

    /// syscalls.c: dl_task_check_affinity(). The same check for a new affinity.
    ///
    /// # Errors
    /// EBUSY.
    pub(crate) fn dl_task_check_affinity(&self, p: TaskId, mask: &CpuMask) -> Answer {
        let bound = self.task[p].policy == Policy::Deadline && self.rt_bandwidth_enabled();
        if bound && !self.root_domain(self.task[p].cpu).span.is_subset(mask) {
            return Err(Refusal::new(Errno::EBUSY, "a deadline task's CPUs are all CPUs of its root domain"));
        }
        Ok(())
    }

    /// The answer of sched_dl_overflow() for a new task on `cpu`.
    ///
    /// # Errors
    /// EBUSY.
    pub(crate) fn dl_new_task_fits(&self, cpu: CpuId, attr: &SchedAttr) -> Answer {
        let period = if attr.sched_period == 0 { attr.sched_deadline } else { attr.sched_period };
        match self.__dl_overflow(cpu, 0, to_ratio(period, attr.sched_runtime)) {
            true if !attr.sched_flags.sugov => Err(TOO_MUCH),
            _ => Ok(()),
        }
    }

    /// deadline.c: dl_param_changed().
    pub(crate) fn dl_param_changed(&self, p: TaskId, attr: &SchedAttr) -> bool {
        let se = &self.dl_se[p];
        (se.dl_runtime, se.dl_deadline, se.dl_period) != (attr.sched_runtime, attr.sched_deadline, attr.sched_period)
            || se.flags.reclaim != attr.sched_flags.reclaim
    }

    /// deadline.c: __setparam_dl().
    pub(crate) fn __setparam_dl(&mut self, p: TaskId, attr: &SchedAttr) {
        let se = &mut self.dl_se[p];
        se.dl_runtime = attr.sched_runtime;
        se.dl_deadline = attr.sched_deadline;
        se.dl_period = if attr.sched_period == 0 { attr.sched_deadline } else { attr.sched_period };
        se.flags = attr.sched_flags;
        se.dl_bw = to_ratio(se.dl_period, se.dl_runtime);
        se.dl_density = to_ratio(se.dl_deadline, se.dl_runtime);
    }

    /// deadline.c: __getparam_dl(). The attributes of a deadline task besides those that all tasks have.
    pub(crate) fn __getparam_dl(&self, p: TaskId, attr: SchedAttr) -> SchedAttr {
        let se = &self.dl_se[p];
        SchedAttr {
            sched_flags: SchedFlags { reclaim: se.flags.reclaim, ..attr.sched_flags },
            sched_runtime: se.dl_runtime,
            sched_deadline: se.dl_deadline,
            sched_period: se.dl_period,
            ..attr
        }
    }

    // Admission.

    /// deadline.c: dl_bw_cpus(). The online CPUs in the root domain of `cpu`.
    fn dl_bw_cpus(&self, cpu: CpuId) -> u64 {
        self.root_domain(cpu).span.and(&self.cpu_active_mask).weight() as u64
    }

    /// deadline.c: dl_bw_capacity(). 1024 is a whole CPU.
    fn dl_bw_capacity(&self, cpu: CpuId) -> u64 {
        self.capacity_for_dl(&self.root_domain(cpu).span.and(&self.cpu_active_mask))
    }

    pub(super) fn capacity_for_dl(&self, cpus: &CpuMask) -> u64 {
        match self.kernel.dl.admission {
            Admission::Cpus | Admission::CpusForLimit => cpus.weight() as u64 * 1024,
            Admission::Capacity => cpus.iter().map(|cpu| u64::from(self.topology.capacity[cpu])).sum(),
        }
    }

    /// deadline.c: __dl_overflow().
    fn __dl_overflow(&self, cpu: CpuId, old_bw: u64, new_bw: u64) -> bool {
        let total = self.root_domain(cpu).total_bw.wrapping_sub(old_bw).wrapping_add(new_bw);
        self.dl_bw_limit().is_some_and(|bw| (bw * self.dl_bw_capacity(cpu)) >> 10 < total)
    }

    /// deadline.c: __dl_add().
    pub(super) fn __dl_add(&mut self, cpu: CpuId, bw: u64) {
        let total_bw = &mut self.root_domain_mut(cpu).total_bw;
        *total_bw = total_bw.wrapping_add(bw);
        self.__dl_update(cpu, -(bw as i64));
    }

    /// deadline.c: __dl_sub() (__dl_clear() until v4.13).
    #[doc(alias = "__dl_clear")]
    pub(super) fn __dl_sub(&mut self, cpu: CpuId, bw: u64) {
        let total_bw = &mut self.root_domain_mut(cpu).total_bw;
        *total_bw = total_bw.wrapping_sub(bw);
        self.__dl_update(cpu, bw as i64);
    }

    /// deadline.c: __dl_update(). Updates what is not reserved, on each CPU.
    fn __dl_update(&mut self, cpu: CpuId, bw: i64) {
        if self.kernel.dl.tracking == BandwidthTracking::TotalOnly {
            return;
        }
        let each = bw / self.dl_bw_cpus(cpu).max(1) as i64;
        let up = self.root_domain(cpu).span.and(&self.cpu_active_mask);
        for cpu in up.iter() {
            let extra_bw = &mut self.dl[cpu].extra_bw;
            *extra_bw = extra_bw.wrapping_add_signed(each);
        }
    }

    /// deadline.c: sched_dl_overflow() (dl_overflow() until v4.12). A task enters the class, changes in it, or leaves it.
    ///
    /// # Errors
    /// EBUSY when the root domain's CPUs cannot give so much.
    #[doc(alias = "dl_overflow")]
    pub(crate) fn sched_dl_overflow(&mut self, p: TaskId, attr: &SchedAttr) -> Answer {
        self.dl_se.ensure(p);
        if attr.sched_flags.sugov {
            return Ok(());
        }
        let period = if attr.sched_period == 0 { attr.sched_deadline } else { attr.sched_period };
        let comes = attr.sched_policy == Policy::Deadline;
        let new_bw = if comes { to_ratio(period, attr.sched_runtime) } else { 0 };
        let was = self.task[p].policy == Policy::Deadline;
        let (cpu, old_bw) = (self.task[p].cpu, self.dl_se[p].dl_bw);
        let tracked = self.kernel.dl.tracking == BandwidthTracking::Running;
        // Until v4.7 this also holds for a task that left the class and returns with the same bandwidth, before that was given back.
        if new_bw == old_bw && (was || !tracked) {
            return Ok(());
        }
        if !comes {
            if !tracked {
                self.__dl_sub(cpu, old_bw);
            }
            return Ok(());
        }
        if self.__dl_overflow(cpu, if was { old_bw } else { 0 }, new_bw) {
            return Err(TOO_MUCH);
        }
        // A task that left the class and returns before its 0-lag time still counts.
        if was || self.hrtimers.is_queued(SchedTimer::DlInactive(p)) {
            self.__dl_sub(cpu, old_bw);
        }
        self.__dl_add(cpu, new_bw);
        if was && tracked {
            self.dl_change_utilization(p, new_bw);
        }
        Ok(())
    }

    /// deadline.c: dl_change_utilization().
    fn dl_change_utilization(&mut self, p: TaskId, new_bw: u64) {
        if self.task[p].on_rq == OnRq::Queued {
            return;
        }
        let (cpu, se) = (self.task[p].cpu, DlSe::Task(p));
        self.stop_contending(se);
        let dl_rq = &mut self.dl[cpu];
        dl_rq.this_bw = dl_rq.this_bw.saturating_sub(self.dl_se[p].dl_bw) + new_bw;
    }

    /// A sleeper's bandwidth no longer counts as used, although its 0-lag time has not come.
    fn stop_contending(&mut self, se: DlSe) {
        if self.dl_entity(se).dl_non_contending {
            self.sub_running_bw(se);
            self.dl_mut(se).dl_non_contending = false;
            self.cancel_inactive_timer(se);
        }
    }

    /// deadline.c: task_dead_dl(), until v4.12. The task's bandwidth is free at once.
    pub(crate) fn task_dead_dl(&mut self, p: TaskId) {
        if self.kernel.dl.tracking == BandwidthTracking::TotalOnly {
            self.__dl_sub(self.task[p].cpu, self.dl_se[p].dl_bw);
        }
    }

    /// deadline.c: dl_cpuset_cpumask_can_shrink(). Whether `trial` could provide what the deadline tasks of `cur` have reserved.
    pub(crate) fn dl_cpuset_cpumask_can_shrink(&self, cur: &CpuMask, trial: &CpuMask) -> bool {
        let Some(cpu) = cur.first() else { return true };
        let total = self.root_domain(cpu).total_bw;
        let stay = trial.and(&self.cpu_active_mask);
        self.dl_bw_limit().is_none_or(|bw| (bw * self.capacity_for_dl(&stay)) >> 10 >= total)
    }

    /// deadline.c: set_cpus_allowed_dl(). A task whose new CPUs are all in another root domain leaves this one's account. (It may only have other
    /// CPUs than all of its root domain while no bandwidth is enforced.)
    pub(crate) fn set_cpus_allowed_dl(&mut self, p: TaskId, new_mask: &CpuMask) {
        let cpu = self.task[p].cpu;
        if !self.root_domain(cpu).span.intersects(new_mask) {
            self.__dl_sub(cpu, self.dl_se[p].dl_bw);
        }
    }

    // Root domains that are rebuilt.

    /// deadline.c: dl_clear_root_domain(). A root domain that stays is counted anew.
    pub(crate) fn dl_clear_root_domain(&self, rd: &mut RootDomain) {
        if self.kernel.dl.rebuild != RootDomainBandwidth::Lost {
            rd.total_bw = 0;
        }
    }

    /// deadline.c: __dl_server_attach_root(). A CPU has been attached to another root domain.
    /// Differs: all its CPUs are attached at once.
    #[doc(alias = "__dl_server_attach_root")]
    pub(crate) fn dl_server_attach_root(&mut self, cpu: CpuId) {
        if self.has_fair_server() && self.dl_bw_cpus(cpu) > 0 {
            let bw = self.dl[cpu].fair_server.dl_bw;
            self.__dl_add(cpu, bw);
        }
    }

    /// deadline.c: dl_add_task_root_domain(), for all tasks (cpuset.c: rebuild_root_domains()).
    #[doc(alias = "dl_add_task_root_domain")]
    pub(crate) fn dl_rebuild_root_domains(&mut self) {
        let rule = self.kernel.dl.rebuild;
        match rule {
            RootDomainBandwidth::Lost => return,
            RootDomainBandwidth::Counted => {}
            RootDomainBandwidth::WithServers => self.dl_count_servers(),
        }
        let of_class = |task: &TaskStruct| task.alive && task.sched_class == SchedClass::Dl;
        let tasks: Vec<TaskId> = self.task.iter().filter(|(_, task)| of_class(task)).map(|(p, _)| p).collect();
        for p in tasks {
            if rule == RootDomainBandwidth::Counted || !self.dl_entity_is_special(DlSe::Task(p)) {
                self.__dl_add(self.task[p].cpu, self.dl_se[p].dl_bw);
            }
        }
    }

    /// deadline.c: dl_clear_root_domain(), since v6.18, for all root domains: resets the reservations to those of the servers.
    #[doc(alias = "dl_clear_root_domain_cpu")]
    #[doc(alias = "dl_server_add_bw")]
    fn dl_count_servers(&mut self) {
        let all = self.dl_bw_limit().unwrap_or(BW_UNIT);
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            self.root_domain_mut(cpu).total_bw = 0;
            self.dl[cpu].extra_bw = all;
        }
        for cpu in self.cpu_active_mask.clone().iter() {
            self.dl_server_attach_root(cpu);
        }
    }

    /// Reserves a server's bandwidth without an admission check.
    pub(super) fn reserve_for_server(&mut self, cpu: CpuId, bw: u64) {
        self.dl[cpu].this_bw += bw;
        self.__dl_add(cpu, bw);
    }

    // Bandwidth in use (since v4.13).

    fn tracks(&self) -> bool {
        self.kernel.dl.tracking == BandwidthTracking::Running
    }

    /// deadline.c: add_running_bw().
    #[doc(alias = "__add_running_bw")]
    pub(super) fn add_running_bw(&mut self, se: DlSe) {
        if self.tracks() && !self.dl_entity_is_special(se) {
            let (cpu, bw) = (self.rq_of_dl_se(se), self.dl_entity(se).dl_bw);
            self.dl[cpu].running_bw += bw;
            self.other_class_util_change(cpu, UpdateUtil::Bandwidth, UpdateFlags::DL);
        }
    }

    /// deadline.c: sub_running_bw().
    #[doc(alias = "__sub_running_bw")]
    pub(super) fn sub_running_bw(&mut self, se: DlSe) {
        if self.tracks() && !self.dl_entity_is_special(se) {
            let (cpu, bw) = (self.rq_of_dl_se(se), self.dl_entity(se).dl_bw);
            let running_bw = &mut self.dl[cpu].running_bw;
            *running_bw = running_bw.saturating_sub(bw);
            self.other_class_util_change(cpu, UpdateUtil::Bandwidth, UpdateFlags::DL);
        }
    }

    /// deadline.c: add_rq_bw().
    #[doc(alias = "__add_rq_bw")]
    pub(super) fn add_rq_bw(&mut self, se: DlSe) {
        if self.tracks() && !self.dl_entity_is_special(se) {
            let (cpu, bw) = (self.rq_of_dl_se(se), self.dl_entity(se).dl_bw);
            self.dl[cpu].this_bw += bw;
        }
    }

    /// deadline.c: sub_rq_bw().
    #[doc(alias = "__sub_rq_bw")]
    pub(super) fn sub_rq_bw(&mut self, se: DlSe) {
        if self.tracks() && !self.dl_entity_is_special(se) {
            let (cpu, bw) = (self.rq_of_dl_se(se), self.dl_entity(se).dl_bw);
            let this_bw = &mut self.dl[cpu].this_bw;
            *this_bw = this_bw.saturating_sub(bw);
        }
    }

    /// deadline.c: grub_reclaim(). What `delta` ns cost a reclaiming task.
    pub(super) fn grub_reclaim(&self, cpu: CpuId, p: TaskId, delta: u64) -> u64 {
        let (dl_rq, dl_bw) = (&self.dl[cpu], self.dl_se[p].dl_bw);
        // Where sums were clamped at 0 (__sub_rq_bw), this may wrap, as it does in the kernel.
        let u_inact = dl_rq.this_bw.wrapping_sub(dl_rq.running_bw);
        let used = u_inact.wrapping_add(dl_rq.extra_bw);
        let (most, least) = match self.kernel.dl.reclaim {
            Reclaim::OfAll => (BW_UNIT, (dl_bw * dl_rq.bw_ratio) >> RATIO_SHIFT),
            Reclaim::OfDeadlineShare => (dl_rq.max_bw, dl_bw),
        };
        let u_act = if used > most.wrapping_sub(least) { least } else { most.wrapping_sub(used) };
        let u_act = match self.kernel.dl.reclaim {
            Reclaim::OfAll => u_act,
            Reclaim::OfDeadlineShare => u_act.wrapping_mul(dl_rq.bw_ratio) >> RATIO_SHIFT,
        };
        delta.wrapping_mul(u_act) >> BW_SHIFT
    }

    /// deadline.c: task_contending(). A woken task's bandwidth is in use again.
    pub(super) fn task_contending(&mut self, se: DlSe, flags: QueueFlags) {
        if !self.tracks() || self.dl_entity(se).dl_runtime == 0 {
            return;
        }
        if flags.migrated {
            self.add_rq_bw(se);
        }
        if self.dl_entity(se).dl_non_contending {
            self.dl_mut(se).dl_non_contending = false;
            self.cancel_inactive_timer(se);
        } else {
            self.add_running_bw(se);
        }
    }

    /// deadline.c: task_non_contending(). A sleeper's bandwidth counts as used until its 0-lag time. `dl_task`: the task stays in the class (before
    /// v7.2 the task itself is checked).
    pub(super) fn task_non_contending(&mut self, se: DlSe, dl_task: bool) {
        if !self.tracks() || self.dl_entity(se).dl_runtime == 0 || self.dl_entity_is_special(se) {
            return;
        }
        let clock = self.rq[self.rq_of_dl_se(se)].clock;
        let SchedDlEntity { deadline, runtime, dl_period, dl_runtime, .. } = *self.dl_entity(se);
        let lag = runtime.wrapping_mul(dl_period as i64) / dl_runtime as i64;
        let zerolag_time = (deadline.wrapping_sub(clock) as i64).wrapping_sub(lag);
        let timer = Self::inactive_timer(se);
        if zerolag_time < 0 || self.hrtimers.is_queued(timer) {
            return self.inactive_at_once(se, dl_task);
        }
        self.dl_mut(se).dl_non_contending = true;
        let now = self.arch.sched_clock(self.this_cpu).0;
        self.hrtimer_start(self.this_cpu, timer, now + zerolag_time as u64);
    }

    /// The part of task_non_contending() for a 0-lag time that is already over.
    fn inactive_at_once(&mut self, se: DlSe, dl_task: bool) {
        let DlSe::Task(p) = se else { return self.sub_running_bw(se) };
        let dead = self.task[p].state == TaskState::Dead;
        if dl_task {
            self.sub_running_bw(se);
        }
        if !dl_task || dead {
            if dead {
                self.sub_rq_bw(se);
            }
            self.__dl_sub(self.task[p].cpu, self.dl_se[p].dl_bw);
            self.dl_se[p].__dl_clear_params();
        }
    }

    fn inactive_timer(se: DlSe) -> SchedTimer {
        match se {
            DlSe::Task(p) => SchedTimer::DlInactive(p),
            DlSe::FairServer(cpu) => SchedTimer::DlServerInactive(cpu),
        }
    }

    pub(super) fn cancel_inactive_timer(&mut self, se: DlSe) {
        self.hrtimer_cancel(Self::inactive_timer(se));
    }

    /// deadline.c: inactive_task_timer(). The 0-lag time of a sleeper has come.
    #[fentry]
    pub(crate) fn inactive_task_timer(&mut self, p: TaskId) {
        let (cpu, se) = (self.task[p].cpu, DlSe::Task(p));
        self.pi_lock(p);
        self.rq_lock(cpu);
        let dead = self.task[p].state == TaskState::Dead;
        if self.task[p].sched_class != SchedClass::Dl || dead {
            if dead && self.dl_se[p].dl_non_contending {
                self.sub_running_bw(se);
                self.sub_rq_bw(se);
            }
            self.__dl_sub(cpu, self.dl_se[p].dl_bw);
            self.dl_se[p].__dl_clear_params();
        } else if self.dl_se[p].dl_non_contending {
            self.update_rq_clock(cpu);
            self.sub_running_bw(se);
            self.dl_se[p].dl_non_contending = false;
        }
        self.rq_unlock(cpu);
        self.pi_unlock(p);
        if dead {
            self.free_task_struct(p);
        }
    }

    /// Whether a dead task's bandwidth still counts: its slot is not reused until it does not.
    pub(crate) fn dl_outlives(&self, p: TaskId) -> bool {
        self.hrtimers.is_queued(SchedTimer::DlInactive(p))
    }

    /// deadline.c: migrate_task_rq_dl(), since v4.13. A woken task moves to another CPU and takes its bandwidth along.
    pub(crate) fn migrate_task_rq_dl(&mut self, p: TaskId) {
        if !self.tracks() || self.task[p].state != TaskState::Waking {
            return;
        }
        let (cpu, se) = (self.task[p].cpu, DlSe::Task(p));
        self.rq_lock(cpu);
        self.stop_contending(se);
        self.sub_rq_bw(se);
        self.rq_unlock(cpu);
    }
}
