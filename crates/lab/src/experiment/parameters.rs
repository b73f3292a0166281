//! Parameters of the kernel's command line.

use super::Arm;
use crate::boot::{self, Effect};
use crate::cpufreq::command_line;
use crate::kernels::Build;
use crate::mistake::{Mistake, Written, excerpt, listed};
use machine::idle::Governor;
use sched::profile::SleepProfile;
use sched::versions::{KERNELS, Kernel};

impl Arm {
    pub(super) fn set_parameter(&mut self, key: &Written, value: &Written) -> Result<(), Mistake> {
        let Some(parameter) = boot::parameter(&key.text) else {
            return Err(key.unknown("kernel parameter", boot::names()));
        };
        if parameter.is_switch() {
            return Err(value.mistake(format!("{} with a value", key.text), format!("`{}` alone", key.text)));
        }
        match parameter.effect {
            Effect::Preempt => return self.set_preempt(key, value),
            // Checked together: see `isolation`.
            Effect::Isolation => return Ok(()),
            // What it leads to depends on the machine: see `cpufreq`.
            Effect::Cpufreq => {
                self.cpufreq.insert(command_line::SETTING.to_string(), value.text.clone());
                return Ok(());
            }
            Effect::Kept | Effect::Schedstats | Effect::NumaBalancing | Effect::Autogroup | Effect::IdleGovernor => {}
        }
        self.needs(parameter, key)?;
        // A value that it cannot parse gets the kernel's own complaint.
        if parameter.effect == Effect::Schedstats {
            return self.set_schedstats(key, value);
        }
        let text = match parameter.range() {
            Some((low, high)) => value.whole(parameter.name, low, high)?.to_string(),
            None if parameter.takes(&value.text) => value.text.clone(),
            None => return Err(value.unknown(&format!("value of {}", key.text), parameter.values_of(&self.build))),
        };
        match parameter.effect {
            Effect::IdleGovernor => {
                self.build.idle.governor = Governor::from_name(&text).expect("one of those that it takes");
                self.names_idle_governor = true;
            }
            Effect::NumaBalancing => self.sysctl.numa_balancing = u64::from(text == "enable"),
            _ => {
                self.refuse_sleep_profile(value)?;
                self.parameters.insert(parameter.name.to_string(), text);
            }
        }
        Ok(())
    }

    /// `profile=sleep` does nothing where the kernel has no profile of sleeps.
    fn refuse_sleep_profile(&self, value: &Written) -> Result<(), Mistake> {
        if value.text != "sleep" || self.build.sched.sleep_profile != SleepProfile::Absent {
            return Ok(());
        }
        let found = format!("profile=sleep, which does nothing in {}", self.kernel);
        let profile = |kernel: &&Kernel| kernel.sleep_profile != SleepProfile::Absent;
        let names = listed(KERNELS.iter().filter(profile).map(|kernel| kernel.name));
        Err(value.mistake(found, format!("schedule, or a kernel that profiles sleeps ({names})")))
    }

    /// Refuses a parameter that the arm's kernel does not read.
    fn needs(&self, parameter: &boot::Parameter, key: &Written) -> Result<(), Mistake> {
        if (parameter.has)(&self.build) {
            return Ok(());
        }
        let found = format!("the parameter {}, which {} does not have", key.quoted(), self.kernel);
        let has = |build: &Build| (parameter.has)(build);
        let kernels = crate::kernels::names().filter(|name| Build::named(name).as_ref().is_some_and(has));
        Err(key.mistake(found, format!("a kernel that has it ({})", listed(kernels))))
    }

    /// A parameter that takes no value. As setup_autogroup(): the default is off, and the sysctl still switches it.
    pub(super) fn set_switch(&mut self, parameter: &boot::Parameter, key: &Written) -> Result<(), Mistake> {
        self.needs(parameter, key)?;
        if parameter.effect == Effect::Autogroup {
            self.sysctl.sched_autogroup_enabled = 0;
        } else {
            self.parameters.insert(parameter.name.to_string(), String::new());
        }
        self.said.push(parameter.name.to_string());
        Ok(())
    }

