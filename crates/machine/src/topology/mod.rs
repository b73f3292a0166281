//! Which CPUs a machine has and what they share.
//!
//! A [`Topology`] is read from hwloc XML ([`from_hwloc_xml`]), hwloc's synthetic notation ([`from_synthetic`]) or a
//! sysfs tree ([`from_sysfs`]); each reader takes text and returns a value. The parts are kept as sets of CPUs and not
//! as one tree, because on real machines they overlap: NUMA nodes may split a last level cache or contain several.
//!
//! CPUs and NUMA nodes are renumbered to `0..n` without gaps, in the order of their numbers on the machine (offline
//! CPUs are left out). [`Cpu::os_index`] keeps the machine's number, and [`Topology::notices`] reports the renumbering.
//! A number that is given twice is an error.

mod cpulist;
mod decimal;
mod distance;
mod draft;
mod error;
mod hwloc_distances;
mod hwloc_xml;
mod nesting;
mod synthetic;
mod synthetic_indexes;
mod sysfs;
#[cfg(test)]
mod tests;

pub use cpulist::{SetError, parse_list, parse_mask};
pub use decimal::{Decimal, DecimalError};
pub use distance::Distance;
pub(crate) use error::Lines;
pub use error::{Location, TopologyError, excerpt, line_and_column};
pub use hwloc_xml::{from_hwloc_xml, processor_of_hwloc_xml};
pub use synthetic::from_synthetic;
pub use sysfs::from_sysfs;

pub(crate) use draft::{Draft, DraftCache, DraftDistance, DraftNode, DraftPart, MOST_CACHE_BYTES, MOST_CACHE_LEVEL};

use sched::cpu_topology::{CpuTopology, EnergyModel};
use units::{Capacity, CpuId, CpuMask, PerCpu};

/// Linux's largest number of NUMA nodes (CONFIG_NODES_SHIFT is at most 10).
pub const MAX_NUMNODES: usize = 1024;

/// One hardware thread: what it is part of, as indices into the lists of [`Topology`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The number that it has on the machine from which it was read.
    pub os_index: u32,
    pub core: u16,
    pub cluster: u16,
    pub llc: u16,
    pub package: u16,
    pub node: u16,
    /// 0 for the first thread of its core, 1 for the second ...
    pub thread: u16,
    /// 1024 = the biggest CPU. This is what the scheduler is told.
    pub capacity: Capacity,
    /// How much work it does in a given time at its highest frequency, alone on its core; 1024 = the biggest CPU. It is
    /// the capacity, unless a machine file knows better.
    pub speed: Capacity,
    /// The highest performance that firmware reports for it, if it does: Linux ranks cores by it.
    pub highest_perf: Option<u32>,
}

/// A package, die or core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number on the machine, if it has one; unique only within the part that contains it.
    pub os_index: Option<u32>,
    pub cpus: CpuMask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheKind {
    Unified,
    Data,
    Instruction,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    pub level: u8,
    pub kind: CacheKind,
    /// Size in bytes, if known.
    pub bytes: Option<u64>,
    pub cpus: CpuMask,
}

/// A NUMA node; its index in [`Topology::nodes`] is its number for the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub os_index: u32,
    /// Empty for a memory-only node.
    pub cpus: CpuMask,
    pub memory_bytes: Option<u64>,
}

/// No clock is faster: 20 GHz.
pub(crate) const MOST_HERTZ: u64 = 20_000_000_000;

/// Whether two figures differ by more than a tenth of the larger one. The tenth is a guess: cores of one kind, some of
/// them favoured, differ by less, cores of several kinds by more (5.2 and 3.9 GHz, machines/core-i9-12900k.toml).
pub(crate) fn apart(one: u64, other: u64) -> bool {
    one.min(other) * 10 < one.max(other) * 9
}

