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

/// Says whose folder it is, and which experiment's.
const MARK: &str = "fairground.json";
const RECORDS: &str = "records";
const LOGS: &str = "logs";
const STATISTICS: &str = "statistics";
/// All folders that this module makes below its own.
const OURS: [&str; 3] = [RECORDS, LOGS, STATISTICS];
/// A report's files that are read again.
const DOCUMENT: &str = "report.json";
const PAGE: &str = "report.html";
const PARTIAL_PAGE: &str = "report.partial.html";
/// Digits of an experiment's identity in its folder's name.
const SHORT: usize = 8;

/// What the scheduler and the machine counted in a run: as it is printed, and what the JSON document has of it.
#[derive(Clone, Debug)]
pub struct Counted {
    pub text: String,
    pub residency: RunResidency,
}

/// A folder with a mark that it is ours.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// Whether it held nothing when it was opened.
    new: bool,
    /// The folders that were made for it, the outermost first.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Whether a folder holds the results of one experiment.
    pub fn is_one(path: &Path) -> bool {
        path.join(MARK).exists()
    }

    /// Opens the folder of what has that name and identity, and makes it where there is none.
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

    /// Takes the mark away, and the folders that were made, if they hold nothing else; whether it was empty when it was opened.
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
    /// Where folders of results are unless the user says.
    pub fn place() -> PathBuf {
        PathBuf::from("results")
    }

    /// The name of an experiment's folder there.
    pub fn folder_name(experiment: &Experiment) -> String {
        format!("{}-{}", experiment.name, &experiment.identity()[..SHORT])
    }

    /// Where results go unless the user says.
    pub fn default_folder(experiment: &Experiment) -> PathBuf {
        Store::place().join(Store::folder_name(experiment))
    }

    /// Opens the experiment's folder, and makes it where there is none.
    pub fn open(folder: &Path, experiment: &Experiment) -> Result<Store, Failure> {
        let folder = Folder::open(folder, &experiment.name, &experiment.identity())?;
        Ok(Store { folder, engine: Engine::this() })
    }

    /// Leaves the place as it was found, where nothing was there: no run was finished, so there is nothing to keep. Returns
    /// whether that is done.
    pub fn discard(&self) -> bool {
        if self.folder.new {
            // All that this module writes; what fails to go was never there.
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

    /// Whether there is a record of a run in a folder, which need not be opened; of what program, and whether whole, is not looked at.
    pub fn has(folder: &Path, experiment: &Experiment, job: &Job) -> bool {
        record_path(folder, experiment, job).exists()
    }

    /// A run's record, if it is there, whole, of this program, and of the same setup. A run that ended by itself would have done so
    /// under any larger time limit.
    pub fn load(&self, experiment: &Experiment, job: &Job) -> Option<Record> {
        let path = self.record_path(experiment, job);
        let text = fs::read_to_string(&path).ok()?;
        let record = Record::parse(&text, &path.to_string_lossy()).ok()?;
        let outcome = record.outcome.as_ref()?;
        let setup = experiment.setup(job);
        let ended = outcome.end == Ending::Finished && outcome.simulated_ns <= setup.time_limit_ns;
        let time_limit_ns = if ended { setup.time_limit_ns } else { record.setup.time_limit_ns };
        let same = Setup { time_limit_ns, ..record.setup.clone() } == setup;
        (record.engine == self.engine && same).then_some(record)
    }

    pub fn save(&self, experiment: &Experiment, job: &Job, record: &Record) -> Result<PathBuf, Failure> {
        let path = self.record_path(experiment, job);
        write_file_and_folders(&path, record.to_json()).map_err(|error| cannot_write(&path, &error))?;
        Ok(path)
    }

    /// Writes what the benchmark itself would have written in a run. The thread's number is first: of two names a file's may keep the same letters.
    pub fn save_logs(&self, experiment: &Experiment, job: &Job, logs: &[(u32, String, String)]) -> Result<(), Failure> {
        let folder = self.folder().join(LOGS).join(experiment.record_name(job));
        for (number, name, text) in logs {
            let path = folder.join(format!("{number}-{}.log", file_name(name)));
            write_file_and_folders(&path, text).map_err(|error| cannot_write(&path, &error))?;
        }
        Ok(())
    }

    /// Writes what the scheduler and the machine counted in a run, before its record: whoever finds that finds this.
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

    /// Writes a report, `report.txt`, `.json`, `.csv` and `.html`, and the samples behind it, `samples.csv` and `.parquet`; while runs are
    /// missing their names have `partial` in them.
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
                // It says less than what is there now.
                let _ = fs::remove_file(self.folder().join(unfinished));
            }
        }
        Ok(())
    }
}

fn record_path(folder: &Path, experiment: &Experiment, job: &Job) -> PathBuf {
    folder.join(RECORDS).join(format!("{}.json", experiment.record_name(job)))
}

/// A folder's report, as far as there is one.
pub enum Stored {
    Missing,
    Partial,
    Done(Box<Document>),
}

impl Stored {
    /// What of an earlier call cannot be read counts as missing.
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

    /// As the overview shows it.
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

/// Whether the folder is empty; otherwise it holds results of this experiment.
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
