//! Machine files: TOML in, [`Description`] out.

use super::distance_rules::{check_distances, needed};
use super::energy_table::read_energy;
use super::error::DescriptionError;
use super::extends::{Base, bases, resolve};
use super::figure::{Dimension, Figure, How, ScaleError, UNITS, Unit, scaled};
use super::frequency_rules::check_frequencies;
use super::idle_table::read_idle;
use super::kind_table::read_kinds;
use super::names::{FACTS, KEYS, Key, OPTIONAL_FACTS, WORK, key_of};
use super::nearest::nearest_name;
use super::toml_text::{Node, Table};
use super::topology_table::{one_line, read_topology};
use super::{Description, Fact, NamedFact, NamedFigure};
use crate::topology::{DecimalError, excerpt};

pub(super) const RULE_NAMES: &str = "only known names, so that a slip of the hand is not ignored";
const RULE_NAME: &str = "a machine has a name, of one line";
const RULE_FIGURE: &str = "every number is a table with value, unit, source, how and range";
const RULE_SOURCE: &str = "every number names its source";
pub(super) const RULE_RANGE: &str = "every number says between which bounds it may lie, and lies there";
const RULE_WORK: &str = "work in instructions needs to know what an instruction takes on the machine";
/// In cycles, or thousandths of instructions.
const AMOUNT: (u64, u64) = (0, 1_000_000_000);
pub(super) const RULE_COMPLETE: &str = "a machine file gives every figure that a simulation needs";

/// Reads a machine file that extends nothing, or what ships. Names in the sections of [`WORK`] are the caller's to check:
/// [`Description::check_names`].
pub fn parse(text: &str, file_name: &str) -> Result<Description, DescriptionError> {
    parse_over(text, file_name, &bases(text, file_name, &|_, _| None)?)
}

/// Reads a machine file over the files that it extends, as [`bases`] found them.
pub fn parse_over(text: &str, file_name: &str, chain: &[Base]) -> Result<Description, DescriptionError> {
    let document = resolve(text, file_name, chain)?;
    let root = Table::new("", &document).expect("a document is a table");
    let sections = sections();
    let mut top: Vec<&str> = vec!["name", "description", "extends", "topology", "idle", "kind", "energy"];
    top.extend(WORK.iter().chain(&sections));
    top.extend(KEYS.iter().map(|key| key.name).filter(|name| !name.contains('.')));
    top.sort_unstable();
    top.dedup();
    root.only(&top, RULE_NAMES)?;

    let name = one_line(&root, "name", RULE_NAME)?.to_string();
    let about = root.string("description", "a machine is described in a sentence")?.trim().to_string();
    let Some(topology) = root.table("topology")? else {
        let expected = "[topology] with synthetic = \"pack:2 l3:1 core:12 pu:2\" or with lists of CPUs";
        return Err(root.error("no [topology]", expected, RULE_COMPLETE));
    };
    let (topology, topology_fact, distances) = read_topology(&topology)?;
    let mut description = Description {
        name,
        about,
        topology,
        topology_fact,
        figures: distances,
        facts: Vec::new(),
        idle_states: Vec::new(),
        energy: Vec::new(),
        file: file_name.to_string(),
    };
    read_figures(&root, &mut description, &|name| key_of(name))?;
    for section in sections.iter().filter(|&&section| section != "idle") {
        if let Some(table) = root.table(section)? {
            read_figures(&table, &mut description, &|name| key_of(name))?;
        }
    }
    read_idle(&root, &mut description)?;
    read_kinds(&root, &mut description)?;
    read_energy(&root, &mut description)?;
    read_work(&root, &mut description)?;
    require_all(&root, &description)?;
    check_distances(&description)?;
    check_frequencies(&description)?;
    // A reader of the files expects their order, the machine's own before what it extends.
    description.figures.sort_by_key(|named| (named.depth, named.at.line, named.at.column));
    Ok(description)
}

/// The sections of what kernel functions take: in cycles, or in instructions, which cost what the machine says of each section.
fn read_work(root: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    for section in WORK {
        let Some(table) = root.table(section)? else { continue };
        let factor = format!("cycles_per_instruction.{section}");
        for entry in table.entries() {
            let bounds = Bounds { dimensions: &[Dimension::Cycles, Dimension::Instructions], limits: Some(AMOUNT) };
            push_figure(&table, &entry.name, &entry.node, &bounds, into)?;
            let in_instructions =
                into.figures.last().is_some_and(|named| named.figure.unit.dimension == Dimension::Instructions);
            if in_instructions && into.figure(&factor).is_none() {
                let found = format!("instructions in `{}`, and no `{factor}`", table.full_name(&entry.name));
                return Err(entry.node.error(&found, &format!("{factor} = {{ value = ... }}, or cycles"), RULE_WORK));
            }
        }
    }
    Ok(())
}

/// Facts that must be given, and those that may.
fn facts() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str], &'static str)> {
    FACTS.iter().chain(OPTIONAL_FACTS)
}

/// The tables that figures and facts stand in.
fn sections() -> Vec<&'static str> {
    let names = KEYS.iter().map(|key| key.name).chain(facts().map(|fact| fact.0));
    let mut sections: Vec<&str> = names.filter_map(|name| Some(name.split_once('.')?.0)).collect();
    sections.sort_unstable();
    sections.dedup();
    sections
}

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

/// The figures and facts of a section whose names the tables in `names` know.
pub(super) fn read_figures(
    table: &Table,
    into: &mut Description,
    key_of: &dyn Fn(&str) -> Option<&'static Key>,
) -> Result<(), DescriptionError> {
    for entry in table.entries() {
        let name = table.full_name(&entry.name);
        if let Some(fact) = facts().find(|fact| fact.0 == name) {
            into.facts.push(read_fact(table, &entry.name, &entry.node, fact.1)?);
        } else if let Some(key) = key_of(&name) {
            push_figure(table, &entry.name, &entry.node, &Bounds::of(key), into)?;
        } else if !table.path.is_empty() {
            let here = |full: &'static str| full.strip_prefix(table.path.as_str())?.strip_prefix('.');
            let known: Vec<&str> =
                KEYS.iter().map(|key| key.name).chain(facts().map(|fact| fact.0)).filter_map(here).collect();
            return Err(table.unknown(entry, known, RULE_NAMES));
        }
    }
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
        return Err(at.error(&format!("\"{}\"", excerpt(word, 40)), &format!("one of {}", allowed.join(", ")), rule));
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
        return Err(at.error(&format!("a range of {} numbers", ends.len()), expected, RULE_RANGE));
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

/// Every required figure and fact, and a price for every distance of the topology.
fn require_all(root: &Table, description: &Description) -> Result<(), DescriptionError> {
    let missing = |name: &str, meaning: &str| {
        let found = format!("no `{name}` ({meaning})");
        Err(root.error(&found, &format!("{name} = {{ value = ... }}"), RULE_COMPLETE))
    };
    for key in KEYS.iter().filter(|key| key.required) {
        if description.figure(key.name).is_none() {
            return missing(key.name, key.meaning);
        }
    }
    for (name, _, meaning) in FACTS {
        if description.fact(name).is_none() {
            return missing(name, meaning);
        }
    }
    for (section, distance) in needed(description.topology()) {
        let name = format!("{section}.{}", distance.name());
        if description.figure(&name).is_none() {
            let what = if section == "line" { "CPUs" } else { "memory" };
            return missing(&name, &format!("the topology has {what} at this distance"));
        }
    }
    Ok(())
}
