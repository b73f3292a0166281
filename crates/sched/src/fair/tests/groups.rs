//! Task groups: weights, walks, the list of queues with load.

use super::*;

fn shown(s: &Sched<Hand>, weight: u64) -> u64 {
    s.kernel.load_resolution.scale_load_down(weight)
}

#[test]
fn a_lone_queue_gets_all_shares_and_two_divide_them_by_weight() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 2);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        s.task_in(group, CPU0, 0);
        let [on_0, on_1] = [0, 1].map(|cpu| s.tg[group].se[cpu]);
        // 1024 * 1024 / (the group's load elsewhere, 0, + 1024).
        assert_eq!(shown(&s, s.se[on_0].load.weight), 1024, "{}", kernel.name);
        assert_eq!(s.tg[group].load_avg, 1024);
        s.task_in(group, CPU1, 0);
        // 1024 * 1024 / (1024 + 1024).
        assert_eq!(shown(&s, s.se[on_1].load.weight), 512, "{}", kernel.name);
        s.task_in(group, CPU1, -5);
        // 1024 * (1024 + 3121) / (1024 + 4145) = 821.1.
        assert_eq!(shown(&s, s.se[on_1].load.weight), 821, "{}", kernel.name);
        // The other CPU learns at its next update: 1024 * 1024 / (4145 + 1024) = 202.9.
        assert_eq!(shown(&s, s.se[on_0].load.weight), 1024);
        let cfs = s.tg[group].cfs_rq[0];
        s.update_shares(s.rq[CPU0].cfs, on_0);
        s.update_cfs_shares(cfs);
        assert_eq!(shown(&s, s.se[on_0].load.weight), 202, "{}", kernel.name);
        assert_eq!(s.rq[CPU0].load.weight, s.se[on_0].load.weight);
    }
}

#[test]
fn sleeping_tasks_count_for_their_cpu_in_new_kernels() {
    // v4.5: 1024 * 1024 / (1024 + 1024), by the queued weight; v4.15: 1024 * 2048 / (1024 + 2048), by the load average.
    for (kernel, weight) in [(V4_5_RC1, 512), (V4_15, 682)] {
        let mut s = machine(kernel, 2);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        for cpu in [CPU0, CPU0, CPU1] {
            s.task_in(group, cpu, 0);
        }
        s.reschedule(CPU0);
        s.sleep(CPU0);
        let se = s.tg[group].se[0];
        s.update_cfs_shares(s.tg[group].cfs_rq[0]);
        s.update_shares(s.rq[CPU0].cfs, se);
        assert_eq!(shown(&s, s.se[se].load.weight), weight, "{}", kernel.name);
    }
}

#[test]
fn a_group_that_falls_asleep_keeps_its_place() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        s.runner(CPU0);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        let p = s.task_in(group, CPU0, 0);
        while s.rq[CPU0].curr != Some(p) {
            s.ticks(CPU0, 1);
        }
        s.ticks(CPU0, 1);
        let (root, se) = (s.rq[CPU0].cfs, s.tg[group].se[0]);
        let vruntime = s.se[se].vruntime;
        s.sleep(CPU0);
        assert!(!s.se[se].on_rq);
        assert_eq!(s.se[se].vruntime, vruntime, "{}: asleep it stays absolute", kernel.name);
        s.wake_from(CPU0, p);
        assert!((s.se[se].vruntime.wrapping_sub(s.cfs_rq[root].min_vruntime) as i64).abs() < 6 * MS as i64);
        // Nor does it move when its only task is dequeued for a moment.
        let vruntime = s.se[se].vruntime;
        s.set_user_nice(p, 3);
        assert_eq!(s.se[se].vruntime, vruntime, "{}", kernel.name);
    }
}

