//! `profile = { title = ..., functions = [...] }` of a workload: tables of kernel functions' shares, in addition to the
//! tables that its runs make.

use super::arm::Arm;
use super::draft::{DraftProfile, DraftWorkload};
use super::workload_table::{ProfileTable, WorkloadTable};
use crate::mistake::{Mistake, Written};
use crate::symbols::{called, functions};
use crate::tables::Published;
use std::collections::BTreeSet;

/// The most functions of one workload.
const MOST_FUNCTIONS: usize = 1_000;

/// The smallest published share that counts as one, in per cent: less than simulated shares can resolve.
const LEAST_SHARE: f64 = 1e-6;

/// Checks what was written. `table` is the workload's own.
pub(super) fn resolve(draft: &DraftProfile, table: &WorkloadTable) -> Result<ProfileTable, Mistake> {
    if draft.functions.is_empty() || draft.functions.len() > MOST_FUNCTIONS {
        let found = format!("{} functions of {}", draft.functions.len(), draft.title.quoted());
        return Err(draft.title.mistake(found, format!("functions = [...], 1 to {MOST_FUNCTIONS} of them")));
    }
    let mut known = BTreeSet::new();
    for function in &draft.functions {
        if !known.insert(function.text.as_str()) {
            let found = format!("the function {} for the second time", function.quoted());
            return Err(function.mistake(found, "each function once"));
        }
    }
    let functions: Vec<String> = draft.functions.iter().map(|function| function.text.clone()).collect();
    let labels: BTreeSet<String> = functions.iter().flat_map(|function| rows(table, function)).collect();
    Ok(ProfileTable { title: draft.title.text.clone(), published: published(draft, &labels)?, functions })
}

/// Calls [`check_on`] for every workload that has a profile.
pub(super) fn check_all(drafts: &[DraftWorkload], arms: &[Arm], notices: &mut Vec<String>) -> Result<(), Mistake> {
    drafts.iter().filter_map(|draft| draft.profile.as_ref()).try_for_each(|draft| check_on(draft, arms, notices))
}

/// Each arm's kernel must have the functions; otherwise the share of nothing would be compared. If it has one under
/// another name, `notices` says so.
fn check_on(draft: &DraftProfile, arms: &[Arm], notices: &mut Vec<String>) -> Result<(), Mistake> {
    for function in &draft.functions {
        let known = |arm: &Arm| called(&function.text, &arm.kernel);
        if arms.iter().all(|arm| known(arm).is_none()) {
            let all: BTreeSet<&str> = arms.iter().flat_map(|arm| functions(&arm.kernel)).collect();
            return Err(function.unknown("kernel function", all.iter().copied()));
        }
        for arm in arms {
            let Some(name) = known(arm) else {
                let found =
                    format!("{}, no function by itself in {} (arm {})", function.quoted(), arm.kernel, arm.name);
                return Err(function.mistake(found, "functions that every arm's kernel has: see fairground profile"));
            };
            if name != function.text {
                let at = &function.at;
                notices.push(format!("{at}: {} is {name} in {} (arm {})", function.text, arm.kernel, arm.name));
            }
        }
    }
    Ok(())
}

/// Labels of a function's rows: one for each of the workload's points.
pub(crate) fn rows(table: &WorkloadTable, function: &str) -> Vec<String> {
    match &table.points[..] {
        [_] => vec![function.to_string()],
        points => points.iter().map(|point| format!("{function}-{}", point.name)).collect(),
    }
}

/// The published `source`, and two figures for each row. A function that was not measured by itself has no figure to
/// compare with.
fn published(draft: &DraftProfile, labels: &BTreeSet<String>) -> Result<[Option<Published>; 2], Mistake> {
    let Some((first, _)) = draft.published.first() else { return Ok([None, None]) };
    let (mut source, mut columns) = (None, [Vec::new(), Vec::new()]);
    for (row, figures) in &draft.published {
        if row.text == "source" {
            source = figures.first().map(|source| source.text.clone());
            continue;
        }
        if !labels.contains(&row.text) {
            let found = format!("the row {}, which the profile does not have", row.quoted());
            return Err(row.mistake(found, "a label of a row"));
        }
        if figures.len() != columns.len() {
            let found = format!("{} figures of {}", figures.len(), row.quoted());
            return Err(row.mistake(found, "two: [with what it calls, by itself], in per cent"));
        }
        for (column, figure) in columns.iter_mut().zip(figures) {
            let share = share(figure)?;
            if share > 0.0 {
                column.push((row.text.clone(), share));
            }
        }
    }
    let source = source.ok_or_else(|| first.mistake("published figures without a source", "source = \"...\""))?;
    Ok(columns.map(|rows| Some(Published { source: source.clone(), rows })))
}

