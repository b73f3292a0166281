//! From the runs of all variations to a ranking: what moves the result how far.

use super::{End, Plan, Results, Trial, Uncertain};
use crate::experiment::Experiment;
use crate::measurements::tables;
use crate::statistics::student::two_sided_critical;
use crate::statistics::{Better, Mean, amean, percent_change, sample_stddev};
use serde::Serialize;
use std::fmt::Write;

/// The confidence of the noise that is printed.
const TAIL: f64 = 0.05;

/// How far a row is from what it is on the machine as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Move {
    /// The table and its row.
    pub row: String,
    /// In per cent of the level, or in percentage points of a change between arms.
    pub by: f64,
    /// Half the width of its interval at 95%, from the pairs of runs of equal seed; `None` for a single pair.
    pub noise: Option<f64>,
}

/// What one end of a figure's range does, to the rows that it moves farthest.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moved {
    /// The change between the arms; `None` for one arm.
    pub change: Option<Move>,
    /// The level of the first arm.
    pub level: Option<Move>,
}

/// A figure, and what its ends do. An end that is the value itself moves nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    pub figure: String,
    pub how: String,
    pub value: String,
    pub range: (String, String),
    pub unit: String,
    pub low: Moved,
    pub high: Moved,
}

/// The figures that move the result, the farthest first; those that move it only within the noise after them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranking {
    pub machine: String,
    pub iterations: u32,
    pub arms: Vec<String>,
    /// The machine as it is: rows, the first arm's means, and the changes of the others in per cent.
    pub rows: Vec<BaseRow>,
    pub figures: Vec<Ranked>,
    /// Figures whose runs were those of the machine as it is, bit for bit.
    pub without_influence: Vec<String>,
    /// What could not be run.
    pub impossible: Vec<String>,
    /// Some runs are missing.
    pub partial: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BaseRow {
    pub row: String,
    pub unit: String,
    pub level: Option<f64>,
    pub changes: Vec<f64>,
}

/// A row of one machine: samples by arm and iteration.
struct Row {
    title: String,
    unit: String,
    better: Better,
    mean: Mean,
    arms: Vec<Vec<f64>>,
}

impl Ranking {
    pub fn new(plan: &Plan, results: &Results) -> Ranking {
        let experiment = &plan.experiment;
        let base = rows(experiment, None, results);
        let mut figures: Vec<Ranked> = Vec::new();
        let mut without_influence = Vec::new();
        for (index, uncertain) in plan.uncertain.iter().enumerate() {
            let moved = |end: End| {
                let at = plan.variations.iter().position(|of| (of.figure, of.end) == (index, end));
                let variation = at.filter(|&variation| plan.differs(variation, results))?;
                Some(moved(&base, &rows(&plan.variations[variation].experiment, Some(variation), results)))
            };
            match (moved(End::Low), moved(End::High)) {
                (None, None) => without_influence.push(uncertain.name.clone()),
                (low, high) => figures.push(ranked(uncertain, low.unwrap_or_default(), high.unwrap_or_default())),
            }
        }
        figures.sort_by(|a, b| b.farthest().partial_cmp(&a.farthest()).expect("moves are finite"));
        let runs = plan.first().len() + plan.rest(results).len();
        let base_row = |row: &Row| BaseRow {
            row: row.title.clone(),
            unit: row.unit.clone(),
            level: row.mean.of(&row.arms[0]),
            changes: (1..row.arms.len()).filter_map(|arm| row.change(arm)).collect(),
        };
        Ranking {
            machine: experiment.machine.name.clone(),
            iterations: experiment.iterations,
            arms: experiment.arms.iter().map(|arm| arm.name.clone()).collect(),
            rows: base.iter().map(base_row).collect(),
            figures,
            without_influence,
            impossible: plan.impossible.clone(),
            partial: results.len() < runs,
        }
    }

    /// As JSON, indented.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a ranking of plain values serialises");
        text.push('\n');
        text
    }

    /// The first `top` figures.
    pub fn to_text(&self, top: usize) -> String {
        let mut text = String::new();
        if self.partial {
            let _ = writeln!(text, "PARTIAL: some runs are missing\n");
        }
        let plural = if self.iterations == 1 { "" } else { "s" };
        let _ = writeln!(text, "machine  {}, {} iteration{plural}, paired by seed", self.machine, self.iterations);
        for row in &self.rows {
            let level = row.level.map_or("-".to_string(), |level| format!("{level:.4}"));
            let changes: String =
                row.changes.iter().zip(&self.arms[1..]).map(|(change, arm)| format!(", {arm} {change:+.2}%")).collect();
            let _ = writeln!(text, "row      {}: {} {level} {}{changes}", row.row, self.arms[0], row.unit);
        }
        let arms = self.arms.len() > 1;
        let what = if arms { "the change between arms, in points" } else { "the level, in per cent" };
        let _ = writeln!(
            text,
            "\nHow far each uncertain figure moves {what}, at the ends of its range; ~ is within the noise, and last\n"
        );
        let shown = &self.figures[..top.min(self.figures.len())];
        let width = shown.iter().map(|figure| figure.figure.len()).max().unwrap_or(0).max("figure".len());
        let heads = ["low", "high", "noise", "level low", "level high"];
        let heads: String = heads.iter().map(|head| format!("{head:>12}")).collect();
        let values = shown.iter().map(|figure| figure.span().len()).max().unwrap_or(0).max("value (range)".len());
        let _ = writeln!(text, "{:<width$}  {:<9} {:<values$}{heads}  row", "figure", "how", "value (range)");
        for figure in shown {
            let _ = writeln!(text, "{}", figure.line(width, values, arms));
        }
        let _ = writeln!(text);
        if self.figures.len() > shown.len() {
            let _ = writeln!(
                text,
                "figures more that move something: {}; --top shows them",
                self.figures.len() - shown.len()
            );
        }
        let _ = writeln!(text, "uncertain figures without influence here: {}", self.without_influence.len());
        for line in &self.impossible {
            let _ = writeln!(text, "note: {line}");
        }
        text
    }
}

