//! What a kernel does by itself, where somebody asks for it: when, by whom, and whether an idle CPU wakes for it.

use crate::interrupts::{CPU1, CPU2, finish, machine, pinned};
use machine::idle::IdleRules;
use os::background::{Softlockup, VmstatTimer};
use os::irq::IrqRules;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use sched::trace::{Event, Sink};
use sim::engine::{End, LinuxSim};
use sim::program::Op;
use sim::timeline::Change;
use std::cell::RefCell;
use std::rc::Rc;
use units::{CpuId, CpuMask, Ns};

/// When CPUs left idle states.
#[derive(Clone, Default)]
struct Wakes(Rc<RefCell<Vec<(CpuId, Ns)>>>);

impl Sink for Wakes {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        if matches!(event, Event::CpuIdle { state: None }) {
            self.0.borrow_mut().push((cpu, time));
        }
    }
}

#[test]
fn noise_is_there_only_where_it_is_asked_for_and_the_same_for_the_same_seed() {
    let run = |seed: Option<u64>| {
        let wakes = Wakes::default();
        let mut sim = machine(IrqRules::V4_15, IdleRules::V6_1, Some(Box::new(wakes.clone())));
        if let Some(seed) = seed {
            sim.start_noise(seed, None);
        }
        sim.spawn(CpuId(0), pinned("hog", CPU1, [Op::RunFor(Ns::from_ms(3_000))]));
        finish(&mut sim);
        let switches: u64 = sim.sched.rq.iter().map(|(_, rq)| rq.nr_switches).sum();
        (wakes.0.borrow().clone(), sim.events, switches)
    };
    let (quiet, noisy) = (run(None), run(Some(1)));
    assert_eq!(noisy, run(Some(1)));
    assert_ne!(noisy.0, run(Some(2)).0);
    // In three seconds: a hundred looks of rcu_sched, three of each CPU's kworker. Each is a switch there and one back.
    assert!(noisy.2 > quiet.2 + 2 * 100, "{} {}", quiet.2, noisy.2);
}

#[test]
fn noise_was_there_before_the_run_and_begins_asleep() {
    let switches = Rc::new(RefCell::new(Vec::new()));
    struct Switches(Rc<RefCell<Vec<(u64, CpuId)>>>);
    impl Sink for Switches {
        fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
            if matches!(event, Event::SchedSwitch { .. }) {
                self.0.borrow_mut().push((time.0 / 1_000_000, cpu));
            }
        }
    }
    let mut sim = machine(IrqRules::V4_5, IdleRules::V6_1, Some(Box::new(Switches(switches.clone()))));
    sim.start_noise(1, None);
    sim.idle(Ns::from_ms(12_000));
    let switches = switches.borrow();
    // Eleven threads, of which the three of no CPU begin within 5 s and the others within 1 s and 4 s.
    assert!(switches.iter().filter(|&&(ms, _)| ms < 3).count() <= 2, "{:?}", &switches[..10]);
    for cpu in (0..4).map(CpuId::new) {
        let own = switches.iter().filter(|&&(ms, at)| at == cpu && ms >= 2_000).count();
        assert!(own >= 2 * (10 + 2), "{cpu:?} has its kworker and its watchdog: {own}");
    }
}

/// Six seconds of an idle machine with noise, then six in which CPU 1 alone is busy: how often each CPU's kworker had a turn in the first and in
/// all, and how often its stopper had one.
fn twelve_seconds(rules: IrqRules) -> [Vec<u64>; 3] {
    let mut sim = machine(rules, IdleRules::V6_1, None);
    sim.start_noise(1, None);
    let cpus = || (0..4).map(CpuId::new);
    let turns = |sim: &LinuxSim<true>, task: TaskId| sim.sched.task[task].nvcsw;
    let stopper = |sim: &LinuxSim<true>, cpu: CpuId| sim.sched.rq[cpu].stop.expect("every CPU has one");
    // They are the first that are created after the stoppers.
    let kworker = |sim: &LinuxSim<true>, cpu: CpuId| {
        let task = TaskId(stopper(sim, CpuId(3)).0 + 1 + u32::from(cpu.0));
        assert_eq!(*sim.sched.cpus_allowed(task), CpuMask::single(cpu));
        turns(sim, task)
    };
    sim.idle(Ns::from_ms(6_000));
    let idle = cpus().map(|cpu| kworker(&sim, cpu)).collect();
    sim.spawn(CpuId(0), pinned("hog", CPU1, [Op::RunFor(Ns::from_ms(6_000))]));
    assert_eq!(sim.run(Ns::from_ms(14_000)), End::Finished);
    [idle, cpus().map(|cpu| kworker(&sim, cpu)).collect(), cpus().map(|cpu| turns(&sim, stopper(&sim, cpu))).collect()]
}

