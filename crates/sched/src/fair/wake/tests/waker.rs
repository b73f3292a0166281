//! What a waker remembers: its flips, and the CPU it last used.

use super::*;
use crate::scheduler::Scheduler;

/// The task on CPU 0 wakes `p`, as far as record_wakee() is concerned.
fn record(m: &mut Machine, p: TaskId) {
    m.0.this_cpu = cpu(0);
    m.record_wakee(p);
}

#[test]
fn a_flip_is_a_wakee_other_than_the_last() {
    let mut m = uma(V4_15);
    let waker = m.run(0);
    let [a, b] = [1, 2].map(|on| m.sleeper(on));
    for (p, flips) in [(a, 1), (a, 1), (b, 2), (b, 2), (a, 3)] {
        record(&mut m, p);
        assert_eq!(m.task[waker].wakee_flips, flips);
    }
    assert_eq!(m.task[waker].last_wakee, Link::to(a));
    assert_eq!(m.task[a].wakee_flips, 0, "it is the waker that flips");
}

#[test]
fn flips_are_halved_once_after_more_than_a_second() {
    let mut m = uma(V4_15);
    let waker = m.run(0);
    let a = m.sleeper(1);
    // There are 250 jiffies per second, and it is jiffy 250 now.
    m.task[waker].wakee_flips = 41;
    m.task[waker].last_wakee = Link::to(a);
    record(&mut m, a);
    assert_eq!((m.task[waker].wakee_flips, m.task[waker].wakee_flip_decay_ts), (41, 0), "exactly a second");
    m.arch.now += 4_000_000;
    record(&mut m, a);
    assert_eq!((m.task[waker].wakee_flips, m.task[waker].wakee_flip_decay_ts), (20, 251));
    // Many seconds later it is still halved only once.
    m.arch.now += 60_000_000_000;
    record(&mut m, a);
    assert_eq!((m.task[waker].wakee_flips, m.task[waker].wakee_flip_decay_ts), (10, 15_251));
}

#[test]
fn the_idle_task_has_flips_of_its_own() {
    let mut m = uma(V4_5_RC1);
    let [a, b] = [1, 2].map(|on| m.sleeper(on));
    record(&mut m, a);
    record(&mut m, b);
    assert_eq!((m.rq[cpu(0)].idle.wakee_flips, m.rq[cpu(0)].idle.last_wakee), (2, Link::to(b)));
    assert_eq!(m.rq[cpu(1)].idle.wakee_flips, 0);
    m.rq[cpu(0)].idle.wakee_flips = 64;
    m.task[a].wakee_flips = 8;
    assert!(m.wake_wide(a));
}

#[test]
fn wide_is_the_cache_size_and_its_square() {
    // Eight CPUs share an LLC: the smaller needs 8 flips, the larger 8 times as many as the smaller.
    let mut m = two_sockets(V4_15);
    let waker = m.run(0);
    let p = m.sleeper(1);
    m.0.this_cpu = cpu(0);
    for (waker_flips, wakee_flips, wide) in [
        (64, 8, true),
        (63, 8, false),
        (1000, 7, false),
        (8, 64, true),
        (8, 63, false),
        (80, 10, true),
        (79, 10, false),
    ] {
        m.task[waker].wakee_flips = waker_flips;
        m.task[p].wakee_flips = wakee_flips;
        assert_eq!(m.wake_wide(p), wide, "{waker_flips} and {wakee_flips}");
    }
}

#[test]
fn a_wide_wakeup_stays_with_the_previous_cpu() {
    for kernel in [V4_5_RC1, V4_15, V4_16] {
        let mut m = two_sockets(kernel);
        let waker = m.run(0);
        m.run(4);
        let p = m.sleeper(4);
        assert_eq!(m.select(0, p, true), 1, "{}: pulled", kernel.name);
        m.task[waker].wakee_flips = 64;
        m.task[p].wakee_flips = 8;
        // No domain has SD_BALANCE_WAKE, so there is no slow path: the search starts at its own CPU.
        assert_eq!(m.select(0, p, true), 5, "{}: wide", kernel.name);
        // Nor is there one if only a wider domain has the flag: the walk ends at the first domain without it.
        let mc = m.domains.sd_llc[cpu(0)].unwrap();
        m.domains[mc].flags |= WAKE;
        assert_eq!(m.select(0, p, true), 5, "{}: wide", kernel.name);
    }
}

