//! The guest's output, and the recording made from it.

use crate::trace::{States, figures};
use observe::TaskFigures;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What the kernel itself reports about one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub utime_us: u64,
    pub stime_us: u64,
    /// se.nr_migrations of its /proc/PID/sched.
    pub nr_migrations: u64,
}

pub struct Recorded {
    /// `6.12.117+deb12-amd64`
    pub version: String,
    pub tasks: BTreeMap<String, TaskFigures>,
    pub usage: BTreeMap<String, Usage>,
    /// For each group with a quota: path, nr_periods, nr_throttled.
    pub groups: Vec<(String, u64, u64)>,
}

/// Splits the guest's output into parts that begin with `=== file TAG` or `=== task NAME ...`.
///
/// # Errors
/// A part that is missing.
pub fn read(raw: &str, names: &[String], nr_cpus: usize) -> Result<Recorded, String> {
    let mut parts = raw.split("=== ").map(|part| part.split_once('\n').unwrap_or((part, "")));
    let (mut version, mut trace, mut usage, mut groups) = (None, None, BTreeMap::new(), Vec::new());
    for (head, body) in &mut parts {
        match head.split(' ').collect::<Vec<_>>()[..] {
            ["file", "version"] => version = body.split(' ').nth(2).map(str::to_string),
            ["file", "trace"] => trace = Some(body),
            ["file", tag] => {
                if let Some(path) = tag.strip_prefix("cpu.stat:") {
                    groups.push((path.to_string(), count(body, "nr_periods")?, count(body, "nr_throttled")?));
                }
            }
            ["task", name, utime_us, stime_us, ..] => {
                let number = |text: &str| text.parse().map_err(|_| format!("found {head}; expected microseconds"));
                let nr_migrations = migrations(body);
                let of = Usage { utime_us: number(utime_us)?, stime_us: number(stime_us)?, nr_migrations };
                usage.insert(name.to_string(), of);
            }
            _ => {}
        }
    }
    let missing = |what: &str| format!("the guest sent no {what}");
    let (trace, version) = (trace.ok_or_else(|| missing("trace"))?, version.ok_or_else(|| missing("version"))?);
    let tasks = figures(trace, States::of(&version), names, nr_cpus)?;
    if let Some(name) = names.iter().find(|name| !tasks.contains_key(*name)) {
        return Err(format!("the task {name} is not in the trace"));
    }
    Ok(Recorded { version, tasks, usage, groups })
}

/// `nr_periods 52`
fn count(stat: &str, name: &str) -> Result<u64, String> {
    let found = stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    found.ok_or_else(|| format!("cpu.stat without {name}"))
}

/// `se.nr_migrations    :    3`
fn migrations(sched: &str) -> u64 {
    let line = sched.lines().find(|line| line.starts_with("se.nr_migrations"));
    line.and_then(|line| line.rsplit_once(':')?.1.trim().parse().ok()).unwrap_or_default()
}

/// The recording in the form that `fairground fidelity` reads.
pub fn written(recorded: &Recorded, command_line: &str) -> String {
    let mut text = format!("# Linux {}; {command_line}\n", recorded.version);
    text.push_str(&lab::fidelity::header());
    text.pop();
    text.push_str(" utime_ms stime_ms nr_migrations\n");
    for (pid, (name, figures)) in recorded.tasks.iter().enumerate() {
        let usage = recorded.usage.get(name).copied().unwrap_or_default();
        let ms = |us: u64| us as f64 / 1e3;
        let line = lab::fidelity::line(pid + 1, name, figures);
        let _ = writeln!(text, "{line} {} {} {}", ms(usage.utime_us), ms(usage.stime_us), usage.nr_migrations);
    }
    for (path, periods, throttled) in &recorded.groups {
        let _ = writeln!(text, "group {path} nr_periods {periods} nr_throttled {throttled}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &str = "=== task hog0 7965000 12000 3 570\nhog0 (70, #threads: 1)\nse.nr_migrations        :         4\n\
=== file version\nLinux version 6.12.117+deb12-amd64 (x) #1\n=== file cpu.stat:/g\nusage_usec 9\nnr_periods 52\nnr_throttled 50\n\
=== file trace\n          <idle>-0       [001] d..2.     5.000150: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
prev_state=R ==> next_comm=hog0 next_pid=70 next_prio=120\n            hog0-70      [001] d..2.     5.004150: sched_switch: \
prev_comm=hog0 prev_pid=70 prev_prio=120 prev_state=R ==> next_comm=swapper/1 next_pid=0 next_prio=120\n=== end\n";

    #[test]
    fn what_came_becomes_a_recording() {
        let recorded = read(RAW, &["hog0".to_string()], 2).unwrap();
        let usage = Usage { utime_us: 7_965_000, stime_us: 12_000, nr_migrations: 4 };
        assert_eq!((recorded.version.as_str(), recorded.usage["hog0"]), ("6.12.117+deb12-amd64", usage));
        assert_eq!(recorded.groups, [("/g".to_string(), 52, 50)]);
        let text = written(&recorded, "x=1");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "# Linux 6.12.117+deb12-amd64; x=1");
        assert!(lines[1].starts_with("pid comm wakeups ") && lines[1].ends_with(" utime_ms stime_ms nr_migrations"));
        assert!(
            lines[2].starts_with("1 hog0 0 0 0 1 4 1 0 4,4,4 ") && lines[2].ends_with(" 7965 12 4"),
            "{}",
            lines[2]
        );
        assert_eq!(lines[3], "group /g nr_periods 52 nr_throttled 50");
        assert!(read(RAW, &["other".to_string()], 2).err().is_some_and(|it| it.contains("other is not in the trace")));
        assert!(read("=== end\n", &[], 2).err().is_some_and(|it| it.contains("no trace")));
    }
}
