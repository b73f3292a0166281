//! Idle states: their governor, a setup's command line about them, and how long each CPU was in which state.
//!
//! The governor is the arm's (`cpuidle.governor=`, or the switch `idle.governor`), else the machine file's (`governor`
//! in `[idle]`), if the kernel has it, else the kernel's own.

use crate::cpu_rows::{MOST_ROWS_OF_ONE, by_cpu, width_by_cpu};
use crate::mistake::Mistake;
use crate::setup::Setup;
use machine::description::Description;
use machine::hardware::{Hardware, Residency};
use machine::idle::{Governor, IdleOptions, IdleRules, PackageResidency, Way};
use machine::topology::{Location, Topology};
use std::collections::BTreeMap;
use std::fmt::Write;
use units::{CpuId, CpuMask, Ps};

/// The rules on a machine of a kernel with the rules `own`.
///
/// As in cpuidle_register_driver() of v6.1: the governor that a driver names is used, unless the command line names
/// one.
pub fn rules(setup: &Setup, machine: &Description, own: &IdleRules) -> IdleRules {
    let of_machine =
        machine.idle_governor().filter(|&governor| setup.kernel.idle_governor.is_none() && own.has(governor));
    IdleRules { governor: of_machine.unwrap_or(own.governor), ..*own }
}

/// What decides how CPUs idle under these parameters; `named`: the arm names a governor.
pub fn way(parameters: &BTreeMap<String, String>, named: bool, machine: &Description, own: &IdleRules) -> Way {
    let parameter = |name: &str| parameters.get(name).map(String::as_str);
    // A guest's driver, whose governor is haltpoll, may be newer than the kernel. Idle CPUs then have no driver, and halt.
    let haltpoll = machine.idle_governor() == Some(Governor::Haltpoll);
    match (parameter("idle"), parameter("cpuidle.off")) {
        (Some("poll"), _) => Way::Poll,
        (Some(_), _) => Way::Halt,
        (None, Some("1")) => Way::Off,
        (None, _) if haltpoll && !named && !own.has(Governor::Haltpoll) => Way::Off,
        (None, _) => Way::Governed,
    }
}

/// The name of cpuidle's governor (`current_governor`) among an experiment's settings.
pub const GOVERNOR: &str = "governor";

/// The number of the idle state in `state3.disable`.
pub fn state_of(name: &str) -> Option<usize> {
    name.strip_prefix("state")?.strip_suffix(".disable")?.parse().ok()
}

/// The effect of a setup's parameters under the kernel's rules `own`, on a machine whose first state polls or does not.
///
/// # Errors
/// `idle=poll` on a machine that does not say what polling costs.
pub fn options(
    setup: &Setup,
    machine: &Description,
    own: &IdleRules,
    polls: bool,
    at: &Location,
) -> Result<IdleOptions, Mistake> {
    let parameter = |name: &str| setup.kernel.parameters.get(name).map(String::as_str);
    let number = |name: &str| parameter(name).and_then(|text| text.parse().ok());
    let way = way(&setup.kernel.parameters, setup.kernel.idle_governor.is_some(), machine, own);
    if let (Some(word), Some(vendor)) = (parameter("idle"), machine.vendor().filter(|vendor| !is_x86(vendor))) {
        let found = format!("idle={word} on {}, whose processors are {vendor}'s: it is x86's", setup.machine.name);
        return Err(Mistake::new(
            at,
            found,
            "cpuidle.off=1, which is near idle=halt, or a machine with x86 processors",
        ));
    }
    if way == Way::Poll && !polls {
        let found = format!("idle=poll on {}, whose table of idle states has no polling one", setup.machine.name);
        return Err(Mistake::new(at, found, "a machine with the state POLL first"));
    }
    let of_intel =
        ["intel_idle.max_cstate", "intel_idle.states_off"].into_iter().find(|name| parameter(name).is_some());
    if let (Some(name), Some(vendor)) = (of_intel, machine.vendor().filter(|&vendor| vendor != "intel")) {
        let found = format!(
            "{name}, while the processors of {} are {vendor}'s, whom intel_idle leaves alone",
            setup.machine.name
        );
        return Err(Mistake::new(at, found, "a machine with Intel's processors"));
    }
    Ok(IdleOptions {
        way,
        max_cstate: number("intel_idle.max_cstate"),
        states_off: number("intel_idle.states_off").unwrap_or(0),
        latency_us: number("cpu_dma_latency"),
        halt_poll_ns: number("haltpoll.guest_halt_poll_ns").or_else(|| machine.halt_poll_ns()),
    })
}

