//! kernel/sched/isolation.c, and the part of kernel/time/tick-sched.c that concerns the scheduler: `nohz_full=` CPUs, on which a
//! single task runs without a tick, and housekeeping CPUs, which do for them what every CPU otherwise does itself.
//!
//! ```text
//! a second task comes    sched_update_tick_dependency: the CPU is interrupted, and ticks again
//! the interrupt ends     tick_nohz_full_update_tick: stops the tick, or restarts it
//! once a second          the CPU itself (until v4.16), or sched_tick_remote on a housekeeping CPU
//! ```
//!
//! Absent: dependencies of POSIX CPU timers, perf events and RCU; isolcpus=nohz without the rest of nohz_full=.

use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::features::Feature;
use crate::hrtimer::SchedTimer;
use crate::sched::{Policy, SchedClass, TaskId};
use crate::trace::Ipi;
use units::{CpuId, CpuMask, Ns, PerCpu, unlikely};

behaviour! {
    /// What needs the tick of a CPU that could run without.
    pub enum CanStopTick = "tick.can_stop" {
        ByPolicy = "by-policy", since "v3.18", commit "",
            "a second task, unless what runs is SCHED_FIFO, or SCHED_RR alone at its priority; looked at when an interrupt ends";
        ByClasses = "by-classes", since "v4.6", commit "76d92ac305f2",
            "a deadline task, a second SCHED_RR one, or without real-time tasks a second one; a dependency that is kept";
        OrBandwidth = "or-bandwidth", since "v6.6", commit "88c56cfeaec4",
            "the same, and a single task whose group has a quota, unless HZ_BW is off";
        AndBandwidth = "and-bandwidth", since "v6.12", commit "a58501fb8320",
            "the same, whatever the features, and fair tasks counted alone";
    }
}

behaviour! {
    /// Who looks after a queue that runs without a tick.
    pub enum ResidualTick = "tick.residual" {
        Local = "local", since "v3.10", commit "", "the CPU itself: it is never without a tick for more than a second";
        Remote = "remote", since "v4.17", commit "d84b31313ef8", "a housekeeping CPU does its tick once a second (sched_tick_remote)";
    }
}

behaviour! {
    /// Which CPUs are in the mask of those that idle without ticks.
    pub enum StoppedTick = "tick.stopped" {
        Balanced = "balanced", since "v3.10", commit "", "all whose tick has been stopped, busy ones of nohz_full= with them";
        IdleFirst = "idle-first", since "v4.13", commit "a0db971e4eb6",
            "those whose tick was stopped while they idled, so not those of nohz_full= that ran without one before";
    }
}

behaviour! {
    /// What a CPU of nohz_full= does with its tick when it leaves the idle loop.
    pub enum IdleExit = "tick.idle_exit" {
        Restarts = "restarts", since "v3.10", commit "", "it restarts, and is stopped at the first interrupt's end";
        StaysStopped = "stays-stopped", since "v5.14", commit "a5183862e76f", "it stays stopped for a single task";
    }
}

behaviour! {
    /// Where the timers of nohz_full= CPUs go.
    pub enum TimerTarget = "tick.timer_target" {
        First = "first", since "v4.3", commit "9642d18eee2c", "to the first housekeeping CPU: the search for a busy one asks about the wrong CPU";
        Busy = "busy", since "v4.7", commit "444969223c81", "to the nearest housekeeping CPU that is busy, else the first";
    }
}

behaviour! {
    /// Which housekeeping CPU it is where any will do.
    pub enum AnyHousekeeper = "tick.any_housekeeper" {
        First = "first", since "v4.3", commit "9642d18eee2c", "the first that is up";
        Nearest = "nearest", since "v5.4", commit "", "the first on the nearest node that has one (after v4.19, by v5.4)";
        NearestInTurn = "nearest-in-turn", since "v6.16", commit "6432e163ba1b",
            "of those on the nearest node the next after the one that was chosen last";
    }
}

