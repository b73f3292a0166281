//! wake_affine() of both eras: its features, its statistics, and the waker's own load.

use super::*;
use crate::stats::SchedstatsState;

#[test]
fn the_toggles_switch_the_parts_of_wake_affine() {
    // Two tasks and the sleeper's load there, only the waker here: weight says stay, sync says come.
    let chosen = |features: &[(Feature, bool)], sync| {
        let mut m = two_sockets(V4_15);
        for &(feature, on) in features {
            m.features.set(feature, on);
        }
        m.run(0);
        m.busy(&[4, 4]);
        let p = m.sleeper(4);
        m.select(0, p, sync)
    };
    assert_eq!(chosen(&[], true), 1);
    assert_eq!(chosen(&[(Feature::WA_IDLE, false)], true), 1, "1023 * 100 <= 1025 * 112");
    assert_eq!(chosen(&[(Feature::WA_IDLE, false), (Feature::WA_WEIGHT, false)], true), 5);
    assert_eq!(chosen(&[(Feature::WA_WEIGHT, false)], true), 1);
    assert_eq!(chosen(&[], false), 5);
}

#[test]
fn the_bias_is_half_of_imbalance_pct() {
    // Here 1024 + 1023; there n - 1023. Between equality and 112% the bias decides.
    let pulled = |load: u64, bias| {
        let mut m = two_sockets(V4_15);
        m.features.set(Feature::WA_BIAS, bias);
        m.run(0);
        m.run(4);
        let p = m.sleeper(4);
        m.root_avg(4).runnable_avg = load;
        m.select(0, p, false) < 4
    };
    assert!(!pulled(3069, false) && pulled(3070, false), "3070 - 1023 = 2047");
    assert!(!pulled(2850, true) && pulled(2851, true), "204700 / 112 = 1827.7, so 1828 + 1023");
}

#[test]
fn a_waker_heavier_than_its_cpu_pulls_at_once() {
    // Two tasks are on the waking CPU, so it is not "about to be idle"; but the waker alone counts 1023, more than the
    // CPU's current runnable load.
    // CPU's runnable load says now.
    let target = |runnable| {
        let mut m = two_sockets(V4_15);
        m.busy(&[0, 0]);
        m.root_avg(0).runnable_avg = runnable;
        let p = m.sleeper(4);
        m.select(0, p, true)
    };
    assert_eq!(target(1022), 1);
    assert_eq!(target(1023), 4);
}

#[test]
fn capacity_counts_against_the_smaller_cpu() {
    // v4.5, two tasks there, one here and one that comes: 100 * 2048 * 589 <= 112 * 2048 * the capacity here.
    for (here, pulled) in [(589, true), (526, true), (525, false)] {
        let mut m = two_sockets(V4_5_RC1);
        m.busy(&[0, 4, 4]);
        m.rq[cpu(0)].cpu_capacity = here;
        let p = m.sleeper(4);
        assert_eq!(m.select(0, p, false) < 4, pulled, "{here} against 589");
    }
}

#[test]
fn from_v5_5_on_sleepers_load_counts_and_equal_loads_stay() {
    // Here 1024 of the running task and 1023 of the woken one; there n - 1023. 204700 < (n - 1023) * 108 from n = 2919
    // on.
    let pulled = |kernel: Kernel, load: u64, sync| {
        let mut m = two_sockets(kernel);
        m.features.set(Feature::WA_IDLE, false);
        m.run(0);
        m.run(4);
        let p = m.sleeper(4);
        m.root_avg(4).load_avg = load;
        // The task's own load is 1024 * load / (load + 1).
        m.select(0, p, sync) < 4
    };
    for kernel in [V6_1, V6_12] {
        assert!(!pulled(kernel, 2918, false) && pulled(kernel, 2919, false), "{}", kernel.name);
        // Without the bias, 2047 < 3070 - 1023 does not hold, and 2047 <= 2047 does.
        let unbiased = |load, equal: &str, sync| {
            let mut m = two_sockets(with(kernel, "wake.equal_weight", equal));
            m.features.set(Feature::WA_IDLE, false);
            m.features.set(Feature::WA_BIAS, false);
            m.run(0);
            m.run(4);
            let p = m.sleeper(4);
            m.root_avg(4).load_avg = load;
            m.select(0, p, sync) < 4
        };
        assert!(!unbiased(3070, "stays", false) && unbiased(3071, "stays", false));
        assert!(unbiased(3070, "pulls", false));
        // Sync subtracts the waker's 1023: 1024 <= 2047 - 1023, where equality is enough again.
        assert!(unbiased(2047, "stays", true) && !unbiased(2046, "stays", true));
    }
}

