//! The benchmarks by which Linux scheduler changes are judged: one file each, documentation, model and tests together.
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

impl Parameter {
    /// The highest CPU that a value puts a task on by its number: `bind`, where it is a choice, puts one side on CPU 0 and 2 the other on CPU 1.
    pub fn highest_cpu(&self, value: u64) -> Option<CpuId> {
        let of_first_cpus = self.name == "bind" && self.unit == "choice";
        value.checked_sub(1).filter(|_| of_first_cpus).map(|cpu| CpuId::new(cpu as usize))
    }
}

/// How MMTests summarises the workload's samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Summary {
    /// One arithmetic mean per operation, of times: lower is better.
    Time,
    /// One harmonic mean per operation, of rates: higher is better.
    Rate,
    /// As [`Summary::Time`] and [`Summary::Rate`], of samples whose distribution matters: MMTests's present state adds their
    /// percentiles and the means of the best (dbench, tbench).
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
    /// Labels of the rows that one run measures, where they are several; the key's value follows, after a hyphen.
    pub rows: &'static [&'static str],
    pub statistics: Summary,
    pub unit: &'static str,
    /// Samples are whole numbers, this many to the unit.
    pub per_unit: u64,
    /// Digits after the point in MMTests's table.
    pub decimals: usize,
    pub build: fn(&Values) -> Box<dyn Instance>,
}

/// A parameter's value for each of a workload's parameters, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    parameters: &'static [Parameter],
    values: Vec<u64>,
}

impl Values {
    pub fn defaults(workload: &Workload) -> Values {
        Values { parameters: workload.parameters, values: workload.parameters.iter().map(|p| p.default).collect() }
    }

    /// Sets a parameter that exists, to a value in its range; the caller has checked both.
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

/// The series in which a program says when what counts begins (1) and ends (0): profiles look at that time alone.
pub const MEASURED: u32 = u32::MAX;

/// One run of a workload.
pub trait Instance {
    /// Creates what the tasks share and returns the tasks to start, in order.
    fn start(&self, os: &mut Os) -> Vec<TaskSpec>;

    /// The task groups that must be there first, parents before their children. [`start`] creates them.
    fn groups(&self) -> Vec<GroupSpec> {
        Vec::new()
    }

    /// [`Instance::start`] with the ids of [`Instance::groups`], in their order.
    fn start_in(&self, os: &mut Os, groups: &[TgId]) -> Vec<TaskSpec> {
        assert!(groups.is_empty(), "nobody asked for groups");
        self.start(os)
    }

    /// [`Instance::start_in`] on a machine of which it is known what a Java server's work takes.
    fn start_with(&self, os: &mut Os, groups: &[TgId], _java: Option<Java>) -> Vec<TaskSpec> {
        self.start_in(os, groups)
    }

    /// How many of what a user would count it did in a run, and what one is called, where its samples are no rate of them.
    fn operations(&self, _reported: &[Sample]) -> Option<(u64, &'static str)> {
        None
    }

    /// Whether the kernel's own threads run beside it, and more often than they do, until its warm-up is over. For a warm-up that stands for a
    /// long one: tasks stay where they were last until something is in their way, and what is there by itself is that after a while.
    fn haste(&self) -> Option<Haste> {
        None
    }

    /// What the benchmark would print, one number per sample, in `Workload::per_unit` parts of its unit. Of a run that measures
    /// several rows, see [`Instance::rows`].
    fn samples(&self, reported: &[Sample]) -> Vec<u64>;

    /// The samples of each row that a run measures, in the order of `Workload::rows`.
    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        vec![self.samples(reported)]
    }
}

/// Creates what an instance's tasks share, its task groups with it, and returns the tasks to start, in order.
///
/// # Panics
/// If the kernel refuses a group.
pub fn start<const COSTS: bool, S>(instance: &dyn Instance, sim: &mut Sim<COSTS, S>) -> Vec<TaskSpec>
where
    S: Scheduler<Arch = Hardware<COSTS>>,
{
    start_among(instance, sim, &mut Groups::default()).unwrap_or_else(|error| panic!("{}", error.refusal))
}

/// The same where there are `groups` already: those that the instance asks for and finds are taken as they are.
///
/// # Errors
/// As of [`Groups::create`], by the places of [`Instance::groups`].
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

/// Our workloads that take only numbers, by name. Those that take a file have their own doors: [`rt_app`], [`script`], [`trace`].
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

/// Workloads of a program that has its own beside ours.
static OWN: OnceLock<&'static [Workload]> = OnceLock::new();

/// From now on `own` are known by name as ours are.
///
/// # Panics
/// If it was called before, or a name is taken.
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
