//! A number with its unit, its source, its origin, and the bounds of its plausible values.

use crate::topology::{Decimal, DecimalError};
use std::fmt;
use units::{Cycles, Ps};

/// What a number counts. Values of one dimension are kept in one base unit, as integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Picoseconds.
    Time,
    /// Picoseconds for 1024 bytes.
    TimePerBytes,
    /// Hertz.
    Frequency,
    /// Core clock cycles.
    Cycles,
    /// Thousandths of instructions, so that a fraction of a function's instructions can be given.
    Instructions,
    /// Thousandths of cycles.
    CyclesPerInstruction,
    /// Thousandths.
    Ratio,
    /// Bytes.
    Size,
    /// Things.
    Count,
    /// Microwatts.
    Power,
}

/// A unit as machine files write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub name: &'static str,
    pub dimension: Dimension,
    /// Base units in one of this unit.
    pub scale: u64,
}

macro_rules! units {
    ($($name:literal $dimension:ident $scale:expr;)+) => {
        /// Every unit a machine file may use.
        pub const UNITS: &[Unit] =
            &[$(Unit { name: $name, dimension: Dimension::$dimension, scale: $scale },)+];
    };
}

units! {
    "ps" Time 1;
    "ns" Time 1_000;
    "us" Time 1_000_000;
    "ms" Time 1_000_000_000;
    "ps/B" TimePerBytes 1_024;
    "ns/B" TimePerBytes 1_024_000;
    "ps/KiB" TimePerBytes 1;
    "ns/KiB" TimePerBytes 1_000;
    "Hz" Frequency 1;
    "kHz" Frequency 1_000;
    "MHz" Frequency 1_000_000;
    "GHz" Frequency 1_000_000_000;
    "cycles" Cycles 1;
    "instructions" Instructions 1_000;
    "cycles/instruction" CyclesPerInstruction 1_000;
    "ratio" Ratio 1_000;
    "percent" Ratio 10;
    "permille" Ratio 1;
    "B" Size 1;
    "KiB" Size 1 << 10;
    "MiB" Size 1 << 20;
    "GiB" Size 1 << 30;
    "count" Count 1;
    "uW" Power 1;
    "mW" Power 1_000;
    "W" Power 1_000_000;
}

impl Unit {
    pub fn named(name: &str) -> Option<Unit> {
        UNITS.iter().copied().find(|unit| unit.name == name)
    }

    /// A value in base units as a decimal number of this unit; the inverse of [`scaled`].
    pub fn text(self, value: u64) -> String {
        let (whole, rest) = (value / self.scale, value % self.scale);
        if rest == 0 {
            return whole.to_string();
        }
        // Scales of 1024 need up to 30 binary, and so 30 decimal places.
        let (mut rest, mut digits) = (u128::from(rest), String::new());
        while rest > 0 {
            rest *= 10;
            digits.push(char::from(b'0' + (rest / u128::from(self.scale)) as u8));
            rest %= u128::from(self.scale);
        }
        format!("{whole}.{digits}")
    }
}

impl Dimension {
    /// The names of its units, for messages.
    pub fn units(self) -> String {
        let names: Vec<&str> = UNITS.iter().filter(|unit| unit.dimension == self).map(|unit| unit.name).collect();
        names.join(", ")
    }
}

/// Why the text of a number is no value in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleError {
    Text(DecimalError),
    /// Not a whole number of base units, or too large.
    TooFineOrLarge,
}

/// The text of a number in `unit` as an integer in base units.
pub fn scaled(text: &str, unit: Unit) -> Result<u64, ScaleError> {
    let decimal = Decimal::parse(text).map_err(ScaleError::Text)?;
    decimal.times_exactly(unit.scale).ok_or(ScaleError::TooFineOrLarge)
}

/// How a figure came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Somebody measured it on such a machine, or we did; the source says who.
    Measured,
    /// The manufacturer says so.
    Vendor,
    /// Published somewhere, without a known measurement.
    Published,
    /// Computed from other figures.
    Derived,
    /// Set so that a simulation meets a published result; the source says which.
    Fitted,
    /// Plausible.
    Guess,
}

impl How {
    pub const ALL: [How; 6] = [How::Measured, How::Vendor, How::Published, How::Derived, How::Fitted, How::Guess];

