//! The search for an idle core, an idle CPU, an idle thread.

use super::*;
use crate::versions::kernel;

fn goes_idle(m: &mut Machine, on: usize) {
    m.0.this_cpu = cpu(on);
    m.update_idle_core(cpu(on));
}

#[test]
fn a_core_left_idle_is_announced_to_its_cache() {
    for kernel in [V4_15, V4_16] {
        let mut m = two_sockets(kernel);
        assert!(!m.has_idle_cores(0) && !m.has_idle_cores(4));
        m.run(9);
        goes_idle(&mut m, 1);
        assert!(!m.has_idle_cores(0), "its other thread is busy");
        goes_idle(&mut m, 10);
        assert!(m.has_idle_cores(0) && m.has_idle_cores(11), "whoever shares the cache knows");
        assert!(!m.has_idle_cores(4));
    }
    let mut m = uma(V4_15);
    goes_idle(&mut m, 3);
    assert!(!m.has_idle_cores(3), "without threads there are no cores to look for");
    let mut m = two_sockets(V4_5_RC1);
    goes_idle(&mut m, 3);
    assert!(m.domains.sd_llc_shared[cpu(3)].is_none());
}

#[test]
fn an_idle_core_is_preferred_while_one_is_known() {
    // CPUs 1 and 10 are busy: the first idle CPU from 0 on is 2, the first idle core 3.
    let mut m = two_sockets(V4_15);
    m.busy(&[0, 1, 10]);
    let p = m.sleeper(1);
    assert_eq!(m.select(0, p, true), 2);
    goes_idle(&mut m, 3);
    assert_eq!(m.select(0, p, true), 3);
    assert!(m.has_idle_cores(0));
    // The last idle core is taken: the search fails once and is not made again.
    m.run(11);
    assert_eq!(m.select(0, p, true), 2);
    assert!(!m.has_idle_cores(0));
    m.arch.touched.clear();
    assert_eq!(m.select(0, p, true), 2);
    let looked_at = |m: &Machine, on| m.arch.touched.contains(&m.layout.rq(cpu(on), crate::layout::RqLine::Curr));
    assert!(looked_at(&m, 2) && !looked_at(&m, 3));
}

#[test]
fn cores_are_taken_in_the_order_of_their_first_usable_thread() {
    let mut m = two_sockets(V4_15);
    m.busy(&[10, 9]);
    let p = m.sleeper(9);
    // From CPU 10 on: 11, then 0 (core 0's first thread), 1: core 3 by its second thread.
    goes_idle(&mut m, 3);
    assert_eq!(m.select(10, p, true), 11);
    // CPU 11 may not be used: then core 0, by the first thread after the wrap.
    m.allow(p, &[0, 3, 8, 9, 10]);
    assert_eq!(m.select(10, p, true), 0);
    // Only the second thread of core 0 may be used, which comes after the first thread of core 3.
    m.allow(p, &[3, 8, 9, 10]);
    assert_eq!(m.select(10, p, true), 3);
    m.run(11);
    assert_eq!(m.select(10, p, true), 8);
}

#[test]
fn a_search_goes_on_for_as_long_as_it_pays() {
    // Average idle time 512 * n and no cost so far (1): 8 CPUs * n > 4 only for n > 0. With 4 tries the search ends at
    // the fourth CPU.
    let chosen = |avg_idle, cost, busy: &[usize]| {
        let mut m = two_sockets(V4_15);
        m.run(0);
        m.busy(busy);
        m.rq[cpu(0)].avg_idle = avg_idle;
        let sd = m.domains.sd_llc[cpu(0)].unwrap();
        m.domains[sd].avg_scan_cost = cost;
        let p = m.sleeper(1);
        (m.select(0, p, true), m.domains[sd].avg_scan_cost)
    };
    assert_eq!(chosen(0, 800, &[1]).0, 2, "0, 1 and 2 are looked at");
    // CPU 3 is not reached: the sibling of CPU 0 is. A search cut short costs nothing.
    assert_eq!(chosen(0, 800, &[1, 2]), (8, 800));
    assert_eq!(chosen(0, 800, &[1, 2, 8]), (0, 800));
    // 8 * 200 / 200 = 8 tries, so 7 CPUs: 0-3, 8-10. CPU 11 is out of reach.
    assert_eq!(chosen(200 * 512, 199, &[1, 2, 3, 8, 9]).0, 10);
    assert_eq!(chosen(200 * 512, 199, &[1, 2, 3, 8, 9, 10]).0, 0);
    // 8 * 226 / 200 = 9 tries.
    assert_eq!(chosen(226 * 512, 199, &[1, 2, 3, 8, 9, 10]).0, 11);
    // A search that ends by itself, in no time: the cost falls by an eighth.
    assert_eq!(chosen(226 * 512, 199, &[1, 2, 3, 8, 9, 10]).1, 199 - 24);
    assert_eq!(chosen(250 * 512, 199, &[1, 2, 3, 8, 9, 10, 11]), (0, 199 - 24));
}

