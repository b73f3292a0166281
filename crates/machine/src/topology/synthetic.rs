//! Reads hwloc's synthetic notation: `pack:2 [numa] l3:1(size=30MB) core:12 pu:2`, what `lstopo --of synthetic` writes.
//!
//! From outside to inside, each word is a type, and how many objects of it every object of the previous level contains.
//! Types may be shortened to two letters, or all be left out (`2 3 2`). Attributes are in parentheses; NUMA nodes may
//! be attached in brackets. As in hwloc, PUs are numbered depth first unless `indexes=` says otherwise, and without
//! NUMA nodes the machine has one. Unlike hwloc this reader refuses what it does not know, requires levels in their
//! order (packages outside cores), knows `cluster` as a type (hwloc calls those groups), and requires CPU and NUMA node
//! numbers without gaps. Sizes of caches that are not given stay unknown; hwloc invents them.

use super::draft::{Draft, DraftCache, DraftNode, DraftPart};
use super::error::excerpt;
use super::synthetic_indexes::{IndexLevel, parse_indexes};
use super::{CacheKind, Location, Numbering, Topology, TopologyError};
use units::{CpuMask, NR_CPUS};

const TYPES: &str = "pack, die, group, cluster, numa, l1 to l5 (l1d, l1i ...), core or pu";
const EXAMPLE: &str = "a level such as core:12";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelKind {
    Package,
    Die,
    /// Specific to this reader: cores that are nearer to each other than to others of their last level cache.
    Cluster,
    Group,
    NumaNode,
    Cache(u8, CacheKind),
    Core,
    Pu,
}

#[derive(Clone, Debug, Default)]
struct Attributes<'a> {
    /// Bytes of a cache, or of a node's memory.
    bytes: Option<u64>,
    indexes: Option<(&'a str, usize)>,
}

#[derive(Clone, Debug)]
struct Level<'a> {
    kind: Option<LevelKind>,
    /// How many objects of this level the whole machine has.
    total: u64,
    attributes: Attributes<'a>,
    /// Byte offset of its word.
    at: usize,
}

/// NUMA nodes attached to every object of level `level` (0 is the machine).
struct Attached<'a> {
    level: usize,
    attributes: Attributes<'a>,
    at: usize,
}

/// Reads a synthetic description. `input` is its name in messages. hwloc's own numbering is [`Numbering::AsListed`].
pub fn from_synthetic(text: &str, input: &str, numbering: Numbering) -> Result<Topology, TopologyError> {
    let mut parser = Parser { text, input, at: 0, levels: Vec::new(), attached: Vec::new() };
    parser.read()?;
    parser.name_untyped_levels()?;
    parser.check_levels()?;
    Ok(parser.build()?.numbered(numbering))
}

struct Parser<'a> {
    text: &'a str,
    input: &'a str,
    at: usize,
    levels: Vec<Level<'a>>,
    attached: Vec<Attached<'a>>,
}

impl<'a> Parser<'a> {
    fn place(&self, offset: usize) -> Location {
        let column = self.text.get(..offset).map_or(self.text.len(), |before| before.chars().count()) + 1;
        Location { input: self.input.to_string(), line: None, column: Some(column as u32) }
    }

