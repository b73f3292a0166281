//! One queue for the tasks of all groups (v7.3): who competes with whom and by which weight, what a group weighs, and who preempts.

use super::*;
use crate::behaviour::Rules;
use crate::fair::rules::{EntityRules, PickLevels, SliceProtection, WakeupPreempt};
use crate::features::Feature;

const US: u64 = 1_000;

/// A machine with two groups, `a` with two tasks and `b` with one, and a task in the root group, all on the first CPU.
fn groups_beside_a_task(kernel: Kernel) -> (Sched<Hand>, [TgId; 2], [TaskId; 4]) {
    let mut s = machine(kernel, 1);
    let groups = ["a", "b"].map(|name| s.sched_create_group(ROOT_TASK_GROUP, name, 1024));
    let places = [groups[0], groups[0], groups[1], ROOT_TASK_GROUP];
    let tasks = places.map(|group| s.task_in(group, CPU0, 0));
    (s, groups, tasks)
}

/// In units of nice 0's 1024.
fn competing_weight(s: &Sched<Hand>, p: TaskId) -> u64 {
    s.kernel.load_resolution.scale_load_down(s.competing_weight(s.task[p].se))
}

#[test]
fn tasks_of_all_groups_wait_on_the_root_queue_and_groups_nowhere() {
    for (kernel, waiting) in [(V7_2, [3, 2, 1]), (V7_3, [4, 0, 0])] {
        let (s, groups, _) = groups_beside_a_task(kernel);
        let root = s.rq[CPU0].cfs;
        let queues = [root, s.tg[groups[0]].cfs_rq[0], s.tg[groups[1]].cfs_rq[0]];
        assert_eq!(queues.map(|queue| s.cfs_rq[queue].tasks_timeline.len()), waiting, "{}", kernel.name);
        // Loads are kept level by level in both.
        assert_eq!(queues.map(|queue| s.cfs_rq[queue].nr_running), [3, 2, 1]);
        assert_eq!(queues.map(|queue| s.cfs_rq[queue].h_nr_running), [4, 2, 1]);
    }
}

#[test]
fn a_task_weighs_its_part_of_each_group_on_the_way_up() {
    let (mut s, _, tasks) = groups_beside_a_task(V7_3);
    // Queued alone in its group, the first one had all of it, and keeps that until it is picked.
    assert_eq!(tasks.map(|p| competing_weight(&s, p)), [1024, 512, 1024, 1024]);
    while s.rq[CPU0].curr != Some(tasks[0]) {
        s.reschedule(CPU0);
        s.ticks(CPU0, 1);
    }
    assert_eq!(competing_weight(&s, tasks[0]), 512);
    // Two levels: half of a third.
    let outer = s.sched_create_group(ROOT_TASK_GROUP, "outer", 1024);
    let inner = s.sched_create_group(outer, "inner", 1024);
    s.task_in(outer, CPU0, 0);
    s.task_in(outer, CPU0, 0);
    let deep = [0; 2].map(|_| s.task_in(inner, CPU0, 0));
    assert_eq!(competing_weight(&s, deep[1]), 1024 / 6);
}

#[test]
fn the_running_task_learns_its_weight_at_its_tick() {
    let (mut s, groups, tasks) = groups_beside_a_task(V7_3);
    while s.rq[CPU0].curr != Some(tasks[2]) {
        s.reschedule(CPU0);
        s.ticks(CPU0, 1);
    }
    s.task_in(groups[1], CPU0, 0);
    assert_eq!(competing_weight(&s, tasks[2]), 1024);
    s.pass(100 * US);
    s.on_cpu(CPU0);
    s.scheduler_tick();
    assert_eq!(competing_weight(&s, tasks[2]), 512);
}

#[test]
fn shares_of_the_cpu_are_as_the_weights_of_groups_say_in_both() {
    for kernel in [V7_2, V7_3] {
        let (mut s, _, tasks) = groups_beside_a_task(kernel);
        s.reschedule(CPU0);
        s.ticks(CPU0, 3_000);
        // In ms of three seconds.
        let ran = tasks.map(|p| s.se_of(p).sum_exec_runtime / MS);
        for (ran, part) in ran.into_iter().zip([500, 500, 1_000, 1_000]) {
            assert!(ran.abs_diff(part) < 15, "{}: {ran} for {part}", kernel.name);
        }
    }
}

#[test]
fn the_flat_queue_needs_eevdf_and_throttling_by_task() {
    assert!(V7_3.picks_flat() && !V7_2.picks_flat());
    for (key, value) in [("entity.pick", "cfs"), ("bandwidth.throttle", "queue"), ("entity.pick_levels", "each")] {
        let mut kernel = V7_3;
        kernel.set(key, value).expect("a behaviour");
        assert!(!kernel.picks_flat(), "{key}={value}");
    }
}

