//! Reads a sysfs tree: `sys/devices/system/{cpu,node}` of a running machine or of a copy.
//!
//! There are several kinds of CPU if Intel's drivers list them (`sys/devices/cpu_core`, `cpu_atom`, `cpu_lowpower`), or
//! if the highest frequencies reported by cpufreq have a gap of more than a tenth: favoured cores differ by less.
//!
//! The caller reads files; this module only asks for them by relative path, so a directory, an archive or a table in a
//! test will do. Sets are read from the `_list` files or, on old kernels, from their hexadecimal counterparts. CPUs
//! that are not online are left out with a notice.

use super::cpulist::{parse_list, parse_mask};
use super::draft::{Draft, DraftCache, DraftDistance, DraftNode, DraftPart, MOST_CACHE_LEVEL};
use super::error::excerpt;
use super::{CacheKind, CpuKind, Location, MAX_NUMNODES, MOST_HERTZ, Topology, TopologyError, apart};
use sched::cpu_topology::LOCAL_DISTANCE;
use std::collections::BTreeMap;
use units::{CpuId, CpuMask, NR_CPUS};

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";
/// Linux numbers a CPU's caches from 0; no machine has this many.
const MAX_CACHES: usize = 16;

/// Reads the tree through `read`, which returns the content of a file by its path relative to the tree's root, such as
/// `sys/devices/system/cpu/online`, or `None` if there is no such file.
pub fn from_sysfs(read: &dyn Fn(&str) -> Option<String>) -> Result<Topology, TopologyError> {
    let mut reader = Reader { read, draft: Draft::new(CPU), seen: BTreeMap::new() };
    let online = reader.online_cpus()?;
    for cpu in online.iter() {
        let at = Location::of(&format!("{CPU}/cpu{cpu}"));
        reader.draft.add_cpu(u64::from(cpu.0), &at)?;
    }
    for cpu in online.iter() {
        reader.parts(cpu)?;
        reader.caches(cpu)?;
        reader.capacity(cpu)?;
    }
    reader.silent(&online);
    reader.nodes()?;
    reader.kinds()?;
    reader.draft.finish()
}

struct Reader<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    draft: Draft,
    /// The sets that other members have reported, by sort of set and first CPU.
    seen: BTreeMap<(Sort, CpuId), CpuMask>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Core,
    Cluster,
    Die,
    Package,
    Cache(u8, CacheKind),
}

