//! Hardware that chooses frequencies by itself (Intel's HWP, AMD's autonomous CPPC). This is a model: vendors publish
//! the inputs of the choice and how long it takes to reach the highest frequency, but not the rule.
//!
//! At the end of each window the hardware looks how busy a core was, whichever of its threads was busy, over a moving
//! history (Intel's manual, volume 3, 14.4.4: "moving workload history observation window", whose length the hardware
//! chooses unless told). If the core was busier than the target, the frequency rises by the fraction of the whole range
//! that the window is of a full ramp's time. Otherwise it goes to where the same work would just fill the target, but
//! no lower than the most efficient frequency, if the hardware declares one (`Most_Efficient_Performance` of the same
//! manual). The energy-performance preference moves the target: at 0 a busy core goes to the highest frequency at once,
//! at 128 the target is the machine's own, at 255 a core has to be fuller before it ramps.
//!
//! Where the machine says how long a burst takes from idle to the highest frequency (`hwp_burst`), a core that is busy
//! without a pause for a share of that (`hwp_burst_still`) goes faster whatever its history, and ramps over the rest:
//! published times are shorter than a history over which a mean could steer.
//!
//! The hardware sees time in idle states, and nothing of the scheduler: a task that arrives with a history of load
//! finds the core as it was left. Windows without work enter the history once something runs on the core again. The
//! windows of all cores are multiples of one period.

use super::{Autonomous, Frequency, What};
use units::{CpuId, Ps};

/// The state of the autonomous hardware for one core.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    began: Ps,
    /// Unhalted time of all threads until `began`.
    unhalted: Ps,
    /// Whether the hardware will look at the end of the window.
    due: bool,
    /// How busy the core was in the history before `began`, in permille of [`PERMILLE`].
    busy: u64,
    /// The windows before `began` in which it was busy all the time, since the last one in which it was not.
    whole: u64,
}

/// The middle preference, at which the target is the machine's own.
const MIDDLE: u32 = 128;
const HIGHEST: u32 = 255;
/// The highest target, in permille. A core that is busy all the time ramps at any preference.
const FULLEST: u32 = 950;
const PERMILLE: u64 = 1_000;
/// After this many windows without work any history is as good as forgotten.
const FORGOTTEN: u64 = 200;
/// The same as a number of histories, for histories that are long in windows. In a history of n windows each window
/// replaces one n-th, so n windows leave less than 1/e of what was before, and this many histories leave less than a
/// permille.
const HISTORIES: u64 = 7;

/// The share of time, in permille, for which a CPU is to be busy.
fn target(own: u32, preference: u32) -> u32 {
    if preference <= MIDDLE {
        own * preference / MIDDLE
    } else {
        let own = own.min(FULLEST);
        own + (FULLEST - own) * (preference - MIDDLE) / (HIGHEST - MIDDLE)
    }
}

impl Autonomous {
    /// The lengths of a window and of the history, which is at least a window.
    fn lengths(&self) -> (u64, u64) {
        let window = self.window.0.max(1);
        (window, self.history.0.max(window))
    }

    /// This many windows without work leave less than a permille of what was before.
    fn forgotten(&self) -> u64 {
        let (window, history) = self.lengths();
        FORGOTTEN.max(history.div_ceil(window).saturating_mul(HISTORIES))
    }
}

impl Frequency {
    /// `cpu` executes: if the hardware chooses its frequency, it looks at the end of the window.
    pub(super) fn watch(&mut self, cpu: CpuId, now: Ps) {
        let Some(rule) = self.model.autonomous.filter(|_| self.policy.is_autonomous()) else { return };
        let core = self.cpus[cpu.index()].core;
        let window = self.windows[core];
        if window.due {
            return;
        }
        let (period, _) = rule.lengths();
        let began = Ps(now.0 / period * period);
        // Windows without work, which nobody looked at until now.
        for _ in 0..(began.0.saturating_sub(window.began.0) / period).min(rule.forgotten()) {
            self.window_seen(core, 0, now);
            // Once nothing is left of the history, more such windows choose the same.
            if self.windows[core].busy == 0 {
                break;
            }
        }
        let unhalted = self.unhalted(core, now);
        self.windows[core] = Window { began, unhalted, due: true, ..self.windows[core] };
        self.plan(Ps(began.0 + period), What::Window(core));
    }

