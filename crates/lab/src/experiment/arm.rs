//! One side of a comparison: a kernel and its settings.

use super::draft::{DraftArm, DraftSetting, SettingKind};
use super::isolation;
use crate::boot;
use crate::cpufreq::{self, command_line};
use crate::kernels::{self, Build};
use crate::machines::Machine;
use crate::mistake::{Mistake, Written, listed};
use crate::powercap;
use crate::setup::{ChangeSetup, KernelSetup};
use machine::description::{HERTZ, is_hz, nearest_name};
use machine::frequency::{Model, Policy};
use machine::idle::Governor;
use os::preempt::Preempt;
use sched::behaviour::Rules;
use sched::features::{Feature, Features};
use sched::layout::PerCpuAreas;
use sched::stats::Schedstats;
use sched::sysctl::{RUNTIME_UNLIMITED, Sysctl, Tunable, short_name};
use sched::versions::{KERNELS, Switched};
use std::collections::BTreeMap;
use units::CpuMask;

/// The prefix of frequency settings, where they are mixed with others.
const CPUFREQ: &str = "cpufreq.";
/// The prefix of settings that limit the power of packages.
const POWERCAP: &str = "powercap.";

/// The name of a cpufreq or powercap file, with the prefix removed if it has one.
fn bare<'k>(prefix: &str, key: &'k str) -> &'k str {
    key.strip_prefix(prefix).unwrap_or(key)
}

/// An arm's settings of the kind whose names have this prefix, with their places.
fn files_of(draft: &DraftArm, kind: SettingKind, prefix: &str) -> Vec<(Written, Written)> {
    let of = |setting: &DraftSetting| {
        let is_parameter = setting.key.text == command_line::PARAMETER && kind == SettingKind::Cpufreq;
        if is_parameter && matches!(setting.kind, None | Some(SettingKind::Parameter)) {
            let key = Written { text: command_line::SETTING.to_string(), at: setting.key.at.clone() };
            return Some((key, setting.value.clone()?));
        }
        let named = setting.key.text.starts_with(prefix) && setting.kind.is_none();
        let value = setting.value.as_ref().filter(|_| named || setting.kind == Some(kind))?;
        let key = Written { text: bare(prefix, &setting.key.text).to_string(), at: setting.key.at.clone() };
        Some((key, value.clone()))
    };
    draft.settings.iter().filter_map(of).collect()
}

/// Checks what depends on the machine: its frequencies, its power limits, and its ranks of cores, without which the
/// kernel does not create `kernel.sched_itmt_enabled`. Returns how its frequencies are governed, if they are.
pub fn check_on(arm: &Arm, draft: &DraftArm, machine: &Machine) -> Result<Option<(Model, Policy)>, Mistake> {
    let files = |kind, prefix| files_of(draft, kind, prefix);
    let settings = files(SettingKind::Cpufreq, CPUFREQ);
    let governed = cpufreq::choose(&machine.description, &arm.kernel, &arm.build, arm.hz, &settings)?;
    powercap::choose(&machine.description, governed.is_some(), &files(SettingKind::Powercap, POWERCAP))?;
    let itmt = |setting: &&DraftSetting| short_name(&setting.key.text) == "sched_itmt_enabled";
    match draft.settings.iter().find(itmt) {
        Some(setting) if !machine.description.topology().cpu_topology().ranks_cores() => {
            let found = format!("{}, but no core of {} ranks above another", setting.key.quoted(), machine.name);
            Err(setting.key.mistake(found, "a machine whose firmware ranks cores (`highest_perf` of its kinds)"))
        }
        _ => Ok(governed),
    }
}

/// The most letters of an arm's name.
const LONGEST_NAME: usize = 60;

/// An arm, resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The name in the head of its column.
    pub name: String,
    /// The kernel's name, before anything was set.
    pub kernel: String,
    pub build: Build,
    pub features: Features,
    pub sysctl: Sysctl,
    pub hz: u32,
    /// Whether the arm or its experiment gives `hz`; otherwise it is the machine's `tick.rate`.
    pub says_hz: bool,
    /// Parameters of the kernel's command line, except those that set a tunable or the preemption model.
    pub parameters: BTreeMap<String, String>,
    /// Whether it names a governor of idle states, even if that is the kernel's default.
    pub names_idle_governor: bool,
    /// `nohz_full=` and `isolcpus=`
    pub nohz_full: CpuMask,
    pub isolcpus: CpuMask,
    /// Settings below `/sys/devices/system/cpu/cpufreq`, by the names of [`crate::cpufreq::FILES`].
    pub cpufreq: BTreeMap<String, String>,
    /// Settings below `/sys/class/powercap`, by the names of [`crate::powercap::FILES`].
    pub powercap: BTreeMap<String, String>,
    /// What changes while it runs.
    pub timeline: Vec<ChangeSetup>,
    /// The settings in the user's words.
    pub said: Vec<String>,
    /// What the kernel would complain about at boot.
    pub complaints: Vec<String>,
}

