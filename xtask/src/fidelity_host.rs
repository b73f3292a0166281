//! `cargo xtask fidelity-host`: calibrates, simulates and measures this computer, and prints how far the predictions
//! are off. Such computers are shared and noisy, so it fails only if a figure is missing.
//!
//! The speed of such a computer changes by the minute, so calibration and measurement alternate. A round calibrates
//! briefly and runs every benchmark once, and its runs are predicted from its own calibration. The rules that turn
//! rounds into a figure are fixed here, whatever they yield:
//!
//! - what was measured is the lower quartile of the rounds, and of pipetest's batches in a round, as every figure of a calibration is
//!   that of its bursts: what disturbs makes a run longer;
//! - what is predicted is the median of the rounds' predictions;
//! - rounds in which others used more than 15 % of the CPUs are left out where three quieter ones are left;
//! - the host's own spread stands beside both, and where the two ranges overlap a difference beyond the gate is called noise, not
//!   agreement;
//! - pipetest's pair either shares a CPU or has two, which is the scheduler's choice and not a price: both are measured bound and
//!   predicted bound, and of the batches that ran anywhere those count that were in the state that the simulation is in.

mod figures;

use figures::{Figure, Round, Verdict, between, quartile};
use std::path::{Path, PathBuf};
use std::process::Command;

/// pipetest anywhere, on one CPU, and on two.
const BOUND: [&str; 3] = ["bind=0", "bind=1", "bind=2"];

/// The per cent of the CPUs' time that others may use before a run for its round to count, and the fewest rounds that
/// must remain.
const QUIET: f64 = 15.0;
const ENOUGH: usize = 3;

/// How much is run.
struct Form {
    rounds: usize,
    pipetest: &'static str,
    hackbench: &'static str,
    groups: usize,
}

const FULL: Form = Form {
    rounds: 7,
    pipetest: "pipetest:batches=60,loops=500",
    hackbench: "hackbench-pipes:groups=1+2+3+4+5+6+7+8,loops=200",
    groups: 8,
};
const SHORT: Form = Form {
    rounds: 2,
    pipetest: "pipetest:batches=10,loops=200",
    hackbench: "hackbench-pipes:groups=1+4,loops=50",
    groups: 2,
};

impl Form {
    /// hackbench, then pipetest in the variants of `BOUND`; with one CPU there is no pair on two.
    fn workloads(&self, cpus: usize) -> Vec<String> {
        let pairs = BOUND.iter().take(1 + cpus).map(|bound| format!("{},{bound}", self.pipetest));
        [self.hackbench.to_string()].into_iter().chain(pairs).collect()
    }

    /// The number of figures that must be present. Which state an unbound pair takes is no figure.
    fn figures(&self, cpus: usize) -> usize {
        (BOUND.len() - 1).min(cpus) + self.groups
    }
}

pub fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let form = match arguments {
        [] => FULL,
        ["--short"] => SHORT,
        other => return Err(format!("found {other:?}; expected nothing, or --short")),
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let workloads = form.workloads(cpus);
    let folder = root.join("results").join("fidelity-host");
    let _ = std::fs::remove_dir_all(&folder);
    let places: Vec<PathBuf> = (1..=form.rounds).map(|round| folder.join(format!("round-{round}"))).collect();
    // First comes everything that needs the computer itself, then what only needs its time.
    let observed = places.iter().map(|place| observe(root, &workloads, place)).collect::<Result<Vec<_>, _>>()?;
    let others: Vec<f64> = observed.iter().map(|round| round.others).collect();
    let counted = counted(&others);
    let mut rounds = Vec::new();
    for &round in &counted {
        rounds.push(predict(root, &workloads, &places[round], &observed[round].calibrated)?);
    }
    let figures = figures::figures(&rounds);
    let percent: Vec<String> = others.iter().map(|others| format!("{others:.0}")).collect();
    let calibrated: Vec<&str> = counted.iter().map(|&round| observed[round].calibrated.as_str()).collect();
    println!("others used up to {} % of the CPUs in the rounds; {} of them count", percent.join(", "), counted.len());
    println!("{}", report(&calibrated, &rounds, &figures));
    let found = figures.iter().filter(|figure| figure.is_needed()).count();
    if found < form.figures(cpus) {
        return Err(format!("{found} of {} figures are there", form.figures(cpus)));
    }
    Ok(())
}

