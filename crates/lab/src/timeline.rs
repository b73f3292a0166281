//! A run's timeline: turns a setup's changes into actions of the simulated administrator, and reports their effect.

use crate::cpufreq;
use crate::idle::{GOVERNOR, state_of};
use crate::kernels::Build;
use crate::mistake::{Mistake, Written};
use crate::setup::{ChangeKind, ChangeSetup, Setup};
use crate::warning::Warning;
use machine::frequency::{Model, Policy};
use machine::idle::Governor as IdleGovernor;
use machine::topology::{Location, parse_list};
use sched::core::cgroup::GroupFile;
use sched::features::Feature;
use sched::sched::TgId;
use sched::versions::Kernel;
use sim::engine::LinuxSim;
use sim::governors::Governed;
use sim::timeline::Change;
use std::fmt;
use units::{CpuId, Ns};

/// The timeline of a setup, for the kernel and the groups of its run.
pub fn changes(
    setup: &Setup,
    build: &Build,
    group: impl Fn(&str) -> Option<TgId>,
    at: &Location,
) -> Result<Vec<(Ns, Change)>, Mistake> {
    let mut governed = Governing::of(setup, build, at)?;
    let unknown = |change: &ChangeKind| {
        Mistake::new(
            at,
            format!("`{change}` in the timeline, which this program does not know"),
            "a record of this version",
        )
    };
    let mut known = |change: &ChangeSetup| {
        let known = match governed.change_of(&change.change, at)? {
            Some(governed) => Some(Change::Governed(governed)),
            None => change_of(&change.change, &build.sched, &group),
        };
        known.map(|known| (Ns(change.at_ns), known)).ok_or_else(|| unknown(&change.change))
    };
    setup.timeline.iter().map(&mut known).collect()
}

/// What a setup's files of cpufreq show, as its timeline goes on.
struct Governing<'a> {
    kernel: &'a str,
    /// `None`: its clocks are fixed.
    cpufreq: Option<(Model, Policy)>,
}

impl Governing<'_> {
    fn of<'a>(setup: &'a Setup, build: &Build, at: &Location) -> Result<Governing<'a>, Mistake> {
        let kernel = setup.kernel.name.as_str();
        if !setup.timeline.iter().any(|change| matches!(change.change, ChangeKind::Cpufreq { .. })) {
            return Ok(Governing { kernel, cpufreq: None });
        }
        let machine = setup.machine.machine()?.description;
        let settings = cpufreq::settings_of(&setup.kernel.cpufreq, at);
        Ok(Governing { kernel, cpufreq: cpufreq::choose(&machine, kernel, build, setup.kernel.hz, &settings)? })
    }

    /// The change, if it is one of clocks or idle states, and known.
    fn change_of(&mut self, change: &ChangeKind, at: &Location) -> Result<Option<Governed>, Mistake> {
        let written = |text: &str| Written { text: text.to_string(), at: at.clone() };
        Ok(match change {
            ChangeKind::Cpufreq { name, value } => match &mut self.cpufreq {
                Some(governed) => {
                    let file = cpufreq::store(governed, self.kernel, &written(name), &written(value))?;
                    Some(Governed::Cpufreq(file, Box::new(governed.1.clone())))
                }
                None => None,
            },
            ChangeKind::Cpuidle { name, value } if name == GOVERNOR => {
                IdleGovernor::from_name(value).map(Governed::IdleGovernor)
            }
            ChangeKind::Cpuidle { name, value } => {
                state_of(name).map(|state| Governed::IdleState { state, disabled: value.parse() == Ok(1_u8) })
            }
            ChangeKind::CpuDmaLatency(latency_us) => Some(Governed::CpuDmaLatency(*latency_us)),
            _ => None,
        })
    }
}

/// Whether a governor will come that leaves its samples to the kernel's workers.
pub fn leaves_samples(setup: &Setup) -> bool {
    setup.timeline.iter().any(|change| match &change.change {
        ChangeKind::Cpufreq { name, value } => {
            name == GOVERNOR && ["ondemand", "conservative"].contains(&value.as_str())
        }
        _ => false,
    })
}

