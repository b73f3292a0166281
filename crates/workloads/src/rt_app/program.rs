//! A thread's program: what rt-app's thread_body(), run() and run_event() do, event by event.

use super::description::{
    BarrierId, ConditionId, Event, Loops, MutexId, Phase, Placed, SemaphoreId, Task, TaskId, TaskgroupId, TimerMode,
    TimerRef,
};
use super::log::{Column, birth, rounded_difference_us, rounded_us};
use super::memory;
use super::process::Process;
use super::refusal;
use super::settings::{Attributes, Settings};
use crate::refusal::Asked;
use os::sync::{self, SyncOp};
use sched::sched::{Policy as KernelPolicy, ROOT_TASK_GROUP};
use sim::program::{Op, Outcome, Program, Standing};
use std::collections::VecDeque;
use std::rc::Rc;
use units::Ns;

/// `runtime` checks the clock after each piece of work of this length.
const RUNTIME_PIECE_US: u64 = 32;

/// Where a thread is.
enum At {
    Born,
    /// Past the common start.
    Released,
    /// Past its delay.
    Delayed,
    /// Before a round of its phase.
    Round,
    /// The phase's settings have been made.
    Begin,
    /// In the events of the round.
    Events,
    /// Has ended the application, and has interrupted the threads below this index.
    Stopping(usize),
    /// Nothing comes after what is still to be done.
    Ended,
}

/// The current round's row of the log. Times are microseconds.
#[derive(Default)]
struct Row {
    start: Ns,
    perf: u64,
    run: u64,
    slack: i64,
    c_duration: u64,
    c_period: u64,
    wu_lat: u64,
}

/// What comes of one step of an event.
enum Progress {
    Done,
    /// The event goes on at this stage once its operations are done.
    Stage(u8),
}

pub(super) struct Thread {
    process: Rc<Process>,
    task: TaskId,
    index: u32,
    fork: Option<u32>,
    at: At,
    /// Operations to issue before the thread decides again.
    ops: VecDeque<Op>,
    /// The part of the current operation that the kernel may refuse.
    asked: Option<Asked>,
    settings: Settings,
    /// The moment from which timers count (rt-app: `t_first`).
    first: Ns,
    phase: usize,
    phase_round: u32,
    task_round: u32,
    step: usize,
    stage: u8,
    /// Locks minus unlocks of this round. Above 0, the thread still runs its unlocks once the application has ended.
    locks: i32,
    /// The mutexes that it holds, in the order in which it took them.
    held: Vec<sync::MutexId>,
    /// The last moments of its own timers; `None` before the first use.
    timers: Vec<Option<Ns>>,
    row: Row,
    /// When the current computing event began.
    began: Ns,
    /// The moment that it sleeps until.
    target: Ns,
    /// The thread that it forked last.
    child: u32,
}

impl Thread {
    pub fn new(process: Rc<Process>, task: TaskId, index: u32, fork: Option<u32>, settings: Settings) -> Thread {
        Thread {
            timers: vec![None; process.app.tasks[task.index()].unique_timers.len()],
            process,
            task,
            index,
            fork,
            at: At::Born,
            ops: VecDeque::new(),
            asked: None,
            settings,
            first: Ns::ZERO,
            phase: 0,
            phase_round: 0,
            task_round: 0,
            step: 0,
            stage: 0,
            locks: 0,
            held: Vec::new(),
            row: Row::default(),
            began: Ns::ZERO,
            target: Ns::ZERO,
            child: 0,
        }
    }

