//! What the machine did in the first iteration of each row, and how the arms' profiles differ.

use super::{Page, escaped};
use crate::experiment::Job;
use crate::json::TableResult;
use crate::numbers::signed;
use crate::observed::{FunctionTime, Observed, share};
use crate::symbols::called;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most functions in a profile difference.
const MOST_FUNCTIONS: usize = 14;
/// Smaller shares are not listed, in percentage points.
const LEAST_POINTS: f64 = 0.005;
/// Width of a bar, in its own units.
const BAR: f64 = 120.0;

/// Adds both for the experiment's table `index`; adds nothing if nothing was observed.
pub(super) fn add(html: &mut String, page: &Page, index: usize, result: &TableResult) {
    let points = &page.experiment.tables[index].points;
    let arms = page.experiment.arms.len();
    let observed = |point: usize, arm: usize| {
        let job = Job { table: index, point, arm, iteration: 0 };
        (page.observed)(&job)
    };
    let known: Vec<(usize, Vec<&Observed>)> = (0..points.len())
        .filter_map(|point| Some((point, (0..arms).map(|arm| observed(point, arm)).collect::<Option<Vec<_>>>()?)))
        .collect();
    if known.is_empty() {
        return;
    }
    let names: Vec<&str> = page.experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
    let label = |point: usize| points[point].name.as_str();
    html.push_str("<h3>What the machine did</h3>\n");
    html.push_str("<p class=\"soft\">First iteration of each row, from the workload's start to its end. A CPU counts as used if it executed for more than 1% of\nthe time.</p>\n");
    html.push_str("<div class=\"scroll\"><table>\n<thead><tr><th>run</th><th class=\"text\">arm</th><th>CPUs used</th><th>executing</th><th>MHz while executing</th>");
    html.push_str("<th>switches/s</th><th>wakeups/s</th><th>migrations/s</th>");
    let reckoned = known.iter().flat_map(|(_, of_arms)| of_arms).any(|observed| observed.energy.is_some());
    if reckoned {
        html.push_str("<th>energy, mJ</th><th>W</th>");
    }
    html.push_str("<th class=\"text\">idle states</th><th class=\"text\">frequencies</th></tr></thead>\n<tbody>\n");
    for (point, of_arms) in &known {
        for (arm, observed) in of_arms.iter().enumerate() {
            let class = if arm == 0 { " class=\"first\"" } else { "" };
            let run = if arm == 0 { escaped(label(*point)) } else { String::new() };
            let _ = write!(html, "<tr{class}><td>{run}</td><td class=\"text\">{}</td>", escaped(names[arm]));
            add_counts(html, observed, reckoned);
        }
    }
    html.push_str("</tbody></table></div>\n");
    if arms < 2 {
        return;
    }
    html.push_str("<h3>Where time went</h3>\n");
    html.push_str("<p class=\"soft\">First iteration of the first, the middle and the last row: functions whose own share of the executed\ntime differs most from the first arm's, in percentage points. A function that two kernels call by two names stands under both.</p>\n");
    let profiled = |of_arms: &[&Observed]| of_arms.iter().all(|observed| observed.profiled_ns > 0);
    for (point, of_arms) in known.iter().filter(|(_, of_arms)| profiled(of_arms)) {
        let summary = format!("{} {}", escaped(result.title()), escaped(label(*point)));
        let _ = writeln!(html, "<details><summary>{summary}</summary>");
        let sides: Vec<Side> = (0..arms)
            .map(|arm| Side { arm: names[arm], kernel: &page.experiment.arms[arm].kernel, observed: of_arms[arm] })
            .collect();
        for other in &sides[1..] {
            add_difference(html, &sides[0], other);
        }
        html.push_str("</details>\n");
    }
}

/// `reckoned`: whether some rows have an energy.
fn add_counts(html: &mut String, observed: &Observed, reckoned: bool) {
    let seconds = observed.duration_ns.max(1) as f64 / 1e9;
    let rate = |count: u64| format!("{:.0}", count as f64 / seconds);
    let executing = 100.0 * observed.busy_share();
    let busy = match observed.busy_khz {
        0 => "fixed".to_string(),
        khz => mhz(khz).to_string(),
    };
    let _ = write!(
        html,
        "<td>{} of {}</td><td>{executing:.1}%</td><td>{busy}</td>",
        observed.cpus_used(),
        observed.busy_ns.len()
    );
    for count in [observed.context_switches, observed.wakeups, observed.migrations] {
        let _ = write!(html, "<td>{}</td>", rate(count));
    }
    if reckoned {
        let total = observed.energy.as_ref().map(|energy| energy.total_nj as f64);
        let cell = |value: Option<String>| format!("<td>{}</td>", value.unwrap_or_default());
        html.push_str(&cell(total.map(|nj| format!("{:.3}", nj / 1e6))));
        html.push_str(&cell(total.map(|nj| format!("{:.3}", nj / 1e9 / seconds))));
    }
    let all = observed.duration_ns * observed.busy_ns.len() as u64;
    let states = observed.idle.iter().filter(|state| state.1 > 0);
    let states: Vec<(String, f64)> = states.map(|(name, time, _)| (name.clone(), share(*time, all))).collect();
    let whole: u64 = observed.frequencies.iter().map(|it| it.1).sum();
    let frequencies: Vec<(String, f64)> = observed
        .frequencies
        .iter()
        .map(|(khz, time)| (format!("{} MHz", mhz(u64::from(*khz))), share(*time, whole)))
        .collect();
    let _ =
        writeln!(html, "<td class=\"text\">{}</td><td class=\"text\">{}</td></tr>", bar(&states), bar(&frequencies));
}

