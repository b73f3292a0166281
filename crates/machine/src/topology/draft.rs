//! What the readers collect, in the machine's own numbers, and the checks that turn it into a [`Topology`].

use super::distance::remote_hops;
use super::nesting::Division;
use super::{Cache, CacheKind, Cpu, CpuKind, Location, MAX_NUMNODES, Node, Part, Topology, TopologyError};
use sched::cpu_topology::{LOCAL_DISTANCE, RECLAIM_DISTANCE, REMOTE_DISTANCE, SCHED_CAPACITY_SCALE};
use std::collections::BTreeMap;
use units::{Capacity, CpuId, CpuMask, NR_CPUS};

/// No cache is larger than this: a terabyte.
pub(crate) const MOST_CACHE_BYTES: u64 = 1 << 40;

/// hwloc's deepest level of caches.
pub(crate) const MOST_CACHE_LEVEL: u8 = 5;

/// The largest distance in the firmware's table for a node that can be reached.
const MAX_DISTANCE: u32 = 254;

#[derive(Clone, Debug)]
pub(crate) struct DraftPart {
    pub os_index: Option<u32>,
    pub cpus: CpuMask,
    pub at: Location,
}

#[derive(Clone, Debug)]
pub(crate) struct DraftCache {
    pub level: u8,
    pub kind: CacheKind,
    pub bytes: Option<u64>,
    pub cpus: CpuMask,
    pub at: Location,
}

#[derive(Clone, Debug)]
pub(crate) struct DraftNode {
    pub os_index: u32,
    /// The CPUs near this memory; for CPUs near several nodes see [`Draft::finish`].
    pub cpus: CpuMask,
    pub memory_bytes: Option<u64>,
    pub at: Location,
}

/// A machine that is being read. All CPU sets are in the machine's own numbers, which may have gaps.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// What error messages about the input as a whole call it.
    pub at: Location,
    pub cpus: CpuMask,
    pub cores: Vec<DraftPart>,
    /// What the machine itself calls clusters; if empty, shared level-2 caches take their place.
    pub clusters: Vec<DraftPart>,
    pub dies: Vec<DraftPart>,
    pub packages: Vec<DraftPart>,
    pub caches: Vec<DraftCache>,
    pub nodes: Vec<DraftNode>,
    pub kinds: Vec<(CpuKind, Location)>,
    pub capacity: BTreeMap<CpuId, Capacity>,
    /// Distances between NUMA nodes: the nodes' numbers, then a row for each, all in that order.
    pub distance: Option<DraftDistance>,
    /// Whether it was written by hand. Then contradictions are errors; a real machine's data is accepted as far as it
    /// is consistent.
    pub by_hand: bool,
    pub notices: Vec<String>,
    /// The machine's number of each CPU, by its final number; filled by [`Draft::finish`].
    numbers: Vec<CpuId>,
}

#[derive(Clone, Debug)]
pub(crate) struct DraftDistance {
    pub nodes: Vec<u32>,
    pub rows: Vec<Vec<u64>>,
    pub at: Location,
}

