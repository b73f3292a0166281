//! `nohz_full=` and `isolcpus=` of an arm's command line: what the kernel makes of them, and what it complains about.

use super::arm::Arm;
use super::draft::DraftArm;
use crate::cpu_list::{CpuLists, bitmap_parselist};
use crate::mistake::{Mistake, Written};
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
    let lists = arm.build.cpu_lists;
    if let Some(written) = value("isolcpus") {
        arm.isolcpus = isolcpus(written, nr_cpus, masks != BootMasks::Apart, lists)?;
    }
    if let Some(written) = value("nohz_full") {
        arm.nohz_full = list(written, nr_cpus, "nohz_full", lists)?;
        let all = |part: &str| part.eq_ignore_ascii_case("all");
        if written.text.split(',').any(all) && nr_cpus > 1 {
            // As the kernel's own documents write it, and as housekeeping_setup() takes it.
            arm.nohz_full.clear(CpuId(0));
            arm.complaints
                .push(format!("arm {}: nohz_full=all: CPU 0 keeps the time, and is cleared from it", arm.name));
        }
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
fn isolcpus(written: &Written, nr_cpus: usize, has_flags: bool, lists: CpuLists) -> Result<CpuMask, Mistake> {
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
            _ if !has_flags => break,
            _ => {
                let found = format!("the unknown flag `{flag}` of isolcpus, which the kernel ignores");
                return Err(written.mistake(found, "a list of CPUs, with `domain,` before it or nothing"));
            }
        }
        text = rest;
    }
    if has_flags && text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        // housekeeping_isolcpus_setup() takes what begins with a letter for a flag.
        let found = format!("isolcpus = {}, where the kernel takes {text} for a flag", written.quoted());
        return Err(written.mistake(found, "a list that begins with a digit, such as 4-N"));
    }
    let cpus = list(&Written { text: text.to_string(), at: written.at.clone() }, nr_cpus, "isolcpus", lists)?;
    if cpus.iter().count() == nr_cpus {
        return Err(written.mistake("all CPUs in isolcpus", "at least one that is left for all others"));
    }
    Ok(cpus)
}

fn list(written: &Written, nr_cpus: usize, name: &str, lists: CpuLists) -> Result<CpuMask, Mistake> {
    let expected = format!("CPUs of the machine, 0 to {}: the kernel ignores an incorrect CPU range", nr_cpus - 1);
    let found = |what: &str| format!("{what} in {name} = {}", written.quoted());
    match bitmap_parselist(&written.text, nr_cpus, lists) {
        Err(what) => Err(written.mistake(found(&what), expected)),
        Ok(cpus) if cpus.is_empty() => Err(written.mistake(found("no CPU"), expected)),
        Ok(cpus) => Ok(cpus),
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
    fn lists_may_be_written_as_the_kernels_documents_say() {
        let lists = |text: &str| arm(text).map(|arm| (arm.isolcpus.list(), arm.nohz_full.list(), arm.complaints.len()));
        let read =
            |isolcpus: &str, nohz_full: &str, complaints| Ok((isolcpus.to_string(), nohz_full.to_string(), complaints));
        assert_eq!(lists("a=v6.1,isolcpus=0-6:1/2,nohz_full=1,N,NO_HRTICK"), read("0,2,4,6", "1,7", 0));
        assert_eq!(lists("a=v6.1,isolcpus=domain,4-N,nohz_full=all"), read("4-7", "1-7", 1));
        assert_eq!(lists("a=v4.15,nohz_full=1-7:1/2"), read("", "1,3,5,7", 0));
        for (text, message) in [
            (
                "a=v5.10,nohz_full=4-N",
                "found `4-N`, which kernels read since v5.13 (`N`) and v5.14 (`all`), in nohz_full",
            ),
            ("a=v4.5-rc1,nohz_full=1-7:1/2", "found `1-7:1/2`, which kernels read since v4.9, in nohz_full"),
            ("a=v6.1,isolcpus=N", "found isolcpus = `N`, where the kernel takes N for a flag"),
            ("a=v6.1,isolcpus=0-N", "found all CPUs in isolcpus"),
            ("a=v6.1,nohz_full=0-N", "found CPU 0 in nohz_full; expected CPUs behind it"),
        ] {
            let error = lists(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
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
            isolcpus(&written(cmdline), 8, kernel != "v4.5-rc1", CpuLists::Names).map_err(|mistake| mistake.found)
        };
        assert_eq!(cmdline("v4.15", "domain,1-2,5").map(|cpus| cpus.list()), Ok("1-2,5".to_string()));
        assert_eq!(cmdline("v4.5-rc1", "domain,1-2"), Err("a flag of isolcpus".to_string()));
        assert!(cmdline("v6.1", "nohz,1").unwrap_err().contains("isolcpus=nohz"));
        assert!(cmdline("v6.1", "domian,1").unwrap_err().contains("the unknown flag `domian`"));
    }
}
