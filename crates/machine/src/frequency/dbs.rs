//! drivers/cpufreq/cpufreq_governor.c with its two governors, ondemand and conservative: they sample how long CPUs idled.
//!
//! Code that notices that a sample is due leaves it to a kworker of its CPU, which asks the driver.

use super::governed::Wish;
use super::policy::Relation;
use super::rules::{AtLimit, DeferredSteps, LimitsStep, LongSleep, Sampling, StepFloor};
use super::{Frequency, Governor};
use units::{CpuId, Ns, Ps};

/// cpufreq_governor.h: struct cpu_dbs_info.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuDbsInfo {
    prev_update_time: Ps,
    prev_cpu_idle: Ps,
    prev_cpu_nice: Ps,
    /// Percent.
    prev_load: u64,
}

/// cpufreq_governor.h: struct policy_dbs_info, and what each of the governors keeps beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicyDbsInfo {
    last_sample_time: Ns,
    /// `sample_delay_ns`, in microseconds; `None` before the first sample: the sampling rate.
    sample_delay_us: Option<u64>,
    /// The jiffy of the next sample, where timers take samples.
    expires: u64,
    /// A sample is left to a kworker (until v4.5 `skip_work`).
    work_in_progress: bool,
    /// Samples of a governor that has been stopped, with which kworkers were too far to be stopped.
    left_over: u32,
    /// At the highest frequency ondemand waits for this many periods before its next sample.
    rate_mult: u64,
    /// With `powersave_bias`, ondemand alternates between two frequencies that average to what it wants: the lower one,
    /// and how long each lasts.
    freq_lo: Option<Lower>,
    /// Instead of a sample, the lower frequency's turn comes next (`OD_SUB_SAMPLE`).
    sub_sample: bool,
    /// Samples for which conservative has not considered a step down.
    down_skip: u32,
    /// The frequency that conservative has reached by its own count, in kHz.
    requested_freq: u32,
}

impl Default for PolicyDbsInfo {
    fn default() -> PolicyDbsInfo {
        PolicyDbsInfo {
            last_sample_time: Ns(0),
            sample_delay_us: None,
            expires: 0,
            work_in_progress: false,
            left_over: 0,
            rate_mult: 1,
            freq_lo: None,
            sub_sample: false,
            down_skip: 0,
            requested_freq: 0,
        }
    }
}

impl PolicyDbsInfo {
    /// cpufreq_ondemand.c: sampling_down_factor_store(): no longer wait is under way. conservative's only sets the value.
    pub fn sampling_down_factor_store(&mut self) {
        self.rate_mult = 1;
    }

    /// cpufreq_ondemand.c: ondemand_powersave_bias_init().
    pub fn ondemand_powersave_bias_init(&mut self) {
        self.freq_lo = None;
    }

    /// The lower of the two frequencies between which ondemand alternates, in kHz, and for how many microseconds it stays
    /// at the upper one.
    #[cfg(test)]
    pub fn turns(&self) -> Option<(u32, u64)> {
        self.freq_lo.map(|lower| (lower.khz, lower.hi_us))
    }
}

#[derive(Clone, Copy, Debug)]
struct Lower {
    khz: u32,
    hi_us: u64,
    lo_us: u64,
}

/// A frequency that a governor wants, and how the driver may round it.
type Target = (u32, Relation);

/// What a sample says about a policy: the load of its busiest CPU, in percent.
#[derive(Clone, Copy)]
struct Load {
    /// A CPU that slept long counts with its load before the sleep.
    max: u64,
    /// `max_sample_load`: from this sample alone.
    of_sample: u64,
    /// How many periods the shortest sleep of a CPU lasted.
    idle_periods: u64,
}

/// cpufreq_conservative.c: DEF_FREQUENCY_STEP, in case a step would be zero.
const DEF_FREQUENCY_STEP: u32 = 5;

impl Frequency {
    /// cpufreq_governor.c: dbs_update_util_handler(). Returns the policy whose sample `by` is to leave to a kworker, by
    /// an interrupt to itself.
    pub(super) fn dbs_update_util_handler(&mut self, by: CpuId, cpu: CpuId, time: Ns) -> Option<u16> {
        let number = self.cpus[cpu.index()].policy;
        let policy = &mut self.policies[number];
        if !self.policy.driver.any_cpu_asks(self.policy.rules) && !policy.cpus.contains(&by)
            || policy.dbs.work_in_progress
        {
            return None;
        }
        let delay_us = policy.dbs.sample_delay_us.unwrap_or(self.policy.sampling_rate_us.into());
        if time.saturating_sub(policy.dbs.last_sample_time) < Ns::from_us(delay_us) {
            return None;
        }
        policy.dbs.last_sample_time = time;
        policy.dbs.work_in_progress = true;
        Some(number as u16)
    }

