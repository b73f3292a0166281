//! From rounds to figures, and the verdict on each.

use std::fmt;

/// The per cent within which a prediction is as good as it should be, and those beyond which it is not credible.
pub const GOAL: f64 = 10.0;
pub const GATE: f64 = 25.0;
/// The row of pipetest's order statistics that represents a run.
const OF_PIPETEST: &str = "1st-qrtle";

/// Where pipetest's pair runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    OneCpu,
    TwoCpus,
}

/// What was measured in one round, and what its calibration predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// hackbench by groups, pipetest bound to one CPU and to two: name, unit, measured, predicted.
    rows: Vec<(String, String, f64, f64)>,
    /// The pair that may run anywhere: its batches, and the prediction.
    anywhere: Option<(Vec<f64>, f64)>,
    /// The border between the two states, in microseconds.
    border: f64,
}

impl Round {
    /// Reads what `compare` printed for hackbench, for pipetest anywhere, and for pipetest bound to one CPU and to two.
    pub fn of(compared: &[String], batches: Vec<f64>, border: f64) -> Round {
        let pipetest = |text: &String| rows(text).into_iter().find(|row| row.0.contains(OF_PIPETEST));
        let mut found = compared.first().map_or(Vec::new(), |text| rows(text));
        for (text, name) in
            compared.iter().skip(2).zip(["pipetest, both processes on one CPU", "pipetest, a CPU for each"])
        {
            found.extend(
                pipetest(text).map(|(_, unit, measured, predicted)| (name.to_string(), unit, measured, predicted)),
            );
        }
        let anywhere = compared.get(1).and_then(pipetest).map(|row| (batches, row.3));
        Round { rows: found, anywhere, border }
    }

    fn state(&self, microseconds: f64) -> State {
        if microseconds < self.border { State::OneCpu } else { State::TwoCpus }
    }

    /// Share of the batches in which the pair shared a CPU.
    pub fn shared(&self) -> f64 {
        let batches = self.anywhere.as_ref().map_or(&[][..], |it| &it.0);
        batches.iter().filter(|&&batch| self.state(batch) == State::OneCpu).count() as f64 / batches.len().max(1) as f64
    }

    /// The lower quartile of the batches in the same state as the simulation, and the prediction.
    fn as_simulated(&self) -> Option<(f64, f64)> {
        let (batches, predicted) = self.anywhere.as_ref()?;
        let alike: Vec<f64> =
            batches.iter().copied().filter(|&batch| self.state(batch) == self.state(*predicted)).collect();
        (!alike.is_empty()).then(|| (quartile(&alike, 0.25), *predicted))
    }
}

/// One figure over all rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    name: String,
    unit: String,
    measured: Vec<f64>,
    predicted: Vec<f64>,
    needed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Goal,
    Gate,
    /// Beyond the gate, but the ranges over the rounds overlap.
    Noise,
    Beyond,
}

/// The figures that every round has measured and predicted.
pub fn figures(rounds: &[Round]) -> Vec<Figure> {
    let Some(first) = rounds.first() else { return Vec::new() };
    let mut figures = Vec::new();
    for (name, unit, ..) in &first.rows {
        let of: Vec<_> = rounds.iter().filter_map(|round| round.rows.iter().find(|row| row.0 == *name)).collect();
        if of.len() == rounds.len() {
            let (measured, predicted) = of.iter().map(|row| (row.2, row.3)).unzip();
            figures.push(Figure { name: name.clone(), unit: unit.clone(), measured, predicted, needed: true });
        }
    }
    let (measured, predicted): (Vec<f64>, Vec<f64>) = rounds.iter().filter_map(Round::as_simulated).unzip();
    if !measured.is_empty() {
        let name = format!("pipetest anywhere, in the simulation's state ({} rounds)", measured.len());
        let figure = Figure { name, unit: "us per loop".to_string(), measured, predicted, needed: false };
        figures.push(figure);
    }
    figures
}

impl Figure {
    pub fn is_needed(&self) -> bool {
        self.needed
    }

    pub fn head() -> String {
        format!(
            "{:<58}{:>10}{:>22}{:>12}{:>22}{:>12}  verdict",
            "figure", "measured", "least .. greatest", "predicted", "least .. greatest", "difference"
        )
    }

    /// In per cent of the measured value.
    fn difference(&self) -> f64 {
        (quartile(&self.predicted, 0.5) / quartile(&self.measured, 0.25) - 1.0) * 100.0
    }

