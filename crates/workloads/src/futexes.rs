//! Benchmarks of threads and futexes: in `stress-futex` pairs pass a token back and forth; in `sysbench-like` threads
//! take turns at a few mutexes.
//!
//! stress-futex (the essence of stress-ng's stressor of that name): one thread of each pair waits on a futex; the other
//! wakes it and waits for the answer. An operation is two futex wakes and two futex waits, without the sync hint and
//! with no work between them. The figure is operations per second, all pairs together.
//!
//! sysbench-like (sysbench's `threads` test): a thread takes one of `locks` mutexes, yields `yields` times while it
//! holds it, and releases it. Doing this once for every mutex is an event. With `yields=0` the threads only compete for
//! the mutexes (sysbench's `mutex` test). The figure is events per second.
//!
//! Modelled: mutexes are glibc's, where a woken waiter tries again. What a thread does between operations is free, but
//! for [`BETWEEN`].

use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use os::sync::{MutexId, SemaphoreId, SyncOp};
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use std::cell::Cell;
use std::rc::Rc;
use units::{Cycles, Ns};

/// A thread's own work between two mutexes (guess: a loop's overhead and a random number).
const BETWEEN: Cycles = Cycles(300);
/// Bytes of private cache that a thread uses again after a switch (guess, 2 to 8 KiB).
const WORKING_SET: u64 = 4 * 1024;

const MILLISECONDS: Parameter = Parameter {
    name: "milliseconds",
    default: 1_000,
    range: (1, 3_600_000),
    unit: "ms",
    doc: "simulated time that is counted",
};

pub const STRESS_FUTEX: Workload = Workload {
    name: "stress-futex",
    summary: "pairs of threads hand a token to and fro through futexes",
    parameters: &[
        Parameter { name: "pairs", default: 1, range: (1, 4_096), unit: "pairs", doc: "of threads" },
        MILLISECONDS,
    ],
    key: Some("pairs"),
    operation: "ops",
    rows: &[],
    statistics: Summary::Rate,
    unit: "1/s",
    per_unit: 1,
    decimals: 2,
    build: |values: &Values| {
        let pairs = values.get("pairs");
        Box::new(Contest { kind: Kind::Pairs(pairs), time: Ns::from_ms(values.get("milliseconds")) })
    },
};

pub const SYSBENCH: Workload = Workload {
    name: "sysbench-like",
    summary: "threads take turns at a few mutexes, and yield while they hold one",
    parameters: &[
        Parameter { name: "threads", default: 16, range: (1, 8_192), unit: "threads", doc: "that take turns" },
        Parameter { name: "locks", default: 8, range: (1, 1_024), unit: "mutexes", doc: "they take turns at" },
        Parameter {
            name: "yields",
            default: 1,
            range: (0, 1_000),
            unit: "",
            doc: "sched_yield() with each mutex held",
        },
        MILLISECONDS,
    ],
    key: Some("threads"),
    operation: "events",
    rows: &[],
    statistics: Summary::Rate,
    unit: "1/s",
    per_unit: 1,
    decimals: 2,
    build: |values: &Values| {
        let (threads, locks, yields) = (values.get("threads"), values.get("locks"), values.get("yields"));
        Box::new(Contest {
            kind: Kind::Turns { threads, locks, yields },
            time: Ns::from_ms(values.get("milliseconds")),
        })
    },
};

enum Kind {
    Pairs(u64),
    Turns { threads: u64, locks: u64, yields: u64 },
}

struct Contest {
    kind: Kind,
    time: Ns,
}

/// State that all threads share.
#[derive(Default)]
struct Count {
    done: Cell<u64>,
    over: Cell<bool>,
}

