//! `[kind]` in a machine file: how CPUs of different design differ, by the names that `[topology]` gives them in
//! `kinds`.
//!
//! ```toml
//! [kind.E-core]
//! speed = { value = 0.5, unit = "ratio", source = "...", how = "...", range = [0.4, 0.6] }
//! ```
//!
//! `min`, `base`, `max` and `turbo_N` are the frequencies of such a CPU, if they differ from the machine's: its clock
//! is governed by them. `[[kind.E-core.idle.state]]` are the machine's idle states on such a CPU. `highest_perf` is the
//! highest performance that firmware reports for such a CPU (CPPC): if it differs, Linux ranks the cores by it. `speed`
//! is how fast a CPU is, whatever capacity the scheduler is told: Intel's hybrid processors with second threads enabled
//! have cores of two speeds and one capacity.

use super::entry::{Bounds, push_figure};
use super::error::DescriptionError;
use super::figure::Figure;
use super::idle_table::read_idle_of_kind;
use super::names::{KIND_KEYS, kind_key_of};
use super::nearest::nearest_name;
use super::toml_text::{Entry, Table};
use super::{Description, NamedFigure};
use crate::topology::{CpuKind, excerpt};
use sched::cpu_topology::SCHED_CAPACITY_SCALE;
use units::CpuId;

const RULE_FASTEST: &str = "speeds are shares of the fastest CPU's, which is 1";
const RULE: &str = "a kind of CPU is one of [topology]'s kinds, and has a speed";

/// Reads the table, if there is one, into the machine's figures and topology.
pub(super) fn read_kinds(root: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    let Some(kinds) = root.table("kind")? else { return Ok(()) };
    for entry in kinds.entries() {
        let table = kinds.as_table(&entry.name, &entry.node)?;
        let known = || into.topology.kinds().iter().map(|kind| kind.name.as_str());
        let Some(kind) = into.topology.kinds().iter().find(|kind| kind.name == entry.name) else {
            let found = format!("the kind `{}`, which no CPU is of", excerpt(&entry.name, 60));
            let expected = match nearest_name(&entry.name, known()) {
                Some(nearest) => format!("`{nearest}`, perhaps"),
                None if into.topology.kinds().is_empty() => "no [kind], as [topology] has no kinds".to_string(),
                None => format!("one of [topology]'s kinds: {}", known().collect::<Vec<_>>().join(", ")),
            };
            return Err(entry.node.source.error(&entry.name_span, &found, &expected, RULE));
        };
        let kind = kind.clone();
        for entry in table.entries().iter().filter(|entry| entry.name != "idle") {
            let Some(key) = kind_key_of(&entry.name) else {
                let known = KIND_KEYS.iter().map(|key| key.name).chain(["idle"]);
                return Err(table.unknown(entry, known, RULE));
            };
            push_figure(&table, &entry.name, &entry.node, &Bounds::of(key), into)?;
        }
        read_idle_of_kind(&table, into)?;
        if table.entries().is_empty() {
            return Err(table.error(&format!("no `speed` in {}", table.title()), "speed = { value = ... }", RULE));
        }
        apply(into, &kind);
    }
    let known = |name: &str, key: &str| into.figure(&format!("kind.{name}.{key}")).is_some();
    let alike = into.topology.cpus().all(|(_, cpu)| cpu.capacity == into.topology.cpu(CpuId::new(0)).capacity);
    if alike && !into.topology.kinds().iter().any(|kind| known(&kind.name, "speed")) {
        let clocked = |entry: &&Entry| known(&entry.name, "max") || known(&entry.name, "base");
        if let Some(entry) = kinds.entries().iter().find(clocked) {
            let table = kinds.as_table(&entry.name, &entry.node)?;
            let found = format!("frequencies and no `speed` in {}", table.title());
            let expected = "speed = { value = ... }, or [topology]'s `capacity`: what a clock does is nobody's guess";
            return Err(table.error(&found, expected, RULE));
        }
    }
    check_fastest(into)?;
    let told = into.topology.cpus().filter(|(_, cpu)| cpu.highest_perf.is_some()).count();
    if told != 0 && told != into.topology.nr_cpus() {
        let found = format!("a `highest_perf` of {told} CPUs of {}", into.topology.nr_cpus());
        return Err(kinds.error(&found, "one in each kind, and every CPU of some kind", RULE));
    }
    Ok(())
}

/// Refuses speeds if none of them is the fastest CPU's. A CPU whose kind has no speed is as fast as its capacity says.
fn check_fastest(machine: &Description) -> Result<(), DescriptionError> {
    let is_speed = |named: &&NamedFigure| named.name.starts_with("kind.") && named.name.ends_with(".speed");
    let fastest = machine.figures.iter().filter(is_speed).max_by_key(|named| named.figure.value);
    let Some(fastest) = fastest.filter(|_| machine.topology.cpus().all(|(_, cpu)| cpu.speed < SCHED_CAPACITY_SCALE))
    else {
        return Ok(());
    };
    Err(DescriptionError {
        at: fastest.at.clone(),
        found: format!("{} = {} as the highest of all speeds", fastest.name, fastest.figure),
        expected: "1 for the fastest CPUs, and the others' speeds as shares of theirs".to_string(),
        rule: RULE_FASTEST.to_string(),
    })
}

