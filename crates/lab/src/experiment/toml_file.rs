//! Experiment files: TOML in, [`Draft`] out. `docs/experiments.md` describes them, `docs/experiment.schema.json` is their schema.

use super::draft::{
    Draft, DraftAction, DraftArm, DraftChange, DraftFigure, DraftProfile, DraftSetting, DraftWorkload, SettingKind,
};
use crate::mistake::{Mistake, Written, excerpt, listed};
use crate::programs::SCRIPT;
use machine::description::nearest_name;
use machine::topology::Location;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) const TOP: &[&str] = &[
    "name",
    "about",
    "machine",
    "iterations",
    "seed",
    "hz",
    "costs",
    "time_limit_ms",
    "report",
    "workload",
    "arm",
    "timeline",
    "recording",
    "figure",
];
pub(super) const ARM: &[&str] =
    &["name", "kernel", "hz", "config", "cmdline", "sysctl", "features", "behaviour", "cpufreq", "powercap"];
pub(super) const FIGURE: &[&str] = &["of", "figure", "among", "over", "real", "within", "within_percent", "gap"];
pub(super) const MOMENT: &[&str] = &[
    "at",
    "arms",
    "sysctl",
    "features",
    "offline",
    "online",
    "partitions",
    "cpufreq",
    "cpuidle",
    "cpu_dma_latency",
    "cgroup",
];
/// Those of them that do something.
const CHANGES: &str = "sysctl, features, offline, online, partitions, cpufreq, cpuidle, cpu_dma_latency or cgroup";
/// What cannot change while a kernel runs.
const ARM_ONLY: &[&str] = &["hz", "config", "cmdline", "behaviour", "kernel"];
/// Texts whose line breaks are allowed, because they are not printed as they stand.
const OF_SEVERAL_LINES: &[&str] = &["about", "cmdline"];
const LARGEST_FILE: usize = 1 << 20;
/// The TOML crate's message for a key that exists already.
const DUPLICATE: &str = "duplicate key";

/// Reads the text of an experiment file. `path` names it in messages; paths in it are relative to its folder.
pub fn parse(text: &str, path: &str) -> Result<Draft, Mistake> {
    let source = Source { text, path };
    if text.len() > LARGEST_FILE {
        let found = format!("{} bytes", text.len());
        return Err(Mistake::new(&Location::of(path), found, "an experiment of at most 1 MiB"));
    }
    let document = DeTable::parse(text).map_err(|error| source.no_toml(&error))?;
    let root = Table::new(source, "the file", 0..0, document.get_ref());
    root.only(TOP)?;
    let mut draft = Draft {
        name: root.text("name")?,
        about: root.text("about")?,
        folder: folder_of(path).to_string(),
        machine: root.text("machine")?,
        machine_in_file: true,
        iterations: root.iterations()?,
        seed: root.number("seed")?,
        hz: root.number("hz")?,
        costs: root.boolean("costs")?,
        time_limit_ms: root.number("time_limit_ms")?,
        ..Draft::default()
    };
    if let Some(report) = root.table("report")? {
        report.only(&["vintage", "stars", "ratio"])?;
        (draft.vintage, draft.stars) = (report.text("vintage")?, report.text("stars")?);
        draft.ratio = report.boolean("ratio")?;
    }
    for table in root.tables("workload")? {
        draft.workloads.push(workload(&table)?);
    }
    for table in root.tables("arm")? {
        draft.arms.push(arm(&table)?);
    }
    for table in root.tables("timeline")? {
        draft.timeline.push(moment(&table)?);
    }
    draft.recording = root.text("recording")?;
    for table in root.tables("figure")? {
        draft.figures.push(figure(&table)?);
    }
    Ok(draft)
}

