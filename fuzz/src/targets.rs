//! The readers, each as a function of any bytes. See the crate's documentation.

use crate::{Target, seeds};
use lab::experiment::{Draft, Experiment, Purpose, parse as parse_experiment};
use lab::kernels::Build;
use lab::machines::{Files, Machine, Processor};
use lab::measured::MeasuredRecord;
use lab::mistake::{Location, Mistake, Unreadable, Written};
use lab::proc::ProcFile;
use lab::record::Record;
use lab::{prices, run, trace};
use machine::description::How;
use machine::topology::{Numbering, Topology, from_hwloc_xml, from_synthetic, from_sysfs, parse_list, parse_mask};
use std::borrow::Cow;
use std::collections::BTreeMap;
use workloads::rt_app::{self, Caches, Cores, Duplicates};
use workloads::script::Script;
use workloads::trace as recording;

pub const TARGETS: &[Target] = &[
    Target { name: "experiment", run: experiment, seeds: seeds::experiments, words: seeds::EXPERIMENT, cases: 500 },
    Target { name: "machine_file", run: machine_file, seeds: seeds::machine_files, words: seeds::MACHINE, cases: 600 },
    Target { name: "hwloc_xml", run: hwloc_xml, seeds: seeds::hwloc_xml, words: seeds::XML_WORDS, cases: 700 },
    Target { name: "synthetic", run: synthetic, seeds: seeds::synthetic, words: seeds::LEVELS, cases: 1_500 },
    Target { name: "sysfs", run: sysfs, seeds: seeds::sysfs, words: seeds::SYSFS, cases: 250 },
    Target { name: "cpu_sets", run: cpu_sets, seeds: seeds::cpu_sets, words: &["0x", "-", ",", "..."], cases: 10_000 },
    Target { name: "rt_app", run: rt_app, seeds: seeds::rt_app, words: seeds::RT_APP, cases: 10_000 },
    Target { name: "script", run: script, seeds: seeds::scripts, words: seeds::SCRIPT, cases: 10_000 },
    Target { name: "trace", run: trace, seeds: seeds::traces, words: seeds::TRACE, cases: 10_000 },
    Target { name: "arguments", run: arguments, seeds: seeds::arguments, words: seeds::ARGUMENTS, cases: 250 },
    Target { name: "record", run: record, seeds: seeds::records, words: seeds::RECORD, cases: 1_000 },
    Target { name: "measured", run: measured, seeds: seeds::measured, words: seeds::MEASURED, cases: 2_000 },
];

/// A small file's name in messages.
const FILE: &str = "dir/file";
/// How many setups of an experiment are made, and the most CPUs of a machine that is written out and read again.
const FEW: usize = 64;

/// An experiment file, with everything that is made from it before something runs.
pub fn experiment(data: &[u8]) {
    let text = text(data);
    let draft = match parse_experiment(&text, FILE) {
        Ok(draft) => draft,
        Err(mistake) => return told(&mistake, &text),
    };
    for purpose in [Purpose::Comparison, Purpose::Single, Purpose::Watch] {
        match draft.resolve(purpose, &Shelf) {
            Ok(experiment) => look_at(&experiment),
            Err(mistake) => told(&mistake, &text),
        }
    }
}

fn look_at(experiment: &Experiment) {
    let points: usize = experiment.tables.iter().map(|table| table.points.len()).sum();
    if points * experiment.arms.len() * experiment.iterations as usize > FEW {
        return;
    }
    assert_eq!(experiment.identity().len(), 64);
    let jobs = experiment.jobs();
    for job in [jobs[0], jobs[jobs.len() - 1]] {
        let setup = experiment.setup(&job);
        run::check(&setup, &Location::of("setup")).unwrap_or_else(|mistake| panic!("what is resolved runs: {mistake}"));
        assert!(!experiment.record_name(&job).is_empty() && !experiment.title(&job).is_empty());
    }
}

/// A machine file.
pub fn machine_file(data: &[u8]) {
    let text = text(data);
    match Machine::parse(&text, FILE) {
        Err(mistake) => told(&mistake, &text),
        Ok(machine) => {
            for kernel in ["v4.5-rc1", "v7.2"] {
                let prices = prices::prices(&machine.description, kernel);
                assert!(prices.ps_per_cycle > 0 && !prices.idle_states.is_empty());
            }
            assert!(machine.to_json().is_object());
            again(&machine, machine.description.topology());
        }
    }
}

/// A machine that is written out and read again is the same machine.
fn again(machine: &Machine, topology: &Topology) {
    if topology.nr_cpus() > FEW {
        return;
    }
    let text = machine.description.to_toml();
    let read = Machine::parse(&text, "again").unwrap_or_else(|mistake| panic!("{mistake}\n{text}"));
    let shape = |topology: &Topology| format!("{:?} {:?}", topology.cpu_topology(), topology.distances());
    assert_eq!(shape(read.description.topology()), shape(topology));
}

