//! Files of procfs and debugfs in each kernel's format, so that tools for real machines can read them.
//!
//! `/proc/schedstat` is in `crate::schedstat`. Where a file shows something that is not modelled (clocks that are not
//! stable, memory policies), it shows what such a machine without load would.

#[cfg(test)]
mod between_versions;
mod cgroup_mode;
mod interrupts;
mod latency;
mod pressure;
mod sched_debug;
mod task_sched;

pub use cgroup_mode::cgroup_mode_text;
pub(crate) use interrupts::SOFTIRQ_NAMES;
pub use interrupts::{InterruptLine, arch_probe_nr_irqs, device_about, interrupts_text, softirqs_text};
pub use latency::{latency_text, readprofile_text};
pub use pressure::pressure_text;
pub use sched_debug::SchedDebug;
pub use task_sched::{TaskSched, task_schedstat};

use sched::sched::SchedStatistics;
use std::fmt;

/// debug.c: SPLIT_NS(): milliseconds with six digits behind the point; the sign stands before whole milliseconds only, and a
/// negative part after the point loses its own, as the kernel prints it.
pub(crate) struct SplitNs(pub i64);

impl fmt::Display for SplitNs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SplitNs(ns) = *self;
        let (high, low) = if ns < 0 {
            let positive = ns.unsigned_abs();
            (-((positive / 1_000_000) as i64), positive % 1_000_000)
        } else {
            (ns / 1_000_000, (ns % 1_000_000) as u64)
        };
        let width = f.width().unwrap_or(0);
        write!(f, "{high:>width$}.{low:06}")
    }
}

/// A task's clocks are unsigned in the kernel, but printed as signed.
pub(crate) fn split_ns(ns: u64) -> SplitNs {
    SplitNs(ns as i64)
}

/// The times of an entity's statistics that every file prints, in the kernels' order.
pub(crate) fn waits_and_sleeps(of: &SchedStatistics) -> [(&'static str, u64); 9] {
    [
        ("wait_start", of.wait_start),
        ("sleep_start", of.sleep_start),
        ("block_start", of.block_start),
        ("sleep_max", of.sleep_max),
        ("block_max", of.block_max),
        ("exec_max", of.exec_max),
        ("slice_max", of.slice_max),
        ("wait_max", of.wait_max),
        ("wait_sum", of.wait_sum),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_split_as_the_kernel_splits_them() {
        assert_eq!(SplitNs(6_119_713_293).to_string(), "6119.713293");
        assert_eq!(format!("{:9}", SplitNs(2_000_001)), "        2.000001");
        assert_eq!(SplitNs(-21_455_631).to_string(), "-21.455631");
        assert_eq!(SplitNs(-1).to_string(), "0.000001");
    }
}
