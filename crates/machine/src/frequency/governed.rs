//! How governors come to be called, and how what they choose comes to the hardware.

use super::policy::Relation;
use super::rules::Sampling;
use super::{Driver, Frequency, FullSpeed};
use sched::cpufreq_schedutil::CpufreqPolicy;
use units::{Capacity, CpuId, Ns, Ps};

/// 1024 = as fast as it can for long.
const FULL: u64 = 1024;

/// CPUs that are governed together.
pub(super) struct Group {
    pub cpus: Vec<CpuId>,
    /// `scaling_cur_freq`: what was asked for last, in kHz.
    pub cur: u32,
    pub dbs: super::dbs::PolicyDbsInfo,
}

impl Frequency {
    /// The scheduler tells of a CPU's utilization ([`sched::arch::Arch::cpufreq_update_util`]).
    pub fn update_util(&mut self, by: CpuId, cpu: CpuId, time: Ns, iowait: bool, now: Ps) {
        if self.pstate_chooses(Sampling::Callbacks) {
            self.intel_pstate_update_util(by, cpu, time, iowait, now);
        } else if self.dbs_chooses(Sampling::Callbacks) {
            self.dbs_update_util_handler(by, cpu, time, now);
        } else if self.boosts_hardware() {
            self.intel_pstate_update_util_hwp(by, cpu, time, iowait, now);
        }
    }

    /// The timers that a tick of `cpu` looks at.
    pub fn timers(&mut self, cpu: CpuId, now: Ps) {
        if self.pstate_chooses(Sampling::Timers) {
            self.intel_pstate_timer_func(cpu, now);
        } else if self.dbs_chooses(Sampling::Timers) {
            self.dbs_timer_handler(cpu, now);
        }
    }

    /// Whether the scheduler is to call [`Frequency::update_util`].
    pub fn wants_updates(&self) -> bool {
        self.pstate_chooses(Sampling::Callbacks) || self.dbs_chooses(Sampling::Callbacks) || self.boosts_hardware()
    }

    /// cpufreq.c: __cpufreq_driver_target(), of all CPUs of a policy.
    pub(super) fn driver_target(&mut self, number: usize, khz: u32, relation: Relation, now: Ps) {
        let limits = self.policy.limits;
        let khz = khz.clamp(limits.min_khz, limits.max_khz.max(limits.min_khz));
        let resolved = self.policy.driver.resolve(&self.model, khz, relation);
        if self.policies[number].cur != resolved {
            self.switch(number, resolved, now);
        }
    }

    fn switch(&mut self, number: usize, khz: u32, now: Ps) {
        self.policies[number].cur = khz;
        let vote = self.policy.as_vote(&self.model, khz);
        for index in 0..self.policies[number].cpus.len() {
            self.vote(self.policies[number].cpus[index], vote, now);
        }
    }

    /// cpufreq.c: what cpufreq_driver_resolve_freq() does.
    pub fn resolve(&self, khz: u32) -> u32 {
        let limits = self.policy.limits;
        let khz = khz.clamp(limits.min_khz, limits.max_khz.max(limits.min_khz));
        self.policy.driver.resolve(&self.model, khz, Relation::Lowest)
    }

    /// cpufreq.c: what cpufreq_driver_fast_switch() does. What is asked for.
    pub fn fast_switch(&mut self, cpu: CpuId, khz: u32, now: Ps) -> u32 {
        let khz = self.resolve(khz);
        self.switch(self.cpus[cpu.index()].policy, khz, now);
        khz
    }

    /// cpufreq.c: cpufreq_driver_adjust_perf(): shares of a CPU's capacity instead of frequencies.
    pub fn adjust_perf(&mut self, cpu: CpuId, min: u64, target: u64, capacity: u64, now: Ps) {
        let share = u64::from(self.model.max_khz()) * target.max(min).min(capacity) / capacity.max(1);
        self.fast_switch(cpu, share as u32, now);
    }

    /// The policies, as schedutil starts with them.
    pub fn cpufreq_policies(&self) -> Vec<CpufreqPolicy> {
        let hardware = self.policy.hardware && self.policy.driver == Driver::IntelCpufreq;
        let policy = |group: &Group| CpufreqPolicy {
            cpus: group.cpus.clone(),
            min: self.policy.limits.min_khz,
            cpuinfo_max_freq: self.policy.driver.max_khz(&self.model),
            cur: group.cur,
            rate_limit_us: self.policy.rate_limit_us,
            dvfs_possible_from_any_cpu: self.policy.driver.any_cpu_asks(),
            adjust_perf: hardware || self.policy.driver == Driver::AmdPstate,
        };
        self.policies.iter().map(policy).collect()
    }

    /// arch/x86/kernel/cpu/aperfmperf.c: scale_freq_tick(): how fast `cpu` was since its last tick.
    pub fn scale_freq_tick(&mut self, cpu: CpuId, now: Ps) {
        let khz = self.khz(cpu);
        let ratio = self.max_freq_ratio();
        let base = u64::from(self.model.base_khz);
        let this = &mut self.cpus[cpu.index()];
        let counters = this.clock.read(now, khz);
        let cycles = counters.cycles - this.scaled_at.cycles;
        let mperf = counters.unhalted.saturating_sub(this.scaled_at.unhalted).ns().0 * base / 1_000_000;
        this.scaled_at = counters;
        if mperf > 0 {
            this.scale = (cycles * FULL * FULL / (mperf * ratio)).min(FULL) as Capacity;
        }
    }

    /// The frequency that counts as full speed, 1024 the base frequency: arch/x86/kernel/cpu/aperfmperf.c: intel_set_max_freq_ratio(),
    /// arch/x86/kernel/acpi/cppc.c: amd_set_max_freq_ratio(). What the hardware declares, whatever holds it back.
    fn max_freq_ratio(&self) -> u64 {
        let base = u64::from(self.model.base_khz);
        let ratio = |khz: u32| u64::from(khz) * FULL / base;
        let by_driver = match self.policy.driver {
            Driver::AcpiCpufreq | Driver::IntelPstate | Driver::IntelCpufreq => FullSpeed::FourCores,
            Driver::AmdPstate | Driver::AmdPstateEpp => FullSpeed::Halfway,
            Driver::CppcCpufreq | Driver::Scmi => FullSpeed::Highest,
        };
        match self.model.full_speed.unwrap_or(by_driver) {
            FullSpeed::FourCores if !self.policy.limits.turbo => FULL,
            FullSpeed::FourCores => ratio(self.model.turbo_khz.get(3).copied().unwrap_or(self.model.max_khz())),
            FullSpeed::Halfway => (ratio(self.model.max_khz()) + FULL) / 2,
            FullSpeed::Highest if !self.policy.limits.turbo => FULL,
            FullSpeed::Highest => ratio(self.model.max_khz()),
        }
    }

    /// arch_scale_freq_capacity().
    #[inline]
    pub fn scale(&self, cpu: CpuId) -> Capacity {
        self.cpus[cpu.index()].scale
    }
}
