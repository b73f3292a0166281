//! A table of a single arm; MMTests has no report for it.

use super::{Vintage, series};
use crate::statistics::{maximum, minimum, sample_stddev};
use crate::tables::Table;
use std::fmt::Write;

/// The rows of a table with one arm: number of samples, mean, deviation and extremes. The mean is the same as with
/// several arms: harmonic for rates.
pub fn figures(table: &Table, vintage: Vintage) -> String {
    let rows = series(table, vintage);
    let width = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0).max("row".len());
    let mut text = format!("{} ({})\n", table.title(), table.unit);
    let _ = writeln!(text, "{:<width$} {:>6}{:>14}{:>14}{:>14}{:>14}", "row", "n", "mean", "stddev", "min", "max");
    let decimals = table.decimals;
    for row in &rows {
        let samples = &row.arms[0];
        let figure = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.decimals$}"));
        let cells = [table.mean().of(samples), sample_stddev(samples), minimum(samples), maximum(samples)].map(figure);
        let cells: String = cells.iter().map(|cell| format!("{cell:>14}")).collect();
        let _ = writeln!(text, "{:<width$} {:>6}{cells}", row.label, samples.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::fixtures::{hackbench, throughput};

    #[test]
    fn rates_have_their_harmonic_mean_and_times_their_arithmetic_one() {
        let mean = |mut table: Table, samples: [f64; 2]| {
            table.operations[0].arms[0] = samples.map(|sample| vec![sample]).to_vec();
            let text = figures(&table, Vintage::Now);
            let cell = text.lines().nth(2).and_then(|row| row.split_whitespace().nth(2));
            cell.unwrap_or_else(|| panic!("{text}")).to_string()
        };
        // The arithmetic mean would be 4.
        assert_eq!(mean(throughput(1, 2), [2.0, 6.0]), "3.00");
        assert_eq!(mean(hackbench(1, 2), [2.0, 6.0]), "4.0000");
        assert_eq!(mean(throughput(1, 2), [0.0, 6.0]), "-");
    }
}
