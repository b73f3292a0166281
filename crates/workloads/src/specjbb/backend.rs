//! The threads of a virtual machine's pools: workers of a backend's tiers, and threads that decode messages.

use super::jvm::Pool;
use super::{Bench, Job, MINES, MINING, PARTS, Pace, Request, RequestId, Task, TasksAtOnce, post, wait};
use crate::chance::lognormal;
use sim::program::{Op, Outcome, Program};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Cycles, Ns, Prng};

/// Spread of a task's work, the logarithm's standard deviation in thousandths: most tasks take between a third and
/// three times the mean (guess).
const SIGMA_PERMILLE: u64 = 800;

enum State {
    Next,
    /// It has scanned its pool for a task.
    Scanned,
    Woken,
    Stop,
    /// This work completes so many tasks of `own`.
    Run(usize),
}

/// A thread of a pool.
pub struct Worker {
    bench: Rc<Bench>,
    jvm: usize,
    pool: usize,
    number: usize,
    chance: Prng,
    /// Operations that come before anything else: threads to wake, messages to write.
    outbox: VecDeque<Op>,
    /// Tasks that it does before it looks into the queue: it has begun a request with them, or taken several at once.
    own: TasksAtOnce,
    state: State,
}

impl Worker {
    /// `place` is a virtual machine, and the index of one of its pools.
    pub fn new(bench: Rc<Bench>, place: (usize, usize), number: usize, chance: Prng) -> Worker {
        let (jvm, pool) = place;
        let (outbox, own) = (VecDeque::new(), TasksAtOnce::new());
        Worker { bench, jvm, pool, number, chance, outbox, own, state: State::Next }
    }

    fn work(&mut self, task: Task) -> u64 {
        let messages = match task {
            Task::Decode(_) => return self.bench.rules.costs.decode.0,
            Task::Do(Job::Parts { parts, .. }) => parts,
            Task::Do(_) => 1,
        };
        let mean = self.bench.rules.costs.task.0;
        // 10 to 500 us, if the mean is 35.
        let (least, most) = (mean * 10 / 35, mean * 500 / 35);
        (0..messages).map(|_| lognormal(&mut self.chance, mean, SIGMA_PERMILLE).clamp(least, most)).sum()
    }

    /// Takes a task, starts to look for one, or stops.
    fn next_task(&mut self) -> Option<Op> {
        let bench = self.bench.clone();
        let mut jvm = bench.jvms[self.jvm].borrow_mut();
        if bench.control.stopping.get() {
            return Some(Op::Exit);
        }
        if jvm.stops() {
            let own = jvm.pools[self.pool].threads[self.number];
            self.outbox.extend(jvm.stop(own).into_iter().map(post));
            self.state = State::Stop;
            return None;
        }
        let pool = &mut jvm.pools[self.pool];
        if self.own.is_empty() {
            let share = if pool.scans() { pool.queue.len() / pool.threads.len() } else { 1 };
            let taken = share.clamp(1, bench.rules.at_once).min(pool.queue.len());
            self.own.extend(pool.queue.drain(..taken));
        }
        if self.own.is_empty() {
            pool.looking += 1;
            self.state = State::Scanned;
            return pool.scans().then_some(Op::Work(bench.rules.costs.scan));
        }
        drop(jvm);
        self.state = State::Run(self.own.len());
        let work = (0..self.own.len()).map(|n| self.work(self.own[n])).sum();
        Some(Op::Work(Cycles(work)))
    }

    /// It has looked for a task; if there is nothing to do, it sleeps.
    fn park(&mut self) -> Option<Op> {
        let bench = self.bench.clone();
        let mut jvm = bench.jvms[self.jvm].borrow_mut();
        let stops = jvm.stops();
        let pool = &mut jvm.pools[self.pool];
        pool.looking -= 1;
        self.state = State::Next;
        if !pool.queue.is_empty() || stops || bench.control.stopping.get() {
            return None;
        }
        pool.parked.push_back(self.number);
        let own = pool.threads[self.number];
        jvm.running -= 1;
        self.state = State::Woken;
        Some(wait(own))
    }

    /// Hands a job to a tier of a backend: directly to its own backend, to another one by a message.
    fn hand(&mut self, group: usize, job: Job) {
        if group != self.jvm {
            return self.send(group, job);
        }
        let mut jvm = self.bench.jvms[group].borrow_mut();
        let pool: &mut Pool = &mut jvm.pools[job.tier()];
        self.outbox.extend(pool.push(Task::Do(job)).map(post));
    }

    /// Writes a message to one of the connections of a virtual machine.
    fn send(&mut self, jvm: usize, job: Job) {
        self.outbox.push_back(self.bench.send(jvm, self.number, job));
    }

    fn end(&mut self, task: Task, now: Ns) {
        let bench = self.bench.clone();
        match task {
            Task::Decode(message) => self.outbox.extend(bench.decoded(self.jvm, message, now).map(post)),
            Task::Do(Job::First(request)) => self.fork(request),
            Task::Do(Job::Parts { request: id, parts, .. }) => {
                let mut requests = bench.requests.borrow_mut();
                let request: &mut Request = &mut requests.all[id as usize];
                request.parts_left -= parts;
                let home = request.home;
                if request.parts_left == 0 {
                    drop(requests);
                    // The worker that completes a request goes on with the reply itself, if the request belongs to its
                    // own group.
                    match home == self.jvm {
                        true => self.own.push_back(Task::Do(Job::Reply(id))),
                        false => self.send(home, Job::Reply(id)),
                    }
                }
            }
            Task::Do(Job::Reply(id)) => {
                self.send(bench.groups() + self.jvm, Job::Answer(id));
                // While the controller measures a curve, it decides when a collection happens.
                if let Pace::Preset { .. } = bench.rules.pace {
                    bench.jvms[self.jvm].borrow_mut().allocate(&bench.rules.costs);
                }
            }
            Task::Do(Job::Answer(_)) => unreachable!("whoever decodes an answer has it"),
        }
    }

    /// Forks the parts of a request.
    fn fork(&mut self, request: RequestId) {
        let mined = (self.chance.below(MINES.0) == 0).then_some(MINES.1);
        self.bench.requests.borrow_mut().all[request as usize].parts_left = PARTS + mined.unwrap_or(0);
        let group = self.group_of_part();
        let parts = Job::Parts { request, tier: 0, parts: PARTS };
        // The worker keeps the parts that stay in its own group.
        match group == self.jvm {
            true => self.own.push_back(Task::Do(parts)),
            false => self.hand(group, parts),
        }
        if let Some(parts) = mined {
            let group = self.group_of_part();
            self.hand(group, Job::Parts { request, tier: MINING, parts });
        }
    }

    fn group_of_part(&mut self) -> usize {
        let groups = self.bench.groups() as u64;
        if groups == 1 || self.chance.below(100) >= self.bench.rules.remote_percent {
            return self.jvm;
        }
        ((self.jvm as u64 + 1 + self.chance.below(groups - 1)) % groups) as usize
    }
}

impl Program for Worker {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            if let Some(op) = self.outbox.pop_front() {
                return op;
            }
            match self.state {
                State::Next => {
                    if let Some(op) = self.next_task() {
                        return op;
                    }
                }
                State::Scanned => {
                    if let Some(op) = self.park() {
                        return op;
                    }
                }
                State::Stop => {
                    self.state = State::Woken;
                    return wait(self.bench.jvms[self.jvm].borrow().pools[self.pool].threads[self.number]);
                }
                State::Woken => {
                    self.bench.jvms[self.jvm].borrow_mut().running += 1;
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
