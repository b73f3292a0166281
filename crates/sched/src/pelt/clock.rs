//! The clock of load tracking since v5.1 ([`LoadClock::Pelt`]): it advances as fast as work gets done.
//!
//! [`LoadClock::Pelt`]: crate::fair::load::LoadClock::Pelt

use super::{LOAD_AVG_MAX, PELT_MIN_DIVIDER, SCHED_CAPACITY_SHIFT, Scale};

/// A CPU's `clock_pelt` (commit 23127296889f, v5.1). It falls behind `clock_task` while a slow CPU works, and catches
/// up when the CPU goes idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockPelt {
    pub clock_pelt: u64,
    /// Idle time that a CPU running flat out never had: the clock must not catch up by it.
    pub lost_idle_time: u64,
    /// The runqueue's `clock` when the CPU was last seen idle, and [`ClockPelt::rq_clock_pelt`] at that time (v6.0):
    /// from these [`ClockPelt::guess`] computes an idle CPU's clock as if it had been updated.
    pub clock_idle: u64,
    pub clock_pelt_idle: u64,
}

impl ClockPelt {
    /// pelt.h: rq_clock_pelt().
    #[inline]
    pub fn rq_clock_pelt(&self) -> u64 {
        self.clock_pelt.wrapping_sub(self.lost_idle_time)
    }

    /// pelt.h: _update_idle_rq_clock_pelt(). Sets an idle CPU's clock to `clock_task`; `clock` is the runqueue's.
    #[inline]
    fn _update_idle_rq_clock_pelt(&mut self, clock: u64, clock_task: u64) {
        self.clock_pelt = clock_task;
        self.clock_idle = clock;
        self.clock_pelt_idle = self.rq_clock_pelt();
    }

    /// What the clock of an idle CPU would be at `sched_clock`, for a queue that was last updated at `last_update_time`
    /// and was throttled for `throttled` in total: the arithmetic of `migrate_se_pelt_lag()`.
    pub fn guess(&self, throttled: u64, last_update_time: u64, sched_clock: u64) -> u64 {
        let idle = self.clock_pelt_idle.wrapping_sub(throttled);
        if idle < last_update_time {
            // The queue has been updated since.
            return last_update_time;
        }
        idle.wrapping_add(sched_clock.wrapping_sub(self.clock_idle))
    }

    /// pelt.h: update_rq_clock_pelt(). `delta` of `clock_task` has passed; `clock` and `clock_task` are the runqueue's
    /// new clocks; `curr_is_idle` says whether the idle task was running.
    #[inline]
    pub fn update_rq_clock_pelt(&mut self, delta: u64, clock: u64, clock_task: u64, curr_is_idle: bool, scale: Scale) {
        if curr_is_idle {
            self._update_idle_rq_clock_pelt(clock, clock_task);
            return;
        }
        let delta = (delta * u64::from(scale.cpu)) >> SCHED_CAPACITY_SHIFT;
        let delta = (delta * u64::from(scale.freq)) >> SCHED_CAPACITY_SHIFT;
        self.clock_pelt = self.clock_pelt.wrapping_add(delta);
    }

    /// pelt.h: update_idle_rq_clock_pelt(). The CPU goes idle; the sums are the `util_sum` of its root queue and of its
    /// real-time and deadline averages.
    pub fn update_idle_rq_clock_pelt(&mut self, clock: u64, clock_task: u64, cfs: u32, rt: u32, dl: u32) {
        // As busy as a CPU can be at any point of a period, less some room for rounding.
        let always_busy = ((PELT_MIN_DIVIDER << SCHED_CAPACITY_SHIFT) - LOAD_AVG_MAX) as u32;
        if cfs.wrapping_add(rt).wrapping_add(dl) >= always_busy {
            // Negative if the CPU ran beyond its nominal capacity; then it wraps.
            let lost = clock_task.wrapping_sub(self.clock_pelt);
            self.lost_idle_time = self.lost_idle_time.wrapping_add(lost);
        }
        self._update_idle_rq_clock_pelt(clock, clock_task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Scale = Scale { freq: 1024, cpu: 512 };

    #[test]
    fn a_half_speed_cpu_counts_half_and_catches_up_in_idle() {
        let mut clock = ClockPelt::default();
        clock.update_rq_clock_pelt(1_000_000, 1_000_100, 1_000_000, false, HALF);
        assert_eq!(clock.rq_clock_pelt(), 500_000);
        clock.update_idle_rq_clock_pelt(1_000_100, 1_000_000, 1_000_000, 0, 0);
        assert_eq!(clock.rq_clock_pelt(), 1_000_000);
        clock.update_rq_clock_pelt(10, 1_000_110, 1_000_010, true, HALF);
        assert_eq!(clock.rq_clock_pelt(), 1_000_010);
    }

    #[test]
    fn an_idle_cpus_clock_is_guessed_from_when_it_went_idle() {
        let clock = ClockPelt { clock_idle: 5_000, clock_pelt_idle: 3_000, ..ClockPelt::default() };
        assert_eq!(clock.guess(0, 2_900, 9_000), 7_000);
        assert_eq!(clock.guess(200, 2_900, 9_000), 2_900, "updated since");
        assert_eq!(clock.guess(200, 2_800, 9_000), 6_800);
    }

    #[test]
    fn a_cpu_that_never_had_idle_time_loses_it() {
        let mut clock = ClockPelt::default();
        clock.update_rq_clock_pelt(1_000_000, 1_000_100, 1_000_000, false, HALF);
        clock.update_idle_rq_clock_pelt(1_000_100, 1_000_000, 30_000_000, 17_000_000, 800_000);
        assert_eq!(clock.rq_clock_pelt(), 500_000);
        assert_eq!(clock.lost_idle_time, 500_000);
        assert_eq!((clock.clock_idle, clock.clock_pelt_idle), (1_000_100, 500_000));
    }
}
