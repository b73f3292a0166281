//! One line about a table: in how many rows an arm gains, loses, or shows nothing.
//!
//! Each row's own interval errs once in twenty, so among seventeen rows without any change one would often be called a
//! gain. The count therefore limits the false discovery rate over all rows and arms of the table to 5% (Benjamini and
//! Hochberg 1995), by the p-values of Student's part of the interval; in addition, a row counts only if its interval
//! excludes zero. The rows of a table are correlated (quantiles of the same samples, neighbouring loads on the same
//! machine), but positively, and for such rows the procedure keeps its promise. Holm's would do so under any
//! dependence. But it bounds the chance of a single false row, which is more than a count of rows needs, and misses
//! more.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::{ArmResult, RowResult};
use crate::statistics::interval::{MISS, paired_p_value};
use crate::statistics::{Mean, benjamini_hochberg};

/// The name of the method that limits false rows, as the document has it.
pub const METHOD: &str = "Benjamini-Hochberg";

/// What a row says about an arm, as one of the rows of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    Gain,
    Loss,
    /// A change that the samples cannot tell from chance, or none.
    Noise,
}

impl Finding {
    /// The word in the document and the tables.
    pub fn word(self) -> &'static str {
        match self {
            Finding::Gain => "gain",
            Finding::Loss => "loss",
            Finding::Noise => "noise",
        }
    }
}

/// The verdict on one table. Prints as one line without a newline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The line that it prints as.
    pub text: String,
    /// [`METHOD`].
    pub method: String,
    /// Comparisons over which false discoveries are bounded: rows times arms other than the base.
    pub comparisons: usize,
    /// The fewest pairs behind any row. A row of one pair has no interval, and counts as noise.
    pub pairs: usize,
    /// One entry for every arm but the base.
    pub arms: Vec<ArmVerdict>,
}

/// Rows of one arm, against the base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmVerdict {
    pub name: String,
    pub gains: usize,
    pub losses: usize,
    /// The rest.
    pub noise: usize,
    /// Those of the noise whose samples are the same as the base's in every pair: what differs between the arms did not
    /// touch them.
    pub equal: usize,
}

impl Verdict {
    /// Judges the rows of a table together: stores in each change what it counts as, and counts.
    pub fn of(title: &str, mean: Mean, rows: &mut [RowResult]) -> Verdict {
        for row in rows.iter_mut() {
            let (base, others) = row.arms.split_first().expect("a row has arms");
            for (change, arm) in row.change.iter_mut().zip(others) {
                let pairs = base.n.min(arm.n);
                change.p = paired_p_value(mean, &base.samples[..pairs], &arm.samples[..pairs]);
            }
        }
        let p_values: Vec<f64> = rows.iter().flat_map(|row| &row.change).map(|it| it.p.unwrap_or(1.0)).collect();
        let rejected = benjamini_hochberg(&p_values, MISS);
        for (change, rejected) in rows.iter_mut().flat_map(|row| &mut row.change).zip(rejected) {
            change.finding = match change.percent {
                Some(percent) if rejected && change.significant && percent > 0.0 => Finding::Gain,
                Some(_) if rejected && change.significant => Finding::Loss,
                _ => Finding::Noise,
            };
        }
        let names = rows.first().map(|row| &row.arms[1..]).unwrap_or(&[]);
        let arms = names.iter().enumerate().map(|(arm, of)| {
            let count = |finding| rows.iter().filter(|row| row.change[arm].finding == finding).count();
            let [gains, losses, noise] = [Finding::Gain, Finding::Loss, Finding::Noise].map(count);
            let equal = rows.iter().filter(|row| is_equal(&row.arms[0], &row.arms[arm + 1])).count();
            ArmVerdict { name: of.name.clone(), gains, losses, noise, equal }
        });
        let arms: Vec<ArmVerdict> = arms.collect();
        let pairs = rows.iter().flat_map(RowResult::pairs);
        let (fewest, most) = (pairs.clone().min().unwrap_or(0), pairs.max().unwrap_or(0));
        Verdict {
            text: words(title, rows.len(), p_values.len(), (fewest, most), &arms),
            method: METHOD.to_string(),
            comparisons: p_values.len(),
            pairs: fewest,
            arms,
        }
    }
}

/// Whether two arms measured the same in every pair, of which there are at least two.
fn is_equal(base: &ArmResult, arm: &ArmResult) -> bool {
    let pairs = base.n.min(arm.n);
    pairs > 1 && base.samples[..pairs] == arm.samples[..pairs]
}