/// The output of `lstopo --of xml`.
pub fn hwloc_xml(data: &[u8]) {
    let text = text(data);
    match from_hwloc_xml(&text, FILE) {
        Ok(topology) => used(topology),
        Err(error) => told(&error.into(), &text),
    }
}

/// hwloc's synthetic notation.
pub fn synthetic(data: &[u8]) {
    let text = text(data);
    for numbering in [Numbering::AsListed, Numbering::LinuxX86] {
        match from_synthetic(&text, FILE, numbering) {
            Ok(topology) => used(topology),
            Err(error) => {
                let column = error.at.column.unwrap_or_else(|| panic!("{error}: no place"));
                assert!((1..=text.chars().count() as u32 + 1).contains(&column), "{error}");
                one_line(&error.into());
            }
        }
    }
}

/// Uses a topology as a machine: borrows prices, writes it out, and reads it again.
fn used(topology: Topology) {
    assert!(topology.nr_cpus() > 0);
    if topology.nr_cpus() <= FEW {
        let machine = Machine::of_topology("fuzz", topology, "the fuzzer", How::Guess, &Processor::default());
        again(&machine, machine.description.topology());
    }
}

/// A sysfs tree, one file to a line: `cpu/online 0-3`.
pub fn sysfs(data: &[u8]) {
    let text = text(data);
    let files: BTreeMap<String, &str> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(path, content)| (format!("sys/devices/system/{path}"), content))
        .collect();
    match from_sysfs(&|path| files.get(path).map(|content| content.to_string())) {
        Ok(topology) => used(topology),
        Err(error) => {
            assert!(error.at.input.starts_with("sys/devices/system"), "{error}");
            if let (Some(content), Some(column)) = (files.get(&error.at.input), error.at.column) {
                assert!((1..=content.chars().count() as u32 + 1).contains(&column), "{error}");
            }
            one_line(&error.into());
        }
    }
}

/// Lists and masks of CPUs.
pub fn cpu_sets(data: &[u8]) {
    let text = text(data);
    let columns = 1..=text.chars().count() as u32 + 1;
    match parse_list(&text) {
        Ok(set) => assert_eq!(parse_list(&set.list()).as_ref(), Ok(&set)),
        Err(error) => assert!(columns.contains(&error.column) && !error.found.is_empty(), "{error:?}"),
    }
    if let Err(error) = parse_mask(&text) {
        assert!(columns.contains(&error.column) && !error.found.is_empty(), "{error:?}");
    }
}

/// An rt-app file, read both ways.
pub fn rt_app(data: &[u8]) {
    let lines = data.split(|&byte| byte == b'\n').count() as u32;
    for duplicates in [Duplicates::Workgen, Duplicates::JsonC] {
        let read = rt_app::parse_bytes(data, FILE, duplicates).and_then(|app| {
            assert!(app.tasks.iter().all(|task| task.phases.iter().all(|phase| !phase.steps.is_empty())));
            rt_app::instance(app, Cores { nr_cpus: 8, ps_per_cycle: 333, caches: Caches::default() })
        });
        match read {
            Ok(app) => assert!(!app.operations().is_empty()),
            Err(error) => {
                assert!((1..=lines).contains(&error.position.line) && error.position.column >= 1, "{error}");
                one_line(&error.into());
            }
        }
    }
}

/// A recorded trace: text, Perfetto's packets, or stored scripts, which must be read back unchanged.
pub fn trace(data: &[u8]) {
    match recording::read(data) {
        Ok(replay) => {
            assert!(replay.nr_cpus() <= recording::MOST_CPUS && replay.tasks.len() <= recording::MOST_TASKS);
            assert!(replay.notice.line().is_none_or(|line| !line.contains('\n')));
            assert!(!replay.table().is_empty());
            let again = recording::read(replay.text().as_bytes())
                .unwrap_or_else(|error| panic!("{error:?}\n{}", replay.text()));
            assert_eq!(again.text(), replay.text());
        }
        Err(error) => {
            let (line, column) = error.place.unzip();
            let at = Location { input: FILE.to_string(), line, column };
            one_line(&Mistake::new(&at, error.found, error.expected));
        }
    }
}

/// A script of tasks.
pub fn script(data: &[u8]) {
    let text = text(data);
    match Script::parse(&text, 1) {
        Ok(script) => assert!(!script.tasks.is_empty()),
        Err(error) => {
            let at = Location { input: FILE.to_string(), line: Some(error.line), column: Some(error.column) };
            told(&Mistake::new(&at, error.found, error.expected), &text);
        }
    }
}

/// A kernel with the most files and tracepoints.
fn newest() -> Build {
    Build::named("v6.12").expect("a kernel that is built")
}

