//! drivers/cpufreq/cpufreq_governor.c with its two governors, ondemand and conservative: they sample how long CPUs idled.
//!
//! Differs: a sample's work is done at once, not by a kworker that an interrupt wakes; `io_is_busy` and `ignore_nice_load` are off, and
//! `powersave_bias` is 0.

use super::policy::Relation;
use super::rules::{LongSleep, Sampling};
use super::{Frequency, Governor};
use units::{CpuId, Ns, Ps};

/// cpufreq_governor.h: struct cpu_dbs_info.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuDbsInfo {
    prev_update_time: Ps,
    prev_cpu_idle: Ps,
    /// Percent.
    prev_load: u64,
}

/// cpufreq_governor.h: struct policy_dbs_info.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PolicyDbsInfo {
    last_sample_time: Ns,
    /// The jiffy of the next sample, by timer.
    expires: u64,
    /// What conservative has reached, in kHz.
    requested_freq: u32,
}

/// cpufreq_conservative.c: DEF_FREQUENCY_DOWN_THRESHOLD and DEF_FREQUENCY_STEP, percent.
const DOWN_THRESHOLD: u64 = 20;
const FREQ_STEP: u32 = 5;

impl Frequency {
    /// cpufreq_governor.c: dbs_update_util_handler().
    pub(super) fn dbs_update_util_handler(&mut self, by: CpuId, cpu: CpuId, time: Ns, now: Ps) {
        let number = self.cpus[cpu.index()].policy;
        let policy = &self.policies[number];
        if !self.policy.driver.any_cpu_asks() && !policy.cpus.contains(&by) {
            return;
        }
        let delay = Ns::from_us(u64::from(self.policy.sampling_rate_us));
        if time.saturating_sub(policy.dbs.last_sample_time) < delay {
            return;
        }
        self.policies[number].dbs.last_sample_time = time;
        self.dbs_work_handler(number, now);
    }

    /// cpufreq_governor.c: dbs_timer_handler(), until v4.5: at a tick of `cpu`.
    pub(super) fn dbs_timer_handler(&mut self, cpu: CpuId, now: Ps) {
        let jiffies = now.0 / self.policy.tick.0;
        let number = self.cpus[cpu.index()].policy;
        if jiffies < self.policies[number].dbs.expires {
            return;
        }
        let delay = (u64::from(self.policy.sampling_rate_us) * 1_000_000).div_ceil(self.policy.tick.0);
        self.policies[number].dbs.expires = jiffies + delay;
        self.dbs_work_handler(number, now);
    }

    /// cpufreq_governor.c: dbs_work_handler().
    fn dbs_work_handler(&mut self, number: usize, now: Ps) {
        match self.policy.governor {
            Governor::Conservative => self.cs_dbs_update(number, now),
            _ => self.od_update(number, now),
        }
    }

    /// cpufreq_governor.c: dbs_update(). The highest load of a policy's CPUs, in percent, and how many periods the shortest sleep took.
    fn dbs_update(&mut self, number: usize, now: Ps) -> (u64, u64) {
        let sampling_rate = Ps::from(Ns::from_us(u64::from(self.policy.sampling_rate_us)));
        let (mut max_load, mut idle_periods) = (0, u64::MAX);
        for index in 0..self.policies[number].cpus.len() {
            let cpu = self.policies[number].cpus[index];
            let this = &mut self.cpus[cpu.index()];
            let cur_idle = this.clock.idle(now);
            let info = &mut this.dbs;
            let elapsed = now.saturating_sub(info.prev_update_time);
            let idle = cur_idle.saturating_sub(info.prev_cpu_idle);
            (info.prev_update_time, info.prev_cpu_idle) = (now, cur_idle);
            let slept = match self.policy.rules.long_sleep {
                LongSleep::Elapsed => elapsed,
                LongSleep::Idle => idle,
            };
            let load = if elapsed == Ps::ZERO {
                info.prev_load
            } else if slept.0 > 2 * sampling_rate.0 && info.prev_load != 0 {
                // Once: then it counts again.
                std::mem::take(&mut info.prev_load)
            } else {
                info.prev_load = 100 * elapsed.saturating_sub(idle).0 / elapsed.0;
                info.prev_load
            };
            if slept.0 > 2 * sampling_rate.0 {
                idle_periods = idle_periods.min(slept.0 / sampling_rate.0.max(1));
            }
            max_load = load.max(max_load);
        }
        (max_load, idle_periods)
    }

    /// cpufreq_ondemand.c: od_update(). The highest frequency above the threshold, else in proportion.
    fn od_update(&mut self, number: usize, now: Ps) {
        let (load, _) = self.dbs_update(number, now);
        if load > u64::from(self.policy.up_threshold) {
            self.driver_target(number, self.policies[number].limits.max_khz, Relation::HighestEfficient, now);
            return;
        }
        let (driver, band) = (self.policy.driver, self.band_of(number));
        let (min, max) = (driver.min_khz(band), driver.max_khz(band));
        let next = min + (load * u64::from(max - min) / 100) as u32;
        self.driver_target(number, next, Relation::ClosestEfficient, now);
    }

    /// cpufreq_conservative.c: cs_dbs_update(). A step up, a step down, or neither.
    fn cs_dbs_update(&mut self, number: usize, now: Ps) {
        let (load, idle_periods) = self.dbs_update(number, now);
        let limits = self.policies[number].limits;
        let step = (limits.max_khz / 100 * FREQ_STEP).max(1);
        let mut requested = self.policies[number].dbs.requested_freq;
        if requested > limits.max_khz || requested < limits.min_khz {
            requested = self.policies[number].cur.clamp(limits.min_khz, limits.max_khz);
        }
        if idle_periods < u64::MAX {
            let steps = idle_periods.saturating_mul(step.into());
            requested = u32::try_from(u64::from(requested).saturating_sub(steps)).unwrap_or(0).max(limits.min_khz);
        }
        if load > u64::from(self.policy.up_threshold) {
            if requested != limits.max_khz {
                requested = (requested + step).min(limits.max_khz);
                self.driver_target(number, requested, Relation::HighestEfficient, now);
            }
        } else if load < DOWN_THRESHOLD && requested != limits.min_khz {
            requested = requested.saturating_sub(step).max(limits.min_khz);
            self.driver_target(number, requested, Relation::LowestEfficient, now);
        }
        self.policies[number].dbs.requested_freq = requested;
    }

    /// Whether a governor of this file chooses, and by which of the two ways it is called.
    pub(super) fn dbs_chooses(&self, by: Sampling) -> bool {
        self.policy.samples_idle_time() && self.policy.rules.sampling == by
    }
}
