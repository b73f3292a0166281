//! `[topology]` in a machine file: hwloc's synthetic notation, or lists of CPUs for machines that are not symmetric.

use super::distance_table::{RULE, RULE_SOURCE, Told, distance_figures, read_distances};
use super::entry::{read_how, whole_by};
use super::error::DescriptionError;
use super::toml_text::{Node, Table};
use super::{Fact, NamedFigure};
use crate::topology::{
    CacheKind, CpuKind, Draft, DraftCache, DraftDistance, DraftNode, DraftPart, Location, MOST_CACHE_BYTES,
    MOST_CACHE_LEVEL, Numbering, Topology, excerpt, from_synthetic, parse_list,
};
use sched::cpu_topology::SCHED_CAPACITY_SCALE;
use units::{CpuId, CpuMask};

const RULE_KINDS: &str =
    "a kind of CPU has a name of its own, of one line without dots, and each CPU is of one kind at most";
const RULE_CAPACITY: &str = "a CPU has one capacity";
const RULE_BIGGEST: &str = "the biggest CPUs have a capacity of 1024, of which the others' are shares";
const RULE_LEVEL: &str = "a cache is of one of the levels that processors have, 1 to 5 as hwloc counts them";
const SYNTHETIC: &[&str] =
    &["synthetic", "numbering", "memory_nodes", "kinds", "capacity", "distances", "source", "how"];
const LISTED: &[&str] = &[
    "cpus",
    "cores",
    "clusters",
    "dies",
    "packages",
    "nodes",
    "caches",
    "kinds",
    "capacity",
    "distances",
    "source",
    "how",
];

/// The topology, its origin, and its distances.
pub(super) fn read_topology(table: &Table) -> Result<(Topology, Fact, Vec<NamedFigure>), DescriptionError> {
    let synthetic = table.get("synthetic").is_some();
    table.only(if synthetic { SYNTHETIC } else { LISTED }, "a topology is synthetic or listed, in known names")?;
    let source = table.string("source", RULE_SOURCE)?.to_string();
    let how = read_how(table)?;
    let (topology, told) = if synthetic { read_synthetic(table)? } else { read_listed(table)? };
    let told = told.unwrap_or_else(|| Told::nothing(table.source.at(table.span.start), table.source.depth));
    let value = if synthetic { table.string("synthetic", RULE)?.to_string() } else { topology.summary() };
    let distances = distance_figures(&topology, &told);
    Ok((topology, Fact { value, source, how }, distances))
}

fn read_synthetic(table: &Table) -> Result<(Topology, Option<Told>), DescriptionError> {
    let text = table.string("synthetic", RULE)?;
    let numbering = match table.get("numbering").map(|value| (value, value.as_str())) {
        None | Some((_, Some("linux-x86"))) => Numbering::LinuxX86,
        Some((_, Some("as-listed"))) => Numbering::AsListed,
        Some((value, _)) => {
            let expected = "\"linux-x86\" (first threads of all cores first) or \"as-listed\"";
            return Err(value.error(&value.kind(), expected, RULE));
        }
    };
    let mut topology = from_synthetic(text, table.source.file, numbering).map_err(|mut error| {
        if let Some(value) = table.get("synthetic") {
            error.at = inside(value, text, error.at.column);
        }
        DescriptionError::from(error)
    })?;
    if let Some(count) = table.get("memory_nodes") {
        topology = topology.with_memory_nodes(whole(count, 1, 64)? as usize)?;
    }
    let all: CpuMask = topology.cpus().map(|(cpu, _)| cpu).collect();
    let (kinds, capacity) = read_kinds(table, &all)?;
    topology.kinds = kinds;
    for (cpus, value) in capacity {
        topology = topology.with_capacity(&cpus, value);
    }
    match read_distances(table)? {
        None => Ok((topology, None)),
        Some((distance, told)) => {
            let nodes = topology.nodes().len() as u32;
            let distance = DraftDistance { nodes: (0..nodes).collect(), ..distance };
            Ok((topology.with_distances(distance)?, Some(told)))
        }
    }
}

