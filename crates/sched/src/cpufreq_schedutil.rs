//! kernel/sched/cpufreq_schedutil.c: the governor that follows the scheduler's own estimate of how busy a CPU is.
//!
//! Its cost is charged by function, as elsewhere; waiting of the CPUs of a shared policy for its lock is not charged.
//! `thread.rs` has the switching of frequencies by drivers that cannot do it here, `boost.rs` what waits for devices are worth since
//! v4.18, `stores.rs` what changes while it governs.

use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::cpufreq::{Hook, UpdateFlags};
use crate::fair::load::FrequencyInvariance;
use crate::topology::map_util_perf;
use thread::{SugovBusy, SugovRemote, SugovWork};
use units::{CpuId, PerCpu};

mod boost;
mod stores;
pub mod thread;

behaviour! {
    /// What schedutil takes for a CPU's utilization.
    pub enum Schedutil = "frequency.schedutil" {
        RtDlMax = "rt-dl-max", since "v4.7", commit "9bdcb44e391d",
            "the fair tasks', and the highest frequency while real-time or deadline tasks run; waits for devices boost it (v4.10), in kHz";
        RtMax = "rt-max", since "v4.16", commit "d4edd662ac16", "the same, but deadline tasks add their bandwidth";
        LowestBoost = "lowest-boost", since "v4.19", commit "",
            "all classes' and interrupts', and a quarter more; waits for devices boost it, in shares of a CPU, beginning with that of its lowest \
             frequency; a busy CPU whose limits have changed may slow down, and one that is held forgets what it was held from (after v4.16, by v4.19)";
        AllClasses = "all-classes", since "v5.2", commit "9eca544b1491",
            "the same, within clamps, which do not bound the boost; that begins with an eighth of a CPU";
        ByFrequency = "by-frequency", since "v5.10", commit "",
            "the same, but a busy CPU keeps its frequency, whatever its limits (5.10.262, 5.15.135)";
        PerfTold = "perf-told", since "v5.11", commit "ee2cc4276ba4",
            "the same, with the boost within the clamps; drivers that set performance are told it instead of a frequency";
        EffectiveUtil = "effective-util", since "v5.18", commit "7a17e1db1265",
            "the same, and a busy CPU that is clamped, or whose limits have changed, may slow down";
        BoostedUtil = "boosted-util", since "v6.5", commit "7d0583cf9ec7", "the same, and what tasks wait for if that is more";
        EffectivePerf = "effective-perf", since "v6.8", commit "9c0b4bb7f630",
            "the same, with a quarter more before the clamps, which then bound it";
    }
}

behaviour! {
    /// Whether the rate limit (`rate_limit_us`) holds where a driver is told performance instead of a frequency.
    pub enum RateLimit = "frequency.sugov_limit" {
        Holds = "holds", since "v5.11", again "v7.2", commit "ee2cc4276ba4", "yes";
        Frequencies = "frequencies", since "v6.15", commit "cfde542df7dd",
            "no: each change of utilization is told at once, as only a new frequency takes back that one is needed \
             (need_freq_update; after v6.12, by v6.18, and no more in v7.2)";
    }
}

/// sched.h: IOWAIT_BOOST_MIN. The initial boost.
const IOWAIT_BOOST_MIN: u32 = SCHED_CAPACITY_SCALE / 8;
/// No frequency has been chosen yet (UINT_MAX).
const NO_FREQ: u32 = u32::MAX;

/// linux/cpufreq.h: struct cpufreq_policy. CPUs that are governed together. Frequencies in kHz.
#[derive(Clone, Debug)]
pub struct CpufreqPolicy {
    pub cpus: Vec<CpuId>,
    pub min: u32,
    pub cpuinfo_min_freq: u32,
    pub cpuinfo_max_freq: u32,
    pub cur: u32,
    pub rate_limit_us: u32,
    /// Whether any CPU may request frequencies for these.
    pub dvfs_possible_from_any_cpu: bool,
    /// Whether the driver takes shares of a CPU's performance instead of frequencies.
    pub adjust_perf: bool,
    /// Whether the driver switches inside the scheduler (`fast_switch_enabled`).
    pub fast_switch: bool,
}

