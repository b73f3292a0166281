//! What prices of distances must be to each other: what is farther takes no less time.

use super::error::DescriptionError;
use super::figure::{Figure, How};
use super::{Description, NamedFigure};
use crate::topology::{Distance, Location, Topology};

const RULE: &str = "prices of distances are in order: nothing far is nearer than what is near";

/// Refuses memory that is nearer than the own, and lines and memory whose prices fall from one distance between packages to the
/// next, or from the package's last level cache to beyond, of the distances that the machine has. Within a cache there is
/// no rule: measurements have cores that share a second-level cache farther from each other than from others.
pub(super) fn check_distances(machine: &Description) -> Result<(), DescriptionError> {
    let lines = machine.topology.distances().into_iter().filter(|distance| *distance >= Distance::Llc);
    let lines = lines.map(|distance| format!("line.{}", distance.name())).collect();
    let memory = machine.topology.memory_distances().into_iter().map(|distance| match distance {
        Distance::Same => "memory.local".to_string(),
        distance => format!("memory.{}", distance.name()),
    });
    for names in [lines, memory.collect::<Vec<String>>()] {
        let figures: Vec<&NamedFigure> =
            names.iter().filter_map(|name| machine.figures.iter().find(|named| named.name == *name)).collect();
        for pair in figures.windows(2) {
            if pair[1].figure.value < pair[0].figure.value {
                return Err(contradiction(pair[1], pair[0], RULE));
            }
        }
    }
    Ok(())
}

/// That `one` contradicts `other`. The one whose file extends the other's is told first, for somebody wrote it last; else `one` is.
pub(super) fn contradiction(one: &NamedFigure, other: &NamedFigure, rule: &str) -> DescriptionError {
    let (told, other) = if other.depth < one.depth { (other, one) } else { (one, other) };
    let (relation, bound) = match told.figure.value < other.figure.value {
        true => ("below", "or more"),
        false => ("above", "or less"),
    };
    let place = if told.at.input == other.at.input { String::new() } else { format!(" ({})", other.at) };
    DescriptionError {
        at: told.at.clone(),
        found: format!("{} = {} {relation} {} = {}{place}", told.name, told.figure, other.name, other.figure),
        expected: format!("{} of {} {bound}", told.name, other.figure),
        rule: rule.to_string(),
    }
}

/// The figures that a topology needs, by section: a price for each distance that occurs on it. The own CPU's lines are free, the own node's
/// memory has another name.
pub(super) fn needed(topology: &Topology) -> Vec<(&'static str, Distance)> {
    let lines = topology.distances().into_iter().skip(1).map(|distance| ("line", distance));
    lines.chain(topology.memory_distances().into_iter().skip(1).map(|distance| ("memory", distance))).collect()
}

/// Adds a price for each distance of the machine's topology that has none: what [`Description::nearest_price`] has.
pub(super) fn borrow_missing(machine: &mut Description, from: &str) {
    for (section, distance) in needed(&machine.topology) {
        let name = format!("{section}.{}", distance.name());
        if machine.figure(&name).is_some() {
            continue;
        }
        let Some((near, figure)) = machine.nearest_price(section, distance) else { continue };
        let source = format!("{from} has no such distance: as {near}, which is {}", figure.source);
        let figure = Figure { source, how: How::Guess, ..figure.clone() };
        machine.figures.push(NamedFigure { name, figure, at: Location::of(&machine.file), depth: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{How, for_topology, parse};
    use crate::topology::{DraftDistance, Location, Numbering, from_synthetic};

    /// A machine that differs from one that ships in one line of a section, refused.
    fn refused(section: &str, name: &str, ns: u32) -> String {
        let figure = format!("{{ value = {ns}, unit = \"ns\", source = \"s\", how = \"guess\", range = [1, 9999] }}");
        let text = format!(
            "name = \"own\"\nextends = \"ivybridge-ex-16s\"\ndescription = \"d\"\n[{section}]\n{name} = {figure}\n"
        );
        parse(&text, "own.toml").expect_err("a bad file").to_string()
    }

    #[test]
    fn a_topology_that_borrows_prices_has_one_for_every_distance() {
        let synthetic = |text: &str| from_synthetic(text, "t", Numbering::AsListed).expect("valid");
        let mine = for_topology(
            "mine",
            synthetic("pack:1 group:2 [numa] l3:1 core:4 pu:1"),
            "a test",
            super::super::How::Guess,
        );
        let [package, remote] = ["memory.package", "memory.remote_1"].map(|name| mine.figure(name).expect(name));
        assert_eq!((package.value, package.range, package.how), (remote.value, remote.range, How::Guess));
        let source = "skylake-uma-8 has no such distance: as memory.remote_1, which is taken from skylake-uma-8: ";
        assert!(package.source.starts_with(source), "{}", package.source);
        // More classes of distance than any machine of so many packages that ships.
        let apart = |from: u64, to: u64| 10 + 5 * from.abs_diff(to).min(3);
        let rows = (0..8).map(|from| (0..8).map(|to| apart(from, to)).collect()).collect();
        let table = DraftDistance { nodes: (0..8).collect(), rows, at: Location::of("t") };
        let mine = for_topology(
            "mine",
            synthetic("pack:8 [numa] core:2 pu:1").with_distances(table).expect("valid"),
            "a test",
            super::super::How::Guess,
        );
        for section in ["line", "memory"] {
            let [near, far] =
                ["remote_2", "remote_3"].map(|name| mine.figure(&format!("{section}.{name}")).expect(name));
            assert_eq!((near.value, far.how), (far.value, How::Guess));
        }
        assert!(parse(&mine.to_toml(), "again.toml").is_ok());
    }

    #[test]
    fn what_is_farther_is_no_nearer() {
        assert_eq!(
            refused("memory", "remote_1", 100),
            format!(
                "own.toml:5:12: found memory.remote_1 = 100 ns below memory.local = 125 ns (machines/ivybridge-ex-16s.toml:76:9); \
                 expected memory.remote_1 of 125 ns or more (rule: {})",
                super::RULE
            )
        );
        assert!(refused("line", "remote_2", 200).contains("found line.remote_2 = 200 ns below line.remote_1 = 250 ns"));
        // Another node of the same package is nowhere on this machine.
        let text = "name = \"own\"\nextends = \"ivybridge-ex-16s\"\ndescription = \"d\"\n[memory]\npackage = { value = 1, \
                    unit = \"ns\", source = \"s\", how = \"guess\", range = [1, 9] }\n";
        assert!(parse(text, "own.toml").is_ok());
        // The far one stands in the file that is extended: its place comes second.
        let message = refused("line", "llc", 900);
        let start =
            "own.toml:5:7: found line.llc = 900 ns above line.remote_1 = 250 ns (machines/ivybridge-ex-16s.toml:";
        assert!(message.starts_with(start), "{message}");
        assert!(message.contains("); expected line.llc of 250 ns or less (rule: "), "{message}");
    }
}
