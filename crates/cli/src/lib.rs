//! The command `fairground`: the files, threads and exit codes around the lab.
//!
//! Used as a library, it is the same command with workloads of one's own in addition to ours: [`main_with`].
//! `examples/own_workload.rs` is an example.

mod arguments;
mod calibrate;
mod compare;
mod execute;
mod failure;
mod fidelity;
mod files;
mod measure;
mod measured_folder;
mod output;
mod progress;
mod real_rt_app;
mod replay;
mod reproduce;
mod select;
mod sensitivity;
mod single;
mod store;
mod trials;
mod watch;

use arguments::{Arguments, Command, KernelsCommand, MachinesCommand, WorkloadsCommand};
use clap::{CommandFactory, Parser};
use failure::Failure;
use files::Disk;
use lab::kernels::Build;
use lab::listing;
use lab::machines::Machine;
use lab::mistake::Written;
use output::{print, say};
use std::ffi::OsString;
use std::process::ExitCode;

pub use os::Os;
pub use os::sync::SyncOp;
pub use sim::engine::Sample;
pub use sim::program::{Op, Outcome, Program, Steps, TaskSpec};
pub use units::{Cycles, Ns};
pub use workloads::{Instance, Parameter, Summary, Values, Workload, timed};

/// The command with this program's arguments, and with `own` among its workloads.
///
/// # Panics
/// If a workload of that name exists.
pub fn main_with(own: &'static [Workload]) -> ExitCode {
    run_with(own, std::env::args_os())
}

/// The same with these arguments; the first one is the program's name. To be called once in a program.
pub fn run_with(
    own: &'static [Workload],
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> ExitCode {
    workloads::add(own);
    // Mistakes in the arguments themselves exit here, with code 2.
    match dispatch(&Arguments::parse_from(arguments).command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                say(&format!("error: {message}"));
            }
            failure.exit_code()
        }
    }
}

fn dispatch(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Compare(arguments) => compare::compare(arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(arguments),
        Command::Run(arguments) => single::run(arguments),
        Command::Trace(arguments) => watch::write_trace(arguments),
        Command::Profile(arguments) => watch::profile(arguments),
        Command::Lines(arguments) => watch::lines(arguments),
        Command::Schedstat(arguments) => watch::schedstat(arguments),
        Command::Proc(arguments) => watch::proc(arguments),
        Command::Calibrate(arguments) => calibrate::calibrate(arguments),
        Command::Sensitivity(arguments) => sensitivity::sensitivity(arguments),
        Command::Measure(arguments) => measure::measure(arguments),
        Command::HostChild { words } => host::child::child(words).map_err(Failure::from),
        Command::Replay { records } => replay::replay(records),
        Command::Fidelity(arguments) => fidelity::fidelity(arguments),
        Command::Machines { command } => machines(command),
        Command::Kernels { command } => kernels(command),
        Command::Workloads { command } => workloads(command),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "fairground", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    }
}

fn machines(command: &MachinesCommand) -> Result<(), Failure> {
    let choose = |command: &str, name: &str| {
        let machine = Machine::choose(&Written::option(command, name), "", &Disk);
        machine.inspect(|machine| machine.notices.iter().for_each(|notice| say(&format!("note: {notice}"))))
    };
    match command {
        MachinesCommand::List => print(&listing::machines()),
        MachinesCommand::Show { name } => print(&listing::machine(&choose("machines show", name)?)),
        MachinesCommand::Import { file } => {
            let machine = choose("machines import", file)?;
            // The files that it extends are written out, so that the printed file is complete.
            if machine.bases.is_empty() { print(&machine.text) } else { print(&machine.description.to_toml()) }
        }
    }
}

fn kernels(command: &KernelsCommand) -> Result<(), Failure> {
    let choose = |command: &str, name: &str| Build::choose(&Written::option(command, name));
    match command {
        KernelsCommand::List => print(&listing::kernels()),
        KernelsCommand::Show { name } => print(&listing::kernel(&choose("kernels show", name)?)),
        KernelsCommand::Diff { a, b } => {
            print(&listing::kernel_diff(&choose("kernels diff", a)?, &choose("kernels diff", b)?))
        }
    }
}

fn workloads(command: &WorkloadsCommand) -> Result<(), Failure> {
    match command {
        WorkloadsCommand::List => print(&listing::workloads()),
        WorkloadsCommand::Show { name } => match listing::workload(name) {
            Some(text) => print(&text),
            None => {
                let names = lab::experiment::workload_names();
                Err(Written::option("workloads show", name).unknown("workload", names).into())
            }
        },
    }
}
