//! An experiment: a machine, workloads and arms, and the runs that follow from them.
//!
//! [`Draft`] is what the file and the command line say. [`Draft::resolve`] checks all of it and makes an
//! [`Experiment`]; [`Experiment::jobs`] and [`Experiment::setup`] make its runs. Every mistake of the user is found
//! here, before anything runs.

mod arm;
mod draft;
mod figure;
mod governing;
mod isolation;
mod iterations;
mod parameters;
mod plan;
mod profile;
mod recording;
mod rt_app;
#[cfg(test)]
mod schema;
mod script;
mod timeline;
mod toml_file;
mod trace;
mod workload;
mod workload_table;

pub use arm::{Arm, resolve as resolve_arm};
pub use draft::{Draft, DraftArm, DraftFigure, DraftSetting, DraftWorkload, SettingKind};
pub use figure::{Figure, Measure, Over, Tasks, Tolerance, Values};
pub use iterations::{Adaptive, Plan};
pub use plan::Job;
pub(crate) use profile::rows as profile_rows;
pub use recording::{header, line};
pub use rt_app::rt_app_file;
pub use toml_file::parse;
pub use workload::names as workload_names;
pub use workload_table::{Point, ProfileTable, Source, WorkloadTable};

use crate::machines::{Files, Machine, stem, within};
use crate::mistake::{Mistake, Written};
use crate::mmtests::{Stars, Vintage};
use governing::Governing;
use machine::description::is_hz;
use machine::topology::Location;
use sched::versions::last_read;
use units::Ns;

/// The most runs of one arm and row.
pub const MOST_ITERATIONS: u64 = 10_000;
/// The most runs of one experiment.
pub const MOST_RUNS: u64 = 1_000_000;
/// The bounds of a run's simulated time, in milliseconds.
const TIME_LIMIT_MS: (u64, u64) = (1, 3_600_000);
const DEFAULT_SEED: u64 = 1;
/// The tick on machines that do not say at what tick their kernels ran.
const DEFAULT_HZ: u32 = 250;

/// What the arms are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Two arms or more; several iterations by default.
    Comparison,
    /// One arm or more, to be compared with measurements; several iterations by default.
    Prediction,
    /// One arm; one iteration by default.
    Single,
    /// The same for a case of `fairground fidelity`, which takes no options besides its file.
    Case,
    /// One arm, one row, one iteration.
    Watch,
}

impl Purpose {
    /// Enough for an interval, few enough to be quick.
    const DEFAULT_PAIRS: u32 = 5;

    fn arms(self) -> usize {
        if self == Purpose::Comparison { 2 } else { 1 }
    }
}

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name for results: the experiment's own name, its file's, or its machine's.
    pub name: String,
    /// What the file says it is about.
    pub about: Option<String>,
    pub machine: Machine,
    pub tables: Vec<WorkloadTable>,
    pub arms: Vec<Arm>,
    /// Iterations of every row; with `adaptive`, the most of any row.
    pub iterations: u32,
    /// The rule for the number of iterations, if a row's interval decides it.
    pub adaptive: Option<Adaptive>,
    pub seed: u64,
    pub costs: bool,
    /// The limit of simulated time, if the user gives one: see [`Experiment::time_limit`].
    pub time_limit: Option<Ns>,
    pub vintage: Vintage,
    pub stars: Stars,
    /// Whether to print ratios to the first arm instead of figures.
    pub ratio: bool,
    /// The figures of a real kernel in its place.
    pub figures: Vec<Figure>,
    /// Assumptions that the user should know of.
    pub notices: Vec<String>,
}

impl Draft {
    /// Reads an experiment file.
    pub fn read(path: &str, files: &dyn Files) -> Result<Draft, Mistake> {
        let text = files.text(path).map_err(|error| Mistake::file(path, error, "an experiment file (.toml)"))?;
        let mut draft = parse(&text, path)?;
        if draft.name.is_none() {
            draft.name = Some(Written { text: stem(path), at: Location::of(path) });
        }
        Ok(draft)
    }

