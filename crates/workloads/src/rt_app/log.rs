//! What threads report while they run, and how rt-app's log is made from it.
//!
//! Each thread reports into series of its own, one per [`Column`]; a row of the log is complete with [`Column::WuLat`].

use super::description::{Application, TaskId};
use sim::engine::Sample;
use std::fmt::Write;

/// What a thread's series holds. Times are microseconds, rounded as rt-app rounds them, except where said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    /// A forked thread's first report: its task (high half), and its number among that task's forks (low half).
    Born,
    Perf,
    Run,
    /// Nanoseconds of the simulated clock.
    Start,
    /// Nanoseconds of the simulated clock.
    End,
    /// Signed.
    Slack,
    CDuration,
    CPeriod,
    WuLat,
    /// Nanoseconds from a timer's moment until its thread runs; one report each time a thread slept for the timer.
    TimerLatency,
}

/// Series of the process itself: when main began to start threads (nanoseconds of the simulated clock).
pub(super) const MAIN_START: u32 = 0;
/// Series of the process itself: the task that reached the limit of forks, which ended the process.
pub(super) const FORK_LIMIT_REACHED: u32 = 1;

impl Column {
    const ALL: [Column; 10] = [
        Column::Born,
        Column::Perf,
        Column::Run,
        Column::Start,
        Column::End,
        Column::Slack,
        Column::CDuration,
        Column::CPeriod,
        Column::WuLat,
        Column::TimerLatency,
    ];

    /// The series of this column of a thread, after those of the process.
    pub fn of(self, thread: u32) -> u32 {
        (thread + 1) * Column::ALL.len() as u32 + self as u32
    }

    /// Thread and column of a series; `None` where it is the process's.
    fn from_series(series: u32) -> Option<(u32, Column)> {
        let (slot, column) = (series / Column::ALL.len() as u32, series as usize % Column::ALL.len());
        Some((slot.checked_sub(1)?, Column::ALL[column]))
    }
}

/// One thread's log: a row for each round of a phase that ended before the application did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLog {
    /// As rt-app names the thread and its log file.
    pub thread: String,
    pub task: TaskId,
    /// rt-app's `idx`: the threads of the start in the order of the file, then forked ones in the order of their forks.
    pub index: u32,
    pub rows: Vec<LogRow>,
}

/// One row. The columns are rt-app's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogRow {
    /// Thousands of loops that `run` and `runtime` were worth; each event is rounded down.
    pub perf: u64,
    /// How long `run` and `runtime` took.
    pub run_us: u64,
    /// How long the round took.
    pub period_us: u64,
    /// On the simulated clock, which stands for CLOCK_MONOTONIC.
    pub start_us: u64,
    pub end_us: u64,
    /// The start, counted from when the process began to start threads.
    pub rel_start_us: u64,
    /// From reaching the timer until its moment; negative if the moment had passed. This is the last timer's, or with
    /// `cumulative_slack` the sum.
    pub slack_us: i64,
    /// How much time `run` and `runtime` ask for.
    pub c_duration_us: u64,
    /// How much time the timers ask for.
    pub c_period_us: u64,
    /// From the timers' moments until the thread ran again; a missed moment begins the sum anew.
    pub wu_lat_us: u64,
}

/// rt-app's `timespec_to_usec()`: to the nearest microsecond, halves up.
pub(super) fn rounded_us(ns: u64) -> u64 {
    (ns + 500) / 1000
}

/// The same for differences; halves are rounded away from zero.
pub(super) fn rounded_difference_us(later_ns: u64, earlier_ns: u64) -> i64 {
    let size = rounded_us(later_ns.abs_diff(earlier_ns)) as i64;
    if later_ns >= earlier_ns { size } else { -size }
}

/// A thread's log as it is read, and the columns of the current row.
struct Open {
    log: ThreadLog,
    columns: [u64; Column::ALL.len()],
}

impl Open {
    fn new(app: &Application, task: TaskId, index: u32, fork: Option<u32>) -> Open {
        let thread = app.thread_name(task, index, fork);
        Open { log: ThreadLog { thread, task, index, rows: Vec::new() }, columns: Default::default() }
    }

    fn row(&self, main_start_ns: u64) -> LogRow {
        let column = |column: Column| self.columns[column as usize];
        let (start, end) = (column(Column::Start), column(Column::End));
        LogRow {
            perf: column(Column::Perf),
            run_us: column(Column::Run),
            period_us: rounded_us(end - start),
            start_us: rounded_us(start),
            end_us: rounded_us(end),
            rel_start_us: rounded_us(start - main_start_ns),
            slack_us: column(Column::Slack) as i64,
            c_duration_us: column(Column::CDuration),
            c_period_us: column(Column::CPeriod),
            wu_lat_us: column(Column::WuLat),
        }
    }
}