behaviour! {
    /// Where kernel threads that nobody binds may run.
    pub enum KthreadCpus = "tick.kthreads" {
        All = "all", since "v2.6.0", commit "", "everywhere";
        Housekeeping = "housekeeping", since "v5.9", commit "9cc5b8656892", "on housekeeping CPUs";
        Balanced = "balanced", since "v7.0", commit "",
            "on CPUs that load is balanced between: those of nohz_full=, but not those of isolcpus=";
    }
}

behaviour! {
    /// Who balances for CPUs that idle without ticks.
    pub enum IlbCpus = "tick.ilb" {
        All = "all", since "v2.6.21", commit "", "any of them";
        /// v4.19.y has it too.
        Housekeeping = "housekeeping", since "v5.2", commit "9b019acb72e4", "housekeeping ones";
    }
}

behaviour! {
    /// Which masks isolcpus= and nohz_full= set.
    pub enum BootMasks = "tick.boot_masks" {
        Apart = "apart", since "v3.10", commit "", "one each; isolcpus= takes a list of CPUs alone";
        One = "one", since "v4.15", commit "", "the same one, so that both must say the same; isolcpus= takes flags (after v4.5, by v4.15)";
        ByPurpose = "by-purpose", since "v5.18", commit "ed3b362d54f0", "one for each purpose";
    }
}

/// How isolated CPUs are treated in one kernel version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IsolationRules {
    pub can_stop: CanStopTick,
    pub residual: ResidualTick,
    pub stopped: StoppedTick,
    pub idle_exit: IdleExit,
    pub timer_target: TimerTarget,
    pub any_housekeeper: AnyHousekeeper,
    pub kthreads: KthreadCpus,
    pub ilb: IlbCpus,
    pub boot_masks: BootMasks,
}

impl IsolationRules {
    pub const V4_5: IsolationRules = IsolationRules {
        can_stop: CanStopTick::ByPolicy,
        residual: ResidualTick::Local,
        stopped: StoppedTick::Balanced,
        idle_exit: IdleExit::Restarts,
        timer_target: TimerTarget::First,
        any_housekeeper: AnyHousekeeper::First,
        kthreads: KthreadCpus::All,
        ilb: IlbCpus::All,
        boot_masks: BootMasks::Apart,
    };

    pub const V4_15: IsolationRules = IsolationRules {
        can_stop: CanStopTick::ByClasses,
        stopped: StoppedTick::IdleFirst,
        timer_target: TimerTarget::Busy,
        boot_masks: BootMasks::One,
        ..IsolationRules::V4_5
    };

    /// As in 4.19.108, which is newer in `ilb` than v4.19 itself.
    pub const V4_19: IsolationRules =
        IsolationRules { residual: ResidualTick::Remote, ilb: IlbCpus::Housekeeping, ..IsolationRules::V4_15 };

    pub const V5_4: IsolationRules =
        IsolationRules { any_housekeeper: AnyHousekeeper::Nearest, ..IsolationRules::V4_19 };

    pub const V5_10: IsolationRules = IsolationRules { kthreads: KthreadCpus::Housekeeping, ..IsolationRules::V5_4 };

    pub const V5_15: IsolationRules = IsolationRules { idle_exit: IdleExit::StaysStopped, ..IsolationRules::V5_10 };

    pub const V6_1: IsolationRules = IsolationRules { boot_masks: BootMasks::ByPurpose, ..IsolationRules::V5_15 };

    pub const V6_6: IsolationRules = IsolationRules { can_stop: CanStopTick::OrBandwidth, ..IsolationRules::V6_1 };

    pub const V6_12: IsolationRules = IsolationRules { can_stop: CanStopTick::AndBandwidth, ..IsolationRules::V6_6 };

    pub const V6_18: IsolationRules =
        IsolationRules { any_housekeeper: AnyHousekeeper::NearestInTurn, ..IsolationRules::V6_12 };

    pub const V7_2: IsolationRules = IsolationRules { kthreads: KthreadCpus::Balanced, ..IsolationRules::V6_18 };
}

