//! Whose instruction an address is: a kernel's symbol table, and its debug information where functions were put in line.

use os::paths;
use sched::access::Path as Priced;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Kernel addresses begin here (Documentation/arch/x86/x86_64/mm.rst); all below is user space.
const KERNEL: u64 = 0xffff_8000_0000_0000;

const MISSING: &str = "expected binutils: on Debian, binutils";

/// Functions that machine files have a price for.
pub fn priced() -> impl Iterator<Item = &'static str> {
    Priced::NAMES.iter().chain(paths::NAMES).copied()
}

/// Functions by where they begin.
#[derive(Debug, Default)]
pub struct Symbols {
    functions: BTreeMap<u64, String>,
    /// The kernel that they are of.
    file: PathBuf,
}

impl Symbols {
    /// # Errors
    /// What the file or the programs that read it lack.
    pub fn read(file: &Path) -> Result<Symbols, String> {
        let output =
            Command::new("nm").arg("-n").arg(file).output().map_err(|error| format!("nm: {error}; {MISSING}"))?;
        let mut symbols = Symbols::parsed(&String::from_utf8_lossy(&output.stdout));
        if symbols.functions.is_empty() {
            return Err(format!("{} has no symbols; expected a vmlinux with debug information", file.display()));
        }
        symbols.file = file.to_path_buf();
        Ok(symbols)
    }

    /// What nm prints: address, kind, name. A compiler's clone of a function (`.isra.0`, `.constprop.0`) goes by its name.
    pub fn parsed(text: &str) -> Symbols {
        let mut functions = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if let Ok(address) = u64::from_str_radix(address, 16) {
                let name = name.split('.').next().unwrap_or(name);
                functions.entry(address).or_insert_with(|| name.to_string());
            }
        }
        Symbols { functions, file: PathBuf::new() }
    }

    /// Where a function begins.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.functions.iter().find(|(_, function)| *function == name).map(|(&address, _)| address)
    }

    fn function(&self, address: u64) -> Option<&str> {
        let (_, name) = self.functions.range(..=address).next_back()?;
        (address >= KERNEL).then_some(name)
    }

    /// The owner of each of these addresses, but for those of user space.
    ///
    /// # Errors
    /// What addr2line says.
    pub fn owners(&self, addresses: impl Iterator<Item = u64>) -> Result<BTreeMap<u64, String>, String> {
        let addresses: Vec<u64> = addresses.filter(|&address| address >= KERNEL).collect();
        let chains = chains(&addr2line(&self.file, &addresses)?);
        let priced: BTreeSet<&str> = priced().collect();
        let owner = |address: u64| {
            let chain = chains.get(&address).into_iter().flatten();
            let innermost = chain.map(String::as_str).find(|name| priced.contains(name));
            innermost.or_else(|| self.function(address)).unwrap_or("?").to_string()
        };
        Ok(addresses.into_iter().map(|address| (address, owner(address))).collect())
    }
}

fn addr2line(file: &Path, addresses: &[u64]) -> Result<String, String> {
    let words = |error: std::io::Error| format!("addr2line: {error}; {MISSING}");
    let mut command = Command::new("addr2line");
    command.args(["-a", "-f", "-i", "-e"]).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(words)?;
    let text: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let mut stdin = child.stdin.take().expect("it is piped");
    // It answers while it is asked: who asks must not wait for room in a pipe that nobody reads.
    let asked = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(words)?;
    asked.join().expect("writing does not panic").map_err(words)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What addr2line prints of each address: itself, then name and place of each function that it is in, the innermost first.
fn chains(text: &str) -> BTreeMap<u64, Vec<String>> {
    let mut chains: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let (mut at, mut is_name) = (0, true);
    for line in text.lines() {
        if let Some(address) = line.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            (at, is_name) = (address, true);
            continue;
        }
        if is_name {
            chains.entry(at).or_default().push(line.to_string());
        }
        is_name = !is_name;
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_function_is_first() {
        let text = "0xffffffff81000010\n__update_mm_sched\nfair.c:1\naccount_mm_sched\nfair.c:2\nupdate_se\nfair.c:3\n\
                    0xffffffff81000020\n??\n??:0\n";
        let chains = chains(text);
        assert_eq!(chains[&0xffff_ffff_8100_0010], ["__update_mm_sched", "account_mm_sched", "update_se"]);
        assert_eq!(chains[&0xffff_ffff_8100_0020], ["??"]);
    }

    #[test]
    fn clones_go_by_the_functions_name() {
        let symbols = Symbols::parsed(
            "ffffffff81000000 t finish_task_switch.isra.0\nffffffff81000100 D jiffies\nffffffff81000200 T b\n",
        );
        assert_eq!(symbols.address("finish_task_switch"), Some(0xffff_ffff_8100_0000));
        assert_eq!(symbols.function(0xffff_ffff_8100_01ff), Some("finish_task_switch"));
        assert_eq!(symbols.function(0x40_0000), None);
    }
}
