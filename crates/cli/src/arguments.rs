//! The command line. Scripts depend on it.

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// A wind tunnel for the Linux CPU scheduler: simulates benchmarks on machines you need not own, and compares kernels.
#[derive(Parser, Debug)]
#[command(name = "fairground", version, propagate_version = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Runs workloads under two arms or more and prints before/after tables
    Compare(CompareArguments),
    /// Predicts published studies: their experiments, beside the columns that were published of the kernel before
    Reproduce(ReproduceArguments),
    /// Runs workloads under one arm: the benchmark's own figures, then the scheduler's statistics
    Run(RunArguments),
    /// Writes what happens in one run, to be looked at
    Trace(TraceArguments),
    /// Shows where the CPUs' time went in one run, by kernel function
    Profile(ProfileArguments),
    /// Shows the cache lines that were waited for longest in one run, who writes them and who reads them
    Lines(LinesArguments),
    /// Shows /proc/schedstat of the simulated machine at the end of one run
    Schedstat(WatchArguments),
    /// Shows files of procfs and debugfs of the simulated machine at one moment of one run, in the kernel's own formats
    Proc(ProcArguments),
    /// Measures this computer and writes its machine file; takes some minutes, --quick ten seconds to a minute
    Calibrate(CalibrateArguments),
    /// Ranks the machine's uncertain figures by how far each moves the result over its range (docs/machines.md)
    Sensitivity(SensitivityArguments),
    /// Runs real benchmarks on this computer's own kernel: the figures that simulations of it predict
    Measure(MeasureArguments),
    /// What a benchmark of `measure` starts as its further processes
    #[command(hide = true)]
    HostChild { words: Vec<String> },
    /// Runs a stored record's setup again and says whether the bytes agree
    Replay {
        /// Records, or result folders, of which all records are run again
        #[arg(required = true, value_name = "RECORD")]
        records: Vec<String>,
    },
    /// Replays recorded scenarios of real kernels and compares figure by figure
    Fidelity(FidelityArguments),
    /// Lists, shows and imports machines
    Machines {
        #[command(subcommand)]
        command: MachinesCommand,
    },
    /// Lists, shows and compares kernels
    Kernels {
        #[command(subcommand)]
        command: KernelsCommand,
    },
    /// Lists and shows workloads
    Workloads {
        #[command(subcommand)]
        command: WorkloadsCommand,
    },
    /// Prints a completion script
    Completions { shell: Shell },
}

/// What to run.
#[derive(Args, Debug, Default)]
pub struct Selectors {
    /// Experiment file; options below replace what it says or add to it (docs/experiments.md)
    #[arg(value_name = "EXPERIMENT.toml")]
    pub experiment: Option<String>,

    /// A name (`fairground machines list`), host, a machine file, hwloc XML, the folder of a copy of /sys, or a topology:
    /// "pack:2 l3:1 core:12 pu:2"
    #[arg(long, value_name = "M")]
    pub machine: Option<String>,

    /// A workload and its parameters; a list of values is written 1+4+7 (`fairground workloads list`)
    #[arg(long = "workload", value_name = "W[:key=value,...]")]
    pub workloads: Vec<String>,

    /// An arm: a kernel, then sysctls, sched_features, boot parameters and behaviours (`fairground kernels show KERNEL`)
    #[arg(long = "arm", value_name = "NAME=KERNEL[,key=value...]")]
    pub arms: Vec<String>,

    /// Runs of each row and arm, 1 to 10000, each with a seed of its own; for compare also auto[:min=5,max=40,half_width=1]: as many as
    /// it takes until the 95% interval of every change is within +-1% (docs/reports.md)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub iterations: Option<String>,

    /// Seed of everything that is left to chance
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    pub seed: Option<String>,

    /// Runs at the same time; the results do not depend on it [default: all CPUs of this computer]
    #[arg(long, value_name = "J", allow_hyphen_values = true)]
    pub jobs: Option<String>,

    /// Says nothing on stderr but what went wrong
    #[arg(long)]
    pub quiet: bool,
}

