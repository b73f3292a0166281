//! Plots as inline SVG: figures with intervals over a table's keys. Numeric keys make an axis; other keys stand one
//! below the other.

use super::escaped;
use std::fmt::Write;

/// The drawing's width in units; text is 12 units high, so that it stays readable on a narrow screen.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 30.0;
/// The height of a row with a label.
const ROW: f64 = 22.0;
/// The most letters of a label.
const LABEL: usize = 16;
/// If the largest key, or figure, is this many times the smallest, the axis is logarithmic.
const LOG_FROM: f64 = 8.0;

/// A figure and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    /// Drawn hollow, because the change counts as noise.
    pub hollow: bool,
}

/// What belongs to one arm.
#[derive(Clone, Debug)]
pub struct Curve {
    pub name: String,
    /// The class in the style sheet: `arm0`.
    pub class: String,
    /// One for each label of the chart.
    pub points: Vec<Option<Point>>,
}

#[derive(Clone, Debug)]
pub struct Chart {
    /// The description for readers who cannot see the plot.
    pub title: String,
    pub unit: String,
    pub labels: Vec<String>,
    pub curves: Vec<Curve>,
    /// Whether the axis includes zero, with a line there.
    pub zero: bool,
    pub decimals: usize,
}

/// Maps values to units of the drawing.
#[derive(Clone, Copy, Debug)]
struct Axis {
    /// The values at both ends; on a logarithmic axis, their logarithms.
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    fn new((low, high): (f64, f64), log: bool, (from, to): (f64, f64)) -> Axis {
        let of = |value: f64| if log { libm::log10(value) } else { value };
        let (low, high) = (of(low), of(high));
        // A single value is placed in the middle.
        let (low, high) = if high > low { (low, high) } else { (low - 1.0, high + 1.0) };
        Axis { low, high, log, from, to }
    }

    /// The position of a value; values outside are placed at the border.
    fn at(&self, value: f64) -> f64 {
        let value = match self.log {
            true if value <= 0.0 => self.low,
            true => libm::log10(value),
            false => value,
        };
        self.from + (value.clamp(self.low, self.high) - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Round values on the axis.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            return self.log_ticks();
        }
        let rough = (self.high - self.low) / 5.0;
        let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
        let step = [1.0, 2.0, 5.0, 10.0].map(|of| of * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|count| count as f64 * step).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = self.low.floor() as i32..=self.high.floor() as i32;
        // With few decades there is room for values in between.
        let within: &[f64] = if self.high - self.low < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all = decades.flat_map(|power| within.iter().map(move |of| of * libm::pow(10.0, f64::from(power))));
        all.filter(|value| (self.low - 1e-9..=self.high + 1e-9).contains(&libm::log10(*value))).collect()
    }
}

impl Chart {
    /// The drawing; `None` if there is nothing to draw.
    pub fn svg(&self) -> Option<String> {
        let (range, log) = self.range()?;
        Some(match self.keys() {
            Some(keys) => self.along(&keys, range, log),
            None => self.below(range, log),
        })
    }

    /// The keys as numbers, if there are at least two, in rising order.
    fn keys(&self) -> Option<Vec<f64>> {
        let keys: Vec<f64> = self.labels.iter().filter_map(|label| label.parse().ok()).collect();
        let rising = keys.windows(2).all(|pair| pair[0] < pair[1]);
        (keys.len() == self.labels.len() && keys.len() > 1 && rising && keys[0].is_finite()).then_some(keys)
    }

