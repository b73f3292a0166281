//! The guest's task, made from a case's setup: the text that `guest/player.c` reads, with a line for each action.
//!
//! ```text
//! settle NS            idle so long first
//! legacy               mounts the cpu controller of cgroup v1 in the place of cgroup v2
//! cpusets              mounts those of cgroup v1 at /cpuset
//! mkdir PATH           before the start, in this order
//! write PATH TEXT
//! at NS PATH TEXT      written so long after the start
//! dump PATH TAG        sent after the end
//! pipes, task, step    see workloads::script
//! ```

use lab::setup::{ChangeKind, Setup};
use machine::topology::{Location, parse_list};
use sched::behaviour::Rules;
use sched::core::cgroup::{GroupFile, Hierarchy};
use sched::versions::Kernel;
use std::fmt::Write;
use units::{CpuId, CpuMask};
use workloads::Instance;
use workloads::script::Script;

/// The guest idles first, until the work of booting is over: crypto self-tests, RCU, deferred initialisation.
const SETTLE_NS: u64 = 5_000_000_000;
/// The size of each CPU's trace buffer in KiB: enough for 10 s with a switch every 100 us.
const TRACE_KIB: u32 = 16_384;
/// The tick of Debian's kernels, and of those built for recordings.
const HZ: u32 = 250;
/// The one behaviour that is not the kernel's own: which hierarchy of groups is mounted.
const MOUNTED: &str = "cgroup.files";
const EVENTS: [&str; 5] = ["sched_switch", "sched_wakeup", "sched_wakeup_new", "sched_waking", "sched_migrate_task"];

pub struct Program {
    pub text: String,
    /// The names of the script's tasks.
    pub tasks: Vec<String>,
    /// Words for the kernel's command line.
    pub parameters: Vec<String>,
}

/// # Errors
/// What a real kernel cannot do.
pub fn of(setup: &Setup, nr_cpus: usize) -> Result<Program, String> {
    let Some(file) = setup.workload.file.as_ref().filter(|_| setup.workload.name == "script") else {
        return Err(format!("the workload {}; expected a script", setup.workload.name));
    };
    let script = Script::parse(&file.text, 1).map_err(|error| error.to_string())?;
    let kernel = sched::versions::kernel(&setup.kernel.name).expect("a case's kernel is built");
    if setup.kernel.hz != HZ {
        return Err(format!("hz = {}; expected {HZ}, as the kernels of recordings are built", setup.kernel.hz));
    }
    let mut text = format!("settle {SETTLE_NS}\n");
    settings(setup, kernel, nr_cpus, &mut text)?;
    tracing(&mut text);
    let at = Location { input: file.path.clone(), line: None, column: None };
    let (build, ..) = setup.kernel.build(nr_cpus, &at).map_err(|mistake| mistake.to_string())?;
    let groups = groups(&script, Hierarchy::of(build.sched.cgroup.files), &mut text);
    partitions(setup, nr_cpus, &mut text);
    timeline(setup, kernel, nr_cpus, &mut text)?;
    let listing =
        script.listing().map_err(|(line, what)| format!("the task of line {line}: {what}; a guest cannot"))?;
    text.push_str(&listing);
    dumps(&groups, &mut text);
    let of = &setup.kernel;
    let mut parameters: Vec<String> = of.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    parameters.extend(of.nohz_full.iter().map(|cpus| format!("nohz_full={cpus}")));
    parameters.extend(of.isolcpus.iter().map(|cpus| format!("isolcpus={cpus}")));
    parameters.extend(of.preempt.iter().map(|model| format!("preempt={model}")));
    let tasks = script.tasks.iter().map(|task| task.name.clone()).collect();
    Ok(Program { text, tasks, parameters })
}

