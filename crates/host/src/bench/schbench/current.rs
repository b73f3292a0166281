//! The current schbench on the real kernel: workers sleep, take the lock of their CPU and multiply matrices.
//!
//! Threads, futexes, locks and the points at which times are taken are those of the simulated `schbench` and
//! `schbench-rps`. The matrices are real: this computer decides how long a multiplication takes, where the simulation
//! counts its cycles.

use super::{Sleeper, Team, locked, percentile, start};
use crate::Error;
use crate::bench::{Benchmark, Request};
use rustix::thread::sched_getcpu;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Requests that may wait for one worker.
const BATCH: usize = 128;
/// How long a message thread sleeps when a worker already has that many.
const FULL_SLEEP: Duration = Duration::from_micros(100);
const SECOND: Duration = Duration::from_secs(1);
/// CPUs that have a lock; those beyond share them.
const MOST_CPUS: usize = 8_192;
/// Thousandths of the percentiles, in the order of the rows: of latencies, and of requests in a second.
const PERMILLE: [u64; 4] = [500, 900, 990, 999];
const RATE_PERMILLE: [u64; 3] = [200, 500, 900];

const DIFFERS: &str = "matrices are multiplied for real";

pub const LATENCIES: Benchmark =
    Benchmark { name: "schbench", differs: DIFFERS, run: |request| Ok(run(request)?.latencies()) };
pub const REQUESTS: Benchmark =
    Benchmark { name: "schbench-rps", differs: DIFFERS, run: |request| Ok(run(request)?.rates()) };

/// What a run printed for each interval: the percentiles of wakeups, of requests, and of the requests in a second.
struct Printed(Vec<[Vec<u64>; 3]>);

impl Printed {
    /// A row for each percentile, a sample for each interval.
    fn rows(&self, kind: usize) -> impl Iterator<Item = Vec<u64>> {
        let rows = self.0.first().map_or(0, |interval| interval[kind].len());
        (0..rows).map(move |row| self.0.iter().map(|interval| interval[kind][row]).collect())
    }

    fn latencies(&self) -> Vec<Vec<u64>> {
        self.rows(0).chain(self.rows(1)).collect()
    }

    fn rates(&self) -> Vec<Vec<u64>> {
        self.rows(2).collect()
    }
}

#[derive(Default)]
struct Worker {
    sleeper: Sleeper,
    /// How many requests wait for it, if they come at a rate.
    pending: AtomicUsize,
    served: AtomicU64,
    /// Microseconds measured since the last interval: of wakeups, and of requests.
    taken: [Mutex<Vec<u64>>; 2],
}

impl AsRef<Sleeper> for Worker {
    fn as_ref(&self) -> &Sleeper {
        &self.sleeper
    }
}

struct Shared {
    teams: Vec<Team<Worker>>,
    /// A lock for each CPU.
    locks: Vec<AtomicBool>,
    stopping: AtomicBool,
    began: Instant,
    sleep: Duration,
    operations: u64,
    /// The side of a matrix.
    side: usize,
    locking: bool,
    /// Requests a second of each message thread; 0 for as many as possible.
    rate: u64,
}

impl Shared {
    fn of(request: &Request) -> Shared {
        Shared {
            teams: Team::all(request),
            locks: (0..MOST_CPUS).map(|_| AtomicBool::default()).collect(),
            stopping: AtomicBool::new(false),
            began: Instant::now(),
            sleep: Duration::from_micros(request.get("sleep_usec")),
            operations: request.get("operations"),
            side: (request.get("cache_footprint") * 1024 / 24).isqrt() as usize,
            locking: request.get("no_locking") == 0,
            rate: request.get("rps") / request.get("messengers"),
        }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.teams.iter().flat_map(|team| &team.workers)
    }

    fn served(&self) -> u64 {
        self.workers().map(|worker| worker.served.load(Ordering::Relaxed)).sum()
    }

    /// What was measured since the last call, in ascending order.
    fn taken(&self, kind: usize) -> Vec<u64> {
        let mut all: Vec<u64> =
            self.workers().flat_map(|worker| std::mem::take(&mut *locked(&worker.taken[kind]))).collect();
        all.sort_unstable();
        all
    }
}

