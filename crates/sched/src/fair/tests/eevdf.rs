//! EEVDF: which entity is picked, compared with a reference that has no tree, no sums and no fixed point; lag; slices.

use super::*;
use crate::fair::rules::EqualDeadlines;
use crate::features::Feature;
use units::Prng;

const EEVDF: [Kernel; 5] = [V6_6, V6_12, V6_18, V7_2, V7_3];

/// An entity as the reference sees it: numbers of any size, relative to some vruntime.
#[derive(Clone, Copy, Debug)]
struct Seen {
    se: SeId,
    weight: i128,
    vruntime: i128,
    deadline: i128,
}

fn seen(s: &Sched<Hand>, se: SeId) -> Seen {
    let entity = &s.se[se];
    let on = s.competes_on(se);
    let base = s.cfs_rq[on].zero_vruntime;
    let relative = |time: u64| i128::from(time.wrapping_sub(base) as i64);
    Seen {
        se,
        weight: i128::from(s.avg_vruntime_weight(on, s.competing_weight(se))),
        vruntime: relative(entity.vruntime),
        deadline: relative(entity.deadline),
    }
}

/// The waiting entities of a queue, in the order of arrival if deadlines are equal; and the running one, if it is
/// queued.
fn competitors(s: &Sched<Hand>, cfs: CfsRqId) -> (Vec<Seen>, Option<Seen>) {
    let waiting = s.cfs_rq[cfs].tasks_timeline.iter().map(|se| seen(s, se)).collect();
    let curr = s.queued_curr(cfs).map(|curr| seen(s, curr));
    (waiting, curr)
}

/// Sum of `weight * (vruntime - v)` over all: zero at the average, positive below it.
fn owed(all: &[Seen], v: i128) -> i128 {
    all.iter().map(|e| e.weight * (e.vruntime - v)).sum()
}

/// By definition: of all that are owed something, the one with the earliest deadline; the running one only if it comes
/// before the others, or is protected. In v6.6 equal deadlines go by vruntime, and what runs goes on.
fn reference_pick(s: &Sched<Hand>, cfs: CfsRqId, protect: bool) -> Option<SeId> {
    let (waiting, curr) = competitors(s, cfs);
    let all: Vec<Seen> = waiting.iter().copied().chain(curr).collect();
    if let [alone] = all[..] {
        return Some(alone.se);
    }
    let eligible = |e: &Seen| owed(&all, e.vruntime) >= 0;
    let curr = curr.filter(eligible);
    if let Some(curr) = curr
        && protect
        && s.runs_protected(curr.se)
    {
        return Some(curr.se);
    }
    let by_service = s.kernel.entity.equal_deadlines == EqualDeadlines::LeastService;
    let mut best: Option<Seen> = None;
    for e in waiting.iter().copied().filter(eligible) {
        let less = |best: Seen| by_service && e.deadline == best.deadline && e.vruntime < best.vruntime;
        if best.is_none_or(|best| e.deadline < best.deadline || less(best)) {
            best = Some(e);
        }
    }
    match (best, curr) {
        (Some(best), Some(curr)) if curr.deadline < best.deadline + i128::from(by_service) => Some(curr.se),
        (best, curr) => best.or(curr).map(|e| e.se),
    }
}

/// The invariants of a queue.
pub(super) fn check_queue(s: &Sched<Hand>, cfs: CfsRqId) {
    let (waiting, curr) = competitors(s, cfs);
    let cfs_rq = &s.cfs_rq[cfs];
    assert_eq!(i128::from(cfs_rq.sum_w_vruntime), owed(&waiting, 0), "{cfs:?}.sum_w_vruntime");
    assert_eq!(i128::from(cfs_rq.sum_weight), waiting.iter().map(|e| e.weight).sum(), "{cfs:?}.sum_weight");
    let deadlines: Vec<i128> = waiting.iter().map(|e| e.deadline).collect();
    assert!(deadlines.is_sorted(), "{cfs:?} is in order of deadlines");
    let slices = waiting.iter().chain(&curr).map(|e| s.se[e.se].slice);
    assert_eq!(s.cfs_rq_min_slice(cfs), slices.clone().min().unwrap_or(u32::MAX), "{cfs:?}: the shortest slice");
    assert_eq!(s.cfs_rq_max_slice(cfs), slices.max().unwrap_or(0), "{cfs:?}: the longest slice");
    for protect in [true, false] {
        if !waiting.is_empty() || curr.is_some() {
            assert_eq!(s.pick_eevdf(cfs, protect), reference_pick(s, cfs, protect), "{cfs:?} {protect}");
        }
    }
}

/// `count` entities on one queue, the first of them running. `place` gives each one's nice level, and its vruntime and
/// deadline in ns after an arbitrary point.
pub(super) fn queue_of(
    kernel: Kernel,
    count: usize,
    mut place: impl FnMut(usize) -> (i32, i64, i64),
) -> (Sched<Hand>, CfsRqId, Vec<SeId>) {
    let mut s = machine(kernel, 1);
    let cfs = s.rq[CPU0].cfs;
    let mut ses = Vec::new();
    for number in 0..count {
        let (nice, vruntime, deadline) = place(number);
        let p = s.task(CPU0, nice);
        let se = s.task[p].se;
        s.__dequeue_entity(cfs, se);
        s.se[se].vruntime = s.cfs_rq[cfs].zero_vruntime.wrapping_add_signed(vruntime);
        s.se[se].deadline = s.cfs_rq[cfs].zero_vruntime.wrapping_add_signed(deadline);
        ses.push(se);
    }
    for &se in &ses {
        s.__enqueue_entity(cfs, se);
    }
    (s, cfs, ses)
}

