//! A table of one arm, which MMTests has no report for.

use super::{Vintage, series};
use crate::statistics::{amean, maximum, minimum, sample_stddev};
use crate::tables::Table;
use std::fmt::Write;

/// The rows of a table with one arm: number of samples, mean, deviation and extremes.
pub fn figures(table: &Table, vintage: Vintage) -> String {
    let rows = series(table, vintage);
    let width = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0).max("row".len());
    let mut text = format!("{} ({})\n", table.title(), table.unit);
    let _ = writeln!(text, "{:<width$} {:>6}{:>14}{:>14}{:>14}{:>14}", "row", "n", "mean", "stddev", "min", "max");
    let decimals = table.decimals;
    for row in &rows {
        let samples = &row.arms[0];
        let figure = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.decimals$}"));
        let cells = [amean(samples), sample_stddev(samples), minimum(samples), maximum(samples)].map(figure);
        let cells: String = cells.iter().map(|cell| format!("{cell:>14}")).collect();
        let _ = writeln!(text, "{:<width$} {:>6}{cells}", row.label, samples.len());
    }
    text
}
