//! Lag under EEVDF: its limits, what a delayed sleeper keeps, what a new weight changes; and the weights of averages.

use super::eevdf::{check_queue, queue_of};
use super::*;
use crate::behaviour::Rules;
use crate::features::Feature;

const US: i64 = 1_000;

/// `kernel` with one behaviour switched to `value`.
fn with(mut kernel: Kernel, key: &str, value: &str) -> Kernel {
    kernel.set(key, value).expect("there is such a behaviour");
    kernel
}

/// Moves a waiting entity to another vruntime.
fn place(s: &mut Sched<Hand>, cfs: CfsRqId, se: SeId, vruntime: i64) {
    s.__dequeue_entity(cfs, se);
    s.se[se].vruntime = 0u64.wrapping_sub(1 << 20).wrapping_add_signed(vruntime);
    s.__enqueue_entity(cfs, se);
}

#[test]
fn lag_is_bounded_by_ones_own_slices_or_by_the_longest_of_all() {
    // Ticks of 1 ms, slices of 0.7 ms; V is 10 ms, so that each entity is 10 ms from it. Nice 5 counts 1024 / 335 times
    // as much (3.0567).
    for (value, others, nice, limit) in [
        ("own-slice", 700 * US, 0, 1_400_000),
        ("own-slice", 5_000 * US, 0, 1_400_000),
        ("own-slice", 700 * US, 5, 4_279_402),
        ("longest-slice", 700 * US, 0, 1_700_000),
        ("longest-slice", 5_000 * US, 0, 6_000_000),
        // Its own slice may be the longest.
        ("longest-slice", 200 * US, 0, 1_700_000),
    ] {
        let kernel = with(V7_2, "entity.lag_limit", value);
        let (mut s, cfs, ses) = queue_of(kernel, 3, |i| (if i == 1 { nice } else { 0 }, [0, 20_000, 0][i] * US, 1));
        // The third takes the first one's place, and asks for another slice.
        s.__dequeue_entity(cfs, ses[2]);
        s.se[ses[2]].slice = others as u32;
        s.__enqueue_entity(cfs, ses[2]);
        assert!(s.update_entity_lag(cfs, ses[1]), "it owes more than that");
        assert_eq!(s.se[ses[1]].vlag, -limit, "{value} beside {others}, nice {nice}");
    }
}

/// A sleeper that is 2 ms behind the start and owed 1 ms when it fell asleep, beside an entity whose place puts V
/// `average` ns behind the start.
fn delayed(value: &str, average: i64) -> (Sched<Hand>, CfsRqId, SeId) {
    let kernel = with(V7_2, "entity.delayed_lag", value);
    let (mut s, cfs, ses) = queue_of(kernel, 2, |i| (0, [0, 2_000][i] * US, 10_000 * US));
    s.update_entity_lag(cfs, ses[1]);
    assert_eq!(s.se[ses[1]].vlag, -1_000 * US);
    s.set_delayed(ses[1]);
    place(&mut s, cfs, ses[0], 2 * average - 2_000 * US);
    (s, cfs, ses[1])
}

#[test]
fn a_sleeper_owes_no_more_than_when_it_fell_asleep() {
    // V, and the lag at the end: as it is at that moment; and with the previous lag kept.
    for (average, at_end, kept, kept_unzeroed) in [
        (500 * US, -1_500 * US, -1_000 * US, -1_000 * US),
        (1_000 * US, -1_000 * US, -1_000 * US, -1_000 * US),
        (1_900 * US, -100 * US, -100 * US, -100 * US),
        (2_600 * US, 600 * US, 0, 600 * US),
    ] {
        for (value, zero, lag) in [("at-end", true, at_end), ("kept", true, kept), ("kept", false, kept_unzeroed)] {
            let (mut s, cfs, se) = delayed(value, average);
            s.features.set(Feature::DELAY_ZERO, zero);
            let modified = s.update_entity_lag(cfs, se);
            assert_eq!(s.se[se].vlag, lag, "{value}, V at {average} ns, {zero}");
            assert_eq!(modified, lag != at_end, "{value}, V at {average} ns, {zero}");
        }
    }
}

#[test]
fn a_sleeper_that_is_woken_is_placed_with_what_it_may_owe() {
    // Where it then is, relative to V: with 6.12's rule only an entity that is owed something moves.
    for (value, average, lag) in [
        ("at-end", 500 * US, -1_500 * US),
        ("kept", 500 * US, -1_000 * US),
        ("at-end", 2_600 * US, 0),
        ("kept", 2_600 * US, 0),
        ("kept", 1_900 * US, -100 * US),
    ] {
        let (mut s, cfs, se) = delayed(value, average);
        s.requeue_delayed_entity(se);
        check_queue(&s, cfs);
        assert!(!s.se[se].sched_delayed);
        let stands = s.avg_vruntime(cfs).wrapping_sub(s.se[se].vruntime) as i64;
        assert!((lag - 1..=lag).contains(&stands), "{value}, V at {average} ns: {stands}");
    }
}