impl Reader<'_> {
    /// The first line of a file; in archived trees padding may follow it.
    fn line(&self, path: &str) -> Option<String> {
        let text = (self.read)(path)?;
        Some(text.split(['\n', '\0']).next().unwrap_or_default().trim().to_string())
    }

    /// Every member of a set reports it again: whether this is the first time. A different set that overlaps counts as
    /// new; the draft finds that error.
    fn is_new(&mut self, sort: Sort, cpus: &CpuMask) -> bool {
        let Some(first) = cpus.first() else { return false };
        let new = self.seen.get(&(sort, first)) != Some(cpus);
        if new {
            self.seen.insert((sort, first), cpus.clone());
        }
        new
    }

    fn wrong<T>(path: &str, column: Option<u32>, found: String, expected: &str) -> Result<T, TopologyError> {
        let at = Location { input: path.to_string(), line: column.map(|_| 1), column };
        Err(TopologyError::new(at, found, expected))
    }

    /// The set in the first of these files that exists, with that file's path. Files named `..list` hold lists, others
    /// masks.
    fn set(&self, paths: &[String]) -> Result<Option<(CpuMask, String)>, TopologyError> {
        for path in paths {
            let Some(text) = self.line(path) else { continue };
            let is_list = path.ends_with("list") || path.ends_with("online") || path.ends_with("present");
            let is_list = is_list || path.ends_with("possible") || path.ends_with("/cpus");
            let parsed = if is_list { parse_list(&text) } else { parse_mask(&text) };
            return match parsed {
                Ok(set) => Ok(Some((set, path.clone()))),
                Err(e) => Reader::wrong(path, Some(e.column), e.found, &e.expected),
            };
        }
        Ok(None)
    }

    fn number(&self, path: &str) -> Result<Option<u64>, TopologyError> {
        let Some(text) = self.line(path) else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            // What the kernel writes for a package or core that it does not know.
            Err(_) if text == "-1" => Ok(None),
            Err(_) => Reader::wrong(path, Some(1), format!("`{}`", excerpt(&text, 24)), "a whole number, 0 or more"),
        }
    }

    fn online_cpus(&mut self) -> Result<CpuMask, TopologyError> {
        let files: Vec<String> = ["online", "present", "possible"].iter().map(|name| format!("{CPU}/{name}")).collect();
        let is_off = |cpu: &CpuId| self.line(&format!("{CPU}/cpu{cpu}/online")).is_some_and(|text| text == "0");
        let listed = match self.set(&files)? {
            Some((set, _)) => set,
            // Kernels before 2.6.26 have no list: looks for each CPU.
            None => (0..NR_CPUS).map(CpuId::new).filter(|cpu| self.has_topology(*cpu)).collect(),
        };
        if listed.is_empty() {
            let found = "no CPUs".to_string();
            return Reader::wrong(&files[0], None, found, "a tree with sys/devices/system/cpu/online");
        }
        let online: CpuMask = listed.iter().filter(|cpu| !is_off(cpu)).collect();
        let present = self.set(&files[1..])?.map_or_else(|| listed.clone(), |(set, _)| set);
        let missing: CpuMask = present.or(&listed).iter().filter(|&cpu| !online.contains(cpu)).collect();
        if !missing.is_empty() {
            self.draft.notices.push(format!("CPUs {} are not online and left out", missing.list()));
        }
        Ok(online)
    }

    fn has_topology(&self, cpu: CpuId) -> bool {
        ["thread_siblings", "thread_siblings_list", "core_id"]
            .iter()
            .any(|name| (self.read)(&format!("{CPU}/cpu{cpu}/topology/{name}")).is_some())
    }

    /// Packages, dies, clusters and cores: what the CPUs report must agree.
    fn parts(&mut self, cpu: CpuId) -> Result<(), TopologyError> {
        let file = |name: &str| format!("{CPU}/cpu{cpu}/topology/{name}");
        let both = |new: &str, old: &str| {
            [format!("{new}_list"), format!("{old}_list"), new.to_string(), old.to_string()].map(|name| file(&name))
        };
        let sorts = [
            (Sort::Core, both("core_cpus", "thread_siblings"), Some("core_id")),
            (Sort::Cluster, both("cluster_cpus", "cluster_cpus"), None),
            (Sort::Die, both("die_cpus", "die_cpus"), Some("die_id")),
            (Sort::Package, both("package_cpus", "core_siblings"), Some("physical_package_id")),
        ];
        for (sort, paths, id) in sorts {
            let Some((cpus, path)) = self.set(&paths)? else { continue };
            let os_index = match id {
                Some(id) => self.number(&file(id))?.and_then(|number| u32::try_from(number).ok()),
                None => None,
            };
            let cpus = self.with_itself(cpu, cpus, &path)?;
            if !self.is_new(sort, &cpus) {
                continue;
            }
            let parts = match sort {
                Sort::Core => &mut self.draft.cores,
                Sort::Cluster => &mut self.draft.clusters,
                Sort::Die => &mut self.draft.dies,
                Sort::Package | Sort::Cache(..) => &mut self.draft.packages,
            };
            parts.push(DraftPart { os_index, cpus, at: Location::of(&path) });
        }
        Ok(())
    }

    /// Adds notices about CPUs that do not report their core, and about those that report nothing.
    fn silent(&mut self, online: &CpuMask) {
        let told = self.draft.cores.iter().fold(CpuMask::default(), |all, core| all.or(&core.cpus));
        let silent: CpuMask = online.iter().filter(|&cpu| !told.contains(cpu)).collect();
        if !silent.is_empty() {
            let notice = format!("CPUs {} do not say what core they are of: each is taken for one", silent.list());
            self.draft.notices.push(notice);
        }
        let gone: CpuMask = online.iter().filter(|&cpu| self.is_nowhere(cpu)).collect();
        if !gone.is_empty() {
            let notice = format!("of CPUs {} the tree has nothing but their numbers, as if it were cut", gone.list());
            self.draft.notices.push(notice);
        }
    }

    /// Whether a CPU has neither places nor caches of its own in the tree.
    fn is_nowhere(&self, cpu: CpuId) -> bool {
        let files = ["topology/physical_package_id", "topology/core_siblings", "cache/index0/level"];
        !self.has_topology(cpu) && files.iter().all(|name| (self.read)(&format!("{CPU}/cpu{cpu}/{name}")).is_none())
    }

    /// The online CPUs of a set, which must contain the CPU that reports it. Old kernels leave sets empty that they do
    /// not know.
    fn with_itself(&self, cpu: CpuId, cpus: CpuMask, path: &str) -> Result<CpuMask, TopologyError> {
        if cpus.is_empty() {
            return Ok(CpuMask::single(cpu));
        }
        if !cpus.contains(cpu) {
            return Reader::wrong(path, None, format!("CPUs {}", cpus.list()), &format!("a set with CPU {cpu} itself"));
        }
        Ok(cpus.and(&self.draft.cpus))
    }

    fn caches(&mut self, cpu: CpuId) -> Result<(), TopologyError> {
        for index in 0..MAX_CACHES {
            let file = |name: &str| format!("{CPU}/cpu{cpu}/cache/index{index}/{name}");
            let Some(level) = self.number(&file("level"))? else { break };
            let level = match u8::try_from(level) {
                Ok(level @ 1..=MOST_CACHE_LEVEL) => level,
                _ => return Reader::wrong(&file("level"), Some(1), format!("`{level}`"), "a level from 1 to 5"),
            };
            let kind = match self.line(&file("type")).as_deref() {
                Some("Unified") | None => CacheKind::Unified,
                Some("Data") => CacheKind::Data,
                Some("Instruction") => CacheKind::Instruction,
                Some(other) => {
                    let found = format!("`{}`", excerpt(other, 24));
                    return Reader::wrong(&file("type"), Some(1), found, "Unified, Data or Instruction");
                }
            };
            let Some((cpus, path)) = self.set(&[file("shared_cpu_list"), file("shared_cpu_map")])? else { continue };
            let cpus = self.with_itself(cpu, cpus, &path)?;
            if self.is_new(Sort::Cache(level, kind), &cpus) {
                let bytes = self.cache_size(&file("size"))?;
                self.draft.caches.push(DraftCache { level, kind, bytes, cpus, at: Location::of(&path) });
            }
        }
        Ok(())
    }

    /// `32K` as Linux writes it; 0 means unknown.
    fn cache_size(&self, path: &str) -> Result<Option<u64>, TopologyError> {
        let Some(text) = self.line(path) else { return Ok(None) };
        let text = text.as_str();
        let (digits, unit) = match text.strip_suffix('K') {
            Some(digits) => (digits, 1 << 10),
            None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
        };
        match digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)) {
            Some(bytes) => Ok(Some(bytes).filter(|&bytes| bytes > 0)),
            None => Reader::wrong(path, Some(1), format!("`{}`", excerpt(text, 24)), "a size such as 32K"),
        }
    }

    fn capacity(&mut self, cpu: CpuId) -> Result<(), TopologyError> {
        let path = format!("{CPU}/cpu{cpu}/cpu_capacity");
        match self.number(&path)? {
            None => {}
            Some(capacity @ 1..=1024) => self.draft.capacity.extend([(cpu, capacity as u32)]),
            Some(other) => return Reader::wrong(&path, Some(1), format!("`{other}`"), "a capacity from 1 to 1024"),
        }
        Ok(())
    }

    fn nodes(&mut self) -> Result<(), TopologyError> {
        let files: Vec<String> = ["online", "possible"].iter().map(|name| format!("{NODE}/{name}")).collect();
        let listed = match self.set(&files)? {
            Some((set, _)) => set,
            None => CpuMask::all(MAX_NUMNODES),
        };
        let mut rows: Vec<(Vec<u64>, String)> = Vec::new();
        for node in listed.iter().map(CpuId::index) {
            let file = |name: &str| format!("{NODE}/node{node}/{name}");
            let Some((cpus, path)) = self.set(&[file("cpulist"), file("cpumap")])? else { continue };
            let cpus = cpus.and(&self.draft.cpus);
            let memory_bytes = (self.read)(&file("meminfo")).and_then(|text| memory_total(&text));
            let at = Location::of(&path);
            self.draft.nodes.push(DraftNode { os_index: node as u32, cpus, memory_bytes, at });
            let path = file("distance");
            let Some(text) = self.line(&path) else { continue };
            let mut row = Vec::new();
            for word in text.split_whitespace() {
                match word.parse() {
                    Ok(distance) => row.push(distance),
                    Err(_) => {
                        let found = format!("`{}`", excerpt(word, 24));
                        return Reader::wrong(&path, Some(1), found, "distances such as 10 21");
                    }
                }
            }
            rows.push((row, path));
        }
        let nodes: Vec<u32> = self.draft.nodes.iter().map(|node| node.os_index).collect();
        if rows.is_empty() {
            return Ok(());
        }
        if let Some((row, path)) = rows.iter().find(|(row, _)| row.len() != nodes.len()) {
            let expected = format!("{}, one for each node", nodes.len());
            return Reader::wrong(path, Some(1), format!("{} distances", row.len()), &expected);
        }
        for (index, (row, path)) in rows.iter().enumerate() {
            if row[index] != u64::from(LOCAL_DISTANCE) {
                let found = format!("{} from node {} to itself", row[index], nodes[index]);
                return Reader::wrong(path, Some(1), found, &format!("{LOCAL_DISTANCE}, as Linux has it"));
            }
        }
        let at = Location::of(&rows[0].1);
        self.draft.distance = Some(DraftDistance { nodes, rows: rows.into_iter().map(|(row, _)| row).collect(), at });
        Ok(())
    }

    /// Intel's hybrid machines list their performance and efficiency cores separately; on others, kinds are recognised
    /// by frequency.
    fn kinds(&mut self) -> Result<(), TopologyError> {
        let mut kinds = Vec::new();
        for name in ["cpu_core", "cpu_atom", "cpu_lowpower"] {
            if let Some((cpus, path)) = self.set(&[format!("sys/devices/{name}/cpus")])? {
                kinds.push((name.to_string(), cpus, Location::of(&path)));
            }
        }
        let max_hertz = self.told(&|reader, cpu| reader.max_hertz(cpu))?;
        let highest_perf = self.told(&|reader, cpu| reader.highest_perf(cpu))?;
        if kinds.is_empty() {
            kinds = kinds_by_frequency(&max_hertz);
        }
        for (name, cpus, at) in kinds {
            let online = cpus.and(&self.draft.cpus);
            let (max_hertz, highest_perf) = (most(&online, &max_hertz), most(&online, &highest_perf));
            self.draft.add_kind(&name, CpuKind { max_hertz, highest_perf, ..CpuKind::new("", cpus) }, at);
        }
        Ok(())
    }

    /// A figure of each CPU that reports it.
    fn told<T>(&self, figure: &OfCpu<T>) -> Result<BTreeMap<CpuId, T>, TopologyError> {
        let told = self.draft.cpus.iter().map(|cpu| Ok(figure(self, cpu)?.map(|figure| (cpu, figure))));
        Ok(told.collect::<Result<Vec<_>, TopologyError>>()?.into_iter().flatten().collect())
    }

    /// cpufreq's highest frequency, in Hz.
    fn max_hertz(&self, cpu: CpuId) -> Result<Option<u64>, TopologyError> {
        let path = format!("{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq");
        match self.number(&path)? {
            // No processor is that slow: the driver does not know.
            None | Some(..1_000) => Ok(None),
            Some(khz) if khz <= MOST_HERTZ / 1_000 => Ok(Some(khz * 1_000)),
            Some(khz) => Reader::wrong(&path, Some(1), format!("`{khz}`"), "a frequency in kHz, up to 20000000"),
        }
    }

    /// Firmware's highest performance, with one of Intel's drivers: other drivers have other scales, and derive
    /// capacities from them.
    fn highest_perf(&self, cpu: CpuId) -> Result<Option<u32>, TopologyError> {
        let driver = self.line(&format!("{CPU}/cpu{cpu}/cpufreq/scaling_driver"));
        if !driver.is_some_and(|driver| driver.starts_with("intel_")) {
            return Ok(None);
        }
        let told = self.number(&format!("{CPU}/cpu{cpu}/acpi_cppc/highest_perf"))?;
        // 255 is what firmware reports if it does not know.
        Ok(told.filter(|perf| (1..255).contains(perf)).map(|perf| perf as u32))
    }
}

