//! A task's next step: turns its program's operations into time and system calls.

use crate::engine::{RefusedRequest, Sample, Sim};
use crate::program::{AddressSpace, KernelLoop, Op, Outcome, Program, TaskSpec};
use crate::user::Work;
use machine::hardware::Hardware;
use machine::memory::{Fetches, Order};
use machine::smt::WorkKind;
use machine::warmth::WorkingSet;
use os::fs::{FsCall, Jbd2, Xfsaild};
use os::kthread::Sugov;
use os::net::NetCall;
use os::net::poll::EpollCall;
use os::pipe::PipeCall;
use os::preempt::Preempt;
use os::process::Relation;
use os::sync::SyncCall;
use os::timer_wheel::TimerSlack;
use os::workqueue::Worker;
use os::{Step, Syscall, paths};
use sched::access::Path;
use sched::autogroup::Session;
use sched::core::TaskInit;
use sched::errno::{Answer, Refusal};
use sched::sched::{ROOT_TASK_GROUP, TaskId, WakeFlags};
use sched::scheduler::Scheduler;
use units::{CpuId, CpuMask, Cycles, Ps, unlikely};

/// What a task is in the middle of.
#[derive(Clone, Copy)]
pub(crate) enum Pending {
    /// Its program is to be asked for the next operation.
    Nothing,
    Work(Work),
    RunFor(Ps),
    SpinUntil(Ps),
    Syscall(Syscall),
    /// In a long kernel function of which `left` pieces remain. The operation to which it belongs follows
    /// ([`TaskContext::after_long`]).
    Long {
        path: Path,
        pieces: u32,
        left: u32,
    },
    /// execve() has found it a CPU, and it goes on there with the new program.
    Executed,
    /// It has notified its parent that it exits, and was preempted before it did.
    Dying,
}

/// A task outside the scheduler: its program and its progress.
///
/// The order of the fields matters: what each step and each switch needs is in the first two of the host's cache lines.
#[repr(C, align(64))]
pub(crate) struct TaskContext {
    pub program: Box<dyn Program>,
    pub pending: Pending,
    pub last: Outcome,
    pub set: WorkingSet,
    pub fetches: Fetches,
    pub kind: WorkKind,
    /// sched.h: default_timer_slack_ns is 0, which children inherit: the task's timers have no slack, whatever its
    /// policy.
    pub no_slack: bool,
    /// A kernel thread that outlives every program.
    pub daemon: bool,
    pub passes: u32,
    /// The number of its present sleep. Timers carry it, to recognise whether that sleep still lasts.
    pub sleep: u64,
    pub after_long: Option<Box<Op>>,
    /// The first task of its process, which waits for the process's threads.
    pub leader: TaskId,
    pub mm: u32,
    /// The number of its name in profiles.
    pub comm: u32,
}

/// How many operations that take no simulated time are done in one step before the task pauses. Without this limit a
/// program that never takes time would stop the clock for good.
const MOST_INSTANT_OPS: u32 = 10_000;

