//! Counts what a real kernel executes: boots it in QEMU with processes that do always the same, logs every instruction of the kernel for
//! a while, and prints how many each function takes. `cargo xtask count-instructions` is this; docs/fidelity.md is its manual.
//!
//! An instruction belongs to the innermost function that has a price of its own in machine files, so that what a compiler put in line is
//! told apart, and what a function without a price executes to the one that it was called for ([`attribution`]).

mod attribution;
mod symbols;

use crate::guest::{self, Guest};
use crate::{arguments, initramfs};
use attribution::{Attributed, Instruction};
use machine::topology::{Numbering, from_synthetic};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use symbols::Symbols;

pub const USAGE: &str = "usage: cargo xtask count-instructions --kernel VMLINUZ --symbols VMLINUX [OPTIONS]

  --kernel VMLINUZ    the kernel to boot
  --symbols VMLINUX   the same one with symbols and debug information; Debian's linux-image-...-dbg packages have it
  --of WHAT           pair: two processes hand a byte to and fro through pipes, counted by the message (default)
                      tcp, udp, unix, futex, epoll: the same through these, epoll by TCP; counted by the call that sends or wakes
                      stream, datagrams: one only sends, by TCP or UDP
                      mixture: processes spin, one sleeps, forks and waits; counted by the tick
  --cpus N            two processes: 1: both on one CPU (default), 2: a CPU for each; mixture: how many processes spin
  --bytes N           of a message through sockets (default 100)
  --machine TOPOLOGY  in hwloc's synthetic notation (default \"pack:1 l3:1 core:2 pu:1\")
  --warm N            messages to and fro, or rounds of the one that forks, before it counts (default 3000, or 8)
  --messages N        messages or ticks of which it counts, about (default 100)
  --calls             what each function without a price executes is its own, as the symbol table has it
  --append WORDS, --qemu PROGRAM, --limit SECONDS, --keep FOLDER
                      as record-fidelity has them; kept is every address";

/// Each message is one write(): what that is from v4.17 on, and its two names before.
const MESSAGE: &[&str] = &["ksys_write", "sys_write", "SyS_write"];
/// The scheduler's part of a tick, since v6.10 and before.
const TICK: &[&str] = &["sched_tick", "scheduler_tick"];

/// Messages through sockets, since v4.17 and before; and what waits for a futex or wakes.
const SEND: &[&str] = &["__sys_sendto", "sys_sendto", "SyS_sendto"];
const FUTEX: &[&str] = &["__x64_sys_futex", "sys_futex", "SyS_futex"];

/// What happens in the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Happening {
    Pair,
    Tcp,
    Stream,
    Udp,
    Datagrams,
    Unix,
    Futex,
    Epoll,
    Mixture,
}

impl Happening {
    const ALL: [(Happening, &'static str); 9] = [
        (Happening::Pair, "pair"),
        (Happening::Tcp, "tcp"),
        (Happening::Stream, "stream"),
        (Happening::Udp, "udp"),
        (Happening::Datagrams, "datagrams"),
        (Happening::Unix, "unix"),
        (Happening::Futex, "futex"),
        (Happening::Epoll, "epoll"),
        (Happening::Mixture, "mixture"),
    ];

    fn named(name: &str) -> Result<Happening, String> {
        let found = Happening::ALL.into_iter().find(|(_, known)| *known == name);
        let names = Happening::ALL.map(|(_, name)| name).join(", ");
        found.map(|(happening, _)| happening).ok_or_else(|| format!("--of {name}; expected one of {names}"))
    }

    /// What is counted by, and the functions that begin it, of which a kernel has one.
    fn unit(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Happening::Pair | Happening::Unix => ("message", MESSAGE),
            Happening::Futex => ("call", FUTEX),
            Happening::Mixture => ("tick", TICK),
            _ => ("message", SEND),
        }
    }

    /// How long it goes on before it counts, where nothing is said: messages, or rounds, each of which takes several ticks.
    const fn warm(self) -> u64 {
        match self {
            Happening::Mixture => 8,
            _ => 3_000,
        }
    }

