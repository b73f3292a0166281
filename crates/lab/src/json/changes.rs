//! Our own statistics below MMTests's table: the change of every row with its interval, and what the row counts as.
//!
//! ```text
//! change in %, positive is better, with its 95% interval
//! row    n               nostats
//! Min    7     1.62 (   1.60 ..    1.64) gain
//! ```

use super::verdict::Finding;
use crate::experiment::Adaptive;
use crate::json::{Change, RowResult, TableResult};
use crate::numbers::plain;
use std::fmt::Write;

/// The lines, each with its newline. Empty without intervals, that is with one iteration or one arm.
pub fn text(table: &TableResult) -> String {
    if table.most_pairs() < 2 {
        return String::new();
    }
    let label = table.rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0).max("row".len());
    let arms: Vec<&str> = table.verdict.arms.iter().map(|arm| arm.name.as_str()).collect();
    // Each column is as wide as its head or its cells.
    let cells: Vec<Vec<String>> = table.rows.iter().map(cells).collect();
    let width = |arm: usize| {
        let cells = cells.iter().map(|row| row[arm].chars().count());
        cells.chain([arms[arm].chars().count()]).max().unwrap_or(0)
    };
    let mut head = format!("{:<label$} {:>4}", "row", "n");
    for (arm, name) in arms.iter().enumerate() {
        let _ = write!(head, "  {name:>width$}", width = width(arm));
    }
    let mut text = format!("change in %, positive is better, with its 95% interval\n{head}\n");
    for (row, cells) in table.rows.iter().zip(&cells) {
        let mut line = format!("{:<label$} {:>4}", row.label, row.pairs().min().unwrap_or(0));
        for (arm, cell) in cells.iter().enumerate() {
            let _ = write!(line, "  {cell:>width$}", width = width(arm));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// How many rows are as narrow as wanted, and how far the others are from it, in one line. A row is not narrow if one
/// of its changes has no interval.
pub fn widths(table: &TableResult, wanted: &Adaptive) -> String {
    let widest = |row: &&RowResult| row.change.iter().filter_map(Change::half_width).fold(0.0, f64::max);
    let wide: Vec<&RowResult> = table.rows.iter().filter(|row| widest(row) > wanted.half_width).collect();
    let (rows, half_width, max) = (table.rows.len(), wanted.half_width, wanted.max);
    let unknown = |row: &&RowResult| row.change.iter().any(|change| change.half_width().is_none());
    let not_wide = table.rows.iter().filter(|row| widest(row) <= wanted.half_width);
    let without: Vec<&str> = not_wide.filter(unknown).map(|row| row.label.as_str()).collect();
    let narrow = rows - wide.len() - without.len();
    let mut text = format!("intervals within +-{half_width}%: {narrow} of {rows} rows");
    if !wide.is_empty() {
        let named: Vec<String> = wide.iter().map(|row| format!("{} (+-{:.2}%)", row.label, widest(row))).collect();
        let _ = write!(text, "; wider after {max} iterations: {}", named.join(", "));
    }
    if !without.is_empty() {
        let _ = write!(text, "; without an interval: {}", without.join(", "));
    }
    let noise = |row: &&RowResult| row.change.iter().any(|change| change.finding == Finding::Noise);
    let noise: Vec<&str> = table.rows.iter().filter(noise).map(|row| row.label.as_str()).collect();
    if !noise.is_empty() {
        let _ = write!(text, "; noise: {}", noise.join(", "));
    }
    text.push('\n');
    text
}

fn cells(row: &RowResult) -> Vec<String> {
    row.change.iter().zip(row.pairs()).map(|(change, pairs)| cell(change, pairs)).collect()
}

fn cell(change: &Change, pairs: usize) -> String {
    // With a single pair there is no noise to speak of.
    let word = if pairs < 2 { "" } else { change.finding.word() };
    let figure = |figure: Option<f64>| figure.map(|figure| plain(figure, 2));
    match (figure(change.percent), figure(change.low), figure(change.high)) {
        (Some(percent), Some(low), Some(high)) => format!("{percent:>7} ({low:>7} .. {high:>7}) {word:<5}"),
        (Some(percent), ..) => format!("{percent:>7} {:>20} {word:<5}", ""),
        _ => format!("{:>7} {:>20} {word:<5}", "-", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mmtests::Vintage;
    use crate::tables::fixtures::{generator, hackbench, throughput};

    #[test]
    fn every_row_has_its_change_its_interval_and_its_word() {
        let text = text(&TableResult::new(&hackbench(3, 7), Vintage::Now, &generator));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 3);
        assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>()[..3], ["row", "n", "4.5.0-rc1-nostats-v3r1"]);
        assert!(lines[2].starts_with("1      7  ") && lines[2].matches(" .. ").count() == 2, "{text}");
        // Columns end below each other.
        let ends = |line: &str| line.match_indices(')').map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(ends(lines[2]), ends(lines[4]));
    }

    #[test]
    fn rows_that_stay_wide_are_named_and_so_is_noise() {
        let mut table = hackbench(2, 7);
        // One change is the same in every pair; the two others are not.
        table.operations[0].arms[1] = table.operations[0].arms[0].iter().map(|run| vec![run[0] / 2.0]).collect();
        let result = TableResult::new(&table, Vintage::Now, &generator);
        let text = widths(&result, &Adaptive { min: 5, max: 7, half_width: 0.01 });
        assert!(text.starts_with("intervals within +-0.01%: 1 of 3 rows; wider after 7 iterations: 4 (+-"), "{text}");
        let noise: Vec<&str> = result
            .rows
            .iter()
            .filter(|row| row.change[0].finding == Finding::Noise)
            .map(|row| row.label.as_str())
            .collect();
        let ending = if noise.is_empty() { ")\n".to_string() } else { format!("; noise: {}\n", noise.join(", ")) };
        assert!(text.ends_with(&ending), "{text}");
        let text = widths(&result, &Adaptive { min: 5, max: 7, half_width: 100.0 });
        assert!(text.starts_with("intervals within +-100%: 3 of 3 rows"), "{text}");
    }

    #[test]
    fn rows_without_an_interval_are_neither_narrow_nor_a_reason_to_be_silent() {
        let mut table = hackbench(2, 7);
        table.operations[1].arms.iter_mut().for_each(|runs| runs.truncate(1));
        let result = TableResult::new(&table, Vintage::Now, &generator);
        let words = widths(&result, &Adaptive { min: 2, max: 7, half_width: 100.0 });
        assert!(words.starts_with("intervals within +-100%: 2 of 3 rows; without an interval: 4; noise: "), "{words}");
        let text = text(&result);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(rows.iter().map(|row| row.matches(" .. ").count()).collect::<Vec<_>>(), [1, 0, 1], "{text}");
        // Its number of pairs and its change.
        assert_eq!(rows[1].split_whitespace().count(), 3, "{text}");
    }

    #[test]
    fn zeros_have_no_sign() {
        let mut table = hackbench(2, 7);
        // Each pair is slower by a billionth.
        table.operations[0].arms[1] =
            table.operations[0].arms[0].iter().map(|run| vec![run[0] * (1.0 + 1e-9)]).collect();
        let text = text(&TableResult::new(&table, Vintage::Now, &generator));
        let row = text.lines().nth(2).unwrap();
        assert!(row.contains("   0.00 (   0.00 ..    0.00) "), "{text}");
    }

    #[test]
    fn without_intervals_there_is_nothing_to_say() {
        assert_eq!(text(&TableResult::new(&hackbench(2, 1), Vintage::Now, &generator)), "");
        assert_eq!(text(&TableResult::new(&hackbench(1, 7), Vintage::Now, &generator)), "");
    }

    #[test]
    fn a_mean_that_is_invalid_leaves_its_place_empty() {
        let mut table = throughput(2, 2);
        table.operations[0].arms[1][0][3] = 0.0;
        let text = text(&TableResult::new(&table, Vintage::Now, &generator));
        let row = text.lines().nth(2).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["1", "2", "-", "noise"]);
    }
}
