//! Scripts as workloads: tasks in a few lines, from a file or from the experiment itself.

use super::draft::DraftWorkload;
use super::workload_table::{Point, Source, WorkloadTable};
use crate::machines::{Files, stem, within};
use crate::mistake::{Location, Mistake};
use crate::programs::{SCRIPT, script};
use crate::setup::FileSetup;
use crate::statistics::Better;
use crate::tables::Class;
use std::collections::BTreeMap;
use units::Ns;

/// Digits after the point, of milliseconds.
const DECIMALS: usize = 3;

/// Reads and checks a script. A run of it measures a row for each of its tasks: the time from its first step to its
/// end.
pub fn resolve(
    draft: &DraftWorkload,
    folder: &str,
    files: &dyn Files,
    nr_cpus: usize,
) -> Result<WorkloadTable, Mistake> {
    let file = read(draft, folder, files)?;
    let script = script(&file)?;
    let of_tasks = script
        .tasks
        .iter()
        .filter_map(|task| task.cpus.as_ref().map(|cpus| (cpus, task.place, format!("for the task `{}`", task.name))));
    let of_steps = script.affinities.iter().map(|it| (&it.cpus, it.place, "in a step".to_string()));
    for (cpus, (line, column), for_whom) in of_tasks.chain(of_steps) {
        if let Some(cpu) = cpus.iter().find(|cpu| cpu.index() >= nr_cpus) {
            let expected = format!("CPUs of the machine, 0 to {}", nr_cpus - 1);
            let at = Location { input: file.path.clone(), line: Some(line), column: Some(column) };
            return Err(Mistake::new(&at, format!("CPU {cpu} {for_whom}"), expected));
        }
    }
    Ok(WorkloadTable {
        title: Some(draft.title.as_ref().map_or_else(|| format!("{SCRIPT} {}", file.path), |title| title.text.clone())),
        source: Source::Script(file.clone()),
        parameters: BTreeMap::from([("file".to_string(), file.path.clone().into())]),
        points: vec![Point {
            name: stem(&file.path),
            operations: script.tasks.iter().map(|task| task.name.clone()).collect(),
            values: BTreeMap::new(),
        }],
        duration: Ns::ZERO,
        class: Class::Multiops,
        unit: "ms".to_string(),
        better: Better::Lower,
        per_unit: 1_000_000,
        decimals: DECIMALS,
        published: None,
        profile: None,
    })
}

/// Refuses the first memory that lies on a node which the machine does not have.
pub fn check_nodes(tables: &[WorkloadTable], nr_nodes: usize) -> Result<(), Mistake> {
    for table in tables {
        let Source::Script(file) = &table.source else { continue };
        for region in script(file)?.memory {
            if let Some(node) = region.spec.node.filter(|&node| usize::from(node) >= nr_nodes) {
                let (line, column) = region.place;
                let at = Location { input: file.path.clone(), line: Some(line), column: Some(column) };
                let found = format!("node {node} for the memory `{}`", region.name);
                return Err(Mistake::new(&at, found, format!("nodes of the machine, 0 to {}", nr_nodes - 1)));
            }
        }
    }
    Ok(())
}

