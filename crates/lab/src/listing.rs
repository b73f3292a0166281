//! Lists machines, kernels and workloads as text.

use crate::boot::PARAMETERS;
use crate::kernels::{Build, diff, names, version};
use crate::machines::Machine;
use machine::description::{Description, Fact, Figure, HERTZ, How, builtin};
use machine::topology::{Distance, Topology};
use sched::behaviour::{Rules, Variant};
use sched::features::Feature;
use sched::stats::Schedstats;
use sched::sysctl::{Scaling, Tunable};
use sched::versions::releases;
use std::fmt::Write;
use workloads::{Summary, Workload};

/// One line for each machine that ships.
pub fn machines() -> String {
    let mut text = String::new();
    for (name, _) in builtin() {
        let machine = Machine::named(name).expect("a machine that ships");
        let description = &machine.description;
        let _ = writeln!(text, "{name:<24}{}", description.topology().summary());
    }
    text
}

/// A machine and all its figures, each with its range, origin and source.
pub fn machine(machine: &Machine) -> String {
    let description = &machine.description;
    let mut text = format!("{}\n{}\n\n", machine.name, description.about());
    let topology = description.topology();
    let distances: Vec<String> = topology.distances().iter().map(|distance| distance.name()).collect();
    for (name, fact) in facts(description) {
        let value = if name == TOPOLOGY { topology.summary() } else { fact.value.clone() };
        let _ = writeln!(text, "{} {name}  {value} ({}: {})", mark(fact.how), fact.how.name(), fact.source);
        if name == TOPOLOGY {
            let _ = writeln!(text, "  distances {}", distances.join(", "));
            let _ = writeln!(text, "  memory    {}", memory(topology));
        }
    }
    text.push('\n');
    text.push_str(&figures(description));
    text.push('\n');
    text.push_str(&rests_on(description));
    text
}

const TOPOLOGY: &str = "topology";

/// The facts in words, the topology first.
fn facts(description: &Description) -> impl Iterator<Item = (&str, &Fact)> {
    std::iter::once((TOPOLOGY, description.topology_fact())).chain(description.facts())
}

/// Makes guesses stand out.
fn mark(how: How) -> char {
    if how == How::Guess { '?' } else { ' ' }
}

/// The classes of distance to memory: those of `[memory]`.
fn memory(topology: &Topology) -> String {
    let name = |distance: &Distance| match distance {
        Distance::Same => "local".to_string(),
        distance => distance.name(),
    };
    let classes: Vec<String> = topology.memory_distances().iter().map(name).collect();
    let nodes = topology.nodes().iter().enumerate();
    let without: Vec<usize> = nodes.filter(|(_, node)| node.cpus.is_empty()).map(|(index, _)| index).collect();
    let without = if without.is_empty() { String::new() } else { format!(" (nodes without CPUs: {})", runs(&without)) };
    format!("{}{without}", classes.join(", "))
}

