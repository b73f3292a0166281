//! Which idle state a CPU enters: the menu governor (drivers/cpuidle/governors/menu.c).
//!
//! Two predictions of the coming idle time compete: the time to the next timer, corrected by how wrong that was before, and the
//! typical length of the last eight idles. The deepest state whose target residency fits is entered.

use crate::prices::IdleState;
use sched::behaviour;

behaviour! {
    /// When the menu governor prefers polling over C1.
    pub enum PollRule = "idle.poll" {
        Interactivity = "interactivity", since "v4.5", commit "",
            "poll when the predicted idle time, divided by the load multiplier, is 20 us or less";
        NextTimer = "next-timer", since "v4.6", commit "",
            "poll only when the next timer is 20 us away or less (or C1's residency, if longer)";
    }
}

const BUCKETS: usize = 6;
const INTERVALS: usize = 8;
const RESOLUTION: u64 = 1024;
const DECAY: u64 = 8;
/// Microseconds; an idle this long counts as a perfect prediction.
const MAX_INTERESTING: u64 = 50_000;

/// What an idle CPU's intervals hold when a run begins, in microseconds. The kernel starts them at zero, which means polling until
/// the first wakeups; by the time a machine has booted they hold the distances of its housekeeping timers.
const IDLE_SINCE_BOOT_US: u64 = 10_000;

/// menu.c: struct menu_device, one per CPU. Times in microseconds.
/// Differs: starts as after boot; I/O waiters and the load average do not lengthen the latency limit yet.
#[derive(Clone, Debug)]
pub struct Menu {
    rule: PollRule,
    correction_factor: [u64; BUCKETS],
    intervals: [u64; INTERVALS],
    /// Their sum, and the sum of their squares (wrapping).
    interval_sums: Sums,
    interval_ptr: usize,
    bucket: usize,
    next_timer_us: u64,
    last_state: usize,
}

impl Menu {
    pub fn new(rule: PollRule) -> Menu {
        Menu {
            rule,
            correction_factor: [RESOLUTION * DECAY; BUCKETS],
            intervals: [IDLE_SINCE_BOOT_US; INTERVALS],
            interval_sums: Sums::of(&[IDLE_SINCE_BOOT_US; INTERVALS]),
            interval_ptr: 0,
            bucket: 0,
            next_timer_us: 0,
            last_state: 0,
        }
    }

    /// menu.c: menu_select(): the state to enter when the next timer is `next_timer_us` away.
    pub fn select(&mut self, states: &[IdleState], next_timer_us: u64) -> usize {
        self.next_timer_us = next_timer_us;
        self.bucket = which_bucket(next_timer_us);
        let corrected =
            (next_timer_us * self.correction_factor[self.bucket] + RESOLUTION * DECAY / 2) / (RESOLUTION * DECAY);
        let predicted_us = self.get_typical_interval().map_or(corrected, |typical| match self.rule {
            // Until v4.5 a typical interval replaced the corrected timer outright.
            PollRule::Interactivity => {
                if next_timer_us > typical {
                    typical
                } else {
                    corrected
                }
            }
            PollRule::NextTimer => corrected.min(typical.min(next_timer_us)),
        });
        let latency_limit = predicted_us;
        let polls = states.first().is_some_and(|s| s.target_residency_us == 0);
        let mut chosen = 0;
        if polls && states.len() > 1 {
            let past_polling = match self.rule {
                PollRule::Interactivity => latency_limit > 20,
                PollRule::NextTimer => {
                    next_timer_us > u64::from(states[1].target_residency_us).max(20)
                        && latency_limit > u64::from(states[1].exit_latency_us)
                }
            };
            chosen = usize::from(past_polling);
        }
        for (index, state) in states.iter().enumerate().skip(chosen + 1) {
            let fits = u64::from(state.target_residency_us) <= predicted_us;
            if fits && u64::from(state.exit_latency_us) <= latency_limit {
                chosen = index;
            }
        }
        self.last_state = chosen;
        chosen
    }

    /// menu.c: menu_update(): the idle lasted `measured_us`, exit included.
    pub fn reflect(&mut self, states: &[IdleState], measured_us: u64) {
        let exit_latency = u64::from(states[self.last_state].exit_latency_us);
        let mut measured = if measured_us > 2 * exit_latency { measured_us - exit_latency } else { measured_us / 2 };
        measured = measured.min(self.next_timer_us);
        let factor = &mut self.correction_factor[self.bucket];
        *factor -= *factor / DECAY;
        *factor += if self.next_timer_us > 0 && measured < MAX_INTERESTING {
            RESOLUTION * measured / self.next_timer_us
        } else {
            RESOLUTION
        };
        let oldest = std::mem::replace(&mut self.intervals[self.interval_ptr], measured);
        self.interval_sums.replace(oldest, measured);
        self.interval_ptr = (self.interval_ptr + 1) % INTERVALS;
    }