/// The file that the parameter `file` names, or the text of `tasks`.
fn read(draft: &DraftWorkload, folder: &str, files: &dyn Files) -> Result<FileSetup, Mistake> {
    let [(key, values)] = &draft.parameters[..] else {
        let expected = "either file=path of a script, or in an experiment file tasks = \"\"\"...\"\"\"";
        return Err(draft.name.mistake("not one parameter of the script", expected));
    };
    match (key.text.as_str(), &values[..]) {
        ("file", [value]) if !value.text.is_empty() => {
            let path = within(if draft.in_file { folder } else { "" }, &value.text);
            let text = files.text(&path).map_err(|error| Mistake::file(&path, error, "a script (docs/scripts.md)"))?;
            // Some editors begin a file with an invisible mark; columns are counted without it.
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            Ok(FileSetup { path, text: text.into() })
        }
        ("tasks", [value]) if draft.in_file => {
            // Every line keeps its place in the experiment, and the first one its columns, so that mistakes point
            // there.
            let before = |counted: Option<u32>| counted.map_or(0, |from_one| from_one as usize - 1);
            let (lines, columns) = (before(value.at.line), before(value.at.column));
            let text = format!("{}{}{}", "\n".repeat(lines), " ".repeat(columns), value.text);
            Ok(FileSetup { path: value.at.input.clone(), text: text.into() })
        }
        ("file" | "tasks", _) => Err(key.mistake(format!("no text as {}", key.quoted()), "one text")),
        _ => Err(key.unknown("parameter", ["file", "tasks"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Draft, Purpose, parse};
    use crate::machines::tests::Table;
    use crate::mistake::Written;
    use crate::run::{Wanted, run};
    use std::cell::Cell;

    fn refusal(tasks: &str) -> String {
        let arm = "[[arm]]\nname = \"a\"\nkernel = \"v4.15\"\n";
        let text = format!("machine = \"core-i7-3770\"\n[[workload]]\nname = \"script\"\ntasks = {tasks}\n{arm}");
        let resolve = |draft: Draft| draft.resolve(Purpose::Single, &Table::default());
        parse(&text, "x.toml").and_then(resolve).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_in_an_experiments_script_are_where_they_stand() {
        for (tasks, place) in [
            ("\"\"\"\ntask a: run 1ms\ntask b: rnu 1ms\n\"\"\"", "x.toml:6:9: found `rnu`"),
            ("\"\"\"task a: rnu 1ms\n\"\"\"", "x.toml:4:20: found `rnu`"),
            ("'''\r\ntask a: rnu 1ms'''", "x.toml:5:9: found `rnu`"),
            ("\"task a: rnu 1ms\"", "x.toml:4:18: found `rnu`"),
            ("\"task a: run 1ms\\ntask b: rnu 1ms\"", "x.toml:4:9: found tasks with an escape sequence"),
            ("7", "x.toml:4:9: found tasks = 7; expected a text"),
            (
                "'''\nmemory m 1MB node=1\ntask a: touch m 1MB/s; run 1ms'''",
                "x.toml:5:14: found node 1 for the memory `m`",
            ),
        ] {
            let error = refusal(tasks);
            assert!(error.starts_with(place), "{error}");
        }
    }

    #[test]
    fn a_mark_before_the_text_of_a_file_is_no_part_of_it() {
        let refusal = |text: &str| {
            let files = Table(BTreeMap::from([("a.fg", text.to_string())]));
            let mut draft = Draft { machine: Some(Written::option("--machine", "1")), ..Draft::default() };
            draft.arm_options(&["v6.12".to_string()], true).expect("an arm");
            draft.workload_option("script:file=a.fg").expect("a workload");
            draft.resolve(Purpose::Single, &files).err().map(|mistake| mistake.to_string())
        };
        assert_eq!(refusal("\u{feff}task a: run 1ms\n"), None);
        let wrong = refusal("\u{feff}task a: rnu 1ms\n").expect("no such step");
        assert!(wrong.starts_with("a.fg:1:9: found `rnu`"), "{wrong}");
        // Anywhere else the mark is a mistake that must be reported.
        let wrong = refusal("task a: run 1ms\n\u{feff}task b: run 1ms\n").expect("a mark within");
        assert!(wrong.starts_with("a.fg:2:1: found `<U+FEFF>task`"), "{wrong}");
    }

    #[test]
    fn published_figures_stand_beside_a_scripts_tasks() {
        let with = |row: &str| {
            let text = format!(
                "machine = \"1\"\n[[workload]]\nname = \"script\"\ntasks = \"task a: run 1ms\"\n\
                 published = {{ source = \"s\", {row} = 1.5 }}\n[[arm]]\nname = \"a\"\nkernel = \"v6.12\"\n"
            );
            let resolve = |draft: Draft| draft.resolve(Purpose::Single, &Table::default());
            parse(&text, "x.toml").and_then(resolve).map_err(|mistake| mistake.to_string())
        };
        let experiment = with("a").unwrap();
        let published = experiment.tables[0].published.as_ref().expect("the column was given");
        assert_eq!((&published.source[..], &published.rows[..]), ("s", &[("a".to_string(), 1.5)][..]));
        let wrong = with("b").unwrap_err();
        assert!(wrong.starts_with("x.toml:5:29: found the row `b`, which the table does not have"), "{wrong}");
    }

    /// A run without costs of a task with such steps, which is given up at its second look whether to go on.
    fn ends(steps: &str) -> bool {
        let text = format!(
            "machine = \"core-i7-3770\"\ncosts = false\n[[workload]]\nname = \"script\"\ntasks = \"task a: {steps}\"\n\
             [[arm]]\nname = \"a\"\nkernel = \"v6.12\"\n"
        );
        let resolve = |draft: Draft| draft.resolve(Purpose::Single, &Table::default());
        let experiment = parse(&text, "x.toml").and_then(resolve).unwrap();
        let setup = experiment.setup(&experiment.jobs()[0]);
        let asked = Cell::new(0);
        let interrupted = || asked.replace(asked.get() + 1) == 1;
        let wanted = Wanted { interrupted: &interrupted, ..Wanted::default() };
        run(&setup, wanted, &Location::of("x.toml")).unwrap().is_some()
    }

    #[test]
    fn a_script_that_takes_no_time_can_be_interrupted() {
        // What is no call, and spins whose time has come.
        for steps in ["policy batch; policy normal", "spin 1ns"] {
            assert!(!ends(&format!("1000000 x (1000000 x ({steps}))")), "{steps}");
        }
    }

    #[test]
    fn so_many_execs_at_one_instant_need_no_stack() {
        assert!(ends("20000 x (exec)"));
    }
}
