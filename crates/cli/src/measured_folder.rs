//! Folders of measurements: one record for each run, the report, and a file that marks an interrupted measurement.

use crate::failure::Failure;
use crate::files::Disk;
use crate::output::{folders_to_make, sweep, write_file, write_file_and_folders};
use lab::experiment::file_name;
use lab::machines::Files;
use lab::measured::{Host, Measured, MeasuredRecord};
use lab::mistake::{Location, Mistake};
use lab::setup::{Engine, WorkloadSetup};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const RECORDS: &str = "measured";
/// Lists what is being measured, as long as that lasts: it tells a later call what to continue.
const UNFINISHED: &str = "measured.unfinished";

/// How many digits of the hash stand in a folder's name that would be too long otherwise.
const HASH_DIGITS: usize = 12;

/// Where measurements are stored, in a new folder or with earlier ones. An interrupted measurement is continued. A new
/// one replaces an earlier one of the same workload, so that a folder holds one set.
pub struct Folder {
    path: PathBuf,
    /// The folders that were created for it, the outermost first.
    made: Vec<PathBuf>,
    /// What an interrupted measurement has left unfinished, and what this one measures: names below [`RECORDS`].
    unfinished: BTreeSet<String>,
    own: BTreeSet<String>,
    /// The files of the runs that this measurement takes over from an interrupted one.
    taken: BTreeSet<PathBuf>,
    begun: Cell<bool>,
}