/// Whether a maker's processors are x86. A machine file without `make` is taken for one.
pub fn is_x86(vendor: &str) -> bool {
    matches!(vendor, "intel" | "amd")
}

/// How CPUs spent the time of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleTimes {
    /// Names of the states.
    pub states: Vec<String>,
    pub duration: Ps,
    /// One entry for each CPU, up to the end.
    pub cpus: Vec<Residency>,
    /// The packages' own states; empty if they have none.
    pub package_states: Vec<PackageResidency>,
}

impl IdleTimes {
    /// What `hardware` has counted from boot to `end`.
    pub fn of<const COSTS: bool>(hardware: &Hardware<COSTS>, end: Ps) -> IdleTimes {
        let topology: &Topology = &hardware.topology;
        let cpus = || topology.cpus().map(|(cpu, _)| cpu);
        IdleTimes {
            states: hardware.prices.idle_states.iter().map(|state| state.name.clone()).collect(),
            duration: end,
            cpus: cpus().map(|cpu| until(hardware, cpu, end)).collect(),
            package_states: hardware.package_residency(end),
        }
    }

    /// The sum over all CPUs.
    ///
    /// In 128 bits: 64 of picoseconds hold 5124 hours, and thousands of CPUs have more in one.
    fn sum(&self, value: impl Fn(&Residency) -> u64) -> u128 {
        self.cpus.iter().map(|of| u128::from(value(of))).sum()
    }

    /// As text: the states of the whole machine, then those of each CPU.
    pub fn text(&self) -> String {
        let width = self.states.iter().map(String::len).max().unwrap_or(0).max("executing".len());
        let all = self.duration.0 as f64 * self.cpus.len() as f64;
        let share = |time: u128| 100.0 * time as f64 / all.max(1.0);
        let ms = |time: u128| time as f64 / 1e9;
        let mut text = format!(
            "{:<width$}{:>12}{:>14}{:>8}{:>12}{:>12}\n",
            "idle", "entries", "ms", "%", "too deep", "too shallow"
        );
        let mut left = u128::from(self.duration.0) * self.cpus.len() as u128;
        for (index, name) in self.states.iter().enumerate() {
            let time = self.sum(|of| of.idle[index].0);
            left = left.saturating_sub(time);
            let _ = writeln!(
                text,
                "{name:<width$}{:>12} {:>13.3}{:>8.2}{:>12}{:>12}",
                self.sum(|of| of.entries[index]),
                ms(time),
                share(time),
                self.sum(|of| of.above[index]),
                self.sum(|of| of.below[index])
            );
        }
        let _ = writeln!(text, "{:<width$}{:>12} {:>13.3}{:>8.2}", "executing", "", ms(left), share(left));
        for (number, package) in self.package_states.iter().enumerate() {
            let share = 100.0 * package.idle.0 as f64 / (self.duration.0 as f64).max(1.0);
            let name = format!("package {number}");
            let _ =
                writeln!(text, "{name:<width$}{:>12}{:>14.3}{share:>8.2}", package.entries, ms(package.idle.0.into()));
        }
        text.push('\n');
        text.push_str(&self.rows());
        text
    }

