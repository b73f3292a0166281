//! Ticks that take long, and whose duty they are.

use crate::interrupts::{CPU1, CPU2, finish, machine, machine_of, pinned, report, value};
use machine::idle::IdleRules;
use machine::prices::Prices;
use os::irq::IrqRules;
use os::paths;
use sched::layout::{GlobalLine, RqLine};
use sim::engine::End;
use sim::program::Op;
use sim::timeline::Change;
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
