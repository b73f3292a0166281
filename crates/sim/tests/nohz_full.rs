//! CPUs of nohz_full=: who has ticks, how many, and what housekeeping CPUs do instead.

use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::{IdleState, Prices};
use machine::topology::{Numbering, from_synthetic};
use os::{Os, OsRules};
use sched::attr::SchedAttr;
use sched::core::{Boot, Sched};
use sched::errno::Errno;
use sched::sched::{Policy, TaskId};
use sched::trace::{Event, Sink};
use sched::versions::{Kernel, V4_5_RC1, V4_15, V4_16, V6_1, V6_6, V6_12, V6_18, V7_2};
use sim::engine::{LinuxSim, Sim};
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use sim::timeline::Change;
use std::cell::RefCell;
use std::rc::Rc;
use units::{CpuId, CpuMask, Ns};

const HZ: u64 = 250;
const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);

/// Works for ever, or so long, or sleeps and works in turn.
enum Work {
    Forever,
    For(Ns),
    InTurn { sleeps: bool },
}

impl Program for Work {
    fn next(&mut self, _last: Outcome) -> Op {
        match self {
            Work::Forever => Op::RunFor(Ns::from_ms(100_000)),
            Work::For(Ns(0)) => Op::Exit,
            Work::For(time) => Op::RunFor(std::mem::take(time)),
            Work::InTurn { sleeps } => {
                *sleeps = !*sleeps;
                if *sleeps { Op::SleepFor(Ns::from_ms(7)) } else { Op::RunFor(Ns::from_ms(3)) }
            }
        }
    }
}

fn task(comm: &str, policy: Policy, work: Work) -> TaskSpec {
    let priority = if matches!(policy, Policy::Fifo | Policy::Rr) { 10 } else { 0 };
    let attr = SchedAttr { sched_policy: policy, sched_priority: priority, ..SchedAttr::NORMAL };
    TaskSpec { attr: Some(attr), cpus: Some(CpuMask::single(CPU1)), ..TaskSpec::new(comm, work) }
}

/// Four CPUs, all but the first of nohz_full=, on which nothing but tasks takes time.
fn machine(kernel: Kernel, sink: Option<Box<dyn Sink>>) -> LinuxSim<false> {
    machine_of(kernel, Prices::free(), IdleRules::V4_15, sink)
}

fn machine_of(kernel: Kernel, prices: Prices, idle: IdleRules, sink: Option<Box<dyn Sink>>) -> LinuxSim<false> {
    let topology = from_synthetic("pack:1 core:4 pu:1", "test", Numbering::LinuxX86).expect("a valid machine");
    let mut hardware = Hardware::new(topology.clone(), prices, kernel.layout(), idle, 1);
    if let Some(sink) = sink {
        hardware.set_sink(sink);
    }
    let boot = Boot::new(kernel, topology.cpu_topology(), HZ as u32);
    let mut sched = Sched::new(hardware, boot);
    sched.tick_nohz_full_setup(&[CpuId(0), CPU1, CpuId(2), CpuId(3)].into_iter().collect());
    assert!(!sched.tick_nohz_full_cpu(CPU0), "who boots keeps the time");
    Sim::new(sched, Os::new(OsRules::V4_5, HZ as u32))
}

/// Ticks of the second CPU in ten seconds of these policies, each a task that never sleeps.
fn ticks(kernel: Kernel, policies: &[Policy]) -> u64 {
    let mut sim = machine(kernel, None);
    for policy in policies {
        sim.spawn(CPU0, task("hog", *policy, Work::Forever));
    }
    sim.run(Ns::from_ms(10_000));
    assert!(sim.ticks(CPU0) >= 10 * HZ - 2, "somebody keeps the time");
    sim.ticks(CPU1)
}

#[test]
fn a_single_task_has_a_tick_each_second_or_none() {
    for kernel in [V4_5_RC1, V4_15, V4_16] {
        let ticks = ticks(kernel, &[Policy::Normal]);
        assert!((9..=12).contains(&ticks), "{}: {ticks}", kernel.name);
    }
    for kernel in [V6_1, V6_6] {
        let without = ticks(kernel, &[Policy::Normal]);
        assert!(without <= 1, "{}: {without}", kernel.name);
    }
    // The fair server counts as a deadline task while it is queued, once in most of its periods of a second, and that needs the tick.
    let served = ticks(V6_12, &[Policy::Normal]);
    assert!((2..=12).contains(&served), "{}: {served}", V6_12.name);
}

