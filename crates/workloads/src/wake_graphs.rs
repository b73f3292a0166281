//! Who wakes whom, and how often per operation, for benchmarks whose own file does not test it. The expected figures
//! follow from what each model describes; they are not results that were recorded here.

use crate::fixture::{Edges, edges, priced_edges, run};
use crate::{WORKLOADS, all};
use std::collections::BTreeSet;

fn count(edges: &Edges, waker: &str, wakee: &str) -> u64 {
    edges.get(&(waker.to_string(), wakee.to_string())).copied().unwrap_or(0)
}

/// Every pair of waker and wakee, without moves to other CPUs.
fn pairs(edges: &Edges) -> Vec<(&str, &str)> {
    edges.keys().map(|(waker, wakee)| (&waker[..], &wakee[..])).filter(|(waker, _)| *waker != "migrated").collect()
}

/// Asserts that `ours` is `expected`, within so many per cent plus one.
fn assert_about(what: &str, ours: u64, expected: u64, percent: u64) {
    assert!(ours.abs_diff(expected) <= expected * percent / 100 + 1, "{what}: {ours} instead of {expected}");
}

const SHORT: &[(&str, u64)] = &[("milliseconds", 20), ("warmup", 0)];

#[test]
fn each_side_of_a_netperf_transaction_wakes_the_other_once() {
    for name in ["netperf-tcp-rr", "netperf-udp-rr"] {
        let (ran, edges) = edges(name, 2, SHORT, |_| {});
        let transactions = ran.rows()[0][0] / 1_000 * 20 / 1_000;
        assert_about(name, count(&edges, "netperf", "netserver"), transactions, 1);
        assert_about(name, count(&edges, "netserver", "netperf"), transactions, 1);
    }
}

#[test]
fn a_tcp_stream_of_full_windows_wakes_both_and_one_of_datagrams_the_receiver_alone() {
    let with = |size| SHORT.iter().copied().chain([("size", size)]).collect::<Vec<_>>();
    let (ran, tcp) = priced_edges("netperf-tcp", 2, &with(4_096));
    let messages = ran.rows()[0][0] / 8 / 4_096 * 20 / 1_000;
    let (there, back) = (count(&tcp, "netperf", "netserver"), count(&tcp, "netserver", "netperf"));
    assert_about("wakeups both ways", there, back, 3);
    // On a real kernel it is 0.8 to 0.97 for each message of 1 KiB and more; with a window of one message it is never
    // more than one.
    assert!(there * 100 >= messages * 50 && there <= messages + 1, "{there} for {messages} messages");
    let (ran, udp) = edges("netperf-udp", 2, &with(1_024), |_| {});
    let datagrams = ran.rows()[1][0] / 8 / 1_024 * 20 / 1_000;
    assert_eq!(count(&udp, "netserver", "netperf"), 0, "a sender of datagrams never waits for its receiver");
    let woken = count(&udp, "netperf", "netserver");
    assert!(woken > 0 && woken <= datagrams * 21 / 20, "{woken} for {datagrams} datagrams");
}

#[test]
fn a_tbench_operation_wakes_the_server_and_the_client_once() {
    let (ran, edges) = edges("tbench4", 4, &[("clients", 2), ("milliseconds", 20), ("warmup", 0)], |_| {});
    let bytes = 5_428;
    let operations = ran.rows()[0].last().expect("a line") / bytes * 20 / 1_000;
    for (waker, wakee) in [("tbench", "tbench_srv"), ("tbench_srv", "tbench")] {
        assert_about(waker, count(&edges, waker, wakee), operations, 8);
    }
}

#[test]
fn hackbench_wakes_all_to_begin_and_then_few_per_message() {
    let (_, edges) = priced_edges("hackbench-sockets", 2, &[("loops", 50)]);
    assert_eq!(pairs(&edges), [("hackbench", "hackbench")]);
    let (messages, wakeups) = (20 * 20 * 50, count(&edges, "hackbench", "hackbench"));
    // Measured with pipes on two CPUs: 0.10 for each message.
    assert!(wakeups >= 40 && wakeups * 100 < messages * 30, "{wakeups} for {messages} messages");
}

