//! The slow path: where new tasks go.

use super::*;

impl Machine {
    /// Puts every idle CPU into an idle state of that exit latency.
    fn idle_state(&mut self, exit_latency_us: u32) {
        for on in 0..self.nr_cpus() {
            self.rq[cpu(on)].idle_exit_latency = Some(exit_latency_us);
        }
    }

    /// Where a child of the task that runs on `parent` is placed.
    pub(super) fn fork_from(&mut self, parent: usize, allowed: &[usize]) -> usize {
        let p = self.sleeper(parent);
        self.root_avg(parent).load_avg -= FULL;
        self.avg(p).last_update_time = 0;
        if !allowed.is_empty() {
            self.allow(p, allowed);
        }
        self.0.this_cpu = cpu(parent);
        self.select_task_rq_fair(p, cpu(parent), FORK, WakeFlags::FORK).index()
    }

    /// Where a task of that utilization goes when it execs on `on`, where it runs.
    fn exec_on(&mut self, on: usize, util: u64) -> usize {
        let p = self.run(on);
        self.avg(p).util_avg = util;
        self.0.this_cpu = cpu(on);
        self.select_task_rq_fair(p, cpu(on), EXEC, WakeFlags::NONE).index()
    }
}

#[test]
fn the_first_children_go_to_the_other_socket_and_to_second_threads() {
    for kernel in [V4_5_RC1, V4_15, V4_16] {
        let mut m = two_sockets(kernel);
        m.idle_state(2);
        m.run(0);
        // NUMA: here 1024 * 1024 / 4712 = 222, there 0. MC of CPU 4, the first there: all groups are empty, and the
        // local group is kept only if it is less loaded, so core 5. SMT of CPU 5: likewise CPU 13.
        assert_eq!(m.fork_from(0, &[]), 13, "{}", kernel.name);
        m.run(13);
        // 222 on both sides: stays. MC: here 1024 * 1024 / 1178 = 890, core 1 has none; SMT of CPU 1: CPU 9.
        assert_eq!(m.fork_from(0, &[]), 9, "{}", kernel.name);
        m.run(9);
        // 444 against 222. MC of CPU 4: group of CPU 5 has 890; the first other empty one is core 6, and there CPU 14.
        assert_eq!(m.fork_from(0, &[]), 14, "{}", kernel.name);
    }
}

#[test]
fn children_spread_over_both_sockets_and_all_cores() {
    for kernel in [V4_5_RC1, V4_15, V4_16] {
        let mut m = two_sockets(kernel);
        m.idle_state(2);
        m.run(0);
        let mut tasks = [0; 16];
        tasks[0] = 1;
        for child in 1..32 {
            let to = m.fork_from(0, &[]);
            tasks[to] += 1;
            m.run(to);
            let sockets = [0, 4].map(|first| (first..first + 4).map(|c| tasks[c] + tasks[c + 8]).sum::<i32>());
            // From nine tasks on, a margin of 12% tolerates a difference of two.
            let tolerated = if child <= 15 { 1 } else { 2 };
            assert!((sockets[0] - sockets[1]).abs() <= tolerated, "{}: {tasks:?}", kernel.name);
            if child == 7 {
                assert!((0..8).all(|core| tasks[core] + tasks[core + 8] == 1), "{}: {tasks:?}", kernel.name);
            }
            if child == 15 {
                assert_eq!(tasks, [1; 16], "{}", kernel.name);
            }
        }
        assert!(tasks.iter().all(|n| (1..=3).contains(n)), "{}: {tasks:?}", kernel.name);
    }
}

#[test]
fn v4_5_does_not_see_cpus_that_idle_without_state_or_time() {
    // No CPU is in an idle state, or has an idle stamp (a pending wakeup has cleared it): no idle CPU is found, and no
    // load either, so the search keeps returning to where it is. From v4.9 on it does so until a group has only one
    // CPU.
    for (kernel, expect) in [(V4_5_RC1, 0), (V4_15, 8), (with(V4_5_RC1, "wake.single_cpu_group", "taken"), 8)] {
        let mut m = two_sockets(kernel);
        for on in 0..16 {
            m.rq[cpu(on)].idle_stamp = 0;
        }
        m.run(0);
        assert_eq!(m.fork_from(0, &[]), expect, "{}", kernel.name);
    }
}

