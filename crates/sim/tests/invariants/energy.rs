//! Energy and residency add up: what a core took is its time in each state times what it draws there, its times are all the time there
//! was, and domains and packages are the sums of their cores.

use machine::energy::{CoreEnergy, DomainPower, Power};
use machine::hardware::Hardware;
use machine::prices::IdleState;
use machine::topology::Topology;
use sim::engine::LinuxSim;
use units::{CpuId, CpuMask, Prng, Ps};

/// What a random machine draws: CPUs of one capacity in one domain.
pub fn power(topology: &Topology, states: &[IdleState], seed: u64) -> Power {
    let mut random = Prng::stream(seed, "power", 0);
    let mut capacities: Vec<u32> = topology.cpus().map(|(_, cpu)| cpu.capacity).collect();
    capacities.sort_unstable();
    capacities.dedup();
    let mut domain = |capacity: &u32| {
        let cpus: CpuMask = topology.cpus().filter(|(_, of)| of.capacity == *capacity).map(|(cpu, _)| cpu).collect();
        let mut above = 1 + random.below(1_000_000);
        let lowest = above;
        let mut executing = Vec::new();
        for step in 1..=1 + random.below(4) {
            executing.push((step * 500_000, above));
            above += random.below(1_000_000);
        }
        let mut left = lowest;
        let idle = |state: &IdleState| {
            left = random.below(left + 1);
            (state.name.clone(), left)
        };
        DomainPower { cpus, executing, idle: states.iter().filter(|state| !state.polling).map(idle).collect() }
    };
    let domains = capacities.iter().map(&mut domain).collect();
    Power { fixed_khz: vec![2_500_000; topology.nr_cpus()], domains, package: (random.below(5_000_000), 0) }
}

fn times(energy: &CoreEnergy) -> u64 {
    energy.executing.iter().chain(energy.idle.iter().map(|&time| (0, time))).map(|(_, time)| time.0).sum()
}

/// What `cpu` counts of each idle state up to `end`.
fn residency<const COSTS: bool>(hardware: &Hardware<COSTS>, cpu: CpuId, end: Ps) -> Vec<Ps> {
    let mut idle = hardware.residency(cpu).idle.clone();
    if let Some((state, since)) = hardware.idle_state(cpu) {
        idle[state] += end.saturating_sub(since);
    }
    idle
}

pub fn check<const COSTS: bool>(sim: &LinuxSim<COSTS>) {
    let hardware = &sim.sched.arch;
    let Some(meter) = hardware.meter() else { return };
    let topology = &hardware.topology;
    let latest = topology.cpus().map(|(cpu, _)| hardware.now(cpu)).max().expect("a CPU").max(sim.now().into());
    // Who leaves an idle state has it counted up to the first instruction, which may be still to come.
    let wake = hardware.prices.all_idle_states().map(|state| state.wake).max().expect("an idle state");
    let end = latest + wake;
    let (power, cores) = (meter.power(), meter.cores(end));
    for (core, energy) in topology.cores().iter().zip(&cores) {
        let first = core.cpus.iter().next().expect("a core has a thread");
        assert_eq!(times(energy), end.0, "what the core of CPU {first} counts, in ps");
        let of = power.domains.iter().find(|domain| domain.cpus.contains(first)).expect("a domain");
        let drawn = |time: Ps, uw: u64| u128::from(time.0) * u128::from(uw);
        let executing: u128 = energy.executing.iter().map(|(khz, time)| drawn(time, of.executing_uw(khz))).sum();
        assert_eq!(energy.executing_aj, executing, "what the core of CPU {first} took executing");
        for (state, price) in hardware.prices.idle_states.iter().enumerate() {
            let idle = of.idle_uw(&price.name).map_or(0, |uw| drawn(energy.idle[state], uw));
            assert_eq!(energy.idle_aj[state], idle, "what the core of CPU {first} took in {}", price.name);
        }
        for thread in core.cpus.iter() {
            let polling = |state: usize| hardware.prices.idle_states[state].polling;
            let idle = residency(hardware, thread, end);
            let of_thread: Vec<Ps> =
                idle.iter().enumerate().map(|(state, &time)| if polling(state) { Ps::ZERO } else { time }).collect();
            if core.cpus.weight() == 1 {
                assert_eq!(energy.idle, of_thread, "idle states of CPU {thread} and of its core");
            }
            let sum = |times: &[Ps]| times.iter().map(|time| time.0).sum::<u64>();
            assert!(sum(&energy.idle) <= sum(&of_thread), "a core idles no longer than its thread {thread}");
        }
    }
    for package in 0..topology.packages().len() {
        for (core, draw) in meter.package_cores(package, end) {
            let (idle, energy) = (cores[core].idle_aj.iter().sum::<u128>(), &cores[core]);
            assert_eq!(
                (draw.executing_aj, draw.idle_aj),
                (energy.executing_aj, idle),
                "what core {core} took, in short"
            );
        }
    }
    let all = hardware.energy(end).expect("it is reckoned");
    let sum: u128 = cores.iter().map(CoreEnergy::total_aj).sum();
    assert_eq!(all.domains.iter().map(|domain| domain.total_aj()).sum::<u128>(), sum, "domains hold their cores");
    assert_eq!(all.packages.iter().map(|package| package.cores_aj).sum::<u128>(), sum, "packages hold their cores");
    let own = u128::from(power.package.0) * u128::from(end.0) * topology.packages().len() as u128;
    assert_eq!(all.total_aj(), sum + own, "the machine is its packages");
}
