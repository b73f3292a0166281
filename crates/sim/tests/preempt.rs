//! Where a task that executes in the kernel gives way, by the kernel's preemption model.

use crate::booted;
use machine::prices::Prices;
use os::preempt::Preempt;
use os::sync::SyncOp;
use os::{OsRules, paths};
use sched::attr::SchedAttr;
use sched::sched::Policy;
use sim::engine::{End, LinuxSim};
use sim::program::{Op, Outcome, Program, TaskSpec};
use std::collections::VecDeque;
use units::{CpuId, Cycles, Ns};

/// Does what is on its list, then exits.
struct List(VecDeque<Op>);

impl Program for List {
    fn next(&mut self, _last: Outcome) -> Op {
        self.0.pop_front().unwrap_or(Op::Exit)
    }
}

fn task(comm: &str, attr: SchedAttr, ops: impl IntoIterator<Item = Op>) -> TaskSpec {
    TaskSpec { attr: Some(attr), ..TaskSpec::new(comm, List(ops.into_iter().collect())) }
}

fn fifo(priority: u32) -> SchedAttr {
    SchedAttr { sched_policy: Policy::Fifo, sched_priority: priority, ..SchedAttr::NORMAL }
}

/// One CPU of 1 GHz on which only forks take time: 10 ms.
fn machine(preempt: Preempt) -> LinuxSim<true> {
    let mut prices = Prices::free();
    prices.paths[paths::DO_FORK.0 as usize] = Cycles(10_000_000);
    booted("pack:1 core:1 pu:1", prices, OsRules { preempt, ..OsRules::V6_1 })
}

fn run(sim: &mut LinuxSim<true>) {
    assert_eq!(sim.run(Ns::from_ms(1000)), End::Finished);
}

/// Series of the samples in the order of their reports.
fn order(sim: &LinuxSim<true>) -> Vec<u32> {
    sim.samples.iter().map(|sample| sample.series).collect()
}

#[test]
fn a_fork_is_preempted_in_the_middle_where_might_sleep_reschedules() {
    let late = |preempt| {
        let mut sim = machine(preempt);
        let child = task("child", SchedAttr::NORMAL, []);
        sim.spawn(
            CpuId(0),
            task("forker", SchedAttr::NORMAL, [Op::SleepFor(Ns::from_ms(1)), Op::Fork(Box::new(child))]),
        );
        let waker = [Op::SleepUntil(Ns::from_ms(5)), Op::Report { series: 0, value: 0 }];
        sim.spawn(CpuId(0), task("sleeper", fifo(50), waker));
        run(&mut sim);
        sim.samples[0].at.0 - 5_000_000
    };
    // A fork of 10 ms, begun at 1 ms, is one piece, or many.
    assert!((5_000_000..7_000_000).contains(&late(Preempt::None)), "{}", late(Preempt::None));
    for preempt in [Preempt::Voluntary, Preempt::Full] {
        assert!(late(preempt) < 10_000_000 / 32 + 100_000, "{preempt:?}: {}", late(preempt));
    }
}

#[test]
fn a_waker_of_many_is_preempted_between_them_only_by_full_preemption() {
    let first = |preempt| {
        let mut sim = machine(preempt);
        let (barrier, semaphore) = (sim.os.create_barrier(3), sim.os.create_semaphore());
        let waiter = |series| [Op::Sync(SyncOp::Barrier(barrier)), Op::Report { series, value: 0 }];
        let helped = [Op::Sync(SyncOp::SemaphoreWait(semaphore)), Op::Report { series: 15, value: 0 }];
        sim.spawn(CpuId(0), task("helper", fifo(15), helped));
        sim.run(Ns::from_ms(1));
        sim.spawn(CpuId(0), task("second", fifo(18), waiter(18)));
        sim.run(Ns::from_ms(2));
        let helps = waiter(20).into_iter().chain([Op::Sync(SyncOp::SemaphorePost(semaphore))]);
        sim.spawn(CpuId(0), task("first", fifo(20), helps));
        sim.run(Ns::from_ms(3));
        sim.spawn(CpuId(0), task("last", SchedAttr::NORMAL, waiter(0)));
        run(&mut sim);
        order(&sim)
    };
    // The highest priority is woken first. With all awake priority decides; between them there is nobody yet but whom the first has woken.
    assert_eq!(first(Preempt::None), [20, 18, 15, 0]);
    assert_eq!(first(Preempt::Voluntary), [20, 18, 15, 0]);
    assert_eq!(first(Preempt::Full), [20, 15, 18, 0]);
}

#[test]
fn a_dying_task_is_preempted_by_the_parent_that_it_wakes() {
    let switches = |preempt| {
        let mut sim = machine(preempt);
        let child = task("child", SchedAttr::NORMAL, []);
        let parent = [Op::Fork(Box::new(child)), Op::Wait, Op::Report { series: 0, value: 0 }];
        sim.spawn(CpuId(0), task("parent", fifo(10), parent));
        run(&mut sim);
        sim.sched.rq[CpuId(0)].nr_switches
    };
    // The child is switched to once more, to die.
    assert_eq!(switches(Preempt::Full), switches(Preempt::Voluntary) + 1);
    assert_eq!(switches(Preempt::None), switches(Preempt::Voluntary));
}
