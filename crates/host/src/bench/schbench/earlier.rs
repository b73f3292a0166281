//! schbench of 2016 to 2018 on the real kernel: message threads that wake their workers.
//!
//! The threads, the order of their futexes and the points at which times are taken are those of the simulated
//! `schbench-2016`. Workers spin by the clock.

use super::{Sleeper, Team, percentile, start};
use crate::Error;
use crate::bench::{Benchmark, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Thousandths of the percentiles, in the order of the rows.
const PERMILLE: [u64; 7] = [500, 750, 900, 950, 990, 995, 999];

pub const EARLIER: Benchmark = Benchmark { name: "schbench-2016", differs: "", run };

struct Shared {
    teams: Vec<Team<Sleeper>>,
    stopping: AtomicBool,
    began: Instant,
    spin: Duration,
    sleep: Duration,
}

impl Shared {
    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

/// Microseconds: one figure for each percentile.
fn run(request: &Request) -> Result<Vec<Vec<u64>>, Error> {
    let shared = Arc::new(Shared {
        teams: Team::all(request),
        stopping: AtomicBool::new(false),
        began: Instant::now(),
        spin: Duration::from_micros(request.get("cputime")),
        sleep: Duration::from_micros(request.get("sleeptime")),
    });
    let mut messengers = Vec::new();
    let mut failed = None;
    for number in 0..shared.teams.len() {
        let shared = shared.clone();
        match start(move || messenger(&shared, number)) {
            Ok(thread) => messengers.push(thread),
            Err(error) => failed = Some(error),
        }
    }
    if failed.is_none() {
        thread::sleep(Duration::from_secs(request.get("runtime")));
    }
    shared.stopping.store(true, Ordering::SeqCst);
    shared.teams.iter().for_each(|team| team.messenger.post());
    let mut latencies = Vec::new();
    for messenger in messengers {
        match messenger.join() {
            Ok(Ok(found)) => latencies.extend(found),
            Ok(Err(error)) => failed = failed.or(Some(error)),
            Err(_) => failed = failed.or(Some(Error::new("running schbench", "a thread that broke off", "none to"))),
        }
    }
    match failed {
        Some(error) => Err(error),
        None => {
            latencies.sort_unstable();
            Ok(PERMILLE.map(|permille| vec![percentile(&latencies, permille)]).to_vec())
        }
    }
}

/// A message thread; returns its workers' latencies in whole microseconds.
fn messenger(shared: &Arc<Shared>, number: usize) -> Result<Vec<u64>, Error> {
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
    let mut chance = number as u64 + 1;
    loop {
        team.messenger.block();
        team.answer(shared.now());
        if shared.stopping() || failed.is_some() {
            break;
        }
        team.messenger.wait();
        if !shared.sleep.is_zero() {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let jitter = (chance >> 33) % (shared.sleep.as_micros() as u64 / 4).max(1);
            thread::sleep(shared.sleep + Duration::from_micros(jitter));
        }
    }
    // Every worker that waits, or is about to, is posted until it has exited.
    let mut latencies = Vec::new();
    for (place, thread) in workers.into_iter().enumerate() {
        while !thread.is_finished() {
            team.workers[place].word.post();
            thread::sleep(Duration::from_micros(100));
        }
        latencies.extend(thread.join().unwrap_or_default());
    }
    failed.map_or(Ok(latencies), Err)
}

fn worker(shared: &Shared, (team, place): (usize, usize)) -> Vec<u64> {
    let team = &shared.teams[team];
    let me = &team.workers[place];
    let mut latencies = Vec::new();
    while !shared.stopping() {
        let since = Instant::now();
        while since.elapsed() < shared.spin {
            std::hint::spin_loop();
        }
        me.wake_time.store(shared.now(), Ordering::SeqCst);
        me.word.block();
        team.ask(place);
        if shared.stopping() {
            break;
        }
        me.word.wait();
        let us = shared.now().saturating_sub(me.wake_time.load(Ordering::SeqCst)) / 1_000;
        if us > 0 {
            latencies.push(us);
        }
    }
    latencies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::starter::Starter;
    use std::collections::BTreeMap;

    #[test]
    fn every_percentile_has_its_row_and_every_thread_ends() {
        let values = [("messengers", 1), ("workers", 2), ("runtime", 1), ("cputime", 500), ("sleeptime", 500)];
        let values: BTreeMap<String, u64> = values.map(|(name, value)| (name.to_string(), value)).into();
        let starter = Starter { program: "/nonexistent".into(), words: Vec::new() };
        let rows = run(&Request { values: &values, starter: &starter }).unwrap();
        assert_eq!(rows.len(), 7);
        assert!(rows.iter().all(|row| row.len() == 1 && row[0] > 0), "{rows:?}");
        assert!(rows.windows(2).all(|two| two[0] <= two[1]), "{rows:?}");
    }
}
