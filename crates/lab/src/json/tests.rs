//! The document against its schema, and its numbers.

use serde_json::json;

use super::schema::{errors_in, schema};
use super::*;
use crate::energy::{DomainResult, Each, EnergyResult, FromStart, PackageResult, StateResult};
use crate::experiment::{Draft, resolve_arm};
use crate::powercap::{PackageLimitResult, PowerLimitResult};
use crate::residency::{Clock, CoreResidency, CpuResidency, FrequencyResidency, PackageTimes, StateResidency};
use crate::tables::Published;
use crate::tables::fixtures::{generator, hackbench, pipetest, throughput};

pub(crate) fn document(tables: &[Table]) -> Document {
    let machine = json!({"name": "xeon-e5-2670v3-2s", "cpus": 48});
    let mut draft = Draft::default();
    let arms =
        [("vanilla", "v4.5-rc1"), ("nostats", "v4.5-rc1,stats.schedstats=tunable"), ("other", "v4.16,NO_SIS_PROP")];
    let arms = arms.map(|(name, kernel)| draft.arm_option(&format!("{name}={kernel}")));
    let arms = arms.iter().map(|arm| ArmDefinition::of(&resolve_arm(arm, 48, 250).expect("an arm"))).collect();
    let subject = Subject {
        about: None,
        machine,
        seed: 7,
        iterations: 3,
        adaptive: None,
        costs: true,
        vintage: Vintage::Now,
        arms,
    };
    Document::new("0.1.0", subject, tables, generator, 123_456, 1.5)
}