#[test]
fn a_light_entity_counts_as_what_it_weighs_only_in_whole_weights() {
    // 600 is shown as 0.6, which counts as 2: 2 * 1000000 / 1026 = 1949.3; 600 * 1000000 / (2^20 + 600) = 571.9.
    for (value, average) in [("shown", 1949), ("kept", 571)] {
        let kernel = with(V7_2, "entity.average_weights", value);
        let (mut s, cfs, ses) = queue_of(kernel, 2, |i| (0, [0, 1_000_000][i], 10_000_000));
        s.__dequeue_entity(cfs, ses[1]);
        s.se[ses[1]].load = LoadWeight { weight: 600, inv_weight: 0 };
        s.__enqueue_entity(cfs, ses[1]);
        check_queue(&s, cfs);
        assert_eq!(s.avg_vruntime(cfs).wrapping_sub(s.se[ses[0]].vruntime), average, "{value}");
    }
}

#[test]
fn eligibility_is_decided_in_128_bits() {
    // So far ahead of V that the product with the load is 2^64, which is 0 in 64 bits: as much as the sum.
    for (value, ahead, eligible) in
        [("shown", 1 << 53, true), ("kept", 1 << 43, false), ("kept", 0, true), ("kept", 1, false)]
    {
        let (s, cfs, ses) = queue_of(with(V7_2, "entity.average_weights", value), 2, |_| (0, 0, 1_000));
        let vruntime = s.se[ses[0]].vruntime.wrapping_add(ahead);
        assert_eq!(s.zero_lag(cfs).vruntime_eligible(vruntime), eligible, "{value} {ahead}");
    }
}

#[test]
fn weights_are_halved_before_a_sum_overflows() {
    // Nice -20 weighs 88761 * 2^10, which times 2^40 is 1.08 * 2^66: below 2^63 after four halvings, and not after three.
    for (paranoid, shift) in [(false, 0), (true, 4)] {
        let (mut s, cfs, ses) = queue_of(V7_2, 2, |i| ([0, -20][i], 0, 10_000));
        s.features.set(Feature::PARANOID_AVG, paranoid);
        place(&mut s, cfs, ses[1], 1 << 40);
        assert_eq!(s.cfs_rq[cfs].sum_shift, shift);
        if paranoid {
            check_queue(&s, cfs);
            assert_eq!(s.cfs_rq[cfs].sum_weight, (1024 << 6) + (88_761 << 6));
        }
        for se in ses {
            s.__dequeue_entity(cfs, se);
        }
        assert_eq!((s.cfs_rq[cfs].sum_w_vruntime, s.cfs_rq[cfs].sum_weight), (0, 0));
    }
}

#[test]
fn a_heavy_entity_takes_the_origin_of_the_sums_along() {
    for (nice, follows) in [(-5, true), (5, false)] {
        let (mut s, cfs, ses) = queue_of(V7_2, 2, |_| (0, 0, 1_000_000));
        let p = s.task(CPU0, nice);
        let se = s.task[p].se;
        s.__dequeue_entity(cfs, se);
        s.cfs_rq[cfs].nr_running -= 1;
        s.__dequeue_entity(cfs, ses[1]);
        s.se[se].vlag = -300 * US;
        let others = s.cfs_rq[cfs].nr_running;
        s.place_entity_eevdf(cfs, se, QueueFlags::default(), others);
        let at_origin = s.se[se].vruntime == s.cfs_rq[cfs].zero_vruntime;
        assert_eq!(at_origin, follows, "nice {nice} joins one of nice 0");
        check_sums(&s, cfs);
    }
}

/// Checks that the sums are those of the waiting entities, wherever they count from.
fn check_sums(s: &Sched<Hand>, cfs: CfsRqId) {
    let cfs_rq = &s.cfs_rq[cfs];
    let keys = cfs_rq.tasks_timeline.iter().map(|se| {
        let entity = &s.se[se];
        entity.vruntime.wrapping_sub(cfs_rq.zero_vruntime) as i64 * entity.load.weight as i64
    });
    assert_eq!(cfs_rq.sum_w_vruntime, keys.sum::<i64>());
}

#[test]
fn a_new_weight_takes_the_rest_of_the_slice_along() {
    // A task is reweighted while it is dequeued, with 300 us left of its slice: half as much at twice the weight.
    for (value, left) in [("lag", 300 * US), ("placed-anew", 150 * US), ("lag-and-deadline", 150 * US)] {
        let (mut s, cfs, ses) = queue_of(with(V7_2, "entity.reweight", value), 2, |_| (0, 0, 300 * US));
        let flags = QueueFlags { save_restore: true, ..QueueFlags::default() };
        s.dequeue_group_entity(cfs, ses[1], flags);
        assert_eq!((s.se[ses[1]].rel_deadline, s.se[ses[1]].deadline as i64), (true, 300 * US));
        s.se[ses[1]].vlag = 100 * US;
        s.rescale_entity(ses[1], s.se[ses[1]].load.weight * 2, None);
        assert_eq!((s.se[ses[1]].vlag, s.se[ses[1]].deadline as i64), (50 * US, left), "{value}");
    }
}

