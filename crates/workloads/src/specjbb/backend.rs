//! A virtual machine's threads: its workers, and those that collect its garbage.

use super::{ALLOCATION, BUNDLES, Bench, Collection, PARTS, Task, TasksAtOnce, post, wait};
use crate::chance::lognormal;
use os::sync::SemaphoreId;
use sim::program::{Op, Outcome, Program};
use std::rc::Rc;
use units::{Cycles, Ns, Prng};

/// How a task's work spreads: most between a third and three times the mean (guess).
const SIGMA_PERMILLE: u64 = 800;
/// A worker without a task looks so often before it parks, and so long each time (guess; ForkJoinPool scans before it parks).
const LOOKS: u8 = 4;
const LOOK: Ns = Ns(5_000);

enum State {
    Next,
    Looking(u8),
    Woken,
    Stop,
    /// Of `own`, so many are done when this work ends.
    Run(usize),
}

pub struct Worker {
    bench: Rc<Bench>,
    group: usize,
    number: usize,
    chance: Prng,
    /// Threads to wake, one after the other.
    outbox: Vec<SemaphoreId>,
    /// What it goes on with before it looks into the queue: it has begun it, or taken it with others.
    own: TasksAtOnce,
    state: State,
}

impl Worker {
    pub fn new(bench: Rc<Bench>, group: usize, number: usize, chance: Prng) -> Worker {
        Worker { bench, group, number, chance, outbox: Vec::new(), own: TasksAtOnce::new(), state: State::Next }
    }

    fn work(&mut self, task: Task) -> Cycles {
        let mean = self.bench.rules.task.0;
        // 10 to 500 us, where the mean is 35.
        let (least, most) = (mean * 10 / 35, mean * 500 / 35);
        let mut one = || lognormal(&mut self.chance, mean, SIGMA_PERMILLE).clamp(least, most);
        Cycles((0..task.messages()).map(|_| one()).sum())
    }

    /// Takes a task, begins to look for one, or stops.
    fn next_task(&mut self) -> Option<Op> {
        let bench = self.bench.clone();
        let mut jvm = bench.jvms[self.group].borrow_mut();
        if bench.control.stopping.get() {
            return Some(Op::Exit);
        }
        if jvm.stops() {
            jvm.running -= 1;
            let own = jvm.workers[self.number];
            jvm.stopped.push(own);
            self.outbox = jvm.begin_collection();
            self.state = State::Stop;
            return None;
        }
        if self.own.is_empty() {
            let share = jvm.queue.len() / jvm.workers.len();
            let taken = share.clamp(1, bench.rules.at_once).min(jvm.queue.len());
            self.own.extend(jvm.queue.drain(..taken));
        }
        if self.own.is_empty() {
            jvm.looking += 1;
            self.state = State::Looking(LOOKS);
            return None;
        }
        drop(jvm);
        self.state = State::Run(self.own.len());
        let work = (0..self.own.len()).map(|n| self.work(self.own[n]).0).sum();
        Some(Op::Work(Cycles(work)))
    }

    fn look(&mut self, left: u8) -> Option<Op> {
        let bench = self.bench.clone();
        let mut jvm = bench.jvms[self.group].borrow_mut();
        if !jvm.queue.is_empty() || jvm.stops() || bench.control.stopping.get() {
            jvm.looking -= 1;
            self.state = State::Next;
            return None;
        }
        if left > 0 {
            self.state = State::Looking(left - 1);
            return Some(Op::RunFor(LOOK));
        }
        jvm.looking -= 1;
        jvm.running -= 1;
        jvm.parked.push(self.number);
        self.state = State::Woken;
        Some(wait(jvm.workers[self.number]))
    }

    fn push(&mut self, group: usize, task: Task) {
        let woken = self.bench.jvms[group].borrow_mut().push(task);
        self.outbox.extend(woken);
    }