/// For commands with a single run. They accept the selectors and refuse senseless values, but --help need not show what
/// makes no difference.
fn of_one_run(argument: Arg) -> Arg {
    let hidden = matches!(argument.get_id().as_str(), "iterations" | "jobs");
    argument.hide(hidden)
}

#[derive(Args, Debug)]
pub struct RunArguments {
    #[command(flatten)]
    pub selectors: Selectors,

    /// What stdout gets
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// Folder for records and reports; a second run goes on from what is there [compare: results/NAME-HASH]
    #[arg(long, value_name = "DIR", value_parser = NonEmptyStringValueParser::new())]
    pub out: Option<String>,
}

#[derive(Args, Debug)]
pub struct CompareArguments {
    #[command(flatten)]
    pub run: RunArguments,

    /// A folder of `fairground measure --out`: sets the predictions beside what was measured; one arm is enough then
    #[arg(long, value_name = "DIR", value_parser = NonEmptyStringValueParser::new())]
    pub measured: Option<String>,
}

#[derive(Args, Debug)]
pub struct ReproduceArguments {
    /// Studies, by name [default: all]
    #[arg(value_name = "STUDY")]
    pub studies: Vec<String>,

    /// Runs of each row and arm, 1 to 10000, or auto[:min=5,max=40,half_width=1] [default: as each experiment says]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub iterations: Option<String>,

    /// Runs at the same time; the results do not depend on it [default: all CPUs of this computer]
    #[arg(long, value_name = "J", allow_hyphen_values = true)]
    pub jobs: Option<String>,

    /// What stdout gets; json is one document with the tables of all
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// Folder for the results' folders, one of each experiment [default: results]
    #[arg(long, value_name = "DIR", value_parser = NonEmptyStringValueParser::new())]
    pub out: Option<String>,

    /// Says nothing on stderr but what went wrong
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Args, Debug)]
pub struct CalibrateArguments {
    /// File to write; stdout then gets what was measured [default: the machine file goes to stdout]
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    pub out: Option<String>,

    /// What the machine is called: letters, digits, -, . and _
    #[arg(long, value_name = "NAME", default_value = "this")]
    pub name: String,

    /// Fewer bursts of everything
    #[arg(long)]
    pub quick: bool,

    /// Says nothing on stderr but what went wrong
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Args, Debug)]
pub struct SensitivityArguments {
    #[command(flatten)]
    pub selectors: Selectors,

    /// Only figures whose names fit: line.llc, or paths.*; may stand more than once [default: all that are uncertain]
    #[arg(long = "figures", value_name = "GLOB")]
    pub figures: Vec<String>,

    /// Figures to print, of those that move something
    #[arg(long, value_name = "N", default_value = "20", allow_hyphen_values = true)]
    pub top: String,

    /// What stdout gets; JSON has all figures
    #[arg(long, value_enum, default_value_t = MeasureFormat::Text)]
    pub format: MeasureFormat,

    /// Folder for what is done, from where a second call goes on [default: results/NAME-sensitivity-HASH]
    #[arg(long, value_name = "DIR", value_parser = NonEmptyStringValueParser::new())]
    pub out: Option<String>,
}

#[derive(Args, Debug)]
pub struct MeasureArguments {
    /// A workload and its parameters, as for `run --workload`; several are measured one after the other
    #[arg(value_name = "W[:key=value,...]", required = true)]
    pub workloads: Vec<String>,

    /// Runs of each row, 1 to 10000
    #[arg(long, value_name = "N", default_value = "5", allow_hyphen_values = true)]
    pub iterations: String,

    /// Folder for records and the report, for `compare --measured`
    #[arg(long, value_name = "DIR", value_parser = NonEmptyStringValueParser::new())]
    pub out: Option<String>,

    /// What stdout gets
    #[arg(long, value_enum, default_value_t = MeasureFormat::Text)]
    pub format: MeasureFormat,

    /// Says nothing on stderr but what went wrong
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum MeasureFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Csv,
}

#[derive(Args, Debug)]
#[command(mut_args(of_one_run))]
pub struct ProcArguments {
    #[command(flatten)]
    pub selectors: Selectors,

