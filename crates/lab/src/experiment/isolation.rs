//! `nohz_full=` and `isolcpus=` of an arm's command line: what the kernel makes of them, and what it complains about.

use super::arm::Arm;
use super::draft::DraftArm;
use crate::mistake::{Mistake, Written};
use machine::topology::parse_list;
use sched::isolation::BootMasks;
use units::{CpuId, CpuMask};

/// Reads both, and checks them together. Where a kernel prints a line and goes on without the parameter, here it is a
/// mistake.
pub fn check(arm: &mut Arm, draft: &DraftArm, nr_cpus: usize) -> Result<(), Mistake> {
    let value = |name: &str| {
        let setting = draft.settings.iter().find(|setting| setting.key.text == name);
        setting.and_then(|setting| setting.value.as_ref())
    };
    let masks = arm.build.sched.isolation.boot_masks;
    if let Some(written) = value("isolcpus") {
        arm.isolcpus = isolcpus(written, nr_cpus, masks != BootMasks::Apart)?;
    }
    if let Some(written) = value("nohz_full") {
        arm.nohz_full = list(written, nr_cpus, "nohz_full")?;
        if arm.nohz_full.contains(CpuId(0)) {
            let expected = "CPUs behind it: it boots and keeps the time, and the kernel clears it from the range";
            return Err(written.mistake("CPU 0 in nohz_full", expected));
        }
        if masks == BootMasks::One && !arm.isolcpus.is_empty() && arm.isolcpus != arm.nohz_full {
            let found = format!("nohz_full = {}, but isolcpus = {}", arm.nohz_full.list(), arm.isolcpus.list());
            return Err(
                written.mistake(found, format!("the same CPUs: in {} nohz_full= must match isolcpus=", arm.kernel))
            );
        }
    }
    Ok(())
}

/// `domain,1-3`, `1-3`.
fn isolcpus(written: &Written, nr_cpus: usize, has_flags: bool) -> Result<CpuMask, Mistake> {
    let mut text = written.text.as_str();
    while let Some((flag, rest)) = text.split_once(',').filter(|_| text.starts_with(|c: char| c.is_ascii_alphabetic()))
    {
        match flag {
            "domain" if has_flags => {}
            "domain" => return Err(written.mistake("a flag of isolcpus", "a list of CPUs: flags came with v4.15")),
            "nohz" => return Err(written.mistake("isolcpus=nohz, which is not modelled", "nohz_full=CPUS beside it")),
            "managed_irq" => {
                let found = "isolcpus=managed_irq, but devices' interrupts are not modelled";
                return Err(written.mistake(found, "a list of CPUs, with `domain,` before it or nothing"));
            }
            _ => {
                let found = format!("the unknown flag `{flag}` of isolcpus, which the kernel ignores");
                return Err(written.mistake(found, "a list of CPUs, with `domain,` before it or nothing"));
            }
        }
        text = rest;
    }
    let cpus = list(&Written { text: text.to_string(), at: written.at.clone() }, nr_cpus, "isolcpus")?;
    if cpus.iter().count() == nr_cpus {
        return Err(written.mistake("all CPUs in isolcpus", "at least one that is left for all others"));
    }
    Ok(cpus)
}

fn list(written: &Written, nr_cpus: usize, name: &str) -> Result<CpuMask, Mistake> {
    let expected = format!("CPUs of the machine, 0 to {}: the kernel ignores an incorrect CPU range", nr_cpus - 1);
    let found = |what: &str| format!("{what} in {name} = {}", written.quoted());
    let cpus = parse_list(&written.text).map_err(|error| written.mistake(found(&error.found), &expected))?;
    let missing = cpus.iter().find(|cpu| cpu.index() >= nr_cpus);
    match missing {
        Some(cpu) => Err(written.mistake(found(&format!("CPU {cpu}")), expected)),
        None if cpus.is_empty() => Err(written.mistake(found("no CPU"), expected)),
        None => Ok(cpus),
    }
}

#[cfg(test)]
mod tests {
    use super::super::arm::resolve;
    use super::super::draft::Draft;
    use super::*;

    fn arm(text: &str) -> Result<Arm, String> {
        let draft = Draft::default().arm_option(text);
        resolve(&draft, 8, 250).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn both_lists_reach_the_kernel() {
        let arm = arm("a=v6.1,nohz_full=2-7,isolcpus=4-5").unwrap();
        let setup = crate::setup::KernelSetup::of(&arm);
        assert_eq!((setup.nohz_full.as_deref(), setup.isolcpus.as_deref()), (Some("2-7"), Some("4-5")));
        let (nohz_full, isolated) = setup.isolation(8, &machine::topology::Location::of("a test")).unwrap();
        assert_eq!((nohz_full, isolated), (arm.nohz_full, arm.isolcpus));
    }

    #[test]
    fn lists_have_commas_as_on_a_command_line() {
        let arm = arm("a=v6.1,isolcpus=1,3,hz=1000,nohz_full=2,4-5,NO_HRTICK").unwrap();
        assert_eq!((arm.isolcpus.list(), arm.nohz_full.list(), arm.hz), ("1,3".to_string(), "2,4-5".to_string(), 1000));
    }

    #[test]
    fn what_the_kernel_complains_about_is_a_mistake() {
        for (text, message) in [
            (
                "a=v6.1,nohz_full=2-8",
                "found CPU 8 in nohz_full = `2-8`; expected CPUs of the machine, 0 to 7: the kernel ignores",
            ),
            ("a=v6.1,nohz_full=x", "in nohz_full = `x`; expected CPUs of the machine"),
            ("a=v4.5-rc1,nohz_full=0-3", "found CPU 0 in nohz_full; expected CPUs behind it: it boots"),
            (
                "a=v4.15,nohz_full=2-3,isolcpus=2",
                "found nohz_full = 2-3, but isolcpus = 2; expected the same CPUs: in v4.15",
            ),
            (
                "a=v6.1,NO_HRTICK,3-5",
                "column 18: found `3-5` after a comma, which goes on with no value; expected key=value, or a feature",
            ),
            ("a=v6.1,3", "column 8: found `3` after a comma"),
            ("a=v6.1,isolcpus=domain,managed_irq,1,3", "found isolcpus=managed_irq, but devices' interrupts are not"),
            ("a=v6.1,isolcpus=1,9", "found CPU 9 in isolcpus = `1,9`; expected CPUs of the machine"),
            ("a=v6.1,hz=100,3", "found hz = 100,3; expected one of 100, 250, 300, 1000"),
            ("a=v6.1,isolcpus=0-7", "found all CPUs in isolcpus; expected at least one"),
            ("a=v6.1,nohz_full", "found `nohz_full` without a value"),
            ("a=v6.1,nohz_ful=1", "found the unknown setting `nohz_ful`; expected `nohz_full`, perhaps"),
        ] {
            let error = arm(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        let cmdline = |kernel: &str, cmdline: &str| {
            let written = |text: &str| Written::option("--test", text);
            isolcpus(&written(cmdline), 8, kernel != "v4.5-rc1").map_err(|mistake| mistake.found)
        };
        assert_eq!(cmdline("v4.15", "domain,1-2,5").map(|cpus| cpus.list()), Ok("1-2,5".to_string()));
        assert_eq!(cmdline("v4.5-rc1", "domain,1-2"), Err("a flag of isolcpus".to_string()));
        assert!(cmdline("v6.1", "nohz,1").unwrap_err().contains("isolcpus=nohz"));
        assert!(cmdline("v6.1", "domian,1").unwrap_err().contains("the unknown flag `domian`"));
    }
}
