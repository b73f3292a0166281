//! What a real benchmark did on a real computer. It is stored next to the records of simulations, but never as one of
//! them: it has a host instead of a setup, and elapsed time instead of simulated time.
//!
//! [`MeasuredRecord`] is one run; [`report`] makes what `fairground measure` prints; [`Measured`] holds the runs that a
//! comparison sets its predictions against.

use crate::experiment::{Experiment, Job, WorkloadTable};
use crate::json::TableResult;
use crate::measurements::generator;
use crate::mistake::{Location, Mistake};
use crate::mmtests::figures;
use crate::mmtests::{Vintage, compared};
use crate::numbers::signed;
use crate::record::Outcome;
use crate::setup::{Engine, WorkloadSetup};
use crate::statistics::{maximum, minimum};
use crate::tables::{Iterations, Operation, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write;

/// The format of stored measurements; no other is read.
pub const FORMAT: u32 = 1;

/// One run of a real benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRecord {
    pub format: u32,
    pub engine: Engine,
    pub host: Host,
    pub workload: WorkloadSetup,
    pub iteration: u32,
    pub outcome: MeasuredOutcome,
}

/// The computer that the benchmark ran on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub cpu_model: String,
    /// Its release and version, as `uname -rv` prints them.
    pub kernel: String,
    /// The CPUs that the benchmark could use, as a list of numbers.
    pub cpus: String,
    pub virtual_machine: bool,
    /// CONFIG_HZ, if it can be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hz: Option<u64>,
    /// Its preemption model, if it can be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt: Option<String>,
    /// Driver and governor of idle states, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<String>,
    /// How long the governor haltpoll may poll, in nanoseconds, if it is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halt_poll_ns: Option<u64>,
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredOutcome {
    /// The samples of each row, as integers in the unit's parts, as in a simulation's [`Outcome`].
    pub samples: Vec<Vec<u64>>,
    pub elapsed_ns: u64,
    /// When it began: UTC, to the minute.
    pub began: String,
    /// Share of the CPUs' time that other programs used just before the run, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_busy_permille: Option<u64>,
    /// Share of the CPUs' time that a hypervisor took during the run, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_permille: Option<u64>,
    /// How the program differs from the simulated one.
    pub differs: String,
}

impl Host {
    /// A summary in one line.
    pub fn summary(&self) -> String {
        let kind = if self.virtual_machine { ", a virtual machine" } else { "" };
        format!("{}{kind}, CPUs {}, Linux {}", self.cpu_model, self.cpus, self.kernel)
    }
}

impl MeasuredRecord {
    pub fn new(host: Host, workload: WorkloadSetup, iteration: u32, outcome: MeasuredOutcome) -> MeasuredRecord {
        MeasuredRecord { format: FORMAT, engine: Engine::this(), host, workload, iteration, outcome }
    }

    /// The record as one line of JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string(self).expect("a record of plain values serialises");
        text.push('\n');
        text
    }

    /// Reads a stored record; `path` names it in messages.
    pub fn parse(text: &str, path: &str) -> Result<MeasuredRecord, Mistake> {
        let wrong = |error: serde_json::Error| {
            let at = Location {
                input: path.to_string(),
                line: u32::try_from(error.line()).ok().filter(|&line| line > 0),
                column: u32::try_from(error.column()).ok().filter(|&column| column > 0),
            };
            Mistake::new(&at, format!("no measurement ({error})"), "a record as `fairground measure --out` stores it")
        };
        let value: serde_json::Value = serde_json::from_str(text).map_err(wrong)?;
        if value.get("setup").is_some() {
            let expected = "a record as `fairground measure --out` stores it";
            return Err(Mistake::new(&Location::of(path), "the record of a simulation", expected));
        }
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        if value.is_object() && format != Some(u64::from(FORMAT)) {
            let found = format!("a measurement of format {}", format.unwrap_or_default());
            return Err(Mistake::new(&Location::of(path), found, format!("format {FORMAT}")));
        }
        serde_json::from_str(text).map_err(wrong)
    }
}

