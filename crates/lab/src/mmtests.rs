//! MMTests' comparison table, character for character, as a kernel changelog shows it.
//!
//! ```text
//!                         4.5.0-rc1             4.5.0-rc1
//!                           vanilla          nostats-v3r1
//! Amean    1       0.1691 (  0.00%)      0.1634 (  3.38%)
//! Amean    4       0.4687 (  0.00%)      0.4630 (  1.22%)
//! ```
//!
//! MMTests changed over the years: rows, formulas and widths follow one of three of its states ([`Vintage`]). The rules
//! were taken from its source (files in `bin/lib/MMTests`: `Compare.pm`, `Summarise*.pm`, `PrintGeneric.pm`,
//! `Stat.pm`). The tests contain the output of that source for made-up samples.
//!
//! Deliberate differences:
//! - a title stands above the table (changelogs carry one; the scripts print none);
//! - a name without a hyphen stands whole in the first line of the head (the scripts cut its last letter there and
//!   repeat the name in the second); `-rc10` and above stay together; `-rcN` counts only where it directly follows the
//!   first part;
//! - a column is wider where a name needs it (the scripts let long names run into each other);
//! - where the base has no value for a cell, the change is 0 (the scripts divide by "NaN");
//! - pipetest left MMTests before its present state: there our rows are those of 2016;
//! - SubAmean and SubAmeanCI of 2018 come from a fixed stream of chance, where a program of its own threw other dice each time;
//! - the half microseconds to which the state of 2018 rounds pipetest's samples are left out.

mod figures;
mod ratio;
mod rows;

pub use figures::figures;
pub use ratio::{has_ratios, ratios};

use crate::statistics::{MeanInterval, percent_change, through_text};
use crate::tables::{Class, Iterations, Operation, Series, Table};
use rows::Row;

/// A state of MMTests whose table is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vintage {
    /// 2016-01-27 (bbf651f4): the time of Linux 4.5.
    Feb2016,
    /// 2018-01-22 (34e07f62): the time of Linux 4.15.
    Jan2018,
    /// 2026-06-24 (638401e0).
    Now,
}

/// Whether a main mean's change may be printed in asterisks instead of parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stars {
    /// As in the vintage's own tables: only those of the present one have asterisks.
    OfTheVintage,
    /// Where the change is significant by MMTests' rule, whatever the vintage.
    Significant,
    Never,
}

