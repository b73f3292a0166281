//! The simulation's tests, one layer a module (docs of each there). One program: building the scheduler once takes long enough.

mod charges;
mod equivalence;
mod files;
mod futex;
mod interrupts;
mod invariants;
mod locality;
mod many;
mod net;
mod nohz_full;
mod numa;
mod pipe;
mod preempt;
mod scenario;
mod scenarios;
mod threads;
mod ticks;
