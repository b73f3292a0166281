//! SCHED_IDLE tasks and idle groups.

use super::*;
use crate::behaviour::Rules;
use crate::features::Feature;

const IDLE: SchedAttr = SchedAttr { sched_policy: Policy::Idle, ..SchedAttr::NORMAL };

#[test]
fn who_is_idle_from_its_birth_counts_as_one_who_becomes_it() {
    for kernel in KERNELS.into_iter().chain([V6_6, V6_12, V6_18]) {
        let mut s = machine(kernel, 1);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "group", 1024);
        let normal = s.runner(CPU0);
        for group in [ROOT_TASK_GROUP, group, group] {
            s.forked(group, CPU0, IDLE);
        }
        let counts = |s: &Sched<Hand>| {
            let below = |tg: TgId| s.cfs_rq[s.tg[tg].cfs_rq[0]].idle_h_nr_running;
            (below(ROOT_TASK_GROUP), below(group), s.sched_idle_rq(CPU0))
        };
        assert_eq!(counts(&s), (3, 2, false), "{}", kernel.name);
        s.set_policy(normal, Policy::Idle);
        assert_eq!(counts(&s), (4, 2, true), "{}", kernel.name);
        for left in (0..4).rev() {
            s.sleep(CPU0);
            s.pass(MS);
            s.on_cpu(CPU0);
            assert!(counts(&s).0 >= left, "{}", kernel.name);
        }
    }
}

#[test]
fn a_normal_task_preempts_one_that_is_idle_from_its_birth() {
    for kernel in KERNELS.into_iter().chain([V6_6, V6_12, V6_18]) {
        let mut s = machine(kernel, 1);
        let sleeper = s.runner(CPU0);
        s.forked(ROOT_TASK_GROUP, CPU0, IDLE);
        // By what it has already run, it will not get a turn for a long time.
        s.pass(4_000 * MS);
        s.sleep(CPU0);
        s.pass(1_000);
        s.rq[CPU0].need_resched = false;
        s.wake_from(CPU0, sleeper);
        assert!(s.rq[CPU0].need_resched, "{}", kernel.name);
    }
}

/// A normal and a SCHED_IDLE task on one CPU; the first one runs.
fn pair(kernel: Kernel) -> (Sched<Hand>, TaskId, TaskId) {
    let mut s = machine(kernel, 1);
    let normal = s.runner(CPU0);
    let idle = s.task(CPU0, 0);
    s.set_policy(idle, Policy::Idle);
    (s, normal, idle)
}

#[test]
fn an_idle_tasks_slice_is_shorter_beside_others_only() {
    let (mut s, normal, idle) = pair(V6_1);
    s.sysctl.sched_idle_min_granularity = 400_000;
    let (cfs, se) = (s.rq[CPU0].cfs, s.task[idle].se);
    // 6 ms * 3 / 1027 is less than either.
    assert_eq!(s.sched_slice(cfs, se), 400_000);
    s.set_policy(normal, Policy::Idle);
    assert_eq!(s.sched_slice(cfs, se), 2_999_999, "6 ms * 3 / 6, by the inverse of 6");
    s.set_policy(normal, Policy::Batch);
    s.kernel.set("entity.idle_slice", "min-granularity");
    assert_eq!(s.sched_slice(cfs, se), 750_000);
    s.features.set(Feature::BASE_SLICE, false);
    assert_eq!(s.sched_slice(cfs, se), 17_526, "6 ms * 3 / 1027");
}

#[test]
fn an_idle_sleeper_is_credited_half_the_shortest_slice() {
    for (kernel, credit) in [(V4_16, 3 * MS), (V5_4, 3 * MS), (V5_15, 3 * MS), (V6_1, 375_000)] {
        let mut s = machine(kernel, 1);
        let idle = s.runner(CPU0);
        s.set_policy(idle, Policy::Idle);
        s.sleep(CPU0);
        s.runner(CPU0);
        s.pass(MS << 20);
        s.tick(CPU0);
        s.wake_from(CPU0, idle);
        assert_eq!(s.lead(idle), -(credit as i64), "{}", kernel.name);
    }
}

