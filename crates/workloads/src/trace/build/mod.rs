//! From events to scripts: what each task did between its sleeps, what ended the sleeps, and which tasks it woke.
//!
//! The builder tracks which task runs where. Time on a CPU is run time. Time from a waking to the switch that brings
//! the task to a CPU is a wait in a run queue; the scheduler decides about it, so it is no part of the script. Before
//! the waking, the task slept. A preempted task has not slept.

mod finish;

use super::event::{Context, Event, Left, Recorded, UNNAMED, What, Who};
use super::{Begin, MOST_CPUS, MOST_TASKS, Notice, Replay, Step, TraceError};

use std::collections::{BTreeMap, BTreeSet};
use units::Ns;

/// Builds the scripts from the events that were read, which are in the order of time.
pub(super) fn build(recorded: &Recorded) -> Result<Replay, TraceError> {
    let first = recorded.events.first().map_or(Ns::ZERO, |event| event.time);
    let last = recorded.events.last().map_or(Ns::ZERO, |event| event.time);
    let mut builder = Builder::new(recorded, first);
    for event in &recorded.events {
        builder.event(event)?;
    }
    Ok(builder.finish(last))
}

/// What a task is doing at the builder's current moment.
#[derive(Clone, Copy, Debug)]
enum Doing {
    /// Nothing is known of it yet.
    Unseen,
    Running {
        since: Ns,
        cpu: u32,
    },
    Runnable,
    Asleep {
        since: Ns,
        io: bool,
        woken: Option<Wakeup>,
    },
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Wakeup {
    at: Ns,
    by: Waker,
}

#[derive(Clone, Copy, Debug)]
enum Waker {
    /// An index into the builder's wakeups, which name the task.
    Task(usize),
    Interrupt,
}

/// A step of a script before it is known which wakeups found their task asleep.
#[derive(Clone, Copy, Debug)]
enum Draft {
    Done(Step),
    Wake(usize),
}

struct Building {
    pid: u32,
    name: u32,
    prio: Option<i32>,
    first_prio: Option<i32>,
    cpu: u32,
    begin: Option<Begin>,
    doing: Doing,
    /// CPU time since its last step.
    ran: u64,
    /// A waking that came while the task still ran, or before it was seen to leave its CPU.
    early: Option<Wakeup>,
    steps: Vec<Draft>,
    /// The task that created it as a thread of the same process.
    thread_of: Option<usize>,
    /// It was forked and has not run yet.
    just_born: bool,
    /// Its work is the scheduler's own.
    ignored: bool,
}

struct Edge {
    from: usize,
    to: usize,
    used: bool,
}

#[derive(Clone, Copy, Default)]
struct Cpu {
    current: Option<usize>,
    /// Whether a switch was seen, so that `current` is known, even if the CPU is idle.
    known: bool,
    newest: Ns,
}

struct Builder<'a> {
    recorded: &'a Recorded,
    first: Ns,
    tasks: Vec<Building>,
    by_pid: BTreeMap<u32, usize>,
    cpus: Vec<Cpu>,
    edges: Vec<Edge>,
    /// Whether `sched_waking` tells of wakeups; if there is none, `sched_wakeup` does.
    has_waking: bool,
    has_wakeups: bool,
    /// By the task's pid: how often it was woken while a CPU idled, and how often of these by a softirq.
    woken_from_idle: BTreeMap<u32, (u64, u64)>,
    /// How often, by the waker's and wakee's pid; used where the recording does not tell interrupts from tasks.
    woken_by: BTreeMap<(u32, u32), u64>,
    /// Pids of tasks that were seen to start threads.
    leaders: BTreeSet<u32>,
    notice: Notice,
}

