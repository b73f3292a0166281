//! What only the whole file shows: endless loops at one instant, threads that nobody wakes, locks that are not held.

use super::TURNS_AT_ONE_INSTANT;
use super::description::{Application, ConditionId, Event, Loops, MutexId, Phase, Step, Task, TaskId};
use super::fault::{Fault, Position, Warning, WarningKind, quoted, suggestion};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn whole(
    app: &Application,
    task_ids: &BTreeMap<String, TaskId>,
    warnings: &mut Vec<Warning>,
) -> Result<(), Fault> {
    let meetings = Meetings::of(app);
    refuse_unknown_resumes(app, &meetings, task_ids)?;
    refuse_forked_barriers(app)?;
    refuse_endless_instants(app, &meetings)?;
    warn_of_waits(app, &meetings, warnings);
    warn_of_locks(app, warnings);
    warn_of_what_never_runs(app, warnings);
    Ok(())
}

/// Which tasks wake and which wait, by what they meet at.
struct Meetings {
    condition_wakers: Vec<BTreeSet<TaskId>>,
    condition_waiters: Vec<BTreeSet<TaskId>>,
    semaphore_posters: Vec<BTreeSet<TaskId>>,
    barrier_users: Vec<BTreeSet<TaskId>>,
}

impl Meetings {
    fn of(app: &Application) -> Meetings {
        let resources = &app.resources;
        let mut meetings = Meetings {
            condition_wakers: vec![BTreeSet::new(); resources.conditions.len()],
            condition_waiters: vec![BTreeSet::new(); resources.conditions.len()],
            semaphore_posters: vec![BTreeSet::new(); resources.semaphores.len()],
            barrier_users: vec![BTreeSet::new(); resources.barriers.len()],
        };
        for (task, step) in app.steps() {
            let _new = match step.event {
                Event::Signal(condition) | Event::Broad(condition) | Event::Resume { condition, .. } => {
                    meetings.condition_wakers[condition.index()].insert(task)
                }
                Event::Wait { condition, .. } | Event::Suspend { condition, .. } => {
                    meetings.condition_waiters[condition.index()].insert(task)
                }
                Event::Sync { condition, .. } => {
                    meetings.condition_waiters[condition.index()].insert(task);
                    meetings.condition_wakers[condition.index()].insert(task)
                }
                Event::SemPost(semaphore) => meetings.semaphore_posters[semaphore.index()].insert(task),
                Event::Barrier(barrier) => meetings.barrier_users[barrier.index()].insert(task),
                _ => false,
            };
        }
        meetings
    }

    /// Whether a wait must let time pass, given that only the tasks in `instant` spin without doing so.
    fn paces(&self, event: &Event, instant: &BTreeSet<TaskId>) -> bool {
        let outside = |task: &TaskId| !instant.contains(task);
        match event {
            Event::Wait { condition, .. } | Event::Sync { condition, .. } | Event::Suspend { condition, .. } => {
                self.condition_wakers[condition.index()].iter().all(outside)
            }
            Event::SemWait(semaphore) => self.semaphore_posters[semaphore.index()].iter().all(outside),
            Event::Barrier(barrier) => self.barrier_users[barrier.index()].iter().any(outside),
            _ => false,
        }
    }
}

fn refuse_unknown_resumes(
    app: &Application,
    meetings: &Meetings,
    task_ids: &BTreeMap<String, TaskId>,
) -> Result<(), Fault> {
    for (_, step) in app.steps() {
        if let Event::Resume { task: None, condition, .. } = step.event
            && meetings.condition_waiters[condition.index()].is_empty()
        {
            let name = &app.resources.conditions[condition.index()];
            let right = format!("no task is called that; {}", suggestion(name, task_ids.keys().map(String::as_str)));
            return Err(Fault::new(step.position, format!("{} of {}", quoted(&step.key), quoted(name)), right));
        }
    }
    Ok(())
}