    /// Decides what to do next, or where to go on, once all issued operations are done.
    fn advance(&mut self, last: Outcome) {
        let now = last.now;
        let process = self.process.clone();
        let task = &process.app.tasks[self.task.index()];
        match self.at {
            At::Born => self.be_born(now),
            At::Released => {
                self.first = process.memory.borrow().zero;
                self.at = At::Delayed;
                if task.delay_us > 0 && process.running() {
                    self.first += Ns::from_us(task.delay_us);
                    self.sleep_until(self.first);
                }
            }
            At::Delayed if now < self.target => self.die(),
            At::Delayed => {
                self.at = At::Round;
                let Task { policy, util_min, util_max, .. } = task;
                let of =
                    Attributes { policy: Some(&policy.value), util_min: value(util_min), util_max: value(util_max) };
                self.settings.set_attributes(&of, &mut self.ops);
                self.bind_to(task.nodes_membind.as_ref());
                self.move_to(task.taskgroup.as_ref());
                self.ops.extend(process.lock_pages());
            }
            At::Round if !process.running() || task.loops == Loops::Times(self.task_round) => self.finish(),
            At::Round => {
                self.at = At::Begin;
                self.enter(&task.phases[self.phase]);
            }
            At::Begin => {
                self.at = At::Events;
                (self.step, self.stage, self.locks) = (0, 0, 0);
                self.row = Row { start: now, ..Row::default() };
            }
            At::Events => self.continue_round(task, last),
            At::Stopping(mut from) => match process.next_interrupt(&mut from) {
                Some(op) => {
                    self.at = At::Stopping(from);
                    self.ops.push_back(op);
                }
                None => self.die(),
            },
            At::Ended => unreachable!("a thread that has ended exits"),
        }
    }

    fn be_born(&mut self, now: Ns) {
        self.at = At::Released;
        if self.index == 0 {
            self.process.memory.borrow_mut().zero = now;
        }
        match self.fork {
            Some(fork) => self.report(Column::Born, birth(self.task, fork)),
            None => {
                self.sync(SyncOp::Barrier(self.process.start));
            }
        }
    }

    // Settings.

    fn enter(&mut self, phase: &Phase) {
        self.settings.set_cpus(phase.cpus.as_ref(), &mut self.ops);
        let policy = phase.policy.as_ref().map(|policy| &policy.value);
        let of = Attributes { policy, util_min: value(&phase.util_min), util_max: value(&phase.util_max) };
        self.settings.enter(&of, self.phase, &mut self.ops);
        self.bind_to(phase.nodes_membind.as_ref());
        self.move_to(phase.taskgroup.as_ref());
    }

    /// Where the application uses no memory, it does not matter where memory would lie.
    fn bind_to(&mut self, nodes: Option<&Placed<Vec<u16>>>) {
        if self.process.app.uses_memory() {
            self.settings.set_membind(nodes, &mut self.ops);
        }
    }

    fn move_to(&mut self, group: Option<&Placed<TaskgroupId>>) {
        if let Some(group) = group {
            self.settings.set_group(self.process.groups[group.value.index()], &mut self.ops);
        }
    }

    // Rounds of phases.

    fn continue_round(&mut self, task: &Task, last: Outcome) {
        let steps = &task.phases[self.phase].steps;
        let running = self.process.running();
        if self.stage == 0 && (self.step == steps.len() || !running && self.locks == 0) {
            return self.end_round(task, last.now);
        }
        let event = &steps[self.step].event;
        // Once the application has ended, only locks and unlocks still run, so that nobody waits for a mutex for ever.
        let skipped = self.stage == 0 && !running && !matches!(event, Event::Lock(_) | Event::Unlock(_));
        let progress = if skipped { Progress::Done } else { self.event(event, last) };
        match progress {
            Progress::Done => (self.step, self.stage) = (self.step + 1, 0),
            Progress::Stage(stage) => self.stage = stage,
        }
    }

    fn end_round(&mut self, task: &Task, now: Ns) {
        self.at = At::Round;
        if self.process.running() {
            let row = std::mem::take(&mut self.row);
            self.report(Column::Perf, row.perf);
            self.report(Column::Run, row.run);
            self.report(Column::Start, row.start.0);
            self.report(Column::End, now.0);
            self.report(Column::Slack, row.slack as u64);
            self.report(Column::CDuration, row.c_duration);
            self.report(Column::CPeriod, row.c_period);
            self.report(Column::WuLat, row.wu_lat);
        }
        if task.phases[self.phase].loops == Loops::Forever {
            return;
        }
        self.phase_round += 1;
        if task.phases[self.phase].loops == Loops::Times(self.phase_round) {
            self.phase_round = 0;
            self.phase += 1;
            if self.phase == task.phases.len() {
                self.phase = 0;
                // The count wraps: a task that repeats for ever never looks at it.
                self.task_round = self.task_round.wrapping_add(1);
            }
        }
    }

