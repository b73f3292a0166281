//! Mutexes and the like over futexes: who is woken first, when an unlock goes into the kernel, and what is left of an owner that has ended.

use crate::booted;
use machine::prices::Prices;
use os::sync::{MutexId, SyncOp};
use os::{OsRules, paths};
use sched::attr::SchedAttr;
use sched::sched::Policy;
use sim::engine::{End, LinuxSim};
use sim::program::{Op, Steps, TaskSpec};
use units::{CpuId, Cycles, Ns};

const CPU: CpuId = CpuId(0);

/// One CPU of 1 GHz on which only futex wakes take time: 1 us.
fn machine() -> LinuxSim<true> {
    let mut prices = Prices::free();
    prices.paths[paths::FUTEX_WAKE.0 as usize] = Cycles(1_000);
    booted("pack:1 core:1 pu:1", prices, OsRules::V6_1)
}

fn fifo(priority: u32) -> SchedAttr {
    SchedAttr { sched_policy: Policy::Fifo, sched_priority: priority, ..SchedAttr::NORMAL }
}

/// A task that begins at `ms`.
fn spawn(
    sim: &mut LinuxSim<true>,
    ms: u64,
    attr: SchedAttr,
    ops: impl IntoIterator<Item = Op, IntoIter: Iterator<Item = Op> + 'static>,
) {
    sim.run(Ns::from_ms(ms));
    sim.spawn(CPU, TaskSpec { attr: Some(attr), ..TaskSpec::new("task", Steps(ops.into_iter())) });
}

/// Series of the samples in the order of their reports.
fn order(sim: &LinuxSim<true>) -> Vec<u32> {
    sim.samples.iter().map(|sample| sample.series).collect()
}

fn lock(mutex: MutexId) -> Op {
    Op::Sync(SyncOp::Lock(mutex))
}

fn unlock(mutex: MutexId) -> Op {
    Op::Sync(SyncOp::Unlock(mutex))
}

const REST: Op = Op::SleepFor(Ns::from_ms(50));

#[test]
fn real_time_waiters_come_first_by_priority_and_others_in_the_order_of_arrival() {
    let mut sim = machine();
    let mutex = sim.os.create_mutex();
    spawn(&mut sim, 0, SchedAttr::NORMAL, [lock(mutex), REST, unlock(mutex)]);
    let nice = SchedAttr { sched_nice: -20, ..SchedAttr::NORMAL };
    for (series, attr) in [(1, SchedAttr::NORMAL), (2, nice), (3, fifo(10)), (4, fifo(50)), (5, fifo(10))] {
        spawn(&mut sim, u64::from(series), attr, [lock(mutex), Op::Report { series, value: 0 }, REST, unlock(mutex)]);
    }
    assert_eq!(sim.run(Ns::from_ms(1_000)), End::Finished);
    assert_eq!(order(&sim), [4, 3, 5, 1, 2]);
}

#[test]
fn a_semaphore_and_a_condition_wake_the_first_by_priority() {
    let mut sim = machine();
    let (mutex, cond, semaphore) = (sim.os.create_mutex(), sim.os.create_cond(), sim.os.create_semaphore());
    for (series, attr) in [(1, SchedAttr::NORMAL), (2, fifo(10)), (3, fifo(20))] {
        let report = move |series| Op::Report { series, value: 0 };
        let waits = [lock(mutex), Op::Sync(SyncOp::Wait(cond, mutex)), unlock(mutex), report(series)];
        let until = Op::SleepUntil(Ns::from_ms(20 + u64::from(series)));
        let waits_again = [until, Op::Sync(SyncOp::SemaphoreWait(semaphore)), report(10 + series)];
        spawn(&mut sim, u64::from(series), attr, waits.into_iter().chain(waits_again));
    }
    for ms in [5, 6, 7] {
        spawn(&mut sim, ms, SchedAttr::NORMAL, [Op::Sync(SyncOp::Signal(cond))]);
    }
    for ms in [35, 36, 37] {
        spawn(&mut sim, ms, SchedAttr::NORMAL, [Op::Sync(SyncOp::SemaphorePost(semaphore))]);
    }
    assert_eq!(sim.run(Ns::from_ms(1_000)), End::Finished);
    assert_eq!(order(&sim), [3, 2, 1, 13, 12, 11]);
}