#[test]
fn a_bound_task_is_remembered_up_to_v4_6_only() {
    for (kernel, flips) in [(V4_5_RC1, 1), (V4_15, 0), (V4_16, 0)] {
        let mut m = uma(kernel);
        let p = m.sleeper(1);
        m.allow(p, &[1]);
        assert!(m.0.wake(cpu(0), p, WakeFlags::NONE));
        assert_eq!(m.rq[cpu(0)].idle.wakee_flips, flips, "{}", kernel.name);
    }
    for kernel in [V4_5_RC1, V4_15, V4_16] {
        let mut m = uma(kernel);
        let p = m.sleeper(1);
        assert!(m.0.wake(cpu(0), p, WakeFlags::NONE));
        assert_eq!(m.rq[cpu(0)].idle.wakee_flips, 1, "{}", kernel.name);
    }
}

/// A sync wakeup by a task on CPU 0, where CPU `prev` is busy; the wakee last used `recent`.
fn with_recent(m: &mut Machine, prev: usize, recent: usize) -> (usize, usize) {
    m.run(0);
    m.run(prev);
    let p = m.sleeper(prev);
    m.task[p].recent_used_cpu = cpu(recent);
    let chosen = m.select(0, p, true);
    (chosen, m.task[p].recent_used_cpu.index())
}

#[test]
fn the_recent_cpu_goes_first_and_the_previous_one_takes_its_place() {
    assert_eq!(with_recent(&mut two_sockets(V4_16), 1, 3), (3, 1));
    // v4.15, and v4.16 without this behaviour: the first idle CPU from the target on.
    assert_eq!(with_recent(&mut two_sockets(V4_15), 1, 3), (2, 3));
    assert_eq!(with_recent(&mut two_sockets(with(V4_16, "wake.recent_used_cpu", "absent")), 1, 3), (2, 3));
    // v4.15 with only this behaviour of v4.16.
    assert_eq!(with_recent(&mut two_sockets(with(V4_15, "wake.recent_used_cpu", "by-waker")), 1, 3), (3, 1));
}

#[test]
fn the_recent_cpu_has_to_be_idle_near_allowed_and_another() {
    assert_eq!(with_recent(&mut two_sockets(V4_16), 1, 1), (2, 1), "it is the previous one");
    assert_eq!(with_recent(&mut two_sockets(V4_16), 1, 0), (2, 0), "it is the target");
    assert_eq!(with_recent(&mut two_sockets(V4_16), 1, 5), (2, 5), "it is in another cache");
    let mut m = two_sockets(V4_16);
    m.run(3);
    assert_eq!(with_recent(&mut m, 1, 3), (2, 3), "it is busy");
    let mut m = two_sockets(V4_16);
    m.busy(&[0, 1]);
    let p = m.sleeper(1);
    m.allow(p, &[0, 1, 2]);
    m.task[p].recent_used_cpu = cpu(3);
    assert_eq!((m.select(0, p, true), m.task[p].recent_used_cpu), (2, cpu(3)), "it is not allowed");
    // An idle target or an idle previous CPU takes precedence.
    let mut m = two_sockets(V4_16);
    m.run(0);
    let p = m.sleeper(1);
    m.task[p].recent_used_cpu = cpu(3);
    assert_eq!((m.select(0, p, true), m.task[p].recent_used_cpu), (1, cpu(3)));
}

#[test]
fn from_v5_14_on_the_previous_cpu_is_noted_at_every_search() {
    for kernel in [V6_1, V6_12] {
        // Two sockets: the previous CPU's sibling would come next, so it is busy.
        let chosen = |recent| {
            let mut m = two_sockets(kernel);
            m.busy(&[0, 1, 9]);
            let p = m.sleeper(1);
            m.task[p].recent_used_cpu = cpu(recent);
            (m.select(0, p, true), m.task[p].recent_used_cpu.index())
        };
        assert_eq!(chosen(3), (3, 1), "{}: it serves", kernel.name);
        assert_eq!(chosen(5), (2, 1), "{}: another cache, and noted all the same", kernel.name);
        assert_eq!(chosen(1), (2, 1), "{}: it is the previous one", kernel.name);
        // An idle target or previous CPU ends the search earlier.
        let mut m = two_sockets(kernel);
        m.run(0);
        let p = m.sleeper(1);
        m.task[p].recent_used_cpu = cpu(3);
        assert_eq!((m.select(0, p, true), m.task[p].recent_used_cpu), (1, cpu(3)), "{}", kernel.name);
        // The waker itself remembers nothing.
        let mut m = two_sockets(kernel);
        let waker = m.run(2);
        m.task[waker].recent_used_cpu = cpu(7);
        let p = m.sleeper(1);
        m.select(2, p, true);
        assert_eq!(m.task[waker].recent_used_cpu, cpu(7));
    }
}