/// What became of what a task was in the middle of.
enum Pended {
    /// It is over, and the task goes on.
    Done,
    /// It is a system call.
    InCall,
    /// The task's step is over.
    Left,
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Creates a task on behalf of the task that runs on `cpu`. It is not runnable yet. `paid`: the time for this has
    /// already passed.
    pub(crate) fn fork_task(
        &mut self,
        cpu: CpuId,
        parent: Option<TaskId>,
        spec: TaskSpec,
        paid: bool,
    ) -> Answer<TaskId> {
        let mm = match (spec.memory, parent) {
            (AddressSpace::Parent, Some(parent)) => self.context(parent).mm,
            (AddressSpace::Kernel, _) => 0,
            (AddressSpace::Joined(number), _) => {
                let known = self.joined.iter().find(|joined| joined.0 == number).map(|joined| joined.1);
                known.unwrap_or_else(|| {
                    let mm = self.new_mm();
                    self.joined.push((number, mm));
                    mm
                })
            }
            _ => self.new_mm(),
        };
        let comm = self.comm_number(&spec.comm);
        // Threads belong to their leader, whichever thread starts them: the starter may end before them.
        let leader = match (spec.memory, parent) {
            (AddressSpace::Parent, Some(parent)) => Some(self.leader_of(parent)),
            _ => None,
        };
        // fork.c: copy_process(): the child's default slack is the present slack of the parent.
        let no_slack = self.os.irq.rules.slack == TimerSlack::Kept
            && parent.is_some_and(|parent| self.context(parent).no_slack || self.sched.rt_or_dl_task_policy(parent));
        let init = TaskInit {
            comm: spec.comm,
            attr: spec.attr,
            cpus_allowed: match (spec.memory, parent) {
                (AddressSpace::Kernel, _) => spec.cpus.or_else(|| self.sched.kthread_cpus()),
                (_, Some(parent)) => spec.cpus.or_else(|| Some(self.sched.cpus_allowed(parent).clone())),
                (_, None) => spec.cpus,
            },
            mm,
            group: spec.group.or_else(|| parent.map(|parent| self.sched.task_css(parent))).unwrap_or(ROOT_TASK_GROUP),
        };
        let task = self.sched.fork(cpu, init)?;
        if let Some(session) = spec.session {
            self.sched.set_session(cpu, task, session);
        }
        let borrows = spec.memory == AddressSpace::Borrowed;
        let relation = if borrows { Relation::Vfork } else { Relation::Child };
        let work = if borrows || leader.is_some() { paths::DO_CLONE_THREAD } else { paths::DO_FORK };
        self.os.fork(&mut self.sched, cpu, leader.or(parent), (task, relation), (!paid).then_some(work));
        self.os.memory.mpol_dup(parent, task);
        self.tasks.grow_with(task.index() + 1, || None);
        let last = self.started(cpu);
        self.tasks[task.index()] = Some(TaskContext {
            program: spec.program,
            pending: Pending::Nothing,
            after_long: None,
            last,
            set: WorkingSet { bytes: spec.working_set, data: spec.data },
            kind: spec.kind,
            fetches: Fetches { lines: spec.lines, working_set: spec.working_set, order: Order::Mixed },
            passes: spec.passes,
            mm,
            leader: leader.unwrap_or(task),
            comm,
            sleep: 0,
            no_slack,
            daemon: false,
        });
        self.live_tasks += 1;
        Ok(task)
    }

    /// The first task of a thread's process. If that one has ended, the thread itself, because the number may be in use
    /// by another task.
    fn leader_of(&mut self, thread: TaskId) -> TaskId {
        let (leader, mm) = (self.context(thread).leader, self.context(thread).mm);
        let lives = self.tasks[leader.index()]
            .as_ref()
            .is_some_and(|context| context.mm == mm && !matches!(context.pending, Pending::Dying));
        if lives { leader } else { thread }
    }

    /// The run ends without waiting for this task.
    pub(crate) fn outlives_programs(&mut self, task: TaskId) {
        self.context(task).daemon = true;
        self.live_tasks -= 1;
    }

    fn new_mm(&mut self) -> u32 {
        self.next_mm += 1;
        self.next_mm - 1
    }

    /// The number of the name of the task that runs next on `cpu`. A task without a program is the CPU's stopper.
    pub(crate) fn comm_of(&mut self, cpu: CpuId, task: TaskId) -> u32 {
        match self.tasks.get(task.index()).and_then(Option::as_ref) {
            Some(context) => context.comm,
            None => self.comm_number(&format!("migration/{cpu}")),
        }
    }

    fn comm_number(&mut self, comm: &str) -> u32 {
        if let Some(&number) = self.comm_numbers.get(comm) {
            return number;
        }
        let number = self.comms.len() as u32;
        self.comms.push(comm.to_string());
        self.comm_numbers.insert(comm.to_string(), number);
        number
    }

    #[inline]
    pub(crate) fn is_in_call(&mut self, task: TaskId) -> bool {
        matches!(self.context(task).pending, Pending::Syscall(_))
    }

