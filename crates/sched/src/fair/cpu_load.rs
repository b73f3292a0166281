//! fair.c: "per rq 'load' array": `cpu_load[]`, averages of a CPU's load over 1, 2, 4, 8 and 16 ticks, and the
//! estimates that load balancing derives from them.
//!
//! On each tick, with `load` the current load:
//!
//! ```text
//! cpu_load[i] = (1 - 1/2^i) cpu_load[i] + 1/2^i load
//! ```
//!
//! Ticks that were missed because the CPU idled without them are made up for all at once. Since v5.3 these averages no
//! longer exist, and the estimates are the current load.

use super::balance::TicklessLoad;
use crate::arch::Arch;
use crate::core::Sched;
use crate::features::Feature;
use crate::sched::CPU_LOAD_IDX_MAX;
use fentry::fentry;
use units::CpuId;

/// fair.c: DEGRADE_SHIFT. Factors are multiples of 1/128 (2^-7).
const DEGRADE_SHIFT: u32 = 7;

/// fair.c: degrade_zero_ticks. The number of missed ticks after which nothing is left of an average.
#[allow(non_upper_case_globals)]
static degrade_zero_ticks: [u64; CPU_LOAD_IDX_MAX] = [0, 8, 32, 64, 128];

/// fair.c: degrade_factor. For average `i`, entry `j`: what is left of it after 2^j ticks, in units of 1/128. Up to one
/// unit this is 128 (1 - 1/2^i)^(2^j), but it has to be a table: the kernel rounds now up, now down.
#[allow(non_upper_case_globals)]
static degrade_factor: [[u64; DEGRADE_SHIFT as usize + 1]; CPU_LOAD_IDX_MAX] = [
    [0, 0, 0, 0, 0, 0, 0, 0],
    [64, 32, 8, 0, 0, 0, 0, 0],
    [96, 72, 40, 12, 1, 0, 0, 0],
    [112, 98, 75, 43, 15, 1, 0, 0],
    [120, 112, 98, 76, 45, 16, 2, 0],
];

/// fair.c: decay_load_missed(). What is left of average `idx` after ticks without load.
fn decay_load_missed(load: u64, missed_updates: u64, idx: usize) -> u64 {
    if missed_updates == 0 {
        return load;
    }
    if missed_updates >= degrade_zero_ticks[idx] {
        return 0;
    }
    if idx == 1 {
        return load >> missed_updates;
    }
    let bits = (0..=DEGRADE_SHIFT as usize).filter(|j| missed_updates >> j & 1 == 1);
    bits.fold(load, |load, j| (load * degrade_factor[idx][j]) >> DEGRADE_SHIFT)
}