#[test]
fn a_waker_remembers_where_it_was() {
    for (kernel, remembered) in [(V4_15, 7), (V4_16, 2)] {
        let mut m = two_sockets(kernel);
        let waker = m.run(2);
        m.task[waker].recent_used_cpu = cpu(7);
        let p = m.sleeper(1);
        m.select(2, p, true);
        assert_eq!(m.task[waker].recent_used_cpu.index(), remembered, "{}", kernel.name);
    }
    // It is recorded even if there is no choice, but not after a wide wakeup, nor for a wakee that may not come here.
    let mut m = two_sockets(V4_16);
    let waker = m.run(2);
    let p = m.sleeper(2);
    m.select(2, p, true);
    assert_eq!(m.task[waker].recent_used_cpu.index(), 2);
    m.task[waker].recent_used_cpu = cpu(7);
    m.allow(p, &[3, 4]);
    m.select(2, p, true);
    assert_eq!(m.task[waker].recent_used_cpu.index(), 7);
    m.allow(p, &[2, 3, 4]);
    m.task[waker].wakee_flips = 64;
    m.task[p].wakee_flips = 8;
    m.select(2, p, true);
    assert_eq!(m.task[waker].recent_used_cpu.index(), 7);
}

/// A task and a worker wake each other in turn, synchronously. Before a waker sleeps it is moved to where its wakee
/// runs: so its previous CPU is the target of the next wakeup, and where it was before is forgotten (the case that
/// 32e839dda3ba describes). Returns where each woken task goes.
fn ping_pong(kernel: Kernel) -> Vec<usize> {
    let mut m = uma(kernel);
    let task = m.run(0);
    let worker = m.sleeper(0);
    let (mut waker, mut wakee) = (task, worker);
    let mut path = Vec::new();
    for _ in 0..8 {
        let from = m.task[waker].cpu;
        let to = cpu(m.select(from.index(), wakee, true));
        path.push(to.index());
        m.set_curr(from, None);
        m.rq[from].nr_running = 0;
        m.set_curr(to, Some(wakee));
        m.rq[to].nr_running = 1;
        m.0.__set_task_cpu(wakee, to);
        m.0.__set_task_cpu(waker, to);
        (waker, wakee) = (wakee, waker);
    }
    path
}

#[test]
fn two_that_wake_each_other_stay_on_two_cpus() {
    // The search pushes the pair around the LLC; the recently used CPU keeps it on two CPUs.
    assert_eq!(ping_pong(V4_15), [1, 2, 3, 4, 5, 6, 7, 0]);
    assert_eq!(ping_pong(V4_16), [1, 0, 1, 0, 1, 0, 1, 0]);
    // The later form records where the wakee is found, which is where it was moved to: three CPUs.
    assert_eq!(ping_pong(V6_1), [1, 0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(ping_pong(with(V6_1, "wake.recent_used_cpu", "absent")), [1, 2, 3, 4, 5, 6, 7, 0]);
}

#[test]
fn v5_15_asks_of_the_previous_cpu_whether_the_task_may_use_the_recent_one() {
    let chosen = |kernel, allowed: &[usize]| {
        let mut m = uma(kernel);
        m.busy(&[0, 1]);
        let p = m.sleeper(1);
        m.task[p].recent_used_cpu = cpu(3);
        m.allow(p, allowed);
        m.select(0, p, true)
    };
    let both = |allowed: &[usize]| [V5_15, V6_1].map(|kernel| chosen(kernel, allowed));
    // It may use the previous CPU, and so goes to one that it may not use: the caller will notice.
    assert_eq!(both(&[0, 1, 2, 4, 5]), [3, 2]);
    // It may use the recent CPU, but not the previous one any more.
    assert_eq!(both(&[0, 2, 3, 4, 5]), [2, 3]);
    assert_eq!(both(&[0, 1, 2, 3, 4, 5]), [3, 3]);
}