#[test]
fn what_a_group_ran_is_charged_before_its_weight_changes() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        s.task_in(group, CPU0, 0);
        s.reschedule(CPU0);
        s.ticks(CPU0, 1);
        let se = s.tg[group].se[0];
        let vruntime = s.se[se].vruntime;
        s.pass(10 * MS);
        s.sched_group_set_shares(group, 4096);
        assert_eq!(s.se[se].vruntime.wrapping_sub(vruntime), 10 * MS, "{}", kernel.name);
        s.ticks(CPU0, 8);
        // A quarter of a millisecond for each, by the inverse of 4096 rounded down.
        assert_eq!(s.se[se].vruntime.wrapping_sub(vruntime), 12 * MS - 8, "{}", kernel.name);
    }
}

#[test]
fn fine_weights_keep_what_coarse_ones_round_away() {
    // 64 CPUs share 2: each gets the minimum of 2 in coarse units, a 1024th of that in fine ones.
    for (kernel, weight, floor) in [(V4_5_RC1, 2, 2), (V4_15, 1024, 2)] {
        let mut s = machine(kernel, 2);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "small", 1);
        assert_eq!(s.tg[group].shares, kernel.load_resolution.scale_load(2), "held at MIN_SHARES");
        s.task_in(group, CPU0, 0);
        s.task_in(group, CPU1, 0);
        assert_eq!(s.se[s.tg[group].se[1]].load.weight, weight, "{}", kernel.name);
        // The entity of an empty queue falls to the minimum.
        s.reschedule(CPU1);
        s.sleep(CPU1);
        s.ticks(CPU1, 2_000);
        s.wake_from(CPU0, TaskId(s.nr_cpus() as u32 + 1));
        s.reschedule(CPU1);
        s.sleep(CPU1);
        let se = &s.se[s.tg[group].se[1]];
        assert!(se.load.weight >= floor && !se.on_rq, "{}: {}", kernel.name, se.load.weight);
    }
}

#[test]
fn shares_can_be_changed_while_tasks_run() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        let inner = s.sched_create_group(group, "inner", 1024);
        s.task_in(inner, CPU0, 0);
        s.reschedule(CPU0);
        s.sched_group_set_shares(group, 2048);
        let outer_se = s.tg[group].se[0];
        assert_eq!(shown(&s, s.se[outer_se].load.weight), 2048, "{}", kernel.name);
        assert_eq!(s.rq[CPU0].load.weight, s.se[outer_se].load.weight);
        let inner_se = s.tg[inner].se[0];
        assert_eq!((s.se[inner_se].depth, s.se[inner_se].parent), (1, Some(outer_se)));
        assert_eq!(s.cfs_rq[s.tg[group].cfs_rq[0]].load.weight, s.se[inner_se].load.weight);
    }
}

#[test]
fn groups_share_a_cpu_however_many_tasks_they_have() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let [one, many] = ["one", "many"].map(|name| s.sched_create_group(ROOT_TASK_GROUP, name, 1024));
        let lone = s.task_in(one, CPU0, 0);
        let crowd = [0; 4].map(|nice| s.task_in(many, CPU0, nice));
        s.ticks(CPU0, 8_000);
        let ran = |p: TaskId| s.se_of(p).sum_exec_runtime / MS;
        let all: u64 = crowd.iter().map(|&p| ran(p)).sum();
        assert!(ran(lone).abs_diff(4_000) < 40 && all.abs_diff(4_000) < 40, "{}: {} {all}", kernel.name, ran(lone));
        assert!(crowd.iter().all(|&p| ran(p).abs_diff(1_000) < 40), "{}", kernel.name);
        let root = &s.cfs_rq[s.rq[CPU0].cfs];
        assert_eq!((root.nr_running, root.h_nr_running, s.rq[CPU0].nr_running), (2, 5, 5));
    }
}

