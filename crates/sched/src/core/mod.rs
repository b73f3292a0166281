//! core.c: a task's way through the scheduler: fork, wakeup, schedule, tick, exit.

mod affinity;
mod average;
mod boot;
pub mod cfs_quota;
pub mod cgroup;
pub mod class;
mod clock;
pub mod cputime;
mod fork;
mod hotplug;
pub mod hrtick;
mod iowait;
mod irq_work;
mod numa;
pub(crate) mod pi;
mod resched;
pub mod schedule;
mod sysctl_write;
mod ttwu;
mod uclamp;

pub use affinity::{AffinityDest, AffinityOffline, AffinityState, CpuAllowed, NoLongerAffine};
pub(crate) use average::update_avg;
pub use boot::Boot;
pub use fork::SleepsSinceBoot;
pub use hotplug::{Hotplug, HotplugDomains, HotplugState, RqOffline};
pub use iowait::{IowaitCount, ToldToGovernors};
pub use resched::{LazilyPreempted, MoveQueued, ReschedLazy, WakeIfIdle, WakesIdle};
pub use ttwu::{WakeCpu, WakeCurrent, WakeList, WakeQueue, WakeRunning};
pub use uclamp::{ClampId, Clamps, GroupClamps, UclampState, UtilClamp};

use crate::access::Path;
use crate::arch::Arch;
use crate::attr::SchedAttr;
use crate::autogroup::Autogroups;
use crate::cpu_topology::CpuTopology;
use crate::deadline::{DlRq, SchedDlEntity};
use crate::fair::bandwidth::Bandwidth;
use crate::fair::load::{FrequencyInvariance, Released};
use crate::fair::numa::Numa;
use crate::fair::scaling::ScaledTunables;
use crate::features::{Feature, Features};
use crate::hrtimer::HrTimers;
use crate::isolation::Isolation;
use crate::latencytop::Latencytop;
use crate::layout::{Layout, Statistic};
use crate::profile::ProfileState;
use crate::psi::PsiState;
use crate::rt::bandwidth::RUNTIME_INF;
use crate::rt::{RtRq, SchedRtEntity};
use crate::sched::*;
use crate::stats::SchedstatsState;
use crate::sysctl::Sysctl;
use crate::topology::{DomainParameters, Domains, RootDomain, build_sched_domains};
use crate::trace::{Event, Interrupt, Ipi};
use crate::versions::Kernel;
use cgroup::Hierarchy;
use fentry::fentry;
use units::{CpuId, CpuMask, Divisor, Ns, PerCpu, unlikely};

