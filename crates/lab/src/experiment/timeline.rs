//! What changes in the middle of a run: the moments of an experiment file, checked for each arm that they happen in.

use super::Experiment;
use super::arm::{Arm, said_of_feature};
use super::draft::{DraftAction, DraftChange};
use super::governing::{Governing, check_cpuidle, latency};
use super::plan::Job;
use crate::mistake::{Mistake, Written, listed};
use crate::setup::{ChangeKind, ChangeSetup};
use machine::description::Description;
use machine::topology::{Location, parse_list};
use sched::core::cgroup::GroupFile;
use units::Ns;

/// The latest moment: an hour, the longest that a run may be.
const LATEST: Ns = Ns(3_600_000_000_000);
/// The most changes of one experiment.
const MOST: usize = 10_000;

/// The place of each arm's changes in the file, in the order of the arms and of their timelines.
pub type Places = Vec<Vec<Location>>;

/// Checks the moments and gives each arm its own, the earliest first; equal times keep the order of the file.
pub fn resolve(
    moments: &[DraftChange],
    arms: &mut [Arm],
    governing: &mut [Governing],
    machine: &Description,
) -> Result<Places, Mistake> {
    let mut places = vec![Vec::new(); arms.len()];
    if let Some(one_too_many) = moments.get(MOST) {
        return Err(one_too_many.at.mistake(format!("{} moments", moments.len()), format!("at most {MOST}")));
    }
    let mut in_order = Vec::new();
    for moment in moments {
        in_order.push((time(&moment.at)?, moment));
        for (index, arm) in moment.arms.iter().flatten().enumerate() {
            if !arms.iter().any(|known| known.name == arm.text) {
                return Err(arm.unknown("arm", arms.iter().map(|arm| arm.name.as_str())));
            }
            if moment.arms.iter().flatten().take(index).any(|other| other.text == arm.text) {
                return Err(arm.mistake(format!("the arm {} for the second time", arm.quoted()), "each arm once"));
            }
        }
    }
    in_order.sort_by_key(|(at, _)| *at);
    for (at, moment) in in_order {
        for ((arm, governing), places) in arms.iter_mut().zip(governing.iter_mut()).zip(&mut places) {
            if moment.arms.as_ref().is_none_or(|arms| arms.iter().any(|name| name.text == arm.name)) {
                add((arm, governing, machine), places, at, moment)?;
            }
        }
    }
    Ok(places)
}

/// Adds a moment to an arm; with it, what its files of clocks show by then, and its machine.
fn add(
    (arm, governing, machine): (&mut Arm, &mut Governing, &Description),
    places: &mut Vec<Location>,
    at: Ns,
    moment: &DraftChange,
) -> Result<(), Mistake> {
    for action in &moment.actions {
        let (place, changes, said) = match governed(arm, governing, machine, action)? {
            Some(governed) => governed,
            None => changes(arm, action, machine.topology().nr_cpus())?,
        };
        arm.said.push(format!("{said} at {}", moment.at.text));
        for change in changes {
            arm.timeline.push(ChangeSetup { at_ns: at.0, change });
            places.push(place.clone());
        }
    }
    Ok(())
}

/// An action's place, what it does, and the user's words for it.
type Said = (Location, Vec<ChangeKind>, String);

/// One action on clocks or idle states; `None`: it is another.
fn governed(
    arm: &Arm,
    governing: &mut Governing,
    machine: &Description,
    action: &DraftAction,
) -> Result<Option<Said>, Mistake> {
    let (at, change) = match action {
        DraftAction::Cpufreq { key, value } => {
            governing.store_cpufreq(arm, machine, key, value)?;
            (&value.at, ChangeKind::Cpufreq { name: key.text.clone(), value: value.text.clone() })
        }
        DraftAction::Cpuidle { key, value } => {
            check_cpuidle(arm, machine, key, value)?;
            (&value.at, ChangeKind::Cpuidle { name: key.text.clone(), value: value.text.clone() })
        }
        DraftAction::CpuDmaLatency(value) => (&value.at, ChangeKind::CpuDmaLatency(latency(value)?)),
        _ => return Ok(None),
    };
    let said = change.to_string();
    Ok(Some((at.clone(), vec![change], said)))
}