impl Folder {
    /// Opens the folder. Also returns the runs of `workloads` that an interrupted measurement left there, at most so
    /// many of each: only those of this program on this host.
    pub fn open(
        path: &Path,
        workloads: &[&WorkloadSetup],
        host: &Host,
        iterations: u32,
    ) -> Result<(Folder, Vec<MeasuredRecord>), Failure> {
        let records = path.join(RECORDS);
        let foreign = !records.exists() && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if foreign || path.exists() && !path.is_dir() {
            let found =
                if foreign { "a folder that is not empty and holds no measurements" } else { "a file of that name" };
            return Err(Failure::Mistake(format!(
                "{}: found {found}; expected a new folder: --out DIR",
                path.display()
            )));
        }
        let made = folders_to_make(&records);
        fs::create_dir_all(&records).map_err(|error| cannot_write(&records, &error))?;
        sweep(path, &[RECORDS]);
        let list = fs::read_to_string(path.join(UNFINISHED)).unwrap_or_default();
        let mut folder = Folder {
            path: path.to_path_buf(),
            made,
            unfinished: list.lines().map(str::to_string).collect(),
            own: workloads.iter().map(|workload| name_of(workload)).collect(),
            taken: BTreeSet::new(),
            begun: Cell::new(false),
        };
        let mut found = Vec::new();
        for workload in workloads.iter().filter(|workload| folder.unfinished.contains(&name_of(workload))) {
            for iteration in 0..iterations {
                let path = folder.record_path(workload, iteration);
                let Some(record) = record_at(&path) else { continue };
                let same = record.engine == Engine::this() && record.host == *host && record.iteration == iteration;
                if same && record.workload == **workload {
                    folder.taken.insert(path);
                    found.push(record);
                }
            }
        }
        Ok((folder, found))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn record_path(&self, workload: &WorkloadSetup, iteration: u32) -> PathBuf {
        self.path.join(RECORDS).join(name_of(workload)).join(format!("{iteration:04}.json"))
    }

    /// Removes the folders that were created, because there is no result.
    pub fn discard(&self) {
        for made in self.made.iter().rev() {
            let _ = fs::remove_dir(made);
        }
    }

    /// From here on the earlier runs of these workloads are gone, except those that are taken over; so are the reports
    /// on them.
    fn begin(&self) -> Result<(), Failure> {
        if self.begun.replace(true) {
            return Ok(());
        }
        let list: String = self.unfinished.union(&self.own).map(|name| format!("{name}\n")).collect();
        let path = self.path.join(UNFINISHED);
        write_file(&path, &list).map_err(|error| cannot_write(&path, &error))?;
        for name in &self.own {
            let entries = fs::read_dir(self.path.join(RECORDS).join(name)).into_iter().flatten().flatten();
            for path in entries.map(|entry| entry.path()).filter(|path| !self.taken.contains(path)) {
                fs::remove_file(&path).map_err(|error| cannot_write(&path, &error))?;
            }
        }
        self.reports(false).into_iter().for_each(|(path, _)| drop(fs::remove_file(path)));
        Ok(())
    }

    pub fn store(&self, record: &MeasuredRecord) -> Result<(), Failure> {
        self.begin()?;
        let path = self.record_path(&record.workload, record.iteration);
        write_file_and_folders(&path, record.to_json()).map_err(|error| cannot_write(&path, &error))
    }

    /// The files of a report, text and JSON, followed by those of the other kind; the kinds are whole and partial.
    fn reports(&self, partial: bool) -> [(PathBuf, PathBuf); 2] {
        ["txt", "json"].map(|name| {
            let [whole, part] = ["", ".partial"].map(|part| self.path.join(format!("measured{part}.{name}")));
            if partial { (part, whole) } else { (whole, part) }
        })
    }

    /// Writes what was printed; if a part of the measurements is missing, under other names.
    pub fn report(&self, partial: bool, text: &str, json: &str) -> Result<(), Failure> {
        self.begin()?;
        for ((path, other), text) in self.reports(partial).into_iter().zip([text, json]) {
            write_file(&path, text).map_err(|error| cannot_write(&path, &error))?;
            // It reports on measurements that these have replaced.
            let _ = fs::remove_file(other);
        }
        if partial {
            return Ok(());
        }
        let others: String = self.unfinished.difference(&self.own).map(|name| format!("{name}\n")).collect();
        let path = self.path.join(UNFINISHED);
        let left = if others.is_empty() { fs::remove_file(&path) } else { write_file(&path, &others) };
        left.map_err(|error| cannot_write(&path, &error))
    }
}

/// A workload's folder below [`RECORDS`].
fn name_of(workload: &WorkloadSetup) -> String {
    let values: Vec<String> = workload.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let text = workload.file.as_ref().map_or(String::new(), |file| lab::hash::sha256(file.text.as_bytes()));
    let whole = format!("{}-{}{}", workload.name, values.join("-"), text.get(..8).unwrap_or_default());
    let plain = file_name(&whole);
    if plain.len() == whole.len() {
        return plain;
    }
    // The text that is cut off may distinguish workloads, so a hash replaces it.
    let hash = lab::hash::sha256(whole.as_bytes());
    format!("{}-{}", &plain[..plain.len() - HASH_DIGITS - 1], &hash[..HASH_DIGITS])
}

fn record_at(path: &Path) -> Option<MeasuredRecord> {
    let text = fs::read_to_string(path).ok()?;
    MeasuredRecord::parse(&text, &path.to_string_lossy()).ok()
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::unwritten(path.display(), error, "a place for measurements: --out DIR")
}

/// Reads a folder of measurements.
pub fn measured(folder: &str) -> Result<Measured, Failure> {
    let at = Location::of(&format!("--measured {folder}"));
    let expected = "a folder of `fairground measure --out DIR`";
    let records = Path::new(folder).join(RECORDS);
    let entries = |path: &Path, wanted: &dyn Fn(&PathBuf) -> bool| {
        let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
        let mut entries = entries.collect::<std::io::Result<Vec<PathBuf>>>()?;
        entries.retain(wanted);
        entries.sort();
        Ok::<_, std::io::Error>(entries)
    };
    // Only .json files are records: a killed measurement may leave half-written files, and some systems put files into
    // every folder.
    let is_record = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let wrong = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Mistake::new(&at, "no folder of measurements", expected),
        _ => Mistake::new(&at, error.to_string(), expected),
    };
    let list = fs::read_to_string(Path::new(folder).join(UNFINISHED)).unwrap_or_default();
    let (mut found, mut unfinished) = (Vec::new(), Vec::new());
    for place in entries(&records, &|path| path.is_dir()).map_err(wrong)? {
        let whole = !list.lines().any(|name| place.file_name().is_some_and(|place| place == name));
        let before = found.len();
        for path in entries(&place, &is_record).map_err(wrong)? {
            let path = path.display().to_string();
            let text = Disk.text(&path).map_err(|error| Mistake::file(&path, error, "a measurement"))?;
            found.push(MeasuredRecord::parse(&text, &path)?);
        }
        unfinished.extend(found[before..].first().filter(|_| !whole).map(|record| record.workload.clone()));
    }
    if found.is_empty() {
        return Err(Mistake::new(&at, "no measurement", expected).into());
    }
    Ok(Measured { from: folder.to_string(), records: found, unfinished })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn workload(parameters: &[(&str, u64)]) -> WorkloadSetup {
        WorkloadSetup {
            name: "schbench".to_string(),
            parameters: parameters.iter().map(|&(name, value)| (name.to_string(), value)).collect(),
            file: None,
            profile: Vec::new(),
        }
    }

    #[test]
    fn workloads_that_differ_in_anything_have_folders_of_their_own() {
        assert_eq!(name_of(&workload(&[("loops", 5)])), "schbench-loops-5");
        let long = "of_a_parameter_whose_name_leaves_no_room_for_another_one";
        let names = [1, 2].map(|workers| name_of(&workload(&[(long, 7), ("workers", workers)])));
        assert!(names[0] != names[1] && names.iter().all(|name| name.len() == 60), "{names:?}");
        let all: BTreeMap<String, u64> =
            (1..=1_000).map(|it| (name_of(&workload(&[(long, 7), ("w", it)])), it)).collect();
        assert_eq!(all.len(), 1_000);
    }
}