    /// The share of each state in each CPU's time, in percent.
    fn rows(&self) -> String {
        let width = width_by_cpu(self.cpus.len(), 12);
        // With many CPUs the figures are coarser, so that more of them are equal.
        let decimals = if self.cpus.len() <= MOST_ROWS_OF_ONE { 2 } else { 1 };
        let mut text = format!("{:<width$}{:>11}", "cpu, in %", "executing");
        // At least two blanks before each head.
        let widths: Vec<usize> = self.states.iter().map(|name| (name.chars().count() + 2).max(9)).collect();
        for (name, width) in self.states.iter().zip(&widths) {
            let _ = write!(text, "{name:>width$}");
        }
        text.push('\n');
        let all = (self.duration.0 as f64).max(1.0);
        let cells = |of: &Residency| {
            let idle: u64 = of.idle.iter().map(|time| time.0).sum();
            let executing = (all - idle as f64).max(0.0);
            let mut cells = format!("{:>11.decimals$}", 100.0 * executing / all);
            for (time, width) in of.idle.iter().zip(&widths) {
                let _ = write!(cells, "{:>width$.decimals$}", 100.0 * time.0 as f64 / all);
            }
            cells
        };
        let row = |(cpu, of): (usize, &Residency)| (CpuMask::single(CpuId::new(cpu)), cells(of));
        text.push_str(&by_cpu(width, self.cpus.iter().enumerate().map(row)));
        text
    }
}

