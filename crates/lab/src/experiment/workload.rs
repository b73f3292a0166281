//! The workloads of an experiment: their parameters, and how a list of values makes several rows or tables.

use super::draft::DraftWorkload;
use super::workload_table::{Point, Source, WorkloadTable};
use crate::machines::Files;
use crate::mistake::{Mistake, Written, excerpt};
use crate::mmtests::{Vintage, compares_time};
use crate::programs::{RT_APP, SCRIPT, TRACE};
use crate::statistics::Better;
use crate::tables::{Class, Published};
use serde_json::Value;
use std::collections::BTreeMap;
use units::Ns;
use workloads::{Parameter, Summary, Values, Workload};

/// The most values of one parameter.
const MOST_VALUES: usize = 10_000;
/// The most tables that the lists of one workload make.
const MOST_TABLES: u64 = 1_000;

/// The bounds of a published figure, in its table's unit: with them, differences in per cent have only a few digits.
const LEAST_PUBLISHED: f64 = 1e-9;
const MOST_PUBLISHED: f64 = 1e15;

/// Reads a published column, whose rows must be `known`.
fn read_published(draft: &[(Written, Written)], known: &dyn Fn(&str) -> bool) -> Result<Option<Published>, Mistake> {
    let Some((first, _)) = draft.first() else { return Ok(None) };
    let mut source = None;
    let mut rows = Vec::new();
    for (row, figure) in draft {
        if row.text == "source" {
            source = Some(figure.text.clone());
            continue;
        }
        if !known(&row.text) {
            let found = format!("the row {}, which the table does not have", row.quoted());
            return Err(row.mistake(found, "a label of a row"));
        }
        match figure.text.parse::<f64>() {
            Ok(value) if (LEAST_PUBLISHED..=MOST_PUBLISHED).contains(&value) => rows.push((row.text.clone(), value)),
            _ => {
                let expected = format!("a number from {LEAST_PUBLISHED:e} to {MOST_PUBLISHED:e}");
                return Err(figure.mistake(format!("{} = {}", row.text, figure.quoted()), expected));
            }
        }
    }
    let source = source.ok_or_else(|| first.mistake("published figures without a source", "source = \"...\""))?;
    Ok(Some(Published { source, rows }))
}

/// Checks the published columns of tables of times, whose rows depend on the vintage.
pub fn check_times(drafts: &[DraftWorkload], tables: &[WorkloadTable], vintage: Vintage) -> Result<(), Mistake> {
    let of = |draft: &DraftWorkload, table: &WorkloadTable| table.source.name() == draft.name.text;
    let is_timed = |table: &&WorkloadTable| table.class == Class::Variabletime;
    let timed = drafts.iter().filter(|draft| tables.iter().filter(is_timed).any(|table| of(draft, table)));
    let other = |row: &Written| row.text != "source" && !compares_time(vintage, &row.text);
    match timed.flat_map(|draft| &draft.published).find(|(row, _)| other(row)) {
        Some((row, _)) => {
            let found = format!("the row {}, which the table does not have as MMTests printed it then", row.quoted());
            Err(row.mistake(found, "a row of it, or another [report] vintage"))
        }
        None => Ok(()),
    }
}

/// Refuses a table with a row that one `before` has, too: reports and samples have nothing to tell the two apart by.
pub fn check_apart(draft: &DraftWorkload, table: &WorkloadTable, before: &[WorkloadTable]) -> Result<(), Mistake> {
    fn rows(table: &WorkloadTable) -> impl Iterator<Item = &String> {
        table.points.iter().flat_map(|point| &point.operations)
    }
    let alike: Vec<&WorkloadTable> = before.iter().filter(|other| other.is_titled_as(table)).collect();
    let is_there = |row: &&String| alike.iter().any(|other| rows(other).any(|it| it == *row));
    let Some(row) = rows(table).find(is_there) else { return Ok(()) };
    let (name, row) = (draft.name.quoted(), excerpt(row, 40));
    let (found, once) = match rows(table).all(|row| is_there(&row)) {
        true => (format!("the workload {name} for the second time"), "each workload once"),
        false => (format!("the row `{row}` of {name} for the second time"), "each row once"),
    };
    let or = if draft.in_file { ", or with a `title` that tells its table from the first one's" } else { "" };
    Err(draft.name.mistake(found, format!("{once}{or}")))
}

/// Every workload, by name.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    workloads::all().map(|workload| workload.name).chain([RT_APP, SCRIPT, TRACE])
}

