//! Which wakeups preempt under EEVDF.

use super::*;
use crate::features::Feature;

const US: u64 = 1_000;

/// How a woken task meets the running one, both of nice 0.
#[derive(Clone, Copy)]
struct Meeting {
    /// How far the woken task is behind the running one, in us of virtual time.
    behind: i64,
    /// How much later its deadline is than the running one's, in us.
    later: i64,
    /// The slice that it asks for, in us; the running one asks for 0.7 ms.
    slice: u64,
    flags: WakeFlags,
}

const WOKEN: Meeting = Meeting { behind: -100, later: -100, slice: 700, flags: WakeFlags::NONE };

/// Both tasks after the wakeup's check: the running one was picked 100 us ago for 0.7 ms.
fn meet(kernel: Kernel, with: Meeting, prepare: impl Fn(&mut Sched<Hand>)) -> (Sched<Hand>, TaskId, TaskId) {
    let mut s = machine(kernel, 1);
    let runs = s.task(CPU0, 0);
    assert_eq!(s.reschedule(CPU0), Some(runs));
    let woken = s.task(CPU0, 0);
    let cfs = s.rq[CPU0].cfs;
    let (se, pse) = (s.task[runs].se, s.task[woken].se);
    let start = s.se[se].vruntime;
    s.se[se].deadline = start.wrapping_add(700 * US);
    s.set_protect_slice(cfs, se, true);
    s.se[se].vprot = s.se[se].deadline;
    s.pass(100 * US);
    s.update_rq_clock(CPU0);
    s.update_curr(cfs);
    s.__dequeue_entity(cfs, pse);
    let at = |us: i64| s.se[se].vruntime.wrapping_add_signed(us * US as i64);
    let (vruntime, deadline) = (at(with.behind), s.se[se].deadline.wrapping_add_signed(with.later * US as i64));
    let entity = &mut s.se[pse];
    (entity.vruntime, entity.deadline) = (vruntime, deadline);
    (entity.slice, entity.custom_slice) = ((with.slice * US) as u32, true);
    s.__enqueue_entity(cfs, pse);
    s.rq[CPU0].need_resched = false;
    prepare(&mut s);
    s.check_preempt_wakeup_fair(CPU0, woken, with.flags);
    (s, runs, woken)
}

fn preempts(kernel: Kernel, with: Meeting) -> bool {
    meet(kernel, with, |_| ()).0.is_to_reschedule(CPU0)
}

#[test]
fn who_is_eligible_keeps_the_cpu_within_its_protection_only() {
    for kernel in [V6_6, V6_12, V6_18, V7_2] {
        // The running one is behind V if the woken one has a later vruntime.
        assert!(!preempts(kernel, Meeting { behind: 50, ..WOKEN }), "{}", kernel.name);
        // It is ahead of V: no protection helps.
        assert!(preempts(kernel, WOKEN), "{}", kernel.name);
    }
}

#[test]
fn a_new_task_preempts_later_kernels_only_by_a_shorter_slice() {
    let fork = Meeting { flags: WakeFlags::FORK, ..WOKEN };
    assert!(preempts(V6_6, fork) && preempts(V6_12, fork));
    for kernel in [V6_18, V7_2] {
        assert!(!preempts(kernel, fork), "{}", kernel.name);
        assert!(preempts(kernel, Meeting { slice: 300, ..fork }), "{}", kernel.name);
    }
    // So is one whose dequeue was delayed.
    for (kernel, expected) in [(V6_12, true), (V6_18, false), (V7_2, false)] {
        let (s, ..) = meet(kernel, WOKEN, |s| {
            let waits = s.cfs_rq[s.rq[CPU0].cfs].tasks_timeline.leftmost().expect("it waits");
            s.set_delayed(waits);
        });
        assert_eq!(s.is_to_reschedule(CPU0), expected, "{}", kernel.name);
    }
}

#[test]
fn a_shorter_slice_breaks_protection_only_if_that_preempts() {
    // Both are eligible at the same vruntime, so the deadline decides.
    let short = Meeting { behind: 0, later: -1, slice: 300, ..WOKEN };
    for kernel in [V6_12, V6_18, V7_2] {
        assert!(preempts(kernel, short), "{}", kernel.name);
        let (s, runs, _) = meet(kernel, Meeting { later: 1, ..short }, |_| ());
        assert!(!s.is_to_reschedule(CPU0), "{}", kernel.name);
        assert!(s.protect_slice(s.task[runs].se));
    }
    // With a third task whose deadline is earlier still, the wakeup preempts nothing; in 6.12 the protection is gone
    // all the same.
    for (kernel, protected) in [(V6_12, false), (V6_18, true), (V7_2, true)] {
        let (s, runs, _) = meet(kernel, short, |s| {
            let third = s.task(CPU0, 0);
            let (cfs, se) = (s.rq[CPU0].cfs, s.task[third].se);
            s.__dequeue_entity(cfs, se);
            s.se[se].vruntime = s.avg_vruntime(cfs);
            s.se[se].deadline = s.se[se].vruntime.wrapping_add(10);
            s.__enqueue_entity(cfs, se);
            s.rq[CPU0].need_resched = false;
        });
        assert!(!s.is_to_reschedule(CPU0), "{}", kernel.name);
        assert_eq!(s.protect_slice(s.task[runs].se), protected, "{}", kernel.name);
    }
}

