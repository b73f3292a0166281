//! The number of iterations: a fixed number, or `auto`, which goes on until the intervals are narrow.
//!
//! A point is the rows that one run measures, together with the shares of functions measured along with them. It starts
//! with the fewest iterations. As long as the 95% interval of one of its rows is wider than wanted, it gets more. An
//! interval shrinks with the square root of their number, so the point gets `n (width / wanted)^2`: at least one more,
//! at most twice as many, and no more than the maximum. Whether the interval contains zero is never considered, so
//! stopping early cannot turn chance into a change. Only whole rounds are judged, each point by its own samples. So
//! what is run depends neither on the number of jobs, nor on what happens to be stored.

use super::{Experiment, Job, MOST_ITERATIONS};
use crate::mistake::{Mistake, Written, listed};

/// `auto`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Adaptive {
    /// The fewest iterations of every row.
    pub min: u32,
    /// The most iterations of a row whose interval stays wide.
    pub max: u32,
    /// The wanted half width of a change's 95% interval, in percentage points.
    pub half_width: f64,
}

impl Default for Adaptive {
    fn default() -> Self {
        // The fewest are as many as without `auto`; the most take about as long as ten of those runs.
        Adaptive { min: 5, max: 40, half_width: 1.0 }
    }
}

const AUTO: &str = "auto";
const KEYS: [&str; 3] = ["min", "max", "half_width"];

/// `auto`, or `auto:min=5,max=40,half_width=1`; `None` for text that does not begin so.
pub(super) fn adaptive(written: &Written) -> Result<Option<Adaptive>, Mistake> {
    let Some(rest) = written.text.strip_prefix(AUTO) else { return Ok(None) };
    let mut adaptive = Adaptive::default();
    let Some(settings) = rest.strip_prefix(':') else {
        let expected = "a whole number, auto, or auto:min=N,max=N,half_width=PERCENT";
        return if rest.is_empty() { Ok(Some(adaptive)) } else { Err(written.mistake(written.quoted(), expected)) };
    };
    let mut offset = AUTO.len() + 1;
    for piece in settings.split(',') {
        let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
        let value = written.part(offset + (key.len() + 1).min(piece.len()), value);
        match key {
            "min" => adaptive.min = value.whole("min", 2, MOST_ITERATIONS)? as u32,
            "max" => adaptive.max = value.whole("max", 2, MOST_ITERATIONS)? as u32,
            "half_width" => adaptive.half_width = percent(&value)?,
            _ => {
                let expected = listed(KEYS);
                return Err(written.part(offset, key).mistake(format!("`{piece}`"), format!("one of {expected}")));
            }
        }
        offset += piece.len() + 1;
    }
    // A user who gives only one of the two may choose a min above the default max, or a max below the default min.
    let said = |key: &str| settings.split(',').any(|piece| piece.starts_with(key));
    if adaptive.max < adaptive.min {
        match (said("min"), said("max")) {
            (true, true) => {
                let found = format!("max = {} below min = {}", adaptive.max, adaptive.min);
                return Err(written.mistake(found, "a max that is not below min"));
            }
            (true, false) => adaptive.max = adaptive.min,
            _ => adaptive.min = adaptive.max,
        }
    }
    Ok(Some(adaptive))
}

fn percent(value: &Written) -> Result<f64, Mistake> {
    match value.text.parse::<f64>() {
        Ok(percent) if (0.001..=100.0).contains(&percent) => Ok(percent),
        _ => {
            let found = format!("half_width = {}", value.quoted());
            Err(value.mistake(found, "a number of percentage points from 0.001 to 100"))
        }
    }
}

impl Adaptive {
    /// The next number of iterations for a point that has `done` of them, and whose widest interval is `widest`; `None`
    /// if it has enough.
    pub(crate) fn next(&self, done: u32, widest: f64) -> Option<u32> {
        if widest <= self.half_width || done >= self.max {
            return None;
        }
        let ratio = widest / self.half_width;
        let wanted = (f64::from(done) * ratio * ratio).ceil().min(f64::from(self.max)) as u32;
        Some(wanted.clamp(done + 1, done * 2).min(self.max))
    }
}

/// The number of iterations of each point, as far as it is known.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// `[table][point]`: iterations, and whether more may follow.
    pub(crate) points: Vec<Vec<(u32, bool)>>,
}