/// Checks a workload and makes its tables: a list for the key parameter makes rows, a list for another one makes
/// tables. With `ends`, the workload must end by itself. Oddities that can run go to `notices`.
pub fn resolve(
    draft: &DraftWorkload,
    folder: &str,
    files: &dyn Files,
    nr_cpus: usize,
    ends: bool,
    notices: &mut Vec<String>,
) -> Result<Vec<WorkloadTable>, Mistake> {
    if let (RT_APP | SCRIPT | TRACE, Some(profile)) = (draft.name.text.as_str(), &draft.profile) {
        let found = format!("the profile {} of {}", profile.title.quoted(), draft.name.text);
        return Err(profile.title.mistake(found, "a workload by its name: of a file, see fairground profile"));
    }
    let of_file = match draft.name.text.as_str() {
        RT_APP => Some(super::rt_app::resolve(draft, folder, files, nr_cpus, ends, notices)?),
        SCRIPT => Some(super::script::resolve(draft, folder, files, nr_cpus)?),
        TRACE => Some(super::trace::resolve(draft, folder, files, nr_cpus, notices)?),
        _ => None,
    };
    if let Some(table) = of_file {
        let published = read_published(&draft.published, &|label| table.has_row(label))?;
        return Ok(vec![WorkloadTable { published, ..table }]);
    }
    let Some(workload) = workloads::workload(&draft.name.text) else {
        return Err(draft.name.unknown("workload", names()));
    };
    let mut lists: Vec<Vec<u64>> = workload.parameters.iter().map(|parameter| vec![parameter.default]).collect();
    for (index, (key, values)) in draft.parameters.iter().enumerate() {
        let Some(at) = workload.parameters.iter().position(|parameter| parameter.name == key.text) else {
            return Err(key.unknown("parameter", workload.parameters.iter().map(|parameter| parameter.name)));
        };
        if draft.parameters[..index].iter().any(|(other, _)| other.text == key.text) {
            return Err(
                key.mistake(format!("the parameter {} for the second time", key.quoted()), "each parameter once")
            );
        }
        lists[at] = read_values(&workload.parameters[at], key, values)?;
        for (written, &value) in values.iter().zip(&lists[at]) {
            check_cpus(workload, key, written, value, nr_cpus)?;
        }
    }
    let is_key = |at: usize| workload.key == Some(workload.parameters[at].name);
    let varied = (0..lists.len()).filter(|&at| !is_key(at));
    let tables = varied.fold(1, |tables: u64, at| tables.saturating_mul(lists[at].len() as u64));
    if tables > MOST_TABLES {
        let found = format!("lists that make {tables} tables");
        return Err(draft.name.mistake(found, format!("at most {MOST_TABLES}")));
    }
    let table = |choice: Vec<u64>| {
        let table = table(workload, draft.title.as_ref(), &lists, &choice);
        let published = read_published(&draft.published, &|label| table.has_row(label))?;
        let profile = draft.profile.as_ref().map(|profile| super::profile::resolve(profile, &table)).transpose()?;
        Ok(WorkloadTable { published, profile, ..table })
    };
    choices(workload, &lists).into_iter().map(table).collect()
}

/// All combinations of the parameters' values. The key parameter is not varied; its first value stands in its place.
fn choices(workload: &Workload, lists: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let mut choices = vec![Vec::new()];
    for (parameter, list) in workload.parameters.iter().zip(lists) {
        let list = if workload.key == Some(parameter.name) { &list[..1] } else { &list[..] };
        choices = choices
            .into_iter()
            .flat_map(|choice: Vec<u64>| list.iter().map(move |&value| choice.iter().copied().chain([value]).collect()))
            .collect();
    }
    choices
}

