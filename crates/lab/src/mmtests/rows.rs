//! The rows of a table: the statistics of a class in a vintage, in MMTests' order, and their values.

use super::{BestMean, Deviation, Rules, Vintage};
use crate::statistics::{
    Better, Mean, amean, ascending, best_first, best_mean, best_mean_inclusive, best_mean_uneven,
    coefficient_of_variation, harmonic_stddev, maximum, minimum, population_stddev, quantile, sample_stddev,
    subselection,
};
use crate::tables::{Class, Iterations, Table, TimeStatistic};

/// One statistic, computed for every operation.
pub struct Row {
    pub label: String,
    statistic: Statistic,
    /// Whether its change may bear asterisks.
    pub main: bool,
}

#[derive(Clone, Copy)]
enum Statistic {
    Min,
    Mean,
    Deviation,
    Coefficient,
    Max,
    /// The quantile's q.
    Quantile(f64),
    /// The share of samples in per cent, counted from the best.
    Percentile(usize),
    /// The share of samples in per cent.
    Best(usize),
    /// In 2018: the mean of samples drawn from all samples, and half the width of its interval.
    Subselection,
    SubselectionInterval,
    /// The single figure, or the arithmetic mean of several.
    Figure,
    /// In 2016: computed for each iteration.
    Time(TimeStatistic),
}

pub fn of(table: &Table, vintage: Vintage) -> Vec<Row> {
    match (&table.class, vintage) {
        (Class::LeftSkewops, Vintage::Now) => normalised(table.mean(), &[50, 75, 90, 99]),
        (Class::Normalisedops, Vintage::Now) => normalised(table.mean(), &[95]),
        (Class::LeftSkewops, Vintage::Jan2018) if table.mean() == Mean::Arithmetic => subselection_2018(),
        (Class::Multiops | Class::LeftSkewops | Class::Normalisedops, _) => multiops(table.mean(), vintage),
        (Class::Variabletime, _) => variabletime(vintage),
        (Class::Singleops { .. }, _) => vec![row(super::figure(&table.class), Statistic::Figure, false)],
    }
}

impl Row {
    /// Whether it says how far samples lie apart, rather than how long they are.
    pub fn is_spread(&self) -> bool {
        matches!(self.statistic, Statistic::Deviation | Statistic::Coefficient)
    }
}

fn row(label: &str, statistic: Statistic, main: bool) -> Row {
    Row { label: label.into(), statistic, main }
}

fn multiops(mean: Mean, vintage: Vintage) -> Vec<Row> {
    let name = mean.name();
    let around_harmonic = vintage.rules().deviation == Deviation::OfTheMean && mean == Mean::Harmonic;
    let (deviation, coefficient) = if around_harmonic { ("HStddev", "HCoeffVar") } else { ("Stddev", "CoeffVar") };
    let mut rows = vec![
        row("Min", Statistic::Min, false),
        row(name, Statistic::Mean, true),
        row(deviation, Statistic::Deviation, false),
        row(coefficient, Statistic::Coefficient, false),
        row("Max", Statistic::Max, false),
    ];
    let (shares, sign): (&[usize], char) = match vintage {
        Vintage::Feb2016 => (&[], '-'),
        Vintage::Jan2018 => (&[50, 95, 99], '-'),
        Vintage::Now => (&[95], '.'),
    };
    rows.extend(shares.iter().map(|&share| row(&format!("B{name}{sign}{share}"), Statistic::Best(share), false)));
    rows
}

/// Summarise.pm: setSummaryNormalisedLeftSkewops(), setSummaryNormalisedops(), which differ in their shares of the best.
fn normalised(mean: Mean, shares: &[usize]) -> Vec<Row> {
    let name = mean.name();
    let (deviation, coefficient) =
        if mean == Mean::Harmonic { ("HStddev", "HCoeffVar") } else { ("Stddev", "CoeffVar") };
    let best = |share: usize| {
        [
            row(&format!("B{name}.{share}"), Statistic::Best(share), false),
            row(&format!("Pctile.{share}"), Statistic::Percentile(share), false),
        ]
    };
    let mut rows = vec![row("Min", Statistic::Min, false), row(name, Statistic::Mean, true)];
    rows.extend(shares.iter().copied().flat_map(best));
    rows.push(row(deviation, Statistic::Deviation, false));
    rows.push(row(coefficient, Statistic::Coefficient, false));
    rows.push(row("Max", Statistic::Max, false));
    rows
}

/// SummariseSubselection.pm
fn subselection_2018() -> Vec<Row> {
    vec![
        row("Min", Statistic::Min, false),
        row("Amean", Statistic::Mean, true),
        row("Stddev", Statistic::Deviation, false),
        row("Max", Statistic::Max, false),
        row("SubAmean", Statistic::Subselection, false),
        row("SubAmeanCI", Statistic::SubselectionInterval, false),
    ]
}