/// Applies the figures of a kind to its CPUs in the topology.
pub(super) fn apply(into: &mut Description, kind: &CpuKind) {
    let told = |name: &str| into.figure(&format!("kind.{}.{name}", kind.name));
    let (speed, highest_perf) = (told("speed").map(Figure::permille), told("highest_perf").map(Figure::count));
    if let Some(highest_perf) = highest_perf {
        into.topology = into.topology.clone().with_highest_perf(&kind.cpus, highest_perf as u32);
    }
    if let Some(permille) = speed {
        let speed = (permille * u64::from(SCHED_CAPACITY_SCALE)).div_ceil(1_000) as u32;
        into.topology = into.topology.clone().with_speed(&kind.cpus, speed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn a_kind_on_a_machine_without_kinds() {
        let figure = "{ value = 0.5, unit = \"ratio\", source = \"s\", how = \"guess\", range = [0.4, 0.6] }";
        let kind = format!("[kind.Z]\nspeed = {figure}\n");
        let file = |extends: &str| format!("name = \"own\"\nextends = \"{extends}\"\ndescription = \"d\"\n{kind}");
        let refused = |extends: &str| parse(&file(extends), "own.toml").expect_err("no such kind").to_string();
        assert_eq!(
            refused("skylake-uma-8"),
            "own.toml:4:7: found the kind `Z`, which no CPU is of; expected no [kind], as [topology] has no kinds \
             (rule: a kind of CPU is one of [topology]'s kinds, and has a speed)"
        );
        let others = refused("core-i9-12900k");
        assert!(others.contains("expected one of [topology]'s kinds: P-core, E-core (rule"), "{others}");
    }

    #[test]
    fn kinds_with_clocks_of_their_own_have_a_speed_or_a_capacity() {
        let figure = |value: &str, unit: &str, most: u32| {
            format!("{{ value = {value}, unit = \"{unit}\", source = \"s\", how = \"guess\", range = [0.1, {most}] }}")
        };
        let file = |topology: &str, kind: &str| {
            format!(
                "name = \"own\"\nextends = \"core-i7-3770\"\ndescription = \"d\"\n[topology]\nhow = \"guess\"\nsource = \"s\"\n\
                 synthetic = \"pack:1 l3:1 core:4 pu:1\"\nnumbering = \"as-listed\"\n\
                 kinds = [{{ name = \"P\", cpus = \"0-1\" }}, {{ name = \"E\", cpus = \"2-3\" }}]\n{topology}\
                 [kind.E]\nmax = {}\n{kind}",
                figure("2", "GHz", 9)
            )
        };
        let error = parse(&file("", ""), "own.toml").expect_err("as fast as the others, at which clock?").to_string();
        assert!(
            error.starts_with("own.toml:10:1: found frequencies and no `speed` in `kind.E`; expected speed"),
            "{error}"
        );
        // The other CPUs have no speed of their own, and are as fast as any.
        let fine = [("", format!("speed = {}\n", figure("0.5", "ratio", 1)))];
        let fine = fine.into_iter().chain([("capacity = [{ value = 400, cpus = \"2-3\" }]\n", String::new())]);
        for (topology, kind) in fine {
            if let Err(error) = parse(&file(topology, &kind), "own.toml") {
                panic!("{error}");
            }
        }
    }

    #[test]
    fn the_fastest_cpus_have_a_speed_of_one_and_the_biggest_a_capacity_of_1024() {
        let speed = |value: &str| {
            format!(
                "speed = {{ value = {value}, unit = \"ratio\", source = \"s\", how = \"guess\", range = [0.1, 1] }}\n"
            )
        };
        let file = |capacity: &str, of: [&str; 2]| {
            let kinds = format!("[kind.P]\n{}[kind.E]\n{}", speed(of[0]), speed(of[1]));
            format!(
                "name = \"own\"\nextends = \"core-i7-3770\"\ndescription = \"d\"\n[topology]\nhow = \"guess\"\nsource = \"s\"\n\
                 synthetic = \"pack:1 l3:1 core:4 pu:1\"\nnumbering = \"as-listed\"\n{capacity}\
                 kinds = [{{ name = \"P\", cpus = \"0-1\" }}, {{ name = \"E\", cpus = \"2-3\" }}]\n{kinds}"
            )
        };
        let refused = |text: &str| parse(text, "own.toml").expect_err("nobody is fastest").to_string();
        assert_eq!(
            refused(&file("", ["0.8", "0.5"])),
            "own.toml:11:9: found kind.P.speed = 0.8 ratio as the highest of all speeds; expected 1 for the fastest CPUs, and the \
             others' speeds as shares of theirs (rule: speeds are shares of the fastest CPU's, which is 1)"
        );
        let capacities = "capacity = [{ value = 800, cpus = \"0-1\" }, { value = 400, cpus = \"2-3\" }]\n";
        let small = refused(&file(capacities, ["1", "0.5"]));
        assert!(
            small.starts_with("own.toml:9:12: found a largest capacity of 800; expected 1024 for the biggest"),
            "{small}"
        );
        for capacity in ["", "capacity = [{ value = 400, cpus = \"2-3\" }]\n", &capacities.replace("800", "1024")] {
            parse(&file(capacity, ["1", "0.5"]), "own.toml").unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
