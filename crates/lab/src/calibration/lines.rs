//! The time of a cache line from one CPU to another, for every distance that the computer has, in the order that
//! machine files require.

use super::fit::Range;
use super::write::ran;
use super::{Measurement, Observed};
use machine::description::How;
use machine::topology::Distance;

/// The guess where no distance was measured.
const GUESS: Range = Range { value: 40.0, low: 15.0, high: 150.0 };

/// A figure of `[line]`, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub distance: Distance,
    pub range: Range,
    pub how: How,
    pub source: String,
}

/// The figures, nearest distance first. A distance that was not measured costs as much as the next nearer one, or else
/// as the next farther. Measurements that contradict the order of distances are adjusted to it.
pub(super) fn lines(observed: &Observed) -> Vec<Line> {
    let distances = observed.topology.distances();
    let mut lines: Vec<Line> = distances.iter().skip(1).filter_map(|&distance| measured(observed, distance)).collect();
    for &distance in distances.iter().skip(1) {
        if lines.iter().any(|line| line.distance == distance) {
            continue;
        }
        let at = lines.iter().position(|line| line.distance > distance).unwrap_or(lines.len());
        let nearer = lines[..at].iter().max_by(|a, b| a.range.value.total_cmp(&b.range.value));
        let farther = lines[at..].iter().min_by(|a, b| a.range.value.total_cmp(&b.range.value));
        let (range, source) = match nearer.or(farther) {
            Some(line) => (line.range, format!("no such pair of CPUs was measured: as {}", line.distance.name())),
            None => (GUESS, "this process may use one CPU only: nothing was measured".to_string()),
        };
        lines.insert(at, Line { distance, range, how: How::Guess, source });
    }
    put_in_order(&mut lines);
    lines
}

/// One figure for a distance from the matrix of pairs: the value is the median pair's; the range goes from the lowest
/// bound of any pair to the slowest pair.
fn measured(observed: &Observed, distance: Distance) -> Option<Line> {
    let of = observed.lines.iter().filter(|(other, _)| *other == distance.name());
    let mut pairs: Vec<&Measurement> = of.filter_map(|(_, name)| observed.measurement(name)).collect();
    pairs.sort_by(|a, b| a.value.total_cmp(&b.value));
    let middle = pairs.get(pairs.len() / 2)?;
    let low = pairs.iter().map(|pair| pair.low).fold(middle.low, f64::min);
    // A few disturbed bursts of one pair say nothing about the machine; that its slowest pair is slow does.
    let high = pairs.last().map_or(middle.value, |pair| pair.value).max(middle.value * 1.2);
    let source = format!("{} pairs, the median one: {}", pairs.len(), ran(middle));
    Some(Line { distance, range: Range { value: middle.value, low, high }, how: How::Measured, source })
}

/// Enforces the order that machine files require. A virtual machine's CPUs may lie elsewhere than it says, so
/// measurements may contradict the order. The farther distance then costs as much as the nearer.
fn put_in_order(lines: &mut [Line]) {
    for at in 1..lines.len() {
        let (nearer, rest) = lines.split_at_mut(at);
        let line = &mut rest[0];
        let above = |other: &&Line| {
            let other = *other;
            // Within a package's last level cache, overlapping ranges leave it open which is less.
            let open = line.distance <= Distance::Llc || other.distance < Distance::Llc;
            let cluster = (other.distance, line.distance) == (Distance::Cluster, Distance::Llc);
            let meets =
                open && other.how == How::Measured && line.how == How::Measured && other.range.low <= line.range.high;
            other.range.value > line.range.value && !cluster && !meets
        };
        let dearest = nearer.iter().filter(above).max_by(|a, b| a.range.value.total_cmp(&b.range.value));
        if let Some(other) = dearest {
            let was = format!("; {:.3} ns were measured, less than of {}", line.range.value, other.distance.name());
            line.source.push_str(&was);
            let value = other.range.value;
            line.range = Range { value, low: line.range.low, high: line.range.high.max(value) };
            line.how = How::Derived;
        }
    }
}
