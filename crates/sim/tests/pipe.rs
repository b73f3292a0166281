//! Pipes: who gets room that appears, and where.

use crate::booted;
use machine::prices::Prices;
use os::OsRules;
use os::pipe::{PAGE_SIZE, PIPE_DEF_BUFFERS, PipePages, PipePolled, PipeRoom, PipeRules};
use sim::engine::{End, LinuxSim};
use sim::program::{Op, Steps, TaskSpec};
use units::{CpuId, Cycles, Ns};

const CPU: CpuId = CpuId(0);
const FULL: u64 = PAGE_SIZE * PIPE_DEF_BUFFERS as u64;

/// One CPU on which nothing takes time.
fn machine(pipe: PipeRules) -> LinuxSim<false> {
    booted("pack:1 core:1 pu:1", Prices::free(), OsRules { pipe, ..OsRules::V6_1 })
}

#[test]
fn a_writer_that_slept_for_room_opens_a_page_and_leaves_none_for_the_next() {
    for pipe_rules in [PipeRules::Single, PipeRules::Split] {
        let mut sim = machine(pipe_rules);
        let pipe = sim.os.create_pipe();
        let write = |bytes| Op::Write { pipe, bytes };
        let read = |bytes| Op::Read { pipe, bytes };
        let report = |series| Op::Report { series, value: 0 };
        sim.spawn(CPU, TaskSpec::new("fill", Steps([write(FULL)].into_iter())));
        sim.run(Ns::from_ms(1));
        for series in [1, 2] {
            let writer = [write(100), report(series)];
            sim.spawn(CPU, TaskSpec::new("writer", Steps(writer.into_iter())));
            sim.run(Ns::from_ms(1 + u64::from(series)));
        }
        // A page is drained; one more byte wakes whom it would wake, if the pipe is full again.
        let first = [read(PAGE_SIZE), Op::SleepUntil(Ns::from_ms(10)), read(1), Op::SleepUntil(Ns::from_ms(20))];
        let then = [read(PAGE_SIZE - 1), Op::SleepUntil(Ns::from_ms(30)), report(0)];
        sim.spawn(CPU, TaskSpec::new("reader", Steps(first.into_iter().chain(then))));
        sim.run(Ns::from_ms(15));
        assert_eq!(sim.samples.len(), 1, "{pipe_rules:?}: room for one");
        assert_eq!(sim.os.pipe_bytes(pipe), FULL - PAGE_SIZE + 100 - 1);
        assert_eq!(sim.run(Ns::from_ms(100)), End::Finished);
        assert_eq!(sim.samples.len(), 3);
        assert_eq!(sim.os.pipe_bytes(pipe), FULL - 2 * PAGE_SIZE + 200);
    }
}

/// How often a writer who waits for room is switched to while a page is read in four parts.
fn looks_for_room(room: PipeRoom) -> u64 {
    let rules = OsRules { pipe: PipeRules::Split, room, ..OsRules::V6_1 };
    let mut sim: LinuxSim<false> = booted("pack:1 core:1 pu:1", Prices::free(), rules);
    let pipe = sim.os.create_pipe();
    sim.spawn(CPU, TaskSpec::new("fill", Steps([Op::Write { pipe, bytes: FULL }].into_iter())));
    sim.run(Ns::from_ms(1));
    let waits = [Op::Write { pipe, bytes: 100 }, Op::SleepUntil(Ns::from_ms(1_000))];
    let writer = sim.spawn(CPU, TaskSpec::new("writer", Steps(waits.into_iter())));
    sim.run(Ns::from_ms(2));
    let before = sim.sched.task[writer].nvcsw;
    let part = |ms| [Op::Read { pipe, bytes: PAGE_SIZE / 4 }, Op::SleepUntil(Ns::from_ms(ms))];
    let reader: Vec<Op> = [10, 20, 30, 40].into_iter().flat_map(part).collect();
    sim.spawn(CPU, TaskSpec::new("reader", Steps(reader.into_iter())));
    sim.run(Ns::from_ms(35));
    assert_eq!(sim.os.pipe_bytes(pipe), FULL - PAGE_SIZE + 100);
    sim.sched.task[writer].nvcsw - before
}

#[test]
fn a_reader_wakes_writers_for_a_page_that_it_has_drained_since_v6_14() {
    assert_eq!([PipeRoom::WasFull, PipeRoom::Drained].map(looks_for_room), [4, 1]);
}

