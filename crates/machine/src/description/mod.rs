//! Machine files: a topology and every number that a simulation of the machine needs, each with its unit, its source,
//! its origin, and the bounds of its plausible values. The files are `machines/*.toml`.
//!
//! A file has `name`, `description`, `[topology]` (hwloc's synthetic notation, or lists of CPUs), `[[idle.state]]`, the
//! figures of [`KEYS`] and the facts of [`FACTS`]. The sections of [`WORK`] accept any name; `[energy]`, `[disk]` and
//! `[java]` are optional. What it does not say comes from the file that it `extends`. Every figure is a table `{ value,
//! unit, source, how, range }`, in one of [`UNITS`]; a file that omits one of the five is refused. `docs/machines.md`
//! describes this for users.
//! file that leaves one of the five out is refused. `docs/machines.md` tells users of it.
//!
//! Numbers are kept as exact integers: picoseconds, hertz, cycles, bytes, thousandths. Nothing here is a float.

mod builtin;
mod cache_rules;
mod disk_table;
mod distance_rules;
mod distance_table;
mod energy_table;
mod entry;
mod error;
mod extends;
mod figure;
mod frequency_rules;
mod idle_table;
mod java_table;
mod kind_table;
mod limit_rules;
mod names;
mod nearest;
mod pairs;
mod power_table;
mod read;
mod smt_rules;
#[cfg(test)]
mod tests;
mod tick_rules;
mod told_kinds;
mod toml_text;
mod topology_table;
mod usual;
mod work_table;
mod write;

pub use builtin::{BASES, builtin, default_prices, for_topology, prices_of_processor, prices_of_shape, with_prices};
pub use error::DescriptionError;
pub use extends::{Base, FindBase, bases, shipped};
pub use figure::{Dimension, Figure, How, ScaleError, UNITS, Unit, scaled};
pub use names::{
    FACTS, IDLE_KEYS, IDLE_STATE_FACTS, KEYS, KIND_KEYS, Key, NEEDED_BY_DRIVERS, OPTIONAL_FACTS, WORK,
    is_frequency_of_kind, key_of, vendors_of_driver,
};
pub use nearest::nearest_name;
pub use read::{parse, parse_over};
pub use tick_rules::{HERTZ, is_hz};
pub use write::topology_section;

use crate::idle::Governor;
use crate::smt::SmtPrices;
use crate::topology::{CpuKind, Distance, Location, Topology};
use units::{CpuId, CpuMask, Cycles, Ps};

/// Up to how many threads of a core have prices.
const MOST_THREADS: usize = 8;

/// A fact that is a word rather than a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub value: String,
    pub source: String,
    pub how: How,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFact {
    name: String,
    fact: Fact,
    at: Location,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFigure {
    /// `section.name`.
    name: String,
    figure: Figure,
    /// Where it was read, for messages about its name.
    at: Location,
    /// How many files of the chain of `extends` lead from the machine's own to that file; 0: it is the machine's own.
    depth: usize,
}

/// What an idle state costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    pub name: String,
    /// Declared by the driver; the governor uses it.
    pub exit_latency: Ps,
    /// Declared by the driver; the governor uses it.
    pub target_residency: Ps,
    /// The real time from the wakeup event to the first instruction.
    pub wake: Ps,
    /// How much longer waking takes after the whole package was in this state; 0 if the package has no such state.
    pub package_wake: Ps,
    /// A core has emptied its own caches once all its threads are in such states.
    pub flushes: bool,
}

/// CPUs that share a clock and whose power is known. The numbers are figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyDomain {
    pub cpus: CpuMask,
    /// How many frequencies have a known power.
    states: usize,
    /// The idle states with a known power, the shallowest first: none, or all that do not poll.
    idle: Vec<String>,
}