#[test]
fn among_idle_cpus_the_shallowest_then_the_last_to_fall_asleep() {
    for kernel in [V4_5_RC1, V4_15, V4_16] {
        // From CPU 0 of the first socket into a busy second one, whose CPUs 6, 7 and 12 idle.
        let chosen = |states: [(Option<u32>, u64); 3]| {
            let mut m = two_sockets(kernel);
            m.busy(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 13, 14, 15]);
            for (on, (exit_latency, stamp)) in [6, 7, 12].into_iter().zip(states) {
                m.rq[cpu(on)].idle_exit_latency = exit_latency;
                m.rq[cpu(on)].idle_stamp = stamp;
            }
            let sd = m.domains.sd_numa[cpu(0)].expect("two nodes");
            let group = m.domains[m.domains[sd].groups].next;
            let p = m.sleeper(0);
            m.find_idlest_group_cpu(group, p, cpu(0)).index()
        };
        assert_eq!(chosen([(Some(33), 9), (Some(2), 5), (Some(10), 8)]), 7, "shallowest");
        assert_eq!(chosen([(Some(2), 5), (Some(2), 9), (Some(2), 7)]), 7, "of equals the latest");
        assert_eq!(chosen([(Some(2), 5), (Some(2), 5), (Some(2), 5)]), 6, "of those the first");
        assert_eq!(chosen([(None, 5), (None, 7), (None, 9)]), 12, "without states the latest");
        // A CPU in no state, because it is entering or leaving idle, counts if it went idle later than the best so far.
        assert_eq!(chosen([(Some(2), 5), (None, 7), (Some(2), 6)]), 7);
        assert_eq!(chosen([(Some(2), 5), (None, 4), (Some(33), 6)]), 6);
        assert_eq!(chosen([(None, 9), (Some(2), 5), (None, 8)]), 12, "a state begins the count of stamps anew");
    }
}

#[test]
fn v4_19_and_v5_4_leave_a_node_only_for_a_quarter_of_a_task() {
    let child = |kernel, busy: &[usize]| {
        let mut m = two_sockets(kernel);
        m.idle_state(2);
        m.busy(busy);
        m.fork_from(0, &[])
    };
    // NUMA: here 1024 * 1024 / 8192 = 128 for each task, there 0 and the margin, 256. MC: core 1; SMT of CPU 1: CPU 9.
    assert_eq!([child(V5_4, &[0]), child(V5_4, &[0, 2])], [9, 9]);
    assert_eq!(child(V5_4, &[0, 2, 3]), 13, "384 are more");
    // v4.19 counts the threads of a core as 1178 together: 222 for each task.
    assert_eq!([child(V4_19, &[0]), child(V4_19, &[0, 2])], [9, 13]);
    assert_eq!(child(with(V5_4, "wake.idlest_node", "as-group"), &[0]), 13);
}

#[test]
fn of_busy_cpus_the_least_loaded() {
    for kernel in [V4_5_RC1, V4_15, V4_16, V4_19, V5_4] {
        let mut m = uma(kernel);
        m.busy(&[0, 1, 2, 3, 4, 5, 6, 7]);
        m.busy(&[0, 1, 2, 4, 5, 7]);
        // Groups are single CPUs, 3 and 6 are equal: 3 comes first.
        assert_eq!(m.fork_from(0, &[]), 3, "{}", kernel.name);
        m.root_avg(6).runnable_avg -= 300;
        m.root_avg(6).load_avg -= 300;
        assert_eq!(m.fork_from(0, &[]), 6, "{}", kernel.name);
    }
}

