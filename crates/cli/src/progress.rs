//! What the user sees of work that takes its time: bars on a terminal, and how many runs of one or more experiments are
//! done, and how long the rest will take.

use crate::output::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::experiment::Job;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time between two lines if stderr is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// A bar on stderr, if that is a terminal, the user wants one, and there is something to do. `after` stands behind the
/// bar, in indicatif's template language.
pub fn plain_bar(after: &str, all: usize, quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {after}"));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// The same that counts `what`, for a process that measures itself: no thread moves it, it moves with each run.
pub fn still_bar(what: &str, all: usize, done: usize, quiet: bool) -> ProgressBar {
    let bar = plain_bar(&format!("{what}  {{elapsed}} passed, {{eta}} to go"), all, quiet || done == all);
    bar.set_position(done as u64);
    bar.reset_eta();
    bar
}

/// The same with a thread.
pub fn bar(what: &str, all: usize, done: usize, quiet: bool) -> ProgressBar {
    ticking(still_bar(what, all, done, quiet))
}

fn ticking(bar: ProgressBar) -> ProgressBar {
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(500));
    }
    bar
}

/// What runs cost, as far as is known, and which are still to come. The runs of a row cost much the same under every
/// arm and seed; rows of one table resemble each other; for anything else there is only the average.
#[derive(Debug, Default)]
pub struct Forecast {
    /// The arms and iterations of each point that are still to come.
    pending: BTreeMap<(usize, usize, usize), BTreeSet<(usize, u32)>>,
    points: BTreeMap<(usize, usize, usize), Costs>,
    tables: BTreeMap<(usize, usize), Costs>,
    all: Costs,
}

#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    sum_ns: u64,
    runs: u64,
}

impl Costs {
    fn add(&mut self, cpu_ns: u64) {
        self.sum_ns += cpu_ns;
        self.runs += 1;
    }

    fn mean(self) -> Option<u64> {
        self.sum_ns.checked_div(self.runs)
    }
}

impl Forecast {
    /// Adds runs that are to be done; `experiment` distinguishes experiments.
    pub fn expect(&mut self, experiment: usize, jobs: impl IntoIterator<Item = Job>) {
        for Job { table, point, arm, iteration } in jobs {
            self.pending.entry((experiment, table, point)).or_default().insert((arm, iteration));
        }
    }

    /// How many runs are still to come.
    fn pending(&self) -> u64 {
        self.pending.values().map(|jobs| jobs.len() as u64).sum()
    }

    /// A run is done, and took that much CPU time.
    pub fn learn(&mut self, experiment: usize, job: &Job, cpu_ns: u64) {
        let point = (experiment, job.table, job.point);
        self.pending.entry(point).or_default().remove(&(job.arm, job.iteration));
        self.points.entry(point).or_default().add(cpu_ns);
        self.tables.entry((experiment, job.table)).or_default().add(cpu_ns);
        self.all.add(cpu_ns);
    }

    /// The CPU time of the runs to come, in nanoseconds; `None` as long as no run has ended.
    pub fn remaining_ns(&self) -> Option<u64> {
        let all = self.all.mean()?;
        let cost = |&(experiment, table, point): &(usize, usize, usize)| {
            let own = self.points.get(&(experiment, table, point)).and_then(|costs| costs.mean());
            own.or_else(|| self.tables.get(&(experiment, table)).and_then(|costs| costs.mean())).unwrap_or(all)
        };
        Some(self.pending.iter().map(|(point, jobs)| cost(point) * jobs.len() as u64).sum())
    }
}

/// The overall progress, as of the last run that ended.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    runs: u64,
    done: u64,
    /// How long the rest will take, and when that was estimated; `None` as long as nothing is known.
    left: Option<(Duration, Instant)>,
}

impl Standing {
    fn to_go(self, now: Instant) -> String {
        let left = self.left.map(|(left, since)| left.saturating_sub(now.duration_since(since)));
        left.map_or(String::new(), |left| format!(", {} to go", about(left)))
    }

    fn line(self, now: Instant) -> String {
        format!("note: {} of {} runs are done{}", self.done, self.runs, self.to_go(now))
    }
}

/// Prints a line each time `between` has passed, until the returned sender is dropped.
fn say_each(between: Duration, line: impl Fn() -> Option<String> + Send + 'static) -> Sender<()> {
    let (sender, dropped) = mpsc::channel::<()>();
    thread::spawn(move || {
        while let Err(RecvTimeoutError::Timeout) = dropped.recv_timeout(between) {
            if let Some(line) = line() {
                say(&line);
            }
        }
    });
    sender
}

/// The progress that the user sees: a bar if stderr is a terminal, else a line every minute, whether a run has ended or
/// not.
pub struct Course {
    forecast: Forecast,
    bar: ProgressBar,
    threads: usize,
    since: Instant,
    /// The CPU time of the runs that were done here, without those from a store.
    worked_ns: u64,
    standing: Arc<Mutex<Standing>>,
    quiet: bool,
    _lines: Option<Sender<()>>,
}

impl Course {
    pub fn new(threads: usize, quiet: bool) -> Course {
        let bar = ticking(plain_bar("runs  {elapsed} passed{msg}", 0, quiet));
        let standing = Arc::new(Mutex::new(Standing::default()));
        let of_lines = standing.clone();
        let line = move || {
            let standing = *of_lines.lock().unwrap_or_else(PoisonError::into_inner);
            (standing.done < standing.runs).then(|| standing.line(Instant::now()))
        };
        let lines = (bar.is_hidden() && !quiet).then(|| say_each(BETWEEN_LINES, line));
        let forecast = Forecast::default();
        Course { forecast, bar, threads, since: Instant::now(), worked_ns: 0, standing, quiet, _lines: lines }
    }