/// cpufreq_schedutil.c: struct sugov_policy.
#[derive(Clone, Debug)]
pub(crate) struct SugovPolicy {
    /// The policy's number.
    number: u16,
    policy: CpufreqPolicy,
    last_freq_update_time: u64,
    freq_update_delay_ns: u64,
    next_freq: u32,
    cached_raw_freq: u32,
    limits_changed: bool,
    need_freq_update: bool,
    work: SugovWork,
}

/// cpufreq_schedutil.c: struct sugov_cpu.
#[derive(Clone, Copy, Debug, Default)]
struct SugovCpu {
    /// `None`: the CPU belongs to no policy of this governor, and its callback is not registered.
    sg_policy: Option<usize>,
    iowait_boost_pending: bool,
    /// In kHz until v5.x, then in shares of 1024.
    iowait_boost: u32,
    last_update: u64,
    /// 1024 = the biggest CPU.
    util: u64,
    util_dl: u64,
    /// `bw_dl` (v4.19) or `bw_min`.
    bw_min: u64,
    flags: UpdateFlags,
    saved_idle_calls: u64,
}

pub struct Sugov {
    policies: Vec<SugovPolicy>,
    cpus: PerCpu<SugovCpu>,
}

/// The policy of that number on a machine that schedutil governs.
fn sugov_policy(hook: &mut Hook, number: u16) -> &mut SugovPolicy {
    match hook {
        Hook::Schedutil(sugov) => &mut sugov.policies[usize::from(number)],
        Hook::Driver => unreachable!("only schedutil's policies have threads"),
    }
}

impl<A: Arch> Sched<A> {
    /// cpufreq_schedutil.c: sugov_start(), for every policy of the machine, whether of one CPU or shared.
    pub fn sugov_start(&mut self, policies: Vec<CpufreqPolicy>) {
        let rt = self.kernel.cpufreq.schedutil == Schedutil::RtDlMax;
        let mut cpus = PerCpu::from_fn(self.nr_cpus(), |_| SugovCpu {
            flags: UpdateFlags { rt, ..UpdateFlags::NONE },
            ..SugovCpu::default()
        });
        for (index, policy) in policies.iter().enumerate() {
            policy.cpus.iter().for_each(|&cpu| cpus[cpu].sg_policy = Some(index));
        }
        let start = |(number, policy): (usize, CpufreqPolicy)| SugovPolicy {
            number: number as u16,
            last_freq_update_time: 0,
            freq_update_delay_ns: u64::from(policy.rate_limit_us) * 1_000,
            next_freq: NO_FREQ,
            cached_raw_freq: 0,
            limits_changed: false,
            // Drivers that are told performance have CPUFREQ_NEED_UPDATE_LIMITS.
            need_freq_update: policy.adjust_perf && self.kernel.cpufreq.sugov_limit == RateLimit::Frequencies,
            work: SugovWork::default(),
            policy,
        };
        self.add_hook(Hook::Schedutil(Sugov { policies: policies.into_iter().enumerate().map(start).collect(), cpus }));
    }