/// fair.c: cpu_load_update(). One tick with `this_load`, after `pending_updates - 1` ticks with `tickless_load`.
///
/// Differs: until v4.6, on a CPU that was busy without ticks (`nohz_full=`), the difference of both loads decays; it
/// wraps if the average is the smaller one.
#[doc(alias = "__update_cpu_load")]
fn cpu_load_update(cpu_load: &mut [u64; CPU_LOAD_IDX_MAX], this_load: u64, pending_updates: u64, tickless_load: u64) {
    cpu_load[0] = this_load;
    for (i, average) in cpu_load.iter_mut().enumerate().skip(1) {
        // (1 - 1/2^i)^n (old - tickless) + tickless; the second decay is never above the tickless load itself.
        let mut old_load = decay_load_missed(*average, pending_updates - 1, i);
        old_load += tickless_load - decay_load_missed(tickless_load, pending_updates - 1, i);
        let mut new_load = this_load;
        // A rising average is rounded up, or it would never arrive at the load.
        if new_load > old_load {
            new_load += (1 << i) - 1;
        }
        *average = (old_load * ((1 << i) - 1) + new_load) >> i;
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: weighted_cpuload(). The load of the tasks that are queued now: the root queue's `runnable_load_avg`.
    #[inline]
    #[doc(alias = "cpu_runnable_load")]
    pub(crate) fn weighted_cpuload(&self, cpu: CpuId) -> u64 {
        self.cfs_rq_runnable_avg(self.rq[cpu].cfs)
    }

    /// fair.c: source_load(). A low estimate of the load of a CPU that tasks would be taken from.
    #[inline]
    pub(crate) fn source_load(&self, cpu: CpuId, index: u32) -> u64 {
        let total = self.weighted_cpuload(cpu);
        self.biased_average(cpu, index).map_or(total, |average| average.min(total))
    }

    /// fair.c: target_load(). A high estimate of the load of a CPU that tasks would go to.
    #[inline]
    pub(crate) fn target_load(&self, cpu: CpuId, index: u32) -> u64 {
        let total = self.weighted_cpuload(cpu);
        self.biased_average(cpu, index).map_or(total, |average| average.max(total))
    }

    /// The average that both estimates compare with, if any.
    #[inline]
    fn biased_average(&self, cpu: CpuId, index: u32) -> Option<u64> {
        let kept = self.kernel.balance.tickless_load != TicklessLoad::Absent;
        let index = index.checked_sub(1).filter(|_| kept && self.sched_feat(Feature::LB_BIAS))?;
        Some(self.rq[cpu].cpu_load[index as usize])
    }

    /// fair.c: cpu_avg_load_per_task().
    pub(crate) fn cpu_avg_load_per_task(&mut self, cpu: CpuId) -> u64 {
        self.read_rq_cfs(cpu);
        self.read_rq_runnable(cpu);
        let nr_running = u64::from(self.cfs_h_nr_running(cpu));
        self.weighted_cpuload(cpu).checked_div(nr_running).unwrap_or(0)
    }

    /// fair.c: update_cpu_load_active(). The update on each tick.
    #[doc(alias = "cpu_load_update_active")]
    #[inline]
    pub(crate) fn update_cpu_load_active(&mut self, cpu: CpuId) {
        if self.kernel.balance.tickless_load != TicklessLoad::Absent {
            self.update_cpu_load_of_tick(cpu);
        }
    }

    #[fentry(update_cpu_load)]
    fn update_cpu_load_of_tick(&mut self, cpu: CpuId) {
        let load = self.weighted_cpuload(cpu);
        match self.kernel.balance.tickless_load {
            TicklessLoad::Recorded if self.rq[cpu].tick_stopped => self.cpu_load_update_nohz(cpu, load, true),
            TicklessLoad::Recorded | TicklessLoad::Idle | TicklessLoad::Absent => {
                self.rq[cpu].last_load_update_tick = self.jiffies();
                self.count_ticks(cpu, load, 1, 0);
            }
        }
    }

    /// fair.c: cpu_load_update_idle(). The update before balancing on behalf of a CPU without ticks.
    #[doc(alias = "update_idle_cpu_load")]
    pub(super) fn cpu_load_update_idle(&mut self, cpu: CpuId) {
        if self.weighted_cpuload(cpu) == 0 {
            self.cpu_load_update_nohz(cpu, 0, false);
        }
    }

    /// fair.c: cpu_load_update_nohz_start(). Notes the load with which a tickless period begins.
    pub(crate) fn cpu_load_update_nohz_start(&mut self, cpu: CpuId) {
        match self.kernel.balance.tickless_load {
            TicklessLoad::Idle | TicklessLoad::Absent => {}
            TicklessLoad::Recorded => {
                self.write_rq_load(cpu);
                self.rq[cpu].cpu_load[0] = self.weighted_cpuload(cpu);
            }
        }
    }

    /// fair.c: cpu_load_update_nohz_stop(). The ticks return.
    #[doc(alias = "update_cpu_load_nohz")]
    ///
    /// `active`: the CPU was busy without ticks.
    #[inline(always)]
    pub(crate) fn cpu_load_update_nohz_stop(&mut self, cpu: CpuId, active: bool) {
        if self.jiffies() > self.rq[cpu].last_load_update_tick {
            self.update_cpu_load_of_nohz(cpu, active);
        }
    }

    /// The body of `cpu_load_update_nohz_stop()`, if a jiffy has passed.
    #[inline(never)]
    fn update_cpu_load_of_nohz(&mut self, cpu: CpuId, active: bool) {
        let load = match self.kernel.balance.tickless_load {
            TicklessLoad::Absent => return,
            TicklessLoad::Idle if !active => 0,
            TicklessLoad::Idle | TicklessLoad::Recorded => self.weighted_cpuload(cpu),
        };
        self.rq_lock(cpu);
        self.update_rq_clock_of_caller(cpu);
        self.cpu_load_update_nohz(cpu, load, active);
        self.rq_unlock(cpu);
    }

    /// fair.c: cpu_load_update_nohz(). Makes up for all ticks since the last update; only the last one saw `load`.
    fn cpu_load_update_nohz(&mut self, cpu: CpuId, load: u64, active: bool) {
        // This CPU's clock may be a jiffy behind that of the CPU that wrote here.
        let curr_jiffies = self.jiffies();
        let pending_updates = curr_jiffies.saturating_sub(self.rq[cpu].last_load_update_tick);
        if pending_updates == 0 {
            return;
        }
        let tickless_load = match self.kernel.balance.tickless_load {
            TicklessLoad::Absent => return,
            TicklessLoad::Idle if !active => 0,
            TicklessLoad::Idle | TicklessLoad::Recorded => self.rq[cpu].cpu_load[0],
        };
        self.rq[cpu].last_load_update_tick = curr_jiffies;
        self.count_ticks(cpu, load, pending_updates, tickless_load);
    }

    fn count_ticks(&mut self, cpu: CpuId, this_load: u64, pending_updates: u64, tickless_load: u64) {
        self.write_rq_load(cpu);
        self.rq[cpu].nr_load_updates += 1;
        cpu_load_update(&mut self.rq[cpu].cpu_load, this_load, pending_updates, tickless_load);
        self.sched_avg_update(cpu);
    }

    /// fair.c: sched_avg_update(). Halves `rt_avg` for every period that has ended.
    pub(crate) fn sched_avg_update(&mut self, cpu: CpuId) {
        let period = self.sched_avg_period();
        let rq = &mut self.rq[cpu];
        let since = rq.clock.wrapping_sub(rq.age_stamp) as i64;
        // A period has ended when more than its length has passed.
        let periods = (since.max(1) as u64 - 1) / period;
        rq.age_stamp += periods * period;
        rq.rt_avg = rq.rt_avg.checked_shr(periods.min(64) as u32).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_ticks_decay_as_the_table_says() {
        // By hand: 1000 * 96/128 = 750; * 72/128 (two ticks) = 562; three ticks are one and two: 1000*96/128*72/128 = 421.
        assert_eq!(decay_load_missed(1000, 0, 2), 1000);
        assert_eq!(decay_load_missed(1000, 1, 2), 750);
        assert_eq!(decay_load_missed(1000, 2, 2), 562);
        assert_eq!(decay_load_missed(1000, 3, 2), 421);
        // Average 1 halves, without the table.
        assert_eq!(decay_load_missed(1000, 3, 1), 125);
        assert_eq!(decay_load_missed(1000, 7, 1), 7);
        assert_eq!(decay_load_missed(1000, 8, 1), 0);
        // 21 = 16 + 4 + 1: 1000*120/128 = 937; *98/128 = 717; *45/128 = 252.
        assert_eq!(decay_load_missed(1000, 21, 4), 252);
        assert_eq!(decay_load_missed(1000, 127, 4), 0);
        // 100 = 64 + 32 + 4: 98/128 * 16/128 * 2/128 of 2^30, all without rests.
        assert_eq!(decay_load_missed(1 << 30, 100, 4), (98 * 16 * 2) << (30 - 21));
        for (idx, &limit) in degrade_zero_ticks.iter().enumerate().skip(1) {
            assert_eq!(decay_load_missed(u64::from(u32::MAX), limit, idx), 0);
        }
    }

    #[test]
    fn averages_rise_and_fall_and_arrive() {
        let mut cpu_load = [0; CPU_LOAD_IDX_MAX];
        cpu_load_update(&mut cpu_load, 1024, 1, 0);
        // (1024 + 2^i - 1) >> i
        assert_eq!(cpu_load, [1024, 512, 256, 128, 64]);
        for _ in 0..200 {
            cpu_load_update(&mut cpu_load, 10, 1, 0);
        }
        assert_eq!(cpu_load, [10; 5]);
        for _ in 0..200 {
            cpu_load_update(&mut cpu_load, 11, 1, 0);
        }
        assert_eq!(cpu_load, [11; 5], "a load one higher is reached, not approached");
    }

    #[test]
    fn idle_time_is_caught_up_with_at_once() {
        let mut cpu_load = [1024; CPU_LOAD_IDX_MAX];
        cpu_load_update(&mut cpu_load, 0, 3, 0);
        // Two missed ticks, then one with nothing: 1024>>2 = 256, /2; 576*3/4; 784*7/8; 896*15/16.
        assert_eq!(cpu_load, [0, 128, 432, 686, 840]);
    }

    #[test]
    fn a_recorded_load_holds_its_level_through_time_without_ticks() {
        let mut cpu_load = [600; CPU_LOAD_IDX_MAX];
        cpu_load_update(&mut cpu_load, 600, 50, 600);
        assert_eq!(cpu_load, [600; 5]);
        // From nothing, 3 missed ticks at 800: 800 - 800/8 = 700 for average 1, then 800 once more.
        let mut cpu_load = [0; CPU_LOAD_IDX_MAX];
        cpu_load_update(&mut cpu_load, 800, 4, 800);
        assert_eq!(cpu_load[1], 750);
    }
}
