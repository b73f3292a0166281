//! Measurements ready to be shown: one table of one workload over two or more arms. The text layout
//! ([`crate::mmtests`]), the JSON document ([`crate::json`]) and the CSV ([`crate::csv`]) are made from it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::statistics::{Better, Mean, amean, ascending, best_mean_inclusive, maximum, minimum, quantile};

/// How MMTests summarises a workload. This decides the rows of the text table, and what a row of the JSON stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// Several samples per operation (netperf, tbench, dbench, hackbench): minimum, mean, deviation, maximum.
    ///
    /// JSON: one row per operation; the sample of an iteration is its only sample, or the mean of its samples. MMTests
    /// pools the samples of all iterations, and so does the text.
    Multiops,
    /// The same where the distribution within a run matters (dbench, tbench): in its current state MMTests adds
    /// percentiles and means of the best. In 2018 it had this for the load files of dbench, whose times are better when
    /// lower: without a coefficient, but with the mean of samples drawn from all (SubAmean).
    LeftSkewops,
    /// Percentiles that a benchmark prints now and then (schbench): in its current state MMTests adds the mean, and the
    /// last, of the best 95%.
    Normalisedops,
    /// Times whose distribution matters (pipetest, 120 batches): quantiles and means of the best; lower is better.
    ///
    /// JSON: one row per statistic, always the 17 of MMTests in 2016; the sample of an iteration is that statistic over
    /// the iteration's samples. MMTests knows one iteration only; of several, the text shows each statistic's mean over
    /// the iterations, and the interval in the JSON is over the iterations too.
    Variabletime,
    /// One figure per operation (SPECjbb), under the name given here (MMTests says "Ops" unless the benchmark names
    /// it). Of several iterations, text and JSON show the arithmetic mean.
    Singleops { figure: String },
}

/// Samples of one arm of one operation: `[iteration][sample]`, in the order of measurement and in the unit of the
/// table.
pub type Iterations = Vec<Vec<f64>>;

/// One row of the workload: a number of groups or clients, a message size, a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// As MMTests prints it, e.g. `48`; `Time` for pipetest.
    pub label: String,
    /// One entry per arm, in the order of [`Table::arms`]. Iteration i of every arm ran under the same seed; where the
    /// arms have unequal numbers of iterations, the surplus of the longer one has no pair and does not enter the
    /// interval.
    pub arms: Vec<Iterations>,
}

/// A column of a published table: what a real machine measured with the first arm's kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    pub source: String,
    /// Figures by their rows' labels, in the table's unit.
    pub rows: Vec<(String, f64)>,
}

/// The measurements of one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The experiment's name for the table, if it gives one.
    pub name: Option<String>,
    /// The workload's name, e.g. `hackbench-pipes`.
    pub workload: String,
    /// The workload's parameters by name.
    pub parameters: BTreeMap<String, Value>,
    pub class: Class,
    /// Unit of the samples, e.g. `s` or `us per loop`.
    pub unit: String,
    pub better: Better,
    /// Decimal places of the values in the text table.
    pub decimals: usize,
    /// Names of the arms; the first is the base of every change.
    pub arms: Vec<String>,
    pub operations: Vec<Operation>,
    pub published: Option<Published>,
}

/// One row of the JSON document before it is summarised: a label, and per arm one sample per iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub label: String,
    pub arms: Vec<Vec<f64>>,
}

impl Table {
    /// The experiment's name for the table, else the workload's.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.workload)
    }

    /// The mean of the rows: harmonic for rates with several samples, else arithmetic.
    pub fn mean(&self) -> Mean {
        match (&self.class, self.better) {
            (Class::Multiops | Class::LeftSkewops | Class::Normalisedops, Better::Higher) => Mean::Harmonic,
            _ => Mean::Arithmetic,
        }
    }

    /// The document's word for it: `Amean`, `Hmean`, `several` (each row names its own) or `value`.
    pub fn statistic(&self) -> &'static str {
        match self.class {
            Class::Multiops | Class::LeftSkewops | Class::Normalisedops => self.mean().name(),
            Class::Variabletime => "several",
            Class::Singleops { .. } => "value",
        }
    }

    /// The rows of the JSON document. An iteration whose harmonic mean is invalid (a sample of zero) counts as 0, which
    /// makes the row's mean invalid too.
    pub fn series(&self) -> Vec<Series> {
        self.check();
        match self.class {
            Class::Multiops | Class::LeftSkewops | Class::Normalisedops => self.per_operation(self.mean()),
            Class::Singleops { .. } => self.per_operation(Mean::Arithmetic),
            Class::Variabletime => self.per_quantile(),
        }
    }

    fn per_operation(&self, mean: Mean) -> Vec<Series> {
        let of_iteration = |samples: &Vec<f64>| match samples[..] {
            [only] => only,
            _ => mean.of(samples).unwrap_or(0.0),
        };
        self.operations
            .iter()
            .map(|operation| Series {
                label: operation.label.clone(),
                arms: operation.arms.iter().map(|runs| runs.iter().map(of_iteration).collect()).collect(),
            })
            .collect()
    }

    fn per_quantile(&self) -> Vec<Series> {
        let alone = self.operations.len() == 1;
        let mut all = Vec::new();
        for statistic in TimeStatistic::ALL {
            for operation in &self.operations {
                let of_run = |runs: &Iterations| runs.iter().map(|samples| statistic.of(samples)).collect();
                let label = statistic.label();
                all.push(Series {
                    label: if alone { label.to_string() } else { format!("{label} {}", operation.label) },
                    arms: operation.arms.iter().map(of_run).collect(),
                });
            }
        }
        all
    }

    /// Panics if the table has a hole: our own code builds tables, so a hole in one is our bug.
    pub(crate) fn check(&self) {
        assert!(!self.arms.is_empty(), "table {}: no arms", self.title());
        if self.class == Class::Variabletime {
            assert_eq!(self.better, Better::Lower, "table {}: a time is better when lower", self.title());
        }
        for operation in &self.operations {
            let place = format!("table {}, operation {}", self.title(), operation.label);
            assert_eq!(operation.arms.len(), self.arms.len(), "{place}: one set of iterations per arm");
            for runs in &operation.arms {
                assert!(!runs.is_empty() && runs.iter().all(|run| !run.is_empty()), "{place}: samples are missing");
                assert!(runs.iter().flatten().all(|sample| sample.is_finite()), "{place}: a sample is not finite");
            }
        }
    }
}