    /// The callback that [`Sched::sugov_start`] registers.
    pub(crate) fn sugov_update(
        &mut self,
        sugov: &mut Sugov,
        idle_calls: &PerCpu<u64>,
        cpu: CpuId,
        time: u64,
        flags: UpdateFlags,
    ) {
        let Some(number) = sugov.cpus[cpu].sg_policy else { return };
        self.path(Path::sugov_update);
        let policy = &mut sugov.policies[number];
        let shared = policy.policy.cpus.len() > 1;
        match self.kernel.cpufreq.schedutil {
            Schedutil::RtDlMax | Schedutil::RtMax if shared => {
                self.sugov_update_shared_by_flags(policy, &mut sugov.cpus, cpu, time, flags);
            }
            Schedutil::RtDlMax | Schedutil::RtMax => {
                let sg_cpu = &mut sugov.cpus[cpu];
                self.sugov_update_single_by_flags(policy, sg_cpu, cpu, time, flags, idle_calls[cpu]);
            }
            Schedutil::LowestBoost
            | Schedutil::AllClasses
            | Schedutil::ByFrequency
            | Schedutil::PerfTold
            | Schedutil::EffectiveUtil
            | Schedutil::BoostedUtil
            | Schedutil::EffectivePerf
                if shared =>
            {
                self.sugov_update_shared(policy, &mut sugov.cpus, cpu, time, flags);
            }
            Schedutil::LowestBoost | Schedutil::AllClasses | Schedutil::ByFrequency => {
                let sg_cpu = &mut sugov.cpus[cpu];
                self.sugov_update_single_freq(policy, sg_cpu, cpu, time, flags, idle_calls[cpu]);
            }
            Schedutil::PerfTold | Schedutil::EffectiveUtil | Schedutil::BoostedUtil | Schedutil::EffectivePerf => {
                let sg_cpu = &mut sugov.cpus[cpu];
                if policy.policy.fast_switch && policy.policy.adjust_perf && self.arch_scale_freq_invariant() {
                    self.sugov_update_single_perf(policy, sg_cpu, cpu, time, flags, idle_calls[cpu]);
                } else {
                    self.sugov_update_single_freq(policy, sg_cpu, cpu, time, flags, idle_calls[cpu]);
                }
            }
        }
    }

    fn arch_scale_freq_invariant(&self) -> bool {
        self.kernel.load.frequency != FrequencyInvariance::Unknown
    }

    /// cpufreq_schedutil.c: sugov_should_update_freq(). Whether enough time has passed, and this CPU may request a
    /// frequency.
    fn sugov_should_update_freq(&self, sg_policy: &mut SugovPolicy, time: u64) -> bool {
        let policy = &sg_policy.policy;
        let rules = &self.kernel.cpufreq;
        let asks_itself = policy.fast_switch || rules.sugov_remote == SugovRemote::Allowed;
        if asks_itself && !policy.dvfs_possible_from_any_cpu && !policy.cpus.contains(&self.this_cpu) {
            return false;
        }
        if sg_policy.work.work_in_progress && rules.sugov_busy == SugovBusy::Refused {
            return false;
        }
        if std::mem::take(&mut sg_policy.limits_changed) {
            sg_policy.need_freq_update = true;
            return true;
        }
        if sg_policy.need_freq_update && rules.sugov_limit == RateLimit::Frequencies {
            return true;
        }
        // All CPUs have one clock here; a runqueue's clock may be behind what another CPU's showed.
        time.saturating_sub(sg_policy.last_freq_update_time) >= sg_policy.freq_update_delay_ns
    }

    /// cpufreq_schedutil.c: get_next_freq().
    fn get_next_freq(&mut self, sg_policy: &mut SugovPolicy, util: u64, max: u64) -> u32 {
        self.path(Path::get_next_freq);
        let policy = &sg_policy.policy;
        let invariant = self.arch_scale_freq_invariant();
        let base = u64::from(if invariant { policy.cpuinfo_max_freq } else { policy.cur });
        let freq = match self.kernel.cpufreq.schedutil {
            Schedutil::RtDlMax
            | Schedutil::RtMax
            | Schedutil::LowestBoost
            | Schedutil::AllClasses
            | Schedutil::ByFrequency => (base + (base >> 2)) * util / max,
            Schedutil::PerfTold | Schedutil::EffectiveUtil | Schedutil::BoostedUtil => base * map_util_perf(util) / max,
            // The utilization contains the quarter of headroom; if it is relative to the current frequency, another is
            // added.
            Schedutil::EffectivePerf if invariant => base * util / max,
            Schedutil::EffectivePerf => (base + (base >> 2)) * util / max,
        };
        let freq = u32::try_from(freq).unwrap_or(NO_FREQ - 1);
        let keeps = sg_policy.next_freq != NO_FREQ && !sg_policy.need_freq_update;
        if freq == sg_policy.cached_raw_freq && keeps {
            return sg_policy.next_freq;
        }
        sg_policy.cached_raw_freq = freq;
        self.arch.cpufreq_driver_resolve_freq(policy.cpus[0], freq)
    }