/// Checks and applies an arm's settings. `hz` applies if the arm does not set its own.
pub fn resolve(draft: &DraftArm, nr_cpus: usize, hz: u32) -> Result<Arm, Mistake> {
    let kernel = draft.kernel.as_ref().unwrap_or(&draft.name);
    let build = Build::choose(kernel)?;
    let mut arm = Arm {
        name: draft.name.text.clone(),
        kernel: kernel.text.clone(),
        features: build.sched.features,
        sysctl: build.sched.sysctl(nr_cpus),
        build,
        hz,
        says_hz: false,
        parameters: BTreeMap::new(),
        names_idle_governor: false,
        nohz_full: CpuMask::default(),
        isolcpus: CpuMask::default(),
        cpufreq: BTreeMap::new(),
        powercap: BTreeMap::new(),
        timeline: Vec::new(),
        said: Vec::new(),
        complaints: Vec::new(),
    };
    arm.complaints.extend(arm.build.not_read_whole());
    let mut settings = Vec::new();
    for setting in &draft.settings {
        settings.push((kind_of(setting, &arm)?, setting));
    }
    refuse_repeats(&settings, &arm.build)?;
    // Settings apply in the order of a real kernel's life: it is built, booted and configured. A behaviour that is named
    // counts more than what a choice of the build implies, and decides with which tunables the kernel boots.
    settings.sort_by_key(|(kind, _)| order(*kind));
    let built = settings.partition_point(|(kind, _)| order(*kind) <= order(SettingKind::Behaviour));
    for (kind, setting) in &settings[..built] {
        arm.set(*kind, setting)?;
    }
    arm.sysctl = arm.build.sched.sysctl(nr_cpus).at_hz(arm.hz);
    for (kind, setting) in &settings[built..] {
        arm.set(*kind, setting)?;
    }
    isolation::check(&mut arm, draft, nr_cpus)?;
    arm.complain_of_governor();
    Ok(arm)
}

fn check_name(name: &Written) -> Result<(), Mistake> {
    let letters = name.text.chars().count();
    let printable = name.text.chars().all(|c| !c.is_control() && !c.is_whitespace());
    if (1..=LONGEST_NAME).contains(&letters) && printable {
        return Ok(());
    }
    let expected = format!("1 to {LONGEST_NAME} letters without blanks");
    Err(name.mistake(format!("the arm's name {}", name.quoted()), expected))
}

fn order(kind: SettingKind) -> u8 {
    match kind {
        SettingKind::Hz | SettingKind::Config => 0,
        SettingKind::Behaviour => 1,
        SettingKind::Parameter => 2,
        SettingKind::Sysctl => 3,
        SettingKind::Feature => 4,
        SettingKind::Cpufreq => 5,
        SettingKind::Powercap => 6,
    }
}

