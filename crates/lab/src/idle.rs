//! Idle states: what a setup's command line says of them, and how long each CPU was in which.

use crate::mistake::Mistake;
use crate::setup::Setup;
use machine::hardware::{Hardware, Residency};
use machine::idle::{IdleOptions, PackageResidency, Way};
use machine::topology::{Location, Topology};
use std::collections::BTreeMap;
use std::fmt::Write;
use units::{CpuId, Ps};

/// CPUs that are listed one by one; of more, their packages alone are.
const MOST_CPUS_LISTED: usize = 32;

/// What the parameters of a setup say, on a machine whose first state polls or not.
///
/// # Errors
/// `idle=poll` where nothing says what polling costs.
pub fn options(setup: &Setup, polls: bool, at: &Location) -> Result<IdleOptions, Mistake> {
    let parameter = |name: &str| setup.kernel.parameters.get(name).map(String::as_str);
    let number = |name: &str| parameter(name).and_then(|text| text.parse().ok());
    let way = match (parameter("idle"), parameter("cpuidle.off")) {
        (Some("poll"), _) => Way::Poll,
        (Some(_), _) => Way::Halt,
        (None, Some(_)) => Way::Off,
        (None, None) => Way::Governed,
    };
    if way == Way::Poll && !polls {
        let found = format!("idle=poll on {}, whose table of idle states has no polling one", setup.machine.name);
        return Err(Mistake::new(at, found, "a machine with the state POLL first"));
    }
    Ok(IdleOptions {
        way,
        max_cstate: number("intel_idle.max_cstate"),
        states_off: number("intel_idle.states_off").unwrap_or(0),
        latency_us: number("cpu_dma_latency"),
        halt_poll_ns: number("haltpoll.guest_halt_poll_ns"),
    })
}

/// How CPUs spent a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleTimes {
    /// Names of the states.
    pub states: Vec<String>,
    pub duration: Ps,
    /// One for each CPU, up to the end.
    pub cpus: Vec<Residency>,
    /// What packages did in their own states; nothing where they have none.
    pub package_states: Vec<PackageResidency>,
    /// Which package each CPU is in.
    pub packages: Vec<u32>,
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
            packages: cpus().map(|cpu| topology.cpu(cpu).package.into()).collect(),
        }
    }

    /// Of all CPUs together.
    fn sum(&self, value: impl Fn(&Residency) -> u64) -> u64 {
        self.cpus.iter().map(value).sum()
    }

    /// As text: the states of the whole machine, then of each CPU or package.
    pub fn text(&self) -> String {
        let width = self.states.iter().map(String::len).max().unwrap_or(0).max("executing".len());
        let all = self.duration.0 as f64 * self.cpus.len() as f64;
        let share = |time: u64| 100.0 * time as f64 / all.max(1.0);
        let ms = |time: u64| time as f64 / 1e9;
        let mut text = format!(
            "{:<width$}{:>12}{:>14}{:>8}{:>12}{:>12}\n",
            "idle", "entries", "ms", "%", "too deep", "too shallow"
        );
        let mut left = self.duration.0 * self.cpus.len() as u64;
        for (index, name) in self.states.iter().enumerate() {
            let time = self.sum(|of| of.idle[index].0);
            left = left.saturating_sub(time);
            let _ = writeln!(
                text,
                "{name:<width$}{:>12}{:>14.3}{:>8.2}{:>12}{:>12}",
                self.sum(|of| of.entries[index]),
                ms(time),
                share(time),
                self.sum(|of| of.above[index]),
                self.sum(|of| of.below[index])
            );
        }
        let _ = writeln!(text, "{:<width$}{:>12}{:>14.3}{:>8.2}", "executing", "", ms(left), share(left));
        for (number, package) in self.package_states.iter().enumerate() {
            let share = 100.0 * package.idle.0 as f64 / (self.duration.0 as f64).max(1.0);
            let name = format!("package {number}");
            let _ = writeln!(text, "{name:<width$}{:>12}{:>14.3}{share:>8.2}", package.entries, ms(package.idle.0));
        }
        text.push('\n');
        text.push_str(&self.rows());
        text
    }

    /// The share of each state in each CPU's time, in percent.
    fn rows(&self) -> String {
        let by_cpu = self.cpus.len() <= MOST_CPUS_LISTED;
        let mut text = format!("{:<12}{:>11}", if by_cpu { "cpu, in %" } else { "package, %" }, "executing");
        for name in &self.states {
            let _ = write!(text, "{name:>9}");
        }
        text.push('\n');
        let mut rows: BTreeMap<u32, Vec<&Residency>> = BTreeMap::new();
        for (cpu, residency) in self.cpus.iter().enumerate() {
            rows.entry(if by_cpu { cpu as u32 } else { self.packages[cpu] }).or_default().push(residency);
        }
        for (number, of) in rows {
            let all = (self.duration.0 as f64 * of.len() as f64).max(1.0);
            let times: Vec<u64> =
                (0..self.states.len()).map(|index| of.iter().map(|cpu| cpu.idle[index].0).sum()).collect();
            let executing = (all - times.iter().sum::<u64>() as f64).max(0.0);
            let _ = write!(text, "{number:<12}{:>11.2}", 100.0 * executing / all);
            for time in times {
                let _ = write!(text, "{:>9.2}", 100.0 * time as f64 / all);
            }
            text.push('\n');
        }
        text
    }
}

/// What `cpu` has counted; the state that it is in at `end` counts up to there.
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
            packages: vec![0, 0],
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
}
