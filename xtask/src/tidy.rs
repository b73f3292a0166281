//! `cargo xtask tidy`: checks the shape of the code base.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The dependencies that the design allows: each crate, and the crates it may use directly. What it may use directly,
/// it may also use through others.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("fentry", &[]),
    ("sched", &["units", "fentry"]),
    ("machine", &["sched"]),
    ("os", &["sched"]),
    ("observe", &["sched"]),
    ("sim", &["machine", "os"]),
    ("workloads", &["sim"]),
    ("lab", &["sim", "workloads", "observe"]),
    ("host", &[]),
    ("cli", &["lab", "host"]),
];

/// The most lines of a file and of a function. A function that mirrors one of the kernel's keeps the kernel's boundary,
/// and a test may contain the text it expects; neither is limited.
const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 70;

pub fn run(root: &Path) -> Result<(), String> {
    let mut faults = Vec::new();
    arrows(root, &mut faults)?;
    architecture(root, &mut faults)?;
    scenarios(root, &mut faults)?;
    crate::links::check(root, &mut faults)?;
    let files = rust_files(root)?;
    crate::layers::check(root, &files, &mut faults)?;
    let mut tests = claimed(root)?;
    for file in files {
        let text = read(&file)?;
        tests.retain(|test| !text.contains(&format!("fn {test}()")));
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        sizes(&name, &text, &mut faults);
        words(&name, &text, &mut faults);
    }
    faults.extend(tests.iter().map(|test| {
        format!("{CLAIMS}: found the test {test}, which is none; expected one that fails where the claim is wrong")
    }));
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("{} faults\n  {}", faults.len(), faults.join("\n  ")))
}

/// The page whose last chapter names a test for each claim.
const CLAIMS: &str = "docs/cost-model.md";

/// The tests named in that chapter: words of at least three parts.
fn claimed(root: &Path) -> Result<BTreeSet<String>, String> {
    let page = read(&root.join(CLAIMS))?;
    let (_, chapter) =
        page.split_once("\n## What is checked\n").ok_or(format!("{CLAIMS}: no chapter of what is checked"))?;
    let words = chapter.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_test = |word: &&str| {
        word.matches('_').count() >= 2 && word.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c))
    };
    Ok(words.filter(is_test).map(str::to_string).collect())
}

/// Checks that every scenario has a row in the page of mechanisms, and that every scenario named there exists.
fn scenarios(root: &Path, faults: &mut Vec<String>) -> Result<(), String> {
    const PAGE: &str = "docs/mechanisms.md";
    let page = read(&root.join(PAGE))?;
    let rows = page.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with('|'));
    let pictures = rows.filter_map(|row| row.trim_end_matches('|').rsplit_once('|')).map(|(_, pictures)| pictures);
    let named: BTreeSet<&str> = pictures.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let folder = root.join("crates/sim/tests/scenarios");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files: BTreeSet<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| Some(entry.file_name().to_string_lossy().strip_suffix(".txt")?.to_string()))
        .collect();
    faults.extend(files.iter().filter(|file| !named.contains(file.as_str())).map(|file| {
        format!("{PAGE}: found no row with the scenario {file}; expected each to stand beside what it shows")
    }));
    faults.extend(named.iter().filter(|name| !files.contains(**name)).map(|name| {
        format!("{PAGE}: found the scenario {name}, which is none; expected a file of {}", folder.display())
    }));
    Ok(())
}

/// Checks that dependencies between crates follow [`ARROWS`], and that every crate has a place there.
fn arrows(root: &Path, faults: &mut Vec<String>) -> Result<(), String> {
    let direct: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let rooms = rooms(root)?;
    for room in &rooms {
        if !direct.contains_key(room.as_str()) {
            faults.push(format!("crates/{room}: a room without arrows; give it its place in xtask/src/tidy.rs"));
        }
    }
    for (room, _) in ARROWS {
        let manifest = root.join("crates").join(room).join("Cargo.toml");
        let Ok(text) = fs::read_to_string(&manifest) else {
            faults.push(format!("crates/{room}: named among the arrows, but there is no such room"));
            continue;
        };
        let allowed = reachable(room, &direct);
        for used in dependencies(&text) {
            if direct.contains_key(used.as_str()) && !allowed.contains(used.as_str()) {
                faults.push(format!("crates/{room}/Cargo.toml: {room} -> {used} is no arrow of the design"));
            }
        }
    }
    Ok(())
}

fn reachable<'a>(from: &str, direct: &BTreeMap<&'a str, &'a [&'a str]>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = direct.get(from).map_or(Vec::new(), |to| to.to_vec());
    while let Some(room) = open.pop() {
        let Some((&name, next)) = direct.get_key_value(room) else { continue };
        if found.insert(name) {
            open.extend(*next);
        }
    }
    found
}

/// The names under `[dependencies]` of a manifest. Dependencies of tests do not count.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
        } else if inside && let Some((name, _)) = line.split_once(['=', '.']) {
            names.push(name.trim().to_string());
        }
    }
    names
}