/// A moment of the timeline, with its actions in the order of the text.
fn moment(table: &Table) -> Result<DraftChange, Mistake> {
    if let Some(entry) = table.entries.iter().find(|entry| ARM_ONLY.contains(&entry.name)) {
        let found = format!("`{}` in {}", entry.name, table.title);
        let expected = format!("what can change while a kernel runs: {CHANGES}");
        return Err(Mistake::new(&table.source.at(entry.name_span.start), found, expected));
    }
    table.only(MOMENT)?;
    let mut actions = Vec::new();
    for entry in &table.entries {
        match entry.name {
            "sysctl" => {
                let settings = table.table("sysctl")?.expect("the entry is there").leaves()?;
                actions.extend(settings.into_iter().map(|(key, value)| DraftAction::Sysctl { key, value }));
            }
            "features" => actions.extend(table.texts("features")?.into_iter().map(DraftAction::Feature)),
            "offline" => actions.push(DraftAction::Offline(table.plain(entry.name, entry.value)?)),
            "online" => actions.push(DraftAction::Online(table.plain(entry.name, entry.value)?)),
            "partitions" => actions.push(DraftAction::Partitions(table.texts("partitions")?)),
            "cpufreq" => {
                let settings = table.table("cpufreq")?.expect("the entry is there").leaves()?;
                actions.extend(settings.into_iter().map(|(key, value)| DraftAction::Cpufreq { key, value }));
            }
            "cpuidle" => {
                let settings = table.table("cpuidle")?.expect("the entry is there").leaves()?;
                actions.extend(settings.into_iter().map(|(key, value)| DraftAction::Cpuidle { key, value }));
            }
            "cpu_dma_latency" => actions.push(DraftAction::CpuDmaLatency(table.plain(entry.name, entry.value)?)),
            "cgroup" => group_files(&table.table("cgroup")?.expect("the entry is there"), &mut actions)?,
            _ => {}
        }
    }
    let at = table.required("at", "when, from the start of the workload, such as at = \"500ms\"")?;
    if actions.is_empty() {
        return Err(at.mistake(format!("nothing to do at {}", at.quoted()), CHANGES));
    }
    let arms = table.get("arms").map(|_| table.texts("arms")).transpose()?;
    if let Some(value) = table.get("arms").filter(|_| arms.as_ref().is_some_and(Vec::is_empty)) {
        let found = format!("no arm in the `arms` of {}", at.quoted());
        let expected = "one or more of the arms, or no `arms` where it happens in all";
        return Err(Mistake::new(&table.source.at(value.span().start), found, expected));
    }
    Ok(DraftChange { at, arms, actions })
}

/// `cgroup = { "/web" = { "cpu.max" = "50000 100000" } }`
fn group_files(groups: &Table, actions: &mut Vec<DraftAction>) -> Result<(), Mistake> {
    for group in &groups.entries {
        let path = groups.source.written(group.name_span.clone(), group.name);
        let Some(files) = groups.table(group.name)? else { continue };
        for (file, text) in files.leaves()? {
            actions.push(DraftAction::Group { path: path.clone(), file, text });
        }
    }
    Ok(())
}

fn figure(table: &Table) -> Result<DraftFigure, Mistake> {
    table.only(FIGURE)?;
    let number = |name: &str| table.get(name).map(|value| table.plain(name, value)).transpose();
    Ok(DraftFigure {
        of: table.required("of", "the task's name, such as of = \"hog0\"")?,
        figure: table.required("figure", "what is measured, such as figure = \"share\"")?,
        among: table.text("among")?,
        over: table.text("over")?,
        real: number("real")?,
        within: number("within")?,
        within_percent: number("within_percent")?,
        gap: table.text("gap")?,
    })
}

fn workload(table: &Table) -> Result<DraftWorkload, Mistake> {
    let name = table.required("name", "the workload's name, such as name = \"pipetest\"")?;
    let mut parameters = Vec::new();
    for entry in table.entries.iter().filter(|entry| !["name", "title", "published", "profile"].contains(&entry.name)) {
        let values = match entry.value.get_ref() {
            DeValue::Array(values) => values.iter().collect(),
            _ => vec![entry.value],
        };
        let read = |value| match value_is_script(&name.text, entry.name) {
            true => table.literal(entry.name, value),
            false => table.plain(entry.name, value),
        };
        let values = values.into_iter().map(read).collect::<Result<_, _>>()?;
        parameters.push((table.source.written(entry.name_span.clone(), entry.name), values));
    }
    let mut published = Vec::new();
    if let Some(column) = table.table("published")? {
        for entry in &column.entries {
            let row = column.source.written(entry.name_span.clone(), entry.name);
            published.push((row, column.plain(entry.name, entry.value)?));
        }
    }
    let profile = table.table("profile")?.map(|profile| read_profile(&profile)).transpose()?;
    Ok(DraftWorkload { name, title: table.text("title")?, parameters, published, profile, in_file: true })
}

