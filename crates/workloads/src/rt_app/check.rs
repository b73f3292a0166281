//! Checks that need the whole file: threads that nobody wakes, locks that are not held, parts that never run.

use super::description::{Application, BarrierId, Event, Loops, MutexId, TaskId};
use super::fault::{Fault, Position, Warning, WarningKind, quoted, suggestion};
use super::instants::{Meeting, refuse_endless};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn whole(
    app: &Application,
    task_ids: &BTreeMap<String, TaskId>,
    warnings: &mut Vec<Warning>,
) -> Result<(), Fault> {
    refuse_unknown_resumes(app, task_ids)?;
    refuse_forked_barriers(app)?;
    refuse_endless(app)?;
    warn_of_waits(app, warnings);
    warn_of_repeated_barriers(app, warnings);
    warn_of_locks(app, warnings);
    warn_of_what_never_runs(app, warnings);
    if !app.uses_memory() {
        warnings.extend(app.memory_nodes().map(|nodes| {
            let text = "\"nodes_membind\" has no effect in a file without \"mem\" and \"memrun\"".into();
            Warning { position: nodes.position, kind: WarningKind::NoEffect, text }
        }));
    }
    Ok(())
}

fn refuse_unknown_resumes(app: &Application, task_ids: &BTreeMap<String, TaskId>) -> Result<(), Fault> {
    let waited_at: BTreeSet<Meeting> = app.steps().filter_map(|(_, step)| Meeting::waits_at(&step.event)).collect();
    for (_, step) in app.steps() {
        if let Event::Resume { task: None, condition, .. } = step.event
            && !waited_at.contains(&Meeting::Condition(condition.0))
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
            let right = "a barrier counts its threads before the start, so forked tasks cannot use one";
            return Err(Fault::new(step.position, found, right));
        }
    }
    Ok(())
}

fn warn_of_waits(app: &Application, warnings: &mut Vec<Warning>) {
    let woken_at: BTreeSet<Meeting> = app.steps().filter_map(|(_, step)| Meeting::wakes_at(&step.event)).collect();
    for (_, step) in app.steps() {
        let unwoken = Meeting::waits_at(&step.event).filter(|meeting| !woken_at.contains(meeting));
        let (verb, name) = match unwoken {
            Some(Meeting::Condition(id)) => {
                let verb = if matches!(step.event, Event::Suspend { .. }) { "resumes" } else { "signals" };
                (verb, &app.resources.conditions[id as usize])
            }
            Some(Meeting::Semaphore(id)) => ("posts", &app.resources.semaphores[id as usize]),
            Some(Meeting::Barrier(_)) | None => continue,
        };
        let text = format!("{} waits for ever: nobody {verb} {}", quoted(&step.key), quoted(name));
        warnings.push(Warning { position: step.position, kind: WarningKind::Waiting, text });
    }
}

/// Every mention of a barrier counts the task's instances again, but a thread arrives at only one mention at a time.
fn warn_of_repeated_barriers(app: &Application, warnings: &mut Vec<Warning>) {
    let mut uses: BTreeMap<(TaskId, BarrierId), (u32, Position)> = BTreeMap::new();
    for (task, step) in app.steps() {
        if let Event::Barrier(barrier) = step.event {
            let (count, last) = uses.entry((task, barrier)).or_insert((0, step.position));
            *count += 1;
            *last = step.position;
        }
    }
    for ((_, id), (count, position)) in uses.into_iter().filter(|(_, (count, _))| *count > 1) {
        let barrier = &app.resources.barriers[id.index()];
        let name = quoted(&barrier.name);
        let text = format!(
            "barrier {name} stands {count} times in one task: it opens at {} arrivals, which never come together",
            barrier.users
        );
        warnings.push(Warning { position, kind: WarningKind::Waiting, text });
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
    let forked = |step| if let Event::Fork(task) = step { Some(task) } else { None };
    let forked: BTreeSet<TaskId> = app.steps().filter_map(|(_, step)| forked(step.event.clone())).collect();
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
    if let Some(task) = app.endless_task() {
        let name = quoted(&task.name);
        warn(
            task.position,
            format!("the file never ends by itself: there is no \"duration\", and {name} repeats for ever"),
        );
    }
}
