//! From the outcomes of an experiment's runs to tables.

use crate::experiment::{Experiment, Job};
use crate::record::Outcome;
use crate::shares;
use crate::tables::{Operation, Table};
use units::Prng;

/// The tables of those iterations that every arm has. Rows and tables without samples are left out.
pub fn tables<'o>(experiment: &Experiment, outcome: &dyn Fn(&Job) -> Option<&'o Outcome>) -> Vec<Table> {
    numbered_tables(experiment, outcome).into_iter().map(|(_, table)| table).collect()
}

/// The same tables, each with its index in the experiment (`None` for tables of shares of functions).
pub fn numbered_tables<'o>(
    experiment: &Experiment,
    outcome: &dyn Fn(&Job) -> Option<&'o Outcome>,
) -> Vec<(Option<usize>, Table)> {
    let tables = |place: usize| {
        let points: Vec<usize> = (0..experiment.tables[place].points.len()).collect();
        let own = table_of_points(experiment, place, &points, outcome).map(|table| (Some(place), table));
        let shares = shares::tables(experiment, place, &points, outcome);
        own.into_iter().chain(shares.into_iter().map(|table| (None, table)))
    };
    (0..experiment.tables.len()).flat_map(tables).collect()
}

/// The rows of some points of a table; `None` if there are none.
pub(crate) fn table_of_points<'o>(
    experiment: &Experiment,
    table: usize,
    points: &[usize],
    outcome: &dyn Fn(&Job) -> Option<&'o Outcome>,
) -> Option<Table> {
    let of = &experiment.tables[table];
    let own = |(point, row): (usize, usize)| {
        let label = of.points[point].operations[row].clone();
        shares::operation(experiment, (table, point, row), label, &|sample| of.in_units(sample), outcome)
    };
    let rows = points.iter().flat_map(|&point| (0..of.points[point].operations.len()).map(move |row| (point, row)));
    let operations: Vec<Operation> = rows.filter_map(own).collect();
    let arms = experiment.arms.iter().map(|arm| arm.name.clone()).collect();
    of.table(arms, operations, of.published.clone())
}

/// Makes fresh sources of the random numbers for an experiment's intervals; all sources give the same numbers.
pub(crate) fn generator(seed: u64) -> impl Fn() -> Box<dyn FnMut(u64) -> u64> {
    move || {
        let mut chance = Prng::stream(seed, "interval", 0);
        Box::new(move |bound| chance.below(bound))
    }
}