impl Ranked {
    /// Whether an end moves the result beyond the noise; by how much at most it does, or else within the noise: first the change,
    /// then the level.
    fn farthest(&self) -> (bool, f64, f64) {
        let of = |moved: &Moved| moved.change.clone().or_else(|| moved.level.clone());
        let told = |it: &Move| it.noise.is_none_or(|noise| it.by.abs() > noise);
        let beyond = [of(&self.low), of(&self.high)].iter().flatten().any(told);
        let most = |of: &dyn Fn(&Moved) -> Option<f64>| {
            [of(&self.low), of(&self.high)].into_iter().flatten().map(f64::abs).fold(0.0, f64::max)
        };
        (
            beyond,
            most(&|moved| moved.change.as_ref().map(|it| it.by)),
            most(&|moved| moved.level.as_ref().map(|it| it.by)),
        )
    }

    /// The value and the range in which it is believed.
    fn span(&self) -> String {
        format!("{} ({} to {}) {}", self.value, self.range.0, self.range.1, self.unit)
    }

    /// With so many columns for the name and for the value.
    fn line(&self, width: usize, values: usize, arms: bool) -> String {
        let of = |moved: &Moved| if arms { moved.change.clone() } else { moved.level.clone() };
        let moves = [of(&self.low), of(&self.high)];
        let cell = |it: &Option<Move>| match it {
            None => "-".to_string(),
            Some(it) => {
                let within = it.noise.is_some_and(|noise| it.by.abs() <= noise);
                format!("{}{:+.2}", if within { "~" } else { "" }, it.by)
            }
        };
        let noise = moves
            .iter()
            .flatten()
            .filter_map(|it| it.noise)
            .fold(None, |most: Option<f64>, noise| Some(most.map_or(noise, |most| most.max(noise))));
        let noise = noise.map_or("-".to_string(), |noise| format!("{noise:.2}"));
        let level = |moved: &Moved| match &moved.level {
            Some(it) if arms => format!("{:+.1}%", it.by),
            _ => "-".to_string(),
        };
        let widest = moves.iter().flatten().max_by(|a, b| a.by.abs().total_cmp(&b.by.abs()));
        let row = widest.map_or("", |it| it.row.as_str());
        let cells = [cell(&moves[0]), cell(&moves[1]), noise, level(&self.low), level(&self.high)];
        let cells: String = cells.iter().map(|cell| format!("{cell:>12}")).collect();
        format!("{:<width$}  {:<9} {:<values$}{cells}  {row}", self.figure, self.how, self.span())
    }
}

fn ranked(uncertain: &Uncertain, low: Moved, high: Moved) -> Ranked {
    let Uncertain { name, figure } = uncertain;
    let text = |value: u64| figure.unit.text(value);
    Ranked {
        figure: name.clone(),
        how: figure.how.name().to_string(),
        value: text(figure.value),
        range: (text(figure.range.0), text(figure.range.1)),
        unit: figure.unit.name.to_string(),
        low,
        high,
    }
}

/// The rows that a variation's runs, or those of the machine as it is, make.
fn rows(experiment: &Experiment, variation: Option<usize>, results: &Results) -> Vec<Row> {
    let tables = tables(experiment, &|job| results.get(&Trial { variation, job: *job }));
    let of = |table: &crate::tables::Table| {
        let (title, mean) = (table.title().to_string(), table.mean());
        let (unit, better) = (table.unit.clone(), table.better);
        let row = move |series: crate::tables::Series| Row {
            title: if series.label.is_empty() { title.clone() } else { format!("{title} {}", series.label) },
            unit: unit.clone(),
            better,
            mean,
            arms: series.arms,
        };
        table.series().into_iter().map(row).collect::<Vec<_>>()
    };
    tables.iter().flat_map(of).collect()
}

impl Row {
    /// The change of an arm against the first, in per cent; positive is better.
    fn change(&self, arm: usize) -> Option<f64> {
        let (base, new) = (self.mean.of(&self.arms[0])?, self.mean.of(&self.arms[arm])?);
        Some(percent_change(self.better, base, new))
    }

