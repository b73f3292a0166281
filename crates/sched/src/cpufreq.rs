//! kernel/sched/cpufreq.c: notifications that a CPU's utilization has changed, to a cpufreq driver or to the governor
//! schedutil.
//!
//! On a machine with fixed frequencies nothing is notified; this costs a look at one pointer.

use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::cpufreq_schedutil::thread::{SugovBusy, SugovRemote, SugovThread};
use crate::cpufreq_schedutil::{CpufreqPolicy, RateLimit, Schedutil, Sugov};
use crate::sched::{CfsRqId, IrqWork, TaskId};
use crate::topology::EnergyAware;
use units::{CpuId, Ns, PerCpu};

behaviour! {
    /// When somebody is told that the utilization of a CPU may have changed.
    pub enum UpdateUtil = "frequency.update_util" {
        Absent = "absent", since "v2.6.23", commit "", "never: drivers and governors sample by timers of their own";
        Runtime = "runtime", since "v4.6", commit "34e2c555f3e1",
            "when a CPU's fair queue has a new average, and whenever a real-time or deadline task's runtime is counted";
        /// The same of fair and real-time tasks.
        Bandwidth = "bandwidth", since "v4.16", commit "e0367b12674b",
            "of deadline tasks, when the bandwidth of active ones changes";
        AgedAndArrivals = "aged-and-arrivals", since "v4.17", commit "",
            "of fair tasks when a CPU's queue has a new average, or a task comes from another CPU, into a group as well; of real-time ones when their queue comes or goes; not when blocked load of other classes decays, which the fair one's goes before";
        Arrivals = "arrivals", since "v5.4.y", commit "",
            "as queued does, and when a task comes from another CPU into a group, before what is above the group knows (as in 5.4.286)";
        Queued = "queued", since "v5.5", commit "bef69dd87828",
            "of fair tasks once at the end of an update, of real-time ones when their queue comes or goes, and when blocked load decays";
    }
}

/// How frequencies follow the scheduler in one kernel version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpufreqRules {
    pub update_util: UpdateUtil,
    pub schedutil: Schedutil,
    pub sugov_thread: SugovThread,
    pub sugov_busy: SugovBusy,
    pub sugov_remote: SugovRemote,
    pub sugov_limit: RateLimit,
}

impl CpufreqRules {
    /// v4.5-rc1 and v4.5, which have no schedutil.
    pub const V4_5: CpufreqRules = CpufreqRules {
        update_util: UpdateUtil::Absent,
        schedutil: Schedutil::RtDlMax,
        sugov_thread: SugovThread::Fifo,
        sugov_busy: SugovBusy::Refused,
        sugov_remote: SugovRemote::Anybody,
        sugov_limit: RateLimit::Holds,
    };
    pub const V4_15: CpufreqRules = CpufreqRules { update_util: UpdateUtil::Runtime, ..CpufreqRules::V4_5 };
    pub const V4_16: CpufreqRules = CpufreqRules {
        update_util: UpdateUtil::Bandwidth,
        schedutil: Schedutil::RtMax,
        sugov_thread: SugovThread::Deadline,
        ..CpufreqRules::V4_15
    };
    /// As in 4.19.108, which is newer in `sugov_remote` than v4.19 itself.
    pub const V4_19: CpufreqRules = CpufreqRules {
        schedutil: Schedutil::LowestBoost,
        update_util: UpdateUtil::AgedAndArrivals,
        sugov_busy: SugovBusy::Joined,
        sugov_remote: SugovRemote::Allowed,
        ..CpufreqRules::V4_16
    };
    /// As in 5.4.286, which is newer in `sugov_remote` than v5.4 itself, and in `update_util` neither as v5.4 nor as v5.10.
    pub const V5_4: CpufreqRules =
        CpufreqRules { schedutil: Schedutil::AllClasses, update_util: UpdateUtil::Arrivals, ..CpufreqRules::V4_19 };
    pub const V5_10: CpufreqRules =
        CpufreqRules { schedutil: Schedutil::ByFrequency, update_util: UpdateUtil::Queued, ..CpufreqRules::V5_4 };

