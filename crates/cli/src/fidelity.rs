//! `fairground fidelity`: compares recorded real kernels with the simulation.

use crate::arguments::FidelityArguments;
use crate::execute::{Patience, execute};
use crate::failure::Failure;
use crate::files::Disk;
use crate::output::{print, say};
use crate::select::threads;
use lab::experiment::{Draft, Purpose};
use lab::fidelity::{Checked, Row, check, render};
use std::path::{Path, PathBuf};

/// Checks every case and prints one table. Fails if a figure is off and its case does not explain why.
pub fn fidelity(arguments: &FidelityArguments) -> Result<(), Failure> {
    let mut cases = Vec::new();
    for place in &arguments.cases {
        find(Path::new(place), &mut cases)?;
    }
    if cases.is_empty() {
        let found = format!("found no case in {}", arguments.cases.join(", "));
        return Err(Failure::Mistake(format!("{found}; expected files that end in .toml, or folders of such files")));
    }
    let threads = threads(arguments.jobs.as_ref())?;
    let (patience, jobs) = (Patience::watch(), Vec::from_iter(0..cases.len()));
    let mut results: Vec<Option<Checked>> = cases.iter().map(|_| None).collect();
    let work = |&job: &usize, interrupted: &dyn Fn() -> bool| checked(&cases[job], arguments.quiet, interrupted);
    execute(&jobs, threads, &patience, work, |job, result| {
        results[job] = Some(result);
        Ok(())
    })?;
    let (mut rows, mut warnings): (Vec<Row>, String) = (Vec::new(), String::new());
    for (path, result) in cases.iter().zip(results) {
        let Some(Checked { rows: more, warnings: told }) = result else {
            return Err(Failure::Mistake("interrupted: nothing is kept of it".to_string()));
        };
        rows.extend(more);
        warnings.extend(told.into_iter().map(|warning| format!("warning  {}: {warning}\n", path.display())));
    }
    print(&(render(&rows) + &warnings))?;
    match rows.iter().filter(|row| !row.verdict().is_good()).count() {
        0 => Ok(()),
        bad => Err(Failure::Ours(format!("{bad} figures disagree with a real kernel without a reason given"))),
    }
}

/// One case. `None` if interrupted.
fn checked(path: &Path, quiet: bool, interrupted: &dyn Fn() -> bool) -> Result<Option<Checked>, Failure> {
    let path = path.display().to_string();
    let case = Draft::read(&path, &Disk)?.resolve(Purpose::Case, &Disk)?;
    if case.figures.is_empty() {
        let found = format!("{path}: found no figure; expected [[figure]] tables (docs/fidelity.md)");
        return Err(Failure::Mistake(found));
    }
    if !quiet {
        say(&format!("running {path}"));
        case.notices.iter().for_each(|notice| say(&format!("note: {notice}")));
    }
    Ok(check(&case, interrupted)?)
}

/// The cases at a place, in the order of their paths: the file, or every .toml file below the folder.
fn find(place: &Path, cases: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_string(),
            _ => error.to_string(),
        };
        Failure::Mistake(format!("{}: found {why}; expected a case (.toml), or a folder of cases", place.display()))
    };
    if !std::fs::metadata(place).map_err(unreadable)?.is_dir() {
        cases.push(place.to_path_buf());
        return Ok(());
    }
    let entries = std::fs::read_dir(place).map_err(unreadable)?.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "toml") {
            find(&path, cases)?;
        }
    }
    Ok(())
}