/// The 17 rows of a Variabletime table of 2016, in their order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeStatistic {
    Min,
    /// Label, and q of [`quantile`].
    Quantile(&'static str, f64),
    Max,
    Mean,
    /// Label, and share in per cent of [`best_mean_inclusive`].
    Best(&'static str, usize),
}

impl TimeStatistic {
    pub const ALL: [TimeStatistic; 17] = [
        TimeStatistic::Min,
        TimeStatistic::Quantile("1st-qrtle", 0.25),
        TimeStatistic::Quantile("2nd-qrtle", 0.50),
        TimeStatistic::Quantile("3rd-qrtle", 0.75),
        TimeStatistic::Quantile("Max-90%", 0.90),
        TimeStatistic::Quantile("Max-93%", 0.93),
        TimeStatistic::Quantile("Max-95%", 0.95),
        TimeStatistic::Quantile("Max-99%", 0.99),
        TimeStatistic::Max,
        TimeStatistic::Mean,
        TimeStatistic::Best("Best99%Mean", 99),
        TimeStatistic::Best("Best95%Mean", 95),
        TimeStatistic::Best("Best90%Mean", 90),
        TimeStatistic::Best("Best50%Mean", 50),
        TimeStatistic::Best("Best10%Mean", 10),
        TimeStatistic::Best("Best5%Mean", 5),
        TimeStatistic::Best("Best1%Mean", 1),
    ];

    pub fn label(self) -> &'static str {
        match self {
            TimeStatistic::Min => "Min",
            TimeStatistic::Max => "Max",
            TimeStatistic::Mean => "Mean",
            TimeStatistic::Quantile(label, _) | TimeStatistic::Best(label, _) => label,
        }
    }

    /// The statistic of one iteration's samples. Panics without samples.
    pub fn of(self, samples: &[f64]) -> f64 {
        let value = match self {
            TimeStatistic::Min => minimum(samples),
            TimeStatistic::Max => maximum(samples),
            TimeStatistic::Mean => amean(samples),
            TimeStatistic::Quantile(_, q) => Some(quantile(&ascending(samples), q)),
            TimeStatistic::Best(_, percent) => best_mean_inclusive(samples, percent),
        };
        value.expect("an iteration has samples")
    }
}

#[cfg(test)]
pub(crate) mod fixtures;

#[cfg(test)]
mod tests {
    use super::fixtures::{hackbench, pipetest, throughput};
    use super::*;

    #[test]
    fn rows_of_pipetest_are_its_statistics_and_of_others_their_operations() {
        let rows = pipetest(2, 3).series();
        assert_eq!(rows.len(), 17);
        assert_eq!(rows[9].label, "Mean");
        assert_eq!(rows[9].arms.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        let rows = hackbench(3, 7).series();
        assert_eq!(rows.iter().map(|row| row.label.as_str()).collect::<Vec<_>>(), ["1", "4", "12"]);
        assert_eq!(rows[0].arms.len(), 3);
        assert_eq!(rows[0].arms[0].len(), 7);
    }

    #[test]
    fn an_iteration_of_many_samples_counts_once() {
        let table = throughput(2, 3);
        assert_eq!(table.statistic(), "Hmean");
        let row = &table.series()[0];
        assert_eq!(row.arms[0].len(), 3);
        let first = &table.operations[0].arms[0][0];
        assert_eq!(first.len(), 5);
        assert_eq!(row.arms[0][0], Mean::Harmonic.of(first).unwrap());
    }

    #[test]
    fn two_operations_of_times_are_told_apart() {
        let mut table = pipetest(2, 1);
        table.operations.push(Operation { label: "Other".into(), ..table.operations[0].clone() });
        let labels: Vec<String> = table.series().into_iter().map(|row| row.label).collect();
        assert_eq!(labels[..3], ["Min Time", "Min Other", "1st-qrtle Time"]);
    }

    #[test]
    #[should_panic(expected = "table hackbench-pipes, operation 4: samples are missing")]
    fn a_hole_is_our_mistake() {
        let mut table = hackbench(2, 3);
        table.operations[1].arms[1][2].clear();
        table.series();
    }
}
