//! `cargo xtask guided`: a build that is laid out by a profile of itself (profile-guided optimisation). docs/speed.md has what it is worth.
//!
//! A build that counts (`target/guided/counting`) runs every case of the benchmark; `llvm-profdata` of the Rust toolchain adds the counts up,
//! and a second build (`target/guided`) places branches, blocks and calls by them. No profile is kept in the repository: it would be one of
//! older code with each commit.

use crate::bench;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds `fairground` and the benchmark; the folder in which they lie.
///
/// # Errors
/// What does not build or run, or which part of the toolchain is missing.
pub fn build(root: &Path) -> Result<PathBuf, String> {
    let toolchain = Toolchain::find()?;
    let target = bench::target(root).join("guided");
    let (counting, counts) = (target.join("counting"), target.join("counts"));
    eprintln!("== a build that counts");
    toolchain.cargo(root, &counting, "-Cprofile-generate", &counts)?;
    // Counts of older code are of other functions, and scripts that ran while this was built have counted, too.
    let _ = fs::remove_dir_all(&counts);
    eprintln!("== runs of every case");
    bench::train(&counting.join("release/bench"))?;
    let profile = target.join("profile.profdata");
    let merge = Command::new(&toolchain.profdata).args(["merge", "-o"]).args([&profile, &counts]).status();
    if !merge.is_ok_and(|status| status.success()) {
        return Err(format!("{} does not add up what lies in {}", toolchain.profdata.display(), counts.display()));
    }
    eprintln!("== the build that it guides");
    toolchain.cargo(root, &target, "-Cprofile-use", &profile)?;
    Ok(target.join("release"))
}

struct Toolchain {
    /// What it builds for, such as x86_64-unknown-linux-gnu.
    host: String,
    profdata: PathBuf,
}

impl Toolchain {
    fn find() -> Result<Toolchain, String> {
        let host = rustc(&["-vV"])?;
        let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc -vV names no host")?;
        let bin = PathBuf::from(rustc(&["--print", "sysroot"])?.trim()).join("lib/rustlib").join(host).join("bin");
        let profdata = bin.join("llvm-profdata");
        if !profdata.exists() {
            let found = profdata.display();
            return Err(format!("{found} is missing; `rustup component add llvm-tools` brings it"));
        }
        Ok(Toolchain { host: host.to_string(), profdata })
    }

    /// A release build with one flag more than those of .cargo/config.toml. Always of both packages: which features the libraries below have
    /// hangs on who is built, and with them the names of functions, by which counts are found again.
    fn cargo(&self, root: &Path, target: &Path, flag: &str, path: &Path) -> Result<(), String> {
        let flags = format!("target.{}.rustflags=[{:?}]", self.host, format!("{flag}={}", path.display()));
        let built = Command::new("cargo")
            .args(["build", "--quiet", "--release", "-p", "bench", "-p", "cli", "--config", &flags, "--target-dir"])
            .arg(target)
            // These would stand in place of all flags of the configuration.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .current_dir(root)
            .status();
        if built.is_ok_and(|status| status.success()) { Ok(()) } else { Err(format!("no build with {flag}")) }
    }
}

fn rustc(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("rustc").args(arguments).output().map_err(|error| format!("rustc: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
