//! What an administrator writes to cpufreq's files while the kernel runs. A write goes to every policy.
//!
//! Differs: since v5.3 a kworker applies limits (`policy->update`), here the writer does. The writer does not wait for a
//! driver that sleeps until the hardware is done. A CPU that is offline meanwhile comes back with what the others have.

use super::model::Model;
use super::policy::{Limits, Preference, Relation};
use super::rules::{NoTurboScale, Sampling};
use super::{Driver, Frequency, Governor, Policy};
use units::{CpuId, Ps};

/// The files, as far as writing to them differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum File {
    /// `scaling_governor`
    Governor,
    /// `scaling_min_freq`, `scaling_max_freq`
    Limits,
    /// `scaling_setspeed`
    Setspeed,
    /// `no_turbo`, `boost`
    Turbo,
    HwpDynamicBoost,
    /// `rate_limit_us`
    RateLimit,
    /// `sampling_rate`
    SamplingRate,
    /// `sampling_down_factor`
    SamplingDownFactor,
    /// `ignore_nice_load`, `io_is_busy`
    IdleTime,
    /// `powersave_bias`
    PowersaveBias,
    /// Others, which are looked at when they matter: `energy_performance_preference`, and thresholds.
    Value,
}

/// Who is told of CPUs' utilization.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Follower {
    Nobody,
    /// A driver, or the common code of ondemand and conservative.
    Driver,
    Schedutil,
}

impl Policy {
    /// cpufreq.c: store_scaling_governor(): the settings once another governor has started. Its tunables are as after
    /// boot: all policies leave the old governor, and with the last of them go its tunables.
    ///
    /// amd-pstate-epp asks for 0 under `performance`, and reads that back afterwards; intel_pstate keeps the preference.
    #[doc(alias = "store_scaling_governor")]
    pub fn switched_to(&self, model: &Model, governor: Governor) -> Policy {
        if governor == self.governor {
            return self.clone();
        }
        let left_performance = self.driver == Driver::AmdPstateEpp && self.governor == Governor::Performance;
        let hz = (1_000_000_000_000 / self.tick.0) as u32;
        Policy {
            limits: self.limits,
            preference: if left_performance { Preference(0) } else { self.preference },
            hardware: self.hardware,
            hwp_dynamic_boost: self.hwp_dynamic_boost,
            ..Policy::new(model, self.driver, governor, self.rules, hz)
        }
    }

    /// cpufreq.c: cpufreq_boost_trigger_state(), and intel_pstate.c: store_no_turbo(), for the settings. Where the switch
    /// of boost changes the range of a policy by its own request for a highest frequency, what was written there is gone.
    #[doc(alias = "store_no_turbo")]
    #[doc(alias = "cpufreq_boost_set_sw")]
    #[doc(alias = "cppc_cpufreq_set_boost")]
    pub fn cpufreq_boost_trigger_state(&mut self, turbo: bool) {
        let overwrites = matches!(self.driver, Driver::CppcCpufreq | Driver::Scmi | Driver::CpufreqDt);
        if overwrites && turbo != self.limits.turbo {
            self.limits.max_khz = u32::MAX;
        }
        self.limits.turbo = turbo;
    }

    /// Who is told of utilization.
    pub fn follower(&self) -> Follower {
        let callbacks = self.rules.sampling == Sampling::Callbacks;
        if self.governor == Governor::Schedutil {
            Follower::Schedutil
        } else if callbacks && (self.pstate_chooses() || self.samples_idle_time()) || self.boosts_hardware() {
            Follower::Driver
        } else {
            Follower::Nobody
        }
    }

    /// Whether the driver raises the hardware's lowest choice for tasks that waited for a device.
    pub(super) fn boosts_hardware(&self) -> bool {
        self.is_autonomous() && self.hwp_dynamic_boost
    }

    fn is_intels(&self) -> bool {
        matches!(self.driver, Driver::IntelPstate | Driver::IntelCpufreq)
    }
}

