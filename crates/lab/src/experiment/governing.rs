//! What a timeline writes to files of clocks and idle states, checked against the machine and the kernel of an arm.

use super::arm::Arm;
use crate::cpufreq;
use crate::idle::{GOVERNOR, state_of, way};
use crate::mistake::{Mistake, Written, listed};
use crate::prices::prices;
use machine::description::Description;
use machine::frequency::{Model, Policy};
use machine::idle::{Governor, IdleOptions, StateTable, Way};

/// What an arm's files show, as its timeline goes on.
pub struct Governing {
    /// `None`: its clocks are fixed.
    pub cpufreq: Option<(Model, Policy)>,
}

impl Governing {
    /// A file of cpufreq is written.
    ///
    /// # Errors
    /// Of [`cpufreq::store`], and where clocks are fixed.
    pub fn store_cpufreq(
        &mut self,
        arm: &Arm,
        machine: &Description,
        name: &Written,
        value: &Written,
    ) -> Result<(), Mistake> {
        if let Some(governed) = &mut self.cpufreq {
            return cpufreq::store(governed, &arm.kernel, name, value).map(drop);
        }
        let what = format!("cpufreq.{}", name.text);
        if machine.host_governs_frequencies() {
            let found = format!(
                "{what} on {}, a guest that does not see its host's frequencies (`governed_by`)",
                machine.name()
            );
            return Err(name.mistake(found, "a machine whose kernel governs them"));
        }
        let found = format!("{what}, but the clocks of {} are fixed in the arm {}", machine.name(), arm.name);
        Err(name.mistake(found, "cpufreq.driver in the arm, or a machine file with `driver` in [frequency]"))
    }
}

/// The longest exit latency that can be asked for: PM_QOS_CPU_LATENCY_DEFAULT_VALUE, in microseconds.
const MOST_LATENCY_US: u64 = 2_000_000_000;

/// What is written to /dev/cpu_dma_latency; `None`: the file is closed.
pub fn latency(value: &Written) -> Result<Option<u32>, Mistake> {
    match value.text.as_str() {
        "-1" | "default" => Ok(None),
        _ => value.whole("cpu_dma_latency", 0, MOST_LATENCY_US).map(|us| Some(us as u32)).map_err(|mistake| Mistake {
            expected: format!("{}, or -1: the file is closed", mistake.expected),
            ..mistake
        }),
    }
}

/// Checks a file of cpuidle that is written while the kernel of an arm runs.
///
/// # Errors
/// States and governors that machine, kernel or command line do not have.
pub fn check_cpuidle(arm: &Arm, machine: &Description, name: &Written, value: &Written) -> Result<(), Mistake> {
    let (what, own) = (format!("cpuidle.{}", name.text), &arm.build.idle);
    let state = state_of(&name.text);
    if state.is_none() && name.text != GOVERNOR {
        let expected = "stateN.disable, such as \"state2.disable\", or governor";
        return Err(name.mistake(format!("the unknown file of cpuidle {}", name.quoted()), expected));
    }
    if way(&arm.parameters, arm.names_idle_governor, machine, own) != Way::Governed {
        let found = format!(
            "{what}, while the CPUs have no driver of idle states (idle=, cpuidle.off=1, or an old kernel's guest)"
        );
        return Err(name.mistake(found, "an arm with one"));
    }
    let Some(state) = state else { return check_governor(arm, value) };
    value.whole(&what, 0, 1)?;
    let max_cstate = arm.parameters.get("intel_idle.max_cstate").and_then(|text| text.parse().ok());
    let states = prices(machine, &arm.kernel).idle_states;
    let table = StateTable::new(&states, &IdleOptions { max_cstate, ..IdleOptions::default() });
    if state >= table.states.len() {
        let names = states.iter().take(table.states.len()).enumerate();
        let names: Vec<String> = names.map(|(number, state)| format!("state{number} ({})", state.name)).collect();
        let found = format!("{what}, a state that {} does not have", machine.name());
        return Err(name.mistake(found, format!("one of {}", listed(names.iter().map(String::as_str)))));
    }
    Ok(())
}

fn check_governor(arm: &Arm, value: &Written) -> Result<(), Mistake> {
    let (own, kernel) = (&arm.build.idle, &arm.kernel);
    if !own.governor_switch {
        let found = format!("cpuidle.governor in the timeline of {kernel}, whose file nobody can write");
        return Err(value.mistake(found, "a kernel since v5.9 (cpuidle_sysfs_switch of older ones is not modelled)"));
    }
    let names = own.governors.iter().map(|governor| governor.variant().name);
    match Governor::from_name(&value.text) {
        Some(governor) if own.has(governor) => Ok(()),
        _ => Err(value.unknown("governor of idle states", names)),
    }
}