    /// Only the workloads, for a real computer with this many CPUs. Oddities that can run go to `notices`.
    pub fn tables(
        &self,
        nr_cpus: usize,
        files: &dyn Files,
        notices: &mut Vec<String>,
    ) -> Result<Vec<WorkloadTable>, Mistake> {
        self.tables_apart(nr_cpus, files, true, notices)
    }

    /// The tables of all workloads, of which no two have the same row. `ends`, `notices`: as of [`workload::resolve`].
    fn tables_apart(
        &self,
        nr_cpus: usize,
        files: &dyn Files,
        ends: bool,
        notices: &mut Vec<String>,
    ) -> Result<Vec<WorkloadTable>, Mistake> {
        let mut tables = Vec::new();
        for draft in &self.workloads {
            let more = workload::resolve(draft, &self.folder, files, nr_cpus, ends, notices)?;
            more.iter().try_for_each(|table| workload::check_apart(draft, table, &tables))?;
            tables.extend(more);
        }
        Ok(tables)
    }

    /// Checks everything.
    pub fn resolve(&self, purpose: Purpose, files: &dyn Files) -> Result<Experiment, Mistake> {
        let nowhere = Location::of(self.name.as_ref().map_or("the command line", |name| name.at.input.as_str()));
        let Some(written) = &self.machine else {
            let how = self.said_by("machine = \"M\"", "--machine M", purpose);
            let names = crate::mistake::listed(crate::machines::names());
            let expected = format!("{how}: {names}, host, a file, or a topology");
            return Err(Mistake::new(&nowhere, "no machine", expected));
        };
        let machine = Machine::choose(written, if self.machine_in_file { &self.folder } else { "" }, files)?;
        let nr_cpus = machine.description.topology().nr_cpus();
        let mut notices = machine.notices.clone();
        let tables = self.tables_apart(nr_cpus, files, purpose != Purpose::Watch, &mut notices)?;
        let nodes = machine.description.topology().nodes().len();
        rt_app::check_nodes(&tables, nodes).and_then(|()| script::check_nodes(&tables, nodes))?;
        if tables.is_empty() {
            let how = self.said_by("a [[workload]]", "--workload W[:key=value,...]", purpose);
            let expected = format!("{how}, W one of {}", crate::mistake::listed(workload::names()));
            return Err(Mistake::new(&nowhere, "no workload", expected));
        }
        arm::check_all(&self.arms, &nowhere, purpose.arms())?;
        if matches!(purpose, Purpose::Single | Purpose::Case | Purpose::Watch) && self.arms.len() > 1 {
            let names = crate::mistake::listed(self.arms.iter().map(|arm| arm.name.text.as_str()));
            let found = format!("{} arms", self.arms.len());
            let expected = if purpose == Purpose::Case { "one of " } else { "one: --arm with one of " };
            return Err(Mistake::new(&nowhere, found, format!("{expected}{names}")));
        }
        let hz = self.hz_on(&machine)?;
        let mut arms = self.arms.iter().map(|arm| arm::resolve(arm, nr_cpus, hz)).collect::<Result<Vec<Arm>, _>>()?;
        let mut governing = Vec::new();
        for (arm, draft) in arms.iter_mut().zip(&self.arms) {
            arm.says_hz |= self.hz.is_some();
            governing.push(Governing { cpufreq: arm::check_on(arm, draft, &machine)? });
        }
        notices.extend(arms.iter().flat_map(|arm| arm.complaints.iter().cloned()));
        profile::check_all(&self.workloads, &arms, &mut notices)?;
        let said = timeline::resolve(&self.timeline, &mut arms, &mut governing, &machine.description)?;
        let base = arms[0].kernel.as_str();
        let (iterations, adaptive) = self.iterations(purpose, &mut notices)?;
        let experiment = Experiment {
            name: self.result_name(&machine)?,
            about: self.about.as_ref().map(|about| about.text.trim().to_string()),
            iterations,
            adaptive,
            seed: self.seed.as_ref().map_or(Ok(DEFAULT_SEED), |seed| seed.whole("seed", 0, u64::MAX))?,
            costs: self.costs.as_ref().is_none_or(|costs| costs.text == "true"),
            time_limit: self.time_limit()?,
            vintage: self.vintage.as_ref().map_or(Ok(vintage_of(base)), |it| it.choice("vintage", &VINTAGES))?,
            stars: self.stars.as_ref().map_or(Ok(Stars::OfTheVintage), |it| it.choice("stars", &STARS))?,
            ratio: self.ratio.as_ref().is_some_and(|ratio| ratio.text == "true"),
            figures: self.figures(files)?,
            notices,
            machine,
            tables,
            arms,
        };
        workload::check_times(&self.workloads, &experiment.tables, experiment.vintage)?;
        experiment.check_size(&nowhere)?;
        timeline::rehearse(&experiment, &said)?;
        Ok(experiment)
    }