#[test]
fn who_does_not_preempt_shortens_the_others_protection_to_its_slice() {
    let not_yet = Meeting { behind: 50, later: -100, slice: 300, ..WOKEN };
    for (parity, left) in [(true, 300), (false, 600)] {
        let (s, runs, _) = meet(V7_2, not_yet, |s| s.features.set(Feature::RUN_TO_PARITY, parity));
        assert!(!s.is_to_reschedule(CPU0));
        let se = s.se_of(runs);
        assert_eq!(se.vprot.wrapping_sub(se.vruntime), left * US, "{parity}");
    }
}

#[test]
fn a_sleeper_that_would_be_picked_leaves() {
    for (kernel, left) in [(V6_12, false), (V6_18, true), (V7_2, true)] {
        let (s, ..) = meet(kernel, WOKEN, |s| {
            let sleeper = s.task(CPU0, 0);
            let (cfs, se) = (s.rq[CPU0].cfs, s.task[sleeper].se);
            s.task[sleeper].state = TaskState::Interruptible;
            s.__dequeue_entity(cfs, se);
            s.se[se].vruntime = s.avg_vruntime(cfs);
            s.se[se].deadline = s.se[se].vruntime.wrapping_add(10);
            s.__enqueue_entity(cfs, se);
            s.set_delayed(se);
            s.rq[CPU0].need_resched = false;
        });
        assert_eq!(s.rq[CPU0].nr_running == 2, left, "{}", kernel.name);
        assert_eq!(s.is_to_reschedule(CPU0), left, "{}: then the woken one is next", kernel.name);
    }
}

#[test]
fn the_next_buddy_is_the_one_with_the_earliest_deadline() {
    let later = [V6_18, V7_2].map(|kernel| [(kernel, true, false), (kernel, false, true)]);
    for (kernel, earlier, taken) in later.into_iter().flatten().chain([(V6_12, true, true)]) {
        let (s, _, woken) = meet(kernel, Meeting { behind: 50, later: 0, ..WOKEN }, |s| {
            s.features.set(Feature::NEXT_BUDDY, true);
            let old = s.task(CPU0, 0);
            let (cfs, se) = (s.rq[CPU0].cfs, s.task[old].se);
            let curr = s.cfs_rq[cfs].curr.expect("one runs");
            s.__dequeue_entity(cfs, se);
            s.se[se].deadline = s.se[curr].deadline.wrapping_add_signed(if earlier { -1 } else { 1 });
            s.__enqueue_entity(cfs, se);
            s.set_next_buddy(se);
            s.rq[CPU0].need_resched = false;
        });
        let next = s.cfs_rq[s.rq[CPU0].cfs].next;
        assert_eq!(next == Some(s.task[woken].se), taken, "{} {earlier}", kernel.name);
    }
}

#[test]
fn the_next_buddy_goes_before_a_shorter_slice_in_v6_18() {
    for (kernel, preempts) in [(V6_12, true), (V6_18, false), (V7_2, true)] {
        let (s, runs, _) = meet(kernel, Meeting { behind: 0, later: -1, slice: 300, ..WOKEN }, |s| {
            let buddy = s.task(CPU0, 0);
            let (cfs, se) = (s.rq[CPU0].cfs, s.task[buddy].se);
            s.__dequeue_entity(cfs, se);
            s.se[se].vruntime = s.avg_vruntime(cfs);
            s.se[se].deadline = s.se[se].vruntime.wrapping_add(10 * MS);
            s.__enqueue_entity(cfs, se);
            s.set_next_buddy(se);
            s.rq[CPU0].need_resched = false;
        });
        assert_eq!(s.is_to_reschedule(CPU0), preempts, "{}", kernel.name);
        assert_eq!(s.protect_slice(s.task[runs].se), !preempts, "{}", kernel.name);
    }
}

#[test]
fn a_waker_that_is_about_to_sleep_goes_on_beside_its_buddy() {
    // The running one is ahead of V, so that the woken one would be picked; but it announces that it sleeps soon. How
    // long it has run is never known.
    for (buddy, flags, cost, later, preempts) in [
        (false, WakeFlags::SYNC, 500, -1, true),
        (true, WakeFlags::NONE, 500, -1, true),
        (true, WakeFlags::SYNC, 500, -1, false),
        (true, WakeFlags::SYNC, 0, -1, true),
        (true, WakeFlags::SYNC, 0, 1, false),
    ] {
        let (s, _, woken) = meet(V7_2, Meeting { later, flags, ..WOKEN }, |s| {
            s.features.set(Feature::NEXT_BUDDY, buddy);
            s.sysctl.sched_migration_cost = cost * US;
        });
        assert_eq!(s.is_to_reschedule(CPU0), preempts, "{buddy} {flags:?} {cost} {later}");
        assert_eq!(s.cfs_rq[s.rq[CPU0].cfs].next == Some(s.task[woken].se), buddy);
    }
}

#[test]
fn idle_policy_gives_way_at_once() {
    for kernel in [V6_12, V6_18, V7_2] {
        let mut s = machine(kernel, 1);
        let runs = s.task(CPU0, 0);
        s.set_policy(runs, Policy::Idle);
        s.reschedule(CPU0);
        let woken = s.task(CPU0, 0);
        s.rq[CPU0].need_resched = false;
        let flags = WakeFlags::NONE;
        s.check_preempt_wakeup_fair(CPU0, woken, flags);
        assert!(s.is_to_reschedule(CPU0));
        assert!(!s.protect_slice(s.task[runs].se), "{}", kernel.name);
    }
}
