//! Parameters of the kernel's command line.

use super::Arm;
use super::arm::unknown_parameter;
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
            return Err(unknown_parameter(key));
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
            // setup_relax_domain_level(): the default.
            _ if parameter.name == "relax_domain_level" && value.text == "-1" => return Ok(()),
            _ if parameter.name == "psi" => kstrtobool(value)?.to_string(),
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
            _ if parameter.name == "cpuidle.off" && text == "0" => {}
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

/// kstrtox.c: kstrtobool(), as 0 or 1.
///
/// Differs: `t` and `f`, which later kernels take too, are refused.
fn kstrtobool(value: &Written) -> Result<u8, Mistake> {
    let mut letters = value.text.chars().map(|c| c.to_ascii_lowercase());
    match (letters.next(), letters.next()) {
        (Some('y' | '1'), _) | (Some('o'), Some('n')) => Ok(1),
        (Some('n' | '0'), _) | (Some('o'), Some('f')) => Ok(0),
        _ => Err(value.unknown("value of psi", ["0", "1", "n", "y", "off", "on"])),
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
        assert_eq!(said("a=v4.15,relax_domain_level=-1"), expected(None, false));
        let at = machine::topology::Location::of("a test");
        assert!(crate::setup::KernelSetup::of(&arm("a=v4.15,sched_debug").unwrap()).build(8, &at).is_ok());
        for (text, message) in [
            ("a=v6.1,relax_domain_level=x", "expected a whole number from 0 to 99"),
            ("a=v6.1,relax_domain_level=-2", "expected a whole number from 0 to 99"),
            (
                "a=v6.1,sched_debug",
                "which v6.1 does not have; expected a kernel that has it (v4.5-rc1, v4.15, v4.16, v4.19)",
            ),
            ("a=v4.15,sched_debug=1", "found sched_debug with a value; expected `sched_debug` alone"),
        ] {
            let error = arm(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn values_that_the_kernel_takes_are_taken() {
        for (text, stored) in [
            ("psi=on", Some("psi=1")),
            ("psi=Yes", Some("psi=1")),
            ("psi=off", Some("psi=0")),
            ("psi=no", Some("psi=0")),
            ("cpuidle.off=0", None),
            ("cpuidle.off=1", Some("cpuidle.off=1")),
            ("intel_idle.max_cstate=10", Some("intel_idle.max_cstate=10")),
            ("intel_idle.states_off=1024", Some("intel_idle.states_off=1024")),
        ] {
            let set = arm(&format!("a=v6.12,{text}")).unwrap();
            let parameters: Vec<String> =
                set.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(parameters, stored.into_iter().collect::<Vec<&str>>(), "{text}");
            assert_eq!(set.said, [text]);
        }
        let sysctl = |text: &str| arm(text).map(|arm| arm.sysctl);
        for value in ["0", "-1", "-100"] {
            let set = sysctl(&format!("a=v6.1,kernel.sched_rr_timeslice_ms={value}")).unwrap();
            assert_eq!(set.sched_rr_timeslice, 100, "{value}");
        }
        assert_eq!(sysctl("a=v4.15,sched_child_runs_first=2").unwrap().sched_child_runs_first, 2);
        let slice = sysctl("a=v6.1,sched_cfs_bandwidth_slice_us=2_000_000").unwrap();
        assert_eq!(slice.sched_cfs_bandwidth_slice, 2_000_000);
        // Always hot; debugfs reads no sign.
        for text in ["a=v4.15,sched_migration_cost_ns=-1", "a=v6.1,sched/migration_cost_ns=4294967295"] {
            assert_eq!(sysctl(text).unwrap().sched_migration_cost, u64::from(u32::MAX), "{text}");
        }
        for (text, message) in [
            ("a=v6.1,sched/migration_cost_ns=-1", "expected a whole number from 0 to 4294967295"),
            ("a=v6.1,sched_rt_runtime_us=-2", "expected a whole number from 0 to 2147483647, or -1: no limit"),
            ("a=v6.1,psi=maybe", "found the unknown value of psi `maybe`; expected "),
            ("a=v6.1,cpuidle.off=2", "value of cpuidle.off"),
        ] {
            let error = sysctl(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn parameters_that_are_not_modelled_are_known() {
        for text in
            ["nohz=off", "skew_tick=1", "threadirqs", "rcu_nocbs=1-3", "amd_pstate=active", "nosmt", "maxcpus=4"]
        {
            let error = arm(&format!("a=v6.12,{text}")).unwrap_err();
            let name = text.split('=').next().expect("a name");
            assert!(error.contains(&format!("found `{name}`, a parameter that is not modelled; expected ")), "{error}");
        }
        assert!(boot::names().all(|name| boot::not_modelled(&Written::option("--test", name)).is_none()));
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
            (
                "a=v6.1,intel_idle.max_cstate=0",
                "found intel_idle.max_cstate = 0; expected a whole number from 1 to 2147483647",
            ),
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
