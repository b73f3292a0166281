//! The Linux fair class and its neighbours (kernel/sched), from v4.5 on, rewritten as one deterministic state machine.
//!
//! It has no floats, no I/O, no clock of its own and no randomness. Callers come in through [`scheduler::Scheduler`];
//! the scheduler reaches out through [`arch::Arch`]. Each kernel file is a file here, except that `fair.c` is split
//! along its own chapter banners.

pub mod access;
pub mod arch;
pub mod arena;
pub mod attr;
pub mod autogroup;
pub mod behaviour;
pub mod callbacks;
pub mod core;
pub mod cpu_topology;
pub mod cpudeadline;
pub mod cpufreq;
pub mod cpufreq_schedutil;
pub mod cpupri;
pub mod deadline;
pub mod errno;
pub mod exit;
pub mod fair;
pub mod features;
pub mod foresee;
pub mod hrtimer;
pub mod isolation;
pub mod itmt;
pub mod latencytop;
pub mod layout;
pub mod leave;
mod list;
pub mod load_weight;
pub mod pelt;
pub mod profile;
pub mod psi;
pub mod push_pull;
pub mod rt;
pub mod sched;
pub mod scheduler;
pub mod stats;
pub mod stop_task;
pub mod syscalls;
pub mod sysctl;
pub mod task_work;
#[cfg(test)]
mod testing;
mod text;
pub mod topology;
pub mod trace;
pub mod versions;