/// Rounded to the nearest.
fn mhz(khz: u64) -> u64 {
    (khz + 500) / 1000
}

/// Shares of a whole, from light to dark. Each has its name as a tooltip, and for readers who cannot see it.
fn bar(shares: &[(String, f64)]) -> String {
    if shares.is_empty() {
        return String::new();
    }
    let words: Vec<String> = shares.iter().map(|(name, share)| format!("{name} {:.1}%", share * 100.0)).collect();
    let label = escaped(&words.join(", "));
    let mut svg = format!(
        "<svg class=\"shares\" viewBox=\"0 0 {BAR} 12\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{label}\"><title>{label}</title>"
    );
    let _ = write!(svg, "<rect class=\"rest\" x=\"0\" y=\"0\" width=\"{BAR}\" height=\"12\"/>");
    let mut from = 0.0;
    for (index, (_, share)) in shares.iter().enumerate() {
        let width = share * BAR;
        let opacity = 0.25 + 0.75 * (index + 1) as f64 / shares.len() as f64;
        let _ = write!(
            svg,
            "<rect class=\"part\" x=\"{from:.2}\" y=\"0\" width=\"{width:.2}\" height=\"12\" opacity=\"{opacity:.2}\"/>"
        );
        from += width;
    }
    svg.push_str("</svg>");
    // Names the largest in words: colours alone say little.
    let largest = shares.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there is one");
    format!("{svg}{} {:.0}%", escaped(&largest.0), largest.1 * 100.0)
}

/// An arm, its kernel, and what one of its runs shows.
struct Side<'a> {
    arm: &'a str,
    kernel: &'a str,
    observed: &'a Observed,
}

/// One function in two profiles, in per cent of what was executed.
struct Difference<'a> {
    /// The name in the first profile's kernel, or else in the other's.
    name: &'a str,
    /// The name in the other kernel, if it differs.
    renamed: Option<&'a str>,
    own: [f64; 2],
    children: [f64; 2],
}

impl Difference<'_> {
    fn points(&self) -> f64 {
        self.own[1] - self.own[0]
    }
}

/// Of all functions of either profile, those that differ most.
fn differences<'a>(base: &Side<'a>, other: &Side<'a>) -> Vec<Difference<'a>> {
    let mut all: BTreeMap<&str, Difference> = BTreeMap::new();
    for (side, of) in [base, other].into_iter().enumerate() {
        let percent = |ns: u64| 100.0 * share(ns, of.observed.profiled_ns);
        for FunctionTime { name, self_ns, children_ns } in &of.observed.functions {
            let was = if side == 1 { former(name, base, other) } else { None };
            let key = was.unwrap_or(name);
            let new = Difference { name: key, renamed: None, own: [0.0; 2], children: [0.0; 2] };
            let entry = all.entry(key).or_insert(new);
            entry.renamed = was.map(|_| name.as_str());
            (entry.own[side], entry.children[side]) = (percent(*self_ns), percent(*children_ns));
        }
    }
    let mut all: Vec<Difference> = all.into_values().filter(|it| it.points().abs() >= LEAST_POINTS).collect();
    all.sort_by(|a, b| b.points().abs().total_cmp(&a.points().abs()).then(a.name.cmp(b.name)));
    all.truncate(MOST_FUNCTIONS);
    all
}

/// The name in the first kernel of a function of the other kernel, if it differs and stands for no other function
/// there.
fn former<'a>(name: &str, base: &Side, other: &Side) -> Option<&'a str> {
    let was = called(name, base.kernel).filter(|was| *was != name)?;
    (called(was, other.kernel) == Some(name)).then_some(was)
}

