//! Shares of kernel functions as figures of a run. Their samples follow the workload's own, two rows for each function:
//! including what it calls, and by itself.

use crate::experiment::{Experiment, Job, ProfileTable, WorkloadTable, profile_rows};
use crate::record::Outcome;
use crate::statistics::Better;
use crate::tables::{Class, Operation, Published, Table};

/// Parts of one per cent in a sample.
const PER_PERCENT: f64 = 1e6;
/// The number of tables that a profile makes.
const KINDS: usize = 2;

/// The tables of the profile of a workload, which is at index `place` of the experiment, with the rows of some of its
/// points.
pub fn tables<'o>(
    experiment: &Experiment,
    place: usize,
    points: &[usize],
    outcome: &dyn Fn(&Job) -> Option<&'o Outcome>,
) -> Vec<Table> {
    let of = &experiment.tables[place];
    let Some(profile) = &of.profile else { return Vec::new() };
    let table = |kind: usize| {
        let operations = profile.functions.iter().enumerate().flat_map(|(function, name)| {
            let rows = profile_rows(of, name).into_iter().enumerate().filter(|(point, _)| points.contains(point));
            rows.filter_map(move |(point, label)| {
                let row = place_of(of, profile, point, kind, function);
                operation(experiment, (place, point, row), label, &percent, outcome)
            })
        });
        let operations: Vec<Operation> = operations.collect();
        (!operations.is_empty()).then(|| shares(experiment, of, profile, kind, operations))
    };
    (0..KINDS).filter_map(table).collect()
}

/// The index of a function's share among the samples of a point's run.
fn place_of(of: &WorkloadTable, profile: &ProfileTable, point: usize, kind: usize, function: usize) -> usize {
    of.points[point].operations.len() + kind * profile.functions.len() + function
}

/// A sample in per cent.
pub fn percent(sample: u64) -> f64 {
    sample as f64 / PER_PERCENT
}

/// The title of a profile's table.
fn title(profile: &ProfileTable, kind: usize) -> String {
    if kind == 0 { profile.title.clone() } else { format!("{}-self", profile.title) }
}

/// What the samples after the workload's own are, in their order: table and row.
pub fn rows_of(of: &WorkloadTable, point: usize) -> Vec<(String, String)> {
    let Some(profile) = &of.profile else { return Vec::new() };
    let label = |function: &String| profile_rows(of, function).swap_remove(point);
    let rows = |kind: usize| profile.functions.iter().map(move |function| (title(profile, kind), label(function)));
    (0..KINDS).flat_map(rows).collect()
}

fn shares(
    experiment: &Experiment,
    of: &WorkloadTable,
    profile: &ProfileTable,
    kind: usize,
    operations: Vec<Operation>,
) -> Table {
    let published: Option<Published> = profile.published[kind].clone();
    Table {
        name: Some(title(profile, kind)),
        workload: of.source.name().to_string(),
        parameters: of.parameters.clone(),
        class: Class::Singleops { figure: "Share".to_string() },
        unit: "%".to_string(),
        better: Better::Lower,
        decimals: 2,
        arms: experiment.arms.iter().map(|arm| arm.name.clone()).collect(),
        operations,
        published: published.filter(|published| !published.rows.is_empty()),
    }
}

/// The samples of a table's point in row number `row` of its runs, under `label`.
pub(crate) fn operation<'o>(
    experiment: &Experiment,
    (table, point, row): (usize, usize, usize),
    label: String,
    in_units: &dyn Fn(u64) -> f64,
    outcome: &dyn Fn(&Job) -> Option<&'o Outcome>,
) -> Option<Operation> {
    // An rt-app task may end without a sample.
    let samples = |arm: usize, iteration: u32| {
        let samples = outcome(&Job { table, point, arm, iteration })?.samples.get(row)?;
        (!samples.is_empty()).then(|| samples.iter().map(|&sample| in_units(sample)).collect())
    };
    let mut arms = vec![Vec::new(); experiment.arms.len()];
    for iteration in 0..experiment.iterations {
        let all: Option<Vec<Vec<f64>>> = (0..arms.len()).map(|arm| samples(arm, iteration)).collect();
        for (arm, samples) in all.into_iter().flatten().enumerate() {
            arms[arm].push(samples);
        }
    }
    (!arms[0].is_empty()).then_some(Operation { label, arms })
}
