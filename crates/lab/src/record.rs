//! What a run leaves behind: its whole setup and everything it brought forth, as one line of JSON.

use crate::mistake::Mistake;
use crate::observed::Observed;
use crate::setup::{Engine, Setup};
use machine::topology::Location;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The shape of stored records; another number is not read.
pub const FORMAT: u32 = 1;

/// A stored run. `docs/experiments.md` describes its members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub format: u32,
    pub engine: Engine,
    pub setup: Setup,
    /// `None`: the run broke off, by a fault of the program.
    pub outcome: Option<Outcome>,
    /// CPU time of the host that the run took, in nanoseconds. Nothing that a second run must bring forth again.
    pub host_cpu_ns: u64,
    /// How the run used its machine, of the first iteration of each row; nothing that a replay compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
}

/// What a run brought forth: the same setup gives the same outcome, byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    pub end: Ending,
    /// The benchmark's samples, for each row that a run measures, in whole parts of its unit (`per_unit` of the workload
    /// to one).
    pub samples: Vec<Vec<u64>>,
    /// What its programs reported: simulated nanoseconds, series, value.
    pub reported: Vec<(u64, u32, u64)>,
    /// Engine events: paths executed.
    pub events: u64,
    pub context_switches: u64,
    pub wakeups: u64,
    pub simulated_ns: u64,
    /// What a kernel, or the benchmark, would have complained about.
    pub warnings: Vec<String>,
    /// SHA-256 over the samples and the state in which the run ended: see [`crate::run`].
    pub digest: String,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ending {
    /// Every task exited.
    Finished,
    /// The time limit, or the end of what was asked for, came first.
    Time,
    /// Tasks are left that nothing will ever wake.
    Deadlock { sleeping: u64 },
}

impl Record {
    pub fn new(setup: Setup, outcome: Option<Outcome>, host_cpu_ns: u64) -> Record {
        Record { format: FORMAT, engine: Engine::this(), setup, outcome, host_cpu_ns, observed: None }
    }

    /// One line of JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string(self).expect("a record of plain values serialises");
        text.push('\n');
        text
    }

    /// Reads a stored record; `path` names it in messages.
    pub fn parse(text: &str, path: &str) -> Result<Record, Mistake> {
        let wrong = |error: serde_json::Error| {
            let at = Location {
                input: path.to_string(),
                line: u32::try_from(error.line()).ok().filter(|&line| line > 0),
                column: u32::try_from(error.column()).ok().filter(|&column| column > 0),
            };
            Mistake::new(&at, format!("no record ({error})"), "a record as `fairground compare` stores it")
        };
        let value: serde_json::Value = serde_json::from_str(text).map_err(wrong)?;
        if value.get("host").is_some() {
            let expected = "a record as `fairground compare` stores it";
            return Err(Mistake::new(&Location::of(path), "a measurement on a real kernel", expected));
        }
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        if value.is_object() && format.is_some_and(|format| format != u64::from(FORMAT)) {
            let found = format!("a record of format {}", format.unwrap_or_default());
            return Err(Mistake::new(&Location::of(path), found, format!("format {FORMAT}")));
        }
        serde_json::from_str(text).map_err(wrong)
    }
}

impl Outcome {
    /// One line of JSON: what two runs of one setup must agree in.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("an outcome of plain values serialises")
    }

    /// In what another outcome of the same setup differs, for the user's eyes; `None` where the bytes agree.
    pub fn difference(&self, other: &Outcome) -> Option<String> {
        if self.to_json() == other.to_json() {
            return None;
        }
        let mut lines = Vec::new();
        let mut compare = |what: &str, recorded: String, now: String| {
            if recorded != now {
                lines.push(format!("{what}: recorded {recorded}, now {now}"));
            }
        };
        compare("end", format!("{:?}", self.end), format!("{:?}", other.end));
        compare("simulated time", format!("{} ns", self.simulated_ns), format!("{} ns", other.simulated_ns));
        compare("events", self.events.to_string(), other.events.to_string());
        compare("context switches", self.context_switches.to_string(), other.context_switches.to_string());
        compare("wakeups", self.wakeups.to_string(), other.wakeups.to_string());
        let (recorded, now) = (self.samples.concat(), other.samples.concat());
        compare("samples", recorded.len().to_string(), now.len().to_string());
        if let Some(at) = recorded.iter().zip(&now).position(|(a, b)| a != b) {
            compare(&format!("sample {at}"), recorded[at].to_string(), now[at].to_string());
        }
        compare("digest", self.digest.clone(), other.digest.clone());
        Some(lines.join("\n"))
    }
}

