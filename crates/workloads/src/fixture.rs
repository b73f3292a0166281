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
use sched::sched::TaskId;
use sched::sysctl::Sysctl;
use sched::trace::{Event, Sink};
use sim::engine::{End, LinuxSim, Sim};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
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

/// How often who woke whom, by names without what follows a slash. An interrupt on a CPU that idles wakes as `idle`, on another as what it
/// interrupts; moves to another CPU stand there as if `migrated` had woken.
pub type Edges = BTreeMap<(String, String), u64>;

/// Writes [`Edges`].
#[derive(Default)]
struct Watch {
    edges: Rc<RefCell<Edges>>,
    names: BTreeMap<TaskId, String>,
    /// What each CPU executes.
    running: BTreeMap<CpuId, TaskId>,
}

impl Watch {
    fn count(&self, waker: String, wakee: TaskId) {
        *self.edges.borrow_mut().entry((waker, self.names[&wakee].clone())).or_default() += 1;
    }
}

impl Sink for Watch {
    fn event(&mut self, _time: Ns, cpu: CpuId, event: &Event) {
        match event {
            Event::SchedSwitch { next, .. } => {
                match next {
                    Some(next) => self.running.insert(cpu, *next),
                    None => self.running.remove(&cpu),
                };
            }
            Event::SchedWaking { task, .. } => {
                let waker = self.running.get(&cpu).map_or("idle", |task| &self.names[task]);
                self.count(waker.to_string(), *task);
            }
            Event::SchedMigrateTask { task, .. } => self.count("migrated".to_string(), *task),
            _ => {}
        }
    }

    fn task(&mut self, task: TaskId, _pid: u32, comm: &str, _prio: i32) {
        // Bound workers of high priority are others than those of normal one.
        let (name, rest) = comm.split_once('/').unwrap_or((comm, ""));
        let suffix = if rest.ends_with('H') { "H" } else { "" };
        self.names.insert(task, format!("{name}{suffix}"));
    }
}

/// Runs a registered workload with these parameters to its end, by v4.15 on CPUs that share a cache.
pub fn run(name: &str, cpus: usize, parameters: &[(&str, u64)]) -> Ran {
    run_as(name, cpus, parameters, |_| {}, None)
}

/// The same, with who woke whom; `change` is free to give the kernel other rules.
pub fn edges(name: &str, cpus: usize, parameters: &[(&str, u64)], change: impl FnOnce(&mut Os)) -> (Ran, Edges) {
    let watch = Watch::default();
    let edges = watch.edges.clone();
    let ran = run_as(name, cpus, parameters, change, Some(Box::new(watch)));
    let edges = edges.borrow().clone();
    (ran, edges)
}

fn run_as(
    name: &str,
    cpus: usize,
    parameters: &[(&str, u64)],
    change: impl FnOnce(&mut Os),
    sink: Option<Box<dyn Sink>>,
) -> Ran {
    let model = workload(name).expect("it is registered");
    let mut values = Values::defaults(model);
    parameters.iter().for_each(|(name, value)| values.set(name, *value));
    let instance = (model.build)(&values);
    let topology = from_synthetic(&format!("pack:1 l3:1 core:{cpus} pu:1"), "test", Numbering::LinuxX86);
    let topology = topology.expect("a valid machine");
    let kernel = sched::versions::V4_15;
    let mut hardware = Hardware::new(topology.clone(), Prices::free(), kernel.layout(), IdleRules::V4_15, 1);
    if let Some(sink) = sink {
        hardware.set_sink(sink);
    }
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
    let mut os = Os::new(rules);
    change(&mut os);
    let mut sim = Sim::new(Sched::new(hardware, boot), os, 250);
    for task in crate::start(instance.as_ref(), &mut sim) {
        sim.spawn(CpuId(0), task);
    }
    assert_eq!(sim.run(Ns::from_ms(3_600_000)), End::Finished, "{name}");
    Ran { instance, sim }
}