#[test]
fn a_sleeping_task_leaves_the_rest_of_the_slice_to_its_group() {
    let mut s = machine(V4_15, 1);
    let outside = s.runner(CPU0);
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    let [a, b] = [0, 0].map(|nice| s.task_in(group, CPU0, nice));
    while s.rq[CPU0].curr == Some(outside) {
        s.ticks(CPU0, 1);
    }
    let (root, group_se) = (s.rq[CPU0].cfs, s.tg[group].se[0]);
    let first = s.rq[CPU0].curr.unwrap();
    // Less than the wakeup granularity behind the outsider: alone it would not continue.
    s.pass(s.se_of(outside).vruntime.wrapping_sub(s.se[group_se].vruntime) + MS / 2);
    s.sleep(CPU0);
    assert!(s.se[group_se].vruntime.wrapping_sub(s.se_of(outside).vruntime) as i64 > 0);
    // The group's entity was the queue's next buddy, and is picked: the preference is used up.
    let other = if first == a { b } else { a };
    assert_eq!((s.rq[CPU0].curr, s.cfs_rq[root].next), (Some(other), None));
}

#[test]
fn only_what_differs_changes_hands_between_siblings() {
    let mut s = machine(V4_15, 1);
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    s.task_in(group, CPU0, 0);
    s.task_in(group, CPU0, 0);
    let first = s.reschedule(CPU0);
    let group_se = s.tg[group].se[0];
    let started = s.se[group_se].exec_start;
    s.pass(10 * MS);
    assert_ne!(s.reschedule(CPU0), first);
    let root = s.rq[CPU0].cfs;
    assert_eq!(s.cfs_rq[root].curr, Some(group_se));
    assert!(!s.se[group_se].in_timeline);
    // The group ran on: its slice did not begin again.
    assert_eq!(s.se[group_se].prev_sum_exec_runtime, 0);
    assert_eq!(s.se[group_se].exec_start, started + 10 * MS);
}

/// Names of the listed queues' groups.
fn leaves(s: &Sched<Hand>, cpu: CpuId) -> Vec<&str> {
    s.rq[cpu].leaf_cfs_rq_list.iter(&s.cfs_rq).map(|cfs| s.tg[s.cfs_rq[cfs].tg].name.as_str()).collect()
}

#[test]
fn queues_with_load_are_listed_children_first() {
    for (kernel, two, three) in [
        // v4.5 puts a queue whose parent is listed in front, and any other at the end: b1 is added before b is, and so
        // is behind it.
        (V4_5_RC1, ["a1", "a", ""], vec!["b", "a1", "a", "", "b1"]),
        (V4_15, ["a1", "a", ""], vec!["b1", "a1", "a", "b", ""]),
    ] {
        let mut s = machine(kernel, 1);
        let [a, b] = ["a", "b"].map(|name| s.sched_create_group(ROOT_TASK_GROUP, name, 1024));
        let a1 = s.sched_create_group(a, "a1", 1024);
        let b1 = s.sched_create_group(b, "b1", 1024);
        s.task_in(a1, CPU0, 0);
        assert_eq!(leaves(&s, CPU0), two, "{}", kernel.name);
        s.task_in(b1, CPU0, 0);
        assert_eq!(leaves(&s, CPU0), three, "{}", kernel.name);
        assert_eq!(s.rq[CPU0].tmp_alone_branch, None);
        s.list_del_leaf_cfs_rq(s.tg[b1].cfs_rq[0]);
        s.list_del_leaf_cfs_rq(s.tg[b1].cfs_rq[0]);
        assert_eq!(leaves(&s, CPU0).len(), 4);
    }
}