/// CPUs of one design, on machines that mix several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuKind {
    pub name: String,
    pub cpus: CpuMask,
    /// The highest frequency of the fastest of them in Hz, if the computer reports it.
    pub max_hertz: Option<u64>,
    /// The highest performance of the best of them, on the scale that firmware (CPPC) and Intel's driver share, if the
    /// computer reports it.
    pub highest_perf: Option<u32>,
}

impl CpuKind {
    /// A kind of which nothing else is known.
    pub fn new(name: &str, cpus: CpuMask) -> CpuKind {
        CpuKind { name: name.to_string(), cpus, max_hertz: None, highest_perf: None }
    }
}

/// The order in which a machine numbers its CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Linux on x86: the first threads of all cores, then all second threads.
    LinuxX86,
    /// As in the input; hwloc's synthetic notation numbers depth first, so siblings are neighbours.
    AsListed,
}

/// A machine's CPUs and what they share. For numbering see the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) cores: Vec<Part>,
    pub(crate) clusters: Vec<CpuMask>,
    pub(crate) llcs: Vec<CpuMask>,
    pub(crate) dies: Vec<Part>,
    pub(crate) packages: Vec<Part>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) caches: Vec<Cache>,
    pub(crate) kinds: Vec<CpuKind>,
    /// `[from][to]`, 10 = local.
    pub(crate) distance: Vec<Vec<u32>>,
    /// Whether the input gives the distances; otherwise they are Linux's default.
    pub(crate) distances_told: bool,
    /// `[from * nodes + to]`, see [`Distance::Remote`]; 0 for two nodes without CPUs in different packages.
    pub(crate) hops: Vec<u8>,
    pub(crate) notices: Vec<String>,
    /// What running costs, if the machine file says so.
    pub(crate) energy_model: Option<EnergyModel>,
    /// The distance that Linux sets for such processors from v5.4 on.
    pub(crate) node_reclaim_distance: u32,
}

impl Topology {
    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    pub fn cpu(&self, cpu: CpuId) -> &Cpu {
        &self.cpus[cpu.index()]
    }

    pub fn cpus(&self) -> impl Iterator<Item = (CpuId, &Cpu)> {
        self.cpus.iter().enumerate().map(|(index, cpu)| (CpuId::new(index), cpu))
    }

    pub fn cores(&self) -> &[Part] {
        &self.cores
    }

    /// Cores that share a level-2 cache, or what the machine itself calls a cluster; single cores if neither is known.
    pub fn clusters(&self) -> &[CpuMask] {
        &self.clusters
    }

    /// CPUs that share a last level cache: the outermost cache that does not extend beyond its package. If no cache is
    /// known, a package's CPUs of one NUMA node.
    pub fn llcs(&self) -> &[CpuMask] {
        &self.llcs
    }

    /// Empty if the input has none.
    pub fn dies(&self) -> &[Part] {
        &self.dies
    }

