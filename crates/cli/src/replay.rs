//! `replay`: runs a stored run again.

use crate::execute::{Keep, Patience, guarded};
use crate::failure::Failure;
use crate::files::Disk;
use crate::output::{print, say};
use lab::machines::Files;
use lab::mistake::{Location, Mistake};
use lab::record::Record;
use lab::run::{Wanted, run};
use lab::setup::Engine;

/// `fairground replay`.
pub fn replay(path: &str) -> Result<(), Failure> {
    let text = Disk.text(path).map_err(|error| Mistake::file(path, error, "a record of a result folder"))?;
    let record = Record::parse(&text, path)?;
    let this = Engine::this();
    if record.engine != this {
        let Engine { version, sources } = &record.engine;
        say(&format!(
            "note: recorded by fairground {version} (sources {sources}), this is {} (sources {}): figures may differ",
            this.version, this.sources
        ));
    }
    let patience = Patience::watch();
    let again = guarded(&record.setup, Keep::Stored(path), || {
        let wanted = Wanted { interrupted: &|| patience.is_over(), ..Wanted::default() };
        run(&record.setup, wanted, &Location::of(path)).map_err(Failure::from)
    })?;
    let Some(again) = again else { return Err(Failure::Mistake("interrupted".to_string())) };
    let Some(recorded) = &record.outcome else {
        return print(&format!(
            "the recorded run broke off; now it ends: {:?}, digest {}\n",
            again.outcome.end, again.outcome.digest
        ));
    };
    match recorded.difference(&again.outcome) {
        None => print(&format!("agrees: {}\n", recorded.digest)),
        Some(difference) => {
            print(&format!("differs\n{difference}\n"))?;
            Err(Failure::Differs)
        }
    }
}
