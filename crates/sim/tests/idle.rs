//! Idle states and the time in them: which a CPU enters, what counts as idle, and how long it takes to leave.

use super::interrupts::{CPU1, CPU2, IRQ, ROUND, finish, machine, machine_of, net, pinned, report, value};
use machine::idle::{IdleOptions, IdleRules, TickUnchosen, Way};
use machine::prices::Prices;
use os::irq::IrqRules;
use os::paths;
use sched::access::Path;
use sched::trace::{Event, Sink};
use sim::engine::{End, LinuxSim};
use sim::program::Op;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{CpuId, CpuMask, Cycles, Ns, Ps};

/// Time between `cpu_idle` events, by CPU and state.
#[derive(Clone, Default)]
struct IdleTrace(Rc<RefCell<IdleTimes>>);

#[derive(Default)]
struct IdleTimes {
    entered: BTreeMap<CpuId, (u8, Ns)>,
    time: BTreeMap<(CpuId, u8), u64>,
    entries: BTreeMap<(CpuId, u8), u64>,
}

impl Sink for IdleTrace {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        let Event::CpuIdle { state } = event else { return };
        let mut times = self.0.borrow_mut();
        match state {
            Some(state) => {
                *times.entries.entry((cpu, *state)).or_default() += 1;
                assert!(times.entered.insert(cpu, (*state, time)).is_none(), "an idle CPU enters no state");
            }
            None => {
                let (state, since) = times.entered.remove(&cpu).expect("it was in a state");
                *times.time.entry((cpu, state)).or_default() += time.0 - since.0;
            }
        }
    }
}

/// Sleeps and works `count` times.
fn periodic(period: Ns, count: u32) -> Vec<Op> {
    (0..count).flat_map(|_| [Op::SleepFor(period), Op::RunFor(Ns(5_000))]).collect()
}

#[test]
fn residencies_are_the_times_between_cpu_idle_events_and_add_up() {
    for rules in [IdleRules::V4_5, IdleRules::V4_15, IdleRules::V6_1, IdleRules::V6_6, IdleRules::V6_12] {
        let trace = IdleTrace::default();
        let mut sim = machine(IrqRules::V4_15, rules, Some(Box::new(trace.clone())));
        for (cpu, us) in [(0, 30), (1, 90), (2, 700), (3, 9_000)] {
            let ops = periodic(Ns(us * 1_000), (60_000 / us) as u32);
            sim.spawn(CpuId(0), pinned("sleeper", CpuId(cpu), ops));
        }
        finish(&mut sim);
        let times = trace.0.borrow();
        for cpu in (0..4).map(CpuId) {
            let (mut idle, mut executing) = (0, 0);
            let residency = sim.sched.arch.residency(cpu);
            for state in 0..4 {
                let traced = times.time.get(&(cpu, state)).copied().unwrap_or(0);
                let entries = times.entries.get(&(cpu, state)).copied().unwrap_or(0);
                let counted = residency.idle[usize::from(state)];
                // Events are stamped in nanoseconds.
                assert!(traced.abs_diff(counted.ns().0) <= entries, "{cpu:?} {state} {traced} {counted:?}");
                idle += traced;
            }
            if let Some((_, since)) = times.entered.get(&cpu) {
                idle += sim.now().0.saturating_sub(since.0);
            }
            executing += sim.busy(cpu).ns().0;
            let elapsed = sim.now().0;
            // Nothing else takes time here but the interrupts that wake it.
            let rest = elapsed.abs_diff(idle + executing);
            assert!(rest < elapsed / 100, "{cpu:?}: {idle} idle, {executing} executing, {elapsed} in all");
        }
    }
}

