//! Listeners: they read what a run passes on and change nothing. Traces are streamed, never held.
//!
//! A listener is a [`sched::trace::Sink`]. Writers ([`Perfetto`], [`Ftrace`]) take any [`std::io::Write`]; since a
//! sink's methods return nothing, the first I/O error is kept and comes out of `finish`. Floats are used for printing
//! only.

mod ftrace;
mod gantt;
mod histogram;
mod output;
mod pairs;
mod per_task;
mod perfetto;
pub mod proc;
mod profile;
mod schedstat;
mod statistics;
mod tasks;
mod tee;
mod tracepoints;
mod window;

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

/// How far events of one CPU may lag behind those of another, at most: no path through the kernel takes longer. Who
/// must order or cut the merged stream waits this long for stragglers.
pub(crate) const STRAGGLER: Ns = Ns::from_ms(1);