#[test]
fn idle_groups_give_way_and_preempt_nobody() {
    // Between two idle groups a lead of 0.375 ms, which is all that an idle sleeper gets, would have to be 341 ms: 1 ms
    // at weight 3.
    for (runs_idle, wakes_idle, preempts) in
        [(false, false, true), (true, false, true), (false, true, false), (true, true, false)]
    {
        let mut s = machine(V6_1, 1);
        let groups = ["a", "b"].map(|name| s.sched_create_group(ROOT_TASK_GROUP, name, 1024));
        let sleeper = s.task_in(groups[1], CPU0, 0);
        s.reschedule(CPU0);
        s.sleep(CPU0);
        s.task_in(groups[0], CPU0, 0);
        s.reschedule(CPU0);
        s.sched_group_set_idle(groups[0], runs_idle);
        s.sched_group_set_idle(groups[1], wakes_idle);
        s.pass(2_000 * MS);
        s.tick(CPU0);
        s.wake_from(CPU0, sleeper);
        assert_eq!(s.rq[CPU0].need_resched, preempts, "idle group {wakes_idle} wakes beside one {runs_idle}");
    }
}

#[test]
fn an_idle_group_weighs_three_and_its_tasks_count_as_idle() {
    let mut s = machine(V6_1, 1);
    let outer = s.sched_create_group(ROOT_TASK_GROUP, "outer", 2048);
    let inner = s.sched_create_group(outer, "inner", 512);
    s.task_in(outer, CPU0, 0);
    s.task_in(inner, CPU0, 0);
    let below = |s: &Sched<Hand>, tg: TgId| {
        let cfs_rq = &s.cfs_rq[s.tg[tg].cfs_rq[0]];
        (cfs_rq.idle_nr_running, cfs_rq.idle_h_nr_running)
    };
    assert_eq!([ROOT_TASK_GROUP, outer, inner].map(|tg| below(&s, tg)), [(0, 0); 3]);
    s.sched_group_set_idle(inner, true);
    assert_eq!([ROOT_TASK_GROUP, outer, inner].map(|tg| below(&s, tg)), [(0, 1), (1, 1), (0, 0)]);
    assert!(!s.sched_idle_rq(CPU0));
    s.sched_group_set_idle(outer, true);
    assert_eq!([ROOT_TASK_GROUP, outer, inner].map(|tg| below(&s, tg)), [(1, 2), (1, 1), (0, 0)]);
    assert!(s.sched_idle_rq(CPU0) && s.sched_idle_cfs_rq(s.rq[CPU0].cfs));
    assert_eq!(s.tg[outer].shares, 3 << 10);
    s.task_in(inner, CPU0, 0);
    assert_eq!(below(&s, ROOT_TASK_GROUP), (1, 3));
    s.sched_group_set_idle(outer, false);
    assert_eq!([ROOT_TASK_GROUP, outer, inner].map(|tg| below(&s, tg)), [(0, 2), (1, 2), (0, 0)]);
    assert_eq!(s.tg[outer].shares, 1024 << 10, "its own 2048 is forgotten");
    s.sched_group_set_idle(outer, false);
    s.sched_group_set_shares(outer, 2048);
}

#[test]
#[should_panic(expected = "an idle group's shares are fixed")]
fn an_idle_groups_shares_are_fixed() {
    let mut s = machine(V6_1, 1);
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    s.sched_group_set_idle(group, true);
    s.sched_group_set_shares(group, 2048);
}

#[test]
fn when_only_idle_tasks_are_left_balancing_is_due() {
    for (kernel, due) in [(V4_16, false), (V6_1, true)] {
        let (mut s, ..) = pair(kernel);
        let far = s.jiffies() + 1_000;
        s.rq[CPU0].next_balance = far;
        s.sleep(CPU0);
        assert_eq!(s.rq[CPU0].next_balance != far, due, "{}", kernel.name);
    }
}

#[test]
fn becoming_idle_changes_averages_where_it_should() {
    // A task of nice 0 that always runs has a load average of 1024.
    for (kernel, load_avg) in [(V4_16, 1_024), (V6_1, 3)] {
        let mut s = machine(kernel, 1);
        let p = s.runner(CPU0);
        s.ticks(CPU0, 500);
        s.set_policy(p, Policy::Idle);
        assert!(s.se_of(p).avg.load_avg.abs_diff(load_avg) <= load_avg / 50 + 1, "{}", s.se_of(p).avg.load_avg);
    }
}