#[test]
fn v5_4_and_v5_10_count_only_cpus_that_the_task_may_use() {
    // Four tries. CPUs 0 to 3 and 8 to 11 share a cache, 8 is the other thread of CPU 0's core.
    let chosen = |kernel, allowed: &[usize]| {
        let mut m = two_sockets(kernel);
        m.run(0);
        m.rq[cpu(0)].avg_idle = 0;
        let p = m.sleeper(0);
        m.allow(p, allowed);
        m.select(0, p, true)
    };
    assert_eq!([V4_15, V5_4, V5_10].map(|kernel| chosen(kernel, &[0, 10, 11])), [0, 10, 10]);
    // The fourth CPU that it may use is out of reach in both.
    assert_eq!([V4_15, V5_4, V5_10].map(|kernel| chosen(kernel, &[0, 1, 2, 3])), [1, 1, 1]);
    let busy = |kernel| {
        let mut m = two_sockets(kernel);
        m.busy(&[0, 1, 9, 10]);
        m.rq[cpu(0)].avg_idle = 0;
        let p = m.sleeper(0);
        m.allow(p, &[0, 1, 9, 10, 11]);
        m.select(0, p, true)
    };
    assert_eq!([V4_15, V5_4, V5_10].map(busy), [0, 0, 0]);
}

#[test]
fn v5_10_leaves_a_core_at_its_first_busy_thread() {
    // An idle core is known of; cores 0 and 1 have a busy first thread, core 2 is idle.
    let looks = |kernel| {
        let mut m = two_sockets(kernel);
        m.busy(&[0, 1]);
        m.set_idle_cores(cpu(0), true);
        let p = m.sleeper(0);
        m.arch.ns_per_read = 100;
        let before = m.arch.now;
        assert_eq!(m.select(0, p, true), 2);
        m.arch.now - before
    };
    assert!(looks(V5_10) < looks(V4_15), "{} and {}", looks(V5_10), looks(V4_15));
    assert!(looks(V5_10) < looks(V5_4), "{} and {}", looks(V5_10), looks(V5_4));
}

#[test]
fn the_toggles_of_the_search() {
    let chosen = |proportional, by_average, avg_idle| {
        let mut m = two_sockets(V4_15);
        m.features.set(Feature::SIS_PROP, proportional);
        m.features.set(Feature::SIS_AVG_CPU, by_average);
        m.run(0);
        m.busy(&[1, 2, 3, 8, 9, 10]);
        m.rq[cpu(0)].avg_idle = avg_idle;
        let sd = m.domains.sd_llc[cpu(0)].unwrap();
        m.domains[sd].avg_scan_cost = 99;
        let p = m.sleeper(1);
        m.select(0, p, true)
    };
    assert_eq!(chosen(true, false, 0), 0, "four tries");
    assert_eq!(chosen(false, false, 0), 11, "all");
    assert_eq!(chosen(false, true, 99 * 512), 0, "99 < 99 + 1: no search");
    assert_eq!(chosen(false, true, 100 * 512), 11);
}

#[test]
fn in_v4_9_a_cpu_that_idles_shortly_does_not_search() {
    let chosen = |avg_idle| {
        let v4_9 = *kernel("v4.9").expect("a release");
        assert_eq!(v4_9.wake.scan_gate, ScanGate::Always);
        let mut m = two_sockets(v4_9);
        m.run(0);
        m.busy(&[1, 2, 3, 8, 9, 10]);
        m.rq[cpu(0)].avg_idle = avg_idle;
        let sd = m.domains.sd_llc[cpu(0)].unwrap();
        m.domains[sd].avg_scan_cost = 99;
        let p = m.sleeper(1);
        m.select(0, p, true)
    };
    assert_eq!(chosen(99 * 512 - 1), 0);
    assert_eq!(chosen(99 * 512), 11, "a search looks at all");
}

#[test]
fn a_search_is_timed() {
    let mut m = two_sockets(V4_15);
    m.busy(&[0, 1]);
    let p = m.sleeper(1);
    let sd = m.domains.sd_llc[cpu(0)].unwrap();
    m.arch.ns_per_read = 100;
    // CPUs 0 and 1 take one read each, the idle CPU 2 three: 500 ns, of which an eighth counts.
    assert_eq!(m.select(0, p, true), 2);
    assert_eq!(m.domains[sd].avg_scan_cost, 62);
    assert_eq!(m.select(0, p, true), 2);
    assert_eq!(m.domains[sd].avg_scan_cost, 62 + (500 - 62) / 8);
    // The waking CPU pays, even if it searches another LLC.
    let q = m.sleeper(4);
    m.busy(&[4]);
    m.allow(q, &[4, 5, 6]);
    assert_eq!(m.select(0, q, true), 5);
    assert_eq!(m.domains[sd].avg_scan_cost, 116 + (400 - 116) / 8);
    let other = m.domains.sd_llc[cpu(4)].unwrap();
    assert_eq!(m.domains[other].avg_scan_cost, 0);
}

#[test]
fn idle_cores_of_a_cache_stand_on_one_line() {
    let mut m = two_sockets(V4_15);
    let mut line_of = |on: usize| {
        let shared = m.domains.sd_llc_shared[cpu(on)].unwrap();
        m.arch.touched.clear();
        m.read_domain_shared(shared);
        m.arch.touched[0]
    };
    assert_eq!(line_of(0), line_of(11));
    assert_ne!(line_of(0), line_of(4));
}

#[test]
fn cpus_that_are_down_are_no_threads() {
    let mut m = two_sockets(V4_15);
    m.cpu_online_mask.clear(cpu(9));
    m.run(9);
    goes_idle(&mut m, 1);
    assert!(m.has_idle_cores(1));
}
