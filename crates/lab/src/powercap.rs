//! The power limits of packages: a machine file's and an arm's settings, in the terms of the kernel's powercap
//! framework, and their effect.
//!
//! The limit and its window are the arm's, else the machine file's (`power_limit`, `power_window` in `[frequency]`). It
//! applies to each package. It needs the power of every state, and a cpufreq driver whose clocks it bounds. With the
//! cost model off nothing is limited.

use crate::cpufreq::{Settings, value};
use crate::mistake::{Mistake, Written};
use crate::observed::HardwareTotals;
use machine::description::{Description, Figure, key_of};
use machine::power_limit::{BeginsAt, PowerLimit};
use machine::topology::Location;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use units::Ps;

const LIMIT: &str = "constraint_0_power_limit_uw";
const WINDOW: &str = "constraint_0_time_window_us";

/// The settings of an arm, named as a package's files below `/sys/class/powercap`, and what each means.
pub const FILES: &[(&str, &str)] = &[
    (LIMIT, "what each package may draw, as a moving mean, in microwatts"),
    (WINDOW, "the time constant of that mean, in microseconds"),
    ("enabled", "0: nothing is limited, whatever the machine file says"),
    (
        "begins_at",
        "where the mean begins at boot, which no file of the kernel's says: at the `limit`, as after a long load, or as an `idle` machine's",
    ),
];

const BEGINS_AT: &[(&str, BeginsAt)] = &[("limit", BeginsAt::Limit), ("idle", BeginsAt::Idle)];

const PS_PER_US: u64 = 1_000_000;

/// The power limit of each package; `None` if there is none. `governed` says whether a driver moves the machine's
/// frequencies.
///
/// # Errors
/// Settings that are wrong, or that this machine does not support.
pub fn choose(machine: &Description, governed: bool, settings: &Settings) -> Result<Option<PowerLimit>, Mistake> {
    for (name, _) in settings {
        if !FILES.iter().any(|file| file.0 == name.text) {
            return Err(name.unknown("file of powercap", FILES.iter().map(|file| file.0)));
        }
    }
    let enabled = match value(settings, "enabled") {
        Some(written) => written.whole("powercap.enabled", 0, 1)? == 1,
        None => true,
    };
    let of_file = |name: &str| machine.figure(&format!("frequency.{name}")).map(|figure| figure.value);
    let (written, of_machine) = (value(settings, LIMIT), of_file("power_limit"));
    if written.is_none() && of_machine.is_none() {
        let Some((name, _)) = settings.first() else { return Ok(None) };
        let found = format!("powercap.{}, but nothing limits what packages of {} draw", name.text, machine.name());
        let expected = format!("powercap.{LIMIT} beside it, or a machine file with `power_limit` in [frequency]");
        return Err(name.mistake(found, expected));
    }
    // The place to point at, and its name.
    let (at, what) = match settings.iter().find(|setting| setting.0.text == LIMIT) {
        Some((name, _)) => (name.at.clone(), format!("powercap.{LIMIT}")),
        None => (Location::of(&format!("{}, [frequency]", machine.name())), "power_limit".to_string()),
    };
    let Some(least) = machine.least_package_power() else {
        let found = format!("{what}, but what CPUs of {} draw is not known", machine.name());
        let expected = "a machine whose [energy] has powers of every state";
        return Err(Mistake::new(&at, found, expected));
    };
    let limit_uw = match written {
        Some(written) => limit(machine, written, least)?,
        None => of_machine.expect("one of the two says it"),
    };
    let interval = machine.power_interval();
    let window = match value(settings, WINDOW) {
        Some(written) => {
            let longest = key_of("frequency.power_window").map_or(u64::MAX, |key| key.bounds.1);
            let (low, high) = (interval.0.div_ceil(PS_PER_US), longest / PS_PER_US);
            Some(Ps(written.whole(&format!("powercap.{WINDOW}"), low, high)? * PS_PER_US))
        }
        None => machine.figure("frequency.power_window").map(Figure::time),
    };
    let begins_at = match value(settings, "begins_at") {
        Some(written) => written.choice("value of powercap.begins_at", BEGINS_AT)?,
        None => BeginsAt::Limit,
    };
    let Some(window) = window else {
        let found = format!("{what} without a window");
        return Err(Mistake::new(&at, found, format!("powercap.{WINDOW} beside it")));
    };
    if enabled && !governed {
        let found = format!("{what}, but the clocks of {} are fixed, as it names no driver", machine.name());
        let expected = "cpufreq.driver beside it, or a machine file with `driver` in [frequency]";
        return Err(Mistake::new(&at, found, expected));
    }
    Ok(enabled.then_some(PowerLimit { limit_uw, window, interval, begins_at }))
}

/// The limit that an arm sets, where packages draw `least` if all their cores execute as slowly as they can.
fn limit(machine: &Description, written: &Written, least: u64) -> Result<u64, Mistake> {
    let what = format!("powercap.{LIMIT}");
    let highest = key_of("frequency.power_limit").map_or(u64::MAX, |key| key.bounds.1);
    let limit = written.whole(&what, 1, highest)?;
    if limit < least {
        let found = format!("{what} = {limit}, which cores of {} exceed at their lowest frequencies", machine.name());
        return Err(written.mistake(found, format!("{least} or more")));
    }
    Ok(limit)
}

/// What a run's limit did, for the JSON document of `run`, with the same content as [`text`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerLimitResult {
    pub limit_uw: u64,
    pub window_us: u64,
    /// In the order of the packages.
    pub packages: Vec<PackageLimitResult>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageLimitResult {
    /// The time of the control intervals in which something executed more slowly than without the limit.
    pub held_ns: u64,
    /// The package's average power, from boot to the end.
    pub mean_uw: u64,
}

impl PowerLimitResult {
    /// `None` if nothing was limited.
    pub fn of(totals: &HardwareTotals) -> Option<PowerLimitResult> {
        let (limit, energy) = totals.power_limit.as_ref().zip(totals.energy.as_ref())?;
        let duration = u128::from(energy.duration.0.max(1));
        let packages = limit.packages.iter().zip(&energy.packages).map(|(held, taken)| PackageLimitResult {
            held_ns: held.held.ns().0,
            mean_uw: ((taken.cores_aj + taken.own_aj) / duration) as u64,
        });
        Some(PowerLimitResult {
            limit_uw: limit.rule.limit_uw,
            window_us: limit.rule.window.0 / PS_PER_US,
            packages: packages.collect(),
        })
    }
}

/// How long each package was held by its limit, and what it drew; empty if nothing was limited.
pub fn text(totals: &HardwareTotals) -> String {
    let Some(result) = PowerLimitResult::of(totals) else { return String::new() };
    let watts = |uw: u64| uw as f64 / 1e6;
    let whole = totals.idle.duration.ns().0.max(1) as f64;
    let mut text =
        format!("limit of a package: {:.3} W over {} ms\n", watts(result.limit_uw), result.window_us as f64 / 1e3);
    for (number, package) in result.packages.iter().enumerate() {
        let (held, share) = (package.held_ns as f64 / 1e6, package.held_ns as f64 * 100.0 / whole);
        let mean = watts(package.mean_uw);
        let _ =
            writeln!(text, "package {number}: held by it for {held:.3} ms, {share:.1}% of the time, drew {mean:.3} W");
    }
    text
}

#[cfg(test)]
mod tests;
