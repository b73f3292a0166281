//! Replays lives of tasks and groups through the fair class's own functions, and after each step compares the result
//! bit for bit with what the real kernel's functions produced (`fidelity/load/`): averages and weights of every task,
//! group and queue, the groups' sums, the list of queues with load.
//!
//! The head of a file says how it was recorded and what its columns mean.

use super::*;
use crate::behaviour::Rules;
use crate::fair::load::LoadClock;
use crate::features::Feature;
use crate::pelt::{Pelt, SchedAvg, UtilEstimate};
use crate::versions::{V6_1, V6_12};
use std::collections::BTreeMap;
use std::fmt::Write;
use units::PerCpu;

const NR_CPUS: usize = 3;

/// A machine on which the steps of a recording happen.
struct Replay {
    s: Sched<Hand>,
    /// By the recording's numbers; `None`: gone.
    tasks: Vec<Option<TaskId>>,
    groups: Vec<Option<TgId>>,
    /// What each object looked like when it was last shown.
    shown: BTreeMap<String, String>,
    report: String,
}

impl Replay {
    fn new(kernel: Kernel, capacities: [u32; NR_CPUS]) -> Replay {
        let mut features = kernel.features;
        if features.has(Feature::DELAY_DEQUEUE) {
            features.set(Feature::DELAY_DEQUEUE, false);
        }
        let mut topology = CpuTopology::symmetric(1, 1, 1, NR_CPUS, 1);
        topology.capacity = PerCpu::from_fn(NR_CPUS, |cpu| capacities[cpu.index()]);
        let boot = Boot { features, sysctl: Sysctl::new(1), ..Boot::new(kernel, topology, 250) };
        let mut s = Sched::new(Hand { now: 1_000 * MS, ..Hand::default() }, boot);
        // Tasks are queued here without the switches by which pressure is accounted.
        let _ = s.setup_psi(false);
        let groups = vec![Some(ROOT_TASK_GROUP)];
        Replay { s, tasks: Vec::new(), groups, shown: BTreeMap::new(), report: String::new() }
    }

    fn task(&self, number: i64) -> TaskId {
        self.tasks[number as usize].expect("the recording uses living tasks only")
    }

    fn group(&self, number: i64) -> TgId {
        self.groups[number as usize].expect("the recording uses living groups only")
    }

    fn step(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let passed: u64 = words.next().expect("a time").parse().expect("a number of ns");
        let name = words.next().expect("a step");
        let n: Vec<i64> = words.map(|word| word.parse().expect("a number")).collect();
        self.s.pass(passed);
        self.report.clear();
        let cpu = |number: i64| CpuId::new(number as usize);
        match name {
            "group" => {
                let parent = self.group(n[1]);
                let group = self.s.sched_create_group(parent, "g", n[2] as u64);
                self.groups.push(Some(group));
            }
            "shares" => self.s.sched_group_set_shares(self.group(n[0]), n[1] as u64),
            "fork" => {
                let p = self.s.task_in(self.group(n[1]), cpu(n[2]), n[3] as i32);
                self.s.task[p].cpus_allowed = CpuMask::all(NR_CPUS).into();
                self.tasks.push(Some(p));
            }
            "wake" => self.wake(self.task(n[0]), cpu(n[1])),
            "run" => {
                self.s.on_cpu(cpu(n[0]));
                self.s.update_rq_clock(cpu(n[0]));
                self.run(cpu(n[0]), n[1]);
            }
            "sleep" => {
                self.leave(cpu(n[0]), n[1], TaskState::Interruptible);
            }
            "exit" => {
                let p = self.leave(cpu(n[0]), n[1], TaskState::Dead);
                self.s.task_dead_fair(p);
                self.s.task[p].alive = false;
                let gone = self.tasks.iter_mut().find(|task| **task == Some(p)).expect("it was forked");
                *gone = None;
            }
            "tick" => {
                self.s.on_cpu(cpu(n[0]));
                self.s.update_rq_clock(cpu(n[0]));
                if let Some(curr) = self.s.rq[cpu(n[0])].curr {
                    self.s.task_tick_fair(cpu(n[0]), curr, false);
                }
            }
            _ => self.other_step(name, &n),
        }
        self.show_all();
    }