/// The scheduler of one simulated machine: all of its state, and its connection outwards.
///
/// Field order: what is read most lies within the first 128 bytes, where an offset takes one byte of an instruction instead of
/// four. The usual path has to fit into a level-1 instruction cache (docs/speed.md).
#[repr(C)]
pub struct Sched<A: Arch> {
    /// The CPU that executes scheduler code now (`smp_processor_id()`), set on every entry.
    pub(crate) this_cpu: CpuId,
    /// Whether it executes an interrupt or a softirq (`!in_task()`).
    pub(crate) interrupt: Interrupt,
    /// Whether every CPU has full capacity and runs at full speed, as far as load tracking knows.
    pub(crate) full_scale: bool,
    /// The PELT arithmetic that `kernel` asks for.
    pub(crate) arithmetic: Released,
    /// Whether some task has been SCHED_IDLE, or some group idle as a whole.
    pub(crate) sched_idle_used: bool,
    /// Static key `sk_dynamic_preempt_lazy`: `preempt=lazy`.
    preempt_lazy: bool,
    pub rq: PerCpu<Rq>,
    pub cfs_rq: Arena<CfsRqId, CfsRq>,
    pub se: Arena<SeId, SchedEntity>,
    pub task: Arena<TaskId, TaskStruct>,
    pub features: Features,
    pub kernel: Kernel,
    pub sysctl: Sysctl,
    pub(crate) scaled_tunables: ScaledTunables,
    pub layout: Layout,
    /// Whom to tell about utilization.
    pub(crate) cpufreq: Option<Box<crate::cpufreq::Cpufreq>>,
    /// Length of a jiffy in nanoseconds (TICK_NSEC).
    pub tick_nsec: u64,
    /// A precomputed division by `tick_nsec`.
    ticks: Divisor,
    /// Ticks in a second.
    pub(crate) hz: u64,
    pub rt: PerCpu<RtRq>,
    /// For every task that has been a real-time one, by task id.
    pub rt_se: Arena<TaskId, SchedRtEntity>,
    pub dl: PerCpu<DlRq>,
    /// For every task that has been a deadline one, by task id.
    pub dl_se: Arena<TaskId, SchedDlEntity>,
    pub task_cold: Arena<TaskId, TaskCold>,
    /// Statistics of group entities; a task's are in [`TaskCold`].
    pub group_statistics: Vec<SchedStatistics>,
    pub tg: Arena<TgId, TaskGroup>,
    pub domains: Domains,
    pub topology: CpuTopology,
    pub cpu_online_mask: CpuMask,
    /// The CPUs to which tasks may be brought: online, and not on their way down.
    pub cpu_active_mask: CpuMask,
    pub root_domains: Vec<RootDomain>,
    /// Exclusive cpusets: each balances by itself; the remaining CPUs form one more.
    pub(crate) partitions: Vec<CpuMask>,
    /// `isolcpus=`: CPUs without domains, where tasks run only by affinity.
    pub isolated: CpuMask,
    /// Static key `sched_smt_present`: how many cores have more than one thread online.
    pub(crate) sched_smt_present: u32,
    /// Per-CPU `sched_core_priority`, where cores are ranked.
    pub(crate) sched_core_priority: Option<PerCpu<i32>>,
    pub(crate) domain_parameters: DomainParameters,
    pub schedstats: SchedstatsState,
    pub(crate) psi: PsiState,
    pub(crate) latencytop: Latencytop,
    pub(crate) profile: ProfileState,
    pub nohz: crate::fair::nohz::Nohz,
    pub(crate) balance: crate::fair::balance::BalanceState,
    pub uclamp: UclampState,
    /// Static key: some root domain has performance domains.
    pub(crate) sched_energy_present: bool,
    /// fair.c: select_rq_mask, a scratch mask of searches at wakeups.
    pub(crate) select_rq_mask: CpuMask,
    /// The CPUs whose `curr` is their idle task: searches read a word of this mask instead of 64 runqueues.
    pub(crate) running_idle: CpuMask,
    pub hrtimers: HrTimers,
    pub(crate) isolation: Isolation,
    pub(crate) bandwidth: Bandwidth,
    pub numa: Numa,
    pub(crate) autogroups: Autogroups,
    /// Which cgroup hierarchy is mounted, and so which files the groups have.
    pub cgroup_hierarchy: Hierarchy,
    /// `def_rt_bandwidth.rt_period_active`
    pub(crate) rt_period_active: bool,
    /// The work that interrupts are to do on each CPU, in the order of queueing.
    pub(crate) irq_work: PerCpu<Vec<IrqWork>>,
    /// lib/cpumask.c: for each CPU, the one it chose last when any CPU of a mask would do.
    pub(crate) distribute_cpu_mask_prev: PerCpu<CpuId>,
    /// Wakeups since boot that woke a task.
    pub nr_wakeups: u64,
    /// Moves of a task to another CPU since boot.
    pub nr_migrations: u64,
    next_pid: u32,
    /// State of the tasks' affinity masks.
    pub affinity: AffinityState,
    pub arch: A,
}

/// What a new task starts with.
#[derive(Clone, Debug)]
pub struct TaskInit {
    pub comm: String,
    /// Attributes to set before the task first runs; `None`: those of its parent, as far as fork() hands them on.
    pub attr: Option<SchedAttr>,
    /// `None`: every CPU.
    pub cpus_allowed: Option<CpuMask>,
    /// Address space: tasks with the same number switch without a TLB change; 0 for kernel threads.
    pub mm: u32,
    pub group: TgId,
}