    fn wrong<T>(
        &self,
        offset: usize,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Result<T, TopologyError> {
        Err(TopologyError::new(self.place(offset), found, expected))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// The word at the cursor, for quoting.
    fn here(&self) -> String {
        match self.rest().split_whitespace().next() {
            Some(word) => format!("`{}`", excerpt(word, 32)),
            None => "the end of the text".to_string(),
        }
    }

    fn read(&mut self) -> Result<(), TopologyError> {
        self.skip_spaces();
        if self.rest().starts_with('(') {
            // The machine's own memory, which lstopo writes first; here memory belongs to nodes.
            self.attributes(false)?;
        }
        loop {
            self.skip_spaces();
            if self.rest().is_empty() {
                return Ok(());
            }
            if self.rest().starts_with('[') { self.attached_node()? } else { self.level()? }
        }
    }

    /// Letters, and the digits that are part of a type (`l3`, `group0`).
    fn type_name(&mut self) -> Result<(LevelKind, usize), TopologyError> {
        let start = self.at;
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let name = &rest[..length];
        let Some(kind) = kind_of(name) else {
            let found = if length == 0 { self.here() } else { format!("`{}`", excerpt(name, 32)) };
            return self.wrong(start, found, format!("a type: {TYPES}"));
        };
        self.at += length;
        Ok((kind, start))
    }

    fn attached_node(&mut self) -> Result<(), TopologyError> {
        self.at += 1;
        self.skip_spaces();
        let (kind, at) = self.type_name()?;
        if kind != LevelKind::NumaNode {
            return self.wrong(at, "an attached object that is no NUMA node", "[numa]");
        }
        let mut attributes = Attributes::default();
        self.skip_spaces();
        if self.rest().starts_with('(') {
            attributes = self.attributes(false)?;
        }
        self.skip_spaces();
        if !self.rest().starts_with(']') {
            return self.wrong(self.at, self.here(), "`]`");
        }
        self.at += 1;
        self.attached.push(Attached { level: self.levels.len(), attributes, at });
        Ok(())
    }

    fn level(&mut self) -> Result<(), TopologyError> {
        let start = self.at;
        let mut kind = None;
        if !self.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') {
            kind = Some(self.type_name()?.0);
            if !self.rest().starts_with(':') {
                return self.wrong(self.at, self.here(), format!("`:` and a number after the type, {EXAMPLE}"));
            }
            self.at += 1;
        }
        let count = self.count()?;
        let total = self.levels.last().map_or(1, |level| level.total).saturating_mul(count);
        if total > NR_CPUS as u64 {
            let found = format!("`{}`, which makes {total} of them", excerpt(&self.text[start..self.at], 32));
            return self.wrong(start, found, format!("at most {NR_CPUS} CPUs"));
        }
        let mut attributes = Attributes::default();
        if self.rest().starts_with('(') {
            attributes = self.attributes(matches!(kind, Some(LevelKind::Cache(..))))?;
        }
        if !self.rest().starts_with(|c: char| c.is_whitespace() || c == '[') && !self.rest().is_empty() {
            return self.wrong(self.at, self.here(), "a space between levels");
        }
        self.levels.push(Level { kind, total, attributes, at: start });
        Ok(())
    }

    fn count(&mut self) -> Result<u64, TopologyError> {
        let start = self.at;
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if length == 0 {
            return self.wrong(start, self.here(), "a number of objects, 1 or more");
        }
        self.at += length;
        match rest[..length].parse() {
            Ok(0) => self.wrong(start, "`0`", "a number of objects, 1 or more"),
            Ok(count) => Ok(count),
            Err(_) => {
                self.wrong(start, format!("`{}`", excerpt(&rest[..length], 32)), format!("at most {NR_CPUS} CPUs"))
            }
        }
    }

    /// `(size=30MB indexes=2*24)`; the cursor is on the parenthesis.
    fn attributes(&mut self, cache: bool) -> Result<Attributes<'a>, TopologyError> {
        let open = self.at;
        let Some(length) = self.rest().find(')') else {
            return self.wrong(open, "`(` that is never closed", "`)`");
        };
        let end = open + length;
        let mut attributes = Attributes::default();
        self.at = open + 1;
        loop {
            self.skip_spaces();
            if self.at >= end {
                break;
            }
            let start = self.at;
            let rest = &self.text[start..end];
            let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
            self.at += word.len();
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let value_at = start + word.len() - value.len();
            match name {
                "size" if cache => match self.bytes(value, value_at)? {
                    0 => {
                        let expected = "its size, or no size= where it is not known";
                        return self.wrong(value_at, "a cache of 0 bytes", expected);
                    }
                    bytes => attributes.bytes = Some(bytes),
                },
                "memory" if !cache => attributes.bytes = Some(self.bytes(value, value_at)?),
                // Memory-side caches are not modelled, as with XML.
                "memorysidecachesize" => {
                    self.bytes(value, value_at)?;
                }
                "indexes" => attributes.indexes = Some((value, value_at)),
                _ => {
                    let expected = if cache { "size= or indexes=" } else { "memory= or indexes=" };
                    return self.wrong(start, format!("the attribute `{}`", excerpt(name, 32)), expected);
                }
            }
        }
        self.at = end + 1;
        Ok(attributes)
    }

