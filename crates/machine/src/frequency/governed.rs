//! How governors are called, and how their choices reach the hardware.

use super::model::Band;
use super::policy::{Limits, Relation};
use super::rules::Sampling;
use super::{Driver, Follower, Frequency, FullSpeed};
use sched::cpu_topology::SCHED_CAPACITY_SCALE;
use sched::cpufreq_schedutil::CpufreqPolicy;
use units::{Capacity, CpuId, Ns, Ps};

/// Full speed: as fast as the CPU can be for long.
const FULL: u64 = SCHED_CAPACITY_SCALE as u64;

/// A frequency that a driver is asked for, in kHz, and how it may round it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wish {
    pub khz: u32,
    pub relation: Relation,
}

/// CPUs that are governed together: a cpufreq policy.
pub(super) struct Group {
    pub cpus: Vec<CpuId>,
    /// The number of its CPUs' band, and the limits that its files show.
    pub band: usize,
    pub limits: Limits,
    /// `scaling_cur_freq`: the frequency asked for last, in kHz.
    pub cur: u32,
    /// `scaling_setspeed`, while the governor is userspace.
    pub setspeed: u32,
    pub dbs: super::dbs::PolicyDbsInfo,
}

impl Frequency {
    /// The scheduler reports a CPU's utilization ([`sched::arch::Arch::cpufreq_update_util`]). Returns the policy whose
    /// sample `by` is to leave to a kworker, by an interrupt to itself.
    pub fn update_util(&mut self, by: CpuId, cpu: CpuId, time: Ns, iowait: bool, now: Ps) -> Option<u16> {
        if self.pstate_chooses(Sampling::Callbacks) {
            self.intel_pstate_update_util(by, cpu, time, iowait, now);
        } else if self.dbs_chooses(Sampling::Callbacks) {
            return self.dbs_update_util_handler(by, cpu, time);
        } else if self.policy.boosts_hardware() {
            self.intel_pstate_update_util_hwp(by, cpu, time, iowait, now);
        }
        None
    }

    /// A tick of `cpu`, which drives the timers of samples. `nice`: it interrupts a task with a nice level above 0, in
    /// user mode. Returns the policy, if any, whose sample is left to a kworker of `cpu`.
    pub fn tick(&mut self, cpu: CpuId, nice: bool, now: Ps) -> Option<u16> {
        if nice {
            // account_user_time()
            self.cpus[cpu.index()].nice += self.policy.tick;
        }
        if self.pstate_chooses(Sampling::Timers) || self.applied_by_timer {
            self.intel_pstate_timer_func(cpu, now);
        } else if self.dbs_chooses(Sampling::Timers) {
            return self.dbs_timer_handler(cpu, now);
        }
        None
    }

    /// The CPUs of policy `number`.
    pub fn policy_cpus(&self, number: usize) -> &[CpuId] {
        &self.policies[number].cpus
    }

    /// Whether a governor leaves its samples to kworkers.
    pub fn leaves_samples(&self) -> bool {
        self.policy.samples_idle_time()
    }

    /// Whether the scheduler has to call [`Frequency::update_util`].
    pub fn wants_updates(&self) -> bool {
        self.policy.follower() == Follower::Driver
    }

    /// cpufreq.c: what __cpufreq_driver_target() makes of a request. `None` if the policy already has that frequency.
    ///
    /// Differs: in the kernel, drivers that need to know of changed limits (CPUFREQ_NEED_UPDATE_LIMITS) are asked even
    /// for the frequency that they already have.
    pub(super) fn another(&self, number: usize, khz: u32, relation: Relation) -> Option<Wish> {
        let khz = self.resolve_of(number, khz, relation);
        (self.policies[number].cur != khz).then_some(Wish { khz, relation })
    }

