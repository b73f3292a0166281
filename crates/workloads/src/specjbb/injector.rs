//! Threads that issue requests at random times, at the rate that the controller asks for.

use super::{Bench, Task, post, wait};
use crate::chance::exponential;
use os::sync::SemaphoreId;
use sim::program::{Op, Outcome, Program};
use std::rc::Rc;
use units::{Cycles, Ns, Prng};

/// What issuing one request takes (guess: drawing it, marshalling, handing over).
const ISSUE: Cycles = Cycles(6_000);
/// Requests that are due together are issued together, so many at most.
const AT_ONCE: u64 = 16;
/// Between two looks at whether there is a rate.
const LOOK: Ns = Ns(1_000_000);

enum State {
    Wait,
    /// The requests in `due` have been prepared.
    Issue,
}

pub struct Injector {
    bench: Rc<Bench>,
    group: usize,
    number: usize,
    chance: Prng,
    /// The rate's number when `arrival` was drawn.
    epoch: u64,
    /// When the next request is due.
    arrival: Ns,
    /// When those were due that are being issued.
    due: Vec<Ns>,
    outbox: Vec<SemaphoreId>,
    state: State,
}

impl Injector {
    pub fn new(bench: Rc<Bench>, group: usize, number: usize, chance: Prng) -> Injector {
        Injector {
            bench,
            group,
            number,
            chance,
            epoch: 0,
            arrival: Ns::ZERO,
            due: Vec::new(),
            outbox: Vec::new(),
            state: State::Wait,
        }
    }

    /// Nanoseconds to the next of this thread's requests.
    fn interval(&mut self, rate: u64) -> Ns {
        let threads = (self.bench.jvms.len() * self.bench.jvms[self.group].borrow().injectors.len()) as u64;
        Ns(exponential(&mut self.chance, threads * 1_000_000_000 / rate))
    }
}

impl Program for Injector {
    fn next(&mut self, last: Outcome) -> Op {
        let bench = self.bench.clone();
        let control = &bench.control;
        if let State::Issue = self.state {
            self.state = State::Wait;
            let count = self.due.len() as u64;
            control.injected.set(control.injected.get() + count);
            control.in_flight.set(control.in_flight.get() + count);
            let mut jvm = bench.jvms[self.group].borrow_mut();
            for due in self.due.drain(..) {
                let request = bench.requests.borrow_mut().add(due, self.group);
                self.outbox.extend(jvm.push(Task::First(request)));
            }
            self.outbox.reverse();
        }
        if let Some(semaphore) = self.outbox.pop() {
            return post(semaphore);
        }
        if control.stopping.get() {
            return Op::Exit;
        }
        let rate = control.rate.get();
        if rate == 0 {
            return Op::SleepFor(LOOK);
        }
        if self.epoch != control.epoch.get() {
            self.epoch = control.epoch.get();
            self.arrival = last.now + self.interval(rate);
        }
        if self.arrival > last.now {
            return Op::SleepUntil(self.arrival);
        }
        let mut jvm = bench.jvms[self.group].borrow_mut();
        if jvm.stops() {
            let own = jvm.injectors[self.number];
            jvm.stopped.push(own);
            return wait(own);
        }
        drop(jvm);
        while self.arrival <= last.now && (self.due.len() as u64) < AT_ONCE {
            self.due.push(self.arrival);
            let interval = self.interval(rate);
            self.arrival += interval;
        }
        self.state = State::Issue;
        Op::Work(Cycles(ISSUE.0 * self.due.len() as u64))
    }
}
