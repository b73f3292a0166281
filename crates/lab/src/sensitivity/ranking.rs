//! From the runs of all variations to a ranking: which figure moves the result how far.

mod table;

use super::{End, Plan, Results, Trial, Uncertain};
use crate::experiment::{Experiment, Job};
use crate::json::verdict::METHOD;
use crate::measurements::tables;
use crate::mmtests::compared;
use crate::numbers::{is_zero, signed};
use crate::record::Outcome;
use crate::statistics::interval::MISS;
use crate::statistics::student::{two_sided_critical, two_sided_p};
use crate::statistics::{Better, Mean, amean, benjamini_hochberg, sample_stddev, true_change};
use serde::Serialize;
use std::fmt::Write;

/// Digits after the point of a move and of its noise.
const DECIMALS: usize = 2;

/// How far a row is from its value on the unvaried machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Move {
    /// The table and its row.
    pub row: String,
    /// In per cent for a level, in percentage points for a change between arms.
    pub by: f64,
    /// Half the width of its 95% interval, from pairs of runs with equal seeds; `None` for a single pair.
    pub noise: Option<f64>,
    /// How often chance alone would move a row this far, by Student's t; `None` for a single pair, about which nothing
    /// is known.
    pub p: Option<f64>,
    /// Whether it is more than chance brings among all rows of all figures' ends: see [`judge`]. A move about which
    /// nothing is known counts so too.
    pub beyond_noise: bool,
}

/// What one end of a figure's range does to the row that it moves farthest. Rows that it surely moves take precedence.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moved {
    /// The change between the arms; `None` for one arm.
    pub change: Option<Move>,
    /// The level of the first arm.
    pub level: Option<Move>,
    /// Whether its runs are missing.
    pub not_tried: bool,
}

/// A figure, and the effects of its ends. An end that equals the value moves nothing.
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

/// The figures that move the result, the farthest first; then those that move it only within the noise; last those
/// whose moves print as zero.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranking {
    pub machine: String,
    pub iterations: u32,
    pub arms: Vec<String>,
    /// The unvaried machine: rows, the first arm's means, and the changes of the other arms in per cent.
    pub rows: Vec<BaseRow>,
    pub figures: Vec<Ranked>,
    /// Figures whose runs equal the unvaried machine's bit for bit.
    pub without_influence: Vec<String>,
    /// Figures with an end that has no runs yet, unless the other end moves something.
    pub not_tried: Vec<String>,
    /// What could not be run.
    pub impossible: Vec<String>,
    /// Uncertain figures whose range is a single value.
    pub without_room: Vec<String>,
    /// How the number of false moves is limited, and among how many: rows of ends, times arms but the first.
    pub method: &'static str,
    pub comparisons: usize,
    /// Whether some runs are missing.
    pub partial: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BaseRow {
    pub row: String,
    pub unit: String,
    pub level: Option<f64>,
    /// One for every arm but the first; `None` (null) if a mean is invalid.
    pub changes: Vec<Option<f64>>,
}

