//! Layers inside a crate: its modules, the files and folders at its top, use each other in one direction.

use crate::tidy::read;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates whose modules are layered.
const LAYERED: &[&str] = &["units", "fentry", "machine", "os", "workloads", "observe", "lab", "host", "cli"];

/// Each module with the modules that it names, and for each of these a file that does so.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// Reports circles among the modules of layered crates, each circle once.
pub fn check(root: &Path, files: &[std::path::PathBuf], faults: &mut Vec<String>) -> Result<(), String> {
    for room in LAYERED {
        let sources = root.join("crates").join(room).join("src");
        let mut uses = Uses::new();
        for file in files {
            let Ok(name) = file.strip_prefix(&sources) else { continue };
            add(&mut uses, &name.display().to_string(), &read(file)?);
        }
        faults.extend(circle(&uses).map(|circle| format!("crates/{room}: modules in a circle: {circle}")));
    }
    Ok(())
}

/// Adds what a file uses outside its tests.
fn add(uses: &mut Uses, name: &str, text: &str) {
    let module = name.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    let of_tests = ["tests", "fixtures", "schema"].iter().any(|word| name.ends_with(&format!("/{word}.rs")));
    if ["lib", "main"].contains(&module) || of_tests || name.contains("/tests/") {
        return;
    }
    let used = uses.entry(module.to_string()).or_default();
    for (number, line) in text.lines().enumerate() {
        // Tests come last in a file.
        if line.starts_with("#[cfg(test)]")
            && text.lines().nth(number + 1).is_some_and(|next| next.ends_with("mod tests {"))
        {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        for rest in code.split("crate::").skip(1) {
            // A group of names may continue on the following lines.
            let group = rest.strip_prefix('{').map(|first| {
                let below =
                    text.lines().skip(number + 1).flat_map(|line| [" ", line.split("//").next().unwrap_or_default()]);
                top_names(&std::iter::once(first).chain(below).collect::<String>())
            });
            for other in group.unwrap_or_else(|| vec![name_at(rest)]) {
                if other != module && !other.is_empty() {
                    used.entry(other).or_insert_with(|| name.to_string());
                }
            }
        }
    }
}

fn name_at(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// The first names in a brace group, after its opening brace.
fn top_names(text: &str) -> Vec<String> {
    let (mut names, mut depth, mut begins) = (Vec::new(), 0, true);
    for (at, letter) in text.char_indices() {
        match letter {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            letter if begins && !letter.is_whitespace() => {
                names.push(name_at(&text[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// A path from a module back to itself, with the files along it.
fn circle(uses: &Uses) -> Option<String> {
    let reaches = |from: &str, to: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            if module == to {
                return true;
            }
            if seen.insert(module) {
                open.extend(uses.get(module).into_iter().flat_map(|used| used.keys()).map(String::as_str));
            }
        }
        false
    };
    for (module, used) in uses {
        let back = used.iter().find(|(other, _)| uses.contains_key(*other) && reaches(other, module));
        let Some((mut at, file)) = back else { continue };
        let mut way = format!("{module} -> {at} ({file})");
        // This need not be the shortest path: every step leads on.
        let mut seen = BTreeSet::new();
        while at != module && seen.insert(at) {
            let next = uses[at].iter().find(|(next, _)| !seen.contains(*next) && reaches(next, module));
            let Some((next, file)) = next else { break };
            way += &format!(" -> {next} ({file})");
            at = next;
        }
        return Some(way);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(files: &[(&str, &str)]) -> Option<String> {
        let mut uses = Uses::new();
        files.iter().for_each(|(name, text)| add(&mut uses, name, text));
        circle(&uses)
    }

    #[test]
    fn a_circle_is_told_with_the_files_that_make_it() {
        let files = [
            ("a.rs", "use crate::b::B;\n"),
            ("b/mod.rs", ""),
            ("b/part.rs", "    crate::c::f();\n"),
            ("c.rs", "use crate::a::A;\n"),
        ];
        assert_eq!(told(&files).unwrap(), "a -> b (a.rs) -> c (b/part.rs) -> a (c.rs)");
        assert_eq!(told(&files[..3]), None);
        let group = "use crate::{\n    X, // crate::c\n    b::{self, d},\n    e,\n};\nuse sched::{c};\n";
        assert_eq!(told(&[("a.rs", group), ("b.rs", "use crate::{E, a};\n")]).unwrap(), "a -> b (a.rs) -> a (b.rs)");
        assert_eq!(told(&[("a.rs", group), ("d.rs", "use crate::a;\n"), ("c.rs", "use crate::a;\n")]), None);
    }

    #[test]
    fn tests_and_comments_and_the_room_itself_may_name_anything() {
        let test = "/// See [`crate::a`].\nuse crate::VERSION;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
        assert_eq!(told(&[("a.rs", "use crate::b::B;\n"), ("b.rs", test), ("b/tests.rs", "use crate::a::A;\n")]), None);
        assert_eq!(told(&[("a.rs", "use crate::a::part;\n"), ("lib.rs", "use crate::a;\n")]), None);
    }
}
