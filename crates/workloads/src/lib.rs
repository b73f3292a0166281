//! The benchmarks by which Linux scheduler changes are judged. Each has one file with its documentation, model and
//! tests.
//!
//! A [`Workload`] is an entry of the registry: its name, its parameters, and how to build a run of it. A built run is an
//! [`Instance`]: the tasks it starts and the metric it takes from what they report.

mod chance;
pub mod cyclictest;
pub mod dbench;
mod disk;
#[cfg(test)]
mod fixture;
pub mod frame_pipeline;
pub mod futexes;
pub mod groups;
pub mod hackbench;
pub mod kernel_build;
mod latency;
pub mod netperf;
pub mod pipetest;
mod refusal;
pub mod request_server;
pub mod rt_app;
pub mod schbench;
pub mod script;
pub mod specjbb;
pub mod tbench4;
mod timed;
pub mod trace;
#[cfg(test)]
mod wake_graphs;

pub use groups::{GroupError, GroupSpec, Groups};
pub use timed::timed;

use machine::hardware::Hardware;
use machine::java::Java;
use os::Os;
use sched::sched::TgId;
use sched::scheduler::Scheduler;
use sim::engine::{Sample, Sim};
use sim::noise::Haste;
use sim::program::TaskSpec;
use std::sync::OnceLock;
use units::CpuId;

/// One parameter of a workload, always a whole number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub default: u64,
    pub range: (u64, u64),
    pub unit: &'static str,
    pub doc: &'static str,
}

/// How MMTests summarises the workload's samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Summary {
    /// One arithmetic mean per operation, of times: lower is better.
    Time,
    /// One harmonic mean per operation, of rates: higher is better.
    Rate,
    /// As [`Summary::Time`] and [`Summary::Rate`], for samples whose distribution matters: the current MMTests adds
    /// their percentiles and the means of the best (dbench, tbench).
    SkewedTime,
    SkewedRate,
    /// The same of percentiles that a run prints now and then (schbench).
    NormalisedTime,
    NormalisedRate,
    /// pipetest's 17 order statistics of one run's samples: lower is better.
    Variabletime,
    /// One figure per operation, a time under this name: lower is better.
    TimeFigure(&'static str),
    /// One figure per operation, a rate under this name: higher is better.
    RateFigure(&'static str),
}

/// A benchmark that can be asked for by name.
pub struct Workload {
    pub name: &'static str,
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    /// The parameter whose values are the rows of its table, where there is one.
    pub key: Option<&'static str>,
    /// Label of the one row of a table without a key.
    pub operation: &'static str,
    /// Labels of the rows that one run measures, if it measures several; the key's value follows after a hyphen.
    pub rows: &'static [&'static str],
    pub statistics: Summary,
    pub unit: &'static str,
    /// Samples are integers: this many make one of `unit`.
    pub per_unit: u64,
    /// Digits after the point in MMTests's table.
    pub decimals: usize,
    pub build: fn(&Values) -> Box<dyn Instance>,
}

/// One value for each of a workload's parameters, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    parameters: &'static [Parameter],
    values: Vec<u64>,
}

impl Values {
    pub fn defaults(workload: &Workload) -> Values {
        Values { parameters: workload.parameters, values: workload.parameters.iter().map(|p| p.default).collect() }
    }

    /// Sets a parameter. The caller has checked that it exists and that the value is in its range.
    pub fn set(&mut self, name: &str, value: u64) {
        let at = self.parameters.iter().position(|p| p.name == name).expect("a known parameter");
        let (low, high) = self.parameters[at].range;
        assert!((low..=high).contains(&value), "{name} = {value} is outside {low}..={high}");
        self.values[at] = value;
    }

    pub fn get(&self, name: &str) -> u64 {
        self.parameters.iter().position(|p| p.name == name).map(|at| self.values[at]).expect("a known parameter")
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.parameters.iter().map(|p| p.name).zip(self.values.iter().copied())
    }
}

/// The series in which a program reports the beginning (1) and the end (0) of what it measures. Profiles cover only
/// that time.
pub const MEASURED: u32 = u32::MAX;

/// One run of a workload.
pub trait Instance {
    /// Creates what the tasks share and returns the tasks to start, in order.
    fn start(&self, os: &mut Os) -> Vec<TaskSpec>;

    /// The highest CPU that the run asks for by number. A machine must have it.
    fn last_cpu(&self) -> Option<CpuId> {
        None
    }

    /// The task groups that must exist first, parents before their children. [`start`] creates them.
    fn groups(&self) -> Vec<GroupSpec> {
        Vec::new()
    }

    /// [`Instance::start`] with the ids of [`Instance::groups`], in their order.
    fn start_in(&self, os: &mut Os, groups: &[TgId]) -> Vec<TaskSpec> {
        assert!(groups.is_empty(), "nobody asked for groups");
        self.start(os)
    }