impl<A: Arch> Sched<A> {
    /// core.c: sched_init() and sched_init_smp(): every CPU idle, domains built, the root group in place.
    pub fn new(arch: A, mut boot: Boot) -> Sched<A> {
        if boot.kernel.load.frequency == FrequencyInvariance::ToldByDrivers && !arch.driver_tells_frequency() {
            boot.kernel.load.frequency = FrequencyInvariance::Unknown;
        }
        let nr_cpus = boot.topology.nr_cpus;
        let online = CpuMask::all(nr_cpus);
        let (setup, sched_core_priority) = boot.domain_setup();
        let balanced = online.iter().filter(|&cpu| !boot.isolated.contains(cpu)).collect();
        let mut domains = build_sched_domains(&boot.topology, &balanced, &boot.kernel.domains, &setup);
        domains.scan_as_when_idle();
        let mut sched = Sched {
            arithmetic: Released::of(&boot.kernel),
            full_scale: crate::fair::load::is_full_scale(&boot, arch.scales_frequency()),
            arch,
            layout: boot.kernel.layout(),
            cpufreq: None,
            features: boot.features,
            sysctl: boot.sysctl,
            scaled_tunables: ScaledTunables::new(&boot.kernel),
            this_cpu: CpuId(0),
            interrupt: Interrupt::None,
            tick_nsec: 1_000_000_000 / u64::from(boot.hz),
            ticks: Divisor::new(1_000_000_000 / u64::from(boot.hz)),
            hz: u64::from(boot.hz),
            rq: PerCpu::from_fn(nr_cpus, |cpu| Rq {
                cpu,
                cfs: CfsRqId(u32::from(cpu.0)),
                // Every CPU went idle once while the machine booted.
                idle_stamp: 1,
                sd: domains.sd[cpu],
                avg_idle: 2 * boot.sysctl.sched_migration_cost,
                wake_avg_idle: 2 * boot.sysctl.sched_migration_cost,
                max_idle_balance_cost: boot.sysctl.sched_migration_cost,
                cpu_capacity: domains.cpu_capacity[cpu],
                cpu_capacity_orig: domains.cpu_capacity_orig[cpu],
                ..Rq::default()
            }),
            rt: PerCpu::from_fn(nr_cpus, |cpu| RtRq::new(cpu, RUNTIME_INF)),
            rt_se: Arena::new(),
            dl: PerCpu::from_fn(nr_cpus, |_| DlRq::default()),
            dl_se: Arena::new(),
            rt_period_active: false,
            irq_work: PerCpu::from_fn(nr_cpus, |_| Vec::new()),
            distribute_cpu_mask_prev: PerCpu::from_fn(nr_cpus, |_| CpuId(0)),
            task: Arena::new(),
            task_cold: Arena::new(),
            se: Arena::new(),
            group_statistics: Vec::new(),
            cfs_rq: Arena::new(),
            tg: Arena::new(),
            nohz: Default::default(),
            balance: Default::default(),
            uclamp: UclampState::init_uclamp(nr_cpus),
            sched_energy_present: false,
            sched_idle_used: false,
            preempt_lazy: false,
            select_rq_mask: CpuMask::new(nr_cpus),
            running_idle: CpuMask::all(nr_cpus),
            hrtimers: HrTimers::new(nr_cpus),
            isolation: Isolation::default(),
            bandwidth: Bandwidth::new(nr_cpus),
            numa: Numa::new(&boot.topology, &boot.sysctl),
            autogroups: Autogroups::default(),
            cgroup_hierarchy: Hierarchy::of(boot.kernel.cgroup.files),
            domains,
            topology: boot.topology,
            cpu_active_mask: online.clone(),
            cpu_online_mask: online,
            root_domains: Vec::new(),
            partitions: Vec::new(),
            isolated: boot.isolated,
            sched_smt_present: 0,
            sched_core_priority,
            domain_parameters: boot.domain_parameters,
            psi: PsiState::default(),
            latencytop: Latencytop::default(),
            profile: ProfileState::default(),
            schedstats: SchedstatsState::new(&boot.kernel, &boot.sysctl),
            nr_wakeups: 0,
            nr_migrations: 0,
            next_pid: 1,
            affinity: AffinityState::default(),
            kernel: boot.kernel,
        };
        // Boot parameters are set before anything runs.
        sched.latencytop.enabled = boot.sysctl.latencytop != 0;
        sched.init_root_task_group();
        sched.init_hotplug();
        sched.tg[ROOT_TASK_GROUP].clamps = GroupClamps::root();
        let clamps = sched.sysctl_sched_uclamp_handler(&boot.sysctl);
        clamps.expect("who sets tunables asks whether they contradict each other");
        sched.init_balance();
        sched.psi_init();
        for cpu in (0..nr_cpus).map(CpuId::new) {
            sched.init_dl_rq_bw_ratio(cpu);
            sched.set_rq_online(cpu);
            sched.fair_server_init(cpu);
            sched.arch.bring_up(cpu);
            sched.create_stopper(cpu);
        }
        sched.write_scaled_tunables(&boot.sysctl);
        sched
    }

