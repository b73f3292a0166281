//! Hardware that chooses frequencies by itself (Intel's HWP, AMD's autonomous CPPC). A model: vendors publish its inputs, and how long
//! it takes to reach the highest frequency, not its rule.
//!
//! Once in a window it looks how busy a CPU was. Busier than the target: faster, by as much of the whole range as the window is of
//! the time that a full ramp takes. Otherwise: as fast as makes the same work fill the target. The energy-performance preference
//! moves the target: 0 goes to the highest frequency at once, 128 has the machine's own target, 255 runs fuller before it ramps.
//!
//! It sees time in idle states, and nothing of the scheduler: a task that comes with a history of load finds the CPU as it was left.
//! A CPU that idled through a whole window has left its frequency for the lowest. Windows of all CPUs are multiples of one period.

use super::{Frequency, What};
use units::{CpuId, Ps};

/// Where autonomous hardware stands with a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    began: Ps,
    /// Unhalted time until then.
    unhalted: Ps,
    /// It will look at the end of the window.
    due: bool,
}

/// The preference in the middle, where the target is the machine's own.
const MIDDLE: u32 = 128;
const HIGHEST: u32 = 255;
/// Permille. Who is busy all the time ramps at any preference.
const FULLEST: u32 = 950;

/// The share of time, in permille, for which a CPU is to be busy.
fn target(own: u32, preference: u32) -> u32 {
    if preference <= MIDDLE {
        own * preference / MIDDLE
    } else {
        let own = own.min(FULLEST);
        own + (FULLEST - own) * (preference - MIDDLE) / (HIGHEST - MIDDLE)
    }
}

impl Frequency {
    /// `cpu` executes: if hardware chooses its frequency, it looks at the end of the window.
    pub(super) fn watch(&mut self, cpu: CpuId, now: Ps) {
        let Some(rule) = self.model.autonomous.filter(|_| self.policy.is_autonomous()) else { return };
        let window = self.cpus[cpu.index()].window;
        if window.due {
            return;
        }
        let period = rule.window.0.max(1);
        let began = Ps(now.0 / period * period);
        if began.0 > window.began.0 + period {
            // A whole window without work, unseen until now.
            self.vote(cpu, self.floor_of(cpu), now);
        }
        let unhalted = self.cpus[cpu.index()].clock.read(now, 0).unhalted;
        self.cpus[cpu.index()].window = Window { began, unhalted, due: true };
        self.plan(Ps(began.0 + period), What::Window(cpu));
    }

    /// The end of a window.
    pub(super) fn window_ends(&mut self, cpu: CpuId, at: Ps) {
        let Some(rule) = self.model.autonomous else { return };
        let khz = self.khz(cpu);
        let this = &mut self.cpus[cpu.index()];
        let unhalted = this.clock.read(at, khz).unhalted;
        let busy = unhalted.saturating_sub(this.window.unhalted).0 * 1_000 / rule.window.0.max(1);
        this.window = Window { began: at, unhalted, due: false };
        let (floor, ceiling) = (self.floor_of(cpu), self.policy.hardware_ceiling(&self.model));
        let target = target(rule.target, u32::from(self.policy.preference.0));
        let range = u64::from(ceiling.saturating_sub(floor));
        let ramp = range * rule.window.0 / rule.ramp.0.max(1);
        // What it asked for before, as far as it got it.
        let now = khz.min(self.cpus[cpu.index()].vote.max(floor));
        let wanted = if target == 0 && busy > 0 {
            ceiling
        } else if busy > u64::from(target) {
            now.saturating_add(ramp as u32)
        } else {
            (u64::from(now) * busy / u64::from(target.max(1))) as u32
        };
        let step = self.model.step_khz;
        let wanted = wanted.div_ceil(step) * step;
        self.vote(cpu, wanted.clamp(floor, ceiling), at);
        if busy > 0 {
            self.rearm(cpu, at, rule.window);
        }
    }

    fn rearm(&mut self, cpu: CpuId, at: Ps, window: Ps) {
        self.cpus[cpu.index()].window.due = true;
        self.plan(at + window, What::Window(cpu));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preference_moves_the_target() {
        assert_eq!([0, 64, 128, 192, 255].map(|preference| target(800, preference)), [0, 400, 800, 875, 950]);
        assert_eq!(target(990, 255), 950);
    }
}
