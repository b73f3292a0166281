//! What is wrong with an input, and where.

use std::fmt;

/// A place in a user's input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// A file's name, a path inside a sysfs tree, or what the input is (`synthetic topology`).
    pub input: String,
    /// Counted from 1.
    pub line: Option<u32>,
    /// In characters, counted from 1.
    pub column: Option<u32>,
}

impl Location {
    pub fn of(input: &str) -> Location {
        Location { input: input.to_string(), line: None, column: None }
    }

    /// The place of byte `offset` in `text`.
    pub fn in_text(input: &str, text: &str, offset: usize) -> Location {
        let (line, column) = line_and_column(text, offset);
        Location { input: input.to_string(), line: Some(line), column: Some(column) }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.input)?;
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, ":{line}:{column}"),
            (Some(line), None) => write!(f, ":{line}"),
            (None, Some(column)) => write!(f, ", column {column}"),
            (None, None) => Ok(()),
        }
    }
}

/// Line and column, both counted from 1, of byte `offset` in `text`; the column counts characters.
pub fn line_and_column(text: &str, offset: usize) -> (u32, u32) {
    let before = &text[..whole_characters(text, offset)];
    let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |tail| tail.chars().count()) + 1;
    (line as u32, column as u32)
}

/// The end of the last character that ends at or before byte `offset`, or the text's end.
fn whole_characters(text: &str, offset: usize) -> usize {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// Where the lines of a text begin, so that many offsets can be located without reading the text again for each.
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Lines<'a> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { text, starts }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    /// As [`Location::in_text`] does.
    pub fn locate(&self, input: &str, offset: usize) -> Location {
        let line = self.starts.partition_point(|&start| start <= offset).max(1);
        let before = &self.text[self.starts[line - 1]..whole_characters(self.text, offset)];
        Location { input: input.to_string(), line: Some(line as u32), column: Some(before.chars().count() as u32 + 1) }
    }
}

/// A topology that cannot be used. Its text is one line: the place, what was found, what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    pub at: Location,
    pub found: String,
    pub expected: String,
}

impl TopologyError {
    pub fn new(at: Location, found: impl Into<String>, expected: impl Into<String>) -> TopologyError {
        TopologyError { at, found: found.into(), expected: expected.into() }
    }

    /// The same error for a tree that is in a folder: its place begins with `folder` instead of `root`.
    pub fn below(mut self, root: &str, folder: &str) -> TopologyError {
        if let Some(path) = self.at.input.strip_prefix(root) {
            self.at.input = format!("{folder}{path}");
        }
        self
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}; expected {}", self.at, self.found, self.expected)
    }
}

impl std::error::Error for TopologyError {}

/// At most `limit` characters of a user's text, for quoting in a message.
pub fn excerpt(text: &str, limit: usize) -> String {
    let mut out: String = text.chars().take(limit).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(limit).is_some() {
        out.push_str("...");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = "ab\nçd\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, 3), (2, 1));
        assert_eq!(line_and_column(text, 5), (2, 2));
        assert_eq!(line_and_column(text, 4), (2, 1));
        assert_eq!(line_and_column(text, 99), (3, 1));
        let lines = Lines::new(text);
        for offset in 0..=text.len() {
            assert_eq!(lines.locate("t", offset), Location::in_text("t", text, offset));
        }
    }

    #[test]
    fn an_error_is_one_line() {
        let error = TopologyError::new(Location::in_text("m.xml", "a\nb", 2), "`b`", "`c`");
        assert_eq!(error.to_string(), "m.xml:2:1: found `b`; expected `c`");
        let mut at = Location::of("synthetic topology");
        at.column = Some(7);
        assert_eq!(TopologyError::new(at, "x", "y").to_string(), "synthetic topology, column 7: found x; expected y");
    }

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt("abc\ndef", 5), "abc d...");
        assert_eq!(excerpt("abc", 5), "abc");
    }
}
