//! A stream of datagrams (UDP_STREAM). netperf counts what it has sent, netserver what it has received. Both rates are
//! over the time for which netperf sent, so netserver's rate never exceeds netperf's.
//!
//! The warm-up is a run of its own, as netperf makes several: it ends when its datagrams have been read, and only then
//! the run that counts begins, with an empty buffer. Here an empty datagram ends each run. The sender repeats it every
//! millisecond until it has been read, because it may find the buffer full. netperf has its control connection for
//! that, and netserver a timer.

use super::{RECEIVED, SENT, Side};
use sim::program::{Op, Outcome, Program};
use std::cell::Cell;
use std::rc::Rc;
use units::Ns;

/// How long the sender waits for the receiver to read what has been sent.
const PAUSE: Ns = Ns(1_000_000);

/// What the two sides know of each other's progress.
#[derive(Default)]
pub struct Run {
    /// What comes after this run; set once the datagram that ends it has been sent.
    ending: Cell<Option<After>>,
    /// Bytes that were read.
    received: Cell<u64>,
    /// How long the sender sent.
    time: Cell<Ns>,
}

/// What comes after a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// The run that counts.
    Measure,
    Nothing,
}

impl Run {
    /// The rate of `bytes`, in bits per second.
    fn rate(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 8 * 1_000_000_000 / u128::from(self.time.get().0.max(1))) as u64
    }
}

enum State {
    Begin,
    Send {
        /// Bytes, when it began, and when it shall end.
        sent: u64,
        since: Ns,
        until: Ns,
    },
    /// An empty datagram has been sent.
    Ended,
    Wait,
    Exit,
}

pub struct Sender {
    side: Side,
    run: Rc<Run>,
    /// How long the warm-up takes; zero once it is over.
    warmup: Ns,
    /// How long the run that counts takes.
    time: Ns,
    state: State,
    sending: bool,
}

impl Sender {
    pub fn new(side: Side, run: Rc<Run>) -> Sender {
        let (warmup, time) = (side.window.warmup, side.window.time);
        Sender { side, run, warmup, time, state: State::Begin, sending: false }
    }

    fn end(&mut self) -> Op {
        self.state = State::Ended;
        self.side.close()
    }

    /// Goes on with sending, or ends the run.
    fn send(&mut self, last: Outcome, since: Ns, until: Ns, sent: u64) -> Op {
        let sent = sent + if std::mem::take(&mut self.sending) { last.value } else { 0 };
        self.state = State::Send { sent, since, until };
        if sent > 0 && last.now >= until {
            self.run.time.set(last.now - since);
            if self.warmup > Ns::ZERO {
                self.run.ending.set(Some(After::Measure));
                return self.end();
            }
            self.state = State::Ended;
            self.run.ending.set(Some(After::Nothing));
            return Op::Report { series: SENT, value: self.run.rate(sent) };
        }
        self.side.before().unwrap_or_else(|| {
            self.sending = true;
            self.side.send()
        })
    }
}

impl Program for Sender {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            match self.state {
                State::Begin => {
                    let time = if self.warmup > Ns::ZERO { self.warmup } else { self.time };
                    self.state = State::Send { sent: 0, since: last.now, until: last.now + time };
                }
                State::Send { sent, since, until } => return self.send(last, since, until, sent),
                State::Ended => {
                    self.state = State::Wait;
                    return Op::SleepFor(PAUSE);
                }
                State::Wait if self.run.ending.get().is_some() => return self.end(),
                State::Wait if self.warmup > Ns::ZERO => {
                    self.warmup = Ns::ZERO;
                    self.state = State::Begin;
                }
                State::Wait => self.state = State::Exit,
                State::Exit => return Op::Exit,
            }
        }
    }
}

pub struct Receiver {
    side: Side,
    run: Rc<Run>,
    over: bool,
}

impl Receiver {
    pub fn new(side: Side, run: Rc<Run>) -> Receiver {
        Receiver { side, run, over: false }
    }
}

impl Program for Receiver {
    fn next(&mut self, last: Outcome) -> Op {
        if self.over {
            return Op::Exit;
        }
        if std::mem::take(&mut self.side.waiting) {
            let received = &self.run.received;
            received.set(received.get() + last.value);
            // An empty datagram that was sent once more although the first had been read means nothing.
            let ended = if last.value == 0 { self.run.ending.take() } else { None };
            match ended {
                Some(After::Measure) => received.set(0),
                Some(After::Nothing) => {
                    self.over = true;
                    return Op::Report { series: RECEIVED, value: self.run.rate(received.get()) };
                }
                None => {}
            }
        }
        let size = self.side.size;
        self.side.before().unwrap_or_else(|| self.side.receive(size))
    }
}