fn change_of(change: &ChangeKind, kernel: &Kernel, group: impl Fn(&str) -> Option<TgId>) -> Option<Change> {
    let cpu = |number: u32| u16::try_from(number).ok().map(CpuId);
    Some(match change {
        ChangeKind::Sysctl { name, value } => Change::Sysctl(kernel.tunable(name)?.1, *value),
        ChangeKind::Feature { name, on } => Change::Feature(Feature::from_name(name)?, *on),
        ChangeKind::Offline(number) => Change::CpuOffline(cpu(*number)?),
        ChangeKind::Online(number) => Change::CpuOnline(cpu(*number)?),
        ChangeKind::Partitions(lists) => {
            Change::Partitions(lists.iter().map(|list| parse_list(list)).collect::<Result<_, _>>().ok()?)
        }
        ChangeKind::Cpufreq { .. } | ChangeKind::Cpuidle { .. } | ChangeKind::CpuDmaLatency(_) => return None,
        ChangeKind::Group { path, file, text } => Change::Group {
            group: group(path)?,
            file: GroupFile::ALL.iter().copied().find(|known| known.name() == file)?,
            text: text.clone(),
        },
    })
}

/// The changes that the kernel refused, and those that came after the end of a `whole` run.
pub fn warnings<const COSTS: bool>(setup: &Setup, sim: &LinuxSim<COSTS>, whole: bool) -> Vec<Warning> {
    let refused = sim.refused.iter().map(|refused| {
        let ChangeSetup { at_ns, change } = &setup.timeline[refused.number];
        format!("timeline: `{change}` at {} ms was refused: {}", milliseconds(Ns(*at_ns)), refused.refusal)
    });
    // The changes that remain are at the end of the list.
    let done = setup.timeline.len() - sim.ahead().count();
    let missed = setup.timeline[done..].iter().filter(|_| whole).map(|missed| {
        let at = milliseconds(Ns(missed.at_ns));
        format!("timeline: `{}` at {at} ms did not come, the run had ended", missed.change)
    });
    refused.into_iter().chain(missed).map(Warning::Plain).collect()
}

