//! Threads whose process's first one is gone.

use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::Prices;
use machine::topology::{Numbering, from_synthetic};
use os::{Os, OsRules};
use sched::core::{Boot, Sched};
use sched::versions::V6_1;
use sim::engine::{End, LinuxSim, Sim};
use sim::program::{AddressSpace, Op, Outcome, Steps, TaskSpec};
use units::{CpuId, Ns};

fn machine() -> LinuxSim<false> {
    let topology = from_synthetic("pack:1 l3:1 core:2 pu:1", "test", Numbering::LinuxX86).expect("a valid machine");
    let kernel = V6_1;
    let hardware = Hardware::new(topology.clone(), Prices::free(), kernel.layout(), IdleRules::V4_15, 1);
    let boot = Boot::new(kernel, topology.cpu_topology(), 250);
    Sim::new(Sched::new(hardware, boot), Os::new(OsRules::V6_1), 250)
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
