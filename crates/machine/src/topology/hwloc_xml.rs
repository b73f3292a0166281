//! Reads hwloc's XML, formats 1, 2 and 3: what `lstopo --of xml` writes.
//!
//! Read: packages, dies, cores, PUs, caches, NUMA nodes with their memory, groups that are clusters, distances between
//! NUMA nodes, kinds of CPU with their highest frequencies and Linux capacities. Ignored: I/O devices, other groups,
//! memory attributes, memory-side caches. PUs without a cpuset of their own (format 1 lists offline CPUs in this way)
//! are left out with a notice.

use super::cpulist::parse_mask;
use super::draft::{Draft, DraftCache, DraftNode, DraftPart, MOST_CACHE_LEVEL};
use super::error::{Lines, excerpt};
use super::hwloc_distances::read_distances;
use super::{CacheKind, CpuKind, Location, MOST_HERTZ, Topology, TopologyError};
use roxmltree::{Document, Error as XmlError, Node as XmlNode, ParsingOptions};
use units::CpuMask;

/// More nodes than 8192 CPUs need, with caches, devices and annotations. Bounds the memory that a hostile file can
/// take.
const NODES_LIMIT: u32 = 2_000_000;
/// hwloc's own trees are about 20 deep; this reader recurses.
const DEPTH_LIMIT: usize = 100;

/// Reads the text of an XML file; `file` is its name for messages.
pub fn from_hwloc_xml(text: &str, file: &str) -> Result<Topology, TopologyError> {
    let lines = Lines::new(text);
    if let Some(offset) = text.find("<!ENTITY") {
        let at = lines.locate(file, offset);
        return Err(TopologyError::new(at, "an entity declaration", "XML without entities, as hwloc writes it"));
    }
    let document =
        Document::parse_with_options(text, options()).map_err(|error| does_not_parse(&error, text, file, &lines))?;
    let root = document.root_element();
    let mut reader =
        Reader { file, lines, draft: Draft::new(file), open: Vec::new(), version: 1, offline: CpuMask::default() };
    reader.topology(root)?;
    reader.draft.finish()
}

fn options<'t>() -> ParsingOptions<'t> {
    ParsingOptions { allow_dtd: true, nodes_limit: NODES_LIMIT, ..ParsingOptions::default() }
}

/// The name of the processor in a file that [`from_hwloc_xml`] reads (`CPUModel` of the first package that has it), as
/// Linux reports it.
pub fn processor_of_hwloc_xml(text: &str) -> Option<String> {
    let document = Document::parse_with_options(text, options()).ok()?;
    let model = document.descendants().find(|node| node.attribute("name") == Some("CPUModel"))?;
    model.attribute("value").map(String::from)
}

/// The place and reason of a parse error. The parser gives no place for something missing: that is the end of the text.
fn does_not_parse(error: &XmlError, text: &str, file: &str, lines: &Lines) -> TopologyError {
    let end = text.trim_end().len();
    let truncated =
        matches!(error, XmlError::UnclosedRootNode | XmlError::UnexpectedEndOfStream | XmlError::NoRootNode);
    let wrong = |at, found: String| TopologyError::new(at, found, "what `lstopo --of xml` writes, whole");
    match innermost_open(text) {
        _ if end == 0 => wrong(lines.locate(file, 0), "an empty file".to_string()),
        Some((name, start)) if truncated => {
            let opened = lines.locate("", start);
            let (line, column) = (opened.line.unwrap_or(1), opened.column.unwrap_or(1));
            let found =
                format!("the end of the text inside <{}>, which line {line}, column {column} opens", excerpt(name, 40));
            wrong(lines.locate(file, end), found)
        }
        _ if truncated => wrong(lines.locate(file, end), format!("the end of the text ({error})")),
        _ => {
            let at = Location { input: file.to_string(), line: Some(error.pos().row), column: Some(error.pos().col) };
            wrong(at, format!("XML that does not parse ({error})"))
        }
    }
}

/// The last element of a text that is opened and not closed, including a tag that does not end: its name, and where it
/// begins.
fn innermost_open(text: &str) -> Option<(&str, usize)> {
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find('<').map(|found| at + found) {
        let rest = &text[start + 1..];
        let name = &rest[..rest.find(|c: char| c.is_whitespace() || c == '>' || c == '/').unwrap_or(rest.len())];
        if rest.starts_with("!--") {
            at = start + 1 + rest.find("-->")?;
            continue;
        }
        let Some(length) = tag_length(rest) else {
            return Some((name, start)).filter(|_| !name.is_empty()).or(open.pop());
        };
        match rest.as_bytes()[0] {
            b'/' => drop(open.pop()),
            b'?' | b'!' => {}
            _ if rest[..length].ends_with('/') => {}
            _ => open.push((name, start)),
        }
        at = start + 1 + length;
    }
    open.pop()
}