    fn bytes(&self, text: &str, at: usize) -> Result<u64, TopologyError> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit = match text[digits..].to_ascii_lowercase().as_str() {
            "" => Some(1),
            "kb" => Some(1_000),
            "mb" => Some(1_000_000),
            "gb" => Some(1_000_000_000),
            "tb" => Some(1_000_000_000_000),
            "kib" => Some(1 << 10),
            "mib" => Some(1 << 20),
            "gib" => Some(1 << 30),
            "tib" => Some(1u64 << 40),
            _ => None,
        };
        let bytes = text[..digits].parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
        match bytes {
            // hwloc writes 0 for memory of unknown size.
            Some(bytes) => Ok(bytes),
            None => self.wrong(at, format!("the size `{}`", excerpt(text, 32)), "a size such as 32kB, 256KiB or 30MB"),
        }
    }

    /// hwloc's rule for `2 3 2`: the last level is PU. The others are, in this order of preference, NUMA nodes,
    /// packages, cores, up to four caches, and groups; they are nested as groups, packages, NUMA nodes, L3, L2, L1,
    /// L1i, cores.
    fn name_untyped_levels(&mut self) -> Result<(), TopologyError> {
        let Some(last) = self.levels.len().checked_sub(1) else {
            return self.wrong(0, "no levels", "a description such as pack:2 l3:1 core:12 pu:2");
        };
        let untyped = self.levels[..last].iter().filter(|level| level.kind.is_none()).count();
        if untyped > 0 && untyped < last {
            let mixed = self.levels.iter().find(|level| level.kind.is_none()).map_or(0, |level| level.at);
            return self.wrong(
                mixed,
                "a level without type among levels with types",
                "types for all levels or for none",
            );
        }
        self.levels[last].kind.get_or_insert(LevelKind::Pu);
        if untyped == 0 {
            return Ok(());
        }
        let mut left = last;
        let mut take = |wanted: usize| {
            let taken = wanted.min(left);
            left -= taken;
            taken
        };
        let numa = take(usize::from(self.attached.is_empty()));
        let (packages, cores, caches) = (take(1), take(1), take(4));
        let groups = left;
        let unified = |level| LevelKind::Cache(level, CacheKind::Unified);
        let cache_levels = match caches {
            0 => vec![],
            1 => vec![unified(2)],
            2 => vec![unified(2), LevelKind::Cache(1, CacheKind::Data)],
            3 => vec![unified(3), unified(2), LevelKind::Cache(1, CacheKind::Data)],
            _ => vec![
                unified(3),
                unified(2),
                LevelKind::Cache(1, CacheKind::Data),
                LevelKind::Cache(1, CacheKind::Instruction),
            ],
        };
        let names = std::iter::repeat_n(LevelKind::Group, groups)
            .chain(std::iter::repeat_n(LevelKind::Package, packages))
            .chain(std::iter::repeat_n(LevelKind::NumaNode, numa))
            .chain(cache_levels)
            .chain(std::iter::repeat_n(LevelKind::Core, cores));
        for (level, kind) in self.levels.iter_mut().zip(names) {
            level.kind = Some(kind);
        }
        Ok(())
    }

    fn check_levels(&self) -> Result<(), TopologyError> {
        // From outside to inside; groups and NUMA nodes may be anywhere above the cores.
        let rank = |kind: LevelKind| match kind {
            LevelKind::Group | LevelKind::NumaNode => None,
            LevelKind::Package => Some(0),
            LevelKind::Die => Some(1),
            LevelKind::Cluster => Some(15),
            LevelKind::Cache(level, _) => Some(20 - 2 * u32::from(level)),
            LevelKind::Core => Some(30),
            LevelKind::Pu => Some(40),
        };
        let typed = self.levels.iter().filter_map(|level| Some((level.kind?, level)));
        let mut before: Vec<LevelKind> = Vec::new();
        for (kind, level) in typed {
            if kind != LevelKind::Group && before.contains(&kind) {
                return self.wrong(level.at, format!("a second level of {}", name_of(kind)), "each type once");
            }
            // An L1 may be inside or outside of its core.
            let inside = |&&outer: &&LevelKind| match (outer, kind) {
                (LevelKind::Core, LevelKind::Cache(1, _)) => false,
                (LevelKind::Core | LevelKind::Pu, LevelKind::Group | LevelKind::NumaNode) => true,
                _ => rank(outer).zip(rank(kind)).is_some_and(|(outer, inner)| outer > inner),
            };
            if let Some(&outer) = before.iter().find(inside) {
                let found = format!("{} inside {}", name_of(kind), name_of(outer));
                let expected = format!("{} outside {}", name_of(kind), name_of(outer));
                return self.wrong(level.at, found, expected);
            }
            before.push(kind);
        }
        if before.last() != Some(&LevelKind::Pu) {
            let expected = "pu:1 or more as the last level";
            return self.wrong(self.text.trim_end().len(), "no PUs", expected);
        }
        if let (true, Some(attached)) = (before.contains(&LevelKind::NumaNode), self.attached.first()) {
            return self.wrong(attached.at, "NUMA nodes both as a level and attached", "one of the two");
        }
        Ok(())
    }

    /// The OS numbers of a level's objects in depth-first order.
    fn numbers(&self, indexes: Option<(&str, usize)>, total: usize) -> Result<Vec<u32>, TopologyError> {
        let Some((text, at)) = indexes else { return Ok((0..total as u32).collect()) };
        let levels: Vec<IndexLevel> =
            self.levels.iter().filter_map(|level| Some((level.kind?, level.total as usize))).collect();
        let parsed = parse_indexes(text, total, &levels);
        parsed.map_err(|e| TopologyError::new(self.place(at + e.offset), e.found, e.expected))
    }

    /// As [`Parser::numbers`], for CPUs and NUMA nodes, whose numbers must have no gaps on a machine that is made up.
    fn whole_numbers(&self, indexes: Option<(&str, usize)>, total: usize) -> Result<Vec<u32>, TopologyError> {
        let numbers = self.numbers(indexes, total)?;
        let Some(&beyond) = numbers.iter().find(|&&number| number as usize >= total) else { return Ok(numbers) };
        let (text, at) = indexes.expect("numbers that are not given leave no holes");
        let hole = (0..total as u32).find(|number| !numbers.contains(number)).expect("one of them is too large");
        let offset = text.split(',').take_while(|word| word.parse() != Ok(beyond)).map(|word| word.len() + 1).sum();
        let offset = if text.contains(',') { offset } else { 0 };
        let expected = format!("each number from 0 to {} once: {hole} is missing", total - 1);
        self.wrong(at + offset, format!("`{beyond}` among {total} indexes"), expected)
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        let mut draft = Draft::new(self.input);
        let pus = self.levels[self.levels.len() - 1].total as usize;
        let pu_numbers = self.whole_numbers(self.levels[self.levels.len() - 1].attributes.indexes, pus)?;
        let at = self.place(self.levels[self.levels.len() - 1].at);
        let mut cpus = Vec::with_capacity(pus);
        for &number in &pu_numbers {
            cpus.push(draft.add_cpu(u64::from(number), &at)?);
        }
        // The CPUs of object `index` of a level with `total` objects.
        let span = |total: u64, index: usize| {
            let width = pus / total as usize;
            cpus[index * width..(index + 1) * width].iter().copied().collect::<CpuMask>()
        };
        for level in &self.levels {
            let Some(kind) = level.kind else { continue };
            let total = level.total as usize;
            let at = self.place(level.at);
            let numbers = match kind {
                LevelKind::NumaNode => self.whole_numbers(level.attributes.indexes, total)?,
                _ => self.numbers(level.attributes.indexes, total)?,
            };
            for (index, &number) in numbers.iter().enumerate() {
                let cpus = span(level.total, index);
                let part = DraftPart { os_index: Some(number), cpus: cpus.clone(), at: at.clone() };
                match kind {
                    LevelKind::Package => draft.packages.push(part),
                    LevelKind::Die => draft.dies.push(part),
                    LevelKind::Cluster => draft.clusters.push(part),
                    LevelKind::Core => draft.cores.push(part),
                    LevelKind::Cache(level_number, kind) => {
                        let bytes = level.attributes.bytes.filter(|&bytes| bytes > 0);
                        draft.caches.push(DraftCache { level: level_number, kind, bytes, cpus, at: at.clone() });
                    }
                    LevelKind::NumaNode => {
                        let memory_bytes = level.attributes.bytes;
                        draft.nodes.push(DraftNode { os_index: number, cpus, memory_bytes, at: at.clone() });
                    }
                    LevelKind::Group | LevelKind::Pu => {}
                }
            }
        }
        self.attach_nodes(&mut draft, &span)?;
        draft.finish()
    }

    /// hwloc numbers attached nodes when its recursion leaves the objects to which they are attached, so inner levels
    /// come first.
    fn attach_nodes(&self, draft: &mut Draft, span: &dyn Fn(u64, usize) -> CpuMask) -> Result<(), TopologyError> {
        let total_of = |level: usize| if level == 0 { 1 } else { self.levels[level - 1].total };
        // (end of the object in PUs, outer levels last, order of writing): sorts into the order of leaving.
        let mut order: Vec<(u64, std::cmp::Reverse<usize>, usize, usize)> = Vec::new();
        for (written, attached) in self.attached.iter().enumerate() {
            let total = total_of(attached.level);
            let width = self.levels[self.levels.len() - 1].total / total;
            for index in 0..total {
                order.push(((index + 1) * width, std::cmp::Reverse(attached.level), written, index as usize));
            }
        }
        order.sort_unstable();
        let indexes = self.attached.iter().rev().find_map(|attached| attached.attributes.indexes);
        let numbers = self.whole_numbers(indexes, order.len())?;
        for (&number, (_, _, written, index)) in numbers.iter().zip(order) {
            let attached = &self.attached[written];
            let cpus = span(total_of(attached.level), index);
            let (memory_bytes, at) = (attached.attributes.bytes, self.place(attached.at));
            draft.nodes.push(DraftNode { os_index: number, cpus, memory_bytes, at });
        }
        Ok(())
    }
}

