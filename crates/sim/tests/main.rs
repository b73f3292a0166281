//! The simulation's tests, one layer a module (docs of each there). One program: building the scheduler once takes long enough.

mod calls;
mod charges;
mod equivalence;
mod files;
mod futex;
mod idle;
mod interrupts;
mod invariants;
mod locality;
mod many;
mod nesting;
mod net;
mod nohz_full;
mod noise;
mod numa;
mod pipe;
mod preempt;
mod scenario;
mod scenarios;
mod sleeps;
mod threads;
mod ticks;
mod vmstat;

use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::Prices;
use machine::topology::{Numbering, from_synthetic};
use os::{Os, OsRules};
use sched::core::{Boot, Sched};
use sched::versions::V6_1;
use sim::engine::{LinuxSim, Sim};

/// v6.1 with 250 Hz on a machine of this shape, for tests that are of the kernel outside of the scheduler.
fn booted<const COSTS: bool>(shape: &str, prices: Prices, rules: OsRules) -> LinuxSim<COSTS> {
    let topology = from_synthetic(shape, "test", Numbering::LinuxX86).expect("a valid machine");
    let hardware = Hardware::new(topology.clone(), prices, V6_1.layout(), IdleRules::V4_15, 1);
    let boot = Boot::new(V6_1, topology.cpu_topology(), 250);
    Sim::new(Sched::new(hardware, boot), Os::new(rules, 250))
}