/// The length of a tag in bytes up to its `>`. Quoted values may contain that character, too.
fn tag_length(tag: &str) -> Option<usize> {
    let mut quote = None;
    tag.bytes().position(|byte| {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b'>') => return true,
            _ => {}
        }
        false
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    System,
    Machine,
    Package,
    Die,
    Group,
    Cache(u8, CacheKind),
    Core,
    Pu,
    NumaNode,
    MemoryCache,
    /// I/O and annotations.
    Other,
}

const KINDS: &str = "Machine, Package, Die, Group, NUMANode, L1Cache to L5Cache, L1iCache to L3iCache, Core or PU";

pub(super) struct Reader<'a> {
    pub file: &'a str,
    lines: Lines<'a>,
    pub draft: Draft,
    /// The objects around the object that is being read, outermost first.
    open: Vec<(Kind, &'a str)>,
    version: u32,
    offline: CpuMask,
}

impl<'a> Reader<'a> {
    pub fn at(&self, node: XmlNode) -> Location {
        self.lines.locate(self.file, node.range().start)
    }

    fn at_attribute(&self, node: XmlNode, name: &str) -> Location {
        let start = node.attribute_node(name).map_or(node.range().start, |attribute| attribute.range().start);
        self.lines.locate(self.file, start)
    }

    pub fn wrong<T>(&self, node: XmlNode, found: String, expected: &str) -> Result<T, TopologyError> {
        Err(TopologyError::new(self.at(node), found, expected))
    }

