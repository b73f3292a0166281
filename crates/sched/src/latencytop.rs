//! kernel/latencytop.c: where in the kernel tasks slept, and for how long: `kernel.latencytop`.
//!
//! While it is off, it costs the read of one flag where a sleeper's statistics are counted anyway (nothing with
//! schedstats off).
//!
//! Differs: a place is the chain of priced functions in which the task sleeps, not a backtrace of addresses. A task
//! that slept already when this was turned on is not counted, because its place is not known.

use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::errno::Answer;
use crate::sched::*;
use fentry::fentry;

/// The number of causes kept for the whole system, one more than are used.
pub const MAXLR: usize = 128;
/// The number of causes kept for one task.
pub const LT_SAVECOUNT: usize = 32;
/// Longer interruptible sleeps are intended, and not a latency; in us.
const LONGEST_INTERRUPTIBLE: u64 = 5000;

/// Where in the kernel a task sleeps: functions, from the outermost on.
pub type WaitChannel = &'static [Path];

/// latencytop.h: struct latency_record. Times in us of 1024 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencyRecord {
    pub backtrace: WaitChannel,
    pub count: u32,
    pub time: u64,
    pub max: u64,
}

/// What is kept for the whole system.
#[derive(Clone, Debug, Default)]
pub struct Latencytop {
    /// latencytop_enabled
    pub(crate) enabled: bool,
    latency_record: Vec<LatencyRecord>,
}

/// Adds one sleep to the record of its place; a new record is added if there are fewer than `most`.
fn add(records: &mut Vec<LatencyRecord>, most: usize, latency: LatencyRecord) {
    if let Some(record) = records.iter_mut().find(|record| record.backtrace == latency.backtrace) {
        record.count += 1;
        record.time += latency.time;
        record.max = record.max.max(latency.max);
    } else if records.len() < most {
        records.push(latency);
    }
}

impl<A: Arch> Sched<A> {
    /// latencytop.c: sysctl_latencytop(). Since v4.6 turning it on also turns schedstats on; turning it off leaves them
    /// on.
    pub(crate) fn sysctl_latencytop(&mut self, enabled: bool) -> Answer {
        self.sysctl.latencytop = u64::from(enabled);
        self.latencytop.enabled = enabled;
        if enabled {
            self.force_schedstat_enabled();
        }
        Ok(())
    }

    /// latencytop.h: account_scheduler_latency(). `p` has slept for `usecs`.
    #[inline]
    pub(crate) fn account_scheduler_latency(&mut self, p: TaskId, usecs: u64, inter: bool) {
        if self.latencytop.enabled {
            self.__account_scheduler_latency(p, usecs, inter);
        }
    }

    /// latencytop.c: __account_scheduler_latency().
    #[fentry]
    fn __account_scheduler_latency(&mut self, p: TaskId, usecs: u64, inter: bool) {
        let backtrace = self.task_cold[p].wchan;
        if inter && usecs > LONGEST_INTERRUPTIBLE || usecs == 0 || backtrace.is_empty() {
            return;
        }
        self.lock_latency();
        let latency = LatencyRecord { backtrace, count: 1, time: usecs, max: usecs };
        self.account_global_scheduler_latency(p, latency);
        add(&mut self.task_cold[p].latency_record, LT_SAVECOUNT, latency);
        self.unlock_latency();
    }

    /// latencytop.c: account_global_scheduler_latency(). Kernel threads do not count.
    fn account_global_scheduler_latency(&mut self, p: TaskId, latency: LatencyRecord) {
        if self.task[p].mm != 0 {
            add(&mut self.latencytop.latency_record, MAXLR - 1, latency);
        }
    }

    /// What `/proc/latency_stats` shows.
    pub fn latency_records(&self) -> &[LatencyRecord] {
        &self.latencytop.latency_record
    }
}
