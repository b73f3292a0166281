//! The machine files that ship with the library.

use super::told_kinds::is_intels;
use super::toml_text::{Table, Text};
use super::topology_table::read_topology;
use super::{Description, How, parse};
use crate::topology::{Topology, apart};

/// Name and text of each built-in machine, in alphabetical order.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    macro_rules! machines {
        ($($name:literal,)+) => {
            &[$(($name, include_str!(concat!("../../../../machines/", $name, ".toml"))),)+]
        };
    }
    machines![
        "ampere-altra-q80-33-2s",
        "cloud-vm-2",
        "core-i7-3770",
        "core-i9-12900k",
        "epyc-7742-2s-nps1",
        "epyc-7742-2s-nps2",
        "epyc-7742-2s-nps4",
        "epyc-7763-2s-nps1",
        "epyc-7763-2s-nps2",
        "epyc-7763-2s-nps4",
        "epyc-9654",
        "ivybridge-ex-16s",
        "kunpeng-920-6426",
        "power9-16c-2s",
        "skylake-uma-8",
        "snapdragon-845",
        "sparc-t4-2",
        "xeon-e5-2670v3-2s",
        "xeon-gold-6148-2s",
        "xeon-platinum-8375c-2s",
        "xeon-platinum-8480-2s",
    ]
}

/// Name and text of each built-in file that others extend: these are not machines.
pub const BASES: &[(&str, &str)] = &[
    ("amd-epyc", include_str!("../../../../machines/bases/amd-epyc.toml")),
    ("linux-arm64", include_str!("../../../../machines/bases/linux-arm64.toml")),
    ("linux-x86", include_str!("../../../../machines/bases/linux-x86.toml")),
];

/// The topology of a built-in machine, which its own file contains.
pub(super) fn topology_of(name: &str, text: &str) -> Topology {
    let read = || {
        let document = Text::new(name, text, 0).parse()?;
        let root = Table::new("", &document).expect("a document is a table");
        let topology = root.table("topology")?.unwrap_or_else(|| panic!("{name} extends another's topology"));
        read_topology(&topology)
    };
    read().unwrap_or_else(|error| panic!("{error}")).0
}

/// Whether a machine has several kinds of CPU, and how that is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mix {
    None,
    Capacities,
    Kinds,
}

fn mix_of(topology: &Topology) -> Mix {
    let capacities = || topology.cpus().map(|(_, cpu)| u64::from(cpu.capacity));
    let differ = capacities().min().zip(capacities().max()).is_some_and(|(least, most)| apart(least, most));
    match topology.kinds() {
        kinds if kinds.len() > 1 && kinds.iter().all(is_intels) => Mix::Kinds,
        _ if differ => Mix::Capacities,
        kinds if kinds.len() > 1 => Mix::Kinds,
        _ => Mix::None,
    }
}

/// The built-in machine with the same numbers of packages, NUMA nodes, last level caches, cores and CPUs as this
/// topology, and the same mix of CPUs, if there is one. Of several it is the one that [`default_prices`] names, or else
/// the first.
///
/// # Panics
/// As [`for_topology`].
pub fn prices_of_shape(topology: &Topology) -> Option<&'static str> {
    let shape =
        |of: &Topology| [of.packages().len(), of.nodes().len(), of.llcs().len(), of.cores().len(), of.nr_cpus()];
    let alike = |of: &Topology| shape(of) == shape(topology) && mix_of(of) == mix_of(topology);
    let same = builtin().iter().filter(|(name, text)| alike(&topology_of(name, text))).map(|&(name, _)| name);
    let same: Vec<&str> = same.collect();
    let (usual, _) = default_prices(topology);
    if same.contains(&usual) { Some(usual) } else { same.first().copied() }
}

/// No desktop or laptop with a mix of CPUs has more (Intel's Core i9-13900K has this many: The Register, 2022-09-27):
/// servers whose cores' highest frequencies differ are not hybrids.
const MOST_HYBRID: usize = 32;

