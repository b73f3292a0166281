//! `[topology.distances]` in a machine file: the firmware's table of distances between NUMA nodes, and its values as figures.
//!
//! Each value that the table has for two different nodes is one figure, `topology.distances.21`: all pairs of nodes at
//! this distance are one class, and are changed together. A class ends where the next one begins, so changing one keeps
//! their order.

use super::entry::{RULE_RANGE, read_how, whole_by};
use super::error::DescriptionError;
use super::figure::{Figure, How, Unit};
use super::toml_text::{Node, Table};
use super::{Description, Fact, NamedFigure};
use crate::topology::{DraftDistance, Location, Topology};
use sched::cpu_topology::{LOCAL_DISTANCE, REMOTE_DISTANCE};

/// What the names of distances begin with.
pub(super) const PREFIX: &str = "topology.distances.";
pub(super) const RULE: &str = "a topology is whole and without contradictions";
pub(super) const RULE_SOURCE: &str = "a topology names its source, as every number does";
const RULE_DISTANCE: &str = "a distance lies in its table's range, and others are longer than a node's own, which is 10, or Linux takes none of them (slit_valid())";
const RULE_SYMMETRY: &str = "distances are symmetric";
/// The plausible range if no distances are given: more than local, and at most the longest in built-in machines'
/// tables.
const UNTOLD: (u64, u64) = (11, 40);

/// The origin of a table of distances.
pub(super) struct Told {
    pub source: String,
    pub how: How,
    pub range: (u64, u64),
    /// The places of the values between two different nodes, and of the table itself.
    values: Vec<(u64, Location)>,
    at: Location,
    depth: usize,
}

/// `distances = { rows = [[10, 21], [21, 10]], source, how, range }`. The range applies to distances between different
/// nodes. The caller fills in the nodes.
pub(super) fn read_distances(table: &Table) -> Result<Option<(DraftDistance, Told)>, DescriptionError> {
    let Some(inner) = table.table("distances")? else { return Ok(None) };
    inner.only(
        &["rows", "asymmetric", "fake", "source", "how", "range"],
        "distances have rows, a source, how and a range, and say so if they are asymmetric or of numa=fake",
    )?;
    let source = inner.string("source", RULE_SOURCE)?.to_string();
    let how = read_how(&inner)?;
    let expected = "rows = [[10, 21], [21, 10]]";
    let Some(rows) = inner.array("rows", expected)? else {
        return Err(inner.error("distances without rows", expected, RULE));
    };
    let least = u64::from(LOCAL_DISTANCE) + u64::from(!says(&inner, "fake")?);
    let (low, high) = read_range(&inner, least)?;
    let (mut numbers, mut between) = (Vec::new(), Vec::new());
    for (from, row) in rows.iter().enumerate() {
        let Some(values) = row.as_array() else {
            return Err(row.error(&row.kind(), expected, RULE));
        };
        let mut line = Vec::new();
        for (to, value) in values.iter().enumerate() {
            let local = u64::from(LOCAL_DISTANCE);
            let (low, high) = if from == to { (local, local) } else { (low, high) };
            let number = whole_by(value, low, high, RULE_DISTANCE)?;
            line.push(number);
            if from != to {
                between.push((number, value.at()));
            }
        }
        numbers.push(line);
    }
    if !says(&inner, "asymmetric")? {
        require_symmetry(rows, &numbers)?;
    }
    let at = inner.source.at(inner.span.start);
    let told = Told { source, how, range: (low, high), values: between, at: at.clone(), depth: inner.source.depth };
    Ok(Some((DraftDistance { nodes: Vec::new(), rows: numbers, at }, told)))
}

/// Whether an optional word is true.
fn says(table: &Table, name: &str) -> Result<bool, DescriptionError> {
    let Some(value) = table.get(name) else { return Ok(false) };
    value.as_bool().ok_or_else(|| value.error(&value.kind(), "true", &format!("{name} is true or left out")))
}

/// A range of distances from `least` on.
fn read_range(table: &Table, least: u64) -> Result<(u64, u64), DescriptionError> {
    let expected = "range = [lowest, highest]";
    let ends = table.array("range", expected)?.unwrap_or_default();
    let range = ends.iter().map(|value| whole_by(value, least, 254, RULE_DISTANCE));
    match range.collect::<Result<Vec<u64>, _>>()?[..] {
        [low, high] if low > high => Err(ends[0].error("a range that ends below its beginning", expected, RULE_RANGE)),
        [low, high] => Ok((low, high)),
        _ => Err(table.error("distances without a range", expected, "every number has a range")),
    }
}

