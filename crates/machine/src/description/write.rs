//! Writes a machine as a machine file that reads back as the same machine: for `machines import` and `show`.

use super::distance_table::{Told, told_of};
use super::figure::{Figure, How};
use super::{Description, Fact, work_table::split};
use crate::topology::{CacheKind, Part, Topology};
use sched::cpu_topology::LOCAL_DISTANCE;
use std::collections::BTreeMap;
use std::fmt::Write;
use units::{CpuMask, NR_CPUS};

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A TOML key, in quotes if necessary.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_string() } else { quoted(name) }
}

fn figure_text(figure: &Figure) -> String {
    let Figure { value, unit, source, how, range } = figure;
    format!(
        "{{ value = {}, unit = \"{}\", source = {}, how = \"{}\", range = [{}, {}] }}",
        unit.text(*value),
        unit.name,
        quoted(source),
        how.name(),
        unit.text(range.0),
        unit.text(range.1)
    )
}

fn fact_text(fact: &Fact) -> String {
    let Fact { value, source, how } = fact;
    format!("{{ value = {}, source = {}, how = \"{}\" }}", quoted(value), quoted(source), how.name())
}

fn list(sets: impl Iterator<Item = impl AsRef<CpuMask>>) -> String {
    let sets: Vec<String> = sets.map(|set| format!("\"{}\"", set.as_ref().list())).collect();
    format!("[{}]", sets.join(", "))
}

struct Set<'a>(&'a CpuMask);

impl AsRef<CpuMask> for Set<'_> {
    fn as_ref(&self) -> &CpuMask {
        self.0
    }
}

/// A `[topology]` section with every set listed, for machine files that are written piece by piece.
pub fn topology_section(topology: &Topology, source: &str, how: How) -> String {
    let fact = Fact { value: topology.summary(), source: source.to_string(), how };
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = topology_text(topology, &fact, None, &mut out);
    out
}

/// `[topology]` with every set listed. What a machine file cannot express is lost: OS numbers, memory sizes, notices.
fn topology_text(topology: &Topology, fact: &Fact, told: Option<&Told>, out: &mut String) -> std::fmt::Result {
    writeln!(out, "[topology]")?;
    writeln!(out, "source = {}\nhow = \"{}\"", quoted(&fact.source), fact.how.name())?;
    writeln!(out, "cpus = {}", topology.nr_cpus())?;
    let parts = |parts: &[Part]| list(parts.iter().map(|part| Set(&part.cpus)));
    writeln!(out, "packages = {}", parts(topology.packages()))?;
    if !topology.dies().is_empty() {
        writeln!(out, "dies = {}", parts(topology.dies()))?;
    }
    writeln!(out, "nodes = {}", list(topology.nodes().iter().map(|node| Set(&node.cpus))))?;
    writeln!(out, "clusters = {}", list(topology.clusters().iter().map(Set)))?;
    // Single CPUs that are in no listed core are cores anyway.
    if topology.cores().iter().any(|core| core.os_index.is_some() || core.cpus.weight() > 1) {
        writeln!(out, "cores = {}", parts(topology.cores()))?;
    }
    writeln!(out, "caches = [")?;
    let mut rest = topology.caches();
    while let Some(first) = rest.first() {
        let alike = |cache: &&crate::topology::Cache| {
            (cache.level, cache.kind, cache.bytes) == (first.level, first.kind, first.bytes)
        };
        let count = rest.iter().take_while(alike).count();
        let kind = match first.kind {
            CacheKind::Unified => "unified",
            CacheKind::Data => "data",
            CacheKind::Instruction => "instruction",
        };
        let bytes = first.bytes.map_or(String::new(), |bytes| format!("bytes = {bytes}, "));
        let cpus = list(rest[..count].iter().map(|cache| Set(&cache.cpus)));
        writeln!(out, "    {{ level = {}, kind = \"{kind}\", {bytes}cpus = {cpus} }},", first.level)?;
        rest = &rest[count..];
    }
    writeln!(out, "]")?;
    kinds_text(topology, out)?;
    if topology.distances_told { distances_text(topology, fact, told, out) } else { Ok(()) }
}

