//! How long the picked entity is protected from others, and what follows when the protection ends.

use super::eevdf::queue_of;
use super::*;
use crate::features::Feature;

const US: u64 = 1_000;

/// Three entities of nice 0 with the same vruntime, of which the first is picked. All ask for 0.7 ms, except the first
/// for `own` us and the second for `other` us. Returns how far the first one's protection reaches, in us.
fn protection(kernel: Kernel, parity: bool, own: u64, other: u64) -> (Sched<Hand>, SeId, u64) {
    let (mut s, cfs, ses) = queue_of(kernel, 3, |_| (0, 0, 10_000_000));
    s.features.set(Feature::RUN_TO_PARITY, parity);
    for (&se, slice) in ses.iter().zip([own, other]) {
        s.__dequeue_entity(cfs, se);
        let entity = &mut s.se[se];
        (entity.slice, entity.custom_slice) = ((slice * US) as u32, true);
        entity.deadline = entity.vruntime.wrapping_add(slice * US);
        s.__enqueue_entity(cfs, se);
    }
    s.set_next_entity(cfs, ses[0], true);
    let reach = s.vprot(ses[0]).wrapping_sub(s.se[ses[0]].vruntime) / US;
    (s, ses[0], reach)
}

#[test]
fn the_shortest_slice_of_those_who_wait_is_protected() {
    for (parity, own, other, reach) in [
        // Its own slice, if none is shorter; otherwise the shortest.
        (true, 700, 700, 700),
        (true, 300, 700, 300),
        (true, 700, 200, 200),
        (true, 3_000, 3_000, 700),
        // The base slice of a machine with one CPU.
        (false, 3_000, 200, 700),
        (false, 300, 200, 300),
    ] {
        for kernel in [V6_18, V7_2] {
            assert_eq!(protection(kernel, parity, own, other).2, reach, "{} {parity} {own} {other}", kernel.name);
        }
    }
}

#[test]
fn what_is_put_back_keeps_what_it_had() {
    let (mut s, se, _) = protection(V7_2, true, 700, 700);
    let cfs = s.rq[CPU0].cfs;
    s.se[se].vprot = 17;
    s.cfs_rq[cfs].curr = None;
    s.__enqueue_entity(cfs, se);
    s.set_next_entity(cfs, se, false);
    assert_eq!(s.se[se].vprot, 17);
}

/// As a running task is taken off its queue for another nice level and put back, or a running group gets another weight.
#[test]
fn protection_is_lost_where_lag_is_reckoned_in_v6_18() {
    for (kernel, keeps) in [(V6_18, false), (V7_2, true)] {
        let (mut s, se, _) = protection(kernel, true, 700, 700);
        s.se[se].vruntime = s.se[se].vruntime.wrapping_add(10_000 * US);
        s.set_vprot(se, s.se[se].vruntime.wrapping_add(300 * US));
        assert!(s.protect_slice(se), "{}", kernel.name);
        s.update_entity_lag(s.rq[CPU0].cfs, se);
        assert_eq!(s.protect_slice(se), keeps, "{}", kernel.name);
    }
}

#[test]
fn until_v6_16_a_slice_is_protected_as_a_whole() {
    let (mut s, se, _) = protection(V6_12, true, 700, 200);
    assert!(s.runs_protected(se));
    s.se[se].vruntime = s.se[se].vruntime.wrapping_add(699 * US);
    assert!(s.runs_protected(se));
    s.features.set(Feature::RUN_TO_PARITY, false);
    assert!(!s.runs_protected(se));
}

/// A task runs beside one that asks for 0.2 ms: whether it is rescheduled after `ran` us.
fn reschedules_after(kernel: Kernel, ran: u64) -> bool {
    let mut s = machine(kernel, 1);
    let runs = s.task(CPU0, 0);
    assert_eq!(s.reschedule(CPU0), Some(runs));
    let waits = s.task(CPU0, 0);
    let cfs = s.rq[CPU0].cfs;
    let (se, pse) = (s.task[runs].se, s.task[waits].se);
    s.__dequeue_entity(cfs, pse);
    let entity = &mut s.se[pse];
    (entity.slice, entity.custom_slice) = (200_000, true);
    s.__enqueue_entity(cfs, pse);
    // It is picked once more, now that the other one is queued.
    s.put_prev_entity(cfs, se);
    s.set_next_entity(cfs, se, true);
    s.rq[CPU0].need_resched = false;
    s.pass(ran * US);
    s.update_rq_clock(CPU0);
    s.update_curr(cfs);
    s.is_to_reschedule(CPU0)
}

#[test]
fn the_end_of_protection_reschedules() {
    assert!(!reschedules_after(V7_2, 199));
    assert!(reschedules_after(V7_2, 200));
    // The slice itself is longer, and a new task's first one is halved: 0.35 ms.
    assert!(!reschedules_after(V6_12, 200));
    assert!(!reschedules_after(V6_12, 349));
    assert!(reschedules_after(V6_12, 350));
}

#[test]
fn somebody_with_a_shorter_slice_shortens_it() {
    let (mut s, se, _) = protection(V7_2, true, 700, 200);
    let cfs = s.rq[CPU0].cfs;
    let start = s.se[se].vruntime;
    s.se[se].vprot = start.wrapping_add(600 * US);
    s.update_protect_slice(cfs, se);
    assert_eq!(s.se[se].vprot.wrapping_sub(start), 200 * US);
    s.se[se].vprot = start.wrapping_add(100 * US);
    s.update_protect_slice(cfs, se);
    assert_eq!(s.se[se].vprot.wrapping_sub(start), 100 * US, "and never makes it longer");
    s.cancel_protect_slice(se);
    assert!(!s.protect_slice(se));
    assert_eq!(s.se[se].vprot, start);
}
