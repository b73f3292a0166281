//! Finds tasks that repeat for ever without time passing: a simulation would never leave that instant.

use super::TURNS_AT_ONE_INSTANT;
use super::description::{Application, Event, Loops, Phase, Step, Task, TaskId};
use super::fault::{Fault, quoted};
use std::collections::BTreeMap;

/// What tasks meet at: a condition, a semaphore or a barrier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meeting {
    Condition(u32),
    Semaphore(u32),
    Barrier(u32),
}

impl Meeting {
    /// Where the event waits, if it waits.
    pub fn waits_at(event: &Event) -> Option<Meeting> {
        match *event {
            Event::Wait { condition, .. } | Event::Sync { condition, .. } | Event::Suspend { condition, .. } => {
                Some(Meeting::Condition(condition.0))
            }
            Event::SemWait(semaphore) => Some(Meeting::Semaphore(semaphore.0)),
            Event::Barrier(barrier) => Some(Meeting::Barrier(barrier.0)),
            _ => None,
        }
    }

    /// Where the event wakes waiters, if it does.
    pub fn wakes_at(event: &Event) -> Option<Meeting> {
        match *event {
            Event::Signal(condition) | Event::Broad(condition) => Some(Meeting::Condition(condition.0)),
            Event::Resume { condition, .. } | Event::Sync { condition, .. } => Some(Meeting::Condition(condition.0)),
            Event::SemPost(semaphore) => Some(Meeting::Semaphore(semaphore.0)),
            Event::Barrier(barrier) => Some(Meeting::Barrier(barrier.0)),
            _ => None,
        }
    }
}

/// The tasks at one meeting, each once.
#[derive(Default)]
struct Place {
    waiters: Vec<TaskId>,
    wakers: Vec<TaskId>,
    /// How many of the wakers are suspects.
    suspected_wakers: usize,
}

impl Place {
    /// Whether waiting here lets time pass. Everyone at a barrier waits for the slowest; elsewhere any waker will do.
    fn paces(&self, meeting: Meeting) -> bool {
        match meeting {
            Meeting::Barrier(_) => self.suspected_wakers < self.wakers.len(),
            _ => self.suspected_wakers == 0,
        }
    }
}

/// Refuses tasks that can repeat without time passing. The suspects are all tasks that neither compute nor sleep
/// themselves. A suspect that waits for a task that does is cleared, until no more can be. A task that waits where
/// nobody wakes it is no suspect: it stops.
pub(super) fn refuse_endless(app: &Application) -> Result<(), Fault> {
    let mut suspects: Vec<Vec<&[Phase]>> = app.tasks.iter().map(timeless_cycles).collect();
    let mut places: BTreeMap<Meeting, Place> = BTreeMap::new();
    for (task, step) in app.steps() {
        if let Some(meeting) = Meeting::waits_at(&step.event) {
            push_once(&mut places.entry(meeting).or_default().waiters, task);
        }
        if let Some(meeting) = Meeting::wakes_at(&step.event) {
            let place = places.entry(meeting).or_default();
            if push_once(&mut place.wakers, task) && !suspects[task.index()].is_empty() {
                place.suspected_wakers += 1;
            }
        }
    }
    let mut woken_by: Vec<Vec<Meeting>> = vec![Vec::new(); app.tasks.len()];
    for (&meeting, place) in &places {
        for waker in &place.wakers {
            woken_by[waker.index()].push(meeting);
        }
    }
    let mut unchecked: Vec<TaskId> = (0..app.tasks.len()).map(|index| TaskId(index as u32)).collect();
    while let Some(task) = unchecked.pop() {
        let cycles = &mut suspects[task.index()];
        if cycles.is_empty() {
            continue;
        }
        let paces = |step: &Step| Meeting::waits_at(&step.event).is_some_and(|meeting| places[&meeting].paces(meeting));
        cycles.retain(|cycle| !steps(cycle).any(paces));
        if !cycles.is_empty() {
            continue;
        }
        for &meeting in &woken_by[task.index()] {
            let place = places.get_mut(&meeting).expect("the task wakes at this place");
            let paced = place.paces(meeting);
            place.suspected_wakers -= 1;
            if !paced && place.paces(meeting) {
                unchecked.extend(&place.waiters);
            }
        }
    }
    match suspects.iter().zip(&app.tasks).find_map(|(cycles, task)| cycles.first().map(|cycle| (task, *cycle))) {
        Some((task, cycle)) => Err(endless(task, cycle)),
        None => Ok(()),
    }
}

fn endless(task: &Task, cycle: &[Phase]) -> Fault {
    let waits = steps(cycle).any(|step| Meeting::waits_at(&step.event).is_some());
    let others = if waits { "nor do those that wake it" } else { "and it waits for nobody" };
    let name = quoted(&task.name);
    let found = format!("{name} repeats endlessly at one instant: none of its events takes time, {others}");
    let right = "give it a \"run\", \"runtime\", \"sleep\" or \"timer\", or a small \"loop\"";
    Fault::new(cycle[0].position, found, right)
}

/// Steps come by task, so a task that is there already is the last.
fn push_once(tasks: &mut Vec<TaskId>, task: TaskId) -> bool {
    let new = tasks.last() != Some(&task);
    if new {
        tasks.push(task);
    }
    new
}

/// Sequences of phases that take no time themselves and that a task repeats for ever, or so often that it seems so.
fn timeless_cycles(task: &Task) -> Vec<&[Phase]> {
    let turns = |loops: Loops| match loops {
        Loops::Forever => u64::MAX,
        Loops::Times(times) => u64::from(times),
    };
    let timeless = |cycle: &&[Phase]| !steps(cycle).any(|step| takes_time(&step.event));
    let long_phases = task.phases.iter().filter(|phase| turns(phase.loops) > TURNS_AT_ONE_INSTANT);
    let mut cycles: Vec<&[Phase]> = long_phases.map(std::slice::from_ref).filter(timeless).collect();
    let phase_turns = task.phases.iter().map(|phase| turns(phase.loops)).fold(0, u64::saturating_add);
    if turns(task.loops).saturating_mul(phase_turns) > TURNS_AT_ONE_INSTANT {
        cycles.extend(Some(task.phases.as_slice()).filter(timeless));
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