/// The logs of all threads that came to run, by index.
pub(super) fn logs(app: &Application, samples: &[Sample]) -> Vec<ThreadLog> {
    let first = |(index, task)| Some(Open::new(app, task, index as u32, None));
    let mut threads: Vec<Option<Open>> = app.threads().enumerate().map(first).collect();
    let mut main_start = 0;
    for sample in samples {
        let Some((thread, column)) = Column::from_series(sample.series) else {
            if sample.series == MAIN_START {
                main_start = sample.value;
            }
            continue;
        };
        let index = thread as usize;
        if column == Column::Born {
            // Forked threads may run first in another order than they were forked.
            threads.resize_with(threads.len().max(index + 1), || None);
            let (task, fork) = born(sample.value);
            threads[index] = Some(Open::new(app, task, thread, Some(fork)));
            continue;
        }
        let open = threads[index].as_mut().expect("a forked thread says so first");
        open.columns[column as usize] = sample.value;
        if column == Column::WuLat {
            let row = open.row(main_start);
            open.log.rows.push(row);
        }
    }
    threads.into_iter().flatten().map(|open| open.log).collect()
}

/// The value of [`Column::Born`].
pub(super) fn birth(task: TaskId, fork: u32) -> u64 {
    u64::from(task.0) << 32 | u64::from(fork)
}

fn born(value: u64) -> (TaskId, u32) {
    (TaskId((value >> 32) as u32), value as u32)
}

/// For the threads of `task`, in the order of their reports: the nanoseconds from timers' moments until the thread ran
/// (`timers`), or else the length of each round of a phase.
pub(super) fn times(app: &Application, task: TaskId, timers: bool, samples: &[Sample]) -> Vec<u64> {
    let mut task_of: Vec<TaskId> = app.threads().collect();
    let mut started = vec![0; task_of.len()];
    let mut times = Vec::new();
    for sample in samples {
        let Some((thread, column)) = Column::from_series(sample.series) else { continue };
        let thread = thread as usize;
        if thread >= task_of.len() {
            task_of.resize(thread + 1, TaskId(u32::MAX));
            started.resize(thread + 1, 0);
        }
        match column {
            Column::Born => task_of[thread] = born(sample.value).0,
            Column::TimerLatency if timers && task_of[thread] == task => times.push(sample.value),
            Column::Start => started[thread] = sample.value,
            Column::End if !timers && task_of[thread] == task => times.push(sample.value - started[thread]),
            _ => {}
        }
    }
    times
}

/// A thread's log as rt-app writes it: a line of column names, then one line per row, in microseconds.
pub fn log_text(log: &ThreadLog) -> String {
    let mut text = format!(
        "{} {:>8} {:>8} {:>8} {:>15} {:>15} {:>15} {:>10} {:>10} {:>10} {:>10}\n",
        "#idx", "perf", "run", "period", "start", "end", "rel_st", "slack", "c_duration", "c_period", "wu_lat"
    );
    for row in &log.rows {
        let written = writeln!(
            text,
            "{:4} {:8} {:8} {:8} {:15} {:15} {:15} {:10} {:10} {:10} {:10}",
            log.index,
            row.perf,
            row.run_us,
            row.period_us,
            row.start_us,
            row.end_us,
            row.rel_start_us,
            row.slack_us,
            row.c_duration_us,
            row.c_period_us,
            row.wu_lat_us,
        );
        written.expect("strings take what is written");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_round_as_lround_does() {
        assert_eq!([499, 500, 1499, 1500].map(rounded_us), [0, 1, 1, 2]);
        assert_eq!(rounded_difference_us(1000, 2500), -2);
        assert_eq!(rounded_difference_us(1000, 2499), -1);
        assert_eq!(rounded_difference_us(2500, 1000), 2);
    }

    #[test]
    fn series_name_thread_and_column() {
        for thread in [0, 1, 100_000] {
            for column in Column::ALL {
                assert_eq!(Column::from_series(column.of(thread)), Some((thread, column)));
            }
        }
        assert_eq!(Column::from_series(MAIN_START), None);
        assert_eq!(Column::from_series(FORK_LIMIT_REACHED), None);
    }
}
