//! What a kernel does by itself, where somebody asks for it: when, by whom, and whether an idle CPU wakes for it.

use crate::interrupts::{CPU1, CPU2, finish, machine, pinned};
use machine::idle::IdleRules;
use os::background::{QuietVmstat, Softlockup, VmstatTimer};
use os::irq::IrqRules;
use os::pipe::PAGE_SIZE;
use sched::sched::TaskId;
use sched::trace::{Event, Sink};
use sim::engine::LinuxSim;
use sim::program::{Op, Steps, TaskSpec};
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
    // In three seconds: nearly a hundred looks of rcu_sched. Each is a switch there and one back.
    assert!(noisy.2 > quiet.2 + 2 * 90, "{} {}", quiet.2, noisy.2);
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
    assert!(switches.iter().filter(|&&(ms, _)| ms < 3).count() <= 2, "{:?}", &switches[..10]);
    for cpu in (0..4).map(CpuId::new) {
        let own = switches.iter().filter(|&&(_, at)| at == cpu).count();
        assert!(own >= 2 * 2, "{cpu:?} has its watchdog: {own}");
    }
}

/// How often threads whose names begin with `name` went to sleep.
fn turns(sim: &LinuxSim<true>, name: &str) -> u64 {
    let threads = sim.sched.task_cold.iter().filter(|(_, task)| task.comm.starts_with(name));
    threads.map(|(task, _)| sim.sched.task[task].nvcsw).sum()
}

fn turns_of_workers(sim: &LinuxSim<true>, cpu: CpuId) -> u64 {
    turns(sim, &format!("kworker/{}:", cpu.index()))
}

#[test]
fn a_node_looks_how_far_its_memory_is_in_pieces_twice_a_second_since_v5_9() {
    for (rules, looks) in [(IrqRules::V4_19, 0..=0), (IrqRules::V5_10, 9..=10)] {
        let mut sim = noisy(rules);
        let before = turns(&sim, "kcompactd0");
        sim.idle(Ns::from_ms(6_300));
        let looked = turns(&sim, "kcompactd0") - before;
        assert!(looks.contains(&looked), "{looked}");
    }
}

/// What a task on CPU 1 does ten times, with three tenths of a second of work after each.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Nothing,
    /// It allocates a page.
    Page,
    Forks,
}

/// A machine on which it does that, until a tenth of a second later.
fn works_for_three_seconds(sim: &mut LinuxSim<true>, does: Does) {
    let begin = sim.now();
    let pipe = sim.os.create_pipe();
    let ops = (0..10).flat_map(|_| {
        let first = match does {
            Does::Nothing => Op::GetCpu,
            Does::Page => Op::Write { pipe, bytes: PAGE_SIZE },
            Does::Forks => Op::Fork(Box::new(TaskSpec::new("child", Steps([Op::Exit].into_iter())))),
        };
        [first, Op::RunFor(Ns::from_ms(300))]
    });
    let ops: Vec<Op> = ops.collect();
    sim.spawn(CpuId(0), pinned("task", CPU1, ops));
    // The shepherd comes with a tick of its CPU.
    sim.spawn(CpuId(0), pinned("hog", CpuId(0), [Op::RunFor(Ns::from_ms(10_000))]));
    sim.idle(begin + Ns::from_ms(3_100));
}

fn noisy(rules: IrqRules) -> LinuxSim<true> {
    let mut sim = machine(rules, IdleRules::V6_1, None);
    sim.start_noise(1, None);
    sim.idle(Ns::from_ms(1_300));
    sim
}

#[test]
fn the_shepherd_brings_workers_back_to_cpus_whose_counters_have_changed() {
    let rounds = |rules: IrqRules, does: Does| {
        let mut sim = noisy(rules);
        assert_eq!(turns_of_workers(&sim, CPU1), 0, "an idle machine has none");
        works_for_three_seconds(&mut sim, does);
        turns_of_workers(&sim, CPU1)
    };
    // The task's own beginning is found once, and a second later there is no more.
    for rules in [IrqRules::V4_15, IrqRules::V6_1] {
        assert_eq!(rounds(rules, Does::Nothing), 2);
        assert_eq!(rounds(rules, Does::Forks), 3);
    }
    // Allocated pages are found until they are counted apart.
    assert_eq!([IrqRules::V4_19, IrqRules::V5_15].map(|rules| rounds(rules, Does::Page)), [3, 2]);
}