fn table(workload: &'static Workload, title: Option<&Written>, lists: &[Vec<u64>], choice: &[u64]) -> WorkloadTable {
    let named = || workload.parameters.iter().map(|parameter| parameter.name);
    let values: BTreeMap<String, u64> = named().map(str::to_string).zip(choice.iter().copied()).collect();
    let point = |label: String, values| {
        let named = |row: &&str| if workload.key.is_some() { format!("{row}-{label}") } else { row.to_string() };
        let operations = match workload.rows {
            [] => vec![label.clone()],
            rows => rows.iter().map(named).collect(),
        };
        Point { name: label, operations, values }
    };
    let points = match workload.key {
        None => vec![point(workload.operation.to_string(), values.clone())],
        Some(key) => {
            let at = named().position(|name| name == key).expect("the key is a parameter");
            let of = |&value: &u64| {
                let mut values = values.clone();
                values.insert(key.to_string(), value);
                point(value.to_string(), values)
            };
            lists[at].iter().map(of).collect()
        }
    };
    let shared = values.iter().filter(|(name, _)| workload.key != Some(name.as_str()));
    // The parameters that distinguish tables of one workload are part of their titles.
    let varied = workload.parameters.iter().zip(lists).zip(choice);
    let varied: Vec<String> = varied
        .filter(|((parameter, list), _)| list.len() > 1 && workload.key != Some(parameter.name))
        .map(|((parameter, _), value)| format!(" {}={value}", parameter.name))
        .collect();
    let given = title.map(|title| title.text.clone());
    let title = match (given, varied.is_empty()) {
        (given, true) => given,
        (given, false) => Some(given.unwrap_or_else(|| workload.name.to_string()) + &varied.concat()),
    };
    let (class, better) = match workload.statistics {
        Summary::Time => (Class::Multiops, Better::Lower),
        Summary::Rate => (Class::Multiops, Better::Higher),
        Summary::NormalisedTime => (Class::Normalisedops, Better::Lower),
        Summary::NormalisedRate => (Class::Normalisedops, Better::Higher),
        Summary::SkewedTime => (Class::LeftSkewops, Better::Lower),
        Summary::SkewedRate => (Class::LeftSkewops, Better::Higher),
        Summary::Variabletime => (Class::Variabletime, Better::Lower),
        Summary::TimeFigure(figure) => (Class::Singleops { figure: figure.to_string() }, Better::Lower),
        Summary::RateFigure(figure) => (Class::Singleops { figure: figure.to_string() }, Better::Higher),
    };
    WorkloadTable {
        title,
        source: Source::Registered(workload.name),
        parameters: shared.map(|(name, &value)| (name.clone(), Value::from(value))).collect(),
        points,
        duration: Ns::ZERO,
        class,
        unit: workload.unit.to_string(),
        better,
        per_unit: workload.per_unit,
        decimals: workload.decimals,
        published: None,
        profile: None,
    }
}

/// Refuses parameter values that ask for CPUs by number which the machine does not have.
fn check_cpus(
    workload: &Workload,
    key: &Written,
    written: &Written,
    value: u64,
    nr_cpus: usize,
) -> Result<(), Mistake> {
    let mut values = Values::defaults(workload);
    values.set(&key.text, value);
    match (workload.build)(&values).last_cpu() {
        Some(cpu) if cpu.index() >= nr_cpus => {
            let found = format!("{} = {value}, which asks for CPU {}", key.text, cpu.0);
            let has = if nr_cpus == 1 { "CPU 0 alone".into() } else { format!("CPUs 0 to {}", nr_cpus - 1) };
            Err(written.mistake(found, format!("CPUs of the machine, which has {has}")))
        }
        _ => Ok(()),
    }
}