    pub const V5_15: CpufreqRules = CpufreqRules { schedutil: Schedutil::PerfTold, ..CpufreqRules::V5_10 };
    pub const V6_1: CpufreqRules = CpufreqRules { schedutil: Schedutil::EffectiveUtil, ..CpufreqRules::V5_15 };
    pub const V6_6: CpufreqRules = CpufreqRules { schedutil: Schedutil::BoostedUtil, ..CpufreqRules::V6_1 };
    pub const V6_12: CpufreqRules = CpufreqRules { schedutil: Schedutil::EffectivePerf, ..CpufreqRules::V6_6 };

    pub const V6_18: CpufreqRules = CpufreqRules { sugov_limit: RateLimit::Frequencies, ..CpufreqRules::V6_12 };

    pub const V7_2: CpufreqRules = CpufreqRules { sugov_limit: RateLimit::Holds, ..CpufreqRules::V6_18 };
}

/// linux/sched/cpufreq.h: SCHED_CPUFREQ_*: the reason for a notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UpdateFlags {
    /// A task wakes that has waited for a device.
    pub iowait: bool,
    pub rt: bool,
    pub dl: bool,
}

impl UpdateFlags {
    pub const NONE: UpdateFlags = UpdateFlags { iowait: false, rt: false, dl: false };
    pub const IOWAIT: UpdateFlags = UpdateFlags { iowait: true, ..UpdateFlags::NONE };
    pub const RT: UpdateFlags = UpdateFlags { rt: true, ..UpdateFlags::NONE };
    pub const DL: UpdateFlags = UpdateFlags { dl: true, ..UpdateFlags::NONE };
}

/// The place at which a fair queue's utilization has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChangePlace {
    /// The queue's average has been updated.
    Aged,
    /// The end of `update_load_avg()`, if no entity was attached or detached.
    End,
    /// An entity was attached or detached.
    Moved,
    /// An entity was attached that is about to be queued and came from another CPU (SCHED_CPUFREQ_MIGRATION).
    Arrived,
}

/// What is notified.
pub(crate) enum Hook {
    Driver,
    Schedutil(Sugov),
}

pub struct Cpufreq {
    pub(crate) hook: Hook,
    /// tick-sched.c: `ts->idle_calls`: how often each CPU's idle loop wanted to stop the tick. Since v4.17 a round in which
    /// the idle governor keeps the tick does not count.
    pub(crate) idle_calls: PerCpu<u64>,
    /// Policies whose governors' work an interrupt is about to hand to a kworker of its CPU.
    dbs_works: Vec<(CpuId, u16)>,
}

/// What the scheduler has to do with governors that come, go and change while the kernel runs. `by` executes. Others need
/// not implement anything.
pub trait FollowsGovernors {
    /// From now on the driver is told of utilization.
    fn driver_follows(&mut self, _by: CpuId) {}
    /// From now on schedutil governs. Its threads are to be started
    /// ([`crate::cpufreq_schedutil::thread::CpufreqThreads::sugov_kthread_create`]).
    fn schedutil_follows(&mut self, _by: CpuId, _policies: Vec<CpufreqPolicy>) {}
    /// The governor is stopped: nobody is told any more. Returns the threads that are to end, and the policies whose samples
    /// were left to interrupts.
    fn nobody_follows(&mut self, _by: CpuId) -> (Vec<TaskId>, Vec<u16>) {
        (Vec::new(), Vec::new())
    }
    /// The limits of schedutil's policies, or its rate limit, have changed.
    fn sugov_limits(&mut self, _by: CpuId, _policies: &[CpufreqPolicy]) {}
    fn rate_limit_us_store(&mut self, _by: CpuId, _rate_limit_us: u32) {}
    /// Whether schedutil governs has changed.
    fn sched_cpufreq_governor_change(&mut self, _by: CpuId, _schedutil: bool) {}
}