    fn end(&mut self, task: Task, now: Ns) {
        let bench = self.bench.clone();
        match task {
            Task::First(request) => {
                // Who forks keeps one bundle for itself.
                for bundle in 0..BUNDLES {
                    let parts = PARTS * (bundle + 1) / BUNDLES - PARTS * bundle / BUNDLES;
                    let group = self.group_of_part();
                    let task = Task::Parts { request, parts };
                    if bundle + 1 == BUNDLES && group == self.group {
                        self.own.push_back(task);
                    } else {
                        self.push(group, task);
                    }
                }
                // The first one to be wakened is that of the first bundle.
                self.outbox.reverse();
            }
            Task::Parts { request: id, parts } => {
                let mut requests = bench.requests.borrow_mut();
                let request = &mut requests.all[id as usize];
                request.parts_left -= parts;
                if request.parts_left == 0 {
                    let home = request.home;
                    drop(requests);
                    // Who completes a request goes on with its reply, where that is its own group's.
                    match home == self.group {
                        true => self.own.push_back(Task::Reply(id)),
                        false => self.push(home, Task::Reply(id)),
                    }
                }
            }
            Task::Reply(id) => {
                let mut requests = bench.requests.borrow_mut();
                let issued = requests.all[id as usize].issued;
                requests.free.push(id);
                let control = &bench.control;
                control.response_times.borrow_mut().add(issued, now);
                control.completed.set(control.completed.get() + 1);
                control.in_flight.set(control.in_flight.get() - 1);
                let mut jvm = bench.jvms[self.group].borrow_mut();
                jvm.allocated += ALLOCATION;
                if jvm.allocated >= bench.rules.young && jvm.collection == Collection::None {
                    jvm.collection = Collection::Wanted;
                    jvm.stopping_since = now;
                }
            }
        }
    }

    fn group_of_part(&mut self) -> usize {
        let groups = self.bench.jvms.len() as u64;
        if groups == 1 || self.chance.below(100) >= self.bench.rules.remote_percent {
            return self.group;
        }
        ((self.group as u64 + 1 + self.chance.below(groups - 1)) % groups) as usize
    }
}

impl Program for Worker {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            if let Some(semaphore) = self.outbox.pop() {
                return post(semaphore);
            }
            match self.state {
                State::Next => {
                    if let Some(op) = self.next_task() {
                        return op;
                    }
                }
                State::Looking(left) => {
                    if let Some(op) = self.look(left) {
                        return op;
                    }
                }
                State::Stop => {
                    self.state = State::Woken;
                    return wait(self.bench.jvms[self.group].borrow().workers[self.number]);
                }
                State::Woken => {
                    self.bench.jvms[self.group].borrow_mut().running += 1;
                    self.state = State::Next;
                }
                State::Run(done) => {
                    for _ in 0..done {
                        let task = self.own.pop_front().expect("it has just been done");
                        self.end(task, last.now);
                    }
                    self.state = State::Next;
                }
            }
        }
    }
}

enum CollectorState {
    Wait,
    Collect,
    Collected,
}

/// A thread that sleeps until there is garbage to collect.
pub struct Collector {
    bench: Rc<Bench>,
    group: usize,
    number: usize,
    outbox: Vec<SemaphoreId>,
    state: CollectorState,
}

impl Collector {
    pub fn new(bench: Rc<Bench>, group: usize, number: usize) -> Collector {
        Collector { bench, group, number, outbox: Vec::new(), state: CollectorState::Wait }
    }
}

impl Program for Collector {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            if let Some(semaphore) = self.outbox.pop() {
                return post(semaphore);
            }
            let mut jvm = self.bench.jvms[self.group].borrow_mut();
            match self.state {
                CollectorState::Wait => {
                    if self.bench.control.stopping.get() {
                        return Op::Exit;
                    }
                    self.state = CollectorState::Collect;
                    return wait(jvm.collectors[self.number]);
                }
                CollectorState::Collect if self.bench.control.stopping.get() => return Op::Exit,
                CollectorState::Collect => {
                    self.state = CollectorState::Collected;
                    return Op::RunFor(self.bench.rules.pause);
                }
                CollectorState::Collected => {
                    let Collection::UnderWay(left) = jvm.collection else { unreachable!("it has just ended its part") };
                    jvm.collection = Collection::UnderWay(left - 1);
                    if left == 1 {
                        let control = &self.bench.control;
                        control.paused.set(control.paused.get() + jvm.paused(control.counting_since.get(), last.now));
                        jvm.collection = Collection::None;
                        jvm.allocated = 0;
                        self.outbox = std::mem::take(&mut jvm.stopped);
                        self.outbox.reverse();
                    }
                    self.state = CollectorState::Wait;
                }
            }
        }
    }
}