    /// The end of thread_body(): restores the normal policy and the root task group.
    fn finish(&mut self) {
        self.ops.push_back(Op::SetPolicy { policy: KernelPolicy::Normal, priority: 0 });
        self.settings.set_group(ROOT_TASK_GROUP, &mut self.ops);
        if !self.process.running() {
            return self.die();
        }
        self.exit();
    }

    /// The application has ended while the thread slept or waited. It releases the locks that it holds.
    /// Differs: rt-app's threads keep their locks when they end, and a thread that waits for one waits for ever.
    fn die(&mut self) {
        while let Some(mutex) = self.held.pop() {
            self.sync(SyncOp::Unlock(mutex));
        }
        self.exit();
    }

    fn exit(&mut self) {
        self.at = At::Ended;
        self.process.bury(self.index);
        self.ops.push_back(Op::Exit);
    }

    /// The kernel refused a request; rt-app ends there.
    fn give_up(&mut self, asked: Asked, answer: i64) {
        // Before the thread enters its first phase, the request was for the task's own attributes.
        let phase = matches!(self.at, At::Begin | At::Events).then_some(self.phase);
        self.ops.clear();
        self.ops
            .push_back(Op::Report { series: refusal::SERIES, value: refusal::told(self.task, phase, asked, answer) });
        self.ops.extend(self.process.stop());
        self.at = At::Stopping(0);
    }

    // Events.

    fn event(&mut self, event: &Event, last: Outcome) -> Progress {
        let now = last.now;
        match *event {
            Event::Run { us } => self.run(us, now),
            Event::Runtime { us } => self.runtime(us, now),
            Event::Sleep { us } if self.stage == 0 => {
                // The kernel arms the timer even for a time of zero, so the thread sleeps for the slack.
                self.sleep_until(now + Ns::from_us(us).max(Ns(1)));
                Progress::Stage(1)
            }
            Event::Sleep { .. } => self.unless(now < self.target),
            Event::Timer { timer, period_us } => self.timer(timer, period_us, now),
            // pthreads' default mutex waits even for its own holder.
            Event::Lock(mutex) if self.held.contains(&self.process.mutex(mutex)) => self.sem_wait(self.process.never()),
            Event::Lock(mutex) => {
                self.locks += 1;
                self.lock(self.process.mutex(mutex))
            }
            Event::Unlock(mutex) => {
                self.locks -= 1;
                self.unlock(self.process.mutex(mutex))
            }
            Event::Wait { condition, mutex } => self.wait(condition, mutex),
            Event::Sync { condition, mutex } => match self.stage {
                0 => self.then(SyncOp::Signal(self.process.condition(condition)), 1),
                _ => self.wait(condition, mutex),
            },
            Event::Signal(condition) => self.sync(SyncOp::Signal(self.process.condition(condition))),
            Event::Broad(condition) => self.sync(SyncOp::Broadcast(self.process.condition(condition))),
            Event::Suspend { condition, mutex } => self.suspend(condition, mutex),
            Event::Resume { condition, mutex, .. } => {
                self.lock(self.process.mutex(mutex));
                self.sync(SyncOp::Broadcast(self.process.condition(condition)));
                self.unlock(self.process.mutex(mutex))
            }
            Event::Barrier(barrier) => self.barrier(barrier),
            Event::SemPost(semaphore) => self.sync(SyncOp::SemaphorePost(self.process.semaphore(semaphore))),
            Event::SemWait(semaphore) => self.sem_wait(semaphore),
            Event::Yield => {
                self.ops.push_back(Op::Yield);
                Progress::Done
            }
            Event::Fork(task) => self.fork(task, last.value),
            Event::Mem { .. } | Event::MemRun { .. } | Event::IoRun { .. } => self.data(event),
        }
    }

    fn run(&mut self, us: u64, now: Ns) -> Progress {
        if self.stage == 0 {
            self.row.c_duration += us;
            self.began = now;
            return self.work(us);
        }
        self.row.perf += us / self.process.ns_per_loop;
        self.row.run += rounded_us((now - self.began).0);
        Progress::Done
    }

    fn runtime(&mut self, us: u64, now: Ns) -> Progress {
        if self.stage == 0 {
            self.row.c_duration += us;
            self.began = now;
            return self.work(RUNTIME_PIECE_US);
        }
        self.row.perf += RUNTIME_PIECE_US / self.process.ns_per_loop;
        let passed = now - self.began;
        if passed < Ns::from_us(us) {
            return self.work(RUNTIME_PIECE_US);
        }
        self.row.run += rounded_us(passed.0);
        Progress::Done
    }

