//! Records fidelity cases: plays a case's script on a real kernel, in a QEMU guest without hardware virtualisation, and
//! writes the recording that the case names: what each task did. `cargo xtask record-fidelity` is this program;
//! docs/fidelity.md is its manual.
//!
//! The case is read as `fairground fidelity` reads it, and the real kernel's trace is evaluated by the same code as the
//! simulation's (`observe::PerTask`): one script, two arms, one analysis.
//!
//! With `count` as its first word the program counts instructions instead ([`count`]), with `random` it writes cases
//! ([`random`]).

mod arguments;
mod count;
mod guest;
mod initramfs;
mod program;
mod random;
mod recording;
mod trace;

use arguments::Arguments;
use lab::experiment::{Draft, Purpose};
use lab::machines::Files;
use lab::mistake::Unreadable;
use std::path::Path;
use std::process::ExitCode;

struct Disk;

impl Files for Disk {
    fn text(&self, path: &str) -> Result<String, Unreadable> {
        std::fs::read_to_string(path).map_err(|error| Unreadable::from(error.to_string()))
    }

    fn sysfs(&self, _: &str) -> Option<String> {
        None
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((first, rest)) if first == "count" => ended("count-instructions", count::run(rest)),
        Some((first, rest)) if first == "random" => match arguments::random(rest) {
            Ok(arguments) => ended("random-cases", random::write(&arguments)),
            Err(message) => misused("random-cases", &message, arguments::RANDOM_USAGE),
        },
        _ => match arguments::parse(&words) {
            Ok(arguments) => ended("record-fidelity", record_all(&arguments)),
            Err(message) => misused("record-fidelity", &message, arguments::USAGE),
        },
    }
}

fn ended(command: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{command}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn misused(command: &str, message: &str, usage: &str) -> ExitCode {
    eprintln!("{command}: {message}\n\n{usage}");
    ExitCode::from(2)
}

fn record_all(arguments: &Arguments) -> Result<(), String> {
    arguments.cases.iter().try_for_each(|case| record(arguments, case).map_err(|message| format!("{case}: {message}")))
}

/// Records one case.
fn record(arguments: &Arguments, path: &str) -> Result<(), String> {
    let words = |mistake: lab::mistake::Mistake| mistake.to_string();
    let mut draft = Draft::read(path, &Disk).map_err(words)?;
    let Some(recording) = draft.recording.take() else {
        return Err("names no recording; expected recording = \"NAME.numbers.txt\", the file to write".to_string());
    };
    // Figures are compared with the recording, which does not exist yet.
    draft.figures.clear();
    let case = draft.resolve(Purpose::Single, &Disk).map_err(words)?;
    let setup = case.setup(&case.jobs()[0]);
    let topology = setup.machine.machine().map_err(words)?.description.topology().clone();
    let program = program::of(&setup, topology.nr_cpus())?;
    let (qemu, kernel) = guest::found(arguments)?;
    let machine = guest::machine(&topology)?;
    eprintln!("recording {path}");
    let image = initramfs::of(&guest::built("player.c")?, &program.text);
    let mut text = String::new();
    for sample in 1..=arguments.samples {
        let command_line = guest::command_line(&program.parameters, arguments, sample);
        let guest = guest::Guest {
            qemu: &qemu,
            kernel: &kernel,
            machine: &machine,
            command_line: &command_line,
            image: &image,
        };
        let raw = guest.run(arguments)?;
        if let Some(folder) = &arguments.keep {
            let name = Path::new(path).file_stem().unwrap_or_default();
            std::fs::write(folder.join(name).with_extension("raw.txt"), &raw).map_err(|error| error.to_string())?;
        }
        let recorded = recording::read(&raw, &program.tasks, topology.nr_cpus())?;
        // A release stands for the candidates before it.
        let wanted = setup.kernel.name.trim_start_matches('v').split("-rc").next().unwrap_or_default();
        if !recorded.version.starts_with(&format!("{wanted}.")) && !recorded.version.starts_with(&format!("{wanted}-"))
        {
            let found = format!("{} is Linux {}", kernel.display(), recorded.version);
            return Err(format!("{found}; expected {wanted}, as the case says"));
        }
        text.push_str(&recording::written(&recorded, &command_line));
    }
    let to = Path::new(path).parent().unwrap_or(Path::new("")).join(&recording.text);
    std::fs::write(&to, text).map_err(|error| format!("{}: {error}", to.display()))?;
    eprintln!("wrote {}", to.display());
    Ok(())
}
