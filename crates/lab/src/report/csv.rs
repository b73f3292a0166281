//! The document as CSV in one tidy long form, one number per line, for spreadsheets, R and pandas.
//!
//! ```text
//! table,workload,parameters,unit,better,label,arm,measure,iteration,value
//! ```
//!
//! - `table`: the experiment's name for it, else the workload's; `parameters`: `name=value`, joined by `;`, by name.
//! - `measure`: `sample` (one line per iteration, the only measure with an `iteration`, counted from 0), then `n`,
//!   `mean`, `stddev`, `min`, `max` of the samples in `unit`, and for every arm but the base `percent`, `low`, `high`
//!   (per cent, positive is better), `significant` (0 or 1), `p`, and `verdict` (what the row counts as in its table: 1 a
//!   gain, -1 a loss, 0 noise).
//! - `value`: shortest decimal that reads back as the same double; empty where the document has null.
//!
//! Lines end with a newline; fields with a comma, a quote or a line break are quoted as RFC 4180 does. What the
//! document says about the machine and the cost of the runs is not repeated.

use serde_json::Value;

use crate::csv::quoted;
use crate::json::verdict::Finding;
use crate::json::{ArmResult, Change, Document, RowResult, TableResult};
use crate::statistics::Better;

const HEAD: &str = "table,workload,parameters,unit,better,label,arm,measure,iteration,value\n";

/// All tables of `document`, under one head.
pub fn render(document: &Document) -> String {
    let mut text = HEAD.to_string();
    for table in &document.tables {
        for row in &table.rows {
            for arm in &row.arms {
                let change = row.change.iter().find(|change| change.arm == arm.name);
                add_arm(&mut text, &prefix(table, row, arm), arm, change);
            }
        }
    }
    text
}

/// The first seven fields, with the comma that follows them.
fn prefix(table: &TableResult, row: &RowResult, arm: &ArmResult) -> String {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let parameters: Vec<String> = table.parameters.iter().map(|(name, v)| format!("{name}={}", value(v))).collect();
    let better = match table.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
    };
    let fields =
        [table.title(), &table.workload, &parameters.join(";"), &table.unit, better, &row.label, &arm.name].map(quoted);
    format!("{},", fields.join(","))
}

fn add_arm(text: &mut String, prefix: &str, arm: &ArmResult, change: Option<&Change>) {
    for (iteration, &sample) in arm.samples.iter().enumerate() {
        text.push_str(&format!("{prefix}sample,{iteration},{}\n", number(Some(sample))));
    }
    let mut add = |measure: &str, value: String| text.push_str(&format!("{prefix}{measure},,{value}\n"));
    add("n", arm.n.to_string());
    add("mean", number(arm.mean));
    add("stddev", number(arm.stddev));
    add("min", number(Some(arm.min)));
    add("max", number(Some(arm.max)));
    if let Some(change) = change {
        add("percent", number(change.percent));
        add("low", number(change.low));
        add("high", number(change.high));
        add("significant", u8::from(change.significant).to_string());
        add("p", number(change.p));
        let verdict = match change.finding {
            Finding::Gain => "1",
            Finding::Loss => "-1",
            Finding::Noise => "0",
        };
        add("verdict", verdict.to_string());
    }
}

/// The number as the JSON writes it.
fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| Value::from(value).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::tests::document;
    use crate::mmtests::Vintage;
    use crate::tables::fixtures::{generator, hackbench};

    #[test]
    fn one_arm_reads_like_this() {
        let mut table = hackbench(2, 2);
        table.name = Some("pipes, \"quick\"".into());
        table.operations.truncate(1);
        let mut result = TableResult::new(&table, Vintage::Now, &generator);
        result.rows[0].change[0] = Change {
            arm: table.arms[1].clone(),
            percent: Some(2.5),
            low: None,
            high: Some(1e-7),
            significant: true,
            p: Some(0.125),
            finding: Finding::Loss,
        };
        let text = render(&Document { tables: vec![result], ..document(&[]) });
        let prefix = "\"pipes, \"\"quick\"\"\",hackbench-pipes,loops=1000,s,lower,1,4.5.0-rc1-nostats-v3r1,";
        let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(prefix)).collect();
        assert_eq!(
            lines,
            [
                "sample,0,0.166",
                "sample,1,0.162",
                "n,,2",
                "mean,,0.164",
                "stddev,,0.0028284271247461927",
                "min,,0.162",
                "max,,0.166",
                "percent,,2.5",
                "low,,",
                "high,,1e-7",
                "significant,,1",
                "p,,0.125",
                "verdict,,-1",
            ]
        );
        // The base has no change, so it has six lines fewer.
        assert_eq!(text.lines().count(), 1 + 7 + 13);
    }

    #[test]
    fn every_line_has_the_fields_of_the_head() {
        let text = render(&document(&[hackbench(3, 4)]));
        let fields = HEAD.split(',').count();
        assert!(text.starts_with(HEAD) && text.ends_with('\n'));
        assert!(text.lines().all(|line| line.split(',').count() == fields));
    }
}