#[test]
fn a_small_difference_of_runnable_load_is_weighed_by_sleepers() {
    // CPU 3 is a little less loaded than CPU 2, by less than 174 (17% of 1024), but has many sleepers.
    let chosen = |kernel, runnable, blocked| {
        let mut m = uma(kernel);
        m.busy(&[0, 1, 4, 5, 6, 7]);
        for on in [2, 3] {
            m.run(on);
            *m.root_avg(on) = SchedAvg { runnable_avg: 500, load_avg: 600, ..SchedAvg::default() };
        }
        m.root_avg(3).runnable_avg = runnable;
        m.root_avg(3).load_avg = blocked;
        m.fork_from(0, &[])
    };
    assert_eq!(chosen(V4_5_RC1, 499, 2000), 3);
    assert_eq!(chosen(V4_15, 499, 2000), 2);
    assert_eq!(chosen(V4_15, 326, 2000), 2, "500 > 326 + 174 does not hold");
    assert_eq!(chosen(V4_15, 325, 2000), 3);
    // The other way round: more runnable load, but fewer sleepers: 100 * 600 > 108 * 500.
    assert_eq!(chosen(V4_15, 600, 500), 3);
    assert_eq!(chosen(V4_15, 600, 556), 2);
    assert_eq!(chosen(V4_15, 674, 500), 2, "674 < 500 + 174 does not hold");
}

#[test]
fn sleepers_decide_within_the_margin_of_the_least_runnable_load() {
    // CPUs 1, 2, 3: 500, 600, 690 runnable. By its sleepers 2 beats 1, but 3 is still compared with 500 + 174.
    let mut m = uma(V4_15);
    m.busy(&[0, 1, 2, 3, 4, 5, 6, 7]);
    for (on, runnable_avg, load_avg) in [(1, 500, 2000), (2, 600, 1000), (3, 690, 500)] {
        *m.root_avg(on) = SchedAvg { runnable_avg, load_avg, ..SchedAvg::default() };
    }
    assert_eq!(m.fork_from(0, &[]), 2);
    m.root_avg(3).runnable_avg = 673;
    assert_eq!(m.fork_from(0, &[]), 3);
}

#[test]
fn of_equal_cpus_in_a_group_the_first() {
    for kernel in [V4_5_RC1, V4_15, V4_16] {
        let mut m = two_sockets(kernel);
        for on in [0, 1, 2, 3, 8, 9, 10, 11] {
            m.busy(&[on, on]);
        }
        m.busy(&[4, 5, 6, 7, 12, 13, 14, 15]);
        assert_eq!(m.fork_from(0, &[]), 4, "{}", kernel.name);
    }
}

#[test]
fn loads_here_are_guessed_low_and_elsewhere_high() {
    // With an index the average over two ticks counts as well. Here it is 900 (now 3072); CPU 5 has 100 now, but had
    // 1024.
    for kernel in [V4_5_RC1, V4_15] {
        let mut m = uma(kernel);
        m.busy(&[0, 0, 0, 1, 2, 3, 4, 5, 6, 7]);
        for on in 0..8 {
            let sd = m.domains.sd[cpu(on)].unwrap();
            m.domains[sd].forkexec_idx = 1;
            m.rq[cpu(on)].cpu_load[0] = FULL;
        }
        m.rq[cpu(0)].cpu_load[0] = 900;
        m.root_avg(5).runnable_avg = 100;
        m.root_avg(0).load_avg = 900;
        assert_eq!(m.fork_from(0, &[]), 0, "{}", kernel.name);
        m.features.set(Feature::LB_BIAS, false);
        m.root_avg(5).load_avg = 100;
        m.root_avg(0).load_avg = 3072;
        assert_eq!(m.fork_from(0, &[]), 5, "{}", kernel.name);
    }
}

#[test]
fn the_local_group_is_kept_against_little() {
    // v4.5: 100 * here < 108 * there. v4.15: if runnable loads differ by less than 174 the sleepers decide, and favour
    // this side likewise.
    let chosen = |kernel, here, there: (u64, u64)| {
        let mut m = uma(kernel);
        m.busy(&[0, 1, 2, 3, 4, 5, 6, 7]);
        for on in 1..8 {
            *m.root_avg(on) = SchedAvg { runnable_avg: 4000, load_avg: 4000, ..SchedAvg::default() };
        }
        *m.root_avg(0) = SchedAvg { runnable_avg: here, load_avg: here, ..SchedAvg::default() };
        *m.root_avg(5) = SchedAvg { runnable_avg: there.0, load_avg: there.1, ..SchedAvg::default() };
        m.fork_from(0, &[])
    };
    assert_eq!(chosen(V4_5_RC1, 1079, (1000, 1000)), 0);
    assert_eq!(chosen(V4_5_RC1, 1080, (1000, 1000)), 5);
    assert_eq!(chosen(V4_15, 1079, (1000, 1000)), 0);
    assert_eq!(chosen(V4_15, 1080, (1000, 1000)), 5);
    assert_eq!(chosen(V4_15, 1000, (900, 900)), 5, "within the margin 100 * 1000 < 108 * 900 does not hold");
    assert_eq!(chosen(V4_15, 1000, (1100, 500)), 5, "more load that is runnable, but less in all");
    assert_eq!(chosen(V4_15, 1000, (1175, 500)), 0, "1175 > 1000 + 174");
}

