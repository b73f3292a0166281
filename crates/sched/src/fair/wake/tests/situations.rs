//! Which CPU a woken task goes to, by its waker, its previous CPU and what else runs.

use super::*;

struct Situation {
    /// The waking CPU, and whether a task wakes or (false) an interrupt on the idle CPU.
    waker: (usize, bool),
    sync: bool,
    prev: usize,
    /// Other CPUs that run one task each.
    busy: &'static [usize],
    /// Empty: all.
    allowed: &'static [usize],
    expect: usize,
}

const TASK: bool = true;
const INTERRUPT: bool = false;
const SYNC: bool = true;
const ALL: &[usize] = &[];

fn case(
    waker: (usize, bool),
    sync: bool,
    prev: usize,
    busy: &'static [usize],
    allowed: &'static [usize],
    expect: usize,
) -> Situation {
    Situation { waker, sync, prev, busy, allowed, expect }
}

fn check(new: impl Fn() -> Machine, table: &[Situation]) {
    for (row, s) in table.iter().enumerate() {
        let mut m = new();
        m.busy(s.busy);
        if s.waker.1 {
            m.run(s.waker.0);
        }
        let p = m.sleeper(s.prev);
        if !s.allowed.is_empty() {
            m.allow(p, s.allowed);
        }
        assert_eq!(m.select(s.waker.0, p, s.sync), s.expect, "{} row {row}", m.kernel.name);
    }
}

#[test]
fn v4_5_on_two_sockets() {
    let table = [
        // 0: MC contains both. Here 1024 runs and 1024 comes, there is nothing there: 100 * 2048 > 108 * 0, so the task
        // stays.
        case((0, TASK), false, 1, &[], ALL, 1),
        // 1: without the waker's load this CPU is empty, so the task comes; but CPU 0 is not idle, and CPU 1 is.
        case((0, TASK), SYNC, 1, &[], ALL, 1),
        // 2: as before, but CPU 1 is busy. MC's groups from CPU 0's core on: 0 and 1 are not idle, core 2 is.
        case((0, TASK), SYNC, 1, &[1], ALL, 2),
        // 3: a thread of each core is busy: only one level down is the group of CPU 8 entirely idle.
        case((0, TASK), SYNC, 1, &[1, 2, 3], ALL, 8),
        // 4: nothing is idle: the target itself.
        case((0, TASK), SYNC, 1, &[1, 2, 3, 8, 9, 10, 11], ALL, 0),
        // 5: of the idle core 2 the task may use only the second thread.
        case((0, TASK), SYNC, 1, &[1], &[0, 1, 10, 11], 10),
        // 6: core 3 may be used, but is half busy; core 2 may not. CPU 8 may not either: the target.
        case((0, TASK), SYNC, 1, &[1, 11], &[0, 1, 3], 0),
        // 7: NUMA, 100 * 2048 > 112 * 0: it stays with its idle CPU.
        case((0, TASK), false, 4, &[], ALL, 4),
        // 8: a sync wakeup pulls it over, although its CPU is idle: caches do not matter.
        case((0, TASK), SYNC, 4, &[], ALL, 1),
        // 9: two tasks there: 100 * (1024 + 1024) <= 112 * 2048.
        case((0, TASK), false, 4, &[4, 4], ALL, 1),
        // 10: one task there: 100 * 2048 > 112 * 1024. It stays, and in its LLC core 5 is entirely idle.
        case((0, TASK), false, 4, &[4], ALL, 5),
        // 11: two tasks there, but another one here: 100 * 3072 > 112 * 2048.
        case((0, TASK), false, 4, &[4, 4, 0], ALL, 5),
        // 12: the waking CPU may not be used: the search begins at the previous one.
        case((0, TASK), SYNC, 4, &[4], &[4, 5, 13], 5),
        // 13: nor may the previous one any more: the result is not checked for affinity, the caller does that.
        case((0, TASK), SYNC, 4, &[], &[5, 13], 4),
        // 14: an interrupt on an idle CPU: no load here, so the task comes, and CPU 0 is idle.
        case((0, INTERRUPT), false, 1, &[], ALL, 0),
        case((0, INTERRUPT), false, 4, &[], ALL, 0),
        // 16: waker and wakee on one CPU: nothing to choose; core 0 is not entirely idle, core 1 is.
        case((0, TASK), SYNC, 0, &[], ALL, 1),
        // 17: siblings: the SMT domain decides, 100 * 2048 > 105 * 0.
        case((0, TASK), false, 8, &[], ALL, 8),
        // 18: from the second socket, the ring of groups begins at its own core: 6, then 7, then 4.
        case((6, TASK), SYNC, 7, &[7], ALL, 4),
        case((6, TASK), SYNC, 7, &[7, 4], ALL, 5),
    ];
    check(|| two_sockets(V4_5_RC1), &table);
}

