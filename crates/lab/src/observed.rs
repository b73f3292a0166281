//! What a run shows about the machine and the kernel besides the benchmark's samples: CPUs used, idle states,
//! frequencies, migrations, and the functions where time went. It covers the time from the workload's start to the end.
//! All numbers are integers, so they are stored exactly.

use crate::energy::EnergyTaken;
use crate::idle::IdleTimes;
use machine::energy::EnergyUse;
use machine::frequency::{Counters, FrequencyTime};
use machine::hardware::{Hardware, Residency};
use machine::power_limit::{LimitTotals, PowerLimiter};
use machine::topology::Part;
use observe::Profile;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use units::{CpuId, Ps};

/// How many functions are kept, of those with the most time of their own, and of those with the most time including
/// callees.
const MOST_FUNCTIONS: usize = 60;

/// What the machine itself has counted since boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareTotals {
    pub idle: IdleTimes,
    /// One entry for each core, by its first CPU; empty if frequencies are fixed.
    pub frequencies: Vec<CoreFrequency>,
    /// `None` if the machine file does not say what every CPU draws in every state, or if the cost model is off.
    pub energy: Option<EnergyUse>,
    /// `None` if nothing limits what packages draw.
    pub power_limit: Option<LimitTotals>,
}

/// The clock of a core over a run, from boot on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreFrequency {
    pub cpu: CpuId,
    /// The time at each frequency, busy or not.
    pub time: FrequencyTime,
    /// The part of it in which its threads executed, summed over the threads: the unhalted time of `counters`.
    pub executed: FrequencyTime,
    /// The sum over all its threads.
    pub counters: Counters,
}

impl HardwareTotals {
    /// Counts up to `end`.
    pub fn of<const COSTS: bool>(hardware: &Hardware<COSTS>, end: Ps) -> HardwareTotals {
        HardwareTotals {
            idle: IdleTimes::of(hardware, end),
            frequencies: core_frequencies(hardware, end),
            energy: hardware.energy(end),
            power_limit: hardware.power_limiter().map(PowerLimiter::totals),
        }
    }
}

/// One entry for each core, up to `end`.
pub(crate) fn core_frequencies<const COSTS: bool>(hardware: &Hardware<COSTS>, end: Ps) -> Vec<CoreFrequency> {
    let Some(frequency) = hardware.frequency() else { return Vec::new() };
    let core = |core: &Part| {
        let cpu = core.cpus.iter().next()?;
        let counters = core.cpus.iter().map(|cpu| frequency.counters(cpu, end));
        let counters = counters.fold(Counters::default(), |sum, it| Counters {
            unhalted: sum.unhalted + it.unhalted,
            cycles: sum.cycles + it.cycles,
        });
        let mut executed = FrequencyTime::default();
        core.cpus.iter().for_each(|cpu| executed.merge(&frequency.executed(cpu, end)));
        Some(CoreFrequency { cpu, time: frequency.time(cpu, end), executed, counters })
    };
    hardware.topology.cores().iter().filter_map(core).collect()
}

/// How one run used its machine. Times are nanoseconds of simulated time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    pub duration_ns: u64,
    /// How long each CPU executed.
    pub busy_ns: Vec<u64>,
    /// For each idle state its name, the time of all CPUs in it, and how often it was entered.
    pub idle: Vec<(String, u64, u64)>,
    /// The time of all cores at each frequency in kHz, the lowest first; empty if frequencies are fixed.
    pub frequencies: Vec<(u32, u64)>,
    /// The average frequency while CPUs executed, in kHz; 0 if frequencies are fixed.
    pub busy_khz: u64,
    /// Absent if energy is not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyTaken>,
    /// How often a task moved to another CPU, and how often a task was woken, and switched to.
    pub migrations: u64,
    pub wakeups: u64,
    pub context_switches: u64,
    /// The time of all CPUs that the profile covers, without idle states; 0 if there was no profile.
    pub profiled_ns: u64,
    /// Functions by name, the kernel's and, as `main`, the tasks' own.
    pub functions: Vec<FunctionTime>,
}

