//! How prices of distances must relate to each other: what is farther takes at least as long.

use super::error::DescriptionError;
use super::figure::{Figure, How};
use super::{Description, NamedFigure};
use crate::topology::{Distance, Location, Topology};

const RULE: &str = "prices of distances are in order: nothing far is nearer than what is near";

/// Refuses prices that fall with the distance, among the distances that the machine has: memory nearer than a CPU's
/// own; lines and memory from one distance between packages to the next, or from the package's last level cache to
/// beyond; and interrupts that arrive sooner in another package, if there is one. For shorter distances see
/// [`check_near`].
pub(super) fn check_distances(machine: &Description) -> Result<(), DescriptionError> {
    let lines = machine.topology.distances().into_iter().filter(|distance| *distance >= Distance::Llc);
    let lines = lines.map(|distance| format!("line.{}", distance.name())).collect();
    let memory = machine.topology.memory_distances().into_iter().map(|distance| match distance {
        Distance::Same => "memory.local".to_string(),
        distance => format!("memory.{}", distance.name()),
    });
    let remote = machine.topology.distances().iter().any(|distance| matches!(distance, Distance::Remote(_)));
    let interrupts = ["ipi.delivery", "ipi.delivery_remote"].map(String::from).into_iter().filter(|_| remote);
    for names in [lines, memory.collect::<Vec<String>>(), interrupts.collect()] {
        let figures: Vec<&NamedFigure> =
            names.iter().filter_map(|name| machine.figures.iter().find(|named| named.name == *name)).collect();
        for pair in figures.windows(2) {
            if pair[1].figure.value < pair[0].figure.value {
                return Err(contradiction(pair[1], pair[0], RULE));
            }
        }
    }
    check_near(machine)
}

/// Refuses near things that take longer than farther ones: lines between threads of a core, and between cores that
/// share a level-2 cache, among the distances that the machine has; the last level cache against memory; level 1
/// against level 2. There is no rule between those cores and others of the last level cache, because measurements have
/// them farther from each other. If two prices were measured, as by `fairground calibrate`, and their ranges overlap,
/// it is not known which one is less.
fn check_near(machine: &Description) -> Result<(), DescriptionError> {
    let caches = [("line.llc_hit", "memory.local"), ("cache.l1_load", "cache.l2_load")];
    let caches = caches.map(|(near, far)| (near.to_string(), far.to_string()));
    let named = |name: &str| machine.figures.iter().find(|named| named.name == name);
    for (near, far) in near_lines(&machine.topology.distances()).into_iter().chain(caches) {
        let (Some(near), Some(far)) = (named(&near), named(&far)) else { continue };
        let measured = [near, far].iter().all(|named| named.figure.how == How::Measured);
        let unknown = measured && near.figure.range.0 <= far.figure.range.1;
        if near.figure.value > far.figure.value && !unknown {
            return Err(contradiction(near, far, RULE));
        }
    }
    Ok(())
}

/// Lines within the last level cache, each paired with every farther one than which it may not take longer.
fn near_lines(distances: &[Distance]) -> Vec<(String, String)> {
    let line = |distance: Distance| format!("line.{}", distance.name());
    let beside = |near: Distance| {
        let farther =
            distances.iter().filter(move |&&far| far > near && (near, far) != (Distance::Cluster, Distance::Llc));
        farther.map(move |&far| (line(near), line(far)))
    };
    let near = [Distance::Smt, Distance::Cluster].into_iter().filter(|near| distances.contains(near));
    near.flat_map(beside).collect()
}

/// The error that `one` contradicts `other`. It is reported for the one whose file extends the other's, because that
/// was written last; otherwise for `one`.
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

/// The figures that a topology needs, by section: a price for each distance that occurs in it. A CPU's own lines are
/// free, and its own node's memory has another name.
pub(super) fn needed(topology: &Topology) -> Vec<(&'static str, Distance)> {
    let lines = topology.distances().into_iter().skip(1).map(|distance| ("line", distance));
    lines.chain(topology.memory_distances().into_iter().skip(1).map(|distance| ("memory", distance))).collect()
}