/// The CPUs of `nohz_full=`.
#[derive(Clone, Debug, Default)]
pub struct Isolation {
    /// Static key: there are nohz_full CPUs.
    enabled: bool,
    nohz_full: CpuMask,
    /// TICK_DEP_BIT_SCHED of each CPU: the scheduler needs its tick (v4.6).
    dep: PerCpu<bool>,
    /// `rq->last_sched_tick`, in jiffies.
    last_sched_tick: PerCpu<u64>,
}

/// A CPU's ticks after an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullTick {
    /// As before the interrupt.
    Unchanged,
    /// They run from now on.
    Restarted,
    /// There is none before this time; `None`: never.
    Stopped(Option<Ns>),
}

impl<A: Arch> Sched<A> {
    /// tick-sched.c: tick_nohz_full_setup() and tick_nohz_init(): `nohz_full=` of the command line. The boot CPU keeps the time,
    /// and is excluded. Called before the first task is created.
    #[doc(alias = "tick_nohz_init")]
    pub fn tick_nohz_full_setup(&mut self, cpus: &CpuMask) {
        let mut nohz_full: CpuMask = cpus.iter().filter(|cpu| cpu.index() < self.nr_cpus()).collect();
        nohz_full.clear(CpuId(0));
        let nr_cpus = self.nr_cpus();
        self.isolation = Isolation {
            enabled: !nohz_full.is_empty(),
            nohz_full,
            dep: PerCpu::from_fn(nr_cpus, |_| false),
            last_sched_tick: PerCpu::from_fn(nr_cpus, |_| 0),
        };
    }

    /// include/linux/tick.h: tick_nohz_full_enabled().
    #[inline]
    pub fn tick_nohz_full_enabled(&self) -> bool {
        unlikely(self.isolation.enabled)
    }

    /// include/linux/tick.h: tick_nohz_full_cpu().
    #[inline]
    pub fn tick_nohz_full_cpu(&self, cpu: CpuId) -> bool {
        self.tick_nohz_full_enabled() && self.isolation.nohz_full.contains(cpu)
    }

    /// Whether the tick of `cpu`, a nohz_full CPU, stays stopped although the CPU is no longer idle.
    #[cold]
    #[inline(never)]
    pub(crate) fn stays_without_tick(&mut self, cpu: CpuId) -> bool {
        self.kernel.isolation.idle_exit == IdleExit::StaysStopped
            && self.tick_nohz_full_update_tick(cpu) != FullTick::Restarted
    }

    /// include/linux/sched/isolation.h: cpu_is_isolated().
    pub fn cpu_is_isolated(&self, cpu: CpuId) -> bool {
        self.isolated.contains(cpu) || self.tick_nohz_full_cpu(cpu)
    }

    /// The online housekeeping CPUs.
    fn housekeeping_cpumask(&self) -> CpuMask {
        let online = self.cpu_online_mask.iter();
        online.filter(|&cpu| !self.isolation.nohz_full.contains(cpu)).collect()
    }

    fn first_housekeeper(&self) -> CpuId {
        self.housekeeping_cpumask().first().expect("the CPU that keeps the time stays up")
    }

    /// isolation.c: housekeeping_any_cpu(), for `cpu`, which executes this.
    fn housekeeping_any_cpu(&mut self, cpu: CpuId) -> CpuId {
        let housekeeping = self.housekeeping_cpumask();
        let near = match self.kernel.isolation.any_housekeeper {
            AnyHousekeeper::First => None,
            AnyHousekeeper::Nearest => self.sched_numa_find_closest(&housekeeping, cpu).and_then(|near| near.first()),
            AnyHousekeeper::NearestInTurn => {
                let near = self.sched_numa_find_closest(&housekeeping, cpu);
                self.cpumask_any_distribute(&near.unwrap_or_else(|| housekeeping.clone()))
            }
        };
        near.unwrap_or_else(|| self.first_housekeeper())
    }

    /// topology.c: sched_numa_find_closest(). The CPUs of `cpus` that are nearest to the node of `cpu`, if any is on a node.
    fn sched_numa_find_closest(&self, cpus: &CpuMask, cpu: CpuId) -> Option<CpuMask> {
        let mut nearest = self.domains.numa_masks(self.topology.node[cpu]).map(|span| cpus.and(span));
        nearest.find(|near| !near.is_empty())
    }

