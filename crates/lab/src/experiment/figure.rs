//! A figure: what is measured, of which tasks, and how the values of several tasks become one.

use super::DraftFigure;
use super::recording;
use crate::mistake::{Location, Mistake, Written, listed};
use machine::description::nearest_name;
use observe::TaskFigures;
use std::collections::BTreeMap;
use units::Ns;

/// What is measured of one task; names are those of case files.
macro_rules! measures {
    ($( $variant:ident = $name:literal, $doc:literal; )+) => {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Measure { $( #[doc = $doc] $variant, )+ }

        impl Measure {
            /// The name and meaning of each.
            pub const TABLE: &'static [(&'static str, &'static str, Measure)] = &[ $( ($name, $doc, Measure::$variant), )+ ];

            pub fn name(self) -> &'static str {
                Measure::TABLE[self as usize].0
            }
        }
    };
}

measures! {
    RunMs = "run_ms", "CPU time in milliseconds";
    Share = "share", "CPU time as a share of that of all tasks the figure could be of: those that `among` names, else all";
    Cpus = "cpus", "CPUs it ran on";
    Wakeups = "wakeups", "how often it was woken";
    MigrationsInWakeup = "migrations_in_wakeup", "changes of its CPU by wakeups";
    MigrationsOther = "migrations_other", "changes of its CPU by load balancing, affinity or fork";
    Involuntary = "involuntary", "switches away while it was runnable";
    Voluntary = "voluntary", "switches away to sleep";
    SliceP50Ms = "slice_p50_ms", "median stay on a CPU in milliseconds";
    SliceP90Ms = "slice_p90_ms", "ninth decile of its stays on a CPU in milliseconds";
    SliceMaxMs = "slice_max_ms", "longest stay on a CPU in milliseconds";
    LatencyP50Us = "latency_p50_us", "median time from a wakeup to running in microseconds";
    LatencyP90Us = "latency_p90_us", "ninth decile of the times from a wakeup to running in microseconds";
    LatencyP99Us = "latency_p99_us", "99th percentile of the times from a wakeup to running in microseconds";
    LatencyMaxUs = "latency_max_us", "longest time from a wakeup to running in microseconds";
    NrPeriods = "nr_periods", "of a group with a quota: periods that have ended";
    NrThrottled = "nr_throttled", "of a group with a quota: those of its periods in which it was throttled";
}

/// How the figures of several tasks become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    Sum,
    Mean,
    Minimum,
    Median,
    Maximum,
}

const OVER: [(&str, Over); 5] = [
    ("sum", Over::Sum),
    ("mean", Over::Mean),
    ("min", Over::Minimum),
    ("median", Over::Median),
    ("max", Over::Maximum),
];

impl Over {
    fn name(self) -> &'static str {
        OVER.iter().find(|(_, over)| *over == self).expect("every way has a name").0
    }

    /// `values` must not be empty.
    fn of(self, mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        match self {
            Over::Sum => values.iter().sum(),
            Over::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Over::Minimum => values[0],
            Over::Median => values[values.len() / 2],
            Over::Maximum => values[values.len() - 1],
        }
    }
}

/// How far the simulated figure may be from the real one. Where both are given the larger one counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// In the figure's own unit.
    pub absolute: Option<f64>,
    pub percent: Option<f64>,
}

impl Tolerance {
    pub fn allows(self, real: f64, simulated: f64) -> bool {
        let off = (simulated - real).abs();
        let within = |most: Option<f64>| most.is_some_and(|most| off <= most);
        within(self.absolute) || within(self.percent.map(|most| real.abs() * most / 100.0))
    }
}

/// A figure to be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// A task's name, or a group's path; a `*` at its end matches anything.
    pub of: String,
    /// The tasks whose total a share refers to.
    pub among: String,
    pub measure: Measure,
    pub over: Option<Over>,
    /// The real kernel's figure in each sample of the recording, in ascending order; at least one.
    pub reals: Vec<f64>,
    pub tolerance: Tolerance,
    /// Why the figure is off, if that is known.
    pub gap: Option<String>,
    pub at: Location,
}

/// The figures of one task, by measure; a measure without a value is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(pub BTreeMap<Measure, f64>);

/// Figures by task name; those of groups by their paths, which begin with `/`.
pub type Tasks = BTreeMap<String, Values>;

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

