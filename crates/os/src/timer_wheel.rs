//! The timer wheel (kernel/time/timer.c): when a timeout that is given in jiffies fires.

use sched::behaviour;
use units::CpuId;

behaviour! {
    /// How the wheel keeps timeouts.
    pub enum TimerWheel = "timer.wheel" {
        Cascading = "cascading", since "v2.6.0", commit "",
            "timeouts wander down to the jiffy for which they were asked";
        Levels = "levels", since "v4.8", commit "500462a9de65",
            "they stay in the level where they were put, and fire with what that can tell apart: 1 jiffy later at least, an eighth of the timeout at most";
    }
}

behaviour! {
    /// Whose timers have no slack.
    pub enum TimerSlack = "timer.slack" {
        ByClass = "by-class", since "v2.6.28", commit "", "those of real-time and deadline tasks, as long as they are that";
        Kept = "kept", since "v6.12", commit "ed4fb6d7ef68",
            "theirs, and those of every task that such a one forks, whatever it becomes: it inherits a default of none (6.1.y too)";
    }
}

const LVL_CLK_SHIFT: u32 = 3;
const LVL_SIZE: u64 = 64;

/// timer.c: schedule_timeout(): the jiffy at which a timeout of `timeout` jiffies fires that is set at `jiffies`. `hz`, the
/// ticks per second, decides how many levels the wheel has: one less up to 100.
/// Differs: the wheel's clock is always up to date.
pub fn schedule_timeout(rule: TimerWheel, jiffies: u64, timeout: u64, hz: u32) -> u64 {
    let expires = jiffies + timeout;
    match rule {
        TimerWheel::Cascading => expires,
        TimerWheel::Levels => calc_wheel_index(expires, jiffies, hz),
    }
}

/// timer.c: round_jiffies_relative(): the timeout nearest to `timeout` jiffies that fires at a whole second, or three
/// jiffies before that for each CPU before this one, so that not all CPUs wake up together. `jiffies` since boot.
pub fn round_jiffies_relative(timeout: u64, jiffies: u64, cpu: CpuId, hz: u64) -> u64 {
    let skew = 3 * cpu.index() as u64;
    let skewed = jiffies + timeout + skew;
    let beyond = skewed % hz;
    let whole = if beyond < hz / 4 { skewed - beyond } else { skewed - beyond + hz };
    match whole.checked_sub(skew) {
        Some(rounded) if rounded > jiffies => rounded - jiffies,
        _ => timeout,
    }
}

/// LVL_START(): the first timeout of a level, in jiffies.
fn start_of(level: u32) -> u64 {
    (LVL_SIZE - 1) << ((level - 1) * LVL_CLK_SHIFT)
}

/// timer.c: calc_wheel_index(), of which only the bucket's expiry matters here.
fn calc_wheel_index(expires: u64, clk: u64, hz: u32) -> u64 {
    let depth = if hz > 100 { 9 } else { 8 };
    let delta = expires - clk;
    let level = (1..depth).find(|&level| delta < start_of(level)).map_or(depth - 1, |level| level - 1);
    // A timeout beyond the last level fires at that level's end.
    let most = start_of(depth) - (1 << ((depth - 1) * LVL_CLK_SHIFT));
    let expires = if delta >= start_of(depth) { clk + most } else { expires };
    let shift = level * LVL_CLK_SHIFT;
    ((expires >> shift) + 1) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_are_three_jiffies_earlier_for_each_cpu() {
        let rounded = |timeout, jiffies, cpu| round_jiffies_relative(timeout, jiffies, CpuId(cpu), 250);
        // 1010 + 250 is 10 after a whole second, 1100 + 250 is 100 after one, which is too much.
        assert_eq!((rounded(250, 1_010, 0), rounded(250, 1_100, 0)), (240, 400));
        assert_eq!((rounded(250, 1_010, 2), rounded(250, 1_050, 5)), (234, 435));
        // A whole second that is over cannot be waited for.
        assert_eq!(rounded(3, 1_010, 0), 3);
    }

    #[test]
    fn levels_round_up_to_what_they_tell_apart() {
        let levels = |timeout| schedule_timeout(TimerWheel::Levels, 1_000, timeout, 250);
        // The first level holds 62 jiffies, one apart; the next 503, eight apart; then sixty-four.
        assert_eq!(levels(1), 1_002);
        assert_eq!(levels(62), 1_063);
        assert_eq!(levels(63), 1_064);
        assert_eq!(levels(250), 1_256);
        assert_eq!(levels(503), 1_504);
        assert_eq!(levels(504), 1_536);
        assert_eq!(levels(5_000), 6_144);
        assert_eq!(schedule_timeout(TimerWheel::Cascading, 1_000, 250, 250), 1_250);
        // About twelve days are the longest timeout at 250 Hz.
        let most = schedule_timeout(TimerWheel::Levels, 0, 1 << 40, 250);
        assert_eq!(most, ((((63 << 24) - (1 << 24)) >> 24) + 1) << 24);
    }
}