/// The table of distances with its own origin, or with the topology's if nothing else is known.
fn distances_text(topology: &Topology, fact: &Fact, told: Option<&Told>, out: &mut String) -> std::fmt::Result {
    let classes = topology.node_distances();
    let ends = [classes.first(), classes.last()].map(|end| end.map_or(0, |&end| u64::from(end)));
    let (source, how, (low, high)) = match told {
        Some(told) => (&told.source, told.how, told.range),
        None => (&fact.source, fact.how, (ends[0], ends[1])),
    };
    let row = |row: &Vec<u32>| format!("        {row:?},\n");
    let rows: String = topology.distance.iter().map(row).collect();
    writeln!(out, "[topology.distances]\nsource = {}\nhow = \"{}\"", quoted(source), how.name())?;
    let table = &topology.distance;
    if (0..table.len()).any(|from| (0..from).any(|to| table[from][to] != table[to][from])) {
        writeln!(out, "asymmetric = true")?;
    }
    let local = LOCAL_DISTANCE;
    if low <= u64::from(local)
        || (0..table.len()).any(|from| (0..from).any(|to| table[from][to].min(table[to][from]) == local))
    {
        writeln!(out, "fake = true")?;
    }
    writeln!(out, "range = [{low}, {high}]\nrows = [\n{rows}]")
}

fn kinds_text(topology: &Topology, out: &mut String) -> std::fmt::Result {
    if !topology.kinds().is_empty() {
        let kind = |kind: &crate::topology::CpuKind| {
            format!("    {{ name = {}, cpus = \"{}\" }},\n", quoted(&kind.name), kind.cpus.list())
        };
        writeln!(out, "kinds = [\n{}]", topology.kinds().iter().map(kind).collect::<String>())?;
    }
    let mut by_capacity: Vec<(u32, CpuMask)> = Vec::new();
    for (cpu, of) in topology.cpus().filter(|(_, of)| of.capacity != 1024) {
        match by_capacity.iter_mut().find(|(capacity, _)| *capacity == of.capacity) {
            Some((_, cpus)) => cpus.set(cpu),
            None => {
                let mut cpus = CpuMask::new(NR_CPUS);
                cpus.set(cpu);
                by_capacity.push((of.capacity, cpus));
            }
        }
    }
    if !by_capacity.is_empty() {
        let line = |(value, cpus): &(u32, CpuMask)| format!("    {{ value = {value}, cpus = \"{}\" }},\n", cpus.list());
        writeln!(out, "capacity = [\n{}]", by_capacity.iter().map(line).collect::<String>())?;
    }
    Ok(())
}

