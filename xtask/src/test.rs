//! `cargo xtask test`: every check; those that fail soonest come first.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

pub fn run(root: &Path) -> Result<(), String> {
    before_a_commit(root)?;
    step("lints", || cargo(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    step("documentation", || cargo(root, &["doc", "--quiet", "--workspace", "--no-deps"]))?;
    step("tests", || cargo(root, &["test", "--workspace", "--quiet"]))?;
    step("release build", || cargo(root, &["build", "--release", "--quiet", "-p", "cli"]))?;
    step("fidelity", || cargo(root, &["run", "--release", "--quiet", "-p", "cli", "--", "fidelity", "--quiet"]))?;
    step("committed tables", || crate::tables::check(root, crate::tables::SHORT))?;
    // Its output is for people: a shared computer's figures are no verdict.
    step("this computer, calibrated and measured", || crate::fidelity_host::run(root, &["--short"]))
}

/// The checks that take a second or two, of which `.githooks/pre-commit` lets none fail.
pub fn before_a_commit(root: &Path) -> Result<(), String> {
    step("tidy", || crate::tidy::run(root))?;
    step("kernel map", || crate::kernel_map::check(root))?;
    step("format", || cargo(root, &["fmt", "--all", "--check"]))
}

fn step(name: &str, check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let started = Instant::now();
    eprintln!("== {name}");
    check().map_err(|message| format!("{name}: {message}"))?;
    eprintln!("== {name}: passed in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

pub fn cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let status = Command::new("cargo").args(arguments).current_dir(root).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo {} ended with {status}", arguments.join(" "))),
        Err(error) => Err(format!("cargo: {error}")),
    }
}