    /// Events that work on memory. The log has no column for them.
    fn data(&mut self, event: &Event) -> Progress {
        let Process { app, cores, .. } = &*self.process;
        let own = app.global.mem_buffer_bytes;
        let (pass, region) = match *event {
            Event::IoRun { bytes } => {
                self.ops.push_back(Op::Work(memory::iorun(bytes, own)));
                return Progress::Done;
            }
            Event::Mem { bytes } => (memory::mem(&cores.caches, bytes, own), self.process.own_buffer(self.task)),
            Event::MemRun { access, count, buffer } => {
                let of = &app.resources.buffers[buffer.index()];
                (memory::memrun(&cores.caches, access, count, of), self.process.buffer(buffer))
            }
            _ => unreachable!("{} touches no data", event.name()),
        };
        self.ops.extend(pass.ops(region, cores.ps_per_cycle));
        Progress::Done
    }

    fn timer(&mut self, timer: TimerRef, period_us: u64, now: Ns) -> Progress {
        if self.stage > 0 {
            if now < self.target {
                return self.unless(true);
            }
            let late = now - self.target;
            self.row.wu_lat += rounded_us(late.0);
            self.report(Column::TimerLatency, late.0);
            return Progress::Done;
        }
        self.row.c_period += period_us;
        let (last, mode) = self.last_moment(timer);
        let moment = last.unwrap_or(self.first) + Ns::from_us(period_us);
        let slack = rounded_difference_us(moment.0, now.0);
        self.row.slack = if self.process.app.global.cumulative_slack { self.row.slack + slack } else { slack };
        if now < moment {
            self.set_last_moment(timer, moment);
            self.sleep_until(moment);
            return Progress::Stage(1);
        }
        self.set_last_moment(timer, if mode == TimerMode::Relative { now } else { moment });
        self.row.wu_lat = 0;
        Progress::Done
    }

    fn last_moment(&self, timer: TimerRef) -> (Option<Ns>, TimerMode) {
        let app = &self.process.app;
        match timer {
            TimerRef::Shared(id) => {
                (self.process.memory.borrow().timers[id.index()], app.resources.timers[id.index()].mode)
            }
            TimerRef::Unique(id) => {
                (self.timers[id.index()], app.tasks[self.task.index()].unique_timers[id.index()].mode)
            }
        }
    }

    fn set_last_moment(&mut self, timer: TimerRef, moment: Ns) {
        match timer {
            TimerRef::Shared(id) => self.process.memory.borrow_mut().timers[id.index()] = Some(moment),
            TimerRef::Unique(id) => self.timers[id.index()] = Some(moment),
        }
    }

    /// Waits on the condition with the mutex held. Stages 0 and 1 lead into the wait, stage 2 out of it.
    fn wait(&mut self, condition: ConditionId, mutex: MutexId) -> Progress {
        let running = self.process.running();
        if self.stage < 2 && running {
            let wait = SyncOp::Wait(self.process.condition(condition), self.process.mutex(mutex));
            return self.then(wait, 2);
        }
        self.unless(!running)
    }

    fn suspend(&mut self, condition: ConditionId, mutex: MutexId) -> Progress {
        if self.stage == 0 {
            self.lock(self.process.mutex(mutex));
            return Progress::Stage(1);
        }
        let woken = self.stage == 2;
        let progress = self.wait(condition, mutex);
        if woken && !matches!(self.at, At::Ended) {
            self.unlock(self.process.mutex(mutex));
        }
        progress
    }

    /// rt-app's barrier: a count under a mutex, and a condition for the threads that wait. A woken thread counts itself
    /// off only when it runs, so one that comes round before that passes without waiting, as in rt-app.
    fn barrier(&mut self, barrier: BarrierId) -> Progress {
        let (mutex, condition) = self.process.barrier(barrier);
        let process = self.process.clone();
        let mut memory = process.memory.borrow_mut();
        let running = memory.running;
        let missing = &mut memory.missing[barrier.index()];
        match self.stage {
            0 => {
                self.lock(mutex);
                Progress::Stage(1)
            }
            1 if *missing == 0 => {
                self.sync(SyncOp::Broadcast(condition));
                self.unlock(mutex)
            }
            1 if running => {
                *missing -= 1;
                self.then(SyncOp::Wait(condition, mutex), 2)
            }
            1 => {
                drop(memory);
                self.unless(true)
            }
            _ => {
                *missing += 1;
                self.unlock(mutex)
            }
        }
    }

