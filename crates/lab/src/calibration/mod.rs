//! From the measurements on a computer to its machine file.
//!
//! There are three kinds of figures. Some are measured directly (a system call, a cache line from one CPU to another).
//! Some are fitted: the time of a kernel instruction and of leaving idle are chosen so that the simulation of a small
//! experiment takes as long as the experiment did (`fit.rs`). The rest cannot be seen from user space; each is a guess,
//! and the file says where it comes from.
//!
//! Nothing from pipetest and hackbench is used here, so that these can be predicted.

mod fit;
mod lines;
mod write;

pub use fit::Check;

use crate::experiment::{Draft, resolve_arm};
use crate::kernels::{names, version};
use crate::machines::Machine;
use crate::measured::Host;
use crate::mistake::{Location, Mistake};
use fit::{Bench, Effort, Stop};
use machine::topology::Topology;

/// One measured price, as the host delivers it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    pub name: String,
    pub unit: String,
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub bursts: usize,
    pub ran: String,
}

/// Everything that was observed on a computer.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The name that the machine will have.
    pub name: String,
    pub host: Host,
    pub topology: Topology,
    /// UTC, to the minute.
    pub when: String,
    /// As the driver declares them: name, exit latency, and target residency in microseconds.
    pub idle_states: Vec<(String, u64, u64)>,
    /// cpufreq's lowest and highest frequency in kHz, and its governor.
    pub frequency: Option<(u64, u64, String)>,
    pub measurements: Vec<Measurement>,
    /// Cache lines between CPUs: the distance as machine files call it, and the measurement's name.
    pub lines: Vec<(String, String)>,
    /// What could not be observed, and why.
    pub unseen: Vec<String>,
}

impl Observed {
    pub fn measurement(&self, name: &str) -> Option<&Measurement> {
        self.measurements.iter().find(|measurement| measurement.name == name)
    }

    fn needed(&self, name: &str) -> Result<&Measurement, Mistake> {
        self.measurement(name).ok_or_else(|| {
            let at = Location::of("calibrate");
            Mistake::new(
                &at,
                format!("no figure of {name}"),
                "a computer on which it can be measured; see what is said above",
            )
        })
    }

    fn gigahertz(&self) -> Result<f64, Mistake> {
        Ok(self.needed("frequency")?.value)
    }

    /// A store to the line that it monitors wakes an idle CPU; under other drivers a CPU halts until an interrupt
    /// comes.
    fn wakes_by_mwait(&self) -> bool {
        self.host.idle.as_deref().is_some_and(|idle| idle.starts_with("intel_idle") || idle.starts_with("acpi_idle"))
    }
}

/// A machine file, and how well the simulation agrees with the measurements.
#[derive(Clone, Debug)]
pub struct Calibration {
    pub text: String,
    /// The simulated arm: the nearest kernel, with what is known about how this one was built and booted.
    pub arm: String,
    pub checks: Vec<Check>,
    /// What the reader of the file should know.
    pub notes: Vec<String>,
}

/// Makes the machine file. `interrupted` is polled now and then; once it is true, there is no file.
///
/// # Errors
/// If a required figure is missing.
pub fn calibrate(observed: &Observed, interrupted: &dyn Fn() -> bool) -> Result<Option<Calibration>, Mistake> {
    match with_effort(observed, Effort::FULL, interrupted) {
        Ok(calibration) => Ok(Some(calibration)),
        Err(Stop::Interrupted) => Ok(None),
        Err(Stop::Mistake(mistake)) => Err(mistake),
    }
}

fn with_effort(observed: &Observed, effort: Effort, interrupted: &dyn Fn() -> bool) -> Result<Calibration, Stop> {
    let arm = nearest_arm(&observed.host);
    let mut notes = Vec::new();
    let bench = Bench { observed, arm: &arm, effort, interrupted };
    let fitted = fit::fit(bench, &mut notes)?;
    let checks = fit::checks(bench, &fitted)?;
    let text = write::machine_file(observed, &fitted, &arm, Some(&checks))?;
    // If we cannot read our own file, that is our fault.
    Machine::parse(&text, "the calibrated machine").unwrap_or_else(|mistake| panic!("{mistake}\n{text}"));
    Ok(Calibration { text, arm, checks, notes })
}

/// The newest simulated kernel that is not newer than a release such as `6.18.44-fc`; the oldest one if all are newer.
pub fn nearest_kernel(release: &str) -> &'static str {
    let not_newer = names().filter(|name| version(name) <= version(release)).last();
    not_newer.or(names().next()).expect("a kernel is simulated")
}

/// The arm that resembles a host's kernel most.
pub fn nearest_arm(host: &Host) -> String {
    let mut arm = nearest_kernel(&host.kernel).to_string();
    if let Some(model) = &host.preempt {
        let more = format!("{arm},preempt={model}");
        // Not every kernel takes each of these on its command line.
        if resolve_arm(&Draft::default().arm_option(&more), 1, 250).is_ok() {
            arm = more;
        }
    }
    arm
}

#[cfg(test)]
pub(crate) mod tests;
