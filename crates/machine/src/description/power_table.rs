//! The part of `[energy]` that is not used for the scheduler's model: what idle CPUs draw, and what a package draws
//! beside its CPUs. With it energy can be counted.

use super::Description;
use super::entry::{Bounds, push_figure};
use super::error::DescriptionError;
use super::figure::Dimension;
use super::nearest::nearest_name;
use super::toml_text::{Node, Table};
use crate::topology::excerpt;
use sched::cpu_topology::SCHED_CAPACITY_SCALE;
use units::{CpuMask, Ps};

const RULE_IDLE: &str = "each idle state that does not poll has a power, where one has";
const RULE_ORDER: &str =
    "a CPU draws no more in a deeper idle state, and in no idle state more than at its lowest frequency";
const RULE_PACKAGE: &str =
    "a package draws no more asleep than awake, and sleeps where its CPUs have a state with `package_wake`";
const RULE_EVERY: &str = "an energy model tells of every CPU";
const RULE_WHOLE: &str = "energy is reckoned with the power of every CPU in every state, or not at all";

/// In microwatts. An idle state may draw 0, if all other powers are given as what is drawn beyond it.
const IDLE_POWER: (u64, u64) = (0, 64_000_000);
/// In microwatts, up to a kilowatt.
const PACKAGE_POWER: (u64, u64) = (0, 1_000_000_000);

/// `[[energy.domain.idle]]` of a domain: the names of the states, shallowest first.
pub(super) fn read_idle_power(
    domain: &Table,
    cpus: &CpuMask,
    into: &mut Description,
) -> Result<Vec<String>, DescriptionError> {
    let mut given: Vec<(String, &Node)> = Vec::new();
    for value in domain.array("idle", "[[energy.domain.idle]]")?.unwrap_or_default() {
        let table = domain.as_table("idle", value)?;
        table.only(&["state", "power"], RULE_IDLE)?;
        let state = table.string("state", RULE_IDLE)?.to_string();
        let at = table.get("state").unwrap_or(value);
        check_state(&state, at, into)?;
        if given.iter().any(|(other, _)| *other == state) {
            return Err(at.error(&format!("the idle state {state} for the second time"), "each once", RULE_IDLE));
        }
        let table = table.named(idle_name(cpus, &state));
        let Some(written) = table.get("power") else {
            let found = format!("no `power` in {}", table.title());
            return Err(table.error(&found, "power = { value = ... }", RULE_IDLE));
        };
        push_figure(
            &table,
            "power",
            written,
            &Bounds { dimensions: &[Dimension::Power], limits: Some(IDLE_POWER) },
            into,
        )?;
        given.push((state, written));
    }
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let states: Vec<String> = into.idle_states.iter().filter(|state| !polls(into, state)).cloned().collect();
    if let Some(missing) = states.iter().find(|state| given.iter().all(|(other, _)| other != *state)) {
        let found = format!("no power of the idle state {missing} of CPUs {}", cpus.list());
        return Err(domain.error(&found, &format!("[[energy.domain.idle]] with state = \"{missing}\""), RULE_IDLE));
    }
    let lowest = format!("energy.{}.1.power", cpus.list());
    let mut above = (lowest.clone(), format!("at {}", shown(into, &format!("energy.{}.1.frequency", cpus.list()))));
    for state in &states {
        let name = format!("{}.power", idle_name(cpus, state));
        let value = |name: &str| into.figure(name).map(|figure| figure.value);
        if value(&name) > value(&above.0) {
            let found = format!("`{name}` of {} beside {} {}", shown(into, &name), shown(into, &above.0), above.1);
            let (_, at) = given.iter().find(|(other, _)| other == state).expect("all states are given");
            return Err(at.error(&found, &format!("{} or less", shown(into, &above.0)), RULE_ORDER));
        }
        above = (name, format!("in {state}"));
    }
    Ok(states)
}

/// A figure as it is shown to a reader.
fn shown(machine: &Description, name: &str) -> String {
    machine.figure(name).map_or_else(String::new, ToString::to_string)
}

fn polls(machine: &Description, state: &str) -> bool {
    machine.figure(&format!("idle.{state}.target_residency")).is_some_and(|figure| figure.time() == Ps::ZERO)
}