/// Checks that ARCHITECTURE.md names every crate, and no crate that does not exist.
fn architecture(root: &Path, faults: &mut Vec<String>) -> Result<(), String> {
    let text = read(&root.join("ARCHITECTURE.md"))?;
    let rooms = rooms(root)?;
    for room in &rooms {
        if !text.contains(&format!("`crates/{room}`")) {
            faults.push(format!("ARCHITECTURE.md: does not say what `crates/{room}` is for"));
        }
    }
    for mention in text.split("`crates/").skip(1) {
        let path = mention.split('`').next().unwrap_or_default();
        if !root.join("crates").join(path).exists() {
            faults.push(format!("ARCHITECTURE.md: there is no crates/{path}"));
        }
    }
    Ok(())
}

fn sizes(name: &str, text: &str, faults: &mut Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > FILE_LINES {
        faults.push(format!("{name}: {} lines; at most {FILE_LINES}", lines.len()));
    }
    let mut at = 0;
    while at < lines.len() {
        let trimmed = lines[at].trim_start();
        let indent = lines[at].len() - trimmed.len();
        if is_function(trimmed) && !trimmed.ends_with(';') {
            let closing = format!("{}}}", " ".repeat(indent));
            let end = (at..lines.len()).find(|&i| lines[i] == closing).unwrap_or(at);
            let length = end - at + 1;
            if length > FUNCTION_LINES && !mirrors_the_kernel(&lines[..at]) && !is_test(&lines[..at]) {
                faults.push(format!("{name}:{}: a function of {length} lines; at most {FUNCTION_LINES}", at + 1));
            }
        }
        at += 1;
    }
}

fn is_function(line: &str) -> bool {
    let line = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
    line.trim_start_matches("const ").starts_with("fn ")
}

/// A test may contain the text it expects.
fn is_test(above: &[&str]) -> bool {
    above.last().is_some_and(|l| l.trim_start() == "#[test]")
}

/// Whether the comment above a function names the kernel function that it mirrors.
fn mirrors_the_kernel(above: &[&str]) -> bool {
    let comment = above.iter().rev().map(|l| l.trim_start());
    let mut comment = comment.take_while(|l| l.starts_with("///") || l.starts_with("#["));
    comment.any(|l| crate::kernel_map::mirrored(l).is_some())
}

/// Reports words that are not allowed in some crates.
fn words(name: &str, text: &str, faults: &mut Vec<String>) {
    let stem = Path::new(name).file_stem().map_or(String::new(), |s| s.to_string_lossy().to_string());
    if ["util", "utils", "common", "misc", "helpers"].contains(&stem.as_str()) {
        faults.push(format!("{name}: a file is named for what it holds"));
    }
    let everywhere: &[&str] = &["todo!(", "unimplemented!(", "dbg!("];
    let decides = ["crates/units/src", "crates/sched/src", "crates/machine/src", "crates/os/src", "crates/sim/src"];
    let scheduler: &[&str] = &["HashMap", "HashSet", "std::time", "println!", "-> Result<", "std::fs"];
    let numbers: &[&str] = &["f64", "f32", "HashMap", "SystemTime", "Instant::now"];
    let mut banned: Vec<&str> = everywhere.to_vec();
    if name.starts_with("crates/sched/src") {
        banned.extend(scheduler);
    }
    if decides.iter().any(|room| name.starts_with(room)) || name.starts_with("crates/workloads/src") {
        banned.extend(numbers);
    }
    if name.starts_with("xtask/") {
        return;
    }
    for (at, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for word in &banned {
            if contains_word(code, word) {
                faults.push(format!("{name}:{}: `{word}` has no place in this room", at + 1));
            }
        }
    }
}

fn contains_word(code: &str, word: &str) -> bool {
    let boundary = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(word).any(|(at, _)| {
        let starts_name = word.starts_with(|c: char| c.is_alphanumeric());
        let ends_name = word.ends_with(|c: char| c.is_alphanumeric());
        (!starts_name || boundary(code[..at].chars().next_back()))
            && (!ends_name || boundary(code[at + word.len()..].chars().next()))
    })
}

fn rooms(root: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root.join("crates")).map_err(|e| format!("crates: {e}"))?;
    let mut rooms: Vec<String> = entries
        .flatten()
        .filter(|e| e.path().join("Cargo.toml").exists())
        .map(|e| e.file_name().to_string_lossy().to_string())
        .collect();
    rooms.sort();
    Ok(rooms)
}

/// Every Rust source of the workspace, in order.
pub fn rust_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut open = vec![root.join("crates"), root.join("benches"), root.join("xtask")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|n| n != "target") {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_are_followed_through_other_rooms_but_never_backwards() {
        let direct: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
        let sim = reachable("sim", &direct);
        assert!(sim.contains("sched") && sim.contains("units"));
        assert!(!sim.contains("lab") && !sim.contains("observe"));
        assert!(!reachable("machine", &direct).contains("os"));
    }

    #[test]
    fn a_word_is_found_as_a_word() {
        assert!(contains_word("let x: f64 = 1.0;", "f64"));
        assert!(!contains_word("let xf64y = 1;", "f64"));
        assert!(contains_word("todo!()", "todo!("));
    }

    #[test]
    fn long_functions_are_faults_unless_they_mirror_the_kernel() {
        let body = "    x();\n".repeat(80);
        let mut faults = Vec::new();
        sizes("a.rs", &format!("fn long() {{\n{body}}}\n"), &mut faults);
        assert_eq!(faults.len(), 1);
        faults.clear();
        sizes("a.rs", &format!("/// fair.c: long().\nfn long() {{\n{body}}}\n"), &mut faults);
        assert_eq!(faults, Vec::<String>::new());
    }
}