    pub fn verdict(&self) -> Verdict {
        let (measured, predicted) = (between(&self.measured), between(&self.predicted));
        match self.difference().abs() {
            off if off <= GOAL => Verdict::Goal,
            off if off <= GATE => Verdict::Gate,
            _ if measured.0 <= predicted.1 && predicted.0 <= measured.1 => Verdict::Noise,
            _ => Verdict::Beyond,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |values: &[f64]| {
            let (low, high) = between(values);
            format!("{low:.4} .. {high:.4}")
        };
        let verdict = match self.verdict() {
            Verdict::Goal => "goal met",
            Verdict::Gate => "within the gate",
            Verdict::Noise => "beyond the gate, within the host's own spread",
            Verdict::Beyond => "beyond the gate",
        };
        write!(
            f,
            "{:<58}{:>10.4}{:>22}{:>12.4}{:>22}{:>+11.1}%  {verdict}",
            format!("{} ({})", self.name, self.unit),
            quartile(&self.measured, 0.25),
            range(&self.measured),
            quartile(&self.predicted, 0.5),
            range(&self.predicted),
            self.difference()
        )
    }
}

/// The least and the greatest value.
pub fn between(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), &value| (value.min(low), value.max(high)))
}

/// The nearest rank at or below share `q`; zero if there are no values.
pub fn quartile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(((sorted.len().saturating_sub(1)) as f64 * q).floor() as usize).copied().unwrap_or(0.0)
}

/// Name, unit, measured and predicted value of each row below "predicted against measured":
/// `NAME (UNIT) MEASURED LEAST .. GREATEST (N) PREDICTED DIFFERENCE%`.
fn rows(compared: &str) -> Vec<(String, String, f64, f64)> {
    let below = compared.lines().skip_while(|line| !line.starts_with("predicted against measured"));
    let row = |line: &str| {
        let (name, rest) = line.split_once(" (")?;
        let (unit, numbers) = rest.split_once(')')?;
        let words: Vec<&str> = numbers.split_whitespace().collect();
        words.last()?.strip_suffix('%')?;
        let predicted = words.get(words.len().checked_sub(2)?)?.parse().ok()?;
        Some((name.to_string(), unit.to_string(), words.first()?.parse().ok()?, predicted))
    };
    below.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(rows: &[(&str, f64, f64)]) -> String {
        let mut text =
            "machine this\n\npredicted against measured (A CPU; there)\nrow   measured  least .. greatest  predicted\n"
                .to_string();
        for (name, measured, predicted) in rows {
            let off = (predicted / measured - 1.0) * 100.0;
            text += &format!("{name}  {measured:.4}  {measured:.4} .. {measured:.4} (1)  {predicted:.4}  {off:+.1}%\n");
        }
        text
    }

    fn round(scale: f64, batches: &[f64]) -> Round {
        let pair = |measured: f64, predicted: f64| {
            compared(&[
                ("pipetest Min (us per loop)", 1.0, 1.0),
                ("pipetest 1st-qrtle (us per loop)", measured, predicted),
            ])
        };
        let hackbench =
            compared(&[("hackbench-pipes 1 (s)", 0.1 * scale, 0.108), ("hackbench-pipes 4 (s)", 0.2 * scale, 0.5)]);
        Round::of(&[hackbench, pair(30.0, 40.0), pair(4.0, 4.9), pair(36.0, 80.0)], batches.to_vec(), 12.0)
    }

    #[test]
    fn a_figure_is_the_lower_quartile_beside_the_median_prediction() {
        let rounds: Vec<Round> = [1.0, 3.0, 1.1, 1.2, 1.3].map(|scale| round(scale, &[4.1, 37.0, 38.0, 39.0])).to_vec();
        let figures = figures(&rounds);
        let verdicts: Vec<Verdict> = figures.iter().map(Figure::verdict).collect();
        // One group is 2% off the second least, 0.11. With four groups the slowest round is as slow as predicted. One
        // CPU: 22% off. Two CPUs: more than twice. Anywhere: 8%.
        assert_eq!(verdicts, [Verdict::Goal, Verdict::Noise, Verdict::Gate, Verdict::Beyond, Verdict::Goal]);
        assert!(figures[0].to_string().contains("0.1100      0.1000 .. 0.3000"), "{}", figures[0]);
        assert!(figures[1].to_string().ends_with("beyond the gate, within the host's own spread"));
        assert_eq!(figures.iter().filter(|figure| figure.is_needed()).count(), 4);
    }

    #[test]
    fn batches_are_sorted_by_the_border() {
        let round = round(1.0, &[4.1, 11.0, 13.0, 37.0]);
        assert_eq!(round.shared(), 0.5);
        assert_eq!(round.as_simulated(), Some((13.0, 40.0)));
        let never = Round { anywhere: Some((vec![4.0], 40.0)), ..round };
        assert_eq!(never.as_simulated(), None);
    }

    #[test]
    fn a_figure_that_a_round_lacks_is_none() {
        let mut rounds = vec![round(1.0, &[4.0]), round(1.0, &[4.0])];
        rounds[1].rows.pop();
        assert_eq!(figures(&rounds).len(), 3);
        assert!(figures(&[]).is_empty());
        assert!(rows("nothing").is_empty());
    }
}
