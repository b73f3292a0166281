//! The JSON document of a comparison: `--format json`, and what a result folder keeps. Its schema is
//! `docs/compare.schema.json` (JSON Schema 2020-12).
//!
//! Numbers are written with the fewest digits that read back as the same double, so equal results are equal bytes.

pub mod changes;
pub mod verdict;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::experiment::{Adaptive, Arm};
use crate::json::verdict::{Finding, Verdict};
use crate::mmtests::{Vintage, compared};
use crate::residency::RunResidency;
use crate::setup::KernelSetup;
use crate::statistics::interval::paired_interval;
use crate::statistics::{Better, Mean, maximum, minimum, sample_stddev, true_change};
use crate::tables::{Series, Table};

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The version of the program that measured.
    pub fairground: String,
    /// What the experiment says it is about; absent where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The machine, as its own loader describes it: an object.
    pub machine: Value,
    /// The seed of everything that is left to chance.
    pub seed: u64,
    /// The requested runs of each row and arm.
    pub iterations: u32,
    /// The rule for how many of them a row got, if its interval decided; absent if all rows got the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveResult>,
    /// Whether the cost model was on.
    pub costs: bool,
    /// In the order of the experiment; the first is the base.
    pub arms: Vec<ArmDefinition>,
    pub tables: Vec<TableResult>,
    /// What a kernel, or the benchmark, would have complained about; absent if nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<WarningResult>,
    /// The same rows measured on a real computer, if the comparison was given measurements: see [`crate::measured`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Value>,
    /// For `run`: how CPUs, packages and cores spent each run, and the energy it took; absent in a comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residency: Vec<RunResidency>,
    /// Engine events of all runs together.
    pub events: u64,
    /// CPU time of the host for all runs together. No other member may differ between two runs of one experiment.
    pub cpu_seconds: f64,
}

/// A warning, and in how many runs of each arm it came. Warnings that differ only in their moment are one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarningResult {
    /// With the moment in the first of these runs, if it has one.
    pub text: String,
    /// Whether it has the same moment in all of them, or none.
    pub same_moment: bool,
    /// Arms without it are absent; in the order of the experiment.
    pub arms: Vec<WarnedArm>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarnedArm {
    pub name: String,
    pub runs: usize,
}

/// The rule for how many iterations rows got: see [`Adaptive`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveResult {
    pub min: u32,
    pub max: u32,
    pub half_width: f64,
}

/// What an arm ran: its kernel, with all settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmDefinition {
    pub name: String,
    /// The kernel's name, before anything was set.
    pub kernel: String,
    /// CONFIG_HZ.
    pub hz: u32,
    /// The experiment's settings, in its words: `schedstats=enable`, `NO_SIS_PROP`.
    pub set: Vec<String>,
    /// Every behaviour that differs between kernels, as this arm has it.
    pub behaviours: BTreeMap<String, String>,
    /// Every sched_feature of the kernel, on or off.
    pub features: BTreeMap<String, bool>,
    /// Every tunable of the kernel, by its name in `/proc/sys` or below debugfs.
    pub sysctls: BTreeMap<String, u64>,
}

impl ArmDefinition {
    pub fn of(arm: &Arm) -> ArmDefinition {
        let KernelSetup { name: kernel, hz, behaviours, features, sysctls, .. } = KernelSetup::of(arm);
        ArmDefinition { name: arm.name.clone(), kernel, hz, set: arm.said.clone(), behaviours, features, sysctls }
    }
}

/// What was run: all of a document except the results.
#[derive(Clone, Debug)]
pub struct Subject {
    pub about: Option<String>,
    pub machine: Value,
    pub seed: u64,
    pub iterations: u32,
    pub adaptive: Option<Adaptive>,
    pub costs: bool,
    /// The vintage that decides the rows of tables of times.
    pub vintage: Vintage,
    pub arms: Vec<ArmDefinition>,
}