fn read_listed(table: &Table) -> Result<(Topology, Option<Told>), DescriptionError> {
    let mut draft = Draft::new(table.source.file);
    draft.at = table.source.at(table.span.start);
    draft.by_hand = true;
    let Some(count) = table.get("cpus") else {
        let expected = "synthetic = \"...\", or cpus = a number, with lists of packages, cores ...";
        return Err(table.error("a topology without `synthetic` and without `cpus`", expected, RULE));
    };
    let nr_cpus = whole(count, 1, units::NR_CPUS as u64)?;
    let at = count.at();
    for cpu in 0..nr_cpus {
        draft.add_cpu(cpu, &at)?;
    }
    let parts = |name: &str| sets(table, name, &draft.cpus);
    let part = |(index, (cpus, at)): (usize, (CpuMask, Location))| DraftPart { os_index: Some(index as u32), cpus, at };
    let lists = [parts("cores")?, parts("clusters")?, parts("dies")?, parts("packages")?, parts("nodes")?];
    let [cores, clusters, dies, packages, nodes] = lists.map(|list| list.into_iter().enumerate());
    draft.cores = cores.map(part).collect();
    draft.clusters = clusters.map(part).collect();
    draft.dies = dies.map(part).collect();
    draft.packages = packages.map(part).collect();
    draft.nodes =
        nodes.map(|(index, (cpus, at))| DraftNode { os_index: index as u32, cpus, memory_bytes: None, at }).collect();
    read_caches(table, &mut draft)?;
    let (kinds, capacity) = read_kinds(table, &draft.cpus)?;
    let at = draft.at.clone();
    draft.kinds = kinds.into_iter().map(|kind| (kind, at.clone())).collect();
    for (cpus, value) in capacity {
        draft.capacity.extend(cpus.iter().map(|cpu: CpuId| (cpu, value)));
    }
    let (distance, told) = read_distances(table)?.unzip();
    let nodes = || (0..draft.nodes.len().max(1) as u32).collect();
    draft.distance = distance.map(|distance| DraftDistance { nodes: nodes(), ..distance });
    Ok((draft.finish()?, told))
}

fn whole(value: &Node, low: u64, high: u64) -> Result<u64, DescriptionError> {
    whole_by(value, low, high, RULE)
}

/// A list of CPUs such as "0-3,8", all of them among `all`.
pub(super) fn set(value: &Node, all: &CpuMask) -> Result<CpuMask, DescriptionError> {
    let Some(text) = value.as_str() else {
        return Err(value.error(&value.kind(), "a list of CPUs such as \"0-3,8\"", RULE));
    };
    let wrong = |column: u32, found: String, expected: String| {
        let at = inside(value, text, Some(column));
        Err(DescriptionError { at, found, expected, rule: RULE.to_string() })
    };
    let cpus = match parse_list(text) {
        Ok(cpus) => cpus,
        Err(e) => return wrong(e.column, e.found, e.expected),
    };
    let outside = cpus.iter().find(|&cpu| !all.contains(cpu));
    match outside {
        None => Ok(cpus),
        Some(cpu) => wrong(1, format!("CPU {cpu}"), format!("CPUs among {}", all.list())),
    }
}

/// The place of the text's character `column`; the place of the text if escapes make its columns differ from the
/// file's.
fn inside(value: &Node, text: &str, column: Option<u32>) -> Location {
    let at = value.at();
    let plain = value.span.len() == text.len() + 2;
    let column = at.column.zip(column.filter(|_| plain)).map(|(start, column)| start + column);
    Location { column: column.or(at.column), ..at }
}

fn sets(table: &Table, name: &str, all: &CpuMask) -> Result<Vec<(CpuMask, Location)>, DescriptionError> {
    let values = table.array(name, "an array of lists of CPUs such as [\"0-3\", \"4-7\"]")?.unwrap_or_default();
    values.iter().map(|value| Ok((set(value, all)?, value.at()))).collect()
}

fn read_caches(table: &Table, draft: &mut Draft) -> Result<(), DescriptionError> {
    for value in table.array("caches", "an array of tables")?.unwrap_or_default() {
        let cache = table.as_table("caches", value)?;
        cache.only(&["level", "kind", "bytes", "cpus"], "a cache has a level, a kind, bytes and cpus")?;
        let Some(level) = cache.get("level") else {
            return Err(cache.error("a cache without level", "level = 1, 2 or 3", RULE));
        };
        let level = whole_by(level, 1, u64::from(MOST_CACHE_LEVEL), RULE_LEVEL)? as u8;
        let kind = match cache.string("kind", RULE)? {
            "unified" => CacheKind::Unified,
            "data" => CacheKind::Data,
            "instruction" => CacheKind::Instruction,
            _ => {
                let at = cache.get("kind").unwrap_or(value);
                return Err(at.error(&at.kind(), "unified, data or instruction", RULE));
            }
        };
        let bytes = cache.get("bytes").map(|bytes| whole(bytes, 1, MOST_CACHE_BYTES)).transpose()?;
        for (cpus, at) in sets(&cache, "cpus", &draft.cpus)? {
            draft.caches.push(DraftCache { level, kind, bytes, cpus, at });
        }
    }
    Ok(())
}