#[test]
fn the_earliest_deadline_of_those_who_are_owed_runs_next() {
    // (vruntime, deadline) of nice 0 tasks, and which one is picked.
    for (entities, picked) in [
        (&[(0, 30), (10, 20), (20, 10)][..], 1),
        (&[(0, 10), (10, 20), (20, 30)], 0),
        (&[(10, 30), (10, 20), (10, 10)], 2),
        // Two with the same vruntime and deadline: the one that came first.
        (&[(0, 10), (0, 10), (30, 5)], 0),
        // One far behind leaves only itself eligible.
        (&[(-1_000_000, 9_000_000), (0, 1), (1, 2), (2, 3)], 0),
        // The average itself is eligible.
        (&[(-5, 9), (0, 1), (5, 0)], 1),
    ] {
        for kernel in EEVDF {
            let (s, cfs, ses) = queue_of(kernel, entities.len(), |i| (0, entities[i].0, entities[i].1));
            assert_eq!(s.pick_eevdf(cfs, true), Some(ses[picked]), "{entities:?}");
            check_queue(&s, cfs);
        }
    }
}

#[test]
fn weights_move_the_average() {
    // V of nice 0 at 0 and nice 5 at 100: 100 * 335 / 1359 = 24.65; so 24 is eligible, 25 is not. A third task of weight 15 (nice
    // 19) at 24 or 25 moves it little.
    for (at, picked) in [(24, 2), (25, 0)] {
        let entities = [(0, 0, 50), (5, 100, 40), (19, at, 30)];
        let (s, cfs, ses) = queue_of(V6_12, 3, |i| entities[i]);
        assert_eq!(s.pick_eevdf(cfs, true), Some(ses[picked]), "{at}");
    }
}

#[test]
fn picks_agree_with_the_definition_on_random_queues() {
    for (seed, kernel) in (0..300).zip(EEVDF.into_iter().cycle()) {
        let mut random = Prng::stream(seed, "eevdf", 0);
        let width = [3, 1_000, 50_000_000][random.below(3) as usize];
        let count = 1 + random.below(12) as usize;
        let (mut s, cfs, ses) = queue_of(kernel, count, |_| {
            let mut time = || random.below(2 * width) as i64 - width as i64;
            let (vruntime, deadline) = (time(), time());
            (random.below(40) as i32 - 20, vruntime, deadline)
        });
        s.features.set(Feature::RUN_TO_PARITY, random.below(2) == 0);
        check_queue(&s, cfs);
        let curr = ses[random.below(count as u64) as usize];
        s.set_next_entity(cfs, curr, true);
        check_queue(&s, cfs);
        if random.below(2) == 0 {
            s.cancel_protect_slice(curr);
        }
        check_queue(&s, cfs);
        // The average becomes the origin: nothing else changes.
        let v = s.avg_vruntime(cfs);
        assert_eq!(v, s.cfs_rq[cfs].zero_vruntime);
        check_queue(&s, cfs);
        let (waiting, curr) = competitors(&s, cfs);
        let all: Vec<Seen> = waiting.into_iter().chain(curr).collect();
        let weight: i128 = all.iter().map(|e| e.weight).sum();
        let rest = owed(&all, 0);
        assert!((0..weight).contains(&rest), "V is the average, rounded down: {rest} of {weight} left");
    }
}

/// What /sys/kernel/debug/sched/debug of Debian's 6.12.95 printed about a CPU with three hogs of nice 0, 5 and -5:
/// vruntime and deadline in ns, and whether each is eligible.
#[test]
fn a_real_queues_average_and_eligibility() {
    let printed = [
        (0, 846_539_388u64, 847_937_859u64, false),
        (5, 853_453_010, 857_727_507, false),
        (-5, 844_932_464, 845_391_153, true),
    ];
    let mut s = machine(V6_12, 1);
    let cfs = s.rq[CPU0].cfs;
    let ses = printed.map(|(nice, ..)| {
        let p = s.task(CPU0, nice);
        let se = s.task[p].se;
        s.__dequeue_entity(cfs, se);
        se
    });
    s.cfs_rq[cfs].zero_vruntime = 845_936_447;
    for (&se, (_, vruntime, deadline, _)) in ses.iter().zip(printed) {
        (s.se[se].vruntime, s.se[se].deadline) = (vruntime, deadline);
        s.__enqueue_entity(cfs, se);
    }
    s.set_next_entity(cfs, ses[2], true);
    for (&se, (.., eligible)) in ses.iter().zip(printed) {
        assert_eq!(s.entity_eligible(cfs, se), eligible);
    }
    check_queue(&s, cfs);
    assert_eq!(s.avg_vruntime(cfs), 845_936_899);
    check_queue(&s, cfs);
}