    pub fn nr_cpus(&self) -> usize {
        self.rq.len()
    }

    /// The kernel's jiffies, counted from boot.
    #[inline]
    pub fn jiffies(&self) -> u64 {
        self.ticks.of(self.arch.sched_clock(self.this_cpu).0)
    }

    #[inline]
    pub(crate) fn sched_feat(&self, feature: Feature) -> bool {
        self.features.sched_feat(feature)
    }

    #[inline]
    pub(crate) fn smp_processor_id(&self) -> CpuId {
        self.this_cpu
    }

    /// preempt.h: in_task(). Whether a task executes now, as opposed to an interrupt.
    #[inline]
    pub(crate) fn in_task(&self) -> bool {
        self.interrupt == Interrupt::None
    }

    /// Every entry begins with this: it sets the executing CPU.
    #[inline]
    pub(crate) fn on_cpu(&mut self, cpu: CpuId) {
        self.this_cpu = cpu;
    }

    pub(crate) fn cpumask_test(&self, cpu: CpuId, p: TaskId) -> bool {
        self.task[p].cpus_allowed.contains(cpu)
    }

    /// core.c: cpus_share_cache().
    #[inline]
    pub(crate) fn cpus_share_cache(&self, this: CpuId, that: CpuId) -> bool {
        self.domains.sd_llc_id[this] == self.domains.sd_llc_id[that]
    }

    // The runqueue's clock.

    /// core.c: update_rq_clock().
    #[inline(always)]
    pub(crate) fn update_rq_clock(&mut self, cpu: CpuId) {
        if self.rq[cpu].clock_skip_update == ClockSkip::Active {
            return;
        }
        self.path(Path::update_rq_clock);
        self.write_rq_clock(cpu);
        let now = self.arch.sched_clock(self.this_cpu).0;
        let rq = &mut self.rq[cpu];
        // A CPU's own clock may lag behind what another CPU wrote here; time on a queue never runs backwards.
        if now > rq.clock {
            let delta = now - rq.clock;
            rq.clock = now;
            self.update_rq_clock_task(cpu, delta);
        }
    }

    /// kernel/sched/sched.h: rq_clock_skip_update().
    #[inline]
    pub(crate) fn rq_clock_skip_update(&mut self, cpu: CpuId, skip: bool) {
        let rq = &mut self.rq[cpu];
        rq.clock_skip_update = match (skip, rq.clock_skip_update) {
            (true, ClockSkip::No) => ClockSkip::Requested,
            (true, state) => state,
            (false, ClockSkip::Requested) => ClockSkip::No,
            (false, state) => state,
        };
    }

    // Queueing.

    /// core.c: enqueue_task().
    #[inline(always)]
    pub(crate) fn enqueue_task(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        if unlikely(!flags.noclock) {
            self.update_rq_clock(cpu);
        }
        if !flags.save_restore {
            self.sched_info_queued(cpu, p);
        }
        let after = self.kernel.core.uclamp == UtilClamp::AfterEnqueue;
        if !after {
            self.uclamp_rq_inc(cpu, p, flags);
        }
        self.class_enqueue_task(cpu, p, flags);
        if after {
            self.uclamp_rq_inc(cpu, p, flags);
        }
        self.psi_enqueue(p, flags);
    }

    /// core.c: dequeue_task(). Returns false only for a sleeper that its class keeps queued for a while.
    #[inline(always)]
    pub(crate) fn dequeue_task(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) -> bool {
        if unlikely(!flags.noclock) {
            self.update_rq_clock(cpu);
        }
        if !flags.save_restore {
            self.sched_info_dequeued(cpu, p);
        }
        self.psi_dequeue(p, flags);
        self.uclamp_rq_dec(cpu, p);
        self.class_dequeue_task(cpu, p, flags)
    }

