//! How far apart two CPUs are, in the classes that machine files have prices for.

use super::{Cpu, Node};

/// The nearest thing that two CPUs share. Ordered from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// The same CPU.
    Same,
    /// Two threads of one core.
    Smt,
    /// Two cores with one level-2 cache, or of one cluster.
    Cluster,
    /// Two cores with one last level cache.
    Llc,
    /// One package, different last level caches (and perhaps NUMA nodes).
    Package,
    /// Different packages. The number counts classes of distance from 1: 1 if the packages' NUMA nodes are at the
    /// machine's smallest distance between packages, 2 at the second smallest, and so on, by the firmware's table of
    /// distances.
    Remote(u8),
}

impl Distance {
    /// 0 for [`Distance::Same`] and counting up: an index for tables of prices.
    pub fn index(self) -> usize {
        match self {
            Distance::Same => 0,
            Distance::Smt => 1,
            Distance::Cluster => 2,
            Distance::Llc => 3,
            Distance::Package => 4,
            Distance::Remote(hops) => 4 + hops as usize,
        }
    }

    /// The inverse of [`Distance::index`].
    pub fn from_index(index: usize) -> Distance {
        match index {
            0 => Distance::Same,
            1 => Distance::Smt,
            2 => Distance::Cluster,
            3 => Distance::Llc,
            4 => Distance::Package,
            _ => Distance::Remote(u8::try_from(index - 4).unwrap_or(u8::MAX)),
        }
    }

    /// The name in machine files: `smt`, `llc`, `remote_2` ...
    pub fn name(self) -> String {
        match self {
            Distance::Same => "same".to_string(),
            Distance::Smt => "smt".to_string(),
            Distance::Cluster => "cluster".to_string(),
            Distance::Llc => "llc".to_string(),
            Distance::Package => "package".to_string(),
            Distance::Remote(hops) => format!("remote_{hops}"),
        }
    }
}

/// Classes of distance between packages, `[from * nodes + to]`: the rank, from 1, of the nodes' distance among all
/// distances between CPUs of different packages; 0 for two nodes without such CPUs. Ranks end at 255.
pub(super) fn remote_hops(cpus: &[Cpu], nodes: &[Node], distance: &[Vec<u32>]) -> Vec<u8> {
    // For each node its package, if all its CPUs are in one: so two nodes can be recognised as parts of one package.
    let mut packages: Vec<(Option<u16>, bool)> = vec![(None, false); nodes.len()];
    for cpu in cpus {
        let (first, several) = &mut packages[cpu.node as usize];
        *several |= first.is_some_and(|package| package != cpu.package);
        *first = Some(cpu.package);
    }
    let apart = |a: usize, b: usize| match (packages[a], packages[b]) {
        ((Some(first), several), (Some(second), other_several)) => first != second || several || other_several,
        _ => false,
    };
    let pairs = || (0..nodes.len()).flat_map(|a| (0..nodes.len()).map(move |b| (a, b)));
    let mut ranks: Vec<u32> = pairs().filter(|&(a, b)| apart(a, b)).map(|(a, b)| distance[a][b]).collect();
    ranks.sort_unstable();
    ranks.dedup();
    // A memory-only node has no CPUs whose distance could count: it gets the rank of the nearest class that is not
    // below its distance, or a rank beyond all classes.
    let rank = |value: u32| u8::try_from(ranks.partition_point(|&r| r < value) + 1).unwrap_or(u8::MAX);
    let memory_only = |node: usize| packages[node].0.is_none();
    pairs()
        .map(|(a, b)| {
            let remote = apart(a, b) || (memory_only(b) && a != b);
            if remote { rank(distance[a][b]) } else { 0 }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_and_names_go_both_ways_and_in_order() {
        let all: Vec<Distance> = (0..8).map(Distance::from_index).collect();
        assert!(all.is_sorted());
        assert!(all.iter().enumerate().all(|(index, distance)| distance.index() == index));
        assert_eq!(all[6].name(), "remote_2");
    }
}
