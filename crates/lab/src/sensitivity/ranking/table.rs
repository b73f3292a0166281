//! The lines of a ranking.

use super::{DECIMALS, METHOD, Move, Moved, Ranked};
use crate::numbers::{plain, signed};
use std::fmt::Write;

/// Separates two columns.
const GAP: &str = "  ";

/// A column of numbers.
struct Column {
    head: &'static str,
    cell: fn(&Ranked, bool) -> Option<String>,
    /// Whether it is left out if no figure has anything in it.
    optional: bool,
}

const COLUMNS: [Column; 6] = [
    Column { head: "low", cell: |of, arms| by(&of.low, arms), optional: false },
    Column { head: "+-", cell: |of, arms| noise(&of.low, arms), optional: true },
    Column { head: "high", cell: |of, arms| by(&of.high, arms), optional: false },
    Column { head: "+-", cell: |of, arms| noise(&of.high, arms), optional: true },
    Column { head: "level low", cell: |of, arms| level(&of.low, arms), optional: true },
    Column { head: "level high", cell: |of, arms| level(&of.high, arms), optional: true },
];

/// The effect of an end on what is ranked: the change between arms, or the level of the only arm.
fn of(end: &Moved, arms: bool) -> Option<&Move> {
    if arms { end.change.as_ref() } else { end.level.as_ref() }
}

fn by(end: &Moved, arms: bool) -> Option<String> {
    if end.not_tried {
        return Some("?".to_string());
    }
    let it = of(end, arms)?;
    Some(format!("{}{}", if it.beyond_noise { "" } else { "~" }, signed(it.by, DECIMALS)))
}

fn noise(end: &Moved, arms: bool) -> Option<String> {
    Some(plain(of(end, arms)?.noise?, DECIMALS))
}

/// The move of the level, unless the level is what is ranked.
fn level(end: &Moved, arms: bool) -> Option<String> {
    let level = end.level.as_ref().filter(|_| arms)?;
    Some(format!("{}%", signed(level.by, 1)))
}

/// The title, the head and a line for each figure. `arms` says whether there are several; `comparisons` is the number
/// of moves that were judged.
pub fn text(figures: &[Ranked], arms: bool, comparisons: usize) -> String {
    let what = if arms { "the change between arms, in points" } else { "the level, in per cent" };
    let mut text = format!("How far each uncertain figure moves {what}, at the ends of its range");
    let ends = || figures.iter().flat_map(|figure| [&figure.low, &figure.high]);
    if ends().any(|end| noise(end, arms).is_some()) {
        text.push_str(", +- the noise of each; ~ may be noise alone");
        let _ = write!(text, " ({METHOD} over {comparisons}), and stands after the others");
    }
    text.push_str(if ends().any(|end| end.not_tried) { "; ? is not tried yet\n\n" } else { "\n\n" });
    let wide = |head: &str, cell: &dyn Fn(&Ranked) -> String| {
        let cells = figures.iter().map(|figure| cell(figure).chars().count());
        cells.chain([head.len()]).max().unwrap_or(0)
    };
    let names = wide("figure", &|figure| figure.figure.clone());
    let hows = wide("how", &|figure| figure.how.clone());
    let values = wide("value (range)", &Ranked::span);
    let columns = COLUMNS.iter().filter(|column| {
        let holds = |figure: &Ranked| (column.cell)(figure, arms).is_some();
        !column.optional || figures.iter().any(holds)
    });
    let cell = |column: &Column, figure: &Ranked| (column.cell)(figure, arms).unwrap_or("-".to_string());
    let columns: Vec<(&Column, usize)> =
        columns.map(|column| (column, wide(column.head, &|figure| cell(column, figure)))).collect();
    let mut line = |name: &str, how: &str, value: &str, cells: &dyn Fn(&Column) -> String, row: &str| {
        let _ = write!(text, "{name:<names$}{GAP}{how:<hows$}{GAP}{value:<values$}");
        for &(column, width) in &columns {
            let _ = write!(text, "{GAP}{:>width$}", cells(column));
        }
        let _ = writeln!(text, "{GAP}{row}");
    };
    line("figure", "how", "value (range)", &|column| column.head.to_string(), "row");
    for figure in figures {
        let cells = |column: &Column| cell(column, figure);
        line(&figure.figure, &figure.how, &figure.span(), &cells, &figure.rows(arms));
    }
    text
}

