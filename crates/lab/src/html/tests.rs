//! Checks the page's structure without a browser: it is well-formed, self-contained and complete, and the texts in it
//! cannot break it.

use super::*;
use crate::experiment::{Plan, Purpose, parse};
use crate::machines::tests::Table as NoFiles;
use crate::measured::{self, Host, Measured, MeasuredOutcome, MeasuredRecord};
use crate::record::{Ending, Outcome};
use crate::report::{Report, Runs, comparison};
use roxmltree::{Document as Xml, Node, ParsingOptions};
use std::collections::BTreeMap;

const TEXT: &str = "\
name = \"page\"
about = \"\"\"
what <one> & another
kernel do
\"\"\"
machine = \"core-i7-3770\"
iterations = 3

[[workload]]
name = \"pipetest\"
title = \"<b>pipes</b> & \\\"quotes\\\"\"
batches = 5
loops = 1

[[workload]]
name = \"hackbench-pipes\"
groups = [1, 2, 4, 8]
loops = 1
published = { source = \"x\", 1 = 0.001, 4 = 0.004 }

[[arm]]
name = \"a<script>\"
kernel = \"v4.15\"

[[arm]]
name = \"b\"
kernel = \"v4.16\"
";

fn made_up(job: &Job, rows: usize) -> Outcome {
    let sample =
        1_000_000 + 50_000 * job.point as u64 - 30_000 * job.arm as u64 + u64::from(job.iteration * 7 % 5) * 900;
    Outcome {
        end: Ending::Finished,
        samples: vec![(0..5).map(|batch| sample + batch).collect(); rows],
        reported: Vec::new(),
        events: 1,
        context_switches: 0,
        wakeups: 0,
        simulated_ns: 1,
        warnings: vec!["a <warning> & more".to_string().into()],
        digest: String::new(),
    }
}

fn observed(job: &Job) -> Observed {
    let function =
        |name: &str, self_ns| crate::observed::FunctionTime { name: name.into(), self_ns, children_ns: self_ns };
    Observed {
        duration_ns: 1_000_000,
        busy_ns: vec![900_000; 8],
        idle: vec![("C1".into(), 800_000, 3)],
        frequencies: Vec::new(),
        busy_khz: 0,
        energy: None,
        migrations: 3,
        wakeups: 5,
        context_switches: 9,
        profiled_ns: 1_000,
        functions: vec![function("schedule", 100 + 50 * job.arm as u64), function("main", 600)],
    }
}

fn page() -> String {
    page_of(&|_| true)
}

/// The page when only these runs are done.
fn page_of(done: &dyn Fn(&Job) -> bool) -> String {
    report_of(done, None).html.expect("a comparison has a page")
}

fn experiment() -> Experiment {
    parse(TEXT, "x.toml").and_then(|draft| draft.resolve(Purpose::Comparison, &NoFiles::default())).unwrap()
}

fn report_of(done: &dyn Fn(&Job) -> bool, measured: Option<&Measured>) -> Report {
    let experiment = experiment();
    let plan = Plan::first(&experiment);
    let jobs: Vec<Job> = plan.jobs(&experiment).into_iter().filter(done).collect();
    let rows = |job: &Job| experiment.tables[job.table].points[job.point].operations.len();
    let outcomes: BTreeMap<Job, Outcome> = jobs.iter().map(|job| (*job, made_up(job, rows(job)))).collect();
    let seen: BTreeMap<Job, Observed> = jobs.iter().map(|job| (*job, observed(job))).collect();
    let runs = Runs { outcome: &|job| outcomes.get(job), observed: &|job| seen.get(job), cpu_seconds: 1.0 };
    comparison(&experiment, measured, &plan, &runs)
}

/// hackbench's first two rows; the second was not measured to the end.
fn measurements() -> Measured {
    let host = Host { cpu_model: "A <b>CPU</b>".to_string(), ..measured::tests::host() };
    let experiment = experiment();
    let record = |point: usize| {
        let outcome = MeasuredOutcome {
            samples: vec![vec![500_000 * (point as u64 + 1)]],
            elapsed_ns: 5,
            began: "2026-01-01 00:00".to_string(),
            others_busy_permille: None,
            stolen_permille: None,
            differs: String::new(),
        };
        MeasuredRecord::new(host.clone(), experiment.tables[1].workload(point), 0, outcome)
    };
    let unfinished = vec![experiment.tables[1].workload(1)];
    Measured { from: "there".to_string(), records: vec![record(0), record(1)], unfinished }
}

pub(crate) fn read(page: &str) -> Xml<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Xml::parse_with_options(page, options).expect("well-formed")
}

pub(crate) fn named<'a>(of: Node<'a, 'a>, name: &'static str) -> Vec<Node<'a, 'a>> {
    of.descendants().filter(|node| node.tag_name().name() == name).collect()
}

pub(crate) fn words(of: Node) -> String {
    of.descendants().filter_map(|node| node.text().filter(|_| node.is_text())).collect()
}