/// Requires that distances are the same in both directions. Rows of the wrong length, which are reported elsewhere, are
/// not judged.
fn require_symmetry(rows: &[Node], numbers: &[Vec<u64>]) -> Result<(), DescriptionError> {
    if numbers.iter().any(|line| line.len() != numbers.len()) {
        return Ok(());
    }
    for (from, line) in numbers.iter().enumerate() {
        for (to, &there) in line.iter().enumerate().take(from) {
            let back = numbers[to][from];
            if back != there {
                let at = rows[from].as_array().map_or(&rows[from], |row| &row[to]);
                let found = format!("distance {there} from node {from} to {to}, and {back} back");
                let expected = format!("{back}, or `asymmetric = true` if the firmware's table is like that");
                return Err(at.error(&found, &expected, RULE_SYMMETRY));
            }
        }
    }
    Ok(())
}

impl Told {
    /// For the table of a user's topology, which is accepted as it is.
    pub fn by_user(topology: &Topology, fact: &Fact, file: &str) -> Option<Told> {
        let classes = topology.node_distances();
        let range = (u64::from(*classes.first()?), u64::from(*classes.last()?));
        let (source, at) = (fact.source.clone(), Location::of(file));
        let told = Told { source, how: fact.how, range, values: Vec::new(), at, depth: 0 };
        topology.distances_told.then_some(told)
    }

    /// For a topology without distances.
    pub fn nothing(at: Location, depth: usize) -> Told {
        let source = format!(
            "no table of distances is given: {REMOTE_DISTANCE} is what Linux takes for another node then (REMOTE_DISTANCE); \
             tables of the machines that ship have 12 to {}",
            UNTOLD.1
        );
        Told { source, how: How::Guess, range: UNTOLD, values: Vec::new(), at, depth }
    }
}

/// The values in a topology's table between two different nodes, each as a figure.
pub(super) fn distance_figures(topology: &Topology, told: &Told) -> Vec<NamedFigure> {
    let classes: Vec<u64> = topology.node_distances().into_iter().map(u64::from).collect();
    let figure = |(index, &value): (usize, &u64)| {
        let low = index.checked_sub(1).map_or(0, |before| classes[before] + 1);
        let high = classes.get(index + 1).map_or(u64::MAX, |next| next - 1);
        let range = (told.range.0.max(low).min(value), told.range.1.min(high).max(value));
        let unit = Unit::named("count").expect("a unit");
        let at = told.values.iter().find(|(of, _)| *of == value).map_or(&told.at, |(_, at)| at);
        NamedFigure {
            name: format!("{PREFIX}{value}"),
            figure: Figure { value, unit, source: told.source.clone(), how: told.how, range },
            at: at.clone(),
            depth: told.depth,
        }
    };
    classes.iter().enumerate().map(figure).collect()
}

/// What the figures of a table's values have in common, to write the table's text.
pub(super) fn told_of(machine: &Description) -> Option<Told> {
    let mut classes = machine.figures.iter().filter(|named| named.name.starts_with(PREFIX));
    let first = classes.next()?;
    let Figure { source, how, range, .. } = first.figure.clone();
    let range = classes.fold(range, |all, named| (all.0.min(named.figure.range.0), all.1.max(named.figure.range.1)));
    let (at, depth) = (first.at.clone(), first.depth);
    Some(Told { source, how, range, values: Vec::new(), at, depth })
}

#[cfg(test)]
mod tests {
    use super::super::{Description, How, builtin, for_topology, parse};
    use super::*;
    use crate::topology::{Numbering, from_synthetic};

    fn machine(name: &str) -> Description {
        let (_, text) = builtin().iter().find(|(of, _)| *of == name).expect("a machine that ships");
        parse(text, name).unwrap_or_else(|error| panic!("{error}"))
    }

    fn classes(machine: &Description) -> Vec<(&str, u64, (u64, u64), How)> {
        let figures = machine.figures().filter(|(name, _)| name.starts_with(PREFIX));
        figures.map(|(name, figure)| (name, figure.value, figure.range, figure.how)).collect()
    }