    /// Where the user can give what is missing: in the file, if there is one, and by an option, if the command has one.
    fn said_by(&self, in_file: &str, option: &str, purpose: Purpose) -> String {
        match (&self.name, purpose) {
            (_, Purpose::Case) => format!("{in_file} in it"),
            (Some(_), _) => format!("{in_file} in it, or {option}"),
            (None, _) => option.to_string(),
        }
    }

    fn figures(&self, files: &dyn Files) -> Result<Vec<Figure>, Mistake> {
        let read = |recording: &Written| {
            let path = within(&self.folder, &recording.text);
            let text =
                files.text(&path).map_err(|error| recording.mistake(format!("{path}: {error}"), "a recording"))?;
            Ok::<_, Mistake>(Written { text, at: Location::of(&path) })
        };
        let recording = self.recording.as_ref().map(read).transpose()?;
        figure::resolve(&self.figures, recording.as_ref())
    }

    /// The tick of arms that give none.
    fn hz_on(&self, machine: &Machine) -> Result<u32, Mistake> {
        match &self.hz {
            Some(hz) => arm::read_hz(hz),
            None if is_hz(machine.description.tick_hertz()) => Ok(machine.description.tick_hertz() as u32),
            None => Ok(DEFAULT_HZ),
        }
    }

    /// The number of iterations, and the rule if something else decides it.
    fn iterations(&self, purpose: Purpose, notices: &mut Vec<String>) -> Result<(u32, Option<Adaptive>), Mistake> {
        let Some(written) = &self.iterations else {
            let compares = matches!(purpose, Purpose::Comparison | Purpose::Prediction);
            return Ok((if compares { Purpose::DEFAULT_PAIRS } else { 1 }, None));
        };
        let in_file = written.at.line.is_some();
        let adaptive = iterations::adaptive(written)?;
        match (adaptive, purpose) {
            // The file's number is meant for comparisons.
            (_, Purpose::Watch) if in_file => Ok((1, None)),
            (None, Purpose::Watch) => Ok((written.whole("iterations of a single run", 1, 1)? as u32, None)),
            (None, _) => Ok((written.whole("iterations", 1, MOST_ITERATIONS)? as u32, None)),
            (Some(adaptive), Purpose::Comparison) => Ok((adaptive.max, Some(adaptive))),
            (Some(adaptive), Purpose::Prediction | Purpose::Single | Purpose::Case) if in_file => {
                let number = if purpose == Purpose::Prediction { adaptive.min } else { 1 };
                notices.push(format!(
                    "{}: iterations = {} is for compare; {number} here",
                    written.at,
                    written.quoted()
                ));
                Ok((number, None))
            }
            (Some(_), _) => Err(written.mistake("auto where nothing is compared", "a whole number")),
        }
    }

    fn time_limit(&self) -> Result<Option<Ns>, Mistake> {
        let (low, high) = TIME_LIMIT_MS;
        let limit = self.time_limit_ms.as_ref().map(|limit| limit.whole("time_limit_ms", low, high));
        Ok(limit.transpose()?.map(Ns::from_ms))
    }