/// The quiet rounds; all rounds if there are too few quiet ones.
fn counted(others: &[f64]) -> Vec<usize> {
    let quiet: Vec<usize> = (0..others.len()).filter(|&round| others[round] <= QUIET).collect();
    if quiet.len() >= ENOUGH { quiet } else { (0..others.len()).collect() }
}

/// One round on this computer.
struct Observed {
    /// The output of `calibrate`.
    calibrated: String,
    /// The most that others used of the CPUs' time just before a run, in per cent.
    others: f64,
}

fn observe(root: &Path, workloads: &[String], place: &Path) -> Result<Observed, String> {
    std::fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let (machine, measured) = (inside(place, "this.toml"), inside(place, "measured"));
    let calibrated = fairground(root, &["calibrate", "--quick", "--out", &machine])?;
    let mut measure = vec!["measure", "--iterations", "1", "--out", &measured];
    measure.extend(workloads.iter().map(String::as_str));
    let said = fairground(root, &measure)?;
    Ok(Observed { calibrated, others: others(&said) })
}

/// Parses `others used up to 1.2% of the CPUs before a run`; 100 per cent if `measure` could not tell.
fn others(measured: &str) -> f64 {
    let percent = measured.split_once("others used up to ").and_then(|(_, rest)| rest.split_once('%'));
    percent.and_then(|(percent, _)| percent.parse().ok()).unwrap_or(100.0)
}

/// The simulation's prediction of that round, next to its measurements.
fn predict(root: &Path, workloads: &[String], place: &Path, calibrated: &str) -> Result<Round, String> {
    let kernel = kernel(calibrated).ok_or("calibrate did not say which kernel it simulated")?;
    let (machine, measured) = (inside(place, "this.toml"), inside(place, "measured"));
    let arm = format!("predicted={kernel}");
    let mut compared = Vec::new();
    for (number, workload) in workloads.iter().enumerate() {
        let out = inside(place, &format!("simulated-{number}"));
        let mut compare = vec!["compare", "--machine", &machine, "--arm", &arm, "--measured", &measured];
        compare.extend(["--workload", workload, "--out", &out, "--iterations", "1", "--quiet"]);
        compared.push(fairground(root, &compare)?);
    }
    let batches = batches(&place.join("measured").join("measured"), BOUND[0])?;
    Ok(Round::of(&compared, batches, border(calibrated)))
}

/// The border between pipetest's states, in microseconds: the geometric mean of a round of two threads on one CPU and
/// on the nearest two, by this calibration. With one CPU there is one state.
fn border(calibrated: &str) -> f64 {
    let mut lines = calibrated.lines().skip(1).take_while(|line| !line.is_empty());
    let mut pair = |same: bool| {
        let line = lines.find(|line| line.starts_with("futex_pair.") && line.starts_with("futex_pair.same") == same)?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    pair(true).zip(pair(false)).map_or(f64::INFINITY, |(same, apart)| (same * apart).sqrt() / 1e3)
}

fn inside(place: &Path, name: &str) -> String {
    place.join(name).display().to_string()
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

/// The kernel that `calibrate` says it simulated, with settings: `(as v6.12,preempt=full)`.
fn kernel(calibrated: &str) -> Option<String> {
    let (_, rest) = calibrated.split_once("(as ")?;
    Some(rest.split_once(')')?.0.to_string())
}

/// Microseconds per loop of every batch of the pair with this binding, from the record that `measure` stored.
fn batches(records: &Path, bound: &str) -> Result<Vec<f64>, String> {
    let entries = std::fs::read_dir(records).map_err(|error| format!("{}: {error}", records.display()))?;
    let folder = entries.filter_map(Result::ok).map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // `pipetest-batches-60-bind-0-loops-500`.
        name.starts_with("pipetest-") && name.contains(&bound.replace('=', "-"))
    });
    let record = folder.ok_or_else(|| format!("{}: no record of {bound}", records.display()))?.join("0000.json");
    let text = std::fs::read_to_string(&record).map_err(|error| format!("{}: {error}", record.display()))?;
    let picoseconds = text.split_once("\"samples\":[[").and_then(|(_, rest)| rest.split_once(']'));
    let (picoseconds, _) = picoseconds.ok_or_else(|| format!("{}: no samples", record.display()))?;
    let number = |word: &str| word.trim().parse::<f64>().map(|picoseconds| picoseconds / 1e6);
    picoseconds
        .split(',')
        .map(number)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{}: {error}", record.display()))
}