/// A row on one machine: its samples by arm and iteration.
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
        let base = rows(experiment, &|job| results.get(&Trial { variation: None, job: *job }));
        let mut figures: Vec<(&Uncertain, [Moves; 2])> = Vec::new();
        let (mut without_influence, mut not_tried) = (Vec::new(), Vec::new());
        for (index, uncertain) in plan.uncertain.iter().enumerate() {
            // `None` if the end equals the value, or makes no valid machine.
            let at_end = |end: End| plan.variations.iter().position(|of| (of.figure, of.end) == (index, end));
            let [low, high] = [End::Low, End::High].map(|end| {
                let variation = at_end(end)?;
                Some((variation, plan.differs(variation, results)))
            });
            let ends = [low, high].map(|end| end.map(|(_, differs)| differs));
            if ends.contains(&Some(Some(true))) {
                let moved = |end: Option<(usize, Option<bool>)>| match end {
                    Some((of, Some(true))) => paired(plan, of, results),
                    Some((_, None)) => Moves { not_tried: true, ..Moves::default() },
                    _ => Moves::default(),
                };
                figures.push((uncertain, [moved(low), moved(high)]));
            } else if ends.contains(&Some(None)) {
                not_tried.push(uncertain.name.clone());
            } else if ends.contains(&Some(Some(false))) {
                without_influence.push(uncertain.name.clone());
            }
        }
        let levels = judge(figures.iter_mut().flat_map(|(_, ends)| ends).flat_map(|end| &mut end.level).collect());
        let changes = judge(figures.iter_mut().flat_map(|(_, ends)| ends).flat_map(|end| &mut end.change).collect());
        let ranked = |(of, [low, high]): (&Uncertain, [Moves; 2])| ranked(of, low.farthest(), high.farthest());
        let mut figures: Vec<Ranked> = figures.into_iter().map(ranked).collect();
        figures.sort_by(|a, b| b.farthest().partial_cmp(&a.farthest()).expect("moves are finite"));
        let runs = plan.first().len() + plan.rest(results).len();
        Ranking {
            machine: experiment.machine.name.clone(),
            iterations: experiment.iterations,
            arms: experiment.arms.iter().map(|arm| arm.name.clone()).collect(),
            rows: base.iter().map(Row::as_it_is).collect(),
            figures,
            without_influence,
            not_tried,
            impossible: plan.impossible.clone(),
            without_room: plan.without_room.clone(),
            method: METHOD,
            comparisons: if experiment.arms.len() > 1 { changes } else { levels },
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
            let changes: String = row
                .changes
                .iter()
                .zip(&self.arms[1..])
                .map(|(change, arm)| match change {
                    Some(change) => format!(", {arm} {}%", signed(*change, 2)),
                    None => format!(", {arm} -"),
                })
                .collect();
            let _ = writeln!(text, "row      {}: {} {level} {}{changes}", row.row, self.arms[0], row.unit);
        }
        let arms = self.arms.len() > 1;
        let shown = &self.figures[..top.min(self.figures.len())];
        text.push('\n');
        if !shown.is_empty() {
            text.push_str(&table::text(shown, arms, self.comparisons));
            text.push('\n');
        }
        if self.figures.len() > shown.len() {
            let _ = writeln!(
                text,
                "figures more that move something: {}; --top shows them",
                self.figures.len() - shown.len()
            );
        }
        let _ = writeln!(text, "uncertain figures without influence here: {}", self.without_influence.len());
        if !self.not_tried.is_empty() {
            let (count, then) = (self.not_tried.len(), "the same command goes on with them");
            let _ = writeln!(text, "uncertain figures not tried yet: {count}; {then}");
        }
        for line in &self.impossible {
            let _ = writeln!(text, "note: {line}");
        }
        if let [one] = &self.without_room[..] {
            let _ = writeln!(text, "note: 1 uncertain figure is not moved, as its range has no room: {one}");
        } else if !self.without_room.is_empty() {
            let (count, names) = (self.without_room.len(), self.without_room.join(", "));
            let _ =
                writeln!(text, "note: {count} uncertain figures are not moved, as their ranges have no room: {names}");
        }
        text
    }
}

/// How sure a move is; the least sure comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Sure {
    /// It prints as zero.
    Zero,
    WithinNoise,
    Beyond,
}

impl Move {
    fn sure(&self) -> Sure {
        match self.beyond_noise {
            _ if is_zero(self.by, DECIMALS) => Sure::Zero,
            false => Sure::WithinNoise,
            true => Sure::Beyond,
        }
    }
}