/// Ascending numbers as the kernel lists CPUs and nodes: `0-3,8`.
pub fn runs(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run =
        |&(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

/// What a conclusion on this machine rests on: how its figures were obtained, and, by section, what was guessed or
/// fitted.
fn rests_on(description: &Description) -> String {
    let mut text = String::from("What a conclusion on this machine rests on\n");
    let counts = |all: Vec<How>| {
        let hows = How::ALL.map(|how| (how, all.iter().filter(|&&other| other == how).count()));
        let counts = hows.iter().filter(|(_, count)| *count > 0).map(|(how, count)| format!("{count} {}", how.name()));
        counts.collect::<Vec<String>>().join(", ")
    };
    let _ = writeln!(text, "figures: {}", counts(description.figures().map(|(_, figure)| figure.how).collect()));
    let _ = writeln!(text, "facts: {}", counts(facts(description).map(|(_, fact)| fact.how).collect()));
    let guessed: Vec<&str> =
        facts(description).filter(|(_, fact)| fact.how == How::Guess).map(|(name, _)| name).collect();
    if !guessed.is_empty() {
        let _ = writeln!(text, "guessed facts: {}", guessed.join(", "));
    }
    let mut sections: Vec<(&str, Vec<(&str, &Figure)>)> = Vec::new();
    let uncertain = |figure: &Figure| matches!(figure.how, How::Guess | How::Fitted);
    for (name, figure) in description.figures().filter(|(_, figure)| uncertain(figure)) {
        let section = name.split_once('.').map_or(name, |(section, _)| section);
        match sections.iter_mut().find(|(other, _)| *other == section) {
            Some((_, figures)) => figures.push((name, figure)),
            None => sections.push((section, vec![(name, figure)])),
        }
    }
    for (section, mut figures) in sections {
        // Sorted by how far a figure may be from its assumed value, the widest range first.
        let room = |figure: &Figure| figure.range.1 as f64 / figure.range.0.max(1) as f64;
        figures.sort_by(|a, b| room(b.1).total_cmp(&room(a.1)));
        let widest: Vec<String> = figures
            .iter()
            .take(3)
            .map(|(name, figure)| {
                let unit = figure.unit;
                if figure.range.0 == figure.range.1 {
                    return format!("{name} {} {} without room", unit.text(figure.value), unit.name);
                }
                format!("{name} {} to {} {}", unit.text(figure.range.0), unit.text(figure.range.1), unit.name)
            })
            .collect();
        let rest = figures.len().saturating_sub(3);
        let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
        let has = |how| figures.iter().any(|(_, figure)| figure.how == how);
        let what = match (has(How::Guess), has(How::Fitted)) {
            (true, true) => "guesses and fitted figures",
            (false, true) => "fitted figures",
            _ => "guesses",
        };
        let _ = writeln!(text, "{what} in [{section}]: {}{more}", widest.join(", "));
    }
    text.push_str(
        "`fairground sensitivity` says on which of those with room in their range an experiment's result depends.\n",
    );
    text
}

fn figures(description: &Description) -> String {
    let value = |figure: &Figure| format!("{} {}", figure.unit.text(figure.value), figure.unit.name);
    let range =
        |figure: &Figure| format!("{} to {}", figure.unit.text(figure.range.0), figure.unit.text(figure.range.1));
    let widest = |width: &dyn Fn(&str, &Figure) -> usize| {
        description.figures().map(|(name, figure)| width(name, figure)).max().unwrap_or(0)
    };
    let names = widest(&|name, _| name.len());
    let (values, ranges) = (widest(&|_, figure| value(figure).len()), widest(&|_, figure| range(figure).len()));
    let mut text = String::new();
    for (name, figure) in description.figures() {
        let (mark, value, range, how) = (mark(figure.how), value(figure), range(figure), figure.how.name());
        let _ =
            writeln!(text, "{mark} {name:<names$}  {value:<values$}  {range:<ranges$}  {how:<10} {}", figure.source);
    }
    text
}

/// One line for each kernel.
pub fn kernels() -> String {
    let mut text = String::new();
    for name in names() {
        let build = Build::named(name).expect("a kernel that is built");
        let schedstats = match build.sched.schedstats {
            Schedstats::Always => "schedstats always on",
            Schedstats::Tunable => "schedstats tunable",
        };
        let on = build.sched.features.iter().count();
        let _ = writeln!(text, "{name:<12}{} behaviours, {on} features, {schedstats}", build.settings().len());
    }
    let between: Vec<&str> = releases().iter().map(|release| release.name).collect();
    let _ = writeln!(text, "\nNot read whole, but the kernel before with what came since (docs/kernels.md):");
    for line in between.chunks(12) {
        let _ = writeln!(text, "{}", line.join(" "));
    }
    text
}

/// The first version that has a variant, and its commit, or why none is named; then those that have it again.
fn since(variant: &Variant) -> String {
    let first = match (variant.since, variant.commit) {
        ("none", _) => "in no release".to_string(),
        (since, commit) if !commit.is_empty() => format!("since {since}, {commit}"),
        // Whatever the oldest kernel here already had has no commit that could be looked up.
        // v4.5 or older.
        (since, _) if version(since).is_some_and(|since| since <= (4, 5)) => {
            format!("since {since}, before the first kernel here")
        }
        ("before v4.5", _) => "before the first kernel here".to_string(),
        (since, _) => format!("since {since}, commit not confirmed"),
    };
    variant.again.iter().fold(first, |text, release| format!("{text}; again since {release}"))
}

/// A kernel: behaviours, features, tunables, parameters.
pub fn kernel(build: &Build) -> String {
    let mut text = format!("{}\n", build.sched.name);
    if let Some(caution) = build.not_read_whole() {
        let _ = writeln!(text, "{caution}");
    }
    text.push_str("\nBehaviours: KEY=VALUE switches one alone\n");
    let settings = build.settings();
    let width = settings.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    for setting in &settings {
        let _ = writeln!(text, "{:<width$}  {}", setting.key, setting.question());
        // This kernel's own variant comes first.
        let others = setting.choices.iter().filter(|choice| *choice != setting.value);
        for (mark, variant) in std::iter::once(("is", setting.value)).chain(others.map(|other| ("or", other))) {
            let since = if mark == "is" { format!(" ({})", since(variant)) } else { String::new() };
            let _ = writeln!(text, "{:<width$}    {mark} {}: {}{since}", "", variant.name, variant.summary);
        }
    }
    let _ = writeln!(text, "\nFeatures: NAME or NO_NAME");
    for (feature, on) in build.sched.features.iter() {
        let state = if on { "on" } else { "off" };
        let cannot = if feature.has_effect() { "" } else { "; cannot be turned: nothing here reads it" };
        let _ = writeln!(text, "{:<24}{state:<5}{}{cannot}", feature.name(), feature.doc());
    }
    let _ = writeln!(text, "\nTunables: NAME=VALUE, with or without kernel. or sched/");
    let width = build.sched.tunables.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    // The values for one CPU; the text beside them says how more CPUs scale them.
    let defaults = build.sched.sysctl(1);
    for (name, tunable) in build.sched.tunables {
        let row = tunable.row();
        let default = defaults.get(*tunable);
        if let Some(words) = tunable.words() {
            let (default, all) = (words[default as usize], words.join("|"));
            let _ = writeln!(text, "{name:<width$}  {default} ({all}): {}", row.doc);
            continue;
        }
        let scaling = if row.scaling == Scaling::Cpus { ", times 1 + log2 of up to 8 CPUs" } else { "" };
        let (low, high) = tunable.written_range();
        let unlimited = if *tunable == Tunable::sched_rt_runtime { "-1, or " } else { "" };
        let range = format!("{unlimited}{low} to {high}{scaling}");
        let _ = writeln!(text, "{name:<width$}  {default} {} ({range}): {}", row.unit, row.doc);
    }
    let _ = writeln!(text, "\nCommand line: NAME=VALUE, or NAME alone");
    for parameter in PARAMETERS.iter().filter(|parameter| (parameter.has)(build)) {
        let values: Vec<&str> = parameter.values_of(build).collect();
        let equals = if parameter.is_switch() { "" } else { "=" };
        let _ = writeln!(text, "{}{equals}{}: {}", parameter.name, values.join("|"), parameter.meaning);
    }
    let _ = writeln!(text, "hz={}: CONFIG_HZ", HERTZ.map(|hz| hz.to_string()).join("|"));
    let choices: Vec<String> = build.configs().map(|name| format!("{name}=y")).collect();
    let _ = writeln!(text, "{}: its preemption model, {} here", choices.join("|"), build.os.preempt.config());
    text
}

/// The differences between two kernels.
pub fn kernel_diff(a: &Build, b: &Build) -> String {
    let mut text = format!("{} -> {}\n", a.sched.name, b.sched.name);
    let changed = diff(a, b);
    if !changed.is_empty() {
        text.push_str("\nBehaviours\n");
    }
    for (before, after) in &changed {
        let _ = writeln!(text, "{}: {} -> {}", before.key, before.value.name, after.value.name);
        let _ = writeln!(text, "    {}", before.question());
        let _ = writeln!(text, "    was: {} ({})", before.value.summary, since(before.value));
        let _ = writeln!(text, "    is:  {} ({})", after.value.summary, since(after.value));
    }
    let state = |build: &Build, feature: Feature| match (
        build.sched.features.has(feature),
        build.sched.features.sched_feat(feature),
    ) {
        (false, _) => "absent",
        (true, true) => "on",
        (true, false) => "off",
    };
    let features: Vec<Feature> =
        Feature::ALL.iter().copied().filter(|&feature| state(a, feature) != state(b, feature)).collect();
    if !features.is_empty() {
        text.push_str("\nFeatures\n");
    }
    for feature in features {
        let _ =
            writeln!(text, "{}: {} -> {} ({})", feature.name(), state(a, feature), state(b, feature), feature.doc());
    }
    text.push_str(&tunables_between(a, b));
    if text.lines().count() == 1 {
        text.push_str("\nno difference\n");
    }
    text
}

/// The tunables that one kernel has and the other has not, calls otherwise, or boots with another value of.
fn tunables_between(a: &Build, b: &Build) -> String {
    // The values for one CPU; more CPUs scale them in both.
    let (values_a, values_b) = (a.sched.sysctl(1), b.sched.sysctl(1));
    let there =
        |build: &Build, of: Tunable| build.sched.tunables.iter().find(|(_, it)| *it == of).map(|(name, _)| *name);
    let mut lines = Vec::new();
    for &(name, tunable) in a.sched.tunables {
        let Some(after) = there(b, tunable) else { continue };
        let (old, new) = (values_a.get(tunable), values_b.get(tunable));
        if name != after {
            lines.push(format!("{name}: is {after} now"));
        }
        if old != new {
            lines.push(format!("{after}: {old} -> {new}"));
        }
    }
    let missing = |from: &Build, to: &Build, word: &str| {
        let names = from.sched.tunables.iter().filter(|(_, tunable)| there(to, *tunable).is_none());
        names.map(|(name, _)| format!("{name}: {word}")).collect::<Vec<_>>()
    };
    lines.extend(missing(a, b, "gone"));
    lines.extend(missing(b, a, "new"));
    if lines.is_empty() { String::new() } else { format!("\nTunables\n{}\n", lines.join("\n")) }
}

/// One line for each workload.
pub fn workloads() -> String {
    let own = workloads::all().map(|workload| (workload.name, workload.summary));
    let files = [
        (crate::programs::RT_APP, RT_APP_SUMMARY),
        (crate::programs::SCRIPT, SCRIPT_SUMMARY),
        (crate::programs::TRACE, TRACE_SUMMARY),
    ];
    let rows: Vec<(&str, &str)> = own.chain(files).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, summary)| format!("{name:<width$}  {summary}\n")).collect()
}