#[test]
fn what_needs_the_tick_has_it() {
    // Real-time tasks leave it idle for 5% of the time, without ticks.
    let all = |ticks: u64| ticks >= 10 * HZ * 94 / 100;
    let few = |ticks: u64| ticks <= 12;
    for kernel in [V4_5_RC1, V4_16, V6_1, V6_6, V6_12] {
        let both = ticks(kernel, &[Policy::Normal; 2]);
        assert!(all(both), "{}: {both}", kernel.name);
        let both = ticks(kernel, &[Policy::Rr; 2]);
        assert!(all(both), "{}: {both}", kernel.name);
        assert!(few(ticks(kernel, &[Policy::Rr])), "{}", kernel.name);
        assert!(few(ticks(kernel, &[Policy::Fifo; 2])), "{}", kernel.name);
    }
}

#[test]
fn a_round_robin_task_below_another_needs_the_tick_where_all_of_them_are_counted() {
    for (kernel, needed) in [(V4_5_RC1, false), (V4_16, true), (V6_12, true)] {
        let mut sim = machine(kernel, None);
        for sched_priority in [20, 10] {
            let mut hog = task("hog", Policy::Rr, Work::Forever);
            hog.attr.as_mut().expect("it has a policy").sched_priority = sched_priority;
            sim.spawn(CPU0, hog);
        }
        sim.run(Ns::from_ms(10_000));
        let ticks = sim.ticks(CPU1);
        assert_eq!(ticks > 5 * HZ, needed, "{}: {ticks}", kernel.name);
    }
}

#[test]
fn the_tick_comes_with_a_second_task_and_goes_with_it() {
    for kernel in [V4_5_RC1, V4_16, V6_1, V6_6, V6_12] {
        let mut sim = machine(kernel, None);
        sim.spawn(CPU0, task("hog", Policy::Normal, Work::Forever));
        sim.run(Ns::from_ms(1_100));
        let alone = sim.ticks(CPU1);
        sim.spawn(CPU0, task("guest", Policy::Normal, Work::For(Ns::from_ms(200))));
        sim.run(Ns::from_ms(2_000));
        // 200 ms of a CPU's half are 400 ms; but in v4.x the guest is placed by the time of the last tick, 100 ms ago.
        let shared = sim.ticks(CPU1) - alone;
        assert!((75..=115).contains(&shared), "{}: {shared}", kernel.name);
    }
}

/// Notes on which CPU tasks of a name are woken.
struct Wakers(Rc<RefCell<Vec<CpuId>>>);

impl Sink for Wakers {
    fn event(&mut self, _time: Ns, cpu: CpuId, event: &Event) {
        if matches!(event, Event::SchedWaking { .. }) {
            self.0.borrow_mut().push(cpu);
        }
    }
    fn task(&mut self, _task: TaskId, _pid: u32, _comm: &str, _prio: i32) {}
    fn task_gone(&mut self, _task: TaskId) {}
}

#[test]
fn timers_of_isolated_cpus_wait_on_housekeeping_ones() {
    for kernel in [V4_5_RC1, V4_16, V6_1, V6_12] {
        let wakers = Rc::new(RefCell::new(Vec::new()));
        let mut sim = machine(kernel, Some(Box::new(Wakers(wakers.clone()))));
        sim.spawn(CPU0, task("sleeper", Policy::Normal, Work::InTurn { sleeps: false }));
        sim.run(Ns::from_ms(500));
        let wakers = wakers.borrow();
        assert!(wakers.len() >= 45 && wakers.iter().all(|&cpu| cpu == CPU0), "{}: {wakers:?}", kernel.name);
    }
}