    fn result_name(&self, machine: &Machine) -> Result<String, Mistake> {
        match &self.name {
            None => {
                let workload = self.workloads.first().map_or("", |workload| workload.name.text.as_str());
                let more = match self.workloads.len().saturating_sub(1) {
                    0 => String::new(),
                    more => format!("-and-{more}-more"),
                };
                Ok(file_name(&format!("{}-{workload}{more}", machine.name)))
            }
            Some(name) if file_name(&name.text) == name.text || name.at.line.is_none() => Ok(file_name(&name.text)),
            Some(name) => {
                let expected = "1 to 60 letters, digits, dots, hyphens and underscores: results are stored under it";
                Err(name.mistake(format!("the name {}", name.quoted()), expected))
            }
        }
    }
}

/// A text in a form that can be part of a file name.
pub fn file_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' };
    let name: String = text.chars().take(60).map(plain).collect();
    if name.trim_matches('.').is_empty() { "results".to_string() } else { name }
}

const VINTAGES: [(&str, Vintage); 3] =
    [("feb2016", Vintage::Feb2016), ("jan2018", Vintage::Jan2018), ("now", Vintage::Now)];
const STARS: [(&str, Stars); 3] =
    [("vintage", Stars::OfTheVintage), ("significant", Stars::Significant), ("never", Stars::Never)];

