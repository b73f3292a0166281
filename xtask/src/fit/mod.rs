//! `cargo xtask fit [MACHINE]`: finds the free prices of a machine with which the simulation prints what was published
//! about it.
//!
//! Each machine has experiments `experiments/fit-MACHINE*.toml` with published *before* columns, shortened runs, and a
//! single arm: the kernel before the change. No other arm is ever run here, so the fit cannot know the change's effect.
//! A few factors are free; each scales a family of prices within a stated range ([`FREE`]). The method of Gauss and
//! Newton moves them to the minimum of this error: for each table the mean square of the logarithm of simulated over
//! published, summed over all tables. Runs have fixed seeds, so the same sources give the same result.
//!
//! Prints every row before and after, and what to write into the machine file; with `--write` it writes that.

mod machine_file;
mod solve;

use machine_file::MachineFile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Prices that are scaled together. The family decides what they are: cycles of an instruction, a share, or a time.
struct Factor {
    name: &'static str,
    /// `section.price`, or `idle.STATE.wake`.
    prices: &'static [&'static str],
    /// The range of the first of them.
    range: (f64, f64),
    /// The unit of the others if the machine file's base gives them: parts of the first.
    unit: &'static str,
}

const fn factor(name: &'static str, prices: &'static [&'static str], unit: &'static str, range: (f64, f64)) -> Factor {
    Factor { name, prices, range, unit }
}

const CYCLES: &str = "cycles/instruction";

/// The factors that may be fitted on a machine.
struct Fit {
    machine: &'static str,
    /// Its experiments, by what follows `fit-MACHINE` in their names.
    parts: &'static [&'static str],
    /// The word for the fitted data in the machine file's sources.
    source: &'static str,
    free: &'static [Factor],
}

/// One line for each machine that has published columns.
const FREE: &[Fit] = &[
    Fit {
        machine: "xeon-e5-2670v3-2s",
        parts: &["", "-hackbench"],
        source: "cargo xtask fit, to the before columns of the schedstats study: netperf-tcp, tbench4, hackbench-pipes and pipetest",
        free: &[
            factor(
                "scheduler",
                &["cycles_per_instruction.paths", "cycles_per_instruction.idle_loop"],
                CYCLES,
                (0.3, 3.0),
            ),
            factor("calls and pipes", &["cycles_per_instruction.os"], CYCLES, (0.3, 3.0)),
            factor("network", &["cycles_per_instruction.net"], CYCLES, (0.3, 3.0)),
            factor("hyperthreads", &["smt.speed"], "ratio", (0.5, 0.75)),
            factor("leaving C1", &["idle.C1.wake"], "ns", (150.0, 1_500.0)),
        ],
    },
    Fit {
        machine: "core-i7-3770",
        parts: &[""],
        source: "cargo xtask fit, to the tbench4 before column of the schedstats study, one factor for all kernel code",
        free: &[
            factor(
                "kernel",
                &[
                    "cycles_per_instruction.paths",
                    "cycles_per_instruction.os",
                    "cycles_per_instruction.net",
                    "cycles_per_instruction.idle_loop",
                ],
                CYCLES,
                (0.3, 3.0),
            ),
            factor("hyperthreads", &["smt.speed"], "ratio", (0.5, 0.75)),
            factor("leaving C1", &["idle.C1.wake"], "ns", (150.0, 1_500.0)),
        ],
    },
    Fit {
        machine: "skylake-uma-8",
        parts: &[""],
        source: "cargo xtask fit, to the before column of dbench-xfs",
        free: &[
            factor("file systems", &["cycles_per_instruction.fs"], CYCLES, (0.5, 3.0)),
            factor("disk, writes", &["disk.write"], "us", (10.0, 500.0)),
            factor("disk, flushes", &["disk.flush"], "us", (10.0, 5_000.0)),
            factor(
                "leaving deep states",
                &["idle.C6.wake", "idle.C3.wake", "idle.C7s.wake", "idle.C8.wake"],
                "ns",
                (5_000.0, 85_000.0),
            ),
            factor("hardware's target", &["frequency.hwp_target"], "ratio", (0.1, 0.95)),
        ],
    },
    Fit {
        machine: "ivybridge-ex-16s",
        parts: &["", "-curve"],
        source: "cargo xtask fit, to the load_avg study's columns before: the tick's profile, Max-jOPs and Critical-jOPs",
        free: &[
            factor("across the crossbar", &["line.remote_2"], "ns", (400.0, 800.0)),
            factor("a message's work", &["java.task"], "cycles", (15_000.0, 150_000.0)),
            factor("young generation", &["java.young"], "MiB", (1_024.0, 65_536.0)),
        ],
    },
];