fn refuse_forked_barriers(app: &Application) -> Result<(), Fault> {
    let mut forks: BTreeMap<TaskId, Position> = BTreeMap::new();
    for (_, step) in app.steps() {
        if let Event::Fork(task) = step.event {
            forks.entry(task).or_insert(step.position);
        }
    }
    for (task, step) in app.steps() {
        if let (Event::Barrier(_), Some(fork)) = (&step.event, forks.get(&task)) {
            let found = format!("a barrier in {}, which is forked at {fork}", quoted(&app.tasks[task.index()].name));
            return Err(Fault::new(
                step.position,
                found,
                "a barrier counts its threads before the start, so forked tasks cannot use one",
            ));
        }
    }
    Ok(())
}

/// Sequences of phases that a task repeats for ever, or so often that it looks like it.
fn cycles(task: &Task) -> Vec<&[Phase]> {
    let turns = |loops: Loops| match loops {
        Loops::Forever => u64::MAX,
        Loops::Times(times) => u64::from(times),
    };
    let phase_turns = task.phases.iter().map(|phase| turns(phase.loops)).fold(0, u64::saturating_add);
    let mut cycles: Vec<&[Phase]> = Vec::new();
    for phase in &task.phases {
        if turns(phase.loops) > TURNS_AT_ONE_INSTANT {
            cycles.push(std::slice::from_ref(phase));
        }
    }
    if turns(task.loops).saturating_mul(phase_turns) > TURNS_AT_ONE_INSTANT {
        cycles.push(&task.phases);
    }
    cycles
}

fn takes_time(event: &Event) -> bool {
    match event {
        Event::Run { us } | Event::Runtime { us } | Event::Sleep { us } => *us > 0,
        Event::Timer { period_us, .. } => *period_us > 0,
        Event::Mem { .. } | Event::MemRun { .. } | Event::IoRun { .. } => true,
        _ => false,
    }
}

fn steps(cycle: &[Phase]) -> impl Iterator<Item = &Step> {
    cycle.iter().flat_map(|phase| &phase.steps)
}

/// Finds the tasks that can repeat without time passing: all that do not compute or sleep themselves, less those that
/// wait for a task that does, until nothing changes.
fn refuse_endless_instants(app: &Application, meetings: &Meetings) -> Result<(), Fault> {
    let timeless = |cycle: &&[Phase]| !steps(cycle).any(|step| takes_time(&step.event));
    let mut suspects: BTreeMap<TaskId, Vec<&[Phase]>> = BTreeMap::new();
    for (index, task) in app.tasks.iter().enumerate() {
        let cycles: Vec<&[Phase]> = cycles(task).into_iter().filter(timeless).collect();
        if !cycles.is_empty() {
            suspects.insert(TaskId(index as u32), cycles);
        }
    }
    loop {
        let instant: BTreeSet<TaskId> = suspects.keys().copied().collect();
        suspects.retain(|_, cycles| {
            cycles.retain(|cycle| !steps(cycle).any(|step| meetings.paces(&step.event, &instant)));
            !cycles.is_empty()
        });
        if suspects.len() == instant.len() {
            break;
        }
    }
    let Some((first, cycles)) = suspects.first_key_value() else { return Ok(()) };
    let task = &app.tasks[first.index()];
    let waits = steps(cycles[0]).any(|step| {
        matches!(
            step.event,
            Event::Wait { .. } | Event::Sync { .. } | Event::Suspend { .. } | Event::SemWait(_) | Event::Barrier(_)
        )
    });
    let why = if waits { "nor do those that wake it" } else { "and it waits for nobody" };
    let found =
        format!("{} repeats endlessly at one instant: none of its events takes time, {why}", quoted(&task.name));
    Err(Fault::new(
        cycles[0][0].position,
        found,
        "give it a \"run\", \"runtime\", \"sleep\" or \"timer\", or a small \"loop\"",
    ))
}