/// The state of MMTests that printed the studies of the base arm's kernel; for kernels without a study, today's.
fn vintage_of(kernel: &str) -> Vintage {
    match last_read(kernel).map(|read| read.name) {
        Some("v4.5-rc1") => Vintage::Feb2016,
        Some("v4.15" | "v4.16") => Vintage::Jan2018,
        _ => Vintage::Now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines::tests::Table;

    const TEXT: &str = "\
machine = \"core-i7-3770\"
iterations = 3
seed = 7

[[workload]]
name = \"hackbench-pipes\"
groups = [1, 4]
loops = [10, 20]

[[arm]]
name = \"vanilla\"
kernel = \"v4.5-rc1\"

[[arm]]
name = \"nostats\"
kernel = \"v4.5-rc1\"
behaviour = { \"stats.schedstats\" = \"tunable\" }
";

    fn resolve(text: &str) -> Result<Experiment, String> {
        parse(text, "x.toml")
            .and_then(|draft| draft.resolve(Purpose::Comparison, &Table::default()))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn published_rows_of_times_are_those_that_are_printed() {
        let of = |vintage: &str, row: &str| {
            let arms = "[[arm]]\nname = \"a\"\nkernel = \"v4.15\"\n[[arm]]\nname = \"b\"\nkernel = \"v4.16\"\n";
            resolve(&format!(
                "machine = \"core-i7-3770\"\nreport.vintage = \"{vintage}\"\n{arms}[[workload]]\nname = \"pipetest\"\n\
                 published = {{ source = \"s\", {row} = 4.5 }}\n"
            ))
        };
        assert!(of("jan2018", "Amean").is_ok() && of("feb2016", "Mean").is_ok() && of("now", "Mean").is_ok());
        let error = of("jan2018", "Mean").unwrap_err();
        assert!(error.starts_with("x.toml:11:29: found the row `Mean`, which the table does not have as"), "{error}");
        assert!(of("feb2016", "Amean").is_err() && of("jan2018", "Stddev").is_err());
    }

    #[test]
    fn an_experiment_becomes_runs() {
        let experiment = resolve(TEXT).unwrap();
        assert_eq!((experiment.tables.len(), experiment.arms.len()), (2, 2));
        assert_eq!(experiment.vintage, Vintage::Feb2016);
        let jobs = experiment.jobs();
        assert_eq!(jobs.len(), 2 * 2 * 2 * 3);
        let hashes: Vec<String> = jobs.iter().map(|job| experiment.setup(job).hash()).collect();
        let mut unique = hashes.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), hashes.len());
        // The arms of an iteration share their seed; different iterations do not.
        let seed = |job: &Job| experiment.setup(job).seed;
        for job in &jobs {
            for other in &jobs {
                assert_eq!(seed(job) == seed(other), job.iteration == other.iteration);
            }
        }
        let setup = experiment.setup(&jobs[0]);
        assert_eq!(serde_json::from_str::<crate::setup::Setup>(&setup.to_json()).unwrap(), setup);
    }

    #[test]
    fn a_published_column_belongs_to_rows_and_has_a_source() {
        let with = |column: &str| TEXT.replacen("loops = [10, 20]", &format!("published = {{ {column} }}"), 1);
        let experiment = resolve(&with("source = \"a changelog\", 4 = 0.1229")).unwrap();
        let published = experiment.tables[0].published.as_ref().expect("the column was given");
        assert_eq!(published.rows, [("4".to_string(), 0.1229)]);
        for (column, message) in [
            ("4 = 0.1", "x.toml:8:15: found published figures without a source; expected source"),
            ("source = \"x\", 5 = 0.1", "x.toml:8:29: found the row `5`, which the table does not have; expected a"),
            ("source = \"x\", 4 = 0", "x.toml:8:33: found 4 = `0`; expected a number from 1e-9 to 1e15"),
            ("source = \"x\", 4 = 1e-320", "x.toml:8:33: found 4 = `1e-320`; expected a number from 1e-9 to 1e15"),
            ("source = \"x\", 4 = inf", "x.toml:8:33: found 4 = `inf`; expected a number from 1e-9 to 1e15"),
            ("source = \"x\", 4 = nan", "x.toml:8:33: found 4 = `nan`; expected a number from 1e-9 to 1e15"),
        ] {
            let error = resolve(&with(column)).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn mistakes_of_a_file_are_found_with_their_places() {
        for (from, to, message) in [
            (
                "core-i7-3770",
                "core-i7-3370",
                "x.toml:1:11: found the unknown machine `core-i7-3370`; expected `core-i7-3770`, perhaps",
            ),
            (
                "iterations = 3",
                "iterations = 0",
                "x.toml:2:14: found iterations = 0; expected a whole number from 1 to 10000",
            ),
            ("seed = 7", "seed = -7", "x.toml:3:8: found seed = -7"),
            (
                "hackbench-pipes",
                "hackbench-pipe",
                "x.toml:6:8: found the unknown workload `hackbench-pipe`; expected `hackbench-pipes`, perhaps",
            ),
            ("groups", "grops", "x.toml:7:1: found the unknown parameter `grops`; expected `groups`, perhaps"),
            ("[1, 4]", "[1, 0]", "x.toml:7:14: found groups = 0; expected a whole number from 1 to"),
            ("[1, 4]", "[1, 1]", "x.toml:7:14: found groups = 1 for the second time"),
            ("[1, 4]", "[]", "x.toml:7:1: found no value of `groups`"),
            ("[1, 4]", "1.5", "x.toml:7:10: found groups = 1.5; expected a whole number"),
            ("nostats", "vanilla", "x.toml:15:8: found the arm `vanilla` for the second time"),
            (
                "tunable",
                "tuneable",
                "x.toml:17:36: found the unknown value of stats.schedstats `tuneable`; expected `tunable`, perhaps",
            ),
            ("seed = 7", "time_limit_ms = 0", "x.toml:3:17: found time_limit_ms = 0"),
            ("seed = 7", "hz = 99", "x.toml:3:6: found hz = 99"),
            (
                "seed = 7",
                "report.vintage = \"feb2017\"",
                "x.toml:3:18: found the unknown vintage `feb2017`; expected `feb2016`, perhaps",
            ),
            ("seed = 7", "name = \"a/b\"", "x.toml:3:8: found the name `a/b`"),
        ] {
            assert!(TEXT.contains(from));
            let error = resolve(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn rows_that_nothing_tells_apart_are_refused() {
        let with = |workload: &str| TEXT.replacen("[[arm]]", &format!("[[workload]]\n{workload}\n\n[[arm]]"), 1);
        let same = "name = \"hackbench-pipes\"\ngroups = [4, 1]\nloops = [10, 20]";
        let or = ", or with a `title` that tells its table from the first one's";
        for (workload, message) in [
            (same.to_string(), "the workload `hackbench-pipes` for the second time; expected each workload once"),
            // Its table of ten loops is called so in the first list alone.
            (
                same.replace("[4, 1]", "[7, 4]").replace("10", "30"),
                "the row `4` of `hackbench-pipes` for the second time; expected each row once",
            ),
        ] {
            assert_eq!(resolve(&with(&workload)).unwrap_err(), format!("x.toml:11:8: found {message}{or}"));
        }
        for other in [
            same.replace("[4, 1]", "[7, 8]"),
            same.replace("[10, 20]", "[30, 40]"),
            same.replace("pipes", "sockets"),
            format!("{same}\ntitle = \"again\""),
        ] {
            assert_eq!(resolve(&with(&other)).unwrap().tables.len(), 4, "{other}");
        }
        // One without a title is called as its workload is.
        let called = "name = \"pipetest\"\n\n[[workload]]\nname = \"pipetest\"\ntitle = \"pipetest\"";
        assert!(
            resolve(&with(called))
                .unwrap_err()
                .starts_with("x.toml:14:8: found the workload `pipetest` for the second time")
        );
        // Scripts of an experiment's own are called after it.
        let script = |title: &str| format!("name = \"script\"\n{title}tasks = \"task a: run 1ms\"");
        let scripts = |title: &str| resolve(&with(&format!("{}\n\n[[workload]]\n{}", script(""), script(title))));
        assert!(scripts("").unwrap_err().contains("found the workload `script` for the second time"));
        assert_eq!(scripts("title = \"b\"\n").unwrap().tables.len(), 4);
    }

    #[test]
    fn what_is_missing_is_asked_for() {
        for (text, message) in [
            ("", "the command line: found no machine; expected --machine M: ampere-altra-"),
            ("machine = \"core-i7-3770\"", "the command line: found no workload; expected --workload"),
        ] {
            let error = resolve(text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
        let single = TEXT.split("[[arm]]\nname = \"nostats\"").next().unwrap();
        assert!(resolve(single).unwrap_err().contains("found a single arm; expected another arm to compare with"));
    }

    #[test]
    fn endless_products_are_refused() {
        let many: Vec<String> = (1..=1_000).map(|n| n.to_string()).collect();
        let text =
            TEXT.replace("[1, 4]", &format!("[{}]", many.join(", "))).replace("iterations = 3", "iterations = 10000");
        assert!(resolve(&text).unwrap_err().contains("runs; expected at most 1000000"));
    }

    #[test]
    fn the_schema_knows_the_names_that_the_reader_knows() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../../../docs/experiment.schema.json")).unwrap();
        let names = |of: &serde_json::Value| {
            let mut names: Vec<String> = of["properties"].as_object().unwrap().keys().cloned().collect();
            names.sort();
            names
        };
        let sorted = |names: &[&str]| {
            let mut names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&schema), sorted(toml_file::TOP));
        assert_eq!(names(&schema["$defs"]["arm"]), sorted(toml_file::ARM));
        assert_eq!(names(&schema["$defs"]["moment"]), sorted(toml_file::MOMENT));
        let choices = |name: &str| schema["properties"]["report"]["properties"][name]["enum"].clone();
        assert_eq!(choices("vintage"), serde_json::json!(VINTAGES.map(|(name, _)| name)));
        assert_eq!(choices("stars"), serde_json::json!(STARS.map(|(name, _)| name)));
    }

    #[test]
    fn experiments_that_ship_resolve() {
        let text = include_str!("../../../../experiments/first-light.toml");
        let experiment = resolve(text).unwrap();
        assert_eq!((experiment.tables.len(), experiment.arms.len()), (2, 2));
    }
}
