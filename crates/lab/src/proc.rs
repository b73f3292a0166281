//! Files of procfs and debugfs of the simulated machine, read at one moment of a run.

use crate::kernels::Build;
use crate::mistake::{Mistake, Written, listed};
use crate::prices::path_name;
use crate::symbols::Symbols;
use machine::description::nearest_name;
use machine::hardware::Hardware;
use machine::topology::Location;
use observe::proc::{
    InterruptLine, SchedDebug, TaskSched, arch_probe_nr_irqs, cgroup_mode_text, device_about, interrupts_text,
    latency_text, pressure_text, readprofile_text, softirqs_text, task_schedstat,
};
use observe::{Formats, Release, Schedstat, Span};
use os::irq::{Irq, IrqStat};
use sched::access::Path;
use sched::core::Sched;
use sched::core::cgroup::{GroupFile, Hierarchy};
use sched::errno::Answer;
use sched::fair::bandwidth::RUNTIME_INF;
use sched::latencytop::LatencyRecord;
use sched::psi::PsiRes;
use sched::sched::{ROOT_TASK_GROUP, TaskId, TgId};
use sim::engine::LinuxSim;
use units::{CpuId, Ns};

/// A file, and the task or group that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcFile {
    Schedstat,
    /// `/proc/PID/sched`
    TaskSched(Written),
    /// `/proc/PID/schedstat`
    TaskSchedstat(Written),
    /// `/proc/sched_debug`, `/sys/kernel/debug/sched/debug`
    SchedDebug,
    /// `/sys/kernel/debug/sched/cgroup_mode`
    CgroupMode,
    /// `/proc/latency_stats`
    LatencyStats,
    /// `/proc/PID/latency`
    Latency(Written),
    /// `/proc/profile`, as readprofile(8) shows it.
    Profile,
    /// `/proc/interrupts`
    Interrupts,
    /// `/proc/softirqs`
    Softirqs,
    /// `/proc/pressure/cpu`, `/proc/pressure/io`
    Pressure(PsiRes),
    /// A file of a group: the group's directory, and the file's name.
    Group(Written, Written),
}

/// A kind of file that can be read.
struct Row {
    /// `PID` stands for a pid or a task's name, `GROUP` for a group's path.
    name: &'static str,
    kernels: Span,
    file: fn(Written) -> ProcFile,
}

/// The directory of groups.
const CGROUP: &str = "/sys/fs/cgroup";

/// What can be read, and in which kernels.
const FILES: &[Row] = &[
    Row { name: "/proc/schedstat", kernels: Span::ALL, file: |_| ProcFile::Schedstat },
    Row { name: "/proc/PID/sched", kernels: Span::ALL, file: ProcFile::TaskSched },
    Row { name: "/proc/PID/schedstat", kernels: Span::ALL, file: ProcFile::TaskSchedstat },
    Row { name: "/proc/latency_stats", kernels: Span::ALL, file: |_| ProcFile::LatencyStats },
    Row { name: "/proc/PID/latency", kernels: Span::ALL, file: ProcFile::Latency },
    Row { name: "/proc/profile", kernels: Span::ALL, file: |_| ProcFile::Profile },
    Row { name: "/proc/interrupts", kernels: Span::ALL, file: |_| ProcFile::Interrupts },
    Row { name: "/proc/softirqs", kernels: Span::ALL, file: |_| ProcFile::Softirqs },
    Row { name: "/proc/sched_debug", kernels: Span::ALL.until(Release::V5_15), file: |_| ProcFile::SchedDebug },
    Row { name: "/proc/pressure/cpu", kernels: Span::since(Release::V5_4), file: |_| ProcFile::Pressure(PsiRes::Cpu) },
    Row { name: "/proc/pressure/io", kernels: Span::since(Release::V5_4), file: |_| ProcFile::Pressure(PsiRes::Io) },
    // The file moved there in v5.13.
    Row { name: "/sys/kernel/debug/sched/debug", kernels: Span::since(Release::V5_15), file: |_| ProcFile::SchedDebug },
    Row {
        name: "/sys/kernel/debug/sched/cgroup_mode",
        kernels: Span::since(Release::V7_3),
        file: |_| ProcFile::CgroupMode,
    },
];

/// Stands for group files in help and messages: `cpu.stat`, `cpu.pressure`, and whatever else the kernel has.
const GROUP_FILE: &str = "/sys/fs/cgroup/GROUP/cpu.stat";

