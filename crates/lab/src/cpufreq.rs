//! The driver and governor of a machine's frequencies under a kernel, and an arm's settings in sysfs.
//!
//! The driver is the arm's (`cpufreq.driver=`, or `intel_pstate=` of the kernel's command line), else the machine
//! file's (`driver` in `[frequency]`). Without either, all CPUs run at the file's one frequency, `fixed`. The governor
//! is the arm's (`cpufreq.governor=`), else the machine file's, if the driver has it, else the kernel's default:
//! `powersave` under drivers with a policy of their own (`intel_pstate`, `amd-pstate-epp`), and under others `ondemand`
//! until v5.4 and `schedutil` from v5.10 on.
//!
//! With the cost model off every CPU runs at 1 GHz, whatever the settings say.

pub mod command_line;

use crate::kernels::Build;
use crate::mistake::{Mistake, Written, listed};
use machine::description::Description;
use machine::frequency::{
    Autonomous, Driver, File, FrequencyRules, Governor, Limits, Model, Policy, Preference, Sampling,
};
use std::collections::BTreeMap;

/// The settings of an arm, named as the files below `/sys/devices/system/cpu`, and what each means.
pub const FILES: &[(&str, &str)] = &[
    ("driver", "cpufreq's driver (`scaling_driver`), which on a real machine boot decides"),
    ("governor", "`scaling_governor`"),
    ("scaling_min_freq", "the lowest frequency that is asked for, in kHz"),
    ("scaling_max_freq", "the highest, in kHz"),
    ("scaling_setspeed", "the frequency that the governor userspace asks for, in kHz"),
    (
        "energy_performance_preference",
        "what hardware that chooses by itself prefers: a name, or 0 (performance) to 255 (power)",
    ),
    ("no_turbo", "1: nothing above the base frequency (Intel's drivers)"),
    ("boost", "0: nothing above the base frequency (other drivers)"),
    (
        "hwp_dynamic_boost",
        "1: tasks that waited for a device raise the lowest frequency that hardware chooses (intel_pstate)",
    ),
    ("rate_limit_us", "the governor schedutil waits so long between two changes, in microseconds"),
    ("sampling_rate", "ondemand and conservative look so often how busy CPUs were, in microseconds"),
    (
        "up_threshold",
        "above so much load, in percent, ondemand goes to the highest frequency and conservative a step up",
    ),
    (
        "sampling_down_factor",
        "so many periods ondemand stays at the highest frequency without a look, and conservative where it is before it goes down",
    ),
    ("ignore_nice_load", "1: time of tasks with a nice level above 0 is idle time to ondemand and conservative"),
    (
        "io_is_busy",
        "1: a CPU whose tasks wait for a device is busy to ondemand (as it is by itself on Intel's processors), 0: it idles",
    ),
    ("powersave_bias", "ondemand takes so many thousandths less than it finds right (with a table of frequencies)"),
    ("down_threshold", "below so much load, in percent, conservative goes a step down"),
    ("freq_step", "conservative's step, in percent of the highest frequency; 0: none"),
];

/// Those of them that belong to governors, and to which.
const TUNABLES: &[(&str, &[Governor])] = &[
    ("rate_limit_us", &[Governor::Schedutil]),
    ("sampling_rate", &[Governor::Ondemand, Governor::Conservative]),
    ("up_threshold", &[Governor::Ondemand, Governor::Conservative]),
    ("sampling_down_factor", &[Governor::Ondemand, Governor::Conservative]),
    ("ignore_nice_load", &[Governor::Ondemand, Governor::Conservative]),
    ("io_is_busy", &[Governor::Ondemand]),
    ("powersave_bias", &[Governor::Ondemand]),
    ("down_threshold", &[Governor::Conservative]),
    ("freq_step", &[Governor::Conservative]),
];

/// An arm's settings: the name of each file, and its value.
pub type Settings = [(Written, Written)];

/// Settings as a setup stores them.
pub fn settings_of(stored: &BTreeMap<String, String>, at: &machine::topology::Location) -> Vec<(Written, Written)> {
    let written = |text: &String| Written { text: text.clone(), at: at.clone() };
    stored.iter().map(|(name, value)| (written(name), written(value))).collect()
}