impl Figure {
    /// `hog*: share, min`.
    pub fn title(&self) -> String {
        let over = self.over.map_or(String::new(), |over| format!(", {}", over.name()));
        format!("{}: {}{over}", self.of, self.measure.name())
    }

    /// The real kernel's figure: the median of its samples.
    pub fn real(&self) -> f64 {
        self.reals[self.reals.len() / 2]
    }

    /// The figure, of recorded or simulated tasks.
    pub fn of_tasks(&self, tasks: &Tasks) -> Result<f64, Mistake> {
        let value = |values: &Values| match self.measure {
            Measure::Share => values.0.get(&Measure::RunMs).copied(),
            measure => values.0.get(&measure).copied(),
        };
        let chosen = |pattern: &str| -> Vec<f64> {
            tasks.iter().filter(|(name, _)| matches(pattern, name)).filter_map(|(_, values)| value(values)).collect()
        };
        let mut values = chosen(&self.of);
        if self.measure == Measure::Share {
            let total: f64 = chosen(&self.among).iter().sum();
            if total <= 0.0 {
                let names = listed(tasks.keys().map(String::as_str));
                let found = format!("no CPU time of `{}`, of which a share is asked for", self.among);
                return Err(Mistake::new(&self.at, found, format!("some of the tasks that there are: {names}")));
            }
            values.iter_mut().for_each(|value| *value /= total);
        }
        match (values.len(), self.over) {
            (0, _) => {
                let names = listed(tasks.keys().map(String::as_str));
                let found = format!("no {} of `{}`", self.measure.name(), self.of);
                Err(Mistake::new(&self.at, found, format!("one of the tasks there are: {names}")))
            }
            (1, None) => Ok(values[0]),
            (count, None) => {
                let expected = format!("over = one of {}", listed(OVER.iter().map(|(name, _)| *name)));
                Err(Mistake::new(&self.at, format!("{count} tasks that match `{}`", self.of), expected))
            }
            (_, Some(over)) => Ok(over.of(values)),
        }
    }
}

impl From<&TaskFigures> for Values {
    fn from(of: &TaskFigures) -> Values {
        let ms = |ns: Ns| ns.0 as f64 / 1e6;
        let us = |ns: Ns| ns.0 as f64 / 1e3;
        let mut values = BTreeMap::from([
            (Measure::RunMs, of.run.values().map(|&time| ms(time)).sum()),
            (Measure::Cpus, of.run.len() as f64),
            (Measure::Wakeups, of.wakeups as f64),
            (Measure::MigrationsInWakeup, of.migrations_in_wakeup as f64),
            (Measure::MigrationsOther, of.migrations_other as f64),
            (Measure::Involuntary, of.involuntary as f64),
            (Measure::Voluntary, of.voluntary as f64),
        ]);
        let mut quantiles = |times: &[Ns], unit: &dyn Fn(Ns) -> f64, of: &[(Measure, f64)]| {
            let mut times = times.to_vec();
            times.sort();
            for &(measure, quantile) in of {
                // The recordings' own analysis picks it like this: the element at that fraction of the length.
                let at = ((quantile * times.len() as f64) as usize).min(times.len().saturating_sub(1));
                values.extend(times.get(at).map(|&time| (measure, unit(time))));
            }
        };
        let slices = [(Measure::SliceP50Ms, 0.5), (Measure::SliceP90Ms, 0.9), (Measure::SliceMaxMs, 1.0)];
        quantiles(&of.slices, &ms, &slices);
        let latencies = [
            (Measure::LatencyP50Us, 0.5),
            (Measure::LatencyP90Us, 0.9),
            (Measure::LatencyP99Us, 0.99),
            (Measure::LatencyMaxUs, 1.0),
        ];
        quantiles(&of.wake_latencies, &us, &latencies);
        Values(values)
    }
}

impl Values {
    /// The counts of a group's `cpu.stat`, given as alternating names and numbers. Only those that are measures are
    /// kept.
    pub fn of_group(words: &[&str]) -> Values {
        let counts = [Measure::NrPeriods, Measure::NrThrottled];
        let counted = |pair: &[&str]| {
            let measure = counts.into_iter().find(|measure| measure.name() == pair[0])?;
            Some((measure, pair[1].parse().ok()?))
        };
        Values(words.chunks_exact(2).filter_map(counted).collect())
    }
}