impl Ranked {
    /// How sure the surest move of its ends is; how far the farthest move of that sureness goes; how far the level
    /// moves. Moves are those of the change, or of the level if there is no change.
    fn farthest(&self) -> (Sure, f64, f64) {
        let moves = || [&self.low, &self.high].into_iter().filter_map(|end| end.change.as_ref().or(end.level.as_ref()));
        let farthest = |moves: &mut dyn Iterator<Item = &Move>| moves.map(|it| it.by.abs()).fold(0.0, f64::max);
        let sure = moves().map(Move::sure).max().unwrap_or(Sure::Zero);
        // All zeros count as equally far.
        let far = if sure == Sure::Zero { 0.0 } else { farthest(&mut moves().filter(|it| it.sure() == sure)) };
        (sure, far, farthest(&mut [&self.low, &self.high].into_iter().filter_map(|end| end.level.as_ref())))
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

/// How far a variation moves the rows, from the runs that both it and the unvaried machine have. If only some exist,
/// each is still paired with the run of its own seed.
fn paired(plan: &Plan, of: usize, results: &Results) -> Moves {
    let outcome = |variation: Option<usize>, job: &Job| results.get(&Trial { variation, job: *job });
    let base = rows(&plan.experiment, &|job| outcome(Some(of), job).and_then(|_| outcome(None, job)));
    let varied = |job: &Job| outcome(None, job).and_then(|_| outcome(Some(of), job));
    moved(&base, &rows(&plan.variations[of].experiment, &varied))
}

/// The rows that these runs make.
fn rows<'o>(experiment: &Experiment, outcome: &dyn Fn(&Job) -> Option<&'o Outcome>) -> Vec<Row> {
    let tables = tables(experiment, outcome);
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
        compared(table, experiment.vintage).into_iter().map(row).collect::<Vec<_>>()
    };
    tables.iter().flat_map(of).collect()
}

impl Row {
    /// The row in the ranking's form.
    fn as_it_is(&self) -> BaseRow {
        BaseRow {
            row: self.title.clone(),
            unit: self.unit.clone(),
            level: self.mean.of(&self.arms[0]),
            changes: (1..self.arms.len()).map(|arm| self.change(arm)).collect(),
        }
    }

    /// The change of an arm relative to the first, in per cent; positive is better. `None` from a mean of zero.
    fn change(&self, arm: usize) -> Option<f64> {
        let (base, new) = (self.mean.of(&self.arms[0])?, self.mean.of(&self.arms[arm])?);
        true_change(self.better, base, new)
    }

    /// The same in one iteration.
    fn change_of(&self, arm: usize, iteration: usize) -> Option<f64> {
        true_change(self.better, self.arms[0][iteration], self.arms[arm][iteration])
    }

    /// The number of iterations that all arms of both have.
    fn pairs(&self, other: &Row) -> usize {
        self.arms.iter().chain(&other.arms).map(Vec::len).min().unwrap_or(0)
    }
}

/// How far one end of a figure's range moves every row.
#[derive(Debug, Default, PartialEq)]
struct Moves {
    change: Vec<Move>,
    level: Vec<Move>,
    not_tried: bool,
}

impl Moves {
    /// Keeps the farthest moves, which stand for the end.
    fn farthest(self) -> Moved {
        let farthest = |moves: Vec<Move>| {
            let of = |it: &Move| (it.sure(), it.by.abs());
            moves.into_iter().reduce(|kept, it| if of(&it) > of(&kept) { it } else { kept })
        };
        Moved { change: farthest(self.change), level: farthest(self.level), not_tried: self.not_tried }
    }
}

/// Decides which moves are more than chance brings among so many, with the same method as a comparison's verdict on its
/// rows: of the moves that are declared real, one in twenty may be false. Returns how many moves were judged.
fn judge(moves: Vec<&mut Move>) -> usize {
    let (tested, p_values): (Vec<&mut Move>, Vec<f64>) =
        moves.into_iter().filter_map(|it| it.p.map(|p| (it, p))).unzip();
    let beyond = benjamini_hochberg(&p_values, MISS);
    tested.into_iter().zip(beyond).map(|(it, beyond)| it.beyond_noise = beyond).count()
}

/// How far the rows of a variation are from the unvaried machine's. Where a figure is relative to a zero nothing is said.
fn moved(base: &[Row], varied: &[Row]) -> Moves {
    let mut moved = Moves::default();
    for row in varied {
        let Some(before) = base.iter().find(|before| before.title == row.title) else { continue };
        let pairs = row.pairs(before);
        if pairs == 0 {
            continue;
        }
        if let (Some(level), Some(was)) = (row.mean.of(&row.arms[0]), row.mean.of(&before.arms[0])) {
            let each = (0..pairs).map(|i| 100.0 * (row.arms[0][i] / before.arms[0][i] - 1.0)).collect();
            moved.level.extend(Move::of(row, 100.0 * (level / was - 1.0), each));
        }
        for arm in 1..row.arms.len() {
            if let (Some(change), Some(was)) = (row.change(arm), before.change(arm)) {
                let each = (0..pairs).map(|i| Some(row.change_of(arm, i)? - before.change_of(arm, i)?));
                if let Some(each) = each.collect() {
                    moved.change.extend(Move::of(row, change - was, each));
                }
            }
        }
    }
    moved
}