    /// Where unbound kernel threads may run: isolation.c's housekeeping_affine() of kthreadd, since v7.2
    /// kthread_fetch_affinity(). `None`: everywhere.
    #[doc(alias = "kthread_fetch_affinity")]
    pub fn kthread_cpus(&self) -> Option<CpuMask> {
        let left_alone = match self.kernel.isolation.kthreads {
            KthreadCpus::Housekeeping if self.isolation.enabled => &self.isolation.nohz_full,
            KthreadCpus::Balanced if !self.isolated.is_empty() => &self.isolated,
            KthreadCpus::All | KthreadCpus::Housekeeping | KthreadCpus::Balanced => return None,
        };
        Some((0..self.nr_cpus()).map(CpuId::new).filter(|&cpu| !left_alone.contains(cpu)).collect())
    }

    /// Whether `cpu` may balance for CPUs that idle without ticks.
    pub(crate) fn may_balance_for_others(&self, cpu: CpuId) -> bool {
        self.kernel.isolation.ilb == IlbCpus::All || !self.tick_nohz_full_cpu(cpu)
    }

    /// core.c: get_nohz_timer_target(). The CPU for an unpinned timer that this CPU arms.
    ///
    /// Differs: called only for nohz_full CPUs; timers of other CPUs stay where they are armed.
    pub fn get_nohz_timer_target(&mut self, cpu: CpuId) -> CpuId {
        if !self.tick_nohz_full_cpu(cpu) {
            return cpu;
        }
        if self.kernel.isolation.timer_target == TimerTarget::Busy {
            for sd in self.domains.for_each_domain(cpu) {
                let busy = |&other: &CpuId| !self.isolation.nohz_full.contains(other) && self.rq[other].curr.is_some();
                if let Some(target) = self.domains.sched_domain_span(sd).iter().find(busy) {
                    return target;
                }
            }
        }
        self.housekeeping_any_cpu(cpu)
    }

    // The tick of a CPU that runs a single task.

    /// core.c: sched_can_stop_tick(). Whether nothing that runs on `cpu` needs a tick.
    pub(crate) fn sched_can_stop_tick(&self, cpu: CpuId) -> bool {
        let (rq, rt) = (&self.rq[cpu], &self.rt[cpu]);
        if self.kernel.isolation.can_stop == CanStopTick::ByPolicy {
            return match rq.curr.map(|p| (p, self.task[p].policy)) {
                Some((_, Policy::Fifo)) => true,
                Some((p, Policy::Rr)) => self.rt_se[p].run_list.is_singular(),
                _ => rq.nr_running <= 1,
            };
        }
        if self.dl[cpu].dl_nr_running > 0 {
            return false;
        }
        if rt.rr_nr_running > 0 {
            return rt.rr_nr_running == 1;
        }
        if rt.rt_nr_running > 0 {
            return true;
        }
        match self.kernel.isolation.can_stop {
            CanStopTick::AndBandwidth => self.cfs_h_nr_running(cpu) <= 1 && !self.needs_bandwidth_check(cpu),
            CanStopTick::OrBandwidth => rq.nr_running <= 1 && !self.needs_bandwidth_check(cpu),
            CanStopTick::ByClasses | CanStopTick::ByPolicy => rq.nr_running <= 1,
        }
    }

    /// core.c: __need_bw_check(), and whether the single running task has a quota, which ticks account for.
    #[doc(alias = "__need_bw_check")]
    fn needs_bandwidth_check(&self, cpu: CpuId) -> bool {
        let Some(curr) = self.rq[cpu].curr.filter(|_| self.rq[cpu].nr_running == 1) else { return false };
        self.task[curr].sched_class == SchedClass::Fair && self.cfs_task_bw_constrained(curr)
    }