/// The kind of setting that a key of the command line names.
fn kind_of(setting: &DraftSetting, arm: &Arm) -> Result<SettingKind, Mistake> {
    if let Some(kind) = setting.kind {
        return Ok(kind);
    }
    let key = setting.key.text.as_str();
    let keys: Vec<&str> = arm.build.settings().iter().map(|setting| setting.key).collect();
    if key.starts_with(|c: char| c.is_ascii_digit()) {
        let found = format!("{} after a comma, which goes on with no value", setting.key.quoted());
        let expected = "key=value, or a feature; a list of CPUs stands behind its key, as in isolcpus=1,3-5";
        return Err(setting.key.mistake(found, expected));
    }
    if let Some(mistake) = boot::not_modelled(&setting.key) {
        return Err(mistake);
    }
    let toggle = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if key == "hz" {
        Ok(SettingKind::Hz)
    } else if key.starts_with(CPUFREQ) {
        Ok(SettingKind::Cpufreq)
    } else if key.starts_with(POWERCAP) {
        Ok(SettingKind::Powercap)
    } else if key.starts_with("CONFIG_") {
        Ok(SettingKind::Config)
    } else if boot::names().any(|name| name == key) {
        Ok(SettingKind::Parameter)
    } else if keys.contains(&key) {
        Ok(SettingKind::Behaviour)
    } else if any_tunable(key) || key.starts_with("kernel.") || key.starts_with("sched/") {
        Ok(SettingKind::Sysctl)
    } else if !key.is_empty() && key.chars().all(toggle) {
        Ok(SettingKind::Feature)
    } else {
        let mut known = keys;
        known.extend(tunable_names(&arm.build).flat_map(|name| [name, short_name(name)]));
        known.extend(boot::names().chain(["hz"]));
        known.extend(arm.features.iter().map(|(feature, _)| feature.name()));
        let expected = match nearest_name(key, known) {
            Some(nearest) => format!("`{nearest}`, perhaps"),
            None => format!(
                "a behaviour, sysctl, feature (NAME or NO_NAME) or parameter that `fairground kernels show {}` lists",
                arm.kernel
            ),
        };
        Err(setting.key.mistake(format!("the unknown setting {}", setting.key.quoted()), expected))
    }
}

/// A word that is no modelled parameter of the command line.
pub(super) fn unknown_parameter(key: &Written) -> Mistake {
    boot::not_modelled(key).unwrap_or_else(|| key.unknown("kernel parameter", boot::names()))
}

fn refuse_repeats(settings: &[(SettingKind, &DraftSetting)], build: &Build) -> Result<(), Mistake> {
    let name = |(kind, setting): &(SettingKind, &DraftSetting)| match kind {
        SettingKind::Sysctl => {
            build.sched.tunable(&setting.key.text).map_or(setting.key.text.as_str(), |(name, _)| name).to_string()
        }
        SettingKind::Feature => setting.key.text.trim_start_matches("NO_").to_string(),
        SettingKind::Cpufreq => bare(CPUFREQ, &setting.key.text).to_string(),
        SettingKind::Powercap => bare(POWERCAP, &setting.key.text).to_string(),
        // All options of the build are one choice.
        SettingKind::Config => "preempt".to_string(),
        _ => setting.key.text.clone(),
    };
    for (index, setting) in settings.iter().enumerate() {
        let same = |other: &(SettingKind, &DraftSetting)| other.0 == setting.0 && name(other) == name(setting);
        if settings[..index].iter().any(same) {
            let key = &setting.1.key;
            return Err(key.mistake(format!("{} for the second time", key.quoted()), "each setting once"));
        }
    }
    Ok(())
}

fn tunable_names(build: &Build) -> impl Iterator<Item = &'static str> + Clone {
    build.sched.tunables.iter().map(|(name, _)| *name)
}

/// Whether some kernel has a tunable of that name.
fn any_tunable(key: &str) -> bool {
    KERNELS.iter().any(|kernel| kernel.tunable(key).is_some())
}

impl Arm {
    fn set(&mut self, kind: SettingKind, setting: &DraftSetting) -> Result<(), Mistake> {
        if kind == SettingKind::Feature {
            return self.set_feature(setting);
        }
        let key = &setting.key;
        let Some(value) = &setting.value else {
            match boot::parameter(&key.text) {
                Some(parameter) if parameter.is_switch() => {
                    return self.set_switch(parameter, key);
                }
                None if kind == SettingKind::Parameter => return Err(unknown_parameter(key)),
                _ => {}
            }
            return Err(key.mistake(format!("{} without a value", key.quoted()), "key=value"));
        };
        match kind {
            SettingKind::Behaviour => self.set_behaviour(key, value)?,
            SettingKind::Parameter => self.set_parameter(key, value)?,
            SettingKind::Sysctl => self.set_sysctl(key, value)?,
            SettingKind::Hz => (self.hz, self.says_hz) = (read_hz(value)?, true),
            SettingKind::Config => self.set_config(key, value)?,
            SettingKind::Cpufreq | SettingKind::Powercap => {
                let (prefix, files) = match kind {
                    SettingKind::Cpufreq => (CPUFREQ, &mut self.cpufreq),
                    _ => (POWERCAP, &mut self.powercap),
                };
                let name = bare(prefix, &key.text);
                files.insert(name.to_string(), value.text.clone());
                self.said.push(format!("{prefix}{name}={}", value.text));
                return Ok(());
            }
            SettingKind::Feature => unreachable!("handled above"),
        }
        self.said.push(format!("{}={}", key.text, value.text));
        Ok(())
    }

