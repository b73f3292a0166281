//! Every sample that the runs measured, one line each, for data frames: as CSV and as Parquet.
//!
//! | column | what |
//! |---|---|
//! | `table` | the experiment's name for it, else the workload's |
//! | `workload`, `parameters` | `name=value`, joined by `;`, by name |
//! | `row` | as in the report; for pipetest `Time`, of which the report shows statistics |
//! | `arm` | |
//! | `iteration` | counted from 0 |
//! | `seed` | of the run: the same in every arm of an iteration |
//! | `sample` | of the row in this run, in the order of measurement, counted from 0 |
//! | `value` | in `unit` |
//! | `unit`, `better` | `higher` or `lower` |

pub mod parquet;

use crate::csv::quoted;
use crate::experiment::{Experiment, Job, WorkloadTable};
use crate::record::Outcome;
use crate::setup::iteration_seed;
use crate::shares;
use crate::statistics::Better;
use parquet::{Column, Texts};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The columns, each with a value for every sample.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    table: Texts,
    workload: Texts,
    parameters: Texts,
    row: Texts,
    arm: Texts,
    iteration: Vec<i64>,
    /// In Parquet's type: 64 bits, unsigned.
    seed: Vec<u64>,
    sample: Vec<i64>,
    value: Vec<f64>,
    unit: Texts,
    better: Texts,
}

/// The run and row that samples belong to.
struct Row<'a> {
    table: &'a WorkloadTable,
    job: &'a Job,
    title: &'a str,
    row: &'a str,
    unit: &'a str,
    better: Better,
}

/// All parameters of a point by name: those of its workload, and those of its table.
fn parameters(table: &WorkloadTable, point: usize) -> String {
    let said = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let shared = table.parameters.iter().map(|(name, value)| (name.as_str(), said(value)));
    let own = table.points[point].values.iter().map(|(name, value)| (name.as_str(), value.to_string()));
    let all: BTreeMap<&str, String> = shared.chain(own).collect();
    let all: Vec<String> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
    all.join(";")
}

