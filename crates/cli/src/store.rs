//! Result folders: a mark that the folder is ours, one record for each run, and the reports.

use crate::failure::Failure;
use crate::output::write_file;
use lab::experiment::{Experiment, Job, file_name};
use lab::record::Record;
use lab::report::Report;
use lab::setup::Engine;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Says whose folder it is, and which experiment's.
const MARK: &str = "fairground.json";
/// Digits of an experiment's identity in its folder's name.
const SHORT: usize = 8;

#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    engine: Engine,
}

impl Store {
    /// Where results go unless the user says.
    pub fn default_folder(experiment: &Experiment) -> PathBuf {
        Path::new("results").join(format!("{}-{}", experiment.name, &experiment.identity()[..SHORT]))
    }

    /// Opens the experiment's folder, and makes it where there is none.
    pub fn open(folder: &Path, experiment: &Experiment) -> Result<Store, Failure> {
        let identity = experiment.identity();
        let existed = folder.exists();
        if existed {
            check_ours(folder, &identity)?;
        }
        let mark = serde_json::json!({ "fairground": lab::VERSION, "name": experiment.name, "experiment": identity });
        let written = fs::create_dir_all(folder).and_then(|()| write_file(&folder.join(MARK), &format!("{mark}\n")));
        if let Err(error) = written {
            if !existed {
                // What was just made and cannot be used; fails harmlessly where nothing was.
                let _ = fs::remove_dir(folder);
            }
            return Err(cannot_write(folder, &error));
        }
        Ok(Store { folder: folder.to_path_buf(), engine: Engine::this() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a run's record.
    pub fn record_path(&self, experiment: &Experiment, job: &Job) -> PathBuf {
        self.folder.join("records").join(format!("{}.json", experiment.record_name(job)))
    }

    /// A run's record, if it is there, whole, of this program, and of the same setup.
    pub fn load(&self, experiment: &Experiment, job: &Job) -> Option<Record> {
        let path = self.record_path(experiment, job);
        let text = fs::read_to_string(&path).ok()?;
        let record = Record::parse(&text, &path.to_string_lossy()).ok()?;
        let same = record.engine == self.engine && record.outcome.is_some() && record.setup == experiment.setup(job);
        same.then_some(record)
    }

    pub fn save(&self, experiment: &Experiment, job: &Job, record: &Record) -> Result<PathBuf, Failure> {
        let path = self.record_path(experiment, job);
        let parent = path.parent().expect("a record lies in the folder");
        fs::create_dir_all(parent)
            .and_then(|()| write_file(&path, &record.to_json()))
            .map_err(|error| cannot_write(&path, &error))?;
        Ok(path)
    }

    /// Writes what the benchmark itself would have written in a run.
    pub fn save_logs(&self, experiment: &Experiment, job: &Job, logs: &[(String, String)]) -> Result<(), Failure> {
        if logs.is_empty() {
            return Ok(());
        }
        let folder = self.folder.join("logs").join(experiment.record_name(job));
        fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
        for (name, text) in logs {
            let path = folder.join(format!("{}.log", file_name(name)));
            write_file(&path, text).map_err(|error| cannot_write(&path, &error))?;
        }
        Ok(())
    }

    /// Writes a report: `report.txt`, `.json` and `.csv`, or `report.partial.*` while runs are missing.
    pub fn report(&self, report: &Report) -> Result<(), Failure> {
        let stem = if report.progress.is_partial() { "report.partial" } else { "report" };
        for (ending, text) in [("txt", &report.text), ("json", &report.json), ("csv", &report.csv)] {
            let path = self.folder.join(format!("{stem}.{ending}"));
            write_file(&path, text).map_err(|error| cannot_write(&path, &error))?;
            if !report.progress.is_partial() {
                // It says less than what is there now.
                let _ = fs::remove_file(self.folder.join(format!("report.partial.{ending}")));
            }
        }
        Ok(())
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Mistake(format!("{}: cannot be written: {error}; expected a place for results: --out DIR", path.display()))
}

fn check_ours(folder: &Path, identity: &str) -> Result<(), Failure> {
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
                return Ok(());
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
        Some(other) if other == identity => Ok(()),
        Some(_) => refuse("the results of another experiment", "a new folder (--out DIR), or none: delete it"),
        None => refuse(&format!("a {MARK} that is not ours"), "a new folder: --out DIR"),
    }
}
