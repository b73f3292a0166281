//! Listeners: they observe a run and change nothing. Traces are streamed, never held in memory.
//!
//! A listener is a [`sched::trace::Sink`]. Writers ([`Perfetto`], [`Ftrace`]) write to any [`std::io::Write`]. A sink's
//! methods return nothing, so a writer keeps the first I/O error, and `finish` returns it. Floats are used for printing
//! only.

mod by_time;
mod formats;
mod ftrace;
mod gantt;
mod histogram;
mod output;
mod pairs;
mod per_task;
mod perfetto;
pub mod proc;
mod profile;
mod runnable;
mod schedstat;
mod statistics;
mod tasks;
mod tee;
mod tracepoints;
mod window;

pub use formats::{Formats, Release, Span};
pub use ftrace::Ftrace;
pub use gantt::{Gantt, Picture};
pub use histogram::Histogram;
pub use pairs::Pair;
pub use per_task::{PerTask, TaskFigures};
pub use perfetto::{PERFETTO_MAX_CPUS, Perfetto, PowerOf};
pub use profile::{HALTED, Object, Profile, Stack};
pub use schedstat::Schedstat;
pub use statistics::{NameTotals, Report, Statistics};
pub use tee::Tee;
pub use tracepoints::{Absent, Selection, Tracepoint};
pub use window::Window;

use units::Ns;

/// The most that events of one CPU may lag behind those of another: the longest path through the kernel. A listener
/// that orders or cuts the merged stream waits this long for late events. Paths of 3 ms are known: a write to a pipe that
/// wakes 800 tasks of hackbench's at once, on the 480 CPUs of `ivybridge-ex-16s`.
pub const STRAGGLER: Ns = Ns::from_ms(10);