    pub fn packages(&self) -> &[Part] {
        &self.packages
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn caches(&self) -> &[Cache] {
        &self.caches
    }

    /// Whether the scheduler is told the same capacity for all CPUs.
    pub fn has_one_capacity(&self) -> bool {
        self.cpus.iter().all(|cpu| cpu.capacity == self.cpus[0].capacity)
    }

    /// Empty on machines with one kind.
    pub fn kinds(&self) -> &[CpuKind] {
        &self.kinds
    }

    /// What was assumed or left out while reading, for the user to see.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Bytes of the data or unified cache of this level that `cpu` uses, if the input gives them.
    pub fn cache_bytes(&self, cpu: CpuId, level: u8) -> Option<u64> {
        let of =
            |cache: &&Cache| cache.level == level && cache.kind != CacheKind::Instruction && cache.cpus.contains(cpu);
        self.caches.iter().find(of).and_then(|cache| cache.bytes)
    }

    /// How many cores share that cache.
    pub fn cores_of_cache(&self, cpu: CpuId, level: u8) -> u64 {
        let of =
            |cache: &&Cache| cache.level == level && cache.kind != CacheKind::Instruction && cache.cpus.contains(cpu);
        let uses = |cache: &Cache| self.cores.iter().filter(|core| core.cpus.intersects(&cache.cpus)).count() as u64;
        self.caches.iter().find(of).map_or(1, uses).max(1)
    }

    /// The first of the CPUs with the highest capacity.
    pub fn biggest_cpu(&self) -> CpuId {
        let cpus = (0..self.nr_cpus()).map(CpuId::new);
        cpus.rev().max_by_key(|&cpu| self.cpu(cpu).capacity).unwrap_or(CpuId(0))
    }

    /// Bytes of `cpu`'s last level cache, if the input gives them.
    pub fn llc_bytes(&self, cpu: CpuId) -> Option<u64> {
        let llc = &self.llcs[self.cpu(cpu).llc as usize];
        let of =
            |cache: &&Cache| cache.kind != CacheKind::Instruction && cache.cpus.contains(cpu) && cache.cpus == *llc;
        self.caches.iter().filter(of).max_by_key(|cache| cache.level).and_then(|cache| cache.bytes)
    }

    /// The distance between two NUMA nodes, by their indices; 10 = local.
    pub fn node_distance(&self, from: u16, to: u16) -> u32 {
        self.distance[from as usize][to as usize]
    }

    /// How far a cache line travels from CPU `from` to CPU `to`. It takes only a few array reads.
    #[inline]
    pub fn distance(&self, from: CpuId, to: CpuId) -> Distance {
        if from == to {
            return Distance::Same;
        }
        let (a, b) = (&self.cpus[from.index()], &self.cpus[to.index()]);
        if a.llc == b.llc {
            if a.core == b.core {
                Distance::Smt
            } else if a.cluster == b.cluster {
                Distance::Cluster
            } else {
                Distance::Llc
            }
        } else if a.package == b.package {
            Distance::Package
        } else {
            Distance::Remote(self.hops[a.node as usize * self.nodes.len() + b.node as usize])
        }
    }

    /// How far the memory of NUMA node `node` is from `cpu`: [`Distance::Same`] for the CPU's own node,
    /// [`Distance::Package`] for another node of its package, [`Distance::Remote`] beyond.
    pub fn memory_distance(&self, cpu: CpuId, node: u16) -> Distance {
        let from = self.cpu(cpu);
        if from.node == node {
            return Distance::Same;
        }
        match self.nodes[node as usize].cpus.first() {
            Some(neighbour) if self.cpu(neighbour).package == from.package => Distance::Package,
            // A memory-only node is as far as the nearest package whose distance in the table is not shorter, or
            // farther than all.
            _ => Distance::Remote(self.hops[from.node as usize * self.nodes.len() + node as usize].max(1)),
        }
    }

    /// The distances that occur between CPUs of this machine, nearest first.
    pub fn distances(&self) -> Vec<Distance> {
        let mut found = vec![Distance::Same];
        let joins = |finer: usize, coarser: usize| finer > coarser;
        if joins(self.cpus.len(), self.cores.len()) {
            found.push(Distance::Smt);
        }
        if joins(self.cores.len(), self.clusters.len()) {
            found.push(Distance::Cluster);
        }
        if joins(self.clusters.len(), self.llcs.len()) {
            found.push(Distance::Llc);
        }
        if joins(self.llcs.len(), self.packages.len()) {
            found.push(Distance::Package);
        }
        let with_cpus: Vec<usize> = (0..self.nodes.len()).filter(|&node| !self.nodes[node].cpus.is_empty()).collect();
        let hops = |&from: &usize| with_cpus.iter().map(move |to| self.hops[from * self.nodes.len() + to]);
        let farthest = with_cpus.iter().flat_map(hops).max().unwrap_or(0);
        found.extend((1..=farthest).map(Distance::Remote));
        found
    }

    /// The distances of memory that occur, nearest first: that of a CPU's own node, then others.
    pub fn memory_distances(&self) -> Vec<Distance> {
        let mut found = Vec::new();
        for (cpu, _) in self.cpus() {
            for node in 0..self.nodes.len() as u16 {
                let distance = self.memory_distance(cpu, node);
                if !found.contains(&distance) {
                    found.push(distance);
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// What the architecture code tells kernel/sched about these CPUs.
    pub fn cpu_topology(&self) -> CpuTopology {
        let nr_cpus = self.nr_cpus();
        let masks = |of: &dyn Fn(&Cpu) -> CpuMask| PerCpu::from_fn(nr_cpus, |cpu| of(self.cpu(cpu)));
        CpuTopology {
            nr_cpus,
            smt: masks(&|cpu| self.cores[cpu.core as usize].cpus.clone()),
            cluster: masks(&|cpu| self.clusters[cpu.cluster as usize].clone()),
            coregroup: masks(&|cpu| self.llcs[cpu.llc as usize].clone()),
            llc_bytes: PerCpu::from_fn(nr_cpus, |cpu| self.llc_bytes(cpu).unwrap_or(0)),
            package: masks(&|cpu| self.packages[cpu.package as usize].cpus.clone()),
            node: PerCpu::from_fn(nr_cpus, |cpu| self.cpu(cpu).node),
            distance: self.distance.clone(),
            node_reclaim_distance: self.node_reclaim_distance,
            capacity: PerCpu::from_fn(nr_cpus, |cpu| self.cpu(cpu).capacity),
            energy_model: self.energy_model.clone(),
            highest_perf: self.highest_perf(),
            hybrid: self
                .kinds
                .iter()
                .filter(|kind| kind.cpus.iter().all(|cpu| self.cpu(cpu).highest_perf.is_some()))
                .count()
                > 1,
        }
    }

    /// The highest performance of each CPU, if all have one.
    fn highest_perf(&self) -> Option<PerCpu<u32>> {
        let told: Option<Vec<u32>> = self.cpus.iter().map(|cpu| cpu.highest_perf).collect();
        told.map(|told| PerCpu::from_fn(told.len(), |cpu| told[cpu.index()]))
    }

    /// The same machine, with this capacity for some CPUs (1024 is the biggest CPU's). Unchecked.
    pub fn with_capacity(mut self, cpus: &CpuMask, capacity: u32) -> Topology {
        for cpu in cpus.iter() {
            let cpu = &mut self.cpus[cpu.index()];
            (cpu.capacity, cpu.speed) = (capacity, capacity);
        }
        self
    }

    /// The same machine, with this speed for some CPUs, whatever capacity the scheduler is told.
    pub(crate) fn with_speed(mut self, cpus: &CpuMask, speed: Capacity) -> Topology {
        cpus.iter().for_each(|cpu| self.cpus[cpu.index()].speed = speed);
        self
    }

    /// The same machine with processors for which Linux reclaims memory of nodes up to this distance.
    pub(crate) fn with_node_reclaim_distance(self, node_reclaim_distance: u32) -> Topology {
        Topology { node_reclaim_distance, ..self }
    }

    /// The same machine, with this highest performance for some CPUs. Unchecked.
    pub fn with_highest_perf(mut self, cpus: &CpuMask, highest_perf: u32) -> Topology {
        cpus.iter().for_each(|cpu| self.cpus[cpu.index()].highest_perf = Some(highest_perf));
        self
    }

    /// The same machine with `count` more memory-only NUMA nodes, at
    /// [`REMOTE_DISTANCE`](sched::cpu_topology::REMOTE_DISTANCE) from all others.
    pub(crate) fn with_memory_nodes(mut self, count: usize) -> Result<Topology, TopologyError> {
        for _ in 0..count {
            let os_index = self.nodes.len() as u32;
            self.nodes.push(Node { os_index, cpus: CpuMask::default(), memory_bytes: None });
        }
        self.distance = draft::node_distances(None, &self.nodes, &mut self.notices)?;
        self.distances_told = false;
        self.hops = distance::remote_hops(&self.cpus, &self.nodes, &self.distance);
        Ok(self)
    }

    pub fn energy_model(&self) -> Option<&EnergyModel> {
        self.energy_model.as_ref()
    }

    /// The same machine with a model of what running costs on each CPU.
    pub fn with_energy_model(self, model: EnergyModel) -> Topology {
        Topology { energy_model: Some(model), ..self }
    }

    /// The same machine with another table of distances; its rows are in the order of `table.nodes`.
    pub(crate) fn with_distances(mut self, table: DraftDistance) -> Result<Topology, TopologyError> {
        self.distance = draft::node_distances(Some(table), &self.nodes, &mut self.notices)?;
        self.distances_told = self.nodes.len() > 1;
        self.hops = distance::remote_hops(&self.cpus, &self.nodes, &self.distance);
        Ok(self)
    }

    /// The distances in the table between two different nodes, each once, in ascending order.
    pub fn node_distances(&self) -> Vec<u32> {
        let others = |(from, row): (usize, &Vec<u32>)| {
            let others = row.iter().enumerate().filter(|&(to, _)| to != from);
            others.map(|(_, &distance)| distance).collect::<Vec<u32>>()
        };
        let mut found: Vec<u32> = self.distance.iter().enumerate().flat_map(others).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The same machine, with distance `to` in the table wherever it has `from`.
    pub(crate) fn with_node_distance(mut self, from: u32, to: u32) -> Topology {
        for (node, row) in self.distance.iter_mut().enumerate() {
            let others = row.iter_mut().enumerate().filter(|(other, distance)| *other != node && **distance == from);
            others.for_each(|(_, distance)| *distance = to);
        }
        self.distances_told = true;
        self.hops = distance::remote_hops(&self.cpus, &self.nodes, &self.distance);
        self
    }

    /// The same machine with its CPUs in another order; [`Cpu::os_index`] becomes the new number.
    pub fn numbered(self, numbering: Numbering) -> Topology {
        match numbering {
            Numbering::AsListed => self,
            Numbering::LinuxX86 => {
                let mut order: Vec<CpuId> = self.cpus().map(|(cpu, _)| cpu).collect();
                order.sort_by_key(|&cpu| (self.cpu(cpu).thread, cpu));
                self.reordered(&order)
            }
        }
    }

    /// `order[new] = old`.
    fn reordered(mut self, order: &[CpuId]) -> Topology {
        let mut new_of = vec![CpuId::default(); order.len()];
        for (new, old) in order.iter().enumerate() {
            new_of[old.index()] = CpuId::new(new);
        }
        let renumber = |mask: &mut CpuMask| *mask = mask.iter().map(|old| new_of[old.index()]).collect();
        for part in self.cores.iter_mut().chain(&mut self.dies).chain(&mut self.packages) {
            renumber(&mut part.cpus);
        }
        self.clusters.iter_mut().chain(&mut self.llcs).for_each(renumber);
        self.nodes.iter_mut().for_each(|node| renumber(&mut node.cpus));
        self.caches.iter_mut().for_each(|cache| renumber(&mut cache.cpus));
        self.kinds.iter_mut().for_each(|kind| renumber(&mut kind.cpus));
        self.energy_model.iter_mut().flat_map(|m| &mut m.domains).for_each(|domain| renumber(&mut domain.cpus));
        let renumbered = |(new, old): (usize, &CpuId)| Cpu { os_index: new as u32, ..self.cpus[old.index()].clone() };
        self.cpus = order.iter().enumerate().map(renumbered).collect();
        self
    }

    /// One line: `2 packages, 2 NUMA nodes, 2 last level caches, 24 cores, 48 CPUs`.
    pub fn summary(&self) -> String {
        let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        [
            count(self.packages.len(), "package", "packages"),
            count(self.nodes.len(), "NUMA node", "NUMA nodes"),
            count(self.llcs.len(), "last level cache", "last level caches"),
            count(self.cores.len(), "core", "cores"),
            count(self.cpus.len(), "CPU", "CPUs"),
        ]
        .join(", ")
    }
}
