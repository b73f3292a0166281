//! The search since v5.12: the previous CPU's siblings, one scan for cores and CPUs, clusters, SIS_UTIL and SIS_PROP.

use super::*;

/// Two clusters of four cores each in one LLC: CPUs 0 to 3 and 4 to 7.
fn clusters(kernel: Kernel) -> Machine {
    let mut topology = CpuTopology::symmetric(1, 1, 1, 8, 1);
    for on in 0..8 {
        topology.cluster[cpu(on)] = if on < 4 { mask(&[0, 1, 2, 3]) } else { mask(&[4, 5, 6, 7]) };
    }
    Machine::new(kernel, topology)
}

fn set_idle_scan(m: &mut Machine, on: usize, nr: u32) {
    let shared = m.domains.sd_llc_shared[cpu(on)].expect("a cache that several CPUs share");
    m.domains[shared].nr_idle_scan = nr;
}

fn idle_core_is_known(m: &mut Machine, on: usize) {
    let shared = m.domains.sd_llc_shared[cpu(on)].expect("a cache that several CPUs share");
    m.domains[shared].has_idle_cores = true;
}

#[test]
fn the_previous_cpus_sibling_goes_first_while_no_idle_core_is_known() {
    for kernel in [V5_15, V6_1, V6_6, V6_12, V6_18] {
        let mut m = two_sockets(kernel);
        m.busy(&[0, 1]);
        let p = m.sleeper(1);
        assert_eq!(m.select(0, p, true), 9, "{}", kernel.name);
        // Its sibling is busy as well: from the target, CPU 0, on, the first idle CPU is 2.
        m.run(9);
        assert_eq!(m.select(0, p, true), 2, "{}", kernel.name);
        // The sibling of a CPU in another LLC is of no use: the search begins after CPU 0.
        let mut m = two_sockets(kernel);
        m.busy(&[0, 4]);
        let p = m.sleeper(4);
        assert_eq!(m.select(0, p, true), 1, "{}", kernel.name);
    }
    // Until v5.12 the search goes by number at once, and the target's own sibling comes last.
    let mut m = two_sockets(V4_16);
    m.busy(&[0, 1]);
    let p = m.sleeper(1);
    assert_eq!(m.select(0, p, true), 2);
}

#[test]
fn one_scan_finds_a_core_and_remembers_a_cpu_on_the_way() {
    for kernel in [V5_15, V6_1, V6_6, V6_12, V6_18] {
        // Cores 0 to 3 of the first socket: 1 and 2 are half busy by their first threads, 3 is idle.
        let mut m = two_sockets(kernel);
        m.busy(&[0, 1, 2]);
        idle_core_is_known(&mut m, 0);
        let p = m.sleeper(1);
        assert_eq!(m.select(0, p, true), 3, "{}", kernel.name);
        assert!(m.has_idle_cores(0));
        // Core 3 is not idle either: the first idle CPU that the scan saw is thread 9 of core 1. The scan found no core
        // and records that.
        m.run(3);
        assert_eq!(m.select(0, p, true), 9, "{}", kernel.name);
        assert!(!m.has_idle_cores(0));
        // An idle core is known again, but CPU 9 may not be used.
        idle_core_is_known(&mut m, 0);
        m.allow(p, &[0, 1, 2, 3, 10, 11]);
        assert_eq!(m.select(0, p, true), 10, "{}", kernel.name);
    }
}

#[test]
fn the_scan_begins_behind_the_target_and_wraps() {
    for kernel in [V5_15, V6_1, V6_6, V6_12, V6_18] {
        for (busy, expect) in [(&[][..], 6), (&[6, 7], 0), (&[6, 7, 0, 1, 2, 3, 4], 5)] {
            let mut m = uma(kernel);
            m.run(5);
            m.busy(busy);
            let p = m.sleeper(5);
            assert_eq!(m.select(5, p, true), expect, "{}", kernel.name);
        }
        let mut m = uma(kernel);
        m.run(7);
        let p = m.sleeper(7);
        assert_eq!(m.select(7, p, true), 0, "{}: behind the last comes the first", kernel.name);
    }
}

