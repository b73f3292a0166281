//! The picture of the recently-used-CPU study: what one client of dbench4 does in 20 milliseconds, before and after the
//! change, and where its time goes.

use crate::tidy::read;
use std::path::Path;
use std::process::Command;

/// The picture's file.
const FILE: &str = "docs/studies/recent-used-cpu-picture.txt";
const MACHINE: &str = "skylake-uma-8";
const WORKLOAD: &str = "dbench4:clients=1,runtime=1";
/// The arms of `experiments/recent-used-cpu.toml`.
const BEFORE: &str = "v4.15,wake.idle_previous=kept,wake.idle_waker=shared-cache,cpufreq.driver=intel_pstate";
const AFTER: &str = ",wake.recent_used_cpu=by-waker";
/// Characters of a line of frequencies that are kept: the CPU, its mean and its number of changes, but not the share of
/// time at each.
const FREQUENCIES: usize = 32;

/// Draws the picture again.
pub fn write(root: &Path) -> Result<(), String> {
    std::fs::write(root.join(FILE), text(root)?).map_err(|error| format!("{FILE}: {error}"))
}

/// Fails if the file differs from what is drawn today.
pub fn check(root: &Path) -> Result<(), String> {
    match text(root)? == read(&root.join(FILE))? {
        true => Ok(()),
        false => Err(format!("{FILE} has changed; if that is meant: cargo xtask picture, and say why in the commit")),
    }
}

fn text(root: &Path) -> Result<String, String> {
    let mut parts = Vec::new();
    for (title, arm) in [("before", BEFORE.to_string()), ("after", format!("{BEFORE}{AFTER}"))] {
        let range = ["--format", "gantt", "--from", "500", "--to", "520", "--out", "-"];
        let gantt = fairground(root, "trace", &arm, &range)?;
        let out = std::env::temp_dir().join(format!("fairground-picture-{title}-{}", std::process::id()));
        let folder = out.display().to_string();
        let run = fairground(root, "run", &arm, &["--iterations", "1", "--quiet", "--out", &folder])?;
        let _ = std::fs::remove_dir_all(&out);
        parts.push(format!("{title}: dbench4 on XFS, one client\n\n{}\n\n{}\n", gantt.trim_end(), extract(&run)));
    }
    Ok(parts.join("\n"))
}

fn fairground(root: &Path, command: &str, arm: &str, rest: &[&str]) -> Result<String, String> {
    let printed = Command::new("cargo")
        .args(["run", "--release", "--quiet", "-p", "cli", "--", command])
        .args(["--machine", MACHINE, "--workload", WORKLOAD, "--arm", arm])
        .args(rest)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    match printed.status.success() {
        true => Ok(String::from_utf8_lossy(&printed.stdout).to_string()),
        false => Err(format!("fairground {command}: {}", String::from_utf8_lossy(&printed.stderr))),
    }
}

/// From the output of `run`: how busy each CPU was, the three pairs that wake each other most, and each core's mean
/// frequency.
fn extract(run: &str) -> String {
    let lines: Vec<&str> = run.lines().collect();
    let after = |begin: &str, count: usize| -> Vec<String> {
        let at = lines.iter().position(|line| line.starts_with(begin)).unwrap_or(lines.len());
        lines[at..].iter().take(count).map(|line| line.trim_end().to_string()).collect()
    };
    let short = |line: String| line.chars().take(FREQUENCIES).collect::<String>();
    let frequencies: Vec<String> =
        after("CPUs        busy MHz", 20).into_iter().take_while(|line| !line.is_empty()).map(short).collect();
    let parts = [after("CPUs busy,", 2), after("Tasks that wake each other most", 5), frequencies];
    parts.map(|part| part.join("\n")).join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_their_first_words() {
        let run = "machine  m\n\nCPUs busy, % of the time: mean 8.9\ncpu0  2.5\n\nTasks that wake each other most; CPUs\npair\n\
                   a and b\nc and d\ne and f\ng and h\n\nidle\n\nCPUs        busy MHz     changes      800     1100\n\
                   0               1105          21      0.5     93.5\n\nend\n";
        let expected = "CPUs busy, % of the time: mean 8.9\ncpu0  2.5\n\nTasks that wake each other most; CPUs\npair\n\
                        a and b\nc and d\ne and f\n\nCPUs        busy MHz     changes\n0               1105          21";
        assert_eq!(extract(run), expected);
    }
}
