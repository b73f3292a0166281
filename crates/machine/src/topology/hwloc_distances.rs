//! Distances between NUMA nodes in hwloc's XML.
//!
//! Formats 2 and 3 have `<distances2>` beside the objects: the nodes' numbers and a row of distances for each. Format 1
//! has `<distances>` inside the object whose descendants it describes, as multiples of `latency_base`, in the order of
//! the file; only matrices over all NUMA nodes are read. Other matrices (bandwidths, GPUs, user-made) are ignored.

use super::decimal::Decimal;
use super::draft::DraftDistance;
use super::error::excerpt;
use super::hwloc_xml::Reader;
use super::{MAX_NUMNODES, TopologyError};
use roxmltree::Node as XmlNode;
use sched::cpu_topology::LOCAL_DISTANCE;

/// `HWLOC_DISTANCES_KIND_FROM_OS` and `HWLOC_DISTANCES_KIND_MEANS_LATENCY` (2.x), `.._VALUE_LATENCY` (3.x).
const FROM_OS: u64 = 1;
const LATENCY: u64 = 4;

pub(super) fn read_distances(
    reader: &mut Reader,
    root: XmlNode,
    version: u32,
) -> Result<Option<DraftDistance>, TopologyError> {
    if version == 1 {
        return read_version_1(reader, root);
    }
    let mut best: Option<(XmlNode, (bool, bool))> = None;
    for node in root.children().filter(|child| child.has_tag_name("distances2")) {
        let kind = reader.number(node, "kind")?.unwrap_or(0);
        if node.attribute("type") != Some("NUMANode") || kind & LATENCY == 0 {
            continue;
        }
        // Linux's own table is preferred, then other tables from the system, then those that a user added; among equals
        // the first.
        let trust = (node.attribute("name") == Some("NUMALatency"), kind & FROM_OS != 0);
        if best.is_none_or(|(_, other)| trust > other) {
            best = Some((node, trust));
        }
    }
    match best {
        Some((node, _)) => matrix(reader, root, node).map(Some),
        None => Ok(None),
    }
}

fn matrix(reader: &Reader, root: XmlNode, node: XmlNode) -> Result<DraftDistance, TopologyError> {
    let n = match reader.number(node, "nbobjs")? {
        Some(n) if (1..=MAX_NUMNODES as u64).contains(&n) => n as usize,
        other => {
            let found = other.map_or("distances without nbobjs".to_string(), |n| format!("nbobjs=\"{n}\""));
            return reader.wrong(node, found, &format!("from 1 to {MAX_NUMNODES} NUMA nodes"));
        }
    };
    let indexes = numbers(reader, node, "indexes", n)?;
    let values = numbers(reader, node, "u64values", n * n)?;
    let nodes = if node.attribute("indexing") == Some("gp") {
        let numa = |object: &XmlNode| object.attribute("type") == Some("NUMANode");
        let objects: Vec<(Option<u64>, Option<u64>)> = root
            .descendants()
            .filter(numa)
            .map(|object| Ok((reader.number(object, "gp_index")?, reader.number(object, "os_index")?)))
            .collect::<Result<_, TopologyError>>()?;
        let by_gp = |gp: &u64| objects.iter().find(|(index, _)| *index == Some(*gp)).and_then(|(_, os)| *os);
        indexes.iter().map(by_gp).collect::<Option<Vec<u64>>>()
    } else {
        Some(indexes)
    };
    let nodes = nodes.and_then(|nodes| nodes.into_iter().map(|node| u32::try_from(node).ok()).collect());
    let Some(nodes) = nodes else {
        return reader.wrong(node, "distances of unknown NUMA nodes".to_string(), "indexes of this file's NUMA nodes");
    };
    Ok(DraftDistance { nodes, rows: values.chunks(n).map(<[u64]>::to_vec).collect(), at: reader.at(node) })
}