impl<A: Arch> FollowsGovernors for Sched<A> {
    fn driver_follows(&mut self, by: CpuId) {
        self.on_cpu(by);
        self.cpufreq_add_update_util_hook();
    }

    fn schedutil_follows(&mut self, by: CpuId, policies: Vec<CpufreqPolicy>) {
        self.on_cpu(by);
        self.sugov_start(policies);
    }

    /// cpufreq.c: cpufreq_remove_update_util_hook(), for all CPUs, with the rest of sugov_stop() or gov_clear_update_util():
    /// what waits for an interrupt is not done.
    #[doc(alias = "cpufreq_remove_update_util_hook")]
    fn nobody_follows(&mut self, by: CpuId) -> (Vec<TaskId>, Vec<u16>) {
        self.on_cpu(by);
        let Some(cpufreq) = self.cpufreq.take() else { return (Vec::new(), Vec::new()) };
        let mut left: Vec<u16> = cpufreq.dbs_works.iter().map(|&(_, policy)| policy).collect();
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            self.irq_work[cpu].retain(|work| match *work {
                IrqWork::Dbs(policy) => {
                    left.push(policy);
                    false
                }
                IrqWork::Sugov(_) => false,
                IrqWork::RtoPush | IrqWork::PushFor(_) => true,
            });
        }
        let threads = match cpufreq.hook {
            Hook::Driver => Vec::new(),
            Hook::Schedutil(sugov) => sugov.threads(),
        };
        (threads, left)
    }

    fn sugov_limits(&mut self, by: CpuId, policies: &[CpufreqPolicy]) {
        self.on_cpu(by);
        if let Some(Hook::Schedutil(sugov)) = self.cpufreq.as_mut().map(|cpufreq| &mut cpufreq.hook) {
            sugov.sugov_limits(policies);
        }
    }

    fn rate_limit_us_store(&mut self, by: CpuId, rate_limit_us: u32) {
        self.on_cpu(by);
        if let Some(Hook::Schedutil(sugov)) = self.cpufreq.as_mut().map(|cpufreq| &mut cpufreq.hook) {
            sugov.rate_limit_us_store(rate_limit_us);
        }
    }

    /// cpufreq_schedutil.c: sched_cpufreq_governor_change(): energy is reckoned with only under schedutil, so the domains
    /// are built anew.
    ///
    /// Differs: there, a kworker builds them.
    #[doc(alias = "sugov_eas_rebuild_sd")]
    fn sched_cpufreq_governor_change(&mut self, by: CpuId, schedutil: bool) {
        self.on_cpu(by);
        match &mut self.topology.energy_model {
            Some(model) if model.schedutil != schedutil => model.schedutil = schedutil,
            _ => return,
        }
        if self.kernel.wake.energy != EnergyAware::Absent {
            self.rebuild_sched_domains();
        }
    }
}

impl<A: Arch> Sched<A> {
    /// cpufreq.c: cpufreq_add_update_util_hook(), for all CPUs: the driver is notified through
    /// [`Arch::cpufreq_update_util`]. Does nothing in kernels without such notifications.
    pub fn cpufreq_add_update_util_hook(&mut self) {
        self.add_hook(Hook::Driver);
    }

    pub(crate) fn add_hook(&mut self, hook: Hook) {
        if self.kernel.cpufreq.update_util != UpdateUtil::Absent {
            let idle_calls = PerCpu::from_fn(self.nr_cpus(), |_| 0);
            self.cpufreq = Some(Box::new(Cpufreq { hook, idle_calls, dbs_works: Vec::new() }));
        }
    }

    /// sched.h: cpufreq_update_util().
    #[inline(always)]
    pub(crate) fn cpufreq_update_util(&mut self, cpu: CpuId, flags: UpdateFlags) {
        if self.cpufreq.is_some() {
            self.call_hook(cpu, flags);
        }
    }