#[test]
fn sis_util_looks_at_as_many_cpus_as_balancing_left() {
    for kernel in [V5_15, V6_1, V6_6, V6_12, V6_18] {
        // CPUs 1 and 2 are busy: the third CPU looked at is idle.
        let chosen = |nr, util: bool| {
            let mut m = uma(kernel);
            m.features.set(Feature::SIS_UTIL, util);
            m.busy(&[0, 1, 2]);
            set_idle_scan(&mut m, 0, nr);
            let p = m.sleeper(0);
            m.select(0, p, true)
        };
        assert_eq!(chosen(8, true), 3, "{}", kernel.name);
        assert_eq!(chosen(3, true), 3, "{}", kernel.name);
        assert_eq!(chosen(2, true), 0, "{}: two CPUs and no further", kernel.name);
        assert_eq!(chosen(0, true), 0, "{}: none at all", kernel.name);
        assert_eq!(chosen(0, false), 3, "{}", kernel.name);
    }
}

#[test]
fn an_overloaded_cache_is_not_searched_for_cores_either() {
    let mut m = two_sockets(V6_1);
    m.busy(&[0, 1, 9]);
    idle_core_is_known(&mut m, 0);
    set_idle_scan(&mut m, 0, 0);
    let p = m.sleeper(1);
    assert_eq!(m.select(0, p, true), 0);
    // A limit of one is enough to search the whole LLC for a core.
    set_idle_scan(&mut m, 0, 1);
    assert_eq!(m.select(0, p, true), 2);
}

#[test]
fn sis_prop_spends_what_is_left_of_the_idle_time() {
    // 8 CPUs, average cost 99 ns: with 1,000 ns left 8 * 1000 / 100 = 80 CPUs; with 62 ns 496 / 100 = 4, which means
    // three.
    let chosen = |wake_avg_idle, busy: &[usize]| {
        let mut m = uma(V6_1);
        m.features.set(Feature::SIS_UTIL, false);
        m.features.set(Feature::SIS_PROP, true);
        m.run(0);
        m.busy(busy);
        let llc = m.domains.sd_llc[cpu(0)].unwrap();
        m.domains[llc].avg_scan_cost = 99;
        let now = m.jiffies();
        let rq = &mut m.rq[cpu(0)];
        (rq.wake_avg_idle, rq.wake_stamp) = (wake_avg_idle, now);
        let p = m.sleeper(0);
        (m.select(0, p, true), m.domains[llc].avg_scan_cost)
    };
    assert_eq!(chosen(1000, &[1, 2, 3]), (4, 99 - 13), "a search that took no time lowers the average by an eighth");
    assert_eq!(chosen(62, &[1, 2]), (3, 99 - 13));
    assert_eq!(chosen(62, &[1, 2, 3]), (0, 99), "a search that gave up is not counted");
}

#[test]
fn idle_time_to_spend_is_halved_for_each_jiffy_without_idleness() {
    let mut m = uma(V6_1);
    m.features.set(Feature::SIS_UTIL, false);
    m.features.set(Feature::SIS_PROP, true);
    m.run(0);
    m.arch.ns_per_read = 10;
    let now = m.jiffies();
    let rq = &mut m.rq[cpu(0)];
    (rq.wake_avg_idle, rq.wake_stamp) = (8_000, now - 2);
    let p = m.sleeper(0);
    m.select(0, p, true);
    let rq = &m.rq[cpu(0)];
    assert_eq!(rq.wake_stamp, now);
    // 8,000 / 4, less three reads of CPU 1.
    assert_eq!(rq.wake_avg_idle, 2_000 - 30);
}

#[test]
fn the_targets_cluster_is_searched_first() {
    // Starting at CPU 3: v6.1 finds 4 at once, v6.12 first looks at CPUs 0 to 2.
    let chosen = |kernel, busy: &[usize]| {
        let mut m = clusters(kernel);
        m.run(3);
        m.busy(busy);
        let p = m.sleeper(3);
        m.select(3, p, true)
    };
    assert_eq!(chosen(V6_1, &[]), 4);
    assert_eq!(chosen(V6_12, &[]), 0);
    assert_eq!(chosen(V6_12, &[0, 1]), 2);
    assert_eq!(chosen(V6_12, &[0, 1, 2]), 4, "then the rest of the cache");
    assert_eq!(chosen(with(V6_12, "wake.cluster_scan", "absent"), &[]), 4);
}