impl Instance for Contest {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let count = Rc::new(Count::default());
        let mut threads: Vec<TaskSpec> = Vec::new();
        let spec = |comm, program: Box<dyn Program>| TaskSpec {
            comm: String::from(comm),
            memory: AddressSpace::Parent,
            working_set: WORKING_SET,
            program,
            ..TaskSpec::new(comm, Nothing)
        };
        let mut partners = Vec::new();
        match self.kind {
            Kind::Pairs(pairs) => {
                for _ in 0..pairs {
                    let (there, back) = (os.create_semaphore(), os.create_semaphore());
                    partners.push(there);
                    let leader = Leader { count: count.clone(), there, back, posted: false };
                    let other = Follower { count: count.clone(), there, back, state: FollowerState::Wait };
                    threads.push(spec("stress-futex", Box::new(other)));
                    threads.push(spec("stress-futex", Box::new(leader)));
                }
            }
            Kind::Turns { threads: many, locks, yields } => {
                let locks: Rc<[MutexId]> = (0..locks).map(|_| os.create_mutex()).collect();
                for number in 0..many {
                    // Each thread begins with another mutex; otherwise all would queue for the first.
                    let at = (number % locks.len() as u64) as usize;
                    let turn = Turn {
                        count: count.clone(),
                        locks: locks.clone(),
                        at,
                        taken: 0,
                        yields,
                        state: TurnState::Between,
                    };
                    threads.push(spec("sysbench", Box::new(turn)));
                }
            }
        }
        let main = Main { count, threads: threads.into_iter(), partners, time: self.time, state: MainState::Start };
        vec![TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("main", main) }]
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().map(|sample| sample.value * 1_000_000_000 / self.time.0).collect()
    }
}

struct Nothing;

impl Program for Nothing {
    fn next(&mut self, _last: Outcome) -> Op {
        Op::Exit
    }
}

enum MainState {
    Start,
    Report,
    Release,
}

struct Main {
    count: Rc<Count>,
    threads: std::vec::IntoIter<TaskSpec>,
    /// Threads that may wait for ever once their partner has ended.
    partners: Vec<SemaphoreId>,
    time: Ns,
    state: MainState,
}

impl Program for Main {
    fn next(&mut self, _last: Outcome) -> Op {
        match self.state {
            MainState::Start => match self.threads.next() {
                Some(thread) => Op::Fork(Box::new(thread)),
                None => {
                    self.count.done.set(0);
                    self.state = MainState::Report;
                    Op::SleepFor(self.time)
                }
            },
            MainState::Report => {
                self.state = MainState::Release;
                self.count.over.set(true);
                Op::Report { series: 0, value: self.count.done.get() }
            }
            MainState::Release => match self.partners.pop() {
                Some(partner) => Op::Sync(SyncOp::SemaphorePost(partner)),
                None => Op::Exit,
            },
        }
    }
}

struct Leader {
    count: Rc<Count>,
    there: SemaphoreId,
    back: SemaphoreId,
    posted: bool,
}

impl Program for Leader {
    fn next(&mut self, _last: Outcome) -> Op {
        if self.posted {
            self.posted = false;
            return Op::Sync(SyncOp::SemaphoreWait(self.back));
        }
        // The first time there is no answer to count yet; but counting begins anew once all threads have started.
        self.count.done.set(self.count.done.get() + 1);
        if self.count.over.get() {
            return Op::Exit;
        }
        self.posted = true;
        Op::Sync(SyncOp::SemaphorePost(self.there))
    }
}

#[derive(Clone, Copy)]
enum FollowerState {
    Wait,
    Answer,
    Exit,
}

struct Follower {
    count: Rc<Count>,
    there: SemaphoreId,
    back: SemaphoreId,
    state: FollowerState,
}

impl Program for Follower {
    fn next(&mut self, _last: Outcome) -> Op {
        match self.state {
            FollowerState::Wait => {
                self.state = FollowerState::Answer;
                Op::Sync(SyncOp::SemaphoreWait(self.there))
            }
            FollowerState::Answer => {
                self.state = if self.count.over.get() { FollowerState::Exit } else { FollowerState::Wait };
                Op::Sync(SyncOp::SemaphorePost(self.back))
            }
            FollowerState::Exit => Op::Exit,
        }
    }
}

#[derive(Clone, Copy)]
enum TurnState {
    Between,
    Lock,
    Held { yields: u64 },
}

