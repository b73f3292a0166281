//! stats.h / stats.c: scheduler statistics and their switch, and `sched_info`, which is always on.

use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::errno::{Answer, Errno, Refusal};
use crate::layout::Statistic;
use crate::sched::*;
use crate::sysctl::Sysctl;
use crate::versions::Kernel;
use fentry::fentry;
use units::{CpuId, unlikely};

behaviour! {
    /// Whether statistics can be switched off.
    pub enum Schedstats = "stats.schedstats" {
        Always = "always", since "v2.6.0", commit "", "schedstats are collected whenever they are built in";
        Tunable = "tunable", since "v4.6", commit "cb2517653fcc",
            "schedstats are a static key, off by default: schedstats= on the command line, kernel.sched_schedstats";
    }
}

behaviour! {
    /// What becomes of a wait that began while statistics were off.
    pub enum UnseenWait = "stats.unseen_wait" {
        Counts = "counts", since "v4.6", commit "cb2517653fcc", "it counts from boot: one enormous wait for each task that waits when they are switched on";
        Ignored = "ignored", since "v5.11", commit "b9c88f752268", "it does not count";
    }
}

/// Whether statistics are being collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedstatsState {
    enabled: bool,
}

impl SchedstatsState {
    pub fn new(kernel: &Kernel, sysctl: &Sysctl) -> SchedstatsState {
        let forced = sysctl.latencytop != 0;
        SchedstatsState { enabled: kernel.schedstats == Schedstats::Always || sysctl.sched_schedstats != 0 || forced }
    }
}

impl<A: Arch> Sched<A> {
    /// core.c: sysctl_schedstats(). Turns the collection of statistics on or off; collected statistics stay.
    ///
    /// # Errors
    /// ENOENT in kernels that cannot switch them.
    pub(crate) fn sysctl_schedstats(&mut self, enabled: bool) -> Answer {
        if self.kernel.schedstats == Schedstats::Always {
            return Err(Refusal::new(Errno::ENOENT, "this kernel collects statistics always"));
        }
        self.sysctl.sched_schedstats = u64::from(enabled);
        self.schedstats.enabled = enabled;
        Ok(())
    }

    /// core.c: force_schedstat_enabled(). Turns statistics on for a user that needs them.
    pub(crate) fn force_schedstat_enabled(&mut self) {
        self.sysctl.sched_schedstats = 1;
        self.schedstats.enabled = true;
    }

    /// stats.h: schedstat_enabled().
    #[inline]
    pub fn schedstat_enabled(&self) -> bool {
        unlikely(self.schedstats.enabled)
    }

    /// An entity's statistics: a task's, or a group's.
    #[inline]
    pub fn statistics(&mut self, se: SeId) -> &mut SchedStatistics {
        match self.se[se].task {
            Some(p) => &mut self.task_cold[p].statistics,
            None => {
                let index = se.index();
                if self.group_statistics.len() <= index {
                    self.group_statistics.resize(index + 1, SchedStatistics::default());
                }
                &mut self.group_statistics[index]
            }
        }
    }

    /// core.c: ttwu_stat().
    #[inline(always)]
    pub(crate) fn ttwu_stat(&mut self, p: TaskId, cpu: CpuId, flags: WakeFlags) {
        if unlikely(self.schedstat_enabled()) {
            self.count_wakeup(p, cpu, flags);
        }
    }

    /// The body of `ttwu_stat()`, if statistics are on.
    #[inline(never)]
    fn count_wakeup(&mut self, p: TaskId, cpu: CpuId, flags: WakeFlags) {
        self.enter(Path::ttwu_stat);
        let this = self.this_cpu;
        self.write_rq_counts(this);
        self.write_statistic(self.task[p].se, Statistic::NrWakeups);
        self.write_statistic(self.task[p].se, Statistic::NrWakeupsLocal);
        let local = cpu == this;
        let statistics = &mut self.task_cold[p].statistics;
        statistics.nr_wakeups += 1;
        statistics.nr_wakeups_local += u64::from(local);
        statistics.nr_wakeups_remote += u64::from(!local);
        statistics.nr_wakeups_migrate += u64::from(flags.migrated);
        statistics.nr_wakeups_sync += u64::from(flags.sync);
        self.rq[this].ttwu_count += 1;
        if local {
            self.rq[this].ttwu_local += 1;
        } else {
            self.count_remote_wakeup(this, cpu);
        }
        self.leave();
    }

    /// The wakeup is counted in the smallest domain of the waker that contains the target.
    fn count_remote_wakeup(&mut self, this: CpuId, cpu: CpuId) {
        let holder = self.domains.for_each_domain(this).find(|&sd| self.domains.sched_domain_span(sd).contains(cpu));
        if let Some(sd) = holder {
            self.write_domain_stats(sd);
            self.domains.stats_mut(sd).ttwu_wake_remote += 1;
        }
    }

    /// stats.h: sched_info_queued(). The first time that a task starts to wait counts.
    pub(crate) fn sched_info_queued(&mut self, cpu: CpuId, p: TaskId) {
        self.write_sched_info(p);
        let clock = self.rq[cpu].clock;
        let info = &mut self.task[p].sched_info;
        if info.last_queued == 0 {
            info.last_queued = clock;
        }
    }

    /// stats.h: sched_info_dequeued(). The time that a task waited counts even if it never ran.
    pub(crate) fn sched_info_dequeued(&mut self, cpu: CpuId, p: TaskId) {
        self.write_sched_info(p);
        let delta = self.take_run_delay(cpu, p);
        let total = &mut self.rq[cpu].rq_sched_info;
        total.run_delay = total.run_delay.wrapping_add(delta);
    }

    fn take_run_delay(&mut self, cpu: CpuId, p: TaskId) -> u64 {
        let clock = self.rq[cpu].clock;
        let info = &mut self.task[p].sched_info;
        let delta = if info.last_queued == 0 { 0 } else { clock.wrapping_sub(info.last_queued) };
        info.last_queued = 0;
        // The clocks of two runqueues are read at different times, so a delta may be negative: the sum wraps, as it
        // does in the kernel.
        info.run_delay = info.run_delay.wrapping_add(delta);
        delta
    }

    /// stats.h: sched_info_switch().
    #[inline(always)]
    pub(crate) fn sched_info_switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        if let Some(p) = prev {
            self.sched_info_depart(cpu, p);
        }
        if let Some(p) = next {
            self.sched_info_arrive(cpu, p);
        }
    }

    /// stats.h: sched_info_arrive().
    #[fentry]
    fn sched_info_arrive(&mut self, cpu: CpuId, p: TaskId) {
        self.write_sched_info(p);
        self.write_rq_stats(cpu);
        let delta = self.take_run_delay(cpu, p);
        let clock = self.rq[cpu].clock;
        let info = &mut self.task[p].sched_info;
        info.last_arrival = clock;
        info.pcount += 1;
        let total = &mut self.rq[cpu].rq_sched_info;
        total.run_delay = total.run_delay.wrapping_add(delta);
        total.pcount += 1;
    }

    /// stats.h: sched_info_depart().
    #[fentry]
    fn sched_info_depart(&mut self, cpu: CpuId, p: TaskId) {
        self.write_rq_stats(cpu);
        let ran = self.rq[cpu].clock.wrapping_sub(self.task[p].sched_info.last_arrival);
        self.rq[cpu].rq_cpu_time += ran;
        if self.task[p].state == TaskState::Running {
            self.sched_info_queued(cpu, p);
        }
    }
}