fn number(written: &Written, what: &str) -> Result<f64, Mistake> {
    match written.text.replace('_', "").parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(written.mistake(format!("{what} = {}", written.quoted()), "a number, zero or more")),
    }
}

/// Checks the figures of a case. `recorded` is the text of the case's recording, with its place.
pub(crate) fn resolve(drafts: &[DraftFigure], recorded: Option<&Written>) -> Result<Vec<Figure>, Mistake> {
    let recorded = recorded.map(recording::parse).transpose()?;
    drafts.iter().map(|draft| figure(draft, recorded.as_deref())).collect()
}

fn figure(draft: &DraftFigure, recorded: Option<&[Tasks]>) -> Result<Figure, Mistake> {
    let Some(&(_, _, measure)) = Measure::TABLE.iter().find(|(name, ..)| *name == draft.figure.text) else {
        let names = Measure::TABLE.iter().map(|(name, ..)| *name);
        let expected = match nearest_name(&draft.figure.text, names.clone()) {
            Some(nearest) => format!("`{nearest}`, perhaps"),
            None => format!("one of {}", listed(names)),
        };
        return Err(draft.figure.mistake(format!("the unknown figure {}", draft.figure.quoted()), expected));
    };
    let tolerance = Tolerance {
        absolute: draft.within.as_ref().map(|within| number(within, "within")).transpose()?,
        percent: draft.within_percent.as_ref().map(|within| number(within, "within_percent")).transpose()?,
    };
    if tolerance.absolute.or(tolerance.percent).is_none() {
        return Err(draft.of.mistake("no tolerance", "within = ... or within_percent = ..., or both"));
    }
    if let Some(among) = draft.among.as_ref().filter(|_| measure != Measure::Share) {
        let found = format!("`among` of {}", draft.figure.quoted());
        return Err(among.mistake(found, "it at figure = \"share\" alone"));
    }
    let mut figure = Figure {
        of: draft.of.text.clone(),
        among: draft.among.as_ref().map_or_else(|| "*".to_string(), |among| among.text.clone()),
        measure,
        over: draft.over.as_ref().map(|over| over.choice("over", &OVER)).transpose()?,
        reals: Vec::new(),
        tolerance,
        gap: draft.gap.as_ref().map(|gap| gap.text.clone()),
        at: draft.of.at.clone(),
    };
    figure.reals = match (&draft.real, recorded) {
        (Some(real), _) => vec![number(real, "real")?],
        (None, Some(samples)) => samples.iter().map(|tasks| figure.of_tasks(tasks)).collect::<Result<_, _>>()?,
        (None, None) => {
            let expected = "real = the real kernel's figure, or a recording for the whole case";
            return Err(draft.of.mistake("a figure without the real kernel's", expected));
        }
    };
    figure.reals.sort_by(f64::total_cmp);
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Written {
        Written { text: text.to_string(), at: Location::of("x.toml") }
    }

    fn draft(figure: &str, among: &str) -> DraftFigure {
        DraftFigure {
            of: written("a"),
            figure: written(figure),
            among: Some(written(among)),
            over: None,
            real: Some(written("0.5")),
            within: Some(written("1")),
            within_percent: None,
            gap: None,
        }
    }

    #[test]
    fn a_share_is_of_something() {
        let of = |run_ms: f64| ("a".to_string(), Values(BTreeMap::from([(Measure::RunMs, run_ms)])));
        let share = |among: &str, run_ms: f64| {
            let figure = resolve(&[draft("share", among)], None).unwrap().remove(0);
            figure.of_tasks(&Tasks::from([of(run_ms)])).map_err(|mistake| mistake.to_string())
        };
        assert_eq!(share("a", 3.0), Ok(1.0));
        for (among, run_ms) in [("nobody", 3.0), ("a", 0.0)] {
            let expected = format!(
                "x.toml: found no CPU time of `{among}`, of which a share is asked for; expected some of the tasks that there are: a"
            );
            assert_eq!(share(among, run_ms), Err(expected));
        }
    }

    #[test]
    fn only_a_share_is_among_others() {
        let error = resolve(&[draft("run_ms", "a")], None).unwrap_err().to_string();
        assert_eq!(error, "x.toml: found `among` of `run_ms`; expected it at figure = \"share\" alone");
    }
}
