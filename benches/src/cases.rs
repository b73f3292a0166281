//! The benchmark's cases: machines and loads whose cost per event should be watched.

use lab::kernels::Build;
use lab::machines::{Machine, Processor};
use machine::description::How;
use machine::frequency::{Autonomous, Driver, Frequency, Governor, Model, Policy};
use machine::hardware::Hardware;
use machine::prices::Prices;
use machine::topology::{Numbering, from_synthetic};
use os::Os;
use os::pipe::PipeId;
use sched::core::{Boot, Sched};
use sched::sched::ROOT_TASK_GROUP;
use sched::sysctl::Sysctl;
use sim::engine::LinuxSim;
use sim::program::{Op, Outcome, Program, TaskSpec};
use units::{CpuId, Cycles, Ns, Ps};
use workloads::{Values, workload};

pub const NAMES: &[&str] = &[
    "pingpong-8",
    "pingpong-48",
    "pingpong-256",
    "pingpong-480",
    "idle-1024",
    "hackbench-48",
    "pingpong-8-groups",
    "pingpong-48-groups",
    "pingpong-8-schedutil",
    "pingpong-8-intel-pstate",
    "pingpong-8-hardware",
    "pingpong-48-schedutil",
    "pingpong-48-intel-pstate",
    "pingpong-48-hardware",
    "pingpong-256-schedutil",
    "pingpong-256-intel-pstate",
    "pingpong-256-hardware",
    "pingpong-480-schedutil",
    "pingpong-480-intel-pstate",
    "pingpong-480-hardware",
    "pingpong-8-v6.12",
    "pingpong-8-v6.12-psi=0",
    "pingpong-8-groups-v6.12",
    "pingpong-8-groups-v6.12-psi=0",
    "pingpong-8-v7.2",
    "pingpong-8-v7.3",
    "pingpong-8-groups-v7.2",
    "pingpong-8-groups-v7.3",
];

/// Simulated time before the measurement, by default.
pub const WARM_UP_MS: u64 = 5;

/// The cost and the events of one run.
pub struct Counts {
    pub cpu_ns: u64,
    /// Context switches and wakeups.
    pub scheduling_events: u64,
    /// Paths executed.
    pub engine_events: u64,
    pub simulated_ns: u64,
}

pub struct Case {
    topology: &'static str,
    load: Load,
    frequency: Frequencies,
    kernel: &'static str,
    /// `psi=0`: no pressure accounting, in kernels that have it.
    psi: bool,
}

/// What chooses frequencies; with the cost model off nothing does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frequencies {
    Fixed,
    Schedutil,
    IntelPstate,
    Hardware,
}

enum Load {
    /// Pairs of processes that pass a token back and forth; each works a little before it passes the token on. All of
    /// them are in one cgroup, at this many levels below the root.
    PingPong {
        pairs: u64,
        depth: u32,
    },
    /// For 64 CPUs there is one task, which wakes every 10 ms.
    MostlyIdle,
    Hackbench {
        groups: u64,
    },
}