    /// kernel/sched/sched.h: add_nr_running(). A CPU that gets more tasks than it can run marks the root domain as overloaded.
    #[inline]
    pub(crate) fn add_nr_running(&mut self, cpu: CpuId, count: u32) {
        self.write_rq_load(cpu);
        let rq = &mut self.rq[cpu];
        let prev_nr = rq.nr_running;
        rq.nr_running += count;
        self.trace_sched_update_nr_running_tp(cpu, count as i32);
        self.trace_nr_running(cpu);
        let rq = &self.rq[cpu];
        if prev_nr < 2 && rq.nr_running >= 2 {
            self.read_root_domain(cpu);
            if unlikely(!self.root_domain(cpu).overload) {
                self.write_root_domain(cpu);
                self.root_domain_mut(cpu).overload = true;
            }
        }
        self.sched_update_tick_dependency(cpu, prev_nr);
    }

    /// kernel/sched/sched.h: sub_nr_running().
    #[inline]
    pub(crate) fn sub_nr_running(&mut self, cpu: CpuId, count: u32) {
        self.write_rq_load(cpu);
        self.rq[cpu].nr_running -= count;
        self.trace_sched_update_nr_running_tp(cpu, -(count as i32));
        self.trace_nr_running(cpu);
        self.sched_update_tick_dependency(cpu, self.rq[cpu].nr_running + count);
    }

    /// core.c: activate_task().
    #[inline(always)]
    #[fentry]
    pub(crate) fn activate_task(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        if unlikely(self.task[p].sched_contributes_to_load) && flags.wakeup {
            self.rq[cpu].nr_uninterruptible -= 1;
        }
        let migrated = flags.migrated || self.task[p].on_rq == OnRq::Migrating;
        self.enqueue_task(cpu, p, QueueFlags { migrated, ..flags });
        self.task[p].on_rq = OnRq::Queued;
    }

    /// core.c: deactivate_task().
    #[fentry]
    pub(crate) fn deactivate_task(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        self.dequeue_task(cpu, p, flags);
    }

    /// core.c: block_task(). The running task goes to sleep; its class may keep it queued for a while.
    #[inline(always)]
    #[fentry(deactivate_task)]
    #[doc(alias = "deactivate_task")]
    pub(super) fn block_task(&mut self, cpu: CpuId, p: TaskId, flags: QueueFlags) {
        let left = self.dequeue_task(cpu, p, QueueFlags { sleep: true, ..flags });
        if left {
            self.__block_task(cpu, p);
        }
    }

    /// kernel/sched/sched.h: __block_task(). A sleeper has left its queue.
    pub(crate) fn __block_task(&mut self, cpu: CpuId, p: TaskId) {
        self.write_task_on_rq_apart(p);
        let task = &mut self.task[p];
        let rq = &mut self.rq[cpu];
        if unlikely(task.state == TaskState::Uninterruptible) {
            rq.nr_uninterruptible += 1;
        }
        if unlikely(task.in_iowait) && self.kernel.core.iowait_count == IowaitCount::UntilWoken {
            rq.nr_iowait += 1;
        }
        task.on_rq = OnRq::No;
    }

    fn trace_nr_running(&mut self, cpu: CpuId) {
        if unlikely(self.arch.tracing()) {
            self.trace(Event::NrRunning { cpu, nr_running: self.rq[cpu].nr_running });
        }
    }

    /// core.c: send_call_function_single_ipi(). Makes `cpu` process its queue of function calls. Until v5.7, the end of
    /// ttwu_queue_remote(), which makes `cpu` process its `wake_list` through the reschedule interrupt.
    pub(crate) fn send_call_function_single_ipi(&mut self, cpu: CpuId) {
        if self.rq[cpu].polling {
            self.write_need_resched(cpu);
            self.rq[cpu].need_resched = true;
            self.wake_idle_without_ipi(cpu);
        } else {
            let ipi = match self.kernel.core.wake_list {
                WakeList::RunQueue => Ipi::Reschedule,
                WakeList::CallSingle => Ipi::CallFunctionSingle,
            };
            self.arch.send_ipi(self.this_cpu, cpu, ipi);
        }
    }