    fn set_behaviour(&mut self, key: &Written, value: &Written) -> Result<(), Mistake> {
        match self.build.set(&key.text, &value.text) {
            Switched::Done => {
                self.names_idle_governor |= key.text == Governor::KEY;
                self.complain_of_padding();
                Ok(())
            }
            Switched::UnknownKey => {
                let keys: Vec<&str> = self.build.settings().iter().map(|setting| setting.key).collect();
                Err(key.unknown("behaviour", keys))
            }
            Switched::UnknownValue(choices) => {
                Err(value.unknown(&format!("value of {}", key.text), choices.iter().map(|choice| choice.name)))
            }
        }
    }

    /// With `idle=` no driver of idle states loads, and with `cpuidle.off` no governor is asked.
    fn complain_of_governor(&mut self) {
        let without = ["idle", "cpuidle.off"].into_iter().find(|name| self.parameters.contains_key(*name));
        if let Some(name) = without.filter(|_| self.names_idle_governor) {
            let complaint =
                format!("arm {}: with {name}= the governor of idle states has nothing to choose", self.name);
            self.complaints.push(complaint);
        }
    }

    /// Where run queues fill whole lines, they lie in the same way packed and padded.
    fn complain_of_padding(&mut self) {
        let mut padded = self.build.sched;
        padded.layout.percpu_areas = PerCpuAreas::Padded;
        if padded != self.build.sched && padded.layout() == self.build.sched.layout() {
            let complaint = format!(
                "arm {}: layout.percpu_areas=packed changes nothing in {}, whose run queues fill whole lines",
                self.name, self.kernel
            );
            if !self.complaints.contains(&complaint) {
                self.complaints.push(complaint);
            }
        }
    }

    /// As in setup_preempt_mode(), except that what the kernel warns about is refused here.
    pub(super) fn set_preempt(&mut self, key: &Written, value: &Written) -> Result<(), Mistake> {
        if !self.build.preempt_dynamic {
            let found = format!("the parameter {}, which {} does not have", key.quoted(), self.kernel);
            return Err(key.mistake(found, format!("the choice of its build: one of {}", listed(self.build.configs()))));
        }
        let models = self.build.preempt_models;
        match Preempt::from_name(&value.text) {
            Some(preempt) if models.contains(&preempt) => self.build.set_preempt(preempt),
            Some(other) => {
                let found = format!("preempt = {}, which {} does not have", value.quoted(), self.kernel);
                let expected = match other {
                    Preempt::Lazy => "none, voluntary or full: lazy preemption came with v6.13",
                    _ => "full or lazy: x86 has had no other models since v7.0",
                };
                return Err(value.mistake(found, expected));
            }
            None => {
                let known: Vec<&str> = models.iter().map(|model| model.name()).collect();
                return Err(value.unknown("value of preempt", known));
            }
        }
        Ok(())
    }

    /// `CONFIG_PREEMPT=y`.
    fn set_config(&mut self, key: &Written, value: &Written) -> Result<(), Mistake> {
        if value.text != "y" {
            return Err(value.mistake(format!("{} = {}", key.text, value.quoted()), "y: what is chosen"));
        }
        let configs = self.build.configs();
        match Preempt::ALL.into_iter().find(|preempt| preempt.config() == key.text) {
            Some(preempt) if self.build.preempt_models.contains(&preempt) => self.build.set_preempt(preempt),
            Some(_) => {
                let found = format!("{}, which {} does not have", key.quoted(), self.kernel);
                return Err(key.mistake(found, format!("one of {}", listed(configs))));
            }
            None if key.text == "CONFIG_PREEMPT_RT" => {
                let found = format!("{}, which is not modelled", key.quoted());
                return Err(key.mistake(found, format!("one of {}", listed(configs))));
            }
            None => return Err(key.unknown("choice of the build", configs)),
        }
        Ok(())
    }

    fn set_sysctl(&mut self, key: &Written, value: &Written) -> Result<(), Mistake> {
        let (name, tunable, number) = self.tunable_value(key, value)?;
        let mut sysctl = self.sysctl;
        sysctl.set(tunable, number);
        if let Some(expected) = sysctl.contradiction() {
            return Err(value.mistake(format!("{name}={number}"), expected));
        }
        self.sysctl = sysctl;
        Ok(())
    }