#[test]
fn sleepers_whose_dequeue_is_delayed_are_no_company() {
    // Another task on the waking CPU rules out sync, unless that task sleeps.
    for (delayed, expect) in [(0, 4), (1, 1)] {
        let mut m = two_sockets(V6_12);
        m.busy(&[0, 0]);
        let cfs = m.rq[cpu(0)].cfs;
        m.cfs_rq[cfs].h_nr_delayed = delayed;
        let p = m.sleeper(4);
        assert_eq!(m.select(0, p, true), expect);
    }
}

#[test]
fn a_waker_that_ends_promises_nothing() {
    for (kernel, expect) in [(V4_16, 1), (V6_1, 4), (with(V6_1, "wake.sync_exit", "counts"), 1)] {
        let mut m = two_sockets(kernel);
        let waker = m.run(0);
        m.task[waker].exiting = true;
        let p = m.sleeper(4);
        assert_eq!(m.select(0, p, true), expect, "{}", kernel.name);
    }
}

#[test]
fn an_idle_waker_says_sync_with_the_load_it_was_born_with() {
    // v4.16, an interrupt on another socket: CPU 2 is idle and has 500 of sleepers' load. The 1024 of its idle task
    // count 1024 * 500 / 501 = 1022, more than the runnable load of 0. The boot CPU's idle task has no load.
    let target = |waker: usize, blocked| {
        let mut m = two_sockets(V4_16);
        m.root_avg(waker).load_avg = blocked;
        let p = m.sleeper(4);
        m.select(waker, p, true)
    };
    assert_eq!(target(2, 500), 2);
    assert_eq!(target(2, 0), 4);
    assert_eq!(target(0, 500), 4);
}

#[test]
fn v4_5_takes_the_wakers_load_away_for_sync() {
    // Two tasks on either side. Without sync 100 * 3072 > 112 * 2048; with it 100 * 2048 <= 112 * 2048.
    let target = |sync| {
        let mut m = two_sockets(V4_5_RC1);
        m.busy(&[0, 0, 4, 4]);
        let p = m.sleeper(4);
        m.select(0, p, sync)
    };
    assert_eq!(target(false), 5);
    assert_eq!(target(true), 1);
}

#[test]
fn statistics_count_attempts_and_moves() {
    let counted = |kernel: Kernel, waker, runs, prev| {
        let mut m = two_sockets(kernel);
        m.sysctl.sched_schedstats = 1;
        m.schedstats = SchedstatsState::new(&m.kernel, &m.sysctl);
        if runs {
            m.run(waker);
        }
        let p = m.sleeper(prev);
        m.select(waker, p, true);
        let moves: u32 = (0..m.domains.nr_domains() as u32).map(|sd| m.domains.stats(SdId(sd)).ttwu_move_affine).sum();
        let statistics = &m.task_cold[p].statistics;
        (statistics.nr_wakeups_affine_attempts, statistics.nr_wakeups_affine, moves)
    };
    for kernel in [V4_5_RC1, V4_15, V4_16] {
        assert_eq!(counted(kernel, 0, true, 4), (1, 1, 1), "{}: pulled", kernel.name);
        assert_eq!(counted(kernel, 0, true, 0), (0, 0, 0), "{}: no choice", kernel.name);
    }
    assert_eq!(counted(V4_16, 0, false, 4), (1, 0, 0), "left where it was");
    assert_eq!(counted(V4_16, 0, false, 1), (1, 1, 1), "kept where it was, and counted as moved");
    assert_eq!(counted(V6_1, 0, false, 1), (1, 0, 0), "kept where it was");
    assert_eq!(counted(V6_1, 0, true, 4), (1, 1, 1), "pulled");

    let mut m = two_sockets(V4_15);
    m.run(0);
    let p = m.sleeper(4);
    m.select(0, p, true);
    assert_eq!(m.task_cold[p].statistics.nr_wakeups_affine_attempts, 0, "schedstats are off by default from v4.6");
}