fn read_profile(table: &Table) -> Result<DraftProfile, Mistake> {
    table.only(&["title", "functions", "published"])?;
    let title = table.required("title", "what its table is called, such as title = \"tick-profile\"")?;
    let mut published = Vec::new();
    if let Some(column) = table.table("published")? {
        for entry in &column.entries {
            let row = column.source.written(entry.name_span.clone(), entry.name);
            let figures = match entry.value.get_ref() {
                DeValue::Array(figures) => figures.iter().collect(),
                _ => vec![entry.value],
            };
            let figures = figures.into_iter().map(|figure| column.plain(entry.name, figure));
            published.push((row, figures.collect::<Result<_, _>>()?));
        }
    }
    Ok(DraftProfile { title, functions: table.texts("functions")?, published })
}

/// Whether the value is a text of several lines, whose mistakes have places of their own.
fn value_is_script(workload: &str, parameter: &str) -> bool {
    workload == SCRIPT && parameter == "tasks"
}

fn arm(table: &Table) -> Result<DraftArm, Mistake> {
    table.only(ARM)?;
    let name = table.required("name", "the arm's name, such as name = \"4.5.0-rc1-vanilla\"")?;
    let kernel = table.required("kernel", "the arm's kernel, such as kernel = \"v4.15\"")?;
    let mut settings = Vec::new();
    let sections = [
        ("behaviour", SettingKind::Behaviour),
        ("sysctl", SettingKind::Sysctl),
        ("cpufreq", SettingKind::Cpufreq),
        ("powercap", SettingKind::Powercap),
    ];
    for (section, kind) in sections {
        let Some(inner) = table.table(section)? else { continue };
        for (names, value) in inner.leaves()? {
            settings.push(DraftSetting { kind: Some(kind), key: names, value: Some(value) });
        }
    }
    for choice in table.texts("config")? {
        let (key, value) = choice.text.split_once('=').map_or((choice.text.as_str(), None), |(k, v)| (k, Some(v)));
        let written = |text: &str| Written { text: text.to_string(), at: choice.at.clone() };
        settings.push(DraftSetting { kind: Some(SettingKind::Config), key: written(key), value: value.map(written) });
    }
    if let Some(cmdline) = table.text("cmdline")? {
        settings.extend(parameters_of(&cmdline));
    }
    for feature in table.texts("features")? {
        settings.push(DraftSetting { kind: Some(SettingKind::Feature), key: feature, value: None });
    }
    if let Some(hz) = table.number("hz")? {
        let key = Written { text: "hz".to_string(), at: hz.at.clone() };
        settings.push(DraftSetting { kind: Some(SettingKind::Hz), key, value: Some(hz) });
    }
    Ok(DraftArm { name, kernel: Some(kernel), settings })
}

/// The words of a kernel command line.
fn parameters_of(cmdline: &Written) -> Vec<DraftSetting> {
    let word = |word: &str| {
        let written = |text: &str| Written { text: text.to_string(), at: cmdline.at.clone() };
        let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(written(value))));
        DraftSetting { kind: Some(SettingKind::Parameter), key: written(key), value }
    };
    cmdline.text.split_whitespace().map(word).collect()
}

/// The part of a path up to and including its last separator; empty if there is none.
fn folder_of(path: &str) -> &str {
    path.rfind(['/', std::path::MAIN_SEPARATOR]).map_or("", |at| &path[..=at])
}

#[derive(Clone, Copy)]
struct Source<'a> {
    text: &'a str,
    path: &'a str,
}