    /// cpufreq_governor.c: dbs_timer_handler(), until v4.5: at a tick of `cpu`. Returns the policy whose sample it
    /// leaves to a kworker.
    pub(super) fn dbs_timer_handler(&mut self, cpu: CpuId, now: Ps) -> Option<u16> {
        let number = self.cpus[cpu.index()].policy;
        let dbs = &mut self.policies[number].dbs;
        let due = now.0 / self.policy.tick.0 >= dbs.expires;
        (due && !std::mem::replace(&mut dbs.work_in_progress, true)).then_some(number as u16)
    }

    /// cpufreq_governor.c: dbs_work_handler(), of policy `number`, up to where it asks the driver. Returns what it asks
    /// for, if that is another frequency than the policy has. `iowait`: CPUs whose tasks wait for a device.
    pub fn dbs_work_handler(&mut self, number: usize, iowait: &[CpuId], now: Ps) -> Option<Wish> {
        self.account_idle_of(number, iowait, now);
        let (delay_us, target) = match self.policy.governor {
            Governor::Conservative => self.cs_dbs_update(number, now),
            _ => self.od_dbs_update(number, now),
        };
        self.policies[number].dbs.sample_delay_us = Some(delay_us);
        target.and_then(|(khz, relation)| self.another(number, khz, relation))
    }

    /// The rest of it, after which the next sample may come. Until v4.5 gov_add_timers(), with
    /// delay_for_sampling_rate(): all CPUs sample in the same jiffies.
    pub fn dbs_work_done(&mut self, number: usize, now: Ps) {
        let dbs = &mut self.policies[number].dbs;
        if dbs.left_over > 0 {
            dbs.left_over -= 1;
            return;
        }
        let (expires, jiffies) = (self.next_sample(number, now), now.0 / self.policy.tick.0);
        let dbs = &mut self.policies[number].dbs;
        dbs.expires = jiffies + expires;
        dbs.work_in_progress = false;
    }

    /// In how many jiffies the next sample is due.
    fn next_sample(&self, number: usize, now: Ps) -> u64 {
        let jiffies = now.0 / self.policy.tick.0;
        let dbs = &self.policies[number].dbs;
        let mut delay = dbs.freq_lo.map_or(0, |_| self.jiffies_of(dbs.sample_delay_us.unwrap_or(0)));
        if delay == 0 {
            delay = self.jiffies_of(u64::from(self.policy.sampling_rate_us) * dbs.rate_mult);
            if self.cpus.len() > 1 {
                delay -= jiffies % delay;
            }
        }
        delay
    }

    /// Microseconds in jiffies, rounded up.
    fn jiffies_of(&self, us: u64) -> u64 {
        (us * 1_000_000).div_ceil(self.policy.tick.0)
    }

    /// cpufreq_governor.c: dbs_update().
    fn dbs_update(&mut self, number: usize, now: Ps) -> Load {
        let rate_us = u64::from(self.policy.sampling_rate_us) * self.policies[number].dbs.rate_mult;
        let sampling_rate = Ps::from(Ns::from_us(rate_us));
        let mut told = Load { max: 0, of_sample: 0, idle_periods: u64::MAX };
        for index in 0..self.policies[number].cpus.len() {
            let cpu = self.policies[number].cpus[index];
            let this = &mut self.cpus[cpu.index()];
            let cur_idle = this.clock.get_cpu_idle_time(self.policy.io_is_busy);
            let info = &mut this.dbs;
            let elapsed = now.saturating_sub(info.prev_update_time);
            let mut idle = cur_idle.saturating_sub(info.prev_cpu_idle);
            (info.prev_update_time, info.prev_cpu_idle) = (now, cur_idle);
            if self.policy.ignore_nice_load {
                idle += this.nice.saturating_sub(info.prev_cpu_nice);
                info.prev_cpu_nice = this.nice;
            }
            let slept = match self.policy.rules.long_sleep {
                LongSleep::Elapsed => elapsed,
                LongSleep::Idle => idle,
            };
            let of_sample = match elapsed {
                Ps::ZERO => info.prev_load,
                _ => 100 * elapsed.saturating_sub(idle).0 / elapsed.0,
            };
            let load = if elapsed != Ps::ZERO && slept.0 > 2 * sampling_rate.0 && info.prev_load != 0 {
                // Only once: after that it counts again.
                std::mem::take(&mut info.prev_load)
            } else {
                info.prev_load = of_sample;
                of_sample
            };
            if slept.0 > 2 * sampling_rate.0 {
                told.idle_periods = told.idle_periods.min(slept.0 / sampling_rate.0.max(1));
            }
            (told.max, told.of_sample) = (told.max.max(load), told.of_sample.max(of_sample));
        }
        told
    }