#[test]
fn an_idle_previous_cpu_of_another_cluster_waits_for_the_search() {
    for (busy, expect) in [(&[0, 1][..], 2), (&[0, 1, 2, 4, 5, 6], 7)] {
        let mut m = clusters(V6_12);
        m.run(3);
        m.busy(busy);
        let p = m.sleeper(7);
        assert_eq!(m.select(3, p, true), expect);
    }
    // Nothing was found because nothing was looked at: then the previous CPU, before a recently used one.
    let mut m = clusters(V6_12);
    m.run(3);
    set_idle_scan(&mut m, 3, 0);
    let p = m.sleeper(7);
    m.task[p].recent_used_cpu = cpu(6);
    assert_eq!(m.select(3, p, true), 7);
    m.run(7);
    m.task[p].recent_used_cpu = cpu(6);
    assert_eq!(m.select(3, p, true), 6, "the previous one is busy");
    // Without clusters it is taken at once.
    let mut m = clusters(V6_1);
    m.run(3);
    let p = m.sleeper(7);
    assert_eq!(m.select(3, p, true), 7);
}

#[test]
fn a_cpu_with_idle_policy_tasks_only_is_as_good_as_idle() {
    // CPU 1 runs a SCHED_IDLE task.
    let chosen_for = |kernel: Kernel, policy, prev| {
        let mut m = uma(kernel);
        m.run(0);
        m.run(1);
        let cfs = m.rq[cpu(1)].cfs;
        (m.cfs_rq[cfs].h_nr_running, m.cfs_rq[cfs].idle_h_nr_running) = (1, 1);
        let p = m.sleeper(prev);
        m.task[p].policy = policy;
        m.select(0, p, true)
    };
    let chosen = |kernel, prev| chosen_for(kernel, Policy::Normal, prev);
    for kernel in [V5_15, V6_1, V6_12, V7_2] {
        assert_eq!(chosen(kernel, 0), 1, "{}: found", kernel.name);
        assert_eq!(chosen(kernel, 1), 1, "{}: the previous CPU", kernel.name);
        assert_eq!(chosen(with(kernel, "wake.sched_idle_cpu", "busy"), 0), 2, "{}", kernel.name);
    }
    assert_eq!(chosen(V4_16, 0), 2);
    assert_eq!(chosen(with(V4_16, "wake.sched_idle_cpu", "as-idle"), 0), 1);
    // From v7.2 on, not for a task of the same policy: neither as its previous CPU nor as the result of a search.
    for (kernel, prev, expect) in [(V6_12, 0, 1), (V6_12, 1, 1), (V6_18, 0, 1), (V7_2, 0, 2), (V7_2, 1, 2)] {
        assert_eq!(chosen_for(kernel, Policy::Idle, prev), expect, "{}", kernel.name);
    }
}

#[test]
fn a_cpu_with_idle_policy_tasks_only_is_a_last_resort_in_v5_4() {
    // CPU 1 runs a SCHED_IDLE task.
    let chosen = |kernel: Kernel, prev, busy: &[usize], avg_idle| {
        let mut m = uma(kernel);
        m.busy(&[0, 1]);
        m.busy(busy);
        let cfs = m.rq[cpu(1)].cfs;
        (m.cfs_rq[cfs].h_nr_running, m.cfs_rq[cfs].idle_h_nr_running) = (1, 1);
        m.rq[cpu(0)].avg_idle = avg_idle;
        let p = m.sleeper(prev);
        m.select(0, p, true)
    };
    let others = [2, 3, 4, 5, 6, 7];
    assert_eq!(chosen(V5_4, 1, &[], 0), 1, "the previous CPU");
    assert_eq!(chosen(V5_4, 0, &[], 0), 2, "an idle one is better");
    assert_eq!(chosen(V5_4, 0, &others, 0), 1, "the search was cut short: four tries");
    assert_eq!(chosen(V5_4, 0, &others, 1 << 40), 0, "a whole search in vain forgets it");
    assert_eq!([chosen(V5_10, 0, &[], 0), chosen(V5_10, 0, &others, 1 << 40)], [1, 1]);
    // A new task.
    let child = |kernel: Kernel, busy: &[usize]| {
        let mut m = uma(kernel);
        m.busy(&[0, 1]);
        m.busy(busy);
        let cfs = m.rq[cpu(1)].cfs;
        (m.cfs_rq[cfs].h_nr_running, m.cfs_rq[cfs].idle_h_nr_running) = (1, 1);
        let sd = m.domains.sd[cpu(0)].expect("one cache");
        let p = m.sleeper(0);
        m.0.this_cpu = cpu(0);
        let group = m.domains[sd].groups;
        // A group of all, as no domain has it.
        m.domains[group].group_weight = 8;
        m.domains[group].cpumask = m.domains[sd].span;
        m.find_idlest_group_cpu(group, p, cpu(0)).index()
    };
    assert_eq!([child(V5_4, &[2]), child(V5_10, &[2])], [3, 1]);
    assert_eq!([child(V5_4, &others), child(with(V5_4, "wake.sched_idle_cpu", "busy"), &others)], [1, 0]);
}