    pub(super) fn wake_idle_without_ipi(&mut self, cpu: CpuId) {
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SchedWakeIdleWithoutIpi { cpu });
        }
        self.arch.wake_polling_idle(self.this_cpu, cpu);
    }

    /// kernel/smp.c: smp_call_function_single_async(). `cpu` does as soon as it can what others have queued for it. Until v5.7
    /// this always took an interrupt.
    pub(crate) fn smp_call_function_single_async(&mut self, cpu: CpuId) {
        self.atomic_wake_list(cpu);
        if self.kernel.core.wake_list == WakeList::RunQueue {
            self.arch.send_ipi(self.this_cpu, cpu, Ipi::CallFunctionSingle);
        } else {
            self.send_call_function_single_ipi(cpu);
        }
    }

    /// core.c: set_task_cpu().
    pub(crate) fn set_task_cpu(&mut self, p: TaskId, new_cpu: CpuId) {
        let orig_cpu = self.task[p].cpu;
        if orig_cpu != new_cpu {
            self.path(Path::set_task_cpu);
            if unlikely(self.arch.tracing()) {
                self.trace(Event::SchedMigrateTask { task: p, orig_cpu, dest_cpu: new_cpu });
            }
            self.migrate_task_rq(p);
            if self.numa.is_on() && self.task[p].sched_class == SchedClass::Fair {
                self.update_scan_period(p, new_cpu);
            }
            let se = self.task[p].se;
            self.se[se].nr_migrations += 1;
            self.nr_migrations += 1;
        }
        self.__set_task_cpu(p, new_cpu);
    }

    /// kernel/sched/sched.h: __set_task_cpu().
    pub(crate) fn __set_task_cpu(&mut self, p: TaskId, cpu: CpuId) {
        self.set_task_rq(p, cpu);
        self.write_task(p);
        let task = &mut self.task[p];
        task.cpu = cpu;
        task.wake_cpu = cpu;
    }

    /// kernel/sched/sched.h: update_curr_common(), for a task that is not fair. Returns the time it ran since the last update, in
    /// ns. `told`: whether the tracepoint sched_stat_runtime reports it.
    pub(crate) fn update_curr_common(&mut self, cpu: CpuId, curr: TaskId, told: bool) -> Option<u64> {
        let se = self.task[curr].se;
        let delta_exec = self.rq[cpu].clock_task.wrapping_sub(self.se[se].exec_start);
        if delta_exec as i64 <= 0 {
            return None;
        }
        self.write_se_times(se);
        let entity = &mut self.se[se];
        entity.exec_start = entity.exec_start.wrapping_add(delta_exec);
        entity.sum_exec_runtime += delta_exec;
        if unlikely(self.schedstat_enabled()) {
            self.write_statistic(se, Statistic::ExecMax);
            let statistics = self.statistics(se);
            statistics.exec_max = statistics.exec_max.max(delta_exec);
        }
        if told && unlikely(self.arch.tracing()) {
            self.trace(Event::SchedStatRuntime { task: curr, runtime: Ns(delta_exec), vruntime: 0 });
        }
        self.path(Path::cpuacct_charge);
        self.cgroup_account_unfair_cputime(curr, delta_exec);
        Some(delta_exec)
    }

    // Tick.

    /// core.c: scheduler_tick(). Returns whether the balancing softirq is to run.
    #[fentry]
    pub(crate) fn scheduler_tick(&mut self) -> bool {
        let cpu = self.this_cpu;
        if self.kernel.load.frequency != FrequencyInvariance::Unknown {
            self.arch.arch_scale_freq_tick(cpu);
        }
        self.rq_lock(cpu);
        self.update_rq_clock(cpu);
        self.promote_lazy_resched(cpu);
        if let Some(curr) = self.rq[cpu].curr {
            self.task_tick(cpu, curr, false);
        } else {
            self.task_tick_idle(cpu);
        }
        self.update_cpu_load_active(cpu);
        self.path(Path::calc_global_load_tick);
        self.rq_unlock(cpu);
        // idle_cpu(cpu)
        let rq = &mut self.rq[cpu];
        rq.idle_balance = rq.curr.is_none() && rq.nr_running == 0 && rq.wake_list.is_empty();
        self.rq_last_tick_reset(cpu);
        self.trigger_load_balance(cpu)
    }

    /// core.c: sched_yield(), the system call up to its schedule().
    #[fentry]
    pub(crate) fn sched_yield(&mut self) {
        let cpu = self.this_cpu;
        self.rq_lock(cpu);
        if unlikely(self.schedstat_enabled()) {
            self.write_rq_counts(cpu);
            self.rq[cpu].yld_count += 1;
        }
        self.yield_task(cpu);
        self.rq_unlock(cpu);
    }
}
