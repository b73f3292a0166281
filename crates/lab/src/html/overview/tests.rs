//! The page's structure, and that it says what its documents say.

use super::*;
use crate::html::tests::{named, read, words};
use crate::json::tests::document;
use crate::tables::Published;
use crate::tables::fixtures::{hackbench, pipetest};

const STUDY: Study = Study { name: "a<study>", about: "what \"it\" does & why", experiments: &[] };

/// A study with three experiments: one of two tables, one that broke off, and one without any stored run.
fn page() -> String {
    let mut levels = hackbench(3, 7);
    let mean = |row: usize| levels.operations[row].arms[0].concat().iter().sum::<f64>() / 7.0;
    // Changes just within 10%, within 25%, and beyond.
    let rows = [(0, 1.05), (1, 0.85), (2, 2.0)].map(|(row, by)| (levels.operations[row].label.clone(), mean(row) * by));
    levels.published = Some(Published { source: "x".to_string(), rows: rows.to_vec() });
    let document = document(&[levels, pipetest(3, 7)]);
    let part = |name, folder, state| Part { name, folder, state };
    let parts = vec![
        part("one", "one-12345678", State::Done("report.html", &document)),
        part("two", "two-12345678", State::Partial("report.partial.html")),
        part("three", "three-12345678", State::Missing),
    ];
    overview(&[(&STUDY, parts), (&STUDY, Vec::new())])
}

#[test]
fn every_table_has_a_line_for_each_arm() {
    let page = page();
    let xml = read(&page);
    let root = xml.root_element();
    let lines = named(named(root, "tbody")[0], "tr");
    assert_eq!(lines.len(), 2 * 2, "two tables, two arms beside the base");
    let cells = |line: usize| named(lines[line], "td").into_iter().map(words).collect::<Vec<String>>();
    let first = cells(0);
    assert_eq!((first[0].as_str(), first[2].as_str()), ("hackbench-pipes", "3"));
    let counts: Vec<usize> = first[3..6].iter().map(|count| count.parse().unwrap()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 3);
    assert_eq!(first[10..], ["1 of 3", "2 of 3"], "within 10% and 25%");
    // The level is the base's, so it is printed once for each table.
    assert_eq!((cells(1)[0].as_str(), cells(1)[10].as_str(), cells(2)[10].as_str()), ("", "", ""));
    assert_eq!(named(lines[2], "line").len(), 17 + 1, "a stroke for each row, and the middle");
    assert!(words(named(root, "pre")[0]).lines().count() == 2);
    let said = words(named(root, "ul")[0]);
    assert!(
        said.contains("1 of 3 experiments, 2 tables; begun: 1; level within 25% of the published one in 2 of 3 rows"),
        "{said}"
    );
    assert!(page.contains("PARTIAL: runs are missing") && said.contains("no results"));
}

#[test]
fn links_lead_to_the_reports_beside_it_and_nothing_is_loaded() {
    let page = page();
    let xml = read(&page);
    let root = xml.root_element();
    let links: Vec<&str> = named(root, "a").iter().map(|link| link.attribute("href").expect("a link")).collect();
    let (own, others): (Vec<&str>, Vec<&str>) = links.into_iter().partition(|link| link.starts_with('#'));
    for target in own {
        assert!(root.descendants().any(|it| it.attribute("id") == target.strip_prefix('#')), "{target}");
    }
    let report = "one-12345678/report.html";
    let tables = [0, 1].map(|table| format!("{report}#table-{table}"));
    assert_eq!(others, [report, &tables[0], &tables[1], "two-12345678/report.partial.html"]);
    for node in root.descendants() {
        assert!(!["script", "link", "img", "iframe", "image", "use"].contains(&node.tag_name().name()));
        assert!(node.attributes().all(|it| !["src", "srcset", "data", "action"].contains(&it.name())));
    }
    assert!(page.contains(MARK) && page.contains("a&lt;study&gt;") && page.contains("&quot;it&quot; does &amp; why"));
}
