//! What a task's run time takes from where it runs and from what runs beside it.

use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::Prices;
use machine::smt::{SmtPrices, WorkKind};
use machine::topology::{Numbering, Topology, from_synthetic};
use os::pipe::PipeRules;
use os::preempt::Preempt;
use os::{Os, OsRules};
use sched::core::{Boot, Sched};
use sched::versions::V6_1;
use sim::engine::{LinuxSim, Sim};
use sim::program::{Op, Outcome, Program, TaskSpec};
use units::{CpuId, CpuMask, Ns};

/// Does so much work, and reports how long it took in us.
struct Worker {
    series: u32,
    work: Option<Ns>,
    began: Option<Ns>,
}

impl Program for Worker {
    fn next(&mut self, last: Outcome) -> Op {
        if let Some(work) = self.work.take() {
            self.began = Some(last.now);
            return Op::WorkFor(work);
        }
        match self.began.take() {
            Some(began) => Op::Report { series: self.series, value: (last.now - began).0 / 1000 },
            None => Op::Exit,
        }
    }
}

fn machine(topology: &Topology, prices: Prices) -> LinuxSim<true> {
    let hardware = Hardware::new(topology.clone(), prices, V6_1.layout(), IdleRules::V6_1, 1);
    let boot = Boot {
        kernel: V6_1,
        topology: topology.cpu_topology(),
        hz: 250,
        features: V6_1.features,
        sysctl: V6_1.sysctl(topology.nr_cpus()),
        isolated: Default::default(),
    };
    let rules = OsRules {
        pipe: PipeRules::Split,
        preempt: Preempt::None,
        migration_limit: os::memory::MigrationLimit::None,
        net: os::net::NetRules::V6_1,
    };
    Sim::new(Sched::new(hardware, boot), Os::new(rules), 250)
}

/// A task that works for `ms` milliseconds on its CPU.
fn worker(series: u32, cpu: usize, ms: u64) -> TaskSpec {
    let program = Worker { series, work: Some(Ns::from_ms(ms)), began: None };
    TaskSpec { cpus: Some(CpuMask::single(CpuId::new(cpu))), ..TaskSpec::new("worker", program) }
}

/// How long each took, in us.
fn took(mut sim: LinuxSim<true>, tasks: Vec<TaskSpec>) -> Vec<u64> {
    // CPUs that wait for work have halted.
    sim.idle(Ns::from_ms(1));
    let mut took = vec![0; tasks.len()];
    for task in tasks {
        sim.spawn(CpuId(0), task);
    }
    sim.run(Ns::from_ms(10_000));
    for sample in &sim.samples {
        took[sample.series as usize] = sample.value;
    }
    took
}

fn near(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) * 100 <= expected
}

#[test]
fn a_thread_is_as_fast_as_its_sibling_leaves_it_until_that_halts() {
    let topology = from_synthetic("pack:1 l3:1 core:2 pu:2", "test", Numbering::LinuxX86).expect("a valid machine");
    let smt = SmtPrices { pair: [[500, 800], [750, 1000]], threads: Vec::new() };
    let run = |kinds: [WorkKind; 2], cpus: [usize; 2]| {
        let prices = Prices { smt: smt.clone(), ..Prices::free() };
        let tasks = [0, 1].map(|n| TaskSpec { kind: kinds[n], ..worker(n as u32, cpus[n], 20 * (n as u64 + 1)) });
        took(machine(&topology, prices), tasks.into())
    };
    let (compute, memory) = (WorkKind::Compute, WorkKind::Memory);
    // 20 and 40 ms of work: the second does half of its work beside the first, and the rest alone.
    let [first, second] = run([compute, compute], [0, 2])[..] else { unreachable!() };
    assert!(near(first, 40_000) && near(second, 60_000), "{first} {second}");
    let [first, second] = run([compute, memory], [0, 2])[..] else { unreachable!() };
    // The first takes 25 ms, in which the second does 18.75 of its 40.
    assert!(near(first, 25_000) && near(second, 46_250), "{first} {second}");
    let [first, second] = run([memory, memory], [0, 2])[..] else { unreachable!() };
    assert!(near(first, 20_000) && near(second, 40_000), "{first} {second}");
    // Cores of their own.
    let [first, second] = run([compute, compute], [0, 1])[..] else { unreachable!() };
    assert!(near(first, 20_000) && near(second, 40_000), "{first} {second}");
}

#[test]
fn four_threads_of_a_core_share_what_the_machine_says_that_four_do() {
    let topology = from_synthetic("pack:1 l3:1 core:2 pu:4", "test", Numbering::AsListed).expect("a valid machine");
    for (threads, expected) in [(vec![], 40_000), (vec![0, 0, 0, 0, 400], 25_000)] {
        let smt = SmtPrices { pair: [[500; 2]; 2], threads };
        let prices = Prices { smt, ..Prices::free() };
        let tasks = (0..4).map(|n| worker(n as u32, n, 10)).collect();
        let took = took(machine(&topology, prices), tasks);
        assert!(took.iter().all(|&took| near(took, expected)), "{took:?}");
    }
}
