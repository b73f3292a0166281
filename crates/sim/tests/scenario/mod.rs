//! Scenarios as text: a machine, a kernel, a few tasks, and the picture of what they did.
//!
//! ```text
//! machine pack:1 core:2 pu:1
//! kernel v4.5-rc1
//! # name  where and how it starts: what it does, in order
//! task a nice=5 cpus=0: run 10ms; sleep 5ms; run 10ms
//! task b at=2ms cpus=0-1: run 4ms
//! task c on=1: 20 x (run 1ms; sleep 1ms)
//! picture 0ms..40ms in 40 columns
//! cpu0 ...
//! ```
//!
//! The cost model is off: nothing takes time but what the tasks ask for. `on=` is the CPU that forks the task, `at=` when. Run with
//! `UPDATE_PICTURES=1` to write the pictures that come out into the files; then look at each of them.

use machine::hardware::Hardware;
use machine::idle::PollRule;
use machine::prices::Prices;
use machine::topology::{Numbering, from_synthetic};
use observe::Gantt;
use os::pipe::PipeRules;
use os::{Os, OsRules};
use sched::core::{Boot, Sched};
use sched::sched::TaskId;
use sched::sysctl::Sysctl;
use sched::trace::{Event, Sink};
use sim::engine::{LinuxSim, Sim};
use sim::program::{Op, Outcome, Program, TaskSpec};
use std::cell::RefCell;
use std::rc::Rc;
use units::{CpuId, CpuMask, Ns};

pub struct Scenario {
    machine: String,
    kernel: String,
    settings: Vec<(String, String)>,
    tasks: Vec<Task>,
    from: Ns,
    to: Ns,
    columns: usize,
    /// The expected picture, as it stands in the file.
    pub expected: String,
}

struct Task {
    name: String,
    nice: i32,
    cpus: Option<CpuMask>,
    on: CpuId,
    at: Ns,
    steps: Vec<Step>,
}

#[derive(Clone, Copy)]
enum Step {
    Run(Ns),
    Sleep(Ns),
    Yield,
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

struct Script {
    steps: std::vec::IntoIter<Step>,
}

impl Program for Script {
    fn next(&mut self, _last: Outcome) -> Op {
        match self.steps.next() {
            Some(Step::Run(time)) => Op::RunFor(time),
            Some(Step::Sleep(time)) => Op::SleepFor(time),
            Some(Step::Yield) => Op::Yield,
            None => Op::Exit,
        }
    }
}

impl Scenario {
    pub fn parse(text: &str) -> Scenario {
        let mut scenario = Scenario {
            machine: String::new(),
            kernel: String::new(),
            settings: Vec::new(),
            tasks: Vec::new(),
            from: Ns::ZERO,
            to: Ns::ZERO,
            columns: 0,
            expected: String::new(),
        };
        let mut lines = text.lines();
        for line in lines.by_ref() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "" | "#" => {}
                "machine" => scenario.machine = rest.to_string(),
                "kernel" => scenario.kernel = rest.to_string(),
                "set" => {
                    let (key, value) = rest.split_once('=').expect("set KEY=VALUE");
                    scenario.settings.push((key.to_string(), value.to_string()));
                }
                "task" => scenario.tasks.push(Task::parse(rest)),
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
        }
        scenario.expected = lines.map(|l| format!("{l}\n")).collect();
        scenario
    }

    /// Runs it and draws what happened.
    pub fn picture(&self) -> String {
        let mut sim = self.boot();
        let nr_cpus = sim.sched.nr_cpus();
        let gantt = Rc::new(RefCell::new(Gantt::new(nr_cpus, self.from, self.to, self.columns)));
        sim.sched.arch.set_sink(Box::new(Shared(gantt.clone())));
        let mut order: Vec<&Task> = self.tasks.iter().collect();
        order.sort_by_key(|t| t.at);
        for task in order {
            if task.at > sim.now() && sim.run(task.at) == sim::engine::End::Finished {
                sim.idle(task.at);
            }
            let script = Script { steps: task.steps.clone().into_iter() };
            let spec = TaskSpec { nice: task.nice, cpus: task.cpus.clone(), ..TaskSpec::new(&task.name, script) };
            sim.spawn(task.on, spec);
        }
        sim.run(self.to);
        drop(sim);
        let gantt = Rc::try_unwrap(gantt).unwrap_or_else(|_| panic!("the simulation is gone")).into_inner();
        gantt.finish().to_string()
    }

    fn boot(&self) -> LinuxSim<false> {
        let topology = from_synthetic(&self.machine, "scenario", Numbering::LinuxX86).expect("a valid machine");
        let mut kernel = *sched::versions::kernel(&self.kernel).expect("a kernel that is built");
        let mut sysctl = Sysctl::new(topology.nr_cpus());
        for (key, value) in &self.settings {
            let number = value.parse().unwrap_or(0);
            if let Some(feature) = sched::features::Feature::from_name(key) {
                kernel.features.set(feature, number != 0);
            } else if !sysctl.set(key, number) {
                kernel.set(key, value).expect("a behaviour of this kernel");
            }
        }
        let hardware = Hardware::new(topology.clone(), Prices::free(), kernel.layout, PollRule::NextTimer, 1);
        let boot = Boot { kernel, topology: topology.cpu_topology(), hz: 250, features: kernel.features, sysctl };
        Sim::new(Sched::new(hardware, boot), Os::new(OsRules { pipe: PipeRules::Single }), 250)
    }
}

impl Task {
    fn parse(text: &str) -> Task {
        let (head, steps) = text.split_once(':').expect("task NAME ...: steps");
        let mut words = head.split(' ');
        let name = words.next().expect("a name").to_string();
        let mut task = Task { name, nice: 0, cpus: None, on: CpuId(0), at: Ns::ZERO, steps: parse_steps(steps) };
        for word in words {
            let (key, value) = word.split_once('=').expect("key=value");
            match key {
                "nice" => task.nice = value.parse().expect("a nice value"),
                "cpus" => task.cpus = Some(machine::topology::parse_list(value).expect("a list of CPUs")),
                "on" => task.on = CpuId(value.parse().expect("a CPU")),
                "at" => task.at = time(value),
                other => panic!("a task has no {other}"),
            }
        }
        task
    }
}

/// `run 3ms; 4 x (run 1ms; sleep 1ms); yield`: repetitions do not nest.
fn parse_steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if let Some((count, after)) = rest.split_once(" x (")
            && let Ok(count) = count.trim().parse::<usize>()
        {
            let (body, after) = after.split_once(')').expect("a closing parenthesis");
            let body = parse_steps(body);
            (0..count).for_each(|_| steps.extend(body.iter().copied()));
            rest = after.trim_start_matches([';', ' ']);
            continue;
        }
        let (step, after) = rest.split_once(';').unwrap_or((rest, ""));
        let (word, amount) = step.trim().split_once(' ').unwrap_or((step.trim(), ""));
        steps.push(match word {
            "run" => Step::Run(time(amount)),
            "sleep" => Step::Sleep(time(amount)),
            "yield" => Step::Yield,
            other => panic!("a task cannot {other}"),
        });
        rest = after.trim();
    }
    steps
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