/// Rounds of Gauss and Newton's method. Each takes one evaluation more than there are factors.
const ROUNDS: usize = 2;
/// The factor by which a price is moved to see the effect, and the largest factor for one round.
const STEP: f64 = 1.08;
const FARTHEST: f64 = 1.5;
/// The fit ends after a round that gains less than this share.
const ENOUGH: f64 = 0.02;

pub fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let write = arguments.contains(&"--write");
    let names: Vec<&&str> = arguments.iter().filter(|word| **word != "--write").collect();
    let chosen: Vec<&Fit> = match names[..] {
        [] => FREE.iter().collect(),
        [name] => vec![FREE.iter().find(|fit| fit.machine == *name).ok_or_else(|| unknown(name))?],
        _ => return Err(format!("found {names:?}; expected one machine at most, and --write")),
    };
    let built = Command::new("cargo").args(["build", "--release", "--quiet", "-p", "cli"]).current_dir(root).status();
    match built {
        Ok(status) if status.success() => {}
        other => return Err(format!("cargo build ended with {other:?}")),
    }
    for fit in chosen {
        one(root, fit, write)?;
    }
    Ok(())
}

fn unknown(name: &str) -> String {
    let known: Vec<&str> = FREE.iter().map(|fit| fit.machine).collect();
    format!("found the machine {name}; expected one with published columns: {}", known.join(", "))
}

fn one(root: &Path, fit: &Fit, write: bool) -> Result<(), String> {
    let path = root.join("machines").join(format!("{}.toml", fit.machine));
    let file = MachineFile::read(&path)?;
    let base = MachineFile::read(&root.join("machines/bases/linux-x86.toml"))?;
    let scene = Scene::new(root, fit, file, base)?;
    println!("{}: {} free, {}", fit.machine, fit.free.len(), fit.source);
    let begun = Instant::now();
    let mut evaluations = 0;
    let mut evaluate = |factors: &[f64], what: &str| {
        evaluations += 1;
        let rows = scene.rows(factors)?;
        eprintln!("  {evaluations:3} {:>5.0} s  error {:.4}  {what}", begun.elapsed().as_secs_f64(), error(&rows));
        Ok::<_, String>(rows)
    };
    let before = evaluate(&vec![1.0; fit.free.len()], "as it is")?;
    let (factors, after) = descend(&scene, before.clone(), &mut evaluate)?;
    report(&scene, &factors, &before, &after, begun.elapsed());
    if write {
        let mut file = scene.file.clone();
        for (price, value) in scene.prices(&factors) {
            file.set(price.name, value, price.unit, price.range, fit.source)?;
        }
        file.write(&path)?;
    }
    Ok(())
}

/// Moves the factors, in logarithms, to the least error. After each round it continues from the best point that the
/// round tried.
fn descend(
    scene: &Scene,
    mut rows: Vec<Row>,
    evaluate: &mut impl FnMut(&[f64], &str) -> Result<Vec<Row>, String>,
) -> Result<(Vec<f64>, Vec<Row>), String> {
    let mut factors = vec![1.0; scene.fit.free.len()];
    for round in 0..ROUNDS {
        let mut slopes = Vec::new();
        let mut tried: Vec<(Vec<f64>, Vec<Row>)> = Vec::new();
        for (number, factor) in scene.fit.free.iter().enumerate() {
            let mut moved = factors.clone();
            // Tries the direction that has room.
            let room = scene.clamp(number, factors[number] * STEP) > factors[number] * 1.01;
            moved[number] = scene.clamp(number, factors[number] * if room { STEP } else { 1.0 / STEP });
            let there = evaluate(&moved, &format!("{} times {:.3}", factor.name, moved[number]))?;
            let by = (moved[number] / factors[number]).ln();
            slopes
                .push(rows.iter().zip(&there).map(|(row, there)| (there.off() - row.off()) / by).collect::<Vec<f64>>());
            tried.push((moved, there));
        }
        let weights: Vec<f64> = rows.iter().map(|row| 1.0 / row.of_table as f64).collect();
        let offs: Vec<f64> = rows.iter().map(Row::off).collect();
        let bounds: Vec<(f64, f64)> = (0..factors.len()).map(|it| scene.room(it, factors[it])).collect();
        let moves = solve::least_squares(&slopes, &offs, &weights, &bounds);
        let before = error(&rows);
        // The whole step, or a half or a quarter of it where the error is not linear enough for that.
        for part in [1.0, 0.5, 0.25] {
            let there: Vec<f64> = factors.iter().zip(&moves).map(|(factor, by)| factor * (by * part).exp()).collect();
            let rows = evaluate(&there, &format!("round {} by {part}", round + 1))?;
            let better = error(&rows) < before;
            tried.push((there, rows));
            if better {
                break;
            }
        }
        let best =
            tried.into_iter().min_by(|a, b| error(&a.1).total_cmp(&error(&b.1))).expect("a round tries something");
        if error(&best.1) < before {
            (factors, rows) = best;
        }
        if error(&rows) > before * (1.0 - ENOUGH) {
            break;
        }
    }
    Ok((factors, rows))
}

