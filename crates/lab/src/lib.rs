//! From an experiment to its report: text in, text out.
//!
//! ```text
//! Draft -> Experiment -> [Job] -> Setup -> run -> Outcome -> Table -> report
//! ```
//!
//! Modules use each other in one direction, which `cargo xtask tidy` checks: what is written and measured (`mistake`,
//! `statistics`, `tables`, `machines`, `kernels`), one run (`setup`, `run`, `record`), an `experiment` of many runs,
//! what they make together (`measurements`, `json`, `adaptive`), and what is said about it (`report`, `html`,
//! `samples`).
//!
//! This crate has no files, threads or exit codes; the front ends own those. They pass in texts through
//! [`machines::Files`], and a [`setup::Setup`] is all that a thread needs.

pub mod adaptive;
pub mod boot;
pub mod calibration;
mod cpu_list;
mod cpu_rows;
pub mod cpufreq;
pub mod csv;
mod deadlock;
pub mod energy;
pub mod experiment;
pub mod fidelity;
pub mod groups;
pub mod hash;
pub mod html;
pub mod idle;
pub mod json;
pub mod kernels;
pub mod lines;
pub mod listing;
pub mod machines;
pub mod measured;
pub mod measurements;
pub mod mistake;
pub mod mmtests;
mod model;
mod numbers;
pub mod observed;
pub mod powercap;
pub mod prices;
pub mod proc;
pub mod programs;
pub mod record;
pub mod report;
pub mod residency;
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
pub mod warning;
pub mod window;

/// The program's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