/// A report on measurements alone, like the one that `fairground run` prints on simulations.
pub struct MeasuredReport {
    pub text: String,
    pub json: String,
}

/// The report on the measurements of `tables` on one host. Tables and rows without samples are left out.
///
/// # Panics
/// If there are no records.
pub fn report(tables: &[WorkloadTable], records: &[MeasuredRecord]) -> MeasuredReport {
    let host = &records.first().expect("something was measured").host;
    let iterations = records.iter().map(|record| record.iteration + 1).max().unwrap_or(1);
    let mut text = format!("measured {}\n", host.summary());
    let times = if iterations == 1 { "1 iteration".to_string() } else { format!("{iterations} iterations") };
    let _ = writeln!(text, "runs     {times} on the real kernel; {}", disturbance(records));
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for record in records {
        let of = (record.workload.name.as_str(), record.outcome.differs.as_str());
        if !of.1.is_empty() && !seen.contains(&of) {
            let _ = writeln!(text, "differs  {}: {}", of.0, of.1);
            seen.push(of);
        }
    }
    let mut results = Vec::new();
    for of in tables {
        let table = table_of(of, vec!["measured".to_string()], &|point, row, _| samples(records, of, point, row));
        let Some(table) = table else { continue };
        let _ = write!(text, "\n{}", figures(&table, Vintage::Now));
        results.push(TableResult::new(&table, Vintage::Now, &generator(1)));
    }
    let document = json!({ "fairground": crate::VERSION, "host": host, "iterations": iterations, "tables": results });
    let mut json = serde_json::to_string_pretty(&document).expect("plain values serialise");
    json.push('\n');
    MeasuredReport { text, json }
}

/// What disturbed the measurements, in one line.
fn disturbance(records: &[MeasuredRecord]) -> String {
    let busiest = records.iter().filter_map(|record| record.outcome.others_busy_permille).max();
    let stolen = records.iter().filter_map(|record| record.outcome.stolen_permille).max();
    let share = |permille: Option<u64>| permille.map_or("an unknown share".to_string(), percent_text);
    let (others, hypervisor) = (share(busiest), share(stolen));
    format!("others used up to {others} of the CPUs before a run, a hypervisor took up to {hypervisor}")
}

fn percent_text(permille: u64) -> String {
    format!("{}.{}%", permille / 10, permille % 10)
}

/// The samples of one row of a point, by iteration, in the table's unit.
fn samples(records: &[MeasuredRecord], of: &WorkloadTable, point: usize, row: usize) -> Iterations {
    let wanted = of.workload(point);
    let mut found: Vec<&MeasuredRecord> = records.iter().filter(|record| same(&record.workload, &wanted)).collect();
    found.sort_by_key(|record| record.iteration);
    let in_units = |samples: &Vec<u64>| samples.iter().map(|&sample| of.in_units(sample)).collect::<Vec<f64>>();
    let rows = found.iter().filter_map(|record| record.outcome.samples.get(row)).map(in_units);
    rows.filter(|samples| !samples.is_empty()).collect()
}

/// A workload in the form that `--workload` takes.
fn option(of: &WorkloadSetup) -> String {
    let values = of.parameters.iter().map(|(name, value)| format!("{name}={value}"));
    let file = of.file.iter().map(|file| format!("file={}", file.path));
    let values: Vec<String> = file.chain(values).collect();
    format!("{}:{}", of.name, values.join(","))
}

/// Whether both are the same workload. For a file its text counts, not its path.
fn same(a: &WorkloadSetup, b: &WorkloadSetup) -> bool {
    let text = |of: &WorkloadSetup| of.file.as_ref().map(|file| file.text.clone());
    a.name == b.name && a.parameters == b.parameters && text(a) == text(b)
}

