//! `[energy]` in a machine file, where somebody knows what running costs: the governor, and for each group of CPUs that share a
//! clock what one of them draws at each frequency.
//!
//! ```toml
//! [energy]
//! governor = { value = "schedutil", source = "...", how = "..." }
//!
//! [[energy.domain]]
//! cpus = "0-3"
//!
//! [[energy.domain.state]]
//! frequency = { value = 500, unit = "MHz", source = "...", how = "...", range = [500, 500] }
//! power = { value = 50, unit = "mW", source = "...", how = "...", range = [40, 60] }
//! ```

use super::Description;
use super::error::DescriptionError;
use super::figure::Dimension;
use super::read::{Bounds, push_figure, read_fact};
use super::toml_text::Table;
use super::topology_table::set;
use sched::cpu_topology::{EmPerfDomain, EmState, EnergyModel};
use units::CpuMask;

const RULE: &str = "an energy model tells of CPUs of one kind that share a clock, by ascending frequency";

/// Governors of cpufreq. Energy is reckoned with under `schedutil` only.
const GOVERNORS: &[&str] = &["schedutil", "performance", "powersave", "ondemand", "conservative"];

/// In kHz: 1 kHz to 100 GHz, written in hertz.
const FREQUENCY: (u64, u64) = (1_000, 100_000_000_000);
/// In microwatts: up to EM_MAX_POWER, 64 W.
const POWER: (u64, u64) = (1, 64_000_000);

/// Reads the table, if there is one, into the machine's topology.
pub(super) fn read_energy(root: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    let Some(energy) = root.table("energy")? else { return Ok(()) };
    energy.only(&["governor", "domain"], RULE)?;
    let Some(governor) = energy.get("governor") else {
        return Err(energy.error("no `governor` in [energy]", "governor = { value = \"schedutil\", ... }", RULE));
    };
    let governor = read_fact(&energy, "governor", governor, GOVERNORS)?;
    let schedutil = governor.fact.value == "schedutil";
    into.facts.push(governor);
    let all: CpuMask = into.topology.cpus().map(|(cpu, _)| cpu).collect();
    let mut domains: Vec<EmPerfDomain> = Vec::new();
    for value in energy.array("domain", "[[energy.domain]]")?.unwrap_or_default() {
        let table = energy.as_table("domain", value)?;
        table.only(&["cpus", "state"], RULE)?;
        let Some(written) = table.get("cpus") else {
            return Err(table.error("a domain without cpus", "cpus = \"0-3\"", RULE));
        };
        let cpus = set(written, &all)?;
        let wrong = |found: &str, expected: &str| Err(written.error(found, expected, RULE));
        if domains.iter().any(|domain| domain.cpus.intersects(&cpus)) {
            return wrong("CPUs of another domain", "each CPU in one domain");
        }
        let capacities: Vec<_> = cpus.iter().map(|cpu| into.topology.cpu(cpu).capacity).collect();
        if capacities.is_empty() || capacities.iter().any(|capacity| *capacity != capacities[0]) {
            return wrong("CPUs of different capacities, or none", "CPUs of one capacity");
        }
        let states = read_states(&table, &cpus, into)?;
        domains.push(EmPerfDomain { cpus, states });
    }
    if domains.is_empty() {
        return Err(energy.error("no domains in [energy]", "[[energy.domain]]", RULE));
    }
    into.topology = into.topology.clone().with_energy_model(EnergyModel { domains, schedutil });
    Ok(())
}

/// The name of a domain's figures: `energy.0-3.1`, by its CPUs and the number of the state.
fn state_name(cpus: &CpuMask, number: usize) -> String {
    format!("energy.{}.{number}", cpus.list())
}

fn read_states(domain: &Table, cpus: &CpuMask, into: &mut Description) -> Result<Vec<EmState>, DescriptionError> {
    let mut states: Vec<EmState> = Vec::new();
    for (index, value) in domain.array("state", "[[energy.domain.state]]")?.unwrap_or_default().iter().enumerate() {
        let table = domain.as_table("state", value)?;
        table.only(&["frequency", "power"], RULE)?;
        let table = table.named(state_name(cpus, index + 1));
        let mut figure = |name: &str, dimension: &'static [Dimension], limits: (u64, u64)| {
            let Some(written) = table.get(name) else {
                let found = format!("no `{name}` in {}", table.title());
                return Err(table.error(&found, &format!("{name} = {{ value = ... }}"), RULE));
            };
            let bounds = Bounds { dimensions: dimension, limits: Some(limits) };
            push_figure(&table, name, written, &bounds, into)?;
            Ok(into.figures.last().expect("a figure was pushed").figure.value)
        };
        let frequency_khz = figure("frequency", &[Dimension::Frequency], FREQUENCY)? / 1_000;
        let power_uw = figure("power", &[Dimension::Power], POWER)?;
        if states.last().is_some_and(|last| last.frequency_khz >= frequency_khz) {
            return Err(value.error("a frequency no higher than the one before", "ascending frequencies", RULE));
        }
        states.push(EmState { frequency_khz, power_uw });
    }
    if states.is_empty() {
        return Err(domain.error("a domain without states", "[[energy.domain.state]]", RULE));
    }
    Ok(states)
}