/// One action of another kind in terms of an arm's kernel.
fn changes(arm: &Arm, action: &DraftAction, nr_cpus: usize) -> Result<Said, Mistake> {
    Ok(match action {
        DraftAction::Sysctl { key, value } => {
            let (name, _, number) = arm.tunable_value(key, value)?;
            let change = ChangeKind::Sysctl { name: name.to_string(), value: number };
            (value.at.clone(), vec![change], format!("{}={}", key.text, value.text))
        }
        DraftAction::Feature(key) => {
            let (feature, on) = arm.feature_value(key, None)?;
            let change = ChangeKind::Feature { name: feature.name().to_string(), on };
            (key.at.clone(), vec![change], said_of_feature(feature, on))
        }
        DraftAction::Offline(list) => {
            let cpus = cpus(list, nr_cpus)?.into_iter().map(ChangeKind::Offline);
            (list.at.clone(), cpus.collect(), format!("offline={}", list.text))
        }
        DraftAction::Online(list) => {
            let cpus = cpus(list, nr_cpus)?.into_iter().map(ChangeKind::Online);
            (list.at.clone(), cpus.collect(), format!("online={}", list.text))
        }
        DraftAction::Partitions(lists) => {
            for list in lists {
                cpus(list, nr_cpus)?;
            }
            let texts: Vec<String> = lists.iter().map(|list| list.text.clone()).collect();
            let place = lists.first().map_or_else(|| Location::of("timeline"), |list| list.at.clone());
            let said = format!("partitions={}", texts.join("+"));
            (place, vec![ChangeKind::Partitions(texts)], said)
        }
        DraftAction::Cpufreq { .. } | DraftAction::Cpuidle { .. } | DraftAction::CpuDmaLatency(_) => {
            unreachable!("of clocks or idle states")
        }
        DraftAction::Group { path, file, text } => {
            let names = || GroupFile::ALL.iter().map(|file| file.name());
            if !names().any(|name| name == file.text) {
                return Err(file.unknown("file of a group", names()));
            }
            let said = format!("{}/{}={}", path.text, file.text, text.text);
            let change =
                ChangeKind::Group { path: path.text.clone(), file: file.text.clone(), text: text.text.clone() };
            (text.at.clone(), vec![change], said)
        }
    })
}

/// The CPUs of a list; the machine must have them.
fn cpus(list: &Written, nr_cpus: usize) -> Result<Vec<u32>, Mistake> {
    let expected = format!("CPUs of the machine, 0 to {}, such as 3 or 2-3", nr_cpus - 1);
    let mask = parse_list(&list.text).map_err(|error| list.mistake(error.found, &expected))?;
    match mask.iter().find(|cpu| cpu.index() >= nr_cpus) {
        Some(missing) => Err(list.mistake(format!("CPU {missing}"), expected)),
        None if mask.is_empty() => Err(list.mistake("no CPU", expected)),
        None => Ok(mask.iter().map(|cpu| u32::from(cpu.0)).collect()),
    }
}

/// `500ms`, in nanoseconds.
fn time(written: &Written) -> Result<Ns, Mistake> {
    let text = &written.text;
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let factor = match unit {
        "ns" => Some(1),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        _ => None,
    };
    let number = text[..text.len() - unit.len()].parse::<u64>().ok();
    let time = number.zip(factor).and_then(|(number, factor)| number.checked_mul(factor)).map(Ns);
    time.filter(|&time| time <= LATEST).ok_or_else(|| {
        let expected = "a time from the start of the workload, with ns, us, ms or s, up to an hour: 500ms";
        written.mistake(format!("at = {}", written.quoted()), expected)
    })
}