/// Tunables and features that differ from the kernel's defaults.
fn settings(setup: &Setup, kernel: &Kernel, nr_cpus: usize, text: &mut String) -> Result<(), String> {
    for setting in kernel.settings() {
        let value = setup.kernel.behaviours.get(setting.key);
        if let Some(value) = value.filter(|value| *value != setting.value.name && setting.key != MOUNTED) {
            return Err(format!("{} = {value}; expected a kernel as it is, whose behaviours are its own", setting.key));
        }
    }
    let usual = kernel.sysctl(nr_cpus);
    for (name, tunable) in kernel.tunables {
        let value = setup.kernel.sysctls.get(*name).filter(|&&value| value != usual.get(*tunable));
        if let Some(value) = value {
            let _ = writeln!(text, "write {} {value}", path_of(name));
        }
    }
    for (feature, on) in kernel.features.iter() {
        let name = feature.name();
        if setup.kernel.features.get(name).is_some_and(|&wanted| wanted != on) {
            let no = if on { "NO_" } else { "" };
            let _ = writeln!(text, "write {} {no}{name}", features_of(kernel));
        }
    }
    Ok(())
}

/// The path of a tunable: `kernel.x` is a sysctl, `sched/x` a file in debugfs.
fn path_of(tunable: &str) -> String {
    match tunable.split_once('.') {
        Some((folder, name)) => format!("/proc/sys/{folder}/{name}"),
        None => format!("/sys/kernel/debug/{tunable}"),
    }
}

/// The file of features. It moved in v5.13, with the tunables that became `sched/x`.
fn features_of(kernel: &Kernel) -> &'static str {
    let moved = kernel.tunables.iter().any(|(name, _)| name.starts_with("sched/"));
    if moved { "/sys/kernel/debug/sched/features" } else { "/sys/kernel/debug/sched_features" }
}

fn tracing(text: &mut String) {
    let root = "/sys/kernel/tracing";
    let _ = writeln!(text, "write {root}/tracing_on 0\nwrite {root}/buffer_size_kb {TRACE_KIB}");
    for event in EVENTS {
        let _ = writeln!(text, "write {root}/events/sched/{event}/enable 1");
    }
}

/// Creates the script's groups. Returns the paths of those with a quota, whose `cpu.stat` is read.
fn groups(script: &Script, hierarchy: Hierarchy, text: &mut String) -> Vec<String> {
    let root = "/sys/fs/cgroup";
    let specs = Instance::groups(script);
    if hierarchy == Hierarchy::Legacy {
        text.push_str("legacy\n");
    }
    let mut limited = Vec::new();
    for (number, spec) in specs.iter().enumerate() {
        // In v2 a group has a controller's files only if the group above passes that controller down.
        let above = spec.path.rsplit_once('/').map_or("", |(above, _)| above);
        if !specs[..number].iter().any(|made| made.path == spec.path) {
            if hierarchy == Hierarchy::Unified {
                let _ = writeln!(text, "write {root}{above}/cgroup.subtree_control +cpu");
            }
            let _ = writeln!(text, "mkdir {root}{}", spec.path);
        }
        for (file, value) in &spec.files {
            let _ = writeln!(text, "write {root}{}/{} {value}", spec.path, file.name());
            if matches!(file, GroupFile::Max | GroupFile::CfsQuotaUs) && !limited.contains(&spec.path) {
                limited.push(spec.path.clone());
            }
        }
    }
    limited
}

/// The cpusets of a case with partitions: as many as it ever has, and one for the CPUs that are in none. They are
/// cpusets of cgroup v1, which do not change the affinity of tasks outside them; a case's partitions do the same. Those
/// of v2 would take their CPUs away from all others.
fn partitions(setup: &Setup, nr_cpus: usize, text: &mut String) {
    let lists = setup.timeline.iter().filter_map(|change| match &change.change {
        ChangeKind::Partitions(lists) => Some(lists.len() + 1),
        _ => None,
    });
    let Some(most) = lists.max() else { return };
    text.push_str("cpusets\n");
    for number in 0..most.min(nr_cpus) {
        let _ = writeln!(text, "mkdir /cpuset/p{number}");
    }
}

