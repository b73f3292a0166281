//! A mistake of the user: where it is, what was found, and what would be right.

use machine::description::{DescriptionError, nearest_name};
use machine::topology::TopologyError;
use std::fmt;
use workloads::rt_app::RtAppError;

pub use machine::topology::{Location, excerpt};

/// Prints as one line: `file:line:column: found this; expected that`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub at: Location,
    pub found: String,
    pub expected: String,
    pub wording: Wording,
}

/// The most letters of each part of a message: more than any list of names that is worth reading.
const LONGEST_PART: usize = 1_000;

/// Replaces invisible characters, and those that look like a blank, by their numbers: otherwise a wrong word would look
/// right.
fn visible(text: String) -> String {
    let unseen = |c: char| match c {
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{feff}' => true,
        _ => c.is_whitespace() && !c.is_ascii(),
    };
    if !text.contains(unseen) {
        return text;
    }
    text.chars().map(|c| if unseen(c) { format!("<U+{:04X}>", u32::from(c)) } else { c.to_string() }).collect()
}

/// The wording of a mistake's two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Phrases that follow "found" and "expected".
    Phrases,
    /// Two clauses: `"run" is true; it should be a whole number`.
    Clauses,
}

impl Mistake {
    /// Parts that are longer than a message should be are cut.
    pub fn new(at: &Location, found: impl Into<String>, expected: impl Into<String>) -> Mistake {
        let [found, expected] = [found.into(), expected.into()].map(|text| excerpt(&visible(text), LONGEST_PART));
        Mistake { at: at.clone(), found, expected, wording: Wording::Phrases }
    }

    /// A file that cannot be opened, read or written.
    pub fn file(path: &str, error: Unreadable, expected: &str) -> Mistake {
        let (line, column) = error.place.unzip();
        Mistake::new(&Location { input: path.to_string(), line, column }, error.why, expected)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // All of these may contain names that users give, even the place.
        let [at, found, expected] = [self.at.to_string(), self.found.clone(), self.expected.clone()]
            .map(|text| excerpt(&text, LONGEST_PART + 3));
        match self.wording {
            Wording::Phrases => write!(f, "{at}: found {found}; expected {expected}"),
            Wording::Clauses => write!(f, "{at}: {found}; {expected}"),
        }
    }
}

impl std::error::Error for Mistake {}

/// Why the text of a file cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub why: String,
    /// Line and column, counted from 1, if the file's content is at fault.
    pub place: Option<(u32, u32)>,
}

impl Unreadable {
    /// Why a folder has no text.
    pub const FOLDER: &str = "a folder";
}

impl From<String> for Unreadable {
    fn from(why: String) -> Unreadable {
        Unreadable { why, place: None }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.why)
    }
}

impl From<TopologyError> for Mistake {
    fn from(error: TopologyError) -> Mistake {
        Mistake::new(&error.at, error.found, error.expected)
    }
}

impl From<DescriptionError> for Mistake {
    fn from(error: DescriptionError) -> Mistake {
        let expected = format!("{} (rule: {})", error.expected, error.rule);
        Mistake::new(&error.at, error.found, expected)
    }
}

impl From<RtAppError> for Mistake {
    fn from(error: RtAppError) -> Mistake {
        let (line, column) = (Some(error.position.line), Some(error.position.column));
        let at = Location { input: error.file, line, column };
        Mistake { wording: Wording::Clauses, ..Mistake::new(&at, error.found, error.right) }
    }
}

/// A piece of the user's text, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub text: String,
    pub at: Location,
}

impl Written {
    /// The value of a command-line option; its place is named by what the user typed: `--machine xeon`.
    pub fn option(option: &str, text: &str) -> Written {
        Written { text: text.to_string(), at: Location::of(&format!("{option} {}", excerpt(text, 60))) }
    }

    /// The part of an option's value at byte `offset`.
    pub fn part(&self, offset: usize, text: &str) -> Written {
        let column = self.text[..offset].chars().count() as u32 + 1;
        Written { text: text.to_string(), at: Location { column: Some(column), ..self.at.clone() } }
    }

    /// The text, shortened for quoting.
    pub fn quoted(&self) -> String {
        format!("`{}`", excerpt(&self.text, 60))
    }

    pub fn mistake(&self, found: impl Into<String>, expected: impl Into<String>) -> Mistake {
        Mistake::new(&self.at, found, expected)
    }

    /// The mistake of a name that is not among `known`: it says what the name should be of, and gives the nearest.
    pub fn unknown<'n>(&self, what: &str, known: impl IntoIterator<Item = &'n str> + Clone) -> Mistake {
        let expected = match nearest_name(&self.text, known.clone()) {
            Some(nearest) => format!("`{nearest}`, perhaps"),
            None => format!("one of {}", listed(known)),
        };
        self.mistake(format!("the unknown {what} {}", self.quoted()), expected)
    }

    /// An integer within bounds; `_` may stand between digits.
    pub fn whole(&self, what: &str, low: u64, high: u64) -> Result<u64, Mistake> {
        let digits = self.text.replace('_', "");
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        match digits.parse::<u64>() {
            Ok(number) if plain && (low..=high).contains(&number) => Ok(number),
            _ => {
                let expected = format!("a whole number from {low} to {high}");
                Err(self.mistake(format!("{what} = {}", excerpt(&self.text, 40)), expected))
            }
        }
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, what: &str, choices: &[(&str, T)]) -> Result<T, Mistake> {
        match choices.iter().find(|(name, _)| *name == self.text) {
            Some((_, value)) => Ok(*value),
            None => Err(self.unknown(what, choices.iter().map(|(name, _)| *name))),
        }
    }
}

/// Names in a sentence; if there are very many, only the first ones.
pub fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    const SHOWN: usize = 32;
    let mut names: Vec<&str> = names.into_iter().collect();
    if names.len() > SHOWN {
        names.truncate(SHOWN);
        names.push("...");
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_option_has_a_column() {
        let option = Written::option("--workload", "pipetest:lops=5");
        let part = option.part(9, "lops");
        let message = part.unknown("parameter", ["batches", "loops"]).to_string();
        let expected =
            "--workload pipetest:lops=5, column 10: found the unknown parameter `lops`; expected `loops`, perhaps";
        assert_eq!(message, expected);
    }

    #[test]
    fn what_nobody_sees_is_told_by_its_number() {
        let message = Written::option("--arm", "x").mistake("`\u{feff}ta\u{200b}sk\u{a0}ü`\n", "`task`").to_string();
        assert_eq!(message, "--arm x: found `<U+FEFF>ta<U+200B>sk<U+00A0>ü` ; expected `task`");
    }

    #[test]
    fn numbers_are_whole_and_bounded() {
        let number = |text: &str| Written::option("--seed", text).whole("seed", 1, 100);
        assert_eq!(number("7"), Ok(7));
        assert_eq!(number("1_0"), Ok(10));
        for wrong in ["0", "101", "-3", "+3", "3.0", "", "_", "1e2", "99999999999999999999999"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }
}