const RT_APP_SUMMARY: &str = "threads described in an rt-app JSON file (parameter file)";

const SCRIPT_SUMMARY: &str = "tasks described in a few lines of text (parameter file, or tasks in an experiment file)";

const TRACE_SUMMARY: &str = "replay of a recorded trace (parameter file)";

/// A workload and its parameters.
pub fn workload(name: &str) -> Option<String> {
    if name == crate::programs::SCRIPT {
        let text = format!(
            "{name}: {SCRIPT_SUMMARY}\n\nParameters\nfile    path of the script; docs/scripts.md has its grammar\n\
             tasks   the script itself, in an experiment file\n"
        );
        return Some(text);
    }
    if name == crate::programs::TRACE {
        let text = format!(
            "{name}: {TRACE_SUMMARY}\n\nReports us, lower is better\n\nParameters\nfile    path of the recording: Perfetto's, or the text \
             of trace-cmd report or perf script; docs/workloads.md says how to record one\n"
        );
        return Some(text);
    }
    if name == crate::programs::RT_APP {
        let text = format!(
            "{name}: {RT_APP_SUMMARY}\n\nParameters\nfile    path of the description; docs/rt-app.md has its grammar\n"
        );
        return Some(text);
    }
    let workload = workloads::workload(name)?;
    Some(describe(workload))
}

