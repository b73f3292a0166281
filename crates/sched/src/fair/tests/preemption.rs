//! Which wakeups preempt, and which entity a queue prefers to run.

use super::*;
use crate::features::Feature;

/// One task runs, another sleeps; the sleeper is placed `lead` ns behind (positive) or ahead of the running one and
/// woken.
fn wake_at(kernel: Kernel, lead: i64, nice: i32) -> bool {
    let mut s = machine(kernel, 1);
    let waker = s.task(CPU0, 0);
    s.reschedule(CPU0);
    let sleeper = s.task(CPU0, nice);
    s.rq[CPU0].need_resched = false;
    let (se, pse) = (s.task[waker].se, s.task[sleeper].se);
    let cfs = s.rq[CPU0].cfs;
    let key = s.se[pse].vruntime;
    s.cfs_rq[cfs].tasks_timeline.remove(key, pse);
    s.se[pse].vruntime = s.se[se].vruntime.wrapping_add_signed(lead);
    let key = s.se[pse].vruntime;
    s.cfs_rq[cfs].tasks_timeline.insert(key, pse);
    s.check_preempt_wakeup_fair(CPU0, sleeper, WakeFlags::NONE);
    s.rq[CPU0].need_resched
}

#[test]
fn a_woken_task_preempts_when_it_is_ahead_by_more_than_the_granularity() {
    for kernel in KERNELS {
        assert!(!wake_at(kernel, 5, 0));
        assert!(!wake_at(kernel, -(MS as i64), 0), "{}", kernel.name);
        assert!(wake_at(kernel, -(MS as i64) - 1, 0), "{}", kernel.name);
        // 1 ms in virtual time of a nice 5 task is 3056716 ns, of a nice -5 task 328099 ns.
        assert!(!wake_at(kernel, -3_056_716, 5));
        assert!(wake_at(kernel, -3_056_717, 5));
        assert!(!wake_at(kernel, -328_099, -5));
        assert!(wake_at(kernel, -328_101, -5));
    }
}

#[test]
fn batch_and_idle_tasks_wait_for_the_tick() {
    for kernel in KERNELS {
        for (running, woken, preempts) in [
            (Policy::Normal, Policy::Normal, true),
            (Policy::Normal, Policy::Batch, false),
            (Policy::Normal, Policy::Idle, false),
            (Policy::Batch, Policy::Normal, true),
            (Policy::Idle, Policy::Normal, true),
            (Policy::Idle, Policy::Batch, true),
            (Policy::Idle, Policy::Idle, false),
        ] {
            let mut s = machine(kernel, 1);
            let sleeper = s.task(CPU0, 0);
            s.set_policy(sleeper, woken);
            s.reschedule(CPU0);
            s.sleep(CPU0);
            let runner = s.task(CPU0, 0);
            s.set_policy(runner, running);
            s.reschedule(CPU0);
            s.pass(20 * MS);
            s.wake_from(CPU0, sleeper);
            assert_eq!(s.rq[CPU0].need_resched, preempts, "{}: {woken:?} on {running:?}", kernel.name);
        }
    }
}

#[test]
fn the_feature_switches_wakeup_preemption_off() {
    let mut s = machine(V4_15, 1);
    s.features.set(Feature::WAKEUP_PREEMPTION, false);
    let sleeper = s.task(CPU0, 0);
    s.reschedule(CPU0);
    s.sleep(CPU0);
    s.task(CPU0, 0);
    s.reschedule(CPU0);
    s.pass(20 * MS);
    s.wake_from(CPU0, sleeper);
    assert!(!s.rq[CPU0].need_resched);
}

/// Four tasks, `vruntime` 0, 100, 200 us and 10 ms after the first, none running.
fn four() -> (Sched<Hand>, [SeId; 4]) {
    let mut s = machine(V4_5_RC1, 1);
    let ses = [0; 4].map(|nice| {
        let p = s.task(CPU0, nice);
        s.task[p].se
    });
    let cfs = s.rq[CPU0].cfs;
    for se in ses {
        let vruntime = s.se[se].vruntime;
        s.cfs_rq[cfs].tasks_timeline.remove(vruntime, se);
    }
    let base = s.se[ses[0]].vruntime;
    for (se, distance) in ses.into_iter().zip([0, 100_000, 200_000, 10 * MS]) {
        s.se[se].vruntime = base.wrapping_add(distance);
        s.cfs_rq[cfs].tasks_timeline.insert(base.wrapping_add(distance), se);
    }
    (s, ses)
}