#[test]
fn what_runs_keeps_its_lag_its_slice_and_its_protection_with_a_new_weight() {
    for (kernel, protected) in [(V6_12, false), (V7_2, true)] {
        let (mut s, cfs, ses) = queue_of(kernel, 2, |i| (0, [200, 0][i] * US, [900, 800][i] * US));
        s.set_next_entity(cfs, ses[0], true);
        assert!(s.protect_slice(ses[0]));
        s.se[ses[0]].vprot = s.se[ses[1]].vruntime.wrapping_add_signed(500 * US);
        // V is 100 us: the entity owes 100, has 800 left of its slice, and 400 of its protection; all half as much at
        // twice the weight.
        let v = s.avg_vruntime(cfs);
        let weight = s.se[ses[0]].load.weight * 2;
        let mut relative = s.begin_reweight(cfs, ses[0]);
        s.rescale_entity(ses[0], weight, Some(&mut relative));
        s.end_reweight(cfs, ses[0], relative);
        let entity = &s.se[ses[0]];
        let from_v = |vruntime: u64| vruntime.wrapping_sub(v) as i64;
        assert_eq!((from_v(entity.vruntime), from_v(entity.deadline)), (50 * US, 400 * US), "{}", kernel.name);
        assert_eq!(s.protect_slice(ses[0]), protected, "6.12 takes a moved deadline for a lost protection");
        if protected {
            assert_eq!(from_v(s.se[ses[0]].vprot), 200 * US);
        }
    }
}

#[test]
fn what_gets_another_weight_is_placed_anew_in_v6_18() {
    // Two of nice 0, of which one runs, 200 us ahead of the other: it owes 100 us, and 50 at twice the weight. It joins itself, as it were:
    // 3 shares, and 2 more, make 83.3 of these 50; and V is where it would be with the new weight at its old place, at 133.3.
    let own = with(V6_18, "entity.slice_protection", "shortest-slice");
    for (kernel, vruntime) in [(V6_18, 216_666), (own, 216_666), (V7_2, 150_000)] {
        let (mut s, cfs, ses) = queue_of(kernel, 2, |i| (0, [200, 0][i] * US, [900, 800][i] * US));
        s.set_next_entity(cfs, ses[0], true);
        let start = s.se[ses[1]].vruntime;
        s.set_vprot(ses[0], start.wrapping_add_signed(600 * US));
        s.features.set(Feature::PLACE_REL_DEADLINE, false);
        let weight = s.se[ses[0]].load.weight * 2;
        let mut relative = s.begin_reweight(cfs, ses[0]);
        s.rescale_entity(ses[0], weight, Some(&mut relative));
        s.se[ses[0]].load = LoadWeight { weight, inv_weight: 0 };
        s.end_reweight(cfs, ses[0], relative);
        let entity = &s.se[ses[0]];
        let from = |vruntime: u64, other: u64| vruntime.wrapping_sub(other) as i64;
        assert_eq!(from(entity.vruntime, start), vruntime, "{}", kernel.name);
        assert_eq!(from(entity.deadline, entity.vruntime), 350_000, "{}", kernel.name);
        assert!(!entity.rel_deadline);
        // In v6.18 its lag is there (`protection_is_lost_where_lag_is_reckoned_in_v6_18`).
        if kernel != V6_18 {
            assert_eq!(from(s.vprot(ses[0]), entity.vruntime), 200_000, "{}", kernel.name);
        }
    }
}

#[test]
fn a_light_entity_keeps_its_debt_among_heavy_ones_where_lag_is_reckoned_as_a_sum() {
    // Two of nice -20, of 88761 * 2^10 each; one of weight 44 that owes 95 s of virtual time. The product with the weight of all is
    // 1.9 * 2^63; by parts it is 95 s and 44 parts of 181782528 of them, 23.1 us.
    let debt: i64 = -95_300_000_000;
    for (kernel, owes) in [(V7_2, false), (V7_3, true)] {
        let mut s = machine(kernel, 1);
        s.task(CPU0, -20);
        s.task(CPU0, -20);
        let light = s.task(CPU0, 0);
        let (cfs, se) = (s.rq[CPU0].cfs, s.task[light].se);
        s.__dequeue_entity(cfs, se);
        s.se[se].load.update_load_set(44);
        s.se[se].h_load.update_load_set(44);
        s.se[se].vlag = debt;
        s.place_entity_eevdf(cfs, se, QueueFlags::default(), 2);
        let ahead = s.se[se].vruntime.wrapping_sub(s.cfs_rq[cfs].zero_vruntime) as i64;
        assert_eq!(ahead == -debt + 23_067, owes, "{}: {ahead}", kernel.name);
    }
}
