//! One number or fact in a machine file: `{ value, unit, source, how, range }`.

use super::error::DescriptionError;
use super::figure::{Dimension, Figure, How, ScaleError, UNITS, Unit, scaled};
use super::names::Key;
use super::nearest::nearest_name;
use super::toml_text::{Node, Table};
use super::{Description, Fact, NamedFact, NamedFigure};
use crate::topology::{DecimalError, excerpt};

pub(super) const RULE_NAMES: &str = "only known names, so that a slip of the hand is not ignored";
pub(super) const RULE_COMPLETE: &str = "a machine file gives every figure that a simulation needs";
pub(super) const RULE_RANGE: &str = "every number says between which bounds it may lie, and lies there";
const RULE_WORDS: &str = "every fact is one of the words for it";
const RULE_FIGURE: &str = "every number is a table with value, unit, source, how and range";
const RULE_SOURCE: &str = "every number names its source";

/// What a figure must be.
pub(super) struct Bounds {
    pub dimensions: &'static [Dimension],
    pub limits: Option<(u64, u64)>,
}

impl Bounds {
    pub fn of(key: &'static Key) -> Bounds {
        Bounds { dimensions: std::slice::from_ref(&key.dimension), limits: Some(key.bounds) }
    }
}

pub(super) fn push_figure(
    table: &Table,
    name: &str,
    value: &Node,
    bounds: &Bounds,
    into: &mut Description,
) -> Result<(), DescriptionError> {
    let figure = read_figure(table, name, value, bounds)?;
    into.figures.push(NamedFigure { name: table.full_name(name), figure, at: value.at(), depth: value.source.depth });
    Ok(())
}

pub(super) fn read_fact(
    table: &Table,
    name: &str,
    value: &Node,
    allowed: &[&str],
) -> Result<NamedFact, DescriptionError> {
    let rule = "every fact names its source";
    let inner = match Table::new(&table.full_name(name), value) {
        Some(inner) => inner,
        None => {
            let expected = format!("{{ value = \"{}\", source = \"...\", how = \"...\" }}", allowed.join("\" or \""));
            return Err(value.error(&value.kind(), &expected, rule));
        }
    };
    inner.only(&["value", "source", "how"], RULE_NAMES)?;
    let word = inner.string("value", rule)?;
    if !allowed.contains(&word) {
        let at = inner.get("value").unwrap_or(value);
        let expected = match nearest_name(word, allowed.iter().copied()) {
            Some(nearest) => format!("\"{nearest}\", perhaps"),
            None => format!("one of {}", allowed.join(", ")),
        };
        return Err(at.error(&format!("\"{}\"", excerpt(word, 40)), &expected, RULE_WORDS));
    }
    let source = inner.string("source", rule)?.to_string();
    let fact = Fact { value: word.to_string(), source, how: read_how(&inner)? };
    Ok(NamedFact { name: table.full_name(name), fact, at: value.at() })
}

pub(super) fn read_how(table: &Table) -> Result<How, DescriptionError> {
    let rule = "every number says how it came about";
    let names = How::ALL.map(How::name);
    if table.get("how").is_none() {
        let found = format!("no `how` in {}", table.title());
        return Err(table.error(&found, &format!("how = one of {}", names.join(", ")), rule));
    }
    let text = table.string("how", rule)?;
    How::named(text).ok_or_else(|| {
        let expected = match nearest_name(text, names) {
            Some(nearest) => format!("\"{nearest}\", perhaps"),
            None => format!("one of {}", names.join(", ")),
        };
        let found = format!("how = \"{}\"", excerpt(text, 40));
        table
            .get("how")
            .map_or_else(|| table.error(&found, &expected, rule), |value| value.error(&found, &expected, rule))
    })
}