/// One workload over all arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableResult {
    /// The experiment's name for the table; absent if it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub workload: String,
    pub parameters: BTreeMap<String, Value>,
    /// `Amean`, `Hmean`, `several` or `value`: see [`Table::statistic`]. `mean` in the rows is the harmonic mean when
    /// this is `Hmean`, else the arithmetic one.
    pub statistic: String,
    /// Unit of samples, means, deviations and extremes.
    pub unit: String,
    pub better: Better,
    pub rows: Vec<RowResult>,
    /// The verdict on all rows together, which bounds the false discoveries among them.
    pub verdict: Verdict,
    /// What a real machine measured with the first arm's kernel, by row, if the experiment gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<BTreeMap<String, f64>>,
}

/// One operation, or one statistic of a Variabletime workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowResult {
    pub label: String,
    /// In the order of the experiment; the first is the base.
    pub arms: Vec<ArmResult>,
    /// One entry for every arm but the base.
    pub change: Vec<Change>,
}

/// One arm of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmResult {
    pub name: String,
    /// One sample per iteration: see [`crate::tables::Class`] for what it is. Sample i of every arm has the same seed.
    pub samples: Vec<f64>,
    /// Number of samples.
    pub n: usize,
    /// Mean of the samples, harmonic or arithmetic by the table's statistic; `None` (null) where it is invalid.
    pub mean: Option<f64>,
    /// Around the arithmetic mean, divided by n - 1; `None` (null) for one sample.
    pub stddev: Option<f64>,
    pub min: f64,
    pub max: f64,
}

/// An arm against the base: positive is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub arm: String,
    /// The change of the means; `None` (null) where one is invalid, or where the base's is 0 and the other is not.
    pub percent: Option<f64>,
    /// Bounds of the percent at 95% from the paired samples; `None` (null) for a single pair and where the base's mean is not
    /// positive.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Whether the interval excludes zero; never for a single pair. This is for the row alone; [`Change::finding`] is
    /// over all rows.
    pub significant: bool,
    /// P-value of "no change", two-sided, from the pairs; `None` (null) where there are no bounds.
    pub p: Option<f64>,
    /// What the row counts as in the table's verdict: see [`crate::json::verdict`].
    #[serde(rename = "verdict")]
    pub finding: Finding,
}

impl Document {
    /// Summarises `tables`. `generator()` makes a fresh source of uniform numbers in `0..bound`, always the same one
    /// (seed it with the experiment's seed): every row draws from the start of it, so no row's interval depends on the
    /// others.
    ///
    /// Panics when `machine` is not an object or `cpu_seconds` not finite.
    pub fn new<Draw: FnMut(u64) -> u64>(
        version: &str,
        subject: Subject,
        tables: &[Table],
        generator: impl Fn() -> Draw,
        events: u64,
        cpu_seconds: f64,
    ) -> Document {
        let Subject { about, machine, seed, iterations, adaptive, costs, vintage, arms } = subject;
        assert!(machine.is_object(), "the machine is an object");
        assert!(cpu_seconds.is_finite(), "CPU time is finite");
        let tables = tables.iter().map(|table| TableResult::new(table, vintage, &generator)).collect();
        let adaptive = adaptive.map(|Adaptive { min, max, half_width }| AdaptiveResult { min, max, half_width });
        let fairground = version.to_string();
        Document {
            fairground,
            about,
            machine,
            seed,
            iterations,
            adaptive,
            costs,
            arms,
            tables,
            warnings: Vec::new(),
            measured: None,
            residency: Vec::new(),
            events,
            cpu_seconds,
        }
    }

    /// As printed: indented by two, one newline at the end.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a document of plain values serialises");
        text.push('\n');
        text
    }
}

/// By how many per cent a simulated figure exceeds a real one.
pub fn level_percent(real: f64, simulated: f64) -> f64 {
    100.0 * simulated / real - 100.0
}

/// How many of the rows with a published figure come within so many per cent of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    pub rows: usize,
    pub within_10: usize,
    pub within_25: usize,
}

