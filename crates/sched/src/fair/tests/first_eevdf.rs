//! What v6.6, the first EEVDF, does otherwise than its successors.

use super::eevdf::{check_queue, queue_of};
use super::*;
use crate::features::Feature;

const US: u64 = 1_000;
const BOTH: [Kernel; 2] = [V6_6, V6_12];
const IDLE: SchedAttr = SchedAttr { sched_policy: Policy::Idle, ..SchedAttr::NORMAL };

/// How far an entity's deadline is from its vruntime, in us.
fn reach(se: &SchedEntity) -> u64 {
    se.deadline.wrapping_sub(se.vruntime) / US
}

#[test]
fn the_base_slice_is_three_quarters_of_a_millisecond() {
    let slices = BOTH.map(|kernel| [1, 2, 4, 8].map(|cpus| kernel.sysctl(cpus).sched_base_slice / US));
    assert_eq!(slices, [[750, 1_500, 2_250, 3_000], [700, 1_400, 2_100, 2_800]]);
    let tunable = |name| BOTH.map(|kernel| kernel.tunable(name).is_some());
    assert_eq!((tunable("base_slice_ns"), tunable("sched_child_runs_first")), ([true, true], [true, false]));
}

#[test]
fn a_new_task_gets_half_a_slice_only_since_v6_12() {
    for (kernel, us) in BOTH.into_iter().zip([700, 350]) {
        let mut s = machine(kernel, 1);
        s.runner(CPU0);
        let p = s.task(CPU0, 0);
        assert_eq!(reach(s.se_of(p)), us, "{}", kernel.name);
        s.features.set(Feature::PLACE_DEADLINE_INITIAL, false);
        let p = s.task(CPU0, 0);
        assert_eq!(reach(s.se_of(p)), 700, "{}", kernel.name);
    }
}

#[test]
fn a_fork_charges_the_parent_first() {
    // v6.12 has nothing to do at fork.
    for (kernel, charged) in BOTH.into_iter().zip([true, false]) {
        let mut s = machine(kernel, 1);
        let parent = s.runner(CPU0);
        s.pass(100 * US);
        let before = s.se_of(parent).sum_exec_runtime;
        s.on_cpu(CPU0);
        s.task_fork_fair(parent);
        assert_eq!(s.se_of(parent).sum_exec_runtime - before, 100 * US * u64::from(charged), "{}", kernel.name);
    }
}

#[test]
fn slices_are_nobodys_own() {
    for (kernel, us, of_group) in [(V6_6, 700, 700), (V6_12, 200, 200)] {
        let mut s = machine(kernel, 1);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "group", 1024);
        s.runner(CPU0);
        let p = s.task_in(group, CPU0, 0);
        let attr = SchedAttr { sched_runtime: 200 * US, ..SchedAttr::NORMAL };
        s.sched_setattr(p, &attr).expect("v6.6 does not look at it");
        let group = s.tg[group].se[0];
        assert_eq!((u64::from(s.se_of(p).slice) / US, u64::from(s.se[group].slice) / US), (us, of_group));
    }
}

#[test]
fn of_equal_deadlines_what_runs_goes_on_else_who_had_less() {
    // The second waits longer, the third had less.
    let places = [(0, 4_000, 9_000), (0, 5_000, 9_000), (0, 3_000, 9_000)];
    for (kernel, running, alone) in [(V6_6, 0, 2), (V6_12, 2, 1)] {
        let (mut s, cfs, ses) = queue_of(kernel, 3, |i| places[i]);
        s.set_next_entity(cfs, ses[0], true);
        s.cancel_protect_slice(ses[0]);
        check_queue(&s, cfs);
        // V is 4: of those who wait only the third is owed something.
        assert_eq!(s.pick_eevdf(cfs, true), Some(ses[running]), "{}", kernel.name);
        let (s, cfs, ses) = queue_of(kernel, 3, |i| [(0, 9_000, 9_000), places[1], places[2]][i]);
        check_queue(&s, cfs);
        // V is 5.667.
        assert_eq!(s.pick_eevdf(cfs, true), Some(ses[alone]), "{}", kernel.name);
    }
}

#[test]
fn the_next_buddy_needs_next_buddy() {
    for (kernel, picked) in [(V6_6, [0, 1]), (V6_12, [1, 1])] {
        let (mut s, cfs, ses) = queue_of(kernel, 2, |i| (0, 0, [1_000, 2_000][i]));
        s.set_next_buddy(ses[1]);
        let of = |s: &mut Sched<Hand>| s.pick_next_entity_eevdf(cfs, true);
        assert_eq!(of(&mut s), Some(ses[picked[0]]), "{}", kernel.name);
        s.features.set(Feature::NEXT_BUDDY, true);
        assert_eq!(of(&mut s), Some(ses[picked[1]]), "{}", kernel.name);
    }
}

#[test]
fn a_yield_postpones_the_deadline_and_costs_no_time() {
    for (kernel, forfeits) in BOTH.into_iter().zip([false, true]) {
        let mut s = machine(kernel, 1);
        let p = s.runner(CPU0);
        s.task(CPU0, 0);
        s.pass(100 * US);
        s.on_cpu(CPU0);
        s.update_rq_clock(CPU0);
        s.update_curr(s.rq[CPU0].cfs);
        // It is owed something: else v6.12 does nothing.
        let se = s.task[p].se;
        s.se[se].vruntime = s.se[se].vruntime.wrapping_sub(2 * MS);
        let (vruntime, deadline) = (s.se_of(p).vruntime, s.se_of(p).deadline);
        for count in 1..=2u64 {
            s.yield_task_fair(CPU0);
            let se = s.se_of(p);
            if !forfeits {
                assert_eq!((se.vruntime, se.deadline), (vruntime, deadline.wrapping_add(count * 700 * US)));
                assert!(!s.protect_slice(s.task[p].se));
            } else if count == 1 {
                assert_eq!((se.vruntime, se.deadline), (deadline, deadline.wrapping_add(700 * US)));
            }
        }
    }
}

