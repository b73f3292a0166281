//! How long CPUs and packages were in which idle state, and cores at which frequency: as text, and for the JSON
//! document of `run`, which adds the energy that this took.

use crate::cpu_rows::{by_cpu, width_by_cpu};
use crate::energy::EnergyResult;
use crate::observed::CoreFrequency;
use crate::powercap::PowerLimitResult;
use crate::run::Run;
use crate::setup::Setup;
use machine::description::Description;
use machine::frequency::fixed_khz;
use machine::hardware::Residency;
use machine::idle::PackageResidency;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use units::{CpuId, CpuMask, NR_CPUS, Ps};

/// The times of one run, from boot to the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResidency {
    /// Identifies the run: workload, arm and iteration.
    pub run: String,
    /// From boot to the end.
    pub duration_ns: u64,
    pub cpus: Vec<CpuResidency>,
    /// In the order of the packages; absent if they have no state of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageTimes>,
    /// Whether frequencies changed: `governed` by cpufreq, or `fixed`.
    pub clock: Clock,
    pub cores: Vec<CoreResidency>,
    /// Absent if energy is not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyResult>,
    /// Absent if nothing limits what packages draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit: Option<PowerLimitResult>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    Governed,
    Fixed,
}

/// How a CPU spent the time of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuResidency {
    pub cpu: u32,
    /// The time in no idle state.
    pub executing_ns: u64,
    pub idle: Vec<StateResidency>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateResidency {
    pub state: String,
    pub ns: u64,
    pub entries: u64,
}

/// A package in its own idle state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageTimes {
    pub idle_ns: u64,
    pub entries: u64,
}

/// The clock of a core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreResidency {
    /// The core's first CPU.
    pub cpu: u32,
    /// The average frequency while one of its threads executed.
    pub busy_khz: u64,
    pub changes: u64,
    /// Times whether busy or not, the lowest frequency first.
    pub frequencies: Vec<FrequencyResidency>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrequencyResidency {
    pub khz: u32,
    /// This includes deep idle states, where the clock stays at its last value.
    pub ns: u64,
    /// How long its threads executed, or polled, at that frequency, summed over the threads; absent if clocks are
    /// fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed_ns: Option<u64>,
}

impl RunResidency {
    /// The residency of a run of `setup` on `machine`; `name` identifies the run.
    pub fn of(name: String, setup: &Setup, machine: &Description, run: &Run) -> RunResidency {
        let totals = &run.hardware;
        let duration = totals.idle.duration;
        let cpu = |(cpu, residency): (usize, &Residency)| {
            let idle: u64 = residency.idle.iter().map(|time| time.0).sum();
            let states = totals.idle.states.iter().zip(&residency.idle).zip(&residency.entries);
            CpuResidency {
                cpu: cpu as u32,
                executing_ns: duration.saturating_sub(Ps(idle)).ns().0,
                idle: states
                    .map(|((state, time), &entries)| StateResidency { state: state.clone(), ns: time.ns().0, entries })
                    .collect(),
            }
        };
        let (clock, cores) = match totals.frequencies.as_slice() {
            [] => (Clock::Fixed, fixed_cores(machine, setup.costs, duration)),
            cores => (Clock::Governed, cores.iter().map(governed_core).collect()),
        };
        let cpus = totals.idle.cpus.iter().enumerate().map(cpu).collect();
        let package = |it: &PackageResidency| PackageTimes { idle_ns: it.idle.ns().0, entries: it.entries };
        let (states, energy, of_run) = (&totals.idle.states, totals.energy.as_ref(), run.energy.as_ref());
        RunResidency {
            run: name,
            duration_ns: duration.ns().0,
            cpus,
            packages: totals.idle.package_states.iter().map(package).collect(),
            clock,
            cores,
            energy: EnergyResult::of(setup, states, energy, of_run, &run.outcome.samples),
            power_limit: PowerLimitResult::of(totals),
        }
    }
}

fn governed_core(core: &CoreFrequency) -> CoreResidency {
    let at = |(khz, time): (u32, Ps)| FrequencyResidency {
        khz,
        ns: time.ns().0,
        executed_ns: Some(core.executed.at(khz).ns().0),
    };
    CoreResidency {
        cpu: core.cpu.0.into(),
        busy_khz: core.busy_khz(),
        changes: core.time.changes(),
        frequencies: core.time.iter().map(at).collect(),
    }
}

/// The cores of a machine whose clocks are fixed.
fn fixed_cores(machine: &Description, costs: bool, duration: Ps) -> Vec<CoreResidency> {
    let khz = fixed(machine, costs);
    let firsts = machine.topology().cores().iter().filter_map(|core| core.cpus.iter().next());
    let core = |cpu: CpuId| {
        let khz = khz[cpu.index()];
        let frequencies = vec![FrequencyResidency { khz, ns: duration.ns().0, executed_ns: None }];
        CoreResidency { cpu: cpu.0.into(), busy_khz: khz.into(), changes: 0, frequencies }
    };
    firsts.map(core).collect()
}

