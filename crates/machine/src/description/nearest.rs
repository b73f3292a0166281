//! The name that a user may have meant.

/// The one of `names` that is nearest to `given` in keystrokes (letters added, omitted, changed or swapped), if it is
/// near enough to be meant: at most a third of the letters differ, or a single one of several, or one of the names
/// begins with the other. A name that continues the given one comes before others; among equals the first wins.
pub fn nearest_name<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<((bool, usize), &str)> = None;
    for name in names {
        let longer = given.chars().count().max(name.chars().count());
        let near_enough = (longer / 3).max(usize::from(longer > 1));
        let begins = given.chars().count() >= 3 && (name.starts_with(given) || given.starts_with(name));
        let steps = keystrokes(given, name);
        let order = (!(begins && name.starts_with(given)), steps);
        if (steps <= near_enough || begins) && best.is_none_or(|(least, _)| order < least) {
            best = Some((order, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Damerau and Levenshtein's distance without repeated edits of one place ("optimal string alignment").
fn keystrokes(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
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
        before = above;
        above = row;
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_hand_are_understood() {
        let names = ["source", "range", "value", "unit", "how"];
        assert_eq!(nearest_name("soruce", names), Some("source"));
        assert_eq!(nearest_name("ranges", names), Some("range"));
        assert_eq!(nearest_name("val", names), Some("value"));
        assert_eq!(nearest_name("latency", names), None);
        assert_eq!(nearest_name("", names), None);
        // Half of the letters differ.
        assert_eq!(nearest_name("time", ["size"]), None);
        assert_eq!(
            nearest_name("hackbench", ["schbench", "hackbench-pipes", "hackbench-sockets"]),
            Some("hackbench-pipes")
        );
        assert_eq!(keystrokes("abcd", "abdc"), 1);
        assert_eq!(keystrokes("kitten", "sitting"), 3);
    }
}
