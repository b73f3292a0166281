//! The energy that a run took, if its machine file tells what CPUs draw: as text, and as it is stored.

use crate::setup::Setup;
use machine::energy::{DomainEnergy, EnergyUse, PackageEnergy};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

const AJ_PER_NJ: u128 = 1_000_000_000;

/// The energy that a machine took, in nanojoules. Each sum is rounded down by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnergyTaken {
    /// For CPUs that share a clock: what their cores took while they executed, and while they idled.
    pub domains: Vec<(String, u64, u64)>,
    /// For each package: what its cores took, and what the package took besides.
    pub packages: Vec<(u64, u64)>,
    pub total_nj: u64,
}

fn nj(aj: u128) -> u64 {
    u64::try_from(aj / AJ_PER_NJ).expect("less than 18 gigajoules")
}

impl From<EnergyUse> for EnergyTaken {
    fn from(taken: EnergyUse) -> EnergyTaken {
        let domain =
            |domain: &DomainEnergy| (domain.cpus.list(), nj(domain.executing_aj), nj(domain.idle_aj.iter().sum()));
        EnergyTaken {
            domains: taken.domains.iter().map(domain).collect(),
            packages: taken.packages.iter().map(|package| (nj(package.cores_aj), nj(package.own_aj))).collect(),
            total_nj: nj(taken.total_aj()),
        }
    }
}

/// The energy of a run for the JSON document of `run`, with the same content as [`text`]: in nanojoules, each sum
/// rounded down by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnergyResult {
    /// CPUs that share a clock.
    pub domains: Vec<DomainResult>,
    /// In the order of the packages.
    pub packages: Vec<PackageResult>,
    pub total_nj: u64,
    pub from_start: FromStart,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainResult {
    pub cpus: String,
    pub executing_nj: u64,
    pub idle: Vec<StateResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateResult {
    pub state: String,
    pub nj: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageResult {
    pub cores_nj: u64,
    /// What the package took besides its cores.
    pub own_nj: u64,
}

/// The energy from the workload's start to the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FromStart {
    pub duration_ns: u64,
    pub total_nj: u64,
    /// Absent if the benchmark neither counts operations nor measures a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Each>,
}

/// What one operation of the benchmark took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Each {
    pub operation: String,
    pub nj: f64,
}

impl EnergyResult {
    /// The energy of a run of `setup`; `None` if energy is not computed.
    pub fn of(
        setup: &Setup,
        states: &[String],
        taken: Option<&EnergyUse>,
        of_run: Option<&RunEnergy>,
        samples: &[Vec<u64>],
    ) -> Option<EnergyResult> {
        let (taken, of_run) = taken.zip(of_run)?;
        let domain = |domain: &DomainEnergy| DomainResult {
            cpus: domain.cpus.list(),
            executing_nj: nj(domain.executing_aj),
            idle: drawn(taken)
                .map(|state| StateResult { state: states[state].clone(), nj: nj(domain.idle_aj[state]) })
                .collect(),
        };
        let package =
            |package: &PackageEnergy| PackageResult { cores_nj: nj(package.cores_aj), own_nj: nj(package.own_aj) };
        let each = of_run.per_operation(setup, samples);
        Some(EnergyResult {
            domains: taken.domains.iter().map(domain).collect(),
            packages: taken.packages.iter().map(package).collect(),
            total_nj: nj(taken.total_aj()),
            from_start: FromStart {
                duration_ns: of_run.taken.duration.ns().0,
                total_nj: nj(of_run.taken.total_aj()),
                each: each.map(|(joules, operation)| Each { operation, nj: joules * 1e9 }),
            },
        })
    }
}

/// The idle states that draw energy of their own. A state that polls draws what executing does, and is counted there.
fn drawn(taken: &EnergyUse) -> impl Iterator<Item = usize> {
    let states = taken.domains.first().map_or(0, |domain| domain.idle_aj.len());
    (0..states).filter(|&state| taken.domains.iter().any(|domain| domain.idle_aj[state] > 0))
}

/// The energy from the workload's start to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnergy {
    pub taken: EnergyUse,
    /// How many units of what a user would count the benchmark did, if its samples are no rate.
    pub operations: Option<(u64, &'static str)>,
}