#[test]
fn a_task_too_large_for_the_smaller_cpu_is_not_pulled() {
    // CPUs 4 to 7 have half the capacity. 1280/1024 of the utilization has to fit into 512: 409 does, 410 does not.
    let mut topology = CpuTopology::symmetric(1, 1, 1, 8, 1);
    for little in 4..8 {
        topology.capacity[cpu(little)] = 512;
    }
    let target = |kernel, util| {
        let mut m = Machine::new(kernel, topology.clone());
        m.busy(&[4, 0]);
        let p = m.sleeper(4);
        m.avg(p).util_avg = util;
        let queue = m.rq[cpu(4)].cfs;
        m.cfs_rq[queue].avg.last_update_time = 1;
        m.select(0, p, true)
    };
    assert_eq!(target(V4_15, 409), 1, "pulled to CPU 0, next idle CPU");
    assert_eq!(target(V4_15, 410), 5, "not wanted here: next to its previous CPU");
    assert_eq!(target(with(V4_15, "wake.wake_cap", "absent"), 410), 1);
}

#[test]
fn v5_4_looks_for_room_where_the_estimate_is_too_large() {
    // CPUs 4 to 7 have half the capacity. The waking CPU has no room, CPU 1 less than CPU 2.
    let mut topology = CpuTopology::symmetric(1, 1, 1, 8, 1);
    for little in 4..8 {
        topology.capacity[cpu(little)] = 512;
    }
    let target = |kernel, estimate| {
        let mut m = Machine::new(kernel, topology.clone());
        m.busy(&[4, 0]);
        (m.root_avg(0).util_avg, m.root_avg(1).util_avg) = (900, 200);
        let p = m.sleeper(4);
        m.avg(p).util_avg = 100;
        m.avg(p).util_est.enqueued = estimate;
        m.select(0, p, true)
    };
    assert_eq!(target(V5_4, 408), 1, "pulled to CPU 0, next idle CPU");
    assert_eq!(target(V5_4, 410), 2);
    assert_eq!(
        [V4_16, V5_10].map(|kernel| target(kernel, 410)),
        [1, 1],
        "estimates are unknown, or there is another search"
    );
}

#[test]
fn threads_of_a_core_are_small_beside_a_core_without() {
    // Cores 0 and 1 have two threads each, CPUs 0 to 3, which count 589; CPUs 4 and 5 are whole cores. 589 * 1024 < 472
    // * 1280.
    let mut topology = CpuTopology::symmetric(1, 1, 1, 6, 1);
    for (thread, core) in [(0, [0, 2]), (2, [0, 2]), (1, [1, 3]), (3, [1, 3])] {
        topology.smt[cpu(thread)] = mask(&core);
        topology.cluster[cpu(thread)] = mask(&core);
    }
    let target = |util| {
        let mut m = Machine::new(V4_15, topology.clone());
        assert_eq!((m.rq[cpu(0)].cpu_capacity_orig, m.rq[cpu(4)].cpu_capacity_orig), (589, 1024));
        m.busy(&[2, 4]);
        let p = m.sleeper(4);
        m.avg(p).util_avg = util;
        (m.select(2, p, true), m.root_domain(cpu(2)).max_cpu_capacity)
    };
    assert_eq!(target(471), (3, 1024), "pulled to CPU 2, from where the search begins");
    assert_eq!(target(472), (5, 1024), "left with CPU 4");
}
