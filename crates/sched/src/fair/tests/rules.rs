//! What v6.1 does differently, one behaviour at a time.

use super::*;
use crate::behaviour::Rules;
use crate::features::Feature;

#[test]
fn slices_are_reckoned_from_all_tasks_below_and_are_never_too_short() {
    let mut s = machine(V6_1, 1);
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    let inside = s.task_in(group, CPU0, 0);
    let heavy = s.task(CPU0, -20);
    for _ in 0..8 {
        s.task_in(group, CPU0, 0);
    }
    let (root, queue) = (s.rq[CPU0].cfs, s.tg[group].cfs_rq[0]);
    let (heavy, inside) = (s.task[heavy].se, s.task[inside].se);
    // Ten tasks share 7.5 ms (ALT_PERIOD), while the root queue has two entities and the group's nine.
    let fair = 7_500_000 * 88_761 / (88_761 + 1024);
    assert!(s.sched_slice(root, heavy).abs_diff(fair) < fair >> 16, "{}", s.sched_slice(root, heavy));
    assert_eq!(s.sched_slice(queue, inside), 750_000);
    s.features.set(Feature::ALT_PERIOD, false);
    let fair = 6_000_000 * 88_761 / (88_761 + 1024);
    assert!(s.sched_slice(root, heavy).abs_diff(fair) < fair >> 16);
    s.features.set(Feature::BASE_SLICE, false);
    let fair = 9 * 750_000 / 9 * 1024 / (88_761 + 1024);
    assert!(s.sched_slice(queue, inside).abs_diff(fair) < 100, "{}", s.sched_slice(queue, inside));
}

#[test]
fn nobody_computes_the_number_of_slices_anew() {
    for kernel in [V5_15, V6_1] {
        let mut s = machine(kernel, 1);
        s.sysctl_write(Tunable::sched_latency, 100 * MS).expect("a sound value");
        assert!(s.is_past_nr_latency(8) && !s.is_past_nr_latency(7));
        s.kernel.set("entity.nr_latency", "ratio");
        assert!(s.is_past_nr_latency(134) && !s.is_past_nr_latency(133));
    }
}

/// How far min_vruntime moves when the entity that held it back falls asleep, or is put back at once.
fn moved(kernel: Kernel, asleep: bool) -> u64 {
    let mut s = machine(kernel, 1);
    s.runner(CPU0);
    let other = s.task(CPU0, 0);
    let cfs = s.rq[CPU0].cfs;
    let before = s.cfs_rq[cfs].min_vruntime;
    let distance = s.se_of(other).vruntime.wrapping_sub(before);
    if asleep {
        // Until an entity is picked, which updates the queue as well.
        let p = s.rq[CPU0].curr.unwrap();
        let flags = QueueFlags { sleep: true, ..QueueFlags::default() };
        s.dequeue_task(CPU0, p, flags);
    } else {
        let p = s.rq[CPU0].curr.unwrap();
        let flags = QueueFlags { save_restore: true, ..QueueFlags::default() };
        s.dequeue_task(CPU0, p, flags);
    }
    let moved = s.cfs_rq[cfs].min_vruntime.wrapping_sub(before);
    assert!(moved == 0 || moved == distance);
    moved / distance.max(1)
}

#[test]
fn a_sleeper_lets_min_vruntime_go_and_one_put_back_does_not() {
    assert_eq!([true, false].map(|asleep| moved(V4_16, asleep)), [0, 1], "the reverse of what was meant");
    assert_eq!([true, false].map(|asleep| moved(V6_1, asleep)), [1, 0]);
}

#[test]
fn years_of_sleep_are_forgotten() {
    for (kernel, placed) in [(V4_16, false), (V6_1, true)] {
        let mut s = machine(kernel, 1);
        let sleeper = s.runner(CPU0);
        s.sleep(CPU0);
        s.runner(CPU0);
        // 105 days, and a queue whose virtual time advanced by more than half of its range.
        s.pass(105 * 86_400_000 * MS);
        s.tick(CPU0);
        let cfs = s.rq[CPU0].cfs;
        let ahead = 1u64 << 63;
        s.cfs_rq[cfs].min_vruntime = s.cfs_rq[cfs].min_vruntime.wrapping_add(ahead);
        let curr = s.cfs_rq[cfs].curr.unwrap();
        s.se[curr].vruntime = s.se[curr].vruntime.wrapping_add(ahead);
        s.wake_from(CPU0, sleeper);
        assert_eq!(s.lead(sleeper) == -3 * MS as i64, placed, "{}", kernel.name);
    }
}

#[test]
fn a_migrating_task_is_hot_until_it_is_queued_where_that_is_said() {
    for (kernel, hot) in [(V4_16, false), (V6_1, true)] {
        let mut s = machine(kernel, 2);
        let p = s.runner(CPU0);
        s.sleep(CPU0);
        s.task[p].state = TaskState::Waking;
        s.on_cpu(CPU1);
        s.set_task_cpu(p, CPU1);
        assert_eq!(s.se_of(p).exec_start != 0, hot, "{}", kernel.name);
        s.activate_task(CPU1, p, QueueFlags { wakeup: true, migrated: true, ..QueueFlags::default() });
        assert_eq!(s.se_of(p).exec_start, 0, "{}", kernel.name);
    }
}

#[test]
fn one_that_goes_on_running_stays_a_buddy_where_only_set_next_entity_clears() {
    for (kernel, stays) in [(V4_16, false), (V5_4, false), (V5_10, false), (V5_15, true), (V6_1, true)] {
        let mut s = machine(kernel, 1);
        let runs = s.runner(CPU0);
        s.task(CPU0, 0);
        let se = s.task[runs].se;
        s.set_next_buddy(se);
        assert_eq!(s.reschedule(CPU0), Some(runs));
        assert_eq!(s.cfs_rq[s.rq[CPU0].cfs].next == Some(se), stays, "{}", kernel.name);
    }
}

#[test]
fn a_task_on_its_way_takes_its_vruntime_along_if_it_stays_on_its_cpu() {
    // Woken, but not queued yet, the task changes its group, to one whose virtual time is far ahead.
    for (kernel, lead) in [(V4_16, false), (V6_1, true)] {
        let mut s = machine(kernel, 1);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        let p = s.runner(CPU0);
        s.sleep(CPU0);
        let queue = s.tg[group].cfs_rq[0];
        s.cfs_rq[queue].min_vruntime = s.cfs_rq[queue].min_vruntime.wrapping_add(1 << 40);
        s.task[p].state = TaskState::Waking;
        s.task[p].sched_remote_wakeup = false;
        s.sched_move_task(p, group);
        let near = s.lead(p).unsigned_abs() < 100 * MS;
        assert_eq!(near, lead, "{}: {}", kernel.name, s.lead(p));
    }
}