/// Adds a price for each distance of the machine's topology that has none: the highest of the nearer distances' prices.
/// That is the next nearer one's, unless it contradicts another; otherwise the price of [`Description::nearest_price`].
pub(super) fn borrow_missing(machine: &mut Description, from: &str) {
    for (section, distance) in needed(&machine.topology) {
        let name = format!("{section}.{}", distance.name());
        if machine.figure(&name).is_some() {
            continue;
        }
        let given = |index: usize| {
            let name = format!("{section}.{}", Distance::from_index(index).name());
            machine.figure(&name).map(|figure| (name, figure))
        };
        let nearer = (1..distance.index()).filter_map(given).max_by_key(|(_, figure)| figure.value);
        let any = || machine.nearest_price(section, distance);
        // A machine with one node has no price for other memory.
        let own =
            || machine.figure("memory.local").filter(|_| section == "memory").map(|it| ("memory.local".into(), it));
        let Some((near, figure)) = nearer.or_else(any).or_else(own) else { continue };
        let source = format!("{from} has no such distance: as {near}, which is {}", figure.source);
        let figure = Figure { source, how: How::Guess, ..figure.clone() };
        machine.figures.push(NamedFigure { name, figure, at: Location::of(&machine.file), depth: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{How, for_topology, parse};
    use crate::topology::{DraftDistance, Location, Numbering, from_synthetic};

    /// A built-in machine with one changed line in a section, which must be refused.
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
        // More classes of distance than any built-in machine with as many packages has.
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

    /// The fixture with other values of figures, each with its origin and range.
    fn with(figures: &[(&str, &str, &str, &str)]) -> Result<(), String> {
        let fixture = include_str!("../../tests/fixtures/two-sockets.toml").to_string();
        let text = figures.iter().fold(fixture, |text, (name, value, how, range)| {
            let (head, rest) = text.split_once(&format!("\n{name} = {{ value = ")).expect("a figure");
            let (_, rest) = rest.split_once(", unit").expect("its unit");
            let (unit, rest) = rest.split_once(", range").expect("its range");
            let (_, tail) = rest.split_once('\n').expect("a line");
            let source = "source = \"s\" }";
            format!(
                "{head}\n{name} = {{ value = {value}, unit{unit}, range = {range}, how = \"{how}\", {source}\n{tail}"
            )
        });
        parse(&text, "m.toml").map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn within_a_package_too_what_is_farther_is_no_nearer() {
        let one = |name: &str, value: &str| with(&[(name, value, "guess", "[1, 9999]")]).expect_err("out of order");
        let expected = |at: &str, name: &str, is: &str, other: &str, bound: &str| {
            let rule = super::RULE;
            format!(
                "m.toml:{at}: found {name} = {is} above {other} = {bound}; expected {name} of {bound} or less (rule: {rule})"
            )
        };
        assert_eq!(one("smt", "500"), expected("45:7", "line.smt", "500 ns", "line.llc", "40 ns"));
        assert_eq!(one("smt", "40.1"), expected("45:7", "line.smt", "40.1 ns", "line.llc", "40 ns"));
        assert_eq!(one("llc_hit", "96"), expected("44:11", "line.llc_hit", "96 ns", "memory.local", "95 ns"));
        assert_eq!(one("l1_load", "13"), expected("39:11", "cache.l1_load", "13 cycles", "cache.l2_load", "12 cycles"));
        assert_eq!(with(&[("smt", "40", "guess", "[1, 99]"), ("llc_hit", "95", "guess", "[1, 99]")]), Ok(()));
    }

    #[test]
    fn measurements_that_overlap_may_be_out_of_order_within_a_package() {
        let meet = with(&[("smt", "44", "measured", "[39, 50]"), ("llc", "40", "measured", "[35, 45]")]);
        assert_eq!(meet, Ok(()));
        let message = with(&[("smt", "44", "measured", "[41, 50]"), ("llc", "40", "measured", "[35, 40]")]);
        assert!(message.expect_err("wholly above").contains("found line.smt = 44 ns above line.llc = 40 ns"));
        let message = with(&[("smt", "44", "measured", "[39, 50]"), ("llc", "40", "guess", "[35, 45]")]);
        assert!(message.expect_err("one is chosen").contains("found line.smt = 44 ns above line.llc = 40 ns"));
    }

    #[test]
    fn cores_that_share_a_second_level_cache_are_no_farther_than_another_cache() {
        let figure = "{ value = 400, unit = \"ns\", source = \"s\", how = \"guess\", range = [1, 9999] }";
        let text = format!(
            "name = \"own\"\nextends = \"kunpeng-920-6426\"\ndescription = \"d\"\n[line]\ncluster = {figure}\n"
        );
        let message = parse(&text, "own.toml").expect_err("a bad file").to_string();
        let start = "own.toml:5:11: found line.cluster = 400 ns above line.package = 80.5 ns (machines/kunpeng";
        assert!(message.starts_with(start), "{message}");
        // Measured: four small cores that share a cache are farther from each other than from others.
        let measured = super::super::shipped("core-i9-12900k").expect("it ships");
        let machine = parse(&measured.text, &measured.file).unwrap_or_else(|error| panic!("{error}"));
        let price = |distance| machine.line_transfer(distance);
        assert!(price(crate::topology::Distance::Cluster) > price(crate::topology::Distance::Llc));
    }

    #[test]
    fn what_is_farther_is_no_nearer() {
        assert_eq!(
            refused("memory", "remote_1", 100),
            format!(
                "own.toml:5:12: found memory.remote_1 = 100 ns below memory.local = 125 ns (machines/ivybridge-ex-16s.toml:77:9); \
                 expected memory.remote_1 of 125 ns or more (rule: {})",
                super::RULE
            )
        );
        assert!(refused("line", "remote_2", 200).contains("found line.remote_2 = 200 ns below line.remote_1 = 250 ns"));
        let message = refused("ipi", "delivery_remote", 499);
        let start = "own.toml:5:19: found ipi.delivery_remote = 499 ns below ipi.delivery = 500 ns (machines/ivybridge";
        assert!(message.starts_with(start), "{message}");
        let message = refused("ipi", "delivery", 701);
        let start = "own.toml:5:12: found ipi.delivery = 701 ns above ipi.delivery_remote = 700 ns (machines/ivybridge";
        assert!(message.starts_with(start), "{message}");
        // On a machine with one package there is no CPU in another package.
        let text = "name = \"own\"\nextends = \"skylake-uma-8\"\ndescription = \"d\"\n[ipi]\ndelivery = { value = 1, unit = \"us\", \
                    source = \"s\", how = \"guess\", range = [0.5, 2] }\n";
        parse(text, "own.toml").expect("one package");
        // This machine has no other node in the same package.
        let text = "name = \"own\"\nextends = \"ivybridge-ex-16s\"\ndescription = \"d\"\n[memory]\npackage = { value = 1, \
                    unit = \"ns\", source = \"s\", how = \"guess\", range = [1, 9] }\n";
        assert!(parse(text, "own.toml").is_ok());
        // The farther one is in the file that is extended, so its place comes second.
        let message = refused("line", "llc", 900);
        let start =
            "own.toml:5:7: found line.llc = 900 ns above line.remote_1 = 250 ns (machines/ivybridge-ex-16s.toml:";
        assert!(message.starts_with(start), "{message}");
        assert!(message.contains("); expected line.llc of 250 ns or less (rule: "), "{message}");
    }
}
