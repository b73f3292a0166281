//! `[energy]` in a machine file, if it is known what running costs: what a CPU draws at each frequency of its clock and
//! in each idle state, and what a package draws beside its CPUs. The kernel's energy model is made from the part about
//! frequencies.
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
//!
//! [[energy.domain.idle]]
//! state = "C1"
//! power = { value = 8, unit = "mW", source = "...", how = "...", range = [5, 12] }
//!
//! [energy.package]
//! awake = { value = 2, unit = "W", source = "...", how = "...", range = [1, 3] }
//! ```
//!
//! `kernel = { value = "untold", ... }` in place of the governor hides all of it from the scheduler.

use super::entry::{Bounds, push_figure, read_fact};
use super::error::DescriptionError;
use super::figure::Dimension;
use super::power_table::{check_whole, idle_name, read_idle_power, read_package};
use super::toml_text::Table;
use super::topology_table::set;
use super::{Description, EnergyDomain};
use sched::cpu_topology::{EmPerfDomain, EmState, EnergyModel};
use units::CpuMask;

pub(super) const RULE: &str = "an energy model tells of CPUs of one kind that share a clock, by ascending frequency";
const RULE_RISING: &str = "a CPU draws no less at a higher frequency";

/// Governors of cpufreq. Only under `schedutil` does the scheduler use the energy model.
const GOVERNORS: &[&str] = &["schedutil", "performance", "powersave", "ondemand", "conservative"];

/// In kHz: 1 kHz to 100 GHz, written in hertz.
const FREQUENCY: (u64, u64) = (1_000, 100_000_000_000);
/// In microwatts: up to EM_MAX_POWER, 64 W.
const POWER: (u64, u64) = (1, 64_000_000);
/// Whether the scheduler is given the tables.
const KERNEL: &[&str] = &["told", "untold"];

/// Reads the table, if there is one, into the machine's topology.
pub(super) fn read_energy(root: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    let Some(energy) = root.table("energy")? else { return Ok(()) };
    energy.only(&["governor", "kernel", "domain", "package"], RULE)?;
    let schedutil = read_kernel(&energy, into)?;
    let all: CpuMask = into.topology.cpus().map(|(cpu, _)| cpu).collect();
    let mut model: Vec<EmPerfDomain> = Vec::new();
    let tables = energy.array("domain", "[[energy.domain]]")?.unwrap_or_default();
    for value in tables {
        let table = energy.as_table("domain", value)?;
        table.only(&["cpus", "state", "idle"], RULE)?;
        let Some(written) = table.get("cpus") else {
            return Err(table.error("a domain without cpus", "cpus = \"0-3\"", RULE));
        };
        let cpus = set(written, &all)?;
        let wrong = |found: &str, expected: &str| Err(written.error(found, expected, RULE));
        if model.iter().any(|domain| domain.cpus.intersects(&cpus)) {
            return wrong("CPUs of another domain", "each CPU in one domain");
        }
        let capacities: Vec<_> = cpus.iter().map(|cpu| into.topology.cpu(cpu).capacity).collect();
        if capacities.is_empty() || capacities.iter().any(|capacity| *capacity != capacities[0]) {
            return wrong("CPUs of different capacities, or none", "CPUs of one capacity");
        }
        let states = read_states(&table, &cpus, into)?;
        let idle = read_idle_power(&table, &cpus, into)?;
        into.energy.push(EnergyDomain { cpus: cpus.clone(), states: states.len(), idle });
        model.push(EmPerfDomain { cpus, states });
    }
    if model.is_empty() {
        return Err(energy.error("no domains in [energy]", "[[energy.domain]]", RULE));
    }
    read_package(&energy, into)?;
    check_whole(&energy, tables, into)?;
    if let Some(schedutil) = schedutil {
        into.topology = into.topology.clone().with_energy_model(EnergyModel { domains: model, schedutil });
    }
    Ok(())
}

/// Whether frequencies follow utilization, for a kernel that is given the tables; `None` for one that is not.
fn read_kernel(energy: &Table, into: &mut Description) -> Result<Option<bool>, DescriptionError> {
    let mut untold = false;
    if let Some(kernel) = energy.get("kernel") {
        let fact = read_fact(energy, "kernel", kernel, KERNEL)?;
        untold = fact.fact.value == "untold";
        into.facts.push(fact);
    }
    match energy.get("governor") {
        None if untold => Ok(None),
        None => {
            let expected = "governor = { value = \"schedutil\", ... }, or kernel = { value = \"untold\", ... }";
            Err(energy.error("no `governor` in [energy]", expected, RULE))
        }
        Some(governor) if untold => {
            let found = "a governor for an energy model that the kernel is not told of";
            Err(governor.error(found, "[frequency] to name the governor, or kernel = { value = \"told\", ... }", RULE))
        }
        Some(governor) => {
            let governor = read_fact(energy, "governor", governor, GOVERNORS)?;
            let schedutil = governor.fact.value == "schedutil";
            into.facts.push(governor);
            Ok(Some(schedutil))
        }
    }
}