/// How frequencies are governed; `None` if they are fixed.
///
/// # Errors
/// Settings that the machine, its driver or the kernel does not have.
pub fn choose(
    machine: &Description,
    kernel: &str,
    build: &Build,
    hz: u32,
    settings: &Settings,
) -> Result<Option<(Model, Policy)>, Mistake> {
    for (name, _) in settings.iter().filter(|setting| setting.0.text != command_line::SETTING) {
        if !FILES.iter().any(|file| file.0 == name.text) {
            return Err(no_file(name));
        }
    }
    check_governed(machine, settings)?;
    let booted = command_line::chosen(machine, kernel, build, settings)?;
    let driver = match &booted {
        Some(booted) => Some(booted.driver),
        None => driver(machine, kernel, build, settings)?,
    };
    let Some(driver) = driver else { return Ok(None) };
    let mut model = model(machine, settings)?;
    if booted.is_some_and(|booted| booted.no_hwp) {
        model.autonomous = None;
    }
    model.em_cpufreq_update_efficiencies(machine.topology(), build.sched.wake.energy);
    if driver == Driver::AmdPstateEpp {
        // Under other drivers the same hardware obeys instead of choosing.
        let chooses = Autonomous::of(machine).map_err(|missing| lacks(machine, settings, missing))?;
        model.autonomous = Some(chooses);
    }
    let governor = governor(machine, kernel, build, driver, settings)?;
    let mut policy = Policy::new(&model, driver, governor, build.frequency, hz);
    let preference = build.frequency.preference;
    Setter { model: &model, policy: &mut policy, settings, preference, kernel, running: false }.all()?;
    Ok(Some((model, policy)))
}

/// Writes a file while the kernel runs, where `policy` is what all files show by then. Returns which file it is.
///
/// # Errors
/// What the machine, its driver, the governor of that moment or the kernel does not have, or refuses.
pub fn store(
    (model, policy): &mut (Model, Policy),
    kernel: &str,
    name: &Written,
    value: &Written,
) -> Result<File, Mistake> {
    if !FILES.iter().any(|file| file.0 == name.text) {
        return Err(no_file(name));
    }
    match name.text.as_str() {
        "driver" => {
            let found =
                format!("cpufreq.driver = {} in the timeline, while boot decides about the driver", value.quoted());
            return Err(name.mistake(found, "cpufreq.driver in the arm"));
        }
        "governor" => {
            *policy = policy.switched_to(model, named_governor(kernel, &policy.rules, policy.driver, value)?);
            return Ok(File::Governor);
        }
        _ => {}
    }
    let counted = (policy.ignore_nice_load, name.text == "io_is_busy");
    let (settings, preference) = ([(name.clone(), value.clone())], policy.rules.preference);
    Setter { model, policy, settings: &settings, preference, kernel, running: true }.all()?;
    Ok(match name.text.as_str() {
        "scaling_min_freq" | "scaling_max_freq" => File::Limits,
        "scaling_setspeed" => File::Setspeed,
        "no_turbo" | "boost" => File::Turbo,
        "hwp_dynamic_boost" => File::HwpDynamicBoost,
        "rate_limit_us" => File::RateLimit,
        "sampling_rate" => File::SamplingRate,
        "sampling_down_factor" => File::SamplingDownFactor,
        "powersave_bias" => File::PowersaveBias,
        "ignore_nice_load" | "io_is_busy" if counted != (policy.ignore_nice_load, false) => File::IdleTime,
        _ => File::Value,
    })
}

/// A name that is no file: perhaps a parameter of the module.
fn no_file(name: &Written) -> Mistake {
    let expected = match name.text.as_str() {
        "default_governor" => "cpufreq.governor, to which it leads",
        "off" => "a machine whose frequencies are fixed: one without `driver` in [frequency]",
        _ => return name.unknown("file of cpufreq", FILES.iter().map(|file| file.0)),
    };
    name.mistake(format!("cpufreq.{}, a parameter that is not modelled", name.text), expected)
}