/// What the parts of a group weigh together, in units of nice 0, on a machine of so many CPUs, of which it keeps the first two busy with
/// `tasks` each.
fn weight_of_two_busy_cpus(kernel: Kernel, mode: u64, cpus: usize, tasks: [usize; 2]) -> u64 {
    let mut s = machine(kernel, cpus);
    s.sysctl.cgroup_mode = mode;
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    for (cpu, tasks) in [CPU0, CPU1].into_iter().zip(tasks) {
        for _ in 0..tasks {
            s.task_in(group, cpu, 0);
        }
        s.reschedule(cpu);
    }
    for _ in 0..500 {
        s.pass(MS);
        s.tick(CPU0);
        s.tick(CPU1);
    }
    [0, 1].map(|cpu| s.kernel.load_resolution.scale_load_down(s.se[s.tg[group].se[cpu]].load.weight)).iter().sum()
}

#[test]
fn a_group_weighs_by_the_cpus_it_keeps_busy() {
    let near =
        |weight: u64, expected: u64| assert!(weight.abs_diff(expected) <= expected / 50, "{weight} for {expected}");
    // Three tasks that always run count as two: the average of runnable ones stays below three.
    near(weight_of_two_busy_cpus(V7_2, 2, 4, [2, 1]), 1024);
    // up, smp, concur, max, tasks.
    for (mode, expected) in [(0, 2048), (1, 1024), (2, 2048), (3, 4096), (4, 2048)] {
        near(weight_of_two_busy_cpus(V7_3, mode, 4, [2, 1]), expected);
    }
    // Four count as three, for which there are two CPUs.
    for (mode, expected) in [(2, 2048), (3, 2048), (4, 3072)] {
        near(weight_of_two_busy_cpus(V7_3, mode, 2, [2, 2]), expected);
    }
    // And two as one.
    near(weight_of_two_busy_cpus(V7_3, 2, 2, [1, 1]), 1024);
}

#[test]
fn a_group_counts_its_runnable_tasks_and_forgets_those_of_a_cpu_that_goes() {
    let mut s = machine(V7_3, 2);
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    for cpu in [CPU0, CPU0, CPU1] {
        s.task_in(group, cpu, 0);
        s.reschedule(cpu);
    }
    for _ in 0..500 {
        s.pass(MS);
        s.tick(CPU0);
        s.tick(CPU1);
    }
    // In 1024ths.
    let tasks = s.tg[group].runnable_avg;
    assert!(tasks.abs_diff(3 * 1024) < 100, "{tasks}");
    s.clear_tg_offline_cfs_rqs(CPU1);
    let tasks = s.tg[group].runnable_avg;
    assert!(tasks.abs_diff(2 * 1024) < 100, "{tasks}");
}

/// Of two tasks in a group, one has fallen asleep late and leaves while the other waits: how many the group's entity then takes for
/// runnable below it.
fn runnable_after_a_late_sleeper(kernel: Kernel) -> u64 {
    let mut s = machine(kernel, 1);
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    let sleeper = s.task_in(group, CPU0, 0);
    s.task_in(group, CPU0, 0);
    s.task(CPU0, 0);
    while s.rq[CPU0].curr != Some(sleeper) {
        s.reschedule(CPU0);
        s.ticks(CPU0, 1);
    }
    let se = s.task[sleeper].se;
    s.se[se].vruntime = s.se[se].vruntime.wrapping_add(10 * MS);
    s.sleep(CPU0);
    assert!(s.se_of(sleeper).sched_delayed);
    let flags = QueueFlags { sleep: true, delayed: true, ..QueueFlags::default() };
    s.update_rq_clock(CPU0);
    s.dequeue_entities(CPU0, s.task[sleeper].se, flags);
    s.se[s.tg[group].se[0]].runnable_weight
}

#[test]
fn who_leaves_late_is_counted_out_twice_for_a_while() {
    assert_eq!([V7_2, V7_3].map(runnable_after_a_late_sleeper), [1, 0]);
}

/// v7.2 with v7.3's answer to one question.
fn with(change: impl Fn(&mut EntityRules)) -> Kernel {
    let mut kernel = V7_2;
    change(&mut kernel.entity);
    kernel
}

#[test]
fn protection_against_shorter_slices_ends_where_nothing_is_owed_any_more() {
    let kernel = with(|entity| entity.slice_protection = SliceProtection::UntilIneligible);
    // The one that is picked is 600 us behind the two others, so owed something for 600 us of virtual time; it asks for 2 ms.
    let protected = |other: u64, preempt_short: bool| {
        let (mut s, cfs, ses) =
            super::eevdf::queue_of(kernel, 3, |i| (0, if i == 0 { 0 } else { 600 * US as i64 }, 10_000_000));
        s.features.set(Feature::PREEMPT_SHORT, preempt_short);
        for (&se, slice) in ses.iter().zip([2_000, other]) {
            s.__dequeue_entity(cfs, se);
            let entity = &mut s.se[se];
            (entity.slice, entity.custom_slice) = ((slice * US) as u32, true);
            entity.deadline = entity.vruntime.wrapping_add(slice * US);
            s.__enqueue_entity(cfs, se);
        }
        s.se[ses[2]].slice = 2_000_000;
        s.__dequeue_entity(cfs, ses[2]);
        s.__enqueue_entity(cfs, ses[2]);
        s.set_next_entity(cfs, ses[0], true);
        s.se[ses[0]].vprot.wrapping_sub(s.se[ses[0]].vruntime)
    };
    assert_eq!(protected(2_000, true), 2_000 * US);
    assert_eq!(protected(200, true), 600 * US + 1);
    assert_eq!(protected(200, false), 200 * US);
}