/// A thread that takes all mutexes in turn.
struct Turn {
    count: Rc<Count>,
    locks: Rc<[MutexId]>,
    at: usize,
    /// Mutexes of this round so far.
    taken: usize,
    yields: u64,
    state: TurnState,
}

impl Program for Turn {
    fn next(&mut self, _last: Outcome) -> Op {
        match self.state {
            TurnState::Between if self.count.over.get() => Op::Exit,
            TurnState::Between => {
                self.state = TurnState::Lock;
                Op::Work(BETWEEN)
            }
            TurnState::Lock => {
                self.state = TurnState::Held { yields: self.yields };
                Op::Sync(SyncOp::Lock(self.locks[self.at]))
            }
            TurnState::Held { yields: 0 } => {
                let mutex = self.locks[self.at];
                self.at = (self.at + 1) % self.locks.len();
                self.taken += 1;
                if self.taken == self.locks.len() {
                    self.taken = 0;
                    self.count.done.set(self.count.done.get() + 1);
                }
                self.state = TurnState::Between;
                Op::Sync(SyncOp::Unlock(mutex))
            }
            TurnState::Held { yields } => {
                self.state = TurnState::Held { yields: yields - 1 };
                Op::Yield
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{boot, play, run};
    use machine::profile::Frame;
    use os::paths;
    use sched::versions::V4_15;
    use sim::program::Steps;
    use units::Ps;

    #[test]
    fn one_at_a_time_holds_a_mutex() {
        // Two threads and one mutex. Only the work between mutexes takes time, 300 ns at 1 GHz, and the threads' work
        // overlaps.
        let ran = run("sysbench-like", 2, &[("threads", 2), ("locks", 1), ("yields", 0), ("milliseconds", 100)]);
        let events = ran.rows()[0][0];
        assert!((3_300_000..=6_700_000).contains(&events), "{events}");
    }

    #[test]
    fn threads_on_cpus_of_their_own_do_more() {
        let on =
            |cpus| run("sysbench-like", cpus, &[("threads", 4), ("locks", 16), ("milliseconds", 100)]).rows()[0][0];
        assert!(on(4) > on(1) * 2, "{} on four, {} on one", on(4), on(1));
    }

    /// One thread takes and releases a mutex this many times; another waits for it from the first time on.
    struct Overtaken(usize);

    impl Instance for Overtaken {
        fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
            let mutex = os.create_mutex();
            let lock = move || Op::Sync(SyncOp::Lock(mutex));
            let unlock = move || Op::Sync(SyncOp::Unlock(mutex));
            let first = [lock(), Op::RunFor(Ns(20_000)), unlock()];
            let again = (1..self.0).flat_map(move |_| [lock(), unlock()]);
            let owner = Steps(first.into_iter().chain(again));
            let waiter = Steps([Op::RunFor(Ns(5_000)), lock(), unlock()].into_iter());
            vec![TaskSpec::new("owner", owner), TaskSpec::new("waiter", waiter)]
        }

        fn samples(&self, _reported: &[Sample]) -> Vec<u64> {
            Vec::new()
        }
    }

    #[test]
    fn who_takes_a_mutex_before_the_one_that_was_woken_for_it_wakes_nobody() {
        for times in [1, 6] {
            let mut sim = boot::<true>(2, V4_15, None);
            sim.sched.arch.start_profile(Ps::ZERO);
            let ran = play(Box::new(Overtaken(times)), sim);
            assert_eq!(ran.wakeups(), 1, "{times} times");
            let stacks = ran.sim.sched.arch.profile().expect("it was started").stacks();
            let calls = |(frames, _): &&(Vec<Frame>, Ps)| frames.last() == Some(&Frame::Kernel(paths::FUTEX_WAKE));
            let time: u64 = stacks.iter().filter(calls).map(|(_, time)| time.0).sum();
            // Two wakes of 17 ns each: the owner's first one, and the waiter's, because it does not know that nobody
            // else waits.
            assert_eq!(time, 2 * 17_000, "{times} times");
        }
    }
}