/// How a vintage differs from others. Code below matches these fields, never the vintage itself.
struct Rules {
    /// Digits, sign and point of a percentage: c in ` (%<c>.2f%%)`.
    percent_width: usize,
    /// Percentages pass through Perl's text of 15 digits on their way to the print (a mark is glued to them).
    percent_through_text: bool,
    stars: bool,
    deviation: Deviation,
    best: BestMean,
    /// Whether samples are summed with the best first, or in the order of measurement.
    sorted_sums: bool,
    /// Digits after the point for dbench and tbench, where these have their own (`shellpack_src/src/dbench/shellpack.yaml`, which is tbench's too).
    skewed_decimals: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Deviation {
    /// Around the arithmetic mean, divided by n.
    Population,
    /// Around the arithmetic mean, divided by n - 1.
    Sample,
    /// As `Sample` for times; HStddev for rates, with the harmonic mean in the coefficient too.
    OfTheMean,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BestMean {
    /// [`crate::statistics::best_mean_inclusive`].
    Inclusive,
    /// [`crate::statistics::best_mean_uneven`].
    Uneven,
    /// [`crate::statistics::best_mean`].
    Even,
}

impl Vintage {
    pub const ALL: [Vintage; 3] = [Vintage::Feb2016, Vintage::Jan2018, Vintage::Now];

    fn rules(self) -> Rules {
        const FEB_2016: Rules = Rules {
            percent_width: 6,
            percent_through_text: false,
            stars: false,
            deviation: Deviation::Population,
            best: BestMean::Inclusive,
            sorted_sums: false,
            skewed_decimals: None,
        };
        const JAN_2018: Rules =
            Rules { percent_width: 7, deviation: Deviation::Sample, best: BestMean::Uneven, ..FEB_2016 };
        const NOW: Rules = Rules {
            percent_through_text: true,
            stars: true,
            deviation: Deviation::OfTheMean,
            best: BestMean::Even,
            sorted_sums: true,
            skewed_decimals: Some(4),
            ..JAN_2018
        };
        match self {
            Vintage::Feb2016 => FEB_2016,
            Vintage::Jan2018 => JAN_2018,
            Vintage::Now => NOW,
        }
    }
}

/// The width of a value: `%12.<p>f`.
const VALUE_WIDTH: usize = 12;

/// A space, an opening mark, a per cent sign and a closing mark around the percentage.
const PERCENT_FRAME: usize = 4;

/// The title, then MMTests' table of `table`: two lines of head, then all operations of the first statistic, all of the
/// next, and so on. Every line ends with a newline; head lines keep their trailing blanks, as MMTests' do.
///
/// The first arm is the base. Panics on a table with a hole in it (a bug of ours).
pub fn render(table: &Table, vintage: Vintage, stars: Stars) -> String {
    table.check();
    let rules = vintage.rules();
    let starred = match stars {
        Stars::OfTheVintage => rules.stars,
        Stars::Significant => true,
        Stars::Never => false,
    };
    let mut lines = Vec::new();
    for row in rows::of(table, vintage) {
        for operation in &table.operations {
            let values: Vec<Option<f64>> = operation.arms.iter().map(|runs| row.value(table, &rules, runs)).collect();
            let marks = match starred && row.main {
                true => significant(table, &operation.arms),
                false => vec![false; values.len()],
            };
            let cells = cells(table, &rules, &row, &values, &marks);
            lines.push(Line { statistic: row.label.clone(), operation: operation.label.clone(), cells });
        }
    }
    let own = rules.skewed_decimals.filter(|_| table.class == Class::LeftSkewops);
    let decimals = own.unwrap_or(table.decimals);
    format!("{}\n{}", table.title(), lay_out(&table.arms, &lines, rules.percent_width, decimals))
}

/// For a Variabletime table, the rows that [`render`] shows in a vintage, each with its value in every iteration; for
/// any other table, its operations ([`Table::series`]).
pub fn series(table: &Table, vintage: Vintage) -> Vec<Series> {
    table.check();
    if table.class != Class::Variabletime {
        return table.series();
    }
    let rules = vintage.rules();
    let alone = table.operations.len() == 1;
    let of = |row: &Row, operation: &Operation| {
        // As in the table, a value that does not exist (the deviation of one sample) is 0.
        let value = |run: &Vec<f64>| row.value(table, &rules, &vec![run.clone()]).unwrap_or(0.0);
        Series {
            label: if alone { row.label.clone() } else { format!("{} {}", row.label, operation.label) },
            arms: operation.arms.iter().map(|runs| runs.iter().map(value).collect()).collect(),
        }
    };
    rows::of(table, vintage).iter().flat_map(|row| table.operations.iter().map(move |o| of(row, o))).collect()
}

/// Whether a table of times has this row in a vintage, and its change is [told](compared).
pub fn compares_time(vintage: Vintage, label: &str) -> bool {
    rows::variabletime(vintage).iter().any(|row| row.label == label && !row.is_spread())
}

/// The [rows](series) whose change says how much faster or slower something became: all but deviations and their
/// coefficients.
pub fn compared(table: &Table, vintage: Vintage) -> Vec<Series> {
    let mut rows = series(table, vintage);
    if table.class == Class::Variabletime {
        let spread = rows::of(table, vintage).into_iter().map(|row| row.is_spread());
        let mut of_each = spread.flat_map(|spread| std::iter::repeat_n(spread, table.operations.len()));
        rows.retain(|_| of_each.next() == Some(false));
    }
    rows
}

/// One line of the table, before it is laid out.
struct Line {
    statistic: String,
    operation: String,
    cells: Vec<Cell>,
}

struct Cell {
    value: f64,
    /// The change relative to the first cell of the line, in per cent.
    percent: f64,
    starred: bool,
}

/// Values that do not exist (a deviation of one sample, a harmonic mean over a zero) print as 0 with a change of 0.
fn cells(table: &Table, rules: &Rules, row: &Row, values: &[Option<f64>], marks: &[bool]) -> Vec<Cell> {
    let better = row.better(table.better);
    let cell = |(&value, &starred): (&Option<f64>, &bool)| {
        let percent = match (values[0], value) {
            (Some(base), Some(new)) => percent_change(better, base, new),
            _ => 0.0,
        };
        let percent = if rules.percent_through_text { through_text(percent, 15) } else { percent };
        Cell { value: value.unwrap_or(0.0), percent, starred }
    };
    values.iter().zip(marks).map(cell).collect()
}

/// MMTests' rule for each arm against the first, over the pooled samples with the best first.
fn significant(table: &Table, arms: &[Iterations]) -> Vec<bool> {
    let interval = |runs: &Iterations| MeanInterval::of(&rows::pooled(runs, Some(table.better)), table.mean());
    let base = interval(&arms[0]);
    arms.iter()
        .enumerate()
        .map(|(arm, runs)| match (arm, base, interval(runs)) {
            (1.., Some(base), Some(new)) => new.differs_from(base),
            _ => false,
        })
        .collect()
}

fn lay_out(arms: &[String], lines: &[Line], percent_width: usize, decimals: usize) -> String {
    let longest = |text: fn(&Line) -> &str| lines.iter().map(|line| text(line).chars().count()).max().unwrap_or(0);
    let statistic_width = longest(|line| &line.statistic);
    let operation_width = longest(|line| &line.operation);
    let label_width = statistic_width + 1 + operation_width;
    let column_width = VALUE_WIDTH + percent_width + PERCENT_FRAME;
    let widths = widths(arms, column_width);

    let mut text = String::new();
    for part in [0, 1] {
        text.push_str(&" ".repeat(label_width));
        for (arm, width) in arms.iter().zip(&widths) {
            let name = if part == 0 { split_name(arm).0 } else { split_name(arm).1 };
            text.push_str(&format!("{name:>width$}"));
        }
        text.push('\n');
    }
    for line in lines {
        text.push_str(&format!("{:<statistic_width$} {:<operation_width$}", line.statistic, line.operation));
        for (cell, width) in line.cells.iter().zip(&widths) {
            let (open, close) = if cell.starred { ('*', '*') } else { ('(', ')') };
            let (value, percent, value_width) = (cell.value, cell.percent, VALUE_WIDTH + width - column_width);
            text.push_str(&format!("{value:>value_width$.decimals$} {open}{percent:>percent_width$.2}%{close}"));
        }
        text.push('\n');
    }
    text
}

/// The widths of the arms' columns: `narrow`, or more if a part of a name with two blanks before it needs more.
fn widths(arms: &[String], narrow: usize) -> Vec<usize> {
    let longest = |arm: &String| {
        let (first, second) = split_name(arm);
        first.chars().count().max(second.chars().count())
    };
    arms.iter().map(|arm| narrow.max(longest(arm) + 2)).collect()
}

/// The two lines of the head for a kernel's name. The name is split at its first hyphen, but a `-rcN` directly after it
/// stays in the first line (`4.5.0-rc1` / `vanilla`).
fn split_name(name: &str) -> (&str, &str) {
    let Some(first) = name.find('-') else { return (name, "") };
    let candidate = name[first..].strip_prefix("-rc").unwrap_or("");
    let digits = candidate.bytes().take_while(u8::is_ascii_digit).count();
    let end = if digits > 0 { first + "-rc".len() + digits } else { first };
    // If another character than a hyphen follows the number (`-rc1+`), it is kept at the beginning of the second line.
    let rest = &name[end..];
    (&name[..end], rest.strip_prefix('-').unwrap_or(rest))
}

/// If a class has only one figure, its rows are named after it.
fn figure(class: &Class) -> &str {
    match class {
        Class::Singleops { figure } => figure,
        Class::Multiops | Class::LeftSkewops | Class::Normalisedops | Class::Variabletime => "Ops",
    }
}

#[cfg(test)]
mod tests;
