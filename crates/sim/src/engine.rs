//! The run loop: takes the CPU whose time comes next and lets it execute one path.

use crate::cpu::{Cpu, Run};
use crate::noise::{Vmstat, Watchdog};
use crate::program::{Outcome, TaskSpec};
use crate::settle::Unsettled;
use crate::softirq::Devices;
use crate::task::TaskContext;
use crate::tick::Timekeeping;
use crate::timeline::{Refused, Timeline};
use crate::tournament::{Tournament, Winner};
use machine::hardware::{Hardware, Notice};
use machine::memory::Fetches;
use machine::smt::WorkKind;
use machine::warmth::WorkingSet;
use os::Os;
use os::preempt::Preempt;
use sched::arch::Arch;
use sched::autogroup::Session;
use sched::core::Sched;
use sched::errno::{Answer, Refusal};
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use std::collections::BTreeMap;
use units::{CpuId, Divisor, Ns, PerCpu, Ps, Slots, unlikely};

/// A simulation of the Linux scheduler on the modelled machine.
pub type LinuxSim<const COSTS: bool> = Sim<COSTS, Sched<Hardware<COSTS>>>;

/// A simulated machine with a scheduler, the rest of its kernel, and its tasks.
pub struct Sim<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> {
    pub sched: S,
    pub os: Os,
    pub(crate) cpus: PerCpu<Cpu>,
    pub(crate) queue: Tournament,
    pub(crate) tasks: Slots<Option<TaskContext>>,
    /// Divides by the tick's period, which is the kernel's ([`Os::tick_period`]).
    pub(crate) ticks: Divisor,
    /// How late the timers of sleeping fair tasks may fire, so as to fire together (`prctl(PR_SET_TIMERSLACK)`, 50 us
    /// by default).
    pub(crate) timer_slack: Ps,
    /// Measurements, in the order in which programs reported them.
    pub samples: Vec<Sample>,
    pub(crate) live_tasks: usize,
    pub(crate) next_mm: u32,
    /// Address spaces shared by tasks that are not threads of each other: the number by which the tasks know each, and
    /// its mm.
    pub(crate) joined: Vec<(u32, u32)>,
    pub(crate) comms: Vec<String>,
    /// The index of each name in `comms`.
    pub(crate) comm_numbers: BTreeMap<String, u32>,
    pub(crate) sleeps: u64,
    /// Engine events so far: paths executed.
    pub events: u64,
    pub(crate) now: Ps,
    pub(crate) timeline: Timeline,
    pub(crate) devices: Devices,
    /// By CPU, `None` for those of nohz_full=; empty if no noise was asked for, or if threads do a watchdog's work.
    pub(crate) watchdogs: Vec<Option<Watchdog>>,
    pub(crate) vmstat: Option<Vmstat>,
    pub(crate) timekeeping: Timekeeping,
    /// For each CPU whose last path waits for the answers to its requests.
    pub(crate) unsettled: Slots<Option<Box<Unsettled>>>,
    /// Changes of the machine that the kernel refused.
    pub refused: Vec<Refused>,
    /// What the kernel refused to tasks, in the order of the first request of each kind.
    pub refused_requests: Vec<RefusedRequest>,
}

/// Something that tasks asked for and did not get. The task's program may look at the answer, or go on as if nothing
/// had happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedRequest {
    /// When it was first asked for.
    pub at: Ns,
    /// The task that first asked.
    pub comm: String,
    /// The request, in words.
    pub request: String,
    pub refusal: Refusal,
    /// How often it was asked for and refused in this way.
    pub times: u64,
}

/// A value that a program reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    pub at: Ns,
    pub series: u32,
    pub value: u64,
}

/// Why a run came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Every task has exited.
    Finished,
    /// The given time has come.
    Time,
    /// Tasks are left, all asleep, and nothing will ever wake them.
    Deadlock { sleeping: usize },
}

/// The time between two looks of a stopper that waits for another CPU to stop.
const STOPPER_LOOK: Ps = Ps::from_ns(1000);

