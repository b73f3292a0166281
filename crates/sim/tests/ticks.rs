//! Ticks that take long, and whose duty they are.

use crate::interrupts::{CPU1, CPU2, finish, machine, machine_of, pinned, report, value};
use machine::idle::IdleRules;
use machine::prices::Prices;
use os::irq::IrqRules;
use os::paths;
use sched::layout::{GlobalLine, RqLine};
use sched::trace::{Event, Sink};
use sim::engine::End;
use sim::program::{Op, TaskSpec};
use sim::timeline::Change;
use std::cell::RefCell;
use std::rc::Rc;
use units::{CpuId, Cycles, Ns, Ps};

#[test]
fn a_tick_that_takes_longer_than_its_period_leaves_time_for_others() {
    let slow = |prices: &mut Prices| prices.paths[paths::TICK_SCHED_TIMER.0 as usize] = Cycles(5_000_000);
    let mut sim = machine_of(IrqRules::V4_15, IdleRules::V6_1, None, slow);
    sim.spawn(CpuId(0), pinned("hog", CPU1, [Op::RunFor(Ns::from_ms(20)), report(1)]));
    finish(&mut sim);
    // Three ticks of 5 ms, whose period is 4 ms, and then as long for others.
    let (took, ticks) = (value(&sim, 1), sim.ticks(CPU1));
    assert!((35_000_000..60_000_000).contains(&took), "{took} ns");
    assert!((3..=9).contains(&ticks), "{ticks} ticks");
}

#[test]
fn who_keeps_the_time_hands_that_over_as_it_goes_offline() {
    let counted = |offline: Option<CpuId>| {
        let mut sim = machine(IrqRules::V4_15, IdleRules::V6_1, None);
        sim.sched.arch.start_profile(Ps::ZERO);
        sim.sched.arch.record_lines();
        for cpu in [CPU1, CPU2] {
            sim.spawn(CpuId(0), pinned("hog", cpu, [Op::RunFor(Ns::from_ms(100))]));
        }
        if let Some(cpu) = offline {
            sim.at(Ns::from_ms(30), Change::CpuOffline(cpu));
        }
        assert_eq!(sim.run(Ns::from_ms(90)), End::Time);
        let lines = sim.sched.arch.lines_touched().expect("it records").lines();
        let jiffies = lines.iter().find(|touched| touched.line == GlobalLine::Jiffies.line()).expect("it is written");
        jiffies.by.iter().map(|(_, _, counts)| counts.stores).sum::<u64>()
    };
    // Every 4 ms somebody counts, whoever is up.
    let all = counted(None);
    assert!((20..=24).contains(&all), "{all}");
    for cpu in [CPU1, CPU2] {
        let with = counted(Some(cpu));
        assert!(with >= all - 1, "{cpu:?}: {with} of {all}");
    }
}

#[test]
fn who_keeps_the_time_lays_that_down_as_its_tick_stops() {
    // One of two computes for 30 ms and sleeps then, the other goes on: somebody counts all the while.
    for sleeps in [CPU1, CPU2] {
        let mut sim = machine(IrqRules::V4_15, IdleRules::V6_1, None);
        sim.sched.arch.start_profile(Ps::ZERO);
        sim.sched.arch.record_lines();
        for cpu in [CPU1, CPU2] {
            let time = if cpu == sleeps { 30 } else { 100 };
            sim.spawn(CpuId(0), pinned("hog", cpu, [Op::RunFor(Ns::from_ms(time))]));
        }
        assert_eq!(sim.run(Ns::from_ms(90)), End::Time);
        let lines = sim.sched.arch.lines_touched().expect("it records").lines();
        let jiffies = lines.iter().find(|touched| touched.line == GlobalLine::Jiffies.line()).expect("it is written");
        let counted = jiffies.by.iter().map(|(_, _, counts)| counts.stores).sum::<u64>();
        assert!((20..=24).contains(&counted), "{sleeps:?} sleeps: {counted}");
    }
}