impl Plan {
    /// The iterations that are run in any case.
    pub fn first(experiment: &Experiment) -> Plan {
        let start = match experiment.adaptive {
            Some(adaptive) => (adaptive.min, true),
            None => (experiment.iterations, false),
        };
        Plan { points: experiment.tables.iter().map(|table| vec![start; table.points.len()]).collect() }
    }

    /// All runs in the best order. Iterations come one after the other, so that after an interruption the finished runs
    /// are paired. Within an iteration the later points come first, because they take longer.
    pub fn jobs(&self, experiment: &Experiment) -> Vec<Job> {
        let most = self.points.iter().flatten().map(|(iterations, _)| *iterations).max().unwrap_or(0);
        let mut jobs = Vec::new();
        for iteration in 0..most {
            for (table, points) in self.points.iter().enumerate() {
                for (point, _) in points.iter().enumerate().rev().filter(|(_, (runs, _))| iteration < *runs) {
                    jobs.extend((0..experiment.arms.len()).map(|arm| Job { table, point, arm, iteration }));
                }
            }
        }
        jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Purpose, parse};
    use crate::machines::tests::Table as NoFiles;

    fn read(text: &str) -> Result<Option<Adaptive>, String> {
        adaptive(&Written::option("--iterations", text)).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn auto_reads_its_settings() {
        assert_eq!(read("7"), Ok(None));
        assert_eq!(read("auto"), Ok(Some(Adaptive::default())));
        let all = Adaptive { min: 3, max: 9, half_width: 0.25 };
        assert_eq!(read("auto:min=3,max=9,half_width=0.25"), Ok(Some(all)));
        assert_eq!(read("auto:min=50").unwrap().map(|it| (it.min, it.max)), Some((50, 50)));
        assert_eq!(read("auto:max=3").unwrap().map(|it| (it.min, it.max)), Some((3, 3)));
        for (text, message) in [
            ("automatic", "found `automatic`; expected a whole number, auto, or auto:min=N"),
            ("auto:", "column 6: found ``; expected one of min, max, half_width"),
            ("auto:mix=3", "column 6: found `mix=3`; expected one of min, max, half_width"),
            ("auto:min=1", "column 10: found min = 1; expected a whole number from 2 to 10000"),
            ("auto:min=3,half_width=0", "column 23: found half_width = `0`; expected a number of percentage points"),
            ("auto:half_width", "column 16: found half_width = ``; expected a number"),
            ("auto:min=9,max=3", "found max = 3 below min = 9"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_width_says_how_many_more() {
        let adaptive = Adaptive { min: 4, max: 30, half_width: 1.0 };
        assert_eq!(adaptive.next(4, 1.0), None);
        assert_eq!(adaptive.next(10, 1.2), Some(15));
        assert_eq!(adaptive.next(10, 1.000_001), Some(11));
        assert_eq!(adaptive.next(10, 50.0), Some(20));
        assert_eq!(adaptive.next(20, f64::INFINITY), Some(30));
        assert_eq!(adaptive.next(30, 50.0), None);
    }

    const TEXT: &str = "\
machine = \"core-i7-3770\"
iterations = \"auto:min=3,max=20,half_width=2\"
workload = [{ name = \"hackbench-pipes\", groups = [1, 4], loops = 1 }]
arm = [{ name = \"a\", kernel = \"v4.15\" }, { name = \"b\", kernel = \"v4.16\" }]
";

    #[test]
    fn where_nothing_is_compared_auto_is_a_number() {
        let draft = parse(TEXT, "x.toml").unwrap();
        let iterations = |purpose| draft.resolve(purpose, &NoFiles::default()).map(|it| (it.iterations, it.adaptive));
        assert_eq!(iterations(Purpose::Prediction).unwrap(), (3, None));
        assert_eq!(iterations(Purpose::Comparison).unwrap().0, 20);
        let mut option = draft.clone();
        option.iterations = Some(Written::option("--iterations", "auto"));
        let error = option.resolve(Purpose::Prediction, &NoFiles::default()).unwrap_err().to_string();
        assert!(error.contains("found auto where nothing is compared; expected a whole number"), "{error}");
    }
}