    /// A thread asks the driver for the frequency that schedutil wants for the policy of `cpu`. Returns the policy's
    /// number, and the request if it is for another frequency.
    pub fn wanted(&self, cpu: CpuId, khz: u32) -> (usize, Option<Wish>) {
        let number = self.cpus[cpu.index()].policy;
        (number, self.another(number, khz, Relation::Lowest))
    }

    /// `scaling_cur_freq` of policy `number`.
    pub fn cur(&self, number: usize) -> u32 {
        self.policies[number].cur
    }

    /// The driver's `target_index()` or `target()`, for all CPUs of a policy. Returns until when it waits.
    pub fn driver_target(&mut self, number: usize, wish: Wish, now: Ps) -> Ps {
        self.switch(number, wish, now);
        if self.policy.driver.waits() { self.changes_at(self.policies[number].cpus[0], now) } else { now }
    }

    fn switch(&mut self, number: usize, wish: Wish, now: Ps) {
        let band = self.band_of(number);
        let limits = self.policies[number].limits;
        let (asked, cur) = self.policy.driver.granted(&self.model, band, limits, wish.khz, wish.relation);
        let vote = self.policy.as_vote(band, asked);
        self.policies[number].cur = cur;
        for index in 0..self.policies[number].cpus.len() {
            self.vote(self.policies[number].cpus[index], vote, now);
        }
        self.arch_set_freq_scale(number);
    }

    /// arch_topology.c: topology_set_freq_scale(): where no counters show how fast CPUs are, the scale is the frequency
    /// asked for last, as a share of the policy's highest. This is the case where the driver has a listed table.
    #[doc(alias = "topology_set_freq_scale")]
    pub(super) fn arch_set_freq_scale(&mut self, number: usize) {
        let band = self.band_of(number);
        if self.policy.driver.freq_table(band).is_empty() {
            return;
        }
        let (cur, max) = (u64::from(self.policies[number].cur), u64::from(self.policy.driver.max_khz(band)));
        for cpu in &self.policies[number].cpus {
            self.cpus[cpu.index()].scale = (cur * FULL / max) as Capacity;
        }
    }

    /// The band of a policy's CPUs.
    pub(super) fn band_of(&self, number: usize) -> &Band {
        &self.model.bands[self.policies[number].band]
    }

    fn resolve_of(&self, number: usize, khz: u32, relation: Relation) -> u32 {
        self.policy.driver.resolve(&self.model, self.band_of(number), self.policies[number].limits, khz, relation)
    }

    /// cpufreq.c: what cpufreq_driver_resolve_freq() does.
    pub fn resolve(&self, cpu: CpuId, khz: u32) -> u32 {
        self.resolve_of(self.cpus[cpu.index()].policy, khz, Relation::LowestEfficient)
    }

    /// cpufreq.c: what cpufreq_driver_fast_switch() does. Returns the frequency that the policy then has.
    pub fn fast_switch(&mut self, cpu: CpuId, khz: u32, now: Ps) -> u32 {
        let khz = self.resolve(cpu, khz);
        let number = self.cpus[cpu.index()].policy;
        self.switch(number, Wish { khz, relation: Relation::Lowest }, now);
        self.policies[number].cur
    }

    /// cpufreq.c: cpufreq_driver_adjust_perf(): the request is in shares of a CPU's capacity instead of frequencies.
    ///
    /// Differs: under amd-pstate of v6.1 `boost` = 0 does not bound them.
    #[doc(alias = "intel_cpufreq_adjust_perf")]
    #[doc(alias = "amd_pstate_adjust_perf")]
    pub fn adjust_perf(&mut self, cpu: CpuId, min: u64, target: u64, capacity: u64, now: Ps) {
        let band = self.band_of(self.cpus[cpu.index()].policy);
        let highest = match self.policy.driver {
            // HWP_GUARANTEED_PERF, if that is the policy's highest.
            Driver::IntelCpufreq => self.policy.cpuinfo_max_khz(&self.model, band),
            _ => band.max_khz(),
        };
        let share = (u64::from(highest) * target.max(min).min(capacity)).div_ceil(capacity.max(1));
        self.fast_switch(cpu, share as u32, now);
    }