/// Whether a task that asks for 0.2 ms preempts the running one, which asks for 0.7 ms, is protected and `behind` us of virtual time
/// behind it; a third one with an earlier deadline waits. Returns also whether the woken one is the next buddy.
fn short_one_preempts(kernel: Kernel, behind: i64, due: bool) -> (bool, bool) {
    let mut s = machine(kernel, 1);
    let runs = s.task(CPU0, 0);
    s.reschedule(CPU0);
    let others = [s.task(CPU0, 0), s.task(CPU0, 0)];
    let cfs = s.rq[CPU0].cfs;
    let se = s.task[runs].se;
    let start = s.se[se].vruntime;
    s.se[se].deadline = start.wrapping_add(700 * US);
    s.se[se].vprot = s.se[se].deadline;
    for (p, slice, deadline) in [(others[0], 200, 650), (others[1], 700, 100)] {
        let pse = s.task[p].se;
        s.__dequeue_entity(cfs, pse);
        let entity = &mut s.se[pse];
        (entity.slice, entity.custom_slice) = ((slice * US) as u32, true);
        entity.vruntime = start.wrapping_add_signed(-behind * US as i64);
        entity.deadline = start.wrapping_add(deadline * US);
        s.__enqueue_entity(cfs, pse);
    }
    s.rq[CPU0].need_resched = due;
    s.check_preempt_wakeup_fair(CPU0, others[0], WakeFlags::NONE);
    let protected = s.protect_slice(se);
    (
        (s.rq[CPU0].need_resched || s.is_to_reschedule(CPU0)) && !protected,
        s.cfs_rq[cfs].next == Some(s.task[others[0]].se),
    )
}

#[test]
fn who_asks_for_less_and_is_owed_something_is_the_next_one_since_v7_3() {
    let shorter = with(|entity| entity.wakeup_preempt = WakeupPreempt::Shorter);
    // Another would be picked before it: only v7.3 lets it preempt, and remembers it.
    assert_eq!(short_one_preempts(V7_2, 100, false), (false, false));
    assert_eq!(short_one_preempts(shorter, 100, false), (true, true));
    // Even where a reschedule is due already.
    assert_eq!(short_one_preempts(V7_2, 100, true), (false, false));
    assert_eq!(short_one_preempts(shorter, 100, true), (true, true));
    // It is not owed anything.
    assert_eq!(short_one_preempts(shorter, -100, false), (false, false));
}

#[test]
fn a_waker_of_another_group_is_preempted_as_one_of_the_own() {
    // On one queue, the woken task's slice counts against the running one's, whatever the groups. Level by level, it is the groups'
    // entities that meet.
    let mut each = V7_3;
    each.entity.pick_levels = PickLevels::Each;
    for (kernel, expected) in [(V7_3, true), (each, false)] {
        let (mut s, _, tasks) = groups_beside_a_task(kernel);
        while s.rq[CPU0].curr != Some(tasks[2]) {
            s.reschedule(CPU0);
            s.ticks(CPU0, 1);
        }
        // The first task of `a` asks for little and is owed much, while its group is ahead of `b`.
        let (se, pse, group) =
            (s.task[tasks[2]].se, s.task[tasks[0]].se, s.se[s.task[tasks[0]].se].parent.expect("it is in a group"));
        let competes = if expected { pse } else { group };
        let on = s.competes_on(pse);
        s.__dequeue_entity(on, pse);
        (s.se[pse].slice, s.se[pse].custom_slice) = (100_000, true);
        s.se[pse].vruntime = s.cfs_rq[on].zero_vruntime.wrapping_sub(5 * MS);
        s.__enqueue_entity(on, pse);
        if competes == group {
            let on = s.se[group].cfs_rq;
            s.__dequeue_entity(on, group);
            s.se[group].vruntime = s.cfs_rq[on].zero_vruntime.wrapping_add(5 * MS);
            s.__enqueue_entity(on, group);
        }
        let above = s.se[se].parent.filter(|_| !expected).unwrap_or(se);
        s.se[above].vprot = s.se[above].vruntime.wrapping_add(MS);
        s.rq[CPU0].need_resched = false;
        s.check_preempt_wakeup_fair(CPU0, tasks[0], WakeFlags::NONE);
        assert_eq!(s.is_to_reschedule(CPU0), expected, "{:?}", kernel.entity.pick_levels);
    }
}