impl<'a> Builder<'a> {
    fn new(recorded: &'a Recorded, first: Ns) -> Builder<'a> {
        let has_waking = recorded.events.iter().any(|event| matches!(event.what, What::Waking(_)));
        let has_wakeups = has_waking || recorded.events.iter().any(|event| matches!(event.what, What::Wakeup(_)));
        let mut builder = Builder {
            recorded,
            first,
            tasks: Vec::new(),
            by_pid: BTreeMap::new(),
            cpus: Vec::new(),
            edges: Vec::new(),
            has_waking,
            has_wakeups,
            woken_from_idle: BTreeMap::new(),
            woken_by: BTreeMap::new(),
            leaders: BTreeSet::new(),
            notice: Notice {
                skipped: recorded.skipped.clone(),
                unreadable: recorded.unreadable,
                losses: recorded.lost_first.0,
                lost: recorded.lost_first.1,
                without_wakeups: !has_wakeups,
                without_waking: has_wakeups && !has_waking,
                ..Notice::default()
            },
        };
        builder.count_contexts();
        builder
    }

    /// Counts, over the whole recording, who is woken from which context.
    fn count_contexts(&mut self) {
        let mut current: BTreeMap<u32, u32> = BTreeMap::new();
        for event in &self.recorded.events {
            let running = event.running.or_else(|| current.get(&event.cpu).copied());
            match event.what {
                What::Switch { next, .. } => drop(current.insert(event.cpu, next.pid)),
                What::Waking(who) | What::Wakeup(who) if self.tells_wakeups(&event.what) => match running {
                    Some(0) => {
                        let counts = self.woken_from_idle.entry(who.pid).or_default();
                        counts.0 += 1;
                        counts.1 += u64::from(event.context == Context::Softirq);
                    }
                    Some(waker) => *self.woken_by.entry((waker, who.pid)).or_default() += 1,
                    None => {}
                },
                _ => {}
            }
        }
    }

    fn tells_wakeups(&self, what: &What) -> bool {
        matches!(what, What::Waking(_)) == self.has_waking
    }

    fn event(&mut self, event: &Event) -> Result<(), TraceError> {
        let cpu = event.cpu as usize;
        if cpu >= MOST_CPUS {
            return Err(TraceError::whole(format!("an event of CPU {cpu}"), format!("CPUs up to {}", MOST_CPUS - 1)));
        }
        if cpu >= self.cpus.len() {
            self.cpus.resize(cpu + 1, Cpu { newest: self.first, ..Cpu::default() });
        }
        match event.what {
            What::Switch { prev, left, next } => self.switch(event, prev, left, next)?,
            What::Waking(who) | What::Wakeup(who) if self.tells_wakeups(&event.what) => self.waking(event, who)?,
            What::Waking(_) | What::Wakeup(_) => {}
            What::Fork { child, thread } => self.fork(event, child, thread)?,
            What::WakeupNew(child) => self.wakeup_new(event, child)?,
            // These events only served to find the other events' contexts.
            What::Handler { .. } | What::Raise(_) => {}
            What::Lost(count) => self.lost(event.cpu, count),
        }
        self.cpus[cpu].newest = event.time;
        Ok(())
    }

    /// The task of that number; a new one if the number was not seen before.
    fn task(&mut self, who: Who, cpu: u32) -> Result<usize, TraceError> {
        if let Some(&task) = self.by_pid.get(&who.pid) {
            let known = &mut self.tasks[task];
            if who.name != UNNAMED && who.name != known.name {
                known.name = who.name;
                known.ignored = is_ignored(self.recorded.name_of(who.name));
            }
            return Ok(task);
        }
        if self.tasks.len() >= MOST_TASKS {
            return Err(TraceError::whole(format!("more than {MOST_TASKS} tasks"), "a shorter recording"));
        }
        let name = self.recorded.name_of(who.name);
        self.by_pid.insert(who.pid, self.tasks.len());
        self.tasks.push(Building {
            pid: who.pid,
            name: who.name,
            prio: None,
            first_prio: None,
            cpu,
            begin: None,
            doing: Doing::Unseen,
            ran: 0,
            early: None,
            steps: Vec::new(),
            thread_of: None,
            just_born: false,
            ignored: is_ignored(name),
        });
        Ok(self.tasks.len() - 1)
    }

    /// Records a priority from an event: the first is what the task begins with, and each change is a step.
    fn saw_prio(&mut self, task: usize, prio: Option<i32>) {
        let building = &mut self.tasks[task];
        let Some(prio) = prio.filter(|prio| building.prio != Some(*prio)) else { return };
        if building.prio.replace(prio).is_none() {
            building.first_prio = Some(prio);
        } else {
            building.push(Draft::Done(Step::Prio(prio)));
        }
    }

    fn switch(&mut self, event: &Event, prev: Option<Who>, left: Left, next: Who) -> Result<(), TraceError> {
        let (time, cpu) = (event.time, event.cpu as usize);
        let known = self.cpus[cpu].known;
        let prev = match prev {
            Some(who) if who.pid == 0 => None,
            Some(who) => Some((self.task(who, event.cpu)?, who.prio)),
            None => self.cpus[cpu].current.map(|task| (task, None)),
        };
        let expected = self.cpus[cpu].current;
        if known && expected != prev.map(|prev| prev.0) {
            self.notice.gaps += 1;
            self.left_unseen(expected);
        }
        if let Some((task, prio)) = prev {
            self.is_running(task, event.cpu, if known { time } else { self.first });
            self.now(task, time);
            self.saw_prio(task, prio);
            self.leave(task, time, left);
        }
        self.cpus[cpu].known = true;
        self.cpus[cpu].current = None;
        if next.pid != 0 {
            let task = self.task(next, event.cpu)?;
            self.arrive(task, time, event.cpu);
            self.saw_prio(task, next.prio);
            self.cpus[cpu].current = Some(task);
        }
        Ok(())
    }

    /// This task was thought to run on a CPU where another is now seen: it left at the CPU's last event.
    fn left_unseen(&mut self, task: Option<usize>) {
        if let Some(task) = task
            && let Doing::Running { cpu, .. } = self.tasks[task].doing
        {
            let newest = self.cpus[cpu as usize].newest;
            self.leave(task, newest, Left::Asleep);
        }
    }

    /// A task is seen running on `cpu`. If its arrival was not seen, it has run since `since`.
    fn is_running(&mut self, task: usize, cpu: u32, since: Ns) {
        match self.tasks[task].doing {
            Doing::Running { cpu: known, .. } if known == cpu => {}
            Doing::Running { cpu: other, .. } => {
                self.notice.gaps += 1;
                self.left_unseen(Some(task));
                self.cpus[other as usize].current = None;
                self.arrive(task, since, cpu);
            }
            Doing::Unseen => {
                let building = &mut self.tasks[task];
                building.begin = Some(Begin::At(since - self.first));
                building.cpu = cpu;
                building.doing = Doing::Running { since, cpu };
            }
            Doing::Asleep { woken, .. } if self.tasks[task].begin.is_none() && since == self.first => {
                // It was woken before it went to sleep, and has run there from the start.
                let building = &mut self.tasks[task];
                building.begin = Some(Begin::At(Ns::ZERO));
                building.cpu = cpu;
                building.early = woken;
                building.doing = Doing::Running { since, cpu };
            }
            Doing::Runnable | Doing::Asleep { .. } | Doing::Ended => self.arrive(task, since, cpu),
        }
        self.cpus[cpu as usize].current = Some(task);
    }

    fn leave(&mut self, task: usize, time: Ns, left: Left) {
        let building = &mut self.tasks[task];
        if let Doing::Running { since, .. } = building.doing {
            building.ran = building.ran.saturating_add(time.saturating_sub(since).0);
        }
        building.doing = match left {
            Left::Runnable => Doing::Runnable,
            Left::Asleep | Left::Uninterruptible => {
                building.flush();
                Doing::Asleep { since: time, io: left == Left::Uninterruptible, woken: None }
            }
            Left::Dead => {
                building.flush();
                self.by_pid.remove(&building.pid);
                Doing::Ended
            }
        };
        if left == Left::Runnable {
            building.early = None;
        }
    }

    /// A task gets a CPU: any sleep of it has ended.
    fn arrive(&mut self, task: usize, time: Ns, cpu: u32) {
        // In a recording without wakeups, a task that first appears now has slept until now.
        let unseen = if self.has_wakeups { Ns::ZERO } else { time - self.first };
        if let Doing::Running { cpu: other, .. } = self.tasks[task].doing
            && other != cpu
        {
            self.notice.gaps += 1;
            self.left_unseen(Some(task));
            self.cpus[other as usize].current = None;
        }
        let building = &mut self.tasks[task];
        match building.doing {
            Doing::Unseen => {
                building.begin = Some(Begin::At(unseen));
                building.cpu = cpu;
            }
            Doing::Asleep { since, io, woken } => {
                let woken = woken.or(building.early);
                if woken.is_none() && self.has_wakeups {
                    self.notice.unexplained += 1;
                }
                let woken = woken.unwrap_or(Wakeup { at: time, by: Waker::Interrupt });
                self.wakes(task, since, io, woken);
            }
            Doing::Running { since, .. } => building.ran = building.ran.saturating_add(time.saturating_sub(since).0),
            Doing::Runnable | Doing::Ended => {}
        }
        let building = &mut self.tasks[task];
        building.early = None;
        building.just_born = false;
        building.doing = Doing::Running { since: time, cpu };
    }

    /// The end of a sleep becomes a step.
    fn wakes(&mut self, task: usize, since: Ns, io: bool, woken: Wakeup) {
        let building = &mut self.tasks[task];
        let slept = woken.at.saturating_sub(since);
        let step = match woken.by {
            Waker::Task(edge) => {
                self.edges[edge].used = true;
                Step::Wait(self.edges[edge].from as u32)
            }
            Waker::Interrupt if building.begin.is_none() => {
                building.begin = Some(Begin::At(slept));
                return;
            }
            Waker::Interrupt if io => Step::Io(slept),
            Waker::Interrupt => Step::Sleep(slept),
        };
        building.begin.get_or_insert(Begin::Waiting);
        building.push(Draft::Done(step));
    }

    /// The task on whose behalf the event happened; `None` for an interrupt.
    fn waker(&mut self, event: &Event, wakee: Who) -> Result<Option<usize>, TraceError> {
        let cpu = self.cpus[event.cpu as usize];
        let running = match event.running {
            Some(0) => return Ok(None),
            Some(pid) => pid,
            None => match cpu.current {
                Some(task) => self.tasks[task].pid,
                None => return Ok(None),
            },
        };
        let from_idle = self.woken_from_idle.get(&wakee.pid).copied().unwrap_or_default();
        let interrupt = match event.context {
            Context::Interrupt => true,
            // A softirq that also wakes this task while the CPU idles works for a device. The loopback device's
            // softirqs run only in the sender's context.
            Context::Softirq => from_idle.1 > 0,
            Context::Task if self.recorded.flags || (self.recorded.timers && self.recorded.devices) => false,
            // Nothing tells timers from tasks: guess a timer if the task is woken out of idle more often than by the
            // running task.
            Context::Task => from_idle.0 > self.woken_by.get(&(running, wakee.pid)).copied().unwrap_or(0),
        };
        if interrupt || running == wakee.pid {
            return Ok(None);
        }
        let task = match cpu.current.filter(|&task| self.tasks[task].pid == running) {
            Some(task) => task,
            None => self.found_running(event, running)?,
        };
        Ok((!self.tasks[task].ignored).then_some(task))
    }

    /// An event names a running task whose arrival on its CPU was not seen.
    fn found_running(&mut self, event: &Event, pid: u32) -> Result<usize, TraceError> {
        let cpu = self.cpus[event.cpu as usize];
        if cpu.known {
            self.notice.gaps += 1;
            self.left_unseen(cpu.current);
        }
        let who = Who { pid, name: event.running_name, prio: None, cpu: None };
        let task = match self.by_pid.get(&pid) {
            Some(&task) => task,
            None => self.task(who, event.cpu)?,
        };
        self.is_running(task, event.cpu, if cpu.known { event.time } else { self.first });
        self.cpus[event.cpu as usize].known = true;
        Ok(task)
    }

    fn waking(&mut self, event: &Event, wakee: Who) -> Result<(), TraceError> {
        if wakee.pid == 0 {
            return Ok(());
        }
        let waker = self.waker(event, wakee)?;
        let task = self.task(wakee, event.cpu)?;
        self.saw_first_prio(task, wakee.prio);
        let asleep = |since| Doing::Asleep { since, io: false, woken: None };
        if matches!(self.tasks[task].doing, Doing::Unseen) {
            // It has slept since before the recording, or runs on a CPU where nothing has been seen yet.
            self.tasks[task].doing = asleep(self.first);
            if let Some(cpu) = wakee.cpu.filter(|cpu| (*cpu as usize) < MOST_CPUS) {
                self.tasks[task].cpu = cpu;
            }
        }
        let (Doing::Asleep { woken: None, .. } | Doing::Running { .. }) = self.tasks[task].doing else { return Ok(()) };
        let by = match waker {
            Some(from) => self.edge(event, from, task),
            None => Waker::Interrupt,
        };
        let wakeup = Wakeup { at: event.time, by };
        let building = &mut self.tasks[task];
        match &mut building.doing {
            Doing::Asleep { woken, .. } => *woken = Some(wakeup),
            _ => building.early = Some(wakeup),
        }
        Ok(())
    }

    /// Before its first switch only wakeups tell a task's priority.
    fn saw_first_prio(&mut self, task: usize, prio: Option<i32>) {
        let building = &mut self.tasks[task];
        if building.prio.is_none() && prio.is_some() {
            building.prio = prio;
            building.first_prio = prio;
        }
    }

    /// Adds a step to the waker's script. It is kept only if its task turns out to have slept.
    fn edge(&mut self, event: &Event, from: usize, to: usize) -> Waker {
        let edge = self.edges.len();
        self.edges.push(Edge { from, to, used: false });
        self.now(from, event.time).push(Draft::Wake(edge));
        Waker::Task(edge)
    }

    /// The running task, with its run time counted up to `time`.
    fn now(&mut self, task: usize, time: Ns) -> &mut Building {
        let building = &mut self.tasks[task];
        if let Doing::Running { since, .. } = &mut building.doing {
            building.ran = building.ran.saturating_add(time.saturating_sub(*since).0);
            *since = time;
        }
        building
    }

    fn fork(&mut self, event: &Event, child: Who, thread: bool) -> Result<(), TraceError> {
        let old = self.by_pid.get(&child.pid).copied();
        if child.pid == 0 {
            return Ok(());
        }
        if let Some(old) = old {
            if self.tasks[old].just_born {
                // Two events report the same fork.
                return Ok(());
            }
            // The number is used again: the exit of its last owner was not seen.
            self.left_unseen(Some(old));
            self.tasks[old].doing = Doing::Ended;
            self.by_pid.remove(&child.pid);
        }
        let parent = match event.running {
            Some(0) => None,
            None => self.cpus[event.cpu as usize].current,
            Some(pid) => match self.cpus[event.cpu as usize].current.filter(|&task| self.tasks[task].pid == pid) {
                Some(task) => Some(task),
                None => Some(self.found_running(event, pid)?),
            },
        };
        let task = self.task(child, event.cpu)?;
        self.tasks[task].doing = Doing::Runnable;
        self.tasks[task].just_born = true;
        let parent = parent.filter(|&parent| !self.tasks[parent].ignored && parent < task);
        let Some(parent) = parent else {
            self.tasks[task].begin = Some(Begin::At(event.time - self.first));
            return Ok(());
        };
        self.tasks[task].begin = Some(Begin::Forked);
        self.tasks[task].thread_of = thread.then_some(parent);
        if thread {
            let mut leader = parent;
            while let Some(of) = self.tasks[leader].thread_of {
                leader = of;
            }
            self.leaders.insert(self.tasks[leader].pid);
        }
        self.now(parent, event.time).push(Draft::Done(Step::Fork(task as u32)));
        Ok(())
    }

    fn wakeup_new(&mut self, event: &Event, child: Who) -> Result<(), TraceError> {
        let forked = self.by_pid.get(&child.pid).is_some_and(|&task| self.tasks[task].begin.is_some());
        if !forked {
            self.fork(event, child, false)?;
        }
        if let Some(&task) = self.by_pid.get(&child.pid) {
            self.saw_first_prio(task, child.prio);
        }
        Ok(())
    }

    fn lost(&mut self, cpu: u32, count: u64) {
        self.notice.losses += 1;
        self.notice.lost = self.notice.lost.saturating_add(count);
        let current = self.cpus[cpu as usize].current.take();
        self.left_unseen(current);
        // After a loss the next task on this CPU is found running; that is not a gap.
        let newest = self.cpus[cpu as usize].newest;
        self.cpus[cpu as usize] = Cpu { known: true, newest, ..Cpu::default() };
    }
}

impl Building {
    fn flush(&mut self) {
        if self.ran > 0 {
            self.steps.push(Draft::Done(Step::Run(Ns(self.ran))));
            self.ran = 0;
        }
    }

    fn push(&mut self, draft: Draft) {
        self.flush();
        self.steps.push(draft);
    }
}

/// The stoppers' work is the scheduler's own; the idle tasks are no tasks to replay.
fn is_ignored(name: &str) -> bool {
    name.starts_with("migration/") || name.starts_with("swapper/")
}
