//! A small machine for the tests of models. The cost model is off, so only what programs ask for takes time. Timers are
//! the exception: they are late by their slack of 50 us when nothing else interrupts.

use crate::{Instance, Values, workload};
use machine::disk::{Disk, WriteCache};
use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::java::Java;
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
use sched::versions::{Kernel, V4_15};
use sim::engine::{End, LinuxSim, Sim};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{CpuId, Cycles, Ns, Ps};

/// A workload of which all tasks have ended.
pub struct Ran<const COSTS: bool = false> {
    pub instance: Box<dyn Instance>,
    pub sim: LinuxSim<COSTS>,
}

impl<const COSTS: bool> Ran<COSTS> {
    pub fn rows(&self) -> Vec<Vec<u64>> {
        self.instance.rows(&self.sim.samples)
    }

    /// Wakeups of tasks that slept.
    pub fn wakeups(&self) -> u64 {
        self.sim.sched.nr_wakeups
    }
}

/// How often each task woke which other one, by names cut at the slash. An interrupt wakes as `idle` on an idle CPU,
/// and otherwise as the task it interrupts. A move to another CPU is listed as if `migrated` had woken the task.
pub type Edges = BTreeMap<(String, String), u64>;

/// A sink that fills [`Edges`].
#[derive(Default)]
struct Watch {
    edges: Rc<RefCell<Edges>>,
    names: BTreeMap<TaskId, String>,
    /// The task that each CPU executes.
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
        // High-priority bound workers are told apart from normal ones.
        let (name, rest) = comm.split_once('/').unwrap_or((comm, ""));
        let suffix = if rest.ends_with('H') { "H" } else { "" };
        self.names.insert(task, format!("{name}{suffix}"));
    }
}

/// Runs a registered workload with these parameters to its end, by v4.15 on CPUs that share a cache.
pub fn run(name: &str, cpus: usize, parameters: &[(&str, u64)]) -> Ran {
    play(instance(name, parameters), boot(cpus, V4_15, None))
}

/// [`run`], and who woke whom; `change` may give the kernel other rules.
pub fn edges(name: &str, cpus: usize, parameters: &[(&str, u64)], change: impl FnOnce(&mut Os)) -> (Ran, Edges) {
    watched(name, cpus, parameters, change)
}

/// The same where all that the kernel does takes a little, and a transfer of a cache line with it: [`boot`].
pub fn priced_edges(name: &str, cpus: usize, parameters: &[(&str, u64)]) -> (Ran<true>, Edges) {
    watched(name, cpus, parameters, |_| {})
}

fn watched<const COSTS: bool>(
    name: &str,
    cpus: usize,
    parameters: &[(&str, u64)],
    change: impl FnOnce(&mut Os),
) -> (Ran<COSTS>, Edges) {
    let watch = Watch::default();
    let edges = watch.edges.clone();
    let mut sim = boot::<COSTS>(cpus, V4_15, Some(Box::new(watch)));
    change(&mut sim.os);
    let ran = play(instance(name, parameters), sim);
    let edges = edges.borrow().clone();
    (ran, edges)
}

/// A registered workload with these parameters.
pub fn instance(name: &str, parameters: &[(&str, u64)]) -> Box<dyn Instance> {
    let model = workload(name).expect("it is registered");
    let mut values = Values::defaults(model);
    parameters.iter().for_each(|(name, value)| values.set(name, *value));
    (model.build)(&values)
}

/// Starts an instance on a machine and waits for its end.
pub fn play<const COSTS: bool>(instance: Box<dyn Instance>, mut sim: LinuxSim<COSTS>) -> Ran<COSTS> {
    for task in crate::start(instance.as_ref(), &mut sim) {
        sim.spawn(CpuId(0), task);
    }
    assert_eq!(sim.run(Ns::from_ms(3_600_000)), End::Finished);
    Ran { instance, sim }
}

/// A machine whose CPUs share a cache, just booted, with `sink` as its listener.
pub fn boot<const COSTS: bool>(cpus: usize, kernel: Kernel, sink: Option<Box<dyn Sink>>) -> LinuxSim<COSTS> {
    boot_by(cpus, kernel, RULES, sink)
}

/// The rest of the kernel's rules, where a test does not choose others.
pub const RULES: OsRules = OsRules {
    pipe: PipeRules::Single,
    preempt: Preempt::None,
    migration_limit: MigrationLimit::None,
    net: NetRules::V4_5,
    pi: os::sync::rtmutex::PiRules::V4_15,
    ..OsRules::V4_5
};

/// [`boot`] with another network.
pub fn boot_with_net<const COSTS: bool>(cpus: usize, net: NetRules) -> LinuxSim<COSTS> {
    boot_by(cpus, V4_15, OsRules { net, ..RULES }, None)
}

fn boot_by<const COSTS: bool>(
    cpus: usize,
    kernel: Kernel,
    rules: OsRules,
    sink: Option<Box<dyn Sink>>,
) -> LinuxSim<COSTS> {
    let mut prices = Prices::free();
    if COSTS {
        // Every path takes a little time, so that no two things happen at the same moment.
        prices.paths.iter_mut().for_each(|path| *path = Cycles(17));
        prices.lines.transfer.iter_mut().for_each(|transfer| *transfer = Ps(41_300));
        prices.ipi_delivery = Ps(613_000);
        prices.idle_states[0].wake = Ps(907_000);
    }
    let topology = from_synthetic(&format!("pack:1 l3:1 core:{cpus} pu:1"), "test", Numbering::LinuxX86);
    let topology = topology.expect("a valid machine");
    let mut hardware = Hardware::new(topology.clone(), prices, kernel.layout(), IdleRules::V4_15, 1);
    let (write, flush) = (Ps::from_ns(60_000), Ps::from_ns(60_000));
    let cache = WriteCache::FlushOnly;
    hardware.java = Some(Java {
        task: Cycles(54_000),
        issue: Cycles(6_000),
        select: Cycles(1_500),
        decode: Cycles(4_500),
        scan: Cycles(2_500),
        message: 512,
        allocation: 20 << 10,
        young: 2 << 30,
        pause: Ps::from_ns(50_000_000),
        passes: 512,
    });
    hardware.disk = Some(Disk { write, ps_per_kib: 0, flush, channels: 1, cache, one_interrupt: true });
    if let Some(sink) = sink {
        // The sink must be set before the scheduler is created, because the scheduler announces its own tasks.
        hardware.set_sink(sink);
    }
    let boot = Boot { sysctl: Sysctl::new(cpus), ..Boot::new(kernel, topology.cpu_topology(), 250) };
    Sim::new(Sched::new(hardware, boot), Os::new(rules, 250))
}
