//! The program under test, and folders to run it in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The shortest possible comparison.
#[allow(dead_code, reason = "not every test file needs it")]
pub const TINY: &[&str] = &[
    "--machine",
    "core-i7-3770",
    "--workload",
    "pipetest:batches=2,loops=5",
    "--arm",
    "vanilla=v4.5-rc1",
    "--arm",
    "nostats=v4.5-rc1,stats.schedstats=tunable",
    "--iterations",
    "2",
];

/// An empty folder for one test.
pub fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder for the test");
    path
}

pub fn fairground(within: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairground"));
    command.current_dir(within);
    command
}

/// What a finished program printed.
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

pub fn said(output: Output) -> Said {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    let code = output.status.code().unwrap_or_else(|| panic!("ended by a signal: {}", output.status));
    Said { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs the program to its end.
pub fn run(within: &Path, arguments: &[&str]) -> Said {
    said(fairground(within).args(arguments).output().expect("the program starts"))
}

/// Runs it, and it must succeed.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn run_well(within: &Path, arguments: &[&str]) -> Said {
    let said = run(within, arguments);
    assert_eq!(said.code, 0, "{arguments:?}: {}", said.stderr);
    said
}

/// Every file and empty folder below a folder, by its relative path, sorted.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let name = |path: &Path| path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
        let entries: Vec<PathBuf> =
            fs::read_dir(&next).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        if entries.is_empty() && next != folder {
            files.push(name(&next) + "/");
        }
        for entry in entries {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                files.push(name(&entry));
            }
        }
    }
    files.sort();
    files
}

/// Splits words as a shell does, without a comment that begins with `#`.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                // Empty quotes are a word.
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
