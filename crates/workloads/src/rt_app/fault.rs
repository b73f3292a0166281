//! Messages for the user: errors and warnings with their position, and the nearest valid name.

use std::fmt;

/// A place in the file, counted from 1. Columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A file that cannot be run: what was found, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtAppError {
    pub file: String,
    pub position: Position,
    pub found: String,
    pub right: String,
}

impl fmt::Display for RtAppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}; {}", self.file, self.position.line, self.position.column, self.found, self.right)
    }
}

impl std::error::Error for RtAppError {}

/// Something that runs, but perhaps not as its author thinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub position: Position,
    pub kind: WarningKind,
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.position.line, self.position.column, self.text)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// Accepted, and changes nothing here.
    NoEffect,
    /// Repeated names: rt-app alone and rt-app after workgen read the file differently.
    Duplicates,
    /// rt-app reads this differently from what it looks like, or its versions differ.
    Reading,
    /// Threads may wait for ever, or use a lock they do not hold.
    Waiting,
    /// Part of the file never runs, or all of it never ends.
    Running,
}

/// An error that does not name its file yet.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub position: Position,
    pub found: String,
    pub right: String,
}

impl Fault {
    pub fn new(position: Position, found: impl Into<String>, right: impl Into<String>) -> Fault {
        Fault { position, found: found.into(), right: right.into() }
    }

    pub fn in_file(self, file: &str) -> RtAppError {
        RtAppError { file: file.into(), position: self.position, found: self.found, right: self.right }
    }
}

/// A name longer than this is not taken for a typo.
const LONGEST_COMPARED: usize = 64;

/// Valid names a message lists in full.
const MOST_LISTED: usize = 12;

/// `did you mean "x"?` where a valid name is close, else the list of valid names.
pub(super) fn suggestion<'a>(found: &str, valid: impl Iterator<Item = &'a str> + Clone) -> String {
    // A slip in every third character, rounded up, is still a slip.
    let near = nearest(found, valid.clone()).filter(|&(_, distance)| distance <= found.chars().count().div_ceil(3));
    if let Some((name, _)) = near {
        return format!("did you mean {}?", quoted(name));
    }
    let mut list: Vec<String> = valid.take(MOST_LISTED + 1).map(quoted).collect();
    if let Some(beyond) = list.get_mut(MOST_LISTED) {
        *beyond = "...".into();
    }
    format!("valid here: {}", list.join(", "))
}

/// The valid name with the fewest edits from `found`, the first among equals, with that number.
pub(super) fn nearest<'a>(found: &str, valid: impl Iterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    let short = |name: &str| name.chars().count() <= LONGEST_COMPARED;
    if !short(found) {
        return None;
    }
    valid.filter(|name| short(name)).map(|name| (name, edits(found, name))).min_by_key(|&(_, distance)| distance)
}

/// Insertions, deletions, substitutions and swaps of neighbours, whatever the case (optimal string alignment).
fn edits(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

/// In double quotes on one line, cut to a readable length.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    let cut = if text.chars().count() > SHOWN { "..." } else { "" };
    let shown: String =
        text.chars().take(SHOWN).flat_map(|c| if c == '\'' { vec![c] } else { c.escape_debug().collect() }).collect();
    format!("\"{shown}{cut}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_one_slip_away() {
        let valid = ["sleep", "run", "runtime", "resume"];
        assert_eq!(nearest("slep", valid.into_iter()), Some(("sleep", 1)));
        assert_eq!(nearest("RUN", valid.into_iter()), Some(("run", 0)));
        assert_eq!(nearest("rnu", valid.into_iter()), Some(("run", 1)));
        assert_eq!(suggestion("resme", valid.into_iter()), "did you mean \"resume\"?");
        assert_eq!(suggestion("xyz", ["a", "b"].into_iter()), "valid here: \"a\", \"b\"");
        assert_eq!(nearest(&"r".repeat(1000), valid.into_iter()), None);
    }

    #[test]
    fn quotes_stay_on_one_line() {
        assert_eq!(quoted("a\nb'\"c"), r#""a\nb'\"c""#);
        assert_eq!(quoted(&"x".repeat(50)), format!("\"{}...\"", "x".repeat(40)));
    }
}