/// A machine: its topology and its prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    name: String,
    about: String,
    topology: Topology,
    topology_fact: Fact,
    figures: Vec<NamedFigure>,
    facts: Vec<NamedFact>,
    /// Names, the shallowest first.
    idle_states: Vec<String>,
    energy: Vec<EnergyDomain>,
    file: String,
}

impl Description {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One or more sentences about the machine.
    pub fn about(&self) -> &str {
        &self.about
    }

    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The origin of the topology; the value is the synthetic notation or a summary.
    pub fn topology_fact(&self) -> &Fact {
        &self.topology_fact
    }

    /// All figures in the order of the file, for `machines show`.
    pub fn figures(&self) -> impl Iterator<Item = (&str, &Figure)> {
        self.figures.iter().map(|named| (named.name.as_str(), &named.figure))
    }

    /// All facts that are words.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.facts.iter().map(|named| (named.name.as_str(), &named.fact))
    }

    /// A figure by its full name, such as `line.llc`, `paths.schedule` or `idle.C1.wake`.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|named| named.name == name).map(|named| &named.figure)
    }

    pub fn fact(&self, name: &str) -> Option<&Fact> {
        self.facts.iter().find(|named| named.name == name).map(|named| &named.fact)
    }

    /// A figure whose presence the loader has checked.
    fn required(&self, name: &str) -> &Figure {
        self.figure(name).unwrap_or_else(|| panic!("the machine {} lacks the figure {name}", self.name))
    }

    /// Replaces the figure of this name, or adds it. For experiments with prices.
    ///
    /// # Panics
    /// If a figure of this name has another dimension.
    pub fn replace(&mut self, name: &str, figure: Figure) {
        if let Some(known) = key_of(name) {
            assert_eq!(known.dimension, figure.unit.dimension, "{name} is no {}", figure.unit.name);
        }
        match self.figures.iter_mut().find(|named| named.name == name) {
            Some(named) => {
                if name.starts_with(distance_table::PREFIX) {
                    let (from, to) = (named.figure.value as u32, figure.value as u32);
                    self.topology = self.topology.clone().with_node_distance(from, to);
                }
                named.figure = figure;
            }
            None => self.figures.push(NamedFigure {
                name: name.to_string(),
                figure,
                at: Location::of(&self.file),
                depth: 0,
            }),
        }
    }

    /// Refuses names in a section (`paths`, `os`) that are not among `known`, with the place and the nearest name.
    pub fn check_names(&self, section: &str, known: &[&str]) -> Result<(), DescriptionError> {
        for named in &self.figures {
            let (kernel, full) =
                work_table::split(&named.name).map_or((None, &*named.name), |(kernel, full)| (Some(kernel), full));
            let Some(name) = full.strip_prefix(section).and_then(|rest| rest.strip_prefix('.')) else { continue };
            if !known.contains(&name) {
                let section = kernel.map_or(section.to_string(), |kernel| format!("since.\"{kernel}\".{section}"));
                let expected = match nearest_name(name, known.iter().copied()) {
                    Some(nearest) => format!("`{nearest}`, perhaps"),
                    None => format!("a name that [{section}] knows, of which there are {}", known.len()),
                };
                let found = format!("the unknown name `{name}` in [{section}]");
                let rule = "only known names, so that a slip of the hand is not ignored".to_string();
                return Err(DescriptionError { at: named.at.clone(), found, expected, rule });
            }
        }
        Ok(())
    }

    /// These prices for another machine, whose topology comes from `source`: all figures become guesses with wider
    /// ranges and name this machine as their source.
    pub fn with_topology(self, topology: Topology, source: &str, how: How) -> Description {
        let told_by = Fact { value: topology.summary(), source: source.to_string(), how };
        let (figures_of_kinds, facts_of_kinds) = told_kinds::of_kinds(&self, &topology, &told_by);
        let from = self.name;
        let borrowed = |named: NamedFigure| {
            let bounds = key_of(&named.name).map_or((0, u64::MAX), |key| key.bounds);
            let told = cache_rules::told_size(&named.name, &named.figure, &topology, &told_by);
            let figure = told.unwrap_or_else(|| named.figure.borrowed(&from, bounds));
            NamedFigure { figure, ..named }
        };
        let fact = |named: NamedFact| {
            let source = format!("taken from {from}: {}", named.fact.source);
            NamedFact { fact: Fact { source, how: How::Guess, ..named.fact }, ..named }
        };
        let of_topology = |name: &str| {
            ["energy.", "frequency.power_", "kind.", "processor.", "topology."]
                .iter()
                .any(|section| name.starts_with(section))
        };
        let distances = distance_table::Told::by_user(&topology, &told_by, &self.file);
        let distances = distances.unwrap_or_else(|| distance_table::Told::nothing(Location::of(&self.file), 0));
        let distances = distance_table::distance_figures(&topology, &distances).into_iter();
        // These figures are about the machine's own CPUs only.
        let foreign = |name: &str| of_topology(name) || smt_rules::is_beyond(name, &topology);
        let taken = self.figures.into_iter().filter(|named| !foreign(&named.name)).map(borrowed);
        let mut figures: Vec<NamedFigure> = distances.chain(taken).chain(figures_of_kinds).collect();
        cache_rules::fit_borrowed(&mut figures, &topology);
        let facts = self.facts.into_iter().filter(|named| !of_topology(&named.name)).map(fact);
        let mut machine = Description {
            about: format!("{}. Prices of {from}.", topology.summary()),
            topology_fact: told_by.clone(),
            topology,
            figures,
            facts: facts.chain(facts_of_kinds).collect(),
            name: format!("{from}-prices"),
            energy: Vec::new(),
            ..self
        };
        distance_rules::borrow_missing(&mut machine, &from);
        for kind in machine.topology.kinds.clone() {
            kind_table::apply(&mut machine, &kind);
        }
        machine
    }

    pub fn named(self, name: &str) -> Description {
        Description { name: name.to_string(), ..self }
    }

    /// The figure `section.<distance>`, with its name. If it is not given: that of the next nearer distance that is, or
    /// else of the next farther one. A file gives it for every distance that its topology has.
    fn nearest_price(&self, section: &str, distance: Distance) -> Option<(String, &Figure)> {
        let given = |index: usize| {
            let name = format!("{section}.{}", Distance::from_index(index).name());
            self.figure(&name).map(|figure| (name, figure))
        };
        let nearer = (1..=distance.index()).rev().find_map(given);
        nearer.or_else(|| (distance.index()..Distance::Remote(u8::MAX).index()).find_map(given))
    }

    fn by_distance(&self, section: &str, distance: Distance) -> Ps {
        self.nearest_price(section, distance).map_or(Ps::ZERO, |(_, figure)| figure.time())
    }

    /// Fetching a modified cache line from another CPU; free for the CPU itself.
    pub fn line_transfer(&self, distance: Distance) -> Ps {
        if distance == Distance::Same { Ps::ZERO } else { self.by_distance("line", distance) }
    }

    /// [`Description::line_transfer`] for every distance of the topology, by [`Distance::index`].
    pub fn line_transfers(&self) -> Vec<Ps> {
        let farthest = self.topology.distances().last().map_or(0, |distance| distance.index());
        (0..=farthest.max(Distance::Remote(1).index()))
            .map(|index| self.line_transfer(Distance::from_index(index)))
            .collect()
    }

    /// A clean line found in the core's own last level cache.
    pub fn llc_hit(&self) -> Ps {
        self.required("line.llc_hit").time()
    }

    /// A line from memory at [`Topology::memory_distance`](crate::topology::Topology::memory_distance).
    pub fn memory_load(&self, distance: Distance) -> Ps {
        match distance {
            Distance::Package | Distance::Remote(_) => {
                let local = self.required("memory.local").time();
                self.by_distance("memory", distance).max(local)
            }
            _ => self.required("memory.local").time(),
        }
    }

    /// The same by [`Distance::index`], for all distances of memory.
    pub fn memory_loads(&self) -> Vec<Ps> {
        let farthest = self.topology.memory_distances().last().map_or(0, |distance| distance.index());
        (0..=farthest).map(|index| self.memory_load(Distance::from_index(index))).collect()
    }

    /// The frequency of all CPUs while frequency is not simulated; not above a cap.
    pub fn fixed_hertz(&self) -> u64 {
        let fixed = self.required("frequency.fixed").hertz();
        self.figure("frequency.cap").map_or(fixed, |cap| cap.hertz().min(fixed))
    }

    /// The vendor of the processors, if the file says so: drivers for other vendors' processors do not work on this
    /// machine.
    pub fn vendor(&self) -> Option<&str> {
        match self.fact(names::MAKE)?.value.as_str() {
            names::AMD_ZEN => Some("amd"),
            "other" => None,
            vendor => Some(vendor),
        }
    }

    /// Whether the hardware can choose frequencies by itself.
    pub fn has_hardware_pstates(&self) -> bool {
        self.fact("frequency.control").is_some_and(|fact| fact.value == "hardware")
    }

    /// Whether a host governs the frequencies, and this guest sees nothing of them.
    pub fn host_governs_frequencies(&self) -> bool {
        self.fact(names::GOVERNED_BY).is_some_and(|fact| fact.value == names::HOST)
    }

    pub fn base_hertz(&self) -> u64 {
        self.required("frequency.base").hertz()
    }

    pub fn min_hertz(&self) -> u64 {
        self.required("frequency.min").hertz()
    }

    /// The highest frequency with `active_cores` active. A bin applies up to its number of active cores, as in the
    /// processors' registers (MSR_TURBO_RATIO_LIMIT and the counts beside it, which Linux 6.1's
    /// skx_set_max_freq_ratio() reads in this way): the bin with the least number that is not below `active_cores`;
    /// beyond all bins the last one; for a single core the highest frequency of all.
    pub fn turbo_hertz(&self, active_cores: u32) -> u64 {
        let step = |cores: u32| self.figure(&format!("frequency.turbo_{cores}"));
        let cores = active_cores.clamp(1, 255);
        let known = match cores {
            1 => step(1),
            _ => (cores..=255).find_map(step).or_else(|| (1..cores).rev().find_map(step)),
        };
        known.unwrap_or_else(|| self.required("frequency.max")).hertz()
    }

    /// How fast the threads of a core are beside each other. Kinds of work that are not given are as fast as computing
    /// beside computing.
    pub fn smt(&self) -> SmtPrices {
        let speed = self.required("smt.speed").permille();
        let given = |name: &str| self.figure(name).map(Figure::permille);
        let pair = |name: &str| given(name).unwrap_or(speed);
        let compute = [speed, pair("smt.compute_beside_memory")];
        let memory = [pair("smt.memory_beside_compute"), pair("smt.memory_beside_memory")];
        let of_threads = |threads: usize| given(&format!("smt.threads_{threads}")).unwrap_or(0);
        SmtPrices { pair: [compute, memory], threads: (0..=MOST_THREADS).map(of_threads).collect() }
    }

    /// Idle states, shallowest first.
    pub fn idle_states(&self) -> Vec<IdleState> {
        self.idle_states_of("idle")
    }

    fn idle_states_of(&self, section: &str) -> Vec<IdleState> {
        let time = |name: &str, key: &str| self.required(&format!("{section}.{name}.{key}")).time();
        let state = |name: &String| IdleState {
            name: name.clone(),
            exit_latency: time(name, "exit_latency"),
            target_residency: time(name, "target_residency"),
            wake: time(name, "wake"),
            package_wake: self.figure(&format!("{section}.{name}.package_wake")).map_or(Ps::ZERO, Figure::time),
            flushes: self.flushes(section, name),
        };
        self.idle_states.iter().map(state).collect()
    }

    /// Whether the idle state `state`, the names of whose figures begin with `section`, empties a core's own caches.
    fn flushes(&self, section: &str, state: &str) -> bool {
        let name = format!("{section}.{state}.{}", names::FLUSHES);
        self.fact(&name).is_some_and(|fact| fact.value == names::OWN_CACHES)
    }

    /// The kinds of CPU whose idle states have figures of their own, with those states; their names are the machine's.
    pub fn idle_states_of_kinds(&self) -> Vec<(CpuMask, Vec<IdleState>)> {
        let section = |kind: &CpuKind| format!("kind.{}.idle", kind.name);
        let has = |section: &String| self.figure(&format!("{section}.{}.wake", self.idle_states[0])).is_some();
        let own = |kind: &CpuKind| {
            let section = Some(section(kind)).filter(has)?;
            Some((kind.cpus.clone(), self.idle_states_of(&section)))
        };
        self.topology.kinds().iter().filter_map(own).collect()
    }

    /// The domains whose power is known; empty if it is not.
    pub fn energy_domains(&self) -> &[EnergyDomain] {
        &self.energy
    }

    /// Whether a store to the line that an idle CPU monitors wakes it.
    pub fn wakes_by_mwait(&self) -> bool {
        self.fact("idle.wake_by").is_some_and(|fact| fact.value == "mwait")
    }

    /// The governor of idle states that its driver or its boot options select; `None`: the kernel's default.
    pub fn idle_governor(&self) -> Option<Governor> {
        self.fact("idle.governor").and_then(|fact| Governor::from_name(&fact.value))
    }

    /// The longest time that the governor haltpoll polls on it, in nanoseconds; `None`: the kernel's default.
    pub fn halt_poll_ns(&self) -> Option<u32> {
        let time = self.figure("idle.halt_poll")?.time().ns().0;
        Some(u32::try_from(time).unwrap_or(u32::MAX))
    }

    /// Whether a package enters its own idle state only together with all others.
    pub fn packages_sleep_together(&self) -> bool {
        self.fact("idle.package_scope").is_some_and(|fact| fact.value == "machine")
    }

    /// Straight-line work of a function that is listed in `section`, one of [`WORK`]. Instructions are converted into
    /// cycles by the section's `cycles_per_instruction`, rounded to the nearest cycle, halves to even.
    fn work(&self, section: &str, name: &str) -> Option<Cycles> {
        let figure = self.figure(&format!("{section}.{name}"))?;
        if figure.unit.dimension == Dimension::Cycles {
            return Some(figure.cycles());
        }
        let factor = self.required(&format!("cycles_per_instruction.{section}"));
        let millionths = u128::from(figure.value) * u128::from(factor.value);
        let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
        let up = rest > 500_000 || (rest == 500_000 && whole % 2 == 1);
        Some(Cycles(whole as u64 + u64::from(up)))
    }

    /// The work of a function of the scheduler, if `[paths]` lists it.
    pub fn listed_path(&self, name: &str) -> Option<Cycles> {
        self.work("paths", name)
    }

    /// The work of a function of the rest of the kernel, if `[os]`, `[net]`, `[fs]` or `[idle_loop]` lists it.
    pub fn listed_os(&self, name: &str) -> Option<Cycles> {
        ["os", "net", "fs", "idle_loop"].into_iter().find_map(|section| self.work(section, name))
    }

    /// The work of functions that no section lists.
    pub fn default_path_cycles(&self) -> Cycles {
        self.required("default_path_cycles").cycles()
    }

    pub fn ipi_send(&self) -> Cycles {
        self.required("ipi.send").cycles()
    }

    pub fn ipi_receive(&self) -> Cycles {
        self.required("ipi.receive").cycles()
    }

    /// From the sending of an interrupt to the first instruction on a running CPU.
    pub fn ipi_delivery(&self, distance: Distance) -> Ps {
        let remote = self.figure("ipi.delivery_remote").filter(|_| matches!(distance, Distance::Remote(_)));
        remote.unwrap_or_else(|| self.required("ipi.delivery")).time()
    }

    /// The share of a load miss that a core cannot hide, in thousandths.
    pub fn read_stall(&self) -> u64 {
        self.required("line.read_stall").permille()
    }

    /// The share of a store miss that a core cannot hide, in thousandths.
    pub fn write_stall(&self) -> u64 {
        self.required("line.write_stall").permille()
    }

    /// Bytes of a core's level-1 data cache, by core: `cache.l1d_size` for the biggest cores, and for others in the
    /// proportion that the topology has. A cache that several cores share counts in equal parts.
    pub fn l1d_bytes(&self) -> Vec<u64> {
        self.of_cores("cache.l1d_size", 1)
    }

    /// The same for level 2, from `cache.l2_size`.
    pub fn l2_bytes(&self) -> Vec<u64> {
        self.of_cores("cache.l2_size", 2)
    }

    fn of_cores(&self, name: &str, level: u8) -> Vec<u64> {
        let whole = self.in_proportion(name, |cpu| self.topology.cache_bytes(cpu, level));
        let part = |cpu| whole(cpu) / self.topology.cores_of_cache(cpu, level);
        self.topology.cores().iter().filter_map(|core| core.cpus.first()).map(part).collect()
    }

    /// Bytes of each last level cache, in the topology's order.
    pub fn llc_bytes(&self) -> Vec<u64> {
        let bytes = self.in_proportion("cache.llc_size", |cpu| self.topology.llc_bytes(cpu));
        self.topology.llcs().iter().filter_map(CpuMask::first).map(bytes).collect()
    }

    /// The size of any CPU's cache, from the figure for the biggest CPUs' and the proportion of both in the topology.
    fn in_proportion(&self, name: &str, size: impl Fn(CpuId) -> Option<u64>) -> impl Fn(CpuId) -> u64 {
        let said = self.required(name).bytes();
        let of_biggest = size(self.topology.biggest_cpu());
        move |cpu| match (size(cpu), of_biggest) {
            (Some(this), Some(biggest)) if biggest > 0 => {
                (u128::from(said) * u128::from(this) / u128::from(biggest)) as u64
            }
            _ => said,
        }
    }

    /// From a load to its value, if the level-2 cache has it.
    pub fn l2_load(&self) -> Cycles {
        self.required("cache.l2_load").cycles()
    }

    /// How long a node's memory takes to deliver 1024 bytes at its highest bandwidth, in picoseconds; 0: no limit is
    /// known.
    pub fn memory_ps_per_kib(&self) -> u64 {
        self.figure("memory.delivery").map_or(0, Figure::ps_per_kib)
    }

    /// The same for a node without CPUs.
    pub fn far_memory_ps_per_kib(&self) -> u64 {
        self.figure("memory.delivery_far").map_or_else(|| self.memory_ps_per_kib(), Figure::ps_per_kib)
    }

    /// The same for what leads from memory to a last level cache, and for the links from one package to another.
    pub fn llc_link_ps_per_kib(&self) -> u64 {
        self.figure("memory.delivery_llc").map_or(0, Figure::ps_per_kib)
    }

    pub fn package_link_ps_per_kib(&self) -> u64 {
        self.figure("memory.delivery_remote").map_or(0, Figure::ps_per_kib)
    }

    pub fn line_bytes(&self) -> u64 {
        self.required("cache.line_size").bytes()
    }

    /// Lines that a core fetches in parallel when it refills its caches.
    pub fn refill_parallel(&self) -> u64 {
        self.required("cache.refill_parallel").count()
    }

    /// Copying between user and kernel memory, in picoseconds per 1024 bytes.
    pub fn copy_ps_per_kib(&self) -> u64 {
        self.required("copy.user").ps_per_kib()
    }

    /// CONFIG_HZ.
    pub fn tick_hertz(&self) -> u64 {
        self.required("tick.rate").hertz()
    }
}