    /// fair.c: cfs_task_bw_constrained(), where the kernel asks that.
    fn cfs_task_bw_constrained(&self, p: TaskId) -> bool {
        let asks = match self.kernel.isolation.can_stop {
            CanStopTick::ByPolicy | CanStopTick::ByClasses => false,
            CanStopTick::OrBandwidth => self.sched_feat(Feature::HZ_BW),
            CanStopTick::AndBandwidth => true,
        };
        asks && self.cfs_bandwidth_used() && self.task_has_quota(p)
    }

    /// sched.h: sched_update_tick_dependency(). `cpu` had `prev_nr` tasks before.
    #[inline]
    pub(crate) fn sched_update_tick_dependency(&mut self, cpu: CpuId, prev_nr: u32) {
        if self.tick_nohz_full_cpu(cpu) {
            self.update_tick_dependency(cpu, prev_nr);
        }
    }

    #[cold]
    fn update_tick_dependency(&mut self, cpu: CpuId, prev_nr: u32) {
        if self.kernel.isolation.can_stop == CanStopTick::ByPolicy {
            if prev_nr < 2 && self.rq[cpu].nr_running >= 2 {
                self.tick_nohz_full_kick_cpu(cpu);
            }
            return;
        }
        let needed = !self.sched_can_stop_tick(cpu);
        self.set_tick_dependency(cpu, needed);
    }

    /// tick-sched.c: tick_nohz_dep_set_cpu() and tick_nohz_dep_clear_cpu(). Setting the dependency for the first time makes the
    /// CPU look at it.
    #[doc(alias = "tick_nohz_dep_set_cpu")]
    fn set_tick_dependency(&mut self, cpu: CpuId, needed: bool) {
        let before = std::mem::replace(&mut self.isolation.dep[cpu], needed);
        if needed && !before {
            self.tick_nohz_full_kick_cpu(cpu);
        }
    }

    /// Whether `cpu` is a nohz_full CPU without a tick dependency.
    pub fn may_stop_tick(&self, cpu: CpuId) -> bool {
        self.tick_nohz_full_cpu(cpu) && !self.isolation.dep[cpu]
    }

    /// fair.c: sched_fair_update_stop_tick(). A fair task was picked.
    #[inline]
    pub(crate) fn sched_fair_update_stop_tick(&mut self, cpu: CpuId, p: TaskId) {
        if self.tick_nohz_full_cpu(cpu) && self.rq[cpu].nr_running == 1 && self.cfs_task_bw_constrained(p) {
            self.set_tick_dependency(cpu, true);
        }
    }

    /// tick-sched.c: tick_nohz_full_kick_cpu(). `cpu` looks at its tick at the end of the interrupt.
    fn tick_nohz_full_kick_cpu(&mut self, cpu: CpuId) {
        self.arch.send_ipi(self.this_cpu, cpu, Ipi::CallFunctionSingle);
    }

    /// tick-sched.c: tick_nohz_full_update_tick(). Called at the end of an interrupt on a busy CPU, or when it leaves the idle
    /// loop.
    pub(crate) fn tick_nohz_full_update_tick(&mut self, cpu: CpuId) -> FullTick {
        let can_stop = match self.kernel.isolation.can_stop {
            CanStopTick::ByPolicy => self.sched_can_stop_tick(cpu),
            CanStopTick::ByClasses | CanStopTick::OrBandwidth | CanStopTick::AndBandwidth => !self.isolation.dep[cpu],
        };
        let stopped = self.rq[cpu].tick_stopped;
        if !can_stop {
            if !stopped {
                return FullTick::Unchanged;
            }
            self.rq[cpu].tick_stopped = false;
            self.cpu_load_update_nohz_stop(cpu, true);
            return FullTick::Restarted;
        }
        if !stopped {
            self.rq[cpu].tick_stopped = true;
            match self.kernel.isolation.stopped {
                StoppedTick::Balanced => self.nohz_balance_enter_idle(cpu),
                StoppedTick::IdleFirst => self.cpu_load_update_nohz_start(cpu),
            }
        }
        FullTick::Stopped(match self.kernel.isolation.residual {
            ResidualTick::Local => Some(self.scheduler_tick_max_deferment(cpu)),
            ResidualTick::Remote => {
                self.sched_tick_start(cpu);
                None
            }
        })
    }

