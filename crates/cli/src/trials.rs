//! The folder of a ranking: a mark that it is ours, a line for each finished run, and the printed ranking.
//!
//! A ranking has hundreds of runs, which differ in one number of their machine's file. So the file is not stored with
//! each run: a line has a hash of the setup, the program's sources, and the outcome.

use crate::failure::Failure;
use crate::output::write_file;
use crate::store::{Folder, cannot_write};
use lab::record::Outcome;
use lab::sensitivity::{Plan, Results, Trial};
use lab::setup::Engine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

const TRIALS: &str = "trials.jsonl";
/// The names of the ranking's files, complete and while runs are missing.
const RANKING: [&str; 2] = ["sensitivity", "sensitivity.partial"];

/// A finished run.
#[derive(Serialize, Deserialize)]
struct Line {
    /// SHA-256 of its setup.
    setup: String,
    outcome: Outcome,
}

pub struct Trials {
    folder: Folder,
    file: File,
    /// The runs of earlier calls, by the hash of their setup.
    stored: BTreeMap<String, Outcome>,
}

impl Trials {
    /// Opens the folder of a plan, and creates it if necessary.
    pub fn open(place: &Path, plan: &Plan) -> Result<Trials, Failure> {
        let folder = Folder::open(place, plan.name(), &plan.identity())?;
        let path = place.join(TRIALS);
        let engine = serde_json::to_string(&Engine::this()).expect("plain values serialise");
        let text = fs::read_to_string(&path).unwrap_or_default();
        // Runs of another program do not count. The last line may be incomplete if the program was killed.
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).peekable();
        let ours = lines.next_if(|line| line.trim_end() == engine).is_some();
        let lines = lines.filter(|_| ours).filter_map(|line| serde_json::from_str(line).ok());
        let stored: BTreeMap<String, Outcome> = lines.map(|line: Line| (line.setup, line.outcome)).collect();
        let whole = stored.iter().map(|(setup, outcome)| Line { setup: setup.clone(), outcome: outcome.clone() });
        let whole = whole.map(|line| to_text(&line)).collect::<String>();
        let file = write_file(&path, format!("{engine}\n{whole}"))
            .and_then(|()| OpenOptions::new().append(true).open(&path))
            .map_err(|error| cannot_write(&path, &error))?;
        Ok(Trials { folder, file, stored })
    }

    pub fn place(&self) -> &Path {
        self.folder.path()
    }

    /// Moves the stored outcomes of `trials` into `results`, and returns the trials that must be run.
    pub fn take(&mut self, plan: &Plan, trials: Vec<Trial>, results: &mut Results) -> Vec<Trial> {
        let mut missing = Vec::new();
        for trial in trials {
            match self.stored.remove(&plan.setup(&trial).hash()) {
                Some(outcome) => _ = results.insert(trial, outcome),
                None => missing.push(trial),
            }
        }
        missing
    }

    /// Stores a run.
    pub fn save(&mut self, plan: &Plan, trial: &Trial, outcome: &Outcome) -> Result<(), Failure> {
        let line = to_text(&Line { setup: plan.setup(trial).hash(), outcome: outcome.clone() });
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|error| cannot_write(&self.folder.path().join(TRIALS), &error))
    }

    /// Writes the ranking: its text and its JSON.
    pub fn report(&self, partial: bool, text: &str, json: &str) -> Result<(), Failure> {
        let name = RANKING[usize::from(partial)];
        for (ending, content) in [("txt", text), ("json", json)] {
            let path = self.folder.path().join(format!("{name}.{ending}"));
            write_file(&path, content).map_err(|error| cannot_write(&path, &error))?;
            if !partial {
                // The partial ranking says less than the present one.
                let _ = fs::remove_file(self.folder.path().join(format!("{}.{ending}", RANKING[1])));
            }
        }
        Ok(())
    }

    /// Leaves the place as it was: no run was finished.
    pub fn discard(&self) {
        let _ = fs::remove_file(self.folder.path().join(TRIALS));
        self.folder.discard();
    }
}

fn to_text(line: &Line) -> String {
    let mut text = serde_json::to_string(line).expect("an outcome of plain values serialises");
    text.push('\n');
    text
}