#[test]
fn the_page_is_whole() {
    let page = page();
    let xml = read(&page);
    let root = xml.root_element();
    let about = "what <one> & another\nkernel do";
    assert_eq!(words(named(root, "p")[0]), about);
    let json: serde_json::Value = serde_json::from_str(&report_of(&|_| true, None).json).unwrap();
    assert_eq!(json["about"], about);
    let sections = named(root, "section");
    assert_eq!(sections.len(), 3, "two tables and how to replay");
    // pipetest has its 17 statistics of 2018, except two that tell how far samples lie apart; hackbench has its four
    // keys. Each has a verdict, two plots and MMTests's text.
    for (section, rows) in sections.iter().zip([15, 4]) {
        let table = named(*section, "table")[0];
        assert_eq!(named(named(table, "tbody")[0], "tr").len(), rows);
        assert_eq!(named(*section, "figure").len(), 2);
        assert_eq!(section.descendants().filter(|it| it.attribute("class") == Some("verdict")).count(), 1);
        assert_eq!(named(*section, "pre").len(), 1);
        assert!(words(*section).contains("What the machine did") && words(*section).contains("schedule"));
    }
    // With keys there is a curve for each arm and the published column; with names there is none.
    assert_eq!(named(sections[0], "polyline").len(), 0);
    assert_eq!(named(sections[1], "polyline").len(), 2 + 1 + 1);
    assert_eq!(
        named(sections[1], "thead")[0].descendants().filter(|it| it.tag_name().name() == "th").count(),
        2 + 2 + 3 + 2
    );
    assert!(words(sections[2]).contains("fairground replay records/"));
    // Links inside the page lead somewhere.
    for link in named(root, "a") {
        let target = link.attribute("href").and_then(|href| href.strip_prefix('#')).expect("a place on the page");
        assert!(root.descendants().any(|it| it.attribute("id") == Some(target)), "{target}");
    }
}

#[test]
fn a_row_of_one_pair_does_not_silence_its_table() {
    let contents = |page: String| -> Vec<String> {
        let xml = read(&page);
        named(named(xml.root_element(), "ul")[0], "li").into_iter().map(words).collect()
    };
    let lines = contents(page_of(&|job| (job.table, job.point) != (1, 3) || job.iteration == 0));
    assert!(lines[1].contains("b: 3 gain, 0 lose, 1 noise"), "{lines:?}");
    let lines = contents(page_of(&|job| job.iteration == 0));
    assert!(lines[1].ends_with(": no verdict"), "{lines:?}");
}

#[test]
fn predictions_beside_measurements_are_the_texts() {
    let report = report_of(&|_| true, Some(&measurements()));
    let page = report.html.expect("a comparison has a page");
    let xml = read(&page);
    let root = xml.root_element();
    let section = root.descendants().find(|it| it.attribute("id") == Some("measured")).expect("a section");
    assert!(words(section).contains("A <b>CPU</b>, CPUs 0-1, Linux 6.1.0 #1; there"), "{}", words(section));
    assert!(named(root, "a").iter().any(|link| link.attribute("href") == Some("#measured")));
    let beside = report.text.split_once("predicted against measured").expect("below the tables").1;
    let rows = named(named(section, "tbody")[0], "tr");
    assert_eq!((rows.len(), beside.lines().count()), (2, 3 + 2 + 1), "{beside}");
    // Both say, above the rows, what disturbed the measurements.
    let disturbed = beside.lines().nth(1).expect("a line");
    assert!(disturbed.starts_with("measured while others used up to "), "{disturbed}");
    assert!(words(section).contains(disturbed), "{}", words(section));
    for (row, line) in rows.into_iter().zip(beside.lines().skip(3)) {
        for cell in named(row, "td")
            .into_iter()
            .map(words)
            .flat_map(|cell| cell.split(" to ").map(String::from).collect::<Vec<_>>())
        {
            assert!(line.contains(&cell), "{cell} of {line}");
        }
    }
    assert!(words(section).contains(beside.lines().last().expect("what is unfinished")));
    assert!(!self::page().contains("id=\"measured\""));
}

#[test]
fn the_page_needs_nothing_else() {
    let page = page();
    let xml = read(&page);
    for node in xml.root_element().descendants() {
        assert!(!["script", "link", "img", "iframe", "image", "use"].contains(&node.tag_name().name()));
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!["src", "srcset", "data", "action"].contains(&name) && !name.starts_with("on"), "{name}={value}");
            assert!(name != "href" || value.starts_with('#'), "{value}");
        }
    }
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    assert!(STYLE.contains("prefers-color-scheme: dark") && page.contains("name=\"viewport\""));
}

#[test]
fn texts_of_users_stay_texts() {
    let page = page();
    assert!(!page.contains("<script>") && !page.contains("<b>pipes") && !page.contains("<warning>"));
    let xml = read(&page);
    let headings: Vec<String> = named(xml.root_element(), "h2").into_iter().map(words).collect();
    assert_eq!(headings[0], "<b>pipes</b> & \"quotes\"");
    assert_eq!(escaped("<a href=\"x\">'&'\u{1}\n"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;\u{fffd}\n");
}

#[test]
fn every_drawing_says_what_it_is() {
    let page = page();
    let xml = read(&page);
    for svg in named(xml.root_element(), "svg") {
        let told = svg.attribute("aria-label").is_some_and(|label| !label.is_empty());
        assert!(told || svg.attribute("aria-hidden") == Some("true"));
        assert!(svg.attribute("viewBox").is_some());
    }
    assert_eq!(page, self::page(), "the same runs, the same bytes");
}
