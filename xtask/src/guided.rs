//! `cargo xtask guided`: a build laid out by a profile of itself (profile-guided optimisation). docs/speed.md says what
//! it gains.
//!
//! A counting build (`target/guided/counting`) runs every case of the benchmark. `llvm-profdata` of the Rust toolchain
//! adds up the counts, and a second build (`target/guided`) places branches, blocks and calls by them. The repository
//! does not keep a profile, because each commit would make it one of older code.

use crate::bench;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds `fairground` and the benchmark, and returns the folder of both.
///
/// # Errors
/// What does not build or run, or which part of the toolchain is missing.
pub fn build(root: &Path) -> Result<PathBuf, String> {
    let toolchain = Toolchain::find()?;
    let target = bench::target(root).join("guided");
    let (counting, counts) = (target.join("counting"), target.join("counts"));
    eprintln!("== a build that counts");
    toolchain.cargo(root, &counting, "-Cprofile-generate", &counts)?;
    // Counts of older code are for other functions, and build scripts that ran during this build have counted too.
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
    /// The target triple, such as x86_64-unknown-linux-gnu.
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

    /// A release build with one flag in addition to those of .cargo/config.toml. It always builds both packages: which
    /// packages are built decides the features of libraries, and with them the names of functions, by which counts are
    /// matched.
    fn cargo(&self, root: &Path, target: &Path, flag: &str, path: &Path) -> Result<(), String> {
        let flags = format!("target.{}.rustflags=[{:?}]", self.host, format!("{flag}={}", path.display()));
        let built = Command::new("cargo")
            .args(["build", "--quiet", "--release", "-p", "bench", "-p", "cli", "--config", &flags, "--target-dir"])
            .arg(target)
            // These would replace all flags of the configuration.
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