#[test]
fn tasks_move_between_groups_asleep_queued_and_running() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let [a, b] = ["a", "b"].map(|name| s.sched_create_group(ROOT_TASK_GROUP, name, 1024));
        let inner = s.sched_create_group(b, "inner", 1024);
        let [runs, waits, sleeps] = [0, 0, 0].map(|nice| s.task_in(a, CPU0, nice));
        s.reschedule(CPU0);
        s.ticks(CPU0, 30);
        while s.rq[CPU0].curr != Some(sleeps) {
            s.ticks(CPU0, 1);
        }
        s.sleep(CPU0);
        while s.rq[CPU0].curr != Some(runs) {
            s.ticks(CPU0, 1);
        }
        for p in [runs, waits, sleeps] {
            s.sched_move_task(p, inner);
            let se = s.se_of(p);
            assert_eq!((se.cfs_rq, se.depth), (s.tg[inner].cfs_rq[0], 2), "{}", kernel.name);
        }
        let inner_queue = s.tg[inner].cfs_rq[0];
        assert_eq!(s.cfs_rq[inner_queue].curr, Some(s.task[runs].se));
        assert_eq!((s.cfs_rq[inner_queue].nr_running, s.cfs_rq[s.tg[a].cfs_rq[0]].nr_running), (2, 0));
        assert_eq!(s.cfs_rq[s.rq[CPU0].cfs].h_nr_running, 2);
        s.wake_from(CPU0, sleeps);
        s.ticks(CPU0, 30);
        assert_eq!(s.cfs_rq[inner_queue].nr_running, 3);
        // No task is left in a; its load on the CPU goes with it.
        s.sched_destroy_group(a);
        assert!(!leaves(&s, CPU0).contains(&"a"));
        assert_eq!(s.tg[ROOT_TASK_GROUP].children, [b]);
        let reused = s.sched_create_group(ROOT_TASK_GROUP, "again", 512);
        assert_eq!(reused, a, "ids are used again");
        s.task_in(reused, CPU0, 0);
        s.ticks(CPU0, 10);
    }
}

#[test]
#[should_panic(expected = "group g has tasks")]
fn a_group_with_tasks_stays() {
    let mut s = machine(V4_15, 1);
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    s.task_in(group, CPU0, 0);
    s.sched_destroy_group(group);
}

#[test]
fn a_groups_sum_hears_of_more_than_a_64th_and_from_v6_7_on_once_in_a_millisecond() {
    for (kernel, limited) in [(V4_5_RC1, false), (V4_16, false), (V6_12, true)] {
        let mut s = machine(kernel, 1);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "a", 1024);
        s.task_in(group, CPU0, 0);
        let queue = s.tg[group].cfs_rq[0];
        let mut told = |now: u64, load: u64| {
            s.arch.now = now;
            s.cfs_rq[queue].avg.load_avg = load;
            s.update_tg_load_avg(queue);
            assert_eq!(s.cfs_rq[queue].tg_load_avg_contrib, s.tg[group].load_avg, "{}", kernel.name);
            s.tg[group].load_avg
        };
        assert_eq!(told(2_000 * MS, 6400), 6400);
        // A 64th is not more than a 64th.
        assert_eq!([told(2_001 * MS, 6500), told(2_002 * MS, 6300)], [6400, 6400]);
        assert_eq!(told(2_002 * MS, 6501), 6501);
        // An update that only looked does not count against the millisecond; one that changed the sum does.
        assert_eq!(told(2_003 * MS - 1, 3000), if limited { 6501 } else { 3000 });
        assert_eq!(told(2_003 * MS, 3000), 3000);
    }
}

#[test]
fn a_queue_stays_listed_for_a_child_before_it_since_v5_14() {
    for (kernel, decayed) in [(V5_4, true), (V5_10, true), (V5_15, false), (V6_1, false)] {
        let mut s = machine(kernel, 1);
        let parent = s.sched_create_group(ROOT_TASK_GROUP, "parent", 1024);
        let child = s.sched_create_group(parent, "child", 1024);
        let p = s.task_in(child, CPU0, 0);
        assert_eq!(s.reschedule(CPU0), Some(p));
        s.ticks(CPU0, 3);
        s.sleep(CPU0);
        let [above, below] = [parent, child].map(|tg| s.tg[tg].cfs_rq[0]);
        s.cfs_rq[above].avg = crate::pelt::SchedAvg::default();
        assert!(s.cfs_rq[below].on_list && !s.cfs_rq_is_decayed(below), "{}", kernel.name);
        assert_eq!(s.cfs_rq_is_decayed(above), decayed, "{}", kernel.name);
        s.list_del_leaf_cfs_rq(below);
        assert!(s.cfs_rq_is_decayed(above), "{}: alone", kernel.name);
    }
}