/// An idle task that was picked just now, and a normal one that was woken beside it: whether the CPU is told to
/// reschedule, and whether the normal one is picked then.
fn wakes_beside_idle(kernel: Kernel, prepare: impl Fn(&mut Sched<Hand>)) -> (bool, bool) {
    let mut s = machine(kernel, 1);
    let sleeper = s.runner(CPU0);
    let idle = s.forked(ROOT_TASK_GROUP, CPU0, IDLE);
    assert_eq!(s.sleep(CPU0), Some(idle));
    prepare(&mut s);
    s.pass(10 * US);
    s.wake_from(CPU0, sleeper);
    // Both stand at the same place: what runs is owed something, and its deadline is far away.
    (s.is_to_reschedule(CPU0), s.reschedule(CPU0) == Some(sleeper))
}

#[test]
fn an_idle_task_gives_way_and_may_be_picked_again() {
    let place = |s: &mut Sched<Hand>| {
        let (curr, cfs) = (s.rq[CPU0].curr.expect("the idle task runs"), s.rq[CPU0].cfs);
        let se = s.task[curr].se;
        s.set_protect_slice(cfs, se, true);
    };
    let (told, picked) = wakes_beside_idle(V6_6, place);
    assert!(told, "it is told to reschedule");
    assert_eq!((picked, wakes_beside_idle(V6_12, place)), (false, (true, true)));
}

#[test]
fn an_idle_task_gives_way_without_wakeup_preemption() {
    let off = |s: &mut Sched<Hand>| {
        s.features.set(Feature::WAKEUP_PREEMPTION, false);
    };
    assert_eq!(BOTH.map(|kernel| wakes_beside_idle(kernel, off).0), [true, false]);
}

/// The second of three entities at 0, 300 and 900 us of virtual time, of which the first runs, gets twice its weight. Where it then
/// is, and its deadline, in us after the start.
fn reweighted(kernel: Kernel) -> (i64, i64) {
    let (mut s, cfs, ses) = queue_of(kernel, 3, |i| (0, [0, 300, 900][i] * 1_000, 1_000_000));
    let base = s.cfs_rq[cfs].zero_vruntime;
    s.set_next_entity(cfs, ses[0], true);
    let weight = 2 * s.se[ses[1]].load.weight;
    let mut relative = s.begin_reweight(cfs, ses[1]);
    s.rescale_entity(ses[1], weight, Some(&mut relative));
    s.se[ses[1]].load = LoadWeight { weight, inv_weight: 0 };
    s.end_reweight(cfs, ses[1], relative);
    check_queue(&s, cfs);
    let from = |at: u64| at.wrapping_sub(base) as i64 / 1_000;
    (from(s.se[ses[1]].vruntime), from(s.se[ses[1]].deadline))
}

#[test]
fn a_new_weight_reckons_lag_from_the_others() {
    // V of all is 400: 100 are owed, 50 of the new weight; the deadline's distance of 600 becomes 300.
    assert_eq!(reweighted(V6_12), (350, 700));
    // V of the others is 450: 150 are owed, 75 of the new weight; 550 become 275.
    assert_eq!(reweighted(V6_6), (375, 725));
}

#[test]
fn lag_has_no_limit_while_the_weight_changes() {
    for (kernel, kept) in [(V6_6, 5_000), (V6_12, 700)] {
        // V is 10 ms; slices of 0.7 ms and ticks of 1 ms allow 1.4 ms.
        let (mut s, cfs, ses) = queue_of(kernel, 2, |i| (0, [0, 20_000][i] * 1_000, 30_000_000));
        s.set_next_entity(cfs, ses[0], true);
        let weight = 2 * s.se[ses[0]].load.weight;
        let v = s.avg_vruntime(cfs);
        let mut relative = s.begin_reweight(cfs, ses[0]);
        s.rescale_entity(ses[0], weight, Some(&mut relative));
        s.se[ses[0]].load = LoadWeight { weight, inv_weight: 0 };
        s.end_reweight(cfs, ses[0], relative);
        assert_eq!(v.wrapping_sub(s.se[ses[0]].vruntime) / US, kept, "{}", kernel.name);
    }
}

#[test]
fn a_running_group_loses_its_protection_with_its_weight() {
    for kernel in BOTH {
        let (mut s, cfs, ses) = queue_of(kernel, 2, |i| (0, [0, 100][i] * 1_000, 1_000_000));
        s.set_next_entity(cfs, ses[0], true);
        assert!(s.protect_slice(ses[0]));
        let weight = 2 * s.se[ses[0]].load.weight;
        let mut relative = s.begin_reweight(cfs, ses[0]);
        s.rescale_entity(ses[0], weight, Some(&mut relative));
        s.se[ses[0]].load = LoadWeight { weight, inv_weight: 0 };
        s.end_reweight(cfs, ses[0], relative);
        assert!(!s.protect_slice(ses[0]), "{}", kernel.name);
    }
}
