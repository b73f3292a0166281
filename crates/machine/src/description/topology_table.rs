//! `[topology]` in a machine file: hwloc's synthetic notation, or lists of CPUs for machines that are not symmetric.

use super::Fact;
use super::error::DescriptionError;
use super::figure::How;
use super::read::read_how;
use super::toml_text::{Node, Table};
use crate::topology::{
    CacheKind, CpuKind, Draft, DraftCache, DraftDistance, DraftNode, DraftPart, Location, MOST_CACHE_BYTES, Numbering,
    Topology, from_synthetic, parse_list,
};
use units::{CpuId, CpuMask};

const RULE: &str = "a topology is whole and without contradictions";
const RULE_SYMMETRY: &str = "distances are symmetric";
const RULE_SOURCE: &str = "a topology names its source, as every number does";
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

/// The topology and where it is from.
pub(super) fn read_topology(table: &Table) -> Result<(Topology, Fact), DescriptionError> {
    let synthetic = table.get("synthetic").is_some();
    table.only(if synthetic { SYNTHETIC } else { LISTED }, "a topology is synthetic or listed, in known names")?;
    let source = table.string("source", RULE_SOURCE)?.to_string();
    let how = read_how(table)?;
    let topology = if synthetic { read_synthetic(table)? } else { read_listed(table)? };
    let value = if synthetic { table.string("synthetic", RULE)?.to_string() } else { topology.summary() };
    Ok((topology, Fact { value, source, how }))
}

fn read_synthetic(table: &Table) -> Result<Topology, DescriptionError> {
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
    topology.kinds = kinds.into_iter().map(|(name, cpus)| CpuKind { name, cpus }).collect();
    for (cpus, value) in capacity {
        topology = topology.with_capacity(&cpus, value);
    }
    match read_distances(table)? {
        None => Ok(topology),
        Some(distance) => {
            let nodes = topology.nodes().len() as u32;
            Ok(topology.with_distances(DraftDistance { nodes: (0..nodes).collect(), ..distance })?)
        }
    }
}

fn read_listed(table: &Table) -> Result<Topology, DescriptionError> {
    let mut draft = Draft::new(table.source.file);
    draft.at = table.source.at(table.span.start);
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
    draft.kinds = kinds;
    for (cpus, value) in capacity {
        draft.capacity.extend(cpus.iter().map(|cpu: CpuId| (cpu, value)));
    }
    if let Some(distance) = read_distances(table)? {
        let nodes = (0..draft.nodes.len().max(1) as u32).collect();
        draft.distance = Some(DraftDistance { nodes, ..distance });
    }
    Ok(draft.finish()?)
}

fn whole(value: &Node, low: u64, high: u64) -> Result<u64, DescriptionError> {
    match value.number_text().and_then(|text| text.replace('_', "").parse::<u64>().ok()) {
        Some(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(value.error(&value.kind(), &format!("a whole number from {low} to {high}"), RULE)),
    }
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

/// The place of a text's character `column`; that of the text where escapes make it differ from what is written.
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
        let level = whole(level, 1, 9)? as u8;
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

/// `kinds` and `capacity`: names and capacities, each with its CPUs, which are among `all`.
#[allow(clippy::type_complexity)]
fn read_kinds(table: &Table, all: &CpuMask) -> Result<(Vec<(String, CpuMask)>, Vec<(CpuMask, u32)>), DescriptionError> {
    let (mut kinds, mut capacities) = (Vec::new(), Vec::new());
    let cpus_of = |inner: &Table| match inner.get("cpus") {
        Some(cpus) => set(cpus, all),
        None => Err(inner.error("an entry without cpus", "cpus = \"0-3\"", RULE)),
    };
    for value in table.array("kinds", "an array of tables")?.unwrap_or_default() {
        let kind = table.as_table("kinds", value)?;
        kind.only(&["name", "cpus"], "a kind has a name and cpus")?;
        let cpus = cpus_of(&kind)?;
        kinds.push((kind.string("name", RULE)?.to_string(), cpus));
    }
    for value in table.array("capacity", "an array of tables")?.unwrap_or_default() {
        let capacity = table.as_table("capacity", value)?;
        capacity.only(&["value", "cpus"], "a capacity has a value and cpus")?;
        let cpus = cpus_of(&capacity)?;
        let Some(amount) = capacity.get("value") else {
            return Err(capacity.error("a capacity without value", "value = 1 to 1024", RULE));
        };
        capacities.push((cpus, whole(amount, 1, 1024)? as u32));
    }
    Ok((kinds, capacities))
}

/// `distances = { rows = [[10, 21], [21, 10]], source, how, range }`; the range is for other nodes than the own. The
/// nodes are left for the caller to fill in.
fn read_distances(table: &Table) -> Result<Option<DraftDistance>, DescriptionError> {
    let Some(inner) = table.table("distances")? else { return Ok(None) };
    inner.only(
        &["rows", "asymmetric", "source", "how", "range"],
        "distances have rows, a source, how and a range, and say so if they are asymmetric",
    )?;
    inner.string("source", RULE_SOURCE)?;
    read_how(&inner)?;
    let expected = "rows = [[10, 21], [21, 10]]";
    let Some(rows) = inner.array("rows", expected)? else {
        return Err(inner.error("distances without rows", expected, RULE));
    };
    let range = inner.array("range", "range = [lowest, highest]")?.unwrap_or_default();
    let range: Vec<u64> = range.iter().map(|value| whole(value, 10, 254)).collect::<Result<_, _>>()?;
    let [low, high] = range[..] else {
        return Err(inner.error("distances without a range", "range = [lowest, highest]", "every number has a range"));
    };
    let mut numbers = Vec::new();
    for (from, row) in rows.iter().enumerate() {
        let Some(values) = row.as_array() else {
            return Err(row.error(&row.kind(), expected, RULE));
        };
        let mut line = Vec::new();
        for (to, value) in values.iter().enumerate() {
            let (low, high) = if from == to { (10, 10) } else { (low, high) };
            line.push(whole(value, low, high)?);
        }
        numbers.push(line);
    }
    let asymmetric = match inner.get("asymmetric") {
        None => false,
        Some(value) => {
            let rule = "asymmetric is true or left out";
            value.as_bool().ok_or_else(|| value.error(&value.kind(), "true", rule))?
        }
    };
    if !asymmetric {
        require_symmetry(rows, &numbers)?;
    }
    let at = inner.source.at(inner.span.start);
    Ok(Some(DraftDistance { nodes: Vec::new(), rows: numbers, at }))
}

/// That it is as far from one node to another as back. Rows of the wrong length are told elsewhere.
fn require_symmetry(rows: &[Node], numbers: &[Vec<u64>]) -> Result<(), DescriptionError> {
    for (from, line) in numbers.iter().enumerate() {
        for (to, &there) in line.iter().enumerate().take(from) {
            let back = numbers[to].get(from).copied().unwrap_or(there);
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

/// Where a topology that a user brought is from.
pub(super) fn users_topology(topology: &Topology) -> Fact {
    Fact { value: topology.summary(), source: "the user's input".to_string(), how: How::Vendor }
}