    /// cpufreq_ondemand.c: od_dbs_update(). Returns in how many microseconds it is to be called again, and what it
    /// wants.
    fn od_dbs_update(&mut self, number: usize, now: Ps) -> (u64, Option<Target>) {
        let dbs = &mut self.policies[number].dbs;
        let sub_sample = std::mem::take(&mut dbs.sub_sample);
        if let (true, Some(lower)) = (sub_sample && dbs.sample_delay_us != Some(0), dbs.freq_lo) {
            return (lower.lo_us, Some((lower.khz, Relation::HighestEfficient)));
        }
        let target = self.od_update(number, now);
        let dbs = &mut self.policies[number].dbs;
        dbs.sub_sample = dbs.freq_lo.is_some();
        let period_us = u64::from(self.policy.sampling_rate_us) * dbs.rate_mult;
        (dbs.freq_lo.map_or(period_us, |lower| lower.hi_us), Some(target))
    }

    /// cpufreq_ondemand.c: od_update(), with dbs_freq_increase(). Above the threshold the highest frequency, otherwise
    /// one in proportion to the load.
    #[doc(alias = "dbs_freq_increase")]
    fn od_update(&mut self, number: usize, now: Ps) -> Target {
        let load = self.dbs_update(number, now).max;
        let biased = self.policy.powersave_bias > 0;
        self.policies[number].dbs.freq_lo = None;
        if load > u64::from(self.policy.up_threshold) {
            let max_khz = self.policies[number].limits.max_khz;
            if self.policies[number].cur < max_khz {
                self.policies[number].dbs.rate_mult = self.policy.sampling_down_factor.into();
            }
            if !biased {
                return (max_khz, Relation::HighestEfficient);
            }
            let khz = self.generic_powersave_bias_target(number, max_khz, Relation::HighestEfficient);
            return (khz, Relation::LowestEfficient);
        }
        self.policies[number].dbs.rate_mult = 1;
        let (driver, band) = (self.policy.driver, self.band_of(number));
        let (min, max) = (driver.min_khz(band), self.policy.cpuinfo_max_khz(&self.model, band));
        let mut next = min + (load * u64::from(max - min) / 100) as u32;
        if biased {
            next = self.generic_powersave_bias_target(number, next, Relation::LowestEfficient);
        }
        (next, Relation::ClosestEfficient)
    }

    /// cpufreq_ondemand.c: generic_powersave_bias_target(). Returns the upper one of two frequencies whose mean is
    /// somewhat below `khz`. Integers have 32 bits and wrap on overflow, as in the kernel.
    fn generic_powersave_bias_target(&mut self, number: usize, khz: u32, relation: Relation) -> u32 {
        let driver = self.policy.driver;
        if !driver.has_table() {
            return khz;
        }
        let table = |limits, khz, relation| driver.resolve(&self.model, self.band_of(number), limits, khz, relation);
        let wanted = table(self.policies[number].limits, khz, relation);
        let average = wanted - wanted.wrapping_mul(self.policy.powersave_bias) / 1_000;
        let limits = self.policies[number].limits;
        let (lo, hi) =
            (table(limits, average, Relation::HighestEfficient), table(limits, average, Relation::LowestEfficient));
        if lo == hi {
            return lo;
        }
        // Timers count in jiffies.
        let (rate, unit_us) = match self.policy.rules.sampling {
            Sampling::Callbacks => (self.policy.sampling_rate_us, 1),
            Sampling::Timers => {
                (self.jiffies_of(self.policy.sampling_rate_us.into()) as u32, self.policy.tick.0 / 1_000_000)
            }
        };
        let hi_time = average.wrapping_sub(lo).wrapping_mul(rate).wrapping_add((hi - lo) / 2) / (hi - lo);
        let times = (u64::from(hi_time) * unit_us, u64::from(rate.saturating_sub(hi_time)) * unit_us);
        self.policies[number].dbs.freq_lo = Some(Lower { khz: lo, hi_us: times.0, lo_us: times.1 });
        hi
    }

