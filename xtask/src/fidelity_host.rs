//! `cargo xtask fidelity-host`: this computer, calibrated, simulated and measured. Prints how far the predictions are off; such computers
//! are shared and noisy, so it fails on a missing figure only.

use std::path::Path;
use std::process::Command;

/// Per cent within which a prediction is as good as it should be, and beyond which it would not be believed.
const GOAL: f64 = 10.0;
const GATE: f64 = 25.0;
/// pipetest's rows of which there is something to say: the others lie between.
const ROWS_OF_PIPETEST: [&str; 3] = ["Min", "2nd-qrtle", "Mean"];

/// How much of it.
struct Form {
    calibrate: &'static [&'static str],
    workloads: [&'static str; 2],
    iterations: &'static str,
    rows: usize,
}

const FULL: Form = Form {
    calibrate: &[],
    workloads: ["pipetest:batches=120,loops=1000", "hackbench-pipes:groups=1+2+3+4+5+6+7+8,loops=200"],
    iterations: "5",
    rows: ROWS_OF_PIPETEST.len() + 8,
};
const SHORT: Form = Form {
    calibrate: &["--quick"],
    workloads: ["pipetest:batches=20,loops=500", "hackbench-pipes:groups=1+4,loops=50"],
    iterations: "3",
    rows: ROWS_OF_PIPETEST.len() + 2,
};

pub fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let form = match arguments {
        [] => FULL,
        ["--short"] => SHORT,
        other => return Err(format!("found {other:?}; expected nothing, or --short")),
    };
    let folder = root.join("results").join("fidelity-host");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let place = |name: &str| folder.join(name).display().to_string();
    let (machine, measured) = (place("this.toml"), place("measured"));
    let mut calibrate = vec!["calibrate", "--out", &machine];
    calibrate.extend(form.calibrate);
    let calibrated = fairground(root, &calibrate)?;
    let kernel = kernel(&calibrated).ok_or("calibrate did not say which kernel it simulated")?;
    let mut measure = vec!["measure", "--iterations", form.iterations, "--out", &measured, "--format", "json"];
    measure.extend(form.workloads);
    fairground(root, &measure)?;
    let (arm, out) = (format!("predicted={kernel}"), place("simulated"));
    let mut compare = vec!["compare", "--machine", &machine, "--arm", &arm, "--measured", &measured, "--out", &out];
    form.workloads.iter().for_each(|workload| compare.extend(["--workload", workload]));
    compare.extend(["--iterations", form.iterations, "--quiet"]);
    let compared = fairground(root, &compare)?;
    let table = table(&compared);
    println!("{}", calibrated.trim_end());
    println!("\nsimulated as {kernel}, calibrated without pipetest and hackbench; goal {GOAL} %, gate {GATE} %");
    table.iter().for_each(|row| println!("{}", row.text));
    let figures = table.iter().filter(|row| row.difference.is_some()).count();
    if figures < form.rows {
        return Err(format!("{figures} of {} figures are there", form.rows));
    }
    let within = |limit: f64| table.iter().filter(|row| row.difference.is_some_and(|it| it.abs() <= limit)).count();
    println!("{} of {figures} within {GOAL} %, {} within {GATE} %", within(GOAL), within(GATE));
    Ok(())
}

fn fairground(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let said = Command::new("cargo")
        .args(["run", "--release", "--quiet", "-p", "cli", "--"])
        .args(arguments)
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    match said.status.success() {
        true => Ok(String::from_utf8_lossy(&said.stdout).into_owned()),
        false => Err(format!("fairground {} ended with {}", arguments.join(" "), said.status)),
    }
}

/// The kernel that `calibrate` says it simulated, with its settings: `(as v6.12,preempt=full)`.
fn kernel(calibrated: &str) -> Option<String> {
    let (_, rest) = calibrated.split_once("(as ")?;
    Some(rest.split_once(')')?.0.to_string())
}

struct Row {
    text: String,
    /// In per cent; the head has none.
    difference: Option<f64>,
}

/// The rows below "predicted against measured" that are worth a line, with what is to be thought of each.
fn table(compared: &str) -> Vec<Row> {
    let below = compared.lines().skip_while(|line| !line.starts_with("predicted against measured"));
    let mut rows = Vec::new();
    for line in below.filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "pipetest" && !ROWS_OF_PIPETEST.contains(&words[1]) {
            continue;
        }
        let difference = words.last().and_then(|word| word.strip_suffix('%')?.parse::<f64>().ok());
        // Others only ever make a run longer: the least measured iteration is the least disturbed one.
        let least = of_least(&words).map_or(String::new(), |off| format!("  {off:+.1}% of the least"));
        let verdict = match difference.map(f64::abs) {
            Some(off) if off <= GOAL => "  goal met",
            Some(off) if off <= GATE => "  within the gate",
            Some(_) => "  beyond the gate",
            None => "",
        };
        rows.push(Row { text: format!("{line}{least}{verdict}"), difference });
    }
    rows
}

/// In per cent, from a row's words: `... LEAST .. GREATEST (N) PREDICTED DIFFERENCE%`.
fn of_least(words: &[&str]) -> Option<f64> {
    let dots = words.iter().position(|word| *word == "..")?;
    let least: f64 = words.get(dots.checked_sub(1)?)?.parse().ok()?;
    let predicted: f64 = words.get(words.len().checked_sub(2)?)?.parse().ok()?;
    (least > 0.0).then(|| (predicted / least - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPARED: &str = "\
machine  this: 2 CPUs

predicted against measured (A CPU; there)
row                              measured         least .. greatest     predicted difference
pipetest Min (us per loop)         5.9388      4.4092 .. 8.9331 (3)        5.4365      -8.5%
pipetest Max-90% (us per loop)    10.6347     4.5898 .. 22.6254 (3)        2.4381     -77.1%
hackbench-pipes 1 (s)              0.0556      0.0459 .. 0.0616 (3)        0.0459     -17.4%
hackbench-pipes 2 (s)              0.0823      0.0616 .. 0.0995 (3)        0.2107    +156.0%
";

    #[test]
    fn rows_are_judged() {
        let rows = table(COMPARED);
        assert_eq!(
            rows.iter().map(|row| row.difference).collect::<Vec<_>>(),
            [None, None, Some(-8.5), Some(-17.4), Some(156.0)]
        );
        let ends = [(2, "goal met"), (3, "within the gate"), (4, "beyond the gate")];
        assert!(ends.iter().all(|&(row, end)| rows[row].text.ends_with(end)));
        assert!(rows[3].text.contains("+0.0% of the least"), "{}", rows[3].text);
        assert!(table("nothing").is_empty());
    }

    #[test]
    fn the_kernel_is_the_one_that_was_calibrated_for() {
        assert_eq!(kernel("x\nsimulated   measured  (as v6.12)\n").as_deref(), Some("v6.12"));
        assert_eq!(kernel("nothing"), None);
    }
}