#[test]
fn v4_5_on_one_cache_without_threads() {
    let table = [
        // 0: groups are single CPUs, in a ring that begins after the target.
        case((5, TASK), SYNC, 5, &[], ALL, 6),
        case((5, TASK), SYNC, 5, &[6, 7], ALL, 0),
        case((5, TASK), SYNC, 5, &[6, 7, 0, 1, 2, 3, 4], ALL, 5),
        // 3: CPU 2 is idle and was the previous one.
        case((5, TASK), SYNC, 2, &[], ALL, 2),
        case((5, TASK), false, 2, &[], ALL, 2),
        // 5: 100 * 2048 > 108 * 1024: the target is CPU 2, and CPU 3 the first idle one after it.
        case((5, TASK), false, 2, &[2], ALL, 3),
        // 6: 100 * 2048 <= 108 * 2048: the target is CPU 5.
        case((5, TASK), false, 2, &[2, 2], ALL, 6),
    ];
    check(|| uma(V4_5_RC1), &table);
}

#[test]
fn v4_15_on_two_sockets() {
    // A sleeper's load of 1024 in a queue with nothing else counts 1024 * 1024 / 1025 = 1023 (task_h_load).
    let table = [
        // 0: the waker runs on without announcing sync: by weight 100 * (1024 + 1023) > 108 * (0 - 1023). CPU 1 is
        // idle.
        case((0, TASK), false, 1, &[], ALL, 1),
        // 1: sync and alone: the target is CPU 0, but CPU 1 is idle, and in the same LLC.
        case((0, TASK), SYNC, 1, &[], ALL, 1),
        // 2: CPU 1 is busy. No idle core is known; the first idle CPU from CPU 0 on is 2.
        case((0, TASK), SYNC, 1, &[1], ALL, 2),
        // 3: the search goes by number, not by core: 3 comes before 8.
        case((0, TASK), SYNC, 1, &[1, 2], ALL, 3),
        case((0, TASK), SYNC, 1, &[1, 2, 3], ALL, 8),
        case((0, TASK), SYNC, 1, &[1, 2, 3, 8, 9, 10, 11], ALL, 0),
        // 6: core 3 need not be entirely idle.
        case((0, TASK), SYNC, 1, &[1, 11], &[0, 1, 3], 3),
        // 7: another socket: no sync, by weight 2047 * 100 > -1023 * 112. It stays.
        case((0, TASK), false, 4, &[], ALL, 4),
        // 8: sync and alone pulls.
        case((0, TASK), SYNC, 4, &[], ALL, 1),
        // 9: sync, but not alone: by weight, less the waker's 1023 (2048 * 1024 / 2049): (2048 - 1023 + 1023) * 100.
        case((0, TASK), SYNC, 4, &[0], ALL, 4),
        // 10: three tasks there, queue load 4096 with the sleeper's: (1024 + 1023) * 100 <= (3072 - 1023) * 112.
        case((0, TASK), false, 4, &[4, 4, 4], ALL, 1),
        // 11: two there: 204700 <= (2048 - 1023) * 112 = 114800 does not hold. First idle from CPU 4 on: 5.
        case((0, TASK), false, 4, &[4, 4], ALL, 5),
        // 12: an interrupt on an idle CPU pulls, from anywhere.
        case((0, INTERRUPT), false, 1, &[], ALL, 0),
        case((0, INTERRUPT), false, 4, &[], ALL, 0),
        // 14: the waking CPU may not be used.
        case((0, TASK), SYNC, 4, &[4], &[4, 7, 13], 7),
        case((0, TASK), SYNC, 0, &[], ALL, 1),
        // 16: the search wraps within the LLC: 6, 7, 12, 13, 14, 15, 4, 5.
        case((6, TASK), SYNC, 7, &[7, 12], ALL, 13),
        case((6, TASK), SYNC, 7, &[7, 12, 13, 14, 15], ALL, 4),
    ];
    check(|| two_sockets(V4_15), &table);
}

