//! Tunables that grow with the number of CPUs, on four CPUs of which some go off- and online.

use super::*;
use crate::core::HotplugState;
use crate::fair::rules::WrittenTunables;
use crate::scheduler::Scheduler;
use crate::testing::{machine as booted, take_offline};

const ALL: [Kernel; 10] = [V4_5_RC1, V4_15, V4_16, V5_4, V5_15, V6_1, V6_6, V6_12, V6_18, V7_2];

/// How many times larger the tunables are than on one CPU.
fn factor(s: &Sched<Hand>) -> u64 {
    let of = |tunable: Tunable| {
        let normalized = s.kernel.sysctl(1).get(tunable);
        assert_eq!(s.sysctl.get(tunable) % normalized, 0, "{}: {tunable:?}", s.kernel.name);
        s.sysctl.get(tunable) / normalized
    };
    let all = [
        Tunable::sched_latency,
        Tunable::sched_min_granularity,
        Tunable::sched_wakeup_granularity,
        Tunable::sched_base_slice,
    ];
    let factors = all.map(of);
    assert!(factors.iter().all(|&factor| factor == factors[0]), "{}: {factors:?}", s.kernel.name);
    assert_eq!(s.sysctl.sched_idle_min_granularity, 750_000, "it does not grow");
    factors[0]
}

fn cpus(list: &[usize]) -> CpuMask {
    list.iter().map(|&cpu| CpuId::new(cpu)).collect()
}

#[test]
fn a_cpu_that_goes_is_counted_where_domains_are_built_before_it_is_gone() {
    // For 4, 3, 2 and 1 CPUs the factors are 3, 2, 2 and 1.
    let before = [3, 2, 2];
    let after = [2, 2, 1];
    for (kernel, factors) in [
        (V4_5_RC1, before),
        (V4_15, after),
        (V4_16, after),
        (V6_1, after),
        (V6_6, after),
        (V6_12, before),
        (V7_2, before),
    ] {
        let mut s = booted(kernel, 4);
        assert_eq!(factor(&s), 3, "{}", kernel.name);
        for (cpu, expected) in [3, 2, 1].into_iter().zip(factors) {
            take_offline(&mut s, CpuId(cpu));
            assert_eq!(factor(&s), expected, "{} without CPU {cpu}", kernel.name);
        }
        for (cpu, expected) in [(1, 2), (2, 2), (3, 3)] {
            Scheduler::cpu_up(&mut s, CPU0, CpuId(cpu)).expect("it is offline");
            assert_eq!(factor(&s), expected, "{} with CPU {cpu} again", kernel.name);
        }
    }
}

#[test]
fn nothing_changes_before_a_cpu_is_gone_where_its_queue_is_still_online() {
    for (kernel, changes) in
        [(V4_5_RC1, true), (V4_15, false), (V4_16, false), (V6_1, true), (V6_6, true), (V6_12, true), (V7_2, true)]
    {
        let mut s = booted(kernel, 4);
        // As if a value had been written that is not kept.
        s.sysctl.sched_latency = 1;
        Scheduler::cpu_down(&mut s, CPU0, CpuId(3)).expect("nothing holds it");
        assert!(s.cpu_online_mask.contains(CpuId(3)) && !s.cpu_active_mask.contains(CpuId(3)), "{}", kernel.name);
        assert_eq!(s.sysctl.sched_latency != 1, changes, "{}", kernel.name);
        assert_eq!(s.rq[CpuId(3)].online, !changes, "{}", kernel.name);
    }
}

#[test]
fn an_isolated_cpu_changes_no_domains() {
    // The CPU's own queue goes offline, after the CPU has ceased to count, or before.
    for (kernel, expected) in [(V4_5_RC1, 2), (V4_15, 2), (V4_16, 2), (V6_1, 3), (V6_6, 3), (V6_12, 3), (V7_2, 3)] {
        let boot = Boot { isolated: cpus(&[2, 3]), ..Boot::new(kernel, CpuTopology::symmetric(1, 1, 1, 4, 1), 1000) };
        let mut s = Sched::new(Hand::at(1_000 * MS), boot);
        s.sysctl.sched_latency = 1;
        take_offline(&mut s, CpuId(3));
        assert_eq!(factor(&s), expected, "{}", kernel.name);
    }
}

#[test]
fn partitions_come_back_when_the_cpu_is_gone_until_v6_9() {
    for (kernel, expected) in [(V4_5_RC1, 2), (V4_15, 2), (V4_16, 2), (V6_1, 2), (V6_6, 2), (V6_12, 3), (V7_2, 3)] {
        let mut s = booted(kernel, 4);
        s.set_partitions(&[cpus(&[0, 1]), cpus(&[2, 3])]).expect("they do not overlap");
        let together = |s: &Sched<Hand>| s.rq[CPU0].rd == s.rq[CpuId(2)].rd;
        assert!(!together(&s));
        Scheduler::cpu_down(&mut s, CPU0, CpuId(3)).expect("nothing holds it");
        assert_eq!(together(&s), kernel == V4_5_RC1, "{}", kernel.name);
        let mut s = booted(kernel, 4);
        s.set_partitions(&[cpus(&[0, 1]), cpus(&[2, 3])]).expect("they do not overlap");
        take_offline(&mut s, CpuId(3));
        assert!(!together(&s) && s.rq[CpuId(3)].hotplug == HotplugState::Offline, "{}", kernel.name);
        assert_eq!(factor(&s), expected, "{}", kernel.name);
        Scheduler::cpu_up(&mut s, CPU0, CpuId(3)).expect("it is offline");
        assert!(!together(&s) && s.rq[CpuId(2)].rd == s.rq[CpuId(3)].rd, "{}", kernel.name);
        assert_eq!(factor(&s), 3, "{}", kernel.name);
    }
}