/// A table of those rows that have samples in every arm: `samples(point, row, arm)`.
fn table_of(
    of: &WorkloadTable,
    arms: Vec<String>,
    samples: &dyn Fn(usize, usize, usize) -> Iterations,
) -> Option<Table> {
    let rows = of.points.iter().enumerate();
    let rows =
        rows.flat_map(|(point, of)| of.operations.iter().enumerate().map(move |(row, label)| (point, row, label)));
    let operation = |(point, row, label): (usize, usize, &String)| {
        let arms: Vec<Iterations> = (0..arms.len()).map(|arm| samples(point, row, arm)).collect();
        arms.iter().all(|runs| !runs.is_empty()).then(|| Operation { label: label.clone(), arms })
    };
    let operations: Vec<Operation> = rows.filter_map(operation).collect();
    of.table(arms, operations, None)
}

/// Measurements that predictions are set against.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Where the measurements were read.
    pub from: String,
    pub records: Vec<MeasuredRecord>,
    /// What was being measured when the measuring was interrupted: some of its iterations are missing.
    pub unfinished: Vec<WorkloadSetup>,
}

/// One row, measured and predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictedRow {
    pub workload: String,
    pub label: String,
    pub unit: String,
    /// The mean of the measurements, and their least and greatest iteration.
    pub measured: f64,
    pub measured_low: f64,
    pub measured_high: f64,
    pub iterations: usize,
    pub predictions: Vec<Prediction>,
}

impl PredictedRow {
    /// Its title where rows of several workloads are listed together.
    pub fn title(&self) -> String {
        format!("{} {} ({})", self.workload, self.label, self.unit)
    }
}

/// Predictions next to measurements, for all forms of the report.
pub struct Beside<'m> {
    pub measured: &'m Measured,
    pub rows: Vec<PredictedRow>,
    /// As of [`Measured::unfinished`].
    pub unfinished: Vec<(String, usize)>,
}

/// An arm's prediction of the row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    pub arm: String,
    pub predicted: f64,
    /// By how many per cent of the measurement the prediction differs; `None` if the measurement is zero.
    pub difference_percent: Option<f64>,
}

impl Measured {
    /// Checks that there is a measurement for every row of the experiment.
    ///
    /// # Errors
    /// A row without one, with the command that makes it; or measurements of several computers.
    pub fn check(&self, experiment: &Experiment) -> Result<(), Mistake> {
        let at = Location::of(&self.from);
        if let Some(other) = self.records.iter().find(|record| record.host != self.records[0].host) {
            let found =
                format!("measurements of two hosts: {}; {}", self.records[0].host.summary(), other.host.summary());
            return Err(Mistake::new(&at, found, "those of one"));
        }
        for of in &experiment.tables {
            for point in 0..of.points.len() {
                let wanted = of.workload(point);
                if !self.records.iter().any(|record| same(&record.workload, &wanted)) {
                    let workload = option(&wanted);
                    let expected = format!("it there: fairground measure {workload} --out {}", self.from);
                    return Err(Mistake::new(&at, format!("no measurement of {workload}"), expected));
                }
            }
        }
        Ok(())
    }