/// Warnings of several runs, each with those of other runs that differ from it in nothing but a moment (`at 1.5 ms`), which is the seed's.
pub fn counted<'o>(runs: impl Iterator<Item = &'o [String]>) -> Vec<(&'o str, Vec<&'o str>)> {
    let mut kinds: BTreeMap<(String, usize), Vec<&str>> = BTreeMap::new();
    for warnings in runs {
        for (at, warning) in warnings.iter().enumerate() {
            let kind = without_moments(warning);
            // Two in one run are two.
            let before = warnings[..at].iter().filter(|other| without_moments(other) == kind).count();
            kinds.entry((kind, before)).or_default().push(warning);
        }
    }
    kinds.into_values().map(|same| (same[0], same)).collect()
}

/// A warning, its times in milliseconds left out.
fn without_moments(warning: &str) -> String {
    let words: Vec<&str> = warning.split(' ').collect();
    let is_moment = |at: usize| {
        let unit = words.get(at + 1).is_some_and(|next| next.trim_end_matches([':', ',']) == "ms");
        unit && at > 0 && words[at - 1] == "at" && words[at].parse::<f64>().is_ok()
    };
    (0..words.len()).filter(|&at| !is_moment(at)).map(|at| words[at]).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            end: Ending::Deadlock { sleeping: 3 },
            samples: vec![vec![10, 20]],
            reported: vec![(5, 0, 7)],
            events: 1,
            context_switches: 2,
            wakeups: 3,
            simulated_ns: 4,
            warnings: Vec::new(),
            digest: "d".to_string(),
        }
    }

    #[test]
    fn warnings_that_differ_in_their_moment_are_one() {
        let runs = [
            vec!["no CPUs at 1.5 ms: none is up".to_string(), "timeline: `x` at 10 ms did not come".to_string()],
            vec!["no CPUs at 22 ms: none is up".to_string()],
            vec!["no CPUs at 3.000 ms: none is up".to_string(), "no CPUs at 4 ms: none is up".to_string()],
            vec!["no policy at 3 ms: none is up".to_string()],
        ];
        let counted = counted(runs.iter().map(Vec::as_slice));
        let told: Vec<(&str, usize)> = counted.iter().map(|(warning, same)| (*warning, same.len())).collect();
        let expected = [
            ("no CPUs at 1.5 ms: none is up", 3),
            ("no CPUs at 4 ms: none is up", 1),
            ("no policy at 3 ms: none is up", 1),
            ("timeline: `x` at 10 ms did not come", 1),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn outcomes_survive_their_text() {
        let text = outcome().to_json();
        let again: Outcome = serde_json::from_str(&text).unwrap();
        assert_eq!(again, outcome());
        assert_eq!(again.to_json(), text);
    }

    #[test]
    fn differences_are_named() {
        assert_eq!(outcome().difference(&outcome()), None);
        let other = Outcome { samples: vec![vec![10, 21]], events: 9, ..outcome() };
        assert_eq!(outcome().difference(&other).unwrap(), "events: recorded 1, now 9\nsample 1: recorded 20, now 21");
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_place() {
        for (text, message) in [
            ("", "r.json:1: found no record (EOF while parsing"),
            ("{\"format\": 9}", "r.json: found a record of format 9; expected format 1"),
            ("{\"format\": 1}", "r.json:1:13: found no record (missing field `engine`"),
            ("[1, 2", "r.json:1:5: found no record (EOF while parsing a list"),
        ] {
            let error = Record::parse(text, "r.json").unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