/// With as few digits as needed.
fn milliseconds(time: Ns) -> String {
    let text = format!("{}.{:06}", time.0 / 1_000_000, time.0 % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeKind::Sysctl { name, value } => write!(f, "{name}={value}"),
            ChangeKind::Feature { name, on } => write!(f, "{}{name}", if *on { "" } else { "NO_" }),
            ChangeKind::Offline(cpu) => write!(f, "offline={cpu}"),
            ChangeKind::Online(cpu) => write!(f, "online={cpu}"),
            ChangeKind::Partitions(lists) => write!(f, "partitions={}", lists.join("+")),
            ChangeKind::Cpufreq { name, value } => write!(f, "cpufreq.{name}={value}"),
            ChangeKind::Cpuidle { name, value } => write!(f, "cpuidle.{name}={value}"),
            ChangeKind::CpuDmaLatency(Some(us)) => write!(f, "cpu_dma_latency={us}"),
            ChangeKind::CpuDmaLatency(None) => write!(f, "cpu_dma_latency=default"),
            ChangeKind::Group { path, file, text } => write!(f, "{path}/{file}={text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Purpose, parse};
    use crate::machines::tests::Table;
    use crate::run::{Run, Wanted, run};

    /// A run of a CPU hog of 40 ms next to another, with a timeline.
    fn outcome(kernel: &str, timeline: &str) -> Run {
        let text = format!(
            "machine = \"pack:1 core:2 pu:1\"\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n\
             task a cpus=0: 20 x (run 1ms; sleep 1ms)\ntask b cpus=0: 20 x (run 1ms; sleep 1ms)\n\"\"\"\n\
             [[arm]]\nname = \"a\"\nkernel = \"{kernel}\"\n{timeline}"
        );
        run_of(&text)
    }

    /// The run of an experiment with one run.
    fn run_of(text: &str) -> Run {
        let experiment = parse(text, "x.toml").and_then(|draft| draft.resolve(Purpose::Single, &Table::default()));
        let experiment = experiment.unwrap();
        let setup = experiment.setup(&experiment.jobs()[0]);
        let wanted = Wanted { schedstat: true, ..Wanted::default() };
        run(&setup, wanted, &Location::of("x.toml")).unwrap().expect("nobody interrupted")
    }

    /// Calls of schedule() on CPU 0 in `/proc/schedstat`, which only schedstats count.
    fn schedules(run: &Run) -> u64 {
        let text = run.schedstat.as_ref().unwrap();
        let cpu = text.lines().find(|line| line.starts_with("cpu0 ")).unwrap();
        cpu.split(' ').nth(3).unwrap().parse().unwrap()
    }

    #[test]
    fn statistics_that_are_switched_on_in_the_middle_count_from_then_on() {
        let moment = |at: &str, on: u8| {
            format!("[[timeline]]\nat = \"{at}\"\nsysctl = {{ \"kernel.sched_schedstats\" = {on} }}\n")
        };
        for kernel in ["v4.15", "v6.12"] {
            let never = schedules(&outcome(kernel, ""));
            let always = schedules(&outcome(kernel, &moment("0ms", 1)));
            let late = schedules(&outcome(kernel, &moment("20ms", 1)));
            let twice = schedules(&outcome(kernel, &(moment("20ms", 1) + &moment("20ms", 0))));
            assert_eq!((never, twice), (0, 0));
            assert!(late > 0 && 3 * late < 2 * always && 3 * late > always, "{kernel}: {late} of {always}");
        }
    }

    #[test]
    fn what_came_too_late_or_was_refused_is_told() {
        let run = outcome("v4.15", "[[timeline]]\nat = \"10s\"\noffline = 1\nfeatures = [\"NO_SIS_PROP\"]\n");
        let expected = [
            "timeline: `offline=1` at 10000 ms did not come, the run had ended",
            "timeline: `NO_SIS_PROP` at 10000 ms did not come, the run had ended",
        ];
        assert_eq!(run.outcome.warnings, expected.map(|text| Warning::Plain(text.to_string())));
        assert_eq!(milliseconds(Ns(1_500_001)), "1.500001");
    }

    /// A run of 160 ms on CPU 0 beside one that sleeps now and then, on the eight CPUs of a machine with clocks.
    fn governed(kernel: &str, arm: &str, timeline: &str, costs: bool) -> Run {
        let text = format!(
            "machine = \"core-i7-3770\"\ncosts = {costs}\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n\
             task a cpus=0: run 160ms\ntask b cpus=1: 20 x (run 1ms; sleep 4ms)\n\"\"\"\n\
             [[arm]]\nname = \"a\"\nkernel = \"{kernel}\"\n{arm}\n{timeline}"
        );
        run_of(&text)
    }

    fn at(ms: u32, what: &str) -> String {
        format!("[[timeline]]\nat = \"{ms}ms\"\n{what}\n")
    }

    /// For how long CPU 0 executed at this frequency, in ms.
    fn executed_ms(run: &Run, khz: u32) -> u64 {
        run.hardware.frequencies[0].executed.at(khz).ns().0 / 1_000_000
    }

    #[test]
    fn governors_come_and_go_with_their_clocks() {
        let moments = [
            at(20, "cpufreq.governor = \"powersave\""),
            at(40, "cpufreq.scaling_min_freq = 2000000"),
            at(60, "cpufreq = { governor = \"userspace\", scaling_setspeed = 2500000 }"),
            at(80, "cpufreq = { governor = \"ondemand\", up_threshold = 50 }"),
        ];
        for kernel in ["v4.5-rc1", "v4.15", "v5.4", "v6.1", "v7.2"] {
            let arm = "cpufreq = { driver = \"acpi-cpufreq\", governor = \"performance\" }";
            let run = governed(kernel, arm, &moments.concat(), true);
            assert_eq!(run.outcome.warnings, [], "{kernel}");
            let times = [3_900_000, 1_600_000, 2_000_000, 2_500_000].map(|khz| executed_ms(&run, khz));
            let [turbo, least, limit, set] = times;
            assert!((19..=21).contains(&least) && (19..=21).contains(&limit), "{kernel}: {times:?}");
            // ondemand's first sample waits for its kworker, which begins behind the task that runs.
            assert!((19..60).contains(&set) && turbo > 50, "{kernel}: {times:?}");
            // Each of them works through its tunables and samples to the end.
            let again = governed(kernel, arm, &moments.concat(), true);
            assert_eq!(again.outcome.digest, run.outcome.digest, "{kernel}");
        }
    }

    #[test]
    fn schedutil_comes_and_goes_with_its_threads() {
        let moments = [
            at(20, "cpufreq.governor = \"performance\""),
            at(40, "cpufreq.governor = \"schedutil\""),
            at(60, "cpufreq.governor = \"conservative\""),
            at(80, "cpufreq.governor = \"schedutil\""),
            // An entry of the table: up to v5.15 schedutil may exceed a limit between two of them.
            at(90, "cpufreq = { rate_limit_us = 500, scaling_max_freq = 902400 }"),
        ];
        for (kernel, driver) in
            [("v4.15", "cpufreq-dt"), ("v5.10", "cpufreq-dt"), ("v6.12", "scmi"), ("v7.3", "cpufreq-dt")]
        {
            let low = |moments: &[String]| {
                let text = format!(
                    "machine = \"snapdragon-845\"\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n\
                     task a cpus=0: run 100ms\ntask b cpus=4: 20 x (run 1ms; sleep 4ms)\n\"\"\"\n\
                     [[arm]]\nname = \"a\"\nkernel = \"{kernel}\"\ncpufreq = {{ driver = \"{driver}\", governor = \"schedutil\" }}\n{}",
                    moments.concat()
                );
                let run = run_of(&text);
                assert_eq!(run.outcome.warnings, [], "{kernel}");
                let executed = run.hardware.frequencies[0].executed.iter().filter(|&(khz, _)| khz <= 1_000_000);
                executed.map(|(_, time)| time.ns().0 / 1_000_000).sum::<u64>()
            };
            let (with, without) = (low(&moments), low(&moments[..4]));
            assert!(with >= without + 7, "{kernel}: {with} ms up to 1 GHz, {without} without the limit");
        }
    }

    #[test]
    fn with_the_cost_model_off_clocks_are_accepted_and_change_nothing() {
        let arm = "cpufreq = { driver = \"acpi-cpufreq\" }";
        let moments = at(20, "cpufreq = { governor = \"ondemand\", scaling_max_freq = 2000000, boost = 0 }");
        let [with, without] = [&moments, ""].map(|timeline| governed("v6.12", arm, timeline, false));
        assert_eq!(with.outcome.samples, without.outcome.samples);
        assert_eq!(with.outcome.warnings, []);
    }

    #[test]
    fn idle_cpus_choose_anew_where_the_allowed_latency_changes_and_not_where_a_state_is_disabled() {
        let c1_of_cpu_7 = |kernel: &str, timeline: &str| {
            let run = governed(kernel, "", timeline, true);
            let c1 = run.hardware.idle.states.iter().position(|state| state == "C1").expect("the machine has it");
            run.hardware.idle.cpus[7].idle[c1].ns().0 / 1_000_000
        };
        for kernel in ["v4.15", "v5.10", "v6.1", "v7.2"] {
            assert_eq!(c1_of_cpu_7(kernel, ""), 0, "{kernel}: it sleeps in C6");
            let held = c1_of_cpu_7(kernel, &(at(20, "cpu_dma_latency = 2") + &at(60, "cpu_dma_latency = -1")));
            assert!((39..=41).contains(&held), "{kernel}: {held}");
            let disabled = "cpuidle = { \"state2.disable\" = 1, \"state3.disable\" = 1, \"state4.disable\" = 1 }";
            assert_eq!(c1_of_cpu_7(kernel, &at(20, disabled)), 0, "{kernel}");
            let woken = at(20, disabled) + &at(30, "cpu_dma_latency = 1000");
            assert!(c1_of_cpu_7(kernel, &woken) > 60, "{kernel}: it chooses among what is left");
        }
        let ladder = c1_of_cpu_7("v6.1", &at(20, "cpuidle.governor = \"haltpoll\""));
        assert!(ladder > 60, "{ladder}");
    }

    #[test]
    fn a_refused_change_is_told_with_its_own_moment() {
        // Between the second change and the third a task takes half of each CPU, which is more than 300 ms of a second.
        let text = "machine = \"pack:1 core:2 pu:1\"\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n\
                    task d at=25ms: policy deadline/10ms/20ms; 4 x (run 1ms; sleep 9ms)\ntask e: run 60ms\n\"\"\"\n\
                    [[arm]]\nname = \"a\"\nkernel = \"v6.1\"\n";
        let moment = |at: u32, budget: u32| {
            format!("[[timeline]]\nat = \"{at}ms\"\nsysctl = {{ \"kernel.sched_rt_runtime_us\" = {budget} }}\n")
        };
        let text = [text, &moment(10, 200_000), &moment(20, 950_000), &moment(30, 200_000)].concat();
        let run = run_of(&text);
        let [told] = &run.outcome.warnings[..] else { panic!("{:?}", run.outcome.warnings) };
        let told = told.to_string();
        let expected = "timeline: `kernel.sched_rt_runtime_us=200000` at 30 ms was refused: EBUSY";
        assert!(told.starts_with(expected), "{told}");
    }

    #[test]
    fn a_deadline_task_is_admitted_in_the_partition_of_its_cpus() {
        // 0.6 and 0.5 of a CPU do not both fit on the first, but one of them fits there and one in the other partition.
        let tasks = "task a at=20ms cpus=0 policy=deadline/6ms/10ms: run 20ms\n\
                     task b at=20ms cpus=1-3 policy=deadline/5ms/10ms: run 20ms\n\
                     task c at=30ms cpus=0 policy=deadline/5ms/10ms: run 20ms\n";
        let text = format!(
            "machine = \"pack:1 core:4 pu:1\"\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n{tasks}\"\"\"\n\
             [[timeline]]\nat = \"10ms\"\npartitions = [\"0\", \"1-3\"]\n"
        );
        for kernel in ["v4.15", "v6.1", "v7.3"] {
            let text = format!("{text}[[arm]]\nname = \"a\"\nkernel = \"{kernel}\"\n");
            let run = run_of(&text);
            let [refused] = &run.outcome.warnings[..] else { panic!("{kernel}: {:?}", run.outcome.warnings) };
            let refused = refused.to_string();
            assert!(refused.starts_with("\"c\" of line 7") && refused.contains("EBUSY"), "{kernel}: {refused}");
        }
    }

    #[test]
    fn tasks_that_lose_their_last_cpu_are_told_of() {
        // "bound" sleeps or runs on CPU 1 each time CPU 1 goes offline; a task that may use CPU 0 too moves there.
        let tasks = "task bound cpus=1: 10 x (run 1ms; sleep 1ms); until 40ms; cpus 1; run 30ms\ntask free cpus=0-1: run 30ms\n";
        let text = format!(
            "machine = \"pack:1 core:2 pu:1\"\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n{tasks}\"\"\"\n\
             [[timeline]]\nat = \"10ms\"\noffline = 1\n[[timeline]]\nat = \"20ms\"\nonline = 1\n\
             [[timeline]]\nat = \"50ms\"\noffline = 1\n"
        );
        for kernel in ["v4.5-rc1", "v4.15", "v6.12"] {
            let text = format!("{text}[[arm]]\nname = \"a\"\nkernel = \"{kernel}\"\n");
            let run = run_of(&text);
            let [Warning::Timed(told)] = &run.outcome.warnings[..] else { panic!("{:?}", run.outcome.warnings) };
            assert_eq!(told.before, "process \"bound\" is no longer affine to CPU 1 since ", "{kernel}");
            let begun = told.at_ns - run.start.0;
            assert!((10_000_000..13_000_000).contains(&begun), "{kernel}: {begun}");
            assert_eq!(
                told.after, ", and 1 more after it: no CPU of its affinity was up, so it may use all",
                "{kernel}"
            );
        }
    }

    #[test]
    fn tasks_whose_cpus_the_timeline_took_are_refused() {
        let text = "machine = \"pack:1 core:2 pu:1\"\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n\
                    task a cpus=0: 20 x (run 1ms; sleep 1ms)\ntask b cpus=1 at=20ms: run 1ms\n\
                    task c at=20ms: policy deadline/20ms/10ms; run 1ms\n\"\"\"\n[[arm]]\nname = \"a\"\nkernel = \"v6.1\"\n\
                    [[timeline]]\nat = \"10ms\"\noffline = 1\n";
        let run = run_of(text);
        let [b, c] = &run.outcome.warnings[..] else { panic!("{:?}", run.outcome.warnings) };
        for (told, refused, why) in [
            (b, "\"b\" of line 6 has no row: the kernel refused its CPUs with EINVAL", "none of these CPUs is up"),
            (
                c,
                "\"c\" of line 7 ended early: the kernel refused its policy with EINVAL",
                "a runtime fits before its deadline",
            ),
        ] {
            let told = told.to_string();
            assert!(told.starts_with(refused) && told.contains(why), "{told}");
        }
    }
}