/// The line. `pairs` are the fewest and the most behind any row.
fn words(title: &str, rows: usize, comparisons: usize, pairs: (usize, usize), arms: &[ArmVerdict]) -> String {
    if arms.is_empty() || rows == 0 {
        return format!("{title}: nothing to compare");
    }
    let (fewest, most) = pairs;
    if most < 2 {
        return format!("{title}: one iteration per arm: no interval, no verdict");
    }
    let of = if rows == 1 { "row" } else { "rows" };
    let count = |arm: &ArmVerdict| {
        let ArmVerdict { name, gains, losses, noise, equal } = arm;
        let equal = if *equal > 0 { format!(", of which {equal} equal to the digit") } else { String::new() };
        format!("{name}: of {rows} {of} {gains} gain, {losses} lose, {noise} noise{equal}")
    };
    let counts: Vec<String> = arms.iter().map(count).collect();
    let pairs = if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
    let alone = if fewest < 2 { "; what was run once has no interval and counts as noise" } else { "" };
    let counts = counts.join("; ");
    format!("{title}: {counts} ({pairs} paired iterations, 95% intervals, {METHOD} over {comparisons}{alone})")
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::TableResult;
    use crate::mmtests::Vintage;
    use crate::tables::fixtures::{generator, hackbench, pipetest};
    use crate::tables::{Class, Operation, Table};

    fn verdict(table: &Table) -> Verdict {
        TableResult::new(table, Vintage::Now, &generator).verdict
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
        assert_eq!(found.arms[0].equal, 1);
        assert_eq!(
            found.to_string(),
            "hackbench-pipes: 4.5.0-rc1-nostats-v3r1: of 4 rows 1 gain, 1 lose, 2 noise, of which 1 equal \
             to the digit (5 paired iterations, 95% intervals, Benjamini-Hochberg over 4)"
        );
    }

    #[test]
    fn a_lone_row_among_many_needs_more_than_its_own_interval() {
        // Alone, the first row is significant (p = 0.02); among twenty rows without a change it is what chance would
        // bring.
        let base = vec![1.00, 1.02, 0.99, 1.01, 1.03];
        let lucky: Vec<f64> = base.iter().zip([0.990, 0.996, 0.985, 0.980, 0.995]).map(|(b, f)| b * f).collect();
        let alone = rows(&[(base.clone(), lucky.clone())]);
        assert_eq!(verdict(&alone).arms[0].gains, 1);
        let nothing = (base.clone(), vec![1.01, 1.01, 1.00, 1.00, 1.03]);
        let mut pairs = vec![(base, lucky)];
        pairs.extend(std::iter::repeat_n(nothing, 19));
        let among = rows(&pairs);
        let change = &TableResult::new(&among, Vintage::Now, &generator).rows[0].change[0];
        assert!(change.significant && change.p.is_some_and(|p| p < 0.05) && change.finding == Finding::Noise);
        let none = ArmVerdict { name: among.arms[1].clone(), gains: 0, losses: 0, noise: 20, equal: 0 };
        assert_eq!(verdict(&among).arms[0], none);
    }

    #[test]
    fn one_iteration_has_no_verdict() {
        assert_eq!(verdict(&pipetest(2, 1)).to_string(), "pipetest: one iteration per arm: no interval, no verdict");
        assert_eq!(verdict(&pipetest(1, 4)).to_string(), "pipetest: nothing to compare");
    }

    #[test]
    fn one_row_of_a_single_pair_does_not_silence_the_others() {
        let mut table = hackbench(2, 5);
        let [first, second, ..] = &mut table.operations[..] else { panic!("three rows") };
        first.arms[1] = first.arms[0].iter().map(|run| vec![run[0] / 2.0]).collect();
        second.arms.iter_mut().for_each(|runs| runs.truncate(1));
        let result = TableResult::new(&table, Vintage::Now, &generator);
        assert_eq!((result.verdict.pairs, result.most_pairs(), result.verdict.arms[0].gains), (1, 5, 1));
        let text = result.verdict.to_string();
        assert!(text.contains(": of 3 rows 1 gain, ") && text.contains("(1 to 5 paired iterations, "), "{text}");
        assert!(text.ends_with(" over 3; what was run once has no interval and counts as noise)"), "{text}");
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