    /// Unhalted time of all threads of a core.
    fn unhalted(&self, core: usize, now: Ps) -> Ps {
        self.threads[core].iter().fold(Ps::ZERO, |sum, cpu| sum + self.cpus[cpu.index()].clock.read(now).unhalted)
    }

    /// Whether some thread of a core executes, or is known to execute from some time on.
    fn executes(&self, core: usize) -> bool {
        self.threads[core].iter().any(|cpu| !self.cpus[cpu.index()].clock.halted())
    }

    /// A window ends. A thread that resumes just before the end shows no busy time yet, but only the end of the next
    /// window would find it; so a core that executes is looked at again.
    pub(super) fn window_ends(&mut self, core: usize, at: Ps) {
        let Some(rule) = self.model.autonomous else { return };
        let unhalted = self.unhalted(core, at);
        let executes = self.executes(core);
        let window = &mut self.windows[core];
        // Time of threads beside each other is counted twice, but a core cannot be more than busy.
        let busy = unhalted.saturating_sub(window.unhalted).0 * PERMILLE / rule.window.0.max(1);
        let due = busy > 0 || executes;
        *window = Window { began: at, unhalted, due, ..*window };
        self.window_seen(core, busy.min(PERMILLE), at);
        if due {
            self.plan(at + rule.window, What::Window(core));
        }
    }

    /// Adds to a core's history a window in which it was busy for `busy` permille. Then the hardware chooses.
    fn window_seen(&mut self, core: usize, busy: u64, at: Ps) {
        let Some(rule) = self.model.autonomous else { return };
        let window = &mut self.windows[core];
        let (period, history) = rule.lengths();
        window.busy = (window.busy * (history - period) + busy * PERMILLE * period) / history;
        window.whole = if busy == PERMILLE { window.whole + 1 } else { 0 };
        let burst = rule.burst.filter(|burst| window.whole.saturating_mul(period) >= burst.still.0);
        let busy = window.busy / PERMILLE;
        let first = self.threads[core][0];
        let floors = self.threads[core].iter().map(|&cpu| self.floor_of(cpu));
        let floor = floors.max().unwrap_or(0);
        let ceiling = self.ceiling_of(first);
        let target = target(rule.target, u32::from(self.policy.preference.0));
        let range = u64::from(ceiling.saturating_sub(floor));
        let ramp = burst.map_or(rule.ramp, |burst| burst.ramp);
        let ramp = range * rule.window.0 / ramp.0.max(1);
        // What it asked for before, as far as it got it.
        let now = self.khz(first).min(self.cpus[first.index()].vote.max(floor));
        let wanted = if target == 0 && busy > 0 {
            ceiling
        } else if busy > u64::from(target) || burst.is_some() {
            now.saturating_add(ramp as u32)
        } else {
            ((u64::from(now) * busy / u64::from(target.max(1))) as u32).max(rule.efficient_khz)
        };
        let step = self.model.step_khz;
        let wanted = wanted.div_ceil(step) * step;
        for index in 0..self.threads[core].len() {
            self.vote(self.threads[core][index], wanted.max(floor).min(ceiling), at);
        }
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

    #[test]
    fn what_is_forgotten_is_less_than_a_permille() {
        let rule = |window, history| {
            let (window, history) = (Ps(window), Ps(history));
            Autonomous { window, history, ramp: window, burst: None, efficient_khz: 0, target: 500 }
        };
        for windows in (1..60).chain([100, 333, 1_000, 20_000]) {
            for (window, history) in [(10, windows * 10), (10, windows * 10 + 9)] {
                let rule = rule(window, history);
                // Rounded up, so that it is no less than what is really left.
                let step = |left: u128, _| (left * u128::from(history - window)).div_ceil(history.into());
                let whole = 1_u128 << 90;
                let left = (0..rule.forgotten()).fold(whole, step);
                assert!(left < whole / 1_000, "{} windows of {history}", rule.forgotten());
            }
        }
        // The old constant, where that is enough.
        assert_eq!([0, 1, 20, 28].map(|windows| rule(1, windows).forgotten()), [200; 4]);
        assert_eq!(rule(1_000, 100_000).forgotten(), 700);
    }
}