    /// cpufreq_schedutil.c: sugov_update_next_freq() and the request to the driver; until v5.x sugov_update_commit().
    #[doc(alias = "sugov_update_commit")]
    fn sugov_update_next_freq(&mut self, sg_policy: &mut SugovPolicy, cpu: CpuId, time: u64, next_freq: u32) {
        sg_policy.need_freq_update = false;
        if sg_policy.next_freq == next_freq {
            return;
        }
        sg_policy.next_freq = next_freq;
        sg_policy.last_freq_update_time = time;
        if !sg_policy.policy.fast_switch {
            self.path(Path::sugov_deferred_update);
            return self.sugov_deferred_update(sg_policy);
        }
        self.path(Path::sugov_update_next_freq);
        sg_policy.policy.cur = self.arch.cpufreq_driver_fast_switch(self.this_cpu, cpu, next_freq);
    }

    /// cpufreq_schedutil.c: sugov_hold_freq(). Whether the CPU has not idled since the last call, so that a lower frequency
    /// would be premature.
    #[doc(alias = "sugov_cpu_is_busy")]
    fn sugov_hold_freq(sg_cpu: &mut SugovCpu, idle_calls: u64) -> bool {
        std::mem::replace(&mut sg_cpu.saved_idle_calls, idle_calls) == idle_calls
    }

    /// sched.h: cpu_bw_dl(). 1024 = a whole CPU.
    pub(crate) fn cpu_bw_dl(&self, cpu: CpuId) -> u64 {
        const BW_SHIFT: u32 = 20;
        (self.dl[cpu].running_bw * u64::from(SCHED_CAPACITY_SCALE)) >> BW_SHIFT
    }

    // Until v4.16 and for some time after.

    /// cpufreq_schedutil.c: sugov_get_util() and sugov_aggregate_util(): the utilization of fair tasks, and the bandwidth of
    /// deadline tasks.
    fn util_by_flags(&mut self, sg_cpu: &mut SugovCpu, cpu: CpuId) {
        self.path(Path::sugov_get_util);
        sg_cpu.util = self.cfs_rq[self.rq[cpu].cfs].avg.util_avg;
        sg_cpu.util_dl = match self.kernel.cpufreq.schedutil {
            Schedutil::RtDlMax => 0,
            _ => self.cpu_bw_dl(cpu),
        };
    }

    fn goes_fast(&self, flags: UpdateFlags) -> bool {
        flags.rt || flags.dl && self.kernel.cpufreq.schedutil == Schedutil::RtDlMax
    }

    /// cpufreq_schedutil.c: sugov_set_iowait_boost(). In kHz, starting from the lowest frequency.
    fn sugov_set_iowait_boost(&self, sg_cpu: &mut SugovCpu, policy: &CpufreqPolicy, time: u64) {
        if sg_cpu.flags.iowait {
            if sg_cpu.iowait_boost_pending {
                return;
            }
            sg_cpu.iowait_boost_pending = true;
            sg_cpu.iowait_boost = match sg_cpu.iowait_boost {
                0 => policy.min,
                boost => (boost << 1).min(policy.cpuinfo_max_freq),
            };
        } else if sg_cpu.iowait_boost != 0 && time.saturating_sub(sg_cpu.last_update) > self.tick_nsec {
            (sg_cpu.iowait_boost, sg_cpu.iowait_boost_pending) = (0, false);
        }
    }