#[test]
fn v4_16_on_two_sockets() {
    let table = [
        // 0: as before if a task wakes.
        case((0, TASK), false, 1, &[], ALL, 1),
        case((0, TASK), SYNC, 1, &[1], ALL, 2),
        case((0, TASK), SYNC, 4, &[], ALL, 1),
        // 3: an interrupt on an idle CPU: the previous one is idle and near, so it is kept.
        case((0, INTERRUPT), false, 1, &[], ALL, 1),
        // 4: it is busy: the waking CPU.
        case((0, INTERRUPT), false, 1, &[1], ALL, 0),
        // 5: it is far: by weight, (0 + 1023) * 100 > (0 - 1023) * 112.
        case((0, INTERRUPT), false, 4, &[], ALL, 4),
        // 6: far and with two tasks: (0 + 1023) * 100 <= (2048 - 1023) * 112.
        case((0, INTERRUPT), false, 4, &[4, 4], ALL, 0),
    ];
    check(|| two_sockets(V4_16), &table);
}

#[test]
fn v6_1_and_v6_12_on_two_sockets() {
    let table = [
        // 0: the previous CPU is idle, so it is kept, whatever wakes.
        case((0, TASK), false, 1, &[], ALL, 1),
        case((0, TASK), false, 4, &[], ALL, 4),
        case((0, INTERRUPT), false, 1, &[], ALL, 1),
        case((0, INTERRUPT), false, 4, &[], ALL, 4),
        // 4: sync and alone takes precedence over an idle previous CPU in another LLC: the sibling of CPU 4 is of no
        // use.
        case((0, TASK), SYNC, 4, &[], ALL, 1),
        // 5: in the same LLC the idle previous CPU is found again.
        case((0, TASK), SYNC, 1, &[], ALL, 1),
        // 6: sync, but not alone.
        case((0, TASK), SYNC, 4, &[0], ALL, 4),
        // 7: a busy previous CPU in another LLC, an idle waking one: by weight. The sleeper counts 1024 * 2048 / 2049,
        // so (0 + 1023) * 100 < (2048 - 1023) * 108.
        case((0, INTERRUPT), false, 4, &[4], ALL, 0),
        // 8: the waking CPU may not be used.
        case((0, TASK), SYNC, 4, &[4], &[4, 7, 13], 7),
    ];
    check(|| two_sockets(V6_1), &table);
    check(|| two_sockets(V6_12), &table);
}

#[test]
fn an_idle_waker_and_an_idle_previous_cpu_are_switches_of_their_own() {
    let near = [
        (V4_15, 0),
        (with(V4_15, "wake.idle_previous", "kept"), 1),
        (with(V4_15, "wake.idle_waker", "shared-cache"), 0),
    ];
    for (kernel, expect) in near {
        check(|| two_sockets(kernel), &[case((0, INTERRUPT), false, 1, &[], ALL, expect)]);
    }
    let far = [
        (V4_15, 0),
        (with(V4_15, "wake.idle_previous", "kept"), 0),
        (with(V4_15, "wake.idle_waker", "shared-cache"), 4),
    ];
    for (kernel, expect) in far {
        check(|| two_sockets(kernel), &[case((0, INTERRUPT), false, 4, &[], ALL, expect)]);
    }
}

#[test]
fn the_search_can_be_changed_alone() {
    // v4.5 with the search of v4.9 but without tracking of idle cores: by number instead of by core.
    let kernel = with(V4_5_RC1, "wake.idle_sibling", "core-cpu-smt");
    check(|| two_sockets(kernel), &[case((0, TASK), SYNC, 1, &[1, 10], ALL, 2)]);
    check(|| two_sockets(V4_5_RC1), &[case((0, TASK), SYNC, 1, &[1, 10], ALL, 3)]);
    // v4.15 with the search of v4.5.
    let kernel = with(V4_15, "wake.idle_sibling", "idle-groups");
    check(|| two_sockets(kernel), &[case((0, TASK), SYNC, 1, &[1, 10], ALL, 3)]);
}

#[test]
fn a_cpu_with_queued_wakeups_is_not_idle() {
    for kernel in [V4_5_RC1, V4_15, V4_16] {
        let mut m = uma(kernel);
        m.run(5);
        let (p, other) = (m.sleeper(5), m.sleeper(6));
        m.rq[cpu(6)].wake_list.push(other);
        m.rq[cpu(7)].nr_running = 1;
        assert_eq!(m.select(5, p, true), 0, "{}", kernel.name);
    }
}