    /// Adds the runs of an experiment that will be needed.
    pub fn expect(&mut self, experiment: usize, jobs: &[Job]) {
        self.forecast.expect(experiment, jobs.iter().copied());
        let pending = self.forecast.pending();
        self.show(|standing| standing.runs = standing.done + pending);
    }

    /// A run was stored already.
    pub fn found(&mut self, experiment: usize, job: &Job, cpu_ns: u64) {
        self.forecast.learn(experiment, job, cpu_ns);
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).done += 1;
    }

    /// A run has ended.
    pub fn ended(&mut self, experiment: usize, job: &Job, cpu_ns: u64) {
        self.forecast.learn(experiment, job, cpu_ns);
        self.worked_ns += cpu_ns;
        self.show(|standing| standing.done += 1);
    }

    /// Prints a message while the bar is shown.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| say(text));
        }
    }

    /// Hides the bar while results are printed.
    pub fn hide<T>(&self, body: impl FnOnce() -> T) -> T {
        self.bar.suspend(body)
    }

    fn show(&self, change: impl FnOnce(&mut Standing)) {
        let now = Instant::now();
        let left = |remaining| (wall(remaining, self.worked_ns, now.duration_since(self.since), self.threads), now);
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut standing);
        standing.left = self.forecast.remaining_ns().map(left);
        self.bar.set_length(standing.runs);
        self.bar.set_position(standing.done);
        self.bar.set_message(standing.to_go(now));
    }
}

impl Drop for Course {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How long `remaining_ns` of CPU time will take, if `worked_ns` took `passed`: others may use the same CPUs. In the
/// first seconds that ratio says little, so as many CPUs as threads are assumed.
fn wall(remaining_ns: u64, worked_ns: u64, passed: Duration, threads: usize) -> Duration {
    let threads = threads as f64;
    let measured = worked_ns as f64 / passed.as_nanos().max(1) as f64;
    let speed = if passed < Duration::from_secs(5) { threads } else { measured.clamp(threads / 20.0, threads) };
    Duration::from_nanos((remaining_ns as f64 / speed) as u64)
}

/// A time in the words of everyday speech.
fn about(time: Duration) -> String {
    match time.as_secs() {
        0..=1 => "about a second".to_string(),
        seconds @ 2..=99 => format!("about {seconds} s"),
        seconds @ 100..=5999 => format!("about {} min", (seconds + 30) / 60),
        seconds => format!("about {} h {} min", (seconds + 30) / 3600, (seconds + 30) % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(table: usize, point: usize, arm: usize) -> Job {
        Job { table, point, arm, iteration: 0 }
    }

    #[test]
    fn what_is_not_known_is_like_its_neighbours() {
        let mut forecast = Forecast::default();
        let jobs = [job(0, 0, 0), job(0, 0, 1), job(0, 1, 0), job(1, 0, 0)];
        forecast.expect(0, jobs);
        forecast.expect(1, [job(0, 0, 0)]);
        assert_eq!(forecast.remaining_ns(), None);
        forecast.learn(0, &job(0, 0, 0), 10);
        // One each for the other arm, the other row, the other table and the other experiment.
        assert_eq!(forecast.remaining_ns(), Some(10 + 10 + 10 + 10));
        forecast.learn(0, &job(0, 1, 0), 40);
        // 10 is the row's own; 25 is the average of all.
        assert_eq!(forecast.remaining_ns(), Some(10 + 25 + 25));
        forecast.learn(0, &job(1, 0, 0), 1_000);
        assert_eq!(forecast.remaining_ns(), Some(10 + 350));
        forecast.learn(0, &job(0, 0, 1), 10);
        forecast.learn(1, &job(0, 0, 0), 10);
        assert_eq!(forecast.remaining_ns(), Some(0));
    }

    #[test]
    fn a_loaded_computer_takes_longer() {
        let second = 1_000_000_000;
        let wall = |worked, passed| wall(60 * second, worked, Duration::from_secs(passed), 2).as_secs();
        assert_eq!(wall(0, 1), 30);
        assert_eq!(wall(20 * second, 10), 30);
        assert_eq!(wall(10 * second, 10), 60);
        // A long first run does not mean that nothing moves.
        assert_eq!(wall(0, 10), 600);
    }

    #[test]
    fn lines_come_while_nothing_ends_and_stop_with_the_course() {
        let (sender, said) = mpsc::channel();
        let lines = say_each(Duration::from_millis(1), move || {
            let _ = sender.send(());
            None
        });
        (0..3).for_each(|_| said.recv_timeout(Duration::from_secs(60)).expect("a line"));
        drop(lines);
        while said.recv_timeout(Duration::from_secs(60)).is_ok() {}
        assert_eq!(said.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Disconnected), "the thread has ended");
    }

    #[test]
    fn a_line_between_two_runs_takes_off_what_has_passed() {
        let ended = Instant::now();
        let line = |standing: Standing, seconds| standing.line(ended + Duration::from_secs(seconds));
        let standing = Standing { runs: 9, done: 2, left: Some((Duration::from_secs(90), ended)) };
        assert_eq!(line(standing, 60), "note: 2 of 9 runs are done, about 30 s to go");
        assert_eq!(line(standing, 600), "note: 2 of 9 runs are done, about a second to go");
        assert_eq!(line(Standing { left: None, done: 0, ..standing }, 60), "note: 0 of 9 runs are done");
    }

    #[test]
    fn times_are_said_as_people_do() {
        let said = [0, 42, 100, 725, 6_000, 9_000].map(|seconds| about(Duration::from_secs(seconds)));
        let expected =
            ["about a second", "about 42 s", "about 2 min", "about 12 min", "about 1 h 40 min", "about 2 h 30 min"];
        assert_eq!(said, expected.map(str::to_string));
    }
}
