//! Result folders: a mark that the folder is ours, one record for each run, and the reports.

use crate::failure::Failure;
use crate::output::{folders_to_make, sweep, write_file, write_file_and_folders};
use lab::experiment::{Experiment, Job, file_name};
use lab::html::overview::State;
use lab::json::Document;
use lab::record::{Ending, Record};
use lab::report::Report;
use lab::residency::RunResidency;
use lab::setup::{Engine, Setup};
use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file that marks a folder as ours, and names its experiment.
const MARK: &str = "fairground.json";
const RECORDS: &str = "records";
const LOGS: &str = "logs";
const STATISTICS: &str = "statistics";
/// All folders that this module makes below its own.
const OURS: [&str; 3] = [RECORDS, LOGS, STATISTICS];
/// The report files that are read again.
const DOCUMENT: &str = "report.json";
const PAGE: &str = "report.html";
const PARTIAL_PAGE: &str = "report.partial.html";
/// Digits of an experiment's identity in its folder's name.
const SHORT: usize = 8;

/// What the scheduler and the machine counted in a run: the printed text, and its part of the JSON document.
#[derive(Clone, Debug)]
pub struct Counted {
    pub text: String,
    pub residency: RunResidency,
}

/// A folder that has our mark.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// Whether it was empty when it was opened.
    new: bool,
    /// The folders that were created for it, the outermost first.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Whether a folder holds the results of one experiment.
    pub fn is_one(path: &Path) -> bool {
        path.join(MARK).exists()
    }

    /// The records in the folder of an experiment's results, in the order of their names.
    pub fn records(path: &Path) -> Result<Vec<String>, Failure> {
        let mut places = vec![path.join(RECORDS)];
        let mut found = Vec::new();
        while let Some(place) = places.pop() {
            let unread =
                |error| Failure::Mistake(format!("{}: cannot be read: {error}; expected records", place.display()));
            for entry in fs::read_dir(&place).map_err(unread)? {
                let path = entry.map_err(unread)?.path();
                if path.is_dir() {
                    places.push(path);
                } else if path.extension().is_some_and(|ending| ending == "json") {
                    found.push(path.display().to_string());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Opens the folder for that name and identity, and creates it if necessary.
    pub fn open(path: &Path, name: &str, identity: &str) -> Result<Folder, Failure> {
        let made = folders_to_make(path);
        let new = !path.exists() || check_ours(path, identity)?;
        sweep(path, &OURS);
        let folder = Folder { path: path.to_path_buf(), new, made };
        let mark = serde_json::json!({ "fairground": lab::VERSION, "name": name, "experiment": identity });
        let written = write_file_and_folders(&path.join(MARK), format!("{mark}\n"));
        if let Err(error) = written {
            folder.discard();
            return Err(cannot_write(path, &error));
        }
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the mark, and the folders that were created, if they hold nothing else. Returns whether the folder was
    /// empty when it was opened.
    pub fn discard(&self) -> bool {
        if !self.new {
            return false;
        }
        let _ = fs::remove_file(self.path.join(MARK));
        for made in self.made.iter().rev() {
            let _ = fs::remove_dir(made);
        }
        true
    }
}

#[derive(Clone, Debug)]
pub struct Store {
    folder: Folder,
    engine: Engine,
}

impl Store {
    /// The default place of result folders.
    pub fn place() -> PathBuf {
        PathBuf::from("results")
    }

    /// The name of an experiment's folder there.
    pub fn folder_name(experiment: &Experiment) -> String {
        format!("{}-{}", experiment.name, &experiment.identity()[..SHORT])
    }

    /// The default folder of an experiment's results.
    pub fn default_folder(experiment: &Experiment) -> PathBuf {
        Store::place().join(Store::folder_name(experiment))
    }

    /// Opens the experiment's folder, and creates it if necessary.
    pub fn open(folder: &Path, experiment: &Experiment) -> Result<Store, Failure> {
        let folder = Folder::open(folder, &experiment.name, &experiment.identity())?;
        Ok(Store { folder, engine: Engine::this() })
    }

    /// Leaves the place as it was if nothing was there before: no run was finished, so there is nothing to keep.
    /// Returns whether that was done.
    pub fn discard(&self) -> bool {
        if self.folder.new {
            // These are all folders that this module writes; one that cannot be removed never existed.
            for folder in OURS {
                let _ = fs::remove_dir_all(self.folder().join(folder));
            }
        }
        self.folder.discard()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file of a run's record.
    pub fn record_path(&self, experiment: &Experiment, job: &Job) -> PathBuf {
        record_path(self.folder(), experiment, job)
    }

    /// Whether a folder, which need not be opened, has a record of a run. It does not check which program wrote the
    /// record, and whether it is complete.
    pub fn has(folder: &Path, experiment: &Experiment, job: &Job) -> bool {
        record_path(folder, experiment, job).exists()
    }

    /// A run's record, if it exists, is complete and as it was written, and comes from this program and the same setup.
    /// The time limit may differ: a run that ended by itself would have ended so under any larger limit.
    pub fn load(&self, experiment: &Experiment, job: &Job) -> Option<Record> {
        let path = self.record_path(experiment, job);
        let text = fs::read_to_string(&path).ok()?;
        let record = Record::parse(&text, &path.to_string_lossy()).ok()?;
        let outcome = record.outcome.as_ref()?;
        let setup = experiment.setup(job);
        let ended = outcome.end == Ending::Finished && outcome.simulated_ns <= setup.time_limit_ns;
        let time_limit_ns = if ended { setup.time_limit_ns } else { record.setup.time_limit_ns };
        let same = Setup { time_limit_ns, ..record.setup.clone() } == setup;
        (record.engine == self.engine && same && record.is_intact()).then_some(record)
    }

    pub fn save(&self, experiment: &Experiment, job: &Job, record: &Record) -> Result<PathBuf, Failure> {
        let path = self.record_path(experiment, job);
        write_file_and_folders(&path, record.to_json()).map_err(|error| cannot_write(&path, &error))?;
        Ok(path)
    }

    /// Writes the files that the benchmark itself would have written in a run. Their names begin with the thread's
    /// number, because the file names of two threads may be the same once letters are removed.
    pub fn save_logs(&self, experiment: &Experiment, job: &Job, logs: &[(u32, String, String)]) -> Result<(), Failure> {
        let folder = self.folder().join(LOGS).join(experiment.record_name(job));
        for (number, name, text) in logs {
            let path = folder.join(format!("{number}-{}.log", file_name(name)));
            write_file_and_folders(&path, text).map_err(|error| cannot_write(&path, &error))?;
        }
        Ok(())
    }

    /// Writes what the scheduler and the machine counted in a run. This comes before the run's record, so that a run
    /// with a record always has it.
    pub fn save_statistics(&self, experiment: &Experiment, job: &Job, counted: &Counted) -> Result<(), Failure> {
        let save = |ending: &str, text: &str| {
            let path = self.statistics_path(experiment, job, ending);
            write_file_and_folders(&path, text).map_err(|error| cannot_write(&path, &error))
        };
        save("json", &serde_json::to_string(&counted.residency).expect("plain values serialise"))?;
        save("txt", &counted.text)
    }

    pub fn load_statistics(&self, experiment: &Experiment, job: &Job) -> Option<Counted> {
        let load = |ending: &str| fs::read_to_string(self.statistics_path(experiment, job, ending)).ok();
        Some(Counted { text: load("txt")?, residency: serde_json::from_str(&load("json")?).ok()? })
    }

    fn statistics_path(&self, experiment: &Experiment, job: &Job, ending: &str) -> PathBuf {
        self.folder().join(STATISTICS).join(format!("{}.{ending}", experiment.record_name(job)))
    }

    /// Writes a report (`report.txt`, `.json`, `.csv` and `.html`) and its samples (`samples.csv` and `.parquet`).
    /// While runs are missing, the names contain `partial`.
    pub fn report(&self, report: &Report) -> Result<(), Failure> {
        let partial = report.progress.is_partial();
        let mut files: Vec<(&str, &str, Cow<[u8]>)> = vec![
            ("report", "txt", report.text.as_bytes().into()),
            ("report", "json", report.json.as_bytes().into()),
            ("report", "csv", report.csv.as_bytes().into()),
            ("samples", "csv", report.samples.csv().into_bytes().into()),
            ("samples", "parquet", report.samples.parquet().into()),
        ];
        files.extend(report.html.as_ref().map(|html| ("report", "html", html.as_bytes().into())));
        for (stem, ending, content) in &files {
            let unfinished = format!("{stem}.partial.{ending}");
            let name = if partial { unfinished.clone() } else { format!("{stem}.{ending}") };
            let path = self.folder().join(name);
            write_file(&path, content).map_err(|error| cannot_write(&path, &error))?;
            if !partial {
                // The partial report says less than the present one.
                let _ = fs::remove_file(self.folder().join(unfinished));
            }
        }
        Ok(())
    }
}

fn record_path(folder: &Path, experiment: &Experiment, job: &Job) -> PathBuf {
    folder.join(RECORDS).join(format!("{}.json", experiment.record_name(job)))
}

/// The report in a folder, as far as there is one.
pub enum Stored {
    Missing,
    Partial,
    Done(Box<Document>),
}

impl Stored {
    /// Reports of an earlier call that cannot be read count as missing.
    pub fn find(folder: &Path) -> Stored {
        if folder.join(PARTIAL_PAGE).exists() {
            return Stored::Partial;
        }
        let document = fs::read_to_string(folder.join(DOCUMENT)).ok().and_then(|text| serde_json::from_str(&text).ok());
        match document {
            Some(document) if folder.join(PAGE).exists() => Stored::Done(Box::new(document)),
            _ => Stored::Missing,
        }
    }

    /// The state in the overview's form.
    pub fn state(&self) -> State<'_> {
        match self {
            Stored::Missing => State::Missing,
            Stored::Partial => State::Partial(PARTIAL_PAGE),
            Stored::Done(document) => State::Done(PAGE, document),
        }
    }
}

pub fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::unwritten(path.display(), error, "a place for results: --out DIR")
}

/// Whether the folder is empty. If it is not, it must hold results of this experiment.
fn check_ours(folder: &Path, identity: &str) -> Result<bool, Failure> {
    let refuse = |found: &str, expected: &str| {
        Err(Failure::Mistake(format!("{}: found {found}; expected {expected}", folder.display())))
    };
    if !folder.is_dir() {
        return refuse("a file of that name", "a folder for results: --out DIR");
    }
    let mark = match fs::read_to_string(folder.join(MARK)) {
        Ok(mark) => mark,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
            if empty {
                return Ok(true);
            }
            return refuse(
                "a folder that is not empty and not ours",
                "a new folder, or one with results of this experiment: --out DIR",
            );
        }
        Err(error) => return Err(cannot_write(folder, &error)),
    };
    let mark: serde_json::Value = serde_json::from_str(&mark).unwrap_or_default();
    match mark.get("experiment").and_then(serde_json::Value::as_str) {
        Some(other) if other == identity => Ok(false),
        Some(_) => refuse("the results of another experiment", "a new folder (--out DIR), or none: delete it"),
        None => refuse(&format!("a {MARK} that is not ours"), "a new folder: --out DIR"),
    }
}