    /// CONFIG_HZ
    fn hz(&self) -> u64 {
        1_000_000_000 / self.tick_nsec
    }

    /// core.c: rq_last_tick_reset(), on each tick.
    #[inline]
    pub(crate) fn rq_last_tick_reset(&mut self, cpu: CpuId) {
        if self.isolation.enabled {
            self.isolation.last_sched_tick[cpu] = self.jiffies();
        }
    }

    /// core.c: scheduler_tick_max_deferment(), until v4.16. Returns when the next tick is due.
    fn scheduler_tick_max_deferment(&self, cpu: CpuId) -> Ns {
        let next = self.isolation.last_sched_tick[cpu] + self.hz();
        Ns(next.max(self.jiffies() + 1) * self.tick_nsec)
    }

    /// core.c: sched_tick_start(). The CPU's tick is done remotely from the next whole second on.
    ///
    /// Differs: not armed while the CPU's own tick runs, when the remote tick would have nothing to do.
    fn sched_tick_start(&mut self, cpu: CpuId) {
        if self.hrtimers.is_queued(SchedTimer::TickRemote(cpu)) {
            return;
        }
        let second = self.hz() * self.tick_nsec;
        let expires = (self.arch.sched_clock(self.this_cpu).0 / second + 1) * second;
        let by = self.first_housekeeper();
        self.hrtimer_start(by, SchedTimer::TickRemote(cpu), expires);
    }

    /// core.c: sched_tick_remote().
    ///
    /// Differs: done in the timer's interrupt, not in a worker of system_unbound_wq that the timer queues.
    pub(crate) fn sched_tick_remote(&mut self, cpu: CpuId) {
        if !self.rq[cpu].tick_stopped || self.rq[cpu].curr.is_none() || !self.rq[cpu].hotplug.is_online() {
            return;
        }
        self.enter(Path::sched_tick_remote);
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        if let Some(curr) = self.rq[cpu].curr {
            self.task_tick(cpu, curr, false);
        }
        self.rq_unlock(cpu);
        self.leave();
        self.sched_tick_start(cpu);
    }

    /// Whether `cpu` keeps the time, which one CPU must do while others run without ticks; tick_nohz_cpu_down() checks this.
    pub(crate) fn keeps_time(&self, cpu: CpuId) -> bool {
        self.isolation.enabled && cpu == CpuId(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::TaskInit;
    use crate::core::cfs_quota::Quota;
    use crate::sched::ROOT_TASK_GROUP;
    use crate::scheduler::Scheduler;
    use crate::testing::{machine, task_in};
    use crate::versions::{Kernel, V6_1, V6_6, V6_12};

    #[test]
    fn a_quota_needs_the_tick_since_v6_6_where_a_feature_can_spare_it() {
        let spared = |kernel: Kernel, off: bool| {
            let mut s = machine(kernel, 2);
            s.tick_nohz_full_setup(&CpuMask::single(CpuId(1)));
            let tg = s.sched_create_group(ROOT_TASK_GROUP, "limited", 1024);
            let limits = Quota { period: 100_000_000, quota: 10_000_000, burst: 0 };
            s.tg_set_cfs_bandwidth(tg, limits).expect("limits within bounds");
            if off {
                s.sched_feat_set(Feature::HZ_BW, false).expect("this kernel has it");
            }
            let init = TaskInit { cpus_allowed: Some(CpuMask::single(CpuId(1))), ..task_in(tg, "hog") };
            let p = s.fork(CpuId(0), init).expect("it may begin");
            Scheduler::wake_up_new_task(&mut s, CpuId(0), p);
            assert_eq!(Scheduler::schedule(&mut s, CpuId(1), false), Some(p));
            s.may_stop_tick(CpuId(1))
        };
        assert_eq!([V6_1, V6_6, V6_12].map(|kernel| spared(kernel, false)), [true, false, false]);
        assert!(spared(V6_6, true));
    }
}