/// The value set for that name.
pub fn value<'a>(settings: &'a Settings, name: &str) -> Option<&'a Written> {
    settings.iter().find(|setting| setting.0.text == name).map(|setting| &setting.1)
}

/// The place of the setting, or of the machine file if it has no place.
fn place(settings: &Settings, name: &str, machine: &Description) -> machine::topology::Location {
    let of_file = || machine::topology::Location::of(&format!("{}, [frequency]", machine.name()));
    value(settings, name).map_or_else(of_file, |written| written.at.clone())
}

/// Refuses settings of a guest that cannot see frequencies.
fn check_governed(machine: &Description, settings: &Settings) -> Result<(), Mistake> {
    match settings.first() {
        Some((name, value)) if machine.host_governs_frequencies() => {
            let what = match name.text.as_str() {
                command_line::SETTING => format!("{}{}", name.text, value.text),
                _ => format!("cpufreq.{} = {}", name.text, value.quoted()),
            };
            let found = format!(
                "{what} on {}, a guest that does not see its host's frequencies (`governed_by`)",
                machine.name()
            );
            Err(name.mistake(found, "a machine whose kernel governs them"))
        }
        _ => Ok(()),
    }
}

fn driver(machine: &Description, kernel: &str, build: &Build, settings: &Settings) -> Result<Option<Driver>, Mistake> {
    let of_kernel = build.frequency.drivers;
    let fits = |driver: Driver| machine.vendor().is_none_or(|vendor| driver.vendors().contains(&vendor));
    let Some(written) = value(settings, "driver") else {
        let Some(fact) = machine.fact("frequency.driver") else {
            let Some((name, _)) = settings.first() else { return Ok(None) };
            let found =
                format!("cpufreq.{}, but the clocks of {} are fixed, as it names no driver", name.text, machine.name());
            return Err(name.mistake(found, "cpufreq.driver beside it, or a machine file with `driver` in [frequency]"));
        };
        let driver = Driver::from_name(&fact.value).expect("the loader knows the same names");
        if of_kernel.contains(&driver) {
            return Ok(Some(driver));
        }
        if driver.shares_policies() {
            let found = format!("the driver {} of {}, which {kernel} does not have", driver.name(), machine.name());
            let at = place(settings, "driver", machine);
            return Err(Mistake::new(&at, found, "a later kernel, or a machine whose frequency is fixed"));
        }
        // Such a machine runs with this driver under a kernel that does not know its own driver yet.
        return Ok(Some(Driver::AcpiCpufreq));
    };
    let fitting = of_kernel.iter().copied().filter(|&driver| fits(driver)).map(Driver::name);
    match Driver::from_name(&written.text) {
        Some(driver) if !fits(driver) => {
            let vendor = machine.vendor().unwrap_or_default();
            let found =
                format!("the driver {}, while the processors of {} are {vendor}'s", driver.name(), machine.name());
            Err(written.mistake(found, one_of(fitting)))
        }
        Some(driver) if of_kernel.contains(&driver) => Ok(Some(driver)),
        Some(driver) => {
            let found = format!("the driver {}, which {kernel} does not have", driver.name());
            Err(written.mistake(found, one_of(fitting)))
        }
        None => Err(written.unknown("driver of cpufreq", fitting)),
    }
}

/// The drivers that a kernel has for a machine.
fn one_of<'n>(drivers: impl Iterator<Item = &'n str>) -> String {
    let drivers: Vec<&str> = drivers.collect();
    match drivers[..] {
        [] => "another machine: none of the drivers here is for it".to_string(),
        _ => format!("one of {}", listed(drivers)),
    }
}

fn model(machine: &Description, settings: &Settings) -> Result<Model, Mistake> {
    Model::of(machine).map_err(|missing| lacks(machine, settings, missing))
}

fn lacks(machine: &Description, settings: &Settings, missing: &str) -> Mistake {
    let found = format!("the machine {}, which does not give `{missing}`", machine.name());
    let expected = "a machine whose [frequency] tells how its clocks change";
    Mistake::new(&place(settings, "driver", machine), found, expected)
}