impl Row {
    /// The part of `path` in the place of `PID`; empty if the name has none.
    fn matches(&self, path: &Written) -> Option<Written> {
        let text = path.text.as_str();
        let Some((before, after)) = self.name.split_once("PID") else {
            return (text == self.name).then(|| path.part(0, ""));
        };
        let of = text.strip_prefix(before)?.strip_suffix(after)?;
        (!of.is_empty() && !of.contains('/')).then(|| path.part(before.len(), of))
    }
}

/// Which files to read, and when: in simulated time since boot, or at the end of the run.
#[derive(Clone, Debug)]
pub struct Reading {
    pub files: Vec<ProcFile>,
    pub at: Option<Ns>,
}

impl ProcFile {
    /// A path; a task's name may replace PID.
    ///
    /// # Errors
    /// A path that is no known file, or a file that this kernel does not have.
    pub fn parse(path: &Written, build: &Build) -> Result<ProcFile, Mistake> {
        let there = |row: &&Row| build.formats.has(row.kernels);
        let names = || listed(FILES.iter().filter(there).map(|row| row.name).chain([GROUP_FILE]));
        if let Some((above, file)) = path.text.strip_prefix(CGROUP).and_then(|rest| rest.rsplit_once('/')) {
            let group = path.part(CGROUP.len(), if above.is_empty() { "/" } else { above });
            return Ok(ProcFile::Group(group, path.part(CGROUP.len() + above.len() + 1, file)));
        }
        let mut found = FILES.iter().filter_map(|row| Some((row, row.matches(path)?)));
        match found.next() {
            Some((row, of)) if there(&row) => Ok((row.file)(of)),
            Some(_) => {
                let found = format!("the file {}, which {} does not have", path.quoted(), build.sched.name);
                Err(path.mistake(found, format!("one of {}", names())))
            }
            None => {
                let near = nearest_name(&path.text, FILES.iter().filter(there).map(|row| row.name));
                let near = near.map_or(String::new(), |name| format!("`{name}`, perhaps; or "));
                Err(path.mistake(format!("the unknown file {}", path.quoted()), format!("{near}one of {}", names())))
            }
        }
    }
}

/// The kernel's count of ticks at `now`; a real kernel's begins at -300 seconds.
fn jiffies<const COSTS: bool>(sim: &LinuxSim<COSTS>, now: Ns) -> u64 {
    now.0 / sim.sched.tick_nsec
}

/// The text of `/proc/schedstat`.
pub(crate) fn schedstat<const COSTS: bool>(sim: &LinuxSim<COSTS>, formats: Formats, now: Ns) -> String {
    let sched = &sim.sched;
    let file = Schedstat {
        jiffies: jiffies(sim, now),
        cpu_online_mask: &sched.cpu_online_mask,
        rq: &sched.rq,
        domains: &sched.domains,
        formats,
    };
    file.to_string()
}

/// Reads a file of a simulation that has reached `now`. `cpu_khz` is the CPU clock that the kernel determined at boot.
///
/// # Errors
/// A task that does not live at that time.
pub(crate) fn read<const COSTS: bool>(
    sim: &LinuxSim<COSTS>,
    file: &ProcFile,
    formats: Formats,
    cpu_khz: u64,
    now: Ns,
) -> Result<String, Mistake> {
    match file {
        ProcFile::Schedstat => Ok(schedstat(sim, formats, now)),
        ProcFile::TaskSchedstat(of) => Ok(task_schedstat(&sim.sched, find(&sim.sched, of)?)),
        ProcFile::LatencyStats => Ok(latency(sim, sim.sched.latency_records())),
        ProcFile::Latency(of) => {
            let task = find(&sim.sched, of)?;
            Ok(latency(sim, &sim.sched.task_cold[task].latency_record))
        }
        ProcFile::Profile => {
            let hits = sim.sched.profile_histogram().ok_or_else(|| {
                Mistake::new(
                    &Location::of("--file"),
                    "/proc/profile, and nothing is profiled",
                    "profile=schedule on the arm",
                )
            })?;
            let symbols = symbols(sim);
            Ok(readprofile_text(hits, |path| innermost(&symbols, path)))
        }
        ProcFile::Interrupts => Ok(interrupts(sim)),
        ProcFile::Softirqs => {
            let cpus = (0..sim.sched.nr_cpus()).map(CpuId::new);
            Ok(softirqs_text(&cpus.map(|cpu| sim.os.irq.counted(cpu).softirqs).collect::<Vec<_>>(), formats))
        }
        ProcFile::Pressure(res) => pressure(sim, ROOT_TASK_GROUP, *res, now).map_err(|refused| {
            Mistake::new(&Location::of("--file"), format!("/proc/pressure: {refused}"), "an arm without psi=0")
        }),
        ProcFile::Group(group, file) => group_file(sim, group, file, now),
        ProcFile::SchedDebug => {
            let release = sim.sched.kernel.name.trim_start_matches('v');
            Ok(SchedDebug { sched: &sim.sched, formats, release, now, khz: cpu_khz }.to_string())
        }
        ProcFile::CgroupMode => Ok(cgroup_mode_text(sim.sched.sysctl.cgroup_mode)),
        ProcFile::TaskSched(of) => {
            let sched = &sim.sched;
            let task = find(sched, of)?;
            let mm = sched.task[task].mm;
            let threads = if mm == 0 { 1 } else { living(sched).filter(|&other| sched.task[other].mm == mm).count() };
            Ok(TaskSched { sched, task, threads, formats }.to_string())
        }
    }
}