    /// An attribute that must be a whole number, if it is present.
    pub fn number(&self, node: XmlNode, name: &str) -> Result<Option<u64>, TopologyError> {
        let Some(text) = node.attribute(name) else { return Ok(None) };
        match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => {
                let found = format!("{name}=\"{}\"", excerpt(text, 24));
                let at = self.at_attribute(node, name);
                Err(TopologyError::new(at, found, format!("a whole number as {name}, 0 or more")))
            }
        }
    }

    fn required(&self, node: XmlNode, name: &str) -> Result<u64, TopologyError> {
        match self.number(node, name)? {
            Some(number) => Ok(number),
            None => self.wrong(node, format!("an object without {name}"), &format!("{name}=\"a number\"")),
        }
    }

    pub fn mask(&self, node: XmlNode, name: &str) -> Result<Option<CpuMask>, TopologyError> {
        let Some(text) = node.attribute(name) else { return Ok(None) };
        match parse_mask(text) {
            Ok(mask) => Ok(Some(mask)),
            Err(e) => {
                let found = format!("{name} with {} at its character {}", e.found, e.column);
                Err(TopologyError::new(self.at_attribute(node, name), found, e.expected))
            }
        }
    }

    fn topology(&mut self, root: XmlNode<'a, 'a>) -> Result<(), TopologyError> {
        if root.tag_name().name() != "topology" {
            let found = format!("the element <{}>", excerpt(root.tag_name().name(), 40));
            return self.wrong(root, found, "<topology>, as `lstopo --of xml` writes it");
        }
        let version = root.attribute("version").unwrap_or("1.0");
        self.version = match version.split('.').next().and_then(|major| major.parse().ok()) {
            Some(major @ 1..=3) => major,
            _ => {
                let found = format!("hwloc XML version {}", excerpt(version, 16));
                return self.wrong(root, found, "version 1, 2 or 3");
            }
        };
        let mut objects = root.children().filter(|child| child.has_tag_name("object"));
        let Some(machine) = objects.next() else {
            return self.wrong(root, "a topology without objects".to_string(), "an object of type Machine");
        };
        if let Some(second) = objects.next() {
            return self.wrong(second, "a second root object".to_string(), "one");
        }
        // Format 1 may leave out the Machine if it has only one node, which then stands for it.
        let kind = self.kind(machine)?;
        let is_root = matches!(kind, Kind::Machine | Kind::System) || (self.version == 1 && kind == Kind::NumaNode);
        if !is_root {
            let found = format!("a root object of type {}", machine.attribute("type").unwrap_or_default());
            return self.wrong(machine, found, "one of type Machine");
        }
        self.object(machine)?;
        for child in root.children().filter(|child| child.has_tag_name("cpukind")) {
            self.cpu_kind(child)?;
        }
        self.draft.distance = read_distances(self, root, self.version)?;
        if !self.offline.is_empty() {
            self.draft.notices.push(format!("CPUs {} are offline and left out", self.offline.list()));
        }
        Ok(())
    }

    fn kind(&self, node: XmlNode) -> Result<Kind, TopologyError> {
        let Some(name) = node.attribute("type") else {
            return self.wrong(node, "an object without type".to_string(), KINDS);
        };
        Ok(match name {
            "System" => Kind::System,
            "Machine" => Kind::Machine,
            "Package" | "Socket" => Kind::Package,
            "Die" => Kind::Die,
            "Group" => Kind::Group,
            "Core" => Kind::Core,
            "PU" => Kind::Pu,
            "NUMANode" => Kind::NumaNode,
            "MemCache" => Kind::MemoryCache,
            "Misc" | "Bridge" | "PCIDev" | "OSDev" => Kind::Other,
            "Cache" => {
                let kind = match self.number(node, "cache_type")? {
                    Some(1) => CacheKind::Data,
                    Some(2) => CacheKind::Instruction,
                    _ => CacheKind::Unified,
                };
                Kind::Cache(self.cache_level(node)?, kind)
            }
            _ => match name.strip_prefix('L').and_then(|rest| rest.strip_suffix("Cache")).map(str::as_bytes) {
                Some([level @ b'1'..=b'5']) => {
                    let data = node.attribute("cache_type") == Some("1");
                    Kind::Cache(level - b'0', if data { CacheKind::Data } else { CacheKind::Unified })
                }
                Some([level @ b'1'..=b'3', b'i']) => Kind::Cache(level - b'0', CacheKind::Instruction),
                _ => return self.wrong(node, format!("an object of type \"{}\"", excerpt(name, 24)), KINDS),
            },
        })
    }

    fn cache_level(&self, node: XmlNode) -> Result<u8, TopologyError> {
        match self.required(node, "depth")? {
            level if (1..=u64::from(MOST_CACHE_LEVEL)).contains(&level) => Ok(level as u8),
            level => self.wrong(node, format!("a cache of level {level}"), "a level from 1 to 5"),
        }
    }

    /// Types that must not be nested within each other: for each, those inside of which it may not be.
    fn check_nesting(&self, node: XmlNode, kind: Kind) -> Result<(), TopologyError> {
        let forbidden = |outer: Kind| match kind {
            Kind::System | Kind::Other => false,
            Kind::Machine => outer != Kind::System,
            Kind::Package => matches!(outer, Kind::Package | Kind::Die | Kind::Core | Kind::Pu),
            Kind::Die => matches!(outer, Kind::Die | Kind::Core | Kind::Pu),
            Kind::Core => matches!(outer, Kind::Core | Kind::Pu),
            Kind::Cache(..) => outer == kind || outer == Kind::Pu,
            Kind::Group | Kind::Pu => outer == Kind::Pu,
            Kind::NumaNode | Kind::MemoryCache => matches!(outer, Kind::NumaNode | Kind::Pu),
        };
        // From format 2 on a NUMA node is a child for its memory only, and contains nothing.
        let in_memory = |outer: Kind| {
            self.version > 1 && outer == Kind::NumaNode && !matches!(kind, Kind::MemoryCache | Kind::Other)
        };
        match self.open.iter().rev().find(|&&(outer, _)| forbidden(outer) || in_memory(outer)) {
            None => Ok(()),
            Some((_, outer)) => {
                let name = node.attribute("type").unwrap_or_default();
                let found = format!("an object of type {name} inside one of type {outer}");
                self.wrong(node, found, "packages outside dies, dies outside cores, cores outside PUs, each once")
            }
        }
    }

    /// Reads an object and all that it contains. Returns the CPUs below it.
    fn object(&mut self, node: XmlNode<'a, 'a>) -> Result<CpuMask, TopologyError> {
        let kind = self.kind(node)?;
        if self.open.len() >= DEPTH_LIMIT {
            return self.wrong(node, "objects nested too deeply".to_string(), &format!("at most {DEPTH_LIMIT} levels"));
        }
        self.check_nesting(node, kind)?;
        if kind == Kind::Other {
            return Ok(CpuMask::default());
        }
        let given = self.mask(node, "cpuset")?;
        if kind == Kind::Pu {
            return self.processing_unit(node, given);
        }
        self.open.push((kind, node.attribute("type").unwrap_or_default()));
        let mut cpus = CpuMask::default();
        for child in node.children().filter(|child| child.has_tag_name("object")) {
            cpus.or_with(&self.object(child)?);
        }
        self.open.pop();
        let memory_only = matches!(kind, Kind::NumaNode | Kind::MemoryCache) && self.version > 1;
        if let (Some(given), false) = (&given, memory_only) {
            self.check_cpuset(node, given, &cpus)?;
        }
        self.keep(node, kind, given, &cpus)?;
        Ok(cpus)
    }

    fn processing_unit(&mut self, node: XmlNode, given: Option<CpuMask>) -> Result<CpuMask, TopologyError> {
        let number = self.required(node, "os_index")?;
        let online = self.mask(node, "online_cpuset")?;
        if given.as_ref().is_some_and(CpuMask::is_empty) || online.is_some_and(|mask| mask.is_empty()) {
            // Added and removed again, for the checks of its number.
            let cpu = self.draft.add_cpu(number, &self.at(node))?;
            self.draft.cpus.clear(cpu);
            self.offline.set(cpu);
            return Ok(CpuMask::default());
        }
        let cpu = self.draft.add_cpu(number, &self.at(node))?;
        let cpus = CpuMask::single(cpu);
        if let Some(given) = given {
            self.check_cpuset(node, &given, &cpus)?;
        }
        Ok(cpus)
    }

    fn check_cpuset(&self, node: XmlNode, given: &CpuMask, below: &CpuMask) -> Result<(), TopologyError> {
        let name = node.attribute("type").unwrap_or_default();
        if let Some(hole) = given.iter().find(|&cpu| !below.contains(cpu) && !self.offline.contains(cpu)) {
            let found = format!("a {name} with CPU {hole} in its cpuset and no such PU below it");
            return Err(TopologyError::new(self.at_attribute(node, "cpuset"), found, "a PU for every CPU of a cpuset"));
        }
        if let Some(extra) = below.iter().find(|&cpu| !given.contains(cpu)) {
            let found = format!("a {name} with PU {extra} below it that is not in its cpuset");
            return Err(TopologyError::new(
                self.at_attribute(node, "cpuset"),
                found,
                "every PU in its parents' cpusets",
            ));
        }
        Ok(())
    }

    fn keep(&mut self, node: XmlNode, kind: Kind, given: Option<CpuMask>, cpus: &CpuMask) -> Result<(), TopologyError> {
        let at = self.at(node);
        let part = |os_index: Option<u64>| DraftPart {
            os_index: os_index.and_then(|index| u32::try_from(index).ok()),
            cpus: cpus.clone(),
            at: at.clone(),
        };
        match kind {
            Kind::Package => self.draft.packages.push(part(self.number(node, "os_index")?)),
            Kind::Die => self.draft.dies.push(part(self.number(node, "os_index")?)),
            Kind::Core => self.draft.cores.push(part(self.number(node, "os_index")?)),
            Kind::Group if node.attribute("subtype") == Some("Cluster") => self.draft.clusters.push(part(None)),
            Kind::Cache(level, kind) => {
                let bytes = self.number(node, "cache_size")?.filter(|&bytes| bytes > 0);
                self.draft.caches.push(DraftCache { level, kind, bytes, cpus: cpus.clone(), at });
            }
            Kind::NumaNode => {
                let number = self.required(node, "os_index")?;
                let Ok(os_index) = u32::try_from(number) else {
                    return self.wrong(node, format!("NUMA node {number}"), "a number of 32 bits");
                };
                let memory_bytes = self.number(node, "local_memory")?;
                let near = if self.version > 1 { given.unwrap_or_default() } else { cpus.clone() };
                self.draft.nodes.push(DraftNode { os_index, cpus: near, memory_bytes, at });
            }
            _ => {}
        }
        Ok(())
    }

    fn cpu_kind(&mut self, node: XmlNode) -> Result<(), TopologyError> {
        let Some(cpus) = self.mask(node, "cpuset")? else { return Ok(()) };
        let info = |name: &str| {
            let of = |child: &XmlNode| child.has_tag_name("info") && child.attribute("name") == Some(name);
            node.children().find(of).and_then(|child| child.attribute("value"))
        };
        if let Some(text) = info("LinuxCapacity") {
            match text.trim().parse() {
                Ok(capacity @ 1..=1024) => {
                    self.draft.capacity.extend(cpus.iter().map(|cpu| (cpu, capacity)));
                }
                _ => {
                    let found = format!("LinuxCapacity \"{}\"", excerpt(text, 16));
                    return self.wrong(node, found, "a capacity from 1 to 1024");
                }
            }
        }
        // If cores of one type have different frequencies, hwloc makes them two kinds.
        let name = match (info("CoreType"), node.attribute("forced_efficiency")) {
            (Some(name), _) => excerpt(name, 60),
            (None, Some(efficiency)) => excerpt(&format!("efficiency {efficiency}"), 60),
            (None, None) => String::new(),
        };
        let max_hertz = match info("FrequencyMaxMHz").map(|text| (text, text.trim().parse::<u64>())) {
            None | Some((_, Ok(0))) => None,
            Some((_, Ok(mhz))) if mhz <= MOST_HERTZ / 1_000_000 => Some(mhz * 1_000_000),
            Some((text, _)) => {
                let found = format!("FrequencyMaxMHz \"{}\"", excerpt(text, 16));
                return self.wrong(node, found, "a frequency in MHz, up to 20000");
            }
        };
        let at = self.at(node);
        self.draft.add_kind(&name, CpuKind { max_hertz, ..CpuKind::new("", cpus) }, at);
        Ok(())
    }
}
