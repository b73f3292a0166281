//! Everything that one run depends on, as a value: the same setup gives the same bytes.

use crate::boot::PARAMETERS;
use crate::hash::sha256;
use crate::kernels::Build;
use crate::machines::Machine;
use crate::mistake::{Mistake, listed};
use machine::description::{Base, is_hz};
use machine::idle::Governor;
use machine::topology::{Location, parse_list};
use os::preempt::Preempt;
use sched::behaviour::Rules;
use sched::features::{Feature, Features};
use sched::sysctl::Sysctl;
use sched::topology::DomainParameters;
use sched::versions::Switched;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{CpuMask, Prng};

/// The program that runs setups: its version, and a hash of the sources that decide what a run does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    pub version: String,
    pub sources: String,
}

impl Engine {
    /// This program.
    pub fn this() -> Engine {
        Engine { version: env!("CARGO_PKG_VERSION").to_string(), sources: env!("FAIRGROUND_SOURCES").to_string() }
    }
}

/// The setup of one run. Apart from the engine, nothing else decides what the run does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    pub machine: MachineSetup,
    pub kernel: KernelSetup,
    pub workload: WorkloadSetup,
    pub seed: u64,
    /// Whether the cost model is on.
    pub costs: bool,
    /// Simulated time after which the run is given up, in nanoseconds.
    pub time_limit_ns: u64,
    /// What changes while it runs, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<ChangeSetup>,
}

/// A change that an administrator makes during a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSetup {
    /// Nanoseconds from the start of the workload.
    pub at_ns: u64,
    pub change: ChangeKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ChangeKind {
    Sysctl {
        name: String,
        value: u64,
    },
    Feature {
        name: String,
        on: bool,
    },
    /// A CPU's number.
    Offline(u32),
    Online(u32),
    /// Exclusive cpusets: a list of CPUs for each.
    Partitions(Vec<String>),
    /// A file below `/sys/devices/system/cpu/cpufreq`, as in [`KernelSetup::cpufreq`].
    Cpufreq {
        name: String,
        value: String,
    },
    /// `stateN.disable` of all CPUs' idle states, or the `governor`, below `/sys/devices/system/cpu`.
    Cpuidle {
        name: String,
        value: String,
    },
    /// What a process holds in /dev/cpu_dma_latency, in microseconds; without a number it closes the file.
    CpuDmaLatency(Option<u32>),
    /// A file of a task group.
    Group {
        path: String,
        file: String,
        text: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSetup {
    pub name: String,
    /// The whole machine file.
    pub file: Arc<str>,
    /// The files that it extends, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<FileSetup>,
}

/// A kernel with every setting that it ran with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelSetup {
    pub name: String,
    pub hz: u32,
    pub behaviours: BTreeMap<String, String>,
    pub features: BTreeMap<String, bool>,
    pub sysctls: BTreeMap<String, u64>,
    /// Its preemption model, if it differs from the kernel's own: `none`, `voluntary`, `full` or `lazy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt: Option<String>,
    /// The governor of idle states, if the arm names one; otherwise it is the machine's, or the kernel's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_governor: Option<String>,
    /// Parameters of the kernel's command line that set neither a tunable nor the preemption model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Lists of CPUs, if its command line gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nohz_full: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolcpus: Option<String>,
    /// The files below `/sys/devices/system/cpu/cpufreq` that are set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpufreq: BTreeMap<String, String>,
    /// The files of packages below `/sys/class/powercap` that are set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub powercap: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSetup {
    pub name: String,
    pub parameters: BTreeMap<String, u64>,
    /// The file that the workload was read from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileSetup>,
    /// Kernel functions whose shares of the time are measured too: see [`crate::shares`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSetup {
    pub path: String,
    pub text: Arc<str>,
}

impl Setup {
    /// As one line of JSON: equal setups are equal bytes.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a setup of plain values serialises")
    }

    /// SHA-256 of [`Setup::to_json`], in hexadecimal.
    pub fn hash(&self) -> String {
        sha256(self.to_json().as_bytes())
    }
}

impl KernelSetup {
    /// `nohz_full=` and `isolcpus=` on a machine with `nr_cpus` CPUs.
    pub fn isolation(&self, nr_cpus: usize, at: &Location) -> Result<(CpuMask, CpuMask), Mistake> {
        let list = |name: &str, text: &Option<String>| match text.as_deref().map(parse_list) {
            None => Ok(CpuMask::default()),
            Some(Ok(cpus)) if cpus.iter().all(|cpu| cpu.index() < nr_cpus) => Ok(cpus),
            Some(_) => Err(unknown(at, &format!("{name} = {}", text.as_deref().unwrap_or_default()))),
        };
        Ok((list("nohz_full", &self.nohz_full)?, list("isolcpus", &self.isolcpus)?))
    }

