//! Counts what a real kernel executes: boots it in QEMU with a pair of processes that hand a byte to and fro, logs every instruction for
//! a while, and prints how many each function takes for a message. `cargo xtask count-instructions` is this; docs/fidelity.md is its manual.
//!
//! An instruction belongs to the innermost function that has a price of its own in machine files, so that what a compiler put in line is
//! told apart; where there is none, to the function of the symbol table.

mod symbols;

use crate::guest::{self, Guest};
use crate::{arguments, initramfs};
use machine::topology::{Numbering, from_synthetic};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use symbols::Symbols;

pub const USAGE: &str = "usage: cargo xtask count-instructions --kernel VMLINUZ --symbols VMLINUX [OPTIONS]

  --kernel VMLINUZ    the kernel to boot
  --symbols VMLINUX   the same one with symbols and debug information; Debian's linux-image-...-dbg packages have it
  --cpus N            1: both processes on one CPU (default); 2: a CPU for each
  --machine TOPOLOGY  in hwloc's synthetic notation (default \"pack:1 l3:1 core:2 pu:1\")
  --warm N            messages to and fro before it counts (default 3000)
  --messages N        messages of which it counts (default 100)
  --append WORDS, --qemu PROGRAM, --limit SECONDS, --keep FOLDER
                      as record-fidelity has them; kept is every address";

/// Each message is one write(): what that is from v4.17 on, and its two names before.
const MESSAGE: [&str; 3] = ["ksys_write", "sys_write", "SyS_write"];

#[derive(Debug, PartialEq, Eq)]
struct Options {
    of_guest: arguments::Arguments,
    symbols: PathBuf,
    cpus: usize,
    machine: String,
    warm: u64,
    messages: u64,
}

/// # Errors
/// What is wrong with the words, or with what they name.
pub fn run(words: &[String]) -> Result<(), String> {
    let options = parse(words).map_err(|message| format!("{message}\n\n{USAGE}"))?;
    let symbols = Symbols::read(&options.symbols)?;
    let log = trace(&options)?;
    let counted = count(BufReader::new(std::fs::File::open(&log).map_err(|error| error.to_string())?), &symbols);
    if let Some(folder) = &options.of_guest.keep {
        std::fs::copy(&log, folder.join("instructions.txt")).map_err(|error| error.to_string())?;
    }
    let _ = std::fs::remove_file(&log);
    let counted = counted?;
    let owners = symbols.owners(counted.executed.keys().copied())?;
    print!("{}", table(&counted, &owners, &symbols));
    Ok(())
}

fn parse(words: &[String]) -> Result<Options, String> {
    let (mut symbols, mut cpus, mut machine) = (PathBuf::new(), 1, "pack:1 l3:1 core:2 pu:1".to_string());
    let (mut warm, mut messages, mut rest) = (3000, 100, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} without a value"));
        let number = |text: &String| text.parse().map_err(|_| format!("{word} {text}; expected a whole number"));
        match word.as_str() {
            "--symbols" => symbols = value()?.into(),
            "--machine" => machine.clone_from(value()?),
            "--cpus" => cpus = number(value()?)? as usize,
            "--warm" => warm = number(value()?)?,
            "--messages" => messages = number(value()?)?,
            _ => rest.push(word.clone()),
        }
    }
    if !(1..=2).contains(&cpus) {
        return Err(format!("--cpus {cpus}; expected 1 or 2"));
    }
    if symbols.as_os_str().is_empty() {
        return Err("no symbols; expected --symbols VMLINUX".to_string());
    }
    // Nothing is recorded here, so there are no cases.
    let of_guest = arguments::options(&rest)?;
    Ok(Options { of_guest, symbols, cpus, machine, warm, messages: messages.max(1) })
}

/// Boots the guest and logs its instructions: the log's place.
fn trace(options: &Options) -> Result<PathBuf, String> {
    let (qemu, kernel) = guest::found(&options.of_guest)?;
    let topology =
        from_synthetic(&options.machine, "--machine", Numbering::LinuxX86).map_err(|error| error.to_string())?;
    let machine = guest::machine(&topology)?;
    let image = initramfs::of(&guest::built("pingpong.c")?, "");
    let parameters = [format!("quiet pingpong={},{}", options.cpus, options.warm)];
    let command_line = guest::command_line(&parameters, &options.of_guest);
    let guest = Guest { qemu: &qemu, kernel: &kernel, machine: &machine, command_line: &command_line, image: &image };
    guest.trace(&options.of_guest, options.messages)
}

/// What was executed, by address.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    executed: BTreeMap<u64, u64>,
    instructions: u64,
    messages: u64,
}

