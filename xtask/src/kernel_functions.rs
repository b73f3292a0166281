//! The functions of each kernel version, and their files: names only, read from source trees outside this repository.
//!
//! `cargo xtask kernel-functions v4.5-rc1=TREE v4.15=TREE ...` writes `xtask/kernel-functions.tsv`. From it the kernel
//! map takes the versions of each function, and the functions that we do not have. `cargo xtask kernel-functions --add
//! v7.2=TREE` adds one version.

use crate::tidy::read;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The versions that have each function, in the order of the list, by file and function.
pub type Functions = BTreeMap<(String, String), Vec<String>>;

const LIST: &str = "xtask/kernel-functions.tsv";
const FOLDER: &str = "kernel/sched";
/// Files of kernel/sched that do not affect when and where a task runs, or are debugging and accounting.
const LEFT_OUT: &[&str] = &[
    "build_policy.c",
    "build_utility.c",
    "completion.c",
    "core_sched.c",
    "cpuacct.c",
    "ext.c",
    "ext_idle.c",
    "membarrier.c",
    "rq-offsets.c",
    "swait.c",
    "wait.c",
    "wait_bit.c",
];

/// Writes the list anew from trees of all its versions.
pub fn write(root: &Path, trees: &[&str]) -> Result<(), String> {
    let mut functions = Functions::new();
    for tree in trees {
        add(&mut functions, tree)?;
    }
    save(root, &functions)
}

/// Adds one version to the committed list, or replaces that version; this does not need the trees of the others.
pub fn write_one(root: &Path, tree: &str) -> Result<(), String> {
    let mut functions = committed(root)?;
    let (version, _) = parts(tree)?;
    for versions in functions.values_mut() {
        versions.retain(|other| other != version);
    }
    add(&mut functions, tree)?;
    functions.retain(|_, versions| !versions.is_empty());
    functions.values_mut().for_each(|versions| versions.sort_by_key(|version| numbers(version)));
    save(root, &functions)
}

fn parts(tree: &str) -> Result<(&str, &str), String> {
    tree.split_once('=').ok_or(format!("{tree}: expected VERSION=TREE"))
}

/// `v4.5-rc1` is 4 and 5: a release candidate is not distinguished from its release here.
fn numbers(version: &str) -> Vec<u32> {
    let release = version.trim_start_matches('v').split('-').next().unwrap_or_default();
    release.split('.').filter_map(|number| number.parse().ok()).collect()
}

/// Adds what one tree defines, `VERSION=TREE`.
fn add(functions: &mut Functions, tree: &str) -> Result<(), String> {
    let (version, path) = parts(tree)?;
    let folder = Path::new(path).join(FOLDER);
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".c") || LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        for function in defined(&read(&file)?) {
            let versions = functions.entry((name.clone(), function)).or_default();
            if versions.last().is_none_or(|last| last != version) {
                versions.push(version.to_string());
            }
        }
    }
    Ok(())
}

fn save(root: &Path, functions: &Functions) -> Result<(), String> {
    let mut text = String::new();
    for ((file, function), versions) in functions {
        let _ = writeln!(text, "{file}\t{function}\t{}", versions.join(","));
    }
    let path = root.join(LIST);
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// The committed list.
pub fn committed(root: &Path) -> Result<Functions, String> {
    let mut functions = Functions::new();
    for line in read(&root.join(LIST))?.lines() {
        let [file, function, versions] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("{LIST}: found `{line}`; expected file, function and versions with tabs between them"));
        };
        let versions = versions.split(',').map(str::to_string).collect();
        functions.insert((file.to_string(), function.to_string()), versions);
    }
    Ok(functions)
}

/// The names of the functions that a C source in the kernel's style defines: an opening brace alone at the beginning of
/// a line, preceded by a declarator.
fn defined(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut names = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| **line == "{") {
        let mut head = String::new();
        for line in lines[..at].iter().rev() {
            let ends =
                line.is_empty() || line.starts_with(['}', '#', '{', '/']) || line.ends_with([';', '/', '\\', '}']);
            if ends {
                break;
            }
            head = format!("{line} {head}");
        }
        let Some((before, _)) = head.split_once('(') else { continue };
        let name = before.trim_end().rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        // The name of a macro that defines a function (SYSCALL_DEFINE, late_initcall) is not the function's name.
        if is_name && !name.starts_with("SYSCALL_DEFINE") && !name.starts_with("COMPAT_SYSCALL") {
            names.push(name.to_string());
        }
    }
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        let mut versions = ["v6.12", "v7.2", "v4.15", "v6.1", "v4.5-rc1"];
        versions.sort_by_key(|version| numbers(version));
        assert_eq!(versions, ["v4.5-rc1", "v4.15", "v6.1", "v6.12", "v7.2"]);
    }

    #[test]
    fn definitions_are_told_from_declarations() {
        let text = "\
static int declared(int a);

/* a comment */
static inline int
defined_in_two_lines(struct rq *rq,
\t\t     int flags)
{
\treturn 0;
}
#ifdef X
void other(void)
{
}
#endif
struct s
{
\tint a;
};
static const struct t table = {
};
";
        assert_eq!(defined(text), ["defined_in_two_lines", "other"]);
    }
}