/// A published figure and the simulated one.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    table: String,
    label: String,
    published: f64,
    simulated: f64,
    /// The number of rows in the table: together they count as one.
    of_table: usize,
}

impl Row {
    /// The error, as a logarithm.
    fn off(&self) -> f64 {
        (self.simulated / self.published).ln()
    }
}

fn error(rows: &[Row]) -> f64 {
    rows.iter().map(|row| row.off().powi(2) / row.of_table as f64).sum()
}

/// Everything that one fit works on.
struct Scene<'a> {
    root: &'a Path,
    fit: &'a Fit,
    file: MachineFile,
    /// The current value of each factor's first price, and the others as multiples of it.
    first: Vec<f64>,
    parts: Vec<Vec<f64>>,
    /// The experiments, and the published values of their rows.
    experiments: Vec<PathBuf>,
    published: BTreeMap<(String, String), f64>,
    program: PathBuf,
}

struct Price {
    name: &'static str,
    unit: &'static str,
    range: (f64, f64),
}

impl<'a> Scene<'a> {
    fn new(root: &'a Path, fit: &'a Fit, file: MachineFile, base: MachineFile) -> Result<Scene<'a>, String> {
        let name = |part: &&str| root.join("experiments").join(format!("fit-{}{part}.toml", fit.machine));
        let experiments: Vec<PathBuf> = fit.parts.iter().map(name).collect();
        let mut figures = BTreeMap::new();
        for experiment in &experiments {
            let text =
                std::fs::read_to_string(experiment).map_err(|error| format!("{}: {error}", experiment.display()))?;
            figures.extend(published(&text));
        }
        let value =
            |name: &str| file.value(name).or_else(|| base.value(name)).ok_or_else(|| format!("no price {name}"));
        let (mut first, mut parts) = (Vec::new(), Vec::new());
        for factor in fit.free {
            let one = value(factor.prices[0])?;
            first.push(one);
            parts.push(factor.prices.iter().map(|name| Ok(value(name)? / one)).collect::<Result<_, String>>()?);
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let program = target.join("release").join("fairground");
        Ok(Scene { root, fit, file, first, parts, experiments, published: figures, program })
    }

    /// Limits a factor to the range of its first price.
    fn clamp(&self, number: usize, factor: f64) -> f64 {
        let (low, high) = self.fit.free[number].range;
        (self.first[number] * factor).clamp(low, high) / self.first[number]
    }

    /// How far a factor may move in one round, in logarithms.
    fn room(&self, number: usize, factor: f64) -> (f64, f64) {
        let (low, high) = (self.clamp(number, factor / FARTHEST), self.clamp(number, factor * FARTHEST));
        ((low / factor).ln().min(0.0), (high / factor).ln().max(0.0))
    }

    /// The value of each price with these factors.
    fn prices(&self, factors: &[f64]) -> Vec<(Price, f64)> {
        let mut prices = Vec::new();
        for (number, factor) in self.fit.free.iter().enumerate() {
            for (name, part) in factor.prices.iter().zip(&self.parts[number]) {
                let value = rounded(self.first[number] * factors[number] * part);
                let range = (factor.range.0.min(value), factor.range.1.max(value));
                prices.push((Price { name, unit: factor.unit, range }, value));
            }
        }
        prices
    }