fn share(figure: &Written) -> Result<f64, Mistake> {
    match figure.text.parse::<f64>() {
        Ok(share) if share == 0.0 || (LEAST_SHARE..=100.0).contains(&share) => Ok(share),
        _ => {
            let expected = format!("0, or {LEAST_SHARE:e} to 100, in per cent");
            Err(figure.mistake(format!("a share of {}", figure.quoted()), expected))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Experiment, Purpose, parse};
    use crate::machines::tests::Table;

    fn resolve(profile: &str) -> Result<Experiment, String> {
        resolve_of(["v4.15", "v4.16"], profile)
    }

    fn resolve_of(kernels: [&str; 2], profile: &str) -> Result<Experiment, String> {
        let [a, b] = kernels;
        let text = format!(
            "machine = \"core-i7-3770\"\n[[workload]]\nname = \"specjbb-preset\"\ngroups = [1, 2]\nprofile = {{ {profile} }}\n\
             [[arm]]\nname = \"a\"\nkernel = \"{a}\"\n[[arm]]\nname = \"b\"\nkernel = \"{b}\"\n"
        );
        let draft = parse(&text, "x.toml").and_then(|draft| draft.resolve(Purpose::Comparison, &Table::default()));
        draft.map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn published_shares_are_two_to_a_row_and_those_of_nothing_are_left_out() {
        let column = "title = \"t\", functions = [\"schedule\", \"pipe_read\"], published = { source = \"s\", schedule-2 = [10.5, 0.0] }";
        let experiment = resolve(column).unwrap();
        let profile = experiment.tables[0].profile.as_ref().expect("it was asked for");
        let rows = profile.published.clone().map(|column| column.expect("there is a source").rows);
        assert_eq!(rows, [vec![("schedule-2".to_string(), 10.5)], vec![]]);
        assert_eq!(experiment.setup(&experiment.jobs()[0]).workload.profile, ["schedule", "pipe_read"]);
    }

    #[test]
    fn functions_are_those_of_every_arms_kernel_by_whatever_name() {
        let of = |kernels, function: &str| resolve_of(kernels, &format!("title = \"t\", functions = [\"{function}\"]"));
        let notices = |kernels, function| of(kernels, function).unwrap().notices;
        let at = "x.toml:5:39";
        assert!(notices(["v4.15", "v4.16"], "scheduler_tick").iter().all(|notice| !notice.starts_with(at)));
        let said = notices(["v4.15", "v6.12"], "scheduler_tick");
        assert!(said.contains(&format!("{at}: scheduler_tick is sched_tick in v6.12 (arm b)")), "{said:?}");
        let said = notices(["v6.1", "v6.12"], "sched_tick");
        assert!(said.contains(&format!("{at}: sched_tick is scheduler_tick in v6.1 (arm a)")), "{said:?}");
        for (kernels, function, message) in [
            (
                ["v4.15", "v6.12"],
                "schedule_tick",
                "found the unknown kernel function `schedule_tick`; expected `scheduler_tick`, perhaps",
            ),
            (
                ["v4.5-rc1", "v4.15"],
                "entity_tick",
                "found `entity_tick`, no function by itself in v4.5-rc1 (arm a); expected functions that every arm's",
            ),
            (["v4.15", "v6.1"], "do_softirq_own_stack", "found `do_softirq_own_stack`, no function by itself in v6.1"),
        ] {
            let error = of(kernels, function).unwrap_err();
            assert!(error.starts_with(&format!("{at}: {message}")), "{error}");
        }
    }

    #[test]
    fn mistakes_of_a_profile_are_found_with_their_places() {
        for (profile, message) in [
            ("functions = [\"f\"]", "x.toml:5:11: found no `title` in"),
            ("title = \"t\"", "x.toml:5:21: found 0 functions of `t`; expected functions = [...], 1 to 1000 of them"),
            ("title = \"t\", functions = [\"f\", \"f\"]", "x.toml:5:44: found the function `f` for the second time"),
            ("title = \"t\", functons = [\"f\"]", "x.toml:5:26: found the unknown name `functons` in"),
            (
                "title = \"t\", functions = [\"f\"], published = { source = \"s\", f = [1, 2] }",
                "x.toml:5:73: found the row `f`, which the profile does not have",
            ),
            (
                "title = \"t\", functions = [\"f\"], published = { source = \"s\", f-1 = 2.5 }",
                "x.toml:5:73: found 1 figures of `f-1`; expected two:",
            ),
            (
                "title = \"t\", functions = [\"f\"], published = { source = \"s\", f-1 = [101, 2] }",
                "x.toml:5:80: found a share of `101`; expected 0, or 1e-6 to 100, in per cent",
            ),
            (
                "title = \"t\", functions = [\"f\"], published = { source = \"s\", f-1 = [1e-320, 2] }",
                "x.toml:5:80: found a share of `1e-320`; expected 0, or 1e-6 to 100",
            ),
            (
                "title = \"t\", functions = [\"f\"], published = { f-1 = [10, 2] }",
                "x.toml:5:59: found published figures without a source",
            ),
        ] {
            let error = resolve(profile).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