fn describe(workload: &Workload) -> String {
    let better = match workload.statistics {
        Summary::Rate | Summary::SkewedRate | Summary::NormalisedRate | Summary::RateFigure(_) => "higher",
        Summary::Time
        | Summary::SkewedTime
        | Summary::NormalisedTime
        | Summary::Variabletime
        | Summary::TimeFigure(_) => "lower",
    };
    let mut text = format!(
        "{}: {}\n\nReports {}, {better} is better\n\nParameters\n",
        workload.name, workload.summary, workload.unit
    );
    let width = workload.parameters.iter().map(|parameter| parameter.name.len()).max().unwrap_or(0);
    for parameter in workload.parameters {
        let (low, high) = parameter.range;
        let unit = if parameter.unit.is_empty() { String::new() } else { format!(" {}", parameter.unit) };
        let key = if workload.key == Some(parameter.name) { "; a list makes the table's rows" } else { "" };
        let _ = writeln!(
            text,
            "{:<width$}  {} (default {}, {low} to {high}{unit}{key})",
            parameter.name, parameter.doc, parameter.default
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_name_everything() {
        let text = machines();
        assert!(text.contains("xeon-e5-2670v3-2s       2 packages, 2 NUMA nodes"), "{text}");
        let text = kernels();
        assert!(text.contains("v4.5-rc1") && text.contains("schedstats always on") && text.contains("v6.12"));
        let text = workloads();
        assert!(text.contains("pipetest") && text.contains("hackbench-pipes") && text.contains("rt-app"));
        assert!(workload("hackbench-pipes").unwrap().contains("groups"));
        assert!(workload("nothing").is_none());
        let text = workload("schbench").unwrap();
        assert!(text.contains("\nmessengers       message threads (default 1, 1 to 1024 threads)"), "{text}");
        assert!(text.contains("\noperations       multiplications in a request (default 5, 0 to 10000)"), "{text}");
    }

    #[test]
    fn a_kernel_reads_as_a_changelog() {
        let (a, b) = (Build::named("v4.5-rc1").unwrap(), Build::named("v4.15").unwrap());
        let text = kernel_diff(&a, &b);
        assert!(text.contains("stats.schedstats: always -> tunable"), "{text}");
        assert!(text.contains("SIS_PROP: absent -> on"), "{text}");
        assert_eq!(kernel_diff(&a, &a), "v4.5-rc1 -> v4.5-rc1\n\nno difference\n");
        let text = kernel_diff(&b, &Build::named("v6.12").unwrap());
        assert!(text.contains("kernel.sched_latency_ns: gone") && text.contains("sched/base_slice_ns: new"), "{text}");
        assert!(text.contains("\nkernel.sched_migration_cost_ns: is sched/migration_cost_ns now\n"), "{text}");
        let text = kernel(&b);
        assert!(text.contains("pipe.wait") && text.contains("kernel.sched_migration_cost_ns"));
        assert!(text.contains("\nprofile=sleep|schedule: "), "{text}");
        let text = kernel(&Build::named("v6.1").unwrap());
        assert!(text.contains("\nprofile=schedule: "), "what v6.1 ignores is not listed: {text}");
        // Debian builds it this way.
        assert!(text.contains("\nkernel.sched_autogroup_enabled           0 bool"), "{text}");
        let text = kernel_diff(&Build::named("v4.16").unwrap(), &Build::named("v6.1").unwrap());
        assert!(text.contains("\nkernel.sched_autogroup_enabled: 1 -> 0\n"), "{text}");
    }

    #[test]
    fn numbers_are_listed_in_runs() {
        assert_eq!(runs(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(runs(&[5]), "5");
        assert_eq!(runs(&[]), "");
        // It works for any number of them.
        assert_eq!(runs(&(2..1_024).collect::<Vec<usize>>()), "2-1023");
    }

    #[test]
    fn a_machine_shows_its_sources() {
        let text = machine(&Machine::named("xeon-e5-2670v3-2s").unwrap());
        assert!(text.contains("  line.llc") && text.contains("core-to-core latency"), "{text}");
        assert!(text.contains("? line.package") && text.contains("  line.smt"), "{text}");
        assert!(text.contains("\n  distances same, smt, llc, remote_1\n  memory    local, remote_1\n"), "{text}");
        assert!(
            text.contains("\n? disk.interrupts  ") && text.contains("\n  processor.make  intel (vendor: "),
            "{text}"
        );
        let guessed = text.lines().find(|line| line.starts_with("guessed facts: ")).expect("some");
        assert!(guessed.contains("disk.interrupts") && !guessed.contains("processor.make"), "{guessed}");
        let (_, rests) = text.split_once("What a conclusion on this machine rests on\nfigures: ").expect("an end");
        assert!(
            rests.contains(" fitted, ") && rests.contains("\nfitted figures in [cycles_per_instruction]: "),
            "{rests}"
        );
        let distance = text.lines().find(|line| line.starts_with("? topology.distances.21 ")).expect("the table");
        let [value, range, how] = ["21 count", "20 to 31", "guess"].map(|part| distance.find(part).expect("a part"));
        assert!(value < range && range < how && distance.ends_with("the study does not print its table"), "{distance}");
        assert!(rests.contains("guesses in [topology]: topology.distances.21 20 to 31 count\n"), "{rests}");
        assert!(rests.contains("guesses and fitted figures in [idle]: idle.POLL.wake 5 to 200 ns, "), "{rests}");
    }

    #[test]
    fn what_a_machine_rests_on_is_called_what_it_is() {
        let mut description = Machine::named("xeon-e5-2670v3-2s").unwrap().description;
        let line = |description: &Description, section: &str| {
            let of_section = |line: &&str| line.contains(&format!("in [{section}]: "));
            rests_on(description).lines().find(of_section).unwrap().to_string()
        };
        let figures = |description: &Description, how: How| {
            let own = |(name, figure): &(&str, &Figure)| name.starts_with("disk.") && figure.how == how;
            description.figures().filter(own).count()
        };
        assert!(line(&description, "disk").starts_with("guesses in [disk]: "));
        let all = figures(&description, How::Guess);
        let flush = description.figures().find(|(name, _)| *name == "disk.flush").unwrap().1.clone();
        // A guess without a range is still a guess.
        description.replace("disk.flush", Figure { range: (flush.value, flush.value), ..flush.clone() });
        let told = line(&description, "disk");
        assert_eq!((told.split(", ").count(), figures(&description, How::Guess)), (all, all), "{told}");
        assert!(told.contains(", disk.flush ") && told.ends_with(" without room"), "{told}");
        description.replace("disk.flush", Figure { how: How::Fitted, ..flush.clone() });
        assert!(line(&description, "disk").starts_with("guesses and fitted figures in [disk]: disk.flush "));
        let others: Vec<(String, Figure)> = description
            .figures()
            .filter(|(name, figure)| name.starts_with("disk.") && figure.how == How::Guess)
            .map(|(name, figure)| (name.to_string(), Figure { how: How::Fitted, ..figure.clone() }))
            .collect();
        others.into_iter().for_each(|(name, figure)| description.replace(&name, figure));
        assert!(line(&description, "disk").starts_with("fitted figures in [disk]: "));
    }

    #[test]
    fn a_seam_names_its_commit_or_says_why_not() {
        let told = |since, commit| super::since(&Variant { name: "", since, again: &[], commit, summary: "" });
        assert_eq!(told("v4.10", "d3d37d850d1d"), "since v4.10, d3d37d850d1d");
        for old in ["v2.6.23", "v3.13", "v4.5"] {
            assert_eq!(told(old, ""), format!("since {old}, before the first kernel here"));
        }
        assert_eq!(told("before v4.5", ""), "before the first kernel here");
        for later in ["v4.6", "v4.15", "v6.12.y"] {
            assert_eq!(told(later, ""), format!("since {later}, commit not confirmed"));
        }
        assert_eq!(told("none", ""), "in no release");
    }
}
