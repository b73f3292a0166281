//! Where buffers lie, and how that changes the time of accesses.

use super::running::Ran;
use super::*;
use machine::prices::Prices;
use machine::topology::Distance;
use os::memory::RegionId;
use units::{Cycles, Ns, Ps};

/// Two nodes of two CPUs.
const SHAPE: &str = "pack:2 [numa] l3:1 core:2 pu:1";

/// 1 GHz; 10 cycles to level 2, 20 ns to the last level cache of 16 MiB, 100 ns to a node's own memory and 150 to the other's.
fn prices() -> Prices {
    let mut prices = Prices::free();
    (prices.l1_bytes, prices.l2_bytes, prices.l2_load) = (32 << 10, 1 << 20, Cycles(10));
    (prices.llc_bytes, prices.refill_parallel) = (16 << 20, 10);
    prices.lines.llc_hit = Ps::from_ns(20);
    prices.lines.memory = Ps::from_ns(100);
    prices.memory_far = vec![Ps::from_ns(100); Distance::Remote(1).index()];
    prices.memory_far.push(Ps::from_ns(150));
    prices
}

fn run(text: &str) -> Ran<true> {
    Ran::<true>::start_in("v6.1", SHAPE, prices(), app(text)).ended()
}

/// How many MiB of a 4 MiB buffer lie on each node. Buffers of `memrun` are numbered before those of `mem`.
fn on_nodes(ran: &Ran<true>, buffer: u32) -> [u64; 2] {
    [0, 1].map(|node| ran.sim.os.memory.pages_on(RegionId(buffer), node) / 256)
}

/// Nanoseconds of the last round of the task's thread.
fn last_round(ran: &Ran<true>, task: usize) -> u64 {
    *ran.rt_app.samples_of(task, &ran.sim.samples).last().expect("it has rounds")
}