impl Frequency {
    /// A file has been written: from `now` on all files show what `policy` says. `iowait`: CPUs whose tasks wait for a
    /// device. Governors that leave their samples to kworkers have been stopped before ([`Frequency::dbs_stop`]).
    pub fn store(&mut self, file: File, policy: Policy, iowait: &[CpuId], now: Ps) {
        let before = std::mem::replace(&mut self.policy, policy);
        let another = before.governor != self.policy.governor;
        match file {
            File::Governor | File::Limits => self.set_policies(&before, another, iowait, now),
            File::Turbo => self.turbo_switched(&before, iowait, now),
            File::HwpDynamicBoost => self.set_policies(&before, false, iowait, now),
            _ => (0..self.policies.len()).for_each(|number| self.tunable_stored(file, number, iowait, now)),
        }
    }

    fn set_policies(&mut self, before: &Policy, another: bool, iowait: &[CpuId], now: Ps) {
        for number in 0..self.policies.len() {
            self.cpufreq_set_policy(number, before, another, iowait, now);
        }
    }

    /// cpufreq.c: cpufreq_set_policy(): verifies the limits, and tells the driver of them and of its policy, or starts
    /// another governor, or lets the same one apply the limits.
    fn cpufreq_set_policy(&mut self, number: usize, before: &Policy, another: bool, iowait: &[CpuId], now: Ps) {
        let limits = self.policy.limits_of(&self.model, self.band_of(number));
        self.policies[number].limits = limits;
        if self.policy.driver.is_active() {
            return self.setpolicy(number, before.governor, now);
        }
        if another {
            match self.policy.governor {
                Governor::Userspace => self.policies[number].setspeed = self.policies[number].cur,
                Governor::Ondemand | Governor::Conservative => {
                    self.cpufreq_dbs_governor_start(number, iowait, now);
                }
                Governor::Performance | Governor::Powersave | Governor::Schedutil => {}
            }
        }
        self.cpufreq_governor_limits(number, iowait, now);
    }

    /// cpufreq.c: cpufreq_governor_limits(): what each governor's limits() does. schedutil's part in the scheduler is
    /// [`sched::cpufreq::FollowsGovernors`].
    #[doc(alias = "cpufreq_gov_performance_limits")]
    #[doc(alias = "cpufreq_userspace_policy_limits")]
    fn cpufreq_governor_limits(&mut self, number: usize, iowait: &[CpuId], now: Ps) {
        let Limits { min_khz, max_khz, .. } = self.policies[number].limits;
        match self.policy.governor {
            Governor::Performance => self.ask(number, max_khz, Relation::Highest, now),
            Governor::Powersave => self.ask(number, min_khz, Relation::Lowest, now),
            Governor::Userspace => match self.policies[number].setspeed {
                above if above > max_khz => self.ask(number, max_khz, Relation::Highest, now),
                setspeed => self.ask(number, setspeed.max(min_khz), Relation::Lowest, now),
            },
            Governor::Ondemand | Governor::Conservative => self.cpufreq_dbs_governor_limits(number, iowait, now),
            Governor::Schedutil if self.policy.driver.switches_fast(&self.model, self.policy.rules) => {}
            Governor::Schedutil => self.cpufreq_policy_apply_limits(number, now),
        }
    }

    /// cpufreq.h: cpufreq_policy_apply_limits().
    pub(super) fn cpufreq_policy_apply_limits(&mut self, number: usize, now: Ps) {
        let Limits { min_khz, max_khz, .. } = self.policies[number].limits;
        let cur = self.policies[number].cur;
        if max_khz < cur {
            self.ask(number, max_khz, Relation::HighestEfficient, now);
        } else if min_khz > cur {
            self.ask(number, min_khz, Relation::LowestEfficient, now);
        }
    }