    /// cpufreq_conservative.c: cs_dbs_update(). It wants a step up, a step down, or neither. Returns the same as
    /// od_dbs_update().
    fn cs_dbs_update(&mut self, number: usize, now: Ps) -> (u64, Option<Target>) {
        let load = self.dbs_update(number, now);
        let target = if self.policy.freq_step > 0 { self.cs_step(number, load) } else { None };
        (self.policy.sampling_rate_us.into(), target)
    }

    fn cs_step(&mut self, number: usize, load: Load) -> Option<Target> {
        let limits = self.policies[number].limits;
        let freq_step = match self.policy.freq_step.wrapping_mul(limits.max_khz) / 100 {
            0 => DEF_FREQUENCY_STEP,
            step => step,
        };
        let rules = self.policy.rules;
        let lower = |requested: u32, steps: u64| {
            let floor = if rules.step_floor == StepFloor::Lowest { limits.min_khz } else { 0 };
            match u64::from(requested) > u64::from(floor) + steps {
                true => requested - steps as u32,
                false => limits.min_khz,
            }
        };
        let cur = self.policies[number].cur;
        let dbs = &mut self.policies[number].dbs;
        if dbs.requested_freq > limits.max_khz || dbs.requested_freq < limits.min_khz {
            dbs.requested_freq = cur;
        }
        let mut requested = dbs.requested_freq;
        let makes_up = match rules.deferred_steps {
            DeferredSteps::Lost => false,
            DeferredSteps::Counted => true,
            DeferredSteps::CountedWhereIdle => load.of_sample < u64::from(self.policy.down_threshold),
        };
        if makes_up && load.idle_periods < u64::MAX {
            requested = lower(requested, load.idle_periods.saturating_mul(freq_step.into()));
        }
        let relation = if load.max > u64::from(self.policy.up_threshold) {
            dbs.down_skip = 0;
            if rules.at_limit != AtLimit::Asks && requested == limits.max_khz {
                return None;
            }
            requested = requested.saturating_add(freq_step).min(limits.max_khz);
            Relation::HighestEfficient
        } else {
            dbs.down_skip += 1;
            if dbs.down_skip < self.policy.sampling_down_factor {
                return None;
            }
            dbs.down_skip = 0;
            let lowest = match rules.at_limit {
                AtLimit::Clock => cur == limits.min_khz,
                AtLimit::Nothing => requested == limits.min_khz,
                AtLimit::Asks => false,
            };
            if load.max >= u64::from(self.policy.down_threshold) || lowest {
                return None;
            }
            requested = lower(requested, freq_step.into());
            Relation::LowestEfficient
        };
        self.policies[number].dbs.requested_freq = requested;
        Some((requested, relation))
    }

    /// cpufreq_governor.c: cpufreq_dbs_governor_stop(), for all policies. `cancelled`: policies whose sample was still
    /// waiting for an interrupt or a kworker, and now is not taken. A kworker that is in the middle of one goes on;
    /// there, the writer waits for it.
    pub fn dbs_stop(&mut self, cancelled: &[u16]) {
        for (number, policy) in self.policies.iter_mut().enumerate() {
            let works = policy.dbs.work_in_progress && !cancelled.contains(&(number as u16));
            let left_over = policy.dbs.left_over + u32::from(works);
            policy.dbs = PolicyDbsInfo { left_over, ..PolicyDbsInfo::default() };
        }
    }