fn governor(
    machine: &Description,
    kernel: &str,
    build: &Build,
    driver: Driver,
    settings: &Settings,
) -> Result<Governor, Mistake> {
    let of_kernel = build.frequency.governors;
    let has = |governor: &Governor| of_kernel.contains(governor) && driver.governors().contains(governor);
    let Some(written) = value(settings, "governor") else {
        let of_machine = machine.fact("frequency.governor").and_then(|fact| Governor::from_name(&fact.value));
        let own = if driver.is_active() { Governor::Powersave } else { build.frequency.default_governor };
        return Ok(of_machine.filter(has).unwrap_or(own));
    };
    named_governor(kernel, &build.frequency, driver, written)
}

fn named_governor(
    kernel: &str,
    rules: &FrequencyRules,
    driver: Driver,
    written: &Written,
) -> Result<Governor, Mistake> {
    let of_kernel = rules.governors;
    let has = |governor: &Governor| of_kernel.contains(governor) && driver.governors().contains(governor);
    let names = of_kernel.iter().filter(|governor| has(governor)).map(|governor| governor.name());
    match Governor::from_name(&written.text) {
        Some(governor) if has(&governor) => Ok(governor),
        Some(governor) if of_kernel.contains(&governor) => {
            let found =
                format!("the governor {}, which the driver {} does not work with", governor.name(), driver.name());
            Err(written.mistake(found, format!("one of {}", listed(names))))
        }
        Some(governor) => {
            let found = format!("the governor {}, which {kernel} does not have", governor.name());
            Err(written.mistake(found, format!("one of {}", listed(names))))
        }
        None => Err(written.unknown("governor", names)),
    }
}

/// intel_pstate.c: store_energy_performance_preference(), intel_pstate_set_energy_pref_index(); amd-pstate.c: the same of amd-pstate-epp,
/// which takes no numbers.
fn preference(value: &Written, policy: &Policy, kernel: &str, beside: &str) -> Result<Preference, Mistake> {
    const WHAT: &str = "cpufreq.energy_performance_preference";
    let names = || Preference::NAMES.iter().map(|known| known.0);
    let of_amd = policy.driver == Driver::AmdPstateEpp;
    let preference = match Preference::from_name(&value.text) {
        Some(preference) => preference,
        None if !value.text.starts_with(|c: char| c.is_ascii_digit()) => {
            return Err(value.unknown("preference", names()));
        }
        None if of_amd || !policy.rules.preference_numbers => {
            let found = format!(
                "{WHAT} = {}, a number to the driver {} of {kernel} (EINVAL)",
                value.text,
                policy.driver.name()
            );
            return Err(value.mistake(found, format!("one of {}", listed(names()))));
        }
        None => Preference(value.whole(WHAT, 0, 255)? as u8),
    };
    // Passive mode has no policy that would override it.
    let checks = (of_amd || policy.rules.preference_numbers) && policy.driver.is_active();
    if checks && preference.0 > 0 && policy.governor == Governor::Performance {
        let found = format!("{WHAT} = {} with the governor performance, which overrides it (EBUSY)", value.quoted());
        return Err(value.mistake(found, format!("performance, or cpufreq.governor=powersave {beside} it")));
    }
    Ok(preference)
}

/// Applies the settings other than driver and governor.
struct Setter<'a> {
    model: &'a Model,
    policy: &'a mut Policy,
    settings: &'a Settings,
    preference: bool,
    kernel: &'a str,
    /// Whether the kernel runs already; otherwise it boots.
    running: bool,
}