/// Time in one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionTime {
    pub name: String,
    pub self_ns: u64,
    /// Including what it called.
    pub children_ns: u64,
}

/// Counts that are kept elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub migrations: u64,
    pub wakeups: u64,
    pub context_switches: u64,
}

impl Observed {
    /// The difference between two moments of a machine. `profile` contains no idle states.
    pub(crate) fn between(
        before: &HardwareTotals,
        after: &HardwareTotals,
        counts: Counts,
        profile: &Profile,
    ) -> Observed {
        let duration = after.idle.duration.saturating_sub(before.idle.duration);
        let cpus = || after.idle.cpus.iter().zip(&before.idle.cpus);
        let busy = cpus().map(|(after, before)| {
            let idle = sum(&after.idle).saturating_sub(sum(&before.idle));
            Ps(duration.0.saturating_sub(idle)).ns().0
        });
        let idle = after.idle.states.iter().enumerate().map(|(state, name)| {
            let time = |(after, before): (&Residency, &Residency)| after.idle[state].saturating_sub(before.idle[state]);
            let time = cpus().map(|both| u128::from(time(both).0)).sum();
            let entries = cpus().map(|(after, before)| after.entries[state] - before.entries[state]).sum();
            (name.clone(), whole_ns(time), entries)
        });
        let mut frequencies: BTreeMap<u32, u128> = BTreeMap::new();
        let mut counters = Counters::default();
        for (after, before) in after.frequencies.iter().zip(&before.frequencies) {
            after.time.iter().for_each(|(khz, time)| *frequencies.entry(khz).or_default() += u128::from(time.0));
            before.time.iter().for_each(|(khz, time)| *frequencies.entry(khz).or_default() -= u128::from(time.0));
            counters.cycles += after.counters.cycles - before.counters.cycles;
            counters.unhalted += after.counters.unhalted.saturating_sub(before.counters.unhalted);
        }
        let (profiled_ns, functions) = functions(profile);
        Observed {
            duration_ns: duration.ns().0,
            busy_ns: busy.collect(),
            idle: idle.collect(),
            frequencies: frequencies.into_iter().map(|(khz, ps)| (khz, whole_ns(ps))).filter(|it| it.1 > 0).collect(),
            busy_khz: khz(&counters),
            energy: after.energy.as_ref().zip(before.energy.as_ref()).map(|(after, before)| after.since(before).into()),
            migrations: counts.migrations,
            wakeups: counts.wakeups,
            context_switches: counts.context_switches,
            profiled_ns,
            functions,
        }
    }

    /// The number of CPUs that executed for more than a hundredth of the time.
    pub fn cpus_used(&self) -> usize {
        self.busy_ns.iter().filter(|&&busy| busy * 100 > self.duration_ns).count()
    }

    /// The share of the CPUs' time in which they executed.
    pub fn busy_share(&self) -> f64 {
        share(self.busy_ns.iter().sum(), self.duration_ns * self.busy_ns.len() as u64)
    }
}

/// `part / whole`; 0 if `whole` is 0.
pub fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Picoseconds of many CPUs, of which 64 bits do not hold an hour of thousands.
fn whole_ns(ps: u128) -> u64 {
    (ps / 1000) as u64
}

fn sum(times: &[Ps]) -> u64 {
    times.iter().map(|time| time.0).sum()
}

/// A cycle per picosecond is a billion kHz. Rounded to the nearest; 0 if nothing was executed.
fn khz(counters: &Counters) -> u64 {
    let unhalted = u128::from(counters.unhalted.0);
    let cycles = u128::from(counters.cycles) * 1_000_000_000 + unhalted / 2;
    cycles.checked_div(unhalted).unwrap_or(0) as u64
}

