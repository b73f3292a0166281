//! Machine files: TOML in, [`Description`] out.

use super::Description;
use super::cache_rules::{check_caches, take_told_sizes};
use super::distance_rules::{check_distances, needed};
use super::energy_table::read_energy;
use super::entry::{Bounds, RULE_COMPLETE, RULE_NAMES, push_figure, read_fact};
use super::error::DescriptionError;
use super::extends::{Base, bases, resolve};
use super::frequency_rules::check_frequencies;
use super::idle_table::read_idle;
use super::kind_table::read_kinds;
use super::limit_rules::check_power_limit;
use super::names::{AMD_ZEN, FACTS, KEYS, Key, MAKE, OPTIONAL_FACTS, WORK, ZEN_RECLAIM_DISTANCE, key_of};
use super::pairs::check_pairs;
use super::smt_rules::{check_threads, leave_out_beyond};
use super::tick_rules::check_tick;
use super::toml_text::Table;
use super::topology_table::{lines, one_line, read_topology};
use super::work_table::{read_since, read_work};

const RULE_NAME: &str = "a machine has a name, of one line";
const RULE_ABOUT: &str = "a machine is described in a sentence, or several lines of them";

/// Reads a machine file that extends nothing, or a built-in file. The caller has to check names in the sections of
/// [`WORK`]: [`Description::check_names`].
pub fn parse(text: &str, file_name: &str) -> Result<Description, DescriptionError> {
    parse_over(text, file_name, &bases(text, file_name, &|_, _| None)?)
}

/// Reads a machine file on top of the files that it extends, as found by [`bases`].
pub fn parse_over(text: &str, file_name: &str, chain: &[Base]) -> Result<Description, DescriptionError> {
    let document = resolve(text, file_name, chain)?;
    let root = Table::new("", &document).expect("a document is a table");
    let sections = sections();
    let mut top: Vec<&str> = vec!["name", "description", "extends", "topology", "idle", "kind", "energy", "since"];
    top.extend(WORK.iter().chain(&sections));
    top.extend(KEYS.iter().map(|key| key.name).filter(|name| !name.contains('.')));
    top.sort_unstable();
    top.dedup();
    root.only(&top, RULE_NAMES)?;

    let name = one_line(&root, "name", RULE_NAME)?.to_string();
    let about = lines(&root, "description", RULE_ABOUT)?.trim().to_string();
    let Some(topology_table) = root.table("topology")? else {
        let expected = "[topology] with synthetic = \"pack:2 l3:1 core:12 pu:2\" or with lists of CPUs";
        return Err(root.error("no [topology]", expected, RULE_COMPLETE));
    };
    let (topology, topology_fact, distances) = read_topology(&topology_table)?;
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
    let (told_at, depth) = (topology_table.source.at(topology_table.span.start), topology_table.source.depth);
    take_told_sizes(&mut description, &told_at, depth);
    leave_out_beyond(&mut description, depth);
    if description.fact(MAKE).is_some_and(|fact| fact.value == AMD_ZEN) {
        description.topology = description.topology.with_node_reclaim_distance(ZEN_RECLAIM_DISTANCE);
    }
    read_idle(&root, &mut description)?;
    read_kinds(&root, &mut description)?;
    read_energy(&root, &mut description)?;
    read_work(&root, &mut description)?;
    read_since(&root, &mut description)?;
    require_all(&root, &description)?;
    check_distances(&description)?;
    check_frequencies(&description)?;
    check_power_limit(&description)?;
    check_pairs(&description)?;
    check_tick(&description)?;
    check_threads(&description)?;
    check_caches(&description)?;
    // Readers expect the order of the files, the machine's own before those that it extends.
    description.figures.sort_by_key(|named| (named.depth, named.at.line, named.at.column));
    Ok(description)
}

/// Facts that must be given, and optional ones.
fn facts() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str], &'static str)> {
    FACTS.iter().chain(OPTIONAL_FACTS)
}

/// The tables that contain figures and facts.
fn sections() -> Vec<&'static str> {
    let names = KEYS.iter().map(|key| key.name).chain(facts().map(|fact| fact.0));
    let mut sections: Vec<&str> = names.filter_map(|name| Some(name.split_once('.')?.0)).collect();
    sections.sort_unstable();
    sections.dedup();
    sections
}

/// Reads the figures and facts of a section; `key_of` and the tables in `names` know their names.
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

/// Requires every required figure and fact, and a price for every distance of the topology.
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