    pub fn name(self) -> &'static str {
        match self {
            How::Measured => "measured",
            How::Vendor => "vendor",
            How::Published => "published",
            How::Derived => "derived",
            How::Fitted => "fitted",
            How::Guess => "guess",
        }
    }

    pub fn named(name: &str) -> Option<How> {
        How::ALL.into_iter().find(|how| how.name() == name)
    }
}

/// A number of a machine file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// In base units of `unit.dimension`.
    pub value: u64,
    /// The unit in which it is written.
    pub unit: Unit,
    pub source: String,
    pub how: How,
    /// The lowest and highest plausible value, in base units; contains `value`.
    pub range: (u64, u64),
}

impl Figure {
    fn of(&self, dimension: Dimension) -> u64 {
        assert_eq!(self.unit.dimension, dimension, "a figure is asked for what it is not: {self}");
        self.value
    }

    /// # Panics
    /// These accessors panic if the figure is of another dimension; a [`Description`](super::Description) has checked
    /// it.
    pub fn time(&self) -> Ps {
        Ps(self.of(Dimension::Time))
    }

    pub fn cycles(&self) -> Cycles {
        Cycles(self.of(Dimension::Cycles))
    }

    pub fn hertz(&self) -> u64 {
        self.of(Dimension::Frequency)
    }

    pub fn permille(&self) -> u64 {
        self.of(Dimension::Ratio)
    }

    pub fn bytes(&self) -> u64 {
        self.of(Dimension::Size)
    }

    pub fn count(&self) -> u64 {
        self.of(Dimension::Count)
    }

    pub fn ps_per_kib(&self) -> u64 {
        self.of(Dimension::TimePerBytes)
    }

    /// The same value with less confidence: a guess, with twice the margin below and above, inside of `bounds`.
    pub fn borrowed(self, from: &str, bounds: (u64, u64)) -> Figure {
        Figure {
            source: format!("taken from {from}: {}", self.source),
            how: How::Guess,
            range: ((self.range.0 / 2).max(bounds.0), self.range.1.saturating_mul(2).min(bounds.1)),
            ..self
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.unit.text(self.value), self.unit.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str) -> Unit {
        Unit::named(name).unwrap()
    }

    #[test]
    fn values_are_exact_in_both_directions() {
        for (text, name, value) in [
            ("7.6", "ns", 7_600),
            ("2", "us", 2_000_000),
            ("2.3", "GHz", 2_300_000_000),
            ("0.08", "ns/B", 81_920),
            ("0.625", "ratio", 625),
            ("62.5", "percent", 625),
            ("1.5", "MiB", 1_572_864),
            ("30", "MiB", 31_457_280),
            ("0.0009765625", "KiB", 1),
        ] {
            assert_eq!(scaled(text, unit(name)), Ok(value), "{text} {name}");
            assert_eq!(unit(name).text(value), text, "{value} as {name}");
        }
    }

    #[test]
    fn what_is_finer_than_the_base_unit_is_refused() {
        assert_eq!(scaled("0.0001", unit("ns")), Err(ScaleError::TooFineOrLarge));
        assert_eq!(scaled("1.5", unit("cycles")), Err(ScaleError::TooFineOrLarge));
        assert_eq!(scaled("99999999999999999999", unit("ps")), Err(ScaleError::TooFineOrLarge));
        assert_eq!(scaled("-1", unit("ns")), Err(ScaleError::Text(DecimalError::Negative)));
    }

    #[test]
    fn a_borrowed_figure_is_a_guess_with_more_room() {
        let source = "somebody".to_string();
        let figure = Figure { value: 40_000, unit: unit("ns"), source, how: How::Published, range: (20_000, 60_000) };
        assert_eq!(figure.to_string(), "40 ns");
        let borrowed = figure.clone().borrowed("a-machine", (0, u64::MAX));
        assert_eq!((borrowed.how, borrowed.range, borrowed.value), (How::Guess, (10_000, 120_000), 40_000));
        assert_eq!(borrowed.source, "taken from a-machine: somebody");
        assert_eq!(figure.borrowed("a-machine", (15_000, 70_000)).range, (15_000, 70_000));
    }

    #[test]
    #[should_panic(expected = "asked for what it is not")]
    fn dimensions_are_not_mixed_up() {
        let source = String::new();
        Figure { value: 1, unit: unit("ns"), source, how: How::Guess, range: (1, 1) }.cycles();
    }
}