    /// The full name of a tunable of this arm's kernel, and the value that is meant for it.
    pub(super) fn tunable_value(
        &self,
        key: &Written,
        value: &Written,
    ) -> Result<(&'static str, Tunable, u64), Mistake> {
        let Some((name, tunable)) = self.build.sched.tunable(&key.text) else { return Err(self.unknown_tunable(key)) };
        let (low, high) = tunable.written_range();
        let sysctl = name.starts_with("kernel.");
        let or_unlimited = |of: Mistake| Mistake { expected: format!("{}, or -1: no limit", of.expected), ..of };
        let below_one = value.text.parse::<i32>().is_ok_and(|number| number < 1);
        let number = match (value.text.as_str(), tunable.words()) {
            ("-1", _) if tunable == Tunable::sched_rt_runtime => RUNTIME_UNLIMITED,
            (_, None) if tunable == Tunable::sched_rt_runtime => value.whole(name, low, high).map_err(or_unlimited)?,
            // An int to the sysctl, and 32 bits without a sign to debugfs, which reads no `-1`.
            ("-1", _) if tunable == Tunable::sched_migration_cost && sysctl => u32::MAX.into(),
            // rt.c: sched_rr_handler()
            (_, None) if tunable == Tunable::sched_rr_timeslice && below_one => tunable.row().default,
            (word, Some(words)) => match words.iter().position(|known| *known == word) {
                Some(at) => at as u64,
                None => return Err(value.unknown(tunable.row().unit, words.iter().copied())),
            },
            (_, None) => value.whole(name, low, high)?,
        };
        if tunable == Tunable::sched_schedstats {
            self.needs_schedstats_switch(key)?;
        }
        Ok((name, tunable, number))
    }

    /// The tunable is another kernel's, perhaps under another name here, or no kernel's.
    fn unknown_tunable(&self, key: &Written) -> Mistake {
        let elsewhere: Vec<_> =
            KERNELS.iter().filter_map(|kernel| Some((kernel.name, kernel.tunable(&key.text)?.1))).collect();
        let Some((_, meant)) = elsewhere.first() else {
            return key.unknown("sysctl", tunable_names(&self.build));
        };
        let found = format!("the tunable {}, which {} does not have", key.quoted(), self.kernel);
        let expected = match self.build.sched.tunables.iter().find(|(_, tunable)| tunable == meant) {
            Some((name, _)) => format!("`{name}`, as it is called there"),
            None => format!("a kernel that has it ({})", listed(elsewhere.iter().map(|(kernel, _)| *kernel))),
        };
        key.mistake(found, expected)
    }

    /// Kernels from before statistics could be switched have no switch to set.
    pub(super) fn needs_schedstats_switch(&self, key: &Written) -> Result<(), Mistake> {
        match self.build.sched.schedstats {
            Schedstats::Tunable => Ok(()),
            Schedstats::Always => {
                let found = format!("{}, but {} collects statistics always", key.quoted(), self.kernel);
                let expected = format!("{}=tunable beside it, or a later kernel", Schedstats::KEY);
                Err(key.mistake(found, expected))
            }
        }
    }

    /// `X`, `NO_X`, `X=0` or `X=1`.
    fn set_feature(&mut self, setting: &DraftSetting) -> Result<(), Mistake> {
        let (feature, on) = self.feature_value(&setting.key, setting.value.as_ref())?;
        self.features.set(feature, on);
        self.said.push(said_of_feature(feature, on));
        Ok(())
    }

    /// A feature of this arm's kernel, and whether it should be on.
    pub(super) fn feature_value(&self, key: &Written, value: Option<&Written>) -> Result<(Feature, bool), Mistake> {
        let (name, mut on) = match key.text.strip_prefix("NO_") {
            Some(name) => (name, false),
            None => (key.text.as_str(), true),
        };
        if let Some(value) = value {
            on ^= value.whole(&key.text, 0, 1)? == 0;
        }
        match Feature::from_name(name).filter(|&feature| self.features.has(feature)) {
            // A feature that no code here reads may be named, but not changed: the change would silently have no
            // effect.
            Some(feature) if !feature.has_effect() && self.features.sched_feat(feature) != on => {
                let found = format!("the feature {}, which is not modelled yet", key.quoted());
                Err(key.mistake(found, "another feature, or none"))
            }
            Some(feature) => Ok((feature, on)),
            None => Err(self.unknown_feature(key, name)),
        }
    }