    /// [`Instance::start_in`] on a machine that knows what a Java server's work takes.
    fn start_with(&self, os: &mut Os, groups: &[TgId], _java: Option<Java>) -> Vec<TaskSpec> {
        self.start_in(os, groups)
    }

    /// What a user would count: how many units the run did, and what one is called. `None` where the samples are
    /// already rates of it.
    fn operations(&self, _reported: &[Sample]) -> Option<(u64, &'static str)> {
        None
    }

    /// Whether the kernel's own threads run alongside, and more often than they really do, until the warm-up is over.
    /// This makes a short warm-up stand for a long one: tasks stay where they last ran until something is in their way,
    /// and after a while the kernel's own threads are.
    fn haste(&self) -> Option<Haste> {
        None
    }

    /// What the benchmark would print: one number for each sample, in units of 1/`Workload::per_unit`. For a run that
    /// measures several rows see [`Instance::rows`].
    fn samples(&self, reported: &[Sample]) -> Vec<u64>;

    /// The samples of each row that a run measures, in the order of `Workload::rows`.
    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        vec![self.samples(reported)]
    }
}

/// Creates what an instance's tasks share, including its task groups, and returns the tasks to start, in order.
///
/// # Panics
/// If the kernel refuses a group.
pub fn start<const COSTS: bool, S>(instance: &dyn Instance, sim: &mut Sim<COSTS, S>) -> Vec<TaskSpec>
where
    S: Scheduler<Arch = Hardware<COSTS>>,
{
    start_among(instance, sim, &mut Groups::default()).unwrap_or_else(|error| panic!("{}", error.refusal))
}

/// [`start`] where there are `groups` already: groups that the instance asks for and that exist are used as they are.
///
/// # Errors
/// As of [`Groups::create`]; indices are those of [`Instance::groups`].
pub fn start_among<const COSTS: bool, S>(
    instance: &dyn Instance,
    sim: &mut Sim<COSTS, S>,
    groups: &mut Groups,
) -> Result<Vec<TaskSpec>, GroupError>
where
    S: Scheduler<Arch = Hardware<COSTS>>,
{
    let specs = instance.groups();
    groups::create(sim, groups, &specs)?;
    let ids: Vec<TgId> = specs.iter().map(|spec| groups.get(&spec.path).expect("it was created")).collect();
    sim.os.node_cpus = sim.sched.arch().topology.nodes().iter().map(|node| node.cpus.clone()).collect();
    sim.os.disk = sim.sched.arch().disk.map(disk::device);
    let java = sim.sched.arch().java;
    let tasks = instance.start_with(&mut sim.os, &ids, java);
    sim.start_kernel_threads();
    if let Some(haste) = instance.haste() {
        let seed = sim.os.chance("haste", 0).next_u64();
        sim.start_noise(seed, Some(&haste));
    }
    Ok(tasks)
}

/// Our workloads that take only numbers, by name. Workloads that take a file have their own entry points: [`rt_app`],
/// [`script`], [`trace`].
pub const WORKLOADS: &[Workload] = &[
    pipetest::WORKLOAD,
    pipetest::PERF_BENCH_PIPE,
    hackbench::PIPES,
    hackbench::SOCKETS,
    hackbench::PERF_BENCH_MESSAGING,
    netperf::TCP,
    netperf::UDP,
    netperf::TCP_RR,
    netperf::UDP_RR,
    tbench4::WORKLOAD,
    tbench4::LOAD_FILES,
    dbench::WORKLOAD,
    dbench::LOAD_FILES,
    schbench::current::WORKLOAD,
    schbench::current::RPS,
    schbench::earlier::WORKLOAD,
    specjbb::WORKLOAD,
    specjbb::PRESET,
    futexes::STRESS_FUTEX,
    futexes::SYSBENCH,
    cyclictest::WORKLOAD,
    kernel_build::WORKLOAD,
    request_server::REDIS,
    request_server::NGINX,
    frame_pipeline::WORKLOAD,
];

/// Workloads that a program adds to ours.
static OWN: OnceLock<&'static [Workload]> = OnceLock::new();

/// Makes `own` available by name, like ours.
///
/// # Panics
/// If it is called twice, or a name is taken.
pub fn add(own: &'static [Workload]) {
    for (at, workload) in own.iter().enumerate() {
        let taken = WORKLOADS.iter().chain(&own[..at]).any(|other| other.name == workload.name);
        assert!(!taken, "there is a workload {} already", workload.name);
    }
    assert!(OWN.set(own).is_ok(), "workloads are added once, all together");
}

/// Every workload that takes only numbers: ours, then those that were added.
pub fn all() -> impl Iterator<Item = &'static Workload> + Clone {
    WORKLOADS.iter().chain(OWN.get().copied().unwrap_or_default())
}

pub fn workload(name: &str) -> Option<&'static Workload> {
    all().find(|workload| workload.name == name)
}