/// Options of the command line, one to a line: `--arm a=v4.15`.
pub fn arguments(data: &[u8]) {
    let text = text(data);
    let refused = |mistake: Mistake| {
        one_line(&mistake);
        let at = &mistake.at;
        assert!(at.input.starts_with("--") || at.line.is_some() || !at.input.is_empty(), "{mistake}");
    };
    let mut draft = Draft::default();
    let mut arms = Vec::new();
    for line in text.lines() {
        let (option, value) = line.split_once(' ').unwrap_or((line, ""));
        let written = || Written::option(option, value);
        let done = match option {
            "--machine" => {
                draft.machine_option(value);
                Ok(())
            }
            "--workload" => draft.workload_option(value),
            "--arm" => {
                arms.push(value.to_string());
                Ok(())
            }
            "--iterations" => {
                draft.iterations = Some(written());
                Ok(())
            }
            "--seed" => {
                draft.seed = Some(written());
                Ok(())
            }
            "--from" | "--to" | "--at" => trace::milliseconds(&written()).map(drop),
            "--file" => ProcFile::parse(&written(), &newest()).map(drop),
            "--events" => trace::events(&written(), &newest()).map(drop),
            _ => Ok(()),
        };
        if let Err(mistake) = done {
            return refused(mistake);
        }
    }
    if let Err(mistake) = draft.arm_options(&arms, false) {
        return refused(mistake);
    }
    for purpose in [Purpose::Comparison, Purpose::Watch] {
        match draft.resolve(purpose, &Shelf) {
            Ok(experiment) => look_at(&experiment),
            Err(mistake) => refused(mistake),
        }
    }
}

/// A stored run, up to where it would be run again.
pub fn record(data: &[u8]) {
    let text = text(data);
    match Record::parse(&text, FILE) {
        Err(mistake) => told(&mistake, &text),
        Ok(record) => {
            if let Err(mistake) = run::check(&record.setup, &Location::of(FILE)) {
                one_line(&mistake);
            }
        }
    }
}

/// A run measured on a real kernel.
pub fn measured(data: &[u8]) {
    let text = text(data);
    match MeasuredRecord::parse(&text, FILE) {
        Err(mistake) => told(&mistake, &text),
        // A record that is written out and read again is the same.
        Ok(record) => {
            let again = record.to_json();
            let read = MeasuredRecord::parse(&again, FILE).unwrap_or_else(|mistake| panic!("{mistake}\n{again}"));
            assert_eq!(read.to_json(), again);
        }
    }
}

fn text(data: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(data)
}

/// Mistakes about a file as a whole; all others give a position in it.
const WHOLE: &[&str] = &[
    "no machine",
    "no workload",
    "no arm",
    "2 arms",
    "3 arms",
    "4 arms",
    " arms",
    " runs",
    " bytes",
    "a record of format",
    "a measurement of format",
    "the record of a simulation",
    "CPU ",
    "the rows",
    "no CPUs",
    " packages",
    " NUMA nodes",
];

/// Checks that a mistake says where it is in the file, and what would be right.
fn told(mistake: &Mistake, text: &str) {
    one_line(mistake);
    let at = &mistake.at;
    if at.input != FILE {
        return;
    }
    let Some(line) = at.line else {
        assert!(WHOLE.iter().any(|whole| mistake.found.contains(whole)), "{mistake}: no place");
        return;
    };
    // A reader may count the end of the text as a line of its own.
    let of_line = text.split('\n').nth(line as usize - 1).unwrap_or_else(|| {
        assert_eq!(line as usize, text.split('\n').count() + 1, "{mistake}: no such line");
        ""
    });
    // Columns count characters. A reader that counts bytes must not go beyond the line either.
    let columns = of_line.len() as u32 + 1;
    assert!(at.column.is_none_or(|column| (1..=columns).contains(&column)), "{mistake}: no such column");
}

fn one_line(mistake: &Mistake) {
    let message = mistake.to_string();
    assert!(!message.contains(|c: char| c.is_control()), "{message:?} is no line");
    assert!(!mistake.found.is_empty() && !mistake.expected.is_empty(), "{message}");
    assert!(message.len() < 4_000, "{message} is too long");
}

/// The files that experiments and options may name, and a computer's sysfs.
#[derive(Default)]
struct Shelf;

impl Files for Shelf {
    fn text(&self, path: &str) -> Result<String, Unreadable> {
        let found = seeds::shelf().iter().find(|(name, _)| path.trim_start_matches("dir/") == *name);
        found.map(|(_, text)| text.to_string()).ok_or_else(|| "no such file".to_string().into())
    }

    fn sysfs(&self, path: &str) -> Option<String> {
        let path = path.strip_prefix("sys/devices/system/")?;
        let line = seeds::SYSFS_TREE.lines().find_map(|line| line.strip_prefix(path)?.strip_prefix(' '));
        line.map(str::to_string)
    }
}