/// `{ value, unit, source, how, range }`.
fn read_figure(outer: &Table, name: &str, value: &Node, bounds: &Bounds) -> Result<Figure, DescriptionError> {
    let full = outer.full_name(name);
    let Some(table) = Table::new(&full, value) else {
        let found = format!("{} for `{}`", value.kind(), excerpt(&full, 60));
        let expected = "{ value = ..., unit = \"...\", source = \"...\", how = \"...\", range = [..., ...] }";
        return Err(value.error(&found, expected, RULE_FIGURE));
    };
    table.only(&["value", "unit", "source", "how", "range"], RULE_FIGURE)?;
    let unit = read_unit(&table, bounds)?;
    let source = table.string("source", RULE_SOURCE)?.to_string();
    let how = read_how(&table)?;
    let number = |value: &Node, what: &str| read_number(value, what, unit, bounds);
    let Some(written) = table.get("value") else {
        return Err(table.error(&format!("no `value` in {}", table.title()), "value = a number", RULE_FIGURE));
    };
    let amount = number(written, "value")?;
    let expected = "range = [lowest, highest]";
    let Some(ends) = table.array("range", expected)? else {
        return Err(table.error(&format!("no `range` in {}", table.title()), expected, RULE_RANGE));
    };
    let [low, high] = ends else {
        let at = table.get("range").unwrap_or(value);
        return Err(at.error(&format!("a range of {}", count(ends.len())), expected, RULE_RANGE));
    };
    let range = (number(low, "range")?, number(high, "range")?);
    if range.0 > range.1 {
        return Err(low.error("a range that ends below its beginning", expected, RULE_RANGE));
    }
    if amount < range.0 || amount > range.1 {
        let found = format!(
            "the value {} outside its range [{}, {}]",
            unit.text(amount),
            unit.text(range.0),
            unit.text(range.1)
        );
        return Err(written.error(&found, "a range that contains the value", RULE_RANGE));
    }
    Ok(Figure { value: amount, unit, source, how, range })
}

fn count(numbers: usize) -> String {
    if numbers == 1 { "one number".to_string() } else { format!("{numbers} numbers") }
}

fn read_unit(table: &Table, bounds: &Bounds) -> Result<Unit, DescriptionError> {
    let rule = "every number names its unit";
    let expected: Vec<String> = bounds.dimensions.iter().map(|dimension| dimension.units()).collect();
    let expected = format!("one of {}", expected.join(", "));
    if table.get("unit").is_none() {
        return Err(table.error(&format!("no `unit` in {}", table.title()), &format!("unit = {expected}"), rule));
    }
    let text = table.string("unit", rule)?;
    match Unit::named(text) {
        Some(unit) if bounds.dimensions.contains(&unit.dimension) => Ok(unit),
        _ => {
            let found = format!("the unit \"{}\" for `{}`", excerpt(text, 20), table.path);
            let at = table.get("unit");
            Err(at.map_or_else(|| table.error(&found, &expected, rule), |at| at.error(&found, &expected, rule)))
        }
    }
}

fn read_number(value: &Node, what: &str, unit: Unit, bounds: &Bounds) -> Result<u64, DescriptionError> {
    let rule = "numbers are exact: decimals without exponent, of a size that makes sense";
    let wrong = |found: String, expected: &str| Err(value.error(&found, expected, rule));
    let Some(text) = value.number_text() else {
        return wrong(format!("{} as {what}", value.kind()), "a decimal number");
    };
    let shown = format!("the {what} {}", excerpt(text, 40));
    let amount = match scaled(text, unit) {
        Ok(amount) => amount,
        Err(ScaleError::Text(DecimalError::Negative)) => return wrong(shown, "0 or more"),
        Err(ScaleError::Text(DecimalError::NotANumber)) => return wrong(shown, "a decimal number without exponent"),
        Err(ScaleError::Text(DecimalError::TooLong)) => return wrong(shown, "a number of at most 24 digits"),
        Err(ScaleError::TooFineOrLarge) => {
            let base = UNITS.iter().find(|base| base.dimension == unit.dimension && base.scale == 1);
            let base = base.map_or(unit.name, |base| base.name);
            return wrong(format!("{shown} {}", unit.name), &format!("a whole number of {base} below 2^64"));
        }
    };
    match bounds.limits {
        Some((low, high)) if amount < low || amount > high => {
            let expected = format!("from {} to {} {}", unit.text(low), unit.text(high), unit.name);
            wrong(format!("{shown} {}", unit.name), &expected)
        }
        _ => Ok(amount),
    }
}

/// A whole number within bounds; `rule` is quoted if it is not.
pub(super) fn whole_by(value: &Node, low: u64, high: u64, rule: &str) -> Result<u64, DescriptionError> {
    match value.number_text().and_then(|text| text.replace('_', "").parse::<u64>().ok()) {
        Some(number) if (low..=high).contains(&number) => Ok(number),
        _ if low == high => Err(value.error(&value.kind(), &low.to_string(), rule)),
        _ => Err(value.error(&value.kind(), &format!("a whole number from {low} to {high}"), rule)),
    }
}