/// What a CPU reports about itself, if anything.
type OfCpu<'a, T> = dyn Fn(&Reader, CpuId) -> Result<Option<T>, TopologyError> + 'a;

/// The highest figure among `cpus`, if all of them report one.
fn most<T: Ord + Copy>(cpus: &CpuMask, told: &BTreeMap<CpuId, T>) -> Option<T> {
    let figures: Option<Vec<T>> = cpus.iter().map(|cpu| told.get(&cpu).copied()).collect();
    figures?.into_iter().max()
}

/// The fastest kind first, each with its name and the file that reports it; empty if all CPUs that report a frequency
/// are of one kind.
fn kinds_by_frequency(max_hertz: &BTreeMap<CpuId, u64>) -> Vec<(String, CpuMask, Location)> {
    let mut fastest: Vec<(CpuId, u64)> = max_hertz.iter().map(|(&cpu, &hertz)| (cpu, hertz)).collect();
    fastest.sort_by_key(|&(cpu, hertz)| (std::cmp::Reverse(hertz), cpu));
    let mut kinds: Vec<(u64, CpuMask)> = Vec::new();
    let mut before = 0;
    for (cpu, hertz) in fastest {
        match kinds.last_mut() {
            Some((_, cpus)) if !apart(before, hertz) => cpus.set(cpu),
            _ => kinds.push((hertz, CpuMask::single(cpu))),
        }
        before = hertz;
    }
    if kinds.len() < 2 {
        return Vec::new();
    }
    let named = |(hertz, cpus): (u64, CpuMask)| {
        let first = cpus.first().expect("a kind begins with a CPU");
        (
            format!("{}-MHz", hertz / 1_000_000),
            cpus,
            Location::of(&format!("{CPU}/cpu{first}/cpufreq/cpuinfo_max_freq")),
        )
    };
    kinds.into_iter().map(named).collect()
}

/// Bytes, from a line such as `Node 0 MemTotal:       65536 kB`.
fn memory_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.contains("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().nth_back(1)?.parse().ok()?;
    kilobytes.checked_mul(1 << 10)
}