impl RunEnergy {
    /// The difference between the start and the end, if energy is computed.
    pub fn since(
        before: Option<EnergyUse>,
        after: Option<EnergyUse>,
        operations: Option<(u64, &'static str)>,
    ) -> Option<RunEnergy> {
        let (before, after) = before.zip(after)?;
        Some(RunEnergy { taken: after.since(&before), operations })
    }

    fn joules(&self) -> f64 {
        self.taken.total_aj() as f64 / 1e18
    }

    fn watts(&self) -> f64 {
        self.joules() / (self.taken.duration.0.max(1) as f64 / 1e12)
    }

    /// Joules of one operation, and what an operation is called. If the benchmark measures a rate, it is the power
    /// drawn divided by that rate.
    fn per_operation(&self, setup: &Setup, samples: &[Vec<u64>]) -> Option<(f64, String)> {
        if let Some((count, name)) = self.operations {
            return (count > 0).then(|| (self.joules() / count as f64, name.to_string()));
        }
        let workload = workloads::workload(&setup.workload.name)?;
        let name = match workload.unit.strip_suffix("/s")? {
            "1" => "operation",
            unit => unit.strip_suffix('s').unwrap_or(unit),
        };
        let [samples] = samples else { return None };
        let sum: u64 = samples.iter().sum();
        let rate = sum as f64 / workload.per_unit as f64 / samples.len().max(1) as f64;
        (rate > 0.0).then(|| (self.watts() / rate, name.to_string()))
    }
}

/// With a unit that suits its size, in four digits.
fn shown(joules: f64) -> String {
    for (unit, least) in [("J", 1.0), ("mJ", 1e-3), ("uJ", 1e-6)] {
        if joules >= least {
            let value = joules / least;
            let decimals = if value >= 100.0 {
                1
            } else if value >= 10.0 {
                2
            } else {
                3
            };
            return format!("{value:.decimals$} {unit}");
        }
    }
    format!("{:.3} nJ", joules * 1e9)
}

/// The energy of a run of `setup` as text: from boot on (`taken`) by domains, idle states and packages, and from the
/// workload's start on by operation of the benchmark whose samples these are.
pub fn text(
    setup: &Setup,
    states: &[String],
    taken: Option<&EnergyUse>,
    of_run: Option<&RunEnergy>,
    samples: &[Vec<u64>],
) -> String {
    let Some((taken, of_run)) = taken.zip(of_run) else {
        return match setup.costs {
            true => format!("\nEnergy is not reckoned: what CPUs of {} draw is not known\n", setup.machine.name),
            false => "\nEnergy is not reckoned: the cost model is off\n".to_string(),
        };
    };
    let mut text = table(taken, states);
    let _ = write!(text, "from the workload's start: {}, {:.3} W", shown(of_run.joules()), of_run.watts());
    if let Some((joules, name)) = of_run.per_operation(setup, samples) {
        let _ = write!(text, ", {} for each {name}", shown(joules));
    }
    text.push('\n');
    text
}

/// In millijoules.
fn table(taken: &EnergyUse, states: &[String]) -> String {
    let mj = |aj: u128| aj as f64 / 1e15;
    let named = taken.domains.iter().map(|domain| format!("cpus {}", domain.cpus.list()));
    let named: Vec<String> = named.collect();
    let width = named.iter().map(String::len).max().unwrap_or(0).max("energy, mJ".len());
    let mut text = format!("\n{:<width$}{:>14}", "energy, mJ", "executing");
    let drawn: Vec<usize> = drawn(taken).collect();
    let wide = |state: usize| (states[state].chars().count() + 2).max(14);
    for &state in &drawn {
        let _ = write!(text, "{:>width$}", states[state], width = wide(state));
    }
    let _ = writeln!(text, "{:>14}", "sum");
    for (name, domain) in named.iter().zip(&taken.domains) {
        let _ = write!(text, "{name:<width$}{:>14.3}", mj(domain.executing_aj));
        for &state in &drawn {
            let _ = write!(text, "{:>width$.3}", mj(domain.idle_aj[state]), width = wide(state));
        }
        let _ = writeln!(text, "{:>14.3}", mj(domain.total_aj()));
    }
    for (number, package) in taken.packages.iter().enumerate() {
        let (cores, own) = (mj(package.cores_aj), mj(package.own_aj));
        let _ = writeln!(text, "package {number}: cores {cores:.3}, beside them {own:.3}, sum {:.3}", cores + own);
    }
    text
}

#[cfg(test)]
mod tests;
