//! `replay`: runs stored runs again.

use crate::execute::{Keep, Patience, guarded};
use crate::failure::Failure;
use crate::files::Disk;
use crate::output::{print, say};
use crate::store::Folder;
use lab::machines::Files;
use lab::mistake::{Location, Mistake};
use lab::record::Record;
use lab::run::{Wanted, run};
use lab::setup::Engine;
use std::path::Path;

/// `fairground replay`.
pub fn replay(places: &[String]) -> Result<(), Failure> {
    let patience = Patience::watch();
    let mut paths = Vec::new();
    for place in places {
        match Folder::is_one(Path::new(place)) {
            true => paths.extend(Folder::records(Path::new(place))?),
            false => paths.push(place.clone()),
        }
    }
    let mut differ = 0;
    for path in &paths {
        let name = if paths.len() > 1 { format!("{path}: ") } else { String::new() };
        differ += u32::from(!agrees(path, &name, &patience)?);
    }
    if paths.len() > 1 {
        say(&format!("note: of {} records {differ} differ", paths.len()));
    }
    if differ > 0 { Err(Failure::Differs) } else { Ok(()) }
}

/// Runs one record again, and prints behind `name` whether it agrees.
fn agrees(path: &str, name: &str, patience: &Patience) -> Result<bool, Failure> {
    let text = Disk.text(path).map_err(|error| Mistake::file(path, error, "a record of a result folder"))?;
    let record = Record::parse(&text, path)?;
    let this = Engine::this();
    if record.engine != this {
        let Engine { version, sources } = &record.engine;
        say(&format!(
            "note: {name}recorded by fairground {version} (sources {sources}), this is {} (sources {}): figures may differ",
            this.version, this.sources
        ));
    }
    if !record.is_intact() {
        say(&format!("note: {name}its outcome was changed after it was written"));
    }
    let again = guarded(&record.setup, Keep::Stored(path), || {
        let wanted = Wanted { interrupted: &|| patience.is_over(), ..Wanted::default() };
        run(&record.setup, wanted, &Location::of(path)).map_err(Failure::from)
    })?;
    let Some(again) = again else { return Err(Failure::Mistake("interrupted".to_string())) };
    let Some(recorded) = &record.outcome else {
        let (end, digest) = (again.outcome.end, again.outcome.digest);
        print(&format!("{name}the recorded run broke off; now it ends: {end:?}, digest {digest}\n"))?;
        return Ok(true);
    };
    let difference = recorded.difference(&again.outcome);
    print(&match &difference {
        None => format!("{name}agrees: {}\n", recorded.digest),
        Some(difference) => format!("{name}differs\n{difference}\n"),
    })?;
    Ok(difference.is_none())
}
