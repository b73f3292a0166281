//! Threads that issue requests at random times, at the rate that the controller asks for.

use super::{Bench, Job};
use crate::chance::exponential;
use sim::program::{Op, Outcome, Program};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Cycles, Ns, Prng};

/// Requests that are due together are issued together, at most this many.
const AT_ONCE: u64 = 16;
/// Threads sleep for this long or a multiple of it: `java.lang.Thread.sleep()` takes milliseconds.
pub const SLEEP: Ns = Ns(1_000_000);

enum State {
    Wait,
    /// The requests in `due` have been prepared, and can be sent.
    Issue,
}

pub struct Injector {
    bench: Rc<Bench>,
    group: usize,
    number: usize,
    /// Its index among all injectors.
    place: usize,
    /// Threads that issue requests, all groups together.
    threads: u64,
    chance: Prng,
    /// The number of the rate (`Control::epoch`) that `arrival` was drawn for.
    epoch: u64,
    /// When the next request is due.
    arrival: Ns,
    /// The due times of the requests that are being issued.
    due: Vec<Ns>,
    outbox: VecDeque<Op>,
    state: State,
}

impl Injector {
    /// Injector `number` of `of` in its group.
    pub fn new(bench: Rc<Bench>, group: usize, (number, of): (usize, usize), chance: Prng) -> Injector {
        let threads = (bench.groups() * of) as u64;
        let mut arrivals = bench.control.arrivals.borrow_mut();
        let place = arrivals.len();
        arrivals.push(None);
        drop(arrivals);
        Injector {
            bench,
            group,
            number,
            place,
            threads,
            chance,
            epoch: 0,
            arrival: Ns::ZERO,
            due: Vec::new(),
            outbox: VecDeque::new(),
            state: State::Wait,
        }
    }

    /// Time from one of this thread's requests to the next.
    fn interval(&mut self, rate: u64) -> Ns {
        Ns(exponential(&mut self.chance, self.threads * 1_000_000_000 / rate))
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
            for due in self.due.drain(..) {
                let request = bench.requests.borrow_mut().add(due, self.group);
                self.outbox.push_back(bench.send(self.group, self.number, Job::First(request)));
            }
        }
        if let Some(message) = self.outbox.pop_front() {
            return message;
        }
        if control.stopping.get() {
            return Op::Exit;
        }
        let rate = control.rate.get();
        if rate == 0 {
            return Op::SleepFor(SLEEP);
        }
        if self.epoch != control.epoch.get() {
            self.epoch = control.epoch.get();
            self.arrival = last.now + self.interval(rate);
            control.arrivals.borrow_mut()[self.place] = Some(self.arrival);
        }
        if self.arrival > last.now {
            let sleeps = (self.arrival - last.now).0.div_ceil(SLEEP.0);
            return Op::SleepFor(Ns(sleeps * SLEEP.0));
        }
        while self.arrival <= last.now && (self.due.len() as u64) < AT_ONCE {
            self.due.push(self.arrival);
            let interval = self.interval(rate);
            self.arrival += interval;
        }
        control.arrivals.borrow_mut()[self.place] = Some(self.arrival);
        self.state = State::Issue;
        Op::Work(Cycles(bench.rules.costs.issue.0 * self.due.len() as u64))
    }
}
