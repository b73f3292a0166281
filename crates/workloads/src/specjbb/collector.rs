//! The garbage collector's threads of a virtual machine.

use super::jvm::Collection;
use super::{Bench, post, wait};
use os::sync::SemaphoreId;
use sim::program::{Op, Outcome, Program};
use std::rc::Rc;

enum State {
    Wait,
    Collect,
    Collected,
}

/// A thread that sleeps until there is garbage to collect.
pub struct Collector {
    bench: Rc<Bench>,
    jvm: usize,
    number: usize,
    outbox: Vec<SemaphoreId>,
    state: State,
}

impl Collector {
    pub fn new(bench: Rc<Bench>, jvm: usize, number: usize) -> Collector {
        Collector { bench, jvm, number, outbox: Vec::new(), state: State::Wait }
    }
}

impl Program for Collector {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            if let Some(semaphore) = self.outbox.pop() {
                return post(semaphore);
            }
            let mut jvm = self.bench.jvms[self.jvm].borrow_mut();
            match self.state {
                State::Wait => {
                    if self.bench.control.stopping.get() {
                        return Op::Exit;
                    }
                    self.state = State::Collect;
                    return wait(jvm.collectors[self.number]);
                }
                State::Collect if self.bench.control.stopping.get() => return Op::Exit,
                State::Collect => {
                    self.state = State::Collected;
                    return Op::RunFor(self.bench.rules.costs.pause.ns());
                }
                State::Collected => {
                    let Collection::UnderWay(left) = jvm.collection else { unreachable!("it has just ended its part") };
                    jvm.collection = Collection::UnderWay(left - 1);
                    if left == 1 {
                        jvm.collection = Collection::None;
                        jvm.collected = last.now;
                        jvm.allocated = 0;
                        self.outbox = std::mem::take(&mut jvm.stopped);
                        self.outbox.reverse();
                    }
                    self.state = State::Wait;
                }
            }
        }
    }
}