fn warn_of_waits(app: &Application, meetings: &Meetings, warnings: &mut Vec<Warning>) {
    let mut warn = |position: Position, text: String| {
        warnings.push(Warning { position, kind: WarningKind::Waiting, text });
    };
    let never_woken = |condition: ConditionId| meetings.condition_wakers[condition.index()].is_empty();
    for (task, step) in app.steps() {
        let task = &app.tasks[task.index()];
        let key = quoted(&step.key);
        match step.event {
            Event::Suspend { condition, .. } if never_woken(condition) => {
                let name = quoted(&app.resources.conditions[condition.index()]);
                warn(step.position, format!("{key} waits for ever: nobody resumes {name}"));
            }
            Event::Wait { condition, .. } if never_woken(condition) => {
                let name = quoted(&app.resources.conditions[condition.index()]);
                warn(step.position, format!("{key} waits for ever: nobody signals {name}"));
            }
            Event::SemWait(semaphore) if meetings.semaphore_posters[semaphore.index()].is_empty() => {
                let name = quoted(&app.resources.semaphores[semaphore.index()]);
                warn(step.position, format!("{key} waits for ever: nobody posts {name}"));
            }
            Event::Barrier(barrier) => {
                let uses = task.phases.iter().flat_map(|p| &p.steps).filter(|s| s.event == step.event).count();
                if uses > 1 {
                    let barrier = &app.resources.barriers[barrier.index()];
                    let text = format!(
                        "barrier {} is used {uses} times in one task: it opens at {} arrivals, which never come together",
                        quoted(&barrier.name),
                        barrier.users
                    );
                    warn(step.position, text);
                }
            }
            _ => {}
        }
    }
}

/// Follows each task through its phases, twice where they repeat, with the mutexes it holds.
fn warn_of_locks(app: &Application, warnings: &mut Vec<Warning>) {
    let mut told: BTreeSet<Position> = BTreeSet::new();
    let rounds = |loops: Loops| if loops == Loops::Times(1) { 1 } else { 2 };
    for task in &app.tasks {
        let mut held: BTreeSet<MutexId> = BTreeSet::new();
        let phases = (0..rounds(task.loops)).flat_map(|_| &task.phases);
        for step in phases.flat_map(|phase| (0..rounds(phase.loops)).flat_map(|_| &phase.steps)) {
            let (mutex, problem) = match step.event {
                Event::Lock(mutex) if !held.insert(mutex) => (mutex, "waits for ever: the thread holds it already"),
                Event::Unlock(mutex) if !held.remove(&mutex) => (mutex, "unlocks what the thread does not hold"),
                Event::Wait { mutex, .. } | Event::Sync { mutex, .. } if !held.contains(&mutex) => {
                    (mutex, "waits with a mutex that the thread does not hold")
                }
                _ => continue,
            };
            if told.insert(step.position) {
                let name = quoted(&app.resources.mutexes[mutex.index()]);
                let text = format!("{} {problem} (mutex {name})", quoted(&step.key));
                warnings.push(Warning { position: step.position, kind: WarningKind::Waiting, text });
            }
        }
    }
}

fn warn_of_what_never_runs(app: &Application, warnings: &mut Vec<Warning>) {
    let mut warn = |position: Position, text: String| {
        warnings.push(Warning { position, kind: WarningKind::Running, text });
    };
    let forked: BTreeSet<TaskId> = app
        .steps()
        .filter_map(|(_, step)| if let Event::Fork(task) = step.event { Some(task) } else { None })
        .collect();
    for (index, task) in app.tasks.iter().enumerate() {
        if task.instances == 0 && !forked.contains(&TaskId(index as u32)) {
            warn(task.position, format!("{} never runs: it has 0 instances and nobody forks it", quoted(&task.name)));
        }
        if let Some(last) = task.phases.iter().position(|phase| phase.loops == Loops::Forever)
            && let Some(next) = task.phases.get(last + 1)
        {
            warn(next.position, format!("{} never begins: the phase before it repeats for ever", quoted(&next.name)));
        }
    }
    if !app.ends() {
        let first =
            app.tasks.iter().find(|task| task.instances > 0).map_or(app.tasks[0].position, |task| task.position);
        warn(first, "the file never ends by itself: there is no \"duration\", and a task repeats for ever".into());
    }
}