    /// cpufreq_schedutil.c: sugov_iowait_boost() of that time. The greater of a utilization (as a pair: so much of so much)
    /// and the boost.
    fn boosted(sg_cpu: &mut SugovCpu, policy: &CpufreqPolicy, (util, max): (u64, u64)) -> (u64, u64) {
        if sg_cpu.iowait_boost == 0 {
            return (util, max);
        }
        if !std::mem::take(&mut sg_cpu.iowait_boost_pending) {
            sg_cpu.iowait_boost >>= 1;
            if sg_cpu.iowait_boost < policy.min {
                sg_cpu.iowait_boost = 0;
                return (util, max);
            }
        }
        let boost = (u64::from(sg_cpu.iowait_boost), u64::from(policy.cpuinfo_max_freq));
        if util * boost.1 < max * boost.0 { boost } else { (util, max) }
    }

    /// `sugov_update_single()`.
    fn sugov_update_single_by_flags(
        &mut self,
        sg_policy: &mut SugovPolicy,
        sg_cpu: &mut SugovCpu,
        cpu: CpuId,
        time: u64,
        flags: UpdateFlags,
        idle_calls: u64,
    ) {
        sg_cpu.flags = flags;
        self.sugov_set_iowait_boost(sg_cpu, &sg_policy.policy, time);
        sg_cpu.last_update = time;
        if !self.sugov_should_update_freq(sg_policy, time) {
            return;
        }
        let busy = Self::sugov_hold_freq(sg_cpu, idle_calls);
        let mut next = sg_policy.policy.cpuinfo_max_freq;
        if !self.goes_fast(flags) {
            self.util_by_flags(sg_cpu, cpu);
            let max = self.capacity_orig_of(cpu);
            let util = (sg_cpu.util + sg_cpu.util_dl).min(max);
            let (util, max) = Self::boosted(sg_cpu, &sg_policy.policy, (util, max));
            next = self.get_next_freq(sg_policy, util, max);
            if busy && next < sg_policy.next_freq && sg_policy.next_freq != NO_FREQ {
                next = sg_policy.next_freq;
                sg_policy.cached_raw_freq = 0;
            }
        }
        self.sugov_update_next_freq(sg_policy, cpu, time, next);
    }

    /// `sugov_update_shared()` and `sugov_next_freq_shared()`.
    fn sugov_update_shared_by_flags(
        &mut self,
        sg_policy: &mut SugovPolicy,
        cpus: &mut PerCpu<SugovCpu>,
        cpu: CpuId,
        time: u64,
        flags: UpdateFlags,
    ) {
        let sg_cpu = &mut cpus[cpu];
        self.util_by_flags(sg_cpu, cpu);
        sg_cpu.flags = flags;
        self.sugov_set_iowait_boost(sg_cpu, &sg_policy.policy, time);
        sg_cpu.last_update = time;
        if !self.sugov_should_update_freq(sg_policy, time) {
            return;
        }
        let mut highest = (0, 1);
        let mut fast = self.goes_fast(flags);
        for &other in &sg_policy.policy.cpus {
            let sg_cpu = &mut cpus[other];
            if fast {
                break;
            }
            // The CPU has been idle for a while; otherwise its average would have been reported.
            if time.saturating_sub(sg_cpu.last_update) > self.tick_nsec {
                (sg_cpu.iowait_boost, sg_cpu.iowait_boost_pending, sg_cpu.util) = (0, false, 0);
                if sg_cpu.util_dl == 0 {
                    continue;
                }
            }
            fast = self.goes_fast(sg_cpu.flags);
            let max = self.capacity_orig_of(other);
            let util = (sg_cpu.util + sg_cpu.util_dl).min(max);
            if util * highest.1 > max * highest.0 {
                highest = (util, max);
            }
            highest = Self::boosted(sg_cpu, &sg_policy.policy, highest);
        }
        let next = match fast {
            true => sg_policy.policy.cpuinfo_max_freq,
            false => self.get_next_freq(sg_policy, highest.0, highest.1),
        };
        self.sugov_update_next_freq(sg_policy, cpu, time, next);
    }