/// The name of a state's figures: `energy.0-3.1`, from its domain's CPUs and its number.
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
        if let Some(last) = states.last() {
            if last.frequency_khz >= frequency_khz {
                return Err(value.error("a frequency no higher than the one before", "ascending frequencies", RULE));
            }
            let of = |number: usize| into.figure(&format!("{}.power", state_name(cpus, number)));
            if last.power_uw > power_uw
                && let (Some(before), Some(this)) = (of(index), of(index + 1))
            {
                let found = format!("`{}` of {this} after {before} at a lower frequency", table.full_name("power"));
                let at = table.get("power").unwrap_or(value);
                return Err(at.error(&found, &format!("{before} or more"), RULE_RISING));
            }
        }
        states.push(EmState { frequency_khz, power_uw });
    }
    if states.is_empty() {
        return Err(domain.error("a domain without states", "[[energy.domain.state]]", RULE));
    }
    Ok(states)
}

impl EnergyDomain {
    /// The names of the figures of its frequencies, the lowest first; `.frequency` and `.power` are appended.
    pub fn state_names(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.states).map(|number| state_name(&self.cpus, number))
    }

    /// The idle states whose power is known, and the name of each one's figure.
    pub fn idle_names(&self) -> impl Iterator<Item = (&str, String)> + '_ {
        self.idle.iter().map(|state| (state.as_str(), format!("{}.power", idle_name(&self.cpus, state))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{How, parse};
    use crate::energy::Power;

    /// The fixture's prices for two small CPUs and two big ones. The topology is made up.
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
        let borrowed = machine.clone().with_topology(machine.topology().clone(), "a test", How::Guess);
        assert!(borrowed.figures().all(|(name, _)| !name.starts_with("energy.")));
    }

    /// Adds `[[energy.domain.idle]]` to the domain of these CPUs.
    fn with_idle(energy: &str, cpus: &str, idle: &[(&str, &str)]) -> String {
        let (head, rest) = energy.split_once(&format!("cpus = \"{cpus}\"\n")).expect("a domain");
        let end = rest.find("[[energy.domain]]").unwrap_or(rest.len());
        let table = |&(state, mw): &(&str, &str)| {
            let rest = "source = \"made up\", how = \"guess\"";
            format!(
                "[[energy.domain.idle]]\nstate = \"{state}\"\n\
                 power = {{ value = {mw}, unit = \"mW\", range = [0, 9000], {rest} }}\n"
            )
        };
        let tables: String = idle.iter().map(table).collect();
        format!("{head}cpus = \"{cpus}\"\n{}{tables}{}", &rest[..end], &rest[end..])
    }

    /// Idle states of the fixture, and what a CPU draws there.
    const IDLE: &[(&str, &str)] = &[("C1", "30"), ("C1E", "20"), ("C3", "6.5"), ("C6", "0")];

    /// Both domains up to the fixture's highest frequency, with all idle states: energy can be counted.
    fn reckoned(idle: &[(&str, &str)]) -> String {
        let text = energy(&[(500, 50), (1500, 200)], "2-3").replace("2000", "3100");
        with_idle(&with_idle(&text, "0-1", idle), "2-3", IDLE)
    }

    const PACKAGE: &str = "[energy.package]\n\
        awake = { value = 2, unit = \"W\", range = [1, 3], source = \"made up\", how = \"guess\" }\n";

    #[test]
    fn energy_is_reckoned_where_idle_states_have_a_power() {
        let bare = parse(&file(&energy(&[(500, 50)], "2-3")), "m.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Power::of(&bare), None);
        let text = file(&(reckoned(IDLE) + PACKAGE));
        let machine = parse(&text, "m.toml").unwrap_or_else(|error| panic!("{error}"));
        let power = Power::of(&machine).expect("every power");
        assert_eq!(power.package, (2_000_000, 2_000_000));
        assert_eq!(power.domains[0].executing, [(500_000, 50_000), (1_500_000, 200_000)]);
        assert_eq!(power.domains[1].idle_uw("C3"), Some(6_500));
        assert_eq!(power.domains[1].idle_uw("POLL"), None);
        let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Power::of(&again), Some(power.clone()));
        assert_eq!(again.to_toml(), machine.to_toml());
        assert_eq!(Power::of(&machine.clone().with_topology(machine.topology().clone(), "a test", How::Guess)), None);
        // The same tables, which the scheduler is not told.
        let (_, domains) = text.split_once("[[energy.domain]]").expect("domains");
        let untold = "[energy]\nkernel = { value = \"untold\", source = \"made up\", how = \"guess\" }\n";
        let untold = file(&format!("{untold}[[energy.domain]]{domains}"));
        let machine = parse(&untold, "m.toml").unwrap_or_else(|error| panic!("{error}"));
        assert!(machine.topology().energy_model().is_none());
        assert_eq!(Power::of(&machine), Some(power));
        let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.to_toml(), machine.to_toml());
    }

    #[test]
    fn powers_that_cannot_be_are_refused() {
        let refused = |text: &str| parse(&file(text), "m.toml").expect_err("a bad table").to_string();
        let falling = refused(&energy(&[(500, 50), (1500, 49)], "2-3"));
        assert!(
            falling.contains("`energy.0-1.2.power` of 49 mW after 50 mW at a lower frequency; expected 50 mW or more"),
            "{falling}"
        );
        let idle = |idle: &[(&str, &str)]| refused(&reckoned(idle));
        let negative = idle(&[("C1", "-3")]);
        assert!(negative.contains("found the value -3; expected 0 or more"), "{negative}");
        let rising = idle(&[("C1", "30"), ("C1E", "31"), ("C3", "6.5"), ("C6", "0")]);
        assert!(rising.contains("`energy.0-1.idle.C1E.power` of 31 mW beside 30 mW in C1; expected 30 mW"), "{rising}");
        let dear = idle(&[("C1", "51"), ("C1E", "20"), ("C3", "6.5"), ("C6", "0")]);
        assert!(dear.contains("`energy.0-1.idle.C1.power` of 51 mW beside 50 mW at 500 MHz"), "{dear}");
        let missing = idle(&IDLE[..3]);
        assert!(missing.contains("found no power of the idle state C6 of CPUs 0-1"), "{missing}");
        assert!(idle(&[("POLL", "3")]).contains("found the idle state POLL, which polls"));
        assert!(idle(&[("C1F", "3")]).contains("found the unknown idle state `C1F`; expected `C1"));
        assert!(idle(&[("C1", "30"), ("C1", "30")]).contains("the idle state C1 for the second time"));
        let one = refused(&with_idle(&energy(&[(500, 50)], "2-3").replace("2000", "3100"), "2-3", IDLE));
        assert!(one.contains("found no power of idle CPUs 0-1, but of 2-3"), "{one}");
        let low = refused(&reckoned(IDLE).replace("3100", "3000"));
        assert!(low.contains("CPUs 2-3, whose powers end at 3000 MHz, beside frequency.max = 3.1 GHz"), "{low}");
        let some = refused(&reckoned(IDLE).replace("cpus = \"0-1\"", "cpus = \"1\""));
        assert!(some.contains("found no power of CPU 0, but of 1-3;"), "{some}");
        // An energy model alone must cover all CPUs, too.
        let model = refused(&energy(&[(500, 50)], "2"));
        let expected = "found no power of CPU 3, but of 0-2; expected each CPU in an [[energy.domain]] (rule: an energy model tells of every CPU)";
        assert!(model.contains(expected), "{model}");
        let package = refused(&(energy(&[(500, 50)], "2-3") + PACKAGE));
        assert!(package.contains("found a package's power, and none of idle CPUs"), "{package}");
        let asleep = |watts: u32| {
            let figure =
                format!("{{ value = {watts}, unit = \"W\", range = [0, 9], source = \"s\", how = \"guess\" }}");
            refused(&format!("{}{PACKAGE}asleep = {figure}\n", reckoned(IDLE)))
        };
        assert!(asleep(3).contains("`energy.package.asleep` of 3 W beside 2 W awake; expected 2 W or less"));
        assert!(asleep(1).contains("found a power of packages that sleep, which no idle state lets them do"));
        let governor = energy(&[(500, 50)], "2-3").replace(
            "[energy]\n",
            "[energy]\nkernel = { value = \"untold\", source = \"made up\", how = \"guess\" }\n",
        );
        assert!(refused(&governor).contains("a governor for an energy model that the kernel is not told of"));
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
        assert!(refused(&governor).contains("found \"schedutl\"; expected \"schedutil\", perhaps"));
        assert!(refused("[energy]\ndomains = 3").contains("expected `domain`, perhaps"));
    }
}