#[test]
fn a_cpu_that_goes_idle_is_not_woken_for_its_counters_since_v4_7() {
    let rounds = |vmstat: VmstatTimer, quiet_vmstat: QuietVmstat| {
        let mut sim = noisy(IrqRules { vmstat, quiet_vmstat, ..IrqRules::V6_1 });
        works_for_three_seconds(&mut sim, Does::Forks);
        let before = turns_of_workers(&sim, CPU1);
        sim.idle(Ns::from_ms(8_000));
        turns_of_workers(&sim, CPU1) - before
    };
    assert_eq!(rounds(VmstatTimer::Deferrable, QuietVmstat::WithTick), 0);
    // Its timer wakes it, and it finds that it has counted everything on its way to sleep.
    assert_eq!(rounds(VmstatTimer::Standard, QuietVmstat::WithTick), 1);
    assert_eq!(rounds(VmstatTimer::Standard, QuietVmstat::OnceOff), 1);
    // In v4.5-rc1 it has cancelled it.
    assert_eq!(rounds(VmstatTimer::Standard, QuietVmstat::EachTime), 0);
}

#[test]
fn a_cpu_that_goes_offline_leaves_its_counters_to_the_shepherd() {
    let mut sim = noisy(IrqRules::V6_1);
    sim.at(Ns::from_ms(4_450), Change::CpuOffline(CPU1));
    sim.at(Ns::from_ms(6_000), Change::CpuOnline(CPU1));
    works_for_three_seconds(&mut sim, Does::Forks);
    let before = turns_of_workers(&sim, CPU1);
    sim.idle(Ns::from_ms(7_000));
    assert_eq!(turns_of_workers(&sim, CPU1), before, "its work went with it");
    works_for_three_seconds(&mut sim, Does::Forks);
    assert!(turns_of_workers(&sim, CPU1) > before);
}

#[test]
fn a_stopper_shows_that_its_cpu_is_not_stuck_since_v4_19_and_a_thread_before() {
    let turns = |rules| {
        let mut sim = noisy(rules);
        sim.idle(Ns::from_ms(12_000));
        let stopper = |cpu| sim.sched.rq[cpu].stop.expect("every CPU has one");
        (0..4).map(|cpu| sim.sched.task[stopper(CpuId::new(cpu))].nvcsw).collect::<Vec<u64>>()
    };
    assert_eq!(turns(IrqRules::V6_1), [3; 4], "one in four seconds");
    assert_eq!(turns(IrqRules { softlockup: Softlockup::Threads, ..IrqRules::V6_1 }), [0; 4]);
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
        let cpus = CpuMask::single(CPU1);
        if isolated {
            sim.sched.tick_nohz_full_setup(&cpus)
        } else {
            sim.sched.isolated = cpus
        }
        sim.start_noise(1, None);
        let stopper = |cpu: CpuId| sim.sched.rq[cpu].stop.expect("every CPU has one");
        let comms: Vec<&str> = sim.sched.task_cold.iter().map(|(_, task)| task.comm.as_str()).collect();
        let has = |comm: &str| comms.contains(&comm);
        let threads = rules.softlockup == Softlockup::Threads;
        assert_eq!([has("watchdog/2"), has("watchdog/1")], [threads, threads && !spared[0]], "{comms:?}");
        let [stoppers, others] = [stopper(CPU1), stopper(CPU2)];
        sim.idle(Ns::from_ms(9_000));
        let turns = |task: TaskId| sim.sched.task[task].nvcsw;
        let in_nine_seconds = |threads: bool| if threads { 0..=0 } else { 2..=3 };
        assert!(in_nine_seconds(threads || spared[0]).contains(&turns(stoppers)));
        assert!(in_nine_seconds(threads).contains(&turns(others)));
        works_for_three_seconds(&mut sim, Does::Forks);
        assert_eq!(turns_of_workers(&sim, CPU1) == 0, spared[1], "{rules:?}");
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