#[test]
fn perf_bench_messaging_is_hackbench_with_other_defaults() {
    for (pipe, other) in [(1, "hackbench-pipes"), (0, "hackbench-sockets")] {
        for threads in [0, 1] {
            let small = [("groups", 2), ("loops", 10), ("threads", threads)];
            let (messaging, ours) = priced_edges("perf-bench-messaging", 4, &[&small[..], &[("pipe", pipe)]].concat());
            let (hackbench, theirs) = priced_edges(other, 4, &small);
            assert_eq!((messaging.rows(), ours), (hackbench.rows(), theirs), "{other}, threads={threads}");
        }
    }
    let parameters = crate::hackbench::PERF_BENCH_MESSAGING.parameters.iter();
    let defaults: Vec<(&str, u64)> = parameters.map(|parameter| (parameter.name, parameter.default)).collect();
    assert_eq!(defaults, [("groups", 10), ("loops", 100), ("threads", 0), ("pipe", 0)]);
}

#[test]
fn a_pipe_loop_is_two_wakeups_between_processes_and_between_threads() {
    for threads in [0, 1] {
        let (ran, edges) = priced_edges("perf-bench-pipe", 2, &[("loops", 500), ("threads", threads)]);
        assert_about("wakeups", count(&edges, "pipe-test", "pipe-test"), 2 * 500, 0);
        // The picoseconds of a loop cover the whole time, except for the fork.
        let (loops, all) = (ran.rows()[0][0] * 500 / 1_000, ran.sim.now().0);
        assert!(loops < all && loops * 100 > all * 98, "{loops} of {all} ns");
    }
}

#[test]
fn a_futex_operation_is_two_wakeups() {
    let (ran, edges) = priced_edges("stress-futex", 2, &[("pairs", 1), ("milliseconds", 100)]);
    let operations = ran.rows()[0][0] / 10;
    assert!(operations > 1_000, "{operations} in a tenth of a second");
    assert_about("wakeups", count(&edges, "stress-futex", "stress-futex"), 2 * operations, 1);
}

#[test]
fn turns_at_mutexes_wake_nobody_but_those_who_wait_for_one() {
    let contended = [("threads", 3), ("locks", 2), ("milliseconds", 500)];
    let (_, edges) = priced_edges("sysbench-like", 2, &contended);
    assert!(count(&edges, "sysbench", "sysbench") > 1_000, "{edges:?}");
    assert!(pairs(&edges).iter().all(|&(waker, wakee)| wakee == "main" || waker == "sysbench"), "{edges:?}");
    let alone = [("threads", 1), ("locks", 4), ("milliseconds", 50)];
    assert_eq!(count(&priced_edges("sysbench-like", 2, &alone).1, "sysbench", "sysbench"), 0);
}

#[test]
fn timers_wake_cyclictest_once_a_loop() {
    let (ran, edges) = priced_edges("cyclictest", 2, &[("threads", 1), ("loops", 100), ("hogs", 2)]);
    let wakeups = count(&edges, "idle", "cyclictest") + count(&edges, "hog", "cyclictest");
    assert_about("wakeups", wakeups, 100, 0);
    let [least, mean, p99, most] = ran.rows().concat()[..] else { panic!("four figures") };
    // The percentile is the middle of a bucket, whose width is one part in 256.
    assert!(least <= mean && mean <= p99 + p99 / 128 && p99 <= most, "{least} {mean} {p99} {most}");
}

#[test]
fn a_compiled_file_is_a_chain_of_processes_that_wait_for_each_other() {
    let (_, edges) = priced_edges("kernel-build", 2, &[("files", 6), ("file_cycles", 10), ("jobs", 2)]);
    // A child wakes its parent at its end; if the parent is in vfork(), also when the child executes its program.
    for (child, parent, times) in [("cc1", "gcc", 2), ("as", "gcc", 2), ("gcc", "sh", 1), ("sh", "make", 2)] {
        assert_about(child, count(&edges, child, parent), 6 * times, 17);
    }
    assert_eq!(count(&edges, "ld", "make"), 2);
}