impl TableResult {
    /// See [`Document::new`].
    pub fn new<Draw: FnMut(u64) -> u64>(table: &Table, vintage: Vintage, generator: &impl Fn() -> Draw) -> TableResult {
        let row = |series: &Series| RowResult::new(series, table, generator);
        let mut rows: Vec<RowResult> = compared(table, vintage).iter().map(row).collect();
        let verdict = Verdict::of(table.title(), table.mean(), &mut rows);
        TableResult {
            name: table.name.clone(),
            workload: table.workload.clone(),
            parameters: table.parameters.clone(),
            statistic: table.statistic().to_string(),
            unit: table.unit.clone(),
            better: table.better,
            rows,
            verdict,
            published: table.published.as_ref().map(|published| published.rows.iter().cloned().collect()),
        }
    }

    /// The experiment's name for the table, else the workload's.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.workload)
    }

    /// How near the base's means come to the published ones; `None` if no row was published.
    pub fn near_published(&self) -> Option<Level> {
        let published = self.published.as_ref()?;
        let beside = self.rows.iter().filter_map(|row| Some((*published.get(&row.label)?, row.arms.first()?.mean?)));
        let off: Vec<f64> = beside.map(|(real, simulated)| level_percent(real, simulated).abs()).collect();
        let within = |limit: f64| off.iter().filter(|percent| **percent <= limit).count();
        (!off.is_empty()).then(|| Level { rows: off.len(), within_10: within(10.0), within_25: within(25.0) })
    }

    /// The most pairs behind any row: below two no row has an interval, and the table no verdict.
    pub fn most_pairs(&self) -> usize {
        self.rows.iter().flat_map(RowResult::pairs).max().unwrap_or(0)
    }

    /// The mean that the rows state.
    pub fn mean(&self) -> Mean {
        if self.statistic == Mean::Harmonic.name() { Mean::Harmonic } else { Mean::Arithmetic }
    }
}

impl RowResult {
    /// Pairs of samples behind each change.
    pub fn pairs(&self) -> impl Iterator<Item = usize> + Clone {
        self.arms[1..].iter().map(|arm| arm.n.min(self.arms[0].n))
    }

    fn new<Draw: FnMut(u64) -> u64>(series: &Series, table: &Table, generator: &impl Fn() -> Draw) -> RowResult {
        let mean = table.mean();
        let named = || table.arms.iter().zip(&series.arms);
        let base = &series.arms[0];
        RowResult {
            label: series.label.clone(),
            arms: named().map(|(name, samples)| ArmResult::new(name, samples, mean)).collect(),
            change: named()
                .skip(1)
                .map(|(name, samples)| Change::new(name, mean, table.better, base, samples, &mut generator()))
                .collect(),
        }
    }
}

impl ArmResult {
    fn new(name: &str, samples: &[f64], mean: Mean) -> ArmResult {
        ArmResult {
            name: name.to_string(),
            samples: samples.to_vec(),
            n: samples.len(),
            mean: mean.of(samples),
            stddev: sample_stddev(samples),
            min: minimum(samples).expect("an arm has samples"),
            max: maximum(samples).expect("an arm has samples"),
        }
    }
}

impl Change {
    fn new(
        arm: &str,
        mean: Mean,
        better: Better,
        base: &[f64],
        new: &[f64],
        draw: &mut impl FnMut(u64) -> u64,
    ) -> Change {
        let percent = mean.of(base).zip(mean.of(new)).and_then(|(base, new)| true_change(better, base, new));
        // Adding zero turns a negative zero into a positive one.
        let percent = percent.map(|percent| percent + 0.0);
        let pairs = base.len().min(new.len());
        let interval = paired_interval(mean, better, &base[..pairs], &new[..pairs], draw);
        Change {
            arm: arm.to_string(),
            percent,
            low: interval.map(|bounds| bounds.low),
            high: interval.map(|bounds| bounds.high),
            significant: interval.is_some_and(|bounds| bounds.significant()),
            // It is known once all rows are: see Verdict::of.
            p: None,
            finding: Finding::Noise,
        }
    }

    /// Half of the interval's width, in percentage points.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

#[cfg(test)]
pub(crate) mod schema;
#[cfg(test)]
pub(crate) mod tests;