/// Every property that an object of the schema declares, by the definition's name ("" is the document).
fn declared() -> BTreeMap<String, Vec<String>> {
    let root = schema().root;
    let names = |schema: &Value| schema["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut all = BTreeMap::from([(String::new(), names(&root))]);
    all.extend(root["$defs"].as_object().unwrap().iter().map(|(name, part)| (name.clone(), names(part))));
    all
}

fn keys(value: &Value) -> Vec<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

fn energy() -> EnergyResult {
    let idle = vec![StateResult { state: "C1".into(), nj: 9 }];
    EnergyResult {
        domains: vec![DomainResult { cpus: "0".into(), executing_nj: 100, idle }],
        packages: vec![PackageResult { cores_nj: 109, own_nj: 1 }],
        total_nj: 110,
        from_start: FromStart {
            duration_ns: 500,
            total_nj: 90,
            each: Some(Each { operation: "loop".into(), nj: 9.5 }),
        },
    }
}

#[test]
fn a_rendered_document_has_exactly_the_keys_of_the_schema() {
    let mut named = hackbench(3, 7);
    named.name = Some("pipes".into());
    named.published = Some(Published { source: "a changelog".into(), rows: vec![("1".into(), 0.0637)] });
    let mut document = document(&[named, pipetest(2, 1), throughput(2, 3)]);
    let predicted = serde_json::json!({
        "workload": "pipetest", "label": "Mean", "unit": "us", "measured": 1.0, "measured_low": 0.9, "measured_high": 1.1,
        "iterations": 3, "predictions": [{ "arm": "a", "predicted": 1.0, "difference_percent": 0.0 }]
    });
    document.about = Some("two kernels".into());
    document.adaptive = Some(AdaptiveResult { min: 2, max: 3, half_width: 1.5 });
    document.measured = Some(serde_json::json!({ "from": "x", "host": {}, "rows": [predicted],
        "unfinished": [{ "workload": "pipetest", "iterations": 1 }] }));
    let states = vec![StateResidency { state: "C1".into(), ns: 900, entries: 3 }];
    let frequencies = vec![FrequencyResidency { khz: 2_000_000, ns: 1000, executed_ns: Some(100) }];
    let arms = vec![WarnedArm { name: "vanilla".into(), runs: 2 }];
    document.warnings = vec![WarningResult { text: "refused at 1.000 ms".into(), same_moment: false, arms }];
    document.residency = vec![RunResidency {
        run: "pipetest, a, iteration 1".into(),
        duration_ns: 1000,
        cpus: vec![CpuResidency { cpu: 0, executing_ns: 100, idle: states }],
        clock: Clock::Fixed,
        packages: vec![PackageTimes { idle_ns: 800, entries: 1 }],
        cores: vec![CoreResidency { cpu: 0, busy_khz: 2_000_000, changes: 0, frequencies }],
        energy: Some(energy()),
        power_limit: Some(PowerLimitResult {
            limit_uw: 2_000_000,
            window_us: 1000,
            packages: vec![PackageLimitResult { held_ns: 1000, mean_uw: 1_990_000 }],
        }),
    }];
    let value: Value = serde_json::from_str(&document.to_text()).unwrap();
    assert_eq!(errors_in(&value), [] as [String; 0]);

    // The walk above finds undeclared properties. This checks the converse: everything declared is printed.
    let table = &value["tables"][0];
    let row = &table["rows"][0];
    let printed = BTreeMap::from([
        (String::new(), keys(&value)),
        ("adaptive".to_string(), keys(&value["adaptive"])),
        ("arm".to_string(), keys(&row["arms"][0])),
        ("arm_verdict".to_string(), keys(&table["verdict"]["arms"][0])),
        ("change".to_string(), keys(&row["change"][0])),
        ("definition".to_string(), keys(&value["arms"][0])),
        ("each".to_string(), keys(&value["residency"][0]["energy"]["from_start"]["each"])),
        ("energy".to_string(), keys(&value["residency"][0]["energy"])),
        ("from_start".to_string(), keys(&value["residency"][0]["energy"]["from_start"])),
        ("predicted".to_string(), keys(&value["measured"]["rows"][0])),
        ("residency".to_string(), keys(&value["residency"][0])),
        ("row".to_string(), keys(row)),
        ("table".to_string(), keys(table)),
        ("verdict".to_string(), keys(&table["verdict"])),
        ("warning".to_string(), keys(&value["warnings"][0])),
    ]);
    assert_eq!(printed, declared());
}

#[test]
fn the_walk_finds_what_is_wrong() {
    let good: Value = serde_json::from_str(&document(&[hackbench(2, 2)]).to_text()).unwrap();
    let broken = |pointer: &str, new: Value| {
        let mut value = good.clone();
        *value.pointer_mut(pointer).unwrap() = new;
        errors_in(&value)
    };
    assert_eq!(broken("/events", json!(-1)), ["/events: minimum"]);
    assert_eq!(broken("/tables/0/better", json!("faster")), ["/tables/0/better: enum"]);
    assert_eq!(broken("/tables/0/rows/0/arms/1/samples", json!([])), ["/tables/0/rows/0/arms/1/samples: minItems"]);
    assert_eq!(broken("/arms/0/hz", json!(0)), ["/arms/0/hz: minimum"]);
    assert_eq!(broken("/arms/0/features/TTWU_QUEUE", json!(1)), ["/arms/0/features/TTWU_QUEUE: type"]);
    assert_eq!(broken("/tables/0/rows/0/change/0/low", json!("?")), ["/tables/0/rows/0/change/0/low: type"]);
    let mut value = good.clone();
    value["tables"][0].as_object_mut().unwrap().remove("unit");
    value["tables"][0]["units"] = json!("s");
    assert_eq!(errors_in(&value), ["/tables/0: \"unit\" is missing", "/tables/0: units is not known"]);
}

#[test]
fn numbers_survive_the_text_and_equal_documents_are_equal_bytes() {
    let tables = [hackbench(2, 7), throughput(3, 3)];
    let first = document(&tables);
    assert_eq!(first.to_text(), document(&tables).to_text());
    assert_eq!(serde_json::from_str::<Document>(&first.to_text()).unwrap(), first);
    assert!(first.to_text().contains("\"samples\": [\n                0.167,"), "{}", first.to_text());
}

#[test]
fn members_stand_in_the_order_of_the_issue() {
    let text = document(&[hackbench(2, 1)]).to_text();
    let order = [
        "fairground",
        "machine",
        "seed",
        "iterations",
        "costs",
        "arms",
        "kernel",
        "hz",
        "set",
        "behaviours",
        "features",
        "sysctls",
        "tables",
        "workload",
        "parameters",
        "statistic",
        "unit",
        "better",
        "rows",
        "label",
        "arms",
        "name",
        "samples",
        "n",
        "mean",
        "stddev",
        "min",
        "max",
        "change",
        "arm",
        "percent",
        "low",
        "high",
        "significant",
        "p",
        "verdict",
        "verdict",
        "text",
        "method",
        "comparisons",
        "pairs",
        "arms",
        "gains",
        "losses",
        "noise",
        "events",
        "cpu_seconds",
    ];
    let mut rest = text.as_str();
    for name in order {
        let key = format!("\"{name}\":");
        let at = rest.find(&key).unwrap_or_else(|| panic!("{name} is out of order"));
        rest = &rest[at + key.len()..];
    }
}

#[test]
fn one_iteration_has_a_change_but_no_interval() {
    let result = TableResult::new(&pipetest(2, 1), Vintage::Now, &generator);
    let row = &result.rows[9];
    assert_eq!((row.label.as_str(), row.arms[0].n, row.arms[0].stddev), ("Mean", 1, None));
    assert_eq!(row.arms[0].samples, [row.arms[0].mean.unwrap()]);
    let change = &row.change[0];
    assert!((change.percent.unwrap() - 2.0).abs() < 0.01);
    assert_eq!((change.low, change.high, change.significant), (None, None, false));
}

#[test]
fn several_iterations_state_the_mean_of_each_statistic() {
    let table = pipetest(2, 4);
    let result = TableResult::new(&table, Vintage::Now, &generator);
    let worst: Vec<f64> =
        table.operations[0].arms[1].iter().map(|batches| batches.iter().copied().fold(0.0, f64::max)).collect();
    let row = result.rows.iter().find(|row| row.label == "Max").unwrap();
    assert_eq!(row.arms[1].samples, worst);
    assert_eq!(row.arms[1].mean, Some(worst.iter().sum::<f64>() / 4.0));
    let change = &row.change[0];
    let (low, percent, high) = (change.low.unwrap(), change.percent.unwrap(), change.high.unwrap());
    assert!(low <= percent && percent <= high && low > 0.0 && change.significant, "{change:?}");
}

#[test]
fn an_invalid_harmonic_mean_is_null() {
    let mut table = throughput(2, 2);
    table.operations[0].arms[1][0][3] = 0.0;
    let row = &TableResult::new(&table, Vintage::Now, &generator).rows[0];
    assert_eq!((row.arms[1].samples[0], row.arms[1].mean), (0.0, None));
    assert_eq!(row.change[0].percent, None);
    assert!(!row.change[0].significant);
}

#[test]
fn a_missing_partner_leaves_the_interval_but_not_the_samples() {
    let mut table = hackbench(2, 7);
    table.operations[0].arms[1].truncate(5);
    let row = &TableResult::new(&table, Vintage::Now, &generator).rows[0];
    assert_eq!((row.arms[0].n, row.arms[1].n), (7, 5));
    let paired = hackbench(2, 5);
    let other = &TableResult::new(&paired, Vintage::Now, &generator).rows[0];
    assert_eq!((row.change[0].low, row.change[0].high), (other.change[0].low, other.change[0].high));
}