    #[cold]
    #[inline(never)]
    fn call_hook(&mut self, cpu: CpuId, flags: UpdateFlags) {
        let Some(mut cpufreq) = self.cpufreq.take() else { return };
        let time = self.rq[cpu].clock;
        match &mut cpufreq.hook {
            Hook::Driver => {
                self.path(Path::cpufreq_update_util);
                if let Some(policy) = self.arch.cpufreq_update_util(self.this_cpu, cpu, Ns(time), flags.iowait) {
                    self.path(Path::irq_work_queue);
                    self.irq_work_queue_on(self.this_cpu, IrqWork::Dbs(policy));
                }
            }
            Hook::Schedutil(sugov) => self.sugov_update(sugov, &cpufreq.idle_calls, cpu, time, flags),
        }
        self.cpufreq = Some(cpufreq);
    }

    /// fair.c: cfs_rq_util_change().
    #[inline(always)]
    pub(crate) fn cfs_rq_util_change(&mut self, cfs: CfsRqId, place: ChangePlace) {
        if self.cpufreq.is_some() {
            self.root_util_change(cfs, place);
        }
    }

    #[cold]
    fn root_util_change(&mut self, cfs: CfsRqId, place: ChangePlace) {
        let cpu = self.cfs_rq[cfs].rq;
        let told = match self.kernel.cpufreq.update_util {
            UpdateUtil::Absent => false,
            UpdateUtil::Runtime | UpdateUtil::Bandwidth | UpdateUtil::AgedAndArrivals => place != ChangePlace::End,
            UpdateUtil::Queued | UpdateUtil::Arrivals => place != ChangePlace::Aged,
        };
        let tells_of_arrivals =
            matches!(self.kernel.cpufreq.update_util, UpdateUtil::AgedAndArrivals | UpdateUtil::Arrivals);
        let any_level = place == ChangePlace::Arrived && tells_of_arrivals;
        if told && (any_level || self.rq[cpu].cfs == cfs) {
            self.cpufreq_update_util(cpu, UpdateFlags::NONE);
        }
    }

    /// Real-time or deadline tasks have changed something that `how` notifies of.
    #[inline]
    pub(crate) fn other_class_util_change(&mut self, cpu: CpuId, how: UpdateUtil, flags: UpdateFlags) {
        if self.cpufreq.is_some() {
            let rule = self.kernel.cpufreq.update_util;
            let by_queue = matches!(rule, UpdateUtil::Queued | UpdateUtil::Arrivals | UpdateUtil::AgedAndArrivals);
            let told = match (how, flags.dl) {
                (UpdateUtil::Runtime, true) => rule == UpdateUtil::Runtime,
                (UpdateUtil::Runtime, false) => matches!(rule, UpdateUtil::Runtime | UpdateUtil::Bandwidth),
                (UpdateUtil::Bandwidth, _) => by_queue || rule == UpdateUtil::Bandwidth,
                (UpdateUtil::Queued | UpdateUtil::Arrivals | UpdateUtil::AgedAndArrivals | UpdateUtil::Absent, _) => {
                    by_queue
                }
            };
            if told {
                self.cpufreq_update_util(cpu, flags);
            }
        }
    }

    /// cpufreq_governor.c: dbs_irq_work(), up to where it hands the sample to a kworker
    /// ([`crate::cpufreq_schedutil::thread::CpufreqThreads::dbs_work`]).
    pub(crate) fn dbs_irq_work(&mut self, policy: u16) {
        self.path(Path::dbs_irq_work);
        let cpu = self.this_cpu;
        self.cpufreq.as_mut().expect("a driver is told").dbs_works.push((cpu, policy));
    }

    /// The next policy whose sample an interrupt of `cpu` hands to a kworker.
    #[inline]
    pub(crate) fn next_dbs_work(&mut self, cpu: CpuId) -> Option<u16> {
        let works = &mut self.cpufreq.as_mut()?.dbs_works;
        let at = works.iter().position(|work| work.0 == cpu)?;
        Some(works.remove(at).1)
    }

    /// The idle loop wants to stop the tick.
    #[inline]
    pub(crate) fn count_idle_call(&mut self, cpu: CpuId) {
        if let Some(cpufreq) = &mut self.cpufreq {
            cpufreq.idle_calls[cpu] += 1;
        }
    }
}
