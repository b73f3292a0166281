//! One line about a table: in how many rows an arm gains, loses, or shows nothing.
//!
//! Each row's own interval errs once in twenty, so of seventeen rows without any change one would often be called a
//! gain. The count therefore takes the false discovery rate over all rows and arms of the table at 5% (Benjamini and
//! Hochberg 1995), by the p-values of Student's part of the interval, and a row counts only if its interval excludes
//! zero as well. Rows of one table hang together (quantiles of the same samples, neighbouring loads on the same
//! machine), and positively: there the procedure keeps its promise. Holm's would too under any dependence, but it
//! bounds the chance of a single false row, which is more than a count of rows needs, and misses more.

use std::fmt;

use crate::json::{RowResult, TableResult};
use crate::statistics::benjamini_hochberg;
use crate::statistics::interval::{MISS, paired_p_value};

/// The verdict on one table. Prints as one line without a newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub title: String,
    pub rows: usize,
    /// Comparisons over which false discoveries are bounded: rows times arms other than the base.
    pub comparisons: usize,
    /// The fewest pairs behind any interval; below two there is none.
    pub pairs: usize,
    pub arms: Vec<ArmVerdict>,
}

/// Rows of one arm, against the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmVerdict {
    pub name: String,
    pub gains: usize,
    pub losses: usize,
    /// The rest: no change that the samples can tell from chance.
    pub noise: usize,
}

impl Verdict {
    /// From a finished table, which holds all the samples.
    pub fn of(table: &TableResult) -> Verdict {
        let changes: Vec<(&RowResult, usize)> =
            table.rows.iter().flat_map(|row| (0..row.change.len()).map(move |arm| (row, arm))).collect();
        let pairs = |row: &RowResult, arm: usize| row.arms[0].n.min(row.arms[arm + 1].n);
        let p_value = |&(row, arm): &(&RowResult, usize)| {
            let pairs = pairs(row, arm);
            let (base, new) = (&row.arms[0].samples[..pairs], &row.arms[arm + 1].samples[..pairs]);
            paired_p_value(table.mean(), base, new).unwrap_or(1.0)
        };
        let rejected = benjamini_hochberg(&changes.iter().map(p_value).collect::<Vec<_>>(), MISS);

        let names = table.rows.first().map(|row| &row.arms[1..]).unwrap_or(&[]);
        let mut arms: Vec<ArmVerdict> =
            names.iter().map(|arm| ArmVerdict { name: arm.name.clone(), gains: 0, losses: 0, noise: 0 }).collect();
        for (&(row, arm), rejected) in changes.iter().zip(rejected) {
            let change = &row.change[arm];
            let counter = match change.percent {
                Some(percent) if rejected && change.significant && percent > 0.0 => &mut arms[arm].gains,
                Some(_) if rejected && change.significant => &mut arms[arm].losses,
                _ => &mut arms[arm].noise,
            };
            *counter += 1;
        }
        Verdict {
            title: table.title().to_string(),
            rows: table.rows.len(),
            comparisons: changes.len(),
            pairs: changes.iter().map(|&(row, arm)| pairs(row, arm)).min().unwrap_or(0),
            arms,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: ", self.title)?;
        if self.arms.is_empty() || self.rows == 0 {
            return write!(f, "nothing to compare");
        }
        if self.pairs < 2 {
            return write!(f, "one iteration per arm: no interval, no verdict");
        }
        for (index, arm) in self.arms.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            let ArmVerdict { name, gains, losses, noise } = arm;
            let rows = if self.rows == 1 { "row" } else { "rows" };
            write!(f, "{separator}{name}: of {} {rows} {gains} gain, {losses} lose, {noise} noise", self.rows)?;
        }
        write!(f, " ({} paired iterations, 95% intervals, Benjamini-Hochberg over {})", self.pairs, self.comparisons)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{generator, hackbench, pipetest};
    use super::super::{Class, Operation, Table};
    use super::*;

    fn verdict(table: &Table) -> Verdict {
        Verdict::of(&TableResult::new(table, &generator))
    }

    /// One row per `(base, new)`.
    fn rows(pairs: &[(Vec<f64>, Vec<f64>)]) -> Table {
        let one_by_one = |samples: &Vec<f64>| samples.iter().map(|&sample| vec![sample]).collect();
        let operations = pairs
            .iter()
            .enumerate()
            .map(|(row, (base, new))| Operation {
                label: row.to_string(),
                arms: vec![one_by_one(base), one_by_one(new)],
            })
            .collect();
        Table { operations, class: Class::Multiops, ..hackbench(2, 1) }
    }

    #[test]
    fn gains_losses_and_noise_are_counted_apart() {
        let base = vec![1.00, 1.02, 0.99, 1.01, 1.03];
        let scaled = |factors: [f64; 5]| base.iter().zip(factors).map(|(b, f)| b * f).collect::<Vec<_>>();
        let table = rows(&[
            (base.clone(), scaled([0.90, 0.91, 0.90, 0.89, 0.90])),
            (base.clone(), scaled([1.10, 1.11, 1.10, 1.09, 1.10])),
            (base.clone(), scaled([1.02, 0.97, 1.01, 0.99, 1.01])),
            (base.clone(), base.clone()),
        ]);
        let found = verdict(&table);
        assert_eq!((found.arms[0].gains, found.arms[0].losses, found.arms[0].noise), (1, 1, 2));
        assert_eq!(
            found.to_string(),
            "hackbench-pipes: 4.5.0-rc1-nostats-v3r1: of 4 rows 1 gain, 1 lose, 2 noise \
             (5 paired iterations, 95% intervals, Benjamini-Hochberg over 4)"
        );
    }

    #[test]
    fn a_lone_row_among_many_needs_more_than_its_own_interval() {
        // On its own the first row is significant (p = 0.02); among twenty rows of nothing it is what chance would
        // bring.
        let base = vec![1.00, 1.02, 0.99, 1.01, 1.03];
        let lucky: Vec<f64> = base.iter().zip([0.990, 0.996, 0.985, 0.980, 0.995]).map(|(b, f)| b * f).collect();
        let alone = rows(&[(base.clone(), lucky.clone())]);
        assert_eq!(verdict(&alone).arms[0].gains, 1);
        let nothing = (base.clone(), vec![1.01, 1.01, 1.00, 1.00, 1.03]);
        let mut pairs = vec![(base, lucky)];
        pairs.extend(std::iter::repeat_n(nothing, 19));
        let among = rows(&pairs);
        assert!(TableResult::new(&among, &generator).rows[0].change[0].significant);
        assert_eq!(verdict(&among).arms[0], ArmVerdict { name: among.arms[1].clone(), gains: 0, losses: 0, noise: 20 });
    }

    #[test]
    fn one_iteration_has_no_verdict() {
        assert_eq!(verdict(&pipetest(2, 1)).to_string(), "pipetest: one iteration per arm: no interval, no verdict");
        assert_eq!(verdict(&pipetest(1, 4)).to_string(), "pipetest: nothing to compare");
    }

    #[test]
    fn every_arm_has_its_own_count() {
        let found = verdict(&hackbench(3, 7));
        assert_eq!(found.comparisons, 6);
        assert_eq!(found.arms.len(), 2);
        assert!(found.arms.iter().all(|arm| arm.gains + arm.losses + arm.noise == 3));
        assert!(found.to_string().contains("; 4.6-next: of 3 rows"));
    }
}