#[test]
fn a_scan_for_cores_does_not_remember_a_cpu_that_serves_others_only() {
    // Core 1 runs only SCHED_IDLE tasks; cores 0 and 2 are busy, and so is one thread of core 3.
    for (policy, expect) in [(Policy::Normal, 1), (Policy::Idle, 11)] {
        let mut m = two_sockets(V7_2);
        m.busy(&[0, 8, 1, 9, 2, 10, 3]);
        for on in [1, 9] {
            let cfs = m.rq[cpu(on)].cfs;
            (m.cfs_rq[cfs].h_nr_running, m.cfs_rq[cfs].idle_h_nr_running) = (1, 1);
        }
        idle_core_is_known(&mut m, 0);
        let p = m.sleeper(0);
        m.task[p].policy = policy;
        assert_eq!(m.select(0, p, true), expect);
    }
}

#[test]
fn who_may_run_nowhere_in_a_cache_says_nothing_about_its_cores_in_v7_2() {
    for (kernel, known) in [(V6_12, false), (V6_18, false), (V7_2, true)] {
        let mut m = two_sockets(kernel);
        m.busy(&[0, 4]);
        idle_core_is_known(&mut m, 0);
        let p = m.sleeper(0);
        // It may no longer run where it slept.
        m.allow(p, &[4]);
        m.select(0, p, true);
        assert_eq!(m.has_idle_cores(0), known, "{}", kernel.name);
    }
}

#[test]
fn a_waker_below_no_cache_looks_for_no_idle_cpu_until_v5_15() {
    for (kernel, chosen) in [(V5_10, 1), (V5_15, 1), (V6_1, 2)] {
        let mut m = Machine::isolating(kernel, CpuTopology::symmetric(1, 1, 1, 8, 1), &[0]);
        m.busy(&[0, 1]);
        let p = m.sleeper(1);
        assert_eq!(m.select(0, p, false), chosen, "{}", kernel.name);
        // One that is, does.
        m.run(7);
        assert_eq!(m.select(7, p, false), 2, "{}", kernel.name);
    }
}

#[test]
fn an_isolated_thread_may_serve_where_a_core_is_sought_until_v6_8() {
    // The first threads of the first socket's cores are busy, one of the others is isolated, and the task may use it.
    for (kernel, chosen) in [(V5_15, 9), (V6_1, 10)] {
        let mut m = Machine::isolating(kernel, CpuTopology::symmetric(2, 1, 1, 4, 2), &[9]);
        m.busy(&[0, 1, 2, 3, 8]);
        idle_core_is_known(&mut m, 0);
        let p = m.sleeper(0);
        m.allow(p, &[0, 1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(m.select(0, p, true), chosen, "{}", kernel.name);
        // While no idle core is known, it is not even looked at.
        idle_core_is_known(&mut m, 0);
        m.set_idle_cores(cpu(0), false);
        assert_eq!(m.select(0, p, true), 10, "{}", kernel.name);
    }
}

#[test]
fn v6_6_wakes_onto_an_isolated_sibling() {
    // CPU 9, the other thread of core 1, is in no domain. The next one that is idle behind CPU 0 is 2.
    for (kernel, expect) in [(V6_1, 2), (V6_6, 9), (V6_12, 2), (V6_18, 2)] {
        let topology = CpuTopology::symmetric(2, 1, 1, 4, 2);
        let boot = Boot { isolated: mask(&[9]), ..Boot::new(kernel, topology, 250) };
        let mut m = Machine(Sched::new(Hand::at(1_000_000_000), boot));
        m.busy(&[0, 1]);
        let p = m.sleeper(1);
        m.allow(p, &[0, 1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(m.select(0, p, true), expect, "{}", kernel.name);
    }
}