    /// Lets `task`, which is current on `cpu` and in no system call, take one step. Returns whether it is in a system
    /// call now and goes on in it at once.
    #[inline(never)]
    pub(crate) fn step_task(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let mut instant = 0;
        loop {
            if unlikely(self.sched.throttles_tasks()) && self.throttled_on_exit(cpu, task) {
                return false;
            }
            let now = self.sched.arch().now(cpu);
            let context = self.context(task);
            if !matches!(context.pending, Pending::Nothing) {
                match self.step_pending(cpu, task) {
                    Pended::Done => continue,
                    Pended::InCall => return true,
                    Pended::Left => return false,
                }
            }
            context.last.now = now.ns();
            let op = context.program.next(context.last);
            let stays = self.stays_in_user_mode(cpu, &op);
            if !self.begin(cpu, task, op) {
                return false;
            }
            instant += 1;
            let ends = self.sched.arch().now(cpu);
            let too_many = unlikely(instant > MOST_INSTANT_OPS);
            if too_many {
                // Who counts events, to look at something else now and then, shall not wait for millions of these.
                self.events += u64::from(instant);
            }
            let must_pause = too_many || self.must_look_on_exit(cpu, now, stays);
            // Entering the call and the call itself are one path, unless an interrupt has come on the way.
            if !must_pause && self.is_in_call(task) && !self.cpus[cpu].is_interrupted(ends) {
                return true;
            }
            if must_pause || ends > now {
                self.pause(cpu);
                return false;
            }
        }
    }

    /// The same for a task that is in the middle of something.
    #[inline(always)]
    fn step_pending(&mut self, cpu: CpuId, task: TaskId) -> Pended {
        match self.context(task).pending {
            Pending::Syscall(_) => return Pended::InCall,
            Pending::Work(_) | Pending::RunFor(_) | Pending::SpinUntil(_) => {
                let has_work = self.os.memory.is_used() || self.sched.has_cache_work();
                if unlikely(has_work) && self.os.exit_to_user_mode(&mut self.sched, cpu, task) {
                    if self.os.memory.has_moved() {
                        self.refresh_demands(cpu);
                    }
                    if !self.sleeps_for_stopper(cpu) {
                        self.pause(cpu);
                    }
                } else {
                    // Work on the way back to user mode took time.
                    let now = self.sched.arch().now(cpu);
                    self.resume_user(cpu, now);
                }
            }
            Pending::Long { .. } => self.step_long(cpu, task),
            Pending::Dying => self.finish_exit(cpu, task),
            Pending::Executed => {
                self.context(task).pending = Pending::Nothing;
                self.os.mm_release(&mut self.sched, cpu, task);
                self.sched.executed(cpu);
                return Pended::Done;
            }
            Pending::Nothing => unreachable!("nothing is pending"),
        }
        Pended::Left
    }

    /// Begins an operation. Returns false when the task does not go on in this step (it switched away or ended).
    fn begin(&mut self, cpu: CpuId, task: TaskId, op: Op) -> bool {
        match op {
            Op::Work(cycles) => self.set_pending(task, Pending::Work(Work::new(cycles)), op),
            Op::WorkFor(time) => {
                let cycles = Cycles(Ps::from(time).0 / self.sched.arch().prices.ps_per_cycle);
                self.set_pending(task, Pending::Work(Work::new(cycles)), op)
            }
            Op::RunFor(time) => self.set_pending(task, Pending::RunFor(time.into()), op),
            Op::SpinUntil(end) => self.set_pending(task, Pending::SpinUntil(end.into()), op),
            // Locks between threads stay in user space until a thread must wait.
            Op::Sync(sync) => self.set_pending(task, Pending::Syscall(Syscall::Sync(SyncCall::new(sync))), op),
            Op::Kernel(turns) => {
                let call = match turns {
                    KernelLoop::Worker(pool) => Syscall::Worker(Worker::new(pool)),
                    KernelLoop::Kjournald2 => Syscall::Kjournald2(Jbd2::BEGIN),
                    KernelLoop::Xfsaild => Syscall::Xfsaild(Xfsaild::BEGIN),
                    KernelLoop::Sugov(policy) => Syscall::Sugov(Sugov::new(policy)),
                };
                self.set_pending(task, Pending::Syscall(call), op)
            }
            Op::Read { pipe, bytes } => self.enter_call(cpu, task, Syscall::Read(PipeCall::new(pipe, bytes)), op),
            Op::Write { pipe, bytes } => self.enter_call(cpu, task, Syscall::Write(PipeCall::new(pipe, bytes)), op),
            Op::Send { socket, bytes } => self.enter_call(cpu, task, Syscall::Net(NetCall::send(socket, bytes)), op),
            Op::Receive { socket, bytes, how } => {
                self.enter_call(cpu, task, Syscall::Net(NetCall::receive(socket, bytes, how)), op)
            }
            Op::Shutdown { socket } => self.enter_call(cpu, task, Syscall::Net(NetCall::shutdown(socket)), op),
            Op::Poll { pipe } => self.enter_call(cpu, task, Syscall::Poll { pipe, registered: false }, op),
            Op::PollSocket { socket } => {
                self.enter_call(cpu, task, Syscall::PollSocket { socket, registered: false }, op)
            }
            Op::EpollWait { epoll } => self.enter_call(cpu, task, Syscall::EpollWait(EpollCall::new(epoll)), op),
            Op::SleepFor(time) => {
                let until = self.sched.arch().now(cpu).ns() + time;
                self.enter_call(cpu, task, Syscall::Sleep { until, armed: false }, op)
            }
            Op::SleepUntil(until) => self.enter_call(cpu, task, Syscall::Sleep { until, armed: false }, op),
            Op::Fs(fs) => self.enter_call(cpu, task, Syscall::Fs(FsCall::new(fs)), op),
            Op::BlockIo(time) => self.enter_call(cpu, task, Syscall::BlockIo { time, until: None }, op),
            Op::Wait => self.enter_call(cpu, task, Syscall::Wait { queued: false }, op),
            other => self.begin_rarer(cpu, task, other),
        }
    }