/// The writes that make the partitions equal `lists`, and one for the remaining CPUs.
fn partition(lists: &[String], nr_cpus: usize) -> Vec<(String, String)> {
    let balanced = |on: bool| ("/cpuset/cpuset.sched_load_balance".to_string(), u8::from(on).to_string());
    let taken: Vec<_> = lists.iter().filter_map(|list| parse_list(list).ok()).collect();
    let rest: CpuMask =
        (0..nr_cpus).map(CpuId::new).filter(|&cpu| !taken.iter().any(|list| list.contains(cpu))).collect();
    let rest = Some(rest).filter(|rest| !rest.is_empty() && !lists.is_empty()).map(|rest| rest.list());
    let cpus = |(number, list): (usize, String)| (format!("/cpuset/p{number}/cpuset.cpus"), list);
    let cpus = lists.iter().cloned().chain(rest).enumerate().map(cpus);
    [balanced(true)].into_iter().chain(cpus).chain(Some(balanced(false)).filter(|_| !lists.is_empty())).collect()
}

/// # Errors
/// Changes of what a guest does not have: it sees neither clocks nor idle states.
fn timeline(setup: &Setup, kernel: &Kernel, nr_cpus: usize, text: &mut String) -> Result<(), String> {
    for change in &setup.timeline {
        let online = |cpu: &str| format!("/sys/devices/system/cpu/cpu{cpu}/online");
        let writes = match &change.change {
            ChangeKind::Offline(cpu) => vec![(online(&cpu.to_string()), "0".to_string())],
            ChangeKind::Online(cpu) => vec![(online(&cpu.to_string()), "1".to_string())],
            ChangeKind::Sysctl { name, value } => vec![(path_of(name), value.to_string())],
            ChangeKind::Feature { name, on } => {
                let no = if *on { "" } else { "NO_" };
                vec![(features_of(kernel).to_string(), format!("{no}{name}"))]
            }
            ChangeKind::Group { path, file, text } => {
                vec![(format!("/sys/fs/cgroup{path}/{file}"), text.clone())]
            }
            ChangeKind::Partitions(lists) => partition(lists, nr_cpus),
            ChangeKind::Cpufreq { .. } | ChangeKind::Cpuidle { .. } | ChangeKind::CpuDmaLatency(_) => {
                let change = &change.change;
                return Err(format!(
                    "{change} in the timeline; a guest has neither cpufreq nor idle states of its own"
                ));
            }
        };
        for (path, value) in writes {
            let _ = writeln!(text, "at {} {path} {value}", change.at_ns);
        }
    }
    Ok(())
}

