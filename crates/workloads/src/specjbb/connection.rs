//! The selector threads of a virtual machine's connections.

use super::{Bench, Task, post, wait};
use sim::program::{Op, Outcome, Program};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Cycles, Ns};

/// Bytes that it asks for at a time: enough for everything that has arrived.
const READ: u32 = 1 << 20;

enum State {
    /// About to wait for messages.
    Select,
    /// A read has returned.
    Read,
    /// It has found so many messages.
    Hand(usize),
    /// It has stopped for a collection.
    Stopped,
    /// The collection has ended.
    Released,
}

/// A thread that sleeps until messages arrive at its connection. It decodes them, or hands them to the pool that does.
pub struct Selector {
    bench: Rc<Bench>,
    jvm: usize,
    number: usize,
    /// Bytes of a message that has arrived only in part.
    bytes: u64,
    outbox: VecDeque<Op>,
    state: State,
}

impl Selector {
    pub fn new(bench: Rc<Bench>, jvm: usize, number: usize) -> Selector {
        Selector { bench, jvm, number, bytes: 0, outbox: VecDeque::new(), state: State::Select }
    }

    /// Waits for messages. While it waits, a collection need not wait for it.
    fn select(&mut self) -> Op {
        let mut jvm = self.bench.jvms[self.jvm].borrow_mut();
        jvm.running -= 1;
        self.state = State::Read;
        Op::Receive { socket: jvm.inboxes[self.number].reader, bytes: READ, how: Default::default() }
    }

    /// Stops for a collection, if one is due.
    fn stop(&mut self) -> bool {
        let mut jvm = self.bench.jvms[self.jvm].borrow_mut();
        if !jvm.stops() || self.bench.control.stopping.get() {
            return false;
        }
        let own = jvm.inboxes[self.number].selector;
        self.outbox.extend(jvm.stop(own).into_iter().map(post));
        true
    }

    /// Passes `count` messages on, decoded, or to the pool that decodes them.
    fn hand(&mut self, count: usize, now: Ns) {
        let bench = self.bench.clone();
        for _ in 0..count {
            let mut jvm = bench.jvms[self.jvm].borrow_mut();
            let message = jvm.inboxes[self.number].messages.pop_front().expect("it was written before its bytes");
            let woken = match bench.rules.selectors_decode {
                false => jvm.connection().push(Task::Decode(message)),
                true => {
                    drop(jvm);
                    bench.decoded(self.jvm, message, now)
                }
            };
            self.outbox.extend(woken.map(post));
        }
    }
}

impl Program for Selector {
    fn next(&mut self, last: Outcome) -> Op {
        let costs = self.bench.rules.costs;
        loop {
            if let Some(op) = self.outbox.pop_front() {
                return op;
            }
            match self.state {
                State::Select => match self.stop() {
                    true => self.state = State::Stopped,
                    false => return self.select(),
                },
                State::Read => {
                    self.bench.jvms[self.jvm].borrow_mut().running += 1;
                    if last.value == 0 {
                        return Op::Exit;
                    }
                    self.bytes += last.value;
                    let found = self.bytes / costs.message;
                    self.bytes %= costs.message;
                    self.state = State::Hand(found as usize);
                    let decode = if self.bench.rules.selectors_decode { costs.decode.0 } else { 0 };
                    return Op::Work(Cycles(costs.select.0 * found.max(1) + decode * found));
                }
                State::Hand(count) => {
                    self.hand(count, last.now);
                    self.state = State::Select;
                }
                State::Stopped => {
                    self.state = State::Released;
                    return wait(self.bench.jvms[self.jvm].borrow().inboxes[self.number].selector);
                }
                State::Released => {
                    self.bench.jvms[self.jvm].borrow_mut().running += 1;
                    self.state = State::Select;
                }
            }
        }
    }
}