    /// As setup_schedstats(): what it cannot parse gets its complaint, and the default stays.
    fn set_schedstats(&mut self, key: &Written, value: &Written) -> Result<(), Mistake> {
        self.needs_schedstats_switch(key)?;
        match value.text.as_str() {
            "enable" => self.sysctl.sched_schedstats = 1,
            "disable" => self.sysctl.sched_schedstats = 0,
            other => self.complaints.push(format!(
                "arm {}: schedstats={}: the kernel warns \"Unable to parse schedstats=\" and leaves them off; it knows enable and disable",
                self.name,
                excerpt(other, 60)
            )),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::arm::resolve;
    use super::super::draft::Draft;
    use super::*;
    use sched::topology::DomainParameters;

    fn arm(text: &str) -> Result<Arm, String> {
        resolve(&Draft::default().arm_option(text), 8, 250).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn noautogroup_stands_alone_and_the_sysctl_comes_after_it() {
        let enabled = |text: &str| arm(text).unwrap().sysctl.sched_autogroup_enabled;
        assert_eq!([enabled("a=v4.16"), enabled("a=v4.16,noautogroup")], [1, 0]);
        assert_eq!(arm("a=v4.16,noautogroup").unwrap().said, ["noautogroup"]);
        assert_eq!(enabled("a=v4.16,kernel.sched_autogroup_enabled=1,noautogroup"), 1);
        for (text, message) in [
            ("a=v4.16,noautogroup=1", "found noautogroup with a value; expected `noautogroup` alone"),
            ("a=v4.16,noautogroop", "found the unknown setting `noautogroop`; expected `noautogroup`, perhaps"),
        ] {
            let error = arm(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn domains_are_set_on_the_command_line() {
        let said = |text: &str| crate::setup::KernelSetup::of(&arm(text).unwrap()).domain_parameters();
        let expected = |relax_domain_level, sched_debug| DomainParameters { relax_domain_level, sched_debug };
        assert_eq!(said("a=v4.15"), expected(None, false));
        assert_eq!(said("a=v4.15,relax_domain_level=1,sched_debug"), expected(Some(1), true));
        let at = machine::topology::Location::of("a test");
        assert!(crate::setup::KernelSetup::of(&arm("a=v4.15,sched_debug").unwrap()).build(8, &at).is_ok());
        for (text, message) in [
            ("a=v6.1,relax_domain_level=x", "expected a whole number from 0 to 99"),
            ("a=v6.1,sched_debug", "which v6.1 does not have; expected a kernel that has it (v4.5-rc1, v4.15, v4.16)"),
            ("a=v4.15,sched_debug=1", "found sched_debug with a value; expected `sched_debug` alone"),
        ] {
            let error = arm(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn idling_is_set_on_the_command_line() {
        let governor = |text: &str| arm(text).unwrap().build.idle.governor;
        assert_eq!((governor("a=v4.15"), governor("a=v6.12")), (Governor::Menu, Governor::Menu));
        assert_eq!(governor("a=v6.1,cpuidle.governor=teo"), Governor::Teo);
        // A governor that is named overrides the machine's, even if it is the kernel's default.
        let named = |text: &str| crate::setup::KernelSetup::of(&arm(text).unwrap()).idle_governor;
        assert_eq!((named("a=v6.12"), named("a=v6.12,idle.tick=always")), (None, None));
        assert_eq!(named("a=v6.12,cpuidle.governor=menu").as_deref(), Some("menu"));
        assert_eq!(named("a=v4.15,idle.governor=menu").as_deref(), Some("menu"));
        // As with any behaviour, a kernel can be given a governor that it never had.
        assert_eq!(governor("a=v4.15,idle.governor=teo"), Governor::Teo);
        let set = arm("a=v6.12,intel_idle.max_cstate=1,cpu_dma_latency=1_000,intel_idle.states_off=4").unwrap();
        let stored: Vec<String> = set.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(stored, ["cpu_dma_latency=1000", "intel_idle.max_cstate=1", "intel_idle.states_off=4"]);
        let at = machine::topology::Location::of("a test");
        assert!(crate::setup::KernelSetup::of(&set).build(8, &at).is_ok());
        for (text, message) in [
            (
                "a=v4.15,cpuidle.governor=teo",
                "`cpuidle.governor`, which v4.15 does not have; expected a kernel that has it (v5.4, v5.10",
            ),
            (
                "a=v6.1,cpuidle.governor=tea",
                "found the unknown value of cpuidle.governor `tea`; expected `teo`, perhaps",
            ),
            ("a=v6.1,intel_idle.max_cstate=0", "found intel_idle.max_cstate = 0; expected a whole number from 1 to 9"),
            ("a=v6.1,idle=mwait", "found the unknown value of idle `mwait`"),
            ("a=v6.1,idle.menu=tik", "found the unknown value of idle.menu `tik`; expected `tick`, perhaps"),
            ("a=v4.16,intel_idle.states_off=1", "which v4.16 does not have"),
            ("a=v4.16,haltpoll.guest_halt_poll_ns=0", "which v4.16 does not have"),
        ] {
            let error = arm(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