impl Source<'_> {
    fn at(self, offset: usize) -> Location {
        Location::in_text(self.path, self.text, offset)
    }

    fn written(self, span: Range<usize>, text: &str) -> Written {
        Written { text: text.to_string(), at: self.at(span.start) }
    }

    /// Refuses text that would break a line of a report, or control the terminal that shows it.
    fn one_line(self, value: &Spanned<DeValue>, name: &str, text: &str) -> Result<Written, Mistake> {
        let written = self.written(value.span(), text);
        let Some(control) = text.chars().find(|c| c.is_control()) else { return Ok(written) };
        let found = format!("{name} with the control character U+{:04X}", u32::from(control));
        Err(written.mistake(found, "a text of one line without control characters"))
    }

    fn no_toml(self, error: &toml::de::Error) -> Mistake {
        let span = error.span().unwrap_or(self.text.len()..self.text.len());
        let what = excerpt(error.message(), 160);
        // A truncated file has nothing at its end to point at.
        let pointed_at = self.text.get(span.clone()).map(str::trim).filter(|text| !text.is_empty());
        if let Some(key) = pointed_at.filter(|_| error.message() == DUPLICATE) {
            let found = format!("`{}` for the second time", excerpt(key, 40));
            return Mistake::new(&self.at(span.start), found, "each key once");
        }
        let found = match pointed_at {
            Some(text) => format!("`{}` ({what})", excerpt(text, 24)),
            None => format!("TOML that does not parse ({what})"),
        };
        Mistake::new(&self.at(span.start), found, "a complete TOML document")
    }
}

/// One table of the document, with its entries in the order of the text.
struct Table<'t, 'a> {
    source: Source<'a>,
    title: &'t str,
    span: Range<usize>,
    entries: Vec<Entry<'t, 'a>>,
}

struct Entry<'t, 'a> {
    name: &'t str,
    name_span: Range<usize>,
    value: &'t Spanned<DeValue<'a>>,
}

impl<'t, 'a> Table<'t, 'a> {
    fn new(source: Source<'a>, title: &'t str, span: Range<usize>, table: &'t DeTable<'a>) -> Table<'t, 'a> {
        let mut entries: Vec<Entry> = table
            .iter()
            .map(|(name, value)| Entry { name: name.get_ref().as_ref(), name_span: name.span(), value })
            .collect();
        entries.sort_by_key(|entry| entry.name_span.start);
        Table { source, title, span, entries }
    }