fn add_difference(html: &mut String, base: &Side, other: &Side) {
    let all = differences(base, other);
    if all.is_empty() {
        let _ = writeln!(html, "<p>{}: no function's share differs.</p>", escaped(other.arm));
        return;
    }
    let [left, right] = [base.arm, other.arm].map(escaped);
    html.push_str("<div class=\"scroll\"><table>\n<thead><tr><th>function</th>");
    let _ = writeln!(
        html,
        "<th>{left}, self</th><th>{right}, self</th><th>points</th><th></th><th>{left}, with callees</th><th>{right}, with callees</th></tr></thead>\n<tbody>"
    );
    let most = all.iter().map(|it| it.points().abs()).fold(f64::MIN_POSITIVE, f64::max);
    for it in &all {
        let points = it.points();
        let width = points.abs() / most * BAR / 2.0;
        let (class, x) = if points > 0.0 { ("more", BAR / 2.0) } else { ("less", BAR / 2.0 - width) };
        let bar = format!(
            "<svg viewBox=\"0 0 {BAR} 12\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"{class}\" x=\"{x:.2}\" y=\"1\" width=\"{width:.2}\" height=\"10\"/></svg>"
        );
        let renamed = it.renamed.map_or(String::new(), |name| format!(", <code>{}</code>", escaped(name)));
        let _ = write!(html, "<tr><td><code>{}</code>{renamed}</td>", escaped(it.name));
        let signed = signed(points, 2);
        let _ = write!(html, "<td>{:.2}%</td><td>{:.2}%</td><td>{signed}</td><td>{bar}</td>", it.own[0], it.own[1]);
        let _ = writeln!(html, "<td>{:.2}%</td><td>{:.2}%</td></tr>", it.children[0], it.children[1]);
    }
    html.push_str("</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::EnergyTaken;

    fn observed(functions: &[(&str, u64, u64)]) -> Observed {
        let function =
            |&(name, self_ns, children_ns): &(&str, u64, u64)| FunctionTime { name: name.into(), self_ns, children_ns };
        Observed {
            duration_ns: 1_000_000_000,
            busy_ns: vec![500_000_000, 0],
            idle: vec![("C1".into(), 1_500_000_000, 10)],
            frequencies: vec![(1_200_000, 3), (2_300_000, 1)],
            busy_khz: 1_499_999,
            energy: None,
            migrations: 7,
            wakeups: 80,
            context_switches: 160,
            profiled_ns: 1_000,
            functions: functions.iter().map(function).collect(),
        }
    }

    #[test]
    fn differences_are_of_shares_and_the_largest_comes_first() {
        let (a, b) = (observed(&[("x", 100, 500), ("y", 10, 10)]), observed(&[("x", 130, 500), ("z", 100, 100)]));
        let [a, b] = [&a, &b].map(|observed| Side { arm: "x", kernel: "v4.15", observed });
        let all = differences(&a, &b);
        let told: Vec<(&str, i64)> = all.iter().map(|it| (it.name, (it.points() * 10.0).round() as i64)).collect();
        assert_eq!(told, [("z", 100), ("x", 30), ("y", -10)]);
        assert!(differences(&a, &a).is_empty());
    }

    #[test]
    fn a_function_that_was_renamed_is_compared_with_itself() {
        let old = [("sys_read", 100, 100), ("__wake_up_sync_key", 50, 50), ("rebalance_domains", 10, 10)];
        let new = [("ksys_read", 130, 130), ("psi_group_change", 40, 40), ("sched_balance_domains", 10, 10)];
        let (old, new) = (observed(&old), observed(&new));
        let old = Side { arm: "old", kernel: "v4.15", observed: &old };
        let new = Side { arm: "new", kernel: "v6.12", observed: &new };
        let told = |a: &Side, b: &Side| {
            let line = |it: &Difference| format!("{} {} {:+.0}", it.name, it.renamed.unwrap_or("-"), it.points());
            differences(a, b).iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(told(&old, &new), ["__wake_up_sync_key - -5", "psi_group_change - +4", "sys_read ksys_read +3"]);
        assert_eq!(told(&new, &old), ["__wake_up_sync_key - +5", "psi_group_change - -4", "ksys_read sys_read -3"]);
        let mut html = String::new();
        add_difference(&mut html, &old, &new);
        assert!(html.contains("<td><code>sys_read</code>, <code>ksys_read</code></td>"), "{html}");
    }

    #[test]
    fn counts_are_rates_and_bars_have_words() {
        let mut html = String::new();
        add_counts(&mut html, &observed(&[]), false);
        assert!(
            html.starts_with("<td>1 of 2</td><td>25.0%</td><td>1500</td><td>160</td><td>80</td><td>7</td>"),
            "{html}"
        );
        assert!(html.contains("aria-label=\"C1 75.0%\"") && html.contains("1200 MHz 75.0%, 2300 MHz 25.0%"), "{html}");
        let taken = EnergyTaken {
            domains: vec![("0-1".to_string(), 500_000_000, 0)],
            packages: vec![(500_000_000, 1_000_000_000)],
            total_nj: 1_500_000_000,
        };
        let mut html = String::new();
        add_counts(&mut html, &Observed { energy: Some(taken), ..observed(&[]) }, true);
        assert!(html.contains("<td>7</td><td>1500.000</td><td>1.500</td><td class"), "{html}");
    }
}