pub fn case(name: &str) -> Option<Case> {
    if !NAMES.contains(&name) {
        return None;
    }
    let (of_kernel, psi) = name.strip_suffix("-psi=0").map_or((name, true), |name| (name, false));
    let others = [("-v6.12", "v6.12"), ("-v7.2", "v7.2"), ("-v7.3", "v7.3")];
    let other = others.into_iter().find_map(|(suffix, kernel)| Some((of_kernel.strip_suffix(suffix)?, kernel)));
    let (load_name, kernel) = other.unwrap_or((name, "v4.16"));
    let frequencies = [
        ("-schedutil", Frequencies::Schedutil),
        ("-intel-pstate", Frequencies::IntelPstate),
        ("-hardware", Frequencies::Hardware),
    ];
    let chosen = frequencies.into_iter().find_map(|(suffix, who)| Some((load_name.strip_suffix(suffix)?, who)));
    let (load_name, frequency) = chosen.unwrap_or((load_name, Frequencies::Fixed));
    let (topology, load) = match load_name {
        "pingpong-8" => ("pack:1 l3:1 core:4 pu:2", Load::PingPong { pairs: 4, depth: 0 }),
        "pingpong-48" => ("pack:2 [numa] l3:1 core:12 pu:2", Load::PingPong { pairs: 480, depth: 0 }),
        "pingpong-256" => ("pack:4 [numa] l3:1 core:32 pu:2", Load::PingPong { pairs: 2560, depth: 0 }),
        "pingpong-480" => ("pack:16 [numa] l3:1 core:15 pu:2", Load::PingPong { pairs: 4800, depth: 0 }),
        "pingpong-8-groups" => ("pack:1 l3:1 core:4 pu:2", Load::PingPong { pairs: 4, depth: 3 }),
        "pingpong-48-groups" => ("pack:2 [numa] l3:1 core:12 pu:2", Load::PingPong { pairs: 480, depth: 3 }),
        "idle-1024" => ("pack:16 [numa] l3:1 core:32 pu:2", Load::MostlyIdle),
        "hackbench-48" => ("pack:2 [numa] l3:1 core:12 pu:2", Load::Hackbench { groups: 48 }),
        _ => return None,
    };
    Some(Case { topology, load, frequency, kernel, psi })
}

impl Case {
    /// `length` is the simulated milliseconds to measure or, for hackbench, the messages from each sender to each
    /// receiver.
    pub fn run<const COSTS: bool>(&self, length: u64, warm_up_ms: u64) -> Counts {
        let mut sim: LinuxSim<COSTS> = boot(self);
        self.start(&mut sim, length);
        // Forks and first placements must not be measured. hackbench is an exception and is run whole: with the cost
        // model off its messages take no time, so a given time would never pass.
        let whole = matches!(self.load, Load::Hackbench { .. });
        if !whole {
            sim.run(Ns::from_ms(warm_up_ms));
        }
        let before = (cpu_ns(), scheduling_events(&sim), sim.events, sim.now());
        sim.run(if whole { Ns::from_ms(3_600_000) } else { Ns::from_ms(warm_up_ms + length) });
        Counts {
            cpu_ns: cpu_ns() - before.0,
            scheduling_events: scheduling_events(&sim) - before.1,
            engine_events: sim.events - before.2,
            simulated_ns: (sim.now() - before.3).0,
        }
    }

    fn start<const COSTS: bool>(&self, sim: &mut LinuxSim<COSTS>, length: u64) {
        match self.load {
            Load::PingPong { pairs, depth } => {
                let group = (0..depth).fold(ROOT_TASK_GROUP, |above, _| {
                    sim.sched.cgroup_mkdir(above, "bench").expect("a name that is free")
                });
                for pair in 0..pairs {
                    let (there, back) = (sim.os.create_pipe(), sim.os.create_pipe());
                    let cpu = CpuId::new((pair as usize * 7) % sim.sched.nr_cpus());
                    let player = |comm, from, to, state| {
                        let group = (depth > 0).then_some(group);
                        TaskSpec { group, ..TaskSpec::new(comm, Player { from, to, state }) }
                    };
                    sim.spawn(cpu, player("ping", back, there, State::Write));
                    sim.spawn(cpu, player("pong", there, back, State::Read));
                }
            }
            Load::MostlyIdle => {
                for sleeper in 0..sim.sched.nr_cpus() / 64 {
                    sim.spawn(CpuId::new(sleeper * 64), TaskSpec::new("sleeper", Sleeper { awake: false }));
                }
            }
            Load::Hackbench { groups } => {
                let hackbench = workload("hackbench-pipes").expect("a registered workload");
                let mut values = Values::defaults(hackbench);
                values.set("groups", groups);
                values.set("loops", length);
                for spec in (hackbench.build)(&values).start(&mut sim.os) {
                    sim.spawn(CpuId(0), spec);
                }
            }
        }
    }
}

