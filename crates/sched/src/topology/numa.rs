//! topology.c: the NUMA part: turns distances into levels, each with one mask per node.

use super::DomainWarning;
use super::flags::SdFlags;
use super::levels::{DomainName, Level};
use super::masks::{MaskId, Masks};
use super::rules::{DomainRules, NodeLevel, NumaDistances, NumaType};
use crate::cpu_topology::{CpuTopology, LOCAL_DISTANCE};
use std::collections::BTreeSet;
use units::{CpuMask, PerCpu};

/// Distances fit a byte (DISTANCE_BITS).
const NR_DISTANCE_VALUES: u32 = 256;

/// sched.h: enum numa_topology_type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NumaTopologyType {
    /// All nodes are one hop apart, or there is one.
    #[default]
    Direct,
    /// Some nodes are reached through others, on which tasks could run too.
    GluelessMesh,
    /// Some nodes are reached through a controller without CPUs.
    Backplane,
}

/// The result of sched_init_numa().
#[derive(Clone, Debug, Default)]
pub struct NumaTopology {
    /// Distinct distances in ascending order. From v4.15 on they include that of a node to itself.
    pub sched_domains_numa_distance: Vec<u32>,
    /// `[level][node]`: the CPUs that are at most that level's distance away from the node.
    pub sched_domains_numa_masks: Vec<Vec<MaskId>>,
    pub sched_max_numa_distance: u32,
    pub sched_numa_topology_type: NumaTopologyType,
    local_distance: u32,
}

impl NumaTopology {
    /// topology.c: find_numa_distance(). Whether a level has this distance.
    pub fn find_numa_distance(&self, distance: u32) -> bool {
        distance == self.local_distance || self.sched_domains_numa_distance.contains(&distance)
    }
}

/// topology.c: sched_init_numa(). Appends the NUMA levels to `levels`.
///
/// `nodes` are the online CPUs of each node.
pub(super) fn sched_init_numa(
    topology: &CpuTopology,
    nodes: &[CpuMask],
    rules: &DomainRules,
    sched_debug: bool,
    masks: &mut Masks,
    levels: &mut Vec<Level>,
    warnings: &mut Vec<DomainWarning>,
) -> NumaTopology {
    let mut numa = NumaTopology { local_distance: topology.node_distance(0, 0), ..NumaTopology::default() };
    let counted = |node: usize| match rules.numa_distances {
        NumaDistances::FromNode0 | NumaDistances::BetweenNodes => true,
        NumaDistances::BetweenCpuNodes => !nodes[node].is_empty(),
    };
    let counted = (0..nodes.len()).filter(|&node| counted(node)).collect::<Vec<_>>();
    let mut distances = match rules.numa_distances {
        NumaDistances::FromNode0 => distances_from_node_0(topology, sched_debug),
        NumaDistances::BetweenNodes | NumaDistances::BetweenCpuNodes => distances_between(topology, &counted, warnings),
    };
    let first_numa = match rules.node_level {
        NodeLevel::Absent => {
            distances.drain(..1.min(distances.len()));
            0
        }
        NodeLevel::Present => 1,
    };
    let Some(&max_distance) = distances.last() else {
        return numa;
    };

    for &distance in &distances {
        let mask_of_node = |from: usize| {
            let mut mask = CpuMask::default();
            for &to in counted.iter().filter(|&&to| topology.distance[from][to] <= distance) {
                mask.or_with(&nodes[to]);
            }
            mask
        };
        numa.sched_domains_numa_masks.push((0..nodes.len()).map(|node| masks.intern(mask_of_node(node))).collect());
    }
    for (numa_level, of_nodes) in numa.sched_domains_numa_masks.iter().enumerate() {
        let identity = numa_level < first_numa;
        levels.push(Level {
            name: if identity { DomainName::Node } else { DomainName::Numa },
            mask: PerCpu::from_fn(topology.nr_cpus, |cpu| of_nodes[topology.node[cpu] as usize]),
            sd_flags: if identity { SdFlags::NONE } else { SdFlags::SD_NUMA },
            overlap: !identity,
            numa_level,
        });
    }
    numa.sched_domains_numa_distance = distances;
    numa.sched_max_numa_distance = max_distance;
    numa.sched_numa_topology_type = init_numa_topology_type(topology, &counted, rules, &numa);
    numa
}

/// Distinct distances, that of node 0 to itself first, as a selection sort over node 0's row finds them. With
/// `sched_debug` the sort continues over the other rows and adds what is larger than all before.
fn distances_from_node_0(topology: &CpuTopology, sched_debug: bool) -> Vec<u32> {
    let mut current = topology.node_distance(0, 0);
    let mut found = vec![current];
    let rows = if sched_debug { topology.nr_nodes() } else { 1 };
    for row in &topology.distance[..rows] {
        while let Some(&next) = row.iter().filter(|&&distance| distance > current).min() {
            found.push(next);
            current = next;
        }
    }
    found
}

/// All distances between the counted nodes; none if one of them is invalid.
fn distances_between(topology: &CpuTopology, counted: &[usize], warnings: &mut Vec<DomainWarning>) -> Vec<u32> {
    let mut found = BTreeSet::new();
    for (from, to) in counted.iter().flat_map(|&from| counted.iter().map(move |&to| (from, to))) {
        let distance = topology.distance[from][to];
        if !(LOCAL_DISTANCE..NR_DISTANCE_VALUES).contains(&distance) {
            warnings.push(DomainWarning::InvalidDistance { distance });
            return Vec::new();
        }
        found.insert(distance);
    }
    found.into_iter().collect()
}

/// topology.c: init_numa_topology_type().
fn init_numa_topology_type(
    topology: &CpuTopology,
    counted: &[usize],
    rules: &DomainRules,
    numa: &NumaTopology,
) -> NumaTopologyType {
    let direct_up_to = match rules.numa_type {
        NumaType::OneRemoteDistance | NumaType::LevelsCountedTwice => 1,
        NumaType::OneRemoteDistanceAgain => 2,
    };
    if numa.sched_domains_numa_distance.len() <= direct_up_to {
        return NumaTopologyType::Direct;
    }
    let n = numa.sched_max_numa_distance;
    let distance = |from: usize, to: usize| topology.distance[from][to];
    let furthest =
        counted.iter().flat_map(|&a| counted.iter().map(move |&b| (a, b))).find(|&(a, b)| distance(a, b) >= n);
    match furthest {
        Some((a, b)) if counted.iter().any(|&c| distance(a, c) < n && distance(b, c) < n) => {
            NumaTopologyType::GluelessMesh
        }
        Some(_) => NumaTopologyType::Backplane,
        None => NumaTopologyType::Direct,
    }
}
