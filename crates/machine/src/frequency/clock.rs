//! What a CPU's counters show (APERF, MPERF), and how long a domain was at each frequency.

use super::PS_AT_KHZ;
use units::Ps;

/// A CPU's counters. They stand still while it is halted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Time for which it executed. MPERF is this times the base frequency.
    pub unhalted: Ps,
    /// Cycles at the frequencies it had (APERF).
    pub cycles: u64,
}

/// Cycles, and the part of [`PS_AT_KHZ`] that the next one already has: hardware counters lose no part of a cycle when
/// the CPU halts or changes its frequency.
#[derive(Clone, Copy, Debug, Default)]
struct Cycles {
    whole: u64,
    part: u64,
}

impl Cycles {
    /// These cycles and those of `time` more at `khz`.
    fn after(self, time: Ps, khz: u32) -> Cycles {
        let (khz, ms) = (u64::from(khz), time.0 / PS_AT_KHZ);
        // A frequency in kHz is the number of cycles in a millisecond, which avoids overflow for long times.
        let parts = time.0 % PS_AT_KHZ * khz + self.part;
        Cycles { whole: self.whole + ms * khz + parts / PS_AT_KHZ, part: parts % PS_AT_KHZ }
    }
}

/// A CPU's running counters. The CPU halts and starts far more often than its cycles are read or its frequency changes,
/// so in between only time is added up.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// Its frequency, how long it has executed at it so far, and up to when that was counted.
    khz: u32,
    halted: bool,
    at_khz: Ps,
    counted: Ps,
    /// What it had done at other frequencies, or at this one earlier.
    unhalted: Ps,
    cycles: Cycles,
    executed: FrequencyTime,
    /// Time in the idle loop, polling or not, and the part of it while tasks waited for a device (`idle_sleeptime`,
    /// `iowait_sleeptime`). The idle since `idle_since` is not yet in them.
    idle: Ps,
    iowait: Ps,
    idle_since: Option<Ps>,
}

impl Clock {
    /// A clock that has run at `khz` from the beginning.
    pub fn new(khz: u32) -> Clock {
        Clock { khz, ..Clock::default() }
    }

    /// How long it has run at `khz` by `now`.
    fn at_khz(&self, now: Ps) -> Ps {
        self.at_khz + if self.halted { Ps::ZERO } else { now.saturating_sub(self.counted) }
    }

    /// Counts the time up to `now`, unless the CPU is halted.
    fn advance(&mut self, now: Ps) {
        if !self.halted && now > self.counted {
            self.at_khz += now - self.counted;
            self.counted = now;
        }
    }

    pub fn read(&self, now: Ps) -> Counters {
        let time = self.at_khz(now);
        Counters { unhalted: self.unhalted + time, cycles: self.cycles.after(time, self.khz).whole }
    }

    /// How long it executed at each frequency, up to `now`.
    pub fn executed(&self, now: Ps) -> FrequencyTime {
        let mut executed = self.executed.clone();
        executed.count(self.khz, self.at_khz(now));
        executed
    }

    /// It runs at `khz` from `now` on, or from the time already counted if that is later.
    pub fn set_khz(&mut self, now: Ps, khz: u32) {
        self.advance(now);
        let time = self.at_khz;
        self.unhalted += time;
        self.cycles = self.cycles.after(time, self.khz);
        self.executed.count(self.khz, time);
        (self.khz, self.at_khz) = (khz, Ps::ZERO);
    }

    pub fn idles(&mut self, now: Ps) {
        self.idle_since = Some(now);
    }

    /// tick-sched.c: update_ts_time_stats(): counts idle time up to `now`, while the CPU stays idle; `iowait`: while
    /// tasks wait for a device.
    #[doc(alias = "update_ts_time_stats")]
    pub fn account_idle(&mut self, now: Ps, iowait: bool) {
        let Some(since) = &mut self.idle_since else { return };
        let delta = now.saturating_sub(*since);
        *since += delta;
        *if iowait { &mut self.iowait } else { &mut self.idle } += delta;
    }

    /// Counts `time` of idling at once.
    pub fn account_idle_time(&mut self, time: Ps, iowait: bool) {
        *if iowait { &mut self.iowait } else { &mut self.idle } += time;
    }

    /// cpufreq.c: get_cpu_idle_time(), from what has been counted.
    pub fn get_cpu_idle_time(&self, io_busy: bool) -> Ps {
        if io_busy { self.idle } else { self.idle + self.iowait }
    }

    /// It idles no longer.
    pub fn stop_idle(&mut self, now: Ps, iowait: bool) {
        self.account_idle(now, iowait);
        self.idle_since = None;
    }

    /// It halts.
    #[inline]
    pub fn stop(&mut self, now: Ps) {
        self.advance(now);
        self.halted = true;
    }

    pub fn halted(&self) -> bool {
        self.halted
    }

    #[inline]
    pub fn start(&mut self, now: Ps) {
        if self.halted {
            (self.halted, self.counted) = (false, self.counted.max(now));
        }
    }
}

/// How long a clock was at each frequency, in kHz: what `cpupower` and cpufreq's `time_in_state` show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrequencyTime {
    by_khz: Vec<(u32, Ps)>,
    changes: u64,
}

impl FrequencyTime {
    /// In ascending order of frequency.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Ps)> + '_ {
        self.by_khz.iter().copied()
    }

    /// The time at one frequency.
    pub fn at(&self, khz: u32) -> Ps {
        self.iter().find(|entry| entry.0 == khz).map_or(Ps::ZERO, |entry| entry.1)
    }

    /// The time at all frequencies.
    pub fn whole(&self) -> Ps {
        self.iter().fold(Ps::ZERO, |sum, entry| sum + entry.1)
    }

    /// How often the frequency changed.
    pub fn changes(&self) -> u64 {
        self.changes.saturating_sub(1)
    }

    pub fn add(&mut self, khz: u32, time: Ps) {
        self.changes += 1;
        self.count(khz, time);
    }

    /// Counts time at a frequency without counting a change to it.
    pub fn count(&mut self, khz: u32, time: Ps) {
        let place = self.by_khz.partition_point(|entry| entry.0 < khz);
        match self.by_khz.get_mut(place) {
            Some(entry) if entry.0 == khz => entry.1 += time,
            _ => self.by_khz.insert(place, (khz, time)),
        }
    }

    /// Adds another's times and changes.
    pub fn merge(&mut self, other: &FrequencyTime) {
        self.changes += other.changes;
        other.iter().for_each(|(khz, time)| self.count(khz, time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_cycle_is_lost_when_the_frequency_changes() {
        // 13 ns at 2.1 GHz and 13 ns at 0.7 GHz, in turns: 27.3 and 9.1 cycles.
        let mut clock = Clock::new(2_100_000);
        for nth in 0..1_000 {
            clock.set_khz(Ps(nth * 26_000 + 13_000), 700_000);
            clock.set_khz(Ps(nth * 26_000 + 26_000), 2_100_000);
        }
        assert_eq!(clock.read(Ps(26_000_000)), Counters { unhalted: Ps(26_000_000), cycles: 36_400 });
    }

    #[test]
    fn who_starts_before_it_was_known_to_stop_is_not_counted_twice() {
        let mut clock = Clock::new(1_000_000);
        clock.stop(Ps(2_000));
        clock.start(Ps(1_000));
        assert_eq!(clock.read(Ps(3_000)).unhalted, Ps(3_000));
        clock.stop(Ps(3_000));
        clock.start(Ps(5_000));
        assert_eq!(clock.read(Ps(6_000)).unhalted, Ps(4_000));
    }
}
