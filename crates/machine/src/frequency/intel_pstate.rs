//! drivers/cpufreq/intel_pstate.c in active mode, where the hardware does not choose by itself. P-states are multiples
//! of the bus clock.
//!
//! The fixed-point formats with 8 and 14 fractional bits are the driver's.

use super::rules::{PstateIowait, PstateTarget, Sampling};
use super::{Counters, Frequency};
use units::{CpuId, Ns, Ps};

const FRAC_BITS: u32 = 8;
const EXT_FRAC_BITS: u32 = FRAC_BITS + 6;
/// The number one in fixed point.
const ONE: i64 = 1 << FRAC_BITS;
const SAMPLING_INTERVAL: Ns = Ns::from_ms(10);
/// `core_params.pid_policy`: setpoint 97, proportional gain 20%, no other gains, no deadband.
const SETPOINT: i64 = 97;
const P_GAIN: i64 = (20 << FRAC_BITS) / 100;

/// intel_pstate.c: struct cpudata.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuData {
    current_pstate: i64,
    /// When the last sample was taken, by the run queue's clock if the scheduler triggered it; zero before the first.
    sample_time: Ns,
    prev: Counters,
    /// The time of that sample by the counter that never stops.
    prev_tsc: Ps,
    busy_scaled: i64,
    iowait_boost: i64,
    last_update: Ns,
    /// The jiffy of the next sample, where timers take samples.
    expires: u64,
}

/// A sample: cycles at the actual frequency, at the base frequency, and of the clock that never stops.
#[derive(Clone, Copy)]
struct Sample {
    aperf: i64,
    mperf: i64,
    tsc: i64,
    duration: Ns,
}

impl CpuData {
    /// The next sample has none to compare with.
    pub fn begin_anew(&mut self) {
        self.sample_time = Ns(0);
    }
}

fn mul_fp(x: i64, y: i64) -> i64 {
    (x * y) >> FRAC_BITS
}

fn div_fp(x: i64, y: i64) -> i64 {
    (x << FRAC_BITS) / y.max(1)
}

impl Frequency {
    /// intel_pstate.c: intel_pstate_timer_func(), at a tick of `cpu`.
    pub(super) fn intel_pstate_timer_func(&mut self, cpu: CpuId, now: Ps) {
        let jiffies = now.0 / self.policy.tick.0;
        // msecs_to_jiffies(10)
        let delay = Ps::from(SAMPLING_INTERVAL).0.div_ceil(self.policy.tick.0);
        let data = &mut self.cpus[cpu.index()].pstate;
        if jiffies < data.expires {
            return;
        }
        data.expires = jiffies + delay;
        if let Some(sample) = self.intel_pstate_sample(cpu, now.ns(), now) {
            self.intel_pstate_adjust_pstate(cpu, sample, now);
        }
    }

    /// intel_pstate.c: intel_pstate_update_util(). `time` is the run queue's clock.
    pub(super) fn intel_pstate_update_util(&mut self, by: CpuId, cpu: CpuId, time: Ns, iowait: bool, now: Ps) {
        if by != cpu {
            return;
        }
        let tick = self.policy.tick.ns();
        let rule = self.policy.rules.pstate_iowait;
        let data = &mut self.cpus[cpu.index()].pstate;
        let idled = time.saturating_sub(data.last_update) > tick;
        let mut at_once = false;
        match (rule, iowait) {
            (PstateIowait::AtOnce, true) => {
                data.iowait_boost = ONE;
                at_once = true;
            }
            (PstateIowait::Doubling, true) => {
                data.iowait_boost = match data.iowait_boost {
                    boost if !idled && boost >= ONE / 8 => (boost << 1).min(ONE),
                    _ => ONE / 8,
                };
            }
            (_, false) if data.iowait_boost == 0 => {}
            (_, false) if idled => data.iowait_boost = 0,
            (PstateIowait::AtOnce, false) => {}
            (PstateIowait::Doubling, false) => data.iowait_boost >>= 1,
        }
        data.last_update = time;
        if at_once && data.busy_scaled >> FRAC_BITS == 100 {
            return;
        }
        let due = time.saturating_sub(data.sample_time) >= SAMPLING_INTERVAL;
        if (due || at_once)
            && let Some(sample) = self.intel_pstate_sample(cpu, time, now)
        {
            self.intel_pstate_adjust_pstate(cpu, sample, now);
        }
    }