    // Later kernels.

    /// cpufreq_schedutil.c: sugov_get_util(), with the iowait boost applied.
    fn sugov_get_util(&mut self, sg_cpu: &mut SugovCpu, least: u32, cpu: CpuId, time: u64) {
        self.path(Path::sugov_get_util);
        let max_cap = self.capacity_orig_of(cpu);
        match self.kernel.cpufreq.schedutil {
            Schedutil::RtDlMax
            | Schedutil::RtMax
            | Schedutil::LowestBoost
            | Schedutil::AllClasses
            | Schedutil::ByFrequency
            | Schedutil::PerfTold
            | Schedutil::EffectiveUtil
            | Schedutil::BoostedUtil => {
                sg_cpu.bw_min = self.cpu_bw_dl(cpu);
                let boosted = self.kernel.cpufreq.schedutil == Schedutil::BoostedUtil;
                let util_cfs = if boosted { self.cpu_util_cfs_boost(cpu) } else { self.cpu_util_cfs(cpu) };
                let util = self.frequency_util(cpu, util_cfs, None);
                sg_cpu.util = (util + sg_cpu.bw_min).min(max_cap);
                let boost = self.sugov_iowait_apply(sg_cpu, least, time, max_cap);
                if boost != 0 {
                    let clamped = !matches!(
                        self.kernel.cpufreq.schedutil,
                        Schedutil::LowestBoost | Schedutil::AllClasses | Schedutil::ByFrequency
                    );
                    let boost = if clamped { self.uclamp_rq_util_with(cpu, boost, None) } else { boost };
                    sg_cpu.util = sg_cpu.util.max(boost);
                }
            }
            Schedutil::EffectivePerf => {
                let boost = self.sugov_iowait_apply(sg_cpu, least, time, max_cap);
                let perf = self.governor_perf(cpu, self.cpu_util_cfs_boost(cpu), boost, None);
                (sg_cpu.bw_min, sg_cpu.util) = (perf.min, perf.wanted);
            }
        }
    }

    /// cpufreq_schedutil.c: sugov_update_single_common(). Whether the frequency has to be reconsidered.
    fn sugov_update_single_common(
        &mut self,
        sg_policy: &mut SugovPolicy,
        sg_cpu: &mut SugovCpu,
        cpu: CpuId,
        time: u64,
        flags: UpdateFlags,
    ) -> bool {
        let least = self.least_boost(&sg_policy.policy);
        self.sugov_iowait_boost(sg_cpu, least, time, flags);
        sg_cpu.last_update = time;
        self.ignore_dl_rate_limit(sg_policy, sg_cpu, cpu);
        if !self.sugov_should_update_freq(sg_policy, time) {
            return false;
        }
        self.sugov_get_util(sg_cpu, least, cpu, time);
        true
    }

    /// cpufreq_schedutil.c: ignore_dl_rate_limit(). Deadline tasks that need more get it at once.
    fn ignore_dl_rate_limit(&self, sg_policy: &mut SugovPolicy, sg_cpu: &SugovCpu, cpu: CpuId) {
        if self.cpu_bw_dl(cpu) > sg_cpu.bw_min {
            sg_policy.limits_changed = true;
        }
    }

    /// Whether a busy CPU keeps its frequency whatever clamps and limits say.
    fn holds_always(&self) -> bool {
        matches!(self.kernel.cpufreq.schedutil, Schedutil::ByFrequency | Schedutil::PerfTold)
    }