    /// Begins a system call. It is inlined so that each kind of call is constructed in its final place, without a copy.
    #[inline(always)]
    fn enter_call(&mut self, cpu: CpuId, task: TaskId, call: Syscall, op: Op) -> bool {
        self.enter_kernel(cpu);
        self.set_pending(task, Pending::Syscall(call), op)
    }

    #[inline(never)]
    fn begin_rarer(&mut self, cpu: CpuId, task: TaskId, op: Op) -> bool {
        match op {
            Op::Report { series, value } => {
                let at = self.sched.arch().now(cpu).ns();
                self.samples.push(Sample { at, series, value });
                true
            }
            Op::GetCpu => {
                self.context(task).last.value = cpu.index() as u64;
                true
            }
            Op::RunUntil(time) => {
                let ran = self.sched.task_sched_runtime(cpu);
                let context = self.context(task);
                context.last.value = ran.0;
                if time > ran {
                    context.pending = Pending::RunFor((time - ran).into());
                }
                true
            }
            Op::CondResched | Op::MightSleep => self.preemption_point(cpu, &op),
            Op::RunKsoftirqd => self.run_ksoftirqd(cpu),
            Op::Execute(path) => {
                self.within(cpu, path, |_| ());
                true
            }
            Op::ScheduleTimeout(jiffies) => {
                self.context(task).pending = Pending::Syscall(Syscall::Timeout { jiffies, armed: false });
                true
            }
            other => match self.long_part(cpu, task, other) {
                Ok(()) => true,
                Err(op) => self.act(cpu, task, op),
            },
        }
    }

    /// The operation goes on as `pending`. It owns nothing, so it is forgotten: that spares a look at its kind in order
    /// to drop it.
    #[inline(always)]
    fn set_pending(&mut self, task: TaskId, pending: Pending, op: Op) -> bool {
        self.context(task).pending = pending;
        std::mem::forget(op);
        true
    }

    /// The operations that act on the task itself.
    fn act(&mut self, cpu: CpuId, task: TaskId, op: Op) -> bool {
        self.enter_kernel(cpu);
        self.act_in_kernel(cpu, task, op, false)
    }

    /// The same, already inside of the system call. `paid`: its time has passed, piece by piece.
    pub(crate) fn act_in_kernel(&mut self, cpu: CpuId, task: TaskId, op: Op, paid: bool) -> bool {
        let frames: &[Path] = match op {
            Op::Fork(_) => &[paths::ENTRY_SYSCALL, paths::DO_FORK],
            Op::Exit => &[paths::ENTRY_SYSCALL, paths::DO_EXIT],
            Op::Yield => &[paths::ENTRY_SYSCALL, Path::sched_yield],
            _ => &[paths::ENTRY_SYSCALL],
        };
        self.sched.arch_mut().profile_stand(cpu, frames);
        let goes_on = self.acted(cpu, task, op, paid);
        if goes_on {
            self.sched.arch_mut().profile_stand(cpu, &[]);
        }
        goes_on
    }

