//! The machine files that ship with the library.

use super::{Description, How, parse};
use crate::topology::Topology;

/// Name and text of each machine that ships, in alphabetical order.
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

/// Name and text of each file that ships for others to extend: they are no machines.
pub const BASES: &[(&str, &str)] = &[
    ("amd-epyc", include_str!("../../../../machines/bases/amd-epyc.toml")),
    ("linux-arm64", include_str!("../../../../machines/bases/linux-arm64.toml")),
    ("linux-x86", include_str!("../../../../machines/bases/linux-x86.toml")),
];

/// The machine that ships whose prices suit a topology best: by its number of packages, and for one package by the
/// width of its last level cache (up to 16 CPUs are a desktop's ring, more a server's).
pub fn default_prices(topology: &Topology) -> &'static str {
    let widest = topology.llcs().iter().map(|llc| llc.weight()).max().unwrap_or(1);
    match topology.packages().len() {
        0 | 1 if widest <= 16 => "skylake-uma-8",
        0..=4 => "xeon-e5-2670v3-2s",
        _ => "ivybridge-ex-16s",
    }
}

/// A machine for a topology that comes without prices from `source`: those of [`default_prices`], all of them marked as guesses.
///
/// # Panics
/// If a machine file that ships does not load, which the tests exclude.
pub fn for_topology(name: &str, topology: Topology, source: &str, how: How) -> Description {
    let prices = default_prices(&topology);
    let file = builtin().iter().find(|(name, _)| *name == prices);
    let (_, text) = file.unwrap_or_else(|| panic!("no machine {prices} ships"));
    let description = parse(text, &format!("machines/{prices}.toml"));
    description.unwrap_or_else(|error| panic!("{error}")).with_topology(topology, source, how).named(name)
}