    /// Bytes of QEMU's log for one unit, so that as many as asked for are in it: 8000 instructions of 90 bytes for a message, or twice as many
    /// for a tick where few forks fall on it, and a part more.
    const fn most_logged(self) -> u64 {
        match self {
            Happening::Mixture => 2_000_000,
            _ => 1_000_000,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    of_guest: arguments::Arguments,
    symbols: PathBuf,
    of: Happening,
    cpus: usize,
    machine: String,
    warm: u64,
    messages: u64,
    bytes: u64,
    /// Unpriced functions stand by themselves.
    calls: bool,
}

impl Options {
    /// The word of the kernel's command line.
    fn word(&self) -> String {
        let Options { of, cpus, warm, bytes, .. } = self;
        match of {
            Happening::Pair => format!("pingpong={cpus},{warm}"),
            Happening::Mixture => format!("mixture={cpus},{warm}"),
            talk => {
                let (_, kind) = Happening::ALL.into_iter().find(|(known, _)| known == talk).expect("all have names");
                format!("talk={kind},{cpus},{warm},{bytes}")
            }
        }
    }
}

/// # Errors
/// What is wrong with the words, or with what they name.
pub fn run(words: &[String]) -> Result<(), String> {
    let options = parse(words).map_err(|message| format!("{message}\n\n{USAGE}"))?;
    let symbols = Symbols::read(&options.symbols)?;
    let log = trace(&options)?;
    let table = attribute(&options, &log, &symbols);
    if let Some(folder) = &options.of_guest.keep {
        std::fs::copy(&log, folder.join("instructions.txt")).map_err(|error| error.to_string())?;
    }
    let _ = std::fs::remove_file(&log);
    print!("{}", table?);
    Ok(())
}

/// Reads the log twice: for the addresses, whose functions are asked for all at once, and for their order.
fn attribute(options: &Options, log: &Path, symbols: &Symbols) -> Result<String, String> {
    let read = || File::open(log).map(BufReader::new).map_err(|error| format!("QEMU's log: {error}"));
    let mut addresses = BTreeSet::new();
    instructions(read()?, |instruction| _ = addresses.insert(instruction.address))?;
    let owners = symbols.owners(&addresses)?;
    let (_, begins) = options.of.unit();
    let begin = begins.iter().find_map(|name| symbols.address(name));
    let begin = begin.ok_or_else(|| format!("the symbols have none of {}", begins.join("(), ") + "()"))?;
    let mut attributed = Attributed::new(begin, &owners, options.calls);
    instructions(read()?, |instruction| attributed.add(instruction))?;
    match attributed.units() {
        0 => Err(format!("no {} was logged from begin to end", options.of.unit().0)),
        _ => Ok(table(&attributed, options.of)),
    }
}

fn parse(words: &[String]) -> Result<Options, String> {
    let (mut symbols, mut cpus, mut machine) = (PathBuf::new(), 1, "pack:1 l3:1 core:2 pu:1".to_string());
    let (mut warm, mut messages, mut rest) = (None, 100, Vec::new());
    let (mut of, mut bytes, mut calls) = (Happening::Pair, 100, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} without a value"));
        let number = |text: &String| text.parse().map_err(|_| format!("{word} {text}; expected a whole number"));
        match word.as_str() {
            "--symbols" => symbols = value()?.into(),
            "--calls" => calls = true,
            "--of" => of = Happening::named(value()?)?,
            "--machine" => machine.clone_from(value()?),
            "--bytes" => bytes = number(value()?)?,
            "--cpus" => cpus = number(value()?)? as usize,
            "--warm" => warm = Some(number(value()?)?),
            "--messages" => messages = number(value()?)?,
            _ => rest.push(word.clone()),
        }
    }
    if of != Happening::Mixture && !(1..=2).contains(&cpus) {
        return Err(format!("--cpus {cpus}; expected 1 or 2"));
    }
    if symbols.as_os_str().is_empty() {
        return Err("no symbols; expected --symbols VMLINUX".to_string());
    }
    // Nothing is recorded here, so there are no cases.
    let of_guest = arguments::options(&rest)?;
    let warm = warm.unwrap_or(of.warm());
    Ok(Options { of_guest, symbols, of, cpus, machine, warm, messages: messages.max(1), bytes: bytes.max(1), calls })
}

/// Boots the guest and logs its instructions: the log's place.
fn trace(options: &Options) -> Result<PathBuf, String> {
    let (qemu, kernel) = guest::found(&options.of_guest)?;
    let topology =
        from_synthetic(&options.machine, "--machine", Numbering::LinuxX86).map_err(|error| error.to_string())?;
    let machine = guest::machine(&topology)?;
    let image = initramfs::of(&guest::built("pingpong.c")?, "");
    let parameters = [format!("quiet {}", options.word())];
    let command_line = guest::command_line(&parameters, &options.of_guest, 1);
    let guest = Guest { qemu: &qemu, kernel: &kernel, machine: &machine, command_line: &command_line, image: &image };
    guest.trace(&options.of_guest, options.messages.saturating_mul(options.of.most_logged()))
}

/// Reads QEMU's log, one line for each instruction: `Trace CPU: HOST [BASE/ADDRESS/FLAGS/...] `. One that repeats itself (`rep movsb`) is
/// logged each time, and told once: prices are without what is copied, which is charged by its bytes.
fn instructions(log: impl BufRead, mut each: impl FnMut(Instruction)) -> Result<(), String> {
    let mut last = None;
    for line in log.lines() {
        let line = line.map_err(|error| format!("QEMU's log: {error}"))?;
        let Some(instruction) = instruction_of(&line) else { continue };
        if last.replace(instruction) != Some(instruction) {
            each(instruction);
        }
    }
    Ok(())
}

fn instruction_of(line: &str) -> Option<Instruction> {
    let (cpu, rest) = line.strip_prefix("Trace ")?.split_once(':')?;
    let address = rest.split('/').nth(1)?;
    Some(Instruction { cpu: cpu.parse().ok()?, address: u64::from_str_radix(address, 16).ok()? })
}

fn table(attributed: &Attributed, of: Happening) -> String {
    let units = attributed.units() as f64;
    let (unit, _) = of.unit();
    let mut rows: Vec<_> = attributed.rows().collect();
    rows.sort_by_key(|(name, row)| (std::cmp::Reverse(row.instructions), *name));
    let mut text = format!(
        "{} {unit}s, {:.0} instructions each\n\n{:<36}{:>12}{:>10}{:>12}\n",
        attributed.units(),
        attributed.instructions() as f64 / units,
        "function (* has a price)",
        format!("a {unit}"),
        "calls",
        "each call"
    );
    for (name, row) in rows {
        let mark = if row.priced { "*" } else { "" };
        let _ = write!(text, "{:<36}{:>12.1}", format!("{name}{mark}"), row.instructions as f64 / units);
        let _ = match row.calls {
            // Part of its callers, which is all that can be told of it.
            0 => writeln!(text, "{:>10}{:>12}", "-", "-"),
            calls => writeln!(text, "{:>10.2}{:>12.1}", calls as f64 / units, row.instructions as f64 / calls as f64),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_log_are_instructions() {
        let log = "Trace 1: 0x7f3d [0000000000000000/ffffffff81000010/18c0c2b0/ff020201] \nexecution\n";
        let mut read = Vec::new();
        instructions(log.as_bytes(), |instruction| read.push(instruction)).unwrap();
        assert_eq!(read, [Instruction { cpu: 1, address: 0xffff_ffff_8100_0010 }]);
    }

    #[test]
    fn an_instruction_that_repeats_itself_counts_once() {
        let line = |cpu, address| format!("Trace {cpu}: 0x7f3d [0000000000000000/{address}/18c0c2b0/ff020201] \n");
        let (copies, other) = ("ffffffff81000010", "ffffffff81000020");
        let log = [(0, other), (0, copies), (0, copies), (1, copies), (0, copies), (0, other)];
        let log: String = log.map(|(cpu, address)| line(cpu, address)).concat();
        let mut read = Vec::new();
        instructions(log.as_bytes(), |instruction| read.push((instruction.cpu, instruction.address & 0xff))).unwrap();
        assert_eq!(read, [(0, 0x20), (0, 0x10), (1, 0x10), (0, 0x10), (0, 0x20)]);
    }

    #[test]
    fn the_guest_is_told_what_to_do() {
        let word = |text: &str| {
            let words: Vec<String> =
                format!("--kernel k --symbols s {text}").split_whitespace().map(String::from).collect();
            parse(&words).unwrap().word()
        };
        assert_eq!(word(""), "pingpong=1,3000");
        assert_eq!(word("--of mixture --cpus 5"), "mixture=5,8");
        assert_eq!(word("--of stream --bytes 256 --cpus 2 --warm 7"), "talk=stream,2,7,256");
        assert_eq!(word("--of futex"), "talk=futex,1,3000,100");
    }

    #[test]
    fn options_are_told_from_those_of_the_guest() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let options = parse(&words("--kernel k --symbols s --cpus 2 --limit 60")).unwrap();
        assert_eq!((options.cpus, options.of_guest.limit_s, options.symbols), (2, 60, "s".into()));
        let warm = |more: &str| parse(&words(&format!("--kernel k --symbols s {more}"))).unwrap().warm;
        assert_eq!(["--cpus 1", "--of mixture", "--warm 5 --of mixture"].map(warm), [3_000, 8, 5]);
        for (text, message) in [
            ("--kernel k", "no symbols"),
            ("--symbols s", "no kernel"),
            ("--kernel k --symbols s --cpus 3", "--cpus 3"),
            ("--kernel k --symbols s --warm soon", "--warm soon"),
            ("--kernel k --symbols s --of pears", "--of pears"),
            ("--kernel k --symbols s case.toml", "case.toml"),
        ] {
            assert!(parse(&words(text)).unwrap_err().starts_with(message), "{text}");
        }
    }
}