#[test]
fn who_has_slept_for_a_mutex_gives_it_back_through_the_kernel() {
    // The owner's unlock wakes the waiter, whose own wakes nobody, but asks; who takes it then asks no more.
    let mut sim = machine();
    let mutex = sim.os.create_mutex();
    let timed = |series, rest| {
        let value = |value| Op::Report { series, value };
        [lock(mutex), rest, value(0), unlock(mutex), value(1)]
    };
    spawn(&mut sim, 0, SchedAttr::NORMAL, timed(1, REST));
    spawn(&mut sim, 1, SchedAttr::NORMAL, timed(2, REST));
    spawn(&mut sim, 200, SchedAttr::NORMAL, timed(3, REST));
    assert_eq!(sim.run(Ns::from_ms(1_000)), End::Finished);
    let took = |series| {
        let times: Vec<Ns> = sim.samples.iter().filter(|s| s.series == series).map(|s| s.at).collect();
        times[1].saturating_sub(times[0])
    };
    assert_eq!([1, 2, 3].map(took), [1_000, 1_000, 0].map(Ns));
}

#[test]
fn what_a_task_held_when_it_ended_is_not_its_numbers_next_owners() {
    for inherits in [false, true] {
        let mut sim = machine();
        let mutex = if inherits { sim.os.create_pi_mutex() } else { sim.os.create_mutex() };
        spawn(&mut sim, 0, SchedAttr::NORMAL, [lock(mutex)]);
        // It gets the number of the one that has ended, and with a waiter's priority would run as long as it likes.
        spawn(&mut sim, 1, SchedAttr::NORMAL, [REST, Op::RunFor(Ns::from_ms(100)), lock(mutex)]);
        spawn(&mut sim, 2, fifo(50), [lock(mutex)]);
        let brief = [Op::SleepUntil(Ns::from_ms(60)), Op::RunFor(Ns::from_ms(10)), Op::Report { series: 1, value: 0 }];
        spawn(&mut sim, 3, SchedAttr::NORMAL, brief);
        assert_eq!(sim.run(Ns::from_ms(1_000)), End::Deadlock { sleeping: 2 }, "inherits: {inherits}");
        let calls: Vec<&str> = sim.sleepers().iter().map(|sleeper| sleeper.call).collect();
        assert_eq!(calls, ["a pthread_mutex_lock()"; 2]);
        assert!(sim.samples[0].at < Ns::from_ms(100), "inherits: {inherits}: {:?}", sim.samples[0].at);
    }
}

#[test]
fn a_mutex_that_lends_priority_goes_to_its_first_waiter_when_the_owner_ends() {
    for inherits in [false, true] {
        let mut sim = machine();
        let mutex = if inherits { sim.os.create_pi_mutex() } else { sim.os.create_mutex() };
        spawn(&mut sim, 0, SchedAttr::NORMAL, [lock(mutex), Op::SleepUntil(Ns::from_ms(20))]);
        for (series, attr) in [(1, SchedAttr::NORMAL), (2, fifo(20))] {
            let report = Op::Report { series, value: 0 };
            spawn(&mut sim, u64::from(series), attr, [lock(mutex), report, unlock(mutex)]);
        }
        let end = sim.run(Ns::from_ms(1_000));
        if inherits {
            assert_eq!((end, order(&sim)), (End::Finished, vec![2, 1]));
            assert!(sim.samples[0].at >= Ns::from_ms(20), "{:?}", sim.samples);
        } else {
            assert_eq!(end, End::Deadlock { sleeping: 2 });
        }
    }
}
