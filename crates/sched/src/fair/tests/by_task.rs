//! Quotas that throttle tasks on their way to user mode (v6.18).

use super::bandwidth::mixed;
use super::*;
use crate::fair::bandwidth::Throttle;

#[test]
fn a_task_in_a_system_call_is_not_throttled_before_it_ends_since_v6_18() {
    for kernel in mixed() {
        let mut s = machine(kernel, 1);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
        let p = s.task_in(tg, CPU0, 0);
        s.reschedule(CPU0);
        let cfs = s.tg[tg].cfs_rq[0];
        // Long enough for the runtime of two periods, whenever the first one ends.
        s.run_ms_in_kernel(95);
        assert!(s.cfs_rq_throttled(cfs));
        if kernel.bandwidth.throttle == Throttle::Queue {
            assert_eq!((s.rq[CPU0].curr, s.se_of(p).on_rq), (None, true), "{}", kernel.name);
            continue;
        }
        assert_eq!((s.rq[CPU0].curr, s.rq[CPU0].nr_running), (Some(p), 1), "{}", kernel.name);
        assert_eq!(s.cfs_rq_runtime(cfs).throttled_clock_self_time, 0, "nobody waits");
        // The clock goes on for what is queued.
        let clock = s.cfs_rq_clock_pelt(cfs);
        s.run_ms_in_kernel(2);
        assert!(s.cfs_rq_throttled(cfs) && s.cfs_rq_clock_pelt(cfs) > clock, "{}", kernel.name);
        assert!(s.se_of(p).sum_exec_runtime >= 96 * MS);
        s.reach_user_mode(CPU0);
        assert_eq!((s.rq[CPU0].curr, s.rq[CPU0].nr_running, s.task_is_throttled(p)), (None, 0, true));
        let clock = s.cfs_rq_clock_pelt(cfs);
        // The group has had at least 55 ms too much, which two more periods do not make up for.
        s.run_ms(1, 150);
        assert!(s.task_is_throttled(p) && s.cfs_rq_clock_pelt(cfs) == clock, "{}", kernel.name);
        s.run_ms(1, 400);
        assert!(s.se_of(p).sum_exec_runtime > 98 * MS);
        assert!(s.stat(tg).2 >= 150 && s.cfs_rq_runtime(cfs).throttled_clock_self_time >= 150 * MS);
    }
}

#[test]
fn neither_kernel_threads_nor_who_exits_leave_a_throttled_queue() {
    for exits in [false, true] {
        let mut s = machine(V7_2, 1);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
        let init = TaskInit { mm: u32::from(exits), ..crate::testing::task_in(tg, "k") };
        s.on_cpu(CPU0);
        let p = s.sched_fork(None, init);
        s.wake_up_new_task(p);
        s.reschedule(CPU0);
        s.task[p].exiting = exits;
        s.run_ms(1, 60);
        assert!(s.cfs_rq_throttled(s.tg[tg].cfs_rq[0]));
        assert_eq!((s.rq[CPU0].curr, s.task_has_throttle_work(p)), (Some(p), false));
        // Even if it got the throttle work before.
        s.task_cold[p].sched_throttle_work = true;
        assert!(!exits || !s.throttle_cfs_rq_work());
    }
}

#[test]
fn who_wakes_on_a_throttled_queue_preempts_what_runs_there_in_the_kernel_since_v6_18() {
    for (kernel, preempts) in [(V6_12, false), (V6_18, true), (V7_2, true)] {
        let mut s = machine(kernel, 1);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
        let sleeper = s.task_in(tg, CPU0, 0);
        assert_eq!(s.reschedule(CPU0), Some(sleeper));
        s.sleep(CPU0);
        let beside = s.task(CPU0, 0);
        assert_eq!(s.reschedule(CPU0), Some(beside));
        s.pass(MS);
        // Its queue has no runtime left, but the task is not on its way to user mode.
        let cfs = s.tg[tg].cfs_rq[0];
        s.cfs_rq_runtime_mut(cfs).runtime_remaining = -(100 * MS as i64);
        s.tg[tg].cfs_bandwidth.runtime = 0;
        s.rq[CPU0].need_resched = false;
        s.wake_from(CPU0, sleeper);
        assert!(s.cfs_rq_throttled(cfs), "{}", kernel.name);
        assert_eq!(s.is_to_reschedule(CPU0), preempts, "{}", kernel.name);
    }
}

#[test]
fn a_quota_above_is_noticed_where_a_level_changes_hands() {
    let mut s = machine(V7_2, 1);
    let above = s.limited(ROOT_TASK_GROUP, "a", 20);
    let below = s.sched_create_group(above, "b", 1024);
    let tasks = [s.task_in(below, CPU0, 0), s.task_in(below, CPU0, 0)];
    s.reschedule(CPU0);
    s.run_ms(1, 60);
    // One was told when the queue was throttled; as for the other, the queue of `above` has had the same entity all the time.
    let (queue, runs) = (s.tg[below].cfs_rq[0], s.rq[CPU0].curr.expect("one runs"));
    assert!(s.cfs_rq_throttled(s.tg[above].cfs_rq[0]) && tasks.contains(&runs));
    assert_eq!(s.throttled_limbo_list(queue).count(), 1);
    assert!(!s.task_has_throttle_work(runs));
    // Another task runs in between.
    let other = s.task(CPU0, 0);
    s.run_ms(1, 20);
    assert_eq!(s.rq[CPU0].curr, Some(other));
    assert_eq!(s.throttled_limbo_list(queue).count(), 2);
}