    /// Runs the experiments with these factors.
    fn rows(&self, factors: &[f64]) -> Result<Vec<Row>, String> {
        let folder = self.root.join("results").join("fit");
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let path = folder.join(format!("{}.toml", self.fit.machine));
        let mut file = self.file.clone();
        for (price, value) in self.prices(factors) {
            file.set(price.name, value, price.unit, price.range, "a trial of the fit")?;
        }
        file.write(&path)?;
        let mut rows = Vec::new();
        for experiment in &self.experiments {
            let said = Command::new(&self.program)
                .arg("run")
                .arg(experiment)
                .args(["--format", "csv", "--quiet", "--machine"])
                .arg(&path)
                .stderr(std::process::Stdio::inherit())
                .output()
                .map_err(|error| format!("{}: {error}", self.program.display()))?;
            if !said.status.success() {
                return Err(format!("fairground run {} ended with {}", experiment.display(), said.status));
            }
            rows.extend(simulated(&String::from_utf8_lossy(&said.stdout), &self.published));
        }
        match rows.len() == self.published.len() {
            true => Ok(rows),
            false => Err(format!("{} of {} published rows were simulated", rows.len(), self.published.len())),
        }
    }
}

/// Rounds to three digits, which is more than a fit can know.
fn rounded(value: f64) -> f64 {
    let digits = 10f64.powi(2 - value.abs().log10().floor() as i32);
    (value * digits).round() / digits
}

/// The published figures of an experiment file, by table and row. They come from the line `published = { source =
/// "...", ROW = FIGURE, ... }` below a workload's name or title, or a profile's. Of a profile's `[CHILDREN, SELF]` the
/// first counts.
fn published(text: &str) -> BTreeMap<(String, String), f64> {
    let (mut table, mut found) = (String::new(), BTreeMap::new());
    for line in text.lines() {
        let Some((key, value)) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else { continue };
        match key {
            "name" | "title" => table = value.trim_matches('"').to_string(),
            "published" => {
                let rows = value.trim_matches(['{', '}', ' ']).split(", ");
                let figures = rows.filter_map(|row| {
                    let (label, figure) = row.rsplit_once('=')?;
                    Some((label.trim().trim_matches('"').to_string(), figure.trim_matches([' ', '[']).parse().ok()?))
                });
                found.extend(figures.map(|(label, figure): (String, f64)| ((table.clone(), label), figure)));
            }
            _ => {}
        }
    }
    found
}

/// The published means, as `fairground run --format csv` printed them.
fn simulated(csv: &str, published: &BTreeMap<(String, String), f64>) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in csv.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let [table, _, _, _, _, label, _, "mean", _, value] = fields[..] else { continue };
        let (table, label) = (table.trim_matches('"').to_string(), label.trim_matches('"').to_string());
        let of_table = published.keys().filter(|(of, _)| *of == table).count();
        let Some(&figure) = published.get(&(table.clone(), label.clone())) else { continue };
        if let Ok(simulated) = value.parse() {
            rows.push(Row { table, label, published: figure, simulated, of_table });
        }
    }
    rows
}

fn report(scene: &Scene, factors: &[f64], before: &[Row], after: &[Row], took: Duration) {
    println!("\n{:<18}{:<14}{:>12}{:>12}{:>9}{:>12}{:>9}", "table", "row", "published", "before", "", "after", "");
    for (old, new) in before.iter().zip(after) {
        let per_cent = |row: &Row| format!("{:+.1}%", (row.simulated / row.published - 1.0) * 100.0);
        println!(
            "{:<18}{:<14}{:>12.4}{:>12.4}{:>9}{:>12.4}{:>9}",
            old.table,
            old.label,
            old.published,
            old.simulated,
            per_cent(old),
            new.simulated,
            per_cent(new)
        );
    }
    for (name, rows) in [("before", before), ("after", after)] {
        let within =
            |limit: f64| rows.iter().filter(|row| (row.simulated / row.published - 1.0).abs() <= limit).count();
        let (ten, quarter, all) = (within(0.1), within(0.25), rows.len());
        println!("{name}: {quarter} of {all} rows within 25%, {ten} within 10%, error {:.4}", error(rows));
    }
    println!("\nprices after {:.0} s:", took.as_secs_f64());
    for (price, value) in scene.prices(factors) {
        println!("  {:<40}{value:>8} {}", price.name, price.unit);
    }
}

#[cfg(test)]
mod tests;
