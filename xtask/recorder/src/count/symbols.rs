//! Whose instruction an address is: a kernel's symbol table, and its debug information where functions were put in line.

use lab::symbols::priced_as;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Kernel addresses begin here (Documentation/arch/x86/x86_64/mm.rst); all below is user space.
const KERNEL: u64 = 0xffff_8000_0000_0000;

const MISSING: &str = "expected binutils: on Debian, binutils";

/// Whose an instruction is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// As machine files call it, if it has a price there; otherwise the function of the symbol table.
    pub name: String,
    pub priced: bool,
    /// It is the first instruction of a call.
    pub begins: bool,
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
    /// What addr2line says, or if the kernel's version is not one that prices have names for.
    pub fn owners(&self, addresses: &BTreeSet<u64>) -> Result<BTreeMap<u64, Owner>, String> {
        let addresses: Vec<u64> = addresses.iter().copied().filter(|&address| address >= KERNEL).collect();
        let chains = chains(&addr2line(&self.file, &addresses)?);
        let priced = priced_as(&preset(&self.file)?);
        // Entries of system calls were called SyS_read and sys_read at once, until v4.17.
        let price_of = |name: &str| match name.strip_prefix("SyS_") {
            Some(call) => priced.get(format!("sys_{call}").as_str()),
            None => priced.get(name),
        };
        let owner = |address: u64| {
            let function = self.function(address).unwrap_or("?");
            let chain = chains.get(&address).into_iter().flatten().map(String::as_str);
            let price = chain.chain([function]).find_map(&price_of);
            let begins = self.functions.contains_key(&address);
            match price {
                // A call begins where the function does that the price is booked on.
                Some(price) => Owner {
                    name: price.name.to_string(),
                    priced: true,
                    begins: begins && price_of(function).is_some_and(|of| of.name == price.name && of.booked),
                },
                None => Owner { name: function.to_string(), priced: false, begins },
            }
        };
        Ok(addresses.into_iter().map(|address| (address, owner(address))).collect())
    }
}

/// The newest kernel of ours that is no newer than the one in this file, which says `Linux version 6.1.176 ...`.
fn preset(file: &Path) -> Result<String, String> {
    const SAYS: &[u8] = b"Linux version ";
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let number = |text: &str| {
        let mut parts = text.trim_start_matches('v').split(['.', '-', ' ']).map(|part| part.parse::<u32>());
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    };
    let releases = bytes.windows(SAYS.len()).enumerate().filter(|(_, window)| *window == SAYS);
    let release = releases.filter_map(|(at, _)| {
        let rest = &bytes[at + SAYS.len()..];
        number(&String::from_utf8_lossy(&rest[..rest.len().min(16)]))
    });
    let release = release.max().ok_or_else(|| format!("{} names no version of Linux", file.display()))?;
    let names = sched::versions::KERNELS.iter().map(|kernel| kernel.name);
    let known = names.filter(|name| number(name).is_some_and(|number| number <= release));
    let newest = known.max_by_key(|name| number(name));
    newest.map(str::to_string).ok_or_else(|| format!("Linux {}.{} is older than any kernel here", release.0, release.1))
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