impl Samples {
    /// The samples of those `jobs` that are done, ordered by table, row, arm and iteration.
    pub fn of<'o>(experiment: &Experiment, jobs: &[Job], outcome: &dyn Fn(&Job) -> Option<&'o Outcome>) -> Samples {
        let mut all = Samples::default();
        let mut jobs: Vec<&Job> = jobs.iter().collect();
        jobs.sort();
        for job in jobs {
            let Some(outcome) = outcome(job) else { continue };
            let table = &experiment.tables[job.table];
            let point = &table.points[job.point];
            let title = table.title.as_deref().unwrap_or(table.source.name());
            for (row, samples) in point.operations.iter().zip(&outcome.samples) {
                let of = Row { table, job, title, row, unit: &table.unit, better: table.better };
                samples.iter().enumerate().for_each(|(at, &it)| all.add(experiment, &of, at, table.in_units(it)));
            }
            let behind = outcome.samples.iter().skip(point.operations.len());
            for ((title, row), samples) in shares::rows_of(table, job.point).iter().zip(behind) {
                let of = Row { table, job, title, row, unit: "%", better: Better::Lower };
                samples.iter().enumerate().for_each(|(at, &it)| all.add(experiment, &of, at, shares::percent(it)));
            }
        }
        all
    }

    fn add(&mut self, experiment: &Experiment, of: &Row, number: usize, value: f64) {
        let Row { table, job, title, row, unit, better } = of;
        self.table.push(title);
        self.workload.push(table.source.name());
        self.parameters.push(&parameters(table, job.point));
        self.row.push(row);
        self.arm.push(&experiment.arms[job.arm].name);
        self.iteration.push(i64::from(job.iteration));
        self.seed.push(iteration_seed(experiment.seed, job.iteration));
        self.sample.push(number as i64);
        self.value.push(value);
        self.unit.push(unit);
        self.better.push(if *better == Better::Higher { "higher" } else { "lower" });
    }

    /// The columns by name.
    fn columns(&self) -> [(&'static str, Column<'_>); 11] {
        [
            ("table", Column::Texts(&self.table)),
            ("workload", Column::Texts(&self.workload)),
            ("parameters", Column::Texts(&self.parameters)),
            ("row", Column::Texts(&self.row)),
            ("arm", Column::Texts(&self.arm)),
            ("iteration", Column::Integers(&self.iteration)),
            ("seed", Column::Naturals(&self.seed)),
            ("sample", Column::Integers(&self.sample)),
            ("value", Column::Numbers(&self.value)),
            ("unit", Column::Texts(&self.unit)),
            ("better", Column::Texts(&self.better)),
        ]
    }

    /// CSV with a head; numbers have the fewest digits that read back as the same double.
    pub fn csv(&self) -> String {
        let columns = self.columns();
        let names: Vec<&str> = columns.iter().map(|column| column.0).collect();
        let mut text = names.join(",");
        text.push('\n');
        for line in 0..self.value.len() {
            for (place, (_, column)) in columns.iter().enumerate() {
                let comma = if place == 0 { "" } else { "," };
                let _ = match column {
                    Column::Texts(texts) => write!(text, "{comma}{}", quoted(texts.get(line))),
                    Column::Integers(numbers) => write!(text, "{comma}{}", numbers[line]),
                    Column::Naturals(numbers) => write!(text, "{comma}{}", numbers[line]),
                    Column::Numbers(numbers) => write!(text, "{comma}{}", Value::from(numbers[line])),
                };
            }
            text.push('\n');
        }
        text
    }

    /// A Parquet file.
    pub fn parquet(&self) -> Vec<u8> {
        parquet::file(self.value.len(), &self.columns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Purpose, parse};
    use crate::machines::tests::Table as NoFiles;
    use crate::record::Ending;

    const TEXT: &str = "\
machine = \"core-i7-3770\"
iterations = 2
workload = [{ name = \"hackbench-pipes\", title = \"a, b\", groups = [1, 4], loops = 3 }]
arm = [{ name = \"old\", kernel = \"v4.15\" }, { name = \"new\", kernel = \"v4.16\" }]
";

    #[test]
    fn every_sample_has_a_line_that_says_all_of_it() {
        let experiment =
            parse(TEXT, "x.toml").and_then(|draft| draft.resolve(Purpose::Comparison, &NoFiles::default())).unwrap();
        let outcome = Outcome {
            end: Ending::Finished,
            samples: vec![vec![1_500_000_000, 250_000_000]],
            reported: Vec::new(),
            events: 0,
            context_switches: 0,
            wakeups: 0,
            simulated_ns: 0,
            warnings: Vec::new(),
            digest: String::new(),
        };
        // One run is missing.
        let missing = Job { table: 0, point: 1, arm: 1, iteration: 1 };
        let done = |job: &Job| (*job != missing).then_some(&outcome);
        let samples = Samples::of(&experiment, &experiment.jobs(), &done);
        let text = samples.csv();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 7 * 2);
        assert_eq!(lines[0], "table,workload,parameters,row,arm,iteration,seed,sample,value,unit,better");
        let [first, second] = [0, 1].map(|iteration| iteration_seed(1, iteration));
        let unit = &experiment.tables[0].unit;
        let value = |sample| Value::from(experiment.tables[0].in_units(sample));
        let parameters = lines[1].split(',').nth(3).unwrap();
        assert!(parameters.contains("groups=1") && parameters.contains(";loops=3"), "{}", lines[1]);
        assert_eq!(
            [lines[1], lines[4], lines[6]],
            [
                format!(
                    "\"a, b\",hackbench-pipes,{parameters},1,old,0,{first},0,{},{unit},lower",
                    value(1_500_000_000)
                ),
                format!("\"a, b\",hackbench-pipes,{parameters},1,old,1,{second},1,{},{unit},lower", value(250_000_000)),
                format!("\"a, b\",hackbench-pipes,{parameters},1,new,0,{first},1,{},{unit},lower", value(250_000_000)),
            ]
        );
        assert!(samples.parquet().starts_with(b"PAR1"));
    }
}
