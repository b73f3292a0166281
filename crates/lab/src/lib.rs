//! From an experiment to its report: text in, text out.
//!
//! ```text
//! Draft -> Experiment -> [Job] -> Setup -> run -> Outcome -> Table -> report
//! ```
//!
//! No files, no threads, no exit codes here: the faces own those. [`machines::Files`] is how they hand in texts, and a
//! [`setup::Setup`] is all that a thread needs.

pub mod calibration;
pub mod cpufreq;
pub mod csv;
pub mod experiment;
pub mod fidelity;
pub mod html;
pub mod idle;
pub mod json;
pub mod kernels;
pub mod lines;
pub mod listing;
pub mod machines;
pub mod measured;
pub mod mistake;
pub mod mmtests;
pub mod observed;
pub mod prices;
pub mod proc;
pub mod record;
pub mod report;
pub mod run;
pub mod samples;
pub mod sensitivity;
pub mod setup;
pub mod shares;
pub mod statistics;
pub mod studies;
pub mod symbols;
pub mod tables;
pub mod timeline;
pub mod trace;

/// What the program calls its version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