#[test]
fn buddies_are_preferred_in_order_unless_too_far_behind() {
    // (next, last, skip) as positions in the timeline, and which entity is picked.
    for (next, last, skip, picked) in [
        (None, None, None, 0),
        (None, None, Some(0), 1),
        (None, None, Some(1), 0),
        (None, Some(2), None, 2),
        (None, Some(2), Some(0), 2),
        (Some(1), Some(2), None, 1),
        (Some(1), Some(2), Some(0), 1),
        (Some(3), None, None, 0),
        (None, Some(3), None, 0),
        (Some(3), Some(2), None, 2),
        (Some(3), Some(3), Some(0), 1),
    ] {
        let (mut s, ses) = four();
        let cfs = s.rq[CPU0].cfs;
        let place = |at: Option<usize>| at.map(|at| ses[at]);
        let queue = &mut s.cfs_rq[cfs];
        (queue.next, queue.last, queue.skip) = (place(next), place(last), place(skip));
        queue.buddies = true;
        let se = s.pick_next_entity_cfs(cfs, None);
        assert_eq!(se, ses[picked], "next {next:?} last {last:?} skip {skip:?}");
        let queue = &s.cfs_rq[cfs];
        assert!(
            [queue.next, queue.last, queue.skip].iter().all(|&buddy| buddy != Some(se)),
            "the picked is a buddy no more"
        );
    }
}

#[test]
fn the_running_entity_competes_and_may_be_skipped() {
    let (mut s, ses) = four();
    let cfs = s.rq[CPU0].cfs;
    s.set_next_entity(cfs, ses[0], true);
    let curr = Some(ses[0]);
    assert_eq!(s.pick_next_entity_cfs(cfs, curr), ses[0]);
    (s.cfs_rq[cfs].skip, s.cfs_rq[cfs].buddies) = (curr, true);
    assert_eq!(s.pick_next_entity_cfs(cfs, curr), ses[1]);
    // The leftmost is to be skipped, and the running one is between it and the next.
    s.se[ses[0]].vruntime = s.se[ses[1]].vruntime.wrapping_add(50_000);
    (s.cfs_rq[cfs].skip, s.cfs_rq[cfs].buddies) = (Some(ses[1]), true);
    assert_eq!(s.pick_next_entity_cfs(cfs, curr), ses[0]);
}

#[test]
fn an_idle_policy_task_is_nobodys_friend_but_may_be_skipped() {
    let mut s = machine(V4_15, 1);
    let p = s.task(CPU0, 0);
    s.set_policy(p, Policy::Idle);
    let se = s.task[p].se;
    s.set_next_buddy(se);
    s.set_skip_buddy(se);
    let queue = &s.cfs_rq[s.rq[CPU0].cfs];
    assert_eq!((queue.next, queue.skip), (None, Some(se)));
}

#[test]
fn a_preempted_task_is_remembered_only_on_a_crowded_queue() {
    for (others, remembered) in [(0, false), (7, true)] {
        for kernel in KERNELS {
            let mut s = machine(kernel, 1);
            let sleeper = s.task(CPU0, 0);
            s.reschedule(CPU0);
            s.sleep(CPU0);
            let runner = s.task(CPU0, 0);
            s.reschedule(CPU0);
            for _ in 0..others {
                s.task(CPU0, 0);
            }
            s.rq[CPU0].need_resched = false;
            s.pass(5 * MS);
            s.wake_from(CPU0, sleeper);
            let queue = &s.cfs_rq[s.rq[CPU0].cfs];
            assert!(s.rq[CPU0].need_resched);
            assert_eq!(queue.next, Some(s.task[sleeper].se));
            assert_eq!(queue.last == Some(s.task[runner].se), remembered, "{}: {others} others", kernel.name);
        }
    }
}
