//! `intel_pstate=` on the kernel's command line: intel_pstate.c: intel_pstate_setup(), intel_pstate_init().
//!
//! Differs: a real kernel passes over words that it does not know. Firmware that has switched hardware P-states on by itself, so that
//! neither `disable` nor `no_hwp` helps, is in no machine file.

use super::{Settings, value};
use crate::kernels::Build;
use crate::mistake::{Mistake, Written, listed};
use machine::description::Description;
use machine::frequency::{Driver, PstateStart};

pub const PARAMETER: &str = "intel_pstate";
/// Its name among [`Settings`]; no file is called so.
pub const SETTING: &str = "intel_pstate=";
pub const WORDS: &[&str] =
    &[DISABLE, NO_HWP, PASSIVE, ACTIVE, HWP_ONLY, "force", "support_acpi_ppc", "per_cpu_perf_limits"];

const DISABLE: &str = "disable";
const NO_HWP: &str = "no_hwp";
const PASSIVE: &str = "passive";
const ACTIVE: &str = "active";
/// No driver without hardware P-states.
const HWP_ONLY: &str = "hwp_only";
/// Separates words within one value. A real command line repeats the parameter for each word.
const BESIDE: char = '+';

/// Whether a kernel knows a word. Three change nothing: `force` is for firmware that keeps the processor's power to itself
/// and `support_acpi_ppc` for limits of ACPI (_PPC), of which no machine file tells; `per_cpu_perf_limits` takes away files
/// that are not modelled.
pub fn has(build: &Build, word: &str) -> bool {
    match word {
        // They came with v4.10, v4.7 and v4.10.
        PASSIVE | "support_acpi_ppc" | "per_cpu_perf_limits" => build.frequency.drivers.contains(&Driver::IntelCpufreq),
        ACTIVE => build.frequency.pstate_start == PstateStart::Passive,
        _ => true,
    }
}

/// What the parameter leads to.
pub(super) struct Chosen {
    pub driver: Driver,
    /// Hardware P-states stay off.
    pub no_hwp: bool,
}

/// The driver that a kernel's command line leads to; `None` if it says nothing.
///
/// # Errors
/// Words that the kernel does not have; processors that are not Intel's; another driver set alongside.
pub(super) fn chosen(
    machine: &Description,
    kernel: &str,
    build: &Build,
    settings: &Settings,
) -> Result<Option<Chosen>, Mistake> {
    let Some(written) = value(settings, SETTING) else { return Ok(None) };
    let what = format!("{PARAMETER}={}", written.text);
    if let Some(vendor) = machine.vendor().filter(|&vendor| vendor != "intel") {
        let found = format!(
            "{what}, while the processors of {} are {vendor}'s, whom intel_pstate leaves alone",
            machine.name()
        );
        return Err(written.mistake(found, "a machine with Intel's processors"));
    }
    if let Some(driver) = value(settings, "driver") {
        let found = format!("cpufreq.driver = {} beside {what}, which says it", driver.quoted());
        return Err(driver.mistake(found, "one of the two"));
    }
    let words = || written.text.split(BESIDE);
    for word in words() {
        check(word, written, kernel, build)?;
    }
    let said = |word: &str| words().any(|it| it == word);
    // If both modes are given, the last one holds, as with a parameter that is given twice.
    let mode = words().rfind(|&word| word == ACTIVE || word == PASSIVE);
    let driver = match (mode, build.frequency.pstate_start) {
        _ if said(DISABLE) || said(HWP_ONLY) && (said(NO_HWP) || !machine.has_hardware_pstates()) => {
            Driver::AcpiCpufreq
        }
        (Some(ACTIVE), _) => Driver::IntelPstate,
        (Some(_), _) => Driver::IntelCpufreq,
        (None, PstateStart::Active) => Driver::IntelPstate,
        (None, PstateStart::Passive) => Driver::IntelCpufreq,
    };
    Ok(Some(Chosen { driver, no_hwp: said(NO_HWP) }))
}

fn check(word: &str, written: &Written, kernel: &str, build: &Build) -> Result<(), Mistake> {
    let known = WORDS.iter().copied().filter(|word| has(build, word));
    if !WORDS.contains(&word) {
        let word = Written { text: word.to_string(), at: written.at.clone() };
        return Err(word.unknown(&format!("value of {PARAMETER}"), known));
    }
    if !has(build, word) {
        let found = format!("{PARAMETER}={word}, which {kernel} does not have");
        return Err(written.mistake(found, format!("one of {}", listed(known))));
    }
    Ok(())
}
