//! Names the engine by a hash of its sources: only the program that made a stored result takes it up again.

use std::fs;
use std::path::{Path, PathBuf};

/// All crates that decide what a run does.
const ENGINE: &[&str] = &["fentry", "lab", "machine", "os", "sched", "sim", "units", "workloads"];

fn main() {
    let crates = Path::new("..");
    let mut files = Vec::new();
    for name in ENGINE {
        let sources = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", sources.display());
        rust_files(&sources, &mut files);
    }
    files.sort();
    // FNV-1a: the hash need not resist attacks.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for file in &files {
        let text = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for byte in file.to_string_lossy().bytes().chain([0]).chain(text) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=FAIRGROUND_SOURCES={hash:016x}");
}

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}
