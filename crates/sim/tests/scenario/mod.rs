//! Scenarios as text: a machine, a kernel, a few tasks, and the picture of what they did.
//!
//! ```text
//! machine pack:1 core:2 pu:1
//! kernel v4.5-rc1
//! hz 1000
//! # name  where and how it starts: what it does, in order
//! task a nice=5 cpus=0: run 10ms; sleep 5ms; run 10ms
//! task b at=2ms cpus=0-1: run 4ms
//! task c on=1: 20 x (run 1ms; sleep 1ms)
//! # of unequal CPUs, 1024 the biggest; and what one draws at each frequency, with which the governor becomes schedutil
//! capacity 0-1 400
//! energy 0-1 500MHz=50mW 1000MHz=120mW
//! # as firmware tells of their highest performance, by which cores are ranked; of all CPUs
//! highest_perf 0-3 40
//! # between NUMA nodes, a row for each
//! distances 10 20; 20 10
//! # what an administrator does: offline, online CPU; partitions LIST LIST ...; set KEY=VALUE of a sysctl or feature
//! at 5ms offline 1
//! picture 0ms..40ms in 40 columns
//! cpu0 ...
//! ```
//!
//! The lines of tasks are those of [`workloads::script`]. The cost model is off: nothing takes time but what the tasks ask for.
//! `hz` is the frequency of the tick (250 where nothing is said), `isolcpus LIST`, `nohz_full LIST` and `relax_domain_level N` are boot parameters, as is
//! `preempt full` (none where nothing is said). `on=` is the CPU that
//! forks the task, `at=` when. Run with `UPDATE_PICTURES=1` to write the pictures that come out into the files; then look at
//! each of them.

use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::Prices;
use machine::topology::{Numbering, Topology, from_synthetic, parse_list};
use observe::Gantt;
use os::memory::MigrationLimit;
use os::pipe::PipeRules;
use os::preempt::Preempt;
use os::sync::rtmutex::PiRules;
use os::{Os, OsRules};
use sched::behaviour::Rules;
use sched::core::{Boot, Sched};
use sched::cpu_topology::{EmPerfDomain, EmState, EnergyModel};
use sched::features::Feature;
use sched::sched::{TaskId, TgId};
use sched::sysctl::RUNTIME_UNLIMITED;
use sched::topology::DomainParameters;
use sched::trace::{Event, Sink};
use sched::versions::Switched;
use sim::engine::{LinuxSim, Sim};
use sim::timeline::Change;
use std::cell::RefCell;
use std::rc::Rc;
use units::{CpuId, CpuMask, Ns};
use workloads::Groups;
use workloads::groups::with_those_above;
use workloads::script::{Script, Task};

pub struct Scenario {
    machine: String,
    kernel: String,
    hz: u32,
    /// CPUs and their capacity.
    capacities: Vec<(CpuMask, u32)>,
    energy: Vec<EmPerfDomain>,
    /// CPUs and their highest performance.
    highest_perf: Vec<(CpuMask, u32)>,
    /// Between nodes, by rows; none: as far as the machine says.
    distances: Vec<Vec<u32>>,
    settings: Vec<(String, String)>,
    preempt: Preempt,
    script: Script,
    timeline: Vec<(Ns, Change)>,
    isolated: CpuMask,
    domains: DomainParameters,
    nohz_full: CpuMask,
    from: Ns,
    to: Ns,
    columns: usize,
    /// The expected picture, as it stands in the file.
    pub expected: String,
}

/// Hands events to a listener that the test keeps.
struct Shared(Rc<RefCell<Gantt>>);

impl Sink for Shared {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        self.0.borrow_mut().event(time, cpu, event);
    }
    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        self.0.borrow_mut().task(task, pid, comm, prio);
    }
    fn task_gone(&mut self, task: TaskId) {
        self.0.borrow_mut().task_gone(task);
    }
}