fn dumps(groups: &[String], text: &mut String) {
    let _ = writeln!(text, "dump /proc/version version");
    for path in groups {
        let _ = writeln!(text, "dump /sys/fs/cgroup{path}/cpu.stat cpu.stat:{path}");
    }
    let _ = writeln!(text, "dump /sys/kernel/tracing/trace trace");
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::experiment::{Purpose, parse};
    use lab::machines::Files;
    use lab::mistake::Unreadable;

    struct Nothing;

    impl Files for Nothing {
        fn text(&self, _: &str) -> Result<String, Unreadable> {
            Err(Unreadable::from("no such file".to_string()))
        }

        fn sysfs(&self, _: &str) -> Option<String> {
            None
        }
    }

    fn program(settings: &str) -> Result<Program, String> {
        let text = format!(
            "machine = \"pack:1 l3:1 core:2 pu:1\"\nhz = 250\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n\
             group /a/b: cpu.max 50000 100000\ntask t group=/a/b: until 100ms; run 5ms\n\"\"\"\n{settings}"
        );
        let case = parse(&text, "x.toml").unwrap().resolve(Purpose::Single, &Nothing).unwrap();
        of(&case.setup(&case.jobs()[0]), 2)
    }

    #[test]
    fn a_case_becomes_a_list_of_writes_and_tasks() {
        let arm = "[[arm]]\nname = \"r\"\nkernel = \"v6.12\"\nsysctl = { \"sched/base_slice_ns\" = 3000000 }\n\
                   features = [\"NO_RUN_TO_PARITY\"]\n";
        let moment = "[[timeline]]\nat = \"20ms\"\noffline = 1\n";
        let program = program(&format!("{arm}{moment}")).unwrap();
        assert_eq!(program.tasks, ["t"]);
        for line in [
            "write /sys/kernel/debug/sched/base_slice_ns 3000000",
            "write /sys/kernel/debug/sched/features NO_RUN_TO_PARITY",
            "write /sys/fs/cgroup/cgroup.subtree_control +cpu",
            "mkdir /sys/fs/cgroup/a",
            "write /sys/fs/cgroup/a/cgroup.subtree_control +cpu",
            "mkdir /sys/fs/cgroup/a/b",
            "write /sys/fs/cgroup/a/b/cpu.max 50000 100000",
            "at 20000000 /sys/devices/system/cpu/cpu1/online 0",
            "task t 0 - /a/b - 0 0 0 0 0 0 0 0 0",
            "step until 100000000",
            "dump /sys/fs/cgroup/a/b/cpu.stat cpu.stat:/a/b",
        ] {
            assert!(program.text.lines().any(|it| it == line), "{line} is not in\n{}", program.text);
        }
        assert_eq!(program.text.matches("/sys/kernel/debug").count(), 2, "nothing else is set:\n{}", program.text);
    }

    #[test]
    fn an_old_kernel_has_its_files_where_they_were() {
        let text = "machine = \"pack:1 l3:1 core:2 pu:1\"\nhz = 250\n[[workload]]\nname = \"script\"\ntasks = \"\"\"\n\
             group /a/b: cpu.cfs_quota_us 50000\ntask t group=/a/b: run 5ms\n\"\"\"\n\
             [[arm]]\nname = \"r\"\nkernel = \"v4.5-rc1\"\nfeatures = [\"NO_GENTLE_FAIR_SLEEPERS\"]\n";
        let case = parse(text, "x.toml").unwrap().resolve(Purpose::Single, &Nothing).unwrap();
        let text = of(&case.setup(&case.jobs()[0]), 2).unwrap().text;
        let groups = "legacy\nmkdir /sys/fs/cgroup/a\nmkdir /sys/fs/cgroup/a/b\nwrite /sys/fs/cgroup/a/b/cpu.cfs_quota_us 50000\n";
        assert!(text.contains("write /sys/kernel/debug/sched_features NO_GENTLE_FAIR_SLEEPERS\n"), "{text}");
        assert!(text.contains(groups) && text.contains("dump /sys/fs/cgroup/a/b/cpu.stat cpu.stat:/a/b\n"), "{text}");
    }

    #[test]
    fn partitions_are_cpusets() {
        let arm = "[[arm]]\nname = \"r\"\nkernel = \"v6.12\"\n";
        let moment = |at: &str, lists: &str| format!("[[timeline]]\nat = \"{at}\"\npartitions = [{lists}]\n");
        let text = program(&format!("{arm}{}{}", moment("20ms", "\"0\""), moment("30ms", ""))).unwrap().text;
        let balance = "/cpuset/cpuset.sched_load_balance";
        let expected = format!(
            "at 20000000 {balance} 1\nat 20000000 /cpuset/p0/cpuset.cpus 0\nat 20000000 /cpuset/p1/cpuset.cpus 1\n\
             at 20000000 {balance} 0\nat 30000000 {balance} 1\n"
        );
        assert!(text.contains("cpusets\nmkdir /cpuset/p0\nmkdir /cpuset/p1\n") && text.contains(&expected), "{text}");
    }

    #[test]
    fn what_no_real_kernel_does_is_refused() {
        let mixed =
            "[[arm]]\nname = \"r\"\nkernel = \"v6.12\"\nbehaviour = { \"wake.record_wakee\" = \"at-waking\" }\n";
        assert!(program(mixed).err().is_some_and(|it| it.contains("expected a kernel as it is")));
        let arm = "[[arm]]\nname = \"r\"\nkernel = \"v6.12\"\n";
        let clocks = "[[timeline]]\nat = \"20ms\"\ncpu_dma_latency = 20\n";
        let refused = program(&format!("{arm}{clocks}")).err().unwrap_or_default();
        assert!(refused.starts_with("cpu_dma_latency=20 in the timeline; a guest has neither"), "{refused}");
    }
}