    fn points(&self) -> impl Iterator<Item = Point> + '_ {
        self.curves.iter().flat_map(|curve| &curve.points).flatten().copied()
    }

    /// The range of the figures' axis, and whether it is logarithmic. A wide interval does not squeeze the figures: it
    /// may extend the axis beyond them by at most one and a half times their span, on a logarithmic axis by a factor of
    /// 3.
    fn range(&self) -> Option<((f64, f64), bool)> {
        let zero = self.zero.then_some(0.0);
        let fold = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)))
        };
        let (low, high) = fold(&mut self.points().map(|point| point.value).chain(zero));
        if low > high || self.points().next().is_none() {
            return None;
        }
        let log = !self.zero && low > 0.0 && high / low >= LOG_FROM;
        let ends = || self.points().filter_map(|point| point.interval);
        let (least, most) = fold(&mut ends().map(|it| it.0).chain(ends().map(|it| it.1)).chain([low, high]));
        if log {
            return Some(((least.max(low / 3.0), most.min(high * 3.0)), true));
        }
        let span = if high > low { high - low } else { (most - least).min(low.abs().max(1e-9)) };
        let (low, high) = (least.max(low - 1.5 * span), most.min(high + 1.5 * span));
        // A small margin, so that no mark is cut off.
        let room = ((high - low) * 0.05).max(high.abs() * 1e-6);
        Some(((low - room, high + room), false))
    }

    fn opening(&self, height: f64) -> String {
        let title = escaped(&self.title);
        let size = format!("viewBox=\"0 0 {WIDTH} {height}\"");
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" {size} role=\"img\" aria-label=\"{title}\">\n")
    }

    /// Draws keys to the right and figures upwards.
    fn along(&self, keys: &[f64], range: (f64, f64), log: bool) -> String {
        let log_keys = keys[0] > 0.0 && keys[keys.len() - 1] / keys[0] >= LOG_FROM;
        let y = Axis::new(range, log, (HEIGHT - BOTTOM, TOP));
        let ticks = y.ticks();
        let width = ticks.iter().map(|tick| short(*tick).chars().count()).max().unwrap_or(1);
        let left = 16.0 + 7.0 * width as f64;
        let x = Axis::new((keys[0], keys[keys.len() - 1]), log_keys, (left + 12.0, WIDTH - RIGHT - 12.0));
        let mut svg = self.opening(HEIGHT);
        for tick in ticks {
            let (at, end) = (y.at(tick), WIDTH - RIGHT);
            let class = if tick == 0.0 && self.zero { "zero" } else { "grid" };
            let _ =
                writeln!(svg, "<line class=\"{class}\" x1=\"{left:.1}\" x2=\"{end}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>");
            let (right, middle) = (left - 6.0, at + 4.0);
            let _ =
                writeln!(svg, "<text x=\"{right:.1}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>", short(tick));
        }
        // A label that would touch the previous one is left out.
        let mut free_from = f64::NEG_INFINITY;
        for (key, label) in keys.iter().zip(&self.labels) {
            let half = 3.6 * label.chars().count() as f64;
            let at = x.at(*key);
            if at - half >= free_from {
                free_from = at + half + 6.0;
                let below = HEIGHT - BOTTOM + 18.0;
                let text = escaped(label);
                let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{text}</text>");
            }
        }
        // Arms are shifted sideways, so that their intervals do not cover each other.
        let shift = |curve: usize| 4.0 * (curve as f64 - (self.curves.len() as f64 - 1.0) / 2.0);
        for (index, curve) in self.curves.iter().enumerate() {
            let places: Vec<Option<(f64, f64)>> = curve
                .points
                .iter()
                .zip(keys)
                .map(|(point, key)| point.map(|point| (x.at(*key) + shift(index), y.at(point.value))))
                .collect();
            let path: Vec<String> = places.iter().flatten().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ =
                writeln!(svg, "<g class=\"{}\"><polyline class=\"curve\" points=\"{}\"/>", curve.class, path.join(" "));
            for (row, point) in curve.points.iter().enumerate() {
                let (Some(point), Some((cx, cy))) = (point, places[row]) else { continue };
                let ends = point.interval.map(|(low, high)| ((cx, y.at(low)), (cx, y.at(high))));
                self.add_point(&mut svg, index, row, point, (cx, cy), ends);
            }
            svg.push_str("</g>\n");
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Draws a line for each label, with figures to the right.
    fn below(&self, range: (f64, f64), log: bool) -> String {
        let longest = self.labels.iter().map(|label| label.chars().count().min(LABEL)).max().unwrap_or(1);
        let left = 20.0 + 7.6 * longest as f64;
        let bottom = TOP + ROW * self.labels.len() as f64;
        let x = Axis::new(range, log, (left, WIDTH - RIGHT - 6.0));
        let mut svg = self.opening(bottom + BOTTOM);
        let mut free_from = f64::NEG_INFINITY;
        for tick in x.ticks() {
            let at = x.at(tick);
            let class = if tick == 0.0 && self.zero { "zero" } else { "grid" };
            let _ =
                writeln!(svg, "<line class=\"{class}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>");
            let text = short(tick);
            let half = 3.6 * text.chars().count() as f64;
            if at - half >= free_from && at + half <= WIDTH {
                free_from = at + half + 6.0;
                let below = bottom + 16.0;
                let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{text}</text>");
            }
        }
        for (row, label) in self.labels.iter().enumerate() {
            let middle = TOP + ROW * (row as f64 + 0.5) + 4.0;
            let text = escaped(&crate::mistake::excerpt(label, LABEL));
            let right = left - 8.0;
            let _ = writeln!(svg, "<text x=\"{right:.1}\" y=\"{middle}\" text-anchor=\"end\">{text}</text>");
        }
        let step = (ROW - 8.0) / self.curves.len() as f64;
        for (index, curve) in self.curves.iter().enumerate() {
            let _ = writeln!(svg, "<g class=\"{}\">", curve.class);
            for (row, point) in curve.points.iter().enumerate() {
                let Some(point) = point else { continue };
                let cy = TOP + ROW * row as f64 + 4.0 + step * (index as f64 + 0.5);
                let ends = point.interval.map(|(low, high)| ((x.at(low), cy), (x.at(high), cy)));
                self.add_point(&mut svg, index, row, point, (x.at(point.value), cy), ends);
            }
            svg.push_str("</g>\n");
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Draws a mark and its interval, with a tooltip that gives both.
    fn add_point(
        &self,
        svg: &mut String,
        curve: usize,
        row: usize,
        point: &Point,
        at: (f64, f64),
        ends: Option<((f64, f64), (f64, f64))>,
    ) {
        let (decimals, unit) = (self.decimals, &self.unit);
        let mut words = format!("{}, {}: {:.decimals$} {unit}", self.labels[row], self.curves[curve].name, point.value);
        if let Some((low, high)) = point.interval {
            let _ = write!(words, ", 95%: {low:.decimals$} to {high:.decimals$}");
        }
        let _ = write!(svg, "<g><title>{}</title>", escaped(&words));
        if let Some(((x1, y1), (x2, y2))) = ends {
            let _ = write!(svg, "<line class=\"span\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
        }
        svg.push_str(&mark(&self.curves[curve].class, at, point.hollow));
        svg.push_str("</g>\n");
    }
}

/// A mark in the arm's own shape, so that arms differ not only by colour.
pub fn mark(class: &str, (x, y): (f64, f64), hollow: bool) -> String {
    let style = if hollow { "mark hollow" } else { "mark" };
    let polygon = |points: &[(f64, f64)]| {
        let points: Vec<String> = points.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
        format!("<polygon class=\"{style}\" points=\"{}\"/>", points.join(" "))
    };
    match class {
        "arm1" => polygon(&[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)]),
        "arm2" => polygon(&[(0.0, -4.2), (4.0, 3.2), (-4.0, 3.2)]),
        "arm3" => polygon(&[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)]),
        "arm4" => polygon(&[(0.0, 4.2), (4.0, -3.2), (-4.0, -3.2)]),
        "published" => polygon(&[(-4.5, -1.2), (4.5, -1.2), (4.5, 1.2), (-4.5, 1.2)]),
        _ => format!("<circle class=\"{style}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"),
    }
}

/// A tick's value, with no more digits than the ticks need.
fn short(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        size if size >= 9.999e8 => (value / 1e9, "G"),
        size if size >= 9.999e5 => (value / 1e6, "M"),
        size if size >= 9.999e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{scaled:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    // Adding up steps such as 0.1 may give something like -0.000000.
    let text = if text == "-0" { "0" } else { text };
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(labels: &[&str], values: &[f64], zero: bool) -> Chart {
        let point = |&value: &f64| Some(Point { value, interval: Some((value - 1.0, value + 1.0)), hollow: false });
        let curve = Curve { name: "a".into(), class: "arm0".into(), points: values.iter().map(point).collect() };
        Chart {
            title: "t".into(),
            unit: "s".into(),
            labels: labels.iter().map(|label| label.to_string()).collect(),
            curves: vec![curve],
            zero,
            decimals: 2,
        }
    }

    #[test]
    fn powers_stand_on_a_logarithmic_axis_at_equal_distances() {
        let svg = chart(&["1", "2", "4", "8", "16"], &[3.0, 3.0, 4.0, 5.0, 6.0], false).svg().unwrap();
        let at: Vec<f64> = svg
            .lines()
            .filter(|line| line.starts_with("<text") && line.contains("middle\">"))
            .filter_map(|line| line.split('"').nth(1)?.parse().ok())
            .collect();
        assert_eq!(at.len(), 5, "{svg}");
        let steps: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|step| (step - steps[0]).abs() < 0.2), "{steps:?}");
        // 1, 2 and 3 differ too little for a logarithmic axis.
        let svg = chart(&["1", "2", "3"], &[1.0, 2.0, 3.0], false).svg().unwrap();
        assert!(svg.contains("<polyline"), "{svg}");
    }

    #[test]
    fn labels_that_are_no_numbers_stand_below_each_other() {
        let svg = chart(&["Min", "Mean", "Max"], &[1.0, 2.0, 9.0], false).svg().unwrap();
        assert!(!svg.contains("<polyline") && svg.contains(">Mean</text>"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3);
    }

    #[test]
    fn nothing_leaves_the_drawing() {
        let mut wide = chart(&["1", "2", "4"], &[1.0, -2.0, 1.5], true);
        wide.curves[0].points[1] = Some(Point { value: -2.0, interval: Some((-900.0, 800.0)), hollow: true });
        let svg = wide.svg().unwrap();
        for attribute in ["x1=\"", "x2=\"", "cx=\"", "y1=\"", "y2=\"", "cy=\""] {
            for rest in svg.split(attribute).skip(1) {
                let value: f64 = rest.split('"').next().unwrap().parse().unwrap();
                let most = if attribute.contains('x') { WIDTH } else { HEIGHT };
                assert!((0.0..=most).contains(&value), "{attribute}{value}\n{svg}");
            }
        }
        assert!(svg.contains("class=\"zero\"") && svg.contains("mark hollow"), "{svg}");
    }

    #[test]
    fn ticks_are_round_and_few() {
        let axis = |low, high, log| Axis::new((low, high), log, (0.0, 100.0));
        assert_eq!(axis(0.0, 10.0, false).ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(axis(1.0, 1000.0, true).ticks(), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(axis(0.9, 30.0, true).ticks(), [1.0, 2.0, 5.0, 10.0, 20.0]);
        for (low, high) in [(0.0, 1e-4), (-3.7, 12.2), (99.0, 101.0), (1e6, 9e7)] {
            let ticks = axis(low, high, false).ticks();
            assert!((3..=7).contains(&ticks.len()), "{low} {high}: {ticks:?}");
        }
        let words = [0.0, -0.2, 1.5, 2_000.0, 20_000.0, 1.5e6, 0.000_05].map(short);
        assert_eq!(words, ["0", "-0.2", "1.5", "2000", "20k", "1.5M", "0.00005"]);
    }

    #[test]
    fn without_figures_there_is_no_drawing() {
        let mut empty = chart(&["1"], &[1.0], true);
        empty.curves[0].points = vec![None];
        assert_eq!(empty.svg(), None);
    }
}
