//! What a CPU's counters show (APERF, MPERF), and how long a domain was at which frequency.

use units::Ps;

/// Counters of a CPU, which stand still while it is halted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Time for which it executed. MPERF is that times the base frequency.
    pub unhalted: Ps,
    /// Cycles at the frequencies it had (APERF).
    pub cycles: u64,
}

/// kHz times picoseconds in one cycle.
const CYCLE: u64 = 1_000_000_000;

/// A CPU's counters as they go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    counters: Counters,
    /// How much of [`CYCLE`] the next one has: counters of hardware lose no part of a cycle when the CPU halts or changes its frequency.
    part: u64,
    /// Up to where they count; while halted, not at all.
    counted: Ps,
    halted: bool,
    /// Time in the idle loop, polling or not, and of it that while tasks waited for a device (`idle_sleeptime`, `iowait_sleeptime`), but for
    /// the idle that it is in since `idle_since`.
    idle: Ps,
    iowait: Ps,
    idle_since: Option<Ps>,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock {
            counters: Counters::default(),
            part: 0,
            counted: Ps::ZERO,
            halted: false,
            idle: Ps::ZERO,
            iowait: Ps::ZERO,
            idle_since: None,
        }
    }
}

impl Clock {
    pub fn read(&self, now: Ps, khz: u32) -> Counters {
        let mut clock = *self;
        clock.advance(now, khz);
        clock.counters
    }

    /// It ran at `khz` until `now`: for so long, since it was asked last.
    pub fn advance(&mut self, now: Ps, khz: u32) -> Ps {
        let time = now.saturating_sub(self.counted);
        if self.halted || time == Ps::ZERO {
            return Ps::ZERO;
        }
        self.counted = now;
        self.counters.unhalted += time;
        let (khz, ms) = (u64::from(khz), time.0 / CYCLE);
        // As many kHz are so many cycles in a millisecond, however long that is.
        let parts = time.0 % CYCLE * khz + self.part;
        self.counters.cycles += ms * khz + parts / CYCLE;
        self.part = parts % CYCLE;
        time
    }

    pub fn idles(&mut self, now: Ps) {
        self.idle_since = Some(now);
    }

    /// tick-sched.c: update_ts_time_stats(): it idles up to `now`, and beyond, `iowait` while tasks wait for a device.
    #[doc(alias = "update_ts_time_stats")]
    pub fn account_idle(&mut self, now: Ps, iowait: bool) {
        let Some(since) = &mut self.idle_since else { return };
        let delta = now.saturating_sub(*since);
        *since += delta;
        *if iowait { &mut self.iowait } else { &mut self.idle } += delta;
    }

    /// cpufreq.c: get_cpu_idle_time(), as far as it was accounted.
    pub fn get_cpu_idle_time(&self, io_busy: bool) -> Ps {
        if io_busy { self.idle } else { self.idle + self.iowait }
    }

    /// It idles no longer.
    pub fn stop_idle(&mut self, now: Ps, iowait: bool) {
        self.account_idle(now, iowait);
        self.idle_since = None;
    }

    /// As [`Clock::advance`], and it halts.
    pub fn stop(&mut self, now: Ps, khz: u32) -> Ps {
        let time = self.advance(now, khz);
        self.halted = true;
        time
    }

    /// For how long it has run since it was asked last.
    pub fn since_counted(mut self, now: Ps) -> Ps {
        self.advance(now, 0)
    }

    pub fn halted(&self) -> bool {
        self.halted
    }

    pub fn start(&mut self, now: Ps) {
        if self.halted {
            (self.halted, self.counted) = (false, self.counted.max(now));
        }
    }
}

/// How long somebody was at each frequency, in kHz: what `cpupower` and cpufreq's `time_in_state` show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrequencyTime {
    by_khz: Vec<(u32, Ps)>,
    changes: u64,
}

impl FrequencyTime {
    /// The lowest frequency first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Ps)> + '_ {
        self.by_khz.iter().copied()
    }

    /// That at one of them.
    pub fn at(&self, khz: u32) -> Ps {
        self.iter().find(|entry| entry.0 == khz).map_or(Ps::ZERO, |entry| entry.1)
    }

    /// That at all of them.
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

    /// Time at a frequency, which is no change to it.
    pub fn count(&mut self, khz: u32, time: Ps) {
        let place = self.by_khz.partition_point(|entry| entry.0 < khz);
        match self.by_khz.get_mut(place) {
            Some(entry) if entry.0 == khz => entry.1 += time,
            _ => self.by_khz.insert(place, (khz, time)),
        }
    }

    /// The sum with another's.
    pub fn merge(&mut self, other: &FrequencyTime) {
        self.changes += other.changes;
        other.iter().for_each(|(khz, time)| self.count(khz, time));
    }
}