/// The text of `/proc/interrupts`, with the interrupts that are modelled.
fn interrupts<const COSTS: bool>(sim: &LinuxSim<COSTS>) -> String {
    let cpus: Vec<CpuId> = sim.sched.cpu_online_mask.iter().collect();
    let irq = &sim.os.irq;
    let nr_irqs = arch_probe_nr_irqs(sim.sched.nr_cpus());
    let line = |(number, line): (usize, &Irq)| InterruptLine {
        label: number.to_string(),
        counts: cpus.iter().map(|&cpu| line.count(cpu)).collect(),
        about: device_about(number, &line.name, nr_irqs),
    };
    let of_cpus = |label: &str, about: &str, count: fn(&IrqStat) -> u32| InterruptLine {
        label: label.to_string(),
        counts: cpus.iter().map(|&cpu| count(&irq.counted(cpu)).into()).collect(),
        about: format!(" {about}"),
    };
    let mut lines: Vec<InterruptLine> = irq.irqs().iter().enumerate().map(line).collect();
    lines.extend([
        of_cpus("LOC", "Local timer interrupts", |stat| stat.apic_timer_irqs),
        of_cpus("IWI", "IRQ work interrupts", |stat| stat.apic_irq_work_irqs),
        of_cpus("RES", "Rescheduling interrupts", |stat| stat.irq_resched_count),
        of_cpus("CAL", "Function call interrupts", |stat| stat.irq_call_count),
    ]);
    interrupts_text(&cpus, &lines, nr_irqs)
}

fn symbols<const COSTS: bool>(sim: &LinuxSim<COSTS>) -> Symbols<'_> {
    Symbols::of(sim.sched.kernel.name, &sim.sched.arch.prices, path_name)
}

fn latency<const COSTS: bool>(sim: &LinuxSim<COSTS>, records: &[LatencyRecord]) -> String {
    let symbols = symbols(sim);
    latency_text(records, |place| symbols.asleep(place))
}

/// The kernel function that a sleep in `path` is in.
fn innermost(symbols: &Symbols<'_>, path: Path) -> String {
    match path {
        Path::schedule => "schedule".to_string(),
        _ => symbols.asleep(&[path]).pop().unwrap_or_else(|| path_name(path).to_string()),
    }
}

fn pressure<const COSTS: bool>(sim: &LinuxSim<COSTS>, group: TgId, res: PsiRes, now: Ns) -> Answer<String> {
    let lines = sim.sched.psi_show(group, res, now.0)?;
    Ok(pressure_text(&lines, sim.sched.psi_shows_full(res)))
}

/// Every group but the root, with its path: the groups that the workload made.
fn groups<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>) -> impl Iterator<Item = (String, TgId)> {
    let made = sched.tg.iter().map(|(tg, _)| tg).filter(|&tg| tg != ROOT_TASK_GROUP && !sched.is_autogroup(tg));
    made.map(|tg| (sched.cgroup_path(tg), tg))
}