/// What `cpu` has counted; its current state counts up to `end`.
fn until<const COSTS: bool>(hardware: &Hardware<COSTS>, cpu: CpuId, end: Ps) -> Residency {
    let mut residency = hardware.residency(cpu).clone();
    if let Some((state, since)) = hardware.idle_state(cpu) {
        residency.idle[state] += end.saturating_sub(since);
    }
    residency
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Draft, Purpose};
    use crate::machines::tests::Table;

    /// The governor under `arm` on a guest whose driver brings haltpoll, and how long it may poll.
    fn on_a_guest(arm: &str) -> (Governor, Way, Option<u32>) {
        let mut draft = Draft::default();
        draft.machine_option("cloud-vm-2");
        draft.workload_option("pipetest:batches=1").unwrap();
        draft.arm_options(&[arm.to_string()], true).unwrap();
        let experiment = draft.resolve(Purpose::Single, &Table::default()).unwrap();
        let setup = experiment.setup(&experiment.jobs()[0]);
        // As stored in a record.
        let setup: Setup = serde_json::from_str(&setup.to_json()).unwrap();
        let (machine, at) = (setup.machine.machine().unwrap().description, Location::of("a test"));
        let (build, ..) = setup.kernel.build(2, &at).unwrap();
        let options = options(&setup, &machine, &build.idle, true, &at).unwrap();
        (rules(&setup, &machine, &build.idle).governor, options.way, options.halt_poll_ns)
    }

    #[test]
    fn thousands_of_cpus_may_idle_for_an_hour() {
        let hour = Ps::from_ns(3_600_000_000_000);
        let idle = Residency { idle: vec![hour], entries: vec![1], above: vec![0], below: vec![0] };
        let times =
            IdleTimes { states: vec!["C1".into()], duration: hour, cpus: vec![idle; 8192], package_states: Vec::new() };
        let text = times.text();
        let share = |row: &str| text.lines().find(|line| line.starts_with(row)).unwrap().split_whitespace().nth(3);
        assert_eq!((share("C1"), text.contains("8192 29491200000.000  100.00")), (Some("100.00"), true), "{text}");
    }

    #[test]
    fn idle_is_a_parameter_of_x86() {
        let of = |machine: &str, arm: &str| {
            let mut draft = Draft::default();
            draft.machine_option(machine);
            draft.workload_option("pipetest").unwrap();
            draft.arm_options(&[arm.to_string()], true).unwrap();
            let experiment = draft.resolve(Purpose::Single, &Table::default()).unwrap();
            let setup = experiment.setup(&experiment.jobs()[0]);
            let (machine, at) = (setup.machine.machine().unwrap().description, Location::of("a test"));
            let (build, ..) = setup.kernel.build(2, &at).unwrap();
            options(&setup, &machine, &build.idle, true, &at).map(|options| options.way).map_err(|it| it.to_string())
        };
        for (machine, vendor) in [("ampere-altra-q80-33-2s", "arm"), ("power9-16c-2s", "ibm")] {
            for word in ["halt", "poll"] {
                let error = of(machine, &format!("v6.1,idle={word}")).unwrap_err();
                let found = format!("found idle={word} on {machine}, whose processors are {vendor}'s: it is x86's");
                assert!(error.contains(&found), "{error}");
            }
            assert_eq!(of(machine, "v6.1,cpuidle.off=1"), Ok(Way::Off));
        }
        assert_eq!(of("epyc-9654", "v6.1,idle=halt"), Ok(Way::Halt));
    }

    #[test]
    fn a_driver_brings_its_governor_where_the_arm_names_none() {
        let governed = |governor| (governor, Way::Governed, None);
        for (arm, expected) in [
            ("v6.1", governed(Governor::Haltpoll)),
            ("v6.12", governed(Governor::Haltpoll)),
            // Choosing the kernel's own default is a choice too.
            ("v6.12,cpuidle.governor=menu", governed(Governor::Menu)),
            ("v6.12,idle.governor=menu", governed(Governor::Menu)),
            ("v6.1,cpuidle.governor=teo", governed(Governor::Teo)),
            ("v6.12,cpuidle.off=1", (Governor::Haltpoll, Way::Off, None)),
            ("v6.12,haltpoll.guest_halt_poll_ns=7", (Governor::Haltpoll, Way::Governed, Some(7))),
            // Before that driver existed, guests halted.
            ("v4.16", (Governor::Menu, Way::Off, None)),
            ("v4.5-rc1", (Governor::Menu, Way::Off, None)),
            ("v4.16,idle.governor=menu", governed(Governor::Menu)),
            ("v4.16,idle.governor=haltpoll", governed(Governor::Haltpoll)),
            // How the tick is stopped decides neither about drivers nor about parameters.
            ("v6.12,idle.tick=always", governed(Governor::Haltpoll)),
            ("v6.12,idle.tick=always,cpuidle.governor=teo", governed(Governor::Teo)),
            ("v4.16,idle.tick=governor", (Governor::Menu, Way::Off, None)),
        ] {
            assert_eq!(on_a_guest(arm), expected, "{arm}");
        }
    }

    #[test]
    fn shares_add_up() {
        let ms = |of: &[u64]| of.iter().map(|&ms| Ps::from_ns(ms * 1_000_000)).collect::<Vec<_>>();
        let cpu =
            |idle: &[u64]| Residency { idle: ms(idle), entries: vec![3, 1], above: vec![0, 1], below: vec![2, 0] };
        let times = IdleTimes {
            states: vec!["POLL".into(), "C1".into()],
            duration: Ps::from_ns(10_000_000),
            cpus: vec![cpu(&[1, 4]), cpu(&[0, 10])],
            package_states: vec![PackageResidency { idle: Ps::from_ns(1_000_000), entries: 2 }],
        };
        let expected = "\
idle          entries            ms       %    too deep too shallow
POLL                6         1.000    5.00           0           4
C1                  2        14.000   70.00           2           0
executing                     5.000   25.00
package 0           2         1.000   10.00

cpu, in %     executing     POLL       C1
0                 50.00    10.00    40.00
1                  0.00     0.00   100.00
";
        assert_eq!(times.text(), expected);
    }

    #[test]
    fn columns_grow_with_the_names_of_states() {
        let residency = Residency {
            idle: vec![Ps::from_ns(2_000_000), Ps::from_ns(3_000_000)],
            entries: vec![1, 1],
            above: vec![0, 0],
            below: vec![0, 0],
        };
        let times = IdleTimes {
            states: vec!["snoozestop0_lite".into(), "stop0".into()],
            duration: Ps::from_ns(10_000_000),
            cpus: vec![residency],
            package_states: Vec::new(),
        };
        let expected = "\
cpu, in %     executing  snoozestop0_lite    stop0
0                 50.00             20.00    30.00
";
        assert!(times.text().ends_with(expected), "{}", times.text());
    }
}