    /// The steps that do not belong to a single task's life.
    fn other_step(&mut self, name: &str, n: &[i64]) {
        let cpu = |number: i64| CpuId::new(number as usize);
        match name {
            "migrate" => self.s.move_queued_task(self.task(n[0]), cpu(n[1])),
            "nice" => self.s.set_user_nice(self.task(n[0]), n[1] as i32),
            "move" => self.s.sched_move_task(self.task(n[0]), self.group(n[1])),
            "blocked" => self.s.update_blocked_averages(cpu(n[0])),
            "hload" => {
                let h_load = self.s.task_h_load(self.task(n[0]));
                writeln!(self.report, "h_load {h_load}").unwrap();
            }
            "freq" => {
                self.s.arch.freq.resize(NR_CPUS, 1024);
                self.s.arch.freq[n[0] as usize] = n[1] as u32;
            }
            "irq" => {
                self.s.arch.irq_time.resize(NR_CPUS, 0);
                self.s.arch.irq_time[n[0] as usize] += n[1] as u64;
            }
            "others" => {
                self.s.update_rq_clock(cpu(n[0]));
                if n[1] != 0 {
                    self.s.sched_rt_avg_update(cpu(n[0]), MS);
                }
                self.s.update_rt_rq_load_avg(cpu(n[0]), n[1] != 0);
                self.s.update_dl_rq_load_avg(cpu(n[0]), n[2] != 0);
            }
            "offline" => {
                self.s.update_rq_clock(cpu(n[0]));
                self.s.rq[cpu(n[0])].online = false;
                self.s.clear_tg_offline_cfs_rqs(cpu(n[0]));
            }
            "online" => self.s.rq[cpu(n[0])].online = true,
            "ungroup" => {
                let group = self.groups[n[0] as usize].take().expect("a living group");
                self.s.sched_destroy_group(group);
            }
            _ => panic!("no such step: {name}"),
        }
    }

    fn wake(&mut self, p: TaskId, cpu: CpuId) {
        let s = &mut self.s;
        s.on_cpu(cpu);
        s.task[p].state = TaskState::Waking;
        s.task_waking_fair(p);
        let migrated = s.task[p].cpu != cpu;
        if migrated {
            s.set_task_cpu(p, cpu);
        }
        s.activate_task(cpu, p, QueueFlags { wakeup: true, waking: true, migrated, ..QueueFlags::default() });
        s.task[p].state = TaskState::Running;
    }

    /// What runs on `cpu` leaves, and `next` (-1: none) takes its place.
    fn leave(&mut self, cpu: CpuId, next: i64, state: TaskState) -> TaskId {
        let s = &mut self.s;
        s.on_cpu(cpu);
        let p = s.rq[cpu].curr.expect("somebody runs");
        s.task[p].state = state;
        s.deactivate_task(cpu, p, QueueFlags { sleep: true, ..QueueFlags::default() });
        s.task[p].on_rq = OnRq::No;
        self.run(cpu, next);
        p
    }

    fn run(&mut self, cpu: CpuId, next: i64) {
        let next = (next >= 0).then(|| self.task(next));
        let s = &mut self.s;
        if let Some(prev) = s.rq[cpu].curr {
            s.put_prev_task_fair(cpu, prev);
            s.task[prev].on_cpu = false;
        }
        if let Some(next) = next {
            s.set_curr(cpu, Some(next));
            s.task[next].on_cpu = true;
            s.set_curr_task_fair(cpu);
        } else {
            s.update_idle_rq_clock_pelt(cpu);
            s.set_curr(cpu, None);
        }
    }

