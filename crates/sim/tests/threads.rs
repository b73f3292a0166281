//! Threads and processes, and who waits for them.

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

/// What `starter` reports at the end of each of its steps, in ms.
fn reports(steps: Vec<Op>) -> Vec<u64> {
    let mut sim = machine();
    let steps = steps.into_iter().flat_map(|step| [step, Op::Report { series: 0, value: 0 }]).collect::<Vec<_>>();
    sim.spawn(CpuId(0), TaskSpec::new("starter", Steps(steps.into_iter())));
    assert_eq!(sim.run(Ns::from_ms(100)), End::Finished);
    sim.samples.iter().map(|sample| sample.at.0 / 1_000_000).collect()
}

#[test]
fn who_calls_vfork_waits_for_another_program_or_the_end() {
    let child = |memory, steps: Vec<Op>| {
        Op::Fork(Box::new(TaskSpec { memory, ..TaskSpec::new("child", Steps(steps.into_iter())) }))
    };
    let ms = |ms| Op::WorkFor(Ns::from_ms(ms));
    let executes = || vec![ms(5), Op::Exec, ms(3)];
    assert_eq!(reports(vec![child(AddressSpace::Own, executes()), Op::Wait]), [0, 8]);
    assert_eq!(reports(vec![child(AddressSpace::Borrowed, executes()), Op::Wait]), [5, 8]);
    // Without another program; it waits in its turn, and is waited for.
    let grandchild = child(AddressSpace::Borrowed, vec![ms(2)]);
    assert_eq!(reports(vec![child(AddressSpace::Borrowed, vec![ms(1), grandchild, ms(1)]), Op::Wait]), [4, 4]);
    // Again and again by one.
    assert_eq!(reports((0..3).map(|_| child(AddressSpace::Borrowed, executes())).collect()), [5, 10, 15]);
}