    fn get(&self, name: &str) -> Option<&'t Spanned<DeValue<'a>>> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| entry.value)
    }

    fn wrong(&self, value: &Spanned<DeValue>, name: &str, expected: &str) -> Mistake {
        let found = format!("{name} = {}", kind_of(value.get_ref()));
        Mistake::new(&self.source.at(value.span().start), found, expected)
    }

    /// Refuses entries that are not among `known`, naming the nearest.
    fn only(&self, known: &[&str]) -> Result<(), Mistake> {
        let Some(entry) = self.entries.iter().find(|entry| !known.contains(&entry.name)) else { return Ok(()) };
        let found = format!("the unknown name `{}` in {}", excerpt(entry.name, 60), self.title);
        let expected = match nearest_name(entry.name, known.iter().copied()) {
            Some(nearest) => format!("`{nearest}`, perhaps"),
            None => format!("one of {}", listed(known.iter().copied())),
        };
        Err(Mistake::new(&self.source.at(entry.name_span.start), found, expected))
    }

    fn text(&self, name: &str) -> Result<Option<Written>, Mistake> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => {
                let several = OF_SEVERAL_LINES.contains(&name);
                let one_line = || self.source.one_line(value, name, text);
                if several { Ok(Some(self.source.written(value.span(), text))) } else { one_line().map(Some) }
            }
            _ => Err(self.wrong(value, name, "a text that is not empty, in quotes")),
        }
    }

    fn required(&self, name: &str, expected: &str) -> Result<Written, Mistake> {
        match self.text(name)? {
            Some(text) => Ok(text),
            None => {
                let found = format!("no `{name}` in {}", self.title);
                Err(Mistake::new(&self.source.at(self.span.start), found, expected))
            }
        }
    }

    /// A list of texts; empty if the name is missing.
    fn texts(&self, name: &str) -> Result<Vec<Written>, Mistake> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let expected = "a list of texts, such as [\"NO_TTWU_QUEUE\"]";
        let array = value.get_ref().as_array().ok_or_else(|| self.wrong(value, name, expected))?;
        let text = |value: &Spanned<DeValue>| {
            let text = value.get_ref().as_str().ok_or_else(|| self.wrong(value, name, expected))?;
            self.source.one_line(value, name, text)
        };
        array.iter().map(text).collect()
    }

    fn number(&self, name: &str) -> Result<Option<Written>, Mistake> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => {
                Ok(Some(self.source.written(value.span(), number.as_str())))
            }
            DeValue::Integer(_) => Err(self.wrong(value, name, "a whole number in decimal digits")),
            _ => Err(self.wrong(value, name, "a whole number")),
        }
    }

    /// A number, or `auto` with its settings.
    fn iterations(&self) -> Result<Option<Written>, Mistake> {
        match self.get("iterations").map(|value| value.get_ref()) {
            Some(DeValue::String(text)) if text.starts_with("auto") => self.text("iterations"),
            _ => self.number("iterations"),
        }
    }

    fn boolean(&self, name: &str) -> Result<Option<Written>, Mistake> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(truth) => Ok(Some(self.source.written(value.span(), &truth.to_string()))),
            _ => Err(self.wrong(value, name, "true or false")),
        }
    }

    /// A number, text or boolean, as text.
    fn plain(&self, name: &str, value: &Spanned<DeValue>) -> Result<Written, Mistake> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_string(),
            DeValue::Float(number) => number.as_str().to_string(),
            DeValue::Boolean(truth) => truth.to_string(),
            DeValue::Integer(_) => return Err(self.wrong(value, name, "a number in decimal digits")),
            _ => return Err(self.wrong(value, name, "a number, or a list of numbers")),
        };
        self.source.one_line(value, name, &text)
    }

    /// A text that the file contains literally, with the place of its first character.
    fn literal(&self, name: &str, value: &Spanned<DeValue>) -> Result<Written, Mistake> {
        let Some(text) = value.get_ref().as_str() else {
            return Err(self.wrong(value, name, "a text, between \"\"\" and \"\"\""));
        };
        let raw = &self.source.text[value.span()];
        let quotes = if raw.starts_with("\"\"\"") || raw.starts_with("'''") { 3 } else { 1 };
        let inside = raw.get(quotes..raw.len() - quotes).unwrap_or_default();
        // A line break right after three quotes does not count.
        let skipped = ["\r\n", "\n"].into_iter().find(|end| quotes == 3 && inside.starts_with(end)).map_or(0, str::len);
        if inside[skipped..].replace('\r', "") != text.replace('\r', "") {
            let found = format!("{name} with an escape sequence");
            let expected = "a text without backslashes, between \"\"\" and \"\"\"";
            return Err(Mistake::new(&self.source.at(value.span().start), found, expected));
        }
        let start = value.span().start + quotes + skipped;
        Ok(self.source.written(start..start, text))
    }

    fn table(&self, name: &'t str) -> Result<Option<Table<'t, 'a>>, Mistake> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.get_ref().as_table() {
            Some(table) => Ok(Some(Table::new(self.source, name, value.span(), table))),
            None => Err(self.wrong(value, name, &format!("a table, [{name}] or {name} = {{ ... }}"))),
        }
    }

    /// `[[name]]`.
    fn tables(&self, name: &'t str) -> Result<Vec<Table<'t, 'a>>, Mistake> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let expected = format!("tables, each under [[{name}]]");
        let array = value.get_ref().as_array().ok_or_else(|| self.wrong(value, name, &expected))?;
        let table = |value: &'t Spanned<DeValue<'a>>| match value.get_ref().as_table() {
            Some(table) => Ok(Table::new(self.source, name, value.span(), table)),
            None => Err(self.wrong(value, name, &expected)),
        };
        array.iter().map(table).collect()
    }

    /// All values below this table, by dotted name: an unquoted `kernel.sched_schedstats = 1` is a table in a table.
    fn leaves(&self) -> Result<Vec<(Written, Written)>, Mistake> {
        let mut leaves = Vec::new();
        for entry in &self.entries {
            let key = self.source.written(entry.name_span.clone(), entry.name);
            match entry.value.get_ref() {
                DeValue::Table(inner) => {
                    let inner = Table::new(self.source, self.title, entry.value.span(), inner);
                    for (name, value) in inner.leaves()? {
                        leaves.push((Written { text: format!("{}.{}", key.text, name.text), ..key.clone() }, value));
                    }
                }
                DeValue::Array(_) => return Err(self.wrong(entry.value, entry.name, "one value")),
                _ => leaves.push((key, self.plain(entry.name, entry.value)?)),
            }
        }
        Ok(leaves)
    }
}