/// The rows of a Variabletime table.
pub fn variabletime(vintage: Vintage) -> Vec<Row> {
    let of_2016 = |time: TimeStatistic| row(time.label(), Statistic::Time(time), time == TimeStatistic::Mean);
    match vintage {
        Vintage::Feb2016 | Vintage::Now => TimeStatistic::ALL.map(of_2016).into(),
        Vintage::Jan2018 => variabletime_2018(),
    }
}

/// There are 17 rows as in 2016, but others: no Max-93%, a deviation and its coefficient, and other shares of the best.
fn variabletime_2018() -> Vec<Row> {
    let mut rows = vec![
        row("Min", Statistic::Min, false),
        row("1st-qrtle", Statistic::Quantile(0.25), false),
        row("2nd-qrtle", Statistic::Quantile(0.50), false),
        row("3rd-qrtle", Statistic::Quantile(0.75), false),
        row("Max-90%", Statistic::Quantile(0.90), false),
        row("Max-95%", Statistic::Quantile(0.95), false),
        row("Max-99%", Statistic::Quantile(0.99), false),
        row("Max", Statistic::Max, false),
        row("Amean", Statistic::Mean, true),
        row("Stddev", Statistic::Deviation, false),
        row("Coeff", Statistic::Coefficient, false),
    ];
    rows.extend(
        [99, 95, 90, 75, 50, 25].map(|share| row(&format!("Best{share}%Amean"), Statistic::Best(share), false)),
    );
    rows
}

/// The samples of all iterations, sorted with the best first if a direction is given.
pub fn pooled(runs: &Iterations, sorted: Option<Better>) -> Vec<f64> {
    let all: Vec<f64> = runs.iter().flatten().copied().collect();
    match sorted {
        Some(better) => best_first(&all, better),
        None => all,
    }
}

impl Row {
    /// Spread is better when lower, whatever the samples are.
    pub fn better(&self, samples: Better) -> Better {
        match self.statistic {
            Statistic::Deviation | Statistic::Coefficient => Better::Lower,
            _ => samples,
        }
    }

    /// The row's value for one arm of one operation; `None` if it does not exist. It is computed over the samples of
    /// all iterations, but for Variabletime (see [`Class::Variabletime`]) it is the mean of each iteration's value.
    pub(super) fn value(&self, table: &Table, rules: &Rules, runs: &Iterations) -> Option<f64> {
        if table.class != Class::Variabletime {
            let order = rules.sorted_sums.then_some(table.better);
            return self.statistic.of(&pooled(runs, order), table, rules);
        }
        let values: Vec<f64> = runs.iter().filter_map(|run| self.statistic.of(run, table, rules)).collect();
        amean(&values)
    }
}

impl Statistic {
    fn of(self, samples: &[f64], table: &Table, rules: &Rules) -> Option<f64> {
        let mean = table.mean();
        match self {
            Statistic::Min => minimum(samples),
            Statistic::Max => maximum(samples),
            Statistic::Mean => mean.of(samples),
            Statistic::Deviation => deviation(samples, mean, rules.deviation),
            Statistic::Coefficient => {
                let around = if rules.deviation == Deviation::OfTheMean { mean } else { Mean::Arithmetic };
                Some(coefficient_of_variation(deviation(samples, mean, rules.deviation), around.of(samples)))
            }
            Statistic::Quantile(q) => Some(quantile(&ascending(samples), q)),
            Statistic::Percentile(share) => {
                let sorted = best_first(samples, table.better);
                sorted.get((sorted.len() * share / 100).max(1) - 1).copied()
            }
            Statistic::Best(share) => match rules.best {
                BestMean::Inclusive => best_mean_inclusive(samples, share),
                BestMean::Uneven => best_mean_uneven(samples, share, mean, table.better),
                BestMean::Even => best_mean(samples, share, mean, table.better),
            },
            Statistic::Subselection => subselection(samples).map(|drawn| drawn.0),
            Statistic::SubselectionInterval => subselection(samples).map(|drawn| drawn.1),
            Statistic::Figure => amean(samples),
            Statistic::Time(time) => Some(time.of(samples)),
        }
    }
}

fn deviation(samples: &[f64], mean: Mean, rule: Deviation) -> Option<f64> {
    match (rule, mean) {
        (Deviation::Population, _) => population_stddev(samples),
        (Deviation::OfTheMean, Mean::Harmonic) => harmonic_stddev(samples),
        (Deviation::Sample, _) | (Deviation::OfTheMean, Mean::Arithmetic) => sample_stddev(samples),
    }
}