#[test]
fn room_for_the_task_goes_before_load() {
    // Exec. Group loads alone would lead to the first empty CPU, 1; but spare capacity is what counts.
    let chosen = |kernel, util, rooms: [u64; 3]| {
        let mut m = uma(kernel);
        m.idle_state(2);
        for (on, room) in [0, 1, 5].into_iter().zip(rooms) {
            m.root_avg(on).util_avg = 1024 - room;
        }
        for on in [2, 3, 4, 6, 7] {
            m.root_avg(on).util_avg = 1000;
        }
        m.exec_on(0, util)
    };
    assert_eq!(chosen(V4_5_RC1, 200, [100, 300, 900]), 1);
    assert_eq!(chosen(V4_15, 200, [100, 300, 900]), 5, "most room");
    assert_eq!(chosen(V4_16, 200, [100, 300, 900]), 5);
    // The task's own 200 are still on CPU 0 (cpu_util_wake): 600 + 200 of room, 108 * 800 <= 100 * 900.
    assert_eq!(chosen(V4_15, 200, [600, 300, 900]), 5);
    // 108 * 840 > 100 * 900: the task stays where the slow path starts.
    assert_eq!(chosen(V4_15, 200, [640, 300, 900]), 0);
    assert_eq!(chosen(with(V4_15, "wake.spare_capacity", "ignored"), 200, [100, 300, 900]), 1);
}

#[test]
fn half_of_the_task_has_to_fit() {
    // No queue contains its utilization: it is not attached.
    let chosen = |util, room_here: u64| {
        let mut m = uma(V4_15);
        m.idle_state(2);
        for on in 0..8 {
            m.root_avg(on).util_avg = 1024;
        }
        m.root_avg(0).util_avg = 1024 - room_here;
        m.root_avg(5).util_avg = 1024 - 300;
        let p = m.run(0);
        m.avg(p).util_avg = util;
        m.avg(p).last_update_time = 0;
        m.0.this_cpu = cpu(0);
        m.select_task_rq_fair(p, cpu(0), EXEC, WakeFlags::NONE).index()
    };
    assert_eq!(chosen(599, 0), 5, "300 > 299");
    assert_eq!(chosen(600, 0), 1, "by load, the first empty one");
    assert_eq!(chosen(599, 300), 0, "108 * 300 > 100 * 300");
    assert_eq!(chosen(600, 300), 1, "it does not fit here either");
}

#[test]
fn new_kernels_see_what_other_classes_take() {
    // CPU 5 has the most room by its original capacity, but 700 of that goes to interrupts.
    let chosen = |kernel| {
        let mut m = uma(kernel);
        m.idle_state(2);
        for on in 0..8 {
            m.root_avg(on).util_avg = 900;
        }
        m.root_avg(3).util_avg = 500;
        m.root_avg(5).util_avg = 200;
        m.rq[cpu(5)].cpu_capacity = 324;
        m.exec_on(0, 100)
    };
    assert_eq!(chosen(V4_15), 5, "824 of room");
    assert_eq!(chosen(V4_16), 3, "524 against 124");
}

#[test]
fn at_fork_room_does_not_count() {
    let mut m = uma(V4_15);
    m.idle_state(2);
    m.run(0);
    m.root_avg(1).util_avg = 1000;
    assert_eq!(m.fork_from(0, &[]), 1);
}