    /// A forked task begins where it is put, by touching its memory for the first time.
    pub(crate) fn begin_child(&mut self, cpu: CpuId, child: TaskId) {
        self.sched.wake_up_new_task(cpu, child);
        self.os.memory_counted(self.sched.task_cpu(child));
    }

    /// A task starts another, and waits for it if that one has borrowed its memory.
    fn forked(&mut self, cpu: CpuId, task: TaskId, spec: TaskSpec, paid: bool) {
        let borrows = spec.memory == AddressSpace::Borrowed;
        let forked = self.fork_task(cpu, Some(task), spec, paid);
        let forked = forked.inspect(|&child| self.begin_child(cpu, child));
        self.note_refusal(cpu, task, forked.as_ref().err(), || "another task".to_string());
        let value = forked.as_ref().map_or_else(|refusal| refusal.value() as u64, |child| child.0.into());
        self.context(task).last.value = value;
        if let Some(child) = forked.ok().filter(|_| borrows) {
            self.context(task).pending = Pending::Syscall(Syscall::Vfork { child });
        }
    }

    fn acted(&mut self, cpu: CpuId, task: TaskId, op: Op, paid: bool) -> bool {
        match op {
            Op::Fork(spec) => {
                self.forked(cpu, task, *spec, paid);
                true
            }
            Op::Yield => {
                self.sched.sched_yield(cpu);
                self.switch(cpu, false);
                false
            }
            Op::Exec => {
                self.sched.sched_exec(cpu);
                self.context(task).pending = Pending::Executed;
                !self.sleeps_for_stopper(cpu)
            }
            Op::SetAffinity(mask) => self.set_affinity(cpu, task, mask),
            Op::SetNice(nice) => {
                self.sched.set_user_nice(cpu, task, nice);
                true
            }
            Op::SetPolicy { policy, priority } => {
                let answer = self.sched.sched_setscheduler(cpu, task, policy, priority);
                self.answered(cpu, task, answer, || "another policy".to_string())
            }
            Op::SetAttr(attr) => {
                let answer = self.sched.sched_setattr(cpu, task, &attr);
                self.answered(cpu, task, answer, || "another policy".to_string())
            }
            Op::Interrupt(sleeper) => {
                self.interrupt(cpu, sleeper);
                true
            }
            Op::WriteGroup(write) => {
                let answer = self.sched.cgroup_write(cpu, write.group, write.file, &write.text);
                self.context(task).last.value = u64::from(answer.is_err());
                true
            }
            Op::Setsid => {
                self.sched.set_session(cpu, task, Session::New);
                true
            }
            Op::SetAutogroupNice(nice) => {
                // A program learns of a refusal by the error; none of ours looks.
                let _ = self.sched.set_autogroup_nice(cpu, task, nice);
                true
            }
            Op::MoveToGroup(group) => {
                self.sched.move_to_group(cpu, task, group);
                true
            }
            Op::Touch { .. } | Op::Populate(_) | Op::SetMembind(_) | Op::Fetch { .. } => self.use_memory(cpu, task, op),
            Op::Exit => {
                if self.os.exit_notify(&mut self.sched, cpu, task, (!paid).then_some(paths::DO_EXIT)) {
                    self.context(task).pending = Pending::Dying;
                    self.switch(cpu, true);
                } else {
                    self.finish_exit(cpu, task);
                }
                false
            }
            _ => unreachable!("begun elsewhere"),
        }
    }

    fn use_memory(&mut self, cpu: CpuId, task: TaskId, op: Op) -> bool {
        let mm = self.context(task).mm;
        match op {
            Op::Touch { region, bytes_per_second } => {
                self.os.touch_memory(&mut self.sched, (task, mm), region, bytes_per_second);
                self.refresh_demands(cpu);
            }
            Op::Populate(region) => {
                self.os.populate_memory(&mut self.sched, (task, mm), region);
            }
            Op::SetMembind(nodes) => self.os.memory.set_membind(task, nodes),
            Op::Fetch { kind, fetches } => self.set_fetches(cpu, task, kind, fetches),
            _ => unreachable!("no use of memory"),
        }
        true
    }