/// The built-in machine whose prices are used if none has a topology's shape, and the reason. The choice depends on the
/// number of packages. For one package it depends on the width of its last level cache (up to 16 CPUs suggest a
/// desktop's ring, more a server); with a mix of CPUs it is Arm's if their capacities are more than a tenth apart, or
/// else Intel's.
pub fn default_prices(topology: &Topology) -> (&'static str, &'static str) {
    let widest = topology.llcs().iter().map(|llc| llc.weight()).max().unwrap_or(1);
    let by_width = "chosen by the number of packages and of CPUs that share a last level cache";
    let small = topology.packages().len() < 2 && topology.nr_cpus() <= MOST_HYBRID;
    match mix_of(topology) {
        Mix::Capacities if small => return ("snapdragon-845", "which has CPUs of several capacities too"),
        Mix::Kinds if small => return ("core-i9-12900k", "which has CPUs of several kinds too"),
        _ => {}
    }
    let prices = match topology.packages().len() {
        0 | 1 if widest <= 16 => "skylake-uma-8",
        0..=4 => "xeon-e5-2670v3-2s",
        _ => "ivybridge-ex-16s",
    };
    (prices, by_width)
}

/// Machines with a processor that is sold: words of its name in /proc/cpuinfo, and the number of NUMA nodes in a
/// package.
const PROCESSORS: &[(&str, &[&str], usize)] = &[
    ("core-i7-3770", &["i7-3770"], 1),
    ("core-i9-12900k", &["i9-12900k"], 1),
    ("epyc-7742-2s-nps1", &["epyc", "7742"], 1),
    ("epyc-7742-2s-nps2", &["epyc", "7742"], 2),
    ("epyc-7742-2s-nps4", &["epyc", "7742"], 4),
    ("epyc-7763-2s-nps1", &["epyc", "7763"], 1),
    ("epyc-7763-2s-nps2", &["epyc", "7763"], 2),
    ("epyc-7763-2s-nps4", &["epyc", "7763"], 4),
    ("epyc-9654", &["epyc", "9654"], 1),
    ("power9-16c-2s", &["power9"], 1),
    ("snapdragon-845", &["sdm845"], 1),
    ("sparc-t4-2", &["sparc-t4"], 1),
    ("xeon-e5-2670v3-2s", &["e5-2670", "v3"], 1),
    ("xeon-gold-6148-2s", &["xeon", "gold", "6148"], 1),
    ("xeon-platinum-8375c-2s", &["xeon", "platinum", "8375c"], 1),
    ("xeon-platinum-8480-2s", &["xeon", "platinum", "8480"], 1),
    ("xeon-platinum-8480-2s", &["xeon", "platinum", "8480+"], 1),
];

/// The built-in machine with the processor that Linux calls `model`; of several, the one with as many nodes per
/// package.
pub fn prices_of_processor(model: &str, topology: &Topology) -> Option<&'static str> {
    let plain = model.to_ascii_lowercase().replace("(r)", "").replace("(tm)", "").replace(',', " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    let nodes = topology.nodes().len() / topology.packages().len().max(1);
    let named = |it: &&(&str, &[&str], usize)| words.windows(it.1.len()).any(|window| window == it.1);
    let same = || PROCESSORS.iter().filter(named);
    same().find(|it| it.2 == nodes).or(same().next()).map(|it| it.0)
}

/// A machine for a topology from `source` that comes without prices: with those of [`prices_of_shape`], or else of
/// [`default_prices`], all of them marked as guesses.
///
/// # Panics
/// If a built-in machine file does not load, which the tests exclude.
pub fn for_topology(name: &str, topology: Topology, source: &str, how: How) -> Description {
    let prices = prices_of_shape(&topology).unwrap_or_else(|| default_prices(&topology).0);
    with_prices(prices, name, topology, source, how)
}

/// The same with the prices of the built-in machine `prices`.
///
/// # Panics
/// As [`for_topology`], or if no such machine ships.
pub fn with_prices(prices: &str, name: &str, topology: Topology, source: &str, how: How) -> Description {
    let file = builtin().iter().find(|(name, _)| *name == prices);
    let (_, text) = file.unwrap_or_else(|| panic!("no machine {prices} ships"));
    let description = parse(text, &format!("machines/{prices}.toml"));
    description.unwrap_or_else(|error| panic!("{error}")).with_topology(topology, source, how).named(name)
}