    /// A file, such as /proc/schedstat or /proc/PID/sched; a task's name may stand for its PID
    #[arg(long = "file", value_name = "PATH", required = true)]
    pub files: Vec<String>,

    /// When, in ms since boot of the simulated machine, from the workload's start on [default: the end of the run]
    #[arg(long, value_name = "MS", allow_hyphen_values = true)]
    pub at: Option<String>,
}

#[derive(Args, Debug)]
pub struct FidelityArguments {
    /// Cases, or folders of cases (docs/fidelity.md)
    #[arg(value_name = "CASE", default_value = "fidelity")]
    pub cases: Vec<String>,

    /// Cases at the same time; the results do not depend on it [default: all CPUs of this computer]
    #[arg(long, value_name = "J", allow_hyphen_values = true)]
    pub jobs: Option<String>,

    /// Says nothing on stderr but what went wrong
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Args, Debug)]
#[command(mut_args(of_one_run))]
pub struct TraceArguments {
    #[command(flatten)]
    pub selectors: Selectors,

    /// File to write; - is stdout
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    pub out: String,

    /// perfetto: for ui.perfetto.dev; ftrace: the kernel's text; gantt: a picture in letters
    #[arg(long, value_enum, default_value_t = TraceFormat::Perfetto)]
    pub format: TraceFormat,

    /// Tracepoints, by name or pattern (sched_stat_*), divided by commas [default: the kernel's events in tracefs]
    #[arg(long, value_name = "LIST")]
    pub events: Option<String>,

    /// Beginning, in ms since boot of the simulated machine [default: boot; gantt: the workload's start]
    #[arg(long, value_name = "MS", allow_hyphen_values = true)]
    pub from: Option<String>,

    /// End, in ms since boot [default: the end of the run; gantt: 1 ms after the beginning]
    #[arg(long, value_name = "MS", allow_hyphen_values = true)]
    pub to: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TraceFormat {
    Perfetto,
    Ftrace,
    Gantt,
}

#[derive(Args, Debug)]
#[command(mut_args(of_one_run))]
pub struct ProfileArguments {
    #[command(flatten)]
    pub selectors: Selectors,

    /// perf: as perf report prints it; folded: stacks for flame graphs
    #[arg(long, value_enum, default_value_t = ProfileFormat::Perf)]
    pub format: ProfileFormat,
}

#[derive(Args, Debug)]
#[command(mut_args(of_one_run))]
pub struct LinesArguments {
    #[command(flatten)]
    pub selectors: Selectors,

    /// How many lines, the hottest first
    #[arg(long, value_name = "N", default_value = "20", allow_hyphen_values = true)]
    pub lines: String,

    /// What stdout gets
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ProfileFormat {
    Perf,
    Folded,
}

#[derive(Args, Debug)]
#[command(mut_args(of_one_run))]
pub struct WatchArguments {
    #[command(flatten)]
    pub selectors: Selectors,
}

#[derive(Subcommand, Debug)]
pub enum MachinesCommand {
    /// The machines that ship
    List,
    /// A machine and all its figures, with their sources
    Show {
        /// A name, host, a file, the folder of a copy of /sys, or a topology
        name: String,
    },
    /// Prints the machine file of a topology, to be edited and used with --machine
    Import {
        /// What `lstopo --of xml` writes; or host, the folder of a copy of /sys, a topology, a machine file, or the name of one that
        /// ships
        file: String,
    },
}

#[derive(Subcommand, Debug)]
pub enum KernelsCommand {
    /// The kernels that are built
    List,
    /// A kernel's behaviours, features, sysctls and parameters
    Show {
        /// One of `fairground kernels list`
        name: String,
    },
    /// In what two kernels differ: each behaviour, feature and tunable, as the first and as the second has it
    Diff {
        /// The kernel before
        a: String,
        /// The kernel after
        b: String,
    },
}

#[derive(Subcommand, Debug)]
pub enum WorkloadsCommand {
    /// The workloads
    List,
    /// A workload and its parameters
    Show {
        /// One of `fairground workloads list`
        name: String,
    },
}