impl Description {
    /// The tables behind `[energy]` and its facts, for a machine file.
    pub(super) fn energy_domains(&self) -> impl Iterator<Item = (&EmPerfDomain, Vec<String>)> {
        let domains = self.topology.energy_model().map_or(&[][..], |model| &model.domains);
        domains
            .iter()
            .map(|domain| (domain, (1..=domain.states.len()).map(|number| state_name(&domain.cpus, number)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    /// The fixture's prices for two small CPUs and two big ones, made up.
    fn file(energy: &str) -> String {
        let fixture = include_str!("../../tests/fixtures/two-sockets.toml");
        let (head, rest) = fixture.split_once("[topology]").expect("a topology");
        let (_, tail) = rest.split_once("\n[frequency]").expect("frequencies after it");
        let topology = r#"[topology]
source = "made up"
how = "guess"
cpus = 4
packages = ["0-3"]
caches = [{ level = 2, kind = "unified", cpus = ["0-3"] }]
capacity = [{ value = 400, cpus = "0-1" }]
"#;
        format!("{head}{topology}\n[frequency]{tail}\n{energy}")
    }

    fn state(mhz: u32, mw: u32) -> String {
        let rest = "source = \"made up\", how = \"guess\"";
        format!(
            "[[energy.domain.state]]\nfrequency = {{ value = {mhz}, unit = \"MHz\", range = [{mhz}, {mhz}], {rest} }}\n\
             power = {{ value = {mw}, unit = \"mW\", range = [1, 9000], {rest} }}\n"
        )
    }

    fn energy(little: &[(u32, u32)], big_cpus: &str) -> String {
        let states = |states: &[(u32, u32)]| states.iter().map(|&(mhz, mw)| state(mhz, mw)).collect::<String>();
        format!(
            "[energy]\ngovernor = {{ value = \"schedutil\", source = \"made up\", how = \"guess\" }}\n\
             [[energy.domain]]\ncpus = \"0-1\"\n{}[[energy.domain]]\ncpus = \"{big_cpus}\"\n{}",
            states(little),
            states(&[(1000, 300), (2000, 1000)])
        )
    }

    #[test]
    fn an_energy_model_is_read_and_written() {
        let text = file(&energy(&[(500, 50), (1500, 200)], "2-3"));
        let machine = parse(&text, "m.toml").unwrap_or_else(|error| panic!("{error}"));
        let model = machine.topology().energy_model().expect("an energy model");
        assert!(model.schedutil);
        let domains: Vec<(String, Vec<(u64, u64)>)> = model
            .domains
            .iter()
            .map(|d| (d.cpus.list(), d.states.iter().map(|s| (s.frequency_khz, s.power_uw)).collect()))
            .collect();
        assert_eq!(
            domains,
            [
                ("0-1".to_string(), vec![(500_000, 50_000), (1_500_000, 200_000)]),
                ("2-3".to_string(), vec![(1_000_000, 300_000), (2_000_000, 1_000_000)]),
            ]
        );
        assert_eq!(machine.figure("energy.0-1.2.power").map(ToString::to_string).as_deref(), Some("200 mW"));
        assert_eq!(machine.topology().cpu_topology().energy_model.as_ref(), Some(model));
        let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.topology().energy_model(), Some(model));
        assert_eq!(again.to_toml(), machine.to_toml());
        assert!(parse(&file(""), "m.toml").expect("no model at all").topology().energy_model().is_none());
        let borrowed = machine.clone().with_topology(machine.topology().clone());
        assert!(borrowed.figures().all(|(name, _)| !name.starts_with("energy.")));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |text: &str| parse(&file(text), "m.toml").expect_err("a bad table").to_string();
        let all = refused(&energy(&[(500, 50)], "1-3"));
        assert!(all.contains("found CPUs of another domain; expected each CPU in one domain"), "{all}");
        let mixed = refused(&energy(&[(500, 50)], "2-4"));
        assert!(mixed.contains("CPU 4"), "{mixed}");
        let falling = refused(&energy(&[(500, 50), (500, 60)], "2-3"));
        assert!(falling.contains("found a frequency no higher than the one before"), "{falling}");
        let empty = refused(&energy(&[], "2-3"));
        assert!(empty.contains("found a domain without states"), "{empty}");
        let power = energy(&[(500, 50)], "2-3").replace("unit = \"mW\"", "unit = \"MHz\"");
        assert!(refused(&power).contains("expected one of uW, mW, W"));
        let governor = energy(&[(500, 50)], "2-3").replace("\"schedutil\"", "\"schedutl\"");
        assert!(refused(&governor).contains("expected one of schedutil, performance"));
        assert!(refused("[energy]\ndomains = 3").contains("expected `domain`, perhaps"));
    }
}