    /// Prints an object if it has changed.
    fn show(&mut self, name: String, state: String) {
        if self.shown.get(&name) != Some(&state) {
            writeln!(self.report, "{name} {state}").unwrap();
            self.shown.insert(name, state);
        }
    }

    fn show_all(&mut self) {
        for number in 0..self.groups.len() {
            let Some(group) = self.groups[number] else { continue };
            if group != ROOT_TASK_GROUP {
                let tg = &self.s.tg[group];
                self.show(format!("g{number}"), format!("{} {}", tg.shares, tg.load_avg));
            }
            for cpu in 0..NR_CPUS {
                let cfs = self.s.tg[group].cfs_rq[cpu];
                self.show(format!("q{number}.{cpu}"), self.queue(cfs));
                if group != ROOT_TASK_GROUP {
                    let entity = self.entity(self.s.tg[group].se[cpu]);
                    self.show(format!("s{number}.{cpu}"), entity);
                }
            }
        }
        for (cpu, rq) in self.s.rq.clone().iter() {
            let leaves = rq.leaf_cfs_rq_list.iter(&self.s.cfs_rq).map(|leaf| self.number_of(leaf).to_string());
            let leaves: Vec<String> = leaves.collect();
            let leaves = if leaves.is_empty() { "-".to_owned() } else { leaves.join(" ") };
            self.show(format!("l{}", cpu.index()), leaves);
            if self.s.kernel.load.clock == LoadClock::Pelt {
                let clock = &rq.clock_pelt;
                let clocks = match self.s.kernel.pelt {
                    // The kernel lets the clock catch up later, but before it is read.
                    Pelt::Accumulate => vec![rq.clock_task, clock.lost_idle_time],
                    _ => vec![clock.clock_pelt, clock.lost_idle_time, clock.clock_idle, clock.clock_pelt_idle],
                };
                let others = [&rq.avg_rt, &rq.avg_dl, &rq.avg_irq];
                let others = others.map(|a| format!("{} {} {}", a.last_update_time, a.util_sum, a.util_avg)).join(" ");
                let clocks = clocks.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
                self.show(format!("r{}", cpu.index()), format!("{clocks} {others}"));
            } else {
                self.show(format!("r{}", cpu.index()), format!("{} {}", rq.clock_task, rq.rt_avg));
            }
        }
        for number in 0..self.tasks.len() {
            let Some(p) = self.tasks[number] else { continue };
            let se = self.s.se_of(p);
            let on_rq = u8::from(se.on_rq);
            let state = format!("{} {on_rq} {} {}", self.s.task[p].cpu.index(), se.load.weight, self.average(&se.avg));
            self.show(format!("t{number}"), state);
        }
    }

    fn number_of(&self, cfs: CfsRqId) -> usize {
        let tg = self.s.cfs_rq[cfs].tg;
        self.groups.iter().position(|&group| group == Some(tg)).expect("all groups are the recording's")
    }

    fn average(&self, a: &SchedAvg) -> String {
        let (time, contrib) = (a.last_update_time, a.period_contrib);
        match self.s.kernel.pelt {
            Pelt::ByPeriod => {
                format!("{time} {} {} {contrib} {} {}", a.load_sum, a.util_sum, a.load_avg, a.util_avg)
            }
            Pelt::Accumulate | Pelt::RunnableAvg => {
                let sums = format!("{} {} {}", a.load_sum, a.runnable_sum, a.util_sum);
                let mut text = format!("{time} {sums} {contrib} {} {} {}", a.load_avg, a.runnable_avg, a.util_avg);
                if self.s.kernel.load.util_est != UtilEstimate::Absent {
                    write!(text, " {} {}", a.util_est.enqueued, a.util_est.ewma).unwrap();
                }
                text
            }
        }
    }