fn read_values(parameter: &Parameter, key: &Written, values: &[Written]) -> Result<Vec<u64>, Mistake> {
    if values.is_empty() || values.len() > MOST_VALUES {
        let found = if values.is_empty() { "no value" } else { "too many values" };
        return Err(key.mistake(format!("{found} of {}", key.quoted()), format!("1 to {MOST_VALUES}")));
    }
    let mut numbers = Vec::new();
    for value in values {
        let (low, high) = parameter.range;
        let number = match (value.text.as_str(), parameter.unit) {
            ("true", "bool") => 1,
            ("false", "bool") => 0,
            _ => value.whole(parameter.name, low, high)?,
        };
        if numbers.contains(&number) {
            let found = format!("{} = {number} for the second time", parameter.name);
            return Err(value.mistake(found, "each value once"));
        }
        numbers.push(number);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Draft, Purpose};
    use crate::machines::tests::Table;
    use crate::mistake::Written;

    /// The message for a workload's option on some machine, which is not read; `None` if the option is accepted.
    fn refusal(option: &str) -> Option<String> {
        let mut draft = Draft::default();
        let refused = draft.workload_option(option).and_then(|()| draft.tables(8, &Table::default(), &mut Vec::new()));
        refused.err().map(|mistake| mistake.to_string())
    }

    fn refusal_on(machine: &str, option: &str) -> Option<String> {
        let mut draft = Draft { machine: Some(Written::option("--machine", machine)), ..Draft::default() };
        draft.arm_options(&["v4.15".to_string()], false).expect("an arm");
        let refused = draft.workload_option(option).and_then(|()| draft.resolve(Purpose::Single, &Table::default()));
        refused.err().map(|mistake| mistake.to_string())
    }

    #[test]
    fn every_parameter_of_every_workload_is_held_to_its_range() {
        for workload in workloads::WORKLOADS {
            for (at, parameter) in workload.parameters.iter().enumerate() {
                let (low, high) = parameter.range;
                let of = |value: &str| refusal(&format!("{}:{}={value}", workload.name, parameter.name));
                let range = format!("a whole number from {low} to {high}");
                let below = low.checked_sub(1).map(|below| below.to_string());
                let above = (u128::from(high) + 1).to_string();
                // Text that is no number is rejected by one function for all.
                let odd = ["-1", "1.5", "many", "99999999999999999999999"].map(str::to_string);
                let odd = odd.into_iter().filter(|_| at == 0);
                for value in below.into_iter().chain([above]).chain(odd) {
                    let said = of(&value).unwrap_or_else(|| panic!("{} {} = {value}", workload.name, parameter.name));
                    assert!(said.contains(&range) && said.contains(parameter.name), "{said}");
                }
            }
            // A misspelled name, one letter too long.
            let Some(parameter) = workload.parameters.first() else { continue };
            let said = refusal(&format!("{}:{}x=1", workload.name, parameter.name)).expect("no such parameter");
            assert!(said.contains(&format!("`{}`", parameter.name)), "{said}");
            let said = refusal(&format!("{}x", workload.name)).expect("no such workload");
            assert!(said.contains(&format!("`{}`", workload.name)), "{said}");
        }
    }

    #[test]
    fn lists_make_at_most_so_many_tables() {
        let list = (10..4106).map(|value| value.to_string()).collect::<Vec<_>>().join("+");
        // 2^64 of them, which 64 bits do not hold, and 2^24.
        let five = ["task_cycles", "young_mib", "gc_pause", "settle", "steady"].map(|name| format!("{name}={list}"));
        let groups = (1..=16).map(|value| value.to_string()).collect::<Vec<_>>().join("+");
        for option in
            [format!("specjbb:{},groups={groups}", five.join(",")), format!("specjbb:{}", five[..2].join(","))]
        {
            let said = refusal(&option).expect("too many");
            assert!(said.contains("found lists that make ") && said.contains("expected at most 1000"), "{said}");
        }
    }

    #[test]
    fn cpus_that_a_machine_lacks_are_refused() {
        for workload in ["netperf-udp", "netperf-tcp-rr", "pipetest"] {
            let of = |cpus, bind| refusal_on(&format!("core:{cpus} pu:1"), &format!("{workload}:bind={bind}"));
            let expected = "found bind = 2, which asks for CPU 1; expected CPUs of the machine, which has CPU 0 alone";
            let said = of(1, "0+1+2").expect("there is no CPU 1");
            let column = workload.len() + 1 + "bind=0+1+".len() + 1;
            assert!(said.contains(expected) && said.contains(&format!("column {column}")), "{said}");
            assert_eq!((of(1, "0+1"), of(2, "0+1+2")), (None, None));
        }
    }

    /// The project's own checks print this experiment's table again.
    #[test]
    fn one_committed_experiment_has_every_benchmark() {
        let text = include_str!("../../../../experiments/benchmarks.toml");
        for workload in workloads::WORKLOADS {
            assert!(text.contains(&format!("\nname = \"{}\"\n", workload.name)), "{} is not in it", workload.name);
        }
    }

    #[test]
    fn the_readme_has_a_line_for_each_benchmark() {
        let readme = include_str!("../../../../README.md");
        let section = readme.split_once("--workload W").expect("the command").1;
        let section = section.split_once("| your tasks |").expect("the last row").0;
        let options: Vec<&str> =
            section.split('`').filter(|part| part.contains(|c: char| c.is_ascii_lowercase())).collect();
        for workload in workloads::WORKLOADS {
            let option = options.iter().find(|option| option.split(':').next() == Some(workload.name));
            let option = option.unwrap_or_else(|| panic!("no line for {}", workload.name));
            let mut draft = Draft { machine: Some(Written::option("--machine", "core-i7-3770")), ..Draft::default() };
            draft.arm_options(&["v4.15".to_string(), "v6.12".to_string()], false).expect("two arms");
            draft.workload_option(option).unwrap_or_else(|mistake| panic!("{mistake}"));
            draft.resolve(Purpose::Comparison, &Table::default()).unwrap_or_else(|mistake| panic!("{mistake}"));
        }
    }
}
