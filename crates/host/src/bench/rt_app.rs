//! rt-app's threads on the real kernel: the events that the simulation models too.
//!
//! The description consists of plain numbers; the code that read the file knows the names. As in the simulation, a task
//! with timers is measured by how late it runs after each timer's moment, any other task by the length of each round of
//! its phases.

use crate::Error;
use crate::pinning;
use rustix::thread::{CpuSet, Timespec, clock_nanosleep_absolute, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What a thread does next. Times are microseconds; resources that threads share are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Computes for as long as this takes on an undisturbed CPU.
    Run(u64),
    /// Computes until this much time has passed.
    Runtime(u64),
    Sleep(u64),
    Timer {
        timer: Timer,
        period_us: u64,
        absolute: bool,
    },
    Lock(usize),
    Unlock(usize),
    Wait {
        condition: usize,
        mutex: usize,
    },
    Sync {
        condition: usize,
        mutex: usize,
    },
    Signal(usize),
    Broadcast(usize),
    /// Locks, waits, unlocks.
    Suspend {
        condition: usize,
        mutex: usize,
    },
    /// Locks, wakes all, unlocks.
    Resume {
        condition: usize,
        mutex: usize,
    },
    Barrier(usize),
    SemaphorePost(usize),
    SemaphoreWait(usize),
    Yield,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// One timer for all threads that name it.
    Shared(usize),
    /// Each thread's own.
    Own(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Rounds; `None`: for ever.
    pub loops: Option<u64>,
    /// `None`: all that this process may use.
    pub cpus: Option<Vec<usize>>,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub threads: usize,
    pub delay_us: u64,
    /// How often the phases are run; `None`: for ever.
    pub loops: Option<u64>,
    pub nice: i32,
    pub timers: bool,
    pub phases: Vec<Phase>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Application {
    /// After this time every thread ends; `None`: the application ends when all threads have.
    pub duration: Option<Duration>,
    pub tasks: Vec<Task>,
    pub mutexes: usize,
    pub conditions: usize,
    /// For each barrier, the arrivals that open it.
    pub barriers: Vec<usize>,
    pub semaphores: usize,
    pub timers: usize,
}

/// How often a waiting thread checks whether the application has ended.
const LOOK: Duration = Duration::from_millis(20);
/// An application that ends neither by itself nor by its duration is given up after this time.
const PATIENCE: Duration = Duration::from_secs(600);

struct Lock {
    held: Mutex<bool>,
    free: Condvar,
}

/// A condition, a barrier or a semaphore: a number behind a mutex, and the threads that wait for it to change.
struct Meeting {
    state: Mutex<u64>,
    changed: Condvar,
}

struct Shared<'a> {
    app: &'a Application,
    locks: Vec<Lock>,
    /// Count signals and, from 2^32 on, broadcasts.
    conditions: Vec<Meeting>,
    barriers: Vec<Meeting>,
    semaphores: Vec<Meeting>,
    timers: Vec<Mutex<Option<u64>>>,
    ended: AtomicBool,
    ns_per_loop: f64,
    allowed: Vec<usize>,
}

/// The figures by task, in nanoseconds; one thread after the other, each in its own order.
///
/// # Errors
/// Threads, CPUs or nice levels that the system refuses; an application without an end.
pub fn run(app: &Application) -> Result<Vec<Vec<u64>>, Error> {
    let meetings =
        |count: usize| (0..count).map(|_| Meeting { state: Mutex::new(0), changed: Condvar::new() }).collect();
    let shared = Shared {
        app,
        locks: (0..app.mutexes).map(|_| Lock { held: Mutex::new(false), free: Condvar::new() }).collect(),
        conditions: meetings(app.conditions),
        barriers: meetings(app.barriers.len()),
        semaphores: meetings(app.semaphores),
        timers: (0..app.timers).map(|_| Mutex::new(None)).collect(),
        ended: AtomicBool::new(false),
        ns_per_loop: ns_per_loop(),
        allowed: pinning::allowed()?,
    };
    let began = now();
    let mut times = vec![Vec::new(); app.tasks.len()];
    let mut failed = None;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, task) in app.tasks.iter().enumerate() {
            for _ in 0..task.threads {
                let shared = &shared;
                // Threads that wait for the failed one would otherwise wait until patience ends.
                let give_up = |_: &Error| shared.ended.store(true, Ordering::SeqCst);
                let body = move || Thread::new(shared, task, began).and_then(Thread::live).inspect_err(give_up);
                match thread::Builder::new().spawn_scoped(scope, body) {
                    Ok(thread) => threads.push((number, thread)),
                    Err(error) => failed = Some(Error::of_system("starting a thread of rt-app", error)),
                }
            }
        }
        let since = Instant::now();
        let limit = app.duration.unwrap_or(PATIENCE);
        while failed.is_none() && since.elapsed() < limit && threads.iter().any(|(_, thread)| !thread.is_finished()) {
            thread::sleep(LOOK.min(limit.saturating_sub(since.elapsed())));
        }
        if app.duration.is_none() && since.elapsed() >= PATIENCE {
            failed =
                Some(Error::new("running rt-app", "it running after ten minutes", "a \"duration\", or loops that end"));
        }
        shared.ended.store(true, Ordering::SeqCst);
        for (number, thread) in threads {
            match thread.join() {
                Ok(Ok(found)) => times[number].extend(found),
                Ok(Err(error)) => failed = failed.take().or(Some(error)),
                Err(_) => {
                    failed = failed.take().or(Some(Error::new("running rt-app", "a thread that broke off", "none to")))
                }
            }
        }
    });
    failed.map_or(Ok(times), Err)
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Work that the compiler cannot optimise away.
fn work(loops: u64) -> u64 {
    let mut x = std::hint::black_box(0x9e37_79b9_7f4a_7c15u64);
    for _ in 0..loops {
        x = x.rotate_left(13).wrapping_add(std::hint::black_box(0x0123_4567_89ab_cdef));
    }
    std::hint::black_box(x)
}