    fn queue(&self, cfs: CfsRqId) -> String {
        let q = &self.s.cfs_rq[cfs];
        let mut text = format!("{} {} {}", q.load.weight, q.h_nr_running, self.average(&q.avg));
        let removed = &q.removed;
        match self.s.kernel.pelt {
            Pelt::ByPeriod => {
                let (sum, avg) = (q.avg.runnable_sum, q.avg.runnable_avg);
                write!(text, " {sum} {avg} {} {}", removed.load_avg, removed.util_avg).unwrap();
            }
            Pelt::Accumulate | Pelt::RunnableAvg => {
                let averages = format!("{} {} {}", removed.load_avg, removed.util_avg, removed.runnable_sum);
                let propagate = u8::from(q.propagate);
                write!(text, " {} {averages} {propagate} {}", removed.nr, q.prop_runnable_sum).unwrap();
            }
        }
        write!(text, " {} {}", q.tg_load_avg_contrib, q.h_load).unwrap();
        text
    }

    fn entity(&self, se: SeId) -> String {
        let se = &self.s.se[se];
        let mut text = format!("{} {}", u8::from(se.on_rq), se.load.weight);
        if self.s.kernel.pelt != Pelt::ByPeriod {
            write!(text, " {}", se.runnable_weight).unwrap();
        }
        format!("{text} {}", self.average(&se.avg))
    }
}

macro_rules! recording {
    ($name:literal) => {
        include_str!(concat!("../../../../../fidelity/load/", $name, ".txt"))
    };
}

/// Steps begin with `>`; the lines after a step are what it changed.
fn replay(kernel: Kernel, text: &str, least: usize) {
    let recorded: String = text.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    let mut steps: Vec<&str> = recorded.split("> ").skip(1).collect();
    assert!(steps.len() >= least, "the recording has only {} steps", steps.len());
    let mut capacities = [1024; NR_CPUS];
    let first = steps[0].lines().next().and_then(|line| line.split_once(" capacity "));
    if let Some((_, given)) = first {
        let given: Vec<u32> = given.split(' ').map(|word| word.parse().expect("a capacity")).collect();
        capacities.copy_from_slice(&given);
    }
    let mut replay = Replay::new(kernel, capacities);
    if let Some((passed, _)) = first {
        replay.s.pass(passed.parse().expect("a number of ns"));
        replay.show_all();
        steps.remove(0);
    }
    for (number, step) in steps.iter().enumerate() {
        let (line, expected) = step.split_once('\n').expect("a step ends its line");
        replay.step(line);
        let (ours, theirs): (Vec<&str>, Vec<&str>) = (replay.report.lines().collect(), expected.lines().collect());
        if ours != theirs {
            let differ =
                |a: &[&str], b: &[&str]| a.iter().filter(|l| !b.contains(l)).map(|l| format!("  {l}\n")).collect();
            let (ours, theirs): (String, String) = (differ(&ours, &theirs), differ(&theirs, &ours));
            panic!("{}, step {}: {line}\nkernel:\n{theirs}ours:\n{ours}", kernel.name, number + 1);
        }
    }
}

#[test]
fn lives_by_period() {
    replay(V4_5_RC1, recording!("v4.5-lives"), 200);
    replay(V4_5_RC1, recording!("v4.5-parts"), 200);
}

#[test]
fn lives_accumulate() {
    for kernel in [V4_15, V4_16] {
        replay(kernel, recording!("v4.15-lives"), 200);
        replay(kernel, recording!("v4.15-parts"), 200);
    }
}

#[test]
fn lives_accumulate_by_a_scaled_clock() {
    let mut kernel = V5_4;
    kernel.set("load.frequency", "told").expect("there is such a behaviour");
    replay(kernel, recording!("v5.4-lives"), 200);
    replay(kernel, recording!("v5.4-parts"), 200);
}

#[test]
fn lives_runnable_avg() {
    replay(V6_1, recording!("v6.1-lives"), 200);
    replay(V6_1, recording!("v6.1-parts"), 200);
}

#[test]
fn lives_with_sums_told_once_a_millisecond() {
    replay(V6_12, recording!("v6.12-lives"), 200);
    replay(V6_12, recording!("v6.12-parts"), 200);
}