#[test]
fn periodic_wakeups_reach_the_states_that_the_governors_rules_give_them() {
    // A sleeper's timer may be 50 us late. 30 us of sleep become 80: C1E (20 us). 700: C6 (400 us).
    for rules in [IdleRules::V4_5, IdleRules::V4_15, IdleRules::V6_1, IdleRules::V6_6, IdleRules::V6_12] {
        for governor in [machine::idle::Governor::Menu, machine::idle::Governor::Teo] {
            let mut sim = machine(IrqRules::V4_15, IdleRules { governor, ..rules }, None);
            for (cpu, us) in [(1, 30), (2, 700)] {
                let ops = periodic(Ns(us * 1_000), 200);
                sim.spawn(CpuId(0), pinned("sleeper", CpuId(cpu), ops));
            }
            finish(&mut sim);
            let usual = |cpu: u16| {
                let entries = &sim.sched.arch.residency(CpuId(cpu)).entries;
                (0..4).max_by_key(|&state| entries[state]).expect("four states")
            };
            // To teo of v6.6, both CPUs are busy, if only by what a new task counts, and never sleep in the deepest state.
            let busy = governor == machine::idle::Governor::Teo && rules == IdleRules::V6_6;
            assert_eq!((usual(1), usual(2)), (2, if busy { 2 } else { 3 }), "{governor:?} {rules:?}");
        }
    }
}

#[test]
fn the_tick_goes_on_over_short_idles_since_v4_17() {
    let ticks = |rules| {
        let mut sim = machine(IrqRules::V4_15, rules, None);
        sim.spawn(CpuId(0), pinned("sleeper", CPU1, periodic(Ns(700_000), 500)));
        finish(&mut sim);
        sim.ticks(CPU1)
    };
    // 375 ms and more, 4 ms from tick to tick.
    assert!(ticks(IdleRules::V4_15) < 5);
    assert!(ticks(IdleRules::V6_1) > 60, "{}", ticks(IdleRules::V6_1));
}

#[test]
fn without_a_driver_the_tick_stops_once_it_has_ended_an_idle() {
    let ticks = |idle, way, ms| {
        let mut sim = machine(IrqRules::V6_1, idle, None);
        sim.sched.arch.set_idle_options(&IdleOptions { way, ..IdleOptions::default() });
        sim.spawn(CpuId(0), pinned("sleeper", CPU1, periodic(Ns::from_ms(ms), 50)));
        finish(&mut sim);
        sim.ticks(CPU1)
    };
    let stops = IdleRules { tick_unchosen: TickUnchosen::Stops, ..IdleRules::V6_12 };
    for way in [Way::Off, Way::Halt] {
        assert!([IdleRules::V4_15, stops].iter().all(|&rules| ticks(rules, way, 10) < 3), "at once");
        for rules in [IdleRules::V6_1, IdleRules::V6_12] {
            // A tick in each of fifty idles of two and a half periods; and idles of half a period never stop it.
            assert!((48..=52).contains(&ticks(rules, way, 10)), "{}", ticks(rules, way, 10));
            assert!((24..=27).contains(&ticks(rules, way, 2)), "{}", ticks(rules, way, 2));
        }
    }
    // A CPU that is told to poll keeps it.
    assert!(ticks(IdleRules::V6_1, Way::Poll, 10) > 120);
}

#[test]
fn until_v4_16_the_end_of_an_interrupt_stops_the_tick_of_a_cpu_that_polls() {
    let ticks = |idle| {
        let mut sim = machine(IrqRules::V4_15, idle, None);
        sim.sched.arch.set_idle_options(&IdleOptions { way: Way::Poll, ..IdleOptions::default() });
        // CPU 2 polls since boot.
        sim.spawn(CpuId(0), pinned("sleeper", CPU1, [Op::SleepUntil(Ns::from_ms(400)), report(1)]));
        finish(&mut sim);
        sim.ticks(CpuId(2))
    };
    assert!(ticks(IdleRules::V4_15) <= 2, "{}", ticks(IdleRules::V4_15));
    assert!(ticks(IdleRules::V6_1) > 95, "{}", ticks(IdleRules::V6_1));
}