/// On two nodes of four CPUs, two of each in nohz_full=. Nobody else is busy, so that any housekeeping CPU will do.
#[test]
fn timers_go_to_the_nearest_housekeeping_cpus_where_the_kernel_looks_for_them() {
    for (kernel, expected) in [(V4_16, [0, 0, 0]), (V6_12, [4, 4, 4]), (V6_18, [4, 5, 4]), (V7_2, [4, 5, 4])] {
        let topology = from_synthetic("numa:2 core:4 pu:1", "test", Numbering::LinuxX86).expect("a valid machine");
        let hardware = Hardware::<false>::new(topology.clone(), Prices::free(), kernel.layout(), IdleRules::V4_15, 1);
        let mut sched = Sched::new(hardware, Boot::new(kernel, topology.cpu_topology(), HZ as u32));
        sched.tick_nohz_full_setup(&[2, 3, 6, 7].map(CpuId::new).into_iter().collect());
        let targets = [(); 3].map(|()| sched.get_nohz_timer_target(CpuId(6)).index());
        assert_eq!(targets, expected, "{}", kernel.name);
    }
}

#[test]
fn kernel_threads_stay_on_housekeeping_cpus_where_the_kernel_has_them_so() {
    let cpus_beside = |kernel: Kernel, isolated: &[u16]| {
        let mut sim = machine(kernel, None);
        sim.sched.isolated = isolated.iter().map(|&cpu| CpuId(cpu)).collect();
        let thread = || TaskSpec {
            cpus: None,
            memory: AddressSpace::Kernel,
            ..task("kworker", Policy::Normal, Work::InTurn { sleeps: false })
        };
        let tasks: Vec<TaskId> = (0..4).map(|_| sim.spawn(CPU0, thread())).collect();
        sim.run(Ns::from_ms(500));
        let mut cpus: Vec<CpuId> = tasks.iter().map(|&task| sim.sched.task[task].cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    };
    let cpus = |kernel| cpus_beside(kernel, &[]);
    assert!(cpus(V4_16).len() > 1);
    assert_eq!(cpus(V6_1), [CPU0]);
    assert_eq!(cpus(V6_18), [CPU0]);
    // From v7.2 on isolcpus= keeps them away, and nohz_full= does not.
    assert_eq!(
        (cpus(V7_2).len(), cpus_beside(V7_2, &[2, 3]), cpus_beside(V6_12, &[2, 3])),
        (4, vec![CPU0, CPU1], vec![CPU0])
    );
}

#[test]
fn who_keeps_the_time_cannot_go() {
    let mut sim = machine(V6_1, None);
    sim.at(Ns::from_ms(5), Change::CpuOffline(CPU0));
    sim.at(Ns::from_ms(6), Change::CpuOffline(CPU1));
    sim.idle(Ns::from_ms(10));
    let [refused] = &sim.refused[..] else { panic!("one of two changes is refused") };
    assert_eq!((refused.refusal.errno, refused.change.clone()), (Errno::EBUSY, Change::CpuOffline(CPU0)));
}

/// The state of the CPU that keeps the time, when a task ends there 150 us before the next tick.
fn state_of_the_keeper(kernel: Kernel, idle: IdleRules) -> usize {
    let state = |(name, exit, residency)| IdleState::declared(name, exit, residency);
    let mut prices = Prices::free();
    prices.idle_states = [("POLL", 0, 0), ("C1", 2, 2), ("C1E", 10, 20), ("C6", 133, 400)].map(state).to_vec();
    let mut sim = machine_of(kernel, prices, idle, None);
    let spec = TaskSpec { cpus: Some(CpuMask::single(CPU0)), ..TaskSpec::new("once", Work::For(Ns(3_850_000))) };
    sim.spawn(CPU0, spec);
    sim.spawn(CPU0, task("hog", Policy::Normal, Work::Forever));
    sim.run(Ns(3_900_000));
    sim.sched.arch.idle_state(CPU0).expect("nothing is left there").0
}

#[test]
fn who_keeps_the_time_is_told_of_a_whole_period_until_v4_16() {
    // The time to the next timer was written where the tick stops, and there it never does.
    assert_eq!(state_of_the_keeper(V4_16, IdleRules::V4_15), 3);
    assert_eq!(state_of_the_keeper(V6_1, IdleRules::V6_1), 2);
}