#[test]
fn data_takes_as_long_as_its_buffer_is_far_away() {
    let round = |events: &str| {
        let ran = run(&format!(r#"{{"tasks": {{"t": {{"cpus": [0], "loop": 3, {events}}}}}}}"#));
        last_round(&ran, 0)
    };
    let chase =
        |bytes: u32| round(&format!(r#""memrun": {{"type": "chase", "size": {bytes}, "count": 100000}}"#)) / 100_000;
    // One pointer after the other, for a buffer that fits each cache in turn: an access takes the latency of the cache
    // that holds it. The last level cache holds a quarter of 64 MiB.
    assert_eq!([16 << 10, 512 << 10, 8 << 20, 64 << 20].map(chase), [5, 10, 5 + 20, 5 + (20 + 3 * 100) / 4]);
    // Lines are prefetched, ten at once, in the time that two of them take to be written: 2 ns each from the cache, or
    // 10 from memory.
    let write = |bytes: u32| {
        let ran = run(&format!(
            r#"{{"global": {{"mem_buffer_size": {bytes}, "lock_pages": false}},
                "tasks": {{"t": {{"cpus": [0], "loop": 3, "mem": {bytes}}}}}}}"#
        ));
        last_round(&ran, 0) * 10 / u64::from(bytes / 64)
    };
    assert_eq!([512 << 10, 8 << 20].map(write), [40; 2]);
    assert_eq!(write(64 << 20), 80);
}

#[test]
fn a_large_buffer_that_is_not_gone_through_costs_nothing() {
    let ran = run(r#"{"global": {"mem_buffer_size": 268435456, "lock_pages": false}, "tasks": {
        "t": {"loop": 2, "phases": {"a": {"loop": 3, "run": 100}, "b": {"loop": 1, "mem": 64}}}}}"#);
    assert_eq!(ran.rt_app.samples_of(0, &ran.sim.samples)[..3], [100_000; 3]);
}

#[test]
fn memory_comes_from_the_nodes_that_the_thread_is_bound_to() {
    let text = |nodes: &str| {
        format!(
            r#"{{"global": {{"lock_pages": false}},
                "tasks": {{"t": {{"cpus": [0], "loop": 3, {nodes} "mem": 4194304}}}}}}"#
        )
    };
    let bound = |nodes: &str| on_nodes(&run(&text(nodes)), 0);
    assert_eq!(bound(""), [4, 0]);
    assert_eq!(bound(r#""nodes_membind": [1],"#), [0, 4]);
    assert_eq!(bound(r#""nodes_membind": [1, 0],"#), [4, 0], "the nearest of them");
}

#[test]
fn far_memory_is_slower() {
    let text = |node: u32| {
        format!(
            r#"{{"global": {{"mem_buffer_size": 268435456, "lock_pages": false}},
                "tasks": {{"t": {{"cpus": [0], "loop": 2, "nodes_membind": [{node}], "mem": 268435456}}}}}}"#
        )
    };
    let [near, far] = [0, 1].map(|node| last_round(&run(&text(node)), 0));
    // 15 of 16 lines come from memory, ten at once, and that takes longer than the work.
    assert!((148..=150).contains(&(far * 100 / near)), "{near} {far}");
}

#[test]
fn who_is_first_to_lock_its_memory_brings_in_the_buffers_of_all() {
    let text = |lock: bool| {
        let task = |cpu: u32, delay: u32, node: u32| {
            format!(r#"{{"cpus": [{cpu}], "delay": {delay}, "loop": 2, "nodes_membind": [{node}], "mem": 4194304}}"#)
        };
        format!(
            r#"{{"global": {{"lock_pages": {lock}}}, "tasks": {{"a": {}, "b": {}}}}}"#,
            task(0, 2_000, 0),
            task(1, 1_000, 1)
        )
    };
    let lie = |lock| {
        let ran = run(&text(lock));
        [on_nodes(&ran, 0), on_nodes(&ran, 1)]
    };
    assert_eq!(lie(true), [[0, 4]; 2], "b is ready first");
    assert_eq!(lie(false), [[4, 0], [0, 4]]);
}

#[test]
fn main_has_filled_the_buffers_of_memrun_before_threads_say_where_they_want_memory() {
    let ran = run(r#"{"tasks": {"t": {"cpus": [2], "loop": 2, "nodes_membind": [1],
        "memrun": {"type": "write", "size": 4194304, "count": 4194304}}}}"#);
    assert_eq!(on_nodes(&ran, 0), [4, 0], "main runs on CPU 0");
}

#[test]
fn a_forked_thread_is_bound_where_its_starter_is() {
    let ran = run(r#"{"global": {"lock_pages": false}, "tasks": {
        "a": {"cpus": [0], "loop": 1, "nodes_membind": [1], "phases": {"p": {"fork": "b", "run": 10}}},
        "b": {"instance": 0, "loop": 1, "mem": 4194304}}}"#);
    assert_eq!(on_nodes(&ran, 0), [0, 4]);
    assert!(ran.sim.now() < Ns::from_ms(100));
}

#[test]
fn numa_balancing_brings_memory_to_a_thread_unless_it_is_bound() {
    for kernel in ["v4.5-rc1", "v4.15", "v6.1", "v6.12"] {
        for (cpu, node) in [(0, 0), (2, 1)] {
            let lies = |rounds: u32, nodes: &str| {
                let text = format!(
                    r#"{{"tasks": {{"t": {{"cpus": [{cpu}], "loop": {rounds}, {nodes}
                        "memrun": {{"type": "write", "size": 4194304, "count": 4194304}}}}}}}}"#
                );
                on_nodes(&Ran::<true>::start_in(kernel, SHAPE, prices(), app(&text)).ended(), 0)
            };
            let (mut there, filled, bind) = ([0; 2], lies(1, ""), format!(r#""nodes_membind": [{node}],"#));
            there[node] = 4;
            // The thread's own memory policy does not move pages that exist already.
            assert_eq!([lies(600, ""), lies(600, &bind)], [there, filled], "{kernel} on CPU {cpu}");
        }
    }
}