impl Move {
    /// A move `by` in all and `each` in the single pairs; `None` if it is not a number (with a mean of zero). It is not
    /// judged yet.
    fn of(row: &Row, by: f64, each: Vec<f64>) -> Option<Move> {
        let noise = noise(&each);
        let p = match each.len() {
            1 => None,
            // If no seed changes the move, it is certain.
            pairs => Some(noise.filter(|_| by != 0.0).map_or(1.0, |noise| {
                let critical = two_sided_critical(MISS, pairs - 1);
                two_sided_p(by / noise * critical, pairs - 1)
            })),
        };
        by.is_finite().then(|| Move { row: row.title.clone(), by, noise, p, beyond_noise: p.is_none() })
    }
}

/// Half the width of the 95% interval of a mean.
fn noise(each: &[f64]) -> Option<f64> {
    debug_assert!(amean(each).is_some());
    let deviation = sample_stddev(each).filter(|deviation| deviation.is_finite())?;
    let n = each.len();
    Some(two_sided_critical(MISS, n - 1) * deviation / (n as f64).sqrt())
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

    /// What is reported of one end, if nothing else was tried.
    fn told(base: &[Row], varied: &[Row]) -> Moved {
        let mut moves = moved(base, varied);
        judge(moves.level.iter_mut().collect());
        judge(moves.change.iter_mut().collect());
        moves.farthest()
    }

    #[test]
    fn a_variation_is_told_by_the_row_that_it_surely_moves_farthest() {
        let base = [row("a", &[&[10.0, 20.0], &[9.0, 18.0]]), row("b", &[&[10.0, 10.0], &[10.0, 10.0]])];
        // Row a: 10 % better stays 10 %. Row b goes from no change to 20 % better; its level doubles, to 18 and 22.
        let varied = [row("a", &[&[11.0, 22.0], &[9.9, 19.8]]), row("b", &[&[18.0, 22.0], &[14.4, 17.6]])];
        let both = told(&base, &varied);
        let (change, level) = (both.change.expect("two arms"), both.level.expect("a level"));
        // Two pairs say nothing about b's level, however far it moves.
        assert_eq!((change.row.as_str(), level.row.as_str()), ("b", "a"));
        assert!((change.by - 20.0).abs() < 1e-9 && change.noise.expect("two pairs") < 1e-9, "{change:?}");
        assert!((level.by - 10.0).abs() < 1e-9 && level.beyond_noise, "{level:?}");
        // Levels are 80 % and 120 % higher, mean 100. t of one degree of freedom at 95% is 12.706; the standard error
        // of the mean is 20.
        let level = told(&base[1..], &varied[1..]).level.expect("a level");
        assert!(
            (level.by - 100.0).abs() < 1e-9 && (level.noise.expect("two pairs") - 254.12).abs() < 0.01,
            "{level:?}"
        );
        // P(|T| >= 5) of one degree of freedom: 1 - 2 atan(5) / pi.
        assert!((level.p.expect("two pairs") - 0.125_666).abs() < 1e-6 && !level.beyond_noise, "{level:?}");
        let one = told(&base[..1], &[row("a", &[&[11.0], &[9.9]])]);
        assert!(one.level.is_some_and(|level| level.noise.is_none() && level.p.is_none() && level.beyond_noise));
        let alone = told(&[row("a", &[&[4.0]])], &[row("a", &[&[5.0]])]);
        assert_eq!((alone.change, alone.level.map(|level| level.by)), (None, Some(25.0)));
        assert_eq!(told(&base, &[row("c", &[&[1.0], &[1.0]])]), Moved::default());
    }

    #[test]
    fn from_zero_there_is_no_change_in_per_cent() {
        // Printed tables have -99% for what rises from zero, and 0% for a rate that falls to it.
        let base = [row("a", &[&[0.0, 0.0], &[0.0, 0.0]])];
        assert_eq!(told(&base, &[row("a", &[&[0.0, 0.0], &[1.0, 1.0]])]), Moved::default());
        let rate = |new: f64| [Row { better: Better::Higher, ..row("b", &[&[4.0, 4.0], &[new, new]]) }];
        let change = told(&rate(4.0), &rate(0.0)).change.expect("two arms");
        assert_eq!((change.by, change.sure()), (-100.0, Sure::Beyond));
    }

    #[test]
    fn of_many_rows_one_is_beyond_its_own_noise_by_chance() {
        // The first row's move has p = 0.03; the others fluctuate around zero.
        let titles: Vec<String> = (0..20).map(|at| format!("r{at}")).collect();
        let base: Vec<Row> = titles.iter().map(|title| row(title, &[&[100.0; 4]])).collect();
        let varied: Vec<Row> = titles
            .iter()
            .enumerate()
            .map(|(at, title)| {
                let by = if at == 0 { [1.0, 2.0, 0.5, 1.5] } else { [0.2, -0.1, 0.1, -0.2] };
                row(title, &[&by.map(|by| 100.0 + by)])
            })
            .collect();
        let level = |rows: usize| told(&base[..rows], &varied[..rows]).level.expect("a level");
        let (one, all) = (level(1), level(20));
        assert_eq!((one.row.as_str(), one.sure()), ("r0", Sure::Beyond));
        assert!(
            one.by > one.noise.expect("four pairs") && one.p.is_some_and(|p| (0.03..0.031).contains(&p)),
            "{one:?}"
        );
        assert_eq!(all, Move { beyond_noise: false, ..one });
    }

    #[test]
    fn an_arm_without_a_change_keeps_its_place() {
        // The second arm has no harmonic mean.
        let row = Row { mean: Mean::Harmonic, ..row("a", &[&[4.0, 4.0], &[4.0, 0.0], &[2.0, 2.0]]) };
        let ranking = Ranking {
            machine: "m".to_string(),
            iterations: 2,
            arms: ["x", "y", "z"].map(str::to_string).to_vec(),
            rows: vec![row.as_it_is()],
            figures: Vec::new(),
            without_influence: Vec::new(),
            not_tried: Vec::new(),
            impossible: Vec::new(),
            without_room: Vec::new(),
            method: METHOD,
            comparisons: 0,
            partial: false,
        };
        let text = ranking.to_text(1);
        assert!(text.contains("row      a: x 4.0000 us, y -, z +50.00%\n"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&ranking.to_json()).unwrap();
        assert_eq!(json["rows"][0]["changes"], serde_json::json!([null, 50.0]));
    }

    #[test]
    fn zeros_come_after_what_is_unclear() {
        let moved = |by: f64, noise: f64| {
            let change = table::tests::to("b", by, Some(noise));
            let level = table::tests::to("b", 3.0, None);
            Moved { change, level, not_tried: false }
        };
        let figure =
            |low: (f64, f64), high: (f64, f64)| table::tests::figure(moved(low.0, low.1), moved(high.0, high.1));
        let clear = figure((-0.1, 0.5), (1.25, 0.4));
        assert_eq!(clear.farthest(), (Sure::Beyond, 1.25, 3.0));
        // It is ranked by the move that is beyond the noise.
        let half = figure((-40.0, 50.0), (0.5, 0.4));
        assert_eq!(half.farthest(), (Sure::Beyond, 0.5, 3.0));
        let unclear = figure((-0.1, 0.5), (-21.76, 30.0));
        assert_eq!(unclear.farthest(), (Sure::WithinNoise, 21.76, 3.0));
        let zero = figure((0.004, 0.0), (-0.001, 0.0));
        assert_eq!(zero.farthest(), (Sure::Zero, 0.0, 3.0));
        assert!(clear.farthest() > half.farthest() && half.farthest() > unclear.farthest());
        assert!(unclear.farthest() > zero.farthest());
    }
}