impl Setter<'_> {
    fn all(&mut self) -> Result<(), Mistake> {
        for (name, value) in self.settings {
            self.set(name, value)?;
        }
        let (down, up) = (self.policy.down_threshold, self.policy.up_threshold);
        let threshold = |name: &str| self.settings.iter().find(|setting| setting.0.text == name);
        let set = threshold("down_threshold").or(threshold("up_threshold"));
        if let (true, Some((name, value))) = (self.policy.governor == Governor::Conservative && down >= up, set) {
            let found = format!("cpufreq.{} = {} (EINVAL)", name.text, value.quoted());
            return Err(value.mistake(found, format!("down_threshold ({down}) below up_threshold ({up})")));
        }
        let Limits { min_khz, max_khz, .. } = self.policy.limits;
        if min_khz > max_khz && !self.policy.rules.limits_cross {
            let (name, value) =
                self.settings.iter().find(|(name, _)| name.text.starts_with("scaling_m")).expect("one was set");
            let found = format!("cpufreq.{} = {} in {} (EINVAL)", name.text, value.quoted(), self.kernel);
            return Err(value.mistake(found, format!("a lowest frequency ({min_khz}) up to the highest ({max_khz})")));
        }
        Ok(())
    }

    /// cpufreq.c: store_scaling_min_freq(), store_scaling_max_freq(): any number; each policy applies as much of it as
    /// its own limits allow. Until v5.2 it is compared with the policy's other limit first, which is the hardware's as
    /// long as nothing was written.
    fn khz(&self, name: &Written, value: &Written) -> Result<u32, Mistake> {
        /// FREQ_QOS_MAX_DEFAULT_VALUE
        const MOST: u32 = i32::MAX as u32;
        let (driver, bands) = (self.policy.driver, &self.model.bands);
        let (least, most) = match name.text.as_str() {
            _ if self.policy.rules.limits_cross => (0, MOST),
            "scaling_min_freq" => (0, bands.iter().map(|band| driver.max_khz(band)).max().unwrap_or(MOST)),
            "scaling_max_freq" => (bands.iter().map(|band| driver.min_khz(band)).min().unwrap_or(0), MOST),
            _ => (0, MOST),
        };
        value.whole(&format!("cpufreq.{}", name.text), least.into(), most.into()).map(|khz| khz as u32)
    }

    fn set(&mut self, name: &Written, value: &Written) -> Result<(), Mistake> {
        let what = format!("cpufreq.{}", name.text);
        let khz = || self.khz(name, value);
        let driver = self.policy.driver;
        let intel = matches!(driver, Driver::IntelPstate | Driver::IntelCpufreq);
        match name.text.as_str() {
            "scaling_min_freq" => self.policy.limits.min_khz = khz()?,
            "scaling_max_freq" => self.policy.limits.max_khz = khz()?,
            "scaling_setspeed" if self.policy.governor != Governor::Userspace => {
                let found = format!("{what} with the governor {}", self.policy.governor.name());
                return Err(name.mistake(found, format!("cpufreq.governor=userspace {} it", self.beside())));
            }
            "scaling_setspeed" => self.policy.setspeed_khz = Some(khz()?),
            tunable if TUNABLES.iter().any(|(known, _)| *known == tunable) => self.set_tunable(name, value)?,
            "hwp_dynamic_boost" => {
                let boosts = self.policy.is_autonomous() && driver == Driver::IntelPstate;
                if !self.policy.rules.hwp_boost || !boosts {
                    let found = format!("{what} of {} under the driver {}", self.kernel, driver.name());
                    return Err(
                        name.mistake(found, "intel_pstate on hardware that chooses by itself, in a kernel since v4.19")
                    );
                }
                self.policy.hwp_dynamic_boost = value.whole(&what, 0, 1)? == 1;
            }
            "no_turbo" if !intel => return Err(self.other_driver(name, "boost")),
            "no_turbo" => self.switch_turbo(value.whole(&what, 0, 1)? == 0),
            "boost" if intel => return Err(self.other_driver(name, "no_turbo")),
            "boost" if driver == Driver::AmdPstateEpp && !self.policy.rules.epp_boost => {
                let found =
                    format!("{what} under the driver {} of {}, which has no such file", driver.name(), self.kernel);
                return Err(name.mistake(found, "a kernel since v6.11, or cpufreq.driver=amd-pstate"));
            }
            "boost" => self.switch_turbo(value.whole(&what, 0, 1)? == 1),
            "energy_performance_preference" => {
                if !self.preference {
                    let found = format!("{what}, which {} does not have", self.kernel);
                    return Err(name.mistake(found, "a later kernel"));
                }
                // In passive mode the file is there wherever hardware P-states are, though hardware that is told what to do
                // prefers nothing.
                if !self.policy.hardware {
                    let who = if driver.is_active() { "the driver itself chooses" } else { "governors choose" };
                    let found = format!("{what} under the driver {}, where {who}", driver.name());
                    return Err(name.mistake(
                        found,
                        "hardware P-states, under intel_pstate or intel_cpufreq, or the driver amd-pstate-epp",
                    ));
                }
                let preference = preference(value, self.policy, self.kernel, self.beside())?;
                // Whoever comes from `performance` gets what he had before, unless another preference was written.
                let overridden = self.running && driver == Driver::IntelPstate && preference.0 == 0;
                if !overridden || self.policy.governor != Governor::Performance {
                    self.policy.preference = preference;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets a file that belongs to the governor.
    fn set_tunable(&mut self, name: &Written, value: &Written) -> Result<(), Mistake> {
        let what = format!("cpufreq.{}", name.text);
        let owners = TUNABLES.iter().find(|(known, _)| *known == name.text).map_or(&[][..], |tunable| tunable.1);
        if !owners.contains(&self.policy.governor) || self.policy.driver.is_active() {
            let found = format!("{what} with the governor {}", self.policy.governor.name());
            let owners: Vec<&str> = owners.iter().map(|owner| owner.name()).collect();
            return Err(name.mistake(found, format!("cpufreq.governor={} {} it", owners.join(" or "), self.beside())));
        }
        // Until v4.5 thresholds begin at 11.
        let least_percent = if self.policy.rules.sampling == Sampling::Timers { 11 } else { 1 };
        match name.text.as_str() {
            "rate_limit_us" => self.policy.rate_limit_us = value.whole(&what, 0, 10_000_000)? as u32,
            "sampling_rate" => {
                // Until v4.5 a smaller value is taken as the minimum.
                let least = self.policy.min_sampling_rate_us;
                let refused_below = if self.policy.rules.sampling == Sampling::Timers { 0 } else { least.into() };
                self.policy.sampling_rate_us = (value.whole(&what, refused_below, 100_000_000)? as u32).max(least);
            }
            // MAX_SAMPLING_DOWN_FACTOR of each governor.
            "sampling_down_factor" => {
                let most = if self.policy.governor == Governor::Conservative { 10 } else { 100_000 };
                self.policy.sampling_down_factor = value.whole(&what, 1, most)? as u32;
            }
            "ignore_nice_load" => self.policy.ignore_nice_load = value.whole(&what, 0, 1)? == 1,
            "io_is_busy" => self.policy.io_is_busy = value.whole(&what, 0, 1)? == 1,
            // The kernel takes a larger value as the maximum.
            "powersave_bias" => self.policy.powersave_bias = value.whole(&what, 0, u32::MAX.into())?.min(1_000) as u32,
            "freq_step" => self.policy.freq_step = value.whole(&what, 0, u32::MAX.into())?.min(100) as u32,
            "down_threshold" => self.policy.down_threshold = value.whole(&what, least_percent, 99)? as u32,
            _ if self.policy.governor == Governor::Conservative => {
                self.policy.up_threshold = value.whole(&what, 1, 100)? as u32;
            }
            // MIN_FREQUENCY_UP_THRESHOLD
            _ => self.policy.up_threshold = value.whole(&what, least_percent, 100)? as u32,
        }
        Ok(())
    }

    fn switch_turbo(&mut self, turbo: bool) {
        match self.running {
            true => self.policy.cpufreq_boost_trigger_state(turbo),
            false => self.policy.limits.turbo = turbo,
        }
    }

    /// Where another setting stands that this one needs.
    fn beside(&self) -> &'static str {
        if self.running { "before" } else { "beside" }
    }

    fn other_driver(&self, name: &Written, meant: &str) -> Mistake {
        let found = format!("cpufreq.{} under the driver {}", name.text, self.policy.driver.name());
        name.mistake(found, format!("cpufreq.{meant}"))
    }
}

#[cfg(test)]
mod tests;