    /// cpufreq_schedutil.c: sugov_update_single_freq().
    fn sugov_update_single_freq(
        &mut self,
        sg_policy: &mut SugovPolicy,
        sg_cpu: &mut SugovCpu,
        cpu: CpuId,
        time: u64,
        flags: UpdateFlags,
        idle_calls: u64,
    ) {
        let forgets = matches!(self.kernel.cpufreq.schedutil, Schedutil::LowestBoost | Schedutil::AllClasses);
        let cached_freq = if forgets { 0 } else { sg_policy.cached_raw_freq };
        if !self.sugov_update_single_common(sg_policy, sg_cpu, cpu, time, flags) {
            return;
        }
        let mut next = self.get_next_freq(sg_policy, sg_cpu.util, self.capacity_orig_of(cpu));
        let always = self.holds_always();
        let may_hold = always || if forgets { !sg_policy.need_freq_update } else { !self.uclamp_rq_is_capped(cpu) };
        let holds = may_hold && Self::sugov_hold_freq(sg_cpu, idle_calls);
        let chosen = sg_policy.next_freq != NO_FREQ;
        if holds && chosen && next < sg_policy.next_freq && (always || !sg_policy.need_freq_update) {
            next = sg_policy.next_freq;
            sg_policy.cached_raw_freq = cached_freq;
        }
        self.sugov_update_next_freq(sg_policy, cpu, time, next);
    }

    /// cpufreq_schedutil.c: sugov_update_single_perf().
    fn sugov_update_single_perf(
        &mut self,
        sg_policy: &mut SugovPolicy,
        sg_cpu: &mut SugovCpu,
        cpu: CpuId,
        time: u64,
        flags: UpdateFlags,
        idle_calls: u64,
    ) {
        let prev_util = sg_cpu.util;
        if !self.sugov_update_single_common(sg_policy, sg_cpu, cpu, time, flags) {
            return;
        }
        let clamps = !self.holds_always() && self.uclamp_rq_is_capped(cpu);
        if !clamps && Self::sugov_hold_freq(sg_cpu, idle_calls) {
            sg_cpu.util = sg_cpu.util.max(prev_util);
        }
        let perf = |util: u64| match self.kernel.cpufreq.schedutil {
            Schedutil::EffectivePerf => util,
            _ => map_util_perf(util),
        };
        let (min, target, max_cap) = (perf(sg_cpu.bw_min), perf(sg_cpu.util), self.capacity_orig_of(cpu));
        self.arch.cpufreq_driver_adjust_perf(self.this_cpu, cpu, min, target, max_cap);
        sg_policy.last_freq_update_time = time;
    }

    /// cpufreq_schedutil.c: sugov_update_shared() and sugov_next_freq_shared().
    #[doc(alias = "sugov_next_freq_shared")]
    fn sugov_update_shared(
        &mut self,
        sg_policy: &mut SugovPolicy,
        cpus: &mut PerCpu<SugovCpu>,
        cpu: CpuId,
        time: u64,
        flags: UpdateFlags,
    ) {
        let (sg_cpu, least) = (&mut cpus[cpu], self.least_boost(&sg_policy.policy));
        self.sugov_iowait_boost(sg_cpu, least, time, flags);
        sg_cpu.last_update = time;
        self.ignore_dl_rate_limit(sg_policy, sg_cpu, cpu);
        if !self.sugov_should_update_freq(sg_policy, time) {
            return;
        }
        let mut highest = (0, 1);
        for &other in &sg_policy.policy.cpus {
            self.sugov_get_util(&mut cpus[other], least, other, time);
            let (util, max) = (cpus[other].util, self.capacity_orig_of(other));
            if util * highest.1 > max * highest.0 {
                highest = (util, max);
            }
        }
        let next = self.get_next_freq(sg_policy, highest.0, highest.1);
        self.sugov_update_next_freq(sg_policy, cpu, time, next);
    }
}

#[cfg(test)]
mod tests;