fn group_file<const COSTS: bool>(
    sim: &LinuxSim<COSTS>,
    group: &Written,
    file: &Written,
    now: Ns,
) -> Result<String, Mistake> {
    let sched = &sim.sched;
    let all: Vec<(String, TgId)> = [("/".to_string(), ROOT_TASK_GROUP)].into_iter().chain(groups(sched)).collect();
    // With cgroup v1 only the whole system has pressure files.
    let res: &[(&str, PsiRes)] = match sched.cgroup_hierarchy {
        Hierarchy::Legacy => &[],
        Hierarchy::Unified => &[("cpu.pressure", PsiRes::Cpu), ("io.pressure", PsiRes::Io)],
    };
    let Some(tg) = all.iter().find(|(path, _)| *path == group.text).map(|(_, tg)| *tg) else {
        // The root group has only these files.
        let root_has = res.iter().any(|(name, _)| *name == file.text);
        let paths: Vec<&str> = all.iter().map(|(path, _)| path.as_str()).skip(usize::from(!root_has)).collect();
        if paths.is_empty() {
            let found = format!("the unknown group {}", group.quoted());
            return Err(group.mistake(found, "another file: the workload made no group"));
        }
        return Err(group.unknown("group", paths));
    };
    if let Some((_, res)) = res.iter().find(|(name, _)| *name == file.text) {
        return pressure(sim, tg, *res, now).map_err(|refused| {
            file.mistake(format!("{}: {refused}", file.quoted()), "a kernel that has it, without psi=0")
        });
    }
    let known = || GroupFile::ALL.iter().copied().filter(|&file| sched.has_group_file(file));
    let Some(which) = known().find(|known| known.name() == file.text) else {
        let pressures = res.iter().map(|(name, _)| *name);
        return Err(file.unknown("file of a group", known().map(GroupFile::name).chain(pressures)));
    };
    sched
        .cgroup_read(tg, which)
        .map_err(|refused| file.mistake(format!("{}: {refused}", file.quoted()), "another file"))
}

/// Paths and `cpu.stat` of the groups that have a quota.
pub(crate) fn quota_groups<const COSTS: bool>(sim: &LinuxSim<COSTS>) -> Vec<(String, String)> {
    let sched = &sim.sched;
    let limited = groups(sched).filter(|(_, tg)| sched.tg[*tg].cfs_bandwidth.quota != RUNTIME_INF);
    limited.filter_map(|(path, tg)| Some((path, sched.cgroup_read(tg, GroupFile::Stat).ok()?))).collect()
}

fn living<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>) -> impl Iterator<Item = TaskId> {
    sched.task.iter().filter(|(_, task)| task.alive).map(|(id, _)| id)
}

/// The task with that pid, or the oldest task of that name.
fn find<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, of: &Written) -> Result<TaskId, Mistake> {
    let pid = of.text.parse().ok();
    let mut found = living(sched).filter(|&task| {
        let cold = &sched.task_cold[task];
        pid.map_or(cold.comm == of.text, |pid: u32| cold.pid == pid)
    });
    let oldest = found.by_ref().min_by_key(|&task| sched.task_cold[task].pid);
    oldest.ok_or_else(|| {
        let mut names: Vec<String> =
            living(sched).map(|task| format!("{} {}", sched.task_cold[task].pid, sched.task_cold[task].comm)).collect();
        names.truncate(40);
        let expected =
            format!("a pid or a name of {}; tasks that end later are there at an earlier --at", names.join(", "));
        of.mistake(format!("no living task {}", of.quoted()), expected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_with_their_owners() {
        let built = |kernel| Build::named(kernel).expect("a kernel that is built");
        let parse = |path: &str| ProcFile::parse(&Written::option("--file", path), &built("v4.15"));
        assert_eq!(parse("/proc/schedstat").unwrap(), ProcFile::Schedstat);
        let Ok(ProcFile::TaskSched(of)) = parse("/proc/hog0/sched") else { panic!("a task's file") };
        assert_eq!((of.text.as_str(), of.at.column), ("hog0", Some(7)));
        assert!(matches!(parse("/proc/12/schedstat"), Ok(ProcFile::TaskSchedstat(_))));
        for wrong in ["", "/proc", "/proc/12", "/proc/12/stat", "schedstat"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("one of /proc/schedstat, "), "{error}");
        }
        assert_eq!(parse("/proc/sched_debug").unwrap(), ProcFile::SchedDebug);
        for of_v5_10 in ["/proc/sched_debug", "/proc/pressure/cpu"] {
            assert!(ProcFile::parse(&Written::option("--file", of_v5_10), &built("v5.10")).is_ok(), "{of_v5_10}");
        }
        let error = ProcFile::parse(&Written::option("--file", "/proc/sched_debug"), &built("v5.15")).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("which v5.15 does not have") && error.contains("/sys/kernel/debug/sched/debug"),
            "{error}"
        );
        let mode = Written::option("--file", "/sys/kernel/debug/sched/cgroup_mode");
        assert_eq!(ProcFile::parse(&mode, &built("v7.3")).unwrap(), ProcFile::CgroupMode);
        let error = ProcFile::parse(&mode, &built("v7.2")).unwrap_err().to_string();
        assert!(error.contains("which v7.2 does not have"), "{error}");
    }
}