impl Scenario {
    pub fn parse(text: &str) -> Scenario {
        let mut scenario = Scenario {
            machine: String::new(),
            kernel: String::new(),
            hz: 250,
            capacities: Vec::new(),
            energy: Vec::new(),
            highest_perf: Vec::new(),
            distances: Vec::new(),
            settings: Vec::new(),
            preempt: Preempt::None,
            script: Script::default(),
            timeline: Vec::new(),
            isolated: CpuMask::default(),
            domains: DomainParameters::default(),
            nohz_full: CpuMask::default(),
            from: Ns::ZERO,
            to: Ns::ZERO,
            columns: 0,
            expected: String::new(),
        };
        let mut tasks = String::new();
        let mut lines = text.lines();
        for line in lines.by_ref() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "" | "#" => {}
                "machine" => scenario.machine = rest.to_string(),
                "kernel" => scenario.kernel = rest.to_string(),
                "hz" => scenario.hz = rest.parse().expect("100, 250, 300 or 1000"),
                "capacity" => {
                    let (cpus, capacity) = rest.split_once(' ').expect("capacity CPUS NUMBER");
                    let capacity = capacity.parse().expect("a capacity");
                    scenario.capacities.push((parse_list(cpus).expect("a list of CPUs"), capacity));
                }
                "highest_perf" => {
                    let (cpus, perf) = rest.split_once(' ').expect("highest_perf CPUS NUMBER");
                    let perf = perf.parse().expect("a number");
                    scenario.highest_perf.push((parse_list(cpus).expect("a list of CPUs"), perf));
                }
                "energy" => scenario.energy.push(energy(rest)),
                "distances" => scenario.distances = distances(rest),
                "set" => {
                    let (key, value) = rest.split_once('=').expect("set KEY=VALUE");
                    scenario.settings.push((key.to_string(), value.to_string()));
                }
                "at" => scenario.timeline.push(change(rest, &scenario.kernel)),
                "preempt" => scenario.preempt = Preempt::from_name(rest).expect("none, voluntary, full or lazy"),
                "nohz_full" => scenario.nohz_full = cpus(rest),
                "isolcpus" => scenario.isolated = cpus(rest),
                "relax_domain_level" => scenario.domains.relax_domain_level = Some(rest.parse().expect("a level")),
                "task" | "group" | "memory" | "mutex" => tasks.push_str(line),
                "picture" => {
                    let (window, columns) = rest.split_once(" in ").expect("picture FROM..TO in N columns");
                    let (from, to) = window.split_once("..").expect("FROM..TO");
                    (scenario.from, scenario.to) = (time(from), time(to));
                    let number = columns.split(' ').next().expect("a number");
                    scenario.columns = number.parse().expect("a number of columns");
                    break;
                }
                other => panic!("a scenario has no word {other}"),
            }
            // Every line stays where it is, so that mistakes name it.
            tasks.push('\n');
        }
        scenario.script = Script::parse(&tasks, 1).unwrap_or_else(|error| panic!("{error}"));
        scenario.expected = lines.map(|l| format!("{l}\n")).collect();
        scenario
    }

    /// Runs it and draws what happened.
    pub fn picture(&self) -> String {
        let topology = self.topology();
        let gantt = Rc::new(RefCell::new(Gantt::new(topology.nr_cpus(), self.from, self.to, self.columns)));
        let sim = self.run(topology, Box::new(Shared(gantt.clone())));
        assert_eq!(sim.refused, [], "the kernel refused");
        drop(sim);
        let gantt = Rc::try_unwrap(gantt).unwrap_or_else(|_| panic!("the simulation is gone")).into_inner();
        gantt.finish().to_string()
    }

    /// Runs it up to the end of the picture.
    pub fn run(&self, topology: Topology, sink: Box<dyn Sink>) -> LinuxSim<false> {
        let mut sim = self.boot(topology, sink);
        for (at, change) in &self.timeline {
            sim.at(*at, change.clone());
        }
        let mut groups = Groups::default();
        let specs = with_those_above(self.script.group_specs());
        workloads::groups::create(&mut sim, &mut groups, &specs).unwrap_or_else(|error| panic!("{}", error.refusal));
        let ids: Vec<TgId> =
            self.script.groups.iter().map(|group| groups.get(&group.path).expect("it was created")).collect();
        let shared = self.script.share(&mut sim.os, ids.clone(), Ns::ZERO);
        let mut order: Vec<(usize, &Task)> = self.script.tasks.iter().enumerate().collect();
        order.sort_by_key(|(_, task)| task.at);
        for (number, task) in order {
            if task.at > sim.now() && sim.run(task.at) == sim::engine::End::Finished {
                sim.idle(task.at);
            }
            let group = task.group.as_deref().map(|path| self.script.group_id(path, &ids));
            sim.spawn(task.on, task.spec(number, group, &shared));
        }
        sim.run(self.to);
        sim
    }

    pub fn topology(&self) -> Topology {
        let mut topology = from_synthetic(&self.machine, "scenario", Numbering::LinuxX86).expect("a valid machine");
        for (cpus, capacity) in &self.capacities {
            topology = topology.with_capacity(cpus, *capacity);
        }
        for (cpus, perf) in &self.highest_perf {
            topology = topology.with_highest_perf(cpus, *perf);
        }
        if !self.energy.is_empty() {
            topology = topology.with_energy_model(EnergyModel { domains: self.energy.clone(), schedutil: true });
        }
        topology
    }

    /// The listener is there from the start, so that it knows the stoppers.
    fn boot(&self, topology: Topology, sink: Box<dyn Sink>) -> LinuxSim<false> {
        let mut kernel = *sched::versions::kernel(&self.kernel).expect("a kernel that is built");
        let mut sysctl = kernel.sysctl(topology.nr_cpus()).at_hz(self.hz);
        // As lab's table of kernels has it.
        let limited = self.kernel.starts_with("v4.");
        let mut os = OsRules {
            pipe: PipeRules::Single,
            preempt: self.preempt,
            migration_limit: if limited { MigrationLimit::PerWindow } else { MigrationLimit::None },
            net: os::net::NetRules::V4_5,
            pi: match &self.kernel[..] {
                "v4.5-rc1" => PiRules::V4_5,
                "v4.15" | "v4.16" | "v4.19" | "v5.4" | "v5.10" => PiRules::V4_15,
                _ => PiRules::V5_15,
            },
            ..OsRules::V4_5
        };
        for (key, value) in &self.settings {
            if key == MigrationLimit::KEY {
                os.migration_limit.switch(value).expect("a behaviour of this kernel");
                continue;
            }
            if os.pi.set(key, value) == Switched::Done {
                continue;
            }
            let number = if value == "-1" { RUNTIME_UNLIMITED } else { value.parse().unwrap_or(0) };
            if let Some(feature) = Feature::from_name(key) {
                kernel.features.set(feature, number != 0);
            } else if let Some((_, tunable)) = kernel.tunable(key) {
                sysctl.set(tunable, number);
            } else {
                kernel.set(key, value).expect("a behaviour of this kernel");
            }
        }
        let mut hardware = Hardware::new(topology.clone(), Prices::free(), kernel.layout(), IdleRules::V4_15, 1);
        hardware.set_sink(sink);
        let mut cpu_topology = topology.cpu_topology();
        if !self.distances.is_empty() {
            cpu_topology.distance = self.distances.clone();
        }
        let boot = Boot {
            kernel,
            topology: cpu_topology,
            hz: self.hz,
            features: kernel.features,
            sysctl,
            isolated: self.isolated.clone(),
            domain_parameters: self.domains,
        };
        let mut sched = Sched::new(hardware, boot);
        sched.tick_nohz_full_setup(&self.nohz_full);
        Sim::new(sched, Os::new(os, self.hz))
    }
}