/// The frequency of each CPU if nothing governs it.
fn fixed(machine: &Description, costs: bool) -> Vec<u32> {
    if costs { fixed_khz(machine) } else { vec![1_000_000; machine.topology().nr_cpus()] }
}

impl CoreFrequency {
    /// The average while it executed, rounded. It is computed from frequencies, not from cycles, whose fractions are
    /// lost over short times.
    fn busy_khz(&self) -> u64 {
        let whole = u128::from(self.executed.whole().0);
        let sum: u128 = self.executed.iter().map(|(khz, time)| u128::from(khz) * u128::from(time.0)).sum();
        (sum + whole / 2).checked_div(whole).unwrap_or(0) as u64
    }
}

/// A column head of [`frequency_text`], rounded like the mean next to it.
fn mhz(khz: u32) -> String {
    format!("{:.0}", f64::from(khz) / 1e3)
}

/// The share of time that each core executed at each frequency, from boot on, and its average frequency then; one line
/// if clocks are fixed.
pub fn frequency_text(cores: &[CoreFrequency], machine: &Description, costs: bool) -> String {
    let executed = cores.iter().flat_map(|core| core.executed.iter().filter(|entry| entry.1 > Ps::ZERO));
    let mut all: Vec<u32> = executed.map(|entry| entry.0).collect();
    all.sort_unstable();
    all.dedup();
    if cores.is_empty() {
        return format!("\n{}\n", fixed_text(machine, costs));
    }
    let topology = machine.topology();
    let cpus_of = |core: &CoreFrequency| topology.cores()[usize::from(topology.cpu(core.cpu).core)].cpus.clone();
    let longest = cores.iter().map(|core| cpus_of(core).list().len()).max().unwrap_or(0);
    let width = width_by_cpu(cores.len(), longest.max(6) + 2);
    let mut text = format!("\n{:<width$}{:>12}{:>12}", "CPUs", "busy MHz", "changes");
    for khz in &all {
        let _ = write!(text, "{:>9}", mhz(*khz));
    }
    let _ = writeln!(text, "  (MHz, % of the time that it executed)");
    let rows = cores.iter().map(|core| {
        let mut cells = format!("{:>12.0}{:>12}", core.busy_khz() as f64 / 1e3, core.time.changes());
        let whole = core.executed.whole().0;
        for khz in &all {
            let time = core.executed.at(*khz).0;
            let share = time as f64 * 100.0 / whole.max(1) as f64;
            let cell = if time == 0 { "-".to_string() } else { format!("{share:.1}") };
            let _ = write!(cells, "{cell:>9}");
        }
        (cpus_of(core), cells)
    });
    text.push_str(&by_cpu(width, rows));
    text
}

/// Why there is no residency of frequencies, and what the fixed frequencies are.
fn fixed_text(machine: &Description, costs: bool) -> String {
    let all = fixed(machine, costs);
    let mut speeds: Vec<(u32, CpuMask)> = Vec::new();
    for (cpu, &khz) in all.iter().enumerate() {
        let place = speeds.iter().position(|speed| speed.0 == khz).unwrap_or_else(|| {
            speeds.push((khz, CpuMask::new(NR_CPUS)));
            speeds.len() - 1
        });
        speeds[place].1.set(CpuId::new(cpu));
    }
    let ghz = |khz: u32| format!("{} GHz", f64::from(khz) / 1e6);
    let what = match speeds.as_slice() {
        [(khz, _)] => ghz(*khz),
        _ => {
            let of = |(khz, cpus): &(u32, CpuMask)| format!("{} (CPUs {})", ghz(*khz), cpus.list());
            speeds.iter().map(of).collect::<Vec<String>>().join(", ")
        }
    };
    let why = if costs {
        "the machine file names no driver of cpufreq, nor does the arm (docs/frequency.md)"
    } else {
        "the cost model is off"
    };
    format!("Clocks fixed at {what}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines::Machine;

    #[test]
    fn frequencies_are_rounded() {
        let heads = [825_600, 1_766_400, 300_000, 1_056_499].map(mhz);
        assert_eq!(heads, ["826", "1766", "300", "1056"]);
    }

    #[test]
    fn fixed_clocks_are_said() {
        let of = |name: &str, costs| fixed_text(&Machine::named(name).unwrap().description, costs);
        assert_eq!(of("cloud-vm-2", false), "Clocks fixed at 1 GHz: the cost model is off");
        let whole = of("cloud-vm-2", true);
        let fixed = Machine::named("cloud-vm-2").unwrap().description.fixed_hertz() as f64 / 1e9;
        assert!(
            whole.starts_with(&format!("Clocks fixed at {fixed} GHz: the machine file names no driver")),
            "{whole}"
        );
        let kinds = of("snapdragon-845", true);
        assert!(kinds.contains(" GHz (CPUs 0-3), ") && kinds.contains(" GHz (CPUs 4-7): "), "{kinds}");
    }
}