fn run(request: &Request) -> Result<Printed, Error> {
    let shared = Arc::new(Shared::of(request));
    let mut messengers = Vec::new();
    let mut failed = None;
    for number in 0..shared.teams.len() {
        let theirs = shared.clone();
        match start(move || messenger(&theirs, number)) {
            Ok(thread) => messengers.push(thread),
            Err(error) => failed = Some(error),
        }
    }
    let (runtime, interval) = (request.get("runtime"), request.get("interval"));
    let seconds = interval.min(runtime);
    let intervals = if failed.is_some() { 0 } else { (runtime / interval).max(1) };
    let printed = Printed((0..intervals).map(|_| printed(&shared, seconds)).collect());
    shared.stopping.store(true, Ordering::SeqCst);
    shared.teams.iter().for_each(|team| team.messenger.post());
    for messenger in messengers {
        match messenger.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failed = failed.or(Some(error)),
            Err(_) => failed = failed.or(Some(Error::new("running schbench", "a thread that broke off", "none to"))),
        }
    }
    failed.map_or(Ok(printed), Err)
}

/// The figures of an interval of so many seconds.
fn printed(shared: &Shared, seconds: u64) -> [Vec<u64>; 3] {
    let mut rates = Vec::new();
    for _ in 0..seconds {
        if shared.stopping() {
            break;
        }
        let (since, before) = (Instant::now(), shared.served());
        thread::sleep(SECOND);
        rates.push((shared.served() - before) * SECOND.as_nanos() as u64 / since.elapsed().as_nanos().max(1) as u64);
    }
    rates.sort_unstable();
    let of = |values: &[u64], permille: &[u64]| permille.iter().map(|&at| percentile(values, at)).collect();
    [of(&shared.taken(0), &PERMILLE), of(&shared.taken(1), &PERMILLE), of(&rates, &RATE_PERMILLE)]
}

/// A message thread: starts its workers, then answers those that ask, or hands out requests at a rate.
fn messenger(shared: &Arc<Shared>, number: usize) -> Result<(), Error> {
    let team = &shared.teams[number];
    let mut workers = Vec::new();
    let mut failed = None;
    for place in 0..team.workers.len() {
        let theirs = shared.clone();
        match start(move || worker(&theirs, (number, place))) {
            Ok(thread) => workers.push(thread),
            Err(error) => failed = Some(error),
        }
    }
    let mut next = 0;
    while !shared.stopping() && failed.is_none() {
        if shared.rate > 0 {
            next = hand_out(shared, team, next);
            continue;
        }
        team.messenger.block();
        team.answer(shared.now());
        if !shared.stopping() {
            team.messenger.wait();
        }
    }
    // If a thread could not be started, the others must not go on for ever.
    if failed.is_some() {
        shared.stopping.store(true, Ordering::SeqCst);
    }
    // Every worker that waits, or is about to, is posted until it has exited.
    for (place, thread) in workers.into_iter().enumerate() {
        while !thread.is_finished() {
            team.workers[place].sleeper.word.post();
            thread::sleep(Duration::from_micros(100));
        }
        thread.join().map_err(|_| Error::new("running schbench", "a thread that broke off", "none to"))?;
    }
    failed.map_or(Ok(()), Err)
}

/// Hands out the requests of one second, from the worker `next` on. Returns the worker whose turn is next.
fn hand_out(shared: &Shared, team: &Team<Worker>, mut next: usize) -> usize {
    let second = Instant::now();
    for _ in 0..shared.rate {
        if shared.stopping() {
            return next;
        }
        let worker = &team.workers[next];
        next = (next + 1) % team.workers.len();
        if worker.pending.load(Ordering::SeqCst) > BATCH {
            thread::sleep(FULL_SLEEP);
            continue;
        }
        worker.pending.fetch_add(1, Ordering::SeqCst);
        worker.sleeper.wake_time.store(shared.now(), Ordering::SeqCst);
        worker.sleeper.word.post();
    }
    while !shared.stopping() && second.elapsed() < SECOND {
        // Sleeps in pieces, to notice the end.
        thread::sleep(SECOND.saturating_sub(second.elapsed()).min(Duration::from_millis(50)));
    }
    next
}