#[test]
fn time_in_interrupts_is_no_idle_time_of_a_cpu_that_polls() {
    let mut sim = machine(IrqRules::V6_1, IdleRules::V6_1, None);
    sim.sched.arch.set_idle_options(&IdleOptions { way: Way::Poll, ..IdleOptions::default() });
    let irq = sim.request_irq("eth0", CpuMask::single(CPU1));
    for n in 0..10 {
        sim.raise_irq(Ns::from_ms(5 + n), irq, net(1));
    }
    sim.spawn(CpuId(0), pinned("sleeper", CPU1, [Op::SleepUntil(Ns::from_ms(20)), report(1)]));
    finish(&mut sim);
    let idle = sim.sched.arch.residency(CPU1).idle[0].ns().0;
    let executed = 10 * (IRQ.0 + ROUND.0);
    assert!((19_900_000 - executed..=20_000_000 + 50_000 - executed).contains(&idle), "{idle}");
}

/// v6.12's idle loop, one path of which takes so many nanoseconds.
fn slow(path: Path, ns: u64) -> LinuxSim<true> {
    machine_of(IrqRules::V6_1, IdleRules::V6_12, None, |prices| prices.paths[path.0 as usize] = Cycles(ns))
}

#[test]
fn times_to_timers_begin_where_the_idle_loop_does() {
    // The way to the governor takes 30 us. It is told of 420 us or 390 until the timer, of which its sleeper's slack is 50: C6 needs 400.
    let deepest = |us: u64| {
        let mut sim = slow(paths::CPU_IDLE_LOOP, 30_000);
        sim.spawn(CpuId(0), pinned("sleeper", CPU1, [Op::SleepFor(Ns((us - 50) * 1_000)), report(1)]));
        assert_eq!(sim.run(Ns(200_000)), End::Time);
        sim.sched.arch.idle_state(CPU1).expect("it sleeps").0
    };
    assert_eq!([390, 420].map(deepest), [2, 3]);
}

#[test]
fn what_is_measured_of_an_idle_begins_before_the_state_is_entered() {
    // Of 420 us cpuidle_enter_state() takes 200 before the CPU is in C6, for which 400 are enough.
    let mut sim = slow(paths::CPUIDLE_ENTER, 200_000);
    sim.spawn(CpuId(0), pinned("sleeper", CPU1, [Op::SleepFor(Ns((420 - 50) * 1_000)), report(1)]));
    assert_eq!(sim.run(Ns(300_000)), End::Time);
    assert_eq!(sim.sched.arch.idle_state(CPU1).expect("it sleeps").0, 3);
    sim.run(Ns(1_000_000));
    let residency = sim.sched.arch.residency(CPU1);
    // It was not too deep.
    assert_eq!((residency.idle[3].ns(), residency.above[3]), (Ns(280_000), 0));
}

#[test]
fn waking_takes_longer_where_the_package_sleeps_too() {
    // 20 ms of idleness is enough for C6 on all four CPUs, unless a task runs on one of them.
    let woken = |package_wake: u64, hog: bool| {
        // The package takes longer to leave C6 than a core.
        let slow = |prices: &mut Prices| prices.idle_states[3].package_wake = Ps::from_ns(package_wake);
        let mut sim = machine_of(IrqRules::V6_1, IdleRules::V6_1, None, slow);
        sim.spawn(CpuId(0), pinned("sleeper", CPU1, [Op::SleepUntil(Ns::from_ms(20)), report(1)]));
        if hog {
            sim.spawn(CpuId(0), pinned("hog", CPU2, [Op::RunFor(Ns::from_ms(30))]));
        }
        finish(&mut sim);
        value(&sim, 1)
    };
    assert_eq!(woken(40_000, false), woken(0, false) + 40_000);
    assert_eq!(woken(40_000, true), woken(0, true));
}