/// Default slack of user timers (include/linux/init_task.h: timer_slack_ns).
const TIMER_SLACK: Ns = Ns(50_000);

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// A machine that has just booted: every CPU idle.
    pub fn new(sched: S, os: Os) -> Sim<COSTS, S> {
        let (nr_cpus, tick_period) = (sched.nr_cpus(), os.tick_period());
        let mut sim = Sim {
            sched,
            os,
            cpus: PerCpu::from_fn(nr_cpus, |_| Cpu::new()),
            queue: Tournament::new(nr_cpus),
            tasks: Slots::new(),
            ticks: Divisor::new(tick_period.0),
            timer_slack: TIMER_SLACK.into(),
            samples: Vec::new(),
            live_tasks: 0,
            next_mm: 1,
            joined: Vec::new(),
            comms: vec!["swapper".to_string()],
            comm_numbers: BTreeMap::from([("swapper".to_string(), 0)]),
            sleeps: 0,
            events: 0,
            now: Ps::ZERO,
            timeline: Timeline::default(),
            devices: Devices::new(nr_cpus),
            watchdogs: Vec::new(),
            vmstat: None,
            timekeeping: Timekeeping::default(),
            unsettled: (0..nr_cpus).map(|_| None).collect(),
            refused: Vec::new(),
            refused_requests: Vec::new(),
        };
        sim.sched.arch_mut().set_tick(tick_period);
        sim.sched.sched_dynamic_update(sim.os.rules.preempt == Preempt::Lazy);
        for cpu in (0..nr_cpus).map(CpuId::new) {
            sim.sched.arch_mut().bring_up(cpu);
            sim.sched.idle_loop_enter(cpu);
            sim.sched.set_polling(cpu, true);
            // The time that booting took is over.
            sim.sched.arch_mut().begin(cpu, Ps::ZERO);
            sim.cpus[cpu].tick_at = tick_period;
            let outlook = sim.outlook(cpu, true);
            sim.sched.arch_mut().choose_idle(cpu, &outlook);
            sim.requeue(cpu);
        }
        sim.sched.arch_mut().booted();
        sim
    }

    pub fn now(&self) -> Ns {
        self.now.ns()
    }

    /// Names of tasks by the number that profiles give them.
    pub fn comms(&self) -> &[String] {
        &self.comms
    }

    /// How long tasks have run on `cpu`, including interrupts, system calls and switches, up to the end of what it
    /// executed last.
    pub fn busy(&self, cpu: CpuId) -> Ps {
        let this = &self.cpus[cpu];
        let since = this.busy_since.map_or(Ps::ZERO, |since| self.sched.arch().now(cpu).saturating_sub(since));
        this.busy + since
    }

    /// How often `cpu` has had a tick.
    pub fn ticks(&self, cpu: CpuId) -> u64 {
        self.cpus[cpu].ticks
    }

    /// Lets the machine idle until `until`.
    pub fn idle(&mut self, until: Ns) {
        let until = Ps::from(until);
        loop {
            let next = self.queue.first(self.queue.winner());
            let at = next.map_or(Ps::NEVER, |next| next.1);
            if self.timeline.next() <= at && self.timeline.next() < until {
                self.change_machine();
                continue;
            }
            let Some((cpu, at)) = next.filter(|next| next.1 < until) else { break };
            self.step(cpu, at);
            self.requeue(cpu);
        }
        self.now = until;
    }

    /// Starts a task, as if a process on `cpu` had forked it. The time this takes is `cpu`'s.
    ///
    /// If that CPU is offline, the first CPU that is up does it.
    ///
    /// # Panics
    /// When the kernel refuses the task's policy; [`Sim::try_spawn`] returns the refusal instead.
    pub fn spawn(&mut self, cpu: CpuId, spec: TaskSpec) -> TaskId {
        let comm = spec.comm.clone();
        self.try_spawn(cpu, spec).unwrap_or_else(|refusal| panic!("task {comm}: {refusal}"))
    }

    /// The same.
    ///
    /// # Errors
    /// What the kernel answers to the task's policy: EINVAL, EPERM or EBUSY.
    pub fn try_spawn(&mut self, cpu: CpuId, spec: TaskSpec) -> Answer<TaskId> {
        let up = || (0..self.sched.nr_cpus()).map(CpuId::new).find(|&cpu| self.sched.is_online(cpu));
        let cpu = if self.sched.is_online(cpu) { cpu } else { up().expect("a CPU is up") };
        self.beside(cpu, |sim| {
            let session = spec.session;
            let task = sim.fork_task(cpu, None, spec, false)?;
            if session.is_none() {
                // The task that happens to run there is not its parent.
                sim.sched.set_session(cpu, task, Session::Init);
            }
            sim.begin_child(cpu, task);
            Ok(task)
        })
    }

    /// Runs until every task has exited, or until `until`.
    // Compiled once for all crates: functions that are never inlined are shared between crates, all others are not. A
    // crate that compiled its own run loop would call into another crate's, and the scheduler would be in the hot code
    // twice.
    #[inline(never)]
    pub fn run(&mut self, until: Ns) -> End {
        self.run_watched(until, |_| ())
    }

    /// The same, with `watch` called after each event. It is for checkers, which see everything and change nothing.
    pub fn run_watched(&mut self, until: Ns, watch: impl FnMut(&Self)) -> End {
        self.advance(until, None, watch).expect("nobody counts")
    }

    /// The same for callers that have to look at something else now and then: returns `None` after about this many
    /// events, which may all have been at one instant. To be called again.
    pub fn run_events(&mut self, until: Ns, events: u64) -> Option<End> {
        self.advance(until, Some(self.events + events), |_| ())
    }

    #[inline(always)]
    fn advance(&mut self, until: Ns, last: Option<u64>, mut watch: impl FnMut(&Self)) -> Option<End> {
        let until = Ps::from(until);
        let mut winner = self.queue.winner();
        while self.live_tasks > 0 {
            if unlikely(last.is_some_and(|last| self.events >= last)) {
                return None;
            }
            let next = self.queue.first(winner);
            let at = next.map_or(Ps::NEVER, |next| next.1);
            // Everything that comes seldom. Two comparisons take less time than a minimum and one comparison.
            if unlikely(at >= self.timeline.next()) || unlikely(at >= until) {
                if self.timeline.next() <= at.min(until) && self.timeline.next() != Ps::NEVER {
                    self.change_machine();
                    winner = self.queue.winner();
                    watch(self);
                    continue;
                }
                if next.is_some() && at > until {
                    self.now = until;
                    return Some(End::Time);
                }
            }
            let Some((cpu, at)) = next else {
                if !self.timeline.is_done() {
                    self.now = until;
                    return Some(End::Time);
                }
                return Some(End::Deadlock { sleeping: self.live_tasks });
            };
            loop {
                let alone = self.step(cpu, at);
                // With the cost model off most paths follow each other at the same instant.
                let again =
                    !COSTS && alone && self.is_first_again(cpu, at) && last.is_none_or(|last| self.events < last);
                if !again {
                    winner = self.requeue(cpu);
                    self.foresee_turns(cpu);
                }
                watch(self);
                if self.ticks_alone() {
                    return Some(End::Deadlock { sleeping: self.live_tasks });
                }
                if !again {
                    break;
                }
            }
        }
        Some(End::Finished)
    }

    /// Whether `cpu`, which was first at this instant, goes on at the same instant and is still first.
    #[inline(always)]
    fn is_first_again(&self, cpu: CpuId, at: Ps) -> bool {
        let this = &self.cpus[cpu];
        this.at == at && this.executes() && self.queue.is_first(cpu) && self.live_tasks > 0
    }

    /// Lets `cpu` execute a path. Returns whether the path left nothing for other CPUs.
    #[inline(always)]
    fn step(&mut self, cpu: CpuId, at: Ps) -> bool {
        assert!(at >= self.now, "time runs backwards on {cpu:?}: {at:?} after {:?}", self.now);
        self.now = at;
        self.event(cpu, at);
        if unlikely(self.sched.arch().has_put_off()) {
            self.begin_settling(cpu);
        }
        let alone = self.sched.arch_mut().outbox().is_empty() && self.os.irq.raised.is_empty();
        if unlikely(!alone) {
            self.hand_over();
        }
        alone
    }

    /// Hands over what a path left for other CPUs.
    #[inline(never)]
    fn hand_over(&mut self) {
        if !self.sched.arch_mut().outbox().is_empty() {
            self.deliver();
        }
        if unlikely(!self.os.irq.raised.is_empty()) {
            self.deliver_irqs();
        }
    }

    /// One CPU's turn.
    #[inline(always)]
    fn event(&mut self, cpu: CpuId, now: Ps) {
        let (mut now, mut run) = (now, self.cpus[cpu].run);
        if unlikely(run == Run::Unsettled) {
            return self.settle(cpu, now);
        }
        self.events += 1;
        match run {
            Run::Unsettled => unreachable!("looked at before"),
            Run::Idle => return self.wake_cpu(cpu, now),
            Run::EnteringIdle => match self.fall_asleep(cpu, now) {
                Ok(()) => return,
                Err(awake) => (now, run) = awake,
            },
            Run::User { since } => self.account_user(cpu, since, now),
            Run::LeavingIdle | Run::Kernel => {}
        }
        self.sched.arch_mut().begin(cpu, now);
        if unlikely(run == Run::LeavingIdle) {
            self.sched.write_idle_state(cpu);
        }
        // Most paths begin where no interrupt waits.
        if unlikely(self.cpus[cpu].is_interrupted(now)) {
            if matches!(run, Run::User { .. }) {
                self.track_context(cpu);
                run = Run::Kernel;
            }
            self.interrupts(cpu);
        }
        if unlikely(run == Run::LeavingIdle) {
            self.reflect_on_idle(cpu);
        }
        self.continue_task(cpu, run);
    }

    /// Hands over what the last path sent to other CPUs.
    pub(crate) fn deliver(&mut self) {
        while let Some(message) = self.sched.arch_mut().outbox().pop() {
            if message.notice == Notice::Frequency {
                let due = self.sched.arch().frequency_due();
                self.timeline.set_frequency(due);
                continue;
            }
            // A message sent before its sender knew that the CPU went offline wakes nobody.
            if self.sched.is_online(message.to) {
                self.cpus[message.to].notice(message.notice, message.at.max(self.now));
            }
            if message.notice == Notice::Timer {
                self.reprogram(message.to);
            }
            self.requeue(message.to);
        }
    }

    /// Sets `cpu`'s next timer interrupt from the scheduler's timers there.
    pub(crate) fn reprogram(&mut self, cpu: CpuId) {
        let at = self.sched.next_event(cpu).map_or(Ps::NEVER, Ps::from);
        let expires = self.sched.hrtimer_get_next_event(cpu).map_or(Ps::NEVER, Ps::from);
        self.cpus[cpu].timers.set_sched(at, expires);
    }

    /// Enters `cpu`'s next time into the tournament. Returns the new winner.
    #[inline]
    pub(crate) fn requeue(&mut self, cpu: CpuId) -> Winner {
        self.queue.set(cpu, self.cpus[cpu].key(), !COSTS)
    }

    /// Whether need_resched is visible to `cpu`. Another CPU's request becomes visible when its notice arrives.
    pub(crate) fn must_reschedule(&self, cpu: CpuId, now: Ps) -> bool {
        if unlikely(self.sched.need_resched(cpu)) {
            let this = &self.cpus[cpu];
            let announced = this.ipi_at.min(this.monitor_at);
            return announced == Ps::NEVER || announced <= now;
        }
        false
    }

    /// Whether nothing will ever happen again, although some CPU still ticks: every task sleeps, no timer is armed,
    /// nothing is on its way, the administrator has nothing left to do.
    fn ticks_alone(&self) -> bool {
        // Tested rarely: a machine that only ticks does so for the rest of the run.
        self.events.is_multiple_of(1 << 16)
            && self.timeline.is_done()
            && self
                .cpus
                .iter()
                .all(|(cpu, c)| self.sched.current(cpu).is_none() && c.only_ticks() && !self.sched.need_resched(cpu))
    }

    pub(crate) fn context(&mut self, task: TaskId) -> &mut TaskContext {
        self.tasks[task.index()].as_mut().expect("a running task has a program")
    }

    /// Lets the current task of `cpu` go on: switches if it must, otherwise takes the task's next step. `was`: what the
    /// CPU was in the middle of.
    #[inline(always)]
    fn continue_task(&mut self, cpu: CpuId, was: Run) {
        let Some(task) = self.sched.current(cpu) else {
            return self.leave_or_enter_idle(cpu);
        };
        if self.is_preempted(cpu, task, was) {
            self.clear_monitor(cpu);
            return self.switch(cpu, true);
        }
        if unlikely(self.sched.is_stopper(task)) {
            return self.stop(cpu);
        }
        if self.is_in_call(task) || self.step_task(cpu, task) {
            self.step_syscall(cpu, task);
        }
    }

    /// The stopper of `cpu` runs.
    #[cold]
    #[inline(never)]
    fn stop(&mut self, cpu: CpuId) {
        if !self.sched.cpu_stopper_thread(cpu) {
            // It spins with interrupts off until the other CPU has stopped as well.
            self.pause(cpu);
            self.cpus[cpu].at += STOPPER_LOOK;
            return;
        }
        self.sched.set_current_state(cpu, sched::sched::TaskState::Interruptible);
        self.switch(cpu, false);
    }

    pub(crate) fn clear_monitor(&mut self, cpu: CpuId) {
        self.cpus[cpu].monitor_at = Ps::NEVER;
    }

    /// Calls the scheduler and goes on with the task that it chose.
    pub(crate) fn switch(&mut self, cpu: CpuId, preempt: bool) {
        let prev = self.sched.current(cpu);
        self.foresee_switch(cpu);
        let next = self.sched.schedule(cpu, preempt);
        if prev != next {
            self.switched(cpu, prev, next);
        } else {
            self.sched.arch_mut().profile_stand(cpu, &[]);
        }
        match next {
            None if unlikely(!self.sched.is_online(cpu)) => self.go_offline(cpu),
            None => self.begin_idle(cpu),
            Some(_) => self.pause(cpu),
        }
    }

    /// Bookkeeping of a switch: caches, profiles, busy time.
    fn switched(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        let now = self.sched.arch().now(cpu);
        let this = &mut self.cpus[cpu];
        match (this.busy_since, next) {
            (None, Some(_)) => this.busy_since = Some(now),
            (Some(since), None) => {
                this.busy += now - since;
                this.busy_since = None;
            }
            _ => {}
        }
        if let Some(task) = prev {
            self.sched.arch_mut().switch_out(cpu, task);
        }
        if unlikely(self.sched.arch().profiling()) {
            let comm = next.map_or(0, |task| self.comm_of(cpu, task));
            self.sched.arch_mut().profile_run(cpu, comm);
        }
        let context = next.and_then(|task| self.tasks.get(task.index()));
        let (set, kind, fetches) = match context {
            Some(Some(context)) => (context.set, context.kind, context.fetches),
            _ => (WorkingSet::default(), WorkKind::Compute, Fetches::default()),
        };
        if unlikely(kind != self.sched.arch().work_kind(cpu)) {
            self.share_core(cpu, now, |hardware| hardware.set_work_kind(cpu, kind));
        }
        if unlikely(fetches.lines > 0 || self.sched.arch().demands(cpu)) {
            let demand = next.filter(|_| fetches.lines > 0).map(|task| self.demand_of(task, fetches));
            self.share_memory(cpu, now, demand);
        }
        if let Some(task) = next {
            self.sched.arch_mut().switch_in(cpu, task, set);
        }
    }

    /// The path of `cpu` ends here: another CPU may be first now.
    pub(crate) fn pause(&mut self, cpu: CpuId) {
        let now = self.sched.arch().now(cpu);
        let this = &mut self.cpus[cpu];
        this.run = Run::Kernel;
        this.at = now;
    }

    /// The outcome with which a program begins.
    pub(crate) fn started(&self, cpu: CpuId) -> Outcome {
        Outcome { value: 0, now: self.sched.arch().now(cpu).ns() }
    }
}
