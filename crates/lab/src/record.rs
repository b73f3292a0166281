//! What a run leaves behind: its whole setup and all its results, as one line of JSON.

use crate::hash::sha256;
use crate::mistake::Mistake;
use crate::observed::Observed;
use crate::setup::{Engine, Setup};
use crate::warning::Warning;
use machine::topology::Location;
use serde::{Deserialize, Serialize};

/// The format of stored records; no other is read.
pub const FORMAT: u32 = 1;

/// A stored run. `docs/experiments.md` describes its members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub format: u32,
    pub engine: Engine,
    pub setup: Setup,
    /// `None` if the run broke off because of a bug in the program.
    pub outcome: Option<Outcome>,
    /// SHA-256 of the outcome's JSON; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_sha256: Option<String>,
    /// CPU time of the host that the run took, in nanoseconds. A replay need not reproduce it.
    pub host_cpu_ns: u64,
    /// How the run used its machine, for the first iteration of each row. A replay does not compare it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
}

/// The results of a run: the same setup gives the same outcome, byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    pub end: Ending,
    /// The benchmark's samples for each row that a run measures, as integers in parts of its unit (the workload's
    /// `per_unit` make one).
    pub samples: Vec<Vec<u64>>,
    /// What its programs reported: simulated nanoseconds, series, value.
    pub reported: Vec<(u64, u32, u64)>,
    /// Engine events: paths executed.
    pub events: u64,
    pub context_switches: u64,
    pub wakeups: u64,
    pub simulated_ns: u64,
    /// What a kernel, or the benchmark, would have complained about.
    pub warnings: Vec<Warning>,
    /// SHA-256 over the samples and the state in which the run ended: see [`crate::run`].
    pub digest: String,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ending {
    /// Every task exited.
    Finished,
    /// The time limit, or the end that was asked for, came first.
    Time,
    /// Tasks remain that nothing will ever wake.
    Deadlock { sleeping: u64 },
}

impl Record {
    pub fn new(setup: Setup, outcome: Option<Outcome>, host_cpu_ns: u64) -> Record {
        let outcome_sha256 = outcome.as_ref().map(|outcome| sha256(outcome.to_json().as_bytes()));
        Record { format: FORMAT, engine: Engine::this(), setup, outcome, outcome_sha256, host_cpu_ns, observed: None }
    }

    /// Whether the outcome is the one that was written.
    pub fn is_intact(&self) -> bool {
        let told = self.outcome_sha256.as_ref().zip(self.outcome.as_ref());
        told.is_none_or(|(told, outcome)| *told == sha256(outcome.to_json().as_bytes()))
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
    /// One line of JSON, in which two runs of the same setup must agree.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("an outcome of plain values serialises")
    }

    /// How another outcome of the same setup differs, for the user; `None` if the bytes agree. The times of warnings
    /// may differ, because older records have them in the text.
    pub fn difference(&self, other: &Outcome) -> Option<String> {
        let texts = |of: &Outcome| of.warnings.iter().map(Warning::to_string).collect::<Vec<_>>();
        let same_form = |of: &Outcome| {
            let warnings = texts(of).into_iter().map(Warning::Plain).collect();
            Outcome { warnings, ..of.clone() }.to_json()
        };
        if same_form(self) == same_form(other) {
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
        compare("warnings", format!("{:?}", texts(self)), format!("{:?}", texts(other)));
        compare("digest", self.digest.clone(), other.digest.clone());
        Some(lines.join("\n"))
    }
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
    fn a_warning_is_the_same_however_its_record_holds_the_moment() {
        let with = |warning: Warning| Outcome { warnings: vec![warning], ..outcome() };
        let moment = |us: u64| with(Warning::timed("moved at ", units::Ns(us * 1_000), "; it goes on"));
        // Records from before warnings had a time of their own have it in the text.
        let older = with(Warning::Plain("moved at 1.500 ms; it goes on".to_string()));
        assert_eq!(older.difference(&moment(1_500)), None);
        let expected =
            "warnings: recorded [\"moved at 1.500 ms; it goes on\"], now [\"moved at 1.501 ms; it goes on\"]";
        assert_eq!(older.difference(&moment(1_501)).as_deref(), Some(expected));
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