/// Creates each workload's groups and applies each arm's timeline, on the arm's machine before any task runs. What the
/// kernel refuses then, it always refuses.
pub fn rehearse(experiment: &Experiment, places: &Places) -> Result<(), Mistake> {
    for (arm, places) in places.iter().enumerate() {
        let at = places.first().cloned().unwrap_or_else(|| Location::of(&experiment.name));
        for (table, of) in experiment.tables.iter().enumerate() {
            // Without a timeline only a workload's groups can be refused, and only files create groups.
            if places.is_empty() && of.source.file().is_none() {
                continue;
            }
            for point in 0..of.points.len() {
                // Only a workload's groups matter here, so one point stands for all.
                if point > 0 && of.source.file().is_none() {
                    break;
                }
                let setup = experiment.setup(&Job { table, point, arm, iteration: 0 });
                let groups = crate::run::groups(&setup, &at)?;
                if places.is_empty() && groups.is_empty() {
                    continue;
                }
                for (change, place) in setup.timeline.iter().zip(places) {
                    if let ChangeKind::Group { path, .. } = &change.change
                        && path != "/"
                        && !groups.iter().any(|group| group.path == *path)
                    {
                        let workload = &setup.workload.name;
                        let names = listed(groups.iter().map(|group| group.path.as_str()));
                        let expected = match groups.is_empty() {
                            true => format!(
                                "`/`, for the workload {workload} makes no group here (`group` lines of scripts and taskgroups of rt-app do)"
                            ),
                            false => format!("a group of the workload {workload}: {names}"),
                        };
                        return Err(Mistake::new(
                            place,
                            format!("the unknown group `{path}`, which would be ENOENT"),
                            expected,
                        ));
                    }
                }
                if let Some((index, refusal)) = crate::run::rehearse(&setup, &at)? {
                    let found = format!("what {} refuses: {refusal}", setup.kernel.name);
                    return Err(Mistake::new(&places[index], found, "a change that it allows at that time"));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Experiment, Purpose, parse};
    use crate::machines::tests::Table;

    const TEXT: &str = "\
machine = \"core-i7-3770\"
[[workload]]
name = \"script\"
tasks = \"\"\"
group /web: cpu.weight 300
task a group=/web: run 30ms
\"\"\"
[[arm]]
name = \"old\"
kernel = \"v4.15\"
[[arm]]
name = \"new\"
kernel = \"v6.12\"
";

    fn resolve(timeline: &str) -> Result<Experiment, String> {
        parse(&format!("{TEXT}{timeline}"), "x.toml")
            .and_then(|draft| draft.resolve(Purpose::Comparison, &Table::default()))
            .map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn files_of_groups_are_written_in_the_order_of_the_script() {
        // cgroup v1 refuses a quota above that of the group above.
        let refused = |lines: &str| {
            let text = format!(
                "machine = \"pack:1 core:2 pu:1\"\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n{lines}\ntask a: run 1ms\n\"\"\"\n\
                 [[arm]]\nname = \"a\"\nkernel = \"v6.1\"\nbehaviour = {{ \"cgroup.files\" = \"legacy\" }}\n"
            );
            let parsed = parse(&text, "x.toml").and_then(|draft| draft.resolve(Purpose::Single, &Table::default()));
            parsed.map(|_| ()).map_err(|mistake| mistake.to_string())
        };
        let quota = |path: &str, us: u32| format!("group {path}: cpu.cfs_quota_us {us}\n");
        let lines = |steps: &[(&str, u32)]| steps.iter().map(|&(path, us)| quota(path, us)).collect::<String>();
        let down = [("/p", 50_000), ("/p/c", 40_000), ("/p/c", 20_000), ("/p", 30_000)];
        assert_eq!(refused(&lines(&down)), Ok(()));
        let late = refused(&lines(&[("/p", 30_000), ("/p/c", 40_000), ("/p", 50_000)])).unwrap_err();
        assert!(late.contains("`40000` for cpu.cfs_quota_us of /p/c, which v6.1 refuses: EINVAL"), "{late}");
        let early = refused(&lines(&[("/p/c", 60_000), ("/p", 50_000)])).unwrap_err();
        assert!(early.contains("`50000` for cpu.cfs_quota_us of /p, which v6.1 refuses: EINVAL"), "{early}");
    }

    #[test]
    fn moments_become_each_arms_timeline_in_order() {
        let experiment = resolve(
            "[[timeline]]
at = \"20ms\"
sysctl.kernel.sched_schedstats = 1
offline = \"2-3\"
[[timeline]]
at = \"10ms\"
arms = [\"old\"]
features = [\"NO_SIS_PROP\"]
cgroup = { \"/web\" = { \"cpu.weight\" = 50 } }
",
        )
        .unwrap();
        let [old, new] = &experiment.arms[..] else { panic!("two arms") };
        let times = |arm: &super::Arm| arm.timeline.iter().map(|change| change.at_ns / 1_000_000).collect::<Vec<_>>();
        assert_eq!((times(old), times(new)), (vec![10, 10, 20, 20, 20], vec![20, 20, 20]));
        assert_eq!(new.summary(), "v6.12 kernel.sched_schedstats=1 at 20ms offline=2-3 at 20ms");
        let setup = experiment.setup(&experiment.jobs()[0]);
        assert_eq!(serde_json::from_str::<crate::setup::Setup>(&setup.to_json()).unwrap(), setup);
        let json = setup.to_json();
        let part = r#"{"at_ns":20000000,"change":{"sysctl":{"name":"kernel.sched_schedstats","value":1}}}"#;
        assert!(json.contains(part), "{json}");
    }

    #[test]
    fn mistakes_are_found_where_they_stand() {
        for (timeline, message) in [
            ("at = \"5\"\noffline = 1", "x.toml:15:6: found at = `5`; expected a time from the start"),
            ("at = \"2h\"\noffline = 1", "x.toml:15:6: found at = `2h`"),
            ("offline = 1", "x.toml:14:1: found no `at` in timeline"),
            ("at = \"5ms\"", "x.toml:15:6: found nothing to do at `5ms`; expected sysctl, features"),
            (
                "at = \"5ms\"\nofline = 1",
                "x.toml:16:1: found the unknown name `ofline` in timeline; expected `offline`",
            ),
            ("at = \"5ms\"\nhz = 1000", "x.toml:16:1: found `hz` in timeline; expected what can change while"),
            ("at = \"5ms\"\noffline = \"8\"", "x.toml:16:11: found CPU 8; expected CPUs of the machine, 0 to 7"),
            ("at = \"5ms\"\noffline = \"x\"", "x.toml:16:11: found"),
            (
                "at = \"5ms\"\noffline = \"0-7\"",
                "x.toml:16:11: found what v4.15 refuses: EBUSY: it is the last CPU that is up; expected a change",
            ),
            (
                "at = \"5ms\"\npartitions = [\"0-1\", \"1-2\"]",
                "x.toml:16:15: found what v4.15 refuses: EINVAL: no CPU belongs to two partitions",
            ),
            (
                "at = \"5ms\"\nsysctl = { \"kernel.sched_latency_ns\" = 5000000 }",
                "x.toml:16:12: found the tunable `kernel.sched_latency_ns`, which v6.12 does not have",
            ),
            (
                "at = \"5ms\"\nsysctl = { \"kernel.sched_schedstat\" = 1 }",
                "x.toml:16:12: found the unknown sysctl `kernel.sched_schedstat`; expected `kernel.sched_schedstats`",
            ),
            (
                "at = \"5ms\"\nsysctl = { \"kernel.sched_schedstats\" = 2 }",
                "x.toml:16:40: found kernel.sched_schedstats = 2; expected a whole number from 0 to 1",
            ),
            (
                "at = \"5ms\"\narms = [\"new\"]\nsysctl = { \"kernel.sched_energy_aware\" = 0 }",
                "x.toml:17:42: found what v6.12 refuses: EOPNOTSUPP: the machine has no energy model",
            ),
            (
                "at = \"5ms\"\nsysctl = { \"kernel.sched_rt_runtime_us\" = 2000000 }",
                "x.toml:16:43: found what v4.15 refuses: EINVAL: sched_rt_runtime_us is above",
            ),
            (
                "at = \"5ms\"\nfeatures = [\"SIS_PROP\"]",
                "x.toml:16:13: found the feature `SIS_PROP`, which v6.12 does not have",
            ),
            (
                "at = \"5ms\"\ncpufreq = { driver = \"acpi-cpufreq\" }",
                "x.toml:16:13: found cpufreq.driver = `acpi-cpufreq` in the timeline, while boot decides about the driver",
            ),
            (
                "at = \"5ms\"\ncpufreq = { governor = \"powersave\", governer = 1 }",
                "x.toml:16:37: found the unknown file of cpufreq `governer`; expected `governor`, perhaps",
            ),
            (
                "at = \"5ms\"\ncpufreq = { boost = 0 }",
                "x.toml:16:13: found cpufreq.boost under the driver intel_pstate; expected cpufreq.no_turbo",
            ),
            (
                "at = \"5ms\"\ncpufreq = { sampling_rate = 10000 }",
                "x.toml:16:13: found cpufreq.sampling_rate with the governor performance; expected cpufreq.governor=ondemand or conservative before it",
            ),
            (
                "at = \"5ms\"\ncpufreq = { scaling_max_freq = 2000000 }\n[[timeline]]\nat = \"6ms\"\ncpufreq = { scaling_min_freq = 3000000 }",
                "x.toml:19:32: found cpufreq.scaling_min_freq = `3000000` in v4.15 (EINVAL); expected a lowest frequency (3000000) up to the highest (2000000)",
            ),
            (
                "at = \"5ms\"\ncpuidle.state7.disable = 1",
                "x.toml:16:9: found cpuidle.state7.disable, a state that core-i7-3770 does not have; expected one of state0 (POLL)",
            ),
            (
                "at = \"5ms\"\ncpuidle.governor = \"ladder\"",
                "x.toml:16:20: found cpuidle.governor in the timeline of v4.15, whose file nobody can write; expected a kernel since v5.9",
            ),
            (
                "at = \"5ms\"\ncpu_dma_latency = \"low\"",
                "x.toml:16:19: found cpu_dma_latency = low; expected a whole number from 0 to 2000000000, or -1: the file is closed",
            ),
            ("at = \"5ms\"\narms = [\"ald\"]\noffline = 1", "x.toml:16:9: found the unknown arm `ald`; expected `old`"),
            (
                "at = \"5ms\"\ncgroup = { \"/wob\" = { \"cpu.weight\" = 5 } }",
                "x.toml:16:38: found the unknown group `/wob`, which would be ENOENT; expected a group of the workload script: /web",
            ),
            (
                "at = \"5ms\"\ncgroup = { \"/web\" = { \"cpu.wieght\" = 5 } }",
                "x.toml:16:23: found the unknown file of a group `cpu.wieght`; expected `cpu.weight`, perhaps",
            ),
            (
                "at = \"5ms\"\ncgroup = { \"/web\" = { \"cpu.weight\" = 0 } }",
                "x.toml:16:38: found what v4.15 refuses: ERANGE",
            ),
        ] {
            let error = resolve(&format!("[[timeline]]\n{timeline}\n")).unwrap_err();
            assert!(error.starts_with(message), "{timeline}:\n{error}");
        }
    }
}
