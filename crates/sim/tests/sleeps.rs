//! Sleeps until a time.

use crate::booted;
use machine::prices::Prices;
use os::OsRules;
use os::hrtimer::PassedSleep;
use sim::engine::LinuxSim;
use sim::program::{Op, Steps, TaskSpec};
use units::{CpuId, Ns};

/// How often a task goes to sleep that works for 2 ms, and then asks to sleep until `until` ms.
fn sleeps(passed_sleep: PassedSleep, until: u64) -> u64 {
    let rules = OsRules { passed_sleep, ..OsRules::V6_12 };
    let mut sim: LinuxSim<false> = booted("pack:1 core:1 pu:1", Prices::free(), rules);
    let ops = [Op::WorkFor(Ns::from_ms(2)), Op::SleepUntil(Ns::from_ms(until)), Op::WorkFor(Ns::from_ms(10))];
    let task = sim.spawn(CpuId(0), TaskSpec::new("sleeper", Steps(ops.into_iter())));
    sim.run(Ns::from_ms(8));
    sim.sched.task[task].nvcsw
}

#[test]
fn a_sleep_until_a_time_that_has_passed_is_none_in_v7_2() {
    assert_eq!([1, 5].map(|until| sleeps(PassedSleep::Sleeps, until)), [1, 1]);
    assert_eq!([1, 5].map(|until| sleeps(PassedSleep::GoesOn, until)), [0, 1]);
}
