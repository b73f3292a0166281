//! What schedutil makes of the CPUs that report their utilization.

use super::*;
use crate::core::TaskInit;
use crate::sched::ROOT_TASK_GROUP;
use crate::scheduler::Scheduler;
use crate::testing::{Hand, MS, machine, policy_of, task_in};
use crate::versions::{Kernel, V4_15, V4_16, V4_19, V5_4, V5_10, V5_15, V6_1, V6_6, V6_12, V6_18, V7_2};
use units::CpuMask;

mod chosen;
mod stores;

const CPUS: [CpuId; 2] = [CpuId(0), CpuId(1)];

/// Two CPUs, in these policies.
fn governed(kernel: Kernel, policies: Option<&[&[CpuId]]>) -> Sched<Hand> {
    let mut sched = machine(kernel, 2);
    if let Some(policies) = policies {
        let policy = |cpus: &&[CpuId]| CpufreqPolicy { rate_limit_us: 1_000, ..policy_of(cpus) };
        sched.sugov_start(policies.iter().map(policy).collect());
    }
    sched
}

/// How often each of schedutil's functions was charged while tasks ran for 100 ms on two CPUs, in these policies.
fn charges(kernel: Kernel, policies: Option<&[&[CpuId]]>) -> [usize; 4] {
    let mut sched = governed(kernel, policies);
    for cpu in CPUS {
        let init = TaskInit { cpus_allowed: Some(CpuMask::single(cpu)), ..task_in(ROOT_TASK_GROUP, "test") };
        let p = sched.fork(cpu, init).expect("a fair task");
        Scheduler::wake_up_new_task(&mut sched, cpu, p);
        Scheduler::schedule(&mut sched, cpu, true);
    }
    for _ in 0..25 {
        sched.arch.now += 4 * MS;
        CPUS.iter().for_each(|&cpu| {
            Scheduler::scheduler_tick(&mut sched, cpu);
        });
    }
    [Path::sugov_update, Path::sugov_get_util, Path::get_next_freq, Path::sugov_update_next_freq]
        .map(|path| sched.arch.paths.iter().filter(|&&charged| charged == path).count())
}

#[test]
fn it_takes_time_where_it_governs_and_none_elsewhere() {
    for kernel in [V4_15, V4_16, V5_15, V6_1, V6_12] {
        assert_eq!(charges(kernel, None), [0; 4], "{}", kernel.name);
        let [updates, utils, lookups, changes] = charges(kernel, Some(&[&CPUS[..1], &CPUS[1..]]));
        let falling = updates >= utils && utils >= lookups && lookups >= changes && changes > 0;
        assert!(falling, "{}: {updates} {utils} {lookups} {changes}", kernel.name);
    }
}

#[test]
fn a_shared_policy_is_looked_at_on_all_of_its_cpus() {
    for kernel in [V6_1, V6_12] {
        let [_, utils, lookups, _] = charges(kernel, Some(&[&CPUS]));
        assert_eq!(utils, 2 * lookups, "{}", kernel.name);
    }
}

#[test]
fn cpus_without_a_policy_are_not_governed() {
    for kernel in [V4_15, V6_12] {
        assert_eq!(charges(kernel, Some(&[])), [0; 4], "{}: nobody's", kernel.name);
        let (one, both) = (charges(kernel, Some(&[&CPUS[1..]])), charges(kernel, Some(&[&CPUS[..1], &CPUS[1..]])));
        assert!(one[0] > 0 && one[0] < both[0], "{}: {} of {} updates by one of two", kernel.name, one[0], both[0]);
    }
}

#[test]
fn no_rate_limit_holds_where_v6_18_tells_performance() {
    for (kernel, holds) in [(V6_12, true), (V6_18, false), (V7_2, true)] {
        let limited = |adjust_perf: bool| {
            let mut sched = machine(kernel, 1);
            let policy =
                CpufreqPolicy { rate_limit_us: 1_000_000, fast_switch: true, adjust_perf, ..policy_of(&CPUS[..1]) };
            sched.sugov_start(vec![policy]);
            let p = sched.fork(CPUS[0], task_in(ROOT_TASK_GROUP, "test")).expect("a fair task");
            Scheduler::wake_up_new_task(&mut sched, CPUS[0], p);
            Scheduler::schedule(&mut sched, CPUS[0], true);
            for _ in 0..25 {
                sched.arch.now += 4 * MS;
                Scheduler::scheduler_tick(&mut sched, CPUS[0]);
            }
            let charged = |path| sched.arch.paths.iter().filter(|&&charged| charged == path).count();
            charged(Path::sugov_get_util) < charged(Path::sugov_update)
        };
        assert_eq!([limited(true), limited(false)], [holds, true], "{}", kernel.name);
    }
}

#[test]
fn a_round_of_the_idle_loop_counts_where_it_would_stop_the_tick() {
    let mut sched = governed(V6_1, Some(&[&CPUS]));
    let cpu = CPUS[1];
    let calls = |sched: &Sched<Hand>| sched.cpufreq.as_ref().expect("it governs").idle_calls[cpu];
    // The idle governor keeps the tick over a short idle period: for schedutil, the CPU has not idled.
    Scheduler::set_idle_state(&mut sched, cpu, Some(2));
    Scheduler::set_idle_state(&mut sched, cpu, None);
    assert_eq!(calls(&sched), 0);
    // A timeout keeps the tick, then it stops, then it has stopped already.
    for (round, stops) in [false, true, false].into_iter().enumerate() {
        Scheduler::tick_nohz_idle_stop(&mut sched, cpu, stops);
        assert_eq!(calls(&sched), round as u64 + 1);
    }
}