impl Draft {
    pub fn new(input: &str) -> Draft {
        Draft {
            at: Location::of(input),
            cpus: CpuMask::default(),
            cores: Vec::new(),
            clusters: Vec::new(),
            dies: Vec::new(),
            packages: Vec::new(),
            caches: Vec::new(),
            nodes: Vec::new(),
            kinds: Vec::new(),
            capacity: BTreeMap::new(),
            distance: None,
            by_hand: false,
            notices: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Adds one CPU by its number on the machine.
    pub fn add_cpu(&mut self, os_index: u64, at: &Location) -> Result<CpuId, TopologyError> {
        if os_index >= NR_CPUS as u64 {
            let expected = format!("at most {NR_CPUS} CPUs, numbered from 0 to {}", NR_CPUS - 1);
            return Err(TopologyError::new(at.clone(), format!("CPU number {os_index}"), expected));
        }
        let cpu = CpuId::new(os_index as usize);
        if self.cpus.contains(cpu) {
            let found = format!("CPU number {os_index} for the second time");
            return Err(TopologyError::new(at.clone(), found, "each CPU once"));
        }
        self.cpus.set(cpu);
        Ok(cpu)
    }

    /// Adds a kind of CPUs by the machine's name for it, if there is one. A name that another kind has is numbered.
    /// Dots, which separate the names of figures (`kind.NAME.speed`), become underscores.
    pub fn add_kind(&mut self, name: &str, kind: CpuKind, at: Location) {
        let name = match name.replace('.', "_") {
            blank if blank.trim().is_empty() => format!("kind {}", self.kinds.len()),
            name => name,
        };
        let known = |name: &String| self.kinds.iter().any(|(kind, _)| kind.name == *name);
        let numbered = (2..).map(|number| format!("{name} {number}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(|name| !known(name)).expect("numbers go on");
        self.kinds.push((CpuKind { name, ..kind }, at));
    }

    /// Checks what was read, and renumbers it. Assumptions: a CPU in no core is a core by itself; without packages each
    /// NUMA node is one; a CPU near several NUMA nodes belongs to the one with the fewest CPUs, then to the lowest
    /// number, and the others count as memory-only; without NUMA nodes there is one; without distances all other nodes
    /// are at distance 20.
    pub fn finish(mut self) -> Result<Topology, TopologyError> {
        if self.cpus.is_empty() {
            return Err(TopologyError::new(self.at.clone(), "no CPUs", "at least one"));
        }
        self.require_disjoint()?;
        if let Some(cache) = self.caches.iter().find(|cache| cache.bytes.is_some_and(|bytes| bytes > MOST_CACHE_BYTES))
        {
            let found = format!("a level-{} cache of {} bytes", cache.level, cache.bytes.unwrap_or_default());
            return Err(TopologyError::new(cache.at.clone(), found, "at most 1 TiB"));
        }
        self.renumber();
        self.scale_capacities();
        let nr_cpus = self.numbers.len();

        let (nodes, node_of) = self.place_nodes(nr_cpus)?;
        let (cores, core_of) = self.place_cores(nr_cpus);
        let (packages, package_of) = self.place_packages(nr_cpus, &nodes)?;
        let core_masks: Vec<CpuMask> = cores.iter().map(|core| core.cpus.clone()).collect();
        self.require_whole("core", &core_masks, "packages", &package_of)?;
        self.require_whole("core", &core_masks, "NUMA nodes", &node_of)?;
        let package_masks: Vec<CpuMask> = packages.iter().map(|package| package.cpus.clone()).collect();
        let whole = Division { sets: &core_masks, of: &core_of };
        self.require_nested(&whole, &Division { sets: &package_masks, of: &package_of })?;
        let caches = self.sorted_caches();
        let clusters = self.place_clusters(&core_masks, &caches);
        self.require_whole("cluster", &clusters, "packages", &package_of)?;
        let llcs = self.place_llcs(&clusters, &caches, &packages, &package_of, &node_of);
        let dies = sorted_parts(&self.dies);
        let distances_told = self.distance.is_some() && nodes.len() > 1;
        let distance = node_distances(self.distance.take(), &nodes, &mut self.notices)?;
        self.notices.extend(odd_distances(&distance).into_iter().filter(|_| !self.by_hand));

        let cluster_of = index_of(&clusters, nr_cpus);
        let llc_of = index_of(&llcs, nr_cpus);
        let cpus: Vec<Cpu> = (0..nr_cpus)
            .map(|cpu| (cpu, self.capacity.get(&CpuId::new(cpu)).copied().unwrap_or(SCHED_CAPACITY_SCALE)))
            .map(|(cpu, capacity)| Cpu {
                os_index: u32::from(self.numbers[cpu].0),
                core: core_of[cpu],
                cluster: cluster_of[cpu],
                llc: llc_of[cpu],
                package: package_of[cpu],
                node: node_of[cpu],
                thread: core_masks[core_of[cpu] as usize].iter().take_while(|other| other.index() < cpu).count() as u16,
                capacity,
                speed: capacity,
                highest_perf: None,
            })
            .collect();
        let kinds = self.kinds.into_iter().map(|(kind, _)| kind).filter(|kind| !kind.cpus.is_empty()).collect();
        let hops = remote_hops(&cpus, &nodes, &distance);
        let notices = self.notices;
        Ok(Topology {
            cpus,
            cores,
            clusters,
            llcs,
            dies,
            packages,
            nodes,
            caches,
            kinds,
            distance,
            distances_told,
            hops,
            notices,
            energy_model: None,
            node_reclaim_distance: RECLAIM_DISTANCE,
        })
    }

    /// Requires that no CPU is in two parts of the same sort.
    fn require_disjoint(&self) -> Result<(), TopologyError> {
        let sets =
            |parts: &[DraftPart]| parts.iter().map(|part| (part.cpus.clone(), part.at.clone())).collect::<Vec<_>>();
        for (what, parts) in
            [("core", &self.cores), ("cluster", &self.clusters), ("die", &self.dies), ("package", &self.packages)]
        {
            disjoint(what, &sets(parts))?;
        }
        if self.by_hand {
            let nodes = self.nodes.iter().map(|node| (node.cpus.clone(), node.at.clone()));
            disjoint("NUMA node", &nodes.collect::<Vec<_>>())?;
        }
        let kinds = self.kinds.iter().map(|(kind, at)| (kind.cpus.clone(), at.clone()));
        disjoint("kind", &kinds.collect::<Vec<_>>())?;
        let mut kinds: Vec<(u8, CacheKind)> = self.caches.iter().map(|cache| (cache.level, cache.kind)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for (level, kind) in kinds {
            let same = self.caches.iter().filter(|cache| (cache.level, cache.kind) == (level, kind));
            let same: Vec<(CpuMask, Location)> = same.map(|cache| (cache.cpus.clone(), cache.at.clone())).collect();
            disjoint(&format!("level-{level} cache"), &same)?;
        }
        Ok(())
    }

    /// Changes all sets to numbers without gaps.
    fn renumber(&mut self) {
        let old: Vec<CpuId> = self.cpus.iter().collect();
        if old.iter().enumerate().any(|(new, cpu)| cpu.index() != new) {
            let numbers = format!("CPUs {} are numbered 0-{} here", self.cpus.list(), old.len() - 1);
            self.notices.push(numbers);
        }
        let mut new_of = vec![None; NR_CPUS];
        for (new, cpu) in old.iter().enumerate() {
            new_of[cpu.index()] = Some(CpuId::new(new));
        }
        let renumber = |mask: &mut CpuMask| *mask = mask.iter().filter_map(|cpu| new_of[cpu.index()]).collect();
        for parts in [&mut self.cores, &mut self.clusters, &mut self.dies, &mut self.packages] {
            parts.iter_mut().for_each(|part| renumber(&mut part.cpus));
            parts.retain(|part| !part.cpus.is_empty());
        }
        self.caches.iter_mut().for_each(|cache| renumber(&mut cache.cpus));
        self.caches.retain(|cache| !cache.cpus.is_empty());
        self.nodes.iter_mut().for_each(|node| renumber(&mut node.cpus));
        self.kinds.iter_mut().for_each(|(kind, _)| renumber(&mut kind.cpus));
        let capacity = std::mem::take(&mut self.capacity);
        self.capacity = capacity.into_iter().filter_map(|(cpu, value)| Some((new_of[cpu.index()]?, value))).collect();
        self.cpus = CpuMask::all(old.len());
        self.numbers = old;
    }

    /// Scales capacities so that the biggest CPUs have 1024. Linux scales over all possible CPUs, so the biggest may be
    /// offline.
    fn scale_capacities(&mut self) {
        let most = self.cpus.iter().map(|cpu| self.capacity.get(&cpu).copied().unwrap_or(SCHED_CAPACITY_SCALE)).max();
        let Some(most) = most.filter(|&most| most < SCHED_CAPACITY_SCALE && !self.by_hand) else { return };
        for capacity in self.capacity.values_mut() {
            *capacity = ((*capacity * SCHED_CAPACITY_SCALE + most / 2) / most).max(1);
        }
        self.notices.push(format!("capacities are scaled from {most} to {SCHED_CAPACITY_SCALE} for the biggest CPUs"));
    }

    fn place_nodes(&mut self, nr_cpus: usize) -> Result<(Vec<Node>, Vec<u16>), TopologyError> {
        if self.nodes.is_empty() {
            let cpus = self.cpus.clone();
            self.nodes.push(DraftNode { os_index: 0, cpus, memory_bytes: None, at: self.at.clone() });
        }
        self.nodes.sort_by_key(|node| node.os_index);
        if let Some(twice) = self.nodes.windows(2).find(|pair| pair[0].os_index == pair[1].os_index) {
            let found =
                format!("NUMA node {} for the second time (the first is at {})", twice[1].os_index, twice[0].at);
            return Err(TopologyError::new(twice[1].at.clone(), found, "each NUMA node once"));
        }
        if self.nodes.len() > MAX_NUMNODES {
            let found = format!("{} NUMA nodes", self.nodes.len());
            let first_too_many = self.nodes[MAX_NUMNODES].at.clone();
            return Err(TopologyError::new(first_too_many, found, format!("at most {MAX_NUMNODES}")));
        }
        if self.nodes.iter().enumerate().any(|(new, node)| node.os_index as usize != new) {
            let numbers: Vec<String> = self.nodes.iter().map(|node| node.os_index.to_string()).collect();
            self.notices.push(format!("NUMA nodes {} are numbered 0-{} here", numbers.join(","), numbers.len() - 1));
        }
        let mut by_size: Vec<usize> = (0..self.nodes.len()).collect();
        by_size.sort_by_key(|&node| (self.nodes[node].cpus.weight(), node));
        let mut node_of = vec![None; nr_cpus];
        for node in by_size {
            for cpu in self.nodes[node].cpus.iter() {
                node_of[cpu.index()].get_or_insert(node as u16);
            }
        }
        let mut nodes: Vec<Node> = self
            .nodes
            .iter()
            .map(|node| Node { os_index: node.os_index, cpus: CpuMask::default(), memory_bytes: node.memory_bytes })
            .collect();
        let mut homes = Vec::with_capacity(nr_cpus);
        for (cpu, node) in node_of.into_iter().enumerate() {
            let Some(node) = node else {
                let found = format!("CPU {} in no NUMA node", self.numbers[cpu]);
                return Err(TopologyError::new(self.at.clone(), found, "every CPU in a NUMA node"));
            };
            nodes[node as usize].cpus.set(CpuId::new(cpu));
            homes.push(node);
        }
        Ok((nodes, homes))
    }

    fn place_cores(&mut self, nr_cpus: usize) -> (Vec<Part>, Vec<u16>) {
        let mut cores = sorted_parts(&self.cores);
        let mut alone = self.cpus.clone();
        cores.iter().flat_map(|core| core.cpus.iter()).for_each(|cpu| alone.clear(cpu));
        if self.by_hand && !cores.is_empty() && !alone.is_empty() {
            self.notices
                .push(format!("CPUs {} are in no core, though others are: each is taken for one", alone.list()));
        }
        cores.extend(alone.iter().map(|cpu| Part { os_index: None, cpus: CpuMask::single(cpu) }));
        cores.sort_by_key(|core| core.cpus.first());
        let masks: Vec<CpuMask> = cores.iter().map(|core| core.cpus.clone()).collect();
        (cores, index_of(&masks, nr_cpus))
    }

    fn place_packages(&mut self, nr_cpus: usize, nodes: &[Node]) -> Result<(Vec<Part>, Vec<u16>), TopologyError> {
        let mut packages = sorted_parts(&self.packages);
        if packages.is_empty() {
            let with_cpus = nodes.iter().filter(|node| !node.cpus.is_empty());
            packages = with_cpus.map(|node| Part { os_index: None, cpus: node.cpus.clone() }).collect();
            packages.sort_by_key(|package| package.cpus.first());
            if packages.len() > 1 {
                self.notices.push("no packages are given: each NUMA node is taken as one".to_string());
            }
        }
        let mut outside = self.cpus.clone();
        packages.iter().flat_map(|package| package.cpus.iter()).for_each(|cpu| outside.clear(cpu));
        if let Some(cpu) = outside.first() {
            let found = format!("CPU {} in no package, though others are in one", self.numbers[cpu.index()]);
            return Err(TopologyError::new(self.at.clone(), found, "every CPU in a package"));
        }
        let masks: Vec<CpuMask> = packages.iter().map(|package| package.cpus.clone()).collect();
        Ok((packages, index_of(&masks, nr_cpus)))
    }

    /// Requires that none of `parts` is cut by the division `part_of`.
    fn require_whole(&self, what: &str, parts: &[CpuMask], of: &str, part_of: &[u16]) -> Result<(), TopologyError> {
        for cpus in parts {
            let mut homes = cpus.iter().map(|cpu| (cpu, part_of[cpu.index()]));
            let Some((first, home)) = homes.next() else { continue };
            if let Some((cpu, _)) = homes.find(|&(_, other)| other != home) {
                let (first, cpu) = (self.numbers[first.index()], self.numbers[cpu.index()]);
                let found = format!("CPUs {first} and {cpu} in one {what}, but in two {of}");
                let at = self.cores.iter().chain(&self.clusters).find(|part| part.cpus == *cpus);
                let at = at.map_or(&self.at, |part| &part.at).clone();
                return Err(TopologyError::new(at, found, format!("a {what} inside one of the {of}")));
            }
        }
        Ok(())
    }

    /// The machine's own number of a CPU.
    pub(super) fn number(&self, cpu: CpuId) -> CpuId {
        self.numbers[cpu.index()]
    }

    /// In the order of levels, so that outer caches come later.
    fn sorted_caches(&self) -> Vec<Cache> {
        let plain = |cache: &DraftCache| Cache {
            level: cache.level,
            kind: cache.kind,
            bytes: cache.bytes,
            cpus: cache.cpus.clone(),
        };
        let mut caches: Vec<Cache> = self.caches.iter().map(plain).collect();
        caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        caches
    }

    fn place_clusters(&self, cores: &[CpuMask], caches: &[Cache]) -> Vec<CpuMask> {
        let clusters: Vec<&CpuMask> = if self.clusters.is_empty() {
            let level_2 = |cache: &&Cache| cache.level == 2 && cache.kind != CacheKind::Instruction;
            caches.iter().filter(level_2).map(|cache| &cache.cpus).collect()
        } else {
            self.clusters.iter().map(|cluster| &cluster.cpus).collect()
        };
        let mut home: Vec<Option<usize>> = vec![None; self.numbers.len()];
        for (index, cluster) in clusters.iter().enumerate() {
            cluster.iter().for_each(|cpu| home[cpu.index()] = Some(index));
        }
        coarsen(cores, |first| home[first.index()])
    }

    fn place_llcs(
        &mut self,
        clusters: &[CpuMask],
        caches: &[Cache],
        packages: &[Part],
        package_of: &[u16],
        node_of: &[u16],
    ) -> Vec<CpuMask> {
        let mut home: Vec<Option<usize>> = vec![None; node_of.len()];
        // In ascending order of levels, so that the outermost cache wins.
        for (index, cache) in caches.iter().enumerate().filter(|(_, cache)| cache.kind != CacheKind::Instruction) {
            let Some(first) = cache.cpus.first() else { continue };
            if cache.cpus.is_subset(&packages[package_of[first.index()] as usize].cpus) {
                cache.cpus.iter().for_each(|cpu| home[cpu.index()] = Some(index));
            }
        }
        if home.iter().any(Option::is_none) {
            let text = "no cache is given for some CPUs: those of a package and NUMA node are taken to share one";
            self.notices.push(text.to_string());
        }
        // Keys: indices of caches come first, then pairs of package and node.
        coarsen(clusters, |first| {
            let (package, node) = (package_of[first.index()] as usize, node_of[first.index()] as usize);
            Some(home[first.index()].unwrap_or(caches.len() + package * MAX_NUMNODES + node))
        })
    }
}

/// `[from][to]`, by the final numbers of `nodes`.
pub(super) fn node_distances(
    given: Option<DraftDistance>,
    nodes: &[Node],
    notices: &mut Vec<String>,
) -> Result<Vec<Vec<u32>>, TopologyError> {
    let default = |from, to| if from == to { LOCAL_DISTANCE } else { REMOTE_DISTANCE };
    let table = |of: &dyn Fn(usize, usize) -> u32| {
        (0..nodes.len()).map(|from| (0..nodes.len()).map(|to| of(from, to)).collect()).collect::<Vec<Vec<u32>>>()
    };
    let Some(given) = given.filter(|_| nodes.len() > 1) else {
        return Ok(table(&default));
    };
    let wrong = |found: String, expected: &str| Err(TopologyError::new(given.at.clone(), found, expected));
    let n = given.nodes.len();
    if given.rows.len() != n || given.rows.iter().any(|row| row.len() != n) {
        let shape: Vec<String> = given.rows.iter().map(|row| row.len().to_string()).collect();
        let rows = if shape.len() == 1 { "1 row" } else { &format!("{} rows", shape.len()) };
        return wrong(format!("{rows} of {} distances", shape.join(", ")), &format!("{n} rows of {n}"));
    }
    let mut place = Vec::new();
    for node in nodes {
        let mut at = given.nodes.iter().enumerate().filter(|&(_, &os_index)| os_index == node.os_index);
        match (at.next(), at.next()) {
            (Some((index, _)), None) => place.push(index),
            (None, _) => return wrong(format!("no distances for NUMA node {}", node.os_index), "one for every node"),
            (Some(_), Some(_)) => return wrong(format!("two rows for NUMA node {}", node.os_index), "one row"),
        }
    }
    // hwloc's first XML format may give distances as multiples of the local one.
    let local = given.rows[place[0]][place[0]];
    let scaled = |value: u64| match local {
        0 => None,
        _ => value.checked_mul(u64::from(LOCAL_DISTANCE)).map(|v| (v + local / 2) / local),
    };
    for (from, node) in nodes.iter().enumerate() {
        for (to, other) in nodes.iter().enumerate() {
            let raw = given.rows[place[from]][place[to]];
            let fits = scaled(raw).is_some_and(|v| (u64::from(LOCAL_DISTANCE)..=u64::from(MAX_DISTANCE)).contains(&v));
            // For a memory-only node's distance to itself firmware may give anything.
            if !fits || (from == to && raw != local && !node.cpus.is_empty()) {
                let found = format!("distance {raw} from NUMA node {} to {}", node.os_index, other.os_index);
                let expected =
                    format!("{LOCAL_DISTANCE} for a node and itself, {LOCAL_DISTANCE} to {MAX_DISTANCE} else");
                return wrong(found, &expected);
            }
        }
    }
    if local != u64::from(LOCAL_DISTANCE) {
        notices.push(format!("distances are scaled from {local} to {LOCAL_DISTANCE} for the local one"));
    }
    Ok(table(&|from, to| scaled(given.rows[place[from]][place[to]]).map_or(REMOTE_DISTANCE, |v| v as u32)))
}

/// Oddities that no table accepted by Linux has, but that a computer may report.
fn odd_distances(distance: &[Vec<u32>]) -> Vec<String> {
    let pairs = || (0..distance.len()).flat_map(|to| (0..to).map(move |from| (from, to)));
    let both = |(from, to): (usize, usize)| (from, to, distance[from][to], distance[to][from]);
    let one_way = pairs().map(both).find(|(_, _, there, back)| there != back);
    let near = pairs().map(both).find(|&(_, _, there, back)| there.min(back) == LOCAL_DISTANCE);
    let one_way = one_way.map(|(from, to, there, back)| {
        format!("distances are not the same both ways: {there} from NUMA node {from} to {to}, and {back} back")
    });
    let near = near.map(|(from, to, ..)| {
        format!(
            "NUMA nodes {from} and {to} are {LOCAL_DISTANCE} apart, as a node is from itself: Linux takes no such table from firmware \
             (slit_valid()), but makes such nodes with numa=fake"
        )
    });
    one_way.into_iter().chain(near).collect()
}

fn sorted_parts(of: &[DraftPart]) -> Vec<Part> {
    let mut parts: Vec<Part> =
        of.iter().map(|part| Part { os_index: part.os_index, cpus: part.cpus.clone() }).collect();
    parts.sort_by_key(|part| part.cpus.first());
    parts
}

/// Requires that no two of the sets share a CPU.
fn disjoint(what: &str, parts: &[(CpuMask, Location)]) -> Result<(), TopologyError> {
    let mut home: Vec<Option<usize>> = vec![None; NR_CPUS];
    for (index, (cpus, at)) in parts.iter().enumerate() {
        for cpu in cpus.iter() {
            if let Some(other) = home[cpu.index()].replace(index) {
                let found = format!("CPU {cpu} in two {what}s (the other is at {})", parts[other].1);
                return Err(TopologyError::new(at.clone(), found, format!("each CPU in one {what}")));
            }
        }
    }
    Ok(())
}

/// Joins those sets of a division whose first CPUs have the same key; sets without a key stay separate.
fn coarsen(finer: &[CpuMask], key: impl Fn(CpuId) -> Option<usize>) -> Vec<CpuMask> {
    let mut place: BTreeMap<usize, usize> = BTreeMap::new();
    let mut joined: Vec<CpuMask> = Vec::new();
    for cpus in finer {
        let at = cpus.first().and_then(&key).map(|key| *place.entry(key).or_insert(joined.len()));
        match at {
            Some(at) if at < joined.len() => joined[at].or_with(cpus),
            _ => joined.push(cpus.clone()),
        }
    }
    joined
}

fn index_of(parts: &[CpuMask], nr_cpus: usize) -> Vec<u16> {
    let mut index = vec![0; nr_cpus];
    for (at, cpus) in parts.iter().enumerate() {
        cpus.iter().for_each(|cpu| index[cpu.index()] = at as u16);
    }
    index
}