fn worker(shared: &Shared, (team, place): (usize, usize)) {
    let team = &shared.teams[team];
    let me = &team.workers[place];
    let mut matrices = Matrices::new(shared.side);
    while !shared.stopping() {
        me.sleeper.word.block();
        me.sleeper.wake_time.store(shared.now(), Ordering::SeqCst);
        let mut left = 1;
        if shared.rate > 0 {
            left = me.pending.swap(0, Ordering::SeqCst);
        } else {
            team.ask(place);
        }
        if shared.rate == 0 || left == 0 {
            if shared.stopping() {
                return;
            }
            me.sleeper.word.wait();
            took(shared, me, 0, me.sleeper.wake_time.load(Ordering::SeqCst));
        }
        for _ in 0..left {
            let since = shared.now();
            serve(shared, &mut matrices);
            took(shared, me, 1, since);
            me.served.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Records the time since that moment in whole microseconds; times below one are not recorded.
fn took(shared: &Shared, worker: &Worker, kind: usize, since: u64) {
    let us = shared.now().saturating_sub(since) / 1_000;
    if us > 0 {
        locked(&worker.taken[kind]).push(us);
    }
}

/// One request: a sleep, and work under the lock of the CPU it is on.
fn serve(shared: &Shared, matrices: &mut Matrices) {
    if !shared.sleep.is_zero() {
        thread::sleep(shared.sleep);
    }
    let lock = shared.locking.then(|| lock(&shared.locks));
    (0..shared.operations).for_each(|_| matrices.multiply());
    if let Some(lock) = lock {
        lock.store(false, Ordering::Release);
    }
}

/// Takes the lock of its CPU, and makes sure that it is still on that CPU when it has the lock.
fn lock(locks: &[AtomicBool]) -> &AtomicBool {
    loop {
        let cpu = sched_getcpu();
        let lock = &locks[cpu % MOST_CPUS];
        while lock.swap(true, Ordering::Acquire) {
            while lock.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
        if sched_getcpu() == cpu {
            return lock;
        }
        lock.store(false, Ordering::Release);
    }
}

/// Two matrices and their product.
struct Matrices {
    side: usize,
    factors: [Vec<u64>; 2],
    product: Vec<u64>,
}

impl Matrices {
    fn new(side: usize) -> Matrices {
        let filled = || (0..(side * side) as u64).collect();
        Matrices { side, factors: [filled(), filled()], product: vec![0; side * side] }
    }

    fn multiply(&mut self) {
        let (side, [left, right]) = (self.side, &self.factors);
        for row in 0..side {
            for column in 0..side {
                let sum = (0..side).fold(0u64, |sum, at| {
                    sum.wrapping_add(left[row * side + at].wrapping_mul(right[at * side + column]))
                });
                self.product[row * side + column] = sum;
            }
        }
        black_box(&mut self.product);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::starter::Starter;
    use std::collections::BTreeMap;

    fn printed_with(rps: u64) -> Printed {
        let values = [
            ("messengers", 1),
            ("workers", 2),
            ("runtime", 1),
            ("interval", 1),
            ("operations", 1),
            ("cache_footprint", 16),
            ("sleep_usec", 100),
            ("no_locking", 0),
            ("rps", rps),
        ];
        let values: BTreeMap<String, u64> = values.map(|(name, value)| (name.to_string(), value)).into();
        let starter = Starter { program: "/nonexistent".into(), words: Vec::new() };
        run(&Request { values: &values, starter: &starter }).unwrap()
    }

    #[test]
    fn every_row_has_a_figure_and_every_thread_ends() {
        let printed = printed_with(0);
        assert_eq!((printed.latencies().len(), printed.rates().len()), (8, 3));
        assert!(printed.latencies().iter().all(|row| row.len() == 1), "one interval");
        // A request includes a sleep of a tenth of a millisecond.
        assert!(printed.latencies()[4..].iter().all(|row| row[0] >= 100), "{:?}", printed.latencies());
        assert!(printed.rates().iter().all(|row| row[0] > 0), "{:?}", printed.rates());
    }

    #[test]
    fn requests_come_at_the_rate_that_is_asked_for() {
        let rate = printed_with(200).rates()[1][0];
        // There are fewer if others keep the computer busy, but never more than were handed out.
        assert!((1..=260).contains(&rate), "{rate}");
    }

    #[test]
    fn matrices_are_multiplied() {
        let mut two = Matrices::new(2);
        two.multiply();
        assert_eq!(two.product, [2, 3, 6, 11]);
    }

    #[test]
    fn a_cpus_lock_is_held_until_it_is_given_back() {
        let locks: Vec<AtomicBool> = (0..MOST_CPUS).map(|_| AtomicBool::default()).collect();
        let held = lock(&locks);
        assert_eq!(locks.iter().filter(|lock| lock.load(Ordering::Relaxed)).count(), 1);
        held.store(false, Ordering::Release);
    }
}
