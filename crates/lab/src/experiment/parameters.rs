//! Parameters of the kernel's command line.

use super::Arm;
use crate::kernels::Build;
use crate::mistake::{Mistake, Written, listed};
use sched::profile::SleepProfile;
use sched::psi::Psi;

/// A parameter that is modelled.
pub struct Parameter {
    pub name: &'static str,
    pub values: &'static [&'static str],
    pub meaning: &'static str,
    /// Whether a kernel looks at it.
    pub has: fn(&Build) -> bool,
}

pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "schedstats",
        values: &["enable", "disable"],
        meaning: "collect scheduler statistics from boot on",
        has: |_| true,
    },
    Parameter {
        name: "numa_balancing",
        values: &["enable", "disable"],
        meaning: "bring tasks and their memory to one node, where there are several",
        has: |_| true,
    },
    Parameter {
        name: "preempt",
        values: &["none", "voluntary", "full"],
        meaning: "where a task that executes in the kernel gives way (since v5.12)",
        has: |build| build.preempt_dynamic,
    },
    Parameter {
        name: "nohz_full",
        values: &["CPUS"],
        meaning: "CPUs that run a single task without a tick",
        has: |_| true,
    },
    Parameter {
        name: "isolcpus",
        values: &["CPUS"],
        meaning: "CPUs that are not balanced, where tasks come only by affinity",
        has: |_| true,
    },
    Parameter {
        name: "psi",
        values: &["0", "1"],
        meaning: "account for the time in which tasks wait for CPUs and devices; off unless asked for",
        has: |build| build.sched.psi != Psi::Absent,
    },
    Parameter {
        name: "profile",
        values: &["sleep", "schedule"],
        meaning: "count where tasks are blocked (turns schedstats on), or calls of the scheduler: /proc/profile",
        has: |_| true,
    },
];

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    PARAMETERS.iter().map(|parameter| parameter.name)
}

impl Arm {
    pub(super) fn set_parameter(&mut self, key: &Written, value: &Written) -> Result<(), Mistake> {
        let Some(parameter) = PARAMETERS.iter().find(|parameter| parameter.name == key.text) else {
            return Err(key.unknown("kernel parameter", names()));
        };
        match parameter.name {
            "preempt" => return self.set_preempt(key, value),
            // Looked at together: see `isolation`.
            "nohz_full" | "isolcpus" => return Ok(()),
            _ => {}
        }
        if !(parameter.has)(&self.build) {
            let found = format!("the parameter {}, which {} does not have", key.quoted(), self.kernel);
            let has = |build: &Build| (parameter.has)(build);
            let kernels = crate::kernels::names().filter(|name| Build::named(name).as_ref().is_some_and(has));
            return Err(key.mistake(found, format!("a kernel that has it ({})", listed(kernels))));
        }
        if !parameter.values.contains(&value.text.as_str()) {
            return Err(value.unknown(&format!("value of {}", key.text), parameter.values.iter().copied()));
        }
        if parameter.name == "schedstats" {
            self.needs_schedstats_switch(key)?;
            self.sysctl.sched_schedstats = u64::from(value.text == "enable");
            return Ok(());
        }
        if parameter.name == "numa_balancing" {
            self.sysctl.numa_balancing = u64::from(value.text == "enable");
            return Ok(());
        }
        if value.text == "sleep" && self.build.sched.sleep_profile == SleepProfile::Absent {
            let found = format!("profile=sleep, which does nothing in {}", self.kernel);
            return Err(value.mistake(found, "schedule, or a kernel that profiles sleeps (v4.5-rc1, v4.15, v4.16)"));
        }
        self.parameters.insert(parameter.name.to_string(), value.text.clone());
        Ok(())
    }
}