#[test]
fn a_queue_without_runtime_is_throttled_by_the_pick_that_passes_it_in_v6_18() {
    for (kernel, at_once) in [(V6_18, false), (V7_2, true)] {
        let mut s = machine(kernel, 1);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
        let p = s.task_in(tg, CPU0, 0);
        s.reschedule(CPU0);
        let cfs = s.tg[tg].cfs_rq[0];
        s.cfs_rq_runtime_mut(cfs).runtime_remaining = MS as i64;
        s.tg[tg].cfs_bandwidth.runtime = 0;
        s.rq[CPU0].need_resched = false;
        s.pass(2 * MS);
        s.update_rq_clock(CPU0);
        s.update_curr(cfs);
        let asked = (s.cfs_rq_throttled(cfs), s.task_has_throttle_work(p), s.rq[CPU0].need_resched);
        assert_eq!(asked, (at_once, at_once, !at_once), "{}", kernel.name);
        // It goes on, for it may be in the middle of something; on its way to user mode it leaves.
        assert_eq!(s.pick_task_fair(CPU0), Some(p));
        assert!(s.cfs_rq_throttled(cfs) && s.task_has_throttle_work(p), "{}", kernel.name);
        s.on_cpu(CPU0);
        assert!(s.throttle_cfs_rq_work() && s.task_is_throttled(p));
        s.assert_counts();
    }
}

#[test]
fn a_quota_above_is_noticed_at_every_pick_in_v6_18() {
    let mut s = machine(V6_18, 1);
    let above = s.limited(ROOT_TASK_GROUP, "a", 20);
    let below = s.sched_create_group(above, "b", 1024);
    let tasks = [s.task_in(below, CPU0, 0), s.task_in(below, CPU0, 0)];
    s.reschedule(CPU0);
    s.run_ms(1, 60);
    let queue = s.tg[below].cfs_rq[0];
    assert!(s.cfs_rq_throttled(s.tg[above].cfs_rq[0]) && s.rq[CPU0].curr.is_none());
    assert!(tasks.iter().all(|&p| s.task_is_throttled(p)) && s.throttled_limbo_list(queue).count() == 2);
}

#[test]
fn a_throttled_task_moves_from_one_queue_to_another() {
    let mut s = machine(V7_2, 2);
    let (a, b) = (s.limited(ROOT_TASK_GROUP, "a", 5), s.limited(ROOT_TASK_GROUP, "b", 5));
    let (p, q) = (s.task_in(a, CPU0, 0), s.task_in(b, CPU0, 0));
    s.reschedule(CPU0);
    s.run_ms(1, 40);
    assert!(s.task_is_throttled(p) && s.task_is_throttled(q));
    // When moved into a throttled group the task goes on waiting; elsewhere it does not.
    s.on_cpu(CPU0);
    s.sched_move_task(p, b);
    let waiting: Vec<_> = s.throttled_limbo_list(s.tg[b].cfs_rq[0]).collect();
    assert_eq!((waiting, s.rq[CPU0].nr_running), (vec![p, q], 0));
    assert_eq!(s.throttled_limbo_list(s.tg[a].cfs_rq[0]).count(), 0);
    let util = s.cfs_rq[s.tg[b].cfs_rq[0]].avg.util_avg;
    s.set_cpus_allowed_ptr(p, CpuMask::single(CPU1)).expect("it may go there");
    s.on_cpu(CPU1);
    s.scheduler_ipi();
    assert_eq!((s.task[p].cpu, s.task_is_throttled(p), s.se_of(p).on_rq), (CPU1, false, true));
    // Its average has left with it, although it was not dequeued there.
    assert!(s.cfs_rq[s.tg[b].cfs_rq[0]].avg.util_avg < util);
    // Another class does not have the quota, and the task's state is kept.
    s.on_cpu(CPU0);
    s.sched_setscheduler(q, Policy::Fifo, 1).expect("it may");
    assert_eq!((s.rq[CPU0].nr_running, s.throttled_limbo_list(s.tg[b].cfs_rq[0]).count()), (1, 0));
    s.sched_setscheduler(q, Policy::Normal, 0).expect("it may");
    assert_eq!((s.rq[CPU0].nr_running, s.throttled_limbo_list(s.tg[b].cfs_rq[0]).count()), (0, 1));
    s.assert_counts();
}

#[test]
fn who_runs_elsewhere_is_interrupted_to_be_throttled() {
    let mut s = machine(V7_2, 2);
    let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
    let p = s.task_in(tg, CPU0, 0);
    s.reschedule(CPU0);
    s.arch.interrupts.clear();
    s.on_cpu(CPU1);
    s.task_throttle_setup_work(p);
    s.task_throttle_setup_work(p);
    assert_eq!(s.arch.interrupts, [(CPU1, CPU0)]);
}
