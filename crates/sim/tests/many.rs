//! Thousands of tasks: what is asked of the host's memory ahead of turns names only what there is.

use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::Prices;
use machine::topology::{Numbering, from_synthetic};
use os::pipe::PipeId;
use os::preempt::Preempt;
use os::{Os, OsRules};
use sched::core::{Boot, Sched};
use sched::versions::V6_12;
use sim::engine::{End, LinuxSim, Sim};
use sim::program::{Op, Steps, TaskSpec};
use units::{CpuId, Cycles, MANY_TASKS, Ns};

/// Sends a byte, waits for one, and works a while; then once more; `first`: in this order.
fn player(from: PipeId, to: PipeId, first: bool) -> TaskSpec {
    let (send, receive) = (move || Op::Write { pipe: to, bytes: 1 }, move || Op::Read { pipe: from, bytes: 1 });
    let round = move || match first {
        true => [send(), receive(), Op::Work(Cycles(5_000))],
        false => [receive(), Op::Work(Cycles(5_000)), send()],
    };
    TaskSpec::new("player", Steps((0..2).flat_map(move |_| round())))
}

#[test]
fn more_tasks_than_the_hosts_caches_hold_run_to_their_end() {
    // The CPUs are no power of two, so some places of the tournament are nobody's.
    for cpus in [1, 3, 24] {
        let topology =
            from_synthetic(&format!("pack:1 l3:1 core:{cpus} pu:1"), "test", Numbering::LinuxX86).expect("valid");
        let hardware = Hardware::<true>::new(topology.clone(), Prices::free(), V6_12.layout(), IdleRules::V6_12, 1);
        let boot = Boot::new(V6_12, topology.cpu_topology(), 250);
        let rules = OsRules { preempt: Preempt::None, ..OsRules::V6_12 };
        let mut sim: LinuxSim<true> = Sim::new(Sched::new(hardware, boot), Os::new(rules, 250));
        for _ in 0..MANY_TASKS / 2 + 10 {
            let (there, back) = (sim.os.create_pipe(), sim.os.create_pipe());
            sim.spawn(CpuId(0), player(back, there, true));
            sim.spawn(CpuId(0), player(there, back, false));
        }
        assert!(sim.sched.task.len() > MANY_TASKS);
        assert_eq!(sim.run(Ns::from_ms(10_000)), End::Finished);
        // Who never slept for a message found it there.
        assert!(sim.sched.nr_wakeups > MANY_TASKS as u64);
    }
}

#[test]
fn each_of_many_names_is_one_in_profiles() {
    const NAMES: usize = (1 << 16) + 2;
    let topology = from_synthetic("pack:1 l3:1 core:1 pu:1", "test", Numbering::LinuxX86).expect("valid");
    let hardware = Hardware::<false>::new(topology.clone(), Prices::free(), V6_12.layout(), IdleRules::V6_12, 1);
    let boot = Boot::new(V6_12, topology.cpu_topology(), 250);
    let mut sim: LinuxSim<false> = Sim::new(Sched::new(hardware, boot), Os::new(OsRules::V6_12, 250));
    let ends = || Steps([Op::Exit].into_iter());
    for name in 1..NAMES {
        sim.spawn(CpuId(0), TaskSpec::new(&format!("task{name}"), ends()));
        if name % 1000 == 0 {
            sim.run(Ns::from_ms(100_000));
        }
    }
    sim.spawn(CpuId(0), TaskSpec::new("task1", ends()));
    assert_eq!(sim.comms().len(), NAMES);
    assert_eq!([0, 1, NAMES - 1].map(|number| sim.comms()[number].as_str()), ["swapper", "task1", "task65537"]);
}

#[test]
fn who_wants_to_look_meanwhile_is_let_though_no_time_passes() {
    let topology = from_synthetic("pack:1 l3:1 core:2 pu:1", "test", Numbering::LinuxX86).expect("valid");
    let build = || {
        let hardware = Hardware::<false>::new(topology.clone(), Prices::free(), V6_12.layout(), IdleRules::V6_12, 1);
        let boot = Boot::new(V6_12, topology.cpu_topology(), 250);
        let mut sim: LinuxSim<false> = Sim::new(Sched::new(hardware, boot), Os::new(OsRules::V6_12, 250));
        let cpus = |cpu| Some(units::CpuMask::single(CpuId(cpu)));
        for cpu in [0, 0, 1] {
            let yields = (0..10_000).map(|_| Op::Yield).chain([Op::WorkFor(Ns::from_ms(1))]);
            sim.spawn(CpuId(0), TaskSpec { cpus: cpus(cpu), ..TaskSpec::new("yields", Steps(yields)) });
        }
        sim
    };
    let mut whole = build();
    assert_eq!(whole.run(Ns::from_ms(100)), End::Finished);
    let (mut pieces, mut looks) = (build(), 0);
    let end = loop {
        let before = pieces.events;
        match pieces.run_events(Ns::from_ms(100), 1_000) {
            Some(end) => break end,
            None => assert!(pieces.events - before <= 1_001),
        }
        looks += 1;
    };
    assert_eq!((end, pieces.events, pieces.now()), (End::Finished, whole.events, whole.now()));
    assert!(looks >= 20, "{looks}");
}