/// `0-1 500MHz=50mW 1000MHz=120mW`
fn energy(text: &str) -> EmPerfDomain {
    let (cpus, states) = text.split_once(' ').expect("energy CPUS FREQUENCY=POWER ...");
    let state = |state: &str| {
        let (frequency, power) = state.split_once("MHz=").expect("NUMBERMHz=NUMBERmW");
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let power = number(power.strip_suffix("mW").expect("NUMBERMHz=NUMBERmW"));
        EmState { frequency_khz: number(frequency) * 1000, power_uw: power * 1000 }
    };
    EmPerfDomain { cpus: parse_list(cpus).expect("a list of CPUs"), states: states.split(' ').map(state).collect() }
}

/// `10 20; 20 10`
fn distances(text: &str) -> Vec<Vec<u32>> {
    let row = |row: &str| row.split_whitespace().map(|number| number.parse().expect("a distance")).collect();
    text.split(';').map(row).collect()
}

/// `20ms offline 3`
fn change(text: &str, kernel: &str) -> (Ns, Change) {
    let mut words = text.split(' ');
    let at = time(words.next().expect("a time"));
    let what = words.next().expect("what to do");
    if what == "set" {
        let (key, value) = words.next().and_then(|set| set.split_once('=')).expect("set KEY=VALUE");
        let value = value.parse().expect("a number");
        let change = match Feature::from_name(key) {
            Some(feature) => Change::Feature(feature, value != 0),
            None => {
                let kernel = sched::versions::kernel(kernel).expect("the kernel stands before its timeline");
                Change::Sysctl(kernel.tunable(key).expect("a tunable of this kernel").1, value)
            }
        };
        return (at, change);
    }
    let mut cpu = || CpuId(words.next().and_then(|word| word.parse().ok()).expect("a CPU"));
    let change = match what {
        "offline" => Change::CpuOffline(cpu()),
        "online" => Change::CpuOnline(cpu()),
        "partitions" => Change::Partitions(words.map(cpus).collect()),
        other => panic!("an administrator cannot {other}"),
    };
    (at, change)
}

fn cpus(list: &str) -> CpuMask {
    parse_list(list).expect("a list of CPUs")
}

/// `3ms`, `250us`, `10ns`.
fn time(text: &str) -> Ns {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let number: u64 = digits.parse().unwrap_or_else(|_| panic!("{text} is no time"));
    match &text[digits.len()..] {
        "ns" => Ns(number),
        "us" => Ns::from_us(number),
        "ms" => Ns::from_ms(number),
        other => panic!("no unit {other}"),
    }
}