    /// The rows that have both. A row is left out as long as an arm has no run of it.
    pub fn rows<'o>(
        &self,
        experiment: &Experiment,
        outcome: &dyn Fn(&Job) -> Option<&'o Outcome>,
    ) -> Vec<PredictedRow> {
        let names = || experiment.arms.iter().map(|arm| arm.name.clone());
        let mut rows = Vec::new();
        for (index, of) in experiment.tables.iter().enumerate() {
            let samples = |point: usize, row: usize, arm: usize| {
                let Some(arm) = arm.checked_sub(1) else { return samples(&self.records, of, point, row) };
                let job = |iteration| Job { table: index, point, arm, iteration };
                let runs = (0..experiment.iterations).filter_map(|iteration| outcome(&job(iteration)));
                let runs = runs.filter_map(|outcome| outcome.samples.get(row)).filter(|samples| !samples.is_empty());
                runs.map(|samples| samples.iter().map(|&sample| of.in_units(sample)).collect()).collect()
            };
            let arms = ["measured".to_string()].into_iter().chain(names()).collect();
            let Some(table) = table_of(of, arms, &samples) else { continue };
            for series in compared(&table, experiment.vintage) {
                let mean = |samples: &[f64]| table.mean().of(samples).unwrap_or(0.0);
                let measured = mean(&series.arms[0]);
                let prediction = |(arm, samples): (String, &Vec<f64>)| {
                    let predicted = mean(samples);
                    let difference_percent = (measured != 0.0).then(|| (predicted / measured - 1.0) * 100.0);
                    Prediction { arm, predicted, difference_percent }
                };
                rows.push(PredictedRow {
                    workload: table.title().to_string(),
                    label: series.label,
                    unit: table.unit.clone(),
                    measured,
                    measured_low: minimum(&series.arms[0]).unwrap_or(measured),
                    measured_high: maximum(&series.arms[0]).unwrap_or(measured),
                    iterations: series.arms[0].len(),
                    predictions: names().zip(&series.arms[1..]).map(prediction).collect(),
                });
            }
        }
        rows
    }

    /// The workloads of the experiment whose measuring was not finished, and how many iterations of each there are.
    pub fn unfinished(&self, experiment: &Experiment) -> Vec<(String, usize)> {
        let points = experiment.tables.iter().flat_map(|of| (0..of.points.len()).map(|point| of.workload(point)));
        let of_these = points.filter(|wanted| self.unfinished.iter().any(|it| same(it, wanted)));
        let count = |of: &WorkloadSetup| self.records.iter().filter(|record| same(&record.workload, of)).count();
        of_these.map(|of| (option(&of), count(&of))).collect()
    }

    /// The rows, and what is unfinished.
    pub fn beside<'o>(&self, experiment: &Experiment, outcome: &dyn Fn(&Job) -> Option<&'o Outcome>) -> Beside<'_> {
        Beside { measured: self, rows: self.rows(experiment, outcome), unfinished: self.unfinished(experiment) }
    }

    /// The computer that was measured, and where the measurements were read.
    pub fn place(&self) -> String {
        let host = self.records.first().map_or(String::new(), |record| record.host.summary());
        format!("{host}; {}", self.from)
    }

    /// What disturbed the measurements, in one line.
    pub fn disturbance(&self) -> String {
        disturbance(&self.records)
    }

    /// A line for each unfinished workload, with the command that continues it.
    pub fn going_on(&self, unfinished: &[(String, usize)]) -> Vec<String> {
        let line = |(workload, count): &(String, usize)| {
            let plural = if *count == 1 { "" } else { "s" };
            format!(
                "unfinished: {workload} was interrupted after {count} iteration{plural}; this goes on with it: \
                 fairground measure {workload} --out {}",
                self.from
            )
        };
        unfinished.iter().map(line).collect()
    }

    /// The rows as text.
    pub fn text(&self, rows: &[PredictedRow], unfinished: &[(String, usize)]) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "predicted against measured ({})", self.place());
        let _ = writeln!(text, "measured while {}", self.disturbance());
        let width = rows.iter().map(|row| row.title().chars().count()).max().unwrap_or(0);
        let arms: Vec<&str> = rows.first().iter().flat_map(|row| &row.predictions).map(|it| it.arm.as_str()).collect();
        // At least two blanks before each head.
        let widths: Vec<usize> = arms.iter().map(|arm| (arm.chars().count() + 2).max(14)).collect();
        let head = |(arm, width): (&&str, &usize)| format!("{arm:>width$}{:>12}", "difference");
        let heads: String = arms.iter().zip(&widths).map(head).collect();
        let _ = writeln!(text, "{:<width$} {:>12}{:>26}{heads}", "row", "measured", "least .. greatest");
        for row in rows {
            let spread = format!("{:.4} .. {:.4} ({})", row.measured_low, row.measured_high, row.iterations);
            let _ = write!(text, "{:<width$} {:>12.4} {spread:>25}", row.title(), row.measured);
            for (Prediction { predicted, difference_percent, .. }, width) in row.predictions.iter().zip(&widths) {
                let difference = difference_percent.map_or("-".to_string(), |by| signed(by, 1) + "%");
                let _ = write!(text, "{predicted:>width$.4}{difference:>12}");
            }
            text.push('\n');
        }
        for line in self.going_on(unfinished) {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// The measurements in the JSON document of a comparison.
    pub fn to_json(&self, rows: &[PredictedRow], unfinished: &[(String, usize)]) -> serde_json::Value {
        let unfinished =
            unfinished.iter().map(|(workload, count)| json!({ "workload": workload, "iterations": count }));
        json!({
            "from": self.from,
            "host": self.records.first().map(|record| &record.host),
            "rows": rows,
            "unfinished": unfinished.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::experiment::{Draft, Purpose};
    use crate::machines::tests::Table as NoFiles;
    use crate::record::Ending;

    pub fn host() -> Host {
        Host {
            cpu_model: "A CPU".to_string(),
            kernel: "6.1.0 #1".to_string(),
            cpus: "0-1".to_string(),
            virtual_machine: false,
            hz: Some(250),
            preempt: None,
            idle: None,
            halt_poll_ns: None,
        }
    }

    fn experiment() -> Experiment {
        let mut draft = Draft::default();
        draft.machine_option("core-i7-3770");
        draft.workload_option("hackbench-pipes:groups=1+4,loops=10").unwrap();
        draft.arm_options(&["v6.12".to_string()], true).unwrap();
        draft.resolve(Purpose::Single, &NoFiles::default()).unwrap()
    }

    fn records(experiment: &Experiment, points: usize) -> Vec<MeasuredRecord> {
        let of = &experiment.tables[0];
        let outcome = |sample: u64| MeasuredOutcome {
            samples: vec![vec![sample]],
            elapsed_ns: 5,
            began: "2026-01-01 00:00".to_string(),
            others_busy_permille: Some(12),
            stolen_permille: None,
            differs: "in this".to_string(),
        };
        let record = |point: usize, iteration: u32| {
            let sample = 1_000_000_000 * (point as u64 + 1) + 100_000_000 * u64::from(iteration);
            MeasuredRecord::new(host(), of.workload(point), iteration, outcome(sample))
        };
        (0..points)
            .flat_map(|point| (0..2).map(move |iteration| (point, iteration)))
            .map(|(p, i)| record(p, i))
            .collect()
    }

    #[test]
    fn a_record_survives_its_text_and_is_none_of_a_simulation() {
        let record = records(&experiment(), 1).remove(0);
        assert_eq!(MeasuredRecord::parse(&record.to_json(), "m.json").unwrap(), record);
        for (text, message) in [
            ("", "m.json:1: found no measurement (EOF"),
            ("{\"format\": 1, \"setup\": {}}", "m.json: found the record of a simulation; expected a record as"),
            ("{\"format\": 7}", "m.json: found a measurement of format 7; expected format 1"),
        ] {
            let error = MeasuredRecord::parse(text, "m.json").unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        // Nor is a measurement mistaken for a simulation.
        let error = crate::record::Record::parse(&record.to_json(), "m.json").unwrap_err().to_string();
        assert!(error.contains("found a measurement on a real kernel"), "{error}");
    }

    #[test]
    fn a_report_has_every_row_and_says_where_it_is_from() {
        let experiment = experiment();
        let report = report(&experiment.tables, &records(&experiment, 2));
        assert!(report.text.starts_with("measured A CPU, CPUs 0-1, Linux 6.1.0 #1\n"), "{}", report.text);
        assert!(report.text.contains("2 iterations on the real kernel; others used up to 1.2%"), "{}", report.text);
        assert!(report.text.contains("differs  hackbench-pipes: in this\n"), "{}", report.text);
        let rows: Vec<&str> = report.text.lines().skip_while(|line| !line.starts_with("row")).collect();
        assert_eq!(rows.len(), 3, "{}", report.text);
        assert!(rows[1].contains("1.0500") && rows[2].contains("2.0500"), "{}", report.text);
        let json: serde_json::Value = serde_json::from_str(&report.json).unwrap();
        assert_eq!(json["tables"][0]["rows"].as_array().map(Vec::len), Some(2));
        assert_eq!(json["host"]["cpu_model"], "A CPU");
    }

    #[test]
    fn predictions_stand_beside_measurements() {
        let experiment = experiment();
        let mut measured =
            Measured { from: "there".to_string(), records: records(&experiment, 2), unfinished: Vec::new() };
        measured.check(&experiment).unwrap();
        let outcome = |seconds: u64| Outcome {
            end: Ending::Finished,
            samples: vec![vec![seconds * 1_000_000_000]],
            reported: Vec::new(),
            events: 1,
            context_switches: 1,
            wakeups: 1,
            simulated_ns: 1,
            warnings: Vec::new(),
            digest: String::new(),
        };
        let (one, two) = (outcome(1), outcome(2));
        let rows = measured.rows(&experiment, &|job| Some(if job.point == 0 { &one } else { &two }));
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].measured, rows[0].measured_low, rows[0].measured_high), (1.05, 1.0, 1.1));
        let difference = rows[0].predictions[0].difference_percent.expect("a difference from something");
        assert!((difference - (1.0 / 1.05 - 1.0) * 100.0).abs() < 1e-9);
        let text = measured.text(&rows, &[]);
        assert!(text.contains("hackbench-pipes 4 (s)") && text.contains("-2.4%"), "{text}");
        // However long an arm's name is, the heads are apart, and above their columns.
        let mut long = rows.clone();
        long.iter_mut().for_each(|row| row.predictions[0].arm = "a".repeat(60));
        let text = measured.text(&long, &[]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("measured while others used up to 1.2% of the CPUs"), "{text}");
        assert!(lines[2].ends_with(&format!("  {}  difference", "a".repeat(60))), "{text}");
        assert_eq!(lines[2].len(), lines[3].len(), "{text}");
        // A measurement of zero is still a measurement.
        for record in measured.records.iter_mut().filter(|it| same(&it.workload, &experiment.tables[0].workload(0))) {
            record.outcome.samples = vec![vec![0]];
        }
        let rows = measured.rows(&experiment, &|job| Some(if job.point == 0 { &one } else { &two }));
        assert_eq!((rows.len(), rows[0].measured, rows[0].predictions[0].difference_percent), (2, 0.0, None));
        let text = measured.text(&rows, &[]);
        let zero = text.lines().nth(3).expect("the first row");
        assert!(zero.contains(" 0.0000 .. 0.0000 (2) ") && zero.ends_with("1.0000           -"), "{text}");
        // A missing run leaves its row out.
        let rows = measured.rows(&experiment, &|job| (job.point == 0).then_some(&one));
        assert_eq!(rows.len(), 1);
    }

    #[test]
    fn what_was_not_measured_to_the_end_is_told() {
        let experiment = experiment();
        let unfinished = vec![
            experiment.tables[0].workload(1),
            WorkloadSetup { name: "other".to_string(), ..experiment.tables[0].workload(1) },
        ];
        let measured = Measured { from: "there".to_string(), records: records(&experiment, 2), unfinished };
        let unfinished = measured.unfinished(&experiment);
        let four = "hackbench-pipes:groups=4,loops=10,messages=0,threads=0";
        assert_eq!(unfinished, [(four.to_string(), 2)]);
        let expected = format!(
            "\nunfinished: {four} was interrupted after 2 iterations; this goes on with it: fairground measure {four} --out there\n"
        );
        let text = measured.text(&[], &unfinished);
        assert!(text.ends_with(&expected), "{text}");
        assert_eq!(measured.to_json(&[], &unfinished)["unfinished"][0]["iterations"], 2);
    }

    #[test]
    fn what_was_not_measured_is_asked_for() {
        let experiment = experiment();
        let measured = Measured { from: "there".to_string(), records: records(&experiment, 1), unfinished: Vec::new() };
        let error = measured.check(&experiment).unwrap_err().to_string();
        let command = "fairground measure hackbench-pipes:groups=4,loops=10,messages=0,threads=0 --out there";
        assert!(
            error.starts_with("there: found no measurement of hackbench-pipes:groups=4") && error.contains(command)
        );
        let mut two = records(&experiment, 2);
        two[1].host.cpus = "0-7".to_string();
        let measured = Measured { from: "there".to_string(), records: two, unfinished: Vec::new() };
        assert!(measured.check(&experiment).unwrap_err().to_string().contains("measurements of two hosts"));
    }
}