    fn unknown_feature(&self, key: &Written, name: &str) -> Mistake {
        let elsewhere: Vec<&str> = match Feature::from_name(name) {
            None => Vec::new(),
            Some(feature) => {
                KERNELS.iter().filter(|kernel| kernel.features.has(feature)).map(|kernel| kernel.name).collect()
            }
        };
        if !elsewhere.is_empty() {
            let found = format!("the feature {}, which {} does not have", key.quoted(), self.kernel);
            return key.mistake(found, format!("a kernel that has it ({}), or another feature", listed(elsewhere)));
        }
        // The prefix would make a name far from every other.
        let bare = Written { text: name.to_string(), at: key.at.clone() };
        let turnable = self.features.iter().map(|(feature, _)| feature).filter(|feature| feature.has_effect());
        let names: Vec<&str> = turnable.map(|feature| feature.name()).collect();
        bare.unknown(&format!("feature of {}", self.kernel), names)
    }

    /// Whether statistics are collected from boot on.
    pub fn collects_schedstats(&self) -> bool {
        let forced = self.sysctl.latencytop != 0 || self.parameters.get("profile").is_some_and(|of| of == "sleep");
        self.build.sched.schedstats == Schedstats::Always || self.sysctl.sched_schedstats != 0 || forced
    }

    /// `v4.15 NO_SIS_PROP hz=1000`.
    pub fn summary(&self) -> String {
        std::iter::once(&self.kernel).chain(&self.said).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl KernelSetup {
    /// The kernel of an arm with all settings, as a setup stores it.
    pub fn of(arm: &Arm) -> KernelSetup {
        let behaviours = arm.build.settings().into_iter();
        let own = Build::named(&arm.kernel).map(|build| build.os.preempt);
        let preempt = arm.build.os.preempt;
        KernelSetup {
            name: arm.kernel.clone(),
            hz: arm.hz,
            behaviours: behaviours.map(|setting| (setting.key.to_string(), setting.value.name.to_string())).collect(),
            features: arm.features.iter().map(|(feature, on)| (feature.name().to_string(), on)).collect(),
            sysctls: arm.build.sched.tunables.iter().map(|(name, t)| (name.to_string(), arm.sysctl.get(*t))).collect(),
            idle_governor: arm.names_idle_governor.then(|| arm.build.idle.governor.setting().value.name.to_string()),
            parameters: arm.parameters.clone(),
            nohz_full: (!arm.nohz_full.is_empty()).then(|| arm.nohz_full.list()),
            cpufreq: arm.cpufreq.clone(),
            powercap: arm.powercap.clone(),
            isolcpus: (!arm.isolcpus.is_empty()).then(|| arm.isolcpus.list()),
            preempt: (own != Some(preempt)).then(|| preempt.name().to_string()),
        }
    }
}

/// As one would write it into `sched_features`.
pub(super) fn said_of_feature(feature: Feature, on: bool) -> String {
    if on { feature.name().to_string() } else { format!("NO_{}", feature.name()) }
}

/// CONFIG_HZ.
pub fn read_hz(value: &Written) -> Result<u32, Mistake> {
    let hertz = format!("one of {}", HERTZ.map(|hertz| hertz.to_string()).join(", "));
    match value.text.parse::<u64>() {
        Ok(hz) if is_hz(hz) => Ok(hz as u32),
        _ => Err(value.mistake(format!("hz = {}", crate::mistake::excerpt(&value.text, 40)), hertz)),
    }
}

/// Checks that there are enough arms, and that their names differ.
pub fn check_all(arms: &[DraftArm], at: &machine::topology::Location, needed: usize) -> Result<(), Mistake> {
    for (index, arm) in arms.iter().enumerate() {
        check_name(&arm.name)?;
        if arms[..index].iter().any(|other| other.name.text == arm.name.text) {
            let found = format!("the arm {} for the second time", arm.name.quoted());
            return Err(arm.name.mistake(found, "a name of its own for each arm"));
        }
    }
    let expected = |rest: &str| format!("{rest}: --arm NAME=KERNEL, with a kernel of {}", listed(kernels::names()));
    match arms.len() {
        0 => Err(Mistake::new(at, "no arm", expected(if needed == 1 { "one arm" } else { "two arms or more" }))),
        1 if needed > 1 => Err(arms[0].name.mistake("a single arm", expected("another arm to compare with"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