    /// intel_pstate.c: intel_pstate_sample(). `None` for the first sample, which has no earlier one to compare with.
    fn intel_pstate_sample(&mut self, cpu: CpuId, time: Ns, now: Ps) -> Option<Sample> {
        let base = u64::from(self.band_of(self.cpus[cpu.index()].policy).base_khz);
        let this = &mut self.cpus[cpu.index()];
        let counters = this.clock.read(now);
        let data = &mut this.pstate;
        let tsc = now.saturating_sub(data.prev_tsc);
        let unhalted = counters.unhalted.saturating_sub(data.prev.unhalted);
        if unhalted == Ps::ZERO || tsc == Ps::ZERO {
            return None;
        }
        let at_base = |time: Ps| (u128::from(time.ns().0) * u128::from(base) / 1_000_000) as i64;
        let sample = Sample {
            // A path reads the counters at its end, ahead of frequency changes that come before its end. So an earlier
            // reading may have counted more cycles than there were.
            aperf: counters.cycles.saturating_sub(data.prev.cycles) as i64,
            mperf: at_base(unhalted).max(1),
            tsc: at_base(tsc).max(1),
            duration: time.saturating_sub(data.sample_time),
        };
        let first = data.sample_time == Ns(0);
        (data.sample_time, data.prev, data.prev_tsc) = (time, counters, now);
        (!first).then_some(sample)
    }

    /// intel_pstate.c: intel_pstate_adjust_pstate() (intel_pstate_adjust_busy_pstate() until v4.13).
    fn intel_pstate_adjust_pstate(&mut self, cpu: CpuId, sample: Sample, now: Ps) {
        let target = match self.policy.rules.pstate {
            PstateTarget::Controller => self.get_target_pstate_use_performance(cpu, sample),
            PstateTarget::BusyFraction => self.get_target_pstate(cpu, sample),
        };
        let step = i64::from(self.model.step_khz);
        let floor = i64::from(self.hardware_floor(cpu)) / step;
        let ceiling = i64::from(self.ceiling_of(cpu)) / step;
        let pstate = target.clamp(floor, ceiling.max(floor));
        self.cpus[cpu.index()].pstate.current_pstate = pstate;
        self.vote(cpu, (pstate * step) as u32, now);
    }

    fn pstate_of(&self, khz: u32) -> i64 {
        i64::from(khz / self.model.step_khz)
    }

    /// intel_pstate.c: get_target_pstate_use_performance(), until v4.13: how fast the CPU was compared to what was
    /// asked for.
    fn get_target_pstate_use_performance(&mut self, cpu: CpuId, sample: Sample) -> i64 {
        let band = self.band_of(self.cpus[cpu.index()].policy);
        let (max_pstate, lowest) = (self.pstate_of(band.base_khz), self.pstate_of(band.min_khz));
        let data = &mut self.cpus[cpu.index()].pstate;
        // The driver starts at the lowest P-state.
        let current = data.current_pstate.max(lowest);
        let core_pct_busy = (sample.aperf << FRAC_BITS) * 100 / sample.mperf;
        let mut core_busy = mul_fp(core_pct_busy, div_fp(max_pstate << FRAC_BITS, current << FRAC_BITS));
        let (sample_us, duration_us) = ((SAMPLING_INTERVAL.0 / 1_000) as i64, (sample.duration.0 / 1_000) as i64);
        if duration_us > sample_us * 3 {
            core_busy = mul_fp(core_busy, div_fp(sample_us, duration_us));
        }
        data.busy_scaled = core_busy;
        // pid_calc(), with all gains but one zero.
        let error = (SETPOINT << FRAC_BITS) - core_busy;
        let result = mul_fp(P_GAIN, error) + (1 << (FRAC_BITS - 1));
        current - (result >> FRAC_BITS)
    }

    /// intel_pstate.c: get_target_pstate(), since v4.14: the busy share of the highest P-state, plus a quarter.
    fn get_target_pstate(&mut self, cpu: CpuId, sample: Sample) -> i64 {
        let band = self.band_of(self.cpus[cpu.index()].policy);
        let highest = if self.policy.limits.turbo { band.max_khz() } else { band.base_khz };
        let (highest, lowest, base) =
            (self.pstate_of(highest), self.pstate_of(band.min_khz), self.pstate_of(band.base_khz));
        let halves = self.policy.rules.pstate_iowait == PstateIowait::AtOnce;
        let data = &mut self.cpus[cpu.index()].pstate;
        let busy_frac = div_fp(sample.mperf, sample.tsc).max(data.iowait_boost);
        if halves {
            data.iowait_boost >>= 1;
        }
        data.busy_scaled = busy_frac * 100;
        let mut target = mul_fp(highest + (highest >> 2), busy_frac).max(lowest);
        let core_avg_perf = (sample.aperf << EXT_FRAC_BITS) / sample.mperf;
        let avg_pstate = (base * core_avg_perf) >> EXT_FRAC_BITS;
        if avg_pstate > target {
            target += (avg_pstate - target) >> 1;
        }
        target
    }

    /// Whether intel_pstate chooses, and is called in this way.
    pub(super) fn pstate_chooses(&self, by: Sampling) -> bool {
        self.policy.pstate_chooses() && self.policy.rules.sampling == by
    }
}
