//! intel_pstate.c: `hwp_dynamic_boost`: tasks that waited for a device raise the lowest frequency that the hardware may choose.

use super::Frequency;
use units::{CpuId, Ns};

/// hwp_boost_hold_time_ns
const HOLD: Ns = Ns::from_ms(3);

/// intel_pstate.c: struct cpudata, as far as it is used where the hardware chooses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HwpBoost {
    /// In kHz; 0: no boost.
    boost_min: u32,
    iowait: bool,
    last_io_update: Ns,
    last_update: Ns,
}

impl Frequency {
    /// The lowest frequency that the hardware may choose for `cpu`.
    pub(super) fn floor_of(&self, cpu: CpuId) -> u32 {
        self.hardware_floor(cpu).max(self.cpus[cpu.index()].boost.boost_min)
    }

    pub(super) fn hardware_floor(&self, cpu: CpuId) -> u32 {
        let number = self.cpus[cpu.index()].policy;
        self.policy.hardware_floor(&self.model, self.band_of(number), self.policies[number].limits)
    }

    /// The highest frequency that it may be asked for.
    pub(super) fn ceiling_of(&self, cpu: CpuId) -> u32 {
        let number = self.cpus[cpu.index()].policy;
        self.policy.hardware_ceiling(&self.model, self.band_of(number), self.policies[number].limits)
    }

    /// intel_pstate.c: intel_pstate_update_util_hwp().
    pub(super) fn intel_pstate_update_util_hwp(
        &mut self,
        by: CpuId,
        cpu: CpuId,
        time: Ns,
        iowait: bool,
        now: units::Ps,
    ) {
        let tick = self.policy.tick.ns();
        let boost = &mut self.cpus[cpu.index()].boost;
        boost.iowait |= iowait;
        if by != cpu {
            return;
        }
        if std::mem::take(&mut boost.iowait) {
            // One wait may be chance; two within two ticks are not.
            let again = time.0 < boost.last_io_update.0 + 2 * tick.0;
            boost.last_io_update = time;
            if again {
                self.intel_pstate_hwp_boost_up(cpu, time, now);
            }
        } else {
            if boost.boost_min != 0 && time.saturating_sub(boost.last_update) > HOLD {
                boost.boost_min = 0;
            }
            boost.last_update = time;
        }
    }

    /// intel_pstate.c: intel_pstate_hwp_boost_up(): first halfway to the base frequency, then the base, then the
    /// highest.
    fn intel_pstate_hwp_boost_up(&mut self, cpu: CpuId, time: Ns, now: units::Ps) {
        let (floor, ceiling) = (self.hardware_floor(cpu), self.ceiling_of(cpu));
        let guaranteed = self.band_of(self.cpus[cpu.index()].policy).base_khz;
        let step = self.model.step_khz.max(1);
        let boost = &mut self.cpus[cpu.index()].boost;
        if floor == ceiling || boost.boost_min >= ceiling {
            return;
        }
        let halfway = (guaranteed / step + floor / step) / 2 * step;
        boost.boost_min = match boost.boost_min.max(floor) {
            least if least < halfway => halfway,
            least if least < guaranteed => guaranteed,
            least if least == guaranteed => ceiling,
            _ => return,
        }
        .min(ceiling);
        boost.last_update = time;
        let (least, vote) = (self.cpus[cpu.index()].boost.boost_min, self.cpus[cpu.index()].vote);
        self.vote(cpu, vote.max(least), now);
    }
}