    /// menu.c: get_typical_interval(): the mean of the recent idles if they agree, the longest dropped one by one until they
    /// do or a quarter of them is gone.
    /// Differs: the sum of squared differences follows from the sums of values and of squares, and those of all intervals are
    /// kept, since they usually agree.
    fn get_typical_interval(&self) -> Option<u64> {
        let all = INTERVALS as u64;
        let (mean, agree) = self.interval_sums.agree(all);
        if agree { Some(mean) } else { self.typical_without_the_longest() }
    }

    fn typical_without_the_longest(&self) -> Option<u64> {
        let mut threshold = self.intervals.iter().max().map_or(0, |longest| longest - 1);
        loop {
            let (mut sums, mut count, mut longest) = (Sums::default(), 0, 0);
            for &value in self.intervals.iter().filter(|&&value| value <= threshold) {
                sums.replace(0, value);
                count += 1;
                longest = value.max(longest);
            }
            let (mean, agree) = sums.agree(count);
            if agree {
                return Some(mean);
            }
            if count * 4 <= INTERVALS as u64 * 3 {
                return None;
            }
            threshold = longest - 1;
        }
    }
}

/// Sums of some intervals.
#[derive(Clone, Copy, Default, Debug)]
struct Sums {
    values: u64,
    /// Of their squares, wrapping.
    squares: u64,
}

impl Sums {
    fn of(values: &[u64]) -> Sums {
        let mut sums = Sums::default();
        values.iter().for_each(|&value| sums.replace(0, value));
        sums
    }

    #[inline]
    fn replace(&mut self, old: u64, new: u64) {
        self.values = self.values - old + new;
        self.squares = self.squares.wrapping_sub(old.wrapping_mul(old)).wrapping_add(new.wrapping_mul(new));
    }

    /// The mean of `count` intervals, and whether they lie so close to it that it is typical.
    #[inline]
    fn agree(self, count: u64) -> (u64, bool) {
        let mean = self.values / count;
        // sum of (v - mean)^2 = sum of v^2 - 2 mean sum of v + count mean^2
        let differences = self.squares.wrapping_sub(mean.wrapping_mul(2 * self.values - count * mean));
        let variance = differences / count;
        let enough = count * 4 >= INTERVALS as u64 * 3;
        (mean, (mean * mean > 36 * variance && enough) || variance <= 400)
    }
}

/// menu.c: which_bucket(), for CPUs without I/O waiters.
fn which_bucket(duration_us: u64) -> usize {
    match duration_us {
        0..10 => 0,
        10..100 => 1,
        100..1_000 => 2,
        1_000..10_000 => 3,
        10_000..100_000 => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Ps;

    /// Haswell's table as intel_idle declares it.
    fn haswell() -> Vec<IdleState> {
        [("POLL", 0, 0), ("C1", 2, 2), ("C1E", 10, 20), ("C3", 33, 100), ("C6", 133, 400)]
            .map(|(name, exit_latency_us, target_residency_us)| IdleState {
                name: name.to_string(),
                exit_latency_us,
                target_residency_us,
                wake: Ps::ZERO,
            })
            .to_vec()
    }

    fn settled(rule: PollRule, next_timer_us: u64, idle_us: u64) -> usize {
        let states = haswell();
        let mut menu = Menu::new(rule);
        for _ in 0..32 {
            menu.select(&states, next_timer_us);
            menu.reflect(&states, idle_us);
        }
        menu.select(&states, next_timer_us)
    }

    #[test]
    fn periodic_wakeups_settle_in_the_deepest_state_that_fits() {
        // A millisecond between wakeups: C6 (400 us). 150 us: C3. 60 us: C1E.
        assert_eq!(settled(PollRule::NextTimer, 100_000, 1_000), 4);
        assert_eq!(settled(PollRule::NextTimer, 100_000, 150), 3);
        assert_eq!(settled(PollRule::NextTimer, 100_000, 60), 2);
    }

    #[test]
    fn microsecond_idles_poll_until_v4_5_and_halt_since() {
        assert_eq!(settled(PollRule::Interactivity, 4_000, 3), 0);
        assert_eq!(settled(PollRule::NextTimer, 4_000, 7), 1);
    }

    #[test]
    fn one_outlier_does_not_hide_a_pattern() {
        let typical = |intervals: [u64; INTERVALS]| {
            let menu = Menu { intervals, interval_sums: Sums::of(&intervals), ..Menu::new(PollRule::NextTimer) };
            menu.get_typical_interval()
        };
        assert_eq!(typical([150, 150, 150, 9_000, 150, 150, 150, 150]), Some(150));
        assert_eq!(typical([1, 50_000, 3, 9_000, 700, 40_000, 90, 12_000]), None);
    }
}