    /// The policies as schedutil begins with them.
    pub fn cpufreq_policies(&self) -> Vec<CpufreqPolicy> {
        let hardware = self.policy.hardware && self.policy.driver == Driver::IntelCpufreq;
        let policy = |group: &Group| CpufreqPolicy {
            cpus: group.cpus.clone(),
            min: group.limits.min_khz,
            cpuinfo_min_freq: self.policy.driver.min_khz(&self.model.bands[group.band]),
            cpuinfo_max_freq: self.policy.cpuinfo_max_khz(&self.model, &self.model.bands[group.band]),
            cur: group.cur,
            rate_limit_us: self.policy.rate_limit_us,
            dvfs_possible_from_any_cpu: self.policy.driver.any_cpu_asks(self.policy.rules),
            fast_switch: self.policy.driver.switches_fast(&self.model, self.policy.rules),
            adjust_perf: hardware || self.policy.driver == Driver::AmdPstate,
        };
        self.policies.iter().map(policy).collect()
    }

    /// arch/x86/kernel/cpu/aperfmperf.c: scale_freq_tick(): how fast `cpu` was since its last tick.
    pub fn scale_freq_tick(&mut self, cpu: CpuId, now: Ps) {
        let band = self.band_of(self.cpus[cpu.index()].policy);
        if !self.policy.driver.freq_table(band).is_empty() {
            return;
        }
        let (ratio, base) = self.max_freq_ratio(cpu);
        let this = &mut self.cpus[cpu.index()];
        let counters = this.clock.read(now);
        // A path reads the counters at its end, ahead of frequency changes that come before its end. So an earlier
        // reading may have counted more cycles than there were.
        let cycles = counters.cycles.saturating_sub(this.scaled_at.cycles);
        let mperf = counters.unhalted.saturating_sub(this.scaled_at.unhalted).ns().0 * base / 1_000_000;
        this.scaled_at = counters;
        if mperf > 0 {
            this.scale = (cycles * FULL * FULL / (mperf * ratio)).min(FULL) as Capacity;
        }
    }

    /// The frequency that counts as full speed, where 1024 is the base frequency; and that base frequency.
    /// arch/x86/kernel/cpu/aperfmperf.c: intel_set_max_freq_ratio(), arch/x86/kernel/acpi/cppc.c:
    /// amd_set_max_freq_ratio(). It is what the hardware declares, whatever limits it at the moment. On x86 both are
    /// the boot CPU's, and measure all kinds of cores; elsewhere each CPU has its own.
    fn max_freq_ratio(&self, cpu: CpuId) -> (u64, u64) {
        let full_speed = self.policy.driver.full_speed(&self.model);
        let own = self.band_of(self.cpus[cpu.index()].policy);
        let band = if full_speed == FullSpeed::Highest { own } else { &self.model.bands[0] };
        let base = u64::from(band.base_khz);
        let ratio = |khz: u32| u64::from(khz) * FULL / base;
        let ratio = match full_speed {
            FullSpeed::FourCores | FullSpeed::Highest if self.base_is_full_speed => FULL,
            FullSpeed::FourCores => ratio(band.turbo_khz.get(3).copied().unwrap_or(band.max_khz())),
            FullSpeed::Halfway => (ratio(band.max_khz()) + FULL) / 2,
            FullSpeed::Highest => ratio(band.max_khz()),
        };
        (ratio, base)
    }

    /// arch_scale_freq_capacity().
    #[inline]
    pub fn scale(&self, cpu: CpuId) -> Capacity {
        self.cpus[cpu.index()].scale
    }

    /// Whether the driver calls arch_set_freq_scale() by itself. From v5.10 on cpufreq's core does for all.
    pub fn driver_tells(&self) -> bool {
        matches!(self.policy.driver, Driver::Scmi | Driver::CpufreqDt)
    }
}
