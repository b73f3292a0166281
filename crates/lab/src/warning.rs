//! What the user should know of a run, in a sentence; and for several runs, without repeating it for each.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use units::Ns;

/// A sentence, and its moment if it has one. The moment depends on the seed, so warnings that differ only in it are the
/// same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Warning {
    /// Without a moment. Records from before warnings had moments have it in the text.
    Plain(String),
    Timed(Timed),
}

/// The parts of a sentence around its moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timed {
    pub before: String,
    /// Nanoseconds of the simulated clock.
    pub at_ns: u64,
    pub after: String,
}

impl Warning {
    /// `before` and `after` go around the moment in milliseconds: `"x was refused at "`, `"; it goes on"`.
    pub fn timed(before: impl Into<String>, at: Ns, after: impl Into<String>) -> Warning {
        Warning::Timed(Timed { before: before.into(), at_ns: at.0, after: after.into() })
    }

    /// All of it except the moment.
    fn kind(&self) -> (&str, Option<&str>) {
        match self {
            Warning::Plain(text) => (text, None),
            Warning::Timed(Timed { before, after, .. }) => (before, Some(after)),
        }
    }
}

impl From<String> for Warning {
    fn from(text: String) -> Warning {
        Warning::Plain(text)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Plain(text) => f.write_str(text),
            Warning::Timed(Timed { before, at_ns, after }) => write!(f, "{before}{:.3} ms{after}", *at_ns as f64 / 1e6),
        }
    }
}

/// The warnings of several runs, each with what its run is `of`; those that differ only in the moment are grouped.
pub fn counted<'o, Of: Copy>(runs: impl Iterator<Item = (Of, &'o [Warning])>) -> Vec<Vec<(Of, &'o Warning)>> {
    let mut kinds: BTreeMap<_, Vec<(Of, &Warning)>> = BTreeMap::new();
    for (of, warnings) in runs {
        for (at, warning) in warnings.iter().enumerate() {
            let kind = warning.kind();
            // Two equal warnings in one run are counted as two.
            let before = warnings[..at].iter().filter(|other| other.kind() == kind).count();
            kinds.entry((kind, before)).or_default().push((of, warning));
        }
    }
    kinds.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_that_differ_in_their_moment_are_one() {
        let no_cpus = |us: u64| Warning::timed("no CPUs at ", Ns(us * 1_000), ": none is up");
        let plain = |text: &str| Warning::Plain(text.to_string());
        let runs = [
            vec![no_cpus(1_500), plain("timeline: `x` at 10 ms did not come")],
            vec![no_cpus(22_000)],
            vec![no_cpus(3_000), no_cpus(4_000), plain("timeline: `x` at 20 ms did not come")],
            // A time that is not a moment of the run is part of the text, whatever it looks like.
            vec![
                Warning::timed("\"a at 5 ms\" moved at ", Ns(7), ""),
                Warning::timed("\"a at 6 ms\" moved at ", Ns(7), ""),
            ],
        ];
        let counted = counted(runs.iter().enumerate().map(|(run, warnings)| (run, warnings.as_slice())));
        assert_eq!(counted[2].iter().map(|&(run, _)| run).collect::<Vec<_>>(), [0, 1, 2], "each is of its own run");
        let told: Vec<(String, usize)> = counted.iter().map(|same| (same[0].1.to_string(), same.len())).collect();
        let expected = [
            ("\"a at 5 ms\" moved at 0.000 ms", 1),
            ("\"a at 6 ms\" moved at 0.000 ms", 1),
            ("no CPUs at 1.500 ms: none is up", 3),
            ("no CPUs at 4.000 ms: none is up", 1),
            ("timeline: `x` at 10 ms did not come", 1),
            ("timeline: `x` at 20 ms did not come", 1),
        ];
        assert_eq!(told, expected.map(|(text, runs)| (text.to_string(), runs)));
    }

    #[test]
    fn a_record_holds_the_moment_as_a_number() {
        let text = r#"["as it was at 3.000 ms",{"before":"at ","at_ns":1500000,"after":": none"}]"#;
        let warnings: Vec<Warning> = serde_json::from_str(text).unwrap();
        assert_eq!(
            warnings,
            [Warning::Plain("as it was at 3.000 ms".into()), Warning::timed("at ", Ns(1_500_000), ": none")]
        );
        assert_eq!(serde_json::to_string(&warnings).unwrap(), text);
        assert!(serde_json::from_str::<Warning>(r#"{"before":"","at_ns":1,"after":"","more":1}"#).is_err());
    }
}