#[test]
fn a_stopper_shows_that_its_cpu_is_not_stuck_since_v4_19_and_a_thread_before() {
    let [.., stoppers] = twelve_seconds(IrqRules::V6_1);
    assert!(stoppers.iter().all(|&turns| (2..=4).contains(&turns)), "one in four seconds: {stoppers:?}");
    let threads = IrqRules { softlockup: Softlockup::Threads, ..IrqRules::V6_1 };
    assert_eq!(twelve_seconds(threads)[2], [0; 4]);
}

#[test]
fn counters_of_memory_wake_no_cpu_that_idles_without_ticks_since_v4_7() {
    let [idle, all, _] = twelve_seconds(IrqRules::V6_1);
    // What else is due on a CPU takes them along: some CPU has rcu_sched's timeouts.
    assert!(idle.iter().filter(|&&turns| turns == 0).count() >= 2, "{idle:?}");
    assert!(all[1] - idle[1] >= 5, "CPU 1 ticked for six seconds: {idle:?} {all:?}");
    let [idle, ..] = twelve_seconds(IrqRules { vmstat: VmstatTimer::Standard, ..IrqRules::V6_1 });
    assert!(idle.iter().all(|&turns| turns >= 5), "{idle:?}");
}

#[test]
fn isolated_cpus_have_no_watchdog_and_since_v6_5_no_work_on_counters_of_memory() {
    for (rules, isolated, spared) in [
        (IrqRules::V4_5, true, [true, false]),
        (IrqRules::V6_1, true, [true, false]),
        (IrqRules::V6_6, true, [true, true]),
        (IrqRules::V6_6, false, [false, true]),
    ] {
        let mut sim = machine(rules, IdleRules::V6_1, None);
        // One CPU of nohz_full= or of isolcpus=.
        let cpus = CpuMask::single(CPU2);
        if isolated {
            sim.sched.tick_nohz_full_setup(&cpus)
        } else {
            sim.sched.isolated = cpus
        }
        sim.start_noise(1, None);
        let stopper = |cpu: CpuId| sim.sched.rq[cpu].stop.expect("every CPU has one");
        let [before, of_others] = [CPU2, CPU1].map(|cpu| sim.sched.task[stopper(cpu)].nvcsw);
        let comms: Vec<&str> = sim.sched.task_cold.iter().map(|(_, task)| task.comm.as_str()).collect();
        let has = |comm: &str| comms.contains(&comm);
        assert!(has("kworker/1") && has("kworker/2") != spared[1], "{comms:?}");
        let threads = rules.softlockup == Softlockup::Threads;
        assert_eq!([has("watchdog/1"), has("watchdog/2")], [threads, threads && !spared[0]], "{comms:?}");
        let [stoppers, others] = [stopper(CPU2), stopper(CPU1)];
        sim.idle(Ns::from_ms(9_000));
        let turns = |task: TaskId| sim.sched.task[task].nvcsw;
        assert_eq!(turns(stoppers) - before, if threads || spared[0] { 0 } else { 2 });
        assert_eq!(turns(others) - of_others, if threads { 0 } else { 2 });
    }
}

#[test]
fn a_watchdog_is_off_with_its_cpu_and_on_again() {
    let mut sim = machine(IrqRules::V6_1, IdleRules::V6_1, None);
    sim.start_noise(1, None);
    let stopper = sim.sched.rq[CPU2].stop.expect("every CPU has one");
    sim.at(Ns::from_ms(5_000), Change::CpuOffline(CPU2));
    sim.idle(Ns::from_ms(6_000));
    let before = sim.sched.task[stopper].nvcsw;
    sim.at(Ns::from_ms(20_000), Change::CpuOnline(CPU2));
    sim.idle(Ns::from_ms(23_000));
    assert_eq!(sim.sched.task[stopper].nvcsw, before, "it is off");
    sim.idle(Ns::from_ms(29_000));
    assert_eq!(sim.sched.task[stopper].nvcsw, before + 2);
}