/// The case's kernel on a machine of its shape, with the prices of the nearest known machine.
fn boot<const COSTS: bool>(case: &Case) -> LinuxSim<COSTS> {
    const HZ: u32 = 250;
    let frequencies = case.frequency;
    let topology = from_synthetic(case.topology, "benchmark", Numbering::LinuxX86).expect("a valid topology");
    let machine = Machine::of_topology("benchmark", topology, "a benchmark", How::Guess, &Processor::default());
    let prices = if COSTS { lab::prices::prices(&machine.description, case.kernel) } else { Prices::free() };
    let topology = machine.description.topology().clone();
    let build = Build::named(case.kernel).expect("a kernel that is built");
    let boot = Boot { sysctl: Sysctl::new(topology.nr_cpus()), ..Boot::new(build.sched, topology.cpu_topology(), HZ) };
    let mut hardware = Hardware::new(topology.clone(), prices, build.sched.layout(), build.idle, 1);
    if frequencies != Frequencies::Fixed {
        let mut model = Model::of(&machine.description).expect("figures of frequencies");
        let window = Ps::from_ns(4_000_000);
        let hardware_chooses = Autonomous {
            window,
            ramp: Ps::from_ns(30_000_000),
            history: window,
            burst: None,
            efficient_khz: 0,
            target: 800,
        };
        model.autonomous = (frequencies == Frequencies::Hardware).then_some(hardware_chooses);
        let (driver, governor) = match frequencies {
            Frequencies::Schedutil => (Driver::IntelCpufreq, Governor::Schedutil),
            _ => (Driver::IntelPstate, Governor::Powersave),
        };
        let policy = Policy::new(&model, driver, governor, build.frequency, HZ);
        hardware.set_frequency(Frequency::new(&topology, model, policy));
    }
    let mut sched = Sched::new(hardware, boot);
    if !case.psi {
        sched.setup_psi(false).expect("a kernel that has it");
    }
    match frequencies {
        Frequencies::Schedutil => {
            let policies = sched.arch.frequency().map(Frequency::cpufreq_policies).unwrap_or_default();
            sched.sugov_start(policies);
        }
        Frequencies::IntelPstate => sched.cpufreq_add_update_util_hook(),
        Frequencies::Fixed | Frequencies::Hardware => {}
    }
    LinuxSim::new(sched, Os::new(build.os, HZ))
}

fn scheduling_events<const COSTS: bool>(sim: &LinuxSim<COSTS>) -> u64 {
    sim.sched.nr_wakeups + sim.sched.rq.iter().map(|(_, rq)| rq.nr_switches).sum::<u64>()
}

/// CPU time of this process, in nanoseconds: the first figure of /proc/self/schedstat.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// A microsecond of work at 1 GHz before the token is passed on: with the cost model off, something must take time.
const WORK: Cycles = Cycles(1_000);

enum State {
    Write,
    Read,
    Work,
}

struct Player {
    from: PipeId,
    to: PipeId,
    state: State,
}

impl Program for Player {
    fn next(&mut self, _last: Outcome) -> Op {
        match self.state {
            State::Write => {
                self.state = State::Read;
                Op::Write { pipe: self.to, bytes: 4 }
            }
            State::Read => {
                self.state = State::Work;
                Op::Read { pipe: self.from, bytes: 4 }
            }
            State::Work => {
                self.state = State::Write;
                Op::Work(WORK)
            }
        }
    }
}

struct Sleeper {
    awake: bool,
}

impl Program for Sleeper {
    fn next(&mut self, _last: Outcome) -> Op {
        self.awake = !self.awake;
        if self.awake { Op::Work(Cycles(100_000)) } else { Op::SleepFor(Ns::from_ms(10)) }
    }
}