#[test]
fn a_pipe_keeps_two_drained_pages_since_v6_18() {
    // What a write of three pages takes after three others were read, where nothing has a price but a fresh page: 1 us.
    let second_write = |pages: PipePages| {
        let mut prices = Prices::free();
        prices.paths[os::paths::PIPE_BUF_ALLOC.0 as usize] = Cycles(1_000);
        let mut sim: LinuxSim<true> = booted("pack:1 core:1 pu:1", prices, OsRules { pages, ..OsRules::V6_1 });
        let pipe = sim.os.create_pipe();
        let write = || Op::Write { pipe, bytes: 3 * PAGE_SIZE };
        let read = Op::Read { pipe, bytes: 3 * PAGE_SIZE };
        let report = |series| Op::Report { series, value: 0 };
        let all = [write(), read, report(0), write(), report(1)];
        sim.spawn(CPU, TaskSpec::new("alone", Steps(all.into_iter())));
        assert_eq!(sim.run(Ns::from_ms(100)), End::Finished);
        sim.samples[1].at.0 - sim.samples[0].at.0
    };
    // v7.2 allocates all three in advance, v7.3 what the pipe lacks.
    let all = [PipePages::One, PipePages::Two, PipePages::Ahead, PipePages::Pool];
    assert_eq!(all.map(second_write), [2_000, 1_000, 3_000, 1_000]);
}

#[test]
fn a_write_joins_the_last_page_where_it_need_not_sleep() {
    let mut sim = machine(PipeRules::Split);
    let pipe = sim.os.create_pipe();
    // 40 messages to a page, and not one more in 16.
    let writes = (0..41 * 16).map(move |_| Op::Write { pipe, bytes: 100 });
    sim.spawn(CPU, TaskSpec::new("writer", Steps(writes)));
    sim.run(Ns::from_ms(1));
    assert_eq!(sim.os.pipe_bytes(pipe), 40 * 16 * 100);
}

#[test]
fn who_was_woken_and_leaves_something_wakes_the_next() {
    // One write for two readers, who wait for themselves alone.
    let mut sim = machine(PipeRules::Split);
    let pipe = sim.os.create_pipe();
    for _ in 0..2 {
        sim.spawn(CPU, TaskSpec::new("reader", Steps([Op::Read { pipe, bytes: 100 }].into_iter())));
    }
    sim.run(Ns::from_ms(1));
    sim.spawn(CPU, TaskSpec::new("writer", Steps([Op::Write { pipe, bytes: 200 }].into_iter())));
    assert_eq!(sim.run(Ns::from_ms(100)), End::Finished, "readers");
    // Two pages drained at once for two writers.
    let mut sim = machine(PipeRules::Split);
    let pipe = sim.os.create_pipe();
    sim.spawn(CPU, TaskSpec::new("fill", Steps([Op::Write { pipe, bytes: FULL }].into_iter())));
    sim.run(Ns::from_ms(1));
    for _ in 0..2 {
        sim.spawn(CPU, TaskSpec::new("writer", Steps([Op::Write { pipe, bytes: PAGE_SIZE }].into_iter())));
    }
    sim.run(Ns::from_ms(2));
    sim.spawn(CPU, TaskSpec::new("reader", Steps([Op::Read { pipe, bytes: 2 * PAGE_SIZE }].into_iter())));
    assert_eq!(sim.run(Ns::from_ms(100)), End::Finished, "writers");
}

#[test]
fn where_somebody_has_polled_each_write_wakes_until_v7_3() {
    // What the second write takes, of a pipe that is not empty, where nothing has a price but the walk of a wait queue: 1 us.
    let second_write = |rules: OsRules, polled: bool| {
        let mut prices = Prices::free();
        prices.paths[os::paths::WAKE_UP_SYNC_KEY.0 as usize] = Cycles(1_000);
        let mut sim: LinuxSim<true> = booted("pack:1 core:1 pu:1", prices, rules);
        let pipe = sim.os.create_pipe();
        let writes = [Op::Write { pipe, bytes: 1 }, Op::SleepUntil(Ns::from_ms(10))];
        let report = |series| Op::Report { series, value: 0 };
        let second = [report(0), Op::Write { pipe, bytes: 1 }, report(1)];
        sim.spawn(CPU, TaskSpec::new("writer", Steps(writes.into_iter().chain(second))));
        sim.run(Ns::from_ms(5));
        if polled {
            sim.spawn(CPU, TaskSpec::new("poller", Steps([Op::Poll { pipe }].into_iter())));
        }
        assert_eq!(sim.run(Ns::from_ms(100)), End::Finished);
        sim.samples[1].at.0 - sim.samples[0].at.0
    };
    let edge = OsRules { polled: PipePolled::EdgeTriggered, ..OsRules::V6_1 };
    assert_eq!([false, true].map(|polled| second_write(OsRules::V6_1, polled)), [0, 1_000]);
    assert_eq!([false, true].map(|polled| second_write(edge, polled)), [0, 0]);
}