/// rt-app's calibration: the shortest of several bursts was not disturbed.
fn ns_per_loop() -> f64 {
    const LOOPS: u64 = 100_000;
    let burst = |_| {
        let since = Instant::now();
        work(LOOPS);
        since.elapsed().as_nanos() as f64 / LOOPS as f64
    };
    (0..50).map(burst).fold(f64::INFINITY, f64::min).max(1e-3)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Thread<'a> {
    shared: &'a Shared<'a>,
    task: &'a Task,
    /// The moment from which timers count.
    first: u64,
    own: Vec<Option<u64>>,
    held: Vec<usize>,
    times: Vec<u64>,
}

/// The application has ended.
struct Ended;

impl<'a> Thread<'a> {
    fn new(shared: &'a Shared, task: &'a Task, began: u64) -> Result<Thread<'a>, Error> {
        let own = task.phases.iter().flat_map(|phase| &phase.events).filter_map(|event| match event {
            Event::Timer { timer: Timer::Own(number), .. } => Some(number + 1),
            _ => None,
        });
        let own = vec![None; own.max().unwrap_or(0)];
        if task.nice != 0 {
            // On Linux this sets the nice level of one thread only.
            rustix::process::setpriority_process(Some(rustix::thread::gettid()), task.nice)
                .map_err(|error| Error::of_system(&format!("setting the nice level {}", task.nice), error))?;
        }
        Ok(Thread { shared, task, first: began + task.delay_us * 1_000, own, held: Vec::new(), times: Vec::new() })
    }

    fn live(mut self) -> Result<Vec<u64>, Error> {
        if self.sleep_until(self.first).is_ok() {
            self.phases()?;
        }
        // Nobody else unlocks these mutexes.
        for mutex in std::mem::take(&mut self.held) {
            self.unlock(mutex);
        }
        Ok(self.times)
    }

    fn phases(&mut self) -> Result<(), Error> {
        let mut gone_through = 0;
        while self.task.loops.is_none_or(|loops| gone_through < loops) {
            for phase in &self.task.phases {
                self.place(phase)?;
                let mut round = 0;
                while phase.loops.is_none_or(|loops| round < loops) {
                    let since = now();
                    for event in &phase.events {
                        if self.shared.ended.load(Ordering::Relaxed) || self.event(*event).is_err() {
                            return Ok(());
                        }
                    }
                    if !self.task.timers {
                        self.times.push(now() - since);
                    }
                    round += 1;
                }
            }
            gone_through += 1;
        }
        Ok(())
    }

    fn place(&self, phase: &Phase) -> Result<(), Error> {
        let cpus = phase.cpus.as_ref().unwrap_or(&self.shared.allowed);
        let mut set = CpuSet::new();
        cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
        let doing = format!("running on the CPUs {cpus:?}");
        sched_setaffinity(None, &set).map_err(|error| Error::of_system(&doing, error))
    }

    fn event(&mut self, event: Event) -> Result<(), Ended> {
        let shared = self.shared;
        match event {
            Event::Run(us) => {
                work((us as f64 * 1_000.0 / shared.ns_per_loop) as u64);
            }
            Event::Runtime(us) => {
                let since = Instant::now();
                while since.elapsed() < Duration::from_micros(us) {
                    work((32_000.0 / shared.ns_per_loop) as u64);
                }
            }
            Event::Sleep(us) => self.sleep_until(now() + us * 1_000)?,
            Event::Timer { timer, period_us, absolute } => self.timer(timer, period_us, absolute)?,
            Event::Lock(mutex) => self.lock(mutex)?,
            Event::Unlock(mutex) => self.unlock(mutex),
            Event::Wait { condition, mutex } => self.wait(condition, mutex)?,
            Event::Sync { condition, mutex } => {
                signal(&shared.conditions[condition]);
                self.wait(condition, mutex)?;
            }
            Event::Signal(condition) => signal(&shared.conditions[condition]),
            Event::Broadcast(condition) => broadcast(&shared.conditions[condition]),
            Event::Suspend { condition, mutex } => {
                self.lock(mutex)?;
                self.wait(condition, mutex)?;
                self.unlock(mutex);
            }
            Event::Resume { condition, mutex } => {
                self.lock(mutex)?;
                broadcast(&shared.conditions[condition]);
                self.unlock(mutex);
            }
            Event::Barrier(barrier) => self.barrier(barrier)?,
            Event::SemaphorePost(semaphore) => {
                *locked(&shared.semaphores[semaphore].state) += 1;
                shared.semaphores[semaphore].changed.notify_one();
            }
            Event::SemaphoreWait(semaphore) => {
                self.until(&shared.semaphores[semaphore], |count| {
                    let there = *count > 0;
                    *count -= u64::from(there);
                    there
                })?;
            }
            Event::Yield => rustix::thread::sched_yield(),
        }
        Ok(())
    }

    fn timer(&mut self, timer: Timer, period_us: u64, absolute: bool) -> Result<(), Ended> {
        let moment = match timer {
            Timer::Own(number) => next(&mut self.own[number], self.first, period_us * 1_000, absolute),
            Timer::Shared(number) => {
                next(&mut locked(&self.shared.timers[number]), self.first, period_us * 1_000, absolute)
            }
        };
        if let Some(moment) = moment {
            self.sleep_until(moment)?;
            self.times.push(now().saturating_sub(moment));
        }
        Ok(())
    }

    /// Sleeps in pieces, so that it notices the end of the application.
    fn sleep_until(&self, moment: u64) -> Result<(), Ended> {
        loop {
            if self.shared.ended.load(Ordering::Relaxed) {
                return Err(Ended);
            }
            let piece = moment.min(now() + 10 * LOOK.as_nanos() as u64);
            let at = Timespec { tv_sec: (piece / 1_000_000_000) as i64, tv_nsec: (piece % 1_000_000_000) as i64 };
            // A signal only ends the piece early.
            let _ = clock_nanosleep_absolute(ClockId::Monotonic, &at);
            if piece == moment && now() >= moment {
                return Ok(());
            }
        }
    }

    /// Waits until `ready` accepts the meeting's number.
    fn until(&self, meeting: &Meeting, mut ready: impl FnMut(&mut u64) -> bool) -> Result<(), Ended> {
        let mut state = locked(&meeting.state);
        while !ready(&mut state) {
            if self.shared.ended.load(Ordering::Relaxed) {
                return Err(Ended);
            }
            state = meeting.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn lock(&mut self, mutex: usize) -> Result<(), Ended> {
        let lock = &self.shared.locks[mutex];
        let mut held = locked(&lock.held);
        while *held {
            if self.shared.ended.load(Ordering::Relaxed) {
                return Err(Ended);
            }
            held = lock.free.wait_timeout(held, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        *held = true;
        self.held.push(mutex);
        Ok(())
    }

    fn unlock(&mut self, mutex: usize) {
        self.held.retain(|&held| held != mutex);
        *locked(&self.shared.locks[mutex].held) = false;
        self.shared.locks[mutex].free.notify_one();
    }

    fn wait(&mut self, condition: usize, mutex: usize) -> Result<(), Ended> {
        let meeting = &self.shared.conditions[condition];
        // Read before the mutex is free: a thread that signals while holding the mutex can then only come later.
        let seen = *locked(&meeting.state);
        self.unlock(mutex);
        self.until(meeting, |now| *now != seen)?;
        self.lock(mutex)
    }

    fn barrier(&self, barrier: usize) -> Result<(), Ended> {
        let meeting = &self.shared.barriers[barrier];
        let users = self.shared.app.barriers[barrier] as u64;
        let arrival = {
            let mut state = locked(&meeting.state);
            *state += 1;
            *state
        };
        // Arrivals are counted without a reset. The barrier has opened for this one when as many have come as complete
        // its company.
        let company = arrival.div_ceil(users) * users;
        if arrival == company {
            meeting.changed.notify_all();
        }
        self.until(meeting, |arrived| *arrived >= company)
    }
}

/// Lets one waiter go on. If there are several, others may go on too, as after a spurious wakeup.
fn signal(meeting: &Meeting) {
    *locked(&meeting.state) += 1;
    meeting.changed.notify_one();
}

fn broadcast(meeting: &Meeting) {
    *locked(&meeting.state) += 1 << 32;
    meeting.changed.notify_all();
}

/// The moment to sleep until, if it is still to come. Updates `last`, from which the timer's next moment counts.
fn next(last: &mut Option<u64>, first: u64, period: u64, absolute: bool) -> Option<u64> {
    let moment = last.unwrap_or(first) + period;
    let now = now();
    if now < moment {
        *last = Some(moment);
        return Some(moment);
    }
    *last = Some(if absolute { moment } else { now });
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(loops: u64, timers: bool, events: Vec<Event>) -> Task {
        let phases = vec![Phase { loops: Some(loops), cpus: None, events }];
        Task { threads: 1, delay_us: 0, loops: Some(1), nice: 0, timers, phases }
    }

    #[test]
    fn threads_meet_and_every_round_is_a_sample() {
        let app = Application {
            tasks: vec![
                task(20, false, vec![Event::SemaphorePost(0), Event::SemaphoreWait(1), Event::Barrier(0)]),
                task(
                    20,
                    false,
                    vec![Event::SemaphoreWait(0), Event::Run(10), Event::SemaphorePost(1), Event::Barrier(0)],
                ),
                task(
                    5,
                    true,
                    vec![Event::Timer { timer: Timer::Own(0), period_us: 2_000, absolute: true }, Event::Yield],
                ),
                Task { threads: 2, ..task(3, false, vec![Event::Lock(0), Event::Runtime(50), Event::Unlock(0)]) },
            ],
            mutexes: 1,
            barriers: vec![2],
            semaphores: 2,
            ..Application::default()
        };
        let times = run(&app).unwrap();
        assert_eq!((times[0].len(), times[1].len(), times[3].len()), (20, 20, 6));
        assert!(times[2].len() <= 5);
        assert!(times.iter().flatten().all(|&ns| ns > 0));
    }

    #[test]
    fn whoever_waits_for_ever_ends_with_the_application() {
        let app = Application {
            duration: Some(Duration::from_millis(60)),
            tasks: vec![
                task(1, false, vec![Event::Suspend { condition: 0, mutex: 0 }]),
                task(1, false, vec![Event::SemaphoreWait(0)]),
                task(1_000_000, false, vec![Event::Sleep(1_000)]),
                task(1, false, vec![Event::Sleep(3_600_000_000)]),
            ],
            mutexes: 1,
            conditions: 1,
            semaphores: 1,
            ..Application::default()
        };
        let times = run(&app).unwrap();
        assert!(times[0].is_empty() && times[1].is_empty() && !times[2].is_empty() && times[3].is_empty());
    }

    #[test]
    fn what_is_refused_is_named() {
        let mut one = task(1, false, vec![Event::Yield]);
        one.phases[0].cpus = Some(vec![1_023]);
        // No thread waits for what it would have done.
        let waits = task(1, false, vec![Event::SemaphoreWait(0)]);
        let app = Application { tasks: vec![waits, one], semaphores: 1, ..Application::default() };
        let since = Instant::now();
        assert_eq!(run(&app).unwrap_err().doing, "running on the CPUs [1023]");
        assert!(since.elapsed() < PATIENCE / 10);
    }
}