/// The time in all functions, and in the most important ones by name.
fn functions(profile: &Profile) -> (u64, Vec<FunctionTime>) {
    let mut all: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for stack in &profile.stacks {
        let once: BTreeSet<&str> = stack.frames.iter().map(String::as_str).collect();
        for name in once {
            all.entry(name).or_default().1 += stack.time_ps;
        }
        if let Some(last) = stack.frames.last() {
            all.entry(last).or_default().0 += stack.time_ps;
        }
    }
    let most = |time: fn(&(u64, u64)) -> u64| {
        let mut names: Vec<(u64, &str)> = all.iter().map(|(name, times)| (time(times), *name)).collect();
        // Equal times are ordered by name.
        names.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        names.truncate(MOST_FUNCTIONS);
        names
    };
    let kept: BTreeSet<&str> = most(|it| it.0).into_iter().chain(most(|it| it.1)).map(|(_, name)| name).collect();
    let ns = |ps: u64| Ps(ps).ns().0;
    let of = |name: &&str| {
        let (own, children) = all[name];
        FunctionTime { name: name.to_string(), self_ns: ns(own), children_ns: ns(children) }
    };
    (ns(profile.stacks.iter().map(|stack| stack.time_ps).sum()), kept.iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::hardware::Residency;
    use observe::{Object, Stack};

    fn totals(duration_ms: u64, idle_ms: [u64; 2], entries: u64) -> HardwareTotals {
        let ms = |ms: u64| Ps::from_ns(ms * 1_000_000);
        let cpu = |idle| Residency { idle: vec![ms(idle)], entries: vec![entries], above: vec![0], below: vec![0] };
        let idle = IdleTimes {
            states: vec!["C1".to_string()],
            duration: ms(duration_ms),
            cpus: idle_ms.map(cpu).into(),
            package_states: Vec::new(),
        };
        HardwareTotals { idle, frequencies: Vec::new(), energy: None, power_limit: None }
    }

    fn stack(frames: &[&str], us: u64) -> Stack {
        let frames = frames.iter().map(|frame| frame.to_string()).collect();
        Stack { task: "a".to_string(), object: Object::Kernel, frames, time_ps: us * 1_000_000 }
    }

    #[test]
    fn what_was_before_the_start_does_not_count() {
        let profile = Profile { stacks: vec![stack(&["a", "b"], 3)], cpus: 2, duration_ps: 0 };
        let counts = Counts { migrations: 1, wakeups: 2, context_switches: 3 };
        let observed = Observed::between(&totals(10, [10, 10], 1), &totals(20, [12, 20], 5), counts, &profile);
        assert_eq!(observed.duration_ns, 10_000_000);
        assert_eq!(observed.busy_ns, [8_000_000, 0]);
        assert_eq!(observed.idle, [("C1".to_string(), 12_000_000, 8)]);
        assert_eq!((observed.cpus_used(), observed.busy_share()), (1, 0.4));
        assert_eq!((observed.profiled_ns, observed.busy_khz), (3_000, 0));
    }

    #[test]
    fn the_mean_frequency_is_the_nearest() {
        let mean = |cycles, us: u64| khz(&Counters { unhalted: Ps(us * 1_000_000), cycles });
        assert_eq!(
            [mean(2_599_999, 1_000), mean(2_000, 3), mean(1_000, 3), mean(0, 0)],
            [2_599_999, 666_667, 333_333, 0]
        );
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let stacks = vec![stack(&["a", "b", "a"], 5), stack(&["a"], 2), stack(&["c"], 0)];
        let (total, functions) = functions(&Profile { stacks, cpus: 1, duration_ps: 0 });
        let told: Vec<(&str, u64, u64)> =
            functions.iter().map(|it| (it.name.as_str(), it.self_ns, it.children_ns)).collect();
        assert_eq!((total, told), (7_000, vec![("a", 7_000, 7_000), ("b", 0, 5_000), ("c", 0, 0)]));
    }
}