    /// cpufreq_governor.c: cpufreq_dbs_governor_start(), cpufreq_governor_start() until v4.6. `iowait`: CPUs whose tasks wait
    /// for a device.
    #[doc(alias = "cpufreq_governor_start")]
    #[doc(alias = "cs_start")]
    #[doc(alias = "od_start")]
    pub(super) fn cpufreq_dbs_governor_start(&mut self, number: usize, iowait: &[CpuId], now: Ps) {
        let timers = self.policy.rules.sampling == Sampling::Timers;
        self.gov_update_cpu_data(number, iowait, now);
        for index in 0..self.policies[number].cpus.len() {
            let info = &mut self.cpus[self.policies[number].cpus[index].index()].dbs;
            // Until v4.5 the load since boot.
            info.prev_load = match (timers, now) {
                (true, Ps(1..)) => 100 * now.saturating_sub(info.prev_cpu_idle).0 / now.0,
                _ => 0,
            };
        }
        let (cur, left_over) = (self.policies[number].cur, self.policies[number].dbs.left_over);
        self.policies[number].dbs = PolicyDbsInfo { requested_freq: cur, left_over, ..PolicyDbsInfo::default() };
        self.policies[number].dbs.expires = now.0 / self.policy.tick.0 + self.next_sample(number, now);
    }

    /// cpufreq_governor.c: cpufreq_dbs_governor_limits(): the clock goes within them, and the next report of utilization
    /// leads to a sample. Until v4.5 cpufreq_governor_limits(), which takes the sample itself.
    /// Differs: as a governor starts, no time has passed that a sample could be of; there it is of some microseconds.
    #[doc(alias = "cs_limits")]
    pub(super) fn cpufreq_dbs_governor_limits(&mut self, number: usize, iowait: &[CpuId], now: Ps) {
        self.cpufreq_policy_apply_limits(number, now);
        let conservative = self.policy.governor == Governor::Conservative;
        if self.policy.rules.sampling == Sampling::Callbacks {
            let cur = self.policies[number].cur;
            let dbs = &mut self.policies[number].dbs;
            dbs.sample_delay_us = Some(0);
            if conservative && self.policy.rules.limits_step == LimitsStep::Current {
                dbs.requested_freq = cur;
            }
            return;
        }
        let begun = self.cpus[self.policies[number].cpus[0].index()].dbs.prev_update_time;
        if begun == now {
            return;
        }
        self.account_idle_of(number, iowait, now);
        let target = if conservative { self.cs_dbs_update(number, now).1 } else { Some(self.od_update(number, now)) };
        if let Some((khz, relation)) = target {
            self.ask(number, khz, relation, now);
        }
    }

    fn account_idle_of(&mut self, number: usize, iowait: &[CpuId], now: Ps) {
        for index in 0..self.policies[number].cpus.len() {
            let cpu = self.policies[number].cpus[index];
            self.account_idle(cpu, now, iowait.contains(&cpu));
        }
    }

    /// cpufreq_governor.c: gov_update_cpu_data(): from now on idle time counts otherwise.
    pub(super) fn gov_update_cpu_data(&mut self, number: usize, iowait: &[CpuId], now: Ps) {
        self.account_idle_of(number, iowait, now);
        for index in 0..self.policies[number].cpus.len() {
            let this = &mut self.cpus[self.policies[number].cpus[index].index()];
            let idle = this.clock.get_cpu_idle_time(self.policy.io_is_busy);
            (this.dbs.prev_update_time, this.dbs.prev_cpu_idle) = (now, idle);
            if self.policy.ignore_nice_load {
                this.dbs.prev_cpu_nice = this.nice;
            }
        }
    }

    /// cpufreq_governor.c: sampling_rate_store(): the next report leads to a sample. Until v4.5 ondemand's
    /// update_sampling_rate() brings the next sample forward, and conservative's store does nothing more.
    #[doc(alias = "update_sampling_rate")]
    pub(super) fn sampling_rate_store(&mut self, number: usize, now: Ps) {
        let soon = now.0 / self.policy.tick.0 + self.jiffies_of(self.policy.sampling_rate_us.into());
        let dbs = &mut self.policies[number].dbs;
        match (self.policy.rules.sampling, self.policy.governor) {
            (Sampling::Callbacks, _) => dbs.sample_delay_us = Some(0),
            (Sampling::Timers, Governor::Ondemand) => dbs.expires = dbs.expires.min(soon),
            (Sampling::Timers, _) => {}
        }
    }

    /// Whether a governor of this file chooses, and is called in this way.
    pub(super) fn dbs_chooses(&self, by: Sampling) -> bool {
        self.policy.samples_idle_time() && self.policy.rules.sampling == by
    }
}