impl Ranked {
    /// The value, and the range that it is believed to lie in.
    fn span(&self) -> String {
        format!("{} ({} to {}) {}", self.value, self.range.0, self.range.1, self.unit)
    }

    /// The row of all moves in the line, or, if they differ, the row of each.
    fn rows(&self, arms: bool) -> String {
        let level = |end: &Moved| end.level.clone().filter(|_| arms);
        let moves = [
            ("low", of(&self.low, arms).cloned()),
            ("high", of(&self.high, arms).cloned()),
            ("level low", level(&self.low)),
            ("level high", level(&self.high)),
        ];
        let mut rows: Vec<(String, Vec<&str>)> = Vec::new();
        for (head, it) in moves {
            let Some(Move { row, .. }) = it else { continue };
            match rows.iter_mut().find(|(other, _)| *other == row) {
                Some((_, heads)) => heads.push(head),
                None => rows.push((row, vec![head])),
            }
        }
        match rows.as_slice() {
            [(row, _)] => row.clone(),
            rows => {
                let named: Vec<String> =
                    rows.iter().map(|(row, heads)| format!("{}: {row}", heads.join(", "))).collect();
                named.join("; ")
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A figure with these ends.
    pub fn figure(low: Moved, high: Moved) -> Ranked {
        Ranked {
            figure: "line.llc".to_string(),
            how: "guess".to_string(),
            value: "21".to_string(),
            range: ("20".to_string(), "30".to_string()),
            unit: "ns".to_string(),
            low,
            high,
        }
    }

    /// A move that is judged only by its own noise.
    pub fn to(row: &str, by: f64, noise: Option<f64>) -> Option<Move> {
        let beyond_noise = noise.is_none_or(|noise| by.abs() > noise);
        Some(Move {
            row: row.to_string(),
            by,
            noise,
            p: noise.map(|_| if beyond_noise { 0.0 } else { 1.0 }),
            beyond_noise,
        })
    }

    /// The head and the line, without padding.
    fn lines(figure: Ranked, arms: bool) -> [String; 2] {
        let text = text(&[figure], arms, 4);
        let of = |at: usize| text.lines().nth(at).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        [of(2), of(3)]
    }

    #[test]
    fn each_end_has_its_own_noise() {
        let level = || to("b", 3.0, None);
        let low = Moved { change: to("b", -0.15, Some(0.01)), level: level(), not_tried: false };
        let high = Moved { change: to("b", 0.13, Some(0.99)), level: level(), not_tried: false };
        let expected = [
            "figure how value (range) low +- high +- level low level high row",
            "line.llc guess 21 (20 to 30) ns -0.15 0.01 ~+0.13 0.99 +3.0% +3.0% b",
        ];
        assert_eq!(lines(figure(low, high), true), expected);
    }

    #[test]
    fn rows_are_named_by_end_where_they_differ() {
        let low = Moved { level: to("pipetest Min", 1.0, None), ..Moved::default() };
        let high = Moved { level: to("pipetest Max", 2.0, None), ..Moved::default() };
        // With one arm there is no level beside what is ranked; with one iteration there is no noise.
        let expected = [
            "figure how value (range) low high row",
            "line.llc guess 21 (20 to 30) ns +1.00 +2.00 low: pipetest Min; high: pipetest Max",
        ];
        assert_eq!(lines(figure(low, high), false), expected);
        let end = |by| Moved { change: to("a", by, None), level: to("b", 5.0, None), not_tried: false };
        let [_, line] = lines(figure(end(1.0), end(2.0)), true);
        assert!(line.ends_with(" low, high: a; level low, level high: b"), "{line}");
    }

    #[test]
    fn zeros_have_no_sign_and_what_was_not_tried_a_mark() {
        let low = Moved { change: to("b", -0.001, Some(0.5)), level: to("b", -0.04, None), not_tried: false };
        let high = Moved { not_tried: true, ..Moved::default() };
        let [_, line] = lines(figure(low, high), true);
        assert_eq!(line, "line.llc guess 21 (20 to 30) ns ~0.00 0.50 ? 0.0% b");
    }
}