/// All numbers in the children with tag `tag`. There must be `count` of them.
fn numbers(reader: &Reader, node: XmlNode, tag: &str, count: usize) -> Result<Vec<u64>, TopologyError> {
    let mut all = Vec::new();
    for child in node.children().filter(|child| child.has_tag_name(tag)) {
        for word in child.text().unwrap_or_default().split_whitespace() {
            match word.parse() {
                Ok(number) => all.push(number),
                Err(_) => {
                    let found = format!("`{}` among the {tag}", excerpt(word, 24));
                    return reader.wrong(child, found, "whole numbers");
                }
            }
        }
    }
    if all.len() != count {
        return reader.wrong(node, format!("{} {tag}", all.len()), &format!("{count}, as nbobjs says"));
    }
    Ok(all)
}

fn is_numa(object: &XmlNode) -> bool {
    object.has_tag_name("object") && object.attribute("type") == Some("NUMANode")
}

fn first_object<'a, 'input>(of: XmlNode<'a, 'input>) -> Option<XmlNode<'a, 'input>> {
    of.children().find(|child| child.has_tag_name("object"))
}

/// Among the matrices of the root object, the one over all `count` NUMA nodes.
fn matrix_of_version_1<'a, 'input>(root: XmlNode<'a, 'input>, count: usize) -> Option<XmlNode<'a, 'input>> {
    let machine = first_object(root)?;
    let wanted = count.to_string();
    let of_all = |node: &XmlNode| {
        count > 0 && node.has_tag_name("distances") && node.attribute("nbobjs") == Some(wanted.as_str())
    };
    // The matrix names its objects by their depth only: descends that many objects and looks.
    let over_nodes = |node: &XmlNode| {
        let depth = node.attribute("relative_depth").and_then(|depth| depth.parse().ok()).unwrap_or(0);
        let mut at = Some(machine);
        (0..depth).for_each(|_: u8| at = at.and_then(first_object));
        at.as_ref().is_some_and(is_numa)
    };
    // When hwloc 2 writes this format it counts one level too many. Then a firmware's table can be recognised by its
    // local distance.
    let from_firmware = |node: &XmlNode| {
        let base = node.attribute("latency_base").and_then(|base| Decimal::parse(base).ok());
        let first = node.children().find(|child| child.has_tag_name("latency"));
        let local = first.and_then(|latency| Decimal::parse(latency.attribute("value")?).ok());
        base.zip(local).and_then(|(base, local)| local.times_rounded(base)) == Some(u64::from(LOCAL_DISTANCE))
    };
    let matrices = || machine.children().filter(of_all);
    matrices().find(over_nodes).or_else(|| matrices().find(from_firmware))
}

fn read_version_1(reader: &mut Reader, root: XmlNode) -> Result<Option<DraftDistance>, TopologyError> {
    let nodes: Vec<u64> = root
        .descendants()
        .filter(is_numa)
        .filter_map(|object| reader.number(object, "os_index").transpose())
        .collect::<Result<_, TopologyError>>()?;
    let Some(node) = matrix_of_version_1(root, nodes.len()) else { return Ok(None) };
    let decimal = |of: XmlNode, name: &str| match of.attribute(name).map(|text| (text, Decimal::parse(text))) {
        Some((_, Ok(number))) => Ok(number),
        Some((text, Err(_))) => {
            reader.wrong(of, format!("{name}=\"{}\"", excerpt(text, 24)), "a decimal number, 0 or more")
        }
        None => reader.wrong(of, format!("<{}> without {name}", of.tag_name().name()), "one"),
    };
    let base = decimal(node, "latency_base")?;
    let mut values = Vec::new();
    for latency in node.children().filter(|child| child.has_tag_name("latency")) {
        let value = decimal(latency, "value")?;
        match value.times_rounded(base) {
            Some(distance) => values.push(distance),
            None => return reader.wrong(latency, "a latency that is too large".to_string(), "a firmware's distance"),
        }
    }
    let n = nodes.len();
    if values.len() != n * n {
        return reader.wrong(node, format!("{} latencies", values.len()), &format!("{} for {n} nodes", n * n));
    }
    let nodes = nodes.into_iter().map(|node| u32::try_from(node).unwrap_or(u32::MAX)).collect();
    Ok(Some(DraftDistance { nodes, rows: values.chunks(n).map(<[u64]>::to_vec).collect(), at: reader.at(node) }))
}