    fn set_affinity(&mut self, cpu: CpuId, task: TaskId, mask: CpuMask) -> bool {
        let answer = self.sched.set_cpus_allowed(cpu, task, mask.clone());
        self.answered(cpu, task, answer, || format!("CPUs {}", mask.list())) && !self.sleeps_for_stopper(cpu)
    }

    /// Ends a system call that the kernel may refuse. Its result is the program's outcome.
    fn answered(&mut self, cpu: CpuId, task: TaskId, answer: Answer, request: impl FnOnce() -> String) -> bool {
        self.note_refusal(cpu, task, answer.as_ref().err(), request);
        self.context(task).last.value = answer.map_or_else(|refusal| refusal.value() as u64, |()| 0);
        true
    }

    /// Records what the kernel refused, for whoever reads the run: the program may not look at the answer.
    fn note_refusal(&mut self, cpu: CpuId, task: TaskId, refused: Option<&Refusal>, request: impl FnOnce() -> String) {
        let Some(&refusal) = refused else { return };
        let request = request();
        let same = |it: &&mut RefusedRequest| it.refusal == refusal && it.request == request;
        if let Some(told) = self.refused_requests.iter_mut().find(same) {
            told.times += 1;
            return;
        }
        let number = self.context(task).comm;
        let comm = self.comms[number as usize].clone();
        let at = self.sched.arch().now(cpu).ns();
        self.refused_requests.push(RefusedRequest { at, comm, request, refusal, times: 1 });
    }

    /// A signal (kernel/signal.c: signal_wake_up()): a task in nanosleep() wakes early.
    fn interrupt(&mut self, cpu: CpuId, sleeper: TaskId) {
        let context = self.context(sleeper);
        if matches!(context.pending, Pending::Syscall(Syscall::Sleep { .. })) {
            // The sleep's timer stays armed, and finds no sleep when it fires.
            context.pending = Pending::Nothing;
            self.sched.wake(cpu, sleeper, WakeFlags::NONE);
        }
    }

    #[inline(always)]
    pub(crate) fn step_syscall(&mut self, cpu: CpuId, task: TaskId) {
        let Self { sched, os, tasks, .. } = self;
        let context = tasks[task.index()].as_mut().expect("the current task has a program");
        let Pending::Syscall(call) = &mut context.pending else { unreachable!("a system call is pending") };
        if unlikely(sched.arch().profiling()) {
            sched.arch_mut().profile_stand(cpu, os.frames(call, false));
        }
        match os.step(sched, cpu, task, call) {
            Step::Done(value) => {
                let lazy = unlikely(os.rules.preempt == Preempt::Lazy) && sched.need_resched_lazy(cpu);
                let stayed = lazy && call.stayed_in_user_mode();
                context.last.value = value;
                context.pending = Pending::Nothing;
                sched.arch_mut().profile_stand(cpu, &[]);
                if unlikely(stayed) {
                    let now = self.sched.arch().now(cpu);
                    return self.resume_user(cpu, now);
                }
                self.pause(cpu);
            }
            step @ (Step::Sleep | Step::SleepUntil(_)) => {
                if unlikely(sched.arch().profiling()) {
                    sched.arch_mut().profile_stand(cpu, os.frames(call, true));
                }
                if unlikely(sched.keeps_wait_channels()) {
                    sched.set_wait_channel(task, os.frames(call, true));
                }
                match step {
                    Step::SleepUntil(until) => self.arm(cpu, task, until),
                    // If the timer of an earlier sleep has not fired, it must not match any sleep now.
                    _ => self.context(task).sleep = 0,
                }
                self.switch(cpu, false);
            }
            Step::Timeout(jiffies) => {
                self.arm_timeout(cpu, task, jiffies);
                self.switch(cpu, false);
            }
            Step::Delay(work) => {
                self.queue_delayed_work(cpu, work);
                self.pause(cpu);
            }
            Step::Preempted => self.switch(cpu, true),
            Step::Continues => self.pause(cpu),
        }
    }
}