fn check_state(state: &str, at: &Node, machine: &Description) -> Result<(), DescriptionError> {
    if !machine.idle_states.iter().any(|known| known == state) {
        let known = || machine.idle_states.iter().map(String::as_str);
        let expected = match nearest_name(state, known()) {
            Some(nearest) => format!("`{nearest}`, perhaps"),
            None => format!("one of {}", known().collect::<Vec<_>>().join(", ")),
        };
        return Err(at.error(&format!("the unknown idle state `{}`", excerpt(state, 40)), &expected, RULE_IDLE));
    }
    if polls(machine, state) {
        let found = format!("the idle state {state}, which polls");
        return Err(at.error(&found, "none: a CPU that polls draws what one that executes does", RULE_IDLE));
    }
    Ok(())
}

/// `[energy.package]`, if it is there.
pub(super) fn read_package(energy: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    let Some(package) = energy.table("package")? else { return Ok(()) };
    package.only(&["awake", "asleep"], RULE_PACKAGE)?;
    let bounds = Bounds { dimensions: &[Dimension::Power], limits: Some(PACKAGE_POWER) };
    let Some(awake) = package.get("awake") else {
        return Err(package.error("no `awake` in [energy.package]", "awake = { value = ... }", RULE_PACKAGE));
    };
    push_figure(&package, "awake", awake, &bounds, into)?;
    let Some(asleep) = package.get("asleep") else { return Ok(()) };
    push_figure(&package, "asleep", asleep, &bounds, into)?;
    let value = |name: &str| into.figure(name).map(|figure| figure.value);
    if value("energy.package.asleep") > value("energy.package.awake") {
        let awake = shown(into, "energy.package.awake");
        let found = format!("`energy.package.asleep` of {} beside {awake} awake", shown(into, "energy.package.asleep"));
        return Err(asleep.error(&found, &format!("{awake} or less"), RULE_PACKAGE));
    }
    let sleeps = |state: &String| into.figure(&format!("idle.{state}.package_wake")).is_some_and(|wake| wake.value > 0);
    if !into.idle_states.iter().any(sleeps) {
        let found = "a power of packages that sleep, which no idle state lets them do";
        return Err(asleep.error(found, "`package_wake` in an [[idle.state]]", RULE_PACKAGE));
    }
    Ok(())
}

/// Requires that every CPU is in a domain. If powers of idle states are given, requires what is needed to count energy:
/// every domain has idle states, and the highest frequency of the fastest CPUs' domains is the machine's.
pub(super) fn check_whole(energy: &Table, tables: &[Node], machine: &Description) -> Result<(), DescriptionError> {
    let whole = machine.energy.iter().find(|domain| !domain.idle.is_empty());
    let told: CpuMask = machine.energy.iter().flat_map(|domain| domain.cpus.iter()).collect();
    if let Some((cpu, _)) = machine.topology.cpus().find(|(cpu, _)| !told.contains(*cpu)) {
        let found = format!("no power of CPU {cpu}, but of {}", told.list());
        let rule = if whole.is_some() { RULE_WHOLE } else { RULE_EVERY };
        return Err(energy.error(&found, "each CPU in an [[energy.domain]]", rule));
    }
    let Some(whole) = whole else {
        return match energy.get("package") {
            Some(package) => {
                Err(package.error("a package's power, and none of idle CPUs", "[[energy.domain.idle]]", RULE_WHOLE))
            }
            None => Ok(()),
        };
    };
    for (domain, table) in machine.energy.iter().zip(tables) {
        let cpus = domain.cpus.list();
        if domain.idle.is_empty() {
            let found = format!("no power of idle CPUs {cpus}, but of {}", whole.cpus.list());
            return Err(table.error(&found, "[[energy.domain.idle]]", RULE_WHOLE));
        }
        let first = domain.cpus.iter().next().expect("a domain has CPUs");
        let top = machine.figure(&format!("energy.{cpus}.{}.frequency", domain.states));
        let fastest = machine.topology.cpu(first).speed == SCHED_CAPACITY_SCALE;
        if let (Some(top), Some(max), true) = (top, machine.figure("frequency.max"), fastest)
            && top.value != max.value
        {
            let found = format!("CPUs {cpus}, whose powers end at {top}, beside frequency.max = {max}");
            return Err(table.error(&found, &format!("a last [[energy.domain.state]] at {max}"), RULE_WHOLE));
        }
    }
    Ok(())
}

/// The name of the figures of a domain's idle state: `energy.0-3.idle.C1`.
pub(super) fn idle_name(cpus: &CpuMask, state: &str) -> String {
    format!("energy.{}.idle.{state}", cpus.list())
}
