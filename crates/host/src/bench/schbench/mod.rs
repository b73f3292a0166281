//! schbench on the real kernel: as it was from 2016 to 2018 ([`earlier`]), and as it is now ([`current`]).

pub mod current;
pub mod earlier;

use crate::Error;
use crate::bench::Request;
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

const RUNNING: u32 = 0;
const BLOCKED: u32 = 1;
/// Bytes of a thread's stack.
const STACK: usize = 64 << 10;

/// A futex word that says whether its owner waits, or is about to.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU32);

impl Word {
    fn block(&self) {
        self.0.store(BLOCKED, Ordering::SeqCst);
    }

    fn post(&self) {
        if self.0.swap(RUNNING, Ordering::SeqCst) == BLOCKED {
            // An error cannot be handled here, and cannot occur: the word is ours and aligned.
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }
    }

    fn wait(&self) {
        while self.0.load(Ordering::SeqCst) == BLOCKED {
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, BLOCKED, None);
        }
    }
}

/// What a worker waits on.
#[derive(Default)]
struct Sleeper {
    word: Word,
    /// The waker's time stamp in nanoseconds, taken before it woke anybody.
    wake_time: AtomicU64,
}

impl AsRef<Sleeper> for Sleeper {
    fn as_ref(&self) -> &Sleeper {
        self
    }
}

/// A message thread's word and its workers.
struct Team<W> {
    messenger: Word,
    workers: Vec<W>,
    /// Workers that have sent a message, the newest last: it is answered first.
    list: Mutex<Vec<usize>>,
}

impl<W: AsRef<Sleeper> + Default> Team<W> {
    /// As many teams as the request asks for.
    fn all(request: &Request) -> Vec<Team<W>> {
        let team = |_| Team {
            messenger: Word::default(),
            workers: (0..request.get("workers")).map(|_| W::default()).collect(),
            list: Mutex::default(),
        };
        (0..request.get("messengers")).map(team).collect()
    }

    /// Sends its message thread a message.
    fn ask(&self, worker: usize) {
        locked(&self.list).push(worker);
        self.messenger.post();
    }

    /// Wakes the workers that have sent a message by now.
    fn answer(&self, now: u64) {
        let answering = std::mem::take(&mut *locked(&self.list));
        let sleepers = || answering.iter().rev().map(|&worker| self.workers[worker].as_ref());
        sleepers().for_each(|sleeper| sleeper.wake_time.store(now, Ordering::SeqCst));
        sleepers().for_each(|sleeper| sleeper.word.post());
    }
}

/// No thread panics while it holds one of these.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, Error> {
    let started = thread::Builder::new().stack_size(STACK).spawn(body);
    started.map_err(|error| Error::of_system("starting a thread of schbench", error))
}

/// A percentile of an ascending list, as schbench's histogram gives it: exact below 512, above that the middle of one
/// of the 256 parts of a power of two. 0 if the list is empty.
fn percentile(sorted: &[u64], permille: u64) -> u64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0 };
    let rank = (permille * sorted.len() as u64).div_ceil(1_000) as usize;
    let value = sorted[rank.saturating_sub(1).min(last)];
    match (value | 1).ilog2().saturating_sub(8) {
        0 => value,
        lost => ((value >> lost) << lost) + (1 << lost) / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_schbenchs() {
        let hundred: Vec<u64> = (1..=100).collect();
        let percentiles = [500, 750, 900, 950, 990, 995, 999].map(|permille| percentile(&hundred, permille));
        assert_eq!(percentiles, [50, 75, 90, 95, 99, 100, 100]);
        assert_eq!(percentile(&[513], 500), 513);
        assert_eq!(percentile(&[1_000_000], 999), 1_000_448);
        assert_eq!(percentile(&[], 500), 0);
    }
}
