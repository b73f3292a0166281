//! The run loop: what each CPU does next, and when.
//!
//! The simulation goes from event to event. Each event belongs to one CPU: it executes one path (an interrupt, a system
//! call, a switch) from beginning to end, which takes simulated time, and says when it has to be called again. CPUs are
//! taken in the order of those times, ties by CPU number. What a path does to other CPUs' queues is visible at once,
//! although in simulated time it happens a little later: by at most the length of one path (see docs/cost-model.md).

pub mod engine;
pub mod governors;
pub mod program;
pub mod sleepers;
pub mod tick;
pub mod timeline;
mod timers;
pub mod tournament;

#[cfg(debug_assertions)]
mod compiled;
mod cpu;
mod foresee;
mod frequency;
mod idle;
mod interrupt;
mod kernel_mode;
pub mod noise;
mod settle;
mod softirq;
mod task;
mod user;
mod workers;