    /// The policy asks its driver, as cpufreq.c's __cpufreq_driver_target() does for the process that writes.
    pub(super) fn ask(&mut self, number: usize, khz: u32, relation: Relation, now: Ps) {
        if let Some(wish) = self.another(number, khz, relation) {
            self.driver_target(number, wish, now);
        }
    }

    /// intel_pstate.c: intel_pstate_set_policy(), amd-pstate.c: amd_pstate_epp_set_policy(). Where hardware chooses it is
    /// told its range. Where the driver chooses, limits count at its next sample; in v4.5 a new policy does, too.
    #[doc(alias = "intel_pstate_set_policy")]
    #[doc(alias = "amd_pstate_epp_set_policy")]
    fn setpolicy(&mut self, number: usize, before: Governor, now: Ps) {
        let timers = self.policy.rules.sampling == Sampling::Timers;
        let performance = self.policy.governor == Governor::Performance;
        for index in 0..self.policies[number].cpus.len() {
            let cpu = self.policies[number].cpus[index];
            self.cpus[cpu.index()].boost = Default::default();
            let (floor, ceiling) = (self.hardware_floor(cpu), self.ceiling_of(cpu));
            let vote = self.cpus[cpu.index()].vote;
            if self.policy.is_autonomous() {
                self.vote(cpu, vote.clamp(floor, ceiling.max(floor)), now);
            } else if timers {
                self.applied_by_timer = true;
            } else if performance {
                self.vote(cpu, ceiling, now);
            } else if before == Governor::Performance {
                // intel_pstate_set_update_util_hook(): the first sample has none to compare with.
                self.cpus[cpu.index()].pstate.begin_anew();
            }
        }
    }

    /// What the switch of turbo does beside the settings. acpi-cpufreq's is a switch of the hardware's, and acts at once;
    /// with other drivers it changes what policies may ask for.
    fn turbo_switched(&mut self, before: &Policy, iowait: &[CpuId], now: Ps) {
        if before.limits.turbo == self.policy.limits.turbo {
            return;
        }
        let turbo = self.policy.limits.turbo;
        if self.policy.is_intels() {
            self.hardware_turbo = true;
            if self.policy.rules.no_turbo_scale == NoTurboScale::Follows {
                self.base_is_full_speed = self.policy.base_is_full_speed(&self.model);
            }
        } else {
            self.hardware_turbo = turbo;
            self.base_is_full_speed = self.policy.base_is_full_speed(&self.model);
        }
        if self.policy.driver == Driver::AcpiCpufreq {
            (0..self.policies.len()).for_each(|number| self.ask_again(number, now));
        } else {
            self.set_policies(before, false, iowait, now);
        }
        (0..self.packages.len()).for_each(|package| self.active_changed(package, now));
    }

    /// The hardware makes something else of what a policy has asked it for.
    fn ask_again(&mut self, number: usize, now: Ps) {
        let limits = self.policies[number].limits;
        self.policies[number].limits = Limits { turbo: self.policy.limits.turbo, ..limits };
        let vote = self.policy.as_vote(self.band_of(number), self.policies[number].cur);
        for index in 0..self.policies[number].cpus.len() {
            self.vote(self.policies[number].cpus[index], vote, now);
        }
    }

    /// A file of the governor's has been written, as far as that does more than to set a value.
    fn tunable_stored(&mut self, file: File, number: usize, iowait: &[CpuId], now: Ps) {
        match file {
            File::Setspeed => {
                // cpufreq_set() of cpufreq_userspace.c
                let khz = self.policy.setspeed_khz.unwrap_or(self.policies[number].cur);
                self.policies[number].setspeed = khz;
                self.ask(number, khz, Relation::Lowest, now);
            }
            File::SamplingRate => self.sampling_rate_store(number, now),
            File::IdleTime => self.gov_update_cpu_data(number, iowait, now),
            File::SamplingDownFactor => self.policies[number].dbs.sampling_down_factor_store(),
            File::PowersaveBias => self.policies[number].dbs.ondemand_powersave_bias_init(),
            _ => {}
        }
    }
}
