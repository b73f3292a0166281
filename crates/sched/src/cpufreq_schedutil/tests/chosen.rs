//! The frequencies that schedutil chooses, by the sources of each version.

use super::*;
use crate::versions::Kernel;

const MIN: u32 = 1_000_000;
const MAX: u32 = 3_000_000;
const CPU0: CpuId = CpuId(0);

/// A CPU of 1.0 to 3.0 GHz, which a kernel with ticks every 4 ms runs at `cur`.
struct Governed {
    sched: Sched<Hand>,
}

fn governed(kernel: Kernel, cur: u32, rate_limit_us: u32) -> Governed {
    let mut sched = machine(kernel, 2);
    sched.arch.khz = Some((MIN, MAX));
    sched.sugov_start(vec![CpufreqPolicy {
        cur,
        rate_limit_us,
        dvfs_possible_from_any_cpu: false,
        ..policy_of(&[CPU0])
    }]);
    sched.on_cpu(CPU0);
    Governed { sched }
}

impl Governed {
    /// Notifies it a second and `ms` after boot; returns what it has requested by then.
    fn told(&mut self, ms: u64, flags: UpdateFlags) -> &[u32] {
        self.sched.rq[CPU0].clock = (1_000 + ms) * MS;
        self.sched.cpufreq_update_util(CPU0, flags);
        &self.sched.arch.mhz
    }

    fn uses(&mut self, util: u64) {
        let root = self.sched.rq[CPU0].cfs;
        self.sched.cfs_rq[root].avg.util_avg = util;
    }

    fn reserves(&mut self, of_1024: u64) {
        self.sched.dl[CPU0].running_bw = of_1024 << 10;
    }
}

#[test]
fn a_quarter_more_than_is_used_of_the_highest_or_of_what_it_runs_at() {
    for (kernel, mhz) in
        [(V4_15, 1_250), (V4_16, 1_250), (V4_19, 1_250), (V5_15, 1_875), (V6_1, 1_875), (V6_6, 1_875), (V6_12, 1_875)]
    {
        let mut cpu = governed(kernel, 2_000_000, 0);
        cpu.uses(512);
        assert_eq!(cpu.told(0, UpdateFlags::NONE), [mhz], "{}", kernel.name);
    }
}

#[test]
fn what_tasks_wait_for_counts_since_v6_5() {
    for (kernel, mhz) in [(V6_1, 1_875), (V6_6, 2_812), (V6_12, 2_812)] {
        let mut cpu = governed(kernel, MAX, 0);
        cpu.uses(512);
        let root = cpu.sched.rq[CPU0].cfs;
        cpu.sched.cfs_rq[root].avg.runnable_avg = 768;
        assert_eq!(cpu.told(0, UpdateFlags::NONE), [mhz], "{}", kernel.name);
    }
}

#[test]
fn waits_for_devices_boost_from_the_lowest_frequency_or_from_an_eighth_of_a_cpu() {
    for kernel in [V4_15, V4_16] {
        // 1.0, 2.0 and 3.0 of 3.0 GHz, of a quarter more than its current frequency.
        let mut cpu = governed(kernel, MIN, 0);
        (0..5).for_each(|ms| _ = cpu.told(ms, UpdateFlags::IOWAIT));
        assert_eq!(cpu.sched.arch.mhz, [1_000, 1_250, 1_562, 1_953], "{}", kernel.name);
    }
    // The same in shares of a CPU: a third, two thirds, all. From an eighth it takes one step more to double to all.
    for (kernel, mhz) in [(V4_19, vec![1_000, 1_250, 1_562, 1_953]), (V5_4, vec![1_000, 1_250, 1_562])] {
        let mut cpu = governed(kernel, MIN, 0);
        (0..5).for_each(|ms| _ = cpu.told(ms, UpdateFlags::IOWAIT));
        assert_eq!(cpu.sched.arch.mhz, mhz, "{}", kernel.name);
    }
    for kernel in [V6_1, V6_6, V6_12] {
        // 128, 256, 512 and 1024 of 1024.
        let mut cpu = governed(kernel, MIN, 0);
        (0..5).for_each(|ms| _ = cpu.told(ms, UpdateFlags::IOWAIT));
        assert_eq!(cpu.sched.arch.mhz, [1_000, 1_875, 3_000], "{}", kernel.name);
        // The boost halves when no task waits, and the CPU has idled.
        for ms in 5..7 {
            cpu.sched.count_idle_call(CPU0);
            cpu.told(ms, UpdateFlags::NONE);
        }
        assert_eq!(cpu.sched.arch.mhz[3..], [1_875, 1_000], "{}", kernel.name);
        // More than a tick without notification: begins with an eighth again.
        (12..15).for_each(|ms| _ = cpu.told(ms, UpdateFlags::IOWAIT));
        assert_eq!(cpu.sched.arch.mhz[5..], [1_875], "{}", kernel.name);
    }
}

