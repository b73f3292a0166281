//! The table: figure, real kernel, simulated, tolerance, verdict.

use crate::experiment::Experiment;
use crate::experiment::Figure;
use crate::numbers::plain;
use std::fmt::Write;

/// One compared figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub case: String,
    /// The simulated kernel, as the case names it.
    pub kernel: String,
    pub figure: Figure,
    /// The figure from each seed, in ascending order; at least one.
    pub simulated: Vec<f64>,
}

/// The result of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Agrees,
    /// Off, as the case says that it is.
    KnownGap,
    /// Off, and the case gives no reason.
    Off,
    /// The case says that the figure is off, but it is not. The gap is closed, so its note must go.
    GapClosed,
}

impl Verdict {
    pub fn is_good(self) -> bool {
        matches!(self, Verdict::Agrees | Verdict::KnownGap)
    }

    fn word(self) -> &'static str {
        match self {
            Verdict::Agrees => "ok",
            Verdict::KnownGap => "known gap",
            Verdict::Off => "OFF",
            Verdict::GapClosed => "GAP CLOSED",
        }
    }
}

impl Row {
    pub(super) fn new(case: &Experiment, figure: &Figure, mut simulated: Vec<f64>) -> Row {
        simulated.sort_by(f64::total_cmp);
        Row { case: case.name.clone(), kernel: case.arms[0].kernel.clone(), figure: figure.clone(), simulated }
    }

    /// The median of the simulated figures.
    pub fn median(&self) -> f64 {
        self.simulated[self.simulated.len() / 2]
    }

    /// The real figure is one sample, from one phase of timers and ticks, or the median of a few. So it agrees if it
    /// lies among the figures from several seeds, or within the tolerance of the nearest.
    pub fn verdict(&self) -> Verdict {
        let (least, most) = (self.simulated[0], self.simulated[self.simulated.len() - 1]);
        let real = self.figure.real();
        let agrees = self.figure.tolerance.allows(real, real.clamp(least, most));
        match (agrees, &self.figure.gap) {
            (true, None) => Verdict::Agrees,
            (false, None) => Verdict::Off,
            (true, Some(_)) => Verdict::GapClosed,
            (false, Some(_)) => Verdict::KnownGap,
        }
    }
}

/// Five significant digits, without an exponent.
fn value(number: f64) -> String {
    let digits = if number.abs() >= 1000.0 {
        1
    } else if number.abs() >= 10.0 {
        2
    } else {
        4
    };
    plain(number, digits).trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The rows of all cases as one text, followed by the reasons of the known gaps.
pub fn render(rows: &[Row]) -> String {
    let tolerance = |row: &Row| {
        let of = row.figure.tolerance;
        let either = [of.absolute.map(value), of.percent.map(|most| value(most) + "%")];
        format!("+-{}", either.into_iter().flatten().collect::<Vec<_>>().join(" or "))
    };
    let range = |of: &[f64]| match of {
        [least, .., most] => format!("{}..{}", value(*least), value(*most)),
        _ => String::new(),
    };
    let real = |row: &Row| match &row.figure.reals[..] {
        [one] => value(*one),
        several => format!("{} ({})", value(row.figure.real()), range(several)),
    };
    let lines: Vec<[String; 8]> = rows
        .iter()
        .map(|row| {
            [
                row.case.clone(),
                row.kernel.clone(),
                row.figure.title(),
                real(row),
                value(row.median()),
                range(&row.simulated),
                tolerance(row),
                row.verdict().word().to_string(),
            ]
        })
        .collect();
    let head = ["case", "kernel", "figure", "real", "simulated", "range", "tolerance", "verdict"].map(str::to_string);
    let width = |column: usize| lines.iter().chain([&head]).map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for line in [&head].into_iter().chain(&lines) {
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            let gap = if column == 0 { "" } else { "  " };
            // Numbers are aligned right, words left.
            let _ = if (3..=5).contains(&column) {
                write!(text, "{gap}{cell:>width$}")
            } else {
                write!(text, "{gap}{cell:<width$}")
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    for row in rows.iter().filter(|row| row.verdict() == Verdict::KnownGap) {
        let gap = row.figure.gap.as_deref().unwrap_or_default();
        let _ = write!(text, "\n{} {}: {gap}", row.case, row.figure.title());
    }
    if rows.iter().any(|row| row.verdict() == Verdict::KnownGap) {
        text.push('\n');
    }
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
    let _ = writeln!(
        text,
        "\n{} figures: {} agree, {} known gaps, {} off, {} gaps closed",
        rows.len(),
        count(Verdict::Agrees),
        count(Verdict::KnownGap),
        count(Verdict::Off),
        count(Verdict::GapClosed)
    );
    text
}