#[test]
fn what_a_tick_has_to_fetch_again_is_waited_for_once() {
    // A tick uses 100 lines, which are 20 ns away; one task streams so much that none is left of them.
    let lines = |prices: &mut Prices| {
        (prices.tick_footprint, prices.tick_parallel, prices.l2_bytes) = (6_400, 1, 64 * 1024);
        prices.lines.llc_hit = Ps::from_ns(20);
    };
    let mut sim = machine_of(IrqRules::V4_15, IdleRules::V6_1, None, lines);
    for (cpu, passes) in [(CPU1, 1_000), (CPU2, 0)] {
        let task = pinned("hog", cpu, [Op::RunFor(Ns::from_ms(42)), report(cpu.0.into())]);
        sim.spawn(CpuId(0), TaskSpec { passes, ..task });
    }
    finish(&mut sim);
    // Ten ticks of 4 ms.
    let late = value(&sim, 1) - value(&sim, 2);
    assert!((19_800..=20_000).contains(&late), "{late} ns");
}

/// When each CPU's ticks came.
#[derive(Clone, Default)]
struct Ticks(Rc<RefCell<Vec<(CpuId, Ns)>>>);

impl Sink for Ticks {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        if let Event::LocalTimerEntry { .. } = event {
            self.0.borrow_mut().push((cpu, time));
        }
    }
}

#[test]
fn ticks_come_as_exactly_as_the_machines_timers_are() {
    // So long after a multiple of 4 ms, in us.
    let late = |jitter_us: u64| {
        let ticks = Ticks::default();
        let jitter = |prices: &mut Prices| prices.tick_jitter = Ps::from_ns(jitter_us * 1_000);
        let mut sim = machine_of(IrqRules::V4_15, IdleRules::V6_1, Some(Box::new(ticks.clone())), jitter);
        sim.spawn(CpuId(0), pinned("hog", CPU1, [Op::RunFor(Ns::from_ms(400))]));
        finish(&mut sim);
        let of_hog =
            ticks.0.borrow().iter().filter(|tick| tick.0 == CPU1).map(|tick| tick.1.0 % 4_000_000 / 1_000).collect();
        let late: Vec<u64> = of_hog;
        late
    };
    assert!(late(0).iter().all(|&us| us == 0));
    let late = late(100);
    assert!(late.len() >= 99 && late.iter().all(|&us| us < 100), "{late:?}");
    // Evenly: about a quarter of them in each quarter.
    for quarter in 0..4 {
        let share = late.iter().filter(|&&us| us / 25 == quarter).count();
        assert!((12..=40).contains(&share), "{share} of {} in quarter {quarter}", late.len());
    }
}

/// rq->idle_state, which cpuidle_enter_state() sets before the state and clears behind it.
#[test]
fn each_idle_is_noted_on_its_run_queue_and_that_it_is_over() {
    let mut sim = machine(IrqRules::V4_15, IdleRules::V6_1, None);
    sim.sched.arch.start_profile(Ps::ZERO);
    sim.sched.arch.record_lines();
    let naps = (0..10).flat_map(|_| [Op::RunFor(Ns::from_us(200)), Op::SleepFor(Ns::from_us(200))]);
    sim.spawn(CpuId(0), pinned("napper", CPU1, naps));
    finish(&mut sim);
    let stores = |cpu: CpuId| {
        let line = sim.sched.layout.rq(cpu, RqLine::WakeList);
        let lines = sim.sched.arch.lines_touched().expect("it records").lines();
        let touched = lines.iter().find(|touched| touched.line == line);
        touched.map_or(0, |touched| touched.by.iter().map(|(_, _, counts)| counts.stores).sum::<u64>())
    };
    // Once in each of ten naps and as it ends, and that it idles before and after them.
    let [napper, idler] = [CPU1, CPU2].map(stores);
    assert!((20..=24).contains(&napper), "{napper}");
    assert!(idler <= 2, "{idler}");
}
