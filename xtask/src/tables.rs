//! Committed tables: an experiment with a table in `experiments/`, or in `docs/studies/` if it takes minutes, must
//! still print that table.

use crate::tidy::read;
use std::path::Path;
use std::process::Command;

/// The folder of short experiments' tables, which every test run prints again.
pub const SHORT: &str = "experiments";
/// The folder of the studies' tables.
pub const STUDIES: &str = "docs/studies";

/// Runs every `experiments/NAME.toml` that has a `FOLDER/NAME.txt`, and compares its output with that file.
pub fn check(root: &Path, folder: &str) -> Result<(), String> {
    let mut names: Vec<String> = std::fs::read_dir(root.join(folder))
        .map_err(|e| format!("{folder}: {e}"))?
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .filter_map(|p| p.file_stem().map(|s| s.to_string_lossy().to_string()))
        .filter(|name| root.join(format!("experiments/{name}.toml")).exists())
        .collect();
    names.sort();
    if names.is_empty() {
        return Err(format!("no experiment has a committed table in {folder}"));
    }
    let mut changed = Vec::new();
    for name in names {
        let out = std::env::temp_dir().join(format!("fairground-table-{name}-{}", std::process::id()));
        let printed = Command::new("cargo")
            .args(["run", "--release", "--quiet", "-p", "cli", "--", "compare", "--quiet"])
            .arg(format!("experiments/{name}.toml"))
            .arg("--out")
            .arg(&out)
            .current_dir(root)
            .output()
            .map_err(|e| format!("cargo: {e}"))?;
        let _ = std::fs::remove_dir_all(&out);
        if !printed.status.success() {
            return Err(format!("experiments/{name}.toml: {}", String::from_utf8_lossy(&printed.stderr)));
        }
        let printed = String::from_utf8_lossy(&printed.stdout).to_string();
        let file = format!("{folder}/{name}.txt");
        let committed = read(&root.join(&file))?;
        if printed != committed {
            changed.push(difference(&file, &committed, &printed));
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "a committed table has changed; if that is meant, print it into its file again and say why in the commit\n{}",
        changed.join("\n")
    ))
}

fn difference(file: &str, committed: &str, printed: &str) -> String {
    let mut lines = vec![format!("{file}:")];
    let (old, new): (Vec<&str>, Vec<&str>) = (committed.lines().collect(), printed.lines().collect());
    for at in 0..old.len().max(new.len()) {
        let (was, is) = (old.get(at), new.get(at));
        if was != is {
            lines.push(format!("  line {}: committed {:?}, now {:?}", at + 1, was.unwrap_or(&""), is.unwrap_or(&"")));
        }
    }
    lines.join("\n")
}