    #[test]
    fn every_value_of_a_table_is_a_figure() {
        let xeon = machine("xeon-e5-2670v3-2s");
        assert_eq!(classes(&xeon), [("topology.distances.21", 21, (20, 31), How::Guess)]);
        let many = machine("ivybridge-ex-16s");
        let expected =
            [("topology.distances.17", 17, (12, 18), How::Guess), ("topology.distances.19", 19, (18, 60), How::Guess)];
        assert_eq!(classes(&many), expected, "a class ends where the next one begins");
        assert!(classes(&machine("core-i7-3770")).is_empty(), "one node is far from nothing");
        for (name, _) in builtin() {
            let machine = machine(name);
            let mut told: Vec<u64> = classes(&machine).iter().map(|class| class.1).collect();
            told.sort_unstable();
            let table = machine.topology().node_distances().into_iter().map(u64::from);
            assert_eq!(told, table.collect::<Vec<u64>>(), "{name}");
        }
    }

    #[test]
    fn a_value_moves_for_all_pairs_and_is_written_with_its_table() {
        let mut many = machine("ivybridge-ex-16s");
        let before = many.topology().clone();
        let far = many.figure("topology.distances.19").expect("a class").clone();
        many.replace("topology.distances.19", Figure { value: 60, ..far.clone() });
        let topology = many.topology();
        assert_eq!((topology.node_distance(0, 0), topology.node_distance(0, 1)), (10, 17));
        assert!((2..16).all(|node| topology.node_distance(0, node) == 60));
        assert_eq!(topology.distances(), before.distances(), "ranks stay");
        let again = parse(&many.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.topology(), topology);
        let moved = again.figure("topology.distances.60").expect("a class");
        assert_eq!((moved.range, moved.how, &moved.source), ((18, 60), How::Guess, &far.source));
    }

    #[test]
    fn a_topology_without_a_table_has_a_guess() {
        let topology = from_synthetic("pack:2 [numa] l3:1 core:4 pu:2", "t", Numbering::AsListed).expect("valid");
        let mut mine = for_topology("mine", topology, "a test", super::super::How::Guess);
        assert_eq!(classes(&mine), [("topology.distances.20", 20, (11, 40), How::Guess)]);
        let again = parse(&mine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((classes(&again), again.topology()), (classes(&mine), mine.topology()));
        let figure = mine.figure("topology.distances.20").expect("a class").clone();
        mine.replace("topology.distances.20", Figure { value: 40, ..figure });
        let again = parse(&mine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((again.topology().node_distance(0, 1), again.topology()), (40, mine.topology()));
    }

    #[test]
    fn bad_tables_name_their_rule() {
        let text = |distances: &str| {
            format!(
                "name = \"own\"\ndescription = \"d\"\nextends = \"xeon-e5-2670v3-2s\"\n[topology]\nsynthetic = \"pack:2 [numa] core:2 pu:1\"\n\
                 how = \"guess\"\nsource = \"s\"\n[topology.distances]\nhow = \"guess\"\nsource = \"s\"\n{distances}\n"
            )
        };
        let refused = |distances: &str| parse(&text(distances), "own.toml").expect_err("a bad file").to_string();
        assert_eq!(
            refused("rows = [[10, 9], [9, 10]]\nrange = [11, 30]"),
            format!(
                "own.toml:11:14: found the number 9; expected a whole number from 11 to 30 (rule: {RULE_DISTANCE})"
            )
        );
        let message = refused("rows = [[10, 21], [21, 12]]\nrange = [11, 30]");
        assert!(message.starts_with("own.toml:11:24: found the number 12; expected 10 (rule: a distance"), "{message}");
        let message = refused("rows = [[10, 21], [21, 10]]\nrange = [30, 20]");
        assert!(message.starts_with("own.toml:12:10: found a range that ends below its beginning;"), "{message}");
        let message = refused("rows = [[10, 21], [21, 10]]\nrange = [9, 30]");
        assert!(
            message.starts_with("own.toml:12:10: found the number 9; expected a whole number from 11"),
            "{message}"
        );
        // Only nodes made by numa=fake are as near to each other as to themselves.
        let near = "rows = [[10, 10], [10, 10]]\nrange = [10, 30]";
        let message = refused(near);
        assert!(
            message.starts_with("own.toml:12:10: found the number 10; expected a whole number from 11"),
            "{message}"
        );
        let message = refused("rows = [[10, 10], [10, 10]]\nrange = [11, 30]");
        assert!(
            message.starts_with("own.toml:11:14: found the number 10; expected a whole number from 11"),
            "{message}"
        );
        let message = refused(&format!("{near}\nfake = 1"));
        assert!(
            message.starts_with("own.toml:13:8: found the number 1; expected true (rule: fake is true or"),
            "{message}"
        );
        let machine =
            parse(&text(&format!("{near}\nfake = true")), "own.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.topology().node_distance(0, 1), 10);
        let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.topology(), machine.topology());
    }
}