#[test]
fn real_time_tasks_go_fast_and_deadline_tasks_until_v4_15() {
    let asked = |kernel: Kernel, flags: UpdateFlags| {
        let mut cpu = governed(kernel, MIN, 0);
        cpu.reserves(512);
        cpu.told(0, flags).to_vec()
    };
    assert_eq!((asked(V4_15, UpdateFlags::RT), asked(V4_15, UpdateFlags::DL)), (vec![3_000], vec![3_000]));
    // Half of a quarter more than 1.0 GHz.
    assert_eq!((asked(V4_16, UpdateFlags::RT), asked(V4_16, UpdateFlags::DL)), (vec![3_000], vec![1_000]));
    // Half of 3.0 GHz, plus a quarter; in v6.12 reserved bandwidth gets no headroom.
    let deadline = [V6_1, V6_6, V6_12].map(|kernel| asked(kernel, UpdateFlags::DL));
    assert_eq!(deadline, [[1_875], [1_875], [1_500]]);
}

#[test]
fn a_rate_limit_holds_but_not_for_deadline_tasks_that_need_more_from_v4_19_on() {
    for (kernel, waits) in [(V4_16, true), (V4_19, false), (V5_4, false), (V6_1, false), (V6_6, false), (V6_12, false)]
    {
        let mut cpu = governed(kernel, MAX, 10_000);
        cpu.uses(300);
        assert_eq!(cpu.told(0, UpdateFlags::NONE).len(), 1, "{}", kernel.name);
        cpu.uses(900);
        assert_eq!(cpu.told(9, UpdateFlags::NONE).len(), 1, "{}: 9 ms after it", kernel.name);
        cpu.reserves(700);
        assert_eq!(cpu.told(9, UpdateFlags::DL).len(), if waits { 1 } else { 2 }, "{}", kernel.name);
        assert_eq!(cpu.told(10, UpdateFlags::NONE).len(), 2, "{}: 10 ms", kernel.name);
    }
}

#[test]
fn a_cpu_that_has_not_idled_does_not_slow_down() {
    for kernel in [V4_15, V4_16, V4_19, V5_4, V6_1, V6_6, V6_12] {
        let mut cpu = governed(kernel, MAX, 0);
        cpu.sched.count_idle_call(CPU0);
        cpu.uses(700);
        assert_eq!(cpu.told(0, UpdateFlags::NONE).len(), 1);
        cpu.uses(300);
        assert_eq!(cpu.told(1, UpdateFlags::NONE).len(), 1, "{}", kernel.name);
        cpu.sched.count_idle_call(CPU0);
        assert_eq!(cpu.told(2, UpdateFlags::NONE).len(), 2, "{}", kernel.name);
    }
}

#[test]
fn a_busy_cpu_slows_down_where_limits_changed_until_v5_4_and_since_v6_1() {
    for (kernel, slows) in [(V4_19, true), (V5_4, true), (V5_10, false), (V5_15, false), (V6_1, true)] {
        let mut cpu = governed(kernel, MAX, 0);
        cpu.sched.count_idle_call(CPU0);
        cpu.uses(700);
        assert_eq!(cpu.told(0, UpdateFlags::NONE).len(), 1);
        cpu.uses(300);
        // What counts as a change of limits is a deadline task that needs more.
        cpu.reserves(10);
        assert_eq!(cpu.told(1, UpdateFlags::DL).len(), if slows { 2 } else { 1 }, "{}", kernel.name);
    }
}

#[test]
fn blocked_load_is_told_of_when_a_whole_period_of_it_has_decayed() {
    for kernel in [V6_1, V6_12] {
        let mut cpu = governed(kernel, MAX, 0);
        let init = TaskInit { cpus_allowed: Some(CpuMask::single(CPU0)), ..task_in(ROOT_TASK_GROUP, "test") };
        let p = cpu.sched.fork(CPU0, init).expect("a fair task");
        Scheduler::wake_up_new_task(&mut cpu.sched, CPU0, p);
        Scheduler::schedule(&mut cpu.sched, CPU0, true);
        let after = |cpu: &mut Governed, us: u64| {
            cpu.sched.arch.now += us * 1_000;
            cpu.sched.arch.paths.clear();
            cpu.sched.update_blocked_averages(CPU0);
            cpu.sched.arch.paths.iter().filter(|&&path| path == Path::sugov_update).count()
        };
        after(&mut cpu, 5_000);
        let told: Vec<usize> = [100, 100, 100, 1_024, 100].map(|us| after(&mut cpu, us)).into();
        // A period is 1024 us: at most one of the first three notifications ends one, the fourth does.
        assert!(told[..3].iter().sum::<usize>() <= 1, "{}: {told:?}", kernel.name);
        assert_eq!(told[3], 1, "{}: {told:?}", kernel.name);
    }
}