fn name_of(kind: LevelKind) -> String {
    match kind {
        LevelKind::Package => "packages".to_string(),
        LevelKind::Die => "dies".to_string(),
        LevelKind::Group => "groups".to_string(),
        LevelKind::Cluster => "clusters".to_string(),
        LevelKind::NumaNode => "NUMA nodes".to_string(),
        LevelKind::Cache(level, CacheKind::Instruction) => format!("L{level}i caches"),
        LevelKind::Cache(level, _) => format!("L{level} caches"),
        LevelKind::Core => "cores".to_string(),
        LevelKind::Pu => "PUs".to_string(),
    }
}

/// hwloc's spellings: any prefix of at least two letters, in upper or lower case.
pub(super) fn kind_of(name: &str) -> Option<LevelKind> {
    let name = name.to_ascii_lowercase();
    if let Some(rest) = name.strip_prefix('l').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        let level = rest.as_bytes()[0] - b'0';
        let rest = &rest[1..];
        let (kind, rest) = match rest.as_bytes().first() {
            Some(b'i') => (CacheKind::Instruction, &rest[1..]),
            Some(b'd') => (CacheKind::Data, &rest[1..]),
            Some(b'u') => (CacheKind::Unified, &rest[1..]),
            _ => (CacheKind::Unified, rest),
        };
        let levels = if kind == CacheKind::Instruction { 1..=3 } else { 1..=5 };
        return (levels.contains(&level) && "cache".starts_with(rest)).then_some(LevelKind::Cache(level, kind));
    }
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let begins = |full: &str| letters.len() >= 2 && full.starts_with(letters);
    match letters {
        _ if begins("group") => Some(LevelKind::Group),
        _ if letters.len() < name.len() => None,
        _ if begins("numanode") || begins("node") => Some(LevelKind::NumaNode),
        _ if begins("package") || begins("socket") => Some(LevelKind::Package),
        _ if begins("die") => Some(LevelKind::Die),
        _ if begins("cluster") => Some(LevelKind::Cluster),
        _ if begins("core") => Some(LevelKind::Core),
        _ if begins("pu") => Some(LevelKind::Pu),
        _ if begins("tile") || begins("module") => Some(LevelKind::Group),
        _ => None,
    }
}