fn report(calibrated: &[&str], rounds: &[Round], figures: &[Figure]) -> String {
    let mut lines = vec![prices(calibrated)];
    let kernels: Vec<String> = calibrated.iter().filter_map(|round| kernel(round)).collect();
    lines.push(format!(
        "\nsimulated as {}, calibrated without pipetest and hackbench; {} rounds; goal {} %, gate {} %",
        kernels.first().map_or("nothing", String::as_str),
        rounds.len(),
        figures::GOAL,
        figures::GATE
    ));
    lines.push(Figure::head());
    lines.extend(figures.iter().map(Figure::to_string));
    let shared: Vec<String> = rounds.iter().map(|round| format!("{:.0}", round.shared() * 100.0)).collect();
    lines
        .push(format!("a pair that may run anywhere shared a CPU in {} % of its batches, by round", shared.join(", ")));
    let count = |of: &dyn Fn(Verdict) -> bool| figures.iter().filter(|figure| of(figure.verdict())).count();
    lines.push(format!(
        "{} of {} within {} %, {} within {} %, {} beyond but within the host's own spread, {} beyond it",
        count(&|it| it == Verdict::Goal),
        figures.len(),
        figures::GOAL,
        count(&|it| matches!(it, Verdict::Goal | Verdict::Gate)),
        figures::GATE,
        count(&|it| it == Verdict::Noise),
        count(&|it| it == Verdict::Beyond),
    ));
    lines.join("\n")
}

/// The results of the rounds' calibrations, from the tables that they printed: they show how far the computer itself
/// varied.
fn prices(calibrated: &[&str]) -> String {
    let value = |round: &str, name: &str| {
        let line = round.lines().find(|line| line.split_whitespace().next() == Some(name))?;
        let mut words = line.split_whitespace().skip(1);
        Some((words.next()?.parse::<f64>().ok()?, line.split_whitespace().last()?.to_string()))
    };
    let names =
        calibrated.first().into_iter().flat_map(|first| first.lines().skip(1).take_while(|line| !line.is_empty()));
    let mut lines =
        vec![format!("{:<20}{:>14}{:>14}{:>14}  unit, over the rounds", "calibrated", "least", "median", "greatest")];
    for name in names.filter_map(|line| line.split_whitespace().next()) {
        let found: Vec<(f64, String)> = calibrated.iter().filter_map(|round| value(round, name)).collect();
        let values: Vec<f64> = found.iter().map(|it| it.0).collect();
        let Some((_, unit)) = found.first() else { continue };
        let (low, high) = between(&values);
        lines.push(format!("{name:<20}{low:>14.3}{:>14.3}{high:>14.3}  {unit}", quartile(&values, 0.5)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_the_one_that_was_calibrated_for() {
        assert_eq!(kernel("x\nsimulated   measured  (as v6.12)\n").as_deref(), Some("v6.12"));
        assert_eq!(kernel("nothing"), None);
    }

    #[test]
    fn the_hosts_own_spread_is_shown() {
        let round = |pipe: f64| format!("measured value least most unit\npipe_self {pipe} 1 9 ns\n\nsimulated\n");
        let rounds = [400.0, 600.0, 500.0].map(round);
        let text = prices(&rounds.each_ref().map(String::as_str));
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["pipe_self", "400.000", "500.000", "600.000", "ns"]);
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn loud_rounds_are_left_out_where_enough_are_quiet() {
        assert_eq!(counted(&[1.0, 90.0, 15.0, 14.0]), [0, 2, 3]);
        assert_eq!(counted(&[1.0, 90.0, 15.1]), [0, 1, 2]);
        assert_eq!(
            others("runs     1 iteration on the real kernel; others used up to 1.2% of the CPUs before a run"),
            1.2
        );
        assert_eq!(others("others used up to an unknown share of the CPUs"), 100.0);
    }

    #[test]
    fn every_workload_is_measured_bound_and_unbound() {
        assert_eq!((SHORT.workloads(1).len(), SHORT.workloads(8).len()), (3, 4));
        assert_eq!((FULL.figures(2), SHORT.figures(2), SHORT.figures(1)), (10, 4, 3));
    }

    #[test]
    fn the_border_lies_between_the_calibrated_states() {
        let text =
            "measured value\nfutex_pair.same 4000.0 1 9 ns\nfutex_pair.smt 16000.0 1 9 ns\nfutex_pair.llc 9 1 9 ns\n\n";
        assert_eq!(border(text), 8.0);
        assert_eq!(border("measured value\nfutex_pair.same 4000.0 1 9 ns\n\n"), f64::INFINITY);
    }
}
