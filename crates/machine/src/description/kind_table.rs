//! `[kind]` in a machine file: what tells CPUs of different make apart, by the names that `[topology]` gives them in `kinds`.
//!
//! ```toml
//! [kind.E-core]
//! speed = { value = 0.5, unit = "ratio", source = "...", how = "...", range = [0.4, 0.6] }
//! ```
//!
//! `max` is the highest frequency of such a CPU, where that is not the machine's: what is shown of its clock is in proportion to it.
//! `highest_perf` is what firmware tells of such a CPU's highest performance (CPPC): where it differs Linux ranks the cores by it.
//! `speed` is how fast a CPU is, whatever the scheduler is told of its capacity: hybrid processors of Intel with their second
//! threads on have cores of two speeds and one capacity.

use super::Description;
use super::error::DescriptionError;
use super::figure::Dimension;
use super::nearest::nearest_name;
use super::read::{Bounds, push_figure};
use super::toml_text::Table;
use crate::topology::excerpt;
use sched::cpu_topology::SCHED_CAPACITY_SCALE;

const RULE: &str = "a kind of CPU is one of [topology]'s kinds, and has a speed";

/// Reads the table, if there is one, into the machine's figures and topology.
pub(super) fn read_kinds(root: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    let Some(kinds) = root.table("kind")? else { return Ok(()) };
    for entry in kinds.entries() {
        let table = kinds.as_table(&entry.name, &entry.node)?;
        let known = || into.topology.kinds().iter().map(|kind| kind.name.as_str());
        let Some(kind) = into.topology.kinds().iter().find(|kind| kind.name == entry.name) else {
            let found = format!("the kind `{}`, which no CPU is of", excerpt(&entry.name, 60));
            let expected = match nearest_name(&entry.name, known()) {
                Some(nearest) => format!("`{nearest}`, perhaps"),
                None => format!("one of [topology]'s kinds: {}", known().collect::<Vec<_>>().join(", ")),
            };
            return Err(entry.node.source.error(&entry.name_span, &found, &expected, RULE));
        };
        let cpus = kind.cpus.clone();
        table.only(&["speed", "max", "highest_perf"], RULE)?;
        if let Some(written) = table.get("max") {
            let bounds = Bounds { dimensions: &[Dimension::Frequency], limits: Some((1_000_000, 20_000_000_000)) };
            push_figure(&table, "max", written, &bounds, into)?;
        }
        if let Some(written) = table.get("highest_perf") {
            // 255 is what firmware tells when it tells nothing.
            let bounds = Bounds { dimensions: &[Dimension::Count], limits: Some((1, 254)) };
            push_figure(&table, "highest_perf", written, &bounds, into)?;
            let highest_perf = into.figures.last().expect("a figure was pushed").figure.count() as u32;
            into.topology = into.topology.clone().with_highest_perf(&cpus, highest_perf);
        }
        let Some(written) = table.get("speed") else {
            if table.get("max").or(table.get("highest_perf")).is_some() {
                continue;
            }
            return Err(table.error(&format!("no `speed` in {}", table.title()), "speed = { value = ... }", RULE));
        };
        let bounds = Bounds { dimensions: &[Dimension::Ratio], limits: Some((1, 1_000)) };
        push_figure(&table, "speed", written, &bounds, into)?;
        let permille = into.figures.last().expect("a figure was pushed").figure.permille();
        let speed = (permille * u64::from(SCHED_CAPACITY_SCALE)).div_ceil(1_000) as u32;
        into.topology = into.topology.clone().with_speed(&cpus, speed);
    }
    let told = into.topology.cpus().filter(|(_, cpu)| cpu.highest_perf.is_some()).count();
    if told != 0 && told != into.topology.nr_cpus() {
        let found = format!("a `highest_perf` of {told} CPUs of {}", into.topology.nr_cpus());
        return Err(kinds.error(&found, "one in each kind, and every CPU of some kind", RULE));
    }
    Ok(())
}
