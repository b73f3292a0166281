//! What cases with the cost model on pay.

use machine::prices::{IdleState, Prices};
use machine::smt::SmtPrices;
use machine::topology::Topology;
use units::{CpuMask, Cycles, Prng, Ps};

/// Idle states of the machine's smaller CPUs, which are left more slowly or at once.
pub fn of_kinds(prices: &mut Prices, topology: &Topology, seed: u64) {
    let mut random = Prng::stream(seed, "idle states of kinds", 0);
    let small: CpuMask = topology.cpus().filter(|(_, of)| of.capacity < 1024).map(|(cpu, _)| cpu).collect();
    if small.is_empty() || random.below(2) == 0 {
        return;
    }
    let mut states = prices.idle_states.clone();
    for state in states.iter_mut().filter(|state| !state.polling) {
        state.wake = Ps(state.wake.0 * random.below(3));
        state.exit_latency_us *= 1 + random.below(2) as u32;
        state.target_residency_us *= 1 + random.below(3) as u32;
    }
    prices.idle_states_of_kinds = vec![(small, states)];
}

/// Some numbers of a plausible size, different from each other; no machine's.
pub fn plausible() -> Prices {
    let mut prices = Prices::free();
    prices.ps_per_cycle = 400;
    prices.smt = SmtPrices { pair: [[640, 800], [750, 900]], threads: Vec::new() };
    prices.ipi_delivery = Ps::from_ns(700);
    prices.ipi_send = Cycles(900);
    for (number, cycles) in prices.paths.iter_mut().enumerate() {
        *cycles = Cycles(30 + number as u64 * 37 % 300);
    }
    for (distance, transfer) in prices.lines.transfer.iter_mut().enumerate() {
        *transfer = Ps::from_ns([0, 10, 35, 60, 110].get(distance).copied().unwrap_or(150));
    }
    prices.lines.llc_hit = Ps::from_ns(15);
    prices.lines.memory = Ps::from_ns(80);
    prices.lines.slice_spread = 200;
    prices.lines.read_stall = 800;
    prices.lines.write_stall = 400;
    prices.copy_ps_per_byte = 90;
    (prices.l1_bytes, prices.l2_bytes, prices.l2_load) = (32 << 10, 256 << 10, Cycles(12));
    prices.refill_parallel = 4;
    let states = [("POLL", 0, 0, 0), ("C1", 2, 2, 1_500), ("C3", 33, 100, 25_000), ("C6", 133, 400, 90_000)];
    prices.idle_states = states
        .map(|(name, exit_latency_us, target_residency_us, wake)| IdleState {
            name: name.to_string(),
            exit_latency_us,
            target_residency_us,
            polling: target_residency_us == 0,
            package_wake: Ps::ZERO,
            flushes: exit_latency_us >= 33,
            wake: Ps::from_ns(wake),
        })
        .to_vec();
    prices
}