    fn sem_wait(&mut self, semaphore: SemaphoreId) -> Progress {
        let running = self.process.running();
        if self.stage == 0 && running {
            self.process.memory.borrow_mut().at_semaphore[semaphore.index()] += 1;
            return self.then(SyncOp::SemaphoreWait(self.process.semaphore(semaphore)), 1);
        }
        if self.stage > 0 {
            self.process.memory.borrow_mut().at_semaphore[semaphore.index()] -= 1;
        }
        self.unless(!running)
    }

    fn fork(&mut self, task: TaskId, started: u64) -> Progress {
        if self.stage > 0 {
            match started.cast_signed() {
                ..0 => {
                    self.process.bury(self.child);
                    self.give_up(Asked::Fork, started.cast_signed());
                }
                _ => self.ops.extend(self.process.adopt(self.child, started)),
            }
            return Progress::Done;
        }
        match Process::fork(&self.process, task, &self.settings) {
            Ok((index, thread)) => {
                self.child = index;
                self.ops.push_back(Op::Fork(Box::new(thread)));
                Progress::Stage(1)
            }
            Err(report) => {
                self.ops.push_back(report);
                self.ops.extend(self.process.stop());
                self.at = At::Stopping(0);
                Progress::Done
            }
        }
    }

    // Operations.

    fn report(&mut self, column: Column, value: u64) {
        self.ops.push_back(Op::Report { series: column.of(self.index), value });
    }

    fn work(&mut self, us: u64) -> Progress {
        self.ops.push_back(Op::Work(self.process.cores.cycles(us)));
        Progress::Stage(1)
    }

    /// Afterwards it is earlier than `moment` only if the application has ended.
    fn sleep_until(&mut self, moment: Ns) {
        self.target = moment;
        self.ops.push_back(Op::SleepUntil(moment));
    }

    fn sync(&mut self, op: SyncOp) -> Progress {
        self.ops.push_back(Op::Sync(op));
        Progress::Done
    }

    fn then(&mut self, op: SyncOp, stage: u8) -> Progress {
        self.sync(op);
        Progress::Stage(stage)
    }

    fn lock(&mut self, mutex: sync::MutexId) -> Progress {
        self.held.push(mutex);
        self.sync(SyncOp::Lock(mutex))
    }

    fn unlock(&mut self, mutex: sync::MutexId) -> Progress {
        self.held.retain(|&held| held != mutex);
        self.sync(SyncOp::Unlock(mutex))
    }

    /// Done, unless the application has ended in the meantime.
    fn unless(&mut self, ended: bool) -> Progress {
        if ended {
            self.die();
        }
        Progress::Done
    }
}

impl Program for Thread {
    fn next(&mut self, last: Outcome) -> Op {
        let answer = last.value.cast_signed();
        if let Some(asked) = self.asked.take().filter(|_| answer < 0) {
            self.give_up(asked, answer);
        }
        loop {
            if let Some(op) = self.ops.pop_front() {
                self.asked = Asked::of(&op);
                return op;
            }
            self.advance(last);
        }
    }

    fn stands(&self) -> Option<Standing> {
        let app = &self.process.app;
        // `step` is past an event once its last operation has begun, unless the event still checks that one's result.
        let phase = app.tasks[self.task.index()].phases.get(self.phase).filter(|_| matches!(self.at, At::Events))?;
        let at = if self.stage > 0 { self.step } else { self.step.checked_sub(1)? };
        let step = phase.steps.get(at)?;
        let name = app.resources.met_at(&step.event)?;
        Some(Standing {
            task: app.thread_name(self.task, self.index, self.fork),
            step: format!("\"{}\": \"{name}\"", step.event.name()),
            line: step.position.line,
            column: step.position.column,
        })
    }
}

fn value(clamp: &Option<Placed<u16>>) -> Option<u16> {
    clamp.as_ref().map(|clamp| clamp.value)
}