impl Description {
    /// This machine as the text of a machine file, with its topology listed.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_toml(&mut out);
        out
    }

    fn write_toml(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "name = {}\ndescription = {}", quoted(&self.name), quoted(&self.about))?;
        for (name, figure) in self.figures().filter(|(name, _)| !name.contains('.')) {
            writeln!(out, "{} = {}", key(name), figure_text(figure))?;
        }
        writeln!(out)?;
        topology_text(&self.topology, &self.topology_fact, told_of(self).as_ref(), out)?;
        let mut sections: Vec<&str> = Vec::new();
        let names = self.figures().map(|(name, _)| name).chain(self.facts().map(|(name, _)| name));
        for section in names.filter_map(|name| Some(name.split_once('.')?.0)) {
            if !sections.contains(&section) {
                sections.push(section);
            }
        }
        for section in sections.into_iter().filter(|section| *section != "topology") {
            if section == "since" {
                self.write_since(out)?;
                continue;
            }
            writeln!(out, "\n[{section}]")?;
            let here =
                |name: &str| name.split_once('.').filter(|(of, _)| *of == section).map(|(_, name)| name.to_string());
            // Facts of idle states are written with the states.
            let facts = self.facts().filter_map(|(name, fact)| Some((here(name)?, fact)));
            for (name, fact) in facts.filter(|(name, _)| !name.contains('.')) {
                writeln!(out, "{name} = {}", fact_text(fact))?;
            }
            if section == "idle" {
                self.write_idle(out, "idle", "idle")?;
                continue;
            }
            if section == "energy" {
                self.write_energy(out)?;
                continue;
            }
            if section == "kind" {
                self.write_kinds(out)?;
                continue;
            }
            for (name, figure) in self.figures().filter_map(|(name, figure)| Some((here(name)?, figure))) {
                writeln!(out, "{} = {}", key(&name), figure_text(figure))?;
            }
        }
        Ok(())
    }

    fn write_since(&self, out: &mut String) -> std::fmt::Result {
        let mut sections: BTreeMap<(&str, &str), Vec<(&str, &Figure)>> = BTreeMap::new();
        for (name, figure) in self.figures() {
            let Some((kernel, (section, name))) = split(name).and_then(|(of, name)| Some((of, name.split_once('.')?)))
            else {
                continue;
            };
            sections.entry((kernel, section)).or_default().push((name, figure));
        }
        for ((kernel, section), figures) in sections {
            writeln!(out, "\n[since.{}.{section}]", quoted(kernel))?;
            for (name, figure) in figures {
                writeln!(out, "{} = {}", key(name), figure_text(figure))?;
            }
        }
        Ok(())
    }

    fn write_kinds(&self, out: &mut String) -> std::fmt::Result {
        for kind in self.topology.kinds() {
            let prefix = format!("kind.{}.", kind.name);
            let mut told =
                self.figures().filter_map(|(name, figure)| Some((name.strip_prefix(&prefix)?, figure))).peekable();
            if told.peek().is_some() {
                writeln!(out, "\n[kind.{}]", key(&kind.name))?;
            }
            for (name, figure) in told.filter(|(name, _)| !name.starts_with("idle.")) {
                writeln!(out, "{} = {}", key(name), figure_text(figure))?;
            }
            self.write_idle(out, &format!("kind.{}.idle", key(&kind.name)), &format!("{prefix}idle"))?;
        }
        Ok(())
    }

    fn write_energy(&self, out: &mut String) -> std::fmt::Result {
        let text = |name: &str| figure_text(self.figure(name).expect("a domain's figures were read with it"));
        let package = ["awake", "asleep"].map(|name| (name, self.figure(&format!("energy.package.{name}"))));
        if package[0].1.is_some() {
            writeln!(out, "\n[energy.package]")?;
        }
        for (name, figure) in package.into_iter().filter_map(|(name, figure)| Some((name, figure?))) {
            writeln!(out, "{name} = {}", figure_text(figure))?;
        }
        for domain in self.energy_domains() {
            writeln!(out, "\n[[energy.domain]]\ncpus = \"{}\"", domain.cpus.list())?;
            for state in domain.state_names() {
                writeln!(out, "\n[[energy.domain.state]]")?;
                for name in ["frequency", "power"] {
                    writeln!(out, "{name} = {}", text(&format!("{state}.{name}")))?;
                }
            }
            for (state, figure) in domain.idle_names() {
                writeln!(out, "\n[[energy.domain.idle]]\nstate = {}\npower = {}", quoted(state), text(&figure))?;
            }
        }
        Ok(())
    }

    /// The states whose figures' names begin with `section`, as tables at that path.
    fn write_idle(&self, out: &mut String, path: &str, section: &str) -> std::fmt::Result {
        for name in ["halt_poll", "relax"] {
            if let Some(figure) = self.figure(&format!("{section}.{name}")) {
                writeln!(out, "{name} = {}", figure_text(figure))?;
            }
        }
        for state in &self.idle_states {
            let prefix = format!("{section}.{state}.");
            let mut figures =
                self.figures().filter_map(|(name, figure)| Some((name.strip_prefix(&prefix)?, figure))).peekable();
            if figures.peek().is_some() {
                writeln!(out, "\n[[{path}.state]]\nname = {}", quoted(state))?;
            }
            for (name, figure) in figures {
                writeln!(out, "{} = {}", key(name), figure_text(figure))?;
            }
            for (name, fact) in self.facts().filter_map(|(name, fact)| Some((name.strip_prefix(&prefix)?, fact))) {
                writeln!(out, "{} = {}", key(name), fact_text(fact))?;
            }
        }
        Ok(())
    }
}
