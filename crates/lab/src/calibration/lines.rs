//! What a cache line takes from one CPU to another, by distance: of every distance that the computer has, and in the order that machine
//! files ask for.

use super::fit::Range;
use super::write::ran;
use super::{Measurement, Observed};
use machine::description::How;
use machine::topology::Distance;

/// Where nothing near or far was measured.
const GUESS: Range = Range { value: 40.0, low: 15.0, high: 150.0 };

/// A figure of `[line]`, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub distance: Distance,
    pub range: Range,
    pub how: How,
    pub source: String,
}

/// Nearest first. What was not measured is as dear as what is nearer, or else as what is farther; what was measured in another order than
/// that of distances is put in order.
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

/// The matrix, pressed into one figure for a distance: the median pair, and from the least of the nearest to the most of the farthest.
fn measured(observed: &Observed, distance: Distance) -> Option<Line> {
    let of = observed.lines.iter().filter(|(other, _)| *other == distance.name());
    let mut pairs: Vec<&Measurement> = of.filter_map(|(_, name)| observed.measurement(name)).collect();
    pairs.sort_by(|a, b| a.value.total_cmp(&b.value));
    let middle = pairs.get(pairs.len() / 2)?;
    let low = pairs.iter().map(|pair| pair.low).fold(middle.low, f64::min);
    // One pair's disturbed bursts are no property of the machine; the slowest pair is.
    let high = pairs.last().map_or(middle.value, |pair| pair.value).max(middle.value * 1.2);
    let source = format!("{} pairs, the median one: {}", pairs.len(), ran(middle));
    Some(Line { distance, range: Range { value: middle.value, low, high }, how: How::Measured, source })
}

/// The order that machine files ask for. A virtual machine's CPUs need not lie where it says, so measurements may have another: then what is
/// farther is as dear as what is nearer.
fn put_in_order(lines: &mut [Line]) {
    for at in 1..lines.len() {
        let (nearer, rest) = lines.split_at_mut(at);
        let line = &mut rest[0];
        let above = |other: &&Line| {
            let other = *other;
            // Ranges that meet leave it open which is less, within a package's last level cache.
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
