//! Files of procfs and debugfs of the simulated machine, read at one moment of a run.

use crate::mistake::{Mistake, Written};
use machine::hardware::Hardware;
use observe::Schedstat;
use observe::proc::{Formats, TaskSched, task_schedstat};
use sched::core::Sched;
use sched::sched::TaskId;
use sim::engine::LinuxSim;
use units::Ns;

/// A file, and whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcFile {
    Schedstat,
    /// `/proc/PID/sched`
    TaskSched(Written),
    /// `/proc/PID/schedstat`
    TaskSchedstat(Written),
}

/// What can be read, for help and messages.
pub const FILES: &[(&str, &str)] = &[
    ("/proc/schedstat", "counters of CPUs and scheduling domains"),
    ("/proc/PID/sched", "a task's scheduling state, averages and statistics"),
    ("/proc/PID/schedstat", "a task's time on CPUs, its time waiting, and its switches"),
];

/// Which files to read, and when: in simulated time since boot, or at the end of the run.
#[derive(Clone, Debug)]
pub struct Reading {
    pub files: Vec<ProcFile>,
    pub at: Option<Ns>,
}

impl ProcFile {
    /// A path; in the place of PID a task's name may stand.
    pub fn parse(path: &Written) -> Result<ProcFile, Mistake> {
        let text = path.text.as_str();
        if text == "/proc/schedstat" {
            return Ok(ProcFile::Schedstat);
        }
        if let Some((of, file)) = text.strip_prefix("/proc/").and_then(|rest| rest.split_once('/')) {
            let of = path.part("/proc/".len(), of);
            match file {
                "sched" => return Ok(ProcFile::TaskSched(of)),
                "schedstat" => return Ok(ProcFile::TaskSchedstat(of)),
                _ => {}
            }
        }
        let names = FILES.iter().map(|(name, _)| *name);
        Err(path.mistake(format!("the file {}", path.quoted()), format!("one of {}", crate::mistake::listed(names))))
    }
}

/// The kernel's count of ticks at `now`; a real one begins at -300 seconds' worth.
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

/// Reads a file of a simulation that has come to `now`.
///
/// # Errors
/// A task that does not live then.
pub(crate) fn read<const COSTS: bool>(
    sim: &LinuxSim<COSTS>,
    file: &ProcFile,
    formats: Formats,
    now: Ns,
) -> Result<String, Mistake> {
    match file {
        ProcFile::Schedstat => Ok(schedstat(sim, formats, now)),
        ProcFile::TaskSchedstat(of) => Ok(task_schedstat(&sim.sched, find(&sim.sched, of)?)),
        ProcFile::TaskSched(of) => {
            let sched = &sim.sched;
            let task = find(sched, of)?;
            let mm = sched.task[task].mm;
            let threads = if mm == 0 { 1 } else { living(sched).filter(|&other| sched.task[other].mm == mm).count() };
            Ok(TaskSched { sched, task, threads, formats }.to_string())
        }
    }
}

fn living<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>) -> impl Iterator<Item = TaskId> {
    sched.task.iter().filter(|(_, task)| task.alive).map(|(id, _)| id)
}

/// The task of that pid, or the oldest of that name.
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
        of.mistake(format!("no living task {}", of.quoted()), format!("a pid or a name of {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_with_their_owners() {
        let parse = |path: &str| ProcFile::parse(&Written::option("--file", path));
        assert_eq!(parse("/proc/schedstat").unwrap(), ProcFile::Schedstat);
        let Ok(ProcFile::TaskSched(of)) = parse("/proc/hog0/sched") else { panic!("a task's file") };
        assert_eq!((of.text.as_str(), of.at.column), ("hog0", Some(7)));
        assert!(matches!(parse("/proc/12/schedstat"), Ok(ProcFile::TaskSchedstat(_))));
        for wrong in ["", "/proc", "/proc/12", "/proc/12/stat", "schedstat"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("expected one of /proc/schedstat, "), "{error}");
        }
    }
}
