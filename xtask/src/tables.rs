//! The committed tables of `experiments/`: each experiment with a table beside it must still print that table.

use crate::tidy::read;
use std::path::Path;
use std::process::Command;

/// Runs every `experiments/NAME.toml` that has an `experiments/NAME.txt` and compares what it prints.
pub fn check(root: &Path) -> Result<(), String> {
    let folder = root.join("experiments");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .map_err(|e| format!("experiments: {e}"))?
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .filter_map(|p| p.file_stem().map(|s| s.to_string_lossy().to_string()))
        .collect();
    names.sort();
    if names.is_empty() {
        return Err("no experiment has a committed table".to_string());
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
        let committed = read(&folder.join(format!("{name}.txt")))?;
        if printed != committed {
            changed.push(difference(&name, &committed, &printed));
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

fn difference(name: &str, committed: &str, printed: &str) -> String {
    let mut lines = vec![format!("experiments/{name}.txt:")];
    let (old, new): (Vec<&str>, Vec<&str>) = (committed.lines().collect(), printed.lines().collect());
    for at in 0..old.len().max(new.len()) {
        let (was, is) = (old.get(at), new.get(at));
        if was != is {
            lines.push(format!("  line {}: committed {:?}, now {:?}", at + 1, was.unwrap_or(&""), is.unwrap_or(&"")));
        }
    }
    lines.join("\n")
}
