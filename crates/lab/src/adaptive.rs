//! The next iterations of an adaptive experiment, from the intervals of what has been run.

use crate::experiment::{Experiment, Job, Plan};
use crate::json::TableResult;
use crate::measurements::{generator, table_of_points};
use crate::record::Outcome;
use crate::shares;
use crate::tables::Table;

impl Plan {
    /// The plan once all of this one has been run; `None` when no more is needed.
    pub fn next<'o>(&self, experiment: &Experiment, outcome: &dyn Fn(&Job) -> Option<&'o Outcome>) -> Option<Plan> {
        let adaptive = experiment.adaptive?;
        let mut next = self.clone();
        for (table, points) in next.points.iter_mut().enumerate() {
            for (point, (iterations, open)) in points.iter_mut().enumerate().filter(|(_, (_, open))| *open) {
                let own = table_of_points(experiment, table, &[point], outcome);
                let all = own.into_iter().chain(shares::tables(experiment, table, &[point], outcome));
                let result = |table: Table| TableResult::new(&table, experiment.vintage, &generator(experiment.seed));
                let widest = all.map(|table| widest(&result(table))).fold(0.0, f64::max);
                match adaptive.next(*iterations, widest) {
                    Some(more) => *iterations = more,
                    None => *open = false,
                }
            }
        }
        next.points.iter().flatten().any(|(_, open)| *open).then_some(next)
    }
}

/// Half the width of the widest interval, in percentage points. A row without an interval cannot become narrower, so it
/// does not count.
fn widest(result: &TableResult) -> f64 {
    let widths = result.rows.iter().flat_map(|row| &row.change).filter_map(|change| change.half_width());
    widths.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Purpose, parse};
    use crate::machines::tests::Table as NoFiles;
    use crate::record::Ending;
    use std::collections::BTreeMap;

    const TEXT: &str = "\
machine = \"core-i7-3770\"
iterations = \"auto:min=3,max=20,half_width=2\"
workload = [{ name = \"hackbench-pipes\", groups = [1, 4], loops = 1 }]
arm = [{ name = \"a\", kernel = \"v4.15\" }, { name = \"b\", kernel = \"v4.16\" }]
";

    /// The first point always measures the same value; the second alternates between two.
    fn made_up(job: &Job) -> Outcome {
        let noise = if job.point == 1 { u64::from(job.iteration * 7 % 5) * 40_000 * job.arm as u64 } else { 0 };
        Outcome {
            end: Ending::Finished,
            samples: vec![vec![1_000_000 + noise]],
            reported: Vec::new(),
            events: 1,
            context_switches: 0,
            wakeups: 0,
            simulated_ns: 1,
            warnings: Vec::new(),
            digest: String::new(),
        }
    }

    #[test]
    fn wide_rows_are_run_again_and_narrow_ones_are_not() {
        let draft = parse(TEXT, "x.toml").unwrap();
        let experiment = draft.resolve(Purpose::Comparison, &NoFiles::default()).unwrap();
        let mut plan = Plan::first(&experiment);
        let mut outcomes: BTreeMap<Job, Outcome> = BTreeMap::new();
        let mut rounds = 0;
        loop {
            outcomes.extend(plan.jobs(&experiment).into_iter().map(|job| (job, made_up(&job))));
            rounds += 1;
            match plan.next(&experiment, &|job| outcomes.get(job)) {
                Some(next) => plan = next,
                None => break,
            }
        }
        let runs = |point: usize| outcomes.keys().filter(|job| job.point == point && job.arm == 1).count();
        assert_eq!((runs(0), runs(1)), (3, 20));
        // 3, 6, 12, 20.
        assert_eq!(rounds, 4);
        // Stored runs beyond the plan do not count.
        let first = Plan::first(&experiment);
        assert_eq!(first.jobs(&experiment).len(), 2 * 2 * 3);
    }

    #[test]
    fn shares_of_functions_stay_wide_as_other_rows_do() {
        let text =
            TEXT.replacen("loops = 1 }", "loops = 1, profile = { title = \"p\", functions = [\"schedule\"] } }", 1);
        let experiment = parse(&text, "x.toml").and_then(|it| it.resolve(Purpose::Comparison, &NoFiles::default()));
        let experiment = experiment.unwrap();
        // The benchmark measures the same value each time; only the second point's profile varies.
        let made_up = |job: &Job| {
            let own = made_up(&Job { point: 0, ..*job });
            let share = vec![made_up(job).samples[0][0] * 10];
            Outcome { samples: vec![own.samples[0].clone(), share.clone(), share], ..own }
        };
        let plan = Plan::first(&experiment);
        let outcomes: BTreeMap<Job, Outcome> =
            plan.jobs(&experiment).into_iter().map(|job| (job, made_up(&job))).collect();
        let next = plan.next(&experiment, &|job| outcomes.get(job)).expect("a point that is still wide");
        assert_eq!(next.points, [[(3, false), (6, true)]]);
    }
}