/// Describes a value by its kind, and by its text if that is short.
fn kind_of(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => format!("\"{}\"", excerpt(text, 40)),
        // The parsed text no longer tells the number's base.
        DeValue::Integer(number) => {
            let base = match number.radix() {
                2 => "0b",
                8 => "0o",
                16 => "0x",
                _ => "",
            };
            base.to_string() + &excerpt(number.as_str(), 40)
        }
        DeValue::Float(number) => excerpt(number.as_str(), 40),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".to_string(),
        DeValue::Array(_) => "a list".to_string(),
        DeValue::Table(_) => "a table".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_is_read_with_places() {
        let text = "\
machine = \"core-i7-3770\"
iterations = 3
[[workload]]
name = \"hackbench-pipes\"
groups = [1, 4]
[[arm]]
name = \"a\"
kernel = \"v4.15\"
sysctl = { kernel.sched_schedstats = 1 }
features = [\"NO_SIS_PROP\"]
";
        let draft = parse(text, "dir/x.toml").unwrap();
        assert_eq!(draft.folder, "dir/");
        assert_eq!(draft.machine.unwrap().at.to_string(), "dir/x.toml:1:11");
        let (groups, values) = &draft.workloads[0].parameters[0];
        assert_eq!((groups.at.line, values[1].text.as_str(), values[1].at.column), (Some(5), "4", Some(14)));
        let settings = &draft.arms[0].settings;
        assert_eq!(settings[0].key.text, "kernel.sched_schedstats");
        assert_eq!(settings[1].key.text, "NO_SIS_PROP");
    }

    #[test]
    fn mistakes_have_places() {
        for (text, message) in [
            ("machin = \"x\"", "x.toml:1:1: found the unknown name `machin` in the file; expected `machine`, perhaps"),
            ("iterations = \"3\"", "x.toml:1:14: found iterations = \"3\"; expected a whole number"),
            ("iterations = 0x2", "x.toml:1:14: found iterations = 0x2; expected a whole number in decimal digits"),
            (
                "[[workload]]\nname = \"hackbench-pipes\"\nloops = [1, 0b11]",
                "x.toml:3:13: found loops = 0b11; expected a number in decimal digits",
            ),
            ("[[arm]]\nname = \"a\"", "x.toml:1:1: found no `kernel` in arm; expected the arm's kernel"),
            (
                "[[workload]]\nname = \"pipetest\"\ntitle = \"a\\u001b[31mb\"",
                "x.toml:3:9: found title with the control character U+001B; expected a text of one line",
            ),
            (
                "[[workload]]\nname = \"pipetest\"\npublished = { source = \"a\\nb\", Mean = 1 }",
                "x.toml:3:24: found source with the control character U+000A; expected a text of one line",
            ),
            (
                "[[timeline]]\nat = \"5ms\"\ncgroup = { \"/a\" = { \"cpu.max\" = \"max 100000\\nb\" } }",
                "x.toml:3:33: found cpu.max with the control character U+000A; expected a text of one line",
            ),
            (
                "[[arm]]\nname = \"a\"\nkernel = \"v6.1\"\nfeatures = [\"NO_\\u001b[31m\"]",
                "x.toml:4:13: found features with the control character U+001B; expected a text of one line",
            ),
            ("name = \"a\\tb\"", "x.toml:1:8: found name with the control character U+0009"),
            (
                "[[timeline]]\nat = \"5ms\"\narms = []\noffline = 1",
                "x.toml:3:8: found no arm in the `arms` of `5ms`; expected one or more of the arms, or no `arms`",
            ),
            ("workload = 3", "x.toml:1:12: found workload = 3; expected tables, each under [[workload]]"),
            ("machine = ", "x.toml:1:"),
            ("[[workload]\n", "x.toml:1:"),
        ] {
            let error = parse(text, "x.toml").unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
