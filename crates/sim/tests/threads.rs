//! Threads whose process's first one is gone.

use crate::booted;
use machine::prices::Prices;
use os::OsRules;
use sim::engine::{End, LinuxSim};
use sim::program::{AddressSpace, Op, Outcome, Steps, TaskSpec};
use units::{CpuId, Ns};

fn machine() -> LinuxSim<false> {
    booted("pack:1 l3:1 core:2 pu:1", Prices::free(), OsRules::V6_1)
}

fn thread(program: impl sim::program::Program + 'static) -> TaskSpec {
    TaskSpec { memory: AddressSpace::Parent, ..TaskSpec::new("thread", program) }
}

#[test]
fn a_thread_that_outlives_the_first_starts_others_and_waits_for_them() {
    // `another`: a process that has the first thread's number meanwhile.
    for another in [false, true] {
        let mut sim = machine();
        let mut step = 0;
        let outlives = move |last: Outcome| {
            step += 1;
            match step {
                1 => Op::SleepFor(Ns::from_ms(5)),
                2 => Op::Fork(Box::new(thread(Steps([Op::SleepFor(Ns::from_ms(5))].into_iter())))),
                3 => Op::Wait,
                4 => Op::Report { series: 0, value: last.value },
                _ => Op::Exit,
            }
        };
        let first = [Op::Fork(Box::new(thread(outlives))), Op::Exit];
        sim.spawn(CpuId(0), TaskSpec::new("first", Steps(first.into_iter())));
        sim.run(Ns::from_ms(2));
        if another {
            let waits = [Op::SleepFor(Ns::from_ms(4)), Op::Wait];
            sim.spawn(CpuId(0), TaskSpec::new("another", Steps(waits.into_iter())));
        }
        assert_eq!(sim.run(Ns::from_ms(100)), End::Finished, "another: {another}");
        assert_eq!(sim.samples.iter().map(|sample| sample.value).collect::<Vec<_>>(), [1], "another: {another}");
    }
}
