//! rt-app files as workloads.

use super::draft::DraftWorkload;
use super::workload_table::{Point, Source, WorkloadTable};
use crate::machines::{Files, stem};
use crate::mistake::{Location, Mistake, excerpt};
use crate::programs::application;
use crate::setup::FileSetup;
use crate::statistics::Better;
use crate::tables::Class;
use std::collections::BTreeMap;
use units::Ns;
use workloads::rt_app::{Application, Caches, Cores, RtApp, instance};

/// Digits after the point.
const DECIMALS: usize = 2;

/// Reads and checks a file: one run of it measures a row for each of its tasks.
pub fn resolve(
    draft: &DraftWorkload,
    folder: &str,
    files: &dyn Files,
    nr_cpus: usize,
    ends: bool,
    notices: &mut Vec<String>,
) -> Result<WorkloadTable, Mistake> {
    let file = read(draft, folder, files)?;
    let app = application(&file)?;
    notices.extend(app.warnings.iter().map(|warning| format!("{}:{warning}", file.path)));
    if ends && let Some(task) = app.endless_task() {
        let (line, column) = (Some(task.position.line), Some(task.position.column));
        let found = format!("the task \"{}\", which never ends", excerpt(&task.name, 40));
        let expected = "\"duration\" in \"global\", or a \"loop\" of 1 or more for every task and phase";
        return Err(Mistake::new(&Location { input: file.path.clone(), line, column }, found, expected));
    }
    let duration = app.global.duration_s.as_ref().map_or(0, |duration| u64::from(duration.value));
    // The time of a microsecond of work does not change which tasks there are to run, nor do caches.
    let app = instance(app, Cores { nr_cpus, ps_per_cycle: 1_000, caches: Caches::default() })?;
    Ok(WorkloadTable {
        title: Some(draft.title.as_ref().map_or_else(|| title(&file), |title| title.text.clone())),
        source: Source::RtApp(file.clone()),
        parameters: BTreeMap::from([("file".to_string(), file.path.clone().into())]),
        points: vec![Point { name: stem(&file.path), operations: app.operations(), values: BTreeMap::new() }],
        duration: Ns::from_ms(duration * 1_000),
        class: Class::Multiops,
        unit: RtApp::UNIT.to_string(),
        better: Better::Lower,
        per_unit: RtApp::PER_UNIT,
        decimals: DECIMALS,
        published: None,
        profile: None,
    })
}

/// Refuses files that name NUMA nodes which the machine does not have.
pub fn check_nodes(tables: &[WorkloadTable], nr_nodes: usize) -> Result<(), Mistake> {
    for table in tables {
        if let Source::RtApp(file) = &table.source {
            application(file)?.check_nodes(nr_nodes)?;
        }
    }
    Ok(())
}

fn title(file: &FileSetup) -> String {
    format!("{} {}", RtApp::NAME, file.path)
}

/// Reads an rt-app file to run it on a real kernel.
///
/// # Errors
/// What is wrong with it, with its place.
pub fn rt_app_file(file: &FileSetup) -> Result<Application, Mistake> {
    Ok(application(file)?)
}

/// Reads the file that the parameter `file` names.
fn read(draft: &DraftWorkload, folder: &str, files: &dyn Files) -> Result<FileSetup, Mistake> {
    let path = draft.path_of_file(folder, "its JSON description")?;
    let text = files.text(&path).map_err(|error| Mistake::file(&path, error, "an rt-app file (JSON)"))?;
    // As in scripts: some editors begin a file with an invisible mark; columns are counted without it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(FileSetup { path, text: text.into() })
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Draft, Purpose};
    use crate::machines::tests::Table;
    use crate::mistake::Written;
    use std::collections::BTreeMap;

    #[test]
    fn a_mark_before_the_text_of_a_file_is_no_part_of_it() {
        let refusal = |text: &str| {
            let files = Table(BTreeMap::from([("a.json", text.to_string())]));
            let mut draft = Draft { machine: Some(Written::option("--machine", "1")), ..Draft::default() };
            draft.arm_options(&["v6.12".to_string()], true).expect("an arm");
            draft.workload_option("rt-app:file=a.json").expect("a workload");
            draft.resolve(Purpose::Single, &files).err().map(|mistake| mistake.to_string())
        };
        assert_eq!(refusal("\u{feff}{\"tasks\": {\"a\": {\"loop\": 1, \"run\": 1000}}}"), None);
        let wrong = refusal("\u{feff}{\"task\": {}}").expect("no such section");
        assert!(wrong.starts_with("a.json:1:2: "), "{wrong}");
        // Anywhere else the mark is a mistake that must be reported.
        let wrong = refusal("{\u{feff}\"tasks\": {}}").expect("a mark within");
        assert!(wrong.starts_with("a.json:1:2: ") && wrong.contains("a byte order mark"), "{wrong}");
    }
}