#[test]
fn a_local_group_that_is_not_allowed() {
    // The child may run only in the other socket, where all CPUs are busy: 1024 * 8 * 1024 / 4712 = 1780 of load.
    let chosen = |kernel, busy: usize| {
        let mut m = two_sockets(kernel);
        m.idle_state(2);
        m.run(0);
        let remote = [4, 5, 6, 7, 12, 13, 14, 15];
        m.busy(&remote[..busy]);
        m.fork_from(0, &remote)
    };
    // v4.5: the local group appears to be empty, so nothing beats it: the previous CPU, which the caller will reject.
    assert_eq!(chosen(V4_5_RC1, 8), 0);
    assert_eq!(chosen(V4_5_RC1, 2), 0);
    // Without any load there is nothing to beat.
    assert_ne!(chosen(V4_5_RC1, 0), 0);
    // v4.15 means it to appear full. But that plus the margin of 256 wraps to 255: any load from 256 on is more. One
    // busy CPU is 222, two are 445. With one: the first idle CPU is 5, core 6 is as empty as its own, and CPU 14 is on
    // it.
    assert_eq!(chosen(V4_15, 1), 14);
    assert_eq!(chosen(V4_15, 2), 0);
    // By runnable load alone it works as intended: 100 * -1 is still far more than 112 times anything.
    let kernel = with(with(V4_15, "wake.idlest_measure", "runnable-load"), "wake.slow_path_start", "previous-cpu");
    assert_ne!(chosen(kernel, 8), 0);
}

#[test]
fn where_nothing_is_idler_the_start_stays() {
    // A task that last ran on CPU 5 execs, or is woken, on CPU 0, the least loaded.
    let chosen = |kernel: Kernel, allowed: &[usize]| {
        let mut m = uma(kernel);
        m.busy(&[1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 0]);
        let p = m.sleeper(5);
        m.root_avg(5).load_avg -= FULL;
        m.avg(p).last_update_time = 0;
        m.allow(p, allowed);
        m.0.this_cpu = cpu(0);
        m.select_task_rq_fair(p, cpu(5), FORK, WakeFlags::FORK).index()
    };
    let all = [0, 1, 2, 3, 4, 5, 6, 7];
    assert_eq!(chosen(V4_5_RC1, &all), 5);
    assert_eq!(chosen(V4_15, &all), 0);
    assert_eq!(chosen(with(V4_15, "wake.slow_path_start", "previous-cpu"), &all), 5);
    // It may not run in the domain at all.
    assert_eq!(chosen(V4_15, &[]), 5);
}

#[test]
fn a_sleepers_utilization_is_aged_before_the_slow_path() {
    // A wakeup in a domain with SD_BALANCE_WAKE by a waker with many wakees. The sleeper used 1000 of CPU 5, whose
    // queue was updated 64 ms (of 1.024 ms) later: a quarter is left, so its own CPU has room for 250, and CPU 6 for
    // 400.
    let chosen = |kernel| {
        let mut m = uma(kernel);
        for on in 0..8 {
            let sd = m.domains.sd[cpu(on)].unwrap();
            m.domains[sd].flags |= WAKE;
            m.root_avg(on).util_avg = 1024;
        }
        m.busy(&[0, 1, 2, 3, 4, 5, 6, 7]);
        m.busy(&[0, 3, 4, 5, 6, 7]);
        m.root_avg(6).util_avg = 624;
        let waker = m.rq[cpu(0)].curr.unwrap();
        let p = m.sleeper(5);
        m.avg(p).util_avg = 1000;
        m.avg(p).util_sum = 1000 * 47_742;
        m.root_avg(5).last_update_time = 1 + 64 * 1024 * 1024;
        m.task[waker].wakee_flips = 64;
        m.task[p].wakee_flips = 8;
        let to = m.select(0, p, false);
        (to, m.avg(p).util_avg)
    };
    let (to, util) = chosen(V4_15);
    assert_eq!(to, 6);
    assert!((245..=255).contains(&util), "{util}");
    // With its utilization as it fell asleep, its own CPU has room for all of the 1000 that it seems to have left
    // there.
    assert_eq!(chosen(with(V4_15, "wake.slow_path_util", "stale")), (5, 1000));
    assert_eq!(chosen(V4_5_RC1), (1, 1000), "by load, CPU 1 before CPU 2");
}
