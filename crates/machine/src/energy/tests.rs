use super::*;
use crate::topology::{Numbering, from_synthetic};

const US: u64 = 1_000_000;

fn at(us: u64) -> Ps {
    Ps(us * US)
}

fn states() -> Vec<IdleState> {
    [("POLL", 0), ("C1", 2), ("C6", 400)].map(|(name, us)| IdleState::declared(name, us, us)).to_vec()
}

/// One kind of CPU: 100 mW at 1 GHz, 400 mW at 2 GHz, 20 mW in C1 and 1 mW in C6. A package draws 500 mW awake and 50
/// mW asleep.
fn power(topology: &Topology) -> Power {
    let domain = DomainPower {
        cpus: topology.cpus().map(|(cpu, _)| cpu).collect(),
        executing: vec![(1_000_000, 100_000), (2_000_000, 400_000)],
        idle: vec![("C1".to_string(), 20_000), ("C6".to_string(), 1_000)],
    };
    Power { fixed_khz: vec![2_000_000; topology.nr_cpus()], domains: vec![domain], package: (500_000, 50_000) }
}

fn topology(text: &str) -> Topology {
    from_synthetic(text, "test", Numbering::AsListed).expect("a valid machine")
}

fn meter(topology: &Topology) -> Meter {
    Meter::new(topology, power(topology), &states(), |_| 2_000_000)
}

/// The energy of milliwatts drawn for microseconds.
fn nanojoules(mw: u64, us: u64) -> u128 {
    u128::from(mw * 1_000) * u128::from(us * US)
}

#[test]
fn power_goes_between_the_frequencies_of_a_table() {
    let domain = &power(&topology("core:1 pu:1")).domains[0];
    let of = |khz| domain.executing_uw(khz);
    assert_eq!((of(1_000_000), of(2_000_000)), (100_000, 400_000));
    assert_eq!(of(1_500_000), 250_000, "halfway");
    assert_eq!(of(500_000), 50_000, "at the lowest voltage it goes with the frequency");
    assert_eq!(of(2_100_000), 400_000, "nobody knows of more");
}

#[test]
fn an_idle_machine_draws_what_its_idle_states_do() {
    let topology = topology("pack:2 core:2 pu:1");
    let mut meter = meter(&topology);
    (0..4).for_each(|cpu| meter.idle(CpuId(cpu), at(10), if cpu == 3 { 1 } else { 2 }));
    let energy = meter.read(at(1_010), &[]);
    let [first, second] = [energy.packages[0], energy.packages[1]];
    assert_eq!(first.cores_aj, 2 * (nanojoules(400, 10) + nanojoules(1, 1_000)));
    assert_eq!(second.cores_aj, 2 * nanojoules(400, 10) + nanojoules(1, 1_000) + nanojoules(20, 1_000));
    assert_eq!((first.own_aj, second.own_aj), (nanojoules(500, 1_010), nanojoules(500, 1_010)));
    assert_eq!(energy.domains[0].idle_aj, [0, nanojoules(20, 1_000), 3 * nanojoules(1, 1_000)]);
    assert_eq!(energy.total_aj(), energy.domains[0].total_aj() + first.own_aj + second.own_aj);
    // Asleep for 600 us of it.
    let asleep = PackageResidency { idle: at(600), entries: 1 };
    let energy = meter.read(at(1_010), &[asleep, PackageResidency::default()]);
    assert_eq!(energy.packages[0].own_aj, nanojoules(500, 410) + nanojoules(50, 600));
    assert_eq!(energy.packages[1].own_aj, nanojoules(500, 1_010));
}

#[test]
fn a_duty_cycle_takes_its_share_of_both() {
    let topology = topology("core:1 pu:1");
    let mut meter = meter(&topology);
    let mut before = None;
    for period in 0..10 {
        // 300 us of each millisecond at 1 GHz, the rest in C6; the state is left from 990 us on.
        meter.resume(CpuId(0), at(period * 1_000));
        meter.clock(CpuId(0), at(period * 1_000), 1_000_000);
        meter.idle(CpuId(0), at(period * 1_000 + 300), 2);
        before.get_or_insert_with(|| meter.read(at(1_000), &[]));
    }
    let energy = meter.read(at(10_000), &[]);
    let (executing, idle) = (nanojoules(100, 3_000), nanojoules(1, 7_000));
    assert_eq!((energy.domains[0].executing_aj, energy.domains[0].idle_aj[2]), (executing, idle));
    assert_eq!(energy.since(&before.unwrap()).domains[0].total_aj(), (executing + idle) / 10 * 9);
    let core = &meter.cores(at(10_000))[0];
    assert_eq!(core.executing.iter().collect::<Vec<_>>(), [(1_000_000, at(3_000))]);
    assert_eq!(core.idle, [Ps::ZERO, Ps::ZERO, at(7_000)]);
}

#[test]
fn a_core_is_as_deep_as_its_shallowest_thread() {
    let topology = topology("core:1 pu:2");
    let mut meter = meter(&topology);
    meter.idle(CpuId(0), at(100), 2);
    // Until then the other thread executes.
    meter.idle(CpuId(1), at(200), 1);
    meter.resume(CpuId(1), at(250));
    meter.idle(CpuId(1), at(300), 2);
    meter.resume(CpuId(0), at(700));
    let core = &meter.cores(at(800))[0];
    assert_eq!(core.executing.iter().map(|it| it.1).fold(Ps::ZERO, |sum, time| sum + time), at(200 + 50 + 100));
    assert_eq!(core.idle, [Ps::ZERO, at(50), at(400)]);
    assert_eq!(core.total_aj(), nanojoules(400, 350) + nanojoules(20, 50) + nanojoules(1, 400));
}

#[test]
fn a_thread_that_wakes_fast_does_not_wait_for_its_slow_sibling() {
    let topology = topology("core:1 pu:2");
    let mut meter = meter(&topology);
    meter.idle(CpuId(0), at(0), 2);
    meter.idle(CpuId(1), at(0), 1);
    // The first is woken first, and executes last; meanwhile the other one runs for 10 us.
    meter.resume(CpuId(0), at(150));
    meter.resume(CpuId(1), at(102));
    meter.idle(CpuId(1), at(112), 1);
    let core = &meter.cores(at(200))[0];
    assert_eq!(core.idle, [Ps::ZERO, at(102 + 38), Ps::ZERO]);
    assert_eq!(core.executing.iter().collect::<Vec<_>>(), [(2_000_000, at(10 + 50))]);
}

#[test]
fn a_clock_that_changes_behind_a_path_counts_from_its_end() {
    let topology = topology("core:1 pu:1");
    let mut meter = meter(&topology);
    meter.idle(CpuId(0), at(100), 1);
    // Woken at 180 us, out of its state at 200 us; its clock has changed meanwhile.
    meter.resume(CpuId(0), at(200));
    meter.clock(CpuId(0), at(190), 1_000_000);
    meter.idle(CpuId(0), at(300), 1);
    // A change that is reported after later ones were counted changes nothing.
    meter.clock(CpuId(0), at(290), 2_000_000);
    meter.clock(CpuId(0), at(295), 1_000_000);
    // An interrupt from outside took 5 us of that.
    meter.executed_beside(CpuId(0), at(320), at(325));
    let core = &meter.cores(at(400))[0];
    assert_eq!(core.executing.iter().collect::<Vec<_>>(), [(1_000_000, at(105)), (2_000_000, at(100))]);
    assert_eq!(core.idle[1], at(195));
    assert_eq!(core.total_aj(), nanojoules(400, 100) + nanojoules(100, 105) + nanojoules(20, 195));
}