    fn change_of(&self, arm: usize, iteration: usize) -> f64 {
        percent_change(self.better, self.arms[0][iteration], self.arms[arm][iteration])
    }

    /// Iterations that all arms of both have.
    fn pairs(&self, other: &Row) -> usize {
        self.arms.iter().chain(&other.arms).map(Vec::len).min().unwrap_or(0)
    }
}

/// How far the rows of a variation are from those of the machine as it is.
fn moved(base: &[Row], varied: &[Row]) -> Moved {
    let mut moved = Moved::default();
    for row in varied {
        let Some(before) = base.iter().find(|before| before.title == row.title) else { continue };
        let pairs = row.pairs(before);
        if pairs == 0 {
            continue;
        }
        if let (Some(level), Some(was)) = (row.mean.of(&row.arms[0]), row.mean.of(&before.arms[0])) {
            let each = (0..pairs).map(|i| 100.0 * (row.arms[0][i] / before.arms[0][i] - 1.0)).collect();
            keep(&mut moved.level, row, 100.0 * (level / was - 1.0), each);
        }
        for arm in 1..row.arms.len() {
            if let (Some(change), Some(was)) = (row.change(arm), before.change(arm)) {
                let each = (0..pairs).map(|i| row.change_of(arm, i) - before.change_of(arm, i)).collect();
                keep(&mut moved.change, row, change - was, each);
            }
        }
    }
    moved
}

/// Keeps the move if it is farther than what is kept. A move that is no number (a mean of zero) is none.
fn keep(kept: &mut Option<Move>, row: &Row, by: f64, each: Vec<f64>) {
    if by.is_finite() && kept.as_ref().is_none_or(|kept| by.abs() > kept.by.abs()) {
        *kept = Some(Move { row: row.title.clone(), by, noise: noise(&each) });
    }
}

/// Half the width of the interval of a mean.
fn noise(each: &[f64]) -> Option<f64> {
    debug_assert!(amean(each).is_some());
    let deviation = sample_stddev(each).filter(|deviation| deviation.is_finite())?;
    let n = each.len();
    Some(two_sided_critical(TAIL, n - 1) * deviation / (n as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(title: &str, arms: &[&[f64]]) -> Row {
        Row {
            title: title.to_string(),
            unit: "us".to_string(),
            better: Better::Lower,
            mean: Mean::Arithmetic,
            arms: arms.iter().map(|samples| samples.to_vec()).collect(),
        }
    }

    #[test]
    fn a_variation_is_told_by_the_row_that_it_moves_farthest() {
        let base = [row("a", &[&[10.0, 20.0], &[9.0, 18.0]]), row("b", &[&[10.0, 10.0], &[10.0, 10.0]])];
        // Row a: 10 % better stays 10 %. Row b: from no change to 20 % better; its level doubles, to 18 and 22.
        let varied = [row("a", &[&[11.0, 22.0], &[9.9, 19.8]]), row("b", &[&[18.0, 22.0], &[14.4, 17.6]])];
        let moved = moved(&base, &varied);
        let (change, level) = (moved.change.expect("two arms"), moved.level.expect("a level"));
        assert_eq!((change.row.as_str(), level.row.as_str()), ("b", "b"));
        assert!((change.by - 20.0).abs() < 1e-9 && change.noise.expect("two pairs") < 1e-9, "{change:?}");
        // Levels of 80 % and 120 % more, mean 100; t of one degree of freedom at 95% is 12.706, the error of the mean 20.
        assert!(
            (level.by - 100.0).abs() < 1e-9 && (level.noise.expect("two pairs") - 254.12).abs() < 0.01,
            "{level:?}"
        );
        let one = super::moved(&base[..1], &[row("a", &[&[11.0], &[9.9]])]);
        assert!(one.level.is_some_and(|level| level.noise.is_none()));
        let alone = super::moved(&[row("a", &[&[4.0]])], &[row("a", &[&[5.0]])]);
        assert_eq!((alone.change, alone.level.map(|level| level.by)), (None, Some(25.0)));
        assert_eq!(super::moved(&base, &[row("c", &[&[1.0], &[1.0]])]), Moved::default());
    }

    #[test]
    fn what_is_within_the_noise_says_so() {
        let moved = |by: f64, noise: f64| {
            let change = Some(Move { row: "b".to_string(), by, noise: Some(noise) });
            Moved { change, level: Some(Move { row: "b".to_string(), by: 3.0, noise: None }) }
        };
        let figure = Ranked {
            figure: "line.llc".to_string(),
            how: "guess".to_string(),
            value: "21".to_string(),
            range: ("20".to_string(), "30".to_string()),
            unit: "ns".to_string(),
            low: moved(-0.1, 0.5),
            high: moved(1.25, 0.4),
        };
        let line = figure.line(10, 30, true);
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>().join(" "),
            "line.llc guess 21 (20 to 30) ns ~-0.10 +1.25 0.50 +3.0% +3.0% b"
        );
        assert_eq!(figure.farthest(), (true, 1.25, 3.0));
        let unclear = Ranked { high: moved(9.0, 9.5), ..figure };
        assert_eq!(unclear.farthest(), (false, 9.0, 3.0));
    }
}