/// Reads QEMU's log, one line for each instruction: `Trace CPU: HOST [BASE/ADDRESS/FLAGS/...] `. The first and the last message are not whole,
/// and left out. With two CPUs both work on a message by turns.
fn count(log: impl BufRead, symbols: &Symbols) -> Result<Counted, String> {
    let begin = MESSAGE.iter().find_map(|name| symbols.address(name));
    let begin = begin.ok_or_else(|| format!("the symbols have none of {}", MESSAGE.join("(), ") + "()"))?;
    let (mut counted, mut message, mut begun) = (Counted::default(), Vec::new(), false);
    for line in log.lines() {
        let line = line.map_err(|error| format!("QEMU's log: {error}"))?;
        let Some(address) = address_of(&line) else { continue };
        if address == begin {
            if begun {
                counted.messages += 1;
                counted.instructions += message.len() as u64;
                message.iter().for_each(|&address| *counted.executed.entry(address).or_default() += 1);
            }
            begun = true;
            message.clear();
        }
        message.push(address);
    }
    if counted.messages == 0 {
        return Err("no message was logged from begin to end".to_string());
    }
    Ok(counted)
}

fn address_of(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("Trace ")?;
    let address = rest.split('/').nth(1)?;
    u64::from_str_radix(address, 16).ok()
}

/// What belongs to one function.
#[derive(Default)]
struct Row {
    instructions: u64,
    calls: u64,
}

fn table(counted: &Counted, owners: &BTreeMap<u64, String>, symbols: &Symbols) -> String {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for (&address, &times) in &counted.executed {
        let owner = owners.get(&address).map_or("user space", String::as_str);
        rows.entry(owner).or_default().instructions += times;
    }
    for (name, row) in &mut rows {
        row.calls = symbols.address(name).and_then(|begin| counted.executed.get(&begin)).copied().unwrap_or(0);
    }
    let mut rows: Vec<(&str, Row)> = rows.into_iter().collect();
    rows.sort_by_key(|(name, row)| (std::cmp::Reverse(row.instructions), *name));
    let messages = counted.messages as f64;
    let priced: BTreeSet<&str> = symbols::priced().collect();
    let mut text = format!(
        "{} messages, {:.0} instructions each\n\n{:<36}{:>12}{:>10}{:>12}\n",
        counted.messages,
        counted.instructions as f64 / messages,
        "function (* has a price)",
        "a message",
        "calls",
        "each call"
    );
    for (name, row) in rows {
        let mark = if priced.contains(name) { "*" } else { "" };
        let _ = write!(text, "{:<36}{:>12.1}", format!("{name}{mark}"), row.instructions as f64 / messages);
        let _ = match row.calls {
            // Part of its callers, which is all that can be told of it.
            0 => writeln!(text, "{:>10}{:>12}", "-", "-"),
            calls => {
                writeln!(text, "{:>10.2}{:>12.1}", calls as f64 / messages, row.instructions as f64 / calls as f64)
            }
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(addresses: &[u64]) -> String {
        addresses
            .iter()
            .map(|at| format!("Trace 0: 0x7f3d [0000000000000000/{at:016x}/18c0c2b0/ff020201] \n"))
            .collect()
    }

    fn symbols() -> Symbols {
        Symbols::parsed("0000000000001000 T ksys_write\n0000000000002000 t update_se\n0000000000003000 T __schedule\n")
    }

    #[test]
    fn whole_messages_count_and_nothing_else() {
        // The tail of one, two messages, and the head of another.
        let text =
            log(&[0x2004, 0x1000, 0x1004, 0x2000, 0x1000, 0x2000, 0x2004, 0x3000, 0x1000, 0x3000]) + "execution\n";
        let counted = count(text.as_bytes(), &symbols()).unwrap();
        assert_eq!((counted.messages, counted.instructions), (2, 7));
        assert_eq!(counted.executed[&0x2000], 2);
        assert_eq!(counted.executed[&0x3000], 1);
        assert!(count(log(&[0x1000, 0x2000]).as_bytes(), &symbols()).is_err());
    }

    #[test]
    fn what_is_in_line_has_no_calls_of_its_own() {
        let counted = count(log(&[0x1000, 0x2000, 0x2004, 0x2008, 0x1000]).as_bytes(), &symbols()).unwrap();
        let owner = |address: u64, name: &str| (address, name.to_string());
        let owners = [
            owner(0x1000, "ksys_write"),
            owner(0x2000, "update_se"),
            owner(0x2004, "account_mm_sched"),
            owner(0x2008, "account_mm_sched"),
        ];
        let text = table(&counted, &owners.into_iter().collect(), &symbols());
        assert!(text.starts_with("1 messages, 4 instructions each\n"), "{text}");
        let row = |name: &str| {
            text.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().skip(1).collect::<Vec<_>>()
        };
        assert_eq!(row("account_mm_sched*"), ["2.0", "-", "-"]);
        assert_eq!(row("update_se"), ["1.0", "1.00", "1.0"]);
    }

    #[test]
    fn options_are_told_from_those_of_the_guest() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let options = parse(&words("--kernel k --symbols s --cpus 2 --limit 60")).unwrap();
        assert_eq!((options.cpus, options.of_guest.limit_s, options.symbols), (2, 60, "s".into()));
        for (text, message) in [
            ("--kernel k", "no symbols"),
            ("--symbols s", "no kernel"),
            ("--kernel k --symbols s --cpus 3", "--cpus 3"),
            ("--kernel k --symbols s --warm soon", "--warm soon"),
            ("--kernel k --symbols s case.toml", "case.toml"),
        ] {
            assert!(parse(&words(text)).unwrap_err().starts_with(message), "{text}");
        }
    }
}
