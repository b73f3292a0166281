//! A small machine for the tests of models: the cost model off, so nothing takes time but what programs ask for, and timers, which are
//! late by their slack of 50 us when nothing else interrupts.

use crate::{Instance, Values, workload};
use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::Prices;
use machine::topology::{Numbering, from_synthetic};
use os::memory::MigrationLimit;
use os::net::NetRules;
use os::pipe::PipeRules;
use os::preempt::Preempt;
use os::{Os, OsRules};
use sched::core::{Boot, Sched};
use sched::sysctl::Sysctl;
use sim::engine::{End, LinuxSim, Sim};
use units::{CpuId, Ns};

/// A workload that has ended, all tasks of it.
pub struct Ran {
    pub instance: Box<dyn Instance>,
    pub sim: LinuxSim<false>,
}

impl Ran {
    pub fn rows(&self) -> Vec<Vec<u64>> {
        self.instance.rows(&self.sim.samples)
    }

    /// Wakeups of tasks that slept.
    pub fn wakeups(&self) -> u64 {
        self.sim.sched.nr_wakeups
    }
}

/// Runs a registered workload with these parameters to its end, by v4.15 on CPUs that share a cache.
pub fn run(name: &str, cpus: usize, parameters: &[(&str, u64)]) -> Ran {
    let model = workload(name).expect("it is registered");
    let mut values = Values::defaults(model);
    parameters.iter().for_each(|(name, value)| values.set(name, *value));
    let instance = (model.build)(&values);
    let topology = from_synthetic(&format!("pack:1 l3:1 core:{cpus} pu:1"), "test", Numbering::LinuxX86);
    let topology = topology.expect("a valid machine");
    let kernel = sched::versions::V4_15;
    let hardware = Hardware::new(topology.clone(), Prices::free(), kernel.layout(), IdleRules::V4_15, 1);
    let boot = Boot {
        kernel,
        topology: topology.cpu_topology(),
        hz: 250,
        features: kernel.features,
        sysctl: Sysctl::new(cpus),
        isolated: Default::default(),
    };
    let rules = OsRules {
        pipe: PipeRules::Single,
        preempt: Preempt::None,
        migration_limit: MigrationLimit::None,
        net: NetRules::V4_5,
    };
    let mut sim = Sim::new(Sched::new(hardware, boot), Os::new(rules), 250);
    for task in crate::start(instance.as_ref(), &mut sim) {
        sim.spawn(CpuId(0), task);
    }
    assert_eq!(sim.run(Ns::from_ms(3_600_000)), End::Finished, "{name}");
    Ran { instance, sim }
}