#[test]
fn a_request_wakes_its_server_and_then_its_client() {
    let (ran, edges) = priced_edges("redis-like", 2, &[("clients", 1), ("runtime", 1)]);
    let (there, back) = (count(&edges, "client", "server"), count(&edges, "server", "client"));
    assert_about("wakeups both ways", there, back, 0);
    assert_about("requests", there, 1_000_000_000 / ran.rows()[0][0], 5);
    // All of its pages come from the disk, whose interrupt finds the CPU idle.
    let disk = [("clients", 1), ("servers", 1), ("disk", 100), ("runtime", 1)];
    let (_, edges) = priced_edges("nginx-like", 2, &disk);
    let (there, back) = (count(&edges, "client", "server"), count(&edges, "server", "client"));
    assert_about("wakeups both ways", there, back, 0);
    assert_about("wakeups by the disk", count(&edges, "idle", "server"), there, 1);
}

#[test]
fn a_frame_wakes_each_slice_once() {
    let frames = 20;
    let (_, edges) = priced_edges("ffmpeg-like", 8, &[("frames", frames)]);
    assert_about("slices", count(&edges, "encoder", "slice"), frames * 4, 5);
    let back = count(&edges, "slice", "encoder");
    assert!((frames..=frames * 4).contains(&back), "{back} wakeups of the encoder by its slices");
    assert!(pairs(&edges).iter().all(|&(waker, _)| waker != "idle"), "{edges:?}");
}

#[test]
fn a_message_thread_of_schbench_wakes_each_worker_once_a_round() {
    let (messengers, workers) = (("messengers", 1), ("workers", 4));
    let earlier = [messengers, workers, ("runtime", 1), ("cputime", 1_000), ("sleeptime", 10_000)];
    let (_, edges) = priced_edges("schbench-2016", 8, &earlier);
    // The message thread wakes from its own sleep; it is posted once a round, and answers four workers.
    let rounds = count(&edges, "idle", "schbench");
    assert_about("rounds", rounds, 81, 5);
    assert_about("wakeups", count(&edges, "schbench", "schbench"), rounds * 5, 3);
    let current = [messengers, workers, ("runtime", 1), ("interval", 1), ("operations", 1)];
    let (_, edges) = priced_edges("schbench", 8, &current);
    let requests = count(&edges, "schbench-msg", "schbench-worker");
    assert!(requests > 300, "{requests}");
    // Each request sleeps once; workers that ask at the same time are answered together.
    assert_about("sleeps", count(&edges, "idle", "schbench-worker"), requests, 2);
    let asked = count(&edges, "schbench-worker", "schbench-msg");
    assert!((requests / 4 - 1..=requests).contains(&asked), "{asked} for {requests} requests");
}

#[test]
fn a_rate_is_per_second_however_long_it_was_measured() {
    let rate = |ms| run("sysbench-like", 2, &[("threads", 2), ("locks", 8), ("milliseconds", ms)]).rows()[0][0];
    assert_about("events per second", rate(400), rate(100), 2);
}

#[test]
fn the_registry_is_sound() {
    let mut names = BTreeSet::new();
    for workload in WORKLOADS {
        assert!(names.insert(workload.name), "{} twice", workload.name);
        assert!(
            !workload.summary.is_empty() && !workload.unit.is_empty() && workload.per_unit > 0,
            "{}",
            workload.name
        );
        let parameters: BTreeSet<&str> = workload.parameters.iter().map(|parameter| parameter.name).collect();
        assert_eq!(parameters.len(), workload.parameters.len(), "{}: a parameter twice", workload.name);
        assert!(workload.key.is_none_or(|key| parameters.contains(key)), "{}: no such key", workload.name);
        for parameter in workload.parameters {
            let (low, high) = parameter.range;
            assert!((low..=high).contains(&parameter.default), "{} {}", workload.name, parameter.name);
            assert!(!parameter.doc.is_empty(), "{} {}", workload.name, parameter.name);
        }
    }
    assert_eq!(all().count(), WORKLOADS.len());
}
