//! Rules for `[cache]` of a machine file, and how its topology's cache sizes take precedence.

use super::error::DescriptionError;
use super::{Description, Fact, Figure, NamedFigure};
use crate::topology::{Location, Topology};

const RULE_LINE: &str = "a cache line is a power of two of bytes, as all processors have it";
const RULE_LEVELS: &str = "a cache is no smaller than the one above it";

/// The figures of the caches' sizes, the innermost first.
const SIZES: [&str; 3] = ["cache.l1d_size", "cache.l2_size", "cache.llc_size"];

/// A topology's sizes of the biggest CPUs' caches, in bytes, in the order of [`SIZES`].
fn told(topology: &Topology) -> [(&'static str, Option<u64>); 3] {
    let biggest = topology.biggest_cpu();
    let bytes = [topology.cache_bytes(biggest, 1), topology.cache_bytes(biggest, 2), topology.llc_bytes(biggest)];
    [0, 1, 2].map(|level| (SIZES[level], bytes[level]))
}

/// The topology's size, with the source of `by`, as replacement for the figure of that name.
pub(super) fn told_size(name: &str, figure: &Figure, topology: &Topology, by: &Fact) -> Option<Figure> {
    let (_, bytes) = told(topology).into_iter().find(|(told, _)| *told == name)?;
    let value = bytes?;
    Some(Figure { value, range: (value, value), how: by.how, source: by.source.clone(), ..figure.clone() })
}

/// Sizes in `[topology]` replace those of files that its own file extends, because those are of other caches. A size
/// that only repeats an extended file's leaves that one as it is, with its own source. `at` and `depth` are the
/// topology's.
pub(super) fn take_told_sizes(machine: &mut Description, at: &Location, depth: usize) {
    let (topology, by) = (&machine.topology, &machine.topology_fact);
    let inherited = |named: &NamedFigure| named.depth > depth && SIZES.contains(&named.name.as_str());
    for named in machine.figures.iter_mut().filter(|named| inherited(named)) {
        let told = told_size(&named.name, &named.figure, topology, by);
        if let Some(figure) = told.filter(|told| told.value != named.figure.value) {
            (named.figure, named.at, named.depth) = (figure, at.clone(), depth);
        }
    }
}

/// Adjusts borrowed sizes to those of a topology, so that no cache is larger than the next outer one.
pub(super) fn fit_borrowed(figures: &mut [NamedFigure], topology: &Topology) {
    let told = told(topology).map(|(_, bytes)| bytes.is_some());
    let place = SIZES.map(|name| figures.iter().position(|named| named.name == name));
    let [Some(l1d), Some(l2), Some(llc)] = place else { return };
    let places = [l1d, l2, llc];
    let mut fit = |level: usize, bound: u64, by: fn(u64, u64) -> u64| {
        let figure = &mut figures[places[level]].figure;
        if !told[level] {
            figure.value = by(figure.value, bound);
            figure.range = (figure.range.0.min(figure.value), figure.range.1.max(figure.value));
        }
        by(figure.value, bound)
    };
    (0..SIZES.len()).rev().fold(u64::MAX, |most, level| fit(level, most, u64::min));
    (0..SIZES.len()).fold(0, |least, level| fit(level, least, u64::max));
}

/// Refuses line and cache sizes that no processor has. A topology's own cache sizes are accepted whatever they are.
pub(super) fn check_caches(machine: &Description) -> Result<(), DescriptionError> {
    let named = |name: &str| machine.figures.iter().find(|named| named.name == name);
    let wrong = |of: &NamedFigure, expected: String, rule: &str| {
        let found = format!("{} = {}", of.name, of.figure);
        Err(DescriptionError { at: of.at.clone(), found, expected, rule: rule.to_string() })
    };
    let line = named("cache.line_size");
    if let Some(line) = line.filter(|line| !line.figure.bytes().is_power_of_two()) {
        return wrong(line, "64 B, perhaps".to_string(), RULE_LINE);
    }
    for pair in SIZES.windows(2) {
        let (Some(inner), Some(outer)) = (named(pair[0]), named(pair[1])) else { continue };
        let told = [inner, outer].iter().any(|of| of.figure.source == machine.topology_fact.source);
        if inner.figure.bytes() > outer.figure.bytes() && !told {
            // The figure in the nearer file is the one to be changed.
            let (of, than, other) =
                if outer.depth < inner.depth { (outer, "at least", inner) } else { (inner, "at most", outer) };
            return wrong(
                of,
                format!("{than} {}, which is {} (at {})", other.name, other.figure, other.at),
                RULE_LEVELS,
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{How, builtin, for_topology, parse};
    use crate::topology::{Numbering, from_synthetic};

    fn own(rest: &str) -> Result<crate::description::Description, String> {
        let text = format!("name = \"own\"\nextends = \"xeon-e5-2670v3-2s\"\ndescription = \"Ours.\"\n{rest}");
        parse(&text, "own.toml").map_err(|error| error.to_string())
    }

    fn size(name: &str, value: &str, unit: &str) -> String {
        format!(
            "{name} = {{ value = {value}, unit = \"{unit}\", range = [{value}, {value}], how = \"guess\", source = \"s\" }}\n"
        )
    }

    const TOPOLOGY: &str = "[topology]\nsynthetic = \"pack:1 [numa] l3:1(size=64MiB) core:8 pu:2\"\nhow = \"measured\"\nsource = \"lstopo there\"\n";

    #[test]
    fn a_topology_of_ones_own_tells_the_sizes_of_its_caches() {
        let machine = own(TOPOLOGY).expect("a machine");
        let llc = machine.figure("cache.llc_size").expect("it is required");
        assert_eq!((llc.bytes(), llc.range, llc.source.as_str()), (64 << 20, (64 << 20, 64 << 20), "lstopo there"));
        assert_eq!(machine.llc_bytes(), [64 << 20]);
        // The topology says nothing about level 2, which stays what it was.
        assert_eq!(machine.figure("cache.l2_size").map(|figure| figure.bytes()), Some(256 << 10));
        // A size that is only repeated keeps its source.
        let same = own(&TOPOLOGY.replace("64MiB", "30MiB")).expect("a machine");
        let theirs =
            parse(&crate::description::shipped("xeon-e5-2670v3-2s").expect("it ships").text, "x").expect("valid");
        assert_eq!(same.figure("cache.llc_size"), theirs.figure("cache.llc_size"));
        // [cache] in the same file takes precedence, and so does a nearer file's.
        let said = format!("{TOPOLOGY}[cache]\n{}", size("llc_size", "48", "MiB"));
        assert_eq!(own(&said).expect("a machine").llc_bytes(), [48 << 20]);
        // For a built-in machine none of this changes anything.
        for (name, text) in builtin() {
            let machine = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            let again = parse(&machine.to_toml(), name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(machine.llc_bytes(), again.llc_bytes(), "{name}");
        }
    }

    #[test]
    fn borrowed_sizes_give_way_to_those_that_a_topology_tells() {
        let sizes = |text: &str| {
            let topology = from_synthetic(text, "t", Numbering::AsListed).expect("a topology");
            let machine = for_topology("mine", topology, "hearsay", How::Guess);
            let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
            super::SIZES.map(|name| again.figure(name).expect("it is required").bytes() >> 10)
        };
        assert_eq!(sizes("core:4 pu:2"), [32, 256, 8192]);
        assert_eq!(sizes("l3:1(size=100KiB) core:4 pu:2"), [32, 100, 100]);
        assert_eq!(sizes("l3:1(size=16KiB) core:4 pu:2"), [16, 16, 16]);
        assert_eq!(sizes("l3:1 l2:4(size=16MiB) core:1 pu:2"), [32, 16384, 16384]);
        assert_eq!(sizes("l3:1(size=1MiB) l2:4(size=2MiB) core:1 pu:2"), [32, 2048, 1024], "as told");
        assert_eq!(sizes("l3:1(size=32KiB) l1d:4(size=8MiB) core:1 pu:2"), [8192, 8192, 32], "as told");
    }

    #[test]
    fn caches_that_no_processor_has() {
        let refused = |rest: &str| own(rest).expect_err("no such cache");
        assert_eq!(
            refused(&format!("[cache]\n{}", size("line_size", "48", "B"))),
            "own.toml:5:13: found cache.line_size = 48 B; expected 64 B, perhaps (rule: a cache line is a power of two of bytes, as all processors have it)"
        );
        let large = refused(&format!("[cache]\n{}", size("l1d_size", "64", "MiB")));
        assert!(
            large.starts_with(
                "own.toml:5:12: found cache.l1d_size = 64 MiB; expected at most cache.l2_size, which is 256 KiB"
            ),
            "{large}"
        );
        let small = refused(&format!("[cache]\n{}", size("llc_size", "1", "KiB")));
        assert!(
            small.starts_with(
                "own.toml:5:12: found cache.llc_size = 1 KiB; expected at least cache.l2_size, which is 256 KiB"
            ),
            "{small}"
        );
        // A machine that reports such caches has them.
        assert_eq!(own(&TOPOLOGY.replace("64MiB", "64KiB")).expect("a machine").llc_bytes(), [64 << 10]);
    }

    #[test]
    fn caches_that_cut_what_they_belong_to() {
        let listed = |caches: &str| {
            let lists = "cpus = 4\ncores = [\"0-1\", \"2-3\"]\npackages = [\"0-1\", \"2-3\"]\n";
            own(&format!("[topology]\n{lists}{caches}\nhow = \"guess\"\nsource = \"s\"\n"))
        };
        let level =
            |level: u8, cpus: &str| format!("caches = [{{ level = {level}, kind = \"unified\", cpus = [{cpus}] }}]");
        assert!(listed(&level(3, "\"0-1\", \"2-3\"")).is_ok());
        let spans = listed(&level(3, "\"0-3\"")).expect_err("two packages");
        assert!(
            spans.starts_with("own.toml:8:")
                && spans.contains(
                    "found a level-3 cache of CPUs 0 and 2, of two packages; expected a cache of CPUs of one package"
                ),
            "{spans}"
        );
        let cuts = listed(&level(2, "\"0\", \"2-3\"")).expect_err("half a core");
        assert!(cuts.starts_with("own.toml:8:") && cuts.contains("found a level-2 cache of CPU 0 without CPU 1, a thread of its core; expected a cache of whole cores"), "{cuts}");
    }
}
