//! rt-app files for the real kernel: converts the file that was parsed for the simulation to the form that the host
//! runs.

use crate::failure::Failure;
use host::bench::rt_app as real;
use lab::experiment::rt_app_file;
use lab::listing::runs;
use lab::mistake::{Location, Mistake};
use lab::setup::FileSetup;
use std::time::Duration;
use workloads::rt_app::{Application, Event, Loops, Phase, Policy, Position, Task, TimerMode, TimerRef};

/// An application, and its tasks that are rows of the table.
pub struct RtApp {
    app: real::Application,
    rows: Vec<usize>,
}

impl RtApp {
    /// # Errors
    /// Events that only the simulation has, and CPUs that are not `allowed`, with their places.
    pub fn of(file: &FileSetup, allowed: &[usize]) -> Result<RtApp, Failure> {
        let parsed = rt_app_file(file)?;
        let pinned = parsed.tasks.iter().flat_map(|task| &task.phases).filter_map(|phase| phase.cpus.as_ref());
        for cpus in pinned {
            if let Some(cpu) = cpus.value.iter().find(|cpu| !allowed.contains(&cpu.index())) {
                let (line, column) = (Some(cpus.position.line), Some(cpus.position.column));
                let at = Location { input: file.path.clone(), line, column };
                let found = format!("CPU {cpu}, which this process may not use");
                return Err(Mistake::new(&at, found, format!("CPUs among {}", runs(allowed))).into());
            }
        }
        let refuse = |(what, position): (String, Position)| {
            let at = Location { input: file.path.clone(), line: Some(position.line), column: Some(position.column) };
            let expected =
                "a file with SCHED_OTHER tasks (nice levels, CPUs) and without forks, clamps and task groups";
            Failure::from(Mistake::new(&at, format!("{what}, which is simulated but not measured"), expected))
        };
        let tasks = parsed.tasks.iter().map(|task| of_task(&parsed, task)).collect::<Result<Vec<_>, _>>();
        let app = real::Application {
            duration: parsed.global.duration_s.as_ref().map(|it| Duration::from_secs(u64::from(it.value))),
            tasks: tasks.map_err(refuse)?,
            mutexes: parsed.resources.mutexes.len(),
            conditions: parsed.resources.conditions.len(),
            barriers: parsed.resources.barriers.iter().map(|barrier| barrier.users as usize).collect(),
            semaphores: parsed.resources.semaphores.len(),
            timers: parsed.resources.timers.len(),
        };
        let rows = parsed.tasks.iter().enumerate().filter(|(_, task)| task.instances > 0);
        Ok(RtApp { rows: rows.map(|(index, _)| index).collect(), app })
    }

    /// The samples of each row, in nanoseconds.
    pub fn run(&self) -> Result<Vec<Vec<u64>>, Failure> {
        let mut times = real::run(&self.app)?;
        Ok(self.rows.iter().map(|&row| std::mem::take(&mut times[row])).collect())
    }
}

type Refused = (String, Position);

fn of_task(app: &Application, task: &Task) -> Result<real::Task, Refused> {
    let Policy::Other { nice, slice_us: None } = task.policy.value else {
        return Err((task.policy.value.name().as_str().to_string(), task.policy.position));
    };
    if let Some(clamp) = task.util_min.as_ref().or(task.util_max.as_ref()) {
        return Err(("a clamp".to_string(), clamp.position));
    }
    if let Some(group) = &task.taskgroup {
        return Err(("a task group".to_string(), group.position));
    }
    Ok(real::Task {
        threads: task.instances as usize,
        delay_us: task.delay_us,
        loops: loops(task.loops),
        nice: i32::from(nice),
        timers: task.has_timers(),
        phases: task.phases.iter().map(|phase| of_phase(app, task, phase)).collect::<Result<_, _>>()?,
    })
}

fn loops(loops: Loops) -> Option<u64> {
    match loops {
        Loops::Forever => None,
        Loops::Times(times) => Some(u64::from(times)),
    }
}

fn of_phase(app: &Application, task: &Task, phase: &Phase) -> Result<real::Phase, Refused> {
    if let Some(policy) = phase.policy.as_ref().filter(|policy| policy.value != task.policy.value) {
        return Err(("a policy that changes".to_string(), policy.position));
    }
    if let Some(clamp) = phase.util_min.as_ref().or(phase.util_max.as_ref()) {
        return Err(("a clamp".to_string(), clamp.position));
    }
    if let Some(group) = &phase.taskgroup {
        return Err(("a task group".to_string(), group.position));
    }
    let event = |step: &workloads::rt_app::Step| {
        of_event(app, task, &step.event).ok_or_else(|| (format!("\"{}\"", step.event.name()), step.position))
    };
    Ok(real::Phase {
        loops: loops(phase.loops),
        cpus: phase.cpus.as_ref().map(|cpus| cpus.value.iter().map(|cpu| cpu.index()).collect()),
        events: phase.steps.iter().map(event).collect::<Result<_, _>>()?,
    })
}

fn of_event(app: &Application, task: &Task, event: &Event) -> Option<real::Event> {
    Some(match *event {
        Event::Run { us } => real::Event::Run(us),
        Event::Runtime { us } => real::Event::Runtime(us),
        Event::Sleep { us } => real::Event::Sleep(us),
        Event::Timer { timer, period_us } => {
            let (timer, mode) = match timer {
                TimerRef::Shared(id) => (real::Timer::Shared(id.index()), app.resources.timers[id.index()].mode),
                TimerRef::Unique(id) => (real::Timer::Own(id.index()), task.unique_timers[id.index()].mode),
            };
            real::Event::Timer { timer, period_us, absolute: mode == TimerMode::Absolute }
        }
        Event::Lock(mutex) => real::Event::Lock(mutex.index()),
        Event::Unlock(mutex) => real::Event::Unlock(mutex.index()),
        Event::Wait { condition, mutex } => real::Event::Wait { condition: condition.index(), mutex: mutex.index() },
        Event::Sync { condition, mutex } => real::Event::Sync { condition: condition.index(), mutex: mutex.index() },
        Event::Signal(condition) => real::Event::Signal(condition.index()),
        Event::Broad(condition) => real::Event::Broadcast(condition.index()),
        Event::Suspend { condition, mutex } => {
            real::Event::Suspend { condition: condition.index(), mutex: mutex.index() }
        }
        Event::Resume { condition, mutex, .. } => {
            real::Event::Resume { condition: condition.index(), mutex: mutex.index() }
        }
        Event::Barrier(barrier) => real::Event::Barrier(barrier.index()),
        Event::SemPost(semaphore) => real::Event::SemaphorePost(semaphore.index()),
        Event::SemWait(semaphore) => real::Event::SemaphoreWait(semaphore.index()),
        Event::Yield => real::Event::Yield,
        Event::Fork(_) | Event::Mem { .. } | Event::MemRun { .. } | Event::IoRun { .. } => return None,
    })
}