    /// What its command line says about scheduling domains.
    pub fn domain_parameters(&self) -> DomainParameters {
        DomainParameters {
            relax_domain_level: self.parameters.get("relax_domain_level").and_then(|level| level.parse().ok()),
            sched_debug: self.parameters.contains_key("sched_debug"),
        }
    }

    /// The kernel that a run boots with these settings. `at` is the setup's place, for messages.
    pub fn build(&self, nr_cpus: usize, at: &Location) -> Result<(Build, Features, Sysctl), Mistake> {
        let Some(mut build) = Build::named(&self.name) else {
            let expected = format!("{} or a release between them", listed(crate::kernels::names()));
            return Err(Mistake::new(at, format!("the kernel {}", self.name), expected));
        };
        for (key, value) in &self.behaviours {
            if build.set(key, value) != Switched::Done {
                return Err(unknown(at, &format!("behaviour {key} = {value}")));
            }
        }
        if let Some(name) = &self.preempt {
            let model = Preempt::from_name(name).filter(|model| build.preempt_models.contains(model));
            build.os.preempt = model.ok_or_else(|| unknown(at, &format!("preempt = {name}")))?;
        }
        if let Some(name) = &self.idle_governor {
            build.idle.governor =
                Governor::from_name(name).ok_or_else(|| unknown(at, &format!("idle_governor = {name}")))?;
        }
        let mut features = build.sched.features;
        for (name, &on) in &self.features {
            match Feature::from_name(name).filter(|&feature| features.has(feature)) {
                Some(feature) => features.set(feature, on),
                None => return Err(unknown(at, &format!("feature {name}"))),
            }
        }
        let mut sysctl = Sysctl::new(nr_cpus);
        for (name, &value) in &self.sysctls {
            let known = build.sched.tunables.iter().find(|(known, _)| known == name);
            match known.filter(|(_, tunable)| (tunable.row().range.0..=tunable.row().range.1).contains(&value)) {
                Some((_, tunable)) => sysctl.set(*tunable, value),
                None => return Err(unknown(at, &format!("sysctl {name} = {value}"))),
            }
        }
        for (name, value) in &self.parameters {
            let known = PARAMETERS.iter().find(|parameter| parameter.name == name && (parameter.has)(&build));
            if known.is_none_or(|parameter| !parameter.takes(value)) {
                return Err(unknown(at, &format!("parameter {name}={value}")));
            }
        }
        if !is_hz(u64::from(self.hz)) {
            return Err(unknown(at, &format!("hz = {}", self.hz)));
        }
        Ok((build, features, sysctl))
    }
}

fn unknown(at: &Location, what: &str) -> Mistake {
    Mistake::new(at, format!("the {what}, which this program does not know"), "a record of this version")
}

impl MachineSetup {
    pub fn of(machine: &Machine) -> MachineSetup {
        let base = |base: &Base| FileSetup { path: base.file.clone(), text: base.text.clone() };
        let bases = machine.bases.iter().map(base).collect();
        MachineSetup { name: machine.name.clone(), file: machine.text.clone(), bases }
    }

    /// The machine that the files describe.
    pub fn machine(&self) -> Result<Machine, Mistake> {
        let base = |base: &FileSetup| Base { file: base.path.clone(), text: base.text.clone() };
        Machine::parse_over(&self.file, &self.name, self.bases.iter().map(base).collect())
    }

    /// Its number of CPUs.
    pub fn nr_cpus(&self) -> Result<usize, Mistake> {
        Ok(self.machine()?.description.topology().nr_cpus())
    }
}

/// The seed of iteration `iteration`. It is the same for every arm and workload, so that all meet the same chance.
pub fn iteration_seed(seed: u64, iteration: u32) -> u64 {
    Prng::stream(seed, "iteration", u64::from(iteration)).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_iterations_are_pinned_apart() {
        assert_eq!(iteration_seed(1, 0), iteration_seed(1, 0));
        let mut seeds: Vec<u64> = (0..100).map(|i| iteration_seed(1, i)).collect();
        seeds.extend((0..100).map(|i| iteration_seed(2, i)));
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 200);
    }
}