/// The tunable that this kernel's slices follow.
fn slice_of(kernel: &Kernel) -> Tunable {
    kernel.tunable("base_slice_ns").or(kernel.tunable("sched_latency_ns")).or(kernel.tunable("latency_ns")).unwrap().1
}

#[test]
fn what_was_written_grows_and_shrinks_until_v5_12_and_is_lost_later() {
    for kernel in ALL {
        let mut s = booted(kernel, 4);
        let tunable = slice_of(&kernel);
        Scheduler::sysctl_write(&mut s, CPU0, tunable, 10_000_000).expect("a sound value");
        assert_eq!(s.sysctl.get(tunable), 10_000_000, "{}", kernel.name);
        // 10 ms on four CPUs are 3,333,333 ns on one.
        let (gone, back) = match kernel.name {
            "v4.5-rc1" => (9_999_999, 9_999_999),
            "v4.15" | "v4.16" | "v4.19" | "v5.4" => (6_666_666, 9_999_999),
            "v5.15" | "v6.1" => (12_000_000, 18_000_000),
            "v6.6" => (1_500_000, 2_250_000),
            _ => (2_100_000, 2_100_000),
        };
        take_offline(&mut s, CpuId(3));
        assert_eq!(s.sysctl.get(tunable), gone, "{}", kernel.name);
        Scheduler::cpu_up(&mut s, CPU0, CpuId(3)).expect("it is offline");
        assert_eq!(s.sysctl.get(tunable), back, "{}", kernel.name);
    }
}

#[test]
fn what_is_written_on_fewer_cpus_is_larger_on_more() {
    let mut s = booted(V4_16, 4);
    take_offline(&mut s, CpuId(3));
    Scheduler::sysctl_write(&mut s, CPU0, Tunable::sched_latency, 10_000_000).expect("a sound value");
    Scheduler::cpu_up(&mut s, CPU0, CpuId(3)).expect("it is offline");
    assert_eq!(s.sysctl.sched_latency, 15_000_000);
    // The others were normalized with it, and still have their defaults.
    assert_eq!((s.sysctl.sched_min_granularity, s.sysctl.sched_wakeup_granularity), (2_250_000, 3_000_000));
}

#[test]
fn what_a_machine_is_set_up_with_counts_as_written() {
    for kernel in ALL {
        let topology = CpuTopology::symmetric(1, 1, 1, 4, 1);
        let tunable = slice_of(&kernel);
        let mut sysctl = kernel.sysctl(4);
        sysctl.set(tunable, 10_000_000);
        let mut s = Sched::new(Hand::at(1_000 * MS), Boot { sysctl, ..Boot::new(kernel, topology, 1000) });
        assert_eq!(s.sysctl, sysctl, "{}: bringing it up changes nothing", kernel.name);
        let kept = kernel.entity.written_tunables == WrittenTunables::Normalized;
        s.set_partitions(&[cpus(&[0, 1])]).expect("it is alone");
        let default = kernel.sysctl(4).get(tunable);
        assert_eq!(s.sysctl.get(tunable), if kept { 9_999_999 } else { default }, "{}", kernel.name);
    }
}

#[test]
fn partitions_that_stay_change_nothing() {
    for kernel in ALL {
        let mut s = booted(kernel, 4);
        s.set_partitions(&[cpus(&[0, 1])]).expect("it is alone");
        let tunable = slice_of(&kernel);
        Scheduler::sysctl_write(&mut s, CPU0, tunable, 10_000_000).expect("a sound value");
        s.set_partitions(&[cpus(&[0, 1])]).expect("it is alone");
        assert_eq!(s.sysctl.get(tunable), 10_000_000, "{}", kernel.name);
    }
}

#[test]
fn how_many_slices_fit_stays_as_it_was_written() {
    // 20 ms and a nanosecond are more than four slices of 5 ms; on one CPU both are a third, rounded down, so that four
    // would do.
    let mut s = booted(V4_16, 4);
    for (tunable, value) in [(Tunable::sched_min_granularity, 5 * MS + 1), (Tunable::sched_latency, 20 * MS + 5)] {
        Scheduler::sysctl_write(&mut s, CPU0, tunable, value).expect("a sound value");
    }
    let fit = |s: &Sched<Hand>| (0..).find(|&tasks| s.is_past_nr_latency(tasks)).unwrap();
    assert_eq!(fit(&s), 5);
    take_offline(&mut s, CpuId(3));
    assert_eq!((s.sysctl.sched_min_granularity, s.sysctl.sched_latency), (2 * 1_666_667, 2 * 6_666_668));
    assert_eq!(s.sysctl.sched_latency / s.sysctl.sched_min_granularity, 4);
    assert_eq!(s.sysctl.sched_latency % s.sysctl.sched_min_granularity, 0);
    assert_eq!(fit(&s), 5);
}
