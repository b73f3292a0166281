//! Recorded traces as workloads.

use super::draft::DraftWorkload;
use super::workload_table::{Point, Source, WorkloadTable};
use crate::machines::{Files, stem};
use crate::mistake::{Location, Mistake};
use crate::programs::{TRACE, mistake};
use crate::setup::FileSetup;
use crate::statistics::Better;
use crate::tables::Class;
use std::collections::BTreeMap;
use units::Ns;
use workloads::trace::{self, Replay};

/// Digits after the point, of microseconds.
const DECIMALS: usize = 2;

/// Reads a recording and makes scripts of it; the scripts are what is stored. A run of them measures one row for each
/// figure.
pub fn resolve(
    draft: &DraftWorkload,
    folder: &str,
    files: &dyn Files,
    nr_cpus: usize,
    notices: &mut Vec<String>,
) -> Result<WorkloadTable, Mistake> {
    let (path, bytes, replay) = read(draft, folder, files)?;
    if replay.nr_cpus() > nr_cpus {
        let task = replay.tasks.iter().find(|task| task.cpu as usize >= nr_cpus).expect("one has the highest");
        let found = format!("CPU {} for the task `{}`", task.cpu, task.name);
        let (line, column) = trace::place_of_cpu(&bytes, task.cpu, &task.name).unzip();
        let expected = format!("a recording of the machine's CPUs, 0 to {}", nr_cpus - 1);
        return Err(Mistake::new(&Location { input: path, line, column }, found, expected));
    }
    notices.extend(replay.notice.line().map(|line| format!("{path}: {line}")));
    Ok(WorkloadTable {
        title: Some(draft.title.as_ref().map_or_else(|| format!("{TRACE} {path}"), |title| title.text.clone())),
        parameters: BTreeMap::from([("file".to_string(), path.clone().into())]),
        points: vec![Point {
            name: stem(&path),
            operations: replay.table().into_iter().map(|row| row.label).collect(),
            values: BTreeMap::new(),
        }],
        duration: Ns(replay.end.0 * 2),
        source: Source::Trace(FileSetup { path, text: replay.text().into() }),
        class: Class::Singleops { figure: "Time".to_string() },
        unit: "us".to_string(),
        better: Better::Lower,
        per_unit: 1_000,
        decimals: DECIMALS,
        published: None,
        profile: None,
    })
}

/// Reads the file that the parameter `file` names.
fn read(draft: &DraftWorkload, folder: &str, files: &dyn Files) -> Result<(String, Vec<u8>, Replay), Mistake> {
    let path = draft.path_of_file(folder, "a recorded trace")?;
    let expected = "a recorded trace: of Perfetto, or the text of trace-cmd report or perf script";
    let bytes = files.bytes(&path).map_err(|error| Mistake::file(&path, error, expected))?;
    let replay = trace::read(&bytes).map_err(|error| mistake(&path, error))?;
    Ok((path, bytes, replay))
}
