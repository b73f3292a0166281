//! Runs that end with tasks asleep: which tasks, and what each of them waits for.

use crate::mistake::{Location, excerpt};
use crate::record::Outcome;
use crate::warning::Warning;
use sim::sleepers::{Mutex, Sleeper};

/// The most tasks that are named.
const NAMED: usize = 4;

/// Describes those tasks; `file` is the user's file. This is the last warning of a run that ended so.
pub fn told(sleepers: &[Sleeper], file: Option<&str>) -> String {
    let one = |Sleeper { comm, call, stands, mutex }: &Sleeper| {
        let kept = match mutex {
            Mutex::None => String::new(),
            Mutex::KeptBy(task) => format!(" kept by \"{}\"", excerpt(task, 40)),
            Mutex::KeptForGood => " kept by a task that has ended".to_string(),
        };
        let Some(at) = stands else { return format!("\"{}\" in {call}{kept}", excerpt(comm, 40)) };
        let place = file.map(|file| {
            let place = Location { input: file.to_string(), line: Some(at.line), column: Some(at.column) };
            format!(" ({place})")
        });
        format!("\"{}\" in {}{}{kept}", excerpt(&at.task, 40), excerpt(&at.step, 60), place.unwrap_or_default())
    };
    let mut names: Vec<String> = sleepers.iter().take(NAMED).map(one).collect();
    if let more @ 1.. = sleepers.len().saturating_sub(NAMED) {
        names.push(format!("and {more} more"));
    }
    let tasks = if sleepers.len() == 1 { "1 task".to_string() } else { format!("{} tasks", sleepers.len()) };
    format!("{tasks} asleep that nothing will ever wake: {}", names.join(", "))
}

/// What a run that ended so reported about it, and its other warnings.
pub fn of(outcome: &Outcome, sleeping: u64) -> (String, &[Warning]) {
    match outcome.warnings.split_last() {
        Some((last, others)) => (last.to_string(), others),
        None => (format!("{sleeping} tasks asleep that nothing will ever wake"), &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::program::Standing;

    #[test]
    fn the_first_few_are_named_and_the_others_counted() {
        let plain = |number: u32| {
            let comm = format!("t{number}");
            Sleeper { comm, call: "a sem_wait()", stands: None, mutex: Mutex::None }
        };
        assert_eq!(told(&[plain(0)], None), "1 task asleep that nothing will ever wake: \"t0\" in a sem_wait()");
        let stands = Standing { task: "long-name".into(), step: "`read p`".into(), line: 3, column: 9 };
        let mut sleepers = vec![Sleeper { stands: Some(stands), ..plain(0) }];
        sleepers.extend((1..7).map(plain));
        assert_eq!(
            told(&sleepers, Some("s.txt")),
            "7 tasks asleep that nothing will ever wake: \"long-name\" in `read p` (s.txt:3:9), \"t1\" in a sem_wait(), \
             \"t2\" in a sem_wait(), \"t3\" in a sem_wait(), and 3 more"
        );
    }
}