/// `kinds` and `capacity`: names and capacities, each with its CPUs, which must be among `all`.
#[allow(clippy::type_complexity)]
fn read_kinds(table: &Table, all: &CpuMask) -> Result<(Vec<CpuKind>, Vec<(CpuMask, u32)>), DescriptionError> {
    let (mut kinds, mut capacities) = (Vec::new(), Vec::new());
    let cpus_of = |inner: &Table| match inner.get("cpus") {
        Some(cpus) => set(cpus, all),
        None => Err(inner.error("an entry without cpus", "cpus = \"0-3\"", RULE)),
    };
    let mut of_kind = CpuMask::default();
    for value in table.array("kinds", "an array of tables")?.unwrap_or_default() {
        let kind = table.as_table("kinds", value)?;
        kind.only(&["name", "cpus"], "a kind has a name and cpus")?;
        let name = one_line(&kind, "name", RULE_KINDS)?;
        if kinds.iter().any(|other: &CpuKind| other.name == name) {
            let found = format!("the kind `{}` for the second time", excerpt(name, 60));
            return Err(kind.get("name").unwrap_or(value).error(&found, "each kind once", RULE_KINDS));
        }
        // Dots separate the parts of figures' names: kind.NAME.speed.
        if name.contains('.') {
            let found = format!("the kind `{}`", excerpt(name, 60));
            return Err(kind.get("name").unwrap_or(value).error(&found, "a name without dots", RULE_KINDS));
        }
        let cpus = cpus_of(&kind)?;
        once(&kind, &cpus, &mut of_kind, "kinds", RULE_KINDS)?;
        kinds.push(CpuKind::new(name, cpus));
    }
    let mut of_capacity = CpuMask::default();
    for value in table.array("capacity", "an array of tables")?.unwrap_or_default() {
        let capacity = table.as_table("capacity", value)?;
        capacity.only(&["value", "cpus"], "a capacity has a value and cpus")?;
        let cpus = cpus_of(&capacity)?;
        let Some(amount) = capacity.get("value") else {
            return Err(capacity.error("a capacity without value", "value = 1 to 1024", RULE));
        };
        once(&capacity, &cpus, &mut of_capacity, "entries of capacity", RULE_CAPACITY)?;
        capacities.push((cpus, whole(amount, 1, u64::from(SCHED_CAPACITY_SCALE))? as u32));
    }
    let most = capacities.iter().map(|&(_, capacity)| capacity).max().unwrap_or(SCHED_CAPACITY_SCALE);
    if most < SCHED_CAPACITY_SCALE
        && all.is_subset(&of_capacity)
        && let Some(value) = table.get("capacity")
    {
        let found = format!("a largest capacity of {most}");
        return Err(value.error(&found, "1024 for the biggest CPUs; those that are not listed have it", RULE_BIGGEST));
    }
    Ok((kinds, capacities))
}

/// Requires that none of an entry's CPUs is in an entry `before`, and adds them to those.
fn once(entry: &Table, cpus: &CpuMask, before: &mut CpuMask, what: &str, rule: &str) -> Result<(), DescriptionError> {
    if let Some(cpu) = cpus.iter().find(|&cpu| before.contains(cpu)) {
        let found = format!("CPU {cpu} in two {what}");
        let expected = format!("each CPU in one of the {what} at most");
        return Err(entry
            .get("cpus")
            .map_or_else(|| entry.error(&found, &expected, rule), |value| value.error(&found, &expected, rule)));
    }
    before.or_with(cpus);
    Ok(())
}

/// A text of one or more lines, without other control characters.
pub(super) fn lines<'t>(table: &Table<'t, '_>, name: &str, rule: &str) -> Result<&'t str, DescriptionError> {
    let text = table.string(name, rule)?;
    let control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    match (text.replace("\r\n", "\n").contains(control), table.get(name)) {
        (true, Some(value)) => Err(value.error(&value.kind(), "no control characters but ends of lines", rule)),
        _ => Ok(text),
    }
}

/// A name that fits on one line of output.
pub(super) fn one_line<'t>(table: &Table<'t, '_>, name: &str, rule: &str) -> Result<&'t str, DescriptionError> {
    let text = table.string(name, rule)?;
    match (text.contains(char::is_control), table.get(name)) {
        (true, Some(value)) => Err(value.error(&value.kind(), "no ends of lines or other control characters", rule)),
        _ => Ok(text),
    }
}
