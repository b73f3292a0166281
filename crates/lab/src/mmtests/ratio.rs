//! The report of `compare-mmtests.pl --print-ratio`: each operation's main figure as a multiple of the base's, with the
//! geometric mean of all.
//!
//! Only the present form is made (Compare.pm: _generateRatioComparisonTable() and _generateRenderRatioTable()). The
//! number before the `s` says how many intervals the means are apart: their difference, divided by the sum of the half
//! intervals that face each other. Percentages have no width of their own, because MMTests sets it later, when it
//! prints the head. So the columns are not aligned, here as there.
//!
//! Differs: sums run in the order of the table, where the scripts take that of a hash.

use super::rows::pooled;
use super::{PERCENT_FRAME, VALUE_WIDTH, Vintage, split_name, widths};
use crate::statistics::{Better, MeanInterval, amean, maximum, minimum};
use crate::tables::{Class, Operation, Table};
use std::fmt::Write;

/// The ratio of an operation in one arm.
struct Ratio {
    ratio: f64,
    percent: f64,
    /// Intervals between the means; `None` in a table of single figures.
    apart: Option<f64>,
}

/// Whether MMTests has such a report of a table. It has none of pipetest's statistics, which are not operations.
pub fn has_ratios(table: &Table) -> bool {
    table.class != Class::Variabletime
}

/// The title, then the report. The first arm is the base.
pub fn ratios(table: &Table) -> String {
    table.check();
    let rules = Vintage::Now.rules();
    let decimals = rules.skewed_decimals.filter(|_| table.class == Class::LeftSkewops).unwrap_or(table.decimals);
    let rows: Vec<Vec<Ratio>> = table.operations.iter().map(|operation| of(table, operation)).collect();
    let width = table.operations.iter().map(|it| it.label.chars().count()).max().unwrap_or(0) + "Ratio ".len();
    let mut text = format!("{}\n", table.title());
    let column = VALUE_WIDTH + rules.percent_width + PERCENT_FRAME;
    let widths = widths(&table.arms, column);
    for part in [0, 1] {
        text.push_str(&" ".repeat(width));
        for (arm, width) in table.arms.iter().zip(&widths) {
            let name = if part == 0 { split_name(arm).0 } else { split_name(arm).1 };
            let _ = write!(text, "{name:>width$}");
        }
        text.push('\n');
    }
    for (operation, row) in table.operations.iter().zip(&rows) {
        let _ = write!(text, "{:<width$}", format!("Ratio {}", operation.label));
        for (Ratio { ratio, percent, apart }, width) in row.iter().zip(&widths) {
            let value_width = VALUE_WIDTH + width - column;
            let apart = apart.map_or("NaN".to_string(), |apart| format!("{apart:+.2}"));
            let _ = write!(text, "{ratio:>value_width$.decimals$} ({percent:.2}%) ({apart}s)");
        }
        text.push('\n');
    }
    let preferred = match table.better {
        Better::Higher => "Higher",
        Better::Lower => "Lower",
    };
    let mut line = |name: &str, figure: &dyn Fn(usize) -> f64| {
        let _ = write!(text, "{:<width$}", format!("{name} {preferred}"));
        for (arm, width) in widths.iter().enumerate() {
            let value_width = VALUE_WIDTH + width - column;
            // As wide as a change of zero and its distance.
            let _ = write!(text, "{:>value_width$.decimals$}{:17}", figure(arm), "");
        }
        text.push('\n');
    };
    let apart = |arm: usize| -> Vec<f64> { rows.iter().filter_map(|row| row[arm].apart).collect() };
    if rows.iter().flatten().all(|ratio| ratio.apart.is_some()) {
        line("Dmean", &|arm| amean(&apart(arm)).unwrap_or(0.0));
        line("Dmin ", &|arm| minimum(&apart(arm)).unwrap_or(0.0));
        line("Dmax ", &|arm| maximum(&apart(arm)).unwrap_or(0.0));
    }
    line("Gmean", &|arm| gmean(&rows.iter().map(|row| row[arm].ratio).collect::<Vec<f64>>()));
    text
}

/// The ratios of an operation, in every arm.
fn of(table: &Table, operation: &Operation) -> Vec<Ratio> {
    let single = matches!(table.class, Class::Singleops { .. });
    let samples: Vec<Vec<f64>> = operation.arms.iter().map(|runs| pooled(runs, Some(table.better))).collect();
    let value = |samples: &Vec<f64>| if single { amean(samples) } else { table.mean().of(samples) };
    let interval = |samples: &Vec<f64>| MeanInterval::of(samples, table.mean()).filter(|_| !single);
    let (base, base_interval) = (value(&samples[0]), interval(&samples[0]));
    let ratio = |samples: &Vec<f64>| {
        let apart = base_interval.zip(interval(samples)).map(|(base, new)| new.intervals_from(base));
        let Some((base, new)) = base.zip(value(samples)) else {
            return Ratio { ratio: 1.0, percent: 0.0, apart: (!single).then_some(0.0) };
        };
        let ratio = rdiff(new, base);
        let percent = match table.better {
            Better::Higher => ratio * 100.0 - 100.0,
            Better::Lower => 100.0 - ratio * 100.0,
        };
        Ratio { ratio, percent: if ratio == 1.0 { 0.0 } else { percent }, apart }
    };
    samples.iter().map(ratio).collect()
}

/// Stat.pm: rdiff()
fn rdiff(new: f64, base: f64) -> f64 {
    match (new, base) {
        (_, 0.0) => 0.0,
        (0.0, _) => 1.0,
        _ => new / base,
    }
}

/// Stat.pm: calc_geomean(), where no ratio counts as zero.
fn gmean(ratios: &[f64]) -> f64 {
    let product: f64 = ratios.iter().map(|&ratio| if ratio == 0.0 { 0.000_01 } else { ratio }).product();
    root(product, ratios.len())
}

/// The `n`th root by Newton's method, from above. Unlike powf() it gives the same result on every machine.
fn root(value: f64, n: usize) -> f64 {
    let mut root = value.max(1.0);
    loop {
        let power: f64 = (1..n).map(|_| root).product();
        let next = root - (root - value / power) / n as f64;
        if next.is_nan() || next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::{gmean, root};

    #[test]
    fn roots_and_means() {
        for (value, n, expected) in [(8.0, 3, 2.0), (1.0, 7, 1.0), (0.5, 1, 0.5), (1e-10, 2, 1e-5), (1024.0, 10, 2.0)] {
            assert!((root(value, n) - expected).abs() <= expected * 1e-14, "{value} {n}");
        }
        assert!((gmean(&[0.5, 2.0, 1.0]) - 1.0).abs() < 1e-15 && (gmean(&[0.0, 1.0]) - 0.00316).abs() < 1e-5);
    }
}
