//! What prices of distances must be to each other: what is farther takes no less time.

use super::error::DescriptionError;
use super::{Description, NamedFigure};
use crate::topology::{Distance, Topology};

const RULE: &str = "prices of distances are in order: nothing far is nearer than what is near";

/// Refuses memory that is nearer than the own, and lines and memory whose prices fall from one distance between packages to the
/// next, or from the package's last level cache to beyond, of the distances that the machine has. Within a cache there is
/// no rule: measurements have cores that share a second-level cache farther from each other than from others.
pub(super) fn check_distances(machine: &Description) -> Result<(), DescriptionError> {
    let lines = machine.topology.distances().into_iter().filter(|distance| *distance >= Distance::Llc);
    let lines = lines.map(|distance| format!("line.{}", distance.name())).collect();
    let memory = memory_distances(&machine.topology).into_iter().map(|distance| match distance {
        Distance::Same => "memory.local".to_string(),
        distance => format!("memory.{}", distance.name()),
    });
    for names in [lines, memory.collect::<Vec<String>>()] {
        let figures: Vec<&NamedFigure> =
            names.iter().filter_map(|name| machine.figures.iter().find(|named| named.name == *name)).collect();
        for pair in figures.windows(2) {
            if pair[1].figure.value < pair[0].figure.value {
                return Err(DescriptionError {
                    at: pair[1].at.clone(),
                    found: format!("{} = {} below {} = {}", pair[1].name, pair[1].figure, pair[0].name, pair[0].figure),
                    expected: format!("{} of {} or more", pair[1].name, pair[0].figure),
                    rule: RULE.to_string(),
                });
            }
        }
    }
    Ok(())
}

/// The distances of memory that occur, nearest first.
fn memory_distances(topology: &Topology) -> Vec<Distance> {
    let mut found = vec![Distance::Same];
    for cpu in topology.nodes().iter().filter_map(|node| node.cpus.first()) {
        for node in 0..topology.nodes().len() as u16 {
            let distance = topology.memory_distance(cpu, node);
            if !found.contains(&distance) {
                found.push(distance);
            }
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    /// A machine that differs from one that ships in one line of a section, refused.
    fn refused(section: &str, name: &str, ns: u32) -> String {
        let figure = format!("{{ value = {ns}, unit = \"ns\", source = \"s\", how = \"guess\", range = [1, 9999] }}");
        let text = format!(
            "name = \"own\"\nextends = \"ivybridge-ex-16s\"\ndescription = \"d\"\n[{section}]\n{name} = {figure}\n"
        );
        parse(&text, "own.toml").expect_err("a bad file").to_string()
    }

    #[test]
    fn what_is_farther_is_no_nearer() {
        assert_eq!(
            refused("memory", "remote_1", 100),
            format!(
                "own.toml:5:12: found memory.remote_1 = 100 ns below memory.local = 125 ns; expected memory.remote_1 of 125 ns \
                 or more (rule: {})",
                super::RULE
            )
        );
        assert!(refused("line", "remote_2", 200).contains("found line.remote_2 = 200 ns below line.remote_1 = 250 ns"));
        // Another node of the same package is nowhere on this machine.
        let text = "name = \"own\"\nextends = \"ivybridge-ex-16s\"\ndescription = \"d\"\n[memory]\npackage = { value = 1, \
                    unit = \"ns\", source = \"s\", how = \"guess\", range = [1, 9] }\n";
        assert!(parse(text, "own.toml").is_ok());
        // The far one stands in another file than the near one: its own line is told.
        let message = refused("line", "llc", 900);
        assert!(message.starts_with("machines/ivybridge-ex-16s.toml:"), "{message}");
        assert!(message.contains("found line.remote_1 = 250 ns below line.llc = 900 ns"), "{message}");
    }
}
